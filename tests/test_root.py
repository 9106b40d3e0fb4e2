"""The root of the repository holds what belongs there, and nothing that was left behind."""

import subprocess
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = {
    ".ci", ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile",
    "README.md", "SECURITY.md", "benchmarks", "constraints.txt", "docs", "examples", "pyproject.toml", "src",
    "tests", "verifier",
}  # fmt: skip


def listed() -> set[str]:
    """Return the names that git tracks; where there is no git, those that it would not ignore."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    try:
        tracked = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines()]
        names = {path.name for path in ROOT.iterdir()} - {".git"}
        return {name for name in names if not any(fnmatch(name, pattern) for pattern in ignored)}
    return {path.partition("/")[0] for path in tracked.split("\0") if path}


def test_the_root_holds_what_belongs_there() -> None:
    assert listed() == NAMES, "a new name in the root is a decision: add it here"
