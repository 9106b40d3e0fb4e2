"""Every area of a nation: selection, whole releases, and whole numbers.

python benchmarks/areas.py selection
python benchmarks/areas.py kinds
python benchmarks/areas.py release SMALLEST RECORDS [FOLDER]    marginals in every area down to these
python benchmarks/areas.py integers

A selection, a release and a table of whole numbers are each a process of their own, for its memory is told.
"""

from __future__ import annotations

import json
import math
import pickle
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from harness import emit, figures_of, measured
from nation import OTHERS, SUBSETS, Nation, Subset, counts_of, write_records
from numpy.typing import NDArray
from scipy.optimize import minimize

import matrixdp as mdp
from matrixdp.domain import Domain
from matrixdp.exact.resources import peak_memory_mb
from matrixdp.measure.measurement import measure
from matrixdp.model.tables import IntegerTable
from matrixdp.releases.release import Release
from matrixdp.selection.gram.trees import Tree, tree_loss, tree_shares
from matrixdp.selection.limits import override
from matrixdp.sources.base import Request, Source

__all__ = ["WAYS", "WORKLOADS"]

Array = NDArray[np.float64]
#: Of a level: marginals, and the weight of each of their queries.
Asked = tuple[tuple[Subset, ...], float]
#: By level the precisions of nodes and classes.
Precisions = Sequence[Array]

#: How a budget may be shared among areas of all levels.
WAYS = ("areas alone", "equal shares", "shares by level", "matrixdp")
_SEED = 3


def _up_to(most: int, without: tuple[str, ...] = ()) -> tuple[Subset, ...]:
    return tuple(own for own in SUBSETS if len(own) <= most and not set(own) & set(without))


@dataclass(frozen=True)
class _Workload:
    """What every level asks, from the nation down; weighted: 1 / areas of the level, in those of the last."""

    asks: tuple[tuple[Subset, ...], ...]
    smallest: str = "tract"
    weighted: bool = False
    noise: str = "gaussian"

    def asked(self, nation: Nation) -> list[Asked]:
        weights = [nation.counts[-1] / areas if self.weighted else 1.0 for areas in nation.counts]
        return list(zip(self.asks, weights, strict=True))


_NO_RACE = _up_to(2, ("race",))
WORKLOADS: dict[str, _Workload] = {
    "up to 3-way at every level": _Workload((_up_to(3),) * 4),
    "3-, 3-, 2-, 1-way": _Workload((_up_to(3), _up_to(3), _up_to(2), _up_to(1))),
    "4-, 3-, 2-, 1-way, weight 1/areas": _Workload(
        (_up_to(4), _up_to(3), _up_to(2), _up_to(1)), weighted=True
    ),
    "race at nation and tracts": _Workload((_up_to(2), _NO_RACE, _NO_RACE, _up_to(1))),
    "counts of areas, epsilon 1": _Workload((_up_to(0),) * 4, noise="laplace"),
    "a million blocks, up to 3-way": _Workload((_up_to(3),) * 6, "block"),
}


# Selection.


