"""Errors of large product groups from their different queries alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.plan import pieces as module
from matrixdp.plan import repeats
from matrixdp.plan.pieces import MAX_VARIANCES, PieceAnalysis
from matrixdp.queries import ProductGroup
from matrixdp.selection.auto import select

DOMAIN = mdp.Domain({"a": range(6), "b": range(5), "c": 4})
SETS = ["identity", "total", "prefix", "range", "circular", ["identity", "total"], {"width": 2}]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(range(len(SETS))), min_size=3, max_size=3),
    st.sampled_from(["residual", "querysmasher", "fourier", "opt-kron", "opt-m", "dense"]),
)
def test_sums_and_maxima_are_those_of_all_queries(chosen, mechanism):
    asked = mdp.product(dict(zip("abc", (SETS[i] for i in chosen), strict=True)), weight=2.0)
    workload = mdp.Workload(DOMAIN, asked, mdp.marginals([1, 2]))
    plan = select(workload, mechanism=mechanism, noise=GAUSSIAN).plan
    group = workload.groups[0]
    analysis = plan.analysis
    assert isinstance(analysis, PieceAnalysis)
    assert isinstance(group, ProductGroup)
    values = analysis.variances(group)
    found = analysis._different(group)
    if found is None:
        return
    small, counts = found.group, found.counts
    assert small.queries < group.queries
    assert [float(count.sum()) for count in counts] == [float(count) for count in group.counts]
    variances = analysis.variances(small)
    weights = np.ones(())
    for count in counts:
        weights = np.multiply.outer(weights, count)
    assert float(variances @ weights.ravel()) == pytest.approx(float(values.sum()), rel=1e-9)
    assert float(variances.max()) == pytest.approx(float(values.max()), rel=1e-9)


def test_group_errors_do_not_depend_on_where_repeats_are_looked_for(monkeypatch):
    workload = mdp.Workload(DOMAIN, mdp.product(a="range", b="range", c=["identity", "total"], weight=3.0))
    plan = select(workload, mechanism="residual", noise=GAUSSIAN).plan
    plain = plan.analysis.group(workload.groups[0])
    monkeypatch.setattr(repeats, "COMPRESSED_QUERIES", 10)
    seen = []
    monkeypatch.setattr(
        module, "representatives", lambda *args: seen.append(repeats.representatives(*args)) or seen[-1]
    )
    again = replace(plan)
    found = again.analysis.group(workload.groups[0])
    assert seen[0] is not None
    for figure in ("total", "weighted", "largest"):
        assert getattr(found, figure) == pytest.approx(getattr(plain, figure), rel=1e-9)


@pytest.mark.slow
def test_hundreds_of_millions_of_queries_have_errors():
    domain = mdp.Domain({"a": range(16), "b": range(16), "c": 150, "d": 150})
    ranges = mdp.product(a="range", b="range", c=["identity", "total"], d=["identity", "total"])
    workload = mdp.Workload(domain, ranges)
    assert workload.queries > MAX_VARIANCES
    selection = select(workload, mechanism="opt-kron", noise=GAUSSIAN)
    assert selection.total_squared_error == pytest.approx(selection.certificate.loss, rel=5e-3)


def test_unsupported_queries_are_still_refused(monkeypatch):
    plan = select(mdp.Workload(DOMAIN, mdp.marginals(1)), mechanism="residual", noise=GAUSSIAN).plan
    monkeypatch.setattr(repeats, "COMPRESSED_QUERIES", 1)
    asked = mdp.Workload(DOMAIN, mdp.product(a="range", b="range"))
    with pytest.raises(mdp.UnsupportedQueryError):
        plan.analysis.group(asked.groups[0])
