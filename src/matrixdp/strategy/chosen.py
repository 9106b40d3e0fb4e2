"""How a strategy was chosen, as plain values and as it shows itself."""

from __future__ import annotations

import math

from matrixdp.display import MAX_ROWS, Displayed, Preview, counted
from matrixdp.selection import Selection

__all__ = ["Chosen"]

_FIGURES = {
    "sum": "weighted total squared error at privacy cost 1, before rounding to integers",
    "max": "largest weighted variance at privacy cost 1",
}


class Chosen(Displayed):
    """What a strategy says of its selection."""

    selection: Selection

    @property
    def origin(self) -> dict[str, object]:
        """How it was chosen, as plain values: mechanism, reason, certificate."""
        certificate = self.selection.certificate
        return {
            "mechanism": self.selection.mechanism,
            "reason": self.selection.reason,
            "objective": self.selection.objective,
            "certificate": {
                "loss": certificate.loss,
                "lower_bound": certificate.lower_bound,
                "gap": certificate.gap,
                "scope": certificate.scope,
                "figures": _FIGURES[self.selection.objective],
            },
        }

    def _lines(self) -> tuple[str, str]:
        selection, workload = self.selection, self.selection.workload
        asked = counted(workload.queries, "query", "queries")
        first = f"Strategy for {asked} in {counted(len(workload), 'group')}: {selection.mechanism}"
        gap = selection.certificate.gap
        proved = "no lower bound" if gap is None else f"at most {gap:.1e} above the lower bound"
        parts = counted(len(selection.plan.parts), "part")
        return first, f"{parts} with {selection.noise} noise for {selection.neighbours} neighbours; {proved}"

    def _preview(self) -> Preview:
        groups = self.selection.workload.groups
        rows = []
        for group in groups[:MAX_ROWS]:
            error = self.selection.analysis.group(group)
            figures = math.sqrt(error.total / group.queries), math.sqrt(error.largest)
            rows.append((group.name, f"{group.queries:,}", *(f"{figure:.4g}" for figure in figures)))
        columns = ("group", "queries", "RMSE at privacy cost 1", "largest stddev at privacy cost 1")
        return Preview(columns, rows, len(groups), frozenset((1, 2, 3)))
