"""A folder to run commands in, and a small release for those that read one."""

from pathlib import Path

import pytest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def released(tmp_path: Path) -> Path:
    import matrixdp as mdp  # not before its raise statements are marked

    workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"], "code": 3}), mdp.marginals([0, 1, 2]))
    strategy = mdp.select(workload, mechanism="residual")
    release = strategy.measure({"sex": ["male"], "code": [1]}, mdp.Budget(rho=0.5)).reconstruct()
    mdp.save_release(release, tmp_path / "out")
    return tmp_path / "out"
