"""Options are read as Typer reads them."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.core import TyperCommand, TyperGroup
from typer.testing import CliRunner

import matrixdp.cli.app
from matrixdp.cli.app import PlainCommand, PlainGroup


class _Colour(StrEnum):
    red = "red"


def _even(text: str) -> int:
    if int(text) % 2:
        raise typer.BadParameter("an odd number")
    return int(text)


def _made(group: type[TyperGroup], command: type[TyperCommand]) -> typer.Typer:
    made = typer.Typer(cls=group, rich_markup_mode=None)

    @made.callback()
    def _before(words: Annotated[str, typer.Option()] = "none") -> None:
        typer.echo(words)

    @made.command(cls=command)
    def show(
        path: Path,
        rest: Annotated[list[str] | None, typer.Argument()] = None,
        colour: _Colour = _Colour.red,
        even: Annotated[int, typer.Option(parser=_even)] = 2,
        count: Annotated[int | None, typer.Option(min=1)] = None,
        each: Annotated[list[str] | None, typer.Option()] = None,
        there: Annotated[bool, typer.Option("--there")] = False,
    ) -> None:
        values = (path, rest, colour, even, count, each, there)
        typer.echo(json.dumps([f"{type(value).__name__} {value}" for value in values]))

    return made


@pytest.mark.parametrize(
    "words",
    [
        ["show", "."],
        ["--words", "some", "show", "absent", "a", "b", "--colour", "red", "--even", "4", "--count", "3"],
        ["show", ".", "--each", "x", "--each", "y", "--there"],
        ["show", ".", "--colour", "blue"],
        ["show", ".", "--colour", "Red"],
        ["show", ".", "--even", "3"],
        ["show", ".", "--even", "three"],
        ["show", ".", "--count", "0"],
        ["show", ".", "--count", "x"],
        ["show"],
        ["show", "--help"],
        ["--help"],
    ],
)
def test_options_are_read_as_typer_reads_them(words: list[str]) -> None:
    plain, typers = (
        CliRunner().invoke(made, words)
        for made in (_made(PlainGroup, PlainCommand), _made(TyperGroup, TyperCommand))
    )
    assert (plain.exit_code, plain.output) == (typers.exit_code, typers.output)
    assert plain.output


def test_the_program_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = matrixdp.cli.app.nothing
