"""Rooms whose names are loaded when they are first used."""

import sys
from importlib import import_module
from pkgutil import iter_modules

import pytest

LAZY = ["matrixdp.answers", "matrixdp.measure", "matrixdp.pictures", "matrixdp.selection"]


@pytest.mark.parametrize("room", LAZY)
def test_names_are_those_of_their_modules_and_no_modules_themselves(room: str):
    face = import_module(room)
    modules = {one.name: import_module(f"{room}.{one.name}") for one in iter_modules(face.__path__)}
    for name in face.__all__:
        # also after all modules were imported, which sets them as attributes of the room
        assert getattr(face, name) is not modules.get(name), name
    with pytest.raises(AttributeError, match=f"module '{room}' has no attribute 'absent'"):
        face.absent  # noqa: B018
    assert "absent" not in vars(sys.modules[room])
