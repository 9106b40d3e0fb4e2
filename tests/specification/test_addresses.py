"""The address of a table in a specification: kept as it is written, and without a password."""

from pathlib import Path

import pytest

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
        "postgresql://host/people?password=hunter2",
        "postgresql://host/people?sslpassword=hunter2",
    ],
)
def test_a_password_in_a_specification_is_refused_and_not_repeated(written):
    with pytest.raises(SpecificationError, match="PGPASSWORD") as caught:
        loaded(written)
    assert "hun" not in str(caught.value)
    assert "hun" not in shown(written)
