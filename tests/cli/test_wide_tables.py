"""Domains of more cells than floating point has numbers: every command takes them."""

from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp.noise import LAPLACE
from matrixdp.selection.auto import select
from tests.cli.commands import figures, refused, run, spec

WIDE = [pytest.param(310, 10, id="310 attributes"), pytest.param(1_100, 2, id="1,100 questions")]


pytestmark = pytest.mark.usefixtures("here")


def written(attributes: int, size: int, asked: str) -> str:
    names = [f"a{number}" for number in range(attributes)]
    Path("t.csv").write_text(",".join(names) + "\n" + ",".join("1" * attributes) + "\n")
    domain = "".join(f"  {name}: {{min: 0, max: {size - 1}}}\n" for name in names)
    return spec(f"data: t.csv\ndomain:\n{domain}workload: [{asked}]\nprivacy: {{mu: 1}}\n")


@pytest.mark.parametrize(("attributes", "size"), WIDE)
def test_all_of_it_is_selected(attributes, size):
    name = written(attributes, size, "marginals: [0, 1]")
    assert figures("validate", name)["cells"] == size**attributes
    assert figures("select", name)["gap"] < 1e-6
    run("select", name, "--explain-choice")
    assert refused("select", name, "--mechanism", "dense").endswith("[too-large]")


@pytest.mark.slow
def test_a_release_of_a_part_of_it():
    name = written(310, 10, "marginals: [[a1], [a2, a3]]")
    run("validate", name)
    run("release", name, "--out", "o", "--seed-not-private", 1)
    for command in (["verify"], ["report", "--markdown"], ["report"]):
        run(*command, "o")
    run("show", "o", "a1")


def test_laplace_noise_takes_it_too():
    workload = mdp.Workload(mdp.Domain({f"a{number}": 10 for number in range(310)}), mdp.marginals([0, 1]))
    assert select(workload, noise=LAPLACE).plan.noise is LAPLACE


@pytest.mark.parametrize("noise", ["rho", "epsilon"])
def test_a_gap_is_told_where_something_was_too_large(noise, limits):
    workload = "workload: [product: {income: prefix, sex: identity}]\n"
    name = spec(f"domain: {{income: {{min: 0, max: 299}}, sex: [f, m]}}\n{workload}privacy: {{{noise}: 1}}\n")
    limits(axis_cells=10)
    result = run("select", name)
    assert ("Warning" in result.stderr) == (noise == "epsilon")
