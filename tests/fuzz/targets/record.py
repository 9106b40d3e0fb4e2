"""Folders of releases whose release.json, or measurement with a checksum that fits, is changed."""

import hashlib
import json
from pathlib import Path
from zlib import crc32

from matrixdp.releases import load_release
from tests.fuzz.archives import KEYS, altered, members_of
from tests.fuzz.documents import released, releases
from tests.fuzz.forms import RECORD_KEYS, as_they_are, finite_answers
from tests.fuzz.oracle import Case, Finding
from tests.fuzz.recipe import Recipe, mutated

_KEYS = (*KEYS, *RECORD_KEYS)


def seeds() -> list[bytes]:
    """Return a record, and recipes that leave each as it is."""
    return as_they_are(len(releases()), [releases()[0]["release.json"]])


def opened(folder: Path) -> Case:
    """Return what loads one: its confidence is one, and (seen in one of eight) its answers are finite."""
    folders = released(folder)
    records = [json.loads((path / "release.json").read_bytes()) for path in folders]
    measurements = [(path / "measurement.mdp").read_bytes() for path in folders]
    originals = [members_of(measurement) for measurement in measurements]

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        way = recipe.below(256)
        place = 0 if way == 0 else recipe.below(len(folders))
        record, path = folders[place] / "release.json", folders[place] / "measurement.mdp"
        if way == 0:
            path.write_bytes(measurements[place])
            record.write_bytes(recipe.rest())
        else:
            written = records[place]
            measurement = measurements[place] if way % 4 else altered(originals[place], recipe)
            if way % 4 == 0:
                written = json.loads(json.dumps(written))
                written["files"]["measurement.mdp"]["sha256"] = hashlib.sha256(measurement).hexdigest()
            else:
                written = mutated(written, recipe, _KEYS)
            path.write_bytes(measurement)
            record.write_text(json.dumps(written))
        release = load_release(folders[place])
        if not 0 < release.confidence < 1:
            raise Finding(f"a confidence of {release.confidence}")
        if crc32(data) % 8 == 0 and release.workload.queries <= 100:
            finite_answers(release.answers)

    return case
