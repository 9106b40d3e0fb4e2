"""Two tables: with the Gram matrices on every attribute diagonal together, so are the normal equations.

On attribute i let V_i' G_ti V_i = diag(a_ti) for both tables t, with G = 11' where a table sums over the
attribute. The normal equations M = k_1 (x) G_1i + k_2 (x) G_2i are then V^-T diag(d) V^-1 with
d = k_1 (x) a_1i + k_2 (x) a_2i, and a query q has the variance |q V / sqrt(d)|^2. Where table 2 sums over an
attribute all but one column of V_i are seen by table 1 alone, so d is needed on the cells of each table's own
marginal only, never on those of both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact import MeasuredMatrix
from matrixdp.exact.linear import Array, along_axes, inverse_root
from matrixdp.plans.least_squares import Combination, Loss, Queries, asked_sets
from matrixdp.plans.split import TableAnalysis
from matrixdp.queries.groups import DenseGroup, Group, ProductGroup

#: Values of an attribute, and cells of a marginal, up to which two tables are combined.
MAX_VALUES, MAX_CELLS = 4_096, 20_000_000
#: Decimals of shares that tell columns apart.
_DECIMALS = 12


@dataclass(frozen=True, eq=False)
class Pencil:
    """V with V' G_t V = scale_t diag(shares_t) for two Gram matrices, the shares adding up to 1.

    Attributes
    ----------
    basis : ndarray
        V, shape (values, r): its columns span what either matrix sees.
    dual : ndarray
        Its inverse on that span, shape (r, values).
    shares : pair of ndarray
        Shape (r,) each; exactly 0 where a matrix sees nothing.
    scales : list of float
        The largest squared column norm of each matrix.
    """

    basis: Array
    dual: Array
    shares: tuple[Array, Array]
    scales: list[float]

    @property
    def total(self) -> float:
        """1'v of the first column. Where one table sums over the attribute, all other columns sum to 0."""
        return float(self.basis[:, 0].sum())

    @cached_property
    def alike(self) -> tuple[NDArray[np.intp], Array]:
        """For columns of equal shares the place of one, and which columns are alike, shape (r, kinds)."""
        rounded = self.shares[0].round(_DECIMALS)
        _, first, kinds = np.unique(rounded, return_index=True, return_inverse=True)
        return first, (kinds[:, None] == np.arange(len(first))).astype(np.float64)

    @classmethod
    def of(cls, first: MeasuredMatrix | None, second: MeasuredMatrix | None) -> Pencil:
        """Return the pencil of what two tables measure on an attribute; None is the sum over it.

        Raises NumericalError if the matrices are over different numbers of values.

        Examples
        --------
        >>> from matrixdp.exact import IdentityMatrix
        >>> pencil = Pencil.of(IdentityMatrix(2), None)
        >>> [share.round(6).tolist() for share in pencil.shares]
        [[0.333333, 1.0], [0.666667, 0.0]]
        >>> abs(pencil.basis.sum(axis=0)).round(6).tolist()
        [0.816497, 0.0]
        """
        matrices = [matrix for matrix in (first, second) if matrix is not None]
        sizes = {matrix.columns for matrix in matrices}
        if len(sizes) > 1:
            raise NumericalError("two matrices on one attribute have different numbers of columns")
        grams = [np.ones((*sizes, *sizes)) if own is None else own.gram() for own in (first, second)]
        scales = [float(gram.diagonal().max()) for gram in grams]
        ranks = [1 if matrix is None else matrix.rank for matrix in (first, second)]
        scaled = [gram / scale for gram, scale in zip(grams, scales, strict=True)]
        both = scaled[0] + scaled[1]
        try:
            inside = inverse_root(both, max(ranks)).T
        except np.linalg.LinAlgError:
            told = "measured matrices too close to singular for least squares with others"
            raise NumericalError(told) from None
        if len(matrices) == 2:
            values, vectors = np.linalg.eigh(inside.T @ scaled[0] @ inside)
            values = np.clip(values, 0.0, 1.0)
            values[: len(values) - ranks[0]] = 0.0
            values[ranks[1] :] = 1.0
        else:  # one column carries the sum over the attribute, and the others sum to 0
            sums = inside.sum(axis=0)
            vectors, values = scipy.linalg.qr(sums[:, None])[0], np.zeros(len(sums))
            # of more dimensions than the other matrix sees, the sum is one
            values[0] = 1.0 if len(sums) > max(ranks) else min(float(sums @ sums), 1.0)
            values = values if first is None else 1.0 - values
        basis = inside @ vectors
        return cls(basis, basis.T @ both, (values, 1.0 - values), scales)


