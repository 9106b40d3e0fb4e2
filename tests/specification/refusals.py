"""What specifications, YAML texts and files of strategies reject."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import matrixdp as mdp
from matrixdp.queries.workload import group_targets
from matrixdp.specification import load_given, load_specification, parse_yaml
from tests.refusals import Refusal

DOMAIN = """domain:
  sex: [female, male]
  age: {min: 0, max: 9}
  income: {edges: [0, 10, 20]}
"""
WORKLOAD = "workload:\n  - marginals: [1]\n"
PRIVACY = "privacy: {rho: 0.5}\n"
SMALL = "domain: {a: 3}\nworkload: [{marginals: 1}]\n"


def _entry(text: str) -> str:
    return DOMAIN + "workload:\n  - " + text.replace("\n", "\n    ") + "\n" + PRIVACY


def _parsing(text: str) -> Callable[[], object]:
    return lambda: parse_yaml(text)


def _targets(targets: object) -> Callable[[], object]:
    workload = mdp.Workload(mdp.Domain({"a": 3, "b": 2}), mdp.marginals(1))
    return lambda: group_targets(workload, targets)  # type: ignore[arg-type]  # what a user might write


_SPECIFICATIONS = [
    ("unknown attribute", "unknown-name", "workload[0].product.sexx", 6, _entry("product: {sexx: identity}")),
    ("a category twice", "duplicate", "domain.sex[1]", 2,
     DOMAIN.replace("female, male", "female, female") + WORKLOAD + PRIVACY),
    ("a NaN weight", "out-of-range", "workload[0].weight", 7, _entry("product: {age: prefix}\nweight: .nan")),
    ("a name of two tables", "duplicate", "workload[1].name", 9,
     _entry("product: {age: prefix}\nname: one").replace(PRIVACY, "")
     + "  - product: {sex: identity}\n    name: one\n" + PRIVACY),
    ("a name of another table", "duplicate", "workload[1].name", 7,
     DOMAIN + "workload:\n  - marginals: [1]\n  - {product: {age: prefix}, name: sex}\n" + PRIVACY),
    ("a misspelled kind", "unknown-key", "workload[0]", 6, _entry("margnals: [1]")),
    ("a key of the file in the budget", "unknown-key", "privacy.unit", 7,
     DOMAIN + WORKLOAD + "privacy: {rho: 1, unit: {records: 2}}"),
    ("a value for others that is not listed", "unknown-name", "out_of_domain.sex.other", 8,
     DOMAIN + WORKLOAD + PRIVACY + "out_of_domain: {sex: {other: other}}\n"),
    ("an attribute in by and where", "conflict", "workload[0].by", 7,
     _entry("mean: age\nby: [sex]\nwhere: {sex: male}")),
    ("a matrix that is not there", "file-missing", "workload[0].dense", 6,
     _entry("dense: nothere.npy\nattributes: [age]")),
    ("a name that cannot be written", "wrong-type", "workload[0].name", 7,
     _entry('product: {age: prefix}\nname: "a\\ud800"')),
    ("an attribute that cannot be written", "wrong-type", "domain", 2,
     DOMAIN.replace("sex:", '"\\udfff":') + WORKLOAD + PRIVACY),
    ("an empty workload", "empty", "workload", 5, DOMAIN + "workload: []\n" + PRIVACY),
    ("a key twice", "duplicate", "domain.age", None, DOMAIN + "  age: 5\n" + WORKLOAD + PRIVACY),
    ("an unknown key", "unknown-key", "privcy", 8, DOMAIN + WORKLOAD + PRIVACY + "privcy: 3\n"),
    ("delta above 1", "out-of-range", "privacy.delta", 7,
     DOMAIN + WORKLOAD + "privacy: {epsilon: 1, delta: 1.5}\n"),
    ("no budget", "missing-key", "privacy", 1, DOMAIN + WORKLOAD),
    ("a ledger that is left blank", "wrong-type", "privacy.ledger", 3,
     SMALL + "privacy: {rho: 0.5, ledger: }"),
    ("not YAML", "bad-yaml", "line 2, column 1", None, "domain: [1,\n"),
    ("a budget beside what is minimized", "conflict", "privacy.mu", 4,
     SMALL + "targets: {a: 5}\nprivacy: {minimize: rho, mu: 1}"),
    ("nothing to minimize for", "missing-key", "privacy.minimize", 3, SMALL + "privacy: {minimize: rho}"),
    ("targets alone", "missing-key", "privacy", 1, SMALL + "targets: {a: 5}"),
    ("what is still to be filled in", "missing-key", "domain.age.max", 2,
     "domain:\n  age: {min: 0, max: TODO}\n  state: [TODO, done]\nworkload: [marginals: 1]\n"),
]  # fmt: skip
#: Shares of entries, and what stands beside: the code, the place, and its line.
_SHARES = [
    ("above 1 together", "out-of-range", "workload[2].budget_share", 5, (None, 0.5, 0.6), PRIVACY),
    ("nothing left", "out-of-range", "workload[1].budget_share", 4, (0.5, 0.5, None), PRIVACY),
    ("less than 1, and nobody else", "out-of-range", "workload[2].budget_share", 5, (0.5, 0.2, 0.2), PRIVACY),
    ("targets beside", "conflict", "workload[1].budget_share", 4, (None, 0.5, None),
     "targets: {sex: 5}\n" + PRIVACY),
    ("rounds beside", "conflict", "workload[0].budget_share", 3, (0.2, 0.5, None), "rounds: 2\n" + PRIVACY),
]  # fmt: skip
_TEXTS = [
    ("an open list", "bad-yaml", "line 1, column 6", "a: [1"),
    ("a control character", "bad-yaml", "the file", "a: \x01"),
    ("itself", "bad-yaml", "a[0]", "a: &x [*x]"),
    ("a key that is a list", "bad-yaml", "", "? [1, 2]\n: 3"),
    ("an empty key", "bad-yaml", "", "{? : 4}"),
    ("a number as a key twice", "duplicate", "3", "3: 4\n'3': 5"),
    ("a key of a mapping twice", "duplicate", "a", "a: 1\na: 2"),
    ("a tag on text", "bad-yaml", "a", "a: !!int x"),
    ("a tag of one's own", "bad-yaml", "a", "a: !thing [1]"),
    ("a long integer", "bad-yaml", "a", "a: " + "1" * 401),
]  # fmt: skip
_TARGETS = [
    ("a list", "wrong-type", "targets", [1]),
    ("none", "empty", "targets", {}),
    ("a text", "wrong-type", "targets.a", {"a": "5"}),
    ("a truth value", "wrong-type", "targets.a", {"a": True}),
    ("zero", "out-of-range", "targets.a", {"a": 0}),
    ("not a number", "out-of-range", "targets.a", {"a": math.nan}),
    ("another group", "unknown-name", "targets.c", {"c": 1}),
    ("of how many records", "missing-key", "targets.a.for", {"a": {"cv": 0.1}}),
    ("of no records", "missing-key", "targets.a.for.records_above", {"a": {"cv": 0.1, "for": {}}}),
    (
        "of 0 records",
        "out-of-range",
        "targets.a.for.records_above",
        {"a": {"cv": 0.1, "for": {"records_above": 0}}},
    ),
    ("no error", "missing-key", "targets.a", {"a": {"for": {"records_above": 9}}}),
    ("two errors", "conflict", "targets.a", {"a": {"cv": 1, "stddev": 1, "for": {"records_above": 9}}}),
    (
        "a standard error of means above",
        "conflict",
        "targets.a.for.mean_above",
        {"a": {"stddev": 1, "for": {"records_above": 9, "mean_above": 1}}},
    ),
    ("a misspelled key", "unknown-key", "targets.a.std", {"a": {"std": 1, "for": {"records_above": 9}}}),
]


def _sharing(shares: tuple[float | None, ...], beside: str) -> str:
    """Return a specification of three entries, each on a line of its own, with shares."""
    said = ["" if share is None else f", budget_share: {share}" for share in shares]
    entries = "".join(
        f"  - {{marginals: [[{name}]]{own}}}\n"
        for name, own in zip(("sex", "age", "code"), said, strict=True)
    )
    return "domain: {sex: 2, age: 3, code: 4}\nworkload:\n" + entries + beside


#: Entries of the workload whose error has no code of its own, by its place.
_FORMS = {
    "product.age[0]": "product: {age: [[identity, total]]}",
    "product.age.permuted.sliding": "product: {age: {permuted: {sliding: 99}, seed: 1}}",
    "product.sex.sets": "product: {sex: {sets: {' ': [male]}}}",
}
#: Units of privacy, by the code of the error and its place.
_UNITS: dict[tuple[str, str], list[str]] = {
    ("wrong-type", "unit"): ["", "3"],
    ("wrong-type", "unit.id"): ["{records: 3, id: }", "{id: '', max_records: 3}", "{id: 7, max_records: 3}"],
    ("missing-key", "unit"): ["{}"],
    ("conflict", "unit"): ["{id: person}", "{max_records: 3}", "{id: person, records: 3}",
        "{id: person, records: 3, max_records: 3}"],
    ("out-of-range", "unit.records"): ["{records: 0}", "{records: 1.5}"],
    ("wrong-type", "unit.records"): ["{records: true}"],
    ("conflict", "unit.id"): ["{id: a, max_records: 3}", "{id: a, per: b, max_values: 2}"],
    ("missing-key", "unit.max_values"): ["{id: person, max_records: 3, max_values: 2}",
        "{id: person, per: a}"],
    ("missing-key", "unit.max_records_each"): ["{records: 3, max_records_each: 2}",
        "{id: person, max_records: 3, per: a, max_values: 2}"],
    ("missing-key", "unit.constant"): ["{records: 3, per: a, constant: b}",
        "{id: person, max_records: 3, constant: b}"],
    ("conflict", "unit.constant"): ["{id: person, per: a, max_values: 2, constant: a}"],
    ("out-of-range", "unit.max_values"): ["{id: person, per: a, max_values: 0}"],
    ("unknown-name", "unit.per"): ["{id: person, per: c, max_values: 2}", "{records: 2, per: [a, c]}"],
    ("unknown-name", "unit.constant"): ["{id: person, per: a, max_values: 2, constant: c}"],
    ("out-of-range", "unit.max_records"): ["{id: person, max_records: 9007199254740992}",
        "{id: person, max_records: 4, per: a}"],
    ("duplicate", "unit.per[1]"): ["{id: person, per: [a, a], max_values: 2}"],
    ("wrong-type", "unit.per"): ["{id: person, per: 3, max_values: 2}"],
    ("empty", "unit.per"): ["{id: person, per: [], max_values: 2}"],
    ("unknown-key", "unit.person"): ["{person: id}"],
}  # fmt: skip
#: Codes and places of what readers are told of a release, with what is written.
_PUBLICATIONS = [
    ("wrong-type", "publication", "3"),
    ("unknown-key", "publication.titel", "{titel: Stops}"),
    ("wrong-type", "publication.title", "{title: [Stops]}"),
    ("wrong-type", "publication.title.fr", "{title: {en: Stops, fr: 3}}"),
    ("unknown-name", "publication.source.englisch", "{source: {englisch: x}}"),
    ("wrong-type", "publication.method", "{method: 'javascript:alert(1)'}"),
    ("wrong-type", "publication.language", "{language: English}"),
]
_BUDGETS = {"out-of-range": ["0", "-1", ".nan", ".inf"], "wrong-type": ["true", "'1'"]}
PUBLIC = """
domain: {age: {min: 0, max: 99}, married: [no, yes]}
workload: [{marginals: [0, 1, 2]}]
invariants:
  - {marginals: 0, counts: 50}
  - {product: {married: identity}, counts: [30, 20]}
