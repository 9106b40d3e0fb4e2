"""Every engine gives the counts that plain Python gives."""

from contextlib import nullcontext
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matrixdp.domain import Domain, OutOfDomain, encode_value
from matrixdp.domain.kinds import UNITS
from matrixdp.domain.rules import Categories, Kind, Rule
from matrixdp.errors import SourceError
from matrixdp.privacy import Unit
from matrixdp.sources import engine_names, open_source
from matrixdp.testing import check_source
from matrixdp.testing.tables import HOSTILE_DOMAIN, weights_of
from tests import servers
from tests.relations import read_csv
from tests.sources.ways import IN_MEMORY, MATRIX, cells, counts, parquet

#: Engines that files of their own test: test_spark.py, test_remote.py and modin_frames.py; others refuse.
ELSEWHERE = ("address", "modin", "remote", "spark")


def test_no_engine_and_no_rule_is_forgotten():
    assert {own.engine for own in MATRIX.values()} | set(ELSEWHERE) == set(engine_names())
    read = {type(attribute.rule(kind)) for attribute in HOSTILE_DOMAIN for kind in Kind}
    assert read - {type(None)} == set(get_args(Rule)) | set(get_args(Categories))


@pytest.mark.parametrize("way", MATRIX)
def test_every_engine_conforms(way, tmp_path):
    own = MATRIX[way]
    with servers.one_connection() if way == "postgresql" else nullcontext():
        check_source(lambda table: own.opens(table, tmp_path), own.kinds)


def check_codes(source, attributes, values):
    """Check the codes of a column: the first value and the last one stand in for what is out of domain."""
    domain = Domain({"record": len(values), **{a.name: a.read_from("value") for a in attributes}})
    for end in (0, -1):
        others = {a.name: range(a.size)[end] for a in attributes}
        found = source.marginals(domain, [("record", a.name) for a in attributes], OutOfDomain(others))
        for (_, name), counted in found:
            own = domain[name]
            read = [encode_value(own, value) for value in values]
            other = own.raw_code(others[name])
            expected = [weights_of(own, other if code is None else code) for code in read]
            assert counted.tolist() == expected, name


SPAN = {"from": "1969-11-15", "to": "1970-04-02"}
ATTRIBUTES = Domain(
    {
        **{f"by {unit}": {**SPAN, "by": unit, "null": "none"} for unit in UNITS},
        "any weekday": {"by": "weekday", "time_zone": "America/St_Johns"},
        **{f"{unit} of Hobart": {**SPAN, "by": unit, "time_zone": "Australia/Hobart"} for unit in UNITS},
        "clipped month": {**SPAN, "by": "month", "clip": True, "missing": ["1970-01-01", "x"]},
        "clipped": {"min": -2, "max": 2, "clip": True, "missing": [0, "no", -0.5], "null": "none"},
        "clipped bins": {"edges": [-2, -0.5, 0.5, 2], "closed": True, "clip": True, "missing": ["nan", 3]},
        "case": {"categories": ["sK", "É", "1E2", "no"], "case": "ignore", "null": "none"},
        "as text": {"categories": ["x", "1e2"], "type": "text", "case": "ignore", "trim": True},
        "floor": {"min": -2, "max": 2, "round": "floor", "trim": True},
        "nearest": {"min": -2, "max": 2, "round": "nearest", "null": "none"},
        "endless": {"edges": ["-inf", -0.5, 0.5, "inf"], "null": "none"},
    }
)
MOMENTS = st.datetimes(datetime(1969, 11, 14), datetime(1970, 4, 4))
TEXTS = st.one_of(
    st.text("skSKſ\u212aéÉ1eE2noNOxX \t", max_size=4),
    st.from_regex(r"\A *-?[0-3](\.(5|49999999999999994|50))?\Z"),
    st.builds(str.replace, MOMENTS.map(str), st.just(" "), st.sampled_from(" Tt")),
    MOMENTS.map(lambda moment: moment.isoformat(timespec="minutes")[: 16 - 6 * (moment.second % 2)]),
    st.builds(
        lambda moment, zone: moment.isoformat(timespec="minutes") + zone,
        MOMENTS,
        st.sampled_from(["Z", "+01", "-0130", "+14:59", "-00:30", "+15:00", "-1", "+01:60"]),
    ),
    st.from_regex(r"\A(19[67][0-9]|0000)-[01][0-9]-[0-3][0-9]\Z"),
)
RANDOM = {
    Kind.TEXT: (TEXTS, pa.string()),
    Kind.INTEGER: (st.integers(-4, 4), pa.int64()),
    Kind.FLOAT: (st.one_of(st.floats(-3, 3), st.sampled_from([0.5, -0.5, 1.5, float("nan")])), pa.float64()),
    Kind.DATE: (st.dates(date(1969, 11, 1), date(1970, 4, 9)), pa.date32()),
    Kind.TIMESTAMP: (MOMENTS, pa.timestamp("us")),
    Kind.INSTANT: (MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)), pa.timestamp("us", "UTC")),
}


