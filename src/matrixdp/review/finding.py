"""What was checked of a release, as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, final

__all__ = ["Finding", "Outcome", "Verification", "settled"]

_MOST = 10

Outcome = Literal["ok", "failed", "not checked"]


@final
@dataclass(frozen=True)
class Finding:
    """One fact about a release, and whether it holds.

    Attributes
    ----------
    subject : str
        What it is about: ``files``, ``cost``, ``answers`` and so on; see `verify_release`.
    outcome : {"ok", "failed", "not checked"}
    words : str
        What holds, what does not, or why it was not checked.
    """

    subject: str
    outcome: Outcome
    words: str


@final
@dataclass(frozen=True)
class Verification:
    """All that was checked of a release; it holds if nothing failed.

    Attributes
    ----------
    folder : str
    findings : tuple of Finding

    Examples
    --------
    >>> found = Verification("out", (Finding("files", "ok", "3 files"), Finding("noise", "not checked", "-")))
    >>> found.holds, [finding.subject for finding in found]
    (True, ['files', 'noise'])
    """

    folder: str
    findings: tuple[Finding, ...]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    @property
    def holds(self) -> bool:
        """Whether nothing that was checked is false."""
        return not self.failed

    @property
    def failed(self) -> tuple[Finding, ...]:
        """What is false."""
        return tuple(finding for finding in self.findings if finding.outcome == "failed")

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        rows = [{"subject": f.subject, "outcome": f.outcome, "words": f.words} for f in self.findings]
        return {"folder": self.folder, "holds": self.holds, "findings": rows}


def settled(subject: str, words: str, problems: Iterable[str]) -> Iterator[Finding]:
    """Yield what failed, the first few of it, or that all holds."""
    found = iter(problems)
    failed = [Finding(subject, "failed", problem) for problem in islice(found, _MOST)]
    more = sum(1 for _ in found)
    if more:
        failed.append(Finding(subject, "failed", f"and {more} more"))
    yield from failed or [Finding(subject, "ok", words)]
