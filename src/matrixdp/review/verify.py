"""Whether what a release says of itself is true: recomputed from its measurement."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pyarrow as pa

from matrixdp.answers.columns import AnswerColumns, plain_schema
from matrixdp.errors import MatrixDPError, StorageError
from matrixdp.ledger import Ledger
from matrixdp.ledger.entries import version
from matrixdp.measure import Measurement, measured_cost
from matrixdp.queries import Workload
from matrixdp.release.document import document
from matrixdp.release.keys import PublicKey
from matrixdp.release.leftovers import (
    ANSWERS,
    ANSWERS_CSV,
    LISTED,
    MARKS,
    MEASUREMENT,
    RECORD,
    RELEASE_FILES,
    RELEASE_FORMAT,
    STATISTICS,
    refuse_leftover,
)
from matrixdp.release.loading import expected_in
from matrixdp.release.release import Release
from matrixdp.release.writing import too_many
from matrixdp.review.answers import (
    STANDARD_ERRORS,
    AnswerFile,
    CsvAnswers,
    ParquetAnswers,
    compare_answers,
)
from matrixdp.review.finding import Finding, Verification, settled
from matrixdp.review.ledger import check_ledger
from matrixdp.review.signature import signature_finding
from matrixdp.review.statistics import check_statistics, earlier_heads
from matrixdp.storage.documents import TOLERANCE, differences, read_strictly
from matrixdp.storage.files import entry, plain_content
from matrixdp.storage.saving import load_measurement

__all__ = ["verify_release"]

#: What of the record does not follow from the measurement: how the strategy was chosen, and with what.
ORIGIN = {("strategy", name) for name in ("mechanism", "reason", "objective", "certificate")}
UNFOUNDED = frozenset(ORIGIN | {("versions",), ("privacy", "versions"), ("files",)})
#: What is compared to the last digit: it is computed exactly, or rounded to a stated side.
EXACT = ("privacy", "authorization")
#: In standard errors, how far the total that is computed again may lie from what is written.
_NEAR = 1e-10
_SUBJECTS = ("files", "measurement", "cost", "private", "statement", "answers", "record", "ledger")


def verify_release(
    out: str | os.PathLike[str],
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    key: PublicKey | str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Verification:
    """Check all that can be checked of the folder of a release, without the data.

    Parameters
    ----------
    out : str or path
        The folder.
    ledger : Ledger or path, optional
        The ledger that the release was debited to, by what it says.
    key : PublicKey or path, optional
        The public key that the release must be signed with, from a place that you trust.
    progress : callable, optional
        Is called with the number of answers computed again and of all.

    Returns
    -------
    Verification
        A finding for each subject. ``record``: release.json is JSON that all read alike, and its figures
        follow from the measurement. ``files``: they have the digests that are listed. ``measurement``: it is
        whole. ``cost``: recomputed exactly from its matrices and noise scales, it is what is said, and within
        the budget. ``private``: whether the noise was seeded is said alike everywhere. ``statement``: every
        word and figure of it follows. ``answers``: they are those that follow, to a millionth of their
        standard errors. ``statistics``: so are those that the workload asks for. ``ledger``: it holds the
        debit. ``signature``: the holder of the key signed the record and, by their digests, all files. What
        nothing can show is ``not checked``.

    Raises
    ------
    StorageError
        If there is no such folder or ledger, or the folder is that of a release that was never finished.
    SignatureError
        If the file of the key holds no such key.

    Examples
    --------
    >>> import tempfile
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = mdp.save_release(release, f"{parent}/out")
    ...     found = verify_release(folder)
    ...     altered = (folder / "release.json").read_text().replace('"queries": 2', '"queries": 3')
    ...     written = (folder / "release.json").write_text(altered)
    ...     forged = verify_release(folder)
    >>> found.holds, forged.holds, forged.failed[0].words
    (True, False, 'queries says 3; 2 follows')
    """
    folder = Path(out)
    if not os.path.isdir(folder):  # noqa: PTH112 - no error where the path is none
        raise StorageError(f"{folder}: no such folder; expected that of a release")
    refuse_leftover(folder)
    ledger = ledger.path if isinstance(ledger, Ledger) else ledger
    if ledger is not None and not os.path.isfile(ledger):  # noqa: PTH113 - no error where the path is none
        raise StorageError(f"{ledger}: no such file; expected the ledger that the release was debited to")
    public = key if key is None or isinstance(key, PublicKey) else PublicKey.load(key)
    findings: list[Finding] = [signature_finding(folder, public)]
    try:
        findings.extend(_Check(folder, ledger, progress).findings())
    except _Ended as ended:
        findings.extend(ended.findings)
        known = {finding.subject for finding in findings}
        why = "what is above failed"
        findings.extend(Finding(name, "not checked", why) for name in _SUBJECTS if name not in known)
    return Verification(str(folder), (*findings, *_beyond()))


def _version(record: dict[str, Any]) -> Iterator[Finding]:
    """Yield that the words of a statement may be those of another version, where the record is by one."""
    try:
        written = record["privacy"]["versions"]["matrixdp"]
    except (KeyError, TypeError):
        return
    if written != version():
        yield Finding(
            "version",
            "not checked",
            f"the record says that matrixdp {str(written)[:50]!r} wrote it, and this is {version()}: where "
            "the words of its statement are others, verify it with that one",
        )


def _beyond() -> Iterator[Finding]:
    """Yield what no look at the files can show."""
    yield Finding(
        "noise",
        "not checked",
        "that the noise was random, and drawn once: only whoever ran the release knows, and answers for it "
        "by a signature",
    )
    yield Finding(
        "origin",
        "not checked",
        "how the strategy was chosen (mechanism, reason, certificate), by which versions, when, and of what "
        "kind of table (what is assumed of it, whether records of a person were bounded): what the program "
        "said; that the domain, workload and budget were chosen without the data",
    )


class _Ended(Exception):  # noqa: N818 - it ends the checks that need what failed
    """What was found before something failed that all else needs."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__()
        self.findings = findings


