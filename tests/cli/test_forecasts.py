"""What `validate` expects of a release, and advises where that would take minutes or hours."""

from typing import Any

import numpy as np
import pytest

from matrixdp import Domain, Workload, dense, kway, marginals, pairwise, product
from matrixdp.errors import EntryError
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.selection.forecast import forecast, measured_marginals
from tests.cli.commands import figures, run, spec

COUNTIES: dict[str, Any] = {"county": {"categories": [str(i) for i in range(3169)]}, "sex": 2, "age": 15}
COUNTIES["county"]["levels"] = {
    "state": {f"state {s}": [str(i) for i in range(3169) if i % 51 == s] for s in range(51)}
}
AREAS = [["county", "sex", "age"], ["state", "sex", "age"]]
WIDE = {
    "codes": 7_000,
    "pay": {"edges": [*range(6_001)]},
    "town": [f"town {i}" for i in range(5_000)],
    "days": {"min": -40, "max": 4_000},
}
#: The largest size that a domain has: nothing may take a step, or a byte, for each value.
HUGE = 9_007_199_254_740_991


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    """Advice does not depend on the machine that runs the tests."""
    monkeypatch.setenv("MATRIXDP_MEMORY_LIMIT", "16GB")


def advice(*entries, domain=WIDE, noise=GAUSSIAN):
    workload = Workload(Domain(domain), *entries)
    return list(forecast(workload, noise=noise.name, max_answers=10**6).suggestions)


def test_forecasts_count_marginals():
    domain = Domain({"a": 2, "b": 3, "c": {"min": 0, "max": 4}, "d": {"min": 0, "max": 5}})
    workload = Workload(
        domain, marginals([0, 2]), pairwise("affine"), product(a="identity", b="total"), kway(3, "prefix")
    )
    assert len(measured_marginals(workload)) == 1 + 4 + 6 + 4
    expected = forecast(workload, max_answers=10)
    assert (expected.queries, expected.largest_marginal) == (workload.queries, 3 * 5 * 6)
    assert expected.disk_bytes < forecast(workload, max_answers=10**6).disk_bytes
    wide = Domain({f"a{i}": 2 for i in range(30)})
    whole = Workload(wide, product(dict.fromkeys(wide.names, "identity")))
    assert forecast(whole, max_answers=10).marginals == 1


@pytest.mark.parametrize(
    ("domain", "entries", "noise", "measured"),
    [
        ({"v": 2400}, [product(v="prefix")], GAUSSIAN, 9.1),
        ({"v": 1200, "sex": 2}, [product(v="prefix"), product(v="prefix", sex="identity")], GAUSSIAN, 4.2),
        ({"v": 300}, [product(v="prefix")], LAPLACE, 1.4),
        ({"v": 1000}, [product(v="prefix")], LAPLACE, 5.3),
        ({"v": 3000}, [product(v="prefix")], LAPLACE, 27.5),
        (COUNTIES, [marginals(AREAS)], GAUSSIAN, 0.8),
        (COUNTIES, [marginals([["county"], ["county", "sex"], *AREAS])], GAUSSIAN, 0.7),
    ],
)
def test_forecasts_are_within_twice_what_selections_took(
    domain: dict[str, Any], entries: list[Any], noise: Noise, measured: float
):
    expected = forecast(Workload(Domain(domain), *entries), noise=noise.name, max_answers=10).select_seconds
    assert measured / 2 <= expected <= 2 * measured


def test_no_time_is_told_where_it_depends_on_a_search():
    domain = Domain({"a": 20, "b": 30})
    several = Workload(domain, product(a="prefix", b="identity"))
    assert forecast(several).select_seconds is not None
    assert forecast(several, noise="laplace").select_seconds is None
    assert forecast(several, noise="laplace").release_seconds is None
    assert forecast(Workload(domain, marginals(2)), noise="laplace").select_seconds is not None
    assert forecast(Workload(domain, product(a="prefix")), noise="laplace").select_seconds is not None
    assert forecast(Workload(domain, marginals(2)), targets=True).select_seconds is None


