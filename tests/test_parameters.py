"""Groups of parameters: declared, filled by name, read by name, refused with a sentence."""

from __future__ import annotations

import copy
import ctypes
import inspect
import linecache
import pickle
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import booleans, data, integers, sampled_from

import ptxdsl as pd
from ptxdsl import bf16, f16, f32, f64, ptr, u8, u32
from ptxdsl.kernels.product.operands import Major
from ptxdsl.kernels.sm90.boxes import TileBoxes
from ptxdsl.runtime.structs import c_layout
from ptxdsl.trace.parameters import Definition
from ptxdsl.types import TYPES
from tests.machines import MACHINES, machine
from tests.tracing import source_kernel


class Matrix(pd.Parameters):
    data: ptr[f32]
    stride: u32

    def row(self, i):
        """The address of a row."""
        return self.data + i * self.stride


class Problem(pd.Parameters):
    m: u32
    n: u32
    a: Matrix


class Many(pd.Parameters):
    sizes: u32[4]
    matrices: Matrix[2]


@pd.kernel
def scaled(p: Problem, alpha: f32, out: ptr[f32]):
    column, row = pd.tid.x, pd.ctaid.x
    with pd.if_((row < p.m) & (column < p.n)):
        out[row * p.n + column] = alpha * p.a.row(row)[column]


@pd.kernel
def total(p: Many, out: ptr[f32]):
    size = p.sizes[0] + p.sizes[1] + p.sizes[2] + p.sizes[3]
    out[0] = sum(m.data[0] for m in p.matrices) + size.to(f32)


def problem(array=None, **changes):
    array = np.arange(32, dtype=np.float32).reshape(4, 8) if array is None else array
    return Problem(**{"m": 4, "n": 5, "a": Matrix(data=array, stride=8), **changes})


def refusal(function):
    with pytest.raises(pd.Error) as error:
        function()
    return [line for line in str(error.value).splitlines() if " | " not in line and "^" not in line]


def definition(body, base="pd.Parameters", **names):
    """What is refused of a class with these fields."""
    text = f"from __future__ import annotations\nclass Group({base}):\n"
    text += "".join(f"    {line}\n" for line in body.split("; "))
    linecache.cache["group.py"] = (len(text), None, text.splitlines(keepends=True), "group.py")
    scope = {"pd": pd, "f32": f32, "u32": u32, "ptr": ptr, "Matrix": Matrix, "Problem": Problem, **names}
    return refusal(lambda: exec(compile(text, "group.py", "exec"), scope))


@pytest.mark.parametrize("name", MACHINES)
def test_fields_are_filled_and_read_by_name(name):
    values, out = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros((4, 5), np.float32)
    on = machine(name)
    result = on.array(out)
    scaled[4, 32](problem(on.array(values)), 2.0, result)
    assert np.array_equal(on.values(result), 2 * values[:, :5])


@pytest.mark.parametrize("name", MACHINES)
def test_arrays_of_numbers_and_of_groups(name):
    on = machine(name)
    one, two, out = (on.array(np.full(1, value, np.float32)) for value in (0.5, 0.25, 0))
    matrices = [Matrix(data=one, stride=0), Matrix(data=two, stride=0)]
    for sizes in ((1, 2, 3, 4), [1, 2, 3, 4], np.array([1, 2, 3, 4])):
        total[1, 1](Many(sizes=sizes, matrices=matrices), out)
        assert on.values(out)[0] == 10.75


def test_each_field_is_a_parameter_of_its_own():
    entry = scaled.ptx().partition(".visible .entry scaled(\n")[2].partition("\n)")[0]
    assert [line.strip(" ,") for line in entry.splitlines()] == [
        ".param .u32 p_m", ".param .u32 p_n", ".param .u64 p_a_data", ".param .u32 p_a_stride",
        ".param .f32 alpha", ".param .u64 out",
    ]  # fmt: skip
    names = [v.name for v in total.ir().kernels[0].parameters]
    assert names[:5] == ["p_sizes_0", "p_sizes_1", "p_sizes_2", "p_sizes_3", "p_matrices_0_data"]
    assert scaled.cubin("sm_90").image[:4] == b"\x7fELF"


def test_an_instance_has_its_values_flat():
    array = np.zeros(1, np.float32)
    given = Many(sizes=(1, 2, 3, 4), matrices=[Matrix(data=array, stride=n) for n in (5, 6)])
    assert given.flat[:4] == (1, 2, 3, 4)
    assert given.flat[4] is array and given.flat[5:] == (5, array, 6)
    assert given.flat is given.flat


