"""Options that several commands share, and what commands are given, checked before anything is done."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, final

import typer
from typer import Argument, Option

from matrixdp.cli.app import wrong
from matrixdp.errors import Problem, SpecificationError, WorkloadError
from matrixdp.forms import describe_value, nearest
from matrixdp.noise import NOISES
from matrixdp.privacy import Budget
from matrixdp.privacy.unit import MOST_RECORDS
from matrixdp.queries import Entry
from matrixdp.selection.registry import IN_WORDS, MECHANISMS, OF_OTHERS
from matrixdp.specification import Specification, entry_from_spec, load_specification, parse_yaml
from matrixdp.specification.load import read_document

ReleaseFolder = Annotated[Path, Argument(metavar="DIR", help="The folder that `release` wrote.")]
PictureOption = Annotated[
    Path | None, Option(metavar="FILE", help="Draw a picture: PNG, SVG or PDF by its ending.")
]
DatabaseTable = Annotated[str | None, Option(help="The table of a database.")]


def expected(where: str = "") -> Any:
    """Return the option of how many records a table should have somewhere."""
    told = (
        f"The number of records that the table should have{where}, a public figure: the exit status is 3 if "
        "the noisy one differs from it by more than noise."
    )
    return Option(min=1, max=MOST_RECORDS, metavar="N", help=told)


ExpectOption = Annotated[
    int | None,
    Option(
        "--expect",
        min=1,
        max=MOST_RECORDS,
        metavar="N",
        show_default="`max_records`",
        help="The number of records that the table should have, a public figure: says whether counts will be "
        "reliable.",
    ),
]


def noise_name(words: tuple[str, ...], value: str) -> str:
    """Return the name of a noise that there is, or one of some words."""
    names = (*words, *NOISES)
    if value not in names:
        raise typer.BadParameter(str(Problem((), repr(value), ", ".join(names), nearest(value, names))))
    return value


def _completed(names: Collection[str]) -> Callable[[str], list[str]]:
    return lambda incomplete: [name for name in ("auto", *names) if name.startswith(incomplete)]


Spec = Annotated[Path, Argument(metavar="SPEC", help="The specification: a YAML file.")]
MechanismOption = Annotated[
    str,
    Option(
        autocompletion=_completed(MECHANISMS),
        help="auto: the smallest expected error of those that fit. "
        + "".join(f"{name}: {words}. " for name, words in IN_WORDS.items())
        + "`matrixdp compare` shows them side by side, with the mechanisms of other papers: "
        + f"{', '.join(OF_OTHERS)}.",
        metavar="NAME",
    ),
]
NoiseOption = Annotated[
    str,
    Option(
        autocompletion=_completed(NOISES),
        parser=partial(noise_name, ("auto",)),
        metavar="<auto|gaussian|laplace>",
        help="gaussian, laplace, or auto: Laplace for pure differential privacy (epsilon alone), Gaussian "
        "for rho and mu, and for epsilon with delta whichever gives narrower intervals.",
    ),
]
ObjectiveOption = Annotated[
    Literal["sum", "max"],
    Option(help="What is minimized: the sum of the (weighted) variances of all queries, or the largest one."),
]
SubSolverOption = Annotated[
    str | None,
    Option(
        metavar="NAME",
        show_default="auto",
        help="How residual and querysmasher solve the sub-workload of a marginal: optimum (an error if it "
        "is too large), product (one product with row weights), fast (few iterations), or auto: the optimum "
        "where it fits, else a product.",
    ),
]
OptionOption = Annotated[
    list[str] | None,
    Option(
        metavar="NAME=VALUE",
        help="Another option of the mechanism, such as seed=1 or gap=1e-4; may be repeated.",
    ),
]
AcceptWeak = Annotated[
    bool,
    Option(
        "--accept-weak-privacy",
        help="Spend a budget above epsilon 10 or mu 3, which protects hardly anybody.",
    ),
]
CertifyOption = Annotated[bool, Option("--certify", help="Take longer for a higher lower bound.")]
Confidence = Annotated[float | None, Option(help="Confidence level of the intervals (default: 0.95).")]
SuppressAbove = Annotated[
    float | None,
    Option(
        metavar="CV",
        help="Show F in place of figures whose coefficient of variation is larger, such as 0.33.",
    ),
]
WithinRange = Annotated[
    bool, Option("--within-range", help="Show what is beyond its range, as counts below 0, as the end.")
]
RoundTo = Annotated[
    int | None, Option(min=1, metavar="N", help="Show counts as multiples of a number, such as 5.")
]
Texts = Annotated[
    Path | None,
    Option(
        "--publication",
        metavar="FILE",
        help="Take texts, key figures, order and footnotes from the `publication` of a YAML file: "
        "main points, say, which are written once the figures are there.",
    ),
]


def texts_of(file: Path | None) -> Mapping[str, object] | None:
    """Return the keys of a publication that a file holds: alone, or in a specification."""
    if file is None:
        return None
    value = read_document(file).value
    value = value.get("publication", value) if isinstance(value, Mapping) else value
    if not isinstance(value, Mapping):
        raise wrong("--publication", describe_value(value), "the keys of `publication`", "wrong-type")
    return value


def mechanism_options(
    mechanism: str, pairs: list[str] | None, *, certify: bool = False, **flags: str | int | None
) -> dict[str, Any]:
    """Return the options that a mechanism is given, checked to be its own, and whether to certify.

    Examples
    --------
    >>> mechanism_options("opt-0", ["seed=1"])
    {'seed': '1'}
    """
    from matrixdp.selection.auto import check_mechanism

    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    for pair in pairs or []:
        name, sign, value = pair.partition("=")
        if not sign:
            raise wrong("--option", repr(pair), "NAME=VALUE")
        given[name.replace("-", "_")] = value
    try:
        check_mechanism(mechanism, given)
    except WorkloadError as error:
        if error.problem is None:
            raise
        name = str(error.problem.path[0])
        own = name == "mechanism" or flags.get(name) is not None
        flag = f"--{name.replace('_', '-')}" if own else f"--option {name}"
        raise SpecificationError(replace(error.problem, path=(flag,)), error.code) from None
    return given | {"certify": True} if certify else given


def with_budget(path: Path) -> tuple[Specification, Budget]:
    """Return a specification and its budget."""
    written = load_specification(path, require_privacy=True)
    if written.budget is None:
        expected = (
            "a budget, at which errors are shown: {rho: 0.5}, {mu: 1.0} or {epsilon: 1.0, delta: 1.0e-6}"
        )
        raise SpecificationError.at(("privacy", "minimize"), "no budget", expected)
    return written, written.budget


def one_round(written: Specification) -> tuple[str, ...]:
    """Return, where a specification has two rounds, that a comparison is about one."""
    return ("rounds: 2 takes residual by default; this compares one round",) * (written.rounds > 1)


def warn(sentences: Iterable[str]) -> None:
    """Print sentences, such as likely mistakes, to stderr."""
    for sentence in sentences:
        typer.echo(f"Warning: {sentence}.", err=True)


@final
class _Teller(logging.Handler):
    """Prints what is logged: words around tables that a language lacks, and shares that were not reached."""

    def emit(self, record: logging.LogRecord) -> None:
        warn([record.getMessage()])


for _name in ("matrixdp.texts", "matrixdp.selection.shares"):
    logging.getLogger(_name).addHandler(_Teller())


def text_of(place: str, given: str, expected: str) -> str | None:
    """Return the text of the file that is named, or None where there is no such file."""
    if not os.path.isfile(given):  # noqa: PTH113 - no error where the path is none
        return None
    try:
        return Path(given).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise wrong(place, "a file that cannot be read as text", expected, "file-missing") from None


_EXPECTED = (
    "a workload entry such as 'product: {age: {ranges: [[0, 17]]}}' or 'quantile: {age: 0.5}', or a file "
    "with one or a list of them; a space follows each colon"
)


def read_questions(queries: Iterable[str]) -> list[tuple[tuple[str, ...], Entry]]:
    """Return the entries that texts or files hold, each with what errors call it where there are several."""
    written = [found for query in queries for found in entries_of(query)]
    if len(written) == 1:
        return [((), entry_from_spec(*written[0], "query"))]
    places = [f"query {number}" for number in range(1, len(written) + 1)]
    return [((place,), entry_from_spec(*one, place)) for one, place in zip(written, places, strict=True)]


def entries_of(query: str) -> list[tuple[Mapping[str, Any], Path]]:
    """Return the entries that a text or a file holds, and what their paths are relative to."""
    text = text_of("query", query, _EXPECTED)
    if text is None and ":" not in query:
        raise wrong("query", f"{query!r}, which is no file and no entry", _EXPECTED)
    value = _inline(query) if text is None else parse_yaml(text).value
    base = Path() if text is None else Path(query).parent
    listed: list[Any] = value if isinstance(value, list) else [value]
    if not listed:
        raise wrong("query", "an empty list", _EXPECTED, "empty")
    for entry in listed:
        if not isinstance(entry, Mapping):
            raise wrong("query", describe_value(entry), _EXPECTED, "wrong-type")
    return [(entry, base) for entry in listed]


def _inline(text: str) -> object:
    """Parse YAML, also the inside of a mapping without braces, as in ``cdf: age, by: [sex]``."""
    try:
        return parse_yaml(text).value
    except SpecificationError:
        with suppress(SpecificationError):
            return parse_yaml(f"{{{text}}}").value
        raise


PICTURES = (".png", ".svg", ".pdf")


def check_output(
    option: str, path: Path | None, *, force: bool = True, endings: Collection[str] = ()
) -> None:
    """Check that a file can be written, with one of some endings, before anything is computed.

    Without `force` it may not be there yet.
    """
    if path is None:
        return
    if endings and path.suffix.lower() not in endings:
        raise wrong(option, repr(path.name), f"a file that ends in {' or '.join(endings)}")
    there, found = os.path.lexists(path), repr(str(path))
    if not path.absolute().parent.is_dir() or path.is_dir():
        what = "a folder" if there else "in a folder that does not exist"
        raise wrong(option, f"{found}, {what}", "a file in a folder", "no-place")
    if there and not (force and path.is_file()):
        raise wrong(option, f"{found}, which exists", "a new file, or --force", "file-exists")
