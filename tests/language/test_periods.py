"""Predicate sets of periods, and the part of a workload that is known when some periods are over."""

import datetime as dt
from pathlib import Path

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.publication import published_tables
from matrixdp.answers.titles import title
from matrixdp.domain import Attribute
from matrixdp.language import read_entry, schedule_in_words, workload_through
from matrixdp.language.periods import known_after
from matrixdp.queries import Predicates, ProductGroup
from matrixdp.testing import check_predicates
from tests.storage.archives import reread_workload

ENDS = {
    "day": ("2023-11-05", "2025-03-02"),
    "week": ("2023-11-06", "2025-03-02"),
    "month": ("2023-05-01", "2025-03-31"),
    "quarter": ("2022-04-01", "2025-03-31"),
    "year": ("2019-01-01", "2024-12-31"),
}


def dates(by: str, **more: object) -> dict[str, object]:
    first, last = ENDS[by]
    return {"from": first, "to": last, "by": by, **more}


def asked(by: str, written: object, **more: object) -> tuple[Predicates, Attribute]:
    domain = mdp.Domain({by: dates(by, **more)})
    [group] = mdp.product({by: written}).expand(domain)
    assert isinstance(group, ProductGroup)
    return group.predicates[0], domain[by]


def texts(by: str) -> list[str]:
    """The periods by the standard library alone, without a text a second time."""
    day, last = map(dt.date.fromisoformat, ENDS[by])
    found = []
    while day <= last:
        year, week, _ = day.isocalendar()
        quarter = (day.month + 2) // 3
        found.append(
            {
                "day": day.isoformat(),
                "week": f"{year}-W{week:02}",
                "month": day.isoformat()[:7],
                "quarter": f"{day.year}-Q{quarter}",
                "year": str(day.year),
            }[by]
        )
        day += dt.timedelta(1)
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("null", [{}, {"null": "unknown"}])
@pytest.mark.parametrize("by", ENDS)
def test_year_to_date_counts_the_periods_of_the_same_year(by: str, null: dict[str, str]) -> None:
    predicates, attribute = asked(by, "year_to_date", **null)
    names = texts(by)
    rows = [[float(b[:4] == a[:4] and b <= a) for b in names] + [0.0] * len(null) for a in names]
    np.testing.assert_array_equal(predicates.rows(attribute.size), rows)
    check_predicates(predicates, attribute.size)


def year_before(by: str, name: str) -> str:
    if by == "week":
        before = dt.date.fromisoformat(f"{name}-1") - dt.timedelta(weeks=52)
        return "{}-W{:02}".format(*before.isocalendar()[:2])
    return f"{int(name[:4]) - 1}{name[4:]}"


@pytest.mark.parametrize("null", [{}, {"null": "unknown"}])
@pytest.mark.parametrize("by", ENDS)
def test_the_same_period_of_last_year_is_subtracted(by: str, null: dict[str, str]) -> None:
    predicates, attribute = asked(by, "same_period_last_year", **null)
    names = texts(by)
    pairs = [(name, year_before(by, name)) for name in names if year_before(by, name) in names]
    assert predicates.describe(attribute) == [f"{name} less {before}" for name, before in pairs]
    expected = np.zeros((len(pairs), attribute.size))
    for row, (name, before) in zip(expected, pairs, strict=True):
        row[names.index(name)], row[names.index(before)] = 1.0, -1.0
    np.testing.assert_array_equal(predicates.rows(attribute.size), expected)
    check_predicates(predicates, attribute.size)
    if by == "day":
        assert "2024-02-29" not in [name for name, _ in pairs]
        assert ("2025-02-28", "2024-02-28") in pairs


def test_changes_are_to_so_many_values_before() -> None:
    predicates, attribute = asked("month", {"change": 3}, null="unknown")
    assert predicates.describe(attribute)[0] == "2023-08 less 2023-05"
    assert predicates.describe(attribute)[-1] == "2025-03 less 2024-12"
    assert predicates.count(attribute.size) == attribute.size - 1 - 3
    domain = mdp.Domain({"age": {"min": 20, "max": 23}})
    [group] = mdp.product(age={"change": 1}).expand(domain)
    np.testing.assert_array_equal(group.rows(), [[-1, 1, 0, 0], [0, -1, 1, 0], [0, 0, -1, 1]])


def test_levels_group_periods() -> None:
    levels = {"quarter": {"Q1": ["2025-01", "2025-02", "2025-03"], "Q2": ["2025-04", "2025-05", "2025-06"]}}
    month = {"from": "2025-01-01", "to": "2025-06-30", "by": "month", "levels": levels}
    domain = mdp.Domain({"sex": ["f", "m"], "month": month})
    workload = mdp.Workload(domain, mdp.product(sex="identity", month={"level": "quarter"}))
    assert known_after(workload.groups[0], "month", 6).tolist() == [2, 5]
    known = workload_through(workload, "month", 4)
    assert (known.groups[0].name, title(known.groups[0])) == (
        workload.groups[0].name,
        title(workload.groups[0]),
    )
    np.testing.assert_array_equal(known.groups[0].rows(), workload.groups[0].rows()[[0, 2]])


