"""Releases of measurements that runs which were stopped had written whole, at no further cost."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, final

from matrixdp.errors import MatrixDPError, SignatureError, SpecificationError, StorageError
from matrixdp.ledger import Entry, Ledger
from matrixdp.ledger.database import clear_ended, running_path
from matrixdp.locks import Lock
from matrixdp.measure.measurement import Measurement
from matrixdp.releases.files import MAX_ANSWERS, Progress, complete_release, staged_folder
from matrixdp.releases.record import (
    MEASUREMENT,
    RECORD,
    REQUEST,
    RUNNING,
    SIGNATURE,
    SPENT,
    checked_origin,
    is_release,
    remove_release,
    settle,
    spent_elsewhere,
    target_of,
    unfinished,
    unmark,
)
from matrixdp.releases.release import Release, load_release
from matrixdp.releases.signatures import SigningKey, check_files, write_signature
from matrixdp.storage.archive import plain_content
from matrixdp.storage.formats import load_measurement


def recover_release(
    out: str | os.PathLike[str], *, force: bool = False, progress: Progress | None = None
) -> Path:
    """Make a release of the measurement that a run which was stopped had written whole.

    Nothing is spent for it: the run had spent its budget, and the table is not read again. The answers are
    written as that run would have written them. If this is stopped itself, it can be called again.

    Parameters
    ----------
    out : str or path
        Where the release was to be, or the hidden folder beside it that the run left.
    force : bool
        Whether an earlier release may be replaced.
    progress : callable, optional
        Is called with the number of answers written and of all.

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
    place = Path(os.path.abspath(out))  # noqa: PTH100 - keeps symbolic links
    target = target_of(place)
    folders = unfinished(place) if target is None else [place]
    whole = [folder for folder in folders if (folder / MEASUREMENT).exists()]
    if len(whole) != 1:
        found = "several: name one of them" if whole else "none, so there is nothing to recover"
        raise StorageError(f"{out}: looked for a measurement that a release left unfinished; found {found}")
    (folder,) = whole
    with _stopped(folder):
        return adopt(folder, target or place, check=_without_ledger, force=force, progress=progress)


def _without_ledger(path: Path, measurement: Measurement) -> None:
    debited = measurement.authorization.ledger
    if debited is not None:
        raise StorageError(
            f"{path.name}: found entry {debited.entry} of the ledger of {debited.dataset}; expected none: "
            "`matrixdp ledger recover LEDGER` recovers what a ledger was debited for"
        )


def _stopped(folder: Path) -> Lock:
    """Return a lock on an unfinished folder; refuse one whose run goes on."""
    try:
        return Lock(folder / RUNNING)
    except StorageError:
        raise StorageError(f"{folder}: its release still runs; nothing was changed") from None


