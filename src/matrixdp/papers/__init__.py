"""Mechanisms and workloads that single papers need, on the public way to add a mechanism."""

from matrixdp.papers import families

__all__ = ["families"]
