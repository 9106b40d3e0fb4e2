"""Shares of the budget: what each entry of a workload takes of the privacy cost, and strategies by them."""

import json
import math
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import WorkloadError
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.queries.workload import budget_shares
from matrixdp.selection.auto import select
from matrixdp.selection.selection import Selection
from matrixdp.selection.shares import reach, shares
from matrixdp.specification import load_specification
from matrixdp.testing import dense_measurement, dense_queries
from tests.cli.commands import run

DOMAIN = mdp.Domain({"sex": ["f", "m"], "age": range(6), "code": 3})
#: Entries without shares, and the shares that they ask for.
ENTRIES: dict[str, tuple[list[dict[str, Any]], list[float | None]]] = {
    "a total beside cells": ([{"marginals": 3}, {"marginals": 0}], [None, 0.3]),
    "the same twice": ([{"marginals": 1}, {"marginals": 1}], [0.8, 0.2]),
    "a part of another": ([{"marginals": [0, 1]}, {"marginals": [2]}], [0.9, None]),
    "hardly anything": ([{"marginals": [0, 1]}, {"marginals": [3]}], [0.01, None]),
    "three, two with weights": (
        [
            {"product": {"age": "range"}},
            {"product": {"code": "prefix"}, "weight": 3},
            {"marginals": [["sex"]], "weight": 2},
        ],
        [0.5, None, None],
    ),
    "every entry": (
        [{"product": {"age": "prefix"}}, {"marginals": [["code"]]}, {"marginals": [["sex", "code"]]}],
        [0.2, 0.5, 0.3],
    ),
    "a mean": ([{"mean": "age", "by": ["sex"]}, {"marginals": 2}], [0.6, None]),
    "SQL of two statistics": (
        [{"sql": "SELECT AVG(age), SUM(age) FROM t GROUP BY sex"}, {"marginals": [["code"]]}],
        [0.5, None],
    ),
}


def workload_of(name: str) -> mdp.Workload:
    entries, asked = ENTRIES[name]
    pairs = zip(entries, asked, strict=True)
    spec = [own if share is None else {**own, "budget_share": share} for own, share in pairs]
    return load_specification({"domain": DOMAIN.to_spec(), "workload": spec}).workload


def divided(selection: Selection) -> tuple[list[float], list[float]]:
    """Divide the cost of each part among the entries by what they gain from it, all over the cells.

    Returned are each part's share of all that is gained less its cost, and what the entries have.
    """
    plan, domain = selection.plan, selection.workload.domain
    rows = [dense_measurement(part, domain) / math.sqrt(part.variance) for part in plan.parts]
    inverse = np.linalg.pinv(np.vstack(rows).T @ np.vstack(rows))
    gains = np.zeros((len(rows), len(selection.workload.entries)))
    for entry, places in enumerate(selection.workload.places):
        for place in places:
            group = selection.workload.groups[place]
            weights = group.weight * (1.0 if group.query_weights is None else group.query_weights)
            queries = (dense_queries(group, domain).T * np.sqrt(weights)).T
            # by the logarithm of the part's precision
            gains[:, entry] += [float(np.square(own @ inverse @ queries.T).sum()) for own in rows]
    costs = np.array([plan.noise.share(part, part.variance) for part in plan.parts])
    served = (gains / gains.sum(axis=1, keepdims=True) * costs[:, None]).sum(axis=0)
    return list(gains.sum(axis=1) / gains.sum() - costs), list(served)


