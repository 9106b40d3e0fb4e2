"""The picture of a strategy: what is measured at which share of the privacy cost, and its errors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.titles import titles
from matrixdp.exact import CenteredMatrix, IdentityMatrix, MeasuredMatrix
from matrixdp.pictures.style import BAND, INK, SERIES, new_figure, quiet, shortened
from matrixdp.plan import Plan
from matrixdp.privacy import Budget
from matrixdp.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PlottedStrategy", "cost_shares", "draw_strategy"]

Array = NDArray[np.float64]

_BARS, _MATRICES = 12, 3
#: Rows or columns of a matrix that is drawn, at most.
_LARGEST = 2_000


class PlottedStrategy(ABC):
    """Pictures of what was selected."""

    selection: Selection

    @abstractmethod
    def _cost(self, budget: Budget) -> float:
        """Return by what a budget divides variances, if the strategy's noise can honour it."""

    def plot(self, budget: Budget | None = None) -> Figure:
        """Draw what is measured, and the errors that follow; no data are needed.

        The marginals that are measured with their shares of the privacy cost, the largest first; the integer
        matrices that have most of it; and the root mean square error of every query group beside the largest
        standard error of a query, for at most 12 groups: those with the largest errors.

        Parameters
        ----------
        budget : Budget, optional
            For which errors are shown; privacy cost 1 where it is left out, that is rho = 0.5 for Gaussian
            and epsilon = 1 for Laplace noise.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        PrivacyError
            If the strategy's noise cannot honour the budget.
        SpecificationError
            If matplotlib is not installed: ``pip install 'matrixdp[pictures]'``.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"age": range(16)}), mdp.product(age="prefix"))
        >>> figure = mdp.select(workload).plot(mdp.Budget(rho=0.1))
        >>> [axes.get_title() for axes in figure.axes][0]
        'measured, by share of the privacy cost'
        """
        scale = 1.0 if budget is None else self._cost(budget)
        return draw_strategy(self.selection, scale)


def cost_shares(plan: Plan) -> dict[tuple[str, ...], float]:
    """Return the share that each measured marginal has of the privacy cost, the largest first.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["f", "m"]}), mdp.marginals(1))
    >>> cost_shares(mdp.select(workload, mechanism="identity").selection.plan)
    {('sex',): 1.0}
    """
    shares: dict[tuple[str, ...], float] = {}
    for part in plan.parts:
        shares[part.attributes] = shares.get(part.attributes, 0.0) + plan.noise.share(part, part.variance)
    total = math.fsum(shares.values())
    ordered = sorted(shares.items(), key=lambda pair: -pair[1])
    return {attributes: share / total for attributes, share in ordered}


def draw_strategy(selection: Selection, scale: float) -> Figure:
    """Return the picture of a selection, with variances at privacy cost 1 divided by a scale."""
    shares = cost_shares(selection.plan)
    errors = [selection.analysis.group(group) for group in selection.workload]
    matrices = _matrices(selection.plan)
    bars = min(len(shares), _BARS + 1), min(len(errors), _BARS)
    heights = [0.9 + 0.24 * bars[0], 1.2 + 0.24 * bars[1], *([2.3] if matrices else [])]
    figure = new_figure(6.4, sum(heights))
    grid = figure.add_gridspec(len(heights), max(len(matrices), 1), height_ratios=heights)
    _draw_shares(figure.add_subplot(grid[0, :]), shares)
    rows = sorted(
        zip(
            titles(selection.workload.groups),
            (math.sqrt(e.total / g.queries / scale) for e, g in zip(errors, selection.workload, strict=True)),
            (math.sqrt(e.largest / scale) for e in errors),
            strict=True,
        ),
        key=lambda row: -row[1],
    )
    _draw_errors(figure.add_subplot(grid[1, :]), rows)
    for place, (name, matrix) in enumerate(matrices):
        _draw_matrix(figure.add_subplot(grid[2, place]), name, matrix)
    return figure


def _draw_shares(axes: Axes, shares: dict[tuple[str, ...], float]) -> None:
    named = [(", ".join(attributes) or "total", share) for attributes, share in shares.items()]
    rest = named[_BARS:]
    if rest:
        named = [*named[:_BARS], (f"{len(rest):,} more", math.fsum(share for _, share in rest))]
    places = range(len(named))
    axes.barh(places, [100 * share for _, share in named], color=BAND, height=0.72)
    axes.set_yticks(places, [shortened(name) for name, _ in named])
    axes.invert_yaxis()
    axes.set_title("measured, by share of the privacy cost")
    axes.set_xlabel("%")
    quiet(axes, grid="x")


def _draw_errors(axes: Axes, rows: Sequence[tuple[str, float, float]]) -> None:
    shown = rows[:_BARS]
    places = range(len(shown))
    axes.plot([row[1] for row in shown], places, "o", color=SERIES[0], label="root mean square")
    axes.plot([row[2] for row in shown], places, "|", color=INK, markersize=9, label="largest")
    axes.set_yticks(places, [shortened(row[0]) for row in shown])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    more = "" if len(rows) == len(shown) else f", the largest of {len(rows):,} groups"
    axes.set_title(f"standard errors{more}")
    axes.set_xlabel("records")
    axes.legend(fontsize=8, frameon=False, labelcolor=INK)
    quiet(axes, grid="x")


def _draw_matrix(axes: Axes, name: str, matrix: Array) -> None:
    largest = float(np.abs(matrix).max())
    axes.imshow(matrix, aspect="auto", cmap="PuOr", vmin=-largest, vmax=largest, interpolation="none")
    axes.set_title(shortened(f"{name}: {matrix.shape[0]} x {matrix.shape[1]}", 26))
    axes.set_xlabel("cell")
    axes.set_ylabel("row")
    quiet(axes, grid="")


def _matrices(plan: Plan) -> list[tuple[str, Array]]:
    """Return the integer matrices with the largest parts, written out, and what they are on."""
    parts = sorted(plan.parts, key=lambda part: -plan.noise.share(part, part.variance))
    found: dict[str, tuple[str, MeasuredMatrix]] = {}
    for part in parts:
        for block in part.blocks:
            matrix = block.matrix
            plain = isinstance(matrix, IdentityMatrix | CenteredMatrix)
            if not plain and max(matrix.rows, matrix.columns) <= _LARGEST:
                found.setdefault(matrix.digest(), (", ".join(block.attributes), matrix))
        if len(found) >= _MATRICES:
            break
    chosen = list(found.values())[:_MATRICES]
    return [(name, matrix.written()) for name, matrix in chosen]
