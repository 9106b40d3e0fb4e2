"""What domains, attributes, derived attributes, levels and rules of what is out of domain reject."""

import math
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import matrixdp as mdp
from matrixdp import domain as d
from matrixdp.domain import Domain, OutOfDomain, attribute_from_spec
from matrixdp.domain.attribute import Derivation
from matrixdp.specification import load_specification
from tests.refusals import Refusal, numbered

#: What is rejected, by the code of the error and its place.
Rejected = dict[tuple[str, str], list[Any]]

DOMAIN = Domain({"sex": ["female", "male"], "age": range(115), "income": {"edges": [0, 1e4]}, "code": 40})
YEAR = {"from": "2025-01-01", "to": "2025-12-31"}
COUNTY = {"categories": ["Kings", "Orange"], "levels": {"state": {"NY": ["Kings"], "CA": ["Orange"]}}}
COUNTIES = Domain({"county": COUNTY, "age": 3, "pay": {"size": 3, "null": "none"}})
ALL = d.Level("l", (("all", (0, 1)),))
OF_AGE = d.Codebook(derivation=Derivation(("age",), (), (0, 0, 1, 1)))
HALF = d.Categorical("half", ("a", "b"), codebook=OF_AGE)
BOTH = {"size": 2, "levels": {"both": {"all": [0, 1]}}}
COUNT = Domain({"count": 3})
SEX = {"categories": ["f", "m"]}
PARENTS: dict[str, Any] = {
    "age": range(4), "sex": ["f", "m"], "y": {"map": {"a": "b"}}, "pay": {"amount": [0, 9]},
}  # fmt: skip
MONTH = d.Dates("d", "2012-12-30", "2013-02-11", "month")


def made(cls: Any, *arguments: Any, **options: Any) -> Callable[[], Any]:
    return lambda: cls(*arguments, **options)


def ask(*entries: Any) -> Callable[[], Any]:
    return lambda: mdp.Workload(COUNTIES, *entries)


