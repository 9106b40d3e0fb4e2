"""DuckDB as the environment has it."""

import os
import platform
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import ExitStack

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.exact.resources import MEMORY_LIMIT
from matrixdp.locks import private_folder
from matrixdp.sources import open_source
from matrixdp.sources.engines import THREADS, connect
from tests.sources.ways import counts

DOMAIN = mdp.Domain({"age": 10})


def setting(name, **options):
    with connect(**options) as connection:
        return connection.execute("SELECT current_setting(?)", [name]).fetchone()[0]


def test_the_environment_grants_memory_and_threads(monkeypatch):
    monkeypatch.setenv(MEMORY_LIMIT, "512MiB")
    monkeypatch.setenv(THREADS, "3")
    assert setting("memory_limit") == setting("memory_limit", memory=1e8) == "512.0 MiB"
    assert setting("threads") == 3
    assert setting("threads", threads=1) == 1
    assert setting("enable_progress_bar") is False
    assert setting("autoinstall_known_extensions") in (False, "false")
    assert counts({"age": np.arange(10).repeat(3)}, DOMAIN) == [3] * 10
    monkeypatch.delenv(MEMORY_LIMIT)
    assert setting("memory_limit", memory=2.0**27) == "128.0 MiB"


FORKS = """
import os, sys

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
        [sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stdout.split() == ["60", "[60]", "60"]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


KILLED = """
import os, signal, sys
from pathlib import Path
from matrixdp.domain import Domain, OutOfDomain
from matrixdp.privacy import Unit
from matrixdp.sources import csv as text
from matrixdp.sources import open_source

def blocks(*given, read=text._blocks):
    for block in read(*given):
        if any(path.stat().st_size > 2**17 for path in Path(os.environ["TMPDIR"]).glob("*/*storage*")):
            os.kill(os.getpid(), signal.SIGKILL)
        yield block

text._BLOCK, text._blocks = 2**16, blocks
source, unit = open_source(sys.argv[1]), Unit(id="who", records=2)
list(source.marginals(Domain({"age": 10}), [("age",)], OutOfDomain(), unit))
"""


def test_nobody_else_can_open_what_is_spilled_and_the_next_run_removes_what_a_killed_one_left(
    tmp_path, temporary, monkeypatch
):
    table = tmp_path / "people.csv"
    lines = (f"{place % 10},Waldemar-4711-abcdefghijklmnopqrstuvwxyz-{place}\n" for place in range(200_000))
    table.write_text("age,who\n" + "".join(lines))
    killed = [sys.executable, "-c", KILLED, str(table)]
    monkeypatch.setenv(MEMORY_LIMIT, "30MB")
    monkeypatch.setenv(THREADS, "1")
    assert subprocess.run(killed, check=False, timeout=600).returncode == -signal.SIGKILL
    (left,) = temporary.iterdir()
    assert list(left.glob("*storage*"))
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    with connect():
        (own,) = temporary.iterdir()
        assert own != left
    assert not list(temporary.iterdir())


def test_only_folders_of_this_user_and_machine_without_a_process_are_removed(
    tmp_path, temporary, monkeypatch
):
    monkeypatch.setattr(platform, "node", lambda: "another")
    with private_folder() as theirs:
        shutil.copytree(theirs, temporary / "matrixdp-another")
    monkeypatch.setattr(platform, "node", lambda: "here")
    with private_folder() as held:
        shutil.copytree(held, tmp_path / "elsewhere")
        shutil.copytree(held, temporary / "matrixdp-left")
        shutil.copytree(held, temporary / "others")
        (temporary / "matrixdp-link").symlink_to(tmp_path / "elsewhere")
        (temporary / "matrixdp-new").mkdir()
        (temporary / "matrixdp-new/owner").touch()
        (temporary / "matrixdp-file").touch()
        before = set(temporary.iterdir())
        with private_folder() as own:
            assert own not in before
            assert before - set(temporary.iterdir()) == {temporary / "matrixdp-left"}
            assert (temporary / "matrixdp-another").exists()
        assert len(list((tmp_path / "elsewhere").iterdir())) == 1
    (temporary / "others").rename(temporary / "matrixdp-others")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with private_folder():
            assert (temporary / "matrixdp-others").exists()
    with private_folder():
        assert not (temporary / "matrixdp-others").exists()


def test_a_copy_of_the_process_leaves_the_folder_alone(temporary):
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder())
        child = os.fork()
        if not child:
            stack.close()
            os._exit(int(folder.exists()))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert not list(temporary.iterdir())


def test_a_temporary_folder_that_cannot_be_used_is_told_before_anything_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    source = open_source({"age": np.arange(100_000) % 10})
    with pytest.raises(mdp.StorageError, match=r"temporary folder cannot be used .*TMPDIR"):
        source.marginals(DOMAIN, [("age",)], mdp.OutOfDomain())
