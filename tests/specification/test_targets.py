"""Targets that are none, and budgets that do not go with them."""

import math
from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp.errors import MatrixDPError
from matrixdp.queries.workload import group_targets

WORKLOAD = mdp.Workload(mdp.Domain({"a": 3, "b": 2}), mdp.marginals(1))
TEXT = "domain: {a: 3}\nworkload: [{marginals: 1}]\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("targets: {a: 5}\nprivacy: {minimize: rho, mu: 1}", r"mu beside minimize; expected one of them"),
        ("privacy: {minimize: rho}", r"no targets; expected it beside targets"),
        ("targets: {a: 5}", r"privacy .*found nothing; expected \{minimize: rho\} beside targets"),
    ],
)
def test_budgets_and_targets_go_together(tmp_path: Path, text: str, says: str):
    (tmp_path / "s.yaml").write_text(TEXT + text)
    with pytest.raises(MatrixDPError, match=says):
        mdp.load_specification(tmp_path / "s.yaml")


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        ([1], r"targets: found .*; expected \{group: standard error"),
        ({}, r"targets: found none; expected"),
        ({"a": "5"}, r"targets.a: found .*; expected a number above 0, in records"),
        ({"a": True}, r"expected a number above 0, in records"),
        ({"a": 0}, r"found 0; expected a finite number above 0"),
        ({"a": math.nan}, r"found nan; expected a finite number above 0"),
        ({"c": 1}, r"targets.c: found no query group of that name"),
    ],
)
def test_targets_that_are_none_are_refused(targets, says: str):
    with pytest.raises(MatrixDPError, match=says):
        group_targets(WORKLOAD, targets)
