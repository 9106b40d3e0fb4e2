"""Strategies that are selected once, measured on tables and reused."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from numbers import Rational
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from matrixdp.answers.intervals import Intervals
from matrixdp.answers.questions import Question, advised, covariance
from matrixdp.display import MAX_ROWS, Displayed, Preview, counted
from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import (
    MatrixDPError,
    PrivacyError,
    SpecificationError,
    TooLargeError,
    WorkloadError,
    each,
    withholding,
    within,
)
from matrixdp.exact.resources import one_blas_thread
from matrixdp.forms import describe_value
from matrixdp.language import dense
from matrixdp.ledger import Ledger
from matrixdp.measure.calibration import drawn_variances, least_drawn, tails_of
from matrixdp.measure.measurement import Measurement, authorize, measure
from matrixdp.measure.statement import rounded_up
from matrixdp.measure.workers import Workers
from matrixdp.noise import GAUSSIAN, Noise, noise_named
from matrixdp.plans import Rounds, Split
from matrixdp.privacy import Budget, LeastBudget, Unit
from matrixdp.privacy.budget import DEFAULT_MAX_RECORDS, weak_privacy
from matrixdp.privacy.conversions import Number
from matrixdp.privacy.persons import check_persons
from matrixdp.queries import Workload
from matrixdp.queries.predicates import MAX_EXPLICIT_ENTRIES
from matrixdp.queries.workload import Targets, budget_shares, check_names
from matrixdp.selection.auto import check_mechanism, hope_of
from matrixdp.selection.auto import select as select_strategy
from matrixdp.selection.custom import certified, evaluate_given
from matrixdp.selection.explain import Explanation, explain
from matrixdp.selection.noise_choice import CONFIDENCE, interval, noises_for
from matrixdp.selection.rounds import SecondRound, check_rounds
from matrixdp.selection.selection import Candidate, Certificate, Selection
from matrixdp.selection.shares import reach, shares
from matrixdp.selection.targets import TargetError, check_targets, largest_ratio, least_budget
from matrixdp.sources import open_source
from matrixdp.specification.load import given_entries
from matrixdp.statistics.intervals import EVERY
from matrixdp.storage.formats import load_strategy, save_strategy
from matrixdp.texts import NO_PUBLICATION, Publication

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from matrixdp.releases import Release

#: How much narrower than the bound for all combinations intervals of joint noise may be.
_NARROW = 0.8
_ROUNDS = "measured in two rounds, the second to publish more counts"
_BY_DEFAULT = "the default for two rounds"
_FIGURES = {
    "sum": "weighted total squared error at privacy cost 1, before rounding to integers",
    "max": "largest weighted variance at privacy cost 1",
}


@final
@dataclass(frozen=True, eq=False, repr=False)
class Strategy(Displayed):
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
        targets: Targets | None = None,
    ) -> Strategy:
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
        targets : mapping, optional
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
        targets: Targets | None = None,
    ) -> Strategy:
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
        >>> parts = [mdp.product(sex="identity", age={"sliding": 3}), mdp.marginals([["sex", "age"]])]
        >>> own = mdp.Strategy.from_parts(domain, parts, shares=[1, 2])
        >>> own.mechanism, own.workload.queries
        ('given', 20)
        """
        given = given_entries(parts, shares)
        with within("parts"):
            each(lambda part: part.entry.expand(domain), given)
        own = Workload(domain, *(part.entry for part in given))
        asked = own if workload is None else workload
        _check(asked, budget, domain)
        budget_shares(asked, {"a strategy that is given": True})
        groups, weights = [], []
        for part, places in zip(given, own.places, strict=True):
            groups += [own.groups[place] for place in places]
            weights += [part.share / len(places)] * len(places)
        noises, reason = possible_noises(noise, budget, "auto")
        neighbours = neighbours or ("add_remove" if budget is None else budget.neighbours)
        unit = None if budget is None else budget.unit
        made_for = partial(
            evaluate_given, asked, groups, weights, unit=unit, objective=objective, targets=targets
        )
        made = [made_for(noise=kind, neighbours=neighbours) for kind in noises]
        best, reason = preferred(made, reason, budget, targets)
        return cls(certified(best), reason)

    @property
    def noise(self) -> str:
        """The name of the noise that will be added: ``gaussian`` or ``laplace``."""
        return self.selection.noise.name

    @property
    def workload(self) -> Workload:
        """The workload that it was selected for."""
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
    def choice(self) -> Explanation:
        """The mechanisms that were considered with what they found, and how marginals were solved.

        The marginals are those of the decomposition, where it was chosen. `explain_choice` tells all but the
        losses before anything is selected.
        """
        chosen = self.selection
        candidates = chosen.candidates or (Candidate(chosen.mechanism, "chosen", chosen.reason),)
        if chosen.mechanism != "residual":
            return Explanation(chosen.noise.name, candidates)
        return replace(explain(chosen.workload, chosen.noise, "residual"), candidates=candidates)

    @property
    def origin(self) -> dict[str, Any]:
        """How it was chosen, as plain values: mechanism, reason, certificate."""
        certificate = self.selection.certificate
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

    @property
    def budget_shares(self) -> tuple[float, ...]:
        """The share of the privacy cost that serves each entry of the workload; their sum is 1.

        It is the entry's share of the weighted squared error: see `matrixdp.selection.shares`.

        Raises
        ------
        WorkloadError
            If the strategy was selected for the objective ``max`` or for targets.
        """
        return shares(self.selection)

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
        cost = self._cost(budget)
        return math.sqrt(self.priced(budget).total_squared_error / self.workload.queries / cost)

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
        cost = self._cost(budget)
        return math.sqrt(self.priced(budget).max_variance / cost)

    def priced(self, budget: Budget) -> Selection:
        """Return the selection with errors at privacy cost 1 that are those of a budget, once divided.

        Errors under a budget are these divided by `Noise.error_scale`. They are those of privacy cost 1 but
        for noise on integers, whose variance is less than its share.
        """
        plan = self.selection.plan
        return self.selection.priced(drawn_variances(plan, budget), least_drawn(plan.noise, budget))

    def target_errors(self, targets: Targets | None = None) -> list[TargetError]:
        """Compare the error of every group with its target, at privacy cost 1.

        Parameters
        ----------
        targets : mapping, optional
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
        targets: Targets | None = None,
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
        targets : mapping, optional
            Those that the strategy was selected for where they are left out.
        unit : Unit or mapping, optional
            How many records a person has at most. Where it is left out, the unit with `per` that the strategy
            was selected for, or one record.

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
        own = self.selection.plan.persons if unit is None else None
        form = LeastBudget(kind, delta, "replace" if replaced else "add_remove", own or Unit.of(unit))
        self.selection.plan.check_unit(form.unit)
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
        cost = self._cost(budget)
        return covariance(self.priced(budget).analysis, self.workload.domain, *asked) / cost

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
        _check(workload, None, self.workload.domain)
        analysis = self.selection.analysis
        with advised(analysis, self.workload, workload.groups):
            for group in workload:
                analysis.check_support(group)

    def answers_alike(self, workload: Workload) -> bool:
        """Return whether a workload is the one that the strategy was selected for, or says the same.

        Parameters
        ----------
        workload : Workload
            What will be asked.

        Returns
        -------
        bool

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"sex": 2, "age": 9})
        >>> strategy = mdp.select(mdp.Workload(domain, mdp.marginals([1])))
        >>> [strategy.answers_alike(mdp.Workload(domain, mdp.marginals([k]))) for k in (1, 2)]
        [True, False]
        """
        own = self.workload
        return workload is own or (
            workload.domain == own.domain
            and [entry.to_spec() for entry in workload.entries] == [entry.to_spec() for entry in own.entries]
        )

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
        self.selection.plan.check_unit(budget.unit)
        return self.selection.noise.error_scale(budget)

    @withholding
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
        before_noise: Callable[[], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
        workers: Workers | None = None,
    ) -> MeasuredStrategy:
        """Measure a table: the one step that reads data, and spends the whole budget.

        The measurement is in memory alone, so that its budget is lost if the program stops before
        `Release.save`. `matrixdp.release` writes it to a folder, and protects the budget on the way.

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
        before_noise : callable, optional
            Is called once, before any noise is drawn; what it raises ends the measurement.
        progress : callable, optional
            Is called with the number of parts measured and of all.
        workers : Workers, optional
            Count and measure runs of areas, in processes here or on other machines.

        Returns
        -------
        MeasuredStrategy
            The noisy measurement, and nothing else of the table.

        Raises
        ------
        PrivacyError
            If the strategy's noise cannot honour the budget, or the ledger has less left. Before any data
            are read.
        UnsupportedQueryError
            If the strategy does not determine a query of its workload. Before anything is spent.
        StorageError
            If the ledger cannot be read or written. Before any record is counted.
        SourceError
            If the table cannot be read.
        SpecificationError
            If a file says that the strategy is measured in two rounds, and it cannot be.
        """
        self.check_workload(self.workload)
        self.check_budget(budget, None if seed_not_private is not None else ledger)
        check_persons(self.workload, budget.unit)
        second, plan = None, self.selection.plan
        if self.selection.rounds == 2:
            check_rounds(plan, self.workload)
            assert isinstance(plan, Split)
            second = SecondRound.of(plan, self.workload)
        with within("out_of_domain"):
            rule = OutOfDomain.from_spec(self.workload.domain, out_of_domain)
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
                before_noise=before_noise,
                progress=progress,
                second=second,
                workers=workers,
            )
        return MeasuredStrategy(self, measurement)

    def plot(self, budget: Budget | None = None) -> Figure:
        """Draw what is measured, and the errors that follow; no data are needed.

        The marginals that are measured with their shares of the privacy cost, the largest first; the integer
        matrices that have most of it; and the root mean square error of every query group beside the largest
        standard error of a query, for at most 12 groups: those with the largest errors.

        Parameters
        ----------
        budget : Budget, optional
            For which errors are shown; privacy cost 1 where it is left out, that is rho = 0.5 for Gaussian
            and epsilon = 1 for Laplace noise.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        PrivacyError
            If the strategy's noise cannot honour the budget.
        SpecificationError
            If matplotlib is not installed.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"age": range(16)}), mdp.product(age="prefix"))
        >>> figure = mdp.select(workload).plot(mdp.Budget(rho=0.1))
        >>> [axes.get_title() for axes in figure.axes][0]
        'measured, by share of the privacy cost'
        """
        from matrixdp.pictures.plots import draw_strategy

        if budget is None:
            return draw_strategy(self.selection, 1.0)
        scale = self._cost(budget)
        return draw_strategy(self.priced(budget), scale)

    def _lines(self) -> tuple[str, str]:
        selection, workload = self.selection, self.selection.workload
        asked = counted(workload.queries, "query", "queries")
        first = f"Strategy for {asked} in {counted(len(workload), 'group')}: {selection.mechanism}"
        gap = selection.certificate.gap
        proved = "no lower bound" if gap is None else f"at most {gap:.1e} above the lower bound"
        parts = counted(len(selection.plan.parts), "part")
        return first, f"{parts} with {selection.noise} noise for {selection.neighbours} neighbours; {proved}"

    def _preview(self) -> Preview:
        groups, rows = self.selection.workload.groups, []
        for group in groups[:MAX_ROWS]:
            error = self.selection.analysis.group(group)
            figures = math.sqrt(error.total / group.queries), math.sqrt(error.largest)
            rows.append((group.name, f"{group.queries:,}", *(f"{figure:.4g}" for figure in figures)))
        columns = ("group", "queries", "RMSE at privacy cost 1", "largest stddev at privacy cost 1")
        return Preview(columns, rows, len(groups), frozenset((1, 2, 3)))


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
        self,
        workload: Workload | None = None,
        confidence: float = 0.95,
        expect: int | None = None,
        publication: Publication = NO_PUBLICATION,
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
        publication : Publication
            Texts for readers of the release.

        Raises
        ------
        WorkloadError
            If the workload is over another domain, or is not the one that two rounds were planned for.
        """
        from matrixdp.releases import Release

        asked = self.strategy.workload if workload is None else workload
        if isinstance(asked, Workload):
            check_names(asked)
        origin = self.strategy.origin
        if isinstance(self.measurement.plan, Rounds):
            if not self.strategy.answers_alike(asked):
                expected = "the workload of the strategy: the second round was planned for it"
                raise WorkloadError.at(("workload",), "another workload", expected, code="conflict")
            # the second round has another aim: what is known of the loss is that of the first alone
            said = {name: own for name, own in origin["certificate"].items() if name not in ("loss", "gap")}
            origin |= {"reason": _ROUNDS, "certificate": said | {"gap": None}}
        return Release(self.measurement, asked, confidence, origin, expect, publication=publication)

    def _lines(self) -> tuple[str, str]:
        from matrixdp.releases.release import NOT_PRIVATE

        budget = self.measurement.authorization.budget
        spent = f"within {budget!r}" if self.measurement.private else NOT_PRIVATE
        return f"Measured: {self.strategy._lines()[0]}", spent

    def _preview(self) -> Preview:
        return self.strategy._preview()


