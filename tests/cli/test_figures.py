"""What is told of a run beside its errors."""

import subprocess
import sys

PROGRAM = """
import subprocess, sys
held = bytearray(400_000_000)
told = "from matrixdp.cli.console import peak_memory_mb; print(peak_memory_mb())"
print(subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout)
"""


def test_memory_is_not_that_of_the_program_that_started_it() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert 10 < float(done.stdout) < 300
