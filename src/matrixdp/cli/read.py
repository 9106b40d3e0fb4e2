"""The commands that read a release: ``show``, ``answer``, ``verify`` and ``report``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

import matrixdp as mdp
from matrixdp.answers.titles import title as group_title
from matrixdp.cli.app import AllOption, CsvOption, ForceOption, JsonOption, wrong
from matrixdp.cli.console import NOT_PRIVATE, Reporter, say
from matrixdp.cli.options import (
    Confidence,
    ReleaseFolder,
    RoundTo,
    SuppressAbove,
    Texts,
    WithinRange,
    check_output,
    read_questions,
    text_of,
    texts_of,
    warn,
)
from matrixdp.display import counted, listed, printable
from matrixdp.domain import Domain
from matrixdp.errors import within
from matrixdp.exports import EXPORTS
from matrixdp.queries.groups import subtracts
from matrixdp.statements import SqlEntry, SqlFileEntry
from matrixdp.statistics import StatisticEntry, in_words
from matrixdp.statistics.statistic import DIFFERENCE
from matrixdp.storage.archive import write_whole

_SHOWN = 50


def _warn(release: mdp.Release) -> None:
    if not release.private:
        typer.echo(NOT_PRIVATE, err=True)


def _warn_of_texts(release: mdp.Release, language: str) -> None:
    if missing := release.untranslated(language):
        names = listed(missing, len(missing))
        warn([printable(f"{counted(len(missing), 'text')} without {language}: {names}")])


_Language = Annotated[
    str | None,
    Option(metavar="LANGUAGE", help="The language of titles, labels and words, such as fr."),
]
_WordsFile = Annotated[
    Path | None,
    Option(
        "--words", metavar="FILE", help="A catalog of words around tables, called as its language: it.toml."
    ),
]


def show(
    folder: ReleaseFolder,
    table: Annotated[
        str | None,
        Argument(
            metavar="TABLE",
            help="A table to show: its title, its name or its attributes, such as 'age CDF by sex'.",
        ),
    ] = None,
    cross: Annotated[
        str | None,
        Option(
            metavar="auto|ATTRIBUTES",
            help="Show TABLE as rows by columns, with totals. ATTRIBUTES, such as 'age,sex': the last is in "
            "the columns, the one before in the rows, further ones are row groups and separate tables.",
        ),
    ] = None,
    margins: Annotated[
        bool, Option("--margins", help="With --cross: half of each interval in place of the quality.")
    ] = False,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    every: AllOption = False,
    export: Annotated[
        Path | None,
        Option("--export", metavar="OUT", help="Write every table to this new folder."),
    ] = None,
    format: Annotated[  # noqa: A002
        str,
        Option(
            metavar="|".join(EXPORTS),
            autocompletion=lambda: list(EXPORTS),
            help="Format of --export; xlsx is one Excel workbook, ddi the code book alone.",
        ),
    ] = "csv",
    helpers: Annotated[
        bool, Option("--helpers", help="List or write the counts that only serve statistics, too.")
    ] = False,
    language: _Language = None,
    words: _WordsFile = None,
    suppress_above: SuppressAbove = None,
    within_range: WithinRange = False,
    round_to: RoundTo = None,
    publication: Texts = None,
    confidence: Confidence = None,
) -> None:
    """Show what a release holds, or one of its tables, or write each as a file.

    From the release alone: no data are read, and it costs no further budget. Suppression, rounding and ranges
    change what readers see: the terminal, cross tables and the workbook. CSV and Parquet have all estimates.
    """
    if table is not None and export is not None:
        raise wrong("--export", "a single table too", "one of the two", "conflict")
    if table is None and (as_csv or cross is not None):
        raise wrong("table", "none", "the title of a table with --csv and --cross", "missing-key")
    if as_json and (as_csv or cross is not None):
        raise wrong("--json", "it beside --csv or --cross", "one of them", "conflict")
    if margins and cross is None:
        raise wrong("--margins", "it without --cross", "it beside --cross auto", "conflict")
    if words is not None:
        mdp.register_words(words)
    release = mdp.load_release(folder, confidence=confidence).presented(
        suppress_above=suppress_above,
        within_range=within_range or None,
        round_to=round_to,
        publication=texts_of(publication),
    )
    # programs get the names that the specification has, unless they ask for a language
    programs = as_json or as_csv or export is not None
    release = release.in_language(language) if programs else release.for_readers(language)
    _warn(release)
    if language is not None:
        _warn_of_texts(release, language)
    if export is not None:
        out = release.save_tables(export, format=format, helpers=helpers)
        published = (*release.tables, *(release.helpers if helpers else ()))
        written = sum(one.rows > 0 for one in published)
        files = sorted(path.name for path in out.iterdir())
        if as_json:
            typer.echo(json.dumps({"folder": str(out), "tables": written, "files": files}))
            return
        where = files[0] if len(files) == 1 else f"{len(files):,} files"
        typer.echo(f"{out}: {counted(written, 'table')} in {where}.")
    elif table is None:
        _list(release, folder, every or as_json, helpers, as_json)
    elif as_json:
        one = release.find(table)
        told = {key: getattr(one, key) for key in ("name", "title", "unit", "note", "source")}
        own = release.table(one).as_dict()
        typer.echo(_dumped({"private": release.private, "confidence": release.confidence} | told | own))
    else:
        _show_table(release, table, cross, as_csv, margins, every)


def _show_table(
    release: mdp.Release, called: str, cross: str | None, as_csv: bool, margins: bool, every: bool
) -> None:
    from matrixdp.answers.figures import decimals_by_subject, with_digits
    from matrixdp.answers.shown import Shown
    from matrixdp.cli.tables import console, print_cross_table, print_table

    one = release.find(called)
    crossed = None
    if cross is not None:
        crossed = release.cross_table(one, None if cross == "auto" else [n.strip() for n in cross.split(",")])
    if as_csv and crossed is not None:
        typer.echo(crossed.to_csv(), nl=False)
        return
    found = release.table(one).to_arrow()
    if as_csv:
        typer.echo(mdp.ResultTable(with_digits(found, decimals_by_subject(found))).to_csv(), nl=False)
        return
    limit = sys.maxsize if every else _SHOWN
    if crossed is not None:
        print_cross_table(console(), crossed, limit, margins=margins)
    else:
        print_table(console(), Shown(found, one.measures, release.presentation, limit), release.confidence)
    if one.group is not None:
        called = one.group.name
        named = [own.title for own in release.tables if own.group is not None and own.group.name == called]
        if len(named) > 1:
            warn([printable(f"{len(named)} tables are called {called}: {', '.join(named)}")])
    source = one.source and release.presentation.say("source", source=one.source)
    for words in filter(None, (one.note, source)):
        say(printable(words))


def _list(release: mdp.Release, folder: Path, every: bool, helpers: bool, as_json: bool) -> None:
    from matrixdp.answers.publication import table_errors
    from matrixdp.cli.console import print_release, reliable_rows
    from matrixdp.cli.tables import Column, console, print_columns

    whole, say_in = (*release.tables, *(release.helpers if helpers else ())), release.presentation.say
    shown = whole if every else whole[:_SHOWN]
    errors = [table_errors(one, release.analysis) or (None, None) for one in shown]
    reliable = [reliable_rows(release, one) for one in shown]
    if as_json:
        tables = [
            {"name": one.name, "title": one.title, "unit": one.unit, "rows": one.rows, "rmse": rmse,
             "max_stddev": largest, "reliable": own}
            for one, (rmse, largest), own in zip(shown, errors, reliable, strict=True)
        ]  # fmt: skip
        print_release(release, folder, tables=tables)
        return
    figures: dict[str, list[float | None]] = {
        "rows": [one.rows for one in shown],
        "rmse": [rmse for rmse, _ in errors],
        "largest_error": [largest for _, largest in errors],
        "reliable": [*reliable],
    }
    columns = [Column(say_in("head_table"), [printable(one.title) for one in shown])]
    for head, values in figures.items():
        texts = ["-" if own is None else say_in.number(own) for own in values]
        columns.append(Column(say_in(f"head_{head}"), texts, number=True))
    columns.append(Column(say_in("head_unit"), [printable(one.unit) for one in shown]))
    print_columns(console(), columns)
    if len(shown) < len(whole):
        told = {"shown": say_in.number(len(shown)), "number": say_in.number(len(whole))}
        typer.echo(say_in("tables_shown", **told))
    for one in shown:
        if one.statistic is not None and one.statistic.refusal is not None:
            typer.echo(f"{printable(one.title)}: {printable(str(one.statistic.refusal))}", err=True)
    if any(own is not None for own in reliable):
        say(say_in("reliable_rows"))
    say(release.statement.text)
    if release.size.total is not None:
        total = release.size.total.text(say_in)
        first, *others = dict.fromkeys(release.size.periods) or ("",)
        periods = say_in("range", low=first, high=others[-1]) if others else first
        where = say_in("records_of", periods=periods, total=total)
        typer.echo(where if periods else say_in("records_in", total=total))
    warn(release.warnings)


Answered = Sequence[tuple[str, str, mdp.ResultTable]]
"""What questions are called, what their figures measure where no table says so, and their answers."""


def answer(
    folder: ReleaseFolder,
    queries: Annotated[
        list[str] | None,
        Argument(
            metavar="QUERY",
            help="Workload entries as YAML, inline or in files: 'product: {age: {ranges: [[0, 17]]}}', or "
            "statistics: 'quantile: {age: [0.25, 0.5, 0.75]}, by: [sex]'.",
        ),
    ] = None,
    sql: Annotated[
        str | None,
        Option(
            metavar="STATEMENT",
            help="Instead of QUERY: SQL with counts, sums, averages, variances and arithmetic on them, or a "
            "file with it. HAVING, ORDER BY and LIMIT are applied to the noisy estimates.",
        ),
    ] = None,
    confidence: Confidence = None,
    out: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Write every answer to a new file, by its ending: .csv, .parquet or .json."
        ),
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    every: AllOption = False,
) -> None:
    """Answer new queries from a release, without the data: counts, and statistics of counts.

    It costs no further budget. Every answer comes with its standard error or its interval. A query that the
    measurement does not determine is rejected, with the reason. The terminal shows figures as `show` does,
    by the rules of the publication; --csv, --json and --out have every estimate with all digits.
    """
    asked = queries or []
    if as_json and as_csv:
        raise wrong("--csv", "--json too", "one of the two", "conflict")
    if bool(asked) == (sql is not None):
        found = "QUERY and --sql" if asked else "neither QUERY nor --sql"
        raise wrong("query", found, "one of the two", "conflict")
    check_output("--out", out, force=force, endings=(".csv", ".parquet", ".json"))
    entries = read_questions(asked)
    statement = None if sql is None else _statement(sql)
    release = mdp.load_release(folder, confidence=confidence)
    if not (as_json or as_csv or out is not None):
        release = release.for_readers()
    tables: list[tuple[str, str, mdp.ResultTable]] = []
    if statement is not None:
        tables.append(("", "", release.sql(statement)))
    for place, entry in entries:
        with within(*place):
            tables.append((*_called(entry, release.domain), release.answer(entry)))
    if out is not None:
        _write(out, release, tables)
    if as_json:
        typer.echo(_json(release, tables))
    elif out is None and not as_csv:
        _show(release, tables, every)
    else:
        _warn(release)
        rows = sum(table.num_rows for *_, table in tables)
        typer.echo(_one(tables).to_csv() if as_csv else f"{rows:,} answers written to {out}.", nl=not as_csv)


def _statement(sql: str) -> str:
    """Return the statement that a text is, or a file holds."""
    expected = "a SQL statement, or a file with one"
    text = text_of("--sql", sql, expected)
    if text is None and sql.endswith(".sql") and len(sql.split()) == 1:
        raise wrong("--sql", f"{sql!r}, which is no file", expected, "file-missing")
    return sql if text is None else text


def _show(release: mdp.Release, tables: Answered, every: bool) -> None:
    from matrixdp.answers.shown import Shown
    from matrixdp.cli.tables import console, print_table

    if not release.private:
        typer.secho(NOT_PRIVATE, bold=True, fg="red")
    for title, measures, table in tables:
        if len(tables) > 1 or (title and not measures):
            say(title, bold=True)
        shown = Shown(table.to_arrow(), measures, release.presentation, None if every else _SHOWN)
        print_table(console(), shown, release.confidence)
    if release.series is not None and not release.measurement.whole:
        name, published = release.series
        say(f"Known through {release.domain[name].label(published[-1] - 1)}: rows of later periods follow.")
    if not every and any(table.num_rows > _SHOWN for *_, table in tables):
        typer.echo("--all shows every one; --json and --csv print them.")


def _called(entry: Any, domain: Domain) -> tuple[str, str]:
    """Return what a question is called, and what its counts measure; tables of statistics say it."""
    if isinstance(entry, StatisticEntry):
        return entry.called(domain, group_title), ""
    counts = not isinstance(entry, SqlEntry | SqlFileEntry) and entry.expand(domain)
    return in_words(entry), DIFFERENCE if counts and any(map(subtracts, counts)) else "records"


def _write(out: Path, release: mdp.Release, tables: Answered) -> None:
    """Write answers to a file."""
    from matrixdp.releases.files import privacy_mark
    from matrixdp.storage.archive import arrow_writer, whole_file

    if out.suffix.lower() == ".csv":
        _one(tables).to_csv(out)
        return
    if out.suffix.lower() == ".json":
        write_whole(out, f"{_json(release, tables)}\n")
        return
    table = _one(tables).to_arrow()
    known = table.schema.metadata or {}
    said = {b"matrixdp": privacy_mark(release.private)}
    if b"matrixdp" in known:
        said[b"statistic"] = known[b"matrixdp"]
    table = table.replace_schema_metadata(said)
    with whole_file(out) as made, arrow_writer(made, table.schema, compression="zstd") as writer:
        writer.write_table(table)


def _json(release: mdp.Release, tables: Answered) -> str:
    """Return answers as one JSON object: under ``answers``, or under ``tables`` where there are several."""
    written: dict[str, object] = {"private": release.private, "confidence": release.confidence}
    if len(tables) == 1:
        written |= tables[0][-1].as_dict()
    else:
        written["tables"] = [{"name": name, **table.as_dict()} for name, _, table in tables]
    return _dumped(written)


def _dumped(found: object) -> str:
    return json.dumps(found, ensure_ascii=False, default=str, allow_nan=False)


def _one(tables: Answered) -> mdp.ResultTable:
    """Return answers as one table: several below one another, with their names in a first column."""
    from matrixdp.answers.table import joined

    if len(tables) == 1:
        return tables[0][-1]
    return mdp.ResultTable(joined([(name, table) for name, _, table in tables], "table"))


def verify(
    folder: Annotated[
        Path,
        Argument(
            metavar="DIR", help="The folder that `release` or `model` wrote, or the file of `discover`."
        ),
    ],
    ledger: Annotated[
        Path | None, Option(metavar="FILE", help="Check that this ledger records the spend.")
    ] = None,
    key: Annotated[
        Path | None, Option(metavar="KEY", help="Check that the holder of this public key signed it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a release, a model of one, or a discovered domain, without the data: all is computed again.

    Cost, digests, statement and every answer; with their options, the signature and the ledger. One line for
    each subject: ok, FAILED, or not checked. Exit status: 0 if nothing failed, 1 if something did, 2 for
    wrong use.
    """
    from matrixdp.model.folder import is_model

    model, discovered = is_model(folder), folder.is_file()
    if discovered and key is not None:
        raise wrong("--key", "it with a discovered domain", "no key: they are not signed", "not-supported")
    if model and (ledger is not None or key is not None):
        expected = "the folder of a release: models are neither debited nor signed"
        raise wrong("DIR", f"the model {folder}", expected, "not-supported")
    with Reporter() as reporter:
        progress = reporter.counter("computing answers again")
        if model:
            found = mdp.verify_model(folder, progress=progress)
        elif discovered:
            found = mdp.verify_discovery(folder, ledger=ledger)
        else:
            found = mdp.verify_release(folder, ledger=ledger, key=key, progress=progress)
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
    else:
        for finding in found:
            outcome = "FAILED" if finding.outcome == "failed" else finding.outcome
            typer.echo(f"{outcome:<12} {finding.subject:<12} {printable(finding.words)}")
        what = "model" if model else "discovery" if discovered else "release"
        verdict = "all checks passed" if found.holds else f"FAILED: the {what} is not what it says"
        typer.echo(f"{found.folder}: {verdict}.")
    if not found.holds:
        raise typer.Exit(1)


