"""Changes of single values in the text of a YAML file: all else stays as it was written, comments too."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node, SequenceNode

from matrixdp.draft import flow
from matrixdp.errors import Path, SpecificationError
from matrixdp.specification import parse_yaml

REMOVED: Any = object()
"""In place of a value: what stood there goes."""


def changed(text: str, path: Path, value: object = REMOVED, *, written: str | None = None) -> str:
    r"""Return the text of a YAML document in which one value is another.

    Parameters
    ----------
    text : str
        The document.
    path : tuple of str or int
        Where the value stands, from the outside in. A key that is not there, or the position behind the end
        of a list, is added.
    value : object
        The new value; without it the old one goes.
    written : str, optional
        How the new value is written, on one line.

    Raises
    ------
    SpecificationError
        If the text is no YAML, or written such that the change would touch something else, as with aliases.

    Examples
    --------
    >>> text = "workload:\n  - marginals: 1  # all\n\n# decided in May\nprivacy: {mu: 1}\n"
    >>> text = changed(text, ("workload", 1), {"mean": "pay", "by": ["sex"]})
    >>> print(changed(text, ("privacy", "mu"), 0.5), end="")
    workload:
      - marginals: 1  # all
      - mean: pay
        by: [sex]
    <BLANKLINE>
    # decided in May
    privacy: {mu: 0.5}
    """
    if written is not None:
        value = parse_yaml(written).value
    wanted = _with(parse_yaml(text).value, path, value)
    how = json.dumps if text.lstrip().startswith(("{", "[")) else flow
    root = yaml.compose(text, yaml.SafeLoader)
    made = text
    if isinstance(root, CollectionNode):
        made = _replaced(text, root, path, value, how, written)
    try:
        same = parse_yaml(made).value == wanted
    except SpecificationError:
        same = False
    if not same:
        found, expected = "YAML that is changed here and elsewhere at once", "a change in the text itself"
        raise SpecificationError.at(path, found, expected, code="not-supported")
    return made


def parts(text: str, key: str) -> dict[str | int, str]:
    r"""Return how the items of a mapping or a list are written that stands at the top of a document.

    Examples
    --------
    >>> parts("domain:\n  sex: [f, m]  # public\n", "domain")
    {'sex': '[f, m]'}
    """
    return {own: text[node.start_mark.index : _end(node)] for own, node in _items_of(text, key)}


def comments(text: str, key: str) -> dict[str | int, str]:
    r"""Return the comments on the last lines of the items that `parts` returns.

    Examples
    --------
    >>> comments("domain:\n  sex: [f, m]  # public\n  age: {min: 0, max: 9}\n", "domain")
    {'sex': 'public', 'age': ''}
    """
    found = {}
    for own, node in _items_of(text, key):
        rest = text[_end(node) : _line_end(text, _end(node))].strip()
        found[own] = rest.lstrip("# ") if rest.startswith("#") else ""
    return found


def _with(value: Any, path: Path, new: object) -> object:
    """Return a value in which a part is another."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, int) and isinstance(value, list | None) and step <= len(value or []):
        known = list(value or [])
        own = [] if new is REMOVED and not rest else [_with(dict(enumerate(known)).get(step), rest, new)]
        return [*known[:step], *own, *known[step + 1 :]]
    if not isinstance(step, str) or not isinstance(value, Mapping | None):
        found = "nothing that it could stand in"
        raise SpecificationError.at(path, found, "a place in the document", code="not-supported")
    named = dict(value or {})
    if new is REMOVED and not rest:
        named.pop(step, None)
        return named
    return named | {step: _with(named.get(step), rest, new)}


def _items_of(text: str, key: str) -> list[tuple[str | int, Node]]:
    root = yaml.compose(text, yaml.SafeLoader)
    held = None if root is None else dict(_items(root)).get(key)
    return [] if held is None else _items(held)


def _items(node: Node) -> list[tuple[str | int, Node]]:
    if isinstance(node, MappingNode):
        return [(str(key.value), value) for key, value in node.value]
    return list(enumerate(node.value)) if isinstance(node, SequenceNode) else []


def _end(node: Node) -> int:
    """Return where a value ends: the marks of blocks are behind the comments that follow."""
    if not isinstance(node, CollectionNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    return _end(_items(node)[-1][1])


def _replaced(
    text: str,
    node: CollectionNode,
    path: Path,
    value: object,
    write: Callable[[object], str],
    written: str | None,
) -> str:
    """Return a text with the value at a path in place of that in it, or behind the last where it is new."""
    step, rest = path[0], path[1:]
    items = _items(node)
    found = next((own for key, own in items if key == step), None)
    if found is not None and rest:
        if not isinstance(found, CollectionNode):  # a key without a value
            return _spliced(text, found, write(_with(None, rest, value)))
        return _replaced(text, found, rest, value, write, written)
    if value is REMOVED:
        return text if found is None else _without(text, node, [own for _, own in items].index(found))
    if rest:
        value, written = _with(None, rest, value), None
    new = write(value) if written is None else written.strip()
    if found is not None:
        return _spliced(text, found, new)
    if node.flow_style or not items:
        entry = f"{write(step)}: {new}" if isinstance(step, str) else new
        at = node.end_mark.index - 1
        return f"{text[:at]}{', ' if items else ''}{entry}{text[at:]}"
    margin = " " * node.start_mark.column
    if isinstance(step, str):
        lines = f"{margin}{write(step)}: {new}"
    elif isinstance(value, Mapping):
        pairs = [f"{write(key)}: {write(own)}" for key, own in value.items()]
        lines = f"{margin}- " + f"\n{margin}  ".join(pairs)
    else:
        lines = f"{margin}- {new}"
    at = _line_end(text, _end(node))
    return f"{text[:at]}\n{lines}{text[at:]}"


def _spliced(text: str, node: Node, new: str) -> str:
    start, end = node.start_mark.index, _end(node)
    before = text[:start].rstrip()
    # a block on lines of its own becomes a value beside its key
    start = len(before) if before.endswith(":") else start
    return f"{text[:start]}{' ' * before.endswith(':')}{new}{text[end:]}"


def _without(text: str, node: CollectionNode, place: int) -> str:
    """Return a text without an item of a collection."""
    starts = [(own[0] if isinstance(own, tuple) else own).start_mark.index for own in node.value]
    ends = [_end(own) for _, own in _items(node)]
    if len(starts) == 1:
        return _spliced(text, node, "{}" if isinstance(node, MappingNode) else "[]")
    if node.flow_style:
        first, last = (starts[0], starts[1]) if place == 0 else (ends[place - 1], ends[place])
        return text[:first] + text[last:]
    first = text.rfind("\n", 0, starts[place]) + 1
    return text[:first] + text[_line_end(text, ends[place]) + 1 :]


def _line_end(text: str, at: int) -> int:
    """Return where the line of a place ends: a comment on it belongs to what stands there."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end
