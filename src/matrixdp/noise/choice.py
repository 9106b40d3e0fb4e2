"""The exponential mechanism with exact probabilities: a candidate is chosen by its score.

Candidate i is chosen with probability exp(epsilon s_i / (2 D)) / sum of exp(epsilon s_j / (2 D)), where the
scores s are integers of which one record changes each by at most D. No weight is computed. A candidate is
drawn uniformly and kept with probability exp(-x_i), x_i = epsilon (max s - s_i) / (2 D), a rational number;
else the next one is drawn. Attempts are independent, so that i is chosen with probability exp(-x_i) over the
sum of exp(-x_j), as above. docs/noise.md has the proof of privacy, and that coins are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from matrixdp.errors import PrivacyError
from matrixdp.noise.source import RandomSource

#: With fair bits a loop is longer with probability below 2^-1000.
_LONGEST = 1_000
_STUCK = "the random source does not deliver random bits: a loop of 1,000 steps did not end"


def uniform(count: int, source: RandomSource) -> int:
    """Return an integer from 0 to count - 1, each with the same probability.

    Examples
    --------
    >>> from matrixdp.noise import SeededSource
    >>> source = SeededSource(1)
    >>> sorted({uniform(3, source) for _ in range(50)})
    [0, 1, 2]
    """
    bits = (count - 1).bit_length()
    for _ in range(_LONGEST):
        value = source.more_bits(bits)
        if 0 <= value < count:
            return value
    raise PrivacyError(_STUCK)


def happens(exponent: Fraction, source: RandomSource) -> bool:
    """Return True with probability exp(-exponent), for an exponent of at least 0.

    References
    ----------
    C. Canonne, G. Kamath and T. Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020,
    algorithm 1.

    Examples
    --------
    >>> from matrixdp.noise import SeededSource
    >>> source = SeededSource(1)
    >>> sum(happens(Fraction(1), source) for _ in range(1000))  # 368 are expected
    368
    """
    whole = exponent.numerator // exponent.denominator
    return all(_coin(Fraction(1), source) for _ in range(whole)) and _coin(exponent - whole, source)


def _coin(exponent: Fraction, source: RandomSource) -> bool:
    """Return True with probability exp(-exponent), for an exponent from 0 to 1."""
    for step in range(1, _LONGEST):
        if uniform(exponent.denominator * step, source) >= exponent.numerator:
            return step % 2 == 1
    raise PrivacyError(_STUCK)


def choose(scores: Sequence[int], sensitivity: int, epsilon: Fraction, source: RandomSource) -> int:
    """Return the place of a score, chosen by the exponential mechanism, which costs epsilon.

    Parameters
    ----------
    scores : sequence of int
        One for each candidate; the candidates themselves must not depend on the table.
    sensitivity : int
        What one record changes a score by at most.
    epsilon : Fraction

    References
    ----------
    F. McSherry and K. Talwar, Mechanism design via differential privacy, FOCS 2007.

    Examples
    --------
    >>> from matrixdp.noise import SeededSource
    >>> choose([3, 900, 5], 1, Fraction(1), SeededSource(1))
    1
    """
    best, rate = max(scores), epsilon / (2 * sensitivity)
    for _ in range(_LONGEST * len(scores)):
        place = uniform(len(scores), source)
        if happens(rate * (best - scores[place]), source):
            return place
    raise PrivacyError(_STUCK)
