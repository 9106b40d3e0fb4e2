"""Workers measure runs of areas: the counts and the noise of one process, and never two noises."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp import mapped
from matrixdp.domain import OutOfDomain
from matrixdp.measure import noisy_answers, workers
from matrixdp.measure.measurement import Measurement, measure
from matrixdp.measure.workers import Workers
from matrixdp.plans import Slices, Split
from matrixdp.plans import slices as sliced
from matrixdp.sources import open_source
from tests.measure.test_sliced_trees import COUNTIES, WHOLE, plan
from tests.measure.test_slices import AREAS, TABLE
from tests.measure.test_slices import plan as identities

BUDGET = mdp.Budget(mu=50)
LOCAL = Workers(map)
PLANS = {"tree": lambda: plan(WHOLE), "no areas": lambda: plan(COUNTIES), "areas": identities}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(TABLE), path)
    return path


@pytest.fixture(params=[3, 8, 99], ids=["states", "counties", "areas"])
def few(request, monkeypatch):
    """Slices of few areas, and runs that are nodes of one level, or single areas."""
    monkeypatch.setattr(sliced, "LEAST_CUT", 10)
    monkeypatch.setattr(sliced, "_CELLS", 2 * 72)
    monkeypatch.setattr(sliced, "_LEAST_RUNS", request.param)
    monkeypatch.setattr(mapped, "LARGEST_HELD", 16)


def check(asked: Split, measured: Measurement, table: dict[str, Any] = TABLE) -> None:
    """Check that every row has its count and about its noise."""
    counts = dict(open_source(table).marginals(asked.domain, list(asked.positions), OutOfDomain()))
    for part, values, scale in zip(asked.parts, measured.values, measured.scales, strict=True):
        true = np.array(part.answers(counts[part.attributes], 10**6).values(), float)
        errors = (np.asarray(values) - true) / np.sqrt(scale.variance)
        assert np.abs(errors).max() < 7
        assert len(np.unique(errors)) > 0.9 * len(errors)  # no row has the noise of another


@pytest.mark.parametrize("kind", PLANS)
def test_workers_measure_as_one_process_does(few, people, kind):
    asked, calls = PLANS[kind](), []
    alone = measure(asked, open_source(people), BUDGET)
    found = measure(
        asked, open_source(people), BUDGET, workers=Workers(map), progress=lambda *own: calls.append(own)
    )
    assert found.scales == alone.scales
    assert found.authorization.cost == alone.authorization.cost
    check(asked, found)
    assert calls == [(done + 1, len(calls)) for done in range(len(calls))]
    cut = Slices.of(asked)
    assert cut is not None
    assert len(calls) == len(cut.runs()) + 1
    assert {*found.values[0][0:3]}.isdisjoint(alone.values[0][0:3])


def test_a_small_plan_is_measured_by_workers_too(people):
    found = measure(plan(WHOLE), open_source(people), BUDGET, workers=Workers(map))
    assert all(isinstance(own, np.ndarray) for own in found.values)
    check(plan(WHOLE), found)


def test_areas_in_any_order(people, monkeypatch):
    monkeypatch.setattr(sliced, "_LEAST_RUNS", 3)
    order = np.random.default_rng(1).permutation(AREAS)

    def mixed(tree):
        firsts = [group[order] for group in tree.groups]
        numbered = [np.unique(own, return_index=True)[1] for own in firsts]
        ranks = [np.argsort(np.argsort(own)) for own in numbered]
        groups = tuple(rank[own] for rank, own in zip(ranks, firsts, strict=True))
        weights = tuple(own[np.argsort(rank)] for rank, own in zip(ranks, tree.weights, strict=True))
        return type(tree)(groups, weights)

    asked = plan([mixed(tree) for tree in WHOLE])
    check(asked, measure(asked, open_source(people), BUDGET, workers=Workers(map)))


def test_a_task_that_runs_twice_leaves_one_noise(few, people, monkeypatch):
    drawn, real, lock = [], noisy_answers.noisy, threading.Lock()

    def noted(*given, **named):
        with lock:
            drawn.append(1)
        time.sleep(0.001)
        return real(*given, **named)

    monkeypatch.setattr(noisy_answers, "noisy", noted)
    monkeypatch.setattr(workers, "_WAIT", 0.01)

    def often(function, numbers):
        with ThreadPoolExecutor(3) as pool:
            attempts = [[pool.submit(function, number) for _ in range(3)] for number in numbers]
            for each in attempts:
                found = [attempt.result() for attempt in each]
                if isinstance(found[0], dict):
                    for key in found[0]:
                        assert all(np.array_equal(own[key][1], found[0][key][1]) for own in found)
                yield found[-1]

    check(asked := plan(WHOLE), measure(asked, open_source(people), BUDGET, workers=Workers(often)))
    twice, drawn[:] = len(drawn), []
    measure(asked, open_source(people), BUDGET, workers=Workers(map))
    assert twice == len(drawn)


def test_a_worker_that_is_killed_is_run_again(few, people, tmp_path, monkeypatch):
    process, real = get_context("fork"), noisy_answers.noisy
    once, drawn = tmp_path / "killed", []

    def fatal(*given, **named):
        drawn.append(1)
        if len(drawn) == 4 and not once.exists():
            once.touch()
            os._exit(9)
        return real(*given, **named)

    monkeypatch.setattr(noisy_answers, "noisy", fatal)
    seen: list[list[str]] = []

    def again(function, numbers):
        for number in numbers:
            while True:
                ours, theirs = process.Pipe(duplex=False)
                worker = process.Process(target=lambda n=number, end=theirs: end.send(function(n)))
                worker.start()
                theirs.close()
                try:
                    yield ours.recv()
                    worker.join()
                    assert not [*tmp_path.glob("shared/*/*.drawing")]
                    break
                except EOFError:
                    worker.join()
                    seen.append([path.name for path in tmp_path.glob("shared/*/*.drawing")])

    (tmp_path / "shared").mkdir()
    asked = plan(WHOLE)
    check(asked, measure(asked, open_source(people), BUDGET, workers=Workers(again, tmp_path / "shared")))
    assert [len(left) for left in seen] == [1]
    assert [*(tmp_path / "shared").iterdir()] == []


def test_answers_that_are_gone_are_found(people, tmp_path):
    def forgetful(function, numbers):
        found = [function(number) for number in numbers]
        for path in tmp_path.glob("*/*.found"):
            path.unlink()
            break
        return found

    with pytest.raises(mdp.StorageError) as caught:
        measure(plan(WHOLE), open_source(people), BUDGET, workers=Workers(forgetful, tmp_path))
    assert caught.value.code == "file-missing"


def test_what_workers_cannot_do_costs_nothing(people, tmp_path, monkeypatch):
    asked = identities()
    ledger = mdp.Ledger.create(tmp_path / "ledger", "people", mdp.Budget(mu=99))

    def rejected(code, path=None, table=people, given=LOCAL, **options):
        with pytest.raises(mdp.MatrixDPError) as caught:
            measure(asked, open_source(table), mdp.Budget(mu=1), ledger=ledger, workers=given, **options)
        assert (caught.value.code, caught.value.path) == (code, path or ())
        assert ledger.left == mdp.Ledger.open(tmp_path / "ledger").total

    counts = OutOfDomain.from_spec(asked.domain, {"count": True})
    rejected("not-supported", ("workers",), out_of_domain=counts)
    rejected("not-supported", ("data",), table=TABLE)
    rejected("storage", given=Workers(map, tmp_path / "nowhere"))

    def no_links(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "link", no_links)
    rejected("not-supported")


def test_a_lock_that_cannot_be_made_is_not_waited_for(people, tmp_path, monkeypatch):
    def full(path):
        raise mdp.StorageError(f"{path}: cannot be opened (No space left on device)")

    def filling(function, numbers):
        yield from map(function, numbers)
        monkeypatch.setattr(workers, "Lock", full)  # once all are ready

    with pytest.raises(mdp.StorageError, match="No space left"):
        measure(plan(WHOLE), open_source(people), BUDGET, workers=Workers(filling, tmp_path))
