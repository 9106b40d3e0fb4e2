"""What `validate` advises where a release would take minutes or hours."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from matrixdp import Workload, kway, marginals, pairwise, product
from matrixdp.cli.app import app
from matrixdp.cli.forecast import forecast, suggestions
from matrixdp.domain import Domain
from matrixdp.errors import EntryError
from matrixdp.noise import GAUSSIAN, LAPLACE

WIDE = {
    "codes": 7_000,
    "pay": {"edges": [*range(6_001)]},
    "town": [f"town {i}" for i in range(5_000)],
    "days": {"min": -40, "max": 4_000},
}


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    """Advice does not depend on the machine that runs the tests."""
    monkeypatch.setenv("MATRIXDP_MEMORY_LIMIT", "16GB")


def advice(*entries, domain=WIDE, noise=GAUSSIAN):
    workload = Workload(Domain(domain), *entries)
    return suggestions(workload, forecast(workload, 10**6, [noise]), noise is LAPLACE)


def test_each_kind_of_attribute_is_told_how_to_be_coarser():
    codes, pay, town, days = advice(kway(1, predicates="prefix"))
    assert codes.endswith("{min: 0, max: 7000, bins: 1400} takes about 3 s")
    assert "one of every 3 edges (edges: [0, 3, ..., 6000])" in pay
    assert "categories that are put together, at most 2424 of them, which takes" in town
    assert days.startswith("domain.days: 4,041 values take about 33 s; {min: -40, max: 4002, bins: 2021}")


def test_attributes_whose_matrices_do_not_fit_are_told_of(monkeypatch):
    assert not advice(product(few="prefix"), domain={"few": 700})
    monkeypatch.setenv("MATRIXDP_MEMORY_LIMIT", "20MB")
    (line,) = advice(product(few="prefix"), domain={"few": 700})
    assert line.startswith("domain.few: 700 values are too many for selection here, which takes 500; {min: 0")


def test_what_is_advised_is_what_is_then_short():
    assert not advice(product(days="prefix"), domain={"days": {"min": -40, "max": 4002, "bins": 2021}})


def test_values_that_are_only_counted_take_no_search():
    assert not advice(marginals([0, 1]))
    assert not advice(product(codes="total", town="identity"))


def test_laplace_noise_is_searched_for_longer():
    assert not advice(product(few="prefix"), domain={"few": 700})
    assert advice(product(few="prefix", other="prefix"), domain={"few": 700, "other": 3_000}, noise=LAPLACE)


def test_groups_that_do_not_factor_and_marginals_without_end_are_told_of():
    first, *others = advice(pairwise("abs"), domain={"a": 44, "b": 45, "c": 40})
    assert "the group 'a, b: abs' compares a and b over 1,980 cells, which takes about 39 s; bins" in first
    assert len(others) == 2
    (line,) = advice(marginals([["codes", "pay", "days"]]))
    assert "the most are those of codes, pay, days: ask for fewer attributes at once" in line


@pytest.mark.parametrize("as_json", [False, True])
def test_validate_prints_them(tmp_path: Path, as_json: bool):
    file = tmp_path / "wide.yaml"
    file.write_text(
        "domain: {pay: {min: 0, max: 8499}}\nworkload: [product: {pay: prefix}]\nprivacy: {rho: 1}\n"
    )
    result = CliRunner().invoke(app, ["validate", str(file), *(["--json"] if as_json else [])])
    assert result.exit_code == 0
    told = json.loads(result.stdout)["suggestions"][0] if as_json else result.stdout
    assert (
        "domain.pay: 8,500 values take about 4 min; {min: 0, max: 8500, bins: 1700} takes about 5 s" in told
    )


#: The largest size that a domain has: nothing may take a step, or a byte, for each value.
HUGE = 9_007_199_254_740_991


@pytest.mark.parametrize("form", ["prefix", "range", "suffix", "circular"])
def test_the_size_of_an_attribute_does_not_count(form):
    told, _ = advice(product(a=form), domain={"a": {"min": 0, "max": HUGE - 1}})
    assert told.startswith(f"domain.a: {HUGE:,} values ")


def test_names_of_ranges_are_compared_with_values_that_are_never_listed():
    domain = Domain({"a": {"min": 0, "max": HUGE - 1}, "b": {"edges": [float("-inf"), 0.5, 10, 20]}})
    half = {"low": [0, HUGE // 2], "7": [7, 7]}
    assert Workload(domain, product({"a": {"ranges": half}})).queries == 2
    for name, taken in (
        ("a", {"7": [0, 8]}),
        ("b", {"[10, 20)": [0.5, 20]}),
        ("b", {"(-inf, 0.5)": [10, 20]}),
    ):
        with pytest.raises(EntryError, match="a name that is not that of another value"):
            Workload(domain, product({name: {"ranges": taken}}))
    own = {"[10, 20)": [10, 20], "[0.5, 10)": [0.5, 10]}
    assert Workload(domain, product({"b": {"ranges": own}})).queries == 2
