"""Tables of a PostgreSQL server: what it computes, what it sends, and what is told of it."""

import builtins
from datetime import date

import adbc_driver_postgresql.dbapi
import numpy as np
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import SourceError
from matrixdp.sources import open_source, postgresql
from matrixdp.sources.source import COMPUTED, INFERRED
from tests import servers

DOMAIN = Domain({"sex": ["female", "male"], "age": 4})
PEOPLE = "CREATE TABLE {0} AS SELECT * FROM (VALUES ('male', 3), ('female', 1), ('male', 9)) AS p(sex, age)"


@pytest.fixture(autouse=True)
def schema():
    """A schema that holds what a test makes."""
    servers.execute("DROP SCHEMA IF EXISTS own CASCADE", "CREATE SCHEMA own", PEOPLE.format("own.few"))


@pytest.fixture(autouse=True, scope="module")
def kept():
    with servers.one_connection():
        yield


def opened(table="own.few"):
    return open_source(servers.address(), table_name=table)


def counted(domain, table="own.few", subsets=None, rule=None):
    return dict(opened(table).marginals(domain, subsets or [domain.names], rule or OutOfDomain()))


def test_a_release_of_a_table_on_a_server():
    workload = mdp.Workload(DOMAIN, mdp.marginals(1), mdp.marginals(2))
    measured = mdp.select(workload).measure(servers.address(), mdp.Budget(rho=1e6), table_name="own.few")
    answers = measured.reconstruct(workload).answers["estimate"].to_numpy()
    assert np.round(answers).tolist() == [1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1]


def test_values_of_types_that_other_engines_do_not_have():
    servers.execute(
        "CREATE TYPE own.size AS ENUM ('small', 'large')",
        "CREATE DOMAIN own.word AS text CHECK (VALUE <> 'bad')",
        "CREATE TABLE own.types (n numeric, d date, s own.size, w own.word, c char(5), f real)",
        "INSERT INTO own.types VALUES (0.5, '2020-01-31', 'small', 'x', 'x', 0.5), "
        "('NaN', 'infinity', 'large', 'y', 'y', 'NaN'), "
        "('Infinity', '-infinity', NULL, NULL, NULL, '-Infinity'), "
        "('1e400', '0044-03-15 BC', 'large', '', '', 1e-40), "
        "('-1e400', '12000-01-01', 'small', 'x', 'x ', 3), "
        "('1e-400', '0001-01-01', 'small', 'x', 'x', 3), ('-1e-320', '2020-01-31', 'small', 'x', 'x', -0.0)",
    )
    listed = Domain(
        {
            "n": {"edges": [-1e-319, 0, 1], "closed": True},
            "d": {"categories": ["2020-01-31", "0001-01-01"], "type": "date"},
            "s": ["large", "small"],
            "w": ["x", "y"],
            "c": ["x", "y"],
            "f": {"edges": [0, 1, 4]},
        }
    )
    expected = {"n": [1, 2], "d": [2, 1], "s": [2, 4], "w": [4, 1], "c": [4, 1], "f": [3, 2]}
    for name, counts in expected.items():
        alone = Domain([listed[name]])
        assert counted(alone, "own.types")[name,].tolist() == counts, name


def test_texts_that_functions_of_texts_fail_on():
    """The server's own `btrim` and `~` raise an error on such a text, which would tell that it is there."""
    servers.execute(
        "CREATE TABLE own.long AS SELECT repeat(' ', 150000000) AS t UNION ALL SELECT '3'",
    )
    for spec in (
        ["3", "x"],
        {"categories": ["2020-01-31"], "type": "date"},
        4,
        {"edges": [0, 4]},
        [True, "3"],
    ):
        domain = Domain({"t": spec})
        (counts,) = counted(domain, "own.long").values()
        assert counts.sum() == (0 if isinstance(spec, dict) and "type" in spec else 1)


