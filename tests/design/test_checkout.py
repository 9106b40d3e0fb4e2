"""A release from the page: what a summary says, who can confirm it, and that nothing is ever spent twice."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp.design import checkout
from matrixdp.design.app import Design
from matrixdp.design.desk import Records
from tests.design.test_app import WRONG, Browser

SEX = ["f", "m", "m", "m", "f", "m", "m"]
TEXT = """\
data: people.csv
domain:
  sex: [f, m]
workload:
  - marginals: [1]
privacy: {mu: 0.5, ledger: people.ledger}
"""


@pytest.fixture
def ledger(tmp_path):
    return mdp.Ledger.create(tmp_path / "people.ledger", "people", mdp.Budget(mu=1))


@pytest.fixture
def design(tmp_path, ledger):
    (tmp_path / "people.csv").write_text("sex\n" + "\n".join(SEX) + "\n", encoding="utf-8")
    file = tmp_path / "people.yaml"
    file.write_text(TEXT, encoding="utf-8")
    return Design(file, "", Records(number=100))


@pytest.fixture
def browser(design):
    return Browser(design)


def summed(browser, text=TEXT):
    """Return a summary of a text whose figures are computed."""
    browser.judged(text)
    return browser.post("summary", {"page": browser.name, "text": text}).json


def confirmed(browser, offer, **other):
    body = {"page": browser.name, "nonce": offer["nonce"], "digest": offer["digest"], **other}
    return browser.post("confirm", body).json


def ended(browser):
    for _ in range(600):
        run = browser.show(TEXT)["release"]
        if not run["going"]:
            return run
        time.sleep(0.02)
    raise AssertionError(run["stage"])


def debits(ledger):
    return [(float(one.budget.mu), one.state) for one in ledger.entries]


def spends_nothing(design, ledger):
    return ledger.entries == () and not design.checkout.folder.exists() and design.checkout.run is None


def test_a_summary_says_what_will_be_read_spent_and_written(browser, design, ledger):
    offer = summed(browser)
    assert offer["refused"] == ""
    assert offer["tables"] == [["sex", 2]]
    assert offer["figures"] == 2
    assert offer["budget"] == mdp.Budget(mu=0.5).words
    promise = mdp.plan(mdp.load_specification(design.file)).budgets[0].promise
    assert (offer["guess"], offer["protected"]) == (promise.odds, "each single record")
    assert offer["data"] == str(design.file.with_name("people.csv"))
    assert offer["folder"] == str(design.file.with_name("people-release"))
    assert offer["ledger"]["before"] == "mu 1.0"
    assert spends_nothing(design, ledger)
    assert confirmed(browser, offer)["refused"] == ""
    run = ended(browser)
    assert (run["spent"], run["failed"]) == (offer["budget"], [])
    # never less than the summary said is left
    assert float(offer["ledger"]["after"].removeprefix("mu ")) == pytest.approx(ledger.left.mu, rel=1e-5)
    assert float(offer["ledger"]["after"].removeprefix("mu ")) <= ledger.left.mu


def test_the_release_is_that_of_the_command(browser, design, ledger):
    confirmed(browser, summed(browser))
    assert ended(browser)["failed"] == []
    found = mdp.load_release(design.checkout.folder)
    again = mdp.release(mdp.load_specification(design.file), seed_not_private=1)
    assert found.answers.to_arrow().schema == again.answers.to_arrow().schema
    assert found.answers.to_arrow()["stddev"] == again.answers.to_arrow()["stddev"]
    assert found.private
    assert debits(ledger) == [(0.5, "released")]
    assert mdp.verify_release(design.checkout.folder, ledger=ledger.path)
    page = browser.get("report")
    assert page.status_code == 200
    assert "people-release" in page.text


@pytest.mark.parametrize(("headers", "status"), WRONG)
def test_requests_from_elsewhere_release_nothing(browser, design, ledger, headers, status):
    offer = summed(browser)
    body = {"page": "page", "nonce": offer["nonce"], "digest": offer["digest"]}
    assert browser.post("confirm", body, **headers).status_code == status
    assert browser.post("summary", {"page": "page", "text": TEXT}, **headers).status_code == status
    assert browser.post("confirm", body, token="A" * 43).status_code == 404
    assert browser.get("confirm").status_code == 405
    assert spends_nothing(design, ledger)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"nonce": None, "digest": None},
        {"nonce": "", "digest": ""},
        {"nonce": ["x"], "digest": "x"},
        {"nonce": "x"},
        {"digest": "x"},
    ],
)
def test_without_a_nonce_and_a_digest_nothing_is_confirmed(browser, design, ledger, body):
    summed(browser)
    assert browser.post("confirm", {"page": "page", **body}).status_code == 400
    assert spends_nothing(design, ledger)


@pytest.mark.parametrize("wrong", [{"nonce": "x"}, {"digest": "0" * 64}])
def test_a_guess_confirms_nothing(browser, design, ledger, wrong):
    offer = summed(browser)
    assert confirmed(browser, offer, **wrong)["refused"]
    assert spends_nothing(design, ledger)


def test_nothing_can_be_confirmed_before_a_summary(browser, design, ledger):
    browser.judged(TEXT)
    assert confirmed(browser, {"nonce": "x", "digest": design.on_disk()[1]})["refused"]
    assert spends_nothing(design, ledger)


def test_a_summary_is_confirmed_once(browser, design, ledger):
    offer = summed(browser)
    assert confirmed(browser, offer)["refused"] == ""
    assert "confirmed before" in confirmed(browser, offer)["refused"]
    ended(browser)
    assert "confirmed before" in confirmed(browser, offer)["refused"]
    # not even where the release is gone
    design.checkout.folder.rename(design.file.with_name("elsewhere"))
    assert "confirmed before" in confirmed(browser, offer)["refused"]
    assert debits(ledger) == [(0.5, "released")]


def test_a_later_summary_replaces_the_one_of_another_page(design, ledger):
    one, other = Browser(design, "one"), Browser(design, "other")
    first, second = summed(one), summed(other)
    assert "later one" in confirmed(one, first)["refused"]
    assert confirmed(other, second)["refused"] == ""
    ended(other)
    assert confirmed(one, first)["refused"]
    assert one.show(TEXT)["release"]["spent"]
    assert debits(ledger) == [(0.5, "released")]


def test_many_at_once_spend_once(design, ledger):
    offer, browsers = summed(Browser(design)), [Browser(design) for _ in range(8)]
    start, said = threading.Barrier(8), list[str]()

    def press(browser):
        start.wait()
        said.append(confirmed(browser, offer)["refused"])

    threads = [threading.Thread(target=press, args=(browser,)) for browser in browsers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([words for words in said if words == ""]) == 1
    assert ended(browsers[0])["failed"] == []
    assert debits(ledger) == [(0.5, "released")]


@pytest.fixture
def held(monkeypatch):
    """Return what lets a release go on, which waits before it measures."""
    go = threading.Event()

    def release(*given, before_measuring, **options):
        def check(budget):
            before_measuring(budget)
            go.wait(120)

        return mdp.release(*given, before_measuring=check, **options)

    monkeypatch.setattr(checkout, "release", release)
    yield go
    go.set()


def test_while_one_release_goes_on_there_is_no_other(browser, design, ledger, held):
    confirmed(browser, summed(browser))
    for _ in range(600):
        if list(design.file.parent.glob(".people-release*")):
            break
        time.sleep(0.02)
    assert "another run" in summed(browser)["refused"]
    design.checkout.folder = design.file.with_name("second")
    assert "under way" in confirmed(browser, summed(browser))["refused"]
    # another program on the same folder is refused by the transaction itself
    with pytest.raises(mdp.StorageError, match="another run"):
        mdp.release(mdp.load_specification(design.file), design.file.with_name("people-release"))
    held.set()
    assert ended(browser)["spent"]
    assert debits(ledger) == [(0.5, "released")]


CHANGED = [
    ("people.yaml", TEXT.replace("0.5", "0.9"), "another text"),
    ("people.yaml", TEXT + "# a word\n", "another text"),
    ("people-release/note", "mine\n", "people-release"),
]


@pytest.mark.parametrize(("name", "text", "says"), CHANGED)
def test_what_changed_since_the_summary_ends_it(browser, design, ledger, name, text, says):
    offer, path = summed(browser), Path(design.file.parent, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    assert says in confirmed(browser, offer)["refused"]
    path.write_text(TEXT, encoding="utf-8")
    assert confirmed(browser, offer)["refused"]
    assert ledger.entries == ()
    assert design.checkout.run is None


def test_a_ledger_that_others_debited_ends_it(browser, design, ledger):
    offer = summed(browser)
    from matrixdp.noise import GAUSSIAN

    other = mdp.Budget(mu=0.3)
    ledger.reserve(GAUSSIAN.cost(other), other)
    assert "ledger changed" in confirmed(browser, offer)["refused"]
    assert len(ledger.entries) == 1
    left = summed(browser)["ledger"]["before"]
    assert left != offer["ledger"]["before"]
    much = mdp.Budget(mu=0.9)
    ledger.reserve(GAUSSIAN.cost(much), much)
    refused = summed(browser)["refused"]
    assert "people.ledger has left" in refused
    assert browser.show(TEXT)["ledger"] is None  # that of the plan is not so any more


def test_a_summary_is_about_the_text_even_where_the_file_is_another_meanwhile(browser, design, monkeypatch):
    other, load = TEXT.replace("0.5", "0.9"), mdp.load_specification
    browser.judged(other)  # the figures are those of the other, too
    design.file.write_text(TEXT, encoding="utf-8")

    def elsewhere(*given, **options):
        design.file.write_text(other, encoding="utf-8")
        try:
            return load(*given, **options)
        finally:
            design.file.write_text(TEXT, encoding="utf-8")

    monkeypatch.setattr(checkout, "load_specification", elsewhere)
    told = browser.post("summary", {"page": "page", "text": TEXT}).json
    assert "computed" in told["refused"]


def test_a_link_to_a_specification_is_read_as_by_the_command(design, ledger, tmp_path):
    link = tmp_path / "links" / "people.yaml"
    link.parent.mkdir()
    link.symlink_to(design.file)
    offer = summed(Browser(Design(link, "", Records(number=100))))
    assert offer["refused"] == ""
    assert offer["data"] == str(mdp.load_specification(link).data)
    assert offer["ledger"]["path"] == str(ledger.path)


SERIES = """\
data: people.csv
domain:
  on: {from: 2024-01-01, to: 2024-03-31, by: month}
