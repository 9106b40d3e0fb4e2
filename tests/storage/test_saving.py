import dataclasses
import io
import json
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import StorageError
from matrixdp.exact import IdentityMatrix, MeasuredMatrix
from matrixdp.language import dense, kway, marginals, pairwise, product
from matrixdp.measure.measurement import Measurement, measure
from matrixdp.noise import GAUSSIAN
from matrixdp.plan import Block, Direct
from matrixdp.privacy import Budget, Clause
from matrixdp.queries import Workload
from matrixdp.selection.auto import select
from matrixdp.selection.selection import Selection
from matrixdp.sources import open_source
from matrixdp.storage import formats as plan_format
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter
from matrixdp.storage.formats import (
    STRATEGY_FORMAT,
    load_measurement,
    load_strategy,
    save_measurement,
    save_strategy,
    write_plan,
)

DOMAIN = Domain(
    {
        "sex": ["female", "male"],
        "age": {"min": 0, "max": 9},
        "income": {"edges": [0, 10, 25]},
        "hours": {"min": 0, "max": 8, "bins": 4},
        "code": 3,
    }
)
TABLE = {
    "sex": ["male", "female", "male"],
    "age": [3, 4, 99],
    "income": [1, 12, 3],
    "hours": [0, 8, 1],
    "code": [0, 1, 2],
}


@pytest.fixture(scope="module")
def workload() -> Workload:
    return Workload(
        DOMAIN,
        marginals([0, 1]),
        kway(2, {"numeric": "prefix"}, attributes=["sex", "age", "code"], name="pairs"),
        product({"age": {"ranges": [[0, 4], [5, 9]]}, "sex": {"sets": [["female"], ["female", "male"]]}}),
        product({"code": {"matrix": [[1, 0.5, 0], [0, 0, 1]]}}, weights=[1, 2]),
        pairwise("abs", attributes=["age", "hours"]),
        dense(np.eye(6), attributes=["sex", "code"], weight=3),
    )


@pytest.fixture(scope="module")
def selection(workload: Workload) -> Selection:
    return select(workload, mechanism="querysmasher", noise=GAUSSIAN)


@pytest.fixture(scope="module")
def saved(selection: Selection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "strategy.mdp"
    save_strategy(path, selection)
    return path


@pytest.fixture(scope="module")
def measurement(selection: Selection) -> Measurement:
    rule = OutOfDomain({"age": 9})
    budget = Budget(epsilon=Fraction(1, 3), delta=1e-6)
    return measure(selection.plan, open_source(TABLE), budget, out_of_domain=rule, max_records=1000)


def rewritten(path: Path, target: Path, change, *, header_digest: bool = True) -> Path:
    """Copy an archive with its members changed; the header's checksum is made right unless told otherwise."""
    import hashlib

    with zipfile.ZipFile(path) as source:
        members = {name: source.read(name) for name in source.namelist()}
    header = json.loads(members["header.json"])
    change(header, members)
    members["header.json"] = json.dumps(header).encode()
    if header_digest:
        members["header.sha256"] = hashlib.sha256(members["header.json"]).hexdigest().encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return target


def with_array(header, members, name: str, array) -> None:
    import hashlib

    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=(1, 0))
    members[name] = stream.getvalue()
    header["checksums"][name] = hashlib.sha256(stream.getvalue()).hexdigest()


def test_a_strategy_comes_back_the_same(selection: Selection, saved: Path):
    again = load_strategy(saved)
    assert again.workload.domain == selection.workload.domain
    assert [g.name for g in again.workload] == [g.name for g in selection.workload]
    assert again.certificate == selection.certificate
    assert (again.mechanism, again.noise, again.neighbours) == (
        selection.mechanism,
        selection.noise,
        selection.neighbours,
    )
    assert again.weighted_squared_error == pytest.approx(selection.weighted_squared_error, rel=1e-9)
    for group in selection.workload:
        np.testing.assert_allclose(again.analysis.variances(group), selection.analysis.variances(group))


