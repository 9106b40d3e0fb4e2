import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import matrixdp as mdp
from matrixdp import strategy
from matrixdp.cli.app import app

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
#: Columns of tables, and lines, in which noise or the machine decides what stands.
DRAWN = {"estimate", "95% interval", "people", "often"}
DRAWN_LINES = ("time, memory", "records  ", "...")
#: How the README's blocks of commands begin.
ABOUTS = (
    "draft",
    "select",
    "release",
    "answer released 'product",
    "answer released 'quantile",
    "model",
    "ledger",
)
#: Take seconds, show nothing in the README, and have tests of their own; tests/test_docs.py reads them.
NOT_RUN = ("report", "model", "synthesize")


def run(words: list[str]) -> Result:
    """Run a command in a window as wide as the README's."""
    return CliRunner(env={"COLUMNS": "90"}).invoke(app, words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the examples, in which the commands run."""
    made = tmp_path_factory.mktemp("readme")
    shutil.copytree(EXAMPLES, made / "examples")
    (made / "people.csv").write_text("id,age,sex\n1,31,f\n2,64,m\n")
    (made / "people-2019.csv").write_text("age,sex\n30,f\n63,m\n")
    known, choose = dict[str, mdp.Strategy](), mdp.select

    def select(workload: mdp.Workload, **words: Any) -> mdp.Strategy:
        """Select once what several commands select alike."""
        asked = repr((workload.queries, sorted((n, repr(w)) for n, w in words.items() if n != "progress")))
        if asked not in known:
            known[asked] = choose(workload, **words)
        return known[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        patch.setattr(strategy, "select", select)
        yield made


@pytest.fixture(scope="module")
def released(folder: Path) -> Result:
    """What the release of the bundled table printed."""
    return run(["release", "examples/randhie.yaml", "--out", "released"])


@pytest.mark.slow
def test_the_bundled_table_is_released(folder: Path, released: Result) -> None:
    assert released.exit_code == 0, released.stderr
    release = mdp.load_release(folder / "released")
    assert pq.read_table(folder / "released" / "answers.parquet").equals(release.answers)
    rows = release.answer(mdp.marginals([[], ["health"], ["limitation"]])).to_pylist()
    true = [20190, 11019, 7309, 1560, 302, 16751, 2387, 1052]
    assert all(abs(row["estimate"] - t) < 7 * row["stddev"] for row, t in zip(rows, true, strict=True))
    assert release.statement.epsilon == pytest.approx(1)


def readme(about: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the commands of the README's block with some words, each with the lines under it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks: list[str] = re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    [block] = [block for block in blocks if block.startswith(f"$ matrixdp {about}")]
    for part in re.split(r"^\$ matrixdp ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        # a quoted argument goes on until its quote ends
        length = next(n for n in range(1, len(lines) + 1) if "\n".join(lines[:n]).count('"') % 2 == 0)
        yield shlex.split("\n".join(lines[:length]), comments=True), lines[length:]


def settled(lines: list[str]) -> list[str]:
    """Return what neither noise nor the machine decides: of rows of tables the columns, else whole lines."""
    found, kept = [], list[int]()
    for line in lines:
        if line.startswith("┃"):
            kept = [at for at, cell in enumerate(line.split("┃")) if cell.strip() not in DRAWN]
            found.append(line)
        elif line.startswith("│"):
            found.append("│".join(line.split("│")[at] for at in kept))
        elif line.strip() and line[0] not in "┏┡└" and not line.strip().startswith(DRAWN_LINES):
            found.append(line)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("about", ABOUTS)
def test_the_readme_shows_what_is_printed(about: str, released: Result) -> None:
    for words, shown in readme(about):
        if ">" in words:  # into a file
            words = words[: words.index(">")]
        if words[0] in NOT_RUN:
            assert shown == []
            continue
        done = released if words[-1] == "released" else run(words)
        assert done.exit_code == (2 if shown and shown[0].startswith("Error:") else 0), words
        printed = settled((done.stdout + done.stderr).splitlines())
        # sentences may break elsewhere
        text = " ".join(" ".join(printed).split())
        missing = [
            line for line in settled(shown) if line not in printed and " ".join(line.split()) not in text
        ]
        assert missing == [], words


def test_every_command_of_the_readme_is_tried() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tried = sum(len(list(readme(about))) for about in ABOUTS)
    assert tried == len(re.findall(r"^\$ ", text, re.MULTILINE)) > 15


def test_the_bundled_table_is_small_and_says_where_it_is_from():
    assert (EXAMPLES / "randhie.parquet").stat().st_size < 500_000
    assert "public domain" in (EXAMPLES / "README.md").read_text()
