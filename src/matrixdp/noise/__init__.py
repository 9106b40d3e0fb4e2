"""Noise: its norm, costs and quantiles, its exactly rounded samples, and the one source of randomness.

The exponential mechanism too, which chooses by chance instead of adding noise.
"""

from matrixdp.noise.choice import choose as choose
from matrixdp.noise.choice import uniform as uniform
from matrixdp.noise.discovery import Chances as Chances
from matrixdp.noise.discovery import Mechanism as Mechanism
from matrixdp.noise.discovery import Round as Round
from matrixdp.noise.discovery import WeightedRounds as WeightedRounds
from matrixdp.noise.drawing import Distribution as Distribution
from matrixdp.noise.gaussian import GAUSSIAN as GAUSSIAN
from matrixdp.noise.gaussian import Gaussian as Gaussian
from matrixdp.noise.integers import Tails as Tails
from matrixdp.noise.laplace import LAPLACE as LAPLACE
from matrixdp.noise.laplace import Laplace as Laplace
from matrixdp.noise.laplace import PureNoise as PureNoise
from matrixdp.noise.names import NOISES as NOISES
from matrixdp.noise.names import checked_cost as checked_cost
from matrixdp.noise.names import natural_noise as natural_noise
from matrixdp.noise.names import noise_named as noise_named
from matrixdp.noise.names import register_noise as register_noise
from matrixdp.noise.noise import Cost as Cost
from matrixdp.noise.noise import Guarantee as Guarantee
from matrixdp.noise.noise import Measure as Measure
from matrixdp.noise.noise import Measured as Measured
from matrixdp.noise.noise import Noise as Noise
from matrixdp.noise.radius import Radius as Radius
from matrixdp.noise.source import RandomSource as RandomSource
from matrixdp.noise.source import SeededSource as SeededSource
from matrixdp.noise.source import SystemSource as SystemSource
from matrixdp.noise.walks import Walk as Walk