def _check(asked: object, budget: object, domain: Domain | None = None) -> None:
    if not isinstance(asked, Workload):
        raise WorkloadError(f"workload: found a {type(asked).__name__}; expected a Workload")
    if domain not in (None, asked.domain):
        raise WorkloadError("workload: found another domain than that of the strategy")
    if budget is not None and not isinstance(budget, Budget):
        raise PrivacyError(f"budget: found a {type(budget).__name__}; expected a Budget")


def _numbers(matrix: object) -> Any:
    """Return a user's matrix as an array: sparse ones written out, fractions as integers."""
    if hasattr(matrix, "toarray"):
        entries = math.prod(getattr(matrix, "shape", ()))
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


# Which noises a strategy is made for, by the name that was asked for, and which of them it takes.


def possible_noises(noise: str, budget: Budget | None, mechanism: str) -> tuple[tuple[Noise, ...], str]:
    """Return the noises to select for by the name that was asked for, and why.

    Examples
    --------
    >>> possible_noises("auto", Budget(epsilon=1), "auto")[0], possible_noises("gaussian", None, "auto")[0]
    ((laplace,), (gaussian,))
    """
    return noises_for(None if noise == "auto" else noise_named(noise), budget, mechanism)


def payable_noise(noise: str, budget: Budget, mechanism: str, ledger: Ledger) -> str:
    """Return a noise that a ledger has enough left for, where it has not for all that are possible.

    Raises
    ------
    PrivacyError
        If it has for none.
    """
    noises = possible_noises(noise, budget, mechanism)[0]
    left = ledger.payable(budget, [own.cost(budget) for own in noises])
    return noise if len(left) == len(noises) else left[0].noise.name


