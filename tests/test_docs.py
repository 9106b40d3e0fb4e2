"""The code in the documentation runs, its links lead somewhere, and its commands and codes exist."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.specification import load_discovery

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: What stands under Python as its output.
SHOWN = re.compile(r"^```python\n(?:(?!```).*\n)*```\n\n```\n((?:(?!```).*\n)*)```$", re.MULTILINE)
TEXTS = {".md", ".py", ".toml", ".ipynb", ".html", ".js", ".yaml"}
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Lines of code without a fence.
INDENTED = re.compile(r"(?:^ {4}\S.*\n)+", re.MULTILINE)
BUNDLED = ROOT / "examples" / "randhie.parquet"


def fenced(page: str | Path, kind: str) -> list[str]:
    """Return the blocks of one kind in a page."""
    return [part for own, part in FENCED.findall((ROOT / page).read_text(encoding="utf-8")) if own == kind]


def followed(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page in a folder, with what it says installed alone."""
    program = [sys.executable, str(ROOT / "tests" / "as_installed.py"), str(page)]
    return subprocess.run(program, cwd=folder, capture_output=True, text=True)


#: Run where there is a session of Spark already: in tests/sources/test_spark.py.
ELSEWHERE = {"clusters.md", "run-on-spark.md"}
#: Whose files and commands are tried, too.
GUIDES = [page for page in PAGES if page.parent.name == "howto" and page.name not in {*ELSEWHERE, "index.md"}]
WITH_PYTHON = [
    page for page in PAGES if fenced(page, "python") and page.name not in ELSEWHERE and page not in GUIDES
]
SLOW = ("python.md", "tutorial.md")
#: Pages that show what their code prints.
SHOWING = [ROOT / "docs" / name for name in ("index.md", "tutorial.md", "howto/distinct-persons.md")]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page.name in SLOW or page in GUIDES else ())
        for page in [*WITH_PYTHON, *GUIDES]
    ],
    ids=lambda page: page.name,
)
def test_pages_run_where_only_what_they_say_is_installed(page: Path, tmp_path: Path) -> None:
    """Guides are followed with their files and commands."""
    (tmp_path / "examples").mkdir()
    for table in BUNDLED.parent.glob("*.parquet"):
        shutil.copy(table, tmp_path / "examples")
    done = followed(page, tmp_path)
    assert done.returncode == 0, done.stderr
    printed = settled(done.stdout)
    shown = [line for found in SHOWN.findall(page.read_text(encoding="utf-8")) for line in settled(found)]
    assert [line for line in shown if line not in printed] == []
    assert shown or page not in SHOWING