def test_collations_and_settings_change_nothing(monkeypatch):
    monkeypatch.setattr(adbc_driver_postgresql.dbapi, "connect", servers.connect)
    servers.execute(
        "CREATE COLLATION own.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE own.names (t text COLLATE own.loose)",
        "INSERT INTO own.names VALUES ('a'), ('A'), ('É'), ('é')",
        "CREATE FUNCTION own.lower(text) RETURNS text LANGUAGE sql AS $$SELECT 'true'$$",
        "ALTER ROLE tester SET search_path = own, pg_catalog",
        "ALTER ROLE tester SET standard_conforming_strings = off",
        "ALTER ROLE tester SET DateStyle = 'German'",
    )
    try:
        assert counted(Domain({"t": ["a", "é", "\\", True]}), "own.names")["t",].tolist() == [1, 1, 0, 0]
    finally:
        servers.execute("ALTER ROLE tester RESET ALL")


def test_many_categories_and_marginals():
    rng = np.random.default_rng(0)
    names = [f"a{i}" for i in range(12)]
    columns = {name: rng.integers(0, 9, 500) for name in names} | {
        "county": rng.integers(0, 4000, 500).astype(str)
    }
    servers.fill(pa.table(columns), "wide")
    domain = Domain({**dict.fromkeys(names, 8), "county": [str(3999 - i) for i in range(4000)]})
    subsets = [(a, b) for a in domain.names for b in domain.names if a != b]
    rule = OutOfDomain(dict.fromkeys(names, 7))
    found, expected = (
        counted(domain, "wide", subsets, rule),
        dict(open_source(columns).marginals(domain, subsets, rule)),
    )
    assert set(found) == set(expected)
    assert all(np.array_equal(found[subset], expected[subset]) for subset in subsets)


def test_what_leaves_the_server_are_the_groups_of_the_marginals(monkeypatch):
    rng = np.random.default_rng(0)
    servers.fill(pa.table({name: rng.integers(0, 10, 5000) for name in "abc"}), "three")
    moved = []
    groups = postgresql._groups

    def counts(cursor, statement):
        found = groups(cursor, statement)
        moved.append(len(found[0]))
        return found

    monkeypatch.setattr(postgresql, "_groups", counts)
    counted(Domain(dict.fromkeys("abc", 10)), "three", [("a", "b"), ("b", "c"), ("a", "c"), ()])
    assert moved == [301]


def test_the_transaction_can_write_nothing_and_sees_one_state():
    from contextlib import ExitStack

    with ExitStack() as stack:
        cursor = opened()._cursor(stack)
        cursor.execute(
            "SELECT current_setting('transaction_read_only'), current_setting('transaction_isolation')"
        )
        assert cursor.fetchall() == [("on", "repeatable read")]


@pytest.mark.parametrize(("given", "used"), [("64kB", "64MB"), ("65537kB", "65537kB")])
def test_groups_have_enough_memory_and_no_less_than_the_server_gives(given, used, monkeypatch):
    from contextlib import ExitStack

    monkeypatch.setattr(adbc_driver_postgresql.dbapi, "connect", servers.connect)
    servers.execute(f"ALTER ROLE tester SET work_mem = '{given}'")
    try:
        with ExitStack() as stack:
            cursor = opened()._cursor(stack)
            cursor.execute("SELECT current_setting('work_mem')")
            assert cursor.fetchall() == [(used,)]
    finally:
        servers.execute("ALTER ROLE tester RESET ALL")


def test_what_the_server_computes_is_assumed():
    servers.execute(
        "CREATE VIEW own.view AS SELECT * FROM own.few",
        "CREATE MATERIALIZED VIEW own.kept AS SELECT * FROM own.few",
        "CREATE TABLE own.made (sex text, age int, twice int GENERATED ALWAYS AS (age * 2) STORED)",
        "CREATE TABLE own.shown (sex text, age int)",
        "ALTER TABLE own.shown ENABLE ROW LEVEL SECURITY",
    )
    for table, computed in {"few": False, "view": True, "kept": True, "made": False, "shown": True}.items():
        expected = (COMPUTED, INFERRED) if computed else (INFERRED,)
        assert opened(f"own.{table}").assumptions(DOMAIN) == expected, table
    twice = Domain({"twice": 4})
    assert opened("own.made").assumptions(twice) == (COMPUTED, INFERRED)


def test_a_view_that_fails_tells_nothing_of_the_record():
    servers.execute("CREATE VIEW own.broken AS SELECT sex, CAST(sex AS int) AS age FROM own.few")
    with pytest.raises(SourceError, match="its engine failed on a record") as caught:
        counted(DOMAIN, "own.broken")
    assert "male" not in str(caught.value)


