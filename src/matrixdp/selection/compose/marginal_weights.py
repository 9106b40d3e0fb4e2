"""The best weights of measured marginals, for either noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact.subsets import precision_sums, precision_sums_adjoint, subset_products
from matrixdp.noise import GAUSSIAN, Noise
from matrixdp.selection.starting_points import Generator, generator

__all__ = ["MarginalWeights", "marginal_loss", "solve_marginal_weights"]

Array = NDArray[np.float64]

#: Marginals whose share of the budget is below this are not measured.
NEGLIGIBLE_SHARE = 1e-6
_ITERATIONS = 3_000
#: Subsets up to which a search is cheap.
_FEW = 64
#: Multiplicative steps at most, and the relative gap at which they stop.
_STEPS, _GAP = 2_000, 1e-6


@dataclass(frozen=True, eq=False)
class MarginalWeights:
    """How precisely each marginal is measured.

    Attributes
    ----------
    precisions : ndarray, shape (2,) * d
        u_S, the inverse noise variance of marginal S (before the variance factor of the noise), scaled
        such that the cost is 1: sum u_S = 1 for Gaussian noise, sum sqrt(u_S) = 1 for Laplace noise.
    loss : float
        sum of delta_T / lambda_T.
    bound : float or None
        A lower bound on the loss of every strategy of weighted marginals among the candidates, for Gaussian
        noise, where the problem is convex.
    """

    precisions: Array
    loss: float
    bound: float | None


def marginal_loss(spectrum: Array, sizes: Sequence[int], precisions: Array) -> tuple[float, Array]:
    """Return the loss sum(delta_T / lambda_T) and its gradient with respect to the precisions.

    References
    ----------
    McKenna et al., journal version, section 7 (Theorems 9 to 11).

    Examples
    --------
    >>> loss, gradient = marginal_loss(np.array([1.0, 1.0]), [2], np.array([0.0, 1.0]))
    >>> loss, gradient.tolist()
    (2.0, [-2.0, -2.0])
    """
    eigenvalues = precision_sums(precisions, sizes)
    asked = spectrum > 0
    if not (eigenvalues[asked] > 0).all():
        return math.inf, np.zeros_like(spectrum)
    ratios = np.divide(spectrum, eigenvalues, out=np.zeros_like(spectrum), where=asked)
    slopes = np.divide(ratios, eigenvalues, out=np.zeros_like(spectrum), where=asked)
    return float(ratios.sum()), -precision_sums_adjoint(slopes, sizes)


def _closed_form(spectrum: Array, sizes: Sequence[int], allowed: NDArray[np.bool_]) -> Array | None:
    """Return the precisions at which lambda_T is as if every residual could be weighted on its own.

    They minimize sum(delta / lambda) subject to the sensitivity in terms of lambda; they are a strategy of
    allowed marginals where none of them is negative and the others are 0. None where they are not.
    """
    # squared sensitivity: sum over T of lambda_T times (the number of residual dimensions of T) / cells
    dimensions = subset_products([1.0] * len(sizes), [size - 1.0 for size in sizes])
    share = dimensions / math.prod(sizes)
    wanted = np.sqrt(np.divide(spectrum, share, out=np.zeros_like(spectrum), where=share > 0))
    wanted = wanted / float((wanted * share).sum())
    precisions = wanted
    for axis, size in enumerate(sizes):
        without, within = np.take(precisions, 0, axis=axis), np.take(precisions, 1, axis=axis)
        precisions = np.stack([(without - within) / size, within], axis=axis)
    # what is left of differences of equal numbers
    rounding = 1e-12 * wanted / subset_products([float(size) for size in sizes], [1.0] * len(sizes))
    if bool((precisions < -rounding).any()):
        return None
    kept = np.where(precisions > rounding, precisions, 0.0)
    if bool((kept[~allowed] > 0).any()):
        return None
    return np.asarray(kept / float(kept.sum()))


def _multiplied(spectrum: Array, sizes: Sequence[int], start: Array, allowed: NDArray[np.bool_]) -> Array:
    """Minimize the loss over u >= 0 with sum 1 by multiplicative steps u <- u (-gradient / loss)^0.9.

    At the optimum -gradient equals the loss wherever u > 0 and is below it elsewhere; what remains of the
    difference is the certified gap.
    """
    precisions = start / float(start.sum())
    for _ in range(_STEPS):
        loss, gradient = marginal_loss(spectrum, sizes, precisions)
        ratios = np.maximum(-gradient / loss, 0.0)
        if float(ratios[allowed].max()) <= 1.0 + _GAP:
            break
        precisions = precisions * ratios**0.9
        precisions = precisions / float(precisions.sum())
    for negligible in (NEGLIGIBLE_SHARE, 1e-9, 1e-12, 1e-15, 1e-18):
        kept = np.where(precisions > negligible * precisions.max(), precisions, 0.0)
        kept = kept / float(kept.sum())
        if marginal_loss(spectrum, sizes, kept)[0] <= loss * (1.0 + _GAP):
            return np.asarray(kept)
    return precisions


def _minimize(
    spectrum: Array, sizes: Sequence[int], start: Array, allowed: NDArray[np.bool_], power: int
) -> tuple[float, Array]:
    """Minimize loss(theta^power) (sum theta)^power over theta >= 0, from one start."""
    places = np.flatnonzero(allowed.ravel() & (start.ravel() > 0))
    scale = float(start.ravel()[places].sum())
    first = start.ravel()[places] / scale

    def spread(theta: Array) -> Array:
        full = np.zeros(spectrum.size)
        full[places] = theta**power
        return full.reshape(spectrum.shape)

    reference = marginal_loss(spectrum, sizes, spread(first))[0]

    def objective(theta: Array) -> tuple[float, Array]:
        loss, gradient = marginal_loss(spectrum, sizes, spread(theta))
        total = float(theta.sum())
        if not (math.isfinite(loss) and total > 0):
            return 1e100, np.zeros_like(theta)
        slope = gradient.ravel()[places] * power * theta ** (power - 1)
        value = loss / reference * total**power
        return value, slope / reference * total**power + power * loss / reference * total ** (power - 1)

    found = scipy.optimize.minimize(
        objective,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(places),
        options={
            "maxiter": _ITERATIONS,
            "maxfun": 2 * _ITERATIONS,
            "ftol": 1e-13,
            "gtol": 1e-12,
            "maxcor": 30,
        },
    )
    flat = np.zeros(spectrum.size)
    flat[places] = np.maximum(found.x, 0.0) / float(found.x.sum())
    theta = flat.reshape(spectrum.shape)
    return marginal_loss(spectrum, sizes, theta**power)[0], theta


def _pruned(
    spectrum: Array, sizes: Sequence[int], theta: Array, allowed: NDArray[np.bool_], power: int
) -> tuple[float, Array]:
    """Drop marginals with a negligible share as far as the workload stays supported, and optimize again."""
    kept = np.where(theta > NEGLIGIBLE_SHARE, theta, 0.0)
    if not math.isfinite(marginal_loss(spectrum, sizes, kept**power)[0]):
        kept = theta
    return _minimize(spectrum, sizes, kept, allowed, power)


def solve_marginal_weights(
    spectrum: Array,
    sizes: Sequence[int],
    noise: Noise,
    allowed: NDArray[np.bool_],
    *,
    seed: int = 0,
    restarts: int = 40,
) -> MarginalWeights:
    """Return the weights of measured marginals with the least loss.

    References
    ----------
    McKenna et al. 2018, section 6.3; journal version, section 7 (Theorem 13 for the closed form).

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> spectrum = np.array([[1.0, 1.0], [1.0, 0.0]])
    >>> found = solve_marginal_weights(spectrum, [2, 2], GAUSSIAN, np.ones((2, 2), dtype=bool))
    >>> found.loss / found.bound < 1 + 1e-6
    True
    """
    asked = spectrum > 0
    full = np.where(allowed, 1.0, 0.0)
    if not math.isfinite(marginal_loss(spectrum, sizes, full)[0]):
        raise NumericalError("weighted marginals: those that are allowed do not determine the workload")
    if noise.norm == 2:
        closed = _closed_form(spectrum, sizes, allowed)
        if closed is not None:
            loss = marginal_loss(spectrum, sizes, closed)[0]
            return MarginalWeights(closed, loss, _bound(spectrum, sizes, closed, allowed))
        precisions = _multiplied(spectrum, sizes, full, allowed)
        loss = marginal_loss(spectrum, sizes, precisions)[0]
        return MarginalWeights(precisions, loss, _bound(spectrum, sizes, precisions, allowed))
    rng = generator(seed)
    convex = solve_marginal_weights(spectrum, sizes, GAUSSIAN, allowed).precisions
    maximal = np.where(_maximal(asked), 1.0, 0.0)
    starts = [full, np.sqrt(convex) + 1e-3 * full, convex ** (1 / 3)]
    starts += [np.where(allowed & asked, 1.0, 0.0) + 1e-4 * full, maximal + 1e-4 * full]
    starts.append(_balanced(spectrum, sizes, maximal > 0))
    cells = subset_products([1.0] * len(sizes), [float(size) for size in sizes])
    starts.append(full * cells ** (1 / 3))
    # local minima differ by which marginals are measured; few attributes have many cheap starts
    for _ in range(restarts * 5 if spectrum.size <= _FEW else min(restarts, 8)):
        kept = rng.random(spectrum.shape) < rng.choice([0.3, 0.5, 0.8, 1.0])
        starts.append(full * kept * rng.random(spectrum.shape) ** int(rng.choice([1, 2, 4, 8])))
    starts += [_random_cover(spectrum, sizes, allowed, rng) for _ in range(restarts)]
    power = 2  # of a scale; the search is over shares of epsilon
    best: tuple[float, Array] | None = None
    for start in starts:
        if not math.isfinite(marginal_loss(spectrum, sizes, start**power)[0]):
            continue
        found = _minimize(spectrum, sizes, start, allowed, power)
        if best is None or found[0] < best[0]:
            best = found
    assert best is not None
    pruned = _pruned(spectrum, sizes, best[1], allowed, power)
    if pruned[0] <= best[0] * (1.0 + 1e-6):
        best = pruned
    return MarginalWeights(best[1] ** power, best[0], None)


def _random_cover(spectrum: Array, sizes: Sequence[int], allowed: NDArray[np.bool_], rng: Generator) -> Array:
    """Return a start that measures few marginals, each asked one within a random superset.

    With Laplace noise costs add up over the marginals that are measured, so merging some of those that are
    asked into a larger one can pay; every way to merge is a local minimum of its own.
    """
    asked = np.argwhere(_maximal(spectrum > 0))
    chance = float(rng.choice([0.0, 0.1, 0.2, 0.4]))
    chosen: list[NDArray[np.bool_]] = []
    for place in rng.permutation(asked):
        wanted = place.astype(bool)
        if any((kept >= wanted).all() for kept in chosen):
            continue
        larger = wanted | (rng.random(len(sizes)) < chance)
        chosen.append(larger if allowed[tuple(larger.astype(int))] else wanted)
    measured = np.zeros(spectrum.shape, dtype=bool)
    for members in chosen:
        measured[tuple(members.astype(int))] = True
    return _balanced(spectrum, sizes, measured)


def _balanced(spectrum: Array, sizes: Sequence[int], measured: NDArray[np.bool_]) -> Array:
    """Return the best shares of epsilon if every residual is estimated from one measured marginal alone.

    It is the one of fewest cells that holds it; shares are then proportional to the cube root of the loss.
    """
    cells = subset_products([1.0] * len(sizes), [float(size) for size in sizes])
    outside = subset_products([float(size) for size in sizes], [1.0] * len(sizes))
    left = spectrum.copy()
    shares = np.zeros(spectrum.shape)
    for place in sorted(np.argwhere(measured), key=lambda place: (cells[tuple(place)], tuple(place))):
        subsets = tuple(slice(None) if member else 0 for member in place)
        shares[tuple(place)] = (float(left[subsets].sum()) / outside[tuple(place)]) ** (1 / 3)
        left[subsets] = 0.0
    return np.asarray(shares / float(shares.sum()))


def _bound(spectrum: Array, sizes: Sequence[int], precisions: Array, allowed: NDArray[np.bool_]) -> float:
    """Return loss^2 / max(-gradient): below the loss of every u with sum 1, as the loss is convex and of
    degree -1.
    """  # noqa: D205
    loss, gradient = marginal_loss(spectrum, sizes, precisions)
    return loss * loss / float(-gradient[allowed].min())


def _maximal(asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which subsets are asked without any asked one above them."""
    above = asked.astype(np.int64)
    for axis in range(asked.ndim):
        without, within = np.take(above, 0, axis=axis), np.take(above, 1, axis=axis)
        above = np.stack([without + within, within], axis=axis)
    return np.asarray(asked & (above == 1))
