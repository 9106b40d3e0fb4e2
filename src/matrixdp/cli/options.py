"""Options that several commands share, and what commands are given, checked before anything is done."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matrixdp.domain import Domain
from matrixdp.errors import Problem, SpecificationError, WorkloadError
from matrixdp.privacy import Budget, delta_warnings
from matrixdp.privacy.budget import DEFAULT_MAX_RECORDS
from matrixdp.selection.mechanisms.table import MECHANISMS, OF_OTHERS
from matrixdp.specification import Specification, load_specification

if TYPE_CHECKING:
    from matrixdp.queries import Entry
    from matrixdp.strategy import Strategy

ReleaseFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder that `release` wrote.")]
PictureOption = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", help="Draw a picture: PNG, SVG or PDF by its ending."),
]
DatabaseTable = Annotated[str | None, typer.Option("--table", help="The table of a database.")]


def noise_name(words: tuple[str, ...], value: str) -> str:
    """Return the name of a noise that there is, or one of some words."""
    from matrixdp.forms import nearest
    from matrixdp.noise import NOISES

    names = (*words, *NOISES)
    if value not in names:
        raise typer.BadParameter(str(Problem((), repr(value), ", ".join(names), nearest(value, names))))
    return value


def _mechanism_names(incomplete: str) -> list[str]:
    """Return the mechanisms whose names begin so, for the completion of a shell."""
    return [name for name in ("auto", *MECHANISMS) if name.startswith(incomplete)]


def _noise_names(incomplete: str) -> list[str]:
    """Return the noises whose names begin so, for the completion of a shell."""
    from matrixdp.noise import NOISES

    return [name for name in ("auto", *NOISES) if name.startswith(incomplete)]


class Objective(StrEnum):
    """What selection minimizes."""

    sum = "sum"
    max = "max"


Spec = Annotated[Path, typer.Argument(metavar="SPEC", help="The specification: a YAML file.")]
MechanismOption = Annotated[
    str,
    typer.Option(
        "--mechanism",
        autocompletion=_mechanism_names,
        help="auto: the smallest expected error of those that fit. dense: the optimum on the whole domain, "
        "for a few thousand cells. residual: one part for each marginal, with optimized weight vectors. "
        "querysmasher: the same with uniform ones. fourier: the same in the Fourier basis. hdmm: the best of "
        "opt-0 (one explicit table), opt-kron (one product), opt-plus (a union of products) and opt-m "
        "(weighted marginals). generalized-marginals: weighted marginals with one optimized strategy for "
        "each attribute. weighted-product: one product of bases with weighted rows. `matrixdp "
        "compare` shows them side by side, with the mechanisms of other papers: "
        + ", ".join(OF_OTHERS)
        + ".",
        metavar="NAME",
    ),
]
NoiseOption = Annotated[
    str,
    typer.Option(
        "--noise",
        autocompletion=_noise_names,
        parser=partial(noise_name, ("auto",)),
        metavar="<auto|gaussian|laplace>",
        help="gaussian, laplace, or auto: Laplace for pure differential privacy (epsilon alone), Gaussian "
        "for rho and mu, and for epsilon with delta whichever gives narrower intervals.",
    ),
]
ObjectiveOption = Annotated[
    Objective,
    typer.Option(
        "--objective",
        help="What is minimized: the sum of the (weighted) variances of all queries, or the largest one.",
    ),
]
SubSolverOption = Annotated[
    str | None,
    typer.Option(
        "--sub-solver",
        metavar="NAME",
        show_default="auto",
        help="How residual and querysmasher solve the sub-workload of a marginal: optimum (an error if it "
        "is too large), product (one product with row weights), fourier, fixed (each attribute's own "
        "optimum as basis), fast (few iterations), or auto: the optimum where it fits, else the best of the "
        "others.",
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        show_default="0",
        help="Seeds the searches for a strategy that start from random points. It does not affect the noise.",
    ),
]
RestartsOption = Annotated[
    int | None,
    typer.Option(
        "--restarts",
        min=0,
        show_default="10",
        help="With Laplace noise, random covers by marginals that opt-m and generalized-marginals try.",
    ),
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Another option of the mechanism, such as seed=1 or gap=1e-4; may be repeated.",
    ),
]
CertifyOption = Annotated[bool, typer.Option("--certify", help="Take longer for a higher lower bound.")]
Confidence = Annotated[
    float | None, typer.Option("--confidence", help="Of the pointwise intervals (default: 0.95).")
]


def mechanism_options(
    mechanism: str,
    sub_solver: str | None,
    pairs: list[str] | None,
    *,
    seed: int | None = None,
    restarts: int | None = None,
    certify: bool = False,
) -> dict[str, Any]:
    """Return the options that a mechanism is given, checked to be its own, and whether to certify.

    Examples
    --------
    >>> mechanism_options("opt-0", None, ["seed=1"])
    {'seed': '1'}
    """
    from matrixdp.selection.auto import check_mechanism

    flags = {"sub_solver": sub_solver, "seed": seed, "restarts": restarts}
    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    for pair in pairs or []:
        name, sign, value = pair.partition("=")
        if not sign:
            raise SpecificationError.at(("--option",), repr(pair), "NAME=VALUE")
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


def specification_with_budget(path: Path) -> tuple[Specification, Budget]:
    """Return a specification and its budget."""
    written = load_specification(path, require_privacy=True)
    if written.budget is None:
        raise SpecificationError.at(
            ("privacy", "minimize"),
            "no budget",
            "a budget, at which errors are shown: {rho: 0.5}, {mu: 1.0} or {epsilon: 1.0, delta: 1.0e-6}",
        )
    return written, written.budget


def reference_budget(written: Specification) -> Budget:
    """Return the budget, or where targets decide it one of the same form: it decides the noise."""
    if written.budget is not None:
        return written.budget
    if written.least is None:
        raise SpecificationError.at(("privacy",), "nothing", "a budget")
    return written.least.reference()


def budget_spent(written: Specification, strategy: Strategy) -> Budget:
    """Return what a release spends: the budget, or with targets the least that meets them."""
    if written.least is None:
        return reference_budget(written)
    from matrixdp.strategy.strategy import meet_targets

    return meet_targets(strategy, written.targets, written.least, written.workload)


def advice(written: Specification, expect: int | None = None) -> tuple[str, ...]:
    """Return likely mistakes in the domain, and in the delta of the budget, in sentences."""
    budget = written.budget
    if budget is None and written.least is not None:
        budget = written.least.reference()
    declared = expect or (None if written.max_records == DEFAULT_MAX_RECORDS else written.max_records)
    delta = () if budget is None else delta_warnings(budget, declared)
    return (*_domain_warnings(written.domain), *delta)


def _domain_warnings(domain: Domain) -> Iterator[str]:
    read = [attribute for attribute in domain.attributes if attribute.codebook.derivation is None]
    for attribute in read:
        if attribute.size - (attribute.null_code is not None) == 1:
            only = f"{attribute.label(0)!r} is the only value"
            yield f"domain.{attribute.name}: {only}; every record with another one is out of domain"
    for column, times in Counter(attribute.column for attribute in read).items():
        if times > 1:
            names = ", ".join(attribute.name for attribute in read if attribute.column == column)
            told = "which no rule relates: make a coarser one a level of the other"
            yield f"domain: {names} read one column, {column!r}, {told}"


def warn(written: Specification, expect: int | None = None) -> None:
    """Print likely mistakes to stderr."""
    for sentence in advice(written, expect):
        typer.echo(f"Warning: {sentence}.", err=True)


_EXPECTED = (
    "a workload entry such as 'product: {age: {ranges: [[0, 17]]}}' or 'quantile: {age: 0.5}', or a file "
    "with one or a list of them"
)


def read_questions(queries: Iterable[str]) -> list[tuple[tuple[str, ...], Entry]]:
    """Return the entries that texts or files hold, each with what errors call it where there are several."""
    from matrixdp.specification import entry_from_spec

    written = [found for query in queries for found in entries_of(query)]
    places = [f"query {place}" for place in range(1, len(written) + 1)] if len(written) > 1 else ["query"]
    made = [entry_from_spec(*one, place) for one, place in zip(written, places, strict=True)]
    return [((place,) if len(written) > 1 else (), entry) for place, entry in zip(places, made, strict=True)]


def entries_of(query: str) -> list[tuple[Mapping[str, Any], Path]]:
    """Return the entries that a text or a file holds, and what their paths are relative to."""
    from matrixdp.specification import parse_yaml

    base = Path()
    if os.path.isfile(query):  # noqa: PTH113 - no error where the path is none
        base = Path(query).parent
        try:
            text = Path(query).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            found = "a file that cannot be read as text"
            raise SpecificationError.at(("query",), found, _EXPECTED, code="file-missing") from None
        value = parse_yaml(text).value
    elif ":" not in query:
        raise SpecificationError.at(("query",), f"{query!r}, which is no file and no entry", _EXPECTED)
    else:
        value = _inline(query)
    listed = value if isinstance(value, list) else [value]
    if not listed:
        raise SpecificationError.at(("query",), "an empty list", _EXPECTED, code="empty")
    entries: list[tuple[Mapping[str, Any], Path]] = []
    for entry in listed:
        if not isinstance(entry, Mapping):
            found = f"a {type(entry).__name__}"
            raise SpecificationError.at(("query",), found, _EXPECTED, code="wrong-type")
        entries.append((entry, base))
    return entries


def _inline(text: str) -> object:
    """Return what a text says: YAML, or the inside of a mapping, as in ``cdf: age, by: [sex]``."""
    from matrixdp.specification import parse_yaml

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
        raise SpecificationError.at((option,), repr(path.name), f"a file that ends in {' or '.join(endings)}")
    there, found = os.path.lexists(path), repr(str(path))
    if not path.absolute().parent.is_dir() or path.is_dir():
        what = "a folder" if there else "in a folder that does not exist"
        raise SpecificationError.at((option,), f"{found}, {what}", "a file in a folder", code="no-place")
    if there and not (force and path.is_file()):
        raise SpecificationError.at(
            (option,), f"{found}, which exists", "a new file, or --force", code="file-exists"
        )
