"""How good every table of a specification will be, before anything is spent.

A table that is public, such as last year's records, is measured as a release would measure the confidential
one, with noise that is drawn from a seed: the letters of its figures are what readers would see. What an
entry takes of the privacy cost, and what the others would gain without it, follow from the strategy alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from typing import Any, final

import numpy as np
import pyarrow as pa

from matrixdp.answers.figures import GRADES, UNRELIABLE, Figures
from matrixdp.answers.inference import named_statistics
from matrixdp.answers.publication import published_tables
from matrixdp.answers.result_table import ResultTable
from matrixdp.answers.shown import Shown
from matrixdp.display import Displayed, Preview, counted
from matrixdp.domain import Amount, Domain
from matrixdp.errors import (
    MatrixDPError,
    PrivacyError,
    SpecificationError,
    TooLargeError,
    within,
)
from matrixdp.exact.linear import Array
from matrixdp.forms import describe_value, share_files
from matrixdp.ledger import Ledger, in_words
from matrixdp.measure.calibration import drawn_variances
from matrixdp.measure.statement import PrivacyStatement, statement
from matrixdp.model.records import RecordColumns
from matrixdp.noise import Noise, noise_named
from matrixdp.privacy import Budget, Unit
from matrixdp.queries import Workload
from matrixdp.queries.workload import budget_shares
from matrixdp.releases import Release
from matrixdp.selection.auto import select as select_strategy
from matrixdp.selection.shares import has_shares, shares
from matrixdp.sources import Source, open_source
from matrixdp.specification import Specification, load_specification
from matrixdp.strategy.compare import known_unit
from matrixdp.strategy.series import select_over_time
from matrixdp.strategy.strategy import Strategy, meet_targets, select

Progress = Callable[[str, float | None], None]

LETTERS = (*(letter for letter, _ in GRADES), UNRELIABLE)
"""The letters that figures may have, the best first."""
#: Records that are spread evenly are made in memory.
MOST_RECORDS = 20_000_000
#: Entries of which the price is found, those that take most of the cost; each takes a selection.
MOST_PRICES = 12
#: Of intervals that nobody reads: no distribution is inverted for them.
_SURE = 1.0 - 1e-7
#: Further releases like this one are counted up to here.
_MOST_RELEASES = 1_000


@final
@dataclass(frozen=True)
class TableQuality:
    """How good one table is expected to be, on average over the simulated releases.

    Attributes
    ----------
    table : str
        Its title.
    figures : int
        How many it has.
    letters : mapping of str to float
        The share of its figures that have each letter, of those that have one.
    variation : float or None
        The median coefficient of variation: the standard error over the estimate.
    near_zero : float or None
        The share of figures that cannot be told from 0: their intervals hold it.
    refusal : str or None
        Why the table cannot be computed.
    """

    table: str
    figures: int
    letters: Mapping[str, float]
    variation: float | None = None
    near_zero: float | None = None
    refusal: str | None = None

    @property
    def reliable(self) -> float | None:
        """The share of figures with a letter better than F; None where none has a letter."""
        return math.fsum(self.letters.values()) - self.letters[UNRELIABLE] if self.letters else None


@final
@dataclass(frozen=True)
class BudgetQuality:
    """How good the tables of a release under one budget are expected to be.

    Attributes
    ----------
    budget : Budget
    mechanism, noise : str
        Of the strategy.
    rmse : float
        The root mean square of the standard errors of all queries, in records.
    promise : PrivacyStatement
        What would be promised, and how often a guess about a person is right.
    gap : float or None
        By what share the weighted squared error may be above the least possible, as proved.
    tables : tuple of TableQuality
        Empty without records to simulate on.
    """

    budget: Budget
    mechanism: str
    noise: str
    rmse: float
    promise: PrivacyStatement
    gap: float | None
    tables: tuple[TableQuality, ...]


@final
@dataclass(frozen=True)
class Price:
    """What an entry of the workload takes.

    Attributes
    ----------
    entry : str
    share : float
        Of the privacy cost, which is its share of the weighted squared error: parts of an optimal strategy
        get as much of the cost as they have of the error.
    gain : float or None
        By what share the standard errors of all others would shrink without it; None where it was not tried.
    """

    entry: str
    share: float
    gain: float | None


@final
@dataclass(frozen=True)
class Bounding:
    """What a bound on a person's records keeps and costs.

    Attributes
    ----------
    unit : Unit
    kept, records : int
        Records of the public table that count, of all in the domain.
    rmse : float
        The root mean square of the standard errors, in records.
    """

    unit: Unit
    kept: int
    records: int
    rmse: float


@final
@dataclass(frozen=True, eq=False, repr=False)
class Outlook(Displayed):
    """What releases of a specification would be like.

    Attributes
    ----------
    specification : Specification
    budgets : tuple of BudgetQuality
    prices : tuple of Price
        Of all entries, in their order; none with targets, for which weights are found.
    bounding : tuple of Bounding
    records : str
        On what the letters rest, in words; empty where there are none.
    ledger : mapping or None
        What is left, in words, and for how many releases like this one, with each budget.
    """

    specification: Specification
    budgets: tuple[BudgetQuality, ...]
    prices: tuple[Price, ...]
    bounding: tuple[Bounding, ...]
    records: str
    ledger: Mapping[str, Any] | None
    _strategy: Strategy
    _known: tuple[_Known, ...] = ()

    def at(self, budget: float | Budget) -> BudgetQuality:
        """Return at once what another budget would give, estimated: nothing is selected or simulated anew.

        Parameters
        ----------
        budget : float or Budget
            As in `plan`, which was asked for estimates: else no table has letters. Standard errors are those
            of the first budget, scaled, and figures are those of the public table.

        Raises
        ------
        PrivacyError
            If the noise that was chosen cannot honour the budget.

        Examples
        --------
        >>> asked = {"domain": {"sex": ["f", "m"]}, "workload": [{"marginals": [1]}], "privacy": {"mu": 1}}
        >>> found = plan(asked, public_table={"sex": ["f"] * 100 + ["m"] * 4}, estimates=True)
        >>> [found.at(mu).tables[0].reliable for mu in (0.01, 0.1, 1.0)]
        [0.0, 0.5, 1.0]
        """
        own = _budget(self.specification, 0, budget)
        scale = self._strategy.rmse(own) / self._strategy.rmse(self.budgets[0].budget)
        return _quality(self.specification, self._strategy, own, tuple(one.at(scale) for one in self._known))

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values for JSON."""
        budgets = [
            {
                "budget": one.budget.as_dict(),
                "mechanism": one.mechanism,
                "noise": one.noise,
                "rmse": one.rmse,
                "gap": one.gap,
                "guess": one.promise.odds,
                "promise": one.promise.text,
                "tables": [asdict(own) for own in one.tables],
            }
            for one in self.budgets
        ]
        bounding = [asdict(one) | {"unit": one.unit.as_dict()} for one in self.bounding]
        prices, ledger = [asdict(one) for one in self.prices], self.ledger
        told = {"budgets": budgets, "prices": prices, "bounding": bounding}
        return told | {"records": self.records, "ledger": None if ledger is None else dict(ledger)}

    def table(self) -> ResultTable:
        """Return a row for each table and budget.

        Columns: ``budget``, ``table``, ``figures``, ``A``, ``B``, ``C`` and ``F`` (shares of figures),
        ``variation``, ``near_zero``, ``refusal``.
        """
        rows: list[dict[str, Any]] = []
        for one in self.budgets:
            for own in one.tables:
                shares = {letter: own.letters.get(letter) for letter in LETTERS}
                row: dict[str, Any] = {
                    "budget": one.budget.words,
                    "table": own.table,
                    "figures": own.figures,
                    **shares,
                }
                told = {"variation": own.variation, "near_zero": own.near_zero, "refusal": own.refusal}
                rows.append(row | told)
        texts, numbers = ("budget", "table", "refusal"), (*LETTERS, "variation", "near_zero")
        types = {name: pa.utf8() for name in texts} | {name: pa.float64() for name in numbers}
        names = ("budget", "table", "figures", *numbers, "refusal")
        schema = pa.schema([(name, types.get(name, pa.int64())) for name in names])
        return ResultTable(pa.Table.from_pylist(rows, schema=schema))

    def _lines(self) -> tuple[str, str]:
        tables = counted(max((len(one.tables) for one in self.budgets), default=0), "table")
        return f"Outlook of {tables} at {counted(len(self.budgets), 'budget')}", self.records

    def _preview(self) -> Preview:
        own = [("", self)]
        rows = [(title, *(bands(one) for one in found if one)) for title, found in by_title(own).items()]
        return Preview(("table", *heads(own)), rows, len(rows))


