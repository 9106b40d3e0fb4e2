"""The approximations of the matrix mechanism: in the L2 norm, by singular values, and rotated by a search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.exact.linear import Array
from matrixdp.mechanisms import (
    Factor,
    Options,
    best_factor,
    explicit_mechanism,
    factor_of,
    option,
    roots_of,
    rotated,
    solve_gram,
    spectrum_of,
)
from matrixdp.noise import Noise

MAX_CELLS = 2_048
#: A rotation looks at every pair of rows again and again.
MAX_ROTATED_CELLS = 256
#: Pairs of rows that are rotated, in all.
_ROTATIONS = 60_000
_GAP = 1e-6
_NO_BOUND = "no bound: an approximation"
#: Where `roots_of` has the strategy that an option names.
_ROOTS = {"symmetric": 0, "triangular": 1, "spectral": 2}


@dataclass(frozen=True)
class Approximation(Options):
    """Of the approximations that choose B'B: they leave B open up to a rotation, which L1 norms depend on."""

    root: str = option(
        "spectral",
        "which B with the chosen B'B; spectral, as published, or the best of the three",
        choices=("spectral", "symmetric", "triangular", "best"),
    )
    augment: str = option(
        "no", "whether cells whose column falls short of the sensitivity are measured too", ("no", "yes")
    )


@explicit_mechanism(
    "l2-approximation",
    "Li et al. 2010, section 5.2.1: the L2 approximation",
    (1, 2),
    MAX_CELLS,
    _NO_BOUND,
    Approximation,
)
def l2_factor(gram: Array, noise: Noise, options: Approximation | None = None) -> Factor:
    """Return a strategy B with the B'B of least error among those of L2 sensitivity 1, under either norm.

    Its loss under L2 norms is a lower bound under L1 norms, which are never smaller, and so is the loss here
    divided by the number of cells, which is less than that.

    References
    ----------
    Li, Hay, Rastogi, Miklau, McGregor: Optimizing linear counting queries under differential privacy, PODS
    2010, section 5.2.1 (problem 5.19; theorem 5.20 is the bound by the number of cells). Program 5.2 is
    solved through its dual, see `matrixdp.selection.gram`; `matrixdp.papers.matrix_programs` states it.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> factor = l2_factor(np.tri(8) @ np.tri(8).T, GAUSSIAN)
    >>> factor.loss < factor.bound * (1 + 1e-6)
    True
    """
    given = Approximation() if options is None else options
    design = solve_gram(gram, gap=_GAP)
    if noise.norm == 2:
        return best_factor([design.rows], gram, noise, design.bound, complete=given.augment == "yes")
    optimum = spectrum_of(design.rows.T @ design.rows)
    return _rooted(optimum.values, optimum.vectors, gram, noise, design.bound, given)


@explicit_mechanism(
    "singular-value",
    "Li et al. 2010, section 5.2.2: the singular value bound approximation",
    (1, 2),
    MAX_CELLS,
    _NO_BOUND,
    Approximation,
)
def singular_value_factor(gram: Array, noise: Noise, options: Approximation | None = None) -> Factor:
    """Return the eigenvectors of the Gram matrix as queries, each weighted by the root of its singular value.

    B'B is proportional to the square root of the Gram matrix: the least error where the sum of all squared
    entries bounds the squared sensitivity. That sum is at most the number of cells times the least of any
    strategy's, which proves the bound: (sum of the workload's singular values)^2 / cells.

    References
    ----------
    Li et al. 2010, section 5.2.2 (the singular value bound approximation): theorem 5.23 for the rotation of
    least covering ball, theorem 5.25 for the weights, theorem 5.26 for the bound.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> factor = singular_value_factor(np.diag([1.0, 4.0]), GAUSSIAN)
    >>> round(factor.loss, 9), round(factor.bound, 9)
    (6.0, 4.5)
    """
    spectrum = spectrum_of(gram)
    roots = np.sqrt(spectrum.values)
    bound = float(roots.sum()) ** 2 / len(gram)
    given = Approximation() if options is None else options
    return _rooted(roots, spectrum.vectors, gram, noise, bound, given)


def _rooted(
    values: Array, vectors: Array, gram: Array, noise: Noise, bound: float | None, given: Approximation
) -> Factor:
    """Return the strategy of a chosen B'B that the options ask for."""
    roots = roots_of(values, vectors)
    chosen = roots if given.root == "best" else [roots[_ROOTS[given.root]]]
    return best_factor(chosen, gram, noise, bound, complete=given.augment == "yes")


@explicit_mechanism(
    "rotation",
    "the L2 approximation of Li et al. 2010 rotated by a search of ours for the L1 norm",
    (1, 2),
    MAX_ROTATED_CELLS,
    _NO_BOUND,
)
def rotation_factor(gram: Array, noise: Noise) -> Factor:
    """Return the L2 approximation, rotated by local search towards a small L1 sensitivity, and completed.

    Rotations leave L2 norms as they are: under Gaussian noise it is the L2 approximation itself. The search,
    over rotations of two rows at a time, is not published; `least_sensitivity` of
    `matrixdp.papers.matrix_programs` is the published program for it.

    References
    ----------
    Li et al. 2010, problem 5.16 (an error profile determines a strategy up to rotation, and its sensitivity
    not at all), section 5.3 (augmentation).

    Examples
    --------
    >>> from matrixdp.noise import LAPLACE
    >>> gram = np.tri(8) @ np.tri(8).T
    >>> rotation_factor(gram, LAPLACE).loss <= l2_factor(gram, LAPLACE).loss
    True
    """
    if noise.norm == 2:
        return l2_factor(gram, noise)
    design = solve_gram(gram, gap=_GAP)
    optimum = spectrum_of(design.rows.T @ design.rows)
    starts = roots_of(optimum.values, optimum.vectors)
    starts.append(_reversed_root(starts[0]))
    found = [factor_of(rows, gram, noise).loss for rows in starts]
    order = np.argsort(found)
    turned = [rotated(starts[int(place)], rotations=_ROTATIONS // 2) for place in order[:2]]
    return best_factor([*starts, *turned], gram, noise, design.bound)


def _reversed_root(root: Array) -> Array:
    """Return the triangular root for the cells in reversed order: another sparse start."""
    turned = scipy.linalg.qr(root[:, ::-1], mode="r")[0][: len(root), ::-1]
    return np.asarray(turned, dtype=np.float64)
