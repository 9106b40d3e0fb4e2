"""DuckDB as the environment has it."""

import subprocess
import sys

import numpy as np
import pytest

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import SourceError
from matrixdp.exact.memory import MEMORY_LIMIT
from matrixdp.sources import open_source
from matrixdp.sources.database import THREADS, connect

DOMAIN = Domain({"age": 10})


def setting(name, **options):
    with connect(**options) as connection:
        return connection.execute("SELECT current_setting(?)", [name]).fetchone()[0]


def test_the_environment_grants_memory_and_threads(monkeypatch):
    monkeypatch.setenv(MEMORY_LIMIT, "512MiB")
    monkeypatch.setenv(THREADS, "3")
    assert setting("memory_limit") == "512.0 MiB"
    assert setting("threads") == 3
    assert setting("threads", threads=1) == 1
    assert setting("autoinstall_known_extensions") in (False, "false")
    source = open_source({"age": np.arange(10).repeat(3)})
    ((_, counts),) = source.marginals(DOMAIN, [("age",)], OutOfDomain())
    assert counts.tolist() == [3] * 10


@pytest.mark.parametrize(
    ("variable", "text"),
    [(THREADS, "0"), (THREADS, "-1"), (THREADS, "all"), (THREADS, "2.5"), (MEMORY_LIMIT, "80%"),
     (MEMORY_LIMIT, "4"), (MEMORY_LIMIT, "4GB'"), (MEMORY_LIMIT, "much"),
     (MEMORY_LIMIT, "9999999TB")],
)  # fmt: skip
def test_other_values_are_refused_before_anything_is_counted(monkeypatch, variable, text):
    monkeypatch.setenv(variable, text)
    with pytest.raises(SourceError, match=f"^{variable}: found .*; expected a "):
        open_source({"age": [1]}).marginals(DOMAIN, [("age",)], OutOfDomain())


def test_nothing_tells_how_long_it_takes():
    with connect() as connection:
        assert connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)


FORKS = """
import os, sys
import subprocess
import sys

import numpy as np
from matrixdp.domain import Domain, OutOfDomain
from matrixdp.sources import open_source

def counts():
    return open_source({"a": np.arange(60) % 3}).marginals(Domain({"a": 3}), [("a",), ()], OutOfDomain())

def copied():
    child = os.fork()
    if not child:
        sys.exit(int(dict(counts())[()]))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

begun = counts()
next(begun)
print(copied(), [int(own) for _, own in begun], copied())
"""


def test_a_copy_of_the_process_counts_and_ends_also_in_the_midst_of_a_count():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["60", "[60]", "60"]
