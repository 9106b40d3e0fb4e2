"""Predicate sets as a user writes them: a name, or a mapping with the values of an attribute.

A form knows nothing of an attribute; `PredicateForm.on` turns it into predicates over an attribute's codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from matrixdp.domain import Attribute, Bins, Categorical
from matrixdp.domain.canonical import describe_value
from matrixdp.domain.suggestions import nearest
from matrixdp.errors import DomainError, EntryError, Path
from matrixdp.queries.arrays import given_array
from matrixdp.queries.permuted import Permuted, seeded_order
from matrixdp.queries.predicates import (
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
from matrixdp.queries.stacked import Stacked

__all__ = ["NAMED_PREDICATES", "PredicateForm", "by_spec"]


@final
@dataclass(frozen=True, eq=False)
class _PermutedForm:
    """A set, and the order in which it sees the values: that of a seed, or one listed."""

    form: PredicateForm
    order: int | tuple[object, ...]


Content = int | Matrix | tuple[tuple[object, ...], ...] | tuple["PredicateForm", ...] | _PermutedForm | None

NAMED_PREDICATES: Mapping[str, Predicates] = {
    "identity": Identity(),
    "total": Total(),
    "prefix": Prefix(),
    "suffix": Suffix(),
    "range": AllRanges(),
    "circular": Circular(),
}
"""The predicate sets that need nothing but their name."""

_KEYS = ("width", "ranges", "sets", "matrix", "permuted")
_FORMS = (
    "identity, total, prefix, suffix, range, circular, "
    "{width: k}, {ranges: [[first, last], ...]}, {sets: [[value, ...], ...]}, {matrix: file.npy}, "
    "{permuted: set, seed: 1}"
)
_EVERY_FORM = f"{_FORMS} or a list of these"


@final
@dataclass(frozen=True, eq=False)
class PredicateForm:
    """A predicate set as written, checked as far as it can be without its attribute.

    Parameters
    ----------
    kind : str
        A name of `NAMED_PREDICATES`, or ``width``, ``ranges``, ``sets``, ``matrix``, ``permuted`` or
        ``stack``.
    content : object
        The width, the list of ranges or of sets in values of the attribute, the predicates of the matrix, the
        set and the order, or the forms that are stacked; None for a name.

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
            A name, a mapping with one of ``width``, ``ranges``, ``sets``, ``matrix`` and ``permuted``, a list
            of these (which are stacked), or a form.
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
                close = nearest(written, (*NAMED_PREDICATES, *_KEYS))
                raise EntryError.at(path, describe_value(written), _EVERY_FORM, close)
            return cls(written)
        if isinstance(written, list | tuple) and written:
            for position, item in enumerate(written):
                if isinstance(item, list | tuple):
                    raise EntryError.at((*path, position), describe_value(item), _FORMS)
            return cls("stack", tuple(cls.parse(item, (*path, i)) for i, item in enumerate(written)))
        if not isinstance(written, Mapping):
            raise EntryError.at(path, describe_value(written), _EVERY_FORM)
        if "permuted" in written:
            return cls("permuted", _parse_permuted(written, path))
        keys = list(written)
        if len(keys) != 1 or keys[0] not in _KEYS:
            wrong = [key for key in keys if key not in _KEYS]
            close = nearest(str(wrong[0]), _KEYS) if wrong else ()
            raise EntryError.at(path, describe_value(written), _EVERY_FORM, close)
        kind, value = keys[0], written[keys[0]]
        return cls(kind, _PARSERS[kind](value, (*path, kind)))

    @property
    def text(self) -> str:
        """What the set is called in the names of groups."""
        if self.kind == "stack" and isinstance(self.content, tuple):
            return " + ".join(form.text for form in self.content if isinstance(form, PredicateForm))
        if isinstance(self.content, _PermutedForm):
            return f"permuted {self.content.form.text}"
        return f"width {self.content}" if self.kind == "width" else self.kind

    def to_spec(self) -> object:
        """Return the form as a specification has it, with arrays as lists."""
        if self.content is None:
            return self.kind
        if isinstance(self.content, Matrix):
            return {"matrix": self.content.matrix.tolist()}
        if isinstance(self.content, _PermutedForm):
            order = self.content.order
            how = {"seed": order} if isinstance(order, int) else {"order": list(order)}
            return {"permuted": self.content.form.to_spec(), **how}
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
        path, inner = (*path, self.kind), path
        if isinstance(self.content, Matrix):
            columns = self.content.matrix.shape[1]
            if columns != attribute.size:
                raise EntryError.at(
                    path,
                    f"a matrix of {columns} columns",
                    f"{attribute.size}, one for each value of the attribute",
                )
            return self.content
        if isinstance(self.content, tuple):
            if self.kind == "stack":
                forms = [form for form in self.content if isinstance(form, PredicateForm)]
                return Stacked(tuple(form.on(attribute, (*inner, i)) for i, form in enumerate(forms)))
            items = tuple(values for values in self.content if isinstance(values, tuple))
            return (_ranges_on if self.kind == "ranges" else _sets_on)(items, attribute, path)
        if isinstance(self.content, _PermutedForm):
            order = _order_on(self.content.order, attribute, (*inner, "order"))
            return Permuted(self.content.form.on(attribute, path), order)
        width = Width(self.content)
        if width.width > attribute.size:
            raise EntryError.at(path, str(width.width), f"at most {attribute.size}, the attribute's size")
        return width


