"""What is outside the measured span is refused, however little of it there is; rounding errors are not."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError
from matrixdp.exact import DeficientMatrix, IdentityMatrix, IntegerMatrix, MergedMatrix
from matrixdp.noise import GAUSSIAN
from matrixdp.plan import Block, Direct, Local, Part, Plan, Union
from matrixdp.selection.auto import select

DOMAIN = mdp.Domain({"a": 3})
ASKED = np.ones((1, 3))


def direct() -> Plan:
    """Measures the total of a table of three cells as a matrix of lower rank."""
    block = Block(("a",), DeficientMatrix(np.array([[1, 1, 1]])))
    return Direct(DOMAIN, (Part(("a",), (block,), 1.0),), GAUSSIAN)


def split() -> Plan:
    """Measures the total of an attribute, and nothing else of it."""
    return select(mdp.Workload(DOMAIN, mdp.marginals(0)), mechanism="residual", noise=GAUSSIAN).plan


def partly() -> Plan:
    """Measures sums over two values of an attribute, as a decomposition."""
    entry = mdp.product({"a": {"matrix": [[1, 1, 0], [0, 0, 1]]}})
    return select(mdp.Workload(DOMAIN, entry), mechanism="residual", noise=GAUSSIAN).plan


@pytest.mark.parametrize("plan", [direct, split, partly])
@pytest.mark.parametrize("written", ["product", "dense"])
@pytest.mark.parametrize("off", [0.1, 1e-3])
def test_a_query_a_little_outside_the_measured_span_is_refused(plan, written: str, off: float):
    analysis = plan().analysis
    for value, supported in ((1.0, True), (1.0 + 1e-13, True), (1.0 - off, False)):
        rows = np.array([[1.0, value, 1.0]])
        entry = mdp.product({"a": {"matrix": rows}}) if written == "product" else mdp.dense(rows, ["a"])
        (group,) = entry.expand(DOMAIN)
        if supported:
            analysis.check_support(group)
        else:
            with pytest.raises(UnsupportedQueryError, match=r"asks more of a|measured"):
                analysis.check_support(group)


def merged() -> Plan:
    """Measures sums over groups of two values and of one, as a matrix over groups."""
    matrix = MergedMatrix(IntegerMatrix(np.eye(2, dtype=np.int64)), (np.array([0, 0, 1]),))
    return Direct(DOMAIN, (Part(("a",), (Block(("a",), matrix),), 1.0),), GAUSSIAN)


@pytest.mark.parametrize("plan", [split, partly, merged])
@pytest.mark.parametrize("written", ["product", "dense"])
@pytest.mark.parametrize(("scale", "beside"), [(1e-6, 0.0), (1.0, 1e7), (1e6, 1e-6)])
def test_every_query_is_judged_by_its_own_scale(plan, written: str, scale: float, beside: float):
    analysis = plan().analysis
    measured = np.ones(3) if plan is split else np.array([1.0, 1.0, 0.0])
    for own, supported in ((measured, True), (np.array([1.0, 0.0, 0.0]), False)):
        rows = np.stack([scale * own, beside * measured])
        entry = mdp.product({"a": {"matrix": rows}}) if written == "product" else mdp.dense(rows, ["a"])
        (group,) = entry.expand(DOMAIN)
        if supported:
            analysis.check_support(group)
        else:
            with pytest.raises(UnsupportedQueryError, match=r"asks more of a|measured"):
                analysis.check_support(group)


@pytest.mark.parametrize("kind", [Local, Union])
def test_an_attribute_of_one_value_is_answered_from_tables_without_it(kind):
    domain = mdp.Domain({"one": 1, "a": 3})
    part = Part(("a",), (Block(("a",), IdentityMatrix(3)),), 2.0)
    plan = kind(domain, (part, part), GAUSSIAN)
    [group] = mdp.product(one="identity", a="prefix").expand(domain)
    np.testing.assert_allclose(plan.analysis.variances(group), [1.0, 2.0, 3.0])


def test_a_product_with_zeros_along_one_attribute_asks_nothing():
    zeros = {"matrix": [[0, 0, 0]]}
    for other, asks in (("prefix", True), (zeros, False)):
        [group] = mdp.product({"a": "identity", "b": other}).expand(mdp.Domain({"a": 2, "b": 3}))
        assert group.asks is asks
