"""What every mechanism must do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import PrivacyError, TooLargeError, UnsupportedQueryError, WorkloadError
from matrixdp.language import Entry, dense, marginals, product
from matrixdp.noise import NOISES, Noise, noise_named
from matrixdp.privacy import Budget
from matrixdp.queries import Workload
from matrixdp.selection.mechanisms.table import MECHANISMS, DataDependent, Mechanism
from matrixdp.strategy import Strategy, select
from matrixdp.testing.agreement import probes, require, require_close
from matrixdp.testing.dense import dense_queries
from matrixdp.testing.plans import check_plan

__all__ = ["check_mechanism", "small_workloads"]

_REFUSALS = (TooLargeError, UnsupportedQueryError, WorkloadError)


def small_workloads() -> dict[str, Workload]:
    """Return the workloads that every mechanism is tried on, by name.

    One product, a union of products with weights, ranges of one attribute, fewer queries than cells,
    marginals, and explicit queries; each over a domain with an attribute that none asks about.

    Examples
    --------
    >>> {name: workload.queries for name, workload in small_workloads().items()}
    {'product': 70, 'union': 66, 'one attribute': 28, 'low rank': 8, 'marginals': 40, 'explicit': 12}
    """
    return dict(_small_workloads())


@cache
def _small_workloads() -> Mapping[str, Workload]:
    """Return the same ones again: bounds are proved once for a workload."""
    domain = Domain({"a": range(7), "b": range(4), "unasked": 2})
    weights = np.arange(1.0, 11.0)
    entries: dict[str, list[Entry]] = {
        "product": [product(a="prefix", b="range", weight=2.0)],
        "union": [
            product(a="prefix", b="identity"),
            product(b="range", weights=weights),
            product(a="range", weight=3.0),
        ],
        "one attribute": [product(a="range")],
        "low rank": [product(a={"ranges": [[0, 6], [0, 2]]}, b="prefix")],
        "marginals": [marginals([0, 1, 2], ["a", "b"])],
        "explicit": [dense(np.floor(3 * probes(5, 28)), ["a", "b"]), marginals(1, ["a"])],
    }
    return {name: Workload(domain, *listed) for name, listed in entries.items()}


def check_mechanism(
    mechanism: str | Mechanism[Any] | DataDependent, noise: str | Noise | None = None
) -> None:
    """Check that a mechanism selects strategies that do what it says of them.

    Each of its strategies for small workloads is written out as a matrix: it must answer without bias, cost
    what it says and have the error that its certificate says. Then a table is measured, with true noise.

    Parameters
    ----------
    mechanism : str, Mechanism or DataDependent
        One that is registered. Of a data-dependent one the simulated errors are checked.
    noise : str or Noise, optional
        The noise; every one that is registered where it is left out. A noise that the mechanism does not
        select for must be refused.

    Raises
    ------
    AssertionError
        Names the workload, and what does not hold.

    Examples
    --------
    >>> check_mechanism("identity", "laplace")
    """
    found = MECHANISMS[mechanism if isinstance(mechanism, str) else mechanism.name]
    require(mechanism in (found, found.name), f"{found.name!r} is the name of another mechanism")
    require(found.source.rstrip(".") == found.source != "", "source: expected the paper, or what it is")
    workloads = small_workloads()
    if isinstance(found, DataDependent):
        answered = [_check_simulation(found, workload) for workload in workloads.values()]
        require(any(answered), f"{found.name}: every workload is refused")
        return
    found.options()
    for own in NOISES.values() if noise is None else (noise_named(noise),):
        if own.norm not in found.norms:
            _check_refusal(found.name, own, workloads["product"])
            continue
        answered = [_check_selection(found.name, own, title, asked) for title, asked in workloads.items()]
        require(any(answered), f"{found.name}: every workload is refused with {own} noise")


def _check_simulation(mechanism: DataDependent, workload: Workload) -> bool:
    """Check the simulated errors on one table; return whether there are any."""
    table = {name: np.arange(200) ** 2 % workload.domain[name].size for name in workload.domain.names}
    try:
        found = mechanism.simulate(workload, table, Budget(epsilon=1), 3, OutOfDomain())
    except _REFUSALS:
        return False
    sound = 0 < found.rmse <= found.max_rmse < math.inf and 0 <= found.rmse_standard_error < math.inf
    require(sound and 0 < found.weighted_rmse < math.inf, f"{mechanism.name}: it simulates {found}")
    return True


def _check_refusal(mechanism: str, noise: Noise, workload: Workload) -> None:
    try:
        select(workload, mechanism=mechanism, noise=noise.name)
    except PrivacyError as error:
        require(mechanism in str(error), f"{mechanism}: a refusal that does not name it: {error}")
        return
    raise AssertionError(f"{mechanism}: it selects for {noise} noise, which it does not say")


def _check_selection(mechanism: str, noise: Noise, title: str, workload: Workload) -> bool:
    """Check one strategy; return whether there is one."""
    try:
        strategy = select(workload, mechanism=mechanism, noise=noise.name)
    except _REFUSALS:
        return False
    selection, label = strategy.selection, f"{mechanism}, {noise}, {title}"
    plan, certificate = selection.plan, selection.certificate
    require(plan.noise == noise, f"{label}: its noise is {plan.noise}")
    check_plan(plan, workload)
    require_close(plan.cost, 1.0, f"{label}: it costs", 1e-6)
    error = math.fsum(plan.analysis.group(group).weighted for group in workload)
    # measured matrices are integers near the strategy
    require_close(certificate.loss / error, 1.0, f"{label}: the error is not what its certificate says", 5e-3)
    bound = certificate.lower_bound
    require(bound is None or bound <= error * (1 + 1e-9), f"{label}: its bound is above its error")
    if title == "product":
        again = select(workload, mechanism=mechanism, noise=noise.name).certificate.loss
        require(again == certificate.loss, f"{label}: selected again it is another strategy")
    _check_release(strategy, workload, label)
    return True


def _check_release(strategy: Strategy, workload: Workload, label: str) -> None:
    """Measure a table with true noise: answers lie within 20 standard errors but with odds of 1e-11."""
    domain = workload.domain
    sizes = np.array(domain.shape)[:, None]
    codes = np.floor(sizes * (0.5 + 0.49999 * probes(len(sizes), 300))).astype(int)
    counts = np.zeros(domain.shape)
    np.add.at(counts, tuple(codes), 1.0)
    budgets = (Budget(rho=0.5), Budget(epsilon=1))
    budget = next(budget for budget in budgets if strategy.selection.plan.noise.honours(budget))
    # the exact distributions that intervals take are no mechanism's, and not inverted for as much confidence
    measured = strategy.measure(dict(zip(domain.names, codes, strict=True)), budget)
    release = measured.reconstruct(confidence=1 - 1e-9)
    exact = np.concatenate([dense_queries(group, domain) @ counts.ravel() for group in workload])
    errors = np.abs(release.answers["estimate"].to_numpy() - exact)
    deviations = release.answers["stddev"].to_numpy()
    require(bool((errors <= 20 * deviations + 1e-9).all()), f"{label}: answers off by 20 standard errors")
    require(errors.max() > 0, f"{label}: answers without noise")
