"""Solving one sub-workload: common factors apart, the rest jointly."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix
from matrixdp.exact.linear import Array, outer
from matrixdp.exact.resources import most_cells
from matrixdp.exact.structured import merged_cells
from matrixdp.noise import Noise
from matrixdp.selection.compose.methods import ProblemShape, method_for
from matrixdp.selection.compose.product import Product, free_bases, solve_structured
from matrixdp.selection.gram.factor import Factor, Solver
from matrixdp.selection.gram.optimum import ConvexSolver, gram_method, solve_gram
from matrixdp.selection.limits import LIMITS, Limits
from matrixdp.selection.problem.grams import ExplicitGram, Gram, SumGram
from matrixdp.selection.problem.kron_sum import KronSum, Rows, WrittenQueries, sum_of_products
from matrixdp.selection.problem.residuals import Pieces, Recent, SubWorkload, Term, numeric_terms

Places = NDArray[np.intp]

#: What ``sub_solver`` may be; see `SubSolver`.
SUB_SOLVERS = ("auto", "optimum", "product", "fast")
#: Which methods each of them allows where attributes do not factor; the others all.
_METHODS = {"optimum": ("dual by queries", "dual"), "product": ("product",)}
#: How `SubSolver.methods` calls it where none of them fits.
NO_METHOD = "none"


@dataclass(frozen=True, eq=False)
class BlockSolution:
    """A strategy on some axes of a sub-workload.

    Attributes
    ----------
    axes : tuple of int
        Positions within the sub-workload's marginal.
    found : Factor or Product
        A product where the axes are too large for a joint solution.
    terms : list of Term
        The block's own Gram matrix as Kronecker terms over ``axes`` (explicit queries not included).
    key : hashable
        Equal for blocks with equal content.
    method : str
        ``optimum``, ``product`` or the name of a construction: which sub-solver it comes from.
    groups : tuple of ndarray of int, optional
        For each axis the group of each value, where the strategy is over groups of values.
    """

    axes: tuple[int, ...]
    found: Factor | Product
    terms: list[Term]
    key: Hashable
    method: str = "optimum"
    groups: tuple[Places, ...] | None = None

    @cached_property
    def over_values(self) -> Factor | Product:
        """The strategy over all values: each has the column of its group."""
        if self.groups is None:
            return self.found
        if isinstance(self.found, Factor):
            return self.found.repeated(merged_cells(self.groups))
        pairs = zip(self.found.factors, self.groups, strict=True)
        return replace(self.found, factors=tuple(factor.repeated(own) for factor, own in pairs))


@dataclass(frozen=True, eq=False)
class SubSolution:
    """A sub-workload's strategy: a product of blocks, its errors times a scale."""

    scale: float
    blocks: tuple[BlockSolution, ...]
    has_rows: bool

    @property
    def loss(self) -> float:
        """The total squared error at privacy cost 1."""
        return self.scale * math.prod(block.found.loss for block in self.blocks)

    @property
    def level(self) -> float:
        """A smooth proxy for the loss: the dual bounds of blocks that have one, otherwise their losses."""
        return self.scale * math.prod(block.found.level for block in self.blocks)


class Construction(ABC):
    """A published construction that is measured in place of the optimum of sub-workloads.

    Attributes
    ----------
    name : str
        What certificates call it.
    by_type : bool
        Whether attributes of different types that are asked the same are measured differently.
    """

    name: str
    by_type = False

    @abstractmethod
    def axis(self, type_: int, weights: Array, gram: Callable[[], Array], structured: bool) -> Factor | None:
        """Return the strategy for one attribute, or None where the optimum is measured.

        ``structured`` says that the optimum is known in closed form.
        """

    @abstractmethod
    def joint(self, types: Sequence[int], weights: Sequence[Array], problem: KronSum) -> Factor | Product:
        """Return the strategy for several attributes that do not factor, each of its own type."""


