"""Releases that hold, and every way to alter one that verification must find."""

import copy
import json
import math
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.errors import StorageError
from matrixdp.storage.formats import load_measurement
from matrixdp.verification import Finding
from matrixdp.verification import verify as module
from matrixdp.verification.verify import UNFOUNDED
from tests.builders import saved
from tests.forging import flip, forge_measurement, forge_record, leaves, put, relist, with_value

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 5}, "note": ["", "a\n,b"]})
TABLE = {"sex": ["male", "female"] * 6, "age": [0, 1, 2, 3, 4, 9] * 2, "note": ["", "a\n,b", None] * 4}
GROUPS = (mdp.product({"age": "prefix", "sex": "identity"}, weight=2), mdp.dense(np.tri(6), ["age"]))
WORKLOAD = mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2]), *GROUPS)
ONE_OF_EACH = mdp.Workload(DOMAIN, mdp.marginals([["note"]]), *GROUPS)
BUDGET = mdp.Budget(epsilon=1, delta=1e-6, neighbours="replace", unit={"records": 2})


def save(
    folder: Path, budget: mdp.Budget = BUDGET, workload: mdp.Workload = WORKLOAD, **options: Any
) -> Path:
    saved(folder, workload, budget, TABLE, options, mechanism="residual", noise="gaussian")
    return folder


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("released") / "out")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("other") / "out")


@pytest.fixture
def forged(released: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(released, tmp_path / "forged"))


def subjects(folder: Path, **given: Any) -> set[str]:
    """Return the subjects of which something failed."""
    found = mdp.verify_release(folder, **given)
    assert found.holds == (not found.failed)
    return {finding.subject for finding in found.failed}