#: Specifications of an attribute `a`.
SPECS: Rejected = {
    ("empty", "a"): [[]],
    ("duplicate", "a[2]"): [["x", "y", "x"]],
    ("duplicate", "a[1]"): [[True, "yes"], [2**53, 2**53 + 1]],
    ("wrong-type", "a[1]"): [["x", " -Infinity "]],
    ("wrong-type", "a[0]"): [[1e300], [5e-324], [None], [math.nan], ["a\0"]],
    ("wrong-type", "a"): [{"a", "b"}, "female", None, True, 2.5, object(), {}, {"low": 0, 3: 1}, range(0),
        range(0, 10, 2), (0, 4)],
    ("out-of-range", "a"): [0],
    ("missing-key", "a.max"): [{"min": 0}],
    ("unknown-key", "a.mim"): [{"mim": 0, "max": 3}],
    ("unknown-key", "a.min"): [{"edges": [0, 1], "min": 0}],
    ("unknown-key", "a.levels_from"): [{"categories": ["x"], "levels_from": {"t": ["x"], "l": ["X"]}}],
    ("out-of-range", "a.max"): [{"min": 5, "max": 3}, {"min": 0, "max": 2**53},
        {"min": 1, "max": 1, "bins": 2}, {"min": 0, "max": math.inf, "bins": 2}],
    ("out-of-range", "a.min"): [{"min": 0.5, "max": 3}],
    ("wrong-type", "a.min"): [{"min": True, "max": 3}, {"min": "3", "max": 4}],
    ("out-of-range", "a.bins"): [{"min": 0, "max": 1, "bins": 0}],
    ("out-of-range", "a.edges[1]"): [{"min": 1, "max": 1 + 2**-52, "bins": 9}, {"edges": [0, "-inf"]},
        {"edges": ["inf", 0]}],
    ("wrong-size", "a.edges"): [{"edges": [0]}],
    ("out-of-range", "a.edges[2]"): [{"edges": [0, 1, 1]}],
    ("wrong-type", "a.edges[1]"): [{"edges": [0, math.nan]}, {"edges": [0, None]}],
    ("wrong-type", "a.edges"): [{"edges": 7}],
    ("wrong-type", "a.closed"): [{"edges": [0, 1], "closed": "yes"}],
    ("conflict", ""): [d.Integers("age", 0, 9)],
    ("conflict", "a.null"): [{"categories": ["x"], "null": "x"}, {"min": 0, "max": 3, "null": "3"},
        {"edges": [0, 3], "null": "0.0"}, {"min": 0, "max": 3, "null": "z", "labels": {0: "z"}},
        {"size": 2, "null": {"en": "none", "fr": "1"}}],
    ("conflict", "a.categories[1]"): [{"categories": ["x", ""], "null": "none"},
        {"categories": ["x", " "], "null": "n", "trim": True}],
    ("duplicate", "a.categories[1]"): [{"categories": ["x", "x "], "trim": True},
        {"categories": ["x", "x"], "type": "text"}, {"categories": [1, "1.0"], "type": "number"},
        {"categories": ["yes", 1], "type": "boolean"}, {"categories": ["x", "X"], "case": "ignore"}],
    ("unknown-name", "a.labels['2']"): [{"size": 2, "labels": {2: "x"}}],
    ("duplicate", "a.labels['1']"): [{"size": 2, "labels": {0: "x", 1: "x"}}],
    ("duplicate", "a.labels['00']"): [{"size": 2, "labels": {0: "x", "00": "y"}}],
    ("conflict", "a.labels['0']"): [{"size": 2, "labels": {0: "1"}}],
    ("wrong-type", "a.labels['0']"): [{"size": 2, "labels": {0: 1}}],
    ("wrong-type", "a.labels"): [{"size": 2, "labels": ["x", "y"]}, {"size": 2, "labels": {math.nan: "x"}}],
    ("empty", "a.labels"): [{"labels": {}}],
    ("duplicate", "a.labels.m"): [{"labels": {"f": {"en": "a", "fr": "b"}, "m": {"en": "c", "fr": "b"}}}],
    ("conflict", "a.labels.f"): [{"labels": {"f": {"en": "a", "fr": "m"}, "m": "c"}}],
    ("unknown-name", "a.title.Englisch"): [{"size": 2, "title": {"Englisch": "Sex"}}],
    ("empty", "a.title"): [{"size": 2, "title": {}}],
    ("wrong-type", "a.unit"): [{"size": 2, "unit": 3}],
    ("unknown-name", "a.level_texts.b"): [{**BOTH, "level_texts": {"b": {}}}],
    ("unknown-name", "a.level_texts.both.labels.none"): [
        {**BOTH, "level_texts": {"both": {"labels": {"none": "x"}}}}],
    ("wrong-type", "a.column"): [{"min": 0, "max": 3, "column": ""}],
    ("wrong-type", "a.null"): [{"min": 0, "max": 3, "null": ["x"]}],
    ("wrong-type", "a.trim"): [{"min": 0, "max": 3, "trim": "yes"}],
    ("missing-key", "a.by"): [{"from": "2013-01-01", "to": "2013-12-31"}],
    ("wrong-type", "a.to"): [{"from": "2013-01-01", "by": "day"}],
    ("wrong-type", "a.from"): [{"from": "2013-02-30", "to": "2013-12-31", "by": "day"},
        {"from": datetime(2013, 1, 1), "to": "2013-01-31", "by": "day"}],
    ("out-of-range", "a.to"): [{"from": "2013-02-01", "to": "2013-01-31", "by": "day"}],
    ("out-of-range", "a.levels[1]"): [YEAR | {"by": "quarter", "levels": ["year", "month"]}],
    ("out-of-range", "a.levels[0]"): [YEAR | {"by": "week", "levels": ["month"]},
        YEAR | {"by": "day", "levels": ["day"]}, YEAR | {"by": "hour", "levels": ["day"]}],
    ("duplicate", "a.levels[1]"): [YEAR | {"by": "day", "levels": ["year", "year"]}],
    ("unknown-name", "a.levels[0]"): [YEAR | {"by": "day", "levels": ["quater"]}],
    ("wrong-type", "a.levels"): [YEAR | {"by": "day", "levels": 3}],
    ("unknown-name", "a.by"): [{"from": "2013-02-01", "to": "2013-01-31", "by": "moth"}],
    ("unknown-name", "a.labels['24']"): [{"by": "hour", "labels": {24: "x"}}],
    ("wrong-type", "a.type"): [{"categories": ["1"], "type": None}, {"min": 0, "max": 3, "type": "text"},
        {"edges": [0, 3], "type": "integer"}],
    ("unknown-name", "a.type"): [{"categories": ["1"], "type": "string"}],
    ("empty", "a.categories"): [{"categories": [], "type": "text"}],
    ("wrong-type", "a.categories[1]"): [{"categories": ["x", 1], "type": "text"}],
    ("wrong-type", "a.categories[0]"): [{"categories": ["x\0"], "type": "text"},
        {"categories": ["1e300"], "type": "number"}, {"categories": [True], "type": "number"},
        {"categories": [1.5], "type": "integer"}, {"categories": [2], "type": "boolean"},
        {"categories": ["2020-02-30"], "type": "date"},
        {"categories": [datetime(2020, 1, 1)], "type": "date"}, {"categories": [None], "type": "number"}],
    ("unknown-key", "a.catgories"): [{"catgories": ["x"], "type": "text"}],
    ("unknown-name", "a.case"): [{"categories": ["x"], "case": "fold"},
        {"categories": ["1"], "type": "number", "case": "ignore"}],
    ("unknown-name", "a.round"): [{"min": 0, "max": 3, "round": "up"}],
    ("unknown-key", "a.round"): [{"size": 3, "round": "floor"}],
    ("wrong-type", "a.clip"): [{"min": 0, "max": 3, "clip": 99}],
    ("unknown-key", "a.clip"): [{"size": 3, "clip": True}],
    ("conflict", "a.clip"): [{"by": "hour", "clip": True}],
    ("wrong-type", "a.missing"): [{"min": 0, "max": 3, "missing": 99}],
    ("wrong-type", "a.missing[1]"): [{"min": 0, "max": 3, "missing": [99, "-inf"]},
        {"by": "hour", "missing": [0, "1900-01-01T00:00"]}],
    ("conflict", "a.missing"): [{"categories": ["x", 9], "missing": ["9.0"]}],
    ("unknown-name", "a.time_zone"): [{"by": "hour", "time_zone": "America/Chicgo"},
        {"by": "hour", "time_zone": "America"}, {"by": "hour", "time_zone": "../UTC"},
        {"by": "hour", "time_zone": "posixrules"}, {"by": "hour", "time_zone": "localtime"}],
    ("wrong-type", "a.categories"): [{"categories": "codes.txt"}],
    ("wrong-size", "a.amount"): [{"amount": [1]}],
    ("wrong-type", "a.amount[0]"): [{"amount": ["0", 1]}],
    ("out-of-range", "a.amount[1]"): [{"amount": [5, 5]}, {"amount": [0, 0.5]}, {"amount": [0, 1e13]}],
    ("out-of-range", "a.step"): [{"amount": [0, 1], "step": 0}, {"amount": [0, 1], "step": 1e-10}],
    ("not-supported", "a"): [{"amount": [0, 1], "labels": {0: "none"}}],
    ("wrong-type", "a.squares"): [{"amount": [0, 10], "squares": 2}],
    ("unknown-key", "a.bins"): [{"amount": [0, 10], "bins": 2}],
}  # fmt: skip

