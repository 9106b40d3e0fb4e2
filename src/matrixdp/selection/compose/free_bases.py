"""Free bases: X = (B_1 x B_2 x ...)' diag(lambda) (B_1 x B_2 x ...) with every B_i and lambda free.

Such strategies hold every sum of two Kronecker products exactly, as two quadratic forms have a common basis
of axes in which both are diagonal; alternation over products does not reach them. With U_ik the Gram matrices
of the terms k on the axes i, the error is the sum over rows of d / lambda, d the sum over k of the Kronecker
products of diag(B_i^-T U_ik B_i^-1). It is made least together with the largest squared column norm, smoothed
to a power mean, by a descent from the best product; the row weights are then solved for exactly.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.exact.linear import along
from matrixdp.selection.compose.product import Product, row_weights, weighted_product
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.problem.kron_sum import KronSum

__all__ = ["MAX_FREE_CELLS", "free_bases"]

Array = NDArray[np.float64]

#: Cells of a sub-workload, up to which bases are freed.
MAX_FREE_CELLS = 250_000
#: The powers of the mean that stands for the largest column norm, one descent after the other.
_POWERS = (30.0, 300.0)
#: Evaluations of each descent, and multiplications of all together, at most.
_MAX_EVALUATIONS, _MOST_WORK = 400, 2e10
#: Eigenvalues of what an axis is asked below this share of the largest are rounding errors.
_RANK = 1e-11


@final
class _Error:
    """The logarithm of the error of free bases, and its gradient, in coordinates of each axis's row space."""

    def __init__(self, terms: KronSum[Any]) -> None:
        self.products = terms.products
        self.spaces: list[Array] = []
        self.inverses: list[Array] = []
        self.grams: list[dict[Any, Array]] = []
        for axis in range(len(terms.sizes)):
            own = {key: terms.gram(axis, key) for key in terms.sets[axis]}
            total = np.sum([gram / max(float(np.abs(gram).max()), 1e-300) for gram in own.values()], axis=0)
            values, vectors = scipy.linalg.eigh((total + total.T) / 2.0, driver="evd", check_finite=False)
            keep = values > _RANK * values[-1]
            roots = np.sqrt(values[keep])
            inverse = vectors[:, keep] / roots
            self.spaces.append((vectors[:, keep] * roots).T)
            self.inverses.append(inverse)
            self.grams.append({key: inverse.T @ gram @ inverse for key, gram in own.items()})
        self.shape = tuple(len(space) for space in self.spaces)

    @property
    def work(self) -> float:
        """Multiplications of one evaluation, about."""
        rows = math.prod(self.shape)
        return sum(
            (4.0 * len(grams) + 6.0) * size**3 + 6.0 * rows * size
            for size, grams in zip(self.shape, self.grams, strict=True)
        )

    def flat(self, bases: list[Array], logs: Array) -> Array:
        """Return the variables as one vector."""
        return np.concatenate([*(basis.ravel() for basis in bases), logs.ravel()])

    def split(self, flat: Array) -> tuple[list[Array], Array]:
        """Return the bases, in the coordinates of the row spaces, and the logarithms of the row weights."""
        ends = np.cumsum([size * size for size in self.shape])
        *bases, logs = np.split(flat, ends)
        squares = [basis.reshape(size, size) for basis, size in zip(bases, self.shape, strict=True)]
        return squares, logs.reshape(self.shape)

    def __call__(self, flat: Array, power: float) -> tuple[float, Array]:
        bases, logs = self.split(flat)
        weights, variances = np.exp(logs), np.exp(-logs)
        inverses = [np.asarray(np.linalg.inv(basis), dtype=np.float64) for basis in bases]
        energies, pulls = self._energies(inverses, variances)
        error = float((energies * variances).sum())
        rows = [basis @ space for basis, space in zip(bases, self.spaces, strict=True)]
        squares = [row**2 for row in rows]
        norms = weights
        for axis, square in enumerate(squares):
            norms = along(norms, axis, square.T)
        peak = float(norms.max())
        powers = (norms / peak) ** (power - 1.0)
        mean = float((powers * norms).sum()) / peak
        slopes = powers / (peak * mean)
        held = slopes
        for axis, square in enumerate(squares):
            held = along(held, axis, square)
        parts = []
        for axis, (inverse, space) in enumerate(zip(inverses, self.spaces, strict=True)):
            spread = weights
            for other, square in enumerate(squares):
                if other != axis:
                    spread = along(spread, other, square.T)
            own = np.moveaxis(spread, axis, 0).reshape(len(space), -1)
            cells = np.moveaxis(slopes, axis, 0).reshape(space.shape[1], -1)
            column = 2.0 * rows[axis] * (own @ cells.T)
            parts.append(column @ space.T - inverse.T @ (pulls[axis] / error) @ inverse.T)
        value = math.log(error) + math.log(peak) + math.log(mean) / power
        return value, self.flat(parts, held * weights - energies * variances / error)

    def _energies(self, inverses: list[Array], variances: Array) -> tuple[Array, list[Array]]:
        """Return d, and the derivative of the sum of d times variances with respect to each inverse."""
        images = [
            {key: gram @ inverse for key, gram in own.items()}
            for own, inverse in zip(self.grams, inverses, strict=True)
        ]
        diagonals = [
            {key: np.einsum("ij,ij->j", image, inverse) for key, image in own.items()}
            for own, inverse in zip(images, inverses, strict=True)
        ]
        energies = np.zeros(self.shape)
        pulls = [np.zeros_like(inverse) for inverse in inverses]
        for coefficient, keys in self.products:
            vectors = [diagonals[axis][key] for axis, key in enumerate(keys)]
            product = np.full((), coefficient)
            for vector in vectors:
                product = np.multiply.outer(product, vector)
            energies += product
            for axis, key in enumerate(keys):
                share = np.moveaxis(variances, axis, -1)
                for other, vector in enumerate(vectors):
                    if other != axis:
                        share = np.tensordot(vector, share, axes=(0, 0))
                transposed = self.grams[axis][key].T @ inverses[axis]
                pulls[axis] += coefficient * share * (images[axis][key] + transposed)
        return energies, pulls


