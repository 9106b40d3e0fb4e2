"""One door to data, noise and randomness; the order of packages and their circles are in pyproject.toml."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import matrixdp

PACKAGE = Path(matrixdp.__file__).parent
FILES = {str(path.relative_to(PACKAGE)): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
MEASUREMENT, NOISY, WORKERS = (f"measure/{name}.py" for name in ("measurement", "noisy_answers", "workers"))
#: Mechanisms that depend on the data read tables here; they are there for comparison only.
SIDE_DOOR = "papers/door.py"
#: Tables that the checks for authors of sources made themselves, and noise that nobody adds.
CHECKED_TABLES, SEEDED = "testing/tables.py", "testing/plugins.py"
#: The generator of the operating system.
SYSTEM = "noise/source.py"
#: Where searches for strategies and fits of models start, and random workloads come from; a test below holds
#: it to them.
SEARCHES = "selection/starting_points.py"
#: Where public covariances are simulated, by one seed for all.
BANDS = "statistics/intervals.py"
RANDOM = {
    "random", "secrets", "numpy.random", "uuid", "os.urandom", "os.getrandom", "np.random",
}  # fmt: skip


@cache
def nodes(file: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(FILES[file])))


def importing(names: set[str], module: str) -> set[str]:
    """The files outside a package that import any of its names, from it or from its modules."""
    return {
        file
        for file in FILES
        for node in nodes(file)
        if isinstance(node, ast.ImportFrom)
        and f"{node.module}.".startswith(f"{module}.")
        and names & {alias.name for alias in node.names}
        and not file.startswith(module.removeprefix("matrixdp.") + "/")
    }


def calling(method: str, package: str) -> set[str]:
    """The files outside a package that call a method of this name."""
    return {
        file
        for file in FILES
        for node in nodes(file)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
        if not file.startswith(f"{package}/")
    }


def random_names(file: str) -> set[str]:
    """The names through which a file could draw randomness."""

    def mentioned() -> Iterator[str]:
        for node in nodes(file):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names))
            elif isinstance(node, ast.Attribute):
                yield ast.unparse(node)

    return RANDOM & set(mentioned())


def test_only_the_measurement_draws_noise():
    # the steps of these mechanisms know the type of a source of bits, and pass it on
    dependent = {"papers/dawa/dawa.py", "papers/privbayes/mechanism.py"}
    choosing = {"papers/privbayes/network.py"}
    assert (
        importing({"RandomSource"}, "matrixdp.noise")
        == {MEASUREMENT, NOISY, SIDE_DOOR} | dependent | choosing
    )
    assert importing({"choose", "uniform"}, "matrixdp.noise") == choosing
    assert importing({"SystemSource"}, "matrixdp.noise") == {NOISY}
    assert importing({"SeededSource"}, "matrixdp.noise") == {NOISY, SEEDED}
    simulating = {f"papers/{name}/simulation.py" for name in ("dawa", "privbayes")}
    users = importing({"noisy", "random_source"}, "matrixdp.measure")
    assert users == {SIDE_DOOR} | dependent | simulating
    assert calling("draw_rounded", "noise") == {NOISY, SEEDED}


def test_only_the_measurement_counts_a_table():
    # discoveries have it find values for them, and see no others
    assert calling("person_values", "sources") == {MEASUREMENT}
    assert importing({"find_values"}, "matrixdp.measure") == {"discovery.py"}
    assert calling("found", "noise") == {MEASUREMENT}
    # plans count how many records of a public table bounds keep
    users = {MEASUREMENT, WORKERS, SIDE_DOOR, CHECKED_TABLES, "quality.py"}
    assert calling("marginals", "sources") == users
    # the values of a table that is public
    assert calling("records", "sources") == {"draft.py"}
    # `Source.count` counts what a request asks for, and requests are made by `Source.marginals` alone
    assert importing({"Request"}, "matrixdp.sources") == set()


def test_only_the_random_source_draws_randomness():
    drawing = {file: found for file in FILES if (found := random_names(file))}
    # the secret in the address of a page is no noise
    assert drawing.pop("design/app.py") == {"secrets"}
    assert drawing.keys() == {SYSTEM, SEARCHES, BANDS}
    assert {"os.urandom", "np.random"} <= drawing[SYSTEM]
    assert [file for file, text in FILES.items() if "os.urandom" in text] == [SYSTEM]
    simulating = [
        node.name
        for node in nodes(BANDS)
        if isinstance(node, ast.FunctionDef) and "np.random" in ast.unparse(node)
    ]
    assert simulating == ["largest_of_normals"]


def test_searches_alone_use_their_starting_points():
    users = {file.split("/")[0] for file, text in FILES.items() if "selection.starting_points" in text}
    assert {"selection"} <= users <= {"selection", "mechanisms", "model", "statistics"}
    assert "matrixdp.noise" not in FILES[SEARCHES].split('"""')[2]
    searches = {"papers/low_rank.py", "papers/matrix_programs.py"}
    assert importing({"generator"}, "matrixdp.mechanisms") == searches


def test_nothing_is_pickled():
    for text in FILES.values():
        assert "import pickle" not in text
        assert "allow_pickle=True" not in text
