"""The transaction that protects a budget: a release is made step by step, and a stop costs no privacy twice.

1. refused: an earlier run that was stopped after it spent its budget must be recovered or removed first.
2. staged: a hidden folder beside the place of the release is made, and locked by the process.
3. debited: the ledger, where there is one, holds the cost before any record is counted.
4. spent: the table is counted; `spent.txt` says which budget is spent, durably, before any noise is drawn.
5. measured: noise is drawn, and `measurement.mdp` is whole; the ledger holds its digest.
6. written: the answers and the record stand beside it.
7. released: the folder takes its place in one step, and the ledger says so.

A publication of a series was debited when the series began. In 4 it claims its period instead. The ledger
holds the digest of what was published last: one step compares it and replaces it by that of `spent.txt`,
and 5 replaces that by the digest of the new measurement. So no copy of the folder draws noise meanwhile.
After a stop before 5 the next run withdraws the claim and begins anew; after 5 recovery goes on. A folder
that is replaced is locked itself, whatever its name becomes.

A stop before 3 leaves nothing. After 5 recovery goes on with 6, at no further cost. In between there is no
measurement to recover: the debit is abandoned, and counts. Between 3 and 4 no noise was drawn, so a new run
is not refused; it debits the ledger once more. No step ever takes a cost back.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, final

from matrixdp.errors import MatrixDPError, SafeNote, StorageError
from matrixdp.ledger import Entry, Ledger
from matrixdp.ledger.database import clear_ended, running_path
from matrixdp.locks import Lock, folder_lock, whole_path
from matrixdp.measure.measurement import Measurement
from matrixdp.measure.workers import Workers
from matrixdp.privacy import Budget
from matrixdp.queries.workload import MAX_ANSWERS
from matrixdp.releases.files import Progress, complete_release
from matrixdp.releases.record import (
    ANSWERS_FOLDER,
    FOUND,
    MARKS,
    MEASUREMENT,
    RECORD,
    RELEASE_FILES,
    RELEASE_FORMAT,
    REQUEST,
    RUNNING,
    SERIES,
    SERIES_RECORD,
    SPENT,
    may_list,
    parts_in,
)
from matrixdp.releases.schema import Request, checked_origin
from matrixdp.releases.signatures import SigningKey
from matrixdp.storage.archive import (
    OR_FORCE,
    digest,
    replaces_folder,
    sync_files,
    sync_folder,
    temporary_name,
    write_durably,
)
from matrixdp.storage.formats import load_measurement, save_measurement
from matrixdp.texts import Publication

if TYPE_CHECKING:
    from matrixdp.releases.release import Release

UNFINISHED, REPLACED = "unfinished", "replaced"
_NAME = re.compile(rf"\.(.+)\.([0-9a-f]+)-[0-9a-f]+\.({UNFINISHED}|{REPLACED})", re.DOTALL)
_WORKING_FOLDER = -100
_EXCHANGE = 2


@final
@dataclass
class Transaction:
    """One release on its way into its folder; `transaction` begins and ends it.

    Attributes
    ----------
    folder : Path
        The hidden folder that takes the place of the release at the end.
    """

    folder: Path
    _spent: str = ""
    _written: Release | None = None

    def spend(
        self, budget: Budget, ledger: Ledger | None = None, entry: str | None = None, after: str | None = None
    ) -> None:
        """Mark a budget as spent, and where it was debited, durably: before any noise is drawn.

        Of a series, `entry` is its debit and `after` the measurement that the publication goes on from. The
        ledger then holds the digest of the mark, which nobody else's publication follows.
        """
        if (self.folder / SPENT).exists():
            return
        debited = "" if ledger is None else f"{json.dumps(str(ledger.path))}\n"
        claim = "" if entry is None else f"{json.dumps([after, str(self.folder)])}\n"
        write_durably(self.folder / SPENT, f"{budget.words}\n{debited}{claim}".encode())
        try:
            sync_folder(self.folder.parent)
            if ledger is not None and entry is not None:
                ledger.advance(entry, "measured", digest(self.folder / SPENT), after=after)
        except BaseException as error:
            # no noise was drawn; what the ledger may hold stays, to be withdrawn
            if entry is None or getattr(error, "code", None) == "already-spent":
                (self.folder / SPENT).unlink(missing_ok=True)
            raise
        self._spent = budget.words

    def check_space(self, needed: int) -> None:
        """Reject a disk on which a measurement does not fit, while that costs nothing."""
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            found = f"{self.folder.parent}: found {free:,} bytes free; expected at least {needed:,}"
            raise StorageError(f"{found}, which the measurement takes", "no-place")

    def _keep(self, *names: str) -> None:
        for path in self.folder.iterdir():
            if path.name not in names and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name not in names:
                path.unlink(missing_ok=True)

    def clear(self, target: Path, keep: bool) -> str | None:
        """Remove the folder after a failure; say what became of a budget that was spent for it."""
        marked = [folder for folder in (self.folder, target) if (folder / SPENT).exists()]
        if marked and marked[0] == self.folder and keep and (self.folder / MEASUREMENT).exists():
            self._keep(MEASUREMENT, SPENT, REQUEST)
            budget, command = _spent_for(self.folder)
            return (
                f"The budget was spent: {budget}. The measurement is whole: {self.folder / MEASUREMENT}. "
                f"`matrixdp {command}` makes a release of it, at no further cost"
            )
        # the mark may have gone with the folder: who called may have removed it
        budget = _spent_for(marked[0])[0] if marked else self._spent
        if claim_of(self.folder)[0] is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:  # the ledger may hold the mark
            self._keep(SPENT)
        if not marked and not self._spent:
            return None
        whole = bool(marked) and marked[0] == target
        if not whole and is_series(target):
            return "Nothing of this publication was kept, and nothing further was spent: publish again"
        left = f"The release is whole in {target}" if whole else "No measurement was kept"
        return f"The budget was spent: {budget}. {left}"

    def write(
        self,
        release: Release,
        csv: bool = False,
        max_answers: int = MAX_ANSWERS,
        key: SigningKey | None = None,
        progress: Progress | None = None,
        workers: Workers | None = None,
    ) -> None:
        """Write the measurement first, so that it can be recovered, and then what follows from it."""
        release = release.in_language(None)
        reservation = release.measurement.reservation
        if release.private:
            budget = release.measurement.authorization.budget
            self.spend(budget, None if reservation is None else reservation.ledger)
        if reservation is not None and reservation.run is not None:
            reservation.run.writes_to(self.folder)
        asked = Request(
            confidence=release.confidence, csv=csv, max_answers=max_answers,
            origin=dict(release.origin), expect=release.expect, publication=release.publication.to_spec(),
        )  # fmt: skip
        (self.folder / REQUEST).write_text(asked.model_dump_json(), encoding="utf-8")
        path = self.folder / MEASUREMENT
        save_measurement(path, release.measurement, release.workload)
        if reservation is not None:
            reservation.measured(str(digest(path)))
        complete_release(release, self.folder, asked, key, progress, workers)
        self._written = release

    def released(self, out: Path) -> None:
        """Let the ledger, if any, say that the release is in its place."""
        reservation = None if self._written is None else self._written.measurement.reservation
        if reservation is None:
            return
        try:
            reservation.released(str(digest(out / MEASUREMENT)))
        except BaseException as error:
            error.add_note(SafeNote(f"{reservation.note}. The release is whole in {out}"))
            raise


def save_release(
    release: Release,
    out: str | os.PathLike[str],
    *,
    csv: bool = False,
    max_answers: int = MAX_ANSWERS,
    force: bool = False,
    key: SigningKey | None = None,
    progress: Progress | None = None,
    workers: Workers | None = None,
) -> Path:
    """Write a release that was measured before as a folder that appears whole or not at all.

    This begins after the budget was spent. If the program stops between `Strategy.measure` and this, the
    measurement is lost and its budget counts; a second run is not stopped from spending again; and without a
    ledger nothing says that a budget was spent. `matrixdp.release` protects against all three.

    Parameters
    ----------
    release : Release
        The release.
    out : str or path
        The folder. It must not exist, or be empty, or, with `force`, hold an earlier release.
    csv : bool
        Whether to write the answers as CSV too.
    max_answers : int
        Above this many queries only the measurement is written, which `load_release` answers from.
    force : bool
        Whether to replace an earlier release.
    key : SigningKey, optional
        Signs the release, as the last step before the folder takes its place; see `check_signature`.
    progress : callable, optional
        Is called with the number of answers written and the number of all.

    workers : Workers, optional
        Write many answers at levels of areas, in processes that see the folder.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    StorageError
        If `out` holds something else, or cannot be written.
    UnsupportedQueryError
        If the measurement does not determine a query of the workload.

    Examples
    --------
    >>> import tempfile
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = save_release(release, f"{parent}/out")
    ...     print(sorted(path.name for path in folder.iterdir()))
    ...     mdp.load_release(folder).answers.equals(release.answers)
    ['answers.parquet', 'measurement.mdp', 'release.json']
    True
    """
    with transaction(out, force=force, keep=False) as run:
        run.write(release, csv=csv, max_answers=max_answers, key=key, progress=progress, workers=workers)
    return Path(out)


# Staged: a folder that appears whole or not at all.


@contextmanager
def transaction(
    out: str | os.PathLike[str],
    *,
    force: bool = False,
    keep: bool = True,
    spends: str | None = None,
    file: str | None = None,
) -> Iterator[Transaction]:
    """Begin the transaction of a release in a folder beside `out`, which takes its place when all went well.

    If anything fails, the folder is removed and `out` is as it was. It must not exist, or be empty, or, with
    `force`, hold a release: nothing else is ever replaced. With `keep` it is refused where an earlier run
    left a spent budget; a measurement that is whole stays to be recovered when something fails after it, and
    the error has a note that says what was spent and where it is. Without it the caller has the measurement,
    and can write it again. `spends` is the budget that a message names where `out` holds an earlier release.
    `file` is the one file of the folder that takes the place in its stead.

    Raises
    ------
    StorageError
        If `out` holds something, or its parent cannot be written to. Before anything is written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with transaction(f"{parent}/out") as run:
    ...         written = (run.folder / "release.json").write_text("{}")
    ...     sorted(path.name for path in Path(parent, "out").iterdir())
    ['release.json']
    """
    try:
        if keep:
            refuse_to_spend_again(out)
        target = whole_path(out)
        settle(target)
        replaces = file is None and _check(target, force, spends)
        _check_file(target, file, force)
        partial = temporary_name(target, UNFINISHED)
        missing = [one for one in target.parents if not one.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        for made in missing:
            sync_folder(made.parent)  # so that a mark in it survives the loss of power
        partial.mkdir()
    except (OSError, ValueError) as error:
        raise StorageError.unwritable(out, error) from None
    run = Transaction(partial)
    held = contextlib.ExitStack()
    try:
        held.enter_context(Lock(partial / RUNNING))
        held.enter_context(folder_lock(target))
        _try_names(partial)
        if keep:
            _refuse_another_run(target, partial)
        yield run
        sync_files(partial)
        sync_folder(partial)
        if file is not None:
            (partial / file).replace(target)
            sync_folder(target.parent)
            remove_release(partial)
            return
        _check(target, force)
        if replaces:
            _replace(partial, target)
        else:
            partial.replace(target)
        sync_folder(target.parent)
        # only now, so that a folder elsewhere that has it was never put in its place
        unmark(target)
    except BaseException as error:
        # who leaves by sys.exit shows no note: the mark stays, as after a kill, and stops the next run
        unseen = keep and isinstance(error, SystemExit) and (partial / SPENT).exists()
        told = None if unseen else run.clear(target, keep)
        if keep and told is not None:
            error.add_note(SafeNote(told))
        raise
    finally:
        held.close()
    run.released(target)


def _try_names(folder: Path) -> None:
    """Make a file of the longest name that a release needs, and remove it."""
    longest = temporary_name(folder / MEASUREMENT, "partial")
    try:
        longest.touch()
        longest.unlink()
    except OSError as error:
        raise StorageError.unwritable(folder, error) from None


def _refuse_another_run(target: Path, own: Path) -> None:
    """Refuse to spend a budget beside a run for the same folder that still goes on."""
    for path, _ in _named_for(target, UNFINISHED):
        if path != own and Lock.is_held(path / RUNNING):
            raise StorageError(f"{target}: another run is writing there", "already-spent")


def _replace(partial: Path, target: Path) -> None:
    if _exchange(partial, target):
        sync_folder(target.parent)
        remove_release(partial)
        return
    old = temporary_name(target, REPLACED)
    target.replace(old)
    try:
        partial.replace(target)
    except BaseException:
        if not target.exists():
            old.replace(target)
        raise
    sync_folder(target.parent)
    remove_release(old)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; return False, having done nothing, where that cannot be."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    places = _WORKING_FOLDER, os.fsencode(one), _WORKING_FOLDER, os.fsencode(other)
    return bool(rename(*places, _EXCHANGE) == 0)


def _check_file(target: Path, file: str | None, force: bool) -> None:
    """Refuse to replace a file without being told to, or a folder."""
    if file is not None and os.path.lexists(target) and not (force and target.is_file()):
        expected = OR_FORCE if target.is_file() else "expected a file"
        raise StorageError(
            f"{target}: found {'a file' if target.is_file() else 'a folder'}; {expected}", "file-exists"
        )


def _check(target: Path, force: bool, spends: str | None = None) -> bool:
    """Return whether a release would be replaced; refuse to touch anything else."""
    for parent in target.parents:
        if is_release(parent) or is_series(parent):
            found = f"{target}: found the release in {parent} around it; expected a folder outside of it"
            raise StorageError(found, "conflict")
    again = None
    if spends is not None:
        again = (
            f"running again spends another {spends}, and replacing the old release does not refund its "
            f"budget. `matrixdp answer {shlex.quote(str(target))} QUERY` answers further queries of it at no "
            f"further cost. To spend all the same, {OR_FORCE}"
        )

    def is_one(folder: Path) -> bool:
        known = is_release(folder) or is_series(folder)
        whole = {path.name for path in folder.iterdir()} <= set(RELEASE_FILES)
        return known and whole and all(map(may_list, parts_in(folder)))

    return replaces_folder(target, "release", is_one, force, again)


# Spent: what says so, and what a run that was stopped left. It is told apart, and never served.


def target_of(folder: Path) -> Path | None:
    """Return where an unfinished folder was to take its place; None for any other."""
    match = _NAME.fullmatch(folder.name)
    return folder.with_name(match[1]) if match is not None and match[3] == UNFINISHED else None


def unfinished(target: Path) -> list[Path]:
    """Return the folders beside a target for which a budget was spent."""
    return [folder for folder, _ in _named_for(target, UNFINISHED) if (folder / SPENT).exists()]


def refuse_leftover(folder: Path) -> None:
    """Refuse the folder of a release that was not put in its place, and say what happened."""
    try:
        place = Path(os.path.realpath(folder))
    except ValueError:
        return  # no path: whoever reads it says so
    match = _NAME.fullmatch(place.name)
    if match is None:
        return
    target = place.with_name(match[1])
    if match[3] == REPLACED:
        raise StorageError(
            f"{folder}: found an earlier release, put aside while another took its place in {target}; the "
            f"next `matrixdp release --out {shlex.quote(str(target))}` puts it back where nothing is there, "
            "or else removes it"
        )
    raise StorageError(
        f"{folder}: found what is left of a release that was stopped before its folder took its place in "
        f"{target}; it is not served. {_told(place)}"
    )


def refuse_to_spend_again(out: str | os.PathLike[str]) -> None:
    """Refuse to spend a budget where an earlier run was stopped after it had spent one.

    Raises
    ------
    StorageError
        If such a run left something beside `out`.
    """
    for folder in unfinished(whole_path(out)):
        raise StorageError(
            f"{out}: found {folder}, of a run that was stopped or still goes on. {_told(folder)} "
            "To spend a budget once more, remove that folder",
            "already-spent",
        )


def check_place(out: str | os.PathLike[str], spends: str) -> None:
    """Refuse what `transaction` refuses of a place for a new release, before anything is written."""
    refuse_to_spend_again(out)
    target = whole_path(out)
    _check(target, False, spends)
    _refuse_another_run(target, target)


def settle(target: Path) -> None:
    """Put back, or remove, what runs that were killed left of releases that they were replacing.

    What a budget was spent for stays.
    """
    for old in _beside(target, REPLACED):
        if target.exists() or target.is_symlink() or not (is_release(old) or is_series(old)):
            remove_release(old)
        else:
            old.replace(target)
            sync_folder(target.parent)
    for folder in _beside(target, UNFINISHED):
        if not (folder / SPENT).exists():
            remove_release(folder)
    if is_release(target):
        unmark(target)


def unmark(folder: Path) -> None:
    """Remove from a folder in its place what says that it was not."""
    for name in MARKS:
        (folder / name).unlink(missing_ok=True)


def remove_release(folder: Path) -> None:
    """Remove the files of a release, and its folder if nothing else is in it."""
    for path in folder.glob(f".{MEASUREMENT}.*.partial"):
        path.unlink(missing_ok=True)
    answers = folder / ANSWERS_FOLDER
    for name in (*RELEASE_FILES, FOUND, *filter(may_list, parts_in(folder))):
        if folder / name != answers:
            (folder / name).unlink(missing_ok=True)
    for made in (*answers.glob("*"), answers, folder):
        with contextlib.suppress(OSError):
            made.rmdir()


def is_release(folder: Path) -> bool:
    """Return whether a folder holds the record of a release."""
    try:
        return bool(json.loads(_held(folder / RECORD))["format"] == RELEASE_FORMAT)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


def is_series(folder: Path) -> bool:
    """Return whether a folder holds a series, published or not."""
    return (folder / SERIES).is_file() and (folder / SERIES_RECORD).is_file()


def _beside(target: Path, kind: str) -> Iterator[Path]:
    """Yield the folders of a kind beside a target whose process has ended, or that had spent a budget."""
    for path, process in _named_for(target, kind):
        if (path / SPENT).exists() or not _runs(path, process):
            yield path


def _named_for(target: Path, kind: str) -> Iterator[tuple[Path, int]]:
    """Yield the folders of a kind beside a target, each with the number of the process that made it."""
    if not target.parent.is_dir():
        return
    for path in sorted(target.parent.iterdir()):
        match = _NAME.fullmatch(path.name)
        if match is None or match[1] != target.name or match[3] != kind:
            continue
        # what a link leads to is nobody's leftover
        if not path.is_symlink() and path.is_dir():
            yield path, int(match[2], 16)


def _runs(folder: Path, process: int) -> bool:
    """Return whether the process that fills a folder runs; its number is asked for where it has no lock."""
    if (folder / RUNNING).exists():
        return Lock.is_held(folder / RUNNING)
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _mark_of(folder: Path) -> tuple[str, str | None]:
    """Return what was spent for an unfinished folder, and the ledger that was debited, if any.

    Raises
    ------
    OSError, ValueError
        If nothing of use says so.
    """
    budget, *debited = _held(folder / SPENT).decode("utf-8").splitlines()
    ledger = json.loads(debited[0]) if debited else None
    if not isinstance(ledger, str | None):
        raise ValueError("no path")
    return budget, ledger


def _spent_for(folder: Path) -> tuple[str, str]:
    """Return what was spent for what is in an unfinished folder, and the command that recovers it."""
    budget, ledger = "A budget", None
    with contextlib.suppress(OSError, ValueError, RecursionError):
        budget, ledger = _mark_of(folder)
    place = str(target_of(folder)) if ledger is None else ledger
    return budget, f"{'recover' if ledger is None else 'ledger recover'} {shlex.quote(place)}"


def claim_of(folder: Path) -> tuple[str | None, str | None]:
    """Return what the ledger holds while an unfinished publication has its period, and held before."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        mark = _held(folder / SPENT)
        return hashlib.sha256(mark).hexdigest(), json.loads(mark.splitlines()[2])[0]
    return None, None


