"""Samples a second of the exact samplers, beside NumPy's floating-point normal generator in the same run.

By the clock, and by processor time, the kernel's included: the latter is the rate of one processor, whatever
else a machine does, and the samplers draw on two threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from harness import emit

from matrixdp.noise import GAUSSIAN, LAPLACE, SystemSource

SAMPLES = 4_000_000


def _rates(draw: Callable[[], object]) -> tuple[float, float]:
    """Return the best rate of three by the clock, and by processor time."""
    draw()
    by_clock = by_processor = 0.0
    for _ in range(3):
        started, used = time.perf_counter(), time.process_time()
        draw()
        by_clock = max(by_clock, SAMPLES / (time.perf_counter() - started))
        by_processor = max(by_processor, SAMPLES / (time.process_time() - used))
    return by_clock, by_processor


def main() -> None:
    scale = Fraction(5000)
    source = SystemSource()
    generator = np.random.default_rng()
    offsets = np.full(SAMPLES, 0.25)
    rates = {
        "exact": _rates(lambda: GAUSSIAN.draw_rounded(scale, SAMPLES, source=source)),
        "exact_with_offsets": _rates(
            lambda: GAUSSIAN.draw_rounded(
                scale, SAMPLES, offsets=offsets, exact_offset=lambda _: Fraction(1, 4), source=source
            )
        ),
        "laplace": _rates(lambda: LAPLACE.draw_rounded(scale, SAMPLES, source=source)),
        "numpy_normal": _rates(lambda: generator.standard_normal(SAMPLES)),
    }
    emit(
        {
            "samples": SAMPLES,
            **{name: by_clock for name, (by_clock, _) in rates.items()},
            "by_processor_time": {name: by_processor for name, (_, by_processor) in rates.items()},
        }
    )


if __name__ == "__main__":
    main()