def test_types_may_depend_on_constants():
    def parameters(dtype, extras):
        return pd.Parameters.of("Operands", x=ptr[dtype], scale=dtype, **{f"e{n}": u32 for n in range(extras)})

    @pd.kernel
    def k(p: parameters(dtype, extras), *, dtype=f32, extras: int = 0):  # noqa: F821
        p.x[0] = p.x[0] * p.scale
        for n in range(extras):
            p.x[n + 1] = getattr(p, f"e{n}").to(dtype)

    x = np.ones(3, np.float64)
    k[1, 1](parameters(f64, 2)(x=x, scale=3, e0=4, e1=5), dtype=f64, extras=2)
    assert x.tolist() == [3, 4, 5]
    assert k.ptx(dtype=f16).count(".param") == 4
    assert refusal(lambda: k[1, 1](parameters(f64, 2)(x=x, scale=3, e0=4, e1=5))) == [
        "`p` expects Operands, got an Operands with other fields (x: ptr[f64], scale: f64, e0: u32, e1: u32)",
        "  help: write Operands(x=…, scale=…)",
    ]


def test_classes_of_computed_fields_are_made_once():
    fields = {"x": ptr[f32], "sizes": u32[3], "a": Matrix}
    assert pd.Parameters.of("P", **fields) is pd.Parameters.of("P", **fields)
    assert pd.Parameters.of("P", x=u32) is not pd.Parameters.of("Q", x=u32)
    assert pd.Parameters.of("P", x=u32) is not pd.Parameters.of("P", x=f32)
    assert Matrix.of("Wide", columns=u32)(data=None, stride=1, columns=2).flat == (None, 1, 2)


def test_maps_whose_boxes_lie_in_another_order_are_other_fields():
    """Their texts are the same."""
    rows, columns = (TileBoxes(bf16, 64, 64, major).map for major in Major)
    assert str(rows) == str(columns)
    assert pd.Parameters.of("P", a=rows) is not pd.Parameters.of("P", a=columns)


def test_another_class_with_the_same_fields_will_do():
    class Twin(pd.Parameters):
        data: ptr[f32]
        stride: u32

    out = np.zeros((4, 5), np.float32)
    array = np.ones((4, 8), np.float32)
    scaled[4, 32](problem(a=Twin(data=array, stride=8)), 1.0, out)
    assert (out == 1).all()


def test_a_class_inherits_fields_first_and_methods():
    class Tall(Matrix):
        rows: u32
        KIND: ClassVar[str] = "tall"

    tall = Tall(data=None, stride=3, rows=7)
    assert tall.flat == (None, 3, 7) and tall.KIND == "tall"
    assert list(inspect.signature(Tall).parameters) == ["data", "stride", "rows"]

    @pd.kernel
    def k(p: Tall):
        p.row(1)[0] = p.rows.to(f32)

    x = np.zeros((2, 3), np.float32)
    k[1, 1](tall.with_(data=x))
    assert x[1, 0] == 7


def test_local_classes_and_real_types():
    names = {"u32": u32}
    local = source_kernel("x[0] = p.i.to(f32)", head="x: ptr[f32], p: P", P=pd.Parameters.of("P", i=names["u32"]))
    x = np.zeros(1, np.float32)
    local[1, 1](x, pd.Parameters.of("P", i=u32)(i=9))
    assert x[0] == 9


def test_equality_hash_and_representation():
    array = np.ones((2, 3), np.float32)
    one = Matrix(data=array, stride=8)
    assert one == Matrix(data=array, stride=8) and hash(one) == hash(Matrix(data=array, stride=8))
    assert one != Matrix(data=array.copy(), stride=8)
    assert one != Matrix(data=array, stride=8.0) and Matrix(data=0, stride=0.0) != Matrix(data=0, stride=-0.0)
    assert repr(problem(array)) == "Problem(m=4, n=5, a=Matrix(data=<ndarray (2, 3)>, stride=8))"
    assert str(Problem) == "Problem" and repr(Matrix(data=None, stride=1)) == "Matrix(data=None, stride=1)"


