"""What is publicly known of a table, as models keep it: published counts, and cells that cannot be.

Tables and mixtures get published counts by the least change in relative entropy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import MatrixDPError, SpecificationError, TooLargeError, within
from matrixdp.exact.linear import Array
from matrixdp.forms import as_written
from matrixdp.language.entries import Condition, allowed_values, find_attribute
from matrixdp.language.invariants import IMPOSSIBLE, PUBLISHED, Published
from matrixdp.model.tables import Mixture, cells_of, codes_of, sources
from matrixdp.selection.starting_points import Generator

Mask = NDArray[np.bool_]
Box = Mapping[str, Mask]
"""For each free attribute of an impossible combination which of its values are part of it."""

#: The most impossible combinations, written over attributes that do not follow from others.
MAX_BOXES = 10_000
#: How far, relative to the total, published counts may be from one another.
_AGREE = 1e-9
#: How far, relative to the total, a model's counts may be from what is published.
_KEPT = 1e-6
#: Cells that are drawn for one component before it is said that every cell is impossible.
_DRAWS = 10_000
#: The most components of a mixture that has published tables of several attributes.
MAX_COMPONENTS = 200_000
#: Newton's steps for one table, sweeps over all, and how near, relative to the total, counts must come.
_STEPS, _SWEEPS, _NEAR = 200, 500, 1e-9
#: Counts that are as far off as the worst but for this share are tied with it: the first is named.
_TIE = 1e-6


@final
@dataclass(frozen=True, eq=False)
class PublishedRows:
    """A published table as rows over the cells of attributes that do not follow from others.

    Attributes
    ----------
    free : tuple of str
    rows : ndarray, shape (queries, cells)
    counts : ndarray, shape (queries,)
    """

    free: tuple[str, ...]
    rows: Array
    counts: Array

    @property
    def total(self) -> float | None:
        """The number of records, if it follows: a combination of the queries that counts every cell once."""
        ones = np.ones(self.rows.shape[1])
        combination = np.linalg.lstsq(self.rows.T, ones, rcond=None)[0]
        spanned = float(abs(combination @ self.rows - 1.0).max()) < 1e-9
        if not spanned:
            return None
        found = float(combination @ self.counts)
        near = float(round(found))  # without the rounding errors of the combination
        return near if abs(found - near) <= _AGREE * max(near, 1.0) else found


@final
@dataclass(frozen=True, eq=False)
class Constraints:
    """Published counts that a model has exactly, and combinations of values that none of its cells has.

    Both must be public already: neither is protected by the release, and nothing here looks at the data.

    Attributes
    ----------
    domain : Domain
    tables : tuple of PublishedRows
    boxes : tuple of Box
        Impossible combinations, over attributes that do not follow from others.
    written : mapping
        ``invariants`` and ``structural_zeros`` as a specification has them.

    Examples
    --------
    >>> domain = Domain({"age": {"min": 0, "max": 99}, "married": ["no", "yes"]})
    >>> rule = {"age": {"range": [0, 14]}, "married": "yes"}
    >>> known = Constraints.of(domain, invariants=5000, structural_zeros=[rule])
    >>> known.total, known.allowed(("age", "married")).sum()
    (5000.0, np.int64(185))
    """

    domain: Domain
    tables: tuple[PublishedRows, ...] = ()
    boxes: tuple[Box, ...] = ()
    written: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, domain: Domain, invariants: object = None, structural_zeros: object = None) -> Constraints:
        """Read constraints as a specification writes them.

        Parameters
        ----------
        domain : Domain
        invariants : number, or list, optional
            The number of records; or published tables, each an entry of a specification with its ``counts``,
            or a pair of an entry and its counts.
        structural_zeros : list of mapping, optional
            Combinations that no record has: for each attribute a value, a list of values or a ``range``.

        Raises
        ------
        SpecificationError
            If they do not fit the domain, or contradict one another.
        TooLargeError
            If impossible combinations of derived attributes are too many over those that they follow from.
        """
        written: dict[str, object] = {}
        published: Sequence[Published] = ()
        boxes: list[Box] = []
        try:
            with within("invariants"):
                if invariants is not None and invariants != ():  # a specification without has none
                    published = PUBLISHED.read(invariants, as_written)
                    written["invariants"] = PUBLISHED.write(tuple(published))
                tables = [_rows(domain, place, one) for place, one in enumerate(published)]
            with within("structural_zeros"):
                if structural_zeros is not None and structural_zeros != ():
                    impossible = IMPOSSIBLE.read(structural_zeros, as_written)
                    if impossible:
                        written["structural_zeros"] = IMPOSSIBLE.write(impossible)
                    boxes = [
                        box for place, one in enumerate(impossible) for box in _boxes(domain, place, one)
                    ]
        except (SpecificationError, TooLargeError):
            raise
        except MatrixDPError as error:
            raise SpecificationError(error.problem or str(error), error.code) from None
        found = cls(domain, tuple(tables), tuple(boxes), written)
        _ = found.total
        return found

    @cached_property
    def total(self) -> float | None:
        """The published number of records; None where none follows from what is published."""
        found = [total for total in (table.total for table in self.tables) if total is not None]
        if not found:
            return None
        if max(found) - min(found) > _AGREE * max(found):
            expected = "published tables that add up to the same number of records"
            both = f"{min(found):g} and {max(found):g} records"
            raise SpecificationError.at(("invariants",), both, expected, code="conflict")
        if found[0] <= 0:
            none, expected = f"{found[0]:g} records", "a number above 0"
            raise SpecificationError.at(("invariants",), none, expected, code="out-of-range")
        return found[0]

    def broken(self, marginal: Callable[[Sequence[str]], Array], total: float) -> Iterator[str]:
        """Yield the constraints that the marginals of a model break.

        Parameters
        ----------
        marginal : callable
            From attributes that do not follow from others to their table.
        total : float
            The model's number of records.
        """
        for table in self.tables:
            off = table.rows @ marginal(table.free).ravel() - table.counts
            if not float(abs(off).max()) <= _KEPT * max(total, 1.0):
                yield f"{', '.join(table.free) or 'the total'}: other counts than were published"
        for box in self.boxes:
            names = self.domain.sort(box)
            cells = np.ix_(*(np.flatnonzero(box[name]) for name in names))
            if not float(marginal(names)[cells].sum()) <= _KEPT * max(total, 1.0):
                yield f"{', '.join(names)}: records in a combination that is impossible"

    def linked(self) -> list[tuple[str, ...]]:
        """Return the sets of attributes that impossible combinations link, in domain order."""
        sets: list[set[str]] = []
        for box in self.boxes:
            own = set(box)
            apart = [one for one in sets if not one & own]
            sets = [*apart, own.union(*(one for one in sets if one & own))]
        return [self.domain.sort(one) for one in sets]

    def allowed(self, names: tuple[str, ...]) -> Mask:
        """Return which cells of attributes are in no impossible combination of these attributes alone."""
        cells = np.ones([self.domain[name].size for name in names], dtype=bool)
        for box in self.boxes:
            if set(box) <= set(names):
                every = {name: np.ones(self.domain[name].size, dtype=bool) for name in names}
                cells[np.ix_(*(every | dict(box)).values())] = False
        return cells

    def masks(self, starts: Mapping[str, Array], components: int, random: Generator) -> dict[str, Mask]:
        """Return for each component of a mixture which values it may have, shape (components, size).

        A product has no record in an impossible combination if it leaves out the values of one of the
        combination's attributes. Which one is drawn for each component, so that one drawn cell stays.

        Parameters
        ----------
        starts : mapping of str to ndarray
            For each attribute that does not follow from others the shares of its values, about.
        components : int
        random : Generator

        Raises
        ------
        SpecificationError
            If no possible cell is found.
        """
        masks = {name: np.ones((components, len(start)), dtype=bool) for name, start in starts.items()}
        for component in range(components):
            cell = self._possible_cell(starts, random)
            for box in self.boxes:
                outside = [name for name, own in box.items() if not own[cell[name]]]
                lost = np.array([float(starts[name][box[name]].sum()) for name in outside])
                kept = 1.0 / (lost + 1e-3)  # rather leave out few records than many
                name = outside[int(random.choice(len(outside), p=kept / kept.sum()))]
                masks[name][component, box[name]] = False
        return masks

    def _possible_cell(self, starts: Mapping[str, Array], random: Generator) -> dict[str, int]:
        for attempt in range(_DRAWS):
            even = 0.5 if attempt > _DRAWS // 2 else 0.1
            chances = {name: (1 - even) * start + even / len(start) for name, start in starts.items()}
            cell = {name: int(random.choice(len(own), p=own)) for name, own in chances.items()}
            if not any(all(own[cell[name]] for name, own in box.items()) for box in self.boxes):
                return cell
        raise nothing_possible()


def nothing_possible() -> SpecificationError:
    """Return the error of rules that no record keeps."""
    expected = "rules that leave some combination of values possible"
    return SpecificationError.at(("structural_zeros",), "no possible combination", expected, code="empty")


def _rows(domain: Domain, place: int, one: Published) -> PublishedRows:
    with within(place):
        group = one.group(domain)
        free, cells = cells_of(domain, group.attributes)
        rows = group.rows()
        return PublishedRows(free, rows if cells is None else rows[:, cells], np.array(one.counts))


def _boxes(domain: Domain, place: int, impossible: Mapping[str, Condition]) -> list[Box]:
    """Return an impossible combination as boxes over attributes that do not follow from others."""
    with within(place):
        found: list[Box] = []
        boxes = {name: _boxes_of(domain, name, own) for name, own in impossible.items()}
        free_first = sorted(boxes, key=lambda name: sources(domain, name) != (name,))
        for parts in product(*(boxes[name] for name in free_first)):
            box: dict[str, Mask] = {}
            for part in parts:
                for name, values in part.items():
                    box[name] = values & box[name] if name in box else values
            if all(values.any() for values in box.values()):
                found.append(box)
        if len(found) > MAX_BOXES:
            raise TooLargeError.at((), f"{len(found)} combinations", f"at most {MAX_BOXES}")
        return found


def _boxes_of(domain: Domain, name: str, condition: Condition) -> list[Box]:
    """Return the values of free attributes from which the values that a condition allows follow."""
    with within(name):
        chosen = allowed_values(find_attribute(domain, name), condition)[0] > 0
        of = sources(domain, name)
        sizes = [domain[parent].size for parent in of]
        table = chosen[codes_of(domain, name, dict(zip(of, np.indices(sizes), strict=True)))]
        if of != (name,) and math.prod(sizes[:-1]) > MAX_BOXES:
            found = f"{math.prod(sizes[:-1])} combinations of {', '.join(of)}"
            raise TooLargeError.at((), found, f"at most {MAX_BOXES}")
        outer = [np.eye(size, dtype=bool) for size in sizes[:-1]]
        return [
            {parent: own[code] for parent, own, code in zip(of, outer, codes, strict=False)}
            | {of[-1]: table[codes]}
            for codes in np.ndindex(*sizes[:-1])
            if table[codes].any()
        ]


# Tables and mixtures that have published counts exactly, as near as may be to those that do not.


def factors_for(table: Array, rows: Array, counts: Array) -> Array:
    """Return for each cell what it is multiplied by so that queries have given counts.

    The product is the table of the least relative entropy with these counts: exp(rows' m), where m makes the
    convex sum of table * exp(rows' m) less counts'm least; it is found by Newton's method.

    Parameters
    ----------
    table : ndarray, shape (cells,)
    rows : ndarray, shape (queries, cells)
    counts : ndarray, shape (queries,)

    Raises
    ------
    SpecificationError
        If no such table has these counts.

    Examples
    --------
    >>> rows = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> factors_for(np.array([1.0, 3.0, 4.0]), rows, np.array([8.0, 2.0]))
    array([2. , 2. , 0.5])
    """
    empty = (rows >= 0).all(axis=1) & (counts == 0)
    gone = (rows[empty] > 0).any(axis=0)
    table, rows, counts = np.where(gone, 0.0, table), rows[~empty], counts[~empty]
    near = _NEAR * max(float(counts.max(initial=0.0)), 1.0)
    multipliers, scaled = np.zeros(len(rows)), table
    for _ in range(_STEPS):
        off = rows @ scaled - counts
        if float(abs(off).max(initial=0.0)) <= near:
            return np.where(gone, 0.0, np.exp(rows.T @ multipliers))
        step = np.linalg.lstsq((rows * scaled) @ rows.T, -off, rcond=1e-12)[0]
        held = float(scaled.sum() - counts @ multipliers)
        slope, length = float(off @ step), 1.0
        while True:
            trial = multipliers + length * step
            with np.errstate(over="ignore"):
                made = table * np.exp(rows.T @ trial)
            if float(made.sum() - counts @ trial) <= held + 1e-4 * length * slope + 1e-12 * abs(held):
                break
            length /= 2
            if length < 1e-12:
                break
        multipliers, scaled = trial, made
    raise _contradiction(rows @ scaled, counts)


def _contradiction(found: Array, counts: Array) -> SpecificationError:
    off = abs(found - counts)
    worst = int((off >= (1 - _TIE) * off.max()).argmax())
    nearest = f"the nearest has {found[worst]:.6g} where {counts[worst]:g} is published"
    what, expected = (
        f"counts that no table has: {nearest}",
        "counts that fit together, and with what is impossible",
    )
    return SpecificationError.at(("invariants",), what, expected, code="conflict")


def with_published(mixture: Mixture, tables: Sequence[PublishedRows]) -> Mixture:
    """Return the mixture that has published tables exactly, nearest in relative entropy.

    To multiply the cells of one attribute by factors leaves a mixture of products. For tables of several
    attributes each component is divided first, by the values of all of them but the largest.

    Raises
    ------
    SpecificationError
        If the counts contradict one another, or need cells that the mixture does not have.
    TooLargeError
        If more than `MAX_COMPONENTS` components are needed.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"]})
    >>> factors = {"sex": np.array([[0.5, 0.5]]), "smokes": np.array([[0.75, 0.25]])}
    >>> even = Mixture(domain, 100.0, np.ones(1), factors)
    >>> published = PublishedRows(("sex",), np.eye(2), np.array([60.0, 40.0]))
    >>> with_published(even, [published]).marginal(["sex", "smokes"])
    array([[45., 15.],
           [30., 10.]])
    """
    tables = [table for table in tables if table.free]
    if not tables:
        return mixture
    made = _divided(mixture, tables)
    for _ in range(_SWEEPS):
        for table in tables:
            made = _multiplied(made, table)
        found = [table.rows @ made.marginal(table.free).ravel() for table in tables]
        off = max(float(abs(own - table.counts).max()) for own, table in zip(found, tables, strict=True))
        if off <= 100 * _NEAR * made.total:
            return made
    worst = max(range(len(tables)), key=lambda place: float(abs(found[place] - tables[place].counts).max()))
    raise _contradiction(found[worst], tables[worst].counts)


def _divided(mixture: Mixture, tables: Sequence[PublishedRows]) -> Mixture:
    """Return the same mixture, with components that each have one value of some attributes."""
    names = {name for table in tables for name in table.free if name != _widest(mixture.domain, table)}
    for name in mixture.domain.sort(names):
        size = mixture.domain[name].size
        if mixture.components * size > MAX_COMPONENTS:
            found = f"published tables of several attributes need {mixture.components * size} components"
            limit = f"the limit is {MAX_COMPONENTS}. Publish them of fewer attributes"
            raise TooLargeError(f"invariants: {found}; {limit}")
        factors = {own: np.repeat(held, size, axis=0) for own, held in mixture.factors.items()}
        weights = (mixture.weights[:, None] * mixture.factors[name]).ravel()
        mixture = _weighted(
            mixture, weights, factors | {name: np.tile(np.eye(size), (mixture.components, 1))}
        )
    return mixture


def _weighted(mixture: Mixture, weights: Array, factors: Mapping[str, Array]) -> Mixture:
    """Return a mixture of other components, without those of no weight."""
    some = weights > 0
    kept = {name: own[some] for name, own in factors.items()}
    return replace(mixture, weights=weights[some] / math.fsum(weights[some]), factors=kept)


def _widest(domain: Domain, table: PublishedRows) -> str:
    return max(table.free, key=lambda name: domain[name].size)


def _multiplied(mixture: Mixture, table: PublishedRows) -> Mixture:
    """Return the mixture with the cells of a table's attributes multiplied so that it has its counts."""
    rows = np.vstack([table.rows, np.ones(table.rows.shape[1])])
    counts = np.append(table.counts, mixture.total)
    marginal = mixture.marginal(table.free)
    by = factors_for(marginal.ravel(), rows, counts).reshape(marginal.shape)
    widest = _widest(mixture.domain, table)
    places = [mixture.factors[name].argmax(axis=1) for name in table.free if name != widest]
    raised = mixture.factors[widest] * np.moveaxis(by, table.free.index(widest), -1)[tuple(places)]
    sums = raised.sum(axis=1)
    shares = np.divide(raised, sums[:, None], out=np.zeros_like(raised), where=sums[:, None] > 0)
    return _weighted(mixture, mixture.weights * sums, {**mixture.factors, widest: shares})
