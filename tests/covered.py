"""Whether branch coverage, as the last `pytest --cov` measured it, is what `docs/reliability.md` promises."""

from __future__ import annotations

import io
import re
import sys

from coverage import Coverage

from sizes import keep_figures

OVERALL, STRICT = 95, 100
STRICTLY = re.compile(
    r"fewnode/(files|io|sheets|delimited|errors|manifest|plugins|predictions|experiment/(grid|ledger)"
    r"|serve/(auth|bodies|store|admission)"
    r"|datasets/(arrow|amazon|columns|dblp|decoding|dump|beside|fewshot_mat|lines|literal|npz|reddit|splits|stream|text_tables|bag"
    r"|tables|extend|remarks|nodes|rows|edges|labels|roles|encode|standardise|source|vocabulary))\.py$"
)
"""Readers, model files, limits and authentication."""


def main() -> None:
    coverage = Coverage()
    coverage.load()  # what pytest has put together; the rest is of processes that ended after it
    coverage.combine(keep=True)
    files = sorted(coverage.get_data().measured_files())
    overall = coverage.report(file=io.StringIO())
    strict = [name for name in files if STRICTLY.search(name)]
    short = {}
    for name in strict:
        said = io.StringIO()
        if coverage.report(morfs=[name], show_missing=True, file=said) < STRICT:
            short[name.rpartition("fewnode/")[2]] = said.getvalue().splitlines()[2].partition("%")[2].strip()
    total = coverage.report(morfs=strict, file=io.StringIO())
    print(f"branch coverage {overall:.1f} % of everything, {total:.1f} % of {len(strict)} files of readers and limits")
    for name, lines in short.items():
        print(f"  {name}: not {lines}")
    keep_figures({"coverage": f"{overall:.1f} % of all branches and lines, {total:.1f} % of readers and limits"})
    sys.exit(overall < OVERALL or bool(short))


if __name__ == "__main__":
    main()
