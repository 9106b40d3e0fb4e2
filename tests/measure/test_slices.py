"""Measurements in slices of an attribute that stays whole: the same counts, answers and errors."""

import io
import os
import signal
import zipfile
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp import mapped
from matrixdp.domain import OutOfDomain
from matrixdp.errors import StorageError, TooLargeError
from matrixdp.exact import CenteredMatrix, IdentityMatrix
from matrixdp.mapped import Multiples
from matrixdp.measure import noisy_answers
from matrixdp.measure.measurement import Measurement, measure
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.plans import Block, Part, SlicedEstimates, Slices, Split, residual_weights
from matrixdp.plans import slices as sliced
from matrixdp.plans.pieces import PieceEstimates
from matrixdp.releases import files
from matrixdp.releases.release import Release
from matrixdp.releases.transaction import transaction
from matrixdp.selection.auto import select
from matrixdp.sources import open_source
from matrixdp.storage import archive
from matrixdp.storage.formats import load_measurement, save_measurement
from tests.audit import reading
from tests.forging import forge_measurement
from tests.independent import verifier
from tests.storage.archives import npy

AREAS, OTHERS = 23, {"sex": 2, "age": 5, "race": 3}
SUBSETS = [own for size in range(4) for own in combinations(OTHERS, size)]
DOMAIN = mdp.Domain({"geo": AREAS, **OTHERS})
WORKLOAD = mdp.Workload(
    DOMAIN,
    mdp.marginals([["geo", *own] for own in SUBSETS]),
    mdp.marginals([[], ["age"]]),
    mdp.product(geo={"sets": [[0, 2], [], [22], [5, 6, 7]]}, sex="identity", age="prefix"),
    mdp.product(geo="prefix", sex="identity"),
    mdp.product(geo="identity", age={"ranges": [[1, 3]]}),
    mdp.dense(np.eye(AREAS)[:2] - np.eye(AREAS)[4:6], attributes=["geo"], name="differences"),
)
random = np.random.default_rng(5)
TABLE = {
    "geo": random.choice([*range(7), *range(15, 22)], 900),
    **{n: random.integers(0, k, 900) for n, k in OTHERS.items()},
}


def plan(noise: Noise = GAUSSIAN) -> Split:
    parts = []
    for own in SUBSETS:
        blocks = [
            Block(("geo",), IdentityMatrix(AREAS)),
            *(Block((n,), CenteredMatrix(OTHERS[n])) for n in own),
        ]
        parts.append(Part(("geo", *own), tuple(blocks), 1.0).at_cost(noise, 1 / len(SUBSETS)))
    return Split(
        DOMAIN,
        tuple(parts),
        noise,
        {n: residual_weights(DOMAIN[n].size) for n in OTHERS} | {"geo": np.zeros(AREAS)},
    )


@pytest.fixture
def areas(monkeypatch: pytest.MonkeyPatch) -> int:
    """Slices of four areas, whose answers lie in files, and the last of three."""
    monkeypatch.setattr(sliced, "LEAST_CUT", 10)
    monkeypatch.setattr(sliced, "_CELLS", 4 * 72)
    monkeypatch.setattr(mapped, "LARGEST_HELD", 16)
    monkeypatch.setattr(archive, "LARGEST_HELD", 16)
    monkeypatch.setattr(mapped, "_PIECE", 7)
    return 4


def measured(budget: mdp.Budget | None = None, noise: Noise = GAUSSIAN, **options) -> Measurement:
    return measure(plan(noise), open_source(TABLE), budget or mdp.Budget(mu=1), **options)


def exact() -> dict[str, np.ndarray]:
    """The true answers to each group, by plain arithmetic."""
    counts = np.zeros(DOMAIN.shape)
    np.add.at(counts, tuple(TABLE[name] for name in DOMAIN.names), 1)
    found = {}
    for group in WORKLOAD:
        others = tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in group.attributes)
        found[group.name] = group.rows() @ counts.sum(axis=others).ravel()
    return found


def test_the_slices_of_a_plan(areas):
    found = Slices.of(plan())
    assert found is not None
    assert (found.attribute, found.width, len(found)) == ("geo", areas, 6)
    assert list(found)[-1] == slice(20, 23)
    for other in (
        replace(plan(), weights=plan().weights | {"geo": residual_weights(AREAS)}),
        replace(
            plan(),
            parts=(
                plan().parts[0],
                replace(plan().parts[1], blocks=plan().parts[1].blocks[::-1]),
                *plan().parts[2:],
            ),
        ),
    ):
        assert Slices.of(other) is None


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_answers_are_as_near_to_the_truth_as_they_say(areas, noise):
    budget = mdp.Budget(mu=2) if noise == GAUSSIAN else mdp.Budget(epsilon=2)
    release = Release(measured(budget, noise), WORKLOAD)
    assert isinstance(release.measurement.estimates, SlicedEstimates)
    whole = release.measurement.plan.analysed([scale.variance for scale in release.measurement.scales])
    true = exact()
    for group in WORKLOAD:
        table = release._table([group])
        error = table["estimate"].to_numpy() - true[group.name]
        deviations = table["stddev"].to_numpy()
        assert deviations == pytest.approx(np.sqrt(whole.variances(group)), abs=1e-9)
        assert np.abs(error).max() < 7 * deviations.max()
        if group.queries > 600:
            assert np.mean((error / deviations) ** 2) == pytest.approx(1, abs=0.35)


