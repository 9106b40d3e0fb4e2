"""The commands ``model`` and ``synthesize``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

import matrixdp as mdp
from matrixdp.cli.app import ForceOption, JsonOption, wrong
from matrixdp.cli.console import NOT_PRIVATE, Reporter, print_facts, say
from matrixdp.cli.options import Confidence, ReleaseFolder
from matrixdp.display import counted
from matrixdp.forms import describe_value


def model(
    folder: ReleaseFolder,
    out: Annotated[Path, Option(metavar="MODEL", help="Where the model goes: a new folder.")],
    method: Annotated[
        str,
        Option(
            metavar="<auto|mixture|local|integers>",
            help="mixture: a mixture of products, which answers every query and has records. local: a table "
            "for each pair of attributes, in seconds, for queries of at most two attributes; no records. "
            "integers: whole numbers for every area of a tree that add up to those of larger areas, where "
            "the full table of some attributes is asked at each area; no records. "
            "auto: mixture, or local where the tests of its fit reject the mixture and pass the tables of "
            "pairs.",
        ),
    ] = "auto",
    seed: Annotated[int, Option(min=0, help="Seeds the fit, not the noise; kept in model.json.")] = 0,
    spec: Annotated[
        Path | None,
        Option(
            metavar="SPEC",
            help="A specification over this domain: its `invariants` and `structural_zeros` are kept.",
        ),
    ] = None,
    components: Annotated[
        int | None, Option(min=1, help="Components of each mixture (default: as many as noise explains).")
    ] = None,
    steps: Annotated[int | None, Option(min=1, help="Steps of the fit of each mixture.")] = None,
    allow_poor_fit: Annotated[
        bool, Option("--allow-poor-fit", help="Keep a model that its own tests reject; it says so.")
    ] = False,
    confidence: Confidence = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make non-negative, consistent answers of a release, without the data.

    It costs no further budget. MODEL gets answers_consistent.parquet: the rows of answers.parquet in the same
    order, with the column `modelled` beside the unbiased estimate, its standard error and interval, and
    `outside`, which says whether it lies outside that interval. It gets
    model.json, which says how the model was made and tested, and what `matrixdp synthesize MODEL` needs.
    Modelled answers are biased; standard errors and intervals are those of the unbiased estimates. A model
    that does not fit the release is rejected, with the reason.
    """
    from matrixdp.model.folder import check_out

    check_out(out, force)
    released = mdp.load_release(folder, confidence=confidence)
    known = {} if spec is None else _known(spec, released)
    with Reporter() as reporter:
        made = released.model(
            method,
            seed=seed,
            components=components,
            steps=steps,
            **known,
            accept_anyway=allow_poor_fit,
            progress=reporter.counter("fitting a model"),
        )
        made.save(out, force=force, progress=reporter.counter("writing answers"))
    if as_json:
        typer.echo((out / "model.json").read_text(encoding="utf-8"), nl=False)
    else:
        _print(made, folder, out)


def _known(path: Path, released: mdp.Release) -> dict[str, Any]:
    """Return the public facts in a specification that a model can keep."""
    given = mdp.load_specification(path)
    if given.workload.domain != released.workload.domain:
        expected = "the specification that the release was made from, or one with the same domain"
        raise wrong("--spec", "a specification with another domain", expected)
    return {"invariants": given.invariants, "structural_zeros": given.structural_zeros}


def _tell(private: bool, facts: dict[str, str], last: str) -> None:
    if not private:
        typer.secho(f"{NOT_PRIVATE}\n", bold=True)
    print_facts(facts)
    say(f"\n{last}")


