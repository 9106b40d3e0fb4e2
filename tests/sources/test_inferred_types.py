"""One record that changes the type which a reader infers changes the code of no other record."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.sources import open_source
from tests.relations import read_csv

READERS: dict[str, Any] = {
    "pandas": pd.read_csv,
    "pandas with nulls": lambda path: pd.read_csv(path, dtype_backend="numpy_nullable"),
    "polars": lambda path: pl.read_csv(path, infer_schema_length=None),
    "polars lazy": lambda path: pl.scan_csv(path, infer_schema_length=None),
    "duckdb": read_csv,
    "path": lambda path: path,
}
#: What the other records hold, and a domain of categories that lists it.
TABLES = {
    "booleans": (("True", "False"), [True, False]),
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


def counts(source, domain):
    return next(iter(source.marginals(domain, [domain.names], OutOfDomain())))[1]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("table", TABLES)
def test_one_more_record_changes_one_count_by_one(reader, table, tmp_path):
    values, categories = TABLES[table]
    domain = Domain({"a": categories})
    path = tmp_path / "t.csv"
    lines = ["a,b", *(f"{value},x" for value in values for _ in range(50))]
    path.write_text("\n".join([*lines, ""]))
    before = counts(open_source(READERS[reader](path)), domain)
    assert before.sum() == 50 * len(values)
    for number, record in enumerate(RECORDS):
        # a file of its own: no reader can take what it remembers of another
        path = tmp_path / f"{number}.csv"
        path.write_text("\n".join([*lines, f"{record},x", ""]))
        after = counts(open_source(READERS[reader](path)), domain)
        assert np.abs(after - before).sum() <= 1, record


@pytest.mark.parametrize("reader", READERS)
def test_numeric_attributes_read_booleans_alike(reader, tmp_path):
    path, found = tmp_path / "t.csv", []
    for record in ("", "unknown,x\n", "1,x\n"):
        path.write_text("a,b\n" + "True,x\nFalse,x\n" * 20 + record)
        domain = Domain({"a": {"min": 0, "max": 1}})
        found.append(counts(open_source(READERS[reader](path)), domain).tolist())
    assert found == [[20, 20], [20, 20], [20, 21]]
