"""A sector's share of the bound from polynomials of higher degree, whose traces Gaussian probes estimate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.selection.bounds.contacts import below_root
from matrixdp.selection.bounds.probed_sector import ProbedSector
from matrixdp.selection.starting_points import Generator

__all__ = ["PILOTS", "PROBES", "probed_root"]

Array = NDArray[np.float64]

#: Contacts of the polynomials with the square root, at most: twice that is their degree.
_CONTACTS = 3
#: Probes that choose the polynomial, and probes that estimate its trace.
PILOTS, PROBES = 12, 64
#: Entries of the vectors that are held at a time, at most.
_ENTRIES = 4_000_000
#: What floating point may add, of the sum of all terms, generously.
_ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class _Sample:
    """Means over probes z, with M_j = R'AR (R'R R'AR)^(j - 1): z'M_j z, and (M_i z)'(M_j z)."""

    traces: Array
    squares: Array


def probed_root(
    sector: ProbedSector,
    first: float,
    second: float,
    rng: Generator,
    log_failure: float,
    progress: Callable[[float], None],
) -> float:
    """Return what is at most tr((A)^(1/2)) in a sector, but for a probability over the probes' coins.

    Parameters
    ----------
    sector : ProbedSector
    first, second : float
        T1 and T2 in the sector's own coordinates: tr(M_1) and tr(M_2).
    rng : Generator
    log_failure : float
        The natural logarithm of the probability with which it may be too large.
    progress : callable
        Called with the share that is done.

    References
    ----------
    docs/mathematics.md, section 9, theorem 12.
    """
    steps = 2 * _CONTACTS
    every = PILOTS + PROBES
    pilot = _sample(sector, steps, PILOTS, rng, lambda done: progress(done / every))
    degree, offsets = _best_polynomial(pilot, first, second, log_failure)
    sample = _sample(sector, degree.size, PROBES, rng, lambda done: progress((PILOTS + done) / every))
    return _lower_end(degree, offsets, sample, first, second, log_failure)


def _lower_end(
    polynomial: Array, offsets: Array, sample: _Sample, first: float, second: float, log_failure: float
) -> float:
    """Return the lower end of the trace of a polynomial.

    The traces of M_1 and M_2 are known: with them come ``offsets`` out of the polynomial, and what is left
    is estimated.
    """
    rest = polynomial.copy()
    rest[:2] -= offsets
    known = offsets[0] * first + offsets[1] * second
    size = len(rest)
    estimate = float(rest @ sample.traces[:size])
    norm = math.sqrt(max(float(rest @ sample.squares[:size, :size] @ rest), 0.0))
    share = -(log_failure - math.log(2.0)) / PROBES
    norm /= math.sqrt(_least_share(share))
    margin = 2.0 * norm * (math.sqrt(share) + share)
    terms = (
        abs(offsets[0]) * first
        + abs(offsets[1]) * second
        + float(np.abs(rest) @ np.abs(sample.traces[:size]))
    )
    return float(known + estimate - margin - _ROUNDING * terms)


@cache
def _least_share(share: float) -> float:
    """Return c in (0, 1) with c - 1 - log c = 2 share: how small a mean of squares may be."""
    found = scipy.optimize.brentq(lambda c: c - 1.0 - math.log(c) - 2.0 * share, 1e-300, 1.0)
    return float(found) * (1.0 - 1e-6)


def _best_polynomial(pilot: _Sample, first: float, second: float, log_failure: float) -> tuple[Array, Array]:
    """Return the polynomial and the offsets with the highest lower end on the pilot's probes."""
    centre = math.log(second / first)

    def offsets_of(polynomial: Array) -> Array:
        inner = pilot.squares[: len(polynomial), : len(polynomial)]
        best = np.linalg.lstsq(inner[:2, :2], inner[:2] @ polynomial, rcond=1e-12)[0]
        return np.asarray(best)

    def missed(logs: Array) -> float:
        ordered = np.sort(logs)
        if ordered[0] < -6 or ordered[-1] > 6 or (np.diff(ordered) < 1e-3).any():
            return math.inf
        polynomial = below_root(np.exp(ordered + centre).tolist())
        return -_lower_end(polynomial, offsets_of(polynomial), pilot, first, second, log_failure)

    found: tuple[float, Array] = (missed(np.zeros(1)), np.zeros(1))
    for count in range(2, _CONTACTS + 1):
        start = np.linspace(-0.8, 0.4, count)
        result = scipy.optimize.minimize(
            missed, start, method="Nelder-Mead", options={"maxfev": 100, "xatol": 1e-3, "fatol": 1e-6 * first}
        )
        if result.fun < found[0]:
            found = float(result.fun), np.sort(result.x)
    polynomial = below_root(np.exp(found[1] + centre).tolist())
    return polynomial, offsets_of(polynomial)


def _sample(
    sector: ProbedSector, steps: int, probes: int, rng: Generator, progress: Callable[[float], None]
) -> _Sample:
    """Return what probes see of M_1, ..., M_steps."""
    shapes = sector.shapes
    dimensions = sum(math.prod(shape) for shape in shapes)
    batch = max(1, min(probes, _ENTRIES // dimensions))
    traces, squares = np.zeros(steps), np.zeros((steps, steps))
    for begin in range(0, probes, batch):
        count = min(batch, probes - begin)
        z = [rng.standard_normal((count, *shape)) for shape in shapes]
        images = []
        current = z
        for step in range(steps):
            current = sector.asked(current if step == 0 else sector.metric(current))
            images.append(current)
            progress(begin + count * (step + 1) / steps)
        flat = [np.concatenate([one.reshape(-1) for one in image]) for image in images]
        own = np.concatenate([one.reshape(-1) for one in z])
        traces += np.array([own @ one for one in flat])
        squares += np.array([[a @ b for b in flat] for a in flat])
    return _Sample(traces / probes, squares / probes)
