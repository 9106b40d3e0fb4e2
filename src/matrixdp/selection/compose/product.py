"""One product of strategies for several attributes, its rows weighted where noise is Gaussian.

Factors come from alternating over the axes: with all others fixed, the best strategy of an axis solves an
explicit problem of that attribute's own size. Under Gaussian noise the rows of (B_1 x B_2 x ...) may have
weights lambda, X = (B_1 x B_2)' diag(lambda) (B_1 x B_2), a convex problem of their own, solved by
multiplicative steps on its dual, with a gap; the result is never worse than the best single product found.

Such strategies, every B_i and lambda free, hold every sum of two Kronecker products exactly, as two quadratic
forms have a common basis of axes in which both are diagonal; alternation over products does not reach them.
With U_ik the Gram matrices of the terms k on the axes i, the error is the sum over rows of d / lambda, d the
sum over k of the Kronecker products of diag(B_i^-T U_ik B_i^-1). It is made least together with the largest
squared column norm, smoothed to a power mean, by a descent from the best product; the row weights are then
solved for exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, final

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.exact import IdentityMatrix
from matrixdp.exact.linear import Array, along, along_axes, outer
from matrixdp.noise import Noise
from matrixdp.selection.descent import Effort, descend
from matrixdp.selection.gram.factor import Factor, Solver
from matrixdp.selection.gram.opt_0 import AS_MANY_AS_PAY, Rows, solve_axis
from matrixdp.selection.limits import GAP, LIMITS
from matrixdp.selection.problem.kron_sum import Inverse, KronSum, check_cells, energies

#: The powers of the mean that stands for the largest column norm, one descent after the other.
_POWERS = (30.0, 300.0)


#: Tolerance of a descent over free bases.
_FREE_TOLERANCE = 2e-9
#: After a round a loss this many times what is wanted does not fall to it.
_HOPELESS = 1.3
#: Evaluations of a descent over bases, and steps of one over row weights.
_DESCENT_STEPS = 400
#: Rounds of alternation, and of each start before the best goes on.
_SWEEPS = 12
_FIRST_SWEEPS = 3
#: Multiplications of all descents over bases together.
_MOST_DESCENT_WORK = 2e10


@dataclass(frozen=True, eq=False)
class Product:
    """A strategy B = diag(lambda)^(1/2) (B_1 x B_2 x ...), column norms at most 1.

    Attributes
    ----------
    factors : tuple of Factor
        One for each axis.
    loss : float
        Total squared error at privacy cost 1.
    bound : float or None
        A lower bound on that of every strategy, or None.
    multipliers : ndarray or None
        lambda, in the shape of the factors' rows; None for a plain product.
    """

    factors: tuple[Factor, ...]
    loss: float
    bound: float | None = None
    multipliers: Array | None = None

    @property
    def cells(self) -> int:
        """The number of columns."""
        return math.prod(factor.cells for factor in self.factors)

    @property
    def level(self) -> float:
        """A smooth proxy for the loss."""
        return self.loss

    def scaled(self, coefficient: float) -> Product:
        """Return the same strategy for the Gram matrix multiplied by a coefficient."""
        bound = None if self.bound is None else coefficient * self.bound
        return replace(self, loss=coefficient * self.loss, bound=bound)

    @cached_property
    def _variances(self) -> Array:
        shape = [factor.height for factor in self.factors]
        return np.ones(shape) if self.multipliers is None else 1.0 / self.multipliers

    def image(self, rows: Array) -> Array:
        """Return queries times X^+, the derivative of the loss: shape (m, cells) in and out."""
        tensor = rows.reshape(len(rows), *[factor.cells for factor in self.factors])
        tensor = along_axes(tensor, (factor.inverse.T for factor in self.factors), 1) * self._variances
        tensor = along_axes(tensor, (factor.inverse for factor in self.factors), 1)
        return tensor.reshape(rows.shape)

    def change(self, grams: Sequence[Array]) -> float:
        """Return tr(X^+ (G_1 x G_2 x ...))."""
        tensor = self._variances
        for factor, gram in zip(self.factors, grams, strict=True):
            tensor = np.tensordot(energies(factor.inverse, gram), tensor, axes=(0, 0))
        return float(tensor)

    def axis_slope(self, axis: int, grams: Sequence[Array]) -> Array:
        """Return the derivative of ``change`` with respect to the Gram matrix of one axis."""
        tensor = np.moveaxis(self._variances, axis, -1)
        for other, (factor, gram) in enumerate(zip(self.factors, grams, strict=True)):
            if other != axis:
                tensor = np.tensordot(energies(factor.inverse, gram), tensor, axes=(0, 0))
        own = self.factors[axis].inverse
        return (own * tensor) @ own.T


def alternate(
    solve: Callable[[int, Sequence[Inverse], Factor], Factor],
    known: Sequence[Factor],
    loss: float,
    sweeps: int,
    tolerance: float,
) -> tuple[list[Factor], float, bool]:
    """Alternate over the attributes, the strategies of all others fixed.

    ``solve`` gets an axis, the inverses of all axes and the axis's own strategy so far. Returns the best
    strategies that were met, their error, and whether the error has settled.

    References
    ----------
    McKenna et al. 2018, section 6.1 (block-cyclic alternation over surrogate workloads).
    """
    best, current = list(known), list(known)
    inverses = [factor.estimator for factor in current]
    last = loss
    for _ in range(sweeps):
        before = last
        for axis in range(len(current)):
            current[axis] = solve(axis, inverses, current[axis])
            inverses[axis] = current[axis].estimator
        last = current[-1].loss
        if last < loss:
            best, loss = list(current), last  # a search may end above where it began
        if last > before * (1.0 - tolerance):
            return best, loss, True
    return best, loss, False


def row_weights(found: Array, squares: Sequence[Array], y: Array) -> tuple[Array, float]:
    """Minimize sum(d / lambda) subject to column norms at most 1; return lambda and its error.

    ``found`` are the rows' energies d, ``squares`` the squared entries of the factors, ``y`` a distribution
    over the cells to start from.
    """
    best, least, bound = y, math.inf, 0.0
    for _ in range(_DESCENT_STEPS):
        pull = along_axes(y, squares)
        weights = np.sqrt(found / np.maximum(pull, 1e-300))
        norms = along_axes(weights, (square.T for square in squares))
        peak = float(norms.max())
        positive = weights > 0
        error = float((found[positive] / weights[positive]).sum()) * peak
        bound = max(bound, float(np.sqrt(found * pull).sum()) ** 2)
        if error < least:
            best, least = weights / peak, error
        if least <= bound * (1.0 + LIMITS.inner_gap):
            break
        y = y * norms
        y = y / y.sum()
    return best, least


def solve_structured(
    terms: KronSum,
    solver: Solver,
    weigh_rows: bool = True,
    start: Sequence[Factor] | None = None,
) -> Product:
    """Solve by alternating over factors, then weight the rows of their product.

    ``solver`` solves each axis; one that is not optimal takes no row weights. ``start`` are the factors of a
    similar problem, to alternate from.

    References
    ----------
    McKenna et al. 2018, section 6.1 (alternation over the factors of one product). The row weights are
    ResidualPlanner-like scales in a fixed basis.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.selection.gram import ConvexSolver
    >>> from matrixdp.selection.problem.kron_sum import KronSum
    >>> domain = mdp.Domain({"a": 4, "b": 4})
    >>> terms = KronSum.of(domain, mdp.Workload(domain, mdp.marginals(1)).groups)
    >>> solve_structured(terms, ConvexSolver(1e-8)).loss < 16.0
    True
    """

    def solve(axis: int, inverses: Sequence[Inverse], own: Factor | None) -> Factor:
        return solver.gram(terms.surrogate(axis, inverses), (terms.sizes[axis],), own)

    if start is None:
        start = [solve(axis, terms.unknown, None) for axis in range(len(terms.sizes))]
    factors, loss, _ = alternate(solve, start, math.inf, _SWEEPS, LIMITS.gain)
    plain = Product(tuple(factors), loss)
    if not (weigh_rows and solver.optimal):
        return plain
    found = terms.row_energies([factor.inverse for factor in factors])
    y = outer(factor.dual for factor in factors if factor.dual is not None)
    squares = [factor.rows**2 for factor in factors]
    weights, error = row_weights(found, squares, 0.99 * y + 0.01 / y.size)
    if error > loss * (1.0 - LIMITS.inner_gap):
        return plain
    return weighted_product(factors, found, weights)


def weighted_product(factors: Sequence[Factor], found: Array, weights: Array) -> Product:
    """Return a product with weighted rows whose energies are known, its largest column norm 1."""
    # a row that hardly matters still has to be measured: keep the spread of the weights within 2^16
    weights = np.maximum(weights, float(weights.max()) * 2.0**-16)
    norms = along_axes(weights, ((factor.rows**2).T for factor in factors))
    weights = weights / float(norms.max())
    return Product(tuple(factors), float((found / weights).sum()), multipliers=weights)


def solve_kron(
    terms: KronSum,
    noise: Noise,
    *,
    gap: float = GAP,
    seed: int = 0,
    effort: str = "full",
    start: Sequence[Factor | None] | None = None,
    worth: float = math.inf,
    most_symmetric: int | None = None,
    rows: Rows = AS_MANY_AS_PAY,
    max_cells: float | None = None,
) -> Product:
    """Return the best product found for a union of products, bounded where that is one product.

    ``start`` are strategies of attributes that suit some of what is asked, to search from. Searches
    end early where their loss is far above ``worth``. Attributes of more than ``most_symmetric`` values that
    nothing tells apart are measured whole; where it is None, of more than explicit strategies may have. With
    an infinite limit of cells the product may be one that could not be measured.

    Raises TooLargeError if it is over more cells than can be held, or an attribute that is not measured
    whole has too many values.

    References
    ----------
    McKenna et al. 2018, section 6.1 (block-cyclic alternation over surrogate workloads).
    """
    check_cells(max(terms.counted, math.prod(terms.sizes)), terms.attributes, "opt-kron", max_cells)

    def solve(
        axis: int, inverses: Sequence[Inverse], own: Factor | None, gap: float = gap, effort: str = effort
    ) -> Factor:
        if terms.large(axis, most_symmetric):
            whole = [1.0 if other == axis else inverse for other, inverse in enumerate(inverses)]
            return Factor(IdentityMatrix(terms.sizes[axis]), terms.loss(whole))
        gram = terms.surrogate(axis, inverses)
        return solve_axis(gram, noise, gap=gap, seed=seed, rows=rows, start=own, effort=effort)

    def fast(axis: int, inverses: Sequence[Inverse], own: Factor | None) -> Factor:
        return solve(axis, inverses, own, max(gap, LIMITS.search_gap), "fast")

    axes = range(len(terms.sizes))
    if terms.proportional() or len(terms.sizes) == 1:
        return _bounded(terms, [solve(axis, terms.unknown, None) for axis in axes])
    given = start or [None for _ in axes]
    begun = _begun(terms, given) if worth < math.inf else None
    starts = [begun or [fast(axis, terms.unknown, given[axis]) for axis in axes]]
    if effort == "full":
        loss = terms.loss([1.0 for _ in axes])
        starts.append([Factor(IdentityMatrix(size), loss) for size in terms.sizes])
    first = []
    for begin in starts:
        loss = terms.loss([factor.estimator for factor in begin])
        if worth < math.inf:
            begin, loss, _ = alternate(fast, begin, loss, 1, LIMITS.first_gain)
            if loss > _HOPELESS * worth:
                return Product(tuple(begin), loss)
        first.append(alternate(fast, begin, loss, _FIRST_SWEEPS, LIMITS.first_gain))
    known, loss, settled = min(first, key=lambda item: item[1])
    if not settled:
        known, loss, _ = alternate(fast, known, loss, _SWEEPS, LIMITS.first_gain)
    if effort == "full" and noise.norm == 1:
        for axis in axes:
            improved = solve(axis, [factor.estimator for factor in known], known[axis])
            if improved.loss < loss:
                known, loss = [*known[:axis], improved, *known[axis + 1 :]], improved.loss
    return Product(tuple(known), loss)


def _begun(terms: KronSum, given: Sequence[Factor | None]) -> list[Factor] | None:
    """Return the strategies to start from, if every attribute has one that measures all that is asked."""
    known = [factor for factor in given if factor is not None]
    if len(known) == len(given) and all(_measures(terms, axis, own) for axis, own in enumerate(known)):
        return known
    return None


def _measures(terms: KronSum, axis: int, factor: Factor) -> bool:
    """Return whether a strategy's row space holds each question about an attribute, by its own scale."""
    if factor.identity:
        return True
    asked = [terms.gram(axis, key) for key in terms.sets[axis]]
    asked += [terms.explicit_surrogate(axis, axes, rows, terms.unknown) for _, axes, rows in terms.explicit]
    apart = [gram - (gram @ factor.inverse) @ factor.rows for gram in asked]
    pairs = zip(apart, asked, strict=True)
    return all(np.abs(left).max() <= LIMITS.span * np.abs(gram).max() for left, gram in pairs)


