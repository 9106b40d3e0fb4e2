"""What commands reject: exit status 2, one line with the place and the code, and nothing written."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

import matrixdp as mdp
from matrixdp.cli.options import entries_of, noise_name
from matrixdp.errors import SpecificationError
from matrixdp.strategy.compare import Outcome
from tests.cli.commands import refused

SPEC = """
data: people.parquet
domain: {sex: [female, male], age: {min: 0, max: 9}, month: {from: 2024-01-01, to: 2024-03-31, by: month}}
workload: [{marginals: [0, 1]}, {product: {sex: identity, age: prefix}}]
privacy: {epsilon: 1.0}
"""
CHANGES = {
    "misspelled": ("age: prefix", "agee: prefix"),
    "free": ("privacy: {epsilon: 1.0}", ""),
    "least": ("privacy: {epsilon: 1.0}", "targets: {all: 5}\nprivacy: {minimize: rho}"),
    "tableless": ("data: people.parquet", ""),
    "away": ("people.parquet", "away.parquet"),
    "debited": ("epsilon: 1.0", "epsilon: 1.0, ledger: none.ledger"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    table = {"sex": ["male"], "age": [3], "month": ["2024-01-01"]}
    pq.write_table(pa.table(table), home / "people.parquet")
    (home / "spec.yaml").write_text(SPEC)
    for name, (old, new) in CHANGES.items():
        (home / f"{name}.yaml").write_text(SPEC.replace(old, new))
    (home / "partial.yaml").write_text("strategy: [product: {sex: identity}]\n")
    (home / "bytes").write_bytes(b"\xff\xfe\xff")
    (home / "passphrase").write_text("a long one\n")
    (home / "folder.csv").mkdir()
    mdp.make_keys(home / "office", b"another one")
    mdp.make_keys(home / "plain")
    written = mdp.load_specification(home / "spec.yaml")
    strategy = mdp.select(written.workload, mechanism="residual", noise="gaussian")
    strategy.save(home / "saved.mdp")
    strategy.measure(table, mdp.Budget(rho=0.5)).reconstruct().save(home / "out")
    mdp.select(mdp.Workload(written.domain, mdp.marginals(1)), mechanism="residual").save(home / "ones.mdp")
    mdp.select(mdp.Workload(mdp.Domain({"sex": 2}), mdp.marginals(1))).save(home / "other.mdp")
    return home


@pytest.fixture(autouse=True)
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)


CASES = [
    ("answer out", "query", "conflict"),
    ("answer out 'marginals: 0' --sql SELECT", "query", "conflict"),
    ("answer out 'marginals: 0' --json --csv", "--csv", "conflict"),
    ("answer out 'marginals: 0' --confidence 95", "confidence", "out-of-range"),
    ("answer out nothing", "query", "specification"),
    ("answer out bytes", "query", "file-missing"),
    ("answer out --sql bytes", "--sql", "file-missing"),
    ("answer out 'a: ['", "line 1, column 5", "bad-yaml"),
    ("answer out 'a: 1'", "query", "unknown-key"),
    ("answer out '[] #:'", "query", "empty"),
    ("answer out 'product: {agee: prefix}'", "product.agee", "unknown-name"),
    ("answer out '[marginals: 0, []]'", "query", "wrong-type"),
    ("answer out 'cdf: age' 'cdf: sex'", "query 2.cdf.sex", "wrong-kind"),
    ("answer out 'cdf: age' 'cdff: age'", "query 2", "unknown-key"),
    ("answer out 'marginals: 0' --out answers.xlsx", "--out", "specification"),
    ("answer out 'marginals: 0' --out no/answers.csv", "--out", "no-place"),
    ("answer out 'marginals: 0' --out folder.csv --force", "--out", "no-place"),
    ("answer out --sql no.sql", "--sql", "file-missing"),
    ("answer out --sql 'SELECT sex, age, month, COUNT(*) FROM t GROUP BY ALL'", "", "unsupported-query"),
    ("answer . 'marginals: 0'", ".", "file-missing"),
    ("show out sexx", "found 'sexx'; expected the", "unknown-name"),
    ("show out --csv", "table", "missing-key"),
    ("show out sex --export x", "--export", "conflict"),
    ("show out sex --cross age", "cross", "unknown-name"),
    ("show out --cross auto", "table", "missing-key"),
    ("show out sex --margins", "--margins", "conflict"),
    ("select spec.yaml --picture strategy.txt", "--picture", "specification"),
    ("select spec.yaml --save no/s.mdp", "--save", "no-place"),
    ("select spec.yaml --strategy-file spec.yaml --mechanism residual", "--strategy-file", "conflict"),
    ("select spec.yaml --strategy-file spec.yaml --certify", "--strategy-file", "conflict"),
    ("select spec.yaml --strategy-file partial.yaml", "attribute 'age'", "unsupported-query"),
    ("select spec.yaml --mechanism opt-korn", "--mechanism", "unknown-name"),
    ("select spec.yaml --mechanism opt-m --sub-solver fast", "--sub-solver", "workload"),
    ("select spec.yaml --mechanism opt-m --option restrats=3", "--option restrats", "workload"),
    ("select spec.yaml --mechanism opt-0 --option seed=x", "--option seed", "workload"),
    ("select spec.yaml --mechanism dense", "noise", "privacy"),
    ("select spec.yaml --noise gaussian", "privacy.delta", "not-supported"),
    ("select spec.yaml --mechanism dense --restarts 3", "--restarts", "workload"),
    ("select spec.yaml --mechanism identity --seed 3", "--seed", "workload"),
    ("select spec.yaml --option seed", "--option", "specification"),
    ("select spec.yaml --sub-solver fsat", "--sub-solver", "workload"),
    ("select misspelled.yaml --save new.mdp", "workload[1].product.agee", "unknown-name"),
    ("validate absent.yaml", "absent.yaml", "file-missing"),
    ("release free.yaml --out new", "privacy", "missing-key"),
    ("release tableless.yaml --out new", "data", "missing-key"),
    ("release away.yaml --out new", "there is no file", "file-missing"),
    ("release debited.yaml --out new", "none.ledger", "file-missing"),
    ("release spec.yaml --out out", "out", "file-exists"),
    ("release spec.yaml --out new --sub-solver fsat", "--sub-solver", "workload"),
    ("release spec.yaml --out new --strategy other.mdp", "other.mdp", "domain-mismatch"),
    ("release spec.yaml --out new --strategy ones.mdp", "sex, age", "unsupported-query"),
    ("release spec.yaml --out new --strategy saved.mdp --certify", "--certify", "conflict"),
    ("release spec.yaml --out new --data people.parquet --table people", "'people.parquet'", "conflict"),
    ("release away.yaml --out new --sign nowhere", "nowhere", "signature"),
    ("release away.yaml --out new --sign office --passphrase-file passphrase", "office", "signature"),
    ("release away.yaml --out new --sign plain --passphrase-file passphrase", "plain", "signature"),
    ("release away.yaml --out new --passphrase-file passphrase", "--passphrase-file", "conflict"),
    ("keys plain", "plain", "signature"),
    ("sign out --key office", "office", "signature"),
    ("verify out --key plain", "plain", "signature"),
    ("verify out --ledger absent", "absent", "storage"),
    ("verify absent", "absent", "storage"),
    ("compare spec.yaml --mechanisms ,", "--mechanisms", "empty"),
    ("compare spec.yaml --mechanisms hbb", "--mechanisms", "unknown-name"),
    ("compare spec.yaml --picture x.doc", "--picture", "specification"),
    ("compare spec.yaml --public-table none.csv", "there is no file", "file-missing"),
    ("compare least.yaml", "privacy.minimize", "specification"),
    ("report out --out out/page.html", "--out", "no-place"),
    ("report out --markdown --out spec.yaml", "--out", "file-exists"),
    ("ledger show spec.yaml", "spec.yaml", "storage"),
    ("ledger show none", "none", "file-missing"),
    ("ledger init new --dataset people --total rho=1 --neighbours swap", "--neighbours", "unknown-name"),
    ("ledger init new --dataset people --total rho=1 --unit-records 0", "--unit-records", "out-of-range"),
    ("ledger init new --dataset people --total rho=1 --unit-id ''", "--unit-id", "wrong-type"),
    ("ledger init new --dataset ' ' --total rho=1", "dataset", "wrong-type"),
    ("ledger init new --dataset people --total epsilon=1,delta=1", "--total.delta", "out-of-range"),
]  # fmt: skip
LONG_TOTAL = "rho=" + "9" * 200
TOTALS = ["''", "rho", "rho=", "rho=x", "sigma=1", "rho=1,rho=2", "rho=1,mu=1", "rho=0", "rho=-1", "rho=NaN",
          "delta=0.1", "rho=1e400000", "rho=1e-400000", "epsilon=1,delta=2", LONG_TOTAL]  # fmt: skip


@pytest.mark.parametrize(("command", "place", "code"), CASES)
def test_what_is_wrong_is_one_line(home: Path, command: str, place: str, code: str):
    before = sorted(home.rglob("*"))
    line = refused(*shlex.split(command)).replace(f"{home}/", "").replace(str(home), ".")
    assert (line.startswith(place), line.endswith(f"[{code}]")) == (True, True), line
    assert sorted(home.rglob("*")) == before


@pytest.mark.parametrize("total", TOTALS)
def test_totals_that_are_none(total: str):
    assert refused(*shlex.split(f"ledger init new --dataset people --total {total}")).startswith("--total")
    assert not Path("new").exists()


def test_queries_may_be_longer_than_names_of_files():
    sets = ", ".join(f"[{code}]" for code in range(1500))
    [(entry, base)] = entries_of(f"product: {{code: {{sets: [{sets}]}}}}")
    assert (len(entry["product"]["code"]["sets"]), base) == (1500, Path())
    with pytest.raises(SpecificationError):
        entries_of("x" * 300)


def test_noises_that_are_none():
    with pytest.raises(typer.BadParameter):
        noise_name(("auto",), "laplas")


def test_pictures_without_matplotlib_or_of_nothing(monkeypatch: pytest.MonkeyPatch):
    workload = mdp.Workload(mdp.Domain({"sex": 2}), mdp.marginals(1))
    outcome = Outcome("dense", "gaussian")
    with pytest.raises(SpecificationError) as nothing:
        mdp.Comparison(workload, mdp.Budget(mu=1), (outcome,)).plot()
    assert nothing.value.code == "not-supported"
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    applies = replace(outcome, rmse=1.0, weighted_rmse=1.0)
    with pytest.raises(SpecificationError) as missing:
        mdp.Comparison(workload, mdp.Budget(mu=1), (applies,)).plot()
    assert missing.value.code == "missing-library"
