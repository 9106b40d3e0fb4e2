"""What models reject: public knowledge that contradicts itself, wrong tables, impossible records."""

from collections.abc import Callable
from typing import Any

import numpy as np

import matrixdp as mdp
from matrixdp.model.constraints import Constraints, factors_for
from matrixdp.model.records import MAX_ROWS, RecordColumns, StratifiedRecords
from matrixdp.model.tables import IntegerTable, LocalTables, Mixture
from matrixdp.statistics.ask import sum as sum_of
from tests.model.builders import measured
from tests.refusals import Refusal

DOMAIN = mdp.Domain({"age": {"min": 0, "max": 7}, "works": ["no", "yes"], "region": ["n", "s", "w"]})
REGIONS = {"product": {"region": "identity"}, "counts": [500, 300, 100]}
SMALL = mdp.Domain({"a": 2, "b": 2})
SINGLES: dict[tuple[str, ...], Any] = {("a",): np.array([3.0, 1.0]), ("b",): np.array([2.0, 2.0])}
FREE = ("sex", "age")
PAIR = np.array([[2.0, 1.0], [0.0, 1.0]])
EVEN = Mixture(SMALL, 9.0, np.ones(1), {"a": np.full((1, 2), 0.5), "b": np.full((1, 2), 0.5)})
DETERMINED = {"columns": {"raw": 4}, "codes": [0, 0, 1, 1], "size": 2}
TWO_DAYS = {"from": "2020-01-06", "to": "2020-01-07", "by": "weekday"}
VAST = mdp.Domain({"a": 10_001, "b": 10_001})


def known(invariants: Any = None, zeros: Any = None):
    return lambda: Constraints.of(DOMAIN, invariants, zeros)


def mixture(**change: Any):
    right: dict[str, Any] = {"domain": mdp.Domain({"a": 3}), "total": 1.0, "weights": np.full(2, 0.5)}
    return lambda: Mixture(**(right | {"factors": {"a": np.full((2, 3), 1 / 3)}} | change))


def local(total: float, tables: Any):
    return lambda: LocalTables(SMALL, total, tables)


def integer_table(**change: Any):
    right: dict[str, Any] = {"domain": SMALL, "attributes": ("a",), "counts": np.array([1, 2])}
    return lambda: IntegerTable(**(right | change))


def records(rows: Any = 1, seed: Any = 0):
    return lambda: StratifiedRecords(EVEN, rows, seed)


def data(spec: Any):
    return lambda: RecordColumns(mdp.Domain(spec), "data")


def release(*entries: Any, sizes: str = "ab"):
    table = dict.fromkeys(sizes, [0, 1] * 300)
    made = measured(dict.fromkeys(sizes, 2), table, *entries, budget=mdp.Budget(mu=5), mechanism="auto")
    return made.reconstruct()


def model(*arguments: Any, **options: Any):
    return lambda: release(mdp.marginals(2)).model(*arguments, **options)


def integers(*entries: Any, **options: Any):
    states = {"state": {"x": ["1", "2"], "y": ["3"]}}
    tract = {"categories": ["1", "2", "3"], "levels": states}
    domain = {"tract": tract, "sex": 2, "age": 2, "pay": {"amount": [0, 9]}}
    table = {"tract": ["1", "2", "3"], "sex": [0, 1, 1], "age": [0, 0, 1], "pay": [1, 2, 3]}
    options = {"method": "integers", **options}
    return lambda: measured(domain, table, *entries, mechanism="auto").reconstruct().model(**options)


def at(*levels: str, **asked: Any):
    return mdp.product(**asked, at={"tract": levels})


def beyond_pairs(attempt: Callable[[Any], Any]):
    return lambda: attempt(release(mdp.marginals(3), sizes="abc"))


def vast():
    return Mixture(VAST, 1.0, np.ones(1), {name: np.full((1, 10_001), 1 / 10_001) for name in "ab"})


