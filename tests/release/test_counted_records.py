"""Where only some records of a person count, every face says so, and size and order are not misread."""

import pytest

import matrixdp as mdp

TABLE = {"p": [1] * 9 + [2], "month": ["2025-01-05"] * 5 + ["2025-02-05"] * 5}
SPEC = {
    "domain": {"month": {"from": "2025-01-01", "to": "2025-02-28", "by": "month", "title": "Month"}},
    "workload": [{"marginals": [0, 1]}],
    "privacy": {"mu": 2},
}


def released(unit, **more):
    return mdp.release(SPEC | {"unit": unit}, table=TABLE, **more)


def test_every_face_says_that_figures_are_of_records_that_count(tmp_path):
    release = released({"id": "p", "max_records": 3}, out=tmp_path / "out")
    told = release.presentation.counted
    assert " 3 " in told
    assert mdp.report_release(tmp_path / "out").count(told) >= 2
    assert told in release.presentation.words
    assert release.in_language("fr").presentation.counted != told
    each = released({"id": "p", "per": "month", "max_values": 2}).presentation.counted
    assert "Month" in each
    assert not released({"records": 3}).presentation.counted


def test_a_smaller_table_than_expected_is_explained_by_the_unit():
    bounded, *_ = released({"id": "p", "max_records": 1}, expect=5_000).warnings
    spelling, *_ = released({"records": 1}, expect=5_000).warnings
    assert "of a person count" in bounded
    assert "of a person count" not in spelling


@pytest.mark.parametrize(
    ("unit", "warned"),
    [
        ({"id": "p", "max_records": 3}, True),
        ({"records": 3}, False),
        ({"id": "p", "per": "month", "max_values": 2}, False),
    ],
)
def test_order_in_time_is_warned_of(unit, warned):
    told = [
        one for one in mdp.advice(mdp.load_specification(SPEC | {"unit": unit})) if one.startswith("unit:")
    ]
    assert len(told) == warned