class _Classes:
    """The residuals of subsets of the other attributes, and what each level asks of them.

    A marginal of B asks the product of the sizes of all attributes outside B of the class of each A' within
    B. Measured at privacy cost 1, class A' of rank r has the squared error r^2 / N, N the number of cells.
    """

    def __init__(self, nation: Nation, asked: Sequence[Asked], noise: str) -> None:
        self.tree, self.noise, self.asked = Tree.of(nation.groups), noise, asked
        self.areas, cells = nation.counts, math.prod(OTHERS.values())
        wanted = [own for own in SUBSETS if any(set(own) <= set(one) for level, _ in asked for one in level)]
        ranks = np.array([math.prod(OTHERS[name] - 1 for name in own) for own in wanted])
        self.losses = ranks.astype(np.float64) ** 2 / cells
        self.weights = [
            weight * np.array([sum(_rest(one) for one in level if set(own) <= set(one)) for own in wanted])
            for level, weight in asked
        ]

    @property
    def norm(self) -> int:
        return 1 if self.noise == "laplace" else 2

    @property
    def queries(self) -> list[int]:
        return [
            areas * sum(math.prod(OTHERS[name] for name in one) for one in level)
            for areas, (level, _) in zip(self.areas, self.asked, strict=True)
        ]

    def loss(self, precisions: Precisions, weights: Precisions | None = None) -> float:
        own = self.weights if weights is None else weights
        return tree_loss(self.tree, own, self.losses, precisions, self.norm)

    def by_level(self, precisions: Precisions) -> list[float]:
        """Return the RMSE of the queries of each level: the loss is linear in their weights."""
        whole, found = self.loss(precisions), []
        for level, (_, weight) in enumerate(self.asked):
            doubled = [own * (2.0 if place == level else 1.0) for place, own in enumerate(self.weights)]
            found.append((self.loss(precisions, doubled) - whole) / weight)
        return self._errors(found)

    def _errors(self, losses: Sequence[float]) -> list[float]:
        factor = 2.0 if self.noise == "laplace" else 1.0
        return [math.sqrt(factor * own / many) for own, many in zip(losses, self.queries, strict=True)]

    def alone(self) -> list[float]:
        """Return the same where the smallest areas alone are measured, and larger ones are their sums."""
        smallest = self.areas[-1]
        asked = smallest * np.array(self.weights) * self.losses  # every level sums over all smallest areas
        parts = _parts(asked.sum(axis=0), self.norm)
        spent = np.array([weight for _, weight in self.asked])[:, None] * parts ** (3 - self.norm)
        return self._errors((asked / spent).sum(axis=1).tolist())

    def equal(self) -> Precisions:
        """Return equal shares of the levels, each shared among its classes as is best for it alone."""
        areas, parts = np.array(self.areas), []
        for own, many in zip(self.weights, areas, strict=True):
            parts.append(_parts(many * own * self.losses, self.norm) / len(areas))
        return parts

    def shared_by_level(self) -> Precisions:
        """Return shares of levels, class by class: those that are best where all areas of a level are alike.

        Under Laplace noise, where there is one class, the best ones that a search finds.
        """
        if self.norm == 1:
            search = minimize(self._searched, np.zeros(len(self.areas) - 1), method="Nelder-Mead")
            return _softmax(search.x)
        found = np.zeros((len(self.areas), len(self.losses)))
        alone = np.zeros(len(self.losses))
        for place, loss in enumerate(self.losses):
            asked = np.array([own[place] for own in self.weights])
            depth = int(np.flatnonzero(asked).max()) + 1
            found[:depth, place] = _regular(asked[:depth], self.areas[:depth])
            own = [level[[place]] for level in found]
            alone[place] = tree_loss(
                self.tree, [np.array([one]) for one in asked], np.array([loss]), own, self.norm
            )
        return list(found * _parts(alone, self.norm))

    def apart(self) -> float:
        """Return the loss where every class has a budget of its own, the same on all paths."""
        alone = [
            tree_shares(self.tree, [own[[place]] for own in self.weights], loss[None], self.norm).loss
            for place, loss in enumerate(self.losses)
        ]
        power = 4 - self.norm
        return float((np.array(alone) ** (1 / power)).sum() ** power)

    def _searched(self, logarithms: Array) -> float:
        return self.loss(_softmax(logarithms))


def _softmax(logarithms: Array) -> list[Array]:
    """Return shares by level with these logarithms relative to that of the last level."""
    shares = np.exp(np.append(logarithms, 0.0))
    return list((shares / shares.sum())[:, None])


def _rest(subset: Subset) -> int:
    return math.prod(size for name, size in OTHERS.items() if name not in subset)


def _parts(losses: Array, norm: int) -> Array:
    """Return the shares of classes with these losses at privacy cost 1 that err least in all."""
    pulls = losses ** (1.0 / (4 - norm))
    return np.asarray(pulls / pulls.sum())


def _regular(asked: Array, areas: Sequence[int]) -> Array:
    """Return shares of levels from mean sizes (docs/mathematics.md, trees of areas)."""
    sizes = areas[-1] / np.array(areas)
    roots = np.sqrt(np.cumsum((asked * sizes)[::-1])[::-1])
    shares = (roots - np.append(roots[1:], 0.0)) / sizes
    return np.asarray(shares / shares.sum())


def _specification(nation: Nation, asked: Sequence[Asked], noise: str) -> dict[str, Any]:
    return {
        "data": "people.parquet",
        "domain": {nation.smallest: {"levels_from": "areas.csv"}, **OTHERS},
        "workload": nation.entries(asked),
        "privacy": {"epsilon": 1} if noise == "laplace" else {"mu": 1},
    }


def _write_specification(folder: Path, specification: dict[str, Any]) -> Path:
    path = folder / "people.yaml"
    path.write_text(json.dumps(specification))  # which is YAML too
    return path


