"""Threads are limited within a context and as before after it, in libraries that are loaded inside it too."""

import gc
import json
import os
import subprocess
import sys

import pyarrow as pa
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import matrixdp as mdp
from matrixdp.exact.resources import blas_threads, one_blas_thread, processors, rare_collections
from matrixdp.sources.engines import THREADS, connect


def _threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_limits_are_those_of_the_context() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        for _ in range(2):
            with one_blas_thread():
                with one_blas_thread():
                    assert _threads() == {1}
                assert _threads() == {1}
            assert _threads() == {2}


def test_libraries_are_looked_for_once() -> None:
    with one_blas_thread():
        pass
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("threadpoolctl.ThreadpoolController", None)
        with one_blas_thread():
            pass


def _in_a_fresh_process(code: str, **environment: str) -> list[list[int]]:
    """Return the lines of numbers that a process prints that has loaded no library."""
    start = "from matrixdp.exact.resources import *\nfrom threadpoolctl import threadpool_info\n"
    look = "look = lambda: print([pool['num_threads'] for pool in threadpool_info()])\n"
    done = subprocess.run(
        [sys.executable, "-c", start + look + code],
        env={**os.environ, "OMP_NUM_THREADS": "", "OPENBLAS_NUM_THREADS": "2", **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


INSIDE = "import numpy\nwith one_blas_thread():\n    import scipy.linalg\n    look()\nlook()\n"
NESTED = """
with one_blas_thread():
    look()
    with blas_threads(10_000):
        look()
        with one_blas_thread():
            look()
        look()
    look()
look()
"""


@pytest.mark.parametrize("first", ["", "import scipy.linalg\n"])
def test_a_library_that_is_loaded_inside_is_limited(first: str) -> None:
    inside, after = _in_a_fresh_process(first + INSIDE)
    assert set(inside) == {1}
    assert set(after) == {2}
    assert len(inside) == len(after)


def test_nested_contexts_limit_all_pools_and_restore_them() -> None:
    looks = _in_a_fresh_process(NESTED, LOKY_MAX_CPU_COUNT="2")
    # not more than the processors that there are
    several = set(looks[1])
    assert several == {min(2, processors())}
    assert [set(look) for look in looks] == [{1}, several, {1}, several, {1}, {2}]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="there is no affinity")
def test_no_more_threads_than_processors_that_the_process_may_use() -> None:
    code = "import os\nos.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])\nprint([processors()])\n"
    found, pools = _in_a_fresh_process(code + "with blas_threads(10_000):\n    look()\n")
    assert found == [1]
    assert set(pools) == {1}


def test_databases_and_arrow_follow_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    before = pa.cpu_count()
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    try:
        pa.set_cpu_count(2)
        with blas_threads(10_000), connect() as connection:
            assert connection.execute("SELECT current_setting('threads')").fetchone() == (1,)
            assert _threads() == {1}
        assert pa.cpu_count() == 1
        monkeypatch.setenv(THREADS, "3")
        with connect() as connection:
            assert connection.execute("SELECT current_setting('threads')").fetchone() == (3,)
    finally:
        pa.set_cpu_count(before)


OVERLAPPING = """
import threading
entered, left = threading.Event(), threading.Event()
def second():
    with one_blas_thread():
        entered.set()
        left.wait(600)
other = threading.Thread(target=second)
with one_blas_thread():
    other.start()
    entered.wait(600)
left.set()
other.join(600)
look()
with one_blas_thread():
    look()
look()
"""


def test_contexts_of_two_threads_that_overlap_leave_no_limit() -> None:
    assert [set(look) for look in _in_a_fresh_process(OVERLAPPING)] == [{2}, {1}, {2}]


def test_garbage_is_looked_for_rarely_inside_alone() -> None:
    """Whichever context ends first, after errors too; a collector that is off stays so."""
    before = gc.get_threshold()
    first, second = rare_collections(), rare_collections()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() > before
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before

    @rare_collections()
    def failing() -> None:
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        failing()
    assert gc.get_threshold() == before
    try:
        gc.set_threshold(0)
        with rare_collections():
            assert gc.get_threshold()[0] == 0
        gc.set_threshold(10**6, 50, 50)
        with rare_collections():
            assert gc.get_threshold() == (10**6, 50, 50)
    finally:
        gc.set_threshold(*before)


def test_workloads_and_selections_restore_the_collector() -> None:
    before, inside = gc.get_threshold(), []
    workload = mdp.Workload(mdp.Domain({"a": 3, "b": 2}), mdp.marginals([1, 2]))
    assert gc.get_threshold() == before
    mdp.select(workload, progress=lambda *_: inside.append(gc.get_threshold()))
    assert inside
    assert min(inside) > before == gc.get_threshold()
