"""Pages of HTML: templates in which every text is escaped, and a policy that allows nothing from outside."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from matrixdp.display import printable
from matrixdp.errors import needing
from matrixdp.texts import Words, filled

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(say: Words) -> Environment:
    """Return what makes pages of templates: every text is escaped that is not marked as our own."""
    with needing("Jinja2", "report", "report"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup, escape
    environment = Environment(
        autoescape=True,
        loader=PackageLoader("matrixdp.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "printable": printable,
        "counted": say.number,
        "figure": lambda value: "-" if value is None else say.number(value, digits=3),
    }
    environment.globals |= {
        "w": lambda name, **values: Markup(filled(escape(say.texts[name]), values, escape)),  # noqa: S704
        "number_of": say.counted,
    }
    return environment


def resource(name: str) -> Any:
    """Return the text of a template's file, marked as our own."""
    from markupsafe import Markup

    text = (files("matrixdp.report") / "templates" / name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 - a file of our own


def policy(style: str, script: str) -> str:
    """Return a content security policy that allows this style and this script, and pictures in the page."""
    hashed = (hashlib.sha256(str(text).encode()).digest() for text in (style, script))
    digests = [base64.b64encode(digest).decode() for digest in hashed]
    return (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
