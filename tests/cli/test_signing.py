import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.releases import signatures

SPEC = """
data: people.csv
domain: {sex: [female, male], age: 4}
workload: [{marginals: [0, 1]}]
privacy: {rho: 0.5}
"""
RUNNER = CliRunner()


def run(*arguments: object):
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    pl.DataFrame({"sex": ["female", "male"], "age": [1, 2]}).write_csv(tmp_path / "people.csv")
    (tmp_path / "people.yaml").write_text(SPEC)
    return tmp_path


@pytest.fixture
def passphrase(home: Path) -> Path:
    (home / "passphrase").write_text("a long one\n")
    return home / "passphrase"


def left(home: Path) -> set[str]:
    return {path.name for path in home.iterdir()} - {"people.csv", "people.yaml"}


def test_a_release_is_signed_as_its_last_step(home: Path):
    made = run("keys", home / "office")
    assert made.exit_code == 0, made.stderr
    fingerprint = mdp.PublicKey.load(home / "office.pub").fingerprint
    assert fingerprint in made.stdout
    assert "PRIVATE KEY" not in made.stdout
    released = run("release", home / "people.yaml", "--out", home / "out", "--sign", home / "office")
    assert released.exit_code == 0, released.stderr
    assert "signature.json" in released.stdout
    assert mdp.check_signature(home / "out", home / "office.pub")["private"]
    assert left(home) == {"office", "office.pub", "out"}
    assert run("keys", home / "office").exit_code == 2
    again = run("release", home / "people.yaml", "--out", home / "out", "--force")
    assert again.exit_code == 0
    assert not (home / "out" / "signature.json").exists()


def test_signing_later(home: Path, passphrase: Path):
    assert run("keys", home / "office", "--passphrase-file", passphrase).exit_code == 0
    assert run("release", home / "people.yaml", "--out", home / "out").exit_code == 0
    given = ("sign", home / "out", "--key", home / "office")
    without = run(*given)
    assert (without.exit_code, "no passphrase" in without.stderr) == (2, True)
    signed = run(*given, "--passphrase-file", passphrase)
    assert signed.exit_code == 0, signed.stderr
    assert mdp.PublicKey.load(home / "office.pub").fingerprint in signed.stdout
    mdp.check_signature(home / "out", home / "office.pub")
    twice = run(*given, "--passphrase-file", passphrase)
    assert (twice.exit_code, "already" in twice.stderr) == (2, True)
    assert run(*given, "--passphrase-file", passphrase, "--force").exit_code == 0


def test_what_is_wrong_with_a_key_is_found_before_anything_else(home: Path, passphrase: Path):
    mdp.make_keys(home / "office", b"another one")
    mdp.make_keys(home / "plain")
    (home / "people.csv").unlink()  # so that whoever looked for the data first would say so
    for wrong, says in (
        (("--sign", home / "nowhere"), "nowhere: cannot be read"),
        (("--sign", home / "people.yaml"), "found no such key"),
        (("--sign", home / "office.pub"), "office.pub: found a public key; expected the PEM file"),
        (("--sign", home / "office"), "no passphrase"),
        (("--sign", home / "office", "--passphrase-file", passphrase), "another passphrase"),
        (("--sign", home / "plain", "--passphrase-file", passphrase), "a key without one"),
        (("--sign", home / "plain", "--passphrase-file", home / "nowhere"), "nowhere: cannot be read"),
        (("--passphrase-file", passphrase), "without --sign"),
    ):
        result = run("release", home / "people.yaml", "--out", home / "out", *wrong)
        assert result.exit_code == 2
        assert says in result.stderr
        assert left(home) == {"office", "office.pub", "plain", "plain.pub", "passphrase"}


def test_a_release_that_could_not_be_signed_is_not_in_its_place(home: Path, monkeypatch: pytest.MonkeyPatch):
    mdp.make_keys(home / "office")

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(signatures, "write_durably", full)
    result = run("release", home / "people.yaml", "--out", home / "out", "--sign", home / "office")
    assert result.exit_code == 2
    assert "signature.json: cannot be written (No space left on device)" in result.stderr
    assert "The budget was spent" in result.stderr
    assert not (home / "out").exists()
    monkeypatch.undo()
    assert run("recover", home / "out").exit_code == 0
    assert run("sign", home / "out", "--key", home / "office").exit_code == 0
    mdp.check_signature(home / "out", home / "office.pub")


def test_a_seeded_release_says_so_under_a_signature_too(home: Path):
    mdp.make_keys(home / "office")
    result = run(
        "release",
        home / "people.yaml",
        "--out",
        home / "out",
        "--seed-not-private",
        1,
        "--sign",
        home / "office",
    )
    assert result.exit_code == 0
    assert mdp.check_signature(home / "out", home / "office.pub")["private"] is False
    path = home / "out" / "release.json"
    forged = path.read_text().replace('"private": false', '"private": true')
    assert json.loads(forged)["private"] is True
    path.write_text(forged)
    with pytest.raises(mdp.SignatureError, match="not a signature of this"):
        mdp.check_signature(home / "out", home / "office.pub")
    with pytest.raises(mdp.StorageError, match="private says true; false follows from measurement"):
        mdp.load_release(home / "out")


def test_verify_with_a_key(home: Path):
    mdp.make_keys(home / "office")
    mdp.make_keys(home / "another")
    assert (
        run("release", home / "people.yaml", "--out", home / "out", "--sign", home / "office").exit_code == 0
    )
    held = run("verify", home / "out", "--key", home / "office.pub")
    assert held.exit_code == 0, held.stdout
    assert "ok           signature" in held.stdout
    other = run("verify", home / "out", "--key", home / "another.pub")
    assert other.exit_code == 1
    assert "FAILED       signature" in other.stdout
    wrong = run("verify", home / "out", "--key", home / "office")
    assert (wrong.exit_code, "expected the PEM file" in wrong.stderr) == (2, True)