structural_zeros:
  - {age: {range: [0, 14]}, married: yes}
"""
#: Codes, places, lines, and what is changed in the public knowledge.
_PUBLIC = [
    ("wrong-size", "invariants[1].counts", 6, "[30, 20]", "[30]"),
    ("unknown-name", "structural_zeros[0].maried", 8, "married: yes}", "maried: yes}"),
    ("out-of-range", "structural_zeros[0].age.range", 8, "[0, 14]", "[0, 140]"),
    ("missing-key", "invariants[0].counts", 5, "counts: 50", "count: 50"),
]


def _latin(folder: Path) -> None:
    (folder / "latin.yaml").write_bytes("größe: 1".encode("latin-1"))
    load_specification(folder / "latin.yaml")


def _given(rows: Any) -> Callable[[Path], object]:
    domain = mdp.Domain({"sex": ["female", "male"], "age": range(4), "other": 3})
    workload = mdp.Workload(domain, mdp.product(sex="identity", age="prefix"))

    def attempt(folder: Path) -> object:
        file = folder / ("own.yaml" if isinstance(rows, str) else "own.npy")
        file.write_text(rows) if isinstance(rows, str) else np.save(file, rows)
        return load_given(file, workload)

    return attempt


_GIVEN: list[tuple[str, str, str, object]] = [
    ("a matrix of other columns", "wrong-size", "FOLDER/own.npy", np.ones((2, 7))),
    ("a matrix that is not finite", "specification", "FOLDER/own.npy", np.full((2, 8), np.inf)),
    ("an attribute of a part", "unknown-name", "strategy[1].product.agee",
     "strategy:\n  - marginals: 1\n  - product:\n      agee: prefix\n"),
]  # fmt: skip


SERIES = """domain:
  sex: [female, male]
  month: {from: 2025-01-01, to: 2025-12-31, by: month}
