"""Figures in the README and the documentation are those of docs/benchmarks/results.json."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def said(root: Path) -> tuple[int, str]:
    """Return the status and the words of the check."""
    # a process of its own: the benchmarks limit the threads of the process that loads them
    command = [sys.executable, str(ROOT / "benchmarks" / "claims.py"), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout


def test_texts_say_what_was_measured() -> None:
    assert said(ROOT) == (0, "every figure is that of docs/benchmarks/results.json\n")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Return a folder with the documents, free to be changed."""
    for page in (*ROOT.glob("*.md"), ROOT / "examples" / "README.md"):
        copy = tmp_path / page.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(page, copy)
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.png", "*.py"))
    return tmp_path


def change(page: Path, old: str, new: str) -> None:
    """Write other words into a page that has these."""
    text = page.read_text(encoding="utf-8")
    assert old in text
    page.write_text(text.replace(old, new), encoding="utf-8")


def test_another_figure_and_one_without_a_source_are_found(texts: Path) -> None:
    docs = texts / "docs"
    change(docs / "comparison.md", "79,719 | 8.62 | 8.39 |", "79,719 | 8.72 | 8.39 |")
    change(docs / "tutorial.md", "95% interval", "90% interval")
    change(docs / "clusters.md", "some 100 MB", "some 50 MB")
    with (docs / "results.md").open("a", encoding="utf-8") as page:
        page.write("\nIt takes 3.5 seconds and 90 MB, half a minute less: RMSE 4.25 (gap 1e-4).\n")
        page.write("\n```python\nrelease.mean('age')  # 3 times as fast\n```\n")
    change(docs / "installation.md", "| `.[types]` | |", "| `.[types]` | 12 |")
    package = texts / "src" / "matrixdp"
    package.mkdir(parents=True)
    (package / "faster.py").write_text("# takes a third less\nsize, count = 5 % 3, '7 %'\n")
    status, words = said(texts)
    assert status == 1
    wrong, *without = words.splitlines()
    assert wrong.startswith("docs/comparison.md: says '| CPS up to 3-way | 79,719 | 8.72 |")
    assert "measured is '| CPS up to 3-way | 79,719 | 8.62 |" in wrong
    assert [re.split(r" in ['\"]", line)[0] for line in without] == [
        "docs/clusters.md: does not say 'Partitions of some 100 MB are right', which claims.toml names",
        "docs/clusters.md: 50 MB",
        "docs/installation.md: 12 MB",
        "docs/results.md: 3.5 seconds",
        "docs/results.md: 90 MB",
        "docs/results.md: half a minute",
        "docs/results.md: RMSE 4.25",
        "docs/results.md: gap 1e-4",
        "docs/results.md: 3 times",
        "docs/tutorial.md: 90%",
        "src/matrixdp/faster.py: a third less",
        "src/matrixdp/faster.py: 7 %",
    ]
