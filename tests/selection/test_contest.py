"""What ``auto`` tries: fast trials, and the noises that they leave no hope for."""

from dataclasses import replace

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection import builtin, registry, rules
from matrixdp.selection.auto import Trials, _outcome, hope_of, select
from matrixdp.selection.explain import explain
from matrixdp.selection.gram import opt_0
from matrixdp.selection.reduce import reduce
from matrixdp.selection.registry import OF_JOINT_NOISE, mechanism_named
from matrixdp.selection.searches.marginals import first_generalized_loss
from matrixdp.testing import dense_error
from tests.limits import Override

DOMAIN = mdp.Domain({"a": 10, "b": 3, "c": 6})
MIXED = mdp.Workload(DOMAIN, mdp.product(a="prefix", b="identity"), mdp.product(c="prefix"))
CLOSE = mdp.Budget(epsilon=1, delta=1e-6)


def test_hopes_lie_below_what_is_found(monkeypatch):
    found = select(MIXED, noise=LAPLACE).certificate.loss
    assert 0.7 * found < hope_of(MIXED, LAPLACE) <= found

    fewer = replace(mechanism_named("generalized-marginals"), limits={"strategy": 10})
    monkeypatch.setitem(registry.MECHANISMS.registered, "generalized-marginals", fewer)
    assert 0.3 * found < hope_of(MIXED, LAPLACE) <= found


def test_explicit_queries_that_tell_few_values_apart_are_tried_fast():
    rows = np.repeat(np.arange(1.0, 9.0).reshape(2, 2, 2), 3, axis=1).reshape(2, 12)
    workload = mdp.Workload(mdp.Domain({"a": 6, "b": 2}), mdp.dense(rows, ["a", "b"]))
    searched = select(workload, noise=LAPLACE, mechanism="generalized-marginals").certificate.loss
    assert searched * 0.999 < first_generalized_loss(reduce(workload).workload, LAPLACE) < 2.0 * searched


def test_a_noise_without_hope_is_not_searched(monkeypatch):
    def search(*_):
        pytest.fail("searched")

    wide = mdp.Workload(mdp.Domain(dict.fromkeys("abcdefgh", 4)), mdp.marginals(2))
    with monkeypatch.context() as patched:
        patched.setitem(rules.RULES, 1, (rules.Rule("opt-m", unless=search),))
        strategy = mdp.select(wide, budget=CLOSE)
    assert strategy.noise == "gaussian"
    assert "a quick trial of Laplace noise" in strategy.noise_reason
    # what it is spared is no better
    other = mdp.select(wide, noise="laplace")
    assert other.rmse(CLOSE) * LAPLACE.largest_quantile(0.95) > 1.96 * strategy.rmse(CLOSE)


def test_a_noise_with_hope_is_searched_and_compared_by_intervals():
    strategy = mdp.select(MIXED, budget=CLOSE)
    assert strategy.noise == "laplace"
    other = mdp.select(MIXED, noise="gaussian")
    # by intervals that answers have, which are no wider than the bound for all combinations
    ratio = strategy.rmse(CLOSE) * LAPLACE.largest_quantile(0.95) / (other.rmse(CLOSE) * 1.959964)
    said = float(strategy.noise_reason.partition("%")[0])
    assert 100 * (1 - ratio) <= said <= 100 * (1 - 0.8 * ratio)
    assert strategy.noise_reason.endswith("% narrower intervals than gaussian noise")


def test_few_cells_with_explicit_queries_are_not_given_up():
    rows = np.random.default_rng(0).integers(0, 2, (3, 40)).astype(float)
    workload = mdp.Workload(mdp.Domain({"a": 5, "b": 8}), mdp.dense(rows, ["a", "b"]))
    assert hope_of(workload, LAPLACE) <= select(workload, noise=LAPLACE).certificate.loss


def test_one_attribute_is_searched_once(monkeypatch):
    sizes, search = [], opt_0._search

    def counted(gram, *given):
        sizes.append(len(gram))
        return search(gram, *given)

    monkeypatch.setattr(opt_0, "_search", counted)
    workload = mdp.Workload(mdp.Domain({"a": 131}), mdp.product(a="prefix"), mdp.product(a="total"))
    candidates = {one.mechanism: one for one in select(workload, noise=LAPLACE).candidates}
    assert sizes == [131]
    # the same from every one of the searches
    found = select(workload, noise=LAPLACE, mechanism="opt-0").certificate
    assert candidates["opt-kron"].loss <= 1.0001 * found.loss
    assert found.lower_bound < found.loss
    assert candidates["walk"].loss < found.loss


