"""Releases for persons with records in several values: what is spent, kept, verified, and what is forged."""

from __future__ import annotations

import io
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import PrivacyError, SpecificationError, StorageError
from matrixdp.measure.calibration import calibrate, plan_cost
from matrixdp.measure.measurement import measure
from matrixdp.sources import open_source
from matrixdp.verification.verify import verify_release
from tests.builders import saved
from tests.forging import forge_measurement, forge_record
from tests.independent import verifier
from tests.storage.archives import npy

DOMAIN = mdp.Domain({"month": 6, "region": 3, "sex": 2})
TABLE = {
    "person": ["a", "a", "b", "c"],
    "month": [0, 1, 0, 3],
    "region": [1, 1, 2, 2],
    "sex": [0, 0, 1, 1],
}
MARGINALS = mdp.Workload(
    DOMAIN, mdp.marginals([["month"], ["month", "region"], ["month", "sex"], ["region"]])
)
PREFIXES = mdp.Workload(DOMAIN, mdp.product(month="prefix", sex="identity"), mdp.marginals([[], ["region"]]))
CHANGES = mdp.Workload(DOMAIN, mdp.product(month={"change": 1}, region={"change": 1}))
UNITS = [
    mdp.Unit(id="person", per="month", max_values=6),
    mdp.Unit(id="person", per="month", max_values=4, max_records_each=2, records=7, constant=["sex"]),
    mdp.Unit(id="person", per=["month", "region"], max_values=3),
    mdp.Unit(id="person", per="month", max_values=40),
]


def per_month(values: int) -> mdp.Unit:
    return mdp.Unit(id="person", per="month", max_values=values)


def budget(unit: mdp.Unit, **given: Any) -> mdp.Budget:
    return mdp.Budget(**({"mu": 1} | given), unit=unit)


@pytest.mark.parametrize(
    ("asked", "values", "rmse"),
    [
        (["identity"], 12, math.sqrt(12)),
        (["identity"], 4, 2.0),
        (["prefix"], 12, 11.53),
        (["prefix"], 4, 5.37),
        (["prefix"], 2, 2.97),
        (["identity", "total"], 12, 6.97),
        (["identity", "total"], 4, 2.90),
    ],
)
def test_errors_are_those_of_persons_with_a_record_in_each_month(
    asked: list[str], values: int, rmse: float
) -> None:
    workload = mdp.Workload(mdp.Domain({"month": 12}), *(mdp.product(month=own) for own in asked))
    own = budget(per_month(values))
    assert mdp.select(workload, budget=own).rmse(own) < rmse + 0.005


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("place", range(len(UNITS)))
def test_the_whole_budget_is_spent_and_verified(place: int, neighbours: Any, tmp_path: Path) -> None:
    own = budget(UNITS[place], neighbours=neighbours)
    workload = (MARGINALS, CHANGES, PREFIXES, CHANGES)[place]
    strategy = mdp.select(workload, budget=own, noise="gaussian", mechanism="residual")
    plan, allowed = strategy.selection.plan, strategy.selection.noise.cost(own)
    _, cost = calibrate(plan, allowed, 2**33, neighbours)
    assert allowed.value * (1 - 1e-9) < cost.value <= allowed.value
    folder = tmp_path / "out"
    release = saved(folder, workload, own, TABLE, noise="gaussian", mechanism="residual")
    assert release.measurement.authorization.cost == cost
    assert not [words for holds, words in verifier.checks(folder) if holds is not True]
    assert verify_release(folder).holds
    assert mdp.load_release(folder).measurement.plan.persons == UNITS[place]


def test_replacing_a_person_costs_twice_the_error() -> None:
    unit = UNITS[0]
    one, two = (budget(unit, neighbours=kind) for kind in ("add_remove", "replace"))
    errors = [mdp.select(MARGINALS, budget=own, mechanism="residual").rmse(own) for own in (one, two)]
    assert errors[1] == pytest.approx(2 * errors[0])


def test_laplace_noise_costs_as_many_times_one_record() -> None:
    many = budget(per_month(6), mu=None, epsilon=1)
    strategy, alone = (
        mdp.select(MARGINALS, budget=own) for own in (many, mdp.Budget(epsilon=1, unit={"records": 6}))
    )
    assert strategy.rmse(many) == pytest.approx(alone.rmse(mdp.Budget(epsilon=1, unit={"records": 6})))


def test_a_strategy_keeps_its_unit(tmp_path: Path) -> None:
    own = budget(UNITS[1])
    strategy = mdp.select(PREFIXES, budget=own)
    strategy.save(tmp_path / "strategy.mdp")
    again = mdp.Strategy.load(tmp_path / "strategy.mdp")
    assert again.selection.plan.persons == UNITS[1]
    assert again.rmse(own) == strategy.rmse(own)
    assert again.certificate == strategy.certificate
    for other in (mdp.Unit(records=7, id="person"), UNITS[0], mdp.Unit()):
        with pytest.raises(PrivacyError) as told:
            again.rmse(budget(other))
        assert told.value.problem is not None
        assert told.value.problem.path == ("budget", "unit")
        with pytest.raises(PrivacyError):
            again.least_budget("mu", targets={"all": 1.0}, unit=other)
        with pytest.raises(PrivacyError):
            measure(strategy.selection.plan, open_source(TABLE), budget(other))
    with pytest.raises(PrivacyError):
        mdp.select(PREFIXES).rmse(own)


