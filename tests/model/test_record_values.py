from datetime import date

import numpy as np
import polars as pl
import pyarrow as pa

import matrixdp as mdp
from matrixdp.domain.encoding import encode_value
from matrixdp.model.records import RecordColumns
from tests.model.builders import measured

DOMAIN = mdp.Domain(
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
    batch = RecordColumns(DOMAIN, levels=True).batch(every_code(DOMAIN))
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
        "hours": [DOMAIN["hours"].label(code) for code in (0, 1, 2, 0)],
        "day": [date(2020, 2, 28), date(2020, 2, 29), date(2020, 3, 1), None],
        "week": ["2020-W01", "2020-W02", "2020-W03", "2020-W04"],
        "month": ["2020-01", "2020-02", "2020-03", "2020-01"],
        "quarter": ["2020-Q1", "2020-Q2", "2020-Q3", "2020-Q1"],
        "year": [2019, 2020, 2021, 2019],
        "weekday": ["Monday", "Tuesday", "Wednesday", "Thursday"],
        "hour": [0, 1, 2, 3],
        "county": ["Kings", "Queens", "Orange", "Kings"],
        "county state": ["NY", "NY", "CA", "NY"],
        "old": [DOMAIN["old"].label(code % DOMAIN["old"].size) for code in range(4)],
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
    codes = every_code(DOMAIN)
    batch = RecordColumns(DOMAIN, "data").batch(codes)
    assert batch.schema.names == [DOMAIN[name].column for name in DOMAIN.names if name != "old"]
    for name in DOMAIN.names[:-1]:
        read = [encode_value(DOMAIN[name], value) for value in batch.column(DOMAIN[name].column).to_pylist()]
        assert read == codes[name].tolist(), name
    table = pl.from_arrow(pa.Table.from_batches([batch]))
    held = measured(DOMAIN, table, mdp.marginals(1), budget=mdp.Budget(mu=1000), seed=0)
    found = held.reconstruct().answers.to_pylist()
    own = [round(row["estimate"]) for row in found if row["group"] != "old"]
    old = [round(row["estimate"]) for row in found if row["group"] == "old"]
    assert own == [count for name in DOMAIN.names[:-1] for count in np.bincount(codes[name])]
    assert sum(old) == max(DOMAIN.shape)


def test_bins_without_ends_are_written_as_a_value_in_them():
    values = RecordColumns(DOMAIN, "data").batch(every_code(DOMAIN))
    assert values.column("pay").to_pylist()[:4] == [-1.0, 5.0, 17.75, 25.5]
    assert set(values.column("any").to_pylist()) == {0}
    close = mdp.Domain({"x": {"edges": [0.0, 0.5], "closed": False}, "y": {"edges": ["-inf", -1e300, "inf"]}})
    assert RecordColumns(close, "data").batch(every_code(close)).to_pylist()[0] == {
        "x": 0.25,
        "y": np.nextafter(-1e300, -np.inf),
    }
