"""A lower bound on the loss of every Gaussian strategy: F(p)^2, F(p) the nuclear norm of W diag(p)^(1/2).

Any distribution p on the cells gives one. At the uniform p it is the singular value bound; else p is a
product of distributions of the attributes, tuned from the dual points of a solved decomposition. F(p) is a
sum over sectors of the attributes whose queries are all symmetric: of small ones the eigenvalues are
computed, and two traces bound that of the others from below (`triples`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import Array, kronecker
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import Workload
from matrixdp.selection.bounds.terms import (
    LEAST_DISTRIBUTION,
    Solved,
    asked_terms,
    mean_duals,
    measured_terms,
)
from matrixdp.selection.bounds.traces import Tied
from matrixdp.selection.bounds.triples import Operator
from matrixdp.selection.compose.decomposition import solve_decomposition
from matrixdp.selection.compose.sub_solver import SubSolver
from matrixdp.selection.compose.weight_vectors import uniform_weights
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.singular_values import svd_bound_gram
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.problem.residuals import Pieces, Split, split_workload

#: What rounding may add to a bound of positive terms, generously, and where terms have signs.
_ROUNDING = 1e-11
_SIGNED_ROUNDING = 1e-9
#: What depends on the distributions is made again at better ones while that gains so much.
_GAIN = 2e-3
#: How often what depends on the distributions is made again; with joint strategies over more than
#: `Limits.slow_cells` cells, only where the loss is above the bound by a factor between.
_ROUNDS = 3
_NEAR_LOSS = 1.02
_FAR_LOSS = 1.5
#: Steps by which distributions are tuned, few where those take long.
_STEPS = 30
_FEW_STEPS = 5
#: Cubes of the dimensions of sectors whose eigenvalues are computed, in all; with ``certify`` (on differences
#: of five attributes it takes the gap from 21.4% to 5.8%), and of a whole spectrum.
MOST_SECTOR_WORK = 4e8
THOROUGH_WORK = 4e9
_MOST_SPECTRAL_WORK = 1e11


def product_bound(workload: Workload, certify: bool = False) -> tuple[float, str] | None:
    """Return a lower bound on the weighted loss of every Gaussian strategy at privacy cost 1, and its scope.

    Twice that is one for Laplace noise. None where the workload is too large; see `decomposition_bound`.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": 3, "b": 4}), mdp.marginals(1))
    >>> round(product_bound(workload)[0], 6), product_bound(workload)[1]
    (11.68589, 'every Gaussian strategy')
    """
    try:
        split = split_workload(workload)
        sizes = [size for size, is_free in zip(split.sizes, split.free, strict=True) if is_free]
        if max(sizes, default=0) > LIMITS.spectral_cells or split.coupled_apart:
            return None
        bound = decomposition_bound(*solve_decomposition(split, LIMITS.inner_gap), certify)
    except TooLargeError:
        return None
    return None if bound is None else (bound, f"every {GAUSSIAN.title} strategy")


def decomposition_bound(
    split: Split, solver: SubSolver, solved: Solved, certify: bool = False
) -> float | None:
    """Return a lower bound on the loss of every Gaussian strategy, or None where it is out of reach.

    To ``certify`` takes longer for a higher bound: the eigenvalues of larger sectors are computed, too.

    References
    ----------
    docs/mathematics.md, section 9, theorems 10 and 11.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.selection.compose.decomposition import solve_decomposition
    >>> from matrixdp.selection.problem.residuals import split_workload
    >>> domain = mdp.Domain({f"a{i}": range(10) for i in range(6)})
    >>> split = split_workload(mdp.Workload(domain, mdp.kway([1, 2], "prefix")))
    >>> solution = solve_decomposition(split, 1e-6)
    >>> loss = sum(len(sub.marginals) * s.loss**0.5 for sub, s in solution[2]) ** 2
    >>> 1 < loss / decomposition_bound(*solution) < 1.04
    True
    """
    if split.coupled_apart:
        return None
    loss = sum(len(sub.marginals) * math.sqrt(solution.loss) for sub, solution in solved) ** 2
    joint = [block.found for _, solution in solved for block in solution.blocks if len(block.axes) > 1]
    cells = max((one.cells for one in joint if isinstance(one, Factor)), default=0)
    # what takes long is not done again for a bound that proves little, or almost all
    least, most = (0.0, math.inf) if certify or cells <= LIMITS.slow_cells else (_NEAR_LOSS, _FAR_LOSS)
    best, p = 0.0, mean_duals(split, solved)
    where: tuple[Operator, list[Array]] | None = None
    for _ in range(_ROUNDS):
        try:
            operator, rooted = operator_at(split, solver, solved, p)
        except TooLargeError:
            return None
        start = p
        found, p = tuned(operator, start, _FEW_STEPS if rooted else _STEPS)
        gain = found / max(best, 1e-300) - 1.0
        # what is best for T1^3 / T2 need not be for the eigenvalues of small sectors
        for one in (start, p) if where is None else (p,):
            value = nuclear_norm(operator, one, MOST_SECTOR_WORK)
            if where is None or value > best:
                best, where = value, (operator, one)
        if not rooted or gain < _GAIN or not least <= loss / (best * best) <= most:
            break
    assert where is not None
    if certify:
        best = max(best, nuclear_norm(*where, THOROUGH_WORK))
    signed = not all(slot.gram.definite for slot in split.slots)
    return best * best * (1.0 - (_SIGNED_ROUNDING if signed else _ROUNDING))


def operator_at(split: Split, solver: SubSolver, solved: Solved, p: Sequence[Array]) -> tuple[Operator, bool]:
    """Return T1 and T2 of a solved decomposition, and whether its covariances depend on the distributions p.

    Raises TooLargeError if there are too many subsets, terms or triples, or matrices over too many values.
    """
    found, classes, rooted = measured_terms(split, solver, solved, p)
    return Operator(split, found, classes), rooted


def tuned(operator: Operator, p: Sequence[Array], steps: int = _STEPS) -> tuple[float, list[Array]]:
    """Return F by traces at the best distributions that are found, and those.

    T2 is linear in every attribute's 1 / p; where it is g'(1 / p), the best p is proportional to sqrt(g).
    """
    current = [_distribution(one) for one in p]
    roots, slopes = operator.roots(current)
    best, power = float(roots.sum()), 1.0
    for _ in range(steps):
        trial = []
        for one, slope in zip(current, slopes, strict=True):
            step = one ** (1.0 - power) * np.sqrt(np.maximum(slope, 0.0)) ** power
            trial.append(_distribution(step) if slope.any() else one)
        roots, found = operator.roots(trial)
        value = float(roots.sum())
        if value > best:
            gain = value / best - 1.0
            best, current, slopes = value, trial, found
            if gain < LIMITS.gain:
                break
        else:
            power *= 0.5
            if power < 0.2:
                break
    return best, current


def _distribution(values: Array) -> Array:
    kept = np.maximum(values / float(values.sum()), LEAST_DISTRIBUTION / len(values))
    return np.asarray(kept / float(kept.sum()))


def nuclear_norm(operator: Operator, p: Sequence[Array], most_work: float) -> float:
    """Return a lower bound on F(p), with the smallest sectors exact while their work is not above a limit."""
    total, work = 0.0, 0.0
    roots, _ = operator.roots(p)
    sectors = [
        (sector_cells(operator, sector), sector, count, root)
        for (sector, count), root in zip(operator.sectors, roots.tolist(), strict=True)
    ]
    for cells, sector, count, root in sorted(sectors):
        work += float(cells) ** 3
        total += max(root, count * sector_norm(operator, sector, p)) if root and work <= most_work else root
    return total


def sector_cells(operator: Operator, sector: int) -> int:
    """Return the dimensions of a sector, its symmetric attributes left out."""
    lattice = operator.lattice
    sizes = np.array([*(len(operator.traces.weights[type_]) - 1.0 for type_ in lattice.types[:-1]), 1.0])
    return int(sizes[lattice.members[lattice.places[sector]]].prod(axis=1).sum())


def sector_norm(operator: Operator, sector: int, p: Sequence[Array]) -> float:
    """Return the sum of the singular values of W diag(p)^(1/2) within a sector."""
    lattice, weights = operator.lattice, operator.traces.weights
    sides: dict[int, tuple[Array, Array]] = {}
    members = [
        tuple(own[:order].tolist()) for own, order in zip(lattice.members, lattice.orders, strict=True)
    ]
    places = lattice.places[sector].tolist()
    for i in {i for place in places for i in members[place]}:
        type_ = lattice.types[i]
        root = np.sqrt(p[type_])
        basis = scipy.linalg.null_space(root[None, :])
        sides[i] = root[:, None] * basis, (basis.T @ (weights[type_] / root))[:, None]
    theta = lattice.thetas(operator.squares(p))
    asked: list[list[Array]] = []
    metric: list[list[Array]] = []
    for first in places:
        unions = lattice.unions(first)
        asked.append([])
        metric.append([])
        for second in places:
            cells = [math.prod(sides[i][0].shape[1] for i in members[one]) for one in (first, second)]
            asked[-1].append(np.zeros(cells))
            metric[-1].append(np.zeros(cells))
            union = int(unions[second])
            if union < 0:
                continue
            # a subset makes S Q of an attribute that it keeps, and w of one that it does not
            left, right = (
                [
                    sides[i][0] if i in members[one] else weights[lattice.types[i]][:, None]
                    for i in members[union]
                ]
                for one in (first, second)
            )
            slots = operator.slots[union][:, members[union]]
            for coefficient, own in zip(operator.coefficients[union], slots, strict=True):
                if coefficient != 0.0:
                    grams = [operator.traces.grams[slot] for slot in own]
                    asked[-1][-1] += coefficient * _between(left, grams, right)
            factors = []
            for i in members[union]:
                apart = sides[i][1]
                both = i in members[first] and i in members[second]
                factors.append(np.eye(len(apart)) if both else apart if i in members[first] else apart.T)
            metric[-1][-1] += theta[union] * kronecker(factors)
    middle = np.block(metric)
    spectrum = scipy.linalg.eigvalsh(middle)
    if not float(spectrum[0]) > LIMITS.rank * len(spectrum) * float(spectrum[-1]):
        return 0.0  # as good as singular: rounding errors decide what its eigenvalues are
    values = scipy.linalg.eigh(np.block(asked), middle, eigvals_only=True)
    # an eigenvalue of 0 comes out as a rounding error, whose root would raise the bound noticeably
    condition = float(spectrum[-1] / spectrum[0])
    rounding = 4 * len(values) * np.finfo(np.float64).eps * condition * max(float(values[-1]), 0.0)
    kept = values[values > rounding] - rounding
    spread = [float(len(weights[lattice.types[i]])) for i in lattice.spreads[sector]]
    return float(np.sqrt(kept).sum()) * math.prod((n - 1.0) / math.sqrt(n) for n in spread)


def _between(left: Sequence[Array], grams: Sequence[Array | Tied], right: Sequence[Array]) -> Array:
    """Return L' V R for Kronecker products L and R, and for one V or that of explicit queries."""
    if not any(isinstance(gram, Tied) for gram in grams):
        plain = [gram for gram in grams if not isinstance(gram, Tied)]
        return np.asarray(kronecker(a.T @ gram @ b for a, gram, b in zip(left, plain, right, strict=True)))
    tied = [gram for gram in grams if isinstance(gram, Tied)]
    order = np.argsort([gram.axis for gram in tied], kind="stable")
    tensor = np.moveaxis(tied[0].tensor, np.arange(len(tied)) + 1, order + 1)
    one, other = (
        reduce(lambda rows, side: np.tensordot(rows, side, axes=(1, 0)), own, tensor).reshape(len(tensor), -1)
        for own in (left, right)
    )
    return np.asarray(one.T @ other)


