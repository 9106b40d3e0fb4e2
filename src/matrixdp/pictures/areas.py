"""Maps: areas by the names that an attribute has for them, coloured by what was counted there."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import SpecificationError
from matrixdp.exact.linear import Array
from matrixdp.forms import unknown_name
from matrixdp.pictures.plots import GRID, INK, WIDE, Answered, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Of classes of figures, the least first.
CLASSES = ("#dbe9f6", "#a6cbe8", "#60a4d4", "#2474b4", "#0a4580")
#: Outlines are thinned to steps of the map's size over this.
_PARTS = 2_000
_LISTED = 10
#: Coordinates beyond these, and maps that are smaller, cannot be drawn.
_FARTHEST, _LEAST_EXTENT = 1e12, 1e-9


@final
@dataclass(frozen=True, eq=False)
class Areas:
    """The outlines of areas.

    Attributes
    ----------
    outlines : mapping of str to sequence of ndarray, shape (n, 2)
        The rings of each area by its name: x and y, or longitude and latitude. None for an area that lies
        nowhere.
    """

    outlines: Mapping[str, Sequence[Array]]

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        names: Iterable[str],
        *,
        name: str = "",
        others: Iterable[Sequence[str]] = (),
    ) -> Areas:
        """Return the areas of a GeoJSON file (RFC 7946), in the places of names.

        Parameters
        ----------
        path : str or path
            A feature collection of polygons. A feature whose geometry is null is an area that lies nowhere,
            such as what is unknown.
        names : iterable of str
            What the areas are called. Upper and lower case are the same.
        name : str
            The property of features with their names; the one that has most of them where it is left out.
        others : iterable of sequence of str
            What the areas are called elsewhere, in the same order: in another language, by their codes.

        Raises
        ------
        SpecificationError
            If the file is no such collection, or has no area of one of the names.

        Examples
        --------
        >>> import tempfile
        >>> square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
        >>> feature = {"type": "Feature", "properties": {"NAME": "North"}, "geometry": square}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "areas.geojson"
        ...     _ = path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
        ...     len(Areas.read(path, ["north"]).outlines["north"][0])
        4
        """
        called = list(names)
        found = _features(Path(path))
        keys = [name] if name else sorted({key for own, _ in found for key in own})

        def named(key: str) -> dict[str, list[Array]]:
            spelled = {str(own[key]).strip(): rings for own, rings in found if key in own}
            return {own.casefold(): rings for own, rings in spelled.items()} | spelled

        ways = [called, *map(list, others)]
        pairs = ((named(key), way) for key in keys for way in ways)
        known, asked = max(pairs, key=lambda pair: len(_matched(*pair)), default=({}, called))
        rings = (known.get(own.strip(), known.get(own.strip().casefold(), [])) for own in asked)
        outlines = dict(zip(called, rings, strict=True))
        missing = [own for own in asked if not _matched(known, [own])]
        if missing:
            more = "" if len(missing) <= _LISTED else f" and {len(missing) - _LISTED} more"
            words = f"no area called {', '.join(map(repr, missing[:_LISTED]))}{more}"
            expected = "an area for each value" + (f" by its property {name!r}" if name else "")
            raise SpecificationError.at(("map", str(path)), words, expected, code="unknown-name")
        points = np.array([point for rings in outlines.values() for ring in rings for point in ring])
        if not points.size or float(np.ptp(points, axis=0).min()) < _LEAST_EXTENT:
            raise SpecificationError.at(("map", str(path)), "no area that lies anywhere", "outlines of areas")
        return cls(outlines)


def _matched(known: Mapping[str, object], asked: Sequence[str]) -> list[str]:
    return [own for own in asked if own.strip().casefold() in known]


def _features(path: Path) -> list[tuple[dict[str, Any], list[Array]]]:
    """Return the properties of each feature, and its rings."""
    expected = "a GeoJSON file with a feature collection of polygons"
    try:
        written = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        found = f"no file that can be read ({error.strerror})"
        raise SpecificationError.at(("map", str(path)), found, expected, code="file-missing") from None
    except (ValueError, RecursionError):
        raise SpecificationError.at(("map", str(path)), "no JSON", expected) from None
    try:
        return [(dict(own["properties"] or {}), _rings(own["geometry"])) for own in written["features"]]
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        raise SpecificationError.at(("map", str(path)), "other JSON", expected) from None


def _rings(geometry: Mapping[str, Any] | None) -> list[Array]:
    """Return the rings of polygons, outer ones counterclockwise and holes clockwise."""
    if geometry is None:
        return []
    shapes = {"Polygon": lambda own: [own], "MultiPolygon": list}
    rings = []
    for polygon in shapes[geometry["type"]](geometry["coordinates"]):
        for place, ring in enumerate(polygon):
            points = np.array([point[:2] for point in ring], dtype=np.float64)
            x, y = points.T
            if len(points) < 4 or not (np.abs(points) <= _FARTHEST).all():
                raise ValueError  # NaN is not within it either
            clockwise = float((x[:-1] * y[1:] - x[1:] * y[:-1]).sum()) < 0
            rings.append(points[::-1] if clockwise != (place > 0) else points)
    return rings


def mapped(
    pictures: Mapping[str, Answered], maps: Mapping[str, str], domain: Domain | None = None
) -> dict[str, Areas]:
    """Return the areas of each attribute that is to be mapped.

    Parameters
    ----------
    pictures : mapping of str to Answered
        The pictures of one attribute or level alone, by its name.
    maps : mapping of str to str
        The path of a GeoJSON file for each attribute or level, with ``:property`` behind it or not.
    domain : Domain, optional
        Whose values may be called as in any language, or by what the table has for them.

    Raises
    ------
    SpecificationError
        If no picture is about such an attribute alone, or as `Areas.read` does.
    """
    known = {name: own.axes[0] for name, own in pictures.items() if len(own.axes) == 1}
    named = [name for name, axis in known.items() if axis.kind == "categories"]
    found = {}
    for attribute, path in maps.items():
        if attribute not in named:
            expected = "an attribute of categories that a table is about alone"
            raise SpecificationError(unknown_name(("map", attribute), attribute, expected, named))
        file, _, key = (path, "", "") if Path(path).exists() else path.rpartition(":")
        labels = known[attribute].labels
        others = (
            [] if domain is None else [own for own in _called(domain, attribute) if len(own) == len(labels)]
        )
        found[attribute] = Areas.read(file or path, labels, name=key if file else "", others=others)
    return found


def _called(domain: Domain, name: str) -> Iterator[list[str]]:
    """Yield what the values of an attribute or a level are called: in files, and by a table."""
    for attribute in domain:
        plain = attribute.as_written
        if attribute.name == name:
            labels = [plain.label(code) for code in range(plain.size)]
            values = {str(label): value for value, label in plain.codebook.labels}
            yield from (labels, [values.get(label, label) for label in labels])
        for level in attribute.codebook.levels:
            if level.name == name:
                yield from (list(level.labels(plain)), [value for value, _ in level.groups])


def classes_of(values: Array) -> Array:
    """Return the bounds of classes with equally many figures: of few different ones fewer classes.

    Examples
    --------
    >>> classes_of(np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10])).tolist()
    [1.0, 2.8, 4.6, 6.4, 8.2, 10.0]
    """
    known = values[np.isfinite(values)]
    return np.unique(np.quantile(known, np.linspace(0, 1, len(CLASSES) + 1)))


def draw_areas(areas: Areas, answered: Answered, width: float = WIDE) -> Figure:
    """Return a map of the answers about one attribute, in classes of equally many; those hidden hatched."""
    from matplotlib.patches import Patch, PathPatch
    from matplotlib.path import Path as Outline

    bounds = classes_of(answered.estimates)
    points = np.concatenate([ring for rings in areas.outlines.values() for ring in rings])
    low, high = points.min(axis=0), points.max(axis=0)
    sphere = bool((np.abs(points) <= (360, 90)).all())  # longitudes are shorter away from the equator
    aspect = 1 / math.cos(math.radians(float(low[1] + high[1]) / 2)) if sphere else 1.0
    height = min(max(width * aspect * float(high[1] - low[1]) / float(high[0] - low[0]), 2.0), 1.3 * width)
    figure = new_figure(width, height + 1.1)
    axes = figure.add_subplot()
    step = float((high - low).max()) / _PARTS
    for name, value in zip(answered.axes[0].labels, answered.estimates.tolist(), strict=True):
        rings = [_thinned(ring, step) for ring in areas.outlines[name]]
        if not rings:
            continue
        outline = Outline.make_compound_path(*(Outline(ring, closed=True) for ring in rings))
        look: dict[str, Any] = {"facecolor": "none", "hatch": "////", "edgecolor": INK}
        if math.isfinite(value):
            look = {"facecolor": _colour(value, bounds), "edgecolor": GRID}
        axes.add_patch(PathPatch(outline, linewidth=0.5, **look))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect=aspect)
    axes.margins(0.01)
    axes.axis("off")
    digits = max(0, 2 - math.floor(math.log10(max(float(np.ptp(bounds)), 1e-9))))
    say, percent = answered.say, answered.measures == "share"
    texts = [
        say.percent(own, max(digits - 2, 0)) if percent else say.number(own, min(digits, 6)) for own in bounds
    ]
    keys = []
    for a, b, least, most in zip(bounds, bounds[1:], texts, texts[1:], strict=False):
        label = say("range", low=least, high=most)
        keys.append(Patch(facecolor=_colour((a + b) / 2, bounds), edgecolor=GRID, label=label))
    if answered.hidden is not None and answered.hidden.any():
        keys.append(Patch(facecolor="none", edgecolor=INK, hatch="////", label=say("not_shown")))
    figure.legend(
        handles=keys, loc="outside lower left", ncols=3 if width >= WIDE else 2, frameon=False,
        fontsize=9, labelcolor=INK, title=plain(answered.unit), title_fontsize=9, alignment="left",
    ).get_title().set_color(INK)  # fmt: skip
    return figure


def _colour(value: float, bounds: Array) -> str:
    """Return the colour of the class that a figure is in, spread over all where there are few."""
    count = max(len(bounds) - 1, 1)
    place = int(np.clip(np.searchsorted(bounds, value, side="right") - 1, 0, count - 1))
    return CLASSES[round(place * (len(CLASSES) - 1) / max(count - 1, 1))]


def _thinned(ring: Array, step: float) -> Array:
    """Return a ring without vertices that nobody sees."""
    cells = np.round(ring / step)
    kept = np.concatenate(([True], (cells[1:] != cells[:-1]).any(axis=1)))
    kept[-1] = True
    return ring[kept] if kept.sum() >= 4 else ring
