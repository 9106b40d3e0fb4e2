# mypy: disable-error-code="arg-type"
"""What releases refuse: records that were forged, files that are damaged, keys, places and arguments."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa, x25519

import matrixdp as mdp
from matrixdp.locks import Lock
from matrixdp.releases import read_passphrase, signatures
from matrixdp.releases.transaction import transaction
from tests import builders
from tests.builders import copied, key, keys, release
from tests.forging import forge_record, put
from tests.refusals import Refusal, numbered

Attempt = Callable[[Path], Any]
_MU = "privacy/guarantees/0/parameters/mu"
_EXACT = "privacy/guarantees/0/exact/mu"

# Places of release.json, and what is put there: what follows from the measurement cannot be forged.
_FORGED: list[tuple[str, str, str, Any]] = [
    ("damaged-file", "", "private", False),
    ("damaged-file", "", "private", 1),
    ("damaged-file", "", "privacy/private", False),
    ("damaged-file", "", "privacy/neighbours", "replace"),
    ("damaged-file", "", "privacy/unit", {"records": 2}),
    ("damaged-file", "", "privacy/noise", "laplace"),
    ("damaged-file", "", "privacy/cost", "1/100"),
    ("damaged-file", "", "privacy/budget/epsilon", 0.1),
    ("damaged-file", "", "privacy/budget/exact/delta", "1/10000000"),
    ("damaged-file", "", "privacy/ledger", {"dataset": "people"}),
    ("damaged-file", "", "privacy/out_of_domain", {"sex": "male"}),
    ("damaged-file", "", "privacy/max_records", 10),
    ("damaged-file", "", "privacy/guarantees", []),
    ("damaged-file", "", "privacy/guarantees/0", 3),
    ("damaged-file", "", "privacy/guarantees/0/definition", "pure DP"),
    ("damaged-file", "", _MU, 0.1),
    ("damaged-file", "", _MU, True),
    ("damaged-file", "", _MU, 10**400),
    ("damaged-file", "", "privacy/guarantees/0/parameters", {}),
    ("damaged-file", "", _EXACT, "1/10"),
    ("damaged-file", "", _EXACT, "1e999999999"),
    ("damaged-file", "", _EXACT, "1/0"),
    ("damaged-file", "", _EXACT, 0.25),
    ("damaged-file", "", "privacy/guarantees/3/exact/delta", "1/100000000"),
    ("damaged-file", "", "privacy", None),
    ("damaged-file", "", "privacy/measurement/sha256", "0" * 64),
    ("damaged-file", "", "privacy/measurement/file", "other.mdp"),
    ("damaged-file", "", "authorization/cost", "1"),
    ("damaged-file", "", "authorization", []),
    ("damaged-file", "", "domain", {"sex": ["female", "male"], "age": 5}),
    ("damaged-file", "", "queries", 5),
    ("damaged-file", "", "strategy/noise", "laplace"),
    ("damaged-file", "", "strategy/parts/0/scale/numerator", 3),
    ("damaged-file", "", "strategy/parts/0/squared_sensitivity", "70"),
    ("damaged-file", "", "strategy/matrices", []),
    ("damaged-file", "", "strategy/measured_rows", 1),
    ("damaged-file", "", "strategy", 3),
    ("damaged-file", "", "strategy/mechanism", 3),
    ("damaged-file", "", "strategy/reason", {"a": 1}),
    ("damaged-file", "", "strategy/objective", "least"),
    ("damaged-file", "", "strategy/certificate", "good"),
    ("damaged-file", "", "strategy/certificate/loss", "small"),
    ("damaged-file", "", "strategy/certificate/gap", True),
    ("damaged-file", "", "strategy/certificate/scope", None),
    ("damaged-file", "", "confidence", "0.9"),
    ("damaged-file", "", "confidence", True),
    ("damaged-file", "", "confidence", 1.5),
    ("damaged-file", "", "confidence", 10**400),
    ("damaged-file", "", "files", []),
    ("damaged-file", "", "files/measurement.mdp/bytes", 1),
    ("damaged-file", "", "format", "other"),
    ("other-version", "", "format_version", 1),
    ("other-version", "", "format_version", "2" * 500),
]
_LEFT_OUT = [
    ("damaged-file", "", "private"),
    ("damaged-file", "", "privacy/unit"),
    ("damaged-file", "", "privacy/guarantees"),
    ("damaged-file", "", "privacy/ledger"),
    ("damaged-file", "", "authorization/cost"),
    ("damaged-file", "", "strategy/parts"),
    ("damaged-file", "", "domain"),
]
# Records that two readers may read in two ways, or that are none.
_RECORDS = [
    ("damaged-file", "", b""),
    ("wrong-type", "", b"[]"),
    ("wrong-type", "", b"3"),
    ("damaged-file", "", b'{"a": NaN}'),
    ("damaged-file", "", "\ufeff{}".encode()),
    ("damaged-file", "", b"{" * 9000),
    ("damaged-file", "", b'{"a": 1, "a": 1}'),
    ("damaged-file", "", b"\xff"),
    ("other-version", "", b'{"format": "matrixdp release"}'),
]


def steps(place: str) -> tuple[str | int, ...]:
    return tuple(int(step) if step.isdigit() else step for step in place.split("/"))


def forged(place: str, value: object) -> Attempt:
    def attempt(folder: Path) -> None:
        out = copied(folder)
        forge_record(out, lambda record: put(record, steps(place), lambda _: value))
        mdp.load_release(out)

    return attempt


def left_out(place: str) -> Attempt:
    def remove(record: Any) -> None:
        *outer, last = steps(place)
        for step in outer:
            record = record[step]
        del record[last]

    def attempt(folder: Path) -> None:
        out = copied(folder)
        forge_record(out, remove)
        mdp.load_release(out)

    return attempt


def replaced(name: str, content: bytes | None, read: Callable[[Path], Any] = mdp.load_release) -> Attempt:
    """Let a file of a release have another content, or be missing."""

    def attempt(folder: Path) -> None:
        path = copied(folder) / name
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        read(path.parent)

    return attempt


def check(folder: Path) -> object:
    return mdp.check_signature(folder, keys()[1])


def resigned(**fields: object) -> Attempt:
    def attempt(folder: Path) -> None:
        path = copied(folder) / "signature.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))
        check(path.parent)

    return attempt


_SIGNATURES = [
    ("signature", "", resigned(format="other")),
    ("signature", "", resigned(format_version=2)),
    ("signature", "", resigned(format_version=True)),
    ("signature", "", resigned(algorithm="none")),
    ("signature", "", resigned(signs="other.json")),
    ("signature", "", resigned(signature="")),
    ("signature", "", resigned(signature="!!")),
    ("signature", "", resigned(signature=3)),
    ("signature", "", resigned(more=1)),
    ("file-missing", "", replaced("signature.json", None, check)),
    ("signature", "", replaced("signature.json", b"", check)),
    ("signature", "", replaced("signature.json", b"\xff", check)),
    ("signature", "", replaced("signature.json", b"[" * 5000, check)),
    ("signature", "", replaced("signature.json", b"null", check)),
    ("out-of-range", "", replaced("signature.json", b'"' + b"x" * 20_000 + b'"', check)),
    ("signature", "", replaced("signature.json", b"{}", check)),
    ("signature", "", replaced("release.json", b"", check)),
    ("signature", "", lambda folder: mdp.sign_release(copied(folder), key())),
    ("signature", "", lambda folder: signatures.write_signature(copied(folder), key())),
    ("file-missing", "", lambda folder: mdp.sign_release(folder, key())),
]


def linked(name: str) -> Attempt:
    def attempt(folder: Path) -> None:
        path = copied(folder) / name
        path.rename(folder / name)
        path.symlink_to(folder / name)
        check(path.parent)

    return attempt


def piped(folder: Path) -> None:
    path = copied(folder) / "answers.csv"
    path.unlink()
    os.mkfifo(path)
    check(path.parent)


_ANSWERS = ("measurement.mdp", "answers.parquet", "answers.csv")
# Files that are not those that were signed.
_FILES = [
    *(("storage", "", replaced(name, b"", check)) for name in _ANSWERS),
    *(("file-missing", "", replaced(name, None, check)) for name in _ANSWERS),
    *(("file-missing", "", linked(name)) for name in ("release.json", "signature.json", "answers.csv")),
    ("storage", "", piped),
]


def signed_record(record: str) -> Attempt:
    def attempt(folder: Path) -> None:
        (folder / "release.json").write_text(record)
        signatures.write_signature(folder, key())
        check(folder)

    return attempt


_LISTS = '{"format": "matrixdp release", "files": {%s}}'
_SIGNED_RECORDS = [
    ("wrong-type", "", signed_record("[]")),
    ("damaged-file", "", signed_record("x")),
    ("damaged-file", "", signed_record('{"format": "other"}')),
    ("damaged-file", "", signed_record('{"format": "matrixdp release"}')),
    ("damaged-file", "", signed_record('{"a": 1, "a": 2}')),
    ("damaged-file", "", signed_record(_LISTS % '"measurement.mdp": {}, "../x": {}')),
    ("damaged-file", "", signed_record(_LISTS % '"answers.csv": {}')),
]


def written(content: bytes, use: Callable[[Path], Any]) -> Attempt:
    def attempt(folder: Path) -> None:
        (folder / "file").write_bytes(content)
        use(folder / "file")

    return attempt


def pems(private: Any) -> tuple[bytes, bytes]:
    """Return a private key and its public one as PEM files."""
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    public = private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.private_bytes(pem, form, serialization.NoEncryption()), public


def encrypted(passphrase: bytes | None, given: bytes | None) -> Attempt:
    return lambda folder: mdp.SigningKey.load(mdp.make_keys(folder / "office", passphrase)[0], given)


private, public = mdp.SigningKey.load, mdp.PublicKey.load
_KEYS = [
    *(("signature", "", encrypted(*pair)) for pair in ((b"a", b"b"), (b"a", None), (None, b"a"))),
    ("signature", "", encrypted(b"", None)),
    ("signature", "", encrypted(b"x" * 2000, None)),
    *(
        ("signature", "", written(content, load))
        for other in (x25519.X25519PrivateKey.generate(), rsa.generate_private_key(65537, 2048))
        for content, load in zip(pems(other), (private, public), strict=True)
    ),
    *(
        ("signature", "", written(content, load))
        for load in (private, public)
        for content in (b"", b"\0" * 10, b"-----BEGIN PRIVATE KEY-----\n", b"x" * 70_000)
    ),
    *(("signature", "", load) for load in (private, public)),
    ("signature", "", lambda: public("a\0b")),
    ("signature", "", lambda folder: public(mdp.make_keys(folder / "office")[0])),
    ("signature", "", lambda folder: private(mdp.make_keys(folder / "office")[1])),
    ("signature", "", lambda folder: mdp.make_keys(folder / "none" / "office")),
    ("signature", "", lambda folder: mdp.make_keys(folder / ("x" * 300))),
    ("signature", "", lambda: mdp.make_keys("a\0b")),
    *(("signature", "", written(content, read_passphrase)) for content in (b"", b"\nsecond", b"\r\n")),
    ("signature", "", lambda folder: read_passphrase(folder / "nowhere")),
]


def occupied(name: str, furnish: Callable[[Path], Any], **options: Any) -> Attempt:
    def attempt(folder: Path) -> None:
        furnish(folder)
        mdp.save_release(release(), folder / name, **options)

    return attempt


def with_notes(folder: Path) -> None:
    (copied(folder) / "notes.txt").write_text("mine")


def with_another_record(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "release.json").write_text("[]")


def with_a_link(folder: Path) -> None:
    (folder / "link").symlink_to(copied(folder))


def unlisted(folder: Path) -> None:
    out = mdp.save_release(release(), folder / "out", key=key())
    (out / "answers.csv").write_text("group,estimate\n")
    check(out)


def appended(folder: Path) -> None:
    out = copied(folder)
    (out / "signature.json").unlink()
    with (out / "answers.csv").open("a") as stream:
        stream.write("one more\n")
    mdp.sign_release(out, key())


def behind_a_file(folder: Path) -> None:
    (folder / "file").write_text("")
    with transaction(folder / "file" / "out", keep=False):
        pass


_FOLDERS = [
    ("file-exists", "", occupied("out", copied)),
    ("file-exists", "", occupied("out", with_notes, force=True)),
    ("file-exists", "", occupied("out", with_another_record, force=True)),
    ("file-exists", "", occupied("file", lambda folder: (folder / "file").touch(), force=True)),
    ("file-exists", "", occupied("link", with_a_link, force=True)),
    ("no-place", "", behind_a_file),
    ("storage", "", unlisted),
    ("storage", "", appended),
    ("file-missing", "", mdp.load_release),
    ("file-missing", "", replaced("measurement.mdp", None)),
    ("damaged-file", "", replaced("measurement.mdp", b"")),
    ("storage", "", lambda folder: Lock(folder / "none" / "lock")),
    ("storage", "", lambda: Lock(Path("\0"))),
]


def tables(name: str, **options: str) -> Attempt:
    def attempt(folder: Path) -> None:
        (folder / "full").mkdir()
        (folder / "full" / "x").touch()
        release().save_tables(folder / name, **options)

    return attempt


def made(*arguments: Any, **options: Any) -> Callable[[], object]:
    return lambda: mdp.Release(release().measurement, *(arguments or (builders.WORKLOAD,)), **options)


_OTHER = mdp.Workload(mdp.Domain({"sex": ["male", "female"]}), mdp.marginals(1))
_RELEASES = [
    *(("out-of-range", "confidence", made(confidence=value)) for value in (0, 1, 95, math.nan, True, "high")),
    ("domain-mismatch", "", made(_OTHER)),
    *(("out-of-range", "expect", made(expect=expect)) for expect in (0, -1, 10**400, 10**5000)),
    *(("wrong-type", "expect", made(expect=expect)) for expect in (True, 1.5, "9")),
    ("wrong-type", "origin", made(origin=[])),
    ("wrong-type", "origin.mechanism", made(origin={"mechanism": 3})),
    ("wrong-type", "origin.objective", made(origin={"objective": "least"})),
    ("wrong-type", "origin.objective", made(origin={"objective": ["sum"]})),
    ("wrong-type", "origin.certificate", made(origin={"certificate": 3})),
    ("wrong-type", "origin.certificate.loss", made(origin={"certificate": {"loss": math.nan}})),
    ("wrong-type", "origin.certificate.lower_bound", made(origin={"certificate": {"lower_bound": "1"}})),
    ("unsupported-query", "", lambda: release().answer(mdp.marginals([["sex", "age"]]))),
    ("wrong-type", "query", lambda: release().answer("sex")),
    ("workload", "sql", lambda: release().sql("SELECT COUNT(*) FROM t WHERE height > 3")),
    ("specification", "format", tables("t", format="xls")),
    ("specification", "pivot", tables("t", pivot="day")),
    ("file-exists", "", tables("full")),
    ("no-place", "", tables("full/x/t")),
]

_SEXES, _TOTAL = mdp.marginals([["sex"]]), mdp.marginals(0)
# An entry and a query of it, of which there is no covariance.
_QUERIES: list[tuple[str, str, Any, Any]] = [
    *(("out-of-range", "covariance", _SEXES, query) for query in (2, -1)),
    *(("out-of-range", "covariance", _SEXES, query) for query in (True, "0", 0.5)),
    ("wrong-size", "covariance", mdp.marginals(1), 0),
    ("wrong-type", "covariance.query", "sex", 0),
    ("wrong-type", "covariance.query", None, 0),
    ("unknown-key", "covariance.query", {"marginal": 0}, 0),
    ("unknown-name", "covariance.marginals[0][0]", mdp.marginals([["size"]]), 0),
    ("unsupported-query", "", mdp.marginals([["sex", "age"]]), 0),
]


def covariance(entry: Any, query: Any) -> list[Callable[[], object]]:
    budget = mdp.Budget(mu=1)
    return [
        lambda: release().covariance(entry, query, _TOTAL, 0),
        lambda: builders.strategy().covariance(entry, query, _TOTAL, 0, budget),
    ]


REFUSALS: list[Refusal] = [
    *numbered("forged", ((code, place, forged(at, value)) for code, place, at, value in _FORGED)),
    *numbered("left out", ((code, place, left_out(at)) for code, place, at in _LEFT_OUT)),
    *numbered("record", ((code, place, replaced("release.json", text)) for code, place, text in _RECORDS)),
    *numbered("signature", _SIGNATURES),
    *numbered("file", _FILES),
    *numbered("signed record", _SIGNED_RECORDS),
    *numbered("key", _KEYS),
    *numbered("folder", _FOLDERS),
    *numbered("release", _RELEASES),
    *numbered(
        "covariance",
        ((code, place, attempt) for code, place, *asked in _QUERIES for attempt in covariance(*asked)),
    ),
]
