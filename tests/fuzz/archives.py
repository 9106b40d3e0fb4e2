"""Archives taken apart, changed by a recipe, and put together again with digests that fit."""

from __future__ import annotations

import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzz.recipe import Recipe, mutated

#: Keys that headers have.
KEYS = (
    "format", "format_version", "workload", "plan", "domain", "entries", "kind", "noise", "matrices", "parts",
    "vectors", "blocks", "variance", "multipliers", "size", "unsupported", "authorization", "budget", "cost",
    "values", "max_records", "out_of_domain", "assumptions", "private", "certificate", "checksums", "$array",
    "rho", "mu", "epsilon", "delta", "neighbours", "weights", "targets", "ledger", "unit",
)  # fmt: skip
_DTYPES = (
    "<f8", "<i8", "<i4", ">f8", ">i8", "|O", "<f4", "|b1", "<U3", "<i2", "<c16", "<M8[s]", "|V8", "garbage",
)  # fmt: skip
_ENTRIES = (0, 1, -1, 2, 3, 7, 2**31 - 1, -(2**31), 2**53, 2**62, 2**63 - 1, -(2**63), 2**32, 10**9)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-300, 2.0**53)

Members = dict[str, bytes]


def members_of(archive: bytes) -> Members:
    """Return the files in an archive."""
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        return {name: source.read(name) for name in source.namelist()}


def altered(members: Members, recipe: Recipe) -> bytes:
    """Return an archive with some of its header, arrays and members changed, most digests made right."""
    members = dict(members)
    what = recipe.below(8)
    header = json.loads(members["header.json"])
    if what != 1:
        sums = header.pop("checksums", {})
        header = mutated(header, recipe, KEYS, 1 if what < 6 else 5)
        if isinstance(header, dict):
            header.setdefault("checksums", sums)
    if what in (1, 2, 6, 7):
        names = [name for name in members if name.startswith("arrays/")]
        for _ in range(1 + recipe.below(3)):
            if names and recipe.left:
                name = names.pop(recipe.below(len(names)))
                members[name] = changed_array(members[name], recipe)
    if what == 7:
        _moved_members(members, recipe)
    return _joined(members, header, repair=recipe.below(16) != 1, recipe=recipe)


def changed_array(content: bytes, recipe: Recipe) -> bytes:
    """Return a ``.npy`` file with another header, another length, or other numbers."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    kind = recipe.below(6)
    if kind <= 1 and array.size:
        options: Sequence[Any] = _FLOATS if array.dtype.kind == "f" else _ENTRIES
        for _ in range(1 + recipe.below(4)):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = np.array(recipe.choice(options)).astype(array.dtype)
            array.ravel()[recipe.below(array.size)] = value
        return _npy(array.dtype.str, str(array.shape), array.tobytes())
    shape, dtype, data = str(array.shape), array.dtype.str, array.tobytes()
    if kind == 2:
        dtype = recipe.choice(_DTYPES)
    elif kind == 3:
        whole = array.size
        shape = recipe.choice(
            (f"({whole},)", f"({whole}, 1)", f"(1, {whole})", f"({whole}, 0)", "()", "(-1,)", f"({10**12},)",
             "(2**63,)", "(99999999999999999999,)", "(1,)", "'x'", "None", "(0, 9**9)", "(1.0,)",
             f"({whole}, 1, 1)")
        )  # fmt: skip
    elif kind == 4:
        data = data[: recipe.below(len(data) + 1)] + recipe.take(8)
    else:
        return overwritten(content, recipe, 1 + recipe.below(4), range(min(len(content), 128)))
    return _npy(dtype, shape, data)


def overwritten(content: bytes, recipe: Recipe, most: int, places: Sequence[int] | None = None) -> bytes:
    """Return a file with other bytes at some places."""
    changed = bytearray(content)
    for _ in range(most):
        if recipe.left:
            changed[recipe.choice(places or range(len(content)))] = recipe.below(256)
    return bytes(changed)


def _npy(dtype: str, shape: str, data: bytes) -> bytes:
    head = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data


def _moved_members(members: Members, recipe: Recipe) -> None:
    names = list(members)
    one, other = recipe.choice(names), recipe.choice(names)
    kind = recipe.below(4)
    if kind == 0:
        del members[one]
    elif kind == 1:
        members[one], members[other] = members[other], members[one]
    elif kind == 2:
        members[recipe.choice(("arrays/0.npy", "../x", "/x", "x", "header.json"))] = members[one]
    else:
        members[one] = members[one][: recipe.below(len(members[one]) + 1)]


def _joined(members: Members, header: object, *, repair: bool, recipe: Recipe) -> bytes:
    if isinstance(header, dict) and isinstance(header.get("checksums"), dict) and repair:
        arrays = [name for name in members if name.startswith("arrays/")]
        header["checksums"] = {name: hashlib.sha256(members[name]).hexdigest() for name in arrays}
    text = json.dumps(header).encode("utf-8")
    if "header.json" in members:
        members["header.json"] = text
        if repair and "header.sha256" in members:
            members["header.sha256"] = hashlib.sha256(text).hexdigest().encode()
    out = io.BytesIO()
    way = zipfile.ZIP_DEFLATED if recipe.below(32) == 1 else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", way) as target:
        for name, content in members.items():
            target.writestr(name, content)
    found = out.getvalue()
    if recipe.below(8) != 1:
        return found
    # the sizes and offsets in the directory of the zip file
    directory = range(found.rindex(b"PK\x01\x02"), len(found))
    return overwritten(found, recipe, 1 + recipe.below(4), directory)