workload:
  - marginals: [[on]]
series: on
privacy: {mu: 0.5}
"""
REFUSED = [
    (TEXT.replace("data: people.csv\n", ""), "data"),
    (TEXT.replace("mu: 0.5", "mu: 5"), "accept-weak"),
    (TEXT.replace("people.ledger", "none.ledger"), "none.ledger"),
    (SERIES, "series"),
]


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_what_the_command_refuses_has_no_summary(browser, design, ledger, text, says):
    design.file.write_text(text, encoding="utf-8")
    assert says in summed(browser, text)["refused"] or says in browser.show(text)["failed"]
    assert spends_nothing(design, ledger)


def test_only_a_text_that_is_saved_and_computed_has_a_summary(browser, design, ledger, held):
    assert "save" in summed(browser, TEXT + "# more\n")["refused"]
    design.file.write_text(TEXT.replace("[f, m]", "[f, f]"), encoding="utf-8")
    wrong = browser.post("summary", {"page": "page", "text": design.on_disk()[0]}).json["refused"]
    assert "'f'" in wrong
    other = TEXT.replace("0.5", "0.25")
    design.file.write_text(other, encoding="utf-8")
    assert "computed" in browser.post("summary", {"page": "page", "text": other}).json["refused"]
    assert "computed" in browser.post("summary", {"page": "new", "text": other}).json["refused"]
    assert spends_nothing(design, ledger)


def test_a_folder_that_is_there_is_refused_as_by_the_command(browser, design, ledger):
    confirmed(browser, summed(browser))
    ended(browser)
    refused = browser.post("summary", {"page": "page", "text": TEXT}).json["refused"]
    with pytest.raises(mdp.StorageError) as raised:
        mdp.release(mdp.load_specification(design.file), design.checkout.folder)
    assert refused == str(raised.value)
    assert len(ledger.entries) == 1


def test_errors_quote_no_record_and_say_what_was_spent(browser, design, ledger, monkeypatch):
    offer = summed(browser)
    value = "Ann Example"

    def release(*_given, **_options):
        error = ValueError(f"no value {value}")
        error.add_note(f"about {value}")
        raise error

    monkeypatch.setattr(checkout, "release", release)
    confirmed(browser, offer)
    run = ended(browser)
    assert "ValueError" in run["failed"][0]
    assert value not in json.dumps(run)
    assert browser.get("report").status_code == 404


def test_no_answer_and_no_log_holds_a_record(browser, design, ledger, caplog):
    caplog.set_level("DEBUG")
    values = "\n".join([*SEX, "zebra"])
    design.file.with_name("people.csv").write_text(f"sex\n{values}\n", encoding="utf-8")
    offer = summed(browser)
    said = [json.dumps(offer), json.dumps(confirmed(browser, offer)), json.dumps(ended(browser))]
    said += [browser.get("report").text, browser.get("sheet?page=page").text, caplog.text]
    assert design.checkout.run["spent"]
    assert not [text for text in said if "zebra" in text]


def test_a_failure_after_the_spend_says_so(browser, design, ledger, monkeypatch):
    from matrixdp.releases import transaction

    def full(*_given, **_options):
        raise OSError(28, "No space left on device")

    offer = summed(browser)
    monkeypatch.setattr(transaction, "complete_release", full)
    confirmed(browser, offer)
    run = ended(browser)
    assert not run["spent"]
    assert any("The budget was spent" in words and "ledger recover" in words for words in run["failed"])
    assert debits(ledger) == [(0.5, "measured")]
    assert "at no further cost" in summed(browser)["refused"]


def test_a_table_that_does_not_fit_spends_nothing(browser, design, ledger):
    offer = summed(browser)
    design.file.with_name("people.csv").write_text("age\n3\n", encoding="utf-8")
    confirmed(browser, offer)
    run = ended(browser)
    assert "sex" in run["failed"][0]
    assert ledger.entries == ()


def test_another_budget_than_the_summary_said_is_not_spent(browser, design, ledger, monkeypatch):
    offer = summed(browser)

    def release(*given, before_measuring, **options):
        return mdp.release(*given, before_measuring=lambda _: before_measuring(mdp.Budget(mu=0.6)), **options)

    monkeypatch.setattr(checkout, "release", release)
    confirmed(browser, offer)
    assert "as the summary said" in ended(browser)["failed"][0]
    assert ledger.entries == ()


def test_the_address_of_a_database_is_shown_without_who_asks(browser, design):
    text = TEXT.replace("people.csv", "postgresql://ann@localhost/people?sslkey=x\ntable: people")
    design.file.write_text(text, encoding="utf-8")
    offer = summed(browser, text)
    assert offer["refused"] == ""
    assert offer["data"] == "postgresql://localhost/people, table people"


SERVER = """
import sys, time
from pathlib import Path
import matrixdp as mdp
from matrixdp.design import checkout
from matrixdp.design.app import Design, serve
from matrixdp.design.desk import Records
from matrixdp.releases import transaction

