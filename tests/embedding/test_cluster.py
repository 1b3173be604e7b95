"""A real Ray cluster of two nodes on this machine: the results are those of one process, also when a worker dies."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewnode.embedding import workers as cluster
from fewnode.embedding.room import Room
from fewnode.embedding.workers import LOST, Workers, connected
from fewnode.errors import FewnodeError
from fewnode.experiment.grid import read_grid
from fewnode.experiment.ledger import FILE, read_ledger
from fewnode.experiment.results import TABLE
from fewnode.experiment.run import experiment
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.graph import Graph
from fewnode.methods.plus import GPNPlus
from fewnode.model.bulk import Bulk, classify
from fewnode.model.estimator import Estimator
from graphs import planted

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("opened_anew")]
ray_module = pytest.importorskip("ray")


@pytest.fixture(scope="module", name="nodes")
def _nodes() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    source = str(Path(__file__).parents[2] / "src")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = source
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    yield nodes
    ray_module.shutdown()
    nodes.shutdown()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="module", name="home")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = planted()
    home = tmp_path_factory.mktemp("network") / "data"
    save_dataset(replace(data, graph=Graph(data.graph.adj, data.graph.x.toarray()), feature_names=None), home)
    return home


# --- the grid -----------------------------------------------------------------------------------------------------

METHODS = """
import os, signal, time
from pathlib import Path
import numpy as np

class Dies:
    \"\"\"Takes its process with it, the first time.\"\"\"
    def __init__(self, mark="", seed=0):
        self.mark, self.seed = mark, seed
    def fit(self, graph, train, valid):
        if self.mark and not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self
    def predict_proba(self, graph, task):
        return np.full((task.query.size, task.n_way), 1 / task.n_way, np.float32)
"""

GRID = """
[defaults]
datasets = "network/data"
tasks = 6
seeds = 2
way = 3
shot = 3
[[compare]]
methods = ["gpn", "propagation", "dies"]
[methods.gpn]
options = { episodes = 10 }
[methods.dies]
method = "methods.py:Dies"
options = { mark = "MARK" }
"""


def test_a_grid_gives_the_same_bytes_also_when_a_worker_dies(
    nodes: Any, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an address: the cluster that runs on this machine is found."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    said: list[str] = []
    (tmp_path / "network").symlink_to(home.parent)
    (tmp_path / "methods.py").write_text(METHODS)
    mark = tmp_path / "mark"
    (tmp_path / "grid.toml").write_text(GRID.replace("MARK", str(mark)))
    grid = read_grid(tmp_path / "grid.toml")
    done = experiment(grid, tmp_path / "ray", 2, "ray", say=said.append)
    assert said[0].endswith("(running on this machine)")
    assert (done.total, done.done, done.failed) == (6, 6, 0)
    assert mark.exists()  # so it was killed, and has been run again
    experiment(grid, tmp_path / "local", 1)
    assert (tmp_path / "ray" / TABLE).read_bytes() == (tmp_path / "local" / TABLE).read_bytes()
    lines = [json.loads(line)["id"] for line in (tmp_path / "ray" / FILE).read_text().splitlines()]
    assert len(lines) == len(set(lines)) == len(read_ledger(tmp_path / "local")[0])


# --- blocks -------------------------------------------------------------------------------------------------------


def mortal(path: Path, text: str, mark: Path) -> None:
    """Makes a file, and takes its process with it in the middle of one: the first time, or always."""
    if path.name == "2" and not mark.exists():
        mark.parent.mkdir(exist_ok=True)
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    path.write_text(text)


def deadly(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def full(path: Path) -> None:
    """The disk has no room."""
    raise OSError(28, "No space left on device", str(path))


@pytest.fixture(name="pool", params=["local", "ray"])
def _pool(request: pytest.FixtureRequest, nodes: Any, tmp_path: Path) -> Iterator[Workers]:
    if ray_module.is_initialized():
        ray_module.shutdown()
    ray_module.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with connected(nodes.address, tmp_path) if request.param == "ray" else nullcontext() as ray:
        yield Workers(2, ray=ray)


def test_a_worker_that_dies_costs_what_it_was_at(pool: Workers, tmp_path: Path) -> None:
    files = {tmp_path / str(i): (f"text {i}", tmp_path / "marks" / "mark") for i in range(6)}
    pool.make("files", mortal, files)
    assert [path.read_text() for path in files] == [f"text {i}" for i in range(6)]
    assert (tmp_path / "marks" / "mark").exists(), "so a process was killed"
    assert dict(pool.each(deadly, {"a": (tmp_path,)})) == {"a": LOST}
    with pytest.raises(FewnodeError, match="kills every worker"):
        pool.make("files", deadly, {tmp_path / "other": ()})
    with pytest.raises(OSError, match="No space left") as caught:
        pool.make("files", full, {tmp_path / "full": ()})
    assert caught.value.errno == 28
    with pytest.raises(FewnodeError, match="no such file"):
        list(pool.each(load_dataset, {0: (tmp_path / "none",)}))


@pytest.mark.parametrize("method", ["gpn", "gpn-plus"])
def test_views_and_answers_are_the_same_bytes_on_workers(
    pool: Workers, method: str, home: Path, tmp_path: Path
) -> None:
    data = load_dataset(home)
    model = Estimator(method, 3, 3, **({"episodes": 10} if method == "gpn" else {})).fit(data)
    model.save(tmp_path / "run")
    if method == "gpn-plus":
        tiled = GPNPlus()
        tiled.room = Room.of(data.graph, tmp_path / "views", {}, pool)
        assert np.array_equal(
            tiled.restore(data.graph.n_features, model.method_.state()).embed(data.graph).z,
            model.method_.embed(data.graph).z,
        )
    job = Bulk(tmp_path / "run", home, (1, 2, 3, 4), ("a", "a", "b", "b"), rows=50)
    classify(job, tmp_path / "here.csv")
    classify(job, tmp_path / "there.csv", workers=pool)
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()


# --- what is wrong with a cluster ---------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_no_cluster_at_the_address_is_said_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 2.0)
    with pytest.raises(FewnodeError, match="no Ray cluster answers"), connected(f"127.0.0.1:{free_port()}", tmp_path):
        pass
    with socket.socket() as other:  # somebody is there, but it is not Ray
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(FewnodeError, match="no Ray cluster answers"), connected(address, tmp_path):
            pass
