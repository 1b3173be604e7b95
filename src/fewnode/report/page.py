"""One self-contained HTML page: no outside host, light and dark, prints well, every value escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from fewnode.machine.files import write_text
from fewnode.report.figures import svg

STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "fewnode", "font.family": "sans-serif", "font.size": 10}
"""Text as text, and the same bytes for the same figure."""


def write_page(path: Path, template: str, **values: Any) -> None:
    """Fill a template of this package; figures become inline SVG."""
    environment = Environment(
        loader=PackageLoader("fewnode", "report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    with rc_context(STYLE):
        drawn = {name: Markup(svg(v)) if isinstance(v, Figure) else v for name, v in values.items()}  # noqa: S704 # nosec B704
    write_text(path, environment.get_template(template).render(**drawn))