#: Levels of an attribute `sex` of the categories f and m.
LEVELS: Rejected = {
    ("wrong-type", "sex.levels.l"): [{"l": ["f"]}, {"l": {}}, {"l": {" ": ["f", "m"]}},
        {"l": {"": ["f", "m"]}}],
    ("domain", "sex.levels.l"): [{"l": {"x": ["f"]}}],
    ("duplicate", "sex.levels.l.y"): [{"l": {"x": ["f", "m"], "y": ["f"]}}],
    ("duplicate", "sex.levels.l['']"): [{"l": {"x": ["f", "m"], "": ["f"]}}],
    ("empty", "sex.levels.l.y"): [{"l": {"x": ["f", "m"], "y": []}}],
    ("unknown-name", "sex.levels.l.x[1]"): [{"l": {"x": ["f", "n"]}}],
    ("wrong-type", "sex.levels.l.x"): [{"l": {"x": "f"}}, {"l": {"x": {"rang": [1, 2]}}}],
    ("out-of-range", "sex.levels.l.x.range"): [{"l": {"x": {"range": ["m", "f"]}}}],
    ("wrong-type", "sex.levels"): [{" ": {"x": ["f", "m"]}}, ["l"], "levels.csv"],
}  # fmt: skip

#: Tables of areas of an attribute `a`.
AREAS: Rejected = {
    ("wrong-type", "a.levels_from"): ["areas.csv", ["x"]],
    ("wrong-type", "a.levels_from.t"): [{"t": "x"}],
    ("wrong-type", "a.levels_from.t[0]"): [{"t": [["x"]], "l": ["X"]}],
    ("empty", "a.levels_from"): [{}, {"t": [], "l": []}],
    ("wrong-size", "a.levels_from"): [{"t": ["x"]}, {"area": ["x"], "parent": [""], "level": ["t"]}],
    ("wrong-size", "a.levels_from.l"): [{"t": ["x"], "l": ["X", "Y"]}],
    ("duplicate", "a.levels_from.t[1]"): [{"t": ["x", "x"], "l": ["X", "Y"]}],
    ("duplicate", "a[1]"): [{"t": ["1", "01"], "l": ["X", "X"]}],
    ("conflict", "a.levels_from.county[2]"): [
        {"t": ["x", "y", "z", "u"], "county": ["Orange", "Kings", "Orange", "Yolo"],
            "state": ["NY", "NY", "CA", "CA"]},
        {"t": [*"xyzu"], "county": ["K", "O", "O", ""], "state": [*"SSSS"], "part": ["p", "p", "", "p"]}],
    ("empty", "a.levels_from.l[1]"): [{"t": ["x", "y"], "l": ["X", ""]}],
    ("conflict", "a.levels_from.a"): [{"t": ["x", "y"], "a": ["X", "X"]}],
    ("wrong-type", "a.levels"): [{"t": ["x", "y"], " ": ["X", "X"]}],
    ("wrong-type", "a.levels.l"): [{"t": ["x", "y"], "l": ["X", " "]}],
    ("duplicate", "a.levels_from.area[1]"): [{"area": ["x", "x"], "parent": ["X", "Y"], "level": ["t", "t"]}],
    ("unknown-name", "a.levels_from.parent[1]"): [
        {"area": ["X", "x"], "parent": ["", "Y"], "level": ["l", "t"]}],
    ("conflict", "a.levels_from.parent[0]"): [
        {"area": ["X", "Y"], "parent": ["Y", "X"], "level": ["l", "m"]},
        {"area": ["X", "Y", "x"], "parent": ["X", "", "Y"], "level": ["l", "l", "t"]},
        {"area": ["X", "Y", "x"], "parent": ["Y", "", "X"], "level": ["l", "l", "t"]}],
}  # fmt: skip