def test_a_total_stands_beside_a_difference_of_two_values():
    workload = mdp.Workload(mdp.Domain({"a": 2}), mdp.product(a="prefix"), mdp.product(a="total", weight=30))
    found = select(workload, noise=LAPLACE, mechanism="opt-kron")
    gram = np.array([[32.0, 31.0], [31.0, 31.0]])
    parts = gram.sum() / 4, (gram[0, 0] + gram[1, 1] - 2 * gram[0, 1]) / 4
    assert found.certificate.loss == pytest.approx(2 * sum(np.cbrt(part) for part in parts) ** 3)
    assert dense_error(gram, opt_0.solve_axis(gram, LAPLACE).rows) == pytest.approx(
        found.certificate.loss / 2
    )
    assert found.certificate.loss < 0.96 * 2 * 59.24  # that of the best p-Identity strategy


def test_a_union_for_one_group_is_not_tried_beside_its_product(monkeypatch):
    monkeypatch.setattr(builtin, "first_union_loss", lambda *_: pytest.fail("searched"))
    workload = mdp.Workload(mdp.Domain({"a": 12, "b": 5}), mdp.product(a="prefix", b="prefix"))
    assert "opt-plus" not in select(workload, noise=LAPLACE).reason


QUERIES = np.random.default_rng(0).integers(0, 2, (25, 36)).astype(float)
ENTRIES = mdp.dense(QUERIES, ["a", "b"]), mdp.product(a="prefix", b="prefix")
SQUARE = mdp.Workload(mdp.Domain({"a": 6, "b": 6}), *ENTRIES)
#: What takes long for thousands of cells does so for 36 with these.
SMALLER = {
    "joint_cells": 30,
    "max_compared_cells": 30,
    "searched_cells": 30,
    "max_searched_queries": 10,
    "_MAX_TABLE_RANK": 10,
}


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_what_is_far_from_its_bound_has_larger_candidates_tried(noise, limits: Override, monkeypatch):
    tried = {GAUSSIAN: "dense", LAPLACE: "opt-0"}[noise]
    # these have less error than both, and no bound
    others = tuple(rule for rule in rules.RULES[1] if rule.mechanism not in OF_JOINT_NOISE)
    monkeypatch.setitem(rules.RULES, 1, others)
    limits(**SMALLER, far=1e9)
    near = select(SQUARE, noise=noise)
    assert {one.mechanism: one.status for one in near.candidates}[tried] == "skipped"
    limits(far=0.1)
    said = {one.mechanism: one for one in explain(SQUARE, noise).candidates}[tried]
    assert said.status == "tried if needed"
    found = select(SQUARE, noise=noise)
    assert found.mechanism == tried
    assert found.certificate.loss < 0.97 * near.certificate.loss
    # past a size that takes too long it only says so
    limits(far_cells=35)
    told = select(SQUARE, noise=noise)
    known = {one.mechanism: one for one in told.candidates}[tried]
    said = {one.mechanism: one for one in explain(SQUARE, noise).candidates}[tried]
    assert (known.status, known.reason) == ("too large", said.reason)
    assert said.status == "too large"
    assert f"{tried} does not fit: 36 cells" in told.reason
    assert told.certificate.loss == pytest.approx(near.certificate.loss)


def test_without_a_bound_nothing_large_is_tried(limits: Override):
    limits(**SMALLER, far=0.1)
    trials = Trials(SQUARE, LAPLACE, {}, bounded=False)
    assert "opt-0" not in [one.mechanism for one in _outcome(trials, "auto", "sum")[3] if one.loss]


def test_an_attribute_that_is_measured_value_by_value_is_told(limits: Override):
    limits(axis_cells=30)
    found = select(mdp.Workload(mdp.Domain({"a": 60}), mdp.product(a="prefix")), noise=LAPLACE)
    assert "measured value by value: 60 values" in found.reason
