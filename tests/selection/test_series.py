"""Strategies of series: figures, answers from rows in time, and what a record can cost over a stream."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import matrixdp as mdp
from matrixdp.errors import PrivacyError
from matrixdp.measure.measurement import begin
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.plans import Plan
from matrixdp.selection.series import select_series
from tests.plans.test_persons import histories

FIGURES = [
    (12, 0, True, 1.434),
    (24, 0, False, 1.807),
    (24, 12, True, 1.707),
    (52, 0, False, 2.037),
    pytest.param(365, 0, True, 2.174, marks=pytest.mark.slow),
    pytest.param(365, 0, False, 2.634, marks=pytest.mark.slow),
    pytest.param(365, 30, True, 2.366, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("periods", "window", "single", "rmse"), FIGURES)
def test_figures_are_those_of_the_optimum_over_the_whole_series(periods, window, single, rmse):
    rows = [np.tril(np.ones((periods, periods)))]
    if single:
        rows.append(np.eye(periods))
    if window:
        starts = range(periods - window + 1)
        rows.append(
            np.array([(np.arange(periods) // 1 >= a) & (np.arange(periods) < a + window) for a in starts])
        )
    asked = np.vstack(rows).astype(float)
    domain = mdp.Domain({"time": periods})
    workload = mdp.Workload(domain, mdp.dense(asked, attributes=["time"]))
    found = select_series(workload, "time", GAUSSIAN)
    assert (found.total_squared_error / len(asked)) ** 0.5 == pytest.approx(rmse, abs=6e-4)


def over_cells(plan: Plan, deviations: list[float]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Write all rows out over the cells of the table, by their scales, with the period at which each ends."""
    rows, ends = [], []
    names, periods = plan.domain.names, plan.domain["time"].size
    for part, deviation in zip(plan.parts, deviations, strict=True):
        own: NDArray[np.float64] = np.ones((1, 1))
        axes: list[str] = []
        for block in part.blocks:
            own = np.asarray(np.kron(own, block.matrix.written()), dtype=np.float64)
            axes += block.attributes
        cells = own.reshape(-1, *(plan.domain[name].size for name in axes))
        missing = [name for name in names if name not in axes]
        cells = cells.reshape(*cells.shape, *[1] * len(missing))
        order = [0, *(1 + [*axes, *missing].index(name) for name in names)]
        whole = np.broadcast_to(np.transpose(cells, order), (len(cells), *plan.domain.shape))
        rows.append(whole.reshape(len(cells), periods, -1) / deviation)
    written = np.concatenate(rows)
    nonzero = np.abs(written).max(axis=2) > 0
    ends = periods - 1 - np.argmax(nonzero[:, ::-1], axis=1)
    return written, ends


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["dense", "quarters", "differences", "products"])
def test_answers_need_rows_that_end_in_time_alone(seed: int, kind: str):
    rng, periods = np.random.default_rng(seed), 6
    domain = mdp.Domain({"time": periods, "a": 2})
    entries = {
        "dense": mdp.dense(rng.integers(-1, 3, (5, 12)), attributes=["time", "a"]),
        "quarters": mdp.dense(np.repeat(np.eye(2), 3, axis=1), attributes=["time"]),
        "differences": mdp.dense(np.eye(6)[1:] - np.eye(6)[:-1], attributes=["time"]),
        "products": mdp.product(time=["identity", "prefix"], a=["total", "identity"]),
    }
    workload = mdp.Workload(domain, entries[kind], mdp.product(time="identity"))
    found = select_series(workload, "time", GAUSSIAN)
    best = mdp.select(workload, noise="gaussian", mechanism="dense").selection
    plan = found.plan
    rows, ends = over_cells(plan, [part.variance**0.5 for part in plan.parts])
    flat = rows.reshape(len(rows), -1)
    assert (flat**2).sum(axis=0).max() <= 1 + 1e-9
    assert kind == "dense" or found.total_squared_error <= 1.01 * best.total_squared_error
    for group in workload:
        axes = [domain.names.index(name) for name in group.attributes]
        for row in group.rows():
            cells = np.zeros(domain.shape) + row.reshape(
                [n if i in axes else 1 for i, n in enumerate(domain.shape)]
            )
            last = int(np.flatnonzero(np.abs(cells).max(axis=1) > 0).max(initial=-1))
            early = flat[ends <= last]
            solved = np.linalg.lstsq(early.T, cells.ravel(), rcond=None)[0] if len(early) else np.zeros(0)
            assert np.allclose(early.T @ solved, cells.ravel(), atol=1e-7)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_a_record_whose_values_change_costs_no_more(noise: Noise):
    domain = mdp.Domain({"time": 6, "a": 3, "b": 2})
    entries: list[Any] = [
        mdp.product(time="prefix", a="identity"),
        mdp.product(time="identity", a="prefix", b="identity"),
    ]
    if noise is GAUSSIAN:
        tied = np.random.default_rng(0).integers(-1, 3, (7, 18))
        entries.append(mdp.dense(tied, attributes=["time", "a"]))
    begun = begin(
        select_series(mdp.Workload(domain, *entries), "time", noise).plan,
        "time",
        mdp.Budget(epsilon=1, delta=1e-6 if noise is GAUSSIAN else None),
    )
    deviations = [float(scale.exact) for scale in begun.scales]
    rows, ends = over_cells(begun.plan, deviations)
    moved = np.abs(rows) ** noise.norm
    # of each period of a record, row by row, the value that moves it most among those of one end
    added = np.array([moved[ends == period].sum(axis=0) for period in range(6)])
    assert added.max(axis=2).sum(axis=0).max() <= float(begun.authorization.cost.value) * (1 + 1e-9)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_replacements_are_rejected(noise: Noise):
    workload = mdp.Workload(mdp.Domain({"time": 4}), mdp.product(time="prefix"))
    delta = 1e-6 if noise is GAUSSIAN else None
    budget = mdp.Budget(epsilon=1, delta=delta, neighbours="replace")
    with pytest.raises(PrivacyError) as refused:
        begin(select_series(workload, "time", noise).plan, "time", budget)
    assert refused.value.code == "not-supported"


