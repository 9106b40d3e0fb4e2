"""Changes in per cent: which periods are compared, and how often their intervals hold the truth."""

import datetime as dt
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import matrixdp as mdp

DAYS = [dt.date(2023, 1, 1) + dt.timedelta(place) for place in range(3 * 365 + 1)]
#: Noise is far below 1 record.
RHO = 1e8


def a_year_before(day: dt.date) -> dt.date | None:
    return None if (day.month, day.day) == (2, 29) else day.replace(year=day.year - 1)


def months(days: list[dt.date]) -> list[tuple[str, list[dt.date]]]:
    return [(key, list(own)) for key, own in groupby(days, lambda day: f"{day:%Y-%m}")]


def changes(found: mdp.Release, over: Any, column: str) -> dict[str, float]:
    table = found.percent_change(mdp.marginals([[column]]), over)
    return dict(zip(table[column].to_pylist(), table["estimate"].to_pylist(), strict=True))


@pytest.fixture(scope="module")
def counts() -> dict[dt.date, int]:
    return dict(zip(DAYS, np.random.default_rng(4).integers(1, 9, len(DAYS)).tolist(), strict=True))


def in_months(by_day: dict[dt.date, int]) -> dict[str, int]:
    return {key: sum(by_day[day] for day in own) for key, own in months(DAYS)}


@pytest.mark.parametrize("null", [{}, {"null": "unknown"}])
def test_days_and_months_are_compared_with_their_year_before(counts, null):
    days = {"from": DAYS[0].isoformat(), "to": DAYS[-1].isoformat(), "by": "day", "levels": ["month"], **null}
    strategy = mdp.select(mdp.Workload(mdp.Domain({"day": days}), mdp.marginals(1)), mechanism="identity")
    table = {"day": np.repeat(np.array(DAYS), [*counts.values()]).tolist()}
    found = strategy.measure(table, mdp.Budget(rho=RHO)).reconstruct()
    daily = changes(found, "year", "day")
    expected = {
        day.isoformat(): 100 * (counts[day] / counts[before] - 1)
        for day in DAYS
        if (before := a_year_before(day)) in counts
    }
    assert daily == pytest.approx(expected, abs=0.5)
    assert "2024-02-29" not in daily
    by_month = in_months(counts)
    of_months = {
        key: 100 * (own / by_month[earlier] - 1)
        for key, own in by_month.items()
        if (earlier := f"{int(key[:4]) - 1}{key[4:]}") in by_month
    }
    assert changes(found, "year", "month") == pytest.approx(of_months, abs=0.05)  # also those of February
    keys = [*by_month]
    after = {key: 100 * (by_month[key] / by_month[before] - 1) for before, key in pairwise(keys)}
    assert changes(found, "period", "month") == pytest.approx(after, abs=0.05)


MONTHLY: dict[str, Any] = {"from": "2023-01-01", "to": "2025-12-31", "by": "month", "levels": ["quarter"]}


@pytest.mark.parametrize(
    ("asked", "over", "lengths", "steps"),
    [
        ("year_to_date", "year", lambda month: month % 12 + 1, lambda _: 12),
        ({"sliding": 12}, "year", lambda _: 12, lambda _: 12),
        ({"sliding": 3}, "period", lambda _: 3, lambda length: 3),
        ({"sliding": 3}, "year", lambda _: 3, lambda _: 12),
    ],
)
def test_sums_of_months_are_compared_with_as_many(counts, asked, over, lengths, steps):
    monthly = np.array([*in_months(counts).values()])
    names = [key for key, _ in months(DAYS)]
    domain = mdp.Domain({"month": MONTHLY})
    table = {"month": np.repeat([f"{name}-01" for name in names], monthly).tolist()}
    strategy = mdp.select(mdp.Workload(domain, mdp.product(month=asked)))
    found = strategy.measure(table, mdp.Budget(rho=RHO)).reconstruct()
    changed = found.percent_change(mdp.product(month=asked), over).to_pylist()
    expected = {}
    for month in range(36):
        length = lengths(month)
        back = month - steps(length)
        if month + 1 >= length and back + 1 >= length:
            now, before = (monthly[end + 1 - length : end + 1].sum() for end in (month, back))
            expected[names[month + 1 - length], names[month]] = 100 * (now / before - 1)
    ends = [(f"{row['month_from']:%Y-%m}", f"{row['month_to']:%Y-%m}") for row in changed]
    assert dict(zip(ends, (row["estimate"] for row in changed), strict=True)) == pytest.approx(
        expected, abs=0.05
    )


@pytest.mark.parametrize("privacy", [{"mu": 0.5}, {"epsilon": 0.5}])
def test_intervals_hold(privacy: dict[str, Any]):
    strata, confidence, chance = 400, 0.8, 1e-5
    domain = mdp.Domain({"stratum": strata, "month": {**MONTHLY, "to": "2023-02-28", "levels": []}})
    cells = mdp.product(stratum="identity", month="identity")
    strategy = mdp.select(
        mdp.Workload(domain, cells),
        mechanism="identity",
        noise="gaussian" if "mu" in privacy else "laplace",
    )
    table = {
        "stratum": np.repeat(np.arange(strata), 60).tolist(),
        "month": (["2023-01-04"] * 20 + ["2023-02-04"] * 40) * strata,
    }
    measured = strategy.measure(table, mdp.Budget(**privacy), seed_not_private=7)
    found = measured.reconstruct(confidence=confidence).percent_change(cells).to_arrow()
    low, high = (found[name].to_numpy() for name in ("lower", "upper"))
    hits = (np.nan_to_num(low, nan=-np.inf) <= 100) & (np.nan_to_num(high, nan=np.inf) >= 100)
    assert len(hits) == strata
    least, most = (binom.ppf(own, strata, confidence) for own in (chance, 1 - chance))
    assert least <= hits.sum()
    assert "epsilon" in privacy or hits.sum() <= most
