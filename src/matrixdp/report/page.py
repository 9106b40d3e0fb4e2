"""A release as one page of HTML that needs nothing else: no network and no file beside it."""

from __future__ import annotations

import datetime as dt
import io
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, final
from urllib.parse import quote

from matrixdp.answers.figures import UNRELIABLE
from matrixdp.answers.shown import QUALITY, Shown
from matrixdp.display import printable
from matrixdp.domain.kinds import Dates
from matrixdp.errors import SpecificationError
from matrixdp.pictures.areas import draw_areas, mapped
from matrixdp.pictures.plots import (
    BESIDE,
    DARK,
    NARROW,
    WIDE,
    WRITTEN,
    Answered,
    draw_accuracies,
    draw_answers,
)
from matrixdp.releases.record import RECORD
from matrixdp.releases.release import Release, load_release
from matrixdp.releases.signatures import check_files
from matrixdp.report import highlights
from matrixdp.report.accuracy import Accuracies, accuracies
from matrixdp.report.html import environment, policy, resource
from matrixdp.report.tables import PageTable, data_address, page_tables, shown_tables
from matrixdp.storage.archive import plain_content
from matrixdp.texts import Words
from matrixdp.verification.explain import explanation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@final
@dataclass(frozen=True)
class Pictured:
    """A picture for wide pages and one for phones, as addresses, and what a screen reader says instead."""

    wide: str
    narrow: str
    words: str
    caption: str = ""


def report_release(
    out: str | os.PathLike[str],
    *,
    title: str | None = None,
    suppress_above: float | None = None,
    within_range: bool | None = None,
    round_to: int | None = None,
    publication: Mapping[str, object] | None = None,
    language: str | None = None,
    maps: Mapping[str, str] | None = None,
    exported: str | os.PathLike[str] | None = None,
) -> str:
    """Return a page about the release in a folder, in HTML.

    Main points and key figures; each table as a picture, as rows by columns, and as a list that can be
    searched, sorted and downloaded; the method in a paragraph, and folded below it how the figures are
    protected, how accurate they are, and how the release came about. What comes first, what is left out and
    what footnotes say is the publication's choice. The page holds all that it needs, and its content security
    policy allows nothing else; without scripts it lacks search and order.
    It shows at most 50 groups, 2,000 answers of one group and 8,000 of all, and says what it leaves out.

    Parameters
    ----------
    out : str or path
        The folder of the release. Every file of it must be the one that its record lists.
    title : str, optional
        The page's title; that of the publication, or the name of the folder, where it is left out.
    suppress_above : float, optional
        Show ``F`` in place of figures whose coefficient of variation (standard error over estimate) is
        larger, such as 0.33. Pictures and files in the page leave them out, too.
    within_range : bool, optional
        Show what is beyond its range as the nearer end, such as counts below 0.
    round_to : int, optional
        Show counts as multiples of it. What is left out is as the specification declared.
    publication : mapping, optional
        Keys of a specification's ``publication`` that take the place of the release's own: the main points,
        say, which can be written once the figures are there.
    language : str, optional
        Of titles, labels and notes: one of `Release.languages`; the first of each where it is left out.
    maps : mapping of str to str, optional
        A GeoJSON file for each attribute, or level, whose values are areas: tables about it alone get a map.
        ``"areas.geojson:NAME"`` says which property has the names; otherwise it is the one that fits.
    exported : str or path, optional
        A folder beside the page that `Release.save_tables` wrote: the page links to its files.

    Returns
    -------
    str

    Raises
    ------
    StorageError
        If the folder does not hold a release, or its files were damaged or altered.
    SpecificationError
        If Jinja2 or matplotlib is not installed; or a map lacks areas.

    Examples
    --------
    >>> import tempfile
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     page = report_release(mdp.save_release(release, f"{parent}/out"), title="Survey")
    >>> page[:15], ">Survey</h1>" in page
    ('<!doctype html>', True)
    """
    folder = Path(out)
    release = (
        load_release(folder)
        .presented(
            suppress_above=suppress_above,
            within_range=within_range,
            round_to=round_to,
            publication=publication,
        )
        .for_readers(language)
    )
    presentation, say = release.presentation, release.presentation.say
    record = check_files(folder, plain_content(folder / RECORD))
    shown = list(shown_tables(release))
    name = printable(folder.resolve().name)
    style, script = (resource(file) for file in ("page.css", "page.js"))
    time = release.measurement.authorization.time
    made = environment(say)
    made.globals["pictured_errors"] = lambda errors: _errors(errors, say)
    return made.get_template("page.html").render(
        release=release,
        statement=release.statement,
        shown=shown,
        left_out=len(page_tables(release)) - len(shown),
        keys=highlights.key_figures(release, shown),
        news=highlights.news(release),
        told=_told(release, title, name, say),
        outside=list(_outside(release, say)),
        pictures=_pictures(shown, maps or {}, release),
        files=_listed(exported, say),
        errors=accuracies(release, record),
        name=name,
        style=style,
        script=script,
        policy=policy(style, script),
        odds=say.number(100 * release.statement.odds, 1),
        found=say.listed([release.domain[name].title for name in release.statement.discovered]),
        measured=None if time is None else say.day(dt.date.fromisoformat(str(time)[:10])),
        noise=release.measurement.plan.noise.title,
        confidence=say.number(100 * release.confidence),
        unreliable=UNRELIABLE,
        presentation=presentation,
        intervals=release.intervals.described(say),
        language=say.language,
        quartiles=list(_quartiles(release)),
        explanation={
            heading: [(type(block).__name__, block) for block in blocks]
            for heading, blocks in explanation(folder, release).items()
        },
    )