#: Attributes `x` derived from `age`, which has the values 0 to 3, and `sex`.
DERIVED: Rejected = {
    ("empty", "x.map"): [{"of": ["aeg"], "map": {}}],
    ("unknown-name", "x.of[0]"): [{"of": ["aeg"], "sql": "1"}, {"of": ["y"], "sql": "1"}],
    ("conflict", "x"): [{"of": ["age"]}, {"of": ["age"], "sql": "1", "map": {"0": 1}}],
    ("conflict", "x.otherwise"): [{"of": ["age"], "sql": "1", "otherwise": 2},
        {"map": {"f": "a"}, "otherwise": "b"}],
    ("missing-key", "x"): [{"sql": "1"}],
    ("wrong-kind", "x"): [{"of": ["pay"], "sql": "pay > 3"},
        {"columns": {"z": {"amount": [0, 1]}}, "sql": "1"}],
    ("unknown-key", "x.amount"): [{"of": ["age"], "map": {"0": 1}, "otherwise": 2, "amount": [1, 2]}],
    ("duplicate", "x.columns.age"): [{"of": ["age"], "columns": {"age": 3}, "sql": "1"}],
    ("not-supported", "x.columns.z"): [{"columns": {"z": {"map": {"a": "b"}}}, "sql": "1"}],
    ("domain", "x.column"): [{"of": ["age"], "sql": "1", "column": "z"}],
    ("not-supported", "x.map"): [{"of": ["age", "sex"], "map": {"0": 1}}],
    ("unknown-name", "x.map['7']"): [{"of": ["age"], "map": {"0": 1, "7": 1}}],
    ("duplicate", "x.map['0.0']"): [{"of": ["age"], "map": {"0": 1, "0.0": 1}}],
    ("domain", "x.map"): [{"of": ["age"], "map": {"0": "a"}}],
    ("wrong-type", "x.map"): [{"of": ["age"], "map": "file.csv"}],
    ("domain", "x"): [{"of": ["age", "sex"], "cases": [{"when": {"age": 0}, "then": "a"}]}],
    ("domain", "x.values_from"): [{"of": ["age"], "values_from": {"age": ["0", "1"]}}],
    ("unknown-name", "x.values_from"): [
        {"of": ["sex"], "values_from": {"age": ["0"]}, "otherwise": "a"},
        {"of": ["age"], "values_from": {"age": ["7"]}, "otherwise": "a"},
        {"of": ["age"], "values_from": {"age": ["0"]}, "value": "aeg", "otherwise": "a"}],
    ("unknown-name", "x.columns[1]"): [
        {"columns": ["age", "sxe"], "values_from": {"age": ["0"], "sex": ["f"]}, "otherwise": "a"}],
    ("unknown-name", "x.levels[0]"): [
        {"of": ["age"], "values_from": {"age": ["0"]}, "levels": ["sex"], "otherwise": "a"}],
    ("duplicate", "x.values_from[1]"): [
        {"of": ["age"], "values_from": {"age": ["0", "0"]}, "otherwise": "a"}],
    ("wrong-size", "x.values_from.sex"): [
        {"of": ["age"], "values_from": {"age": ["0", "1"], "sex": ["f"]}, "otherwise": "a"}],
    ("conflict", "x.columns"): [{"columns": ["age"], "sql": "age"}],
    ("conflict", "x.value"): [{"of": ["age"], "sql": "age", "value": "age"}],
    ("unknown-name", "x.cases[0].when.sex"): [
        {"of": ["age"], "cases": [{"when": {"sex": "f"}, "then": 1}]}],
    ("unknown-name", "x.cases[0].when.age"): [{"of": ["age"], "cases": [{"when": {"age": 7}, "then": 1}]}],
    ("wrong-type", "x.cases[0].when.age"): [
        {"of": ["age"], "cases": [{"when": {"age": {"rnge": [1, 2]}}, "then": 1}]}],
    ("unknown-name", "x"): [{"of": ["age"], "sql": "CASE WHEN age > 1 THEN 'x' END"},
        {"of": ["age", "sex"], "sql": "age", "size": 2}],
    ("wrong-size", "x.codes"): [{"of": ["age"], "codes": [0, 1], "size": 2}],
    ("out-of-range", "x.codes"): [{"of": ["age"], "codes": [0, 1, 2, 0], "size": 2}],
    ("unknown-key", "x.otherwse"): [{"of": ["age"], "sql": "1", "otherwse": 2}],
}  # fmt: skip