def withdraw(folder: Path, ledger: Ledger, entry: str) -> None:
    """Remove a publication that was stopped before its measurement was whole; its period is free again."""
    claim, after = claim_of(folder)
    if claim is not None and ledger.entry(entry).measurement == claim:
        ledger.advance(entry, "measured", after, after=claim)
    remove_release(folder)


def _spent_elsewhere(folder: Path, ledger: Path) -> bool:
    """Return whether what was spent for what is in an unfinished folder was not debited to a ledger."""
    try:
        debited = _mark_of(folder)[1]
        return debited is None or os.path.realpath(debited) != os.path.realpath(ledger)
    except (OSError, ValueError, RecursionError):
        return False


def _held(path: Path) -> bytes:
    """Return what a file holds; what is no file, a pipe say, is not waited for."""
    if not path.is_file():
        raise FileNotFoundError(path)
    return path.read_bytes()


def _told(folder: Path) -> str:
    """Say what was spent for what is in an unfinished folder."""
    if not (folder / SPENT).exists():
        return "No budget was spent for it."
    budget, command = _spent_for(folder)
    spent = f"{budget} was spent for it, and counts"
    if (folder / MEASUREMENT).exists():
        whole = f"{spent}; the measurement is whole: {folder / MEASUREMENT}"
        return f"{whole}. `matrixdp {command}` makes a release of it, at no further cost."
    return f"{spent}; no measurement was kept."


