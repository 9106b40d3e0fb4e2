"""Discoveries from the table to the release that uses them, through the command line and in Python."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.discovery import Schedule, bounds_of
from matrixdp.domain import Discovered, encode_value
from matrixdp.errors import PrivacyError, SourceError, SpecificationError, StorageError
from matrixdp.ledger import Account
from matrixdp.measure.measurement import find_values
from matrixdp.measure.statement import statement
from matrixdp.noise import GAUSSIAN, LAPLACE, Chances, Cost, Noise, SystemSource, WeightedRounds, checked_cost
from matrixdp.privacy import Budget, Unit
from matrixdp.sources import Source, open_source
from matrixdp.specification import load_discovery, load_specification
from matrixdp.verification import Verification
from tests.cli.commands import figures, run, words

SPEC: dict[str, Any] = {
    "domain": {"word": {"discover": "values"}},
    "privacy": {"epsilon": 1, "delta": 1e-6},
    "unit": {"id": "person", "max_records": 4},
}
RNG = np.random.default_rng(5)
WORDS = RNG.geometric(0.3, 6000)
TABLE: dict[str, Any] = {
    "person": np.arange(6000) // 3,
    "word": [f"w{word}" for word in WORDS],
    "income": np.exp(RNG.normal(10, 0.5, 6000)),
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(TABLE).write_csv("t.csv")
    return tmp_path


def discovery(**changed: object) -> dict[str, Any]:
    return {**SPEC, **changed}


def attribute(**own: object) -> mdp.Domain:
    return mdp.Domain({"w": {"categories": ["other"], **own}})


HOSTILE = [
    ("p1", "a"), ("p2", " 03"), ("p1", "b"), ("p1", "a"), (None, "nobody"), ("p3", "x" * 1_000_000),
    ("p3", "Yes"), ("p2", "3.0"), ("p3", ""), ("p3", None), ("p2", "b\ufffd"), ("p1", "late"), ("", "nobody"),
    ("p4", "NaN"), ("p4", "TODO"), ("p4", "other"), ("p5", "a\x01\n"), ("p5", "😀: [x]"),
]  # fmt: skip


def hostile(folder: Path) -> dict[str, Any]:
    """The same table for every engine that lists values."""
    rows: dict[str, Any] = {"p": [row[0] for row in HOSTILE], "w": [row[1] for row in HOSTILE]}
    frame = pd.DataFrame(rows, dtype=object)
    frame.to_parquet(folder / "t.parquet")
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM frame")
    found = {"arrays": rows, "pandas": frame, "polars": pl.DataFrame(rows)}
    return found | {kind: str(folder / f"t.{kind}") for kind in ("parquet", "duckdb")}


@pytest.mark.parametrize("named", [True, False])
def test_every_engine_lists_the_same_values(tmp_path, named):
    read = attribute()["w"]
    unit = Unit(3, "p") if named else Unit()
    expected = None
    for name, table in hostile(tmp_path).items():
        held = open_source(table).person_values(read, unit)()
        pairs = [held.texts[place] for place in held.places]
        by_person = [
            [own for own, person in zip(pairs, held.persons, strict=True) if person == one]
            for one in dict.fromkeys(held.persons.tolist())
        ]
        expected = by_person if expected is None else expected
        assert (name, by_person) == (name, expected)
        assert list(held.texts) == sorted(held.texts, key=lambda own: (isinstance(own, str), own))
    # numerals and booleans are one value each; what is empty, unreadable or too long is none
    if named:
        assert expected == [["a", "b"], [3.0], ["true"], ["NaN", "TODO", "other"], ["a\x01\n", "😀: [x]"]]
    else:
        assert [own for own in expected if own == ["nobody"]] == [["nobody"]] * 2


def test_texts_are_read_as_they_stand_or_without_spaces():
    table = {"w": ["03", "3 ", " x", "Yes"]}
    for own, expected in (
        ({"type": "text"}, ("03", "3 ", "Yes", " x")),
        ({"type": "text", "trim": True}, ("03", "3", "Yes", "x")),
        ({"trim": True}, (3.0, "true", "x")),
        ({}, (3.0, " x", "true")),
    ):
        held = open_source(table).person_values(attribute(**own)["w"], Unit())()
        assert sorted(map(str, held.texts)) == sorted(map(str, expected))


def test_values_that_cannot_be_categories_are_not_told(tmp_path):
    values = [
        "nan",
        "INF",
        "a\x00",
        "other",
        "missing",
        "TODO",
        "😀: [x]",
        "null",
        "1e-6",
        "a\x01\n\u2028",
        "'",
        "010",
    ]
    table = {"word": [value for value in values for _ in range(500)]}
    spec = {"domain": {"word": {"discover": "values", "null": "missing"}}, "privacy": SPEC["privacy"]}
    found = mdp.discover(spec, tmp_path / "d.yaml", table=table)
    told = [1e-6, 10, "'", "TODO", "a\x01\n\u2028", "null", "😀: [x]", "other"]
    assert found.found.domain["word"]["categories"] == told
    assert yaml.safe_load(found.yaml) == found.found.to_spec()
    written = load_specification(
        {"domain_from": str(tmp_path / "d.yaml"), "workload": [{"marginals": [1]}]}, base_path=tmp_path
    )
    assert written.domain.to_spec() == found.domain.to_spec()
    assert written.out_of_domain.code("word") == len(told) - 1


@settings(max_examples=12, deadline=None)
@given(st.lists(st.text(max_size=6) | st.floats() | st.integers(-(10**20), 10**20), min_size=1, max_size=8),
       st.booleans(), st.booleans())  # fmt: skip
def test_whatever_is_found_is_a_domain(tmp_path_factory, values, trim, text):
    """Nothing that a table holds makes a file that cannot be read back, once the budget is spent."""
    own = {"discover": "values", "trim": trim} | ({"type": "text"} if text else {})
    table = {"word": np.array([value for value in values for _ in range(40)], dtype=object)}
    path = tmp_path_factory.mktemp("found") / "d.yaml"
    found = mdp.discover({"domain": {"word": own}, "privacy": SPEC["privacy"]}, path, table=table)
    written = load_specification({"domain_from": str(path), "workload": [{"marginals": [1]}]})
    assert written.domain.to_spec() == found.domain.to_spec()
    codes = {encode_value(written.domain["word"], value) for value in values} - {None}
    assert {written.domain["word"].label(code) for code in codes} | {"other"} == {
        written.domain["word"].label(code) for code in written.domain["word"].all_codes
    }


def test_numbers_come_first_and_nothing_tells_the_order_of_the_table():
    table: Any = {"word": ["b", "10", "a", "9"] * 500}
    spec = {"domain": SPEC["domain"], "privacy": SPEC["privacy"]}
    found = mdp.discover(spec, table=table).found.domain["word"]["categories"]
    assert found == [9, 10, "a", "b", "other"]


def test_a_persons_first_records_count_and_of_them_her_first_values():
    many = [("p", f"w{i}") for i in range(100)]
    # all have one in common, but beyond their first two records
    table = [(str(i), word) for i in range(800) for word in ("x", "y", "z")] + many
    columns = {"person": [row[0] for row in table], "word": [row[1] for row in table]}
    for records, values, expected in ((2, None, ["x", "y"]), (3, None, ["x", "y", "z"]), (3, 1, ["x"])):
        own = {"discover": "values"} | ({} if values is None else {"max_values": values})
        spec = discovery(domain={"word": own}, unit={"id": "person", "max_records": records})
        assert mdp.discover(spec, table=columns).found.domain["word"]["categories"] == [*expected, "other"]


PER: dict[str, Any] = {"id": "person", "per": "word", "max_values": 3}


def test_with_per_a_persons_first_values_count_in_whichever_records(tmp_path):
    rows = [("p", "a")] * 5 + [
        ("q", "c"),
        ("p", "b"),
        (None, "z"),
        ("p", ""),
        ("p", "c"),
        ("p", "d"),
        ("q", "c"),
    ]
    columns: dict[str, Any] = {"person": [row[0] for row in rows], "word": [row[1] for row in rows]}
    frame = pd.DataFrame(columns, dtype=object)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    unit = Unit(id="person", per="w", max_values=3)
    for table in (
        columns,
        frame,
        pl.DataFrame(columns),
        *(str(tmp_path / f"t.{own}") for own in ("csv", "parquet")),
    ):
        held = open_source(table).person_values(attribute(column="word")["w"], unit)()
        pairs = zip(held.persons, (held.texts[place] for place in held.places), strict=True)
        assert sorted(pairs) == [(1, "a"), (1, "b"), (1, "c"), (2, "c")]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=25), st.integers(1, 4))
def test_a_persons_values_depend_on_her_own_records_alone(rows, most):
    """Taking away all records of a person takes away her list, and changes no other."""

    def lists(kept: list[tuple[int, int]]) -> list[list[str]]:
        table = {"person": [f"p{row[0]}" for row in kept], "w": [f"w{row[1]}" for row in kept]}
        held = open_source(table).person_values(
            attribute()["w"], Unit(id="person", per="w", max_values=most)
        )()
        return [
            [held.texts[place] for place in held.places[held.persons == one]]
            for one in np.unique(held.persons)
        ]

    for one in range(4):
        alone = [f"w{word}" for word in dict.fromkeys(row[1] for row in rows if row[0] == one)][:most]
        rest = lists([row for row in rows if row[0] != one])
        everybody = sorted([*rest, alone] if alone else rest)
        assert sorted(lists(rows)) == everybody


def test_one_ledger_with_per_serves_a_discovery_and_releases(files):
    ledger = mdp.Ledger.create("l.ledger", "log", Budget(epsilon=3, delta=4e-6, unit=Unit.of(PER)))
    # everybody has a rare word first, very often: only values bounded by themselves reach the others
    table = {
        "person": np.repeat(np.arange(900), 8),
        "word": [own for i in range(900) for own in (*([f"rare{i}"] * 6), "x", "y")],
        "income": np.repeat(np.exp(RNG.normal(10, 0.5, 900)), 8),
    }
    spec = discovery(domain={"word": {"discover": "values"}, "income": {"discover": "bounds"}}, unit=PER)
    found = mdp.discover(spec, "d.yaml", table=table, ledger=ledger)
    assert found.found.domain["word"]["categories"] == ["x", "y", "other"]
    assert "or as many values" in found.statement
    assert not mdp.verify_discovery("d.yaml", ledger=ledger).failed
    # income costs three records of a person, all in one bin
    [word, income] = ledger.entries
    assert (word.budget.unit, income.budget.unit) == (Unit(3, "person"),) * 2
    assert 9 * income.cost.value == pytest.approx(
        float(Fraction(found.found.domain["income"]["discovered"]["mu"])) ** 2
    )
    release = mdp.release(
        {
            "domain_from": "d.yaml",
            "workload": [{"marginals": [["word"]]}],
            "unit": PER,
            "privacy": {"epsilon": 1, "delta": 1e-6},
        },
        table=table,
        ledger=ledger,
        mechanism="identity",
        noise="gaussian",
    )
    counts = dict(zip(*(release.answers[name].to_pylist() for name in ("word", "estimate")), strict=True))
    assert counts == pytest.approx({"x": 900, "y": 900, "other": 900}, abs=100)
    # fewer records of a person cost as many, between the same neighbours
    spent = ledger.account.sums[0]
    for unit in (Unit(2, "person"), Unit(id="person", per="word", max_values=2), Unit.of(PER)):
        after = ledger.account.plus(word.cost, Budget(epsilon=1, delta=1e-6, unit=unit))
        assert after.sums[0] - spent == word.cost.value * unit.records**2
    for unit in (
        Unit(4, "person"),
        Unit(2, "income"),
        Unit(2),
        Unit(id="person", per="income", max_values=2),
    ):
        with pytest.raises(PrivacyError) as caught:
            ledger.check(word.cost, Budget(epsilon=1, delta=1e-6, unit=unit))
        assert caught.value.code == "conflict"


# What is known before anything is spent.


def test_validate_says_what_a_discovery_costs_and_how_many_persons_it_takes(files):
    ledger = mdp.Ledger.create("l.ledger", "log", Budget(epsilon=1, delta=1e-5, unit=Unit(4, "person")))
    spec = {
        "data": "t.csv",
        **discovery(domain=dict(BOTH)),
        "privacy": {**SPEC["privacy"], "ledger": "l.ledger"},
    }
    Path("f.yaml").write_text(json.dumps(spec))
    told = figures("validate", "f.yaml")
    schedule = Schedule.of(load_discovery("f.yaml")[0])
    word, income = (told["attributes"][name] for name in ("word", "income"))
    assert word["mu"] ** 2 + income["mu"] ** 2 == pytest.approx(16 * float(schedule.cost.value))
    assert word["mu"] ** 2 == pytest.approx(3 * income["mu"] ** 2)
    assert word["delta"] == pytest.approx(5e-7)
    assert (word["persons"], word["max_values"]) == (schedule.values["word"].persons, 4)
    assert (told["ledger"]["enough"], told["warnings"], ledger.entries) == (True, [], ())
    assert "half of the time if" in words("validate", "f.yaml")
    spec["privacy"]["epsilon"] = 2
    Path("f.yaml").write_text(json.dumps(spec))
    assert figures("validate", "f.yaml")["ledger"]["enough"] is False
    spec["domain"]["wrd"] = spec["domain"].pop("word")
    Path("f.yaml").write_text(json.dumps(spec))
    assert "missing-column" in run("validate", "f.yaml", status=2).stderr
    Path("f.yaml").write_text(json.dumps({**spec, "data": "none.csv"}))
    assert "not there yet" in figures("validate", "f.yaml")["data"]


def test_a_unit_that_is_left_out_is_told(files):
    spec = {"data": "t.csv", "domain": {"word": {"discover": "values"}}, "privacy": SPEC["privacy"]}
    Path("f.yaml").write_text(json.dumps(spec))
    for command in (("validate", "f.yaml"), ("discover", "f.yaml", "--out", "d.yaml")):
        assert "Warning: unit: none" in run(*command).stderr
    Path("f.yaml").write_text(json.dumps({**spec, "unit": {"records": 1}}))
    assert "Warning" not in run("validate", "f.yaml").stderr
    assert "1e-06; one is found surely if 28 persons have it" in words("validate", "f.yaml")


@pytest.mark.parametrize("most", [1, 5])
def test_so_many_persons_have_a_value_that_is_found_half_of_the_time(monkeypatch, most):
    rule = WeightedRounds.within(Fraction(1), Fraction(1, 10**6), most)
    monkeypatch.setattr(
        type(GAUSSIAN), "draw_rounded", lambda *given, **_: np.zeros(given[2], dtype=np.int64)
    )
    for each, persons in zip(dict.fromkeys((1, most)), rule.persons, strict=True):
        for number in (persons - 1, persons):
            # each has the common value first, and others that nobody else has
            own = [[0, *range(1 + i * each, (i + 1) * each)] for i in range(number)]
            values = np.array([value for values in own for value in values])
            told = rule.found(np.repeat(np.arange(number), each), values, values.max() + 1, SystemSource())
            assert told.tolist() == [0] * (number == persons)


@pytest.mark.parametrize("found", [0, 3])
def test_the_value_for_all_others_takes_no_place_of_the_most_frequent(files, found):
    table = {"person": np.arange(3000), "word": ["a", "b", "c", *(f"w{i}" for i in range(997))] * 3}
    if found:
        table["word"] = ["a"] * 300 + ["b"] * 200 + ["c"] * 100 + [f"w{i}" for i in range(2400)]
    spec = discovery(unit={"id": "person", "max_records": 1})
    assert len(mdp.discover(spec, "d.yaml", table=table).domain["word"].all_codes) == found + 1
    asked: dict[str, Any] = {
        "domain_from": "d.yaml",
        "workload": [{"top": {"word": 2}}, {"marginals": [1]}],
        "unit": {"id": "person", "max_records": 1},
        "privacy": {"epsilon": 1, "delta": 1e-6},
    }
    if not found:
        with pytest.raises(mdp.MatrixDPError) as caught:
            load_specification(asked)
        assert caught.value.code == "out-of-range"
        asked["workload"] = asked["workload"][1:]
        [told] = mdp.advice(load_specification(asked))
        assert "counts as it" in told
        return
    release = mdp.release(asked, table=table)
    [top] = [own for own in release.statistics.values() if "rank" in own.column_names]
    assert top["word"].to_pylist() == ["a", "b"]
    assert top["confidence"].to_pylist() == pytest.approx([1, 1], abs=0.01)
    named = {**asked, "workload": [{"top": {"word": 1}, "where": {"word": ["a", "other"]}}]}
    release = mdp.release(named, table=table)
    [top] = [own for own in release.statistics.values() if "rank" in own.column_names]
    assert top["word"].to_pylist() == ["other"]


def test_noise_is_chosen_among_what_the_ledger_can_pay(found):
    """A ledger that was debited Gaussian noise has nothing left for Laplace noise."""
    asked = {**RELEASE, "privacy": {**RELEASE["privacy"], "epsilon": 2, "ledger": "log.ledger"}}
    Path("r.yaml").write_text(json.dumps(asked))
    workload = load_specification(asked, base_path=found).workload
    assert mdp.select(workload, budget=Budget(epsilon=2, delta=1e-6)).selection.noise == LAPLACE
    assert figures("validate", "r.yaml")["ledger"]["enough"] is True
    told = run("select", "r.yaml", "--json")
    assert json.loads(told.stdout)["ledger"]["enough"] is True
    assert "gaussian noise" in told.stderr
    run("release", "r.yaml", "--out", "released")
    assert mdp.load_release("released").measurement.plan.noise == GAUSSIAN


def test_a_table_without_persons_finds_nothing_and_is_a_domain():
    tables: list[Any] = [{"person": [], "word": []}, {"person": [None], "word": ["x"]}]
    for table in tables:
        found = mdp.discover(SPEC, table=table)
        assert found.found.domain["word"]["categories"] == ["other"]
        assert found.domain["word"].size == 1


def test_seeds_repeat_and_say_that_nothing_is_private(tmp_path):
    one, two, other = (mdp.discover(SPEC, table=TABLE, seed_not_private=seed) for seed in (1, 1, 2))
    assert one.found.domain == two.found.domain
    assert one.found.domain != other.found.domain
    assert not one.private
    assert "NOT PRIVATE" in one.statement
    assert one.found.domain["word"]["discovered"]["private"] is False


# How the budget is shared.


BOTH: dict[str, Any] = {"word": {"discover": "values", "share": 3}, "income": {"discover": "bounds"}}


@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("names", [["word"], ["word", "income"], ["income"]])
def test_shares_add_up_to_the_budget(most, names):
    domain = {name: dict(BOTH[name]) for name in names}
    if "word" in domain:
        domain["word"]["max_values"] = most
    written = load_discovery(discovery(domain=domain))[0]
    schedule = Schedule.of(written)
    budget, cost = written.budget, schedule.cost
    left = budget.less(cost.delta)
    assert left is not None
    allowed = cost.noise.cost(left).value
    assert 0.9999 * allowed < cost.value <= allowed
    pure = most == 1 or "word" not in names
    assert (cost.noise == GAUSSIAN) == (not pure)
    expected = 0 if "word" not in names else Fraction(1, 10**6) / (1 if pure else 2)
    assert 0.999999 * expected <= cost.delta <= expected
    if pure and len(names) == 2:
        mechanism = schedule.values["word"]
        assert isinstance(mechanism, Chances)
        assert (mechanism.epsilon, schedule.bounds["income"].epsilon) == (Fraction(3, 4), Fraction(1, 4))


@pytest.mark.parametrize(
    ("privacy", "kind"), [({"rho": 0.1}, "mu"), ({"mu": 1}, "mu"), ({"epsilon": 1}, "pure")]
)
def test_bounds_need_no_delta(privacy, kind):
    schedule = Schedule.of(load_discovery(discovery(domain={"income": BOTH["income"]}, privacy=privacy))[0])
    assert schedule.bounds["income"].kind == kind


# Bounds.


def test_bounds_leave_few_records_beyond():
    table = {name: TABLE[name] for name in ("person", "income")}
    for own in ({"bins": 7}, {"step": 0.01}):
        spec = discovery(domain={"income": {"discover": "bounds", "largest": 1e7, **own}})
        found = mdp.discover(spec, table=table).found.domain["income"]
        low, high = found.get("amount") or (found["min"], found["max"])
        income = TABLE["income"]
        assert low in (0, *(2.0**k for k in range(16)), *(1.5 * 2.0**k for k in range(16)))
        assert (income < low).sum() <= 200
        assert (income > high).sum() <= 200
        assert low > income.min() / 4
        assert high < income.max() * 2


def test_bounds_of_negative_numbers_and_of_none():
    spec = {"domain": {"x": {"discover": "bounds", "largest": 1000}}, "privacy": {"epsilon": 2}}
    found = mdp.discover(spec, table={"x": [-30.0, 700.0] * 3000}).found.domain["x"]
    assert (found["min"], found["max"]) == (-32, 768)
    none = mdp.discover(spec, table={"x": [None, float("nan"), float("inf")]}).found.domain["x"]
    assert (none["min"], none["max"]) == (-1000, 1000)
    beyond = mdp.discover(spec, table={"x": [1e9, -1e9] * 3000}).found.domain["x"]
    assert (beyond["min"], beyond["max"]) == (-1000, 1000)


def test_bounds_of_amounts_are_whole_steps():
    for step in (1, 7, 0.3):
        spec = {"domain": {"x": {"discover": "bounds", "step": step}}, "privacy": {"epsilon": 2}}
        low, high = mdp.discover(spec, table={"x": [-1.2, 1.4, 11.0] * 3000}).found.domain["x"]["amount"]
        assert -1.5 - step < low <= -1.5
        assert 12 <= high < 12 + step
        assert all(Fraction(str(end)) % Fraction(str(step)) == 0 for end in (low, high))


def test_bounds_that_cross_are_the_ends():
    assert bounds_of([0, 1, 2, 4], [True, True, False], [False, False, True]) == (0, 4)
    assert bounds_of([0, 1, 2, 4], [False] * 3, [False] * 3) == (0, 4)


# From the table to a release, with a ledger.


@pytest.fixture(scope="module")
def discovered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("log")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        pl.DataFrame(TABLE).write_csv("t.csv")
        Path("log.yaml").write_text(json.dumps({"data": "t.csv", **discovery(domain=BOTH)}))
        run("ledger", "init", "log.ledger", "--dataset", "log", "--total", "epsilon=3,delta=3e-6",
            "--unit-records", 4, "--unit-id", "person")  # fmt: skip
        said = words("discover", "log.yaml", "--out", "domain.yaml", "--ledger", "log.ledger")
    assert "(1, 1e-06)-differential privacy" in said
    return folder


@pytest.fixture
def found(discovered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(discovered, tmp_path / "log")
    monkeypatch.chdir(tmp_path / "log")
    return tmp_path / "log"


RELEASE: dict[str, Any] = {
    "data": "t.csv",
    "domain_from": "domain.yaml",
    "workload": [{"marginals": [1]}],
    "privacy": {"epsilon": 1, "delta": 1e-6},
    "unit": {"id": "person", "max_records": 4},
}


def test_a_release_uses_what_was_found_and_names_both_costs(found):
    assert "all checks passed" in words("verify", "domain.yaml", "--ledger", "log.ledger")
    (found / "r.yaml").write_text(json.dumps(RELEASE))
    run("validate", "r.yaml")
    run("release", "r.yaml", "--out", "released", "--ledger", "log.ledger", "--noise", "gaussian")
    assert "all checks passed" in words("verify", "released", "--ledger", "log.ledger")
    release = mdp.load_release("released")
    text = release.statement.text
    assert re.search(r"values of word .* cost 0\.\d+-GDP with a delta of 5e-07, besides", text)
    assert re.search(r"values of income .* cost 0\.\d+-GDP, besides", text)
    assumed = {own.id: own for own in release.statement.assumed}
    assert assumed["chosen-without-data"].startswith("Except for the values of word, income")
    assert release.statement.covered[0].startswith("Except for the values of word, income")
    # the best guess from all that the release tells, by the costs that the file of the discovery has
    told = yaml.safe_load(Path("domain.yaml").read_text())["discovery"]["attributes"].values()
    squared = sum(16 * float(Fraction(own["cost"])) for own in told) + release.statement.mu**2
    best = NormalDist().cdf(math.sqrt(squared) / 2) + sum(float(Fraction(own["delta"])) for own in told) / 2
    assert best <= release.statement.odds <= best + 0.001
    assert best > NormalDist().cdf(release.statement.mu / 2) + 0.01
    page = mdp.report_release("released")
    assert f"right at most {100 * release.statement.odds:.1f}% of the time" in page
    assert "declared in advance; they must not" not in page
    assert "The values of word and income were found in the records" in page
    together = release.statement.with_discoveries
    assert together in release.statement.assumed_of_table
    assert float(Fraction(together.parameters["mu"])) == pytest.approx(math.sqrt(squared))
    for face in (page, text, words("report", "released", "--markdown"), words("show", "released")):
        assert str(together) in face
        assert "chosen without the data; " not in face
    assert together.as_dict() in json.loads(run("show", "released", "--json").stdout)["privacy"]["assumed"]
    counts = dict(zip(*(release.answers[name].to_pylist() for name in ("word", "estimate")), strict=True))
    assert counts["w1"] == pytest.approx((WORDS == 1).sum(), abs=150)
    ledger = mdp.Ledger.open("log.ledger")
    assert [entry.state for entry in ledger.entries] == ["released"] * 3
    assert ledger.entries[0].cost.delta > 0
    assert ledger.account.delta == ledger.entries[0].cost.delta


@pytest.mark.parametrize("unit", [None, {"records": 4}, {"id": "user", "max_records": 4}])
def test_a_release_protects_whom_the_discovery_protected(found, unit):
    """The cost of the discovery would be another for anybody else."""
    spec = {name: said for name, said in {**RELEASE, "unit": unit}.items() if said is not None}
    with pytest.raises(mdp.MatrixDPError) as caught:
        mdp.release(spec)
    assert (caught.value.code, caught.value.path) == ("conflict", ("unit",))
    assert mdp.release({**RELEASE, "unit": {"id": "person", "max_records": 2}}).private


def test_the_best_guess_counts_every_discovery():
    """By definition, and under `replace` for a removal and an addition."""

    def odds(noise: Noise, *found: Discovered, **budget: Any) -> float:
        own = Budget(**budget)
        named = {f"a{place}": one for place, one in enumerate(found)}
        return statement(noise.cost(own), own, private=True, discovered=named).odds

    phi = NormalDist().cdf
    gaussian, other = Discovered(mu="3/4"), Discovered(mu="1", delta="1/10")
    assert odds(GAUSSIAN, gaussian, mu=1) == pytest.approx(phi(1.25 / 2), abs=0.001)
    assert odds(GAUSSIAN, gaussian, other, mu=1) == pytest.approx(
        phi(math.sqrt(2.5625) / 2) + 0.05, abs=0.001
    )
    moved = odds(GAUSSIAN, other, mu=1, neighbours="replace")
    assert moved == pytest.approx(phi(math.sqrt(5) / 2) + 0.1, abs=0.001)
    # two pure mechanisms of epsilon 1: at least the best guess from both answers, one coin for each
    best = 1 - 1 / (1 + math.e) ** 2 - math.e / (1 + math.e) ** 2
    pure = Discovered(epsilon="1", delta="1/1000")
    assert best + 0.0005 <= odds(LAPLACE, pure, epsilon=1) <= best + 0.1
    assert odds(LAPLACE, Discovered(epsilon="1", private=False), epsilon=1) == 1


def test_what_a_file_claims_falsely_is_found(found):
    honest = yaml.safe_load(Path("domain.yaml").read_text())

    def failed(change: Any) -> set[str]:
        forged = yaml.safe_load(json.dumps(honest))
        change(forged)
        Path("forged.yaml").write_text(json.dumps(forged))
        checked: Verification = mdp.verify_discovery("forged.yaml", ledger="log.ledger")
        return {finding.subject for finding in checked.failed}

    def of_word(change: Any) -> set[str]:
        return failed(lambda forged: change(forged["discovery"]["attributes"]["word"]))

    assert failed(lambda forged: None) == set()
    assert of_word(lambda own: own["rounds"][1].update(threshold=own["rounds"][1]["threshold"] - 5000)) == {
        "thresholds"
    }
    assert "thresholds" in of_word(lambda own: own["rounds"][0].update(delta="1/1000"))
    assert "thresholds" in of_word(lambda own: own.update(weight_bits=own["weight_bits"] + 1))
    assert "thresholds" in of_word(lambda own: own.update(cost="1/1000000"))
    assert of_word(lambda own: own["ledger"].update(entry="0" * 32)) == {"ledger"}
    assert of_word(lambda own: own.update(ledger=None)) == {"ledger"}
    assert "cost" in failed(lambda forged: forged["discovery"]["budget"].update(epsilon="1/2"))
    assert "cost" in failed(lambda forged: forged["domain"]["word"]["discovered"].update(mu="1/1000"))
    assert "domain" in failed(lambda forged: forged["domain"]["word"]["categories"].reverse())
    assert "domain" in failed(lambda forged: forged["domain"].pop("income"))
    damaged = run("verify", "forged.yaml", status=1)
    assert "FAILED" in damaged.stdout
    huge: list[Any] = [{"max_values": 10**12}, {"weight_bits": 10**12}, {"rounds": []}, {"rounds": [{}]}]
    for own in huge:
        honest["discovery"]["attributes"]["word"] |= own
        Path("huge.yaml").write_text(json.dumps(honest))
        assert "damaged-file" in run("verify", "huge.yaml", status=2).stderr
    Path("none.yaml").write_text(json.dumps({**honest, "discovery": {"format": 1}}))
    assert "damaged-file" in run("verify", "none.yaml", status=2).stderr


def test_a_second_discovery_is_debited_and_a_third_rejected(found):
    run("discover", "log.yaml", "--out", "domain.yaml", "--ledger", "log.ledger", status=2)
    assert len(mdp.Ledger.open("log.ledger").entries) == 2
    run("discover", "log.yaml", "--out", "domain.yaml", "--ledger", "log.ledger", "--force")
    before = Path("domain.yaml").read_bytes()
    written = load_discovery("log.yaml")[0]
    ledger, cost = mdp.Ledger.open("log.ledger"), Schedule.of(written).cost
    ledger.reserve(cost, written.budget)  # three of 5e-7 fit the half of 3e-6
    entries = ledger.entries
    told = run("discover", "log.yaml", "--out", "more.yaml", "--ledger", "log.ledger", status=2)
    assert "budget-exceeded" in told.stderr
    assert (ledger.entries, Path("domain.yaml").read_bytes(), Path("more.yaml").exists()) == (
        entries,
        before,
        False,
    )


def test_a_ledger_without_a_delta_takes_no_values_but_bounds(files):
    ledger = mdp.Ledger.create("rho.ledger", "log", Budget(rho=1, unit=Unit(4, "person")))
    with pytest.raises(PrivacyError) as caught:
        mdp.discover(SPEC, "d.yaml", table=TABLE, ledger=ledger)
    assert (caught.value.code, caught.value.path) == ("conflict", ("ledger",))
    assert not Path("d.yaml").exists()
    assert ledger.entries == ()
    mdp.discover(discovery(domain={"income": BOTH["income"]}), table=TABLE, ledger=ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("stopped", ["found", "yaml"])
def test_a_stop_after_the_debit_leaves_it_spent_and_no_file(files, monkeypatch, stopped):
    def fail(*_: object) -> Any:
        raise KeyboardInterrupt

    ledger = mdp.Ledger.create("l.ledger", "log", Budget(epsilon=3, delta=1e-5, unit=Unit(4, "person")))
    target = (WeightedRounds, "found") if stopped == "found" else ("matrixdp.discovery.found_yaml",)
    monkeypatch.setattr(*target, fail)
    with pytest.raises(KeyboardInterrupt) as caught:
        mdp.discover(SPEC, "d.yaml", table=TABLE, ledger=ledger)
    monkeypatch.undo()
    assert [entry.state for entry in ledger.entries] == ["reserved"]
    assert sorted(path.name for path in files.glob("*d.yaml*")) == []
    if stopped == "found":
        assert "counts as spent" in caught.value.__notes__[0]
    del caught
    assert [own.state for own in mdp.recover_ledger(ledger)] == ["abandoned"]
    assert ledger.account.delta > 0


def ledger_at(path: str) -> mdp.Ledger:
    return mdp.Ledger.create(path, "log", Budget(epsilon=3, delta=1e-5, unit=Unit(4, "person")))


@pytest.mark.parametrize("debited", [True, False])
def test_of_two_discoveries_for_one_file_one_is_made_and_paid_for(files, monkeypatch, debited):
    ledger = ledger_at("l.ledger") if debited else None
    told, found = [], WeightedRounds.found

    def begin_another(self: Any, *given: Any) -> Any:
        monkeypatch.undo()
        monkeypatch.chdir(files)
        for force in (False, True):
            with pytest.raises(StorageError) as caught:
                mdp.discover(SPEC, "d.yaml", table=TABLE, ledger=ledger, force=force)
            told.append(caught.value.code)
        return found(self, *given)

    monkeypatch.setattr(WeightedRounds, "found", begin_another)
    mdp.discover(SPEC, "d.yaml", table=TABLE, ledger=ledger)
    assert told == ["already-spent"] * 2
    assert sorted(path.name for path in files.glob("*d.yaml*")) == ["d.yaml"]
    assert ledger is None or [entry.state for entry in ledger.entries] == ["released"]
    with pytest.raises(StorageError) as caught:
        mdp.discover(SPEC, "d.yaml", table=TABLE, ledger=ledger)
    assert caught.value.code == "file-exists"
    Path("folder").mkdir()
    with pytest.raises(StorageError) as caught:
        mdp.discover(SPEC, "folder", table=TABLE, ledger=ledger, force=True)
    assert caught.value.code == "file-exists"
    assert ledger is None or len(ledger.entries) == 1


KILLED = """
import os, signal, sys
from matrixdp.noise import WeightedRounds
WeightedRounds.found = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
import matrixdp as mdp
from tests.discovery.test_discovery import SPEC, TABLE
mdp.discover(SPEC, "d.yaml", table=TABLE, ledger=sys.argv[1] if sys.argv[1:] else None)
"""


@pytest.mark.parametrize("debited", [True, False])
def test_a_discovery_that_was_killed_is_not_paid_for_again_unless_it_is_settled(files, debited):
    ledger = ledger_at("l.ledger") if debited else None
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    command = [sys.executable, "-W", "ignore", "-c", KILLED, *(["l.ledger"] if debited else [])]
    assert subprocess.run(command, cwd=files, env=environment, check=False).returncode == -signal.SIGKILL
    for force in (False, True):
        with pytest.raises(StorageError) as caught:
            mdp.discover(SPEC, "d.yaml", table=TABLE, ledger=ledger, force=force)
        assert caught.value.code == "already-spent"
    [left] = files.glob(".d.yaml.*")
    if ledger is None:
        shutil.rmtree(left)
    else:
        assert [entry.state for entry in ledger.entries] == ["reserved"]
        assert [own.state for own in mdp.recover_ledger(ledger)] == ["abandoned"]
    mdp.discover(SPEC, "d.yaml", table=TABLE, ledger=ledger)
    assert sorted(path.name for path in files.glob("*d.yaml*")) == ["d.yaml"]
    assert ledger is None or [entry.state for entry in ledger.entries] == ["abandoned", "released"]


def test_errors_keep_nothing_of_the_table(monkeypatch):
    def fail(self: object, persons: object, *_: object) -> Any:
        raise ArithmeticError

    monkeypatch.setattr(WeightedRounds, "found", fail)
    with pytest.raises(ArithmeticError) as caught:
        mdp.discover(SPEC, table={"person": ["p"], "word": ["secret"]})
    trace, held = caught.value.__traceback__, []
    while trace is not None:
        held.append(str(trace.tb_frame.f_locals) if "matrixdp" in trace.tb_frame.f_code.co_filename else "")
        trace = trace.tb_next
    assert "secret" not in "".join(own for own in held if "test_discovery" not in own)


def test_the_ledger_is_debited_before_any_record_is_read(files, monkeypatch):
    order: list[str] = []
    ledger = mdp.Ledger.create("l.ledger", "log", Budget(epsilon=3, delta=1e-5, unit=Unit(4, "person")))
    reserve, listed = mdp.Ledger.reserve, Source.person_values

    def person_values(self: Source, *given: Any) -> Any:
        read = listed(self, *given)
        return lambda: order.append("read") or read()

    monkeypatch.setattr(mdp.Ledger, "reserve", lambda *own: order.append("debited") or reserve(*own))
    monkeypatch.setattr(Source, "person_values", person_values)
    mdp.discover(SPEC, table=TABLE, ledger=ledger)
    assert order == ["debited", "read"]


def test_the_door_rejects_a_cost_above_the_budget():
    rule = WeightedRounds.within(Fraction(1), Fraction(1, 10**6), 2)
    with pytest.raises(PrivacyError):
        find_values(
            rule, open_source(TABLE), attribute()["w"], Budget(epsilon=1, delta=1e-6, unit=Unit(4, "person"))
        )


def test_tables_without_an_order_are_rejected_before_anything_is_spent(files):
    ledger = mdp.Ledger.create("l.ledger", "log", Budget(epsilon=3, delta=1e-5, unit=Unit(4, "person")))
    for table in (duckdb.sql("SELECT 1 AS person, 'x' AS word"), pl.LazyFrame(TABLE), {"person": [1]}):
        with pytest.raises(SourceError):
            mdp.discover(SPEC, table=table, ledger=ledger)
    assert ledger.entries == ()


def test_marked_attributes_of_a_specification_are_those_of_the_file(found):
    spec = {**RELEASE, "domain": {"word": {"discover": "values"}, "person_kind": ["a", "b"]}}
    assert load_specification(spec, base_path=found).domain.names == ("word", "person_kind", "income")
    for domain, place in (
        ({"word": ["a"]}, ("domain", "word")),
        ({"page": {"discover": "values"}}, ("domain", "page", "discover")),
    ):
        with pytest.raises(SpecificationError) as caught:
            load_specification({**RELEASE, "domain": domain}, base_path=found)
        assert caught.value.path == place


def test_a_ledger_that_begins_with_a_discovery_keeps_half_of_its_delta_for_them():
    total, quarter = Budget(epsilon=1, delta=1e-6), Fraction(1, 4 * 10**6)
    pure = Cost(Fraction(1, 8), LAPLACE, quarter)
    one = Account.empty(total).plus(pure, total)
    both = one.plus(pure, total)
    assert both.within
    assert (one.as_dict()["delta"], both.as_dict()["delta"]) == ("1/4000000", "1/2000000")
    with pytest.raises(PrivacyError) as caught:
        both.plus(pure, total)
    assert caught.value.code == "budget-exceeded"
    # noise keeps to the other half, however little discoveries use
    half = total.less(total.delta / 2)
    assert half is not None
    for begun in (one, both, Account.empty(total).plus(Cost(Fraction(1, 10**9), GAUSSIAN, quarter), total)):
        assert begun.limits == (half.mu**2, Fraction(1))
    gaussian = Account.empty(total).plus(Cost(Fraction(1, 10**9), GAUSSIAN, quarter), total)
    assert gaussian.plus(Cost(half.mu**2 - Fraction(1, 10**9), GAUSSIAN), total).within
    assert not gaussian.plus(Cost(half.mu**2, GAUSSIAN), total).within
    assert gaussian.spent.delta == total.delta
    # what a ledger is for is decided before anything is known
    with pytest.raises(PrivacyError) as late:
        Account.empty(total).plus(Cost(Fraction(1, 10**9), GAUSSIAN), total).plus(pure, total)
    assert late.value.code == "conflict"


def test_a_cost_with_delta_fits_its_budget_together():
    budget = Budget(epsilon=1, delta=1e-6)
    half = budget.less(budget.delta / 2)
    assert half is not None
    checked_cost(Cost(GAUSSIAN.cost(half).value, GAUSSIAN, budget.delta / 2), budget)
    checked_cost(Cost(Fraction(1), LAPLACE, budget.delta), budget)
    for cost in (
        Cost(GAUSSIAN.cost(budget).value, GAUSSIAN, Fraction(1, 10**9)),
        Cost(Fraction(1, 2), LAPLACE, budget.delta + Fraction(1, 10**20)),
        Cost(Fraction(1, 10**9), GAUSSIAN, budget.delta),
    ):
        with pytest.raises(PrivacyError):
            checked_cost(cost, budget)
