"""Strategies and measurements as files: versioned archives without pickle, checked as a whole when read."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import OutOfDomain
from matrixdp.errors import MatrixDPError, StorageError
from matrixdp.measure import Measurement, NoiseScale, plan_cost
from matrixdp.noise import Noise
from matrixdp.queries import Workload
from matrixdp.selection import Certificate, Selection
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter
from matrixdp.storage.plan_format import read_plan, write_plan
from matrixdp.storage.workload_format import (
    read_authorization,
    read_workload,
    write_authorization,
    write_workload,
)

__all__ = [
    "MEASUREMENT_FORMAT",
    "STRATEGY_FORMAT",
    "load_measurement",
    "load_selection",
    "save_measurement",
    "save_selection",
]

Array = NDArray[np.float64]

STRATEGY_FORMAT = "matrixdp strategy"
MEASUREMENT_FORMAT = "matrixdp measurement"
_VERSION = 3
_POWERS = 1000


def save_selection(path: str | os.PathLike[str], selection: Selection) -> None:
    """Write a strategy with its workload and certificate to a file.

    Parameters
    ----------
    path : str or path
        The file; an existing one is replaced.
    selection : Selection
        What selection returned.

    Raises
    ------
    StorageError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from matrixdp.domain import Domain
    >>> from matrixdp.noise import GAUSSIAN
    >>> from matrixdp.selection import select
    >>> from matrixdp.language import marginals
    >>> workload = Workload(Domain({"sex": ["female", "male"], "code": 3}), marginals([1, 2]))
    >>> selection = select(workload, noise=GAUSSIAN)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_selection(f"{folder}/strategy.mdp", selection)
    ...     again = load_selection(f"{folder}/strategy.mdp")
    >>> again.total_squared_error == selection.total_squared_error
    True
    """
    certificate = selection.certificate
    with ArchiveWriter(path) as archive:
        archive.close(
            {
                "format": STRATEGY_FORMAT,
                "format_version": _VERSION,
                "workload": write_workload(selection.workload, archive),
                "plan": write_plan(selection.plan, archive),
                "mechanism": selection.mechanism,
                "objective": selection.objective,
                "targets": dict(selection.targets),
                "neighbours": selection.neighbours,
                "reason": selection.reason,
                "certificate": {
                    "loss": certificate.loss,
                    "lower_bound": certificate.lower_bound,
                    "scope": certificate.scope,
                },
            }
        )


def load_selection(path: str | os.PathLike[str]) -> Selection:
    """Return the strategy that a file holds.

    Its matrices are proved nonsingular anew and its privacy cost is recomputed from them; the certificate is
    what the file says.

    Parameters
    ----------
    path : str or path
        The file.

    Raises
    ------
    StorageError
        If there is no such file, or it is not a strategy, newer than this program or damaged.
    """
    with ArchiveReader(path, STRATEGY_FORMAT, _VERSION) as archive:
        header = archive.header
        try:
            workload = read_workload(header["workload"], archive)
            plan = read_plan(header["plan"], workload.domain, archive)
            certificate = Certificate(
                _number(header["certificate"]["loss"], archive),
                _optional(header["certificate"]["lower_bound"], archive),
                str(header["certificate"]["scope"]),
            )
            selection = Selection(
                workload=workload,
                plan=plan,
                mechanism=str(header["mechanism"]),
                neighbours=str(header["neighbours"]),
                certificate=certificate,
                reason=str(header["reason"]),
                objective=str(header.get("objective", "sum")),
                targets={
                    str(name): _number(target, archive)
                    for name, target in dict(header.get("targets", {})).items()
                },
            )
        except (KeyError, TypeError, ValueError):
            raise archive.damaged("a part of its header is missing") from None
        if selection.neighbours not in ("add_remove", "replace"):
            raise archive.damaged("its neighbours are unknown")
        return selection


def save_measurement(path: str | os.PathLike[str], measurement: Measurement, workload: Workload) -> None:
    """Write noisy measurements with the workload that they were made for.

    Parameters
    ----------
    path : str or path
        The file; an existing one is replaced.
    measurement : Measurement
        What was measured. Nothing else of the table is known, so nothing else can be written.
    workload : Workload
        What was asked.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    values, powers = measurement.values, [scale.power for scale in measurement.scales]
    rows = sum(part.size for part in values)
    largest = max(
        float(np.abs(part).max(initial=0.0)) * 2.0**-power for part, power in zip(values, powers, strict=True)
    )
    dtype = np.dtype(np.int32 if largest < 2**31 else np.int64)
    with ArchiveWriter(path) as archive:
        archive.close(
            {
                "format": MEASUREMENT_FORMAT,
                "format_version": _VERSION,
                "private": measurement.private,
                "workload": write_workload(workload, archive),
                "plan": write_plan(measurement.plan, archive),
                "authorization": write_authorization(measurement.authorization),
                "values": archive.add_pieces(_steps(values, powers, dtype), (rows,), dtype),
                "noise": [[str(scale.steps), scale.power] for scale in measurement.scales],
                "max_records": measurement.max_records,
                "out_of_domain": dict(measurement.out_of_domain.codes),
            }
        )


