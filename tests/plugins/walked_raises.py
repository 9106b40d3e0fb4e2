"""Every ``raise`` of the package is walked by a test: at the end of a whole run the others are listed.

The package is imported with a mark before each ``raise`` that names an error (a bare ``raise`` passes on
what another one raised), so the price is one set insertion for each error raised. A ``raise`` is known by its
file, its function and its place in the function: edits elsewhere in a file do not change its name.

``--raises=check``, the default, fails a whole run, one of all tests and doctests, that leaves a ``raise``
unwalked;
``--raises=list`` only lists them; ``--raises=report`` does after any run;
``--raises=off`` marks nothing.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "src"
MARK = "__walked_raise__"

#: Those that no test can walk: "file: function: start of the statement", and why.
EXEMPT: dict[str, str] = {}


@dataclass(frozen=True)
class Raise:
    """One ``raise``: where it is, and what it says."""

    name: str  # file, function and place in the function
    line: int
    text: str  # file, function, statement

    @property
    def report(self) -> str:
        """The line that lists it."""
        return f"src/matrixdp/{self.text.replace(':', f':{self.line}', 1)}"

    @property
    def exemption(self) -> str | None:
        """The entry of `EXEMPT` that speaks of this ``raise``."""
        return next((start for start in EXEMPT if self.text.startswith(start)), None)


def _asserts(error: ast.expr) -> bool:
    """Whether this is an assertion in other words: checks for strangers' classes fail by them."""
    named = error.func if isinstance(error, ast.Call) else error
    return isinstance(named, ast.Name) and named.id == "AssertionError"


class Marker(ast.NodeTransformer):
    """Puts a mark before each ``raise`` of one file, and keeps a list of them."""

    def __init__(self, path: Path) -> None:
        self.file = path.relative_to(SOURCE / "matrixdp").as_posix()
        self.within: list[str] = []
        self.found: list[Raise] = []

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.within.append(node.name)
            self.generic_visit(node)
            self.within.pop()
            return node
        if isinstance(node, ast.Raise) and node.exc is not None and not _asserts(node.exc):
            return [self._mark(node), node]
        return self.generic_visit(node)

    def _mark(self, node: ast.Raise) -> ast.Expr:
        function = f"{self.file}: {'.'.join(self.within)}"
        name = f"{function}: {sum(other.text.startswith(f'{function}: ') for other in self.found)}"
        self.found.append(Raise(name, node.lineno, f"{function}: {ast.unparse(node)}"))
        mark = ast.Expr(ast.Call(ast.Name(MARK, ast.Load()), [ast.Constant(name)], []))
        return ast.fix_missing_locations(ast.copy_location(mark, node))


class MarkingLoader(SourceFileLoader):
    """Compiles a file of the package with its marks; nothing of it is cached on disk."""

    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.get_filename(fullname))
        tree = Marker(path).visit(ast.parse(path.read_bytes(), path))
        return compile(tree, path, "exec", dont_inherit=True)


class MarkingFinder(PathFinder):
    """Finds the modules of the package."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "matrixdp" and not fullname.startswith("matrixdp."):
            return None
        spec = super().find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not Path(spec.origin).is_relative_to(SOURCE):
            return spec
        spec.loader = MarkingLoader(fullname, spec.origin)
        return spec


def every_raise() -> Iterator[Raise]:
    """Yield each ``raise`` of the package."""
    for path in sorted((SOURCE / "matrixdp").rglob("*.py")):
        marker = Marker(path)
        marker.visit(ast.parse(path.read_bytes(), path))
        yield from marker.found


class WalkedRaises:
    """Collects what was walked, from every process of the run, and says what was not."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.walked: set[str] = set()
        self.faults: list[str] = []
        setattr(builtins, MARK, self.walked.add)

    def _whole(self) -> bool:
        names = ("keyword", "markexpr", "deselect", "lf", "collectonly")
        narrowed = any(getattr(self.config.option, name, None) for name in names)
        return self.config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        self.walked.update(getattr(node, "workeroutput", {}).get(MARK, ()))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[MARK] = sorted(self.walked)
            return
        whole = self._whole() and not session.shouldstop and not session.shouldfail
        if not whole and self.config.option.raises != "report":
            return
        raises = list(every_raise())
        for found in raises:
            walked = found.name in self.walked
            if not walked and found.exemption is None:
                self.faults.append(found.report)
            elif walked and found.exemption is not None:
                self.faults.append(f"exempt, and yet walked: {found.text}")
        stale = set(EXEMPT) - {found.exemption for found in raises}
        self.faults += [f"exempt, and not there: {start}" for start in sorted(stale)]
        if self.faults and whole and self.config.option.raises == "check" and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.faults:
            terminalreporter.section(f"{len(self.faults)} raise statements that no test walks")
            for fault in self.faults:
                terminalreporter.line(fault[:200])


def install(config: pytest.Config) -> None:
    """Mark the package; before anything of it is imported."""
    assert "matrixdp" not in sys.modules, "imported before its raise statements could be marked"
    sys.meta_path.insert(0, MarkingFinder)
    config.pluginmanager.register(WalkedRaises(config), "walked-raises")
