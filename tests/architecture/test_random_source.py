import ast
from pathlib import Path

import matrixdp

PACKAGE = Path(matrixdp.__file__).parent
ALLOWED = PACKAGE / "noise" / "source.py"
#: Where searches for strategies and fits of models start, and random workloads come from; a test below holds
#: it to them.
SEARCHES = PACKAGE / "selection" / "starting_points.py"
#: Where public covariances are simulated, by one seed for all.
BANDS = PACKAGE / "statistics" / "intervals.py"
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
        if path not in (ALLOWED, SEARCHES, BANDS) and (found := _mentions(path))
    }
    assert offenders == {}


def test_searches_alone_use_their_starting_points():
    users = [
        path.relative_to(PACKAGE)
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != SEARCHES and "selection.starting_points" in path.read_text(encoding="utf-8")
    ]
    assert users
    assert {path.parts[0] for path in users} <= {"selection", "mechanisms.py", "model", "statistics"}
    assert "matrixdp.noise" not in SEARCHES.read_text(encoding="utf-8").split('"""')[2]
    others = [p for p in PACKAGE.rglob("*.py") if "generator" in _imported(p, "matrixdp.mechanisms")]
    searches = {"papers/low_rank.py", "papers/families.py", "papers/matrix_programs.py"}
    assert {str(p.relative_to(PACKAGE)) for p in others} == searches


def test_bands_alone_simulate():
    (drawing,) = {
        function.name
        for function in ast.walk(ast.parse(BANDS.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef) and "np.random" in ast.unparse(function)
    }
    assert drawing == "largest_of_normals"


def _imported(path: Path, module: str) -> set[str]:
    return {
        alias.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
    }


def test_the_check_sees_what_it_looks_for():
    assert {"os.urandom", "np.random"} <= set(_mentions(ALLOWED))


def test_the_operating_system_generator_is_named_in_one_module():
    named = [p for p in PACKAGE.rglob("*.py") if "os.urandom" in p.read_text(encoding="utf-8")]
    assert named == [ALLOWED]
