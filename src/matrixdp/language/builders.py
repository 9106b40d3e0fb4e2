"""The Python face of workloads: one function for each form of entry, with the keys of a specification."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Literal

from numpy.typing import ArrayLike

from matrixdp.errors import EntryError
from matrixdp.language.combinations import KwayEntry, MarginalsEntry
from matrixdp.language.merged import CellsEntry, DisjunctionEntry
from matrixdp.language.products import DenseEntry, PairwiseEntry, ProductEntry

__all__ = ["cells", "dense", "disjunction", "kway", "marginals", "pairwise", "product"]

Source = ArrayLike | str | os.PathLike[str]
"""An array, nested lists, or the path of a NumPy file."""


def marginals(
    which: int | Iterable[int] | Iterable[Iterable[str]],
    attributes: Iterable[str] | None = None,
    max_cells: int | None = None,
    weight: float = 1.0,
    weights: Source | None = None,
    name: str | None = None,
) -> MarginalsEntry:
    """Return an entry that asks for marginals: every cell of a combination of attributes.

    Parameters
    ----------
    which : int, list of int, or list of lists of str
        How many attributes at a time (0 is the total), several such numbers, or listed combinations.
    attributes : list of str, optional
        The attributes to combine; all where it is left out. Not with listed combinations.
    max_cells : int, optional
        Leave out marginals with more cells.
    weight : float
        Multiplies the variance of the queries in the objective.
    weights : array or path, optional
        One weight for each query, row-major in the order of the attributes as written; for an entry that
        stands for one marginal.
    name : str, optional
        What the groups are called.

    Returns
    -------
    MarginalsEntry
        The entry, for `Workload`.

    Raises
    ------
    EntryError
        If an argument is none of these.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115), "code": 40})
    >>> [group.name for group in marginals([0, 1]).expand(domain)]
    ['total', 'sex', 'age', 'code']
    >>> [group.name for group in marginals(2, max_cells=100).expand(domain)]
    ['sex, code']
    """
    given = {"marginals": which, "attributes": attributes, "max_cells": max_cells}
    return MarginalsEntry.read(given | _options(weight, weights, name))


def kway(
    k: int | Iterable[int],
    predicates: object = "identity",
    attributes: Iterable[str] | None = None,
    max_cells: int | None = None,
    weight: float = 1.0,
    weights: Source | None = None,
    name: str | None = None,
) -> KwayEntry:
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
    weight : float
        Multiplies the variance of the queries in the objective.
    weights : array or path, optional
        One weight for each query, row-major in domain order; for an entry that stands for one group.
    name : str, optional
        What the groups are called.

    Returns
    -------
    KwayEntry
        The entry, for `Workload`.

    Raises
    ------
    EntryError
        If an argument is none of these.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115), "code": 40})
    >>> for group in kway(2, {"numeric": "prefix"}).expand(domain):
    ...     print(group.name)
    sex, age: identity x prefix
    sex, code: identity x prefix
    age, code: prefix x prefix
    """
    given = {"kway": k, "predicates": predicates, "attributes": attributes, "max_cells": max_cells}
    return KwayEntry.read(given | _options(weight, weights, name))


def product(
    attributes: Mapping[str, object] | None = None,
    /,
    *,
    weight: float = 1.0,
    weights: Source | None = None,
    name: str | None = None,
    **predicates: object,
) -> ProductEntry:
    """Return an entry that asks every combination of one predicate from each attribute's set.

    Parameters
    ----------
    attributes : mapping of str to predicate set, optional
        For attributes whose names are not Python names, or are `weight`, `weights` or `name`.
    weight : float
        Multiplies the variance of the queries in the objective.
    weights : array or path, optional
        One weight for each query, row-major in the order of the attributes as written.
    name : str, optional
        What the group is called.
    **predicates : predicate set
        By attribute: ``identity``, ``total``, ``prefix``, ``suffix``, ``range`` (all ranges), ``circular``
        (every start, lengths 1 to n), ``{"width": k}``, ``{"ranges": [[first, last], ...]}``,
        ``{"sets": [[value, ...], ...]}``, ``{"matrix": array or path}``, ``{"permuted": set, "seed": 1}``,
        or a list of these, stacked. Ranges and sets are in values of the attribute: ranges inclusive on
        integers and categories, ``[a, b)`` on bins. Attributes that are not named are totals.

    Returns
    -------
    ProductEntry
        The entry, for `Workload`.

    Raises
    ------
    EntryError
        If an argument is none of these, or an attribute is given twice.
    TooLargeError
        If a matrix is larger than explicit queries may be.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115)})
    >>> [group] = product(age={"ranges": [[0, 17], [18, 64]]}, sex="identity").expand(domain)
    >>> group.name, group.queries
    ('sex, age: identity x ranges', 4)
    """
    given = {"product": _by_attribute("product", attributes, predicates)}
    return ProductEntry.read(given | _options(weight, weights, name))


