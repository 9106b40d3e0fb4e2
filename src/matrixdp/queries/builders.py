"""The Python face of workloads: one function for each kind of entry, with the keys of a specification."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.domain.canonical import describe_value
from matrixdp.domain.suggestions import nearest
from matrixdp.errors import EntryError
from matrixdp.queries.arguments import (
    attribute_names,
    cell_limit,
    entry_options,
    number_of_attributes,
    predicate_forms,
    predicates_by_kind,
    sequence_of,
    which_marginals,
)
from matrixdp.queries.arrays import given_array
from matrixdp.queries.entries import CombinationsEntry, ProductEntry
from matrixdp.queries.explicit_entries import DenseEntry, PairwiseEntry
from matrixdp.queries.predicate_form import PredicateForm

__all__ = ["dense", "kway", "marginals", "pairwise", "product"]

Source = ArrayLike | str | os.PathLike[str]
"""An array, nested lists, or the path of a NumPy file."""

_PAIRWISE = ("affine", "abs")


def marginals(
    which: int | Iterable[int] | Iterable[Iterable[str]],
    attributes: Iterable[str] | None = None,
    max_cells: int | None = None,
    weight: float = 1.0,
    weights: Source | None = None,
    name: str | None = None,
) -> CombinationsEntry:
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
    CombinationsEntry
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
    numbers, listed = which_marginals(which)
    if listed and attributes is not None:
        raise EntryError.at(
            ("attributes",),
            "attributes with listed marginals",
            "`attributes` with numbers of attributes alone",
        )
    return CombinationsEntry(
        "marginals",
        numbers,
        listed,
        PredicateForm("identity"),
        attribute_names(attributes, ("attributes",)),
        cell_limit(max_cells),
        entry_options(weight, weights, name),
    )


def kway(
    k: int | Iterable[int],
    predicates: object = "identity",
    attributes: Iterable[str] | None = None,
    max_cells: int | None = None,
    weight: float = 1.0,
    weights: Source | None = None,
    name: str | None = None,
) -> CombinationsEntry:
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
    CombinationsEntry
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
    single = isinstance(k, int | np.integer)
    numbers = tuple(
        number_of_attributes(item, ("kway",) if single else ("kway", position))
        for position, item in enumerate(
            [k] if single else sequence_of(k, ("kway",), "a number of attributes, or a list")
        )
    )
    if not numbers:
        raise EntryError.at(("kway",), "an empty list", "at least one number of attributes")
    return CombinationsEntry(
        "kway",
        numbers,
        (),
        predicates_by_kind(predicates),
        attribute_names(attributes, ("attributes",)),
        cell_limit(max_cells),
        entry_options(weight, weights, name),
    )


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
    forms = predicate_forms({} if attributes is None else attributes, ("product",), predicates)
    return ProductEntry(forms, entry_options(weight, weights, name))


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
    if not isinstance(kind, str) or kind not in _PAIRWISE:
        close = nearest(kind, _PAIRWISE) if isinstance(kind, str) else ()
        raise EntryError.at(("pairwise",), describe_value(kind), "affine or abs", close)
    return PairwiseEntry(
        kind, attribute_names(attributes, ("attributes",)), entry_options(weight, weights, name)
    )


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
    names = attribute_names(attributes, ("attributes",))
    if not names:
        raise EntryError.at(("attributes",), describe_value(attributes), "a list of at least one attribute")
    array = given_array(matrix, ("dense",), "a finite matrix with a row for each query", axes=2)
    return DenseEntry(array, names, predicate_forms(by or {}, ("by",)), entry_options(weight, weights, name))