def test_the_lower_bound_holds_for_persons() -> None:
    certificate = mdp.select(PREFIXES, budget=budget(UNITS[1])).certificate
    assert certificate.lower_bound is not None
    assert certificate.lower_bound <= certificate.loss
    assert "single records" in certificate.scope


def test_targets_are_met_for_persons() -> None:
    least = mdp.select(PREFIXES, budget=budget(UNITS[0]), targets={"all": 5.0})
    own = least.least_budget("mu")
    assert own.unit == UNITS[0]
    assert least.max_stddev(own) == pytest.approx(5.0, rel=1e-4)


def test_attributes_that_are_constant_let_records_cancel() -> None:
    free, constant = (
        budget(mdp.Unit(id="person", per="month", max_values=4, constant=own)) for own in ((), ["region"])
    )
    errors = [mdp.select(CHANGES, budget=own, mechanism="residual").rmse(own) for own in (free, constant)]
    assert errors[1] < 0.9 * errors[0]


def test_rounds_are_rejected_by_name() -> None:
    with pytest.raises(SpecificationError, match="per"):
        mdp.select(MARGINALS, budget=budget(UNITS[0]), rounds=2)


def test_given_strategies_are_charged() -> None:
    domain, own = mdp.Domain({"month": 12}), budget(per_month(4))
    given = mdp.Strategy.from_parts(domain, [mdp.product(month="identity")], budget=own)
    assert given.rmse(own) == pytest.approx(2.0)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("persons") / "out"
    saved(folder, CHANGES, budget(UNITS[1]), TABLE, noise="gaussian", mechanism="residual")
    return folder


def _everywhere(**changes: Any) -> Callable[[Path], None]:
    """Return what changes the unit in every place that says it."""

    def change(folder: Path) -> None:
        def of_archive(header: dict[str, Any], _: Any) -> None:
            header["authorization"]["budget"]["unit"].update(changes)
            header["plan"]["persons"].update(changes)

        forge_measurement(folder, of_archive)

        def of_record(record: dict[str, Any]) -> None:
            said = record["privacy"]
            for unit in (said["unit"], said["budget"]["unit"], record["authorization"]["budget"]["unit"]):
                unit.update(changes)

        forge_record(folder, of_record)

    return change


def _plan_alone(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: forge_measurement(
        folder, lambda header, _: header["plan"]["persons"].update(changes)
    )


def _no_persons(folder: Path) -> None:
    forge_measurement(folder, lambda header, _: header["plan"].pop("persons"))


@pytest.mark.parametrize(
    "change",
    [
        _everywhere(max_values=3, records=6),
        _everywhere(max_records_each=1, records=4),
        _everywhere(records=6),
        _everywhere(constant=["region", "sex"]),
        _everywhere(per=["region"], max_values=3, records=6),
        _plan_alone(max_values=3, records=6),
        _plan_alone(constant=["region", "sex"]),
        _plan_alone(constant=[]),
        _no_persons,
    ],
)
def test_forged_units_are_found(released: Path, tmp_path: Path, change: Callable[[Path], None]) -> None:
    folder = Path(shutil.copytree(released, tmp_path / "forged"))
    change(folder)
    assert verifier.main([str(folder)]) == 1
    with pytest.raises((StorageError, PrivacyError)):
        mdp.load_release(folder)


def test_a_ledger_adds_up_what_persons_cost(tmp_path: Path) -> None:
    unit = per_month(6)
    ledger = mdp.Ledger.create(tmp_path / "ledger.db", "survey", budget(unit, mu=None, rho=1))
    half = budget(unit, mu=None, rho=0.5)
    strategy = mdp.select(MARGINALS, budget=half, mechanism="residual")
    for _ in range(2):
        strategy.measure(TABLE, half, ledger=ledger)
    with pytest.raises(PrivacyError):
        strategy.measure(TABLE, half, ledger=ledger)


def test_counts_out_of_domain_are_rejected() -> None:
    own = budget(UNITS[0])
    strategy = mdp.select(MARGINALS, budget=own, noise="gaussian", mechanism="residual")
    plan, allowed = strategy.selection.plan, strategy.selection.noise.cost(own)
    scales, cost = calibrate(plan, allowed, 2**33)
    with pytest.raises(PrivacyError):
        plan_cost(plan, scales, "add_remove", cost)


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("proved") / "out"
    weeks = mdp.Workload(mdp.Domain({"week": 26}), mdp.product(week="prefix"))
    unit = mdp.Unit(id="person", per="week", max_values=12)
    saved(folder, weeks, budget(unit), {"person": ["a"], "week": [3]})
    return folder


def test_a_proof_is_kept_and_checked(proved: Path) -> None:
    plan = mdp.load_release(proved).measurement.plan
    assert plan.proof is not None
    with pytest.raises(PrivacyError):  # without it, what the plan measures costs more
        replace(plan, proof=None)
    assert not [words for holds, words in verifier.checks(proved) if holds is not True]
    assert verify_release(proved).holds


@pytest.mark.parametrize("row", [0, 1, 2, 5, 30])
def test_forged_proofs_are_found(proved: Path, row: int, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(proved, tmp_path / "forged"))

    def change(header: dict[str, Any], members: dict[str, bytes]) -> None:
        name = header["plan"]["proof"]
        entries = np.load(io.BytesIO(members[name]))
        entries[row] -= 2**24
        members[name] = npy(entries)

    forge_measurement(folder, change)
    assert verifier.main([str(folder)]) == 1
    with pytest.raises(StorageError):
        mdp.load_release(folder)
