"""No error of a measurement keeps exact counts or the table: error collectors show local variables."""

import gc
import re
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any, NoReturn

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.errors import DEBUG, PrivacyError, SourceError, withholding
from matrixdp.measure.measurement import measure
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.papers.dawa import dawa
from matrixdp.papers.privbayes import privbayes
from matrixdp.sources import Source
from tests.measure.plans import plan
from tests.release.stopping import fail

#: How many records are in a cell; no part of a program has such a number.
SECRET = 7_717
SPEC: dict[str, Any] = {
    "domain": {"a": ["x", "y"], "b": ["p", "q"]},
    "workload": [{"marginals": [1, 2]}],
    "privacy": {"rho": 1e-6},
}
COLUMNS = {name: [own] * SECRET + [other] * 3 for name, own, other in (("a", "x", "y"), ("b", "p", "q"))}
WORKLOAD = mdp.Workload(mdp.Domain(SPEC["domain"]), mdp.marginals(2))
SERIES: dict[str, Any] = {
    "domain": {"month": {"from": "2025-01-01", "to": "2025-03-31", "by": "month"}, "b": ["x", "q"]},
    "workload": [{"marginals": [["month", "b"]]}],
    "series": {"attribute": "month"},
    "privacy": {"rho": 1e-6},
}


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error with its contexts and causes."""
    left, seen = [error], set[int]()
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            led = (one.__context__, one.__cause__, *getattr(one, "exceptions", ()))
            left += [own for own in led if isinstance(own, BaseException)]


def numbers(start: list[object]) -> Iterator[object]:
    """Yield all numbers and arrays that are reachable from some objects, but not by modules or classes."""
    left, seen = start, set[int]()
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, ModuleType | type | FrameType):
            continue
        seen.add(id(one))
        if isinstance(one, int | float | np.ndarray):
            yield one
        if isinstance(one, FunctionType):
            left += [cell.cell_contents for cell in one.__closure__ or ()]
        elif not isinstance(one, str | bytes):
            left += gc.get_referents(one)


def check_keeps_nothing(error: BaseException) -> None:
    """Check what a collector of errors prints, and what a debugger reaches from where a table was given."""
    frames = [frame for one in chain(error) for frame, _ in traceback.walk_tb(one.__traceback__)]
    ours = [str(frame.f_globals["__name__"]).startswith("matrixdp.") for frame in frames]
    shown = [frame.f_locals for frame in frames[ours.index(True) :]]
    for own in shown:
        for name, value in own.items():
            assert not {"7717", "7717.0", "'x'"} & {*re.split(r"[\[\](), ]+", repr(value))}, name
    held = [own for one in chain(error) for own in gc.get_referents(one)]
    for number in numbers([*shown, *(own for own in held if not isinstance(own, TracebackType))]):
        assert not np.any(np.asarray(number) == SECRET)
    collected = traceback.TracebackException.from_exception(error, capture_locals=True)
    assert "7717" not in "".join(collected.format())


def raising(error: BaseException) -> Callable[[str, float | None], None]:
    def progress(what: str, share: float | None) -> None:
        if what.startswith("measuring") and share:
            raise error

    return progress


def before() -> NoReturn:
    known = 12
    raise KeyError(known)


def handling(again: Callable[[KeyError], BaseException]) -> None:
    """Measure while an error is handled, in a callback that raises what follows from it."""
    try:
        before()
    except KeyError as error:
        mdp.release(SPEC, table=COLUMNS, progress=raising(again(error)))


def check_keeps_known(error: BaseException) -> None:
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    assert frame.f_locals["known"] == 12


def as_files(folder: Path) -> str:
    pd.DataFrame(COLUMNS).to_csv(folder / "t.csv", index=False)
    return str(folder / "t.csv")


TABLES: dict[str, Callable[[Path], object]] = {
    "arrays": lambda _: COLUMNS,
    "arrow": lambda _: pa.table(COLUMNS),
    "pandas": lambda _: pd.DataFrame(COLUMNS),
    "polars": lambda _: pl.LazyFrame(COLUMNS),
    "duckdb": lambda _: duckdb.from_arrow(pa.table(COLUMNS)),
    "csv": as_files,
}


@pytest.mark.parametrize("engine", TABLES)
def test_an_error_of_a_callback(engine: str, tmp_path: Path):
    with pytest.raises(OSError, match="No space") as caught:
        mdp.release(SPEC, table=TABLES[engine](tmp_path), progress=raising(OSError(28, "No space")))
    check_keeps_nothing(caught.value)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, PrivacyError])
@pytest.mark.parametrize("privacy", [{"rho": 1e-6}, {"epsilon": 1e-3}])
def test_an_interrupt_and_a_lack_of_memory_under_both_noises(
    error: type[BaseException], privacy: dict[str, float]
):
    with pytest.raises(error) as caught:
        mdp.release({**SPEC, "privacy": privacy}, table=COLUMNS, progress=raising(error("late")))
    check_keeps_nothing(caught.value)


def test_the_variables_of_a_callback_stay():
    def failing(what: str, share: float | None) -> None:
        seen = f"{what} {share}"
        try:
            raise OSError(seen)
        except OSError as error:
            raise RuntimeError("full") from error

    with pytest.raises(RuntimeError, match="full") as caught:
        mdp.release(SPEC, table=COLUMNS, progress=lambda *told: told[0] == "measuring" and failing(*told))
    check_keeps_nothing(caught.value)
    for one in chain(caught.value):
        *_, (frame, _) = traceback.walk_tb(one.__traceback__)
        assert frame.f_locals["seen"].startswith("measuring")


def test_a_callback_may_be_a_method_without_code():
    told: list[object] = []
    mdp.release(SPEC, table=COLUMNS, progress=MethodType(partial(lambda *stage: told.append(stage)), "at"))
    assert told


def test_errors_that_came_before_stay_as_they_are():
    with pytest.raises(OSError) as caught:
        handling(lambda _: OSError())
    check_keeps_nothing(caught.value)
    earlier = caught.value.__context__
    assert earlier is not None
    check_keeps_known(earlier)


def test_an_error_that_a_callback_raises_once_more():
    with pytest.raises(KeyError) as caught:
        handling(lambda error: error)
    check_keeps_nothing(caught.value)
    check_keeps_known(caught.value)


def test_an_error_of_an_earlier_time_keeps_the_variables_of_the_callback_and_of_what_it_called():
    with pytest.raises(KeyError) as earlier:
        before()
    with pytest.raises(KeyError) as caught:
        mdp.release(SPEC, table=COLUMNS, progress=raising(earlier.value))
    check_keeps_nothing(caught.value)
    check_keeps_known(caught.value)


def test_the_errors_in_a_group():
    def count(cells: list[int]) -> NoReturn:
        raise ValueError(len(cells))

    @withholding
    def read(cells: list[int]) -> NoReturn:
        failed = []
        for _ in range(2):
            try:
                count(cells)
            except ValueError as error:
                failed.append(error)
        raise ExceptionGroup("tasks", failed)

    with pytest.raises(ExceptionGroup) as caught:
        read([SECRET])
    frames = [frame for one in chain(caught.value) for frame, _ in traceback.walk_tb(one.__traceback__)]
    assert len(frames) >= 4
    assert not [frame for frame in frames if "cells" in frame.f_locals]


def test_who_debugs_sees_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(DEBUG, "1")
    with pytest.raises(OSError) as caught:
        mdp.release(SPEC, table=COLUMNS, progress=raising(OSError()))
    with pytest.raises(AssertionError):
        check_keeps_nothing(caught.value)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_a_disk_that_is_full_before_noise(noise: Any):
    strategy = mdp.select(WORKLOAD, noise=noise.name)
    with pytest.raises(OSError, match="No space") as caught:
        strategy.measure(COLUMNS, mdp.Budget(epsilon=1e-3, delta=1e-9), before_noise=fail)
    check_keeps_nothing(caught.value)


def test_the_second_round():
    def progress(what: str, share: float | None) -> None:
        """Fail in the round that begins after one is complete."""
        if what == "measuring" and share is not None:
            seen.append(share)
            if seen.count(1.0) == 1 and share < 1.0:
                raise OSError("second")

    seen: list[float] = []
    spec = {**SPEC, "privacy": {"rho": 1e-3}, "workload": [{"marginals": [1, 2]}], "rounds": 2}
    with pytest.raises(OSError, match="second") as caught:
        mdp.release(spec, table=COLUMNS, progress=progress)
    check_keeps_nothing(caught.value)


def test_a_series(tmp_path: Path):
    series = mdp.Series.start(SERIES, tmp_path / "series")
    table = {"month": ["2025-01-03"] * SECRET + ["2025-02-01"], "b": ["x"] * SECRET + ["q"]}
    with pytest.raises(OSError, match="late") as caught:
        series.publish(table, "2025-01", progress=raising(OSError("late")))
    check_keeps_nothing(caught.value)


@pytest.mark.parametrize(
    "run",
    [
        partial(dawa, mdp.Workload(mdp.Domain({"a": ["x", "y"]}), mdp.marginals(1))),
        partial(privbayes, WORKLOAD),
        lambda table, budget: mdp.select(WORKLOAD, "laplace").measure(table, budget),
    ],
    ids=["dawa", "privbayes", "measure"],
)
def test_no_random_bits(run: Callable[..., object], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("matrixdp.noise.source._system_bytes", fail)
    with pytest.raises(OSError, match="No space") as caught:
        run(COLUMNS, mdp.Budget(epsilon=1e-3))
    check_keeps_nothing(caught.value)


class Returning(Source):
    """A source of a third party, which returns what it is told."""

    def __init__(self, counts: Callable[[], object]) -> None:
        self.counts = counts

    def count(self, request: Any) -> Any:
        for subset in request.subsets:
            found = self.counts()
            yield subset, found


def _counts(kind: Callable[[list[list[int]]], object]) -> object:
    return kind([[SECRET, SECRET, SECRET]] * 4)


@pytest.mark.parametrize(
    ("kind", "error", "mu"),
    [
        (lambda rows: np.array(rows) * 2**45 + SECRET, PrivacyError, 2000),
        (list, AttributeError, 1),
    ],
    ids=["too many records", "no array"],
)
def test_counts_that_cannot_be_measured(kind: Any, error: type[Exception], mu: float):
    with pytest.raises(error) as caught:
        measure(plan("direct", GAUSSIAN), Returning(partial(_counts, kind)), mdp.Budget(mu=mu))
    check_keeps_nothing(caught.value)


def test_a_table_that_cannot_be_read():
    with pytest.raises(SourceError) as caught:
        mdp.select(WORKLOAD).measure({"a": COLUMNS["a"], "c": COLUMNS["b"]}, mdp.Budget(mu=1))
    check_keeps_nothing(caught.value)


def _lost() -> NoReturn:
    held = SECRET
    try:
        raise ValueError
    except ValueError:
        raise SourceError("lost") from KeyError(held - 1)


def _in_vain() -> NoReturn:
    try:
        _lost()
    except SourceError:
        raise SourceError("in vain") from None


def test_an_error_in_a_handler_of_another():
    with pytest.raises(SourceError, match="in vain") as caught:
        measure(plan("direct", GAUSSIAN), Returning(_in_vain), mdp.Budget(mu=1))
    check_keeps_nothing(caught.value)
