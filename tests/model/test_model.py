import io
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.errors import SpecificationError, TooLargeError, UnsupportedQueryError, WorkloadError
from matrixdp.model import Mixture, Model
from matrixdp.model import model as held
from tests.model.builders import measured

FIGURES = ["estimate", "stddev", "lower", "upper"]


def test_unbiased_answers_stay_beside_the_modelled_ones_row_by_row(release: Any, model: Model):
    answers = model.answers
    assert answers.column_names == [*release.answers.column_names, "modelled", "outside", "extrapolated"]
    beside = answers.drop_columns(["modelled", "outside", "extrapolated"])
    unmarked = release.answers.replace_schema_metadata(None)
    assert beside.cast(unmarked.schema).equals(unmarked)  # a model's columns admit nulls
    expected = np.concatenate([model.tables.answers(group) for group in release.workload])
    assert answers.column("modelled").to_pylist() == expected.tolist()
    assert not any(answers.column("extrapolated").to_pylist())
    rows = answers.to_pylist()
    below = [row["modelled"] < row["lower"] for row in rows]
    above = [row["modelled"] > row["upper"] for row in rows]
    assert any(below)
    assert any(above)
    assert answers["outside"].to_pylist() == np.logical_or(below, above).tolist()
    assert model.schema.names == answers.column_names
    assert b"BIASED" in answers.schema.metadata[b"matrixdp"]


def test_what_was_not_measured_is_marked_and_has_no_figures(release: Any, model: Model):
    with pytest.raises(UnsupportedQueryError):
        release.answer(mdp.marginals([["age", "region"]]))
    table = model.answer(mdp.marginals([["sex", "age"], ["age", "region"]]))
    pq.write_table(table.to_arrow(), io.BytesIO())  # which refuses nulls where a column says that it has none
    asked = table.to_pylist()
    assert [row["extrapolated"] for row in asked] == [False] * 24 + [True] * 36
    assert all(row[name] is None for row in asked[24:] for name in FIGURES)
    assert all(row[name] is not None for row in asked[:24] for name in FIGURES)
    expected = model.tables.marginal(["age", "region"]).ravel()
    assert [row["modelled"] for row in asked[24:]] == expected.tolist()


def test_a_query_that_is_determined_as_a_sum_over_more_is_no_extrapolation(release: Any):
    table = {"sex": ["male"] * 9, "age": [3] * 9, "region": ["a"] * 9}
    asked, sexes = mdp.marginals([["sex", "age"]]), mdp.marginals([["sex"]])
    own = measured(release.domain, table, asked, mechanism="opt-0").reconstruct()
    even = {name: np.full((1, size), 1 / size) for name, size in (("sex", 2), ("age", 12), ("region", 3))}
    tables = Mixture(release.domain, 9.0, np.ones(1), even)
    rows = Model(own.measurement, own.workload, tables).answer(sexes).to_pylist()
    expected = own.answer(sexes).to_pylist()
    assert [row["estimate"] for row in rows] == [row["estimate"] for row in expected]
    assert [row["extrapolated"] for row in rows] == [False, False]


def test_records_are_the_released_number_and_follow_the_model(model: Model):
    records = model.records()
    assert records.num_rows == model.size == 400
    assert records.column_names == list(model.domain.names)
    assert b"SYNTHETIC" in records.schema.metadata[b"matrixdp"]
    rows = records.to_pylist()
    assert all((row["age"] >= 8) == (row["adult"] == "true") for row in rows)
    counts = [sum(row["region"] == value for row in rows) for value in ("a", "b", "c")]
    assert counts == pytest.approx(model.tables.marginal(["region"]), abs=3 + 1)
    assert model.records().equals(records)
    assert not model.records(seed=5).equals(records)
    assert model.records(7, values="data").column_names == ["sex", "age", "region"]
    assert "region side" in model.records(7, levels=True).column_names


def test_counted_answers_are_those_of_the_records(model: Model):
    counted = model.counted({"marginals": [[], ["region", "adult"]]}).to_pylist()
    rows = model.records().to_pylist()
    assert counted[0]["count"] == 400
    for row in counted[1:]:
        expected = sum(r["region"] == row["region"] and r["adult"] == row["adult"] for r in rows)
        assert row["count"] == expected
    assert model.counted({"marginals": 0}, 50, seed=3).column("count").to_pylist() == [50]


