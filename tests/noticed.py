"""Whether the tests notice as many wrong lines, of those that `mutmut run` made, as `docs/reliability.md` promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from sizes import keep_figures

GOAL = 90


def main() -> None:
    subprocess.run([str(Path(sys.executable).with_name("mutmut")), "export-cicd-stats"], check=True)
    count = json.loads(Path("mutants/mutmut-cicd-stats.json").read_text())
    noticed, tried = count["killed"] + count["timeout"], count["total"] - count["skipped"]
    print(f"{noticed:,} of {tried:,} wrong lines noticed: {100 * noticed / tried:.1f} %")
    keep_figures({"mutation": f"{noticed:,} of {tried:,} mutants noticed, {100 * noticed / tried:.1f} %"})
    sys.exit(100 * noticed < GOAL * tried)


if __name__ == "__main__":
    main()