def select(name: str) -> dict[str, Any]:
    """Return the errors of all ways, by level, and what ours took."""
    workload, nation = WORKLOADS[name], Nation.down_to(WORKLOADS[name].smallest)
    asked, noise = workload.asked(nation), workload.noise
    with tempfile.TemporaryDirectory() as folder:
        nation.write_areas(Path(folder, "areas.csv"))
        path = _write_specification(Path(folder), _specification(nation, asked, noise))
        begun = time.process_time()
        specification = mdp.load_specification(path)
        read = time.process_time()
        strategy = mdp.select(specification.workload, budget=specification.budget)
        taken = time.process_time() - read
    certificate, peak = strategy.certificate, peak_memory_mb()
    assert certificate.lower_bound is not None
    assert specification.budget is not None
    classes = _Classes(nation, asked, noise)
    shares = tree_shares(classes.tree, classes.weights, classes.losses, classes.norm)
    factor = 2.0 if noise == "laplace" else 1.0
    assert math.isclose(factor * shares.loss, certificate.loss, rel_tol=1e-6), (shares.loss, certificate)
    ways = {
        "areas alone": classes.alone(),
        "equal shares": classes.by_level(classes.equal()),
        "shares by level": classes.by_level(classes.shared_by_level()),
        "matrixdp": classes.by_level(shares.precisions),
    }
    rows = specification.workload.queries
    assert sum(classes.queries) == rows
    return {
        "levels": nation.levels,
        "areas": nation.counts,
        "queries": rows,
        "noise": noise,
        "mechanism": strategy.mechanism,
        "weights": [weight for _, weight in asked],
        "by_level": ways,
        **{way: _overall(classes, own) for way, own in ways.items()},
        "apart": math.sqrt(classes.apart() / shares.loss) - 1,
        "rmse": strategy.rmse(specification.budget),
        "gap": math.sqrt(certificate.loss / certificate.lower_bound) - 1,
        "reading": read - begun,
        "cpu_seconds": taken,
        "peak_mb": peak,
    }


def _overall(classes: _Classes, errors: Sequence[float]) -> float:
    """Return the RMSE over all queries, by their weights."""
    many = np.array(classes.queries) * [weight for _, weight in classes.asked]
    return math.sqrt(float((many * np.square(errors)).sum() / many.sum()))


#: What levels ask of ages, from the nation down, and whether all areas of a level weigh as much as one.
KINDS: dict[str, tuple[tuple[str | None, ...], bool]] = {
    "prefixes down to counties, single ages": (("prefix", "prefix", "prefix", "identity"), False),
    "the same, weight 1/areas": (("prefix", "prefix", "prefix", "identity"), True),
    "single ages down to states, prefixes": (("identity", "identity", "prefix", "prefix"), False),
    "prefixes, single ages in counties, totals, weight 1/areas": (
        ("prefix", "prefix", "identity", None),
        True,
    ),
}


def kinds(name: str) -> dict[str, Any]:
    """Return how far levels that ask several kinds of ages are above the bound, with rows and without."""
    (asked, weighted), nation = KINDS[name], Nation.down_to("tract")
    entries = []
    for groups, ages, areas in zip(nation.groups, asked, nation.counts, strict=True):
        order, ends = np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1]
        own: dict[str, Any] = {} if ages is None else {"age": ages}
        if areas > 1:
            own["area"] = {"sets": [codes.tolist() for codes in np.split(order, ends)]}
        entries.append(mdp.product(**own, weight=nation.counts[-1] / areas if weighted else 1.0))
    workload = mdp.Workload(mdp.Domain({"area": nation.counts[-1], "age": OTHERS["age"]}), *entries)
    begun = time.process_time()
    certificate = mdp.select(workload, noise="gaussian").certificate
    taken, peak = time.process_time() - begun, peak_memory_mb()
    with override(row_cells_of_trees=0):
        alone = mdp.select(workload, noise="gaussian").certificate
    bound = certificate.lower_bound
    assert bound is not None
    return {
        "queries": workload.queries,
        "gap": math.sqrt(certificate.loss / bound) - 1,
        "one strategy": math.sqrt(alone.loss / bound) - 1,
        "cpu_seconds": taken,
        "peak_mb": peak,
    }


# Releases.


def release(folder: Path) -> dict[str, Any]:
    """Release, and return what that took."""
    begun = time.process_time()
    mdp.release(folder / "people.yaml", folder / "out", max_answers=10**9)
    return {"cpu_seconds": time.process_time() - begun, "peak_mb": peak_memory_mb()}


def verify(folder: Path) -> dict[str, Any]:
    """Verify the release, and return what that took."""
    begun = time.process_time()
    assert mdp.verify_release(folder / "out").holds
    return {"verify_cpu_seconds": time.process_time() - begun, "verify_peak_mb": peak_memory_mb()}


