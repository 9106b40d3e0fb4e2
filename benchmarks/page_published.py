"""Published figures beside ours, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from values import against, beside, plain, share, table

__all__ = ["published_page", "summary"]

Figures = dict[str, Any]


def published_page(title: str, parts: list[dict[str, Any]]) -> list[str]:
    """Return the page of a few tables."""
    lines = [
        f"# {title}",
        "",
        "A cell is what is printed / what we get, with one digit more than printed. **Bold** marks ours "
        "where it is worse than printed, and by how much; a mechanism that does not apply has a dash. The "
        "last column compares the best of all our columns with the best printed figure of the row, whatever "
        "the mechanism. Ours is the expected error of the strategy before rounding to integers, or after it "
        "where pooling several measurements makes it less. The lower bound is the largest that any mechanism "
        "proved: no strategy with this noise is below.",
        "",
    ]
    for part in parts:
        figures = part["figures"]
        lines += [f"## {figures['title']}", ""]
        note = [figures["note"].strip(), ""] if figures["note"] else []
        lines += [*_errors(figures), "", *note, *_absent(figures), *_rounding(figures)]
        lines += ["### Time and memory", "", *_times(figures), "", _made(part), ""]
    return lines


def _made(part: dict[str, Any]) -> str:
    machine = part["machine"]
    return f"{machine['date']}, {machine['cores']} cores, {machine['processor']}, one thread."


def _errors(figures: Figures) -> list[str]:
    rows, more = figures["rows"], figures["more"]
    titles = [
        column["title"]
        + ("" if column["title"].lower() == column["mechanism"].lower() else f" `{column['mechanism']}`")
        for column in rows[0]["columns"]
    ]
    head = ["workload", "queries", *titles, *[f"`{name}`" for name in more], "lower bound", "best to best"]
    lines = []
    for row in rows:
        cells = [_compared(column) for column in row["columns"]]
        own = [plain(row["cells"].get(name, {}).get("error"), 5) for name in more]
        best = row["best"]
        verdict = against(best["published"], best["ours"])
        compared = "equal" if verdict == "equal" else f"{verdict} (`{best['mechanism']}`)"
        bound = plain(row["lower_bound"], 5)
        lines.append([row["name"], f"{row['queries']:,}", *cells, *own, bound, compared])
    return table(head, lines)


def _compared(column: dict[str, Any]) -> str:
    printed, ours = column["published"], column["ours"]
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


def _columns(parts: list[dict[str, Any]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for part in parts:
        for row in part["figures"]["rows"]:
            for column in row["columns"]:
                if "worse_by" in column:
                    yield part["figures"]["title"], row["name"], column


def summary(parts: list[dict[str, Any]]) -> list[str]:
    """Return how many published figures are met, and every one that is not."""
    every = list(_columns(parts))
    worse = [found for found in every if found[2]["worse_by"]]
    equal = sum(column["equal"] for _, _, column in every)
    rows = [(part["figures"]["title"], row) for part in parts for row in part["figures"]["rows"]]
    behind = [(title, row) for title, row in rows if row["best"]["worse_by"]]
    lines = [
        "## Published figures",
        "",
        f"Of {len(every)} published figures beside which one of ours stands, {equal} are equal to the "
        f"printed digits, {len(every) - equal - len(worse)} are better in ours, and {len(worse)} worse"
        + (":" if worse else "."),
        "",
    ]
    for title, name, column in worse:
        ours = beside(column["ours"], column["published"])
        lines.append(
            f"- {title}; {name}, {column['title']}: printed {column['published']}, ours {ours}, worse by "
            f"{share(column['worse_by'])}"
        )
    lines += [
        *([""] if worse else []),
        f"The best of our mechanisms is worse than the best printed figure in {len(behind)} of ",
    ]
    lines[-1] += f"{len(rows)} rows" + (":" if behind else ".")
    lines += [f"- {title}; {row['name']}: {share(row['best']['worse_by'])}" for title, row in behind]
    return [*lines, ""]
