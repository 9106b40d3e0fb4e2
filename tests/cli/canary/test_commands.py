"""No command lets a canary out, whether it succeeds or fails; a command without a run here fails the test."""

import resource
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from matrixdp.cli.app import app
from tests.cli.canary.search import STEM, TEXTS
from tests.cli.canary.tables import READERS, table, texts
from tests.cli.canary.world import SPECIFICATION, World, commands, make_world

RELEASE = ("release", "s.yaml", "--mechanism", "identity", "--out")


def in_order(world: World) -> None:
    world.run("validate", "s.yaml")
    world.run("validate", "s.yaml", "--json")


def drafted(world: World) -> None:
    # Names of columns are what it is there to print, so that no canary stands among them.
    names, records = (world.tables / "t.csv").read_bytes().split(b"\n", 1)
    named = b",".join(b"c%d" % place for place in range(names.count(b",") + 1))
    (world.tables / "named.csv").write_bytes(named + b"\n" + records)
    (world.work / "public.csv").write_bytes(named + b"\n")
    world.run("draft", world.tables / "named.csv")
    world.run("draft", world.tables / "named.csv", "--public-table", world.work / "public.csv")
    world.run("draft", world.tables / "t.csv", "--table", "people", may=(2,))
    world.run("draft", world.tables / "absent.csv", may=(2,))


def selected(world: World) -> None:
    world.run("select", "s.yaml", "--mechanism", "identity", "--save", "strategy.mdp", "--json")
    world.run("select", "s.yaml", "--mechanism", "identity", "--all")


def compared(world: World) -> None:
    world.run("compare", "s.yaml", "--mechanisms", "identity", "--json")


def released(world: World) -> None:
    world.run(*RELEASE, "again", "--csv")
    world.run(*RELEASE, "again", "--force", "--seed-not-private", "1")
    world.run(*RELEASE, "again", may=(2,))
    world.run(*RELEASE, "s.yaml/out", may=(2,))
    world.run(*RELEASE, "other", "--data", world.tables, may=(2,))
    world.run(*RELEASE, "other", "--data", world.tables / "t.csv", "--table", "people", may=(2,))
    world.run(*RELEASE, "other", "--max-answers", "0")


def answered(world: World) -> None:
    for form in ((), ("--json",), ("--csv",), ("--all",)):
        world.run("answer", "out", "marginals: [[sex, age]]", *form)
    world.run("answer", "out", "cdf: age, by: [sex]", "share: {marginals: [[sex]]}", "--out", "answers.csv")
    world.run("answer", "out", "mean: sex", may=(2,))
    statement = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    for form in ((), ("--json",), ("--csv",)):
        world.run("answer", "out", "--sql", statement, *form)
    world.run("answer", "out", "--sql", statement.replace("sex", "sexx"), may=(2,))
    world.run("answer", "out", "marginals: [[sexx]]", may=(2,))
    world.run("answer", "nothing", "marginals: [1]", may=(2,))


def tabled(world: World) -> None:
    for form in ((), ("--all",), ("sex",), ("sex", "--csv"), ("sexx",)):
        world.run("show", "out", *form, may=(0, 2))
    world.run("show", "out", "--export", "tables")
    world.run("show", "out", "--export", "tables", may=(2,))
    world.run("show", "nothing", may=(2,))


