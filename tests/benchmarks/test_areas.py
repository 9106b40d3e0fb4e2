"""The nation of the benchmark of areas, and other ways to share a budget in it."""

import csv

import areas
import nation
import numpy as np
import pytest


@pytest.fixture
def small(monkeypatch):
    levels = (("nation", 1, 0.0, 1), ("state", 3, 0.0, 3), ("county", 20, 1.0, 12), ("tract", 90, 1.0, 40))
    monkeypatch.setattr(nation, "_LEVELS", levels)
    return nation.Nation.down_to("tract")


def test_areas_are_as_many_as_said_and_nest(small, tmp_path):
    assert small.counts == (1, 3, 20, 90)
    small.write_areas(tmp_path / "areas.csv")
    with (tmp_path / "areas.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["tract", "county", "state"]
    assert len({row[0] for row in rows}) == len(rows) == 90
    assert len({row[1] for row in rows}) == len({tuple(row[1:]) for row in rows}) == 20


def test_counts_of_larger_areas_are_sums(small):
    tracts = nation.counts_of(small, 500, 3, ("sex",)).reshape(90, 2)
    counties = nation.counts_of(small, 500, 2, ("sex",)).reshape(20, 2)
    assert tracts.sum() == 500
    for county, own in enumerate(counties):
        assert own.tolist() == tracts[small.groups[2] == county].sum(axis=0).tolist()


def _dense(small, shares):
    """Return the RMSE of the counts of each level, by the least squares of all areas."""
    rows = [(own == node).astype(float) for own in small.groups for node in range(own.max() + 1)]
    matrix, weights = np.array(rows), np.repeat(shares, small.counts)
    inverse = np.linalg.inv(matrix.T @ (weights[:, None] * matrix))
    variances = np.einsum("ij,jk,ik->i", matrix, inverse, matrix)
    return [np.sqrt(own.mean()) for own in np.split(variances, np.cumsum(small.counts)[:-1])]


def test_errors_of_counts_are_those_of_dense_least_squares(small):
    classes = areas._Classes(small, [(((),), 1.0)] * 4, "gaussian")
    assert classes.alone() == pytest.approx(_dense(small, [0, 0, 0, 1]))
    assert classes.by_level(classes.equal()) == pytest.approx(_dense(small, [0.25] * 4))
    shares = classes.shared_by_level()
    assert np.concatenate(shares).sum() == pytest.approx(1)
    assert classes.by_level(shares) == pytest.approx(_dense(small, np.concatenate(shares)))
