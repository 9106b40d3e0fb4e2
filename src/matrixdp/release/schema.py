"""The published JSON Schema of ``release.json``."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

__all__ = ["release_schema"]


def release_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of ``release.json``, to which every release validates.

    Examples
    --------
    >>> release_schema()["properties"]["format"]
    {'const': 'matrixdp release'}
    """
    text = resources.files("matrixdp.release").joinpath("release.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
