import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import matrixdp as mdp
from matrixdp.cli.app import app

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
#: Columns of tables, and lines, in which noise or the machine decides what stands.
DRAWN = {"estimate", "95 % interval", "people", "often"}
DRAWN_LINES = ("time, memory", "records  ", "...")


def run(words: list[str]) -> Result:
    """Run a command in a window as wide as the README's."""
    return CliRunner(env={"COLUMNS": "90"}).invoke(app, words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the examples, in which the commands run."""
    made = tmp_path_factory.mktemp("readme")
    shutil.copytree(EXAMPLES, made / "examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
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
        yield shlex.split("\n".join(lines[:length])), lines[length:]


def settled(lines: list[str]) -> list[str]:
    """Return what neither noise nor the machine decides: of rows of tables the columns, else whole lines."""
    found, kept = [], list[int]()
    for line in lines:
        if line.startswith("┃"):
            kept = [at for at, cell in enumerate(line.split("┃")) if cell.strip() not in DRAWN]
            found.append(line)
        elif line.startswith("│"):
            found.append("│".join(line.split("│")[at] for at in kept))
        elif line[:1].strip() and line[0] not in "┏┡└" and not line.startswith(DRAWN_LINES):
            found.append(line)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("about", ["select", "release", "answer released 'product"])
def test_the_readme_shows_what_is_printed(about: str, released: Result) -> None:
    for words, shown in readme(about):
        done = released if words[0] == "release" else run(words)
        printed = settled((done.stdout + done.stderr).splitlines())
        # sentences may break elsewhere
        text = " ".join(" ".join(printed).split())
        expected = settled(shown)
        assert expected
        missing = [line for line in expected if line not in printed and " ".join(line.split()) not in text]
        assert missing == [], words


def test_the_bundled_table_is_small_and_says_where_it_is_from():
    assert (EXAMPLES / "randhie.parquet").stat().st_size < 500_000
    assert "public domain" in (EXAMPLES / "README.md").read_text()
