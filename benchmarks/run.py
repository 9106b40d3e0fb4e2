"""Run the benchmarks and write their results to docs/benchmarks/.

    python benchmarks/run.py                     everything (under an hour on two cores)
    python benchmarks/run.py --jobs 1            one part at a time; else two, but for times by the clock
    python benchmarks/run.py --only table        one part by its name, or all whose name contains "table"
    python benchmarks/run.py --only coa-step-8192        a part that runs only where it is named
    python benchmarks/run.py --quick             the cheap figures again: do they agree with results.json?
    python benchmarks/run.py --texts             write the figures of results.json into README and docs
    python benchmarks/run.py --adult FILE        with the parts that need UCI Adult, which is not part of this
    python benchmarks/run.py --mechanisms DIR    with AIM and MWEM+PGM, from a checkout of private-pgm
    python benchmarks/run.py --list
    python benchmarks/run.py --pages             the pages and pictures again, from results.json

Every part is a process of its own, and one that fails costs no other its results. Results of parts that do
not run stay in results.json as they are, each with its own date, machine and versions. A part that stops
early keeps the rows that it has, unless an earlier run has all of them. Limits are of processor time, so that
other work on the machine changes no result; times and their ratios are of processor seconds. What is
interrupted keeps the parts that are done.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import traceback
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import readme_figure
from claims import write_claims
from harness import end_all, figures_of, machine, measured
from pages import write_pages
from published import PAPERS, TABLES
from quick import measured_again
from rounds import TABLES as ROUNDS_TABLES
from values import ended, missed, rounded

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Part:
    """One process, and what it shows.

    Attributes
    ----------
    name : str
        For ``--only``.
    claim : str
        What it is about, in words.
    command : list of str
        The script and its arguments.
    cpu_seconds, peak_mb : float or None
        What it may take at most, where that is a claim: seconds of processor time.
    patience : float
        Seconds of processor time after which it is stopped, each of its processes for itself.
    adult : bool
        Whether it needs the file that ``--adult`` names.
    mechanisms : bool
        Whether it needs the folder that ``--mechanisms`` names.
    large : bool
        Whether it runs only where it is asked for by its whole name: it would take too much of an hour.
    alone : bool
        Whether what it is about are seconds on the clock, or it has the threads that it wants: nothing runs
        beside it then.
    """

    name: str
    claim: str
    command: list[str]
    cpu_seconds: float | None = None
    peak_mb: float | None = None
    patience: float = 1800.0
    adult: bool = False
    mechanisms: bool = False
    large: bool = False
    alone: bool = False


def _mix(size: int, attributes: int, mechanism: str) -> list[str]:
    numbers = ["--size", str(size), "--attributes", str(attributes)]
    return ["selection.py", "mix", *numbers, "--mechanism", mechanism]


def _large(workload: str, size: int, mechanism: str) -> list[str]:
    return ["selection.py", workload, "--size", str(size), "--mechanism", mechanism]


def _laplace(workload: str, claim: str, seconds: float, mechanism: str = "generalized-marginals") -> Part:
    """Return a selection under pure differential privacy, epsilon = 1."""
    command = ["selection.py", workload, "--mechanism", mechanism, "--noise", "laplace"]
    if workload.startswith("pairs"):
        command += ["--size", "10", "--attributes", "40"]
    return Part(f"laplace-{workload}", f"{claim}, Laplace noise", command, seconds, 1000)


_COARSE = "Adult, numbers in bins, all up to 3-way marginals, epsilon"
_RANGES = ["selection.py", "all-ranges", "--size", "50", "--attributes", "40"]

PARTS = [
    Part("mix-40-10", "mix, n = 40, d = 10, uniform weights", _mix(40, 10, "querysmasher"), 20, 1000),
    Part("mix-40-40", "mix, n = 40, d = 40, uniform weights", _mix(40, 40, "querysmasher"), 60, 2000),
    Part("mix-20-20", "mix, n = 20, d = 20, optimized weights", _mix(20, 20, "residual"), 20, None),
    Part(
        "adult-selection",
        "Adult up to 3-way, optimized weights",
        ["selection.py", "adult", "--mechanism", "residual"],
        60,
        1000,
    ),
    Part("cdf-1411", "CDF of 1,411 values in two groups", _large("cdf", 1411, "auto"), 60, None),
    Part("cdf-8500", "CDF of 8,500 values in two groups", _large("cdf", 8500, "auto"), 300, None),
    Part("dense-4096", "optimum for all ranges of 4,096 values", _large("ranges", 4096, "dense")),
    Part(
        "dense-8192", "optimum for all ranges of 8,192 values", _large("ranges", 8192, "dense"), patience=900
    ),
    Part("ranges-50-40", "all 1- and 2-way ranges, n = 50, d = 40", _RANGES, 10, 1000),
    _laplace("adult-marginals", "Adult up to 3-way marginals", 10, "opt-m"),
    _laplace("adult-pairs", "Adult 2-way, identity and prefix", 40),
    _laplace("adult", "Adult up to 3-way, identity and prefix", 40),
    _laplace("cps-marginals", "CPS, all marginals", 10, "opt-m"),
    _laplace("pairs-of-prefixes", "1- and 2-way prefixes, n = 10, d = 40", 40),
    _laplace("pairs-of-ranges", "1- and 2-way ranges, n = 10, d = 40", 40),
    Part(
        "release-marginals",
        "whole release, Adult marginals up to 3-way",
        ["release_adult.py", "marginals"],
        90,
        3000,
        alone=True,
    ),
    Part(
        "release-hybrid",
        "whole release, Adult marginals and prefixes up to 3-way",
        ["release_adult.py", "hybrid"],
        150,
        3000,
        alone=True,
    ),
    Part("gaps", "certificates of residual", ["gaps.py", "certificates"]),
    Part("dense-ratios", "small workloads beside dense", ["gaps.py", "dense"]),
    Part("installed", "what is installed", ["installed.py"]),
    Part("busy", "select, release and report beside two busy processes", ["busy.py"], alone=True),
    Part("sampler", "exact noise, samples a second", ["sampler.py"], alone=True),
    *(Part(table.name, table.title, ["tables.py", table.name], patience=2400) for table in TABLES),
    *(
        Part(paper.quantities_part, f"{paper.title}: figures", ["quantities.py", paper.name])
        for paper in PAPERS
        if paper.quantities
    ),
    Part(
        "other-workloads",
        "other workloads of the papers, every mechanism",
        ["other.py", "workloads"],
    ),
    Part(
        "sweeps",
        "WDiscrete, WRange, WRelated and WMarginal, every mechanism",
        ["other.py", "sweeps"],
    ),
    Part(
        "beyond-laplace",
        "pure differential privacy with integer noise, walks and one radius, epsilon = 1",
        ["beyond_laplace.py"],
        patience=2400,
    ),
    Part("persons", "persons with several records, mu = 1, and discovery, epsilon 1", ["persons.py"]),
    Part("areas-selection", "marginals in every area of a nation: errors", ["areas.py", "selection"]),
    Part("areas-kinds", "several kinds of ages in every area of a nation: errors", ["areas.py", "kinds"]),
    *(
        Part(f"areas-{name}", f"a release of marginals in {many}", ["areas.py", "release", level, "1000000"])
        for name, many, level in (
            ("counties", "3,143 counties", "county"),
            ("tracts", "74,000 tracts", "tract"),
        )
    ),
    Part("areas-integers", "whole numbers that add up in 74,000 tracts", ["areas.py", "integers"]),
    Part("coa-convergence", "COA's Figure 1: every Newton step", ["redrawn.py", "convergence"]),
    Part("coa-sweeps", "COA's Figures 2 to 13, its mechanisms", ["redrawn.py", "sweeps"]),
    Part("coa-steps", "one Newton step of COA for large n", ["redrawn.py", "steps"]),
    Part("coa-step-8192", "the same at n = 8,192", ["redrawn.py", "steps", "--size", "8192"], large=True),
    Part("privbayes", "PrivBayes on Adult, epsilon 1", ["privbayes.py"], adult=True),
    Part("made-up", "PrivBayes and DAWA on tables that are made up, epsilon 1", ["privbayes.py"]),
    Part("rounds", "one round of marginals or two", ["rounds.py"], adult=True),
    *(
        Part(
            f"peers-{name.lower()}",
            f"{name}: one round, AIM and MWEM+PGM",
            ["peers.py", name],
            patience=5400,
            adult=True,
            mechanisms=True,
        )
        for name in ROUNDS_TABLES
    ),
    *(
        Part(
            f"rounds-model-{name.lower()}",
            f"{name}: one round or two for the model",
            ["model_rounds.py", name],
            adult=True,
        )
        for name in ROUNDS_TABLES
    ),
    Part("rounds-cells", "weights of cells and merged categories", ["cell_weights.py"]),
    Part("scaling", "seconds against n, d and the number of queries", ["scaling.py"]),
    Part("series-errors", "series of releases over time alone", ["over_time.py", "errors"]),
    Part("series-marginals", "series of Adult's marginals by month", ["over_time.py", "marginals"]),
    Part("series-publication", "one publication of a series", ["over_time.py", "publication"], alone=True),
    Part("engines", "one table counted in every engine, a million rows", ["engines.py"], alone=True),
    Part(
        "engines-large",
        "the same in Parquet, 100 million rows",
        ["engines.py", "--rows", "100000000"],
        alone=True,
    ),
    Part(
        "model-bundled",
        "The bundled table, its example workload, epsilon 1",
        ["model.py", "bundled", "--mbi"],
    ),
    Part("model-coarse", f"{_COARSE} 1", ["model.py", "adult-coarse"], adult=True),
    Part(
        "model-coarse-small", f"{_COARSE} 0.1", ["model.py", "adult-coarse", "--epsilon", "0.1"], adult=True
    ),
    Part(
        "model-whole",
        "Adult, all 1- and 2-way tables of cells and prefixes, epsilon 1",
        ["model.py", "adult-whole", "--mbi"],
        adult=True,
    ),
    Part(
        "model-pairs",
        "Adult, all 1- and 2-way tables of cells, epsilon 1",
        ["model.py", "adult-pairs", "--mbi"],
        adult=True,
    ),
]


@dataclass(frozen=True)
class Files:
    """What is no part of this repository: UCI Adult, and the mechanisms of private-pgm."""

    adult: Path | None = None
    mechanisms: Path | None = None

    def missing(self, part: Part) -> list[str]:
        """Return the options that a part needs and that are not given."""
        needed = {
            "--adult FILE": part.adult and self.adult is None,
            "--mechanisms DIR": part.mechanisms and self.mechanisms is None,
        }
        return [option for option, lacks in needed.items() if lacks]

    def arguments(self, part: Part) -> list[str]:
        adult = ["--adult", str(self.adult)] if part.adult else []
        return adult + (["--mechanisms", str(self.mechanisms)] if part.mechanisms else [])


def run_part(part: Part, given: Files) -> dict[str, Any]:
    """Run one part and return its figures."""
    files = given.arguments(part)
    command = [sys.executable, str(HERE / part.command[0]), *part.command[1:], *files]
    usage = measured(command, part.patience, threads=None if part.alone else 1)
    result: dict[str, Any] = {
        "name": part.name,
        "claim": part.claim,
        "command": part.command,
        "machine": machine(),
        "status": usage.status,
        "limits": {"cpu_seconds": part.cpu_seconds, "peak_mb": part.peak_mb},
        **({"large": True} if part.large else {}),
        "seconds": usage.seconds,
        "cpu_seconds": usage.cpu_seconds,
        "peak_mb": usage.peak_mb,
    }
    figures = figures_of(usage.output)
    if figures is not None:
        # a script that times another program reports that program's figures in place of its own
        result |= {key: figures.pop(key) for key in ("seconds", "cpu_seconds", "peak_mb") if key in figures}
        result["figures"] = figures
    return result


def _all_run(
    chosen: list[Part], files: Files, jobs: int, before: dict[str, dict[str, Any]]
) -> Generator[tuple[Part, dict[str, Any]]]:
    """Run parts, first those that have to be alone, then several at a time, the longest first."""
    for part in chosen:
        if part.alone or jobs == 1:
            yield part, rounded(run_part(part, files))
    pool = ThreadPoolExecutor(jobs)
    together = [part for part in chosen if not part.alone and jobs > 1]
    together.sort(key=lambda part: -before.get(part.name, {}).get("cpu_seconds", math.inf))
    running = {pool.submit(run_part, part, files): part for part in together}
    try:
        for done in as_completed(running):
            yield running[done], rounded(done.result())
    except BaseException:
        # else what has begun is waited for, and what has not is begun
        pool.shutdown(wait=False, cancel_futures=True)
        end_all()
        raise
    finally:
        pool.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="NAME", help="this part, or all whose name contains it")
    parser.add_argument("--list", action="store_true", help="list the parts and stop")
    parser.add_argument("--pages", action="store_true", help="measure nothing; write the pages again")
    parser.add_argument("--quick", action="store_true", help="measure what is cheap again, and compare")
    parser.add_argument("--texts", action="store_true", help="write the figures into the documentation")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="parts at a time (2)")
    parser.add_argument("--adult", type=Path, metavar="FILE", help="UCI Adult, coded from 0; see model.py")
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs" / "benchmarks", metavar="DIR")
    parser.add_argument("--mechanisms", type=Path, metavar="DIR", help="private-pgm's; see peers.py")
    given = parser.parse_args()
    exact = [part for part in PARTS if part.name == given.only]
    chosen = exact or [part for part in PARTS if given.only in part.name and not part.large]
    if given.list or not chosen:
        print("\n".join(f"{part.name:20} {part.claim}" for part in PARTS))
        sys.exit(0 if given.list else "no part has such a name")
    path = given.out / "results.json"
    if given.quick:
        _, differences = measured_again(_kept(path))
        print("".join(f"{line}\n" for line in differences), end="")
        sys.exit(1 if differences else 0)
    if given.texts:
        print("\n".join(write_claims(HERE.parent)) or "the texts say what was measured")
        readme_figure.main()
        return
    if given.adult is not None and not given.adult.is_file():
        sys.exit(f"--adult: there is no file {given.adult}")
    if given.mechanisms is not None and not given.mechanisms.is_dir():
        sys.exit(f"--mechanisms: there is no folder {given.mechanisms}")
    given.out.mkdir(parents=True, exist_ok=True)
    results = _kept(path)
    stopped = not given.pages and _measure(
        chosen, Files(given.adult, given.mechanisms), given.jobs, results, path
    )
    try:
        write_pages(given.out, list(results.values()))
    except Exception:  # noqa: BLE001 - whatever it is, the results are worth an hour
        traceback.print_exc()
        sys.exit("the pages are not written; the results are kept: python benchmarks/run.py --pages")
    if stopped:
        sys.exit(130)
    behind = [part["name"] for part in results.values() if missed(part)]
    if behind:
        sys.exit("missed: " + ", ".join(behind))


def _measure(
    chosen: list[Part], files: Files, jobs: int, results: dict[str, dict[str, Any]], path: Path
) -> bool:
    """Run parts and keep the results of each as it ends; return whether that was interrupted."""
    without: dict[str, list[str]] = {}
    for part in chosen:
        for option in files.missing(part)[:1]:
            without.setdefault(option, []).append(part.name)
    for option, names in without.items():
        print(f"left out without {option}: {', '.join(names)}{_older(names, results)}", flush=True)
    todo = [part for part in chosen if not files.missing(part)]
    left = [part.name for part in todo]
    try:
        with closing(_all_run(todo, files, jobs, dict(results))) as runs:
            for part, fresh in runs:
                left.remove(part.name)
                took = f"{ended(fresh['status'])}, {fresh['cpu_seconds']:.1f} s, {fresh['peak_mb']:.0f} MB"
                if _replaces(fresh, results.get(part.name)):
                    results[part.name] = fresh
                else:
                    results[part.name]["failed_since"] = fresh["machine"]["date"]
                    took += _older([part.name], results)
                done = len(todo) - len(left)
                print(f"{done} of {len(todo)}, {part.name}: {part.claim}: {took}", flush=True)
                ordered = _ordered(results)
                results.clear()
                results.update(ordered)
                _save(path, results)
    except (KeyboardInterrupt, SystemExit):
        print(f"interrupted; not measured: {', '.join(left)}{_older(left, results)}", flush=True)
        return True
    return False


def _older(names: list[str], results: dict[str, dict[str, Any]]) -> str:
    """Return in words what is shown of parts that were not measured now."""
    dates = sorted({results[name]["machine"]["date"] for name in names if name in results})
    return f"; their figures stay those of {', '.join(dates)}" if dates else ""


def _replaces(fresh: dict[str, Any], old: dict[str, Any] | None) -> bool:
    """Return whether results are worth more than what is there; a stopped part has its first rows."""
    if fresh["status"] == 0 or old is None or "figures" not in old:
        return True
    return bool(old["status"] != 0 and "figures" in fresh)


def _kept(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    known = {part.name for part in PARTS}
    try:
        parts = json.loads(path.read_text())["parts"]
    except ValueError as error:
        sys.exit(f"{path} is no JSON ({error}); restore or remove it")
    return {part["name"]: part for part in parts if part["name"] in known}


def _ordered(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {part.name: results[part.name] for part in PARTS if part.name in results}


def _save(path: Path, results: dict[str, dict[str, Any]]) -> None:
    """Write one part a line, so that a change shows where it is."""
    lines = [json.dumps(result) for result in results.values()]
    begun = path.with_suffix(".begun")
    begun.write_text('{"parts": [\n' + ",\n".join(lines) + "\n]}\n")
    # an interrupted run leaves the old file or the new one, whole
    begun.replace(path)


if __name__ == "__main__":
    main()