@pytest.mark.usefixtures("here")
def test_validate_says_that_no_time_is_known():
    asked = spec(
        "domain: {a: 20, b: 3}\nworkload: [product: {a: prefix, b: identity}]\nprivacy: {epsilon: 1}\n"
    )
    assert "not known: it depends on what a search finds" in run("validate", asked).stdout
    assert figures("validate", asked)["release_seconds"] is None


WIDE_SURVEY = "domain: {%s}\nworkload: [marginals: [1, 2]]\nprivacy: {rho: 0.03}\n%s"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("records", "warned"), [(1_000, True), (100_000_000, False)])
def test_tables_that_are_nearly_all_noise_are_told_of(records, warned):
    attributes = ", ".join(f"q{place}: 20" for place in range(12))
    told = figures("validate", spec(WIDE_SURVEY % (attributes, "")), "--expect", str(records))["warnings"]
    assert [one.startswith("workload: of 26,640 counts in tables about ") for one in told] == [True] * warned
    bounded = figures("validate", spec(WIDE_SURVEY % (attributes, f"max_records: {records}\n")))["warnings"]
    assert told == bounded
    assert not figures("validate", spec(WIDE_SURVEY % (attributes, "")))["warnings"]


@pytest.mark.usefixtures("here")
def test_select_says_how_many_counts_will_be_reliable():
    """The two cells of one attribute, by their standard errors, and not the fifty of another."""
    asked = spec("domain: {a: 2, b: 50}\nworkload: [marginals: [1]]\nprivacy: {mu: 1}\n")
    found = figures("select", asked, "--noise", "gaussian", "--expect", "100")
    errors = {group["name"]: group["rmse"] for group in found["groups"]}
    assert 3 * errors["a"] <= 50
    assert 3 * errors["b"] > 2
    assert found["reliable"] == {"records": 100, "counts": 52, "reliable": 2}
    told = " ".join(run("select", asked, "--noise", "gaussian", "--expect", "100").stdout.split())
    assert "reliable 2 of 52 counts" in told
    assert "reliable" not in figures("select", asked, "--noise", "gaussian")
    # more than a fifth of the counts
    third = spec("domain: {a: 20, b: 50}\nworkload: [marginals: [1]]\nprivacy: {mu: 1}\n")
    assert figures("select", third, "--expect", "150")["reliable"]["reliable"] == 20
    assert not figures("validate", third, "--expect", "150")["warnings"]


@pytest.mark.usefixtures("here")
def test_identifiers_and_codes_as_numbers_are_told_of_by_their_names():
    domain = (
        "{person_id: {min: 1, max: 9000}, zip: {min: 10000, max: 19999, bins: 100}, sex: {min: 1, max: 2}, "
        "group_id: {min: 1, max: 9}, race: [1, 2], state: [a, b], size: {min: 1, max: 900}, "
        "area: {column: county, min: 0, max: 9}}"
    )
    told = figures("validate", spec(f"domain: {domain}\nworkload: [marginals: 1]\nprivacy: {{rho: 1}}\n"))
    places = [one.partition(":")[0] for one in told["warnings"]]
    assert places == ["domain.person_id", "domain.zip", "domain.sex", "domain.area"]


def test_each_kind_of_attribute_is_told_how_to_be_coarser():
    codes, pay, town, days = advice(kway(1, predicates="prefix"))
    assert codes.endswith("{min: 0, max: 7000, bins: 1400} takes about 3 s")
    assert "one of every 3 edges (edges: [0, 3, ..., 6000])" in pay
    assert "categories that are put together, at most 2424 of them, which takes" in town
    assert days.startswith("domain.days: 4,041 values take about 33 s; {min: -40, max: 4002, bins: 2021}")
    assert not advice(product(days="prefix"), domain={"days": {"min": -40, "max": 4002, "bins": 2021}})


def test_attributes_whose_matrices_do_not_fit_are_told_of(monkeypatch):
    assert not advice(product(few="prefix"), domain={"few": 700})
    monkeypatch.setenv("MATRIXDP_MEMORY_LIMIT", "20MB")
    (line,) = advice(product(few="prefix"), domain={"few": 700})
    assert line.startswith("domain.few: 700 values are too many for selection here, which takes 500; {min: 0")