def preferred(
    selections: Sequence[Selection], reason: str, budget: Budget | None, targets: Targets | None
) -> tuple[Selection, str]:
    """Return the best of several selections at a budget, each for a noise of its own, and why.

    It has the narrowest intervals, or meets targets with the least epsilon. One alone has its own reason.
    """
    if len(selections) == 1 or budget is None:
        return selections[0], reason
    if targets is None:
        what = "narrower intervals"
        values = [_half_width(one, budget) for one in selections]
    else:
        what, form, values = "less epsilon", LeastBudget.within(budget), []
        for one in selections:
            needed = least_budget(check_targets(one.workload, targets, one.analysis), one.noise, form)
            values.append(float(needed.epsilon or 0))
    best, other, *_ = sorted(range(len(values)), key=values.__getitem__)
    share = 100 * (1 - values[best] / values[other])
    return selections[best], f"{share:.3g}% {what} than {selections[other].noise} noise"


def _half_width(selection: Selection, budget: Budget) -> float:
    """Return the half width of 95 % intervals in the weighted objective, by the noise of each answer."""
    noise, analysis = selection.noise, selection.analysis
    widest = interval(selection.certificate.loss, noise, budget)
    if noise.stable or selection.objective == "max":
        return widest
    own = Intervals(analysis, tails_of(selection.plan), CONFIDENCE)
    total = wide = 0.0
    for group in selection.workload:
        weights = group.weight * (1.0 if group.query_weights is None else group.query_weights)
        variances = analysis.variances(group) * weights
        total += float(variances.sum())
        wide += float((variances * np.square(own.multipliers((1.0, group, EVERY)))).sum())
    return widest * math.sqrt(wide / total) / noise.largest_quantile(CONFIDENCE)