def heads(found: Sequence[tuple[str, Outlook]]) -> list[str]:
    """Return what the columns of several outlooks are called: by specification and budget."""
    several = len(found) > 1
    budgets = [(name, short(own.budget)) for name, one in found for own in one.budgets]
    return [f"{name}\n{told}" if several else told for name, told in budgets]


def short(budget: Budget) -> str:
    """Return the first parameter of a budget in words.

    Examples
    --------
    >>> short(Budget(epsilon=1, delta=1e-6))
    'epsilon 1'
    """
    name, value = next(iter(budget.given.items()))
    return f"{name} {float(value):g}"


def by_title(found: Sequence[tuple[str, Outlook]]) -> dict[str, list[TableQuality | None]]:
    """Return for each table its quality in each column, None where it is not in a specification."""
    columns = [{own.table: own for own in budget.tables} for _, one in found for budget in one.budgets]
    return {
        title: [own.get(title) for own in columns]
        for title in dict.fromkeys(t for own in columns for t in own)
    }


def bands(one: TableQuality) -> str:
    """Return the shares of letters as text, in per cent.

    Examples
    --------
    >>> bands(TableQuality("age", 4, {"A": 0.5, "B": 0.25, "C": 0.0, "F": 0.25}))
    'A 50 B 25 F 25'
    """
    if one.refusal is not None:
        return one.refusal
    told = [f"{name} {100 * share:.0f}" for name, share in one.letters.items() if share > 0]
    return " ".join(told) or "no letters"


