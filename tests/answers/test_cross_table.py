"""Cross tables against pandas' pivot tables of what was released, and totals against exact covariances."""

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.answers import cross_table as module
from matrixdp.answers.cross_table import CrossTable

SEXES, REGIONS = ["female", "male"], ["North", "South", "East", "West"]
JOBS = [f"job {place}" for place in range(14)]
DOMAIN = mdp.Domain({"sex": SEXES, "age": {"edges": [0, 18, 65, 100]}, "region": REGIONS, "job": JOBS})
GROUPS = [["sex", "age"], ["age", "region", "job"], ["sex", "age", "region", "job"], ["job", "region"]]
RNG = np.random.default_rng(5)
TABLE = {
    "sex": RNG.choice(SEXES, 4000),
    "age": RNG.integers(0, 100, 4000),
    "region": RNG.choice(REGIONS, 4000),
    "job": RNG.choice(JOBS, 4000),
}


def released(*entries: Any, mechanism: str = "residual") -> mdp.Release:
    workload = mdp.Workload(DOMAIN, *entries)
    return mdp.select(workload, mechanism=mechanism).measure(TABLE, mdp.Budget(mu=1)).reconstruct()


@pytest.fixture(scope="module")
def release() -> mdp.Release:
    return released(
        mdp.marginals([*GROUPS, ["sex"], ["age", "region"]]),
        mdp.product(sex="identity", age="prefix"),
        mdp.product(sex="identity", job={"sets": [["job 1", "job 2"], ["job 3"]]}, name="a few"),
        mdp.product(sex="identity", job={"sets": [["job 1", "job 2"], ["job 2"]]}, name="overlap"),
        mdp.ask.top("job", 2, by=["sex"]),
        mdp.ask.mean("age", by=["sex", "region"]),
    )


def cells(cross: CrossTable) -> dict[tuple[str, ...], module.Cell]:
    """The cells by the labels of panel, row group, row and column."""
    found = {}
    for panel in cross.panels:
        outer = "" if len(cross.row_axes) == 2 else None
        for row in panel.rows:
            if row.group:
                outer = row.label
            place = [panel.label] if panel.label else []
            place += [] if outer is None else [outer]
            place += ["Total" if row.group else row.label]
            for label, cell in zip(cross.columns, row.cells, strict=False):
                found[(*place, label)] = cell
    return found


def along(cross: CrossTable) -> np.ndarray:
    """Return the four figures of every place along the axes."""
    return cross.figures.values.reshape(4, *(len(axis.labels) for axis in cross.axes))


@pytest.mark.parametrize("names", GROUPS)
def test_every_layout_is_the_pivot_table_of_what_was_released(release: mdp.Release, names) -> None:
    title = next(one.title for one in release.tables if one.group.attributes == tuple(DOMAIN.sort(names)))
    tidy = release.table(title).to_pandas().astype(dict.fromkeys(names, str))
    for layout in itertools.permutations(names):
        cross = release.cross_table(title, layout)
        pivoted = pd.pivot_table(
            tidy, "estimate", list(layout[:-1]), layout[-1], "sum", margins=True, margins_name="Total"
        )
        frame = cross.to_arrow().to_pandas().set_index(list(layout[:-1]))
        assert set(frame.columns) == set(pivoted.columns)
        unit = 1.0
        for place, row in pivoted.iterrows():
            key = place if isinstance(place, tuple) else (place,)
            key = ("Total",) * len(key) if key[0] == "Total" else key
            own = frame.loc[key if len(key) > 1 else key[0]]
            assert np.allclose(own[pivoted.columns], row, rtol=0, atol=unit / 2 * (1 + 1e-6))
        for name, total in tidy.groupby(layout[0])["estimate"].sum().items():  # of each row group or panel
            inner = (name, *["Total"] * (len(layout) - 2))
            found = frame.loc[inner if len(inner) > 1 else name, "Total"]
            assert math.isclose(found, total, abs_tol=unit / 2 * (1 + 1e-6))
        # the cells say what the frame does, in the order of panels, groups and rows
        shown = [cell.value for cell in cells(cross).values()]
        assert shown == frame.to_numpy().ravel().tolist()


