"""`python benchmarks/speed.py`: the formulations agree, and what it prints has the keys that others read."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.check, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]
SCRIPT = Path(__file__).parents[1] / "benchmarks" / "speed.py"


def speed(*options: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, SCRIPT, *options, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("options", "figures", "ways"),
    [
        (
            ("--method", "gpn", "--size", "tiny", "--rounds", "1"),
            ("training_episode", "protocol", "evaluation_500_tasks", "peak_mb"),
            ("naive", "pyg", "fewnode"),
        ),
        (("--nodes", "600"), ("ready", "answer", "peak_mb"), ("plain", "logistic", "fewnode")),
    ],
)
def test_what_is_printed(options: tuple[str, ...], figures: tuple[str, ...], ways: tuple[str, ...]) -> None:
    found = speed(*options)
    for what in figures:
        assert tuple(found[what]) == ways
        assert min(found[what].values()) >= (0 if what == "peak_mb" else 1e-9)
        assert {way: found[what][way] / found[what]["fewnode"] for way in ways[:-1]} == found["ratio"][what]
    agreement = found["agreement"]
    assert max(agreement.values() if isinstance(agreement, dict) else [agreement]) <= 1e-4
    assert found["provenance"]["nodes"] == 600
