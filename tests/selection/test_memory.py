"""Matrices that would not fit in memory are refused before they are made, by the name of the attribute."""

import json
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.errors import SourceError, TooLargeError
from matrixdp.exact import resources as memory
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import Trials, select
from matrixdp.selection.problem.kron_sum import KronSum

LOANS = """
domain: {loan_amount: {min: 0, max: 40000}, grade: [A, B, C, D, E, F, G]}
workload: [sum: loan_amount, {sum: loan_amount, by: [grade]}]
privacy: {mu: 1}
"""
PAIR = mdp.Workload(
    mdp.Domain({"a": 12, "b": 12}),
    mdp.product(a="prefix", b="range"),
    mdp.product(a="range", b="prefix"),
    mdp.product(a="identity"),
)


@pytest.fixture
def unlimited(monkeypatch):
    """Take no limit from the environment, and ask the machine anew."""
    monkeypatch.delenv(memory.MEMORY_LIMIT, raising=False)
    memory._machine_limit.cache_clear()
    yield
    memory._machine_limit.cache_clear()


def test_sums_over_many_values_are_refused_before_their_gram_matrix_is_made(tmp_path: Path):
    file = tmp_path / "loans.yaml"
    file.write_text(LOANS)
    tracemalloc.start()
    try:
        result = CliRunner().invoke(app, ["select", str(file)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.exit_code == 2
    assert "domain.loan_amount: found 40,001 values" in result.stderr
    assert peak < 200e6
    told = json.loads(CliRunner().invoke(app, ["validate", str(file), "--json"]).stdout)
    assert told["memory_bytes"] > 1e11
    assert "domain.loan_amount: 40,001 values are too many" in told["suggestions"][0]


def test_attributes_that_could_not_be_measured_are_refused_however_much_memory_there_is(monkeypatch):
    monkeypatch.setenv(memory.MEMORY_LIMIT, "9000TB")
    workload = mdp.Workload(mdp.Domain({"tract": 74_000}), mdp.product(tract="prefix"))
    with pytest.raises(TooLargeError) as refused:
        select(workload, noise=GAUSSIAN, mechanism="residual")
    assert refused.value.problem is not None
    assert refused.value.problem.path == ("domain", "tract")
    assert "at most 9,000" in refused.value.problem.expected
    # what measures every value needs no such matrix
    assert select(workload, noise=GAUSSIAN, mechanism="identity").certificate.lower_bound is None


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize(
    "mechanism",
    ["residual", "dense", "querysmasher", "generalized-marginals", "opt-kron", "workload", "opt-0"],
)
def test_mechanisms_refuse_what_does_not_fit(monkeypatch, mechanism, noise):
    if mechanism in ("dense", "residual") and noise == LAPLACE:
        pytest.skip("it is for Gaussian noise")
    workload = mdp.Workload(mdp.Domain({"a": 200}), mdp.product(a="prefix"), mdp.product(a="identity"))
    monkeypatch.setenv(memory.MEMORY_LIMIT, "1MB")
    with pytest.raises(TooLargeError) as refused:
        select(workload, noise=noise, mechanism=mechanism)
    assert refused.value.problem is not None
    assert refused.value.problem.path == (("domain",) if mechanism == "workload" else ("domain", "a"))


def test_what_does_not_fit_is_not_tried(monkeypatch):
    assert select(PAIR, noise=GAUSSIAN).mechanism == "dense"
    monkeypatch.setenv(memory.MEMORY_LIMIT, "1MB")
    chosen = select(PAIR, noise=GAUSSIAN)
    assert chosen.mechanism == "residual"
    assert re.search(r"dense does not fit: [\d,]+ cells that do not factor; the limit is", chosen.reason)


def test_a_mechanism_that_runs_out_of_memory_is_passed_over(monkeypatch):
    choose = Trials.choose

    def run_out(trials, name):
        if name == "dense":
            raise MemoryError("there is no more")
        return choose(trials, name)

    monkeypatch.setattr(Trials, "choose", run_out)
    chosen = select(PAIR, noise=GAUSSIAN)
    assert chosen.mechanism == "residual"
    assert "dense does not fit: there is no more" in chosen.reason


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 5e8), ("1.5 GB", 1.5e9), ("512MiB", 2**29), ("4KB", 4e3), ("2TiB", 2**41)]
)
def test_the_environment_says_how_much_there_is(monkeypatch, text, size):
    monkeypatch.setenv(memory.MEMORY_LIMIT, text)
    assert memory.memory_limit() == size


def test_what_is_no_size_is_refused(monkeypatch):
    monkeypatch.setenv(memory.MEMORY_LIMIT, "much")
    with pytest.raises(SourceError, match=f"^{memory.MEMORY_LIMIT}: found 'much'"):
        select(PAIR, noise=GAUSSIAN)


WITHOUT = """
import os, sys
from pathlib import Path
sys.modules["resource"] = None
del os.sysconf
Path.exists = lambda path: False
from matrixdp.exact.resources import memory_limit, peak_memory_mb
from matrixdp.selection.problem.kron_sum import KronSum
print(memory_limit(), peak_memory_mb())
"""


def test_a_system_that_does_not_tell_its_memory_is_taken_for_a_small_one(monkeypatch):
    monkeypatch.delenv(memory.MEMORY_LIMIT, raising=False)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stdout.split() == ["6400000000.0", "0.0"]


def test_containers_limit_memory(unlimited, monkeypatch, tmp_path):
    for version, text in enumerate(("max\n", "1000000000\n")):
        (tmp_path / f"v{version}").write_text(text)
    monkeypatch.setattr(memory, "_CONTAINER", [tmp_path / name for name in ("v0", "v1", "none")])
    assert memory.memory_limit() == 0.8e9
    assert memory.most_cells() == 3_162


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux holds to it")
def test_limits_of_the_process_count(unlimited):
    code = "from matrixdp.exact.resources import memory_limit\nprint(memory_limit())"
    limited = ["/bin/sh", "-c", 'ulimit -v 4000000; exec "$0" -c "$1"', sys.executable, code]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=600, check=True)
    assert float(done.stdout) == 0.8 * 4_096_000_000


def test_queries_on_too_many_cells_are_refused_before_their_gram_matrix_is_made(monkeypatch):
    monkeypatch.setattr(KronSum, "dense", lambda *given: pytest.fail("it was made"))
    line = mdp.Domain({"a": 100, "b": 100})
    workload = mdp.Workload(line, mdp.product(a="prefix"), mdp.product(b="prefix"))
    with pytest.raises(TooLargeError):
        select(workload, noise=LAPLACE, mechanism="workload")