@final
@dataclass
class _Check:
    folder: Path
    ledger: str | os.PathLike[str] | None
    progress: Callable[[int, int], None] | None

    def findings(self) -> list[Finding]:
        """Check one subject after the other; each needs those before it."""
        found: list[Finding] = []
        try:
            record = _read_record(self.folder / RECORD)
        except StorageError as error:
            raise _Ended([Finding("record", "failed", str(error))]) from None
        actual = _digests(self.folder)
        found += settled("files", _listed(actual), _wrong_files(record.get("files"), actual))
        found += _others(self.folder)
        try:
            measurement, workload = load_measurement(self.folder / MEASUREMENT)
        except MatrixDPError as error:
            raise _Ended([*found, Finding("measurement", "failed", str(error))]) from None
        rows = f"{len(measurement.plan.parts)} parts, {sum(v.size for v in measurement.values)} noisy answers"
        found.append(Finding("measurement", "ok", f"whole: {rows}"))
        found += _version(record)
        found += _cost(measurement)
        found += settled(
            "private", _origin_of_noise(measurement.private), _flags(record, measurement.private)
        )
        found += self._what_follows(record, measurement, workload, actual)
        found += check_ledger(measurement.authorization, actual[MEASUREMENT]["sha256"], self.ledger)
        return found

    def _what_follows(
        self, record: dict[str, Any], measurement: Measurement, workload: Workload, actual: dict[str, Any]
    ) -> Iterator[Finding]:
        """Compare answers, statement and record with those that follow from the measurement."""
        try:
            release = Release(measurement, workload, record["confidence"], expect=expected_in(record))
            files = {name: actual[name] for name in actual if name != RECORD}
            columns, problems, errors = self._answers(release, actual)
            note = _note(record["answers"], workload.queries)
            follows = json.loads(json.dumps(document(release, errors, files, columns, note)))
        except (MatrixDPError, KeyError) as error:
            yield Finding("answers", "failed", f"none follow from the measurement ({error})")
            return
        exact = [
            problem
            for name in EXACT
            for problem in differences(
                record.get(name), follows.get(name), (name,), exact=True, leave=UNFOUNDED
            )
        ]
        yield from settled("statement", "every word and figure follows from the measurement", exact)
        if columns is None:
            yield Finding("answers", "not checked", "none were written; the measurement serves them")
        else:
            count = (
                f"{release.workload.queries} answers follow, to {STANDARD_ERRORS:g} of their standard errors"
            )
            yield from settled("answers", count, problems)
        yield from check_statistics(self.folder, release, STATISTICS in actual)
        leave = {*UNFOUNDED, *((name,) for name in EXACT)}
        _near(record.get("size"), follows["size"])
        said = record.get("statistics")
        pairs = zip(said if isinstance(said, list) else (), follows.get("statistics", ()), strict=False)
        for says, one in pairs:
            # what could not be computed has no columns
            earlier = earlier_heads(one["columns"], workload.domain) if "columns" in one else None
            if earlier is not None and isinstance(says, dict) and says.get("columns") == earlier:
                one["columns"] = says["columns"]
        rest = differences(record, follows, leave=leave)
        yield from settled("record", f"its other figures follow, to a relative {TOLERANCE:g}", rest)

    def _answers(
        self, release: Release, actual: Mapping[str, object]
    ) -> tuple[AnswerColumns | None, list[str], list[tuple[float, float]]]:
        """Return the columns, what is wrong with the answers, and the errors of each group."""
        workload = release.workload
        files: list[AnswerFile] = []
        if ANSWERS not in actual and ANSWERS_CSV not in actual:
            errors = [release.analysis.group(group) for group in workload]
            return None, [], [(error.total, error.largest) for error in errors]
        columns = AnswerColumns(workload.domain, workload.groups)
        if ANSWERS in actual:
            nullable = pa.schema([field.with_nullable(True) for field in columns.schema])
            parquet = ParquetAnswers(self.folder / ANSWERS, nullable)
            parquet.check_schema(columns.schema, release.private)
            files.append(parquet)
        if ANSWERS_CSV in actual:
            files.append(CsvAnswers(self.folder / ANSWERS_CSV, plain_schema(columns.schema)))
        errors_found = compare_answers(release, columns, files, self.progress)
        return columns, [problem for file in files for problem in file.problems], errors_found