def test_instances_and_classes_are_pickled_and_copied():
    given = problem()
    for again in (pickle.loads(pickle.dumps(given)), copy.deepcopy(given)):
        assert type(again) is Problem and again.m == 4 and np.array_equal(again.a.data, given.a.data)
        assert again.flat[2] is again.a.data
    computed = pd.Parameters.of("P", x=bf16, a=Matrix[2])
    assert pickle.loads(pickle.dumps(computed)) is computed


def test_groups_are_made_and_passed_on_in_a_kernel():
    @pd.kernel
    def k(p: Problem, out: ptr[f32]):
        moved = p.with_(a=p.a.with_(data=p.a.data + 1), m=p.m + 1)
        other = Matrix(data=moved.a.data, stride=moved.a.stride)
        for i in pd.range(2):
            out[i] = other.row(i)[0] + moved.m.to(f32)

    out = np.zeros(2, np.float32)
    k[1, 1](problem(), out)
    assert out.tolist() == [1 + 5, 9 + 5]


def test_a_parameter_that_stands_for_others_is_checked_by_their_paths():
    out = np.zeros((4, 5), np.float32)
    assert refusal(lambda: scaled[4, 32](problem(np.zeros((4, 8))), 1.0, out)) == [
        "`p.a.data` expects ptr[f32], got a numpy array of f64 with shape (4, 8)", "  help: convert it to float32 first",
    ]  # fmt: skip
    assert (
        refusal(lambda: scaled[4, 32](problem(m=-1), 1.0, out))[0]
        == "`p.m` expects u32; -1 is out of range (0 to 4294967295)"
    )
    shared = np.zeros(32, np.float32)
    assert refusal(lambda: scaled[4, 32](problem(shared), 1.0, shared[8:28])) == [
        "`out`, which scaled writes, shares memory with `p.a.data`",
        "  help: pass separate memory for the output, since threads run in no fixed order; if the overlap is intended, launch with overlap=True",
    ]


def test_which_fields_a_kernel_writes_through_is_known():
    @pd.kernel
    def k(p: Problem, q: Problem):
        q.a.data[0] = p.a.data[0]

    array = np.zeros((4, 8), np.float32)
    array.flags.writeable = False
    k[1, 1](problem(array), problem())
    assert refusal(lambda: k[1, 1](problem(), problem(array))) == [
        "`q.a.data` is read-only, but k writes it", "  help: pass a writable copy",
    ]  # fmt: skip


def test_findings_name_the_field():
    report = pd.emulate(scaled, 4, 32, problem(n=9), 1.0, np.zeros((4, 9), np.float32))
    assert report.findings[0].kind == "out-of-bounds"
    assert "p.a.data" in report.findings[0].message


INSTANCES = {
    "missing": (
        lambda: Problem(m=1),
        ["Problem is made without its fields `n`, `a`", "  help: write Problem(m=…, n=…, a=…)"],
    ),
    "by position": (
        lambda: Matrix(1, 2),
        ["Matrix takes its fields by name; 2 given by position", "  help: write Matrix(data=…, stride=…)"],
    ),
    "unknown": (
        lambda: Matrix(data=1, strid=2),
        ["Matrix has no field `strid`", "  help: did you mean `stride`?"],
    ),
    "unknown in with_": (
        lambda: problem().with_(k=2),
        ["Problem has no field `k`", "  help: its fields: m, n, a"],
    ),
    "a tuple for a group": (
        lambda: problem(a=(1, 2)),
        ["field `a` of Problem expects Matrix, got a tuple", "  help: write Matrix(data=…, stride=…)"],
    ),
    "too few elements": (
        lambda: Many(sizes=(1, 2), matrices=()),
        ["field `sizes` of Many expects u32[4], got 2 elements", "  help: pass a tuple of 4"],
    ),
    "no elements": (
        lambda: Many(sizes=3, matrices=()),
        ["field `sizes` of Many expects u32[4], got 3", "  help: pass a tuple of 4"],
    ),
    "an element that is no group": (
        lambda: Many(sizes=(1, 2, 3, 4), matrices=(None, 2)),
        ["field `matrices[0]` of Many expects Matrix, got None", "  help: write Matrix(data=…, stride=…)"],
    ),
    "set": (
        lambda: setattr(problem(), "m", 3),
        [
            "field `m` of Problem is set; the parameters of a launch are immutable",
            "  help: keep what changes in a variable, `m = pd.var(u32, p.m)`; `p.with_(m=…)` is another Problem",
        ],
    ),
    "set a group": (
        lambda: setattr(problem(), "a", 3),
        [
            "field `a` of Problem is set; the parameters of a launch are immutable",
            "  help: `p.with_(a=…)` is another Problem",
        ],
    ),
    "deleted": (
        lambda: delattr(problem(), "m"),
        [
            "field `m` of Problem is set; the parameters of a launch are immutable",
            "  help: keep what changes in a variable, `m = pd.var(u32, p.m)`; `p.with_(m=…)` is another Problem",
        ],
    ),
    "set in the class": (
        lambda: setattr(Matrix, "stride", 3),
        [
            "field `stride` of Matrix is set; the parameters of a launch are immutable",
            "  help: keep what changes in a variable, `stride = pd.var(u32, p.stride)`; `p.with_(stride=…)` is another Matrix",
        ],
    ),
    "a tuple for a parameter": (
        lambda: scaled[1, 1]((1, 2, 3, 4), 2.0, np.zeros(1, np.float32)),
        ["`p` expects Problem, got a tuple", "  help: write Problem(m=…, n=…, a=…)"],
    ),
    "another class": (
        lambda: scaled[1, 1](Matrix(data=None, stride=1), 2.0, np.zeros(1, np.float32)),
        ["`p` expects Problem, got a Matrix", "  help: write Problem(m=…, n=…, a=…)"],
    ),
    "the fields themselves": (
        lambda: scaled[1, 1](1, 2, None, 4, 2.0, np.zeros(1, np.float32)),
        ["scaled takes 3 arguments, got 6", "  help: call it with (p: Problem, alpha: f32, out: ptr[f32])"],
    ),
}