MONTHS = {"from": "2024-01-01", "to": "2025-06-30", "by": "month"}
SIZE = 18
DOMAIN = mdp.Domain({"sex": ["f", "m"], "month": MONTHS, "age": {"min": 0, "max": 3}})
MATRIX = np.zeros((3, SIZE))
MATRIX[0, [0, 5]], MATRIX[2, [3, 16]] = (1, -0.5), 2
DENSE = np.random.default_rng(1).integers(-1, 2, (9, SIZE * 2)) * (
    np.arange(SIZE * 2) < np.arange(2, 38, 4)[:, None]
)
ENTRIES = {
    "values": mdp.marginals([["sex", "month"]], title="Arrivals"),
    "named": mdp.product(month="prefix", age={"sets": [[0, 1]]}, name="so far"),
    "sets": mdp.product(
        month=["year_to_date", {"sliding": 12}, "same_period_last_year", "range"], sex="identity"
    ),
    "a matrix": mdp.product(month={"matrix": MATRIX}),
    "permuted": mdp.product(month={"permuted": "prefix", "seed": 3}),
    "weighted": mdp.product(
        month={"change": 2}, sex="identity", age="prefix", weights=np.arange(1.0, 129), weight=3
    ),
    "dense": mdp.dense(DENSE, ["month", "sex"], weights=np.arange(1.0, 10)),
    "cells": mdp.cells([{"month": ["2024-02", "2024-05"], "sex": "f"}, {"sex": "m"}], by={"age": "identity"}),
    "disjunctions": mdp.disjunction({"month": "prefix", "age": {"sets": [[], [1]]}}),
    "crossed": mdp.dense([[1, 0], [1, 1]], ["sex"], by={"month": {"sliding": 3}}),
    "several": mdp.marginals([1, 2], name="all", weight=2),
}


def dense_rows(workload: mdp.Workload) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Every query over the cells of the domain, by its group and with its weight."""
    found = []
    for group in workload:
        rows = group.rows().reshape(-1, *group.sizes)
        for place, name in enumerate(workload.domain.names):
            if name not in group.attributes:
                rows = np.repeat(np.expand_dims(rows, 1 + place), workload.domain[name].size, 1 + place)
        weights = np.ones(group.queries) if group.query_weights is None else group.query_weights
        found.append((group.name, rows, group.weight * weights))
    return found


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("periods", [1, 2, 6, 12, 17, 18])
def test_what_is_known_is_what_asks_about_no_later_period(name: str, periods: int, tmp_path: Path) -> None:
    workload = mdp.Workload(DOMAIN, mdp.product(month={"ranges": [["2024-01", "2024-01"]]}), ENTRIES[name])
    expected = []
    for called, rows, weights in dense_rows(workload):
        known = ~rows[:, :, periods:].any(axis=(1, 2, 3))
        if known.any():
            expected.append((called, rows[known], weights[known]))
    through = workload_through(workload, "month", periods)
    again = through if periods == SIZE else reread_workload(through, tmp_path)
    assert (through is workload) == (periods == SIZE)
    for made in (through, again):
        found = dense_rows(made)
        assert [called for called, _, _ in found] == [called for called, _, _ in expected]
        for (_, own, weights), (_, rows, right) in zip(found, expected, strict=True):
            np.testing.assert_array_equal(own, rows)
            np.testing.assert_array_equal(weights, right)


def test_titles_and_texts_are_those_of_the_whole_workload() -> None:
    workload = mdp.Workload(DOMAIN, *ENTRIES.values())
    named = {table.name: table for table in published_tables(workload, ())}
    known = workload_through(workload, "month", 13)
    tables = published_tables(known, ())
    assert {"Arrivals"} < {table.title for table in tables} <= {table.title for table in named.values()}
    assert len(tables) == len({table.name for table in tables} & set(named))


@pytest.mark.parametrize("name", ["values", "sets", "weighted"])
def test_answers_are_those_of_the_whole_set_to_the_bit(name: str) -> None:
    workload = mdp.Workload(DOMAIN, ENTRIES[name])
    [group] = workload
    marginal = np.random.default_rng(2).normal(size=group.sizes)
    axis = group.attributes.index("month")
    for periods in range(13, SIZE):
        [known] = workload_through(workload, "month", periods)
        assert isinstance(group, ProductGroup)
        assert isinstance(known, ProductGroup)
        chosen = known.predicates[axis]
        positions = getattr(chosen, "positions")  # noqa: B009
        whole = np.take(group.answers(marginal), positions, axis)
        np.testing.assert_array_equal(known.answers(marginal), whole)
        all_texts = group.predicates[axis].describe(DOMAIN["month"])
        assert chosen.describe(DOMAIN["month"]) == [all_texts[place] for place in positions]


def test_the_counts_behind_a_statistic_are_known_with_their_periods() -> None:
    workload = mdp.Workload(
        DOMAIN, mdp.marginals([["month"]]), read_entry({"quantile": {"age": 0.5}, "by": ["month"]})
    )
    known = workload_through(workload, "month", 17)
    assert [group.queries for group in known] == [17, 17 * 4]


def test_schedules_in_words() -> None:
    entries = [
        mdp.marginals([["sex", "month"]]),
        mdp.product(month={"sliding": 12}),
        mdp.marginals([["sex"]]),
        mdp.product(month={"sets": [["2024-01"], ["2024-03", "2024-12"]]}),
        mdp.product(month={"ranges": [["2024-01", "2024-04"]]}),
        mdp.dense(np.eye(SIZE), ["month"]),
    ]
    known = [known_after(group, "month", SIZE).tolist() for group in mdp.Workload(DOMAIN, *entries)]
    assert [schedule_in_words(own, DOMAIN["month"]) for own in known] == [
        "each month when it is over",
        "first after 12 months, then each month",
        "when the series ends (2025-06)",
        "2 times: first after 2024-01, last after 2024-12",
        "when 2024-04 is over",
        "each month when it is over",
    ]
