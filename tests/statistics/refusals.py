"""What statistics refuse: wrong forms, what does not fit the domain, and what is asked of a release."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import matrixdp as mdp
from matrixdp.language import read_entry
from matrixdp.specification import load_specification
from tests.refusals import Refusal
from tests.statistics.test_forms import DOMAIN, WOMEN

_WRONG: list[tuple[str, str, str, dict[str, Any]]] = [
    ("a list of categories", "wrong-kind", "cdf.sex", {"cdf": "sex"}),
    ("days of the week", "wrong-kind", "quantile.day", {"quantile": "day"}),
    ("dates", "wrong-kind", "mean.month", {"mean": "month"}),
    ("a bin without an end", "wrong-kind", "sum.income", {"sum": "income"}),
    ("null alone", "empty", "cdf.age", {"cdf": "age", "where": {"age": "unknown"}}),
    ("an unknown attribute", "unknown-name", "mean", {"mean": "hour"}),
    ("by itself", "conflict", "by", {"cdf": "hours", "by": ["hours"]}),
    ("by a condition", "conflict", "by", {"cdf": "hours", "by": ["sex"], "where": {"sex": "male"}}),
    ("by what there is not", "unknown-name", "by.sexx", {"cdf": "hours", "by": ["sexx"]}),
    (
        "a condition that is not in the domain",
        "unknown-name",
        "where.sex",
        {"cdf": "hours", "where": {"sex": "x"}},
    ),
    ("too many", "out-of-range", "top.sex", {"top": {"sex": 3}}),
    ("of what is not asked", "unknown-name", "of", {"share": {"marginals": [["sex"]]}, "of": ["hours"]}),
    ("of no attribute", "unknown-name", "of[0]", {"share": {"marginals": [["sex"]]}, "of": ["x"]}),
    ("of merged attributes", "wrong-kind", "of", {"share": {"cells": [{"sex": "male"}]}, "of": ["sex"]}),
    ("a statistic of a statistic", "wrong-type", "share", {"share": {"mean": "hours"}}),
    (
        "a part that does not fit",
        "unknown-name",
        "ratio.denominator.marginals[0][0]",
        {"ratio": {"numerator": WOMEN, "denominator": {"marginals": [["x"]]}}},
    ),
    ("several groups", "wrong-size", "share", {"share": {"marginals": [0, 1]}}),
    (
        "others than there",
        "wrong-size",
        "difference.right",
        {"difference": {"left": {"marginals": [["sex"]]}, "right": {"marginals": [["hours"]]}}},
    ),
    (
        "others than shares",
        "wrong-size",
        "of",
        {"share": {"marginals": [["sex"]]}, "of": {"marginals": [["hours"]]}},
    ),
    (
        "too few coefficients",
        "wrong-size",
        "combination[0][0]",
        {"combination": [[2, {"marginals": [["sex"]]}]]},
    ),
    (
        "other rows of coefficients",
        "wrong-size",
        "combination[1][0]",
        {"combination": [[[[1, 0], [0, 1]], {"marginals": [["sex"]]}], [1, {"marginals": 0}]]},
    ),
    ("half a ratio", "missing-key", "ratio.denominator", {"ratio": {"numerator": WOMEN}}),
    ("no pair", "wrong-type", "combination[0]", {"combination": [WOMEN]}),
    ("no number", "file-missing", "combination[0][0]", {"combination": [["x", WOMEN]]}),
    ("no entry", "unknown-key", "combination[0][1]", {"combination": [[1, 2]]}),
    ("two attributes", "wrong-size", "quantile", {"quantile": {"age": 0.5, "hours": 0.5}}),
    ("no share", "wrong-type", "quantile.age", {"quantile": {"age": True}}),
    ("all", "wrong-type", "quantile.age[1]", {"quantile": {"age": [0.5, 1]}}),
    ("top of no number", "wrong-type", "top", {"top": "sex"}),
    ("more weights than groups", "wrong-size", "weights", {"mean": "hours", "weights": [1, 2]}),
    (
        "coefficients that are not finite",
        "workload",
        "combination[0][0]",
        {"combination": [[[1, math.nan], {"marginals": [["sex"]]}]]},
    ),
    ("a CDF of too many values", "too-large", "cdf.code", {"cdf": "code"}),
    ("a list of too many values", "too-large", "top.code", {"top": {"code": 5}}),
    ("a statistic by a number", "wrong-type", "by", {"cdf": "hours", "by": 3}),
    ("a misspelt predicate set", "unknown-name", "by.sex", {"cdf": "hours", "by": {"sex": "identiy"}}),
    ("a condition that is a list", "wrong-type", "where", {"cdf": "hours", "where": ["sex"]}),
    (
        "a condition beyond the domain",
        "out-of-range",
        "where.age.range",
        {"cdf": "age", "where": {"age": {"range": [3, 30]}}},
    ),
    ("no orders of quantiles", "empty", "quantile.hours", {"quantile": {"hours": []}}),
    ("a list of attributes", "wrong-type", "quantile", {"quantile": ["hours"]}),
    ("no terms", "empty", "combination", {"combination": []}),
    ("an unknown key", "unknown-key", "bye", {"mean": "hours", "bye": "sex"}),
]


def _entry(written: dict[str, Any]) -> Callable[[], object]:
    return lambda: read_entry(written).expand(DOMAIN)


@cache
def _release() -> mdp.Release:
    domain = mdp.Domain({"sex": ["f", "m"], "age": range(4), "income": {"edges": [0, 10, 20]}})
    strategy = mdp.select(mdp.Workload(domain, mdp.marginals(1)))
    table = {"sex": ["f", "m"], "age": [0, 3], "income": [5.0, 15.0]}
    return strategy.measure(table, mdp.Budget(mu=1), seed_not_private=4).reconstruct()


_ONE = mdp.product(sex={"sets": [["f"]]})
_OF_RELEASES: list[tuple[str, str, str, Callable[[Any], object]]] = [
    ("a method of a list", "wrong-type", "quantile", lambda r: r.quantile(["age"])),
    ("a method of many groups", "wrong-size", "share", lambda r: r.share(mdp.marginals(1))),
    ("a method of what is not asked", "unknown-name", "of", lambda r: r.share(_ONE, of=["age"])),
    ("a difference from a text", "unknown-key", "difference.right", lambda r: r.difference(_ONE, "total")),
    ("a combination of a number", "wrong-type", "combination", lambda r: r.combination(3)),
    ("covariances of groups", "wrong-size", "covariances", lambda r: r.covariances(mdp.marginals(1))),
    (
        "a covariance of groups",
        "wrong-size",
        "covariance",
        lambda r: r.covariance(mdp.marginals(1), 0, _ONE, 0),
    ),
    ("a covariance of no query", "out-of-range", "covariance", lambda r: r.covariance(_ONE, 1, _ONE, 0)),
    ("an answer to a list", "wrong-type", "query", lambda r: r.answer([_ONE])),
    ("an answer to a text", "wrong-type", "query", lambda r: r.answer("sex")),
    ("SQL that is a number", "workload", "sql", lambda r: r.sql(3)),
    ("a confidence of 1", "out-of-range", "confidence", lambda r: r.sum("age", confidence=1)),
    ("a confidence in words", "out-of-range", "confidence", lambda r: r.sum("age", confidence="high")),
    (
        "a release of an entry",
        "wrong-type",
        "workload",
        lambda r: mdp.Release(r.measurement, cast("Any", _ONE)),
    ),
    ("what was not measured", "unsupported-query", "", lambda r: r.mean("age", by=["sex", "income"])),
]


def _of_release(attempt: Callable[[Any], object]) -> Callable[[], object]:
    return lambda: attempt(_release())


REFUSALS = [
    *(Refusal(name, code, place, _of_release(attempt)) for name, code, place, attempt in _OF_RELEASES),
    *(Refusal(name, code, place, _entry(written)) for name, code, place, written in _WRONG),
    Refusal(
        "a statistic of a file",
        "wrong-type",
        "workload[0].quantiles.hours",
        lambda: load_specification("domain: {hours: 4}\nworkload:\n  - quantiles: {hours: 2}\n"),
        line=3,
    ),
]