@pytest.mark.parametrize("case", INSTANCES)
def test_instances_that_are_refused(case):
    function, expected = INSTANCES[case]
    assert refusal(function) == expected


DEFINITIONS = {
    "data = f32": ["`data` of Group is set to f32", "  help: annotate it: `data: f32`"],
    "n: u32 = 3": [
        "field `n` of Group has a default",
        "  help: leave it out: each launch gives every field; what is usual can be filled in by a function of yours",
    ],
    "p: pd.pred": [
        "field `p` of Group is annotated pred, which no kernel takes",
        "  help: annotate ptr[f32] and the like for arrays, u32 and the like for numbers, u32[4] for four of them",
    ],
    "n: int": ["field `n` of Group is annotated int, which no kernel takes", "  help: did you mean `n: s32`?"],
    "p: pd.Parameters": [
        "field `p` of Group is annotated Parameters, which no kernel takes",
        "  help: annotate ptr[f32] and the like for arrays, u32 and the like for numbers, u32[4] for four of them",
    ],
    "n: u32[0]": [
        "field `n` of Group: u32[0] has an invalid length",
        "  help: the length of an array is an int of at least 1; for any length use a pointer, such as ptr[f32]",
    ],
    "n: (u32, 4)": [
        "field `n` of Group is annotated (u32, 4), which no kernel takes",
        "  help: did you mean `n: u32[4]`?",
    ],
    "next: Group": [
        "field `next` of Group is Group itself, which would never end",
        "  help: point to others by ptr[u64], or name a group that is defined before",
    ],
    "x: ptr[Later]": [
        "the annotation `ptr[Later]` of field `x` of Group cannot be resolved: NameError: name 'Later' is not defined",
        "  help: it may name types and groups that are known where the class is defined",
    ],
    "x: ptr[float]": ["field `x` of Group: ptr[…] takes a type of ptxdsl; found float", "  help: did you mean `ptr[f32]`?"],
    "of: u32": ["field `of` of Group is what groups use for themselves", "  help: give it another name"],
    "_n: u32": ["field `_n` of Group begins with an underscore", "  help: give it another name"],
    "a: Matrix; a_data: u32": [
        "fields `a.data` and `a_data` of Group would both be `a_data` in PTX", "  help: rename one of them",
    ],
}  # fmt: skip


@pytest.mark.parametrize("body", DEFINITIONS)
def test_classes_that_are_refused(body):
    assert definition(body) == DEFINITIONS[body]


def test_a_field_that_is_inherited_with_another_type():
    assert definition("stride: f32", base="Matrix") == [
        "field `stride` of Group has two types: it inherits a field of that name", "  help: rename one of them",
    ]  # fmt: skip


def test_names_that_python_cannot_read_are_refused():
    assert refusal(lambda: pd.Parameters.of("P", **{"class": u32})) == [
        "field `class` of P has a name that Python cannot read", "  help: give it another name",
    ]  # fmt: skip
    assert refusal(lambda: Definition("P", (pd.Parameters,), {}, align=3)) == [
        "P has align=3", "  help: align is a power of two of at most 128 bytes",
    ]  # fmt: skip


