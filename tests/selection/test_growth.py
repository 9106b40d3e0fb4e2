"""How the work of selection grows, and that what is skipped changes nothing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.queries import Entry, Total, Workload
from matrixdp.selection.bounds.lower_bound import product_bound
from matrixdp.selection.bounds.traces import Traces
from matrixdp.selection.problem.grams import Question, gram_terms
from matrixdp.selection.problem.kron_sum import TableShape, table_shape
from tests.counting import calls

SIZES = {"a": 4, "b": 3, "c": 2, "d": 1, "e": 2}


def test_work_grows_with_the_marginals_and_not_with_their_attributes_too() -> None:
    def work(attributes: int) -> int:
        domain = mdp.Domain({f"x{i}": 3 for i in range(attributes)})
        workload = mdp.Workload(domain, mdp.marginals([0, 1, 2]))
        return calls(lambda: mdp.select(workload))

    work(3)  # what is imported is not counted
    groups = [1 + n + n * (n - 1) // 2 for n in (20, 60)]
    assert work(60) / work(20) < 1.1 * groups[1] / groups[0]


def _some_workload(seed: int) -> Workload:
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


def _shape_by_definition(workload: Workload) -> TableShape:
    """Look at every attribute of the domain in every term."""
    factored: dict[str, Question] = {}
    joint = []
    terms = [(group, gram_terms(group)) for group in workload]
    weight = sum(group.weight * c for group, own in terms for c, _ in own or ())
    for name in workload.domain.names:
        size = workload.domain[name].size
        column: list[Question | None] = []
        for group, own in terms:
            if own is None:
                column += [None if name in group.attributes else Total()]
            for _, questions in own or ():
                column += [dict(zip(group.attributes, questions, strict=True)).get(name, Total())]
        keys = {None if question is None else question.key(size) for question in column}
        if keys == {Total().key(size)}:
            continue
        if len(keys) == 1 and None not in keys:
            [factored[name]] = {one.key(size): one for one in column if one is not None}.values()
        else:
            joint.append(name)
    return TableShape(factored, tuple(joint), workload.domain.cells(tuple(joint)), weight)


@pytest.mark.parametrize("start", range(4))
def test_the_shape_is_that_of_looking_at_everything(start: int) -> None:
    for seed in itertools.islice(itertools.count(start, 4), 30):
        workload = _some_workload(seed)
        found, expected = table_shape(workload), _shape_by_definition(workload)
        assert (found.joint, found.cells) == (expected.joint, expected.cells)
        assert found.weight == pytest.approx(expected.weight)
        assert {name: one.key(SIZES[name]) for name, one in found.factored.items()} == {
            name: one.key(SIZES[name]) for name, one in expected.factored.items() if one is not None
        }


def test_a_bound_goes_around_each_ring_one_way(monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[list[tuple[int, ...]]] = []
    share = Traces.tied_share

    def made(traces: Traces, codes: Any) -> Any:
        met.append(sorted(codes))
        return share(traces, codes)

    monkeypatch.setattr(Traces, "tied_share", made)
    domain = mdp.Domain({name: range(4) for name in "abcd"})
    asked = mdp.kway(1, {"numeric": "range"}), mdp.pairwise("affine"), mdp.kway(3, {"numeric": "prefix"})
    assert product_bound(Workload(domain, *asked)) is not None
    rounds = [place for place, codes in enumerate(met) if codes == met[0]]
    first = met[: rounds[1]] if len(rounds) > 1 else met
    turned = [sorted((t, b, e, c, two, one) for t, b, c, e, one, two in codes) for codes in first]
    both = [
        codes for codes, other in zip(first, turned, strict=True) if other != sorted(codes) and other in first
    ]
    assert first
    assert not both
