"""What statistics refuse: wrong forms, what does not fit the domain, and what is asked of a release."""

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import yaml

import matrixdp as mdp
from matrixdp.language import read_entry
from tests.refusals import Refusal, numbered
from tests.statistics.test_forms import DOMAIN

#: The code, the place, and the entry as a specification would have it.
_WRONG = """
wrong-kind    cdf.sex      {cdf: sex}
wrong-kind    quantile.day {quantile: day}
wrong-kind    mean.month   {mean: month}
wrong-kind    sum.income   {sum: income}
wrong-kind    variance.hours {variance: hours}
empty         cdf.age      {cdf: age, where: {age: unknown}}
unknown-name  mean         {mean: hour}
conflict      by           {cdf: hours, by: [hours]}
conflict      by           {cdf: hours, by: [sex], where: {sex: male}}
unknown-name  by.sexx      {cdf: hours, by: [sexx]}
unknown-name  where.sex    {cdf: hours, where: {sex: x}}
out-of-range  top.sex      {top: {sex: 3}}
unknown-name  of           {share: {marginals: [[sex]]}, of: [hours]}
unknown-name  of[0]        {share: {marginals: [[sex]]}, of: [x]}
wrong-kind    of           {share: {cells: [{sex: male}]}, of: [sex]}
wrong-type    share        {share: {mean: hours}}
unknown-name  ratio.denominator.marginals[0][0] {ratio: {numerator: WOMEN, denominator: {marginals: [[x]]}}}
wrong-size    share        {share: {marginals: [0, 1]}}
wrong-size    difference.right {difference: {left: {marginals: [[sex]]}, right: {marginals: [[hours]]}}}
wrong-size    of           {share: {marginals: [[sex]]}, of: {marginals: [[hours]]}}
wrong-size    combination[0][0] {combination: [[2, {marginals: [[sex]]}]]}
wrong-size    combination[1][0] {combination: [[[[1, 0], [0, 1]], {marginals: [[sex]]}], [1, {marginals: 0}]]}
missing-key   ratio.denominator {ratio: {numerator: WOMEN}}
not-supported percent_change {percent_change: {marginals: [[sex]]}}
not-supported percent_change {percent_change: {product: {month: {change: 1}}}}
wrong-size    over         {percent_change: {marginals: [[month]]}, over: year}
unknown-name  over         {percent_change: {marginals: [[month]]}, over: month}
wrong-type    percent_change {percent_change: {mean: hours}}
wrong-type    combination[0] {combination: [WOMEN]}
file-missing  combination[0][0] {combination: [[x, WOMEN]]}
unknown-key   combination[0][1] {combination: [[1, 2]]}
wrong-size    quantile     {quantile: {age: 0.5, hours: 0.5}}
wrong-type    quantile.age {quantile: {age: true}}
out-of-range  quantile.age[1] {quantile: {age: [0.5, 1]}}
wrong-type    top          {top: sex}
wrong-size    weights      {mean: hours, weights: [1, 2]}
wrong-type    combination[0][0] {combination: [[[1, .nan], {marginals: [[sex]]}]]}
too-large     cdf.code     {cdf: code}
too-large     top.code     {top: {code: 5}}
wrong-type    by           {cdf: hours, by: 3}
unknown-name  by.sex       {cdf: hours, by: {sex: identiy}}
wrong-type    where        {cdf: hours, where: [sex]}
out-of-range  where.age.range {cdf: age, where: {age: {range: [3, 30]}}}
empty         quantile.hours {quantile: {hours: []}}
wrong-type    quantile     {quantile: [hours]}
empty         combination  {combination: []}
unknown-key   bye          {mean: hours, bye: sex}
"""


def _entry(written: str) -> Callable[[], object]:
    entry = yaml.safe_load(written.replace("WOMEN", "{product: {sex: {sets: [[female]]}}}"))
    return lambda: read_entry(entry).expand(DOMAIN)


