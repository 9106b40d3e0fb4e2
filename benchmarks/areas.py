"""A release of marginals in every area of a country: seconds, memory and disk, with nothing selected.

The plan is made by hand: residuals of every marginal of up to three of sex, age, race and hispanic, in every
area, or in every area of a tree of a nation, states and counties, too. Records are made once, in any order of
the areas.

python benchmarks/areas.py AREAS RECORDS FOLDER [tree]    in a process of its own, for its memory is told
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import matrixdp as mdp
from matrixdp.exact import CenteredMatrix, IdentityMatrix, MeasuredMatrix, TreeMatrix
from matrixdp.exact.resources import peak_memory_mb
from matrixdp.measure.measurement import measure
from matrixdp.noise import GAUSSIAN
from matrixdp.plans import Block, Part, Split
from matrixdp.plans.split import residual_weights
from matrixdp.releases.release import Release
from matrixdp.releases.transaction import save_release
from matrixdp.sources import open_source

OTHERS = {"sex": 2, "age": 21, "race": 63, "hispanic": 2}
_AT_ONCE = 1_000_000


def subsets() -> list[tuple[str, ...]]:
    """Return the sets of at most three of the attributes beside the area."""
    return [own for size in range(4) for own in combinations(OTHERS, size)]


def levels_of(areas: int) -> list[NDArray[np.int64]]:
    """Return the state and the county of every area: many small ones, and a few large ones."""
    random = np.random.default_rng(1)
    below, levels = areas, []
    for nodes in (max(1, areas * 3143 // 74000), max(1, areas * 51 // 74000)):
        ends = np.cumsum(random.lognormal(sigma=1.0, size=nodes))
        inside = np.searchsorted(ends / ends[-1], (np.arange(below) + 0.5) / below)
        levels.append(np.unique(inside, return_inverse=True)[1].astype(np.int64))
        below = int(levels[-1].max()) + 1
    counties, states = levels
    return [states[counties], counties]


def areas_matrix(areas: int, tree: bool) -> MeasuredMatrix:
    """Return what is measured of areas: each of them, or sums over all levels of a tree, too."""
    if not tree:
        return IdentityMatrix(areas)
    groups = [np.zeros(areas, np.int64), *levels_of(areas), np.arange(areas)]
    weights = [np.full(int(own.max()) + 1, weight) for own, weight in zip(groups, (3, 2, 2, 3), strict=True)]
    return TreeMatrix(tuple(groups), tuple(weights))


def plan_of(domain: mdp.Domain, tree: bool = False) -> Split:
    """Return a plan that measures the residual of each marginal in every area, with equal shares."""
    areas = Block(("geo",), areas_matrix(domain["geo"].size, tree))
    parts = []
    for own in subsets():
        blocks = (areas, *(Block((name,), CenteredMatrix(OTHERS[name])) for name in own))
        parts.append(Part(("geo", *own), blocks, 1.0).at_cost(GAUSSIAN, 1 / len(subsets())))
    weights = {name: residual_weights(size) for name, size in OTHERS.items()}
    return Split(domain, tuple(parts), GAUSSIAN, {"geo": np.zeros(domain["geo"].size), **weights})


def workload_of(domain: mdp.Domain, tree: bool = False) -> mdp.Workload:
    """Return the marginals in every area, and in every area of all levels of a tree."""
    entries: list[Any] = [mdp.marginals([["geo", *own] for own in subsets()])]
    if tree:
        entries.append(mdp.marginals([list(own) for own in subsets()]))
        for level in levels_of(domain["geo"].size):
            sets = [np.flatnonzero(level == node).tolist() for node in range(int(level.max()) + 1)]
            for own in subsets():
                asked: dict[str, Any] = dict.fromkeys(own, "identity")
                entries.append(mdp.product(geo={"sets": sets}, **asked))
    return mdp.Workload(domain, *entries)


def write_records(path: Path, areas: int, records: int) -> None:
    """Write records in any order; areas and groups have heavy tails."""
    random = np.random.default_rng(0)
    sizes = np.cumsum(random.lognormal(size=areas))
    shares = {name: np.cumsum(random.gamma(0.5, size=size)) for name, size in OTHERS.items()}
    narrow = dict.fromkeys(OTHERS, np.uint8) | {"geo": np.int32}
    schema = pa.schema([("geo", pa.int32()), *((name, pa.uint8()) for name in OTHERS)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, records, _AT_ONCE):
            many = min(_AT_ONCE, records - start)
            drawn = {
                name: np.searchsorted(own, random.random(many) * own[-1]).astype(narrow[name])
                for name, own in {"geo": sizes, **shares}.items()
            }
            writer.write_table(pa.table(drawn, schema=schema))


def main(areas: int, records: int, folder: Path, tree: bool) -> None:
    """Measure, and write the release; print what each step took."""
    table = folder / f"records-{areas}-{records}.parquet"
    if not table.exists():
        write_records(table, areas, records)
    domain = mdp.Domain({"geo": areas, **OTHERS})
    workload = workload_of(domain, tree)
    clock = time.process_time(), time.monotonic()
    begun = clock

    def told(step: str) -> None:
        nonlocal clock
        now = time.process_time(), time.monotonic()
        took = [f"{new - old:.1f}" for new, old in zip(now, clock, strict=True)]
        peak = f"peak {peak_memory_mb():,.0f} MB"
        print(f"{step}: {took[0]} processor seconds, {took[1]} s, {peak}", flush=True)
        clock = now

    plan = plan_of(domain, tree)
    told("plan")
    measured = measure(plan, open_source(str(table)), mdp.Budget(mu=1))
    told("measure")
    release = Release(measured, workload)
    with tempfile.TemporaryDirectory(dir=folder) as parent:
        out = save_release(release, Path(parent, "out"), max_answers=workload.queries)
        told("save")
        for file in sorted(out.rglob("*")):
            print(f"  {file.relative_to(out)}: {file.stat().st_size / 1e6:,.0f} MB")
    spent = time.process_time() - begun[0]
    each = f"{spent:.0f} processor seconds, {areas / spent:.0f} areas a second"
    print(f"{areas:,} areas, {workload.queries:,} answers: {each}")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]), int(given[1]), Path(given[2]), given[3:] == ["tree"])
