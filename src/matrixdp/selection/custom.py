"""Strategies of a user's own: query groups that are measured as they are, each with its share of the cost.

A strategy does not depend on its scale, so numbers are taken for integers over a common denominator wherever
that is small, and kept exactly; others are rounded as optimized strategies are. Several parts become one
matrix over all their cells where that fits, which is their global least squares.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, TooLargeError, WorkloadError
from matrixdp.exact import IdentityMatrix, MeasuredMatrix
from matrixdp.exact.linear import Array, kronecker
from matrixdp.exact.resources import one_blas_thread
from matrixdp.noise import Noise
from matrixdp.plans import Block, Direct, Local, Part, Plan, Pooled, Union
from matrixdp.privacy.unit import Unit
from matrixdp.queries import Group, Identity, ProductGroup, Total, Workload
from matrixdp.queries.workload import Targets, as_plain
from matrixdp.selection.auto import Trials, with_bound
from matrixdp.selection.compose.rounding import (
    check_measurable,
    explicit_matrix,
    measured_factor,
    small_integers,
)
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.minimax import uniform_variance
from matrixdp.selection.reduce import reduce
from matrixdp.selection.selection import Certificate, Selection, bound_for, charged
from matrixdp.selection.targets import of_figures, targeted

#: Numbers over a common denominator are kept exactly while numerators stay below this.
_MOST_EXACT = 1 << 24
#: Entries of stacked parts are less than this.
_MOST_STACKED = 1 << 31
#: By what the least precise of stacked parts is multiplied at least, where no small integers do.
_MULTIPLIER = 4_096

_LOG = logging.getLogger(__name__)

GIVEN = "given"
"""What strategies that were given, not selected, have instead of a mechanism."""

#: A common denominator is sought for at most this many different numbers of a matrix.
_MOST_NUMBERS = 4_096
#: The most entries of a strategy that is given.
MAX_GIVEN_ENTRIES = 50_000_000
#: Several parts are one matrix up to this many cells.
MAX_STACKED_CELLS = 2_048


@final
@dataclass(frozen=True, eq=False)
class GivenPart:
    """What is measured on one marginal.

    Attributes
    ----------
    name : str
        What it is called in messages.
    factors : tuple of (attributes, rows)
        Rows over the cells of some attributes each, None for the identity; the part is their product.
    share : float
        Of the privacy cost; shares are relative to one another.
    """

    name: str
    factors: tuple[tuple[tuple[str, ...], Array | None], ...]
    share: float


def given_part(group: Group, share: float) -> GivenPart:
    """Return the part that measures the queries of a group, without attributes that it asks the total of.

    Raises
    ------
    WorkloadError
        If the group has weights: what is measured has rows of its own scale, and a share.
    TooLargeError
        If its predicates are too many numbers to be written out.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> [group] = mdp.product(sex="identity", age="prefix").expand(mdp.Domain({"sex": 2, "age": 3}))
    >>> [(names, None if rows is None else rows.shape) for names, rows in given_part(group, 1.0).factors]
    [(('sex',), None), (('age',), (3, 3))]
    """
    if group.query_weights is not None or group.weight != 1.0:
        expected = "`share` of the privacy cost, and rows of a matrix multiplied by what they are to weigh"
        raise WorkloadError.at((group.name,), "weights in a strategy", expected)
    if not isinstance(group, ProductGroup):
        _check_written(group.name, group.queries, math.prod(group.sizes))
        return GivenPart(group.name, ((group.attributes, group.rows()),), share)
    factors: list[tuple[tuple[str, ...], Array | None]] = []
    for name, predicates, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
        if predicates.key(size) == Identity().key(size):
            factors.append(((name,), None))
        elif predicates.key(size) != Total().key(size):
            _check_written(f"{group.name}, {name}", predicates.count(size), size)
            factors.append(((name,), predicates.rows(size)))
    return GivenPart(group.name, tuple(factors), share)


def _check_written(name: str, rows: int, columns: int) -> None:
    if rows * columns > MAX_GIVEN_ENTRIES:
        raise TooLargeError(
            f"{name}: a matrix of {rows} rows and {columns} columns would be measured; the limit is "
            f"{MAX_GIVEN_ENTRIES:,} entries. Give it as a product, a set for each attribute"
        )


def exact_integers(rows: Array) -> NDArray[np.int64] | None:
    """Return integers without a common factor that are proportional to a matrix, or None.

    A number is read as the shortest decimal that is written for it: 0.1 is a tenth.

    Examples
    --------
    >>> exact_integers(np.array([[0.5, 0.1], [0.0, 2.0]]))
    array([[ 5,  1],
           [ 0, 20]])
    >>> exact_integers(np.array([[np.pi, 1.0]])) is None
    True
    """
    numbers = np.unique(np.abs(rows))
    scale = 1
    if (numbers != np.rint(numbers)).any():
        scale = 0
        if len(numbers) <= _MOST_NUMBERS:
            scale = math.lcm(*(Fraction(repr(float(number))).denominator for number in numbers))
            scale = 0 if scale * Fraction(float(numbers[-1])) >= _MOST_EXACT else scale
    elif numbers[-1] >= 2.0**53:
        scale = 0
    if scale == 0:
        return small_integers(rows)
    entries = np.rint(rows * scale).astype(np.int64)
    return np.asarray(entries // max(int(np.gcd.reduce(entries.ravel())), 1))


def given_plan(domain: Domain, parts: Sequence[GivenPart], noise: Noise) -> Plan:
    """Return the plan that measures parts, each at its share of the privacy cost.

    One part is measured as it is; parts that have the same matrix on each attribute are pooled; others become
    one matrix over all their cells, or where that is too large a union of products. All of these are answered
    by least squares; where even a union does not fit, parts are answered each by itself and averaged.

    Raises
    ------
    WorkloadError
        If a part measures nothing, or its matrix cannot be measured as integers.
    TooLargeError
        If a matrix has too many columns.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"age": 4})
    >>> groups = mdp.product(age={"matrix": [[1, 1, 0, 0], [0, 0, 1, 1]]}), mdp.product(age="identity")
    >>> parts = [given_part(entry.expand(domain)[0], share) for entry, share in zip(groups, (1.0, 3.0))]
    >>> given_plan(domain, parts, LAPLACE).parts[0].blocks[0].matrix.entries[[0, 2]]
    array([[1, 1, 0, 0],
           [3, 0, 0, 0]])
    """
    total = math.fsum(part.share for part in parts)
    measured = [_measured_part(domain, part, noise) for part in parts]
    if len(parts) == 1:
        return Direct(domain, (measured[0].at_cost(noise),), noise)
    pooled = _pooled(domain, measured, [part.share / total for part in parts], noise)
    if pooled is not None:
        return pooled
    names = domain.sort({name for part in measured for name in part.attributes})
    if not names:  # every part measures the total: together, once
        return Direct(domain, (measured[0].at_cost(noise),), noise)
    cells, rows = domain.cells(names), sum(part.rows for part in measured)
    if cells <= MAX_STACKED_CELLS and rows * cells <= LIMITS.written_entries:
        with _measurable("the strategy"):
            block = Block(names, _stacked(domain, names, parts, noise))
        return Direct(domain, (Part(names, (block,), 1.0).at_cost(noise),), noise)
    own = tuple(p.at_cost(noise, g.share / total) for p, g in zip(measured, parts, strict=True))
    if all(len(block.attributes) == 1 for part in own for block in part.blocks):
        union = Union(domain, own, noise)
        with suppress(TooLargeError):
            _ = union.analysis  # where the parts have too many unknowns in common, that says so
            return union
    return Local(domain, own, noise)


def _measured_part(domain: Domain, part: GivenPart, noise: Noise) -> Part:
    blocks = []
    for names, rows in part.factors:
        if rows is None:
            blocks.append(Block(names, IdentityMatrix(domain.cells(names))))
            continue
        if not rows.any():
            found = f"a matrix of {len(rows)} rows that are all zeros"
            raise WorkloadError.at((part.name,), found, "rows that measure something")
        with _measurable(part.name):
            blocks.append(Block(names, _measured(rows, noise)))
    attributes = domain.sort([name for names, _ in part.factors for name in names])
    return Part(attributes, tuple(blocks), 1.0)


@contextmanager
def _measurable(name: str) -> Iterator[None]:
    """Turn the refusal of a matrix into a user's error."""
    try:
        yield
    except NumericalError as error:
        expected = "a matrix of integers or fractions, its entries of like size"
        raise WorkloadError.at((name,), str(error), expected) from None