KERNELS = {
    "p.mm": ["Problem has no field `mm`", "  help: did you mean `m`?"],
    "p.a.weight": ["Matrix has no field `weight`", "  help: its fields: data, stride"],
    "p.m = p.m + 1": [
        "field `m` of Problem is set; the parameters of a launch are immutable",
        "  help: keep what changes in a variable, `m = pd.var(u32, p.m)`; `p.with_(m=…)` is another Problem",
    ],
    "p.m += 1": [
        "`+=` on `p.m`, which is not a variable",
        "  help: write `p.m = p.m + …`, or keep it in a variable, `v = pd.var(u32, …)`; pd.ptx.red and pd.ptx.atom update an element that threads share",
    ],
    "p.a.data += 1": [
        "`+=` on `p.a.data`, which is not a variable",
        "  help: write `p.a.data = p.a.data + …`, or keep it in a variable, `v = pd.var(ptr[f32], …)`; pd.ptx.red and pd.ptx.atom update an element that threads share",
    ],
    "t = p.m.to(pd.f32); p.a.with_(stride=t)": [
        "field `stride` of Matrix is u32; `t` is f32",
        "  help: convert it: `t.to(u32)`",
    ],
    "p.a.with_(stride=x)": ["field `stride` of Matrix is u32; `x` is ptr[f32]", "  help: give it a u32"],
    "p.m + x[0]": [
        "`+` of two types: `p.m` is u32, `x[0]` is f32",
        "  help: convert one of them: `p.m.to(f32)` or `x[0].to(u32)`",
    ],
}


@pytest.mark.parametrize("body", KERNELS)
def test_kernels_that_are_refused(body):
    kernel = source_kernel(body, head="p: Problem, x: ptr[f32]", Problem=Problem)
    assert refusal(kernel.ptx) == KERNELS[body]


def test_parameters_that_would_be_one_in_ptx():
    assert refusal(lambda: source_kernel("pass", head="p: Problem, p_m: u32", Problem=Problem)) == [
        "parameters `p.m` and `p_m` of kernel `k` would both be `p_m` in PTX", "  help: rename one of them",
    ]  # fmt: skip
    assert refusal(lambda: source_kernel("pass", head="p: Parameters", Parameters=pd.Parameters)) == [
        "parameter `p` of kernel `k` is annotated Parameters, which no kernel takes",
        "  help: derive a class from it, and annotate its fields",
    ]


def test_attributes_that_are_not_there_are_no_errors_of_ours_to_python():
    assert not hasattr(problem(), "mm") and getattr(problem(), "mm", 1) == 1


class Vector(pd.Parameters):
    data: ptr[f32]
    n: u32


class Scale(pd.Parameters):
    factor: f32
    shift: f16[3]


class Params(pd.Parameters):
    """In C: struct { float factor; half shift[3]; } scale; unsigned char flag; struct { float *data; unsigned n; } y, x;"""

    scale: Scale
    flag: u8
    y: Vector
    x: Vector


