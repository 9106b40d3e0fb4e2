"""How much a child depends on its parents: the scores F, R and I of PrivBayes, as integers.

The paper's scores are shares of n records. Here they are multiplied by n, so that their sensitivities hold
without knowing n, and rounded down to multiples of 1 / `STEPS`. Neighbours differ by one record added or
removed. A change of at most a whole number of steps stays so when both scores are rounded down. Below, c are
the counts of the joint table, a and b its sums over parents and over children, n its sum, all of the smaller
table; the further record is in cell (x, p).

*R = 1/2 sum of |c - a b / n|.* The differences c - a b / n change by (n - a_x)(n - b_p) / (n (n + 1)) in
absolute value, summed over the cells in row x and column p, in row x alone, in column p alone, and elsewhere.
So R changes by at most 2 (n - a_x)(n - b_p) / (n (n + 1)) < 2. Tables of independent attributes whose further
record has new values come as near to 2 as one wants.

*F = - min over the ways to give each parent value to one child of max(0, n/2 - k_0) + max(0, n/2 - k_1)*, for
two children, where k_x counts the records of child x with the parent values given to x. For each way n/2
grows by 1/2, and at most one k by 1, so that each term changes by at most 1/2; their sum by at most 1, and so
does the least.

*I = sum c ln c - sum a ln a - sum b ln b + n ln n.* With g(t) = (t + 1) ln(t + 1) - t ln t, which increases,
I changes by g(c) + g(n) - g(a_x) - g(b_p). Since c <= a_x, b_p <= n, that is between -g(n) and g(n), and
g(n) <= ln(n + 1) + 1. Counts of cells are cut to `MOST_RECORDS`, so that n + 1 has a public bound.

The paper's bounds are for one record replaced: 1 for n F, 3 + 2 / n for n R. Two of ours, which budgets for
replacement pay, are 2 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from matrixdp.papers.door import MOST_RECORDS

Integers = NDArray[np.int64]

#: Of one record, that scores are multiples of.
STEPS = 1 << 10
#: Above ln 2.
_LN_2 = Fraction(6_932, 10_000)


@final
@dataclass(frozen=True)
class Score:
    """A score of families.

    Attributes
    ----------
    of : callable
        From a joint table of counts, shape (children, parents), to the score in steps.
    sensitivity : callable
        From the number of cells to what one record changes a score by at most, in steps.
    """

    of: Callable[[Integers], int]
    sensitivity: Callable[[int], int]


def _independence(counts: Integers) -> int:
    """Return n times R, half the distance from independence.

    Examples
    --------
    >>> _independence(np.array([[3, 0], [0, 1]])) / STEPS
    1.5
    """
    total = int(counts.sum())
    wide = counts if total < 2**31 else counts.astype(object)  # products fit 62 bits, their sum 63
    apart = np.abs(total * wide - np.outer(wide.sum(axis=1), wide.sum(axis=0)))
    return int(apart.sum()) * STEPS // (2 * total) if total else 0


def _dominance(counts: Integers) -> int:
    """Return n times F, minus the distance from tables in which parents determine a balanced child.

    Examples
    --------
    >>> _dominance(np.array([[3, 0], [0, 1]])) / STEPS
    -1.0
    """
    total = int(counts.sum())
    half = (total + 1) // 2  # more than half counts as half
    # the largest k_1 for every k_0; what cannot be has -n
    best = np.full(half + 1, -total, dtype=np.int64)
    best[0] = 0
    for first, second in counts.T.tolist():
        given = best + second
        step = min(first, half)
        given[step:] = np.maximum(given[step:], best[: half + 1 - step])
        given[half] = max(given[half], int(best[half - step :].max()))
        best = given
    lacking = np.maximum(total - 2 * np.arange(half + 1), 0) + np.maximum(total - 2 * best, 0)
    return -int(lacking.min()) * STEPS // 2


def _information(counts: Integers) -> int:
    """Return n times the mutual information, in nats.

    Examples
    --------
    >>> _information(np.array([[8, 0], [0, 8]])) / STEPS  # 16 ln 2
    11.0898...
    """
    sums = counts.sum(axis=1), counts.sum(axis=0), counts.ravel(), counts.sum(keepdims=True).ravel()
    with ctx.workprec(160):  # wrong by less than 2^-60
        whole = arb(0)
        for sign, own in zip((-1, -1, 1, 1), sums, strict=True):
            for value in own[own > 1].tolist():
                whole += sign * value * arb(value).log()
        mantissa, exponent = whole.mid().man_exp()
    return math.floor(Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * STEPS)


#: By their letters in the paper. One more step is what rounding two inexact values of I may add.
SCORES = {
    "F": Score(_dominance, lambda _cells: STEPS),
    "R": Score(_independence, lambda _cells: 2 * STEPS),
    "I": Score(
        _information,
        lambda cells: int(((MOST_RECORDS * cells).bit_length() * _LN_2 + 1) * STEPS) + 2,
    ),
}
