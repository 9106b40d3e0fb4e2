"""What papers print: as text, so that the number of digits is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import matrixdp as mdp

__all__ = ["BOUND", "NOT_RUN", "Column", "Omitted", "Paper", "Quantity", "Row", "Table", "figures"]

#: In the place of a mechanism: the SVD bound.
BOUND = "SVD bound"
#: In the place of a mechanism: ours would take too long for these benchmarks.
NOT_RUN = "not run"


@dataclass(frozen=True)
class Column:
    """A column of a published table, and which of our mechanisms stands beside it.

    Attributes
    ----------
    title : str
        The paper's name of it.
    mechanism : str
        Ours, or ``BOUND``, or ``NOT_RUN``, or one of ``cells.SPECIAL``.
    printed : bool
        Whether its figures stand in the paper. False: they were worked out apart from the library, by
        solving the paper's own problem to a certified optimum; they are shown, and counted nowhere.
    """

    title: str
    mechanism: str
    printed: bool = True


@dataclass(frozen=True)
class Row:
    """One workload, and what is printed about it.

    Attributes
    ----------
    name : str
    make : callable
        Builds the workload.
    figures : tuple of str or None
        A figure for each column of the table; None where nothing is printed.
    drawn : tuple of str
        Titles of columns whose figures depend on something that the paper drew at random and does not
        print: they are shown, and counted nowhere.
    """

    name: str
    make: Callable[[], mdp.Workload]
    figures: tuple[str | None, ...]
    drawn: tuple[str, ...] = ()


@dataclass(frozen=True)
class Omitted:
    """What a paper prints and no table here compares.

    Attributes
    ----------
    what : str
        The table, figure, rows or columns, as the paper numbers them.
    why : str
        With the evidence, where the figure is held to be wrong.
    """

    what: str
    why: str


@dataclass(frozen=True)
class Table:
    """A published table.

    Attributes
    ----------
    name : str
        For ``--only``.
    title : str
    noise : str
    budget : mdp.Budget
        At which the figures are.
    columns : tuple of Column
    rows : tuple of Row
    reference : str
        The mechanism to whose time the others are compared.
    more : tuple of str
        Mechanisms of ours without a published column.
    total : bool
        Total squared error with noise of scale 1, not RMSE.
    relative : bool
        Figures are relative to one of the paper's own that is not printed; it follows from the error of
        noise on every cell, which is exact, and what is printed for it in the first column.
    limit : float
        Seconds of processor time for each cell.
    limits : mapping of str to float
        Those of single mechanisms, in its place.
    note : str
        What is said under the table.
    plans : bool
        Whether strategies are made into plans; where not, the error before rounding is shown, without a
        lower bound but that of the spectrum.
    drawn : bool
        Whether the workloads are drawn at random, and ours not as the paper's: its figures are shown beside
        ours, and counted nowhere.
    omitted : tuple of Omitted
        Rows and columns of the printed table that are not compared.
    """

    name: str
    title: str
    noise: str
    budget: mdp.Budget
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    reference: str
    more: tuple[str, ...] = ()
    total: bool = False
    relative: bool = False
    limit: float = 90.0
    limits: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    plans: bool = True
    drawn: bool = False
    omitted: tuple[Omitted, ...] = ()


@dataclass(frozen=True)
class Quantity:
    """A figure that is no error of a mechanism on a workload; it is counted apart from those.

    Attributes
    ----------
    what : str
    printed : str or None
        None where the paper has an order of growth, or a figure that cannot hold.
    ours : callable
        Returns the figure as it is here.
    """

    what: str
    printed: str | None
    ours: Callable[[], float]


@dataclass(frozen=True)
class Paper:
    """A paper, its tables, and what of it is not compared.

    Attributes
    ----------
    name : str
        The name of its page.
    title : str
        What it is called in a heading.
    source : str
        Authors, title, year.
    tables : tuple of Table
    omitted : tuple of Omitted
        Whole tables and figures that are not compared.
    shown : str
        What the page has in place of tables.
    quantities : tuple of Quantity
        Figures that are no errors.
    """

    name: str
    title: str
    source: str
    tables: tuple[Table, ...] = ()
    omitted: tuple[Omitted, ...] = ()
    shown: str = "nothing is compared"
    quantities: tuple[Quantity, ...] = ()

    @property
    def quantities_part(self) -> str:
        """The name of the part that works out the quantities."""
        return f"{self.name}-quantities"


def figures(printed: str) -> tuple[str | None, ...]:
    """Return the figures of a row, a dash where there is none.

    Examples
    --------
    >>> figures("6.63 - 300,000")
    ('6.63', None, '300,000')
    """
    return tuple(None if figure == "-" else figure for figure in printed.split())
