"""Published figures beside ours, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from published import NOT_RUN, Omitted, Paper
from values import against, beside, plain, share, table

__all__ = ["counted", "published_page", "summary"]

Figures = dict[str, Any]


def published_page(paper: Paper, parts: dict[str, dict[str, Any]], sections: Iterable[str] = ()) -> list[str]:
    """Return the page of a paper, with lines of its own after its tables."""
    lines = [f"# {paper.title}", "", paper.source, ""]
    if paper.tables:
        lines += [
            "A cell is what is printed / what we get, with one digit more than printed. **Bold** marks ours "
            "where it is worse than printed, and by how much; a mechanism that does not apply has a dash. "
            "The last column compares the best of all our columns with the best printed figure of the row, "
            "whatever the mechanism. Ours is the expected error of the strategy before rounding to integers, "
            "or after it where pooling several measurements makes it less. The lower bound is the largest "
            "that any mechanism proved: no strategy with this noise is below.",
            "",
        ]
    for entry in paper.tables:
        if entry.name not in parts:
            continue
        part = parts[entry.name]
        figures = part["figures"]
        lines += [f"## {figures['title']}", ""]
        note = [entry.note.strip(), ""] if entry.note else []
        lines += [*_errors(figures), "", *note, *_absent(figures), *_rounding(figures)]
        lines += _omitted("Not compared of this table", entry.omitted)
        lines += ["### Time and memory", "", *_times(figures), "", _made(part), ""]
    if paper.quantities_part in parts:
        lines += _quantities(parts[paper.quantities_part])
    return [*lines, *sections, *_omitted("## What is not compared", paper.omitted)]


def _verdicts(part: dict[str, Any]) -> list[str]:
    """Return how each figure that is no error compares to the printed one, where there is one."""
    pairs = [(row["printed"], row.get("ours")) for row in part["figures"]["rows"]]
    return ["-" if ours is None else against(printed, ours) for printed, ours in pairs if printed is not None]


def _equal(verdicts: list[str]) -> str:
    return f"{verdicts.count('equal')} of {len(verdicts)}" if verdicts else "-"


def _quantities(part: dict[str, Any]) -> list[str]:
    """Return the figures that are no errors; the index counts them by themselves."""
    rows = []
    for row in part["figures"]["rows"]:
        printed, ours = row["printed"], row.get("ours")
        verdict = "-" if printed is None or ours is None else against(printed, ours)
        text = row.get("note", "-") if ours is None else beside(ours, printed)
        rows.append([row["what"], "-" if printed is None else printed, text, verdict])
    head = ["what", "printed", "ours", "compared"]
    return ["## Figures that are no errors", "", *table(head, rows), "", _made(part), ""]


def _omitted(title: str, omitted: tuple[Omitted, ...]) -> list[str]:
    if not omitted:
        return []
    head = title if title.startswith("#") else f"{title}:"
    return [head, "", *[f"- {item.what}: {item.why}" for item in omitted], ""]


def _made(part: dict[str, Any]) -> str:
    machine = part["machine"]
    return f"{machine['date']}, {machine['cores']} cores, {machine['processor']}, one thread."


def _errors(figures: Figures) -> list[str]:
    rows, more = figures["rows"], figures["more"]
    titles = [_title(column) for column in rows[0]["columns"]]
    head = ["workload", "queries", *titles, *[f"`{name}`" for name in more], "lower bound", "best to best"]
    lines = []
    for row in rows:
        cells = [_compared(column) for column in row["columns"]]
        own = [plain(row["cells"].get(name, {}).get("error"), 5) for name in more]
        best = row["best"]
        compared = f"`{best['mechanism']}`" if best else "-"
        if "published" in best:
            verdict = against(best["published"], best["ours"])
            compared = "equal" if verdict == "equal" else f"{verdict} ({compared})"
        bound = plain(row["lower_bound"], 5)
        lines.append([row["name"], f"{row['queries']:,}", *cells, *own, bound, compared])
    return table(head, lines)


def _title(column: dict[str, Any]) -> str:
    title, mechanism = column["title"], column["mechanism"]
    if mechanism == NOT_RUN:
        return f"{title} ({NOT_RUN})"
    return title if title.lower() == mechanism.lower() else f"{title} `{mechanism}`"


def _compared(column: dict[str, Any]) -> str:
    ours = column["ours"]
    if "apart" in column:
        apart = column["apart"]
        return "-" if apart is None else f"{apart} (not printed)"
    printed = column["published"]
    if ours is None:
        return "-" if printed is None else f"{printed} / -"
    text, worse = beside(ours, printed), column.get("worse_by", 0.0)
    if worse:
        text = f"**{text}, worse by {share(worse)}**"
    return f"{'-' if printed is None else printed} / {text}"


def _absent(figures: Figures) -> list[str]:
    """Return why some cells are empty, once for each mechanism."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in figures["rows"]:
        for name, cell in row["cells"].items():
            if "note" in cell:
                reasons.setdefault((name, cell["note"]), []).append(row["name"])
    return [
        *[f"- `{name}` ({'; '.join(rows)}): {note}" for (name, note), rows in reasons.items()],
        *([""] if reasons else []),
    ]


def _rounding(figures: Figures) -> list[str]:
    added = [
        (cell["released"] / cell["error"] - 1, name, row["name"])
        for row in figures["rows"]
        for name, cell in row["cells"].items()
        if cell.get("released") is not None
    ]
    if not added:
        return []
    most, name, row = max(added)
    return [f"Rounding to integers adds at most {share(most)} to an error (`{name}`, {row}).", ""]


