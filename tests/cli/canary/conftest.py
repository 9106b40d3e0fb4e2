"""A world of its own for every test, with what is logged in it."""

from pathlib import Path

import pytest

from tests.cli.canary.world import World, make_world


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> World:
    caplog.set_level("DEBUG")
    monkeypatch.delenv("MATRIXDP_DEBUG", raising=False)
    return make_world(tmp_path, monkeypatch, lambda: caplog.text)
