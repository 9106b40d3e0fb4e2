"""Solving one sub-workload: common factors apart, the rest jointly."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.noise import Noise
from matrixdp.selection.convex import DEFAULT_GAP, Design, solve_gram, solve_rows
from matrixdp.selection.residual.bases import fixed_design, fixed_product, residual_basis
from matrixdp.selection.residual.fourier import (
    MAX_FOURIER_CELLS,
    fourier_energies,
    fourier_loss,
    fourier_strategy,
)
from matrixdp.selection.residual.laplace import SumDesign, symmetric_sum_loss
from matrixdp.selection.residual.pieces import Pieces, Term, numeric_terms
from matrixdp.selection.residual.split import SubWorkload
from matrixdp.selection.residual.structured import StructuredDesign, StructuredProblem, solve_structured

__all__ = ["MAX_JOINT_CELLS", "SUB_SOLVERS", "BlockSolution", "SubSolution", "SubSolver"]

Array = NDArray[np.float64]

#: What ``sub_solver`` may be; see `SubSolver`.
SUB_SOLVERS = ("auto", "optimum", "product", "fourier", "fixed", "fast")
#: Sub-workloads that do not factor are solved jointly up to this many cells.
MAX_JOINT_CELLS = 2_000
#: ... or up to this many explicit queries, over at most ``MAX_ROW_CELLS`` cells.
MAX_JOINT_ROWS = 1_000
MAX_ROW_CELLS = 8_000


@dataclass(frozen=True, eq=False)
class BlockSolution:
    """The optimum on some axes of a sub-workload.

    Attributes
    ----------
    axes : tuple of int
        Positions within the sub-workload's marginal.
    design : Design or None
        The strategy; None stands for the centered identity I - 11'/n of a symmetric attribute.
    size : int
        Cells.
    loss, bound : float
        At privacy cost 1, for the block's own Gram matrix.
    terms : list of Term
        The Gram matrix as Kronecker terms over ``axes`` (explicit queries not included).
    key : hashable
        Equal for blocks with equal content.
    structured : StructuredDesign, optional
        In the place of ``design`` where the axes are too large for a joint solution.
    method : str
        ``optimum``, ``product``, ``fourier`` or ``fixed``: which sub-solver it comes from.
    """

    axes: tuple[int, ...]
    design: Design | None
    size: int
    loss: float
    bound: float
    terms: list[Term]
    key: Hashable
    structured: StructuredDesign | None = None
    method: str = "optimum"


@dataclass(frozen=True, eq=False)
class SubSolution:
    """A sub-workload's optimum: a product of blocks, times a scale."""

    scale: float
    blocks: tuple[BlockSolution, ...]
    has_rows: bool

    @property
    def loss(self) -> float:
        """The least total squared error at privacy cost 1."""
        return self.scale * math.prod(block.loss for block in self.blocks)

    @property
    def bound(self) -> float:
        """A lower bound on the error of every strategy for this sub-workload."""
        return self.scale * math.prod(block.bound for block in self.blocks)


SolveGram = Callable[[Array, Sequence[int], float, Array | None], Design]