def test_what_does_not_fit_is_refused(model: Model, release: Any, monkeypatch: pytest.MonkeyPatch):
    other = Mixture(mdp.Domain({"x": 1}), 1.0, np.ones(1), {"x": np.ones((1, 1))})
    with pytest.raises(WorkloadError, match="another domain"):
        Model(model.measurement, model.workload, other)
    tables: Any = model.tables
    many = Mixture(release.domain, 1e12, tables.weights, tables.factors)
    vast = Model(model.measurement, model.workload, many)
    with pytest.raises(SpecificationError, match="rows: found none beside a total of 1,000,000,000,000"):
        vast.records()
    assert vast.records(3).num_rows == 3
    monkeypatch.setattr(held, "MAX_TABLE_ROWS", 5)
    asked = {"marginals": 1}
    for refused in (model.records, lambda: model.answer(asked), lambda: model.counted(asked)):
        with pytest.raises(TooLargeError, match="at most 5"):
            refused()


# From a release to a model of it.


@pytest.fixture(scope="module")
def fitted(release: Any) -> Any:
    return release.model(components=10, steps=300, seed=3)


def test_a_model_of_a_release_fits_it_and_says_how_it_was_made(fitted: Any, release: Any):
    assert (fitted.method, fitted.seed, fitted.accepted) == ("mixture", 3, True)
    assert fitted.tests["loss"] <= fitted.tests["limit"]
    assert (fitted.made["components"], fitted.made["steps"]) == (10, 300)
    assert fitted.confidence == release.confidence
    answers = fitted.answers
    assert min(answers["modelled"].to_pylist()) >= 0
    # within the noise: root mean square of the difference in standard deviations, 1 if all noise were removed
    off = np.subtract(answers["modelled"].to_pylist(), answers["estimate"].to_pylist())
    assert np.sqrt(np.mean((off / answers["stddev"].to_numpy()) ** 2)) < 1.3
    assert fitted.records().num_rows == round(fitted.total)


def test_the_same_seed_gives_the_same_model(release: Any):
    options: dict[str, Any] = {"components": 2, "steps": 1, "accept_anyway": True}
    first, again, other = (release.model("mixture", seed=seed, **options) for seed in (3, 3, 4))
    assert again.answers.equals(first.answers)
    assert not other.answers.equals(first.answers)
    # it does not fit: without `accept_anyway` it is among the refusals
    assert not first.accepted
    assert first.tests["loss"] > first.tests["limit"]


def test_what_is_public_is_kept_by_models_and_their_records(release: Any):
    rule = {"sex": "male", "age": {"range": [6, 11]}}
    known: dict[str, Any] = {"invariants": 400, "structural_zeros": [rule], "accept_anyway": True}
    for model in (release.model(components=20, steps=100, **known), release.model("local", **known)):
        assert model.size == 400
        table = model.answer(mdp.product(sex={"sets": [["male"]]}, age={"ranges": [[6, 11]]}))
        assert table["modelled"].to_pylist() == pytest.approx([0], abs=1e-6)
        if model.method == "mixture":
            rows = model.records().to_pylist()
            assert len(rows) == 400
            assert not any(row["sex"] == "male" and row["age"] >= 6 for row in rows)


def test_auto_takes_tables_of_pairs_that_pass_where_the_mixture_is_rejected(release: Any):
    model = release.model(components=1, steps=1)
    assert (model.method, model.accepted) == ("local", True)
    assert model.answers.equals(release.model("local").answers)
    rejected = model.made["rejected"]
    assert (rejected["method"], rejected["components"], rejected["accepted"]) == ("mixture", 1, False)
    assert rejected["tests"]["loss"] > rejected["tests"]["limit"]


def test_tables_of_pairs_fit_what_was_measured_of_pairs_and_of_one_attribute_alone():
    random = np.random.default_rng(1)
    table = {"a": random.binomial(2, 0.2, 2000), "b": random.binomial(9, 0.3, 2000)}
    pair = [mdp.marginals([0, 1]), mdp.product(a="range", b="identity")]
    held = measured({"a": 3, "b": 10}, table, *pair, budget=mdp.Budget(mu=5), mechanism="auto")
    assert [len(part.blocks) for part in held.measurement.plan.parts] == [1]  # its rows do not factor
    assert held.reconstruct().model("local").accepted
    laplace: dict[str, Any] = {"noise": "laplace", "budget": mdp.Budget(epsilon=1), "mechanism": "auto"}
    model = measured({"a": 3}, table, mdp.marginals(1), **laplace).reconstruct().model("local")
    assert model.accepted
    assert model.total == pytest.approx(2000, abs=30)


