"""Models of a release: non-negative, consistent, integer estimates, and records."""

from matrixdp.model.fit import Fit, fit
from matrixdp.model.mixture import Mixture
from matrixdp.model.parts import Parts

__all__ = ["Fit", "Mixture", "Parts", "fit"]
