"""Frames of Modin, in an environment of their own (`.ci/versions`): Modin needs an older pandas.

`python -m pytest tests/sources/modin_frames.py` where Modin is installed, with `MODIN_ENGINE=dask` or `ray`.
"""

import os

import modin.config
import modin.pandas
import pandas as pd
import pytest

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import SourceError
from matrixdp.privacy import Unit
from matrixdp.sources import memory, open_source
from matrixdp.testing import check_source

pytestmark = pytest.mark.filterwarnings("ignore")
DOMAIN = Domain({"sex": ["f", "m"], "age": 4})
FRAME = pd.DataFrame({"sex": ["f", "m", "m", "x"] * 50, "age": [0, 2, 2, 1] * 50, "person": range(200)})
SUBSETS = [("sex", "age"), ()]
COUNTS = [[[50, 0, 0, 0], [0, 0, 100, 0]], 150]


@pytest.fixture(scope="module", autouse=True)
def workers():
    if os.environ["MODIN_ENGINE"] == "ray":
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()
        return
    from dask.distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None)
    with cluster, Client(cluster):
        yield


@pytest.fixture
def frame():
    modin.config.MinRowPartitionSize.put(32)
    modin.config.NPartitions.put(3)
    return modin.pandas.DataFrame(FRAME)


def test_it_reads_and_refuses_as_every_engine():
    check_source(
        lambda table: open_source(modin.pandas.DataFrame(table.to_pandas(types_mapper=pd.ArrowDtype)))
    )


def test_partitions_are_counted_where_they_are(frame, monkeypatch):
    def pulled(*_):
        raise AssertionError("the rows came here")

    source = open_source(frame)
    source.check(DOMAIN)
    monkeypatch.setattr(memory.FrameSource, "count", pulled)
    found = dict(source.marginals(DOMAIN, SUBSETS, OutOfDomain()))
    assert [found[subset].tolist() for subset in SUBSETS] == COUNTS


def test_what_is_missing_is_told_by_the_call(frame):
    with pytest.raises(SourceError, match="the table has no column 'aeg'"):
        open_source(frame).marginals(Domain({"aeg": 3}), [()], OutOfDomain())


def test_an_id_is_followed_through_the_order_of_the_frame(frame):
    frame["person"] = frame["person"] // 4
    found = open_source(frame).marginals(DOMAIN, [("sex",)], OutOfDomain(), Unit(id="person", records=1))
    assert next(iter(found))[1].tolist() == [50, 0]
