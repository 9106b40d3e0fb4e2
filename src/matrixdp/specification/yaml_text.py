"""YAML as specifications use it: the core schema of YAML 1.2, and each key once.

``yes``, ``no``, ``on`` and ``off`` are words, ``1e-6`` is a number, ``010`` is ten, and dates are text. There
are no merge keys and no tags beyond the core ones. Every value remembers its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from matrixdp.errors import Path, Problem, SpecificationError

__all__ = ["UNFILLED", "Document", "parse_yaml"]

UNFILLED = "TODO"
"""What stands, without quotes, where a value is still to be filled in."""

MAX_NODES = 2_000_000
"""A document may stand for at most this many values, counted after aliases are replaced."""

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_TAG = "tag:yaml.org,2002:"


@final
@dataclass(frozen=True)
class Document:
    """A parsed YAML document.

    Parameters
    ----------
    value : object
        Dictionaries, lists, strings, integers, floats, booleans and None.
    lines : mapping of path to int
        The line, from 1, on which the value of each path starts.
    unfilled : tuple of path
        Where ``TODO`` stands without quotes.
    """

    value: object
    lines: Mapping[Path, int]
    unfilled: tuple[Path, ...] = ()


class _Loader(yaml.SafeLoader):
    """Resolves plain scalars by the core schema of YAML 1.2, section 10.3.2; `_Builder` makes the values."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - declared by the base class


for _name, _pattern, _first in (
    ("null", _NULL, ["~", "n", "N", ""]),
    ("bool", _BOOL, list("tTfF")),
    ("int", _INT, list("-+0123456789")),
    ("float", _FLOAT, list("-+.0123456789")),
):
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern.pattern})\Z"), _first)


def parse_yaml(text: str) -> Document:
    r"""Return what a YAML text says, by the core schema of YAML 1.2.

    Parameters
    ----------
    text : str
        One YAML document.

    Returns
    -------
    Document
        The value, and the lines on which its parts start.

    Raises
    ------
    SpecificationError
        If the text is not YAML, holds several documents, or a mapping has a key twice or a key that is not
        a scalar; the place names line and column.

    References
    ----------
    YAML 1.2.2, section 10.3: the core schema.

    Examples
    --------
    >>> parse_yaml("smokes: [yes, no]\ndelta: 1e-6").value
    {'smokes': ['yes', 'no'], 'delta': 1e-06}
    """
    try:
        node = yaml.compose(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise SpecificationError.at(
            (_at(mark),), f"text that is not YAML ({problem})", "one YAML document"
        ) from None
    except yaml.YAMLError as error:
        found = f"text that is not YAML ({str(error).splitlines()[0]})"
        raise SpecificationError.at(("the file",), found, "one YAML document") from None
    except RecursionError:
        raise SpecificationError.at(("the file",), "values nested too deeply", "a flatter document") from None
    builder = _Builder()
    if node is None:
        return Document(None, {(): 1})
    try:
        return Document(builder.build(node, ()), builder.lines, tuple(builder.unfilled))
    except RecursionError:
        raise SpecificationError.at(("the file",), "values nested too deeply", "a flatter document") from None


def _at(mark: yaml.Mark | None) -> str:
    return "the file" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"


class _Builder:
    """Makes values of nodes."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.unfilled: list[Path] = []
        self._open: set[int] = set()

    def build(self, node: Node, path: Path) -> object:
        self.lines[path] = node.start_mark.line + 1
        if len(self.lines) > MAX_NODES:
            raise SpecificationError.at(
                ("the file",), f"more than {MAX_NODES} values", "fewer; large arrays go in .npy files"
            )
        if id(node) in self._open:
            raise self._error(
                node, path, "an alias of what it stands in", "a value that does not hold itself"
            )
        if isinstance(node, ScalarNode):
            if node.value == UNFILLED and node.style is None:
                self.unfilled.append(path)
            return self._scalar(node, path)
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                self._check_tag(node, path, "seq")
                return [self.build(item, (*path, position)) for position, item in enumerate(node.value)]
            return self._mapping(node, path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: Node, path: Path) -> dict[str, object]:
        self._check_tag(node, path, "map")
        result: dict[str, object] = {}
        for key_node, value_node in node.value if isinstance(node, MappingNode) else ():
            if not isinstance(key_node, ScalarNode):
                raise self._error(key_node, path, "a key that is a list or a mapping", "a key that is text")
            # A key is text; one that would be a number, a boolean or null elsewhere is so as it is written.
            if not isinstance(self._scalar(key_node, path), str) and not key_node.value:
                raise self._error(key_node, path, "a key that is empty", "text as a key")
            key: str = key_node.value
            if key in result:
                raise self._error(key_node, (*path, key), f"the key {key!r} a second time", "each key once")
            result[key] = self.build(value_node, (*path, key))
        return result

    def _scalar(self, node: ScalarNode, path: Path) -> object:
        text: str = node.value
        tag = node.tag.removeprefix(_TAG)
        if tag == "str":
            return text
        if tag == "null" and _NULL.fullmatch(text):
            return None
        if tag == "bool" and _BOOL.fullmatch(text):
            return text.lower() == "true"
        if tag == "int" and _INT.fullmatch(text):
            return self._integer(node, path)
        if tag == "float" and _FLOAT.fullmatch(text):
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        raise self._error(node, path, f"the tag {node.tag} on {text!r}", "a value without a tag")

    def _integer(self, node: ScalarNode, path: Path) -> int:
        text: str = node.value
        if len(text) > 400:
            raise self._error(node, path, f"an integer of {len(text)} digits", "one of at most 400")
        base = {"0x": 16, "0o": 8}.get(text[:2], 10)
        return int(text[2:] if base != 10 else text, base)

    def _check_tag(self, node: Node, path: Path, name: str) -> None:
        if node.tag not in (_TAG + name, "!"):
            raise self._error(node, path, f"the tag {node.tag}", "a value without a tag")

    @staticmethod
    def _error(node: Node, path: Path, found: str, expected: str) -> SpecificationError:
        return SpecificationError(Problem(path, found, expected, position=_at(node.start_mark)))