class Pair(Combination):
    """The global least squares of two tables of products over single attributes."""

    work = 0.0

    def __init__(self, tables: Sequence[TableAnalysis]) -> None:
        super().__init__(tables)
        own = [{block.attributes[0]: block.matrix for block in part.blocks} for part in self.parts]
        pencils = {name: Pencil.of(own[0].get(name), own[1].get(name)) for name in {**own[0], **own[1]}}
        #: By table: the pencils of its attributes, and of those that only the other has.
        self._axes = [[pencils[name] for name in part.attributes] for part in self.parts]
        outside = [[pencil for name, pencil in pencils.items() if name not in of] for of in own]
        #: By table: 1'V along the attributes that only the other has.
        self._sums = [math.prod(pencil.total for pencil in others) for others in outside]
        #: By table: where the coordinates that both marginals have lie in its own.
        self._common = [
            tuple(slice(None) if name in other else 0 for name in part.attributes)
            for part, other in zip(self.parts, reversed(own), strict=True)
        ]
        #: By marginal, then by table: what the table sees of its coordinates, at noise 1.
        self._seen = [
            [self._information(axes, others, t) for t in (0, 1)]
            for axes, others in zip(self._axes, outside, strict=True)
        ]
        #: 1 / d on the marginal of each; 0 where nothing is seen.
        self._inverses = []
        for first, second in self._seen:
            total = first / self.noise[0] + second / self.noise[1]
            self._inverses.append(np.divide(1.0, total, out=np.zeros_like(total), where=total > 0))

    @staticmethod
    def fits(tables: Sequence[TableAnalysis]) -> bool:
        """Return whether there are two tables, small enough to be combined."""
        domain, names = tables[0].domain, [table.parts[0].attributes for table in tables]
        return (
            len(tables) == 2
            and all(domain.cells(own) <= MAX_CELLS for own in names)
            and all(domain[name].size <= MAX_VALUES for own in names for name in own)
        )

    @staticmethod
    def _information(axes: Sequence[Pencil], outside: Sequence[Pencil], t: int) -> Array:
        factor = math.prod(pencil.scales[t] for pencil in (*axes, *outside))
        found = np.array(factor * math.prod(float(pencil.shares[t][0]) for pencil in outside))
        for pencil in axes:
            found = np.multiply.outer(found, pencil.shares[t])
        return np.asarray(found)

    def _scores(self, t: int) -> Array:
        """Return the factors from the coordinates of a table's own estimate to its right-hand side."""
        # along attributes that the table sums over, what it sees is (1'V)^2 and what it says is 1'V
        return np.asarray(self._seen[t][t] / (self.noise[t] * self._sums[t]))

    def tables(self, estimates: Sequence[Array]) -> list[Array]:
        sides = [
            np.asarray(self._scores(t) * along_axes(estimate, [pencil.dual for pencil in self._axes[t]]))
            for t, estimate in enumerate(estimates)
        ]
        both = sides[0][self._common[0]] + sides[1][self._common[1]]
        found = []
        for t, side in enumerate(sides):
            side[self._common[t]] = both
            solved = self._sums[t] * self._inverses[t] * side
            found.append(along_axes(solved, [pencil.basis for pencil in self._axes[t]]))
        return found

    def _coordinates(self, t: int, rows: Array) -> Array:
        """Return queries on a table in V's coordinates, shape (queries, *ranks)."""
        shape = [len(pencil.basis) for pencil in self._axes[t]]
        bases = [pencil.basis.T for pencil in self._axes[t]]
        return self._sums[t] * along_axes(rows.reshape(len(rows), *shape), bases, 1)

    def weights(self, queries: Queries) -> list[Array]:
        count = len(next(iter(queries.values())))
        solved = [np.zeros((count, *own.shape)) for own in self._inverses]
        for t, rows in queries.items():
            own = self._coordinates(t, rows) * self._inverses[t]
            solved[t] += own
            solved[1 - t][:, *self._common[1 - t]] += own[:, *self._common[t]]
        found = []
        for t, own in enumerate(solved):
            back = along_axes(own * self._scores(t), [pencil.dual.T for pencil in self._axes[t]], 1)
            found.append(back.reshape(count, -1))
        return found

    def _squares(self, t: int, group: ProductGroup) -> list[Array]:
        """Return the squared coordinates of what a group asks of each attribute, summed over those alike.

        Shape (queries, kinds of columns) each.
        """
        sets = zip(asked_sets(self.parts[t], group), self._axes[t], strict=True)
        return [predicates.apply(pencil.basis) ** 2 @ pencil.alike[1] for predicates, pencil in sets]

    def _of_kinds(self, t: int, tensor: Array) -> Array:
        """Return a tensor of coordinates at one of each kind."""
        return tensor[np.ix_(*(pencil.alike[0] for pencil in self._axes[t]))]

    def variances(self, place: int, group: ProductGroup) -> Array:
        scaled = self._sums[place] ** 2 * self._of_kinds(place, self._inverses[place])
        return along_axes(scaled, self._squares(place, group)).ravel()

    def factors(self, place: int, group: ProductGroup) -> Mapping[str, Sequence[Array] | None]:
        squares = dict(zip(self.parts[place].attributes, self._squares(place, group), strict=True))
        return {name: list(squares[name].T) if name in squares else [] for name in group.attributes}

    def loss(self, placed: Iterable[tuple[int, Group]]) -> Loss:
        seen = [[self._of_kinds(t, own) for own in self._seen[t]] for t in (0, 1)]
        energies = [np.zeros(own[0].shape) for own in seen]
        for t, group in placed:
            energies[t] += group.weight * self._energy(t, group)

        def evaluate(precisions: Array) -> tuple[float, Array]:
            total, gradient = 0.0, np.zeros(2)
            for energy, (first, second) in zip(energies, seen, strict=True):
                asked = first + second > 0
                inverse = 1.0 / (precisions[0] * first[asked] + precisions[1] * second[asked])
                own = energy[asked] * inverse
                total += float(own.sum())
                gradient -= [float((own * inverse) @ part[asked]) for part in (first, second)]
            return total, gradient

        return evaluate

    def _energy(self, t: int, group: Group) -> Array:
        """Return the weighted sum of the squared coordinates of a group's queries, by kinds."""
        if isinstance(group, DenseGroup):
            squares = self._coordinates(t, self.alone[t].rows(group)) ** 2
            weights = np.ones(len(squares)) if group.query_weights is None else group.query_weights
            found = np.tensordot(weights, squares, axes=(0, 0))
            return along_axes(found, [pencil.alike[1].T for pencil in self._axes[t]])
        axes = self._squares(t, group)
        if group.query_weights is None:
            axes = [own.sum(axis=0, keepdims=True) for own in axes]
            tensor = np.ones([1] * len(axes))
        else:
            tensor = group.query_weights.reshape([len(own) for own in axes])
        return self._sums[t] ** 2 * along_axes(tensor, [own.T for own in axes])
