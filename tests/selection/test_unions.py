"""Unions of products: shares of the cost for their least squares, and averages where those are too large."""

import math
from functools import partial

import numpy as np
import pytest
from losses import apart_loss

import matrixdp as mdp
from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix, IntegerMatrix
from matrixdp.noise import GAUSSIAN, LAPLACE, NOISES, Noise
from matrixdp.plans import Block, Local, Part, Union
from matrixdp.selection.auto import select
from matrixdp.selection.compose.whole_table import select_table
from matrixdp.selection.searches.unions import (
    CLUSTERS,
    combined_plan,
    first_union_loss,
    least_squares_plan,
    select_union,
)
from matrixdp.selection.selection import Selection
from matrixdp.testing import dense_error, dense_gram, dense_measurement
from tests.limits import Override

select_kron = partial(select_table, method="product")

DOMAIN = mdp.Domain({"a": 4, "b": 5, "c": 3})
WORKLOAD = mdp.Workload(
    DOMAIN, mdp.product(a="prefix", b="identity", weight=4.0), mdp.product(b="range", c="prefix")
)


def parts_of(noise, share=0.5):
    prefix = IntegerMatrix(np.tril(np.ones((4, 4), dtype=np.int64)))
    first = Part(("a", "b"), (Block(("a",), prefix), Block(("b",), IdentityMatrix(5))), 1.0)
    second = Part(("b", "c"), tuple(Block((n,), IdentityMatrix(DOMAIN[n].size)) for n in "bc"), 1.0)
    return [first.at_cost(noise, share), second.at_cost(noise, 1.0 - share)]


def dense_loss(plan, workload=WORKLOAD):
    rows = [dense_measurement(part, plan.domain) / math.sqrt(part.variance) for part in plan.parts]
    return dense_error(dense_gram(workload), np.vstack(rows))


@pytest.mark.parametrize("noise", NOISES.values(), ids=str)
def test_no_other_shares_have_less_error(noise):
    plan, loss = least_squares_plan(WORKLOAD, parts_of(noise), noise)
    best = dense_loss(plan)
    assert loss == pytest.approx(best, rel=1e-9)
    others = [
        dense_loss(Union(DOMAIN, tuple(parts_of(noise, s)), noise)) for s in np.linspace(0.02, 0.98, 97)
    ]
    assert best <= min(others) * (1 + 1e-9)
    assert best < 0.99 * others[48]
    assert plan.cost == pytest.approx(1.0)


def test_least_squares_are_better_than_averages():
    """Two products on one table: 5 to 10 % of the root mean squared error."""
    domain = mdp.Domain({"a": 16, "b": 16})
    entries = [mdp.product(a="prefix", b="identity"), mdp.product(a="identity", b="prefix")]
    workload = mdp.Workload(domain, *entries)
    assert select_union(workload, GAUSSIAN)[1].loss < 0.95 * select_kron(workload, GAUSSIAN)[1].loss
    for noise, least in ((GAUSSIAN, 0.07), (LAPLACE, 0.05)):
        parts = []
        for entry in entries:
            [part] = select_kron(mdp.Workload(domain, entry), noise)[0].parts
            parts.append(part.at_cost(noise, 0.5))
        average = Local(domain, tuple(parts), noise).analysis
        before = math.fsum(average.group(group).total for group in workload)
        _, certificate = combined_plan(workload, parts, noise)
        assert certificate.loss < before * (1 - least) ** 2


def test_averages_serve_where_least_squares_take_too_long(limits: Override):
    limits(_MOST_UNION_WORK=-1.0)
    plan, certificate = combined_plan(WORKLOAD, parts_of(GAUSSIAN), GAUSSIAN)
    assert isinstance(plan, Local)
    assert "averages" in certificate.scope


