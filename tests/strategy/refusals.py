# mypy: disable-error-code="arg-type"
"""What strategies refuse: budgets, arguments, other workloads, and matrices and parts of one's own."""

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse

import matrixdp as mdp
from matrixdp.specification import load_given
from tests.builders import strategy
from tests.refusals import Refusal, calling, numbered

_DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": range(4)})
_HALVES = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 1, 0]])
_PREFIXES = mdp.Workload(_DOMAIN, mdp.product(age="prefix"))
_OTHER = mdp.Workload(mdp.Domain({"sex": ["female", "male"], "age": 5}), mdp.marginals(1))
_SEX, _ALL = mdp.marginals([["sex"]]), mdp.marginals([0, 1])


class Unread:
    """A table that must not be touched."""

    def __getattr__(self, name: str) -> None:
        raise AssertionError(f"{name} was read")


made = partial(calling, mdp.Strategy.from_matrix, _DOMAIN)
parted = partial(calling, mdp.Strategy.from_parts, _DOMAIN)


def too_large() -> None:
    with patch("matrixdp.strategy.strategy.MAX_EXPLICIT_ENTRIES", 15):
        mdp.Strategy.from_matrix(_DOMAIN, "age", scipy.sparse.csr_array(_HALVES))


def given(text: str) -> Callable[[Path], object]:
    def attempt(folder: Path) -> None:
        (folder / "own.yaml").write_text(text)
        load_given(folder / "own.yaml", _PREFIXES)

    return attempt


def sexes() -> mdp.Strategy:
    return mdp.select(mdp.Workload(_DOMAIN, _SEX))


_NO_PARTS: list[Any] = [[], _SEX, None]
_MISSPELT = "strategy:\n  - product: {age: identity}\n    share: 1\n  - marginal: 1\n"
_BUDGETS = [mdp.Budget(epsilon=1), mdp.Budget(rho=1, neighbours="replace")]
_NONE: list[Any] = [{"rho": 1}, None, 1.0]
_NAN = np.where(np.arange(16).reshape(4, 4) == 6, np.nan, _HALVES)
_FINE = np.array([[Fraction(1, 3**40), Fraction(1), 0, 0]], dtype=object)
_STRATEGIES: list[tuple[str, str, Callable[..., Any]]] = [
    *(("privacy", "", lambda asked=budget: strategy().measure(Unread(), asked)) for budget in _BUDGETS),
    *(("privacy", "", lambda asked=budget: strategy().rmse(asked)) for budget in _BUDGETS),
    *(("privacy", "", lambda asked=budget: strategy().measure(Unread(), asked)) for budget in _NONE),
    *(("privacy", "", lambda asked=budget: strategy().rmse(asked)) for budget in _NONE),
    ("privacy", "", lambda: strategy().covariance(_SEX, 0, _SEX, 0, 1.0)),
    (
        "wrong-type",
        "out_of_domain",
        lambda: strategy().measure({"a": [1]}, mdp.Budget(rho=1), out_of_domain=3),
    ),
    ("workload", "", lambda: strategy().check_workload(_OTHER)),
    ("unsupported-query", "", lambda: sexes().check_workload(mdp.Workload(_DOMAIN, _ALL))),
    ("workload", "", lambda: mdp.select(_PREFIXES, mechanism=3)),
    ("privacy", "", lambda: mdp.select(_PREFIXES, budget=3)),
    ("wrong-type", "targets", lambda: mdp.select(_PREFIXES, targets=[20])),
    ("workload", "", lambda: mdp.select("a")),
    ("workload", "", lambda: mdp.Workload(_DOMAIN, [_SEX])),
]
_MARGINALS = mdp.Workload(_DOMAIN, _ALL)
_WIDE = mdp.Domain({"a": 100, "b": 100})
_RHO, _ADDED = mdp.Budget(rho=1), {"sex": ["male"], "age": [1]}
_SPECIFIED = {"domain": _DOMAIN.to_spec(), "workload": [{"marginals": [0, 1]}], "privacy": {"rho": 1}}


