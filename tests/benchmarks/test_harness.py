"""What a program used is told of the program alone, and only of that of this tree."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

PROGRAM = """
import sys

from harness import measured

held = bytearray(200_000_000)
small = measured([sys.executable, "-c", "pass"], 60)
assert small.status == 0 and small.peak_mb < 100, small
large = measured([sys.executable, "-c", "x = bytearray(150_000_000); print(len(x)); exit(1)"])
assert large.status == 1 and large.output == "150000000\\n" and 150 < large.peak_mb < 190, large
import harness, os, psutil

harness.WIDE = 500  # other work on the machine may take nearly all of it
busy = measured([sys.executable, "-c", "while True: pass"], 1)
assert busy.status < 0 and 0.5 < busy.cpu_seconds < 2, busy

harness.WIDE = 0  # before the program has begun
assert measured(["sleep", "5"], 1).status < 0

harness.WIDE, harness._LEAVE = 2, 0.3
sleep = ["sleep", f"300.{os.getpid()}"]  # another run of the tests has its own
for first, status in ("", -15), ("trap '' TERM; ", -9):
    late = measured(["/bin/sh", "-c", f"{first}{' '.join(sleep)}; exit 0"], 1)
    assert late.status == status and late.seconds < 200 and late.peak_mb < 100, late
left = [one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == sleep]
assert not left, left
"""


def test_memory_is_that_of_the_program_and_limits_end_it() -> None:
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_other_matrixdp_is_measured(tmp_path: Path) -> None:
    (tmp_path / "matrixdp").mkdir()
    (tmp_path / "matrixdp" / "__init__.py").touch()
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    for script in ("run.py", "sampler.py"):
        done = subprocess.run(
            [sys.executable, str(BENCHMARKS / script)], env=environment, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert f"matrixdp would be {tmp_path / 'matrixdp'}; these benchmarks measure" in done.stderr
        assert "Traceback" not in done.stderr


def test_an_interrupted_run_ends_what_it_began_and_says_so(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path)]
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--only", "mix-20-20", *out]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    root = psutil.Process(run.pid)
    begun: list[psutil.Process] = []
    while len(begun) < 2 and run.poll() is None:  # the launcher, and the part
        time.sleep(0.05)
        begun = root.children(recursive=True)
    run.terminate()
    assert run.communicate()[0] == "interrupted; not measured: mix-20-20\n"
    assert run.returncode == 130
    assert psutil.wait_procs(begun, timeout=120)[1] == []


def test_a_part_without_its_file_is_left_out_and_named(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--only", "model-whole", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "left out without --adult FILE: model-whole\n")
    done = subprocess.run([*command, "--adult", "none.csv"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "--adult: there is no file none.csv\n")
    peers = [*command[:2], "--only", "peers-fair", "--out", str(tmp_path), "--adult", __file__]
    done = subprocess.run(peers, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "left out without --mechanisms DIR: peers-fair\n")
    done = subprocess.run([*peers, "--mechanisms", "none"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "--mechanisms: there is no folder none\n")
