"""Error analysis of one view of a plan: variances of queries, known before any data.

All figures are at privacy cost 1; they scale with 1 / cost. Everything is assembled from one vector per
predicate set and measured matrix, so a group of a million queries costs a few outer products.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError, UnsupportedQueryError
from matrixdp.plan.part import Block, Part
from matrixdp.plan.plan import Plan, Split
from matrixdp.plan.quadratic_forms import (
    along,
    not_measured,
    one_query,
    product_quadratic,
    project,
    spread_query,
    structured_covariance,
)
from matrixdp.queries.groups import DenseGroup, Group, ProductGroup
from matrixdp.queries.predicates import Predicates, Total

__all__ = ["ViewAnalysis"]

Array = NDArray[np.float64]

#: Squared relative norm above which a part of a query outside the measured span counts.
SUPPORT_TOLERANCE = 1e-9
#: Queries per group up to which per-query variances are formed in one piece.
MAX_VARIANCES = 400_000_000


@dataclass(eq=False)
class ViewAnalysis:
    """Variances and covariances of queries under a plan that is ``direct`` or ``split``.

    Parameters
    ----------
    plan : Plan
        What will be measured.
    """

    plan: Plan
    weights: dict[str, Array] | None = field(init=False)
    _axis: dict[Hashable, Array] = field(default_factory=dict)
    _outside: dict[Hashable, float] = field(default_factory=dict)
    _keys: dict[int, Hashable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.weights = self.plan.weights if isinstance(self.plan, Split) else None

    def weights_of(self, name: str) -> Array | None:
        """Return the attribute's weight vector, or None under a direct plan."""
        return None if self.weights is None else self.weights[name]

    def pieces(self, attributes: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Part | None]]:
        """Yield the marginals that a query on ``attributes`` splits over, with their parts."""
        if self.weights is None:
            part = self.plan.parts[0]
            missing = [name for name in attributes if name not in part.attributes]
            if missing:
                raise UnsupportedQueryError(
                    f"attribute {missing[0]!r} was not measured: the strategy measures one table of "
                    f"{', '.join(part.attributes)}"
                )
            yield part.attributes, part
            return
        for size in range(len(attributes) + 1):
            for kept in combinations(attributes, size):
                position = self.plan.index.get(kept)
                yield kept, None if position is None else self.plan.parts[position]

    def asked(self, group: Group) -> tuple[str, ...]:
        """Return the attributes that a group asks about; totals of unmeasured attributes need nothing."""
        if self.weights is not None or isinstance(group, DenseGroup):
            return group.attributes
        measured = self.plan.parts[0].attributes
        pairs = zip(group.attributes, group.predicates, strict=True)
        return tuple(n for n, p in pairs if n in measured or not isinstance(p, Total))

    # ---- one attribute -------------------------------------------------------------------------

    def contracted(self, name: str, predicates: Predicates) -> Array:
        """Return q.w for every query of a set on one attribute."""
        weights = self.weights_of(name)
        assert weights is not None
        key = ("contracted", name, predicates.key(len(weights)))
        if key not in self._axis:
            self._axis[key] = predicates.apply(weights[:, None])[:, 0]
        return self._axis[key]

    def _largest_contraction(self, name: str, predicates: Predicates) -> float:
        """Return the largest squared q.w of a set on one attribute."""
        return float((self.contracted(name, predicates) ** 2).max())

    def _residual_norms(self, name: str, predicates: Predicates) -> Array:
        """Return the squared norms of q - (q.w) 1' relative to 1 + the squared norm of q."""
        weights = self.weights_of(name)
        assert weights is not None
        size = len(weights)
        sums = predicates.apply(np.ones((size, 1)))[:, 0]
        means = self.contracted(name, predicates)
        squares = predicates.squares(size)
        norms = squares - 2 * means * sums + means**2 * size
        return np.asarray(np.maximum(norms, 0.0) / (1.0 + squares))

    def axis_variances(self, block: Block, predicates: Predicates) -> Array:
        """Return the variance of the pieces of a set on one attribute, at unit noise."""
        name = block.attributes[0]
        size = block.matrix.columns
        key = (block.matrix.digest(), name if self.weights else "", predicates.key(size))
        if key in self._axis:
            return self._axis[key]
        weights = self.weights_of(name)
        structure = structured_covariance(block.matrix)
        if structure is not None and size > 512:
            scale, shift = structure
            sums = predicates.apply(np.ones((size, 1)))[:, 0]
            squares = predicates.squares(size)
            if weights is None:
                values = scale * squares + shift * sums**2
            else:
                means = self.contracted(name, predicates)
                values = scale * (squares - 2 * means * sums + means**2 * size)
                values = values + shift * (sums - means * size) ** 2
        else:
            form = block.matrix.covariance()
            values = predicates.quadratic(form if weights is None else project(form, weights))
        self._axis[key] = np.maximum(values, 0.0)
        return self._axis[key]

    # ---- several attributes --------------------------------------------------------------------

    def _block_form(self, block: Block) -> Array:
        """Return the covariance of a block's estimate as pieces see it, shape (cells, cells)."""
        form = block.matrix.covariance()
        if self.weights is None:
            return form
        sizes = [self.plan.domain[name].size for name in block.attributes]
        tensor = form.reshape(*sizes, *sizes)
        for axis, name in enumerate(block.attributes):
            w = self.weights[name]
            projection = np.eye(len(w)) - np.outer(w, np.ones(len(w)))
            tensor = along(along(tensor, axis, projection), axis + len(sizes), projection)
        return tensor.reshape(form.shape)

    def _block_variances(self, block: Block, predicates: Sequence[Predicates]) -> Array:
        """Return the variances of the product of sets on a block of several attributes."""
        if len(predicates) == 1:
            return self.axis_variances(block, predicates[0])
        sizes = [self.plan.domain[name].size for name in block.attributes]
        key = (
            block.matrix.digest(),
            block.attributes if self.weights else "",
            tuple(p.key(n) for p, n in zip(predicates, sizes, strict=True)),
        )
        if key not in self._axis:
            form = self._block_form(block)
            self._axis[key] = np.maximum(product_quadratic(form, predicates, sizes), 0.0)
        return self._axis[key]

    def part_variances(self, part: Part, predicates: Sequence[Predicates]) -> Array:
        """Return the variances of pieces of a product on a part, in the shape of its query counts."""
        by_name = dict(zip(part.attributes, predicates, strict=True))
        listed = [name for block in part.blocks for name in block.attributes]
        if part.multipliers is not None:
            values = self._multiplied_variances(part, [by_name[name] for name in listed])
        else:
            values = np.ones(())
            for block in part.blocks:
                values = np.multiply.outer(
                    values, self._block_variances(block, [by_name[n] for n in block.attributes])
                )
        values = np.transpose(values, [listed.index(name) for name in part.attributes])
        return values * part.variance

    def _multiplied_variances(self, part: Part, predicates: Sequence[Predicates]) -> Array:
        assert part.multipliers is not None
        values = 1.0 / np.asarray(part.multipliers, dtype=float) ** 2
        for axis, (block, sets) in enumerate(zip(part.blocks, predicates, strict=True)):
            weights = self.weights_of(block.attributes[0])
            inverse = block.matrix.solve(np.eye(block.matrix.rows))
            if weights is not None:
                inverse = inverse - np.outer(weights, inverse.sum(axis=0))
            values = along(values, axis, sets.apply(inverse) ** 2)
        return values

    def unsupported(self, part: Part, rows: Array) -> bool:
        """Return whether pieces (queries x cells of the part) leave what the part measures."""
        tensor = rows.reshape(len(rows), *[self.plan.domain[name].size for name in part.attributes])
        norm = float((rows**2).sum()) + 1.0
        for block in part.blocks:
            matrix = block.matrix
            if matrix.unsupported is None:
                continue
            axes = [part.attributes.index(name) + 1 for name in block.attributes]
            moved = np.moveaxis(tensor, axes, range(1, len(axes) + 1))
            moved = moved.reshape(len(rows), matrix.columns, -1)
            outside = np.einsum("kn,qnr->qkr", matrix.unsupported, moved, optimize=True)
            if float((outside**2).sum()) > SUPPORT_TOLERANCE * norm:
                return True
        return False

    # ---- groups --------------------------------------------------------------------------------

    def variances(self, group: Group) -> Array:
        """Return the variance of every query of a group, flat, row-major.

        Raises
        ------
        UnsupportedQueryError
            If a query of the group is not determined by what the plan measures.
        TooLargeError
            If the group has more queries than can be held.
        """
        if group.queries > MAX_VARIANCES:
            raise TooLargeError(f"{group.name}: {group.queries} variances would be formed at once")
        if isinstance(group, DenseGroup):
            return self._row_variances(group.attributes, group.rows(), group.name)
        self.check_support(group)
        total = np.zeros(group.counts)
        by_name = dict(zip(group.attributes, group.predicates, strict=True))
        for kept, part in self.pieces(self.asked(group)):
            if part is None:
                continue
            sets = [by_name.get(name, Total()) for name in kept]
            values = self.part_variances(part, sets)
            if self.weights is None:
                extra = [axis for axis, name in enumerate(kept) if name not in by_name]
                total += np.squeeze(values, axis=tuple(extra)).reshape(group.counts)
                continue
            shape = [group.counts[i] if name in kept else 1 for i, name in enumerate(group.attributes)]
            values = values.reshape(shape)
            for i, name in enumerate(group.attributes):
                if name not in kept:
                    factor = self.contracted(name, by_name[name]) ** 2
                    values = values * factor.reshape([-1 if j == i else 1 for j in range(len(shape))])
            total += values
        return total.ravel()

    def check_support(self, group: ProductGroup) -> None:
        """Raise UnsupportedQueryError if a query of a product group is not determined."""
        by_name = dict(zip(group.attributes, group.predicates, strict=True))
        for kept, part in self.pieces(self.asked(group)):
            if part is None:
                size = 1.0
                for name in group.attributes:
                    if name in kept:
                        size *= float(self._residual_norms(name, by_name[name]).max())
                    else:
                        size *= self._largest_contraction(name, by_name[name])
                if size > SUPPORT_TOLERANCE:
                    raise UnsupportedQueryError(f"{group.name}: {not_measured(kept)}")
                continue
            contracted = [name for name in group.attributes if name not in kept]
            if self.weights is not None and any(
                self._largest_contraction(name, by_name[name]) == 0.0 for name in contracted
            ):
                continue  # the pieces on this marginal are zero: an attribute stays whole
            for block in part.blocks:
                matrix = block.matrix
                if matrix.unsupported is None:
                    continue
                self._check_block(group, block, matrix.unsupported, by_name)

    def _check_block(
        self, group: ProductGroup, block: Block, outside: Array, by_name: dict[str, Predicates]
    ) -> None:
        sizes = [self.plan.domain[name].size for name in block.attributes]
        key = ("support", block.matrix.digest(), block.attributes, *[
            by_name.get(n, Total()).key(s) for n, s in zip(block.attributes, sizes, strict=True)
        ])  # fmt: skip
        if key not in self._outside:
            tensor = outside.reshape(len(outside), *sizes)
            norm = 1.0
            for axis, name in enumerate(block.attributes):
                sets = by_name.get(name, Total())
                norm *= 1.0 + float(sets.squares(sizes[axis]).max())
                w = self.weights_of(name)
                if w is not None:
                    # outside (q P)' = (outside P') q', with P' = I - 1 w'
                    shape = [-1 if i == axis + 1 else 1 for i in range(tensor.ndim)]
                    tensor = tensor - tensor.sum(axis=axis + 1, keepdims=True) * w.reshape(shape)
                moved = np.moveaxis(tensor, axis + 1, 0)
                out = sets.apply(moved.reshape(sizes[axis], -1))
                tensor = np.moveaxis(out.reshape(out.shape[0], *moved.shape[1:]), 0, axis + 1)
            self._outside[key] = float((tensor**2).sum(axis=0).max()) / norm
        if self._outside[key] > SUPPORT_TOLERANCE:
            raise UnsupportedQueryError(
                f"{group.name}: asks more of {', '.join(block.attributes)} than the strategy measures there; "
                "ask a query that the workload's queries on it determine"
            )

    def piece_rows(self, attributes: tuple[str, ...], kept: tuple[str, ...], rows: Array) -> Array:
        """Return explicit queries on ``attributes`` as pieces on the cells of ``kept``."""
        domain = self.plan.domain
        tensor = rows.reshape(len(rows), *[domain[name].size for name in attributes])
        if self.weights is None:
            for axis, name in enumerate(kept):
                if name not in attributes:
                    tensor = np.repeat(np.expand_dims(tensor, axis + 1), domain[name].size, axis=axis + 1)
            return tensor.reshape(len(rows), -1)
        for axis in range(len(attributes), 0, -1):
            name = attributes[axis - 1]
            mean = np.tensordot(tensor, self.weights[name], axes=(axis, 0))
            tensor = tensor - np.expand_dims(mean, axis) if name in kept else mean
        return tensor.reshape(len(rows), -1)

    def _row_variances(self, attributes: tuple[str, ...], rows: Array, name: str) -> Array:
        total = np.zeros(len(rows))
        for kept, part in self.pieces(attributes):
            pieces = self.piece_rows(attributes, kept, rows)
            if part is None:
                if float((pieces**2).max(initial=0.0)) > SUPPORT_TOLERANCE * float((rows**2).max()):
                    raise UnsupportedQueryError(f"{name}: {not_measured(kept)}")
                continue
            if self.unsupported(part, pieces):
                raise UnsupportedQueryError(f"{name}: asks more of {', '.join(kept)} than was measured there")
            total += self.inner(part, pieces, pieces)
        return total

    def inner(self, part: Part, left: Array, right: Array) -> Array:
        """Return the covariances of pieces, row by row: shape (queries, cells) twice in, (queries,) out."""
        sizes = [self.plan.domain[name].size for name in part.attributes]
        out = right.reshape(len(right), *sizes)
        if part.multipliers is not None:
            pieces = [left.reshape(len(left), *sizes), out]
            for i in range(2):
                for block in part.blocks:
                    inverse = block.matrix.solve(np.eye(block.matrix.rows))
                    position = part.attributes.index(block.attributes[0])
                    pieces[i] = along(pieces[i], position + 1, inverse.T)
            listed = [block.attributes[0] for block in part.blocks]
            scale = np.transpose(part.multipliers, [listed.index(n) for n in part.attributes])
            product = pieces[0] * pieces[1] / np.asarray(scale, dtype=float) ** 2
            return np.asarray(part.variance * product.reshape(len(left), -1).sum(axis=1))
        for block in part.blocks:
            axes = [part.attributes.index(name) + 1 for name in block.attributes]
            moved = np.moveaxis(out, axes, range(len(axes)))
            structure = structured_covariance(block.matrix)
            flat = np.ascontiguousarray(moved).reshape(block.matrix.columns, -1)
            if structure is None:
                flat = block.matrix.covariance() @ flat
            else:
                flat = structure[0] * flat + structure[1] * flat.sum(axis=0, keepdims=True)
            out = np.moveaxis(flat.reshape(moved.shape), range(len(axes)), axes)
        return np.asarray(part.variance * np.einsum("ij,ij->i", left, out.reshape(len(left), -1)))

    def covariance(self, left: Group, i: int, right: Group, j: int) -> float:
        """Return the covariance of query i of one group and query j of another."""
        attributes = self.plan.domain.sort(dict.fromkeys((*left.attributes, *right.attributes)))
        cells = math.prod(self.plan.domain[name].size for name in attributes)
        rows = [
            spread_query(one_query(group, index), group.attributes, attributes, self.plan)
            for group, index in ((left, i), (right, j))
        ]
        assert all(row.shape == (1, cells) for row in rows)
        total = 0.0
        for kept, part in self.pieces(attributes):
            if part is not None:
                pieces = [self.piece_rows(attributes, kept, row) for row in rows]
                total += float(self.inner(part, pieces[0], pieces[1])[0])
        return total

    def group_key(self, group: Group) -> Hashable:
        """Return a value equal for groups with equal variances under the plan."""
        parts: list[Hashable] = []
        for _, part in self.pieces(self.asked(group)):
            parts.append(None if part is None else self._part_key(part, group.attributes))
        weights = () if self.weights is None else tuple(
            id(self.weights[name]) for name in group.attributes
        )  # fmt: skip
        sizes = tuple(self.plan.domain[name].size for name in group.attributes)
        own = None if group.query_weights is None else group.query_weights.tobytes()
        kind = type(group).__name__
        return (kind, sizes, group.key(), group.weight, own, tuple(parts), weights)

    def _part_key(self, part: Part, attributes: tuple[str, ...]) -> Hashable:
        key = self._keys.get(id(part))
        if key is None:
            key = (
                tuple((b.matrix.digest(), len(b.attributes)) for b in part.blocks),
                part.variance,
                None if part.multipliers is None else part.multipliers.tobytes(),
            )
            self._keys[id(part)] = key
        order = tuple(
            attributes.index(n) if n in attributes else -1 for b in part.blocks for n in b.attributes
        )
        return (key, order)
