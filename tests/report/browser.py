"""Where a browser is, if there is one that can be driven."""

import importlib.util
import os
import shutil

__all__ = ["BROWSER", "OPTIONS"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MODULES = ("playwright", "axe_playwright_python")
_FOUND = os.environ.get("MATRIXDP_BROWSER") or next((p for name in _NAMES if (p := shutil.which(name))), None)
#: Path of the browser; None where it, or what drives it, is not installed.
BROWSER = _FOUND if all(importlib.util.find_spec(name) for name in _MODULES) else None
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
