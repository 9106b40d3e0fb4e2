"""The page in a browser: by keyboard alone, at both widths, light and dark, asking nobody but its program."""

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

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


def until(found: Any) -> Any:
    for _ in range(300):
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError("it never happened")


def has(tab: Any, text: str) -> Any:
    return until(lambda: text in tab.input_value("#text"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_it_reads_well_everywhere(opened, width, scheme):
    tab = opened[0](viewport={"width": width, "height": 850}, color_scheme=scheme)
    tab.fill("#attribute-0", "[f, f]")
    until(lambda: tab.inner_text("#attribute-0-wrong"))
    assert tab.get_attribute("#attribute-0", "aria-invalid") == "true"
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(tab).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


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
