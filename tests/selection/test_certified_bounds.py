"""Lower bounds by probes: the operator against dense matrices, polynomials below the root, never too high."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection import select
from matrixdp.selection.bounds import refined
from matrixdp.selection.bounds.contacts import below_root
from matrixdp.selection.bounds.decomposed import operator_of, refined_bound
from matrixdp.selection.bounds.exact import sector_norm
from matrixdp.selection.bounds.probed_sector import ProbedSector
from matrixdp.selection.bounds.probes import PILOTS, PROBES, probed_root
from matrixdp.selection.bounds.product_bound import certified_bound, product_bound
from matrixdp.selection.bounds.refined import FAILURE, refined_norm
from matrixdp.selection.bounds.scales import best_scales
from matrixdp.selection.compose.decomposition import solve_decomposition
from matrixdp.selection.mechanisms.table import silent


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-40, 40), min_size=1, max_size=3, unique=True), st.integers(0, 10_000))
def test_polynomials_are_below_the_root_and_touch_it(places, seed):
    contacts = [1.1**place for place in places]
    coefficients = [Fraction(value) for value in below_root(contacts)]
    terms = [abs(float(value)) for value in coefficients]

    def gap(s):
        powers = [s ** (2 * j) for j in range(1, len(coefficients) + 1)]
        size = sum(term * float(power) for term, power in zip(terms, powers, strict=True))
        return float(s - sum(c * power for c, power in zip(coefficients, powers, strict=True))), size

    for contact in contacts:
        value, size = gap(Fraction(math.sqrt(contact)))
        assert abs(value) <= 1e-6 * size
    spread = np.exp(np.random.default_rng(seed).uniform(-8, 8, 50))
    for s in [*spread.tolist(), *(math.sqrt(c) * (1 + e) for c in contacts for e in (-1e-3, 1e-3))]:
        value, size = gap(Fraction(s))
        assert value >= -1e-15 * size
    assert coefficients[-1] < 0


@pytest.fixture(scope="module")
def solved():
    """Several predicate sets for an attribute, weights, a symmetric attribute, subsets of three orders."""
    domain = mdp.Domain({"a": range(4), "b": range(5), "c": ["x", "y", "z"], "d": range(4)})
    workload = mdp.Workload(
        domain,
        mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"}),
        mdp.product(a="range", weight=3.0),
        mdp.product(a="prefix", b="prefix", c="identity"),
    )
    split, solver, found = solve_decomposition(workload, 1e-4)
    operator, p, _ = operator_of(split, solver, found)
    return workload, (split, solver, found), operator, p


def sectors_of(operator, p):
    for (spread, count, root), (traces, cubes) in zip(operator.roots(p), operator.traces(p), strict=True):
        scales = best_scales(traces, cubes)
        sector = ProbedSector(operator, spread, p, scales)
        times = count * sector.multiplicity
        second = float(np.einsum("abc,a,b,c->", cubes, scales, scales, scales))
        yield spread, count, root, sector, float(scales @ traces) / times, second / times


def dense_of(sector):
    """R'AR and R'R, from what they make of every unit vector."""
    sizes = [math.prod(shape) for shape in sector.shapes]
    units = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
    vectors = [one.reshape(len(one), *shape) for one, shape in zip(units, sector.shapes, strict=True)]
    return [
        np.concatenate([one.reshape(len(one), -1) for one in apply(vectors)], axis=1)
        for apply in (sector.asked, sector.metric)
    ]


def test_sectors_are_applied_as_their_dense_matrices(solved):
    operator, p = solved[2:]
    large = 0
    for spread, count, _, sector, first, second in sectors_of(operator, p):
        asked, metric = dense_of(sector)
        assert np.abs(asked - asked.T).max() <= 1e-12 * np.abs(asked).max()
        assert np.abs(metric - metric.T).max() <= 1e-12 * np.abs(metric).max()
        assert np.trace(asked) == pytest.approx(first, rel=1e-10)
        assert np.trace(asked @ metric @ asked) == pytest.approx(second, rel=1e-10)
        # A^(1/2) has the singular values of the root of what is asked on the inverse of what is measured
        inner = np.linalg.eigvals(np.linalg.solve(metric, asked)).real
        nuclear = count * sector.multiplicity * np.sqrt(np.maximum(inner, 0.0)).sum()
        assert nuclear == pytest.approx(sector_norm(operator, spread, p), rel=1e-5)
        large += len(asked) > 20
    assert large


def test_probes_are_never_above_the_nuclear_norm_and_gain_on_the_closed_form(solved):
    operator, p = solved[2:]
    spread, count, root, sector, first, second = next(iter(sectors_of(operator, p)))
    norm = sector_norm(operator, spread, p) / sector.multiplicity
    shares: list[float] = []
    found = [
        probed_root(sector, first, second, np.random.default_rng(seed), math.log(0.5), shares.append)
        for seed in range(6)
    ]
    assert max(found) <= norm
    # even where it may fail half of the time the deviation is a proved one, and above the estimate's
    assert np.mean(found) > root / (count * sector.multiplicity)
    assert shares[:2] == sorted(shares[:2])
    assert max(shares) == pytest.approx(1.0)
    strict = probed_root(
        sector, first, second, np.random.default_rng(0), math.log(FAILURE), lambda share: None
    )
    assert strict < found[0]


def test_refined_norms_add_sectors_up(solved, monkeypatch):
    workload, parts, operator, p = solved
    exact, by_chance = refined_norm(operator, p, 0, silent)
    assert not by_chance
    told: list[tuple[str, float | None]] = []
    monkeypatch.setattr(refined, "_MOST_WORK", 0.0)
    value, by_chance = refined_norm(operator, p, 0, lambda *what: told.append(what))
    assert by_chance
    closed = sum(root for *_, root in operator.roots(p))
    assert closed < value <= exact
    assert refined_norm(operator, p, 0, silent)[0] == value != refined_norm(operator, p, 1, silent)[0]
    assert {label for label, _ in told} == {"refining the lower bound"}
    assert told[-1][1] == pytest.approx(1.0)
    assert (PILOTS, PROBES) == (12, 64)
    monkeypatch.setattr(refined, "_MOST_DIMENSIONS", 0)
    value, by_chance = refined_norm(operator, p, 0, silent)
    assert value == pytest.approx(closed)
    assert not by_chance
    # where the eigenvalues of small sectors are better than the refined sum the scope has no coins
    split, solver, found = parts
    assert refined_bound(split, solver, found, 0, silent) == (product_bound(workload)[0], False)


def test_tied_attributes_keep_the_closed_form(monkeypatch):
    domain = mdp.Domain({"a": range(3), "b": range(3)})
    workload = mdp.Workload(domain, mdp.pairwise("affine"), mdp.product(a="prefix"))
    monkeypatch.setattr(refined, "_MOST_WORK", 0.0)
    operator, p, _ = operator_of(*solve_decomposition(workload, 1e-4))
    found, by_chance = refined_norm(operator, p, 0, silent)
    assert not by_chance
    assert found == pytest.approx(sum(root for *_, root in operator.roots(p)))


def test_certificates_state_the_probability(monkeypatch):
    domain = mdp.Domain({f"a{i}": range(5) for i in range(5)})
    workload = mdp.Workload(domain, mdp.kway([1, 2], "prefix"))
    plain = select(workload, noise=GAUSSIAN, mechanism="residual").certificate
    monkeypatch.setattr("matrixdp.selection.bounds.decomposed._MOST_WORK", 0.0)
    monkeypatch.setattr(refined, "_MOST_WORK", 0.0)
    closed = product_bound(workload)[0]
    found = mdp.select(workload, noise="gaussian", mechanism="residual", certify=True, seed=3).certificate
    assert "probability 1e-09 over the coins of the check (seed 3)" in found.scope
    assert closed < found.lower_bound <= plain.lower_bound
    laplace = select(workload, noise=LAPLACE, mechanism="identity", certify=True).certificate
    assert laplace.scope.startswith("every strategy with laplace noise, except with probability 1e-09")
    assert laplace.lower_bound == pytest.approx(2 * certified_bound(workload, 0, silent)[0], rel=1e-9)


@pytest.mark.parametrize("with_targets", [False, True])
def test_largest_variances_have_a_product_bound(with_targets, monkeypatch):
    """Under `max` and targets, not above what the whole table proves possible, and no worse by coins."""
    domain = mdp.Domain({f"a{i}": range(4) for i in range(2)})
    workload = mdp.Workload(domain, mdp.kway([1, 2], "prefix"))
    targets = {next(group.name for group in workload): 2.0} if with_targets else None
    best = select(workload, noise=GAUSSIAN, mechanism="dense", objective="max", targets=targets).certificate
    monkeypatch.setattr("matrixdp.selection.mechanisms.trials.MAX_COMPARED_CELLS", 1)
    monkeypatch.setattr("matrixdp.selection.auto._BALANCING_STEPS", {2: 4})
    found = select(workload, noise=GAUSSIAN, mechanism="residual", objective="max", targets=targets)
    assert 0.5 * best.loss < found.certificate.lower_bound <= best.loss
    assert found.certificate.scope.endswith("about the largest (weighted) variance")
    certified = select(
        workload, noise=GAUSSIAN, mechanism="residual", objective="max", targets=targets, certify=True
    )
    assert found.certificate.lower_bound <= certified.certificate.lower_bound <= best.loss


def test_none_where_it_is_out_of_reach(solved, monkeypatch):
    workload = solved[0]
    monkeypatch.setattr("matrixdp.selection.bounds.decomposed._MOST_ENTRIES", 10)
    assert certified_bound(workload, 0, silent) is None
    monkeypatch.setattr("matrixdp.selection.bounds.rings.MAX_AXIS_CELLS", 2)
    assert certified_bound(workload, 0, silent) is None