def release_by_workers(folder: Path) -> dict[str, Any]:
    """Release by two processes that share runs of areas, from records that are sorted by area."""
    area = next(iter(json.loads((folder / "people.yaml").read_text())["domain"]))
    records = pq.read_table(folder / "people.parquet")
    records = records.take(pc.sort_indices(records[area].cast(pa.utf8())))
    pq.write_table(records, folder / "people.parquet", row_group_size=1 << 14)
    del records
    tasks, moved, begun = [], [], time.process_time()

    with ProcessPoolExecutor(2, get_context("spawn")) as pool:

        def counted(function: Callable[[int], Any], numbers: Iterable[int]) -> Iterator[Any]:
            own = [*numbers]
            found = [*pool.map(function, own)]
            tasks.append(len(own))
            moved.append(max(len(pickle.dumps(one)) for one in found))
            yield from found

        out = folder / "out"
        mdp.release(folder / "people.yaml", out, max_answers=10**9, workers=mdp.Workers(counted))
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "workers": {
            "cpu_seconds": time.process_time() - begun + children.ru_utime + children.ru_stime,
            "peak_mb": peak_memory_mb(),
            "worker_peak_mb": children.ru_maxrss / 1024,
            "runs": tasks[1],
            "parts": tasks[2] if len(tasks) > 2 else 0,
            "most_moved_kb": moved[1] / 1e3,
        }
    }


def released(smallest: str, records: int, parent: Path | None) -> dict[str, Any]:
    """Return the cost of a release of marginals in every area, and its errors beside the predicted ones."""
    nation = Nation.down_to(smallest)
    asked: list[Asked] = [(_up_to(3), 1.0)] * len(nation.levels)
    with tempfile.TemporaryDirectory(dir=parent) as place:
        folder = Path(place)
        nation.write_areas(folder / "areas.csv")
        write_records(folder / "people.parquet", nation, records)
        _write_specification(folder, _specification(nation, asked, "gaussian"))
        took = _own_process("release-step", str(folder)) | _own_process("verify-step", str(folder))
        out = folder / "out"
        sizes = {
            name.name: sum(one.stat().st_size for one in [name, *name.rglob("*")] if one.is_file()) / 1e6
            for name in sorted(out.iterdir())
        }
        found = _found(out, nation, asked, records)
        shutil.rmtree(out)
        took |= _own_process("workers-step", str(folder))
        by_workers = _found(out, nation, asked, records)
    classes = _Classes(nation, asked, "gaussian")
    shares = tree_shares(classes.tree, classes.weights, classes.losses)
    return {
        "smallest": smallest,
        "areas": nation.counts,
        "levels": nation.levels,
        "queries": sum(classes.queries),
        "records": records,
        "files_mb": sizes,
        "predicted": classes.by_level(shares.precisions),
        "found": found,
        "found_by_workers": by_workers,
        **took,
    }


def _found(out: Path, nation: Nation, asked: Sequence[Asked], records: int) -> list[float]:
    """Return the RMSE of the answers of each level, against the true counts."""
    groups = iter(json.loads((out / "release.json").read_text())["groups"])
    found = []
    for level, (subsets, _) in enumerate(asked):
        own = [next(groups) for _ in subsets]
        true = [counts_of(nation, records, level, subset).astype(np.int32) for subset in subsets]
        counts = dict(zip((group["name"] for group in own), true, strict=True))
        squares, done = 0.0, dict.fromkeys(counts, 0)
        for path in sorted(out.glob(f"answers/level={own[0]['level']}/*.parquet")):
            for batch in pq.ParquetFile(path).iter_batches(1 << 20, columns=["group", "estimate"]):
                names, estimates = batch["group"].cast(pa.utf8()), batch["estimate"].to_numpy()
                for name in pc.unique(names).to_pylist():
                    here = estimates[pc.equal(names, name).to_numpy(zero_copy_only=False)]
                    start = done[name]
                    done[name] = start + len(here)
                    squares += float(np.square(here - counts[name][start : done[name]]).sum())
        assert done == {name: len(every) for name, every in counts.items()}
        found.append(math.sqrt(squares / sum(done.values())))
    assert next(groups, None) is None
    return found


# Whole numbers.

_CELLS = {"a": 2, "b": 4, "c": 6}


