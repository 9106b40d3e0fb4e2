"""Commands that read options by their types alone: Typer's own way loads Pydantic.

That takes as long as many of the other libraries of a short command together.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["PlainCommand", "PlainGroup"]


class _Plain:
    """Reads an option or argument by its parser or type, and leaves to Typer what that refuses."""

    def __init__(self, read: Callable[[str], object], typers: Callable[[], Any]) -> None:
        self.read, self.typers = read, typers

    def coerce(self, value: object, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if isinstance(value, str):
            with suppress(ValueError, typer.BadParameter):
                return self.read(value)
        return self.typers().coerce(value, param=param, ctx=ctx)


def _readable(path: str) -> Path:
    if not os.access(path, os.R_OK):
        raise ValueError("no file, or one that cannot be read")
    return Path(path)


def _unknown(value: str) -> None:
    raise ValueError(value)


def _plainly(parameters: list[Any]) -> list[Any]:
    """Return the parameters, which read plainly where the version of Typer has this seam."""
    for parameter in parameters:
        typers = getattr(parameter, "get_runtime_param", None)
        if typers is not None and not isinstance(typers, partial):
            described = parameter.type_descriptor
            kind, read = described.annotation, described.parameter_info.parser
            if read is None and isinstance(kind, type):
                read = _readable if kind is Path else kind if issubclass(kind, str) else None
            parameter.get_runtime_param = partial(_Plain, read or _unknown, typers)
    return parameters


class PlainCommand(TyperCommand):
    """A command whose options are read plainly."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments, with that for help."""
        return _plainly(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """Commands, and options before them that are read plainly."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, with that for help."""
        return _plainly(super().get_params(ctx))
