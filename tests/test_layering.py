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
LEAVES = {
    "layout": {"errors", "cached"},
    "schedule": {"errors", "layout", "cached"},
    "types": {"errors"},
    "errors": set(),
    "cached": set(),
}
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
        {"candidates"},
        {"choose"},
        {"call"},
        {"flash"},
        {"gemm", "attention"},
        {"attention_backward", "attention_decode", "attention_fp8"},
        {"attention_mla"},
        {"ragged", "conv", "gemm_examples"},
        {"ragged_k", "conv_gradients", "problems"},
        {"grouped", "scaled"},
    ),
    "kernels/call": (
        {"matrix", "elsewhere"},
        {"matrices"},
        {"launching"},
        {"scales"},
        {"paths"},
        {"products", "tuned"},
        {"call"},
        {"groups", "convolutions"},
        {"gemm", "scaled"},
    ),
}
CUDA = {"assemble", "driver", "runtime"}  # the only modules that may import it


def path_id(path):
    return str(path.relative_to(PACKAGE))


def module_of(path):
    """The module or sub-package right under ptxdsl/ that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def module_named(name):
    """The same of a dotted name; `ptxdsl` itself is `__init__`."""
    module = f"{name}.".split(".")[1]
    known = (PACKAGE / f"{module}.py").exists() or (PACKAGE / module).is_dir()
    return module if module and known else "__init__"


@cache
def nodes(path):
    """Return all nodes of a file's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text())))


def imported_names(path):
    """Yield the dotted names that a file imports; a.b for `from a import b`."""
    package = path.relative_to(PACKAGE.parent).parent.parts
    for node in nodes(path):
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
    return [node for node in nodes(path) if isinstance(node, kinds)]


def test_no_two_modules_import_each_other():
    assert list(TopologicalSorter(graph()).static_order())  # raises CycleError, which names the circle


def test_no_two_files_import_each_other():
    edges = file_graph()
    assert edges["emulate/run/machine.py"] >= {"emulate/run/core.py", "emulate/run/processor.py"}
    assert list(TopologicalSorter(edges).static_order())


def upward(edges, order):
    """Return for each name in `order`, a sequence of sets, what it reaches in its own set or a later one."""
    later = [(name, set().union(*order[n:]) - {name}) for n, names in enumerate(order) for name in names]
    return {name: up for name, not_below in later if (up := reached(name, edges) & not_below)}


def test_a_layer_reaches_only_earlier_layers():
    assert not upward(graph(), LAYERS)


@pytest.mark.parametrize("folder", ROOMS)
def test_a_room_reaches_only_earlier_rooms(folder):
    assert rooms_graph(folder).keys() == {"__init__"}.union(*ROOMS[folder])
    assert not upward(rooms_graph(folder), ROOMS[folder])


def test_leaves_reach_nothing_else():
    assert not {leaf: up for leaf, below in LEAVES.items() if (up := reached(leaf, graph()) - below)}


def importers_of(*libraries):
    """Return (module, library) for each file that imports one of the libraries."""
    roots = {(module_of(path), name.partition(".")[0]) for path in FILES for name in imported_names(path)}
    return {(module, root) for module, root in roots if root in libraries}


def test_only_the_modules_that_launch_import_cuda():
    assert {module for module, _ in importers_of("cuda")} <= CUDA


def test_a_framework_is_imported_only_by_its_module():
    assert all(module == library for module, library in importers_of("torch", "jax", "cupy", "triton"))


def test_importing_the_package_loads_neither_cuda_nor_a_framework():
    heavy = {"cuda", "torch", "cupy", "jax", "triton", "rich"}
    script = f"import sys, ptxdsl; print(*sorted({heavy} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_imports_stand_at_the_top():
    inner = [(path, node) for path in FILES for function in functions(path) for node in ast.walk(function)]
    imports = ast.Import | ast.ImportFrom
    assert not [f"{path_id(path)}:{node.lineno}" for path, node in inner if isinstance(node, imports)]


def test_functions_and_files_stay_short():
    lengths = [(path, f, f.end_lineno - f.lineno + 1) for path in FILES for f in functions(path)]
    assert not [f"{path_id(path)}: {f.name} has {lines} lines" for path, f, lines in lengths if lines > FUNCTION_LINES]
    files = {path_id(path): len(path.read_text().splitlines()) for path in FILES}
    assert not {name: lines for name, lines in files.items() if lines > FILE_LINES}


def test_the_gemm_stays_one_page():
    assert len((PACKAGE / "kernels" / "gemm.py").read_text().splitlines()) <= PAGE_LINES


def test_a_public_class_name_stands_for_one_thing():
    classes = defaultdict(list)
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert not {name: files for name, files in classes.items() if len(files) > 1}


def test_names_say_something():
    """A variable called `place` was an address, a GPU with its stream, a tile and a line."""
    empty = {"found", "place", "given", "made", "own", "what", "mine"}
    named = defaultdict(set)
    for path in FILES:
        for node in nodes(path):
            name = {ast.Name: "id", ast.arg: "arg", ast.Attribute: "attr", ast.FunctionDef: "name"}.get(type(node))
            if name and getattr(node, name).strip("_") in empty:
                named[path_id(path)].add(getattr(node, name))
    assert not named