def test_averages_serve_where_least_squares_are_too_large_and_say_so(monkeypatch):
    monkeypatch.setattr("matrixdp.plans.pair.MAX_VALUES", 3)
    monkeypatch.setattr("matrixdp.plans.least_squares.MAX_COMMON", 0)
    parts = parts_of(GAUSSIAN)
    plan, certificate = combined_plan(WORKLOAD, parts, GAUSSIAN)
    assert isinstance(plan, Local)
    assert "averages" in plan.words
    assert "averages" in certificate.scope
    analysis = Local(DOMAIN, tuple(parts), GAUSSIAN).analysis
    assert certificate.loss == pytest.approx(math.fsum(analysis.group(g).weighted for g in WORKLOAD))


def test_groups_that_no_product_fits_have_no_union(monkeypatch):
    def refuses(*_: object, **__: object) -> None:
        raise TooLargeError("too many cells")

    monkeypatch.setattr("matrixdp.selection.searches.unions.solve_kron", refuses)
    with pytest.raises(TooLargeError, match="opt-plus"):
        first_union_loss(WORKLOAD, LAPLACE)


TWO_WAY = mdp.Workload(mdp.Domain({"a": 2, "b": 5, "c": 50, "d": 100}), mdp.marginals(2))


def united(workload: mdp.Workload, clusters: str, noise: Noise = LAPLACE) -> Selection:
    return select(workload, mechanism="opt-plus", noise=noise, clusters=clusters)


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_a_product_for_each_group_costs_what_is_published(noise):
    """McKenna et al., journal version, definition 19; for Laplace noise their Table 3."""
    cells = [predicates.queries for predicates in TWO_WAY]
    power = noise.norm / (noise.norm + 2)
    expected = noise.variance_factor * sum(own**power for own in cells) ** (1 / power)
    assert apart_loss(TWO_WAY, noise) == pytest.approx(expected)
    if noise == LAPLACE:
        assert expected / 2 == pytest.approx(85_070, abs=1)
    found = united(TWO_WAY, "products", noise)
    assert found.certificate.loss == pytest.approx(expected)  # no marginal determines another one here
    assert len(found.plan.parts) == 6


def test_two_groups_share_the_cost_evenly():
    found = united(TWO_WAY, "two")
    assert [LAPLACE.share(part, part.variance) for part in found.plan.parts] == pytest.approx([0.5, 0.5])
    assert found.plan.kind == "union"
    analysed = sum(found.plan.analysis.group(group).weighted for group in TWO_WAY)
    assert found.certificate.loss == pytest.approx(analysed)
    whole = united(mdp.Workload(TWO_WAY.domain, mdp.marginals([4])), "two")
    assert len(whole.plan.parts) == 1


def test_too_many_sets_are_not_merged_to_two(limits):
    limits(_MOST_MERGED_SETS=5)
    with pytest.raises(TooLargeError, match="6 sets of attributes are not merged to two groups"):
        united(TWO_WAY, "two")


