"""The Python face of workloads: one function for each form of entry, with the keys of a specification.

Every function raises `EntryError` where an argument is wrong, and `TooLargeError` where explicit queries are
too many numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Literal, TypedDict, Unpack

from numpy.typing import ArrayLike

from matrixdp.errors import EntryError
from matrixdp.language import entries

Source = ArrayLike | str | os.PathLike[str]
"""An array, nested lists, or the path of a NumPy file."""
At = Mapping[str, str | Iterable[str]]
"""By attribute one of its levels, or several."""


class Options(TypedDict, total=False):
    """What every entry takes.

    Attributes
    ----------
    weight : float
        Multiplies the variance of the queries in the objective; 1 where it is left out.
    weights : array or path
        One weight for each query, for an entry that stands for one group, in the order of its answers:
        row-major over the attributes in domain order, those of ``by`` last. More than one axis is flattened.
    budget_share : float
        The share of the privacy cost that serves the entry, above 0 and at most 1, in place of a weight.
    name : str
        What the groups are called.
    count : {"records", "persons"}
        What is counted; persons need a privacy unit of which each query counts at most one record.
    title, unit, note, source : str or Text or mapping of str to str
        Texts for readers of the tables; a mapping has one for each language.
    """

    weight: float
    weights: Source | None
    budget_share: float | None
    name: str | None
    count: Literal["records", "persons"]
    title: str | Mapping[str, str]
    unit: str | Mapping[str, str]
    note: str | Mapping[str, str]
    source: str | Mapping[str, str]


def marginals(
    which: int | Iterable[int | Iterable[str]],
    attributes: Iterable[str] | None = None,
    max_cells: int | None = None,
    at: At | None = None,
    **options: Unpack[Options],
) -> entries.MarginalsEntry:
    """Return an entry that asks for marginals: every cell of a combination of attributes.

    Parameters
    ----------
    which : int, or list of int and of lists of str
        How many attributes at a time (0 is the total), or several such numbers and listed combinations.
    attributes : list of str, optional
        The attributes that numbers combine; all where it is left out. Not with listed combinations alone.
    max_cells : int, optional
        Leave out marginals with more cells.
    at : mapping of str to str or list of str, optional
        By attribute the levels within whose values all of this is asked, of the other attributes: names of
        its levels, its own name for its own values, ``total``.
    **options : Options
        The weight, the weights and the name.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115), "code": 40})
    >>> [group.name for group in marginals([0, 1]).expand(domain)]
    ['total', 'sex', 'age', 'code']
    >>> [group.name for group in marginals(2, max_cells=100).expand(domain)]
    ['sex, code']
    >>> town = {"levels_from": {"town": ["a", "b", "c"], "state": ["N", "N", "S"]}}
    >>> asked = marginals([0, 1], at={"town": ["total", "state"]})
    >>> [group.name for group in asked.expand(Domain({"town": town, "sex": ["f", "m"]}))]
    ['total', 'sex', 'state', 'state, sex']
    """
    given = {"marginals": which, "attributes": attributes, "max_cells": max_cells, "at": at or {}}
    return entries.MarginalsEntry.read(given | options)


def kway(
    k: int | Iterable[int],
    predicates: object = "identity",
    attributes: Iterable[str] | None = None,
    max_cells: int | None = None,
    at: At | None = None,
    **options: Unpack[Options],
) -> entries.KwayEntry:
    """Return an entry that asks for products of predicate sets on every `k` attributes.

    Parameters
    ----------
    k : int or list of int
        How many attributes at a time (0 is the total).
    predicates : predicate set, or mapping
        One set for all attributes, or ``{"categorical": set, "numeric": set}``; a kind that is not named
        gets the identity. For the forms of a set see `product`.
    attributes : list of str, optional
        The attributes to combine; all where it is left out.
    max_cells : int, optional
        Leave out combinations of attributes with more cells.
    at : mapping of str to str or list of str, optional
        As for `marginals`.
    **options : Options
        The weight, the weights and the name.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115), "code": 40})
    >>> for group in kway(2, {"categorical": "identity", "numeric": "prefix"}).expand(domain):
    ...     print(group.name)
    sex, age: identity x prefix
    sex, code: identity x prefix
    age, code: prefix x prefix
    """
    given = {"kway": k, "predicates": predicates, "attributes": attributes, "max_cells": max_cells}
    return entries.KwayEntry.read(given | {"at": at or {}} | options)


def product(
    attributes: Mapping[str, object] | None = None,
    /,
    *,
    weight: float = 1.0,
    weights: Source | None = None,
    budget_share: float | None = None,
    name: str | None = None,
    count: Literal["records", "persons"] = "records",
    at: At | None = None,
    **predicates: object,
) -> entries.ProductEntry:
    """Return an entry that asks every combination of one predicate from each attribute's set.

    Parameters
    ----------
    attributes : mapping of str to predicate set, optional
        For attributes whose names are not Python names, or are `weight`, `weights`,
        `budget_share`, `name`, `count` or `at`.
    weight, weights, budget_share, name, count
        See `Options`.
    at : mapping of str to str or list of str, optional
        As for `marginals`.
    **predicates : predicate set
        By attribute: ``identity``, ``total``, ``prefix``, ``suffix``, ``range`` (all ranges), ``circular``
        (every start, lengths 1 to n), ``{"sliding": k}``, ``{"change": k}``, ``year_to_date`` and
        ``same_period_last_year`` (of dates), ``{"ranges": [[first, last], ...]}``,
        ``{"sets": [[value, ...], ...]}``, either with names (``{"sets": {name: [value, ...]}}``),
        ``{"matrix": array or path}``, ``{"permuted": set, "seed": 1}``, or a list of these, stacked. Ranges
        and sets are in values of the attribute: ranges inclusive on
        integers and categories, ``[a, b)`` on bins. Attributes that are not named are totals.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115)})
    >>> [group] = product(age={"ranges": [[0, 17], [18, 64]]}, sex="identity").expand(domain)
    >>> group.name, group.queries
    ('sex, age: identity x ranges', 4)
    """
    given = {"product": _by_attribute("product", attributes, predicates), "count": count, "at": at or {}}
    given |= {"weight": weight, "weights": weights, "budget_share": budget_share, "name": name}
    return entries.ProductEntry.read(given)


def pairwise(
    kind: Literal["affine", "abs"], attributes: Iterable[str] | None = None, **options: Unpack[Options]
) -> entries.PairwiseEntry:
    """Return an entry that compares the codes of every two numeric attributes A and B.

    Parameters
    ----------
    kind : {"affine", "abs"}
        ``affine``: code(A) + code(B) <= c for all c; ``abs``: the distance of both codes is <= c for all c.
    attributes : list of str, optional
        The attributes to pair; all numeric ones where it is left out.
    **options : Options
        The weight, the weights and the name.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115), "hours": 100})
    >>> [(group.name, group.queries) for group in pairwise("affine").expand(domain)]
    [('age, hours: affine', 214)]
    """
    return entries.PairwiseEntry.read({"pairwise": kind, "attributes": attributes} | options)


def dense(
    matrix: Source,
    attributes: Iterable[str],
    *,
    by: Mapping[str, object] | None = None,
    **options: Unpack[Options],
) -> entries.DenseEntry:
    """Return an entry whose queries are the rows of a matrix over the cells of a few attributes.

    Parameters
    ----------
    matrix : array or path
        Shape (queries, cells); the cells are row-major in the order of `attributes` as written.
    attributes : list of str
        The attributes.
    by : mapping of str to predicate set, optional
        Predicate sets of other attributes: each row is asked within every combination of their predicates.
    **options : Options
        The weight, the weights and the name.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"]})
    >>> [group] = dense([[1, 0, 0, -1]], ["smokes", "sex"]).expand(domain)
    >>> group.attributes, group.rows()
    (('sex', 'smokes'), array([[ 1.,  0.,  0., -1.]]))
    """
    return entries.DenseEntry.read({"dense": matrix, "attributes": attributes, "by": by} | options)


def disjunction(
    attributes: Mapping[str, object] | None = None,
    /,
    *,
    by: Mapping[str, object] | None = None,
    weight: float = 1.0,
    weights: Source | None = None,
    budget_share: float | None = None,
    name: str | None = None,
    count: Literal["records", "persons"] = "records",
    **predicates: object,
) -> entries.DisjunctionEntry:
    """Return an entry that asks every combination of one predicate from each attribute's set, joined by OR.

    Parameters
    ----------
    attributes : mapping of str to predicate set, optional
        For attributes whose names are not Python names, or are `by`, `weight`, `weights`,
        `budget_share`, `name` or `count`.
    by : mapping of str to predicate set, optional
        Predicate sets of other attributes: each disjunction is asked within every combination of them.
    weight, weights, budget_share, name, count
        See `Options`.
    **predicates : predicate set
        By attribute, as for `product`; at least two attributes.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115)})
    >>> [group] = disjunction(age={"ranges": [[0, 17], [65, 114]]}, sex={"sets": [["female"]]}).expand(domain)
    >>> group.queries, group.content.describe(domain, group.attributes)[0]
    (2, 'sex female or age 0-17')
    """
    given = {"any": _by_attribute("any", attributes, predicates), "by": by, "count": count}
    given |= {"weight": weight, "weights": weights, "budget_share": budget_share, "name": name}
    return entries.DisjunctionEntry.read(given)


def cells(
    queries: Iterable[Iterable[Mapping[str, object]] | Mapping[str, object]],
    by: Mapping[str, object] | None = None,
    **options: Unpack[Options],
) -> entries.CellsEntry:
    """Return an entry of predicates over merged attributes, each a union of boxes of cells.

    Parameters
    ----------
    queries : list of (list of) mapping
        For each query one box or a list of boxes: a mapping of attributes to the value, the list of values,
        or the range ``{"range": [first, last]}``, that a record must have; attributes that a box does not
        name may have any. A record counts if it is in at least one of the boxes.
    by : mapping of str to predicate set, optional
        Predicate sets of other attributes: each query is asked within every combination of them.
    **options : Options
        The weight, the weights and the name.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"]})
    >>> boxes = [{"sex": "female", "smokes": "no"}, {"sex": "male", "smokes": "yes"}]
    >>> [group] = cells([boxes]).expand(domain)
    >>> group.rows()
    array([[1., 0., 0., 1.]])
    """
    return entries.CellsEntry.read({"cells": queries, "by": by} | options)


def _by_attribute(under: str, attributes: object, more: Mapping[str, object]) -> object:
    """Return the predicate sets given as a mapping and by keywords together."""
    if not isinstance(attributes, Mapping):
        return more if attributes is None else attributes
    for name in more:
        if name in attributes:
            raise EntryError.at(
                (under, name), "the attribute a second time", "each attribute once", code="duplicate"
            )
    return {**attributes, **more}
