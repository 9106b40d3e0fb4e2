"""What a page says of a release, gathered from its folder: which groups are shown, and what is left out."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, final

from matrixdp.answers.titles import titles
from matrixdp.pictures import MAX_DRAWN, Answered, axes_of
from matrixdp.queries import Workload
from matrixdp.release.files import check_files
from matrixdp.release.folders import load_release
from matrixdp.release.leftovers import RECORD
from matrixdp.release.release import Release
from matrixdp.report.accuracy import Accuracy, least_squared_error, workload_sensitivity
from matrixdp.report.tables import Answers, GroupAnswers
from matrixdp.storage.files import plain_content

__all__ = ["MAX_GROUPS", "MAX_ROWS", "Contents", "Shown", "contents", "odds"]

#: Groups that are shown, groups whose accuracy is, and rows of tables of one group and of the page, at most.
MAX_GROUPS, MAX_ACCURACIES, MAX_GROUP_ROWS, MAX_ROWS = 50, 150, 2_000, 8_000
#: Rows of a table that is too long to be shown whole.
_FIRST_ROWS = 50


@final
@dataclass(frozen=True, eq=False)
class Shown:
    """One group as a page shows it.

    Attributes
    ----------
    title : str
    queries : int
    answers : GroupAnswers or None
        None where there are more answers than a picture has.
    picture : Answered or None
        The same, for its picture.
    rows : int
        How many rows of its table are shown.
    """

    title: str
    queries: int
    answers: GroupAnswers | None
    picture: Answered | None
    rows: int


@final
@dataclass(frozen=True, eq=False)
class Contents:
    """What a page says of a release.

    Attributes
    ----------
    release : Release
    record : mapping
        What ``release.json`` says.
    accuracies : sequence of Accuracy
        Of the groups whose accuracy is shown.
    all_groups : Accuracy
        Of all groups together; ``least`` is None where no bound is known.
    straight : float or None
        The standard error of every answer, had noise been added to every query of the workload; None where
        that would take long to compute.
    straight_exact : bool
        Whether it is that, or at least that.
    shown : sequence of Shown
    """

    release: Release
    record: Mapping[str, Any]
    accuracies: Sequence[Accuracy]
    all_groups: Accuracy
    straight: float | None
    straight_exact: bool
    shown: Sequence[Shown]

    @property
    def left_out(self) -> int:
        """How many groups are not shown."""
        return len(self.release.workload) - len(self.shown)


def contents(folder: Path) -> Contents:
    """Return what a page says of the release in a folder, every file of it checked against the record.

    Raises
    ------
    StorageError
        If the folder does not hold a release, or its files were damaged or altered.
    """
    release = load_release(folder)
    record = check_files(folder, plain_content(folder / RECORD))
    workload, noise = release.workload, release.measurement.plan.noise
    budget = release.measurement.authorization.budget
    # a replacement costs no less than a removal, so that bounds for the second hold for the first
    scale = noise.error_scale(budget)
    called = titles(workload.groups)
    known: dict[Hashable, float | None] = {}
    accuracies = []
    bounds: list[float | None] = []
    written = record["groups"]
    chosen = _chosen(workload, MAX_ACCURACIES)
    for place in chosen:
        group = workload.groups[place]
        least = least_squared_error(release.domain, group, known)
        least = None if least is None else least * noise.variance_factor / scale
        bounds.append(least)
        root = None if least is None else math.sqrt(least / group.queries)
        rmse, largest = _errors(written[place])
        accuracies.append(Accuracy(called[place], group.queries, rmse, largest, root))
    found = workload_sensitivity(workload, noise)
    straight = None
    if found is not None:
        straight = math.sqrt(noise.variance_factor * found[0] ** (2 / noise.norm) / scale)
    every = bounds if len(chosen) == len(workload) else [*bounds, None]
    least_of_all = _least_of_all(release, every, scale)
    rmse, largest = _errors(record)
    together = Accuracy("all", workload.queries, rmse, largest, least_of_all)
    shown = list(_shown(folder, release, called))
    exact = found is not None and found[1] and budget.neighbours == "add_remove"
    return Contents(release, record, accuracies, together, straight, exact, shown)


def _errors(written: Mapping[str, Any]) -> tuple[float, float]:
    """Return the root mean square of standard errors, and the largest, as a record has them."""
    return float(written["rmse"]), float(written["max_stddev"])


def aim(release: Release) -> str:
    """Return what the selection made least, and its certificate is about."""
    if release.origin.get("objective") != "sum":
        return "largest standard error with the workload's weights"
    weighted = any(g.weight != 1 or g.query_weights is not None for g in release.workload)
    return "RMSE with the workload's weights" if weighted else "RMSE"


def _least_of_all(release: Release, bounds: Sequence[float | None], scale: float) -> float | None:
    """Return a root mean square below which no strategy gets, for all groups together.

    Each group has at least its own bound; the certificate of the selection is about the same sum where
    nothing is weighted, and is as said.
    """
    queries = release.workload.queries
    own = [bound for bound in bounds if bound is not None]
    found = [math.fsum(own)] if len(own) == len(bounds) else []
    certificate = release.origin.get("certificate")
    if isinstance(certificate, Mapping) and aim(release) == "RMSE":
        said = certificate.get("lower_bound")
        found += [said / scale] if isinstance(said, float) and said > 0 else []
    return math.sqrt(max(found) / queries) if found else None


def _chosen(workload: Workload, most: int) -> list[int]:
    """Return the places of groups, at most so many: the first of every entry before the second of any."""
    turns = chain.from_iterable(zip_longest(*workload.places))
    return sorted([place for place in turns if place is not None][:most])


def _shown(folder: Path, release: Release, called: Sequence[str]) -> Iterator[Shown]:
    answers = Answers(folder, release)
    left = MAX_ROWS
    for place in _chosen(release.workload, MAX_GROUPS):
        group = release.workload.groups[place]
        if group.queries > MAX_DRAWN:
            yield Shown(called[place], group.queries, None, None, 0)
            continue
        own = answers.group(place)
        whole = group.queries <= min(left, MAX_GROUP_ROWS)
        rows = group.queries if whole else min(_FIRST_ROWS, left)
        left -= rows
        axes = axes_of(release.domain, group)
        picture = Answered(axes, own.estimates, own.stddevs, own.halves)
        yield Shown(called[place], group.queries, own, picture, rows)


def odds(mu: float) -> float:
    """Return a bound on how often the best guess between two equally likely neighbours is right.

    Under mu-GDP it is Phi(mu / 2), as the errors of the first and the second kind of every test add up to
    at least 2 Phi(-mu / 2); rounded up to a tenth of a percent.

    References
    ----------
    Dong, Roth, Su 2022, definition 2.6 with alpha = Phi(-mu / 2).

    Examples
    --------
    >>> odds(0.0), odds(0.2368), odds(2.0)
    (0.501, 0.548, 0.842)
    """
    from scipy.special import ndtr

    return min(1.0, math.floor(1000 * float(ndtr(mu / 2)) + 1) / 1000)
