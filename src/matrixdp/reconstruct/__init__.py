"""Reconstruction: unbiased, consistent answers from noisy measurements."""

from matrixdp.reconstruct.estimates import Estimates

__all__ = ["Estimates"]
