"""How the work of selection grows, and that what is skipped changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

import matrixdp as mdp
from matrixdp.queries import Workload
from matrixdp.selection.bounds.lower_bound import product_bound
from matrixdp.selection.bounds.traces import Traces
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
