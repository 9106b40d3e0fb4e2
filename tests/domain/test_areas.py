"""Areas in larger areas: values and levels from one table, ragged or not, and what is asked at each level."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.domain import Attribute, Domain, attribute_from_spec
from matrixdp.model.records import RecordColumns
from matrixdp.queries import ProductGroup
from matrixdp.specification import load_specification

#: Sizes of four levels: tracts 1 to 6, of which 2 is in no county and 6 is a county of its own.
COLUMNS = {
    "tract": ["1", "2", "3", "4", "5", "6"],
    "county": ["a", "", "a", "b", "c", "6"],
    "region": ["east", "east", "east", "west", "east", "west"],
    "state": ["X", "X", "X", "Y", "X", "Y"],
}
PARENTS = [
    *((name, "", "nation") for name in ["N"]),
    *((name, "N", "state") for name in "XY"),
    *(("a", "X", "county"), ("b", "Y", "county"), ("c", "X", "county")),
    *((name, above, "tract") for name, above in zip("12345", "aXabc", strict=True)),
    ("6", "Y", "county"),
]
CODES = {"X": (0, 1, 2, 4), "Y": (3, 5)}


def areas(table: Any = COLUMNS, **more: Any) -> Attribute:
    return attribute_from_spec("geo", {"levels_from": table, **more})


def told(attribute: Attribute) -> dict[str, tuple[dict[str, tuple[int, ...]], tuple[int, ...]]]:
    return {level.name: (dict(level.groups), level.skipped) for level in attribute.codebook.levels}


def test_a_table_has_the_values_and_the_levels_from_coarse_to_fine() -> None:
    found = areas()
    assert found.size == 6
    county = {"a": (0, 2), "b": (3,), "c": (4,), "6": (5,)}
    east = {"east": CODES["X"], "west": CODES["Y"]}
    assert told(found) == {"region": (east, ()), "state": (CODES, ()), "county": (county, (1,))}
    assert list(told(found)) == ["region", "state", "county"]
    again = attribute_from_spec("geo", json.loads(json.dumps(found.to_spec())))
    assert again == found
    assert told(again) == told(found)
    # the area that is a county of its own keeps its name, one that is called like another value does not
    assert found.level("county").labels(found) == ("a", "b", "c", "6")
    clash = areas({"tract": ["1", "2"], "county": ["2", "2"]})
    assert clash.level("county").labels(clash) == ("2 (county)",)


@pytest.mark.parametrize("order", [("state", "county"), ("county", "state")])
def test_levels_may_stand_in_any_order(order: tuple[str, ...]) -> None:
    # more districts than counties, all of them within one: what is finer is not told by numbers
    table = {
        "tract": list("12345"),
        "state": list("XXXXX"),
        "county": list("aaaab"),
        "district": [*list("pqrs"), ""],
    }
    found = areas({name: table[name] for name in ("tract", "district", *order)})
    assert list(told(found)) == ["state", "county", "district"]
    # a few boroughs, of one of many counties
    boroughs = {"tract": list("12345"), "borough": ["", "", "", "p", "q"], "county": list("abcdd")}
    assert list(told(areas(boroughs))) == ["county", "borough"]
    # a zone that is all of one state
    zones = {"tract": list("123"), "zone": ["z", "z", ""], "state": list("XXY")}
    assert list(told(areas(zones))) == ["state", "zone"]


def test_areas_may_name_their_parents() -> None:
    area, parent, level = map(list, zip(*PARENTS, strict=True))
    found = areas({"level": level, "area": area, "parent": parent})
    plain = areas()
    assert [found.value(code) for code in range(found.size)] == COLUMNS["tract"]
    assert told(found) == {
        "nation": ({"N": (0, 1, 2, 3, 4, 5)}, ()),
        **{n: told(plain)[n] for n in ("state", "county")},
    }


def test_missing_values_and_texts_go_beside() -> None:
    found = areas(null="nowhere", labels={"1": "One"}, type="text", column="geoid", title="Area")
    assert (found.size, found.null_code, found.column, found.label(0)) == (7, 6, "geoid", "One")
    assert told(found)["state"] == (CODES | {"nowhere": (6,)}, ())
    assert told(found)["county"][1] == (1,)
    both = areas({"tract": [1, 2], "state": ["X", "X"]}, levels={"own": {"p": [1], "q": [2]}})
    assert list(told(both)) == ["state", "own"]


def test_levels_of_files_and_mappings_may_be_skipped_too(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("v,l\nx,p\ny,\n")
    written = [{"l": {"p": ["x"], "": ["y"]}}, tmp_path / "own.csv"]
    for levels in written:
        found = attribute_from_spec("a", {"categories": ["x", "y"], "levels": levels})
        assert told(found) == {"l": ({"p": (0,)}, (1,))}


def test_a_specification_names_a_file_of_areas_and_asks_at_its_levels(tmp_path: Path) -> None:
    rows = zip(
        *([name, *column] for name, column in reversed(COLUMNS.items()) if name != "tract"), strict=True
    )
    lines = [",".join([own, *row]) for own, row in zip(["tract", *COLUMNS["tract"]], rows, strict=True)]
    (tmp_path / "areas.csv").write_text("\n".join(lines))
    (tmp_path / "s.yaml").write_text(
        "domain:\n  geo: {levels_from: areas.csv}\n  sex: [f, m]\n  age: 3\n"
        "workload:\n"
        "  - {marginals: [0, 1, 2], at: {geo: [total, state]}}\n"
        "  - {marginals: [0, 1], at: {geo: [county, geo]}, weight: 2}\n"
        "  - {product: {age: prefix}, at: {geo: county}}\n"
    )
    specification = load_specification(tmp_path / "s.yaml")
    workload = specification.workload
    [geo, *_] = specification.domain
    assert dict(geo.codebook.sha256).keys() == {"levels_from"}
    assert told(geo) == told(areas())

    def matrix(level: str) -> Any:
        groups = list(told(geo)[level][0].values())
        return np.array([[float(code in codes) for code in range(6)] for codes in groups])

    places = {"": np.ones((1, 6)), "state": matrix("state"), "county": matrix("county"), "geo": np.eye(6)}
    sizes = {"sex": 2, "age": 3}
    asked = [(place, own, 1.0) for place in ("", "state") for k in range(3) for own in combinations(sizes, k)]
    asked += [
        (place, own, 2.0) for place in ("county", "geo") for k in range(2) for own in combinations(sizes, k)
    ]
    assert len(workload.groups) == len(asked) + 1
    for group, (place, own, weight) in zip(workload.groups, asked, strict=False):
        assert group.name == (", ".join([*([place] if place else []), *own]) or "total")
        assert group.weight == weight
        expected = np.kron(places[place], np.eye(int(np.prod([sizes[name] for name in own]))))
        rows_ = group.rows()
        np.testing.assert_array_equal(rows_, expected if place else expected[:, : rows_.shape[1]])
    np.testing.assert_array_equal(workload.groups[-1].rows(), np.kron(places["county"], np.tri(3)))
    assert workload.groups[-1].name == "geo, age: level county x prefix"


def test_at_is_about_the_other_attributes_and_about_several_at_once() -> None:
    domain = Domain({"home": {"levels_from": COLUMNS}, "work": {"levels_from": COLUMNS}, "sex": ["f", "m"]})
    both = mdp.marginals(1, at={"work": ["county", "work"], "home": "state"}).expand(domain)
    assert [group.name for group in both] == ["home state, work county, sex", "home state, work, sex"]
    assert [group.counts for group in both if isinstance(group, ProductGroup)] == [(2, 4, 2), (2, 6, 2)]
    products = mdp.kway([0, 1], "total", at={"home": "state"}, max_cells=4).expand(domain)
    assert [group.name for group in products] == [
        "home state: level state",
        "home state, sex: level state x total",
    ]
    named = mdp.product(sex="identity", at={"home": ["total", "state"]}, name="X").expand(domain)
    assert [group.name for group in named] == ["X: sex", "X: home state, sex"]
    entry = mdp.product(sex="identity", at={"home": "state"})
    assert entry.to_spec() == {"product": {"sex": "identity"}, "at": {"home": ["state"]}}
    same = mdp.marginals([["sex"]], at={"home": "state"}, weights=[1, 2, 3, 4]).expand(domain)[0]
    assert same.query_weights is not None


def test_counts_at_a_level_leave_out_those_that_skip_it() -> None:
    domain = Domain({"geo": {"levels_from": COLUMNS}, "sex": ["f", "m"]})
    asked = mdp.marginals([0, 1], at={"geo": ["state", "county", "geo"]})
    table = {"geo": ["1", "2", "2", "3", "4", "6", "7"] * 10, "sex": ["f", "m"] * 35}
    release = mdp.select(mdp.Workload(domain, asked)).measure(table, mdp.Budget(rho=50)).reconstruct()
    county = release.table("county").to_pydict()
    assert county["county"] == ["a", "b", "c", "6"]
    assert np.round(county["estimate"], -1).tolist() == [20, 10, 0, 10]
    # those that skip it are a group without a name in SQL, and nulls in records
    rows = release.sql("SELECT county, COUNT(*) AS n FROM t GROUP BY county").to_pydict()
    found = dict(zip(rows["county"], np.round(rows["n"], -1).tolist(), strict=True))
    assert found == {"a": 20, None: 20, "b": 10, "c": 0, "6": 10}
    batch = RecordColumns(domain, levels=True).batch({"geo": np.arange(6), "sex": np.zeros(6, dtype=int)})
    assert batch["geo county"].to_pylist() == ["a", None, "a", "b", "c", "6"]
