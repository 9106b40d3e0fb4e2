"""T1 and T2 of a decomposition, summed over triples of subsets of attributes.

For a positive semidefinite Z over all cells and a distribution p on them, with q = 1 / p, T1 = tr(V Z) and
T2 = tr(V Z q Z V Z) prove that no Gaussian strategy has a loss below T1^3 / T2. A decomposition gives Z, the
sum of the covariances of its sub-strategies; what is left to choose are p and the scales of the covariances.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.selection.bounds.axes import Axes, Code
from matrixdp.selection.bounds.lattice import Content, Lattice, Neighbours, Places
from matrixdp.selection.bounds.rings import Ring
from matrixdp.selection.bounds.scales import best_scales

__all__ = ["Operator", "SubsetTerms"]

Array = NDArray[np.float64]

#: Distributions are kept above this share of the uniform one.
_LEAST = 1e-7
#: The relative gain of a step below which p is good enough.
_GAIN = 1e-5
#: Traces that do not fall apart by attribute, at most.
_MOST_RINGS = 200
#: Pairs of subsets that are looked through for all subsets, and triples that are kept, at most.
_MOST_LOOKS, _MOST_TRIPLES = 100_000_000, 5_000_000


@dataclass(frozen=True, eq=False)
class SubsetTerms:
    """What is asked and measured on the subsets of one class.

    Attributes
    ----------
    terms : list of (float, tuple of int)
        Kronecker terms: a coefficient, symmetric attributes included, and the Gram matrix of each free one.
    measured : tuple of int, or None
        The strategy of each free attribute; None where the class is not measured.
    level : float
        tr(V Z), the loss of the strategy; 0 where nothing is measured.
    spread : tuple of int
        The sizes of the symmetric attributes. With J = I - 11'/n, Z is (n - 1) / n J there, as if measured
        with sensitivity 1.
    """

    terms: list[tuple[float, tuple[int, ...]]]
    measured: tuple[int, ...] | None
    level: float
    spread: tuple[int, ...] = ()

    @property
    def cube(self) -> float:
        """What they add to T2: the product of tr(Z q Z Z) at the uniform p."""
        return math.prod((n - 1.0) ** 4 / n**2 for n in self.spread)


@dataclass(eq=False)
class _Sector:
    """The triples of the sectors of one orbit: symmetric attributes of one of them, and how many they are."""

    spread: tuple[int, ...]
    count: int
    parts: list[tuple[Array, Places, Places, Places]] = field(default_factory=list)
    traces: dict[int, float] = field(default_factory=dict)

    @cached_property
    def arrays(self) -> tuple[Array, Places, Places, Places]:
        """Coefficients, the orders of the three subsets as one number, unions, and codes of shares."""
        width = max(part[3].shape[1] for part in self.parts)
        padded = [np.pad(part[3], ((0, 0), (0, width - part[3].shape[1]))) for part in self.parts]
        plain = [np.concatenate([part[i] for part in self.parts]) for i in range(3)]
        return plain[0], plain[1], plain[2], np.concatenate(padded)


class Operator:
    """T1 and T2 of a decomposition as functions of the distributions p.

    Parameters
    ----------
    lattice : Lattice
    axes : Axes
    classes : sequence of SubsetTerms
        By class of the split.

    Raises
    ------
    TooLargeError
        If there are too many triples.
    """

    def __init__(self, lattice: Lattice, axes: Axes, classes: Sequence[SubsetTerms]) -> None:
        self.lattice, self.axes, self.classes = lattice, axes, classes
        self.base = lattice.members.shape[1] + 1
        self._numbers: dict[int, int] = {}
        #: By number, from 1: the code of one attribute's share, whether others are tied to it, and rings.
        self._codes: list[Code] = [()]
        self._tied = [False]
        self._rings: dict[tuple[Code, ...], tuple[int, Ring]] = {}
        self._lay_out()
        self._sectors = self._collect()
        rings = {number for number, _ in self._rings.values()}
        #: By number: type, g and c of shares g'q + c.
        self._shares = {
            number: (code[0], *axes.share(code))
            for number, code in enumerate(self._codes)
            if number and number not in rings and not self._tied[number]
        }

    def _lay_out(self) -> None:
        """Lay out terms and strategies by subset and attribute."""
        lattice = self.lattice
        shape = len(lattice.classes), max(len(one.terms) for one in self.classes)
        self.coefficients = np.zeros(shape)
        self.slots = np.full((*shape, len(lattice.names)), -1, dtype=np.int64)
        self.found = np.full((len(lattice.classes), len(lattice.names)), -1, dtype=np.int64)
        self.levels = np.zeros(len(lattice.classes))
        for place, number in enumerate(lattice.classes):
            own = lattice.members[place][lattice.members[place] >= 0]
            one = self.classes[number]
            for m, (coefficient, slots) in enumerate(one.terms):
                self.coefficients[place, m] = coefficient
                self.slots[place, m, own] = slots
            if one.measured is not None and one.level > 0:
                self.found[place, own] = one.measured
                self.levels[place] = one.level

    def _contents(self) -> list[Content]:
        found: list[Content] = []
        for place, number in enumerate(self.lattice.classes):
            own = self.lattice.members[place][self.lattice.members[place] >= 0].tolist()
            spread = [(i, None) for i in self.lattice.spread[place]]
            one = self.classes[number]
            terms: list[tuple[Hashable, frozenset[tuple[int, Hashable]]]] = [
                (float(f"{c:.12g}"), frozenset([*spread, *zip(own, slots, strict=True)]))
                for c, slots in one.terms
            ]
            if one.measured is not None:
                terms.append(("measured", frozenset(zip(own, one.measured, strict=True))))
            found.append(frozenset(terms))
        return found

    def _collect(self) -> list[_Sector]:
        """Return the triples of all sectors."""
        sectors: dict[Hashable, _Sector] = {}
        measured = self.levels > 0
        roots = np.sqrt(self.levels)
        every = self.lattice.orbits(self._contents())
        counts = {orbit: size for place, size, orbit in every if not self.lattice.orders[place]}
        orbits = [one for one in every if measured[one[0]]]
        most = self.coefficients.shape[1]
        looks = sum(self.lattice.count(place) for place, *_ in orbits)
        if looks * most**2 > _MOST_LOOKS:
            raise TooLargeError(
                f"a bound of {looks} pairs of marginals; the limit is {_MOST_LOOKS // most**2}"
            )
        triples = 0
        for place, size, orbit in orbits:
            spread = self.lattice.spread[place]
            sector = sectors.setdefault(orbit, _Sector(spread, counts.get(orbit, 1)))
            order = int(self.lattice.orders[place])
            sector.traces[order] = sector.traces.get(order, 0.0) + size * roots[place]
            near = self.lattice.neighbours(place, measured)
            one = self.classes[self.lattice.classes[place]]
            scale = size * one.cube / roots[place]
            scales = scale / (roots[near.first] * roots[near.second])
            orders = order * self.base + self.lattice.orders[near.first]
            orders = orders * self.base + self.lattice.orders[near.second]
            for m in range(most):
                for k in range(most):
                    pair = self.coefficients[near.with_first, m], self.coefficients[near.with_second, k]
                    values = scales * pair[0] * pair[1]
                    kept = np.flatnonzero(values)
                    triples += len(kept)
                    if triples > _MOST_TRIPLES:
                        raise TooLargeError(f"a bound of more than {_MOST_TRIPLES} triples of marginals")
                    if len(kept):
                        codes = self._coded(place, near, m, k, kept)
                        sector.parts.append((values[kept], orders[kept], near.together[kept], codes))
        return list(sectors.values())

    def _coded(self, place: int, near: Neighbours, m: int, k: int, kept: Places) -> Places:
        """Return the codes of the shares of triples' attributes, 0 for none; shape (triples, columns)."""
        members = self.lattice.members
        own = members[place][members[place] >= 0]
        columns = [np.full(len(kept), i) for i in own]
        for j in range(members.shape[1]):
            other = members[near.together[kept], j]
            columns.append(np.where((other[:, None] == own).any(axis=1), -1, other))
        codes = np.zeros((len(kept), len(columns)), dtype=np.int64)
        for j, attribute in enumerate(columns):
            there = attribute >= 0
            names, rows = attribute[there], kept[there]
            # keys of few different values are numbered by a table, digit by digit: no sort of all triples
            keys, number = np.arange(len(self.axes.weights)), self.lattice.types[names]
            for radix, found in (
                (len(self.axes.measured), self.found[place, names]),
                (len(self.axes.measured), self.found[near.first[rows], names]),
                (len(self.axes.measured), self.found[near.second[rows], names]),
                (len(self.axes.grams), self.slots[near.with_first[rows], m, names]),
                (len(self.axes.grams), self.slots[near.with_second[rows], k, names]),
            ):
                used, number = _numbered(number * (radix + 1) + found + 1)
                keys = keys[used // (radix + 1)] * (radix + 1) + used % (radix + 1)
            codes[there, j] = np.array([self._number(int(one)) for one in keys], dtype=np.int64)[number]
        return self._with_rings(codes)

    def _with_rings(self, codes: Places) -> Places:
        """Return the codes, those of attributes that are tied together as one number in a further column."""
        tied = np.array(self._tied)[codes]
        rows = np.flatnonzero(tied.any(axis=1))
        if not len(rows):
            return codes
        ordered = np.sort(np.where(tied, codes, 0)[rows], axis=1)
        alike = np.zeros(len(rows), dtype=np.int64)
        for digit in ordered.T:
            alike = _numbered(alike * len(self._codes) + digit)[1]
        first = np.zeros(int(alike.max()) + 1, dtype=np.int64)
        first[alike[::-1]] = np.arange(len(rows))[::-1]
        column = np.zeros(len(codes), dtype=np.int64)
        numbers = [tuple(one[one > 0].tolist()) for one in ordered[first]]
        column[rows] = np.array([self._ring(one) for one in numbers])[alike]
        return np.column_stack([np.where(tied, 0, codes), column])

    def _ring(self, numbers: tuple[int, ...]) -> int:
        """Return the number of the share of tied attributes."""
        codes = sorted(self._codes[number] for number in numbers)
        if all(map(self.axes.symmetric, {slot for code in codes for slot in code[4:] if slot >= 0})):
            # the trace is that around the ring the other way too
            turned = [(type_, b, e, c, two, one) for type_, b, c, e, one, two in codes]
            codes = min(codes, sorted(turned))
        key = tuple(codes)
        if key not in self._rings:
            if len(self._rings) >= _MOST_RINGS:
                raise TooLargeError(f"a bound of more than {_MOST_RINGS} joint traces")
            ring = Ring(codes, self.axes.weights, self.axes.grams, self.axes.measured)
            self._codes.append(())
            self._tied.append(False)
            self._rings[key] = len(self._codes) - 1, ring
        return self._rings[key][0]

    def _number(self, key: int) -> int:
        """Return the number of a share, counted from 1."""
        if key not in self._numbers:
            code = []
            rest = key
            for radix in (*[len(self.axes.grams)] * 2, *[len(self.axes.measured)] * 3):
                rest, digit = divmod(rest, radix + 1)
                code.append(digit - 1)
            self._codes.append((rest, *code[::-1]))
            self._tied.append(self.axes.tied(self._codes[-1]))
            self._numbers[key] = len(self._codes) - 1
        return self._numbers[key]

    def _thetas(self, squares: Array) -> Array:
        """Return theta of every subset, from |u_i|^2 of every attribute."""
        subsets, members = self.lattice.subsets, self.lattice.members
        theta = np.zeros(len(subsets))
        for pattern in range(subsets.shape[1]):
            known = subsets[:, pattern] >= 0
            left = [j for j in range(members.shape[1]) if not pattern >> j & 1]
            own = members[known][:, left]
            values = np.where(own >= 0, squares[own], 1.0).prod(axis=1)
            theta += np.bincount(subsets[known, pattern], values, minlength=len(theta))
        return theta

    def _theta_slopes(self, squares: Array, slopes: Array) -> Array:
        """Return the derivative of slopes'theta by |u_i|^2."""
        subsets, members = self.lattice.subsets, self.lattice.members
        found = np.zeros(len(squares))
        for pattern in range(subsets.shape[1]):
            known = subsets[:, pattern] >= 0
            left = [j for j in range(members.shape[1]) if not pattern >> j & 1]
            own = members[known][:, left]
            values = np.where(own >= 0, squares[own], 1.0)
            for j in range(len(left)):
                others = np.delete(values, j, axis=1).prod(axis=1) * slopes[subsets[known, pattern]]
                there = own[:, j] >= 0
                found += np.bincount(own[there, j], others[there], minlength=len(found))
        return found

    def _at(self, p: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Return |u_i|^2 of all attributes, theta of all subsets, and the shares by their codes."""
        q = [1.0 / one for one in p]
        norms = [float(w @ (w * one)) - 1.0 for w, one in zip(self.axes.weights, q, strict=True)]
        kinds = zip(self.lattice.types, self.lattice.free, strict=True)
        squares = np.array([max(norms[type_], 0.0) if free else 0.0 for type_, free in kinds])
        shares = np.ones(len(self._codes))
        for number, (type_, g, c) in self._shares.items():
            shares[number] = float(g @ q[type_]) + c
        for number, ring in self._rings.values():
            shares[number] = ring.value(q)
        return squares, self._thetas(squares), shares

    def _summed(self, sector: _Sector, theta: Array, shares: Array) -> tuple[Array, Array, Array]:
        """Return the triples' values in T2, T1 by order, and T2 by the orders of the three subsets."""
        coefficients, orders, together, codes = sector.arrays
        values = coefficients * theta[together]
        for column in codes.T:
            values = values * shares[column]
        cubes = np.bincount(orders, values, minlength=self.base**3).reshape((self.base,) * 3)
        traces = np.zeros(self.base)
        for order, trace in sector.traces.items():
            traces[order] = trace
        return values, traces, cubes

    def thetas(self, p: Sequence[Array]) -> Array:
        """Return theta of every subset: what is left of 1 / p outside of it."""
        return self._at(p)[1]

    def traces(self, p: Sequence[Array]) -> list[tuple[Array, Array]]:
        """Return T1 by order of subset and T2 by those of three subsets, for every orbit of sectors.

        Shapes (orders,) and (orders, orders, orders); the covariances are scaled such that a class of
        loss L has the trace sqrt(L).
        """
        _, theta, shares = self._at(p)
        return [self._summed(sector, theta, shares)[1:] for sector in self._sectors]

    def roots(self, p: Sequence[Array]) -> list[tuple[tuple[int, ...], int, float]]:
        """Return, for every orbit of sectors, one of them, how many there are, and what they add to F."""
        _, theta, shares = self._at(p)
        found = []
        for sector in self._sectors:
            _, traces, cubes = self._summed(sector, theta, shares)
            scales = best_scales(traces, cubes)
            second = float(np.einsum("abc,a,b,c->", cubes, scales, scales, scales))
            found.append((sector.spread, sector.count, (float(scales @ traces) ** 3 / second) ** 0.5))
        return found

    def evaluate(self, p: Sequence[Array], slopes: bool = False) -> tuple[float, list[Array]]:
        """Return F, at the best scales of the orders; and the derivatives of -F by 1 / p, of every type."""
        squares, theta, shares = self._at(p)
        total = 0.0
        by_share, by_theta = np.zeros(len(shares)), np.zeros(len(theta))
        for sector in self._sectors:
            values, traces, cubes = self._summed(sector, theta, shares)
            scales = best_scales(traces, cubes)
            first = float(scales @ traces)
            second = float(np.einsum("abc,a,b,c->", cubes, scales, scales, scales))
            total += (first**3 / second) ** 0.5
            if slopes:
                _, orders, together, codes = sector.arrays
                a, b, c = np.unravel_index(orders, cubes.shape)
                values = values * (0.5 * (first / second) ** 1.5) * scales[a] * scales[b] * scales[c]
                by_theta += np.bincount(together, values / theta[together], minlength=len(theta))
                for column in codes.T:
                    used = shares[column]
                    ratio = np.divide(values, used, out=np.zeros_like(values), where=used != 0)
                    by_share += np.bincount(column, ratio, minlength=len(shares))
        found = [np.zeros(len(w)) for w in self.axes.weights]
        if slopes:
            for number, (type_, g, _) in self._shares.items():
                found[type_] += by_share[number] * g
            q = [1.0 / one for one in p]
            for number, ring in self._rings.values():
                for type_, g in ring.slopes(q):
                    found[type_] += by_share[number] * g
            for t, slope in zip(self.lattice.types, self._theta_slopes(squares, by_theta), strict=True):
                found[t] += slope * self.axes.weights[t] ** 2
        return total, found

    def tuned(self, p: Sequence[Array], steps: int = 30) -> tuple[float, list[Array]]:
        """Return F at the best distributions that are found, and those.

        T2 is linear in every attribute's 1 / p; where it is g'(1 / p), the best p is proportional to sqrt(g).
        """
        current = [np.maximum(one, _LEAST / len(one)) for one in p]
        current = [one / float(one.sum()) for one in current]
        best, slopes = self.evaluate(current, slopes=True)
        power = 1.0
        for _ in range(steps):
            trial = []
            for one, slope, w in zip(current, slopes, self.axes.weights, strict=True):
                if not slope.any():
                    trial.append(one)
                    continue
                step = one ** (1.0 - power) * np.sqrt(np.maximum(slope, 0.0)) ** power
                step = np.maximum(step / step.sum(), _LEAST / len(w))
                trial.append(step / step.sum())
            value, found = self.evaluate(trial, slopes=True)
            if value > best:
                gain = value / best - 1.0
                best, current, slopes = value, trial, found
                if gain < _GAIN:
                    break
            else:
                power *= 0.5
                if power < 0.2:
                    break
        return best, current


def _numbered(numbers: Places) -> tuple[Places, Places]:
    """Return the distinct numbers and the place of each among them, by a table: they are not large."""
    used = np.flatnonzero(np.bincount(numbers))
    places = np.zeros(int(used[-1]) + 1 if len(used) else 0, dtype=np.int64)
    places[used] = np.arange(len(used))
    return used, places[numbers]
