"""Run the faults of named.toml, each in a copy of the tree, or those whose names hold the words given."""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COPIED = ("src", "tests", "docs", "examples", "verifier", "README.md", "pyproject.toml")


def mutants() -> list[dict[str, Any]]:
    """Return the table."""
    table: list[dict[str, Any]] = tomllib.loads((HERE / "named.toml").read_text())["mutant"]
    return table


def copy_of_the_tree(folder: str) -> Path:
    """Copy what the tests need."""
    for name in COPIED:
        source, target = ROOT / name, Path(folder) / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    return Path(folder)


def survives(mutant: dict[str, Any]) -> bool:
    """Return whether the tests of a mutant pass all the same."""
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_of_the_tree(folder)
        path = tree / "src" / "matrixdp" / mutant["file"]
        text = path.read_text()
        occurs = text.count(mutant["old"])
        if occurs != 1:
            raise SystemExit(f"{mutant['name']}: {mutant['file']} has its text {occurs} times")
        path.write_text(text.replace(mutant["old"], mutant["new"]))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant["tests"]]
        environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, errors="replace"
        )
        if done.returncode not in (0, 1):
            raise SystemExit(f"{mutant['name']}: its tests did not run\n{done.stdout}{done.stderr}")
        return done.returncode == 0


def main(wanted: list[str]) -> int:
    """Say of each mutant whether it was killed; return how many survived."""
    survivors = 0
    for mutant in mutants():
        if all(part in mutant["name"] for part in wanted):
            alive = survives(mutant)
            survivors += alive
            print("SURVIVED" if alive else "killed  ", mutant["name"], flush=True)
    return survivors


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
