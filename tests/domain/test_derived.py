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
        (
            {"of": ["age", "sex"], "sql": "sex LIKE 'm%' AND age > 1 -- so"},
            ("false", "true"), (0, 0, 0, 0, 0, 1, 0, 1),
        ),
        ({"of": ["age"], "sql": "CASE WHEN age > 1 THEN 'x' END", "null": "no"}, ("x", "no"), (1, 1, 0, 0)),
        ({"of": ["sex"], "sql": "DATE '2020-01-31' + (sex = 'm')::INT", "null": "no"},
            ("2020-01-31", "2020-02-01", "no"), (0, 1)),
        (
            {"of": ["sex", "age"], "cases": [
                {"when": {"age": {"range": [1, 2]}, "sex": "f"}, "then": "a"},
                {"when": {"age": [0, 1]}, "then": "b"},
            ], "otherwise": "c"},
            ("b", "a", "c"), (0, 1, 1, 2, 0, 0, 2, 2),
        ),
        ({"columns": {"d": {"categories": ["2020-01-31"], "type": "date"}}, "sql": "month(d)"}, ("1",), (0,)),
        ({"of": ["sex"], "codes": [1, 0], "categories": ["a", "b"]}, ("a", "b"), (1, 0)),
    ],
)  # fmt: skip
def test_what_is_derived(spec: dict[str, Any], labels: tuple[str, ...], codes: tuple[int, ...]) -> None:
    assert derived(spec) == (labels, codes)
    domain = Domain({**AGE, "x": spec})
    assert Domain.from_spec(json.loads(json.dumps(domain.to_spec()))) == domain
    for written in (json.loads(json.dumps(spec)), domain["x"].to_spec()):
        SCHEMA.validate({"domain": {**AGE, "x": written}, "workload": [{"marginals": 1}]})


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"of": ["aeg"], "map": {}}, "x.map: found an empty mapping"),
        ({"of": ["aeg"], "sql": "1"}, "x.of[0]: found 'aeg'; expected an attribute of the domain that is no"),
        ({"of": ["y"], "sql": "1"}, "x.of[0]: found 'y'; expected an attribute of the domain that is not de"),
        ({"of": ["age"]}, "x: found none of them; expected one of sql, map, cases, codes"),
        ({"of": ["age"], "sql": "1", "map": {"0": 1}}, "x: found sql and map; expected one of"),
        ({"of": ["age"], "sql": "1", "otherwise": 2}, "x.otherwise: found it beside sql; expected it beside"),
        ({"sql": "1"}, "x: found no parents; expected at least one attribute under `of`, or one column"),
        ({"of": ["age"], "columns": {"age": 3}, "sql": "1"}, "x.columns.age: found an attribute under `of`"),
        ({"columns": {"z": {"map": {"a": "b"}}}, "sql": "1"}, "x.columns.z: found a derived attribute; expe"),
        ({"of": ["age"], "sql": "1", "column": "z"}, "x.column: found 'z'; expected it with a column under"),
        ({"of": ["age", "sex"], "map": {"0": 1}}, "x.map: found 2 parents; expected one parent beside `map`"),
        ({"of": ["age"], "map": {"0": 1, "7": 1}}, "x.map['7']: found '7'; expected a value of 'age', an"),
        ({"of": ["age"], "map": {"0": 1, "0.0": 1}}, "x.map['0.0']: found the same value a second time"),
        ({"of": ["age"], "map": {"0": "a"}}, "x.map: found nothing for age 1; expected a value for every co"),
        ({"of": ["age"], "map": "file.csv"}, "x.map: found 'file.csv'; expected a mapping from values to wh"),
        (
            {"of": ["age", "sex"], "cases": [{"when": {"age": 0}, "then": "a"}]},
            "x: found nothing for age 1 and sex f; expected a value for every combination, or `otherwise`",
        ),
        ({"of": ["age"], "cases": [{"when": {"sex": "f"}, "then": 1}]}, "x.cases[0].when.sex: found 'sex';"),
        ({"of": ["age"], "cases": [{"when": {"age": 7}, "then": 1}]}, "x.cases[0].when.age: found 7; expect"),
        (
            {"of": ["age"], "cases": [{"when": {"age": {"rnge": [1, 2]}}, "then": 1}]},
            "x.cases[0].when.age: found a mapping with the keys rnge; expected a value, a list of values, or",
        ),
        ({"of": ["age"], "sql": "agee + 1"}, "x.sql: found agee; expected one expression of the parents"),
        ({"of": ["age"], "sql": "1), (2"}, "x.sql: found what is no such expression; expected one expressio"),
        ({"of": ["age"], "sql": "count(*)"}, "x.sql: found "),
        ({"of": ["age"], "sql": "age < random()"}, "x.sql: found RANDOM(); expected comparisons, BETWEEN"),
        ({"of": ["age"], "sql": "year(CURRENT_DATE)"}, "x.sql: found CURRENT_DATE; expected comparisons"),
        ({"of": ["age"], "sql": "(SELECT 1 FROM 'pyproject.toml')"}, "x.sql: found ((SELECT 1 FROM"),
        ({"of": ["age"], "sql": "CASE WHEN age > 1 THEN 'x' END"}, "x: found nothing for age 0; expected a"),
        ({"of": ["age", "sex"], "sql": "age", "size": 2}, "x: found 2 for age 2 and sex f; expected a value"),
        ({"of": ["age"], "codes": [0, 1], "size": 2}, "x.codes: found 2 codes; expected 4, one for each com"),
        ({"of": ["age"], "codes": [0, 1, 2, 0], "size": 2}, "x.codes: found 2; expected codes from 0 to 1"),
        ({"of": ["age"], "sql": "1", "otherwse": 2}, "x.otherwse"),
        ({"map": {"f": "a"}, "otherwise": "b"}, "x.otherwise: found 'b', which no value is left for, as the"),
    ],
)  # fmt: skip
def test_what_cannot_be_derived(spec: dict[str, Any], told: str) -> None:
    with pytest.raises(DomainError) as caught:
        Domain({**AGE, "y": {"map": {"a": "b"}}, "x": spec})
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    "sql",
    [
        "(with recursive r(i) as (select 1 union all select i + 1 from r) select max(i) from r) > age",
        "(select count(*) from range(100000000) x, range(100000) y) > age",
        "length(repeat('x', 1000000000)) > age",
        "levenshtein('a', 'b') > age",
        "(select string_agg(name, ';') from duckdb_settings()) || age",
        "(select x from range(1000) t(x) using sample 1) + age",
        "to_timestamp(0)::varchar",
        "age::timestamptz",
        "pragma_platform()",
        "current_setting('memory_limit')",
        "getenv('HOME')",
        "age IN (SELECT 1)",
        "age) FROM (VALUES (1)) AS t (age",
        "1); SELECT (2",
        "count(*) OVER ()",
        "place0",
        "sources.age",
        "*",
        "$1",
        "user",
        "age AS x",
        "[age]",
        "",
    ],
)
def test_an_expression_is_of_the_parents_and_listed_functions_alone(sql: str) -> None:
    with pytest.raises(DomainError) as caught:
        derived({"of": ["age"], "sql": sql})
    assert caught.value.problem.path == ("x", "sql")
    assert len(str(caught.value)) < 400


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
    sql = " + ".join(
        f"length(regexp_matches(a || '{number}', '(a|1)*{number}$')::text)" for number in range(40)
    )
    with pytest.raises(DomainError, match=r"an expression that fails .INTERRUPT"):
        Domain({"a": 10_000, "x": {"of": ["a"], "sql": sql}})