@pytest.mark.parametrize(
    ("said", "runs"), [("", False), ("`pip install pandas`", True), ("`pip install '.[mbi]'`", False)]
)
def test_a_page_lacks_what_it_does_not_say(said: str, runs: bool, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{said}\n\n```python\nimport matrixdp, pandas\n```\n", encoding="utf-8")
    done = followed(page, tmp_path)
    assert (done.returncode == 0, "No module named 'pandas'" in done.stderr) == (runs, not runs)


def settled(text: str) -> list[str]:
    """Return lines without what noise decides, estimates and intervals, or the processor: gaps."""
    noisy = r"-?[\d.,]+"
    quantile = rf"(?P<share>\d+%) {noisy} {noisy} {noisy}$"
    answer = rf"{noisy} (?P<stddev>[\d.]+) {noisy} {noisy}$"
    figures = re.compile(rf"{quantile}|{answer}|(?:, gap|; at most) .*")
    return [
        figures.sub(lambda found: found["share"] or found["stddev"] or "", " ".join(line.split()))
        for line in text.splitlines()
    ]


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of every command in a page's blocks, without the program's name and any redirection."""
    text = page.read_text(encoding="utf-8")
    fenced = [part for kind, part in FENCED.findall(text) if kind in ("", "sh")]
    for part in [*fenced, *INDENTED.findall(FENCED.sub("", text))]:
        lines = part.splitlines()
        for at, line in enumerate(lines):
            if not re.match(r"(?:\$ | {4})?matrixdp ", line):
                continue
            # a quoted argument goes on until its quote ends
            ends = (n for n in range(at + 1, len(lines) + 1) if "\n".join(lines[at:n]).count('"') % 2 == 0)
            words = shlex.split("\n".join(lines[at : next(ends)]).removeprefix("$ "), comments=True)
            yield words[1 : words.index(">") if ">" in words else None]


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))], ids=lambda page: page.name)
def test_commands_have_the_options_and_arguments_that_are_written(page: Path) -> None:
    program = get_command(app)
    for words in commands(page):
        context = program.make_context("matrixdp", list(words), resilient_parsing=True)
        command = program.get_command(context, words[0])  # type: ignore[attr-defined]
        assert command is not None, words
        while hasattr(command, "commands"):
            words = words[1:]
            command = command.commands[words[0]]
        with command.make_context(words[0], words[1:], parent=context):
            pass


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_rows_of_tables_stand_under_a_head_and_have_its_columns(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for table_text in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [re.sub(r"`[^`]*`|\\\|", "", row) for row in table_text.splitlines()]
        assert len(rows) > 1, rows
        assert re.fullmatch(r"[|:-]+", rows[1]), rows[:2]
        assert {row.count("|") for row in rows} == {rows[0].count("|")}, rows[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_what_is_said_to_install_comes_from_a_clone() -> None:
    """No index has the package under its name, where anybody could register it."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    folders = ("src", "docs", "examples", "benchmarks", "verifier", ".ci")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in TEXTS]
    assert len(files) > 300
    named = set()
    for path in [*ROOT.glob("*.md"), *files]:
        text = path.read_text(encoding="utf-8")
        found = re.search(r"pip3? install (?:-\S+ )*[\"'`]*matrixdp|matrixdp\[[a-z]+\]`", text)
        assert found is None, (path, found)
        named |= set(re.findall(r"'\.\[(\w+)\]'|with_extra\([\"'](\w+)", text))
    assert {name for pair in named for name in pair if name} - set(extras) == set()
    assert len(named) > 5


def test_every_page_is_in_the_index_of_its_folder() -> None:
    pages = [page for page in PAGES if page.is_relative_to(ROOT / "docs") and page.name != "index.md"]
    assert pages
    for page in pages:
        index = (page.parent / "index.md").read_text(encoding="utf-8")
        assert f"({page.name})" in index, page
    assert "(benchmarks/index.md)" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_the_architecture_lists_packages_in_the_order_of_imports() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page[page.index("## Packages") : page.index("## The main path")]
    listed = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", table, re.MULTILINE)
    assert ["__main__", *reversed(listed)] == settings["contracts"][0]["layers"]


#: What stands around the fragments of specifications that pages show: keys, and what they hold by themselves.
WHOLE = {
    "domain": """
  sex: [female, male]
  age: {min: 0, max: 114}
  income: {edges: [0, 10000, 25000, 50000]}
  hours: {min: 0, max: 100, bins: 20}
  code: 40
  smokes: [no, yes]
  married: [no, yes]
  pregnant: [no, yes]
  deductible: [no, yes]
  limitation: [none, some, unknown]
""",
    "workload": """
  - marginals: 1
  - product: {age: prefix}
    name: age CDF
""",
    "privacy": " {mu: 1}\n",
}
SECTION = re.compile(r"^(\w+):(.*\n(?:[ #].*\n)*)", re.MULTILINE)


def whole(fragment: str) -> str:
    """Return a specification with a fragment of one: of whole keys, of entries or of attributes."""
    if fragment.startswith("  - "):
        fragment = "workload:\n" + fragment
    elif fragment.startswith("  "):
        named = re.findall(r"^  (\w+):", fragment, re.MULTILINE)
        whole_domain = WHOLE["domain"].splitlines(True)
        others = [line for line in whole_domain if line.strip().split(":")[0] not in named]
        fragment = "domain:" + "".join(others) + fragment
    own = dict(SECTION.findall(fragment))
    return "".join(f"{key}:{held}" for key, held in {**WHOLE, **own}.items())


def test_fragments_of_specifications_are_read(tmp_path: Path) -> None:
    (tmp_path / "counties.txt").write_text("Kings\nQueens\nOrange\n")
    (tmp_path / "areas.csv").write_text("tract,county,state\n36047000100,Kings,NY\n51760010100,,VA\n")
    (tmp_path / "regions.csv").write_text("zip,region\n10001,east\n90001,west\n")
    (tmp_path / "places.csv").write_text("city,state,region\nRome,GA,South\nRome,NY,North\n")
    (tmp_path / "schools.csv").write_text("school_id,type\n1,public\n2,private\n")
    np.save(tmp_path / "queries.npy", np.ones((1, 2 * 115)))
    fragments = fenced("docs/specification.md", "yaml")
    for fragment in fragments:
        path = tmp_path / "fragment.yaml"
        if "{discover: " in fragment:
            path.write_text(fragment, encoding="utf-8")
            assert load_discovery(path)[0].domain
            continue
        path.write_text(whole(fragment), encoding="utf-8")
        try:
            assert mdp.load_specification(path).workload.queries > 0
        except mdp.MatrixDPError as error:
            raise AssertionError(f"{fragment}: {error}") from error
    assert len(fragments) > 10


@pytest.mark.slow
def test_the_readme_shows_what_its_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its specification and commands run; what noise does not decide is compared."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [specification] = fenced("README.md", "yaml")
    assert len(text.split()) <= 900
    (tmp_path / "examples").mkdir()
    shutil.copy(BUNDLED, tmp_path / "examples")
    (tmp_path / "health.yaml").write_text(specification, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    printed = [CliRunner(env={"COLUMNS": "88"}).invoke(app, words) for words in commands(ROOT / "README.md")]
    assert [done.exit_code for done in printed] == [0, 0, 0], printed
    [shown] = re.findall(r"^\$ matrixdp answer .*\n((?:[^`].*\n)+)", text, re.MULTILINE)

    def words(table: str) -> list[str]:
        lines = [line for line in table.splitlines() if re.match("[┃│]", line)]
        rows = re.sub(r"\d+ ± \d+ *│ *[ABCF]", "N", "\n".join(lines))
        return re.sub("[│┃]", " ", rows).split()

    assert words(shown) == words(printed[-1].stdout)


def test_the_figure_shows_what_was_measured() -> None:
    benchmarks = ROOT / "benchmarks"
    code = "import json, readme_figure as f; r = f.Results(json.loads(f.RESULTS.read_text())['parts'])"
    program = f"{code}; assert f.FIGURE.read_text(encoding='utf-8') == f.drawn(*f.rows(r))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=benchmarks, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\npython benchmarks/readme_figure.py"


def test_the_statement_of_the_specification_is_taken() -> None:
    [statement] = fenced("docs/specification.md", "sql")
    edges = {"hours": {"edges": [0, 40, 100]}, "income": {"edges": [0, 10_000, 20_000]}}
    domain = mdp.Domain({"sex": ["female", "male"], "age": range(70), **edges})
    # three counts in each of (stage, sex), stage and all: no man is a minor
    assert mdp.Workload(domain, mdp.sql(statement)).queries == 3 * (3 + 2 + 1)


HOURS = "SELECT COUNT(*) FROM t\n      WHERE hours > 40"
#: The specifications whose errors docs/specification.md shows: domain, workload and privacy.
WRONG = (
    ("\n  age: 9", "\n  - sql: SELECT MAX(age) FROM t", "{mu: 1}"),
    ("\n  hours: {edges: [0, 40, 60]}", f"\n  - sql: |\n      {HOURS}", "{mu: 1}"),
    ("{age: 9}", "[{product: {agee: identity}}]", "{mu: 1}"),
    ("{sex: [female, male, female]}", "[{marginals: 1}]", "{mu: 1}"),
    ("{income: {edges: [0, 10, 5]}}", "[{marginals: 1}]", "{mu: 1}"),
    ("{age: 9}", "[{marginals: 1, weight: 0}]", "{mu: 1}"),
    ("{age: 9}", "[{marginals: 1}]", "{epsilon: 1, delta: 1.5}"),
    ("{age: 9}", "[]", "{mu: 1}"),
    ("{age: 9, age: 8}", "[{marginals: 1}]", "{mu: 1}"),
)


def test_errors_of_specifications_are_those_that_are_shown() -> None:
    shown = "".join(fenced("docs/specification.md", "")).splitlines()
    assert len(shown) == len(WRONG)
    for line, (domain, workload, privacy) in zip(shown, WRONG, strict=True):
        with pytest.raises(mdp.MatrixDPError) as error:
            mdp.load_specification(f"domain: {domain}\nworkload: {workload}\nprivacy: {privacy}\n")
        assert str(error.value).partition(": found ")[0] == line.partition(": found ")[0]


@pytest.mark.parametrize("page", ["privacy.md", "mathematics.md"])
def test_no_two_theorems_of_a_page_have_one_number(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    numbers = re.findall(r"^(?:#+ |.*\*)Theorem (\d+)\b", text, re.MULTILINE)
    assert numbers == [str(number + 1) for number in range(len(numbers))] != []