workload:
  - marginals: [[sex, month]]
privacy: {rho: 0.5}
series: month
"""
#: Series that are rejected: the code, the place, its line, what is replaced, and by what.
_SERIES = [
    ("unknown-name", "series.attribute", 7, "series: month", "series: moth"),
    ("wrong-kind", "series.attribute", 7, "series: month", "series: {attribute: sex}"),
    ("wrong-kind", "series.attribute", 7, "by: month", "by: weekday"),
    ("wrong-size", "series.attribute", 7, "to: 2025-12-31", "to: 2025-01-31"),
    ("wrong-type", "series.attribute", 7, "series: month", "series: ''"),
    ("wrong-type", "series", 7, "series: month", "series: [month]"),
    ("wrong-type", "series", 7, "series: month", "series:"),
    ("missing-key", "series.attribute", 7, "series: month", "series: {periods: fixed}"),
    ("unknown-key", "series.attribut", 7, "series: month", "series: {attribut: month}"),
    ("unknown-name", "series.periods", 7, "series: month", "series: {attribute: month, periods: free}"),
    ("not-supported", "series.periods", 7, "series: month",
     "series: {attribute: month, periods: may_change}"),
    ("not-supported", "domain.month.clip", 3, "by: month", "by: month, clip: true"),
    ("not-supported", "domain.month.null", 3, "by: month", "by: month, null: unknown"),
    ("not-supported", "out_of_domain", 8, "series: month\n", "series: month\nout_of_domain: {count: true}\n"),
    ("not-supported", "out_of_domain", 8, "series: month\n",
     "series: month\nout_of_domain: {sex: {other: male}}\n"),
    ("not-supported", "privacy.neighbours", 6, "{rho: 0.5}", "{rho: 0.5, neighbours: replace}"),
    ("not-supported", "unit.per", 8, "series: month\n",
     "series: month\nunit: {id: person, per: sex, max_values: 2}\n"),
    ("not-supported", "unit.per", 8, "series: month\n",
     "series: month\nunit: {id: person, per: [month, sex], max_values: 2}\n"),
    ("not-supported", "targets", 8, "series: month\n", "series: month\ntargets: {all: 10}\n"),
    ("not-supported", "invariants", 8, "series: month\n",
     "series: month\ninvariants: [{marginals: 0, counts: 50}]\n"),
    ("not-supported", "rounds", 8, "series: month\n", "series: month\nrounds: 2\n"),
    ("wrong-type", "rounds", 7, "series: month", "rounds: true"),
    ("out-of-range", "rounds", 7, "series: month", "rounds: 3"),
    ("conflict", "rounds", 8, "series: month", "targets: {all: 10}\nrounds: 2"),
    ("conflict", "rounds", 7, "{rho: 0.5}\nseries: month", "{epsilon: 1}\nrounds: 2"),
]  # fmt: skip


def _loading(name: str, code: str, place: str, text: str, line: int | None = None) -> Refusal:
    def attempt() -> object:
        return load_specification(text, require_privacy=True)

    return Refusal(name, code, place, attempt, mdp.SpecificationError, line)


REFUSALS = [
    *(_loading(name, code, place, text, line) for name, code, place, line, text in _SPECIFICATIONS),
    *(_loading(f"shares: {name}", code, place, _sharing(own, more), line)
      for name, code, place, line, own, more in _SHARES),
    *(Refusal(f"YAML: {name}", code, place, _parsing(text)) for name, code, place, text in _TEXTS),
    *(Refusal(f"targets: {name}", code, place, _targets(targets)) for name, code, place, targets in _TARGETS),
    *(Refusal(name, code, place, _given(rows)) for name, code, place, rows in _GIVEN),
    *(_loading(f"public knowledge: {new}", code, place, PUBLIC.replace(old, new) + PRIVACY, line)
      for code, place, line, old, new in _PUBLIC),
    *(_loading(f"entry: {entry}", "specification", f"workload[0].{place}", _entry(entry))
      for place, entry in _FORMS.items()),
    *(_loading(f"series: {new.strip()}", code, place, SERIES.replace(old, new), line)
      for code, place, line, old, new in _SERIES),
    *(_loading(f"unit: {unit}", code, place, f"{SMALL}{PRIVACY}unit: {unit}\n", 4)
      for (code, place), units in _UNITS.items() for unit in units),
    *(_loading(f"publication: {told}", code, place, f"{SMALL}{PRIVACY}publication: {told}\n", 4)
      for code, place, told in _PUBLICATIONS),
    *(_loading(f"{name} {value}", code, f"privacy.{name}", f"{SMALL}privacy: {{{name}: {value}{more}}}")
      for name, more in (("rho", ""), ("mu", ""), ("epsilon", ", delta: 1e-6"))
      for code, values in _BUDGETS.items() for value in values),
    Refusal("a file of another encoding", "bad-yaml", "FOLDER/latin.yaml", _latin),
    Refusal("no file", "file-missing", "FOLDER/none.yaml", lambda at: load_specification(at / "none.yaml")),
    Refusal("a folder", "file-missing", "FOLDER", load_specification),
]  # fmt: skip