def test_places_within_areas_take_as_many_values_as_are_solved_for():
    sets = {"sets": [list(range(first, 30_000, 50)) for first in range(50)]}
    asked = product(place="identity"), product(place=sets)
    assert not advice(*asked, domain={"place": 30_000})
    workload = Workload(Domain({"place": 30_000}), *asked)
    gaussian, laplace = (
        forecast(workload, noise=noise.name, max_answers=10) for noise in (GAUSSIAN, LAPLACE)
    )
    assert gaussian.select_seconds < 5 < laplace.select_seconds
    assert gaussian.memory_bytes < 1e9 < laplace.memory_bytes


def test_advice_follows_the_search():
    assert not advice(marginals([0, 1]))
    assert not advice(product(codes="total", town="identity"))
    assert advice(product(few="prefix", other="prefix"), domain={"few": 700, "other": 3_000}, noise=LAPLACE)
    nested = [[0, 6 * last] for last in range(6_000)]
    (line,) = advice(product(a={"ranges": nested}), domain={"a": 36_000})
    assert line.startswith("domain.a: 6,001 groups of values that queries tell apart take about ")
    # a table of 44 by 44 values, of which queries tell 4 by 4 groups apart
    sums = dense(np.kron(np.eye(4), np.ones((11, 11))).reshape(1, -1), ["a", "b"])
    (line,) = advice(sums, product(c="prefix"), domain={"a": 44, "b": 44, "c": 6_000})
    assert line.startswith("domain.c: 6,000 values take about ")
    (line,) = advice(marginals([["codes", "pay", "days"]]))
    assert "the most are those of codes, pay, days: ask for fewer attributes at once" in line


@pytest.mark.usefixtures("here")
def test_validate_prints_advice():
    wide = spec("domain: {pay: {min: 0, max: 8499}}\nworkload: [product: {pay: prefix}]\nprivacy: {rho: 1}\n")
    says = "domain.pay: 8,500 values take about 4 min; {min: 0, max: 8500, bins: 1700} takes about 5 s"
    assert says in run("validate", wide).stdout
    assert says in figures("validate", wide)["suggestions"][0]


@pytest.mark.usefixtures("here")
def test_sums_of_bins_and_of_many_values_should_be_of_amounts():
    domain = "domain: {pay: {column: x, min: 0, max: 8499}, bins: {column: x, edges: [0, 5, 90]}, age: 99"
    asked = "workload: [sum: pay, mean: bins, sum: age, sum: fee]\nprivacy: {rho: 1}\n"
    told = figures("validate", spec(f"{domain}, fee: {{column: x, amount: [0, 9]}}}}\n{asked}"))["warnings"]
    assert [one.partition(":")[0] for one in told] == ["domain", "domain.pay", "domain.bins"]
    assert "fee" not in told[0]
    assert "{amount: [0, 8499]}" in told[1]
    assert "{amount: [0, 90]}" in told[2]


@pytest.mark.parametrize("form", ["prefix", "range", "suffix", "circular"])
def test_the_size_of_an_attribute_does_not_count(form):
    told, _ = advice(product(a=form), domain={"a": {"min": 0, "max": HUGE - 1}})
    assert told.startswith(f"domain.a: {HUGE:,} values ")


def test_names_of_ranges_are_compared_with_values_that_are_never_listed():
    domain = Domain({"a": {"min": 0, "max": HUGE - 1}, "b": {"edges": [float("-inf"), 0.5, 10, 20]}})
    own = {"[10, 20)": [10, 20], "[0.5, 10)": [0.5, 10]}
    for name, ranges in (("a", {"low": [0, HUGE // 2], "7": [7, 7]}), ("b", own)):
        assert Workload(domain, product({name: {"ranges": ranges}})).queries == 2
    half_open = {"[10, 20)": [0.5, 20]}, {"(-inf, 0.5)": [10, 20]}
    for name, taken in (("a", {"7": [0, 8]}), ("b", half_open[0]), ("b", half_open[1])):
        with pytest.raises(EntryError, match="a name that is not that of another value"):
            Workload(domain, product({name: {"ranges": taken}}))