def test_estimates_of_slices_are_those_of_the_whole(areas):
    found = measured()
    assert all(isinstance(own, Multiples) for own in found.values)
    held = tuple(np.asarray(own) for own in found.values)
    whole, own = found.analysis.estimates(held), found.estimates
    assert isinstance(whole, PieceEstimates)
    for group in WORKLOAD:
        assert own.answers(group) == pytest.approx(whole.answers(group), abs=1e-9), group.name
        pieces = list(own.batches((group,)))
        assert sum(asked.queries for _, _, asked, _ in pieces) == group.queries
        variances = np.concatenate([found.analysis.variances(asked) for _, _, asked, _ in pieces])
        assert variances == pytest.approx(found.analysis.variances(group), rel=1e-12)
    for names in (("geo", "sex"), ("age",), ()):
        assert own.marginal(names) == pytest.approx(whole.marginal(names), abs=1e-9)


def test_levels_with_names_are_summed_slice_after_slice(areas, monkeypatch):
    halves = mdp.product(geo={"sets": {"west": [0, 2, 5], "east": [1, *range(10, 20)]}}, sex="identity")
    (group,) = mdp.Workload(DOMAIN, halves)
    found = measured()
    expected = found.analysis.estimates(tuple(map(np.asarray, found.values))).answers(group)
    monkeypatch.setattr(SlicedEstimates, "marginal", None)  # it has all areas at once
    assert found.estimates.answers(group) == pytest.approx(expected, abs=1e-9)


def test_one_slice_draws_the_same_noise(monkeypatch):
    whole = measured(seed_not_private=3)
    monkeypatch.setattr(sliced, "LEAST_CUT", 10)
    assert len(Slices.of(plan()) or ()) == 1
    for own, other in zip(measured(seed_not_private=3).values, whole.values, strict=True):
        assert np.array_equal(np.asarray(own), other)


def test_counts_of_records_out_of_domain_come_with_slices(areas):
    table = {**TABLE, "sex": np.where(TABLE["geo"] == 3, 7, TABLE["sex"])}
    rules = OutOfDomain(counts=[None])
    found = measure(plan(), open_source(table), mdp.Budget(mu=1e4), out_of_domain=rules)
    assert found.out_of_domain_counts.values[0] == pytest.approx((TABLE["geo"] == 3).sum(), abs=1)


def test_answers_beyond_32_bits(areas):
    numbers = Multiples(mapped.room(20), -3)
    numbers.put(slice(0, 9), np.arange(9))
    numbers.put(slice(9, 20), np.arange(11) - 2**40)
    assert np.asarray(numbers).tolist() == [*np.arange(9) / 8, *(np.arange(11) - 2**40) / 8]


def test_a_release_is_written_read_and_verified(areas, tmp_path):
    release = Release(measured(), WORKLOAD)
    folder = mdp.save_release(release, tmp_path / "out", csv=True)
    loaded = mdp.load_release(folder)
    assert all(isinstance(own, Multiples) for own in loaded.measurement.values)
    assert loaded.answers.equals(release.answers)
    assert mdp.verify_release(folder).holds


@pytest.fixture
def far(areas, tmp_path):
    """A folder with answers of several parts beyond 32 bits, and its measurement."""
    table = {name: np.tile(values, 16) for name, values in TABLE.items()}
    found = measure(plan(), open_source(table), mdp.Budget(mu=1e4))
    return mdp.save_release(Release(found, WORKLOAD), tmp_path / "out"), found


def test_answers_beyond_32_bits_are_written_read_and_verified(far):
    folder, found = far
    loaded: Any = mdp.load_release(folder).measurement.values
    assert 0 < sum(own.places.size for own in loaded) < sum(own.size for own in loaded)
    independent = reading.read(folder / "measurement.mdp").values
    for own, other, steps in zip(loaded, found.values, independent, strict=True):
        assert np.array_equal(np.asarray(own), np.asarray(other))
        assert np.array_equal(np.asarray(own), np.ldexp(steps, own.power))
        assert own.steps.dtype == np.int32
    assert mdp.verify_release(folder).holds
    assert verifier.main([str(folder)]) == 0