def _bounded(terms: KronSum, known: Sequence[Factor]) -> Product:
    """Return the product of the optima of attributes that factor, with the product of their bounds."""
    loss = terms.loss([factor.estimator for factor in known])
    ratios = [None if factor.bound is None else factor.bound / factor.loss for factor in known]
    bounded = [ratio for ratio in ratios if ratio is not None]
    return Product(tuple(known), loss, loss * math.prod(bounded) if len(bounded) == len(ratios) else None)


@final
class _Error:
    """The logarithm of the error of free bases, and its gradient, in coordinates of each axis's row space."""

    def __init__(self, terms: KronSum) -> None:
        self.products = terms.products
        self.spaces: list[Array] = []
        self.inverses: list[Array] = []
        self.grams: list[dict[Any, Array]] = []
        for axis in range(len(terms.sizes)):
            own = {key: terms.gram(axis, key) for key in terms.sets[axis]}
            total = np.sum([gram / max(float(np.abs(gram).max()), 1e-300) for gram in own.values()], axis=0)
            values, vectors = scipy.linalg.eigh((total + total.T) / 2.0, driver="evd", check_finite=False)
            keep = values > LIMITS.rank * values[-1]
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
        norms = along_axes(weights, (square.T for square in squares))
        peak = float(norms.max())
        powers = (norms / peak) ** (power - 1.0)
        mean = float((powers * norms).sum()) / peak
        slopes = powers / (peak * mean)
        held = along_axes(slopes, squares)
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
            energies += coefficient * outer(vectors)
            for axis, key in enumerate(keys):
                share = np.moveaxis(variances, axis, -1)
                for other, vector in enumerate(vectors):
                    if other != axis:
                        share = np.tensordot(vector, share, axes=(0, 0))
                transposed = self.grams[axis][key].T @ inverses[axis]
                pulls[axis] += coefficient * share * (images[axis][key] + transposed)
        return energies, pulls


