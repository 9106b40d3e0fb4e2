"""Samples a second of the exact samplers, beside NumPy's floating-point normal generator in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from harness import emit

from matrixdp.noise import GAUSSIAN, LAPLACE, SystemSource

SAMPLES = 4_000_000


def _rate(draw: Callable[[], object]) -> float:
    draw()
    best = 0.0
    for _ in range(3):
        started = time.perf_counter()
        draw()
        best = max(best, SAMPLES / (time.perf_counter() - started))
    return best


def main() -> None:
    scale = Fraction(5000)
    source = SystemSource()
    generator = np.random.default_rng()
    offsets = np.full(SAMPLES, 0.25)
    emit(
        {
            "samples": SAMPLES,
            "exact": _rate(lambda: GAUSSIAN.draw_rounded(scale, SAMPLES, source=source)),
            "exact_with_offsets": _rate(
                lambda: GAUSSIAN.draw_rounded(
                    scale, SAMPLES, offsets=offsets, exact_offset=lambda _: Fraction(1, 4), source=source
                )
            ),
            "laplace": _rate(lambda: LAPLACE.draw_rounded(scale, SAMPLES, source=source)),
            "numpy_normal": _rate(lambda: generator.standard_normal(SAMPLES)),
        }
    )


if __name__ == "__main__":
    main()
