"""What all records of a person cost together, where a unit bounds them by the values of some attributes.

The records of a person lie in values t of `Unit.per`, z_t of them in value t. Under Gaussian noise they cost
the sum over all pairs of what the two have in common: over the parts, the product of the overlaps of their
columns. Table h bounds that for two records in values t and s, whatever their other attributes are that may
change, and the charge is the largest z'hz. All of it is exact in integers; docs/privacy.md has the proof.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate, combinations
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import PrivacyError
from matrixdp.exact import IdentityMatrix, IntegerMatrix, MeasuredMatrix
from matrixdp.plans.part import Part
from matrixdp.plans.replacement import Factor, Integers, factors_of
from matrixdp.privacy.unit import Unit

#: Multipliers of a proof are integers, in this part of 1 times the largest entry on the diagonal of h.
PROOF_BITS = 26
#: A proof is for at most so many values, and one more row of a matrix that is factored.
MOST_PROVED = 512
_MOST_FACTORED = 1_000
#: Multipliers for records in some of so many values are searched for; of more that takes minutes.
_MOST_SEARCHED = 128

Interval = tuple[Any, Any]
"""The least and the largest of some numbers, or of two arrays entry by entry."""
Weights = Sequence[Interval]
"""For each part bounds of 1 / scale^2, in any unit: integers, or floats for figures that nothing rests on."""

#: Values of `per` that are told apart; of more only the largest overlaps are looked at.
MOST_VALUES = 512
#: Sets of values of `per` that are looked at one by one; of more a bound is taken.
MOST_SETS = 2**20
#: Sets of attributes that may change, times parts; of more every part is bounded by itself.
MOST_PATTERNS = 2**18


@final
@dataclass(frozen=True, eq=False)
class Histories:
    """What the records of one person have in common in the parts of a plan, exact.

    Parameters
    ----------
    domain : Domain
    parts : sequence of Part
    unit : Unit
        With `per`.
    proof : ndarray of int64, shape (2 n + 3, n), optional
        See `Plan.proof`.

    Examples
    --------
    Counts by month, of a person with a record in each of 12 months: they cost 12, not 12^2.

    >>> from matrixdp.exact import IdentityMatrix
    >>> from matrixdp.plans import Block
    >>> part = Part(("month",), (Block(("month",), IdentityMatrix(12)),), 1.0)
    >>> unit = Unit(id="person", per="month", max_values=12)
    >>> Histories(Domain({"month": 12}), [part], unit).charge([(1, 1)])
    12
    """

    domain: Domain
    parts: Sequence[Part]
    unit: Unit
    proof: NDArray[np.int64] | None = None

    @cached_property
    def within(self) -> Unit:
        """The unit as it is for the domain: in no more values than there are."""
        return self.unit.on(self.domain)

    @cached_property
    def values(self) -> int:
        """How many values `per` has."""
        return math.prod(self.domain[name].size for name in self.unit.per)

    @cached_property
    def _factors(self) -> list[list[Factor]]:
        known: dict[str, Integers | None] = {}
        return [factors_of(part, 2, known) for part in self.parts]

    @cached_property
    def alike(self) -> bool:
        """Whether two values of `per` stand for all, since all overlap alike or they are too many."""
        per = set(self.unit.per)
        own = [factor for factors in self._factors for factor in factors if per.intersection(factor[0])]
        return self.values > MOST_VALUES or all(
            set(names) == per and overlaps is not None and (len(overlaps) < self.values or self.values == 1)
            for names, overlaps, _ in own
        )

    @cached_property
    def patterns(self) -> list[list[tuple[int, int, int]]]:
        """For each set of attributes that two records differ in, and each part: its table and an interval.

        The overlap of the two in the part is at most an entry of the table times a number in the interval.
        """
        fixed = {*self.unit.per, *self.unit.constant}
        free = sorted({name for part in self.parts for name in part.attributes if name not in fixed})
        free = [name for name in free if self.domain[name].size > 1]
        few = len(self.parts) * 2 ** len(free) <= MOST_PATTERNS
        sets: list[set[str] | None] = [None]
        if few:
            sets = [set(own) for size in range(len(free) + 1) for own in combinations(free, size)]
        found = [tuple(self._terms(factors, own) for factors in self._factors) for own in sets]
        return [list(own) for own in dict.fromkeys(found)]

    def _terms(self, factors: list[Factor], changed: set[str] | None) -> tuple[int, int, int]:
        """Return the table and the interval of a part; ``changed`` is None where any attributes may be."""
        per, among, low, high = set(self.unit.per), [], 1, 1
        for factor in factors:
            same = self._same(factor[0], changed)
            if per.intersection(factor[0]):
                among.append((factor, same))
            else:
                low, high = _product((low, high), _range(factor, same))
        key = tuple((names, id(overlaps), most, same) for (names, overlaps, most), same in among)
        if key not in self._places:
            self._places[key] = len(self._tables)
            self._tables.append(reduce(_product, (self._table(*one) for one in among), _ONES))
        return self._places[key], low, high

    def _same(self, names: tuple[str, ...], changed: set[str] | None) -> bool | None:
        """Return whether two records are the same in some attributes but `per`; None where they may be."""
        others = [name for name in names if name not in self.unit.per]
        if changed is None:
            free = [own for own in others if own not in self.unit.constant and self.domain[own].size > 1]
            return None if free else True
        return not changed.intersection(others)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {}

    @cached_property
    def _tables(self) -> list[Interval]:
        return []

    def _table(self, factor: Factor, same: bool | None) -> Interval:
        """Return bounds of the overlaps in a factor for every two values of `per`, shape (values, values)."""
        names, overlaps, most = factor
        size = 2 if self.alike else self.values
        if overlaps is None:
            low = np.full((size, size), -most, dtype=object)
            return low, -low
        own = [name for name in self.unit.per if name in names]
        sizes = {name: self.domain[name].size for name in names}
        if set(own) == set(self.unit.per) and len(own) == len(names) and self.alike and len(overlaps) <= 2:
            whole = overlaps if len(overlaps) == 2 else np.full((2, 2), overlaps[0, 0])
            return whole.astype(object), whole.astype(object)
        low, high = self._by_values(overlaps, names, own, same)
        if self.alike:  # they are too many: of any two different ones
            one = len(own) < len(self.unit.per)
            return _two(low, np.min, one), _two(high, np.max, one)
        places = np.indices([self.domain[name].size for name in self.unit.per]).reshape(
            len(self.unit.per), -1
        )
        at = np.ravel_multi_index(
            [places[self.unit.per.index(name)] for name in own], [sizes[name] for name in own]
        )
        return low[np.ix_(at, at)].astype(object), high[np.ix_(at, at)].astype(object)

    def _by_values(
        self, overlaps: Integers, names: tuple[str, ...], own: list[str], same: bool | None
    ) -> Interval:
        """Return the least and the largest overlap of cells for every two values of some attributes."""
        others = [name for name in names if name not in own]
        values, rest = (math.prod(self.domain[name].size for name in few) for few in (own, others))
        if len(overlaps) < values * rest:
            return _of_two(overlaps, values, same)
        shape = [self.domain[name].size for name in names]
        order = [names.index(name) for name in (*own, *others)]
        tensor = overlaps.reshape(*shape, *shape).transpose(*order, *(len(names) + one for one in order))
        tensor = tensor.reshape(values, rest, values, rest).transpose(0, 2, 1, 3).reshape(values, values, -1)
        if same is not None and rest > 1:
            among = np.eye(rest, dtype=bool).ravel() == same
            tensor = tensor[:, :, among]
        return tensor.min(axis=2), tensor.max(axis=2)

    def table(self, weights: Weights) -> NDArray[Any]:
        """Return h, shape (values, values), or for values that are alike that of two, shape (2, 2)."""
        size = 2 if self.alike else self.values
        found: NDArray[Any] | None = None
        for pattern in self.patterns:
            sums: dict[int, Interval] = {}
            for (place, low, high), (least, most) in zip(pattern, weights, strict=True):
                before = sums.get(place, (0, 0))
                low *= least if low > 0 else most
                high *= most if high > 0 else least
                sums[place] = before[0] + low, before[1] + high
            one = np.zeros((size, size), dtype=object)
            for place, own in sums.items():
                one = one + _product(self._tables[place], own)[1]
            found = one if found is None else np.maximum(found, one)
        assert found is not None
        found[np.diag_indices(size)] = sum(
            own * most for own, (_, most) in zip(self.largest, weights, strict=True)
        )
        return found

    @cached_property
    def largest(self) -> list[Any]:
        """Of each part the largest overlap of two records that are in one value of `per`, by values."""
        found = []
        for factors in self._factors:
            place, _, high = self._terms(factors, set())
            largest = self._tables[place][1]
            found.append((largest if isinstance(largest, int) else np.diagonal(largest)) * high)
        return found

    def charge(self, weights: Weights) -> Any:
        """Return the charge, or a bound on it, in the unit of the weights."""
        table = self.table(weights)
        found = largest_form(table, self.within, self.values, alike=self.alike)
        if self.proof is None or self.alike or self.values > MOST_PROVED:
            return found
        proved = proved_form(table, self.most, self.proof)
        return found if proved is None else min(found, self.within.max_records_each**2 * proved)

    @property
    def most(self) -> int:
        """In how many values a person can have records."""
        return self.within.most_values

    @property
    def wants_proof(self) -> bool:
        """Whether a proof can lead to a smaller charge: it is a bound, of not too many values."""
        few = sum(math.comb(self.values, count) for count in range(self.most + 1)) <= MOST_SETS
        # where a person may have records in all values, a proof is found at once
        found = MOST_PROVED if self.most >= self.values else _MOST_SEARCHED
        return not self.alike and not few and self.values <= found


@final
@dataclass(frozen=True, eq=False)
class Steps:
    """What the records of one person cost in a series, whichever of them count at each period, exact.

    Rows that end at one period see the same records. A row over time is c, with entries above and below 0:
    where a person's records have P and N of these, all that they have in common is at most
    G (P^2 + N^2) - 2 g P N, for the largest overlap G beside the periods and the least one g.

    Parameters
    ----------
    domain : Domain
    parts : sequence of Part
        Each with one block over the periods alone.
    unit : Unit
        Its `per` is the attribute of the periods.

    Raises
    ------
    PrivacyError
        If a part has another form.

    Examples
    --------
    Counts of 12 months cost 12 whatever K is: another record may count in each of them.

    >>> from matrixdp.exact import IdentityMatrix
    >>> from matrixdp.plans import Block
    >>> part = Part(("month",), (Block(("month",), IdentityMatrix(12)),), 1.0)
    >>> units = [Unit(id="person", per="month", max_values=values) for values in (1, 12)]
    >>> [Steps(Domain({"month": 12}), [part], unit).charge([(1, 1)]) for unit in units]
    [12, 12]
    """

    domain: Domain
    parts: Sequence[Part]
    unit: Unit

    @cached_property
    def _beside(self) -> Histories:
        """What the parts have in common beside the periods."""
        return Histories(self.domain, [part for _, part in self._split], self.unit)

    @cached_property
    def _split(self) -> list[tuple[MeasuredMatrix, Part]]:
        return [_split(part, self.unit.per) for part in self.parts]

    @cached_property
    def _rows(self) -> list[tuple[list[list[tuple[int, int]]], list[int]]]:
        """For each matrix over time (P^2 + N^2, 2 P N) where its rows cost most, and the parts it is in."""
        at, places = vertices(self.unit.on(self.domain)), defaultdict[str, list[int]](list)
        for place, (matrix, _) in enumerate(self._split):
            places[matrix.digest()].append(place)
        every = places.values()
        return [([_corners(row, *at) for row in _written(self._split[own[0]][0])], own) for own in every]

    def charge(self, weights: Weights) -> Any:
        """Return the charge, or a bound on it, in the unit of the weights."""
        total = 0
        for rows, places in self._rows:
            most = sum(weights[place][1] * self._beside.largest[place] for place in places)
            overlaps = ([pattern[place][1] for place in places] for pattern in self._beside.patterns)
            least = min(
                sum(low * weights[place][low <= 0] for place, low in zip(places, own, strict=True))
                for own in overlaps
            )
            total += sum(max(most * square - least * cross for square, cross in row) for row in rows)
        return total


def _split(part: Part, time: tuple[str, ...]) -> tuple[MeasuredMatrix, Part]:
    """Return the matrix over the periods, and what a part measures beside them."""
    axes = [axis for axis, block in enumerate(part.blocks) if block.attributes == time]
    factors = part.multipliers
    if len(axes) != 1 or (factors is not None and np.ptp(factors, axis=axes[0]).any()):
        raise PrivacyError(f"part {part.attributes}: expected one block over {time} alone, at even weights")
    blocks = tuple(block for block in part.blocks if block.attributes != time)
    names = tuple(name for name in part.attributes if name not in time)
    left = None if factors is None else np.asarray(factors.take(0, axis=axes[0]))
    return part.blocks[axes[0]].matrix, Part(names, blocks, 1.0, left)


def _written(matrix: MeasuredMatrix) -> list[list[int]]:
    """Return the rows of a matrix over time, exact; of an identity the one entry of each."""
    if isinstance(matrix, IdentityMatrix):
        return [[1]] * matrix.rows
    if not isinstance(matrix, IntegerMatrix):
        raise PrivacyError(f"a matrix of kind {matrix.kind!r} over time: expected one of integers")
    rows: list[list[int]] = matrix.entries.tolist()
    return rows


def _corners(row: list[int], full: int, each: int, rest: int) -> list[tuple[int, int]]:
    """Return (P^2 + N^2, 2 P N) for a row where the form can be largest: it is convex in P and in N."""
    up, down = (sorted((sign * own for own in row if sign * own > 0), reverse=True) for sign in (1, -1))
    sums = [[0, *accumulate(own)] for own in (up, down)]

    def filled(side: int, count: int, more: int) -> int:
        own, entries = sums[side], (up, down)[side]
        last = more * entries[count] if count < len(entries) else 0
        return each * own[min(count, len(entries))] + last

    pairs = {(filled(0, full, rest), 0), (0, filled(1, full, rest))}
    most = min(full, len(up))
    for count in range(min(max(0, full - len(down)), most), most + 1):
        other = full - count
        pairs.add((filled(0, count, rest), filled(1, other, 0)))
        pairs.add((filled(0, count, 0), filled(1, other, rest)))
    return [(above**2 + below**2, 2 * above * below) for above, below in pairs]


_ONES: Interval = (1, 1)


def _product(one: Interval, other: Interval) -> Interval:
    """Return bounds of the products of numbers from two intervals."""
    if all(type(own) is int for own in (*one, *other)):
        ends = [own * more for own in one for more in other]
        return min(ends), max(ends)
    products = [np.multiply(own, more) for own in one for more in other]
    return reduce(np.minimum, products), reduce(np.maximum, products)


def _range(factor: Factor, same: bool | None) -> tuple[int, int]:
    """Return bounds of the overlap of two records in a factor without attributes of `per`."""
    names, overlaps, most = factor
    if not names:
        return most, most
    if overlaps is None:
        return (0 if same else -most), most
    own = np.diagonal(overlaps)
    if same or len(overlaps) == 1:
        return int(own.min()), most
    if same is None:
        return int(overlaps.min()), most
    others = overlaps[~np.eye(len(overlaps), dtype=bool)]
    return int(others.min()), int(others.max())


def _of_two(overlaps: Integers, values: int, same: bool | None) -> Interval:
    """Return the bounds of `Histories._by_values` where the overlaps of two cells stand for all."""
    own, other = int(overlaps[0, 0]), int(overlaps[0, 1])
    ends = (min(own, other), max(own, other)) if same is None else ((own, own) if same else (other, other))
    found = []
    for end in ends:
        table = np.full((values, values), other, dtype=object)
        table[np.diag_indices(values)] = end
        found.append(table)
    return found[0], found[1]


def _two(table: Integers, extreme: Any, one: bool) -> Integers:
    """Return an extreme of one value, and of two that differ; with ``one`` these may be the same here."""
    own = int(extreme(np.diagonal(table)))
    others = table if one or len(table) == 1 else table[~np.eye(len(table), dtype=bool)]
    other = int(extreme(others))
    return np.array([[own, other], [other, own]], dtype=object)


def largest_form(table: NDArray[Any], unit: Unit, values: int, *, alike: bool) -> Any:
    """Return the largest z'hz of what a unit allows, or a bound on it where the vertices are too many.

    Parameters
    ----------
    table : ndarray, shape (values, values), or (2, 2) where two values stand for all
        h, symmetric.
    unit : Unit
        In no more values than there are.
    values : int
    alike : bool

    Examples
    --------
    >>> table = np.array([[2, 1, -1], [1, 2, 0], [-1, 0, 3]], dtype=object)
    >>> [largest_form(table, Unit(id="person", per="t", max_values=k), 3, alike=False) for k in (1, 2, 3)]
    [3, 6, 7]
    """
    full, each, rest = vertices(unit)
    if full == values and not alike and (table >= 0).all():
        return each**2 * table.sum()
    sets = sum(math.comb(values, count) for count in range(full + 1))
    if not alike and sets * (values if rest else 1) <= MOST_SETS:
        return _enumerated(table.tolist(), full, each, rest)
    found = _by_largest(table, full, each, rest)
    return found if alike else min(found, _by_rows(table, full, each, rest))


def vertices(unit: Unit) -> tuple[int, int, int]:
    """Return (q, m, r): at a vertex q values or fewer have m records, and one more has r."""
    full, rest = divmod(unit.records, unit.max_records_each)
    if full >= unit.max_values:
        full, rest = unit.max_values, 0
    return full, unit.max_records_each, rest


def _enumerated(table: list[list[Any]], full: int, each: int, rest: int) -> Any:
    """Return the same, every vertex looked at."""
    size = len(table)
    best = rest**2 * max(table[t][t] for t in range(size))

    def extend(chosen: tuple[int, ...], value: Any, sums: list[Any]) -> None:
        # sums: over the chosen values, of their rows; where nothing is left only of the values after them
        nonlocal best
        first = chosen[-1] + 1 if chosen else 0
        begin = 0 if rest else first
        for t in range(first, size):
            row, now = table[t], (*chosen, t)
            total = value + row[t] + 2 * sums[t - begin]
            best = max(best, each**2 * total)
            if rest:
                more = [own + other for own, other in zip(sums, row, strict=True)]
                for s in range(size):
                    if s not in now:
                        last = 2 * each * rest * more[s] + rest**2 * table[s][s]
                        best = max(best, each**2 * total + last)
            elif len(now) < full:
                more = [own + other for own, other in zip(sums[t + 1 - begin :], row[t + 1 :], strict=True)]
            if len(now) < full:
                extend(now, total, more)

    if full:
        extend((), 0, [0] * size)
    return best


def _by_largest(table: NDArray[Any], full: int, each: int, rest: int) -> Any:
    """Return a bound from the largest entry on the diagonal and beside it: exact where all are alike."""
    own = np.diagonal(table).max()
    other = table[~np.eye(len(table), dtype=bool)].max() if len(table) > 1 else 0
    return max(
        each**2 * (s * own + s * (s - 1) * other) + max(2 * each * rest * s * other + rest**2 * own, 0)
        for s in range(full + 1)
    )


def _by_rows(table: NDArray[Any], full: int, each: int, rest: int) -> Any:
    """Return a bound from the largest sums of entries of each row: z'hz is the sum over t of z_t (hz)_t."""
    size = len(table)
    filled, last = [], []
    for t in range(size):
        others = sorted((max(table[t, s], 0) for s in range(size) if s != t), reverse=True)
        sums = [0, *accumulate(others)]
        # with `each` records in t, and with the rest there
        next_one = others[full - 1] if 0 < full < size else 0
        filled.append(each * (table[t, t] + sums[max(full - 1, 0)]) + rest * next_one)
        last.append(rest * table[t, t] + each * sums[min(full, size - 1)])
    return each * sum(sorted(filled, reverse=True)[:full]) + rest * max(last)


