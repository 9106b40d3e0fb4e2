"""Write the tutorial as a notebook: ``python docs/notebook.py`` writes examples/tutorial.ipynb.

The notebook has no outputs, and lies beside the table that it reads.
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
NOTEBOOK = ROOT / "examples" / "tutorial.ipynb"

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!\w+:)(?:\.\./examples/)?([^)]*)\)")


def notebook(page: str) -> str:
    """Return the notebook that a page's text and blocks of Python are."""
    cells: list[dict[str, object]] = []
    pieces = _BLOCK.split(page)
    for place, piece in enumerate(pieces):
        code = place % 2 == 1
        text = piece.strip()
        if not text:
            continue
        text = text.replace('"examples/', '"') if code else _LINK.sub(_from_examples, text)
        cell: dict[str, object] = {"cell_type": "code" if code else "markdown", "id": f"cell-{len(cells)}"}
        cell |= {"metadata": {}, "source": text.splitlines(keepends=True)}
        cells.append(cell | ({"execution_count": None, "outputs": []} if code else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _from_examples(found: re.Match[str]) -> str:
    """Return a link of the page as it is from the folder of the notebook."""
    beside = "../examples/" in found.group(0)
    return f"]({found.group(1)})" if beside else f"](../docs/{found.group(1)})"


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