def plan(
    specification: Specification | str | os.PathLike[str] | Mapping[str, Any],
    *,
    public_table: object = None,
    table_name: str | None = None,
    records: int | None = None,
    budgets: Sequence[float | Budget] = (),
    max_records: Sequence[int] = (),
    simulations: int = 1,
    prices: bool = True,
    estimates: bool = False,
    noise: str = "auto",
    progress: Progress | None = None,
) -> Outlook:
    """Return how good every table of a specification will be, before anything is spent.

    The confidential table is never read, and no ledger is debited.

    Parameters
    ----------
    specification : Specification, or what `load_specification` takes
        With a budget, or targets.
    public_table : object, optional
        A table that is PUBLIC, with the columns of the specification: last year's, a census, synthetic
        records. Its EXACT ANSWERS SHINE THROUGH: never give a confidential table.
    table_name : str, optional
        The public table in a database.
    records : int, optional
        In place of a public table: so many records, spread evenly over all values. Real tables have larger
        and smaller cells.
    budgets : sequence of float or Budget, optional
        In the unit of the specification's (its epsilon, mu or rho), or as such; that of the specification
        where it is left out.
    max_records : sequence of int, optional
        Bounds on a person's records (with `per`: on values) that are compared on the public table; the unit
        names an id.
    simulations : int
        Releases that are simulated for each budget, at least 1.
    prices : bool
        Whether to find what all others would gain without an entry; of the dozen that take most.
    estimates : bool
        Whether to keep the figures of the public table, from which `Outlook.at` estimates other budgets.
    noise : str
        As in `select`.
    progress : callable, optional
        Is called with what is being done and, where it is known, the share that is done.

    Raises
    ------
    SpecificationError
        If there is no budget, an argument is wrong, or the public table is that of the specification.
    SourceError
        If the public table lacks columns, or cannot be read.
    TooLargeError
        If the strategy, the tables or the records do not fit.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> asked = {"domain": {"sex": ["f", "m"]}, "workload": [{"marginals": [1]}], "privacy": {"mu": 1}}
    >>> found = plan(asked, public_table={"sex": ["f"] * 100 + ["m"] * 4}, budgets=[0.1, 10], simulations=9)
    >>> [one.tables[0].letters[letter] for one in found.budgets for letter in "AF"]
    [0.0, 0.5, 1.0, 0.0]
    """
    written = specification
    if not isinstance(written, Specification):
        written = load_specification(written, require_privacy=True)
    tell = progress or (lambda _what, _share: None)
    if type(simulations) is not int or simulations < 1:
        expected = "an integer of at least 1"
        raise SpecificationError.at(
            ("simulations",), describe_value(simulations), expected, code="out-of-range"
        )
    public = _public(written, public_table, table_name, records)
    tried: dict[object, Strategy] = {}
    asked: list[Budget | None] = [_budget(written, place, own) for place, own in enumerate(budgets)]
    found: list[BudgetQuality] = []
    known: tuple[_Known, ...] = ()
    for number, given in enumerate(asked or [None]):
        strategy, budget = _selected(written, given, noise, tried, tell)
        many: list[list[TableQuality]] = []
        for seed in range(0 if public is None else simulations):
            assert public is not None
            share = (number + seed / simulations) / max(len(asked), 1)
            tell(f"simulating releases under {budget.words}", share)
            release, graded = _simulated(written, strategy, budget, public, seed), list[_Graded]()
            for place, one in enumerate(release.tables):
                tell(f"grading {one.title}", share)
                graded.append(_graded(release, place))
            many.append([quality for quality, _ in graded])
            if estimates and not known:
                tell("estimating other budgets", share)
                exact = _exact(written, strategy, budget, public)
                known = tuple(_known(own, exact, place) for place, own in enumerate(graded))
        found.append(_quality(written, strategy, budget, tuple(map(_average, zip(*many, strict=True)))))
    first = next(iter(tried.values()))
    asked_prices = _prices(written, first, tell, tried=prices)
    bounding = _bounding(written, found[0].budget, max_records, public, noise, tell)
    words = "" if public is None else public.words
    left = _ledger(written, found)
    return Outlook(written, tuple(found), asked_prices, bounding, words, left, first, known)


