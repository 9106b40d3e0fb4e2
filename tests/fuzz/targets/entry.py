"""Entries as mappings: valid ones with a few values, keys or items changed, on a domain."""

from pathlib import Path

from matrixdp.queries import Workload
from matrixdp.specification import entry_from_spec, load_specification
from tests.fuzz.documents import RELEASED, entries, keys, write_arrays
from tests.fuzz.oracle import Case
from tests.fuzz.recipe import Recipe, mutated


def seeds() -> list[bytes]:
    """Return recipes that leave each entry as it is."""
    return [bytes([place]) for place in range(len(entries()))]


def opened(folder: Path) -> Case:
    """Return what reads one and expands it."""
    write_arrays(folder)
    documents = entries()
    domain = load_specification(RELEASED).domain

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        entry = entry_from_spec(mutated(recipe.choice(documents), recipe, keys()), folder)
        for group in Workload(domain, entry):
            if group.queries < 0:
                raise AssertionError(group.name)

    return case
