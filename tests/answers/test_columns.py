"""The columns of answers: bounds as the domain says, categories in its order, and files that keep both."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.answers.table import BOUND, AnswerColumns

INF = float("inf")


def _table(spec: Mapping[str, Any], *entries: Any) -> pa.Table:
    workload = mdp.Workload(mdp.Domain(spec), *entries)
    columns = AnswerColumns(workload.domain, workload.groups)
    batches: list[pa.RecordBatch] = []
    for place, group in enumerate(workload.groups):
        estimates = np.arange(group.queries, dtype=float)
        batches += columns.batches(place, estimates, np.ones(group.queries), 1.0)
    return pa.Table.from_batches(batches, schema=columns.schema)


BIG = 2**31
JANUARY = date(2024, 1, 30)
MONTHS = {"from": "2024-01-30", "to": "2024-03-02", "by": "month", "null": "unknown"}
NONE = (None, None)
SETS = ["total", {"sets": [[1, 2], [0, 2]]}, {"ranges": {"old": [1, 2]}}]
OPEN = [(-INF, 0), (-INF, 2.5), (-INF, INF), (0, 2.5), (0, INF), (2.5, INF)]
#: Values, predicate sets, where these begin and end, and the type of the columns that say so.
BOUNDS: list[Any] = [
    ({"min": 10, "max": 12}, ["total", "prefix"], [(10, 12), (10, 10), (10, 11), (10, 12)], pa.int32()),
    (3, SETS, [(0, 2), (1, 2), NONE, (1, 2)], pa.int32()),
    ({"edges": ["-inf", 0, 2.5, "inf"]}, "range", OPEN, pa.float64()),
    (MONTHS, "prefix", [*((JANUARY, date(2024, *d)) for d in ((1, 31), (2, 29), (3, 2))), NONE], pa.date32()),
    ({"min": BIG, "max": BIG + 1}, "identity", [(BIG, BIG), (BIG + 1, BIG + 1)], pa.int64()),
    ({"min": BIG - 2, "max": BIG - 1}, "prefix", [(BIG - 2, BIG - 2), (BIG - 2, BIG - 1)], pa.int32()),
]


@pytest.mark.parametrize(("values", "sets", "bounds", "kind"), BOUNDS)
def test_ranges_have_their_first_and_last_value(values, sets, bounds, kind) -> None:
    """Bins end where the next begins; what misses a value, or is no range, has none; types are narrow."""
    table = _table({"x": values, "sex": ["f"]}, mdp.product(x=sets), mdp.marginals(0))
    ends = [table["x_from"].to_pylist(), table["x_to"].to_pylist()]
    assert list(zip(*ends, strict=True)) == [*bounds, NONE]
    fields = [table.schema.field(name) for name in ("x_from", "x_to")]
    assert [field.type for field in fields] == [kind, kind]
    assert [field.metadata for field in fields] == [{BOUND: b"from"}, {BOUND: b"to"}]


def test_categories_are_in_the_order_of_the_domain_also_of_a_file(tmp_path: Path) -> None:
    spec = {"size": ["small", "medium", "big"], "age": {"min": 8, "max": 11}}
    entries = mdp.product(size=["total", "identity"]), mdp.product(age="range"), mdp.marginals(1)
    table = _table(spec, *entries)
    pq.write_table(table, tmp_path / "x.parquet")
    again = pq.read_table(tmp_path / "x.parquet")
    assert again.schema.equals(table.schema, check_metadata=True)
    for frame in (table.to_pandas(), again.to_pandas()):
        assert frame["size"].cat.ordered
        assert list(frame["size"].cat.categories) == ["small", "medium", "big", "all"]
        assert list(frame["age"].cat.categories) == [
            "8", "8-9", "8-10", "8-11", "9", "9-10", "9-11", "10", "10-11", "11",
        ]  # fmt: skip
        assert list(frame[frame["size"] < "big"]["size"]) == ["small", "medium", "small", "medium"]


def test_a_group_that_comes_twice_is_one_category() -> None:
    prefixes = mdp.kway(1, {"numeric": "prefix"})
    frame = _table({"a": 2}, mdp.marginals(1), mdp.marginals(0), prefixes, mdp.marginals(1)).to_pandas()
    assert list(frame["group"].cat.categories) == ["a", "total", "a: prefix"]
    assert list(frame["group"]) == ["a", "a", "total", "a: prefix", "a: prefix", "a", "a"]


def test_rows_that_are_made_apart_have_the_texts_of_the_whole() -> None:
    domain = mdp.Domain({"area": ["a", "b", "c", "d"], "sex": ["f", "m"], "age": 3})
    workload = mdp.Workload(
        domain,
        mdp.marginals([["area", "sex"]]),
        mdp.product(area={"sets": {"north": ["a", "b"], "south": ["c", "d"]}}, sex="identity"),
        mdp.marginals([["sex", "age"], ["area", "age"]]),
    )
    groups = list(workload)
    pieces = AnswerColumns(domain, groups)
    found: list[list[pa.RecordBatch]] = [[] for _ in groups]
    for first in range(0, max(group.queries for group in groups), 2):
        for place, group in enumerate(groups):
            if first < group.queries:
                estimates = np.arange(first, first + 2, dtype=float)
                found[place] += pieces.batches(place, estimates, np.ones(2), 1.0, first)
    for place, group in enumerate(groups):
        own = AnswerColumns(domain, groups)
        estimates = np.arange(group.queries, dtype=float)
        whole = own.batches(place, estimates, np.ones(group.queries), 1.0)
        assert pa.Table.from_batches(found[place]).equals(pa.Table.from_batches(whole))
