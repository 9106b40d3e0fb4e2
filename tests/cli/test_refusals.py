"""What commands reject: exit status 2, one line with the place and the code, and nothing written."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.cli.compare import Outcome, draw_comparison
from matrixdp.cli.options import entries_of, noise_name, reference_budget
from matrixdp.errors import SpecificationError

SPEC = """
data: people.parquet
domain: {sex: [female, male], age: {min: 0, max: 9}, month: {from: 2024-01-01, to: 2024-03-31, by: month}}
workload: [{marginals: [0, 1]}, {product: {sex: identity, age: prefix}}]
privacy: {epsilon: 1.0}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    table = {"sex": ["male"], "age": [3], "month": ["2024-01-01"]}
    pq.write_table(pa.table(table), home / "people.parquet")
    (home / "spec.yaml").write_text(SPEC)
    (home / "bytes").write_bytes(b"\xff\xfe\xff")
    (home / "folder.csv").mkdir()
    written = mdp.load_specification(home / "spec.yaml")
    strategy = mdp.select(written.workload, mechanism="residual", noise="gaussian")
    strategy.save(home / "saved.mdp")
    strategy.measure(table, mdp.Budget(rho=0.5)).reconstruct().save(home / "out")
    mdp.select(mdp.Workload(written.domain, mdp.marginals(1)), mechanism="residual").save(home / "ones.mdp")
    domain = mdp.Domain({"sex": 2})
    mdp.select(mdp.Workload(domain, mdp.marginals(1))).save(home / "other.mdp")
    return home


ANSWER = [
    ("", "query", "conflict"),
    ("marginals:0 --sql SELECT", "query", "conflict"),
    ("marginals:0 --json --csv", "--csv", "conflict"),
    ("marginals:0 --confidence 95", "confidence: ", ""),
    ("nothing", "query", ""),
    ("bytes", "query", "file-missing"),
    ("a:[", "line 1", ""),
    ("a:1", "query", ""),
    ("marginals:4", "marginals: ", ""),
    ("product:{agee:prefix}", "product.agee: ", "unknown-name"),
    ("product:{age:{ranges:[[0,99]]}}", "product.age.ranges[0]: ", ""),
    ("[marginals:0,[]]", "query", "wrong-type"),
    ("mean:month", "mean.month: ", ""),
    ("cdf:age cdf:sex", "query 2.cdf.sex", ""),
    ("cdf:age cdff:age", "query 2", ""),
    ("quantile:{age:2}", "query.quantile.age", ""),
    ("marginals:0 --out answers.xlsx", "--out", ""),
    ("marginals:0 --out no/answers.csv", "--out", "no-place"),
    ("marginals:0 --out folder.csv --force", "--out", "no-place"),
    ("--sql no.sql", "--sql", "file-missing"),
    ("--sql bytes", "--sql", "file-missing"),
    ("--sql SELECT@COUNT(*)@FROM@t@WHERE@height>3", "sql: ", ""),
    ("--sql SELECT@sex,age,month,COUNT(*)@FROM@t@GROUP@BY@ALL", "", "unsupported-query"),
]
SHOW = [
    ("sexx", "found 'sexx'", ""),
    ("--csv", "table", "missing-key"),
    ("--pivot sex", "table", "missing-key"),
    ("sex --export x", "--export", "conflict"),
    ("sex --pivot age", "pivot", ""),
]
SELECT = [
    ("--picture strategy.txt", "--picture", ""),
    ("--picture no/s.png", "--picture", "no-place"),
    ("--save folder.csv", "--save", "no-place"),
    ("--save no/s.mdp", "--save", "no-place"),
    ("--strategy-file spec.yaml --mechanism residual", "--strategy-file", "conflict"),
    ("--strategy-file spec.yaml --option seed=1", "--strategy-file", "conflict"),
    ("--strategy-file spec.yaml --certify", "--strategy-file", "conflict"),
]
RELEASE = [
    ("--out out", "", ""),
    ("--out new --data absent.csv", "", ""),
    ("--out new --confidence 95", "confidence: ", "out-of-range"),
    ("--out new --strategy other.mdp", "", "domain-mismatch"),
    ("--out new --strategy absent.mdp", "absent.mdp: ", ""),
    ("--out new --strategy ones.mdp", "", "unsupported-query"),
    ("--out new --data people.parquet --table people", "", ""),
    ("--out new --strategy saved.mdp --certify", "--certify", "conflict"),
    ("--out new --passphrase-file bytes", "--passphrase-file", "conflict"),
]
OPTIONS = [
    ("--mechanism opt-korn", "--mechanism", ""),
    ("--mechanism opt-m --sub-solver fast", "--sub-solver", ""),
    ("--mechanism opt-m --option restrats=3", "--option restrats", ""),
    ("--mechanism opt-0 --option seed=x", "--option seed", ""),
    ("--option seed", "--option", ""),
    ("--sub-solver fsat", "--sub-solver", ""),
]
COMPARE = [
    ("--mechanisms opt-korn", "--mechanisms", "unknown-name"),
    ("--mechanisms ,", "--mechanisms", "empty"),
    ("--picture x.doc", "--picture", ""),
    ("--picture no/x.png", "--picture", "no-place"),
    ("--public-table none.csv", "", ""),
]
CASES = [
    *(("answer out", *case) for case in ANSWER),
    *(("show out", *case) for case in SHOW),
    *(("select spec.yaml", *case) for case in SELECT + OPTIONS),
    *(("release spec.yaml", *case) for case in RELEASE),
    *(("release spec.yaml --out new", *case) for case in OPTIONS),
    *(("compare spec.yaml", *case) for case in COMPARE),
    ("answer .", "marginals:0", "", ""),
    ("answer absent", "marginals:0", "", ""),
    ("report out", "--out out/page.html", "--out", "no-place"),
    ("report out", "--out folder.csv", "--out", "no-place"),
    ("report out", "--markdown --out spec.yaml", "--out", "file-exists"),
    ("explain out", "--out spec.yaml", "--out", "file-exists"),
]