def test_a_plan_without_slices_has_no_answers_apart(far, monkeypatch):
    monkeypatch.setattr(sliced, "LEAST_CUT", 2**25)
    with pytest.raises(StorageError, match="without slices"):
        mdp.load_release(far[0])


def put(name: int, change):
    def changed(header, members):
        held = np.load(io.BytesIO(members[header["beyond"][name]]))
        members[header["beyond"][name]] = npy(change(held))

    return changed


def written_twice(header, members):
    values = np.load(io.BytesIO(members[header["values"]]))
    values[np.load(io.BytesIO(members[header["beyond"][0]]))[0]] = 1
    members[header["values"]] = npy(values)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (put(0, lambda own: own[::-1].copy()), True),
        (put(0, lambda own: own - own[0] - 1), True),
        (put(0, lambda own: own - own[-1] + 10**6), True),
        (put(0, lambda own: own[1:]), True),
        (put(0, lambda own: own.astype(float)), False),
        (put(1, lambda own: own // 2**32), False),
        (written_twice, False),
    ],
)
def test_answers_beyond_32_bits_that_are_not_in_their_places_are_rejected(far, change, told):
    forge_measurement(far[0], change)
    with pytest.raises(StorageError, match="damaged"):
        mdp.load_release(far[0])
    assert not told or verifier.main([str(far[0])]) == 1


def test_very_many_answers_have_margins(areas, tmp_path, monkeypatch):
    release = Release(measured(), WORKLOAD)
    monkeypatch.setattr(files, "MAX_ANSWERS", 100)
    folder = mdp.save_release(release, tmp_path / "out", csv=True)
    written = pq.read_table(folder / "answers.parquet")
    assert written.column_names[-3:] == ["estimate", "stddev", "margin"]
    for name, sign in (("lower", -1), ("upper", 1)):
        ends = written["estimate"].to_numpy() + sign * written["margin"].to_numpy()
        assert np.array_equal(ends, release.answers[name].to_numpy())
    assert mdp.verify_release(folder).holds
    margins = written["margin"].to_numpy().copy()
    margins[5] *= 2
    altered = written.set_column(written.num_columns - 1, "margin", pa.array(margins))
    pq.write_table(altered.cast(written.schema), folder / "answers.parquet")
    assert "margin says" in str(list(mdp.verify_release(folder)))


def test_a_measurement_that_was_altered_is_rejected(areas, tmp_path):
    path = tmp_path / "m.mdp"
    save_measurement(path, measured(), WORKLOAD)
    with zipfile.ZipFile(path) as held:
        member = max(held.infolist(), key=lambda one: one.file_size)
    content = bytearray(path.read_bytes())
    content[member.header_offset + member.file_size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(StorageError, match="checksum"):
        load_measurement(path)


def test_a_full_disk_is_rejected_before_anything_is_spent(areas, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    spent: list[bool] = []
    with pytest.raises(StorageError) as error:
        measured(before_noise=lambda: spent.append(True))
    assert (error.value.code, spent) == ("no-place", [])


def test_a_process_killed_between_slices(areas, tmp_path, monkeypatch):
    real, drawn = noisy_answers.noisy, []

    def noisy(*arguments, **options):
        drawn.append(1)
        if len(drawn) == 20:  # within the third slice
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    monkeypatch.setattr(noisy_answers, "noisy", noisy)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = os.fork()
    if process == 0:
        with transaction(tmp_path / "out") as run:
            measured(before_noise=lambda: run.spend(mdp.Budget(mu=1)))
        os._exit(0)
    assert os.waitpid(process, 0)[1] == signal.SIGKILL
    assert not (tmp_path / "out").exists()
    with pytest.raises(StorageError) as error, transaction(tmp_path / "out"):
        pass
    assert error.value.code == "already-spent"
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".unfinished")] == []


def test_what_does_not_fit_in_memory_is_rejected_before_anything_is_spent(areas, monkeypatch, tmp_path):
    """The attribute with levels stands last, so that nothing is cut."""
    monkeypatch.setenv("MATRIXDP_MEMORY_LIMIT", "3KB")
    half = {"sets": [[*range(60)], [*range(60, 120)]]}
    workload = mdp.Workload(
        mdp.Domain({"sex": 2, "geo": 120}),
        mdp.product(geo=half, sex="identity"),
        mdp.product(geo="identity", sex="identity"),
        mdp.product(geo="identity"),
    )
    found = select(workload, noise=GAUSSIAN, mechanism="tree").plan
    ledger = mdp.Ledger.create(tmp_path / "ledger", "people", mdp.Budget(mu=1))
    before = (tmp_path / "ledger").read_bytes()
    with pytest.raises(TooLargeError) as caught:
        measure(found, open_source({"sex": [0], "geo": [0]}), mdp.Budget(mu=1), ledger=ledger)
    assert "'geo' as the first" in str(caught.value)
    assert (tmp_path / "ledger").read_bytes() == before