def svd_bound_workload(workload: Workload) -> float | None:
    """Return the SVD bound of a workload on its loss (noise variance 1), or None where it is not known.

    It is known where the attributes on which groups differ have few cells together, and else where those
    whose queries are not all symmetric have.

    References
    ----------
    McKenna et al., journal version, Theorems 5 and 12.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 100, "b": 50, "c": 7, "d": 4, "e": 2})
    >>> workload = mdp.Workload(domain, mdp.marginals([0, 1, 2, 3, 4, 5]))
    >>> round((2 * svd_bound_workload(workload) / workload.queries) ** 0.5, 2)  # published: 2.63
    2.63
    """
    shape = KronSum.of(workload.domain, workload.groups)
    if shape.cells > LIMITS.spectral_cells:
        return uniform_bound(workload)
    bound = 1.0
    for asked in shape.factored.values():
        size, symmetric = asked.size, asked.symmetric
        if symmetric is not None:
            root = math.sqrt(symmetric[0]) * (size - 1) + math.sqrt(symmetric[0] + size * symmetric[1])
            bound *= root * root / size
        elif size > LIMITS.spectral_cells:
            return None
        else:
            bound *= svd_bound_gram(asked.matrix())
    if not shape.joint:
        return bound * shape.weight
    try:
        return bound * svd_bound_gram(shape.dense(shape.joint))
    except TooLargeError:
        return None


def uniform_bound(workload: Workload) -> float | None:
    """Return F^2 at the uniform p, from the eigenvalues of all sectors; None where one is too large."""
    split = split_workload(workload)
    free = [size for size, is_free in zip(split.sizes, split.free, strict=True) if is_free]
    if split.coupled_apart or max(free, default=0) > LIMITS.spectral_cells:
        return None
    try:
        operator = Operator(split, *asked_terms(split, Pieces(split, uniform_weights(split))))
    except TooLargeError:
        return None
    cells = [sector_cells(operator, sector) for sector, _ in operator.sectors]
    if max(cells) > LIMITS.spectral_cells or sum(float(n) ** 3 for n in cells) > _MOST_SPECTRAL_WORK:
        return None
    p = uniform_weights(split)
    return sum(count * sector_norm(operator, sector, p) for sector, count in operator.sectors) ** 2
