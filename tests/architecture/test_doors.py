"""One door to data and noise; the order of packages and their circles are contracts in pyproject.toml."""

import ast
from functools import cache
from pathlib import Path

import matrixdp

PACKAGE = Path(matrixdp.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MEASUREMENT = "measure/measurement.py"
#: DAWA reads a table of its own; it is there for comparison only.
SIDE_DOOR = "papers/dawa/door.py"
#: Tables that the checks for authors of sources made themselves, and noise that nobody adds.
CHECKED_TABLES, SEEDED = "testing/tables.py", "testing/plugins.py"


def place(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def importing(names: set[str], module: str) -> set[str]:
    """The files outside a package that import any of its names, from it or from its modules."""
    return {
        place(path)
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom)
        and (node.module == module or str(node.module).startswith(f"{module}."))
        and names & {alias.name for alias in node.names}
        and not place(path).startswith(module.removeprefix("matrixdp.") + "/")
    }


def calling(method: str) -> set[str]:
    """The files that call a method of this name."""
    return {
        place(path)
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
    }


def test_only_the_measurement_draws_noise():
    # DAWA's steps know the type of a source of bits, and pass it on
    dawa = {SIDE_DOOR, "papers/dawa/dawa.py"}
    assert importing({"RandomSource"}, "matrixdp.noise") == {MEASUREMENT} | dawa
    assert importing({"SystemSource"}, "matrixdp.noise") == {MEASUREMENT}
    assert importing({"SeededSource"}, "matrixdp.noise") == {MEASUREMENT, SEEDED}
    assert importing({"noisy", "random_source"}, "matrixdp.measure") == dawa | {"papers/dawa/simulation.py"}
    drawing = {name for name in calling("draw_rounded") if not name.startswith("noise/")}
    assert drawing == {MEASUREMENT, SEEDED}


def test_only_the_measurement_counts_a_table():
    reading = {name for name in calling("marginals") if not name.startswith("sources/")}
    assert reading == {MEASUREMENT, SIDE_DOOR, CHECKED_TABLES}
    # the values of a table that is public
    assert {name for name in calling("records") if not name.startswith("sources/")} == {"draft.py"}
    # `Source.count` counts what a request asks for, and requests are made by `Source.marginals` alone
    assert importing({"Request"}, "matrixdp.sources") == set()


def test_nothing_is_pickled():
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert "import pickle" not in text
        assert "allow_pickle=True" not in text
