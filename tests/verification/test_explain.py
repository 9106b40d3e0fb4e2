"""What is told of a release: every number is its own, whatever its names, and large plans stay short."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import matrixdp as mdp
from matrixdp.verification import explain as measured
from matrixdp.verification.explain import Items, Table, markdown
from tests.builders import saved

DOMAIN = mdp.Domain({"sex": ["female", "male", "a|b\n*c*"], "age": {"min": 0, "max": 5}, "code": 1})
TABLE = {"sex": ["male", "female"], "age": [0, 9], "code": [0, 0]}
WORKLOAD = mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2]), mdp.product({"age": "prefix"}))


def released(
    folder: Path, budget: mdp.Budget, workload: mdp.Workload = WORKLOAD, **given: Any
) -> mdp.Release:
    noise = "laplace" if budget.kind == "pure" else "gaussian"
    table = TABLE if workload is WORKLOAD else None
    mechanism = "querysmasher" if noise == "laplace" else "residual"
    return saved(folder, workload, budget, table, given, mechanism=mechanism, noise=noise)


def rows(text: str, title: str) -> list[list[str]]:
    """Return the cells of all tables in a section."""
    section = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [line[2:-2].split(" | ") for line in lines if not line.startswith("| ---")]


@pytest.mark.parametrize(
    ("budget", "power", "m"),
    [
        (mdp.Budget(epsilon=1, delta=1e-6, neighbours="replace", unit={"records": 3}), 2, 6),
        (mdp.Budget(epsilon=1, unit={"records": 2}), 1, 2),
        (mdp.Budget(mu=0.5), 2, 1),
    ],
)
def test_the_numbers_are_those_of_the_release(budget: mdp.Budget, power: int, m: int, tmp_path: Path) -> None:
    release = released(tmp_path / "out", budget)
    text = mdp.explain_release(tmp_path / "out")
    measurement = release.measurement
    cost = measurement.authorization.cost.value
    told = {row[0]: row[1] for row in rows(text, "What it costs")}
    [first] = [value for name, value in told.items() if name.startswith("cost")]
    [between] = [value for name, value in told.items() if "between" in name]
    assert Fraction(first.split()[0]) == cost
    assert Fraction(between.split()[0]) == cost * m**power
    assert f"So m = {m} records differ" in text
    # the parts, from the table alone, cost what is said
    parts = [row for row in rows(text, "What was measured, and with which noise") if row[0] == "1"]
    assert len(parts) == len(measurement.plan.parts)
    total = sum(int(row[4]) / Fraction(row[5].split()[0]) ** power for row in parts)
    if budget.neighbours == "add_remove":
        assert cost - Fraction(len(parts), 2**160) <= total <= cost
    else:  # no more than two records, no less than one
        assert total / 2**power <= cost <= total
    shares = [float(row[-1].rstrip("%")) for row in parts]
    assert sum(shares) == pytest.approx(100, abs=0.01)
    assert shares == sorted(shares, reverse=True)
    # every guarantee is there, its figure not below its exact bound
    listed = rows(text, "What that means in each definition")[1:]
    assert [row[0] for row in listed] == [row["definition"] for row in release.statement.guarantees]
    for row in listed:
        shown, exact = ([Fraction(part.split(" = ")[1]) for part in row[i].split(", ")] for i in (1, 2))
        for bound, figure in zip(exact, shown, strict=True):
            assert bound <= figure <= bound * (1 + Fraction(1, 10**8))
        assert "theorem" in row[3] or "proposition" in row[3] or "every delta" in row[3]
    assert release.statement.text.translate({}).split(".")[0] in text
    for clause in release.statement.not_covered:
        assert clause.split(":")[0] in text


def test_names_stand_as_they_are_and_break_no_table(tmp_path: Path) -> None:
    spec = {"a|b": 2, "*x*\x1b[31m": ["<b>", "`y`"], "c": {"column": "a|b", "size": 2}}
    domain = mdp.Domain({**spec, "d": {"of": ["a|b"], "columns": {"e": 2}, "sql": "e"}})
    workload = mdp.Workload(domain, mdp.marginals([1, 2]))
    table_of = {"a|b": [0], "*x*\x1b[31m": ["<b>"], "e": [0]}
    saved(tmp_path / "out", workload, mdp.Budget(rho=1), table_of, mechanism="residual")
    text = mdp.explain_release(tmp_path / "out")
    assert "\x1b" not in text
    assert "| which is | the decomposition into marginals, weight vectors optimized |" in text
    [heads, *listed] = rows(text, "The domain")
    assert [len(row) for row in listed] == [len(heads)] * 4
    kinds = [r"ordered numbers, of the column a\|b", r"categories, derived from a\|b, e"]
    assert [row[1] for row in listed[2:]] == kinds
    assert listed[0][0] == r"a\|b"
    assert listed[1][3] == r"\<b\> .. \`y\`"
    made = markdown("t", {"": ["a|b"], "s": [Table(("h",), [("*x*",)]), Items(("one",))]})
    assert made == "# t\n\na\\|b\n\n## s\n\n| h |\n| --- |\n| \\*x\\* |\n\n- one\n"


def test_large_plans_stay_short(tmp_path: Path) -> None:
    names = {f"a{i:02}": 2 + i % 3 for i in range(66)}
    few = [name for name in names if name < "a10"]
    totals = (mdp.marginals(0, weight=1 + i / 7) for i in range(30))
    workload = mdp.Workload(mdp.Domain(names), mdp.marginals([0, 1]), mdp.marginals(2, few), *totals)
    released(tmp_path / "out", mdp.Budget(rho=1), workload)
    text = mdp.explain_release(tmp_path / "out")
    assert len(text.splitlines()) < 250
    assert "6 more attributes are in release.json." in text
    assert "2 more entries are in release.json." in text
    listed = rows(text, "What was measured, and with which noise")
    counts = [int(row[0].replace(",", "")) for row in listed if row[0][0].isdigit()]
    assert sum(counts) == 1 + 66 + 45
    assert any("more" in row[1] for row in listed)


def test_many_kinds_of_parts_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_MOST", 2)
    names = {f"a{i:02}": 3 + i for i in range(7)}
    workload = mdp.Workload(mdp.Domain(names), mdp.kway(1, "prefix"))
    released(tmp_path / "out", mdp.Budget(rho=1), workload)
    text = mdp.explain_release(tmp_path / "out")
    assert "6 more parts of 6 more kinds have" in text
    assert "more matrices are in the file of the measurement." in text


def test_parts_without_matrices_and_with_row_multipliers_are_told(tmp_path: Path) -> None:
    released(tmp_path / "out", mdp.Budget(rho=1), mdp.Workload(DOMAIN, mdp.marginals(0)))
    assert "Totals alone are measured" in mdp.explain_release(tmp_path / "out")
    entries = mdp.product({"a": "prefix", "b": "range"}), mdp.product({"a": "range", "b": "identity"})
    workload = mdp.Workload(mdp.Domain({"a": 6, "b": 5}), mdp.marginals([0, 1]), *entries)
    saved(tmp_path / "weighed", workload, mdp.Budget(rho=1), mechanism="residual", sub_solver="product")
    text = mdp.explain_release(tmp_path / "weighed")
    assert "rows weighted" in text
    assert "Where each row has an integer factor" in text


def test_what_is_special_is_told(tmp_path: Path) -> None:
    budget = mdp.Budget(rho=1, unit={"records": 2})
    strategy = mdp.select(WORKLOAD, budget=budget, mechanism="residual")
    rule = mdp.OutOfDomain({"age": 5})
    release = strategy.measure(TABLE, budget, seed_not_private=1, out_of_domain=rule).reconstruct()
    # as if a column had named the persons
    named = mdp.Budget(rho=1, unit={"id": "who", "records": 2})
    authorization = replace(release.measurement.authorization, budget=named)
    release = replace(release, measurement=replace(release.measurement, authorization=authorization))
    mdp.save_release(release, tmp_path / "seeded")
    text = mdp.explain_release(tmp_path / "seeded")
    assert "NOT PRIVATE: the noise was seeded." in text
    assert "The column who names the person. At most 2 records of each person are counted" in text
    assert "| counted as 5 |" in text
    ledger = mdp.Ledger.create(tmp_path / "ledger", "health", mdp.Budget(rho=1))
    released(tmp_path / "debited", mdp.Budget(rho=Fraction(1, 4)), ledger=ledger)
    debited = rows(mdp.explain_release(tmp_path / "debited"), "Other releases of the same data")
    told = {row[0]: row[1] for row in debited}
    assert told["dataset"] == "health"
    assert told["entry"] == ledger.entries[0].id
    assert told["spent after"].startswith("rho ")
    assert "No ledger was used" in text
