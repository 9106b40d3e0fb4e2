"""Heat maps of estimates, beside one of their standard errors where these differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from matrixdp.pictures.axes import Axis
from matrixdp.pictures.style import INK, label_places, new_figure, quiet, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

__all__ = ["draw_heat_map", "draw_triangles"]

Array = NDArray[np.float64]

_COLOURS = "cividis"
#: Cells that are written in, and marks along an axis, at most.
_WRITTEN, _MARKS = 60, 12
#: Standard errors that differ by less are all but the same.
_ALIKE = 1.02


def draw_heat_map(rows: Axis, columns: Axis, estimates: Array, stddevs: Array, *, halves: Array) -> Figure:
    """Return estimates by two axes as a heat map, and their standard errors as another."""
    count, width = estimates.shape
    written = count * width <= _WRITTEN and width <= 8
    panels = [("estimate", estimates)]
    if not alike(stddevs):
        panels.append(("standard error", stddevs))
    below = width > 12 or (written and width > 3)
    grid = (len(panels), 1) if below else (1, len(panels))
    tall = min(max(1.1 + 0.26 * count, 1.9), 5.0)
    figure = new_figure(6.4, tall * grid[0])
    for place, (name, values) in enumerate(panels):
        axes = figure.add_subplot(*grid, place + 1)
        norm = _norm(values, stddevs) if place == 0 else None
        image = axes.imshow(values, aspect="auto", cmap=_COLOURS, norm=norm, interpolation="none")
        axes.set_yticks(*label_places(rows.labels, 2 * _MARKS if below else _MARKS))
        axes.set_xticks(*label_places(columns.labels, 6 if below else 4))
        axes.set_xlabel(shortened(columns.name, 40))
        if below or place == 0:
            axes.set_ylabel(shortened(rows.name, 30))
        axes.set_title(_titled(name, stddevs, panels))
        quiet(axes, grid="")
        _scale(figure, image, axes)
        if written:
            texts = [f"{value:.4g}" for value in values.flat]
            if place == 0:
                texts = [f"{a:,.0f} ±{b:,.0f}" for a, b in zip(values.flat, halves.flat, strict=True)]
            _write(axes, image.to_rgba(values), texts)
    return figure


def draw_triangles(axis: Axis, names: Sequence[str], estimates: Array, stddevs: Array) -> Figure:
    """Return the answers for every interval of values by its two ends: one triangle for each name."""
    size = len(axis.values)
    first, last = np.triu_indices(size)
    panels = [
        (shortened(name) or "estimate", own) for name, own in zip(names or ("",), estimates, strict=True)
    ]
    largest = stddevs.max(axis=0)
    if not alike(stddevs):
        panels.append(("standard error, the largest", largest))
    across = min(len(panels), 2)
    down = math.ceil(len(panels) / across)
    figure = new_figure(6.4, 2.9 * down)
    norm = _norm(estimates, stddevs)
    for place, (name, values) in enumerate(panels):
        axes = figure.add_subplot(down, across, place + 1)
        square = np.full((size, size), np.nan)
        square[first, last] = values
        own = norm if place < len(estimates) else None
        image = axes.imshow(square, cmap=_COLOURS, norm=own, interpolation="none", origin="lower")
        axes.set_yticks(*label_places(axis.values, 6))
        axes.set_xticks(*label_places(axis.values, 3))
        axes.set_xlabel(shortened(f"{axis.name}, to", 30))
        axes.set_ylabel(shortened(f"{axis.name}, from", 30))
        axes.set_title(_titled(name, stddevs, panels) if len(estimates) == 1 else name)
        quiet(axes, grid="")
        _scale(figure, image, axes)
    return figure


def alike(stddevs: Array) -> bool:
    """Return whether standard errors are all but the same.

    Examples
    --------
    >>> alike(np.array([1.0, 1.01])), alike(np.array([1.0, 2.0]))
    (True, False)
    """
    return bool(stddevs.max() <= _ALIKE * stddevs.min())


def _titled(name: str, stddevs: Array, panels: Sequence[object]) -> str:
    return f"{name} (standard error {stddevs.max():.3g})" if len(panels) == 1 else name


def _norm(estimates: Array, stddevs: Array) -> Normalize:
    """Return a scale that is linear within the noise; above it logarithmic, where counts differ widely."""
    from matplotlib.colors import Normalize, SymLogNorm

    low, high = min(0.0, float(estimates.min())), float(estimates.max())
    threshold = 2 * float(np.median(stddevs))
    if threshold > 0 and high > 100 * threshold:
        return SymLogNorm(linthresh=threshold, vmin=low, vmax=high)
    return Normalize(low, high if high > low else low + 1.0)


def _scale(figure: Figure, image: object, axes: Axes) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.ticker import StrMethodFormatter

    assert isinstance(image, ScalarMappable)
    numbers = StrMethodFormatter("{x:,g}")
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02, format=numbers)
    bar.ax.tick_params(colors=INK, labelsize=8)
    bar.outline.set_visible(False)


def _write(axes: Axes, colours: Array, texts: Sequence[str]) -> None:
    """Write a text into every cell."""
    light = colours[..., :3] @ np.array([0.2126, 0.7152, 0.0722]) > 0.45
    for (row, column), text in zip(np.ndindex(*light.shape), texts, strict=True):
        colour = "#000000" if light[row, column] else "#ffffff"
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
