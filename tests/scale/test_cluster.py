"""A real Ray cluster of two nodes on this machine: the results are those of one process, also when a worker dies."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.experiment.grid import read_grid
from fewnode.experiment.ledger import FILE, read_ledger
from fewnode.experiment.results import TABLE
from fewnode.experiment.run import experiment
from fewnode.graph import Graph
from fewnode.methods.plus import GPNPlus
from fewnode.represent.room import IN_MEMORY, Pieces, Room
from fewnode.scale import cluster
from fewnode.scale.bulk import Bulk, classify
from fewnode.scale.cluster import block_runner, connected
from fewnode.storage.io import load_dataset, save_dataset
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


@pytest.fixture(name="ray")
def _ray(nodes: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """This process, connected: once for all tests in a row that want to be."""
    if not ray_module.is_initialized():
        ray_module.init(nodes.address, log_to_driver=False)
        ray_module.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return ray_module


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


class Mortal:
    """Makes files, and takes its process with it in the middle of one, the first time."""

    def __init__(self, make: Callable[..., None], mark: Path, last: str = "0001.safetensors") -> None:
        self.make, self.mark, self.last = make, mark, last

    def __call__(self, path: Path, *arguments: Any) -> None:
        if path.name == self.last and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        self.make(path, *arguments)


def test_every_node_is_classified_the_same(ray: Any, home: Path, tmp_path: Path) -> None:
    Estimator("gpn", 3, 3, episodes=10).fit(load_dataset(home)).save(tmp_path / "run")
    job = Bulk(tmp_path / "run", home, (1, 2, 3, 4), ("a", "a", "b", "b"), rows=50)
    classify(job, tmp_path / "here.csv")
    classify(job, tmp_path / "there.csv", runner=block_runner(ray, 2, None))
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()


@pytest.mark.parametrize("dies", [False, pytest.param(True, marks=pytest.mark.check)])
def test_views_of_gpn_plus_are_the_same_also_when_a_worker_dies(
    ray: Any, home: Path, tmp_path: Path, dies: bool
) -> None:
    data, mark = load_dataset(home), tmp_path / "mark"
    there = block_runner(ray, 2, None)

    def dying(make: Callable[..., None], pieces: Pieces, done: Callable[[], None]) -> None:
        there(Mortal(make, mark), pieces, done)

    found = []
    for room in (IN_MEMORY, Room.of(data.graph, tmp_path / "views", {}, None, dying if dies else there)):
        method = GPNPlus(rank=64)
        method.room = room
        found.append(method.fit(data.graph, *(EpisodeSampler(data, part, 2, 1) for part in ("train", "valid"))))
    assert mark.exists() == dies
    assert np.array_equal(*(method.embed(data.graph).z for method in found))


def test_every_node_is_classified_the_same_by_gpn_plus(ray: Any, home: Path, tmp_path: Path) -> None:
    Estimator("gpn-plus", 3, 3).fit(load_dataset(home)).save(tmp_path / "run")
    job = Bulk(tmp_path / "run", home, (1, 2, 3, 4), ("a", "a", "b", "b"), rows=50)
    classify(job, tmp_path / "here.csv")
    classify(job, tmp_path / "there.csv", runner=block_runner(ray, 2, None))
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()


def full(path: Path) -> None:
    """The disk has no room."""
    raise OSError(28, "No space left on device", str(path))


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
