"""Drafts: what they are made of, and that they work at once where a public table says everything."""

import sqlite3
from contextlib import closing
from datetime import date, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.domain import OutOfDomain
from matrixdp.domain.rules import Kind
from matrixdp.draft import draft_specification, propose, propose_listed
from matrixdp.errors import SourceError, SpecificationError
from matrixdp.sources import open_source
from matrixdp.specification.load import parse_yaml

ROWS = """person_id,age,state,comment,sex
1,33,NY,came late,1
2,44,NJ,,2
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def lines(text: str) -> list[str]:
    return text.splitlines()


def test_a_draft_of_csv_leaves_everything_to_be_filled_in(tmp_path: Path):
    text = draft_specification(written(tmp_path / "people.csv", ROWS))
    assert [line for line in lines(text) if line.startswith("  ")] == [
        "  # person_id is left out: an identifier, by its name",
        "  age: TODO   # [category, ...], {min, max}, {min, max, bins} or {from, to, by}",
        "  state: TODO   # [category, ...], {min, max}, {min, max, bins} or {from, to, by}",
        "  # comment is left out: free text, by its name",
        "  sex: TODO   # [category, ...], {min, max}, {min, max, bins} or {from, to, by}",
        "  - marginals: [0, 1]   # the total, and every attribute on its own",
    ]
    assert "# unit: {id: person_id, max_records: 3}" in text
    with pytest.raises(SpecificationError, match=r"domain.age \(line 12\): found TODO \(and at domain.state"):
        mdp.load_specification(text)


def test_no_record_shows_in_a_draft(tmp_path: Path):
    one = draft_specification(written(tmp_path / "people.csv", ROWS))
    assert one == draft_specification(written(tmp_path / "people.csv", ROWS.splitlines()[0] + "\n"))
    hostile = ROWS.splitlines()[0] + '\n"' + "\x00,\n" * 5 + "9" * 100_000
    assert one == draft_specification(written(tmp_path / "people.csv", hostile))


def test_types_of_storage_tell_what_is_to_be_filled_in(tmp_path: Path):
    columns = {
        "age": pa.array([1], pa.int32()),
        "pay": pa.array([1.0]),
        "day": pa.array([0], pa.date32()),
        "old": pa.array([True]),
        "town": pa.array(["x"]),
        "parts": pa.array([[1]]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    text = draft_specification(tmp_path / "t.parquet")
    for line in (
        "  age: {min: TODO, max: TODO}",
        "  pay: {min: TODO, max: TODO, bins: TODO}",
        "  day: {from: TODO, to: TODO, by: month}",
        "  old: [false, true]",
        "  # parts is left out: a type that no attribute is read from; convert it first, or leave it out",
    ):
        assert line in lines(text)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE one AS SELECT 1 AS age; CREATE TABLE two AS SELECT 2.5 AS pay")
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as connection:
        connection.execute("CREATE TABLE one (age INTEGER)")
    assert "  age: TODO" in draft_specification(f"sqlite:///{tmp_path}/t.sqlite")
    text = draft_specification(tmp_path / "t.duckdb", table="two")
    assert "table: two" in lines(text)
    assert "  pay: {min: TODO, max: TODO, bins: TODO}" in lines(text)


def test_a_public_table_fills_everything_in(tmp_path: Path):
    source = Path("examples/randhie.parquet")
    text = draft_specification(source, public_table=source)
    specification = mdp.load_specification(text)
    table = pq.read_table(source)
    assert specification.domain.names == tuple(table.column_names)
    assert specification.budget == mdp.Budget(epsilon=1.0, delta=1e-6)
    # Whatever is not missing is in its attribute's domain; what is missing is a value.
    ((_, counts),) = open_source(source).marginals(specification.domain, [()], OutOfDomain())
    assert counts == table.num_rows
    assert "  visits: {min: 0, max: 77}   # public, from randhie.parquet" in lines(text)
    assert "  coinsurance: [0, 25, 50, 95, 100]   # public, from randhie.parquet" in lines(text)


TEXTS = st.one_of(
    st.sampled_from(
        ["no", "true", "TODO", "1e3", "0x1F", "null", "~", "007", "1.0", "a: b", "#x", "[", "'", '"', ".5"]
    ),
    st.text(
        st.characters(codec="utf-8", exclude_categories=["C"], exclude_characters="\ufffd"),
        min_size=1,
        max_size=9,
    ),
)
COLUMNS = st.one_of(
    st.lists(st.one_of(st.none(), TEXTS), min_size=12, max_size=12),
    st.lists(st.one_of(st.none(), st.integers(-(10**12), 10**12)), min_size=12, max_size=12),
    st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), min_size=12, max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
    st.lists(st.integers(-3, 200), min_size=12, max_size=12),
    st.lists(st.dates(date(1996, 1, 1), date(2004, 1, 1)), min_size=12, max_size=12),
    st.lists(st.datetimes(datetime(1999, 1, 1), datetime(2001, 1, 1)), min_size=12, max_size=12),
    st.lists(st.sampled_from(["NY", " NY", "ny", "Nj", "NJ "]), min_size=12, max_size=12),
)


@settings(max_examples=20, deadline=None)
@given(columns=st.lists(COLUMNS, min_size=1, max_size=3))
def test_every_record_of_the_public_table_is_in_the_domain(columns, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("public") / "t.parquet"
    table = pa.table({f"c{place}": column for place, column in enumerate(columns)})
    pq.write_table(table, path)
    text = draft_specification(path, public_table=path)
    assume(not parse_yaml(text).unfilled)  # what is public of columns without two values is not all
    specification = mdp.load_specification(text)
    ((_, counts),) = open_source(path).marginals(specification.domain, [()], OutOfDomain())
    assert counts == 12


def test_texts_that_other_readers_take_for_numbers_are_texts(tmp_path: Path):
    table = pa.table({"code": ["INF", "1e400", "a", None] * 5})
    pq.write_table(table, tmp_path / "t.parquet")
    text = draft_specification(tmp_path / "t.parquet", public_table=tmp_path / "t.parquet")
    domain = mdp.load_specification(text).domain
    ((_, counts),) = open_source(tmp_path / "t.parquet").marginals(domain, [()], OutOfDomain())
    assert counts == 20


def test_far_values_are_in_open_bins(tmp_path: Path):
    pay = [*(1000.0 + place for place in range(200)), 9e6]
    pq.write_table(pa.table({"pay": pay}), tmp_path / "t.parquet")
    specification = mdp.load_specification(
        draft_specification(tmp_path / "t.parquet", public_table=tmp_path / "t.parquet")
    )
    assert specification.domain["pay"].label(0).startswith("(-inf, ")
    assert specification.domain["pay"].label(specification.domain["pay"].size - 1).endswith(", inf)")
    assert specification.domain["pay"].size < 60


def test_forms_that_are_not_read_are_said_with_what_to_do(tmp_path: Path):
    rows = [f"{i % 28 + 1:02}.03.20{i:02};{i},476.62;{i},5;{i % 3}.1.2024;x{i}" for i in range(10, 60)]
    table = written(tmp_path / "t.csv", "\n".join(["born;cost;rate;wave;said", *rows]))
    text = draft_specification(table, public_table=table)
    numbers = "numbers with thousands separators, decimal commas or units: convert the column"
    dates = "dates that are not ISO 8601 (YYYY-MM-DD): convert the column"
    assert f"  # born is left out: {dates}\n" in text
    assert f"  # cost is left out: {numbers}\n" in text
    assert f"  # rate is left out: {numbers}\n" in text
    assert '  wave: ["0.1.2024", "1.1.2024", "2.1.2024", TODO]   # public, from t.csv; texts of dates' in text
    assert "  # said is left out: an identifier or free text" in text


@pytest.mark.parametrize(
    "written_dates",
    [
        ("Jan-2018", "Feb-2018"),
        ("2018-01", "2018-02"),
        ("01/2018", "12/2018"),
        ("31.01.2018", "1.2.18"),
        ("March 2018", "Mai 2018"),
        ("5 Jan 2018", "Jan 5, 2018"),
        ("2018-Q1", "Q2 2018"),
        ("2018-W05", "2018 W06"),
    ],
)
def test_few_dates_as_texts_are_no_whole_list(written_dates: tuple[str, ...], tmp_path: Path):
    rows = "\n".join(f'"{written_dates[i % 2]}",{"Mayfield 12" if i % 2 else "Marble 20"}' for i in range(40))
    table = written(tmp_path / "t.csv", f"period,street\n{rows}\n")
    unfilled = parse_yaml(draft_specification(table, public_table=table)).unfilled
    assert unfilled == (("domain", "period", 2),)


def test_a_single_public_value_is_no_whole_list(tmp_path: Path):
    row = "Jan-2018,x,5,2.5,2018-01-05"
    table = written(tmp_path / "t.csv", f"month,region,code,rate,day\n{row}\n" + f"{row}\n,,,,\n" * 30)
    text = draft_specification(table, public_table=table)
    assert set(parse_yaml(text).unfilled) == {
        ("domain", "month", "categories", 1),
        ("domain", "region", "categories", 1),
        ("domain", "code", "max"),
        ("domain", "rate", "max"),
        ("domain", "day", "to"),
    }
    told = CliRunner().invoke(app, ["draft", str(table), "--public-table", str(table)])
    assert "domain.region.categories[1]" in told.stderr
    assert told.stdout == text
    book = written(tmp_path / "book.csv", "variable,value,label\nregion,1,north\ncode,7,\n")
    unfilled = parse_yaml(draft_specification(table, public_table=book)).unfilled
    assert {("domain", "region", "labels", "TODO"), ("domain", "code", 1)} <= set(unfilled)


def test_codes_below_zero_may_be_missing_values(tmp_path: Path):
    rows = [f"{(-9, -8, i)[min(i % 20, 2)]},{i % 30 - 5},{-1 if i % 9 else i}" for i in range(18, 90)]
    table = written(tmp_path / "t.csv", "\n".join(["age,celsius,hours", *rows]))
    text = draft_specification(table, public_table=table)
    assert (
        "{min: -9, max: 89}   # public, from t.csv; -9 and -8 may stand for missing values: if so begin"
        in text
    )
    assert "celsius: {min: -5, max: 24}   # public, from t.csv\n" in text


def test_a_public_table_that_is_not_utf_8_is_refused(tmp_path: Path):
    header = written(tmp_path / "t.csv", "state\n")
    foreign = tmp_path / "public.csv"
    for text in ("state\nThüringen\n", "variable,value\nstate,Thüringen\n"):
        foreign.write_bytes(text.encode("cp1252"))
        with pytest.raises(SourceError, match=r"not UTF-8 in its column '(state|value)'.*iconv"):
            draft_specification(header, public_table=foreign)


def test_a_code_book_gives_values_and_labels(tmp_path: Path):
    book = "Variable,Value,Label\nsex,1,male\nsex,2,female\nstate,NY,\nstate,NJ,\nother,1,x\nsex,,none\n"
    data = written(tmp_path / "people.csv", ROWS)
    text = draft_specification(data, public_table=written(tmp_path / "book.csv", book))
    assert '  sex: {labels: {"1": male, "2": female}}   # public, from book.csv' in lines(text)
    assert "  state: [NY, NJ]   # public, from book.csv" in lines(text)
    assert "  age: TODO" in text
    without = draft_specification(data, public_table=written(tmp_path / "b.csv", "a,b\n1,2\n"))
    assert "public, from" not in without


def test_identifiers_and_free_text_are_left_out_with_the_reason(tmp_path: Path):
    rows = "".join(f"{place},x{place},{'word ' * 20}{place % 5},{place % 3}\n" for place in range(60))
    data = written(tmp_path / "t.csv", "record,code,story,county_id\n" + rows)
    text = draft_specification(data, public_table=data)
    assert (
        "# record is left out: an identifier or free text: nearly every public record has its own value"
        in text
    )
    assert "# code is left out" in text
    assert "# story is left out: free text: 5 different public values" in text
    assert "  county_id: {min: 0, max: 2}" in text
    assert propose("emailAddress", Kind.TEXT).identifies
    assert propose("Name", Kind.TEXT).spec is None
    assert propose("village_name", Kind.TEXT).spec is not None


def test_codes_with_leading_zeros_stay_apart(tmp_path: Path):
    rows = "".join(
        f"0{place % 9 + 1},{z},{w}\n" for place, (z, w) in enumerate([("01234", "01"), ("1234", "1")] * 9)
    )
    data = written(tmp_path / "t.csv", "month,zip,ward\n" + rows)
    text = draft_specification(data, public_table=data)
    assert "  month: {min: 1, max: 9}   # public, from t.csv" in lines(text)
    assert '  zip: {categories: ["01234", "1234"], type: text}   # public, from t.csv' in lines(text)
    assert '  ward: {categories: ["01", "1"], type: text}   # public, from t.csv' in lines(text)
    assert "TODO" not in text
    assert mdp.load_specification(text).domain.cells() == 36


def test_nothing_to_ask_about_is_said(tmp_path: Path):
    text = draft_specification(written(tmp_path / "t.csv", "id,uuid\n1,2\n"))
    assert "  TODO: TODO   # no column could be made an attribute" in lines(text)
    with pytest.raises(
        SourceError, match=r"ArraysSource.* does not tell its columns; give the path of a table"
    ):
        draft_specification({"a": [1]})  # type: ignore[arg-type]


def test_labels_that_are_not_told_apart_are_not_taken():
    assert propose_listed({"1": "x", "2": "x"}).spec == [1, 2]
    assert propose_listed({"01": "", "2": ""}).spec == ["01", 2]


def test_the_command_prints_what_validate_takes(tmp_path: Path):
    run = CliRunner().invoke
    result = run(app, ["draft", "examples/randhie.parquet", "--public-table", "examples/randhie.parquet"])
    assert result.exit_code == 0
    file = written(tmp_path / "drafted.yaml", result.stdout.replace("data: ", f"data: {Path.cwd()}/"))
    assert run(app, ["validate", str(file)]).exit_code == 0
    refused = run(app, ["draft", str(tmp_path / "none.csv")])
    assert refused.exit_code == 2
    assert "there is no file" in refused.output
