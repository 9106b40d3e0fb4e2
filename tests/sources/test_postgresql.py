"""Tables of a PostgreSQL server: what it computes, what it sends, and what is told of it."""

import builtins
from datetime import date
from itertools import permutations
from urllib.parse import unquote

import adbc_driver_postgresql.dbapi
import numpy as np
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.domain import Domain, OutOfDomain
from matrixdp.sources import Request, open_source, postgresql
from matrixdp.sources.base import COMPUTED, INFERRED
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


@pytest.fixture
def role(monkeypatch):
    """Change the role of every connection that is made from now on."""
    monkeypatch.setattr(adbc_driver_postgresql.dbapi, "connect", servers.connect)
    yield lambda *settings: servers.execute(*(f"ALTER ROLE tester SET {setting}" for setting in settings))
    servers.execute("ALTER ROLE tester RESET ALL")


def opened(table="own.few"):
    return open_source(servers.address(), table_name=table)


def counted(domain, table="own.few", subsets=None, rule=None):
    return dict(opened(table).marginals(domain, subsets or [domain.names], rule or OutOfDomain()))


def test_values_of_types_that_other_engines_do_not_have():
    servers.execute(
        "CREATE TYPE own.size AS ENUM ('small', 'large')",
        "CREATE DOMAIN own.word AS text CHECK (VALUE <> 'bad')",
        "CREATE TABLE own.types (n numeric, d date, s own.size, w own.word, c char(5), f real)",
        "CREATE FUNCTION own.told(own.size) RETURNS text LANGUAGE sql AS $$SELECT 'small'$$",
        "CREATE CAST (own.size AS text) WITH FUNCTION own.told(own.size)",
        "CREATE DOMAIN own.sized AS own.size",
        "ALTER TABLE own.types ADD u own.sized",
        "INSERT INTO own.types VALUES (0.5, '2020-01-31', 'small', 'x', 'x', 0.5), "
        "('NaN', 'infinity', 'large', 'y', 'y', 'NaN'), "
        "('Infinity', '-infinity', NULL, NULL, NULL, '-Infinity'), "
        "('1e400', '0044-03-15 BC', 'large', '', '', 1e-40), "
        "('-1e400', '12000-01-01', 'small', 'x', 'x ', 3), "
        "('1e-400', '0001-01-01', 'small', 'x', 'x', 3), ('-1e-320', '2020-01-31', 'small', 'x', 'x', -0.0)",
    )
    expected = {
        "n": ({"edges": [-1e-319, 0, 1], "closed": True}, [1, 2]),
        "d": ({"categories": ["2020-01-31", "0001-01-01"], "type": "date"}, [2, 1]),
        "s": (["large", "small"], [2, 4]),
        "u": (["large", "small"], [2, 4]),
        "w": (["x", "y"], [4, 1]),
        "c": (["x", "y"], [4, 1]),
        "f": ({"edges": [0, 1, 4]}, [3, 2]),
    }
    servers.execute("UPDATE own.types SET u = s")
    for name, (attribute, counts) in expected.items():
        assert counted(Domain({name: attribute}), "own.types")[name,].tolist() == counts, name


def test_texts_that_functions_of_texts_fail_on():
    """The server's own `btrim` and `~` raise an error on such a text, which would tell that it is there."""
    servers.execute("CREATE TABLE own.long AS SELECT repeat(' ', 150000000) AS t UNION ALL SELECT '3'")
    days = {"categories": ["2020-01-31"], "type": "date"}
    for spec, found in ((["3", "x"], 1), (days, 0), (4, 1), ({"edges": [0, 4]}, 1), ([True, "3"], 1)):
        (counts,) = counted(Domain({"t": spec}), "own.long").values()
        assert counts.sum() == found


