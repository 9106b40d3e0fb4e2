"""Workers: processes, on this machine or on others, that count and measure one run of areas each.

A worker reads the records of its run, draws the noise of everything that is measured within it, and commits
the noisy answers to a file: once, so that a task that runs twice never leaves two noises. It returns the
exact sums over areas of which the run is a part, to the process that started it and nobody else; this draws
their noise, and reads what was committed.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import OutOfDomain
from matrixdp.errors import MatrixDPError, PrivacyError, SourceError, StorageError, file_problem, withholding
from matrixdp.locks import Lock, private_folder
from matrixdp.measure.calibration import NoiseScale
from matrixdp.measure.noisy_answers import (
    Groups,
    Keep,
    Sums,
    noisy_answers,
    random_source,
    slice_tables,
    sum_tables,
)
from matrixdp.plans import Plan, Slices
from matrixdp.privacy import Unit
from matrixdp.sources import Source

_FOUND = "found"
#: How many workers are asked whether they are ready.
_TRIED = 8
_WAIT = 0.2
_SHARED = "a folder that every worker can read, write and link files in, as Workers(map, folder)"


@final
@dataclass(frozen=True, eq=False)
class Workers:
    """Processes that share the counting and measuring of a large release, on any engine that runs functions.

    Parameters
    ----------
    map : callable
        Calls a function with each of some numbers, wherever it likes, also more than once, and returns what
        it returned, in order: ``concurrent.futures.ProcessPoolExecutor().map``, that of a Dask client,
        ``client.get_executor().map``, or what `Workers.spark` makes.
    folder : str or path, optional
        Where workers commit noisy answers: a folder that all of them share, with room for all noisy answers.
        What lies there is removed at the end. The temporary folder, where it is left out.

    Examples
    --------
    >>> import tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import matrixdp as mdp
    >>> states = {state: [f"{state}{number}" for number in range(9)] for state in "abc"}
    >>> counties = [county for own in states.values() for county in own]
    >>> county = {"categories": counties, "levels": {"state": states}}
    >>> asked = mdp.marginals([0, 1], at={"county": ["state", "county"]})
    >>> domain = mdp.Domain({"county": county, "sex": ["f", "m"]})
    >>> strategy = mdp.select(mdp.Workload(domain, asked), mechanism="tree")
    >>> with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
    ...     table = Path(folder, "people.csv")
    ...     _ = table.write_text("county,sex")
    ...     measured = strategy.measure(table, mdp.Budget(rho=0.5), workers=mdp.Workers(pool.map, folder))
    >>> measured.reconstruct().answers.num_rows
    90
    """

    map: Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]]
    folder: str | os.PathLike[str] | None = None

    @property
    def where(self) -> Path | None:
        """The folder, as processes with other working folders find it."""
        return None if self.folder is None else Path(self.folder).absolute()

    @classmethod
    def spark(cls, session: Any, folder: str | os.PathLike[str]) -> Workers:
        """Return the executors of a Spark session.

        Every executor must have this version of matrixdp, and must see the folder and the table under the
        same paths.

        Parameters
        ----------
        session : pyspark.sql.SparkSession
        folder : str or path
        """

        def run(function: Callable[[int], Any], numbers: Iterable[int]) -> list[Any]:
            held = list(numbers)
            return list(session.sparkContext.parallelize(held, len(held)).map(function).collect())

        return cls(run, folder)


@final
@dataclass(frozen=True, eq=False)
class Job:
    """What workers measure, each the run of a number.

    Attributes
    ----------
    slices : Slices
        Of the plan.
    runs : tuple of range
        The values that are measured together; in order all of them.
    within : tuple of int
        The numbers of the levels that are measured with them.
    """

    slices: Slices
    runs: tuple[range, ...]
    within: tuple[int, ...]
    scales: tuple[NoiseScale, ...]
    groups: Groups
    source: Source
    out_of_domain: OutOfDomain
    max_records: int
    seed_not_private: int | None
    version: str = field(default_factory=lambda: version("matrixdp"))

    def seed(self, number: int) -> int | None:
        """Return the seed of a worker's noise, if it has one."""
        seed = self.seed_not_private
        return None if seed is None else seed * (len(self.runs) + 1) + number + 1

    def measure(self, number: int, keep: Keep | None) -> Sums:
        """Count a run, and measure it where something keeps that; return the sums of all other levels."""
        plan, sums = self.slices.plan, Sums()
        run, cut = self.runs[number], (self.slices.attribute, self.slices.width)
        rules, groups = self.out_of_domain, self.groups
        marginals = self.source.marginals(plan.domain, list(groups), rules, slices=cut, run=run)
        tables = slice_tables(self.slices, run, groups, marginals, sums)
        if keep is None:
            for _ in tables:
                pass
        else:
            random = random_source(self.seed(number))
            measure = partial(noisy_answers, plan, self.scales, groups)
            measure(tables, keep, self.max_records, random)
            held = {key: own for key, own in sums.items() if key[1] in self.within}
            measure(sum_tables(self.slices, held), keep, self.max_records, random)
        return {key: own for key, own in sums.items() if key[1] not in self.within}


