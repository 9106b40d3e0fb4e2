"""The columns of answers: bounds as the domain says, categories in its order, and files that keep both."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from matrixdp.answers.table import BOUND, AnswerColumns
from matrixdp.domain import Domain
from matrixdp.language import kway, marginals, product
from matrixdp.queries import Workload


def _table(spec: Mapping[str, object], *entries: object) -> pa.Table:
    domain = Domain(spec)
    workload = Workload(domain, *entries)  # type: ignore[arg-type]
    columns = AnswerColumns(domain, workload.groups)
    batches = [
        batch
        for place, group in enumerate(workload.groups)
        for batch in columns.batches(
            place, np.arange(group.queries, dtype=float), np.ones(group.queries), 1.0
        )
    ]
    return pa.Table.from_batches(batches, schema=columns.schema)


def _bounds(table: pa.Table, name: str) -> list[tuple[object, object]]:
    return list(zip(table[f"{name}_from"].to_pylist(), table[f"{name}_to"].to_pylist(), strict=True))


def test_ranges_have_their_first_and_last_value() -> None:
    sets = ["total", "prefix", {"sets": [[1, 2], [0, 2]]}, {"ranges": {"old": [1, 2]}}]
    table = _table({"age": {"min": 10, "max": 12}, "sex": ["f"]}, product(age=["total", "prefix"]))
    assert _bounds(table, "age") == [(10, 12), (10, 10), (10, 11), (10, 12)]
    del sets[1]
    table = _table({"age": 3}, product(age=sets), marginals(0))
    assert _bounds(table, "age") == [(0, 2), (1, 2), (None, None), (1, 2), (None, None)]
    assert table.schema.field("age_to").metadata == {BOUND: b"to"}


def test_bins_end_where_the_next_begins_and_may_be_open() -> None:
    table = _table({"x": {"edges": ["-inf", 0, 2.5, "inf"]}}, product(x="range"))
    ends = [-np.inf, 0, 2.5, np.inf]
    assert _bounds(table, "x") == [(ends[a], ends[b + 1]) for a in range(3) for b in range(a, 3)]


def test_dates_are_dates_and_missing_values_have_no_bounds() -> None:
    spec = {"day": {"from": "2024-01-30", "to": "2024-03-02", "by": "month", "null": "unknown"}}
    table = _table(spec, product(day="prefix"))
    first = date(2024, 1, 30)
    assert _bounds(table, "day") == [
        (first, date(2024, 1, 31)), (first, date(2024, 2, 29)), (first, date(2024, 3, 2)), (None, None),
    ]  # fmt: skip
    assert table.schema.field("day_from").type == pa.date32()


def test_numbers_are_as_narrow_as_they_may_be() -> None:
    table = _table(
        {"a": {"min": 2**31, "max": 2**31 + 1}, "b": {"min": 2**31 - 2, "max": 2**31 - 1}}, marginals(1)
    )
    assert (table.schema.field("a_from").type, table.schema.field("b_from").type) == (pa.int64(), pa.int32())
    assert _bounds(table, "a")[1] == (2**31 + 1, 2**31 + 1)


def test_categories_are_in_the_order_of_the_domain() -> None:
    spec = {"size": ["small", "medium", "big"], "age": {"min": 8, "max": 11}}
    entries = product(size=["total", "identity"]), product(age="range"), marginals(1)
    frame = _table(spec, *entries).to_pandas()
    assert frame["size"].cat.ordered
    assert list(frame["size"].cat.categories) == ["small", "medium", "big", "all"]
    assert list(frame["age"].cat.categories) == [
        "8", "8-9", "8-10", "8-11", "9", "9-10", "9-11", "10", "10-11", "11",
    ]  # fmt: skip
    assert list(frame[frame["size"] < "big"]["size"]) == ["small", "medium", "small", "medium"]


def test_the_order_outlives_a_file(tmp_path: Path) -> None:
    table = _table({"size": ["small", "medium", "big"]}, marginals([["size"]]))
    pq.write_table(table, tmp_path / "x.parquet")
    again = pq.read_table(tmp_path / "x.parquet")
    assert again.schema.equals(table.schema, check_metadata=True)
    assert list(again.to_pandas()["size"].cat.categories) == ["small", "medium", "big"]


def test_a_group_that_comes_twice_is_one_category() -> None:
    table = _table({"a": 2}, marginals(1), marginals(0), kway(1, {"numeric": "prefix"}), marginals(1))
    frame = table.to_pandas()
    assert list(frame["group"].cat.categories) == ["a", "total", "a: prefix"]
    assert list(frame["group"]) == ["a", "a", "total", "a: prefix", "a: prefix", "a", "a"]
