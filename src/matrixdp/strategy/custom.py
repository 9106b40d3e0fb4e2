"""Strategies of one's own: the Python face."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from numbers import Rational
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import MatrixDPError, PrivacyError, TooLargeError, WorkloadError, each, within
from matrixdp.language import dense
from matrixdp.noise import Noise, noise_named
from matrixdp.privacy import Budget, LeastBudget
from matrixdp.queries import Workload
from matrixdp.queries.predicates import MAX_EXPLICIT_ENTRIES
from matrixdp.selection.given import certified, evaluate_given
from matrixdp.selection.noise_choice import interval, noises_for
from matrixdp.selection.selection import Selection
from matrixdp.selection.targets import check_targets, least_budget
from matrixdp.specification.load import given_entries

# Which noises a strategy is made for, by the name that was asked for, and which of them it takes.


def possible_noises(noise: str, budget: Budget | None, mechanism: str) -> tuple[tuple[Noise, ...], str]:
    """Return the noises to select for by the name that was asked for, and why.

    Examples
    --------
    >>> possible_noises("auto", Budget(epsilon=1), "auto")[0], possible_noises("gaussian", None, "auto")[0]
    ((laplace,), (gaussian,))
    """
    return noises_for(None if noise == "auto" else noise_named(noise), budget, mechanism)


def preferred(
    selections: Sequence[Selection], budget: Budget, targets: Mapping[str, float] | None
) -> tuple[int, str]:
    """Return which of several selections is best at a budget, each for a noise of its own, and why.

    It has the narrowest intervals, or meets targets with the least epsilon.
    """
    if targets is None:
        what = "narrower intervals"
        values = [interval(one.certificate.loss, one.noise, budget) for one in selections]
    else:
        what, form, values = "less epsilon", LeastBudget.within(budget), []
        for one in selections:
            needed = least_budget(check_targets(one.workload, targets, one.analysis), one.noise, form)
            values.append(float(needed.epsilon or 0))
    best, other, *_ = sorted(range(len(values)), key=values.__getitem__)
    share = 100 * (1 - values[best] / values[other])
    return best, f"{share:.3g} % {what} than {selections[other].noise} noise"


class OfOnesOwn:
    """Ways to a strategy that is given, not selected."""

    if TYPE_CHECKING:

        def __init__(self, selection: Selection, noise_reason: str = "as selected") -> None: ...

    @classmethod
    def from_matrix(
        cls,
        domain: Domain,
        attributes: str | Sequence[str],
        matrix: object,
        *,
        workload: Workload | None = None,
        noise: str = "auto",
        budget: Budget | None = None,
        neighbours: str | None = None,
        objective: str = "sum",
        targets: Mapping[str, float] | None = None,
    ) -> Self:
        """Return the strategy that measures the rows of a matrix.

        It must be chosen without the confidential table: how it was tuned is not accounted for. Its scale
        does not matter. Integers, fractions and decimals over a small common denominator are kept exactly;
        other numbers are rounded to integers, which costs about 2^-14 of the variance. Rows of zeros are
        left out.

        Parameters
        ----------
        domain : Domain
            The attributes.
        attributes : str or sequence of str
            Those whose cells the columns are, row-major in this order.
        matrix : array, SciPy sparse matrix or path
            Shape (measured rows, cells).
        workload : Workload, optional
            What will be asked; the rows themselves where it is left out.
        noise : {"auto", "gaussian", "laplace"}
            See `select`; with ``auto`` and a budget of epsilon and delta, whichever gives narrower intervals.
        budget : Budget, optional
            What will be spent; it decides the noise.
        neighbours : {"add_remove", "replace"}, optional
            The budget's where it is left out, else ``add_remove``.
        objective : {"sum", "max"}
            What the certificate is about.
        targets : mapping of str to float, optional
            The largest standard errors that groups of the workload may have.

        Returns
        -------
        Strategy
            With its error, and a lower bound on that of every strategy for the workload.

        Raises
        ------
        WorkloadError
            If the matrix does not fit the attributes, or has entries that are no numbers or too far apart.
        UnsupportedQueryError
            If its rows do not determine a query of the workload.
        TooLargeError
            If it has more columns than a measured matrix may have.

        Examples
        --------
        An office's tree of counts over eight ages:

        >>> import numpy as np
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"age": range(8)})
        >>> tree = np.vstack([np.kron(np.eye(8 // width), np.ones(width)) for width in (8, 4, 2, 1)])
        >>> asked = mdp.Workload(domain, mdp.product(age="range"))
        >>> own = mdp.Strategy.from_matrix(domain, "age", tree, workload=asked)
        >>> round(own.rmse(mdp.Budget(mu=1)), 3), round(mdp.select(asked).rmse(mdp.Budget(mu=1)), 3)
        (1.805, 1.495)
        """
        names = [attributes] if isinstance(attributes, str) else list(attributes)
        try:
            entry = dense(_numbers(matrix), names)
            entry.expand(domain)
        except MatrixDPError as error:
            if error.problem is None or error.problem.path[:1] != ("dense",):
                raise
            problem = error.problem
            raise WorkloadError.at(("matrix",), problem.found, problem.expected) from None
        return cls.from_parts(
            domain,
            [entry],
            workload=workload,
            noise=noise,
            budget=budget,
            neighbours=neighbours,
            objective=objective,
            targets=targets,
        )

    @classmethod
    def from_parts(
        cls,
        domain: Domain,
        parts: Sequence[object],
        shares: Sequence[float] | None = None,
        *,
        workload: Workload | None = None,
        noise: str = "auto",
        budget: Budget | None = None,
        neighbours: str | None = None,
        objective: str = "sum",
        targets: Mapping[str, float] | None = None,
    ) -> Self:
        """Return the strategy that measures several things, each at a share of the privacy cost.

        Answers are the least squares of all parts where these have one matrix for each attribute, as
        marginals have, their cells together are few, or they are a union of products that is not too large;
        otherwise each part answers what it determines, and answers of several are averaged.

        Parameters
        ----------
        domain : Domain
            The attributes.
        parts : sequence of Entry or mapping
            What is measured, in the words of workloads: ``mdp.product(county={"level": "state"}, age=tree)``,
            ``mdp.marginals(2)``, ``mdp.dense(matrix, ["age", "sex"])``; mappings may have a ``share``.
        shares : sequence of float, optional
            One for each part, relative to one another; those of the mappings, or equal ones, where they are
            left out. Several groups of one entry share evenly.
        workload, noise, budget, neighbours, objective, targets
            See `from_matrix`.

        Returns
        -------
        Strategy
            With its error, and a lower bound on that of every strategy for the workload.

        Raises
        ------
        WorkloadError, UnsupportedQueryError, TooLargeError
            See `from_matrix`.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"sex": ["female", "male"], "age": range(6)})
        >>> parts = [mdp.product(sex="identity", age={"width": 3}), mdp.marginals([["sex", "age"]])]
        >>> own = mdp.Strategy.from_parts(domain, parts, shares=[1, 2])
        >>> own.mechanism, own.workload.queries
        ('given', 20)
        """
        given = given_entries(parts, shares)
        with within("parts"):
            each(lambda part: part.entry.expand(domain), given)
        own = Workload(domain, *(part.entry for part in given))
        asked = own if workload is None else workload
        _check(domain, asked, budget)
        groups, weights = [], []
        for part, places in zip(given, own.places, strict=True):
            groups += [own.groups[place] for place in places]
            weights += [part.share / len(places)] * len(places)
        noises, reason = possible_noises(noise, budget, "auto")
        made = [
            evaluate_given(
                asked,
                groups,
                weights,
                noise=kind,
                neighbours=neighbours or ("add_remove" if budget is None else budget.neighbours),
                objective=objective,
                targets=targets,
            )
            for kind in noises
        ]
        if len(made) == 1 or budget is None:
            return cls(certified(made[0]), reason)
        best, reason = preferred(made, budget, targets)
        return cls(certified(made[best]), reason)


def _check(domain: Domain, asked: object, budget: object) -> None:
    if not isinstance(asked, Workload):
        raise WorkloadError(f"workload: found a {type(asked).__name__}; expected a Workload")
    if asked.domain != domain:
        raise WorkloadError("workload: found another domain than that of the strategy")
    if budget is not None and not isinstance(budget, Budget):
        raise PrivacyError(f"budget: found a {type(budget).__name__}; expected a Budget")


def _numbers(matrix: object) -> Any:
    """Return what holds a matrix as an array may be given: sparse ones written out, fractions as integers."""
    if hasattr(matrix, "toarray"):
        entries = math.prod(matrix.shape) if hasattr(matrix, "shape") else 0
        if entries > MAX_EXPLICIT_ENTRIES:
            raise TooLargeError(f"matrix: {entries} entries; the limit is {MAX_EXPLICIT_ENTRIES}")
        return matrix.toarray()
    if isinstance(matrix, str | os.PathLike):
        return matrix
    try:
        array = np.asarray(matrix)
    except (TypeError, ValueError):
        return matrix
    if array.dtype != object or not all(isinstance(entry, Rational) for entry in array.ravel()):
        return array
    scale = math.lcm(*(int(entry.denominator) for entry in array.ravel()))
    whole = [int(entry * scale) for entry in array.ravel()]
    if max(map(abs, whole), default=0) >= 2**53:
        expected = "fractions over a common denominator, with numerators below 2^53"
        raise WorkloadError.at(("matrix",), "fractions that are too large together", expected)
    return np.array(whole, dtype=float).reshape(array.shape)
