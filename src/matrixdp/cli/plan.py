"""The command ``plan``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from typer import Argument, Option

from matrixdp.cli import console
from matrixdp.cli import options as given
from matrixdp.cli.app import AllOption, CsvOption, ForceOption, JsonOption, wrong
from matrixdp.cli.tables import Column, print_columns
from matrixdp.cli.tables import console as screen_of
from matrixdp.display import counted, figure, printable
from matrixdp.quality import LETTERS, Outlook, TableQuality, by_title, heads
from matrixdp.quality import plan as plan_of
from matrixdp.specification import load_specification
from matrixdp.specification.advice import advice
from matrixdp.texts import ENGLISH

T = TypeVar("T")

#: Tables and entries that a screen shows.
_SHOWN = 30
_HEAD = " ".join(f"{name:>3}" for name in (*LETTERS, "0"))


def plan(
    specs: Annotated[
        list[Path],
        Argument(metavar="SPEC...", help="The specification; several are shown side by side."),
    ],
    public_table: Annotated[
        str | None,
        Option(
            metavar="TABLE",
            help="A table that is PUBLIC, with the same columns: last year's, a census, synthetic records. "
            "Its EXACT ANSWERS SHINE THROUGH: never give a confidential table.",
        ),
    ] = None,
    records: Annotated[
        int | None,
        Option(
            min=1, metavar="N", help="In place of a public table: N records, spread evenly over all values."
        ),
    ] = None,
    budgets: Annotated[
        str | None,
        Option(
            metavar="B,...",
            help="Budgets to compare, in the unit of the specification's: 0.5,1,2.",
            show_default="its own",
        ),
    ] = None,
    max_records: Annotated[
        str | None,
        Option(
            metavar="K,...",
            help="Bounds on a person's records to compare on the public table: 1,2,5,12.",
            show_default="none",
        ),
    ] = None,
    simulations: Annotated[
        int, Option(min=1, max=1_000, metavar="N", help="Releases that are simulated for each budget.")
    ] = 1,
    prices: Annotated[
        bool,
        Option("--prices/--no-prices", help="Find what all others would gain without each entry."),
    ] = True,
    noise: given.NoiseOption = "auto",
    page: Annotated[
        Path | None, Option(metavar="FILE", help="Write one sheet in HTML, for a review board.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    every: AllOption = False,
) -> None:
    """Say how good every table will be, before anything is spent.

    For each table: the share of its figures with each letter of quality (A to C are reliable, F is not), as
    simulated on a table that is public or on evenly spread records.
    For each entry: its share of the privacy cost, and what all others would gain without it. The confidential
    table is never read, and no ledger is debited.
    """
    given.check_output("--page", page, endings=(".html", ".htm"), force=force)
    asked = _numbers("--budgets", budgets, float)
    bounds = _numbers("--max-records", max_records, int)
    found: list[tuple[str, Outlook]] = []
    with console.Reporter() as reporter:
        for spec in specs:
            written = load_specification(spec, require_privacy=True)
            given.warn(advice(written))
            one = plan_of(
                written,
                public_table=public_table,
                records=records,
                budgets=asked,
                max_records=bounds,
                simulations=simulations,
                prices=prices,
                noise=noise,
                progress=reporter.stage,
            )
            found.append((spec.stem, one))
    if page is not None:
        from matrixdp.report.outlook import outlook_page

        page.write_text(outlook_page(found), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps({name: one.as_dict() for name, one in found}))
    elif as_csv:
        tables = [one.table().to_pandas().assign(specification=name) for name, one in found]
        typer.echo(
            "".join(own.to_csv(index=False, header=not place) for place, own in enumerate(tables)), nl=False
        )
    else:
        _show(found, every=every)
        if page is not None:
            typer.echo(f"written: {page}")


def _numbers(option: str, text: str | None, read: Callable[[str], T]) -> list[T]:
    """Return the numbers of a list with commas."""
    found = []
    for part in filter(None, map(str.strip, (text or "").split(","))):
        try:
            found.append(read(part))
        except ValueError:
            raise wrong(option, repr(part), "numbers with commas between them", "wrong-type") from None
    return found


def _show(found: Sequence[tuple[str, Outlook]], *, every: bool) -> None:
    screen = screen_of()
    rows, columns = by_title(found), heads(found)
    if rows:
        shown = list(rows)[: None if every else _SHOWN]
        typer.secho(f"Figures with each letter, in per cent, {found[0][1].records}", bold=True)
        sizes = [next(own for own in rows[title] if own is not None).figures for title in shown]
        print_columns(
            screen,
            [
                Column("table", [printable(title) for title in shown]),
                Column("figures", [f"{size:,}" for size in sizes], number=True),
                *(
                    Column(f"{head}\n{_HEAD}", [_letters(rows[title][place]) for title in shown], True, True)
                    for place, head in enumerate(columns)
                ),
            ],
        )
        if len(shown) < len(rows):
            typer.echo(f"{len(rows):,} tables; --all shows every one.")
        console.say(f"{ENGLISH('grades')} 0: intervals that hold 0.")
    for name, one in found:
        if len(found) > 1:
            typer.secho(name, bold=True)
        _show_one(one, every=every)


def _show_one(one: Outlook, *, every: bool) -> None:
    screen = screen_of()
    if len(one.prices) > 1:
        dearest = sorted(one.prices, key=lambda own: -own.share)[: None if every else _SHOWN]
        print_columns(
            screen,
            [
                Column("entry", [printable(own.entry) for own in dearest]),
                Column("share of the cost", [f"{own.share:.1%}" for own in dearest], number=True),
                Column(
                    "others gain without it",
                    ["" if own.gain is None else f"{own.gain:.1%}" for own in dearest],
                    number=True,
                ),
            ],
        )
    if one.bounding:
        print_columns(
            screen,
            [
                Column("records of a person", [f"{own.unit.records:,}" for own in one.bounding], number=True),
                Column("kept", [f"{own.kept:,}" for own in one.bounding], number=True),
                Column("dropped", [_dropped(own.kept, own.records) for own in one.bounding], number=True),
                Column("RMSE", [figure(own.rmse) for own in one.bounding], number=True),
            ],
        )
    guessing = "a reader who guesses whether a person is in the data is right at most"
    for own in one.budgets:
        gap = (
            ""
            if own.gap is None
            else f"; at most {100 * ((1 + own.gap) ** 0.5 - 1):.2g}% above the least possible"
        )
        facts = {
            own.budget.words: f"RMSE {figure(own.rmse)} ({own.mechanism}, {own.noise} noise{gap})",
            "": f"{guessing} {own.promise.odds:.1%} of the time",
        }
        console.print_facts(facts)
    console.print_facts({"unit": console.unit_in_words(one.budgets[0].budget.unit)})
    if one.ledger is not None:
        told = [counted(number, "release") for number in one.ledger["releases"]]
        console.print_facts(
            {"ledger": f"{one.ledger['left']} left of {one.ledger['dataset']}: {', '.join(told)} like this"}
        )


def _dropped(kept: int, records: int) -> str:
    return f"{1 - kept / records:.1%}" if records else ""


def _letters(one: TableQuality | None) -> str:
    """Return the shares of letters in per cent below `_HEAD`."""
    if one is None:
        return ""
    if one.refusal is not None or not one.letters:
        return "no letters" if one.refusal is None else "not determined"
    shares = [*(one.letters[name] for name in LETTERS), one.near_zero or 0.0]
    return " ".join(f"{100 * share:3.0f}" for share in shares)