@cache
def _release() -> mdp.Release:
    domain = mdp.Domain({"sex": ["f", "m"], "age": range(4), "income": {"edges": [0, 10, 20]}})
    strategy = mdp.select(mdp.Workload(domain, mdp.marginals(1)))
    table = {"sex": ["f", "m"], "age": [0, 3], "income": [5.0, 15.0]}
    return strategy.measure(table, mdp.Budget(mu=1), seed_not_private=4).reconstruct()


_ONE = mdp.product(sex={"sets": [["f"]]})
_OF_RELEASES: list[tuple[str, str, Callable[[Any], object]]] = [
    ("wrong-type", "quantile", lambda r: r.quantile(["age"])),
    ("wrong-size", "share", lambda r: r.share(mdp.marginals(1))),
    ("unknown-name", "of", lambda r: r.share(_ONE, of=["age"])),
    ("unknown-key", "difference.right", lambda r: r.difference(_ONE, "total")),
    ("wrong-type", "combination", lambda r: r.combination(3)),
    ("wrong-size", "covariances", lambda r: r.covariances(mdp.marginals(1))),
    ("wrong-size", "covariance", lambda r: r.covariance(mdp.marginals(1), 0, _ONE, 0)),
    ("out-of-range", "covariance", lambda r: r.covariance(_ONE, 1, _ONE, 0)),
    ("wrong-type", "query", lambda r: r.answer([_ONE])),
    ("wrong-type", "query", lambda r: r.answer("sex")),
    ("workload", "sql", lambda r: r.sql(3)),
    ("out-of-range", "confidence", lambda r: r.sum("age", confidence=1)),
    ("out-of-range", "confidence", lambda r: r.sum("age", confidence="high")),
    ("wrong-type", "workload", lambda r: mdp.Release(r.measurement, cast("Any", _ONE))),
    ("unsupported-query", "", lambda r: r.mean("age", by=["sex", "income"])),
]


def _of_release(attempt: Callable[[Any], object]) -> Callable[[], object]:
    return lambda: attempt(_release())


_ROWS = [line.split(maxsplit=2) for line in _WRONG.strip().splitlines()]

#: What cannot be asked of an amount, whose values no record has whole.
_OF_AMOUNTS = """
wrong-kind    quantile           {quantile: pay}
wrong-kind    cdf                {cdf: pay}
wrong-kind    top                {top: {pay: 1}}
wrong-kind    variance.pay       {variance: pay}
wrong-kind    by.pay             {sum: fee, by: [pay]}
wrong-kind    where.pay          {sum: pay, where: {pay: 0}}
wrong-kind    product.pay        {product: {pay: prefix}}
wrong-kind    marginals[0][1]    {marginals: [[sex, pay]]}
wrong-kind    attributes[0]      {pairwise: abs, attributes: [pay, fee]}
wrong-kind    cells[0][0].pay    {cells: [{pay: 0}]}
out-of-range  marginals          {marginals: 2}
"""
_PAY = mdp.Domain({"sex": ["f", "m"], "pay": {"amount": [0, 9]}, "fee": {"amount": [0, 9]}})


def _of_amount(written: str) -> Callable[[], object]:
    return lambda: mdp.Workload(_PAY, read_entry(yaml.safe_load(written)))


REFUSALS = [
    *numbered(
        "amounts",
        [
            (code, f"workload[0].{place}", _of_amount(written))
            for code, place, written in (line.split(maxsplit=2) for line in _OF_AMOUNTS.strip().splitlines())
        ],
    ),
    *numbered("releases", [(code, place, _of_release(attempt)) for code, place, attempt in _OF_RELEASES]),
    *numbered("entries", [(code, place, _entry(written)) for code, place, written in _ROWS]),
    Refusal(
        "a statistic of a file",
        "out-of-range",
        "workload[0].quantiles.hours",
        lambda: mdp.load_specification("domain: {hours: 4}\nworkload:\n  - quantiles: {hours: 2}\n"),
        line=3,
    ),
]