def stopped(world: World, *arguments: object) -> None:
    """Stop a release when its measurement is whole, and nothing else is."""

    def interrupt(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matrixdp.releases.files.document", interrupt)
        world.run(*RELEASE, *arguments, may=(130,))


def recovered(world: World) -> None:
    world.run("recover", "out", may=(2,))
    world.run("recover", "nothing", may=(2,))
    stopped(world, "stopped")
    world.run("recover", "stopped")
    world.run("answer", "stopped", "marginals: [1]")


def modelled(world: World) -> None:
    world.run("model", "out", "--out", "fitted", "--allow-poor-fit", "--steps", "20")
    world.run("model", "out", "--out", "fitted", may=(2,))
    world.run("model", "out", "--out", "fitted", "--force", "--allow-poor-fit", "--steps", "20", "--json")
    world.run("model", "nothing", "--out", "other", may=(2,))
    world.run("verify", "fitted")


def synthesized(world: World) -> None:
    modelled(world)
    for form in ((), ("--json",), ("--values", "data"), ("--rows", "7", "--levels")):
        world.run("synthesize", "fitted", "--out", "records.parquet", "--force", *form)
    world.run("synthesize", "fitted", "--out", "records.csv")
    world.run("synthesize", "fitted", "--out", "records.csv", may=(2,))
    world.run("synthesize", "out", "--out", "others.csv", may=(2,))


def verified(world: World) -> None:
    world.run("verify", "out")
    world.run("verify", "out", "--json")
    world.run("verify", "out", "--ledger", "absent", may=(1, 2))
    world.run("verify", "nothing", may=(1, 2))


def debited(world: World) -> None:
    """Make a ledger, and let releases be debited to it: one, and one that leaves too little."""
    world.run("ledger", "init", "people.ledger", "--dataset", "people", "--total", "rho=0.75")
    world.run("ledger", "init", "people.ledger", "--dataset", "people", "--total", "rho=1", may=(2,))
    world.run(*RELEASE, "debited", "--ledger", "people.ledger", "--csv")
    world.run(*RELEASE, "refused", "--ledger", "people.ledger", may=(2,))
    world.run("verify", "debited", "--ledger", "people.ledger")


def shown(world: World) -> None:
    debited(world)
    world.run("ledger", "show", "people.ledger")
    world.run("ledger", "show", "people.ledger", "--json")
    world.run("ledger", "show", world.tables / "t.csv", may=(2,))


def settled(world: World) -> None:
    world.run("ledger", "init", "people.ledger", "--dataset", "people", "--total", "rho=0.75")
    stopped(world, "stopped", "--ledger", "people.ledger")
    world.run("ledger", "recover", "people.ledger")
    world.run("ledger", "recover", "people.ledger")
    world.run("ledger", "show", "people.ledger", "--json")
    world.run("ledger", "recover", "nothing", may=(2,))


def signed(world: World) -> None:
    world.run("keys", "key")
    world.run("keys", "key", may=(2,))
    world.run("sign", "out", "--key", "key")
    world.run("sign", "out", "--key", "key", may=(2,))
    world.run("sign", "out", "--key", world.tables / "t.csv", "--force", may=(2,))
    world.run("verify", "out", "--key", "key.pub")
    world.run("verify", "out", "--key", world.tables / "t.csv", may=(2,))
    world.run(*RELEASE, "signed", "--sign", "key")


def explained(world: World) -> None:
    world.run("explain", "out")
    world.run("explain", "out", "--out", "report.md")
    world.run("explain", "out", "--out", "report.md", may=(2,))
    world.run("explain", "nothing", may=(2,))


def reported(world: World) -> None:
    world.run("report", "out")
    world.run("report", "out", may=(2,))
    world.run("report", "nothing", may=(2,))


def described(world: World) -> None:
    world.run("schema", "release")
    world.run("schema", "specification")


RUNS: dict[str, Callable[[World], None]] = {
    "draft": drafted,
    "validate": in_order,
    "select": selected,
    "compare": compared,
    "release": released,
    "answer": answered,
    "show": tabled,
    "recover": recovered,
    "verify": verified,
    "ledger init": debited,
    "ledger show": shown,
    "ledger recover": settled,
    "keys": signed,
    "sign": signed,
    "explain": explained,
    "report": reported,
    "model": modelled,
    "synthesize": synthesized,
    "schema": described,
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> World:
    caplog.set_level("DEBUG")
    made = make_world(tmp_path, monkeypatch, lambda: caplog.text)
    path = READERS["csv"][0](texts(table()), made.tables)
    (made.work / "s.yaml").write_text(f"data: '{path}'\n{SPECIFICATION}")
    made.run(*RELEASE, "out")
    return made


def test_every_command_has_a_run():
    assert set(commands()) <= set(RUNS), "each command needs runs of its own here"


@pytest.mark.parametrize("command", commands())
def test_commands(command: str, world: World):
    RUNS[command](world)
    # a damaged table, and files of releases that are none, tell no more
    (world.tables / "t.csv").write_bytes(
        b'"' + (world.tables / "t.csv").read_bytes()[:-7].replace(b"sex", b"six")
    )
    for path in (world.work / "out").iterdir():
        path.write_bytes(path.read_bytes()[:-40])
    for failing in (world.work / "strategy.mdp", world.work / "absent.yaml"):
        world.run(*command.split(), failing, may=(0, 1, 2))
    world.run(*command.split(), "out", may=(0, 1, 2))


READ, NOISE = "matrixdp.sources.counting._at_once", "matrixdp.measure.measurement.noisy"
WRITTEN = "matrixdp.releases.transaction.save_measurement"
#: Failures in the middle of a release, which speak of the table: where, with what, and the exit status.
FAILING: dict[str, tuple[str, BaseException, int]] = {
    "engine": (READ, ValueError(f"cannot convert {TEXTS['out of domain']}"), 2),
    "panic": (READ, type("PanicException", (BaseException,), {})(TEXTS["out of domain"]), 2),
    "memory": (NOISE, MemoryError(TEXTS["out of domain"]), 1),
    "interrupt": (NOISE, KeyboardInterrupt(), 130),
    "interrupt while writing": (WRITTEN, KeyboardInterrupt(), 130),
    "unexpected": (WRITTEN, ValueError("what the writer says"), 1),
}


def break_down(how: str, world: World, monkeypatch: pytest.MonkeyPatch) -> int:
    """Make a ledger, and let releases fail from here on; return the exit status that is expected."""
    world.run("ledger", "init", "people.ledger", "--dataset", "people", "--total", "rho=0.75")
    place, error, status = FAILING[how]

    def fails(*_: object, **__: object) -> Any:
        raise error

    monkeypatch.setattr(place, fails)
    return status


@pytest.mark.parametrize("how", FAILING)
def test_failures_while_a_table_is_read(how: str, world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MATRIXDP_DEBUG", raising=False)
    status = break_down(how, world, monkeypatch)
    world.run(*RELEASE, "failed", "--ledger", "people.ledger", may=(status,))
    assert "rho" in world.run("ledger", "show", "people.ledger")
    monkeypatch.undo()


@pytest.mark.parametrize("how", ["engine", "panic"])
def test_what_an_engine_says_is_shown_on_request_behind_a_warning_and_kept_nowhere(
    how: str, world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MATRIXDP_DEBUG", "1")
    status = break_down(how, world, monkeypatch)
    result = CliRunner().invoke(app, [*RELEASE, "failed", "--ledger", "people.ledger"])
    assert result.exit_code == status
    before, warning, shown = result.stderr.partition("WARNING: MATRIXDP_DEBUG IS SET.")
    assert warning
    assert TEXTS["out of domain"] in shown
    *_, error = shown.partition("WARNING: THE ABOVE MAY QUOTE THE TABLE.")
    said = "".join(traceback.format_exception(result.exception)) if result.exception else ""
    world.check(f"{result.stdout}{before}{error}{said}{world.log()}", "a run that shows what its engine says")
    monkeypatch.undo()


@contextmanager
def full_disk(most: int) -> Iterator[None]:
    """Let no file grow beyond a size; half a file of bytecode would be read by the next process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = written


@pytest.mark.parametrize("most", [0, 300, 3_000])
def test_full_disks(most: int, world: World):
    shutil.rmtree(world.work / "out")
    with full_disk(most):
        world.run(*RELEASE, "full", may=(1, 2))
    assert not (world.work / "full").exists()
    assert STEM not in world.told.lower()
