"""What is logged: stages, and nothing that depends on the table."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import matrixdp as mdp

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": range(20)})
WORKLOAD = mdp.Workload(DOMAIN, mdp.marginals([1, 2]))


def logged(
    caplog: pytest.LogCaptureFixture, folder: Path, table: dict[str, list[object]], seed: int | None = None
) -> list[str]:
    """Return what is logged from selection to the folder, with the level and the logger."""
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "matrixdp"):
        ledger = mdp.Ledger.create(folder.with_suffix(".ledger"), "people", mdp.Budget(rho=5))
        strategy = mdp.select(WORKLOAD)
        release = strategy.measure(table, mdp.Budget(rho=1), ledger=ledger, seed_not_private=seed)
        mdp.save_release(release.reconstruct(), folder)
    return [f"{r.levelname} {r.name}: {r.getMessage()}" for r in caplog.records if r.name[:8] == "matrixdp"]


def test_stages_are_logged_and_say_nothing_of_the_table(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    first = logged(caplog, tmp_path / "one", {"sex": ["male"] * 1461, "age": [7] * 1461})
    stages = ("selecting", "trying", "selected", "measuring", "Debited to the ledger of people", "wrote")
    for stage in stages:
        assert any(f": {stage}" in line for line in first), stage
    assert all(line.startswith("INFO matrixdp.") for line in first)
    other: dict[str, list[object]] = {"sex": ["female", None, "else"], "age": [3, 99, 4]}
    assert logged(caplog, tmp_path / "two", other) == first


def test_seeded_noise_is_a_warning(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    lines = logged(caplog, tmp_path / "out", {"sex": ["male"], "age": [7]}, seed=1)
    assert [line for line in lines if line.startswith("WARNING")] == [
        "WARNING matrixdp.measure.measurement: NOT PRIVATE: the noise is seeded"
    ]


def test_nothing_is_shown_unless_it_is_asked_for() -> None:
    code = (
        "import matrixdp as mdp; w = mdp.Workload(mdp.Domain({'a': 2}), mdp.marginals(1)); "
        "mdp.select(w).measure({'a': [1]}, mdp.Budget(rho=1), seed_not_private=1)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