# Selection for a budget: which noise, and the strategy.


def select(
    workload: Workload,
    noise: str = "auto",
    neighbours: str | None = None,
    mechanism: str = "auto",
    budget: Budget | None = None,
    objective: str = "sum",
    targets: Targets | None = None,
    progress: Callable[[str, float | None], None] | None = None,
    certify: bool = False,
    rounds: int = 1,
    **options: object,
) -> Strategy:
    """Choose a strategy for a workload, without the data.

    Parameters
    ----------
    workload : Workload
        What will be asked.
    noise : {"auto", "gaussian", "laplace"}
        The noise that will be added. ``auto``: Gaussian, unless the budget says more: Laplace for pure
        differential privacy (epsilon alone), and for epsilon with delta whichever gives narrower intervals
        (95%, in the weighted objective; with targets whichever needs less epsilon).
    neighbours : {"add_remove", "replace"}, optional
        Between which tables the promise will hold; the budget's where it is left out, else ``add_remove``.
        Selection optimizes ``add_remove``; for ``replace`` the same strategy costs more, exactly as much as
        the two records that are farthest apart in it.
    mechanism : str
        ``auto``, or one of those that ``matrixdp select --help`` lists.
    budget : Budget, optional
        What will be spent. Strategies do not depend on it, except by the choice of the noise.
    objective : {"sum", "max"}
        The sum of (weighted) variances, or the largest one.
    targets : mapping, optional
        The largest standard error that every query of a group may have, in records, by the name of the group
        or of its entry; ``all`` stands for every other group. Or the precision of figures of at least so many
        records, ``{"cv": 0.15, "for": {"records_above": 200}}``; a mean or a share may have ``stddev`` in
        place of ``cv``. What is made least is the budget that meets
        them, see `Strategy.least_budget`; groups without a target count as if theirs were ten times the
        largest. Weights and the objective have no influence then.
    progress : callable, optional
        Is called with what is being done and, where it is known, the share that is done.
    certify : bool
        Take longer for a higher lower bound in the certificate.
    rounds : {1, 2}
        With 2, `Strategy.measure` spends half of the budget first. The noisy answers decide how the rest is
        shared out, so that more counts have a standard error below a third of them. The strategy has one part
        on each of several marginals, and Gaussian noise; the errors that it tells are those of one round.
    **options : object
        Of the mechanism: ``seed=1`` for searches, ``gap``, ``sub_solver`` ("auto", "optimum", "product"
        or "fast") for the decomposition, and others. ``auto`` takes those of the mechanisms that it tries.

    Returns
    -------
    Strategy
        Reusable, with its certificate.

    Raises
    ------
    WorkloadError
        If the mechanism is unknown, does not have an option, or cannot serve the workload.
    TooLargeError
        If it would need more cells than it can hold.
    SpecificationError
        If the workload cannot be measured in two rounds, or would lose by them.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"sex": ["female", "male"], "age": range(20)})
    >>> strategy = mdp.select(mdp.Workload(domain, mdp.marginals(2)))
    >>> round(strategy.rmse(mdp.Budget(mu=1)), 3)
    1.0
    """
    _check(workload, budget)
    check_names(workload)
    check_mechanism(mechanism, options)
    if type(rounds) is not int or rounds not in (1, 2):
        raise SpecificationError.at(("rounds",), describe_value(rounds), "1 or 2", code="out-of-range")
    if rounds == 2 and targets:
        raise SpecificationError.at(("rounds",), "2", "1 beside targets", code="conflict")
    noises, reason = possible_noises(noise, budget, mechanism)
    neighbours = neighbours or ("add_remove" if budget is None else budget.neighbours)
    unit = None if budget is None else budget.unit
    beside = {"targets": targets, "two rounds": rounds == 2, "the objective max": objective == "max"}
    asked = budget_shares(workload, beside)
    goal = partial(select_strategy, unit=unit, objective=objective, targets=targets)
    drawn = None if budget is None else partial(drawn_variances, budget=budget)
    selected = partial(goal, neighbours=neighbours, progress=progress, certify=certify, drawn=drawn)
    selections: list[Selection] = []
    choices: list[Callable[[Workload], Selection]] = []
    for kind in noises:
        tried = mechanism == "auto" and objective == "sum" and targets is None
        if selections and tried and _hopeless(kind, selections[0], budget):
            reason = f"a quick trial of {kind.title} noise gave wider intervals"
            continue
        # of mechanisms with one part on each marginal this errs least
        split = rounds == 2 and mechanism == "auto" and kind is GAUSSIAN
        choices.append(partial(selected, noise=kind, mechanism="residual" if split else mechanism, **options))
        # two noises are compared at the same weights
        found = choices[-1](selections[0].workload) if selections else reach(workload, choices[0])
        selections.append(replace(found, reason=_BY_DEFAULT) if split else found)
    best, reason = preferred(selections, reason, budget, targets)
    if any(asked) and best is not selections[0]:
        best = reach(best.workload, choices[selections.index(best)])
    if rounds == 1:
        return Strategy(best, reason)
    check_rounds(best.plan, workload, reason)
    return Strategy(replace(best, rounds=rounds), reason)


