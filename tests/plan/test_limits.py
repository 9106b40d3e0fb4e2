"""Tables too large to form are refused before they are."""

import pytest

import matrixdp as mdp
from matrixdp.errors import TooLargeError
from matrixdp.noise import GAUSSIAN
from matrixdp.plan import pieces, pooled
from matrixdp.selection.auto import select

WORKLOAD = mdp.Workload(mdp.Domain({"a": 3, "b": 4}), mdp.marginals([0, 1, 2]))


def test_variances_and_covariances_of_too_many_cells(monkeypatch: pytest.MonkeyPatch):
    analysis = select(WORKLOAD, mechanism="residual", noise=GAUSSIAN).plan.analysis
    (group,) = mdp.product({"a": "identity", "b": "identity"}).expand(WORKLOAD.domain)
    monkeypatch.setattr(pieces, "MAX_VARIANCES", 11)
    with pytest.raises(TooLargeError, match="12 variances would be formed at once"):
        analysis.variances(group)
    with pytest.raises(TooLargeError, match="covariance: a table of a, b has too many cells"):
        analysis.covariance(group, 0, group, 0)


def test_pooled_plans_of_too_many_residuals(monkeypatch: pytest.MonkeyPatch):
    plan = select(WORKLOAD, mechanism="opt-m", noise=GAUSSIAN).plan
    monkeypatch.setattr(pooled, "MAX_PAIRS", 1)
    with pytest.raises(TooLargeError, match="residuals of marginals; the limit is 1"):
        pooled.Pooled(plan.domain, plan.parts, plan.noise).analysis.variances(WORKLOAD.groups[0])
