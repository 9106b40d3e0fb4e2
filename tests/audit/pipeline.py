"""From a table through the door to written answers, and what they say of the noise and of one person."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import stats

from matrixdp.noise.drawing import CHUNK
from matrixdp.releases import save_release
from matrixdp.strategy import Strategy, select
from tests.audit import exact_tests as exact
from tests.audit.cases import COPY, Case
from tests.audit.reading import ReadFile, ReadPart, read, spread

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: The positions of the attributes that tell copies apart.
_COPY = tuple((place,) for place in range(len(COPY)))


@dataclass(frozen=True)
class Sample:
    """One release of every copy, by parts.

    Attributes
    ----------
    drawn : list of ndarray of int64, shape (copies, rows)
        The released lattice steps less the rounded true answers: what the noise drew.
    residuals : list of ndarray, shape (copies, rows)
        Released less true answers, in scales of the noise; of noise on integers filled up to Laplace noise.
    answers : ndarray, shape (copies, queries)
        As they were written.
    """

    drawn: list[Integers]
    residuals: list[Array]
    answers: Array


@dataclass(frozen=True)
class Evidence:
    """Two neighbouring releases, and what is claimed of them.

    Attributes
    ----------
    shifts : list of ndarray, shape (rows,)
        By how much the person moves the rows of each part, in scales.
    claimed : float
        mu (Gaussian noise) or pure epsilon (Laplace noise) between such neighbours, as release.json says.
    """

    noise: str
    steps: tuple[float, ...]
    powers: tuple[int, ...]
    multiples: tuple[int, ...]
    without: Sample
    with_person: Sample
    shifts: list[Array]
    claimed: float

    @property
    def distance(self) -> float:
        """What the exact matrices and scales say that the person costs: mu or epsilon."""
        power = 2 if self.noise == "gaussian" else 1
        return float(sum((np.abs(shift) ** power).sum() for shift in self.shifts) ** (1 / power))


def local_matrix(part: ReadPart, sizes: tuple[int, ...]) -> NDArray[Any]:
    """Return what a part measures of one copy, over all cells of a copy: Python integers."""
    blocks = dict(zip(part.positions, part.matrices, strict=True))
    apart = [blocks.pop(positions) for positions in _COPY]
    assert all(isinstance(matrix, int) for matrix in apart), "copies are not measured apart"
    own = ReadPart(tuple(blocks), tuple(blocks.values()), None, part.variance)
    order = [position - len(_COPY) for position in own.order]
    return spread(own.dense(), order, sizes).reshape(-1, math.prod(sizes))


def worst_move(case: Case, strategy: ReadFile) -> tuple[int, int | None, Integers]:
    """Return the neighbours that cost most, from the exact matrices and the shares of the noise.

    In every copy, records of the first cell come, or go there from the second; the counts change as returned.
    """
    norm = strategy.norm
    scaled = [
        (local_matrix(part, case.shape), Fraction(part.variance if norm == 2 else math.sqrt(part.variance)))
        for part in strategy.parts
    ]

    def cost(change: Integers) -> Fraction:
        moved = ((int((np.abs(rows @ change) ** norm).sum()), scale) for rows, scale in scaled)
        return sum((own / scale for own, scale in moved), Fraction(0))

    counts = case.budget.unit.records * np.eye(math.prod(case.shape), dtype=object)
    if case.budget.neighbours == "add_remove":
        moves: list[Any] = [(cell, None, counts[cell]) for cell in range(len(counts))]
    else:
        pairs = permutations(range(len(counts)), 2)
        moves = [(cell, other, counts[cell] - counts[other]) for cell, other in pairs]
    return max(moves, key=lambda move: cost(move[2]))


def without_person(case: Case) -> Integers:
    """Return the counts of all others, shape (copies, cells).

    Every other copy has a record, so that there are cells without records, and cells with.
    """
    cells = math.prod(case.shape)
    counts = np.zeros((case.samples, cells), dtype=np.int64)
    odd = np.arange(1, case.samples, 2)
    counts[odd, odd // 2 % cells] = 1
    return counts


def written(case: Case, others: Integers, own: int | None, folder: Path) -> tuple[object, Integers]:
    """Return a table of the kind that the case names, and its counts.

    In every copy there are the records of all others and, in the cell `own`, those of one person. Where the
    unit names a column, the person has further records in other cells, which are not to be counted.
    """
    unit = case.budget.unit
    copies, cells = np.nonzero(others)
    persons = np.arange(len(copies)) + case.samples
    counts = others.copy()
    if own is not None:
        counts[:, own] += unit.records
        everyone = np.arange(case.samples)
        listed = [own] * unit.records
        if unit.id is not None:
            listed += [cell for cell in range(others.shape[1]) if cell != own]
        for cell in listed:
            copies, persons = np.append(copies, everyone), np.append(persons, everyone)
            cells = np.append(cells, np.full(case.samples, cell))
    places = [*np.unravel_index(copies, case.copy_sizes)]
    if case.sizes:
        places += np.unravel_index(cells, case.shape)
    columns = dict(zip((*COPY, *case.sizes), places, strict=True))
    if unit.id is not None:
        columns[unit.id] = persons
    return _as_kind(case.table, columns, folder), counts


def _as_kind(kind: str, columns: dict[str, Integers], folder: Path) -> object:
    table, path = pa.table(columns), folder / f"table.{kind}"
    if kind in ("csv", "parquet"):
        (pacsv.write_csv if kind == "csv" else pq.write_table)(table, path)
        return path
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "arrays": dict}[kind](columns)


def release(case: Case, strategy: Strategy, own: int | None, folder: Path) -> tuple[ReadFile, Sample, Any]:
    """Measure a table through the door, write the release, and read it back."""
    table, counts = written(case, without_person(case), own, folder)
    measured = strategy.measure(table, case.budget)
    out = save_release(measured.reconstruct(), folder / "out", force=True)
    found = read(out / "measurement.mdp")
    answers = pq.read_table(out / "answers.parquet", columns=["estimate"])["estimate"].to_numpy()
    record = json.loads((out / "release.json").read_text())
    return found, _sample(case, found, counts, answers), record


def _sample(case: Case, found: ReadFile, counts: Integers, answers: Array) -> Sample:
    drawn, residuals = [], []
    each = zip(found.parts, found.steps, found.powers, found.multiples, found.values, strict=True)
    for part, steps, power, multiple, values in each:
        true = counts @ local_matrix(part, case.shape).astype(np.int64).T
        own = _copies_first(part, values)
        if power <= 0:
            whole, rest = true << -power, np.zeros(true.shape)
        else:
            whole, rest = true >> power, (true & ((1 << power) - 1)) / 2.0**power
        noise = own - whole
        drawn.append(noise - np.floor(rest + 0.5).astype(np.int64))
        residuals.append((noise - rest) / float(steps))
        if multiple:
            assert not (noise % multiple).any()
            residuals[-1] += filling(float(steps) / multiple, noise.shape) * multiple / float(steps)
    return Sample(drawn, residuals, _by_copy(case, answers))


def _copies_first(part: ReadPart, values: Integers) -> Integers:
    axes = [part.positions.index(positions) for positions in _COPY]
    first = np.moveaxis(values.reshape(part.rows), axes, range(len(axes)))
    return first.reshape(math.prod(first.shape[: len(axes)]), -1)


def _by_copy(case: Case, answers: Array) -> Array:
    """Return answers that come entry by entry, copy by copy, as shape (copies, queries)."""
    columns, start = [], 0
    for own in case.products:
        stop = start + case.samples * len(replace(case, products=(own,)).queries())
        columns.append(answers[start:stop].reshape(case.samples, -1))
        start = stop
    assert start == len(answers)
    return np.hstack(columns)


def collect(case: Case, folder: Path) -> tuple[Evidence, ReadFile]:
    """Measure two tables that one person makes different, each once, with noise of the system's generator."""
    strategy = select(case.workload(), case.noise, case.budget.neighbours, "workload", case.budget)
    strategy.save(folder / "strategy.mdp")
    cell, other, change = worst_move(case, read(folder / "strategy.mdp"))
    found, without, record = release(case, strategy, other, folder)
    _, with_person, _ = release(case, strategy, cell, folder)
    shifts = [
        (local_matrix(part, case.shape) @ change).astype(float) / float(scale)
        for part, scale in zip(found.parts, found.scales, strict=True)
    ]
    stated = {row["definition"]: row["parameters"] for row in record["privacy"]["guarantees"]}
    claimed = stated["Gaussian DP"]["mu"] if case.noise == "gaussian" else stated["pure DP"]["epsilon"]
    steps = tuple(float(s / (g or 1)) for s, g in zip(found.steps, found.multiples, strict=True))
    check_answers(case, found, without.answers)
    known = case.noise, steps, found.powers, found.multiples
    return Evidence(*known, without, with_person, shifts, claimed), found