#: Expressions of `age` that are more than comparisons, arithmetic and listed functions of it.
SQL: Rejected = {
    ("sql-unsupported", "x.sql"): [
        "(with recursive r(i) as (select 1 union all select i + 1 from r) select max(i) from r) > age",
        "(select count(*) from range(100000000) x, range(100000) y) > age",
        "(SELECT 1 FROM 'pyproject.toml')", "age IN (SELECT 1)", "age) FROM (VALUES (1)) AS t (age",
        "length(repeat('x', 1000000000)) > age", "to_timestamp(0)::varchar", "age::timestamptz",
        "current_setting('memory_limit')", "getenv('HOME')", "age < random()", "year(CURRENT_DATE)",
        "count(*)", "count(*) OVER ()", "place0", "sources.age", "agee + 1", "user", "*", "$1", "age AS x",
        "[age]"],
    ("sql-syntax", "x.sql"): ["1); SELECT (2"],
    ("wrong-type", "x.sql"): [""],
}  # fmt: skip

#: Rules of what is out of domain.
RULES: Rejected = {
    ("wrong-type", ""): ["keep"],
    ("unknown-name", "aeg"): [{"aeg": "drop"}],
    ("unknown-name", "sex.other"): [{"sex": {"other": "femal"}}],
    ("unknown-name", "age.other"): [{"age": {"other": 115}}],
    ("unknown-name", "income.other"): [{"income": {"other": 5}}, {"income": {"other": 1e4}}],
    ("wrong-type", "sex"): [{"sex": "keep"}, {"sex": ["male"]}],
    ("unknown-key", "sex.others"): [{"sex": {"others": "male"}}],
    ("conflict", "sex"): [{"sex": {"other": "male", "count": True}}, {"sex": {"count": False}}],
    ("wrong-type", "count"): [{"count": "yes"}],
}  # fmt: skip

