"""Domains and attributes that are none, and workloads and targets over them."""

import math

import pytest

import matrixdp as mdp
from matrixdp.domain import Categorical
from matrixdp.domain.rules import INTEGER, NUMBER, integer_of, number_of, required
from matrixdp.errors import DomainError, WorkloadError


def test_one_text_is_no_list_of_categories():
    with pytest.raises(DomainError, match="expected a list of categories"):
        Categorical("sex", "mf")  # type: ignore[arg-type]  # what a user might write


@pytest.mark.parametrize("value", ["3", None, math.nan, math.inf, True, [1]])
def test_what_is_no_number_is_refused_with_its_place(value: object):
    with pytest.raises(DomainError, match=r"age\.min: found .*; expected a finite number"):
        required(number_of, value, NUMBER, "age", "min")
    with pytest.raises(DomainError, match=r"age\.min: found .*; expected an integer"):
        required(integer_of, value, INTEGER, "age", "min")


def test_a_list_of_entries_is_no_entry():
    domain = mdp.Domain({"a": 3})
    with pytest.raises(WorkloadError, match=r"found a list; .*; write Workload\(domain, \*entries\)"):
        mdp.Workload(domain, [mdp.marginals(1)])  # type: ignore[arg-type]  # what a user might write
    with pytest.raises(WorkloadError, match="found a int; expected what marginals"):
        mdp.Workload(domain, 3)  # type: ignore[arg-type]
