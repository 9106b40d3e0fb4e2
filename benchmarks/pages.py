"""The pages of docs/benchmarks/: the index, and what is in which page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from page_areas import AREAS, areas_page
from page_beyond_laplace import beyond_laplace_page
from page_coa import coa_sections
from page_engines import engines_page
from page_gaps import gaps
from page_model import model_page
from page_other import random_page, workloads_page
from page_over_time import over_time_page
from page_persons import persons_page
from page_privbayes import made_up_section, privbayes_section
from page_published import published_page, summary
from page_rounds import rounds_page
from pictures import scaling_page
from published import PAPERS, TABLES, Paper
from rounds import TABLES as ROUNDS_TABLES
from values import ended, missed, plain, table

__all__ = ["write_pages"]

Parts = dict[str, dict[str, Any]]

_TABLES = tuple(table.name for table in TABLES)
_ENGINES = ("engines", "engines-large")
_MODELS = ("model-bundled", "model-coarse", "model-coarse-small", "model-whole", "model-pairs")
_COA = ("coa-convergence", "coa-sweeps", "coa-steps", "coa-step-8192")
_SERIES = ("series-errors", "series-marginals", "series-publication")
_ROUNDS = (
    "rounds",
    *(f"rounds-model-{name.lower()}" for name in ROUNDS_TABLES),
    *(f"peers-{name.lower()}" for name in ROUNDS_TABLES),
    "rounds-cells",
)
_CHECKS = ("gaps", "dense-ratios", "installed")
_QUANTITIES = tuple(paper.quantities_part for paper in PAPERS)
_OTHER = (
    *_CHECKS,
    *_QUANTITIES,
    "other-workloads",
    "sweeps",
    "beyond-laplace",
    "persons",
    *AREAS,
    "scaling",
    "privbayes",
    "made-up",
    *_ROUNDS,
    *_COA,
    *_ENGINES,
    *_MODELS,
    *_SERIES,
)


def write_pages(out: Path, parts: list[dict[str, Any]]) -> None:
    """Write every page for which there are results."""
    known = {part["name"]: _dated(part) for part in parts}
    done: Parts = {name: part for name, part in known.items() if "figures" in part}
    for paper in PAPERS:
        sections = coa_sections(done, out) if paper.name == "coa" else []
        if paper.name == "hdmm-conference" and "privbayes" in done:
            sections = privbayes_section(done["privbayes"])
            if "made-up" in done:
                sections += made_up_section(done["made-up"])
        _write(out / f"{paper.name}.md", published_page(paper, done, sections))
    if "other-workloads" in done:
        _write(out / "other-workloads.md", workloads_page(done["other-workloads"]))
    if "sweeps" in done:
        _write(out / "random-workloads.md", random_page(done["sweeps"]))
    if "beyond-laplace" in done:
        _write(
            out / "beyond-laplace.md",
            beyond_laplace_page(done["beyond-laplace"], done.get("table-4-large"), out),
        )
    if "persons" in done:
        _write(out / "persons-with-several-records.md", persons_page(done["persons"], out))
    if "areas-selection" in done:
        own = {name: done[name] for name in AREAS if name in done}
        _write(out / "trees-of-areas.md", areas_page(own, out))
    if "scaling" in done:
        _write(out / "scaling.md", scaling_page(done["scaling"], out))
    if all(name in done for name in _SERIES):
        _write(out / "releases-over-time.md", over_time_page(*[done[name] for name in _SERIES]))
    if any(name in done for name in _ENGINES):
        _write(out / "engines.md", engines_page([done[name] for name in _ENGINES if name in done]))
    if any(name in done for name in _MODELS):
        _write(out / "models.md", model_page([done[name] for name in _MODELS if name in done]))
    if "rounds" in done:
        _write(out / "rounds.md", rounds_page({name: done[name] for name in _ROUNDS if name in done}))
    _write(out / "index.md", _index(known, done))


def _dated(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part that says wherever its date stands that a later run of it failed, if one did."""
    if "failed_since" not in part:
        return part
    date = f"{part['machine']['date']} (a run on {part['failed_since']} failed)"
    return part | {"machine": part["machine"] | {"date": date}}


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n")


def _index(known: Parts, done: Parts) -> list[str]:
    timed = [part for name, part in known.items() if name not in (*_TABLES, *_OTHER, "sampler", "busy")]
    return [
        "# Benchmarks",
        "",
        "This page has all measured figures. For the main results, see "
        "[how matrixdp compares](../comparison.md). `python benchmarks/run.py` writes these pages; "
        "[results.json](results.json) has every figure, and for each part its date, processor and versions. "
        "Errors are root mean squared errors over all queries of a workload, computed from the strategies "
        "themselves without data. Engines count random records.",
        "",
        *[f"- [{paper.title}]({paper.name}.md): {_titles(paper)}" for paper in PAPERS],
        "- [Other workloads](other-workloads.md): every mechanism on ranges, prefixes and marginals",
        "- [Random workloads](random-workloads.md): every mechanism on WDiscrete, WRange, WRelated and "
        "WMarginal",
        "- [Beyond Laplace noise](beyond-laplace.md): integer noise, walks and one radius compared with "
        "Laplace and Gaussian noise, stream counters and linear programs",
        "- [Persons with several records, and discovery](persons-with-several-records.md): strategies for "
        "all records of a person, and values and bounds that are found, compared with contribution bounding "
        "and thresholds",
        "- [Trees of areas](trees-of-areas.md): marginals in every area of a nation down to 74,000 tracts "
        "and a million blocks: errors beside other ways to share a budget, whole releases, whole numbers",
        "- [Releases over time](releases-over-time.md): series compared with independent releases, a tree "
        "and the optimum",
        "- [Scaling](scaling.md): seconds of selection as pictures",
        "- [Engines](engines.md): seconds and memory of counting, compared with hand-written SQL",
        "- [Models](models.md): non-negative, consistent answers compared with the true ones",
        "- [One round or two](rounds.md): whether a second round, planned from the answers of a first, pays; "
        "AIM and MWEM+PGM compared with one round",
        "",
        *summary(PAPERS, done),
        *_timed(timed),
        *gaps(done.get("gaps"), done.get("dense-ratios")),
        *_sampler(done.get("sampler")),
        *_busy(done.get("busy")),
        *_runs(list(known.values())),
    ]