def free_bases(terms: KronSum[Any], start: Product) -> Product:
    """Return the best strategy with free bases that a descent from a product finds, or that product.

    Only sums of products are served; with explicit queries, or more than ``MAX_FREE_CELLS`` cells, the
    product is returned as it is.

    References
    ----------
    The representation of a product with weighted rows is that of `solve_structured`; here its factors are
    free too.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.selection.compose.product import solve_structured
    >>> from matrixdp.selection.gram import ConvexSolver
    >>> from matrixdp.selection.problem.kron_sum import KronSum
    >>> domain = mdp.Domain({"a": 8, "b": 8})
    >>> crossed = mdp.product(a="prefix", b="identity"), mdp.product(a="identity", b="prefix")
    >>> terms = KronSum.of(domain, mdp.Workload(domain, *crossed).groups)
    >>> product = solve_structured(terms, ConvexSolver(1e-6))
    >>> free_bases(terms, product).loss < 0.98 * product.loss
    True
    """
    if terms.explicit or len(terms.sizes) < 2 or math.prod(terms.sizes) > MAX_FREE_CELLS:
        return start
    error = _Error(terms)
    shape = tuple(factor.height for factor in start.factors)
    steps = min(_MAX_EVALUATIONS, int(_MOST_WORK / error.work / len(_POWERS)))
    if shape != error.shape or steps < 1:
        return start
    bases = [factor.rows @ own for factor, own in zip(start.factors, error.inverses, strict=True)]
    logs = np.zeros(shape) if start.multipliers is None else np.log(start.multipliers)
    flat = error.flat(bases, logs)
    for power in _POWERS:
        found = scipy.optimize.minimize(
            error,
            flat,
            args=(power,),
            jac=True,
            method="L-BFGS-B",
            options={"maxfun": steps, "maxiter": steps, "maxcor": 20},
        )
        flat = found.x
    bases, logs = error.split(flat)
    rows, weights = [], np.exp(logs)
    for axis, (basis, space) in enumerate(zip(bases, error.spaces, strict=True)):
        # rows of one length, as they are rounded alike: how much each counts is in the weights
        own = basis @ space
        lengths = np.linalg.norm(own, axis=1)
        own = own / lengths[:, None]
        scale = math.sqrt(float((own**2).sum(axis=0).max()))
        rows.append(own / scale)
        weights = along(weights, axis, np.diag((lengths * scale) ** 2))
    return _best(terms, rows, weights, start)


def _best(terms: KronSum[Any], rows: list[Array], weights: Array, start: Product) -> Product:
    """Return the product of free rows with the best weights, or the start where that is better."""
    factors = tuple(Factor(own, start.loss) for own in rows)
    energies = terms.row_energies([factor.inverse for factor in factors])
    squares = [own**2 for own in rows]
    solved, _ = row_weights(energies, squares, np.full(terms.sizes, 1.0 / math.prod(terms.sizes)))
    made = [weighted_product(factors, energies, own) for own in (weights, solved)]
    return min((start, *made), key=lambda product: product.loss)
