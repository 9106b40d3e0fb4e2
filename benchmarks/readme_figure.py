"""The figure of the README and of the landing page, drawn from docs/benchmarks/results.json.

python benchmarks/readme_figure.py    writes docs/images/adult-error.svg
"""

from __future__ import annotations

import json
import math
from html import escape
from pathlib import Path

from claims import Results

from matrixdp import Budget
from matrixdp.noise import GAUSSIAN

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "benchmarks" / "results.json"
FIGURE = ROOT / "docs" / "images" / "adult-error.svg"
#: Where the axis begins and ends, and its ticks, in records.
_AXIS, _TICKS = (60, 1600), (60, 100, 200, 500, 1000)
_LEFT, _RIGHT, _TOP, _STEP, _WIDTH = 206, 660, 66, 32, 720


def rows(results: Results) -> tuple[list[tuple[str, float]], float]:
    """Return the errors at (1, 1e-6), best last, and the certified lower bound on every Gaussian strategy."""
    own, printed = "Adult, 2-way prefix-marginals", "Adult 2-way"
    unit = 1 / math.sqrt(float(GAUSSIAN.cost(Budget(epsilon=1, delta=1e-6)).value))  # the same at mu = 1
    ours = float(results.value(f"ours; table-7; {own}; residual"))
    plain = float(results.value(f"printed; table-7; {own}; Workload"))
    peers = {
        name: unit * float(results.value(f"printed; hybrid; {printed}; {name}"))
        for name in ("HDMM", "ResidualPlanner+", "QuerySmasher")
    }
    bound = ours / (1 + float(results.value(f"row; gaps; {printed}; gap")))
    return [("noise on each query", plain), *peers.items(), ("matrixdp", ours)], bound


def drawn(errors: list[tuple[str, float]], bound: float) -> str:
    """Return the figure: a point for each error on a logarithmic axis."""
    low, high = map(math.log, _AXIS)

    def across(error: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (math.log(error) - low) / (high - low)

    bottom = _TOP + _STEP * len(errors)
    height = bottom + 56
    parts = [
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="16" y="24" font-size="15" font-weight="600">Error of 148,137 counts over the Adult census '
        "table</text>",
        '<text x="16" y="44" fill="#555555">root mean squared error in records (log scale), '
        "(1, 10⁻⁶)-differential privacy</text>",
    ]
    for tick in _TICKS:
        at = across(tick)
        parts.append(f'<path d="M{at:.1f} {_TOP - 6}V{bottom}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:,}</text>')
    at = across(bound)
    parts.append(f'<path d="M{at:.1f} {_TOP - 6}V{bottom}" stroke="#0072b2" stroke-dasharray="4 3"/>')
    parts.append(
        f'<text x="{at:.1f}" y="{bottom + 40}" fill="#0072b2" font-size="12">'
        f"dashed: {bound:.1f}, the certified lower bound for Gaussian noise</text>"
    )
    for row, (name, error) in enumerate(errors):
        y = _TOP + _STEP * row + _STEP // 2 - 4
        colour, weight = ("#0072b2", "600") if name == "matrixdp" else ("#666666", "400")
        parts.append(
            f'<text x="{_LEFT - 16}" y="{y + 5}" text-anchor="end" font-weight="{weight}">'
            f"{escape(name)}</text>"
        )
        parts.append(f'<path d="M{_LEFT - 4} {y}H{across(error):.1f}" stroke="{colour}" opacity="0.35"/>')
        parts.append(f'<circle cx="{across(error):.1f}" cy="{y}" r="6" fill="{colour}"/>')
        text = f"{error:,.0f}" if error >= 1000 else f"{error:.1f}"
        parts.append(
            f'<text x="{across(error) + 12:.1f}" y="{y + 5}" font-weight="{weight}" '
            f'fill="{colour}">{text}</text>'
        )
    told = ", ".join(f"{name} {error:,.1f}" for name, error in errors)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="13" fill="#1a1a1a" role="img">\n'
        f"<title>Error on Adult: {escape(told)}</title>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def main() -> None:
    results = Results(json.loads(RESULTS.read_text(encoding="utf-8"))["parts"])
    FIGURE.write_text(drawn(*rows(results)), encoding="utf-8")


if __name__ == "__main__":
    main()