@pytest.mark.parametrize("way", IN_MEMORY)
@settings(max_examples=5, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data(), kind=st.sampled_from(list(RANDOM)))
def test_every_value_has_the_code_that_python_gives(way, data, kind):
    strategy, dtype = RANDOM[kind]
    values = data.draw(st.lists(st.one_of(st.none(), strategy), min_size=30, max_size=60))
    table = pa.table({"record": range(len(values)), "value": pa.array(values, dtype)})
    attributes = [attribute for attribute in ATTRIBUTES if attribute.rule(kind) is not None]
    check_codes(MATRIX[way].opens(table, Path()), attributes, values)


STORED = {
    "int8": pa.array([0, 1, None, 3], pa.int8()),
    "uint64": pa.array([0, 3, None, 2**64 - 1], pa.uint64()),
    "float32": pa.array([0, 0.5, None, 3], pa.float32()),
    "decimal": pa.array([Decimal("0.50"), Decimal("3.00"), None, Decimal("0.51")], pa.decimal128(10, 2)),
    "large text": pa.array(["3", "x", None, "4"], pa.large_string()),
    "text view": pa.array(["3", "x", None, "4"], pa.string_view()),
    "dictionary": pa.array(["3", "x", None, "4"]).dictionary_encode(),
    "dictionary of integers": pa.array([3, -1, None, 4]).dictionary_encode(),
    "nulls": pa.nulls(4),
    "half precision": pa.array(np.array([0.5, 3, np.nan, -1], np.float16)),
}
BY_ARROW_ALONE = ("dictionary of integers", "text view", "half precision")


@pytest.mark.parametrize("kind", STORED)
def test_other_types(kind):
    texts = kind in ("large text", "text view", "dictionary", "nulls")
    attributes = [a for a in HOSTILE_DOMAIN if texts or a.rule(Kind.INTEGER)]
    table = pa.table({"record": range(4), "value": STORED[kind]})
    for way in ("pyarrow",) if kind in BY_ARROW_ALONE else ("pyarrow", "relation", "polars", "lazy"):
        check_codes(MATRIX[way].opens(table, Path()), attributes, STORED[kind].to_pylist())


def test_objects_of_mixed_types():
    values = [
        "3", 3, 3.0, True, None, pd.NA, pd.NaT, [1], {"a": 1}, b"x", "x", 1, 1.0, np.float32(0.5), object()
    ]  # fmt: skip
    columns = {"record": list(range(len(values))), "value": pd.Series(values, dtype=object)}
    check_codes(open_source(pd.DataFrame(columns)), HOSTILE_DOMAIN, values)
    check_codes(open_source(columns | {"value": values}), HOSTILE_DOMAIN, values)


FAR = [0, -1, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1, None]
EVE = Domain({"t": {"from": "1969-12-31", "to": "1970-01-01", "by": "day", "null": "none"}})


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_timestamps_of_every_unit_and_beyond_all_years(unit, zone, tmp_path):
    table = pa.table({"t": pa.array(FAR, pa.timestamp(unit, zone))})
    # Neither Parquet nor Polars has seconds.
    others = ([] if unit == "s" else ["parquet", "polars"]) + ([] if zone else ["relation"])
    for way in ("pyarrow", *others):
        assert counts(MATRIX[way].opens(table, tmp_path), EVE) == [1, 1, 1], way
    assert counts({"t": np.array([0, -1, "NaT"], dtype=f"datetime64[{unit}]")}, EVE) == [1, 1, 1]


@pytest.mark.parametrize("way", ["pyarrow", "polars", "lazy", "relation"])
def test_days_beyond_those_that_python_has_are_out_of_domain(way, capfd):
    days = pa.array([18292, 10**9, -(10**9), None, 2_932_897, -719_163], pa.int32()).cast(pa.date32())
    domain = Domain({"day": ["2020-01-31", "10000-01-01", "+10000-01-01", "0000-12-31"]})
    assert counts(MATRIX[way].opens(pa.table({"day": days}), Path()), domain) == [1, 0, 0, 0]
    assert capfd.readouterr().err == ""


def test_a_month_of_one_code():
    domain = Domain({"day": {"from": "1970-01-02", "to": "1970-01-30", "by": "month"}})
    table = {"day": ["1970-01-01", "1970-01-02", "1970-01-30", "1970-01-31"]}
    assert counts(table, domain) == counts(pa.table(table), domain) == [2]


@pytest.mark.parametrize("way", [way for way in (*IN_MEMORY, "parquet") if way != "relation"])
def test_names_that_differ_in_case(way, tmp_path):
    columns = {"Age": [0, 1, 1, 9], "age": [2, 2, 1, 0], "note": ["x"] * 4}
    source = MATRIX[way].opens(pa.table(columns), tmp_path)
    assert cells(source, Domain(dict.fromkeys(("age", "Age"), 3))) == [(1, 1), (2, 0), (2, 1)]
    assert counts(source, Domain({"Age": 3})) == [1, 2, 0]