def adopt(
    folder: Path,
    target: Path,
    *,
    check: Callable[[Path, Measurement], None],
    force: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Put a release of the measurement in an unfinished folder where it was to be, and remove that folder.

    `check` is called with a measurement that is whole, and its file, before it is put anywhere. A release of
    the same measurement that is there already is left as it is.
    """
    asked = _request(folder / REQUEST)
    if is_release(target) and digest(target / MEASUREMENT) == digest(folder / MEASUREMENT):
        check(target / MEASUREMENT, load_measurement(target / MEASUREMENT)[0])
        unmark(target)
    else:
        with staged_folder(target, force=force) as staged:
            # what is checked is what is published
            shutil.copyfile(folder / MEASUREMENT, staged / MEASUREMENT)
            measurement, workload = load_measurement(staged / MEASUREMENT)
            check(staged / MEASUREMENT, measurement)
            release = Release(measurement, workload, asked["confidence"], asked["origin"], asked["expect"])
            complete_release(
                release, staged, csv=asked["csv"], max_answers=asked["max_answers"], progress=progress
            )
    (folder / SPENT).unlink(missing_ok=True)  # first, so that what a kill leaves is in nobody's way
    remove_release(folder)
    return target


def digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None where there is none."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


class _Request(TypedDict):
    confidence: float
    csv: bool
    max_answers: int
    origin: dict[str, Any]
    expect: int | None


def _request(path: Path) -> _Request:
    """Return what was asked for besides a measurement; what is usual where that was not kept."""
    usual = _Request(confidence=0.95, csv=False, max_answers=MAX_ANSWERS, origin={}, expect=None)
    try:
        written = json.loads(path.read_bytes() if path.is_file() else b"")
        asked = _Request(
            confidence=written["confidence"],
            csv=written["csv"],
            max_answers=written["max_answers"],
            origin=checked_origin(written["origin"]),
            expect=written.get("expect"),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SpecificationError):
        return usual
    kinds = {key: type(value) for key, value in asked.items() if key != "expect"}
    expected = asked["expect"] is None or (type(asked["expect"]) is int and asked["expect"] >= 1)
    right = kinds == {"confidence": float, "csv": bool, "max_answers": int, "origin": dict}
    return asked if right and expected and 0 < asked["confidence"] < 1 else usual


# What becomes of the entries of a ledger whose runs were stopped: adopted, or spent by crash.


@final
@dataclass(frozen=True)
class Recovered:
    """What was done about one entry of a ledger.

    Attributes
    ----------
    entry : str
        The name of the entry.
    state : {"reserved", "measured", "released", "spent by crash"}
        Its state now; its cost counts in every state.
    settled : bool
        Whether nothing more is to be done: it is released or spent by crash.
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
    and the entry is spent by crash. Runs that still go on are left alone. Whatever happens, no cost is taken
    back. If this is stopped itself, it can be called again.

    Parameters
    ----------
    ledger : Ledger or path
        The ledger.
    force : bool
        Whether earlier releases that are where a release was to be may be replaced.
    progress : callable, optional
        Is called with the number of answers written and of all, for each release.

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
    (['reserved'], ['spent by crash'])
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
        return Recovered(entry.id, entry.state, False, "its run still goes on, and was left alone")
    with lock:
        # another recovery may have been faster
        (entry,) = (one for one in ledger.entries if one.id == entry.id)
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
        """Release what was measured, or throw away what was left; `noted` is where the run was writing."""
        places = [] if self.entry.release is None else [Path(self.entry.release)]
        folders = unfinished(places[0]) if places else []
        target = target_of(Path(noted))
        if target is not None:
            places.append(target)
            folders.append(Path(noted))
        thrown = 0
        for folder in dict.fromkeys(folders):
            if not folder.is_dir() or folder.is_symlink() or Lock.is_held(folder / RUNNING):
                continue
            try:
                measurement = load_measurement(folder / MEASUREMENT)[0]
            except StorageError:
                measurement = None
            if not self._names(measurement) if measurement else spent_elsewhere(folder, self.ledger.path):
                continue  # what is somebody else's stays
            place = target_of(folder)
            if measurement is None or place is None or not self._owns(folder / MEASUREMENT, measurement):
                remove_release(folder)
                thrown += 1
                continue
            return self._adopt(folder, place)
        for place in dict.fromkeys(places):
            if is_release(place) and self._in_place(place):
                return self._done("released", f"its release was complete in {place}")
        self.ledger.advance(self.entry.id, "spent by crash")
        left = "what its run had left was removed" if thrown else "its run had left nothing"
        return self._done("spent by crash", f"no measurement of it is whole; {left}; its cost counts")

    def _done(self, state: str, says: str) -> Recovered:
        return Recovered(self.entry.id, state, True, says)

    def _adopt(self, folder: Path, place: Path) -> Recovered:
        try:
            with Lock(folder / RUNNING):
                adopt(folder, place, check=self._claim, force=self.force, progress=self.progress)
        except (MatrixDPError, OSError) as error:
            (now,) = (one for one in self.ledger.entries if one.id == self.entry.id)
            says = f"its measurement is whole in {folder}, and no release was made of it: {error}"
            return Recovered(self.entry.id, now.state, False, says)
        self._release(place)
        return self._done("released", f"its measurement was whole: the release is now complete in {place}")

    def _in_place(self, place: Path) -> bool:
        """Return whether the release of this entry is in a place; then it says so in the ledger."""
        try:
            release = load_release(place)
        except StorageError:
            return False
        if not self._names(release.measurement) or not self._owns(place / MEASUREMENT, release.measurement):
            return False
        self._claim(place / MEASUREMENT, release.measurement)
        settle(place)  # what a recovery that was stopped had not removed yet
        self._release(place)
        return True

    def _release(self, place: Path) -> None:
        self.ledger.advance(self.entry.id, "released", digest(place / MEASUREMENT))

    def _claim(self, path: Path, measurement: Measurement) -> None:
        """Let the ledger say that a measurement is the one of this entry, before it is put in its place."""
        if not self._names(measurement) or not self._owns(path, measurement):
            raise StorageError(f"{path}: found another measurement than that of the entry {self.entry.id}")
        self.ledger.advance(self.entry.id, "measured", digest(path))

    def _names(self, measurement: Measurement) -> bool:
        """Return whether a measurement says that it is of this entry."""
        named = measurement.authorization.ledger
        return named is not None and named.entry == self.entry.id

    def _owns(self, path: Path, measurement: Measurement) -> bool:
        """Return whether this is the measurement of the entry: what was debited, with its noise."""
        record = measurement.authorization
        return (
            measurement.private
            and record.ledger is not None
            and record.ledger.digest == self.entry.digest
            and (record.cost, record.budget) == (self.entry.cost, self.entry.budget)
            and self.entry.measurement in (None, digest(path))
        )


# Signing a release that is there already.


def sign_release(
    folder: str | os.PathLike[str], key: SigningKey | str | os.PathLike[str], *, force: bool = False
) -> Path:
    """Sign a release that is there already, after checking that it is whole.

    Its record must say what its measurement is, and every file must be the one that the record lists. What a
    signer vouches for beyond that is the signer's own: see the page on privacy.

    Parameters
    ----------
    folder : str or path
        The folder of the release.
    key : SigningKey or path
        Signs it; a path is that of a private key without a passphrase.
    force : bool
        Whether a signature that is there may be replaced.

    Returns
    -------
    Path
        The file of the signature, ``signature.json`` in the folder.

    Raises
    ------
    StorageError
        If the folder does not hold a whole release.
    SignatureError
        If there is a signature already, or it cannot be written.
    """
    place = Path(folder)
    key = key if isinstance(key, SigningKey) else SigningKey.load(key)
    load_release(place)
    check_files(place, plain_content(place / RECORD))
    path = place / SIGNATURE
    if os.path.lexists(path):
        if not force:
            raise SignatureError(f"{path}: is there already; replace it by force=True, or --force")
        path.unlink()
    return write_signature(place, key)
