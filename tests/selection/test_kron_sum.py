"""One sum of products and rows for a workload, and its residuals, against dense matrices."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import Entry, Total, Workload
from matrixdp.selection.auto import select
from matrixdp.selection.compose.sub_solver import SubSolver
from matrixdp.selection.gram import ConvexSolver
from matrixdp.selection.problem.grams import (
    Gram,
    QueryGram,
    gram_terms,
)
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.problem.residual_traces import AxisState, marginal_spectrum, residual_traces
from matrixdp.selection.problem.residuals import Pieces, numeric_terms, split_workload

SIZES = {"a": 4, "b": 3, "c": 2, "d": 1, "e": 2}


def some_workload(seed: int) -> Workload:
    random = np.random.default_rng(seed)
    entries: list[Entry] = []
    asked: tuple[object, ...] = ("identity", "prefix", "total", {"ranges": [[0, 0]]})
    for _ in range(random.integers(1, 5)):
        names = random.choice(list(SIZES), random.integers(1, 4), replace=False)
        sets: dict[str, object] = {
            str(name): asked[random.integers(len(asked) if seed % 3 else 2)] for name in names
        }
        weight = float(random.integers(1, 4))
        if len(names) == 2 and random.random() < 0.3:
            rows = random.integers(0, 2, (2, SIZES[names[0]] * SIZES[names[1]]))
            entries.append(mdp.dense(rows + 1, [str(name) for name in names], weight=weight))
        elif len(names) > 1 and random.random() < 0.3:
            entries.append(mdp.disjunction(sets, weight=weight))
        else:
            entries.append(mdp.product(sets, weight=weight))
    return Workload(mdp.Domain(SIZES), *entries)


def dense(workload: Workload, names: Sequence[str]) -> np.ndarray:
    """The Gram matrix over the cells of some attributes, from all rows; of others the total is asked."""
    sizes = [SIZES[name] for name in names]
    total = np.zeros((math.prod(sizes),) * 2)
    for group in workload:
        weights = np.ones(group.queries) if group.query_weights is None else group.query_weights
        rows = group.rows().reshape(-1, *group.sizes) * np.sqrt(group.weight * weights).reshape(
            -1, *[1] * len(group.sizes)
        )
        shape = [SIZES[name] if name in group.attributes else 1 for name in names]
        flat = np.broadcast_to(rows.reshape(-1, *shape), (len(rows), *sizes)).reshape(len(rows), -1)
        total += flat.T @ flat
    return total


def product(factors: Sequence[np.ndarray]) -> np.ndarray:
    found = np.ones((1, 1))
    for factor in factors:
        found = np.kron(found, factor)
    return found


def _shape_by_definition(workload: Workload) -> tuple[dict[str, Gram], tuple[str, ...], float]:
    """Look at every attribute of the domain in every term."""
    factored: dict[str, Gram] = {}
    joint = []
    terms = [(group, gram_terms(group)) for group in workload]
    weight = sum(group.weight * c for group, own in terms for c, _ in own or ())
    for name in workload.domain.names:
        total = QueryGram(Total(), workload.domain[name].size)
        column: list[Gram | None] = []
        for group, own in terms:
            if own is None:
                column += [None if name in group.attributes else total]
            for _, grams in own or ():
                column += [dict(zip(group.attributes, grams, strict=True)).get(name, total)]
        keys = {None if gram is None else gram.key for gram in column}
        if keys == {total.key}:
            continue
        if len(keys) == 1 and None not in keys:
            [factored[name]] = {one.key: one for one in column if one is not None}.values()
        else:
            joint.append(name)
    return factored, tuple(joint), weight


@pytest.mark.parametrize("start", range(4))
def test_the_shape_is_that_of_looking_at_everything(start: int) -> None:
    for seed in itertools.islice(itertools.count(start, 4), 30):
        workload = some_workload(seed)
        found = KronSum.of(workload.domain, workload.groups)
        factored, joint, weight = _shape_by_definition(workload)
        assert (found.joint, found.cells) == (joint, workload.domain.cells(joint))
        assert found.weight == pytest.approx(weight)
        own, expected = ({n: one.key for n, one in shape.items()} for shape in (found.factored, factored))
        assert own == expected


@pytest.mark.parametrize("start", range(4))
def test_the_sum_is_the_gram_matrix_of_all_rows(start: int) -> None:
    for seed in itertools.islice(itertools.count(start, 4), 15):
        workload, random = some_workload(seed), np.random.default_rng(seed)
        found = KronSum.of(workload.domain, workload.groups)
        whole = dense(workload, list(SIZES))
        every = dense(workload, found.attributes) if set(found.attributes) == set(SIZES) else None
        asked = [name for name in SIZES if name in found.attributes]
        inverses = [random.normal(size=(n, n + 1)) for n in found.sizes]
        covariances = {name: r @ r.T for name, r in zip(found.attributes, inverses, strict=True)}
        others = product([covariances.get(name, np.ones((n, n)) / n**2) for name, n in SIZES.items()])
        assert found.loss(inverses) == pytest.approx(np.vdot(whole, others), rel=1e-12)
        for axis, name in enumerate(found.attributes):
            spread = [covariances.get(other, np.ones((n, n)) / n**2) for other, n in SIZES.items()]
            place = list(SIZES).index(name)
            before, after = math.prod([*SIZES.values()][:place]), math.prod([*SIZES.values()][place + 1 :])
            tensor = whole.reshape(before, SIZES[name], after, before, SIZES[name], after)
            left, right = product(spread[:place]), product(spread[place + 1 :])
            seen = np.einsum("aibcjd,ac,bd->ij", tensor, left, right)
            own = found.surrogate(axis, inverses).matrix()
            np.testing.assert_allclose(own, seen, rtol=1e-10, atol=1e-10)
        if every is not None:
            np.testing.assert_allclose(found.dense(asked), every, rtol=1e-12)


def _weight_vectors(workload: Workload, seed: int) -> dict[str, np.ndarray]:
    random, split = np.random.default_rng(seed), split_workload(workload)
    vectors = [
        random.dirichlet(np.full(n, 5.0)) if free else np.full(n, 1 / n)
        for n, free in zip(split.sizes, split.free, strict=True)
    ]
    return {name: vectors[type_] for name, type_ in split.types.items()}


@pytest.mark.parametrize("start", range(4))
def test_sub_workloads_are_the_pieces_of_the_whole(start: int) -> None:
    """On the attributes kept V is centred by P = I - w 1', on all others it is contracted by w."""
    for seed in itertools.islice(itertools.count(start, 4), 15):
        workload = some_workload(seed)
        split, weights = split_workload(workload), _weight_vectors(workload, seed)
        pieces = Pieces(split, [weights[names[0]] for names in _members(split.types)])
        solver, whole, met = (
            SubSolver(pieces, GAUSSIAN, ConvexSolver(1e-6)),
            dense(workload, list(SIZES)),
            set(),
        )
        for sub in split.classes:
            found = solver.gram(numeric_terms(pieces, sub), solver.explicit(sub)).matrix()
            for marginal in sub.marginals:
                met.add(marginal)
                np.testing.assert_allclose(
                    np.broadcast_to(found, (math.prod(sub.sizes),) * 2),
                    _piece(whole, weights, marginal),
                    atol=1e-12 * np.abs(whole).max(),
                )
        for marginal in itertools.chain(*(itertools.combinations(SIZES, k) for k in range(5))):
            if marginal not in met:
                assert np.abs(_piece(whole, weights, marginal)).max() < 1e-12 * np.abs(whole).max()


