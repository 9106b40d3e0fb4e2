"""A stranger's form of predicate set and of entry, each in one place, reach every part of the language."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import final

import numpy as np
import pytest

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import EntryError, SpecificationError
from matrixdp.forms import FormError, key, record, whole
from matrixdp.language import Entry, KeyedPredicates, entry_form, keyed_predicates, kway, product, read_entry
from matrixdp.language.entries import ENTRIES
from matrixdp.language.predicates import KEYED_PREDICATES
from matrixdp.queries import Group, Identity, Predicates, ProductGroup, Sets, Workload
from matrixdp.specification import json_schema, load_specification
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter
from matrixdp.storage.formats import read_workload, write_workload

TEXT = "domain: {sex: [a, b], age: 6}\nworkload:\n"
DOMAIN = Domain({"sex": ["female", "male"], "age": 6})


@pytest.fixture(autouse=True)
def strangers() -> Iterator[None]:
    """Add the two forms, and take them away again."""

    @final
    @keyed_predicates
    @record
    class EveryForm(KeyedPredicates):
        """Every k-th value, from each start."""

        sample = "{every: k}"
        every: int = key(whole("an integer of at least 2", least=2))

        def on(self, attribute: Attribute) -> Predicates:
            if self.every > attribute.size:
                raise EntryError.at(("every",), str(self.every), f"at most {attribute.size}")
            return Sets(tuple(tuple(range(s, attribute.size, self.every)) for s in range(self.every)))

    @final
    @entry_form
    @record
    class FirstEntry(Entry):
        """The marginals of the first attributes, one after the other."""

        first: int = key(whole("how many attributes, an integer of at least 1", least=1))

        def groups(self, domain: Domain) -> list[Group]:
            if self.first > len(domain):
                raise EntryError.at(("first",), str(self.first), f"at most {len(domain)}")
            chosen = domain.attributes[: self.first]
            return [
                ProductGroup(
                    self.group_name([a], [], single=False), (a.name,), (Identity(),), (a.size,), self.weight
                )
                for a in chosen
            ]

    yield
    del KEYED_PREDICATES["every"], ENTRIES["first"]


def test_a_form_of_predicate_set_reaches_everything(tmp_path: Path) -> None:
    [group] = product(age={"every": 2}).expand(DOMAIN)
    np.testing.assert_array_equal(group.rows(), [[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]])
    assert group.name == "age: every"
    text = TEXT + "  - kway: 1\n    predicates: {numeric: [total, {every: 3}]}\n"
    specification = load_specification(text)
    assert [group.queries for group in specification.workload] == [2, 4]
    again = load_specification(specification.document)
    assert again.document == specification.document
    assert {"$ref": "#/$defs/EveryForm"} in json_schema()["$defs"]["PredicateSet"]["anyOf"]
    for wrong, message in (
        ("every: 1", r"predicates\.numeric\[1\]\.every \(line 4\): found 1; expected an integer"),
        ("every: 9", r"predicates\.numeric\[1\]\.every \(line 4\): found 9; expected at most 6"),
        ("evry: 3", r"found a mapping with the keys evry; expected .*\{every: k\}.*did you mean 'every'"),
    ):
        with pytest.raises(SpecificationError, match=message):
            load_specification(text.replace("every: 3", wrong))
    with ArchiveWriter(tmp_path / "w.mdp") as archive:
        header = write_workload(specification.workload, archive)
        archive.close({"format": "workload", "format_version": 1, "workload": header})
    with ArchiveReader(tmp_path / "w.mdp", "workload", 1) as archive:
        kept = read_workload(json.loads(json.dumps(header)), archive)
    assert [group.key() for group in kept] == [group.key() for group in specification.workload]


def test_a_form_of_entry_reaches_everything() -> None:
    workload = Workload(DOMAIN, kway(1, "total"), read_entry({"first": 2, "name": "m", "weight": 3}))
    assert [group.name for group in workload] == ["sex: total", "age: total", "m: sex", "m: age"]
    assert workload.places == (range(2), range(2, 4))
    text = TEXT + "  - first: 2\n"
    assert load_specification(text).document["workload"] == [{"first": 2}]
    schema = json_schema()
    assert {"$ref": "#/$defs/FirstEntry"} in schema["properties"]["workload"]["items"]["anyOf"]
    assert schema["$defs"]["FirstEntry"]["required"] == ["first"]
    for wrong, message in (
        ("first: 0", r"workload\[0\]\.first \(line 3\): found 0; expected how many attributes"),
        ("first: 3", r"workload\[0\]\.first \(line 3\): found 3; expected at most 2"),
        ("frist: 3", "expected an entry with one of the keys .*, first; did you mean 'first'"),
        ("{first: 2, kway: 1}", "found the key 'kway' beside 'first'; expected one kind an entry"),
    ):
        with pytest.raises(SpecificationError, match=message):
            load_specification(text.replace("first: 2", wrong))


def test_forms_have_keys_of_their_own() -> None:
    before = dict(KEYED_PREDICATES)

    @record
    class Again(KeyedPredicates):
        """Another form of that key."""

        sliding: int = key(whole("an integer"))

    with pytest.raises(FormError, match="the language has a form 'sliding' already: SlidingForm"):
        keyed_predicates(Again)
    assert before == KEYED_PREDICATES


def test_forms_have_class_names_of_their_own() -> None:
    @record
    class EdgesForm(KeyedPredicates):
        """A class of the name of a form of attributes."""

        every: int = key(whole("an integer"))

    json_schema()
    with pytest.raises(FormError) as refused:
        EdgesForm.schema({})
    assert refused.value.code == "duplicate"
