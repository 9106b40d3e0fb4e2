import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.domain import Domain
from matrixdp.domain.encoding import encode_value
from matrixdp.errors import SpecificationError, StorageError, TooLargeError
from matrixdp.language import marginals, product
from matrixdp.model import Mixture, Model
from matrixdp.model import records as held
from matrixdp.model.records import (
    RecordColumns,
    StratifiedRecords,
    beside,
    counted,
    counted_table,
    systematic,
)
from matrixdp.storage.archive import entry
from tests.model.builders import a_mixture, measured

DOMAIN = Domain(
    {
        "sex": ["female", "male"],
        "age": range(7),
        "code": 5,
        "adult": {"of": ["age"], "map": {age: "no" if age < 3 else "yes" for age in range(7)}},
        "pair": {"of": ["sex", "code"], "codes": [0, 1, 1, 0, 1, 1, 1, 0, 0, 1], "size": 2},
    }
)


def joined(records: StratifiedRecords, most: int = 1 << 18) -> dict[str, np.ndarray]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held, "CHUNK_ROWS", most)
        chunks = list(records.chunks())
    assert all(0 < len(chunk["sex"]) <= most for chunk in chunks)
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in DOMAIN.names}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_shares_are_rounded_up_or_down_and_sum_to_their_totals(data: st.DataObject):
    weights = data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda own: sum(own) > 1e-3))
    totals = np.array(data.draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=3)))
    offsets = np.array([data.draw(st.floats(0, 1, exclude_max=True)) for _ in totals])
    shares = np.tile(np.array(weights) / sum(weights), (len(totals), 1))
    found = systematic(shares, totals, offsets)
    assert (found.sum(axis=1) == totals).all()
    exact = shares * totals[:, None]
    assert (abs(found - exact) < 1 + 1e-6 * np.maximum(exact, 1)).all()
    assert (found >= 0).all()
    assert (found[:, np.array(weights) == 0] == 0).all()


@pytest.mark.parametrize("most", [1 << 18, 37])
def test_every_component_and_value_has_its_share_however_records_are_chunked(most: int):
    mixture = a_mixture(DOMAIN, even=0.4)
    records = StratifiedRecords(mixture, 1234, 5)
    assert (abs(records.sizes - 1234 * mixture.weights) < 1).all()
    codes = joined(records, most)
    for name, own in records.values.items():
        assert (abs(own - records.sizes[:, None] * mixture.factors[name]) < 1).all()
        assert (np.bincount(codes[name], minlength=DOMAIN[name].size) == own.sum(axis=0)).all()
    # in each table the records are within the rounding of one component after the other
    table = np.histogram2d(codes["age"], codes["sex"], bins=[np.arange(8), np.arange(3)])[0]
    model = 1.234 * mixture.marginal(["age", "sex"])
    # seeded; a count within a component is hypergeometric: 6 standard deviations of at most sqrt(n)/2
    assert (abs(table - model) < mixture.components + 3 * np.sqrt(model + 1) + 1).all()


def test_no_record_is_where_the_mixture_has_none():
    factors = {"sex": np.eye(2), "age": np.tile([0.5, 0.5, 0, 0, 0, 0, 0], (2, 1)), "code": np.eye(5)[[1, 4]]}
    codes = joined(StratifiedRecords(Mixture(DOMAIN, 10.0, np.array([0.3, 0.7]), factors), 999, 1), 100)
    assert set(zip(codes["sex"].tolist(), codes["code"].tolist(), strict=True)) == {(0, 1), (1, 4)}
    assert codes["age"].max() == 1


def test_records_are_in_a_random_order():
    # of 2 components: what comes first says nothing of what comes later
    factors = {"sex": np.eye(2), "age": np.full((2, 7), 1 / 7), "code": np.full((2, 5), 0.2)}
    mixture = Mixture(DOMAIN, 10.0, np.array([0.5, 0.5]), factors)
    for most in (1 << 18, 100):
        sexes = joined(StratifiedRecords(mixture, 4000, 2), most)["sex"]
        halves = sexes[:2000].mean(), sexes[2000:].mean()
        # hypergeometric: standard deviation 0.0079; seeded, and 5 of them
        assert abs(halves[0] - 0.5) < 0.04
        assert abs(np.corrcoef(sexes[:-1], sexes[1:])[0, 1]) < 0.08


def test_stratified_records_are_nearer_to_the_mixture_than_independent_ones():
    mixture, random = a_mixture(DOMAIN, total=2000.0, even=0.4), np.random.default_rng(11)
    model = mixture.marginal(["age", "sex"])
    codes = joined(StratifiedRecords(mixture, 2000, 4))
    stratified = np.histogram2d(codes["age"], codes["sex"], bins=[np.arange(8), np.arange(3)])[0]
    independent = random.multinomial(2000, model.ravel() / 2000, size=20).reshape(-1, *model.shape)
    assert ((stratified - model) ** 2).sum() < ((independent - model) ** 2).sum(axis=(1, 2)).mean() / 2