def test_the_table_must_be_named_where_there_are_several():
    servers.execute(PEOPLE.format("own.more"))
    for asked, told in ((None, "no single table"), ("less", "no table 'less'")):
        with pytest.raises(SourceError, match=f"has {told}; name one of its tables: .*'own.few', 'own.more'"):
            counted(DOMAIN, asked)
    servers.execute("CREATE SCHEMA IF NOT EXISTS other", PEOPLE.format("other.few"))
    try:
        with pytest.raises(SourceError, match="several tables 'few'"):
            counted(DOMAIN, "few")
    finally:
        servers.execute("DROP SCHEMA other CASCADE")


def test_columns_that_cannot_be_read():
    servers.execute("CREATE TABLE own.odd (sex jsonb, age timestamp)")
    with pytest.raises(SourceError, match="column 'sex' holds values of another kind"):
        counted(DOMAIN, "own.odd")
    with pytest.raises(SourceError, match="no column 'race'"):
        counted(Domain({"race": ["x"]}))


def test_texts_of_other_encodings_are_refused(monkeypatch):
    """Of such a database the order of texts is not that of their characters."""
    servers.execute("CREATE DATABASE old ENCODING 'WIN1252' LOCALE 'C' TEMPLATE template0")
    monkeypatch.setattr(adbc_driver_postgresql.dbapi, "connect", servers.connect)
    with pytest.raises(SourceError, match="holds texts as WIN1252"):
        open_source(servers.address().replace("/postgres?", "/old?")).marginals(DOMAIN, [()], OutOfDomain())


SECRET = "hunter2"  # noqa: S105


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://ann:{SECRET}@localhost:1/people",
        f"postgresql://ann:{SECRET}@[broken/people",
        f"postgres://ann:{SECRET}/x@localhost:1/people",
        f"postgresql://localhost:1/people?user=ann&password={SECRET}",
        f"mysql://ann:{SECRET}@localhost/people",
        f"jdbc:postgresql://ann:{SECRET}@localhost/people",
        f" postgresql://ann:{SECRET}@localhost/people",
    ],
)
def test_no_message_tells_a_password(address, monkeypatch):
    monkeypatch.setattr(adbc_driver_postgresql.dbapi, "connect", servers.connect)
    with pytest.raises(SourceError) as caught:
        open_source(address, table_name="people").marginals(DOMAIN, [()], OutOfDomain())
    told = [str(caught.value), repr(caught.value), *getattr(caught.value, "__notes__", [])]
    assert not any(SECRET in text or "ann" in text for text in told)
    assert caught.value.__cause__ is None


def test_the_password_is_not_part_of_the_source():
    source = open_source(f"postgresql://ann:{SECRET}@localhost/people")
    assert repr(source) == "PostgreSQLSource('postgresql://localhost/people')"


def test_without_a_driver_it_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("adbc"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SourceError, match=r"pip install 'matrixdp\[postgresql\]'"):
        opened().assumptions(DOMAIN)


def test_days_are_days_whatever_the_time_zone(monkeypatch):
    monkeypatch.setattr(adbc_driver_postgresql.dbapi, "connect", servers.connect)
    days = [date(2020, 1, 31), None, date(1, 1, 1), date(9999, 12, 31)]
    servers.fill(pa.table({"day": days}), "days")
    servers.execute("ALTER ROLE tester SET TimeZone = 'America/Sao_Paulo'")
    try:
        domain = Domain({"day": ["2020-01-31", "0001-01-01", "9999-12-31"]})
        assert counted(domain, "days")["day",].tolist() == [1, 1, 1]
    finally:
        servers.execute("ALTER ROLE tester RESET ALL")


def test_the_columns_and_what_they_hold():
    servers.execute("CREATE TABLE own.kinds (a text, b int, c numeric, d bool, e date, f jsonb)")
    kinds = opened("own.kinds").columns()
    assert [kind.value for kind in kinds.values()] == ["text", "integer", "float", "boolean", "date", "other"]


def test_records_out_of_domain_are_counted():
    source = opened()
    rule = OutOfDomain({"sex": 0}, (None, "age"))
    found = dict(source.marginals(DOMAIN, [("sex",)], rule))
    assert {subset: counts.tolist() for subset, counts in found.items()} == {("sex",): [1, 1], ("",): [1, 1]}
