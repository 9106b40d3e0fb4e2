"""Problems spread over processes and clusters: the same strategies, progress and errors."""

from typing import Any

import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster

import matrixdp as mdp
from matrixdp.errors import TooLargeError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection import select
from matrixdp.selection.compose.rounding import check_measurable
from matrixdp.selection.spread import spread

DOMAIN = mdp.Domain({"a": 6, "b": 5, "c": 4})
WORKLOAD = mdp.Workload(
    DOMAIN, mdp.product(a="prefix", b="range"), mdp.product(a="range", c="prefix"), mdp.marginals(1)
)


def content(selection):
    return [
        (part.variance, [block.matrix.digest() for block in part.blocks]) for part in selection.plan.parts
    ]


def refuse_one_of(jobs):
    with pytest.raises(TooLargeError, match="a part of 100000 cells"):
        list(spread(check_measurable, [np.ones((1, cells)) for cells in (2, 100_000, 3)], jobs))


@pytest.fixture(scope="module")
def apart():
    return {noise: select(WORKLOAD, noise=noise, mechanism="residual") for noise in (GAUSSIAN, LAPLACE)}


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_strategies_do_not_depend_on_the_number_of_jobs(apart, noise):
    told = []
    with joblib.parallel_config(backend="threading"):
        spread_out = select(
            WORKLOAD,
            noise=noise,
            mechanism="residual",
            jobs=3,
            progress=lambda what, share: told.append((what, share)),
        )
    assert content(spread_out) == content(apart[noise])
    assert spread_out.certificate == apart[noise].certificate
    shares = [share for what, share in told if what == "solving sub-workloads" and share is not None]
    assert max(shares) == 1.0
    assert len(shares) > 3


def test_sub_solvers_that_are_not_joint_stay_the_same():
    pairs = mdp.Workload(DOMAIN, mdp.product(a="prefix", b="prefix"), mdp.product(a="range", b="identity"))
    options: Any = {"noise": GAUSSIAN, "mechanism": "residual", "sub_solver": "product"}
    with joblib.parallel_config(backend="threading"):
        assert content(select(pairs, **options)) == content(select(pairs, **options, jobs=2))


def test_a_cluster_of_dask_selects_the_same(apart):
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        spread_out = select(WORKLOAD, noise=GAUSSIAN, mechanism="residual", jobs=2)
        refuse_one_of(2)
    assert content(spread_out) == content(apart[GAUSSIAN])


@pytest.mark.slow
def test_processes_return_what_they_select_and_what_they_refuse():
    workload = mdp.Workload(mdp.Domain({"a": 5, "b": 3}), mdp.marginals([1, 2]))
    apart, spread_out = (select(workload, noise=LAPLACE, mechanism="hdmm", jobs=jobs) for jobs in (1, 2))
    assert content(spread_out) == content(apart)
    refuse_one_of(2)