def _measured(rows: Array, noise: Noise) -> MeasuredMatrix:
    exact = exact_integers(rows)
    if check_measurable(rows if exact is None else exact.astype(np.float64)):
        return IdentityMatrix(rows.shape[1])
    if exact is not None:
        return explicit_matrix(exact)
    return measured_factor(rows / float(noise.column_norms(rows).max()), noise)


def _pooled(domain: Domain, parts: Sequence[Part], shares: Sequence[float], noise: Noise) -> Plan | None:
    """Return the pooled plan of parts that have one matrix for each attribute, or None."""
    matrices: dict[str, MeasuredMatrix] = {}
    for part in parts:
        for block in part.blocks:
            [name, *others] = block.attributes
            known = matrices.setdefault(name, block.matrix)
            if others or known.digest() != block.matrix.digest():
                return None
    if len({part.attributes for part in parts}) < len(parts) or not all(
        matrix.measures_total for matrix in matrices.values()
    ):
        return None
    own = tuple(part.at_cost(noise, share) for part, share in zip(parts, shares, strict=True))
    return Pooled(domain, own, noise)


def _stacked(
    domain: Domain, names: tuple[str, ...], parts: Sequence[GivenPart], noise: Noise
) -> MeasuredMatrix:
    """Return all parts as one matrix over the cells of some attributes, rows scaled by the shares."""
    spread = [_spread(domain, names, part) for part in parts]
    exact = [exact_integers(rows) for rows in spread]
    scales = []
    for rows, whole, part in zip(spread, exact, parts, strict=True):
        norm = float(noise.column_norms(rows if whole is None else whole.astype(float)).max())
        scales.append(part.share ** (1.0 / noise.norm) / norm)
    if all(whole is not None for whole in exact):
        factors = _multipliers(scales)
        largest = max(
            f * int(np.abs(whole).max()) for f, whole in zip(factors, exact, strict=True) if whole is not None
        )
        if largest >= _MOST_STACKED:
            raise NumericalError(f"shares so far apart that integers up to {largest} would be measured")
        stacked = np.vstack([f * whole for f, whole in zip(factors, exact, strict=True) if whole is not None])
        return explicit_matrix(stacked)
    pairs = zip(scales, spread, exact, strict=True)
    rows = np.vstack([s * (own if whole is None else whole) for s, own, whole in pairs])
    return measured_factor(rows / float(noise.column_norms(rows).max()), noise)


