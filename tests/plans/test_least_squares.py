"""Plans whose parts overlap answer by the least squares of all parts: random ones against dense matrices."""

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError
from matrixdp.exact import DeficientMatrix, IdentityMatrix, IntegerMatrix, MeasuredMatrix, MergedMatrix
from matrixdp.language import Entry
from matrixdp.noise import GAUSSIAN, NOISES
from matrixdp.plans import Block, Joint, Part, Plan, Pooled, Union
from matrixdp.testing import check_plan, dense_measurement, dense_queries

Rng = np.random.Generator


def full(rng: Rng, size: int) -> IntegerMatrix:
    return IntegerMatrix(
        np.vstack([rng.integers(-2, 4, (rng.integers(0, 3), size)), 3 * np.eye(size, dtype=int)])
    )


def alike(rng: Rng, size: int) -> IntegerMatrix:
    return IntegerMatrix(int(rng.integers(size + 1, 9)) * np.eye(size, dtype=np.int64) - 1)


def deficient(rng: Rng, size: int) -> MeasuredMatrix:
    """A matrix of lower rank that determines the total."""
    low = np.vstack(
        [np.ones((1, size), dtype=np.int64), np.eye(size, dtype=np.int64)[: int(rng.integers(size))]]
    )
    return DeficientMatrix(low) if len(low) < size else IntegerMatrix(low)


def merged(rng: Rng, size: int) -> MeasuredMatrix:
    groups = np.arange(size) * int(rng.integers(1, size + 1)) // size
    return MergedMatrix(full(rng, int(groups.max()) + 1), (groups,))


def identity(_: Rng, size: int) -> MeasuredMatrix:
    return IdentityMatrix(size)


MADE: list[Callable[[Rng, int], MeasuredMatrix]] = [identity, full, alike, deficient, merged]


def matrix(rng: Rng, size: int) -> MeasuredMatrix:
    return MADE[rng.integers(len(MADE))](rng, size)


def marginals(rng: Rng, domain: mdp.Domain, most: int) -> list[tuple[str, ...]]:
    """Return marginals that overlap more often than not, the total at times among them."""
    found = [n for k in range(most + 1) for n in combinations(domain.names, k)]
    return [found[i] for i in rng.integers(len(found), size=rng.integers(2, 5))]


def at_cost_1(kind: type[Plan], domain: mdp.Domain, parts: list[Part], noise=GAUSSIAN, **own: Any) -> Plan:
    total = math.fsum(noise.share(part, part.variance) for part in parts) ** (2 / noise.norm)
    scaled = tuple(Part(p.attributes, p.blocks, p.variance * total) for p in parts)
    return kind(domain, scaled, noise, **own)


def products(rng: Rng, domain: mdp.Domain, names: tuple[str, ...], of=None) -> Part:
    blocks = [Block((n,), of[n] if of else matrix(rng, domain[n].size)) for n in rng.permutation(list(names))]
    return Part(names, tuple(blocks), float(rng.uniform(1.0, 9.0)))


def union(rng: Rng, domain: mdp.Domain, noise) -> Plan:
    parts = [products(rng, domain, names) for names in marginals(rng, domain, 3)]
    return at_cost_1(Union, domain, parts, noise)


def pooled(rng: Rng, domain: mdp.Domain, noise) -> Plan:
    of = {name: matrix(rng, domain[name].size) for name in domain.names}
    parts = [products(rng, domain, names, of) for names in dict.fromkeys(marginals(rng, domain, 3))]
    return at_cost_1(Pooled, domain, parts, noise)


def joint(rng: Rng, domain: mdp.Domain, noise) -> Plan:
    parts = []
    for names in {n for n in marginals(rng, domain, 2) if n} or {domain.names[:2]}:
        cut = [(n,) for n in names] if rng.random() < 0.5 else [names]
        blocks = tuple(Block(own, full(rng, domain.cells(own))) for own in cut)
        parts.append(Part(names, blocks, float(rng.uniform(1.0, 9.0))))
    weights = {n: (v := rng.uniform(0.2, 1.0, domain[n].size)) / v.sum() for n in domain.names}
    return at_cost_1(Joint, domain, parts, noise, weights=weights, whole={"parts": np.ones(len(parts))})


def asked_of(plan: Plan, rng: Rng) -> mdp.Workload:
    """Queries of several forms on up to three attributes, those that the plan determines."""
    domain, found = plan.domain, []
    for names in [n for k in range(4) for n in combinations(domain.names, k)]:
        cells = domain.cells(names)
        form = ["identity", "prefix", "range"][rng.integers(3)]
        entries: list[Entry] = [mdp.product(dict.fromkeys(names, form), weight=2.0)]
        if names:
            entries.append(mdp.product(dict.fromkeys(names, "identity"), weights=1.0 + np.arange(cells)))
            entries.append(mdp.dense(rng.integers(0, 3, (2, cells)), list(names), weights=[3.0, 1.0]))
            entries.append(mdp.dense(np.ones((1, cells)), list(names)))
        for entry in entries:
            [group] = entry.expand(domain)
            try:
                plan.analysis.check_support(group)
            except UnsupportedQueryError:
                continue
            found.append(entry)
    kept = rng.permutation(len(found))[:8]
    return mdp.Workload(domain, *(found[i] for i in kept))


#: In the last one two tables say nothing of the contrasts along pairs of attributes that they share.
SEEDS = [*range(5), 167]


@pytest.mark.parametrize("noise", NOISES.values(), ids=str)
@pytest.mark.parametrize(
    ("make", "few"),
    [(union, 4), (union, 2), (pooled, 4), (joint, 4)],
    ids=["union", "union of few unknowns", "pooled", "joint"],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_answers_are_the_least_squares_of_all_parts(make, few, noise, seed, monkeypatch):
    monkeypatch.setattr("matrixdp.plans.least_squares.FEW_VALUES", few)
    rng = np.random.default_rng([seed, 7])
    domain = mdp.Domain({name: range(size) for name, size in zip("abcd", rng.integers(1, 6, 4), strict=True)})
    plan = make(rng, domain, noise)
    workload = asked_of(plan, rng)
    check_plan(plan, workload)
    rows = [dense_measurement(part, domain) / math.sqrt(part.variance) for part in plan.parts]
    queries = [dense_queries(group, domain) for group in workload]
    inverse = np.linalg.pinv(sum(own.T @ own for own in rows), rcond=1e-11)
    for group, own in zip(workload, queries, strict=True):
        expected = np.einsum("ij,jk,ik->i", own, inverse, own)
        np.testing.assert_allclose(plan.analysis.variances(group), expected, rtol=1e-7, atol=1e-9)
    first, last = workload.groups[0], workload.groups[-1]
    expected = queries[0] @ inverse @ queries[-1].T
    np.testing.assert_allclose(plan.analysis.covariances(first, last), expected, rtol=1e-6, atol=1e-8)