def test_what_is_public_is_kept_in_the_record_as_it_is_written(release: Any, tmp_path: Any):
    rule = {"sex": "male", "age": {"range": [6, 11]}}
    public = {"invariants": [{"marginals": [["sex"]], "counts": [150, 250]}], "structural_zeros": [rule]}
    written = {"domain": release.domain.to_spec(), "workload": [{"marginals": 1}], **public}
    specification = mdp.load_specification(written)
    known = {name: getattr(specification, name) for name in public}
    model = release.model("local", accept_anyway=True, **known)
    assert model.made["invariants"] == [{"marginals": [["sex"]], "counts": [150.0, 250.0]}]
    assert model.made["structural_zeros"] == [{"sex": ["male"], "age": {"range": [6, 11]}}]
    made = mdp.Model.load(model.save(tmp_path / "model")).made
    again = {"invariants": made["invariants"], "structural_zeros": made["structural_zeros"]}
    assert release.model("local", accept_anyway=True, **again).answers.equals(model.answers)
    without = release.model("local", invariants=(), structural_zeros=())
    assert not {"invariants", "structural_zeros"} & set(without.made)


@pytest.mark.parametrize("seed", range(16))
def test_small_releases_have_models(seed):
    """Of few cells, of both noises, precise or not, of empty tables too."""
    random = np.random.default_rng(seed)
    sizes = dict(zip("abcd", random.integers(1, 6, 1 + seed % 4).tolist(), strict=False))
    domain = {name: {"min": 0, "max": size - 1} for name, size in sizes.items()}
    entries = [mdp.marginals([*range(min(3, len(sizes) + 1))]), mdp.product(a=("prefix", "range")[seed % 2])]
    noise, most = (("laplace", 100.0), ("gaussian", 30.0))[seed // 2 % 2]
    cost = float(np.exp(random.uniform(np.log(1e-3), np.log(most))))
    budget = mdp.Budget(epsilon=cost) if noise == "laplace" else mdp.Budget(rho=cost)
    records = int(random.choice([0, 5, 300]))
    table = {name: random.integers(0, size, records) for name, size in sizes.items()}
    options: dict[str, Any] = {"noise": noise, "budget": budget, "mechanism": "auto", "seed": seed}
    model = measured(domain, table, *entries, **options).reconstruct().model(components=8, steps=150)
    assert model.accepted
    tests = model.made["tests"]
    assert 0 <= tests["loss"] <= tests["limit"]
    modelled = model.answers["modelled"].to_numpy()
    assert (np.isfinite(modelled) & (modelled >= 0)).all()


@pytest.mark.parametrize("method", ["mixture", "local"])
@pytest.mark.parametrize("epsilon", [1, 50, 1_000])
def test_an_empty_table_has_a_model_however_precise_the_noise(epsilon, method):
    options: dict[str, Any] = {"noise": "laplace", "mechanism": "auto"}
    budget = mdp.Budget(epsilon=epsilon)
    held = measured({"a": 4, "b": 3}, {"a": [], "b": []}, mdp.marginals([0, 1]), budget=budget, **options)
    model = held.reconstruct().model(method, components=4, steps=100)
    assert model.accepted
    assert 0 < model.total < 30 / epsilon
    assert np.isfinite(model.answers["modelled"].to_numpy()).all()


@pytest.mark.parametrize("noise", range(4))
def test_a_model_that_fits_nearly_exactly_has_a_loss_of_nearly_nothing(noise):
    """The loss is a sum of squares: rounding does not make it negative."""
    random = np.random.default_rng(noise)
    sizes = {"a": 2, "b": 4, "c": 4}
    table = {name: random.integers(0, size, 300) for name, size in sizes.items()}
    options: dict[str, Any] = {"budget": mdp.Budget(rho=0.5), "seed": noise, "mechanism": "auto"}
    release = measured(sizes, table, mdp.marginals([1, 2]), **options).reconstruct()
    assert 0 <= release.model(steps=500, components=10).made["tests"]["relative_rms"] < 0.01
