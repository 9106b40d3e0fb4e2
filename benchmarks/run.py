"""Run the benchmarks and write their results to docs/benchmarks/.

    python benchmarks/run.py                     everything (about twenty minutes on two cores)
    python benchmarks/run.py --only mix          the cases whose name contains "mix"
    python benchmarks/run.py --list

Every case is a process of its own; its seconds and its peak memory are those of the whole process, from its
start to its end. With --only, results of other cases are kept as they are in results.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness import machine, measured
from report import markdown

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One claim, and what shows it.

    Attributes
    ----------
    name : str
        For ``--only``.
    claim : str
        What is claimed, in words.
    command : list of str
        The script and its arguments.
    seconds, peak_mb : float or None
        What it may take at most.
    """

    name: str
    claim: str
    command: list[str]
    seconds: float | None = None
    peak_mb: float | None = None


def _mix(size: int, attributes: int, mechanism: str) -> list[str]:
    numbers = ["--size", str(size), "--attributes", str(attributes)]
    return ["selection.py", "mix", *numbers, "--mechanism", mechanism]


CASES = [
    Case("mix-40-10", "mix, n = 40, d = 10, uniform weights", _mix(40, 10, "querysmasher"), 20, 1000),
    Case("mix-40-40", "mix, n = 40, d = 40, uniform weights", _mix(40, 40, "querysmasher"), 60, 2000),
    Case("mix-20-20", "mix, n = 20, d = 20, optimized weights", _mix(20, 20, "residual"), 90, None),
    Case(
        "adult-selection",
        "Adult up to 3-way, optimized weights",
        ["selection.py", "adult", "--mechanism", "residual"],
        60,
        1000,
    ),
    Case(
        "ranges-50-40",
        "all 1- and 2-way ranges, n = 50, d = 40",
        ["selection.py", "all-ranges", "--size", "50", "--attributes", "40"],
        10,
        1000,
    ),
    Case(
        "release-marginals",
        "whole release, Adult marginals up to 3-way",
        ["release_adult.py", "marginals"],
        90,
        3000,
    ),
    Case(
        "release-hybrid",
        "whole release, Adult marginals and prefixes up to 3-way",
        ["release_adult.py", "hybrid"],
        150,
        3000,
    ),
    Case("sampler", "exact noise, samples a second", ["sampler.py"]),
    Case("hdmm-tables", "error beside HDMM's tables, both kinds of noise", ["hdmm_tables.py"]),
    Case("published-error", "error beside published figures", ["published_error.py"]),
]


def run_case(case: Case) -> dict[str, Any]:
    """Run one case in a process of its own and return its figures."""
    usage = measured([sys.executable, str(HERE / case.command[0]), *case.command[1:]])
    result: dict[str, Any] = asdict(case) | {"status": usage.status}
    result |= {
        "limits": {"seconds": case.seconds, "peak_mb": case.peak_mb},
        "seconds": usage.seconds,
        "cpu_seconds": usage.cpu_seconds,
        "peak_mb": usage.peak_mb,
    }
    if usage.status == 0:
        figures = json.loads(usage.output.strip().splitlines()[-1])
        # a script that times another program reports that program's figures in the place of its own
        result |= {key: figures.pop(key) for key in ("seconds", "cpu_seconds", "peak_mb") if key in figures}
        result["figures"] = figures
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains this")
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs" / "benchmarks", metavar="DIR")
    given = parser.parse_args()
    chosen = [case for case in CASES if given.only in case.name]
    if given.list or not chosen:
        print("\n".join(f"{case.name:20} {case.claim}" for case in CASES))
        sys.exit(0 if given.list else "no case has such a name")
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "results.json"
    kept = json.loads(path.read_text())["cases"] if given.only and path.exists() else []
    results = {result["name"]: result for result in kept}
    for case in chosen:
        print(f"{case.name}: {case.claim} ...", flush=True)
        results[case.name] = result = run_case(case)
        print(f"    status {result['status']}, {result['seconds']:.1f} s, {result['peak_mb']:.0f} MB")
        ordered = [results[known.name] for known in CASES if known.name in results]
        document = {"machine": machine(), "cases": ordered}
        path.write_text(json.dumps(document, indent=1) + "\n")
        (given.out / "index.md").write_text(markdown(document))
    missed = [r["name"] for r in results.values() if r["status"] != 0 or _over(r)]
    if missed:
        sys.exit("missed: " + ", ".join(missed))


def _over(result: dict[str, Any]) -> bool:
    return any(limit is not None and result[key] > limit for key, limit in result["limits"].items())


if __name__ == "__main__":
    main()
