"""Joint plans: whole tables that share their one-way marginals, and a part for each other marginal."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import NumericalError, TooLargeError, UnsupportedQueryError
from matrixdp.plan.analysis import Analysis, Estimates, GroupError
from matrixdp.plan.pieces import MAX_VARIANCES, SUPPORT_TOLERANCE
from matrixdp.plan.plan import Plan
from matrixdp.plan.quadratic_forms import one_query, product_quadratic, without_sums
from matrixdp.plan.shared import Shared
from matrixdp.plan.split import SplitAnalysis, check_weight_vectors
from matrixdp.queries.groups import DenseGroup, Group, ProductGroup
from matrixdp.queries.predicates import Predicates

__all__ = ["Joint", "JointAnalysis"]

Array = NDArray[np.float64]

#: Coefficients of the unknowns that are formed at a time.
_AT_A_TIME = 20_000_000
#: How far covariances of unknowns that are taken for the same may be apart, beside their deviations.
_SAME = 1e-10


@final
@dataclass(frozen=True, eq=False)
class Joint(Plan, kind="joint"):
    """Tables of one or two attributes, measured whole, and a part for each other marginal.

    The tables' answers are their global least squares: what several of them say of a one-way marginal or of
    the total is pooled. A query on attributes that no table has together splits as in `Split`: its pieces on
    a table, on a one-way marginal of one and on the total are answered from the tables, the others from the
    parts that are not whole.

    Parameters
    ----------
    domain, parts, noise
        See `Plan`.
    weights : dict of str to ndarray
        For each attribute a vector with sum 1, or zeros; see `Split`.
    whole : dict of str to ndarray
        At ``"parts"``, for each part 1 if it is a whole table, else 0.
    """

    words: ClassVar[str] = "whole tables that share their one-way marginals, one part for each other marginal"

    weights: dict[str, Array]
    whole: dict[str, Array]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_distinct()
        check_weight_vectors(self.domain, self.weights)
        marks = self.whole["parts"]
        if marks.shape != (len(self.parts),) or not np.isin(marks, (0.0, 1.0)).all() or not marks.any():
            raise NumericalError("a joint plan says of every part whether it is a whole table; one must be")
        held = {
            name for part, mark in zip(self.parts, marks, strict=True) if mark for name in part.attributes
        }
        for part, mark in zip(self.parts, marks, strict=True):
            if not mark:
                if len(part.attributes) < 2 and held.issuperset(part.attributes):
                    raise NumericalError(f"part {part.attributes}: it follows from a whole table")
                continue
            whole = all(block.matrix.rank == block.matrix.columns for block in part.blocks)
            fits = part.multipliers is None and part.listed == part.attributes
            if not (whole and fits and 1 <= len(part.attributes) <= 2):
                raise NumericalError(f"part {part.attributes}: not a whole table of one or two attributes")

    def analysed(self, noise: Sequence[float]) -> JointAnalysis:
        """Return estimates and errors if the parts are measured with given noise variances.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> from matrixdp.exact import IdentityMatrix
        >>> from matrixdp.noise import GAUSSIAN
        >>> from matrixdp.plan import Block, Part
        >>> domain = mdp.Domain({"a": 2, "b": 2, "c": 2})
        >>> def table(*names):
        ...     blocks = tuple(Block((name,), IdentityMatrix(2)) for name in names)
        ...     return Part(names, blocks, 2.0)
        >>> parts = (table("a", "b"), table("a", "c"))
        >>> weights = {name: np.full(2, 0.5) for name in domain.names}
        >>> plan = Joint(domain, parts, GAUSSIAN, weights, {"parts": np.ones(2)})
        >>> [group] = mdp.marginals([["a"]]).expand(domain)
        >>> plan.analysis.variances(group)  # two sums of two cells each, averaged
        array([2., 2.])
        """
        return JointAnalysis(self, noise)


@final
class JointAnalysis(SplitAnalysis):
    """Estimates and errors under a joint plan."""

    def __init__(self, plan: Joint, noise: Sequence[float]) -> None:
        super().__init__(plan.domain, plan.parts, noise, plan.weights)
        marked = [place for place, mark in enumerate(plan.whole["parts"]) if mark]
        self.shared = Shared(plan.domain, [self.parts[i] for i in marked], [self.noise[i] for i in marked])
        #: The marginals that follow from the tables, by place: those of tables, then the smaller ones.
        self.held = {place: self.parts[place].attributes for place in marked}
        for attributes in ((), *((name,) for name in self.shared.slices)):
            if attributes not in self.places:
                self.places[attributes] = place = len(self.places)
                self.held[place] = attributes
        self._forms: dict[Hashable, Array] = {}
        self._known: dict[tuple[str, ...], Hashable] = {}
        self._representatives: dict[Hashable, list[tuple[float, NDArray[np.intp]]]] = {}

    def pieces(self, attributes: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int | None]]:
        """Yield the pieces that are not answered from the tables."""
        for kept, place in super().pieces(attributes):
            if not self.shared.holds(kept):
                yield kept, place

    def _tables(self, asked: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the tables of two attributes among those asked about."""
        return [pair for pair in combinations(asked, 2) if pair in self.shared.tables]

    # ---- support -------------------------------------------------------------------------------

    def check_support(self, group: Group) -> None:
        super().check_support(group)
        asked = self.asked(group)
        rows = self._asked_rows(group, group.rows()) if isinstance(group, DenseGroup) else None
        for kept in self._tables(asked):
            part = self.parts[self.places[kept]]
            if rows is not None:
                lost = self._unsupported(part, self.axes.piece_rows(asked, kept, rows), rows)
            else:
                assert isinstance(group, ProductGroup)
                others = [name for name in asked if name not in kept]
                lost = all(self.axes.largest_contraction(n, group.sets[n]) > 0.0 for n in others) and any(
                    self.axes.outside(block, group.sets) > SUPPORT_TOLERANCE for block in part.blocks
                )
            if lost:
                raise UnsupportedQueryError(
                    f"{group.name}: asks more of {', '.join(kept)} than the strategy measures there; ask a "
                    "query that the workload's queries on it determine"
                )

    # ---- explicit queries ----------------------------------------------------------------------

    def _coefficients(
        self, asked: tuple[str, ...], rows: Array
    ) -> tuple[dict[tuple[str, ...], Array], NDArray[np.intp], Array]:
        """Return queries as coefficients of tables, then of unknowns: their places and values.

        The first are those of what a table says beyond its one-way marginals.
        """
        shared = self.shared
        if asked in shared.tables:
            return {asked: rows}, shared.places(asked), rows @ shared.tables[asked].lift
        places = shared.places(asked)
        order = {int(place): i for i, place in enumerate(places)}
        found: dict[tuple[str, ...], Array] = {}
        unknowns = np.zeros((len(rows), len(places)))
        for count in range(min(2, len(asked)) + 1):
            for kept in combinations(asked, count):
                if not shared.holds(kept):
                    continue
                pieces = self.axes.piece_rows(asked, kept, rows)
                if count == 2:
                    found[kept] = pieces
                    pieces = pieces @ shared.tables[kept].lift
                elif count == 1:
                    pieces = shared.one_way(kept[0], pieces)
                unknowns[:, [order[int(place)] for place in shared.places(kept)]] += pieces
        return found, places, unknowns

    def _shared_covariances(self, first: tuple[str, ...], left: Array, second: tuple[str, ...], right: Array,
                            paired: bool) -> Array:  # fmt: skip
        """Return the covariances of what the tables say of queries, shape (left, right), or (left,)."""
        tables, places, unknowns = self._coefficients(first, left)
        other_tables, other_places, other_unknowns = self._coefficients(second, right)
        form = "ij,ij->i" if paired else "ij,kj->ik"
        middle = unknowns @ self.shared.covariance[np.ix_(places, other_places)]
        total = np.einsum(form, middle, other_unknowns, optimize=True)
        for kept in tables.keys() & other_tables.keys():
            table, own, other = self.shared.tables[kept], tables[kept], other_tables[kept]
            total = total + np.einsum(form, own @ table.covariance, other, optimize=True)
            lost = own @ table.lift @ table.spread
            total = total - np.einsum(form, lost, other @ table.lift, optimize=True)
        return np.asarray(total)

    def covariance(self, left: Group, i: int, right: Group, j: int) -> float:
        first, second = one_query(left, i), one_query(right, j)
        own = self._shared_covariances(
            self.asked(left),
            self._asked_rows(left, first),
            self.asked(right),
            self._asked_rows(right, second),
            True,
        )
        return super().covariance(left, i, right, j) + float(own[0])

    def covariances(self, left: Group, right: Group, *, paired: bool = False) -> Array:
        found = super().covariances(left, right, paired=paired)
        first, second = self._asked_rows(left, left.rows()), self._asked_rows(right, right.rows())
        return found + self._shared_covariances(self.asked(left), first, self.asked(right), second, paired)

    def noise_terms(self, group: Group, most: int) -> Array | None:
        shared = self.shared
        width = sum(self.parts[self.places[attributes]].rows for attributes in shared.tables)
        found = super().noise_terms(group, most) if width * group.queries <= most else None
        if found is None:
            return None
        tables, places, unknowns = self._coefficients(
            self.asked(group), self._asked_rows(group, group.rows())
        )
        terms = [found]
        for attributes, table in shared.tables.items():
            pulled = unknowns @ shared.covariance[np.ix_(places, shared.places(attributes))]
            cells = pulled @ table.information @ table.maps
            if attributes in tables:
                own = tables[attributes]
                cells = cells + own - (own @ table.lift) @ table.maps
            part = self.parts[self.places[attributes]]
            terms.append(table.noise * self._measured_rows(part, cells).reshape(len(cells), -1) ** 2)
        return np.concatenate(terms, axis=1)

    # ---- groups --------------------------------------------------------------------------------

    def variances(self, group: Group) -> Array:
        total = super().variances(group)
        asked = self.asked(group)
        if isinstance(group, DenseGroup):
            self.check_support(group)
            rows = group.rows()
            own = self._shared_covariances(asked, rows, asked, rows, True)
        elif asked in self.shared.tables:
            own = product_quadratic(self._whole_form(asked), group.predicates, group.sizes).ravel()
        else:
            own = self._product_variances(group).ravel()
        return total + np.maximum(own, 0.0)

    def _whole_form(self, attributes: tuple[str, ...]) -> Array:
        """Return the covariance of a table's best estimate."""
        table, places = self.shared.tables[attributes], self.shared.places(attributes)
        change = self.shared.covariance[np.ix_(places, places)] - table.spread
        return np.asarray(table.covariance + table.lift @ change @ table.lift.T)

    def _own_form(self, kept: tuple[str, ...]) -> Array:
        """Return the covariance of what a table says beyond its one-way marginals, as pieces see it."""
        table = self.shared.tables[kept]
        key = (id(table), tuple(self.axes.alike[name] for name in kept))
        if key not in self._forms:
            form = table.covariance - table.lift @ table.spread @ table.lift.T
            sizes = self.axes.sizes(kept)
            tensor = form.reshape(*sizes, *sizes)
            for axis, name in enumerate(kept):
                tensor = without_sums(tensor, axis, self.axes.weights[name])
                tensor = without_sums(tensor, axis + len(sizes), self.axes.weights[name])
            self._forms[key] = tensor.reshape(form.shape)
        return self._forms[key]

    def _product_variances(self, group: ProductGroup) -> Array:
        """Return the variances of what the tables say of a product, in the shape of its counts."""
        asked, counts = self.asked(group), group.counts
        means = {name: self.axes.contracted(name, group.sets[name]) for name in asked}

        def spread(values: Array, kept: Sequence[str], others: Mapping[str, Array], trailing: int) -> Array:
            """Multiply values along the kept attributes by vectors along the others."""
            shape = [n if name in kept else 1 for name, n in zip(asked, counts, strict=True)]
            values = values.reshape(*shape, *values.shape[values.ndim - trailing :])
            for axis, name in enumerate(asked):
                if name not in kept:
                    vector = others[name]
                    values = values * vector.reshape([-1 if i == axis else 1 for i in range(values.ndim)])
            return values

        squares = {name: vector**2 for name, vector in means.items()}
        total = np.zeros(counts)
        for kept in self._tables(asked):
            sets = [group.sets[name] for name in kept]
            own = product_quadratic(self._own_form(kept), sets, self.axes.sizes(kept))
            total = total + spread(np.maximum(own, 0.0), kept, squares, 0)
        places = self.shared.places(asked)
        order = {int(place): i for i, place in enumerate(places)}
        terms = [
            (spread(own, kept, means, 1), [order[int(place)] for place in self.shared.places(kept)])
            for kept, own in self._pulled(group)
        ]
        covariance = self.shared.covariance[np.ix_(places, places)]
        step = max(1, _AT_A_TIME // max(1, len(places) * math.prod(counts[1:])))
        for start in range(0, counts[0] if counts else 1, step):
            chosen = slice(start, start + step) if counts else ()
            shape = total[chosen].shape
            unknowns = np.zeros((*shape, len(places)))
            for own, columns in terms:
                part = own[chosen] if counts and own.shape[0] > 1 else own
                unknowns[..., columns] += part
            total[chosen] += np.einsum("...i,...i->...", unknowns @ covariance, unknowns)
        return total

    def _pulled(self, group: ProductGroup) -> Iterator[tuple[tuple[str, ...], Array]]:
        """Yield marginals with the unknowns' coefficients in their pieces, shape (*counts, unknowns)."""
        asked, shared = self.asked(group), self.shared
        yield (), np.ones((1,))
        pieces: dict[str, Array] = {}
        for name in asked:
            if name in shared.slices:
                rows = self._rows(group.sets[name], self.domain[name].size)
                pieces[name] = rows - self.axes.contracted(name, group.sets[name])[:, None]
                yield (name,), shared.one_way(name, pieces[name])
        for first, second in self._tables(asked):
            lift = shared.tables[first, second].lift.reshape(*self.axes.sizes((first, second)), -1)
            half = np.tensordot(pieces[first], lift, axes=(1, 0))
            yield (first, second), np.moveaxis(np.tensordot(half, pieces[second], axes=(1, 1)), 2, 1)

    @staticmethod
    def _rows(predicates: Predicates, size: int) -> Array:
        if predicates.count(size) * size > MAX_VARIANCES:
            raise TooLargeError(f"{predicates.count(size)} queries on {size} values are too many to form")
        return predicates.rows(size)

    def key(self, group: Group) -> Hashable:
        return super().key(group), self._shared_key(self.asked(group))

    def _shared_key(self, asked: tuple[str, ...]) -> Hashable:
        """Return a value equal for attributes of which tables say the same; most are alike by symmetry."""
        if asked not in self._known:
            shared = self.shared
            tables = [
                (asked.index(first), asked.index(second), id(shared.tables[first, second]))
                for first, second in self._tables(asked)
            ]
            held = tuple(name in shared.slices for name in asked)
            kind = (tuple(self.axes.sizes(asked)), held, tuple(tables))
            known = self._representatives.setdefault(kind, [])
            self._known[asked] = kind, self._representative(known, shared.places(asked))
        return self._known[asked]

    def _representative(self, known: list[tuple[float, NDArray[np.intp]]], places: NDArray[np.intp]) -> int:
        """Return the number of the first unknowns that vary as these do; these are new if there are none."""
        covariance = self.shared.covariance
        own = covariance[np.ix_(places, places)]
        deviations = np.sqrt(np.diagonal(own))
        trace = float(deviations @ deviations)
        for number, (other, theirs) in enumerate(known):
            if abs(other - trace) > _SAME * trace:
                continue
            apart = np.abs(covariance[np.ix_(theirs, theirs)] - own)
            if (apart <= _SAME * np.multiply.outer(deviations, deviations)).all():
                return number
        known.append((trace, places))
        return len(known) - 1

    def _error(self, group: Group) -> GroupError:
        return Analysis._error(self, group)

    def estimates(self, values: Sequence[Array]) -> Estimates:
        shared, parts, domain = self.shared, self.parts, self.domain
        alone = {
            attributes: parts[place].estimate(values[place], domain).ravel()
            for place, attributes in self.held.items()
            if attributes in shared.tables
        }
        unknowns = shared.solved(alone)

        def residual(place: int) -> Array:
            if place not in self.held:
                attributes = parts[place].attributes
                tensor = parts[place].estimate(values[place], domain)
            else:
                attributes = self.held[place]
                tensor = shared.marginal(attributes, alone, unknowns)
            for axis, name in enumerate(attributes):
                tensor = without_sums(tensor, axis, self.axes.weights[name])
            return tensor

        return self.from_residuals(residual)
