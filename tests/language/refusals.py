# mypy: disable-error-code="arg-type,dict-item,list-item"
"""What the query language refuses: wrong arguments, what does not fit the domain, and files of arrays."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.domain import Domain
from matrixdp.language import KwayEntry, cells, dense, disjunction, kway, marginals, pairwise, product
from matrixdp.queries import Workload
from tests.language import test_builders, test_merged
from tests.refusals import Refusal, numbered

# Arguments that are wrong whatever the domain is.
_ARGUMENTS: list[tuple[str, str, Callable[[], Any]]] = [
    ("out-of-range", "marginals", lambda: marginals(-1)),
    ("wrong-type", "marginals", lambda: marginals(True)),
    ("wrong-type", "marginals", lambda: marginals(1.0)),
    ("wrong-type", "marginals", lambda: marginals("age")),
    ("empty", "marginals", lambda: marginals([])),
    ("wrong-type", "marginals[0]", lambda: marginals(["age"])),
    ("wrong-type", "marginals[1]", lambda: marginals([["age"], 1])),
    ("wrong-type", "marginals[1]", lambda: marginals([1, ["age"]])),
    ("wrong-type", "marginals[0][1]", lambda: marginals([["age", 3]])),
    ("duplicate", "marginals[0][1]", lambda: marginals([["age", "age"]])),
    ("conflict", "attributes", lambda: marginals([["age"]], attributes=["age"])),
    ("wrong-type", "attributes", lambda: marginals(1, attributes="age")),
    ("duplicate", "attributes[1]", lambda: marginals(1, attributes=["age", "age"])),
    ("out-of-range", "max_cells", lambda: marginals(1, max_cells=0)),
    ("out-of-range", "max_cells", lambda: marginals(1, max_cells=2.5)),
    ("out-of-range", "weight", lambda: marginals(1, weight=0)),
    ("out-of-range", "weight", lambda: marginals(1, weight=-1)),
    ("out-of-range", "weight", lambda: marginals(1, weight=math.nan)),
    ("out-of-range", "weight", lambda: marginals(1, weight=math.inf)),
    ("out-of-range", "weight", lambda: marginals(1, weight=10**400)),
    ("wrong-type", "weight", lambda: marginals(1, weight="2")),
    ("wrong-type", "weight", lambda: marginals(1, weight=True)),
    ("out-of-range", "weights", lambda: marginals(1, weights=[0.0])),
    ("out-of-range", "weights", lambda: marginals(1, weights=[-1.0])),
    ("wrong-type", "weights", lambda: marginals(1, weights=[math.nan])),
    ("wrong-size", "weights", lambda: marginals(1, weights=[])),
    ("wrong-type", "weights", lambda: marginals(1, weights=2.0)),
    ("file-missing", "weights", lambda: marginals(1, weights="none.npy")),
    ("out-of-range", "weights", lambda: marginals(1, weight=1e300, weights=[1e300])),
    ("wrong-type", "name", lambda: marginals(1, name=" ")),
    ("wrong-type", "name", lambda: marginals(1, name=3)),
    ("empty", "kway", lambda: kway([])),
    ("wrong-type", "kway", lambda: kway("2")),
    ("out-of-range", "kway[1]", lambda: kway([1, -2])),
    ("wrong-type", "kway", lambda: kway(False)),
    ("unknown-name", "predicates", lambda: kway(2, "prefx")),
    ("wrong-type", "predicates", lambda: kway(2, "")),
    ("wrong-type", "predicates", lambda: kway(2, {})),
    ("unknown-key", "predicates.numerc", lambda: kway(2, {"numerc": "prefix"})),
    ("unknown-key", "predicates.text", lambda: kway(2, {"numeric": "prefix", "text": "total"})),
    ("unknown-name", "predicates.numeric", lambda: kway(2, {"numeric": "x"})),
    ("wrong-type", "product.age", lambda: product(age=3)),
    ("wrong-type", "product.age", lambda: product(age=None)),
    ("wrong-type", "product.age", lambda: product(age={})),
    ("wrong-type", "product.age", lambda: product(age={"width": 2, "sets": [[1]]})),
    ("unknown-name", "product.age", lambda: product(age={"rnges": [[1, 2]]})),
    ("out-of-range", "product.age.width", lambda: product(age={"width": 0})),
    ("wrong-type", "product.age.width", lambda: product(age={"width": True})),
    ("empty", "product.age.ranges", lambda: product(age={"ranges": []})),
    ("wrong-type", "product.age.ranges", lambda: product(age={"ranges": "0-3"})),
    ("wrong-type", "product.age.ranges[0]", lambda: product(age={"ranges": [3]})),
    ("wrong-size", "product.age.ranges[0]", lambda: product(age={"ranges": [[1, 2, 3]]})),
    ("wrong-type", "product.age.ranges[0][0]", lambda: product(age={"ranges": [[None, 3]]})),
    ("empty", "product.age.sets", lambda: product(age={"sets": []})),
    ("wrong-type", "product.age.sets[0]", lambda: product(age={"sets": ["a"]})),
    ("wrong-type", "product.age.matrix", lambda: product(age={"matrix": [[math.inf]]})),
    ("wrong-type", "product", lambda: product(["age"])),
    ("wrong-type", "product", lambda: product({3: "identity"})),
    ("duplicate", "product.age", lambda: product({"age": "identity"}, age="prefix")),
    ("unknown-name", "pairwise", lambda: pairwise("afine")),
    ("wrong-type", "pairwise", lambda: pairwise(2)),
    ("empty", "attributes", lambda: dense([[1.0]], [])),
    ("wrong-type", "attributes", lambda: dense([[1.0]], None)),
    ("wrong-size", "dense", lambda: dense([1.0], ["age"])),
    ("file-missing", "dense", lambda: dense("none.npy", ["age"])),
    ("wrong-type", "product.age.matrix", lambda: product(age={"matrix": 3})),
    ("wrong-type", "product.age.matrix", lambda: product(age={"matrix": None})),
    ("wrong-type", "product.age.matrix", lambda: product(age={"matrix": [[1], [1, 2]]})),
    ("wrong-type", "product.age.matrix", lambda: product(age={"matrix": [["a"]]})),
    ("wrong-size", "product.age.matrix", lambda: product(age={"matrix": [1, 2]})),
    ("wrong-size", "product.age.matrix", lambda: product(age={"matrix": [[]]})),
    ("wrong-type", "product.age.matrix", lambda: product(age={"matrix": [[math.nan]]})),
    ("file-missing", "product.age.matrix", lambda: product(age={"matrix": "nowhere.npy"})),
]

# Entries that do not fit a domain.
_MISFITS: list[tuple[str, str, Any]] = [
    ("out-of-range", "marginals", marginals(6)),
    ("out-of-range", "marginals[1]", marginals([1, 3], ["age", "sex"])),
    ("unknown-name", "marginals[0][0]", marginals([["aeg"]])),
    ("unknown-name", "attributes[0]", marginals(1, ["aeg"])),
    ("out-of-range", "max_cells", marginals(2, max_cells=5)),
    ("out-of-range", "max_cells", marginals([["age"]], max_cells=4)),
    ("wrong-size", "weights", marginals(1, weights=[1.0])),
    ("wrong-size", "weights", marginals([["age"]], weights=[1.0])),
    ("out-of-range", "kway", kway(7)),
    ("out-of-range", "predicates.ranges[0]", kway(1, {"ranges": [[0, 9]]}, ["age"])),
    ("workload", "predicates.numeric.width", kway(1, {"numeric": {"width": 9}}, ["age"])),
    ("unknown-name", "product.aeg", product(aeg="prefix")),
    ("out-of-range", "product.age.ranges[1]", product(age={"ranges": [[0, 1], [2, 5]]})),
    ("out-of-range", "product.age.ranges[0]", product(age={"ranges": [[3, 2]]})),
    ("out-of-range", "product.sex.ranges[0]", product(sex={"ranges": [["male", "female"]]})),
    ("out-of-range", "product.income.ranges[0]", product(income={"ranges": [[0, 9]]})),
    ("unknown-name", "product.income.sets[0][0]", product(income={"sets": [[50]]})),
    ("unknown-name", "product.sex.sets[0][1]", product(sex={"sets": [["female", "mal"]]})),
    ("duplicate", "product.code.sets[0][1]", product(code={"sets": [[1, 1]]})),
    ("workload", "product.age.width", product(age={"width": 6})),
    ("wrong-size", "product.age.matrix", product(age={"matrix": np.eye(2)})),
    ("wrong-size", "weights", product(age="prefix", weights=[1.0, 2.0])),
    ("wrong-kind", "attributes[0]", pairwise("abs", ["sex", "age"])),
    ("wrong-size", "attributes", pairwise("abs", ["age"])),
    ("wrong-size", "weights", pairwise("abs", weights=[1.0])),
    ("wrong-size", "dense", dense(np.eye(3), ["age"])),
    ("unknown-name", "attributes[0]", dense(np.eye(5), ["aeg"])),
    ("wrong-size", "weights", dense(np.eye(5), ["age"], weights=[1.0])),
]

# Entries over merged attributes.
_MERGED: list[tuple[str, str, Callable[[], Any]]] = [
    ("wrong-size", "any", lambda: disjunction(age="prefix")),
    ("duplicate", "any.age", lambda: disjunction({"age": "prefix"}, age="prefix")),
    ("wrong-type", "any", lambda: disjunction([])),
    ("unknown-name", "any.agee", lambda: disjunction(agee="prefix", sex="identity")),
    ("wrong-kind", "any", lambda: disjunction(sex="identity", age={"matrix": [[0.5, 0, 0, 1]]})),
    ("conflict", "by.age", lambda: disjunction(sex="identity", age="prefix", by={"age": "prefix"})),
    ("unknown-name", "by.payy", lambda: disjunction(sex="identity", age="prefix", by={"payy": "prefix"})),
    ("wrong-type", "by", lambda: disjunction(sex="identity", age="prefix", by=["pay"])),
    ("wrong-type", "cells", lambda: cells({"sex": "female"})),
    ("empty", "cells", lambda: cells([])),
    ("empty", "cells[0]", lambda: cells([[]])),
    ("wrong-type", "cells[0]", lambda: cells(["female"])),
    ("empty", "cells[0][0]", lambda: cells([{}])),
    ("empty", "cells[0][0].sex", lambda: cells([{"sex": []}])),
    ("wrong-type", "cells[0][0].sex", lambda: cells([{"sex": None}])),
    ("wrong-type", "cells[0][0].sex[0]", lambda: cells([{"sex": [["male"]]}])),
    ("unknown-name", "cells[0][0].sex", lambda: cells([{"sex": "femal"}])),
    ("unknown-name", "cells[0][0].age", lambda: cells([{"age": 9}])),
    ("out-of-range", "cells[0][0].age.range", lambda: cells([{"age": {"range": [10, 14]}}])),
    ("wrong-size", "cells[0][0].age.range", lambda: cells([{"age": {"range": [10]}}])),
    ("unknown-key", "cells[0][0].age.ranges", lambda: cells([{"age": {"ranges": [10, 11]}}])),
    ("unknown-name", "cells[0][0].aeg", lambda: cells([{"aeg": 9}])),
    ("conflict", "by.age", lambda: dense(np.eye(4), ["age"], by={"age": "identity"})),
    ("wrong-size", "weights", lambda: cells([{"age": 10}], weights=[1, 2])),
    ("wrong-size", "weights", lambda: cells([{"age": 10}], by={"sex": "identity"}, weights=[1])),
]


def _expanded(build: Callable[[], Any], domain: Domain) -> Callable[[], object]:
    return lambda: build().expand(domain)


def _fitted(entry: Any) -> Callable[[], object]:
    return lambda: Workload(test_builders.DOMAIN, entry)


def _loaded(content: str | bytes, name: str) -> Callable[[Path], object]:
    def attempt(folder: Path) -> object:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return product(age={"matrix": folder / name})

    return attempt


_MANY = Domain({f"a{number}": 2 for number in range(1500)})
_TOWNS = Domain({"town": {"categories": ["a", "b", "c"], "levels": {"state": {"N": ["a", "b"], "S": ["c"]}}}})
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
REFUSALS = [
    *numbered("arguments", _ARGUMENTS),
    *numbered("misfits", [(c, f"workload[0].{place}", _fitted(entry)) for c, place, entry in _MISFITS]),
    *numbered("merged", [(c, place, _expanded(build, test_merged.DOMAIN)) for c, place, build in _MERGED]),
    *(
        Refusal(name, code, "product.age.matrix", _loaded(content, file))
        for name, (content, file, code) in _FILES.items()
    ),
    Refusal("an entry that is a text", "wrong-type", "", lambda: KwayEntry.read("kway")),
    Refusal("too many products", "too-large", "kway", _expanded(lambda: kway(3), _MANY)),
    Refusal("too many marginals", "too-large", "marginals", _expanded(lambda: marginals([1, 2]), _MANY)),
    Refusal("too many pairs", "too-large", "pairwise", _expanded(lambda: pairwise("abs"), _MANY)),
    Refusal(
        "one numeric attribute",
        "wrong-size",
        "pairwise",
        _expanded(lambda: pairwise("affine"), Domain({"sex": ["f", "m"], "age": 3})),
    ),
    Refusal(
        "an attribute beside its level",
        "conflict",
        "product.town",
        _expanded(lambda: product({"state": "identity", "town": "identity"}), _TOWNS),
    ),
    Refusal("no queries", "empty", "", lambda: Workload(test_builders.DOMAIN)),
]
