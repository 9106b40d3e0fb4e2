"""The page in a browser: it asks for nothing, reads well everywhere, and can be worked without a mouse."""

import base64
import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from matrixdp.report import report_release
from tests.pages import HOSTILE
from tests.report.browser import BROWSER, OPTIONS

pytestmark = pytest.mark.slow
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 812}


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
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [address.partition("#")[0]]
    context.close()


@pytest.fixture(scope="module")
def publication(published: Path, boundaries: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "survey.html"
    maps = {"area": f"{boundaries}:NAME"}
    path.write_text(report_release(published, maps=maps, suppress_above=0.33), encoding="utf-8")
    return path.as_uri()


def overlapping(tab: Any, picture: str) -> list[list[str]]:
    """Return pairs of texts of a picture that cover one another, and texts that it cuts."""
    tab.goto("about:blank")
    content = base64.b64decode(picture.partition(",")[2]).decode()
    tab.set_content(content[content.index("<svg") :])
    found: list[list[str]] = tab.evaluate("""() => {
      const whole = document.querySelector("svg").getBoundingClientRect(), found = [];
      const all = [...document.querySelectorAll("svg text")].filter((own) => own.textContent.trim());
      const boxes = all.map((own) => own.getBoundingClientRect());
      all.forEach((own, i) => {
        const a = boxes[i];
        if (a.left < whole.left - 1 || a.right > whole.right + 1 || a.bottom > whole.bottom + 1)
          found.push([own.textContent, "cut"]);
        for (let j = 0; j < i; j++) {
          const b = boxes[j], across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (across > 1 && down > 3) found.push([own.textContent, all[j].textContent]);
        }
      });
      return found;
    }""")
    return found


@pytest.mark.parametrize(
    ("of", "scheme", "viewport"),
    [
        ("hostile", "light", PHONE),
        ("hostile", "dark", WIDE),
        *(("publication", scheme, size) for scheme in ("light", "dark") for size in (PHONE, WIDE)),
    ],
)
def test_it_is_clean_for_everybody(browser, address, publication, of, scheme, viewport):
    place = address if of == "hostile" else publication
    with opened(browser, place, color_scheme=scheme, viewport=viewport) as tab:
        for details in tab.locator("details").all():
            details.evaluate("own => own.open = true")
        found = Axe().run(tab).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        assert tab.evaluate("document.documentElement.scrollWidth") == viewport["width"]
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        drawn = tab.locator("figure img").evaluate_all("all => all.map(own => [own.currentSrc, own.width])")
        assert len(drawn) >= 9
        assert all(300 < width <= min(viewport["width"] - 32, 704) for _, width in drawn)
        assert tab.evaluate("""() => {
          const own = document.querySelector("figure img"), canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [own.naturalWidth, own.naturalHeight];
          const context = canvas.getContext("2d");
          context.drawImage(own, 0, 0);
          return context.getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value);
        }""")
    if scheme == "light":
        tab = browser.new_page()
        assert {
            k: found for k, (picture, _) in enumerate(drawn) if (found := overlapping(tab, picture))
        } == {}
        tab.close()


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
        box.get_by_label("Search").fill("")
        estimate = table.get_by_role("button", name="estimate")
        for order, sign in (("ascending", 1), ("descending", -1)):
            estimate.click()
            assert table.get_by_role("columnheader", name="estimate").get_attribute("aria-sort") == order
            shown = [
                float(text.split()[0].replace(",", ""))
                for text in table.locator("tbody td:nth-child(3)").all_inner_texts()
            ]
            assert [sign * value for value in shown] == sorted(sign * value for value in shown)
        table.get_by_role("button", name="age").click()  # ranges by their order, not as text
        ages = table.locator("tbody th").all_inner_texts()
        assert ages[::2] == ["0", *(f"0-{last}" for last in range(1, 12))]


def test_hostile_names_reach_the_download_as_they_are(browser, address):
    with opened(browser, address, java_script_enabled=False) as tab:
        section = tab.locator("section.group", has=tab.locator("table[data-name='<b>bold</b>']"))
        with tab.expect_download() as waiting:
            section.get_by_role("link", name="Download CSV").click()
        assert waiting.value.suggested_filename == "b-bold-b.csv"
        with Path(waiting.value.path()).open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        assert head == ["name", "old", "estimate", "stddev", "lower", "upper", "quality"]
        assert [row[0] for row in rows[::2]] == HOSTILE


def test_it_is_worked_by_keyboard(browser, address):
    with opened(browser, address) as tab:
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
        tab.keyboard.press("Enter")
        assert tab.evaluate("location.hash") == "#content"
        for words in ("How it came about", "What is assumed"):
            tab.locator("summary", has_text=words).focus()
            tab.keyboard.press("Enter")
        assert tab.get_by_text("random number generator is sound").is_visible()
        section = tab.locator("section.group", has=tab.locator("table[data-name='<b>bold</b>']"))
        section.locator("summary").last.focus()
        tab.keyboard.press("Enter")
        button = tab.locator("table[data-name='<b>bold</b>']").get_by_role("button", name="estimate")
        button.focus()
        tab.keyboard.press("Space")
        head = tab.locator("table[data-name='<b>bold</b>'] th[aria-sort]")
        assert head.get_attribute("aria-sort") == "ascending"


def test_it_reads_without_scripts(browser, address):
    with opened(browser, address, java_script_enabled=False) as tab:
        assert tab.locator("table").first.is_visible()
        assert tab.locator("section.group strong").first.is_visible()
        assert tab.get_by_role("button").count() == 0


def test_it_prints(browser, address):
    with opened(browser, address, color_scheme="dark") as tab:
        tab.emulate_media(media="print")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not tab.locator(".tools").first.is_visible()
        assert tab.locator("figure img").first.is_visible()
        assert tab.pdf().startswith(b"%PDF")


def test_letters_of_quality_stay_in_sight_on_a_phone(browser, publication):
    with opened(browser, publication, viewport=PHONE) as tab:
        tables = tab.locator("section.group table.answers").all()
        assert len(tables) > 5
        for table in tables:
            table.evaluate("own => own.closest('details').open = true")
            box = table.locator("tbody tr").first.locator("td").last.bounding_box()
            assert box["x"] + box["width"] <= PHONE["width"]
            if (heads := table.locator("thead th.n")).count() == 1:
                continue  # no letters
            estimate = heads.first.bounding_box()
            assert estimate["x"] + estimate["width"] <= box["x"]  # and do not cover the figure


def test_no_digit_is_cut_on_a_phone(browser, publication):
    with opened(browser, publication, viewport=PHONE) as tab:
        for details in tab.locator("section.group details").all():
            details.evaluate("own => own.open = true")
        cut = tab.locator("section.group td").evaluate_all(
            "all => all.filter((own) => own.scrollWidth > own.clientWidth).map((own) => own.textContent)"
        )
        assert cut == []


def test_a_link_to_a_row_opens_its_table(browser, publication):
    with opened(browser, f"{publication}#area-by-old.lake-3-yes") as tab:
        row = tab.locator("tr:target")
        assert row.is_visible()
        link = row.get_by_role("link")
        assert str(link.get_attribute("href")).endswith("#area-by-old.lake-3-yes")
