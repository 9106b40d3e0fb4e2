"""Every engine gives the counts that plain Python gives."""

from decimal import Decimal

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matrixdp.domain import Domain, OutOfDomain, encode_value
from matrixdp.sources import open_source
from matrixdp.sources.lazy import LazySource

ATTRIBUTES = {
    "category": ["3", "true", "false", "0.5", "-1", "x", " x", "it's", "10000000000000000", "", "6e-07"],
    "whole": {"min": -1, "max": 4},
    "integer": 3,
    "open bins": {"edges": [-1, 0, 0.5, 3]},
    'closed "bins"': {"min": 0, "max": 4, "bins": 2},
    "odd bins": {"edges": [-1e30, 0.1, 0.2, 0.3, 3.0000000000000004, 1e30]},
}
DOMAIN = Domain(ATTRIBUTES)
OTHERS = OutOfDomain({name: index % 2 for index, name in enumerate(DOMAIN.names)})
BOTH = (OutOfDomain.drop(), OTHERS)
SUBSETS = [
    (),
    ("category",),
    ("integer", "whole"),
    ('closed "bins"', "category", "open bins"),
    ("odd bins",),
]

TEXTS = [
    "3", " 3", "3.0", "+3", "3e0", "30E-1", "3.", ".5", "0.5", "-1", "-0", "4", "4.0000", "true", "True", "x",
    " x", "it's", "", "abc", "nan", "NaN", "inf", "-inf", "infinity", "0x1", "1_0", "1 0", "1,0", "٣",
    "\u00a03", "3\n", "\t3\r", "3\x0b", "3\x0c", "1e400", "1e-400", "1e99", "1e199", "1e-199", "1" * 41,
    "9" * 40, "+", "-", ".", "e1", "1e", "--1", "+-1", "NULL", "null", "None", "1e05", "1e00000005", "0.1",
    "0.30000000000000004", "6e-07", "3.00000000000000044", "9007199254740993", "10000000000000000", "1d",
    "1f", "0b1", "½", "²", "x\x00",
]  # fmt: skip
INTEGERS = [10**16, 2**53 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.5, 3.0, 4.0, -1.0, 1e16, 2e16, 1e300, -1e300, 6e-7, 5e-324, 0.1, 0.2, 0.1 + 0.2]
texts = st.one_of(st.none(), st.sampled_from(TEXTS), st.text(max_size=3).filter(str.isprintable))
integers = st.one_of(st.none(), st.integers(-2, 5), st.sampled_from(INTEGERS))
floats = st.one_of(st.none(), st.sampled_from([*FLOATS, 3.0000000000000004]), st.floats())
booleans = st.sampled_from([None, True, False])
KINDS = {
    "text": (texts, pl.String, pa.string(), "str"),
    "integer": (integers, pl.Int64, pa.int64(), "Int64"),
    "float": (floats, pl.Float64, pa.float64(), "float64"),
    "boolean": (booleans, pl.Boolean, pa.bool_(), "boolean"),
}

ENGINES = {
    "arrays": lambda table: open_source(table.to_pydict()),
    "pandas": lambda table: open_source(
        pd.DataFrame({f.name: pd.Series(table[f.name].to_pylist(), dtype=_kind(f)[3]) for f in table.schema})
    ),
    "pandas objects": lambda table: open_source(
        pd.DataFrame({n: pd.Series(table[n].to_pylist(), dtype=object) for n in table.column_names})
    ),
    "pandas categories": lambda table: open_source(
        pd.DataFrame(
            {
                f.name: pd.Series(table[f.name].to_pylist(), dtype=_kind(f)[3]).astype("category")
                for f in table.schema
            }
        )
    ),
    "polars": lambda table: open_source(pl.from_arrow(table)),
    "polars lazy": lambda table: open_source(pl.from_arrow(table).lazy()),
    "pyarrow": lambda table: open_source(table),
    "duckdb relation": lambda table: open_source(duckdb.connect().from_arrow(table)),
}


