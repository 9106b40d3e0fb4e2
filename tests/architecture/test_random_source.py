import ast
from pathlib import Path

import matrixdp

PACKAGE = Path(matrixdp.__file__).parent
ALLOWED = PACKAGE / "noise" / "source.py"
#: Where searches for strategies start; a test below holds it to selection.
SEARCHES = PACKAGE / "selection" / "starting_points.py"
#: Where random workloads come from; a test below holds it to the workload's own room.
WORKLOADS = PACKAGE / "queries" / "seeded.py"
MODULES = {"random", "secrets", "numpy.random", "uuid"}
ATTRIBUTES = {("os", "urandom"), ("os", "getrandom"), ("np", "random"), ("numpy", "random")}


def _mentions(path: Path) -> list[str]:
    """Every import or attribute through which a module could draw randomness."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name in MODULES]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [alias.name for alias in node.names]
            if node.module in MODULES:
                found.append(str(node.module))
            found += [f"{node.module}.{n}" for n in names if (node.module, n) in ATTRIBUTES]
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and (node.value.id, node.attr) in ATTRIBUTES
        ):
            found.append(f"{node.value.id}.{node.attr}")
    return found


def test_only_the_random_source_draws_randomness():
    offenders = {
        str(path.relative_to(PACKAGE)): found
        for path in sorted(PACKAGE.rglob("*.py"))
        if path not in (ALLOWED, SEARCHES, WORKLOADS) and (found := _mentions(path))
    }
    assert offenders == {}


def test_searches_alone_use_their_starting_points():
    users = [
        path.relative_to(PACKAGE)
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != SEARCHES and "selection.starting_points" in path.read_text(encoding="utf-8")
    ]
    assert users
    assert {path.parts[0] for path in users} == {"selection"}
    assert "matrixdp.noise" not in SEARCHES.read_text(encoding="utf-8").split('"""')[2]


def test_random_workloads_alone_use_their_generator():
    users = [
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != WORKLOADS and "queries.seeded" in path.read_text(encoding="utf-8")
    ]
    assert users == ["queries/random_queries.py"]


def test_the_check_sees_what_it_looks_for():
    assert {"os.urandom", "np.random"} <= set(_mentions(ALLOWED))


def test_the_operating_system_generator_is_named_in_one_module():
    named = [p for p in PACKAGE.rglob("*.py") if "os.urandom" in p.read_text(encoding="utf-8")]
    assert named == [ALLOWED]
