"""Releases of measurements that runs which were stopped had written whole, at no further cost."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from matrixdp.errors import SpecificationError, StorageError
from matrixdp.locks import Lock
from matrixdp.measure import Measurement
from matrixdp.release.leftovers import (
    MEASUREMENT,
    REQUEST,
    RUNNING,
    SPENT,
    is_release,
    remove_release,
    target_of,
    unfinished,
    unmark,
)
from matrixdp.release.origin import checked_origin
from matrixdp.release.release import Release
from matrixdp.release.staging import staged_folder
from matrixdp.release.writing import MAX_ANSWERS, Progress, complete_release
from matrixdp.storage.saving import load_measurement

__all__ = ["adopt", "digest", "recover_release"]


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