#: By the code of the error, and its place where one is named.
REJECTED: dict[tuple[str, str], dict[str, Callable[[], Any]]] = {
    ("wrong-type", "invariants"): {"totals that are a text": known("many")},
    ("wrong-type", "invariants[0]"): {"totals that list a text": known(["many"])},
    ("missing-key", "invariants[0].counts"): {"a published table without counts": known([{"marginals": 0}])},
    ("wrong-type", "invariants[0].counts"): {"a count below 0": known([{"marginals": 0, "counts": -1}])},
    ("wrong-size", "invariants[0].counts"): {"too few counts": known([REGIONS | {"counts": [1, 2]}])},
    ("wrong-size", "invariants[0]"): {"counts of several tables": known([{"marginals": 1, "counts": [1]}])},
    ("conflict", "invariants"): {
        "published tables that disagree": known([REGIONS, {"marginals": 0, "counts": 5}]),
        "counts that no table has": lambda: factors_for(
            np.ones(3), np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]), np.array([9.0, 3.0])
        ),
    },
    ("out-of-range", "invariants"): {"a total of nobody": known(0)},
    ("unknown-name", "structural_zeros[0].sex"): {
        "a rule of an unknown attribute": known(None, [{"sex": "f"}])
    },
    ("unknown-name", "structural_zeros[0].age"): {"a rule of an unknown value": known(None, [{"age": 99}])},
    ("wrong-type", "structural_zeros"): {"rules that are a text": known(None, "all")},
    ("out-of-range", ""): {
        "a mixture of nobody": mixture(total=0.0),
        "a mixture of no number": mixture(total=float("nan")),
        "weights that do not sum to 1": mixture(weights=np.array([0.5, 0.4])),
        "weights below 0": mixture(weights=np.array([1.5, -0.5])),
        "factors that are no numbers": mixture(factors={"a": np.full((2, 3), np.nan)}),
        "tables of nobody": local(0.0, SINGLES),
        "integers below 0": integer_table(counts=np.array([1, -1])),
        "integers of another size": integer_table(counts=np.array([1, 1, 1])),
        "integers that are none": integer_table(counts=np.ones(2)),
        "tables below 0": local(4.0, SINGLES | {("a", "b"): PAIR - 1}),
    },
    ("unknown-name", ""): {
        "a mixture without factors": mixture(factors={}),
        "integers of no attribute": integer_table(attributes=("c",)),
        "tables without an attribute": local(4.0, {("a",): SINGLES["a",]}),
        "a pair out of order": local(4.0, SINGLES | {("b", "a"): PAIR}),
    },
    ("wrong-size", ""): {"factors of another size": mixture(factors={"a": np.full((2, 2), 0.5)})},
    ("conflict", ""): {
        "a pair with other sums": local(4.0, SINGLES | {("a", "b"): PAIR[::-1]}),
        "tables of another total": local(5.0, SINGLES),
    },
    ("too-large", ""): {"a marginal of too many cells": lambda: vast().marginal(["a", "b"])},
    ("out-of-range", "rows"): {
        f"{rows!r} records": records(rows) for rows in (-1, 1.0, True, MAX_ROWS + 1, "auto")
    },
    ("out-of-range", "seed"): {
        **{f"a seed of {seed!r}": records(seed=seed) for seed in (-1, 0.5, 2**63, None)},
        "a fit without a seed": model(seed=None),
    },
    ("out-of-range", "components"): {
        f"a fit of {number} components": model(components=number) for number in (0, True)
    },
    ("out-of-range", "steps"): {"a fit of 1.5 steps": model(steps=1.5)},
    ("conflict", "structural_zeros"): {
        "integers with a rule": integers(at("state", "tract"), structural_zeros=[{"sex": 0, "age": 1}])
    },
    ("unknown-name", "method"): {"an unknown method": model("mixtur")},
    ("not-converged", ""): {
        "a mixture that does not fit": model("mixture", components=2, steps=1),
        "pairs that do not fit": model("local", structural_zeros=[{"a": 0, "b": 0}]),
        "neither fits": model(components=1, steps=1, structural_zeros=[{"a": 0, "b": 0}, {"a": 1, "b": 1}]),
        "a mixture that does not fit where pairs do not serve": beyond_pairs(
            lambda release: release.model(components=1, steps=1)
        ),
    },
    ("not-supported", ""): {
        "pairs of what was measured of three": beyond_pairs(lambda release: release.model("local")),
        "integers without areas": model("integers"),
        "integers of larger areas alone": integers(at("total", "state", sex="identity"), at("tract")),
        "integers of no full table": integers(at("total", "state", "tract", age="prefix")),
        "integers of some areas": integers(at("state"), mdp.product(tract={"sets": [["1"], ["2"]]})),
        "integers of two tables": integers(*(at("state", "tract", **{own: "identity"}) for own in FREE)),
        "integers of an amount": integers(at("state", "tract"), sum_of("pay")),
        "records of integers": lambda: integers(at("state", "tract"))().records(),
        "integers and others": lambda: integers(at("state", "tract"))().answer(mdp.marginals([["sex"]])),
        "records of pairs": lambda: release(mdp.marginals(2)).model("local").records(),
    },
    ("unknown-name", "values"): {"another form of values": lambda: RecordColumns(DOMAIN, "codes")},
    ("conflict", "levels"): {"levels of data": lambda: RecordColumns(DOMAIN, "data", levels=True)},
    ("not-supported", "values.y"): {
        "two attributes of one column": data({"x": 2, "y": {"min": 0, "max": 3, "column": "x"}})
    },
    ("not-supported", "values.x"): {
        "data of an attribute that columns determine": data({"x": DETERMINED}),
        "days of the week that there are not": data({"x": TWO_DAYS}),
    },
}
REFUSALS = [
    *(Refusal(name, *key, attempt) for key, own in REJECTED.items() for name, attempt in own.items()),
    Refusal("a folder without a model", "file-missing", "", lambda folder: mdp.Model.load(folder)),
]
