"""Commands on the folder of a release: verify, explain, report and sign."""

import errno
import json
import sys
from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.releases import signatures
from tests.cli.commands import figures, refused, run, spec, words
from tests.forging import forge_measurement, forge_record


def test_a_release_that_holds(released: Path, tmp_path: Path):
    lines = run("verify", released).stdout.splitlines()
    assert lines[-1] == f"{released}: all checks passed."
    for start in ("ok           cost ", "not checked  noise        whether the noise was random"):
        assert any(line.startswith(start) for line in lines)
    printed = figures("verify", released)
    assert printed["holds"] is True
    assert {row["outcome"] for row in printed["findings"]} == {"ok", "not checked"}
    (tmp_path / "text").write_text("no ledger")  # one that cannot be read was to hold the debit all the same
    run("verify", released, "--ledger", tmp_path / "text", status=1)


def test_a_release_that_does_not(released: Path):
    forge_record(released, lambda record: record["privacy"].update(noise="none"))
    told = run("verify", released, status=1).stdout
    assert 'FAILED       statement    privacy.noise says "none"; "gaussian" follows' in told
    assert told.endswith("FAILED: the release is not what it says.\n")
    assert figures("verify", released, status=1)["holds"] is False


def test_names_of_files_write_no_lines_of_their_own(released: Path):
    (released / "x\nok           ledger       debited\x1b[2J").touch()
    told = run("verify", released).stdout
    assert not any(line.startswith("ok           ledger") for line in told.splitlines())
    assert "\x1b" not in told


@pytest.mark.parametrize("time", ["2026", "2026-01-01T00:00:00+00:00 with epsilon = 0.001", "\x1b[2J", ""])
def test_a_time_is_a_time(released: Path, time: str):
    forge_measurement(released, lambda header, _: header["authorization"].update(time=time))
    forge_record(released, lambda record: record["privacy"].update(time=time))
    forge_record(released, lambda record: record["authorization"].update(time=time))
    assert "the time of its authorization is none" in run("verify", released, status=1).stdout


def test_into_a_pipe_and_into_a_file_an_explanation_is_markdown(released: Path, tmp_path: Path):
    text = mdp.explain_release(released)
    assert run("report", released, "--markdown").stdout == text
    run("report", released, "--markdown", "--out", tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text
    (tmp_path / "link.md").symlink_to("page.md")
    (tmp_path / "page.md").write_text("earlier")
    run("report", released, "--markdown", "--out", tmp_path / "link.md", "--force")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(("columns", "cut"), [("80", True), ("1000", False)])
def test_at_a_terminal_it_is_set(
    released: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, columns: str, cut: bool
):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit) as ended:
        app(["report", str(released), "--markdown"])
    assert ended.value.code == 0
    shown, told = capsys.readouterr()
    assert "What it costs" in shown
    assert "| --- |" not in shown
    # numbers are never cut without a word of where they are whole
    assert ("…" in shown, "--out FILE.md" in told) == (cut, cut)


def test_a_page_lies_beside_the_folder_and_replaces_nothing_by_itself(released: Path):
    page = released.parent / f"{released.name}.html"
    assert run("report", released, "--title", "People of 2026").stdout.startswith(f"{page}: ")
    assert '<h1 dir="auto">People of 2026</h1>' in page.read_text(encoding="utf-8")
    assert "or --force" in run("report", released, status=2).stderr
    run("report", released, "--force")
    assert f'<h1 dir="auto">{released.name}</h1>' in page.read_text(encoding="utf-8")
    assert mdp.verify_release(released).holds


@pytest.mark.parametrize("kind", [[], ["--markdown"]])
def test_a_full_disk_leaves_the_page_that_was_there(
    released: Path, tmp_path: Path, kind: list[str], monkeypatch: pytest.MonkeyPatch
):
    def half(path: Path, text: str, **_: object) -> None:
        path.write_bytes(text[:100].encode())
        raise OSError(errno.ENOSPC, "No space left on device")

    page = tmp_path / "page"
    page.write_text("earlier")
    monkeypatch.setattr(Path, "write_text", half)
    run("report", released, "--out", page, "--force", *kind, status=1)
    assert page.read_text() == "earlier"
    assert sorted(tmp_path.iterdir()) == [released, page]


SPEC = """
data: people.csv
domain: {sex: [female, male], age: 4}
workload: [{marginals: [0, 1]}]
privacy: {rho: 0.5}
"""
RELEASE = ("release", "people.yaml", "--out", "out")