def test_tables_that_are_counted_are_integer_and_agree():
    records = StratifiedRecords(a_mixture(DOMAIN, even=0.4), 700, 9)
    groups = marginals([0, 1, 2]).expand(DOMAIN)
    codes = joined(records)
    found = dict(zip([group.attributes for group in groups], counted(groups, records), strict=True))
    assert found[()].tolist() == [700]
    for names in [("sex", "age"), ("age", "adult"), ("code", "pair")]:
        sizes = [DOMAIN[name].size for name in names]
        flat = np.ravel_multi_index([codes[name].astype(int) for name in names], sizes)
        assert (found[names] == np.bincount(flat, minlength=np.prod(sizes))).all()
        assert (found[names].reshape(sizes).sum(axis=1) == found[names[:1]]).all()
    prefixes = counted(product(age="prefix").expand(DOMAIN), records)[0]
    assert (prefixes == np.cumsum(np.bincount(codes["age"], minlength=7))).all()
    gaps = counted(mdp.pairwise("abs", ["age", "code"]).expand(DOMAIN), records)[0]
    assert gaps[0] == (codes["age"] == codes["code"]).sum()


def test_a_counted_table_has_the_columns_of_answers(monkeypatch: pytest.MonkeyPatch):
    records = StratifiedRecords(a_mixture(DOMAIN, even=0.4), 50, 9)
    table = counted_table(DOMAIN, marginals([1]).expand(DOMAIN), records)
    assert (table.column_names[0], table.column_names[-1]) == ("group", "count")
    assert str(table.schema.field("count").type) == "int64"
    assert sum(table.column("count").to_pylist()) == 5 * 50
    halves = mdp.dense(np.full((1, 2), 0.5), attributes=["sex"]).expand(DOMAIN)
    own = counted_table(DOMAIN, halves, StratifiedRecords(a_mixture(DOMAIN, even=0.4), 51, 9))
    assert own.column("count").to_pylist() == [25.5]
    monkeypatch.setattr(held, "MAX_CELLS", 9)
    with pytest.raises(TooLargeError, match="tables of 14 cells"):
        counted(
            marginals([["sex", "age"]]).expand(DOMAIN), StratifiedRecords(a_mixture(DOMAIN, even=0.4), 1, 0)
        )


# From codes to values.

KINDS = mdp.Domain(
    {
        "sex": {"categories": ["f", "m"], "labels": {"f": "female"}, "null": "unknown", "column": "SEX"},
        "age": {"min": -2, "max": 3, "null": "unknown"},
        "code": 3,
        "flag": {"categories": [True, False], "type": "boolean"},
        "grade": {"categories": ["1.50", "2"], "type": "number"},
        "pay": {"edges": ["-inf", 0, 10, 25.5, "inf"]},
        "any": {"edges": ["-inf", "inf"]},
        "narrow": {"edges": [0, 1, 2], "closed": True},
        "hours": {"min": 0, "max": 1, "bins": 3},
        "day": {"from": "2020-02-28", "to": "2020-03-01", "by": "day", "null": "none"},
        "week": {"from": "2020-01-01", "to": "2020-01-20", "by": "week"},
        "month": {"from": "2020-01-15", "to": "2020-03-02", "by": "month"},
        "quarter": {"from": "2020-01-15", "to": "2020-07-02", "by": "quarter"},
        "year": {"from": "2019-06-01", "to": "2021-01-01", "by": "year"},
        "weekday": {"by": "weekday"},
        "hour": {"by": "hour"},
        "county": {
            "categories": ["Kings", "Queens", "Orange"],
            "levels": {"state": {"NY": ["Kings", "Queens"], "CA": ["Orange"]}},
        },
        "old": {"of": ["age"], "sql": "age >= 2", "null": "unknown"},
    }
)


def every_code(domain: mdp.Domain) -> dict[str, np.ndarray]:
    """Records in which every value of every attribute occurs."""
    rows = max(domain.shape)
    return {attribute.name: np.arange(rows) % attribute.size for attribute in domain}


def test_labels_are_what_answers_call_values():
    batch = RecordColumns(KINDS, levels=True).batch(every_code(KINDS))
    columns = {name: batch.column(name).to_pylist()[:4] for name in batch.schema.names}
    assert columns == {
        "sex": ["female", "m", "unknown", "female"],
        "age": [-2, -1, 0, 1],
        "code": [0, 1, 2, 0],
        "flag": ["true", "false", "true", "false"],
        "grade": ["1.50", "2", "1.50", "2"],
        "pay": ["(-inf, 0)", "[0, 10)", "[10, 25.5)", "[25.5, inf)"],
        "any": ["(-inf, inf)"] * 4,
        "narrow": ["[0, 1)", "[1, 2]"] * 2,
        "hours": [KINDS["hours"].label(code) for code in (0, 1, 2, 0)],
        "day": [date(2020, 2, 28), date(2020, 2, 29), date(2020, 3, 1), None],
        "week": ["2020-W01", "2020-W02", "2020-W03", "2020-W04"],
        "month": ["2020-01", "2020-02", "2020-03", "2020-01"],
        "quarter": ["2020-Q1", "2020-Q2", "2020-Q3", "2020-Q1"],
        "year": [2019, 2020, 2021, 2019],
        "weekday": ["Monday", "Tuesday", "Wednesday", "Thursday"],
        "hour": [0, 1, 2, 3],
        "county": ["Kings", "Queens", "Orange", "Kings"],
        "county state": ["NY", "NY", "CA", "NY"],
        "old": [KINDS["old"].label(code % KINDS["old"].size) for code in range(4)],
    }
    assert batch.column("age").to_pylist()[6] is None
    assert pa.types.is_dictionary(batch.schema.field("pay").type)
    assert batch.schema.field("pay").type.ordered