@pytest.mark.parametrize("name", ["a part of another", "three, two with weights", "a mean"])
def test_shares_divide_the_cost_of_every_part_by_what_entries_gain_from_it(name: str):
    selection = select(workload_of(name), noise=GAUSSIAN, mechanism="residual")
    off, served = divided(selection)
    assert len(off) > 3
    np.testing.assert_allclose(off, 0.0, atol=2e-3)
    np.testing.assert_allclose(shares(selection), served, atol=2e-3)
    assert math.fsum(shares(selection)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "noise"),
    [
        *((name, GAUSSIAN) for name in ENTRIES),
        *((name, LAPLACE) for name in ("the same twice", "every entry")),
    ],
)
def test_shares_are_reached_and_the_rest_keeps_its_weights(name: str, noise: Noise):
    workload = workload_of(name)
    strategy = mdp.select(workload, noise=noise.name)
    asked = budget_shares(workload)
    for wanted, found in zip(asked, strategy.budget_shares, strict=True):
        assert wanted is None or found == pytest.approx(wanted, rel=0.0101)
    free = {own for own, share in zip(strategy.workload.factors, asked, strict=True) if share is None}
    assert len(free) <= 1
    assert "shares of the budget are reached" in strategy.origin["reason"]
    assert strategy.answers_alike(workload)
    # the errors are those of the ordinary selection at these weights
    factors = strategy.workload.factors
    again = select(workload.reweighted(factors), noise=noise)
    assert again.total_squared_error == pytest.approx(strategy.selection.total_squared_error, rel=1e-9)


def test_half_of_the_cost_is_that_of_a_release_of_the_half():
    """Differences of two values have nothing in common: each errs as it does at its share of the cost."""
    entries = [{"product": {name: {"matrix": [[1, -1]]}}} for name in ("a", "b")]
    domain = mdp.Domain({"a": 2, "b": 2})
    alone = mdp.select(mdp.Workload(domain, mdp.product(entries[0]["product"])), noise="gaussian")
    for share in (0.5, 0.2):
        both = mdp.Workload(
            domain,
            mdp.product(entries[0]["product"], budget_share=share),
            mdp.product(entries[1]["product"]),
        )
        found = mdp.select(both, noise="gaussian").selection.errors[0].total
        assert found == pytest.approx(alone.selection.total_squared_error / share, rel=0.011)


def test_of_two_noises_the_better_one_has_the_shares():
    budget = mdp.Budget(epsilon=1, delta=1e-6)
    workload = mdp.Workload(
        mdp.Domain({"a": range(6)}),
        mdp.product(a="prefix", budget_share=0.7),
        mdp.marginals(0),
    )
    strategy = mdp.select(workload, budget=budget)
    assert (strategy.noise, strategy.noise_reason[-25:]) == ("laplace", "rvals than gaussian noise")
    assert strategy.budget_shares[0] == pytest.approx(0.7, rel=0.0101)


def test_what_is_not_reached_is_said(caplog):
    workload = workload_of("a total beside cells")
    [fixed] = [select(workload, noise=GAUSSIAN)]
    found = reach(workload, lambda _: fixed)
    assert found.total_squared_error == fixed.total_squared_error
    told = f"{shares(fixed)[1]:.3g} for workload[1] (0.3 asked)"
    assert told in found.reason
    [record] = caplog.records
    assert told in record.getMessage()


def test_the_nearest_is_taken_not_the_last():
    workload = workload_of("a total beside cells")
    near, far = (select(own, noise=GAUSSIAN) for own in (workload.reweighted([1, 20]), workload))
    found = iter([near])
    assert shares(far)[1] < 0.2 < shares(near)[1] != pytest.approx(0.3, rel=0.0101)
    assert reach(workload, lambda _: next(found, far)).workload is near.workload


def test_weights_at_which_queries_are_lost_are_not_taken():
    workload, tried = workload_of("hardly anything"), []

    def choose(asked: mdp.Workload) -> Selection:
        tried.append(asked.factors[0])
        if asked.factors[0] < 1e-3:
            raise WorkloadError.at(("workload",), "weights far apart", "others", code="out-of-range")
        return select(asked, noise=GAUSSIAN)

    found = reach(workload, choose)
    assert min(tried) < 1e-3 <= found.workload.factors[0]


