"""How accurate a release is: beside the least possible error, and beside noise added to every query."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any, final

import numpy as np

from matrixdp import queries
from matrixdp.domain import Domain
from matrixdp.exact.linear import Array
from matrixdp.measure.calibration import NoiseScale, least_drawn
from matrixdp.noise import Noise
from matrixdp.plans import Rounds
from matrixdp.queries import DenseGroup, Group, Predicates, Workload
from matrixdp.releases.release import Release
from matrixdp.selection.bounds.lower_bound import svd_bound_workload

#: Groups whose accuracy is shown, at most.
MAX_ACCURACIES = 150

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


@final
@dataclass(frozen=True, eq=False)
class Accuracies:
    """The errors of a release.

    Attributes
    ----------
    rows : sequence of Accuracy
        Of the tables of counts whose accuracy is shown.
    together : Accuracy
        Of all counts.
    counted : int
        How many tables of counts there are.
    straight : float or None
        The standard error of every answer had noise been added to every query of the workload, or, where it
        is not ``exact``, at least that; None where it would take long to compute.
    exact : bool
    aim : str
        What the selection made least, and its certificate is about: RMSE, or a key of the words.
    gap : str or None
        By how many percent that may be above the least possible.
    rounds : bool
        Whether a second round made more counts publishable, at the expense of these errors.
    """

    rows: Sequence[Accuracy]
    together: Accuracy
    counted: int
    straight: float | None
    exact: bool
    aim: str
    gap: str | None
    rounds: bool


def accuracies(release: Release, record: Mapping[str, Any]) -> Accuracies:
    """Return the errors of a release with this record."""
    workload, noise = release.workload, release.measurement.plan.noise
    budget = release.measurement.authorization.budget
    # a replacement costs no less than a removal, so that bounds for the second hold for the first
    scale = noise.error_scale(budget)
    # what is proved of Laplace noise holds for noise on integers to this share
    share = least_drawn(noise, budget)
    called = {one.place: one.title for one in release.tables if one.place is not None}
    known: dict[Hashable, float | None] = {}
    chosen = [place for place in first_places(workload, MAX_ACCURACIES) if place in called]
    bounds = [least_squared_error(release.domain, workload.groups[place], known) for place in chosen]
    # what is proved of strategies does not hold for joint noise
    unknown = release.measurement.tails.joint
    bounds = [
        None if unknown or bound is None else share * bound * noise.variance_factor / scale
        for bound in bounds
    ]
    rows = []
    for place, bound in zip(chosen, bounds, strict=True):
        written, queries = record["groups"][place], workload.groups[place].queries
        root = None if bound is None else math.sqrt(bound / queries)
        errors = float(written["rmse"]), float(written["max_stddev"])
        rows.append(Accuracy(called[place], queries, *errors, root))
    every = bounds if len(chosen) == len(called) else [*bounds, None]
    least = _least_of_all(release, every, scale / share, list(called))
    together = _together(release, record, list(called), least)
    found = workload_sensitivity(_counts(release, list(called)), noise)
    straight = None
    if found is not None:
        alone = found[0] ** (1 / noise.norm) / math.sqrt(scale)
        straight = math.sqrt(NoiseScale.least(alone, 1, noise).variance)
    exact = found is not None and found[1] and budget.neighbours == "add_remove"
    said = aim(release), _gap(release, share), isinstance(release.measurement.plan, Rounds)
    return Accuracies(rows, together, len(called), straight, exact, *said)


def _gap(release: Release, share: float) -> str | None:
    certificate = release.origin.get("certificate")
    said = certificate.get("gap") if isinstance(certificate, Mapping) else None
    if not isinstance(said, float) or said < 0:
        return None
    return release.presentation.say.number(100 * (((1 + said) / share) ** 0.5 - 1), digits=2)


def aim(release: Release) -> str:
    """Return what the selection made least, and its certificate is about: RMSE, or a key of the words."""
    if release.origin.get("objective") != "sum":
        return "aim_largest"
    weighted = any(g.weight != 1 or g.query_weights is not None for g in release.workload)
    return "aim_weighted" if weighted else "RMSE"


def _together(
    release: Release, record: Mapping[str, Any], places: Sequence[int], least: float | None
) -> Accuracy:
    """Return the errors of all published counts together."""
    groups = [(release.workload.groups[place].queries, record["groups"][place]) for place in places]
    queries = sum(number for number, _ in groups)
    squares = math.fsum(number * float(own["rmse"]) ** 2 for number, own in groups)
    largest = max((float(own["max_stddev"]) for _, own in groups), default=0.0)
    root = None if least is None or not queries else math.sqrt(least / queries)
    return Accuracy("all", queries, math.sqrt(squares / max(queries, 1)), largest, root)


def _counts(release: Release, places: Sequence[int]) -> Workload:
    """Return the workload without the groups that only serve statistics, where it has others."""
    groups = release.workload.groups
    if not places or len(places) == len(groups):
        return release.workload
    return Workload(release.domain, *(OneGroup(groups[place]) for place in places))


def _least_of_all(
    release: Release, bounds: Sequence[float | None], scale: float, places: Sequence[int]
) -> float | None:
    """Return a sum of squared errors below which no strategy gets, for all groups together.

    Each group has at least its own bound; the certificate of the selection is about the same sum where
    nothing is weighted, and is as said.
    """
    own = [bound for bound in bounds if bound is not None]
    found = [math.fsum(own)] if len(own) == len(bounds) else []
    certificate = release.origin.get("certificate")
    whole = len(places) == len(release.workload)
    if whole and isinstance(certificate, Mapping) and aim(release) == "RMSE":
        said = certificate.get("lower_bound")
        found += [said / scale] if isinstance(said, float) and said > 0 else []
    return max(found, default=None)


def first_places(workload: Workload, most: int) -> list[int]:
    """Return the places of at most `most` groups: the first of every entry before the second of any."""
    turns = chain.from_iterable(zip_longest(*workload.places))
    return sorted([place for place in turns if place is not None][:most])


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
