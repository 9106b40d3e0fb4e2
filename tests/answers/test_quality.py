"""What readers see of figures: rounded to a base, within their range, without what is suppressed."""

import math

import numpy as np
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.answers.quality import Presentation, for_readers, texts_for_readers


def test_shares_and_counts_are_shown_within_their_range() -> None:
    presentation = Presentation(within_range=True)
    for unit, values, expected in (
        ("share", [-0.2, 0.5, 1.3], [0.0, 0.5, 1.0]),
        ("records", [-3.0, 4.0], [0.0, 4.0]),
        ("difference", [-3.0, 4.0], [-3.0, 4.0]),
        ("income", [-3.0, 4.0], [-3.0, 4.0]),
    ):
        for figure in ("estimate", "lower", "upper"):
            assert presentation.shown(np.array(values), figure, unit, 1).tolist() == expected


@pytest.mark.parametrize("base", [1, 3, 5, 20, 1000])
@pytest.mark.parametrize("decimals", [None, 1, 0, -2])
def test_counts_are_multiples_of_the_base_and_intervals_hold_what_they_did(base: int, decimals) -> None:
    values = np.random.default_rng(base).normal(0, 5000, 400)
    presentation = Presentation(round_to=base)
    found = {f: presentation.shown(values, f, "records", decimals) for f in ("estimate", "lower", "upper")}
    step = max(base, 10.0 ** -(decimals or 0)) if decimals is None or 100 % base == 0 else base
    for own in found.values():
        assert (own % base == 0).all()
        assert not np.signbit(own[own == 0]).any()
    assert (np.abs(found["estimate"] - values) <= step / 2).all()
    assert (found["lower"] <= values).all()
    assert (found["upper"] >= values).all()
    assert presentation.shown(values, "stddev", "records", 1).tolist() == np.round(values, 1).tolist()
    assert presentation.shown(values, "estimate", "share", 3).tolist() != found["estimate"].tolist()


def test_suppressed_rows_have_no_figure_at_all() -> None:
    table = pa.table(
        {
            "age": ["0-17", "18-64", "65+"],
            "estimate": [1203.0, 30.4, -4.4],
            "stddev": [10.0, 10.0, 10.0],
            "lower": [1183.0, 10.8, -24.0],
            "upper": [1223.0, 50.0, 15.2],
        }
    )
    shown = for_readers(table, "records", Presentation(suppress_above=0.3))
    for row, gone in zip(shown.to_pylist(), (False, True, True), strict=True):
        assert all((row[name] is None) == gone for name in ("estimate", "stddev", "lower", "upper"))
        assert row["quality"] == ("F" if gone else "A")
    texts = texts_for_readers(table, "records", Presentation(0.3, within_range=True, round_to=5))
    assert texts["estimate"] == ["1,205", "F", "F"]
    assert texts["lower"] == ["1,180", "F", "F"]
    exact = texts_for_readers(table, "records", Presentation(), most=2)
    assert (exact["estimate"], exact["quality"]) == (["1,203", "30"], ["A", "C"])
    missing = pa.table({"estimate": [None, 3.0], "stddev": [None, 1.0]})
    assert texts_for_readers(missing, "income", Presentation(0.1))["estimate"] == ["-", "F"]


def test_letters_follow_the_wider_of_the_standard_error_and_the_interval() -> None:
    """What is estimated at 0 with an error of 0, and may be 37, is no exact 0."""
    figures = [(0.0, 0.0, 0.0, 37.0), (20.0, 0.4, 10.0, 30.0), (20.0, 0.4, 19.2, 20.8), (7.0, 0.0, 7.0, 7.0)]
    names = ("estimate", "stddev", "lower", "upper")
    table = pa.table(dict(zip(names, map(list, zip(*figures, strict=True)), strict=True)))
    assert texts_for_readers(table, "income", Presentation())["quality"] == ["A", "A", "A", "A"]
    told = table.replace_schema_metadata({b"matrixdp": b'{"multiplier": 2.0}'})
    assert texts_for_readers(told, "income", Presentation())["quality"] == ["F", "C", "A", "A"]
    assert texts_for_readers(told, "income", Presentation(0.2))["estimate"] == ["F", "F", "20.00", "7.00"]


@pytest.mark.parametrize("binned", [True, False])
def test_letters_of_a_release_see_the_error_of_binning(binned: bool) -> None:
    ages = {"edges": [0, 10, 20]} if binned else {"min": 0, "max": 19}
    workload = mdp.Workload(mdp.Domain({"age": ages}), mdp.marginals(1))
    table = {"age": [3, 14] * 5000}
    release = mdp.select(workload).measure(table, mdp.Budget(mu=1)).reconstruct()
    letters = texts_for_readers(release.mean("age").to_arrow(), "age", Presentation())["quality"]
    assert letters == ["C" if binned else "A"]


@pytest.mark.parametrize(
    "wrong",
    [{"suppress_above": 0}, {"suppress_above": math.nan}, {"suppress_above": True}, {"round_to": 0},
     {"round_to": 2.5}, {"round_to": True}],
)  # fmt: skip
def test_rules_that_say_nothing_are_refused(wrong) -> None:
    with pytest.raises(mdp.SpecificationError):
        Presentation(**wrong)