@pytest.fixture
def home(here: Path) -> Path:
    Path("people.csv").write_text("sex,age\nfemale,1\nmale,2\n")
    Path("people.yaml").write_text(SPEC)
    return here


@pytest.fixture
def office(home: Path) -> Path:
    mdp.make_keys(home / "office")
    return home / "office.pub"


def test_a_release_is_signed_as_its_last_step(home: Path):
    made = run("keys", "office")
    assert mdp.PublicKey.load("office.pub").fingerprint in made.stdout
    assert "PRIVATE KEY" not in made.stdout
    assert "signature.json" in run(*RELEASE, "--sign", "office").stdout
    assert mdp.check_signature("out", "office.pub")["private"]
    left = {path.name for path in home.iterdir()}
    assert left == {"office", "office.pub", "out", "people.csv", "people.yaml"}
    mdp.make_keys("another")
    assert "ok           signature" in run("verify", "out", "--key", "office.pub").stdout
    assert "FAILED       signature" in run("verify", "out", "--key", "another.pub", status=1).stdout
    run(*RELEASE, "--force")
    assert not Path("out", "signature.json").exists()


def test_signing_later(home: Path):
    Path("passphrase").write_text("a long one\n")
    run("keys", "office", "--passphrase-file", "passphrase")
    run(*RELEASE)
    sign = ("sign", "out", "--key", "office", "--passphrase-file", "passphrase")
    assert mdp.PublicKey.load("office.pub").fingerprint in run(*sign).stdout
    mdp.check_signature("out", "office.pub")
    assert "already" in run(*sign, status=2).stderr
    run(*sign, "--force")


def test_a_release_that_could_not_be_signed_is_not_in_its_place(
    office: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(signatures, "write_durably", full)
        told = run(*RELEASE, "--sign", "office", status=2).stderr
    assert "signature.json: cannot be written (No space left on device)" in told
    assert "The budget was spent" in told
    assert not Path("out").exists()
    run("recover", "out")
    run("sign", "out", "--key", "office")
    mdp.check_signature("out", office)


def test_a_seeded_release_says_so_under_a_signature_too(office: Path):
    run(*RELEASE, "--seed-not-private", 1, "--sign", "office")
    assert mdp.check_signature("out", office)["private"] is False
    path = Path("out", "release.json")
    forged = path.read_text().replace('"private": false', '"private": true')
    assert json.loads(forged)["private"] is True
    path.write_text(forged)
    with pytest.raises(mdp.SignatureError, match="not a signature of this"):
        mdp.check_signature("out", office)
    with pytest.raises(mdp.StorageError, match="private says true; false follows from measurement"):
        mdp.load_release("out")


def test_a_folder_that_is_no_release_is_no_release_that_fails(here: Path):
    assert refused("verify", here).endswith("[file-missing]")


def test_a_release_with_two_tables_of_one_name_says_so(here: Path):
    domain = mdp.Domain({"sex": ["female", "male"], "age": 3})
    measured = mdp.select(mdp.Workload(domain, mdp.marginals([1]))).measure(
        {"sex": ["male"], "age": [1]}, mdp.Budget(rho=0.5)
    )
    twice = [mdp.product(sex="identity", name="one"), mdp.product(age="prefix", name="one")]
    workload = mdp.Workload(domain, *twice)
    for made in (mdp.select, measured.reconstruct):
        with pytest.raises(mdp.WorkloadError) as caught:
            made(workload)
        assert (caught.value.code, caught.value.path) == ("duplicate", ("workload", 1, "name"))
    mdp.save_release(mdp.Release(measured.measurement, workload), "out")  # as earlier versions wrote it
    told = run("show", "out", "one")
    assert "2 tables are called one: one, one (2)" in told.stderr
    assert "female" in told.stdout
    other = run("show", "out", "one (2)")
    assert "2 tables are called one: one, one (2)" in other.stderr
    assert "female" not in other.stdout


def test_a_budget_has_the_same_figures_before_and_after_it_is_spent(here: Path):
    text = "domain: {sex: [f, m]}\nworkload: [{marginals: [1]}]\nprivacy: {epsilon: 1}\n"
    spec(text)
    Path("t.csv").write_text("sex\nf\n", encoding="utf-8")
    shown = [words("validate", "s.yaml"), words("select", "s.yaml")]
    shown.append(words("release", "s.yaml", "--data", "t.csv", "--out", "a b", "--seed-not-private", 1))
    assert all("implies 1.233-GDP and 0.5-zCDP" in told for told in shown)
    assert "matrixdp answer 'a b' QUERY" in shown[-1]
