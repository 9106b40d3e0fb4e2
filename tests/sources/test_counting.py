"""Marginals are the same whether they are counted at once or one after the other."""

import itertools
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.domain import encode_value
from matrixdp.sources import Request, counting, open_source
from matrixdp.sources import memory as coding

DOMAIN = mdp.Domain({"sex": ["f", "m"], "age": {"min": 0, "max": 9}, "place": 300, "hour": 24, "code": 70})
SUBSETS = [(), ("sex",), ("place", "age"), ("hour", "place", "code"), ("age", "sex", "place", "code")]
RECORDS = 5_000


@pytest.mark.parametrize("unit", [mdp.Unit(), mdp.Unit(records=2, id="person")])
def test_marginals_at_once_and_one_after_the_other(unit, monkeypatch):
    rng = np.random.default_rng(4)
    # some values beyond the domain, and some that are missing
    found = {name: rng.integers(-1, DOMAIN[name].size + 1, RECORDS) for name in DOMAIN.names}
    table = {name: pa.array(found[name]) for name in DOMAIN.names}
    table["sex"] = pa.array([("f", "m", "x", None)[code] for code in found["sex"]])
    table["person"] = pa.array(rng.integers(0, 900, RECORDS))
    inside = np.logical_and.reduce([(found[n] >= 0) & (found[n] < DOMAIN[n].size) for n in DOMAIN.names])
    if unit.id:
        seen = dict.fromkeys(range(900), 0)
        for place, person in enumerate(table["person"].to_pylist()):
            inside[place] &= seen[person] < 2
            seen[person] += 1
    monkeypatch.setattr(counting, "_BATCH", 2**10)
    source = open_source(pa.table(table))
    for most in (2**24, 0):
        monkeypatch.setattr(counting, "_MOST_AT_ONCE", most)
        counted = dict(source.marginals(DOMAIN, SUBSETS, mdp.OutOfDomain(), unit))
        assert list(counted) == SUBSETS
        for subset in SUBSETS:
            expected = np.array(inside.sum())
            if subset:
                own = np.stack([found[name][inside] for name in subset], axis=1)
                expected, _ = np.histogramdd(own, [np.arange(DOMAIN[name].size + 1) for name in subset])
            np.testing.assert_array_equal(counted[subset], expected)


def test_codes_of_texts_are_the_same_whether_they_are_remembered_or_not(monkeypatch):
    spec = {"a": {"min": 0, "max": 99}, "b": {"edges": [0, 5, 50]}}
    domain = mdp.Domain({**spec, "c": {"categories": ["x", 7, "true"], "null": "none"}})
    texts = [None, "", "x", "7", "7.0", "TRUE", " 12", "oops", "49.9", "0", "\ufffd", "x\x00"]
    a, b, c = (list(column) for column in zip(*itertools.product(texts, repeat=3), strict=True))
    table = pa.table({"a": a, "b": b, "c": c})
    batches = [*table.slice(0, 900).to_batches(max_chunksize=50), *table.slice(900).to_batches()]
    request = Request(domain, (("a", "b", "c"),), mdp.OutOfDomain())
    read = partial(coding.encode_batches, request, table.schema, batches)
    found = [next(counting.count(request, read))[1]]
    for name in ("_MOST_KNOWN", "_FEW"):
        monkeypatch.setattr(coding, name, 0)
        found.append(next(counting.count(request, read))[1])
    remembered, forgotten, computed = found
    np.testing.assert_array_equal(remembered, forgotten)
    np.testing.assert_array_equal(remembered, computed)
    inside = [sum(encode_value(attribute, text) is not None for text in texts) for attribute in domain]
    assert remembered.sum() == np.prod(inside)
    assert min(inside) > 2
