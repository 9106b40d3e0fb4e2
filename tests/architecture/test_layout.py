"""The shape of the package: imports one way, true faces, one door to data and noise."""

import ast
import importlib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import matrixdp

PACKAGE = Path(matrixdp.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
#: Each room may import from itself and from rooms of a lower number.
ORDER = {
    "errors": 0,
    "display": 1,
    "faces": 1,
    "locks": 1,
    "forms": 2,
    "domain": 3,
    "exact": 4,
    "queries": 5,
    "language": 6,
    "statements": 7,
    "privacy": 8,
    "noise": 9,
    "ledger": 10,
    "specification": 11,
    "plan": 12,
    "selection": 13,
    "mechanisms": 14,
    "sources": 15,
    "measure": 16,
    "storage": 17,
    "papers": 18,
    "answers": 19,
    "statistics": 20,
    "model": 21,
    "pictures": 22,
    "release": 23,
    "review": 24,
    "strategy": 25,
    "draft": 26,
    "report": 27,
    "testing": 28,
    "cli": 29,
    "__main__": 30,
}


def place(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """What a module's text consists of, parsed once for all tests."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports(path: Path) -> set[str]:
    """The modules of this package that a module imports, wherever in it."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place(path)}: relative import"
            found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name == "matrixdp" or name.startswith("matrixdp.")}


def imported_names(path: Path, module: str) -> set[str]:
    return {
        alias.name
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
    }


def importers(target: str) -> set[str]:
    return {
        place(path)
        for path in FILES
        if room(path) != target
        and any(
            name == f"matrixdp.{target}" or name.startswith(f"matrixdp.{target}.") for name in imports(path)
        )
    }


def test_every_room_has_its_place():
    rooms = {room(path) for path in FILES} - {"__init__"}
    assert rooms == set(ORDER)


@pytest.mark.parametrize("path", [p for p in FILES if p != PACKAGE / "__init__.py"], ids=place)
def test_imports_point_one_way(path: Path):
    own = room(path)
    for name in imports(path):
        if name == "matrixdp":
            assert own == "cli", "the face is for users"
            continue
        other = name.split(".")[1]
        assert other == own or ORDER[other] < ORDER[own], f"{place(path)} imports {name}"


#: How selection is built: from what a workload looks like to the mechanisms.
SELECTION = ("view", "gram", "weights", "compose", "bounds", "mechanisms")


@pytest.mark.parametrize("path", [p for p in FILES if p.parent.parent.name == "selection"], ids=place)
def test_selection_is_built_in_one_order(path: Path):
    later = SELECTION[SELECTION.index(path.parent.name) + 1 :]
    for name in imports(path):
        parts = name.split(".")
        assert parts[1] != "selection" or parts[2] not in later, f"{place(path)} imports {name}"


def test_no_imports_go_round():
    modules = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in FILES
    }
    graph = {}
    for name, path in modules.items():
        named = [(other, member) for other in imports(path) for member in imported_names(path, other)]
        graph[name] = {f"{o}.{m}" if f"{o}.{m}" in modules else o for o, m in named}
    tuple(TopologicalSorter(graph).static_order())


def test_faces_are_true():
    for path in FILES:
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
        assert module.__doc__, f"{place(path)}: a module says what it is for"
        listed = getattr(module, "__all__", [])
        assert len(set(listed)) == len(listed), place(path)
        assert [name for name in listed if not hasattr(module, name)] == [], place(path)


#: Where mechanisms that are there for comparison only read a table.
SIDE_DOOR = "papers/dawa/door.py"
#: What reads tables that it made itself, for nobody but tests, and what draws noise that nobody adds.
CHECK, SEEDED = "testing/sources.py", "testing/noise.py"


#: What a module needs to draw noise.
DRAWING = {"RandomSource", "SeededSource", "SystemSource"}


def test_only_the_measurement_draws_noise():
    users = {place(p) for p in FILES if room(p) != "noise" and imported_names(p, "matrixdp.noise") & DRAWING}
    # DAWA's steps know the type of a source of bits, and pass it on
    beside = {SIDE_DOOR, "papers/dawa/dawa.py"}
    assert users == {"measure/measurement.py", SEEDED} | beside
    assert imported_names(PACKAGE / SEEDED, "matrixdp.noise") & DRAWING == {"SeededSource"}
    for name in beside:
        assert imported_names(PACKAGE / name, "matrixdp.noise") & DRAWING == {"RandomSource"}
    others = {
        place(path) for path in FILES if imported_names(path, "matrixdp.measure") & {"noisy", "random_source"}
    }
    assert others == {SIDE_DOOR, "papers/dawa/dawa.py", "papers/dawa/simulation.py"}
    for path in FILES:
        if room(path) != "noise":
            assert not imports(path) & {"matrixdp.noise.drawing", "matrixdp.noise.source"}, place(path)
    drawing = {
        place(path)
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr == "draw_rounded"
    }
    assert drawing == {"measure/measurement.py", SEEDED}


