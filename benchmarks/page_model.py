"""Models of releases beside simple repairs, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from private_pgm import COMPONENTS, RATES
from values import plain, table

__all__ = ["model_page"]


def _listed(values: Sequence[float]) -> str:
    return f"{', '.join(map(str, values[:-1]))} and {values[-1]}"


def model_page(parts: list[dict[str, Any]]) -> list[str]:
    """Return one table for each release."""
    lines = [
        "# Models",
        "",
        "Answers of a model of a release ([how](../mathematics.md)) against the true ones, as ratios to the "
        "error of the unbiased answers of the same release: root mean squared, mean absolute and largest "
        "error over all queries of the workload. One draw of seeded noise each, delta 1e-6; every default is "
        "that of the product. *Clipped at 0* and *each marginal projected* (the nearest non-negative table "
        "with the released total; other queries as they are) repair one table after the other, and leave "
        "tables that do not agree; *local non-negativity* (the marginals of the least loss, weighted by "
        "the noise, that agree with one another and are nowhere negative, the total fixed; B. Mullins et "
        "al., NeurIPS 2024) is for what was measured of marginals. These three are here for comparison, "
        "and are not offered. Rows of *mbi* are models that private-pgm's library fits to the same noisy "
        "measurements, in double precision and with the total that the mixture uses. Of its mixtures of "
        "products those settings are shown that come closest to the *true* tables, among "
        f"{_listed(COMPONENTS)} components and learning rates of {_listed(RATES)} (Adam, falling along a "
        "cosine); the product chooses its own from the noisy answers alone. A Markov random field is fitted "
        "where its junction tree fits into memory.",
        "",
    ]
    for part in parts:
        figures, machine = part["figures"], part["machine"]
        rows = [
            [name, plain(row["rmse"], 3), plain(row["l1"], 3), plain(row["largest"], 3)]
            for name, row in figures["table"].items()
        ]
        tests = figures["tests"]
        others = figures.get("other_cpu_seconds", {}).items()
        settings = figures.get("settings", {})
        took = "".join(
            f" {name if name in settings else name[0].upper() + name[1:]} took {plain(own, 2)}"
            f"{f' ({settings[name]})' if name in settings else ''}."
            for name, own in others
        )
        lines += [
            f"## {part['claim']}",
            "",
            f"{figures['queries']:,} queries; the unbiased answers have an RMSE of "
            f"{plain(figures['unbiased_rmse'])}. {figures['fits']} fits of {figures['components']} "
            f"components and {figures['steps']:,} steps took {figures['fit_cpu_seconds']:.0f} processor "
            f"seconds, the search for their number included; the process{', with mbi,' if settings else ''} "
            f"held at most {part['peak_mb']:,.0f} MB. The fit was "
            f"{'accepted' if tests['accepted'] else 'rejected'}: {tests['loss']:,.0f} is left, "
            f"and noise explains {tests['limit']:,.0f}.{took} {machine['date']}, {machine['processor']}.",
            "",
            *table(["answers", "RMSE", "mean absolute", "largest"], rows),
            "",
        ]
    return lines[:-1]
