"""How much disk matrixdp and what it needs take, as installed here.

python benchmarks/installed.py
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from harness import emit

#: Whose sizes are given one by one; everything else together.
ALONE = ("pyarrow", "scipy", "numpy", "duckdb", "python-flint", "sqlglot", "narwhals")


def size(found: Distribution) -> int:
    """Return the bytes of a distribution's files."""
    paths = [found.locate_file(file) for file in found.files or []]
    return sum(path.stat().st_size for path in paths if path.is_file())  # type: ignore[attr-defined]


def required(name: str, known: dict[str, Distribution]) -> None:
    """Add a distribution and all that it needs, without extras."""
    if name in known:
        return
    try:
        known[name] = distribution(name)
    except PackageNotFoundError:  # what another system or Python needs
        return
    for requirement in known[name].requires or []:
        if "extra ==" not in requirement:
            required(_name(requirement), known)


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def main() -> None:
    known: dict[str, Distribution] = {}
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    for requirement in project["project"]["dependencies"]:
        required(_name(requirement), known)
    megabytes: dict[str, float] = defaultdict(float)
    for name, found in known.items():
        megabytes[name if name in ALONE else "others"] += size(found) / 1e6
    emit({**megabytes, "all": sum(megabytes.values()), "packages": sorted(known)})


if __name__ == "__main__":
    main()