def slices_for(plan: Plan, rules: OutOfDomain, unit: Unit, *, rounds: bool) -> Slices:
    """Return the slices of a plan that workers measure.

    Raises
    ------
    PrivacyError
        If it cannot be cut, or counts records that no run of areas has.
    """
    path, found = ("workers",), ""
    if rounds:
        found = "two rounds, of which the second measures the same counts"
    elif unit.id is not None:
        found = "a unit with an id, whose records may be in several areas"
    elif rules.counts:
        found = "counts of records out of domain, which are in no area"
    elif (slices := Slices.of(plan, 0)) is None:
        found = "a strategy that does not measure the values of the first attribute apart"
    else:
        return slices
    expected = "no workers, or a workload by area, with the areas as the first attribute of the domain"
    raise PrivacyError.at(path, found, expected, code="not-supported")


@contextlib.contextmanager
def shared(job: Job, workers: Workers) -> Iterator[Path]:
    """Hand a job to workers, and check that they can do it, before anything is spent.

    Raises
    ------
    SourceError
        If the table is not one that other processes can open.
    StorageError
        If the folder cannot be used by all of them, or one has another version.
    """
    if not job.source.opens_anywhere:
        found, expected = "a table of another kind", "files, or a DuckDB database, that every worker can open"
        raise SourceError.at(("data",), found, expected, code="not-supported")
    with private_folder(workers.where) as folder:
        for problem in run(workers, partial(_ready, job, folder), min(len(job.runs), _TRIED)):
            if problem is not None:
                raise StorageError(f"workers: {problem}; expected {_SHARED}", "not-supported")
        yield folder


def _ready(job: Job, folder: Path, _number: int) -> str | None:
    """Return what keeps a worker from doing its part; None where it is ready."""
    try:
        if job.version != version("matrixdp"):
            return f"found version {version('matrixdp')} of matrixdp, not {job.version}"
        with tempfile.TemporaryDirectory(dir=folder) as own:
            tried = Path(own, "tried")
            with Lock(tried):
                os.link(tried, Path(own, "linked"))
    except StorageError as error:
        return str(error)
    except OSError as error:
        return f"the folder cannot be used ({file_problem(error)})"
    return None


