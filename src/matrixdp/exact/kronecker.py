"""Exact integer Kronecker products by floating-point matrix products.

An integer tensor of any width is held in limbs: float64 arrays of integers, value = sum of limb_k 2^(k L).
A product with an integer matrix whose row sums of absolute values are at most 2^(52 - L) is exact in
float64, limb by limb, in whatever order the products are summed, since every partial sum is an integer
below 2^53. Carries are then moved up by exact divisions by powers of two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import Array, along

_MANTISSA = 53
_MAX_LIMB = 40


class ExactMatrix(Protocol):
    """An integer matrix that multiplies integer arrays in float64."""

    @property
    def max_entry(self) -> int:
        """The largest absolute entry."""

    @property
    def max_row_sum(self) -> int:
        """The largest sum of absolute entries over a row."""

    def multiply(self, array: Array) -> Array:
        """Return the matrix times ``array``, shape (columns, k) in, (rows, k) out.

        Every product and partial sum must be exact while ``max_row_sum * max|array| < 2^53``.
        """


@dataclass(frozen=True)
class Transposed:
    """A nonnegative integer matrix, transposed."""

    entries: NDArray[np.int64]

    @property
    def max_entry(self) -> int:
        """See `ExactMatrix`."""
        return int(self.entries.max())

    @property
    def max_row_sum(self) -> int:
        """See `ExactMatrix`."""
        return int(self.entries.sum(axis=0).max())

    def multiply(self, array: Array) -> Array:
        """See `ExactMatrix`."""
        return np.asarray(self.entries.T.astype(np.float64) @ array)


def _carry(pieces: list[Array], bits: int) -> list[Array]:
    """Bring all limbs but the last into [0, 2^bits); append one where the last is too large."""
    base = float(2**bits)
    limbs = []
    carry = np.zeros(())
    for piece in pieces:
        total = np.asarray(piece + carry)
        carry = np.floor(total * (1.0 / base))  # exact, as divisions by powers of two are
        limbs.append(np.asarray(total - carry * base))
    return [*limbs, carry]


@dataclass(frozen=True, repr=False)
class IntegerTensor:
    """Exact integers: ``sum(limbs[k] * 2**(k * bits))``, all limbs but the last in [0, 2^bits).

    Examples
    --------
    >>> import numpy as np
    >>> IntegerTensor([np.array([7.0, -3.0])], 40).values()
    [7, -3]
    """

    limbs: list[Array]
    bits: int

    def value(self, i: int) -> int:
        """Return the entry at a place, row-major."""
        return sum(int(limb.flat[i]) << (k * self.bits) for k, limb in enumerate(self.limbs))

    def values(self) -> list[int]:
        """Return the entries as Python integers, row-major."""
        return [self.value(i) for i in range(self.limbs[0].size)]

    def chosen(self, entries: NDArray[np.bool_]) -> IntegerTensor:
        """Return some of the entries, flat; ``entries`` says of each, row-major, whether it is one."""
        return IntegerTensor([limb.ravel()[entries] for limb in self.limbs], self.bits)

    def split(
        self, power: int, divisor: int = 1
    ) -> tuple[NDArray[np.int64], Array, Callable[[int], Fraction]]:
        """Divide the values by ``divisor * 2^power``: the quotients, rounded down, and the remainders.

        The integers, the fractions within 2^-53 in [0, 1], and what returns the exact fraction of an entry;
        all are flat. Without a divisor a negative power only shifts. Integers must fit 62 bits; the
        measurement checks that beforehand, from public bounds.

        Examples
        --------
        >>> quotient, fraction, exact = IntegerTensor([np.array([7.0, -3.0])], 40).split(1, 5)
        >>> quotient.tolist(), fraction.tolist(), exact(1)
        ([0, -1], [0.7, 0.7], Fraction(7, 10))
        """
        if divisor != 1:
            up, down = 1 << max(-power, 0), divisor << max(power, 0)
            parts = [divmod(value * up, down) for value in self.values()]
            whole_parts = np.array([quotient for quotient, _ in parts], dtype=np.int64)
            # Python divides integers of any size to the nearest double
            fractions = np.array([rest / down for _, rest in parts])
            return whole_parts, fractions, lambda i: Fraction(parts[i][1], down)
        limbs = [limb.ravel() for limb in self.limbs]
        if power < 0:
            # the caller's static bound keeps value * 2^-power below 2^62
            quotient = np.zeros(limbs[0].size, dtype=np.int64)
            for k, limb in enumerate(limbs):
                quotient += limb.astype(np.int64) << (k * self.bits - power)
            return quotient, np.zeros(limbs[0].size), lambda _: Fraction(0)
        whole, rest = divmod(power, self.bits)
        while len(limbs) <= whole:
            limbs[-1:] = _carry(limbs[-1:], self.bits)
        step = float(2**rest)
        high = np.floor(limbs[whole] / step)
        fraction = (limbs[whole] - high * step) / step
        quotient = high.astype(np.int64)
        for k in range(whole + 1, len(limbs)):
            quotient += limbs[k].astype(np.int64) << ((k - whole) * self.bits - rest)
        for k in range(whole - 1, -1, -1):
            fraction = fraction + limbs[k] * 2.0 ** (k * self.bits - power)
        return quotient, fraction, lambda i: Fraction(self.value(i) % (1 << power), 1 << power)


def apply_kronecker(
    matrices: Sequence[ExactMatrix],
    counts: NDArray[Any],
    max_records: int,
    multipliers: NDArray[np.int64] | None = None,
) -> IntegerTensor:
    """Return (M_1 x ... x M_k) times a tensor of counts, exactly, in the shape of the rows.

    The counts are nonnegative integers, in 64 bits or Python's, with a sum of at most ``max_records``: that
    public bound alone decides how many limbs are used, so that the work does not depend on the data. The
    multipliers are nonnegative factors of the rows of the product. TooLargeError says that a row is too large
    for exact float64 products.

    Examples
    --------
    >>> import numpy as np
    >>> from matrixdp.exact import IntegerMatrix
    >>> m = IntegerMatrix(np.array([[1, 1], [0, 1]]))
    >>> apply_kronecker([m, m], np.array([[1, 2], [3, 4]]), 2**33).values()
    [10, 6, 7, 4]
    """
    largest_row = max((m.max_row_sum for m in matrices), default=1)
    if multipliers is not None:
        largest_row = max(largest_row, int(multipliers.max()))
    bits = min(_MAX_LIMB, _MANTISSA - 1 - largest_row.bit_length())
    if bits < 4:
        raise TooLargeError(f"exact products: a row sums to {largest_row}; at most 2^48 can be multiplied")
    bound, whole = max_records, np.asarray(counts)
    limbs = [whole.astype(np.float64)]
    if bound >= 2**_MANTISSA:
        places = range(0, bound.bit_length(), bits)
        limbs = [np.asarray(whole >> place & 2**bits - 1, dtype=np.float64) for place in places]
    maps: list[tuple[int, Callable[[Array], Array]]] = [
        (matrix.max_entry, partial(along, axis=axis, matrix=matrix.multiply))
        for axis, matrix in enumerate(matrices)
    ]
    if multipliers is not None:
        factor = np.asarray(multipliers, dtype=np.float64)
        maps.append((int(multipliers.max()), lambda limb: limb * factor))
    for largest, multiply in maps:
        before, bound = bound, bound * largest
        wide = bound >= 2**_MANTISSA
        if wide and before < 2**_MANTISSA:
            limbs = _spread(limbs, before, bits)
        limbs = [multiply(limb) for limb in limbs]
        if wide:
            limbs = _spread(limbs, bound, bits)
    return IntegerTensor(limbs, bits)


def _spread(pieces: list[Array], bound: int, bits: int) -> list[Array]:
    """Return as many limbs as the bound needs, so that none is above 2^bits: the next map is exact too."""
    needed = bound.bit_length() // bits + 1
    limbs = _carry(pieces, bits)
    while len(limbs) < needed:
        limbs = _carry(limbs, bits)
    # limbs above the bound hold only the sign: fold them into the last one that is needed
    while len(limbs) > needed:
        top = limbs.pop()
        limbs[-1] = limbs[-1] + top * float(2**bits)
    return limbs
