"""The commands ``series start``, ``series publish`` and ``series show``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

import matrixdp as mdp
from matrixdp.cli import options
from matrixdp.cli.app import JsonOption, guarded
from matrixdp.cli.console import NOT_PRIVATE, Reporter, print_facts, print_release, say
from matrixdp.cli.release import PassphraseFile, passphrase
from matrixdp.cli.tables import Column, console, print_columns
from matrixdp.display import counted
from matrixdp.language.periods import queries_known
from matrixdp.privacy.budget import weak_privacy

series = typer.Typer(
    name="series",
    help="Publish releases over time under one budget: every period once, and no figure ever revised.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_Folder = Annotated[Path, Argument(metavar="DIR", help="The folder of the series.")]
_Ledger = Annotated[
    Path | None,
    Option(metavar="LEDGER", help="The ledger; the series debits it once, when it starts."),
]


@series.command()
@guarded
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
    first = made.attribute.label(0)
    print_facts({"folder": str(out), "next": f"matrixdp series publish {out} --data TABLE --through {first}"})


@series.command()
@guarded
def publish(
    folder: _Folder,
    data: Annotated[
        str, Option(help="All records so far: a path, or an address such as postgresql://host/base.")
    ],
    through: Annotated[str, Option(metavar="PERIOD", help="The last period that is over, such as 2026-03.")],
    table: options.DatabaseTable = None,
    ledger: _Ledger = None,
    sign: Annotated[
        Path | None, Option(metavar="KEY", help="Sign with a private key that `matrixdp keys` made.")
    ] = None,
    passphrase_file: PassphraseFile = None,
    seed_not_private: Annotated[
        int | None,
        Option(min=0, metavar="N", help="The seed, where the series began with --seeds-not-private."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the periods that are over and not yet measured, and publish what is known by them.

    Nothing more is spent. DIR then holds all answers so far, as a release has them, with the period in which
    each was published; new.csv holds those that are new. Publishing a period again changes nothing. A
    publication that was stopped is completed, or made again, by publishing again.
    """
    key = None if sign is None else mdp.SigningKey.load(sign, passphrase(passphrase_file))
    found = mdp.Series.open(folder)
    before = found.published
    with Reporter(elapsed=False) as reporter:
        release = found.publish(
            data,
            through,
            table_name=table,
            ledger=ledger,
            key=key,
            seed_not_private=seed_not_private,
            progress=reporter.stage,
        )
    assert release.series is not None
    answers, (_, numbers) = release.workload.queries, release.series
    earlier = numbers[-2] if numbers[1:] else 0
    known = sum(queries_known(group, found.attribute, earlier) for group in release.workload)
    new = 0 if found.published == before else answers - known
    options.warn(release.size.warnings)
    if as_json:
        print_release(release, folder, published=list(found.published), new=new)
        return
    if not release.private:
        typer.secho(f"{NOT_PRIVATE}\n", bold=True)
    if found.published == before:
        say(f"{through} was published before; nothing was measured.")
        return
    named = shlex.quote(str(folder))
    print_facts(
        {
            "published": f"through {found.published[-1]}",
            "answers": f"{answers:,}, of which {new:,} are new: {folder / 'new.csv'}",
            "more": f"matrixdp show {named}; matrixdp report {named}",
        }
    )


@series.command()
@guarded
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
