"""Warnings about budgets that are allowed."""

from fractions import Fraction

import pytest

from matrixdp.privacy import Budget, delta_warnings


@pytest.mark.parametrize(
    ("budget", "records", "says"),
    [
        (Budget(rho=1), 10, None),
        (Budget(epsilon=1), 10, None),
        (Budget(epsilon=1, delta=Fraction(1, 10**4)), None, None),
        (Budget(epsilon=1, delta=1.1e-4), None, "above 0.0001:"),
        (Budget(epsilon=1, delta=Fraction(1, 50_000)), 50_000, None),
        (Budget(epsilon=1, delta=Fraction(1, 50_000)), 50_001, "above 1 / 50,001, one over the number"),
        (Budget(epsilon=1, delta=0.5), 100, "above 1 / 100, one over the number of records and above 0.0001"),
    ],
)
def test_a_large_delta_is_told(budget, records, says):
    told = delta_warnings(budget, records)
    assert len(told) == (says is not None)
    assert says is None or says in told[0]
