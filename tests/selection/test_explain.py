"""What selection says that it will do is what it does, and what it says costs no search."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.errors import NumericalError, TooLargeError, WorkloadError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection import auto, rules
from matrixdp.selection.compose.decomposition import solve_classes, sub_solver_for
from matrixdp.selection.compose.product import Product
from matrixdp.selection.compose.weight_vectors import uniform_weights
from matrixdp.selection.explain import explain, part_methods
from matrixdp.selection.problem.residuals import Pieces, split_workload
from matrixdp.selection.registry import mechanism_named
from matrixdp.selection.selection import Certificate
from tests.limits import Override

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = mdp.Domain({"a": 6, "b": 5, "c": 2})
ROWS = np.random.default_rng(0).integers(0, 2, (3, 30)).astype(float)


def areas(tracts):
    """Return marginals at two levels of a tree."""
    half = {"sets": [[*range(tracts // 2)], [*range(tracts // 2, tracts)]]}
    return mdp.Workload(
        mdp.Domain({"area": tracts, "c": 2}),
        mdp.product(area=half, c="identity"),
        mdp.product(area="identity"),
    )


WORKLOADS = {
    "one product": mdp.Workload(SMALL, mdp.product(a="prefix", b="range")),
    "marginals": mdp.Workload(SMALL, mdp.marginals([1, 2])),
    "prefixes": mdp.Workload(SMALL, mdp.kway([1, 2], "prefix")),
    "cells and prefixes": mdp.Workload(SMALL, mdp.marginals([1, 2]), mdp.kway([1, 2], "prefix")),
    "crossed": mdp.Workload(SMALL, mdp.product(a="prefix", b="identity"), mdp.product(b="prefix")),
    "explicit": mdp.Workload(SMALL, mdp.dense(ROWS, ["a", "b"]), mdp.kway([1, 3], "prefix")),
    "disjunction": mdp.Workload(SMALL, mdp.disjunction(a="prefix", c="identity"), mdp.marginals(1)),
    "one attribute": mdp.Workload(mdp.Domain({"a": 120}), mdp.product(a="prefix"), mdp.product(a="total")),
    "few areas": areas(200),
    "areas": areas(3_000),
    "areas alone": mdp.Workload(
        mdp.Domain({"area": 150}),
        mdp.product(area={"ranges": [[0, 49], [50, 149]]}),
        mdp.product(area="identity"),
    ),
    "many": mdp.Workload(mdp.Domain(dict.fromkeys("abcdef", 4)), mdp.kway([1, 2], "prefix")),
}


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("name", WORKLOADS)
def test_what_is_said_is_what_is_done(name, noise):
    workload = WORKLOADS[name]
    said = {one.mechanism: one for one in explain(workload, noise).candidates}
    selection = auto.select(workload, noise=noise)
    done = {one.mechanism: one for one in selection.candidates}
    losses = {one.mechanism: one.loss for one in done.values() if one.loss is not None}
    for mechanism, one in said.items():
        if one.status == "tried":
            assert mechanism in losses
        elif one.status == "tried if needed":
            assert mechanism in losses or done[mechanism].status in ("passed", "skipped")
        else:
            assert mechanism not in losses
            known = done.get(mechanism)  # what follows one that is tried alone is not gone through
            assert known is None or (known.status, known.reason) == (one.status, one.reason)
    assert selection.candidates[0].status == "chosen"
    assert selection.candidates[0].mechanism == selection.mechanism
    assert losses[selection.mechanism] == selection.certificate.loss <= 1.00001 * min(losses.values())


@pytest.mark.parametrize("joint", [2_000, 8])
@pytest.mark.parametrize("name", [name for name in WORKLOADS if name != "explicit"])
def test_marginals_are_solved_as_is_said(name, joint, limits: Override):
    workload = WORKLOADS[name]
    limits(joint_cells=joint)
    said = part_methods(workload)
    split = split_workload(workload)
    solver = sub_solver_for(Pieces(split, uniform_weights(split)), GAUSSIAN, 1e-6)
    solved = {sub.marginals: solution for sub, solution in solve_classes(split, solver)}
    assert [part.marginals for part in said] == [len(sub.marginals) for sub in split.classes]
    for part, sub in zip(said, split.classes, strict=True):
        assert part.attributes == sub.marginals[0]
        if sub.marginals not in solved:
            continue  # nothing is asked of it
        together = [block for block in solved[sub.marginals].blocks if len(block.axes) > 1]
        products = any(isinstance(block.found, Product) for block in together)
        assert ("product" in part.method.split(", ")) == products
        if together:
            assert part.cells == together[0].found.cells
            assert ("the limit is 8" in part.reason) == products


def test_each_class_is_told_with_its_sizes_and_the_limits_of_the_search():
    domain = mdp.Domain({"a": 30, "b": 20, "c": 4, "d": 4})
    parts = part_methods(mdp.Workload(domain, *PAIRS, mdp.kway(2, "prefix", attributes=["c", "d"])))
    found = {part.attributes: (part.sizes, part.cells, part.matrix, part.method) for part in parts}
    assert found["a", "b"] == ((30, 20), 600, 600, "dual")
    assert found["c", "d"] == ((4, 4), 4, 4, "dual")
    searched = {part.attributes: part.search for part in parts if part.search}
    assert list(searched) == [("a", "b")]
    assert searched["a", "b"].startswith("product (not dual: 600 cells; the limit is 420")


def test_what_laplace_noise_searches_is_told():
    domain = mdp.Domain({"a": 6, "b": 6, "c": 5_000, "sex": 2})
    workload = mdp.Workload(domain, *PAIRS, mdp.product(c="prefix", sex="identity"))
    parts = {part.attributes: part for part in explain(workload, LAPLACE).parts}
    assert {names: part.method for names, part in parts.items()} == {
        ("a",): "p-Identity",
        ("c",): "identity",
        ("sex",): "identity",
    }
    assert (parts["a",].marginals, parts["a",].matrix, parts["c",].matrix) == (2, 6, 0)
    assert "the limit is 4,096" in parts["c",].reason
    table = explain(WORKLOADS["crossed"], LAPLACE)
    assert [part.sizes for part in table.parts if len(part.sizes) > 1] == [(6, 5)]
    assert table.matrices["opt-0"] == 30
    decomposed = explain(WORKLOADS["crossed"], LAPLACE, "querysmasher").parts
    assert (decomposed[-1].attributes, decomposed[-1].method) == (("a", "b"), "p-Identity, closed form")


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_merged_values_and_bounds_are_told(noise):
    few = mdp.product(income={"ranges": [[0, 99], [100, 299], [300, 99_999]]}, sex="identity")
    workload = mdp.Workload(mdp.Domain({"income": 100_000, "sex": 2}), few, mdp.marginals(0))
    found = explain(workload, noise)
    assert found.merged == {"income": (100_000, 3)}
    assert max(found.matrices.values()) <= 6
    assert len(found.bounds) == 3
    assert explain(workload, noise, "identity").merged == {}
    assert {size for part in found.parts for size in part.sizes} == {2, 3}
    chosen = mdp.select(workload, noise=noise.name).choice
    if noise == GAUSSIAN:
        assert chosen.candidates[0].mechanism == "residual"
        assert (chosen.parts, chosen.merged) == (found.parts, found.merged)


def test_explicit_pairs_are_designed_together():
    workload = mdp.Workload(
        mdp.Domain(dict.fromkeys("abc", 4)), mdp.kway(1, "prefix"), mdp.pairwise("affine")
    )
    assert {part.method for part in part_methods(workload)} == {"joint tables"}
    assert auto.select(workload, noise=GAUSSIAN, mechanism="residual").plan.kind == "joint"


def line(size: int, *entries) -> mdp.Workload:
    return mdp.Workload(mdp.Domain({"a": size, "b": size}), *entries)


PAIRS = mdp.product(a="prefix", b="identity"), mdp.product(a="identity", b="prefix")
CROSSED = [mdp.product(a=a, b=b, c="prefix") for a, b in (("prefix", "identity"), ("identity", "prefix"))]


def test_the_sub_solver_that_is_given_is_the_one_that_is_explained(limits: Override):
    workload = line(6, *PAIRS)

    def method(sub_solver: str) -> str:
        return explain(workload, GAUSSIAN, options={"sub_solver": sub_solver}).parts[-1].method

    assert [method(own) for own in ("auto", "product")] == ["dual", "product"]
    limits(joint_cells=8)
    assert [method(own) for own in ("auto", "optimum")] == ["product", "none"]
    [candidate] = explain(workload, GAUSSIAN, "residual", {"sub_solver": "optimum"}).candidates
    assert candidate.status == "too large"
    with pytest.raises(TooLargeError, match=candidate.reason):
        auto.select(workload, noise=GAUSSIAN, mechanism="residual", sub_solver="optimum")
    with pytest.raises(WorkloadError):
        mdp.explain_choice(workload, mechanism="dense", restarts=3)


@pytest.mark.parametrize(
    ("mechanism", "noise", "workload", "said"),
    [
        ("dense", GAUSSIAN, line(100, *PAIRS), "10,000 cells that do not factor; the limit is 8,500"),
        (
            "dense",
            GAUSSIAN,
            line(9_000, mdp.product(a="prefix")),
            "9,000 values of an attribute that factors",
        ),
        ("dense", GAUSSIAN, line(20_000, mdp.marginals(2)), "400,000,000 cells of the attributes"),
        ("weighted-product", GAUSSIAN, line(600, *PAIRS), "360,000 cells that do not factor"),
        (
            "weighted-product",
            GAUSSIAN,
            mdp.Workload(mdp.Domain({"a": 1_001, "b": 2}), *PAIRS),
            "1,001 values of an attribute that does not factor out; the limit is 1,000",
        ),
        (
            "weighted-product",
            GAUSSIAN,
            mdp.Workload(mdp.Domain({"a": 3, "b": 3, "c": 1_001}), *CROSSED),
            "1,001 values of an attribute that factors out; the limit is 1,000",
        ),
        ("opt-0", LAPLACE, line(100, *PAIRS), "10,000 cells that do not factor; the limit is 4,096"),
        ("opt-kron", LAPLACE, line(20_000, mdp.marginals(2)), "400,000,000 cells of the attributes"),
        ("opt-m", LAPLACE, line(20_000, mdp.marginals(2)), "400,000,000 cells of a marginal"),
        ("generalized-marginals", LAPLACE, line(5_000, mdp.product(a="prefix")), "5,000 values"),
        (
            "generalized-marginals",
            LAPLACE,
            mdp.Workload(mdp.Domain(dict.fromkeys("abcdefghijklmn", 2)), mdp.marginals(14)),
            "4,782,969 pairs of a marginal and one in it; the limit is 2,000,000",
        ),
        ("opt-plus", LAPLACE, line(20_000, mdp.marginals(2)), "400,000,000 cells of a marginal"),
    ],
)
def test_a_mechanism_refuses_what_is_beyond_its_declared_limits(mechanism, noise, workload, said):
    assert rules.Facts(workload, noise).beyond(mechanism_named(mechanism).limits).startswith(said)
    [candidate] = explain(workload, noise, mechanism).candidates
    assert (candidate.status, candidate.reason[: len(said)]) == ("too large", said)
    with pytest.raises(TooLargeError):
        auto.select(workload, noise=noise, mechanism=mechanism)


def test_nothing_that_fits_is_told_with_every_reason():
    with pytest.raises(
        TooLargeError, match=r"auto: no mechanism takes .* opt-m: 400,000,000 cells of a marg"
    ):
        auto.select(line(20_000, mdp.marginals(2)), noise=LAPLACE)


def test_the_command_explains_without_selecting(monkeypatch, tmp_path):
    monkeypatch.setattr(auto.Trials, "choose", lambda *_: pytest.fail("it selects"))
    monkeypatch.setattr(auto.Trials, "trial", lambda *_: pytest.fail("it searches"))
    spec = str(EXAMPLES / "randhie.yaml")
    started = time.process_time()
    told = CliRunner().invoke(app, ["select", spec, "--explain-choice", "--json"])
    assert told.exit_code == 0, told.stderr
    assert time.process_time() - started < 5
    choices = json.loads(told.stdout)["choices"]
    workload = mdp.load_specification(spec).workload
    assert [choice["noise"] for choice in choices] == ["gaussian", "laplace"]
    for choice, noise in zip(choices, (GAUSSIAN, LAPLACE), strict=True):
        known = explain(workload, noise)
        assert [one["mechanism"] for one in choice["candidates"]] == [
            one.mechanism for one in known.candidates
        ]
        assert [part["method"] for part in choice["parts"]] == [part.method for part in known.parts]
    shown = CliRunner().invoke(app, ["select", spec, "--explain-choice"])
    words = " ".join(shown.stdout.split())
    for said in (
        "With Gaussian noise",
        "residual",
        "in any case",
        "closed form",
        "5 smaller classes",
        "lower bound from",
        "Laplace noise is tried only",
    ):
        assert said in words
    named = CliRunner().invoke(app, ["select", spec, "--explain-choice", "--mechanism", "dense", "--json"])
    [candidate] = json.loads(named.stdout)["choices"][0]["candidates"]
    assert candidate["status"] == "too large"
    both = CliRunner().invoke(app, ["select", spec, "--explain-choice", "--strategy-file", spec])
    assert both.exit_code == 2


def test_a_strategy_keeps_what_was_compared(tmp_path):
    workload = WORKLOADS["crossed"]
    strategy = mdp.select(workload, noise="laplace")
    strategy.save(tmp_path / "s.mdp")
    again = mdp.Strategy.load(tmp_path / "s.mdp")
    assert again.choice == strategy.choice
    assert len([one for one in again.choice.candidates if one.loss is not None]) > 1
    [planned] = mdp.explain_choice(workload, noise="laplace")
    assert {one.mechanism for one in planned.candidates} == {one.mechanism for one in again.choice.candidates}
    decomposed = mdp.select(WORKLOADS["many"], noise="gaussian")
    assert decomposed.choice.parts == explain(WORKLOADS["many"], GAUSSIAN).parts != ()


def test_every_rule_is_reached_by_some_workload():
    """One below another that is always tried alone would never be."""
    reached = set()
    for noise in (GAUSSIAN, LAPLACE):
        for workload in (*WORKLOADS.values(), line(40, *PAIRS)):
            facts = rules.Facts(workload, noise)
            for place, rule in enumerate(rules.RULES[noise.norm]):
                status, _ = rule.refusal(facts)
                if status in ("", "tried if needed"):
                    reached.add((noise.norm, place))
                if rule.alone and not status:
                    break
    assert reached == {(norm, place) for norm, own in rules.RULES.items() for place in range(len(own))}


def test_the_parts_of_all_candidates_are_told(monkeypatch):
    both = rules.Rule("residual"), rules.Rule("querysmasher")
    monkeypatch.setitem(rules.RULES, 2, both)
    found = explain(WORKLOADS["crossed"], GAUSSIAN)
    assert set(found.matrices) == {"residual", "querysmasher"}
    for rule in both:
        assert set(explain(WORKLOADS["crossed"], GAUSSIAN, rule.mechanism).parts) <= set(found.parts)
    refused = explain(WORKLOADS["crossed"], GAUSSIAN, options={"sub_solver": "optimum"})
    assert [one.status for one in refused.candidates] == ["tried", "tried"]


def test_nothing_is_said_to_be_the_best_that_is_only_searched():
    workload = mdp.Workload(mdp.Domain({"a": 200}), mdp.product(a="prefix"))
    whens = {noise: explain(workload, noise).candidates[0].reason for noise in (GAUSSIAN, LAPLACE)}
    assert [("less error" in when) for when in whens.values()] == [True, False]


def test_a_bound_above_the_loss_is_no_gap():
    assert Certificate(1.0, 1.0 + 1e-9, "").gap == 0
    with pytest.raises(NumericalError):
        Certificate(1.0, 1.1, "")