# Recovered: a measurement that was written whole becomes the release that it was for.


def recover_release(
    out: str | os.PathLike[str], *, force: bool = False, progress: Progress | None = None
) -> Path:
    """Make a release of the measurement that a run wrote whole before it was stopped.

    Nothing is spent for it: the run had spent its budget, and the table is not read again. The answers are
    written as that run would have written them. If this is stopped itself, it can be called again.

    Parameters
    ----------
    out : str or path
        Where the release was to be, or the hidden folder beside it that the run left.
    force : bool
        Whether to replace an earlier release.
    progress : callable, optional
        Is called with the number of answers written and the number of all.

    Returns
    -------
    Path
        The folder of the release.

    Raises
    ------
    StorageError
        If there is no such measurement, it is damaged, or its run still goes on; if it belongs to a ledger,
        which recovers it; or if there is something else where the release was to be.
    """
    place = whole_path(out)
    target = target_of(place)
    folders = unfinished(place) if target is None else [place]
    whole = [folder for folder in folders if (folder / MEASUREMENT).exists()]
    if len(whole) != 1:
        found = "several: name one of them" if whole else "none, so there is nothing to recover"
        raise StorageError(
            f"{out}: looked for a measurement that a release left unfinished; found {found}",
            None if whole else "file-missing",
        )
    (folder,) = whole
    try:
        lock = Lock(folder / RUNNING)
    except StorageError:
        raise StorageError(f"{folder}: its release still runs; nothing was changed") from None
    with lock:
        return adopt(folder, target or place, _without_ledger, force, progress)


