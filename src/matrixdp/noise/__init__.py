"""Exactly rounded Gaussian and Laplace noise, and the one source of randomness of the package."""

from matrixdp.noise.drawing import LARGEST_SCALE, SMALLEST_SCALE
from matrixdp.noise.gaussian import rounded_gaussian
from matrixdp.noise.laplace import rounded_laplace
from matrixdp.noise.source import RandomSource, SeededSource, SystemSource

__all__ = [
    "LARGEST_SCALE",
    "SMALLEST_SCALE",
    "RandomSource",
    "SeededSource",
    "SystemSource",
    "rounded_gaussian",
    "rounded_laplace",
]
