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
from collections.abc import Callable
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


def child(
    name: str, corpus: Path, out: Path, cases: int, seconds: int, seed: int, unguided: bool = False
) -> None:
    """Fuzz one target in this process; ends with the process."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["matrixdp", "yaml"]):
        target = targets()[name]
    from tests.fuzz.oracle import MOST_BYTES, Finding, judge, limit_memory

    case = target.opened(Path(tempfile.mkdtemp()))
    found = _Found(out)
    limit_memory(MOST_BYTES)

    def once(data: bytes) -> None:
        try:
            found.taken += judge(case, data)
        except Finding as error:
            found.add(data, error)
        finally:
            found.cases += 1
            found.write(at_once=found.cases >= cases)

    if unguided:
        _unguided(once, corpus, found, cases, seconds, seed)
        found.write(at_once=True)
        return
    options = [
        f"-runs={cases}", f"-max_total_time={seconds}", "-timeout=120", f"-artifact_prefix={out}/",
        f"-dict={out.parent / 'dictionary'}", "-max_len=16384", f"-seed={seed}", "-print_final_stats=1",
        "-verbosity=0", "-rss_limit_mb=0", str(corpus),
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], once)
    try:
        atheris.Fuzz()
    finally:
        found.write(at_once=True)


def _unguided(
    once: Callable[[bytes], None], corpus: Path, found: _Found, cases: int, seconds: int, seed: int
) -> None:
    """Give random changes of what is in the corpus: far more cases in the same time, and no coverage."""
    random = Random(seed)  # noqa: S311
    known = [path.read_bytes() for path in sorted(corpus.iterdir())]
    words = dictionary_words()
    end = time.monotonic() + seconds
    while found.cases < cases and time.monotonic() < end:
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


def fuzz(
    name: str, corpora: Path, out: Path, cases: int, seconds: int, unguided: bool = False
) -> dict[str, int]:
    """Fuzz one target in processes of its own until it had its cases or seconds; return what was counted."""
    own, corpus = out / name, corpora / name
    own.mkdir(parents=True, exist_ok=True)
    corpus.mkdir(parents=True, exist_ok=True)
    for place, seed in enumerate(targets()[name].seeds()):
        (corpus / f"seed-{place}").write_bytes(seed)
    total = {"cases": 0, "taken": 0}
    ended = 0
    end = time.monotonic() + seconds
    while total["cases"] < cases and (left := int(end - time.monotonic())) > 0 and ended < _GREATEST:
        (own / "counted.json").write_text('{"cases": 0, "taken": 0}')
        command = [sys.executable, "-m", "tests.fuzz.run", "--child", name, "--corpus", str(corpus)]
        command += ["--out", str(own), "--cases", str(cases - total["cases"]), "--seconds", str(left)]
        command += ["--unguided"] * unguided
        with (own / "log.txt").open("a") as log:
            done = subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False)
        counted = json.loads((own / "counted.json").read_text())
        total["cases"] += counted["cases"]
        total["taken"] += counted["taken"]
        ended += done.returncode != 0
        if not done.returncode and not counted["cases"]:
            break
    # a process that ended otherwise left its input in a file crash-*, timeout-* or oom-*
    return total | {"findings": ended + len(list(own.glob("finding-*.bin")))}


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
        seed = SystemRandom().randrange(2**31)
        child(given.child, given.corpus, given.out, given.cases, given.seconds, seed, given.unguided)
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    words = (f'"{word.decode()}"\n' for word in dictionary_words())
    (given.out / "dictionary").write_text("".join(words))
    findings = 0
    for name in given.targets.split(",") if given.targets else targets():
        started = time.monotonic()
        total = fuzz(name, given.corpus, given.out, given.cases, given.seconds, given.unguided)
        findings += total["findings"]
        took = time.monotonic() - started
        sys.stdout.write(
            f"{name}: {total['cases']:,} cases ({total['taken']:,} taken), {total['findings']} findings, "
            f"{took:.0f} s\n"
        )
        sys.stdout.flush()
    if findings:
        sys.stdout.write(f"Findings are in {given.out}: finding-*, crash-*, timeout-*.\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