def test_a_map_of_the_own_column_describes_its_values_beside_it() -> None:
    pay = Domain({"pay": {"map": {"low": 1, "high": 3}, "min": 1, "max": 3, "trim": True}})["pay"]
    assert (pay.size, pay.codebook.derivation.codes) == (3, (0, 2))


def test_tables_that_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation_module, "_MOST_COMBINATIONS", 7)
    with pytest.raises(DomainError, match="found 8 combinations of values of age, sex; expected at most 7"):
        derived({"of": ["age", "sex"], "sql": "1"})


def test_attributes_that_are_given_as_objects_are_checked_with_the_domain() -> None:
    book = Codebook(derivation=Derivation(("age",), (), (0, 0, 1, 1)))
    attribute = Categorical("half", ("low", "high"), codebook=book)
    domain = Domain([attribute_from_spec("age", 4), attribute])
    assert Domain.from_spec(domain.to_spec()) == domain
    with pytest.raises(
        DomainError, match=r"half\.of\[0\]: found 'age'; expected an attribute of the domain that"
    ):
        Domain([attribute])
    with pytest.raises(DomainError, match=r"half\.codes: found 4 codes; expected 3"):
        Domain([attribute_from_spec("age", 3), attribute])


def test_an_expression_sees_public_values_as_sql_has_them() -> None:
    for spec, values in (
        ({"categories": ["2", "3.0"]}, [2, 3]),
        ({"categories": ["2", "0.5"]}, [2.0, 0.5]),
        ({"categories": ["yes", "no"]}, ["yes", "no"]),
        ({"categories": [True, False]}, [True, False]),
        ({"categories": ["T", 0], "type": "boolean"}, [True, False]),
        ({"categories": ["01", "1"], "type": "text"}, ["01", "1"]),
        ({"categories": ["2020-01-31"], "type": "date", "null": "never"}, [date(2020, 1, 31), None]),
        ({"min": 1, "max": 2, "labels": {"1": "one"}}, [1, 2]),
        ({"edges": [0, 0.5, 2]}, [0.0, 0.5]),
    ):
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


