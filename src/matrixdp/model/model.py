"""A model of a release, as users hold it: answers beside the unbiased ones, integer tables, and records."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matrixdp.answers.intervals import Intervals
from matrixdp.answers.questions import Question, determines, embed
from matrixdp.answers.questions import question as as_entry
from matrixdp.answers.result_table import ResultTable
from matrixdp.answers.table import FIGURES, AnswerColumns
from matrixdp.display import Displayed, Preview, counted
from matrixdp.domain import Domain
from matrixdp.errors import SpecificationError, TooLargeError, UnsupportedQueryError, WorkloadError
from matrixdp.exact.resources import one_blas_thread
from matrixdp.forms import describe_value, unknown_name
from matrixdp.locks import private_folder
from matrixdp.measure.measurement import Measurement
from matrixdp.measure.statement import PrivacyStatement
from matrixdp.model.constraints import Constraints
from matrixdp.model.folder import BIASED, Progress, check_record, read_model, save_model
from matrixdp.model.integers import AreaTable
from matrixdp.model.likelihood import Evidence, FitTests
from matrixdp.model.mixture_fit import FITS, choose
from matrixdp.model.pair_fit import fit_local
from matrixdp.model.records import (
    MAX_ROWS,
    SYNTHETIC,
    RecordColumns,
    StratifiedRecords,
    check_seed,
    counted_table,
    write_records,
)
from matrixdp.model.tables import IntegerTable, Mixture, Tables, check_answered
from matrixdp.plans import Analysis
from matrixdp.queries import Group, Workload
from matrixdp.statistics.intervals import EVERY
from matrixdp.storage.archive import entry
from matrixdp.storage.formats import save_measurement

#: A table in memory has at most this many rows.
MAX_TABLE_ROWS = 50_000_000
METHODS = ("auto", "mixture", "local", "integers")
"""How a model is made."""
_MOST_COMPONENTS = 1_000_000


@final
@dataclass(frozen=True, eq=False, repr=False)
class Model(Displayed):
    """Non-negative, consistent answers and records that follow from a release, at no privacy cost.

    Its answers are biased: the unbiased estimates, with their standard deviations and intervals, stay beside
    them and stay the only promise. `Release.model` makes one.

    Parameters
    ----------
    measurement : Measurement
        What was measured.
    workload : Workload
        What `answers` answers.
    tables : Mixture, LocalTables or IntegerTable
        What the model answers from.
    made : mapping
        How it was made, for the record: ``method``, ``seed``, what it was fitted with, ``accepted`` and
        ``tests``; plain values for JSON.
    confidence : float
        Of the unbiased answers' intervals.
    digest : str, optional
        The SHA-256 of the measurement's file, where it was read from one.

    Raises
    ------
    WorkloadError
        If the workload or the tables are over another domain than the measurement.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.model.tables import Mixture
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> measured = mdp.select(workload).measure({"sex": ["male"] * 90}, mdp.Budget(mu=1), seed_not_private=1)
    >>> tables = Mixture(workload.domain, 90.0, np.ones(1), {"sex": np.array([[0.0, 1.0]])})
    >>> model = Model(measured.measurement, workload, tables, {"method": "mixture", "seed": 0})
    >>> model.answers.column("modelled").to_pylist()
    [0.0, 90.0]
    >>> model.records(2).to_pylist()
    [{'sex': 'male'}, {'sex': 'male'}]
    """

    measurement: Measurement
    workload: Workload
    tables: Tables
    made: Mapping[str, Any] = field(default_factory=dict)
    confidence: float = 0.95
    digest: str | None = None

    def __post_init__(self) -> None:
        domains = [self.workload.domain, self.tables.domain]
        if any(domain != self.measurement.plan.domain for domain in domains):
            raise WorkloadError("model: found another domain than that of the measurement", "domain-mismatch")

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.workload.domain

    @property
    def private(self) -> bool:
        """False if the noise was seeded: then nothing is protected."""
        return self.measurement.private

    @property
    def statement(self) -> PrivacyStatement:
        """The privacy statement of the release; it covers the model, which follows from the release alone."""
        return self.measurement.statement

    @property
    def method(self) -> str:
        """How it was made: ``mixture``, ``local`` or ``integers``."""
        return self.tables.method

    @property
    def seed(self) -> int:
        """The seed that it was made with, and that records are drawn with unless another is given."""
        seed = self.made.get("seed")
        return seed if type(seed) is int else 0

    @property
    def accepted(self) -> bool:
        """Whether it passed the tests of its fit; one that did not is made on request alone.

        Integers are not fitted: they follow from the release by a rule, and are always accepted.
        """
        return self.made.get("accepted") is True

    @property
    def tests(self) -> Mapping[str, Any]:
        """The tests of its fit, as they are in its record."""
        found = self.made.get("tests")
        return found if isinstance(found, Mapping) else {}

    @property
    def total(self) -> float:
        """The number of records, estimated or publicly known."""
        return self.tables.total

    @property
    def size(self) -> int:
        """The number of records, rounded: how many `records` draws if it is not told."""
        return round(self.total)

    @cached_property
    def measurement_digest(self) -> str:
        """The SHA-256 of the measurement's file, by which a model says what it is a model of."""
        if self.digest is not None:
            return self.digest
        with private_folder() as folder:
            path = folder / "measurement.mdp"
            save_measurement(path, self.measurement, self.workload)
            return str(entry(path)["sha256"])

    @cached_property
    def intervals(self) -> Intervals:
        """How many standard deviations the ends of the unbiased answers' intervals lie from them."""
        return Intervals(self.analysis, self.measurement.tails, self.confidence)

    @property
    def analysis(self) -> Analysis:
        """Variances of the unbiased answers, and which queries the measurement determines."""
        return self.measurement.analysis

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of `answers`."""
        return _with(AnswerColumns(self.domain, self.workload.groups).schema)

    @cached_property
    def answers(self) -> ResultTable:
        """The workload's answers: the columns of `Release.answers` in the same order, and three more.

        ``modelled`` is the model's answer, which is biased. ``outside`` says that it lies outside the
        interval of the unbiased estimate. ``extrapolated`` says that the measurement does
        not determine the query; then ``estimate``, ``stddev``, ``lower``, ``upper`` and ``outside`` are null.

        Raises
        ------
        TooLargeError
            If there are more than `MAX_TABLE_ROWS` queries.
        UnsupportedQueryError
            If the model's method does not answer a query.
        """
        return self._table(self.workload.groups)

    def answer(self, question: Question, *, base_path: str | os.PathLike[str] = ".") -> ResultTable:
        """Return the model's answers to new queries, whether they were measured or not.

        Parameters
        ----------
        question : Entry or mapping
            What ``marginals``, ``kway``, ``product``, ``pairwise`` or ``dense`` return, or an entry in the
            form of a specification.
        base_path : path
            What the paths of NumPy files in a mapping are relative to.

        Returns
        -------
        ResultTable
            In the form of `answers`.

        Raises
        ------
        WorkloadError
            If the entry does not fit the domain.
        UnsupportedQueryError
            If the model's method does not answer a query.
        TooLargeError
            If there are more than `MAX_TABLE_ROWS` queries.
        """
        return self._table(as_entry(question, base_path).expand(self.domain))

    def batches(self, groups: Sequence[Group]) -> Iterator[pa.RecordBatch]:
        """Yield the answers to query groups, one group in memory at a time."""
        wider = [embed(self.analysis, self.workload, group) for group in groups]
        columns = AnswerColumns(self.domain, wider)
        for position, (group, wide) in enumerate(zip(groups, wider, strict=True)):
            known, nothing = determines(self.analysis, wide), np.zeros(group.queries)
            figures: tuple[Any, Any, Any] = (nothing, nothing, 0.0)
            if known:
                estimates, variances = self.measurement.estimates.answers(wide), self.analysis.variances(wide)
                figures = (estimates, variances, self.intervals.multipliers((1.0, wide, EVERY)))
            modelled, done = self.tables.answers(group), 0
            for batch in columns.batches(position, *figures):
                rows, own = batch.num_rows, batch.columns
                if not known:
                    own = [*own[: -len(FIGURES)], *[pa.nulls(rows, pa.float64())] * len(FIGURES)]
                answers = pa.array(modelled[done : done + rows])
                lower, upper = own[-2:]
                outside = pc.or_(pc.less(answers, lower), pc.greater(answers, upper))
                beside = [answers, outside, pa.array(np.full(rows, not known))]
                done += rows
                yield pa.RecordBatch.from_arrays([*own, *beside], schema=_with(columns.schema))

    def counted(self, question: Question, rows: int | None = None, *, seed: int | None = None) -> ResultTable:
        """Return the answers to queries as they are counted on the model's records: integers, and consistent.

        Parameters
        ----------
        question : Entry or mapping
            As in `answer`.
        rows, seed : int, optional
            The records that are counted, as in `records`; only a part of them is in memory at a time.

        Returns
        -------
        ResultTable
            ``group``, the attributes, and ``count``: an integer where every query of the table counts.

        Raises
        ------
        WorkloadError
            If the entry does not fit the domain.
        UnsupportedQueryError
            If the model's method has no records.
        TooLargeError
            If a table has too many cells, or there are more than `MAX_TABLE_ROWS` queries.
        """
        groups = as_entry(question).expand(self.domain)
        _check_rows(groups)
        return ResultTable(counted_table(self.domain, groups, self.stratified(rows, seed)))

    def records(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        values: str = "labels",
        levels: bool = False,
    ) -> ResultTable:
        """Return synthetic records: a table whose counts are the model's, rounded, in a random order.

        Parameters
        ----------
        rows : int, optional
            How many; the number of records that was released, rounded, where it is left out.
        seed : int, optional
            The same seed, the same records; the model's own where it is left out.
        values : {'labels', 'data'}
            Whether values are what answers call them, or what a table of the domain has: see
            `RecordColumns`.
        levels : bool
            Whether there is a column for each level of an attribute too.

        Raises
        ------
        SpecificationError
            If there is no such number of records, seed or form of values.
        UnsupportedQueryError
            If the model's method has no records.
        TooLargeError
            If there are more than `MAX_TABLE_ROWS`: `save_records` writes them.
        """
        drawn = self.stratified(rows, seed)
        if drawn.rows > MAX_TABLE_ROWS:
            limit = f"a table in memory has at most {MAX_TABLE_ROWS}. Write them with `save_records`"
            raise TooLargeError(f"{drawn.rows} records; {limit}")
        columns = RecordColumns(self.domain, values, levels=levels)
        schema = columns.schema.with_metadata({b"matrixdp": SYNTHETIC.encode()})
        batches = [columns.batch(codes) for codes in drawn.chunks()]
        return ResultTable(pa.Table.from_batches(batches, columns.schema).cast(schema))

    def stratified(self, rows: int | None = None, seed: int | None = None) -> StratifiedRecords:
        """Return the records as codes, to be made in chunks; see `records`."""
        if not isinstance(self.tables, Mixture):
            found = f"a model by method {self.method!r} has tables and no records"
            raise UnsupportedQueryError(f"{found}: make the model with method='mixture'", "not-supported")
        if rows is None and self.size > MAX_ROWS:
            found = f"none beside a total of {self.size:,}"
            expected = f"a number of records, from 0 to {MAX_ROWS:,}"
            raise SpecificationError.at(("rows",), found, expected, code="out-of-range")
        rows, seed = self.size if rows is None else rows, self.seed if seed is None else seed
        return StratifiedRecords(self.tables, rows, seed)

    def save_records(
        self,
        path: str | os.PathLike[str],
        rows: int | None = None,
        *,
        seed: int | None = None,
        values: str = "labels",
        levels: bool = False,
        force: bool = False,
        progress: Progress | None = None,
    ) -> Path:
        """Write synthetic records to a file, and what they are beside it; see `write_records`."""
        columns = RecordColumns(self.domain, values, levels=levels)
        return write_records(self, Path(path), self.stratified(rows, seed), columns, force, progress)

    def save(
        self, folder: str | os.PathLike[str], *, force: bool = False, progress: Progress | None = None
    ) -> Path:
        """Write the model as a folder that appears whole or not at all; see `save_model`."""
        return save_model(self, folder, force=force, progress=progress)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Return the model that a folder holds, after checking every file of it.

        Its parts are checked, its measurement's cost is recomputed, and what its record says must be what
        follows from them. The modelled answers are not computed again; `verify_model` does that.

        Raises
        ------
        StorageError
            If the folder holds no model, or one that was damaged or altered, or is of another version.
        """
        fields, written = read_model(Path(folder))
        model = cls(**fields)
        check_record(model, Path(folder), written)
        return model

    def _lines(self) -> tuple[str, str]:
        asked = counted(self.workload.queries, "answer")
        first = f"Model ({self.method}) of {asked} in {counted(len(self.workload), 'group')}, biased"
        passed = f"{'' if self.accepted else 'NOT '}accepted by the tests of its fit"
        if self.method == IntegerTable.method:
            passed = "of integers that add up from area to area"
        seeded = "" if self.private else "NOT PRIVATE: the noise was seeded; "
        return first, seeded + passed

    def _preview(self) -> Preview:
        rows = [(group.name, f"{group.queries:,}") for group in self.workload.groups]
        return Preview(("group", "queries"), rows, len(self.workload), frozenset((1,)))

    def _table(self, groups: Sequence[Group]) -> ResultTable:
        _check_rows(groups)
        # many small products: several threads would spend their time waiting for one another
        with one_blas_thread():
            batches = list(self.batches(groups))
        table = pa.Table.from_batches(batches, schema=batches[0].schema if batches else self.schema)
        return ResultTable(table.replace_schema_metadata({b"matrixdp": BIASED.encode()}))


