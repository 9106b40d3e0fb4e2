"""Intervals hold the truth as often as they say: one release with many strata, each with noise of its own.

False alarms: coverage is compared with the least, or the most, that so many intervals reach by chance with a
probability of one in 100,000; the seeds are fixed.
"""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.statistics.intervals import set_confidence

STRATA, VALUES, CONFIDENCE, CHANCE = 160, 8, 0.8, 1e-5
DOMAIN = mdp.Domain({"stratum": STRATA, "age": {"min": 0, "max": VALUES - 1}, "sex": ["f", "m"]})
#: A few records on two values, one of them empty beside it: the hard case of quantiles.
COUNTS = np.array([[0, 9, 0, 0, 3, 0, 20, 0], [0, 2, 0, 0, 0, 0, 14, 1]])


def records() -> dict[str, np.ndarray]:
    """The same records in every stratum."""
    sex, age = (np.repeat(codes.ravel(), COUNTS.ravel()) for codes in np.indices(COUNTS.shape))
    return {
        "stratum": np.repeat(np.arange(STRATA), len(age)),
        "age": np.tile(age, STRATA),
        "sex": np.array(["f", "m"])[np.tile(sex, STRATA)],
    }


@pytest.fixture(scope="module", params=["gaussian", "laplace"])
def release(request) -> mdp.Release:
    # every stratum by itself: identities, so that their noise is independent
    workload = mdp.Workload(DOMAIN, mdp.product(stratum="identity", age="identity", sex="identity"))
    strategy = mdp.select(workload, mechanism="hdmm", noise=request.param)
    budget = mdp.Budget(epsilon=0.5) if request.param == "laplace" else mdp.Budget(mu=0.5)
    measured = strategy.measure(records(), budget, seed_not_private=11)
    return measured.reconstruct(confidence=CONFIDENCE)


def covered(table, truth, lower: str = "lower", upper: str = "upper") -> Any:
    """Whether each interval holds the truth; a missing end is no end."""
    ends = [table.column(name).to_numpy(zero_copy_only=False) for name in (lower, upper)]
    low, high = np.nan_to_num(ends[0], nan=-np.inf), np.nan_to_num(ends[1], nan=np.inf)
    return (low <= truth) & (truth <= high)


def check(hits: np.ndarray, exact: bool = False) -> None:
    """Compare with the confidence; where it is exact, it is not exceeded either."""
    assert hits.sum() >= binom.ppf(CHANCE, len(hits), CONFIDENCE), hits.mean()
    if exact:
        assert hits.sum() <= binom.ppf(1 - CHANCE, len(hits), CONFIDENCE), hits.mean()


def test_quantiles_hold(release: mdp.Release):
    ages = np.repeat(np.arange(VALUES), COUNTS.sum(axis=0))
    orders = [0.25, 0.5, 0.9]
    table = release.quantile("age", orders, by="stratum")
    for place, order in enumerate(orders):
        true = ages[int(np.ceil(order * len(ages))) - 1]
        check(covered(table, true)[place::3])
    # they say something: not all of them are all values
    assert (np.array(table["upper"]) - np.array(table["lower"]) < VALUES - 1).mean() > 0.3


def test_cdfs_hold_as_a_whole(release: mdp.Release):
    true = np.cumsum(COUNTS.sum(axis=0))
    table = release.cdf("age", by={"stratum": {"ranges": [[one, one] for one in range(60)]}})
    hits = covered(table, np.tile(true, 60)).reshape(60, VALUES).all(axis=1)
    check(hits)
    shares = covered(table, np.tile(true / true[-1], 60), "share_lower", "share_upper")
    check(shares.reshape(60, VALUES).all(axis=1))


def test_means_and_sums_hold(release: mdp.Release):
    ages = np.repeat(np.arange(VALUES), COUNTS[0])
    where = {"sex": "f"}
    exact = release.measurement.plan.noise.stable
    check(covered(release.mean("age", by="stratum", where=where), ages.mean()), exact)
    check(covered(release.sum("age", by="stratum", where=where), ages.sum()), exact=True)


def test_shares_ratios_and_differences_hold(release: mdp.Release):
    women = mdp.product(stratum="identity", sex={"sets": [["f"]]})
    men = mdp.product(stratum="identity", sex={"sets": [["m"]]})
    of_women, of_men = COUNTS.sum(axis=1)
    exact = release.measurement.plan.noise.stable
    check(covered(release.share(women, of=["stratum"]), of_women / COUNTS.sum()), exact)
    check(covered(release.ratio(women, men), of_women / of_men), exact)
    check(covered(release.difference(women, men), of_women - of_men), exact)


def test_intervals_of_the_most_frequent_hold_although_they_were_chosen(release: mdp.Release):
    table = release.top("age", 2, by={"stratum": {"ranges": [[one, one] for one in range(60)]}})
    true = COUNTS.sum(axis=0)[[int(age) for age in table["age"].to_pylist()]]
    check(covered(table, true).reshape(-1, 2).all(axis=1))


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_sets_are_called_right_no_more_often_than_they_are(noise):
    random = np.random.default_rng(5)
    true = np.array([40.0, 37.0, 20.0, 19.0, 5.0])
    root = 3.0 * np.eye(5) + 0.5
    claimed = []
    for _ in range(1_500):
        draws = random.standard_normal(5) if noise.stable else random.laplace(size=5) / np.sqrt(2)
        estimates = true + root @ draws
        chosen = np.argsort(-estimates)[:2]
        if set_confidence(noise, estimates, root @ root.T, chosen) >= CONFIDENCE:
            claimed.append(set(chosen) == {0, 1})
    assert len(claimed) > 300
    check(np.array(claimed))
    assert set_confidence(noise, true, np.eye(5), np.arange(5)) == 1.0
    assert set_confidence(noise, np.zeros(5), np.eye(5), np.arange(2)) == 0.0


def test_all_intervals_of_a_table_hold_together(release: mdp.Release):
    hits = []
    for one in range(30):
        entry = mdp.product(stratum={"ranges": [[one, one]]}, age="prefix")
        hits.append(covered(release.simultaneous(entry), np.cumsum(COUNTS.sum(axis=0))).all())
    check(np.array(hits))
