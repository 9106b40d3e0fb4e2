"""A release as one page of HTML that needs nothing else: no network, no file beside it, and no script."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import os
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from matrixdp.answers.quality import Presentation, graded
from matrixdp.display import figure, printable, rounded
from matrixdp.errors import SpecificationError
from matrixdp.pictures.plots import (
    DARK,
    MAX_DRAWN,
    NARROW,
    WIDE,
    Answered,
    answered_statistic,
    axes_of,
    draw_accuracies,
    draw_answers,
)
from matrixdp.queries import Workload
from matrixdp.releases.record import RECORD
from matrixdp.releases.release import Release, load_release
from matrixdp.releases.signatures import check_files
from matrixdp.report import tables
from matrixdp.report.tables import Accuracy, Answers, GroupAnswers, StatisticAnswers
from matrixdp.storage.archive import plain_content
from matrixdp.verification.explain import explanation

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

# What a page says of a release, gathered from its folder: which groups are shown, and what is left out.

#: Groups that are shown, groups whose accuracy is, and rows of tables of one group and of the page, at most.
MAX_GROUPS, MAX_ACCURACIES, MAX_GROUP_ROWS, MAX_ROWS = 50, 150, 2_000, 8_000
#: Rows of a table that is too long to be shown whole.
_FIRST_ROWS = 50


@final
@dataclass(frozen=True, eq=False)
class Shown:
    """One table as a page shows it; it has no answers and no picture where they are too many.

    `refusal` says why a statistic could not be computed.
    """

    title: str
    queries: int
    measures: str = "records"
    unit: str = "records"
    answers: GroupAnswers | StatisticAnswers | None = None
    picture: Answered | None = None
    rows: int = 0
    refusal: str | None = None


@final
@dataclass(frozen=True, eq=False)
class Contents:
    """What a page says of a release.

    `accuracies` are those of the groups whose accuracy is shown. `straight` is the standard error of every
    answer had noise been added to every query of the workload, or at least that; None where it would take
    long to compute.
    """

    release: Release
    accuracies: Sequence[Accuracy]
    all_groups: Accuracy
    straight: float | None
    straight_exact: bool
    shown: Sequence[Shown]

    @property
    def rows(self) -> int:
        """How many figures the tables have."""
        return sum(one.rows for one in self.release.tables)

    @property
    def counted(self) -> int:
        """How many tables are of counts."""
        return sum(one.group is not None for one in self.release.tables)

    @property
    def left_out(self) -> int:
        """How many groups are not shown."""
        return len(self.release.tables) - len(self.shown)

    @property
    def gap(self) -> str | None:
        """By how many percent the figure that was made least may be above the least possible."""
        certificate = self.release.origin.get("certificate")
        said = certificate.get("gap") if isinstance(certificate, Mapping) else None
        if self.release.statement.neighbours == "replace" and "add_remove" not in str(certificate):
            said = None  # earlier versions certified strategies for add_remove neighbours alone
        return f"{100 * ((1 + said) ** 0.5 - 1):.2g}" if isinstance(said, float) and said >= 0 else None


def contents(folder: Path) -> Contents:
    """Return what a page says of the release in a folder, every file of it checked against the record.

    Raises
    ------
    StorageError
        If the folder does not hold a release, or its files were damaged or altered.
    """
    release = load_release(folder)
    record = check_files(folder, plain_content(folder / RECORD))
    workload, noise = release.workload, release.measurement.plan.noise
    budget = release.measurement.authorization.budget
    # a replacement costs no less than a removal, so that bounds for the second hold for the first
    scale = noise.error_scale(budget)
    called = {one.place: one.title for one in release.tables if one.place is not None}
    known: dict[Hashable, float | None] = {}
    chosen = [place for place in _chosen(workload, MAX_ACCURACIES) if place in called]
    bounds = [tables.least_squared_error(release.domain, workload.groups[place], known) for place in chosen]
    bounds = [None if bound is None else bound * noise.variance_factor / scale for bound in bounds]

    def accuracy(title: str, queries: int, written: Mapping[str, Any], least: float | None) -> Accuracy:
        root = None if least is None else math.sqrt(least / queries)
        return Accuracy(title, queries, float(written["rmse"]), float(written["max_stddev"]), root)

    accuracies = [
        accuracy(called[place], workload.groups[place].queries, record["groups"][place], bound)
        for place, bound in zip(chosen, bounds, strict=True)
    ]
    every = bounds if len(chosen) == len(called) else [*bounds, None]
    together = _together(release, record, list(called), _least_of_all(release, every, scale, list(called)))
    found = tables.workload_sensitivity(_counts(release, list(called)), noise)
    straight = None
    if found is not None:
        straight = math.sqrt(noise.variance_factor * found[0] ** (2 / noise.norm) / scale)
    shown = list(_shown(folder, release))
    exact = found is not None and found[1] and budget.neighbours == "add_remove"
    return Contents(release, accuracies, together, straight, exact, shown)


def aim(release: Release) -> str:
    """Return what the selection made least, and its certificate is about."""
    if release.origin.get("objective") != "sum":
        return "largest standard error with the workload's weights"
    weighted = any(g.weight != 1 or g.query_weights is not None for g in release.workload)
    return "RMSE with the workload's weights" if weighted else "RMSE"


def _together(
    release: Release, record: Mapping[str, Any], places: Sequence[int], least: float | None
) -> Accuracy:
    """Return the errors of all published counts together."""
    groups = [(release.workload.groups[place].queries, record["groups"][place]) for place in places]
    queries = sum(number for number, _ in groups)
    squares = math.fsum(number * float(own["rmse"]) ** 2 for number, own in groups)
    largest = max((float(own["max_stddev"]) for _, own in groups), default=0.0)
    root = None if least is None or not queries else math.sqrt(least / queries)
    return Accuracy("all", queries, math.sqrt(squares / max(queries, 1)), largest, root)


def _counts(release: Release, places: Sequence[int]) -> Workload:
    """Return the workload without the groups that only serve statistics, where it has others."""
    groups = release.workload.groups
    if not places or len(places) == len(groups):
        return release.workload
    return Workload(release.domain, *(tables.OneGroup(groups[place]) for place in places))


def _least_of_all(
    release: Release, bounds: Sequence[float | None], scale: float, places: Sequence[int]
) -> float | None:
    """Return a sum of squared errors below which no strategy gets, for all groups together.

    Each group has at least its own bound; the certificate of the selection is about the same sum where
    nothing is weighted, and is as said.
    """
    own = [bound for bound in bounds if bound is not None]
    found = [math.fsum(own)] if len(own) == len(bounds) else []
    certificate = release.origin.get("certificate")
    whole = len(places) == len(release.workload)
    if whole and isinstance(certificate, Mapping) and aim(release) == "RMSE":
        said = certificate.get("lower_bound")
        found += [said / scale] if isinstance(said, float) and said > 0 else []
    return max(found, default=None)


def _chosen(workload: Workload, most: int) -> list[int]:
    """Return the places of groups, at most so many: the first of every entry before the second of any."""
    turns = chain.from_iterable(zip_longest(*workload.places))
    return sorted([place for place in turns if place is not None][:most])


def _shown(folder: Path, release: Release) -> Iterator[Shown]:
    answers = Answers(folder, release)
    left = MAX_ROWS
    places = set(_chosen(release.workload, MAX_GROUPS))
    chosen = [one for one in release.tables if one.place is None or one.place in places]
    for one in chosen[:MAX_GROUPS]:
        if one.rows > MAX_DRAWN:
            yield Shown(one.title, one.rows, one.measures, one.unit)
            continue
        rows = one.rows if one.rows <= min(left, MAX_GROUP_ROWS) else min(_FIRST_ROWS, left)
        left -= rows
        if one.statistic is not None:
            table, refusal = one.statistic.published, one.statistic.refusal
            if table is None:
                yield Shown(one.title, 0, one.measures, one.unit, refusal=str(refusal))
            else:
                picture = answered_statistic(table, one.unit)
                shown = StatisticAnswers(table)
                yield Shown(one.title, one.rows, one.measures, one.unit, shown, picture, rows)
            continue
        assert one.group is not None
        assert one.place is not None
        own = answers.group(one.place)
        picture = Answered(axes_of(release.domain, one.group), *own.figures())
        yield Shown(one.title, one.rows, one.measures, one.unit, own, picture, rows)


@final
@dataclass(frozen=True)
class Pictured:
    """A picture for wide pages and one for phones, as addresses, and what a screen reader says instead."""

    wide: str
    narrow: str
    words: str


def odds(mu: float) -> float:
    """Return a bound on how often the best guess between two equally likely neighbours is right.

    Under mu-GDP it is Phi(mu / 2), as the errors of the first and the second kind of every test add up to
    at least 2 Phi(-mu / 2) (Dong, Roth and Su 2022, definition 2.6 with alpha = Phi(-mu / 2)); rounded up to
    a tenth of a percent.

    Examples
    --------
    >>> odds(0.0), odds(0.2368), odds(2.0)
    (0.501, 0.548, 0.842)
    """
    from scipy.special import ndtr

    return min(1.0, math.floor(1000 * float(ndtr(mu / 2)) + 1) / 1000)


_FORMS = {
    "rows": "{marks} are estimates, with their {confidence}% intervals.",
    "lines": "Lines are estimates, bands their {confidence}% intervals, at each place by itself.",
    "panels": "{marks} are estimates, with their {confidence}% intervals; all panels have the same scale.",
    "heat map": "Each cell is an estimate{written}.",
    "triangles": "Each point is an estimate: of the records from one value to another.",
}


def report_release(
    out: str | os.PathLike[str],
    *,
    title: str | None = None,
    suppress_above: float | None = None,
    within_range: bool = False,
) -> str:
    """Return a page about the release in a folder, in HTML.

    What was released under which guarantee, how accurate it is, every group as a picture and as a table that
    can be searched, sorted and downloaded, and how the release came about. The page holds all that it needs,
    and its content security policy allows nothing else; without scripts it lacks search, order and download.
    It shows at most 50 groups, 2,000 answers of one group and 8,000 of all, and says what it leaves out.

    Parameters
    ----------
    out : str or path
        The folder of the release. Every file of it must be the one that its record lists.
    title : str, optional
        The page's title; the name of the folder where it is left out.
    suppress_above : float, optional
        Show ``F`` in place of figures whose coefficient of variation (standard error over estimate) is
        larger, such as 0.33. Tables with such figures have no picture.
    within_range : bool
        Show counts below 0 as 0, and shares outside 0 to 1 as the nearer end.

    Returns
    -------
    str

    Raises
    ------
    StorageError
        If the folder does not hold a release, or its files were damaged or altered.
    SpecificationError
        If Jinja2 or matplotlib is not installed: ``pip install 'matrixdp[report]'``.

    Examples
    --------
    >>> import tempfile
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     page = report_release(mdp.save_release(release, f"{parent}/out"), title="Survey")
    >>> page[:15], "<h1>Survey</h1>" in page
    ('<!doctype html>', True)
    """
    presentation = Presentation(suppress_above, within_range)
    environment = _environment()
    folder = Path(out)
    found = contents(folder)
    release, statement = found.release, found.release.statement
    name = printable(folder.resolve().name)
    style, script = (_resource(file) for file in ("page.css", "page.js"))
    confidence = f"{100 * release.confidence:g}"
    return environment.get_template("page.html").render(
        found=found,
        release=release,
        statement=statement,
        title=printable(title) if title is not None else name,
        name=name,
        style=style,
        script=script,
        policy=_policy(style, script),
        odds=f"{100 * odds(statement.mu):.1f}",
        noise=release.measurement.plan.noise.title,
        confidence=confidence,
        aim=aim(release),
        presentation=presentation,
        quartiles=list(_quartiles(release, confidence)),
        explanation={
            heading: [(type(block).__name__, block) for block in blocks]
            for heading, blocks in explanation(folder, release).items()
        },
    )


def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        expected = "an installation with it: pip install 'matrixdp[report]'"
        raise SpecificationError.at(("report",), "no Jinja2", expected, code="missing-library") from None
    environment = Environment(
        autoescape=True,  # everything is escaped that is not marked as our own
        loader=PackageLoader("matrixdp.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "printable": printable,
        "counted": "{:,}".format,
        "figure": _figure,
        "errors": _errors,
        "drawn": _drawn,
        "caption": _caption,
    }
    return environment


def _figure(value: float | None) -> str:
    return figure(value, 3)


def _resource(name: str) -> Any:
    from markupsafe import Markup

    text = (files("matrixdp.report") / "templates" / name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 - a file of our own


def _policy(style: str, script: str) -> str:
    """Return a content security policy that allows this style and this script, and pictures in the page."""
    hashed = (hashlib.sha256(str(text).encode()).digest() for text in (style, script))
    digests = [base64.b64encode(digest).decode() for digest in hashed]
    return (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _errors(found: Contents) -> Pictured:
    """Return the picture of the errors."""
    points = [(row.title, row.rmse, row.least) for row in found.accuracies]
    words = f"Root mean square standard errors of {len(points)} tables, as in the table below."
    wide, narrow = (_image(draw_accuracies(points, found.straight, own)) for own in (WIDE, NARROW))
    return Pictured(wide, narrow, words)


def _drawn(shown: Shown, presentation: Presentation) -> Pictured | None:
    """Return the picture of a table; None where it would show nothing that a line of text does not."""
    picture, title = shown.picture, printable(shown.title)
    if picture is None or picture.estimates.size < 2 or shown.answers is None:
        return None
    hidden = graded(shown.answers.table, presentation)[1].tolist()
    if all(hidden):
        return None
    if any(hidden):
        picture = picture.without(hidden)
    axes = " by ".join(axis.name for axis in picture.axes)
    words = printable(f"{title}: {picture.form} of {axes}, with the figures of the table below")
    wide, narrow = (_image(draw_answers(picture, width=own)) for own in (WIDE, NARROW))
    return Pictured(wide, narrow, words)


def _quartiles(release: Release, confidence: str) -> Iterator[dict[str, Any]]:
    heads = {"quantile": "share of records", "lower": f"{confidence}% from", "upper": "to"}
    for title, table in tables.quartiles(release):
        names = [name for name in table.column_names if name not in ("stddev", "warning")]
        yield {
            "title": printable(title),
            "heads": [printable(heads.get(name, name)) for name in names],
            "keyed": len(names) - 4,
            "rows": [[_statistic(row[name]) for name in names] for row in table.to_pylist()],
            "warnings": sorted({printable(text) for text in table.column("warning").to_pylist() if text}),
        }


def _statistic(cell: object) -> str:
    return figure(cell) if isinstance(cell, float) else "-" if cell is None else printable(str(cell))


def _caption(shown: Shown, confidence: str) -> str:
    picture = shown.picture
    assert picture is not None
    bars = picture.unit == "records" and picture.estimates.size <= 40
    written = f" with half its {confidence}% interval" if picture.estimates.size <= 60 else ""
    marks = (
        "Lines" if picture.form == "panels" and picture.axes[-1].continuous else "Bars" if bars else "Points"
    )
    words = _FORMS[picture.form].format(confidence=confidence, written=written, marks=marks)
    if shown.answers is None or isinstance(shown.answers, StatisticAnswers):
        return words
    low, high = float(picture.stddevs.min()), float(picture.stddevs.max())
    same = rounded(low, 1) == rounded(high, 1)
    errors = _figure(low) if same else f"from {_figure(low)} to {_figure(high)}"
    return f"{words} Standard errors: {errors} records."


def _image(drawn: Figure) -> str:
    """Return a picture as the address of an image that holds it, in colours for light and dark pages."""
    import matplotlib as mpl

    stream = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "matrixdp"}):
        drawn.savefig(stream, format="svg", metadata={"Date": None}, transparent=True)
    rules = [
        f'[style*="{kind}: {light}"] {{ {kind}: {dark} !important; }}'
        for light, dark in DARK.items()
        for kind in ("fill", "stroke")
    ]
    style = f"<style>@media screen and (prefers-color-scheme: dark) {{ {' '.join(rules)} }}</style></svg>"
    # a hundredth of a point is less than anybody sees
    short = re.sub(rb' d="[^"]*"', lambda path: re.sub(rb"(\.\d\d)\d+", rb"\1", path[0]), stream.getvalue())
    content = short.replace(b"</svg>", style.encode())
    return f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}"
