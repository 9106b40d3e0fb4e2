"""Folders of models: any file changed, and the checksums that list them right again or not."""

import json
from pathlib import Path

import numpy as np

from matrixdp.model import Model
from matrixdp.model.mixture import Mixture
from matrixdp.releases import Release, load_release
from matrixdp.storage.archive import entry
from tests.fuzz.archives import KEYS, altered, members_of
from tests.fuzz.documents import released
from tests.fuzz.forms import RECORD_KEYS
from tests.fuzz.oracle import Case, Finding
from tests.fuzz.recipe import Recipe, mutated

_KEYS = (*KEYS, *RECORD_KEYS)


def a_model(release: Release) -> Model:
    """Return a model of a release, of two products that nobody fitted."""
    sizes = {attribute.name: attribute.size for attribute in release.domain}
    factors = {name: np.full((2, size), 1 / size) for name, size in sizes.items()}
    tables = Mixture(release.domain, 12.5, np.array([0.25, 0.75]), factors)
    made = {"method": "mixture", "seed": 1, "accepted": True, "tests": {"loss": 1.0}}
    return Model(release.measurement, release.workload, tables, made)


def seeds() -> list[bytes]:
    """Return recipes that leave all as it is, and that change each file."""
    return [b"", *(bytes([place, 200, 1, 7]) for place in range(8))]


def opened(folder: Path) -> Case:
    """Return what loads one: its answers are not negative, and its records are of the domain."""
    out = a_model(load_release(released(folder)[0])).save(folder / "model")
    originals = {path.name: path.read_bytes() for path in out.iterdir()}
    asked = {"marginals": [0, 1]}

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        way, files = recipe.below(5), dict(originals)
        if way == 1:
            files["model.json"] = json.dumps(mutated(json.loads(files["model.json"]), recipe, _KEYS)).encode()
        elif way in (2, 3):
            name = "model.mdp" if way == 2 else "measurement.mdp"
            files[name] = altered(members_of(files[name]), recipe)
        elif way == 4:
            name = recipe.choice(sorted(files))
            files[name] = recipe.rest()
        for name, content in files.items():
            (out / name).write_bytes(content)
        if way in (2, 3, 4) and recipe.below(2):
            record = json.loads(originals["model.json"])
            record["files"] = {name: entry(out / name) for name in record["files"]}
            (out / "model.json").write_text(json.dumps(record))
        model = Model.load(out)
        modelled = model.answer(asked).column("modelled").to_numpy()
        if not (np.isfinite(modelled).all() and (modelled >= 0).all()):
            raise Finding("modelled answers that are negative or not finite")
        if model.records(3).num_rows != 3:
            raise Finding("another number of records than was asked for")

    return case
