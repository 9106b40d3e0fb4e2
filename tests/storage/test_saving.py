"""Strategies and measurements come back as they were, whatever plan they have."""

import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp import exact
from matrixdp.errors import StorageError
from matrixdp.exact import IdentityMatrix, IntegerMatrix, MergedMatrix
from matrixdp.measure.measurement import measure
from matrixdp.noise import GAUSSIAN
from matrixdp.plans import Block, Direct, Part
from matrixdp.privacy import Clause
from matrixdp.selection.auto import select
from matrixdp.sources import open_source
from matrixdp.storage.archive import ArchiveReader
from matrixdp.storage.formats import (
    STRATEGY_FORMAT,
    load_measurement,
    load_strategy,
    save_measurement,
    save_strategy,
)
from tests.storage import archives
from tests.storage.archives import altered, reread, selection, set_in


def test_a_strategy_comes_back_the_same(tmp_path: Path):
    again, own = load_strategy(archives.saved_strategy(tmp_path)), selection()
    assert again.workload.domain == archives.DOMAIN
    assert [group.name for group in again.workload] == [group.name for group in archives.WORKLOAD]
    for name in ("certificate", "mechanism", "noise", "neighbours"):
        assert getattr(again, name) == getattr(own, name)
    assert again.weighted_squared_error == pytest.approx(own.weighted_squared_error, rel=1e-9)
    for group in archives.WORKLOAD:
        np.testing.assert_allclose(again.analysis.variances(group), own.analysis.variances(group))


def test_a_direct_strategy_comes_back_the_same(tmp_path: Path):
    domain = mdp.Domain({"sex": ["female", "male"], "age": 5})
    workload = mdp.Workload(domain, mdp.product(sex="identity", age="range"))
    own = select(workload, mechanism="dense", noise=GAUSSIAN)
    save_strategy(tmp_path / "s.mdp", own)
    again = load_strategy(tmp_path / "s.mdp")
    assert isinstance(own.plan, Direct)
    assert isinstance(again.plan, Direct)
    assert again.total_squared_error == pytest.approx(own.total_squared_error, rel=1e-9)


def test_shared_matrices_are_saved_once(tmp_path: Path):
    domain = mdp.Domain({f"a{i}": {"min": 0, "max": 7} for i in range(6)})
    workload = mdp.Workload(domain, mdp.kway([1, 2, 3], "prefix"))
    save_strategy(tmp_path / "s.mdp", select(workload, noise=GAUSSIAN))
    plan = ArchiveReader(tmp_path / "s.mdp", STRATEGY_FORMAT, 3).header["plan"]
    assert len(plan["parts"]) == 1 + 6 + 15 + 20
    assert len(plan["matrices"]) < 10
    assert len(set(plan["vectors"]["weights"].values())) == 1


def test_measurements_come_back_the_same(tmp_path: Path):
    own = archives.measurement()
    again, asked = load_measurement(archives.saved_measurement(tmp_path))
    assert len(asked) == len(archives.WORKLOAD)
    assert again.authorization.budget.epsilon == Fraction(1, 3)
    assert (again.private, again.max_records) == (True, 1000)
    for name in ("authorization", "scales", "out_of_domain"):
        assert getattr(again, name) == getattr(own, name)
    for left, right in zip(again.values, own.values, strict=True):
        np.testing.assert_array_equal(left, right)


def test_seeded_measurements_stay_labelled(tmp_path: Path):
    measured = measure(selection().plan, open_source(archives.TABLE), mdp.Budget(rho=1), seed_not_private=1)
    save_measurement(tmp_path / "m.mdp", measured, archives.WORKLOAD)
    assert load_measurement(tmp_path / "m.mdp")[0].private is False


def test_what_is_assumed_of_the_table_stays_said(tmp_path: Path):
    (tmp_path / "t.csv").write_text(",".join(archives.DOMAIN.names) + "\n")
    source = open_source(tmp_path / "t.csv", quoted_newlines=True)
    measured = measure(selection().plan, source, mdp.Budget(rho=1), seed_not_private=1)
    save_measurement(tmp_path / "m.mdp", measured, archives.WORKLOAD)
    again = load_measurement(tmp_path / "m.mdp")[0]
    assert again.assumptions == measured.assumptions == source.assumptions(archives.DOMAIN)
    assert [Clause.of(sentence).id for sentence in again.assumptions] == ["quotes-closed"]
    changed = altered(tmp_path / "m.mdp", set_in("assumptions", [{"id": "a-b", "text": "A sentence."}]))
    (sentence,) = load_measurement(changed)[0].assumptions
    assert (Clause.of(sentence).id, str(sentence)) == ("a-b", "A sentence.")


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_a_file_that_needs_more_than_there_is_is_refused(tmp_path: Path, error, monkeypatch):
    def fail(*_: object) -> None:
        raise error

    saved = archives.saved_strategy(tmp_path)
    monkeypatch.setattr(exact, "IntegerMatrix", fail)
    with pytest.raises(StorageError, match="needs more memory than there is"):
        load_strategy(saved)


def test_a_matrix_over_groups_is_kept_with_them_and_with_what_is_too_weak(tmp_path: Path):
    own = archives.merged().parts[0].blocks[0].matrix
    [block] = reread(archives.merged(), tmp_path).parts[0].blocks
    assert isinstance(own, MergedMatrix)
    assert isinstance(block.matrix, MergedMatrix)
    assert isinstance(block.matrix.matrix, IntegerMatrix)
    np.testing.assert_array_equal(block.matrix.written(), own.written())
    np.testing.assert_array_equal(block.matrix.matrix.outside, [[0.6, 0.8]])
    assert block.matrix.digest() == own.digest()
    apart = archives.within().parts[0].blocks[0].matrix
    [block] = reread(archives.within(), tmp_path).parts[0].blocks
    np.testing.assert_array_equal(block.matrix.written(), apart.written())
    assert block.matrix.digest() == apart.digest()


def test_a_tree_of_values_comes_back(tmp_path: Path):
    [own], [again] = (
        plan.parts[0].blocks for plan in (archives.levels(), reread(archives.levels(), tmp_path))
    )
    assert again.matrix.digest() == own.matrix.digest()


def test_a_tree_over_a_grid_comes_back(tmp_path: Path):
    own, again = archives.tree(), reread(archives.tree(), tmp_path)
    assert again.parts[0].blocks[0].matrix == own.parts[0].blocks[0].matrix


def test_pooled_plans_keep_one_matrix_for_each_attribute(tmp_path: Path):
    own, again = archives.pooled(), reread(archives.pooled(), tmp_path)
    for group in mdp.Workload(again.domain, mdp.product(a="range", b="prefix"), mdp.marginals([0, 1])):
        np.testing.assert_array_equal(again.analysis.variances(group), own.analysis.variances(group))
    assert again.cost == own.cost


def test_an_identity_with_multipliers_is_never_written_out(tmp_path: Path):
    """A file of 32 kB would take gigabytes when it is read."""
    weights = np.ones(1024, dtype=np.int64)
    weights[7] = 3
    part = Part(("a",), (Block(("a",), IdentityMatrix(1024)),), 20.0, weights)
    plan = Direct(mdp.Domain({"a": 1024}), (part.at_cost(GAUSSIAN),), GAUSSIAN)
    tracemalloc.start()
    [again] = reread(plan, tmp_path).parts
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (again.column_power_sum(2), again.column_power_sum(1)) == (9, 3)
    assert peak < 3_000_000
