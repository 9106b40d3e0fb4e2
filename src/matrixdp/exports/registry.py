"""What the tables of a release can be exported as, and the one way to add a format."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matrixdp.errors import SpecificationError, StorageError, TooLargeError
from matrixdp.forms import unknown_name
from matrixdp.locks import whole_path
from matrixdp.plugins import Table
from matrixdp.storage.archive import partial_folder, sync_folder

if TYPE_CHECKING:
    from matrixdp.answers.publication import PublishedTable
    from matrixdp.releases.release import Release

Write = Callable[["Release", Sequence["PublishedTable"], Path], None]
"""Takes a release, the tables to write, and a folder that is empty, and writes files into it."""

#: A folder gets at most this many tables.
_MOST_TABLES = 10_000


EXPORTS: Table[Write] = Table(
    "matrixdp.exports",
    "format",
    {
        "csv": "matrixdp.exports.files",
        "parquet": "matrixdp.exports.files",
        "xlsx": "matrixdp.exports.workbook",
        "sdmx": "matrixdp.exports.sdmx",
        "ddi": "matrixdp.exports.ddi",
    },
)
"""Every format by its name; those of installed packages are found by entry points."""


def register_export(name: str, write: Write) -> None:
    """Add a format that `Release.save_tables` and ``matrixdp show --export`` write tables in.

    A package that is installed with an entry point in the group ``matrixdp.exports``, with the name of the
    format and the module that calls this, needs no import: the commands find it.

    Parameters
    ----------
    name : str
        The name of the format.
    write : callable
        Takes the `Release`, a sequence of its tables (`Release.tables`) and the path of an empty folder, and
        writes files into it; if it fails, the folder is removed. ``release.table(one)`` has the figures of a
        table, ``release.told`` the texts of the publication. Names of files should begin with what
        `file_mark` returns: a warning where nothing is protected.

    Raises
    ------
    SpecificationError
        If another format has the name.

    Examples
    --------
    >>> def titles(release, tables, folder):
    ...     lines = [f"{one.title}: {one.rows} rows" for one in tables]
    ...     (folder / "titles.txt").write_text("; ".join(lines), encoding="utf-8")
    >>> register_export("titles", titles)
    >>> EXPORTS.registered.pop("titles") is titles  # and forget it
    True
    """
    EXPORTS.register(name, write)


def same_tables(
    published: Sequence[PublishedTable], release: Release, other: Release
) -> list[PublishedTable]:
    """Return tables of a release as the same release in another language has them."""
    pairs = zip((*release.tables, *release.helpers), (*other.tables, *other.helpers), strict=True)
    wanted = set(published)
    return [theirs for own, theirs in pairs if own in wanted]


def file_mark(release: Release) -> str:
    """Return what the names of files begin with: a warning where nothing is protected."""
    return "" if release.private else "NOT-PRIVATE-"


def export_tables(release: Release, out: str | os.PathLike[str], name: str, helpers: bool) -> Path:
    """Write every table of a release into a new folder; see `matrixdp.Release.save_tables`."""
    if not isinstance(name, str) or name not in EXPORTS:
        raise SpecificationError(unknown_name(("format",), str(name), "a format of tables", list(EXPORTS)))
    write = EXPORTS[name]
    published = (*release.tables, *(release.helpers if helpers else ()))
    if len(published) > _MOST_TABLES:
        expected = f"at most {_MOST_TABLES:,} as files of their own; answers.parquet has all of them"
        raise TooLargeError.at(("tables",), f"{len(published):,} tables", expected)
    target = whole_path(out)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            found = f"{target}: found something there; expected a folder that is new or empty"
            raise StorageError(found, "file-exists")
    except (OSError, ValueError) as error:
        raise StorageError.unwritable(target, error) from None
    with partial_folder(target, "tables") as partial:
        write(release, published, partial)
        partial.replace(target)
        sync_folder(target.parent)
    return Path(out)
