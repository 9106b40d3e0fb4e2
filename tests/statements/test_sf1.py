"""The 4,151 queries of SF1 in SQL are those of the specification."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.queries import ProductGroup
from matrixdp.specification.load import load_specification

EXAMPLES = Path(__file__).parents[2] / "examples"
Query = tuple[tuple[str, bytes], ...]


@pytest.fixture(scope="module")
def sf1() -> mdp.Workload:
    return load_specification(EXAMPLES / "sf1.yaml").workload


def asked(workload: mdp.Workload) -> Iterator[Query]:
    """The values that each query counts, by attribute; nothing where it counts all of them."""
    for group in workload:
        assert isinstance(group, ProductGroup)
        assert group.query_weights is None
        assert group.weight == 1.0
        columns = [
            [() if row.all() else ((name, row.tobytes()),) for row in predicates.rows(size)]
            for name, predicates, size in zip(group.attributes, group.predicates, group.sizes, strict=True)
        ]
        yield from (tuple(itertools.chain(*parts)) for parts in itertools.product(*columns))


def statement(domain: mdp.Domain, query: Query) -> str:
    """One query as a statement of its own."""
    conditions = []
    for name, row in query:
        codes = np.flatnonzero(np.frombuffer(row)).tolist()
        values = [str(c) if domain[name].numeric else f"'{domain[name].label(c)}'" for c in codes]
        run = len(codes) > 1 and domain[name].numeric and codes[-1] - codes[0] == len(codes) - 1
        listed = f"BETWEEN {values[0]} AND {values[-1]}" if run else f"IN ({', '.join(values)})"
        conditions.append(f"{name} {listed}")
    return " AND ".join(["SELECT COUNT(*) FROM persons WHERE true", *conditions])


def test_the_example_in_sql_asks_the_same(sf1: mdp.Workload) -> None:
    """Every query as often, no other: grouped, rolled up and filtered as one would write it."""
    text = (EXAMPLES / "sf1.sql").read_text(encoding="utf-8")
    workload = mdp.Workload(sf1.domain, mdp.sql(text))
    assert workload.queries == sf1.queries == 4151
    assert Counter(asked(workload)) == Counter(asked(sf1))


def test_a_statement_for_each_query_asks_the_same(sf1: mdp.Workload) -> None:
    """Each query by itself too: one in forty of them, in their order."""
    wanted = list(asked(sf1))[::40]
    workload = mdp.Workload(sf1.domain, mdp.sql(";\n".join(statement(sf1.domain, q) for q in wanted)))
    assert len(workload) == len(wanted) == 104
    assert list(asked(workload)) == wanted