def wait(*given, **options):
    print("measured", flush=True)
    time.sleep(60)

transaction.complete_release = wait
serve(Design(Path(sys.argv[1]), "", Records(number=100)), 0, lambda address: print(address, flush=True))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_is_stopped_leaves_what_a_killed_command_leaves(design, ledger, how):
    import http.client

    command = [sys.executable, "-c", SERVER, str(design.file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as server:
        assert server.stdout is not None
        host, _, path = server.stdout.readline().strip().removeprefix("http://").partition("/")

        def post(where, **body):
            connection = http.client.HTTPConnection(host, timeout=120)
            sent = json.dumps({"page": "p", "text": TEXT, **body})
            connection.request("POST", f"/{path}{where}", sent, {"Content-Type": "application/json"})
            found = json.loads(connection.getresponse().read())
            connection.close()
            return found

        while not post("design")["certified"]:
            time.sleep(0.05)
        offer = post("summary")
        assert post("confirm", nonce=offer["nonce"], digest=offer["digest"])["refused"] == ""
        assert server.stdout.readline() == "measured\n"
        server.send_signal(how)
        server.wait(120)
    assert debits(ledger) == [(0.5, "measured")]
    assert "at no further cost" in summed(Browser(Design(design.file, "", Records(number=100))))["refused"]
    mdp.recover_ledger(ledger.path)
    assert mdp.load_release(design.file.with_name("people-release")).private
    assert debits(ledger) == [(0.5, "released")]
