"""The table of named faults speaks of the tree as it is."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MUTANTS = tomllib.loads((Path(__file__).parent / "named.toml").read_text())["mutant"]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant["name"] for mutant in MUTANTS])
def test_every_fault_can_be_made(mutant: dict[str, Any]) -> None:
    text = (ROOT / "src" / "matrixdp" / mutant["file"]).read_text()
    assert text.count(mutant["old"]) == 1
    assert all((ROOT / path.partition("::")[0]).exists() for path in mutant["tests"])