def pairwise(
    kind: Literal["affine", "abs"],
    attributes: Iterable[str] | None = None,
    weight: float = 1.0,
    weights: Source | None = None,
    name: str | None = None,
) -> PairwiseEntry:
    """Return an entry that compares the codes of every two numeric attributes A and B.

    Parameters
    ----------
    kind : {"affine", "abs"}
        ``affine``: code(A) + code(B) <= c for all c; ``abs``: |code(A) - code(B)| <= c for all c.
    attributes : list of str, optional
        The attributes to pair; all numeric ones where it is left out.
    weight : float
        Multiplies the variance of the queries in the objective.
    weights : array or path, optional
        One weight for each query; for an entry that stands for one pair.
    name : str, optional
        What the groups are called.

    Returns
    -------
    PairwiseEntry
        The entry, for `Workload`.

    Raises
    ------
    EntryError
        If an argument is none of these.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115), "hours": 100})
    >>> [(group.name, group.queries) for group in pairwise("affine").expand(domain)]
    [('age, hours: affine', 214)]
    """
    given = {"pairwise": kind, "attributes": attributes}
    return PairwiseEntry.read(given | _options(weight, weights, name))


def dense(
    matrix: Source,
    attributes: Iterable[str],
    weight: float = 1.0,
    weights: Source | None = None,
    name: str | None = None,
    by: Mapping[str, object] | None = None,
) -> DenseEntry:
    """Return an entry whose queries are the rows of a matrix over the cells of a few attributes.

    Parameters
    ----------
    matrix : array or path
        Shape (queries, cells); the cells are row-major in the order of `attributes` as written.
    attributes : list of str
        The attributes.
    weight : float
        Multiplies the variance of the queries in the objective.
    weights : array or path, optional
        One weight for each query, row-major: the rows, then the attributes of `by` as written.
    name : str, optional
        What the group is called.
    by : mapping of str to predicate set, optional
        Predicate sets of other attributes: each row is asked within every combination of their predicates.

    Returns
    -------
    DenseEntry
        The entry, for `Workload`.

    Raises
    ------
    EntryError
        If an argument is none of these.
    TooLargeError
        If the matrix is larger than explicit queries may be.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"]})
    >>> [group] = dense([[1, 0, 0, -1]], ["smokes", "sex"]).expand(domain)
    >>> group.attributes, group.rows()
    (('sex', 'smokes'), array([[ 1.,  0.,  0., -1.]]))
    """
    given = {"dense": matrix, "attributes": attributes, "by": by or {}}
    return DenseEntry.read(given | _options(weight, weights, name))


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
    given = {"any": _by_attribute("any", attributes, predicates), "by": by or {}}
    return DisjunctionEntry.read(given | _options(weight, weights, name))


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
    given = {"cells": queries, "by": by or {}}
    return CellsEntry.read(given | _options(weight, weights, name))


def _options(weight: object, weights: object, name: object) -> dict[str, object]:
    return {"weight": weight, "weights": weights, "name": name}


def _by_attribute(under: str, attributes: object, more: Mapping[str, object]) -> object:
    """Return the predicate sets given as a mapping and by keywords together."""
    if attributes is None:
        return more
    if not isinstance(attributes, Mapping):
        return attributes
    for name in more:
        if name in attributes:
            raise EntryError.at((under, name), "the attribute a second time", "each attribute once")
    return {**attributes, **more}
