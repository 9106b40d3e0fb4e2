"""One small release with names that mean harm, for all tests of its page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages import HOSTILE

if TYPE_CHECKING:
    import matrixdp as mdp


@pytest.fixture(scope="package")
def release() -> mdp.Release:
    """Every kind of picture, and a table long enough to be searched."""
    import matrixdp as mdp  # not before its raise statements are marked

    domain = mdp.Domain({"name": HOSTILE, "age": {"min": 0, "max": 11}, "old": ["no", "yes"], "code": 3})
    workload = mdp.Workload(
        domain,
        mdp.marginals([0, 1]),
        mdp.product(old="identity", age="prefix"),
        mdp.product({"name": "identity", "old": "identity"}, name="<b>bold</b>"),
        mdp.product(old="identity", age="range"),
        mdp.pairwise("abs", ["age", "code"]),
    )
    people = 300
    table = {
        "name": [HOSTILE[i % 5] for i in range(people)],
        "age": [i * 7 % 12 for i in range(people)],
        "code": [i % 3 for i in range(people)],
        "old": [["no", "yes"][i * 7 % 12 > 5] for i in range(people)],
    }
    strategy = mdp.select(workload, mechanism="identity")
    return strategy.measure(table, mdp.Budget(rho=0.5)).reconstruct(expect=3_000)


@pytest.fixture(scope="package")
def folder(release: mdp.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from matrixdp.releases import save_release

    return save_release(release, tmp_path_factory.mktemp("report") / "people")


@pytest.fixture(scope="package")
def page(folder: Path) -> str:
    from matrixdp.report import report_release

    return report_release(folder)
