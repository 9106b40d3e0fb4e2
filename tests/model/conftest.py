"""A small release, and a model of it that is a mixture of a few products."""

from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="session")
def release() -> Any:
    import matrixdp as mdp  # not before its raise statements are marked
    from tests.model.builders import measured

    sides = {"side": {"east": ["a", "b"], "west": ["c"]}}
    domain = {
        "sex": ["female", "male"],
        "age": range(12),
        "region": {"categories": ["a", "b", "c"], "levels": sides},
        "adult": {"of": ["age"], "sql": "age >= 8"},
    }
    entries = [
        mdp.marginals([0, 1]),
        mdp.marginals([["sex", "age"]]),
        mdp.product(sex="identity", age="prefix", name="age CDF by sex"),
        mdp.dense(np.tri(3), attributes=["region"], name="sums"),
    ]
    random = np.random.default_rng(5)
    table = {
        "sex": random.choice(["female", "male"], 400),
        "age": random.integers(0, 12, 400) // 2,
        "region": random.choice(["a", "b", "c"], 400),
    }
    return measured(domain, table, *entries, budget=mdp.Budget(rho=0.5), seed=9).reconstruct(confidence=0.9)


@pytest.fixture(scope="session")
def model(release: Any) -> Any:
    from matrixdp.model import Model
    from tests.model.builders import a_mixture

    tables = a_mixture(release.domain, 3, 399.7, seed=2)
    made = {"method": "mixture", "seed": 4, "accepted": True, "tests": {"loss": 1.5, "limit": 2.0}}
    return Model(release.measurement, release.workload, tables, made, release.confidence)


@pytest.fixture(scope="session")
def correlated() -> Any:
    """What is measured of two attributes that are equal for nearly all: one product cannot say so."""
    import matrixdp as mdp
    from matrixdp.model.likelihood import Evidence
    from tests.model.builders import measured

    random = np.random.default_rng(11)
    a = random.integers(0, 12, 3_000)
    b = np.where(random.random(3_000) < 0.9, a, random.integers(0, 12, 3_000))
    table = {"a": a, "b": b, "c": random.integers(0, 2, 3_000)}
    held = measured({"a": 12, "b": 12, "c": 2}, table, mdp.marginals([0, 1, 2]), seed=2)
    return Evidence.of(held.measurement)