def test_collations_and_settings_change_nothing(role):
    servers.execute(
        "CREATE COLLATION own.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE own.names (t text COLLATE own.loose)",
        "INSERT INTO own.names VALUES ('a'), ('A'), ('É'), ('é')",
        "CREATE FUNCTION own.lower(text) RETURNS text LANGUAGE sql AS $$SELECT 'true'$$",
    )
    role(
        "search_path = own, pg_catalog",
        "standard_conforming_strings = off",
        "DateStyle = 'German'",
        "client_encoding = 'LATIN1'",
        "TimeZone = 'America/Sao_Paulo'",
    )
    servers.fill(pa.table({"day": [date(2020, 1, 31), None, date(1, 1, 1), date(9999, 12, 31)]}), "days")
    days = Domain({"day": ["2020-01-31", "0001-01-01", "9999-12-31"]})
    assert counted(days, "days")["day",].tolist() == [1, 1, 1]
    assert counted(Domain({"t": ["a", "é", "\\", True]}), "own.names")["t",].tolist() == [1, 1, 0, 0]


#: What a statement of ours or of the driver's would call, were it looked up in the schema of an attacker.
FUNCTIONS = (
    "version() RETURNS text",
    "set_config(text, text, boolean) RETURNS text",
    "current_setting(text) RETURNS text",
    "pg_size_bytes(text) RETURNS bigint",
    "octet_length(text) RETURNS integer",
    "lower(text) RETURNS text",
    "btrim(text, text) RETURNS text",
    '"left"(text, integer) RETURNS text',
    "regexp_replace(text, text, text) RETURNS text",
    "has_any_column_privilege(oid, text) RETURNS boolean",
)
OPERATORS = (
    ("=", "text", "text"), ("<", "text", "text"), ("<=", "integer", "integer"), ("=", "oid", "oid"),
    ("<>", "name", "name"), ("<>", "regproc", "integer"), ("<>", '"char"', '"char"'), ("~", "text", "text"),
)  # fmt: skip


def evil():
    """Yield the statements that make functions, operators, tables and types of an attacker."""
    trace = (
        "LANGUAGE plpgsql AS $$BEGIN RAISE LOG 'an evil function ran as %', current_user; RETURN NULL; END$$"
    )
    yield "CREATE SCHEMA IF NOT EXISTS evil"
    yield "CREATE AGGREGATE evil.count(*) (SFUNC = int8inc, STYPE = bigint, INITCOND = '1000000')"
    for signature in FUNCTIONS:
        yield f"CREATE FUNCTION evil.{signature} {trace}"
    for number, (name, left, right) in enumerate(OPERATORS):
        yield f"CREATE FUNCTION evil.operator_{number}({left}, {right}) RETURNS boolean {trace}"
        given = f"FUNCTION = evil.operator_{number}, LEFTARG = {left}, RIGHTARG = {right}"
        yield f"CREATE OPERATOR evil.{name} ({given})"
    for table in ("pg_class", "pg_attribute", "pg_inherits", "pg_type"):
        yield f"CREATE TABLE evil.{table} (oid oid)"
    yield "CREATE DOMAIN evil.text AS pg_catalog.text CHECK (VALUE = 'nothing')"
    yield "CREATE COLLATION evil.\"C\" (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"


@pytest.mark.parametrize("whose", ["DATABASE postgres", "ROLE tester", "ROLE tester IN DATABASE postgres"])
@pytest.mark.parametrize("given", ["", "&options=-csearch_path%3Devil,pg_catalog"])
def test_functions_that_shadow_the_servers_own_never_run(whose, given, monkeypatch):
    """Whoever owns the database sets its search path, and may have no right to read the table."""
    monkeypatch.setattr(adbc_driver_postgresql.dbapi, "connect", servers.connect)
    monkeypatch.setenv("PGOPTIONS", "-csearch_path=evil,pg_catalog")
    servers.execute("DROP SCHEMA IF EXISTS evil CASCADE", *evil())
    before = len(servers.log())
    servers.execute(f"ALTER {whose} SET search_path = evil, pg_catalog")
    try:
        source = open_source(servers.address() + given, table_name="own.few")
        found = dict(source.marginals(DOMAIN, [("sex",)], OutOfDomain({}, (None,))))
        assert [counts.tolist() for counts in found.values()] == [[1], [1, 1]]
        source.columns()
        assert source.assumptions(DOMAIN) == (INFERRED,)
    finally:
        servers.execute(f"ALTER {whose} RESET search_path", "DROP SCHEMA evil CASCADE")
    assert "an evil function ran" not in servers.log()[before:]


