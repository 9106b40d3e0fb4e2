from pathlib import Path

import pytest

from tests.release.stopping import furnish


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return furnish(tmp_path / "home")
