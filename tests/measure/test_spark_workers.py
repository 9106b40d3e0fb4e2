"""Two executors of Spark measure runs of areas; one is killed while it draws noise."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import matrixdp as mdp
from matrixdp.measure.measurement import measure
from matrixdp.measure.workers import Workers
from matrixdp.plans import slices as sliced
from matrixdp.sources import open_source
from tests.measure.test_sliced_trees import WHOLE, plan
from tests.measure.test_slices import TABLE
from tests.measure.test_workers import check
from tests.sources.test_spark import SETTINGS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def spark(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    (tmp_path / "events").mkdir()
    builder = SparkSession.builder.master("local-cluster[2,1,512]")
    own = {
        "spark.executor.memory": "512m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(tmp_path / "events"),
        "spark.executor.extraJavaOptions": SETTINGS["spark.driver.extraJavaOptions"],
    }
    for name, value in {**SETTINGS, **own}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def test_an_executor_is_killed_while_it_draws(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(sliced, "_LEAST_RUNS", 3)
    people, shared, killed = tmp_path / "people.parquet", tmp_path / "shared", tmp_path / "killed"
    # a count that no other number is likely to be
    many = {name: np.concatenate([column, np.repeat(column[:1], 71_317)]) for name, column in TABLE.items()}
    pq.write_table(pa.table(many), people)
    shared.mkdir()
    honest = Workers.spark(spark, shared)

    def fatal_map(function, numbers):
        mark = str(killed)

        def fatal(number):
            import os
            import signal

            from matrixdp.measure import noisy_answers

            real, drawn = noisy_answers.noisy, []

            def noisy(*given, **named):
                drawn.append(1)
                if len(drawn) == 3 and number == 1 and not os.path.exists(mark):  # noqa: PTH110
                    with open(mark, "x"):  # noqa: PTH123
                        pass
                    with open(f"/proc/{os.getppid()}/stat") as parent:  # noqa: PTH123
                        os.kill(int(parent.read().split()[3]), signal.SIGKILL)  # the executor itself
                    os._exit(9)
                return real(*given, **named)

            noisy_answers.noisy = noisy
            try:
                return function(number)
            finally:
                noisy_answers.noisy = real

        return honest.map(fatal, numbers)

    asked, budget = plan(WHOLE), mdp.Budget(mu=50)
    ledger = mdp.Ledger.create(tmp_path / "ledger", "people", mdp.Budget(mu=60))
    found = measure(
        asked,
        open_source(people),
        budget,
        ledger=ledger,
        workers=Workers(fatal_map, shared),
        max_records=80_000,
    )
    assert killed.exists()
    assert len(ledger.entries) == 1
    check(asked, found, many)
    alone = measure(asked, open_source(people), budget)
    assert (found.scales, found.authorization.cost) == (alone.scales, alone.authorization.cost)
    assert [*shared.iterdir()] == []
    logs = "".join(path.read_text() for path in Path(tmp_path, "events").rglob("*") if path.is_file())
    assert "SparkListenerExecutorRemoved" in logs
    exact = 71_317 + int((TABLE["geo"] == TABLE["geo"][0]).sum())
    assert str(exact) not in logs
    assert str(71_317 + len(TABLE["geo"])) not in logs