def test_a_connection_whose_search_path_is_not_fixed_is_rejected(monkeypatch):
    """A pooler may drop the options of a connection."""

    def pooled(address, **options):
        return servers.connect(address.partition("&options=")[0], **options)

    monkeypatch.setattr(adbc_driver_postgresql.dbapi, "connect", pooled)
    with pytest.raises(mdp.SourceError, match="a connection with another search_path") as caught:
        opened().columns()
    assert caught.value.problem.path == ("data",)


@pytest.mark.parametrize(
    ("address", "options"),
    [
        ("postgresql://h/d", " -csearch_path=pg_catalog,pg_temp"),
        ("postgresql://h/d?", " -csearch_path=pg_catalog,pg_temp"),
        ("postgresql://ann:a?b@h", " -csearch_path=pg_catalog,pg_temp"),
        ("postgresql://h?user=ann&", " -csearch_path=pg_catalog,pg_temp"),
        ("postgresql://h?%6fptions=-cjit%3Doff", "-cjit=off -csearch_path=pg_catalog,pg_temp"),
        ("postgresql://h?options=a&options=b&user=ann", "b -csearch_path=pg_catalog,pg_temp"),
    ],
)
def test_options_of_the_user_are_kept_with_the_search_path(address, options, monkeypatch):
    asked = []

    def connect(given, **_):
        asked.append(given)
        raise ConnectionError

    monkeypatch.setattr(adbc_driver_postgresql.dbapi, "connect", connect)
    with pytest.raises(mdp.SourceError, match="could not connect"):
        open_source(address).columns()
    (given,) = asked
    assert given.startswith(address)
    query = given[len(address) :].lstrip("?&")
    assert unquote(query) == f"options={options}"
    assert given[len(address) - 1 :].count("?") <= 1
    assert "?&" not in given
    assert "&&" not in given


def test_many_categories_and_marginals():
    rng = np.random.default_rng(0)
    names = [f"a{i}" for i in range(12)]
    columns = {name: rng.integers(0, 9, 500) for name in names}
    columns["county"] = rng.integers(0, 4000, 500).astype(str)
    servers.fill(pa.table(columns), "wide")
    domain = Domain({**dict.fromkeys(names, 8), "county": [str(3999 - i) for i in range(4000)]})
    subsets = list(permutations(domain.names, 2))
    rule = OutOfDomain(dict.fromkeys(names, 7))
    found = counted(domain, "wide", subsets, rule)
    for subset, expected in open_source(columns).marginals(domain, subsets, rule):
        np.testing.assert_array_equal(found[subset], expected)


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


@pytest.mark.parametrize(("given", "used"), [("64kB", "64MB"), ("65537kB", "65537kB")])
def test_the_transaction_can_write_nothing_sees_one_state_and_has_enough_memory(given, used, role):
    role(f"work_mem = '{given}'")
    names = ("transaction_read_only", "transaction_isolation", "work_mem")
    with opened()._connect() as cursor:
        cursor.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in names))
        assert cursor.fetchall() == [("on", "repeatable read", used)]


def test_what_the_server_computes_is_assumed():
    servers.execute(
        "CREATE VIEW own.view AS SELECT * FROM own.few",
        "CREATE MATERIALIZED VIEW own.kept AS SELECT * FROM own.few",
        "CREATE TABLE own.made (sex text, age int, twice int GENERATED ALWAYS AS (age * 2) STORED)",
        "CREATE TABLE own.shown (sex text, age int)",
        "ALTER TABLE own.shown ENABLE ROW LEVEL SECURITY",
        "CREATE TABLE own.parent (sex text, twice int)",
        "CREATE TABLE own.child (sex text, twice int) INHERITS (own.parent)",
        "CREATE TABLE own.last (twice int GENERATED ALWAYS AS (length(sex)) STORED) INHERITS (own.child)",
    )
    computed = [("view", "sex"), ("kept", "sex"), ("shown", "sex"), ("made", "twice"), ("parent", "twice")]
    for table, name in [*computed, ("few", "sex"), ("made", "sex"), ("parent", "sex")]:
        expected = (COMPUTED, INFERRED) if (table, name) in computed else (INFERRED,)
        assert opened(f"own.{table}").assumptions(Domain({name: 2})) == expected, (table, name)


