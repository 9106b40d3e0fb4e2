"""T1 and T2 of a decomposition, summed over triples of subsets of attributes.

For a positive semidefinite Z over all cells and a distribution p on them, with q = 1 / p, T1 = tr(V Z) and
T2 = tr(V Z q Z V Z) prove that no Gaussian strategy has a loss below T1^3 / T2. A decomposition gives Z, the
sum of the covariances of its sub-strategies; what is left to choose are p and the scales of the covariances.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import Array
from matrixdp.selection.bounds.lattice import Lattice, Places
from matrixdp.selection.bounds.traces import Code, Share, Traces
from matrixdp.selection.descent import Effort, descend
from matrixdp.selection.problem.residuals import Split

#: The most entries of the tables by subset and attribute; traces that do not fall apart by attribute (with
#: 5,000 the bound of two products each pair came out 90% low); pairs of subsets looked through; triples.
MOST_ENTRIES = 30_000_000
MOST_TIED = 200
MOST_LOOKS = 100_000_000
MOST_TRIPLES = 5_000_000


@dataclass(frozen=True, eq=False)
class ClassTerms:
    """What is asked and measured on the subsets of one class.

    Attributes
    ----------
    terms : list of (float, tuple of int)
        Kronecker terms: a coefficient, symmetric attributes included, and the Gram matrix of each free one.
    spread : tuple of int
        The sizes of the symmetric attributes. With J = I - 11'/n, Z is (n - 1) / n J there, as if measured
        with sensitivity 1.
    measured : tuple of int, or None
        The covariance of each free attribute; None where the class is not measured.
    level : float
        tr(V Z), the loss of the strategy; 0 where nothing is measured.
    """

    terms: list[tuple[float, tuple[int, ...]]]
    spread: tuple[int, ...] = ()
    measured: tuple[int, ...] | None = None
    level: float = 0.0


class Operator:
    """T1 and T2 of a decomposition as functions of the distributions p.

    Parameters
    ----------
    split : Split
    traces : Traces
    classes : sequence of ClassTerms
        By class of the split.

    Attributes
    ----------
    sectors : list of (int, int)
        Of sectors that exchanges of attributes turn into one another: the first, and how many they are.

    Raises
    ------
    TooLargeError
        If there are too many subsets, terms or triples.
    """

    def __init__(self, split: Split, traces: Traces, classes: Sequence[ClassTerms]) -> None:
        self.lattice, self.traces, self.classes = Lattice.of(split), traces, classes
        self._lay_out()
        #: The numbers of shares by the codes of their attributes, of which the first has none.
        self._numbers: dict[tuple[Code, ...], int] = {(): 0}
        self._shares = [Share((), np.ones(()))]
        self._rings = 0
        self._collect(_exchangeable(split, self.lattice, classes))

    def _lay_out(self) -> None:
        """Lay out terms and covariances by subset and attribute."""
        lattice = self.lattice
        most, attributes = max(len(one.terms) for one in self.classes), len(lattice.types)
        entries = len(lattice.classes) * attributes * most
        if entries > MOST_ENTRIES:
            raise TooLargeError(f"a bound over tables of {entries} entries; the limit is {MOST_ENTRIES}")
        self.coefficients = np.zeros((len(lattice.classes), most))
        self.slots = np.full((len(lattice.classes), most, attributes), -1, dtype=np.int64)
        self._found = np.full((len(lattice.classes), attributes), -1, dtype=np.int64)
        self._levels = np.array([self.classes[number].level for number in lattice.classes])
        for place, number in enumerate(lattice.classes):
            own = lattice.members[place, : lattice.orders[place]]
            one = self.classes[number]
            for m, (coefficient, slots) in enumerate(one.terms):
                self.coefficients[place, m] = coefficient
                self.slots[place, m, own] = slots
            if one.measured is not None:
                self._found[place, own] = one.measured

    def _collect(self, kinds: Places) -> None:
        """Collect the triples of all subsets, of one for each orbit."""
        lattice, most = self.lattice, self.coefficients.shape[1]
        measured, roots = self._levels > 0, np.sqrt(self._levels)
        orbits = lattice.orbits(kinds)
        counts = Counter(lattice.kinds_of_sectors(kinds))
        numbers = {sector: number for number, sector in enumerate(counts)}
        firsts = {sector: int(lattice.sectors[place]) for (_, sector), (place, _) in reversed(orbits.items())}
        self.sectors = [(firsts[sector], count) for sector, count in counts.items()]
        chosen = [
            (place, count, numbers[sector])
            for (_, sector), (place, count) in orbits.items()
            if measured[place]
        ]
        looks = sum(lattice.looks(place) for place, *_ in chosen)
        if looks * most**2 > MOST_LOOKS:
            raise TooLargeError(
                f"a bound of {looks} pairs of marginals; the limit is {MOST_LOOKS // most**2}"
            )
        base = lattice.members.shape[1] + 1
        #: T1 by sector and the order of the subset, and T2 by sector and the orders of the three subsets.
        self._firsts = np.zeros((len(counts), base))
        self._shape = len(counts), base, base, base
        none = np.zeros(0, dtype=np.int64)
        parts = [(np.zeros(0), none, none, np.zeros((0, 2 * base - 1), dtype=np.int64))]
        triples = 0
        for place, count, sector in chosen:
            order = lattice.orders[place]
            self._firsts[sector, order] += count * roots[place]
            second, third, opposite, with_second, with_third = near = lattice.triples(place, measured)
            # tr(Z q Z Z) at the uniform p, of the symmetric attributes
            cube = math.prod((n - 1.0) ** 4 / n**2 for n in self.classes[lattice.classes[place]].spread)
            scales = count * cube / (roots[place] * roots[second] * roots[third])
            orders = ((sector * base + order) * base + lattice.orders[second]) * base + lattice.orders[third]
            for m, k in np.ndindex(most, most):
                values = scales * self.coefficients[with_second, m] * self.coefficients[with_third, k]
                kept = np.flatnonzero(values)
                triples += len(kept)
                if triples > MOST_TRIPLES:
                    raise TooLargeError(f"a bound of more than {MOST_TRIPLES} triples of marginals")
                if len(kept):
                    codes = self._coded(place, near[:, kept], m, k)
                    parts.append((values[kept], orders[kept], opposite[kept], codes))
        self._values, self._orders, self._opposite, self._columns = (
            np.concatenate([part[i] for part in parts]) for i in range(4)
        )

    def _coded(self, place: int, near: Places, m: int, k: int) -> Places:
        """Return the numbers of the shares of triples' attributes, shape (triples, columns)."""
        members = self.lattice.members
        second, third, opposite, with_second, with_third = near[:, :, None]
        others = members[opposite[:, 0]]
        others = np.where(np.isin(others, members[place]), len(self.lattice.types) - 1, others)
        names = np.hstack([np.broadcast_to(members[place], others.shape), others])
        if not names.size:
            return np.zeros((len(names), 1), dtype=np.int64)
        found = [self._found[place, names], self._found[second, names], self._found[third, names]]
        asked = [self.slots[with_second, m, names], self.slots[with_third, k, names]]
        digits = [digit.ravel() for digit in (self.lattice.types[names], *found, *asked)]
        first, alike = _distinct(digits)
        codes: list[Code] = list(zip(*(digit[first].tolist() for digit in digits), strict=True))
        apart = [code[0] >= 0 and self.traces.tied(code) for code in codes]
        single = [() if code[0] < 0 or tied else (code,) for code, tied in zip(codes, apart, strict=True)]
        columns = np.array([self._number(one) for one in single])[alike].reshape(names.shape)
        # attributes that are tied together have one share, in a further column
        tied = np.where(np.array(apart)[alike], alike + 1, 0).reshape(names.shape)
        together = np.zeros(len(names), dtype=np.int64)
        rows = np.flatnonzero(tied.any(axis=1))
        if len(rows):
            ordered = np.sort(tied[rows], axis=1)
            first, alike = _distinct(list(ordered.T))
            rings = [self.traces.one_way_round([codes[i - 1] for i in ordered[own] if i]) for own in first]
            together[rows] = np.array([self._number(ring) for ring in rings])[alike]
        return np.column_stack([columns, together])

    def _number(self, codes: tuple[Code, ...]) -> int:
        """Return the number of the share of some attributes."""
        if codes not in self._numbers:
            tied = any(map(self.traces.tied, codes))
            self._rings += tied
            if self._rings > MOST_TIED:
                raise TooLargeError(f"a bound of more than {MOST_TIED} joint traces")
            self._numbers[codes] = len(self._shares)
            self._shares.append(self.traces.tied_share(codes) if tied else self.traces.share(codes[0]))
        return self._numbers[codes]

    def squares(self, p: Sequence[Array]) -> Array:
        """Return w'(w / p) - 1 for every free attribute, 0 for the others, and 1 for none."""
        norms = [float(w @ (w / own)) - 1.0 for w, own in zip(self.traces.weights, p, strict=True)]
        found = np.ones(len(self.lattice.types))
        free = np.isin(np.arange(len(found)), self.lattice.members)
        for i, type_ in enumerate(self.lattice.types[:-1]):
            found[i] = max(norms[type_], 0.0) if free[i] else 0.0
        return found

    def sums(self, p: Sequence[Array]) -> tuple[Array, Array]:
        """Return T1 by order of subset and T2 by those of three subsets, for every orbit of sectors.

        Shapes (sectors, orders) and (sectors, orders, orders, orders); the covariances are scaled such that
        a class of loss L has the trace sqrt(L).
        """
        return self._firsts, self._cubes(self._evaluated(p)[2])

    def _evaluated(self, p: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Return theta of every subset, the shares, and the values of the triples."""
        q = [1.0 / one for one in p]
        shares = np.array([share.value(q) for share in self._shares])
        theta = self.lattice.thetas(self.squares(p))
        return theta, shares, self._values * theta[self._opposite] * shares[self._columns].prod(axis=1)

    def _cubes(self, values: Array) -> Array:
        found = np.bincount(self._orders, values, minlength=math.prod(self._shape))
        return np.asarray(found, dtype=np.float64).reshape(self._shape)

    def roots(self, p: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Return the share of each orbit of sectors in F, and the derivatives of -F by 1 / p of each type."""
        theta, shares, values = self._evaluated(p)
        roots, rates = np.zeros(len(self.sectors)), np.zeros(self._shape)
        for sector, (firsts, cubes) in enumerate(zip(self._firsts, self._cubes(values), strict=True)):
            if firsts.any():
                scales = best_scales(firsts, cubes)
                first = float(scales @ firsts)
                second = float(np.einsum("abc,a,b,c->", cubes, scales, scales, scales))
                roots[sector] = (first**3 / second) ** 0.5
                rate = 0.5 * (first / second) ** 1.5
                rates[sector] = rate * np.einsum("a,b,c->abc", scales, scales, scales)
        values = values * rates.ravel()[self._orders]
        found = [np.zeros(len(w)) for w in self.traces.weights]
        by_share = np.zeros(len(shares))
        for column in self._columns.T:
            used = shares[column]
            ratio = np.divide(values, used, out=np.zeros_like(values), where=used != 0)
            by_share += np.bincount(column, ratio, minlength=len(shares))
        q = [1.0 / one for one in p]
        for number, share in enumerate(self._shares):
            for type_, slope in share.slopes(q):
                found[type_] += by_share[number] * slope
        by_theta = np.bincount(self._opposite, values / theta[self._opposite], minlength=len(theta))
        by_square = self.lattice.theta_slopes(self.squares(p), np.asarray(by_theta, dtype=np.float64))
        for type_, slope in zip(self.lattice.types[:-1], by_square, strict=False):
            found[type_] += slope * self.traces.weights[type_] ** 2
        return roots, found


def _exchangeable(split: Split, lattice: Lattice, classes: Sequence[ClassTerms]) -> Places:
    """Return a number for each attribute, equal for those that may be exchanged with one another.

    They are the types, if every exchange within one leaves all classes as they are; else all are different.
    """
    types = lattice.types[:-1]
    counts = Counter(types.tolist())
    contents: dict[tuple[int, ...], Hashable] = {}
    marginals: Counter[tuple[int, ...]] = Counter()
    apart = np.arange(len(types))
    for sub, one in zip(split.classes, classes, strict=True):
        free = [type_ for type_ in sub.types if split.free[type_]]
        read = [(float(f"{coefficient:.12g}"), slots) for coefficient, slots in one.terms]
        read += [] if one.measured is None else [(0.0, one.measured)]
        content = [(value, frozenset(zip(free, own, strict=True))) for value, own in read]
        key = tuple(sorted(sub.types))
        if contents.setdefault(key, frozenset(content)) != frozenset(content):
            return apart
        if any(len(own) != len(set(free)) for _, own in content):
            return apart
        marginals[key] += len(sub.marginals)
    for key, number in marginals.items():
        if number != math.prod(math.comb(counts[type_], n) for type_, n in Counter(key).items()):
            return apart
    return types


def _distinct(digits: Sequence[Places]) -> tuple[Places, Places]:
    """Return where each distinct combination of digits from -1 on comes first, and the place of each.

    By a table for each digit, as there are few different combinations: no sort of all triples.
    """
    number = np.zeros(len(digits[0]), dtype=np.int64)
    for digit in digits:
        keys = number * (int(digit.max()) + 2) + digit + 1
        used = np.flatnonzero(np.bincount(keys))
        table = np.zeros(int(used[-1]) + 1, dtype=np.int64)
        table[used] = np.arange(len(used))
        number = table[keys]
    first = np.zeros(int(number.max()) + 1, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return first, number


def best_scales(traces: Array, cubes: Array) -> Array:
    """Return the scales x at which (traces'x)^3 / cubes(x, x, x) is largest, as far as a search finds them.

    Shapes (n,), (n, n, n) and (n,); entries without a trace get 0.

    Examples
    --------
    >>> best_scales(np.array([2.0, 0.0]), np.ones((2, 2, 2))).tolist()
    [1.0, 0.0]
    """
    used = np.flatnonzero(traces)
    scales = np.zeros(len(traces))
    scales[used] = 1.0
    if len(used) < 2:
        return scales
    inner = cubes[np.ix_(used, used, used)]
    inner = (inner + inner.transpose(1, 2, 0) + inner.transpose(2, 0, 1)) / 3.0
    linear = traces[used]

    def objective(logs: Array) -> tuple[float, Array]:
        own = np.exp(logs)
        image = np.einsum("abc,b,c->a", inner, own, own)
        first, second = float(linear @ own), float(image @ own)
        if not second > 0:
            return 1e300, np.zeros_like(logs)
        return np.log(second) - 3.0 * np.log(first), own * (3.0 * image / second - 3.0 * linear / first)

    # the bound may rise for ever as scales part, or not depend on them
    start = np.zeros(len(used))
    found = descend(objective, start, Effort(1_000, 2e-9, 1e-5, memory=10), (-50.0, 50.0))
    if objective(found)[0] < objective(start)[0]:
        scales[used] = np.exp(found)
    return scales