def _quality(
    written: Specification, strategy: Strategy, budget: Budget, tables: tuple[TableQuality, ...]
) -> BudgetQuality:
    """Return the quality of tables under a budget, with what follows from the budget alone."""
    gap, told = strategy.priced(budget).certificate.gap, promise(written, strategy.selection.noise, budget)
    return BudgetQuality(budget, strategy.mechanism, strategy.noise, strategy.rmse(budget), told, gap, tables)


# The budgets and their strategies.


def promise(written: Specification, noise: Noise, budget: Budget) -> PrivacyStatement:
    """Return what would be promised of a release."""
    return statement(
        noise.cost(budget),
        budget,
        private=True,
        counted=bool(written.out_of_domain.counts),
        reading={own.name: own.reading for own in written.domain if own.reading},
        rounds=written.rounds > 1,
        series=written.series is not None,
        discovered=written.domain.discovered,
    )


def _budget(written: Specification, place: int, given: float | Budget) -> Budget:
    """Return a budget: of a number one in the unit of the specification's."""
    if isinstance(given, Budget):
        return given
    reference = written.reference_budget
    with within("budgets", place):
        if reference is None:
            raise SpecificationError.at(("privacy",), "nothing", "a budget", code="missing-key")
        kind = next(iter(reference.given))
        return Budget(**(reference.as_dict() | {kind: given}))


def _selected(
    written: Specification, budget: Budget | None, noise: str, tried: dict[object, Strategy], tell: Progress
) -> tuple[Strategy, Budget]:
    """Return the strategy for a budget, and the budget: where none is given that of the specification."""
    reference = budget or written.reference_budget
    if reference is None:
        raise SpecificationError.at(("privacy",), "nothing", "a budget", code="missing-key")
    # only the noise depends on how large a budget is, and only where there is a choice
    key = (
        reference.words
        if reference.kind == "approx" and noise == "auto"
        else (reference.kind, reference.unit)
    )
    targets = written.targets if budget is None else None
    if key not in tried:
        tried[key] = _select(written, written.workload, reference, noise, tell, targets or None)
    if targets and written.least is not None:
        return tried[key], meet_targets(tried[key], targets, written.least, written.workload)
    return tried[key], reference


