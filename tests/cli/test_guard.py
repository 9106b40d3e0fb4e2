from pathlib import Path
from typing import Any

import pytest
import typer

from matrixdp.cli.app import guarded
from matrixdp.cli.console import Reporter
from matrixdp.cli.forecast import forecast, measured_marginals
from matrixdp.display import figure
from matrixdp.domain import Domain
from matrixdp.errors import PrivacyError, TooLargeError
from matrixdp.language import kway, marginals, pairwise, product
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.queries import Workload


def ending(error: BaseException) -> int:
    @guarded
    def command() -> None:
        raise error

    with pytest.raises(typer.Exit) as raised:
        command()
    return raised.value.exit_code


def test_wrong_input_ends_with_2(capsys: pytest.CaptureFixture[str]):
    assert ending(PrivacyError("budget: found nothing")) == 2
    assert ending(TooLargeError("too many cells")) == 2
    assert capsys.readouterr().err == (
        "Error: budget: found nothing [privacy]\nError: too many cells [too-large]\n"
    )


@pytest.mark.parametrize(
    ("path", "place"),
    [
        *((("budget", name), f"privacy.{name}") for name in ("rho", "mu", "epsilon", "delta", "neighbours")),
        (("budget", "least"), "privacy.least"),
        (("budget",), "privacy"),
        (("budget", "unit"), "unit"),
        (("budget", "unit", "records"), "unit.records"),
        (("budget", "unit", "id"), "unit.id"),
        (("ledger",), "ledger"),
    ],
)
def test_budgets_are_named_as_a_specification_has_them(
    path: tuple[str, ...], place: str, capsys: pytest.CaptureFixture[str]
):
    assert ending(PrivacyError.at(path, "none", "some")) == 2
    assert capsys.readouterr().err == f"Error: {place}: found none; expected some [privacy]\n"


def test_other_failures_end_with_1_and_quote_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("MATRIXDP_DEBUG", raising=False)
    assert ending(ValueError("a secret")) == 1
    assert ending(type("PanicException", (BaseException,), {})("a secret")) == 1
    assert ending(MemoryError("a secret")) == 1
    assert ending(OSError(28, "No space left on device", "/out")) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "secret" not in printed.err
    assert "ValueError" in printed.err
    assert "PanicException" in printed.err
    assert "/out: No space left on device" in printed.err
    monkeypatch.setenv("MATRIXDP_DEBUG", "1")

    @guarded
    def command() -> None:
        raise ValueError("everything")

    with pytest.raises(ValueError, match="everything"):
        command()


def test_a_reader_who_has_seen_enough_is_told_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with (tmp_path / "pipe").open("w") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        assert ending(BrokenPipeError(32, "Broken pipe")) == 1
        pipe.write("what is still buffered")
    assert (tmp_path / "pipe").read_text() == ""
    assert capsys.readouterr().err == ""


def test_interrupts_and_exits_pass():
    for error in (KeyboardInterrupt(), SystemExit(3), typer.Abort(), typer.Exit(0)):

        @guarded
        def command(error: BaseException = error) -> None:
            raise error

        with pytest.raises(type(error)):
            command()


def test_progress_is_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]):
    with Reporter() as reporter:
        reporter._show()
        reporter.stage("selecting", 0.5)
        reporter.counter("writing")(1, 2)
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")


def test_progress_is_shown_at_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with Reporter() as reporter:
        reporter._show()
        reporter.stage("selecting", 0.5)
    reporter._show()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "selecting" in printed.err


def test_forecasts_count_marginals():
    domain = Domain({"a": 2, "b": 3, "c": {"min": 0, "max": 4}, "d": {"min": 0, "max": 5}})
    workload = Workload(
        domain, marginals([0, 2]), pairwise("affine"), product(a="identity", b="total"), kway(3, "prefix")
    )
    assert len(measured_marginals(workload)) == 1 + 4 + 6 + 4
    expected = forecast(workload, 10, [GAUSSIAN])
    assert expected.queries == workload.queries
    assert expected.largest_marginal == 3 * 5 * 6
    assert expected.disk_bytes < forecast(workload, 10**6, [GAUSSIAN]).disk_bytes
    wide = Domain({f"a{i}": 2 for i in range(30)})
    whole = Workload(wide, product(dict.fromkeys(wide.names, "identity")))
    assert forecast(whole, 10, [GAUSSIAN]).marginals == 1


COUNTIES: dict[str, Any] = {"county": {"categories": [str(i) for i in range(3169)]}, "sex": 2, "age": 15}
COUNTIES["county"]["levels"] = {
    "state": {f"state {s}": [str(i) for i in range(3169) if i % 51 == s] for s in range(51)}
}
AREAS = [["county", "sex", "age"], ["state", "sex", "age"]]


@pytest.mark.parametrize(
    ("domain", "entries", "noise", "measured"),
    [
        ({"v": 2400}, [product(v="prefix")], GAUSSIAN, 9.1),
        ({"v": 1200, "sex": 2}, [product(v="prefix"), product(v="prefix", sex="identity")], GAUSSIAN, 4.2),
        ({"v": 300}, [product(v="prefix")], LAPLACE, 1.9),
        ({"v": 1000}, [product(v="prefix")], LAPLACE, 7.6),
        ({"v": 3000}, [product(v="prefix")], LAPLACE, 58.0),
        (COUNTIES, [marginals(AREAS)], GAUSSIAN, 13.0),
        (COUNTIES, [marginals([["county"], ["county", "sex"], *AREAS])], GAUSSIAN, 30.0),
    ],
)
def test_forecasts_are_within_twice_what_selections_took(
    domain: dict[str, Any], entries: list[Any], noise: Noise, measured: float
):
    expected = forecast(Workload(Domain(domain), *entries), 10, [noise]).select_seconds
    assert measured / 2 <= expected <= 2 * measured


def test_figures_are_short():
    assert [figure(x) for x in (0.0, 1.0, 999.96, 1234.5, 1e15, 1e-9)] == [
        "0", "1", "1000", "1,234", "1.000e+15", "1e-09",
    ]  # fmt: skip
