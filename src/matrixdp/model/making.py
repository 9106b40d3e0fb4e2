"""From a release to a model of it: the method, what is publicly known, and the tests that it must pass."""

from __future__ import annotations

from collections.abc import Callable

from matrixdp.errors import SpecificationError, TooLargeError, UnsupportedQueryError
from matrixdp.forms import describe_value, unknown_name
from matrixdp.measure.measurement import Measurement
from matrixdp.model.archive import Tables
from matrixdp.model.choice import FitTests, choose, judged
from matrixdp.model.constraints import Constraints
from matrixdp.model.local import LocalTables, check_answered, fit_local
from matrixdp.model.model import Model
from matrixdp.model.parts import Parts
from matrixdp.model.records import check_seed
from matrixdp.queries import Workload

__all__ = ["METHODS", "make_model", "tests_of"]

METHODS = ("auto", "mixture", "local")
"""How a model is made."""


def make_model(
    measurement: Measurement,
    workload: Workload,
    confidence: float,
    method: str,
    *,
    seed: int,
    components: int | None,
    steps: int | None,
    invariants: object,
    structural_zeros: object,
    accept_anyway: bool,
    progress: Callable[[int, int], None] | None,
) -> Model:
    """Return a model of a release; see `matrixdp.Release.model`."""
    if method not in METHODS:
        listed = ", ".join(METHODS[:-1]) + f" or {METHODS[-1]}"
        raise SpecificationError(unknown_name(("method",), str(method), listed, METHODS))
    check_seed(seed)
    for name, number in (("components", components), ("steps", steps)):
        if number is not None and (type(number) is not int or not 1 <= number <= _MOST):
            raise SpecificationError.at(
                (name,), describe_value(number), f"an integer from 1 to {_MOST:,}", code="out-of-range"
            )
    known = Constraints.of(measurement.plan.domain, invariants, structural_zeros)
    parts = Parts.of(measurement, constraints=known)
    tables: Tables
    if method == "local":
        tables, tests = _local(measurement, workload, parts, known)
        made, remedy = _made_locally(seed, tests), "Use method='mixture'"
    else:
        chosen = choose(parts, seed, components=components, steps=steps, seen=progress)
        tables, tests, made = chosen.mixture, chosen.tests, chosen.as_dict()
        remedy = f"Ask for more than {chosen.components:,} `components` or {chosen.steps:,} `steps`"
        if method == "auto" and not tests.accepted and not accept_anyway:
            try:
                local, own = _local(measurement, workload, parts, known)
            except (UnsupportedQueryError, TooLargeError):
                tests.check(remedy)
            if own.accepted:
                tables, tests, made = local, own, {**_made_locally(seed, own), "rejected": made}
    if not accept_anyway:
        tests.check(remedy)
    made |= known.written
    return Model(measurement, workload, tables, made, confidence)


def _local(
    measurement: Measurement, workload: Workload, parts: Parts, known: Constraints
) -> tuple[LocalTables, FitTests]:
    """Return tables of pairs and their tests; refuse where they do not serve what is asked."""
    for group in workload:
        check_answered(workload.domain, group)
    tables = fit_local(measurement, known)
    return tables, judged(parts, parts.losses(tables))


def tests_of(model: Model) -> FitTests:
    """Return the tests of a model, computed again from its measurement and its tables."""
    known = Constraints.of(model.domain, model.made.get("totals"), model.made.get("impossible"))
    parts = Parts.of(model.measurement, constraints=known)
    return judged(parts, parts.losses(model.tables))


def _made_locally(seed: int, tests: FitTests) -> dict[str, object]:
    return {"method": "local", "seed": seed, "accepted": tests.accepted, "tests": tests.as_dict()}


_MOST = 1_000_000
