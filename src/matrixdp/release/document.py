"""What ``release.json`` says: what was measured, the promise, and how to check the files."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from matrixdp.exact import CenteredMatrix, IdentityMatrix, MeasuredMatrix
from matrixdp.measure import Measurement
from matrixdp.release.columns import AnswerColumns
from matrixdp.release.leftovers import RELEASE_FORMAT
from matrixdp.release.release import Release

__all__ = ["GroupErrors", "document"]

GroupErrors = Sequence[tuple[float, float]]
"""For each group the sum of its queries' variances and the largest of them."""

_PACKAGES = ("matrixdp", "numpy", "scipy", "pyarrow", "duckdb", "narwhals", "python-flint")
_VERSION = 1
_ARRAYS = ("dense", "matrix", "weights")


def document(
    release: Release,
    errors: GroupErrors,
    files: Mapping[str, Mapping[str, object]],
    columns: AnswerColumns | None,
    note: str | None,
) -> dict[str, object]:
    """Return the record of a release as plain values for JSON.

    ``files`` says the size and checksum of each; ``columns`` is None where only the measurement is on disk,
    and ``note`` says why.
    """
    measurement, workload = release.measurement, release.workload
    promise = release.statement.as_dict()
    written: dict[str, object] = {"format": RELEASE_FORMAT, "format_version": _VERSION}
    if not release.private:
        written["warning"] = "NOT PRIVATE: the noise was seeded, so whoever knows the seed can remove it"
    written |= {
        "private": release.private,
        "privacy": promise,
        "authorization": measurement.authorization.as_dict(),
        "neighbours": measurement.authorization.budget.neighbours,
        "domain": workload.domain.to_spec(),
        "out_of_domain": measurement.out_of_domain.to_spec(workload.domain),
        "max_records": measurement.max_records,
        "workload": [_brief(entry.to_spec()) for entry in workload.entries],
        "queries": workload.queries,
        "rmse": math.sqrt(math.fsum(total for total, _ in errors) / workload.queries),
        "max_stddev": math.sqrt(max(largest for _, largest in errors)),
        "confidence": release.confidence,
        "intervals": release.intervals.description,
        "answers": _answers(release, columns, note),
        "groups": _groups(release, errors),
        "strategy": {**release.origin, **_measured(measurement)},
        "versions": _versions(),
        "files": dict(files),
    }
    return written


def _answers(release: Release, columns: AnswerColumns | None, note: str | None) -> dict[str, object]:
    if columns is None:
        return {"rows": 0, "note": note}
    return {
        "rows": release.workload.queries,
        "columns": columns.schema.names,
        "attributes": columns.columns,
        "totals": "an attribute's column is null where the query counts every value of the attribute",
    }


def _groups(release: Release, errors: GroupErrors) -> list[dict[str, object]]:
    rows = []
    first = 0
    for group, (total, largest) in zip(release.workload, errors, strict=True):
        rows.append(
            {
                "name": group.name,
                "attributes": list(group.attributes),
                "queries": group.queries,
                "first_row": first,
                "rmse": math.sqrt(total / group.queries),
                "max_stddev": math.sqrt(largest),
            }
        )
        first += group.queries
    return rows


def _measured(measurement: Measurement) -> dict[str, object]:
    """Return the parts that were measured, with the noise of each."""
    parts = [
        {
            "attributes": list(part.attributes),
            "matrices": [
                {
                    "attributes": list(block.attributes),
                    "kind": _kind(block.matrix),
                    "shape": [block.matrix.rows, block.matrix.columns],
                    "squared_sensitivity": block.matrix.squared_sensitivity,
                }
                for block in part.blocks
            ],
            "rows": part.rows,
            "noise_stddev": math.sqrt(scale.variance),
        }
        for part, scale in zip(measurement.plan.parts, measurement.scales, strict=True)
    ]
    return {
        "split": measurement.plan.words,
        "noise": measurement.plan.noise.name,
        "parts": parts,
        "measured_rows": sum(part.rows for part in measurement.plan.parts),
    }


def _kind(matrix: MeasuredMatrix) -> str:
    if isinstance(matrix, IdentityMatrix):
        return "identity"
    return "centered identity" if isinstance(matrix, CenteredMatrix) else "integer"


def _brief(value: Any) -> Any:
    """Return an entry with arrays replaced by their shapes; the measurement's file holds them whole."""
    if not isinstance(value, Mapping):
        return value
    return {
        key: {"shape": list(np.shape(item))} if key in _ARRAYS and isinstance(item, list) else _brief(item)
        for key, item in value.items()
    }


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "unknown"
    return versions