#: Ranges: the specification of the attribute, the first value and the last one.
RANGES: Rejected = {
    ("out-of-range", ""): [({"min": 18, "max": 90}, 18, 91), ({"min": 18, "max": 90}, 20, 19),
        ({"min": 18, "max": 90}, 20.5, 30), (["a", "b"], "b", "a"), ({"edges": [0, 10, 25]}, 0, 12),
        ({"edges": [0, 10, 25]}, 10, 10), ({"edges": [0, 10, 25]}, 0, math.nan),
        ({"labels": {0: "zero"}, "null": "none"}, "zero", "none"),
        ({"categories": ["a", "b"], "null": "none"}, "a", None),
        ({"from": "2013-01-01", "to": "2013-02-11", "by": "month", "null": "none"}, "2013-01", "none"),
        ({"from": "2013-01-01", "to": "2013-02-11", "by": "month"}, "2013-02", "2013-01")],
    ("unknown-name", "[0]"): [(["female", "male"], "femal", "male")],
}  # fmt: skip

#: Calls in Python.
CALLS: Rejected = {
    ("unknown-name", ""): [lambda: DOMAIN["AGE"], lambda: DOMAIN["zzz"], made(DOMAIN.index, 3),
        lambda: d.Categorical("a", ("01",), type="text").code_of("1"), made(MONTH.code_of, "2013-03"),
        made(MONTH.code_of, date(2013, 1, 1)), made(COUNTIES["county"].level, "stat"),
        made(OutOfDomain({"aeg": 2}).check, DOMAIN), lambda: OutOfDomain(counts=["aeg"]).check(DOMAIN)],
    ("duplicate", ""): [made(DOMAIN.sort, ["age", "age"]), made(Domain, [d.Coded("a", 1), d.Coded("a", 2)])],
    ("wrong-type", ""): [made(DOMAIN.sort, "age"), made(Domain, ["sex"]), made(Domain, {"": 3}),
        made(Domain.from_spec, [1]), made(d.Coded, None, 3), made(OutOfDomain, {"sex": -1}),
        made(OutOfDomain, {"sex": True})],
    ("empty", ""): [made(Domain, {})],
    ("unknown-name", "half.of[0]"): [made(Domain, [HALF])],
    ("wrong-size", "half.codes"): [made(Domain, [d.Coded("age", 3), HALF])],
    ("out-of-range", ""): [made(d.Coded("a", 3).label, -1), made(d.Coded("a", 3).label, 3),
        made(OutOfDomain({"sex": 2}).check, DOMAIN)],
    ("wrong-type", "a.codebook"): [made(d.Coded, "a", 3, codebook={"null": "x"})],
    ("wrong-type", "a"): [made(d.Categorical, "a", "xy")],
    ("unknown-name", "a.type"): [made(d.Categorical, "a", ("1",), type="int")],
    ("wrong-type", "a.categories[0]"): [made(d.Categorical, "a", (1,), type="text")],
    ("unknown-name", "a.case"): [made(d.Categorical, "a", ("x",), case=3)],
    ("duplicate", "a.levels.l"): [
        made(d.Categorical, "a", ("x", "y"), codebook=d.Codebook(levels=(ALL, ALL)))],
    ("wrong-type", "sha256.categories"): [made(d.Codebook, sha256=(("categories", "x"),))],
    ("unknown-name", "a.round"): [made(d.Integers, "a", 0, 3, round="ceiling")],
    ("domain", "a.levels.l"): [made(d.Integers, "a", 0, 3, codebook=d.Codebook(levels=(ALL,)))],
    ("wrong-size", "a.edges"): [made(d.Bins, "a", (0.0,))],
    ("wrong-type", "a.closed"): [made(d.Bins, "a", (0.0, 1.0), "yes")],
    ("wrong-type", "a.edges[0]"): [made(d.Bins, "a", ("x", 3))],
    ("unknown-name", "d.by"): [made(d.Dates, "d", "2013-01-01", "2013-01-02", "minute")],
    ("wrong-type", "null"): [made(d.Codebook, null=3)],
    ("wrong-type", "trim"): [made(d.Codebook, trim="no")],
    ("wrong-type", "labels"): [made(d.Codebook, labels="x")],
    ("conflict", "out_of_domain"): [made(OutOfDomain, {"sex": 1}, ["sex"]), made(OutOfDomain, {}, [3])],
    ("conflict", "out_of_domain.count"): [made(OutOfDomain({"count": 2}, [None]).check, COUNT),
        lambda: OutOfDomain(counts=[None, "count"]).check(COUNT)],
    ("workload", ""): [ask([mdp.marginals(1)]), ask(3)],
    ("unknown-name", "workload[0].product.county.level"): [ask(mdp.product(county={"level": "stat"}))],
    ("wrong-kind", "workload[0].product.state"): [ask(mdp.product(state="prefix"))],
    ("conflict", "workload[0].product.state"): [ask(mdp.product(county="identity", state="identity"))],
    ("conflict", "workload[0].marginals[0][1]"): [ask(mdp.marginals([["state", "county"]]))],
    ("wrong-kind", "workload[0].attributes[0]"): [ask(mdp.marginals(1, attributes=["state"]))],
    ("wrong-kind", "workload[0].attributes[1]"): [ask(mdp.pairwise("abs", attributes=["age", "pay"]))],
    ("wrong-kind", "marginals[0][0]"): [
        made(mdp.marginals([["both"]]).expand, Domain({"a": BOTH, "c": BOTH}))],
}  # fmt: skip

