"""Specifications as mappings: valid ones with a few values, keys or items changed."""

import json
from pathlib import Path

from matrixdp.cli.forecast import forecast
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.specification import load_specification, parse_yaml
from tests.fuzz.documents import SPECIFICATIONS, keys, write_arrays
from tests.fuzz.oracle import Case, Finding
from tests.fuzz.recipe import Recipe, mutated


def seeds() -> list[bytes]:
    """Return recipes that leave each specification as it is."""
    return [bytes([place]) for place in range(len(SPECIFICATIONS))]


def opened(folder: Path) -> Case:
    """Return what reads one; what is read is written down and read again, to the same."""
    write_arrays(folder)
    documents = [parse_yaml(text).value for text in SPECIFICATIONS]

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        document = mutated(recipe.choice(documents), recipe, keys())
        if not isinstance(document, dict):
            return
        written = load_specification(document, base_path=folder)
        forecast(written.workload, 10**6, (GAUSSIAN, LAPLACE))
        text = json.dumps(written.document, allow_nan=False)
        if len(text) > 20_000:
            return
        again = load_specification(json.loads(text), base_path=folder)
        if json.dumps(again.document) != text:
            raise Finding("a specification that is another one when it is read again")

    return case