def _check_rows(groups: Sequence[Group]) -> None:
    rows = sum(group.queries for group in groups)
    if rows > MAX_TABLE_ROWS:
        limit = f"a table in memory has at most {MAX_TABLE_ROWS}: ask for a part of them"
        raise TooLargeError(f"{rows} answers; {limit}")


def _with(schema: pa.Schema) -> pa.Schema:
    """Return the columns of answers with those of a model: figures are null where it extrapolates."""
    own = [field.with_nullable(True) if field.name in FIGURES else field for field in schema]
    return pa.schema(
        [*own, ("modelled", pa.float64()), ("outside", pa.bool_()), ("extrapolated", pa.bool_())]
    )


# From a release to a model of it.


def fit_model(
    measurement: Measurement,
    workload: Workload,
    confidence: float,
    method: str,
    *,
    seed: int,
    components: int | None,
    steps: int | None,
    invariants: object,
    structural_zeros: object,
    accept_anyway: bool,
    progress: Progress | None,
) -> Model:
    """Return a model of a release; see `matrixdp.Release.model`."""
    if method not in METHODS:
        raise SpecificationError(
            unknown_name(("method",), str(method), "auto, mixture, local or integers", METHODS)
        )
    check_seed(seed)
    for name, number in (("components", components), ("steps", steps)):
        if number is not None and (type(number) is not int or not 1 <= number <= _MOST_COMPONENTS):
            expected = f"an integer from 1 to {_MOST_COMPONENTS:,}"
            raise SpecificationError.at((name,), describe_value(number), expected, code="out-of-range")
    known = Constraints.of(measurement.plan.domain, invariants, structural_zeros)
    if method == IntegerTable.method:
        for key in known.written:
            expected = "method='mixture' or 'local', which keep what is publicly known"
            raise SpecificationError.at((key,), "method='integers'", expected, code="conflict")
        areas = AreaTable.of(measurement, workload)
        counts = areas.integers()
        told = {"method": method, "seed": seed, "accepted": True, "levels": areas.drift(counts)}
        return Model(measurement, workload, counts, told, confidence)
    evidence = Evidence.of(measurement, known)
    tables: Tables
    if method == "local":
        tables, tests = _fit_local(evidence, workload)
        made, remedy = _made("local", seed, tests), "Use method='mixture'"
    else:
        fitted = choose(evidence, seed, components=components, steps=steps, seen=progress)
        tables, tests = fitted.mixture, fitted.tests
        size = {"components": fitted.components, "steps": fitted.steps, "fits": FITS}
        made = _made("mixture", seed, tests, size)
        remedy = f"Ask for more than {fitted.components:,} `components` or {fitted.steps:,} `steps`"
        if method == "auto" and not tests.accepted and not accept_anyway:
            try:
                local, own = _fit_local(evidence, workload)
            except (UnsupportedQueryError, TooLargeError):
                tests.check(remedy)
            if own.accepted:
                tables, tests, made = local, own, {**_made("local", seed, own), "rejected": made}
    if not accept_anyway:
        tests.check(remedy)
    return Model(measurement, workload, tables, {**made, **known.written}, confidence)


def _made(
    method: str, seed: int, tests: FitTests, size: Mapping[str, int] | None = None
) -> dict[str, object]:
    """Return how a model was made, as JSON has it."""
    outcome = {"accepted": tests.accepted, "tests": tests.as_dict()}
    return {"method": method, "seed": seed, **(size or {}), **outcome}


def _fit_local(evidence: Evidence, workload: Workload) -> tuple[Tables, FitTests]:
    """Return tables of pairs and their tests; refuse where they do not serve what is asked."""
    for group in workload:
        check_answered(workload.domain, group)
    tables = fit_local(evidence)
    return tables, evidence.tests(evidence.losses(tables))


def tests_of(model: Model) -> FitTests:
    """Return the tests of a model, computed again from its measurement and its tables."""
    known = Constraints.of(model.domain, model.made.get("invariants"), model.made.get("structural_zeros"))
    evidence = Evidence.of(model.measurement, known)
    return evidence.tests(evidence.losses(model.tables))
