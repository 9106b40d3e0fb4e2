"""What a model shows of itself."""

from __future__ import annotations

from abc import abstractmethod

from matrixdp.display import MAX_ROWS, Displayed, Preview, counted
from matrixdp.measure.measurement import Measurement
from matrixdp.queries import Workload

__all__ = ["ShownModel"]


class ShownModel(Displayed):
    """A model's two lines, and its groups."""

    measurement: Measurement
    workload: Workload

    @property
    @abstractmethod
    def method(self) -> str:
        """How it was made."""

    @property
    @abstractmethod
    def accepted(self) -> bool:
        """Whether it passed the tests of its fit."""

    def _lines(self) -> tuple[str, str]:
        asked = counted(self.workload.queries, "answer")
        first = f"Model ({self.method}) of {asked} in {counted(len(self.workload), 'group')}, biased"
        passed = f"{'' if self.accepted else 'NOT '}accepted by the tests of its fit"
        seeded = "" if self.measurement.private else "NOT PRIVATE: the noise was seeded; "
        return first, seeded + passed

    def _preview(self) -> Preview:
        rows = [(group.name, f"{group.queries:,}") for group in self.workload.groups[:MAX_ROWS]]
        return Preview(("group", "queries"), rows, len(self.workload), frozenset((1,)))