def _select(
    written: Specification,
    workload: Workload,
    budget: Budget,
    noise: str,
    tell: Progress,
    targets: Mapping[str, Any] | None = None,
) -> Strategy:
    if written.series is not None:
        return select_over_time(workload, written.series.attribute, budget, noise, tell)
    how: dict[str, Any] = {"noise": noise, "budget": budget, "targets": targets, "progress": tell}
    return select(workload, rounds=written.rounds, **how)


# Releases of a public table.


@final
@dataclass(frozen=True)
class _Public:
    """Records that are public: a table, the unit by which they are bounded, and what they are in words."""

    table: object
    name: str | None
    quoted_newlines: bool
    unit: Unit
    words: str

    def source(self) -> Source:
        return open_source(self.table, table_name=self.name, quoted_newlines=self.quoted_newlines)


def _public(written: Specification, table: object, name: str | None, records: int | None) -> _Public | None:
    """Return the public records: a table, or as many as are asked for."""
    unit = written.unit
    if table is not None:
        if records is not None:
            found, expected = "records beside a public table", "one of them"
            raise SpecificationError.at(("records",), found, expected, code="conflict")
        if same_table(table, written.data):
            found = "the table of the specification itself"
            expected = "a table that is public: its exact answers shine through what is printed"
            raise SpecificationError.at(("public_table",), found, expected, code="privacy")
        public = _Public(table, name, written.quoted_newlines, unit, "simulated on a public table")
        with within("public_table"):
            known = known_unit(public.source(), written.domain, written.out_of_domain, unit)
        if known != unit:
            words = f"{public.words}, of which all records count: persons are not known in it"
            return replace(public, unit=known, words=words)
        return public
    if records is None:
        return None
    if type(records) is not int or records < 1:
        expected = "an integer of at least 1"
        raise SpecificationError.at(("records",), describe_value(records), expected, code="out-of-range")
    if records > MOST_RECORDS:
        expected = f"at most {MOST_RECORDS:,}; a public table may have more"
        raise TooLargeError.at(("records",), f"{records:,}", expected)
    if unit.per:
        expected = "a public table, as persons have their records in several values"
        raise SpecificationError.at(("records",), "a unit with per", expected, code="not-supported")
    words = f"simulated on {counted(records, 'record')} that are spread evenly over all values"
    with within("records"):
        return _Public(_spread(written.domain, records), None, False, Unit(unit.records), words)


def same_table(table: object, data: str | os.PathLike[str] | None) -> bool:
    """Return whether a public table is the confidential one, or has a file of it."""
    if data is None or not isinstance(table, str | os.PathLike):
        return False
    return os.fspath(table) == os.fspath(data) or share_files(table, data)


def _spread(domain: Domain, records: int) -> pa.Table:
    """Return records that are spread evenly over all values: multiples of roots of primes, modulo 1."""
    primes = (n for n in count(2) if all(n % k for k in range(2, math.isqrt(n) + 1)))

    def parts() -> Array:
        return np.asarray(np.mod(np.arange(1, records + 1) * math.sqrt(next(primes)), 1.0))

    whole = [own for own in domain.attributes if not own.divided]
    codes = {own.name: (parts() * own.size).astype(np.int64) for own in whole}
    columns = {}
    if whole:
        made = RecordColumns(Domain(whole), "data").batch(codes)
        columns = dict(zip(made.schema.names, made.columns, strict=True))
    for own in domain.attributes:
        if isinstance(own, Amount):
            columns[own.column] = pa.array(own.minimum + parts() * (own.maximum - own.minimum))
    return pa.table(columns)


def _simulated(
    written: Specification,
    strategy: Strategy,
    budget: Budget,
    public: _Public,
    seed: int,
    confidence: float = 0.95,
) -> Release:
    """Return one simulated release."""
    measured = strategy.measure(
        public.table,
        budget.of_unit(public.unit),
        table_name=public.name,
        quoted_newlines=public.quoted_newlines,
        out_of_domain=written.out_of_domain,
        max_records=written.max_records,
        seed_not_private=seed,
    )
    return measured.reconstruct(written.workload, confidence, publication=written.publication)


_Graded = tuple[TableQuality, Figures | None]
"""The quality of a table, and its main figures where it has any."""


