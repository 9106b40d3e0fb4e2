"""The commands ``series start``, ``series count``, ``series publish`` and ``series show``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

import matrixdp as mdp
from matrixdp.answers.schedule import figures_known
from matrixdp.cli import options
from matrixdp.cli.app import JsonOption
from matrixdp.cli.console import NOT_PRIVATE, Reporter, print_facts, print_release, say
from matrixdp.cli.ledger import BUDGETS, budget_in
from matrixdp.cli.release import PassphraseFile, judge, passphrase
from matrixdp.cli.tables import Column, console, print_columns
from matrixdp.display import counted
from matrixdp.privacy.budget import weak_privacy

if TYPE_CHECKING:
    from matrixdp.releases import SizeCheck
    from matrixdp.strategy.series import Rehearsal

_Folder = Annotated[Path, Argument(metavar="DIR", help="The folder of the series.")]
_Ledger = Annotated[
    Path | None,
    Option(metavar="LEDGER", help="The ledger; the series debits it once, when it starts."),
]
_Data = Annotated[
    str, Option(help="All records so far: a path, or an address such as postgresql://host/base.")
]
_Through = Annotated[str, Option(metavar="PERIOD", help="The last period that is over, such as 2026-03.")]
_Expect = Annotated[int | None, options.expected(" in the periods that are not yet measured")]
_Seed = Annotated[
    int | None,
    Option(min=0, metavar="N", help="The seed, where the series began with --seeds-not-private."),
]


def start(
    spec: options.Spec,
    out: Annotated[Path, Option(metavar="DIR", help="Where the series goes: a new folder.")],
    ledger: _Ledger = None,
    noise: options.NoiseOption = "auto",
    confidence: options.Confidence = None,
    csv: Annotated[bool, Option("--csv", help="Write all answers as CSV too, at each publication.")] = False,
    seeds_not_private: Annotated[
        bool,
        Option("--seeds-not-private", help="Publish with noise from seeds. THE RESULT IS NOT PRIVATE."),
    ] = False,
    accept_weak_privacy: options.AcceptWeak = False,
) -> None:
    """Select a strategy for a whole series and spend its budget, once; no table is read.

    The specification has `series: {attribute: month}`, an attribute of dates whose values are the periods.
    `matrixdp series publish` then measures the periods as they end, at no further cost. The folder needs a
    backup, and must never be published from a copy that is older than the last publication: rows would be
    measured twice. With a ledger, such a copy is rejected.
    """
    with Reporter(elapsed=False) as reporter:
        made = mdp.Series.start(
            spec,
            out,
            ledger=ledger,
            noise=noise,
            confidence=0.95 if confidence is None else confidence,
            csv=csv,
            seed_not_private=seeds_not_private,
            accept_weak_privacy=accept_weak_privacy,
            progress=reporter.stage,
        )
    options.warn(weak_privacy(made.begun.authorization.budget))
    if seeds_not_private:
        typer.secho(f"{NOT_PRIVATE}\n", bold=True)
    _print_schedule(made)
    say("Privacy", bold=True)
    say(made.begun.statement.text)
    first, named = made.attribute.label(0), shlex.quote(str(out))
    print_facts(
        {"folder": str(out), "next": f"matrixdp series publish {named} --data TABLE --through {first}"}
    )


def publish(
    folder: _Folder,
    data: _Data,
    through: _Through,
    table: options.DatabaseTable = None,
    ledger: _Ledger = None,
    expect: _Expect = None,
    check: Annotated[
        bool,
        Option(
            "--check",
            help="Rehearse: check the columns of the table, the ledger, the folder and the period. No record "
            "is counted, nothing is spent or written.",
        ),
    ] = False,
    sign: Annotated[
        Path | None, Option(metavar="KEY", help="Sign with a private key that `matrixdp keys` made.")
    ] = None,
    passphrase_file: PassphraseFile = None,
    seed_not_private: _Seed = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the periods that are over and not yet measured, and publish what is known by them.

    Nothing more is spent. What is measured is final: --check rehearses, and `matrixdp series count` counts
    records first. DIR then holds all answers so far, as a release has them, with the period in which each was
    published; new.csv holds those that are new. Publishing a period again changes nothing. A publication that
    was stopped is completed, or made again, by publishing again.
    """
    key = None if sign is None else mdp.SigningKey.load(sign, passphrase(passphrase_file))
    found = mdp.Series.open(folder)
    if check:
        rehearsal = found.check(data, through, table_name=table, ledger=ledger)
        if as_json:
            typer.echo(json.dumps(rehearsal._asdict(), ensure_ascii=False))
        else:
            _print_rehearsal(rehearsal, through)
        return
    published = found.published
    with Reporter(elapsed=False) as reporter:
        release = found.publish(
            data,
            through,
            table_name=table,
            ledger=ledger,
            expect=expect,
            key=key,
            seed_not_private=seed_not_private,
            progress=reporter.stage,
        )
    assert release.series is not None
    _, numbers = release.series
    earlier, now = ([0, *numbers][-2], numbers[-1])
    before, then = (figures_known(found.workload, found.attribute, own) for own in (earlier, now))
    measured = found.published != published
    new = then - before if measured else 0
    if as_json:
        print_release(release, folder, published=list(found.published), new=new)
    elif not release.private:
        typer.secho(f"{NOT_PRIVATE}\n", bold=True)
    if not (as_json or measured):
        say(f"{through} was published before; nothing was measured.")
    elif not as_json:
        named = shlex.quote(str(folder))
        print_facts(
            {
                "published": f"through {found.published[-1]}",
                **({} if release.size.total is None else {"records": _records(release.size)}),
                "figures": f"{then:,}, of which {new:,} are new",
                "new counts": str(folder / "new.csv"),
                "more": f"matrixdp show {named}; matrixdp report {named}",
            }
        )
    judge(release.size)


