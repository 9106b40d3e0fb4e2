"""Differentially private answers to workloads of counting queries, with the least possible error.

Names are loaded when they are first used, so that ``import matrixdp`` is fast; ``__init__.pyi`` lists them::

    import matrixdp as mdp

    domain = mdp.Domain({"sex": ["female", "male"], "age": range(115)})
    workload = mdp.Workload(domain, mdp.marginals(2), mdp.product(sex="identity", age="prefix"))
    strategy = mdp.select(workload)
    release = strategy.measure(table, mdp.Budget(rho=0.1)).reconstruct(workload)
    release.answers
"""

from __future__ import annotations

import logging
import re
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

# what is logged is shown where the program that uses this asks for it
logging.getLogger(__name__).addHandler(logging.NullHandler())

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOMES = {name: home for home, name in re.findall(r"from (matrixdp\.[\w.]+) import (\w+) as", _STUB)}
__all__ = sorted(["__version__", *_HOMES])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
