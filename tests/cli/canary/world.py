"""A place of its own for runs of the program, where everything that they leave is seen."""

from __future__ import annotations

import os
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from matrixdp.cli.app import app
from tests.cli.canary.search import IN_NAMES, STEM, everything, found_in
from tests.cli.canary.tables import DOMAIN

SPECIFICATION = DOMAIN + "workload: [marginals: [0, 1, 2]]\nprivacy: {rho: 0.5}\n"


def commands() -> dict[str, Any]:
    """Return every command of the program by its whole name, those of groups of commands too."""

    def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        for key, one in (inner or {}).items():
            yield from walk(one, f"{name} {key}".strip())

    return dict(walk(typer.main.get_command(app), ""))


@dataclass
class World:
    """Folders: tables, which nobody searches, and those that runs may write to."""

    tables: Path
    work: Path
    searched: tuple[Path, ...]
    log: Callable[[], str]
    told: str = field(default="", init=False)
    seen: int = field(default=0, init=False)

    def run(self, *arguments: object, may: tuple[int, ...] = (0,)) -> str:
        """Run the program; look for canaries in all that it says and leaves; return what it says."""
        results = []

        def invoke() -> str:
            result = CliRunner().invoke(app, [str(argument) for argument in arguments])
            results.append(result)
            raised = traceback.format_exception(result.exception) if result.exception else []
            return "\n".join((result.output, result.stderr, *raised))

        self.call(invoke, " ".join(map(str, arguments)))
        [result] = results
        assert result.exit_code in may, (arguments, result.exit_code, result.stderr)
        return str(result.output)

    def call(self, action: Callable[[], object], what: str) -> BaseException | None:
        """Do the same with a call from Python, and what it returns; return what it raised."""
        raised: BaseException | None = None
        returned: object = None
        with warnings.catch_warnings(record=True) as warned, printed() as texts:
            warnings.simplefilter("always")
            try:
                returned = action()
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is looked at
                raised = error
        said = [str(returned), *texts, self.logged(), *(str(w.message) for w in warned)]
        if raised is not None:
            said += traceback.format_exception(raised)
        self.check("\n".join(said), what)
        return raised

    def logged(self) -> str:
        """Return what was logged since the last time."""
        log = self.log()
        new, self.seen = log[self.seen :], len(log)
        return new

    def check(self, said: str, what: str) -> None:
        """Fail where a canary stands in what was said, or in any file that a run may have written."""
        self.told = said
        canary = found_in(f"{said}\n{titles()}".encode("utf-8", "surrogateescape"))
        assert canary is None, f"{what} says {canary}"
        for name, content in everything(self.searched):
            canary = found_in(content)
            assert canary is None, f"after {what} {name} holds {canary}"


@contextmanager
def printed() -> Iterator[list[str]]:
    """Collect what is written to the standard streams below Python, by engines in other languages."""
    texts: list[str] = []
    own = [os.dup(stream) for stream in (1, 2)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        try:
            yield texts
        finally:
            for stream, kept, file in zip((1, 2), own, (out, err), strict=True):
                os.dup2(kept, stream)
                os.close(kept)
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))


def titles() -> str:
    """Return what others see of this process: its title, and the names of its threads."""
    names = [Path("/proc/self/cmdline").read_text(errors="replace")]
    for path in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # a thread that ended meanwhile
            names.append(path.read_text(errors="replace"))
    return "\n".join(names)


def make_world(root: Path, monkeypatch: pytest.MonkeyPatch, log: Callable[[], str]) -> World:
    """Make the folders, and let temporary files, the home and the working folder be among them."""
    folders = {name: root / name for name in ("tables", "work", "temporary", "home")}
    for folder in folders.values():
        folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folders["temporary"]))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("HOME", str(folders["home"]))
    monkeypatch.chdir(folders["work"])
    # what stands beside the table is nobody's business
    (folders["tables"] / f"{IN_NAMES}.csv").write_text(f"{STEM}\n")
    return World(
        folders["tables"], folders["work"], tuple(folders[n] for n in ("work", "temporary", "home")), log
    )
