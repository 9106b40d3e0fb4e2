"""What a program used is told of the program alone."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

PROGRAM = """
import sys

from harness import measured

held = bytearray(200_000_000)
small = measured([sys.executable, "-c", "pass"], 60)
assert small.status == 0 and small.peak_mb < 100, small
large = measured([sys.executable, "-c", "x = bytearray(150_000_000); print(len(x)); exit(1)"])
assert large.status == 1 and large.output == "150000000\\n" and 150 < large.peak_mb < 190, large
busy = measured([sys.executable, "-c", "while True: pass"], 1)
assert busy.status < 0 and 0.5 < busy.cpu_seconds < 2, busy
waiting = "import subprocess; subprocess.run(['sleep', '60'])"
import harness

harness.WIDE = 0.3
late = measured([sys.executable, "-c", waiting], 1)
assert late.status == -9 and late.seconds < 20 and late.peak_mb < 100, late
"""


def test_memory_is_that_of_the_program_and_limits_end_it() -> None:
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
