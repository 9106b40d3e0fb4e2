"""The programs of the matrix mechanism: two approximations in the L2 norm, and rotation for the L1 norm."""

from __future__ import annotations

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.mechanisms import (
    Factor,
    best_factor,
    explicit_mechanism,
    factor_of,
    roots_of,
    rotated,
    solve_gram,
    spectrum_of,
)
from matrixdp.noise import Noise

__all__ = ["MAX_CELLS", "MAX_ROTATED_CELLS", "l2_factor", "rotation_factor", "singular_value_factor"]

Array = NDArray[np.float64]

MAX_CELLS = 2_048
#: A rotation looks at every pair of rows again and again.
MAX_ROTATED_CELLS = 256
_NO_BOUND = "no bound: an approximation"
#: Pairs of rows that are rotated, in all.
_ROTATIONS = 60_000
_GAP = 1e-6


def l2_factor(gram: Array, noise: Noise) -> Factor:
    """Return the strategy of least error among those of L2 sensitivity 1, used under either norm.

    Under Laplace noise the root of the optimal B'B with the least error is taken, and completed.

    References
    ----------
    Li, Hay, Rastogi, Miklau, McGregor: Optimizing linear counting queries under differential privacy, PODS
    2010, section 5.2 (the L2 approximation) and section 5.3 (augmentation). The semidefinite program is
    solved through its dual, see `matrixdp.selection.gram`.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> factor = l2_factor(np.tri(8) @ np.tri(8).T, GAUSSIAN)
    >>> factor.loss < factor.bound * (1 + 1e-6)
    True
    """
    design = solve_gram(gram, gap=_GAP)
    if noise.norm == 2:
        return best_factor([design.rows], gram, noise, design.bound)
    optimum = spectrum_of(design.rows.T @ design.rows)
    return best_factor(roots_of(optimum.values, optimum.vectors), gram, noise, design.bound)


def singular_value_factor(gram: Array, noise: Noise) -> Factor:
    """Return the strategy with B'B proportional to the square root of the Gram matrix.

    It minimizes the error where the columns of a strategy are bounded on average alone; before completion
    its loss for Gaussian noise is tr(V^(1/2)) max diag(V^(1/2)).

    References
    ----------
    Li, Miklau, Hay, McGregor, Rastogi: The matrix mechanism, VLDB Journal 2015, section 5.1 (the singular
    value bound approximation), section 5.3 (augmentation).

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> round(singular_value_factor(np.diag([1.0, 4.0]), GAUSSIAN).loss, 9)  # completed to the identity
    5.0
    """
    spectrum = spectrum_of(gram)
    return best_factor(roots_of(np.sqrt(spectrum.values), spectrum.vectors), gram, noise)


def rotation_factor(gram: Array, noise: Noise) -> Factor:
    """Return the L2 approximation, rotated by local search towards a small L1 sensitivity.

    Rotations leave L2 norms as they are: under Gaussian noise it is the L2 approximation itself.

    References
    ----------
    Li, Miklau, Hay, McGregor, Rastogi: The matrix mechanism, VLDB Journal 2015, section 5 (a strategy is
    determined up to rotation by its error profile; its sensitivity is not).

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


explicit_mechanism(
    "l2-approximation",
    "Li et al. 2010, section 5.2: the matrix mechanism in the L2 norm",
    (1, 2),
    l2_factor,
    MAX_CELLS,
    _NO_BOUND,
)
explicit_mechanism(
    "singular-value",
    "Li et al. 2015, section 5: the singular value bound approximation",
    (1, 2),
    singular_value_factor,
    MAX_CELLS,
    _NO_BOUND,
)
explicit_mechanism(
    "rotation",
    "Li et al. 2015, section 5: the L2 approximation rotated for the L1 norm",
    (1, 2),
    rotation_factor,
    MAX_ROTATED_CELLS,
    _NO_BOUND,
)
