"""The one place of this room that reads a table, and the one that draws noise.

Releases of every other mechanism go through `matrixdp.measure.measurement`, and never through here.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import OutOfDomain
from matrixdp.errors import NumericalError, PrivacyError
from matrixdp.measure.calibration import NoiseScale
from matrixdp.noise import LAPLACE, RandomSource, SeededSource, SystemSource
from matrixdp.queries import Workload
from matrixdp.sources import open_source

__all__ = ["MOST_RECORDS", "lattice_scale", "noisy", "random_source", "read_counts"]

Integers = NDArray[np.int64]

#: The count of a cell is cut to this, so that integers never overflow; one record still changes it by one.
MOST_RECORDS = 2**33
_SCALE_BITS = 12
_FRACTION_BITS = 40


def read_counts(
    table: object, workload: Workload, attribute: str, rule: OutOfDomain, table_name: str | None = None
) -> Integers:
    """Return how many records have each value of an attribute, cut to `MOST_RECORDS`; shape (n,)."""
    source = open_source(table, table_name=table_name)
    for _, counts in source.marginals(workload.domain, [(attribute,)], rule):
        return np.minimum(np.asarray(counts, dtype=np.int64), MOST_RECORDS)
    raise NumericalError("the source did not return the marginal that was asked for")


def random_source(seed_not_private: int | None) -> RandomSource:
    """Return the operating system's generator, or a seeded one, whose noise protects nobody."""
    return SystemSource() if seed_not_private is None else SeededSource(seed_not_private)


def lattice_scale(sensitivity: Fraction | int, epsilon: Fraction, least: int, most: int) -> NoiseScale:
    """Return Laplace noise of a scale of at least sensitivity / epsilon on a lattice of multiples of 2^power.

    Examples
    --------
    >>> scale = lattice_scale(2, Fraction(1, 3), -14, -2)
    >>> scale.power, 0 <= scale.exact - 6 < 1e-9
    (-10, True)
    """
    wanted = Fraction(sensitivity) / epsilon
    exponent = wanted.numerator.bit_length() - wanted.denominator.bit_length()
    power = min(max(exponent - _SCALE_BITS, least), most)
    steps = Fraction(math.ceil(wanted / Fraction(2) ** power * 2**_FRACTION_BITS), 2**_FRACTION_BITS)
    if not 1 <= steps <= 2**20:
        raise PrivacyError("budget: an epsilon so small or so large that noise of its scale is not supported")
    return NoiseScale(steps, power, LAPLACE)


def noisy(values: Integers, shift: int, scale: NoiseScale, random: RandomSource) -> Integers:
    """Return the integers round((v + noise) / 2^power) for the exact values v = values / 2^shift."""
    digits = shift + scale.power
    if digits <= 0:
        return np.asarray(
            (values << -digits) + scale.noise.draw_rounded(scale.steps, len(values), source=random)
        )
    rest = values & ((1 << digits) - 1)
    noise = scale.noise.draw_rounded(
        scale.steps,
        len(values),
        offsets=np.ldexp(rest.astype(np.float64), -digits),
        exact_offset=lambda i: Fraction(int(rest[i]), 1 << digits),
        source=random,
    )
    return np.asarray((values >> digits) + noise)