_ReportOut = Annotated[
    Path | None,
    Option(
        metavar="FILE", help="Where to write (default: DIR.html beside the folder; with --markdown, stdout)."
    ),
]


def report(
    folder: ReleaseFolder,
    out: _ReportOut = None,
    title: Annotated[
        str | None,
        Option(metavar="TEXT", help="The title (default: the publication's, or the folder's name)."),
    ] = None,
    suppress_above: SuppressAbove = None,
    within_range: WithinRange = False,
    round_to: RoundTo = None,
    publication: Texts = None,
    language: _Language = None,
    words: _WordsFile = None,
    maps: Annotated[
        list[str] | None,
        Option(
            "--map",
            metavar="ATTRIBUTE=FILE[:PROPERTY]",
            help="Draw maps of the tables about an attribute of areas, with the outlines of a GeoJSON file. "
            "Its features are named by a property: the one that fits, or PROPERTY. May be repeated.",
        ),
    ] = None,
    files: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Link to the files of a folder beside the page, written by `show --export DIR`.",
        ),
    ] = None,
    markdown: Annotated[
        bool, Option("--markdown", help="Only how the release came about, for a reviewer, in Markdown.")
    ] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a release as one HTML page.

    \b
    - main points and key figures, as the publication section of the specification says
    - each table: a chart, rows by columns with totals, a searchable list with margins, a map, CSV
    - the method in a paragraph; folded below it how the figures are protected, the accuracy of each table,
      compared with per-query noise and with the lower bound, and how the release came about

    The page needs no network and no other file. It fits phones and follows light and dark mode.
    """  # noqa: D301 - click reads the character itself
    if markdown:
        if as_json:
            raise wrong("--json", "it beside --markdown", "one of the two", "conflict")
        _explain(folder, out, force)
        return
    whole = folder.resolve()
    path = whole.parent / f"{whole.name}.html" if out is None else out
    check_output("--out", path, force=force)
    if path.resolve().is_relative_to(whole):
        found = f"{str(path)!r}, in the folder of the release"
        raise wrong("--out", found, "a file outside it", "no-place")
    if files is not None and files.resolve().parent != path.resolve().parent:
        raise wrong("--files", str(files), f"a folder beside the page, in {path.parent}", "no-place")
    if words is not None:
        mdp.register_words(words)
    named = dict(_map(text) for text in maps or [])
    with Reporter() as reporter:
        reporter.stage("drawing the page")
        page = mdp.report_release(
            folder,
            title=title,
            suppress_above=suppress_above,
            within_range=within_range or None,
            round_to=round_to,
            publication=texts_of(publication),
            language=language,
            maps=named,
            exported=files,
        )
    write_whole(path, page)
    if language is not None:
        _warn_of_texts(mdp.load_release(folder), language)
    size = len(page.encode())
    typer.echo(
        json.dumps({"file": str(path), "bytes": size}) if as_json else f"{path}: {size / 1000:,.0f} KB."
    )


def _map(text: str) -> tuple[str, str]:
    attribute, found, path = text.partition("=")
    if not found or not attribute or not path:
        raise wrong("--map", repr(text), "ATTRIBUTE=FILE or ATTRIBUTE=FILE:PROPERTY", "specification")
    return attribute, path


def _explain(folder: Path, out: Path | None, force: bool) -> None:
    check_output("--out", out, force=force)
    text = mdp.explain_release(folder)
    if out is not None:
        write_whole(out, text)
        typer.echo(f"{out}: {len(text.splitlines())} lines.")
    elif sys.stdout.isatty():
        from rich.markdown import Markdown

        from matrixdp.cli.tables import console

        screen = console()
        with screen.capture() as capture:
            screen.print(Markdown(text))
        typer.echo(capture.get(), nl=False)
        if capture.get().count("…") > text.count("…"):
            typer.echo("Numbers that end in … are cut; with --out FILE.md every one is whole.", err=True)
    else:
        typer.echo(text, nl=False)
