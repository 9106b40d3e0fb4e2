"""Sizes up to which selection does what it does, for those who only want to know them."""

from __future__ import annotations

__all__ = ["MAX_JOINT_CELLS", "MAX_MEASURED_CELLS"]

MAX_JOINT_CELLS = 2_000
"""Sub-workloads that do not factor are solved jointly up to this many cells."""

MAX_MEASURED_CELLS = 9_000
"""A measured matrix has at least as many rows as columns: past this many it would take gigabytes."""
