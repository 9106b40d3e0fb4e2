"""What a release has for looking at it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.titles import find_group, title
from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError
from matrixdp.pictures.plots import Answered, draw_answers
from matrixdp.pictures.style import axes_of
from matrixdp.queries import Group, Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

#: Answers of a group that is drawn, at most.
MAX_DRAWN = 1_000_000


class GroupFigures(Protocol):
    """Estimates of a group's queries, their standard errors, and half the lengths of their intervals."""

    @property
    def estimates(self) -> Array:
        """One for each query."""

    @property
    def deviations(self) -> Array:
        """Their standard errors."""

    @property
    def widths(self) -> Array:
        """Half the lengths of their intervals."""


class Plotted(ABC):
    """Pictures of what has answers to query groups."""

    workload: Workload

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The attributes."""

    @abstractmethod
    def _figures(self, group: Group) -> GroupFigures:
        """Return the figures of a group's queries."""

    @abstractmethod
    def _computing(self, groups: Sequence[Group]) -> AbstractContextManager[None]:
        """Compute the answers to groups, and say what to ask instead where they are not determined."""

    def plot(self, group: str) -> Figure:
        """Draw the answers of one query group with their intervals.

        Cumulative counts and long numeric attributes are a line in a band, few answers are bars, two
        attributes a heat map of estimates beside one of standard errors, all ranges of values a triangle,
        and whatever is left a line through the answers by their size. Bands and bars are the pointwise
        intervals of the release.

        Parameters
        ----------
        group : str
            The name or title of a query group, or its attributes, such as ``"age CDF by sex"``.

        Returns
        -------
        matplotlib.figure.Figure
            To save with ``savefig``; a notebook shows it by itself.

        Raises
        ------
        WorkloadError
            If there is no such group; the message names those that are like it.
        TooLargeError
            If the group has more than `MAX_DRAWN` answers.
        SpecificationError
            If matplotlib is not installed: ``pip install 'matrixdp[pictures]'``.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
        >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
        >>> figure = release.plot("sex")
        >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
        ['female', 'male']
        """
        found = self.workload.groups[find_group(self.workload.groups, group)]
        if found.queries > MAX_DRAWN:
            raise TooLargeError(
                f"{title(found)}: {found.queries:,} answers; a picture has at most {MAX_DRAWN:,}. Ask for a "
                "part of them"
            )
        with self._computing([found]):
            figures = self._figures(found)
        values = figures.estimates, figures.deviations, figures.widths
        return draw_answers(Answered(axes_of(self.domain, found), *values), title(found))
