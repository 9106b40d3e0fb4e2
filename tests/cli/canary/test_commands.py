"""No command lets a canary out, whether it succeeds or fails; a command without a run here fails the test."""

import resource
import shlex
import shutil
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from typer.testing import CliRunner

from matrixdp.cli.app import app
from tests.cli.canary.search import STEM, TEXTS
from tests.cli.canary.tables import READERS, table, texts
from tests.cli.canary.world import SPECIFICATION, World, commands

RELEASE = ("release", "s.yaml", "--mechanism", "identity", "--out")
#: Runs of every command; a line begins with the exit statuses that it may have, where they are not 0 alone.
DEBITED = """
ledger init people.ledger --dataset people --total rho=0.75
2: ledger init people.ledger --dataset people --total rho=1
release s.yaml --mechanism identity --out debited --ledger people.ledger --csv
2: release s.yaml --mechanism identity --out refused --ledger people.ledger
verify debited --ledger people.ledger
"""
MODELLED = """
model out --out fitted --allow-poor-fit --steps 20
2: model out --out fitted
model out --out fitted --force --allow-poor-fit --steps 20 --json
2: model nothing --out other
verify fitted
"""
SIGNED = """
keys key
2: keys key
sign out --key key
2: sign out --key key
2: sign out --key TABLES/t.csv --force
verify out --key key.pub
2: verify out --key TABLES/t.csv
release s.yaml --mechanism identity --out signed --sign key
"""
SERIES = (
    "series start y.yaml --out year\n2: series start y.yaml --out year\n2: series start s.yaml --out other"
)
YEARS = """domain:
  sex: [female, male]
  day: {from: 2001-01-01, to: 2006-12-31, by: year}
workload:
  - marginals: [[sex, day]]
series: day
privacy: {rho: 0.5}
"""
#: A text of few records is found once in more runs than anybody will make.
FINDING = "domain: {sex: {discover: values, max_values: 1}}\nprivacy: {epsilon: 1, delta: 1e-12}\n"
RUNS = {
    "discover": """
discover d.yaml --out found.yaml
2: discover d.yaml --out found.yaml
verify found.yaml
2: discover s.yaml --out other.yaml
""",
    "draft": """
draft TABLES/named.csv
draft TABLES/named.csv --public-table public.csv
2: draft TABLES/t.csv --table people
2: draft TABLES/absent.csv
""",
    "validate": "validate s.yaml\nvalidate s.yaml --json",
    "select": """
select s.yaml --mechanism identity --save strategy.mdp --json
select s.yaml --mechanism identity --all
""",
    "plan": """
plan s.yaml --records 100 --no-prices --json
2: plan s.yaml --public-table public.csv --no-prices
2: plan s.yaml --public-table TABLES/t.csv
2: plan s.yaml --public-table TABLES/absent.csv
""",
    "design": "2: design TABLES/t.csv --public-table TABLES/t.csv\n2: design absent.yaml",
    "compare": "compare s.yaml --mechanisms identity --json --time-limit 9999 --time-limit-each 9999",
    "release": """
release s.yaml --mechanism identity --out again --csv
release s.yaml --mechanism identity --out again --force --seed-not-private 1 --json
2: release s.yaml --mechanism identity --out again
2: release s.yaml --mechanism identity --out s.yaml/out
2: release s.yaml --mechanism identity --out other --data TABLES
2: release s.yaml --mechanism identity --out other --data TABLES/t.csv --table people
release s.yaml --mechanism identity --out other --max-answers 0
select r.yaml
release r.yaml --out rounds
2: release r.yaml --out rounds --mechanism identity --force
show rounds
verify rounds
report rounds --markdown
""",
    "answer": """
answer out 'marginals: [[sex, age]]'
answer out 'marginals: [[sex, age]]' --json
answer out 'marginals: [[sex, age]]' --csv
answer out 'marginals: [[sex, age]]' --all
answer out 'cdf: age, by: [sex]' 'share: {marginals: [[sex]]}' --out answers.csv
2: answer out 'mean: sex'
answer out --sql 'SELECT sex, COUNT(*) AS n FROM people GROUP BY sex'
answer out --sql 'SELECT sex, COUNT(*) AS n FROM people GROUP BY sex' --json
answer out --sql 'SELECT sex, COUNT(*) AS n FROM people GROUP BY sex' --csv
2: answer out --sql 'SELECT sexx, COUNT(*) AS n FROM people GROUP BY sexx'
2: answer out 'marginals: [[sexx]]'
2: answer nothing 'marginals: [1]'
""",
    "show": """
show out
show out --all
show out sex
show out sex --csv
show out sex --json
show out --json
2: show out sexx
show out --export tables
2: show out --export tables
2: show nothing
""",
    "recover": """
2: recover out
2: recover nothing
STOPPED release s.yaml --mechanism identity --out stopped
recover stopped
answer stopped 'marginals: [1]'
STOPPED release r.yaml --out halted
recover halted
verify halted
""",
    "model": MODELLED,
    "synthesize": f"""{MODELLED}
synthesize fitted --out records.parquet --force
synthesize fitted --out records.parquet --force --json
synthesize fitted --out records.parquet --force --values data
synthesize fitted --out records.parquet --force --rows 7 --levels
synthesize fitted --out records.csv
2: synthesize fitted --out records.csv
2: synthesize out --out others.csv
""",
    "verify": """
verify out
verify out --json
1,2: verify out --ledger absent
1,2: verify nothing
""",
    "ledger init": DEBITED,
    "ledger show": f"""{DEBITED}
ledger show people.ledger
ledger show people.ledger --json
2: ledger show TABLES/t.csv
""",
    "ledger recover": """
ledger init people.ledger --dataset people --total rho=0.75
STOPPED release s.yaml --mechanism identity --out stopped --ledger people.ledger
ledger recover people.ledger
ledger recover people.ledger
ledger show people.ledger --json
2: ledger recover nothing
""",
    "keys": SIGNED,
    "sign": SIGNED,
    "report": """
report out
2: report out
2: report nothing
report out --markdown
report out --markdown --out report.md
2: report out --markdown --out report.md
2: report nothing --markdown
""",
    "series start": SERIES,
    "series count": f"""{SERIES}
ledger init l --dataset d --total rho=1
2: series count year --data TABLES/t.csv --through 2002 --budget rho=0.1
series count year --data TABLES/t.csv --through 2002 --budget rho=0.1 --ledger l
3: series count year --data TABLES/t.csv --through 2002 --budget rho=0.1 --ledger l --expect 900000
2: series count year --data TABLES/absent.csv --through 2002 --budget rho=0.1 --ledger l
2: series count year --data TABLES/t.csv --through 1999 --budget rho=0.1 --ledger l
""",
    "series publish": f"""{SERIES}
series publish year --data TABLES/t.csv --through 2002 --check
series publish year --data TABLES/t.csv --through 2002 --check --json
2: series publish year --data TABLES/absent.csv --through 2002 --check
series publish year --data TABLES/t.csv --through 2002 --json
series publish year --data TABLES/t.csv --through 2002
2: series publish year --data TABLES/absent.csv --through 2003
2: series publish year --data TABLES/t.csv --through 1999
STOPPED series publish year --data TABLES/t.csv --through 2003
series publish year --data TABLES/t.csv --through 2003
verify year
""",
    "series show": f"""{SERIES}
series show year
series show year --json
2: series show out
""",
    "schema": "schema release\nschema specification",
}


