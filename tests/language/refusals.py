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
from tests.refusals import Refusal

# Arguments that are wrong whatever the domain is.
_ARGUMENTS: list[tuple[str, str, str, Callable[[], Any]]] = [
    ("marginals -1", "out-of-range", "marginals", lambda: marginals(-1)),
    ("marginals true", "wrong-type", "marginals", lambda: marginals(True)),
    ("marginals 1.0", "wrong-type", "marginals", lambda: marginals(1.0)),
    ("marginals 'age'", "wrong-type", "marginals", lambda: marginals("age")),
    ("marginals an empty list", "empty", "marginals", lambda: marginals([])),
    ("marginals[0] 'age'", "wrong-type", "marginals[0]", lambda: marginals(["age"])),
    ("marginals[1] 1", "wrong-type", "marginals[1]", lambda: marginals([["age"], 1])),
    ("marginals[1] ['age']", "wrong-type", "marginals[1]", lambda: marginals([1, ["age"]])),
    ("marginals[0][1] 3", "wrong-type", "marginals[0][1]", lambda: marginals([["age", 3]])),
    (
        "marginals[0][1] 'age' a second time",
        "duplicate",
        "marginals[0][1]",
        lambda: marginals([["age", "age"]]),
    ),
    (
        "attributes attributes with listed marginals",
        "conflict",
        "attributes",
        lambda: marginals([["age"]], attributes=["age"]),
    ),
    ("attributes 'age'", "wrong-type", "attributes", lambda: marginals(1, attributes="age")),
    (
        "attributes[1] 'age' a second time",
        "duplicate",
        "attributes[1]",
        lambda: marginals(1, attributes=["age", "age"]),
    ),
    ("max_cells 0", "out-of-range", "max_cells", lambda: marginals(1, max_cells=0)),
    ("max_cells 2.5", "wrong-type", "max_cells", lambda: marginals(1, max_cells=2.5)),
    ("weight 0", "out-of-range", "weight", lambda: marginals(1, weight=0)),
    ("weight -1", "out-of-range", "weight", lambda: marginals(1, weight=-1)),
    ("weight nan", "out-of-range", "weight", lambda: marginals(1, weight=math.nan)),
    ("weight inf", "out-of-range", "weight", lambda: marginals(1, weight=math.inf)),
    (
        "weight 1000000000000000000000000000000000000000...",
        "out-of-range",
        "weight",
        lambda: marginals(1, weight=10**400),
    ),
    ("weight '2'", "wrong-type", "weight", lambda: marginals(1, weight="2")),
    ("weight true", "wrong-type", "weight", lambda: marginals(1, weight=True)),
    (
        "weights a weight that is 0, negative or not finite",
        "out-of-range",
        "weights",
        lambda: marginals(1, weights=[0.0]),
    ),
    (
        "weights a weight that is 0, negative or not finite 2",
        "out-of-range",
        "weights",
        lambda: marginals(1, weights=[-1.0]),
    ),
    (
        "weights an array with an entry that is NaN or infinite (numb",
        "workload",
        "weights",
        lambda: marginals(1, weights=[math.nan]),
    ),
    ("weights an array of shape (0,)", "wrong-size", "weights", lambda: marginals(1, weights=[])),
    ("weights 2.0", "workload", "weights", lambda: marginals(1, weights=2.0)),
    ("weights no such file at none.npy", "file-missing", "weights", lambda: marginals(1, weights="none.npy")),
    (
        "weights a weight that overflows or vanishes with `weight`",
        "out-of-range",
        "weights",
        lambda: marginals(1, weight=1e300, weights=[1e300]),
    ),
    ("name ' '", "wrong-type", "name", lambda: marginals(1, name=" ")),
    ("name 3", "wrong-type", "name", lambda: marginals(1, name=3)),
    ("kway an empty list", "empty", "kway", lambda: kway([])),
    ("kway '2'", "wrong-type", "kway", lambda: kway("2")),
    ("kway[1] -2", "out-of-range", "kway[1]", lambda: kway([1, -2])),
    ("kway false", "wrong-type", "kway", lambda: kway(False)),
    ("predicates 'prefx'", "unknown-name", "predicates", lambda: kway(2, "prefx")),
    ("predicates ''", "workload", "predicates", lambda: kway(2, "")),
    ("predicates an empty mapping", "workload", "predicates", lambda: kway(2, {})),
    (
        "predicates.numerc the unknown key 'numerc'",
        "unknown-key",
        "predicates.numerc",
        lambda: kway(2, {"numerc": "prefix"}),
    ),
    (
        "predicates.text the unknown key 'text'",
        "unknown-key",
        "predicates.text",
        lambda: kway(2, {"numeric": "prefix", "text": "total"}),
    ),
    ("predicates.numeric 'x'", "unknown-name", "predicates.numeric", lambda: kway(2, {"numeric": "x"})),
    ("product.age 3", "workload", "product.age", lambda: product(age=3)),
    ("product.age nothing (null)", "workload", "product.age", lambda: product(age=None)),
    ("product.age an empty mapping", "workload", "product.age", lambda: product(age={})),
    (
        "product.age a mapping with the keys width, sets",
        "workload",
        "product.age",
        lambda: product(age={"width": 2, "sets": [[1]]}),
    ),
    (
        "product.age a mapping with the keys rnges",
        "unknown-name",
        "product.age",
        lambda: product(age={"rnges": [[1, 2]]}),
    ),
    ("product.age.width 0", "out-of-range", "product.age.width", lambda: product(age={"width": 0})),
    ("product.age.width true", "wrong-type", "product.age.width", lambda: product(age={"width": True})),
    ("product.age.ranges an empty list", "empty", "product.age.ranges", lambda: product(age={"ranges": []})),
    ("product.age.ranges '0-3'", "wrong-type", "product.age.ranges", lambda: product(age={"ranges": "0-3"})),
    ("product.age.ranges[0] 3", "wrong-type", "product.age.ranges[0]", lambda: product(age={"ranges": [3]})),
    (
        "product.age.ranges[0] [1, 2, 3]",
        "wrong-size",
        "product.age.ranges[0]",
        lambda: product(age={"ranges": [[1, 2, 3]]}),
    ),
    (
        "product.age.ranges[0][0] nothing (null)",
        "wrong-type",
        "product.age.ranges[0][0]",
        lambda: product(age={"ranges": [[None, 3]]}),
    ),
    ("product.age.sets an empty list", "empty", "product.age.sets", lambda: product(age={"sets": []})),
    ("product.age.sets[0] 'a'", "wrong-type", "product.age.sets[0]", lambda: product(age={"sets": ["a"]})),
    (
        "product.age.matrix an array with an entry that is NaN or inf",
        "workload",
        "product.age.matrix",
        lambda: product(age={"matrix": [[math.inf]]}),
    ),
    ("product ['age']", "wrong-type", "product", lambda: product(["age"])),
    ("product the key 3", "wrong-type", "product", lambda: product({3: "identity"})),
    (
        "product.age the attribute a second time",
        "duplicate",
        "product.age",
        lambda: product({"age": "identity"}, age="prefix"),
    ),
    ("pairwise 'afine'", "unknown-name", "pairwise", lambda: pairwise("afine")),
    ("pairwise 2", "unknown-name", "pairwise", lambda: pairwise(2)),
    ("attributes an empty list", "empty", "attributes", lambda: dense([[1.0]], [])),
    ("attributes nothing (null)", "wrong-type", "attributes", lambda: dense([[1.0]], None)),
    ("dense an array of shape (1,)", "wrong-size", "dense", lambda: dense([1.0], ["age"])),
    ("dense no such file at none.npy", "file-missing", "dense", lambda: dense("none.npy", ["age"])),
]

