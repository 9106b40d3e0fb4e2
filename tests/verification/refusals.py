"""Folders and files that are not there, or not whole."""

from pathlib import Path

import matrixdp as mdp
from tests.builders import release
from tests.refusals import Refusal


def released(folder: Path) -> Path:
    return mdp.save_release(release(), folder / "out")


def explained_damaged(folder: Path) -> object:
    (released(folder) / "measurement.mdp").write_bytes(b"other")
    return mdp.explain_release(folder / "out")


def verified_unfinished(folder: Path) -> object:
    (folder / ".out.1-2.unfinished").mkdir()
    return mdp.verify_release(folder / ".out.1-2.unfinished")


REFUSALS = [
    Refusal("no release", "storage", "", lambda folder: mdp.verify_release(folder / "none")),
    Refusal("no model", "storage", "", lambda folder: mdp.verify_model(folder / "none")),
    Refusal("no ledger", "storage", "", lambda f: mdp.verify_release(released(f), ledger=f / "none")),
    Refusal("damaged", "damaged-file", "", explained_damaged),
    Refusal("unfinished", "storage", "", verified_unfinished),
]