def _records(size: SizeCheck) -> str:
    """Say how many records were counted in which periods, with noise."""
    return f"{size.total} in {' to '.join(dict.fromkeys(size.periods))} (with noise)"


def _print_rehearsal(found: Rehearsal, through: str) -> None:
    if not found.periods:
        say(f"{through} was published before: publishing it again measures nothing.")
        return
    if found.resumes:
        say("A publication that was stopped would be completed, or made again, first.")
    periods = " to ".join(dict.fromkeys((found.periods[0], found.periods[-1])))
    say(f"All that can be checked without a record is well; {periods} can be measured.")
    print_facts({"would be new": counted(found.figures, "figure")})
    say("Nothing was spent or written. `matrixdp series count` looks at the records, too.")


def count(
    folder: _Folder,
    data: _Data,
    through: _Through,
    budget: Annotated[
        str, Option(metavar="BUDGET", help=f"What the count spends, beside the series: {BUDGETS}.")
    ],
    table: options.DatabaseTable = None,
    ledger: Annotated[
        Path | None, Option(metavar="LEDGER", help="The ledger of the series, which is debited once more.")
    ] = None,
    expect: _Expect = None,
    accept_weak_privacy: options.AcceptWeak = False,
    seed_not_private: _Seed = None,
) -> None:
    """Count the records that a publication would measure, with noise, before it does.

    What a publication measures is final, so an empty table, or one with misread dates, uses up its periods.
    This counts the records of these periods, and those of the whole table that are out of domain, with a
    small budget of its own. Nothing else is measured.
    """
    found = mdp.Series.open(folder)
    size = found.count(
        data,
        through,
        budget_in(budget, "--budget"),
        expect=expect,
        table_name=table,
        ledger=ledger,
        seed_not_private=seed_not_private,
        accept_weak_privacy=accept_weak_privacy,
    )
    if seed_not_private is not None:
        typer.secho(f"{NOT_PRIVATE}\n", bold=True)
    facts = {"records": _records(size)}
    if size.out_of_domain is not None:
        facts["out of domain"] = f"{size.out_of_domain} in the whole table (with noise)"
    print_facts(facts)
    judge(size)


def show(folder: _Folder, as_json: JsonOption = False) -> None:
    """Say what was published, what comes when, and how accurate it will be."""
    found = mdp.Series.open(folder)
    if as_json:
        told = {"attribute": found.attribute.name, "published": list(found.published)}
        typer.echo(json.dumps({**told, "tables": found.schedule().to_pylist()}, indent=2, ensure_ascii=False))
        return
    _print_schedule(found)
    last = f"through {found.published[-1]}" if found.published else "nothing yet"
    print_facts({"published": f"{last}; {counted(len(found.published), 'publication')}"})


COMMANDS = (start, publish, count, show)


def _print_schedule(found: mdp.Series) -> None:
    rows = found.schedule().to_pylist()
    published = tuple(f"{row['published']:,} of {row['queries']:,}" for row in rows)
    columns = [
        Column("table", tuple(row["table"] for row in rows)),
        Column("answers published", published, number=True),
        Column("next after", tuple(row["next"] or "" for row in rows)),
        Column("come", tuple(row["comes"] for row in rows)),
        Column(
            "stddev at most",
            tuple("" if row["stddev"] is None else f"{row['stddev']:.3g}" for row in rows),
            number=True,
        ),
    ]
    print_columns(console(), columns)