# Entries that do not fit a domain.
_MISFITS: list[tuple[str, str, str, Any]] = [
    ("workload[0].marginals 6 attributes at a time", "out-of-range", "workload[0].marginals", marginals(6)),
    (
        "workload[0].marginals[1] 3 attributes at a time",
        "out-of-range",
        "workload[0].marginals[1]",
        marginals([1, 3], ["age", "sex"]),
    ),
    (
        "workload[0].marginals[0][0] 'aeg'",
        "unknown-name",
        "workload[0].marginals[0][0]",
        marginals([["aeg"]]),
    ),
    ("workload[0].attributes[0] 'aeg'", "unknown-name", "workload[0].attributes[0]", marginals(1, ["aeg"])),
    (
        "workload[0].max_cells 5, which leaves nothing",
        "out-of-range",
        "workload[0].max_cells",
        marginals(2, max_cells=5),
    ),
    (
        "workload[0].max_cells 4, which leaves nothing",
        "out-of-range",
        "workload[0].max_cells",
        marginals([["age"]], max_cells=4),
    ),
    (
        "workload[0].weights weights for an entry that stands for 5 g",
        "wrong-size",
        "workload[0].weights",
        marginals(1, weights=[1.0]),
    ),
    (
        "workload[0].weights 1 weights",
        "wrong-size",
        "workload[0].weights",
        marginals([["age"]], weights=[1.0]),
    ),
    ("workload[0].kway 7 attributes at a time", "out-of-range", "workload[0].kway", kway(7)),
    (
        "workload[0].predicates.ranges[0] [0, 9]",
        "out-of-range",
        "workload[0].predicates.ranges[0]",
        kway(1, {"ranges": [[0, 9]]}, ["age"]),
    ),
    (
        "workload[0].predicates.numeric.width 9",
        "workload",
        "workload[0].predicates.numeric.width",
        kway(1, {"numeric": {"width": 9}}, ["age"]),
    ),
    ("workload[0].product.aeg 'aeg'", "unknown-name", "workload[0].product.aeg", product(aeg="prefix")),
    (
        "workload[0].product.age.ranges[1] [2, 5]",
        "out-of-range",
        "workload[0].product.age.ranges[1]",
        product(age={"ranges": [[0, 1], [2, 5]]}),
    ),
    (
        "workload[0].product.age.ranges[0] [3, 2]",
        "out-of-range",
        "workload[0].product.age.ranges[0]",
        product(age={"ranges": [[3, 2]]}),
    ),
    (
        "workload[0].product.sex.ranges[0] ['male', 'female']",
        "out-of-range",
        "workload[0].product.sex.ranges[0]",
        product(sex={"ranges": [["male", "female"]]}),
    ),
    (
        "workload[0].product.income.ranges[0] [0, 9]",
        "out-of-range",
        "workload[0].product.income.ranges[0]",
        product(income={"ranges": [[0, 9]]}),
    ),
    (
        "workload[0].product.income.sets[0][0] 50",
        "unknown-name",
        "workload[0].product.income.sets[0][0]",
        product(income={"sets": [[50]]}),
    ),
    (
        "workload[0].product.sex.sets[0][1] 'mal'",
        "unknown-name",
        "workload[0].product.sex.sets[0][1]",
        product(sex={"sets": [["female", "mal"]]}),
    ),
    (
        "workload[0].product.code.sets[0][1] 1 again",
        "duplicate",
        "workload[0].product.code.sets[0][1]",
        product(code={"sets": [[1, 1]]}),
    ),
    (
        "workload[0].product.age.width 6",
        "workload",
        "workload[0].product.age.width",
        product(age={"width": 6}),
    ),
    (
        "workload[0].product.age.matrix a matrix of 2 columns",
        "wrong-size",
        "workload[0].product.age.matrix",
        product(age={"matrix": np.eye(2)}),
    ),
    (
        "workload[0].weights 2 weights",
        "wrong-size",
        "workload[0].weights",
        product(age="prefix", weights=[1.0, 2.0]),
    ),
    (
        "workload[0].attributes[0] 'sex', which lists categories",
        "wrong-kind",
        "workload[0].attributes[0]",
        pairwise("abs", ["sex", "age"]),
    ),
    (
        "workload[0].attributes 1 numeric attributes",
        "wrong-size",
        "workload[0].attributes",
        pairwise("abs", ["age"]),
    ),
    (
        "workload[0].weights weights for an entry that stands for 6 g",
        "wrong-size",
        "workload[0].weights",
        pairwise("abs", weights=[1.0]),
    ),
    ("workload[0].dense a matrix of 3 columns", "wrong-size", "workload[0].dense", dense(np.eye(3), ["age"])),
    (
        "workload[0].attributes[0] 'aeg' 2",
        "unknown-name",
        "workload[0].attributes[0]",
        dense(np.eye(5), ["aeg"]),
    ),
    (
        "workload[0].weights 1 weights 2",
        "wrong-size",
        "workload[0].weights",
        dense(np.eye(5), ["age"], weights=[1.0]),
    ),
]

