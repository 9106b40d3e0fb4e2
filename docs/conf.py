"""Settings of the site: ``make site`` builds it in out/site."""

import re

from sphinx.application import Sphinx

import matrixdp

project = "matrixdp"
author = "the authors of matrixdp"
version = release = matrixdp.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
smartquotes = False

myst_heading_anchors = 4

default_role = "py:obj"
autodoc_typehints = "none"  # docstrings say types in words
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["narrow.css"]
html_title = f"matrixdp {version}"
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

_PAGE = re.compile(r"\]\((?!\.\.)([\w./-]+)\.md\)")
#: A link to a file that is not a page of the site, which readers download.
_FILE = re.compile(r"\[([^]]+)\]\((\.\./(?:\.\./)*(?:examples/)?[\w.-]+\.(?:md|ipynb))\)")


def _read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Make tables of contents of the links in an index; link to other files as downloads."""
    text = source[0]
    if docname.rpartition("/")[2] == "index":
        for section in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
            caption, _, rest = section.partition("\n")
            if pages := _PAGE.findall(rest):
                text += "\n\n" + "\n".join(
                    ("```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```")
                )
    own = docname.count("/")
    outside = {found for found in _FILE.findall(text) if found[1].count("../") > own}
    for label, target in outside:
        text = text.replace(f"[{label}]({target})", f"{{download}}`{label.removeprefix('../')} <{target}>`")
    source[0] = text


#: Stands for a colon where napoleon would take what is before it for the type of a property.
_COLON = "\ue000"


def _hide_colon(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    if what in ("attribute", "data", "property") and lines:
        lines[0] = lines[0].replace(":", _COLON)


def _show_colon(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    lines[:] = [line.replace(_COLON, ":") for line in lines]


def setup(app: Sphinx) -> None:
    """Connect the hooks above."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _hide_colon, priority=400)
    app.connect("autodoc-process-docstring", _show_colon, priority=600)
