"""How accurate a release is: beside the least possible error, and beside noise added to every query."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.noise import Noise
from matrixdp.queries import DenseGroup, Group, Indicators, Predicates, Workload
from matrixdp.selection.compose.svd_bound import svd_bound_workload

__all__ = ["Accuracy", "least_squared_error", "workload_sensitivity"]

Array = NDArray[np.float64]

#: Values of an attribute whose predicates are summed, entries of rows, and cells of all that vary together.
_VALUES, _ENTRIES, _CELLS = 4_096, 4_000_000, 2_000_000
#: Values of one attribute, and cells of explicit queries, whose spectrum is computed.
_SPECTRUM = 500


@final
@dataclass(frozen=True)
class Accuracy:
    """The errors of one group, in records.

    Attributes
    ----------
    title : str
        What the group is called.
    queries : int
    rmse, largest : float
        The root mean square of its standard errors, and the largest.
    least : float or None
        No strategy has a smaller root mean square, even one that answers nothing but this group; None where
        no bound is known.
    """

    title: str
    queries: int
    rmse: float
    largest: float
    least: float | None


def least_squared_error(domain: Domain, group: Group, known: dict[Hashable, float | None]) -> float | None:
    """Return a bound on the sum of the variances of a group under noise of variance 1 at privacy cost 1.

    It is the SVD bound of the group alone, which is below what any strategy has for it at the same cost.
    ``known`` keeps what was computed; None where it would take long.

    Examples
    --------
    >>> from matrixdp.language import marginals
    >>> domain = Domain({"code": 10})
    >>> least_squared_error(domain, marginals(1).expand(domain)[0], {})
    10.0
    """
    key = (group.attributes, group.sizes, group.key())
    if key not in known:
        plain = replace(group, weight=1.0, query_weights=None)
        known[key] = svd_bound_workload(Workload(domain, _Only(plain))) if _small(group) else None
    return known[key]


@dataclass(frozen=True)
class _Only:
    """An entry that stands for one group."""

    group: Group

    def expand(self, domain: Domain) -> list[Group]:  # noqa: ARG002 - of an entry
        return [self.group]

    def to_spec(self) -> dict[str, object]:
        return {}


def _small(group: Group) -> bool:
    if isinstance(group, DenseGroup):
        return math.prod(group.sizes) <= _SPECTRUM
    pairs = zip(group.predicates, group.sizes, strict=True)
    return all(size <= _SPECTRUM or predicates.symmetric(size) is not None for predicates, size in pairs)


def workload_sensitivity(workload: Workload, noise: Noise) -> tuple[float, bool] | None:
    """Return the sensitivity of the workload itself, and whether it is exact or only at least that.

    It is the largest norm of a column of the workload's matrix, to the power of the norm; None where it
    would take long.

    Examples
    --------
    >>> from matrixdp.language import marginals, product
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = Workload(Domain({"sex": 2, "age": 100}), marginals([0, 1]), product(age="prefix"))
    >>> workload_sensitivity(workload, GAUSSIAN)  # the total, two marginals, and 100 prefixes
    (103.0, True)
    """
    terms: list[dict[str, Array]] = []
    explicit: list[tuple[tuple[str, ...], Array]] = []
    constant = 0.0
    for group in workload:
        if isinstance(group, DenseGroup):
            sums = (np.abs(group.rows()) ** noise.norm).sum(axis=0).reshape(group.sizes)
            explicit.append((group.attributes, sums))
            continue
        factor, varying = 1.0, {}
        for name, predicates, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
            column = _column_sums(predicates, size, noise.norm)
            if column is None:
                return None
            if column.min() == column.max():
                factor *= float(column[0])
            else:
                varying[name] = column
        if varying:
            first = next(iter(varying))
            terms.append({**varying, first: factor * varying[first]})
        else:
            constant += factor
    names = workload.domain.sort(
        {name for term in terms for name in term} | {n for a, _ in explicit for n in a}
    )
    sizes = {name: workload.domain[name].size for name in names}
    if math.prod(sizes.values()) <= _CELLS:
        total = np.full(tuple(sizes.values()), constant)
        for term in terms:
            total += _spread_product(term, names)
        for attributes, sums in explicit:
            total += _spread(sums, attributes, names)
        return float(total.max()), True
    return constant + _ascended(terms, explicit, sizes), False


def _column_sums(predicates: Predicates, size: int, norm: int) -> Array | None:
    """Return the sum of |entry|^norm over every column of a predicate set; None where it would take long."""
    known = isinstance(predicates, Indicators) or norm == 2
    if known and (size <= _VALUES or predicates.symmetric(size) is not None):
        return predicates.column_sums(size, norm)
    return predicates.column_sums(size, norm) if predicates.count(size) * size <= _ENTRIES else None


def _spread(sums: Array, attributes: Sequence[str], names: Sequence[str]) -> Array:
    """Return an array over some attributes in a shape that broadcasts over all of them."""
    sizes = dict(zip(attributes, sums.shape, strict=True))
    return sums.reshape([sizes.get(name, 1) for name in names])


def _spread_product(term: Mapping[str, Array], names: Sequence[str]) -> Array:
    product: Array = np.ones((1,) * len(names))
    for name, column in term.items():
        product = product * _spread(column, [name], names)
    return product


def _ascended(
    terms: Sequence[Mapping[str, Array]],
    explicit: Sequence[tuple[tuple[str, ...], Array]],
    sizes: Mapping[str, int],
) -> float:
    """Return the largest sum that is found by going uphill, one attribute at a time, from two cells."""
    best = 0.0
    for start in (0.0, 0.5):
        cell = {name: int(start * (size - 1)) for name, size in sizes.items()}
        for name in (*sizes, *sizes):
            along = np.zeros(sizes[name])
            for term in terms:
                rest = math.prod(float(column[cell[n]]) for n, column in term.items() if n != name)
                along += rest * term.get(name, 1.0)
            for attributes, sums in explicit:
                place: tuple[Any, ...] = tuple(slice(None) if n == name else cell[n] for n in attributes)
                along += sums[place]
            cell[name] = int(along.argmax())
            best = max(best, float(along.max()))
    return best
