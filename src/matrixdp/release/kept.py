"""What a release does with folders, and with another workload."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

from matrixdp.queries import Workload
from matrixdp.release.keys import SigningKey
from matrixdp.release.loading import read_release
from matrixdp.release.tables import write_tables
from matrixdp.release.writing import MAX_ANSWERS, Progress, save_release
from matrixdp.release.written import Written

__all__ = ["Kept"]


class Kept(Written):
    """What a release does with folders, and with another workload."""

    def save(
        self,
        out: str | os.PathLike[str],
        *,
        csv: bool = False,
        max_answers: int = MAX_ANSWERS,
        force: bool = False,
        key: SigningKey | None = None,
        progress: Progress | None = None,
    ) -> Path:
        """Write the release as a folder that appears whole or not at all, and return it.

        Parameters and errors are those of `matrixdp.save_release`.

        Examples
        --------
        >>> import tempfile
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals([0, 1]))
        >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     again = mdp.Release.load(release.save(f"{parent}/out"))
        >>> again.answers.equals(release.answers)
        True
        """
        return save_release(
            self, out, csv=csv, max_answers=max_answers, force=force, key=key, progress=progress
        )

    def save_tables(
        self,
        out: str | os.PathLike[str],
        *,
        format: str = "csv",  # noqa: A002
        pivot: str | None = None,
    ) -> Path:
        """Write one clean table for each group, and descriptions of them for machines, into a new folder.

        Figures in CSV have the digits that the least standard error of the table justifies; ends of intervals
        are rounded outward. ``datapackage.json`` (Frictionless Data Package 2) and ``croissant.json``
        (Croissant 1.0) list the tables with their columns and digests, and have the privacy statement.

        Parameters
        ----------
        out : str or path
            The folder; it must not be there, or be empty. It is no part of the folder of a release.
        format : {'csv', 'parquet'}
            Parquet has every digit, ordered categories, and descriptions in its metadata.
        pivot : str, optional
            An attribute whose values become columns, in the tables that ask about it beside others.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        StorageError
            If `out` holds something, or cannot be written.
        SpecificationError
            If there is no such format, or no table that asks about the attribute beside others.
        TooLargeError
            If there are more than 10,000 groups, or too many columns.

        Examples
        --------
        >>> import tempfile
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals([0, 1]))
        >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     sorted(path.name for path in release.save_tables(f"{parent}/tables").iterdir())
        ['croissant.json', 'datapackage.json', 'sex.csv', 'total.csv']
        """
        return write_tables(self, out, format, pivot)

    @classmethod
    def load(cls, out: str | os.PathLike[str], *, confidence: float | None = None) -> Self:
        """Return the release that a folder holds; see `matrixdp.load_release`."""
        found = read_release(out, cls)
        return found if confidence is None else found.reconstruct(confidence=confidence)

    def reconstruct(
        self,
        workload: Workload | None = None,
        confidence: float | None = None,
        expect: int | None = None,
    ) -> Self:
        """Return the answers to another workload from the same measurement, free of further budget.

        Parameters
        ----------
        workload : Workload, optional
            What to answer; that of the release where it is left out.
        confidence : float, optional
            Of the intervals; that of the release where it is left out.
        expect : int, optional
            How many records should be in the domain, a public figure; that of the release where it is left
            out.

        Raises
        ------
        WorkloadError
            If the workload is over another domain.
        SpecificationError
            If the confidence or what is expected is none.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"age": range(4)})
        >>> release = mdp.select(mdp.Workload(domain, mdp.marginals(1))).measure(
        ...     {"age": [0, 3]}, mdp.Budget(mu=1)
        ... ).reconstruct()
        >>> release.reconstruct(mdp.Workload(domain, mdp.product(age="prefix"))).answers.num_rows
        4
        """
        make: Callable[..., Self] = type(self)
        return make(
            self.measurement,
            self.workload if workload is None else workload,
            self.confidence if confidence is None else confidence,
            self.origin,
            self.expect if expect is None else expect,
        )