def test_products_that_add_nothing_keep_a_share_that_can_be_computed_with():
    """Below a share of 1e-4 their squared noise would hide the precision of all others."""
    domain = mdp.Domain({"a": [f"v{place}" for place in range(600)], "b": range(20), "c": 2})
    workload = mdp.Workload(domain, mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"}))
    found = united(workload, "merged")
    shares = [LAPLACE.share(part, part.variance) for part in found.plan.parts]
    assert 2e-5 < min(shares) < 2e-4  # those of single attributes, which others tell as well
    assert math.sqrt(found.certificate.loss / workload.queries) == pytest.approx(5.875, rel=0.01)


@pytest.mark.parametrize("noise", NOISES.values(), ids=str)
@pytest.mark.parametrize("name", ["a", "c", "one"])
def test_queries_of_zeros_are_answered_beside_others(noise, name):
    domain = mdp.Domain({"a": 4, "b": 5, "c": 3, "one": 1})
    zeros = mdp.dense(np.zeros((2, domain[name].size)), [name])
    asked = mdp.product(a="prefix", b="identity"), mdp.product(b="prefix")
    alone = apart_loss(mdp.Workload(domain, *asked), noise)
    workload = mdp.Workload(domain, zeros, *asked)
    assert apart_loss(workload, noise) == pytest.approx(alone, rel=1e-9)
    for clusters in CLUSTERS:
        plan, certificate = select_union(workload, noise, clusters=clusters)
        assert 0.0 < certificate.loss < 1.5 * alone
        assert plan.analysis.group(workload.groups[0]).total == 0.0
    assert select(workload, noise=noise).plan.analysis.group(workload.groups[0]).total == 0.0


def test_least_squares_without_merging_are_tried_under_laplace_noise():
    domain = mdp.Domain({"a": 4, "b": 5, "c": 3})
    entries = mdp.product(a="prefix", b="identity"), mdp.product(b="prefix", c="identity")
    workload = mdp.Workload(domain, *entries)
    assert select_union(workload, LAPLACE)[1].loss < 0.8 * select_kron(workload, LAPLACE)[1].loss


PAIRS = mdp.Domain({"a": range(9), "b": range(9), "c": 3})
APART = [mdp.product(a="prefix", c="identity"), mdp.product(b="prefix", c="identity")]
BOXES = [
    {"a": {"range": [i, 2 * i]}, "b": {"range": [j, 7 - j]}} for i, j in ((0, 0), (1, 2), (3, 1), (4, 3))
]
EXPLICIT = {
    "beside others": [mdp.pairwise("abs", ["a", "b"]), *APART],
    "with others": [mdp.pairwise("abs", ["a", "b"]), mdp.kway(1, "prefix")],
    "least squares are better": [mdp.cells(BOXES), mdp.kway(1, {"numeric": "range"})],
    "as they are": [mdp.pairwise("affine", ["a", "c"]), mdp.marginals(2)],
}


@pytest.mark.parametrize("name", EXPLICIT)
def test_explicit_queries_may_have_a_strategy_of_their_table(name: str, limits: Override):
    workload = mdp.Workload(PAIRS, *EXPLICIT[name])
    plan, certificate = select_union(workload, LAPLACE)
    assert certificate.loss == pytest.approx(math.fsum(plan.analysis.group(g).weighted for g in workload))
    assert certificate.loss >= dense_loss(plan, workload) * (1 - 1e-6)  # that of least squares of all parts
    first = first_union_loss(workload, LAPLACE)[0]
    limits(max_searched_queries=0)
    products = select_union(workload, LAPLACE)[1].loss
    assert certificate.loss <= products * (1 + 1e-9)
    assert first <= first_union_loss(workload, LAPLACE)[0] * (1 + 1e-9)
    tables = [part.attributes for part in plan.parts if any(len(b.attributes) > 1 for b in part.blocks)]
    if "others" in name:
        assert tables == [("a", "b")]
        assert len(plan.parts) == (3 if name == "beside others" else 2)
        assert certificate.loss < 0.83 * products
    else:
        assert not tables


def test_tables_are_for_merged_unions_under_laplace_noise():
    workload = mdp.Workload(PAIRS, *EXPLICIT["beside others"])
    for noise, clusters in ((GAUSSIAN, "merged"), (LAPLACE, "products"), (LAPLACE, "two")):
        plan, _ = select_union(workload, noise, clusters=clusters)
        assert all(len(block.attributes) == 1 for part in plan.parts for block in part.blocks)


def test_a_few_boxes_on_many_cells_are_measured_by_few_rows():
    domain = mdp.Domain({"a": range(40), "b": range(40)})
    boxes = [{"a": {"range": [i, i + 20]}, "b": {"range": [j, 39 - j]}} for i, j in np.ndindex(6, 3)]
    plan, _ = select_union(mdp.Workload(domain, mdp.cells(boxes), mdp.marginals(1)), LAPLACE)
    [table] = [part for part in plan.parts if part.attributes == ("a", "b")]
    assert table.rows < 300
