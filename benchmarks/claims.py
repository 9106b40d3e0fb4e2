"""Figures in the README and the documentation, and where in results.json each of them was measured.

claims.toml holds sentences and rows of tables with a placeholder for each figure. A test renders them from
results.json, and fails where a text says another; ``python benchmarks/run.py --texts`` writes them anew. It
also fails at a figure in a document, or in a text or comment of the package, that is neither there nor named.

python benchmarks/claims.py [ROOT]    says which texts differ, and which figures have no source
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import blocks, figures, files, prose
from page_published import counted
from published import PAPERS, TABLES
from values import number

from matrixdp.selection.registry import MECHANISMS

_FILE = Path(__file__).parent / "claims.toml"
_PLACE = re.compile(r"\{([^{}]*)\}")


class Results:
    """The figures of results.json, by words.

    Examples
    --------
    >>> figures = [{"name": "t", "figures": {"rmse": 2.5, "rows": []}, "cpu_seconds": 3.0}]
    >>> Results(figures).value("part; t; rmse"), Results(figures).value("part; t; cpu_seconds")
    (2.5, 3.0)
    """

    def __init__(self, parts: list[dict[str, Any]]) -> None:
        self._parts = {part["name"]: part for part in parts}

    def value(self, words: str) -> Any:
        """Return a figure.

        Parameters
        ----------
        words : str
            ``ours; TABLE; ROW; MECHANISM``, ``printed; TABLE; ROW; COLUMN``, ``queries; TABLE; ROW``,
            ``row; PART; ROW; KEY``, ``count; KEY`` (of all papers, or ``count; PAPER; KEY``),
            ``model; PART; WAY; KEY``, ``all; KEY`` (the sum over all parts but those that run by name alone),
            ``mechanisms`` (how many there are), or ``part; NAME; KEY`` with one of a part's own figures, or
            of what it took.
        """
        kind, *names = [word.strip() for word in words.split(";")]
        known: dict[str, Callable[..., Any]] = {
            "ours": lambda table, row, name: self._row(table, row)["cells"][name]["error"],
            "printed": self._printed,
            "queries": lambda table, row: self._row(table, row)["queries"],
            "count": self._count,
            "row": lambda part, row, key: self._parts[part]["figures"]["rows"][row][key],
            "part": self._figure,
            "model": lambda part, way, key: self._parts[part]["figures"]["table"][way][key],
            "all": lambda key: sum(part[key] for part in self._parts.values() if "large" not in part),
            "mechanisms": lambda: len(MECHANISMS),
        }
        return known[kind](*names)

    def _row(self, table: str, row: str) -> dict[str, Any]:
        rows: list[dict[str, Any]] = self._parts[table]["figures"]["rows"]
        return next(found for found in rows if found["name"] == row)

    def _printed(self, table: str, row: str, column: str) -> float:
        columns = self._row(table, row)["columns"]
        return number(next(found for found in columns if found["title"] == column)["published"])

    def _count(self, *names: str) -> int:
        *paper, key = names
        tables = (
            [table for own in PAPERS if own.name == paper[0] for table in own.tables] if paper else TABLES
        )
        found: int = counted([self._parts[table.name] for table in tables if table.name in self._parts])[key]
        return found

    def _figure(self, name: str, key: str) -> Any:
        part = self._parts[name]
        return part["figures"][key] if key in part.get("figures", {}) else part[key]


@dataclass(frozen=True)
class Claim:
    """A text with figures.

    Attributes
    ----------
    file : str
        Relative to the project's root.
    text : str
        With ``{words | format}`` in place of each figure, the words those of `Results.value`; ``*100`` or
        ``/1e6`` before the bar multiplies or divides.
    """

    file: str
    text: str

    def rendered(self, results: Results) -> str:
        """Return the text with the figures as they were measured."""

        def figure(found: re.Match[str]) -> str:
            words, _, form = found.group(1).partition("|")
            words, sign, number = re.fullmatch(r"(.*?)(?:([*/])([\de.]+))?\s*", words).groups()  # type: ignore[union-attr]
            value = results.value(words)
            if sign is not None:
                value = value * float(number) if sign == "*" else value / float(number)
            return format(value, form.strip())

        return _PLACE.sub(figure, self.text)

    def found(self, text: str) -> str | None:
        """Return what a file says in its place, or None if it says nothing like it."""
        pieces = _PLACE.split(self.text)[::2]
        pattern = r"([\d.,-]+?)".join(re.escape(piece) for piece in pieces)
        match = re.search(pattern + r"(?![\d])", text)
        return None if match is None else match.group(0)


def load_claims() -> list[Claim]:
    """Return every claim."""
    entries = tomllib.loads(_FILE.read_text(encoding="utf-8"))["claim"]
    return [Claim(entry["file"], entry["text"]) for entry in entries]


@dataclass(frozen=True)
class Named:
    """Figures of a file that are no measurements.

    Attributes
    ----------
    file : str
        Relative to the project's root.
    why : str
        What they are. ``shown`` are those that stand in a block of the same page too, which other tests run.
    texts : tuple of str
        The figures with words around them.
    """

    file: str
    why: str
    texts: tuple[str, ...]

    def without(self, text: str) -> str:
        """Return a text without them."""
        for known in self.texts:
            text = text.replace(known, "")
        return text

    def missing(self, text: str) -> Iterator[str]:
        """Yield those that a file does not have, or not in a block where they should be."""
        for known in self.texts:
            if known not in text:
                yield f"{self.file}: does not say {known!r}, which claims.toml names"
            elif self.why == "shown" and not all(n in blocks(text) for n in re.findall(r"\d\S*\d", known)):
                yield f"{self.file}: no block shows what {known!r} says"


def load_named() -> list[Named]:
    """Return what looks like a measured figure and is none."""
    entries = tomllib.loads(_FILE.read_text(encoding="utf-8"))["named"]
    return [Named(entry["file"], entry["why"], tuple(entry["texts"])) for entry in entries]


def read_results(root: Path) -> Results:
    """Return the results of the last runs."""
    return Results(json.loads((root / "docs/benchmarks/results.json").read_text(encoding="utf-8"))["parts"])


def differences(root: Path) -> Iterator[str]:
    """Yield, for each text that says something else than was measured, both."""
    results = read_results(root)
    for claim in load_claims():
        said, measured = claim.found((root / claim.file).read_text(encoding="utf-8")), claim.rendered(results)
        if said != measured:
            yield f"{claim.file}: says {said!r}, measured is {measured!r}"


def write_claims(root: Path) -> list[str]:
    """Write the measured figures into the texts, and return the files that changed."""
    results, changed = read_results(root), []
    for claim in load_claims():
        path = root / claim.file
        text = path.read_text(encoding="utf-8")
        said, measured = claim.found(text), claim.rendered(results)
        if said is not None and said != measured:
            path.write_text(text.replace(said, measured), encoding="utf-8")
            changed.append(claim.file)
    return sorted(set(changed))


def unfounded(root: Path) -> Iterator[str]:
    """Yield every figure that no claim has and that is not named, and what is named and stands nowhere."""
    claims, named = load_claims(), load_named()
    for path in files(root):
        name = path.relative_to(root).as_posix()
        text = prose(path)
        for claim in claims:
            said = claim.found(text) if claim.file == name else None
            text = text if said is None else text.replace(said, "")
        for entry in named:
            if entry.file == name:
                yield from entry.missing(path.read_text(encoding="utf-8"))
                text = entry.without(text)
        for figure, around in figures(path, text):
            yield f"{name}: {figure} in {around!r}"


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    said = [*differences(root), *unfounded(root)]
    print("\n".join(said) or "every figure is that of docs/benchmarks/results.json")
    sys.exit(1 if said else 0)


if __name__ == "__main__":
    main()