def _members(types: dict[str, int]) -> list[list[str]]:
    found: list[list[str]] = [[] for _ in set(types.values())]
    for name, type_ in types.items():
        found[type_].append(name)
    return found


def _piece(whole: np.ndarray, weights: dict[str, np.ndarray], marginal: Sequence[str]) -> np.ndarray:
    sides = []
    for name, size in SIZES.items():
        w = weights.get(name, np.full(size, 1 / size))
        sides.append(np.eye(size) - np.outer(w, np.ones(size)) if name in marginal else w[:, None])
    side = product(sides)
    return side.T @ whole @ side


@pytest.mark.parametrize("start", range(4))
def test_residual_traces_are_traces_of_the_whole(start: int) -> None:
    for seed in itertools.islice(itertools.count(start, 4), 10):
        workload, random = some_workload(seed), np.random.default_rng(seed)
        traces, whole = residual_traces(workload), dense(workload, list(SIZES))
        rows = {type_: np.eye(n) + 0.4 * random.random((n, n)) for type_, n in traces.free.items()}
        states = {
            type_: AxisState(None, size) for type_, size in zip(traces.types, traces.sizes, strict=True)
        }
        for type_, own in rows.items():
            states[type_] = AxisState(np.asarray(np.linalg.inv(own.T @ own)), len(own))
        found = traces.weights(states)
        for residual, weight in zip(traces.residuals, found, strict=True):
            names = [traces.attributes[axis] for axis in residual]
            factors = []
            for name, size in SIZES.items():
                state = states.get(dict(zip(traces.attributes, traces.types, strict=True)).get(name, -1))
                m = np.eye(size) if state is None or state.covariance is None else state.covariance
                w = m.sum(axis=0) / m.sum()
                factors.append(m / m.sum() - np.outer(w, w) if name in names else np.outer(w, w))
            assert weight == pytest.approx(np.vdot(whole, product(factors)), abs=1e-12 * whole.max())
        by_weight, by_spread = random.random(len(found)), random.random(len(traces.sizes))
        slopes = traces.slopes(states, by_weight, by_spread)
        for type_, slope in slopes.items():
            step = random.normal(size=slope.shape) * 1e-6
            sides = []
            for sign in (1.0, -1.0):
                m = states[type_].covariance + sign * (step + step.T)
                moved = states | {type_: AxisState(m, len(m))}
                sides.append(by_weight @ traces.weights(moved) + by_spread @ traces.spreads(moved))
            assert (sides[0] - sides[1]) / 2 == pytest.approx(
                np.vdot(slope, step + step.T), rel=1e-4, abs=1e-11
            )


def test_a_spectrum_is_that_of_identities() -> None:
    for seed in range(20):
        workload = some_workload(seed)
        spectrum, whole = marginal_spectrum(workload), dense(workload, list(SIZES))
        for residual, weight in zip(spectrum.residuals, spectrum.weights, strict=True):
            names = [spectrum.attributes[axis] for axis in residual]
            ones = {name: np.ones((n, n)) / n for name, n in SIZES.items()}
            sides = [np.eye(n) - ones[name] if name in names else ones[name] for name, n in SIZES.items()]
            scale = math.prod(SIZES.values())
            assert weight == pytest.approx(np.vdot(whole, product(sides)) / scale, abs=1e-12 * whole.max())


def test_a_workload_is_summed_once_for_all_who_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Selection of marginals adds thousands of groups once; what nobody holds is forgotten."""
    workload = mdp.Workload(mdp.Domain({"a": 3, "b": 2}), mdp.marginals([1, 2]))
    found = KronSum.whole(workload)
    assert KronSum.whole(workload) is found
    calls, of = [], KronSum.of
    monkeypatch.setattr(KronSum, "of", lambda *given: calls.append(given) or of(*given))
    del found
    select(workload, noise=GAUSSIAN)
    assert len(calls) == 1
