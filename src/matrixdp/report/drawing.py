"""Pictures as SVG that stands within a page: no style attributes, no names that are taken, short numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["inline_svg"]

_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_DECIMALS = re.compile(r"-?\d+\.\d+")
_NUMBERS = ("d", "x", "y", "width", "height", "transform", "points")
#: What matplotlib says in styles and a page says for all of its pictures.
_LEFT_OUT = (
    "font-family",
    "font-style",
    "font-variant",
    "font-weight",
    "font-stretch",
    "image-rendering",
)


def inline_svg(figure: Figure, name: str, words: str) -> str:
    """Return a figure as an SVG element for a page.

    Styles become presentation attributes, which a content security policy without inline styles allows, and
    which the page's own style sheet overrides where it has other colours.

    Parameters
    ----------
    figure : Figure
        What is drawn.
    name : str
        A name that no other picture of the page has; what is referred to within the picture begins with it.
    words : str
        What a screen reader says in the place of the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> text = inline_svg(Figure(figsize=(1, 1)), "p0", "nothing at all")
    >>> text[:90]
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 72 72" role="img" aria-label="nothing'
    >>> "style" in text
    False
    """
    import matplotlib as mpl

    stream = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "matrixdp"}):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    # it was written by the line before, and by nobody else
    root = ET.fromstring(stream.getvalue())  # noqa: S314
    for own in (f"{_SVG}metadata", f"{_SVG}defs"):
        for child in root.findall(own):
            if child.find(f"{_SVG}clipPath") is None:
                root.remove(child)
    for element in root.iter():
        _plain(element, name)
    _without_unused(root)
    _flatten(root)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": words,
    }
    ET.register_namespace("", _SVG[1:-1])
    return ET.tostring(root, encoding="unicode").replace("\n", " ")


def _plain(element: ET.Element, name: str) -> None:
    """Make the attributes of one element fit for a page."""
    element.text = (element.text or "").strip() or None
    element.tail = None
    for key, value in _styles(element.attrib.pop("style", "")):
        if key not in _LEFT_OUT:
            element.set(key, value)
    target = element.attrib.pop(_XLINK, None)
    if target is not None:
        inside = target.startswith("#")
        element.set("href", f"#{name}-{target[1:]}" if inside else "".join(target.split()))
    if "clip-path" in element.attrib:
        element.set("clip-path", element.attrib["clip-path"].replace("url(#", f"url(#{name}-"))
    if "id" in element.attrib:
        element.set("id", f"{name}-{element.attrib['id']}")
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    for key in _NUMBERS:
        if key in element.attrib:
            element.set(key, " ".join(_DECIMALS.sub(_short, element.attrib[key]).split()))


def _styles(text: str) -> Iterator[tuple[str, str]]:
    for pair in text.split(";"):
        key, colon, value = pair.partition(":")
        if colon:
            yield key.strip(), value.strip()


def _short(match: re.Match[str]) -> str:
    value = float(match[0])
    return f"{value:.4g}" if abs(value) < 0.1 else f"{value:.1f}".removesuffix(".0")


def _without_unused(root: ET.Element) -> None:
    """Remove the names that nothing refers to."""
    used = {element.get("href", "")[1:] for element in root.iter()}
    used |= {element.get("clip-path", "")[5:-1] for element in root.iter()}
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)


def _flatten(element: ET.Element) -> None:
    """Take out groups that say nothing and shapes that nobody sees."""
    kept: list[ET.Element] = []
    for child in element:
        _flatten(child)
        if child.tag == f"{_SVG}g" and not child.attrib:
            kept += list(child)
        elif (
            child.tag != f"{_SVG}path"
            or child.attrib.keys() & {"id", "stroke"}
            or child.get("fill") != "none"
        ):
            kept.append(child)
    element[:] = kept