def _times(figures: Figures) -> list[str]:
    """Return processor seconds as ratios to the reference, and peak memory."""
    names = list(dict.fromkeys(name for row in figures["rows"] for name in row["cells"]))
    reference = figures["reference"]
    lines = []
    for row in figures["rows"]:
        unit = row["cells"].get(reference, {}).get("cpu_seconds")
        cells = []
        for name in names:
            cell = row["cells"].get(name, {})
            if "cpu_seconds" not in cell:
                cells.append("-")
            else:
                ratio = "-" if unit is None else f"{plain(cell['cpu_seconds'] / unit, 2)}"
                cells.append(f"{ratio} ({cell['peak_mb']:,.0f} MB)")
        lines.append([row["name"], "-" if unit is None else plain(unit, 2), *cells])
    head = ["workload", f"`{reference}`, s", *[f"`{name}`" for name in names]]
    return [
        f"Processor time of selection as a ratio to that of `{reference}` in the same run, whose seconds "
        "stand first, and peak memory of the process (Python and the libraries included).",
        "",
        *table(head, lines),
    ]


def counted(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many printed figures there are, and how ours compare.

    Returns
    -------
    dict
        ``printed``, ``equal``, ``better``, ``worse``: numbers of figures; ``behind``: of rows in which our
        best mechanism is worse than the best printed figure; ``rows``: of rows with a printed figure;
        ``absent``: of printed figures beside which no mechanism of ours has one.
    """
    columns = [column for _, _, column in _columns(parts)]
    compared = [column for column in columns if "worse_by" in column]
    worse = sum(bool(column["worse_by"]) for column in compared)
    equal = sum(column["equal"] for column in compared)
    rows = [row for part in _counted(parts) for row in part["figures"]["rows"] if "published" in row["best"]]
    return {
        "printed": len(compared),
        "equal": equal,
        "better": len(compared) - equal - worse,
        "worse": worse,
        "absent": len(columns) - len(compared),
        "rows": len(rows),
        "behind": sum(bool(row["best"]["worse_by"]) for row in rows),
    }


def _counted(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tables whose workloads are the paper's, not drawn like them."""
    return [part for part in parts if not part["figures"].get("drawn", False)]


def _columns(parts: list[dict[str, Any]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield every column of every row in which a figure is printed that is not of something drawn."""
    for part in _counted(parts):
        for row in part["figures"]["rows"]:
            for column in row["columns"]:
                if column.get("published") is not None and not column.get("drawn"):
                    yield part["figures"]["title"], row["name"], column


def summary(papers: tuple[Paper, ...], parts: dict[str, dict[str, Any]]) -> list[str]:
    """Return how many published figures are met, by paper, and every one that is not."""
    lines = ["## Published figures", ""]
    rows, every, quantities = [], [], []
    for paper in papers:
        own = [parts[entry.name] for entry in paper.tables if entry.name in parts]
        figures = _verdicts(parts[paper.quantities_part]) if paper.quantities_part in parts else []
        every += own
        quantities += figures
        rows.append([f"[{paper.title}]({paper.name}.md)", *_counts(counted(own)), _equal(figures)])
    rows.append(["all", *_counts(counted(every)), _equal(quantities)])
    head = ["paper", "printed errors compared", "equal", "ours better", "ours worse", "without ours"]
    lines += [
        "Each figure printed in a paper is compared with the same mechanism of ours, or its replacement. "
        "*Equal* means equal to the printed digits. Errors that depend on random draws that a paper does "
        "not print are shown on its page but not counted. *Rows behind* compares our best mechanism of a row "
        "with its best printed figure. Printed figures that are not errors (coefficients, sensitivities, "
        "eigenvalues) are counted separately. Each paper's page says what is not compared, and why.",
        "",
        *table([*head, "rows behind", "not errors, equal"], rows),
        "",
    ]
    worse = [found for found in _columns(every) if found[2].get("worse_by")]
    lines += ["Figures in which ours is worse than printed:", ""] if worse else []
    for title, name, column in worse:
        ours = beside(column["ours"], column["published"])
        lines.append(
            f"- {title}; {name}, {column['title']}: printed {column['published']}, ours {ours}, worse by "
            f"{share(column['worse_by'])}"
        )
    behind = [
        f"- {part['figures']['title']}; {row['name']}: {share(row['best']['worse_by'])}{_stopped(row)}"
        for part in every
        for row in part["figures"]["rows"]
        if row["best"].get("worse_by")
    ]
    lines += (
        ["", "Rows in which our best mechanism is behind the best printed figure:", "", *behind]
        if behind
        else []
    )
    return [*lines, ""]


def _stopped(row: dict[str, Any]) -> str:
    """Return which of ours were stopped that stand beside the row's best printed figure."""
    own = [column["mechanism"] for column in row["columns"] if column["title"] == row["best"]["title"]]
    if NOT_RUN in own:
        return f" ({row['best']['title']} is {NOT_RUN})"
    notes = [f"`{name}` {row['cells'][name]['note']}" for name in own if "note" in row["cells"].get(name, {})]
    return f" ({', '.join(notes)})" if notes else ""


def _counts(found: dict[str, Any]) -> list[str]:
    numbers = [found[key] for key in ("printed", "equal", "better", "worse", "absent")]
    return [*map(str, numbers), f"{found['behind']} of {found['rows']}"]