def check_answers(case: Case, found: ReadFile, answers: Array) -> None:
    """Check that the written answers are least squares of what was measured, and nothing else."""
    rows, measured = [], []
    for part, scale, steps, values in zip(found.parts, found.scales, found.steps, found.values, strict=True):
        rows.append(local_matrix(part, case.shape).astype(float) / float(scale))
        measured.append(_copies_first(part, values) / float(steps))
    solved = case.queries() @ np.linalg.pinv(np.vstack(rows), rcond=1e-11)
    expected = np.hstack(measured) @ solved.T
    np.testing.assert_allclose(answers, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


def findings(evidence: Evidence) -> dict[str, float]:
    """Return the p-value of every test: of privacy first, then of the noise and of its independence."""
    noise, steps = evidence.noise, evidence.steps
    first, second = evidence.without, evidence.with_person
    filled = [[*map(fill, x.residuals, steps, evidence.multiples)] for x in (first, second)]
    together = [np.concatenate(pair) for pair in zip(*filled, strict=True)]
    exactly = [np.concatenate(pair) for pair in zip(first.residuals, second.residuals, strict=True)]
    drawn = [np.concatenate(pair) for pair in zip(first.drawn, second.drawn, strict=True)]
    whole = all(evidence.multiples)
    small, large = exact.spread(noise, exactly, steps)
    flat = [own.ravel() for release in filled for own in release]
    among = [exact.agreement(own[:-lag], own[lag:]) for own in flat for lag in (1, CHUNK) if lag < len(own)]
    parts = filled[0]
    between = [
        exact.agreement(left.ravel()[: right.size], right.ravel()[: left.size])
        for place, left in enumerate(parts)
        for right in parts[:place]
    ]
    return {
        **privacy(evidence, filled),
        "noise too small": small,
        "noise too large": large,
        "tails": exact.tails(noise, together),
        "shape": exact.shape(noise, together),
        **({} if whole else {"lattice": exact.lattice(drawn)}),
        "rows without noise": exact.hits(noise, drawn, steps),
        "noise used again in a part": exact.worst(among),
        "noise used again between parts": exact.worst(between or [1.0]),
        "noise used again between releases": exact.worst(
            exact.agreement(left, right) for left, right in zip(*filled, strict=True)
        ),
    }


def filling(steps: float, shape: tuple[int, ...]) -> Array:
    """Return what makes noise on integers Laplace noise of the same scale, from numbers of the audit's own.

    An exponential variable of mean s is its integer part, which is geometric, and an independent rest.
    Laplace noise is the difference of two, and two-sided geometric noise that of their integer parts.
    """
    drawn = np.random.default_rng().exponential(steps, (2, *shape)) % 1.0
    return np.asarray(drawn[0] - drawn[1])


def fill(residuals: Array, steps: float, multiple: int) -> Array:
    """Spread residuals over the cell of the lattice, by a random number of the audit's own."""
    if multiple:  # filled already
        return residuals
    return residuals + np.random.default_rng().uniform(-0.5, 0.5, residuals.shape) / steps


def privacy(evidence: Evidence, filled: list[list[Array]]) -> dict[str, float]:
    """Return the p-values of the optimal tests of the two neighbours against what is claimed of them."""
    without = np.hstack(filled[0])
    shift = np.concatenate(evidence.shifts)
    with_person = np.hstack(filled[1]) + shift
    if evidence.noise == "gaussian":
        direction = shift / evidence.distance
        left, right = without @ direction, with_person @ direction
        number = len(left)
        moved = float(right.mean() - left.mean() - evidence.claimed) * math.sqrt(number / 2)
        middle = evidence.distance / 2
        wrong = int((left > middle).sum() + (right < middle).sum())
        return {
            "shift": float(stats.norm.sf(moved)),
            "advantage": exact.advantage(wrong, 2 * number, evidence.claimed),
        }
    # the likelihood ratio is e^epsilon, its largest value, where every row is beyond its shift, and the least
    # where every row is on the other side of 0
    rows = shift != 0
    sides = np.sign(shift[rows])
    beyond = [((own[:, rows] - shift[rows]) * sides >= 0).all(axis=1).sum() for own in (without, with_person)]
    before = [(own[:, rows] * sides <= 0).all(axis=1).sum() for own in (without, with_person)]
    rare, often = int(beyond[0] + before[1]), int(beyond[1] + before[0])
    return {"ratio": exact.ratio(rare, often, 2 * len(without), evidence.claimed)}
