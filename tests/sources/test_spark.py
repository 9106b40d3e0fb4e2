"""Frames of Spark, whose tasks count their rows: the rules of every engine, and what Spark does otherwise."""

import shutil
import sys
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import SourceError
from matrixdp.sources import open_source
from matrixdp.sources.base import COMPUTED, INFERRED
from matrixdp.testing import check_neighbours, check_source
from tests import test_docs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
DOMAIN = Domain({"sex": ["f", "m"], "age": 4})
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    # Plain timestamps stay plain: those of the default type are moments of a time zone.
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Short runs: what starts faster ends sooner.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="module")
def spark():
    # Workers are started by name, and the python of this environment need not be the first of the path.
    environment = pytest.MonkeyPatch()
    environment.setenv("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    environment.undo()


def counts(frame, domain=DOMAIN, subsets=(("sex", "age"),)):
    found = dict(open_source(frame).marginals(domain, subsets, OutOfDomain()))
    return [found[subset].tolist() for subset in subsets]


def test_it_reads_and_refuses_as_every_engine(spark):
    check_source(lambda table: open_source(spark.createDataFrame(table)))


def test_one_record_changes_one_count(spark):
    assert check_neighbours(lambda table: open_source(spark.createDataFrame(table)), together=100) > 100


def test_parts_names_and_types_of_its_own(spark):
    columns = {"a.b": ["f", "m", "m", "x"] * 5, "`age": [0, 2, 3, 1] * 5, "day": [date(2020, 1, 31)] * 20}
    frame = spark.createDataFrame(pa.table(columns)).repartition(3)
    frame = frame.withColumn("none", functions.lit(None))
    domain = Domain({"a.b": ["f", "m"], "`age": 4, "day": ["2020-01-31"]})
    assert counts(frame, domain, [("a.b",), ("`age", "day"), ()]) == [[5, 10], [[5], [0], [5], [5]], 15]
    nothing = Domain({"none": {"size": 2, "null": "unknown"}})
    assert counts(frame, nothing, [("none",)]) == [[0, 0, 20]]
    assert counts(frame.limit(0), domain, [("a.b",)]) == [[0, 0]]
    assert open_source(frame).assumptions(domain) == (COMPUTED, INFERRED)


def test_names_that_differ_in_case(spark):
    frame = spark.createDataFrame([(0, 2), (1, 3)], "Age int, age int")
    domain = Domain({"age": 4, "Age": 4})
    (found,) = counts(frame, domain, [("age", "Age")])
    assert np.transpose(np.nonzero(found)).tolist() == [[2, 0], [3, 1]]


@pytest.mark.parametrize(
    ("page", "made"), [("clusters.md", ("spark", "pl")), ("howto/run-on-spark.md", ("spark", "folder"))]
)
def test_the_pages_on_clusters_run(spark, tmp_path, monkeypatch, page, made):
    (tmp_path / "examples").mkdir()
    shutil.copy(test_docs.BUNDLED, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    # The page ends with the session that it found.
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)
    path = test_docs.ROOT / "docs" / page
    names: dict[str, Any] = {}
    for code in test_docs.fenced(path, "python"):
        exec(compile(code, str(path), "exec"), names)  # noqa: S102
    assert set(made) <= set(names)


def test_columns_are_checked_before_anything_runs(spark):
    frame = spark.createDataFrame([("f", 1)], "sex string, age int")
    failing = frame.withColumn("age", functions.raise_error(functions.lit("Waldemar-4711")))
    open_source(failing).check(Domain({"sex": ["f"]}))
    with pytest.raises(SourceError, match="the table has no column 'aeg'"):
        open_source(failing).check(Domain({"aeg": 4}))
    with pytest.raises(SourceError, match=r"could not count the table .* every worker must have") as caught:
        counts(failing.withColumn("age", functions.col("age").cast("int")))
    assert "Waldemar" not in str(caught.value)
    assert not isinstance(caught.value.__context__, PySparkException)
