"""The address of a table in a specification: kept as it is written, and without a password."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from matrixdp.cli.app import app
from matrixdp.domain.rules import Kind
from matrixdp.draft import draft_specification
from matrixdp.errors import SpecificationError
from matrixdp.forms import shown
from matrixdp.specification import load_specification

REST = {"domain": {"sex": ["f", "m"]}, "workload": [{"marginals": [1]}]}


def loaded(data):
    return load_specification({"data": data, **REST}, base_path="/base")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("postgresql://ann@host/people", "postgresql://ann@host/people"),
        ("https://host/people.parquet?version=2", "https://host/people.parquet?version=2"),
        ("sqlite:///people.sqlite", "sqlite:////base/people.sqlite"),
        ("sqlite:////srv/people.sqlite", "sqlite:////srv/people.sqlite"),
        ("people.csv", Path("/base/people.csv")),
    ],
)
def test_addresses_stay_and_paths_are_relative_to_the_file(written, read):
    assert loaded(written).data == read
    assert loaded(written).document["data"] == written


@pytest.mark.parametrize(
    "written",
    [
        "postgresql://ann:hunter2@host/people",
        "postgresql://ann:hun@ter2@host/people",
        "postgresql://ann:hunter/2@host/people",
        "postgresql://ann:hunter#2@host/people",
        "postgresql://ann:hunter?2@host/people?sslmode=require",
        "postgresql://host/people?password=hunter2",
        "postgresql://host/people?sslpassword=hunter2",
        " postgresql://ann:hunter2@host/people",
        "jdbc:postgresql://ann:hunter2@host/people",
    ],
)
def test_a_password_in_a_specification_is_refused_and_not_repeated(written):
    with pytest.raises(SpecificationError) as caught:
        loaded(written)
    assert (caught.value.code, caught.value.path) == ("privacy", ("data",))
    assert "hun" not in str(caught.value)
    assert "hun" not in shown(written)


MAPPED = "domain: {sex: {map: people.csv}}\nworkload:\n  - marginals: [1]\nprivacy: {rho: 0.5}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("sex,ill\nfemale,no\nmale,yes\n")
    (tmp_path / "again.csv").hardlink_to(tmp_path / "people.csv")
    (tmp_path / "s.yaml").write_text(MAPPED)
    return tmp_path


#: Where a file of public values may be named, `FILE`: what is wrong with it would be quoted.
NAMED = [
    "domain: {sex: {levels_from: FILE}}\nworkload:\n  - marginals: [1]\n",
    "domain: {sex: [f, m]}\ncodebook: FILE\nworkload:\n  - marginals: [1]\n",
    "domain_from: FILE\nworkload:\n  - marginals: [1]\n",
    "domain: {sex: [f, m]}\nworkload:\n  - {dense: FILE, attributes: [sex]}\n",
    "domain: {sex: [f, m]}\nworkload:\n  - sql_file: FILE\n",
]


@pytest.mark.parametrize("written", NAMED)
@pytest.mark.parametrize("data", ["people.csv", "peo*.csv", "again.csv"])
def test_no_error_quotes_a_table_that_is_named_as_public_values(written: str, data: str, folder: Path):
    (folder / "people.csv").write_text("name,sex\nAnn Example,female\nAnn Example,male\n")
    text = f"data: {data}\n{written.replace('FILE', 'people.csv')}privacy: {{rho: 0.5}}\n"
    with pytest.raises(SpecificationError) as caught:
        load_specification(text, base_path=folder)
    assert caught.value.code == "privacy"
    assert "Ann" not in str(caught.value)


@pytest.mark.parametrize("data", ["people.csv", "./people.csv", "peo*.csv", "again.csv"])
def test_a_table_is_no_file_of_public_values(data: str, folder: Path):
    """Else a release would publish its records, whole."""
    with pytest.raises(SpecificationError) as named:
        load_specification(f"data: {data}\n{MAPPED}", base_path=folder)
    with pytest.raises(SpecificationError) as given:
        load_specification(f"data: other.csv\n{MAPPED}", base_path=folder).check_table(folder / data)
    assert named.value.code == given.value.code == "privacy"
    options = ["--data", str(folder / data), "--out", str(folder / "out")]
    result = CliRunner().invoke(app, ["release", str(folder / "s.yaml"), *options])
    assert result.exit_code == 2
    assert "a file of public values" in result.stderr


def test_a_draft_holds_no_password(monkeypatch: pytest.MonkeyPatch):
    table = type("Table", (), {"columns": lambda self: {"age": Kind.INTEGER}})()
    monkeypatch.setattr("matrixdp.draft.open_source", lambda *_, **__: table)
    for address in ("postgresql://ann:hunter2@host/people", "postgresql://host/people?password=hunter2"):
        draft = draft_specification(address)
        assert "hunter2" not in draft
        assert 'data: "postgresql://host/people"' in draft
    assert "postgresql://ann@host/people" in draft_specification("postgresql://ann@host/people")