def proved_form(table: NDArray[Any], most: int, proof: NDArray[np.int64]) -> Any:
    """Return a bound of z'hz for z of 0 and 1 with at most a number of ones, by a proof; None if it is none.

    Everything is integers, in units of 2^-PROOF_BITS times the largest entry on the diagonal, to which h is
    rounded up.
    """
    size, largest = len(table), np.diagonal(table).max()
    if proof.shape != (2 * size + 3, size) or (np.delete(proof, 2, axis=0) < 0).any():
        return None
    if size < 2 or proof[0, 2:].any():
        return None
    nu, beta = int(proof[0, 0]), int(proof[0, 1])
    kappa, own = proof[1].astype(object), proof[2].astype(object)
    below, above = proof[3 : 3 + size].astype(object), proof[3 + size :].astype(object)
    if np.diagonal(below).any() or np.diagonal(above).any():
        return None
    whole = [[int(-(-(entry * 2**PROOF_BITS) // largest)) for entry in row] for row in table]
    # twice the form, and what is linear beside it
    form = kappa[:, None] + kappa + above + above.T - below - below.T - 2 * np.array(whole, dtype=object)
    form[np.diag_indices(size)] += 2 * own
    linear = own + most * kappa - nu + above.sum(axis=1)
    bordered = [[2 * beta, *linear], *([last, *row] for last, row in zip(linear, form.tolist(), strict=True))]
    if not _positive(bordered):
        return None
    product = (nu * most + beta) * largest
    return -(-product // 2**PROOF_BITS) if isinstance(product, int) else product / 2**PROOF_BITS


#: Binary places of a factor, half of them, and what is left of each entry on the diagonal for its rounding.
_PLACES, _HALF, SLACK = 40, 20, 2.0**-24


def _positive(matrix: list[list[int]]) -> bool:
    """Return whether a symmetric matrix of integers is positive semidefinite; False where that is not proved.

    Rows and columns are multiplied by powers of two that bring the diagonal near 2^80. A factor in floats,
    rounded to integers, leaves a rest in which each entry on the diagonal is at least the sum of the sizes of
    the others in its row: so matrix and rest are sums of positive semidefinite matrices. Nothing rests on how
    the factor was found, and products of its halves are exact in floats.
    """
    size, diagonal = len(matrix), [matrix[i][i] for i in range(len(matrix))]
    if min(diagonal) <= 0 or size > _MOST_FACTORED:
        return False
    shifts = [_PLACES - (own.bit_length() + 1) // 2 for own in diagonal]
    if min(shifts) < 0:
        return False
    whole = np.array([[own << (a + b) for own, b in zip(row, shifts, strict=True)]
                      for row, a in zip(matrix, shifts, strict=True)], dtype=object)  # fmt: skip
    floats = whole.astype(np.float64) / 2.0 ** (2 * _PLACES)
    try:
        factor = np.linalg.cholesky(floats - SLACK * np.diag(np.diagonal(floats)))
    except np.linalg.LinAlgError:
        return False
    places = np.rint(factor * 2.0**_PLACES)
    high = np.rint(places / 2.0**_HALF)
    low = places - high * 2.0**_HALF
    both = high @ low.T
    products = [own.astype(np.int64).astype(object) for own in (high @ high.T, both + both.T, low @ low.T)]
    rest = whole - products[0] * 2 ** (2 * _HALF) - products[1] * 2**_HALF - products[2]
    own = np.diagonal(rest)
    return bool((2 * own >= np.abs(rest).sum(axis=1)).all() and (own >= 0).all())