def test_a_unit_with_per_and_replacements():
    domain = mdp.Domain({"month": range(4), "sex": 2})
    workload = mdp.Workload(domain, mdp.marginals([["month"]], budget_share=0.6), mdp.marginals([["sex"]]))
    for budget in (
        mdp.Budget(rho=1, unit=mdp.Unit(id="p", per="month", max_values=3, constant="sex")),
        mdp.Budget(rho=1, neighbours="replace"),
    ):
        assert mdp.select(workload, budget=budget).budget_shares[0] == pytest.approx(0.6, rel=0.0101)


SPEC: dict[str, Any] = {
    "domain": {"month": {"from": "2025-01-01", "to": "2025-04-30", "by": "month"}, "sex": ["f", "m"]},
    "workload": [{"product": {"month": "prefix"}, "budget_share": 0.25}, {"marginals": [["month", "sex"]]}],
    "privacy": {"rho": 0.5},
}


def test_series_and_releases_give_shares_and_files_keep_them(tmp_path):
    table = {"month": ["2025-01-02", "2025-03-01"], "sex": ["f", "m"]}
    written = load_specification(SPEC)
    assert written.document["workload"] == SPEC["workload"]
    assert load_specification(written.document).document == written.document
    release = mdp.release(written, tmp_path / "out", table=table)
    assert (
        "shares of the budget are reached"
        in json.loads((tmp_path / "out/release.json").read_text())["strategy"]["reason"]
    )
    assert release.answers.num_rows == 12
    series = mdp.Series.start({**SPEC, "series": "month"}, tmp_path / "series")
    assert "shares of the budget are reached" in (tmp_path / "series/series.json").read_text()
    series.publish(table, "2025-01")
    assert mdp.verify_release(series.folder).holds


def test_a_saved_strategy_keeps_its_weights(tmp_path):
    strategy = mdp.select(workload_of("every entry"), noise="gaussian")
    strategy.save(tmp_path / "strategy.mdp")
    again = mdp.Strategy.load(tmp_path / "strategy.mdp")
    assert again.budget_shares == strategy.budget_shares
    assert again.workload.factors == strategy.workload.factors
    plain = mdp.select(mdp.Workload(DOMAIN, mdp.marginals(1)))
    plain.save(tmp_path / "plain.mdp")
    assert b"factors" not in (tmp_path / "plain.mdp").read_bytes()


def test_mechanisms_are_compared_at_the_weights_of_the_shares():
    workload = mdp.Workload(DOMAIN, mdp.marginals(2), mdp.marginals(0, budget_share=0.3))
    budget = mdp.Budget(rho=0.5)
    found = mdp.compare(workload, budget, mechanisms=["auto", "identity"])
    strategy = mdp.select(workload, budget=budget)
    own = strategy.selection.weighted_squared_error / workload.queries
    assert found.outcomes[0].weighted_rmse == pytest.approx(math.sqrt(own), rel=1e-9)


def test_the_largest_variance_has_no_shares():
    strategy = mdp.select(mdp.Workload(DOMAIN, mdp.marginals(1)), objective="max")
    with pytest.raises(WorkloadError) as caught:
        _ = strategy.budget_shares
    assert (caught.value.code, caught.value.path) == ("not-supported", ("objective",))


@pytest.mark.parametrize("more", [{}, {"series": "month"}], ids=["a release", "a series"])
def test_select_shows_the_shares(tmp_path, more):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(SPEC | more))
    figures = json.loads(run("select", path, "--json").stdout)
    assert [(one["entry"], one["asked"]) for one in figures["shares"]] == [(0, 0.25), (1, None)]
    assert figures["shares"][0]["share"] == pytest.approx(0.25, rel=0.0101)
    assert math.fsum(one["share"] for one in figures["groups"]) == pytest.approx(1.0)
    shown = run("select", path).stdout
    assert "share of cost" in shown
    assert "(0.25 asked)" in shown


def test_a_forecast_counts_the_selections():
    plain, shared = (
        mdp.forecast(
            mdp.Workload(DOMAIN, mdp.marginals(2), mdp.marginals(0, budget_share=own))
        ).select_seconds
        for own in (None, 0.3)
    )
    assert shared > 2 * plain