def _kind(field):
    return next(kind for kind in KINDS.values() if kind[2] == field.type)


@st.composite
def tables(draw):
    rows = draw(st.integers(0, 12))
    columns = {}
    for name in DOMAIN.names:
        values, _, dtype, _ = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        columns[name] = pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), type=dtype)
    return pa.table(columns)


def reference(columns, domain, subset, rule):
    counts = np.zeros([domain[name].size for name in subset], dtype=np.int64)
    for record in zip(*(columns[name] for name in domain.names), strict=True):
        codes = {}
        for attribute, value in zip(domain, record, strict=True):
            code = encode_value(attribute, value)
            codes[attribute.name] = rule.code(attribute.name) if code is None else code
        if None not in codes.values():
            counts[tuple(codes[name] for name in subset)] += 1
    return counts


def check(source, columns, domain=DOMAIN, subsets=SUBSETS, rules=BOTH):
    for rule in rules:
        found = dict(source.marginals(domain, subsets, rule))
        assert sorted(found) == sorted(subsets)
        for subset in subsets:
            assert found[subset].dtype == np.int64
            np.testing.assert_array_equal(found[subset], reference(columns, domain, subset, rule))


@pytest.mark.parametrize("engine", sorted(ENGINES))
@given(table=tables())
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_tables(engine, table):
    check(ENGINES[engine](table), table.to_pydict())


@pytest.mark.parametrize("engine", [*sorted(ENGINES), "narwhals on a relation", "parquet"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_value_in_every_attribute(engine, kind, tmp_path):
    values = {
        "text": [None, *TEXTS],
        "integer": [None, *range(-2, 6), *INTEGERS],
        "float": [None, float("nan"), float("inf"), float("-inf"), *FLOATS, 3.0000000000000004],
        "boolean": [None, True, False],
    }[kind]  # fmt: skip
    # Two rules, so that a value taken for out of domain cannot hide behind the code that it has anyway.
    rules = [OutOfDomain(dict.fromkeys(DOMAIN.names, code)) for code in (0, 1)]
    columns = dict.fromkeys(DOMAIN.names, values)
    table = pa.table({name: pa.array(values, type=KINDS[kind][2]) for name in DOMAIN.names})
    if engine == "parquet":
        pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
        source = open_source(tmp_path / "t.parquet")
    elif engine == "narwhals on a relation":
        source = LazySource(nw.from_native(duckdb.connect().from_arrow(table)))
    else:
        source = ENGINES[engine](table)
    check(source, columns, DOMAIN, [(), *((name,) for name in DOMAIN.names)], rules)


COLUMNS = {
    "int8": pa.array([0, 1, None, 3], pa.int8()),
    "uint64": pa.array([0, 3, None, 2**64 - 1], pa.uint64()),
    "float32": pa.array([0, 0.5, None, 3], pa.float32()),
    "decimal": pa.array([Decimal("0.50"), Decimal("3.00"), None, Decimal("0.51")], pa.decimal128(10, 2)),
    "large text": pa.array(["3", "x", None, "4"], pa.large_string()),
    "text view": pa.array(["3", "x", None, "4"], pa.string_view()),
    "dictionary": pa.array(["3", "x", None, "4"]).dictionary_encode(),
    "dictionary of integers": pa.array([3, -1, None, 4]).dictionary_encode(),
    "nulls": pa.nulls(4),
}


@pytest.mark.parametrize("kind", sorted(COLUMNS))
def test_other_types(kind):
    columns = dict.fromkeys(DOMAIN.names, COLUMNS[kind])
    values = {name: COLUMNS[kind].to_pylist() for name in DOMAIN.names}
    table = pa.table(columns)
    check(open_source(table), values)
    check(open_source(duckdb.connect().from_arrow(table)), values)
    if kind not in ("dictionary of integers", "text view"):
        check(open_source(pl.from_arrow(table)), values)
        check(open_source(pl.from_arrow(table).lazy()), values)


def test_half_precision():
    columns = {name: np.array([0.5, 3, np.nan, -1], dtype=np.float16) for name in DOMAIN.names}
    check(open_source(columns), columns)
    check(open_source(pa.table(columns)), columns)


def test_dates_are_categories():
    table = pl.DataFrame({"day": ["2020-01-31", None, "2020-02-01", "1999-12-31"]})
    table = table.with_columns(pl.col("day").str.to_date())
    domain = Domain({"day": ["2020-02-01", "2020-01-31"]})
    for source in (table, table.lazy(), table.to_arrow(), duckdb.connect().from_arrow(table.to_arrow())):
        check(open_source(source), table.to_dict(as_series=False), domain, [("day",)], [OutOfDomain.drop()])


def test_enumerations_and_categoricals_of_polars():
    table = pl.DataFrame({"a": ["x", "y", None, "3"]}).with_columns(
        b=pl.col("a").cast(pl.Categorical), c=pl.col("a").cast(pl.Enum(["y", "x", "3"]))
    )
    domain = Domain({"a": ["y", "3"], "b": ["y", "3"], "c": 4})
    for frame in (table, table.lazy()):
        check(open_source(frame), table.to_dict(as_series=False), domain, [("a", "b"), ("c",)], [
            OutOfDomain.drop(), OutOfDomain({"a": 0, "b": 1, "c": 2})
        ])  # fmt: skip


def test_objects_of_mixed_types():
    values = [
        "3",
        3,
        3.0,
        True,
        None,
        pd.NA,
        pd.NaT,
        [1],
        {"a": 1},
        b"x",
        "x",
        1,
        1.0,
        np.float32(0.5),
        object(),
    ]
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name in DOMAIN.names})
    check(open_source(frame), dict.fromkeys(DOMAIN.names, values))
    check(open_source(dict.fromkeys(DOMAIN.names, values)), dict.fromkeys(DOMAIN.names, values))


