# mypy: disable-error-code="arg-type,dict-item"
"""What the query language refuses: wrong entries, what does not fit the domain, and files of arrays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matrixdp as mdp
from matrixdp.language import KwayEntry, read_entry
from matrixdp.specification import parse_yaml
from tests.language.test_builders import DOMAIN
from tests.refusals import Refusal, numbered

#: Entries, by the code of the error and its place.
_ENTRIES: dict[tuple[str, str], list[str]] = {
    ("wrong-size", "any"): ["any: {age: prefix}"],
    ("wrong-type", "any"): ["any: []", "any: [age, sex]"],
    ("wrong-kind", "any"): ["any: {sex: identity, code: {matrix: [[0.5, 0, 1]]}}"],
    ("unknown-name", "any.agee"): ["any: {agee: prefix, sex: identity}"],
    ("conflict", "attributes"): ["marginals: [[age]], attributes: [age]"],
    ("wrong-type", "attributes"): ["marginals: 1, attributes: age", "dense: [[1]], attributes: null"],
    ("empty", "attributes"): ["dense: [[1]], attributes: []"],
    ("wrong-size", "attributes"): ["pairwise: abs, attributes: [age]"],
    ("unknown-name", "attributes[0]"): ["marginals: 1, attributes: [aeg]"],
    ("wrong-kind", "attributes[0]"): ["pairwise: abs, attributes: [sex, age]"],
    ("duplicate", "attributes[1]"): ["marginals: 1, attributes: [age, age]"],
    ("wrong-type", "by"): ["any: {sex: identity, age: prefix}, by: [code]"],
    ("unknown-key", "by"): ["product: {age: prefix}, by: {sex: identity}"],
    ("conflict", "by.age"): ["any: {sex: identity, age: prefix}, by: {age: prefix}"],
    ("unknown-name", "by.codee"): ["any: {sex: identity, age: prefix}, by: {codee: prefix}"],
    ("conflict", "by.sex"): ["dense: [[1, 0]], attributes: [sex], by: {sex: identity}"],
    ("wrong-type", "cells"): ["cells: {sex: female}"],
    ("empty", "cells"): ["cells: []"],
    ("empty", "cells[0]"): ["cells: [[]]"],
    ("wrong-type", "cells[0]"): ["cells: [female]"],
    ("empty", "cells[0][0]"): ["cells: [{}]"],
    ("unknown-name", "cells[0][0].aeg"): ["cells: [{aeg: 9}]"],
    ("unknown-name", "cells[0][0].age"): ["cells: [{age: 9}]", "cells: [{age: 44}]"],
    ("out-of-range", "cells[0][0].age.range"): ["cells: [{age: {range: [0, 9]}}]"],
    ("wrong-size", "cells[0][0].age.range"): ["cells: [{age: {range: [1]}}]"],
    ("unknown-key", "cells[0][0].age.ranges"): ["cells: [{age: {ranges: [0, 1]}}]"],
    ("empty", "cells[0][0].sex"): ["cells: [{sex: []}]"],
    ("wrong-type", "cells[0][0].sex"): ["cells: [{sex: null}]"],
    ("unknown-name", "cells[0][0].sex"): ["cells: [{sex: femal}]"],
    ("wrong-type", "cells[0][0].sex[0]"): ["cells: [{sex: [[male]]}]"],
    ("wrong-size", "dense"): ["dense: [1], attributes: [age]", "dense: [[1, 0, 0]], attributes: [age]"],
    ("file-missing", "dense"): ["dense: none.npy, attributes: [age]"],
    ("empty", "kway"): ["kway: []"],
    ("wrong-type", "kway"): ["kway: '2'", "kway: false"],
    ("out-of-range", "kway"): ["kway: 7"],
    ("out-of-range", "kway[1]"): ["kway: [1, -2]"],
    ("out-of-range", "marginals"): ["marginals: -1", "marginals: 6"],
    ("wrong-type", "marginals"): ["marginals: true", "marginals: 1.0", "marginals: age"],
    ("empty", "marginals"): ["marginals: []"],
    ("wrong-type", "marginals[0]"): ["marginals: [age]"],
    ("unknown-name", "marginals[0][0]"): ["marginals: [[aeg]]"],
    ("wrong-type", "marginals[0][1]"): ["marginals: [[age, 3]]"],
    ("duplicate", "marginals[0][1]"): ["marginals: [[age, age]]"],
    ("wrong-type", "marginals[1]"): ["marginals: [[age], true]", "marginals: [1, age]"],
    ("out-of-range", "marginals[1]"): ["marginals: [1, 3], attributes: [age, sex]"],
    ("out-of-range", "max_cells"): ["marginals: 1, max_cells: 0", "marginals: 1, max_cells: 2.5",
        "marginals: 2, max_cells: 5", "marginals: [[age]], max_cells: 4"],
    ("wrong-type", "name"): ["marginals: 1, name: ' '", "marginals: 1, name: 3"],
    ("unknown-name", "pairwise"): ["pairwise: afine"],
    ("wrong-type", "pairwise"): ["pairwise: 2"],
    ("unknown-name", "predicates"): ["kway: 2, predicates: prefx"],
    ("wrong-type", "predicates"): ["kway: 2, predicates: ''", "kway: 2, predicates: {}"],
    ("unknown-key", "predicates.numerc"): ["kway: 2, predicates: {numerc: prefix}"],
    ("unknown-name", "predicates.numeric"): ["kway: 2, predicates: {numeric: x}"],
    ("workload", "predicates.numeric.sliding"): [
        "kway: 1, predicates: {numeric: {sliding: 9}}, attributes: [age]"],
    ("out-of-range", "predicates.ranges[0]"): ["kway: 1, predicates: {ranges: [[0, 9]]}, attributes: [age]"],
    ("unknown-key", "predicates.text"): ["kway: 2, predicates: {numeric: prefix, text: total}"],
    ("wrong-type", "product"): ["product: [age]"],
    ("unknown-name", "product.aeg"): ["product: {aeg: prefix}"],
    ("wrong-type", "product.age"): ["product: {age: 3}", "product: {age: null}", "product: {age: {}}",
        "product: {age: {sliding: 2, sets: [[1]]}}",
        "product: {age: []}", "product: {age: {permuted: range}}",
        "product: {age: {permuted: range, seed: 1, order: [0]}}"],
    ("unknown-name", "product.age"): ["product: {age: {rnges: [[1, 2]]}}"],
    ("wrong-kind", "product.age"): ["product: {age: year_to_date}", "product: {age: same_period_last_year}"],
    ("out-of-range", "product.age.change"): ["product: {age: {change: 0}}", "product: {age: {change: 5}}"],
    ("wrong-kind", "product.sex"): ["product: {sex: {change: 1}}"],
    ("unknown-name", "through"): ["through: {attribute: aeg, periods: 1, entry: {marginals: 1}}"],
    ("unknown-name", "through.entry.product.aeg"): [
        "through: {attribute: age, periods: 1, entry: {product: {aeg: prefix}}}"],
    ("out-of-range", "through.periods"): [
        *(f"through: {{attribute: age, periods: {many}, entry: {{marginals: 1}}}}" for many in (0, 6))],
    ("conflict", ""): ["through: {attribute: age, periods: 1, entry: {marginals: 1}}, weight: 2"],
    ("wrong-type", "product.age.matrix"): ["product: {age: {matrix: [[.inf]]}}",
        "product: {age: {matrix: [[.nan]]}}", "product: {age: {matrix: 3}}", "product: {age: {matrix: null}}",
        "product: {age: {matrix: [[1], [1, 2]]}}", "product: {age: {matrix: [[a]]}}"],
    ("wrong-size", "product.age.matrix"): ["product: {age: {matrix: [1, 2]}}",
        "product: {age: {matrix: [[]]}}", "product: {age: {matrix: [[1, 0]]}}"],
    ("file-missing", "product.age.matrix"): ["product: {age: {matrix: nowhere.npy}}"],
    ("wrong-size", "product.age.order"): ["product: {age: {permuted: range, order: [0, 1]}}"],
    ("unknown-name", "product.age.permuted"): ["product: {age: {permuted: rang, seed: 1}}"],
    ("workload", "product.age.permuted.sliding"): ["product: {age: {permuted: {sliding: 99}, seed: 1}}"],
    ("empty", "product.age.ranges"): ["product: {age: {ranges: []}}"],
    ("wrong-type", "product.age.ranges"): ["product: {age: {ranges: 0-3}}"],
    ("out-of-range", "product.age.ranges.young"): ["product: {age: {ranges: {young: [0, 99]}}}"],
    ("wrong-type", "product.age.ranges[0]"): ["product: {age: {ranges: [3]}}"],
    ("wrong-size", "product.age.ranges[0]"): ["product: {age: {ranges: [[1, 2, 3]]}}"],
    ("out-of-range", "product.age.ranges[0]"): ["product: {age: {ranges: [[3, 2]]}}"],
    ("wrong-type", "product.age.ranges[0][0]"): ["product: {age: {ranges: [[null, 3]]}}"],
    ("out-of-range", "product.age.ranges[1]"): ["product: {age: {ranges: [[0, 1], [2, 5]]}}"],
    ("wrong-type", "product.age.seed"): ["product: {age: {permuted: range, seed: x}}"],
    ("empty", "product.age.sets"): ["product: {age: {sets: []}}"],
    ("wrong-type", "product.age.sets[0]"): ["product: {age: {sets: [a]}}"],
    ("out-of-range", "product.age.sliding"): ["product: {age: {sliding: 0}}"],
    ("wrong-type", "product.age.sliding"): ["product: {age: {sliding: true}}"],
    ("workload", "product.age.sliding"): ["product: {age: {sliding: 6}}"],
    ("wrong-type", "product.age[0]"): ["product: {age: [[identity, total]]}"],
    ("unknown-name", "product.age[1]"): ["product: {age: [identity, totl]}"],
    ("unknown-name", "product.age[1].sets[0][0]"): ["product: {age: [total, {sets: [[99]]}]}"],
    ("duplicate", "product.code.sets[0][1]"): ["product: {code: {sets: [[1, 1]]}}"],
    ("out-of-range", "product.income.ranges[0]"): ["product: {income: {ranges: [[0, 9]]}}"],
    ("unknown-name", "product.income.sets[0][0]"): ["product: {income: {sets: [[50]]}}"],
    ("duplicate", "product.sex.order[1]"): ["product: {sex: {permuted: range, order: [male, male]}}"],
    ("out-of-range", "product.sex.ranges[0]"): ["product: {sex: {ranges: [[male, female]]}}"],
    ("empty", "product.sex.sets"): ["product: {sex: {sets: {}}}"],
    ("workload", "product.sex.sets"): ["product: {sex: {sets: {' ': [male]}}}"],
    ("workload", "product.sex.sets.male"): ["product: {sex: {sets: {male: [female]}}}"],
    ("wrong-type", "product.sex.sets.women"): ["product: {sex: {sets: {women: female}}}"],
    ("unknown-name", "product.sex.sets[0][1]"): ["product: {sex: {sets: [[female, mal]]}}"],
    ("out-of-range", "weight"): ["marginals: 1, weight: 0", "marginals: 1, weight: -1",
        "marginals: 1, weight: .nan", "marginals: 1, weight: .inf"],
    ("out-of-range", "budget_share"): ["marginals: 1, budget_share: 0", "marginals: 1, budget_share: 1.01"],
    ("wrong-type", "budget_share"): ["marginals: 1, budget_share: 40%"],
    ("conflict", "weight"): ["marginals: 1, budget_share: 0.4, weight: 2"],
    ("wrong-type", "weight"): ["marginals: 1, weight: '2'", "marginals: 1, weight: true"],
    ("out-of-range", "weights"): ["marginals: 1, weights: [0]", "marginals: 1, weights: [-1]",
        "marginals: 1, weight: 1e300, weights: [1e300]"],
    ("wrong-type", "weights"): ["marginals: 1, weights: [.nan]", "marginals: 1, weights: 2"],
    ("wrong-size", "weights"): ["marginals: 1, weights: []", "marginals: 1, weights: [1]",
        "marginals: [[age]], weights: [1]", "product: {age: prefix}, weights: [1, 2]",
        "pairwise: abs, weights: [1]", "dense: [[1, 0], [0, 1]], attributes: [sex], weights: [1]",
        "cells: [{age: 1}], weights: [1, 2]"],
    ("file-missing", "weights"): ["marginals: 1, weights: none.npy"],
}  # fmt: skip


def _expanded(build: Callable[[], Any], domain: mdp.Domain = DOMAIN) -> Callable[[], object]:
    return lambda: build().expand(domain)


def _read(text: str) -> Callable[[], object]:
    return _expanded(lambda: read_entry(parse_yaml(f"{{{text}}}").value))


def _loaded(content: str | bytes, name: str) -> Callable[[Path], object]:
    def attempt(folder: Path) -> object:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return mdp.product(age={"matrix": folder / name})

    return attempt


_MANY = mdp.Domain({f"a{number}": 2 for number in range(1500)})
_TOWNS = mdp.Domain(
    {"town": {"categories": ["a", "b", "c"], "levels": {"state": {"N": ["a", "b"], "S": ["c"]}}}}
)
_HOME = {"categories": ["a", "b"], "levels": {"state": {"N": ["a"], "S": ["b"]}}}
_HOMES = mdp.Domain({"home": _HOME, "work": _HOME, "sex": 2})
_AT: list[tuple[str, str, Callable[[], mdp.queries.Entry]]] = [
    ("wrong-type", "at", lambda: mdp.marginals(1, at=["home"])),
    ("unknown-name", "at.hom", lambda: mdp.marginals(1, at={"hom": "state"})),
    ("wrong-kind", "at.state", lambda: mdp.marginals(1, at={"state": "state"})),
    ("unknown-name", "at.home", lambda: mdp.marginals(1, at={"home": "county"})),
    ("unknown-name", "at.home[1]", lambda: mdp.marginals(1, at={"home": ["state", "identity"]})),
    ("duplicate", "at.home[1]", lambda: mdp.marginals(1, at={"home": ["state", "state"]})),
    ("empty", "at.home", lambda: mdp.marginals(1, at={"home": []})),
    ("wrong-type", "at.home", lambda: mdp.marginals(1, at={"home": 3})),
    ("out-of-range", "marginals", lambda: mdp.marginals(3, at={"home": "state"})),
    ("conflict", "marginals[0][1]", lambda: mdp.marginals([["sex", "home"]], at={"home": "state"})),
    ("conflict", "attributes[0]", lambda: mdp.kway(1, attributes=["home"], at={"home": "state"})),
    ("conflict", "product.home", lambda: mdp.product(home={"level": "state"}, at={"home": "state"})),
    ("out-of-range", "max_cells", lambda: mdp.marginals(1, max_cells=3, at={"home": "state"})),
    ("wrong-size", "weights", lambda: mdp.marginals([["sex"]], weights=[1, 1], at={"home": "state"})),
]
_ONE = mdp.Domain({"sex": ["f", "m"], "age": 3})
_FILES = {
    "a text in CSV": ("1,2\n\n3,x\n", "a.csv", "wrong-type"),
    "a header in CSV": ("age,sex\n1,2\n", "a.csv", "wrong-type"),
    "uneven lines in CSV": ("1,2\n3\n", "a.csv", "wrong-size"),
    "an open quote in CSV": ('1,"2\n', "a.csv", "damaged-file"),
    "a text for NumPy": ("1,2", "a.npy", "damaged-file"),
    "half a zip file": (b"PK\x03\x04 and no more", "a.npz", "damaged-file"),
    "an open header": (b"\x93NUMPY\x01\x00\x02\x00[[", "a.npy", "damaged-file"),
    "a deep header": (b"\x93NUMPY\x01\x00\x29\x23" + b"-" * 9000 + b"1", "a.npy", "damaged-file"),
}
#: What only Python can write, or other domains refuse.
_OTHERS: list[tuple[str, str, str, Callable[[], object]]] = [
    ("a weight beyond floats", "out-of-range", "weight", lambda: mdp.marginals(1, weight=10**400)),
    ("a number as a name", "wrong-type", "product", lambda: mdp.product({3: "identity"})),
    ("a set twice", "duplicate", "product.age", lambda: mdp.product({"age": "total"}, age="prefix")),
    ("one of one twice", "duplicate", "any.age", lambda: mdp.disjunction({"age": "total"}, age="prefix")),
    ("an entry that is a text", "wrong-type", "", lambda: KwayEntry.read("kway")),
    ("an entry of a workload", "out-of-range", "workload[0].kway", lambda: mdp.Workload(DOMAIN, mdp.kway(7))),
    ("no queries", "empty", "", lambda: mdp.Workload(DOMAIN)),
    ("too many products", "too-large", "kway", _expanded(lambda: mdp.kway(3), _MANY)),
    ("too many marginals", "too-large", "marginals", _expanded(lambda: mdp.marginals([1, 2]), _MANY)),
    ("too many at two levels", "too-large", "marginals", _expanded(lambda: mdp.marginals(
        2, attributes=_MANY.names[:1001], at={"a1499": ["total", "a1499"]}), _MANY)),
    ("too many pairs", "too-large", "pairwise", _expanded(lambda: mdp.pairwise("abs"), _MANY)),
    ("one numeric attribute", "wrong-size", "pairwise", _expanded(lambda: mdp.pairwise("affine"), _ONE)),
    ("an attribute beside its level", "conflict", "product.town",
     _expanded(lambda: mdp.product({"state": "identity", "town": "identity"}), _TOWNS)),
]  # fmt: skip
REFUSALS = [
    *(Refusal(text, *key, _read(text)) for key, texts in _ENTRIES.items() for text in texts),
    *(
        Refusal(name, code, "product.age.matrix", _loaded(content, file))
        for name, (content, file, code) in _FILES.items()
    ),
    *(Refusal(*row) for row in _OTHERS),
    *numbered("at", ((code, place, _expanded(build, _HOMES)) for code, place, build in _AT)),
]
