"""What commands are given, and the pictures that they draw: what is refused."""

import sys
from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp.cli.comparison import Outcome
from matrixdp.cli.inputs import reference_budget
from matrixdp.cli.pictures import draw_comparison
from matrixdp.errors import SpecificationError

SPEC = "domain: {sex: [female, male]}\nworkload: [marginals: 1]\n"


def test_figures_need_a_budget():
    with pytest.raises(SpecificationError, match="privacy: found nothing; expected a budget"):
        reference_budget(mdp.load_specification(SPEC))


def test_a_picture_of_nothing_is_refused(tmp_path: Path):
    with pytest.raises(SpecificationError, match=r"--picture.*found no mechanism that applies"):
        draw_comparison([Outcome("dense", "gaussian")], tmp_path / "picture.png", "nothing")
    assert not (tmp_path / "picture.png").exists()


def test_pictures_need_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SpecificationError, match=r"pip install 'matrixdp\[pictures\]'"):
        draw_comparison([Outcome("dense", "gaussian")], tmp_path / "picture.png", "nothing")
