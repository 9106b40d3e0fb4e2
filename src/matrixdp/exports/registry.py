"""What the tables of a release can be exported as, and the one way to add a format."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from matrixdp.errors import SpecificationError, StorageError, TooLargeError
from matrixdp.forms import unknown_name
from matrixdp.locks import whole_path
from matrixdp.plugins import Table
from matrixdp.storage.archive import partial_folder, sync_folder

if TYPE_CHECKING:
    from matrixdp.answers.publication import PublishedTable
    from matrixdp.releases.release import Release

Write = Callable[["Release", Sequence["PublishedTable"], Path], None]

#: A folder gets at most this many tables.
_MOST_TABLES = 10_000


@final
@dataclass(frozen=True)
class Export:
    """A format that tables are exported in.

    Attributes
    ----------
    name : str
        As ``format`` and ``--format`` take it.
    about : str
        What is written, in a few words.
    write : callable
        Takes a release, the tables to write, and a folder that is empty, and writes files into it. If it
        fails, the folder goes.
    """

    name: str
    about: str
    write: Write


EXPORTS: Table[Export] = Table(
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


def register_export(name: str, about: str, write: Write) -> None:
    """Add a format that `Release.save_tables` and ``matrixdp show --export`` write tables in.

    A package that is installed with an entry point in the group ``matrixdp.exports``, with the name of the
    format and the module that calls this, needs no import: the commands find it.

    Parameters
    ----------
    name : str
        The name of the format.
    about : str
        What is written, in a few words.
    write : callable
        Takes the `Release`, a sequence of its tables (`Release.tables`) and the path of an empty folder, and
        writes files into it. ``release.table(one)`` has the figures of a table, ``release.told`` the texts of
        the publication, ``release.private`` says whether anything is protected: files of a release that is
        not private should have names that begin with `file_mark`.

    Raises
    ------
    SpecificationError
        If another format has the name.

    Examples
    --------
    >>> def titles(release, tables, folder):
    ...     lines = [f"{one.title}: {one.rows} rows" for one in tables]
    ...     (folder / "titles.txt").write_text("; ".join(lines), encoding="utf-8")
    >>> register_export("titles", "a list of titles", titles)
    >>> EXPORTS.registered.pop("titles").about  # and forget it
    'a list of titles'
    """
    EXPORTS.register(name, Export(name, about, write))


def file_mark(release: Release) -> str:
    """Return what the names of files begin with: a warning where nothing is protected."""
    return "" if release.private else "NOT-PRIVATE-"


def export_tables(release: Release, out: str | os.PathLike[str], name: str, helpers: bool) -> Path:
    """Write every table of a release into a new folder; see `matrixdp.Release.save_tables`."""
    if not isinstance(name, str) or name not in EXPORTS:
        raise SpecificationError(unknown_name(("format",), str(name), "a format of tables", list(EXPORTS)))
    export = EXPORTS[name]
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
        export.write(release, published, partial)
        partial.replace(target)
        sync_folder(target.parent)
    return Path(out)
