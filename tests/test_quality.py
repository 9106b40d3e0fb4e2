"""Plans: how good tables will be, held against real releases, and what entries and bounds cost."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import MatrixDPError
from matrixdp.quality import LETTERS
from matrixdp.report.outlook import outlook_page
from tests.cli.commands import run

DOMAIN = {"sex": ["f", "m"], "age": {"min": 0, "max": 9}, "pay": {"amount": [0, 100]}}
SPEC = {
    "domain": DOMAIN,
    "workload": [
        {"marginals": [["age"], ["sex", "age"]]},
        {"mean": "pay", "by": ["sex"]},
        {"quantile": {"age": [0.5]}},
        {"share": {"marginals": [["sex"]]}},
    ],
    "privacy": {"mu": 0.5},
}


def records(number=2_000, seed=0):
    random = np.random.default_rng(seed)
    age = np.minimum(random.geometric(0.4, number) - 1, 9)
    return {"sex": np.array(["f", "m"])[random.integers(0, 2, number)], "age": age, "pay": age * 10.0}


def test_bands_are_those_of_real_releases():
    table, releases = records(), 200
    [found] = mdp.plan(SPEC, public_table=table, simulations=100, prices=False).budgets
    written = mdp.load_specification(SPEC)
    strategy = mdp.select(written.workload, budget=written.budget)
    seen: dict[str, list[list[str]]] = {}
    for _ in range(releases):
        release = strategy.measure(table, written.budget).reconstruct(written.workload)
        for one in release.tables:
            seen.setdefault(one.title, []).append(letters_of(release, one))
    assert [own.table for own in found.tables] == list(seen)
    for own in found.tables:
        many = [[row.count(letter) / max(len(row), 1) for letter in LETTERS] for row in seen[own.table]]
        if not own.letters:
            assert not any(map(any, seen[own.table]))
            continue
        mean, spread = np.mean(many, axis=0), np.std(many, axis=0)
        error = 5 * spread * math.sqrt(1 / releases + 1 / 100) + 0.01
        assert (
            np.abs([own.letters[letter] - at for letter, at in zip(LETTERS, mean, strict=True)]) <= error
        ).all()


def letters_of(release, one):
    """Return the letters of a table by their definition, from its columns."""
    table = release.table(one)
    columns = ("estimate", "stddev", "lower", "upper")
    estimates, errors, low, high = (np.array(table[name].to_pylist(), dtype=float) for name in columns)
    halves = (high - low) / 2 / 1.959964
    errors = np.where(np.isnan(errors) | (halves > errors * 1.000001), halves, errors)
    return [
        next((name for name, most in (("A", 0.05), ("B", 0.15), ("C", 1 / 3)) if cv <= most), "F")
        for cv in np.abs(errors / estimates)
        if not math.isnan(cv)
    ]


@pytest.mark.parametrize("privacy", [{"mu": 0.5}, {"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}])
def test_other_budgets_are_estimated_as_they_would_be_simulated(privacy):
    table, asked = records(), SPEC | {"privacy": privacy}
    start = next(iter(privacy.values()))
    found = mdp.plan(asked, public_table=table, estimates=True, prices=False)
    for times in (0.2, 1, 5):
        at, noise = found.at(start * times), found.budgets[0].noise
        again = mdp.plan(
            asked, public_table=table, budgets=[start * times], simulations=30, prices=False, noise=noise
        )
        [simulated] = again.budgets
        assert (at.budget, at.promise.odds) == (simulated.budget, simulated.promise.odds)
        assert at.rmse == pytest.approx(simulated.rmse, rel=1e-6)
        for one, other in zip(at.tables, simulated.tables, strict=True):
            assert (one.table, one.figures) == (other.table, other.figures)
            # the worst that a figure near a bound moves is to the next letter
            for worst in range(1, len(LETTERS)):
                both = [sum(own.letters[name] for name in LETTERS[:worst]) for own in (one, other)]
                assert both[0] == pytest.approx(both[1], abs=0.2), (one.table, times)
    assert mdp.plan(asked, public_table=table, prices=False).at(start).tables == ()
    with pytest.raises(MatrixDPError):
        found.at(-1)


def test_prices_are_what_selections_say():
    asked = SPEC | {
        "workload": [{"marginals": [["age"]], "weight": 4}, {"product": {"age": "prefix"}, "name": "p"}]
    }
    found = mdp.plan(asked, records=1_000)
    domain = mdp.Domain(DOMAIN)
    both = [mdp.marginals([["age"]], weight=4.0), mdp.product(age="prefix")]
    together = mdp.select(mdp.Workload(domain, *both), budget=mdp.Budget(mu=1))
    errors = [together.selection.analysis.group(group).weighted for group in together.workload]
    for place, price in enumerate(found.prices):
        alone = mdp.select(mdp.Workload(domain, both[1 - place]), budget=mdp.Budget(mu=1))
        [group] = alone.workload
        least = alone.selection.analysis.group(group).weighted
        assert price.share == pytest.approx(errors[place] / sum(errors), rel=1e-6)
        assert price.gain == pytest.approx(1 - math.sqrt(least / errors[1 - place]), abs=1e-4)
    assert found.prices[1].entry == "p"


@pytest.mark.parametrize(
    "asked", [{"sum": "pay"}, {"cdf": "age"}, {"mean": "pay"}, {"sum": "age", "by": ["sex"]}]
)
def test_prices_are_those_of_their_entries(asked):
    domain = {"sex": ["f", "m"], "age": {"min": 0, "max": 4}, "pay": {"amount": [0, 100]}}
    for order in (1, -1):
        workload = [{"marginals": [["sex"]]}, asked][::order]
        spec = {"domain": domain, "workload": workload, "privacy": {"mu": 1}}
        found = mdp.plan(spec, records=500)
        count, other = found.prices[::order]
        assert count.entry == "sex"
        assert next(iter(asked)) in other.entry.lower()
        assert count.share + other.share == pytest.approx(1)


def test_bounds_on_records_are_counted_on_the_public_table():
    random = np.random.default_rng(1)
    persons = random.integers(0, 300, 2_000)
    table = {**records(), "person": persons}
    asked = SPEC | {"unit": {"id": "person", "max_records": 4}, "workload": [{"marginals": [["age"]]}]}
    found = mdp.plan(asked, public_table=table, max_records=[1, 4, 2_000])
    each = np.bincount(persons)
    assert [own.kept for own in found.bounding] == [np.minimum(each, k).sum() for k in (1, 4, 2_000)]
    assert {own.records for own in found.bounding} == {2_000}
    assert found.bounding[1].rmse == pytest.approx(4 * found.bounding[0].rmse)
    without = mdp.plan(asked, public_table=records())
    assert "person" in without.records
    assert without.budgets[0].tables[0].letters


def test_a_ledger_says_how_many_such_releases_it_pays(tmp_path):
    mdp.Ledger.create(tmp_path / "l.ledger", "survey", mdp.Budget(mu=1))
    asked = SPEC | {"privacy": {"mu": 0.3, "ledger": str(tmp_path / "l.ledger")}}
    found = mdp.plan(asked, budgets=[0.3, 0.5, 1, 2], prices=False)
    assert found.ledger["releases"] == [11, 4, 1, 0]
    assert [own.tables for own in found.budgets] == [()] * 4
    assert len(mdp.Ledger.open(tmp_path / "l.ledger").entries) == 0


def test_targets_decide_the_budget():
    asked = SPEC | {
        "workload": [{"marginals": [["age"]]}],
        "targets": {"age": 5.0},
        "privacy": {"minimize": "mu"},
    }
    [found] = mdp.plan(asked, records=500, prices=False).budgets
    assert float(found.budget.given["mu"]) == pytest.approx(0.2, rel=1e-5)
    assert found.rmse == pytest.approx(5.0, rel=1e-4)


REFUSED: dict[tuple[str, str], dict] = {
    ("privacy", "public_table"): {"public_table": "peo*.csv"},
    ("missing-column", ""): {"public_table": {"sex": ["f"], "age": [1]}},
    ("out-of-range", "records"): {"records": 0},
    ("too-large", "records"): {"records": 10**12},
    ("conflict", "records"): {"records": 10, "public_table": records()},
    ("out-of-range", "simulations"): {"simulations": 0},
    ("missing-key", "max_records"): {"max_records": [1], "records": 10},
    ("out-of-range", "budgets[1].budget.mu"): {"budgets": [1, -1]},
}


@pytest.mark.parametrize(("code", "place"), REFUSED)
def test_refusals(code, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,age,pay\nf,1,2\n")
    Path("spec.json").write_text(json.dumps(SPEC | {"data": "people.csv"}))
    with pytest.raises(MatrixDPError) as caught:
        mdp.plan("spec.json", **REFUSED[code, place])
    assert (caught.value.code, mdp.errors.format_place(caught.value.path)) == (code, place)


def test_the_command_prints_writes_and_lists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, width in (("fine", 9), ("coarse", 4)):
        spec = SPEC | {"domain": DOMAIN | {"age": {"min": 0, "max": width, "clip": True}}}
        Path(f"{name}.json").write_text(json.dumps(spec))
    options = ("--records", "500", "--budgets", "0.5,5", "--page", "sheet.html")
    told = run("plan", "fine.json", "coarse.json", *options).output
    assert "fine" in told
    assert "mu 5" in told
    assert "share of the cost" in told
    page = Path("sheet.html").read_text()
    assert page.count("<svg") == 2 * 2 * 5
    assert "http" not in page.replace("http-equiv", "")
    as_json = json.loads(run("plan", "fine.json", "--records", "500", "--json", "--no-prices").output)
    [budget] = as_json["fine"]["budgets"]
    assert {own["table"] for own in budget["tables"]} >= {"age", "median of age"}
    rows = run("plan", "fine.json", "--records", "500", "--csv", "--no-prices").output.splitlines()
    assert rows[0].startswith("budget,table,figures,A,B,C,F")
    assert len(rows) == 6


def test_names_on_the_sheet_are_escaped():
    asked = SPEC | {"workload": [{"marginals": [["age"]], "name": "<script>alert(1)</script>"}]}
    page = outlook_page([("<b>", mdp.plan(asked, records=100))])
    assert "<script>" not in page
    assert "<b>" not in page
