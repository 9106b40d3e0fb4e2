"""Noise: its norm, costs and quantiles, its exactly rounded samples, and the one source of randomness."""

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
    "natural_noise",
    "noise_named",
    "register_noise",
]
