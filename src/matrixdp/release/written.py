"""What a release is to those who write it down and read it back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.columns import AnswerColumns
from matrixdp.answers.estimated import Estimated
from matrixdp.answers.intervals import Intervals
from matrixdp.domain import Domain
from matrixdp.measure import Measurement, PrivacyStatement
from matrixdp.plan import Analysis
from matrixdp.queries import Group, Workload
from matrixdp.release.size import SizeCheck
from matrixdp.statistics import AskedStatistic

__all__ = ["Written"]

Array = NDArray[np.float64]


class Written(ABC):
    """What files of a release are made from; `Release` is the only one."""

    measurement: Measurement
    workload: Workload
    confidence: float
    origin: Mapping[str, object]
    expect: int | None

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The attributes."""

    @property
    @abstractmethod
    def private(self) -> bool:
        """False if the noise was seeded."""

    @property
    @abstractmethod
    def statement(self) -> PrivacyStatement:
        """What the release promises."""

    @property
    @abstractmethod
    def out_of_domain_counts(self) -> Mapping[str | None, Estimated]:
        """How many records were out of domain, where they were counted."""

    @property
    @abstractmethod
    def size(self) -> SizeCheck:
        """The number of records, as released."""

    @property
    @abstractmethod
    def warnings(self) -> tuple[str, ...]:
        """What looks like a mistake."""

    @property
    @abstractmethod
    def analysis(self) -> Analysis:
        """Variances and covariances."""

    @property
    @abstractmethod
    def intervals(self) -> Intervals:
        """How long intervals are."""

    @property
    @abstractmethod
    def asked(self) -> tuple[AskedStatistic, ...]:
        """The statistics that the workload asks for."""

    @abstractmethod
    def batches(
        self,
        groups: Sequence[Group],
        columns: AnswerColumns,
        seen: Callable[[Array], None] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the answers to query groups."""
