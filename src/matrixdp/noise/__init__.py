"""Exactly rounded Gaussian noise and the one source of randomness of the package."""

from matrixdp.noise.gaussian import LARGEST_SCALE, SMALLEST_SCALE, rounded_gaussian
from matrixdp.noise.source import RandomSource, SeededSource, SystemSource

__all__ = [
    "LARGEST_SCALE",
    "SMALLEST_SCALE",
    "RandomSource",
    "SeededSource",
    "SystemSource",
    "rounded_gaussian",
]