def _without_ledger(path: Path, measurement: Measurement) -> None:
    debited = measurement.authorization.ledger
    if debited is not None:
        raise StorageError(
            f"{path.name}: found entry {debited.entry} of the ledger of {debited.dataset}; expected none: "
            "`matrixdp ledger recover LEDGER` recovers what a ledger was debited for"
        )


def adopt(
    folder: Path,
    target: Path,
    check: Callable[[Path, Measurement], None],
    force: bool,
    progress: Progress | None,
) -> Path:
    """Put a release of the measurement in an unfinished folder where it was to be, and remove that folder.

    `check` is called with a measurement that is whole, and its file, before it is put anywhere. A release of
    the same measurement that is there already is left as it is.
    """
    from matrixdp.releases.release import Release

    asked = _request(folder / REQUEST)
    if is_release(target) and digest(target / MEASUREMENT) == digest(folder / MEASUREMENT):
        check(target / MEASUREMENT, load_measurement(target / MEASUREMENT)[0])
        unmark(target)
    else:
        force |= is_series(target)  # `check` says whether it goes on from there
        with transaction(target, force=force, keep=False) as run:
            # what is checked is what is published
            staged = run.folder
            shutil.copyfile(folder / MEASUREMENT, staged / MEASUREMENT)
            measurement, workload = load_measurement(staged / MEASUREMENT)
            if measurement.periods is not None:
                check_follows(measurement, target)
                copy_series(target, staged)
            check(staged / MEASUREMENT, measurement)
            told = Publication.read(asked.publication)
            release = Release(
                measurement, workload, asked.confidence, asked.origin, asked.expect, publication=told
            )
            complete_release(release, staged, asked, None, progress)
    (folder / SPENT).unlink(missing_ok=True)  # first, so that what a kill leaves is in nobody's way
    remove_release(folder)
    return target