#: Where a noise is still the text that a user or a file wrote.
NOISE_IS_TEXT = {"noise/names.py", "strategy/noises.py", "cli/compare.py", "cli/pictures.py"}


def _compares_noises(node: ast.AST) -> bool:
    """Whether a node compares something called noise, or one of the noises by name, with anything."""
    if not isinstance(node, ast.Compare):
        return False
    for operand in (node.left, *node.comparators):
        named = operand.id if isinstance(operand, ast.Name) else getattr(operand, "attr", "")
        text = operand.value if isinstance(operand, ast.Constant) else ""
        if named in ("GAUSSIAN", "LAPLACE") or text in ("gaussian", "laplace"):
            return True
        if named == "noise" and not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return True
    return False


def test_nobody_asks_which_noise_it_is():
    found = {
        place(path)
        for path in FILES
        if room(path) != "testing"  # that two noises are equal is checked there
        for node in nodes(path)
        if _compares_noises(node)
    }
    assert found == NOISE_IS_TEXT
    assert _compares_noises(ast.parse('noise == "gaussian"', mode="eval").body)
    assert _compares_noises(ast.parse("self.noise in (one, two)", mode="eval").body)


def test_no_noise_is_taken_for_granted():
    """Nothing below the public face has a noise as a default."""
    for path in FILES:
        for node in nodes(path):
            if not isinstance(node, ast.FunctionDef | ast.Lambda):
                continue
            given = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
            names = {d.id for d in given if isinstance(d, ast.Name)}
            texts = {d.value for d in given if isinstance(d, ast.Constant)}
            assert not names & {"GAUSSIAN", "LAPLACE"}, place(path)
            assert not texts & {"gaussian", "laplace"}, place(path)


#: What papers may import besides their own room: faces, and nothing behind them.
PUBLIC = {
    "matrixdp.domain",
    "matrixdp.errors",
    "matrixdp.exact",
    "matrixdp.language",
    "matrixdp.mechanisms",
    "matrixdp.noise",
    "matrixdp.plan",
    "matrixdp.privacy",
    "matrixdp.queries",
}
#: What is not: DAWA reads a table of its own.
BEHIND = {
    "papers/dawa/dawa.py": {"matrixdp.measure", "matrixdp.privacy.numbers"},
    "papers/dawa/door.py": {"matrixdp.measure", "matrixdp.sources"},
    "papers/dawa/simulation.py": {"matrixdp.measure"},
}


@pytest.mark.parametrize("path", [path for path in FILES if room(path) == "papers"], ids=place)
def test_papers_are_written_on_what_a_stranger_has(path: Path):
    others = {name for name in imports(path) if not name.startswith("matrixdp.papers")}
    assert others - PUBLIC == BEHIND.get(place(path), set())


def test_nobody_imports_papers_but_through_the_table_of_mechanisms():
    assert importers("papers") == {"__init__.py"}
    assert imported_names(PACKAGE / "__init__.py", "matrixdp.papers") == {"families"}


def test_sources_are_opened_in_few_places_and_read_in_one():
    openers = {
        "cli/compare.py",
        "cli/release.py",
        "cli/validate.py",
        "draft/draft.py",  # names and types of columns
        "draft/public.py",  # a table that is public
        "measure/measurement.py",
        "strategy/strategy.py",
    }
    assert importers("sources") == openers | {SIDE_DOOR, CHECK, "testing/neighbours.py", "testing/persons.py"}
    assert importers("testing") == set()
    readers, public = set(), set()
    for path in FILES:
        if room(path) == "sources":
            continue
        for node in nodes(path):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr == "marginals":
                readers.add(place(path))
            if isinstance(called, ast.Attribute) and called.attr == "records":
                public.add(place(path))
        # `Source.count` counts what a request asks for, and requests are made by `Source.marginals` alone
        assert "Request" not in {name for module in imports(path) for name in imported_names(path, module)}
    assert public == {"draft/public.py"}
    assert readers == {
        "measure/measurement.py",
        SIDE_DOOR,
        CHECK,
        "testing/neighbours.py",
        "testing/persons.py",
    }


def test_nothing_prints_but_the_commands():
    for path in FILES:
        calls = [n.func for n in nodes(path) if isinstance(n, ast.Call)]
        assert "print" not in {func.id for func in calls if isinstance(func, ast.Name)}, place(path)


def test_nothing_is_pickled():
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert "import pickle" not in text
        assert "allow_pickle=True" not in text
