"""Strategies that are selected once, measured on tables and reused."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from matrixdp.answers.questions import Question, covariance
from matrixdp.answers.refusals import advised
from matrixdp.display import Displayed, Preview
from matrixdp.domain import OutOfDomain
from matrixdp.errors import PrivacyError, WorkloadError, within
from matrixdp.exact.threads import one_blas_thread
from matrixdp.ledger import Ledger
from matrixdp.measure import DEFAULT_MAX_RECORDS, Measurement, authorize, measure
from matrixdp.pictures.strategies import PlottedStrategy
from matrixdp.privacy import Budget, LeastBudget, Unit
from matrixdp.privacy.numbers import Number
from matrixdp.queries import Workload
from matrixdp.selection import Certificate, Selection
from matrixdp.selection.targets import TargetError, check_targets, least_budget
from matrixdp.sources import open_source
from matrixdp.storage.saving import load_strategy, save_strategy
from matrixdp.strategy.chosen import Chosen
from matrixdp.strategy.given import OfOnesOwn

if TYPE_CHECKING:
    from matrixdp.release import Release

__all__ = ["MeasuredStrategy", "Strategy"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Strategy(Chosen, OfOnesOwn, PlottedStrategy):
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
        """The name of the noise that will be added: ``gaussian`` or ``laplace``."""
        return self.selection.noise.name

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
        return math.sqrt(self.selection.total_squared_error / self.workload.queries / self._cost(budget))

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

    def target_errors(self, targets: Mapping[str, float] | None = None) -> list[TargetError]:
        """Return what every group has beside its target, at privacy cost 1.

        Parameters
        ----------
        targets : mapping of str to float, optional
            Those that the strategy was selected for where they are left out.

        Raises
        ------
        WorkloadError
            If there are no targets, or no such groups.
        """
        return check_targets(self.workload, targets or self.selection.targets, self.selection.analysis)

    def least_budget(
        self,
        kind: str = "rho",
        *,
        delta: Number | None = None,
        targets: Mapping[str, float] | None = None,
        unit: Unit | Mapping[str, object] | None = None,
    ) -> Budget:
        """Return the least budget at which this strategy meets every target; nothing is spent.

        Parameters
        ----------
        kind : {"rho", "mu", "epsilon"}
            Which parameter is made least: of zCDP, of Gaussian differential privacy, or epsilon (pure or
            with delta).
        delta : number, optional
            For ``epsilon``.
        targets : mapping of str to float, optional
            Those that the strategy was selected for where they are left out.
        unit : Unit or mapping, optional
            How many records a person has at most; one where it is left out.

        Returns
        -------
        Budget
            For the neighbours of the strategy, its parameter rounded up to six digits.

        Raises
        ------
        WorkloadError
            If there are no targets, or no such groups.
        PrivacyError
            If the strategy's noise cannot honour a budget of that kind.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"sex": ["female", "male"], "age": range(20)})
        >>> workload = mdp.Workload(domain, mdp.marginals(1))
        >>> strategy = mdp.select(workload, targets={"sex": 5.0, "age": 10.0})
        >>> budget = strategy.least_budget("rho")
        >>> round(float(budget.rho), 3), strategy.max_stddev(budget) <= 10.0
        (0.025, True)
        """
        replaced = self.selection.neighbours == "replace"
        form = LeastBudget(kind, delta, "replace" if replaced else "add_remove", Unit.of(unit))
        return least_budget(self.target_errors(targets), self.selection.noise, form)

    def covariance(
        self, left: Question, left_query: int, right: Question, right_query: int, budget: Budget
    ) -> float:
        """Return the covariance of the estimates of two queries, in squared records.

        Parameters
        ----------
        left, right : Entry or mapping
            Entries that stand for one group each, as in `Release.answer`.
        left_query, right_query : int
            The place of the query in its group, from 0, row-major.
        budget : Budget
            What would be spent.

        Raises
        ------
        UnsupportedQueryError
            If the strategy does not determine a query.
        WorkloadError
            If an entry stands for several groups, or has no such query.
        PrivacyError
            If the strategy's noise cannot honour the budget.
        """
        asked = (left, left_query), (right, right_query)
        return covariance(self.selection.analysis, self.workload.domain, *asked) / self._cost(budget)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the strategy to a file; see `load`.

        Parameters
        ----------
        path : str or path
            The file; an existing one is replaced.
        """
        save_strategy(path, self.selection)

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
        return cls(load_strategy(path))

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
        analysis = self.selection.analysis
        with advised(analysis, self.workload, workload.groups):
            for group in workload:
                analysis.check_support(group)

    def check_budget(self, budget: Budget, ledger: Ledger | None = None) -> None:
        """Check that the strategy's noise can honour a budget, and a ledger has it left; no data are needed.

        Parameters
        ----------
        budget : Budget
            What would be spent.
        ledger : Ledger, optional
            What it would be debited to; it is read alone.

        Raises
        ------
        PrivacyError
            If the strategy's noise cannot honour it, it is for other neighbours than the strategy, or it is
            more than the ledger has left.
        """
        self._cost(budget)
        authorize(self.selection.noise.cost(budget), budget, ledger)

    def _cost(self, budget: Budget) -> float:
        if not isinstance(budget, Budget):
            raise PrivacyError(f"budget: found a {type(budget).__name__}; expected a Budget")
        if budget.neighbours != self.selection.neighbours:
            raise PrivacyError(
                f"budget.neighbours: found {budget.neighbours}; expected {self.selection.neighbours}, which "
                "the strategy was selected for"
            )
        return self.selection.noise.error_scale(budget)

    def measure(
        self,
        table: object,
        budget: Budget,
        *,
        table_name: str | None = None,
        quoted_newlines: bool = False,
        out_of_domain: OutOfDomain | object = None,
        max_records: int = DEFAULT_MAX_RECORDS,
        seed_not_private: int | None = None,
        ledger: Ledger | None = None,
        release: str | os.PathLike[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> MeasuredStrategy:
        """Measure a table: the one step that reads data, and spends the whole budget.

        Parameters
        ----------
        table : object
            Anything that narwhals takes (pandas, Polars, PyArrow, DuckDB, Ibis, PySpark, Dask), a mapping of
            names to arrays, or the path of CSV or Parquet files or of a DuckDB database, or an
            address (``postgresql://``, ``sqlite:///``).
        budget : Budget
            What is spent.
        table_name : str, optional
            The table in a database.
        quoted_newlines : bool
            Whether quotes in CSV files may hold line ends; the statement then says what that assumes.
        out_of_domain : OutOfDomain, or what a specification says, optional
            What happens to values that are out of domain; the record is dropped where it is left out.
        max_records : int
            A public bound on the number of records.
        seed_not_private : int, optional
            Draw the noise from a seed. THE RESULT IS NOT PRIVATE, and says so; no ledger is debited.
        ledger : Ledger, optional
            Is debited before any record is counted, and counts from then on whatever becomes of the release.
        release : str or path, optional
            Where the release will go, for the ledger.
        progress : callable, optional
            Is called with the number of parts measured and of all.

        Returns
        -------
        MeasuredStrategy
            The noisy measurement, and nothing else of the table.

        Raises
        ------
        PrivacyError
            If the strategy's noise cannot honour the budget, or the ledger has less left. Before any data
            are read.
        StorageError
            If the ledger cannot be read or written. Before any record is counted.
        SourceError
            If the table cannot be read.
        """
        self.check_budget(budget, None if seed_not_private is not None else ledger)
        rule = out_of_domain
        if not isinstance(rule, OutOfDomain):
            with within("out_of_domain"):
                rule = OutOfDomain.from_spec(self.workload.domain, rule)
        # many small products: threads would wait for one another
        with one_blas_thread():
            measurement = measure(
                self.selection.plan,
                open_source(table, table_name=table_name, quoted_newlines=quoted_newlines),
                budget,
                out_of_domain=rule,
                max_records=max_records,
                seed_not_private=seed_not_private,
                ledger=ledger,
                release=None if release is None else Path(release),
                progress=progress,
            )
        return MeasuredStrategy(self, measurement)


@final
@dataclass(frozen=True, eq=False, repr=False)
class MeasuredStrategy(Displayed):
    """A strategy with the noisy answers of one table.

    Parameters
    ----------
    strategy : Strategy
    measurement : Measurement
    """

    strategy: Strategy
    measurement: Measurement

    def reconstruct(
        self, workload: Workload | None = None, confidence: float = 0.95, expect: int | None = None
    ) -> Release:
        """Return the answers to a workload, free of further budget.

        Parameters
        ----------
        workload : Workload, optional
            What to answer; what the strategy was selected for where it is left out.
        confidence : float
            Of the intervals, above 0 and below 1.
        expect : int, optional
            How many records should be in the domain, a public figure: see `Release.size`.

        Raises
        ------
        WorkloadError
            If the workload is over another domain.
        """
        from matrixdp.release import Release

        asked = self.strategy.workload if workload is None else workload
        return Release(self.measurement, asked, confidence, self.strategy.origin, expect)

    def _lines(self) -> tuple[str, str]:
        from matrixdp.release.glance import NOT_PRIVATE

        budget = self.measurement.authorization.budget
        spent = f"within {budget!r}" if self.measurement.private else NOT_PRIVATE
        return f"Measured: {self.strategy._lines()[0]}", spent

    def _preview(self) -> Preview:
        return self.strategy._preview()
