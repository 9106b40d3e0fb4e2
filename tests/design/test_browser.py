"""The page in a browser: by keyboard alone, at both widths, light and dark, asking nobody but its program."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

import matrixdp as mdp
from matrixdp.design.app import Design, serve
from matrixdp.design.desk import Records
from tests.report.browser import BROWSER, OPTIONS

pytestmark = pytest.mark.slow
TEXT = """\
# ours
domain:
  sex: [f, m]
  age: {min: 0, max: 9}   # in years
  pay: {amount: [0, 100]}
workload:
  - marginals: [[sex]]   # first
privacy: {mu: 0.5}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=OPTIONS)
        yield opened
        opened.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Return what opens the page of a file; it may say nothing to the console, nor ask anybody else."""
    file, addresses, contexts = tmp_path / "survey.yaml", list[str](), list[Any]()
    file.write_text(TEXT, encoding="utf-8")
    design = Design(file, "", Records(number=2_000))
    Thread(target=serve, args=(design, 0, addresses.append), daemon=True).start()
    said, asked = list[str](), list[str]()

    def page(**options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(until(lambda: addresses)[0])
        until(lambda: tab.inner_text("#state").startswith("Computed"))
        return tab

    yield page, file
    for context in contexts:
        context.close()
    assert said == []
    assert {url for url in asked if not url.startswith(addresses[0])} <= {"data:,"}


def until(found: Any, tries: int = 300) -> Any:
    for _ in range(tries):
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError("it never happened")


def has(tab: Any, text: str) -> Any:
    return until(lambda: text in tab.input_value("#text"))


def reads(tab: Any, width: int) -> None:
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(tab).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_it_reads_well_everywhere(opened, width, scheme):
    tab = opened[0](viewport={"width": width, "height": 850}, color_scheme=scheme)
    tab.click("#keep")
    until(lambda: tab.is_visible("#swap"))
    tab.fill("#amount", "0.01")
    tab.press("#amount", "Enter")
    until(lambda: "worse" in tab.inner_text("#bars"))
    tab.fill("#cv-0", "0.1")
    tab.press("#cv-0", "Tab")
    until(lambda: tab.inner_text("#unmet"))
    reads(tab, width)
    tab.fill("#attribute-0", "[f, f]")
    until(lambda: tab.inner_text("#attribute-0-wrong"))
    assert tab.get_attribute("#attribute-0", "aria-invalid") == "true"
    reads(tab, width)


def test_a_design_is_made_by_keyboard_and_undone(opened):
    page, file = opened
    tab = page()
    tab.focus("#cell-1-0")
    tab.keyboard.press("Enter")
    has(tab, "  - marginals: [[sex]]   # first\n  - marginals: [[sex, age]]\n")
    until(lambda: tab.evaluate("document.activeElement.id") == "cell-1-0")
    assert tab.get_attribute("#cell-1-0", "aria-pressed") == "true"
    assert tab.get_attribute("#cell-1-0", "aria-label") == "age by sex, 20 figures"
    assert not tab.locator("#cell-2-0").count()  # amounts are not counted
    tab.select_option("#shape", "mean")
    tab.focus("#cell-2-0")
    tab.keyboard.press("Space")
    has(tab, "  - mean: pay\n    by: [sex]\n")
    tab.focus("#slider")
    tab.keyboard.press("ArrowLeft")
    has(tab, "privacy: {mu: 0.49}")
    until(lambda: tab.inner_text("#state").startswith("Computed"))
    assert tab.locator("#bars tbody tr").count() == 3
    assert "A" in (tab.get_attribute("#bars svg", "aria-label") or "")
    tab.keyboard.press("Control+s")
    until(lambda: tab.is_disabled("#save"))
    assert file.read_text(encoding="utf-8") == tab.input_value("#text")
    for _ in range(3):
        tab.click("#undo")
    until(lambda: tab.input_value("#text") == TEXT)
    until(lambda: tab.is_enabled("#save"))
    tab.click("#redo")
    has(tab, "[[sex, age]]")


def test_what_the_library_says_stands_where_it_belongs(opened):
    tab = opened[0]()
    tab.select_option("#shape", "mean")
    tab.click("#cell-0-1")
    until(lambda: "sex" in tab.inner_text("#refused"))
    assert tab.input_value("#text") == TEXT
    tab.fill("#text", TEXT.replace("{mu: 0.5}", "{mu: -1}"))
    until(lambda: "privacy" in tab.inner_text("#problem"))
    tab.fill("#name", "region")
    tab.fill("#values", "[n, s]")
    tab.press("#values", "Enter")
    has(tab, "  region: [n, s]\n")


def test_a_file_that_others_change_is_not_replaced_unseen(opened):
    page, file = opened
    one, other = page(), page()
    other.fill("#amount", "0.7")
    other.press("#amount", "Enter")
    has(other, "mu: 0.7")
    other.click("#save")
    until(lambda: "mu: 0.7" in file.read_text(encoding="utf-8"))
    one.fill("#amount", "0.9")
    one.press("#amount", "Enter")
    has(one, "mu: 0.9")
    one.click("#save")
    until(lambda: one.is_visible("#theirs"))
    assert "mu: 0.7" in file.read_text(encoding="utf-8")
    one.click("#theirs")
    has(one, "mu: 0.7")
    one.click("#undo")
    has(one, "mu: 0.9")
    until(lambda: one.is_enabled("#save"))
    one.click("#save")
    until(lambda: "mu: 0.9" in file.read_text(encoding="utf-8"))
    until(lambda: other.is_visible("#mine"))
    other.click("#mine")
    until(lambda: "mu: 0.7" in file.read_text(encoding="utf-8"))


def test_the_sheet_is_one_press_away(opened):
    tab = opened[0]()
    with tab.context.expect_page() as shown:
        tab.click("#sheet")
    assert "Plan of survey" in shown.value.inner_text("h1")
    assert "matrixdp release" in tab.inner_text("#commands")


def test_an_entry_gets_a_share_of_the_cost(opened):
    tab = opened[0]()
    tab.click("#cell-1-0")
    has(tab, "[[sex, age]]")
    tab.fill("#weight-0", "3")
    tab.press("#weight-0", "Tab")
    has(tab, "weight: 3")
    tab.fill("#share-0", "40")
    tab.press("#share-0", "Tab")
    has(tab, "budget_share: 0.4")
    until(lambda: "weight: 3" not in tab.input_value("#text"))
    until(lambda: tab.is_disabled("#weight-0"))
    until(lambda: tab.inner_text("#state").startswith("Computed"))
    until(lambda: "40% of cost" in tab.inner_text("#entries"))
    tab.fill("#share-0", "")
    tab.press("#share-0", "Tab")
    until(lambda: "budget_share" not in tab.input_value("#text"))


def computed(tab: Any) -> Any:
    return until(lambda: tab.inner_text("#state").startswith("Computed"))


def test_two_designs_stand_side_by_side(opened):
    tab = opened[0]()
    tab.click("#keep")
    until(lambda: tab.is_visible("#swap"))
    tab.fill("#amount", "0.05")
    tab.press("#amount", "Enter")
    has(tab, "mu: 0.05")
    computed(tab)
    tab.click("#cell-1-0")
    has(tab, "[[sex, age]]")
    computed(tab)
    both, rows = tab.inner_text("#both"), tab.locator("#bars tbody tr")
    assert "mu 0.5" in both
    assert "mu 0.05" in both
    # the difference is in words, for each table that both have
    assert rows.count() == 2
    assert rows.nth(0).locator("svg").count() == 2
    assert [rows.nth(0).locator("svg").nth(place).get_attribute("aria-label")[:5] for place in (0, 1)] == [
        "now: ",
        "kept:",
    ]
    assert rows.nth(0).locator("strong").inner_text().endswith("worse")
    assert "not in the kept" in rows.nth(1).inner_text()
    now = tab.input_value("#text")
    tab.click("#swap")
    until(lambda: tab.input_value("#text") == TEXT)
    until(lambda: rows.nth(0).locator("strong").inner_text().endswith("better"))
    computed(tab)
    assert "in the kept design alone" in rows.nth(1).inner_text()
    tab.click("#undo")
    until(lambda: tab.input_value("#text") == now)
    until(lambda: rows.nth(0).locator("strong").inner_text().endswith("worse"))
    tab.click("#redo")
    until(lambda: tab.input_value("#text") == TEXT)
    tab.click("#drop")
    until(lambda: not tab.locator("#bars strong").count())
    assert tab.inner_text("#both") == ""
    assert tab.evaluate("document.activeElement.id") == "keep"


def test_a_table_is_locked_by_its_cv(opened):
    tab = opened[0]()
    tab.fill("#cv-0", "15")
    tab.press("#cv-0", "Enter")
    has(tab, "targets: {sex: {cv: 0.15, for: {records_above: 200}}}")
    computed(tab)
    until(lambda: tab.inner_text("#locked-0").startswith("met with mu 0.0"))
    tab.fill("#records-0", "5")
    tab.press("#records-0", "Enter")
    has(tab, "{cv: 0.15, for: {records_above: 5}}")
    until(lambda: tab.inner_text("#locked-0") == "not met: see above")
    assert "times as large" in tab.inner_text("#unmet")
    assert tab.is_disabled("#release")
    # what is being written is not taken away by what is told meanwhile
    tab.fill("#cv-0", "70")
    time.sleep(5)
    assert tab.input_value("#cv-0") == "70"
    tab.press("#cv-0", "Enter")
    has(tab, "{cv: 0.7, for: {records_above: 5}}")
    until(lambda: tab.inner_text("#locked-0").startswith("met"))
    assert tab.inner_text("#unmet") == ""
    tab.fill("#cv-0", "")
    tab.press("#cv-0", "Enter")
    until(lambda: tab.input_value("#text") == TEXT)


def test_a_table_of_a_list_gets_an_entry_of_its_own(opened):
    page, file = opened
    file.write_text(TEXT.replace("[[sex]]", "[[sex], [age, sex]]"), encoding="utf-8")
    tab = page()
    assert tab.inner_text("#attribute-1-note") == "in years"
    tab.click("#cell-1-0")
    has(tab, "  - marginals: [[sex]]   # first\n  - marginals: [[sex, age]]\n")
    until(lambda: tab.get_attribute("#cell-1-0", "aria-pressed") == "true")
    tab.fill("#cv-1", "90")
    tab.press("#cv-1", "Enter")
    computed(tab)
    until(lambda: "the least that meets the targets" in tab.inner_text("#least"))
    tab.click("#attribute-1-gone")
    until(lambda: "Undo brings them back" in tab.inner_text("#said"))
    assert "targets" not in tab.input_value("#text")
    assert tab.locator("#entries li.entry").count() == 1
    tab.click("#undo")
    until(lambda: tab.inner_text("#said") == "")
    has(tab, "targets:")


def test_a_table_that_two_entries_ask_for_is_told(opened):
    page, file = opened
    file.write_text(TEXT.replace("[[sex]]", "[0, 1]"), encoding="utf-8")
    tab = page()
    tab.click("#cell-0-0")
    until(lambda: "entry 1 has this too" in tab.inner_text("#entries"))
    assert tab.locator("#bars").get_by_text("sex (2)").count() == 1


def test_text_and_commands_are_copied(opened):
    tab = opened[0](permissions=["clipboard-read", "clipboard-write"])
    for button, source in (("text", tab.input_value("#text")), ("commands", tab.inner_text("#commands"))):
        tab.click(f"#copy-{button}")
        until(lambda: tab.inner_text("#said") == "Copied.")
        copied = tab.evaluate("navigator.clipboard.readText()")
        assert copied.split() == source.split()
        tab.evaluate("document.getElementById('said').textContent = ''")


def test_of_two_pages_the_later_summary_counts_and_both_see_the_release(opened):
    page, file = opened
    file.with_name("people.csv").write_text("sex,age\nf,3\nm,4\nm,4\n", encoding="utf-8")
    text = TEXT.replace("  pay: {amount: [0, 100]}\n", "") + "data: people.csv\n"
    file.write_text(text, encoding="utf-8")
    one, other = page(), page()
    for tab in (one, other):
        tab.click("#release")
        until(lambda tab=tab: tab.is_visible("#checkout"))
        assert "nothing keeps account" in tab.inner_text("#summary")
    one.click("#confirm")
    until(lambda: "a later one replaced" in one.inner_text("#unreleased"))
    assert not file.with_name("survey-release").exists()
    other.click("#confirm")
    for tab in (other, one):
        until(lambda tab=tab: "Spent: mu 0.5" in tab.inner_text("#outcome"))
    one.click("#release")
    until(lambda: "found an earlier release" in one.inner_text("#unreleased"))
    # a file that is changed on the disk is said, and is not released
    file.write_text(text + "# theirs\n", encoding="utf-8")
    until(lambda: one.is_visible("#theirs"))
    assert one.is_disabled("#release")


@pytest.fixture
def example(tmp_path: Path) -> tuple[str, Any]:
    """Return the text of the bundled example with a ledger, which lies with its table beside the file."""
    shutil.copy("examples/randhie.parquet", tmp_path)
    text = Path("examples/randhie.yaml").read_text(encoding="utf-8")
    text = text.replace("delta: 1.0e-6}", "delta: 1.0e-6, ledger: health.ledger}")
    return text, mdp.Ledger.create(tmp_path / "health.ledger", "health", mdp.Budget(epsilon=2, delta=1e-5))


def test_a_release_is_made_from_the_page_and_spent_once(example, opened):
    text, ledger = example
    page, file = opened
    tab = page()
    tab.fill("#text", text)
    has(tab, "health.ledger")
    until(lambda: "coinsurance" in tab.inner_text("#attributes"))
    assert tab.is_disabled("#release")
    until(lambda: tab.inner_text("#state").startswith("Computed"), 3_000)
    assert tab.get_attribute("#release", "title") == "Save first"
    tab.click("#save")
    until(lambda: tab.is_enabled("#release"))
    tab.focus("#release")
    tab.keyboard.press("Enter")
    until(lambda: tab.is_visible("#checkout"))
    summary = tab.inner_text("#summary")
    for words in (
        "epsilon 1, delta 1e-06",
        "randhie.parquet",
        "each single record",
        "survey-release",
        "health: ",
    ):
        assert words in summary
    # nobody confirms by a press too many: the button is the third stop
    assert tab.evaluate("document.activeElement.id") == "spend"
    tab.keyboard.press("Enter")
    tab.keyboard.press("Escape")
    until(lambda: not tab.is_visible("#checkout"))
    until(lambda: tab.evaluate("document.activeElement.id") == "release")
    assert ledger.entries == ()
    tab.keyboard.press("Enter")
    until(lambda: tab.is_visible("#checkout"))
    for width in (390, 1440):
        tab.set_viewport_size({"width": width, "height": 850})
        reads(tab, width)
    tab.locator("#confirm").dblclick()
    until(lambda: not tab.is_visible("#checkout"))
    until(lambda: tab.evaluate("document.activeElement.id") == "released")
    tab.reload()
    until(lambda: tab.is_visible("#released"))
    until(lambda: "Spent: epsilon 1" in tab.inner_text("#outcome"), 3_000)
    reads(tab, 1440)
    assert [one.state for one in ledger.entries] == ["released"]
    with tab.context.expect_page(timeout=240_000) as shown:
        tab.click("#report")
    assert "Health care use" in shown.value.inner_text("h1", timeout=240_000)
    until(lambda: tab.is_enabled("#release"), 3_000)
    tab.click("#release")
    until(lambda: "running again spends another" in tab.inner_text("#unreleased"))
    assert len(ledger.entries) == 1
    assert mdp.load_release(file.with_name("survey-release")).private


def test_one_failure_does_not_end_the_page(opened):
    page, file = opened
    tab = page()
    file.write_text(TEXT + "# theirs\n", encoding="utf-8")
    until(lambda: tab.query_selector("#theirs"))
    tab.route("**/design", lambda route: route.fulfill(body="no JSON"), times=1)
    tab.evaluate("document.getElementById('theirs').click()")
    until(lambda: "JSON" in tab.inner_text("#said"))
    until(lambda: tab.query_selector("#theirs"))
    tab.click("#theirs")
    has(tab, "# theirs")


def test_what_was_just_typed_is_saved_and_saving_twice_is_no_conflict(opened):
    page, file = opened
    tab = page()
    tab.focus("#text")
    tab.keyboard.press("Control+End")
    tab.keyboard.type("# typed")
    tab.keyboard.press("Control+s")
    tab.keyboard.press("Control+s")
    until(lambda: tab.inner_text("#said") == "Saved.")
    assert "# typed" in file.read_text(encoding="utf-8")
    time.sleep(0.5)
    assert not tab.query_selector("#theirs")
