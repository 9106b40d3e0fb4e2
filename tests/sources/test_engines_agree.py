"""Every engine gives the counts that plain Python gives."""

from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matrixdp.domain import Domain, OutOfDomain, encode_value
from matrixdp.domain.rules import Categories, Kind, Rule
from matrixdp.privacy import Unit
from matrixdp.sources import engine_names, open_source
from matrixdp.testing import HOSTILE_DOMAIN, HOSTILE_VALUES, check_source
from tests import servers
from tests.relations import relation
from tests.sources.ways import MATRIX, counts

DOMAIN = HOSTILE_DOMAIN
#: Attributes that columns of every kind but dates are read for.
ANY = Domain([attribute for attribute in DOMAIN if attribute.rule(Kind.INTEGER)])
OTHERS = OutOfDomain({name: index % 2 for index, name in enumerate(DOMAIN.names)})
BOTH = (OutOfDomain.drop(), OTHERS)
SUBSETS = [
    (),
    ("category",),
    ("code", "whole"),
    ('closed "bins"', "category", "open bins"),
    ("odd bins",),
]
KINDS = {
    "text": (st.text(max_size=3).filter(str.isprintable), pa.string()),
    "integer": (st.integers(-2, 5), pa.int64()),
    "float": (st.floats(), pa.float64()),
    "boolean": (st.booleans(), pa.bool_()),
}


#: Engines that files of their own test: test_streams.py, test_spark.py, test_remote.py and
#: modin_frames.py; others refuse.
ELSEWHERE = ("address", "ibis", "modin", "remote", "spark")
IN_MEMORY = [way for way, own in MATRIX.items() if own.engine not in ("path", "postgresql", "sqlite")]


def test_no_engine_is_forgotten():
    assert {own.engine for own in MATRIX.values()} | set(ELSEWHERE) == set(engine_names())


@pytest.mark.parametrize("way", MATRIX)
def test_every_engine_conforms(way, tmp_path):
    own = MATRIX[way]
    with servers.one_connection() if way == "postgresql" else nullcontext():
        check_source(lambda table: own.opens(table, tmp_path), own.kinds)


def test_every_rule_is_checked():
    read = {type(attribute.rule(kind)) for attribute in DOMAIN for kind in Kind}
    assert read - {type(None)} == set(get_args(Rule)) | set(get_args(Categories))


@st.composite
def tables(draw):
    rows = draw(st.integers(0, 12))
    columns = {}
    for name in DOMAIN.names:
        kind = draw(st.sampled_from([kind for kind in sorted(KINDS) if DOMAIN[name].rule(Kind(kind))]))
        random, dtype = KINDS[kind]
        values = st.one_of(st.sampled_from(HOSTILE_VALUES[Kind(kind)]), random)
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


@pytest.mark.slow
@pytest.mark.parametrize("way", IN_MEMORY)
@given(table=tables())
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_tables(way, table):
    check(MATRIX[way].opens(table, Path()), table.to_pydict())


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
TEXTS = ("large text", "text view", "dictionary", "nulls")


@pytest.mark.parametrize("kind", sorted(COLUMNS))
def test_other_types(kind):
    domain = DOMAIN if kind in TEXTS else ANY
    columns = dict.fromkeys(domain.names, COLUMNS[kind])
    values = {name: COLUMNS[kind].to_pylist() for name in domain.names}
    table = pa.table(columns)
    rules = [OutOfDomain({name: code for name, code in rule.codes if name in domain}) for rule in BOTH]
    check(open_source(table), values, domain, rules=rules)
    check(open_source(relation(table)), values, domain, rules=rules)
    if kind not in ("dictionary of integers", "text view"):
        check(open_source(pl.from_arrow(table)), values, domain, rules=rules)
        check(open_source(pl.DataFrame(table).lazy()), values, domain, rules=rules)