def test_a_level_has_a_column_of_its_own_name():
    spec = {"categories": ["a", "b"], "levels": {"of it": {"x": ["a", "b"]}}}
    domain = mdp.Domain({"at": spec, "at of it": 2})
    columns = RecordColumns(domain, levels=True).batch(every_code(domain))
    assert columns.schema.names == ["at", "at of it*", "at of it"]
    assert columns.column("at of it*").to_pylist() == ["x", "x"]


def test_data_are_read_as_the_values_that_they_stand_for():
    """Of every kind of attribute every value: one by one, and through a source of tables."""
    codes = every_code(KINDS)
    batch = RecordColumns(KINDS, "data").batch(codes)
    assert batch.schema.names == [KINDS[name].column for name in KINDS.names if name != "old"]
    for name in KINDS.names[:-1]:
        read = [encode_value(KINDS[name], value) for value in batch.column(KINDS[name].column).to_pylist()]
        assert read == codes[name].tolist(), name
    table = pl.from_arrow(pa.Table.from_batches([batch]))
    held = measured(KINDS, table, mdp.marginals(1), budget=mdp.Budget(mu=1000), seed=0)
    found = held.reconstruct().answers.to_pylist()
    own = [round(row["estimate"]) for row in found if row["group"] != "old"]
    old = [round(row["estimate"]) for row in found if row["group"] == "old"]
    assert own == [count for name in KINDS.names[:-1] for count in np.bincount(codes[name])]
    assert sum(old) == max(KINDS.shape)


def test_bins_without_ends_are_written_as_a_value_in_them():
    values = RecordColumns(KINDS, "data").batch(every_code(KINDS))
    assert values.column("pay").to_pylist()[:4] == [-1.0, 5.0, 17.75, 25.5]
    assert set(values.column("any").to_pylist()) == {0}
    close = mdp.Domain({"x": {"edges": [0.0, 0.5], "closed": False}, "y": {"edges": ["-inf", -1e300, "inf"]}})
    assert RecordColumns(close, "data").batch(every_code(close)).to_pylist()[0] == {
        "x": 0.25,
        "y": np.nextafter(-1e300, -np.inf),
    }


# Files of records.


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_records_are_written_and_say_what_they_are(ending: str, model: Model, release: Any, tmp_path: Path):
    seen: list[tuple[int, int]] = []
    path = tmp_path / f"people.{ending}"
    assert model.save_records(path, 120, seed=8, levels=True, progress=lambda *at: seen.append(at)) == path
    assert seen[-1] == (120, 120)
    expected = model.records(120, seed=8, levels=True)
    read = pl.read_csv(path, infer_schema=False) if ending == "csv" else pl.read_parquet(path)
    assert [tuple(map(str, row)) for row in read.rows()] == [
        tuple(str(value) for value in row.values()) for row in expected.to_pylist()
    ]
    record = json.loads(beside(path).read_text())
    assert record["synthetic"].startswith("SYNTHETIC")
    assert (record["rows"], record["seed"], record["values"]) == (120, 8, "labels")
    assert record["columns"] == read.columns
    assert record["privacy"]["text"] == release.statement.text
    assert record["privacy"]["measurement"]["sha256"] == model.measurement_digest
    assert record["files"] == {path.name: entry(path)}
    assert record["model"] == {"method": "mixture", "accepted": True, "made": dict(model.made)}
    if ending == "parquet":
        assert pq.read_schema(path).metadata[b"matrixdp"].startswith(b"NOT PRIVATE")


def test_nothing_is_replaced_but_on_request(model: Model, tmp_path: Path):
    path = tmp_path / "inner" / "people.parquet"
    model.save_records(path, 5)
    with pytest.raises(StorageError, match=r"people\.parquet: is there already.*with --force"):
        model.save_records(path, 6)
    model.save_records(path, 6, force=True)
    assert pq.read_metadata(path).num_rows == 6
    path.unlink()
    with pytest.raises(StorageError, match=r"people\.parquet\.json: is there already"):
        model.save_records(path, 6)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(StorageError, match="is there already"):
        model.save_records(tmp_path / "folder.csv", 6, force=True)


def test_wrong_names_are_refused_and_failures_leave_nothing(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(SpecificationError, match=r"out: found 'people\.xlsx'; expected a name that ends in"):
        model.save_records(tmp_path / "people.xlsx")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        model.save_records(tmp_path / "file" / "people.csv")

    def fails(*_: object) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.save_records(tmp_path / "people.csv", progress=fails)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
