"""The answers of a release as a page shows them: those that were published, in the digits that are known."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from matrixdp.answers.intervals import decimals_of
from matrixdp.answers.table import FIGURES, AnswerColumns
from matrixdp.answers.titles import head
from matrixdp.display import printable, rounded
from matrixdp.domain import Domain
from matrixdp.exact.resources import one_blas_thread
from matrixdp.noise import Noise
from matrixdp.queries import (
    DenseGroup,
    Group,
    Identity,
    Indicators,
    Predicates,
    Prefix,
    ProductGroup,
    Workload,
)
from matrixdp.releases.record import ANSWERS
from matrixdp.releases.release import Release
from matrixdp.selection.compose.svd_bound import svd_bound_workload

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class GroupAnswers:
    """The answers of one group.

    Attributes
    ----------
    heads : tuple of str
        The attributes that are asked about, or ``query``.
    table : pyarrow.Table
        A row for each query: a column for each head, then the figures.
    """

    heads: tuple[str, ...]
    table: pa.Table

    @property
    def estimates(self) -> Array:
        """The estimates."""
        return self._figure("estimate")

    @property
    def stddevs(self) -> Array:
        """Their standard errors."""
        return self._figure("stddev")

    @property
    def halves(self) -> Array:
        """Half the lengths of their intervals."""
        return (self._figure("upper") - self._figure("lower")) / 2

    def _figure(self, name: str) -> Array:
        return np.asarray(self.table.column(name).to_numpy(), dtype=np.float64)

    def rows(self, most: int) -> Iterator[list[str]]:
        """Yield the first rows as text: what was asked, and the figures in the digits that are known."""
        shown = self.table.slice(0, most)
        digits = max(0, decimals_of(float(self.halves.min())) or 0)
        texts = [
            ["all" if text is None else printable(text) for text in shown.column(place).to_pylist()]
            for place in range(len(self.heads))
        ]
        numbers = [
            [rounded(value, digits + (name == "stddev")) for value in shown.column(name).to_pylist()]
            for name in FIGURES
        ]
        for row in zip(*texts, *numbers, strict=True):
            yield list(row)


@final
class Answers:
    """The answers that a folder publishes; where it holds the measurement alone, what follows from that."""

    def __init__(self, folder: Path, release: Release) -> None:
        self._release = release
        path = folder / ANSWERS
        self._file = pq.ParquetFile(path) if path.is_file() else None
        groups = release.workload.groups
        self._first = np.cumsum([0, *(group.queries for group in groups)])
        self._columns = AnswerColumns(release.domain, groups).columns

    def group(self, place: int) -> GroupAnswers:
        """Return the answers of the group at a place of the workload."""
        group = self._release.workload.groups[place]
        names = _asked(group)
        heads = names
        if isinstance(group, ProductGroup):
            heads = tuple(head(self._release.domain[name], (group.sets[name],)) for name in names)
        if self._file is None:
            own = AnswerColumns(self._release.domain, [group])
            with one_blas_thread():
                batches = list(self._release.batches([group], own))
            columns = [name if name == "query" else own.columns[name] for name in names]
            return GroupAnswers(heads, pa.Table.from_batches(batches).select([*columns, *FIGURES]))
        columns = [name if name == "query" else self._columns[name] for name in names]
        first, stop = int(self._first[place]), int(self._first[place + 1])
        return GroupAnswers(heads, self._read(first, stop, [*columns, *FIGURES]))

    def _read(self, first: int, stop: int, columns: Sequence[str]) -> pa.Table:
        """Return some rows and columns of the file; whole row groups are read, one at a time."""
        file: Any = self._file
        found, before = [], 0
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            start, end = max(first - before, 0), min(stop - before, rows)
            if start < end:
                found.append(file.read_row_group(number, columns=list(columns)).slice(start, end - start))
            before += rows
        return pa.concat_tables(found).select(list(columns))


def _asked(group: Group) -> tuple[str, ...]:
    """Return what the rows of a group differ in: attributes that are asked about, or the text of a query."""
    if isinstance(group, DenseGroup):
        return ("query",)
    from matrixdp.queries import Total

    pairs = zip(group.attributes, group.predicates, strict=True)
    return tuple(name for name, predicates in pairs if not isinstance(predicates, Total))


# How accurate a release is: beside the least possible error, and beside noise added to every query.

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

    def expand(self, domain: Domain) -> list[Group]:
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


# Quartiles of what a release has cumulative counts of.

#: Values of an attribute, categories of another, and tables, at most.
MAX_VALUES, MAX_STRATA, _MOST = 500, 12, 6


def quartiles(release: Release) -> Iterator[tuple[str, pa.Table]]:
    """Yield a title and the quartiles, for attributes with cumulative counts and one or no other attribute.

    Each is what `Release.quantile` returns.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"age": range(8)}), mdp.product(age="prefix"))
    >>> release = mdp.select(workload).measure({"age": [3] * 99}, mdp.Budget(rho=9)).reconstruct()
    >>> [(title, table.column("estimate").to_pylist()) for title, table in quartiles(release)]
    [('age', [3.0, 3.0, 3.0])]
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    for group in release.workload:
        asked = _quartile_attribute(group)
        if asked is not None and asked not in found:
            found.append(asked)
    for name, others in found[:_MOST]:
        title = f"{name} by {others[0]}" if others else name
        yield title, release.quantile(name, by=others)


def _quartile_attribute(group: Group) -> tuple[str, tuple[str, ...]] | None:
    """Return the attribute that a group cumulates, and those by which it does; None where it does not."""
    if not isinstance(group, ProductGroup) or not 1 <= len(group.attributes) <= 2:
        return None
    sets = list(zip(group.attributes, group.predicates, group.sizes, strict=True))
    along = [name for name, own, size in sets if isinstance(own, Prefix) and size <= MAX_VALUES]
    others = [name for name, own, size in sets if isinstance(own, Identity) and size <= MAX_STRATA]
    if len(along) != 1 or len(along) + len(others) != len(sets):
        return None
    return along[0], tuple(others)
