"""Differentially private answers to workloads of counting queries, with the least possible error.

Names are loaded when they are first used, so that ``import matrixdp`` is fast::

    import matrixdp as mdp

    domain = mdp.Domain({"sex": ["female", "male"], "age": range(115)})
    workload = mdp.Workload(domain, mdp.marginals(2), mdp.product(sex="identity", age="prefix"))
    strategy = mdp.select(workload)
    release = strategy.measure(table, mdp.Budget(rho=0.1)).reconstruct(workload)
    release.answers
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matrixdp.domain import Domain, OutOfDomain
    from matrixdp.errors import (
        DomainError,
        MatrixDPError,
        NumericalError,
        PrivacyError,
        SignatureError,
        SourceError,
        SpecificationError,
        StorageError,
        TooLargeError,
        UnsupportedQueryError,
        WorkloadError,
    )
    from matrixdp.language import cells, dense, disjunction, kway, marginals, pairwise, product
    from matrixdp.ledger import Ledger
    from matrixdp.model import Model
    from matrixdp.papers import families
    from matrixdp.privacy import Budget, Unit
    from matrixdp.queries import Workload
    from matrixdp.releases import (
        PublicKey,
        Release,
        SigningKey,
        check_signature,
        load_release,
        make_keys,
        recover_ledger,
        recover_release,
        save_release,
        sign_release,
    )
    from matrixdp.report import report_release
    from matrixdp.specification import Specification, load_specification
    from matrixdp.statements import sql
    from matrixdp.statistics import ask
    from matrixdp.strategy import MeasuredStrategy, Strategy, select
    from matrixdp.strategy.pipeline import release
    from matrixdp.verification import Verification, explain_release, verify_model, verify_release

__version__ = "0.1.0"

# what is logged is shown where the program that uses this asks for it
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "Budget",
    "Domain",
    "DomainError",
    "Ledger",
    "MatrixDPError",
    "MeasuredStrategy",
    "Model",
    "NumericalError",
    "OutOfDomain",
    "PrivacyError",
    "PublicKey",
    "Release",
    "SignatureError",
    "SigningKey",
    "SourceError",
    "Specification",
    "SpecificationError",
    "StorageError",
    "Strategy",
    "TooLargeError",
    "Unit",
    "UnsupportedQueryError",
    "Verification",
    "Workload",
    "WorkloadError",
    "__version__",
    "ask",
    "cells",
    "check_signature",
    "dense",
    "disjunction",
    "explain_release",
    "families",
    "kway",
    "load_release",
    "load_specification",
    "make_keys",
    "marginals",
    "pairwise",
    "product",
    "recover_ledger",
    "recover_release",
    "release",
    "report_release",
    "save_release",
    "select",
    "sign_release",
    "sql",
    "verify_model",
    "verify_release",
]

_ROOMS = {
    "statements": ("sql",),
    "statistics": ("ask",),
    "strategy": ("MeasuredStrategy", "Strategy", "select"),
    "strategy.pipeline": ("release",),
    "domain": ("Domain", "OutOfDomain"),
    "errors": (
        "DomainError",
        "MatrixDPError",
        "NumericalError",
        "PrivacyError",
        "SignatureError",
        "SourceError",
        "SpecificationError",
        "StorageError",
        "TooLargeError",
        "UnsupportedQueryError",
        "WorkloadError",
    ),
    "ledger": ("Ledger",),
    "model": ("Model",),
    "papers": ("families",),
    "privacy": ("Budget", "Unit"),
    "releases": (
        "PublicKey",
        "Release",
        "SigningKey",
        "check_signature",
        "load_release",
        "make_keys",
        "recover_ledger",
        "recover_release",
        "save_release",
        "sign_release",
    ),
    "report": ("report_release",),
    "verification": ("Verification", "explain_release", "verify_model", "verify_release"),
    "specification": ("Specification", "load_specification"),
    "language": ("cells", "dense", "disjunction", "kway", "marginals", "pairwise", "product"),
    "queries": ("Workload",),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}


if not TYPE_CHECKING:  # so that a misspelt name is an error to a checker, too

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