@pytest.mark.parametrize(("command", "options", "place", "code"), CASES)
def test_what_is_wrong_is_one_line(
    home: Path, monkeypatch: pytest.MonkeyPatch, command: str, options: str, place: str, code: str
) -> None:
    monkeypatch.chdir(home)
    words = [word.replace(":", ": ").replace("@", " ") for word in options.split()]
    before = sorted(home.iterdir())
    result = CliRunner().invoke(app, [*command.split(), *words])
    assert (result.exit_code, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert line.startswith(f"Error: {place}")
    assert line.endswith(f"[{code}]" if code else "]")
    assert sorted(home.iterdir()) == before


def test_queries_may_be_longer_than_names_of_files():
    sets = ", ".join(f"[{code}]" for code in range(1500))
    [(entry, base)] = entries_of(f"product: {{code: {{sets: [{sets}]}}}}")
    assert (len(entry["product"]["code"]["sets"]), base) == (1500, Path())
    for query in ("x" * 300, "[] #:", "cdf: age, by: [sex"):
        with pytest.raises(SpecificationError):
            entries_of(query)


def test_noises_and_budgets_that_are_none():
    with pytest.raises(typer.BadParameter):
        noise_name(("auto",), "laplas")
    with pytest.raises(SpecificationError) as caught:
        reference_budget(mdp.load_specification("domain: {sex: [f, m]}\nworkload: [marginals: 1]\n"))
    assert caught.value.path == ("privacy",)


def test_pictures_without_matplotlib_or_of_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    picture = tmp_path / "picture.png"
    with pytest.raises(SpecificationError) as nothing:
        draw_comparison([Outcome("dense", "gaussian")], picture, "nothing")
    assert nothing.value.path == ("--picture",)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SpecificationError) as missing:
        draw_comparison([Outcome("dense", "gaussian", weighted_rmse=1.0)], picture, "nothing")
    assert missing.value.code == "missing-library"
    assert not picture.exists()