def test_a_large_domain_of_many_categories():
    size = 700
    rng = np.random.default_rng(0)
    values = rng.integers(0, size + 10, 5000).astype(float)
    values[::7] = np.nan
    domain = Domain({"county": list(range(size)), "code": size, "bin": {"min": 0, "max": size, "bins": size}})
    columns = dict.fromkeys(domain.names, values)
    subsets = [("county",), ("bin", "code")]
    check(open_source(pd.DataFrame(columns)), columns, domain, subsets, [OutOfDomain.drop()])


def test_lists_and_structured_arrays():
    records = np.array([("f", 1), ("m", 2), ("f", 1)], dtype=[("sex", "U1"), ("code", "i4")])
    domain = Domain({"sex": ["f", "m"], "code": 3})
    columns = {"sex": ["f", "m", "f"], "code": [1, 2, 1]}
    check(open_source(records), columns, domain, [("code", "sex")], [OutOfDomain.drop()])


def test_names_that_differ_in_case():
    columns = {"Age": [0, 1, 1], "age": [2, 2, 1]}
    domain = Domain({"age": 3, "Age": 3})
    for table in (columns, pa.table(columns), pl.DataFrame(columns), pl.LazyFrame(columns)):
        check(open_source(table), columns, domain, [("Age",), ("age", "Age")], [OutOfDomain.drop()])


def test_categories_that_no_value_of_the_type_can_have():
    columns = {"sex": [1, 2, None]}
    domain = Domain({"sex": ["female", "male"]})
    rules = [OutOfDomain.drop(), OutOfDomain({"sex": 1})]
    for table in (pa.table(columns), pl.DataFrame(columns), pl.LazyFrame(columns)):
        check(open_source(table), columns, domain, [(), ("sex",)], rules)
    source = LazySource(nw.from_native(duckdb.connect().from_arrow(pa.table(columns))))
    check(source, columns, domain, [(), ("sex",)], rules)
