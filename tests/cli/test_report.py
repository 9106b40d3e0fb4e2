from pathlib import Path

from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app

RUNNER = CliRunner()


def run(*arguments: object):
    return RUNNER.invoke(app, ["report", *map(str, arguments)])


def test_a_page_lies_beside_the_folder_and_replaces_nothing_by_itself(released: Path):
    page = released.parent / f"{released.name}.html"
    result = run(released, "--title", "People of 2026")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{page}: ")
    assert "<h1>People of 2026</h1>" in page.read_text(encoding="utf-8")
    again = run(released)
    assert (again.exit_code, "or --force" in again.stderr) == (2, True)
    assert run(released, "--force").exit_code == 0
    assert f"<h1>{released.name}</h1>" in page.read_text(encoding="utf-8")
    page.unlink()
    assert mdp.verify_release(released).holds


def test_a_page_is_not_written_where_it_does_not_belong(released: Path, tmp_path: Path):
    inside = run(released, "--out", released / "page.html")
    assert (inside.exit_code, "[no-place]" in inside.stderr) == (2, True)
    for nowhere in (tmp_path, tmp_path / "no" / "page.html"):
        refused = run(released, "--out", nowhere)
        assert (refused.exit_code, "[no-place]" in refused.stderr) == (2, True)
    assert run(tmp_path, "--out", tmp_path / "page.html").exit_code == 2
    assert not (tmp_path / "page.html").exists()