def test_a_release_holds(released: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    found = mdp.verify_release(released, progress=lambda *at: seen.append(at))
    assert seen[-1] == (WORKLOAD.queries, WORKLOAD.queries)
    outcomes = {finding.subject: finding.outcome for finding in found}
    checked = {"files", "measurement", "cost", "private", "statement", "answers", "record"}
    assert {name for name, outcome in outcomes.items() if outcome == "ok"} == checked
    unchecked = {name for name, outcome in outcomes.items() if outcome == "not checked"}
    assert unchecked == {"ledger", "noise", "origin", "signature"}
    assert subjects(save(tmp_path / "seeded", seed_not_private=1)) == set()
    assert subjects(save(tmp_path / "pure", mdp.Budget(rho=0.5))) == set()


def test_a_release_of_the_measurement_alone_holds(tmp_path: Path) -> None:
    budget = mdp.Budget(mu=1)
    release = mdp.select(WORKLOAD, mechanism="residual").measure(TABLE, budget).reconstruct()
    mdp.save_release(release, tmp_path / "out", max_answers=3)
    found = mdp.verify_release(tmp_path / "out")
    assert found.holds
    assert [f.outcome for f in found if f.subject == "answers"] == ["not checked"]
    forge_record(tmp_path / "out", lambda record: record["answers"].update(note="Ask `matrixdp answer`."))
    assert subjects(tmp_path / "out") == set()
    forge_record(tmp_path / "out", lambda record: record.update(rmse=record["rmse"] * 1.01))
    assert subjects(tmp_path / "out") == {"record"}


# ---- release.json, one field after the other


def altered(value: Any) -> Any:
    """Return another value of the same kind, as near as it means something."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * (1 + 1e-6) if value else 1e-9
    return value[:-1] + ("0" if value[-1:] != "0" else "1")


def spared(place: tuple[str | int, ...]) -> bool:
    """Whether a field does not follow from the measurement."""
    founded = any(place[: len(prefix)] == prefix for prefix in UNFOUNDED if prefix != ("files",))
    return founded or is_sentence(place)


def is_sentence(place: tuple[str | int, ...]) -> bool:
    """Whether it stands at a place where a record has a sentence."""
    names = ("text", "note", "totals", "rounding", "intervals")
    return place[-2:-1] == ("warnings",) or (place[-1] in names and not {"scale", "attributes"} & set(place))


@pytest.mark.slow
def test_every_field_of_the_record_that_follows_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a group of each kind: the record has the same fields for every group, and each of them is a verification
    released = save(tmp_path / "out", workload=ONE_OF_EACH)
    record = json.loads((released / "release.json").read_text(encoding="utf-8"))
    places = leaves(record)
    # what is measured stays the same, so it is read and proved sound once
    loaded = load_measurement(released / "measurement.mdp")
    monkeypatch.setattr(module, "load_measurement", lambda path: loaded)
    missed: list[tuple[str | int, ...]] = []
    free: list[tuple[str | int, ...]] = []
    assert len(places) > 150
    for place in places:
        forgery = copy.deepcopy(record)
        put(forgery, place, altered)
        monkeypatch.setattr(module, "read_record", lambda *_, forgery=forgery: forgery)
        holds = mdp.verify_release(released).holds
        (free if holds and spared(place) else missed if holds else []).append(place)
    assert missed == []
    assert {place[0] for place in free if not is_sentence(place)} <= {"versions", "strategy", "privacy"}
    assert len(free) < 45


def reworded(record: dict[str, Any]) -> None:
    """Reword every sentence of a record."""
    record["privacy"]["versions"]["matrixdp"] = "0.0.9"
    sentences = []
    for place in filter(is_sentence, leaves(record)):
        clause = record_at(record, place[:-1])
        if place[-1] != "text" or clause.get("id") != "other":  # whose sentence alone tells it apart
            sentences.append(clause[place[-1]])
            clause[place[-1]] = f"In other words: {sentences[-1].upper()}"
    assert len(sentences) > 12
    assert all(" " in words for words in sentences)


def record_at(record: Any, place: tuple[str | int, ...]) -> Any:
    for step in place:
        record = record[step]
    return record


@pytest.mark.parametrize(
    ("publication", "holds"),
    [
        ({"title": "<b>=1+1\x1b[2J", "round_to": 10**9, "method": "https://example.org/a"}, True),
        ({"method": "javascript:alert(1)"}, False),
        ({"method": 'https://example.org/"onclick=x'}, False),
        ({"round_to": 10**400}, False),
        ({"suppress": {"cv_above": 10**400}}, False),
        ({"language": "../en"}, False),
        ({"hide": True}, False),
        (["title"], False),
        (None, False),
    ],
)
def test_a_publication_that_nobody_could_declare_is_rejected(
    publication: object, holds: bool, forged: Path
) -> None:
    forge_record(forged, lambda record: record.update(publication=publication))
    assert subjects(forged) == (set() if holds else {"answers"})
    with nullcontext() if holds else pytest.raises(StorageError):
        page = mdp.report_release(forged)
        assert "&lt;b&gt;=1+1\ufffd[2J</h1>" in page


@pytest.mark.parametrize("most", [0, 10**9])
def test_the_words_of_another_version_hold(most: int, tmp_path: Path) -> None:
    released = mdp.select(WORKLOAD, mechanism="residual").measure(TABLE, mdp.Budget(mu=1)).reconstruct()
    folder = mdp.save_release(released, tmp_path / "out", max_answers=most)
    forge_record(folder, reworded)
    assert subjects(folder) == set()
    assert mdp.load_release(folder).private


@pytest.mark.parametrize(
    "change",
    [
        lambda privacy: privacy["assumed"].pop(),
        lambda privacy: privacy["covered"].reverse(),
        lambda privacy: privacy["covered"][0].update(id="population"),
        lambda privacy: privacy["assumed"][0]["parameters"].update(records=7),
        lambda privacy: privacy["covered"][1]["parameters"].update(counted=True),
        lambda privacy: privacy["unit"].update(records=3),
        lambda privacy: privacy["budget"]["exact"].update(epsilon="1/2"),
        lambda privacy: privacy["guarantees"][0]["exact"].update(mu="1/1000"),
        lambda privacy: privacy["not_covered"][0].update(text=7),
        lambda privacy: privacy.pop("text"),
    ],
)
def test_a_statement_of_something_else_is_found(forged: Path, change: Callable[[Any], object]) -> None:
    forge_record(forged, lambda record: change(record["privacy"]))
    assert subjects(forged) & {"statement", "record"}


def test_missing_and_added_fields_are_found(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = json.loads((released / "release.json").read_text(encoding="utf-8"))
    for name in record:
        less = {key: value for key, value in record.items() if key != name}
        monkeypatch.setattr(module, "read_record", lambda *_, less=less: less)
        assert not mdp.verify_release(released).holds or name == "versions"
    more = record | {"extra": 1}
    monkeypatch.setattr(module, "read_record", lambda *_: more)
    assert {f.words for f in mdp.verify_release(released).failed} == {"extra is no part of it"}


# ---- files


@pytest.mark.parametrize("name", ["release.json", "measurement.mdp", "answers.parquet", "answers.csv"])
def test_missing_flipped_and_other_files_are_found(forged: Path, other: Path, name: str) -> None:
    data = (forged / name).read_bytes()
    (forged / name).unlink()
    assert subjects(forged) != set()
    for position in () if name == "release.json" else np.linspace(0, len(data) - 1, 12).astype(int):
        flipped = bytearray(data)
        flipped[position] ^= 1 << int(position) % 8
        (forged / name).write_bytes(bytes(flipped))
        assert "files" in subjects(forged)
    shutil.copy(other / name, forged / name)
    assert subjects(forged) != set()
    if name != "release.json":
        relist(forged, name)
        assert subjects(forged) != set()


def test_a_file_beside_is_told(forged: Path) -> None:
    (forged / "notes.txt").write_text("mine")
    found = mdp.verify_release(forged)
    assert found.holds
    assert any(f.outcome == "not checked" and "notes.txt" in f.words for f in found)


def test_an_unlisted_file_of_a_release_is_found(forged: Path) -> None:
    forge_record(forged, lambda record: record["files"].pop("answers.csv"))
    assert {f.words for f in mdp.verify_release(forged).failed} == {"answers.csv is there and not listed"}
    forge_record(forged, lambda record: record.update(files=[]))
    assert "files" in subjects(forged)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON that all read alike"),
        ('{"a": 1, "a": 2}', "a key is given twice"),
        ('{"a": NaN}', "NaN is no number"),
        ("[]", "found a list; expected an object"),
        ("{}", "holds something else than the record of a release"),
        ("[" * 100_000, "not JSON that all read alike"),
    ],
)
def test_a_record_that_is_none_is_found(forged: Path, text: str, words: str) -> None:
    (forged / "release.json").write_text(text)
    found = mdp.verify_release(forged)
    assert [f.subject for f in found.failed] == ["record"]
    assert words in found.failed[0].words
    assert {f.outcome for f in found if f.subject in ("cost", "answers", "files")} == {"not checked"}


# ---- answers, with every digest right


def rewrite(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    path = folder / "answers.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    relist(folder, "answers.parquet")


def admitting_nulls(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([field.with_nullable(True) for field in table.schema], table.schema.metadata))


def broken_texts(table: pa.Table) -> pa.Table:
    place = table.schema.get_field_index("group")
    texts = pa.array([b"\xca"] * table.num_rows, pa.binary()).view(pa.utf8()).dictionary_encode()
    return table.set_column(place, table.schema.field(place), texts.cast(table.schema.field(place).type))


FIGURES = ["estimate", "stddev", "lower", "upper"]


@pytest.mark.parametrize(
    "change",
    [
        *(with_value(name, row, lambda value: value + 1e-3) for name in FIGURES for row in (0, 7, -1)),
        *(with_value("estimate", 3, value) for value in (None, math.nan, math.inf)),
        with_value("sex", 0, "male"),
        with_value("sex", 1, None),
        with_value("group", 4, "total"),
        with_value("note", 9, "b"),
        lambda table: table.slice(1),
        lambda table: table.slice(0, table.num_rows - 1),
        lambda table: pa.concat_tables([table, table.slice(0, 1)]),
        lambda table: table.take([1, 0, *range(2, table.num_rows)]),
        lambda table: table.drop_columns("stddev"),
        admitting_nulls,
        lambda table: table.rename_columns([*table.schema.names[:-1], "above"]),
        lambda table: table.replace_schema_metadata({b"matrixdp": b"NOT PRIVATE: seeded noise"}),
        lambda table: table.replace_schema_metadata({}),
        broken_texts,
    ],
)
def test_altered_answers_are_found(forged: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    rewrite(forged, change)
    assert subjects(forged) == {"answers"}


@pytest.mark.parametrize("name", ["answers.parquet", "answers.csv"])
def test_answers_that_cannot_be_read_are_found(forged: Path, name: str) -> None:
    for data in (b"", b"other", (forged / name).read_bytes()[:-40]):
        (forged / name).write_bytes(data)
        relist(forged, name)
        assert "answers" in subjects(forged)


def test_altered_csv_is_found(forged: Path) -> None:
    path = forged / "answers.csv"
    text = path.read_text(encoding="utf-8")
    first = text.splitlines()[1]
    figure = first.split(",")[-4]
    other = str(float(figure) + 0.01)
    changes = (
        text.replace(figure, other, 1),
        text.replace('"male"', '"other"', 1),
        text + first + "\n",
        text.replace('"estimate"', '"estimated"', 1),
        text.replace(",,", ',"",', 1),  # an empty text where there was nothing
    )
    for changed in changes:
        assert changed != text
        path.write_text(changed, encoding="utf-8")
        relist(forged, "answers.csv")
        assert subjects(forged) == {"answers"}


# ---- measurements, with every checksum right


def scaled(header: dict[str, Any], members: dict[str, bytes]) -> None:
    steps, power = header["noise"][-1]  # the first is that of the total, which no replacement moves
    header["noise"][-1] = [steps, power + 1]


def another_value(header: dict[str, Any], members: dict[str, bytes]) -> None:
    flip(members, header["values"], -4, 0x40)


def another_matrix(header: dict[str, Any], members: dict[str, bytes]) -> None:
    form = next(form for form in header["plan"]["matrices"] if "entries" in form)
    flip(members, form["entries"], 128 + 1, 0x01)


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        (scaled, {"measurement"}),
        (another_matrix, {"measurement"}),
        (another_value, {"answers"}),
        (lambda header, _: header.update(private=False), {"private"}),
        (lambda header, _: header.update(max_records=77), {"statement"}),
        (lambda header, _: header.update(assumptions=[{"id": "a", "text": "b"}]), {"statement"}),
        (lambda header, _: header["authorization"].update(time="2020-01-01T00:00:00+00:00"), {"statement"}),
        (lambda header, _: header["authorization"].update(time="yesterday"), {"measurement"}),
        (lambda header, _: header["authorization"].update(cost="1"), {"measurement"}),
        (lambda header, _: header["authorization"]["budget"].update(delta="1/100000"), {"statement"}),
        (lambda header, _: header["workload"]["entries"].pop(0), {"record"}),
        (lambda header, _: header["workload"]["domain"].reverse(), None),
        (lambda header, _: header["plan"].update(noise="laplace"), {"measurement"}),
    ],
)
def test_altered_measurements_are_found(forged: Path, change: Any, failed: set[str] | None) -> None:
    forge_measurement(forged, change)
    found = subjects(forged)
    assert found >= (failed or set())
    assert found


def test_a_confidence_that_is_none_is_found(forged: Path) -> None:
    forge_record(forged, lambda record: record.update(confidence="high"))
    assert subjects(forged) == {"answers"}
    forge_record(forged, lambda record: record.update(confidence=0.9))
    assert "answers" in subjects(forged)


def test_a_seeded_release_cannot_be_told_to_be_private_in_one_place(tmp_path: Path) -> None:
    folder = save(tmp_path / "out", seed_not_private=3)
    record = (folder / "release.json").read_bytes()
    changes: list[Callable[[dict[str, Any]], object]] = [
        lambda record: record.update(private=True),
        lambda record: record["privacy"].update(private=True),
        lambda record: record.pop("warning"),
    ]
    for change in changes:
        forge_record(folder, change)
        assert subjects(folder) & {"private", "statement"}
        (folder / "release.json").write_bytes(record)
    forge_measurement(folder, lambda header, _: header.update(private=True))
    assert "private" in subjects(folder)


def test_the_key_that_must_have_signed(released: Path, forged: Path, tmp_path: Path) -> None:
    def told(folder: Path, **given: Any) -> tuple[str, str, bool]:
        found = mdp.verify_release(folder, **given)
        (finding,) = (f for f in found if f.subject == "signature")
        return finding.outcome, finding.words, found.holds

    private, public = mdp.make_keys(tmp_path / "office")
    _, another = mdp.make_keys(tmp_path / "another")
    key = mdp.SigningKey.load(private)
    assert told(forged) == ("not checked", "there is none", True)
    assert told(forged, key=public)[::2] == ("failed", False)
    mdp.sign_release(forged, key)
    outcome, words, holds = told(forged, key=public)
    assert (outcome, holds) == ("ok", True)
    assert key.public.fingerprint in words
    assert told(forged, key=mdp.PublicKey.load(public))[0] == "ok"
    assert told(forged) == ("not checked", "there is one, and the public key was not given (--key)", True)
    assert told(forged, key=another)[::2] == ("failed", False)
    # a release that holds together in itself, and is not the one that was signed
    mdp.save_release(mdp.load_release(released), tmp_path / "again")
    for name in ("release.json", "measurement.mdp"):
        shutil.copy(tmp_path / "again" / name, forged / name)
    (forged / "answers.csv").unlink()
    assert told(forged)[::2] == ("not checked", True)
    assert told(forged, key=public)[::2] == ("failed", False)
    with pytest.raises(mdp.SignatureError, match="cannot be read"):
        mdp.verify_release(forged, key=tmp_path / "nowhere")


# ---- the ledger that a release says it was debited to


def debited(folder: Path, **given: Any) -> Path:
    return save(folder, mdp.Budget(rho=0.1), ONE_OF_EACH, **given)


@pytest.fixture
def ledger(tmp_path: Path) -> mdp.Ledger:
    return mdp.Ledger.create(tmp_path / "a.ledger", "health", mdp.Budget(rho=1))


def of_ledger(folder: Path, ledger: Path | None) -> Finding:
    [finding] = [f for f in mdp.verify_release(folder, ledger=ledger) if f.subject == "ledger"]
    return finding


def test_a_debit_is_found(ledger: mdp.Ledger, tmp_path: Path) -> None:
    debited(tmp_path / "first", ledger=ledger)
    folder = debited(tmp_path / "out", ledger=ledger)
    finding = of_ledger(folder, ledger.path)
    assert finding.outcome == "ok"
    assert finding.words == "health holds the debit, entry 2 of 2: released"
    assert mdp.verify_release(folder, ledger=ledger.path).holds
    assert mdp.verify_release(folder, ledger=ledger).holds
    assert mdp.recover_ledger(ledger.path) == mdp.recover_ledger(ledger) == ()
    without = of_ledger(folder, None)
    assert without.outcome == "not checked"
    assert f"entry {ledger.entries[1].id}, which was not given" in without.words


def test_a_debit_beside_what_nobody_may_list(
    ledger: mdp.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = debited(tmp_path / "held" / "out", ledger=ledger)
    listed = Path.iterdir

    def denied(path: Path) -> Iterator[Path]:
        if path == folder.parent:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", denied)
    assert of_ledger(folder, ledger.path).outcome == "ok"
    without_triggers(ledger.path, "UPDATE entries SET measurement = lower(hex(zeroblob(32)))")
    assert of_ledger(folder, ledger.path).outcome == "failed"


def test_other_ledgers_do_not_hold_it(ledger: mdp.Ledger, tmp_path: Path) -> None:
    folder = debited(tmp_path / "out", ledger=ledger)
    other = mdp.Ledger.create(tmp_path / "b.ledger", "health", mdp.Budget(rho=1))
    finding = of_ledger(folder, other.path)
    assert finding.outcome == "failed"
    assert finding.words == f"it has no entry {ledger.entries[0].id}"
    undebited = of_ledger(debited(tmp_path / "none"), ledger.path)
    assert undebited.words == "the release says that it was debited to none"
    (tmp_path / "text").write_text("no ledger")
    assert of_ledger(folder, tmp_path / "text").outcome == "failed"


def without_triggers(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        triggers = connection.execute(query).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE entries SET measurement = replace(printf('%64d', 0), ' ', 'a')", "measurement is another"),
        ("UPDATE entries SET state = 'reserved', measurement = NULL", "its entry is reserved; expected"),
        ("UPDATE entries SET state = 'spent by crash'", "its entry is abandoned; expected measured"),
        ("UPDATE entries SET cost = '1/10'", "damaged or altered"),
        ("DELETE FROM entries", "it has no entry"),
    ],
)
def test_altered_entries_are_found(ledger: mdp.Ledger, tmp_path: Path, statement: str, words: str) -> None:
    folder = debited(tmp_path / "out", ledger=ledger)
    without_triggers(ledger.path, statement)
    failed = [f.words for f in mdp.verify_release(folder, ledger=ledger.path).failed]
    assert any(words in one for one in failed)


def named(entry: dict[str, Any]) -> Any:
    """Return what lets a measurement name another entry."""
    return lambda header, _: header["authorization"].update(ledger=entry)


def test_a_release_that_names_the_entry_of_another_is_found(ledger: mdp.Ledger, tmp_path: Path) -> None:
    first = debited(tmp_path / "first", ledger=ledger)
    second = debited(tmp_path / "second")
    entry: dict[str, Any] = {}
    forge_measurement(first, lambda header, _: entry.update(header["authorization"]["ledger"]))
    forge_measurement(second, named(entry))
    failed = {f.words for f in mdp.verify_release(second, ledger=ledger.path).failed if f.subject == "ledger"}
    assert failed == {"the measurement is another than that of the release"}
    for other in ({"dataset": "wealth"}, {"digest": "0" * 64}):
        forge_measurement(first, named({**entry, **other}))
        failed = {f.words for f in mdp.verify_release(first, ledger=ledger.path).failed}
        assert any(words.endswith("is another than that of the release") for words in failed)
