"""Budgets that are none, and words that YAML 1.1 would read as truth values."""

import pytest

from matrixdp.errors import SpecificationError
from matrixdp.specification import load_specification

DOMAIN = """domain:
  sex: [female, male]
  age: {min: 0, max: 9}
  income: {edges: [0, 10, 20]}
"""
WORKLOAD = "workload:\n  - marginals: [1]\n"
PRIVACY = "privacy: {rho: 0.5}\n"


@pytest.mark.parametrize("value", ["0", "-1", ".nan", ".inf", "true", "'1'"])
@pytest.mark.parametrize("name", ["rho", "mu", "epsilon"])
def test_wrong_budgets(name, value):
    delta = ", delta: 1e-6" if name == "epsilon" else ""
    with pytest.raises(SpecificationError) as caught:
        load_specification(DOMAIN + WORKLOAD + f"privacy: {{{name}: {value}{delta}}}\n")
    assert caught.value.problem.place.startswith(f"privacy.{name}")


def test_the_core_schema():
    text = DOMAIN.replace("female, male", "yes, no") + WORKLOAD + "privacy: {epsilon: 1, delta: 1e-6}\n"
    specification = load_specification(text)
    assert specification.domain["sex"].label(0) == "yes"
    assert specification.budget is not None
    assert float(specification.budget.delta) == 1e-6
    assert specification.workload.queries == 2 + 10 + 2
