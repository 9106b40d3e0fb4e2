"""Plans: parts with their shares of the noise; how answers follow from them, and vary, before any data."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, PrivacyError, TooLargeError, WorkloadError
from matrixdp.exact.linear import Array
from matrixdp.noise import LAPLACE, Noise, Radius
from matrixdp.plans.part import Part
from matrixdp.plans.persons import Histories, Steps, Weights
from matrixdp.plans.replacement import Moves, columns, moves
from matrixdp.privacy.unit import Unit
from matrixdp.queries.groups import DenseGroup, Group, MatrixRows, ProductGroup
from matrixdp.queries.predicates import Matrix, Predicates, Total

#: Entries of a matrix of covariances.
MAX_COVARIANCE_ENTRIES = 25_000_000
#: Product groups of more queries are looked through for predicates with equal variances.
COMPRESSED_QUERIES = 1_000_000
#: Predicates of one attribute are written out for that up to this many entries.
_MOST_ENTRIES = 50_000_000
#: Figures that agree to this many digits are equal up to rounding.
_DIGITS = 11


@dataclass(frozen=True)
class GroupError:
    """Error of one query group.

    Attributes
    ----------
    total : float
        Sum of the variances of its queries.
    weighted : float
        The same, each variance multiplied by its weight.
    largest : float
        The largest variance.
    """

    total: float
    weighted: float
    largest: float


NoiseTerms = dict[int, Array]
"""The noise in answers, (queries, variables), by measured parts: standard deviations with signs."""


Batch = tuple[int, int, Group, Array]
"""The place of a group, the first of some of its queries, a group that asks these alone, their estimates."""


class Estimates(ABC):
    """Estimates from one measurement: linear in the noisy answers, and unbiased."""

    @abstractmethod
    def marginal(self, attributes: tuple[str, ...]) -> Array:
        """Return the estimate of a marginal, in the shape of the attributes' sizes.

        What was not measured may be taken as zero, so only queries that are determined may be asked of it.
        """

    @abstractmethod
    def answers(self, group: Group) -> Array:
        """Return the estimates of a group's queries, flat, row-major.

        Raises
        ------
        UnsupportedQueryError
            If a query of the group is not determined.
        """

    def batches(self, groups: Sequence[Group]) -> Iterator[Batch]:
        """Yield the estimates of groups, some queries at a time, those of each group in order."""
        for place, group in enumerate(groups):
            yield place, 0, group, self.answers(group)


class Analysis(ABC):
    """Estimates, variances and covariances of queries under a plan whose noise variances are given.

    Attributes
    ----------
    additive : bool
        Whether the estimate of a sum of queries is always the sum of their estimates, so that covariances
        follow from variances of sums.
    """

    additive: ClassVar[bool] = False
    #: Of a series that goes on: the attribute of time, and how many of its periods are measured.
    through: tuple[str, int] | None = None

    def __init__(self) -> None:
        self._groups: dict[Hashable, GroupError] = {}

    @abstractmethod
    def estimates(self, values: Sequence[Array]) -> Estimates:
        """Return the estimates that follow from the noisy answers of each part, flat."""

    @abstractmethod
    def check_support(self, group: Group) -> None:
        """Raise UnsupportedQueryError if a query of a group is not determined."""

    @abstractmethod
    def variances(self, group: Group) -> Array:
        """Return the variance of every query of a group, flat, row-major.

        Raises
        ------
        UnsupportedQueryError
            If a query of the group is not determined by what the plan measures.
        TooLargeError
            If the group has more queries than can be held.
        """

    def covariance(self, left: Group, i: int, right: Group, j: int) -> float:
        """Return the covariance of query i of one group and query j of another."""
        return float(self.covariances(one_query(left, i), one_query(right, j))[0, 0])

    @abstractmethod
    def covariances(self, left: Group, right: Group, *, paired: bool = False) -> Array:
        """Return the covariances of all queries of one group with those of another.

        Shape (queries of left, queries of right); with ``paired``, for groups of as many queries, only those
        of each query with that in the same place, shape (queries,).

        Raises
        ------
        UnsupportedQueryError
            If a query is not determined by what the plan measures.
        TooLargeError
            If that would be too many numbers.
        WorkloadError
            If groups of different numbers of queries are to be paired.
        """

    def _check_pairs(self, left: Group, right: Group, paired: bool) -> None:
        """Check that covariances exist, and are not too many."""
        if paired and left.queries != right.queries:
            found = f"{left.queries} and {right.queries} queries"
            raise WorkloadError.at(("covariance",), found, "as many of one group as of the other")
        if not paired and left.queries * right.queries > MAX_COVARIANCE_ENTRIES:
            raise TooLargeError(
                f"covariance: a matrix of {left.queries} by {right.queries}; the limit is "
                f"{MAX_COVARIANCE_ENTRIES} entries"
            )
        self.check_support(left)
        self.check_support(right)

    @abstractmethod
    def noise_terms(self, group: Group, most: int) -> NoiseTerms | None:
        """Return how far every noise variable moves answers: standard deviations with signs, by parts.

        Their squares sum to the variances, and those of sums of queries are sums. Of a part with a walk they
        are the coefficients of its rows, whose noise is not independent: see `Walk.variances`. None if that
        would be more than ``most`` entries, or if variables are not told apart.
        """

    def key(self, group: Group) -> Hashable:
        """Return a value equal for groups with equal variances; here for those that ask the same."""
        return group.attributes, questions_key(group)

    def group(self, group: Group) -> GroupError:
        """Return the error of a group; equal groups are analysed once."""
        key = self.key(group)
        if key not in self._groups:
            self._groups[key] = self._error(group)
        return self._groups[key]

    def factors(self, group: ProductGroup) -> Mapping[str, Sequence[Array] | None]:
        """Return for each attribute numbers of its predicates that variances are sums of products of.

        Predicates with the same numbers are interchangeable; None or nothing where they are not told.
        """
        return {}

    def _error(self, group: Group) -> GroupError:
        weights = group.query_weights
        if isinstance(group, ProductGroup) and weights is None and group.queries > COMPRESSED_QUERIES:
            own, counts = different_queries(group, self.factors(group))
            values = self.variances(own).reshape(own.counts)
            total = values
            for repeats in reversed(counts):
                total = total @ repeats
        else:
            values = self.variances(group)
            total = values.sum()
        weighted = float(total) if weights is None else float(values @ weights)
        return GroupError(float(total), weighted * group.weight, float(values.max()))


def questions_key(group: Group) -> Hashable:
    """Return a value equal for groups that ask the same of attributes of equal sizes, weights included."""
    weights = None if group.query_weights is None else group.query_weights.tobytes()
    return type(group).__name__, group.sizes, group.key(), group.weight, weights


def different_queries(
    group: ProductGroup, factors: Mapping[str, Sequence[Array] | None]
) -> tuple[ProductGroup, list[Array]]:
    """Return the queries of a group that differ in their variances, and for each attribute their numbers.

    One predicate stands for all with the same factors: all cells of a marginal, a range and its mirror image.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> [group] = mdp.product(a="prefix").expand(mdp.Domain({"a": 3}))
    >>> found, counts = different_queries(group, {"a": [np.array([2.0, 5.0, 2.0])]})
    >>> found.counts, counts[0].tolist()
    ((2,), [2.0, 1.0])
    """
    predicates: list[Predicates] = []
    counts: list[Array] = []
    for name, chosen, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
        count, own = chosen.count(size), factors.get(name)
        repeats = np.ones(count)
        if own and count > 1 and count * size <= _MOST_ENTRIES:
            table = np.stack(own, axis=1)
            scale = np.abs(table).max(axis=0)
            rounded = np.round(table / np.where(scale > 0, scale, 1.0), _DIGITS)
            _, first, found = np.unique(rounded, axis=0, return_index=True, return_counts=True)
            if len(first) < count:
                chosen, repeats = Matrix(chosen.rows(size)[first]), found.astype(np.float64)
        predicates.append(chosen)
        counts.append(repeats)
    return replace(group, predicates=tuple(predicates)), counts


def one_query(group: Group, index: int) -> Group:
    """Return a group of one query of another."""
    if isinstance(group, ProductGroup):
        positions = np.unravel_index(index, group.counts) if group.counts else ()
        own = zip(group.predicates, group.sizes, positions, strict=True)
        chosen = (p if isinstance(p, Total) else Matrix(_row(p, n, int(i))) for p, n, i in own)
        return ProductGroup(group.name, group.attributes, tuple(chosen), group.sizes)
    if group.summands:
        place = group.place(index)
        rows = np.sum([sign * one_query(product, place).rows() for sign, product in group.summands], axis=0)
    else:
        rows = group.rows()[index : index + 1]
    return DenseGroup(group.name, group.attributes, MatrixRows(rows), group.sizes)


def _row(predicates: Predicates, size: int, index: int) -> Array:
    """Return one query as a row, without writing out all of them where they have few entries."""
    entries = predicates.entries(size)
    if entries is None:
        return predicates.rows(size)[index : index + 1]
    query, value, entry = entries
    row = np.zeros((1, size))
    row[0, value[query == index]] = entry[query == index]
    return row


#: Every kind of plan by its name, which archives refer to it by.
PLAN_KINDS: dict[str, type[Plan]] = {}
#: How far the cost of a plan may lie above 1, in floating point.
_COST_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Plan(ABC):
    """What will be measured at privacy cost 1: parts, their noise, and how answers follow from them.

    Every kind of plan is a subclass that names itself, ``class Own(Plan, kind="own")``, and is a frozen
    dataclass. What it has beside these fields are mappings of names to arrays of floats; archives keep them.

    Parameters
    ----------
    domain : Domain
        The attributes.
    parts : tuple of Part
        Their costs at ``variance`` add up to at most 1 for each record; see `columns`.
    noise : Noise
        The noise that every row is measured with.
    persons : Unit, optional
        The unit that it is planned for, where that has `per`. Its costs are then a person's charge over the
        square of the records that she has at most, so that those records cost the charge.
    proof : ndarray of int64, shape (2 n + 3, n), optional
        With `persons`, for n values of `per`, multipliers that prove a smaller charge: nu, beta (and zeros),
        kappa, u, then n rows of N and n of Lambda (docs/privacy.md), in units of 2^-26 of the largest overlap
        of a record with itself. They are checked wherever a cost is computed.
    by_period : bool
        With `persons`, whether rows are measured one period after another, of the records that count then.
        The charge is then the sum over periods of what any records cost in the rows that end there.

    Attributes
    ----------
    kind : str
        The name of the kind.
    words : str
        What is measured, for records.

    Raises
    ------
    PrivacyError
        If nothing is measured, or at a cost above 1: its figures would be those of another budget.
    """

    kind: ClassVar[str]
    words: ClassVar[str]
    #: Whether a part may have the joint noise of a walk, and parts may share one radius.
    walks: ClassVar[bool] = False
    radii: ClassVar[bool] = False

    domain: Domain
    parts: tuple[Part, ...]
    noise: Noise
    persons: Unit | None = field(default=None, kw_only=True)
    proof: NDArray[np.int64] | None = field(default=None, kw_only=True)
    by_period: bool = field(default=False, kw_only=True)

    def __init_subclass__(cls, kind: str) -> None:
        cls.kind = kind
        if PLAN_KINDS.setdefault(kind, cls).__qualname__ != cls.__qualname__:
            raise TypeError(f"two kinds of plans are called {kind!r}")

    def __post_init__(self) -> None:
        if not self.parts:
            raise PrivacyError("a plan without parts measures nothing")
        if not isinstance(self.noise, Noise):
            raise PrivacyError(f"noise: found {self.noise!r}; expected a Noise")
        if any(part.walk for part in self.parts) and not (self.walks and self.noise == LAPLACE):
            told = f"{self.noise} noise in a {self.kind} plan: the noise of a walk, which it does not have"
            raise PrivacyError(
                f"{told}; expected another kind of plan, under {LAPLACE} noise", code="not-supported"
            )
        self._check_radius()
        if self.persons is not None:
            if not self.persons.per:
                raise PrivacyError(f"persons: found {self.persons!r}; expected a unit with per, or None")
            self.persons.on(self.domain)
        if self.proof is not None and (self.persons is None or self.proof.dtype != np.int64):
            raise PrivacyError("proof: expected integers, beside persons")
        if self.by_period and (self.persons is None or self.noise.norm == 1 or len(self.persons.per) != 1):
            raise PrivacyError("by_period: expected Gaussian noise and persons with one attribute per")
        if not self.cost <= 1.0 + _COST_TOLERANCE:
            raise PrivacyError(f"a plan that costs {self.cost:.9g}; expected at most 1")

    def _check_radius(self) -> None:
        """Reject one radius in a plan that does not have it, or of more than one scale."""
        under = [self.parts[place] for place in self.under_radius]
        if not under:
            return
        if not self.radii or self.noise != LAPLACE:
            told = f"{self.noise} noise in a {self.kind} plan: parts under one radius, which it does not have"
            expected = f"one part for each marginal under {LAPLACE} noise"
            raise PrivacyError(f"{told}; expected {expected}", code="not-supported")
        if len({part.variance for part in under}) > 1:
            raise PrivacyError("parts under one radius have noise of one scale")
        if len({part.copied for part in under}) > 1:
            raise PrivacyError("parts under one radius have their own noise for cells of the same attributes")
        assert self.radius is not None  # and its widths are proper

    def check_distinct(self) -> None:
        """Refuse two parts on one marginal."""
        if len(self.positions) != len(self.parts):
            raise NumericalError("a plan has one part for each marginal")

    @cached_property
    def positions(self) -> dict[tuple[str, ...], tuple[int, ...]]:
        """The places of the parts on each marginal."""
        found: dict[tuple[str, ...], tuple[int, ...]] = {}
        for place, part in enumerate(self.parts):
            found[part.attributes] = (*found.get(part.attributes, ()), place)
        return found

    @cached_property
    def under_radius(self) -> tuple[int, ...]:
        """The places of the parts that share one radius."""
        return tuple(place for place, part in enumerate(self.parts) if part.width is not None)

    @cached_property
    def radius(self) -> Radius | None:
        """The joint noise of the parts that share one radius."""
        under = [self.parts[place] for place in self.under_radius]
        widths = tuple(part.width for part in under if part.width is not None)
        if not under:
            return None
        cells, ranged = zip(*((part.cells, part.ranged) for part in under), strict=True)
        return Radius(cells, widths, ranged, under[0].copies)

    @cached_property
    def radius_share(self) -> Fraction:
        """What all records of a person move the radius by, over their number: see `Part.alike_for`."""
        unit = self.persons
        under = [self.parts[place] for place in self.under_radius]
        if unit is None or not under or not all(part.alike_for(unit) for part in under):
            return Fraction(1)
        return Fraction(unit.max_records_each, unit.records)

    def charged_share(self, place: int) -> Fraction:
        """Return by how much the cost of a charged part counts, that of one record being 1."""
        return Fraction(1) if self.parts[place].width is None else self.radius_share

    @cached_property
    def charged(self) -> tuple[int, ...]:
        """The places of the parts whose costs add up: of those under one radius the first stands for all."""
        return tuple(
            place
            for place, part in enumerate(self.parts)
            if part.width is None or place == self.under_radius[0]
        )

    def row_variances(self, noise: Sequence[float]) -> list[float]:
        """Return the noise variances of rows from those that Laplace noise of the same scales has.

        Under one radius that is the variance of independent noise with the same errors.
        """
        found = list(noise)
        if self.radius is not None:
            for place, own in zip(self.under_radius, self.radius.scaled_variances, strict=True):
                found[place] *= self.parts[place].radius_factor * own / self.noise.variance_factor
        return found

    @cached_property
    def cost(self) -> float:
        """The privacy cost by which variances scale: mu squared, or epsilon squared.

        A float; the measurement recomputes it exactly.
        """
        shares = [
            float(self.charged_share(place)) * self.noise.share(self.parts[place], self.parts[place].variance)
            for place in self.charged
        ]
        most = max(math.fsum(row) for row in self.column_shares * shares)
        alone = float(most ** (2.0 / self.noise.norm))
        if self.histories is None:
            return alone
        charge = float(self.histories.charge(self.part_weights)) / float(self.histories.unit.records) ** 2
        return charge if self.by_period else min(charge, alone)

    @property
    def part_weights(self) -> Weights:
        """The weight of each part in costs, 1 / scale^norm, in floating point."""
        parts = self.parts
        found = [self.noise.share(part, part.variance) / self.noise.power_sum(part) for part in parts]
        return [(own, own) for own in found]

    @cached_property
    def histories(self) -> Histories | Steps | None:
        """What the records of a person have in common; None where they cost as many times one record's.

        That is so without `per`, and under Laplace noise, where records in different values cost as much as
        records in one, but for those of `radius_share`.
        """
        if self.persons is None or self.noise.norm == 1:
            return None
        if self.by_period:
            return Steps(self.domain, self.parts, self.persons)
        return Histories(self.domain, self.parts, self.persons, self.proof)

    def check_unit(self, unit: Unit) -> None:
        """Reject a unit that says something else of the records of a person than the plan is made for."""
        expected = self.persons or Unit()
        if (unit.per or expected.per) and unit != expected:
            told = repr(expected) if expected.per else "a unit without per"
            told += ", which the strategy was selected for"
            raise PrivacyError.at(("budget", "unit"), repr(unit), told, code="conflict")

    @property
    def _charged_parts(self) -> list[Part]:
        return [self.parts[place] for place in self.charged]

    @cached_property
    def columns(self) -> NDArray[np.object_]:
        """How far records move each charged part, a row for each kind of records: exact, see `columns`."""
        return columns(self._charged_parts, self.noise.norm)

    @cached_property
    def column_shares(self) -> Array:
        """The same in floating point, relative to the largest of each part."""
        return np.asarray(self.columns / self.columns.max(axis=0), dtype=np.float64)

    @cached_property
    def moves(self) -> Moves:
        """How far a record moves each charged part, and how far replacing one does: exact, see `moves`."""
        under = {name for place in self.under_radius for name in self.parts[place].attributes}
        return moves(self.domain, self._charged_parts, self.noise.norm, self.domain.sort(under))

    @property
    def replacement_cost(self) -> float:
        """The privacy cost of one record replaced by another, or by one out of domain; see `cost`.

        Of a person's records, all of which are replaced by those of another, four times the cost.
        """
        if self.histories is not None:
            return 4.0 * self.cost
        shares = [
            self.noise.share(part, part.variance) / self.noise.power_sum(part) for part in self._charged_parts
        ]
        largest = max(float((table.astype(float) @ shares).max()) for table in self.moves)
        return min(float(largest ** (2.0 / self.noise.norm)), 4.0 * self.cost)

    @abstractmethod
    def analysed(self, noise: Sequence[float]) -> Analysis:
        """Return estimates and errors if the parts are measured with given noise variances."""

    @cached_property
    def analysis(self) -> Analysis:
        """Estimates and errors at privacy cost 1."""
        return self.analysed(self.row_variances([part.variance for part in self.parts]))