def _graded(release: Release, place: int) -> _Graded:
    one = release.tables[place]
    try:
        table = release.table(one).to_arrow()
    except MatrixDPError as error:
        return TableQuality(one.title, one.rows, {}, refusal=str(error)), None
    main = Shown(table, one.measures, replace(release.presentation, suppress_above=None)).main
    if main is None:
        return TableQuality(one.title, table.num_rows, {}), None
    low, high = main.values[2:]
    bounded = ~np.isnan(low) & ~np.isnan(high)
    zero = float(((low <= 0) & (high >= 0))[bounded].mean()) if bounded.any() else None
    return _lettered(one.title, main, zero), main


def _lettered(title: str, main: Figures, zero: float | None) -> TableQuality:
    letters = [letter for letter in main.letters if letter]
    shares = {name: letters.count(name) / len(letters) for name in LETTERS} if letters else {}
    known = main.variation[~np.isnan(main.variation)]
    variation = float(np.median(known)) if len(known) else None
    return TableQuality(title, len(main.letters), shares, variation, zero)


# The figures of the public table, from which other budgets are estimated.


@final
@dataclass(frozen=True, eq=False)
class _Known:
    """A table of the public records: how good it is, its figures without noise, and their standard errors."""

    quality: TableQuality
    exact: Figures | None = None

    def at(self, scale: float) -> TableQuality:
        """Return the quality where standard errors are so many times as large."""
        if self.exact is None:
            return self.quality
        estimates, errors = self.exact.values[0], self.exact.values[1] * scale
        none = np.full(len(errors), np.nan)
        told = ~np.isnan(estimates) & ~np.isnan(errors)
        zero = float((np.abs(estimates) <= self.exact.reach * errors)[told].mean()) if told.any() else None
        scaled = replace(self.exact, values=np.array([estimates, errors, none, none]))
        return _lettered(self.quality.table, scaled, zero)


def _known(graded: _Graded, exact: Release, place: int) -> _Known:
    """Return a table as it is without noise, with the errors of a release: half of intervals where wider."""
    quality, main = graded
    _, figures = _graded(exact, place)
    if main is None or figures is None or len(main.letters) != len(figures.letters):
        return _Known(quality)
    errors, low, high = main.values[1:]
    halves = (high - low) / 2 / main.reach
    errors = np.where(np.isnan(errors) | (halves > errors), halves, errors)
    values = np.array([figures.values[0], errors, *figures.values[2:]])
    return _Known(quality, replace(figures, values=values, reach=main.reach))


def _exact(written: Specification, strategy: Strategy, budget: Budget, public: _Public) -> Release:
    """Return a release in which noise vanishes, or nearly so: only public records are measured so."""
    kind = "epsilon" if budget.kind == "pure" else "mu"
    *larger, least = (
        Budget(**{kind: value}, neighbours=budget.neighbours, unit=budget.unit) for value in (1_000, 100, 10)
    )
    for own in larger:
        with suppress(PrivacyError):  # answers in units of such noise would not be exact
            return _simulated(written, strategy, own, public, 0, _SURE)
    return _simulated(written, strategy, least, public, 0, _SURE)


def _average(many: tuple[TableQuality, ...]) -> TableQuality:
    """Return the mean of several simulations of one table."""
    graded = [own for own in many if own.letters]
    if not graded:
        return many[0]

    def mean(numbers: Sequence[float | None]) -> float | None:
        known = [own for own in numbers if own is not None]
        return math.fsum(known) / len(known) if known else None

    letters = {name: math.fsum(own.letters[name] for own in graded) / len(graded) for name in LETTERS}
    variation, zero = mean([own.variation for own in graded]), mean([own.near_zero for own in graded])
    return replace(graded[0], letters=letters, variation=variation, near_zero=zero)


# What an entry takes, and what bounds on a person's records cost.


def _prices(written: Specification, strategy: Strategy, tell: Progress, *, tried: bool) -> tuple[Price, ...]:
    workload, selection = written.workload, strategy.selection
    if not has_shares(selection):
        return ()
    taken = shares(selection)
    # without an entry, what the others were promised is not theirs to have
    tried = tried and len(taken) > 1 and not any(budget_shares(workload))
    dearest = sorted(range(len(taken)), key=lambda place: -taken[place])[:MOST_PRICES]
    names, found = _entry_names(workload), list[Price]()
    for place, share in enumerate(taken):
        gain = None
        if tried and place in dearest:
            tell(f"what the others gain without {names[place]}", place / len(taken))
            others = selection.weighted_squared_error * (1.0 - share)
            gain = _gain(written, strategy, place, others)
        found.append(Price(names[place], share, gain))
    return tuple(found)


