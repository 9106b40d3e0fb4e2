"""Joint plans: whole tables that share their one-way marginals."""

import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.exact import IdentityMatrix, IntegerMatrix
from matrixdp.noise import GAUSSIAN
from matrixdp.plans import Block, Joint, Part, least_squares
from matrixdp.testing import check_plan, dense_error, dense_gram, dense_measurement

DOMAIN = mdp.Domain({"a": range(3), "b": range(4), "c": range(2), "d": range(3)})


def matrix(rng: np.random.Generator, size: int) -> IntegerMatrix:
    return IntegerMatrix(rng.integers(-3, 6, (size + 1, size)))


def part(rng: np.random.Generator, share: float, *blocks: tuple[str, ...]) -> Part:
    made = tuple(Block(names, matrix(rng, DOMAIN.cells(names))) for names in blocks)
    return Part(DOMAIN.sort([n for names in blocks for n in names]), made, 1.0).at_cost(GAUSSIAN, share)


def plan() -> Joint:
    """Tables on a, b and on a, c; parts of their own on the marginals beside and above them."""
    rng = np.random.default_rng(1)
    parts = (
        part(rng, 0.2, ("a", "b")),
        part(rng, 0.2, ("a",), ("c",)),
        part(rng, 0.1, ("b",), ("c",)),
        part(rng, 0.1, ("d",)),
        part(rng, 0.1, ("c", "d")),
        part(rng, 0.2, ("a",), ("b",), ("c",)),
        part(rng, 0.1, ("a", "d")),
    )
    weights = {n: (v := rng.uniform(0.2, 1.0, DOMAIN[n].size)) / v.sum() for n in DOMAIN.names}
    return Joint(DOMAIN, parts, GAUSSIAN, weights, {"parts": np.array([1.0, 1.0, 0, 0, 0, 0, 0])})


def workload() -> mdp.Workload:
    return mdp.Workload(
        DOMAIN,
        mdp.kway([0, 1], "prefix"),
        mdp.pairwise("affine", attributes=["a", "b"]),
        mdp.product(a="identity", b="prefix", c="range"),
        mdp.product(b="prefix", c="identity"),
        mdp.product(c="identity", d="prefix"),
        mdp.product(a="prefix", d="prefix"),
        mdp.product(a="prefix", b="prefix"),
        mdp.dense(np.arange(48.0).reshape(2, 24) % 5, ["a", "b", "c"]),
    )


def test_it_keeps_the_contract():
    check_plan(plan(), workload())


def test_a_large_product_is_analysed_in_pieces(monkeypatch):
    [group] = mdp.product(a="identity", b="prefix", c="range").expand(DOMAIN)
    whole = plan().analysis.variances(group)
    monkeypatch.setattr(least_squares, "_CHUNK", 1)
    np.testing.assert_allclose(plan().analysis.variances(group), whole, rtol=1e-12)


@pytest.mark.parametrize(("shares", "different"), [((0.25,) * 4, 2), ((0.25, 0.25, 0.2, 0.3), 7)])
def test_attributes_of_which_tables_say_the_same_are_analysed_once(shares, different):
    """Tables around a ring: where all are alike so are its attributes, else those opposite each other."""
    domain = mdp.Domain({name: range(3) for name in "abcd"})
    own = np.random.default_rng(3).integers(-3, 6, (10, 3, 3))
    table = IntegerMatrix(np.concatenate([own, own.transpose(0, 2, 1)]).reshape(20, 9))
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    parts = tuple(
        Part(pair, (Block(pair, table),), 1.0).at_cost(GAUSSIAN, share)
        for pair, share in zip(ring, shares, strict=True)
    )
    weights = {name: np.full(3, 1 / 3) for name in domain.names}
    analysis = Joint(domain, parts, GAUSSIAN, weights, {"parts": np.ones(4)}).analysis
    asked = mdp.Workload(
        domain, mdp.kway(1, "prefix"), *(mdp.product(dict.fromkeys(p, "prefix")) for p in ring)
    )
    apart = [float(analysis.variances(group).sum()) for group in asked]
    assert [analysis.group(group).total for group in asked] == pytest.approx(apart, rel=1e-12)
    assert len({analysis.key(group) for group in asked}) == len({round(one, 6) for one in apart}) == different


def test_attributes_of_which_tables_say_different_things_are_told_apart():
    """Deviations of two attributes the other way round, and tables that differ beyond their margins."""
    domain = mdp.Domain({name: range(2) for name in "abcdefgh"})
    plain = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]])
    tables = {"ab": (plain, 1.0), "cd": (plain * [[1], [1], [1], [3]], 1.0)}
    alone = {name: np.eye(2, dtype=np.int64) for name in "efgh"}
    whole = [Part(tuple(n), (Block(tuple(n), IntegerMatrix(m)),), v) for n, (m, v) in tables.items()]
    whole += [
        Part((n,), (Block((n,), IntegerMatrix(m)),), v)
        for (n, m), v in zip(alone.items(), (1.0, 3.0, 3.0, 1.0), strict=True)
    ]
    beyond = [Part(tuple(n), tuple(Block((m,), IdentityMatrix(2)) for m in n), 1.0) for n in ("ef", "gh")]
    cost = sum(GAUSSIAN.share(one, one.variance) for one in (*whole, *beyond))
    parts = tuple(Part(one.attributes, one.blocks, cost * one.variance) for one in (*whole, *beyond))
    marks = {"parts": np.array([1.0] * len(whole) + [0.0] * len(beyond))}
    weights = {name: np.full(2, 0.5) for name in domain.names}
    analysis = Joint(domain, parts, GAUSSIAN, weights, marks).analysis
    asked = [{"a": "prefix", "b": "identity"}, {"c": "prefix", "d": "identity"}]
    asked += [{"e": "prefix", "f": "identity"}, {"g": "prefix", "h": "identity"}]
    for group in mdp.Workload(domain, *map(mdp.product, asked)):
        assert analysis.group(group).total == pytest.approx(analysis.variances(group).sum(), rel=1e-12)


def test_tables_alone_answer_as_the_least_squares_of_all_they_measure():
    rng = np.random.default_rng(2)
    parts = (part(rng, 0.5, ("a", "b")), part(rng, 0.3, ("a", "c")), part(rng, 0.2, ("b", "c")))
    weights = {n: np.full(DOMAIN[n].size, 1.0 / DOMAIN[n].size) for n in DOMAIN.names}
    tables = Joint(DOMAIN, parts, GAUSSIAN, weights, {"parts": np.ones(3)})
    asked = mdp.Workload(DOMAIN, mdp.kway([0, 1, 2], "prefix", attributes=["a", "b", "c"]))
    rows = [dense_measurement(own, DOMAIN) / math.sqrt(own.variance) for own in parts]
    error = math.fsum(tables.analysis.group(group).weighted for group in asked)
    assert error == pytest.approx(dense_error(dense_gram(asked), np.vstack(rows)), rel=1e-8)


def test_noise_of_variables_is_told_apart_up_to_a_size():
    [group] = mdp.marginals([["a"]]).expand(DOMAIN)
    assert plan().analysis.noise_terms(group, 10) is None