def test_a_strategy_saves_to_the_same_content_again(saved: Path, tmp_path: Path):
    save_strategy(tmp_path / "again.mdp", load_strategy(saved))
    with zipfile.ZipFile(saved) as first, zipfile.ZipFile(tmp_path / "again.mdp") as second:
        assert {n: first.read(n) for n in first.namelist()} == {n: second.read(n) for n in second.namelist()}


def test_a_direct_strategy_comes_back_the_same(tmp_path: Path):
    workload = Workload(
        Domain({"sex": ["female", "male"], "age": 5}), product({"sex": "identity", "age": "range"})
    )
    selection = select(workload, mechanism="dense", noise=GAUSSIAN)
    assert isinstance(selection.plan, Direct)
    save_strategy(tmp_path / "s.mdp", selection)
    again = load_strategy(tmp_path / "s.mdp")
    assert isinstance(again.plan, Direct)
    assert again.total_squared_error == pytest.approx(selection.total_squared_error, rel=1e-9)


def test_shared_matrices_are_saved_once(tmp_path: Path):
    domain = Domain({f"a{i}": {"min": 0, "max": 7} for i in range(6)})
    selection = select(Workload(domain, kway([1, 2, 3], "prefix")), noise=GAUSSIAN)
    save_strategy(tmp_path / "s.mdp", selection)
    with ArchiveReader(tmp_path / "s.mdp", STRATEGY_FORMAT, 3) as archive:
        assert len(archive.header["plan"]["parts"]) == 1 + 6 + 15 + 20
        assert len(archive.header["plan"]["matrices"]) < 10
        assert len(set(archive.header["plan"]["vectors"]["weights"].values())) == 1


def test_measurements_come_back_the_same(measurement: Measurement, workload: Workload, tmp_path: Path):
    save_measurement(tmp_path / "m.mdp", measurement, workload)
    again, asked = load_measurement(tmp_path / "m.mdp")
    assert len(asked) == len(workload)
    assert again.authorization == measurement.authorization
    assert again.authorization.budget.epsilon == Fraction(1, 3)
    assert (again.scales, again.private, again.max_records, again.out_of_domain) == (
        measurement.scales,
        True,
        1000,
        measurement.out_of_domain,
    )
    for left, right in zip(again.values, measurement.values, strict=True):
        np.testing.assert_array_equal(left, right)


def test_what_is_assumed_of_the_table_stays_said(selection: Selection, workload: Workload, tmp_path: Path):
    (tmp_path / "t.csv").write_text(",".join(workload.domain.names) + "\n")
    source = open_source(tmp_path / "t.csv", quoted_newlines=True)
    measured = measure(selection.plan, source, Budget(rho=1), seed_not_private=1)
    save_measurement(tmp_path / "m.mdp", measured, workload)
    again = load_measurement(tmp_path / "m.mdp")[0]
    assert again.assumptions == measured.assumptions == source.assumptions(workload.domain)
    assert [Clause.of(sentence).id for sentence in again.assumptions] == ["quotes-closed"]
    for written, id_and_text in (
        ("A sentence of an earlier version.", ("other", "A sentence of an earlier version.")),
        ({"id": "a-b", "text": "A sentence."}, ("a-b", "A sentence.")),
    ):
        changed = rewritten(tmp_path / "m.mdp", tmp_path / "x.mdp", set_in("assumptions", [written]))
        (sentence,) = load_measurement(changed)[0].assumptions
        assert (Clause.of(sentence).id, str(sentence)) == id_and_text
    for refused in (
        [1],
        [["a", "b"]],
        [{"id": 1, "text": "A sentence."}],
        [{"id": "a"}],
        [{"id": "A", "text": ""}],
    ):
        changed = rewritten(tmp_path / "m.mdp", tmp_path / "x.mdp", set_in("assumptions", refused))
        with pytest.raises(StorageError, match="damaged or altered"):
            load_measurement(changed)


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ("1e999999999", "exact number"),
        ("1" * 5000, "exact number"),
        ("1/3", "no integer over a power of 2"),
        (4096, "exact number"),
    ],
    ids=["exponent", "digits", "thirds", "number"],
)
def test_scales_that_noise_cannot_have_are_refused(
    measurement: Measurement, workload: Workload, tmp_path: Path, steps, says: str
):
    save_measurement(tmp_path / "m.mdp", measurement, workload)
    power = measurement.scales[0].power
    noise = [[str(scale.steps), scale.power] for scale in measurement.scales]
    changed = rewritten(tmp_path / "m.mdp", tmp_path / "x.mdp", set_in("noise", [[steps, power], *noise[1:]]))
    with pytest.raises(StorageError, match=says):
        load_measurement(changed)


