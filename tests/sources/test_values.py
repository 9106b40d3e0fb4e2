"""Dates of every unit, case, rounding and open bins: DuckDB's expressions give what plain Python gives."""

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matrixdp.domain import Domain, OutOfDomain, encode_value
from matrixdp.domain.kinds import UNITS
from matrixdp.domain.rules import Kind
from matrixdp.sources import open_source
from tests.relations import relation

SPAN = {"from": "1969-11-15", "to": "1970-04-02"}
DOMAIN = Domain(
    {
        **{f"by {unit}": {**SPAN, "by": unit, "null": "none"} for unit in UNITS},
        "any weekday": {"by": "weekday"},
        "one month": {"from": "1970-01-02", "to": "1970-01-30", "by": "month"},
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
COLUMNS = {
    Kind.TEXT: (TEXTS, pa.string()),
    Kind.FLOAT: (st.one_of(st.floats(-3, 3), st.sampled_from([0.5, -0.5, 1.5, float("nan")])), pa.float64()),
    Kind.DATE: (st.dates(date(1969, 11, 1), date(1970, 4, 9)), pa.date32()),
    Kind.TIMESTAMP: (MOMENTS, pa.timestamp("us")),
    Kind.INSTANT: (MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)), pa.timestamp("us", "UTC")),
}


def codes(source, domain, rows):
    """The codes that a source reads, None out of domain: the last value and the first stand in for that."""
    subsets = [("record", name) for name in domain.names if name != "record"]
    read = [
        dict(
            source.marginals(domain, subsets, OutOfDomain({name: place(domain[name]) for _, name in subsets}))
        )
        for place in (lambda attribute: 0, lambda attribute: attribute.size - 1)
    ]
    return {
        name: [
            int(first) if first == last else None
            for first, last in zip(*(counts[subset].argmax(axis=1) for counts in read), strict=True)
        ]
        for subset in subsets
        for name in subset[1:]
    }


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data(), st.sampled_from(list(COLUMNS)))
def test_every_value_has_the_code_that_python_gives(data, kind):
    strategy, held = COLUMNS[kind]
    values = data.draw(st.lists(st.one_of(st.none(), strategy), min_size=30, max_size=60))
    rows = len(values)
    read = [a for a in DOMAIN if a.size > 1 and a.rule(kind) is not None]
    domain = Domain({"record": rows, **{a.name: a.read_from("value") for a in read}})
    table = pa.table({"record": list(range(rows)), "value": pa.array(values, held)})
    found = codes(open_source(table), domain, rows)
    for attribute in read:
        assert found[attribute.name] == [encode_value(attribute, value) for value in values], attribute.name


def test_one_value_and_edges_that_are_none():
    domain = Domain({"one month": DOMAIN["one month"]})
    table = {"one month": ["1970-01-01", "1970-01-02", "1970-01-30", "1970-01-31"]}
    for source in (open_source(table), open_source(pa.table(table))):
        ((_, found),) = source.marginals(domain, [("one month",)], OutOfDomain())
        assert found.tolist() == [2]


FAR = [0, -1, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1, None]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_timestamps_of_every_unit_and_beyond_all_years(unit, zone, tmp_path):
    table = pa.table({"t": pa.array(FAR, pa.timestamp(unit, zone))})
    domain = Domain({"t": {"from": "1969-12-31", "to": "1970-01-01", "by": "day", "null": "none"}})
    sources = [open_source(table)]
    if unit != "s":
        # Neither Parquet nor Polars has seconds.
        pq.write_table(table, tmp_path / "t.parquet")
        sources += [open_source(tmp_path / "t.parquet"), open_source(pl.from_arrow(table))]
    if zone is None:
        sources.append(open_source(relation(table)))
    for source in sources:
        ((_, found),) = source.marginals(domain, [("t",)], OutOfDomain())
        assert found.tolist() == [1, 1, 1]


def test_moments_of_numpy():
    domain = Domain({"t": {"from": "1969-12-31", "to": "1970-01-01", "by": "day", "null": "none"}})
    for unit in ("D", "h", "s", "us", "ns"):
        values: Any = np.array([0, -1, "NaT"], dtype=f"datetime64[{unit}]")
        ((_, found),) = open_source({"t": values}).marginals(domain, [("t",)], OutOfDomain())
        assert found.tolist() == [1, 1, 1]
