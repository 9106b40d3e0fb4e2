"""Figures of a paper that are no errors of mechanisms: sensitivities, coefficients, eigenvalues.

python benchmarks/quantities.py matrix-mechanism
"""

from __future__ import annotations

import argparse
from typing import Any

from cells import attempt, warm_up
from harness import emit
from published import PAPERS

#: Seconds of processor time for each.
_LIMIT = 60.0


def main() -> None:
    warm_up()
    known = {paper.name: paper for paper in PAPERS if paper.quantities}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paper", choices=sorted(known))
    rows: list[dict[str, Any]] = []
    for quantity in known[parser.parse_args().paper].quantities:
        ours = quantity.ours
        found = attempt(lambda ours=ours: {"ours": ours()}, _LIMIT)  # type: ignore[misc]
        rows.append({"what": quantity.what, "printed": quantity.printed} | found)
        emit({"rows": rows})


if __name__ == "__main__":
    main()
