# mypy: disable-error-code="arg-type"
"""What releases refuse: records that were forged, files that are damaged, keys, places and arguments."""

import json
import math
import os
from collections.abc import Callable, Iterable
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
from tests.forging import forge_record
from tests.refusals import Refusal, numbered

Attempt = Callable[[Path], Any]
Row = tuple[str, str, Callable[..., Any]]
GONE = object()
_MU, _EXACT = "privacy/guarantees/0/parameters/mu", "privacy/guarantees/0/exact/mu"

# Places of release.json, and what is put there: what follows from the measurement cannot be forged.
_FORGED: dict[str, tuple[Any, ...]] = {
    "private": (False, 1),
    "privacy": (None,),
    "privacy/private": (False,),
    "privacy/neighbours": ("replace",),
    "privacy/unit": ({"records": 2}, GONE),
    "privacy/noise": ("laplace",),
    "privacy/cost": ("1/100",),
    "privacy/budget/exact/delta": ("1/10000000",),
    "privacy/ledger": ({"dataset": "people"}, GONE),
    "privacy/out_of_domain": ({"sex": "male"},),
    "privacy/max_records": (10,),
    "privacy/guarantees": ([], GONE),
    "privacy/guarantees/0": (3,),
    "privacy/guarantees/0/definition": ("pure DP",),
    "privacy/guarantees/0/parameters": ({},),
    _MU: (0.1, True, 10**400),
    _EXACT: ("1/10", "1e999999999", "1/0", 0.25),
    "privacy/measurement/sha256": ("0" * 64,),
    "privacy/measurement/file": ("other.mdp",),
    "authorization/cost": ("1",),
    "authorization": ([],),
    "domain": ({"sex": ["female", "male"], "age": 5},),
    "queries": (5,),
    "strategy": (3,),
    "strategy/noise": ("laplace",),
    "strategy/parts/0/scale/numerator": (3,),
    "strategy/parts": (GONE,),
    "strategy/matrices": ([],),
    "strategy/measured_rows": (1,),
    "strategy/mechanism": (3,),
    "strategy/certificate/loss": ("small",),
    "confidence": ("0.9", True, 1.5, 10**400),
    "files": ([],),
    "files/measurement.mdp/bytes": (1,),
    "files/measurement.mdp/sha256": ("0" * 64,),
    "format": ("other",),
}
_VERSIONS = ("format_version", 1), ("format_version", "2" * 500)
# Records that two readers may read in two ways, or that are none.
_RECORDS = [
    ("damaged-file", (b"", b'{"a": NaN}', "\ufeff{}".encode(), b"{" * 9000, b'{"a": 1, "a": 1}', b"\xff")),
    ("wrong-type", (b"[]", b"3")),
    ("other-version", (b'{"format": "matrixdp release"}',)),
]


def each(code: str, attempts: Iterable[Callable[..., Any]], place: str = "") -> list[Row]:
    return [(code, place, attempt) for attempt in attempts]


def forged(place: str, value: object) -> Attempt:
    *outer, last = (int(step) if step.isdigit() else step for step in place.split("/"))

    def change(record: Any) -> None:
        for step in outer:
            record = record[step]
        record[last] = value
        if value is GONE:
            del record[last]

    def attempt(folder: Path) -> None:
        out = copied(folder)
        forge_record(out, change)
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


_FIELDS: list[dict[str, Any]] = [
    *({"format": "other"}, {"format_version": 2}, {"format_version": True}, {"algorithm": "none"}),
    *({"signs": "other.json"}, {"signature": ""}, {"signature": "!!"}, {"signature": 3}, {"more": 1}),
]
_SIGNATURES = [
    *each("signature", (resigned(**fields) for fields in _FIELDS)),
    *each(
        "signature",
        (replaced("signature.json", text, check) for text in (b"", b"\xff", b"[" * 5000, b"null", b"{}")),
    ),
    ("file-missing", "", replaced("signature.json", None, check)),
    ("out-of-range", "", replaced("signature.json", b'"' + b"x" * 20_000 + b'"', check)),
    ("signature", "", replaced("release.json", b"", check)),
    ("signature", "", lambda folder: mdp.sign_release(copied(folder), key())),
    ("file-missing", "", lambda folder: mdp.sign_release(folder, key())),
    ("file-missing", "", lambda folder: mdp.sign_release(f"{folder}/a\0", key())),
    ("file-missing", "", lambda folder: mdp.sign_release(looped(folder), key())),
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
    *each("storage", (replaced(name, b"", check) for name in _ANSWERS)),
    *each("file-missing", (replaced(name, None, check) for name in _ANSWERS)),
    *each("file-missing", map(linked, ("release.json", "signature.json", "answers.csv"))),
    ("storage", "", piped),
]