def _print(made: mdp.Model, folder: Path, out: Path) -> None:
    from matrixdp.model.folder import BIASED

    facts = {"method": made.method, **(_drift(made) if made.method == "integers" else _fit(made))}
    known = {"invariants": "invariant", "structural_zeros": "structural zero"}
    kept = [counted(len(made.made[name]), one) for name, one in known.items() if name in made.made]
    if kept:
        facts["kept exactly"] = ", ".join(kept)
    facts["answers"] = f"{made.workload.queries:,}, in {out / 'answers_consistent.parquet'}"
    if made.method == "mixture":
        facts["records"] = f"matrixdp synthesize {shlex.quote(str(out))} --rows auto --out people.parquet"
    facts["of"] = f"{folder}, measurement {made.measurement_digest[:16]}"
    _tell(made.private, facts, BIASED)


def _drift(made: mdp.Model) -> dict[str, str]:
    """Return how far integers lie from the estimates on average, by level, and what clipping would add."""
    told = "mean of integers less estimates, by size of the estimate; clipped: that of the estimates at the "
    told += "smallest areas, rounded, 0 where they are below, and summed"
    facts = {"drift": told}
    for one in made.made["levels"]:
        sizes = [f"{name}: {own['mean']:+.2f}" for name, own in one["drift"].items()]
        facts[f"  {one['level']}"] = f"{', '.join(sizes)}; clipped: {one['clipped']:+.2f}"
    return facts


def _fit(made: mdp.Model) -> dict[str, str]:
    tests: dict[str, Any] = dict(made.tests)
    fit = f"a loss of {tests['loss']:,.0f}, and at most {tests['limit']:,.0f} is explained by noise; "
    if tests["tables_failed"]:
        far = f"{tests['tables_failed']:,} are too far off: {'; '.join(tests['failed'])}"
        fit += f"of {tests['tables']:,} measured tables {far}"
    else:
        fit += f"so is each of the {tests['tables']:,} measured tables"
    facts = {
        "seed": str(made.seed),
        "fit": fit,
        "accepted": "yes, by the tests of its fit" if made.accepted else "NO: its tests reject it",
    }
    if "rejected" in made.made:
        facts["not a mixture"] = "the tests of its fit reject it; of both in model.json"
    return facts


def synthesize(
    folder: Annotated[Path, Argument(metavar="MODEL", help="The folder that `model` wrote.")],
    out: Annotated[
        Path,
        Option(
            metavar="FILE",
            help="Where the records go: a new .parquet or .csv file. FILE.json beside it describes them.",
        ),
    ],
    rows: Annotated[
        str, Option(metavar="<auto|N>", help="How many; auto: the number of records as released.")
    ] = "auto",
    seed: Annotated[
        int | None, Option(min=0, help="The same seed, the same records (default: the model's).")
    ] = None,
    values: Annotated[
        str,
        Option(
            metavar="<labels|data>",
            help="labels: category labels and bin ranges, as in the answers. data: the original columns and "
            "codes; binned values become bin midpoints.",
        ),
    ] = "labels",
    levels: Annotated[bool, Option("--levels", help="A column for each level of an attribute too.")] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write synthetic records. Tables counted from them match the model's, rounded to whole numbers.

    No record belongs to a person, and none costs any budget. The records are biased as the model is, and how
    attributes relate that were not measured together is a guess of the model.
    """
    from matrixdp.model.records import beside

    if rows != "auto" and (not rows.isascii() or not rows.isdigit() or len(rows) > 15):
        raise wrong("--rows", describe_value(rows), "auto, or a number of records")
    number = None if rows == "auto" else int(rows)  # the model says how many
    with Reporter() as reporter:
        reporter.stage("checking the model")
        made = mdp.Model.load(folder)
        progress = reporter.counter("writing records")
        made.save_records(
            out, number, seed=seed, values=values, levels=levels, force=force, progress=progress
        )
    written = beside(out).read_text(encoding="utf-8")
    if as_json:
        typer.echo(written, nl=False)
        return
    record = json.loads(written)
    facts = {
        "file": str(out),
        "what it is": str(beside(out)),
        "records": f"{record['rows']:,}",
        "columns": ", ".join(record["columns"]),
        "seed": str(record["seed"]),
        "model": made.method + ("" if made.accepted else ", which its own tests REJECT"),
    }
    _tell(made.private, facts, record["synthetic"])
