"""The page's program: who may ask it, what it writes, and what it says of a design."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.design.app import Design, application
from matrixdp.design.desk import Records
from tests.cli.commands import run
from tests.pages import HOSTILE

TEXT = """\
# ours
domain:
  sex: [f, m]
  age: {min: 0, max: 9}   # in years
workload:
  - marginals: [1]
privacy: {mu: 0.5}
"""
PORT = 8000
OWN = f"127.0.0.1:{PORT}"


@pytest.fixture
def design(tmp_path):
    file = tmp_path / "survey.yaml"
    file.write_text(TEXT, encoding="utf-8")
    return Design(file, "", Records(number=1_000))


class Browser:
    """What an open page sends."""

    def __init__(self, design, name="page"):
        self.client = application(design, PORT).test_client()
        self.token, self.name = design.token, name

    def get(self, path="", token=None, **headers):
        return self.client.get(f"/{token or self.token}/{path}", headers={"Host": OWN, **headers})

    def post(self, path, body=None, token=None, **headers):
        data = json.dumps(body) if isinstance(body, dict | list | None) else body
        return self.client.post(
            f"/{token or self.token}/{path}",
            data=data,
            headers={"Host": OWN, "Content-Type": "application/json", "Origin": f"http://{OWN}", **headers},
        )

    def show(self, text=None, **rest):
        answer = self.post("design", {"page": self.name, "text": text, **rest})
        assert answer.status_code == 200, answer.text
        return answer.json

    def judged(self, text=None):
        """Return what is shown once nothing more is computed."""
        for _ in range(600):
            found = self.show(text)
            if not found["stage"]:
                return found
            time.sleep(0.05)
        raise AssertionError(found["stage"])


@pytest.fixture
def browser(design):
    return Browser(design)


WRONG = [
    ({"Host": "127.0.0.1"}, 403),
    ({"Host": "localhost:8000"}, 403),
    ({"Host": "evil.example:8000"}, 403),
    ({"Host": "127.0.0.1:8000.evil.example"}, 403),
    ({"Host": "127.0.0.1:8001"}, 403),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "http://127.0.0.1:8001"}, 403),
    ({"Origin": "https://127.0.0.1:8000"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site"}, 403),
    ({"Content-Type": "text/plain"}, 415),
    ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ({"Content-Type": ""}, 415),
]


@pytest.mark.parametrize(("headers", "status"), WRONG)
@pytest.mark.parametrize("path", ["design", "save", "summary", "confirm"])
def test_requests_from_elsewhere_are_refused_and_write_nothing(browser, design, path, headers, status):
    body = {"page": "p", "text": "lost: 1\n", "seen": design.on_disk()[1]}
    assert browser.post(path, body, **headers).status_code == status
    assert design.file.read_text(encoding="utf-8") == TEXT
    assert not design.desks


@pytest.mark.parametrize("token", ["x", "A" * 43, "%00", "\u00fc", "..", "static"])
def test_without_the_token_there_is_nothing(browser, design, token):
    for answer in (browser.get(token=token), browser.post("save", {"page": "p", "text": "x"}, token=token)):
        assert answer.status_code == 404
        assert design.token not in answer.text
    assert browser.client.get("/", headers={"Host": OWN}).status_code == 404
    assert browser.client.get(f"/{design.token[:-1]}/", headers={"Host": OWN}).status_code == 404


def test_other_sites_may_link_to_the_page_but_not_frame_or_read_it(browser):
    cross = {"Sec-Fetch-Site": "cross-site"}
    assert browser.get(**cross, **{"Sec-Fetch-Mode": "navigate"}).status_code == 200
    assert browser.get(**cross, **{"Sec-Fetch-Mode": "no-cors"}).status_code == 403
    answer = browser.get()
    allowed = dict(
        own.strip().split(" ", 1) for own in answer.headers["Content-Security-Policy"].split(";") if own
    )
    assert allowed["default-src"] == allowed["frame-ancestors"] == allowed["form-action"] == "'none'"
    assert allowed["connect-src"] == "'self'"
    assert "unsafe" not in str(allowed)
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "Access-Control-Allow-Origin" not in answer.headers
    for left in (answer.text, browser.get("nothing").text):
        assert "http" not in left.replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    "path",
    ["../survey.yaml", "..%2fsurvey.yaml", "%2e%2e/survey.yaml", "survey.yaml", "static/x", "//etc/passwd"],
)
def test_no_file_is_served(browser, path):
    assert browser.get(path).status_code in (308, 404)


BODIES = [
    ("x" * 1_000_001, 413),
    ("{", 400),
    ("[" * 100_000, 400),
    ([], 400),
    (None, 400),
    ({}, 400),
    ({"page": 1, "text": "a"}, 400),
    ({"page": "p" * 65, "text": "a"}, 400),
    ({"page": "p", "text": 1}, 400),
]


@pytest.mark.parametrize(("body", "status"), BODIES)
def test_bodies_that_are_wrong_are_refused(browser, design, body, status):
    for path in ("design", "save", "summary", "confirm"):
        assert browser.post(path, body).status_code == status
    assert design.file.read_text(encoding="utf-8") == TEXT


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (BOMB, "too-large"),
        ("a: &a [*a]\n", "bad-yaml"),
        ("[" * 5_000 + "\n", "too-large"),
        ("a: !!python/object/apply:os.system [ls]\n", "bad-yaml"),
        ("\x00\n", "bad-yaml"),
        ("", "wrong-type"),
        ("- a\n", "wrong-type"),
        (TEXT.replace("[f, m]", "TODO"), "missing-key"),
        (TEXT.replace("privacy: {mu: 0.5}", ""), "missing-key"),
    ],
)
def test_texts_that_are_no_specification_are_told_and_kept(browser, text, code):
    shown = browser.show(text)
    assert (shown["problem"]["code"], shown["text"], shown["stage"]) == (code, text, "")


def test_each_attribute_says_what_is_wrong_with_it(browser):
    shown = browser.show(TEXT.replace("[f, m]", "[f, f]").replace("max: 9", "max: TODO"))
    sex, age = shown["attributes"]
    assert (sex["size"], age["size"]) == (None, None)
    assert "'f'" in sex["problem"]
    assert "TODO" in age["problem"]
    found = browser.show(changes=[{"path": ["domain", "sex"], "written": "[f, m, x]"}])
    assert [own["size"] for own in found["attributes"]] == [3, 10]
    assert "  age: {min: 0, max: 9}   # in years\n" in found["text"]


def test_attributes_from_files_are_read_beside_what_is_wrong(browser, design):
    (design.file.parent / "areas.csv").write_text("tract,state\na,N\nb,N\nc,S\n")
    text = TEXT.replace("sex: [f, m]", "sex: {levels_from: areas.csv}").replace("max: 9", "max: x")
    sex, age = browser.show(text)["attributes"]
    assert (sex["size"], sex["problem"]) == (3, "")
    assert age["problem"]


CHANGES = [
    {"path": ["workload", 1], "value": {"marginals": [["wage"]]}, "check": True},
    {"path": ["workload", 1], "value": {"product": {"sex": "nothing"}}, "check": True},
    {"path": ["domain", "sex"], "written": "[f"},
    {"path": ["domain", "sex", "x"], "written": "1"},
    {"path": ["workload", 7], "value": 1},
    {"path": []},
    {"path": [[]]},
    {"path": "workload"},
    {"path": ["a"], "written": 1},
    [],
    "x",
]


@pytest.mark.parametrize("change", CHANGES)
def test_changes_that_cannot_be_made_leave_the_text_alone(browser, change):
    shown = browser.show(TEXT, changes=[change])
    assert shown["refused"]["says"]
    assert shown["text"] == TEXT


def test_several_changes_are_made_together_or_not_at_all(browser):
    sex = {"path": ["domain", "sex"], "written": "[f, m, x]"}
    weight = {"path": ["workload", 0, "weight"], "value": 2}
    both = browser.show(TEXT, changes=[sex, weight])
    assert both["refused"] is None
    assert "[f, m, x]" in both["text"]
    assert "weight: 2" in both["text"]
    for wrong in (*CHANGES, {"path": ["targets", "height"], "value": {"cv": 0.1}, "check": True}):
        assert browser.show(TEXT, changes=[sex, wrong])["text"] == TEXT
    for wrong in ("x", 5, {"path": ["workload"]}):
        assert browser.show(TEXT, changes=wrong)["refused"]["says"]


@pytest.mark.parametrize(
    ("path", "left"),
    [
        (["domain", "sex"], ["{marginals: [[age]]}", "{cdf: age}", "targets: {age: 3}"]),
        (["domain", "age"], ["{marginals: [[sex]]}"]),
        (["workload", 0], ["{mean: age, by: [sex]}", "{cdf: age}"]),
        (
            ["workload", 2],
            [
                "{marginals: [[sex], [age], [sex, age]]}",
                "{mean: age, by: [sex]}",
                "targets: {age: 3, 'sex, age': 9}",
            ],
        ),
    ],
)
def test_with_what_is_removed_goes_what_asks_for_it(browser, path, left):
    entries = ["{marginals: [[sex], [age], [sex, age]]}", "{mean: age, by: [sex]}", "{cdf: age}"]
    if path == ["domain", "age"]:
        entries.append("{marginals: [[sex, age]], weight: 2}")
    lines = "".join(f"  - {own}\n" for own in entries)
    text = TEXT.replace("  - marginals: [1]\n", lines) + "targets: {age: 3, 'sex, age': 9}\n"
    shown = browser.show(text, changes=[{"path": path}])
    assert (shown["refused"], shown["problem"]) == (None, None)
    rest = shown["text"].partition("workload:\n")[2].splitlines()
    assert [own.removeprefix("  - ") for own in rest if "privacy" not in own] == left
    assert shown["text"].startswith("# ours\n")


def test_a_text_that_was_wrong_before_loses_only_what_is_removed(browser):
    text = TEXT.replace("marginals: [1]", "marginals: [[seks], [age]]")
    shown = browser.show(text, changes=[{"path": ["domain", "sex"]}])
    assert "[[seks], [age]]" in shown["text"]
    assert shown["problem"]["code"] == "unknown-name"


def test_attributes_have_their_comments(browser):
    notes = {own["name"]: own["note"] for own in browser.show(TEXT)["attributes"]}
    assert notes == {"sex": "", "age": "in years"}
    flow = "domain: {sex: [f, m], age: {min: 0, max: 9}}\nworkload: [{marginals: [1]}]\nprivacy: {mu: 1}\n"
    assert [own["note"] for own in browser.show(flow)["attributes"]] == ["", ""]


LOCK = {"cv": 0.15, "for": {"records_above": 200}}


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ("marginals: [1]", ["sex", "age"]),
        ("{marginals: [1], name: all of it}", ["all of it"]),
        ("{mean: age, by: [sex], name: mean age}", ["mean age"]),
        ("{mean: age, by: [sex]}", []),
    ],
)
def test_a_target_is_written_under_the_names_that_the_library_reads(browser, entry, names):
    text = TEXT.replace("marginals: [1]", entry)
    shown = browser.show(text)
    assert [own["names"] for own in shown["entries"]] == [names]
    if not names:
        return
    lock = LOCK | ({"for": {"records_above": 200, "mean_above": 1}} if "mean" in entry else {})
    made = browser.show(text, changes=[{"path": ["targets", name], "value": lock} for name in names])
    assert made["problem"] is None
    assert made["targets"] == dict.fromkeys(names, lock)
    assert made["text"].startswith(text)
    again = browser.show(made["text"], changes=[{"path": ["targets"]}])
    assert again["text"].rstrip() == text.rstrip()


def test_a_target_that_an_entry_cannot_have_is_refused(browser):
    text = TEXT.replace("marginals: [1]", "{sum: age, name: years}")
    asked = [{"path": ["targets", "years"], "value": LOCK, "check": True}]
    shown = browser.show(text, changes=asked)
    assert shown["text"] == text
    assert "years" in shown["refused"]["says"]
    shared = TEXT.replace("marginals: [1]", "{marginals: [1], name: all, budget_share: 1}")
    refused = browser.show(shared, changes=[{"path": ["targets", "all"], "value": LOCK, "check": True}])
    assert "share beside targets" in refused["refused"]["says"]


def test_a_target_is_met_by_what_is_spent_or_told_with_the_nearest(browser):
    def with_records(records):
        return f"{TEXT}targets: {{age: {{cv: 0.1, for: {{records_above: {records}}}}}}}\n"

    met = browser.judged(with_records(200))
    assert (met["certified"], met["unmet"]) == (True, False)
    written = mdp.load_specification(with_records(200))
    [found] = mdp.plan(written, records=1_000).budgets
    assert met["budget"]["words"] == found.budget.words
    assert float(found.budget.mu) < 0.5
    sheet = browser.get("sheet?page=page").text
    assert "age: a coefficient of variation of at most 10%, for figures of at least 200 records" in sheet
    unmet = browser.judged(with_records(1))
    assert (unmet["certified"], unmet["unmet"]) == (False, True)
    with pytest.raises(mdp.PrivacyError) as raised:
        mdp.plan(mdp.load_specification(with_records(1)), records=1_000)
    assert unmet["failed"] == str(raised.value)
    assert browser.judged()["unmet"] is False


def test_the_plan_of_a_design_that_is_kept_stays(browser, design):
    browser.judged()
    browser.show(TEXT, kept=TEXT)
    for mu in range(11, 22):
        browser.judged(TEXT.replace("0.5", f"0.{mu}"))
    assert browser.show(TEXT)["certified"]
    assert len(design.desks["page"]._judged) <= 9


def test_of_two_that_save_at_once_one_is_told(browser, design):
    from threading import Barrier, Thread

    seen, start, saved = design.on_disk()[1], Barrier(8), list[bool]()

    def save(number):
        start.wait()
        saved.append(design.save(f"# {number}\n", seen))

    threads = [Thread(target=save, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(saved) == [False] * 7 + [True]


def test_commands_are_those_of_the_text(browser):
    assert browser.show(TEXT)["commands"][-1].startswith("matrixdp release ")
    months = "  month: {from: 2024-01-01, to: 2024-02-29, by: month}\nworkload:"
    text = TEXT.replace("workload:", months).replace("[1]", "[[month]]") + "series: month\n"
    assert browser.show(text)["commands"][-1].startswith("matrixdp series start ")


def test_certified_figures_are_those_of_plan(browser):
    shown = browser.judged()
    [found] = mdp.plan(mdp.load_specification(TEXT), records=1_000).budgets
    assert shown["certified"]
    assert [own["letters"] for own in shown["tables"]] == [dict(own.letters) for own in found.tables]
    assert shown["budget"]["guess"] == found.promise.odds
    assert shown["prices"] == [1.0]
    assert shown["cells"] == 20


def test_a_budget_is_estimated_at_once_from_what_was_judged(browser):
    browser.judged()
    shown = browser.show(TEXT.replace("0.5", "0.05"))
    outlook = mdp.plan(mdp.load_specification(TEXT), records=1_000, estimates=True)
    assert not shown["certified"]
    assert shown["stage"]
    assert [own["letters"] for own in shown["tables"]] == [
        dict(own.letters) for own in outlook.at(0.05).tables
    ]
    more = browser.show(TEXT.replace("[1]", "[1, 2]"))
    assert [own["letters"] is None for own in more["tables"]] == [False, False, True]
    other = browser.show(TEXT.replace("max: 9", "max: 8"))
    assert [own["letters"] for own in other["tables"]] == [None, None]
    assert browser.judged(TEXT)["certified"]


def test_what_a_change_overtook_is_never_shown(browser, design):
    for mu in range(1, 9):
        last = TEXT.replace("0.5", f"0.{mu}1")
        browser.show(last)
    assert browser.judged(last)["budget"]["words"].startswith("mu 0.81")
    assert design.desks["page"].outlook.budgets[0].budget == mdp.Budget(mu=0.81)


def test_the_file_is_written_as_it_is_shown_and_what_others_wrote_is_kept(browser, design):
    seen, text = browser.show()["disk"], TEXT.replace("0.5", "0.25")
    saved = browser.post("save", {"page": "page", "text": text, "seen": seen}).json
    assert saved["saved"]
    assert design.file.read_text(encoding="utf-8") == text
    design.file.write_text("# theirs\n", encoding="utf-8")
    again = browser.post("save", {"page": "page", "text": text, "seen": saved["disk"]}).json
    assert (again["saved"], again["disk"] == saved["disk"]) == (False, False)
    assert design.file.read_text(encoding="utf-8") == "# theirs\n"
    assert browser.show(text)["disk"] == again["disk"]
    assert browser.show()["text"] == "# theirs\n"
    assert browser.post("save", {"page": "page", "text": text, "seen": again["disk"]}).json["saved"]


def test_line_ends_and_marks_of_a_file_stay(browser, design):
    design.file.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    shown = browser.show()
    assert shown["text"] == TEXT
    browser.post("save", {"page": "page", "text": TEXT + "# more\n", "seen": shown["disk"]})
    assert design.file.read_bytes() == b"\xef\xbb\xbf" + (TEXT + "# more\n").replace("\n", "\r\n").encode()


def test_pages_do_not_disturb_one_another(design):
    browser = Browser(design)
    browser.judged()
    for number in range(20):
        browser.name = f"page {number}"
        browser.show("")
    assert len(design.desks) == 8
    browser.name = "page"
    assert browser.judged()["certified"]


def test_the_sheet_is_that_of_the_last_plan(browser):
    assert browser.get("sheet?page=page").status_code == 404
    browser.judged()
    sheet = browser.get("sheet?page=page")
    assert "Plan of survey" in sheet.text
    assert "http-equiv" in sheet.text


def test_what_is_no_number_in_json_is_a_text_there(browser):
    def no_number(text):
        raise ValueError(text)

    asked = "marginals: [1], weight: .inf"
    for text in (TEXT.replace("0.5", ".nan"), TEXT.replace("- marginals: [1]", f"- {{{asked}}}")):
        answer = browser.post("design", {"page": "page", "text": text})
        assert json.loads(answer.text, parse_constant=no_number)["problem"]


def test_failures_are_told_and_leave_the_file_alone(browser, design, monkeypatch, caplog):
    from matrixdp.design import app

    def full(*_given):
        raise OSError(28, "No space left on device")

    body = {"page": "page", "text": "lost: 1\n", "seen": design.on_disk()[1]}
    monkeypatch.setattr(app, "write_whole", full)
    assert "No space left" in browser.post("save", body).text
    monkeypatch.undo()
    assert browser.post("save", body | {"text": "\ud800"}).status_code == 400
    assert browser.show(TEXT)["disk"] == body["seen"]
    assert "no epsilon" in browser.post("design", {"page": "page", "text": TEXT.replace("0.5", "1e308")}).text
    design.file.write_bytes(TEXT.replace("ours", "M\u00fcller").encode("latin-1"))
    for path in ("design", "save", "summary"):
        assert "not UTF-8" in browser.post(path, body).text
    design.file.unlink()
    design.file.mkdir()
    assert "directory" in browser.post("design", body).text
    assert design.token not in caplog.text


def test_who_may_read_the_file_stays_so(browser, design):
    design.file.chmod(0o600)
    saved = browser.post("save", {"page": "page", "text": "a: 1\n", "seen": design.on_disk()[1]})
    assert saved.json["saved"]
    assert design.file.stat().st_mode & 0o777 == 0o600


AREAS = TEXT.replace("[f, m]", "{levels_from: areas.csv}")


def test_files_that_a_text_names_are_looked_at_again(browser, design):
    areas = design.file.with_name("areas.csv")
    assert "areas.csv" in browser.judged(AREAS)["problem"]["says"]
    for more, size in (("", 2), ("c,y\n", 3)):
        areas.write_text(f"area,larger\na,x\nb,x\n{more}", encoding="utf-8")
        found = browser.judged(AREAS)
        assert found["certified"]
        assert found["attributes"][0]["size"] == size


def test_the_plan_of_a_page_that_is_gone_is_given_up(design, monkeypatch):
    from threading import Event

    from matrixdp.design import desk

    begun, ended, steps = Event(), Event(), Event()

    def plan(*_given, progress, **_options):
        begun.set()
        try:
            while not steps.is_set():
                time.sleep(0.01)
                progress("waiting", None)
        finally:
            ended.set()

    monkeypatch.setattr(desk, "plan", plan)
    browser = Browser(design)
    browser.show()
    assert begun.wait(120)
    for number in range(8):
        browser.name = f"page {number}"
        browser.show("")
    given_up = ended.wait(120)
    steps.set()
    assert given_up


def test_the_usual_port_is_not_named_by_browsers(design):
    client = application(design, 80).test_client()
    assert client.get(f"/{design.token}/", headers={"Host": "127.0.0.1"}).status_code == 200
    assert client.get(f"/{design.token}/", headers={"Host": "127.0.0.1:8000"}).status_code == 403


def test_names_that_mean_harm_are_data(design, tmp_path):
    hostile = Design(tmp_path / "<b>.yaml", TEXT.replace("[f, m]", json.dumps(HOSTILE)), design.records)
    browser = Browser(hostile)
    assert "<b>" not in browser.get().text
    shown = browser.show()
    assert shown["disk"] == ""
    assert shown["attributes"][0]["size"] == len(HOSTILE)


def test_a_public_table_that_does_not_fit_is_told(tmp_path, design):
    import pandas as pd

    table, own = tmp_path / "last.csv", tmp_path / "own.csv"
    pd.DataFrame({"sex": ["f"] * 30}).to_csv(table, index=False)
    pd.DataFrame({"sex": ["f"] * 30, "age": np.arange(30) % 10}).to_csv(own, index=False)
    lacks = Browser(Design(design.file, "", Records(str(table)))).judged()
    assert "age" in lacks["failed"]
    assert not lacks["certified"]
    itself = Browser(Design(design.file, "", Records(str(own)))).judged(f"data: {own}\n{TEXT}")
    assert "shine through" in itself["failed"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["design", "people.csv", "--public-table", "people.csv"], "privacy"),
        (["design", "nothing.yaml"], "file-missing"),
        (["design", "nothing.csv"], "file-missing"),
        (["design", "--out", "nowhere/x.yaml"], "no-place"),
        (["design", "people.csv", "--out", "there.yaml"], "file-exists"),
    ],
)
def test_what_cannot_be_opened_is_refused(tmp_path, monkeypatch, words, code):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,age\nf,3\n", encoding="utf-8")
    Path("there.yaml").write_text(TEXT, encoding="utf-8")
    result = run(*words, "--no-browser", status=2)
    assert f"[{code}]" in result.output


@pytest.mark.parametrize("source", ["people.csv", "there.yaml", None])
def test_what_is_opened_is_served_at_its_address(tmp_path, monkeypatch, source):
    from matrixdp.design import app

    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("sex,married\nf,true\n", encoding="utf-8")
    Path("there.yaml").write_text(TEXT, encoding="utf-8")
    shown = []

    def serve(design, port, opened):
        made = Browser(design)
        shown.append((design.file.name, made.show()))
        opened("http://127.0.0.1:1/secret/")

    monkeypatch.setattr(app, "serve", serve)
    said = run("design", *filter(None, [source]), "--no-browser").stdout
    assert "http://127.0.0.1:1/secret/" in said
    [(name, found)] = shown
    assert name == {"people.csv": "people.yaml", "there.yaml": "there.yaml", None: "design.yaml"}[source]
    assert [own["name"] for own in found["attributes"]] == {
        "people.csv": ["sex", "married"],
        "there.yaml": ["sex", "age"],
        None: ["TODO"],
    }[source]
    assert not Path("people.yaml").exists()


def test_the_server_listens_to_this_machine_alone(design):
    import http.client
    from threading import Thread

    from matrixdp.design.app import serve

    addresses: list[str] = []
    Thread(target=serve, args=(design, 0, addresses.append), daemon=True).start()
    for _ in range(200):
        if addresses:
            break
        time.sleep(0.02)
    host, _, path = addresses[0].removeprefix("http://").partition("/")
    for headers, status in (({}, 200), ({"Host": "evil.example"}, 403)):
        connection = http.client.HTTPConnection(host, timeout=120)
        connection.request("GET", f"/{path}", headers=headers)
        assert connection.getresponse().status == status
        connection.close()
    assert host.startswith("127.0.0.1:")
    with pytest.raises(OSError, match="in use"):
        serve(design, int(host.partition(":")[2]))
