"""What values show of themselves is short, harmless and right, however much they hold."""

import math
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.display import MAX_ROWS, Displayed, Preview, listed, printable, shown_text
from matrixdp.model.tables import Mixture
from matrixdp.releases import release as glance
from tests.pages import Page

#: A name that is code for a browser, for a terminal and over several lines.
HOSTILE = "<script>alert(1)</script>\n\x1b[31m\u202e&"


KINDS = ("Domain", "Workload", "Strategy", "Measured", "Release")


@pytest.fixture(scope="module")
def values() -> dict[str, Displayed]:
    """One of each kind, with hostile names and far more than is shown."""
    names = [HOSTILE, *(f"a{i}" for i in range(11))]
    domain = mdp.Domain({HOSTILE: ["no", HOSTILE], **dict.fromkeys(names[1:], 3)})
    workload = mdp.Workload(domain, mdp.marginals([1, 2]))
    strategy = mdp.select(workload)
    table: dict[str, list[Any]] = {HOSTILE: ["no"] * 5, **{name: [0, 1, 2, 2, 2] for name in names[1:]}}
    measured = strategy.measure(table, mdp.Budget(rho=0.5))
    return dict(zip(KINDS, (domain, workload, strategy, measured, measured.reconstruct()), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_two_short_lines(values: dict[str, Displayed], kind: str) -> None:
    lines = repr(values[kind]).split("\n")
    assert len(lines) == 2
    assert lines[0].startswith(kind)
    assert all(len(line) <= 140 and line.isprintable() for line in lines)


@pytest.mark.parametrize("kind", KINDS)
def test_notebooks_get_a_small_table_without_code(values: dict[str, Displayed], kind: str) -> None:
    page = values[kind]._repr_html_()
    cells = Page(page)
    plain = {"div", "p", "strong", "br", "table", "thead", "tbody", "tr", "th", "td"}
    assert {tag for tag, _ in cells.elements} <= plain
    assert page.isprintable()
    assert 2 <= len(cells.rows) <= MAX_ROWS + 1
    assert {len(row) for row in cells.rows} == {len(cells.rows[0])}
    assert len(page) < 10_000


def test_a_domain_says_what_it_has() -> None:
    born = {"from": "2000-01-01", "to": "2009-12-31", "by": "year"}
    domain = mdp.Domain({"sex": ["f", "m"], "age": range(115), "born": born})
    assert repr(domain) == "Domain of 3 attributes, 2,300 cells\nsex (2), age (115), born (10)"
    rows = Page(domain._repr_html_()).rows
    assert rows[1:3] == [["sex", "categories", "2", "f, m"], ["age", "ordered", "115", "0, 1, 2, ..., 114"]]
    derived = mdp.Domain({"age": range(4), "old": {"of": ["age"], "sql": "age > 1"}})
    assert Page(derived._repr_html_()).rows[2][:3] == ["old", "derived", "2"]
    large = repr(mdp.Domain({f"a{i}": 10 for i in range(40)}))
    assert large.startswith("Domain of 40 attributes, 1.0e+40 cells")


def test_a_release_shows_its_own_answers(values: dict[str, Displayed]) -> None:
    release: Any = values["Release"]
    first = release.answers.slice(0, 1).to_pylist()[0]
    row = Page(release._repr_html_()).rows[1]
    assert row[2] == f"{round(first['estimate']):,}"
    assert row[3] == f"{math.floor(first['lower']):,} to {math.ceil(first['upper']):,}"
    assert f"of {release.answers.num_rows:,} shown" in release._repr_html_()
    assert "Budget(rho=0.5" in repr(release)


def test_seeded_noise_is_named_first_of_all(values: dict[str, Displayed]) -> None:
    strategy = mdp.select(mdp.Workload(mdp.Domain({"code": 2}), mdp.marginals(1)))
    measured = strategy.measure({"code": [0, 1]}, mdp.Budget(rho=0.5), seed_not_private=1)
    for value in (measured, measured.reconstruct()):
        assert "NOT PRIVATE" in repr(value).split("\n")[1]
        assert "NOT PRIVATE" in value._repr_html_()
    assert "NOT PRIVATE" not in repr(values["Release"])


def test_a_glance_computes_little_and_never_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = mdp.Domain({"a": 3, "b": 3})
    measured = mdp.select(mdp.Workload(domain, mdp.marginals(1))).measure(
        {"a": [0], "b": [1]}, mdp.Budget(rho=1)
    )
    undetermined = measured.reconstruct(mdp.Workload(domain, mdp.marginals(1), mdp.marginals(2)))
    rows = Page(undetermined._repr_html_()).rows
    assert rows[-1] == ["a by b", "9 queries", "-", "-", ""]
    assert rows[1][2] != "-"
    monkeypatch.setattr(glance, "_MOST_QUERIES", 2)
    assert Page(measured.reconstruct()._repr_html_()).rows[1][1:] == ["3 queries", "-", "-", ""]


def test_a_long_name_alone_is_listed_and_rows_beyond_are_left_out() -> None:
    assert listed(["x" * 300, "y"], 2) == "x" * 300 + " and 1 other"
    page = Preview(("n",), [[str(i)] for i in range(50)], 50).html()
    assert len(Page(page).rows) == MAX_ROWS + 1
    assert "20 of 50 shown" in page


def test_a_model_says_that_it_is_biased_and_whether_it_was_accepted() -> None:
    workload = mdp.Workload(mdp.Domain({"sex": ["f", "m"]}), mdp.marginals(1))
    measured = mdp.select(workload).measure({"sex": ["m"] * 9}, mdp.Budget(mu=1), seed_not_private=1)
    tables = Mixture(workload.domain, 9.0, np.ones(1), {"sex": np.array([[0.0, 1.0]])})
    model = mdp.Model(measured.measurement, workload, tables, {"method": "mixture", "accepted": True})
    first, second = repr(model).split("\n")
    assert first == "Model (mixture) of 2 answers in 1 group, biased"
    assert second == "NOT PRIVATE: the noise was seeded; accepted by the tests of its fit"
    assert "NOT accepted" in repr(mdp.Model(measured.measurement, workload, tables))
    assert Page(model._repr_html_()).rows[1] == ["sex", "2"]


#: Spaces, a soft hyphen, joiners, letters with marks of their own; and what controls, reorders or ends lines.
READ = " \u00a0\u2007\u2009\u202f\u3000\u00ad\u200c\u200d\u00e9\u0301\u0915\u093f\u5e74"
CONTROLS = "\0\x07\t\n\r\x1b\x7f\x85\x9b\ud800\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202e"
CONTROLS += "\u2066\u2069\ufeff\U000e0041"


@pytest.mark.parametrize("mark", READ)
def test_marks_to_read_stay(mark: str) -> None:
    assert (printable(f"a{mark}b"), shown_text(f"a{mark}b")) == (f"a{mark}b",) * 2


@pytest.mark.parametrize("mark", CONTROLS)
def test_marks_that_control_are_replaced(mark: str) -> None:
    assert printable(f"a{mark}b") == "a\ufffdb"
    assert mark not in shown_text(f"a{mark}b")
