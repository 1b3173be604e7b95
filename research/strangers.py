"""How good answers are where most users stand: a network of their own, no base classes, a few examples or a sentence.

Networks are made here, of two kinds, each from other seeds and settings: packages with short descriptions and teams as
hidden classes, and banks with planted behaviour among heavy-tailed amounts. Both come in by `fewnode.read_tables`, as
a stranger's tables do. Each question is also put to the plainest ranking that fits: a TF-IDF product, or the cosine of
standardised columns with logarithms of amounts and degrees by kind. `--networks` adds datasets whose labels are hidden.

    python research/strangers.py --draws 2 [--networks FOLDER]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import fewnode

SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
KINDS = ("card", "wire", "cash", "p2p")
Members = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Stranger:
    """A network without labels, what is hidden in it, and what a person says of some of its classes."""

    data: fewnode.Dataset
    hidden: Members
    said: Mapping[str, str]
    plain: NDArray[np.float32] | sp.csr_array
    """Rows of length 1 that the plainest ranking compares."""


# --- packages -------------------------------------------------------------------------------------------------------


def packages(
    seed: int, n: int, mix: tuple[float, ...], linked: float, teams: int = 40, domains: int = 20, length: int = 11
) -> Stranger:
    """`mix`: shares of general words, of a domain's, of a team's, of rare noise; `linked`: edges within a team."""
    rng = np.random.default_rng(seed)
    lexicon = np.array(list(dict.fromkeys("".join(rng.choice(SYLLABLES, rng.integers(2, 5))) for _ in range(20_000))))
    general, rest = lexicon[:600], lexicon[600:]
    fields, rest = rest[: domains * 60].reshape(domains, 60), rest[domains * 60 :]
    own, noise = rest[: teams * 20].reshape(teams, 20), rest[teams * 20 :]
    sizes = np.exp(rng.uniform(np.log(30), np.log(600), teams))
    sizes = np.maximum(sizes * min(1, 0.6 * n / sizes.sum()), 30).astype(int)
    team = np.full(n, -1)
    team[rng.permutation(n)[: sizes.sum()]] = np.repeat(np.arange(teams), sizes)
    of_team = rng.integers(domains, size=teams)
    domain = np.where(team >= 0, of_team[team], rng.integers(domains, size=n))
    about = np.where((team < 0) & (rng.random(n) < 0.15), rng.integers(teams, size=n), team)  # as if in a team
    texts = []
    for i in range(n):
        pools = [general, fields[domain[i]], own[about[i]] if about[i] >= 0 else fields[domain[i]], noise]
        kinds = rng.choice(4, max(3, rng.poisson(length)), p=mix)
        texts.append(
            " ".join(
                pool[min(len(pool) - 1, int(len(pool) * rng.random() ** 2.5))] for pool in map(pools.__getitem__, kinds)
            )
        )
    fame, edges = rng.pareto(1.1, n) + 0.05, {"source": [], "target": [], "kind": []}
    for kind, count, share in (("Depends", 5, linked), ("Recommends", 3, linked / 2), ("Suggests", 2, linked / 3)):
        source, target = rng.integers(n, size=n * count), rng.choice(n, n * count, p=fame / fame.sum())
        inside = np.flatnonzero((rng.random(source.size) < share) & (team[source] >= 0))
        order = np.argsort(team, kind="stable")
        first = np.searchsorted(team[order], team[source[inside]])
        target[inside] = order[first + (rng.random(inside.size) * sizes[team[source[inside]]]).astype(int)]
        edges["source"] += [f"p{i}" for i in source]
        edges["target"] += [f"p{i}" for i in target]
        edges["kind"] += [kind] * source.size
    words = {
        t: [*rng.choice(own[t][:10], 4, False), *rng.choice(fields[of_team[t]][:20], 2, False)] for t in range(teams)
    }
    nodes = {"id": [f"p{i}" for i in range(n)], "about": texts}
    links = {"source": "source", "target": "target", "relation": "kind", "directed": True, "no_label": True}
    data = fewnode.read_tables(nodes, edges, text="about", name=f"packages {seed}", **links)
    said = {f"team {t}": " ".join([*own_words, *rng.choice(general[:100], 2)]) for t, own_words in words.items()}
    hidden = {f"team {t}": np.flatnonzero(team == t) for t in range(teams)}
    return Stranger(data, hidden, said, tf_idf(data.graph.x))


def tf_idf(x: sp.csr_array | NDArray[np.float32]) -> sp.csr_array:
    counts = sp.csr_array(x)
    idf = np.log((1 + counts.shape[0]) / (1 + np.bincount(counts.indices, minlength=counts.shape[1]))) + 1
    found = sp.csr_array(
        (np.log1p(np.abs(counts.data)) * idf[counts.indices], counts.indices, counts.indptr), counts.shape
    )
    length = np.sqrt(np.asarray(found.multiply(found).sum(axis=1)).ravel())
    return sp.csr_array(sp.diags_array(1 / np.maximum(length, 1e-9)) @ found)


# --- banks ----------------------------------------------------------------------------------------------------------


def bank(seed: int, spread: float, hide_flows: bool, n: int = 30_000, m: int = 170_000) -> Stranger:
    """Mules: many in, few out. Structuring: cash just under a limit. Rings: money goes round."""
    rng = np.random.default_rng(seed)
    active, base, order = np.exp(rng.normal(0, 1.1, n)), np.exp(rng.normal(7, 1, n)), rng.permutation(n)
    hidden = {"mules": order[:120], "structuring": order[120:220], "rings": order[220:340]}
    share = active / active.sum()
    parts = [(rng.choice(n, m, p=share), rng.choice(n, m, p=share), rng.choice(4, m, p=[0.4, 0.25, 0.1, 0.25]))]
    amounts = [np.exp(rng.normal(4, 1.3, m)) * np.where(parts[0][2] == 1, 4, 1)]

    def add(source: object, target: object, kind: int, amount: NDArray[np.float64]) -> None:
        one = np.ones(amount.size, int)
        parts.append((source * one, target * one, kind * one))  # type: ignore[operator]
        amounts.append(amount)

    for v in hidden["mules"]:
        small = np.exp(rng.normal(5.2, 0.5, rng.integers(15, 45)))
        add(rng.integers(n, size=small.size), v, 3, small)
        add(v, rng.integers(n, size=2), 1, np.full(2, small.sum() * 0.47))
    for v in hidden["structuring"]:
        cash = rng.uniform(8800, 9990, rng.integers(6, 16))
        add(rng.integers(n, size=cash.size), v, 2, cash)
    for ring in hidden["rings"].reshape(-1, 8):
        for _ in range(rng.integers(2, 5)):
            add(ring, np.roll(ring, 1), 1, rng.uniform(2000, 6000) * rng.uniform(0.95, 1.05, 8))
    source, target, kind = (np.concatenate(side) for side in zip(*parts, strict=True))
    amount = np.concatenate(amounts)
    flows = [np.bincount(target, amount, n) + 1, np.bincount(source, amount, n) + 1]
    own = {"balance": base * np.exp(rng.normal(0, spread, n)), "income": base * np.exp(rng.normal(0, 0.3, n))}
    own |= {"turnover": sum(flows)} if hide_flows else {"in_6m": flows[0], "out_6m": flows[1]}
    own = {name: np.round(values * np.exp(rng.normal(0, 0.25, n)), 2) for name, values in own.items()}
    job = rng.choice(["clerk", "teacher", "driver", "nurse", "student", "cook", "farmer", "lawyer"], n)
    nodes = {"id": [f"a{i}" for i in range(n)], **own, "about": job, "status": np.where(rng.random(n) < 0.97, "A", "B")}
    edges = {"source": [f"a{i}" for i in source], "target": [f"a{i}" for i in target]}
    edges |= {"kind": np.array(KINDS)[kind], "amount": np.round(amount, 2)}
    columns = {"source": "source", "target": "target", "relation": "kind", "weight": "amount", "directed": True}
    data = fewnode.read_tables(
        nodes, edges, category=["status", "about"], no_label=True, name=f"bank {seed}", **columns
    )
    degrees = [np.log1p(np.bincount(side[kind == k], minlength=n)) for side in (source, target) for k in range(4)]
    table = np.stack([*(np.log(values + 1) for values in own.values()), *degrees], axis=1)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    return Stranger(data, hidden, {}, (table / np.linalg.norm(table, axis=1, keepdims=True)).astype(np.float32))


# --- what is asked --------------------------------------------------------------------------------------------------


def hidden_labels(path: Path) -> Stranger:
    """A dataset whose labels nobody is shown."""
    known = fewnode.load(path)
    nothing = fewnode.ClassSplit((), (), ())
    data = fewnode.Dataset(
        known.graph, np.full(known.graph.n, -1), nothing, feature_names=known.feature_names, name=path.stem
    )
    hidden = {str(c): known.members(c) for c in range(len(known.class_sizes)) if known.class_sizes[c] >= 30}
    return Stranger(data, hidden, {}, tf_idf(known.graph.x))


def questions(stranger: Stranger, shots: int, draws: int, most: int = 16) -> Iterator[tuple[float, ...]]:
    """Precision at 20 and 100, ours and plain; the sum of `member` over the truth; claims stated and right; seconds."""
    n = stranger.data.graph.n
    for name, members in list(stranger.hidden.items())[:most]:
        for draw in range(draws if shots else 1):
            examples = np.random.default_rng(draw).choice(members, shots, replace=False)
            given = examples.tolist() if shots else stranger.said[name]
            begin = time.perf_counter()
            found = fewnode.recognise(stranger.data, {"it": given}, np.arange(n))
            seconds = time.perf_counter() - begin
            if shots:
                plain = stranger.plain @ np.asarray(stranger.plain[examples].sum(axis=0)).ravel()
            else:
                plain = stranger.plain @ np.isin(stranger.data.feature_names, given.split()).astype(np.float32)
            others, truth = np.setdiff1d(np.arange(n), examples), np.isin(np.arange(n), members)
            first = [others[np.argsort(-score[others], kind="stable")] for score in (found.probabilities[:, 0], plain)]
            precision = [truth[ranked[:count]].mean() for ranked in first for count in (20, 100)]
            claimed = (
                others[found.probabilities[others, 0] >= found.threshold] if found.member is not None else others[:0]
            )
            stated = found.probabilities[claimed, 0].mean() if claimed.size else np.nan
            right = truth[claimed].mean() if claimed.size else np.nan
            total = np.nan if found.member is None else found.member.sum() / members.size
            yield (*precision, total, stated, right, seconds)


def report(name: str, stranger: Stranger, shots: int, draws: int) -> None:
    rows = np.array(list(questions(stranger, shots, draws)), float)
    ours, plain, away = rows[:, :2].mean(axis=0), rows[:, 2:4].mean(axis=0), np.abs(np.log(rows[:, 4]))
    told = ~np.isnan(away)
    within = f"{np.mean(away[told] < np.log(3)):.0%}, {np.mean(away[told] < np.log(2)):.0%}" if told.any() else "-"
    print(
        f"{name:<24}{'sentence' if not shots else f'{shots} examples':<12}ours {ours[0]:.2f} {ours[1]:.2f}   "
        f"plain {plain[0]:.2f} {plain[1]:.2f}   members within 3, 2 times: {within:<10} "
        f"claims: stated {np.nanmean(rows[:, 5]):.2f}, right {np.nanmean(rows[:, 6]):.2f}   "
        f"{np.median(rows[:, 7]):.3f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--networks", type=Path, help="a folder of datasets (*.npz) whose labels are hidden")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    made = {
        "packages 1": lambda: packages(101, 15_000, (0.45, 0.25, 0.22, 0.08), 0.2),
        "packages 2": lambda: packages(102, 37_000, (0.5, 0.3, 0.15, 0.05), 0.08, teams=60, length=9),
        "packages 3": lambda: packages(103, 20_000, (0.55, 0.15, 0.15, 0.15), 0.4, domains=10, length=13),
        "bank 1": lambda: bank(111, 1.6, hide_flows=False),
        "bank 2": lambda: bank(112, 1.6, hide_flows=True),
        "bank 3": lambda: bank(113, 2.2, hide_flows=False),
    }
    made |= {
        path.stem: lambda path=path: hidden_labels(path)
        for path in sorted((options.networks or Path("-")).glob("*.npz"))
    }
    for name, make in made.items():
        stranger = make()
        for shots in (*((0,) if stranger.said else ()), 1, 3, 10):
            report(name, stranger, shots, options.draws)


if __name__ == "__main__":
    main()
