"""From a specification to a release in a folder: checked, selected, measured once, written."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.answers.inference import check_confidence
from matrixdp.answers.publication import chosen_tables
from matrixdp.errors import SpecificationError, StorageError, withholding
from matrixdp.forms import describe_value
from matrixdp.ledger import Ledger
from matrixdp.measure.workers import Workers
from matrixdp.privacy import Budget
from matrixdp.privacy.budget import check_strong
from matrixdp.queries.workload import MAX_ANSWERS
from matrixdp.releases import Release, SigningKey, total_of
from matrixdp.releases.release import check_expect
from matrixdp.releases.transaction import transaction
from matrixdp.sources import open_source
from matrixdp.specification import Specification, load_specification
from matrixdp.strategy.strategy import Strategy, meet_targets, payable_noise, select


@withholding
def release(
    specification: Specification | str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str] | None = None,
    *,
    table: object = None,
    table_name: str | None = None,
    strategy: Strategy | str | os.PathLike[str] | None = None,
    mechanism: str = "auto",
    noise: str = "auto",
    objective: str = "sum",
    options: Mapping[str, Any] | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    confidence: float = 0.95,
    expect: int | None = None,
    csv: bool = False,
    max_answers: int = MAX_ANSWERS,
    key: SigningKey | None = None,
    force: bool = False,
    seed_not_private: int | None = None,
    accept_weak_privacy: bool = False,
    before_measuring: Callable[[Budget], None] | None = None,
    progress: Callable[[str, float | None], None] | None = None,
    workers: Workers | None = None,
) -> Release:
    """Measure a table once and write the answers to a folder, so that no stop draws noise twice unnoticed.

    All options of the specification hold: its table, unit, budget or targets, ledger, and what happens to
    values out of domain. Everything is checked before any record is counted. The ledger is debited and the
    budget is marked as spent, both durably, before any noise is drawn. The folder appears whole or not at
    all. If the program stops after the measurement was written, `recover_release` or `recover_ledger`
    completes the release at no further cost. Once a run has marked its budget as spent, another run for the
    same folder is rejected until the first is recovered or removed. This is what the command
    ``matrixdp release`` calls.

    Parameters
    ----------
    specification : Specification, path, str or mapping
        What is asked, as in `load_specification`; it must have a budget, or targets.
    out : str or path, optional
        The folder. It must not exist, or be empty, or, with `force`, hold an earlier release. Without it the
        release is in memory alone: a stop before `save_release` loses it, and its budget is spent.
    table : object, optional
        The table, as in `Strategy.measure`; that of the specification where it is left out.
    table_name : str, optional
        The table in a database that `table` names.
    strategy : Strategy or path, optional
        What to measure, in place of a selection; a path is that of a file that `Strategy.save` wrote.
    mechanism, noise, objective : str
        For the selection, as in `select`.
    options : mapping, optional
        Further options of the selection, as in `select`.
    ledger : Ledger or path, optional
        What is debited; the ledger of the specification where it is left out.
    confidence : float
        Of the intervals, above 0 and below 1.
    expect : int, optional
        How many records should be in the domain, a public figure: see `Release.size`.
    csv : bool
        Whether to write the answers as CSV too.
    max_answers : int
        Above this many queries only the measurement is written, which `load_release` answers from.
    key : SigningKey, optional
        Signs the release.
    force : bool
        Whether to replace an earlier release in `out`; that does not refund its budget.
    seed_not_private : int, optional
        Draw the noise from a seed. THE RESULT IS NOT PRIVATE, and says so; no ledger is debited.
    accept_weak_privacy : bool
        Whether to measure with a budget above epsilon 10 or mu 3, which hardly protects anybody.
    before_measuring : callable, optional
        Is called with the budget, before any record is counted; what it raises ends the run, and nothing is
        spent.
    progress : callable, optional
        Is called with what is being done and, where it is known, the share of it that is done.
    workers : Workers, optional
        Count and measure runs of areas, and write many answers about them, in processes here or on other
        machines that see the table and `out` under the same paths.

    Returns
    -------
    Release
        What was measured, and written where there is a folder.

    Raises
    ------
    SpecificationError
        If the specification or an option is wrong.
    PrivacyError
        If the noise cannot honour the budget, the ledger has less left, or the budget is above epsilon 10 or
        mu 3 and that was not accepted. Nothing is spent.
    UnsupportedQueryError
        If the strategy does not determine a query. Nothing is spent.
    StorageError
        If `out` holds something else, an earlier run for it left a spent budget, or something cannot be
        written. A note on the error says whether a budget was spent, and what was kept.
    SourceError
        If the table cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import matrixdp as mdp
    >>> specification = {
    ...     "domain": {"sex": ["female", "male"], "age": {"min": 0, "max": 99}},
    ...     "workload": [{"marginals": [1]}],
    ...     "privacy": {"rho": 0.5},
    ... }
    >>> table = {"sex": ["male", "female", "male"], "age": [33, 61, 8]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release = mdp.release(specification, f"{folder}/out", table=table)
    ...     again = mdp.load_release(f"{folder}/out")
    >>> release.answers.num_rows, again.answers.equals(release.answers)
    (102, True)
    """
    if not isinstance(specification, Specification):
        specification = load_specification(specification, require_privacy=True)
    check_confidence(confidence)
    if out is None and (csv or force or key is not None):
        given = f"none beside {'csv' if csv else 'force' if force else 'key'}"
        raise SpecificationError.at(("out",), given, "a folder, which these are about", code="conflict")
    csv, expect = bool(csv), check_expect(expect)
    if isinstance(max_answers, np.integer):
        max_answers = int(max_answers)
    _check_results(max_answers, key)
    accepted = accept_weak_privacy or seed_not_private is not None
    if table is None:
        table, table_name = specification.data, specification.table
    reference = check_request(specification, table, accepted=accepted)
    debited = specification.ledger if ledger is None else ledger
    if seed_not_private is not None:
        debited = None
    elif debited is not None and not isinstance(debited, Ledger):
        debited = Ledger.open(debited)
    if debited is not None and strategy is None and specification.least is None:
        # spares minutes of selection; a saved strategy has its own noise
        noise = payable_noise(noise, reference, mechanism, debited)
    if isinstance(table, str | os.PathLike):
        specification.check_table(table)
    source = open_source(table, table_name=table_name, quoted_newlines=specification.quoted_newlines)
    source.check(specification.domain, specification.out_of_domain, specification.unit)
    with ExitStack() as stack:
        run = None
        if out is not None:
            spends = "a budget" if specification.budget is None else specification.budget.words
            run = stack.enter_context(transaction(out, force=force, spends=spends))
        if strategy is None:
            strategy = select(
                specification.workload,
                noise=noise,
                mechanism=mechanism,
                budget=reference,
                objective=objective,
                targets=specification.targets or None,
                progress=progress,
                rounds=specification.rounds,
                **(options or {}),
            )
        elif not isinstance(strategy, Strategy):
            path, strategy = Path(strategy), Strategy.load(strategy)
            if strategy.workload.domain != specification.domain:
                told = "found a strategy for another domain than that of the specification"
                raise StorageError(f"{path}: {told}", "domain-mismatch")
        if strategy.selection.rounds != specification.rounds:
            asked, expected = str(specification.rounds), f"{strategy.selection.rounds}, as the strategy"
            raise SpecificationError.at(("rounds",), asked, expected, code="conflict")
        if specification.rounds > 1 and not strategy.answers_alike(specification.workload):
            expected = "the workload of the strategy, for which it is measured in two rounds"
            raise SpecificationError.at(("workload",), "another workload", expected, code="conflict")
        _check_questions(strategy, specification, expect)
        if run is not None:
            # a noisy value takes eight bytes
            run.check_space(8 * sum(part.rows for part in strategy.selection.plan.parts))
        budget = reference
        if specification.least is not None:
            least, targets = specification.least, specification.targets
            budget = meet_targets(strategy, targets, least, specification.workload, accepted=accepted)
        if before_measuring is not None:
            before_measuring(budget)
        seeded = seed_not_private is not None
        spend = None if run is None or seeded else partial(run.spend, budget, debited)
        measured = strategy.measure(
            table,
            budget,
            table_name=table_name,
            quoted_newlines=specification.quoted_newlines,
            out_of_domain=specification.out_of_domain,
            max_records=specification.max_records,
            seed_not_private=seed_not_private,
            ledger=debited,
            release=out,
            before_noise=spend,
            progress=counter("measuring", progress),
            workers=workers,
        )
        found = measured.reconstruct(
            specification.workload, confidence, expect, publication=specification.publication
        )
        if run is not None:
            writing = counter("writing answers", progress)
            run.write(found, csv=csv, max_answers=max_answers, key=key, progress=writing, workers=workers)
    return found


def check_request(specification: Specification, table: object = None, *, accepted: bool = False) -> Budget:
    """Check that a specification can be released, before anything is opened; return its reference budget.

    The table is that of the specification where it is left out. A budget above epsilon 10 or mu 3 must be
    `accepted`.

    Examples
    --------
    >>> asked = {"domain": {"sex": 2}, "workload": [{"marginals": 1}], "privacy": {"mu": 1}}
    >>> check_request(load_specification(asked), {"sex": [0, 1]})
    Budget(mu=1.0, neighbours='add_remove')
    """
    if specification.series is not None:
        expected = "nothing: `matrixdp series start`, or mdp.Series.start, begins a series"
        raise SpecificationError.at(("series",), "a series", expected, code="conflict")
    reference = specification.reference_budget
    if reference is None:
        raise SpecificationError.at(("privacy",), "nothing", "a budget", code="missing-key")
    chosen_tables(specification.workload, specification.publication)  # what it names is there
    if specification.least is None:
        check_strong(reference, accepted=accepted)
    if table is None and specification.data is None:
        expected = "the path of a table, here or by --data"
        raise SpecificationError.at(("data",), "nothing", expected, code="missing-key")
    return reference


def _check_results(max_answers: object, key: object) -> None:
    """Check what is used only after noise was drawn, when an error would lose a spent budget."""
    if type(max_answers) is not int or max_answers < 0:
        code = "out-of-range" if type(max_answers) is int else "wrong-type"
        found, expected = describe_value(max_answers), "an integer of at least 0"
        raise SpecificationError.at(("max_answers",), found, expected, code=code)
    if key is not None and not isinstance(key, SigningKey):
        # what was given may be a secret
        found = f"a {type(key).__name__}"
        raise SpecificationError.at(("key",), found, "a SigningKey", code="wrong-type")


def _check_questions(strategy: Strategy, specification: Specification, expect: int | None) -> None:
    """Check that the strategy determines what is asked, and the total if it is to be compared."""
    strategy.check_workload(specification.workload)
    if expect is not None and total_of(strategy.selection.analysis, specification.domain) is None:
        found = "a workload from which the number of records does not follow"
        raise SpecificationError.at(("expect",), found, "`marginals: [0]` in it, too")


def counter(
    stage: str, progress: Callable[[str, float | None], None] | None
) -> Callable[[int, int], None] | None:
    """Return a callback that reports the progress of a stage as a share."""
    if progress is None:
        return None
    return lambda done, total: progress(stage, done / total if total else None)
