"""What a source is, and how one is opened."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import SourceError

__all__ = ["Marginal", "Progress", "Source", "open_source"]

Marginal = tuple[tuple[str, ...], NDArray[np.int64]]
"""The attributes of a marginal, and its counts: one axis an attribute, in that order."""

Progress = Callable[[int, int], None]
"""Is called with the number of marginals that are done and the number of all."""


class Source(Protocol):
    """A table that can be counted."""

    def marginals(
        self,
        domain: Domain,
        subsets: Sequence[tuple[str, ...]],
        out_of_domain: OutOfDomain,
        progress: Progress | None = None,
    ) -> Iterator[Marginal]:
        """Count the records in every cell of some marginals.

        What the table and the subsets make impossible is raised by the call itself, before anything is
        counted.

        Parameters
        ----------
        domain : Domain
            The declared domain. A record is out of domain if any of its attributes is, whether it is in a
            subset or not.
        subsets : sequence of tuple of str
            The attributes of each marginal. The empty subset asks for the number of records.
        out_of_domain : OutOfDomain
            What happens to values that are out of domain.
        progress : callable, optional
            Is called with the number of marginals done and of all.

        Yields
        ------
        tuple of (tuple of str, numpy.ndarray)
            Each subset with its counts as an int64 array, one axis an attribute in the order of the subset,
            one entry a cell of the declared domain whether the table holds such records or not. The subsets
            come in any order.

        Raises
        ------
        SourceError
            If a column is missing, has a type that cannot be read, or the table cannot be read.
        DomainError
            If a subset names an unknown attribute, or one twice.
        TooLargeError
            If a marginal has too many cells to be held in memory.
        """
        ...


def open_source(table: object, *, table_name: str | None = None) -> Source:
    """Return the source for a path or a table.

    Parameters
    ----------
    table : object
        A path to CSV or Parquet files (a glob too) or to a DuckDB database; a pandas, Polars or PyArrow
        table; a Polars, Dask, PySpark or Ibis lazy frame; a DuckDB relation; or a mapping of names to arrays.
    table_name : str, optional
        The table in a DuckDB database; needed only where there are several.

    Returns
    -------
    Source
        The source. Nothing of the table has been read yet.

    Raises
    ------
    SourceError
        If there is no such file, or the table is of none of these kinds.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"]})
    >>> source = open_source({"sex": ["male", "male", "female", None]})
    >>> [(subset, counts.tolist()) for subset, counts in source.marginals(domain, [("sex",)], OutOfDomain())]
    [(('sex',), [1, 2])]
    """
    if isinstance(table, str | PathLike):
        from matrixdp.sources.database import PathSource

        return PathSource(table, table_name)
    if table_name is not None:
        raise SourceError("the name of a table goes with the path of a DuckDB database only")
    from matrixdp.sources.frame import frame_source

    return frame_source(table)
