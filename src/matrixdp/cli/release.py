"""The commands ``release``, ``recover``, ``keys`` and ``sign``."""

from __future__ import annotations

import shlex
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

import matrixdp as mdp
from matrixdp.cli import options
from matrixdp.cli.app import ForceOption, JsonOption, wrong
from matrixdp.cli.console import NOT_PRIVATE, Reporter, print_facts, print_release, reliable_rows, say
from matrixdp.errors import SafeNote
from matrixdp.privacy.budget import weak_privacy
from matrixdp.queries.workload import MAX_ANSWERS

if TYPE_CHECKING:
    from matrixdp.releases import SizeCheck

PassphraseFile = Annotated[
    Path | None, Option(metavar="FILE", help="A file whose first line is the passphrase of the private key.")
]


def recover(
    folder: Annotated[
        Path, Argument(metavar="DIR", help="Where the release was to be, or the folder it left.")
    ],
    force: ForceOption = False,
) -> None:
    """Complete a release that was stopped after its measurement was written whole.

    Nothing more is spent and the table is not read again: the stopped release had spent its budget. If no
    measurement was whole, there is nothing to recover.
    """
    with Reporter() as reporter:
        place = mdp.recover_release(folder, force=force, progress=reporter.counter("writing answers"))
    typer.echo(f"{place}: the release is complete ({_files(place)}); nothing more was spent.")
    typer.echo(f"It is not signed: `matrixdp sign {shlex.quote(str(place))} --key KEY` signs it.")
    judge(mdp.load_release(place).size)


def _files(folder: Path) -> str:
    return ", ".join(sorted(path.name for path in folder.iterdir()))


def passphrase(file: Path | None) -> bytes | None:
    """Return the passphrase that a file holds, if one is named."""
    from matrixdp.releases import read_passphrase

    return None if file is None else read_passphrase(file)


def keys(
    path: Annotated[
        Path, Argument(metavar="KEY", help="Where the private key goes; the public one is KEY.pub.")
    ],
    passphrase_file: PassphraseFile = None,
) -> None:
    """Make a pair of Ed25519 keys for signatures, in two PEM files.

    The private key signs releases (`matrixdp release --sign`, `matrixdp sign`) and stays with you; with a
    passphrase it is encrypted. The public key is for everybody who verifies them. Existing files are never
    replaced.
    """
    private, public = mdp.make_keys(path, passphrase(passphrase_file))
    typer.echo(f"private key: {private} (keep it secret)")
    typer.echo(f"public key: {public} (publish it where releases are not)")
    typer.echo(f"fingerprint: {mdp.PublicKey.load(public).fingerprint}")


def sign(
    folder: options.ReleaseFolder,
    key: Annotated[Path, Option(metavar="KEY", help="The private key, a PEM file.")],
    passphrase_file: PassphraseFile = None,
    force: ForceOption = False,
) -> None:
    """Sign an existing release, after checking it.

    Writes signature.json: the signature of release.json, which lists the digests of all other files.
    """
    signing = mdp.SigningKey.load(key, passphrase(passphrase_file))
    path = mdp.sign_release(folder, signing, force=force)
    typer.echo(f"{path}: signed with the key {signing.public.fingerprint}")


#: The exit status of a release whose total is not the number of records that was expected.
UNEXPECTED = 3

_SMALL = 100_000