# Entries over merged attributes.
_MERGED: list[tuple[str, str, str, Callable[[], Any]]] = [
    ("any 1 attribute", "wrong-size", "any", lambda: disjunction(age="prefix")),
    (
        "any.age the attribute a second time",
        "duplicate",
        "any.age",
        lambda: disjunction({"age": "prefix"}, age="prefix"),
    ),
    ("any an empty list", "wrong-type", "any", lambda: disjunction([])),
    ("any.agee 'agee'", "unknown-name", "any.agee", lambda: disjunction(agee="prefix", sex="identity")),
    (
        "any a predicate with entries other than 0 and 1",
        "wrong-kind",
        "any",
        lambda: disjunction(sex="identity", age={"matrix": [[0.5, 0, 0, 1]]}),
    ),
    (
        "by.age an attribute of the queries themselves",
        "conflict",
        "by.age",
        lambda: disjunction(sex="identity", age="prefix", by={"age": "prefix"}),
    ),
    (
        "by.payy 'payy'",
        "unknown-name",
        "by.payy",
        lambda: disjunction(sex="identity", age="prefix", by={"payy": "prefix"}),
    ),
    ("by ['pay']", "wrong-type", "by", lambda: disjunction(sex="identity", age="prefix", by=["pay"])),
    ("cells a mapping with the keys sex", "wrong-type", "cells", lambda: cells({"sex": "female"})),
    ("cells an empty list", "empty", "cells", lambda: cells([])),
    ("cells[0] an empty list", "empty", "cells[0]", lambda: cells([[]])),
    ("cells[0] 'female'", "wrong-type", "cells[0]", lambda: cells(["female"])),
    ("cells[0][0] an empty mapping", "empty", "cells[0][0]", lambda: cells([{}])),
    ("cells[0][0].sex an empty list", "empty", "cells[0][0].sex", lambda: cells([{"sex": []}])),
    ("cells[0][0].sex nothing (null)", "wrong-type", "cells[0][0].sex", lambda: cells([{"sex": None}])),
    ("cells[0][0].sex[0] ['male']", "wrong-type", "cells[0][0].sex[0]", lambda: cells([{"sex": [["male"]]}])),
    ("cells[0][0].sex 'femal'", "unknown-name", "cells[0][0].sex", lambda: cells([{"sex": "femal"}])),
    ("cells[0][0].age 9", "unknown-name", "cells[0][0].age", lambda: cells([{"age": 9}])),
    (
        "cells[0][0].age.range [10, 14]",
        "out-of-range",
        "cells[0][0].age.range",
        lambda: cells([{"age": {"range": [10, 14]}}]),
    ),
    (
        "cells[0][0].age.range [10]",
        "wrong-size",
        "cells[0][0].age.range",
        lambda: cells([{"age": {"range": [10]}}]),
    ),
    (
        "cells[0][0].age.ranges the unknown key 'ranges'",
        "unknown-key",
        "cells[0][0].age.ranges",
        lambda: cells([{"age": {"ranges": [10, 11]}}]),
    ),
    ("cells[0][0].aeg 'aeg'", "unknown-name", "cells[0][0].aeg", lambda: cells([{"aeg": 9}])),
    (
        "by.age an attribute of the queries themselves 2",
        "conflict",
        "by.age",
        lambda: dense(np.eye(4), ["age"], by={"age": "identity"}),
    ),
    ("weights 2 weights", "wrong-size", "weights", lambda: cells([{"age": 10}], weights=[1, 2])),
    (
        "weights 1 weights",
        "wrong-size",
        "weights",
        lambda: cells([{"age": 10}], by={"sex": "identity"}, weights=[1]),
    ),
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
    *(Refusal(name, code, place, build) for name, code, place, build in _ARGUMENTS),
    *(Refusal(name, code, place, _fitted(entry)) for name, code, place, entry in _MISFITS),
    *(Refusal(f"merged: {n}", c, p, _expanded(build, test_merged.DOMAIN)) for n, c, p, build in _MERGED),
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
    Refusal("no queries", "empty", "", lambda: Workload(test_builders.DOMAIN)),
]