NAMES = (
    "AGE_1", "AGE", "^.*$", "*", 'a"b', "a'b", "$1", "%s", "{c0}", "\\", "é" * 31, '"; SELECT 1; --',
    "count(*)", "c0", " ",
)  # fmt: skip


@pytest.mark.parametrize("way", MATRIX)
def test_names_of_columns_are_no_sql(way, tmp_path):
    columns = {name: [str(number % 3)] * 2 for number, name in enumerate(NAMES)}
    source = MATRIX[way].opens(pa.table(columns), tmp_path)
    marginals = source.marginals(Domain(dict.fromkeys(NAMES, 3)), [(name,) for name in NAMES], OutOfDomain())
    for (name,), counted in marginals:
        assert counted.tolist() == [2 * (NAMES.index(name) % 3 == code) for code in range(3)], name


def test_columns_of_several_parquet_files_that_differ_in_case_alone(tmp_path):
    parquet(pa.table({"age": [1, 1]}), tmp_path, "1.parquet")
    parquet(pa.table({"AGE": [2]}), tmp_path, "2.parquet")
    for name, file in (("age", "2.parquet"), ("AGE", "1.parquet")):
        with pytest.raises(SourceError) as caught:
            counts(tmp_path / "*.parquet", Domain({name: 3}))
        assert caught.value.code == "missing-column"
        assert file in str(caught.value)


CODEBOOK = Domain(
    {
        "age": {"min": 0, "max": 3, "column": "Age, years", "null": "unknown"},
        "adult": {"edges": ["-inf", 2, "inf"], "column": "Age, years", "null": "unknown"},
        "sex": {"categories": ["f", "m"], "column": "age", "trim": True, "null": "unknown"},
    }
)
READ = {"Age, years": ["0", "3", "", None, "9", "x"], "age": ["f", " m ", " ", None, "m", "f"]}


@pytest.mark.parametrize("way", MATRIX)
def test_columns_of_another_name_that_several_attributes_read(way, tmp_path):
    source = MATRIX[way].opens(pa.table(READ), tmp_path)
    assert cells(source, CODEBOOK) == [(0, 0, 0), (3, 1, 1), (4, 2, 2), (4, 2, 2)]
    # out of domain is not null
    assert counts(source, CODEBOOK, ("age",), OutOfDomain({"age": 1, "adult": 0})) == [1, 2, 0, 1, 2]
    if source.bounds_contributions:
        table = pa.table(READ | {"person": ["1", "1", "2", "2", "3", "3"]})
        own = MATRIX[way].opens(table, tmp_path)
        assert counts(own, CODEBOOK, ("age",), unit=Unit(id="person", records=1)) == [1, 0, 0, 0, 1]


READERS: dict[str, Any] = {
    "pandas": pd.read_csv,
    "pandas with nulls": lambda path: pd.read_csv(path, dtype_backend="numpy_nullable"),
    "polars": lambda path: pl.read_csv(path, infer_schema_length=None),
    "polars lazy": lambda path: pl.scan_csv(path, infer_schema_length=None),
    "duckdb": read_csv,
    "path": lambda path: path,
}
#: What the other records hold, and an attribute that lists it.
INFERRED: dict[str, tuple[tuple[str, ...], Any]] = {
    "booleans": (("True", "False"), [True, False]),
    "booleans as numbers": (("True", "False"), {"min": 0, "max": 1}),
    "lower case booleans": (("true", "false"), ["True", "False"]),
    "letters": (("t", "f"), ["f", "t"]),
    "words": (("yes", "no"), ["no", "yes"]),
    "integers": (("1", "2", "3"), ["3.0", 2, "1"]),
    "decimals": (("1.0", "2.5", "3.0"), [1, 2.5, 3]),
    "leading zeros": (("01", "02"), ["01", "02"]),
    "signs": (("-1", "+1"), [-1, "1.0"]),
    "long integers": (("9007199254740993", "9007199254740991"), ["9007199254740993", 2**53 - 1]),
    "days": (("2020-01-31", "2020-02-01"), ["2020-02-01", "2020-01-31"]),
}
RECORDS = ("unknown", "1.0", "0.5", "1", "True", "no", "", "1e3", "nan", "inf", "2020-01-31", "9" * 30)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("table", INFERRED)
def test_a_record_that_changes_the_type_that_is_inferred_changes_one_count_by_one(reader, table, tmp_path):
    values, spec = INFERRED[table]
    lines = ["a,b", *(f"{value},x" for value in values for _ in range(50))]
    found = []
    for number, record in enumerate([[], *([f"{record},x"] for record in RECORDS)]):
        # a file of its own: no reader can take what it remembers of another
        path = tmp_path / f"{number}.csv"
        path.write_text("\n".join([*lines, *record, ""]))
        found.append(np.array(counts(READERS[reader](path), Domain({"a": spec}))))
    assert found[0].sum() == 50 * len(values)
    for own, after in zip(RECORDS, found[1:], strict=True):
        assert np.abs(after - found[0]).sum() <= 1, own
