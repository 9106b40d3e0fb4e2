"""Strategies and measurements as files: versioned archives without pickle, checked as a whole when read."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from matrixdp.domain import OutOfDomain
from matrixdp.measure import Measurement, NoiseScale, OutOfDomainCounts, measured_cost
from matrixdp.noise import Noise
from matrixdp.privacy import Clause
from matrixdp.privacy.exact_form import exact_number
from matrixdp.queries import Workload
from matrixdp.selection import Certificate, Selection
from matrixdp.selection.selection import charged
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
    "load_strategy",
    "save_measurement",
    "save_strategy",
]

STRATEGY_FORMAT = "matrixdp strategy"
MEASUREMENT_FORMAT = "matrixdp measurement"
_VERSION = 3
_POWERS = 1000


def save_strategy(path: str | os.PathLike[str], selection: Selection) -> None:
    """Write the file of a strategy: what selection returned, with its workload and certificate.

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
    ...     save_strategy(f"{folder}/strategy.mdp", selection)
    ...     again = load_strategy(f"{folder}/strategy.mdp")
    >>> again.total_squared_error == selection.total_squared_error
    True
    """
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
                "certificate": asdict(selection.certificate),
            }
        )


def load_strategy(path: str | os.PathLike[str]) -> Selection:
    """Return what the file of a strategy holds.

    Its matrices are proved nonsingular anew and its privacy cost is recomputed from them; the certificate is
    what the file says.
    """
    with ArchiveReader(path, STRATEGY_FORMAT, _VERSION) as archive, archive.reading("its header"):
        header = archive.header
        workload = read_workload(header["workload"], archive)
        plan = read_plan(header["plan"], workload.domain, archive)
        written = header["certificate"]
        bound = written["lower_bound"]
        loss = _number(written["loss"], archive)
        if header["neighbours"] not in ("add_remove", "replace") or header["objective"] not in ("sum", "max"):
            raise archive.damaged("its neighbours or its objective are unknown")
        selection = Selection(
            workload=workload,
            plan=plan,
            mechanism=archive.text(header["mechanism"]),
            neighbours=header["neighbours"],
            certificate=Certificate(
                loss, None if bound is None else _number(bound, archive), archive.text(written["scope"])
            ),
            reason=archive.text(header["reason"]),
            objective=header["objective"],
            targets={name: _number(target, archive) for name, target in header["targets"].items()},
        )
        return charged(selection)  # earlier versions did not scale the plan to its neighbours


def save_measurement(path: str | os.PathLike[str], measurement: Measurement, workload: Workload) -> None:
    """Write noisy measurements with the workload that they were made for.

    Nothing else of the table is known, so nothing else can be written.
    """
    pairs = list(zip(measurement.values, measurement.scales, strict=True))
    largest = max(float(np.abs(part).max(initial=0.0)) * 2.0**-scale.power for part, scale in pairs)
    dtype = np.dtype(np.int32 if largest < 2**31 else np.int64)
    rows = sum(part.size for part in measurement.values)
    counts = measurement.out_of_domain_counts
    # in lattice steps, which are integers
    steps = (np.ldexp(part, -scale.power).astype(dtype) for part, scale in pairs)
    with ArchiveWriter(path) as archive:
        archive.close(
            {
                "format": MEASUREMENT_FORMAT,
                "format_version": _VERSION,
                "private": measurement.private,
                "workload": write_workload(workload, archive),
                "plan": write_plan(measurement.plan, archive),
                "authorization": write_authorization(measurement.authorization),
                "values": archive.add_pieces(steps, (rows,), dtype),
                "noise": [[str(scale.steps), scale.power] for scale in measurement.scales],
                "max_records": measurement.max_records,
                "out_of_domain": dict(measurement.out_of_domain.codes),
                **({} if counts is None else {"out_of_domain_counts": _write_counts(counts)}),
                "assumptions": [Clause.of(sentence).as_dict() for sentence in measurement.assumptions],
            }
        )


def load_measurement(path: str | os.PathLike[str]) -> tuple[Measurement, Workload]:
    """Return the measurements that a file holds, with the workload that they were made for.

    Their privacy cost is recomputed from the plan and the exact scales of the noise.
    """
    with ArchiveReader(path, MEASUREMENT_FORMAT, _VERSION) as archive, archive.reading("its header"):
        header = archive.header
        workload = read_workload(header["workload"], archive)
        plan = read_plan(header["plan"], workload.domain, archive)
        authorization = read_authorization(header["authorization"], archive)
        counts = _read_counts(header.get("out_of_domain_counts"), plan.noise, archive)
        out_of_domain = OutOfDomain(header["out_of_domain"], () if counts is None else counts.attributes)
        out_of_domain.check(workload.domain)
        assumptions = tuple(_read_assumption(written, archive) for written in header["assumptions"])
        private, max_records = header["private"], header["max_records"]
        if type(private) is not bool or type(max_records) is not int or max_records < 1:
            raise archive.damaged("it does not say whether it is private, or for how many records")
        scales = tuple(_read_scale(form, plan.noise, archive) for form in header["noise"])
        if len(scales) != len(plan.parts):
            raise archive.damaged("its noise does not fit its strategy")
        # earlier versions charged a replacement what removing two records costs
        either = {authorization.budget.neighbours, "add_remove"}
        if authorization.cost not in [measured_cost(plan, scales, counts, one) for one in either]:
            raise archive.damaged("its strategy costs more or less than it says")
        ends = np.cumsum([part.rows for part in plan.parts])
        steps = archive.array(header["values"], (int(ends[-1]),))
        if steps.dtype.kind != "i":
            raise archive.damaged("its measurements are not whole lattice steps")
        values = tuple(
            np.ldexp(own.astype(np.float64), scale.power)
            for own, scale in zip(np.split(steps, ends[:-1]), scales, strict=True)
        )
        measurement = Measurement(
            plan,
            scales,
            values,
            authorization,
            private,
            max_records,
            out_of_domain,
            assumptions,
            out_of_domain_counts=counts,
        )
        return measurement, workload


def _read_scale(form: Sequence[Any], noise: Noise, archive: ArchiveReader) -> NoiseScale:
    steps, power = form
    scale = exact_number(steps)
    if type(power) is not int or abs(power) > _POWERS or scale.denominator.bit_count() != 1:
        raise archive.damaged("a scale of its noise is no integer over a power of 2 in range")
    return NoiseScale(scale, power, noise)


def _write_counts(counts: OutOfDomainCounts) -> dict[str, object]:
    steps = np.ldexp(counts.values, -counts.scale.power)
    return {
        "attributes": list(counts.attributes),
        "noise": [str(counts.scale.steps), counts.scale.power],
        "values": [int(step) for step in steps],
    }


def _read_counts(
    written: Mapping[str, Any] | None, noise: Noise, archive: ArchiveReader
) -> OutOfDomainCounts | None:
    """Return the counts out of domain, in lattice steps; a measurement that asked for none has none."""
    if written is None:
        return None
    attributes, steps = tuple(written["attributes"]), written["values"]
    whole = all(type(step) is int and abs(step) < 2**62 for step in steps)
    listed = OutOfDomain(counts=attributes).counts == attributes
    if not (whole and listed and len(steps) == len(attributes) > 0):
        raise archive.damaged("its counts of records out of domain are no whole lattice steps, one for each")
    scale = _read_scale(written["noise"], noise, archive)
    return OutOfDomainCounts(attributes, scale, np.ldexp(np.array(steps, dtype=np.float64), scale.power))


def _read_assumption(written: object, archive: ArchiveReader) -> Clause:
    """Return a sentence with its identifier; measurements of earlier versions have the sentence alone."""
    if isinstance(written, str):
        return Clause.of(written)
    if not isinstance(written, dict) or not all(isinstance(value, str) for value in written.values()):
        raise archive.damaged("what it assumes of the table is no text")
    return Clause(**written)


def _number(value: object, archive: ArchiveReader) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise archive.damaged("a figure of its certificate is no number")
    return float(value)