def free_bases(terms: KronSum, start: Product) -> Product:
    """Return the best strategy with free bases that a descent from a product finds, or that product.

    Only sums of products are served; with explicit queries, or more than ``LIMITS.max_free_cells`` cells, the
    product is returned as it is.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.selection.gram import ConvexSolver
    >>> from matrixdp.selection.problem.kron_sum import KronSum
    >>> domain = mdp.Domain({"a": 8, "b": 8})
    >>> crossed = mdp.product(a="prefix", b="identity"), mdp.product(a="identity", b="prefix")
    >>> terms = KronSum.of(domain, mdp.Workload(domain, *crossed).groups)
    >>> product = solve_structured(terms, ConvexSolver(1e-6))
    >>> free_bases(terms, product).loss < 0.98 * product.loss
    True
    """
    free = not terms.explicit and len(terms.sizes) >= 2
    if not free or math.prod(terms.sizes) > LIMITS.max_free_cells:
        return start
    error = _Error(terms)
    shape = tuple(factor.height for factor in start.factors)
    steps = min(
        _DESCENT_STEPS,
        int(_MOST_DESCENT_WORK / error.work / len(_POWERS)),
    )
    if shape != error.shape or steps < 1:
        return start
    bases = [factor.rows @ own for factor, own in zip(start.factors, error.inverses, strict=True)]
    logs = np.zeros(shape) if start.multipliers is None else np.log(start.multipliers)
    flat = error.flat(bases, logs)
    for power in _POWERS:
        flat = descend(
            partial(error, power=power), flat, Effort(steps, _FREE_TOLERANCE, 1e-5, evaluations=steps)
        )
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


def _best(terms: KronSum, rows: list[Array], weights: Array, start: Product) -> Product:
    """Return the product of free rows with the best weights, or the start where that is better."""
    factors = tuple(Factor(own, start.loss) for own in rows)
    energies = terms.row_energies([factor.inverse for factor in factors])
    squares = [own**2 for own in rows]
    solved, _ = row_weights(energies, squares, np.full(terms.sizes, 1.0 / math.prod(terms.sizes)))
    made = [weighted_product(factors, energies, own) for own in (weights, solved)]
    return min((start, *made), key=lambda product: product.loss)
