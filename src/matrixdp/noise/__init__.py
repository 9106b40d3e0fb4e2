"""Noise: its norm, costs and quantiles, its exactly rounded samples, and the one source of randomness.

The exponential mechanism too, which chooses by chance instead of adding noise.
"""

from matrixdp.noise.choice import choose, uniform
from matrixdp.noise.drawing import Distribution
from matrixdp.noise.gaussian import GAUSSIAN, Gaussian
from matrixdp.noise.laplace import LAPLACE, Laplace, PureNoise
from matrixdp.noise.names import NOISES, checked_cost, natural_noise, noise_named, register_noise
from matrixdp.noise.noise import Cost, Guarantee, Measure, Measured, Noise
from matrixdp.noise.source import RandomSource, SeededSource, SystemSource

__all__ = [
    "GAUSSIAN",
    "LAPLACE",
    "NOISES",
    "Cost",
    "Distribution",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Measure",
    "Measured",
    "Noise",
    "PureNoise",
    "RandomSource",
    "SeededSource",
    "SystemSource",
    "checked_cost",
    "choose",
    "natural_noise",
    "noise_named",
    "register_noise",
    "uniform",
]
