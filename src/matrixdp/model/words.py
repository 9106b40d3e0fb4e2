"""What is said of models and their records, and what those who write them need to know of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from matrixdp.measure.measurement import Measurement
from matrixdp.measure.statement import PrivacyStatement
from matrixdp.model.archive import Tables
from matrixdp.queries import Group, Workload

__all__ = ["BIASED", "NOT_PRIVATE", "SYNTHETIC", "Progress", "Written", "promise"]

Progress = Callable[[int, int], None]
"""Is called with how many are done and of how many."""

BIASED = (
    "BIASED: the column modelled is never negative and agrees with itself everywhere, and for that it is "
    "biased, above all where counts are small; it has no standard deviation and no interval. The unbiased "
    "estimate beside it, with its standard deviation and interval, is the only promise. What is extrapolated "
    "was not measured: it is the model's guess, and no figure of the data."
)
"""What is said of the answers of every model."""
SYNTHETIC = (
    "SYNTHETIC: no record is that of a person. The records are made from a model of noisy tables, so tables "
    "that are counted on them are biased, and how attributes go together that were not measured together is "
    "the model's guess."
)
"""What is said of the records of every model."""
NOT_PRIVATE = "NOT PRIVATE: the noise of the measurement was seeded, so whoever knows the seed can remove it"
"""What is said besides where the noise was seeded."""


class Written(Protocol):
    """What of a model is written down."""

    @property
    def measurement(self) -> Measurement:
        """What was measured."""

    @property
    def measurement_digest(self) -> str:
        """The SHA-256 of its file."""

    @property
    def statement(self) -> PrivacyStatement:
        """What is promised."""

    @property
    def workload(self) -> Workload:
        """What is answered."""

    @property
    def tables(self) -> Tables:
        """What is answered from."""

    @property
    def made(self) -> Mapping[str, Any]:
        """How it was made."""

    @property
    def method(self) -> str:
        """By which method."""

    @property
    def accepted(self) -> bool:
        """Whether it passed the tests of its fit."""

    @property
    def private(self) -> bool:
        """Whether the noise protects anybody."""

    @property
    def confidence(self) -> float:
        """Of the unbiased answers' intervals."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the workload's answers."""

    def batches(self, groups: Sequence[Group]) -> Iterator[pa.RecordBatch]:
        """Yield the answers to query groups."""


def promise(model: Written) -> dict[str, Any]:
    """Return what a record says of privacy: the promise of the release, which covers what follows from it."""
    return {
        **({} if model.private else {"warning": NOT_PRIVATE}),
        "private": model.private,
        "privacy": {
            "text": model.statement.text,
            "guarantees": model.statement.guarantees,
            "measurement": {"sha256": model.measurement_digest},
        },
    }
