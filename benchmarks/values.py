"""How figures are kept and written."""

from __future__ import annotations

import signal
from typing import Any

__all__ = [
    "against",
    "beside",
    "ended",
    "equal",
    "missed",
    "number",
    "plain",
    "rounded",
    "share",
    "table",
    "unmeasured",
]

#: Significant digits that are kept, or all digits before the point and three behind it.
_DIGITS = 7


def rounded(value: Any) -> Any:
    """Return the same structure with numbers rounded to this many significant digits."""
    if isinstance(value, float):
        return round(value, 3) if abs(value) >= 10 ** (_DIGITS - 3) else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return value


def missed(part: dict[str, Any]) -> bool:
    """Return whether a part failed, or took more than it may."""
    over = [limit is not None and part[key] > limit for key, limit in part["limits"].items()]
    return bool(part["status"] != 0 or "failed_since" in part or any(over))


def ended(status: int) -> str:
    """Return in words how a program ended.

    Examples
    --------
    >>> ended(1), ended(-24), ended(0)
    ('failed, status 1', 'stopped at its limit of processor time', 'done')
    """
    if status == -signal.SIGXCPU:
        return "stopped at its limit of processor time"
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"failed, status {status}" if status else "done"


def unmeasured(row: dict[str, Any]) -> str:
    """Return in words why a row has no figures."""
    missing = row.get("missing")
    return f"not measured, for want of {' and '.join(missing)}" if missing else ended(row["status"])


def table(head: list[str], rows: list[list[str]], left: int = 1) -> list[str]:
    """Return a table in Markdown, numbers to the right but for the first columns."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * left + "--:|" * (len(head) - left)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]


def plain(value: float | None, digits: int = 4) -> str:
    """Return a number with this many significant digits, or a dash."""
    if value is None:
        return "-"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:#.{digits}g}".rstrip(".")


def beside(value: float, printed: str | None) -> str:
    """Return our figure with one digit more than the printed one beside it."""
    if printed is None:
        return plain(value, 5)
    return f"{value:,.{len(printed.partition('.')[2]) + 1 if '.' in printed else 0}f}"


def share(value: float) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> share(0.01234), share(-0.25), share(0.0)
    ('1.2%', '-25%', '0%')
    """
    if abs(value) >= 1:
        return f"{100 * value:,.0f}%"
    return f"{100 * value:.2g}%" if value else "0%"


def number(printed: str) -> float:
    """Return a printed figure."""
    return float(printed.replace(",", ""))


def equal(printed: str, ours: float) -> bool:
    """Return whether our figure rounds to the printed digits, or to eight of more.

    Examples
    --------
    >>> equal("6.63", 6.634), equal("6.63", 6.636), equal("300,000", 300_000.4)
    (True, False, True)
    >>> equal("15988375.02", 15988375.014), equal("15988375.02", 15988380.0)
    (True, False)
    """
    value = number(printed)
    unit = 10.0 ** -len(printed.partition(".")[2])
    return abs(ours - value) <= max(0.5 * unit * (1 + 1e-9), 5e-9 * abs(value))


def against(printed: str, ours: float) -> str:
    """Return how our error compares to a printed one, in words."""
    if equal(printed, ours):
        return "equal"
    value = number(printed)
    return f"{share(abs(ours / value - 1))} {'less' if ours < value else 'more'}"