def test_an_engine_of_a_strangers_is_not_asked_for_what_it_does_not_know() -> None:
    class Plain(Source):
        def count(self, request: Any) -> Any:
            raise NotImplementedError

    with pytest.raises(
        SourceError, match=r"domain\.x: found an attribute that is derived from others; expected"
    ):
        Plain().check(Domain({**AGE, "x": {"of": ["sex"], "sql": "sex"}}))


SPECIFICATION = """
data: t.csv
domain:
  age: {min: 0, max: 3}
  group: {map: groups.csv, column: carrier, trim: true}
  young: {of: [age], sql: "age < 2"}
workload:
  - marginals: [[group, young]]
  - product: {age: prefix}
privacy: {rho: 1000000}
out_of_domain: {group: {other: new}}
"""


def test_a_release_of_derived_attributes(tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("code,group\nAA,old\nB6,new\nDL,old\n")
    (tmp_path / "s.yaml").write_text(SPECIFICATION)
    (tmp_path / "t.csv").write_text("age,carrier\n0, AA\n1,B6\n2,DL\n3,ZZ\n1,AA\n7,AA\n")
    specification = load_specification(tmp_path / "s.yaml")
    assert load_specification(specification.document).domain == specification.domain
    strategy = mdp.select(specification.workload)
    budget = specification.budget
    assert budget is not None
    assert specification.data is not None
    measured = strategy.measure(specification.data, budget, out_of_domain=specification.out_of_domain)
    release = measured.reconstruct()
    assert [round(value) for value in release.answers.column("estimate").to_pylist()] == [
        2,
        1,
        1,
        1,
        1,
        3,
        4,
        5,
    ]
    assert release.answers.column("group").to_pylist()[:2] == ["group, young", "group, young"]
    mdp.save_release(release, tmp_path / "out")
    assert mdp.load_release(tmp_path / "out").workload.domain == specification.domain
    record = json.loads((tmp_path / "out" / "release.json").read_text())
    assert record["domain"]["young"]["sql"] == "age < 2"
    assert Domain.from_spec(record["domain"]) == specification.domain


def test_the_first_case_that_holds_decides_and_cases_are_looked_at_once() -> None:
    random = np.random.default_rng(1)
    parents = [Integers("u", 0, 19), Integers("v", 0, 14)]

    def cases(count: int) -> list[tuple[dict[str, Any], object]]:
        found: list[tuple[dict[str, Any], object]] = []
        for number in range(count):
            low, high = sorted(int(end) for end in random.integers(0, 20, 2))
            when: dict[str, Any] = {"u": {"range": [low, high]}}
            if number % 3:
                when["v"] = [int(value) for value in random.integers(0, 15, 3)]
            found.append((when, number))
        return found

    few, many = cases(6), cases(60)
    by_hand = [
        next(
            (
                then
                for when, then in few
                if when["u"]["range"][0] <= u <= when["u"]["range"][1] and v in when.get("v", [v])
            ),
            "rest",
        )
        for u, v in itertools.product(range(20), range(15))
    ]
    assert by_cases(parents, few, "rest") == by_hand
    # one look at every case for each of 300 combinations took over 7,000 calls
    assert calls(lambda: by_cases(parents, many, "rest")) < 4_000
