"""One small release with names that mean harm, for all tests of its page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages import HOSTILE

if TYPE_CHECKING:
    import matrixdp as mdp


@pytest.fixture(scope="package")
def release() -> mdp.Release:
    """Every kind of picture, and a table long enough to be searched."""
    import matrixdp as mdp  # not before its raise statements are marked

    domain = mdp.Domain({"name": HOSTILE, "age": {"min": 0, "max": 11}, "old": ["no", "yes"], "code": 3})
    workload = mdp.Workload(
        domain,
        mdp.marginals([0, 1]),
        mdp.product(old="identity", age="prefix"),
        mdp.product({"name": "identity", "old": "identity"}, name="<b>bold</b>"),
        mdp.product(old="identity", age="range"),
        mdp.pairwise("abs", ["age", "code"]),
    )
    people = 300
    table = {
        "name": [HOSTILE[i % 5] for i in range(people)],
        "age": [i * 7 % 12 for i in range(people)],
        "code": [i % 3 for i in range(people)],
        "old": [["no", "yes"][i * 7 % 12 > 5] for i in range(people)],
    }
    strategy = mdp.select(workload, mechanism="identity")
    return strategy.measure(table, mdp.Budget(rho=0.5)).reconstruct(expect=3_000)


@pytest.fixture(scope="package")
def folder(release: mdp.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from matrixdp.releases import save_release

    return save_release(release, tmp_path_factory.mktemp("report") / "people")


@pytest.fixture(scope="package")
def page(folder: Path) -> str:
    from matrixdp.report import report_release

    return report_release(folder)


@pytest.fixture(scope="package")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release such as an office publishes: 87 areas, a year of months, statistics, three attributes."""
    import matrixdp as mdp

    areas = [
        f"{kind} {place}" for place in range(29) for kind in ("North Field", "Lake", "Old Mill Road East")
    ]
    days = {"from": "2019-03-01", "to": "2020-02-29", "by": "month"}
    kinds, sizes = ["one", "two", "three"], {"min": 0, "max": 9}
    domain = mdp.Domain({"area": areas, "month": days, "kind": kinds, "size": sizes, "old": ["no", "yes"]})
    workload = mdp.Workload(
        domain,
        mdp.marginals(0),
        mdp.marginals([["area"], ["month"], ["area", "old"], ["month", "kind"], ["kind", "size", "old"]]),
        mdp.product(month="prefix", old="identity"),
        mdp.ask.mean("size", by="kind"),
        mdp.ask.share(mdp.marginals([["kind", "old"]]), of="kind"),
        mdp.ask.quantile("month"),
    )
    people = range(4_000)
    table = {
        "area": [areas[i * i % 87] for i in people],
        "month": [f"{2019 + (i % 12 > 9)}-{(i % 12 + 2) % 12 + 1:02d}-05" for i in people],
        "kind": [["one", "two", "three"][i * i % 3] for i in people],
        "size": [i % 7 for i in people],
        "old": [["no", "yes"][i % 5 == 0] for i in people],
    }
    strategy = mdp.select(workload, mechanism="residual")
    release = strategy.measure(table, mdp.Budget(rho=0.5), seed_not_private=1).reconstruct()
    return release.save(tmp_path_factory.mktemp("published") / "survey")


@pytest.fixture(scope="package")
def boundaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Squares with the names of the areas in upper case; the first has a hole, the last lies nowhere."""
    import json

    features = []
    names = [
        f"{kind} {place}" for place in range(29) for kind in ("North Field", "Lake", "Old Mill Road East")
    ]
    for place, name in enumerate(names):
        x, y = place % 10 - 100.0, place // 10 + 40.0
        ring = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]
        rings = (
            [ring]
            if place
            else [ring, [[x + 0.4, y + 0.4], [x + 0.6, y + 0.4], [x + 0.5, y + 0.6], [x + 0.4, y + 0.4]]]
        )
        shape = None if name == names[-1] else {"type": "Polygon", "coordinates": rings}
        own = {"id": place, "NAME": name.upper()}
        features.append({"type": "Feature", "properties": own, "geometry": shape})
    path = tmp_path_factory.mktemp("areas") / "areas.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    return path
