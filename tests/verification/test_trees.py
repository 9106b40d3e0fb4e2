"""Releases of plans with trees over areas: they are verified, and the file that shares no code agrees."""

import dataclasses
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.exact import CenteredMatrix, TreeMatrix
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.plans import Block, Part, Split
from matrixdp.verification.explain import explain_release
from tests.exact.test_trees import random_tree
from tests.forging import forge_measurement
from tests.independent import found, verifier

SIZE = 7
DOMAIN = mdp.Domain({"sex": 2, "geo": SIZE, "age": 3})
WORKLOAD = mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2, 3]))
TABLE = {"sex": [0, 1, 1], "geo": [0, 3, 6], "age": [2, 1, 0]}
noises = pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)


def trees(count: int, seed: int = 0) -> list[TreeMatrix]:
    random = np.random.default_rng(seed)
    kept: list[TreeMatrix] = []
    while len(kept) < count:
        tree = random_tree(random, told=True, families=len(kept) % 2)
        kept += [tree] if tree.columns == SIZE else []
    return kept


def plan_of(noise: Noise, measured: list[TreeMatrix], neighbours: str = "add_remove") -> Split:
    parts = []
    for names, tree in zip([(), ("sex",), ("age",), ("sex", "age")], measured, strict=True):
        blocks = [Block((name,), CenteredMatrix(DOMAIN[name].size)) for name in names]
        listed = DOMAIN.sort([*names, "geo"])
        parts.append(Part(listed, (Block(("geo",), tree), *blocks), 1.0).at_cost(noise, 0.25))
    weights = {"sex": np.full(2, 0.5), "geo": np.zeros(SIZE), "age": np.full(3, 1 / 3)}
    plan = Split(DOMAIN, tuple(parts), noise, weights)
    cost = plan.cost if neighbours == "add_remove" else plan.replacement_cost
    whole = (dataclasses.replace(part, variance=part.variance * cost) for part in plan.parts)
    return dataclasses.replace(plan, parts=tuple(whole))


def saved(folder: Path, plan: Split, **budget: Any) -> mdp.Release:
    between = {name: value for name, value in budget.items() if name == "neighbours"}
    selection = mdp.select(WORKLOAD, noise=plan.noise.name, mechanism="identity", **between).selection
    strategy = mdp.Strategy(dataclasses.replace(selection, plan=plan))
    privacy = {"epsilon": 1} if plan.noise == LAPLACE else {"rho": 0.3}
    release = strategy.measure(TABLE, mdp.Budget(**privacy, **budget)).reconstruct()
    mdp.save_release(release, folder)
    return release


@noises
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("enumerated", [True, False])
def test_both_find_the_cost_that_was_authorized(
    tmp_path: Path, noise: Noise, neighbours: str, enumerated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not enumerated:
        monkeypatch.setattr("matrixdp.plans.replacement._MOST_ENUMERATED", 0)
        monkeypatch.setattr(verifier, "MOST_PAIRS", 0)
    plan = plan_of(noise, trees(4), neighbours)
    alone = sum(noise.share(part, part.variance) for part in plan.parts)
    assert plan.cost < alone ** (2 / noise.norm) * 0.99
    release = saved(tmp_path / "out", plan, neighbours=neighbours)
    assert found(tmp_path / "out")[1] == []
    assert mdp.verify_release(tmp_path / "out").holds
    allowed = noise.cost(release.measurement.authorization.budget).value
    cost = release.measurement.authorization.cost.value
    assert allowed * (1 - Fraction(1, 10**6)) <= cost <= allowed
    assert "the costs of all parts add up" in explain_release(tmp_path / "out")


@noises
def test_a_cost_that_leaves_a_part_out_is_found(
    tmp_path: Path, noise: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a program that charges too little says: without one of the parts, or of another value."""
    columns = Split.columns.func  # type: ignore[attr-defined]

    def fewer(plan: Split) -> Any:
        table = columns(plan).copy()
        table[:, 1] = 1
        return table

    def cheapest(plan: Split) -> Any:
        return columns(plan)[:1]

    for name, wrong in (("fewer", fewer), ("cheapest", cheapest)):
        with monkeypatch.context() as patched:
            patched.setattr(Split, "columns", property(wrong))
            patched.setattr(
                Split, "column_shares", property(lambda plan: plan.columns / columns(plan).max(axis=0))
            )
            saved(tmp_path / name, plan_of(noise, trees(4)))
        assert any("cost from the matrices" in line for line in found(tmp_path / name)[1])
        assert not mdp.verify_release(tmp_path / name).holds


def test_a_series_of_trees_is_refused(tmp_path: Path) -> None:
    """Records of a series may change their areas from row to row."""
    saved(tmp_path / "out", plan_of(GAUSSIAN, trees(4)))

    def over_time(header: dict[str, Any], _members: dict[str, bytes]) -> None:
        header["series"] = {"attribute": "age", "published": [3]}

    forge_measurement(tmp_path / "out", over_time)
    with pytest.raises(ValueError, match="change their values in trees"):
        found(tmp_path / "out")


def test_an_altered_tree_is_found(tmp_path: Path) -> None:
    saved(tmp_path / "out", plan_of(GAUSSIAN, trees(4)))

    def heavier(header: dict[str, Any], members: dict[str, bytes]) -> None:
        names = [form["weights"][-1] for form in header["plan"]["matrices"] if form["kind"] == "tree"]
        data = bytearray(members[names[0]])
        data[-4] = 100  # the weight of the last value
        members[names[0]] = bytes(data)

    forge_measurement(tmp_path / "out", heavier)
    assert found(tmp_path / "out")[1]
    assert not mdp.verify_release(tmp_path / "out").holds
