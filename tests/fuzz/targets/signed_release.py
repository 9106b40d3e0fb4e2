"""Signed releases with any file changed: verified without the data, and never found to hold."""

import json
from pathlib import Path

from matrixdp.releases import SigningKey, make_keys, sign_release
from matrixdp.verification import verify_release
from tests.fuzz.archives import KEYS, altered, members_of
from tests.fuzz.documents import released
from tests.fuzz.forms import RECORD_KEYS, overwritten
from tests.fuzz.oracle import Case, Finding
from tests.fuzz.recipe import Recipe, mutated

_KEYS = (*KEYS, *RECORD_KEYS)


def seeds() -> list[bytes]:
    """Return recipes that change a byte of each file, the record, or the measurement."""
    return [bytes([place, 200, 1, 7]) for place in range(12)]


def opened(folder: Path) -> Case:
    """Return what verifies one: with the key, what was changed never holds."""
    out = released(folder)[1]
    private, public = make_keys(folder / "key")
    sign_release(out, SigningKey.load(private))
    originals = {path.name: path.read_bytes() for path in out.iterdir()}
    public_key = public.read_bytes()
    names = sorted(originals)
    if not verify_release(out, key=public).holds:
        raise Finding("a release that does not hold before anything is changed")

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        way = recipe.below(8)
        files = dict(originals)
        if way == 0:
            written = mutated(json.loads(files["release.json"]), recipe, _KEYS)
            files["release.json"] = json.dumps(written).encode()
        elif way == 1:
            files["measurement.mdp"] = altered(members_of(files["measurement.mdp"]), recipe)
        else:
            name = recipe.choice(names)
            files[name] = overwritten(files[name], recipe, 1 + recipe.below(3))
        public.write_bytes(recipe.rest() if way == 7 else public_key)
        for name, written_bytes in files.items():
            (out / name).write_bytes(written_bytes)
        changed = files != originals
        if verify_release(out, key=public).holds and changed and way != 7:
            same = files["release.json"] == originals["release.json"]
            raise Finding(f"a changed release that holds; its record is {'the same' if same else 'changed'}")

    return case
