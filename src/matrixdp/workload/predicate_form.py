"""Predicate sets as a user writes them: a name, or a mapping with the values of an attribute.

A form knows nothing of an attribute; `PredicateForm.on` turns it into predicates over an attribute's codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from matrixdp.domain import Attribute, Bins, Categorical
from matrixdp.domain.suggestions import closest
from matrixdp.errors import DomainError
from matrixdp.workload.arrays import given_array
from matrixdp.workload.entry_error import EntryError, Path, describe_value
from matrixdp.workload.predicates import (
    AllRanges,
    Circular,
    Identity,
    Matrix,
    Predicates,
    Prefix,
    Ranges,
    Sets,
    Suffix,
    Total,
    Width,
)
from matrixdp.workload.stacked import Stacked

__all__ = ["NAMED_PREDICATES", "PredicateForm"]

Content = int | Matrix | tuple[tuple[object, ...], ...] | tuple["PredicateForm", ...] | None

NAMED_PREDICATES: Mapping[str, Predicates] = {
    "identity": Identity(),
    "total": Total(),
    "prefix": Prefix(),
    "suffix": Suffix(),
    "range": AllRanges(),
    "circular": Circular(),
}
"""The predicate sets that need nothing but their name."""

_KEYS = ("width", "ranges", "sets", "matrix", "stack")
_FORMS = (
    "identity, total, prefix, suffix, range, circular, "
    "{width: k}, {ranges: [[first, last], ...]}, {sets: [[value, ...], ...]}, {matrix: file.npy} "
    "or a list of these"
)


@final
@dataclass(frozen=True, eq=False)
class PredicateForm:
    """A predicate set as written, checked as far as it can be without its attribute.

    Parameters
    ----------
    kind : str
        A name of `NAMED_PREDICATES`, or ``width``, ``ranges``, ``sets``, ``matrix`` or ``stack``.
    content : object
        The width, the list of ranges or of sets in values of the attribute, the predicates of the matrix, or
        the forms that are stacked; None for a name.

    Examples
    --------
    >>> from matrixdp.domain import Integers
    >>> PredicateForm.parse({"ranges": [[18, 64]]}).on(Integers("age", 10, 90))
    Ranges(intervals=((8, 54),))
    """

    kind: str
    content: Content = None

    @classmethod
    def parse(cls, written: object, path: Path = ()) -> Self:
        """Return the form that a user wrote.

        Parameters
        ----------
        written : object
            A name, a mapping with one of ``width``, ``ranges``, ``sets``, ``matrix`` and ``stack``, a list of
            these (which are stacked), or a form.
        path : tuple of str or int
            Where it stands, for messages.

        Raises
        ------
        EntryError
            If it is none of these.
        TooLargeError
            If a matrix is larger than explicit queries may be.
        """
        if isinstance(written, cls):
            return written
        if isinstance(written, str):
            if written not in NAMED_PREDICATES:
                close = closest(written, (*NAMED_PREDICATES, *_KEYS)) if written else ""
                ending = close if "did you mean" in close else ""
                raise EntryError(path, describe_value(written), _FORMS + ending)
            return cls(written)
        if isinstance(written, list | tuple) and written:
            return cls("stack", tuple(cls.parse(item, (*path, i)) for i, item in enumerate(written)))
        if not isinstance(written, Mapping):
            raise EntryError(path, describe_value(written), _FORMS)
        keys = list(written)
        if len(keys) != 1 or keys[0] not in _KEYS:
            wrong = [key for key in keys if key not in _KEYS]
            ending = closest(str(wrong[0]), _KEYS) if wrong else ""
            raise EntryError(
                path, describe_value(written), _FORMS + (ending if "did you mean" in ending else "")
            )
        kind, value = keys[0], written[keys[0]]
        return cls(kind, _PARSERS[kind](value, (*path, kind)))

    @property
    def text(self) -> str:
        """What the set is called in the names of groups."""
        if self.kind == "stack" and isinstance(self.content, tuple):
            return " + ".join(form.text for form in self.content if isinstance(form, PredicateForm))
        return f"width {self.content}" if self.kind == "width" else self.kind

    def to_spec(self) -> object:
        """Return the form as a specification has it, with arrays as lists."""
        if self.content is None:
            return self.kind
        if isinstance(self.content, Matrix):
            return {"matrix": self.content.matrix.tolist()}
        if isinstance(self.content, tuple):
            forms = [form.to_spec() for form in self.content if isinstance(form, PredicateForm)]
            return forms or {self.kind: [list(v) for v in self.content if isinstance(v, tuple)]}
        return {self.kind: self.content}

    def on(self, attribute: Attribute, path: Path = ()) -> Predicates:
        """Return the predicates over the codes of an attribute.

        Parameters
        ----------
        attribute : Attribute
            The attribute.
        path : tuple of str or int
            Where the form stands, for messages.

        Raises
        ------
        EntryError
            If a value is not in the attribute's domain, or the set does not fit its size.
        """
        if self.content is None:
            return NAMED_PREDICATES[self.kind]
        path = (*path, self.kind)
        if isinstance(self.content, Matrix):
            columns = self.content.matrix.shape[1]
            if columns != attribute.size:
                raise EntryError(
                    path,
                    f"a matrix of {columns} columns",
                    f"{attribute.size}, one for each value of the attribute",
                )
            return self.content
        if isinstance(self.content, tuple):
            if self.kind == "stack":
                forms = [form for form in self.content if isinstance(form, PredicateForm)]
                inner = path[:-1]
                return Stacked(tuple(form.on(attribute, (*inner, i)) for i, form in enumerate(forms)))
            items = tuple(values for values in self.content if isinstance(values, tuple))
            return (_ranges_on if self.kind == "ranges" else _sets_on)(items, attribute, path)
        width = Width(self.content)
        if width.width > attribute.size:
            raise EntryError(path, str(width.width), f"at most {attribute.size}, the attribute's size")
        return width


def _ranges_on(items: tuple[tuple[object, ...], ...], attribute: Attribute, path: Path) -> Ranges:
    intervals = []
    for position, (low, high) in enumerate(items):
        try:
            intervals.append(attribute.code_range(low, high))
        except DomainError as error:
            found = describe_value([low, high])
            raise EntryError((*path, position), found, f"{_range_of(attribute)} ({error})") from None
    return Ranges(tuple(intervals))


def _sets_on(items: tuple[tuple[object, ...], ...], attribute: Attribute, path: Path) -> Sets:
    sets = []
    for position, values in enumerate(items):
        codes: dict[int, None] = {}
        for place, value in enumerate(values):
            where, found = (*path, position, place), describe_value(value)
            try:
                code = attribute.code_of(value)
            except DomainError as error:
                raise EntryError(where, found, f"{_value_of(attribute)} ({error})") from None
            if code in codes:
                raise EntryError(where, f"{found} again", "each value once in a set")
            codes[code] = None
        sets.append(tuple(codes))
    return Sets(tuple(sets))


def _range_of(attribute: Attribute) -> str:
    if isinstance(attribute, Categorical):
        return f"two categories of {attribute.name!r}, in the listed order"
    if isinstance(attribute, Bins):
        return f"two edges a < b of the bins of {attribute.name!r}, for the range [a, b)"
    return (
        f"two integers first <= last from {attribute.value(0)} to {attribute.value(attribute.size - 1)}, "
        f"the values of {attribute.name!r}"
    )


def _value_of(attribute: Attribute) -> str:
    if isinstance(attribute, Categorical):
        return f"a category of {attribute.name!r}"
    if isinstance(attribute, Bins):
        return f"the lower edge of a bin of {attribute.name!r}"
    return f"a value of {attribute.name!r}"


def _parse_width(value: object, path: Path) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise EntryError(path, describe_value(value), "an integer of at least 1, the number of values")
    return int(value)


def _parse_list(value: object, path: Path, expected: str) -> list[tuple[object, ...]]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple) or not value:
        raise EntryError(path, describe_value(value), f"a list of at least one {expected}")
    items = []
    for position, written in enumerate(value):
        item = list(written) if isinstance(written, range) else written
        if not isinstance(item, list | tuple):
            raise EntryError((*path, position), describe_value(item), f"a {expected}")
        for place, member in enumerate(item):
            if not isinstance(member, str | bool | int | float | np.generic):
                raise EntryError(
                    (*path, position, place), describe_value(member), "one value of the attribute"
                )
        items.append(tuple(m.item() if isinstance(m, np.generic) else m for m in item))
    return items


def _parse_ranges(value: object, path: Path) -> tuple[tuple[object, ...], ...]:
    items = _parse_list(value, path, "range [first, last]")
    for position, item in enumerate(items):
        if len(item) != 2:
            raise EntryError((*path, position), describe_value(item), "a range [first, last] of two values")
    return tuple(items)


def _parse_sets(value: object, path: Path) -> tuple[tuple[object, ...], ...]:
    return tuple(_parse_list(value, path, "set [value, ...]"))


def _parse_stack(value: object, path: Path) -> tuple[PredicateForm, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise EntryError(path, describe_value(value), "a list of at least one predicate set")
    return tuple(PredicateForm.parse(item, (*path, i)) for i, item in enumerate(value))


def _parse_matrix(value: object, path: Path) -> Matrix:
    return Matrix(given_array(value, path, "a finite matrix with a row for each query", axes=2))


_PARSERS: Mapping[str, Callable[[object, Path], Content]] = {
    "width": _parse_width,
    "ranges": _parse_ranges,
    "sets": _parse_sets,
    "matrix": _parse_matrix,
    "stack": _parse_stack,
}
