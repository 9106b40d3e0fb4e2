"""The bound that a solved decomposition proves on every Gaussian strategy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.selection.bounds import rings
from matrixdp.selection.bounds.exact import sector_dimensions, sector_norm
from matrixdp.selection.bounds.gathered import Gathered
from matrixdp.selection.bounds.lattice import Lattice
from matrixdp.selection.bounds.triples import Operator
from matrixdp.selection.compose.sub_solver import SubSolution, SubSolver
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.problem.residuals import Split, SubWorkload

__all__ = ["decomposition_bound", "operator_of", "within_reach"]

Array = NDArray[np.float64]

#: Entries of the tables by subset and attribute, at most.
_MOST_ENTRIES = 30_000_000
#: How often what depends on the distributions is made again at better ones, and the least relative gain.
_ROUNDS, _GAIN = 3, 2e-3
#: Of joint strategies over more cells it is done only where the loss is above the bound by a factor between.
_DEAR_CELLS, _NEAR, _FAR = 1_000, 1.02, 1.5
#: Steps by which distributions are tuned; few where that is dear.
_STEPS, _FEW_STEPS = 30, 5
#: The cubes of the dimensions of sectors whose eigenvalues are computed, in all; the second to certify.
_MOST_WORK, _THOROUGH_WORK = 4e8, 4e9
#: What floating point may add to a bound of positive terms, generously, and where terms have signs.
_ROUNDING, _SIGNED_ROUNDING = 1e-11, 1e-9


def decomposition_bound(
    split: Split,
    solver: SubSolver,
    solved: Sequence[tuple[SubWorkload, SubSolution]],
    certify: bool = False,
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
    >>> domain = mdp.Domain({f"a{i}": range(10) for i in range(6)})
    >>> solution = solve_decomposition(mdp.Workload(domain, mdp.kway([1, 2], "prefix")), 1e-6)
    >>> loss = sum(len(sub.marginals) * s.loss**0.5 for sub, s in solution[2]) ** 2
    >>> 1 < loss / decomposition_bound(*solution) < 1.04
    True
    """
    found = _proved(split, solver, solved, certify)
    if found is None or not certify:
        return None if found is None else found[0]
    value, operator, p = found
    root = _with_exact_sectors(operator, p, _THOROUGH_WORK)
    return max(value, root * root * (1.0 - _rounding(split)))


def _proved(
    split: Split,
    solver: SubSolver,
    solved: Sequence[tuple[SubWorkload, SubSolution]],
    thorough: bool = False,
) -> tuple[float, Operator, list[Array]] | None:
    """Return the bound, and where it was found: the operator and the distributions by type.

    Unless ``thorough``, what is dear is not done again for a bound that proves little, or almost all.
    """
    if split.coupled_apart:
        return None
    loss = sum(len(sub.marginals) * math.sqrt(solution.loss) for sub, solution in solved) ** 2
    joint = [block.found for _, solution in solved for block in solution.blocks if len(block.axes) > 1]
    cells = max((one.cells for one in joint if isinstance(one, Factor)), default=0)
    least, most = (0.0, math.inf) if thorough or cells <= _DEAR_CELLS else (_NEAR, _FAR)
    best, p = 0.0, None
    where: tuple[Operator, list[Array]] | None = None
    for _ in range(_ROUNDS):
        try:
            operator, start, again = operator_of(split, solver, solved, p)
        except TooLargeError:
            return None
        found, p = operator.tuned(start, _FEW_STEPS if again else _STEPS)
        gain = found / max(best, 1e-300) - 1.0
        # what is best for T1^3 / T2 need not be for the eigenvalues of small sectors
        for one in (start, p) if where is None else (p,):
            value = _with_exact_sectors(operator, one, _MOST_WORK)
            if where is None or value > best:
                best, where = value, (operator, one)
        if not again or gain < _GAIN or not least <= loss / (best * best) <= most:
            break
    assert where is not None
    return best * best * (1.0 - _rounding(split)), *where


def _rounding(split: Split) -> float:
    return _ROUNDING if all(slot.definite for slot in split.slots) else _SIGNED_ROUNDING


def _with_exact_sectors(operator: Operator, p: list[Array], most_work: float) -> float:
    """Return F, that of the smallest sectors exactly."""
    total, work = 0.0, 0.0
    roots = [(sector_dimensions(operator, found[0]), found) for found in operator.roots(p)]
    for dimensions, (spread, count, root) in sorted(roots):
        work += float(dimensions) ** 3
        if work <= most_work:
            root = max(root, count * sector_norm(operator, spread, p))
        total += root
    return total


def within_reach(split: Split) -> bool:
    """Return whether the queries of a split have a form that the bound covers, whatever measures them.

    What is solved may have one beyond: see `rings.Measured.diagonal`.
    """
    sizes = [size for size, is_free in zip(split.sizes, split.free, strict=True) if is_free]
    return max(sizes, default=0) <= rings.MAX_AXIS_CELLS and not split.coupled_apart


def operator_of(
    split: Split,
    solver: SubSolver,
    solved: Sequence[tuple[SubWorkload, SubSolution]],
    p: Sequence[Array] | None = None,
) -> tuple[Operator, list[Array], bool]:
    """Return T1 and T2 of a solved decomposition, distributions by type, and whether it depends on those.

    The distributions are those that are given, or else what is good to start from.

    Raises
    ------
    TooLargeError
        If there are too many subsets, terms or triples, or matrices over too many values to be multiplied.
    """
    gathered = Gathered(split, solver, solved, p)
    subsets = sum(len(sub.marginals) for sub in split.classes)
    entries = subsets * len(split.types) * max(len(one.terms) for one in gathered.classes)
    if entries > _MOST_ENTRIES:
        raise TooLargeError(f"a bound over tables of {entries} entries; the limit is {_MOST_ENTRIES}")
    operator = Operator(Lattice.of(split), gathered.axes, gathered.classes)
    return operator, gathered.distributions, gathered.rooted