def signed_record(record: str) -> Attempt:
    def attempt(folder: Path) -> None:
        (folder / "release.json").write_text(record)
        signatures.write_signature(folder, key())
        check(folder)

    return attempt


_LISTS = '{"format": "matrixdp release", "files": {%s}}'
_LISTED = (_LISTS % '"measurement.mdp": {}, "../x": {}', _LISTS % '"answers.csv": {}')
_NO_RECORDS = ("x", '{"format": "other"}', '{"format": "matrixdp release"}', '{"a": 1, "a": 2}', *_LISTED)


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
_PAIRS = (b"a", b"b"), (b"a", None), (None, b"a"), (b"", None), (b"x" * 2000, None)
_CONTENTS = (b"", b"\0" * 10, b"-----BEGIN PRIVATE KEY-----\n", b"x" * 70_000)
_OTHERS = x25519.X25519PrivateKey.generate(), rsa.generate_private_key(65537, 2048)
_KEYS: list[Callable[..., Any]] = [
    *(encrypted(*pair) for pair in _PAIRS),
    *(
        written(pem, load)
        for other in _OTHERS
        for pem, load in zip(pems(other), (private, public), strict=True)
    ),
    *(written(content, load) for load in (private, public) for content in _CONTENTS),
    private,
    public,
    lambda: public("a\0b"),
    lambda folder: public(mdp.make_keys(folder / "office")[0]),
    lambda folder: private(mdp.make_keys(folder / "office")[1]),
    lambda folder: mdp.make_keys(folder / "none" / "office"),
    lambda folder: mdp.make_keys(folder / ("x" * 300)),
    lambda: mdp.make_keys("a\0b"),
    *(written(content, read_passphrase) for content in (b"", b"\nsecond", b"\r\n")),
    lambda folder: read_passphrase(folder / "nowhere"),
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


def looped(folder: Path) -> Path:
    link = folder / "loop"
    link.symlink_to(link)
    return link


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
_ORIGINS: list[tuple[str, Any]] = [
    ("mechanism", 3),
    ("reason", {"a": 1}),
    *(("objective", value) for value in ("least", ["sum"])),
    ("certificate", 3),
]
_CERTIFICATES = [("loss", math.nan), ("lower_bound", "1"), ("gap", True), ("scope", None)]
_RELEASES = [
    *each("out-of-range", (made(confidence=one) for one in (0, 1, 95, math.nan, True, "high")), "confidence"),
    ("domain-mismatch", "", made(_OTHER)),
    *each("out-of-range", (made(expect=expect) for expect in (0, -1, 10**400, 10**5000)), "expect"),
    *each("wrong-type", (made(expect=expect) for expect in (True, 1.5, "9")), "expect"),
    ("wrong-type", "origin", made(origin=[])),
    *(("wrong-type", f"origin.{name}", made(origin={name: value})) for name, value in _ORIGINS),
    *(
        ("wrong-type", f"origin.certificate.{name}", made(origin={"certificate": {name: value}}))
        for name, value in _CERTIFICATES
    ),
    ("unsupported-query", "", lambda: release().answer(mdp.marginals([["sex", "age"]]))),
    ("wrong-type", "query", lambda: release().answer("sex")),
    ("workload", "sql", lambda: release().sql("SELECT COUNT(*) FROM t WHERE height > 3")),
    ("unknown-name", "format", tables("t", format="xls")),
    ("unknown-name", "cross", lambda: release().cross_table("sex", ["sexes"])),
    ("wrong-type", "cross", lambda: release().cross_table("sex", "sex")),
    ("workload", "cross", lambda: release().cross_table("sex", ["sex", "sex"])),
    ("not-supported", "cross", lambda: release().cross_table("total")),
    ("out-of-range", "suppress.cv_above", lambda: release().presented(suppress_above=-1)),
    ("out-of-range", "round_to", lambda: release().presented(round_to=0)),
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
    *numbered(
        "forged", [("damaged-file", "", forged(at, one)) for at, own in _FORGED.items() for one in own]
    ),
    *numbered("forged", each("other-version", (forged(*version) for version in _VERSIONS))),
    *numbered(
        "record", ((code, "", replaced("release.json", text)) for code, texts in _RECORDS for text in texts)
    ),
    *numbered("signature", _SIGNATURES),
    *numbered("file", _FILES),
    *numbered(
        "signed record",
        [("wrong-type", "", signed_record("[]")), *each("damaged-file", map(signed_record, _NO_RECORDS))],
    ),
    *numbered("key", each("signature", _KEYS)),
    *numbered("folder", _FOLDERS),
    *numbered("release", _RELEASES),
    *numbered("covariance", ((*row[:2], one) for row in _QUERIES for one in covariance(*row[2:]))),
]
