"""Drafts: what they are made of, and that they work at once where a public table says everything."""

import shutil
import sqlite3
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, example, given, settings
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


def drafted(path: Path) -> str:
    """Return the draft of a table of which a copy is public."""
    with TemporaryDirectory() as folder:
        return draft_specification(path, public_table=copied(path, Path(folder)))


def copied(path: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return Path(shutil.copy(path, folder))


@pytest.mark.parametrize("public", ["people.csv", "hard.csv", "soft.csv", "peopl?.csv", "*.csv"])
@pytest.mark.parametrize("data", ["people.csv", "peopl[e].csv"])
def test_the_table_itself_is_not_public(data: str, public: str, tmp_path: Path):
    people = written(tmp_path / "people.csv", ROWS)
    (tmp_path / "hard.csv").hardlink_to(people)
    (tmp_path / "soft.csv").symlink_to(people)
    with pytest.raises(SpecificationError) as caught:
        draft_specification(tmp_path / data, public_table=tmp_path / public)
    assert (caught.value.code, caught.value.path) == ("privacy", ("public_table",))
    told = CliRunner().invoke(app, ["draft", str(tmp_path / data), "--public-table", str(tmp_path / public)])
    assert (told.exit_code, told.stdout) == (2, "")


def test_a_draft_of_csv_leaves_everything_to_be_filled_in(tmp_path: Path):
    text = draft_specification(written(tmp_path / "people.csv", ROWS))
    lines = [line for line in text.splitlines() if line.startswith("  ")]
    assert lines[:6] == [
        "  # person_id is left out: an identifier, by its name",
        "  age: TODO   # [category, ...], {min, max}, {amount, step} or {from, to, by}",
        "  state: TODO   # codes, by its name: [code, ...]",
        "  # comment is left out: free text, by its name",
        "  sex: TODO   # codes, by its name: [code, ...]",
        "  - marginals: [0, 1]   # the total, and every attribute on its own",
    ]
    assert all(line.startswith("  #") for line in lines[6:])
    assert "--records N" in text
    assert "# unit: {id: person_id, max_records: 3}" in text
    assert "# `null: no answer` beside an attribute" in text
    with pytest.raises(SpecificationError) as caught:
        mdp.load_specification(text)
    assert (caught.value.code, caught.value.path) == ("missing-key", ("domain", "age"))


def test_no_record_shows_in_a_draft(tmp_path: Path):
    header = ROWS.splitlines()[0] + "\n"
    hostile = header + '"' + "\x00,\n" * 5 + "9" * 100_000
    drafts = {draft_specification(written(tmp_path / "people.csv", text)) for text in (ROWS, header, hostile)}
    assert len(drafts) == 1
    identifiers = draft_specification(written(tmp_path / "t.csv", "id,uuid\n1,2\n"))
    assert "  TODO: TODO   # no column could be made an attribute" in identifiers


def test_types_of_storage_tell_what_is_to_be_filled_in(tmp_path: Path):
    numbers = {"age": pa.array([1], pa.int32()), "size": [1.0], "day": pa.array([0], pa.date32())}
    numbers |= {"pay": [1.0], "zip": pa.array([1], pa.int64())}
    pq.write_table(pa.table(numbers | {"old": [True], "parts": [[1]]}), tmp_path / "t.parquet")
    lines = draft_specification(tmp_path / "t.parquet").splitlines()
    size = "  size: {min: TODO, max: TODO, bins: TODO}"
    assert {
        "  age: {min: TODO, max: TODO}",
        size,
        "  pay: {amount: [0, TODO]}   # the largest that counts; with cents also `step: 0.01`",
        "  - sum: pay",
        "  - mean: pay",
        "  zip: TODO   # codes, by its name: [code, ...]",
        "  day: {from: TODO, to: TODO, by: month}",
        "  old: [false, true]",
        "  # parts is left out: a type that no attribute is read from; convert it first, or leave it out",
    } <= set(lines)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE one AS SELECT 1 AS age; CREATE TABLE two AS SELECT 2.5 AS size")
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as connection:
        connection.execute("CREATE TABLE one (age INTEGER)")
    assert "  age: TODO" in draft_specification(f"sqlite:///{tmp_path}/t.sqlite")
    assert {"table: two", size} <= set(draft_specification(tmp_path / "t.duckdb", table="two").splitlines())


def test_a_public_table_fills_everything_in():
    source = Path("examples/randhie.parquet")
    text = drafted(source)
    specification = mdp.load_specification(text)
    assert specification.domain.names == tuple(pq.read_schema(source).names)
    assert specification.budget == mdp.Budget(epsilon=1.0, delta=1e-6)
    assert "  visits: {min: 0, max: 77}   # public, from randhie.parquet" in text
    assert "  coinsurance: [0, 25, 50, 95, 100]   # public, from randhie.parquet" in text


ODD = ["no", "true", "TODO", "1e3", "0x1F", "null", "~", "007", "1.0", "a: b", "#x", "[", "'", '"', ".5"]
LETTERS = st.characters(codec="utf-8", exclude_categories=["C"], exclude_characters="\ufffd")
TEXTS = st.sampled_from(ODD) | st.text(LETTERS, min_size=1, max_size=9)
CELLS: list[st.SearchStrategy[object]] = [
    st.none() | TEXTS,
    st.none() | st.integers(-(10**12), 10**12),
    st.none() | st.floats(-1e9, 1e9),
    st.booleans(),
    st.integers(-3, 200),
    st.dates(date(1996, 1, 1), date(2004, 1, 1)),
    st.datetimes(datetime(1999, 1, 1), datetime(2001, 1, 1)),
    st.sampled_from(["NY", " NY", "ny", "Nj", "NJ "]),
]
COLUMNS = st.one_of([st.lists(cells, min_size=12, max_size=12) for cells in CELLS])


@settings(max_examples=20, deadline=None)
@given(columns=st.lists(COLUMNS, min_size=1, max_size=3))
@example(columns=[["INF", "1e400", "a", None] * 3])
def test_every_record_of_the_public_table_is_in_the_domain(columns, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("public") / "t.parquet"
    pq.write_table(pa.table({f"c{place}": column for place, column in enumerate(columns)}), path)
    text = drafted(path)
    assume(not parse_yaml(text).unfilled)  # what is public of columns without two values is not all
    ((_, counts),) = open_source(path).marginals(mdp.load_specification(text).domain, [()], OutOfDomain())
    assert counts == 12


def test_far_values_are_in_open_bins(tmp_path: Path):
    size = [*(1000.0 + place for place in range(200)), 9e6]
    pq.write_table(pa.table({"size": size, "pay": size}), tmp_path / "t.parquet")
    domain = mdp.load_specification(drafted(tmp_path / "t.parquet")).domain
    assert domain["pay"].to_spec() == {"amount": [1000, 1200]}
    attribute = domain["size"]
    assert attribute.label(0).startswith("(-inf, ")
    assert attribute.label(attribute.size - 1).endswith(", inf)")
    assert attribute.size < 60


NUMBERS = "numbers with thousands separators, decimal commas or units: convert the column"
FORMS = {
    "born;cost;rate;wave;said": (
        [f"{i % 28 + 1:02}.03.20{i:02};{i},476.62;{i},5;{i % 3}.1.2024;x{i}" for i in range(10, 60)],
        [
            "  # born is left out: dates that are not ISO 8601 (YYYY-MM-DD): convert the column\n",
            f"  # cost is left out: {NUMBERS}\n",
            f"  # rate is left out: {NUMBERS}\n",
            '  wave: ["0.1.2024", "1.1.2024", "2.1.2024", TODO]   # public, from t.csv; texts of dates',
            "  # said is left out: an identifier or free text",
        ],
    ),
    "age,celsius,hours": (
        [f"{(-9, -8, i)[min(i % 20, 2)]},{i % 30 - 5},{-1 if i % 9 else i}" for i in [*range(18, 90)] * 2],
        [
            "  age: {min: 18, max: 89, null: missing, missing: [-9, -8]}   # public, from t.csv; missing",
            "the ends count as the ends: `clip: true` beside them.\n",
            "celsius: {min: -5, max: 24}   # public, from t.csv\n",
        ],
    ),
    "record,code,story,county_id": (
        [f"{i},x{i},{'word ' * 20}{i % 5},{i % 3}" for i in range(60)],
        [
            "# record is left out: an identifier or free text: nearly every public record has its own value",
            "# code is left out",
            "# story is left out: free text: 5 different public values",
            "  county_id: [0, 1, 2]",
        ],
    ),
    "postal_code,code": (
        [f"0410{i % 4},{('07', '11')[i % 2]}" for i in range(40)],
        [
            '  postal_code: ["04100", "04101", "04102", "04103"]   # public, from t.csv\n',
            '  code: ["07", 11]   # public, from t.csv\n',
        ],
    ),
    "month,zip,ward": (
        [f"0{i % 9 + 1},{('01234', '1234')[i % 2]},{('01', '1')[i % 2]}" for i in range(18)],
        [
            "  month: {min: 1, max: 9}   # public, from t.csv; list the values, [1, 2, ...], if they are",
            '  zip: {categories: ["01234", "1234"], type: text}   # public, from t.csv\n',
            '  ward: {categories: ["01", "1"], type: text}   # public, from t.csv\n',
        ],
    ),
}


@pytest.mark.parametrize("header", FORMS)
def test_forms_of_public_values_are_told_apart(header: str, tmp_path: Path):
    rows, lines = FORMS[header]
    text = drafted(written(tmp_path / "t.csv", "\n".join([header, *rows, ""])))
    assert [line for line in lines if line not in text] == []


@pytest.mark.parametrize(
    ("one", "other"),
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
def test_few_dates_as_texts_are_no_whole_list(one: str, other: str, tmp_path: Path):
    rows = f'"{one}",Marble 20\n"{other}",Mayfield 12\n' * 20
    text = drafted(written(tmp_path / "t.csv", f"period,street\n{rows}"))
    assert parse_yaml(text).unfilled == (("domain", "period", 2),)


def test_a_single_public_value_is_no_whole_list(tmp_path: Path):
    row = "Jan-2018,x,5,2.5,2018-01-05"
    table = written(tmp_path / "t.csv", f"month,region,code,rate,day\n{row}\n" + f"{row}\n,,,,\n" * 30)
    text = drafted(table)
    assert set(parse_yaml(text).unfilled) == {
        ("domain", "month", "categories", 1),
        ("domain", "region", "categories", 1),
        ("domain", "code", "categories", 1),
        ("domain", "rate", "max"),
        ("domain", "day", "to"),
    }
    public = copied(table, tmp_path / "public")
    told = CliRunner().invoke(app, ["draft", str(table), "--public-table", str(public)])
    assert "domain.region.categories[1]" in told.stderr
    assert told.stdout == text
    book = written(tmp_path / "book.csv", "variable,value,label\nregion,1,north\ncode,7,\n")
    unfilled = parse_yaml(draft_specification(table, public_table=book)).unfilled
    assert {("domain", "region", "labels", "TODO"), ("domain", "code", 1)} <= set(unfilled)


@pytest.mark.parametrize("text", ["state\nThüringen\n", "variable,value\nstate,Thüringen\n"])
def test_a_public_table_that_is_not_utf_8_is_refused(text: str, tmp_path: Path):
    (tmp_path / "public.csv").write_bytes(text.encode("cp1252"))
    with pytest.raises(SourceError, match="iconv"):
        draft_specification(written(tmp_path / "t.csv", "state\n"), public_table=tmp_path / "public.csv")


def test_a_code_book_gives_values_and_labels(tmp_path: Path):
    book = "Variable,Value,Label\nsex,1,male\nsex,2,female\nstate,NY,\nstate,NJ,\nother,1,x\nsex,,none\n"
    data = written(tmp_path / "people.csv", ROWS)
    text = draft_specification(data, public_table=written(tmp_path / "book.csv", book))
    assert '  sex: {labels: {"1": male, "2": female}}   # public, from book.csv' in text
    assert "  state: [NY, NJ]   # public, from book.csv" in text
    assert "  age: TODO" in text
    without = draft_specification(data, public_table=written(tmp_path / "b.csv", "a,b\n1,2\n"))
    assert "public, from" not in without


def test_proposals():
    assert propose("emailAddress", Kind.TEXT).identifies
    assert propose("Name", Kind.TEXT).spec is None
    assert propose("village_name", Kind.TEXT).spec is not None
    # labels that are not told apart are not taken
    assert propose_listed({"1": "x", "2": "x"}).spec == [1, 2]
    assert propose_listed({"01": "", "2": ""}).spec == ["01", 2]
    with pytest.raises(SourceError) as caught:
        draft_specification({"a": [1]})  # type: ignore[arg-type]
    assert caught.value.code == "not-supported"


def test_the_command_prints_what_validate_takes(tmp_path: Path):
    run = CliRunner().invoke
    public = copied(Path("examples/randhie.parquet"), tmp_path)
    result = run(app, ["draft", "examples/randhie.parquet", "--public-table", str(public)])
    assert result.exit_code == 0
    file = written(tmp_path / "drafted.yaml", result.stdout.replace("data: ", f"data: {Path.cwd()}/"))
    assert run(app, ["validate", str(file)]).exit_code == 0
    assert run(app, ["draft", str(tmp_path / "none.csv")]).exit_code == 2


def chosen_pairs(text: str) -> list[tuple[str, ...]]:
    """Return the pairs of attributes whose tables a draft asks for."""
    asked = mdp.load_specification(text).workload
    return [group.attributes for group in asked if len(group.attributes) == 2]


def test_a_draft_of_a_payroll_has_amounts_and_codes_and_no_identifiers(tmp_path: Path):
    header = "employee_id,account,zip,sex,industry,hired,salary,hours,bonus_pay,email"
    rows = [
        f"{i},{100_000 + 7_919 * i % 900_000},{10_000 + i % 600},{i % 2 + 1},{(111, 112, 445, 722)[i % 4]},"
        f"{2000 + i % 5}-0{i % 9 + 1}-11,{1_500 + 7.25 * (i % 500)},{(9999, *range(1, 40))[i % 40]},"
        f"{i % 3},a{i}@x.org"
        for i in range(3_000)
    ]
    text = drafted(written(tmp_path / "pay.csv", "\n".join([header, *rows, ""])))
    specification = mdp.load_specification(text)
    assert specification.domain.names == ("sex", "industry", "hired", "salary", "hours", "bonus_pay")
    assert specification.domain["salary"].to_spec() == {"amount": [1_500, 5_200], "step": 0.01}
    assert [specification.domain["hours"].label(code) for code in (0, 38, 39)] == ["1", "39", "missing"]
    for line in [
        "  # employee_id is left out: an identifier, by its name",
        "  # account is left out: an identifier or free text",
        "  # zip is left out: codes, by its name, of 600 public values",
        "  sex: [1, 2]   #",
        "  industry: [111, 112, 445, 722]   #",
        "missing: [9999]}   # public, from pay.csv; missing values by their looks",
        "  - sum: salary\n  - mean: salary\n",
        "  # email is left out",
    ]:
        assert line in text
    assert {("sex", "industry"), ("sex", "hours")} <= {*chosen_pairs(text)}
    assert not mdp.advice(specification)


def test_the_more_records_the_more_pairs_and_most_of_their_counts_are_reliable(tmp_path: Path):
    rows = ["c0,c1,c2,c3,c4"]
    rows += [",".join(f"v{i * (2 * k + 3) // 7 % (2 * k + 2)}" for k in range(5)) for i in range(900)]
    table = written(tmp_path / "t.csv", "\n".join([*rows, ""]))
    budget, found, public = mdp.Budget(epsilon=1, delta=1e-6), [], copied(table, tmp_path / "public")
    for records in (100, 1_000, 10_000, 1_000_000):
        text = draft_specification(table, public_table=public, records=records)
        specification = mdp.load_specification(text)
        strategy = mdp.select(specification.workload, "gaussian", budget=budget)
        shares = {}
        for name in specification.domain.names:
            column = [dict(zip(rows[0].split(","), row.split(","), strict=True))[name] for row in rows[1:]]
            attribute = specification.domain[name]
            shares[name] = [column.count(attribute.label(code)) / 900 for code in range(attribute.size)]
        errors = mdp.select(specification.workload, "gaussian").priced(budget).errors
        scale = strategy.selection.noise.error_scale(budget)
        for group, error in zip(specification.workload, errors, strict=True):
            if len(group.attributes) == 2:
                one, other = (shares[name] for name in group.attributes)
                cells = sorted(records * a * b for a in one for b in other)
                # half of them at least
                assert 3 * (error.total / group.queries / scale) ** 0.5 <= cells[-(len(cells) // 2)]
        found.append(chosen_pairs(text))
        assert f"With {records:,} records " in text
    assert [len(pairs) for pairs in found] == sorted(len(pairs) for pairs in found)
    assert found[0] == []
    assert len(found[3]) == 10
    assert 0 < len(found[1]) < len(found[2])


def test_a_wide_survey_does_not_ask_more_than_its_records_carry(tmp_path: Path):
    columns = {f"q{place}": pa.array([True, False]) for place in range(40)}
    pq.write_table(pa.table({"person_id": [1, 2], **columns}), tmp_path / "t.parquet")
    assert len(chosen_pairs(draft_specification(tmp_path / "t.parquet"))) == 5
    few, some, many = (
        draft_specification(tmp_path / "t.parquet", records=records) for records in (60, 300, 100_000)
    )
    assert (len(chosen_pairs(few)), len(chosen_pairs(many))) == (0, 780)
    assert len(chosen_pairs(some)) == 100
    assert "  - marginals: 2   # every pair" in many


def test_the_command_takes_a_number_of_records(tmp_path: Path):
    pq.write_table(pa.table({"old": [True], "well": [True]}), tmp_path / "t.parquet")
    command = ["draft", str(tmp_path / "t.parquet"), "--records"]
    assert "With 9,000 records 9 of 9 counts" in CliRunner().invoke(app, [*command, "9000"]).stdout
    assert CliRunner().invoke(app, [*command, "0"]).exit_code == 2
