"""The undecided sample: a rounding decided by rigorous ball arithmetic and lazily drawn bits.

|Z| is the point at which the upper tail probability of its distribution equals a uniform V in (0, 1/2).
Nothing is inverted here: "|Z| > a" is "V < Q(a)", and the upper tail probability Q(a) is enclosed in a ball
of any accuracy. V is known to lie in an interval of width 2**-length; it is refined, never redrawn, until the
interval and the ball are apart.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from matrixdp.errors import PrivacyError
from matrixdp.noise.source import RandomSource

__all__ = ["LazyTail", "exceeds", "round_exactly"]

# A fair source needs more than this many bits for one sample with probability below 2**-16000.
_LONGEST = 1 << 14
_STEP = 64


@dataclass(slots=True)
class LazyTail:
    """A uniform tail probability, in [value, value + 1] * 2**-length as far as its bits were drawn."""

    value: int
    length: int
    source: RandomSource

    def extend(self) -> None:
        """Draw 64 further bits of V; refuse a source that is none of random bits."""
        if self.length > _LONGEST:
            raise PrivacyError("the random source does not deliver random bits: one sample used up 16384")
        bits = self.source.more_bits(_STEP)
        if not 0 <= bits < 1 << _STEP:
            raise PrivacyError("the random source returned bits out of range")
        self.value = self.value << _STEP | bits
        self.length += _STEP


def exceeds(tail: LazyTail, point: Fraction, upper_tail: Callable[[Fraction], arb]) -> bool:
    """Decide whether |Z| > point, that is V < Q(point), drawing further bits of V only if they are needed."""
    if point <= 0:
        return True
    guard = 32
    while True:
        with ctx.workprec(tail.value.bit_length() + guard):
            ball = upper_tail(point)
            if ball >= arb((tail.value + 1, -tail.length)):
                return True
            if ball <= arb((tail.value, -tail.length)):
                return False
            narrow = bool(ball.rad() < arb((1, -tail.length - 1)))
        # A ball wider than the interval asks for precision, a narrow ball inside it for further bits.
        if narrow:
            tail.extend()
        else:
            guard *= 2


def round_exactly(
    tail: LazyTail,
    negative: bool,
    scale: Fraction,
    offset: Fraction,
    upper_tail: Callable[[Fraction], arb],
    guess: Callable[[float], float],
) -> int:
    """Return the one integer K with |offset + scale * Z - K| < 1/2; the guess decides nothing.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN, SeededSource
    >>> tail = LazyTail(value=2**60, length=64, source=SeededSource(1))
    >>> normal = GAUSSIAN.distribution
    >>> scale, offset = Fraction(100), Fraction(1, 3)
    >>> round_exactly(tail, True, scale, offset, normal.upper_tail, normal.guess)  # Z is about -1.534
    -153
    """
    while tail.value == 0:
        tail.extend()
    # With n = sign * K and p = sign * offset, K is the answer if and only if
    # (n - 1/2 - p) / scale < |Z| < (n + 1/2 - p) / scale.
    shifted = -offset if negative else offset
    logarithm = math.log(tail.value) - tail.length * math.log(2)
    candidate = math.floor(shifted + scale * Fraction(guess(logarithm)) + Fraction(1, 2))
    half = Fraction(1, 2)
    while not exceeds(tail, (candidate - half - shifted) / scale, upper_tail):
        candidate -= 1
    while exceeds(tail, (candidate + half - shifted) / scale, upper_tail):
        candidate += 1
    return -candidate if negative else candidate