def _gain(written: Specification, strategy: Strategy, place: int, error: float) -> float | None:
    """Return by what share the standard errors of all others shrink without an entry."""
    workload = written.workload
    others = Workload(workload.domain, *(own for at, own in enumerate(workload.entries) if at != place))
    budget = written.reference_budget
    assert budget is not None
    if written.series is None:
        # no lower bound is asked for
        drawn, noise = partial(drawn_variances, budget=budget), noise_named(strategy.noise)
        how: dict[str, Any] = {"neighbours": budget.neighbours, "unit": budget.unit, "drawn": drawn}
        found = select_strategy(others, noise=noise, bounded=False, **how)
    elif any(written.series.attribute in own.attributes for own in others):
        found = _select(written, others, budget, strategy.noise, lambda _what, _share: None).selection
    else:
        return None
    least = math.fsum(found.analysis.group(group).weighted for group in others)
    return max(0.0, 1.0 - math.sqrt(least / error))


def _entry_names(workload: Workload) -> list[str]:
    """Return what each entry is called: the title of its only table, or of the first and how many more."""
    tables = published_tables(workload)
    named: dict[int, list[str]] = {}
    owners = {place: number for number, own in enumerate(workload.places) for place in own}
    singles = iter(named_statistics(workload.domain, workload.entries))
    for one in tables:
        number = next(singles) if one.place is None else owners[one.place]
        named.setdefault(number, []).append(one.title)
    return [
        f"{own[0]} and {counted(len(own) - 1, 'other')}" if len(own) > 1 else own[0]
        for own in (named.get(number) or [f"workload[{number}]"] for number in range(len(workload.entries)))
    ]


def _bounding(
    written: Specification,
    budget: Budget,
    bounds: Sequence[int],
    public: _Public | None,
    noise: str,
    tell: Progress,
) -> tuple[Bounding, ...]:
    if not bounds:
        return ()
    unit = written.unit
    if unit.id is None:
        expected = "`unit: {id: column, ...}`, which says whose records are bounded"
        raise SpecificationError.at(("max_records",), "a unit without an id", expected, code="missing-key")
    if public is None:
        expected = "a public table, on which records are counted"
        raise SpecificationError.at(("max_records",), "no public table", expected, code="missing-key")
    every, found = _total(public, written, Unit()), list[Bounding]()
    for place, bound in enumerate(bounds):
        with within("max_records", place):
            own = (
                Unit(bound, unit.id)
                if not unit.per
                else Unit(None, unit.id, unit.per, bound, unit.max_records_each, unit.constant)
            )
        tell(f"what {bound} records of a person cost", place / len(bounds))
        other = budget.of_unit(own)
        strategy = _select(replace(written, rounds=1), written.workload, other, noise, tell)
        found.append(Bounding(own, _total(public, written, own), every, strategy.rmse(other)))
    return tuple(found)


def _total(public: _Public, written: Specification, unit: Unit) -> int:
    """Return how many records of a public table count under a unit."""
    rule = replace(written.out_of_domain, counts=()) if unit.per else written.out_of_domain
    counts = dict(public.source().marginals(written.domain, [()], rule, unit))
    return int(counts[()].sum())


def _ledger(written: Specification, found: Sequence[BudgetQuality]) -> dict[str, Any] | None:
    """Return what the ledger has left, and how many releases like this one."""
    if written.ledger is None:
        return None
    ledger = Ledger.open(written.ledger)
    left, account = ledger.left, ledger.account
    releases = []
    for one in found:
        cost, after, number = noise_named(one.noise).cost(one.budget), account, 0
        while number < _MOST_RELEASES and (after := after.plus(cost, one.budget)).within:
            number += 1
        releases.append(number)
    told = "nothing" if left is None else in_words(left.as_dict())
    return {"path": str(written.ledger), "dataset": ledger.dataset, "left": told, "releases": releases}
