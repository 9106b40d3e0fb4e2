"""Altered releases whose checksums are all right again: what a forger without a key can do."""

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

Change = Callable[[dict[str, Any], dict[str, bytes]], None]


def forge_record(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change release.json."""
    record = folder / "release.json"
    written = json.loads(record.read_text(encoding="utf-8"))
    change(written)
    record.write_text(json.dumps(written, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def forge_archive(path: Path, change: Change, written: Callable[[Any], str] = json.dumps) -> None:
    """Change the header and the arrays of an archive, and every checksum in it."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members.pop("header.json"))
    del members["header.sha256"]
    change(header, members)
    header["checksums"] = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    text = written(header).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr("header.json", text)
        archive.writestr("header.sha256", hashlib.sha256(text).hexdigest())


def forge_measurement(folder: Path, change: Change, written: Callable[[Any], str] = json.dumps) -> None:
    """Change measurement.mdp, and every checksum that follows."""
    forge_archive(folder / "measurement.mdp", change, written)
    relist(folder, "measurement.mdp")


def relist(folder: Path, name: str) -> None:
    """Let release.json state the digest of a file as it is now."""
    data = (folder / name).read_bytes()

    def listed(record: dict[str, Any]) -> None:
        digest = hashlib.sha256(data).hexdigest()
        record["files"][name] = {"bytes": len(data), "sha256": digest}
        if name == "measurement.mdp":
            record["privacy"]["measurement"]["sha256"] = digest

    forge_record(folder, listed)


def flip(members: dict[str, bytes], name: str, place: int, bits: int) -> None:
    """Flip bits of one byte of a member of an archive."""
    data = bytearray(members[name])
    data[place] ^= bits
    members[name] = bytes(data)


def with_value(name: str, row: int, change: Any) -> Callable[[Any], Any]:
    """Return what puts another value, or what a function makes of the value, into a column of a table."""

    def changed(table: Any) -> Any:
        values = table[name].to_pylist()
        values[row] = change(values[row]) if callable(change) else change
        place = table.schema.get_field_index(name)
        field = table.schema.field(name).with_nullable(True)
        return table.set_column(place, field, pa.array(values, field.type))

    return changed


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the places of all numbers, texts, truth values and nulls in a JSON document."""
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    if inner is None:
        return [path]
    return [leaf for key, item in inner for leaf in leaves(item, (*path, key))]


def put(document: Any, path: tuple[str | int, ...], change: Callable[[Any], Any]) -> None:
    """Replace what stands at a place by what a function makes of it."""
    for step in path[:-1]:
        document = document[step]
    last = path[-1]
    there = last in document if isinstance(document, dict) else True
    document[last] = change(document[last] if there else None)
