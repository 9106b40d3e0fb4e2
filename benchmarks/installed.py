"""How much disk matrixdp, what it needs and its extras take, as installed here.

python benchmarks/installed.py
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from harness import emit
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: Whose sizes are given one by one; everything else together.
ALONE = ("pyarrow", "scipy", "numpy", "duckdb", "python-flint", "sqlglot", "narwhals")


def size(found: Distribution) -> int:
    """Return the bytes of a distribution's files."""
    paths = [found.locate_file(file) for file in found.files or []]
    return sum(path.stat().st_size for path in paths if path.is_file())  # type: ignore[attr-defined]


def required(text: str, known: dict[str, Distribution]) -> None:
    """Add the distribution of a requirement and all that it needs; extras are those that it names."""
    requirement = Requirement(text)
    name = canonicalize_name(requirement.name)
    try:
        found = distribution(name)
    except PackageNotFoundError:  # what another system or Python needs
        return
    if name in known and not requirement.extras:
        return
    known[name] = found
    for needed in map(Requirement, found.requires or []):
        wanted = [{"extra": extra} for extra in ("", *requirement.extras)]
        if needed.marker is None or any(needed.marker.evaluate(environment) for environment in wanted):
            required(str(needed), known)


def main() -> None:
    known: dict[str, Distribution] = {}
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    for requirement in project["project"]["dependencies"]:
        required(requirement, known)
    megabytes: dict[str, float] = defaultdict(float)
    for name, found in known.items():
        megabytes[name if name in ALONE else "others"] += size(found) / 1e6
    extras: dict[str, float] = {}
    for extra, requirements in project["project"]["optional-dependencies"].items():
        more = dict(known)
        for requirement in requirements:
            required(requirement, more)
        added = more.keys() - known.keys()
        if added:  # else it is not installed here, and needs an environment of its own
            extras[f"matrixdp[{extra}]"] = sum(size(more[name]) for name in added) / 1e6
    emit({**megabytes, **extras, "all": sum(megabytes.values()), "packages": sorted(known)})


if __name__ == "__main__":
    main()
