"""A small release and its parts, each made once: what tests of other things start from."""

import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import matrixdp as mdp

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": 4})
WORKLOAD = mdp.Workload(
    DOMAIN, mdp.marginals([0, 1]), mdp.dense(np.eye(4), attributes=["age"], weight=2, name="ages")
)
TABLE = {"sex": ["male", "female"], "age": [1, 2]}
_HOME = tempfile.TemporaryDirectory()


@cache
def strategy() -> mdp.Strategy:
    return mdp.select(WORKLOAD)


@cache
def release() -> mdp.Release:
    budget = mdp.Budget(epsilon=1, delta=1e-6)
    return strategy().measure(TABLE, budget).reconstruct(confidence=0.9)


@cache
def keys() -> tuple[Path, Path]:
    """The files of a private key and of its public one."""
    return mdp.make_keys(Path(_HOME.name) / "office")


@cache
def key() -> mdp.SigningKey:
    return mdp.SigningKey.load(keys()[0])


@cache
def signed() -> Path:
    """The folder of the release, with answers as CSV too and signed: to be read, and copied to be changed."""
    return mdp.save_release(release(), Path(_HOME.name) / "out", csv=True, key=key())


def saved(
    folder: Path,
    workload: mdp.Workload,
    budget: mdp.Budget,
    table: Any = None,
    measured: Mapping[str, Any] = MappingProxyType({}),
    **selected: Any,
) -> mdp.Release:
    """Save a release, of one record with the first value of each attribute where no table is given."""
    strategy = mdp.select(workload, budget=budget, **selected)
    first = {name: [workload.domain[name].value(0)] for name in workload.domain.names}
    own = strategy.measure(first if table is None else table, budget, **measured).reconstruct()
    mdp.save_release(own, folder, csv=True)
    return own


def copied(folder: Path) -> Path:
    """Return a copy of the folder of the release."""
    return Path(shutil.copytree(signed(), folder / "out"))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
