"""The Python face: strategies that are selected once, measured on tables and reused."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from threadpoolctl import threadpool_limits

from matrixdp.domain import OutOfDomain
from matrixdp.errors import PrivacyError, WorkloadError
from matrixdp.mechanism import DEFAULT_MAX_RECORDS, Measurement, measure
from matrixdp.mechanism.saving import load_selection, save_selection
from matrixdp.privacy import Budget
from matrixdp.release import Release
from matrixdp.selection import Certificate, Selection
from matrixdp.selection import select as select_strategy
from matrixdp.selection.noise_choice import noises_for
from matrixdp.sources import open_source
from matrixdp.workload import ProductGroup, Workload

__all__ = ["MeasuredStrategy", "Strategy", "select"]


_FIGURES = {
    "sum": "weighted total squared error at privacy cost 1, before rounding to integers",
    "max": "largest weighted variance at privacy cost 1",
}


def select(
    workload: Workload,
    noise: str = "auto",
    neighbours: str | None = None,
    mechanism: str = "auto",
    budget: Budget | None = None,
    objective: str = "sum",
    sub_solver: str = "auto",
    progress: Callable[[str, float | None], None] | None = None,
) -> Strategy:
    """Choose a strategy for a workload, without the data.

    Parameters
    ----------
    workload : Workload
        What will be asked.
    noise : {"auto", "gaussian", "laplace"}
        The noise that will be added. ``auto``: Gaussian, unless the budget says more: Laplace for pure
        differential privacy (epsilon alone), and for epsilon with delta whichever gives less error.
    neighbours : {"add_remove", "replace"}, optional
        Between which tables the promise will hold; the budget's where it is left out, else ``add_remove``.
        Selection optimizes ``add_remove``; for ``replace`` the same strategy costs more.
    mechanism : str
        ``auto``, or one of those that ``matrixdp select --help`` lists.
    budget : Budget, optional
        What will be spent. Strategies do not depend on it, except by the choice of the noise.
    objective : {"sum", "max"}
        The sum of (weighted) variances, or the largest one.
    sub_solver : {"auto", "optimum", "product", "fourier", "fixed", "fast"}
        How the decomposition solves sub-workloads that are too large for the optimum.
    progress : callable, optional
        Is called with what is being done and, where it is known, the share that is done.

    Returns
    -------
    Strategy
        Reusable, with its certificate.

    Raises
    ------
    WorkloadError
        If the mechanism cannot serve the workload.
    TooLargeError
        If it would need more cells than it can hold.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"sex": ["female", "male"], "age": range(20)})
    >>> strategy = mdp.select(mdp.Workload(domain, mdp.marginals(2)))
    >>> round(strategy.rmse(mdp.Budget(mu=1)), 3)
    1.0
    """
    noises, reason = noises_for(noise, budget, mechanism)
    neighbours = neighbours or ("add_remove" if budget is None else budget.neighbours)
    strategies = [
        Strategy(
            select_strategy(
                workload,
                noise=kind,
                neighbours=neighbours,
                mechanism=mechanism,
                objective=objective,
                sub_solver=sub_solver,
                progress=progress,
            ),
            reason,
        )
        for kind in noises
    ]
    if len(strategies) == 1:
        return strategies[0]
    assert budget is not None
    errors = [
        strategy.rmse(budget) if objective == "sum" else strategy.max_stddev(budget)
        for strategy in strategies
    ]
    best, other = sorted(range(2), key=errors.__getitem__)
    reason = f"{100 * (1 - errors[best] / errors[other]):.3g} % less error than {noises[other]} noise"
    return Strategy(strategies[best].selection, reason)


@final
@dataclass(frozen=True, eq=False)
class Strategy:
    """A strategy: what to measure so that a workload is answered with little error.

    It holds no data, and can be saved, inspected, and measured on any number of tables.

    Parameters
    ----------
    selection : Selection
        What selection returned.
    noise_reason : str
        Why its noise was chosen.
    """

    selection: Selection
    noise_reason: str = "as selected"

    @property
    def noise(self) -> str:
        """The noise that will be added: ``gaussian`` or ``laplace``."""
        return self.selection.noise

    @property
    def workload(self) -> Workload:
        """What it was selected for."""
        return self.selection.workload

    @property
    def mechanism(self) -> str:
        """The mechanism that was chosen."""
        return self.selection.mechanism

    @property
    def certificate(self) -> Certificate:
        """How good it is proved to be, at privacy cost 1."""
        return self.selection.certificate

    @property
    def origin(self) -> dict[str, object]:
        """How it was chosen, as plain values: mechanism, reason, certificate."""
        certificate = self.certificate
        return {
            "mechanism": self.selection.mechanism,
            "reason": self.selection.reason,
            "objective": self.selection.objective,
            "certificate": {
                "loss": certificate.loss,
                "lower_bound": certificate.lower_bound,
                "gap": certificate.gap,
                "scope": certificate.scope,
                "figures": _FIGURES[self.selection.objective],
            },
        }

    def rmse(self, budget: Budget) -> float:
        """Return the root mean square of the standard errors of all queries, in records.

        Parameters
        ----------
        budget : Budget
            What would be spent.

        Raises
        ------
        PrivacyError
            If the strategy's noise cannot honour the budget.
        """
        mean = self.selection.total_squared_error / self.workload.queries
        return math.sqrt(mean / self._cost(budget))

    def max_stddev(self, budget: Budget) -> float:
        """Return the largest standard error of a query, in records.

        Parameters
        ----------
        budget : Budget
            What would be spent.

        Raises
        ------
        PrivacyError
            If the strategy's noise cannot honour the budget.
        """
        return math.sqrt(self.selection.max_variance / self._cost(budget))

    def covariance(self, left: Any, left_query: int, right: Any, right_query: int, budget: Budget) -> float:
        """Return the covariance of the estimates of two queries, in squared records.

        Parameters
        ----------
        left, right : Entry
            Entries that stand for one group each.
        left_query, right_query : int
            The place of the query in its group, from 0, row-major.
        budget : Budget
            What would be spent.

        Raises
        ------
        UnsupportedQueryError
            If the strategy does not determine a query.
        """
        analysis, domain = self.selection.analysis, self.workload.domain
        first, second = left.expand(domain)[0], right.expand(domain)[0]
        return analysis.covariance(first, left_query, second, right_query) / self._cost(budget)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the strategy to a file; see `load`.

        Parameters
        ----------
        path : str or path
            The file; an existing one is replaced.
        """
        save_selection(path, self.selection)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Strategy:
        """Return the strategy that a file holds, every matrix in it proved anew.

        Parameters
        ----------
        path : str or path
            The file.

        Raises
        ------
        StorageError
            If there is no such file, or it is not a strategy, newer than this program or damaged.
        """
        return cls(load_selection(path))

    def check_workload(self, workload: Workload) -> None:
        """Check that the strategy determines every query of a workload; no data are needed.

        Parameters
        ----------
        workload : Workload
            What will be asked.

        Raises
        ------
        WorkloadError
            If the workload is over another domain.
        UnsupportedQueryError
            If the strategy does not determine a query.
        """
        if workload.domain != self.workload.domain:
            raise WorkloadError("workload: found another domain than that of the strategy")
        for group in workload:
            if isinstance(group, ProductGroup):
                self.selection.analysis.check_support(group)
            else:
                self.selection.analysis.variances(group)

    def check_budget(self, budget: Budget) -> None:
        """Check that the strategy's noise can honour a budget; no data are needed.

        Parameters
        ----------
        budget : Budget
            What would be spent.

        Raises
        ------
        PrivacyError
            If the strategy's noise cannot honour it, or it is for other neighbours than the strategy.
        """
        self._cost(budget)

    def _cost(self, budget: Budget) -> float:
        if not isinstance(budget, Budget):
            raise PrivacyError(f"budget: found a {type(budget).__name__}; expected a Budget")
        if budget.neighbours != self.selection.neighbours:
            raise PrivacyError(
                f"budget.neighbours: found {budget.neighbours}; expected {self.selection.neighbours}, which "
                "the strategy was selected for"
            )
        return budget.error_scale(self.noise)

    def measure(
        self,
        table: object,
        budget: Budget,
        *,
        table_name: str | None = None,
        out_of_domain: OutOfDomain | object = None,
        max_records: int = DEFAULT_MAX_RECORDS,
        seed_not_private: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> MeasuredStrategy:
        """Measure a table: the one step that reads data, and spends the whole budget.

        Parameters
        ----------
        table : object
            Anything that narwhals takes (pandas, Polars, PyArrow, DuckDB, Ibis, PySpark, Dask), a mapping of
            names to arrays, or the path of CSV or Parquet files or of a DuckDB database.
        budget : Budget
            What is spent.
        table_name : str, optional
            The table in a DuckDB database.
        out_of_domain : OutOfDomain, or what a specification says, optional
            What happens to values that are out of domain; the record is dropped where it is left out.
        max_records : int
            A public bound on the number of records.
        seed_not_private : int, optional
            Draw the noise from a seed. THE RESULT IS NOT PRIVATE, and says so.
        progress : callable, optional
            Is called with the number of parts measured and of all.

        Returns
        -------
        MeasuredStrategy
            The noisy measurement, and nothing else of the table.

        Raises
        ------
        PrivacyError
            If the strategy's noise cannot honour the budget. Before any data are read.
        SourceError
            If the table cannot be read.
        """
        self.check_budget(budget)
        rule = out_of_domain
        if not isinstance(rule, OutOfDomain):
            rule = OutOfDomain.from_spec(self.workload.domain, rule)
        # many small products: several threads would spend their time waiting for one another
        with threadpool_limits(limits=1, user_api="blas"):
            measurement = measure(
                self.selection.plan,
                open_source(table, table_name=table_name),
                budget,
                out_of_domain=rule,
                max_records=max_records,
                seed_not_private=seed_not_private,
                progress=progress,
            )
        return MeasuredStrategy(self, measurement)


@final
@dataclass(frozen=True, eq=False)
class MeasuredStrategy:
    """A strategy with its noisy measurement of one table.

    Parameters
    ----------
    strategy : Strategy
        What was measured.
    measurement : Measurement
        The noisy answers.
    """

    strategy: Strategy
    measurement: Measurement

    def reconstruct(self, workload: Workload | None = None, confidence: float = 0.95) -> Release:
        """Return the answers to a workload, free of further budget.

        Parameters
        ----------
        workload : Workload, optional
            What to answer; what the strategy was selected for where it is left out.
        confidence : float
            Of the intervals, above 0 and below 1.

        Raises
        ------
        WorkloadError
            If the workload is over another domain.
        """
        asked = self.strategy.workload if workload is None else workload
        return Release(self.measurement, asked, confidence, self.strategy.origin)