def release(
    spec: options.Spec,
    out: Annotated[Path, Option(metavar="DIR", help="Where the release goes: a new folder.")],
    data: Annotated[
        str | None,
        Option(
            help="The table, in place of the specification's: a path, or an address such as "
            "postgresql://host/base."
        ),
    ] = None,
    table: options.DatabaseTable = None,
    strategy: Annotated[
        Path | None, Option(metavar="STRATEGY", help="Measure a strategy that `select --save` wrote.")
    ] = None,
    mechanism: options.MechanismOption = "auto",
    noise: options.NoiseOption = "auto",
    objective: options.ObjectiveOption = "sum",
    sub_solver: options.SubSolverOption = None,
    option: options.OptionOption = None,
    certify: options.CertifyOption = False,
    confidence: options.Confidence = None,
    csv: Annotated[bool, Option("--csv", help="Write the answers as CSV too.")] = False,
    max_answers: Annotated[
        int, Option(min=0, help="With more queries than this, write only the measurement.")
    ] = MAX_ANSWERS,
    force: ForceOption = False,
    ledger: Annotated[
        Path | None,
        Option(metavar="LEDGER", help="The ledger that is debited, in place of the specification's."),
    ] = None,
    sign: Annotated[
        Path | None,
        Option(metavar="KEY", help="Sign the release with a private key that `matrixdp keys` made."),
    ] = None,
    passphrase_file: PassphraseFile = None,
    expect: Annotated[int | None, options.expected()] = None,
    seed_not_private: Annotated[
        int | None,
        Option(
            min=0,
            metavar="N",
            help="Draw the noise from a seed, to repeat a demonstration. THE RESULT IS NOT PRIVATE.",
        ),
    ] = None,
    accept_weak_privacy: options.AcceptWeak = False,
    workers: Annotated[
        int | None,
        Option(min=1, metavar="N", help="Count and measure areas in N processes at once: see `Workers`."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a table once and write the answer to every query.

    Selects a strategy (or loads one), adds exact Gaussian or Laplace noise to what it measures, and writes
    answers.parquet (one row for each query, with its standard error and interval; many answers at levels of
    areas: a folder of such files), release.json (what was measured and the privacy statement) and
    measurement.mdp, from which `matrixdp answer` answers further queries at no further cost. The folder
    appears whole or not at all. With accuracy targets, it finds the smallest budget that meets them and
    prints it before spending anything. With a ledger, it stops before anything is read if too little is left;
    the budget is debited before any record is counted.
    """
    if passphrase_file is not None and sign is None:
        raise wrong("--passphrase-file", "it without --sign", "a key that it belongs to", "conflict")
    key = None if sign is None else mdp.SigningKey.load(sign, passphrase(passphrase_file))
    if certify and strategy is not None:
        expected = "one of the two: `select --certify --save` certifies a strategy that is saved"
        raise wrong("--certify", "a saved strategy beside it", expected, "conflict")
    chosen = options.mechanism_options(mechanism, option, certify=certify, sub_solver=sub_solver)
    written = mdp.load_specification(spec, require_privacy=True)
    options.warn(mdp.advice(written, expect))
    debited = written.ledger if ledger is None else ledger
    if debited is not None and seed_not_private is not None:
        typer.echo(f"Seeded noise: {debited} is not debited.", err=True)

    def tell(budget: mdp.Budget) -> None:
        if written.targets:
            options.warn(weak_privacy(budget))
            typer.echo(
                f"The smallest budget that meets the targets, which is spent: {budget.words}", err=True
            )

    with Reporter(elapsed=False) as reporter, ExitStack() as stack:
        pool = None
        if workers is not None:
            spawned = ProcessPoolExecutor(workers, get_context("spawn"))
            pool = mdp.Workers(stack.enter_context(spawned).map)
        result = mdp.release(
            written,
            out,
            table=data,
            table_name=table,
            strategy=strategy,
            mechanism=mechanism,
            noise=noise,
            objective=objective,
            options=chosen,
            ledger=debited,
            confidence=0.95 if confidence is None else confidence,
            expect=expect,
            csv=csv,
            max_answers=max_answers,
            key=key,
            force=force,
            seed_not_private=seed_not_private,
            accept_weak_privacy=accept_weak_privacy,
            before_measuring=tell,
            progress=reporter.stage,
            workers=pool,
        )
    try:
        if as_json:
            print_release(result, out)
        else:
            _print(result, out, max_answers)
    except BaseException as error:
        spent = f"The budget was spent: {result.measurement.authorization.budget.words}"
        told = spent if result.private else "Seeded noise"
        error.add_note(SafeNote(f"{told}. The release is whole in {out}"))
        raise
    judge(result.size)


def judge(size: SizeCheck) -> None:
    """Print what looks wrong with the number of records, and end with another status if it is unexpected."""
    options.warn(size.warnings)
    if size.agrees is False:
        raise typer.Exit(UNEXPECTED)


def _print(result: mdp.Release, out: Path, max_answers: int) -> None:
    # Neither time nor memory is printed: both grow with the number of records.
    from matrixdp.cli.tables import console, print_preview, print_rest

    spoken, queries = result.for_readers(), result.workload.queries
    if not result.private:
        typer.secho(f"{NOT_PRIVATE}\n", bold=True)
    if queries <= max_answers:
        few = spoken.glance()
        print_preview(console(), few)
        print_rest(len(few.rows), few.total, spoken.presentation.say)
        for words in spoken.presentation.words:
            say(words)
    for one in spoken.tables:
        if one.statistic is not None and one.statistic.refusal is not None:
            say(f"{one.title}: not computed: {one.statistic.refusal}")
    say("Privacy", bold=True)
    say(result.statement.text)
    facts = {
        "folder": str(out),
        "files": _files(out),
        "more answers": f"matrixdp answer {shlex.quote(str(out))} QUERY, free of further budget",
    }
    noisy = f"(released, with noise; {100 * result.confidence:g}% confidence)"
    judged = [(reliable_rows(result, one), one.rows) for one in result.tables] if queries <= _SMALL else []
    if known := [(own, rows) for own, rows in judged if own is not None]:
        good, rows = (sum(column) for column in zip(*known, strict=True))
        facts["reliable"] = f"{good:,} of {rows:,} counts have a standard error of at most a third of them"
    if result.size.total is not None:
        count = "that count " if result.measurement.authorization.budget.unit.id is not None else ""
        facts["records"] = f"{result.size.total} {count}in the domain {noisy}"
    for name, found in result.out_of_domain_counts.items():
        facts[f"out of domain{'' if name is None else f', {name}'}"] = f"{found} records {noisy}"
    print_facts(facts)
    if queries > max_answers:
        say(
            f"{queries:,} answers are more than --max-answers {max_answers:,}, so only the measurement was "
            "written: `matrixdp answer` computes them."
        )
