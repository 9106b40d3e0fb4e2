"""The documentation as a site: pages, links and docstrings are well formed; the tutorial's notebook runs."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]

import matrixdp as mdp

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """The module that makes the notebook."""
    spec = importlib.util.spec_from_file_location("notebook", DOCS / "notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_site_is_made_without_warnings(tmp_path: Path) -> None:
    """By the command of `make site`."""
    [line] = re.findall(
        r"-m (sphinx .*) out/site$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    command = [sys.executable, "-m", *line.split(), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_static/narrow.css" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "_static" / "narrow.css").exists()


def test_every_fence_names_a_lexer() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    named = {
        name
        for page in pages
        for name in re.findall(r"^ *```(\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {"python", "yaml"} <= named
    assert all(get_lexer_by_name(name) for name in named)  # raises


def test_every_public_name_is_in_the_reference() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    documented = re.findall(
        r"^\.\. auto\w+:: matrixdp\.(?:language\.|papers\.|statistics\.)?(\w+)$", pages, re.MULTILINE
    )
    assert len(documented) == len(set(documented))
    assert {name for name in mdp.__all__ if name != "__version__"} <= set(documented)


def test_the_notebook_is_that_of_the_page(maker: ModuleType) -> None:
    written = maker.NOTEBOOK.read_text(encoding="utf-8")
    assert written == maker.notebook(maker.PAGE.read_text(encoding="utf-8")), "make notebook"


def test_the_notebook_has_outputs_and_names_files_beside_it(maker: ModuleType) -> None:
    cells = json.loads(maker.NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    # every cell ends in something to show
    assert [cell["id"] for cell in codes if not cell["outputs"]] == []
    text = "".join(line for cell in cells for line in cell["source"])
    files = set(re.findall(r"[`\"]([\w/.-]+\.parquet)[`\"]", text))
    assert files
    assert [name for name in files if not (maker.NOTEBOOK.parent / name).exists()] == []


def test_links_of_the_notebook_lead_to_files(maker: ModuleType) -> None:
    links = re.findall(r"\]\(([^)#]+)", maker.NOTEBOOK.read_text(encoding="utf-8"))
    assert len(links) > 5
    assert [link for link in links if not (maker.NOTEBOOK.parent / link).exists()] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:zmq|jupyter_client|nbclient")
def test_the_notebook_runs(maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    shutil.copy(ROOT / "examples" / "randhie.parquet", tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.reads(maker.NOTEBOOK.read_text(encoding="utf-8"), as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in shown if output.get("name") == "stderr"]
    pages = [output["data"]["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert sum("<strong>Release of" in page for page in pages) == 1
    assert (tmp_path / "released" / "release.json").exists()
