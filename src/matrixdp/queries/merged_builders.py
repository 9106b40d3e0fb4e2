"""The Python face of queries over merged attributes: disjunctions and sets of cells."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.domain.canonical import describe_value
from matrixdp.errors import EntryError, Path
from matrixdp.queries.arguments import entry_options, predicate_forms
from matrixdp.queries.merged_entries import CellsEntry, Condition, DisjunctionEntry, Span

__all__ = ["cells", "disjunction"]

Source = ArrayLike | str | os.PathLike[str]

_LISTS = (list, tuple, range, np.ndarray)
_VALUES = "one value of the attribute, a list of values, or {range: [first, last]}"


def disjunction(
    attributes: Mapping[str, object] | None = None,
    /,
    *,
    by: Mapping[str, object] | None = None,
    weight: float = 1.0,
    weights: Source | None = None,
    name: str | None = None,
    **predicates: object,
) -> DisjunctionEntry:
    """Return an entry that asks every combination of one predicate from each attribute's set, joined by OR.

    Parameters
    ----------
    attributes : mapping of str to predicate set, optional
        For attributes whose names are not Python names, or are `by`, `weight`, `weights` or `name`.
    by : mapping of str to predicate set, optional
        Predicate sets of other attributes: each disjunction is asked within every combination of them.
    weight : float
        Multiplies the variance of the queries in the objective.
    weights : array or path, optional
        One weight for each query, row-major in the order of the attributes as written, those of `by` last.
    name : str, optional
        What the group is called.
    **predicates : predicate set
        By attribute, as for `product`; at least two attributes.

    Returns
    -------
    DisjunctionEntry
        The entry, for `Workload`.

    Raises
    ------
    EntryError
        If an argument is none of these, an attribute is given twice, or there are fewer than two.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115)})
    >>> [group] = disjunction(age={"ranges": [[0, 17], [65, 114]]}, sex={"sets": [["female"]]}).expand(domain)
    >>> group.queries, group.content.describe(domain, group.attributes)[0]
    (2, 'sex female or age 0-17')
    """
    forms = predicate_forms({} if attributes is None else attributes, ("any",), predicates)
    if len(forms) < 2:
        raise EntryError.at(
            ("any",),
            f"{len(forms)} attribute{'s' * (not forms)}",
            "at least two to join by OR; `product` asks about one",
        )
    return DisjunctionEntry(forms, predicate_forms(by or {}, ("by",)), entry_options(weight, weights, name))


def cells(
    queries: Iterable[Iterable[Mapping[str, object]] | Mapping[str, object]],
    by: Mapping[str, object] | None = None,
    weight: float = 1.0,
    weights: Source | None = None,
    name: str | None = None,
) -> CellsEntry:
    """Return an entry of predicates over merged attributes, each a union of boxes of cells.

    Parameters
    ----------
    queries : list of (list of) mapping
        For each query one box or a list of boxes: a mapping of attributes to the value, the list of values,
        or the range ``{"range": [first, last]}``, that a record must have; attributes that a box does not
        name may have any. A record counts if it is in at least one of the boxes.
    by : mapping of str to predicate set, optional
        Predicate sets of other attributes: each query is asked within every combination of them.
    weight : float
        Multiplies the variance of the queries in the objective.
    weights : array or path, optional
        One weight for each query, row-major: the queries, then the attributes of `by` as written.
    name : str, optional
        What the group is called.

    Returns
    -------
    CellsEntry
        The entry, for `Workload`.

    Raises
    ------
    EntryError
        If an argument is none of these.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"]})
    >>> boxes = [{"sex": "female", "smokes": "no"}, {"sex": "male", "smokes": "yes"}]
    >>> [group] = cells([boxes]).expand(domain)
    >>> group.rows()
    array([[1., 0., 0., 1.]])
    """
    if isinstance(queries, Mapping | str) or not isinstance(queries, Iterable):
        raise EntryError.at(("cells",), describe_value(queries), "a list of queries, each a list of boxes")
    found = []
    for row, written in enumerate(queries):
        boxes = [written] if isinstance(written, Mapping) else written
        if isinstance(boxes, str) or not isinstance(boxes, Iterable):
            raise EntryError.at(("cells", row), describe_value(boxes), "a box, or a list of boxes")
        found.append(tuple(_box(box, row, place) for place, box in enumerate(boxes)))
        if not found[-1]:
            raise EntryError.at(("cells", row), "an empty list", "at least one box")
    if not found:
        raise EntryError.at(("cells",), "an empty list", "at least one query")
    return CellsEntry(tuple(found), predicate_forms(by or {}, ("by",)), entry_options(weight, weights, name))


def _box(written: object, row: int, place: int) -> Mapping[str, Condition]:
    if not isinstance(written, Mapping) or not written:
        raise EntryError.at(
            ("cells", row, place), describe_value(written), "a mapping of attributes to values, {sex: female}"
        )
    box: dict[str, Condition] = {}
    for name, value in written.items():
        path: Path = ("cells", row, place, str(name))
        if not isinstance(name, str):
            raise EntryError.at(path, f"the key {describe_value(name)}", "the name of an attribute")
        if isinstance(value, Mapping):
            ends = value.get("range")
            if set(value) != {"range"} or not isinstance(ends, list | tuple) or len(ends) != 2:
                raise EntryError.at(path, describe_value(value), _VALUES)
            low, high = _scalars(ends, path)
            box[name] = Span(low, high)
            continue
        box[name] = _scalars(list(value) if isinstance(value, _LISTS) else [value], path)
        if not box[name]:
            raise EntryError.at(path, "an empty list", _VALUES)
    return box


def _scalars(values: Iterable[object], path: Path) -> tuple[object, ...]:
    plain = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    for value in plain:
        if not isinstance(value, str | bool | int | float):
            raise EntryError.at(path, describe_value(value), _VALUES)
    return plain
