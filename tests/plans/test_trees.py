"""Plans with trees over one attribute: what a record costs in all parts, against all records written out."""

import dataclasses
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import PrivacyError
from matrixdp.exact import CenteredMatrix, IdentityMatrix, MeasuredMatrix, TreeMatrix
from matrixdp.measure.calibration import NoiseScale, calibrate, plan_cost
from matrixdp.measure.measurement import Periods
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost, Noise
from matrixdp.plans import Block, Part, Plan, Split
from matrixdp.plans.replacement import columns
from matrixdp.testing import check_plan
from tests.exact.test_trees import random_tree
from tests.plans.test_replacement import columns as written
from tests.storage.archives import reread

noises = pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)


def tree_over(size: int, random: np.random.Generator, *, told: bool = True) -> TreeMatrix:
    while True:
        tree = random_tree(random, told=told, families=int(random.integers(0, 2)))
        if tree.columns == size:
            return tree


def blocks_of(
    random: np.random.Generator, names: tuple[str, ...], sizes: dict[str, int], trees: list[MeasuredMatrix]
) -> tuple[Block, ...]:
    own = {name: CenteredMatrix(sizes[name]) for name in names if name != "geo"}
    return tuple(Block((name,), own.get(name) or trees[random.integers(len(trees))]) for name in names)


def plans(noise: Noise, *, residual: bool) -> Iterator[Plan]:
    """Yield split plans with a tree in each part, or with some parts that have none."""
    for seed in range(12):
        random = np.random.default_rng(seed)
        sizes = {"sex": 2, "geo": int(random.integers(2, 9)), "age": 3}
        domain, kinds = mdp.Domain(sizes), [(), ("sex",), ("age",), ("sex", "age")]
        trees: list[MeasuredMatrix] = [tree_over(sizes["geo"], random) for _ in range(3)]
        shares = random.dirichlet(np.ones(4))
        parts = []
        for names, share in zip(kinds, shares, strict=True):
            listed = domain.sort([*names, *(["geo"] if residual or random.random() < 0.7 else [])])
            blocks = blocks_of(random, listed, sizes, trees)
            parts.append(Part(listed, blocks, 1.0).at_cost(noise, share))
        weights = {name: np.full(size, 1.0 / size) for name, size in sizes.items()}
        if residual:
            weights["geo"] = np.zeros(sizes["geo"])
        plan = Split(domain, tuple(parts), noise, weights)
        factor = plan.cost ** (1 if noise.norm == 2 else 0.5) if seed % 2 else 1.0  # to cost 1, or less
        scale = factor if noise.norm == 2 else factor**2
        yield dataclasses.replace(
            plan, parts=tuple(dataclasses.replace(part, variance=part.variance * scale) for part in parts)
        )


def dense(plan: Plan, weights: list[Fraction]) -> Fraction:
    """Return the largest cost of a record, over all records."""
    power = plan.noise.norm
    sums = [(np.abs(written(part, plan.domain)) ** power).sum(axis=1) for part in plan.parts]
    records = zip(*sums, strict=True)
    return max(sum((w * int(s) for w, s in zip(weights, own, strict=True)), Fraction(0)) for own in records)


@noises
@pytest.mark.parametrize("residual", [True, False])
def test_the_cost_is_that_of_the_record_that_costs_most(noise: Noise, residual: bool) -> None:
    below = 0
    for plan in plans(noise, residual=residual):
        scales = [Fraction(part.variance / noise.variance_factor) for part in plan.parts]
        exact = [1 / scale if noise.norm == 2 else 1 / Fraction(float(scale) ** 0.5) for scale in scales]
        largest = float(dense(plan, exact))
        np.testing.assert_allclose(plan.cost, largest ** (2 / noise.norm), rtol=1e-9)
        alone = sum(noise.share(part, part.variance) for part in plan.parts) ** (2 / noise.norm)
        below += plan.cost < alone * (1 - 1e-6)
        for neighbours in ("add_remove", "replace"):
            allowed = Cost(Fraction(3, 10), noise)
            drawn, cost = calibrate(plan, allowed, 2**33, neighbours)
            own = dense(plan, [1 / scale.exact**noise.norm for scale in drawn])
            assert cost <= allowed
            if neighbours == "add_remove":
                assert own <= cost.value <= own * (1 + Fraction(1, 2**100))
    assert below


@noises
def test_plans_with_trees_do_what_every_plan_does(noise: Noise) -> None:
    for plan in list(plans(noise, residual=True))[:4]:
        size = plan.domain["geo"].size
        areas = mdp.product(geo={"sets": [[0], list(range(size))]}, age="prefix")
        check_plan(plan, mdp.Workload(plan.domain, mdp.marginals([0, 1, 2, 3]), areas))


def split(noise: Noise, *trees: TreeMatrix, attributes: tuple[str, ...] = ("geo", "geo")) -> Split:
    """Return a plan that measures a tree for all, and another for the values of an attribute beside it."""
    size = trees[0].columns
    domain = mdp.Domain({"geo": size, "other": size, "sex": 2})
    sex = Block(("sex",), CenteredMatrix(2))
    first, second = (Block((name,), tree) for name, tree in zip(attributes, trees, strict=True))
    parts = (
        Part((attributes[0],), (first,), 1.0).at_cost(noise, 0.5),
        Part((attributes[1], "sex"), (second, sex), 1.0).at_cost(noise, 0.5),
    )
    return Split(
        domain,
        parts,
        noise,
        {name: np.full(n, 1 / n) for name, n in zip(domain.names, (size, size, 2), strict=True)},
    )


