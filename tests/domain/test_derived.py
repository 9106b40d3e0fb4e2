"""Attributes that are derived from others by public tables: maps, cases, SQL over public values."""

import itertools
import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import matrixdp as mdp
from matrixdp.domain import Categorical, Codebook, Domain, Integers, attribute_from_spec
from matrixdp.domain import attribute as derivation_module
from matrixdp.domain import derived as expressions
from matrixdp.domain.attribute import Derivation
from matrixdp.domain.derived import by_cases, by_expression, public_values
from matrixdp.errors import DomainError, SourceError
from matrixdp.sources import Source, open_source
from matrixdp.specification import json_schema, load_specification
from tests.counting import calls

AGE: dict[str, Any] = {"age": {"min": 0, "max": 3}, "sex": ["f", "m"]}
#: Made once: that the schema is one itself is proved in its own tests, and takes longer than all of these.
SCHEMA = Draft202012Validator(json_schema())


def derived(spec: dict[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the labels and the codes of an attribute that is derived from others."""
    attribute = Domain({**AGE, "x": spec})["x"]
    assert attribute.codebook.derivation is not None
    labels = tuple(attribute.label(code) for code in range(attribute.size))
    return labels, attribute.codebook.derivation.codes


@pytest.mark.parametrize(
    ("spec", "labels", "codes"),
    [
        ({"of": ["age"], "map": {"0": "a", 1: "b"}, "otherwise": "a"}, ("a", "b"), (0, 1, 0, 0)),
        ({"map": {"AA": "old", "B6": "new", "DL": "old"}}, ("old", "new"), (0, 1, 0)),
        ({"map": {"AA": "old", None: "gone"}, "null": "null"}, ("old", "gone"), (0, 1)),
        ({"map": {"AA": "old"}, "null": "unknown"}, ("old", "unknown"), (0, 1)),
        ({"map": {"01": 1, "1": 2}, "type": "text"}, ("1", "2"), (0, 1)),
        ({"map": {"AA": "x", "DL": "y"}, "categories": ["y", "z", "x"]}, ("y", "z", "x"), (2, 0)),
        ({"map": {"AA": "x"}, "labels": {"x": "the x"}}, ("the x",), (0,)),
        ({"of": ["age"], "sql": "age // 2", "min": 0, "max": 2}, ("0", "1", "2"), (0, 0, 1, 1)),
        ({"of": ["age"], "sql": "age * 1.5", "edges": [0, 2, 9]}, ("[0, 2)", "[2, 9)"), (0, 0, 1, 1)),
        ({"of": ["age", "sex"], "sql": "sex LIKE 'm%' AND age > 1 -- so"},
            ("false", "true"), (0, 0, 0, 0, 0, 1, 0, 1)),
        ({"of": ["age"], "sql": "CASE WHEN age > 1 THEN 'x' END", "null": "no"}, ("x", "no"), (1, 1, 0, 0)),
        ({"of": ["sex"], "sql": "DATE '2020-01-31' + (sex = 'm')::INT", "null": "no"},
            ("2020-01-31", "2020-02-01", "no"), (0, 1)),
        ({"of": ["sex", "age"], "cases": [{"when": {"age": {"range": [1, 2]}, "sex": "f"}, "then": "a"},
            {"when": {"age": [0, 1]}, "then": "b"}], "otherwise": "c"},
            ("b", "a", "c"), (0, 1, 1, 2, 0, 0, 2, 2)),
        ({"columns": {"d": {"categories": ["2020-01-31"], "type": "date"}}, "sql": "month(d)"}, ("1",), (0,)),
        ({"of": ["sex"], "codes": [1, 0], "categories": ["a", "b"]}, ("a", "b"), (1, 0)),
        ({"map": {"low": 1, "high": 3}, "min": 1, "max": 3, "trim": True}, ("1", "2", "3"), (0, 2)),
    ],
)  # fmt: skip
def test_what_is_derived(spec: dict[str, Any], labels: tuple[str, ...], codes: tuple[int, ...]) -> None:
    assert derived(spec) == (labels, codes)
    domain = Domain({**AGE, "x": spec})
    assert Domain.from_spec(json.loads(json.dumps(domain.to_spec()))) == domain
    for written in (json.loads(json.dumps(spec)), domain["x"].to_spec()):
        SCHEMA.validate({"domain": {**AGE, "x": written}, "workload": [{"marginals": 1}]})


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("age between 1 and 2", [False, True, True, False]),
        ("regexp_matches('a' || age, '[12]$')", [False, True, True, False]),
        ("date_part('year', DATE '2020-12-31' + age::int)", [2020, 2021, 2021, 2021]),
        ("case when AGE % 2 = 0 then 'even' else 'odd' end /* so */", ["even", "odd", "even", "odd"]),
        ("coalesce(nullif(age, 0), -1)", [-1, 1, 2, 3]),
        ("age / 2", [0.0, 0.5, 1.0, 1.5]),
        ("substring('it''s', age + 1, 1)", ["i", "t", "'", "s"]),
        ("upper(age::varchar || 'a')", ["0A", "1A", "2A", "3A"]),
    ],
)
def test_an_expression_means_what_it_means_in_duckdb(sql: str, values: list[object]) -> None:
    assert by_expression([Domain(AGE)["age"]], sql) == values


def test_an_expression_that_takes_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "_MOST_SECONDS", 0.02)
    one = "length(regexp_matches(a || '{0}', '(a|1)*{0}$')::text)"
    sql = " + ".join(one.format(number) for number in range(40))
    with pytest.raises(DomainError, match="INTERRUPT"):
        Domain({"a": 10_000, "x": {"of": ["a"], "sql": sql}})


def test_tables_that_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation_module, "_MOST_COMBINATIONS", 7)
    with pytest.raises(DomainError) as caught:
        derived({"of": ["age", "sex"], "sql": "1"})
    assert (caught.value.code, caught.value.path) == ("too-large", ("x",))


def test_an_attribute_in_python_comes_back() -> None:
    book = Codebook(derivation=Derivation(("age",), (), (0, 0, 1, 1)))
    domain = Domain([attribute_from_spec("age", 4), Categorical("half", ("low", "high"), codebook=book)])
    assert Domain.from_spec(domain.to_spec()) == domain


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ({"categories": ["2", "3.0"]}, [2, 3]),
        ({"categories": ["2", "0.5"]}, [2.0, 0.5]),
        ({"categories": ["yes", "no"]}, ["yes", "no"]),
        ({"categories": [True, False]}, [True, False]),
        ({"categories": ["T", 0], "type": "boolean"}, [True, False]),
        ({"categories": ["01", "1"], "type": "text"}, ["01", "1"]),
        ({"categories": ["2020-01-31"], "type": "date", "null": "never"}, [date(2020, 1, 31), None]),
        ({"min": 1, "max": 2, "labels": {"1": "one"}}, [1, 2]),
        ({"edges": [0, 0.5, 2]}, [0.0, 0.5]),
    ],
)
def test_an_expression_sees_public_values_as_sql_has_them(spec: dict[str, Any], values: list[Any]) -> None:
    assert public_values(attribute_from_spec("a", spec)) == values


def test_columns_of_two_derived_attributes_are_told_apart() -> None:
    spec = {"columns": {"delay": {"min": -5, "max": 5}}, "sql": "delay > 0"}
    other = {"columns": {"delay": {"edges": [-9, 0, 9]}}, "sql": "delay < 0"}
    domain = Domain({"late": spec, "early": other, "late: delay": 2})
    assert domain.readings.names == ("late: delay*", "early: delay", "late: delay")
    assert domain.columns == ("delay", "late: delay")
    table = {"delay": [-8, -3, 0, 4, 7], "late: delay": [0, 1, 0, 1, 1]}
    ((_, found),) = open_source(table).marginals(domain, [("late", "early")], mdp.domain.OutOfDomain())
    # late lists false first, early true; -8 and 7 are out of the first one's domain
    assert found.tolist() == [[1, 1], [0, 1]]


def test_a_third_party_engine_is_not_asked_for_what_it_does_not_know() -> None:
    class Plain(Source):
        def count(self, request: Any) -> Any:
            raise NotImplementedError

    with pytest.raises(SourceError) as caught:
        Plain().check(Domain({**AGE, "x": {"of": ["sex"], "sql": "sex"}}))
    assert (caught.value.code, caught.value.path) == ("not-supported", ("domain", "x"))


SPECIFICATION = """
data: t.csv
domain:
  age: {min: 0, max: 3}
  group: {map: groups.csv, column: carrier, trim: true}
  young: {of: [age], sql: "age < 2"}
  sex: {labels: {0: female, 1: male}, null: unknown, column: SEX}
workload:
  - marginals: [[group, young], [sex]]
  - product: {age: prefix}
privacy: {rho: 1000000}
out_of_domain: {group: {other: new}}
"""


def test_a_release_of_derived_and_labelled_attributes(tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("code,group\nAA,old\nB6,new\nDL,old\n")
    (tmp_path / "s.yaml").write_text(SPECIFICATION)
    (tmp_path / "t.csv").write_text("age,carrier,SEX\n0, AA,0\n1,B6,1\n2,DL,1\n3,ZZ,\n1,AA,1\n7,AA,1\n")
    specification = load_specification(tmp_path / "s.yaml")
    assert load_specification(specification.document).domain == specification.domain
    assert specification.budget is not None
    assert specification.data is not None
    measured = mdp.select(specification.workload).measure(
        specification.data, specification.budget, out_of_domain=specification.out_of_domain
    )
    release = measured.reconstruct()
    estimates = [round(value) for value in release.answers.column("estimate").to_pylist()]
    assert estimates == [2, 1, 1, 1, 1, 3, 1, 1, 3, 4, 5]
    assert release.answers.column("sex").to_pylist()[4:7] == ["female", "male", "unknown"]
    mdp.save_release(release, tmp_path / "out")
    assert mdp.load_release(tmp_path / "out").workload.domain == specification.domain
    assert mdp.verify_release(tmp_path / "out").holds
    record = json.loads((tmp_path / "out" / "release.json").read_text())
    assert record["domain"]["young"]["sql"] == "age < 2"


PLACES = 'city,state,region\nRome,GA,South\nRome,NY,North\n"Paris, West",TX,South\nAthens,GA,South\n'
PLACED = {
    "columns": ["city", "state"],
    "values_from": "places.csv",
    "otherwise": "elsewhere",
    "levels": ["region"],
}


def test_rows_of_a_public_table_are_the_values_of_several_columns(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text(PLACES)
    domain = {"place": PLACED, "sex": ["f", "m"]}
    workload = [{"marginals": [["place"], ["region", "sex"]]}]
    spec: dict[str, Any] = {"domain": domain, "workload": workload, "privacy": {"rho": 200}}
    spec["out_of_domain"] = {"place": {"other": "elsewhere"}}
    (tmp_path / "s.yaml").write_text(json.dumps(spec))
    read = load_specification(tmp_path / "s.yaml")
    SCHEMA.validate(spec)
    assert load_specification(read.document).domain == read.domain
    records = [
        ("Rome", "GA"),
        ("Rome", "NY"),
        ("Rome", "TX"),
        ("Paris, West", "TX"),
        ("Oslo", "GA"),
        (None, "GA"),
    ]
    table = {"city": [c for c, _ in records], "state": [s for _, s in records], "sex": ["f"] * len(records)}
    release = mdp.release(read, tmp_path / "out", table=table, accept_weak_privacy=True)
    found = release.table("place").to_pandas()
    counts = dict(zip(found["place"], found["estimate"].round(), strict=True))
    assert list(counts) == ["Rome, GA", "Rome, NY", "Paris, West, TX", "Athens, GA", "elsewhere"]
    assert list(counts.values()) == [1, 1, 1, 0, 3]
    assert [round(n) for n in release.answer(mdp.marginals([["region"]]))["estimate"].to_pylist()] == [
        2,
        1,
        3,
    ]
    assert mdp.verify_release(tmp_path / "out").holds


def test_a_public_table_is_joined_by_a_key(tmp_path: Path) -> None:
    joined = {"school": ["1", "2", "3"], "type": ["public", "private", "public"]}
    spec = {"columns": ["school"], "values_from": joined, "value": "type"}
    domain = Domain({"kind": spec})
    assert [domain["kind"].label(code) for code in domain["kind"].all_codes] == ["public", "private"]
    table = {"school": [1, 1, 2, 3, 9]}
    ((_, found),) = open_source(table).marginals(domain, [("kind",)], mdp.domain.OutOfDomain())
    assert found.tolist() == [3, 1]


def test_places_of_a_nation_are_checked_without_a_look_at_each_pair() -> None:
    rows = [(f"city {n % 900}", f"state {n % 49}") for n in range(1_500)]
    table = {"city": [c for c, _ in rows], "state": [s for _, s in rows]}
    spec = {"columns": ["city", "state"], "values_from": table, "otherwise": "elsewhere"}
    # a look at each of the 44,100 pairs takes over a million calls
    assert calls(lambda: Domain({"place": spec})) < 450_000


def test_the_first_case_that_holds_decides_and_cases_are_looked_at_once() -> None:
    random = np.random.default_rng(1)
    parents = [Integers("u", 0, 19), Integers("v", 0, 14)]

    def case(number: int) -> tuple[dict[str, Any], object]:
        when: dict[str, Any] = {"u": {"range": sorted(random.integers(0, 20, 2).tolist())}}
        return when | ({"v": random.integers(0, 15, 3).tolist()} if number % 3 else {}), number

    def holds(when: dict[str, Any], u: int, v: int) -> bool:
        low, high = when["u"]["range"]
        return low <= u <= high and v in when.get("v", [v])

    few, many = ([case(number) for number in range(count)] for count in (6, 60))
    by_hand = [
        next((then for when, then in few if holds(when, u, v)), "rest")
        for u, v in itertools.product(range(20), range(15))
    ]
    assert by_cases(parents, few, "rest") == by_hand
    # one look at every case for each of 300 combinations took over 7,000 calls
    assert calls(lambda: by_cases(parents, many, "rest")) < 4_000