def _titles(paper: Paper) -> str:
    titles = [table.title.partition(":")[0] for table in paper.tables]
    titles += ["figures that are not errors"] if paper.quantities else []
    return "; ".join(titles) if titles else paper.shown


def _limit(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:,.0f} {unit}"


def _timed(parts: list[dict[str, Any]]) -> list[str]:
    head = ["what", "queries", "processor seconds", "limit", "by the clock", "peak memory", "limit", ""]
    rows = []
    for part in parts:
        figures = part.get("figures", {})
        queries = figures.get("queries", figures.get("answers"))
        rows.append(
            [
                part["claim"],
                "-" if queries is None else f"{queries:,}",
                f"{part['cpu_seconds']:.1f}",
                _limit(part["limits"]["cpu_seconds"], "s"),
                f"{part['seconds']:.1f}",
                f"{part['peak_mb']:,.0f} MB",
                _limit(part["limits"]["peak_mb"], "MB"),
                "MISSED" if missed(part) else "met",
            ]
        )
    return [
        "## Time and memory",
        "",
        *table(head, rows),
        "",
        "Seconds and memory are those of the whole process; limits are on processor time, which other work "
        "on the machine does not affect. The mix is 1-way ranges, 2-way "
        "affine queries and 3-way prefixes on d attributes of n values. Published for the mix with n = 40 on "
        "a 128-core server (QuerySmasher): 60 s and 3.4 GB at d = 10, 3,032 s and 227 GB at d = 40. A whole "
        "release is selection, measurement, and every answer with its standard error and interval in a "
        "Parquet file; the table has 48,842 random records over the attributes of Adult.",
        "",
    ]


def _sampler(part: dict[str, Any] | None) -> list[str]:
    if part is None:
        return []
    names = {
        "exact": "exactly rounded Gaussian, operating system's bits",
        "exact_with_offsets": "the same with offsets on the lattice",
        "laplace": "exactly rounded Laplace",
        "numpy_normal": "NumPy's floating-point normal generator (not private)",
    }
    rates = part["figures"]
    rows = [
        [title, f"{rates[name]:,.0f}", f"{rates['numpy_normal'] / rates[name]:.1f}"]
        for name, title in names.items()
    ]
    head = ["generator", "samples a second", "time as a ratio to NumPy's"]
    return ["## Exact noise", "", *table(head, rows), ""]


def _busy(part: dict[str, Any] | None) -> list[str]:
    if part is None:
        return []
    figures = part["figures"]
    rows = [
        [row["command"], plain(row["alone"], 3), plain(row["beside"], 3), plain(row["ratio"], 2)]
        for row in figures["table"]
    ]
    return [
        "## Next to busy processes",
        "",
        *table(["command", "processor seconds alone", "next to two busy processes", "ratio"], rows),
        "",
        f"The bundled example; medians of {figures['times']} runs, one of each in turn. The ratio may be at "
        f"most {figures['most']:g}: threads that wait for one another would use up processor time where "
        "others work.",
        "",
    ]


def _runs(parts: list[dict[str, Any]]) -> list[str]:
    rows = []
    for part in parts:
        machine = part["machine"]
        state = ended(part["status"])
        if "failed_since" in part:
            state = f"failed on {part['failed_since']}; the figures are older"
        seconds, memory = plain(part["cpu_seconds"], 3), f"{part['peak_mb']:,.0f} MB"
        rows.append([part["name"], machine["date"], seconds, memory, state])
    machines = dict.fromkeys(_machine(part["machine"]) for part in parts)
    spent = sum(part["cpu_seconds"] for part in parts if "large" not in part)
    apart = [part["name"] for part in parts if "large" in part]
    return [
        "## The run",
        "",
        *[f"{line}.\n" for line in machines],
        *table(["part", "date", "processor seconds", "peak memory", ""], rows, left=2),
        "",
        f"The run took {spent / 60:,.0f} minutes of processor time. Two parts ran at a time; parts that "
        "measure seconds on the clock ran alone."
        + (f" Too long for it, and run only by name (`--only`): {', '.join(apart)}." if apart else ""),
    ]


def _machine(machine: dict[str, Any]) -> str:
    where = ("date", "processor", "cores", "system")
    versions = ", ".join(f"{name} {machine[name]}" for name in machine if name not in where)
    return f"{machine['cores']} cores, {machine['processor']}, {machine['system']}; {versions}"
