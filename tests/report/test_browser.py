"""The page in a browser: it asks for nothing, reads well everywhere, and can be worked without a mouse."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from tests.report.browser import BROWSER, OPTIONS

pytestmark = pytest.mark.slow
WIDE, PHONE = {"width": 1000, "height": 900}, {"width": 375, "height": 812}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=OPTIONS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address(page: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "people.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


@contextmanager
def opened(browser: Any, address: str, **options: Any) -> Iterator[Any]:
    """Open the page: it may write nothing to the console, and ask for nothing but itself."""
    context = browser.new_context(**{"viewport": WIDE, **options})
    tab = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(address)
    yield tab
    assert said == []
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [address]
    context.close()


@pytest.mark.parametrize(("scheme", "viewport"), [("light", PHONE), ("dark", WIDE)])
def test_it_is_clean_for_everybody(browser, address, scheme, viewport):
    with opened(browser, address, color_scheme=scheme, viewport=viewport) as tab:
        for details in tab.locator("details").all():
            details.evaluate("own => own.open = true")
        found = Axe().run(tab).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        assert tab.evaluate("document.documentElement.scrollWidth") == viewport["width"]
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        sizes = tab.locator("figure img").evaluate_all("all => all.map(own => own.naturalWidth)")
        assert len(sizes) == 9
        assert min(sizes) > 100  # every picture was drawn


def test_tables_are_searched_sorted_and_downloaded(browser, address):
    with opened(browser, address) as tab:
        box = tab.locator("details", has=tab.locator("table[data-name='age CDF by old']"))
        box.locator("summary").click()
        table = box.locator("table")
        rows = table.locator("tbody tr:visible")
        assert rows.count() == 24
        box.get_by_label("Search").fill("YES 1")
        assert box.get_by_role("status").inner_text().endswith("of 24 rows")
        assert all("yes" in text and "1" in text for text in rows.all_inner_texts())
        with tab.expect_download() as waiting:
            box.get_by_role("button", name="Download CSV: age CDF by old").click()
        assert waiting.value.suggested_filename == "age-CDF-by-old.csv"
        lines = Path(waiting.value.path()).read_text(encoding="utf-8-sig").split("\n")
        assert lines[0] == "age,old,estimate,standard error,95% from,to,quality"
        assert len(lines) - 2 == rows.count()
        box.get_by_label("Search").fill("")
        estimate = table.get_by_role("button", name="estimate")
        for order, sign in (("ascending", 1), ("descending", -1)):
            estimate.click()
            assert table.get_by_role("columnheader", name="estimate").get_attribute("aria-sort") == order
            shown = [
                float(text.replace(",", ""))
                for text in table.locator("tbody td:nth-child(3)").all_inner_texts()
            ]
            assert [sign * value for value in shown] == sorted(sign * value for value in shown)
        table.get_by_role("button", name="age").click()  # ranges by their order, not as text
        ages = table.locator("tbody th").all_inner_texts()
        assert ages[::2] == ["0", *(f"0-{last}" for last in range(1, 12))]


def test_hostile_names_reach_the_download_as_they_are(browser, address):
    with opened(browser, address) as tab:
        box = tab.locator("details", has=tab.locator("table[data-name='<b>bold</b>']"))
        with tab.expect_download() as waiting:
            box.get_by_role("button", name="Download").click()
        text = Path(waiting.value.path()).read_text(encoding="utf-8-sig")
        assert '"""  onload=' not in text
        assert '""" onload=""alert(2)",no,' in text
        assert "<script>alert(1)</script>,no," in text


def test_it_is_worked_by_keyboard(browser, address):
    with opened(browser, address) as tab:
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
        tab.keyboard.press("Enter")
        assert tab.evaluate("location.hash") == "#content"
        summary = tab.locator("summary", has_text="What is assumed")
        summary.focus()
        tab.keyboard.press("Enter")
        assert tab.get_by_text("random number generator is sound").is_visible()
        button = tab.locator("table[data-name='<b>bold</b>']").get_by_role("button", name="estimate")
        button.focus()
        tab.keyboard.press("Space")
        head = tab.locator("table[data-name='<b>bold</b>'] th[aria-sort]")
        assert head.get_attribute("aria-sort") == "ascending"


def test_it_reads_without_scripts(browser, address):
    with opened(browser, address, java_script_enabled=False) as tab:
        assert tab.locator("table").first.is_visible()
        assert tab.locator("table[data-name='total'] td").first.is_visible()
        assert tab.get_by_role("button").count() == 0


def test_it_prints(browser, address):
    with opened(browser, address, color_scheme="dark") as tab:
        tab.emulate_media(media="print")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not tab.locator(".tools").first.is_visible()
        assert tab.locator("figure img").first.is_visible()
        assert tab.pdf().startswith(b"%PDF")
