"""How many of a sample of small changes do the tests find? cosmic-ray over the rooms that privacy rests on.

``python tests/mutations/sample.py [ROOM[=NUMBER] ...]`` changes copies of the tree only, and the same places
while the tree is the same. What survives is printed as a difference.
"""

import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from named import copy_of_the_tree

#: The rows of what is rejected, those of every package.
MESSAGES = "tests/test_messages.py"
#: The tests that each room is held to: its own first.
TESTS = {
    "privacy": ["tests/privacy", "src/matrixdp/privacy", "tests/measure/test_statement.py", MESSAGES],
    "noise": ["tests/noise", "src/matrixdp/noise", MESSAGES],
    "exact": ["tests/exact", "src/matrixdp/exact"],
    "plans": ["tests/plans", "src/matrixdp/plans", "tests/release/test_release.py"],
    "measure": ["tests/measure", "src/matrixdp/measure", MESSAGES],
}
SAMPLE = 60
SECONDS = 240.0
CONFIG = """
[cosmic-ray]
module-path = "src/matrixdp/{room}"
timeout = {seconds}
excluded-modules = []
test-command = "{python} -m pytest -x -q -p no:cacheprovider {tests}"
[cosmic-ray.distributor]
name = "local"
"""
#: Changes that no run can see: unions in annotations, and decorators of abstract methods and caches.
UNSEEN = ("BitOr", "RemoveDecorator")
QUERY = """
SELECT module_path, operator_name, start_pos_row, test_outcome, diff FROM mutation_specs
JOIN work_results USING (job_id) ORDER BY module_path, start_pos_row
"""


def outcomes(room: str, number: int, tree: Path) -> list[dict[str, object]]:
    """Change one place at a time, and return what the tests said of each."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    tests = " ".join(TESTS[room])
    text = CONFIG.format(room=room, seconds=SECONDS, python=sys.executable, tests=tests)
    (tree / "cosmic-ray.toml").write_text(text)

    program = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *TESTS[room]]
    unchanged = subprocess.run(program, cwd=tree, env=environment, capture_output=True, text=True)
    if unchanged.returncode:
        raise SystemExit(f"{room}: its tests fail on the tree as it is\n{unchanged.stdout}{unchanged.stderr}")

    def cosmic_ray(command: str) -> None:
        program = [str(Path(sys.executable).with_name("cosmic-ray")), command]
        subprocess.run([*program, "cosmic-ray.toml", "session.sqlite"], cwd=tree, env=environment, check=True)

    cosmic_ray("init")
    session = sqlite3.connect(tree / "session.sqlite")
    session.row_factory = sqlite3.Row
    rows = session.execute("SELECT job_id, operator_name FROM mutation_specs ORDER BY rowid").fetchall()
    seen = [row["job_id"] for row in rows if not any(part in row["operator_name"] for part in UNSEEN)]
    chosen = set(random.Random(room).sample(seen, min(number, len(seen))))  # noqa: S311  nothing is secret
    for row in rows:
        if row["job_id"] not in chosen:
            session.execute("DELETE FROM mutation_specs WHERE job_id = ?", [row["job_id"]])
            session.execute("DELETE FROM work_items WHERE job_id = ?", [row["job_id"]])
    session.commit()
    cosmic_ray("exec")
    found = [dict(row) for row in session.execute(QUERY)]
    session.close()
    return found


def main(rooms: list[str]) -> None:
    """Print the survivors and the figures of each room."""
    for asked in rooms or list(TESTS):
        room, _, number = asked.partition("=")
        with tempfile.TemporaryDirectory() as folder:
            found = outcomes(room, int(number or SAMPLE), copy_of_the_tree(folder))
        survivors = [row for row in found if "SURVIVED" in str(row["test_outcome"]).upper()]
        for row in survivors:
            print(f"{row['module_path']}:{row['start_pos_row']} {row['operator_name']}\n{row['diff']}")
        print(json.dumps({"room": room, "mutants": len(found), "survived": len(survivors)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