@dataclass(eq=False)
class SubSolver:
    """Solves sub-workloads at given weights, each distinct problem once.

    Parameters
    ----------
    pieces : Pieces
        The split at its weights.
    noise : Noise
    solver : Solver
        Of explicit problems, under the norm of the noise.
    limits : Limits
        Up to which sizes sub-workloads that do not factor are solved jointly.
    searching : bool
        Whether weights are still searched: products get no row weights then.
    starts, products : dict
        What was found, by the structure of the problem: the next weights start from it. Under ("own", type):
        the optimum of a type's own queries, from which its sub-workloads start.
    sub_solver : str
        For sub-workloads that do not factor. ``optimum``: jointly, or refused where too large.
        ``product``: the best product of strategies for the axes, with row weights. ``auto`` and ``fast``:
        jointly where that fits, else a product.
    construction : Construction, optional
        What is measured in place of all of these.

    References
    ----------
    QuerySmasher (2026), section 6.3.
    """

    pieces: Pieces
    noise: Noise
    solver: Solver
    limits: Limits = LIMITS
    searching: bool = False
    starts: dict[Hashable, Factor] = field(default_factory=dict)
    products: dict[Hashable, tuple[Factor, ...]] = field(default_factory=dict)
    sub_solver: str = "auto"
    construction: Construction | None = None
    solved: dict[Hashable, BlockSolution] = field(default_factory=dict)
    told: Recent[tuple[Array, float, int]] = field(default_factory=lambda: Recent(LIMITS.kept_arrays))

    def solve(self, sub: SubWorkload) -> SubSolution | None:
        """Return the strategy for a sub-workload, or None where all its pieces are zero."""
        terms = numeric_terms(self.pieces, sub)
        if not sub.types:
            total = sum(term.coefficient for term in terms)
            total += math.fsum(weight * float((rows**2).sum()) for weight, rows in self.grouped(sub))
            return SubSolution(total, (), bool(sub.rows)) if total > 0 else None
        explicit = [
            (weight, rows) for weight, rows in self.grouped(sub) if self._told(rows)[1] > 1e-12 * self._entry
        ]
        if not terms and not explicit:
            return None
        if explicit:
            return SubSolution(1.0, (self._with_rows(sub, terms, explicit),), True)
        blocks = [
            self._axis(sub, axes[0], inner) if len(axes) == 1 else self._joint(sub, axes, inner, [])
            for axes, inner in _apart(terms)
        ]
        if any(block.found.loss <= 0.0 for block in blocks):
            return None
        return SubSolution(max(abs(term.coefficient) for term in terms), tuple(blocks), False)

    def methods(self, sub: SubWorkload) -> list[tuple[tuple[int, ...], str, dict[str, str]]]:
        """Return how each block of a sub-workload is solved, and which limits decided, without solving it."""
        terms, axes = numeric_terms(self.pieces, sub), tuple(range(len(sub.types)))
        blocks = _apart(terms)
        if sub.rows:
            blocks = [(axes, terms)] if axes else []
        found: list[tuple[tuple[int, ...], str, dict[str, str]]] = []
        for own, inner in blocks:
            if len(own) == 1 and not sub.rows:
                plain = len(inner) == 1 and self.pieces.slots[inner[0].kept[0]].closed is not None
                found.append((own, "closed form" if plain else gram_method(self.gram(inner)), {}))
                continue
            shape = self._shape(self._over_groups(sub), own, inner, self.grouped(sub))
            choice = method_for(shape, self.limits, _METHODS.get(self.sub_solver))
            if choice is None:
                found.append((own, NO_METHOD, {self.sub_solver: self._excess(shape.cells)}))
            else:
                found.append((own, choice.method.name, choice.passed))
        return found

    def _excess(self, cells: int) -> str:
        limit = min(self.limits.joint_cells, most_cells())
        return f"a sub-workload of {cells} cells that does not factor; the limit is {limit}"

    def _shape(
        self, sub: SubWorkload, axes: tuple[int, ...], terms: list[Term], explicit: list[tuple[float, Array]]
    ) -> ProblemShape:
        # what is found over few values is measured over all of them
        groups, sizes = self._groups(sub), tuple(sub.sizes[axis] for axis in axes)
        widths = tuple(self.pieces.split.widths[sub.types[axis]] for axis in axes)
        values = None if widths == sizes else math.prod(widths)
        values = values if groups is None else math.prod(map(len, groups))
        return ProblemShape(sizes, len(terms), sum(len(rows) for _, rows in explicit), values)

    def explicit(self, sub: SubWorkload) -> list[tuple[float, Array]]:
        """Return the weights and the pieces of a sub-workload's explicit queries."""
        return [(item.weight, self.pieces.explicit_rows(item.explicit, item.kept)) for item in sub.rows]

    def grouped(self, sub: SubWorkload) -> list[tuple[float, Array]]:
        """Return the same over groups of values, where the class has such."""
        groups = self._groups(sub)
        rows = [self.pieces.explicit_rows(item.explicit, item.kept, groups) for item in sub.rows]
        return [(item.weight, own) for item, own in zip(sub.rows, rows, strict=True)]

    @cached_property
    def _entry(self) -> float:
        """The largest entry of an explicit query."""
        return max(float(np.abs(item.content.tensor).max()) for item in self.pieces.split.explicit)

    def _told(self, rows: Array) -> tuple[Array, float, int]:
        """Return queries with their largest entry and a hash, computed once: groups share one array."""
        return self.told.of(
            id(rows), lambda: (rows, float(np.abs(rows).max(initial=0.0)), hash(rows.tobytes()))
        )

    def _groups(self, sub: SubWorkload) -> tuple[Places, ...] | None:
        """Return the groups of values of a class; constructions are those of all values."""
        return None if self.construction is not None else sub.groups

    def _with_rows(
        self, sub: SubWorkload, terms: list[Term], explicit: list[tuple[float, Array]]
    ) -> BlockSolution:
        """Return the solution of a class with explicit queries, over groups of values where it has such."""
        over, groups = self._over_groups(sub), self._groups(sub)
        found = self._joint(over, tuple(range(len(sub.types))), terms, explicit)
        if groups is None:
            return found
        made = replace(found, groups=groups, key=(found.key, *(group.tobytes() for group in groups)))
        whole = over.sizes == sub.sizes and not self.searching
        return replace(made, found=made.over_values, groups=None) if whole else made

    def _over_groups(self, sub: SubWorkload) -> SubWorkload:
        """Return a sub-workload over its groups of values, where it has such."""
        groups = self._groups(sub)
        return sub if groups is None else replace(sub, sizes=tuple(int(own.max()) + 1 for own in groups))

    def gram(self, terms: Sequence[Term], explicit: Sequence[tuple[float, Array]] = ()) -> Gram:
        """Return the sum of Kronecker terms and of Gram matrices of explicit queries.

        Of one attribute with what is known of it; on several as one matrix.
        """
        slots = self.pieces.slots
        if terms and len(terms[0].kept) == 1 and not explicit:
            parts = [(term.coefficient, slots[term.kept[0]].gram) for term in terms]
            return parts[0][1] if len(parts) == 1 and parts[0][0] == 1.0 else SumGram(tuple(parts))
        total: Array | float = 0.0
        if terms:
            total = sum_of_products(
                [(term.coefficient, [slots[slot].array for slot in term.kept]) for term in terms]
            )
        for weight, rows in explicit:
            total = total + weight * (rows.T @ rows)
        return ExplicitGram(np.asarray(total))

    def problem(
        self, sub: SubWorkload, axes: tuple[int, ...], terms: list[Term], explicit: list[tuple[float, Array]]
    ) -> KronSum:
        """Return the problem of some axes, its factors apart."""
        sizes = tuple(sub.sizes[axis] for axis in axes)
        sets: list[dict[Hashable, Gram]] = [{} for _ in axes]
        for term in terms:
            for asked, slot in zip(sets, term.kept, strict=True):
                asked[slot] = self.pieces.slots[slot].gram
        own = tuple(range(len(axes)))
        queries = [Rows(weight, own, WrittenQueries(rows.reshape(-1, *sizes))) for weight, rows in explicit]
        products: list[tuple[float, dict[int, Hashable]]] = [
            (term.coefficient, dict(enumerate(term.kept))) for term in terms
        ]
        return KronSum((), sizes, sets, products, queries)

    def _content(self, slot: int) -> Hashable:
        definition = self.pieces.split.slots[slot]
        weights = self.pieces.weights[definition.type]
        return (definition.gram.key, hash(weights.tobytes()))

    def _axis(self, sub: SubWorkload, axis: int, terms: list[Term]) -> BlockSolution:
        size = sub.sizes[axis]
        asked = tuple((float(f"{t.coefficient:.12g}"), self._content(t.kept[0])) for t in terms)
        key = ("axis", asked, self._types_constructed(sub, (axis,)))
        if key not in self.solved:
            first, type_ = self.pieces.slots[terms[0].kept[0]], sub.types[axis]
            method, constructed = "optimum", None
            if self.construction is not None:
                weights = self.pieces.weights[type_]
                closed = first.closed is not None
                constructed = self.construction.axis(
                    type_, weights, lambda: self.gram(terms).explicit.entries, closed
                )
            if constructed is not None and self.construction is not None:
                found, method = constructed, self.construction.name
            elif first.closed is not None:
                found = self.solver.centered(size).scaled(first.closed)
            else:
                start_key = ("axis", tuple(t.kept for t in terms))
                own = self.starts.get(("own", sub.types[axis]))
                if own is not None:
                    self.starts.setdefault(start_key, own)
                found = self._explicit(self.gram(terms), (size,), terms, start_key)
            self.solved[key] = BlockSolution((axis,), found, terms, key, method)
        return replace(self.solved[key], axes=(axis,), terms=terms)

    def _types_constructed(self, sub: SubWorkload, axes: tuple[int, ...]) -> tuple[int, ...]:
        """Return the types of axes, whose constructions need not be alike."""
        apart = self.construction is not None and self.construction.by_type
        return tuple(sub.types[axis] for axis in axes) if apart else ()

    def _explicit(self, gram: Gram, sizes: Sequence[int], terms: list[Term], start_key: Hashable) -> Factor:
        # what is left of queries that are constant along an attribute is rounding error
        raw = sum(self.pieces.scale(t.kept) * abs(t.coefficient) for t in terms)
        if gram.largest() <= 1e-13 * raw:
            return Factor(np.zeros((0, gram.size)), 0.0, 0.0)
        solver = self.solver
        if isinstance(solver, ConvexSolver) and len(sizes) > 1 and gram.size >= LIMITS.loose_cells:
            solver = replace(solver, gap=max(solver.gap, LIMITS.inner_gap)) if self._unequal else solver
        self.starts[start_key] = solver.gram(gram, sizes, self.starts.get(start_key))
        return self.starts[start_key]

    @property
    def _unequal(self) -> bool:
        """Whether values have weights that differ: then the bound of the whole is not that of its parts."""
        return any(float(np.ptp(own)) > 1e-3 * float(np.abs(own).max()) for own in self.pieces.weights)

    def _joint(
        self, sub: SubWorkload, axes: tuple[int, ...], terms: list[Term], explicit: list[tuple[float, Array]]
    ) -> BlockSolution:
        if not terms and len(explicit) == 1 and explicit[0][0] != 1.0:  # the strategy is that without weight
            [(weight, rows)] = explicit
            block = self._joint(sub, axes, terms, [(1.0, rows)])
            return replace(block, found=block.found.scaled(weight), key=(block.key, float(f"{weight:.12g}")))
        sizes = tuple(sub.sizes[axis] for axis in axes)
        key = (
            "joint",
            sizes,
            tuple((float(f"{t.coefficient:.12g}"), *map(self._content, t.kept)) for t in terms),
            tuple((float(f"{w:.12g}"), self._told(rows)[2]) for w, rows in explicit),
            self._types_constructed(sub, axes),
        )
        if key not in self.solved:
            found, method = self._jointly(sub, axes, terms, explicit)
            self.solved[key] = BlockSolution(axes, found, terms, key, method)
        return replace(self.solved[key], axes=axes, terms=terms)

    def _jointly(
        self, sub: SubWorkload, axes: tuple[int, ...], terms: list[Term], explicit: list[tuple[float, Array]]
    ) -> tuple[Factor | Product, str]:
        """Return the joint solution where it fits, else one that is not, and which method it is."""
        shape = self._shape(sub, axes, terms, explicit)
        sizes, cells = shape.sizes, shape.cells
        start_key = ("joint", sizes, tuple(t.kept for t in terms), tuple(len(rows) for _, rows in explicit))
        if self.construction is not None:
            types = [sub.types[axis] for axis in axes]
            weights = [self.pieces.weights[type_] for type_ in types]
            problem = self.problem(sub, axes, terms, explicit)
            return self.construction.joint(types, weights, problem), self.construction.name
        if self.pieces.split.undivided in [sub.types[axis] for axis in axes]:
            # its rows are measured one after another, whatever the values of other attributes are by then
            return self._product(self.problem(sub, axes, terms, explicit), start_key, apart=True), "product"
        choice = method_for(shape, self.limits, _METHODS.get(self.sub_solver))
        if choice is None:
            raise TooLargeError(f"sub_solver optimum: {self._excess(cells)}. Use auto or product")
        if choice.method.name == "product":
            return self._product(self.problem(sub, axes, terms, explicit), start_key), "product"
        if choice.method.name == "dual by queries":
            stacked = np.vstack([np.sqrt(weight) * rows for weight, rows in explicit])
            found = self.solver.queries(stacked, sizes, self.starts.get(start_key))
            self.starts[start_key] = found
            if not self.solver.optimal and cells > self.limits.joint_cells and self.sub_solver != "optimum":
                other = self._product(self.problem(sub, axes, terms, explicit), (start_key, "product"))
                return (other, "product") if other.loss < found.loss else (found, "optimum")
            return found, "optimum"
        if (len(terms) == 1 or not explicit) and self.solver.optimal and start_key not in self.starts:
            # beside the queries of one product too, its own optimum is mostly near
            problem = self.problem(sub, axes, terms, [])
            seen = [problem.surrogate(place, problem.unknown) for place in range(len(axes))]
            duals = [solve_gram(gram, gap=LIMITS.inner_gap).dual for gram in seen]
            dual = outer(own for own in duals if own is not None).ravel()
            self.starts[start_key] = Factor(IdentityMatrix(cells), 0.0, dual=dual)
        return self._explicit(self.gram(terms, explicit), sizes, terms, start_key), "optimum"

    def _product(self, problem: KronSum, start_key: Hashable, apart: bool = False) -> Product:
        """Return the best product of strategies for the axes, from that of a similar problem.

        Its rows have no weights where they are to be measured apart.
        """
        start, plain = self.products.get(start_key), self.searching or apart
        found = solve_structured(problem, self.solver, not plain, start)
        self.products[start_key] = found.factors
        if not plain and self.solver.optimal and self.sub_solver != "fast":
            found = free_bases(problem, found)
        return found


def _apart(terms: list[Term]) -> list[tuple[tuple[int, ...], list[Term]]]:
    """Return the blocks of terms without explicit queries: each common factor, then what is mixed."""
    axes = range(len(terms[0].kept)) if terms else range(0)
    mixed = tuple(axis for axis in axes if len({term.kept[axis] for term in terms}) > 1)
    blocks: list[tuple[tuple[int, ...], list[Term]]] = [
        ((axis,), [Term(1.0, (terms[0].kept[axis],))]) for axis in axes if axis not in mixed
    ]
    if mixed:
        scale = max(abs(term.coefficient) for term in terms)
        inner = [Term(t.coefficient / scale, tuple(t.kept[axis] for axis in mixed)) for t in terms]
        blocks.append((mixed, sorted(inner, key=lambda term: term.kept)))
    return blocks
