"""Values from public files: read when a specification is, and kept whole with a digest."""

import hashlib
import json
from pathlib import Path

import pytest

from matrixdp.domain import Domain
from matrixdp.domain import parsing as files_module
from matrixdp.domain.parsing import read_file
from matrixdp.errors import DomainError
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
    digests = {"categories": digest(folder / "codes.txt")}
    assert domain["county"].to_spec() == {"categories": ["AA", "DL ", "U,A"], "sha256": digests}
    # what is kept names no file any more
    assert Domain.from_spec(json.loads(json.dumps(domain.to_spec()))) == domain
    # Python gives a path
    for more in ({}, {"sha256": digests}):
        assert Domain({"county": {"categories": folder / "codes.txt", **more}}) == domain


def test_levels_are_columns_of_a_file(folder: Path) -> None:
    whole = domain_of(folder, "{categories: names.csv, levels: counties.csv}")["county"]
    assert whole.level("state").groups == (("NY", (0, 2)), ("CA", (1,)))
    assert whole.level("coast").groups == (("east", (0, 2)), ("west", (1,)))
    assert dict(whole.codebook.sha256)["levels"] == digest(folder / "counties.csv")
    # what is kept of it is loaded without the files
    assert Domain.from_spec(json.loads(json.dumps({"county": whole.to_spec()}))) == Domain([whole])
    one = domain_of(folder, "{categories: names.csv, levels: {state: state.csv}}")["county"]
    assert one.level("state") == whole.level("state")
    assert dict(one.codebook.sha256)["levels.state"] == digest(folder / "state.csv")


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.txt"
    file.write_text("x" * 9)
    monkeypatch.setattr(files_module, "_LARGEST", 8)
    with pytest.raises(DomainError) as large:
        read_file(file)

    def refused(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files_module, "_LARGEST", 9)
    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(DomainError, match="Permission denied") as unreadable:
        read_file(file)
    assert (large.value.code, unreadable.value.code) == ("too-large", "file-missing")
