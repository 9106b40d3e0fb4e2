"""What a notebook and an editor see of the package."""

import subprocess
import sys

import pytest

import matrixdp as mdp


def test_an_editor_is_offered_what_is_public_alone():
    program = "import matrixdp as mdp; print(*(name for name in dir(mdp) if not name.startswith('_')))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == [name for name in mdp.__all__ if not name.startswith("_")]


def test_a_notebook_shows_its_own_line_and_what_is_wrong():
    with pytest.raises(mdp.DomainError) as caught:
        mdp.Domain({"a": [1, 1]})
    caught.value.add_note("a note")
    shown = caught.value._render_traceback_()
    assert shown[0].startswith(f'  File "{__file__}"')
    assert shown[-2:] == [f"matrixdp.errors.DomainError: {caught.value}", "a note"]
    assert not any("src/matrixdp" in line for line in shown)
