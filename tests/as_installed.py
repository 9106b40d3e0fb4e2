"""Follow a page as somebody does who has installed what it says, and nothing else.

``python tests/as_installed.py PAGE`` runs the Python of a page in order, and of a guide its commands too;
YAML that begins with the name of a file is written under it. Modules are missing that belong neither to the
package's dependencies nor to an extra or a package that the page said to install before the block.
"""

from __future__ import annotations

import ast
import importlib.abc
import re
import shlex
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PART = re.compile(r"^```(yaml|sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXTRA = re.compile(r"pip install '\.\[(\w+)\]'")
_INSTALLED = re.compile(r"pip install ([\w-]+)")
_OWNERS = metadata.packages_distributions()


def installed(page: str) -> set[str]:
    """Return the distributions that follow from what a page says."""
    waiting = [("matrixdp", extra) for extra in ("", *_EXTRA.findall(page))]
    waiting += [(name, "") for name in _INSTALLED.findall(page)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        name, extra = waiting.pop()
        name = canonicalize_name(name)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            requirements = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for requirement in map(Requirement, requirements):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(requirement.name, own) for own in ("", *requirement.extras)]
    return {name for name, _ in seen}


class Missing(importlib.abc.MetaPathFinder):
    """Finds no module of a distribution that is not installed."""

    def __init__(self) -> None:
        self.installed: set[str] = set()

    def find_spec(self, fullname, path=None, target=None):
        owners = {canonicalize_name(owner) for owner in _OWNERS.get(fullname.partition(".")[0], ())}
        if owners and not owners & self.installed:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def shown(code: str, page: Path, names: dict[str, object]) -> None:
    """Run code as a notebook does: it shows the value of an expression at the end."""
    *body, last = ast.parse(code).body
    exec(compile(ast.Module(body, []), str(page), "exec"), names)  # noqa: S102
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module([last], []), str(page), "exec"), names)  # noqa: S102
    elif (value := eval(compile(ast.Expression(last.value), str(page), "eval"), names)) is not None:  # noqa: S307
        print(value)  # noqa: T201


def main(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = Missing()
    missing.installed = installed("")
    sys.meta_path.insert(0, missing)
    from typer.testing import CliRunner

    from matrixdp.cli.app import app

    names: dict[str, object] = {}
    for found in PART.finditer(text):
        kind, part = found.groups()
        missing.installed = installed(text[: found.start()])
        if kind == "python":
            # empty lines before the code make the line in a traceback that of the page
            shown("\n" * text.count("\n", 0, found.start(2)) + part, page, names)
        elif kind == "yaml":
            if named := re.match(r"# ([\w-]+\.yaml)$", part.splitlines()[0]):
                Path(named[1]).write_text(part, encoding="utf-8")
        elif page.parent.name == "howto":
            for line in part.splitlines():
                program, *words = shlex.split(line)
                assert program == "matrixdp", line
                done = CliRunner().invoke(app, words)
                assert done.exit_code == 0, (line, done.output)


if __name__ == "__main__":
    sys.path.pop(0)
    main(Path(sys.argv[1]))
