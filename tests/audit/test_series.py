"""What any record costs over a whole series, from the rows that each saved file says were measured.

What is read is measurement.mdp after each publication, by the reader beside this file. Every stream is tried:
a record of each period that is absent or has any other values whenever something is measured.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from tests.audit.reading import ReadFile, read, spread

SHAPE = (3, 2, 2)
MONTHS = ["2025-01", "2025-02", "2025-03"]
BOTH = ["identity", "prefix"]
WORKLOADS: dict[str, list[dict[str, Any]]] = {
    "pairs": [{"product": {"month": BOTH, own: "identity"}} for own in "ab"],
    "cells": [{"product": {"month": BOTH, "a": "identity", "b": "prefix"}}],
    "years": [{"product": {"month": BOTH, "a": "prefix"}}, {"marginals": [["b"]]}],
}
TABLE = {
    "month": [f"{month}-05" for month in MONTHS for _ in range(4)],
    "a": [0, 0, 1, 1] * 3,
    "b": [0, 1] * 6,
}
#: Every choice of publications that ends with the last month.
PUBLISHED = [(*early, 2) for count in range(3) for early in combinations(range(2), count)]


def moves(found: ReadFile) -> tuple[Any, Any]:
    """Return what a record of each cell adds to the cost by each row, exactly, and each row's last period."""
    costs, ends = [], []
    for part, scale in zip(found.parts, found.scales, strict=True):
        rows = spread(part.dense(), part.order, SHAPE)
        costs.append(np.abs(rows) ** found.norm * (1 / scale**found.norm))
        over = (rows != 0).any(axis=(2, 3))
        ends.append(SHAPE[0] - 1 - np.argmax(over[:, ::-1], axis=1))
    return np.concatenate(costs), np.concatenate(ends)


@pytest.mark.parametrize("published", PUBLISHED, ids=str)
@pytest.mark.parametrize("privacy", [{"rho": 0.5}, {"epsilon": 1}], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_stream_costs_more_than_was_authorized(
    tmp_path: Path, workload: str, privacy: dict[str, float], published: tuple[int, ...]
):
    specification = {
        "domain": {
            "month": {"from": "2025-01-01", "to": "2025-03-31", "by": "month"},
            **{name: {"min": 0, "max": 1} for name in "ab"},
        },
        "workload": WORKLOADS[workload],
        "series": {"attribute": "month"},
        "privacy": privacy,
    }
    series = mdp.Series.start(specification, tmp_path / "series")
    #: by period, publication and values: what a record costs by the rows that this publication measured
    spent = np.zeros((SHAPE[0], len(published), 4), dtype=object)
    before: list[np.ndarray] = []
    whole = np.zeros(SHAPE, dtype=object)
    for place, last in enumerate(published):
        series.publish(TABLE, MONTHS[last])
        found = read(series.folder / "measurement.mdp")
        costs, ends = moves(found)
        values = np.concatenate(found.values)
        # rows of later periods are not measured, and rows of earlier publications not again
        assert not values[ends > last].any()
        first = -1 if place == 0 else published[place - 1]
        if before:
            assert np.array_equal(values[ends <= first], before[-1][ends <= first])
        before.append(values)
        fresh = costs[(first < ends) & (ends <= last)].sum(axis=0)
        spent[:, place] = fresh.reshape(SHAPE[0], 4)
        whole = whole + fresh
        assert found.stated == found.cost()
        for period in range(SHAPE[0]):
            for stream in product([None, *range(4)], repeat=place + 1):
                total = sum(spent[period, k, own] for k, own in enumerate(stream) if own is not None)
                assert total <= found.stated
    # a record that stays costs all that was authorized, but for the rounding of matrices
    assert whole.max() == found.largest_move(SHAPE)
    assert whole.max() >= Fraction(99, 100) * found.stated