def explain_choice(
    workload: Workload,
    noise: str = "auto",
    budget: Budget | None = None,
    mechanism: str = "auto",
    **options: object,
) -> tuple[Explanation, ...]:
    """Explain what `select` will do with a workload, without selecting: the mechanisms it compares, and why.

    Parameters
    ----------
    workload : Workload
        What will be asked.
    noise : {"auto", "gaussian", "laplace"}
        See `select`.
    budget : Budget, optional
        What will be spent; it decides the noise.
    mechanism : str
        ``auto``, or one of those that ``matrixdp select --help`` lists.
    **options : object
        Of the mechanism, as for `select`. ``sub_solver`` decides how marginals are solved; the others steer
        searches, and leave what is compared as it is.

    Returns
    -------
    tuple of Explanation
        One for each noise that is selected for, in this order; the second only if a quick trial promises
        narrower intervals. `Strategy.choice` has the same after selection, with losses.

    Raises
    ------
    WorkloadError
        If the mechanism is unknown or does not have an option, or every query is zero.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"age": range(80), "income": range(100)})
    >>> [found] = mdp.explain_choice(mdp.Workload(domain, mdp.kway([1, 2], "prefix")))
    >>> [(one.mechanism, one.status) for one in found.candidates[:2]]
    [('residual', 'tried'), ('weighted-product', 'tried if needed')]
    >>> [one.reason for one in found.candidates if one.mechanism == "dense"]
    ['8,000 cells that do not factor; the limit is 2,500']
    """
    _check(workload, budget)
    check_mechanism(mechanism, options)
    noises, _ = possible_noises(noise, budget, mechanism)
    return tuple(explain(workload, kind, mechanism, options) for kind in noises)


