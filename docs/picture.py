"""Draw the page in the README: ``python docs/picture.py`` writes docs/images/page.png.

It has the head and a table of what ``matrixdp report`` writes. The bundled table is released anew, with
fresh noise; it takes a Chromium (``MATRIXDP_BROWSER`` names one).
"""

import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import matrixdp as mdp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "page.png"
_SIZE = {"width": 1180, "height": 1180}
_TABLE = "Health by Physical limitation"
#: A page has few colours; so many keep the file small.
_COLOURS = 48
#: Between the head and the table, in pixels.
_GAP = 28


def main() -> None:
    """Write the picture."""
    browser = os.environ.get("MATRIXDP_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("no Chromium: name one by MATRIXDP_BROWSER")
    with tempfile.TemporaryDirectory() as parent, sync_playwright() as driver:
        mdp.release(ROOT / "examples" / "randhie.yaml", f"{parent}/out")
        page = Path(parent) / "page.html"
        page.write_text(mdp.report_release(f"{parent}/out"), encoding="utf-8")
        opened = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        tab = opened.new_page(viewport=_SIZE, color_scheme="light")
        tab.goto(page.as_uri())
        section = tab.locator("section.group", has=tab.locator(f"table[data-name='{_TABLE}']"))
        parts = [Image.open(io.BytesIO(one.screenshot())) for one in (tab.locator("header"), section)]
        opened.close()
    head, table = parts
    whole = Image.new("RGB", (_SIZE["width"], head.height + _GAP + table.height), "white")
    for part, top in ((head, 0), (table, head.height + _GAP)):
        whole.paste(part, ((whole.width - part.width) // 2, top))
    whole.quantize(_COLOURS, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