def test_half_precision():
    columns = {name: np.array([0.5, 3, np.nan, -1], dtype=np.float16) for name in ANY.names}
    check(open_source(columns), columns, ANY, rules=[OutOfDomain()])
    check(open_source(pa.table(columns)), columns, ANY, rules=[OutOfDomain()])


def test_dates_are_categories():
    table = pl.DataFrame({"day": ["2020-01-31", None, "2020-02-01", "1999-12-31"]})
    table = table.with_columns(pl.col("day").str.to_date())
    domain = Domain({"day": ["2020-02-01", "2020-01-31"]})
    for source in (table, table.lazy(), table.to_arrow(), relation(table.to_arrow())):
        check(open_source(source), table.to_dict(as_series=False), domain, [("day",)], [OutOfDomain.drop()])


def test_days_beyond_those_that_python_has_are_out_of_domain(capfd):
    days = pa.array([18292, 10**9, -(10**9), None, 2_932_897, -719_163], pa.int32()).cast(pa.date32())
    table = pa.table({"day": days})
    domain = Domain({"day": ["2020-01-31", "10000-01-01", "+10000-01-01", "0000-12-31"]})
    for source in (
        table,
        pl.from_arrow(table),
        pl.DataFrame(table).lazy(),
        relation(table),
    ):
        ((_, counts),) = open_source(source).marginals(domain, [("day",)], OutOfDomain())
        assert counts.tolist() == [1, 0, 0, 0]
    assert capfd.readouterr().err == ""


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
    expected = np.zeros(CODEBOOK.shape, dtype=np.int64)
    np.add.at(expected, tuple(np.transpose([(0, 0, 0), (3, 1, 1), (4, 2, 2), (4, 2, 2)])), 1)
    source = MATRIX[way].opens(pa.table(READ), tmp_path)
    assert counts(source, CODEBOOK) == expected.tolist()
    # out of domain is not null
    assert counts(source, CODEBOOK, ("age",), OutOfDomain({"age": 1, "adult": 0})) == [1, 2, 0, 1, 2]
    if source.bounds_contributions:
        table = pa.table(READ | {"person": ["1", "1", "2", "2", "3", "3"]})
        own = MATRIX[way].opens(table, tmp_path)
        assert counts(own, CODEBOOK, ("age",), unit=Unit(id="person", records=1)) == [1, 0, 0, 0, 1]


@pytest.mark.parametrize("way", [way for way, own in MATRIX.items() if Kind.FLOAT in own.kinds])
def test_numbers_that_are_missing(way, tmp_path):
    table = pa.table({"Age, years": [0.0, 3.0, float("nan"), None], "age": ["f", "m", "f", "m"]})
    assert counts(MATRIX[way].opens(table, tmp_path), CODEBOOK, ("age",)) == [1, 0, 0, 1, 2]


DECLARED = Domain(
    {
        "text": {"categories": ["1", "01"], "type": "text"},
        "number": {"categories": [1, 0], "type": "number"},
        "boolean": {"categories": [True, False], "type": "boolean"},
        "date": {"categories": ["2020-01-31"], "type": "date"},
    }
)
EQUAL = ([1, 0, 1], [1.0, 0.0, 1.0], [True, False, True], ["01", "no", "True"], ["1.0", "0", "t"])
DATES = (["x", " 2020-01-31", "2020-01-31"], [1, 2, 3], [0.5, 1.0, 2.0], [True, False, True])


@pytest.mark.parametrize("way", IN_MEMORY)
def test_what_a_declared_type_means_in_every_kind_of_column(way, tmp_path):
    def found(name, values):
        return counts(MATRIX[way].opens(pa.table({name: values}), tmp_path), Domain([DECLARED[name]]))

    for values in EQUAL:
        assert found("number", values) == found("boolean", values) == [2, 1], values
    for values in DATES:
        assert found("date", values) == [2 if isinstance(values[0], str) else 0], values
    assert found("text", ["1", "01", " 1", "1.0", "01"]) == [1, 2]
