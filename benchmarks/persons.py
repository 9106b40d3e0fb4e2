"""Persons with several records, at mu = 1, and discovery, at epsilon = 1 and delta = 1e-6.

python benchmarks/persons.py
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from cells import asked_gram, warm_up
from harness import emit_sections
from numpy.typing import NDArray

import matrixdp as mdp
from matrixdp.noise import Chances, Mechanism, SeededSource, WeightedRounds
from matrixdp.selection.gram.persons import best_for_persons

__all__ = ["ASKED", "MOVES", "PERIODS", "SECTIONS"]

#: What is asked of the periods.
ASKED: dict[str, tuple[Any, ...]] = {
    "periods": ("identity",),
    "to date": ("prefix",),
    "periods, total": ("identity", "total"),
    "periods, to date": ("identity", "prefix"),
    "periods, changes": ("identity", {"change": 1}),
    "periods, to date, total": ("identity", "prefix", "total"),
}
#: periods -> in how many of them a person has a record
PERIODS = {12: (1, 2, 3, 4, 6, 8, 12), 52: (1, 2, 4, 8, 12, 26, 52)}
_ALONE = ("periods", "to date", "periods, total", "periods, to date", "periods, changes")
#: Other attributes, and how many values they have.
_OTHERS = {"region": 51, "sex": 2, "age": 18}
#: Which of them are the same in all records of a person.
MOVES: dict[str, tuple[str, ...]] = {
    "all may change": (),
    "region may change": ("age", "sex"),
    "none changes": ("age", "region", "sex"),
}
SEEDS = 20
EPSILON, DELTA = 1, Fraction(1, 10**6)
_WORDS, _PERSONS = 100_000, 20_000
#: How many values of a person count.
VALUES = (1, 3, 10, 30, 100)
#: What somebody might state who knows little of incomes.
WIDE = 10_000_000


# Persons with several records, Gaussian noise.


def _periods(periods: int, asked: str) -> mdp.Workload:
    domain = mdp.Domain({"t": periods})
    return mdp.Workload(domain, *(mdp.product(t=own) for own in ASKED[asked]))


def _priced(workload: mdp.Workload, most: int, constant: Iterable[str] = ()) -> tuple[float, str]:
    """Return the RMSE for persons with a record in each of so many periods, and the mechanism."""
    unit = mdp.Unit(id="person", per="t", max_values=most, constant=constant)
    budget = mdp.Budget(mu=1, unit=unit)
    strategy = mdp.select(workload, budget=budget)
    return strategy.rmse(budget), strategy.mechanism


def _one_record(workload: mdp.Workload) -> float:
    return mdp.select(workload, noise="gaussian").rmse(mdp.Budget(mu=1))


def _per_query(workload: mdp.Workload) -> float:
    """Return the RMSE of noise of standard deviation 1 on each period, sums added up."""
    return math.sqrt(float(np.trace(asked_gram(workload))) / workload.queries)


def _bound(workload: mdp.Workload, most: int) -> float:
    """Return an RMSE below which no strategy is for such persons: F^2 of a distribution over sets."""
    return math.sqrt(best_for_persons(asked_gram(workload), most).bound / workload.queries)


def over_periods(periods: int, asked: str, most: int) -> dict[str, Any]:
    """Return the errors of all ways to answer what is asked of the periods alone."""
    workload = _periods(periods, asked)
    error, chosen = _priced(workload, most)
    return {
        "periods": periods,
        "asked": asked,
        "most": most,
        "queries": workload.queries,
        "matrixdp": error,
        "chosen": chosen,
        "bound": _bound(workload, most),
        "counts": math.sqrt(most) * _per_query(workload),
        "records": most * _one_record(workload),
    }


def with_attributes(asked: str, most: int) -> dict[str, Any]:
    """Return the same for tables by month and by up to two of three other attributes.

    Counts by OpenDP or Tumult are a query for each table by month, with its own part of the squared mu: the
    parts that err least in all, in proportion to the square roots of the sizes, or equal ones. For persons
    who may change no better lower bound is known than for those who do not.
    """
    names = [few for k in range(3) for few in itertools.combinations(_OTHERS, k)]
    sizes = np.array([math.prod(_OTHERS[name] for name in few) for few in names])
    over, others = _periods(12, asked), mdp.Workload(mdp.Domain(_OTHERS), mdp.marginals([0, 1, 2]))
    workload = mdp.Workload(
        mdp.Domain({"t": 12} | _OTHERS),
        *(mdp.product({"t": own} | dict.fromkeys(few, "identity")) for few in names for own in ASKED[asked]),
    )
    assert workload.queries == over.queries * sizes.sum()
    alone = math.sqrt(most) * _per_query(over)
    least = mdp.select(others, noise="gaussian").certificate.lower_bound
    assert least is not None
    return {
        "asked": asked,
        "most": most,
        "queries": workload.queries,
        **{moves: _priced(workload, most, same)[0] for moves, same in MOVES.items()},
        "bound": _bound(over, most) * math.sqrt(least / others.queries),
        "planned": alone * _one_record(others),
        "counts": alone * float(np.sqrt(sizes).sum()) / math.sqrt(sizes.sum()),
        "equal": alone * math.sqrt(len(sizes)),
        "records": most * _one_record(workload),
    }


# Values of a private column.

Lists = tuple[NDArray[np.int64], NDArray[np.int64]]


def _words() -> Lists:
    """Return which person has which word, each once, in an order of its own for each person."""
    rng = np.random.default_rng(7)
    law = 1 / np.arange(1, _WORDS + 1)
    below = np.cumsum(law / law.sum())
    sizes = np.minimum(np.maximum(1, rng.lognormal(math.log(30), 1.0, _PERSONS).astype(int)), 2000)
    drawn = [np.unique(np.searchsorted(below, rng.random(size))) for size in sizes]
    lists = [rng.permutation(np.unique(np.minimum(own, _WORDS - 1))) for own in drawn]
    return np.repeat(np.arange(_PERSONS), list(map(len, lists))), np.concatenate(lists)


def _counts(lists: Lists, most: int) -> NDArray[np.float64]:
    """Return how many persons have each word among those that count."""
    persons, words = lists
    starts = np.flatnonzero(np.diff(persons, prepend=-1))
    places = np.arange(len(persons)) - np.repeat(starts, np.diff(starts, append=len(persons)))
    held = np.bincount(words[places < most], minlength=_WORDS).astype(float)
    return held[held > 0]


def _laplace_threshold(most: int) -> tuple[float, float]:
    """Return scale and threshold: 1 - (1 - P(noise > threshold - 1))^most is delta.

    Examples
    --------
    >>> [round(own, 2) for own in _laplace_threshold(1)]
    [1.0, 14.12]
    """
    scale = most / EPSILON
    return scale, 1 - scale * math.log(2 * -math.expm1(math.log1p(-float(DELTA)) / most))


def _gaussian_threshold(most: int) -> tuple[float, float]:
    """Return the same for Gaussian noise with half of the delta, the other half being that of its curve."""
    scale = math.sqrt(most) / _mu()
    tail = -math.expm1(math.log1p(-float(DELTA) / 2) / most)
    return scale, 1 - scale * NormalDist().inv_cdf(tail)


def _mu() -> float:
    half = mdp.Budget(epsilon=EPSILON, delta=DELTA).less(DELTA / 2)
    assert half is not None
    return float(half.mu)


def _found(most: int) -> Mechanism:
    """Return what `discover` uses for one attribute."""
    half = mdp.Budget(epsilon=EPSILON, delta=DELTA).less(DELTA / 2)
    assert half is not None
    one = most == 1
    return Chances(Fraction(EPSILON), DELTA) if one else WeightedRounds.within(half.mu**2, DELTA / 2, most)


def values_found(most: int) -> dict[str, Any]:
    """Return how many words are found where so many of each person count, by three mechanisms."""
    lists = _words()
    rule, counts = _found(most), _counts(lists, most)
    found = {"matrixdp": [len(rule.found(*lists, _WORDS, SeededSource(seed))) for seed in range(SEEDS)]}
    for name, (scale, threshold) in (
        ("laplace", _laplace_threshold(most)),
        ("gaussian", _gaussian_threshold(most)),
    ):
        rng = np.random.default_rng(most)
        draw = rng.laplace if name == "laplace" else rng.normal
        found[name] = [int((counts + draw(0.0, scale, len(counts)) >= threshold).sum()) for _ in range(SEEDS)]
    return {
        "most": most,
        "present": len(np.unique(lists[1])),
        "median": float(np.median(np.bincount(lists[0]))),
        **{name: float(np.mean(own)) for name, own in found.items()},
        "deviation": max(float(np.std(own, ddof=1)) for own in found.values()),
    }


# Bounds of a private column.


def _error(incomes: NDArray[np.float64], low: float, high: float, mu: float, noise: float) -> float:
    """Return the relative error of a noisy sum of numbers that count as one of two bounds beyond these."""
    total = float(incomes.sum())
    return (float(incomes.clip(low, high).sum()) + high / mu * noise) / total - 1


def bounds_found(records: int, share: float) -> dict[str, Any]:
    """Return relative errors of a sum of incomes, bounds found with this share of the squared mu of 1."""
    specification = {
        "domain": {"income": {"discover": "bounds"}},
        "privacy": {"mu": round(math.sqrt(share), 6)},
    }
    edges = 2.0 ** (np.arange(20, 60) / 2)
    found: dict[str, list[float]] = {"matrixdp": [], "best": [], "quantile": [], "wide": []}
    for seed in range(SEEDS):
        rng = np.random.default_rng([records, seed])
        incomes = rng.lognormal(10.5, 0.8, records).round()
        noise = rng.standard_normal()
        told = mdp.discover(specification, table={"income": incomes}, seed_not_private=seed)
        own = told.found.domain["income"]
        found["matrixdp"].append(_error(incomes, own["min"], own["max"], math.sqrt(1 - share), noise))
        total = float(incomes.sum())
        risks = [(1 - incomes.clip(0, edge).sum() / total) ** 2 + (edge / total) ** 2 for edge in edges]
        for name, high in (
            ("best", float(edges[int(np.argmin(risks))])),
            ("quantile", float(np.quantile(incomes, 0.99))),
            ("wide", float(WIDE)),
        ):
            found[name].append(_error(incomes, 0.0, high, 1.0, noise))
    means = {name: math.sqrt(float(np.mean(np.square(own)))) for name, own in found.items()}
    return {"records": records, "share": share} | means


Measured = tuple[str, Callable[..., dict[str, Any]], tuple[Any, ...]]

#: Of each section of the page: rows by name, in the order in which they are shown.
SECTIONS: dict[str, list[Measured]] = {
    "periods": [
        (f"{periods} periods, {asked}, {most} records", over_periods, (periods, asked, most))
        for periods, numbers in PERIODS.items()
        for asked in _ALONE
        for most in numbers
    ],
    "attributes": [
        (f"attributes, {asked}, {most} records", with_attributes, (asked, most))
        for asked in ("periods", "periods, to date, total", "periods, changes")
        for most in (4, 12)
    ],
    "values": [(f"values, {most} each", values_found, (most,)) for most in VALUES],
    "bounds": [
        (f"bounds, {records:,} records, share {share}", bounds_found, (records, share))
        for records in (2_000, 20_000, 200_000)
        for share in (0.1, 0.3)
    ],
}


def main() -> None:
    warm_up()
    emit_sections(SECTIONS)


if __name__ == "__main__":
    main()
