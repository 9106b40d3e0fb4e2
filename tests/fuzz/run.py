"""``make fuzz``: every target by coverage guidance, in processes of bounded time and memory.

``python -m tests.fuzz.run --help`` lists what can be chosen.

A case that is a finding is written to the folder of findings, the first of each kind, and the target goes on
until it has had as many cases or seconds as were asked for. The exit status is 1 if there was a finding.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

ROOT = Path(__file__).parents[2]
_GREATEST = 100


def targets() -> dict[str, Any]:
    """Return the targets; what they import is instrumented where that is asked for first."""
    found: dict[str, Any] = import_module("tests.fuzz.targets").TARGETS
    return found


def dictionary_words() -> list[bytes]:
    """Return the words of specifications."""
    from tests.fuzz.documents import keys

    return [word.encode() for word in keys() if word.isprintable() and '"' not in word and "\\" not in word]


class _Found:
    """What was counted and found in one folder, written there now and then: a process may end at any time."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.cases = self.taken = 0
        self._known = {path.name for path in out.glob("finding-*.bin")}
        self._written = time.monotonic()

    def add(self, data: bytes, error: Exception) -> None:
        """Keep the input of a finding that is like no other, and what it raised."""
        cause = error.__cause__ or error
        place = [frame for frame in traceback.extract_tb(cause.__traceback__) if frame.name != "hold"][-1]
        said = f"{type(cause).__name__} {place.filename} {place.lineno}"
        name = f"finding-{hashlib.sha256(said.encode()).hexdigest()[:12]}.bin"
        if name not in self._known:
            self._known.add(name)
            (self.out / name).write_bytes(data)
            (self.out / name).with_suffix(".txt").write_text(
                "".join(traceback.format_exception(error)), errors="replace"
            )

    def write(self, *, at_once: bool) -> None:
        """Write what was counted down, every few seconds or at once."""
        if at_once or time.monotonic() - self._written > 2:
            self._written = time.monotonic()
            (self.out / "counted.json").write_text(json.dumps({"cases": self.cases, "taken": self.taken}))


def child(name: str, given: argparse.Namespace) -> None:
    """Fuzz one target in this process; ends with the process."""
    atheris: Any = None if given.unguided else import_module("atheris")
    with atheris.instrument_imports(include=["matrixdp", "yaml"]) if atheris else nullcontext():
        target = targets()[name]
    from tests.fuzz.oracle import MOST_BYTES, Finding, judge, limit_memory

    case = target.opened(Path(tempfile.mkdtemp()))
    found = _Found(given.out)
    seed = SystemRandom().randrange(2**31)
    limit_memory(MOST_BYTES)

    def once(data: bytes) -> None:
        try:
            found.taken += judge(case, data)
        except Finding as error:
            found.add(data, error)
        finally:
            found.cases += 1
            found.write(at_once=found.cases >= given.cases)

    try:
        if given.unguided:
            _unguided(once, found, given, Random(seed))  # noqa: S311
            return
        options = [
            f"-runs={given.cases}", f"-max_total_time={given.seconds}", "-timeout=120",
            f"-artifact_prefix={given.out}/", f"-dict={given.out.parent / 'dictionary'}", "-max_len=16384",
            f"-seed={seed}", "-print_final_stats=1", "-verbosity=0", "-rss_limit_mb=0", str(given.corpus),
        ]  # fmt: skip
        atheris.Setup([sys.argv[0], *options], once)
        atheris.Fuzz()
    finally:
        found.write(at_once=True)


def _unguided(
    once: Callable[[bytes], None], found: _Found, given: argparse.Namespace, random: Random
) -> None:
    """Give random changes of what is in the corpus: far more cases in the same time, and no coverage."""
    known = [path.read_bytes() for path in sorted(given.corpus.iterdir())]
    words = dictionary_words()
    end = time.monotonic() + given.seconds
    while found.cases < given.cases and time.monotonic() < end:
        data = bytearray(random.choice(known))
        for _ in range(random.randrange(1, 5)):
            place = random.randrange(len(data) + 1)
            kind = random.randrange(5)
            if kind == 0:
                data[place:place] = random.randbytes(random.randrange(1, 16))
            elif kind == 1:
                del data[place : place + random.randrange(1, 8)]
            elif kind == 2:
                data[place:place] = random.choice(words)
            elif kind == 3:
                other = random.choice(known)
                start = random.randrange(len(other) + 1)
                data[place:] = other[start : start + 512]
            else:
                data[place : place + 1] = random.randbytes(1)
        once(bytes(data))


def fuzz(name: str, given: argparse.Namespace) -> Counter[str]:
    """Fuzz one target in processes of its own until it had its cases or seconds; return what was counted."""
    own, corpus = given.out / name, given.corpus / name
    own.mkdir(parents=True, exist_ok=True)
    corpus.mkdir(parents=True, exist_ok=True)
    for place, seed in enumerate(targets()[name].seeds()):
        (corpus / f"seed-{place}").write_bytes(seed)
    total: Counter[str] = Counter()
    end = time.monotonic() + given.seconds
    while (
        total["cases"] < given.cases
        and (left := int(end - time.monotonic())) > 0
        and total["findings"] < _GREATEST
    ):
        (own / "counted.json").write_text('{"cases": 0, "taken": 0}')
        command = [sys.executable, "-m", "tests.fuzz.run", "--child", name, "--corpus", str(corpus)]
        command += ["--out", str(own), "--cases", str(given.cases - total["cases"]), "--seconds", str(left)]
        command += ["--unguided"] * given.unguided
        with (own / "log.txt").open("a") as log:
            done = subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False)
        counted = json.loads((own / "counted.json").read_text())
        total.update(counted)
        # a process that ended otherwise left its input in a file crash-*, timeout-* or oom-*
        total["findings"] += done.returncode != 0
        if not done.returncode and not counted["cases"]:
            break
    total["findings"] += len(list(own.glob("finding-*.bin")))
    return total


def main() -> int:
    """Fuzz every target, or those that were asked for, and print what was counted."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--cases", type=int, default=100_000, help="for each target")
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument(
        "--unguided", action="store_true", help="random changes of the corpus, many times faster"
    )
    parser.add_argument("--targets", help="names with commas between them; all where it is left out")
    parser.add_argument("--corpus", type=Path, default=ROOT / "out" / "fuzz" / "corpus")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fuzz")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        child(given.child, given)
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "dictionary").write_text("".join(f'"{word.decode()}"\n' for word in dictionary_words()))
    findings = 0
    for name in given.targets.split(",") if given.targets else targets():
        started = time.monotonic()
        total = fuzz(name, given)
        findings += total["findings"]
        took = time.monotonic() - started
        told = f"{total['taken']:,} taken), {total['findings']} findings, {took:.0f} s\n"
        sys.stdout.write(f"{name}: {total['cases']:,} cases ({told}")
        sys.stdout.flush()
    if findings:
        sys.stdout.write(f"Findings are in {given.out}: finding-*, crash-*, timeout-*.\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
