"""Statistics of a release against brute force on its table."""

import json

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.statistics import METADATA

DOMAIN = mdp.Domain(
    {
        "sex": ["female", "male"],
        "age": {"min": 0, "max": 9},
        "income": {"edges": [0, 10, 25, 50]},
        "day": {"from": "2013-01-01", "to": "2013-01-10", "by": "day"},
    }
)
RANDOM = np.random.default_rng(3)
SEX, AGE = RANDOM.integers(0, 2, 4_000), RANDOM.binomial(9, 0.4, 4_000)
INCOME = RANDOM.uniform(0, 50, 4_000)
TABLE = {
    "sex": np.array(["female", "male"])[SEX],
    "age": AGE,
    "income": INCOME,
    "day": [f"2013-01-{1 + age:02}" for age in AGE],
}


@pytest.fixture(scope="module")
def release() -> mdp.Release:
    workload = mdp.Workload(DOMAIN, mdp.product(sex="identity", age="prefix"), mdp.marginals(2))
    return mdp.select(workload).measure(TABLE, mdp.Budget(mu=50)).reconstruct()


def test_quantiles_in_strata(release: mdp.Release):
    table = release.quantile("age", [0.25, 0.5], by="sex")
    assert table.column_names == ["sex", "quantile", "estimate", "stddev", "lower", "upper", "warning"]
    rows = table.to_pylist()
    assert [(row["sex"], row["quantile"]) for row in rows] == [
        ("female", 0.25), ("female", 0.5), ("male", 0.25), ("male", 0.5),
    ]  # fmt: skip
    for row in rows:
        own = np.sort(AGE[(row["sex"] == "male") == SEX])
        true = own[int(np.ceil(row["quantile"] * len(own))) - 1]
        assert row["lower"] <= true <= row["upper"]
        assert row["estimate"] == true
        assert row["stddev"] is None
    said = json.loads(table.schema.metadata[METADATA])
    assert (said["statistic"], said["by"], said["confidence"]) == ("quantile of age", ["sex"], 0.95)


def test_means_hold_the_true_ones(release: mdp.Release):
    below = release.mean("age", where={"income": {"range": [0, 25]}}).to_pylist()[0]
    assert below["lower"] <= AGE[INCOME < 25].mean() <= below["upper"]
    for code, row in enumerate(release.mean("income", by=["sex"]).to_pylist()):
        assert row["lower"] <= INCOME[code == SEX].mean() <= row["upper"]
        assert row["binning"] == 12.5
