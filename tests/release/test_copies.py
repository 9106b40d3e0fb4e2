"""Values as pickles and copies, after they were used: what was computed from them is not kept."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import matrixdp as mdp

COPIES: list[Callable[[Any], Any]] = [
    lambda value: pickle.loads(pickle.dumps(value)),  # noqa: S301 - its own
    copy.deepcopy,
]
BUDGETS = {"gaussian": mdp.Budget(mu=1), "laplace": mdp.Budget(epsilon=1)}
WORKLOAD = mdp.Workload(
    mdp.Domain({"sex": ["f", "m"], "age": {"min": 0, "max": 3}}),
    mdp.marginals([0, 1, 2]),
    mdp.ask.mean("age"),
)


def used(value: object) -> None:
    """Ask a value for everything that needs no arguments, and some of what does."""
    for name in dir(value):
        if not name.startswith(("_", "save", "measure", "to_")):
            asked = getattr(value, name)
            if callable(asked):
                for given in ((), ("sex",), (mdp.marginals([["sex"]]),)):
                    try:
                        asked(*given)
                    except (TypeError, AttributeError, mdp.MatrixDPError):
                        continue


@pytest.mark.parametrize("copied", COPIES, ids=["pickle", "deepcopy"])
@pytest.mark.parametrize("noise", BUDGETS)
def test_copies_after_use(noise: str, copied: Callable[[Any], Any], tmp_path: Path):
    ledger = mdp.Ledger.create(tmp_path / "l.ledger", "people", mdp.Budget(mu=9))
    strategy = mdp.select(WORKLOAD, noise=noise)
    used(strategy)
    measured = copied(strategy).measure({"sex": ["f"], "age": [1]}, BUDGETS[noise], ledger=ledger)
    release = measured.reconstruct()
    model = release.model(accept_anyway=True)
    for value in (measured, release, model):
        used(value)
        copied(value)
    assert copied(release).answers.equals(release.answers)
    assert copied(ledger).left == ledger.left
    table = release.table("sex")
    assert copied(table).equals(table)


@pytest.mark.parametrize("copied", COPIES, ids=["pickle", "deepcopy"])
def test_a_copy_that_goes_ends_no_run(copied: Callable[[Any], Any], tmp_path: Path):
    ledger = mdp.Ledger.create(tmp_path / "l.ledger", "people", mdp.Budget(mu=9))
    measured = mdp.select(WORKLOAD).measure({"sex": ["f"], "age": [1]}, mdp.Budget(mu=1), ledger=ledger)
    copied(measured)
    assert [one.settled for one in mdp.recover_ledger(ledger)] == [False]
    mdp.save_release(measured.reconstruct(), tmp_path / "out")
    assert [one.state for one in ledger.entries] == ["released"]