def leaves(*weights: int) -> TreeMatrix:
    return TreeMatrix(
        (np.zeros(len(weights), dtype=np.int64), np.arange(len(weights))), (np.array([1]), np.array(weights))
    )


def test_what_is_not_joint_is_the_sum_of_the_largest() -> None:
    one, other = leaves(1, 5, 2), leaves(3, 1, 4)
    assert columns(split(GAUSSIAN, one, other).parts, 2).tolist() == [[2, 20], [5, 34], [26, 4]]
    # over different attributes a record may be in the dearest value of both
    assert columns(split(GAUSSIAN, one, other, attributes=("geo", "other")).parts, 2).tolist() == [[26, 34]]
    plan = split(GAUSSIAN, one, other)
    factors = np.ones(plan.parts[1].shape, dtype=np.int64)
    weighed = dataclasses.replace(plan.parts[1], multipliers=factors)
    assert columns([plan.parts[0], weighed], 2).max(axis=0).tolist() == [26, 34]
    assert (columns([plan.parts[0], weighed], 2)[:, 1] == 34).all()
    both = Part(("geo", "other"), (Block(("geo",), one), Block(("other",), other)), 1.0)
    assert columns([both], 1).tolist() == [[30]]


def test_one_replacement_costs_at_most_what_two_records_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for noise in (GAUSSIAN, LAPLACE):
        plan = split(noise, leaves(1, 5, 2), leaves(3, 1, 4))
        scales = tuple(NoiseScale.least(noise.scale(part.variance, 1.0), 1, noise) for part in plan.parts)
        exact = plan_cost(plan, scales, "replace")
        monkeypatch.setattr("matrixdp.plans.replacement._MOST_ENUMERATED", 0)
        bounded = plan_cost(split(noise, leaves(1, 5, 2), leaves(3, 1, 4)), scales, "replace")
        monkeypatch.undo()
        assert exact <= bounded <= plan_cost(plan, scales)


def test_records_that_change_their_areas_between_periods_are_not_charged_jointly() -> None:
    domain = mdp.Domain({"month": 2, "geo": 3})
    parts = tuple(
        Part(("month", "geo"), (Block(("month",), IdentityMatrix(2)), Block(("geo",), tree)), 1.0)
        for tree in (leaves(1, 5, 2),)
    )
    plan = Split(domain, (parts[0].at_cost(GAUSSIAN),), GAUSSIAN, {"month": np.zeros(2), "geo": np.zeros(3)})
    with pytest.raises(PrivacyError) as caught:
        Periods("month").check(plan)
    assert caught.value.code == "not-supported"


def test_persons_are_charged_at_most_for_all_their_records() -> None:
    unit = mdp.Unit(id="person", per="month", max_values=2)
    domain = mdp.Domain({"month": 3, "geo": 3})
    geo = [leaves(1, 5, 2), leaves(3, 1, 4)]
    parts = (
        Part(("geo",), (Block(("geo",), geo[0]),), 1.0).at_cost(GAUSSIAN, 0.5),
        Part(("month", "geo"), (Block(("month",), IdentityMatrix(3)), Block(("geo",), geo[1])), 1.0).at_cost(
            GAUSSIAN, 0.5
        ),
    )
    weights = {"month": np.zeros(3), "geo": np.zeros(3)}
    plan = Split(domain, parts, GAUSSIAN, weights, persons=unit)
    table = sum(
        written(part, domain).astype(float) @ written(part, domain).T.astype(float) / part.variance
        for part in parts
    )
    month = np.arange(9) // 3
    worst = max(
        table[i, i] + table[j, j] + 2 * table[i, j]
        for i in range(9)
        for j in range(9)
        if month[i] != month[j]
    )
    assert worst / 4 <= plan.cost * (1 + 1e-9)
    assert plan.cost <= Split(domain, parts, GAUSSIAN, weights).cost * (1 + 1e-9)


def test_74000_areas_take_no_array_of_areas_by_areas() -> None:
    size = 74_000
    random = np.random.default_rng(1)
    counties = np.arange(size) // 24
    trees = [
        TreeMatrix(
            (np.zeros(size, dtype=np.int64), counties, np.arange(size)),
            tuple(random.integers(1, 2**15, own) for own in (1, counties[-1] + 1, size)),
        )
        for _ in range(2)
    ]
    for noise in (GAUSSIAN, LAPLACE):
        plan = split(noise, *trees)
        alone = sum(noise.share(part, part.variance) for part in plan.parts)
        assert plan.cost < 0.99 * alone
        assert plan.replacement_cost <= 4 * plan.cost
        for neighbours in ("add_remove", "replace"):
            _, cost = calibrate(plan, Cost(Fraction(1, 10), noise), 2**33, neighbours)
            assert cost <= Cost(Fraction(1, 10), noise)


def test_a_plan_with_trees_comes_back_from_an_archive(tmp_path) -> None:
    random = np.random.default_rng(3)
    tree = tree_over(7, random, told=False)
    plan = split(LAPLACE, tree, tree_over(7, random))
    again = reread(plan, tmp_path)
    assert [part.key(part.attributes) for part in again.parts] == [
        part.key(part.attributes) for part in plan.parts
    ]
    assert again.cost == plan.cost