#: Files of categories, or of levels of the category x: their names and contents.
FILES: Rejected = {
    ("wrong-type", "a.categories"): [("a.tsv", b"x"), ("a.txt", b"\xff"), ("a.csv", b'v\n"x"y\n')],
    ("file-missing", "a.categories"): [("absent.txt", None)],
    ("empty", "a.categories"): [("a.txt", b"\n"), ("a.csv", b"v\n")],
    ("duplicate", "a.categories"): [("a.csv", b"v,v\n1,2\n")],
    ("duplicate", "a.categories[1]"): [("a.csv", b"v\nx\nx\n")],
    ("wrong-size", "a.categories"): [("a.csv", b"v,w\n1,2\n3\n"), ("a.csv", b"v,w\n1,2\n")],
    ("wrong-size", "a.levels"): [("levels.csv", b"v\nx\n")],
    ("wrong-size", "a.levels.l"): [("level.csv", b"v\nx\n"), ("level.csv", b"v,w,u\nx,y,z\n")],
    ("duplicate", "a.levels['record 3']"): [("levels.csv", b"v,w\nx,1\nx,2\n")],
    ("wrong-size", "a.levels_from"): [("areas.csv", b"v\nx\n"), ("areas.csv", b"v,w\nx\n")],
    ("wrong-type", "a.levels_from"): [("areas.csv", b"v,w\nx,\xe9\n")],
    ("file-missing", "a.levels_from"): [("areas.csv", None)],
    ("empty", "a.levels_from"): [("areas.csv", b"v,w\n"), ("areas.csv", b"")],
    ("wrong-type", "a.sha256"): [("digest", "x")],
    ("damaged-file", "a.sha256.categories"): [("digest", {"categories": "0" * 64})],
}  # fmt: skip


