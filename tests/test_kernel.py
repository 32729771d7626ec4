"""Kernels as objects: specialised, printed, assembled, pickled, launched, refused."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import bf16, config, f16, f32, f64, ptr, s32, u8, u32, u64
from ptxdsl.assemble import Resources
from ptxdsl.driver import why_no_gpu
from ptxdsl.errors import EmulationError, Error, LaunchError
from ptxdsl.verify.effects import written


@pd.kernel
def saxpy(x: ptr[f32], y: ptr[f32], a: f32, n: u32):
    i = pd.ctaid.x * pd.ntid.x + pd.tid.x
    with pd.if_(i < n):
        y[i] = a * x[i] + y[i]


@dataclass(frozen=True)
class Shape:
    elements: int = 4
    dtype: object = f32


@pd.kernel
def fill(x: ptr[shape.dtype], *, shape: Shape, value: float = 1.0):  # noqa: F821
    for i in range(shape.elements):
        x[i] = value


def message(function):
    with pytest.raises(Error) as error:
        function()
    return str(error.value)


def first_line(function):
    return message(function).splitlines()[0]


def help_of(function):
    return message(function).splitlines()[-1].removeprefix("  help: ")


@pytest.mark.parametrize("grid, block", [(8, 128), ((8,), (128,)), ((4, 1), (256, 1, 1)), (np.int64(8), 128)])
def test_a_grid_is_an_int_or_a_tuple(grid, block):
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    saxpy[grid, block](x, y, 2.0, 1000)
    assert np.array_equal(y, 2 * np.arange(1000) + 1)


def test_a_kernel_is_traced_once_for_each_target_and_set_of_constants():
    small, large = Shape(2), Shape(3, f64)
    assert fill.ir(shape=small) is fill.ir(shape=Shape(2))
    assert fill.ir(shape=small) is not fill.ir(shape=small, value=2.0)
    assert fill.ir("sm_90", shape=small).target == ("sm_90",)
    assert fill.ptx(shape=small).count("st.global.f32") == 2
    assert fill.ptx(shape=large).count("st.global.f64") == 3
    out = np.zeros(3)
    fill[1, 1](out, shape=large, value=5.0)
    assert out.tolist() == [5, 5, 5]


def test_types_of_parameters_may_depend_on_constants():
    x = np.zeros(4, np.float32)
    assert first_line(lambda: fill[1, 1](x, shape=Shape(dtype=f64))) == (
        "`x` expects ptr[f64], got a numpy array of f32 with shape (4,)"
    )


def test_annotations_may_stand_where_type_checkers_take_them():
    box = pd.TensorMap(f32, (4, 8))

    @pd.kernel(arch="sm_90a")
    def plain(x: box, y: ptr[f32], n: u32):
        y[n] = 1.0

    @pd.kernel(arch="sm_90a")
    def annotated(x: Annotated[Any, box], y: Annotated[Any, ptr[f32]], n: Annotated[u32, u32, "how many"]):
        y[n] = 1.0

    taken = [text.partition(")")[0].partition(".entry ")[2] for text in (plain.ptx(), annotated.ptx())]
    assert taken[0].count(".param") == 3 and taken[1] == taken[0].replace("plain", "annotated")


def test_local_names_are_resolved_in_annotations_that_are_text():
    half = f16

    @pd.kernel
    def k(x: ptr[half], v: half):
        x[0] = v

    x = np.zeros(1, np.float16)
    k[1, 1](x, 1.5)
    assert x[0] == 1.5


def test_numbers_become_the_parameters_type():
    @pd.kernel
    def k(out: ptr[f64], a: f32, b: s32, c: bf16, d: f16, e: u64, f: u8):
        out[0], out[1], out[2] = a.to(f64), b.to(f64), c.to(f64)
        out[3], out[4], out[5] = d.to(f64), e.to(f64), f.to(f64)

    out = np.zeros(6)
    k[1, 1](out, 2, -3, 1.5, np.float16(0.5), 1 << 40, True)
    assert out.tolist() == [2, -3, 1.5, 0.5, 1 << 40, 1]


def test_bf16_arrays(rng):
    @pd.kernel
    def k(x: ptr[bf16], y: ptr[bf16]):
        y[pd.tid.x] = (x[pd.tid.x].to(f32) * 2.0).to(bf16)

    x = rng.standard_normal(32).astype(ml_dtypes.bfloat16)
    y = np.zeros_like(x)
    k[1, 32](x, y)
    assert np.array_equal(y.astype(np.float32), 2 * x.astype(np.float32))


def test_stages_of_a_kernel():
    assert saxpy.ptx("sm_90").splitlines()[1] == ".target sm_90"
    assert "y[i] = a * x[i] + y[i]" in saxpy.ptx(annotate=True)
    assert saxpy.cubin("sm_80").image[:4] == b"\x7fELF"
    assert saxpy.resources().registers > 0
    assert "FMUL" in saxpy.sass("sm_80")


def test_the_environment_chooses_target_and_line_numbers(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    assert ".target sm_90a" in saxpy.ptx()
    assert ".loc" in saxpy.ptx()
    monkeypatch.setenv("PTXDSL_LINEINFO", "off")
    assert ".loc" not in saxpy.ptx()
    with config.using(arch="sm_86"):
        assert ".target sm_86" in saxpy.ptx()


def test_options_become_directives():
    @pd.kernel(max_threads=256, min_blocks=2)
    def a(x: ptr[f32]):
        x[0] = 1.0

    @pd.kernel(reqntid=(8, 4))
    def b(x: ptr[f32]):
        x[pd.tid.y] = 1.0

    assert ".maxntid 256\n.minnctapersm 2\n" in a.ptx()
    assert ".reqntid 8, 4\n" in b.ptx()
    x = np.zeros(4, np.float32)
    b[1, (8, 4)](x)
    a[1, 256](x)
    assert (
        first_line(lambda: b[1, 32](x)) == "b is compiled for blocks of (8, 4) threads, but the launch has (32, 1, 1)"
    )
    assert first_line(lambda: a[1, 257](x)) == "a is compiled for at most 256 threads per block, but the launch has 257"


def test_kernels_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(saxpy)) is saxpy
    parsed = pickle.loads(pickle.dumps(pd.parse(saxpy.ptx())["saxpy"]))
    y = np.zeros(4, np.float32)
    parsed[1, 4](np.ones(4, np.float32), y, 3.0, 4)
    assert y.tolist() == [3, 3, 3, 3]


def test_a_kernel_keeps_the_name_and_docstring_of_its_function():
    @pd.kernel
    def documented(x: ptr[f32]):
        """What it does."""

    assert (documented.__name__, documented.__doc__) == ("documented", "What it does.")
    assert repr(saxpy) == "<kernel saxpy>"


def test_a_parsed_module_prints_and_runs():
    module = pd.parse(saxpy.ptx())
    assert module.ptx() == saxpy.ptx() == module["saxpy"].ptx()
    assert (list(module), module.kernels, repr(module)) == (["saxpy"], ("saxpy",), "<PTX module with saxpy>")
    assert module["saxpy"].resources() == saxpy.resources()
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    module["saxpy"][1, 128](x, y, 2.0, 100)
    assert np.array_equal(y, 2 * x + 1)
    assert first_line(lambda: module["other"]) == "the module has no kernel `other`"
    assert (
        first_line(lambda: module["saxpy"][1, 1](x, y, 2.0, 1, k=3))
        == "kernel `saxpy` is PTX and has no constants; k given"
    )


def test_a_module_for_an_old_target_runs_and_assembles_for_a_newer_one():
    old = pd.parse(saxpy.ptx().replace(".target sm_80", ".target sm_70"))["saxpy"]
    x, y = np.ones(4, np.float32), np.ones(4, np.float32)
    old[1, 4](x, y, 2.0, 4)
    assert y.tolist() == [3, 3, 3, 3]
    assert old.cubin().arch == "sm_80"
    assert old.cubin("sm_90").arch == "sm_90"


def test_a_report_lists_what_went_wrong_and_nothing_is_written():
    x, y = np.ones(8, np.float32), np.ones(8, np.float32)
    report = pd.emulate(saxpy, 1, 32, x, y, 2.0, 9)
    assert {f.kind for f in report.findings} == {"out-of-bounds"}
    assert y.tolist() == [1] * 8
    with pytest.raises(EmulationError):
        saxpy[1, 32](x, y, 2.0, 9)
    assert y.tolist() == [1] * 8
    assert not pd.emulate(saxpy, 1, 32, x, y, 2.0, 8).findings
    assert y.tolist() == [3] * 8


def test_a_parameter_is_written_if_a_store_can_reach_it():
    @pd.kernel
    def k(a: ptr[f32], b: ptr[f32], c: ptr[u32], d: ptr[u64], e: ptr[f32], n: u32):
        p = pd.var(ptr[f32], a)
        for i in pd.range(n):
            p[i] = b[i]
            p += 1
        pd.ptx.atom.global_.add.u32(c + n, 1)
        d[0] = e.value

    assert written(k.ir().kernels[0]) == {"a", "c", "d", "e"}
    assert written(pd.parse(k.ptx()).ir.kernels[0]) == {"a", "c", "d", "e"}


def test_an_output_that_is_read_only_or_overlaps_is_refused():
    memory = np.ones(16, np.float32)
    frozen = memory.copy()
    frozen.flags.writeable = False
    saxpy[1, 8](frozen, memory, 1.0, 8)
    assert first_line(lambda: saxpy[1, 8](memory, frozen, 1.0, 8)) == "`y` is read-only, but saxpy writes it"
    assert first_line(lambda: saxpy[1, 8](memory, memory[4:], 1.0, 8)) == (
        "`y`, which saxpy writes, shares memory with `x`"
    )


def test_a_gpu_is_asked_for_in_words_where_there_is_none(monkeypatch):
    if not why_no_gpu():
        pytest.skip("there is a GPU")
    monkeypatch.setenv("PTXDSL_DEVICE", "cuda")
    x = np.ones(4, np.float32)
    assert first_line(lambda: saxpy[1, 4](x, x + 1, 1.0, 4)).startswith("no GPU to launch on: ")


LAUNCHES = {
    "no brackets": (lambda x: saxpy(x, x, 1.0, 4), "kernel `saxpy` is called without a grid and a block"),
    "no block": (lambda x: saxpy[4](x, x, 1.0, 4), "kernel `saxpy` is indexed by 4"),
    "too many indices": (lambda x: saxpy[1, 2, 3, 4](x), "kernel `saxpy` is indexed by (1, 2, 3, 4)"),
    "an empty grid": (lambda x: saxpy[0, 4](x, x, 1.0, 4), "grid is (0, 1, 1): every extent must be at least 1"),
    "a float grid": (
        lambda x: saxpy[1.5, 4](x, x, 1.0, 4), "grid is 1.5; it must be an int, or a tuple of one to three ints",
    ),
    "too large a block": (
        lambda x: saxpy[1, 2048](x, x, 1.0, 4), "block is (2048, 1, 1): the limit of its x extent is 1024",
    ),
    "too few arguments": (lambda x: saxpy[1, 4](x, x), "saxpy takes 4 arguments, got 2"),
    "a list": (lambda x: saxpy[1, 4]([1.0], x, 1.0, 4), "`x` expects ptr[f32], got a list"),
    "a float for an integer": (lambda x: saxpy[1, 4](x, x + 1, 1.0, 4.5), "`n` expects an integer (u32), got 4.5"),
    "a negative number": (lambda x: saxpy[1, 4](x, x + 1, 1.0, -4), "`n` expects u32; -4 is out of range (0 to 4294967295)"),
    "an unknown constant": (lambda x: saxpy[1, 4](x, x, 1.0, 4, tile=3), "kernel `saxpy` has no constant `tile`"),
    "a missing constant": (lambda x: fill[1, 1](x), "kernel `fill` needs its constant `shape`"),
    "a constant that cannot be hashed": (
        lambda x: fill[1, 1](x, shape=[4]), "constant `shape` of kernel `fill` is a list, which is not hashable",
    ),
    "an unknown target": (lambda x: saxpy.ptx("sm_79"), "unknown architecture `sm_79`"),
    "no kernel to emulate": (
        lambda x: pd.emulate(max, 1, 1, x), "the first argument of pd.emulate must be a kernel, got <built-in function max>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("use, text", LAUNCHES.values(), ids=LAUNCHES)
def test_what_cannot_be_launched_is_refused_in_words(use, text):
    assert first_line(lambda: use(np.ones(4, np.float32))) == text


def test_dynamic_shared_memory_is_held_against_what_the_kernel_needs():
    @pd.kernel
    def k(x: ptr[f32], *, known: bool = True):
        s = pd.dynamic_shared(f32, 8 if known else None)
        s[0] = 1.0
        x[0] = s[0]

    x = np.zeros(1, np.float32)
    k[1, 1](x)
    k[1, 1, 32](x, known=False)
    assert (
        first_line(lambda: k[1, 1, 16](x)) == "k needs 32 bytes of dynamic shared memory, but the launch passes only 16"
    )
    assert first_line(lambda: k[1, 1](x, known=False)) == (
        "k has a shared array of unknown length, but the launch does not pass its shared memory size"
    )
    assert help_of(lambda: k[1, 1](x, known=False)) == "launch it as k[grid, block, shared_bytes](…)"


OF_K = "of kernel `k`"
UNRESOLVED = f"of parameter `x` {OF_K} cannot be resolved"
DEFINITIONS = {
    "no annotation": ("def k(x): pass", f"parameter `x` {OF_K} has no type"),
    "a class method": ("def k(cls, x: u32): pass", f"parameter `cls` {OF_K} has no type"),
    "a Python type": ("def k(x: int): pass", f"parameter `x` {OF_K} is annotated <class 'int'>, which no kernel takes"),
    "a predicate": ("def k(x: pd.pred): pass", f"parameter `x` {OF_K} is annotated pred, which no kernel takes"),
    "a default": ("def k(x: u32 = 3): pass", f"parameter `x` {OF_K} has a default"),
    "any number": ("def k(*x): pass", f"`*x` {OF_K}: the number of its parameters must be known"),
    "any number of one type": ("def k(*x: u32): pass", f"`*x` {OF_K}: the number of its parameters must be known"),
    "a name of launches": (
        "def k(x: u32, *, stream=None): pass",
        "kernel `k` has a parameter `stream`, which launches use for themselves",
    ),
    "an unknown name": (
        "def k(x: 'f33'): pass",
        f"the annotation `f33` {UNRESOLVED}: NameError: name 'f33' is not defined",
    ),
    "a pointer to nothing": (
        "def k(x: 'ptr[int]'): pass",
        "parameter `x` of kernel `k`: ptr[…] takes a type of ptxdsl; found int",
    ),
    "a pointer without an element": (
        "def k(x: ptr): pass",
        f"parameter `x` {OF_K} is annotated ptr, which no kernel takes",
    ),
}


@pytest.mark.parametrize("source, text", DEFINITIONS.values(), ids=DEFINITIONS)
def test_what_cannot_be_a_kernel_is_refused_where_it_is_defined(source, text):
    code = compile(f"@pd.kernel\n{source}\n", "definition.py", "exec", dont_inherit=True)
    assert first_line(lambda: exec(code, {"pd": pd, "ptr": ptr, "u32": u32})) == text


POINTERS = {
    "float": "did you mean `ptr[f32]`?",
    "int": "did you mean `ptr[s32]`?",
    "bool": "did you mean `ptr[u8]`?",
    "np.float16": "did you mean `ptr[f16]`?",
    "np.dtype('int64')": "did you mean `ptr[s64]`?",
    "'bf16'": "did you mean `ptr[bf16]`?",
    "list": "write the element type, such as `ptr[f32]`",
    "np.complex64": "write the element type, such as `ptr[f32]`",
    "3": "write the element type, such as `ptr[f32]`",
}


@pytest.mark.parametrize("element, text", POINTERS.items())
def test_a_pointer_to_what_is_no_type_is_refused_with_the_type_that_is_meant(element, text):
    with pytest.raises(pd.TraceError, match=re.escape("ptr[…] takes a type of ptxdsl; found ")) as error:
        eval(f"ptr[{element}]", {"ptr": ptr, "np": np})
    assert error.value.help == text


def test_the_text_of_a_refused_pointer():
    with pytest.raises(pd.TraceError) as error:
        exec(compile("x = ptr[float]", "text.py", "exec"), {"ptr": ptr})
    assert str(error.value) == (
        "ptr[…] takes a type of ptxdsl; found float\n  text.py:1\n  help: did you mean `ptr[f32]`?"
    )
    assert help_of(lambda: ptr[f32, "texture"]) == (
        "it is one of const, global, local, param, shared, shared::cta, shared::cluster, generic"
    )


def test_parameters_are_not_given_by_name():
    x = np.ones(4, np.float32)
    assert first_line(lambda: saxpy[1, 4](x, y=x, a=1.0, n=4)) == (
        "`y` is a parameter of kernel `saxpy`, which takes constants alone by name"
    )
    assert help_of(lambda: saxpy[1, 4](x, y=x, a=1.0, n=4)) == (
        "give parameters in their order, at the launch: `saxpy[grid, block](x, y, a, n)`"
    )
    assert help_of(lambda: saxpy[1, 4](x, x, 1.0, 4, tile=3)) == (
        "it has none: it is launched with its parameters alone"
    )
    assert help_of(lambda: fill[1, 1](x, tile=3)) == "it takes shape, value"


@pytest.mark.parametrize("name", ["exp", "frobnicate", "__wrapped__"])
def test_a_name_that_is_not_there_is_no_attribute(name):
    assert not hasattr(pd, name)
    with pytest.raises(ImportError):
        exec(f"from ptxdsl import {name}")


def test_a_kernel_is_a_function():
    assert first_line(lambda: pd.kernel(3)) == "pd.kernel decorates a function; found 3"
    assert first_line(lambda: pd.kernel(lambda x: None)) == "PTX cannot call a kernel `<lambda>`"

    def _(x: ptr[f32]): ...

    assert first_line(lambda: pd.kernel(_)) == "PTX cannot call a kernel `_`"
    assert help_of(lambda: pd.kernel(_)) == (
        "give the function a name of ASCII letters, digits and underscores, other than `_`"
    )


def test_a_kernel_launched_while_another_is_traced_is_refused():
    x = np.ones(4, np.float32)

    @pd.kernel
    def k(y: ptr[f32]):
        saxpy[1, 4](x, x + 1, 1.0, 4)

    with pytest.raises(LaunchError) as error:
        k.ptx()
    assert error.value.message == "a kernel was launched while another kernel is being traced"


def printed(script, **environment):
    """What a script prints in a process of its own."""
    root = Path(__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root), **environment}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.exhaustive
def test_the_text_of_a_kernel_is_the_same_in_every_process():
    script = "from tests.test_kernel import Shape, fill, saxpy; print(saxpy.ptx(), fill.ptx(shape=Shape(8)))"
    texts = {printed(script, PYTHONHASHSEED=seed) for seed in "12"}
    assert texts == {f"{saxpy.ptx()} {fill.ptx(shape=Shape(8))}\n"}


def test_every_public_name_is_there():
    for name in pd.__all__:
        assert getattr(pd, name) is not None
        assert name in dir(pd)
    with pytest.raises(AttributeError):
        pd.nothing  # noqa: B018


def test_all_names_of_the_package_leave_those_of_python_alone():
    names = {}
    exec("from ptxdsl import *", names)
    assert names["f32"] is f32 and not {"max", "min", "range"} & names.keys()
    assert {"max", "min", "range"} <= set(dir(pd)) and pd.max is not max and pd.range is not range


def test_functions_stay_functions_when_modules_of_their_name_are_imported():
    modules = "import ptxdsl.kernel, ptxdsl.parse, ptxdsl.emulate, ptxdsl as pd"
    names = "pd.kernel, pd.parse, pd.emulate"
    assert printed(f"{modules}; print(*map(callable, ({names})))") == "True True True\n"


def test_importing_the_package_imports_hardly_anything():
    modules = printed("import sys, ptxdsl; print(*sorted(m for m in sys.modules if m.startswith('ptxdsl')))")
    assert modules == "ptxdsl ptxdsl.runtime ptxdsl.runtime.imported\n"


def numbered(types):
    return pd.Parameters.of("Numbers", **{f"of_{n}": type for n, type in enumerate(types)})


@pd.kernel
def add_all(out: ptr[u32], numbers: numbered(types), *, types: tuple = ()):  # noqa: F821
    total = pd.var(u32, 0)
    for number in numbers.flat:
        total += number.to(u32)
    out[0] = total


@pytest.mark.parametrize("types", [(), (u32,), (u32, pd.u16, u32)], ids=len)
def test_a_constant_says_how_many_parameters_there_are(types):
    out = np.zeros(1, np.uint32)
    numbers = range(1, len(types) + 1)
    add_all[1, 1](out, numbered(types)(**{f"of_{n}": number for n, number in enumerate(numbers)}), types=types)
    assert out[0] == sum(numbers)
    names = [p.name for p in add_all.ir(types=types).kernels[0].parameters]
    assert names == ["out", *(f"numbers_of_{n}" for n in range(len(types)))]


def test_so_many_variants_are_remembered(monkeypatch):
    @pd.kernel
    def filled(x: ptr[u32], *, value):
        x[0] = value

    monkeypatch.setattr(sys.modules["ptxdsl.kernel"], "MOST_VARIANTS", 2)
    first, second, third = (filled.variant(None, {"value": value}) for value in (1, 2, 3))
    assert filled.variant(None, {"value": 3}) is third
    assert filled.variant(None, {"value": 2}) is second
    assert filled.variant(None, {"value": 1}) is not first


@pd.kernel(arch="sm_90a")
def fenced():
    pd.ptx.wgmma.fence.sync.aligned()


def test_a_kernel_may_say_what_it_is_made_for(monkeypatch):
    assert ".target sm_90a" in fenced.ptx()
    fenced[1, 128]()
    monkeypatch.setenv("PTXDSL_ARCH", "sm_80")
    with pytest.raises(pd.VerifyError, match="needs sm_90a; this kernel is traced for sm_80"):
        fenced[1, 128]()


@pytest.mark.parametrize("kernel", [saxpy, pd.parse(saxpy.ptx())["saxpy"]], ids=["traced", "parsed"])
def test_dynamic_shared_memory_stands_behind_the_block(kernel):
    x = np.ones(32, np.float32)
    with pytest.raises(Error) as refused:
        kernel[1, 32](x, x.copy(), 2.0, 32, shared_bytes=64)
    assert refused.value.help == ("the bytes of dynamic shared memory follow the block: `saxpy[grid, block, bytes](…)`")
    kernel[1, 32, 64](x, y := x.copy(), 2.0, 32)
    assert (y == 3).all()


@pytest.mark.parametrize("function", [pd.emulate, pd.debug])
def test_an_option_of_the_emulator_that_is_misspelt(function):
    x = np.ones(4, np.float32)
    with pytest.raises(pd.CallError) as refused:
        function(saxpy, 1, 4, x, x, 1.0, 4, max_step=3)
    assert refused.value.message == f"pd.{function.__name__} takes no `max_step`"
    assert refused.value.help == "did you mean `max_steps`?"
    with pytest.raises(pd.TraceError, match="kernel `saxpy` has no constant `tile`"):
        function(saxpy, 1, 4, x, x, 1.0, 4, tile=3)


@pd.kernel(arch="sm_90a", reqntid=128)
def for_hopper():
    pd.ptx.wgmma.fence.sync.aligned()


def test_a_kernel_that_says_what_it_is_made_for_is_asked_for_another_target():
    with pytest.raises(pd.VerifyError) as refused:
        for_hopper.ptx("sm_90")
    assert refused.value.message == "wgmma.fence.sync.aligned needs sm_90a; this kernel is traced for sm_90"
    assert refused.value.help == (
        "`for_hopper` is made for sm_90a: leave out another target, of `arch=` or PTXDSL_ARCH, or run it on such a GPU"
    )


@pd.kernel
def staged(out: ptr[f32], *, stages: int = 4):
    tiles = pd.dynamic_shared(f32, 1024 * stages)
    flag = pd.shared(f32, 32)
    i = pd.tid.x
    tiles[i] = 1.0
    flag[i] = 2.0
    out[i] = tiles[i] + flag[i]


def test_resources_count_static_and_dynamic_shared_memory():
    needs = staged.resources(stages=2)
    assert (needs.shared_bytes, needs.dynamic_shared_bytes, needs.total_shared_bytes) == (128, 8192, 8320)
    assert "8320 bytes of shared memory (128 static, 8192 dynamic), " in str(needs)
    assert staged.resources(stages=3).total_shared_bytes == 128 + 3 * 4096
    assert staged.cubin(stages=2).kernels["staged"] == needs


def test_resources_of_a_kernel_without_dynamic_shared_memory():
    needs = saxpy.resources()
    assert (needs.shared_bytes, needs.dynamic_shared_bytes, needs.total_shared_bytes) == (0, 0, 0)


def test_resources_say_that_the_launch_sets_the_size():
    needs = Resources(registers=32, shared_bytes=128, dynamic_shared_bytes=None)
    assert needs.total_shared_bytes == 128
    assert str(needs) == (
        "32 registers, 128 bytes of shared memory plus the dynamic shared memory of the launch, 0 bytes spilled, "
        "0 bytes of stack, 0 barriers"
    )
