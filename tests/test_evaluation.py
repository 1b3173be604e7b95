import json

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.evaluation import evaluate, score
from fewnode.graph import Graph, Ints
from fewnode.scores import auroc, average_precision, half_width, interval, measure, tail
from fewnode.tasks import read_pool, save_pool


class Guess:
    """Answers at random, but always the same for the same task."""

    def predict_proba(self, graph: Graph, task: Task) -> np.ndarray:
        rng = np.random.default_rng(int(task.support.sum()))
        p = rng.random((task.query.size, task.n_way), dtype=np.float32)
        return p / p.sum(axis=1, keepdims=True)


class Peek:
    """Knows the truth."""

    def __init__(self, y: Ints) -> None:
        self.y = y

    def predict_proba(self, graph: Graph, task: Task) -> np.ndarray:
        of = {int(self.y[v]): int(c) for v, c in zip(task.support, task.support_y, strict=True)}
        return np.eye(len(of), dtype=np.float32)[[of[int(self.y[v])] for v in task.query]]


def test_metrics_equal_scikit_learns(planted: Dataset) -> None:
    pool = [EpisodeSampler(planted, "test", n, 2, 6)[t] for t, n in enumerate((2, 3, 5, 5))]
    ours = score(Guess(), planted.graph, pool)
    for i, task in enumerate(pool):
        predicted = Guess().predict_proba(planted.graph, task.task).argmax(axis=1)
        assert ours["accuracy"][i] == pytest.approx(accuracy_score(task.query_y, predicted))
        assert ours["macro_f1"][i] == pytest.approx(f1_score(task.query_y, predicted, average="macro"))
        assert ours["weighted_f1"][i] == pytest.approx(f1_score(task.query_y, predicted, average="weighted"))


def test_measure_by_hand() -> None:
    got = measure(np.array([[[3, 1], [0, 4]]]))
    assert got["accuracy"][0] == pytest.approx(7 / 8)
    assert got["macro_f1"][0] == pytest.approx((6 / 7 + 8 / 9) / 2)


def test_interval_by_hand() -> None:
    scores = np.array([[0.2, 0.4, 0.6, 0.8]])
    got = interval(scores)
    assert got.mean == pytest.approx(0.5)
    assert got.ci95 == pytest.approx(3.1824463 * scores.std(ddof=1) / 2)
    assert str(got) == "50.0 ± 41.1"


def test_interval_counts_the_variance_of_seeds_too() -> None:
    tasks = np.linspace(0, 1, 100)
    alone, apart = interval(tasks[None]), interval(np.stack([tasks - 0.1, tasks + 0.1]))
    assert apart.ci95 > alone.ci95
    assert (str(interval(np.array([[0.5]]))), interval(np.array([[0.5]])).to_json()["ci95"]) == ("50.0 ± ?", None)


def test_an_interval_grows_with_each_part_that_is_uncertain() -> None:
    """Two seeds that differ say hardly anything, however many tasks there are and however noisy these are."""
    seeds, tasks = (0.01, 1), (0.01, 49)
    assert half_width([seeds, tasks]) > half_width([seeds]) > 1.2
    assert tail(half_width([seeds, tasks], 0.01), [seeds, tasks]) == pytest.approx(0.01)
    assert tail(-0.2, [tasks]) == pytest.approx(1 - tail(0.2, [tasks]))


def test_rankings_equal_scikit_learns(planted: Dataset) -> None:
    rng = np.random.default_rng(0)
    score_of, truth = rng.integers(0, 5, 60).astype(float), rng.random(60) < 0.3
    assert auroc(score_of, truth) == pytest.approx(roc_auc_score(truth, score_of))
    assert average_precision(score_of, truth) == pytest.approx(average_precision_score(truth, score_of))
    two, three = (evaluate(Peek(planted.y), planted, way, 3, tasks=5) for way in (2, 3))
    assert (two["auroc"].mean, two["average_precision"].mean) == (1, 1)
    assert "auroc" not in three.per_task


def test_classes_one_by_one(planted: Dataset) -> None:
    result = evaluate(Guess(), planted, 3, 2, 4, tasks=10, per_class=True)
    shown = json.loads(json.dumps(result.to_json()))
    counts = np.array(shown["confusion"])
    assert counts.sum() == 10 * 3 * 4
    assert counts.trace() / counts.sum() == pytest.approx(result.accuracy.mean)
    asked = [name for name, row in shown["classes"].items() if row["queries"]]
    assert set(asked) <= {planted.class_names[c] for c in planted.split.test}
    for c, name in enumerate(planted.class_names):
        if name in asked:
            assert shown["classes"][name]["recall"] == pytest.approx(counts[c, c] / counts[c].sum())


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"classes": "all", "way": 3}, "not used where all classes are asked about; leave out `way`"),
        ({"several": True, "open_set": True}, "not used for several classes a node.*; leave out `open_set`"),
        ({"precision_at": 3}, "leave out `precision_at`"),
        ({"options": {"steps": 1}}, "leave out `options`"),
        ({"queries": "long"}, "queries: found 'long'"),
        ({"ways": 3}, "there is no option 'ways' .did you mean 'way'"),
        ({"way": 1}, "of one class alone every answer is right"),
    ],
)
def test_what_means_nothing_is_named(planted: Dataset, how: dict[str, object], sentence: str) -> None:
    with pytest.raises(FewnodeError, match=sentence):
        evaluate(Guess(), planted, **how)


def test_perfect_and_random_methods_score_as_they_should(planted: Dataset) -> None:
    assert evaluate(Peek(planted.y), planted, 5, 3, tasks=20).accuracy.mean == 1
    assert abs(evaluate(Guess(), planted, 5, 3, tasks=300).accuracy.mean - 0.2) < 0.03


def test_a_pool_can_be_saved_and_read(planted: Dataset, tmp_path) -> None:
    pool = EpisodeSampler(planted, "test", 3, 2, 4).take(5)
    save_pool(tmp_path / "pool.jsonl", pool, planted)
    again = read_pool(tmp_path / "pool.jsonl", planted)
    for one, other in zip(pool, again, strict=True):
        assert np.array_equal(one.support, other.support)
        assert np.array_equal(one.query, other.query)
        same = one.support_y[:, None] == one.query_y[None]
        assert np.array_equal(same, other.support_y[:, None] == other.query_y[None])
    peek = Peek(planted.y)
    assert score(peek, planted.graph, again)["accuracy"].min() == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not a JSON object"),
        ("[1]", "line 2: not a JSON object"),
        ('{"support": ["node-0"], "support_y": ["a"], "query": ["node-1"]}', "line 2: 'query_y' is missing"),
        ('{"support": ["nod-0"], "support_y": ["a"], "query": [], "query_y": []}', "line 2: unknown node 'nod-0'"),
        (
            '{"support": ["node-0"], "support_y": ["a"], "query": ["node-1"], "query_y": ["b"]}',
            "line 2: 'b' is missing",
        ),
        ('{"support": ["node-0"], "support_y": [], "query": [], "query_y": []}', "line 2: a task needs one label"),
        ("[" * 100_000, "line 2: not a JSON object"),
    ],
)
def test_a_broken_pool_is_named_with_its_line(planted: Dataset, tmp_path, line: str, message: str) -> None:
    good = '{"support": ["node-0"], "support_y": ["a"], "query": ["node-1"], "query_y": ["a"]}'
    (tmp_path / "pool.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(FewnodeError, match=message):
        read_pool(tmp_path / "pool.jsonl", planted)
