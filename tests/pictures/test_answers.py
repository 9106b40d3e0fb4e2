"""Pictures show the figures that they are given, each in its place: answers, shares and errors."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.dates import num2date

import matrixdp as mdp
from matrixdp.pictures import plots
from matrixdp.pictures.plots import (
    MAX_DRAWN,
    NARROW,
    WIDE,
    Answered,
    Axis,
    axes_of,
    cost_shares,
    draw_answers,
    form_of,
)


def drawn(answers: Answered, title: str = "") -> Any:
    return draw_answers(answers, title)


def texts(labels: Any) -> list[str]:
    return [label.get_text() for label in labels]


SEX = Axis("sex", ("female", "male"), "categories")
AGE = Axis("age, at most", tuple(map(str, range(5))), "cumulative")


def answered(*axes, seed=1):
    count = int(np.prod([axis.size for axis in axes]))
    random = np.random.Generator(np.random.PCG64(seed))
    estimates = random.integers(-5, 1000, count).astype(float)
    stddevs = random.uniform(1, 9, count)
    return Answered(axes, estimates, stddevs, estimates - 2 * stddevs, estimates + 3 * stddevs)


def categories(size):
    return Axis("code", tuple(map(str, range(size))), "categories")


def ranges(size):
    values = tuple(map(str, range(size)))
    labels = tuple(f"{a}-{b}" for a in range(size) for b in range(a, size))
    return Axis("age", labels, "ranges", values)


def months(count):
    ends = np.datetime64("2019-11"), np.datetime64("2019-11") + count
    days = np.arange(*ends).astype("M8[D]").tolist()
    return Axis("month", tuple(map(str, days)), "values", days=tuple(days))


@pytest.mark.parametrize(
    ("axes", "form"),
    [
        ((), "rows"),
        ((SEX,), "rows"),
        ((categories(41),), "rows"),
        ((Axis("age", tuple(map(str, range(30))), "values"),), "rows"),
        ((Axis("age", tuple(map(str, range(99))), "values"),), "lines"),
        ((months(3),), "lines"),
        ((AGE,), "lines"),
        ((AGE, SEX), "lines"),
        ((AGE, AGE), "heat map"),
        ((categories(7), AGE), "panels"),
        ((categories(13), AGE), "heat map"),
        ((SEX, SEX, SEX), "panels"),
        ((SEX, months(14), categories(5)), "panels"),
        ((categories(9), SEX, categories(87)), "rows"),
        ((categories(30), categories(40)), "heat map"),
        ((categories(500), SEX), "rows"),
        ((SEX, ranges(4)), "triangles"),
        ((categories(7), ranges(4)), "rows"),
        ((ranges(4), ranges(4)), "rows"),
    ],
)
def test_the_form_follows_from_the_axes(axes, form):
    assert form_of(axes) == form
    for width in (WIDE, NARROW):  # whatever it is, it can be drawn
        assert draw_answers(answered(*axes), "title", width).get_figwidth() == width


def test_bars_have_their_lengths_and_intervals():
    own = answered(SEX)
    (axes,) = drawn(own).axes
    assert [bar.get_width() for bar in axes.patches] == own.estimates.tolist()
    assert texts(axes.get_yticklabels()) == ["female", "male"]
    segments = axes.collections[0].get_segments()
    for segment, low, high in zip(segments, own.lower, own.upper, strict=True):
        assert segment[:, 0].tolist() == [low, high]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_bands_lie_around_the_lines_of_their_own_category(order):
    own = answered(*((SEX, AGE)[place] for place in order))
    figure = drawn(own)
    (axes,) = figure.axes
    estimates, lower, upper = (
        figures.reshape(own.shape).transpose(order) for figures in (own.estimates, own.lower, own.upper)
    )
    assert np.array_equal([line.get_ydata() for line in axes.lines], estimates)
    assert texts(figure.legends[0].get_texts()) == ["female", "male"]
    for band, low, high in zip(axes.collections, lower, upper, strict=True):
        heights = band.get_paths()[0].vertices[:, 1]
        assert set(heights.tolist()) == {*low.tolist(), *high.tolist()}
    assert axes.get_xlabel() == "age, at most"
    assert figure.legends[0].get_title().get_text() == "sex"


def test_a_legend_has_every_name():
    odd = Axis("sex", ("_hidden", "$x$", "a\x1b[1mb"), "categories")
    (legend,) = drawn(answered(odd, AGE)).legends
    assert texts(legend.get_texts()) == ["\N{HAIR SPACE}_hidden", r"\$x\$", "a [1mb"]


def test_a_unit_is_no_formula():
    for own in (answered(SEX, AGE), answered(SEX)):
        (axes,) = drawn(replace(own, unit="$x^")).axes
        assert r"\$x^" in (axes.get_xlabel(), axes.get_ylabel())
        axes.figure.canvas.draw()


def test_a_heat_map_has_rows_columns_and_their_errors():
    own = answered(categories(13), AGE)
    maps = [axes for axes in drawn(own).axes if axes.images]
    assert [axes.get_title() for axes in maps] == ["estimate", "standard error"]
    assert np.array_equal(maps[0].images[0].get_array(), own.estimates.reshape(13, 5))
    assert np.array_equal(maps[1].images[0].get_array(), own.stddevs.reshape(13, 5))
    assert maps[0].get_ylabel() == "code"
    assert maps[0].get_xlabel() == "age, at most"
    assert texts(maps[0].get_yticklabels()) == [str(code) for code in range(13)]


def test_small_multiples_have_a_panel_for_each_combination():
    own = answered(SEX, categories(5), Axis("old", ("no", "yes"), "categories"))
    figure = drawn(own)
    assert [axes.get_title() for axes in figure.axes] == [
        "female, no",
        "female, yes",
        "male, no",
        "male, yes",
    ]
    cells = own.estimates.reshape(2, 5, 2).transpose(0, 2, 1).reshape(4, 5)
    assert [[bar.get_width() for bar in axes.patches] for axes in figure.axes] == cells.tolist()
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    assert texts(figure.axes[0].get_yticklabels()) == list("01234")


def test_many_names_are_all_there_the_largest_first():
    own = answered(Axis("area", tuple(f"area {i}" for i in range(57)), "categories"))
    (axes,) = drawn(own).axes
    order = np.argsort(-own.estimates, kind="stable")
    assert texts(axes.get_yticklabels()) == [f"area {i}" for i in order]
    assert axes.lines[0].get_xdata().tolist() == own.estimates[order].tolist()
    hidden = own.without([i % 3 == 0 for i in range(57)])
    (axes,) = drawn(hidden).axes
    assert texts(axes.texts) == ["F"] * 19
    kept = [estimate for i, estimate in enumerate(own.estimates) if i % 3]
    left = axes.lines[0].get_xdata()
    assert left[~np.isnan(left)].tolist() == sorted(kept, reverse=True)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("count", [3, 12, 40, 400])
def test_dates_have_marks_at_the_firsts_of_months(width, count):
    figure = draw_answers(answered(months(count)), width=width)
    figure.canvas.draw()
    (axes,) = figure.axes
    marks = num2date(axes.get_xticks())
    assert {mark.day for mark in marks} == {1}
    assert 2 <= len(marks) <= width / 0.5
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    assert np.array_equal(axes.lines[0].get_xdata(), np.array(months(count).days, "datetime64[D]"))


def test_triangles_have_every_range_at_its_ends():
    own = answered(ranges(4), SEX)
    maps = [axes for axes in drawn(own).axes if axes.images]
    assert [axes.get_title() for axes in maps] == ["female", "male", "standard error, the largest"]
    for place, axes in enumerate(maps[:2]):
        square = axes.images[0].get_array()
        for query, label in enumerate(own.axes[0].labels):
            first, last = map(int, label.split("-"))
            assert square[first, last] == own.estimates[2 * query + place]
        assert np.ma.getmaskarray(square)[np.tril_indices(4, -1)].all() or np.isnan(square[1, 0])


def test_of_more_answers_than_have_names_the_largest_are_drawn():
    own = answered(categories(3_000))
    (axes,) = drawn(own).axes
    lengths = [bar.get_width() for bar in axes.patches]
    assert lengths == sorted(own.estimates.tolist(), reverse=True)[:40]
    assert axes.get_xlabel() == "records, the largest 40 of 3,000"


@pytest.fixture(scope="module")
def release():
    domain = mdp.Domain({"sex": ["female", "$male^", "<b>other</b>"], "age": {"min": 0, "max": 9}})
    workload = mdp.Workload(
        domain, mdp.marginals(2), mdp.product(sex="identity", age="prefix"), mdp.product(age="suffix")
    )
    table = {"sex": ["female", "$male^"] * 40, "age": list(range(10)) * 8}
    return mdp.select(workload, mechanism="identity").measure(table, mdp.Budget(rho=0.5)).reconstruct()


def test_a_release_draws_a_group_by_what_people_call_it(release):
    figure: Any = release.plot("Age CDF by Sex")
    figure.canvas.draw()  # a dollar sign begins no formula
    own = release.answer(mdp.product(sex="identity", age="prefix"))
    lines = np.array([line.get_ydata() for line in figure.axes[0].lines])
    assert np.allclose(lines.ravel(), own["estimate"].to_numpy())
    half = (own["upper"].to_numpy() - own["lower"].to_numpy()) / 2
    heights = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert np.isclose(heights.max(), (lines[0] + half[:10]).max())
    assert figure.get_suptitle() == "age CDF by sex"


def test_axes_of_suffixes_and_explicit_queries(release):
    (suffix,) = mdp.product(age="suffix").expand(release.domain)
    (axis,) = axes_of(release.domain, suffix)
    assert (axis.name, axis.kind, axis.size) == ("age, at least", "cumulative", 10)
    (dense,) = mdp.dense(np.eye(3), ["sex"]).expand(release.domain)
    (axis,) = axes_of(release.domain, dense)
    assert (axis.name, axis.kind, axis.size) == ("query", "categories", 3)
    (one,) = mdp.product(age={"ranges": [[0, 4]]}, sex="identity").expand(release.domain)
    assert [axis.name for axis in axes_of(release.domain, one)] == ["sex"]


def test_a_group_that_is_not_there_and_one_that_is_too_large_are_refused(release, monkeypatch):
    with pytest.raises(mdp.WorkloadError, match="age CDF by sex"):
        release.plot("age CDFs by sex")
    monkeypatch.setattr(plots, "MAX_DRAWN", 10)
    with pytest.raises(mdp.TooLargeError, match="30 answers; a picture has at most 10"):
        release.plot("age CDF by sex")
    assert MAX_DRAWN == 1_000_000


@pytest.fixture(scope="module")
def strategy():
    domain = mdp.Domain({"sex": ["f", "m"], "age": range(8), **{f"a{i}": 2 for i in range(4)}})
    workload = mdp.Workload(domain, mdp.marginals([1, 2]), mdp.product(age="prefix"))
    return mdp.select(workload, mechanism="residual")


def test_shares_are_those_of_the_parts(strategy):
    plan = strategy.selection.plan
    shares = cost_shares(plan)
    assert sum(shares.values()) == pytest.approx(1)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    for attributes, share in shares.items():
        own = [part for part in plan.parts if part.attributes == attributes]
        assert share == pytest.approx(sum(p.column_power_sum(2) / p.variance for p in own), rel=1e-6)


def test_shares_and_errors_are_drawn_the_largest_first(strategy):
    figure = strategy.plot(mdp.Budget(rho=0.02))
    figure.canvas.draw()
    measured, errors = figure.axes[:2]
    widths = [bar.get_width() for bar in measured.patches]
    assert sum(widths) == pytest.approx(100)
    assert len(widths) == 13  # twelve and the others together
    assert errors.get_title() == f"standard errors, the largest of {len(strategy.workload)} groups"
    variances = map(strategy.selection.analysis.variances, strategy.workload)
    own = [np.sqrt(of_group.mean() / (2 * 0.02)) for of_group in variances]
    assert np.allclose(errors.lines[0].get_xdata(), sorted(own, reverse=True)[:12], rtol=1e-6)
    assert (errors.lines[1].get_xdata() >= errors.lines[0].get_xdata() * (1 - 1e-9)).all()


def test_a_matrix_is_drawn_as_it_is_measured():
    strategy = mdp.select(mdp.Workload(mdp.Domain({"age": range(16)}), mdp.product(age="prefix")))
    measured, _, drawn = strategy.plot().axes
    assert texts(measured.get_yticklabels()) == ["age"]
    block = strategy.selection.plan.parts[0].blocks[0]
    assert np.array_equal(drawn.images[0].get_array(), block.matrix.multiply(np.eye(16)))


def test_a_budget_for_other_neighbours_is_refused(strategy):
    with pytest.raises(mdp.PrivacyError):
        strategy.plot(mdp.Budget(rho=0.5, neighbours="replace"))
