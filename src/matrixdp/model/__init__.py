"""Models of a release: non-negative, consistent, integer estimates, and records."""

from matrixdp.model.choice import ChosenMixture, FitTests
from matrixdp.model.local import LocalTables
from matrixdp.model.mixture import Mixture
from matrixdp.model.model import Model

__all__ = ["ChosenMixture", "FitTests", "LocalTables", "Mixture", "Model"]
