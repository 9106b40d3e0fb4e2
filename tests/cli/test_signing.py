import json
from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp.releases import signatures
from tests.cli.commands import run

SPEC = """
data: people.csv
domain: {sex: [female, male], age: 4}
workload: [{marginals: [0, 1]}]
privacy: {rho: 0.5}
"""
RELEASE = ("release", "people.yaml", "--out", "out")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,age\nfemale,1\nmale,2\n")
    Path("people.yaml").write_text(SPEC)
    return tmp_path


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