@dataclass(eq=False)
class SubSolver:
    """Solves sub-workloads at given weights, each distinct problem once.

    Parameters
    ----------
    pieces : Pieces
        The split at its weights.
    gap : float
        Relative gap to reach.
    joint_cells : int
        Sub-workloads that do not factor are solved jointly up to this many cells.
    row_cells : int
        ... and where there are only explicit queries, fewer than cells, up to this many.
    weigh_rows : bool
        Whether larger ones get row weights beyond the best product.
    starts : dict
        Dual distributions to start from, by the structure of the problem; filled as problems are solved,
        so that the next weights start from the last ones' optimum.
    products : dict
        The same for products of designs.
    dense, dense_rows : callable, optional
        The sub-solvers for an explicit Gram matrix and for explicit queries; the certified optimum by
        default.
    noise : Noise
        In which norm sensitivity is measured; ``dense`` and ``dense_rows`` have to suit.
    sub_solver : str
        For sub-workloads that do not factor. ``optimum``: jointly, or refused where too large.
        ``product``: the best product of strategies for the axes, with row weights. ``fourier``: the best
        strategy in the Fourier basis. ``fixed``: the product of given bases, for single axes too. ``auto``
        and ``fast``: jointly where that fits, else the better of product and Fourier basis.
    bases : dict of int to ndarray
        For ``fixed``: the basis of each attribute type; types without one measure all values alike.

    References
    ----------
    QuerySmasher (2026), section 6.3.
    """

    pieces: Pieces
    noise: Noise
    gap: float = DEFAULT_GAP
    joint_cells: int = MAX_JOINT_CELLS
    row_cells: int = MAX_ROW_CELLS
    weigh_rows: bool = True
    starts: dict[Hashable, Array] = field(default_factory=dict)
    products: dict[Hashable, list[Design]] = field(default_factory=dict)
    dense: SolveGram = solve_gram
    dense_rows: SolveGram = solve_rows
    sub_solver: str = "auto"
    bases: dict[int, Array] = field(default_factory=dict)
    solved: dict[Hashable, BlockSolution] = field(default_factory=dict)

    def solve(self, sub: SubWorkload) -> SubSolution | None:
        """Return the optimum of a sub-workload, or None where all its pieces are zero."""
        terms = numeric_terms(self.pieces, sub)
        if not sub.types:
            total = sum(term.coefficient for term in terms)
            for item in sub.rows:
                rows = self.pieces.explicit_rows(item.explicit, item.kept)
                total += item.weight * float((rows**2).sum())
            return SubSolution(total, (), bool(sub.rows)) if total > 0 else None
        explicit = [
            (item, rows)
            for item in sub.rows
            if float(np.abs(rows := self.pieces.explicit_rows(item.explicit, item.kept)).max()) > 1e-12
        ]
        if not terms and not explicit:
            return None
        if explicit:
            axes = tuple(range(len(sub.types)))
            block = self._joint(sub, axes, terms, [(item.weight, rows) for item, rows in explicit])
            return SubSolution(1.0, (block,), True)
        shared = [axis for axis in range(len(sub.types)) if len({term.kept[axis] for term in terms}) == 1]
        mixed = tuple(axis for axis in range(len(sub.types)) if axis not in shared)
        blocks = [self._axis(sub, axis, [Term(1.0, (terms[0].kept[axis],))]) for axis in shared]
        scale = 1.0
        if mixed:
            inner = [Term(t.coefficient, tuple(t.kept[a] for a in mixed)) for t in terms]
            top = max(t.coefficient for t in inner)
            inner = sorted((Term(t.coefficient / top, t.kept) for t in inner), key=lambda t: t.kept)
            scale = top
            if len(mixed) == 1:
                blocks.append(self._axis(sub, mixed[0], inner))
            else:
                blocks.append(self._joint(sub, mixed, inner, []))
        else:
            scale = terms[0].coefficient
        if any(block.loss <= 0.0 for block in blocks):
            return None
        return SubSolution(scale, tuple(blocks), False)

    def gram(self, terms: Sequence[Term]) -> Array:
        """Return the sum of Kronecker terms as one matrix."""
        total: Array | None = None
        for term in terms:
            product = np.full((1, 1), term.coefficient)
            for slot in term.kept:
                product = np.kron(product, self.slot_gram(slot))
            total = product if total is None else total + product
        assert total is not None
        return total

    def slot_gram(self, slot: int) -> Array:
        """Return the Gram matrix of a slot's pieces, shape (n, n)."""
        piece = self.pieces.slots[slot]
        if piece.gram is not None:
            return piece.gram
        size = self.pieces.split.slots[slot].size
        return piece.coefficient * (np.eye(size) - 1.0 / size)

    def _content(self, slot: int) -> Hashable:
        definition = self.pieces.split.slots[slot]
        weights = self.pieces.weights[definition.type]
        return (definition.predicates.key(definition.size), hash(weights.tobytes()))

    def _axis(self, sub: SubWorkload, axis: int, terms: list[Term]) -> BlockSolution:
        size = sub.sizes[axis]
        key = ("axis", tuple((float(f"{t.coefficient:.12g}"), self._content(t.kept[0])) for t in terms))
        if key not in self.solved:
            first = self.pieces.slots[terms[0].kept[0]]
            if first.gram is None and self._basis_of(sub, axis) is None:
                loss = symmetric_sum_loss(size) if self.noise.norm == 1 else (size - 1) ** 2 / size
                loss *= first.coefficient
                self.solved[key] = BlockSolution((axis,), None, size, loss, loss, terms, key)
            else:
                start_key = ("axis", tuple(t.kept for t in terms))
                gram = self.gram(terms)
                basis = self._basis_of(sub, axis)
                if basis is None:
                    self.solved[key] = self._solved((axis,), gram, (size,), terms, key, start_key)
                else:
                    found = residual_basis(basis, self.pieces.weights[sub.types[axis]])
                    design = fixed_design(found, gram)
                    self.solved[key] = BlockSolution(
                        (axis,), design, size, design.loss, design.bound, terms, key, None, "fixed"
                    )
        block = self.solved[key]
        return BlockSolution(
            (axis,), block.design, size, block.loss, block.bound, terms, key, None, block.method
        )

    def _basis_of(self, sub: SubWorkload, axis: int) -> Array | None:
        """Return the basis that is given for an axis, if any."""
        return self.bases.get(sub.types[axis]) if self.sub_solver == "fixed" else None

    def _solved(
        self,
        axes: tuple[int, ...],
        gram: Array,
        sizes: Sequence[int],
        terms: list[Term],
        key: Hashable,
        start_key: Hashable,
    ) -> BlockSolution:
        # what is left of queries that are constant along an attribute is rounding error
        raw = sum(float(np.abs(self.pieces.scale(t.kept))) * t.coefficient for t in terms)
        if float(np.abs(gram).max()) <= 1e-13 * raw:
            return BlockSolution(axes, None, len(gram), 0.0, 0.0, terms, key)
        design = self.dense(gram, sizes, self.gap, self.starts.get(start_key))
        self._remember(start_key, design)
        return BlockSolution(axes, design, len(gram), design.loss, design.bound, terms, key)

    def _remember(self, start_key: Hashable, design: Design) -> None:
        self.starts[start_key] = design.factor if isinstance(design, SumDesign) else design.p

    def _joint(
        self, sub: SubWorkload, axes: tuple[int, ...], terms: list[Term], explicit: list[tuple[float, Array]]
    ) -> BlockSolution:
        sizes = [sub.sizes[axis] for axis in axes]
        cells = math.prod(sizes)
        queries = sum(len(rows) for _, rows in explicit)
        key = (
            "joint",
            tuple(sizes),
            tuple((float(f"{t.coefficient:.12g}"), *map(self._content, t.kept)) for t in terms),
            tuple((float(f"{w:.12g}"), hash(rows.tobytes())) for w, rows in explicit),
        )
        start_key = ("joint", tuple(sizes), tuple(t.kept for t in terms), tuple(len(r) for _, r in explicit))
        if key not in self.solved:
            if self.sub_solver in ("product", "fourier", "fixed"):
                self.solved[key] = self._apart(sub, axes, terms, explicit, key, start_key)
            elif not terms and queries < cells and queries <= MAX_JOINT_ROWS and cells <= self.row_cells:
                stacked = np.vstack([np.sqrt(weight) * rows for weight, rows in explicit])
                design = self.dense_rows(stacked, sizes, self.gap, self.starts.get(start_key))
                self._remember(start_key, design)
                block = BlockSolution(axes, design, cells, design.loss, design.bound, terms, key)
                if self.noise.norm == 1 and cells > self.joint_cells and self.sub_solver != "optimum":
                    # no optimum is known there: a product is tried too
                    other = self._apart(sub, axes, terms, explicit, key, (start_key, "product"))
                    block = other if other.loss < block.loss else block
                self.solved[key] = block
            elif cells <= self.joint_cells:
                gram = self.gram(terms) if terms else np.zeros((cells, cells))
                for weight, rows in explicit:
                    gram = gram + weight * (rows.T @ rows)
                self.solved[key] = self._solved(axes, gram, sizes, terms, key, start_key)
            elif self.sub_solver == "optimum":
                raise TooLargeError(
                    f"sub_solver optimum: a sub-workload of {cells} cells that does not factor; the limit is "
                    f"{self.joint_cells} cells. Use auto, product or fourier."
                )
            else:
                self.solved[key] = self._apart(sub, axes, terms, explicit, key, start_key)
        block = self.solved[key]
        return BlockSolution(
            axes, block.design, cells, block.loss, block.bound, terms, key, block.structured, block.method
        )

    def _apart(
        self,
        sub: SubWorkload,
        axes: tuple[int, ...],
        terms: list[Term],
        explicit: list[tuple[float, Array]],
        key: Hashable,
        start_key: Hashable,
    ) -> BlockSolution:
        """Return a solution that is not the joint optimum: a product, in the Fourier basis, or fixed."""
        sizes = tuple(sub.sizes[axis] for axis in axes)
        cells = math.prod(sizes)
        problem = StructuredProblem(
            sizes,
            [(t.coefficient, [self.slot_gram(slot) for slot in t.kept]) for t in terms],
            [(weight, rows.reshape(-1, *sizes)) for weight, rows in explicit],
        )
        found: StructuredDesign | None = None
        method = self.sub_solver if self.sub_solver == "fixed" else "product"
        if self.sub_solver == "fixed":
            designs = []
            for axis in axes:
                basis = self._basis_of(sub, axis)
                basis = np.eye(sub.sizes[axis]) if basis is None else basis
                designs.append(residual_basis(basis, self.pieces.weights[sub.types[axis]]))
            found = fixed_product(designs, problem)
        elif self.sub_solver != "fourier":
            laplace = self.noise.norm == 1
            found = solve_structured(
                problem,
                self.gap,
                self.weigh_rows and not laplace,
                self.products.get(start_key),
                self.dense if laplace else solve_gram,
            )
            self.products[start_key] = found.designs
        # the weights' search follows one family; Fourier strategies are compared once they are found
        if found is None or (method == "product" and self._tries_fourier(cells)):
            energies = fourier_energies(problem)
            if found is None or fourier_loss(energies) < found.loss * (1.0 - 1e-4):
                design = fourier_strategy(energies, sizes)
                return BlockSolution(
                    axes, design, cells, design.loss, design.loss, terms, key, None, "fourier"
                )
        return BlockSolution(axes, None, cells, found.loss, found.loss, terms, key, found, method)

    def _tries_fourier(self, cells: int) -> bool:
        known = self.noise.norm == 2 and self.sub_solver in ("auto", "fast")
        return known and self.weigh_rows and cells <= MAX_FOURIER_CELLS