def _near(said: object, follows: dict[str, Any]) -> None:
    """Let the total that follows be the one that is said, where arithmetic alone tells them apart."""
    total, other = follows["total"], said.get("total") if isinstance(said, dict) else None
    if total is None or not isinstance(other, dict):
        return
    for name in ("estimate", "lower", "upper"):
        one = other.get(name)
        if isinstance(one, float) and abs(one - total[name]) <= _NEAR * total["stddev"]:
            total[name] = one


def _read_record(path: Path) -> dict[str, Any]:
    record = read_strictly(plain_content(path), RECORD)
    if record.get("format") != RELEASE_FORMAT:
        raise StorageError(f"{RECORD} is not the record of a release")
    return record


def _note(answers: object, queries: int) -> str | None:
    """Return why there are no answers, at the limit that is said; nothing where no such limit is."""
    said = answers.get("note") if isinstance(answers, dict) else None
    limit = re.search(r"limit of (\d{1,18})", said, re.ASCII) if isinstance(said, str) else None
    return None if limit is None or int(limit[1]) >= queries else too_many(queries, int(limit[1]))


def _digests(folder: Path) -> dict[str, dict[str, object]]:
    """Return the size and digest of every file that a record lists, or that ought not to be there."""
    found: dict[str, dict[str, object]] = {}
    for name in sorted((*LISTED, *MARKS)):
        path = folder / name
        if path.is_file():
            found[name] = entry(path)
    return found


def _listed(actual: Mapping[str, object]) -> str:
    return f"{', '.join(actual)}: as listed"


def _wrong_files(listed: object, actual: Mapping[str, object]) -> Iterator[str]:
    if not isinstance(listed, dict):
        yield f"{RECORD} lists no files"
        return
    for name in sorted({*listed, *actual}):
        if name not in actual:
            yield f"{name} is listed and not there"
        elif name not in listed:
            yield f"{name} is there and not listed"
        elif listed[name] != actual[name]:
            yield f"{name} has another digest or size than is listed"


def _others(folder: Path) -> Iterator[Finding]:
    others = sorted({path.name for path in folder.iterdir()} - set(RELEASE_FILES))
    if others:
        yield Finding("files", "not checked", f"no part of the release: {', '.join(others)}")


def _cost(measurement: Measurement) -> Iterator[Finding]:
    """Recompute the cost: exact sensitivities over exact scales, summed as fractions."""
    authorization = measurement.authorization
    measured = measurement.plan, measurement.scales, measurement.out_of_domain_counts
    cost = measured_cost(*measured, authorization.budget.neighbours)
    allowed = cost.noise.cost(authorization.budget)
    problems = []
    # earlier versions charged a replacement what removing two records costs
    if authorization.cost not in (cost, measured_cost(*measured)):
        problems.append(f"recomputed it is {cost.value}; {authorization.cost.value} was authorized")
    if not cost <= allowed:
        problems.append(f"it is above {allowed.value}, which is what {authorization.budget!r} allows")
    share = float(cost.value / allowed.value)
    words = (
        f"recomputed exactly from the matrices and scales: about {float(cost.value):.6g}, as authorized, and "
        f"{share:.6%} of what {authorization.budget!r} allows"
    )
    yield from settled("cost", words, problems)


def _origin_of_noise(private: bool) -> str:
    return "said everywhere to be private" if private else "SEEDED, NOT PRIVATE, and said so everywhere"


def _flags(record: Mapping[str, Any], private: bool) -> Iterator[str]:
    said = record.get("privacy")
    for name, holder in (("private", record), ("privacy.private", said if isinstance(said, dict) else {})):
        if holder.get("private") is not private:
            yield f"{name} is not {str(private).lower()}, which the measurement says"
    if ("warning" in record) is private:
        yield f"the warning of seeded noise is {'there' if private else 'missing'}"