# Series: a publication follows the one before it, and goes on from the same beginning.


def copy_series(folder: Path, staged: Path) -> None:
    """Copy what every publication of a series has in common."""
    for name in (SERIES, SERIES_RECORD):
        shutil.copyfile(folder / name, staged / name)


def last_measured(folder: Path) -> Path:
    """Return the file of what was measured last of a series: of nothing, if it was only begun."""
    return folder / (MEASUREMENT if (folder / MEASUREMENT).exists() else SERIES)


def check_follows(measurement: Measurement, folder: Path) -> None:
    """Reject a measurement that is not what comes next in the series of a folder."""
    periods = measurement.periods
    known = load_measurement(last_measured(folder))[0] if is_series(folder) else None
    if periods is None or known is None or not measurement.continues(known):
        raise StorageError(
            f"{folder}: found a publication that does not follow what is there", "damaged-file"
        )


def _request(path: Path) -> Request:
    """Return what was asked for beside a measurement; what is usual where that was not kept."""
    try:
        asked = Request.model_validate_json(_held(path), strict=True)
        checked_origin(asked.origin)
        Publication.read(asked.publication)
    except (OSError, ValueError):
        return Request(max_answers=MAX_ANSWERS)
    return asked


# What becomes of the entries of a ledger whose runs were stopped: released, or abandoned.


