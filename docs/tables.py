"""Writes the accuracy tables into README.md and the pages, so that a number has one source: `python docs/tables.py`.

What the paper's grid gave comes from the ledger in research/results, everything else from docs/results.toml. In a page,
`<!-- table: NAME -->` stands above a table that is made here.
"""

import re
import tomllib
from pathlib import Path

from fewnode.experiment.report import seeds_text, signed
from fewnode.experiment.results import against_best, difference, read_results
from fewnode.methods.table import written

HERE = Path(__file__).parent
NOTES = sorted((HERE.parent / "research" / "notes").glob("*.md"))
PAGES = [HERE.parent / "README.md", *sorted(HERE.glob("*.md")), *NOTES]
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n+)((?:\|.*\n)*)")
SHOTS = (1, 3, 5)


def rewritten(page):
    """The page's text with every table made anew."""
    return MARKED.sub(lambda match: match[1] + TABLES[match[2]](), page.read_text())


def study(name):
    """The rows of a study in results.toml, each with its columns' names."""
    found = next(s for s in tomllib.loads((HERE / "results.toml").read_text())["study"] if s["name"] == name)
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def made(header, rows):
    head, *body = (f"| {' | '.join(cells)} |\n" for cells in (header, *rows))
    return "".join([head, "|" + "---|" * len(header) + "\n", *body]).replace("|  |", "| |")


# --- the paper's grid ---------------------------------------------------------------------------------------------


def grid():
    """Sections of the grid that compare methods."""
    return [part for part in read_results(HERE.parent / "research" / "results").sections if part.part.kind == "compare"]


def marked(entry, mark, interval):
    text = f"{100 * entry['accuracy'].mean:.1f}" + (f"±{100 * entry['accuracy'].ci95:.1f}" if interval else "")
    return {"best": "**{}**", "level": "{}†", "unsure": "{}?", "worse": "{}"}[mark].format(text)


def five_way(shot, interval):
    """Accuracy of 5-way tasks: (network, method) -> text with its mark; and method -> its numbers of trainings."""
    found, seeds = {}, {label: [] for section in grid() for label in section.labels}
    for section in grid():
        marks, _ = against_best(section)
        for dataset in section.datasets:
            for entry in section.of(dataset, setting=f"5-way {shot}-shot"):
                if entry["accuracy"]:
                    found[dataset, entry.label] = marked(entry, marks[entry], interval)
                    seeds[entry.label].append(entry)
    return found, {label: seeds_text(entries, "accuracy") for label, entries in seeds.items() if entries}


def measured():
    """Five labels a class on both kinds of networks: with base classes, and without."""
    cells, seeds = five_way(5, interval=False)
    methods = ("gpn", "meta-gnn", "deepwalk", "logistic", "Correct & Smooth", "GCN on support", "GRACE")
    methods += ("propagation", "gpn-plus")
    names = {"debian": "Debian", "amazon_clothing_test20": "Amazon-Clothing, 20 classes"}
    names |= {"coauthor_cs": "Coauthor-CS", "nell_partial": "NELL, in part", "wikispeedia": "Wikispeedia"}
    rows = [[name, *(cells.get((network, method), "") for method in methods)] for network, name in names.items()]
    rows.append(["trainings", *(seeds[method] for method in methods)])
    without = {"uai": "UAI", "amazon_photo": "Amazon-Photo", "citeseer": "Citeseer", "cora_ml": "Cora-ML"}
    without |= {"blogcatalog": "BlogCatalog"}
    five = {row["method"]: row for row in study("all classes") if row["shot"] == 5 and row["method"] in methods}
    for network, name in without.items():
        found = {method: row[network].split()[0] for method, row in five.items()}
        best = max(found.values(), key=float)
        found = {method: f"**{text}**" if text == best else text for method, text in found.items()}
        rows.append([f"{name}, no base classes", *(found.get(method, "") for method in methods)])
    return made(["5 labels a class, %", *map(written, methods)], rows)


def all_classes():
    """All methods at five labels, the strongest at one; the ledger has the others."""
    strongest = {"logistic", "nearest-mean", "gpn-plus", "transductive"}
    chosen = [row for row in study("all classes") if row["shot"] != 3]
    rows = [row for row in chosen if row["shot"] == 5 or row["method"] in strongest]
    label = {"transductive": "GPN+, transductive", "nearest-mean": "Nearest mean"}
    networks = ("uai", "amazon_photo", "citeseer", "cora_ml", "blogcatalog")
    cells = [
        [
            str(row["shot"]),
            label.get(row["method"], written(row["method"])),
            *(row[network].replace(" ", "") for network in networks),
            str(row["mean"]),
        ]
        for row in rows
    ]
    return made(["K", "method", *networks, "mean"], cells)


def methods(shot):
    cells, seeds = five_way(shot, interval=True)
    networks = list(dict.fromkeys(network for network, _ in cells))
    rows = [[written(label), seeds[label], *(cells.get((n, label), "") for n in networks)] for label in seeds]
    return made([f"{shot}-shot", "seeds", *networks], rows)


