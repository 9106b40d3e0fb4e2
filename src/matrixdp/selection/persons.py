"""Strategies for a unit with `per`: the factor on its attribute is the best for all records of a person.

The attribute is measured whole in every part, as in a series, and what is asked of it there is one Gram
matrix V. The best strategy for V under the unit takes the place of the part's own matrix. Where a person's
other attributes are constant its Gram matrix may have entries below 0: her records raise what is asked with
little weight, such as the total, and cost less elsewhere. Where they may change these are cut to 0, as a
person who moves among cells would turn them to her cost; the better of the two, and of the plain values, is
taken at what it really costs. In a series the charge is a sum over rows, for which there is a descent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from matrixdp.domain import Amount
from matrixdp.errors import TooLargeError, UnsupportedQueryError
from matrixdp.exact import CenteredMatrix, IdentityMatrix, MeasuredMatrix, RangeMatrix
from matrixdp.exact.linear import Array, complement
from matrixdp.noise import LAPLACE, Noise
from matrixdp.plans import Block, Part, Plan, Split
from matrixdp.plans.split import SplitAnalysis, residual_weights, subsets
from matrixdp.privacy.unit import Unit
from matrixdp.queries import ProductGroup, Total, Workload
from matrixdp.selection.compose.assembly import assemble
from matrixdp.selection.compose.decomposition import solve_classes, sub_solver_for
from matrixdp.selection.compose.rounding import lower_triangle
from matrixdp.selection.compose.weight_vectors import optimized_weights
from matrixdp.selection.gram.persons import best_by_steps, best_for_persons
from matrixdp.selection.limits import GAP, LIMITS
from matrixdp.selection.problem.gather_groups import gather_groups
from matrixdp.selection.problem.residuals import Pieces, split_workload
from matrixdp.selection.reduce import reduce
from matrixdp.selection.searches.radius import beside_one_radius
from matrixdp.selection.selection import Certificate, Choice, proved

#: Values of the attribute of more of which the best strategy takes minutes.
_MOST_VALUES = 400
#: Cells of constant attributes with noise of their own, each drawn by itself.
_MOST_COPIES = 4_000
NO_BOUND = "no bound is stated for strategies that are made for all records of a person"
#: Eigenvalues of a Gram matrix below this share of the largest are 0.
_RANK = 1e-9
#: What a row of a staircase measures of its own period at least, so that rounding leaves it something.
_WEAK = 2.0**-10


def select_for_persons(
    workload: Workload, unit: Unit, noise: Noise, *, by_period: bool = False
) -> Choice | None:
    """Return the best strategy for a unit with one attribute `per`, with the proof of what it costs persons.

    The loss is at cost 1 of single records, with ``by_period`` at less. None where a group is no
    product, or the attribute has too many values.

    Examples
    --------
    A record in each of twelve months: noise on each month has 3.46 times the error that one record has.

    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"month": 12}), mdp.marginals(1))
    >>> unit = mdp.Unit(id="person", per="month", max_values=12)
    >>> plan, certificate = select_for_persons(workload, unit, GAUSSIAN)
    >>> round((certificate.loss / 12 * plan.cost) ** 0.5 * 12, 2)
    2.23
    """
    if len(unit.per) != 1 or noise.norm != 2 or workload.domain[unit.per[0]].size > _MOST_VALUES:
        return None
    [name] = unit.per
    products = all(isinstance(group, ProductGroup) and group.query_weights is None for group in workload)
    if not products or not any(name in group.attributes for group in workload):
        return None
    reduced = reduce(workload, but=(name,))
    asked = gather_groups(reduced.workload)
    try:
        split = split_workload(asked, undivided=name)
        solver = sub_solver_for(Pieces(split, optimized_weights(split)), noise, GAP)
        begun = assemble(asked.domain, solver, solve_classes(split, solver))
    except (TooLargeError, UnsupportedQueryError):
        return None
    assert isinstance(begun, Split)
    if any(name in block.attributes and len(block.attributes) > 1 for p in begun.parts for block in p.blocks):
        return None
    if any(part.multipliers is not None for part in begun.parts):
        return None
    grams = _asked_of(begun, asked, name)
    values = unit.on(asked.domain).most_values
    known: dict[bytes, list[MeasuredMatrix | None]] = {}
    shapes = []
    for gram in grams:
        gram = gram / np.trace(gram)
        key = np.round(gram, 10).tobytes()
        if key not in known:
            known[key] = (
                _by_steps(gram, values) if by_period else _for_all(best_for_persons(gram, values).gram)
            )
        shapes.append(known[key])
    best: tuple[float, Plan, float] | None = None
    moving = [not set(part.attributes) <= {name, *unit.constant} for part in begun.parts]
    of_persons = partial(replace, persons=unit, by_period=by_period)
    # at a period other records may count than at the one before, so that persons may cost so many times more
    most = float(workload.domain[name].size) if by_period else 1.0
    for still, other in _PAIRS if not by_period else ((0, 0), (1, 1)):
        matrices = [own[other if moves else still] for own, moves in zip(shapes, moving, strict=True)]
        if any(matrix is None for matrix in matrices):
            continue
        parts = list(_parts(begun, name, [m for m in matrices if m is not None], 1.0 / most))
        alone = [of_persons(begun, parts=(part,)).cost for part in parts]
        made = proved(of_persons(reduced.over_values(_shared(begun, parts, alone, asked))))
        loss = math.fsum(made.analysis.group(group).weighted for group in workload)
        charged = loss * made.cost
        if best is None or charged < best[0] * (1.0 - GAP):
            best = charged, made, loss
    assert best is not None
    return best[1], Certificate(best[2], None, NO_BOUND)


def select_ranges(workload: Workload, unit: Unit, noise: Noise) -> Choice | None:
    """Return the best noise by the range of a person's values of `per`; None where there is none.

    Values are measured whole. Beside them are cells of constant attributes, each with noise of its own, and
    the signs of constant attributes of two values; all that is left has Laplace noise on its cells.

    Examples
    --------
    A record in each of twelve months: Laplace noise has the standard error 16.97 at epsilon 1.

    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"month": 12}), mdp.marginals(1))
    >>> unit = mdp.Unit(id="person", per="month", max_values=12)
    >>> plan, certificate = select_ranges(workload, unit, LAPLACE)
    >>> round((certificate.loss / 12 * plan.cost) ** 0.5 * 12, 2)
    5.92
    """
    names = {name for group in workload for name in group.attributes}
    values = workload.domain.cells(unit.per)
    whole = not any(isinstance(workload.domain[name], Amount) for name in names)
    few = sum(group.queries << len(group.attributes) for group in workload) <= LIMITS.radius_variances
    if not (noise == LAPLACE and whole and few and names.intersection(unit.per) and values > 1):
        return None
    reduced = reduce(workload, but=unit.per)
    asked = reduced.workload
    domain, same = asked.domain, names.intersection(unit.constant)
    every = same.intersection(*(group.attributes for group in asked))
    best: Choice | None = None
    for copied in {domain.sort(own) for own in (set(), every, same)}:
        parts = _beside_ranges(asked, unit, copied)
        dimension = values * sum(map(_ranged, parts))
        if domain.cells(copied) > _MOST_COPIES or not 0 < dimension <= LIMITS.radius_dimension:
            continue
        whole_ones = {*unit.per, *copied}
        sizes = {name: domain[name].size for name in domain.names}
        weights = {n: np.zeros(k) if n in whole_ones else residual_weights(k) for n, k in sizes.items()}
        found = beside_one_radius(asked, parts, weights, _ranged, unit)
        if best is None or found[1].loss < best[1].loss:
            best = reduced.over_values(found[0]), found[1]
    return best


def _ranged(part: Part) -> bool:
    return any(isinstance(block.matrix, RangeMatrix) for block in part.blocks)


def _beside_ranges(workload: Workload, unit: Unit, copied: tuple[str, ...]) -> list[Part]:
    """Return a part for every marginal that queries have pieces on, beside the values and cells of copies."""
    domain, found = workload.domain, set[tuple[str, ...]]()
    for group in workload:
        others = (name for name in group.attributes if name not in (*unit.per, *copied))
        found.update(subsets(tuple(name for name in others if domain[name].size > 1)))
    parts = []
    for names in sorted(found, key=lambda names: (len(names), [domain.names.index(name) for name in names])):
        signs = all(domain[name].size == 2 and name in unit.constant for name in names)
        range_of = RangeMatrix if signs else IdentityMatrix
        blocks = [Block(unit.per, range_of(domain.cells(unit.per)))]
        blocks += [Block((name,), IdentityMatrix(domain[name].size)) for name in copied]
        blocks += [Block((n,), CenteredMatrix(2) if signs else IdentityMatrix(domain[n].size)) for n in names]
        parts.append(Part(domain.sort((*unit.per, *copied, *names)), tuple(blocks), 1.0))
    return parts


def _asked_of(plan: Split, workload: Workload, name: str) -> list[Array]:
    """Return what is asked of an attribute in each part, with what all other attributes add to the error."""
    size = workload.domain[name].size
    found = [np.zeros((size, size)) for _ in plan.parts]
    analysis = plan.analysis
    assert isinstance(analysis, SplitAnalysis)
    for group in workload:
        assert isinstance(group, ProductGroup)
        own = analysis.asked(group)
        assert isinstance(own, ProductGroup)
        gram = own.sets.get(name, Total()).gram(size)
        for kept, place in analysis.pieces(own.attributes):
            if place is None:
                continue
            factor = group.weight
            for block in plan.parts[place].blocks:
                if block.attributes != (name,):
                    factor *= float(analysis.axes.variances(block, own.sets).sum())
            for other in own.attributes:
                if other not in kept:
                    factor *= float((analysis.axes.piece(other, own.sets[other]).means ** 2).sum())
            found[place] += factor * gram
    return found


#: The shapes of `_for_all`: of parts of which all else is constant, and of the others.
_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2))


def _for_all(gram: Array) -> list[MeasuredMatrix | None]:
    """Return the strategy, that without entries below 0, if it measures as much, and plain values."""
    cut = np.maximum(gram, 0.0)
    values = np.linalg.eigvalsh(cut)
    return [
        _triangle(gram),
        _triangle(cut) if values[0] > _RANK * values[-1] else None,
        IdentityMatrix(len(gram)),
    ]


def _by_steps(gram: Array, values: int) -> list[MeasuredMatrix | None]:
    """Return the staircase for rows of which each is charged by itself, and plain values."""
    rows = best_by_steps(gram, _triangle(best_for_persons(gram, 1).gram).written(), values)
    rows /= np.linalg.norm(rows, axis=0).max()
    np.fill_diagonal(rows, np.maximum(np.diagonal(rows), _WEAK))
    return [lower_triangle(rows, len(rows), None), IdentityMatrix(len(rows))]


def _triangle(gram: Array) -> MeasuredMatrix:
    """Return the lower triangular matrix of nearly a Gram matrix."""
    values, vectors = np.linalg.eigh(gram / float(np.diagonal(gram).max()))
    kept = values > _RANK * values[-1]
    rows = (vectors[:, kept] * np.sqrt(values[kept])).T
    return lower_triangle(rows, len(rows), complement(vectors[:, kept]))


def _parts(plan: Split, name: str, matrices: list[MeasuredMatrix], cost: float) -> Iterator[Part]:
    for part, matrix in zip(plan.parts, matrices, strict=True):
        own = [Block(b.attributes, matrix if b.attributes == (name,) else b.matrix) for b in part.blocks]
        yield replace(part, blocks=tuple(own)).at_cost(plan.noise, cost)


def _shared(plan: Split, parts: list[Part], alone: list[float], workload: Workload) -> Plan:
    """Return the plan with other parts, of which each costs persons so much, that share a charge best."""
    analysis = SplitAnalysis(plan.domain, parts, [part.variance for part in parts], plan.weights)
    errors = np.zeros(len(parts))
    for group in workload:
        for place, own in analysis.by_part(group, weighted=True).items():
            errors[place] += own
    losses = [error * cost for error, cost in zip(errors, alone, strict=True)]
    shares = plan.noise.best_shares(losses)
    weights = [part.variance * cost / share for part, cost, share in zip(parts, alone, shares, strict=True)]
    whole = math.fsum(part.variance / own for part, own in zip(parts, weights, strict=True))
    made = [replace(part, variance=own * whole) for part, own in zip(parts, weights, strict=True)]
    return replace(plan, parts=tuple(made))