_RUNS = "its run still goes on, and was left alone"


@final
@dataclass(frozen=True)
class Recovered:
    """What was done about one entry of a ledger.

    Attributes
    ----------
    entry : str
        The name of the entry.
    state : {"reserved", "measured", "released", "abandoned"}
        Its state now; its cost counts in every state.
    settled : bool
        Whether nothing more is to be done: it is released or abandoned.
    says : str
        What was done, in words.
    """

    entry: str
    state: str
    settled: bool
    says: str


def recover_ledger(
    ledger: Ledger | str | os.PathLike[str], *, force: bool = False, progress: Progress | None = None
) -> tuple[Recovered, ...]:
    """Settle every entry of a ledger whose run has ended without saying what became of it.

    A measurement that such a run had written whole, and that is this entry's to the last digit, becomes the
    release that it was for, at no further cost: the table is not read. What else the run left is removed,
    and the entry is abandoned: its budget counts as spent. Runs that still go on are left alone. No cost is
    ever taken back. If this is stopped itself, it can be called again.

    Parameters
    ----------
    ledger : Ledger or path
        The ledger.
    force : bool
        Whether to replace earlier releases that are where a release was to be.
    progress : callable, optional
        Is called with the number of answers written and the number of all, for each release.

    Returns
    -------
    tuple of Recovered
        What was done about each entry that was reserved or measured, in their order.

    Raises
    ------
    StorageError
        If the ledger cannot be read or written.

    Examples
    --------
    >>> import tempfile
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = mdp.Ledger.create(f"{folder}/health.ledger", "health", mdp.Budget(rho=1))
    ...     measured = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5), ledger=ledger)
    ...     running = mdp.recover_ledger(ledger)
    ...     del measured
    ...     ended = mdp.recover_ledger(ledger)
    >>> [one.state for one in running], [one.state for one in ended]
    (['reserved'], ['abandoned'])
    """
    ledger = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    waiting = [entry for entry in ledger.entries if entry.state in ("reserved", "measured")]
    done = tuple(_recover(ledger, entry, force, progress) for entry in waiting)
    clear_ended(ledger.path, {one.entry for one in done if not one.settled})
    return done