def test_totals_are_what_was_published_with_exact_errors(release: mdp.Release) -> None:
    cross = release.cross_table("age by region and job", ["job", "age", "region"])
    assert [axis.name for axis in cross.axes] == ["job", "age", "region"]
    lower = release.table("age by region").to_pylist()
    for (age, region), row in zip(itertools.product(range(3), range(4)), lower, strict=True):
        found = along(cross)[:, 0, age + 1, region + 1]
        assert np.allclose(found, [row[name] for name in ("estimate", "stddev", "lower", "upper")], rtol=1e-9)
    entry = mdp.marginals([["age", "region", "job"]])
    covariances = release.covariances(entry).reshape(3, 4, 14, 3, 4, 14)
    assert math.isclose(along(cross)[1, 0, 0, 0] ** 2, covariances.sum(), rel_tol=1e-9)
    assert math.isclose(along(cross)[1, 3, 0, 0] ** 2, covariances[:, :, 2, :, :, 2].sum(), rel_tol=1e-9)


@pytest.mark.parametrize(
    "mechanism", ["residual", "identity", "workload", "generalized-marginals", "opt-kron"]
)
def test_totals_are_sums_whatever_was_measured(mechanism: str) -> None:
    cross = released(mdp.marginals([["sex", "region"]]), mechanism=mechanism).cross_table("sex by region")
    estimates = along(cross)[0]
    assert np.allclose(estimates[0], estimates[1:].sum(axis=0), atol=1e-6)
    assert np.allclose(estimates[:, 0], estimates[:, 1:].sum(axis=1), atol=1e-6)


def test_totals_stand_only_where_no_value_counts_twice(release: mdp.Release) -> None:
    assert [axis.total for axis in release.cross_table("age CDF by sex").axes] == [False, True]
    assert release.cross_table("overlap").columns == ("Total", "female", "male")
    assert [row.total for row in release.cross_table("overlap").panels[0].rows] == [False, False]
    few = release.cross_table("a few", ["sex", "job"])
    listed = release.table("a few").column("estimate").to_numpy()
    assert math.isclose(along(few)[0, 0, 0], listed.sum(), abs_tol=1e-6)


def test_the_shorter_attribute_is_in_the_columns_and_numbers_are_in_the_rows(release: mdp.Release) -> None:
    found = {one.title: release.cross_table(one) for one in release.tables if one.rows > 2}
    assert [axis.name for axis in found["age by region"].axes] == ["age", "region"]
    assert [axis.name for axis in found["age by region and job"].axes] == ["job", "age", "region"]
    assert found["region by job"].column_axis.name == "region"
    wide = released(mdp.marginals([["job"]])).cross_table("job")
    assert (wide.columns, wide.stub) == (("records",), "job")
    workload = mdp.Workload(mdp.Domain({"a": 20, "b": 30}), mdp.marginals(2))
    long = mdp.select(workload).measure({"a": [1], "b": [2]}, mdp.Budget(mu=1)).reconstruct()
    cross = long.cross_table("a by b")
    assert (cross.columns, [axis.name for axis in cross.row_axes]) == (("records",), ["a", "b"])
    assert sum(row.group for row in cross.panels[0].rows) == 21


def test_statistics_are_crossed_with_nothing_where_there_is_no_figure(release: mdp.Release) -> None:
    top = next(one for one in release.tables if one.title.startswith("top"))
    cross = release.cross_table(top)
    rows = release.table(top).to_pylist()
    texts = [cell.text for cell in cells(cross).values()]
    assert len(texts) - texts.count("-") == len(rows) == 4
    means = release.cross_table("mean of age by sex and region", ["region", "sex"])
    assert means.columns == ("female", "male")
    assert not any(axis.total for axis in means.axes)
    [first, *_] = release.table("mean of age by sex and region").to_pylist()
    cell = cells(means)["North", "female"]
    assert first["lower"] - cell.lower < 0.1 > cell.upper - first["upper"]
    assert cell.lower <= first["lower"] < first["upper"] <= cell.upper


def test_what_cannot_be_crossed_is_refused(release: mdp.Release, monkeypatch: pytest.MonkeyPatch) -> None:
    for title, layout in (
        ("sex by age", ["sex"]),
        ("sex by age", ["sex", "aeg"]),
        ("sex by age", "sex, age"),
        ("sex by age", ["sex", "age", "age"]),
    ):
        with pytest.raises(mdp.WorkloadError) as caught:
            release.cross_table(title, layout)
        assert caught.value.path == ("cross",)
    with pytest.raises(mdp.WorkloadError):
        released(mdp.marginals(0)).cross_table("total")
    monkeypatch.setattr(module, "MAX_CELLS", 11)
    with pytest.raises(mdp.TooLargeError, match="12 figures"):
        release.cross_table("sex by age")
