"""What readers see of figures: rounded to a base, within their range, without what is suppressed."""

import math

import numpy as np
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.answers.figures import Figures, Presentation
from matrixdp.answers.shown import Shown


def of(values: list[float], measures: str, rules: Presentation, decimals: int | None = 1, **told) -> Figures:
    """Return figures that are alike in all but their kind."""
    own = np.array([values] * 4)
    return Figures(own, measures, decimals, np.zeros(len(values), dtype=bool), rules=rules, **told)


def test_figures_are_shown_within_their_range() -> None:
    rules = Presentation(within_range=True)
    for measures, limits, values, expected in (
        ("share", None, [-0.2, 0.5, 1.3], [0.0, 0.5, 1.0]),
        ("records", None, [-3.0, 4.0], [0.0, 4.0]),
        ("difference", None, [-3.0, 4.0], [-3.0, 4.0]),
        ("income", None, [-3.0, 4.0], [-3.0, 4.0]),
        ("income", (0.0, 3.0), [-3.0, 4.0], [0.0, 3.0]),
    ):
        shown = of(values, measures, rules, limits=limits or (-math.inf, math.inf)).shown
        assert all(shown[place].tolist() == expected for place in (0, 2, 3))
        assert shown[1].tolist() == values


@pytest.mark.parametrize("base", [1, 3, 5, 20, 1000])
@pytest.mark.parametrize("decimals", [None, 1, 0, -2])
def test_counts_are_multiples_of_the_base_and_intervals_hold_what_they_did(base: int, decimals) -> None:
    values = np.random.default_rng(base).normal(0, 5000, 400)
    rules = Presentation(round_to=base)
    estimates, stddevs, lower, upper = of(values.tolist(), "records", rules, decimals).shown
    for own in (estimates, lower, upper):
        assert (own % base == 0).all()
        assert not np.signbit(own[own == 0]).any()
    assert (np.abs(estimates - values) <= base / 2).all()
    assert (lower <= values).all()
    assert (upper >= values).all()
    assert stddevs.tolist() == (values if decimals is None else np.round(values, decimals)).tolist()
    assert of(values.tolist(), "share", rules, 3).shown[0].tolist() != estimates.tolist()


def test_counts_are_whole_and_shares_are_in_percent() -> None:
    values = [1234.5, -0.4]
    for measures, decimals, expected in (
        ("records", 1, ["1,234", "0"]),
        ("records", -2, ["1,234", "0"]),
        ("difference", 3, ["1,234", "0"]),
        ("income", 1, ["1,234.5", "-0.4"]),
        ("share", 4, ["123,450.0%", "-40.0%"]),
    ):
        assert of(values, measures, Presentation(), decimals).texts("estimate") == expected
    assert of(values, "records", Presentation(), 1).texts("stddev") == ["1,234.5", "-0.4"]
    assert of(values, "records", Presentation(), 1).intervals() == ["1,234 to 1,235", "-1 to 0"]


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
    shown = Shown(table, "records", Presentation(suppress_above=0.3)).numbers
    for row, gone in zip(shown.to_pylist(), (False, True, True), strict=True):
        assert all((row[name] is None) == gone for name in ("estimate", "stddev", "lower", "upper"))
        assert row["quality"] == ("F" if gone else "A")
    rounded = Shown(table, "records", Presentation(0.3, within_range=True, round_to=5))
    assert rounded.texts("estimate") == ["1,205", "F", "F"]
    assert rounded.texts("lower") == ["1,180", "F", "F"]
    exact = Shown(table, "records", first=2)
    assert (exact.texts("estimate"), exact.letters) == (["1,203", "30"], ["A", "C"])
    missing = pa.table({"estimate": [None, 3.0], "stddev": [None, 1.0]})
    assert Shown(missing, "income", Presentation(0.1)).texts("estimate") == ["-", "F"]


def test_letters_follow_the_wider_of_the_standard_error_and_the_interval() -> None:
    """What is estimated at 0 with an error of 0, and may be 37, is no exact 0."""
    figures = [(0.0, 0.0, 0.0, 37.0), (20.0, 0.4, 10.0, 30.0), (20.0, 0.4, 19.2, 20.8), (7.0, 0.0, 7.0, 7.0)]
    names = ("estimate", "stddev", "lower", "upper")
    table = pa.table(dict(zip(names, map(list, zip(*figures, strict=True)), strict=True)))
    assert Shown(table, "income").letters == ["A", "A", "A", "A"]
    told = table.replace_schema_metadata({b"matrixdp": b'{"multiplier": 2.0}'})
    assert Shown(told, "income").letters == ["F", "C", "A", "A"]
    assert Shown(told, "income", Presentation(0.2)).texts("estimate") == ["F", "F", "20.00", "7.00"]


@pytest.mark.parametrize("binned", [True, False])
def test_letters_of_a_release_see_the_error_of_binning(binned: bool) -> None:
    ages = {"edges": [0, 10, 20]} if binned else {"min": 0, "max": 19}
    workload = mdp.Workload(mdp.Domain({"age": ages}), mdp.marginals(1))
    table = {"age": [3, 14] * 5000}
    release = mdp.select(workload).measure(table, mdp.Budget(mu=1)).reconstruct()
    letters = Shown(release.mean("age").to_arrow(), "age").letters
    assert letters == ["C" if binned else "A"]


@pytest.mark.parametrize(
    "wrong",
    [{"suppress_above": 0}, {"suppress_above": math.nan}, {"suppress_above": True}, {"round_to": 0},
     {"round_to": 2.5}, {"round_to": True}],
)  # fmt: skip
def test_rules_that_say_nothing_are_refused(wrong) -> None:
    release = mdp.select(mdp.Workload(mdp.Domain({"a": 2}), mdp.marginals(1))).measure(
        {"a": [0]}, mdp.Budget(mu=1)
    )
    with pytest.raises(mdp.SpecificationError):
        release.reconstruct().presented(**wrong)
