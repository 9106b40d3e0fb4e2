"""The verifier in one file, which shares no code with the package."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parent.parent / "verifier" / "verify_cost.py"
SPECIFICATION = importlib.util.spec_from_file_location("verify_cost", PROGRAM)
assert SPECIFICATION is not None
assert SPECIFICATION.loader is not None
verifier: Any = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(verifier)


def found(folder: Path) -> tuple[list[str], list[str]]:
    """Return what holds in a folder and what does not; whatever is not decided is neither."""
    lines = [(holds, words) for holds, words in verifier.checks(folder)]
    return [w for holds, w in lines if holds is True], [w for holds, w in lines if holds is False]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the program on a folder, with or without options."""
    # -I: neither this package nor the environment; -S: nothing that is installed
    command = [sys.executable, "-I", "-S", str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)