class _Given(Source):
    """True counts, in place of their hundreds of millions of records."""

    def __init__(self, domain: Domain, counts: NDArray[np.int64]) -> None:
        self._names, self._counts = domain.names, counts

    def check_columns(self, request: Request) -> None:
        pass

    def count(self, request: Request) -> Any:
        for subset in request.subsets:
            own = self._counts.sum(axis=tuple(i for i, name in enumerate(self._names) if name not in subset))
            kept = [name for name in self._names if name in subset]
            yield subset, np.ascontiguousarray(np.transpose(own, [kept.index(name) for name in subset]))


def integers() -> dict[str, Any]:
    """Return the errors of unbiased estimates, of clipped ones and of integers in a table of 48 cells."""
    nation, random = Nation.down_to("tract"), np.random.default_rng(4)
    cells, areas = math.prod(_CELLS.values()), nation.counts[-1]
    base = random.gamma(0.3, 1, cells)
    spread = np.exp(random.normal(0, 0.4, (areas, 1))) * random.gamma(0.35, 1 / 0.35, (areas, cells))
    true = random.poisson(4000 * base / base.sum() * spread).astype(np.int64)
    with tempfile.TemporaryDirectory() as folder:
        nation.write_areas(Path(folder, "areas.csv"))
        table = {"product": dict.fromkeys(_CELLS, "identity")}
        levels = ["total", *nation.levels[1:]]
        specification = mdp.load_specification(
            {
                "domain": {"tract": {"levels_from": str(Path(folder, "areas.csv"))}, **_CELLS},
                "workload": [table | {"at": {"tract": levels}}],
                "privacy": {"rho": 0.015625},
            }
        )
    workload, budget = specification.workload, specification.budget
    assert budget is not None
    strategy = mdp.select(workload, budget=budget)
    given = _Given(workload.domain, true.reshape(areas, *_CELLS.values()))
    result = Release(measure(strategy.selection.plan, given, budget, seed_not_private=_SEED), workload)
    last = workload.groups[-1]
    unbiased = np.asarray(result.measurement.estimates.answers(last)).reshape(areas, cells)
    begun = time.process_time()
    model = result.model("integers")
    taken = time.process_time() - begun
    assert isinstance(model.tables, IntegerTable)
    whole = np.asarray(model.tables.counts).reshape(areas, cells)
    ways = {"unbiased": unbiased, "clipped": np.maximum(np.rint(unbiased), 0), "integers": whole}
    classes = {"0": true == 0, "1 to 5": (true > 0) & (true < 6), "6 to 50": (true > 5) & (true < 51)}
    classes["above 50"] = true > 50
    return {
        "areas": nation.counts,
        "levels": nation.levels,
        "cells": cells,
        "share_of_cells": {name: float(own.mean()) for name, own in classes.items()},
        "rows": {
            way: dict(zip(nation.levels, _level_errors(nation, own - true), strict=True))
            | {f"bias, {name}": float((own - true)[places].mean()) for name, places in classes.items()}
            for way, own in ways.items()
        },
        "making": taken,
    }


def _level_errors(nation: Nation, wrong: Array) -> list[float]:
    """Return the RMSE of the cells of each level, which are sums over the smallest areas."""
    found = []
    for groups in nation.groups:
        firsts = np.flatnonzero(np.diff(groups, prepend=-1))
        found.append(math.sqrt(float(np.square(np.add.reduceat(wrong, firsts, axis=0)).mean())))
    return found


def _own_process(*arguments: str) -> dict[str, Any]:
    usage = measured([sys.executable, __file__, *arguments], threads=1)
    figures = figures_of(usage.output)
    if usage.status or figures is None:
        sys.exit(f"{' '.join(arguments)}: status {usage.status}")
    return figures


def main(what: str, *given: str) -> None:
    if what in ("selection", "kinds") and not given:
        rows: dict[str, dict[str, Any]] = {}
        for name in WORKLOADS if what == "selection" else KINDS:
            rows[name] = _own_process("select" if what == "selection" else "kinds", name)
            print(f"  {name}: {rows[name]}", file=sys.stderr, flush=True)
            emit({"rows": rows})
    elif what == "select":
        emit(select(*given))
    elif what == "kinds":
        emit(kinds(*given))
    elif what == "release":
        row = released(given[0], int(given[1]), Path(given[2]) if given[2:] else None)
        # what the release took, in place of what the check against the records took
        emit({key: row[key] for key in ("cpu_seconds", "peak_mb")} | {"rows": {given[0]: row}})
    elif what == "release-step":
        emit(release(Path(given[0])))
    elif what == "workers-step":
        emit(release_by_workers(Path(given[0])))
    elif what == "verify-step":
        emit(verify(Path(given[0])))
    elif what == "integers":
        emit(integers())


if __name__ == "__main__":
    main(*sys.argv[1:])