def read_from(name: str, content: Any) -> Callable[[Path], Any]:
    def attempt(folder: Path) -> Any:
        file = folder / ("a.txt" if name == "digest" else name)
        if content is not None:
            file.write_bytes(content if isinstance(content, bytes) else b"x\n")
        other: dict[str, Any] = {
            "digest": {"categories": file, "sha256": content},
            "areas.csv": {"levels_from": file},
            "levels.csv": {"categories": ["x"], "levels": file},
            "level.csv": {"categories": ["x"], "levels": {"l": file}},
        }
        return attribute_from_spec("a", other.get(name, {"categories": file}))

    return attempt


def no_file(folder: Path) -> Any:
    file = folder / "s.yaml"
    file.write_text("domain:\n  county: {categories: no.txt}\nworkload: [{marginals: 1}]\n")
    return load_specification(file)


def table(kind: str, rejected: Rejected, attempt: Callable[[Any], Callable[..., Any]]) -> list[Refusal]:
    rows = [(*key, attempt(value)) for key, values in rejected.items() for value in values]
    return numbered(kind, rows)


REFUSALS = [
    *table("attribute", SPECS, lambda spec: lambda: attribute_from_spec("a", spec)),
    *table("levels", LEVELS, lambda levels: lambda: Domain({"sex": SEX | {"levels": levels}})),
    *table("areas", AREAS, lambda areas: lambda: attribute_from_spec("a", {"levels_from": areas})),
    *table("derived", DERIVED, lambda spec: lambda: Domain(PARENTS | {"x": spec})),
    *table("expression", SQL, lambda sql: lambda: Domain(PARENTS | {"x": {"of": ["age"], "sql": sql}})),
    *table("out of domain", RULES, lambda rule: lambda: OutOfDomain.from_spec(DOMAIN, rule)),
    *table("range", RANGES, lambda row: lambda: attribute_from_spec("a", row[0]).code_range(*row[1:])),
    *table("file", FILES, lambda file: read_from(*file)),
    *table("call", CALLS, lambda call: call),
    Refusal("a file that a specification names", "file-missing", "domain.county.categories", no_file, line=2),
]
