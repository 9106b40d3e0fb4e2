import json
from fractions import Fraction
from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp.releases.record import exact_scale, measured

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 9}, "code": 3})
WORKLOAD = mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2]), mdp.product(age="prefix", code="identity"))
TABLE = {"sex": ["female", "male"], "age": [3, 4], "code": [0, 2]}


def recomputed(written: dict) -> Fraction:
    """The cost from what release.json says alone: the sum of sensitivity / scale^p over the parts."""
    norm = written["privacy"]["mechanism"]["sensitivity_norm"]
    name = {1: "sensitivity", 2: "squared_sensitivity"}[norm]
    total = Fraction(0)
    for row in written["strategy"]["parts"]:
        scale = Fraction(row["scale"]["numerator"]) / Fraction(2) ** row["scale"]["exponent"]
        assert str(scale) == row["scale"]["text"]
        total += len(row["attributes"]) * Fraction(row[name]) / scale**norm
    return total


@pytest.mark.parametrize("mechanism", ["residual", "hdmm", "opt-m", "hierarchical", "identity"])
@pytest.mark.parametrize("budget", [mdp.Budget(rho=0.5), mdp.Budget(epsilon=1)], ids=["gaussian", "laplace"])
def test_the_cost_follows_from_the_record(mechanism: str, budget: mdp.Budget, tmp_path: Path):
    strategy = mdp.select(WORKLOAD, mechanism=mechanism, noise="auto", budget=budget)
    release = strategy.measure(TABLE, budget).reconstruct()
    written = json.loads((mdp.save_release(release, tmp_path / "out") / "release.json").read_text())
    cost = Fraction(written["privacy"]["cost"])
    total = recomputed(written)
    # the cost is rounded up in the 160th bit of each part
    assert total <= cost <= total + Fraction(len(release.measurement.scales), 1 << 160)
    parts = [
        tuple(tuple(block) for block in part)
        for row in written["strategy"]["parts"]
        for part in row["attributes"]
    ]
    plan = release.measurement.plan
    assert sorted(parts) == sorted(tuple(block.attributes for block in part.blocks) for part in plan.parts)
    assert written["strategy"]["measured_rows"] == sum(
        row["rows"] * len(row["attributes"]) for row in written["strategy"]["parts"]
    )
    scales = {
        (part.attributes, scale.exact, -scale.power)
        for part, scale in zip(plan.parts, release.measurement.scales, strict=True)
    }
    told = {
        (
            tuple(DOMAIN.sort([name for block in part for name in block])),
            Fraction(row["scale"]["text"]),
            row["lattice_exponent"],
        )
        for row in written["strategy"]["parts"]
        for part in row["attributes"]
    }
    assert told == scales


def test_parts_that_differ_in_their_attributes_alone_are_one_row():
    domain = mdp.Domain({f"a{place}": 3 for place in range(12)})
    workload = mdp.Workload(domain, mdp.marginals([1, 2]))
    table = {name: [0] for name in domain.names}
    release = mdp.select(workload).measure(table, mdp.Budget(rho=0.5)).reconstruct()
    rows = measured(release.measurement)["parts"]
    assert [len(row["attributes"]) for row in rows] == [1, 12, 66]


@pytest.mark.parametrize(
    "scale", [Fraction(1), Fraction(3, 8), Fraction(96), Fraction(2**80), Fraction(5, 2**90)]
)
def test_scales_are_integers_over_powers_of_two(scale: Fraction):
    written = exact_scale(scale)
    assert Fraction(written["numerator"]) / Fraction(2) ** written["exponent"] == scale
    assert written["numerator"] % 2 == 1
    assert Fraction(str(written["text"])) == scale