def measured_by(
    workers: Workers,
    job: Job,
    folder: Path,
    keep: Keep,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Have workers measure a job, keep what they committed, and measure the sums over what they measured.

    Raises
    ------
    SourceError
        If a worker could not read its records.
    StorageError
        If an answer of a worker is missing.
    """
    plan, sums = job.slices.plan, Sums()
    random = random_source(job.seed(-1))
    for done, found in enumerate(run(workers, partial(_commit, job, folder), len(job.runs)), 1):
        if isinstance(found, MatrixDPError):
            raise found
        _add(sums, found, job.slices)
        if progress is not None:
            progress(done, len(job.runs) + 1)
    for number in range(len(job.runs)):
        for place, rows, steps in _committed(folder, number):
            keep(place, rows, steps)
    noisy_answers(plan, job.scales, job.groups, sum_tables(job.slices, sums), keep, job.max_records, random)
    if progress is not None:
        progress(len(job.runs) + 1, len(job.runs) + 1)


def run(workers: Workers, function: Callable[[int], Any], number: int) -> Iterator[Any]:
    """Yield what workers return for each of so many numbers.

    Raises
    ------
    StorageError
        If their engine fails.
    """
    failed = ""
    try:
        yield from workers.map(function, range(number))
    except MatrixDPError:
        raise
    except Exception as error:  # noqa: BLE001  the engine has written its own log
        failed = type(error).__name__
    if failed:
        raise StorageError(f"workers: their engine failed with {failed}; its log says why", "engine-failed")


def _add(sums: Sums, found: Sums, slices: Slices) -> None:
    """Add the sums of one run to those of all."""
    for (subset, level), (first, counts) in found.items():
        if (subset, level) not in sums:
            shape = int(slices.levels[level].max()) + 1, *counts.shape[1:]
            sums[subset, level] = 0, np.zeros(shape, counts.dtype)
        sums[subset, level][1][first : first + len(counts)] += counts


# One run on a worker. What happens there leaves it as exact sums, as an error of ours, which quotes nothing,
# or as the name of any other, so that the engine may try again.


@withholding
def _commit(job: Job, folder: Path, number: int) -> Sums | MatrixDPError:
    """Measure a run, and commit its noisy answers unless that was done; return its sums."""
    failed = ""
    try:
        with _alone(folder / f"{number}.lock"):
            held = folder / f"{number}.{_FOUND}"
            if held.exists():
                return job.measure(number, None)
            for left in folder.glob(f"{number}.*.drawing"):
                left.unlink()  # by a worker that was killed: nobody has read it, and nobody will
            with tempfile.NamedTemporaryFile(
                prefix=f"{number}.", suffix=".drawing", dir=folder, delete=False
            ) as file:
                drawing = Path(file.name)
                sums = job.measure(number, partial(_write, file))
                file.flush()
                os.fsync(file.fileno())
            # where a lock does not hold, the second one to come finds the first, and its noise goes unused
            with contextlib.suppress(FileExistsError):
                os.link(drawing, held)
            drawing.unlink()
            return sums
    except MatrixDPError as error:
        return error
    except Exception as error:  # noqa: BLE001  engines write down what they are told
        failed = type(error).__name__
    raise StorageError(f"a worker failed with {failed}", "engine-failed")


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait until no other attempt is at work, and keep others away."""
    while True:
        try:
            lock = Lock(path)
            break
        except StorageError:
            if not path.exists():  # it cannot be made: nobody holds it
                raise
            time.sleep(_WAIT)
    with lock:
        yield


def _write(file: IO[bytes], place: int, rows: slice, steps: NDArray[np.int64]) -> None:
    most = int(np.abs(steps).max(initial=0))
    np.save(file, np.array([place, rows.start, rows.stop]))
    np.save(file, steps.astype(np.int32) if most < 2**31 else steps)


def _committed(folder: Path, number: int) -> Iterator[tuple[int, slice, NDArray[np.int64]]]:
    """Yield what a worker committed."""
    try:
        with Path(folder, f"{number}.{_FOUND}").open("rb") as file:
            while file.peek(1):
                place, first, stop = np.load(file, allow_pickle=False)
                yield int(place), slice(int(first), int(stop)), np.load(file, allow_pickle=False)
    except OSError as error:
        told = f"workers: the answers of one are not there ({file_problem(error)}); expected {_SHARED}"
        raise StorageError(told, "file-missing") from None
