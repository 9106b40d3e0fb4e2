"""Write the tutorial as a notebook: ``python docs/notebook.py`` writes examples/tutorial.ipynb.

Its outputs are those that the page shows. It lies beside the table that it reads.
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
NOTEBOOK = ROOT / "examples" / "tutorial.ipynb"

#: A block of Python, with the output that follows it.
_BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!\w+:)(?:\.\./examples/)?([^)]*)\)")


def notebook(page: str) -> str:
    """Return the notebook that a page's text, blocks of Python and their outputs are."""
    cells: list[dict[str, object]] = []
    texts, codes, shown = (_BLOCK.split(page)[start::3] for start in range(3))
    for place, text in enumerate(texts):
        if text.strip():
            text = _LINK.sub(_from_examples, text).replace("`examples/", "`")
            cells.append(_cell(len(cells), "markdown", text))
        if (count := place + 1) <= len(codes):
            code = codes[place].replace('"examples/', '"')
            outputs = _outputs(code, count, shown[place])
            cells.append(_cell(len(cells), "code", code, execution_count=count, outputs=outputs))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _cell(place: int, kind: str, text: str, **more: object) -> dict[str, object]:
    source = text.strip().splitlines(keepends=True)
    return {"cell_type": kind, "id": f"cell-{place}", "metadata": {}, "source": source, **more}


def _outputs(code: str, count: int, text: str | None) -> list[dict[str, object]]:
    """Return what a cell shows: what it prints, else the value of its last expression."""
    if text is None:
        return []
    lines = text.rstrip("\n").splitlines(keepends=True)
    if "print(" in code:
        return [{"output_type": "stream", "name": "stdout", "text": lines}]
    data = {"text/plain": lines}
    return [{"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}}]


def _from_examples(found: re.Match[str]) -> str:
    """Return a link of the page as it is from the folder of the notebook."""
    beside = "../examples/" in found.group(0)
    return f"]({found.group(1)})" if beside else f"](../docs/{found.group(1)})"


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
