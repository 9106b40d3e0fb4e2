"""Facts on screen: names and values in two columns, and figures as people read them."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable

import typer

__all__ = ["figure", "print_facts"]

_NARROWEST = 20


def figure(value: float | None) -> str:
    """Return a figure with four significant digits.

    Examples
    --------
    >>> figure(1234.5678), figure(0.00012345), figure(None)
    ('1,235', '0.0001234', '-')
    """
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e12 else f"{value:.3e}"
    return f"{value:.4g}"


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns, as wide as the screen.

    Examples
    --------
    >>> print_facts([("unit", "one record a person"), ("groups", "17")])
    unit    one record a person
    groups  17
    """
    pairs = list(facts)
    names = max((len(name) for name, _ in pairs), default=0)
    width = max(shutil.get_terminal_size().columns - names - 2, _NARROWEST)
    for name, value in pairs:
        first, *others = textwrap.wrap(value, width, break_on_hyphens=False) or [""]
        typer.echo(f"{typer.style(name.ljust(names), bold=True)}  {first}".rstrip())
        for line in others:
            typer.echo(f"{'':{names}}  {line}")
