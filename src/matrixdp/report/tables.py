"""The answers of a release as a page shows them: those that were published, in the digits that are known."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from matrixdp import queries
from matrixdp.answers.quality import QUALITY, Presentation, texts_for_readers
from matrixdp.answers.table import BOUND, FIGURES, AnswerColumns, heading, is_key
from matrixdp.answers.titles import head
from matrixdp.display import printable
from matrixdp.domain import Domain
from matrixdp.exact.resources import one_blas_thread
from matrixdp.noise import Noise
from matrixdp.queries import DenseGroup, Group, Predicates, ProductGroup, Workload
from matrixdp.releases.record import ANSWERS
from matrixdp.releases.release import Release
from matrixdp.selection.bounds.lower_bound import svd_bound_workload

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

    def figures(self) -> tuple[Array, Array, Array, Array]:
        """Return the estimates, their standard errors, and the ends of their intervals."""
        known = self.table.select(FIGURES).columns
        estimates, stddevs, lower, upper = (np.asarray(own.to_numpy(), dtype=np.float64) for own in known)
        return estimates, stddevs, lower, upper

    @property
    def keys(self) -> int:
        """How many columns say what a row is of."""
        return len(self.heads)

    def columns(self, confidence: str) -> list[str]:
        """Return the headings."""
        figures = self.table.schema
        ends = f"{confidence}% from", "to"
        return [*self.heads, *(heading(figures.field(name), ends) for name in FIGURES), "quality"]

    def rows(self, most: int, unit: str, presentation: Presentation) -> Iterator[tuple[str, ...]]:
        """Yield the first rows as text: what was asked, and what readers see of the figures."""
        yield from zip(*texts_for_readers(self.table, unit, presentation, most).values(), strict=True)


@final
@dataclass(frozen=True, eq=False)
class StatisticAnswers:
    """A statistic that the workload asks for, as `Release.mean` and the like return it."""

    table: pa.Table

    @property
    def _shown(self) -> list[pa.Field]:
        pairs = zip(self.table.schema, self.table.columns, strict=True)
        fields = [field for field, column in pairs if column.null_count < len(self.table)]
        shown = [field for field in fields if BOUND not in (field.metadata or {})]
        return sorted(shown, key=lambda field: not is_key(field))  # keys first, in their order

    @property
    def keys(self) -> int:
        """How many columns say what a row is of."""
        return sum(map(is_key, self._shown))

    def columns(self, confidence: str) -> list[str]:
        """Return the headings."""
        found = [printable(heading(field, (f"{confidence}% from", "to"))) for field in self._shown]
        return [*found, "quality"] if self._graded else found

    @property
    def _graded(self) -> bool:
        return bool(self.table.column("stddev").null_count < len(self.table))

    def rows(self, most: int, unit: str, presentation: Presentation) -> Iterator[tuple[str, ...]]:
        """Yield the first rows as text: what was asked, and what readers see of the figures."""
        texts = texts_for_readers(self.table, unit, presentation, most)
        names = [field.name for field in self._shown] + ([QUALITY] if self._graded else [])
        yield from zip(*(texts[name] for name in names), strict=True)


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
        domain = self._release.domain
        heads: dict[str, str] = {"query": "query"}
        if isinstance(group, ProductGroup):
            sets = {name: own for name, own in group.sets.items() if not isinstance(own, queries.Total)}
            heads = {name: head(domain[name], (own,)) for name, own in sets.items()}
        if self._file is not None:
            columns = [*(self._columns.get(name, name) for name in heads), *FIGURES]
            first, stop = int(self._first[place]), int(self._first[place + 1])
            return GroupAnswers(tuple(heads.values()), self._read(first, stop, columns))
        own = AnswerColumns(domain, [group])
        with one_blas_thread():
            table = pa.Table.from_batches(self._release.batches([group], own))
        columns = [*(own.columns.get(name, name) for name in heads), *FIGURES]
        return GroupAnswers(tuple(heads.values()), table.select(columns))

    def _read(self, first: int, stop: int, columns: list[str]) -> pa.Table:
        """Return some rows and columns of the file; whole row groups are read, one at a time."""
        file: Any = self._file
        found, before = [], 0
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            start, end = max(first - before, 0), min(stop - before, rows)
            if start < end:
                found.append(file.read_row_group(number, columns=columns).slice(start, end - start))
            before += rows
        return pa.concat_tables(found).select(columns)


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
        known[key] = svd_bound_workload(Workload(domain, OneGroup(plain))) if _small(group) else None
    return known[key]


@final
@dataclass(frozen=True)
class OneGroup:
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


_Term = list[tuple[tuple[str, ...], Array]]
"""Sums over columns that are a product: of each factor the attributes, and an array over them."""


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
    terms: list[_Term] = []
    for group in workload:
        if isinstance(group, DenseGroup):
            sums = (np.abs(group.rows()) ** noise.norm).sum(axis=0).reshape(group.sizes)
            terms.append([(group.attributes, sums)])
            continue
        factor = 1.0
        term: _Term = []
        for name, predicates, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
            column = _column_sums(predicates, size, noise.norm)
            if column is None:
                return None
            if column.min() == column.max():
                factor *= float(column[0])
            else:
                term.append(((name,), column))
        terms.append([((), np.array(factor)), *term])
    names = workload.domain.sort({name for term in terms for own, _ in term for name in own})
    sizes = {name: workload.domain[name].size for name in names}
    if math.prod(sizes.values()) > _CELLS:
        return _ascended(terms, sizes), False
    total = np.zeros(tuple(sizes.values()))
    for term in terms:
        total += math.prod(_over(sums, attributes, sizes) for attributes, sums in term)
    return float(total.max()), True


def _column_sums(predicates: Predicates, size: int, norm: int) -> Array | None:
    """Return the sum of |entry|^norm over every column of a predicate set; None where it would take long."""
    known = isinstance(predicates, queries.Indicators) or norm == 2
    if known and (size <= _VALUES or predicates.symmetric(size) is not None):
        return predicates.column_sums(size, norm)
    return predicates.column_sums(size, norm) if predicates.count(size) * size <= _ENTRIES else None


def _over(sums: Array, attributes: Sequence[str], sizes: Iterable[str]) -> Array:
    """Return an array over some attributes in a shape that broadcasts over all of them."""
    own = dict(zip(attributes, sums.shape, strict=True))
    return sums.reshape([own.get(name, 1) for name in sizes])


def _ascended(terms: Sequence[_Term], sizes: Mapping[str, int]) -> float:
    """Return the largest sum that is found by going uphill, one attribute at a time, from two cells."""
    best = 0.0
    for start in (0.0, 0.5):
        cell = {name: int(start * (size - 1)) for name, size in sizes.items()}
        for name in ("", *sizes, *sizes):  # the first is none: the cell by itself
            along = np.zeros(sizes.get(name, 1))
            for term in terms:
                # along this attribute, at the cell of all others
                places = [[slice(None) if n == name else cell[n] for n in own] for own, _ in term]
                along += math.prod(sums[tuple(place)] for place, (_, sums) in zip(places, term, strict=True))
            cell[name] = int(np.argmax(along))
            best = max(best, float(along[cell[name]]))
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
    groups = (one.group for one in release.tables if one.group is not None)
    asked = dict.fromkeys(own for group in groups if (own := _cumulated(group)) is not None)
    for name, others in list(asked)[:_MOST]:
        title = f"{name} by {others[0]}" if others else name
        yield title, release.quantile(name, by=others)


def _cumulated(group: Group) -> tuple[str, tuple[str, ...]] | None:
    """Return the attribute that a group cumulates, and those by which it does; None where it does not."""
    if not isinstance(group, ProductGroup) or not 1 <= len(group.attributes) <= 2:
        return None
    along, others = [], []
    for (name, own), size in zip(group.sets.items(), group.sizes, strict=True):
        if isinstance(own, queries.Prefix) and size <= MAX_VALUES:
            along.append(name)
        elif isinstance(own, queries.Identity) and size <= MAX_STRATA:
            others.append(name)
        else:
            return None
    return (along[0], tuple(others)) if len(along) == 1 else None