def _errors(found: Accuracies, say: Words) -> Pictured:
    """Return the picture of the errors."""
    points = [(row.title, row.rmse, row.least) for row in found.rows]
    wide, narrow = (_image(draw_accuracies(points, found.straight, own, say)) for own in (WIDE, NARROW))
    return Pictured(wide, narrow, say("accuracy_picture", number=len(points)))


def _pictures(shown: Sequence[PageTable], maps: Mapping[str, str], release: Release) -> list[list[Pictured]]:
    """Return the pictures of each table: a map where there is one, and a chart."""
    say, alone = (
        release.presentation.say,
        {own.alone: own.picture for own in shown if own.picture and own.alone},
    )
    areas = mapped(alone, maps, release.domain)
    found = []
    for one in shown:
        picture, own = one.picture, []
        if picture is not None:
            axes = reduce(lambda a, b: say("by", first=a, rest=b), (axis.name for axis in picture.axes))
            if (outlines := areas.get(one.alone)) is not None:
                wide, narrow = (_image(draw_areas(outlines, picture, width)) for width in (WIDE, NARROW))
                alt = printable(say("map_alt", title=one.title, axes=axes))
                own.append(Pictured(wide, narrow, alt, say("map_caption")))
            widths = (BESIDE if one.beside else WIDE, NARROW)
            images = [_image(draw_answers(picture, width=width)) for width in widths]
            form = say(f"alt_{picture.form.replace(' ', '_')}")
            alt = say("picture_alt", title=one.title, form=form, axes=axes)
            own.append(Pictured(images[0], images[-1], printable(alt), _caption(picture, say)))
        found.append(own)
    return found


def _outside(release: Release, say: Words) -> Iterator[str]:
    """Yield how many records are in no table, where they were counted."""
    for name, counted in release.out_of_domain_counts.items():
        told = {"number": counted.text(say)}
        yield (
            say("outside", **told)
            if name is None
            else say("outside_of", of=release.domain[name].title, **told)
        )


def _told(release: Release, title: str | None, name: str, say: Words) -> dict[str, str]:
    """Return what readers are told of the release, with a title, and with a period where one is known."""
    told = {"title": name, "period": ""} | release.told
    days = (own for own in release.domain if isinstance(own, Dates) and own.by not in ("weekday", "hour"))
    spans = {(own.first, own.last) for own in days}
    if release.series is not None and not told["period"]:
        name, published = release.series
        ends = (release.domain[name].label(code) for code in (0, published[-1] - 1))
        told["period"] = say("range", low=next(ends), high=next(ends))
    if len(spans) == 1 and not told["period"]:
        low, high = (say.day(day) for day in spans.pop() if day is not None)
        told["period"] = say("range", low=low, high=high)
    return told if title is None else told | {"title": title}


def _listed(exported: str | os.PathLike[str] | None, say: Words) -> list[tuple[str, str, str]]:
    """Return the address, name and size of each file in a folder beside the page."""
    if exported is None:
        return []
    folder = Path(exported)
    if not folder.is_dir():
        expected = "a folder that `save_tables` wrote"
        raise SpecificationError.at(("exported", str(folder)), "no folder", expected, code="file-missing")
    return [
        (
            quote(f"{folder.name}/{path.name}"),
            printable(path.name),
            f"{say.number(max(1, path.stat().st_size // 1000))} KB",
        )
        for path in sorted(folder.iterdir())
        if path.is_file()
    ]


def _quartiles(release: Release) -> Iterator[dict[str, Any]]:
    say = release.presentation.say
    for title, table in highlights.quartiles(release):
        shown = Shown(table.to_arrow(), "", release.presentation)
        fields = [own for own in shown.fields if own.name not in ("stddev", "warning")]
        heads = {own.name: shown.head(own, release.confidence) for own in fields}
        heads["quantile"] = say("share_of_records")
        columns = [shown.texts(name) for name in heads]
        if shown.letters:
            heads[QUALITY], columns = say(QUALITY), [*columns, shown.letters]
        yield {
            "title": printable(title),
            "heads": list(heads.values()),
            "keyed": list(heads).index("quantile"),
            "rows": zip(*columns, strict=True),
            "warnings": sorted(map(printable, shown.warnings)),
        }


def _caption(picture: Answered, say: Words) -> str:
    """Return what a picture needs said; bars, lines and points with their intervals need nothing."""
    written = "_written" if picture.form == "heat map" and picture.estimates.size <= WRITTEN else ""
    return say.texts.get(f"form_{picture.form.replace(' ', '_')}{written}", "")


def _image(drawn: Figure) -> str:
    """Return a picture as the address of an image that holds it, in colours for light and dark pages."""
    import matplotlib as mpl

    stream = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "matrixdp"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # the reader's fonts draw the texts
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
    return data_address("image/svg+xml", content)
