"""What replacing a record by another moves, against all pairs of columns of the matrices written out."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.exact import CenteredMatrix, IdentityMatrix, MergedMatrix
from matrixdp.exact.matrices import DeficientMatrix, IntegerMatrix
from matrixdp.exact.structured import GridTree
from matrixdp.measure.calibration import NoiseScale, plan_cost
from matrixdp.measure.measurement import measure
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost, Noise
from matrixdp.plans import Block, Local, Part, replacement
from matrixdp.plans.replacement import moves
from matrixdp.sources import open_source
from matrixdp.testing import check_plan

SIZES = {"a": 3, "b": 4, "c": 2, "d": 1}
DOMAIN = mdp.Domain(SIZES)


def columns(part: Part, domain: mdp.Domain = DOMAIN) -> np.ndarray:
    """Return the columns of a part for all cells of the domain, as integers of any width: (cells, rows)."""
    found = []
    for cell in np.ndindex(*domain.shape):
        table = np.zeros(domain.shape, dtype=np.int64)
        table[cell] = 1
        away = tuple(i for i, name in enumerate(domain.names) if name not in part.attributes)
        found.append(list(part.answers(table.sum(axis=away), 1).values()))
    return np.array(found, dtype=object)


def dense(parts: list[Part], weights: list[int], power: int, domain: mdp.Domain = DOMAIN) -> tuple[int, int]:
    """Return the largest weighted sum of |entry|^power over a column, and over the difference of two."""
    written = [columns(part, domain) for part in parts]
    alone = sum(w * (np.abs(m) ** power).sum(axis=1) for w, m in zip(weights, written, strict=True))
    apart = max(
        max(sum(w * (np.abs(m - m[j]) ** power).sum(axis=1) for w, m in zip(weights, written, strict=True)))
        for j in range(len(alone))
    )
    return max(alone), apart


def largest(table: np.ndarray, weights: list[int]) -> int:
    return max(table @ np.array(weights, dtype=object))


@st.composite
def matrices(draw: st.DrawFn, sizes: tuple[int, ...]) -> Any:
    cells = int(np.prod(sizes))
    kinds = ["identity", "integer", "deficient", *(["centered"] if cells > 1 else [])]
    if len(sizes) == 1 and cells > 2:
        kinds.append("apart")
    if len(sizes) == 2:
        kinds += ["merged", "tree"]
    kind = draw(st.sampled_from(kinds))
    if kind == "identity":
        return IdentityMatrix(cells)
    if kind == "centered":
        return CenteredMatrix(cells)
    if kind == "tree":
        return GridTree((sizes[0], sizes[1]), 2, (draw(st.integers(0, 3)), draw(st.integers(0, 3)), 2))
    if kind == "apart":
        between = np.diag(draw(st.lists(st.integers(1, 9), min_size=2, max_size=2)))
        within = np.array([draw(st.integers(0, 4)) if cells > 3 else 0, draw(st.integers(0, 4))])
        return MergedMatrix(IntegerMatrix(between), (np.arange(cells) * 2 // cells,), within[::-1].copy())
    if kind == "merged":
        groups = tuple(np.arange(n) * 2 // n if n > 1 else np.zeros(1, np.int64) for n in sizes)
        merged = int(np.prod([g.max() + 1 for g in groups]))
        entries = np.array(draw(st.lists(st.integers(-4, 4), min_size=merged, max_size=merged)), np.int64)
        return MergedMatrix(IntegerMatrix(np.vstack([entries, 3 * np.eye(merged, dtype=np.int64)])), groups)
    entries = np.array(draw(st.lists(st.integers(-5, 5), min_size=cells, max_size=cells)), np.int64)
    if kind == "deficient":
        return DeficientMatrix((entries if entries.any() else entries + 1)[None])
    scale = draw(st.sampled_from([1, 2**20]))  # products of three leave 64 bits
    return IntegerMatrix(scale * np.vstack([entries, np.eye(cells, dtype=np.int64)]))


@st.composite
def lists_of_parts(draw: st.DrawFn) -> list[Part]:
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        names = draw(st.lists(st.sampled_from(list(SIZES)), unique=True, max_size=4))
        blocks = []
        while names:
            own = tuple(names[: draw(st.integers(1, min(2, len(names))))])
            names = names[len(own) :]
            blocks.append(Block(own, draw(matrices(tuple(SIZES[name] for name in own)))))
        attributes = DOMAIN.sort([name for block in blocks for name in block.attributes])
        shape = tuple(block.matrix.rows for block in blocks)
        factors = None
        if draw(st.integers(0, 3)) == 0:
            rows = int(np.prod(shape))
            factors = np.array(draw(st.lists(st.integers(1, 4), min_size=rows, max_size=rows)), np.int64)
            factors = factors.reshape(shape)
        parts.append(Part(attributes, tuple(blocks), 1.0, factors))
    return parts


@settings(max_examples=80, deadline=None)
@given(lists_of_parts(), st.lists(st.integers(1, 9), min_size=3, max_size=3), st.sampled_from([1, 2]))
def test_pairs_are_those_of_the_written_out_matrices(
    parts: list[Part], weights: list[int], power: int
) -> None:
    weights = weights[: len(parts)]
    alone, apart = dense(parts, weights, power)
    one, two = moves(DOMAIN, parts, power)
    assert largest(one, weights) == alone
    found = largest(two, weights)
    if power == 2 or all(len(part.blocks) < 2 for part in parts):
        assert found == apart
    assert apart <= found <= 2 * alone if power == 1 else found == apart


@settings(max_examples=40, deadline=None)
@given(lists_of_parts(), st.lists(st.integers(1, 9), min_size=3, max_size=3), st.sampled_from([1, 2]))
@pytest.mark.parametrize("limit", ["_MOST_ENUMERATED", "MOST_OVERLAPS"])
def test_by_parts_it_is_a_bound_and_never_above_two_records(limit, parts, weights, power) -> None:
    weights = weights[: len(parts)]
    alone, apart = dense(parts, weights, power)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacement, limit, 0)
        if limit == "MOST_OVERLAPS":
            patch.setattr("matrixdp.exact.matrices.MOST_OVERLAPS", 0)
        one, two = moves(DOMAIN, parts, power)
    assert alone <= largest(one, weights)
    most = sum(w * part.column_power_sum(power) for w, part in zip(weights, parts, strict=True))
    assert largest(one, weights) <= most
    assert apart <= largest(two, weights) <= 2**power * most


REPLACE = mdp.Budget(mu=1, neighbours="replace")


@pytest.mark.parametrize(
    ("size", "queries", "rmse"),
    [(8, "identity", 1.414), (64, "identity", 1.414), (8, "prefix", 2.035), (16, "prefix", 2.350)],
)
def test_one_attribute_has_the_errors_of_textbooks(size: int, queries: str, rmse: float) -> None:
    strategy = mdp.select(mdp.Workload(mdp.Domain({"a": size}), mdp.product(a=queries)), budget=REPLACE)
    assert strategy.rmse(REPLACE) == pytest.approx(rmse, abs=6e-4)
    found = strategy.measure({"a": [0]}, REPLACE).reconstruct()
    assert float(np.mean(found.answers.to_pandas()["stddev"] ** 2)) ** 0.5 == pytest.approx(rmse, abs=6e-4)
    assert found.statement.mu == pytest.approx(1.0)


WORKLOADS = [
    mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2])),
    mdp.Workload(DOMAIN, mdp.marginals([1]), mdp.product(a="prefix", b="range")),
    mdp.Workload(DOMAIN, mdp.dense(np.tri(12), ["a", "b"]), mdp.product(c="identity", a="prefix")),
]


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("mechanism", ["residual", "hdmm", "opt-plus", "workload"])
def test_what_a_release_costs_is_what_its_pairs_cost(mechanism: str, noise: Noise) -> None:
    kinds = {"gaussian": {"mu": 1}, "laplace": {"epsilon": 1}}[noise.name]
    for records, workload in enumerate(WORKLOADS, 1):
        budget = mdp.Budget(**kinds, neighbours="replace", unit={"records": records})
        try:
            strategy = mdp.select(workload, mechanism=mechanism, noise=noise.name, neighbours="replace")
        except mdp.MatrixDPError:
            continue
        check_plan(strategy.selection.plan, workload)
        measurement = strategy.measure({name: [0, 1] for name in SIZES}, budget).measurement
        plan, power = measurement.plan, noise.norm
        weights = [1 / scale.exact**power for scale in measurement.scales]
        alone, apart = dense(list(plan.parts), weights, power)  # type: ignore[arg-type]
        cost = measurement.authorization.cost
        bound = max(alone, apart)
        assert bound <= cost.value * 2**power
        if noise == GAUSSIAN:
            assert cost.value * 2**power <= bound * (1 + Fraction(1, 10**9))
        # all of it, and no more, for a person of so many records
        between = float(cost.value * budget.moved**power)
        assert 0.999_999 < between <= 1
        analysis = plan.analysed([scale.variance for scale in measurement.scales])
        rmse = np.sqrt(sum(analysis.group(group).total for group in workload) / workload.queries)
        assert strategy.rmse(budget) == pytest.approx(rmse, rel=1e-6)


def test_parts_that_answer_for_themselves_are_charged_for_pairs_too() -> None:
    parts = [mdp.product(a="prefix"), mdp.dense(np.tri(12), ["a", "b"])]
    own = mdp.Strategy.from_parts(DOMAIN, parts, neighbours="replace")
    assert own.selection.plan.replacement_cost == pytest.approx(1.0)
    assert Local(DOMAIN, own.selection.plan.parts, GAUSSIAN).replacement_cost == pytest.approx(1.0)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_no_exchange_of_persons_costs_more_than_k_replacements(noise: Noise) -> None:
    """All ways to exchange up to k records for up to k others, of a person who may have fewer."""
    workload = mdp.Workload(mdp.Domain({"a": 3}), mdp.product(a="prefix"), mdp.marginals(1))
    k, power = 2, noise.norm
    budget = mdp.Budget(rho=1, neighbours="replace", unit={"records": k})
    # of rows with noise of their own; those of a walk have a test of theirs
    strategy = mdp.select(workload, budget=budget, noise=noise.name, mechanism="opt-kron")
    measurement = strategy.measure({"a": [0]}, budget).measurement
    scaled = np.hstack(
        [
            columns(part, workload.domain).astype(float) / float(scale.exact)
            for part, scale in zip(measurement.plan.parts, measurement.scales, strict=True)
        ]
    )
    records = np.vstack([scaled, np.zeros(scaled.shape[1])])  # out of domain, or not there
    sums = (records[:, None] + records[None]).reshape(-1, scaled.shape[1])
    farthest = max((np.abs(sums - other) ** power).sum(axis=1).max() for other in sums)
    between = float(measurement.authorization.cost.value) * budget.moved**power
    assert farthest == pytest.approx(between, rel=1e-9)


def test_a_plan_that_was_not_scaled_gets_the_noise_that_it_needs() -> None:
    workload = mdp.Workload(mdp.Domain({"a": 4}), mdp.marginals(1))
    plain = mdp.select(workload).selection.plan
    measurement = measure(plain, open_source({"a": [0]}), REPLACE)
    [scale] = measurement.scales
    assert scale.variance == pytest.approx(2.0, rel=1e-6)


def test_a_cost_is_that_of_the_records_farthest_apart() -> None:
    part = Part(("a",), (Block(("a",), IdentityMatrix(3)),), 1.0)
    plan = dataclasses.replace(
        mdp.select(mdp.Workload(mdp.Domain({"a": 3}), mdp.marginals(1))).selection.plan, parts=(part,)
    )
    scales = (NoiseScale(Fraction(4096), -12, GAUSSIAN),)
    assert plan_cost(plan, scales).value == 1
    assert plan_cost(plan, scales, "replace").value == Fraction(2, 4)
    # a record in the domain against one out of it, which costs 3: the sum; never more than two records
    assert plan_cost(plan, scales, "replace", Cost(Fraction(3), GAUSSIAN)).value == Fraction(1 + 3, 4)
    assert plan_cost(plan, scales, "add_remove", Cost(Fraction(3), GAUSSIAN)).value == 3


def test_overlaps_of_billions_of_values_are_exact():
    # NumPy takes a mix of integers beyond 63 bits and negative ones as floats
    n = 2**32 - 5
    assert CenteredMatrix(n).overlaps(2).tolist() == [[n * (n - 1), -n], [-n, n * (n - 1)]]
