"""Files at an address: what fetches them is named where it is missing; what is fetched is read as at a path.

The extension of DuckDB that fetches is not part of it. Here a folder takes the place of the network.
"""

import tempfile

import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.sources import open_source, paths
from matrixdp.sources.base import INFERRED, QUOTES_CLOSED
from tests.sources.ways import cells, counts, csv, parquet

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": 4})
PEOPLE = pa.table({"sex": ["male", "female", "male"], "age": [3, 1, 9]})


@pytest.fixture
def network(tmp_path, monkeypatch):
    """Addresses below ``https://host/`` are those of files in the folder that is returned."""
    given = paths.RemoteSource.__init__

    def named(self, address, **options):
        given(self, address, **options)
        self._address = address.replace("https://host", str(tmp_path))

    monkeypatch.setattr(paths.RemoteSource, "__init__", named)
    monkeypatch.setattr(paths, "_load", lambda connection: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", ["people.parquet", "people.csv", "people.tsv.gz"])
def test_files_are_fetched_and_read_as_at_a_path(name, network):
    if name.endswith("parquet"):
        parquet(PEOPLE, network, name)
    else:
        csv(PEOPLE, network, name, "\t" if "tsv" in name else ",")
    open_source(f"https://host/{name}").check(DOMAIN)
    assert cells(f"https://host/{name}", DOMAIN) == [(0, 1), (1, 3)]
    assert not list((network / "temporary").iterdir())


def test_several_files_are_read_in_the_order_of_their_names(network):
    for place, sex in enumerate(["female", "male", "male"]):
        parquet(pa.table({"sex": [sex], "age": [place], "who": ["ann"]}), network, f"{place}.parquet")
    unit = mdp.Unit(id="who", records=2)
    open_source("https://host/*.parquet").check(DOMAIN, unit=unit)
    assert cells("https://host/*.parquet", DOMAIN, unit=unit) == [(0, 0), (1, 1)]


def test_texts_that_are_not_utf_8_are_their_own_records_affair(network):
    texts = pa.array([b"male", b"\xff"]).view(pa.string())
    parquet(pa.table({"sex": texts, "age": [3, 3]}), network, "people.parquet")
    assert cells("https://host/people.parquet", DOMAIN) == [(1, 3)]


def test_columns_are_checked_from_the_metadata(network):
    parquet(PEOPLE.drop_columns("age"), network, "people.parquet")
    for attempt in (lambda source: source.check(DOMAIN), lambda source: counts(source, DOMAIN)):
        with pytest.raises(mdp.SourceError, match="no column 'age'"):
            attempt(open_source("https://host/people.parquet"))
    assert not list((network / "temporary").iterdir())


def test_every_file_of_a_pattern_is_checked_from_its_metadata_and_named(network):
    parquet(PEOPLE, network, "1.parquet")
    parquet(PEOPLE.rename_columns(["Sex", "age"]), network, "2.parquet")
    with pytest.raises(mdp.SourceError, match=r"2\.parquet': the table has no column 'sex'"):
        open_source("https://host/*.parquet").check(DOMAIN)


def test_what_is_assumed_and_shown():
    assert repr(open_source("https://host/a.csv?key=secret")) == "RemoteSource('https://host/a.csv')"
    assert open_source("https://host/a.parquet").assumptions(DOMAIN) == (INFERRED,)
    assert open_source("https://host/a.csv").assumptions(DOMAIN) == ()
    assert open_source("s3://bucket/a.csv", quoted_newlines=True).assumptions(DOMAIN) == (QUOTES_CLOSED,)


def test_the_extension_is_named_and_not_downloaded(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(mdp.SourceError, match=r"needs DuckDB's extension httpfs.*INSTALL httpfs"):
        counts("https://host/people.parquet?key=secret", DOMAIN)
