"""The picture of a strategy has its shares of the cost, its errors and its matrices."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.pictures.plots import cost_shares


@pytest.fixture(scope="module")
def strategy():
    domain = mdp.Domain({"sex": ["f", "m"], "age": range(8), **{f"a{i}": 2 for i in range(4)}})
    return mdp.select(
        mdp.Workload(domain, mdp.marginals([1, 2]), mdp.product(age="prefix")), mechanism="residual"
    )


def test_shares_are_those_of_the_parts(strategy):
    shares = cost_shares(strategy.selection.plan)
    assert sum(shares.values()) == pytest.approx(1)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    plan = strategy.selection.plan
    for attributes, share in shares.items():
        own = [part for part in plan.parts if part.attributes == attributes]
        assert share == pytest.approx(sum(p.squared_sensitivity / p.variance for p in own), rel=1e-6)


def test_shares_and_errors_are_drawn_the_largest_first(strategy):
    budget = mdp.Budget(rho=0.02)
    figure = strategy.plot(budget)
    figure.canvas.draw()
    measured, errors = figure.axes[:2]
    widths = [bar.get_width() for bar in measured.patches]
    assert sum(widths) == pytest.approx(100)
    assert len(widths) == 13  # twelve and the others together
    assert errors.get_title() == f"standard errors, the largest of {len(strategy.workload)} groups"
    own = [
        np.sqrt(strategy.selection.analysis.variances(group).mean() / (2 * 0.02))
        for group in strategy.workload
    ]
    assert np.allclose(errors.lines[0].get_xdata(), sorted(own, reverse=True)[:12], rtol=1e-6)
    assert (errors.lines[1].get_xdata() >= errors.lines[0].get_xdata() * (1 - 1e-9)).all()


def test_a_matrix_is_drawn_as_it_is_measured():
    workload = mdp.Workload(mdp.Domain({"age": range(16)}), mdp.product(age="prefix"))
    strategy = mdp.select(workload)
    measured, _, drawn = strategy.plot().axes
    assert [text.get_text() for text in measured.get_yticklabels()] == ["age"]
    block = strategy.selection.plan.parts[0].blocks[0]
    assert np.array_equal(drawn.images[0].get_array(), block.matrix.multiply(np.eye(16)))


def test_a_budget_for_other_neighbours_is_refused(strategy):
    with pytest.raises(mdp.PrivacyError):
        strategy.plot(mdp.Budget(rho=0.5, neighbours="replace"))
