"""An installed package adds an export, a file format, an engine and a language, by its entry points alone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FILES = {
    "theirs/__init__.py": "",
    "theirs/lines.py": """
from matrixdp.exports import file_mark, register_export

def write(release, tables, folder):
    rows = [f"{one.title}: {release.table(one).num_rows}" for one in tables]
    told = [f"{key} {text}" for key, text in release.told.items()]
    (folder / f"{file_mark(release)}lines.txt").write_text("; ".join(told + rows), encoding="utf-8")

register_export("lines", write)
""",
    "theirs/orc.py": """
import pyarrow.orc
from matrixdp.sources import register_format

register_format("ORC", ".orc", reader=pyarrow.orc.read_table)
""",
    "theirs/engine.py": """
from matrixdp.sources import open_source, register_source

def opened(address):
    return open_source({"sex": ["f"] * int(address.partition("://")[2])})

register_source("ones", lambda table: str(table).startswith("ones://"), opened)
""",
    "theirs/it.py": """
from pathlib import Path
from matrixdp import register_words

register_words(Path(__file__).with_name("it.toml"))
""",
    "theirs/it.toml": 'told_publisher = "Editore"\n',
    "theirs/broken.py": 'raise RuntimeError("of their own")\n',
    "theirs-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n",
    "theirs-1.0.dist-info/entry_points.txt": """
[matrixdp.exports]
lines = theirs.lines
broken = theirs.broken
[matrixdp.formats]
ORC = theirs.orc
[matrixdp.sources]
ones = theirs.engine
[matrixdp.words]
it = theirs.it
""",
    "spec.yaml": """
domain: {sex: [f, m]}
workload: [marginals: [1]]
privacy: {mu: 1}
publication: {language: it, publisher: The Office}
""",
    "plain.yaml": """
domain: {sex: [f, m]}
workload: [marginals: [1]]
privacy: {mu: 1}
publication: {publisher: The Office}
""",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("installed")
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def python(package: Path, code: str) -> str:
    """Run Python beside the package, in a process of its own."""
    paths = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    given = {**os.environ, "PYTHONPATH": paths}
    ran = subprocess.run([sys.executable, "-c", code], cwd=package, env=given, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_commands_find_all_of_it(package: Path) -> None:
    code = """
import pyarrow as pa, pyarrow.orc as orc
from typer.testing import CliRunner
from matrixdp.cli.app import app

def run(*arguments):
    ran = CliRunner().invoke(app, arguments)
    print("status", ran.exit_code, ran.stderr.strip() or ran.stdout.strip())

orc.write_table(pa.table({"sex": ["f"] * 40}), "table.orc")
for data in "table.orc", "ones://40":
    run("release", "spec.yaml", "--out", "out", "--force", "--data", data)
run("show", "out", "--export", "lines", "--format", "lines")
run("show", "out", "--export", "no", "--format", "liness")
run("show", "out", "--export", "no", "--format", "broken")
run("report", "out", "--out", "page.html")
run("release", "plain.yaml", "--out", "plain", "--data", "table.orc")
run("report", "plain", "--language", "it", "--out", "asked.html")
run("draft", "--help")
run("show", "--help")
"""
    told = python(package, code)
    assert "broken" in told
    assert "ORC" in told
    assert "format: found 'liness'; expected a format of tables; did you mean 'lines'? [unknown-name]" in told
    assert "theirs.broken, which an installed package offers, fails when it is imported: " in told
    assert re.findall(r"^status (\d)", told, re.MULTILINE) == list("0002200000")
    assert (package / "lines" / "lines.txt").read_text() == "publisher The Office; sex: 2"
    assert not (package / "no").exists()
    for name in ("page.html", "asked.html"):
        page = (package / name).read_text(encoding="utf-8")
        assert '<dt>Editore</dt><dd dir="auto">The Office</dd>' in page
