"""What is publicly known of a table, as models keep it: published counts, and cells that cannot be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import MatrixDPError, SpecificationError, TooLargeError, within
from matrixdp.forms import as_written
from matrixdp.language.entries import Condition, allowed_values, find_attribute
from matrixdp.language.invariants import IMPOSSIBLE, PUBLISHED, Published
from matrixdp.model.derived import cells_of, sources
from matrixdp.selection.starting_points import Generator

__all__ = ["MAX_BOXES", "Box", "Constraints", "PublishedRows"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Box = Mapping[str, Mask]
"""For each free attribute of an impossible combination which of its values are part of it."""

#: Impossible combinations, written over attributes that do not follow from others, are at most so many.
MAX_BOXES = 10_000
#: How far, relative to the total, published counts may be from one another.
_AGREE = 1e-9
#: How far, relative to the total, a model's counts may be from what is published.
_KEPT = 1e-6
#: Cells that are drawn for one component before it is said that every cell is impossible.
_DRAWS = 10_000


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
        ``totals`` and ``impossible`` as a specification has them.

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
        """Return what is known, from the way it is written.

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
        try:
            written: dict[str, object] = {}
            published: Sequence[Published] = ()
            if invariants is not None and invariants != ():  # a specification without has none
                with within("invariants"):
                    published = PUBLISHED.read(invariants, as_written)
                    written["totals"] = PUBLISHED.write(tuple(published))
            tables = [_rows(domain, place, one) for place, one in enumerate(published)]
            boxes: list[Box] = []
            with within("structural_zeros"):
                combinations = (
                    IMPOSSIBLE.read(structural_zeros, as_written)
                    if structural_zeros is not None and structural_zeros != ()
                    else ()
                )
                if combinations:
                    written["impossible"] = IMPOSSIBLE.write(combinations)
                for place, box in enumerate(combinations):
                    with within(place):
                        boxes += _boxes(domain, box)
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
            raise SpecificationError.at(
                ("invariants",), f"{min(found):g} and {max(found):g} records", expected, code="conflict"
            )
        if found[0] <= 0:
            raise SpecificationError.at(
                ("invariants",), f"{found[0]:g} records", "a number above 0", code="out-of-range"
            )
        return found[0]

    def broken(self, marginal: Callable[[Sequence[str]], Array], total: float) -> Iterator[str]:
        """Yield what of this the marginals of a model do not keep.

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

    def __bool__(self) -> bool:
        return bool(self.tables or self.boxes)

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
                inside = np.ones((), dtype=bool)
                for name in names:
                    own = box.get(name, np.ones(self.domain[name].size, dtype=bool))
                    inside = np.logical_and.outer(inside, own)
                cells &= ~inside
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
            cell = {
                name: int(random.choice(len(start), p=(1 - even) * start + even / len(start)))
                for name, start in starts.items()
            }
            if not any(all(own[cell[name]] for name, own in box.items()) for box in self.boxes):
                return cell
        expected = "rules that leave some combination of values possible"
        raise SpecificationError.at(("structural_zeros",), "no possible combination", expected, code="empty")


def _rows(domain: Domain, place: int, one: Published) -> PublishedRows:
    with within("invariants", place):
        group = one.group(domain)
        free, cells = cells_of(domain, group.attributes)
        rows = group.rows()
        return PublishedRows(free, rows if cells is None else rows[:, cells], np.array(one.counts))


def _boxes(domain: Domain, written: Mapping[str, Condition]) -> list[Box]:
    """Return an impossible combination as boxes over attributes that do not follow from others."""
    own: dict[str, Mask] = {}
    several: list[list[Box]] = []
    for name, condition in written.items():
        with within(name):
            attribute = find_attribute(domain, name)
            chosen = allowed_values(attribute, condition)[0] > 0
            of = sources(domain, name)
            if of == (name,):
                own[name] = chosen
            else:
                several.append(_derived_boxes(domain, name, of, chosen))
    found: list[Box] = []
    for parts in product([own], *several):
        box: dict[str, Mask] = {}
        for part in parts:
            for name, values in part.items():
                box[name] = values & box[name] if name in box else values
        if all(values.any() for values in box.values()):
            found.append(box)
    if len(found) > MAX_BOXES:
        raise TooLargeError.at((), f"{len(found)} combinations", f"at most {MAX_BOXES}")
    return found


def _derived_boxes(domain: Domain, name: str, of: tuple[str, ...], chosen: Mask) -> list[Box]:
    """Return the combinations of the parents' values from which chosen values follow."""
    derivation = domain[name].codebook.derivation
    assert derivation is not None
    sizes = [domain[parent].size for parent in of]
    table = chosen[np.asarray(derivation.codes)].reshape(-1, sizes[-1])
    found: list[Box] = []
    for place, codes in enumerate(np.ndindex(*sizes[:-1])):
        if table[place].any():
            fixed = {
                parent: np.arange(size) == code for parent, size, code in zip(of, sizes, codes, strict=False)
            }
            found.append(fixed | {of[-1]: table[place]})
    if math.prod(sizes[:-1]) > MAX_BOXES:
        raise TooLargeError.at((), f"{len(found)} combinations of {', '.join(of)}", f"at most {MAX_BOXES}")
    return found