def _hopeless(noise: Noise, other: Selection, budget: Budget | None) -> bool:
    """Return whether no strategy with a noise can be expected to have narrower intervals than another's."""
    if budget is None:
        return False
    hope = interval(hope_of(other.workload, noise), noise, budget)
    if budget.unit.per and noise.norm == 1:  # under one radius persons may cost what records in one value do
        hope *= budget.unit.max_records_each / budget.unit.records
    if not noise.stable:
        hope *= _NARROW
    return hope >= _half_width(other, budget)


def meet_targets(
    strategy: Strategy,
    targets: Targets,
    least: LeastBudget,
    workload: Workload | None = None,
    *,
    accepted: bool = False,
) -> Budget:
    """Return the least budget of a form at which a strategy meets targets, if it is within the limit.

    The targets name groups of the workload, or of the strategy's own. A budget above epsilon 10 or mu 3 must
    be `accepted`.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"age": range(20)}), mdp.marginals(1))
    >>> strategy = mdp.select(workload, targets={"age": 2.0})
    >>> meet_targets(strategy, {"age": 2.0}, LeastBudget("mu"))
    Budget(mu=0.5, neighbours='add_remove')
    """
    strategy.selection.plan.check_unit(least.unit)
    errors = check_targets(workload or strategy.workload, targets, strategy.selection.analysis)
    noise, limit = strategy.selection.noise, least.limit
    budget = least_budget(errors, noise, least)
    if limit is None or noise.cost(budget) <= noise.cost(limit):
        if accepted or not (weak := weak_privacy(budget)):
            return budget
        limit, found = least.largest_usual(), f"targets that take {weak[0]}"
        more = "`matrixdp release --accept-weak-privacy` (accept_weak_privacy=True in Python)"
    elif noise.error_scale(limit) >= largest_ratio(errors) ** 2:
        return limit  # rounding up alone has taken the least budget past it
    else:
        found = f"targets that take {budget.words}, more than privacy allows: {limit.words}"
        more = "a larger budget"
    targeted = [error for error in errors if error.target is not None]
    tightest = max(targeted, key=lambda error: error.stddev / (error.target or 1.0))
    scale = math.sqrt(noise.error_scale(limit))
    factor, nearest = (rounded_up(Fraction(own / scale)) for own in (largest_ratio(errors), tightest.stddev))
    expected = f"targets {factor} times as large, which {limit.words} meets, or {more}"
    told = f"{expected}; the standard error of {tightest.group!r}, the tightest, is then {nearest}"
    raise PrivacyError.at(("targets",), found, told, code="out-of-range")
