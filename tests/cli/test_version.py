"""What ``matrixdp --version`` says."""

import importlib.metadata
import platform

import pytest

import matrixdp as mdp
from matrixdp.cli.app import versions


def test_versions_of_what_is_used_are_told() -> None:
    own, python, needed, extras = versions().split("\n")
    assert own == f"matrixdp {mdp.__version__}"
    assert python.startswith(f"Python {platform.python_version()}")
    for name in ("numpy", "duckdb", "python-flint"):
        assert f"{name} {importlib.metadata.version(name)}" in needed
    assert f"matplotlib {importlib.metadata.version('matplotlib')}" in extras
    assert "matplotlib" not in needed


def test_what_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    required = ["numpy>=2", "absent-library>=1; extra == 'wanted'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: required)
    numpy = importlib.metadata.version("numpy")
    assert versions().split("\n")[2:] == [f"needed: numpy {numpy}", "for extras: none"]


def test_a_program_that_is_not_installed_tells_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", absent)
    assert len(versions().split("\n")) == 2
