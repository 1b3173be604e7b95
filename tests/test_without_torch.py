"""The default path needs no torch: a process in which it cannot be imported learns, answers, evaluates and serves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fewnode.dataset import Dataset
from fewnode.formats.directory import save_dataset

BEFORE = """
import sys
import warnings

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTorch())
import numpy as np
import fewnode
warnings.simplefilter("ignore")
data = fewnode.load("d")
y = np.repeat(range(10), 20)
many = fewnode.Dataset.from_scipy(y[:, None] == y, np.eye(10)[y], y)
"""
DONE = {
    "recognise": """
found = fewnode.recognise(data, {"mail": ["n0", "n1"], "vpn": "an encrypted tunnel"}, explain=True)
assert found.labels[0] == "mail"
assert "sklearn" not in sys.modules
""",
    "review": """
asked = fewnode.Estimator("gpn-plus").fit(data).ask(data, {"mail": fewnode.Class(["n0"], ["n60"]), "vpn": ["n30"]})
again = asked.answered({("mail", asked.next(3)[0].node): True})
assert again.trust()["mail"].members.value > 2
assert again.why("n2").label
assert asked.judge(["n5"], transductive=True).nodes == ["n5"]
""",
    "evaluate": """
for method in ("gpn-plus", "nearest-mean", "logistic"):
    assert fewnode.evaluate(method, data, shot=2, tasks=2, classes="all").accuracy.mean > 0.3
""",
    "train": """
propagated = fewnode.Estimator("propagation", way=2, shot=2, steps=1).fit(many)
assert fewnode.evaluate(propagated, many, tasks=5).accuracy.mean > 0.5
model = fewnode.Estimator("gpn", way=2, shot=2, episodes=10, dropout=0.0).fit(many)
assert model.method_.history_.engine == "compiled"
model.save("run")
assert fewnode.evaluate(fewnode.load_model("run"), many, tasks=5).accuracy.mean > 0.5
""",
    "what needs it": """
for method, options in (("maml", {}), ("gcn", {}), ("gpn", {"engine": "reference"}), ("gpn", {"device": "cuda"})):
    try:
        fewnode.Estimator(method, way=2, shot=1, **options).fit(many)
    except fewnode.FewnodeError as error:
        assert "pip install 'fewnode[torch]'" in str(error), error
    else:
        raise AssertionError(method)
""",
    "commands": """
from fewnode.cli import application
open("support.csv", "w").write("node,class\\nn0,mail\\nn30,vpn\\n")
for command in ("predict --all --out p.csv", "suggest --count 3 --out s.csv"):
    given = [*command.split(), "--data", "d", "--support", "support.csv", "-q"]
    application([given[0]])(given, standalone_mode=False)
assert open("p.csv").readline().startswith("node,label,probability,mail,vpn")
""",
    "serve": """
from pathlib import Path
from fewnode.model.recognise import untrained
from fewnode.service.desk import Desk
from fewnode.service.log import Log
import fewnode.service.http
desk = Desk(lambda: (untrained(data), data, False), Log(Path("log.sqlite")))
""",
}


@pytest.mark.parametrize("part", DONE)
def test_torch_is_not_needed(part: str, worded: Dataset, tmp_path: Path) -> None:
    save_dataset(worded, tmp_path / "d")
    code = BEFORE + DONE[part] + "assert 'torch' not in sys.modules\n"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
