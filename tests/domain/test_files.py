"""Values from public files: read when a specification is, and kept whole with a digest."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import matrixdp as mdp
from matrixdp.domain import Categorical, Codebook, Domain, attribute_from_spec
from matrixdp.domain import parsing as files_module
from matrixdp.domain.parsing import read_file
from matrixdp.errors import DomainError, SpecificationError
from matrixdp.specification import load_specification

COUNTIES = 'county,state,coast\nKings,NY,east\n"Orange, CA",CA,west\nQueens,NY,east\n'


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "codes.txt").write_bytes(b"\xef\xbb\xbfAA\r\n\nDL \nU,A\n")
    (tmp_path / "counties.csv").write_text(COUNTIES)
    (tmp_path / "names.csv").write_text('county\nKings\n"Orange, CA"\nQueens\n')
    (tmp_path / "state.csv").write_text('county,state\nKings,NY\n"Orange, CA",CA\nQueens,NY\n')
    return tmp_path


def domain_of(folder: Path, text: str) -> Domain:
    (folder / "s.yaml").write_text(f"domain:\n  county: {text}\nworkload: [{{marginals: 1}}]\n")
    return load_specification(folder / "s.yaml").domain


def test_categories_are_the_lines_of_a_text_file(folder: Path) -> None:
    domain = domain_of(folder, "{categories: codes.txt}")
    assert domain["county"].to_spec() == {
        "categories": ["AA", "DL ", "U,A"],
        "sha256": {"categories": digest(folder / "codes.txt")},
    }
    # what is kept names no file any more
    assert Domain.from_spec(json.loads(json.dumps(domain.to_spec()))) == domain


def test_levels_are_columns_of_a_file(folder: Path) -> None:
    whole = domain_of(folder, "{categories: names.csv, levels: counties.csv}")["county"]
    assert whole.level("state").groups == (("NY", (0, 2)), ("CA", (1,)))
    assert whole.level("coast").groups == (("east", (0, 2)), ("west", (1,)))
    assert dict(whole.codebook.sha256)["levels"] == digest(folder / "counties.csv")
    one = domain_of(folder, "{categories: names.csv, levels: {state: state.csv}}")["county"]
    assert one.level("state") == whole.level("state")
    assert dict(one.codebook.sha256)["levels.state"] == digest(folder / "state.csv")


def test_python_gives_paths(folder: Path) -> None:
    domain = Domain({"county": {"categories": folder / "codes.txt"}})
    assert domain["county"].size == 3
    with pytest.raises(
        DomainError, match=r"county.categories: found 'codes.txt'; .* given as a pathlib.Path"
    ):
        Domain({"county": {"categories": "codes.txt"}})


def test_a_release_of_them_can_be_loaded_without_the_files(folder: Path) -> None:
    domain = domain_of(folder, "{categories: names.csv, levels: counties.csv}")
    strategy = mdp.select(mdp.Workload(domain, mdp.marginals([["state"]])))
    strategy.save(folder / "s.mdp")
    for file in folder.glob("*.csv"):
        file.unlink()
    assert mdp.Strategy.load(folder / "s.mdp").workload.domain == domain


def test_a_file_must_have_the_digest_that_is_given(folder: Path) -> None:
    right = digest(folder / "codes.txt")
    spec: dict[str, Any] = {"categories": folder / "codes.txt", "sha256": {"categories": right}}
    assert attribute_from_spec("a", spec).size == 3
    spec["sha256"]["categories"] = "0" * 64
    with pytest.raises(DomainError, match=rf"a.sha256.categories: found '0+'...; expected {right}"):
        attribute_from_spec("a", spec)
    with pytest.raises(DomainError, match=r"a\.sha256: found 'x'; expected a mapping of keys to the digests"):
        attribute_from_spec("a", {"categories": folder / "codes.txt", "sha256": "x"})
    with pytest.raises(DomainError, match=r"sha256\.categories: found 'x'; expected 64 digits from 0 to 9"):
        Categorical("a", ("x",), codebook=Codebook(sha256=(("categories", "x"),)))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.tsv", b"x", "found 'a.tsv'; expected a CSV file"),
        ("missing.txt", None, "found 'missing.txt', which is no file"),
        ("a.txt", b"\xff", "found 'a.txt', which is not UTF-8; expected a file in UTF-8"),
        ("a.txt", b"\n", "found an empty list; expected at least 1 category"),
        ("a.csv", b'v\n"x"y\n', "found 'a.csv', which is no CSV"),
        ("a.csv", b"v\n", "found 'a.csv' with 1 record; expected a header and at least one record"),
        ("a.csv", b"v,v\n1,2\n", "found 'a.csv' with the header v, v; expected a name for each column"),
        ("a.csv", b"v,w\n1,2\n3\n", "found 1 value in record 3 of 'a.csv'; expected 2, one for each"),
        ("a.csv", b"v,w\n1,2\n", "found a file with 2 columns; expected a file of one column"),
        ("a.csv", b"v\nx\nx\n", "a.categories[1]: found 'x' a second time"),
    ],
)
def test_files_that_list_no_values(tmp_path: Path, name: str, content: bytes | None, told: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DomainError) as caught:
        attribute_from_spec("a", {"categories": tmp_path / name})
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("levels", "content", "told"),
    [
        ("file", b"v\nx\n", "a.levels: found a file with 1 column; expected a CSV file: the value, then"),
        ("one", b"v\nx\n", "a.levels.l: found a file with 1 column; expected a CSV file of two columns"),
        ("one", b"v,w,u\nx,y,z\n", "a.levels.l: found a file with 3 columns"),
        (
            "file",
            b"v,w\nx,1\nx,2\n",
            "a.levels['record 3']: found 'x' a second time; expected each value once",
        ),
    ],
)
def test_files_that_say_no_levels(tmp_path: Path, levels: str, content: bytes, told: str) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    with pytest.raises(DomainError) as caught:
        attribute_from_spec("a", {"categories": ["x"], "levels": file if levels == "file" else {"l": file}})
    assert told in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.txt"
    file.write_text("x" * 9)
    with monkeypatch.context() as patched:
        patched.setattr(files_module, "_LARGEST", 8)
        with pytest.raises(DomainError, match=r"found 'a\.txt' of more than 64 MiB; expected a smaller file"):
            read_file(file)

    def refused(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(DomainError, match=r"found 'a.txt', which cannot be read \(Permission denied\)"):
        read_file(file)


def test_places_of_mistakes_have_lines(folder: Path) -> None:
    with pytest.raises(
        SpecificationError, match=r"domain.county.categories \(line 2\): found 'no.txt', which"
    ):
        domain_of(folder, "{categories: no.txt}")