def test_notices_of_a_view_reach_nobody_here(capfd):
    servers.execute(
        "CREATE FUNCTION own.noisy(text) RETURNS text LANGUAGE plpgsql AS "
        "$$BEGIN RAISE WARNING 'it is %', $1; RETURN $1; END$$",
        "CREATE VIEW own.loud AS SELECT own.noisy(sex) AS sex, age FROM own.few",
    )
    assert counted(DOMAIN, "own.loud")["sex", "age"].sum() == 2
    assert "it is" not in "".join(capfd.readouterr())


def test_a_view_that_fails_tells_nothing_of_the_record():
    servers.execute("CREATE VIEW own.broken AS SELECT sex, CAST(sex AS int) AS age FROM own.few")
    with pytest.raises(mdp.SourceError, match="its engine failed on a record") as caught:
        counted(DOMAIN, "own.broken")
    assert "male" not in str(caught.value)


def test_the_table_must_be_named_where_there_are_several():
    servers.execute(PEOPLE.format("own.more"))
    for asked, told in ((None, "no single table"), ("less", "no table 'less'")):
        with pytest.raises(
            mdp.SourceError, match=f"has {told}; name one of its tables: .*'own.few', 'own.more'"
        ):
            counted(DOMAIN, asked)
    servers.execute("CREATE SCHEMA IF NOT EXISTS other", PEOPLE.format("other.few"))
    try:
        with pytest.raises(mdp.SourceError, match="several tables 'few'"):
            counted(DOMAIN, "few")
    finally:
        servers.execute("DROP SCHEMA other CASCADE")


def test_texts_of_other_encodings_are_refused(monkeypatch):
    """Of such a database the order of texts is not that of their characters."""
    servers.execute("CREATE DATABASE old ENCODING 'WIN1252' LOCALE 'C' TEMPLATE template0")
    monkeypatch.setattr(adbc_driver_postgresql.dbapi, "connect", servers.connect)
    with pytest.raises(mdp.SourceError, match="holds texts as WIN1252"):
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
    with pytest.raises(mdp.SourceError) as caught:
        open_source(address, table_name="people").marginals(DOMAIN, [()], OutOfDomain())
    told = [str(caught.value), repr(caught.value), *getattr(caught.value, "__notes__", [])]
    assert not any(SECRET in text or "ann" in text for text in told)
    assert "  " not in told[0]
    assert caught.value.__cause__ is None
    source = open_source(f"postgresql://ann:{SECRET}@localhost/people")
    assert repr(source) == "PostgreSQLSource('postgresql://localhost/people')"


def test_without_a_driver_it_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("adbc"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(mdp.SourceError, match=r"pip install '\.\[postgresql\]'"):
        opened().assumptions(DOMAIN)


def test_the_columns_and_what_they_hold():
    servers.execute("CREATE TABLE own.kinds (a text, b int, c numeric, d bool, e date, f jsonb)")
    kinds = opened("own.kinds").columns()
    assert [kind.value for kind in kinds.values()] == ["text", "integer", "float", "boolean", "date", "other"]
    with pytest.raises(mdp.SourceError, match="column 'f' holds values of another kind"):
        counted(Domain({"f": 2}), "own.kinds")


@pytest.mark.parametrize(
    ("size", "subsets", "short"),
    [
        (2**31 - 1, [("a",)], True),
        (2**31, [("a",)], False),
        # the numbers of what is counted from a block are larger than those of the block
        (2**31 - 1, [("a",), ()], False),
        (2**30, [("a",), ("a", "b")], False),
    ],
)
def test_numbers_of_cells_are_short_where_all_of_them_fit(size, subsets, short):
    domain = Domain({"a": {"min": 0, "max": size - 1}, "b": 1})
    request = Request(domain, tuple(subsets), OutOfDomain())
    statement = postgresql.counting(request, postgresql.blocks(domain, subsets), "SELECT 0 AS c0, 0 AS c1")
    assert ("AS integer)" in statement) is short
    assert ("CAST(0 AS bigint)" in statement) is not short