def by_spec(by: Mapping[str, PredicateForm]) -> dict[str, object]:
    """Return the key ``by`` of a specification, left out where it is empty.

    Parameters
    ----------
    by : mapping of str to PredicateForm
        The sets by attribute.

    Examples
    --------
    >>> by_spec({"sex": PredicateForm("identity")}), by_spec({})
    ({'by': {'sex': 'identity'}}, {})
    """
    return {"by": {name: form.to_spec() for name, form in by.items()}} if by else {}


def _order_on(order: int | tuple[object, ...], attribute: Attribute, path: Path) -> tuple[int, ...]:
    if isinstance(order, int):
        return seeded_order(attribute.size, order)
    codes = _codes_of(order, attribute, path)
    if len(codes) != attribute.size:
        raise EntryError.at(path, f"{len(codes)} values", f"each of the {attribute.size} values once")
    return codes


def _ranges_on(items: tuple[tuple[object, ...], ...], attribute: Attribute, path: Path) -> Ranges:
    intervals = []
    for position, (low, high) in enumerate(items):
        try:
            intervals.append(attribute.code_range(low, high))
        except DomainError as error:
            found = describe_value([low, high])
            raise EntryError.at((*path, position), found, f"{_range_of(attribute)} ({error})") from None
    return Ranges(tuple(intervals))


def _sets_on(items: tuple[tuple[object, ...], ...], attribute: Attribute, path: Path) -> Sets:
    return Sets(tuple(_codes_of(v, attribute, (*path, position)) for position, v in enumerate(items)))


def _codes_of(values: tuple[object, ...], attribute: Attribute, path: Path) -> tuple[int, ...]:
    codes: dict[int, None] = {}
    for place, value in enumerate(values):
        where, found = (*path, place), describe_value(value)
        try:
            code = attribute.code_of(value)
        except DomainError as error:
            raise EntryError.at(where, found, f"{_value_of(attribute)} ({error})") from None
        if code in codes:
            raise EntryError.at(where, f"{found} again", "each value once in a set")
        codes[code] = None
    return tuple(codes)


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
        raise EntryError.at(path, describe_value(value), "an integer of at least 1, the number of values")
    return int(value)


def _parse_list(value: object, path: Path, expected: str) -> list[tuple[object, ...]]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple) or not value:
        raise EntryError.at(path, describe_value(value), f"a list of at least one {expected}")
    expected = f"a {expected}"
    return [_parse_values(item, (*path, position), expected) for position, item in enumerate(value)]


def _parse_values(value: object, path: Path, expected: str) -> tuple[object, ...]:
    item = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(item, list | tuple | range):
        raise EntryError.at(path, describe_value(item), expected)
    for place, member in enumerate(item):
        if not isinstance(member, str | bool | int | float | np.generic):
            raise EntryError.at((*path, place), describe_value(member), "one value of the attribute")
    return tuple(m.item() if isinstance(m, np.generic) else m for m in item)


def _parse_ranges(value: object, path: Path) -> tuple[tuple[object, ...], ...]:
    items = _parse_list(value, path, "range [first, last]")
    for position, item in enumerate(items):
        if len(item) != 2:
            raise EntryError.at(
                (*path, position), describe_value(item), "a range [first, last] of two values"
            )
    return tuple(items)


def _parse_sets(value: object, path: Path) -> tuple[tuple[object, ...], ...]:
    return tuple(_parse_list(value, path, "set [value, ...]"))


def _parse_permuted(written: Mapping[object, object], path: Path) -> _PermutedForm:
    if len(written) != 2 or not ("seed" in written or "order" in written):
        raise EntryError.at(
            path,
            describe_value(written),
            "{permuted: set, seed: 1} or {permuted: set, order: [value, ...]}, each value once",
        )
    form = PredicateForm.parse(written["permuted"], (*path, "permuted"))
    if "order" in written:
        return _PermutedForm(form, _parse_values(written["order"], (*path, "order"), "a list of all values"))
    seed = written["seed"]
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise EntryError.at((*path, "seed"), describe_value(seed), "an integer")
    return _PermutedForm(form, int(seed))


def _parse_matrix(value: object, path: Path) -> Matrix:
    return Matrix(given_array(value, path, "a finite matrix with a row for each query", axes=2))


_PARSERS: Mapping[str, Callable[[object, Path], Content]] = {
    "width": _parse_width,
    "ranges": _parse_ranges,
    "sets": _parse_sets,
    "matrix": _parse_matrix,
}
