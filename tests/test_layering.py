"""The house rules that a reader can check: who imports whom, and how long a function and a file may be."""

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "ptxdsl"
FILES = sorted(PACKAGE.rglob("*.py"))
FUNCTION_LINES, FILE_LINES, PAGE_LINES = 60, 600, 200

# A module reaches, through whatever it imports, no module of its own layer or of a later one. Helper modules that are
# not named here take the place that their importers leave them.
LAYERS = (
    {"errors"},
    {"types"},
    {"ir"},
    {"isa"},
    {"verify"},
    {"trace", "lower", "parse", "emulate"},
    {"assemble"},
    {"runtime"},
    {"__init__"},
    {"check"},
    {"testing"},
    {"kernels"},
    {"torch", "jax"},
    {"cli"},
    {"__main__"},
)
# Leaves on plain arithmetic, and all that they may reach.
LEAVES = {"layout": {"errors"}, "schedule": {"errors", "layout"}, "types": {"errors"}, "errors": set()}
# Rooms of a folder, and the files beside them, by the same rule
ROOMS = {
    "kernels": (
        {"product"},
        {"tiles"},
        {"traits"},
        {"epilogue"},
        {"store"},
        {"sm80", "sm90"},
        {"reorder", "config"},
        {"choose"},
        {"call"},
        {"gemm"},
        {"ragged", "conv"},
        {"ragged_k", "conv_gradients", "problems"},
        {"grouped", "scaled"},
    ),
    "kernels/call": (
        {"matrix", "elsewhere"},
        {"matrices"},
        {"launching"},
        {"products", "tuned"},
        {"groups", "convolutions"},
        {"gemm", "scaled"},
    ),
}
CUDA = {"assemble", "driver", "runtime"}  # the only modules that may import it


def path_id(path):
    return str(path.relative_to(PACKAGE))


every_file = pytest.mark.parametrize("path", FILES, ids=path_id)


def module_of(path):
    """The module or sub-package right under ptxdsl/ that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def module_named(name):
    """The same of a dotted name; `ptxdsl` itself is `__init__`."""
    module = f"{name}.".split(".")[1]
    known = (PACKAGE / f"{module}.py").exists() or (PACKAGE / module).is_dir()
    return module if module and known else "__init__"


def imported_names(path):
    """The dotted names that a file imports; of `from a import b`, a.b."""
    package = path.relative_to(PACKAGE.parent).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            start = [*above, *filter(None, [node.module])]
            yield from (".".join([*start, alias.name]) for alias in node.names)


@cache
def graph():
    """module: the modules of the package that its files import."""
    edges = {module_of(path): set() for path in FILES}
    for path in FILES:
        names = [name for name in imported_names(path) if name.partition(".")[0] == "ptxdsl"]
        edges[module_of(path)] |= {module_named(name) for name in names} - {module_of(path)}
    return edges


@cache
def file_graph():
    """file: the files of the package that it imports, even if only for its annotations."""
    by_name = {".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts): path_id(p) for p in FILES}
    edges = {}
    for path in FILES:
        names = [name for name in imported_names(path) if name.partition(".")[0] == "ptxdsl"]
        modules = [name if name in by_name else name.rpartition(".")[0] for name in names]
        edges[path_id(path)] = {by_name[module] for module in modules if module in by_name}
    return edges


@cache
def rooms_graph(folder):
    """room of a folder: those of it that its files import."""
    inside = [path for path in file_graph() if path.startswith(f"{folder}/")]
    rooms = {path: Path(path).relative_to(folder).with_suffix("").parts[0] for path in inside}
    edges = {room: set() for room in rooms.values()}
    for path, room in rooms.items():
        edges[room] |= {rooms[each] for each in file_graph()[path] & rooms.keys()} - {room}
    return edges


def reached(module, edges):
    seen, todo = set(), [module]
    while todo:
        new = edges.get(todo.pop(), set()) - seen
        seen |= new
        todo += new
    return seen


def functions(path):
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]


def test_no_two_modules_import_each_other():
    assert list(TopologicalSorter(graph()).static_order())  # raises CycleError, which names the circle


def test_no_two_files_import_each_other():
    edges = file_graph()
    assert edges["emulate/run/machine.py"] >= {"emulate/run/core.py", "emulate/run/processor.py"}
    assert list(TopologicalSorter(edges).static_order())


@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_a_layer_reaches_only_earlier_layers(number):
    edges = graph()
    not_below = set().union(*LAYERS[number:])
    assert not {m: up for m in LAYERS[number] if (up := reached(m, edges) & not_below - {m})}


@pytest.mark.parametrize("folder, number", [(folder, n) for folder in ROOMS for n in range(len(ROOMS[folder]))])
def test_a_room_reaches_only_earlier_rooms(folder, number):
    edges, order = rooms_graph(folder), ROOMS[folder]
    assert edges.keys() == {"__init__"}.union(*order)
    not_below = set().union(*order[number:])
    assert not {room: up for room in order[number] if (up := reached(room, edges) & not_below - {room})}


@pytest.mark.parametrize("leaf", LEAVES)
def test_leaves_reach_nothing_else(leaf):
    assert reached(leaf, graph()) <= LEAVES[leaf]


@every_file
def test_only_the_modules_that_launch_import_cuda(path):
    names = [name for name in imported_names(path) if name.partition(".")[0] == "cuda"]
    assert module_of(path) in CUDA or not names


@every_file
def test_a_framework_is_imported_only_by_its_module(path):
    names = {name.partition(".")[0] for name in imported_names(path)} & {"torch", "jax", "cupy", "triton"}
    assert names <= {module_of(path)}


def test_importing_the_package_loads_neither_cuda_nor_a_framework():
    heavy = {"cuda", "torch", "cupy", "jax", "triton", "rich"}
    script = f"import sys, ptxdsl; print(*sorted({heavy} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


@every_file
def test_imports_stand_at_the_top(path):
    inner = [node for function in functions(path) for node in ast.walk(function)]
    assert not [node.lineno for node in inner if isinstance(node, ast.Import | ast.ImportFrom)]


@every_file
def test_functions_and_files_stay_short(path):
    lengths = {function.name: function.end_lineno - function.lineno + 1 for function in functions(path)}
    assert not {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES}
    assert len(path.read_text().splitlines()) <= FILE_LINES


def test_the_gemm_stays_one_page():
    assert len((PACKAGE / "kernels" / "gemm.py").read_text().splitlines()) <= PAGE_LINES


def test_a_public_class_name_stands_for_one_thing():
    classes = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert not {name: files for name, files in classes.items() if len(files) > 1}


def test_names_say_something():
    """A variable called `place` was an address, a GPU with its stream, a tile and a line."""
    empty = {"found", "place", "given", "made", "own", "what", "mine"}
    named = defaultdict(set)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            name = {ast.Name: "id", ast.arg: "arg", ast.Attribute: "attr", ast.FunctionDef: "name"}.get(type(node))
            if name and getattr(node, name).strip("_") in empty:
                named[path_id(path)].add(getattr(node, name))
    assert not named
