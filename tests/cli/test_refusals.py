"""What commands refuse, each with what to write instead."""

import sys
from pathlib import Path

import pytest
import typer

from matrixdp.cli.compare import Outcome, draw_comparison
from matrixdp.cli.options import entries_of, noise_name
from matrixdp.errors import SpecificationError


def test_queries_that_are_no_entries(tmp_path: Path):
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xff")
    for query, says in (
        (str(tmp_path / "bytes"), "a file that cannot be read as text; expected a workload entry"),
        ("[a: 1, [b]]", "a list; expected a workload entry"),
        ("[] #:", "an empty list; expected a workload entry"),
        ("nothing", "'nothing', which is no file and no entry"),
    ):
        with pytest.raises(SpecificationError, match=says):
            entries_of(query)


def test_queries_may_be_longer_than_names_of_files(tmp_path: Path):
    sets = ", ".join(f"[{code}]" for code in range(1500))
    [(entry, base)] = entries_of(f"product: {{code: {{sets: [{sets}]}}}}")
    assert (len(entry["product"]["code"]["sets"]), base) == (1500, Path())
    with pytest.raises(SpecificationError, match="which is no file and no entry"):
        entries_of("x" * 300)


def test_noises_that_are_none():
    with pytest.raises(typer.BadParameter, match="found 'laplas'; expected auto, gaussian, laplace"):
        noise_name(("auto",), "laplas")


def test_pictures_without_matplotlib_or_of_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    picture = tmp_path / "picture.png"
    with pytest.raises(SpecificationError) as nothing:
        draw_comparison([Outcome("dense", "gaussian")], picture, "nothing")
    assert nothing.value.path == ("--picture",)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SpecificationError) as missing:
        draw_comparison([Outcome("dense", "gaussian", weighted_rmse=1.0)], picture, "nothing")
    assert missing.value.code == "missing-library"
    assert not picture.exists()