def rivals():
    """GPN+ beside the best method of others in each cell; Propagation is ours, too."""
    rows, ahead = [], []
    for section in grid():
        for dataset in section.datasets:
            for setting in section.settings:
                entries = {e.label: e for e in section.of(dataset, setting=setting) if e["accuracy"]}
                if "5-way" not in setting or "gpn-plus" not in entries:
                    continue
                own = entries.pop("gpn-plus").scores["accuracy"]
                entries.pop("propagation", None)
                label = max(entries, key=lambda name: entries[name]["accuracy"].mean)
                gap = difference(own, entries[label].scores["accuracy"])
                ahead.append(100 * gap.mean)
                text = f"{100 * own.mean():.1f}", written(label), f"{100 * entries[label]['accuracy'].mean:.1f}"
                rows.append([dataset, setting, *text, f"{signed(ahead[-1])}±{100 * gap.ci95:.1f}"])
    rows.append([f"mean of {len(rows)}", "", "", "", "", f"**{signed(sum(ahead) / len(ahead))}**"])
    return made(["network", "tasks", written("gpn-plus"), "best of others", "its accuracy", "ahead by"], rows)


def elsewhere():
    """What others measured, beside ours."""
    found = {shot: five_way(shot, interval=True) for shot in (1, 5)}
    rows = []
    for row in study("elsewhere"):
        key = row["network"], row["method"]
        ours = " / ".join(cells.get(key, "").rstrip(" ?†").strip("*") for cells, _ in found.values())
        seeds = found[5][1].get(row["method"], "")
        rows.append([row["network"], written(row["method"]), f"{row['1']} / {row['5']}", ours, seeds])
    return made(["network", "method", "elsewhere", "here", "seeds"], rows)


# --- three class splits -------------------------------------------------------------------------------------------


def splits(mode, queries):
    """(network, way) -> its rows, by shot."""
    found = {}
    for row in study("splits"):
        if (row["mode"], row["queries"]) == (mode, queries):
            found.setdefault((row["network"], row["way"]), {})[row["shot"]] = row
    return found


def by_shots(rows, text, shots=SHOTS):
    return " / ".join(text(rows[shot]) for shot in shots)


def accuracy(row):
    return f"{row['accuracy']:.1f}"


def ahead(row):
    return f"{row['ahead']:+.1f}"


def ahead_by(row):
    return f"{ahead(row)}±{row['ahead_ci95']:.1f}"


def both_modes(queries, modes, header):
    found = [splits(mode, queries) for mode in modes]
    means = {row["mode"]: f"**{ahead(row)}**" for row in study("split means") if row["queries"] == queries}
    rows = [
        [f"{key[0]}, {key[1]}-way", *(by_shots(part[key], text) for part in found for text in (accuracy, ahead_by))]
        for key in found[0]
    ]
    rows.append(["mean of 72", *(cell for mode in modes for cell in ("", means[mode]))])
    return made([header, *(cell for mode in modes for cell in (mode, "ahead by"))], rows)


def start_here():
    five = {network: rows for (network, way), rows in splits("inductive", "balanced").items() if way == 5}
    rows = [[n, "1 / 5", *(by_shots(found, text, (1, 5)) for text in (accuracy, ahead))] for n, found in five.items()]
    return made(["network", "shots", written("gpn-plus"), f"ahead of {written('propagation')} by"], rows)


def labels():
    five = {network: rows for (network, way), rows in splits("inductive", "balanced").items() if way == 5}
    return made(["shots", *five], [[str(shot), *(accuracy(rows[shot]) for rows in five.values())] for shot in SHOTS])


def transfer():
    header = ["network", "encoder", "training classes", "untrained: training classes", "new classes"]
    header += ["trained: training classes", "new classes", "seeds"]
    return made(header, [[str(cell) for cell in row.values()] for row in study("transfer")])


def dropout():
    rates = ("0", "0.2", "0.5")
    rows = [
        [row["network"], row["scaling"], *(f"{row[rate]:.1f} ({row['range ' + rate]:.1f})" for rate in rates)]
        for row in study("dropout")
    ]
    return made(["network", "scaling", *(f"dropout {rate}" for rate in rates)], rows)


def without_attributes():
    """Attributes of walks where they were measured, else singular vectors; the ledger has the others."""
    rows = study("without attributes")
    walked = {row["network"] for row in rows if row["features"] == "walks"}
    rows = [row for row in rows if row["features"] in ("", "walks") or row["network"] not in walked]
    best = {row["network"]: max(r["accuracy"] for r in rows if r["network"] == row["network"]) for row in rows}
    cells = []
    for row in rows:
        score = f"{row['accuracy']}±{row['accuracy_ci95']}"
        score = f"**{score}**" if row["accuracy"] == best[row["network"]] else score
        name = written(row["method"]) + (f", {row['features']}" if row["features"] else "")
        cells.append([row["network"], name, score, str(row["seconds"])])
    return made(["network", "method", "accuracy, %", "seconds"], cells)


TABLES = {
    "measured": measured,
    "methods-1": lambda: methods(1),
    "methods-5": lambda: methods(5),
    "rivals": rivals,
    "elsewhere": elsewhere,
    "transfer": transfer,
    "dropout": dropout,
    "balanced": lambda: both_modes("balanced", ("inductive", "transductive"), "balanced queries"),
    "long-tailed": lambda: both_modes("long-tailed", ("transductive",), "long-tailed queries"),
    "start-here": start_here,
    "labels": labels,
    "all-classes": all_classes,
    "without-attributes": without_attributes,
}

if __name__ == "__main__":
    for page in PAGES:
        page.write_text(rewritten(page))
