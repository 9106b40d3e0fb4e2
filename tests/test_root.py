"""The root of the repository holds what belongs there, and nothing that was left behind."""

import re
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import yaml

from matrixdp import __version__

ROOT = Path(__file__).parents[1]
NAMES = {
    ".ci", ".github", ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CITATION.cff",
    "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "Dockerfile", "LICENSE", "Makefile", "README.md", "SECURITY.md",
    "benchmarks", "constraints.txt", "docs", "examples", "pyproject.toml", "src", "tests", "verifier",
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


#: What conda calls packages that have another name there.
CONDA = {"duckdb": "python-duckdb", "tzdata": "python-tzdata"}


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [re.fullmatch(r"([\w-]+)(.*)", one).groups() for one in project["dependencies"]]
    expected = {f"python {project['requires-python']}", *(f"{CONDA.get(n, n)} {v}" for n, v in needed)}
    recipe = (ROOT / ".ci" / "conda" / "meta.yaml").read_text("utf-8")
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"- (.*)", run)) == expected


def test_one_version_is_named_everywhere() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == __version__
    assert (
        re.search(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)[1]
        == __version__
    )


def test_workflows_and_forms_are_yaml_and_ask_for_no_real_data() -> None:
    for path in sorted((ROOT / ".github").rglob("*.yml")):
        assert isinstance(yaml.safe_load(path.read_text("utf-8")), dict), path.name
    for name in ("bug.yml", "idea.yml"):
        assert "real data about people" in (ROOT / ".github" / "ISSUE_TEMPLATE" / name).read_text("utf-8")
    assert "no real data" in (ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md").read_text("utf-8")
