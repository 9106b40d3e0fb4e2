"""Canaries, and the search for them in whatever a run leaves: text, files, what is packed in files."""

from __future__ import annotations

import base64
import datetime as dt
import io
import sqlite3
import struct
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq

#: What every text canary holds, so that a part of one is found too.
STEM = "kanarie"
TEXTS = {
    "out of domain": "Zilpzalp Kanarie 7",
    "not asked": "Girlitz,Kanarie\t4",
    "id": "Stieglitz-Kanarie-%d",
}
IN_NAMES = "Distelfink Kanarie 9"
NUMBERS = {"out of domain": 739184620175, "not asked": 518273946051.5, "small": 0.0918273645546}
DATES = {"out of domain": dt.date(1893, 7, 19), "not asked": dt.date(1807, 3, 29)}


def _of_text(text: str) -> Iterator[bytes]:
    """Yield the encodings in which a short text may stand, in small letters."""
    for encoding in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le"):
        yield text.encode(encoding)
    raw = text.encode()
    yield raw[::-1]
    yield quote(raw).encode().lower()


def _of_letters(stem: str) -> Iterator[bytes]:
    """Yield what capital and small letters become in encodings that keep neither."""
    for own in (stem, stem.capitalize(), stem.upper()):
        raw = own.encode()
        yield raw.hex().encode()
        for shift in range(3):
            coded = base64.b64encode(b"\0" * shift + raw)
            yield coded[(8 * shift + 5) // 6 : 8 * (shift + len(raw)) // 6].lower()


def _of_number(number: float) -> Iterator[bytes]:
    texts = {repr(number), f"{number:,}", f"{number:e}"}
    if number == int(number):
        texts |= {str(int(number)), f"{int(number):,}", f"{int(number):_}", f"{int(number):x}"}
        yield from (struct.pack(form, int(number)) for form in ("<q", ">q"))
    for text in texts:
        yield from _of_text(text)
    yield from (struct.pack(form, number) for form in ("<d", ">d"))


def _of_date(date: dt.date) -> Iterator[bytes]:
    forms = "%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y%m%d"
    for text in (*map(date.strftime, forms), repr(date)[14:-1]):
        yield from _of_text(text)
    days = date.toordinal() - dt.date(1970, 1, 1).toordinal()
    yield struct.pack("<q", days * 86_400 * 10**6)


def _patterns() -> dict[bytes, str]:
    found = dict.fromkeys((*_of_text(STEM), *_of_letters(STEM)), "a text")
    for where, number in NUMBERS.items():
        found |= dict.fromkeys(_of_number(number), f"the number {where}")
    for where, date in DATES.items():
        found |= dict.fromkeys(_of_date(date), f"the date {where}")
    return found


_PATTERNS = _patterns()


def found_in(content: bytes) -> str | None:
    """Return which canary stands somewhere, in whatever encoding, or None."""
    lowered = content.lower()
    for pattern, what in _PATTERNS.items():
        if pattern in content or pattern in lowered:
            place = max(content.find(pattern), lowered.find(pattern))
            return f"{what}: {content[max(0, place - 60) : place + 60]!r}"
    return None


def everything(folders: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of all files in some folders, and what is packed in them."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            yield f"the name of {path}", str(path.relative_to(folder)).encode()
            if path.is_file():
                yield str(path), path.read_bytes()
                yield from _unpacked(path)


def _unpacked(path: Path) -> Iterator[tuple[str, bytes]]:
    content = path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield f"{name} in {path}", archive.read(name)
    elif content.startswith(b"PAR1") and content.endswith(b"PAR1"):
        table = pq.read_table(path)
        yield f"the table in {path}", f"{table.to_pydict()} {table.schema.metadata}".encode()
    elif content.startswith(b"SQLite format 3\0"):
        with closing(sqlite3.connect(path)) as connection:
            yield f"the database {path}", "\n".join(connection.iterdump()).encode()
