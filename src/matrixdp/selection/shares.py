"""Shares of the privacy cost: which part of it serves each entry, and weights that give entries theirs."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from matrixdp.errors import EntryError, WorkloadError
from matrixdp.exact.linear import Array
from matrixdp.queries import Workload
from matrixdp.queries.workload import budget_shares
from matrixdp.selection.custom import GIVEN
from matrixdp.selection.selection import Selection

_LOG = logging.getLogger("matrixdp.selection.shares")

#: By how much shares that are asked for may be missed, relative to them.
TOLERANCE = 0.01
#: After so many selections the nearest is taken.
_MOST_SELECTIONS = 24
#: Weights are multiplied by powers of how much shares are off; smaller ones lead nowhere.
_SMALLEST_STEP = 0.05


def shares(selection: Selection) -> tuple[float, ...]:
    """Return the share of the privacy cost that serves each entry of the workload; their sum is 1.

    It is the entry's share of the weighted squared error. Let a part of the strategy have the cost c, and an
    entry the error E. The part serves the entry by -c dE/dc, which is how much the entry gains from it. Over
    all entries that is in proportion to c where their sum is least, or a shift of cost would lower it; over
    all parts it is in proportion to E, since errors are homogeneous in the costs: of degree -1 under Gaussian
    and -2 under Laplace noise. Such a division of each part's cost among the entries gives each its E.

    Parameters
    ----------
    selection : Selection
        Of the objective ``sum``; of a strategy that was given these are shares of the error alone.

    Raises
    ------
    WorkloadError
        If it made the largest variance least: then the weights of its queries are not known.

    Examples
    --------
    Weights of 1 and 16: under Gaussian noise, costs are as the roots of the weights.

    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 2, "b": 2})
    >>> entries = [mdp.product({name: {"matrix": [[1, -1]]}}, weight=w) for name, w in [("a", 1), ("b", 16)]]
    >>> [round(share, 3) for share in shares(mdp.select(mdp.Workload(domain, *entries)).selection)]
    [0.2, 0.8]
    """
    if selection.objective != "sum":
        expected = "sum: with max and with targets, no weights of entries are known"
        raise WorkloadError.at(("objective",), selection.objective, expected, code="not-supported")
    total = selection.weighted_squared_error
    return tuple(
        math.fsum(error.weighted for error in selection.errors[places.start : places.stop]) / total
        for places in selection.workload.places
    )


def has_shares(selection: Selection) -> bool:
    """Return whether shares of the squared error are shares of the cost: where their sum was made least."""
    return selection.objective == "sum" and selection.mechanism != GIVEN


def reach(workload: Workload, choose: Callable[[Workload], Selection]) -> Selection:
    """Return a selection in which entries have the shares of the privacy cost that they ask for.

    Weights are raised where shares are too small, until all are within one hundredth of what is asked.
    Entries that ask for no share keep their weights relative to one another, and share what is left. Where
    shares are not reached, the selection that is nearest is returned; it says so among its reasons.

    Parameters
    ----------
    workload : Workload
    choose : callable
        Selects for a workload with other weights.

    Raises
    ------
    EntryError
        If shares do not go together, or every query of an entry with one is zero.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from functools import partial
    >>> from matrixdp.noise import GAUSSIAN
    >>> from matrixdp.selection.auto import select
    >>> domain = mdp.Domain({"age": 40, "sex": 2})
    >>> workload = mdp.Workload(domain, mdp.marginals(2), mdp.marginals(0, budget_share=0.3))
    >>> found = shares(reach(workload, partial(select, noise=GAUSSIAN)))
    >>> abs(found[1] - 0.3) < 0.003
    True
    """
    asked = budget_shares(workload)
    selection = choose(workload)
    if not any(asked):
        return selection
    # the cost of a part is in proportion to this root of its weight, where parts have nothing in common
    step = 3.0 if selection.noise.norm == 1 else 2.0
    aimed = [place for place, share in enumerate(asked) if share is not None]
    nearest, factors, logs = selection, np.ones(len(asked)), _off(asked, selection)
    for _ in range(_MOST_SELECTIONS):
        if np.abs(logs[aimed]).max() <= math.log1p(TOLERANCE) or step < _SMALLEST_STEP:
            break
        tried = factors * np.exp(step * (logs - logs[asked.index(None) if None in asked else 0]))
        try:
            selection = choose(workload.reweighted(tried.tolist()))
        except WorkloadError as error:
            if error.code != "out-of-range":
                raise
            step /= 2.0  # beside far larger weights queries are lost
            continue
        found = _off(asked, selection)
        nearer = np.abs(found).max() < np.abs(logs).max()
        # the step that would have led there, were logarithms linear
        left = float(found @ logs) / float(logs @ logs)
        wanted = 0.5 if left >= 1.0 else min(max(1.0 / (1.0 - left), 0.5), 2.0)
        step *= wanted if nearer else min(wanted, 0.7)
        if nearer:
            nearest, factors, logs = selection, tried, found
    told = "the shares of the budget are reached"
    if np.abs(logs[aimed]).max() > math.log1p(TOLERANCE):
        told = f"the nearest shares of the budget that were found: {in_words(nearest)}"
        _LOG.warning(told)
    return replace(nearest, reason=f"{nearest.reason}; {told}")


def _off(asked: list[float | None], selection: Selection) -> Array:
    """Return the logarithm of how many times its share each entry should have.

    All without a share of their own share what is left as they do now.
    """
    found = shares(selection)
    if not all(found):
        place = ("workload", found.index(0.0))
        expected = "at least one that counts something"
        raise EntryError.at(place, "queries that are all zero", expected, code="empty")
    left = 1.0 - math.fsum(own or 0.0 for own in asked)
    rest = math.fsum(now for own, now in zip(asked, found, strict=True) if own is None)
    pairs = ((left, rest) if own is None else (own, now) for own, now in zip(asked, found, strict=True))
    return np.array([math.log(own / now) for own, now in pairs])


def in_words(selection: Selection) -> str:
    """Return the shares of the entries that asked for one, and what they asked for."""
    pairs = zip(shares(selection), budget_shares(selection.workload), strict=True)
    return ", ".join(
        f"{found:.3g} for workload[{place}] ({asked:g} asked)"
        for place, (found, asked) in enumerate(pairs)
        if asked is not None
    )
