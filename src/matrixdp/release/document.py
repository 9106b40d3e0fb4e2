"""What ``release.json`` says: what was measured, the promise, and how to check the files."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from matrixdp.answers.columns import AnswerColumns
from matrixdp.release.leftovers import MEASUREMENT, RELEASE_FORMAT
from matrixdp.release.measured import exact_scale, measured
from matrixdp.release.written import Written

__all__ = ["RELEASE_VERSION", "GroupErrors", "as_text", "brief", "document", "promise"]

GroupErrors = Sequence[tuple[float, float]]
"""For each group the sum of its queries' variances and the largest of them."""

_PACKAGES = ("matrixdp", "numpy", "scipy", "pyarrow", "duckdb", "narwhals", "python-flint")
#: Of ``release.json``.
RELEASE_VERSION = 3
_ARRAYS = ("dense", "matrix", "weights")
_WIDTH = 120
_ROUNDING = (
    "every row has exactly the distribution of its true answer plus continuous noise of the stated scale, "
    "rounded to the nearest multiple of a power of two"
)


def document(
    release: Written,
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
    written: dict[str, object] = {"format": RELEASE_FORMAT, "format_version": RELEASE_VERSION}
    if not release.private:
        written["warning"] = (
            "NOT PRIVATE: the noise was seeded, so whoever knows the seed can remove it; no ledger was "
            "debited"
        )
    written |= {
        "private": release.private,
        "privacy": {
            **promise(release),
            "measurement": {"file": MEASUREMENT, "sha256": files[MEASUREMENT]["sha256"]},
            "versions": _versions(),
        },
        "authorization": measurement.authorization.as_dict(),
        "domain": workload.domain.to_spec(),
        "workload": [brief(entry.to_spec()) for entry in workload.entries],
        "queries": workload.queries,
        "rmse": math.sqrt(math.fsum(total for total, _ in errors) / workload.queries),
        "max_stddev": math.sqrt(max(largest for _, largest in errors)),
        "confidence": release.confidence,
        "intervals": release.intervals.description,
        "answers": _answers(release, columns, note),
        "groups": _groups(release, errors),
        "strategy": {**release.origin, **measured(measurement)},
        "size": release.size.as_dict() | {"warnings": list(release.warnings)},
        "files": dict(files),
    }
    if release.asked:
        written["statistics"] = _statistics(release)
    counts = measurement.out_of_domain_counts
    if counts is not None:
        written["out_of_domain_counts"] = {
            "scale": exact_scale(counts.scale.exact),
            "cost": str(counts.cost.value),
            "counts": [
                {"attribute": name, **estimated.as_dict()}
                for name, estimated in release.out_of_domain_counts.items()
            ],
        }
    return written


def promise(release: Written) -> dict[str, object]:
    """Return the privacy statement with the mechanism that it is about: what follows from the measurement."""
    measurement = release.measurement
    return {
        **release.statement.as_dict(),
        "mechanism": {
            "name": "matrix mechanism",
            "sensitivity_norm": measurement.plan.noise.norm,
            "parts": len(measurement.plan.parts),
            "rounding": _ROUNDING,
        },
        "out_of_domain": measurement.out_of_domain.to_spec(release.domain),
        "max_records": measurement.max_records,
        "time": measurement.authorization.time,
    }


def as_text(value: object, indent: str = "") -> str:
    """Return plain values as JSON for people: what fits stands on one line.

    Examples
    --------
    >>> print(as_text({"parts": [{"rows": 1}, {"rows": 2}]}))
    {"parts": [{"rows": 1}, {"rows": 2}]}
    """
    brief = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(brief) + len(indent) <= _WIDTH or not isinstance(value, dict | list | tuple):
        return brief
    inner = f"{indent}  "
    if isinstance(value, dict):
        lines = [
            f"{inner}{json.dumps(key, ensure_ascii=False)}: {as_text(v, inner)}" for key, v in value.items()
        ]
    else:
        lines = [f"{inner}{as_text(v, inner)}" for v in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([opening, ",\n".join(lines), f"{indent}{closing}"])


def _answers(release: Written, columns: AnswerColumns | None, note: str | None) -> dict[str, object]:
    if columns is None:
        return {"rows": 0, "note": note}
    return {
        "rows": release.workload.queries,
        "columns": columns.schema.names,
        "attributes": columns.columns,
        "bounds": {
            name: {"from": low, "to": high, "half_open": _half_open(release, name)}
            for name, (low, high) in columns.bounds.items()
        },
        "totals": "an attribute's column is null where the query counts every value of the attribute",
    }


def _half_open(release: Written, name: str) -> bool:
    """Return whether the upper bounds of an attribute do not belong to its values."""
    ends = release.domain[name].ends
    return ends is not None and ends.half_open


def _groups(release: Written, errors: GroupErrors) -> list[dict[str, object]]:
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


def _statistics(release: Written) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    first = 0
    for asked in release.asked:
        rows.append(asked.as_dict(first))
        first += rows[-1]["rows"]
    return rows


def brief(value: Any) -> Any:
    """Return an entry with arrays replaced by their shapes; the measurement's file holds them whole."""
    if not isinstance(value, Mapping):
        return value
    return {
        key: {"shape": list(np.shape(item))} if key in _ARRAYS and isinstance(item, list) else brief(item)
        for key, item in value.items()
    }


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = _version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "unknown"
    return versions


@cache
def _version(package: str) -> str:
    return metadata.version(package)