def _recover(ledger: Ledger, entry: Entry, force: bool, progress: Progress | None) -> Recovered:
    try:
        lock = Lock(running_path(ledger.path, entry.id))
    except StorageError:
        return Recovered(entry.id, entry.state, False, _RUNS)
    with lock:
        entry = ledger.entry(entry.id)  # another recovery may have been faster
        if entry.state not in ("reserved", "measured"):
            done = Recovered(entry.id, entry.state, True, "was settled meanwhile")
        else:
            try:
                done = _Recovery(ledger, entry, force, progress).settle(lock.read())
            except OSError as error:  # what is in the way of one entry is in that of no other
                says = f"what its run left cannot be settled: {error.filename}: {error.strerror}"
                done = Recovered(entry.id, entry.state, False, says)
        if done.settled:
            lock.remove()
    return done


@final
@dataclass(frozen=True)
class _Recovery:
    """The recovery of one entry, whose run has ended."""

    ledger: Ledger
    entry: Entry
    force: bool
    progress: Progress | None

    def settle(self, noted: str) -> Recovered:
        """Release what was measured, or remove what was left; `noted` is where the run was writing."""
        places = [] if self.entry.release is None else [Path(self.entry.release)]
        folders = unfinished(places[0]) if places else []
        target = target_of(Path(noted))
        if target is not None:
            places.append(target)
            folders.append(Path(noted))
        removed, held = 0, self.entry.measurement
        for folder in dict.fromkeys(folders):
            claim = claim_of(folder)[0]
            claims = claim is not None and claim == held
            running = Lock.is_held(folder / RUNNING)
            if claim is not None and running:
                return Recovered(self.entry.id, self.entry.state, False, _RUNS)
            if running or not folder.is_dir() or folder.is_symlink():
                continue
            try:
                measurement = load_measurement(folder / MEASUREMENT)[0]
            except StorageError:
                measurement = None
            if not self._names(measurement) if measurement else _spent_elsewhere(folder, self.ledger.path):
                continue  # what belongs to another run stays
            place = target_of(folder)
            if measurement and place and self._owns(folder / MEASUREMENT, measurement, claim):
                return self._adopt(folder, place, claim)
            withdraw(folder, self.ledger, self.entry.id)
            if claims:
                return replace(self, entry=self.ledger.entry(self.entry.id)).settle(noted)
            removed += 1
        for place in dict.fromkeys(places):
            if is_series(place) and self._goes_on(place):
                return self._done(self.entry.state, f"its series goes on in {place}")
            if is_release(place) and self._in_place(place):
                return self._done("released", f"its release was complete in {place}")
        self.ledger.advance(self.entry.id, "abandoned", held)
        left = "what its run had left was removed" if removed else "its run had left nothing"
        return self._done("abandoned", f"no measurement of it is whole; {left}; its budget counts as spent")

    def _done(self, state: str, says: str) -> Recovered:
        return Recovered(self.entry.id, state, True, says)

    def _adopt(self, folder: Path, place: Path, claim: str | None) -> Recovered:
        try:
            with Lock(folder / RUNNING):
                check = partial(self._claim, claim=claim)
                adopt(folder, place, check, self.force, self.progress)
        except (MatrixDPError, OSError) as error:
            state = self.ledger.entry(self.entry.id).state
            says = f"its measurement is whole in {folder}, and no release was made of it: {error}"
            return Recovered(self.entry.id, state, False, says)
        if not load_measurement(place / MEASUREMENT)[0].whole:
            return self._done("measured", f"its measurement was whole: it is now published in {place}")
        self._release(place)
        return self._done("released", f"its measurement was whole: the release is now complete in {place}")

    def _goes_on(self, place: Path) -> bool:
        """Return whether a series of this entry has periods left."""
        path = last_measured(place)
        try:
            measurement = load_measurement(path)[0]
        except StorageError:
            return False
        return self._owns(path, measurement) and not measurement.whole

    def _in_place(self, place: Path) -> bool:
        """Return whether the release of this entry is in a place; then it says so in the ledger."""
        from matrixdp.releases.release import load_release

        try:
            measurement = load_release(place).measurement
        except StorageError:
            return False
        if not (measurement.whole and self._owns(place / MEASUREMENT, measurement)):
            return False
        self._claim(place / MEASUREMENT, measurement)
        settle(place)  # what a recovery that was stopped had not removed yet
        self._release(place)
        return True

    def _release(self, place: Path) -> None:
        self.ledger.advance(self.entry.id, "released", digest(place / MEASUREMENT))

    def _claim(self, path: Path, measurement: Measurement, claim: str | None = None) -> None:
        """Let the ledger say that a measurement is the one of this entry, before it is put in its place."""
        if not self._owns(path, measurement, claim):
            raise StorageError(f"{path}: found another measurement than that of the entry {self.entry.id}")
        self.ledger.advance(self.entry.id, "measured", digest(path), after=self.entry.measurement)

    def _names(self, measurement: Measurement) -> bool:
        """Return whether a measurement says that it is of this entry."""
        named = measurement.authorization.ledger
        return named is not None and named.entry == self.entry.id

    def _owns(self, path: Path, measurement: Measurement, claim: str | None = None) -> bool:
        """Return whether this is the measurement of the entry: what was debited, with its noise.

        The entry may hold the `claim` of the publication, which is the mark beside it.
        """
        record, place = measurement.authorization, target_of(path.parent)
        digests = [None, digest(path), claim]
        if measurement.periods is not None and place is not None and is_series(place):
            digests.append(digest(last_measured(place)))  # what it goes on from
        return (
            self._names(measurement)
            and measurement.private
            and record.ledger is not None
            and record.ledger.digest == self.entry.digest
            and (record.cost, record.budget) == (self.entry.cost, self.entry.budget)
            and self.entry.measurement in digests
        )
