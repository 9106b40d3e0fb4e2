"""What is outside the measured span is refused, however little; queries that are many, or alike."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError
from matrixdp.exact import DeficientMatrix, IdentityMatrix, IntegerMatrix, MergedMatrix
from matrixdp.language import Entry
from matrixdp.noise import GAUSSIAN
from matrixdp.plans import Block, Direct, Local, Part, Plan, Union
from matrixdp.selection.auto import select
from tests.selection.oracle import lowered

DOMAIN = mdp.Domain({"a": 3})
TOTAL, PAIR, FIRST = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


def direct(matrix) -> Plan:
    return Direct(DOMAIN, (Part(("a",), (Block(("a",), matrix),), 1.0),), GAUSSIAN)


def split(*entries: Entry) -> Plan:
    return select(mdp.Workload(DOMAIN, *entries), mechanism="residual", noise=GAUSSIAN).plan


#: Three measure the total alone or sums over two values and one, a last one sums over merged values.
PLANS = {
    "a matrix of lower rank": (direct(DeficientMatrix(np.array([[1, 1, 1]]))), TOTAL),
    "the total": (split(mdp.marginals(0)), TOTAL),
    "a decomposition": (split(mdp.product({"a": {"matrix": [[1, 1, 0], [0, 0, 1]]}})), PAIR),
    "merged values": (
        direct(MergedMatrix(IntegerMatrix(np.eye(2, dtype=np.int64)), (np.array([0, 0, 1]),))), PAIR,
    ),
}  # fmt: skip
#: By how much a query is off, its scale, and the scale of a supported one beside it.
ASKED = [(0.1, 1.0, 1.0), (1e-3, 1.0, 1.0), (1.0, 1e-6, 0.0), (1.0, 1.0, 1e7), (1.0, 1e6, 1e-6)]


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("written", ["product", "dense"])
@pytest.mark.parametrize(("off", "scale", "beside"), ASKED)
def test_every_query_is_judged_by_its_own_scale(name, written, off, scale, beside):
    plan, measured = PLANS[name]
    for amount, supported in ((0.0, True), (1e-13, True), (off, False)):
        rows = np.stack([scale * (measured + amount * FIRST), beside * measured])
        entry = mdp.product({"a": {"matrix": rows}}) if written == "product" else mdp.dense(rows, ["a"])
        [group] = entry.expand(DOMAIN)
        if supported:
            plan.analysis.check_support(group)
        else:
            with pytest.raises(UnsupportedQueryError):
                plan.analysis.check_support(group)


@pytest.mark.parametrize("kind", [Local, Union])
def test_an_attribute_of_one_value_is_answered_from_tables_without_it(kind):
    domain = mdp.Domain({"one": 1, "a": 3})
    part = Part(("a",), (Block(("a",), IdentityMatrix(3)),), 2.0)
    [group] = mdp.product(one="identity", a="prefix").expand(domain)
    analysis = kind(domain, (part, part), GAUSSIAN).analysis
    np.testing.assert_allclose(analysis.variances(group), [1.0, 2.0, 3.0])


LARGER = mdp.Domain({"a": 6, "b": 5, "c": 4})


@pytest.mark.parametrize(
    "mechanism", ["residual", "querysmasher", "fourier", "opt-kron", "opt-m", "opt-plus"]
)
def test_large_groups_are_analysed_by_their_different_queries(mechanism):
    repeated = mdp.product(a="range", b="circular", c=["identity", "total"], weight=3.0)
    workload = mdp.Workload(LARGER, repeated, mdp.marginals([1, 2]))
    analysis = select(workload, mechanism=mechanism, noise=GAUSSIAN).plan.analysis
    [group, *_] = workload
    values = analysis.variances(group)
    with lowered({"COMPRESSED_QUERIES": 1, "MAX_VARIANCES": values.size - 1}):
        error = analysis.group(group)
    figures = values.sum(), group.weight * values.sum(), values.max()
    assert (error.total, error.weighted, error.largest) == pytest.approx(figures, rel=1e-9)


def test_large_identities_need_no_matrix_of_their_size():
    domain = mdp.Domain({"zip": [str(i) for i in range(60_000)], "sex": ["f", "m"]})
    selection = select(mdp.Workload(domain, mdp.marginals([0, 1, 2])), noise=GAUSSIAN)
    assert selection.certificate.gap < 1e-9
    assert selection.total_squared_error == pytest.approx(selection.certificate.loss, rel=1e-9)


def test_covariances_of_pairs_are_those_of_their_groups():
    workload = mdp.Workload(LARGER, mdp.kway([1, 2], "prefix"))
    analysis = select(workload, mechanism="residual", noise=GAUSSIAN).plan.analysis
    [a, total] = [*mdp.marginals([["a"]]).expand(LARGER), *mdp.marginals(0).expand(LARGER)]
    for left, right in ((a, a), (a, total)):
        pairs = [
            [analysis.covariance(left, i, right, j) for j in range(right.queries)]
            for i in range(left.queries)
        ]
        np.testing.assert_allclose(analysis.covariances(left, right), pairs, atol=1e-12)
    paired = analysis.covariances(a, a, paired=True)
    np.testing.assert_allclose(paired, [analysis.covariance(a, i, a, i) for i in range(a.queries)])