def _steps(values: Sequence[Array], powers: Sequence[int], dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    """Yield the measurements in lattice steps, which are integers."""
    for part, power in zip(values, powers, strict=True):
        yield np.ldexp(part, -power).astype(dtype)


def load_measurement(path: str | os.PathLike[str]) -> tuple[Measurement, Workload]:
    """Return the measurements that a file holds, with the workload that they were made for.

    Parameters
    ----------
    path : str or path
        The file.

    Raises
    ------
    StorageError
        If there is no such file, or it does not hold measurements, is newer than this program or damaged.
    """
    with ArchiveReader(path, MEASUREMENT_FORMAT, _VERSION) as archive:
        header = archive.header
        try:
            workload = read_workload(header["workload"], archive)
            plan = read_plan(header["plan"], workload.domain, archive)
            authorization = read_authorization(header["authorization"], archive)
            scales = tuple(_read_scale(form, plan.noise, archive) for form in header["noise"])
            rows = [part.rows for part in plan.parts]
            steps = archive.array(header["values"], (sum(rows),))
            private, max_records = header["private"], header["max_records"]
            out_of_domain = OutOfDomain(header["out_of_domain"])
            out_of_domain.check(workload.domain)
            if len(scales) != len(rows):
                raise archive.damaged("its noise does not fit its strategy")
            if plan_cost(plan, scales) != authorization.cost:
                raise archive.damaged("its strategy costs more or less than it says")
        except (KeyError, TypeError, AttributeError):
            raise archive.damaged("a part of its header is missing") from None
        except StorageError:
            raise
        except MatrixDPError as error:
            raise archive.damaged(str(error)) from None
        if type(private) is not bool or type(max_records) is not int or max_records < 1:
            raise archive.damaged("it does not say whether it is private, or for how many records")
        values = tuple(
            np.ldexp(own.astype(np.float64), scale.power)
            for own, scale in zip(np.split(steps, np.cumsum(rows)[:-1]), scales, strict=True)
        )
        measurement = Measurement(plan, scales, values, authorization, private, max_records, out_of_domain)
        return measurement, workload


def _read_scale(form: Sequence[Any], noise: Noise, archive: ArchiveReader) -> NoiseScale:
    try:
        steps, power = form
        if type(power) is not int or abs(power) > _POWERS:
            raise archive.damaged("a lattice step of its noise is no power of 2 in range")
        return NoiseScale(Fraction(steps), power, noise)
    except (ValueError, ZeroDivisionError):
        raise archive.damaged("a scale of its noise is no number") from None


def _number(value: object, archive: ArchiveReader) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise archive.damaged("a figure of its certificate is no number")
    return float(value)


def _optional(value: object, archive: ArchiveReader) -> float | None:
    return None if value is None else _number(value, archive)
