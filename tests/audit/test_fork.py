"""Copies of a process, made when the random source was there already, never release the same noise."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.audit import exact_tests as exact
from tests.audit.power import LEVEL, same_signs_seen

CELLS = 20_000
#: So many children of `os.fork`, so many of a pool of processes, and the parent.
CHILDREN = 2
RELEASES = 2 * CHILDREN + 1

#: A process of its own, since a fork copies the threads of no other: the parent measures last.
PROGRAM = """
import multiprocessing, os, sys
from pathlib import Path

import numpy as np

import matrixdp as mdp
from matrixdp.measure import measurement
from matrixdp.noise import SystemSource

folder, kept, cells, children = Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])


class Kept(SystemSource):
    def __init__(self):
        self.words, self.place = np.frombuffer(os.urandom(8 * cells), dtype=np.uint64), 0

    def bits64(self, count):
        self.place += count
        return self.words[self.place - count : self.place].copy()


source = Kept() if kept == "kept" else SystemSource()
source.more_bits(1)
measurement.random_source = lambda _seed: source
workload = mdp.Workload(mdp.Domain({"a": cells}), mdp.marginals(1))
strategy = mdp.select(workload, noise="laplace", mechanism="identity")


def release(number):
    measured = strategy.measure({"a": np.arange(0, cells, 2)}, mdp.Budget(epsilon=0.1)).measurement
    assert measured.private
    np.save(folder / f"{number}.npy", measured.values[0])


forked = []
for number in range(1, 1 + children):
    process = os.fork()
    if process == 0:
        release(number)
        os._exit(0)
    forked.append(process)
assert all(os.waitpid(process, 0)[1] == 0 for process in forked)
with multiprocessing.get_context("fork").Pool(children) as pool:
    pool.map(release, range(1 + children, 1 + 2 * children), chunksize=1)
release(0)
"""


def agreements(folder: Path, source: str) -> list[float]:
    """Return for every two releases how likely it is that their noise agrees so often in sign."""
    program = [sys.executable, "-c", PROGRAM, str(folder), source, str(CELLS), str(CHILDREN)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = np.zeros(CELLS)
    counts[::2] = 1
    noise = [np.load(folder / f"{number}.npy") - counts for number in range(RELEASES)]
    return [exact.agreement(left, right) for left, right in combinations(noise, 2)]


@pytest.mark.slow
def test_children_draw_noise_of_their_own_and_kept_bits_are_found(tmp_path: Path):
    assert exact.worst(agreements(tmp_path, "system")) >= LEVEL
    found = agreements(tmp_path, "kept")
    # each of the children, and the parent, has what the parent kept before they were made
    assert max(found) * len(found) < LEVEL
    assert same_signs_seen(CELLS)