SCALE = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry scale(.param .align 8 .b8 p[48])
{
    .reg .u64 %x, %y, %a, %b;
    .reg .u32 %i, %n;
    .reg .f32 %v, %f, %s;
    .reg .b16 %h;
    .reg .u16 %c;
    .reg .pred %out;
    ld.param.f32 %f, [p];
    ld.param.b16 %h, [p+6];
    ld.param.u8 %c, [p+12];
    ld.param.u64 %y, [p+16];
    ld.param.u64 %x, [p+32];
    ld.param.u32 %n, [p+40];
    cvt.f32.f16 %s, %h;
    mov.u32 %i, %tid.x;
    setp.ge.u32 %out, %i, %n;
    @%out ret;
    cvta.to.global.u64 %x, %x;
    mad.wide.u32 %a, %i, 4, %x;
    ld.global.f32 %v, [%a];
    fma.rn.f32 %v, %v, %f, %s;
    cvt.rn.f32.u16 %s, %c;
    add.f32 %v, %v, %s;
    cvta.to.global.u64 %y, %y;
    mad.wide.u32 %b, %i, 4, %y;
    st.global.f32 [%b], %v;
    ret;
}
"""


def params(x, y, n=4, **changes):
    scale = Scale(factor=2.0, shift=(0.0, 0.5, 0.0))
    return Params(**{"scale": scale, "flag": 3, "y": Vector(data=y, n=4), "x": Vector(data=x, n=n), **changes})


@pytest.mark.parametrize("name", MACHINES)
def test_a_struct_of_parsed_ptx_takes_a_group_with_arrays_in_it(name):
    on = machine(name)
    x, y = on.array(np.arange(4, dtype=np.float32)), on.array(np.zeros(4, np.float32))
    pd.parse(SCALE)["scale"][1, 32](params(x, y))
    assert on.values(y).tolist() == [3.5, 5.5, 7.5, 9.5]


def test_structs_lie_as_in_c():
    layout = c_layout(Params)
    assert (layout.size, layout.align) == (48, 8)
    assert [str(member) for member in layout.members] == [
        "scale.factor at 0", "scale.shift[0] at 4", "scale.shift[1] at 6", "scale.shift[2] at 8", "flag at 12",
        "y.data at 16", "y.n at 24", "x.data at 32", "x.n at 40",
    ]  # fmt: skip


class Aligned(pd.Parameters, align=16):
    x: f32[4]


def test_alignment_may_be_more_than_that_of_the_members():
    assert c_layout(Aligned)[:2] == (16, 16)
    assert c_layout(pd.Parameters.of("P", n=u32, v=Aligned))[:2] == (32, 16)
    assert [m.offset for m in c_layout(pd.Parameters.of("P", n=u8, m=pd.Parameters.of("Q", a=u32, b=u8)[2])).members] == [
        0, 4, 8, 12, 16,
    ]  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(data())
def test_the_layout_is_that_of_the_c_compiler(data):
    """As ctypes, which follows it."""
    kinds = {
        "u8": ctypes.c_uint8,
        "u16": ctypes.c_uint16,
        "f32": ctypes.c_float,
        "u64": ctypes.c_uint64,
        "f64": ctypes.c_double,
    }

    def draw(depth):
        fields, mirrored = {}, []
        for n in range(data.draw(integers(1, 4))):
            name = data.draw(sampled_from(sorted(kinds)))
            ours, theirs = draw(depth - 1) if depth and data.draw(booleans()) else (TYPES[name], kinds[name])
            count = data.draw(integers(0, 3))
            fields[f"f{n}"] = ours[count] if count else ours
            mirrored.append((f"f{n}", theirs * count if count else theirs))
        return pd.Parameters.of("P", **fields), type("S", (ctypes.Structure,), {"_fields_": mirrored})

    ours, theirs = draw(2)
    layout = c_layout(ours)
    assert (layout.size, layout.align) == (ctypes.sizeof(theirs), ctypes.alignment(theirs))
    for field in ours.fields_:
        first = next(m for m in layout.members if m.path.partition(".")[0].partition("[")[0] == field.name)
        assert first.offset == getattr(theirs, field.name).offset


def test_structs_that_are_refused():
    x = np.zeros(4, np.float32)
    scale = pd.parse(SCALE)["scale"]
    assert refusal(lambda: scale[1, 32](Vector(data=x, n=4))) == [
        "`p` expects a struct of 48 bytes, but Vector has 16 bytes", "  help: its C layout is ptr[f32] data at 0, u32 n at 8",
    ]  # fmt: skip
    assert refusal(lambda: scale[1, 32](params(x.astype(np.float64), x)))[0] == (
        "`p.x.data` expects ptr[f32], got a numpy array of f64 with shape (4,)"
    )
    assert (
        refusal(lambda: scale[1, 32](params(x, x, flag=256)))[0]
        == "`p.flag` expects u8; 256 is out of range (0 to 255)"
    )
    assert refusal(lambda: scale[1, 32](params(x[1:], x[:3], n=3)))[0] == (
        "`p.y.data`, which scale writes, shares memory with `p.x.data`"
    )
    fixed = x.copy()
    fixed.flags.writeable = False
    scale[1, 32](params(fixed, x))
    assert refusal(lambda: scale[1, 32](params(x, fixed)))[0] == "`p.y.data` is read-only, but scale writes it"


def test_findings_in_structs_name_the_field():
    report = pd.emulate(pd.parse(SCALE)["scale"], 1, 32, params(np.zeros(4, np.float32), np.zeros(9, np.float32), n=9))
    assert report.findings[0].message.startswith("ld.global.f32 reads 4 bytes at p.x.data[4]")
