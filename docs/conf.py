"""The site: `make docs`. Tutorials are run, pictures drawn and the reference generated while it is built."""

import sys
from pathlib import Path

import latex2mathml.converter
from docutils.nodes import SkipNode

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

import fewnode  # noqa: E402
import generate  # noqa: E402

project, author, release = "fewnode", "The fewnode authors", fewnode.__version__
copyright = "2026, the fewnode authors"  # noqa: A001 - Sphinx's name for it
extensions = ["myst_parser", "sphinx.ext.autodoc", "executed"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
smartquotes = False  # they would make one dash of --option
default_role = "code"  # docstrings have single backticks around code
exclude_patterns = ["_build", "_made"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
html_theme = "furo"
html_title = "fewnode"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
html_copy_source = html_show_sourcelink = False


def math(visitor, node):
    """MathML, which browsers draw themselves: a page fetches nothing from elsewhere."""
    display = "inline" if node.tagname == "math" else "block"
    visitor.body.append(latex2mathml.converter.convert(node.astext(), display=display))
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (math, None), (math, None))
    app.connect("builder-inited", lambda app: generate.everything(HERE / "_made"))


html_math_renderer = "mathml"
