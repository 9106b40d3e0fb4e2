"""What a release that was stopped leaves behind: hidden folders that are told apart, and never served."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from matrixdp.errors import StorageError
from matrixdp.locks import Lock
from matrixdp.privacy import Budget
from matrixdp.storage.archive import sync_folder

__all__ = [
    "ANSWERS",
    "ANSWERS_CSV",
    "LISTED",
    "MARKS",
    "MEASUREMENT",
    "RECORD",
    "RELEASE_FILES",
    "RELEASE_FORMAT",
    "REPLACED",
    "REQUEST",
    "RUNNING",
    "SIGNATURE",
    "SPENT",
    "STATISTICS",
    "UNFINISHED",
    "is_release",
    "mark_spent",
    "refuse_leftover",
    "refuse_to_spend_again",
    "remove_release",
    "settle",
    "spent_elsewhere",
    "spent_for",
    "target_of",
    "unfinished",
    "unmark",
]

RELEASE_FORMAT = "matrixdp release"
RECORD = "release.json"
MEASUREMENT = "measurement.mdp"
ANSWERS, ANSWERS_CSV = "answers.parquet", "answers.csv"
#: What follows for the statistics that the workload asks for, where it does.
STATISTICS = "statistics.parquet"
#: Over the record; the last file to be written.
SIGNATURE = "signature.json"
#: The files whose digests the record lists, as far as they are there.
LISTED = (ANSWERS_CSV, ANSWERS, MEASUREMENT, STATISTICS)
#: Says in a folder that is not in its place yet which budget was spent for it.
SPENT = "spent.txt"
#: Says in such a folder what was asked for besides the measurement.
REQUEST = "request.json"
#: Is locked in such a folder by the process that fills it.
RUNNING = "running"
#: What a release has only as long as it is not in its place.
MARKS = (SPENT, REQUEST, RUNNING)
#: The files that a release consists of, the record first; nothing else is ever replaced.
RELEASE_FILES = (RECORD, *LISTED, SIGNATURE, *MARKS)

UNFINISHED, REPLACED = "unfinished", "replaced"
_NAME = re.compile(rf"\.(.+)\.([0-9a-f]+)-[0-9a-f]+\.({UNFINISHED}|{REPLACED})", re.DOTALL)


def mark_spent(folder: Path, budget: Budget, ledger: Path | None = None) -> None:
    """Write down, durably, that a budget is spent for what comes into a staged folder, and debited where."""
    path = folder / SPENT
    if path.exists():
        return
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(f"{budget!r}\n" + ("" if ledger is None else f"{json.dumps(str(ledger))}\n"))
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(folder)
        sync_folder(folder.parent)
    except BaseException:
        path.unlink(missing_ok=True)  # no noise was drawn yet
        raise


def target_of(folder: Path) -> Path | None:
    """Return where an unfinished folder was to take its place; None for any other."""
    match = _NAME.fullmatch(folder.name)
    return folder.with_name(match[1]) if match is not None and match[3] == UNFINISHED else None


def unfinished(target: Path) -> list[Path]:
    """Return the folders beside a target for which a budget was spent."""
    return [folder for folder in _beside(target, UNFINISHED) if (folder / SPENT).exists()]


def refuse_leftover(folder: Path) -> None:
    """Refuse the folder of a release that was not put in its place, and say what happened."""
    try:
        place = Path(os.path.realpath(folder))
    except ValueError:
        return  # no path: not found by whoever reads it
    match = _NAME.fullmatch(place.name)
    if match is None:
        return
    target = place.with_name(match[1])
    if match[3] == REPLACED:
        raise StorageError(
            f"{folder}: found an earlier release, put aside while another took its place in {target}; the "
            f"next `matrixdp release --out {target}` puts it back where nothing is there, or else removes it"
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
    for folder in unfinished(Path(os.path.abspath(out))):  # noqa: PTH100 - keeps symbolic links
        raise StorageError(
            f"{out}: found {folder}, of a release that was stopped or still runs. {_told(folder)} "
            "To spend a budget once more, remove that folder"
        )


def settle(target: Path) -> None:
    """Put back, or remove, what runs that were killed left of releases that they were replacing.

    What a budget was spent for stays.
    """
    for old in _beside(target, REPLACED):
        if target.exists() or target.is_symlink() or not is_release(old):
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
    for partial in folder.glob(f".{MEASUREMENT}.*.partial"):
        partial.unlink(missing_ok=True)
    for name in RELEASE_FILES:
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def is_release(folder: Path) -> bool:
    """Return whether a folder holds the record of a release."""
    try:
        written = json.loads(_held(folder / RECORD))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(written, dict) and written.get("format") == RELEASE_FORMAT


def _beside(target: Path, kind: str) -> Iterator[Path]:
    """Yield the folders of a kind beside a target whose process has ended, or that had spent a budget."""
    if not target.parent.is_dir():
        return
    for path in sorted(target.parent.iterdir()):
        match = _NAME.fullmatch(path.name)
        if match is None or match[1] != target.name or match[3] != kind or not _is_folder(path):
            continue
        if (path / SPENT).exists() or not _runs(path, int(match[2], 16)):
            yield path


def _is_folder(path: Path) -> bool:
    """Return whether a path is a folder, and no link to one: what a link leads to is nobody's leftover."""
    return path.is_dir() and not path.is_symlink()


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


def spent_for(folder: Path) -> tuple[str, str]:
    """Return what was spent for what is in an unfinished folder, and the command that recovers it."""
    with contextlib.suppress(OSError, ValueError):
        budget, *debited = _held(folder / SPENT).decode("utf-8").splitlines()
        if debited:
            return budget, f"ledger recover {json.loads(debited[0])}"
        return budget, f"recover {target_of(folder)}"
    return "A budget", f"recover {target_of(folder)}"


def spent_elsewhere(folder: Path, ledger: Path) -> bool:
    """Return whether what was spent for what is in an unfinished folder was not debited to a ledger."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        _, *debited = _held(folder / SPENT).decode("utf-8").splitlines()
        return not debited or os.path.realpath(json.loads(debited[0])) != os.path.realpath(ledger)
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
    budget, command = spent_for(folder)
    spent = f"{budget} was spent for it, and counts"
    if (folder / MEASUREMENT).exists():
        whole = f"{spent}; the measurement is whole: {folder / MEASUREMENT}"
        return f"{whole}. `matrixdp {command}` makes a release of it, at no further cost."
    return f"{spent}; no measurement was kept."
