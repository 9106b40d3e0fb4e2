# ruff: noqa: S608
"""Releases with next to no noise answer SQL as DuckDB does when it executes it on the records."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.errors import EntryError

TEXTS = [line for line in Path(__file__).with_name("analysts.sql").read_text().splitlines() if line]
HEADINGS = [place for place, line in enumerate(TEXTS) if line.startswith("--")]
ANSWERED = [line for line in TEXTS[: HEADINGS[-1]] if not line.startswith("--")]
REFUSED = TEXTS[HEADINGS[-1] + 1 :]
DOMAINS = {
    "people": mdp.Domain(
        {
            "age": {"min": 0, "max": 19},
            "educ": {"min": 1, "max": 5},
            "income": {"min": 0, "max": 9},
            "sex": ["female", "male"],
            "race": ["white", "black", "asian"],
            "married": [True, False],
        }
    ),
    "devices": mdp.Domain(
        {
            "region": ["LATAM", "EMEA", "APAC"],
            "building": {"min": 1, "max": 3},
            "oem": ["x", "y", "z"],
            "refurbished": [True, False],
            "crashes": {"min": 0, "max": 7},
            "temperature": {"min": 40, "max": 49},
        }
    ),
}
RANDOM = np.random.default_rng(11)
TABLES = {
    name: pd.DataFrame(
        {"pid": np.arange(6000)}
        | {
            own.name: RANDOM.choice(
                [own.value(code) for code in own.all_codes],
                6000,
                p=np.arange(own.size, 3 * own.size, 2) / np.arange(own.size, 3 * own.size, 2).sum(),
            )
            for own in domain.attributes
        }
    )
    for name, domain in DOMAINS.items()
}
for frame in TABLES.values():
    for truth in ("married", "refurbished"):
        if truth in frame:
            frame[truth] = frame[truth].astype(str).str.lower() == "true"
EXACT = mdp.Budget(mu=9e3, unit={"records": 1, "id": "pid"})


@pytest.fixture(scope="module")
def releases() -> dict[str, mdp.Release]:
    """Every cell of both tables, with next to no noise."""
    return {
        name: mdp.select(mdp.Workload(domain, mdp.marginals([list(domain.names)])))
        .measure(TABLES[name], EXACT)
        .reconstruct()
        for name, domain in DOMAINS.items()
    }


def executed(text: str) -> list[tuple[object, ...]]:
    people, devices = TABLES["people"], TABLES["devices"]  # noqa: F841 - named in the statements
    text = text.replace("VAR(", "VARIANCE(").rstrip(";")
    if "TOP" in text:
        top = text.split()[2]
        text = text.replace(f"TOP {top} ", "") + f" LIMIT {top}"
    return duckdb.sql(text.replace("FETCH FIRST 4 ROWS ONLY", "LIMIT 4")).fetchall()


Row = list[tuple[object, float]]


def shown(table: pa.Table) -> list[Row]:
    """Return the rows of a result: each value, and six standard errors of it, or what floats need.

    What is the same for every table has no standard error.
    """
    names = [name for name in table.column_names if not name.endswith(("_stddev", "_lower", "_upper"))]
    errors = [f"{name}_stddev" for name in names]
    return [
        [(row[name], 6.0 * (row.get(error) or 0.0) + 1e-9) for name, error in zip(names, errors, strict=True)]
        for row in table.to_pylist()
    ]


def alike(one: object, error: float, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, int | float | Decimal):
        return abs(one - float(other)) <= error * max(1.0, 1e-3 * abs(one))
    return one == other or str(one) == str(other)


def in_order(row: Sequence[object]) -> list[str]:
    return [f"{value:012.3f}" if isinstance(value, int | float | Decimal) else str(value) for value in row]


@pytest.mark.parametrize("text", ANSWERED)
def test_what_analysts_write_is_answered_as_duckdb_does(releases: dict[str, mdp.Release], text: str) -> None:
    found = shown(releases["devices" if "FROM devices" in text else "people"].sql(text))
    theirs = executed(text)
    if "ORDER BY" not in text:
        found.sort(key=lambda row: in_order([value for value, _ in row]))
        theirs.sort(key=in_order)
    assert [len(row) for row in found] == [len(row) for row in theirs]
    for row, other in zip(found, theirs, strict=True):
        assert all(alike(*pair, truth) for pair, truth in zip(row, other, strict=True)), (row, other)


CONDITIONS = [
    "age > 4",
    "race <> 'asian'",
    "income BETWEEN 2 AND 7",
    "age > educ",
    "NOT (married AND age < 9)",
]
NUMBERS = st.sampled_from(["age", "income", "educ"])
AGGREGATES = st.one_of(
    st.builds("{}({})".format, st.sampled_from(["SUM", "AVG", "VAR_POP", "STDDEV"]), NUMBERS),
    st.builds("{}({}) FILTER (WHERE {})".format, st.sampled_from(["SUM", "AVG"]), NUMBERS,
              st.sampled_from(CONDITIONS)),
    st.builds("SUM(CASE WHEN {} THEN {} ELSE 0 END)".format, st.sampled_from(CONDITIONS), NUMBERS),
    st.builds("COUNT(*) FILTER (WHERE {})".format, st.sampled_from(CONDITIONS)),
    st.builds("AVG(CASE WHEN {} THEN 1 ELSE 0 END)".format, st.sampled_from(CONDITIONS)),
)  # fmt: skip
EXPRESSIONS = st.recursive(
    st.one_of(AGGREGATES, st.just("COUNT(*)")),
    lambda parts: st.one_of(
        st.builds("({} {} {})".format, parts, st.sampled_from("+-*"), parts | st.just("2.5")),
        st.builds("({} / {})".format, parts, st.sampled_from(["COUNT(*)", "SUM(income)", "AVG(age)", "3"])),
        st.builds("(-{})".format, parts),
    ),
    max_leaves=3,
)
KEYS = st.lists(st.sampled_from(["sex", "married", "race", "age // 7", "educ > 2"]), max_size=2, unique=True)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(KEYS, st.lists(EXPRESSIONS, min_size=1, max_size=2), st.none() | st.sampled_from(CONDITIONS))
def test_any_arithmetic_is_what_duckdb_computes(
    releases: dict[str, mdp.Release], keys: list[str], expressions: list[str], condition: str | None
) -> None:
    names = [f"k{place}" for place in range(len(keys))]
    shown_keys = [f"{key} AS {name}" for key, name in zip(keys, names, strict=True)]
    items = [*shown_keys, *(f"{own} AS x{place}" for place, own in enumerate(expressions))]
    where = f" WHERE {condition}" if condition else ""
    by = f" GROUP BY {', '.join(names)} ORDER BY {', '.join(names)}" if names else ""
    text = f"SELECT {', '.join(items)} FROM people{where}{by}"
    for row, other in zip(shown(releases["people"].sql(text)), executed(text), strict=True):
        for (value, error), truth in zip(row, other, strict=True):
            size = abs(truth) if isinstance(truth, int | float) else 0.0
            # a sum of no records is NULL in SQL, and 0 where nobody may know that there are none
            assert truth is None or alike(value, error + 1e-7 * size, truth), (text, row, other)


def test_most_texts_of_analysts_are_answered() -> None:
    assert len(ANSWERED) >= 0.85 * (len(ANSWERED) + len(REFUSED))
    assert len(ANSWERED) + len(REFUSED) >= 150


@pytest.mark.parametrize("text", REFUSED)
def test_the_rest_is_refused_in_the_words_of_the_user(releases: dict[str, mdp.Release], text: str) -> None:
    with pytest.raises(EntryError) as caught:
        releases["devices" if "devices" in text else "people"].sql(text)
    assert not any(f"{letter}{place}" in str(caught.value) for letter in "ckl" for place in range(6))
