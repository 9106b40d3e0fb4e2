"""Figures in the README and the documentation are those of docs/benchmarks/results.json."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def said(root: Path) -> tuple[int, str]:
    """Return the status and the words of the check."""
    # a process of its own: the benchmarks limit the threads of whoever loads them
    command = [sys.executable, str(ROOT / "benchmarks" / "claims.py"), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout


def test_texts_say_what_was_measured() -> None:
    assert said(ROOT) == (0, "every figure is that of docs/benchmarks/results.json\n")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Return a folder with the README and the pages, free to be changed."""
    shutil.copy(ROOT / "README.md", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.png", "*.py"))
    return tmp_path


def test_another_figure_and_one_without_a_source_are_found(texts: Path) -> None:
    readme, page = texts / "README.md", texts / "docs" / "results.md"
    text = readme.read_text(encoding="utf-8")
    assert "| CPS up to 3-way | 79,719 | 8.62 | 8.39 |" in text
    readme.write_text(text.replace("79,719 | 8.62 | 8.39 |", "79,719 | 8.72 | 8.39 |"), encoding="utf-8")
    page.write_text(
        page.read_text(encoding="utf-8") + "\nIt takes 3.5 seconds and 90 MB.\n", encoding="utf-8"
    )
    status, words = said(texts)
    assert status == 1
    wrong, *without = words.splitlines()
    assert wrong.startswith("README.md: says '| CPS up to 3-way | 79,719 | 8.72 |")
    assert "measured is '| CPS up to 3-way | 79,719 | 8.62 |" in wrong
    assert [line.partition(" in ")[0] for line in without] == [
        "docs/results.md: 3.5 seconds",
        "docs/results.md: 90 MB",
    ]
