"""The commands ``release``, ``recover``, ``keys`` and ``sign``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from matrixdp.cli.app import ForceOption, guarded
from matrixdp.cli.ledger import LedgerOption
from matrixdp.cli.options import (
    CertifyOption,
    Confidence,
    DatabaseTable,
    MechanismOption,
    NoiseOption,
    Objective,
    ObjectiveOption,
    OptionOption,
    ReleaseFolder,
    Spec,
    SubSolverOption,
    mechanism_options,
)
from matrixdp.errors import SafeNote, SpecificationError

if TYPE_CHECKING:
    from matrixdp.privacy import Budget
    from matrixdp.releases import Release, SigningKey

# The command ``recover``.

_Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="Where the release was to be, or the folder it left.")
]


@guarded
def recover(folder: _Folder, force: ForceOption = False) -> None:
    """Complete a release that was stopped after its measurement was written whole.

    Nothing more is spent and the table is not read again: the stopped release had spent its budget. If no
    measurement was whole, there is nothing to recover.
    """
    from matrixdp.cli.console import Reporter
    from matrixdp.releases import recover_release

    with Reporter() as reporter:
        place = recover_release(folder, force=force, progress=reporter.counter("writing answers"))
    files = ", ".join(sorted(path.name for path in place.iterdir()))
    typer.echo(f"{place}: the release is complete ({files}); nothing more was spent.")


# The commands ``keys`` and ``sign``, and the options with which a release is signed.

SignOption = Annotated[
    Path | None,
    typer.Option(
        "--sign", metavar="KEY", help="Sign the release with a private key that `matrixdp keys` made."
    ),
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help="A file whose first line is the passphrase of the private key.",
    ),
]
_Path = Annotated[
    Path, typer.Argument(metavar="KEY", help="Where the private key goes; the public one is KEY.pub.")
]
_Key = Annotated[Path, typer.Option("--key", metavar="KEY", help="The private key, a PEM file.")]


def signing_key(path: Path | None, passphrase_file: Path | None) -> SigningKey | None:
    """Return the key that a release is signed with; what is wrong with it is found here, first."""
    from matrixdp.releases import SigningKey, read_passphrase

    if path is not None:
        return SigningKey.load(path, None if passphrase_file is None else read_passphrase(passphrase_file))
    if passphrase_file is not None:
        raise SpecificationError.at(
            ("--passphrase-file",), "it without --sign", "a key that it belongs to", code="conflict"
        )
    return None


@guarded
def keys(path: _Path, passphrase_file: PassphraseFile = None) -> None:
    """Make a pair of Ed25519 keys for signatures, in two PEM files.

    The private key signs releases (`matrixdp release --sign`, `matrixdp sign`) and stays with you; with a
    passphrase it is encrypted. The public key is for everybody who verifies them. Existing files are never
    replaced.
    """
    from matrixdp.releases import PublicKey, make_keys, read_passphrase

    passphrase = None if passphrase_file is None else read_passphrase(passphrase_file)
    private, public = make_keys(path, passphrase)
    typer.echo(f"private key: {private} (keep it secret)")
    typer.echo(f"public key: {public} (publish it where releases are not)")
    typer.echo(f"fingerprint: {PublicKey.load(public).fingerprint}")


@guarded
def sign(
    folder: ReleaseFolder, key: _Key, passphrase_file: PassphraseFile = None, force: ForceOption = False
) -> None:
    """Sign an existing release, after checking it.

    Writes signature.json: the signature of release.json, which lists the digests of all other files.
    """
    from matrixdp.releases import SigningKey, read_passphrase, sign_release

    passphrase = None if passphrase_file is None else read_passphrase(passphrase_file)
    signing = SigningKey.load(key, passphrase)
    path = sign_release(folder, signing, force=force)
    typer.echo(f"{path}: signed with the key {signing.public.fingerprint}")


#: The exit status of a release whose total is not the number of records that was expected.
UNEXPECTED = 3

_MAX_ANSWERS = 50_000_000
_SHOWN = 8
_SMALL = 100_000


_Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the release goes: a new folder.")]
_Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="The table, in place of the specification's: a path, or an address such as postgresql://host/base.",
    ),
]
_Saved = Annotated[
    Path | None,
    typer.Option("--strategy", metavar="STRATEGY", help="Measure a strategy that `select --save` wrote."),
]
_Csv = Annotated[bool, typer.Option("--csv", help="Write the answers as CSV too.")]
_MaxAnswers = Annotated[
    int, typer.Option("--max-answers", min=0, help="With more queries than this, write only the measurement.")
]
_Seed = Annotated[
    int | None,
    typer.Option(
        "--seed-not-private",
        min=0,
        metavar="N",
        help="Draw the noise from a seed, to repeat a demonstration. THE RESULT IS NOT PRIVATE.",
    ),
]
_Expect = Annotated[
    int | None,
    typer.Option(
        "--expect",
        min=1,
        max=2**53 - 1,
        metavar="N",
        help="The number of records the table should have, a public figure: the exit status is 3 if the "
        "released total differs from it by more than noise.",
    ),
]


@guarded
def release(
    spec: Spec,
    out: _Out,
    data: _Data = None,
    table: DatabaseTable = None,
    strategy: _Saved = None,
    mechanism: MechanismOption = "auto",
    noise: NoiseOption = "auto",
    objective: ObjectiveOption = Objective.sum,
    sub_solver: SubSolverOption = None,
    option: OptionOption = None,
    certify: CertifyOption = False,
    confidence: Confidence = None,
    csv: _Csv = False,
    max_answers: _MaxAnswers = _MAX_ANSWERS,
    force: ForceOption = False,
    ledger: LedgerOption = None,
    sign: SignOption = None,
    passphrase_file: PassphraseFile = None,
    expect: _Expect = None,
    seed_not_private: _Seed = None,
) -> None:
    """Measure a table once and write the answer to every query.

    Selects a strategy (or loads one), adds exact Gaussian or Laplace noise to what it measures, and writes
    answers.parquet (one row for each query, with its standard error and interval), release.json (what was
    measured and the privacy statement) and measurement.mdp, from which `matrixdp answer` answers further
    queries at no further cost. The folder appears whole or not at all. With accuracy targets, it finds the
    smallest budget that meets them and prints it before spending anything. With a ledger, it stops before
    anything is read if too little is left; the budget is debited before any record is counted.
    """
    from matrixdp.cli.console import Reporter
    from matrixdp.cli.options import warn
    from matrixdp.specification import load_specification
    from matrixdp.strategy import pipeline

    key = signing_key(sign, passphrase_file)
    given = mechanism_options(mechanism, sub_solver, option, certify=_certified(certify, strategy))
    written = load_specification(spec, require_privacy=True)
    warn(written, expect)
    debited = written.ledger if ledger is None else ledger
    if debited is not None and seed_not_private is not None:
        typer.echo(f"Seeded noise: {debited} is not debited.", err=True)

    def tell(budget: Budget) -> None:
        if written.targets:
            typer.echo(f"The smallest budget that meets the targets, which is spent: {budget!r}", err=True)

    with Reporter(elapsed=False) as reporter:
        result = pipeline.release(
            written,
            out,
            table=data,
            table_name=table,
            strategy=strategy,
            mechanism=mechanism,
            noise=noise,
            objective=objective.value,
            options=given,
            ledger=debited,
            confidence=0.95 if confidence is None else confidence,
            expect=expect,
            csv=csv,
            max_answers=max_answers,
            key=key,
            force=force,
            seed_not_private=seed_not_private,
            before_measuring=tell,
            progress=reporter.stage,
        )
    _show(result, out, max_answers)


def _certified(certify: bool, saved: Path | None) -> bool:
    """Return whether to certify, which is refused for what was selected before."""
    if certify and saved is not None:
        expected = "one of the two: `select --certify --save` certifies a strategy that is saved"
        raise SpecificationError.at(("--certify",), "a saved strategy beside it", expected, code="conflict")
    return certify


def _show(result: Release, out: Path, max_answers: int) -> None:

    try:
        _print(result, out, max_answers)
    except BaseException as error:
        spent = "The budget was spent: " + repr(result.measurement.authorization.budget)
        error.add_note(
            SafeNote(f"{spent if result.private else 'Seeded noise'}. The release is whole in {out}")
        )
        raise
    if result.size.agrees is False:
        raise typer.Exit(UNEXPECTED)


def _print(result: Release, out: Path, max_answers: int) -> None:
    # Neither time nor memory is told: both grow with the number of records.
    import pyarrow as pa
    from rich.text import Text

    from matrixdp.answers.table import AnswerColumns
    from matrixdp.cli.console import print_facts
    from matrixdp.cli.tables import NOT_PRIVATE, console, print_answers, print_statistic

    screen = console()
    if not result.private:
        screen.print(f"{NOT_PRIVATE}\n", style="bold")
    queries = result.workload.queries
    small = [group for group in result.workload if group.queries <= _SMALL]
    few = small[:: -(-len(small) // _SHOWN)] if small else []
    if few and queries <= max_answers:
        # one answer of each of some groups, so that more than one kind is seen
        columns = AnswerColumns(result.domain, few)
        batches = [batch.slice(batch.num_rows // 2, 1) for batch in result.batches(few, columns)]
        shown = pa.Table.from_batches(batches, schema=columns.schema)
        print_answers(screen, shown, result.confidence, _SHOWN)
        screen.print(f"A few of {queries:,} answers.")
    for asked in result.asked:
        screen.print(Text(asked.name, style="bold"))
        if asked.table is None:
            screen.print(Text(f"not computed: {asked.refusal}"))
        else:
            print_statistic(screen, asked.table, result.confidence, _SHOWN)
    screen.print("Privacy", style="bold")
    screen.print(Text(result.statement.text))
    facts = {
        "folder": str(out),
        "files": ", ".join(sorted(path.name for path in out.iterdir())),
        "more answers": f"matrixdp answer {out} QUERY, free of further budget",
    }
    noisy = f"(released, with noise; {100 * result.confidence:g}% confidence)"
    if result.size.total is not None:
        facts["records"] = f"{result.size.total} in the domain {noisy}"
    for name, found in result.out_of_domain_counts.items():
        facts[f"out of domain{'' if name is None else f', {name}'}"] = f"{found} records {noisy}"
    print_facts(facts.items())
    for sentence in result.size.warnings:
        typer.echo(f"Warning: {sentence}.", err=True)
    if queries > max_answers:
        screen.print(
            f"{queries:,} answers are more than --max-answers {max_answers:,}, so only the measurement was "
            "written: `matrixdp answer` computes them."
        )