@pytest.mark.parametrize(
    ("values", "asked", "rmse"),
    [
        (12, "identity", 12**0.5),
        (12, "prefix", 8.443),
        (12, ["identity", "prefix"], 6.502),
        (4, "identity", 12**0.5),
        (4, "prefix", 7.706),
        (4, ["identity", "prefix"], 6.300),
    ],
)
def test_figures_of_persons_whose_records_may_come_late(values: int, asked: Any, rmse: float):
    workload = mdp.Workload(mdp.Domain({"time": 12}), mdp.product(time=asked))
    unit = mdp.Unit(id="person", per="time", max_values=values)
    found = select_series(workload, "time", GAUSSIAN, unit=unit)
    queries = sum(group.queries for group in workload)
    assert (found.total_squared_error / queries) ** 0.5 * values == pytest.approx(rmse, rel=1e-3)
    assert found.plan.cost == pytest.approx(1.0)
    assert found.certificate.lower_bound is not None
    begun = begin(found.plan, "time", mdp.Budget(mu=1, unit=unit))
    assert float(begun.authorization.cost.value) * values**2 == pytest.approx(1, rel=1e-9)


def test_what_takes_joint_matrices_is_charged_by_period_as_well():
    domain = mdp.Domain({"time": 4, "a": 2})
    tied = mdp.dense(np.random.default_rng(1).integers(-1, 3, (5, 8)), attributes=["time", "a"])
    unit = mdp.Unit(id="person", per="time", max_values=2, constant="a")
    found = select_series(mdp.Workload(domain, tied), "time", GAUSSIAN, unit=unit)
    begun = begin(found.plan, "time", mdp.Budget(mu=1, unit=unit))
    rows, ends = over_cells(begun.plan, [float(scale.exact) for scale in begun.scales])
    flat, worst = rows.reshape(len(rows), -1), np.zeros(4)
    for person in histories(domain, unit):
        worst = np.maximum(worst, [float(((flat[ends == t] @ person) ** 2).sum()) for t in range(4)])
    assert worst.sum() <= float(begun.authorization.cost.value) * 4 * (1 + 1e-9)


def test_a_strategy_is_begun_for_its_own_unit_alone():
    workload = mdp.Workload(
        mdp.Domain({"time": 4, "a": 2}), mdp.product(time="prefix"), mdp.product(a="identity")
    )
    unit = mdp.Unit(id="person", per="time", max_values=4)
    budget = mdp.Budget(mu=1, unit=unit)
    of_persons = select_series(workload, "time", GAUSSIAN, unit=unit).plan
    of_records = select_series(workload, "time", GAUSSIAN).plan
    at_once = replace(of_persons, by_period=False, persons=unit)
    for plan, spent in ((of_records, budget), (of_persons, mdp.Budget(mu=1)), (at_once, budget)):
        with pytest.raises(PrivacyError) as refused:
            begin(plan, "time", spent)
        assert refused.value.code in ("conflict", "not-supported")
    for wrong in ({"noise": LAPLACE}, {"by_period": True, "persons": None}):
        with pytest.raises(mdp.MatrixDPError):
            replace(of_persons, **wrong)