def in_rounds(workload: mdp.Workload = _MARGINALS, **asked: Any) -> Callable[[], mdp.Strategy]:
    return lambda: mdp.select(workload, rounds=2, **asked)


def with_a_strategy(strategy: Callable[[], mdp.Strategy], rounds: int) -> Callable[[Path], object]:
    def attempt(folder: Path) -> None:
        strategy().save(folder / "strategy.mdp")
        told = {**_SPECIFIED, "rounds": rounds}
        mdp.release(told, table=_ADDED, strategy=folder / "strategy.mdp")

    return attempt


def answering_another() -> None:
    measured = in_rounds()().measure(_ADDED, _RHO)
    measured.reconstruct(mdp.Workload(_DOMAIN, _SEX))


def relabelled() -> None:
    strategy = mdp.select(_PREFIXES)
    selection = dataclasses.replace(strategy.selection, rounds=2)
    mdp.Strategy(selection).measure(Unread(), _RHO)


_ROUNDS: list[tuple[str, str, Callable[..., Any]]] = [
    *(
        ("out-of-range", "rounds", calling(mdp.select, _MARGINALS, rounds=rounds))
        for rounds in (0, True, "2")
    ),
    ("conflict", "rounds", in_rounds(targets={"all": 9})),
    ("conflict", "rounds", in_rounds(noise="laplace")),
    ("conflict", "rounds", in_rounds(budget=mdp.Budget(epsilon=1))),
    ("not-supported", "rounds", in_rounds(mechanism="dense")),
    ("not-supported", "rounds", in_rounds(mdp.Workload(_DOMAIN, mdp.marginals(0)))),
    ("not-supported", "rounds", relabelled),
    ("too-large", "rounds", in_rounds(mdp.Workload(_WIDE, mdp.kway([1, 2], "range")))),
    ("conflict", "rounds", with_a_strategy(in_rounds(), 1)),
    ("conflict", "rounds", with_a_strategy(lambda: mdp.select(_MARGINALS), 2)),
    ("conflict", "workload", with_a_strategy(in_rounds(mdp.Workload(_DOMAIN, mdp.marginals([0, 1, 2]))), 2)),
    ("conflict", "workload", answering_another),
]
_OWN: list[tuple[str, str, Callable[..., Any]]] = [
    ("workload", "matrix", made(["sex", "age"], _HALVES)),
    ("workload", "matrix", made("age", _NAN)),
    ("workload", "matrix", made("age", object())),
    ("workload", "matrix", made("age", [[1], [1, 2]])),
    ("workload", "matrix", made("age", [["a"]])),
    ("unknown-name", "attributes[0]", made("agee", _HALVES)),
    ("workload", "matrix", made("age", _FINE)),
    ("unsupported-query", "", made("age", _HALVES[:2], workload=_PREFIXES)),
    ("workload", "", made("age", _HALVES, workload=_OTHER)),
    ("workload", "", made("age", _HALVES, workload="prefix")),
    ("privacy", "", made("age", _HALVES, budget=1)),
    ("too-large", "", too_large),
    ("wrong-size", "shares", parted([_SEX, _ALL], shares=[1])),
    ("out-of-range", "shares[1]", parted([_SEX, _ALL], shares=[1, 0])),
    ("wrong-type", "parts[0].share", parted([{"marginals": 1, "share": "half"}])),
    *(("wrong-type", "parts", parted(none)) for none in _NO_PARTS),
    ("unknown-key", "strategy[1]", given(_MISSPELT)),
    ("unknown-key", "parts", given("parts: []\n")),
    ("empty", "strategy", given("strategy: []\n")),
]

REFUSALS: list[Refusal] = [
    *numbered("strategy", _STRATEGIES),
    *numbered("rounds", _ROUNDS),
    *numbered("own", _OWN),
]
