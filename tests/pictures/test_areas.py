"""Maps have every area in the class of its figure, and reject boundaries that do not fit."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from matrixdp.errors import SpecificationError
from matrixdp.pictures.areas import CLASSES, Areas, classes_of, draw_areas, mapped
from matrixdp.pictures.plots import Answered, Axis

NAMES = tuple(f"Area {place}" for place in range(10))


def square(x: float, size: float = 1.0) -> list[list[float]]:
    return [[x, 0], [x, size], [x + size, size], [x + size, 0], [x, 0]]


def written(path: Path, features: Sequence[tuple[Mapping[str, object], object]]) -> str:
    made = [{"type": "Feature", "properties": own, "geometry": shape} for own, shape in features]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": made}), encoding="utf-8")
    return str(path)


@pytest.fixture
def file(tmp_path: Path) -> str:
    polygons = [[[square(float(place))]] for place in range(10)]
    polygons[0][0].append([[0.2, 0.2], [0.8, 0.2], [0.5, 0.8], [0.2, 0.2]])
    shapes: list[object] = [{"type": "MultiPolygon", "coordinates": own} for own in polygons]
    shapes[9] = None
    features = [
        ({"id": name[5:], "name": f" {name.upper()}"}, shape)
        for name, shape in zip(NAMES, shapes, strict=True)
    ]
    return written(tmp_path / "areas.geojson", [*features, ({"id": None, "name": "elsewhere"}, shapes[1])])


def answered(estimates: np.ndarray) -> Answered:
    axis = Axis("area", NAMES, "categories")
    return Answered((axis,), estimates, estimates * 0 + 1, estimates - 2, estimates + 2)


def test_areas_are_found_by_the_property_that_fits(file: str):
    outlines = Areas.read(file, NAMES).outlines
    assert [len(outlines[name]) for name in NAMES] == [2, *[1] * 8, 0]
    for ring, sign in zip(outlines["Area 0"], (1, -1), strict=True):  # a hole turns the other way
        x, y = ring.T
        assert np.sign((x[:-1] * y[1:] - x[1:] * y[:-1]).sum()) == sign
    assert Areas.read(file, ["3"], name="id").outlines["3"][0][:, 0].min() == 3
    with pytest.raises(SpecificationError, match="'Area 3'"):
        Areas.read(file, NAMES, name="id")


def test_classes_have_equally_many_areas_and_those_without_a_figure_are_hatched(file: str):
    estimates = np.array([50.0, 3, 8, 1, 90, 20, 70, 7, 11, 40])
    own = answered(estimates).without(estimates == 8)
    figure = draw_areas(Areas.read(file, NAMES), own)
    patches = figure.axes[0].patches
    assert len(patches) == 9  # the last lies nowhere
    assert [patch.get_hatch() for patch in patches] == [None, None, "////", *[None] * 6]
    from matplotlib.colors import to_hex

    colours = [to_hex(patch.get_facecolor()) for patch in patches]
    bounds = classes_of(own.estimates)
    assert len(bounds) == 6
    for colour, value in zip(colours, own.estimates, strict=False):
        if np.isfinite(value):
            place = CLASSES.index(colour)
            assert bounds[place] <= value <= bounds[place + 1]
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert (len(texts), texts[-1]) == (6, "not shown")
    assert texts[0].startswith("1.0 to ")


def test_equal_figures_are_one_class(file: str):
    assert len(draw_areas(Areas.read(file, NAMES), answered(np.full(10, 5.0))).axes[0].patches) == 9


@pytest.mark.parametrize(
    ("maps", "code", "words"),
    [
        ({"place": "a"}, "unknown-name", "area"),
        ({"age": "a"}, "unknown-name", "area"),
        ({"area": "nowhere.geojson"}, "file-missing", "nowhere.geojson"),
        ({"area": "{path}/text.geojson"}, "specification", "no JSON"),
        ({"area": "{path}/list.geojson"}, "specification", "other JSON"),
        ({"area": "{path}/lines.geojson"}, "specification", "other JSON"),
        ({"area": "{path}/deep.geojson"}, "specification", "no JSON"),
        ({"area": "{path}/nan.geojson"}, "specification", "other JSON"),
        ({"area": "{path}/far.geojson"}, "specification", "other JSON"),
        ({"area": "{path}/large.geojson"}, "specification", "other JSON"),
        ({"area": "{path}/short.geojson"}, "specification", "other JSON"),
        ({"area": "{path}/flat.geojson"}, "specification", "no area that lies anywhere"),
        ({"area": "{path}/null.geojson"}, "specification", "no area that lies anywhere"),
        ({"area": "{path}/few.geojson:name"}, "unknown-name", "'Area 1', 'Area 2'"),
    ],
)
def test_boundaries_that_do_not_fit_are_rejected(tmp_path: Path, maps, code, words):
    (tmp_path / "text.geojson").write_text("{")
    (tmp_path / "list.geojson").write_text("[1]")
    line = {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}
    written(tmp_path / "lines.geojson", [({"name": "Area 0"}, line)])
    written(
        tmp_path / "few.geojson", [({"name": "Area 0"}, {"type": "Polygon", "coordinates": [square(0.0)]})]
    )
    (tmp_path / "deep.geojson").write_text("[" * 200_000)
    rings: dict[str, list[list[float]] | None] = {
        "nan": [[0, 0], [float("nan"), 1], [1, 1], [0, 0]],
        "far": [[0, 0], [1e300, 1], [1, 1], [0, 0]],
        "large": [[0, 0], [10**400, 1], [1, 1], [0, 0]],
        "short": [[0, 0], [1, 1], [0, 0]],
        "flat": [[0, 0], [1, 0], [2, 0], [0, 0]],
        "null": None,
    }
    for name, ring in rings.items():
        shape = ring and {"type": "Polygon", "coordinates": [ring]}
        written(tmp_path / f"{name}.geojson", [({"name": area}, shape) for area in NAMES])
    own = answered(np.arange(10.0))
    age = Axis("age", NAMES, "values")
    pictures = {"area": own, "age": replace(own, axes=(age,))}
    asked = {name: path.format(path=tmp_path) for name, path in maps.items()}
    with pytest.raises(SpecificationError, match=words) as caught:
        mapped(pictures, asked)
    assert caught.value.code == code