def test_seeded_measurements_stay_labelled(selection: Selection, workload: Workload, tmp_path: Path):
    measured = measure(selection.plan, open_source(TABLE), Budget(rho=1), seed_not_private=1)
    save_measurement(tmp_path / "m.mdp", measured, workload)
    assert load_measurement(tmp_path / "m.mdp")[0].private is False


def test_nothing_is_pickled(saved: Path):
    with zipfile.ZipFile(saved) as archive:
        for name in archive.namelist():
            if name.endswith(".npy"):
                array = np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
                assert array.dtype.kind in "if"


def test_every_flipped_byte_is_found_or_harmless(saved: Path, selection: Selection, tmp_path: Path):
    content = saved.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.choice(len(content), 60, replace=False):
        changed = bytearray(content)
        changed[position] ^= 0x55
        (tmp_path / "x.mdp").write_bytes(bytes(changed))
        try:
            again = load_strategy(tmp_path / "x.mdp")
        except StorageError:
            continue
        assert again.weighted_squared_error == pytest.approx(selection.weighted_squared_error, rel=1e-9)


def test_truncated_files_are_refused(saved: Path, tmp_path: Path):
    content = saved.read_bytes()
    for length in (0, 10, len(content) // 2, len(content) - 1):
        (tmp_path / "x.mdp").write_bytes(content[:length])
        with pytest.raises(StorageError):
            load_strategy(tmp_path / "x.mdp")


def set_in(*path):
    *steps, value = path

    def change(header, _members):
        for step in steps[:-1]:
            header = header[step]
        header[steps[-1]] = value

    return change


def drop(*path):
    def change(header, _members):
        for step in path[:-1]:
            header = header[step]
        del header[path[-1]]

    return change


def singular(header, members):
    form = next(m for m in header["plan"]["matrices"] if m["kind"] == "integer")
    entries = np.load(io.BytesIO(members[form["entries"]]), allow_pickle=False)
    with_array(header, members, form["entries"], np.ones_like(entries))


def not_integers(header, members):
    form = next(m for m in header["plan"]["matrices"] if m["kind"] == "integer")
    with_array(header, members, form["entries"], np.eye(4))


def halved(header, members):
    for part in header["plan"]["parts"]:
        part["variance"] /= 2


def misfitting(header, members):
    form = next(m for m in header["plan"]["matrices"] if "unsupported" in m)
    size = np.load(io.BytesIO(members[form["entries"]]), allow_pickle=False).shape[1]
    with_array(header, members, form["unsupported"], np.zeros((1, size + 1)))


def entries(header):
    return next(m for m in header["plan"]["matrices"] if m["kind"] == "integer")["entries"]


def twice_read(header, _members):
    """Matrices that are alike are written once: two that share an array make two factors of it."""
    header["plan"]["matrices"] += [{"kind": "integer", "entries": entries(header)}] * 20


def unmeasured(header, _members):
    header["plan"]["matrices"].append({"kind": "identity", "size": 3})


def multiplied_by_weights(header, _members):
    header["plan"]["parts"][1]["multipliers"] = header["plan"]["vectors"]["weights"]["sex"]


def whole_weights(header, members):
    """A narrower array would be widened for everything that names it."""
    with_array(header, members, header["plan"]["vectors"]["weights"]["sex"], np.ones(2, dtype=np.int32))


def floats(header, members):
    steps = np.load(io.BytesIO(members[header["values"]]), allow_pickle=False)
    with_array(header, members, header["values"], steps.astype(float))


def wrong_weights(header, members):
    name = header["plan"]["vectors"]["weights"]["sex"]
    with_array(header, members, name, np.ones(2))


def huge_weights(header, members):
    name = header["plan"]["vectors"]["weights"]["sex"]
    with_array(header, members, name, np.array([1e300, 1 - 1e300]))


def weights_that_are_none(header, members):
    form = next(m for m in header["plan"]["matrices"] if "unsupported" in m)
    size = np.load(io.BytesIO(members[form["entries"]]), allow_pickle=False).shape[1]
    with_array(header, members, form["unsupported"], np.full((1, size), np.nan))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (set_in("format", "something"), "something else"),
        (set_in("format_version", 4), "newer"),
        (set_in("format_version", 2), "make it anew"),
        (set_in("format_version", "1"), "not a number"),
        (drop("plan"), "form"),
        (drop("certificate", "loss"), "form"),
        (set_in("certificate", "loss", "small"), "no number"),
        (set_in("mechanism", 5), "no text"),
        (set_in("reason", 5), "no text"),
        (set_in("reason", None), "no text"),
        (set_in("certificate", "scope", ["all"]), "no text"),
        (set_in("neighbours", "anyone"), "unknown"),
        (set_in("objective", "least"), "unknown"),
        (set_in("plan", "parts", 0, "variance", -1.0), "noise variance"),
        (set_in("plan", "parts", 0, "variance", None), "form"),
        (set_in("plan", "parts", 1, "blocks", [[[99], 0]]), "form"),
        (set_in("plan", "parts", 1, "blocks", [[[0, 1], 0]]), "does not fit the attributes sex, age"),
        (set_in("plan", "parts", 1, "blocks", [[[-1], 0]]), "attribute"),
        (set_in("plan", "parts", 1, "blocks", [[[True], 0]]), "attribute"),
        (set_in("plan", "parts", 1, "blocks", [[[0], -1]]), "matrix that there is not"),
        (set_in("plan", "parts", 1, "blocks", [[[0], 99]]), "form"),
        (set_in("plan", "parts", 1, "blocks", [[[0, 0], 0]]), "named twice"),
        (multiplied_by_weights, "multipliers are not integers"),
        (whole_weights, "weights hold what is no number of use"),
        (unmeasured, "no part measures one of its matrices"),
        (twice_read, "refers to arrays/.* twice"),
        (lambda header, _: set_in("plan", "parts", 1, "multipliers", entries(header))(header, _), "twice"),
        (set_in("plan", "matrices", 0, "kind", "unheard"), "unknown kind"),
        (set_in("plan", "matrices", 0, {"kind": "identity", "size": 0}), "size"),
        (set_in("plan", "matrices", 0, {"kind": "centered", "size": True}), "size"),
        (set_in("plan", "matrices", 0, {"kind": "identity", "size": 99}), "does not fit"),
        (set_in("plan", "parts", []), "no part measures"),
        (set_in("plan", "kind", "unheard"), "no kind of plan"),
        (set_in("plan", "kind", "direct"), "form"),
        (set_in("plan", "vectors", {}), "form"),
        (set_in("workload", "entries", []), "found no queries"),
        (set_in("workload", "domain", [["sex", "female"]]), "its workload: sex"),
        (singular, "nonsingular|singular"),
        (not_integers, "integers"),
        (halved, "a plan that costs"),
        (misfitting, "unsupported directions of a matrix do not fit it"),
        (wrong_weights, "weights"),
        (huge_weights, "weights hold what is no number of use"),
        (weights_that_are_none, "weights hold what is no number of use"),
    ],
)
def test_altered_strategies_are_refused(saved: Path, tmp_path: Path, change, says: str):
    with pytest.raises(StorageError, match=says):
        load_strategy(rewritten(saved, tmp_path / "x.mdp", change))


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_a_file_that_needs_more_than_there_is_is_refused(saved: Path, error, monkeypatch: pytest.MonkeyPatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(plan_format, "IntegerMatrix", fail)
    with pytest.raises(StorageError, match="needs more memory than there is"):
        load_strategy(saved)


def test_a_header_that_does_not_match_its_checksum_is_refused(saved: Path, tmp_path: Path):
    path = rewritten(saved, tmp_path / "x.mdp", set_in("reason", "other"), header_digest=False)
    with pytest.raises(StorageError, match="checksum"):
        load_strategy(path)


def test_a_measurement_cannot_understate_its_cost(
    measurement: Measurement, workload: Workload, tmp_path: Path
):
    save_measurement(tmp_path / "m.mdp", measurement, workload)
    low = str(measurement.authorization.cost.value / 2)
    with pytest.raises(StorageError, match="costs more or less than it says"):
        load_measurement(
            rewritten(tmp_path / "m.mdp", tmp_path / "x.mdp", set_in("authorization", "cost", low))
        )
    high = str(measurement.authorization.cost.value * 2)
    with pytest.raises(StorageError, match="its privacy record: privacy cost"):
        load_measurement(
            rewritten(tmp_path / "m.mdp", tmp_path / "x.mdp", set_in("authorization", "cost", high))
        )
    for change in (
        set_in("noise", [["1", 0]]),
        set_in("noise", 0, [1]),
        set_in("noise", 0, ["1/0", 0]),
        set_in("noise", 0, ["5000", 0]),
        set_in("noise", 0, 1, 10**9),
        set_in("private", "yes"),
        set_in("max_records", 0),
        floats,
        set_in("out_of_domain", {"age": 99}),
        set_in("authorization", "cost", "1/0"),
        set_in("authorization", "time", 20260101),
        drop("values"),
    ):
        with pytest.raises(StorageError):
            load_measurement(rewritten(tmp_path / "m.mdp", tmp_path / "x.mdp", change))


def test_a_strategy_is_no_measurement(saved: Path):
    with pytest.raises(StorageError, match="something else"):
        load_measurement(saved)


def test_other_files_are_refused(tmp_path: Path):
    with pytest.raises(StorageError, match="no such file"):
        load_strategy(tmp_path / "absent.mdp")
    (tmp_path / "text.mdp").write_text("not a zip file")
    with pytest.raises(StorageError, match="not a saved"):
        load_strategy(tmp_path / "text.mdp")
    with zipfile.ZipFile(tmp_path / "bomb.mdp", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b"0" * 10_000_000)
        archive.writestr("header.sha256", "0")
    with pytest.raises(StorageError, match="compressed"):
        load_strategy(tmp_path / "bomb.mdp")
    with pytest.raises(StorageError, match="cannot be written"):
        ArchiveWriter(tmp_path / "absent" / "x.mdp")


def test_a_failed_save_leaves_nothing(tmp_path: Path, selection: Selection):
    (tmp_path / "s.mdp").write_text("old")
    with pytest.raises(StorageError, match="entries"), ArchiveWriter(tmp_path / "s.mdp") as archive:
        archive.add_pieces([np.zeros(2)], (3,), np.dtype(np.float64))
    assert [p.name for p in tmp_path.iterdir()] == ["s.mdp"]
    assert (tmp_path / "s.mdp").read_text() == "old"
    with pytest.raises(StorageError, match="cannot be saved"), ArchiveWriter(tmp_path / "o.mdp") as archive:
        archive.add(np.array([object()]))
    broken = dataclasses.replace(selection, reason=cast("Any", float("nan")))  # not JSON
    with pytest.raises(ValueError, match="JSON"):
        save_strategy(tmp_path / "n.mdp", broken)
    assert [p.name for p in tmp_path.iterdir()] == ["s.mdp"]


def test_matrices_without_a_form_are_not_saved(tmp_path: Path):
    methods = {name: getattr(IdentityMatrix, name) for name in MeasuredMatrix.__abstractmethods__}
    own = type("Own", (MeasuredMatrix,), methods | {"size": 2})()
    plan = Direct.of(Domain({"code": 2}), [Block(("code",), own)], GAUSSIAN)
    with (
        pytest.raises(StorageError, match="a matrix of kind Own cannot be saved"),
        ArchiveWriter(tmp_path / "x.mdp") as archive,
    ):
        write_plan(plan, archive)
    assert not list(tmp_path.iterdir())
