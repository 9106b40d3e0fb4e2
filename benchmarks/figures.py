"""Figures in prose: what counts as one that was measured, and where prose is."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

__all__ = ["blocks", "figures", "files", "prose"]

_WORDS = (
    "half|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|"
    "ninety|dozens?|tens|hundreds?|thousands?"
)
_NUMERAL = r"\d(?:[\d.,]*\d)?(?:e-?\d+)?"
_NUMBER = rf"(?:(?<![\w.\[^-]){_NUMERAL}(?: to {_NUMERAL})?|\b(?:{_WORDS})(?: (?:a|or two|hundred))?)"
_TIME = "(?:seconds?|minutes?|hours?)"
_UNIT = (
    rf"(?:(?:of a |processor )?(?:micro|milli|nano)?{_TIME}\b|(?<=[\d ])(?:ms|s|min)(?=[`.,;:)\]\s]|$)"
    r"|[kKMGT]i?B\b|(?:kilo|mega|giga)?bytes\b|%|percent\b|(?:times|fold|million|billion)\b)"
)
_PART = "(?:half|halves|third|quarter|fifth|tenth)s?"
#: A number and what it is of, and ratios in words.
_FIGURE = re.compile(
    rf"{_NUMBER}[ -]?{_UNIT}|\b(?:few|several) (?:{_TIME}\b|times\b)"
    rf"|\b(?:in|under|within|than|about|of) an? {_TIME}\b"
    r"|(?:hundredths|thousandths|tenths?) of an? (?:percent|(?:micro|milli)?second)"
    rf"|\b(?:an?|two|three) {_PART} (?:of the (?:time|error|memory)|less|more|fewer)\b"
    r"|\bhalf the (?:time|memory|size|processor)\b|\b(?:twice|half) as (?:fast|long|much)\b"
    rf"|\bRMSE(?: (?:of|is|about|was|by)){{0,2}} {_NUMERAL}"
    rf"|\bgaps?(?: (?:of|is|was|about|below)){{0,2}} {_NUMERAL}"
)
#: The level of confidence of intervals is no measurement.
_LEVEL = re.compile(r"95 ?%")
#: In a README every number with a point is one, and every large one.
_PLAIN = re.compile(r"(?<![\w.^])\d[\d,]*\.\d+(?:e-?\d+)?(?![\w.])|(?<![\w.])\d{1,3}(?:,\d{3})+(?!\w)")
#: What the numbers of a column are of.
_HEAD = re.compile(r"(?:[KMG]B|m?s|seconds|minutes|%|RMSE)(?=,|$)")
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`[^`\n]*`")
_COMMENT = re.compile(r"(?:^|\s)#\s.*$", re.MULTILINE)


def files(root: Path) -> list[Path]:
    """Return what has prose: documents (pages that are made from results.json are none), and the package."""
    documents = [page for page in sorted((root / "docs").rglob("*.md")) if page.parent.name != "benchmarks"]
    others = [root / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [
        path
        for path in (
            *others,
            root / "examples" / "README.md",
            *documents,
            *sorted((root / "src").rglob("*.py")),
        )
        if path.exists()
    ]


def blocks(text: str) -> str:
    """Return what stands in the blocks of a document."""
    return "\n".join(_BLOCK.findall(text))


def prose(path: Path) -> str:
    """Return the prose of a file: a document without its blocks but for their comments, a module's texts."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return _BLOCK.sub(lambda block: "\n".join(_COMMENT.findall(block.group(0))), text)
    if not _FIGURE.search(text):
        return ""  # the quick way for most modules
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    named = ((tokenize.tok_name[token.type], token.string) for token in tokens)
    return "\n".join(string for name, string in named if name in ("COMMENT", "STRING", "FSTRING_MIDDLE"))


def figures(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """Yield every figure in prose with the words around it."""
    units: dict[int, str] = {}
    for line in text.splitlines():
        found = [match for match in _FIGURE.finditer(line) if not _LEVEL.fullmatch(match.group(0))]
        if path.name == "README.md":
            plain = _SPAN.sub(lambda span: " " * len(span.group(0)), line)
            found += [match for match in _PLAIN.finditer(plain) if not _FIGURE.search(match.group(0))]
        for match in found:
            yield match.group(0), line[max(0, match.start() - 40) : match.end() + 40].strip()
        cells = [cell.strip() for cell in line.split("|")] if line.startswith("|") else []
        units = {at: units[at] for at in units if at < len(cells)} or {
            at: head.group(0) for at, cell in enumerate(cells) if (head := _HEAD.match(cell)) is not None
        }
        for at, unit in units.items():
            if re.fullmatch(_NUMERAL, cells[at]):
                yield f"{cells[at]} {unit}", line[:80]
