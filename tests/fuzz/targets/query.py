"""The text that the command ``answer`` takes, on saved releases of both noises."""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from matrixdp.cli.answer import entry_of
from matrixdp.release import load_release
from tests.fuzz.documents import ENTRIES, released, write_arrays
from tests.fuzz.oracle import Case, Finding


def seeds(folder: Path) -> Iterable[bytes]:
    """Return entries of every form."""
    flow = ["product: {age: {ranges: [[0, 4]]}}", "marginals: [[age]]", "{kway: 1, predicates: prefix}"]
    return [b"\0" + text.encode() for text in (*ENTRIES, *flow)] + [b"\1" + text.encode() for text in flow]


def opened(folder: Path) -> Case:
    """Return what answers one: every answer is finite, with a standard error."""
    write_arrays(folder)
    releases = [load_release(path) for path in released(folder)]
    os.chdir(folder)

    def case(data: bytes) -> None:
        release = releases[data[0] % len(releases) if data else 0]
        entry, base = entry_of(data[1:].decode("utf-8", "surrogateescape"))
        answers = release.answer(entry, base_path=base)
        for name in ("estimate", "stddev", "lower", "upper"):
            if not np.isfinite(answers.column(name).to_numpy()).all():
                raise Finding(f"an answer whose {name} is not finite")

    return case
