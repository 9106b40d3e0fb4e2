"""The 4,151 queries of SF1 in SQL are those of the specification."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import matrixdp as mdp
from matrixdp.queries import ProductGroup
from matrixdp.specification.load import load_specification

EXAMPLES = Path(__file__).parents[2] / "examples"
Query = tuple[tuple[str, bytes], ...]


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


def test_the_example_in_sql_asks_the_same() -> None:
    """Every query as often, no other: grouped, rolled up and filtered as one would write it."""
    sf1 = load_specification(EXAMPLES / "sf1.yaml").workload
    text = (EXAMPLES / "sf1.sql").read_text(encoding="utf-8")
    workload = mdp.Workload(sf1.domain, mdp.sql(text))
    assert workload.queries == sf1.queries == 4151
    assert Counter(asked(workload)) == Counter(asked(sf1))