def _multipliers(scales: Sequence[float]) -> list[int]:
    """Return integers in the proportions of numbers: small ones where they fit, else to 2^-13."""
    ratios = np.asarray(scales) / min(scales)
    for multiple in range(1, 65):
        if float(np.abs(multiple * ratios - np.rint(multiple * ratios)).max()) < 1e-9 * multiple:
            break
    else:
        multiple = _MULTIPLIER
    return [int(factor) for factor in np.rint(multiple * ratios)]


def _spread(domain: Domain, names: tuple[str, ...], part: GivenPart) -> Array:
    """Return a part's rows over the cells of more attributes."""
    rows = kronecker(np.eye(domain.cells(own)) if factor is None else factor for own, factor in part.factors)
    own = [name for attributes, _ in part.factors for name in attributes]
    tensor = rows.reshape(len(rows), *(domain[name].size for name in own))
    order = [1 + own.index(name) for name in names if name in own]
    shape = [domain[name].size if name in own else 1 for name in names]
    tensor = tensor.transpose(0, *order).reshape(len(rows), *shape)
    sizes = [domain[name].size for name in names]
    return np.ascontiguousarray(np.broadcast_to(tensor, (len(rows), *sizes)).reshape(len(rows), -1))


def evaluate_given(
    workload: Workload,
    measured: Sequence[Group],
    shares: Sequence[float],
    *,
    noise: Noise,
    neighbours: str = "add_remove",
    unit: Unit | None = None,
    objective: str = "sum",
    targets: Targets | None = None,
) -> Selection:
    """Return the strategy that measures query groups, with its error for a workload; see `certified`.

    Parameters
    ----------
    workload : Workload
        What will be asked.
    measured : sequence of Group
        What is measured, each group by itself.
    shares : sequence of float
        Of the privacy cost, one for each group, relative to one another.
    noise : Noise
    neighbours : {"add_remove", "replace"}
    unit : Unit, optional
        What is one person's.
    objective : {"sum", "max"}
        What the certificate is about.
    targets : mapping, optional
        The largest standard errors that groups may have; the certificate is then about the largest ratio.

    Raises
    ------
    UnsupportedQueryError
        If the strategy does not determine a query of the workload.
    WorkloadError
        If a group measures nothing, or its matrix cannot be measured.
    TooLargeError
        If a matrix is too large to be measured.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"age": 8}), mdp.product(age="prefix"))
    >>> [cells] = mdp.product(age="identity").expand(workload.domain)
    >>> evaluate_given(workload, [cells], [1.0], noise=GAUSSIAN).total_squared_error
    36.0
    """
    if objective not in ("sum", "max"):
        raise WorkloadError(f"objective: found {objective!r}; expected sum or max")
    asked = workload if targets is None else targeted(workload, targets)
    largest = objective == "max" or targets is not None
    with one_blas_thread():
        parts = [given_part(group, share) for group, share in zip(measured, shares, strict=True)]
        plan = given_plan(workload.domain, parts, noise)
        analysis = plan.analysis
        if largest:
            loss = max(float(uniform_variance(analysis.variances(g), g).max()) for g in asked)
        else:
            loss = math.fsum(analysis.group(group).weighted for group in asked)
    certificate = Certificate(loss, None, "no bound on all strategies")
    certificate = of_figures(certificate, workload, targets, analysis)
    if unit is not None and unit.per:
        plan = replace(plan, persons=unit)
    _LOG.info("given: %d parts with %s noise", len(plan.parts), noise)
    return charged(
        Selection(
            workload,
            plan,
            GIVEN,
            neighbours,
            certificate,
            "a strategy that was given, not selected",
            "max" if largest else "sum",
            as_plain(targets),
        )
    )


def certified(selection: Selection) -> Selection:
    """Return a strategy with a lower bound on the error of every strategy for its workload.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"age": 8}), mdp.marginals(1))
    >>> found = certified(evaluate_given(workload, workload.groups, [1.0], noise=GAUSSIAN))
    >>> found.certificate.gap < 1e-9
    True
    """
    workload = selection.workload
    asked = targeted(workload, selection.targets) if selection.targets else workload
    with one_blas_thread():
        trials = Trials(reduce(asked).workload, selection.noise, {})
        bound = (trials.whole_bound() if trials.facts.small else None) or trials.lower_bound()
    if bound is not None and selection.objective == "max":
        scope = f"{bound[1]}; about the largest (weighted) variance, from the mean of all"
        bound = bound[0] / asked.queries, scope
    if bound is not None:
        bound = bound_for(selection.plan, *bound)
    certificate = with_bound(selection.certificate, bound)
    certificate = of_figures(certificate, workload, selection.targets, selection.analysis)
    return charged(replace(selection, certificate=certificate))