@pytest.fixture
def world(world: World) -> World:
    """A world with a table, a specification and a release."""
    path = READERS["csv"][0](texts(table()), world.tables)
    (world.work / "s.yaml").write_text(f"data: '{path}'\n{SPECIFICATION}")
    (world.work / "y.yaml").write_text(YEARS)
    (world.work / "d.yaml").write_text(f"data: '{path}'\n{FINDING}")
    (world.work / "r.yaml").write_text(f"data: '{path}'\n{SPECIFICATION}rounds: 2\n")
    # names of columns are what `draft` is there to print, so that no canary stands among these
    names, records = path.read_bytes().split(b"\n", 1)
    named = b",".join(b"c%d" % place for place in range(names.count(b",") + 1))
    (world.tables / "named.csv").write_bytes(named + b"\n" + records)
    (world.work / "public.csv").write_bytes(named + b"\n")
    world.run(*RELEASE, "out")
    return world


def run(world: World, line: str) -> None:
    """Run a line; one that is STOPPED ends when its measurement is whole, and nothing else is."""

    def interrupt(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt

    first, _, rest = line.partition(" ")
    statuses = {"STOPPED": "130:"}.get(first, first if first.endswith(":") else "")
    command = rest if statuses else line
    may = tuple(map(int, statuses.rstrip(":").split(","))) if statuses else (0,)
    with pytest.MonkeyPatch.context() as patch:
        if first == "STOPPED":
            patch.setattr("matrixdp.releases.record.document", interrupt)
        world.run(*shlex.split(command.replace("TABLES", str(world.tables))), may=may)


def test_every_command_has_a_run():
    assert set(commands()) <= set(RUNS), "each command needs runs of its own here"


@pytest.mark.parametrize("command", commands())
def test_commands(command: str, world: World):
    for line in filter(None, RUNS[command].splitlines()):
        run(world, line)
    # a damaged table, and files of releases that are none, tell no more
    (world.tables / "t.csv").write_bytes(
        b'"' + (world.tables / "t.csv").read_bytes()[:-7].replace(b"sex", b"six")
    )
    for path in (world.work / "out").iterdir():
        path.write_bytes(path.read_bytes()[:-40])
    for failing in (world.work / "strategy.mdp", world.work / "absent.yaml"):
        world.run(*command.split(), failing, may=(0, 1, 2))
    world.run(*command.split(), "out", may=(0, 1, 2))


READ, NOISE = "matrixdp.sources.counting._at_once", "matrixdp.measure.noisy_answers.noisy"
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
