"""Bases of ResidualPlanner+: for each attribute a predicate set, whose predicates are what is measured."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import WorkloadError
from matrixdp.forms import Record, key, record
from matrixdp.language.entry import PREDICATES_BY_ATTRIBUTE, AttributeSets
from matrixdp.language.predicates import PredicateForm
from matrixdp.specification.load import files_under, read_document, refused

__all__ = ["bases_on", "read_bases"]


@final
@record
class _WrittenBases(Record):
    """The file of bases."""

    error = WorkloadError

    bases: Mapping[str, PredicateForm] = key(
        PREDICATES_BY_ATTRIBUTE,
        missing="a predicate set for each attribute: {bases: {age: prefix, sex: {matrix: sex.npy}}}",
    )


def read_bases(given: object) -> Mapping[str, PredicateForm]:
    """Return the bases that a YAML or JSON file or a mapping gives.

    Parameters
    ----------
    given : path, str or mapping
        A file with the key ``bases``; or the mapping itself: predicate sets as in a product, or matrices, by
        attribute.

    Raises
    ------
    MatrixDPError
        If it cannot be read, or is wrong.

    Examples
    --------
    >>> {name: form.text for name, form in read_bases({"age": "prefix", "sex": np.eye(2)}).items()}
    {'age': 'prefix', 'sex': 'matrix'}
    """
    if isinstance(given, str | os.PathLike):
        file = Path(given)
        document = read_document(file)
        with refused(document.lines):
            return _WrittenBases.read(document.value, files_under(file.resolve().parent)).bases
    if isinstance(given, Mapping):
        matrices: dict[Any, Any] = {
            name: {"matrix": basis} if isinstance(basis, np.ndarray) else basis
            for name, basis in given.items()
        }
        return _WrittenBases.read({"bases": matrices}).bases
    found = f"a {type(given).__name__}"
    raise WorkloadError.at(("bases",), found, "a file with the key bases, or a predicate set by attribute")


def bases_on(domain: Domain, bases: Mapping[str, PredicateForm]) -> dict[str, NDArray[np.float64]]:
    """Return the bases as matrices over the codes of their attributes.

    Examples
    --------
    >>> bases_on(Domain({"age": 3}), read_bases({"age": "prefix"}))["age"]
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """
    sets = AttributeSets.on(domain, bases, "bases")
    return {
        attribute.name: predicates.apply(np.eye(attribute.size))
        for attribute, predicates in zip(sets.attributes, sets.predicates, strict=True)
    }
