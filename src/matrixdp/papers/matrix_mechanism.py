"""The programs of the matrix mechanism: two approximations in the L2 norm, and rotation for the L1 norm."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from matrixdp.mechanisms import (
    Choice,
    Factor,
    Mechanism,
    Options,
    best_factor,
    explicit_product,
    factor_of,
    register,
    roots_of,
    rotated,
    solve_gram,
    spectrum_of,
)
from matrixdp.noise import Noise
from matrixdp.queries import Workload

__all__ = [
    "l2_factor",
    "rotation_factor",
    "select_l2_approximation",
    "select_rotation",
    "select_singular_value",
    "singular_value_factor",
]

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

    Parameters
    ----------
    gram : ndarray, shape (n, n)
    noise : Noise

    References
    ----------
    Li, Hay, Rastogi, Miklau, McGregor: Optimizing linear counting queries under differential privacy, PODS
    2010, section 5.2 (the L2 approximation) and section 5.3 (augmentation). The semidefinite program is
    solved through its dual, see `matrixdp.selection.convex`.

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

    Parameters
    ----------
    gram : ndarray, shape (n, n)
    noise : Noise

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


def rotation_factor(gram: Array, noise: Noise, seed: int = 0) -> Factor:
    """Return the L2 approximation, rotated by local search towards a small L1 sensitivity.

    Rotations leave L2 norms as they are: under Gaussian noise it is the L2 approximation itself.

    Parameters
    ----------
    gram : ndarray, shape (n, n)
    noise : Noise
    seed : int
        Of the search.

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
    turned = [rotated(starts[int(place)], seed=seed, rotations=_ROTATIONS // 2) for place in order[:2]]
    return best_factor([*starts, *turned], gram, noise, design.bound)


def _reversed_root(root: Array) -> Array:
    """Return the triangular root for the cells in reversed order: another sparse start."""
    turned = scipy.linalg.qr(root[:, ::-1], mode="r")[0][: len(root), ::-1]
    return np.asarray(turned, dtype=np.float64)


def select_l2_approximation(workload: Workload, noise: Noise) -> Choice:
    """Select by the matrix mechanism's L2 approximation; see `l2_factor`.

    Parameters
    ----------
    workload : Workload
    noise : Noise

    Returns
    -------
    plan : Plan
    certificate : Certificate
        Certified; with Gaussian noise it is the optimum.

    Raises
    ------
    TooLargeError
        If an explicit problem has too many cells.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"a": 16}), mdp.product(a="prefix"))
    >>> select_l2_approximation(workload, GAUSSIAN)[1].gap < 1e-5
    True
    """
    return explicit_product(workload, noise, "l2-approximation", l2_factor, MAX_CELLS, _NO_BOUND)


def select_singular_value(workload: Workload, noise: Noise) -> Choice:
    """Select by the matrix mechanism's singular value bound approximation; see `singular_value_factor`.

    Parameters
    ----------
    workload : Workload
    noise : Noise

    Raises
    ------
    TooLargeError
        If an explicit problem has too many cells.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"a": 16}), mdp.product(a="prefix"))
    >>> exact = select_l2_approximation(workload, GAUSSIAN)[1].loss
    >>> exact < select_singular_value(workload, GAUSSIAN)[1].loss < 1.2 * exact
    True
    """
    return explicit_product(workload, noise, "singular-value", singular_value_factor, MAX_CELLS, _NO_BOUND)


def select_rotation(workload: Workload, noise: Noise) -> Choice:
    """Select by the L2 approximation and rotation; see `rotation_factor`.

    Parameters
    ----------
    workload : Workload
    noise : Noise

    Raises
    ------
    TooLargeError
        If an explicit problem has too many cells.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"a": 8}), mdp.product(a="prefix"))
    >>> select_rotation(workload, LAPLACE)[1].loss < select_l2_approximation(workload, LAPLACE)[1].loss
    True
    """
    return explicit_product(workload, noise, "rotation", rotation_factor, MAX_ROTATED_CELLS, _NO_BOUND)


register(
    Mechanism(
        "l2-approximation",
        "Li et al. 2010, section 5.2: the matrix mechanism in the L2 norm",
        (1, 2),
        Options,
        lambda task: select_l2_approximation(task.workload, task.noise),
    )
)
register(
    Mechanism(
        "singular-value",
        "Li et al. 2015, section 5: the singular value bound approximation",
        (1, 2),
        Options,
        lambda task: select_singular_value(task.workload, task.noise),
    )
)
register(
    Mechanism(
        "rotation",
        "Li et al. 2015, section 5: the L2 approximation rotated for the L1 norm",
        (1, 2),
        Options,
        lambda task: select_rotation(task.workload, task.noise),
    )
)
