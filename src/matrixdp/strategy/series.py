"""Series: one budget for all periods, measured once each and published as they end."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import pyarrow as pa

from matrixdp.answers.inference import check_confidence
from matrixdp.answers.publication import chosen_tables
from matrixdp.answers.result_table import ResultTable
from matrixdp.answers.schedule import figures_known, tables_to_come
from matrixdp.answers.table import FIGURES, Estimated
from matrixdp.domain import Attribute
from matrixdp.errors import PrivacyError, SpecificationError, StorageError, withholding, within
from matrixdp.language.periods import workload_through
from matrixdp.ledger import Ledger
from matrixdp.locks import Lock, whole_path
from matrixdp.measure.measurement import Measurement, begin, proceed
from matrixdp.privacy import Budget
from matrixdp.privacy.budget import check_strong
from matrixdp.queries import Workload
from matrixdp.queries.workload import MAX_ANSWERS
from matrixdp.releases import (
    Release,
    SigningKey,
    SizeCheck,
    load_release,
    records_in,
    sign_release,
)
from matrixdp.releases.record import MEASUREMENT, RUNNING, SERIES, SERIES_RECORD, SIGNATURE
from matrixdp.releases.release import check_expect
from matrixdp.releases.schema import Request, checked_origin
from matrixdp.releases.transaction import (
    adopt,
    check_follows,
    claim_of,
    copy_series,
    is_release,
    is_series,
    last_measured,
    remove_release,
    settle,
    transaction,
    unfinished,
    withdraw,
)
from matrixdp.selection.registry import silent
from matrixdp.selection.series import select_series
from matrixdp.selection.shares import reach
from matrixdp.sources import Source, open_source
from matrixdp.specification import Specification, load_specification
from matrixdp.storage.archive import digest
from matrixdp.storage.formats import load_measurement, save_measurement
from matrixdp.strategy.pipeline import counter
from matrixdp.strategy.strategy import Strategy, possible_noises, select
from matrixdp.texts import Publication

Progress = Callable[[str, float | None], None]
_FORMAT = "matrixdp series"
_VERSION = 1


class Rehearsal(NamedTuple):
    """What a publication would do.

    Attributes
    ----------
    periods : tuple of str
        The periods that it would measure; none where they were published before.
    figures : int
        How many rows of tables it would add.
    resumes : bool
        Whether an earlier publication was stopped, which it would first complete or make again.
    """

    periods: tuple[str, ...]
    figures: int
    resumes: bool


@final
@dataclass(frozen=True, eq=False)
class Series:
    """Releases over time under one budget: every row is measured once, when its last period is over.

    `start` selects a strategy for the whole series and spends the budget; `publish` measures the periods
    that are over and not yet measured, at no further cost. What was published is never revised: a later
    publication adds answers, and all answers of all publications agree with one another.

    Attributes
    ----------
    folder : Path
    begun : Measurement
        What was authorized when the series began, with nothing measured.
    workload : Workload
        What is asked of the whole series.
    request : Request
        How releases are written: the confidence of intervals, texts for readers.
    quoted_newlines : bool
        Of CSV files, as in `matrixdp.release`.

    References
    ----------
    docs/privacy.md ("Releases over time") has the theorem and its proof.

    Examples
    --------
    >>> import tempfile
    >>> import matrixdp as mdp
    >>> specification = {
    ...     "domain": {"month": {"from": "2025-01-01", "to": "2025-12-31", "by": "month"}, "sex": ["f", "m"]},
    ...     "workload": [{"product": {"month": ["identity", "prefix"], "sex": "identity"}}],
    ...     "series": {"attribute": "month"},
    ...     "privacy": {"rho": 0.5},
    ... }
    >>> table = {"month": ["2025-01-04", "2025-01-30", "2025-02-11"], "sex": ["f", "m", "f"]}
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     series = mdp.Series.start(specification, f"{parent}/series")
    ...     january = series.publish(table, through="2025-01").answers
    ...     february = series.publish(table, through="2025-02").answers
    >>> january.num_rows, february.num_rows, sorted(set(february["published"].to_pylist()))
    (4, 8, ['2025-01', '2025-02'])
    """

    folder: Path
    begun: Measurement
    workload: Workload
    request: Request
    quoted_newlines: bool = False

    @classmethod
    def start(
        cls,
        specification: Specification | str | os.PathLike[str] | Mapping[str, Any],
        out: str | os.PathLike[str],
        *,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        noise: str = "auto",
        confidence: float = 0.95,
        csv: bool = False,
        seed_not_private: bool = False,
        accept_weak_privacy: bool = False,
        progress: Progress | None = None,
    ) -> Self:
        """Select a strategy for a whole series, spend its budget, and write the folder of the series.

        No table is read.

        Parameters
        ----------
        specification : Specification, path, str or mapping
            What is asked, with ``series`` and a budget.
        out : str or path
            The folder, which must not exist, or be empty.
        ledger : Ledger or path, optional
            What is debited; the ledger of the specification where it is left out. With a ledger, a restored
            backup of the folder is recognized; without one it is not.
        noise : {"auto", "gaussian", "laplace"}
            With ``auto`` Gaussian noise where the budget admits it: it loses nothing by going period by
            period.
        confidence : float
            Of the intervals.
        csv : bool
            Whether all answers are written as CSV too.
        seed_not_private : bool
            Whether publications are to draw noise from seeds. THE RESULT IS NOT PRIVATE, and says so; no
            ledger is debited.
        accept_weak_privacy : bool
            Whether to spend a budget above epsilon 10 or mu 3, which hardly protects anybody.
        progress : callable, optional
            Is called with what is being done and, where it is known, the share of it that is done.

        Raises
        ------
        SpecificationError
            If the specification is wrong, or has no series or no budget.
        PrivacyError
            If the noise cannot honour the budget, the ledger has less left, or the budget is above epsilon 10
            or mu 3 and that was not accepted. Nothing is spent.
        StorageError
            If the folder holds something, or cannot be written.
        """
        if not isinstance(specification, Specification):
            specification = load_specification(specification, require_privacy=True)
        check_confidence(confidence)
        rule, budget = specification.series, specification.budget
        if rule is None or budget is None:
            missing = "series" if rule is None else "privacy"
            expected = "the attribute whose values are the periods" if rule is None else "a budget"
            raise SpecificationError.at((missing,), "nothing", expected, code="missing-key")
        check_strong(budget, accepted=accept_weak_privacy or seed_not_private)
        debited = specification.ledger if ledger is None else ledger
        if debited is not None and not isinstance(debited, Ledger):
            debited = Ledger.open(debited)
        if is_release(whole_path(out)) or is_series(whole_path(out)):
            told = "found a release or a series; expected a new folder: what is there is never replaced"
            raise StorageError(f"{out}: {told}", "file-exists")
        chosen_tables(specification.workload, specification.publication)  # what it names is there
        with transaction(out, keep=True) as run:
            strategy = select_over_time(specification.workload, rule.attribute, budget, noise, progress)
            strategy.check_workload(strategy.workload)
            begun = begin(
                strategy.selection.plan,
                rule.attribute,
                budget,
                max_records=specification.max_records,
                private=not seed_not_private,
                ledger=None if seed_not_private else debited,
                folder=Path(out),
            )
            request = Request(
                confidence=confidence, csv=csv, max_answers=MAX_ANSWERS, origin=strategy.origin,
                publication=specification.publication.to_spec(),
            )  # fmt: skip
            save_measurement(run.folder / SERIES, begun, specification.workload)
            series = cls(
                whole_path(out), begun, specification.workload, request, specification.quoted_newlines
            )
            text = json.dumps(series._record(), indent=2, ensure_ascii=False)
            (run.folder / SERIES_RECORD).write_text(text + "\n", encoding="utf-8")
            if begun.reservation is not None:
                begun.reservation.measured(str(digest(run.folder / SERIES)))
        if begun.reservation is not None and begun.reservation.run is not None:
            begun.reservation.run.end()
        return series

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """Return the series that a folder holds.

        Raises
        ------
        StorageError
            If it holds none, or its files are damaged or of another version.
        """
        place = whole_path(folder)
        if not is_series(place):
            told = "found no series; expected a folder that `matrixdp series start` made"
            raise StorageError(f"{folder}: {told}", "file-missing")
        begun, workload = load_measurement(place / SERIES)
        try:
            written = json.loads((place / SERIES_RECORD).read_bytes())
            known = written["format"] == _FORMAT
            if known and written["format_version"] != _VERSION:
                found = f"format version {written['format_version']!r:.80}; expected {_VERSION}"
                told = f"{place / SERIES_RECORD}: found {found}, which this matrixdp reads"
                raise StorageError(told, "other-version")
            request = Request.model_validate(written["request"])
            checked_origin(request.origin)
            Publication.read(request.publication)
            quoted = bool(written["quoted_newlines"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            known = False
        if not known or begun.periods is None or begun.periods.published:
            raise StorageError(
                f"{place / SERIES_RECORD}: damaged: not the record of a series", "damaged-file"
            )
        return cls(place, begun, workload, request, quoted)

    def _record(self) -> dict[str, object]:
        return {
            "format": _FORMAT,
            "format_version": _VERSION,
            "attribute": self.attribute.name,
            "privacy": self.begun.statement.as_dict(),
            "quoted_newlines": self.quoted_newlines,
            "request": self.request.model_dump(mode="json", exclude_none=True),
        }

    @property
    def attribute(self) -> Attribute:
        """The attribute whose values are the periods."""
        assert self.begun.periods is not None
        return self.workload.domain[self.begun.periods.attribute]

    @property
    def release(self) -> Release | None:
        """The release so far; None before the first publication."""
        return load_release(self.folder) if is_release(self.folder) else None

    @property
    def published(self) -> tuple[str, ...]:
        """The last period of each publication."""
        periods = load_measurement(last_measured(self.folder))[0].periods
        assert periods is not None
        return tuple(self.attribute.label(number - 1) for number in periods.published)

    @withholding
    def publish(
        self,
        table: object,
        through: object,
        *,
        table_name: str | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        expect: int | None = None,
        key: SigningKey | None = None,
        seed_not_private: int | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """Measure the periods that are over and not yet measured, and publish what is known by them.

        What is measured is final: `check` and `count` tell beforehand whether the table is the right one.
        Nothing is spent. Periods that were published before are not measured again: publishing them a second
        time returns what is there, and reads no table. A publication that was stopped is completed if its
        measurement is whole, and made again otherwise.

        Parameters
        ----------
        table : object
            All records so far, as in `Strategy.measure`.
        through : object
            The last period that is over: a value of the attribute, such as ``"2025-03"``.
        table_name : str, optional
            The table in a database that `table` names.
        ledger : Ledger or path, optional
            The ledger that was debited when the series began; it must be named where there was one.
        expect : int, optional
            How many records the table should have in the periods that are measured now: a public figure. The
            release says under `size` whether the noisy number is near it.
        key : SigningKey, optional
            Signs the release, including one that a stopped publication left unsigned.
        seed_not_private : int, optional
            Where the series began without privacy: the seed of this publication.
        progress : callable, optional
            Is called with what is being done and, where it is known, the share of it that is done.

        Returns
        -------
        Release
            Everything published so far. Its `warnings` say, for example, that the periods that were measured
            now seem to be empty.

        Raises
        ------
        DomainError
            If there is no such period.
        SpecificationError
            If no answer is known by it.
        PrivacyError
            If the series is private and a seed is given, or the other way round.
        StorageError
            If another publication is being made, the folder is not the one that the ledger knows (a backup,
            say), or something cannot be written.
        SourceError
            If the table cannot be read.
        """
        expect = check_expect(expect)
        number = self._number(through)
        book = self._ledger(ledger)
        self._settle(book)
        last = last_measured(self.folder)
        begun_from = digest(last)
        earlier = load_measurement(last)[0]
        if book is not None:
            self._check_ledger(book, begun_from)
        assert earlier.periods is not None
        known = self.release
        if known is not None and number <= earlier.periods.through:
            if key is not None and not (self.folder / SIGNATURE).exists():
                sign_release(self.folder, key)
            return known
        workload = self._known(number)
        source = self._source(table, table_name, earlier)
        budget = earlier.authorization.budget
        with transaction(self.folder, force=True) as run:
            if digest(last_measured(self.folder)) != begun_from:
                told = "another publication was made meanwhile; nothing was measured"
                raise StorageError(f"{self.folder}: {told}", "already-spent")
            copy_series(self.folder, run.folder)
            entry = None if book is None else self._entry
            spend = partial(run.spend, budget, book, entry, begun_from) if earlier.private else None
            measured = proceed(
                earlier,
                source,
                number,
                seed_not_private=seed_not_private,
                before_noise=spend,
                progress=counter("measuring", progress),
            )
            asked = self.request
            release = Release(
                measured, workload, asked.confidence, asked.origin, expect,
                publication=Publication.read(asked.publication),
            )  # fmt: skip
            writing = counter("writing answers", progress)
            run.write(release, csv=asked.csv, max_answers=asked.max_answers, key=key, progress=writing)
            if book is not None:
                self._advance(book, run.folder, claim_of(run.folder)[0])
        if book is not None and measured.whole:
            book.advance(self._entry, "released", str(digest(self.folder / MEASUREMENT)))
        return release

    def check(
        self,
        table: object,
        through: object,
        *,
        table_name: str | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
    ) -> Rehearsal:
        """Rehearse a publication: check all that needs no record. Nothing is spent or written.

        Of the table the names of the columns are checked, and their types where a file or a database declares
        them; of the series that there is something to publish, that its folder is the one that the ledger
        knows, that nobody publishes from it now, and that it can be written to.

        Parameters
        ----------
        table, through, table_name, ledger
            As in `publish`.

        Returns
        -------
        Rehearsal
            What the publication would measure and publish.

        Raises
        ------
        DomainError, SpecificationError, StorageError, SourceError
            As `publish` would.

        Examples
        --------
        >>> import tempfile
        >>> import matrixdp as mdp
        >>> specification = {
        ...     "domain": {"month": {"from": "2025-01-01", "to": "2025-12-31", "by": "month"}},
        ...     "workload": [{"marginals": [["month"]]}],
        ...     "series": "month",
        ...     "privacy": {"rho": 0.5},
        ... }
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     series = mdp.Series.start(specification, f"{parent}/series")
        ...     print(series.check({"month": []}, "2025-02"))
        Rehearsal(periods=('2025-01', '2025-02'), figures=2, resumes=False)
        """
        number, book = self._number(through), self._ledger(ledger)
        last = last_measured(self.folder)
        earlier = load_measurement(last)[0]
        assert earlier.periods is not None
        stopped = unfinished(self.folder)
        for folder in stopped:
            if Lock.is_held(folder / RUNNING):
                raise _runs(folder)
        if book is not None and not stopped:  # what is unfinished may have claimed the period
            self._check_ledger(book, digest(last))
        over = earlier.periods.through
        periods = tuple(self.attribute.label(code) for code in range(over, number))
        if not periods:
            return Rehearsal((), 0, bool(stopped))
        self._known(number)
        self._source(table, table_name, earlier)
        for place in (self.folder, self.folder.parent):
            if not os.access(place, os.W_OK | os.X_OK):
                raise StorageError(f"{place}: cannot be written to", "no-place")
        before, then = (figures_known(self.workload, self.attribute, own) for own in (over, number))
        return Rehearsal(periods, then - before, bool(stopped))

    def count(
        self,
        table: object,
        through: object,
        budget: Budget,
        *,
        expect: int | None = None,
        table_name: str | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        seed_not_private: int | None = None,
        accept_weak_privacy: bool = False,
    ) -> SizeCheck:
        """Count the records of the periods that a publication would measure, with noise, before it does.

        This is a measurement of its own, with a small budget of its own, which a ledger is debited: what it
        tells adds to what the series tells of the same people. Counted are the records in these periods, and
        those of the whole table that are out of domain; for a unit with `per`, which bounds none of them,
        only the first.

        Parameters
        ----------
        table, through, table_name
            As in `publish`.
        budget : Budget
            What is spent, for the unit of the series, whatever unit it names.
        expect : int, optional
            How many records the table should have in these periods, a public figure.
        ledger : Ledger or path, optional
            Is debited: that of the series, where there was one, else any of the same people.
        seed_not_private : int, optional
            Where the series began without privacy: the seed of this count.
        accept_weak_privacy : bool
            Whether a budget above epsilon 10 or mu 3 may be spent.

        Returns
        -------
        SizeCheck
            The numbers with their errors. `agrees` says whether there are as many as expected, up to noise,
            and `warnings` what looks wrong.

        Raises
        ------
        SpecificationError
            If these periods were published before, or no ledger is named.
        PrivacyError
            If the ledger has less left, the budget is above epsilon 10 or mu 3 and that was not
            accepted, or the series began with seeds and there is none, or the other way round.
        SourceError
            If the table cannot be read.

        Examples
        --------
        >>> import tempfile
        >>> import matrixdp as mdp
        >>> specification = {
        ...     "domain": {"month": {"from": "2025-01-01", "to": "2025-12-31", "by": "month"}},
        ...     "workload": [{"marginals": [["month"]]}],
        ...     "series": "month",
        ...     "privacy": {"rho": 0.5},
        ... }
        >>> misread = {"month": ["2025/01/04"] * 800}
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     ledger = mdp.Ledger.create(f"{parent}/ledger", "arrivals", mdp.Budget(rho=1))
        ...     series = mdp.Series.start(specification, f"{parent}/series", ledger=ledger)
        ...     found = series.count(misread, "2025-01", mdp.Budget(rho=0.01), expect=800, ledger=ledger)
        >>> found.agrees, found.out_of_domain.estimate > 700
        (False, True)
        """
        expect = check_expect(expect)
        number = self._number(through)
        earlier = load_measurement(last_measured(self.folder))[0]
        assert earlier.periods is not None
        codes = range(earlier.periods.through, number)
        if not codes:
            found = f"{self.attribute.label(number - 1)}, which was published before"
            raise SpecificationError.at(("through",), found, "a later period", code="out-of-range")
        if (seed_not_private is None) != earlier.private:
            found = "no seed" if seed_not_private is None else "a seed"
            raise PrivacyError.at(("seed_not_private",), found, "what the series began with", code="conflict")
        book = self._ledger(ledger)
        if book is None and ledger is not None:
            book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        if book is None and earlier.private:
            expected = "a ledger, which keeps account of the series and of what is counted beside it"
            raise SpecificationError.at(("ledger",), "nothing", expected, code="missing-key")
        own = earlier.authorization.budget
        spent = Budget(**budget.given, neighbours=own.neighbours, unit=own.unit)
        check_strong(spent, accepted=accept_weak_privacy or not earlier.private, place=("budget",))
        domain, name = self.workload.domain, self.attribute.name
        asked = Workload(domain, records_in(domain, name, codes))
        measured = select(asked, budget=spent).measure(
            table,
            spent,
            table_name=table_name,
            quoted_newlines=self.quoted_newlines,
            out_of_domain=None if own.unit.per else {"count": True},
            seed_not_private=seed_not_private,
            ledger=book,
        )
        if (debit := measured.measurement.reservation) is not None:
            # no folder has it: what is told is all that there is of it
            values = b"".join(own.tobytes() for own in measured.measurement.values)
            told = hashlib.sha256(values).hexdigest()
            debit.measured(told)
            debit.released(told)
        release = measured.reconstruct(confidence=self.request.confidence)
        [row] = release.answers.to_pylist()
        total = Estimated(*(row[figure] for figure in FIGURES))
        labels = self.attribute.label(codes[0]), self.attribute.label(codes[-1])
        return SizeCheck(
            total,
            expect,
            release.size.far,
            (),
            counted=True,
            periods=labels,
            out_of_domain=release.out_of_domain_counts.get(None),
        )

    def schedule(self) -> ResultTable:
        """Return when the answers of each table come, and how accurate they will be.

        Returns
        -------
        ResultTable
            Columns ``table``, ``queries`` (of a statistic its rows), ``published`` (how many are), ``next``
            (the period after which more come, null at the end), ``comes`` in words, and the largest
            ``stddev`` in records; null for statistics, whose errors depend on what is counted.
        """
        analysis = self.begun.plan.analysed([scale.variance for scale in self.begun.scales])
        published = self.published
        through = self._number(published[-1]) if published else 0
        rows = []
        for one in tables_to_come(self.workload, self.attribute):
            later = one.known_after[one.known_after >= through]
            rows.append(
                {
                    "table": one.name,
                    "queries": one.rows,
                    "published": one.known(through),
                    "next": self.attribute.label(int(later.min())) if later.size else None,
                    "comes": one.words(self.attribute),
                    "stddev": None if one.group is None else analysis.group(one.group).largest ** 0.5,
                }
            )
        return ResultTable(pa.Table.from_pylist(rows))

    def _source(self, table: object, table_name: str | None, earlier: Measurement) -> Source:
        """Open a table, and check its columns."""
        source = open_source(table, table_name=table_name, quoted_newlines=self.quoted_newlines)
        source.check(self.workload.domain, earlier.out_of_domain, earlier.authorization.budget.unit)
        return source

    def _number(self, period: object) -> int:
        """Return how many periods are over after one."""
        with within("through"):
            return self.attribute.code_of(period) + 1

    def _known(self, number: int) -> Workload:
        """Return the queries that are known when the first `number` periods are over."""
        ends = [int(one.known_after.min()) for one in tables_to_come(self.workload, self.attribute)]
        if min(ends) >= number:
            expected = (
                f"{self.attribute.label(min(ends))}, the first by which an answer is known, or a later one"
            )
            found = self.attribute.label(number - 1)
            raise SpecificationError.at(("through",), found, expected, code="out-of-range")
        return workload_through(self.workload, self.attribute.name, number)

    # The ledger knows what was measured last: a folder that differs from it is an older one.

    @property
    def _entry(self) -> str:
        record = self.begun.authorization.ledger
        assert record is not None
        return record.entry

    def _ledger(self, ledger: Ledger | str | os.PathLike[str] | None) -> Ledger | None:
        record = self.begun.authorization.ledger
        if record is None:
            return None
        if ledger is None:
            expected = f"the ledger of {record.dataset}, which was debited when the series began"
            raise SpecificationError.at(("ledger",), "nothing", expected, code="missing-key")
        return ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)

    def _check_ledger(self, ledger: Ledger, last: str | None) -> None:
        if ledger.entry(self._entry).measurement != last:
            raise StorageError(
                f"{self.folder}: found another measurement than the last one that {ledger.path} knows. Is "
                "this a backup, or was it copied or moved while a publication ran? Measuring its periods "
                "again would cost their privacy twice: publish from the folder that was published last, or "
                "where the publication began",
                "already-spent",
            )

    def _advance(self, ledger: Ledger, folder: Path, after: str | None) -> None:
        try:
            ledger.advance(self._entry, "measured", digest(folder / MEASUREMENT), after=after)
        except StorageError as error:
            if error.code == "already-spent":
                remove_release(folder)  # nobody has seen it, and nobody should
            raise

    def _settle(self, ledger: Ledger | None) -> None:
        """Complete a publication that was stopped after its measurement was whole; remove any other."""
        for folder in unfinished(self.folder):
            with _locked(folder):
                if not (folder / MEASUREMENT).exists():
                    if ledger is None:
                        remove_release(folder)
                    else:
                        withdraw(folder, ledger, self._entry)
                    continue
                held = None if ledger is None else ledger.entry(self._entry).measurement
                if ledger is not None and held != digest(folder / MEASUREMENT):
                    check_follows(load_measurement(folder / MEASUREMENT)[0], self.folder)
                    if held != claim_of(folder)[0]:
                        self._check_ledger(ledger, digest(last_measured(self.folder)))
                    self._advance(ledger, folder, held)
                adopt(folder, self.folder, lambda _path, _measurement: None, True, None)
        settle(self.folder)


def select_over_time(
    workload: Workload, attribute: str, budget: Budget, noise: str = "auto", progress: Progress | None = None
) -> Strategy:
    """Return the strategy of a series: of Gaussian noise where the budget admits it."""
    noises, _ = possible_noises(noise, budget, "auto")
    chosen = max(noises, key=lambda own: own.norm)
    told = progress or silent
    choose = partial(
        select_series,
        attribute=attribute,
        noise=chosen,
        neighbours=budget.neighbours,
        unit=budget.unit,
        progress=told,
    )
    found = reach(workload, choose)
    return Strategy(
        found, "nothing is lost by measuring period by period" if chosen.norm == 2 else "asked for"
    )


def _locked(folder: Path) -> Lock:
    try:
        return Lock(folder / RUNNING)
    except StorageError:
        raise _runs(folder) from None


def _runs(folder: Path) -> StorageError:
    return StorageError(f"{folder}: another publication still runs; nothing was changed", "already-spent")
