"""Tail probabilities of the noises from their definitions, and what builds on them."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from flint import arb, ctx, fmpq
from scipy import stats

from matrixdp.noise import GAUSSIAN, LAPLACE, Noise, drawing

BOTH = [GAUSSIAN, LAPLACE]
#: Of a statistical test, whose seed is fixed.
FALSE_ALARM = 1e-10
#: How far from 0 samples are told apart, in scales.
REACH = {GAUSSIAN: 4, LAPLACE: 6}


def tail(noise: Noise, point: Fraction) -> arb:
    """P(Z > point) at scale 1, for points of either sign."""
    ball = arb(fmpq(point.numerator, point.denominator))
    if noise is GAUSSIAN:
        return (ball / arb(2).sqrt()).erfc() / 2
    return (-ball).exp() / 2 if point >= 0 else 1 - ball.exp() / 2


def word_at(noise: Noise, point: Fraction) -> int:
    """The first 64 bits of the tail probability of a point."""
    with ctx.workprec(256):
        return int((tail(noise, point) * arb(2) ** 64).floor().unique_fmpz())


def chi_square(noise: Noise, samples: np.ndarray, scale: Fraction, offset=Fraction(0), width=1) -> float:
    """The p-value of samples under the exact distribution of round(offset + scale Z)."""
    reach = int(REACH[noise] * scale)
    edges = list(range(-reach, reach + 1, width))
    with ctx.workprec(200):
        tails = [arb(1), *(tail(noise, (k + Fraction(1, 2) - offset) / scale) for k in edges), arb(0)]
        expected = np.array([float(a - b) for a, b in pairwise(tails)]) * len(samples)
    observed = np.bincount(np.searchsorted(edges, samples, side="left"), minlength=len(expected))
    return float(stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1))


def unfiltered(noise: Noise) -> drawing.Distribution:
    """The distribution of a noise, of which every sample is decided exactly."""
    return replace(noise.distribution, approximate=None)


def draw(distribution: drawing.Distribution, scale, size, source, exact: list[Fraction] | None = None):
    """Draw with exact offsets, or without any."""
    if exact is None:
        return drawing.draw(distribution, scale, size, None, None, source)
    rounded = np.array([float(offset) for offset in exact])
    return drawing.draw(distribution, scale, size, rounded, exact.__getitem__, source)
