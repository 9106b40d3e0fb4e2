# ruff: noqa: S608 - statements, none of which is executed
"""Statements as entries of a workload: from a text or a file, with weights, and back; SF1 in SQL."""

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import matrixdp as mdp
from matrixdp.queries import DenseGroup, ProductGroup
from matrixdp.specification import load_specification
from matrixdp.statements.translation import translate
from matrixdp.storage.archive import ArchiveWriter
from matrixdp.storage.formats import write_workload

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": range(10), "code": 4})
TEXT = "SELECT age // 5 AS half, sex, COUNT(*) FROM t WHERE code < 3 GROUP BY half, sex"
SPECIFICATION = """
domain: {sex: [female, male], age: {min: 0, max: 9}, code: 4}
workload:
  - sql_file: queries.sql
    name: census
    weight: 2
  - sql: SELECT COUNT(*) FROM people
"""


def test_an_entry_stands_for_the_groups_of_its_statements() -> None:
    entry = mdp.sql("SELECT sex, COUNT(*) n, COUNT(*) FILTER (WHERE age > 3) o FROM t GROUP BY sex; " + TEXT)
    assert [(group.name, group.queries) for group in entry.expand(DOMAIN)] == [
        ("n: sex", 2),
        ("o: sex where age > 3", 2),
        ("age // 5, sex where code < 3", 4),
    ]
    named = mdp.sql(TEXT, name="halves", weight=3.0)
    assert [(group.name, group.weight) for group in named.expand(DOMAIN)] == [("halves", 3.0)]
    two = mdp.sql("SELECT sex, COUNT(*) FROM t GROUP BY ROLLUP (sex)", name="r")
    assert [group.name for group in two.expand(DOMAIN)] == ["r: sex", "r: total"]
    long = mdp.sql("SELECT COUNT(*) FROM t WHERE age IN (1, 2) " + "AND age IN (1, 2, 3) " * 9)
    assert [len(group.name) for group in long.expand(DOMAIN)] == [100]


def test_a_statement_asks_what_an_entry_asks() -> None:
    [mine] = mdp.sql(TEXT).expand(DOMAIN)
    halves, codes = {"ranges": [[0, 4], [5, 9]]}, {"ranges": [[0, 2]]}
    [theirs] = mdp.product(sex="identity", age=halves, code=codes).expand(DOMAIN)
    assert mine.attributes == theirs.attributes
    assert np.array_equal(mine.rows(), theirs.rows())
    [mine] = mdp.sql("SELECT COUNT(*) FROM t WHERE sex = 'male' OR age < 3").expand(DOMAIN)
    [theirs] = mdp.disjunction(sex={"sets": [["male"]]}, age={"ranges": [[0, 2]]}).expand(DOMAIN)
    assert np.array_equal(mine.rows(), theirs.rows())
    other = mdp.sql("SELECT code, COUNT(*) FROM t WHERE sex = 'male' OR age < 1 GROUP BY code")
    [group] = other.expand(DOMAIN)
    assert isinstance(group, DenseGroup)
    assert group.content.describe(DOMAIN, group.attributes)[1] == "(sex = 'male' OR age < 1) and code 1"


def test_weights_stand_in_the_order_of_the_answers() -> None:
    [group] = mdp.sql(TEXT, weights=[1.0, 2.0, 3.0, 4.0]).expand(DOMAIN)
    [statement] = mdp.sql(TEXT).statements
    query = translate(statement, DOMAIN)
    assert query.keys.to_pydict() == {"half": [0, 0, 1, 1], "sex": ["female", "male", "female", "male"]}
    assert query.places[0].queries.tolist() == [0, 2, 1, 3]
    assert group.query_weights is not None
    assert group.query_weights.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_file_is_read_once_and_recorded_whole(tmp_path: Path) -> None:
    (tmp_path / "queries.sql").write_text("\ufeff" + TEXT + ";\nSELECT COUNT(*) FROM t;\n", encoding="utf-8")
    (tmp_path / "spec.yaml").write_text(SPECIFICATION)
    specification = load_specification(tmp_path / "spec.yaml")
    (tmp_path / "queries.sql").unlink()
    written = specification.document["workload"]
    assert isinstance(written, list)
    assert written[0] == {"sql": TEXT + ";\nSELECT COUNT(*) FROM t;\n", "name": "census", "weight": 2.0}
    again = load_specification(specification.document)
    assert [group.name for group in again.workload] == [
        "census: age // 5, sex where code < 3",
        "census: total",
        "total",
    ]
    with ArchiveWriter(tmp_path / "w.mdp") as archive:
        assert write_workload(specification.workload, archive)["entries"] == written


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
