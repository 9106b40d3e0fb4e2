"""What a release says of the table as a whole: from its own figures, and decided by nothing else."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.answers.table import Estimated
from matrixdp.cli.app import app
from matrixdp.cli.release import UNEXPECTED
from matrixdp.measure.measurement import measure
from matrixdp.releases.record import SizeCheck, groups_within_noise
from matrixdp.sources import open_source
from tests.forging import forge_record
from tests.release.test_schema import saved

DOMAIN = mdp.Domain({"sex": ["Female", "Male"], "age": 4})
WORKLOAD = mdp.Workload(DOMAIN, mdp.marginals(1))
BUDGET = mdp.Budget(rho=0.5)
GOOD = {"sex": ["Female", "Male", "Male"] * 500, "age": [0, 1, 2] * 500}
BAD: dict[str, Any] = {"sex": [" Female", "Male", " Male"] * 500, "age": [0, 1, 9] * 500}
NONE = {"sex": ["female"] * 1500, "age": [0] * 1500}

SPEC = """
data: t.csv
domain: {{sex: [Female, Male], age: 4}}
workload: [{{{asked}}}]
out_of_domain: {{count: true, age: {{count: true}}}}
privacy: {{rho: 0.5}}
"""


@pytest.fixture(scope="module")
def strategy() -> mdp.Strategy:
    return mdp.select(WORKLOAD, mechanism="identity")


def released(strategy, table, **options):
    return strategy.measure(table, BUDGET, seed_not_private=3).reconstruct(**options)


def test_a_table_that_fits_is_no_cause_for_warnings(strategy):
    release = released(strategy, GOOD, expect=1500)
    assert (release.warnings, release.size.agrees) == ((), True)
    assert abs(release.size.total.estimate - 1500) < 5 * release.size.total.stddev
    (total,) = release.answer(mdp.marginals(0)).to_pylist()
    found = release.size.total.as_dict()
    assert found == pytest.approx({name: total[name] for name in found}, rel=1e-12)
    assert released(strategy, GOOD).size.agrees is None


def test_what_is_missing_is_told_from_the_answers_alone(strategy):
    release = released(strategy, BAD, expect=1500)
    assert release.size.agrees is False
    (warning,) = release.warnings
    assert f"estimated at {release.size.total} records, and 1,500 were expected: about " in warning
    assert "too few; check the domain" in warning
    off = float(warning.split("about ")[1].split(" ")[0].replace(",", ""))
    assert off == pytest.approx(1500 - release.size.total.estimate, abs=1)
    assert "too many" in released(strategy, GOOD, expect=15).warnings[0]


def test_groups_are_told_one_by_one():
    domain = mdp.Domain({"a": 2, "b": 2, "c": 2, "d": 2, "e": 2})
    rare = [mdp.product({name: {"ranges": [[1, 1]]}}, name=f"rare {name}") for name in "abcde"]
    strategy = mdp.select(mdp.Workload(domain, *rare), mechanism="workload")
    table = {name: [0] * 900 for name in "abcde"} | {"e": [1] * 900}
    release = released(strategy, table)
    assert release.size.groups_within_noise == ("rare a", "rare b", "rare c", "rare d")
    assert release.warnings[-1].endswith("in 4 of the groups: rare a; rare b; rare c and 1 more")


def test_sums_of_distances_may_be_nothing_but_noise():
    workload = mdp.Workload(mdp.Domain({"age": 4}), mdp.ask.mean("age"))
    table = {"age": [0, 1, 2, 3] * 500}
    release = mdp.select(workload).measure(table, BUDGET, seed_not_private=1).reconstruct()
    assert release.size.groups_within_noise  # which the record of a release lists
    assert not release.size.warnings


def test_a_release_of_noise_says_so_where_groups_are_not_too_large(strategy, monkeypatch):
    release = released(strategy, NONE)
    nothing, groups = release.warnings
    assert "cannot be told from none: check the domain" in nothing
    assert groups == "no answer can be told from noise in 2 of the groups: sex; age"
    for limit, most, found in (("_QUERIES", 3, ["sex"]), ("_QUERIES_OF_ALL", 1, [])):
        monkeypatch.setattr(f"matrixdp.releases.record.{limit}", most)
        assert list(groups_within_noise(release.measurement, WORKLOAD.groups)) == found


def test_false_alarms_are_as_rare_as_they_are_said_to_be(strategy):
    """Decided by the noise alone: 300 errors of a normal distribution are within 3.89 standard errors."""
    far = released(strategy, GOOD).size.far
    assert far == pytest.approx(3.8906, abs=1e-3)
    rng = np.random.default_rng(1)
    for error in rng.normal(size=300):
        total = Estimated.within(1500 + 7 * error, 7.0, 1.96)
        assert SizeCheck(total, 1500, far, ()).agrees
    assert SizeCheck(None, 5, far, ()).agrees is None
    advice = "`out_of_domain: {count: true}` measures"
    assert advice in SizeCheck(total, 3_000, far, ()).warnings[0]
    assert advice not in SizeCheck(total, 3_000, far, (), counted=True).warnings[0]
    assert "does not follow" in SizeCheck(None, 5, far, ()).warnings[0]


def test_a_large_delta_is_among_the_warnings():
    budget = mdp.Budget(epsilon=1, delta=1e-3)
    plan = mdp.select(WORKLOAD, mechanism="identity", noise="gaussian").selection.plan
    measurement = measure(plan, open_source(GOOD), budget, max_records=2000)
    assert "above 1 / 2,000" in mdp.Release(measurement, WORKLOAD).warnings[0]
    assert "above 1 / 1,500" in mdp.Release(measurement, WORKLOAD, expect=1500).warnings[-1]


def test_the_record_has_it_and_is_verified(strategy, tmp_path):
    size = saved(released(strategy, BAD, expect=1500), tmp_path)["size"]
    folder = tmp_path / "out"
    assert (size["expect"], size["agrees"], len(size["warnings"])) == (1500, False, 1)
    again = mdp.load_release(folder, confidence=0.9)
    assert (again.expect, again.confidence, again.size.agrees) == (1500, 0.9, False)
    assert mdp.verify_release(folder).failed == ()
    total = size["total"]
    for by, said in ((1e-11, None), (1e-3, "size.total.estimate says")):
        moved = total | {"estimate": total["estimate"] + by * total["stddev"]}
        assert_said(folder, {"total": moved}, said)
    assert_said(folder, {"total": total, "agrees": True}, "size.agrees says true")
    assert_said(folder, {"total": None}, "size.")
    forge_record(folder, lambda record: record.pop("size"))
    assert "size is missing" in mdp.verify_release(folder).failed[0].words


def assert_said(folder, changes, said):
    forge_record(folder, lambda record: record["size"].update(changes))
    failed = mdp.verify_release(folder).failed
    assert failed == () if said is None else said in failed[0].words


def test_the_command_compares_and_ends_with_a_status_of_its_own(tmp_path):
    pd.DataFrame(BAD).to_csv(tmp_path / "t.csv", index=False)
    for name, asked in (
        ("s.yaml", "marginals: [0, 1]"),
        ("parts.yaml", "product: {age: {ranges: [[1, 2]]}}"),
    ):
        (tmp_path / name).write_text(SPEC.format(asked=asked))

    def run(spec, *options):
        return CliRunner().invoke(app, ["release", str(tmp_path / spec), *options])

    refused = run("parts.yaml", "--mechanism", "workload", "--out", str(tmp_path / "out"), "--expect", "9")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "expect: found a workload from which the number of records does not follow" in refused.stderr
    # refused while it costs nothing
    assert run("s.yaml", "--out", str(tmp_path / "out"), "--expect", f"1{'0' * 400}").exit_code == 2
    assert list(tmp_path.glob("*out*")) == []
    for place, (expect, status) in enumerate((("1500", UNEXPECTED), ("500", 0), (None, 0))):
        out = tmp_path / str(place)
        options = [] if expect is None else ["--expect", expect]
        result = run("s.yaml", "--mechanism", "identity", "--out", str(out), *options)
        assert result.exit_code == status, result.output
        assert ("Warning: the whole table is estimated at" in result.stderr) == (status != 0)
        assert "in the domain (released, with noise; 95% confidence)" in " ".join(result.stdout.split())
        assert "out of domain, age" in result.stdout
        assert "error" not in result.stderr.lower().replace("standard error", "")
        assert mdp.verify_release(out).failed == ()
