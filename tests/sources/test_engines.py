"""An engine of one's own, from one file: what it reads, it says; everything else is there."""

import subprocess
import sys
from typing import cast

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.domain import encode_value
from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.sources import Source, engine_names, engines, open_source, register_source
from matrixdp.testing import check_source


class Ledger:
    """A third party's table: a list of records."""

    def __init__(self, records):
        self.records = records


class LedgerSource(Source):
    def __init__(self, ledger):
        self.records = ledger.records

    def count(self, request):
        request.check_columns(self.records[0] if self.records else request.domain.names)
        return self._marginals(request)

    def _marginals(self, request):
        codes = [code for record in self.records if (code := self._codes(request, record))]
        for subset in request.subsets:
            places = [request.domain.index(name) for name in subset]
            keys = [
                int(np.ravel_multi_index([code[place] for place in places], request.shape(subset)))
                if subset
                else 0
                for code in codes
            ]
            yield subset, request.array(subset, np.array(keys, dtype=int), np.ones(len(keys), dtype=int))

    def _codes(self, request, record):
        codes = []
        for attribute in request.domain:
            code = encode_value(attribute, record[attribute.column])
            codes.append(request.out_of_domain.code(attribute.name) if code is None else code)
        return None if None in codes else codes


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(engines, "_ENGINES", dict(engines._ENGINES))
    register_source("ledger", lambda table: isinstance(table, Ledger), f"{__name__}:LedgerSource")


def test_an_engine_joins_by_registering(registered):
    check_source(lambda table: open_source(Ledger(table.to_pylist())))
    ledger = Ledger([{"code": 0}, {"code": 2}, {"code": 2}])
    strategy = mdp.select(mdp.Workload(mdp.Domain({"code": 3}), mdp.marginals(1)))
    release = strategy.measure(ledger, mdp.Budget(mu=1e4)).reconstruct()
    np.testing.assert_allclose(release.answers["estimate"].to_numpy(), [1, 0, 2], atol=0.1)


def test_the_last_engine_is_asked_first(registered):
    opened: list[object] = []
    register_source("every mapping", lambda table: isinstance(table, dict), opened.append)
    open_source({"code": [1]})
    assert opened == [{"code": [1]}]
    assert engine_names()[-2:] == ("ledger", "every mapping")


def test_the_name_of_a_table_is_for_engines_that_take_one(registered):
    with pytest.raises(SourceError, match="the name of a table"):
        open_source(Ledger([]), table_name="people")
    register_source("named", lambda table: table == 7, lambda *given: cast("Source", given), named=True)
    assert cast("object", open_source(7, table_name="people")) == (7, "people")
    assert cast("object", open_source(7)) == (7, None)


def test_engines_that_are_not_used_are_not_loaded():
    code = (
        "import sys, matrixdp.sources as s; "
        "assert not {'duckdb', 'narwhals', 'pyarrow'} & set(sys.modules), sys.modules; "
        "s.engine_names()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_check_finds_an_engine_that_reads_otherwise(registered):
    def careless(table):
        records = table.to_pylist()
        for record in records:
            for name, value in record.items():
                record[name] = value.strip() if isinstance(value, str) else value
        return open_source(Ledger(records))

    with pytest.raises(AssertionError, match="category: the text ' true' has the code 13, and is read as"):
        check_source(careless, [Kind.TEXT])
