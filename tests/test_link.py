"""`pd.link`: kernels and modules of others as one program, and what cannot be one."""

import pickle
import shutil
import subprocess
from pathlib import PurePosixPath

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config, f16, f32, pred, ptr, s16, s32, u32

# As nvcc compiles these functions with -rdc=true.
DEVICE = """
struct Two { float a; int b; };
__constant__ float weights[2] = {0.5f, 0.25f};
__device__ unsigned calls;
extern "C" __device__ float smooth(const float* x, unsigned i) {
    atomicAdd(&calls, 1);
    return weights[0] * x[i] + weights[1] * x[i + 1];
}
extern "C" __device__ __noinline__ Two two(short a, bool b) { return Two{a + 0.5f, b ? 1 : -1}; }
"""
PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .const .align 4 .b8 weights[8] = {0, 0, 0, 63, 0, 0, 128, 62};
.visible .global .align 4 .u32 calls;
.visible .func (.param .b32 func_retval0) smooth(.param .b64 smooth_param_0, .param .b32 smooth_param_1)
{
    .reg .f32 %f<8>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [smooth_param_0];
    ld.param.u32 %r1, [smooth_param_1];
    mov.u64 %rd2, calls;
    atom.global.add.u32 %r2, [%rd2], 1;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.f32 %f1, [%rd4];
    ld.f32 %f2, [%rd4+4];
    ld.const.f32 %f3, [weights];
    ld.const.f32 %f4, [weights+4];
    mul.f32 %f5, %f1, %f3;
    fma.rn.f32 %f6, %f2, %f4, %f5;
    st.param.f32 [func_retval0], %f6;
    ret;
}
.visible .func (.param .align 4 .b8 func_retval0[8]) two(.param .b32 two_param_0, .param .b32 two_param_1)
{
    .reg .pred %p<2>;
    .reg .b16 %rs<3>;
    .reg .f32 %f<3>;
    .reg .b32 %r<2>;
    ld.param.s8 %rs2, [two_param_1];
    ld.param.u16 %rs1, [two_param_0];
    cvt.rn.f32.s16 %f1, %rs1;
    setp.eq.s16 %p1, %rs2, 0;
    add.f32 %f2, %f1, 0f3F000000;
    selp.b32 %r1, -1, 1, %p1;
    st.param.f32 [func_retval0+0], %f2;
    st.param.b32 [func_retval0+4], %r1;
    ret;
}
"""
smooth = pd.extern("smooth", (ptr[f32], u32), f32)
two = pd.extern("two", {"a": s16, "b": pred}, (f32, s32))
FACTOR = 2.0


@pd.kernel
def smoothed(x: ptr[f32], y: ptr[f32], n: u32, *, offset: float = 0.0):
    i = pd.tid.x
    with pd.if_(i < n):
        a, b = two(i.to(s16) - 2, i > 2)
        y[i] = smooth(x, i) + a * b.to(f32) * FACTOR + offset


@pd.kernel
def copied(x: ptr[f32], y: ptr[f32], n: u32):
    table = pd.constant([3.0, 4.0], f32)
    y[pd.tid.x] = smooth(x, pd.tid.x) * table[0]


@pd.function
def doubled(x: f32) -> f32:
    return x * 2.0


def expected(count, factor=2.0, offset=0.0):
    i = np.arange(count)
    squares = np.arange(count + 1) ** 2
    return squares[:-1] * 0.5 + squares[1:] * 0.25 + (i - 1.5) * np.where(i > 2, 1, -1) * factor + offset


def run(kernel, count=8):
    x, y = np.arange(count + 1, dtype=np.float32) ** 2, np.zeros(count, np.float32)
    kernel[1, count](x, y, count)
    return y


@pytest.fixture(params=[pytest.param("emulator"), pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    with config.using(device=request.param):
        yield request.param


def test_functions_of_another_module_are_called_and_share_variables(device):
    program = pd.link(smoothed, copied, PTX)
    assert program.kernels == ("smoothed", "copied")
    assert program.variables == ("table", "weights", "calls")
    assert (run(program["smoothed"]) == expected(8)).all()
    squares = np.arange(9.0) ** 2
    assert (run(program["copied"]) == 3 * (squares[:-1] * 0.5 + squares[1:] * 0.25)).all()
    assert program["calls"].read() == 16
    program["weights"].write(np.array([0, 0, 0, 0, 0, 0, 128, 63], np.uint8))  # 0.0 and 1.0
    assert (run(program["copied"]) == 3 * squares[1:]).all()


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_functions_of_nvcc_are_called(device, tmp_path):
    (tmp_path / "device.cu").write_text(DEVICE)
    command = ["nvcc", "-arch=sm_80", "-ptx", "-rdc=true", "device.cu", "-o", "device.ptx"]
    subprocess.run(command, cwd=tmp_path, check=True)
    module = pd.parse((tmp_path / "device.ptx").read_bytes())
    assert (run(pd.link(smoothed, module)["smoothed"]) == expected(8)).all()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_it_becomes_one_cubin(arch):
    cubin = pd.link(smoothed, copied, PTX).cubin(arch)
    assert cubin.arch == arch
    assert set(cubin.kernels) == {"smoothed", "copied"}


def test_a_program_is_text_that_parses_to_itself():
    text = pd.link(smoothed, PTX).ptx()
    assert pd.parse(text).ptx() == text
    assert text.count("smooth(") == 2  # the declaration of the kernel, and the definition


def test_constants_are_chosen_when_it_is_linked():
    program = pd.link(smoothed, copied, PTX, offset=100.0)
    assert (run(program["smoothed"]) == expected(8, offset=100.0)).all()


def test_a_kernel_that_reads_something_else_is_joined_anew(monkeypatch):
    program = pd.link(smoothed, PTX)
    run(program["smoothed"])
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert (run(program["smoothed"]) == expected(8, factor=3.0)).all()


def test_a_program_is_pickled():
    program = pickle.loads(pickle.dumps(pd.link(smoothed, PTX)))
    assert (run(program["smoothed"]) == expected(8)).all()


def test_kernels_of_ptx_call_functions_of_python():
    caller = pd.parse("""
        .version 7.0
        .target sm_80
        .address_size 64
        .extern .func (.param .b32 r) doubled(.param .b32 x);
        .visible .entry k(.param .u64 out)
        {
            .reg .b64 %o;
            .reg .f32 %f;
            .param .b32 a;
            .param .b32 b;
            ld.param.u64 %o, [out];
            ld.global.f32 %f, [%o];
            st.param.f32 [a], %f;
            call (b), doubled, (a);
            ld.param.f32 %f, [b];
            st.global.f32 [%o], %f;
            ret;
        }
    """)
    x = np.array([4], np.float32)
    pd.link(caller["k"], doubled)["k"][1, 1](x)
    assert x[0] == 8


HEADER = ".version 7.0\n.target sm_80\n.address_size 64\n"
HELPER = ".func (.param .b32 r) helper() { .reg .b32 %r; mov.u32 %r, VALUE; st.param.b32 [r], %r; ret; }\n"
ENTRY = """
.visible .entry NAME(.param .u64 out)
{
    .reg .b64 %o; .reg .b32 %r; .param .b32 b;
    ld.param.u64 %o, [out];
    call (b), helper;
    ld.param.b32 %r, [b];
    st.global.u32 [%o], %r;
    ret;
}
"""


def test_names_that_modules_keep_to_themselves_are_made_distinct():
    parts = [HEADER + HELPER.replace("VALUE", str(n)) + ENTRY.replace("NAME", f"k{n}") for n in (1, 2)]
    program, out = pd.link(*parts), np.zeros(1, np.uint32)
    for n in (1, 2):
        program[f"k{n}"][1, 1](out)
        assert out[0] == n


def test_weak_definitions_may_be_in_many_modules():
    weak = [HEADER + ".weak " + HELPER.replace("VALUE", str(n)) + ENTRY.replace("NAME", f"k{n}") for n in (1, 2)]
    out = np.zeros(1, np.uint32)
    pd.link(*weak)["k2"][1, 1](out)
    assert out[0] == 1
    strong = HEADER + ".visible " + HELPER.replace("VALUE", "3")
    pd.link(*weak, strong)["k2"][1, 1](out)
    assert out[0] == 3


def test_the_driver_provides_printf(capfd):
    @pd.kernel
    def telling(x: ptr[f32]):
        pd.printf("%f\n", smooth(x, 1))

    pd.link(telling, PTX)["telling"][1, 1](np.arange(4, dtype=np.float32))
    assert capfd.readouterr().out == "1.000000\n"


def test_shared_memory_of_a_launch_is_one_array_by_any_name():
    @pd.kernel
    def a(x: ptr[f32]):
        tile = pd.dynamic_shared(f32, 32, align=128)
        tile[pd.tid.x] = x[pd.tid.x]
        x[pd.tid.x] = tile[pd.tid.x] + 1.0

    @pd.kernel
    def b(x: ptr[f32]):
        a(x) if False else None
        tile = pd.dynamic_shared(f32, 16)
        tile[pd.tid.x] = x[pd.tid.x]
        x[pd.tid.x] = tile[pd.tid.x] + 2.0

    program, x = pd.link(a, b), np.zeros(16, np.float32)
    program["a"][1, 16](x)
    program["b"][1, 16](x)
    assert (x == 3).all()
    assert program["a"].variant(None, {}).dynamic_bytes == 128


@pd.kernel
def misspelt(x: ptr[f32]):
    x[0] = pd.extern("smoothe", (ptr[f32], u32), f32)(x, 0)


@pd.kernel
def mistaken(x: ptr[f32]):
    x[0] = pd.extern("smooth", (ptr[f32],), f16)(x).to(f32)


@pd.kernel(arch="sm_90a")
def hopper(x: ptr[f32]):
    pd.ptx.wgmma.fence.sync.aligned()


def helper(x):
    return x


REFUSED = {
    "nobody defines it": (
        (misspelt, PTX),
        "`smoothe` is called by kernel `misspelt` (test_link.py:LINE), but no module of the link defines it",
        "did you mean `smooth` in module 2?",
    ),
    "a variable that nobody defines": (
        (smoothed, PTX, f"{HEADER}.extern .global .u32 later;"),
        "`later` is used by module 3, but no module of the link defines it",
        "pass the module that defines it to pd.link",
    ),
    "two define it": (
        (smoothed, PTX, PTX),
        "`weights` is defined by module 2 and by module 3",
        "omit one of them or rename it; functions defined in many modules are .weak (C++: inline)",
    ),
    "two kernels of a name": (
        (smoothed, smoothed, PTX),
        "`smoothed` is defined by kernel `smoothed` and by kernel `smoothed`",
        "omit one of them or rename it; functions defined in many modules are .weak (C++: inline)",
    ),
    "not as it is declared": (
        (mistaken, PTX),
        "`smooth` is declared by kernel `mistaken` as a function that takes 8 bytes and returns 2 bytes; module 2 defines "
        "a function that takes 8 bytes and 4 bytes and returns 4 bytes",
        "change the declaration to match the definition",
    ),
    "another variable": (
        (smoothed, PTX, f"{HEADER}.extern .global .f64 calls;"),
        "`calls` is declared by module 3 as a .f64 in .global; module 2 defines a .u32 in .global",
        "change the declaration to match the definition",
    ),
    "a module for another target": (
        (smoothed, *(PTX.replace("7.0", "8.6").replace("sm_80", arch) for arch in ("sm_90a", "sm_100a"))),
        "module 2 targets sm_90a; the program is linked for sm_100a",
        'link for arch="sm_90a"',
    ),
    "no kernel": (
        (smoothed, 3),
        "pd.link takes kernels and PTX; found 3",
        "pass kernels, modules from pd.parse, PTX text or functions made with pd.function",
    ),
    "a list": (
        ([3, 4],),
        "pd.link takes kernels and PTX; found [3, 4]",
        "pass the parts one by one: `pd.link(*parts)`",
    ),
    "a Python function": (
        (smoothed, helper),
        f"pd.link takes kernels and PTX; found {helper!r}",
        "decorate it: @pd.kernel or @pd.function above `def helper`",
    ),
    "a path": (
        (smoothed, PurePosixPath("a/smooth.ptx")),
        "pd.link takes kernels and PTX; found PurePosixPath('a/smooth.ptx')",
        "read it: 'smooth.ptx' holds PTX as text, path.read_text()",
    ),
    "nothing": ((), "pd.link needs at least one part", "pass kernels and the modules that define what they call"),
    "a declaration": (
        (smoothed, smooth),
        "pd.link takes kernels and PTX; found <extern function smooth>",
        "give pd.link the module that defines `smooth`; the kernel that calls it knows the declaration",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_one_program_is_refused_by_name(name):
    parts, message, help = REFUSED[name]
    with pytest.raises(pd.LinkError) as refused:
        pd.link(*parts)
    line = misspelt.__wrapped__.__code__.co_firstlineno + 2
    assert refused.value.message == message.replace("LINE", str(line))
    assert refused.value.help == help
    assert refused.value.at.text.strip() == "pd.link(*parts)"


def test_a_text_that_is_no_ptx_is_refused_with_its_place():
    with pytest.raises(pd.ParseError) as refused:
        pd.link(smoothed, HEADER + "nonsense")
    assert str(refused.value.at) == "<module 2>:4"


@pytest.mark.parametrize(
    "use, message",
    [
        (lambda p: p(1), "a linked program cannot be called, since it is not a kernel"),
        (lambda p: p[1, 32], "the index of a linked program must be a name, got (1, 32)"),
        (lambda p: p.smoothed, "the linked program has no attribute `smoothed`"),
    ],
)
def test_a_program_is_no_kernel(use, message):
    program = pd.link(smoothed, PTX)
    with pytest.raises(pd.Error) as refused:
        use(program)
    assert refused.value.message == message
    assert refused.value.help == 'take the kernel first: `program["smoothed"][grid, block](…)`'
    assert refused.value.at.file == __file__
    assert not hasattr(program, "smoothe")


@pytest.mark.parametrize(
    "call, message, help",
    [
        (lambda: pd.extern("f", f32), "pd.extern of `f`: its parameters are f32", "pass a tuple: `(f32,)`"),
        (
            lambda: pd.extern("f", (f32,), returns=f32),
            "pd.extern takes no `returns`; it takes name, parameters and results",
            "it is `results=` here: a type, or a tuple",
        ),
        (
            lambda: pd.link(smoothed, PTX, arch="sm_90"),
            "no kernel of the link has a constant `arch`",
            'set the target on the kernels: @pd.kernel(arch="sm_90a"), or PTXDSL_ARCH',
        ),
    ],
)
def test_what_links_and_declarations_do_not_take(call, message, help):
    with pytest.raises(pd.Error) as refused:
        call()
    assert (refused.value.message, refused.value.help) == (message, help)


def test_an_unknown_constant_is_refused():
    with pytest.raises(pd.LinkError) as refused:
        pd.link(smoothed, PTX, ofset=1.0)
    assert refused.value.message == "no kernel of the link has a constant `ofset`"
    assert refused.value.help == "their constants are offset"


def test_constants_at_a_launch_are_refused():
    with pytest.raises(pd.LaunchError) as refused:
        pd.link(smoothed, PTX)["smoothed"].ptx(offset=1.0)
    assert (
        refused.value.message == "kernel `smoothed` is linked, so its constants are fixed, but the launch sets offset"
    )


def test_a_path_of_a_later_target_makes_the_program_one_of_that_target():
    assert ".target sm_90a" in pd.link(hopper, smoothed, PTX).ptx()
    with pytest.raises(pd.VerifyError) as refused:
        pd.link(hopper, smoothed, PTX).ptx("sm_80")
    assert refused.value.message == "wgmma.fence.sync.aligned needs sm_90a; this kernel is traced for sm_80"


def test_an_unknown_name_is_refused():
    with pytest.raises(pd.Error) as refused:
        pd.link(smoothed, PTX)["smooth"]
    assert refused.value.message == "the linked program has no kernel or variable `smooth`"
    assert refused.value.help == "it has smoothed; its variables are weights, calls"


def test_a_kernel_alone_says_what_it_lacks():
    with pytest.raises(pd.EmulationError) as refused:
        run(smoothed)
    assert refused.value.message == "two is declared but not defined, and the emulator has no such function"
    assert refused.value.help == "link the module that defines it: pd.link(kernel, module)"


@pytest.mark.parametrize(
    "declare, message",
    [
        (lambda: pd.extern("a b", (u32,)), "pd.extern takes the name of a symbol; found 'a b'"),
        (lambda: pd.extern("f", (int,)), "pd.extern of `f`: <class 'int'> cannot be passed to a function"),
        (lambda: pd.extern("f", (), int), "pd.extern of `f`: <class 'int'> cannot be passed to a function"),
    ],
)
def test_what_cannot_be_declared_is_refused(declare, message):
    with pytest.raises(pd.TraceError) as refused:
        declare()
    assert refused.value.message == message


def test_a_name_of_the_kernel_is_no_function_of_another_module():
    @pd.kernel
    def k(smooth: ptr[f32]):
        smooth[0] = pd.extern("smooth", (ptr[f32], u32), f32)(smooth, 0)

    with pytest.raises(pd.TraceError) as refused:
        k.ptx()
    assert refused.value.message == "`smooth` is an external function, and also a name in the kernel `k`"


def test_what_a_function_only_reads_may_be_read_only():
    x, y = np.arange(9, dtype=np.float32) ** 2, np.zeros(8, np.float32)
    x.flags.writeable = False
    pd.link(smoothed, PTX)["smoothed"][1, 8](x, y, 8)
    assert (y == expected(8)).all()


@pd.function
def halved(v: f32) -> f32:
    return v * 0.5


@pd.function
def split(v: f32, n: u32) -> tuple[f32, u32]:
    return v, n


@pytest.mark.parametrize(
    "function, declared, is_words, declaration",
    [
        (halved, ("halved", (u32,), f32), "(u32) -> f32", 'pd.extern("halved", (f32,), f32)'),
        (halved, ("halved", (f32,), u32), "(f32) -> u32", 'pd.extern("halved", (f32,), f32)'),
        (
            split,
            ("split", (f32, u32), (u32, f32)),
            "(f32, u32) -> u32, f32",
            'pd.extern("split", (f32, u32), (f32, u32))',
        ),
    ],
)
def test_a_function_that_is_declared_with_other_types_is_refused(function, declared, is_words, declaration):
    """Which PTX would take: it passes 32 bits."""
    called = pd.extern(*declared)

    @pd.kernel
    def k(x: ptr[f32], n: u32):
        given = [{f32: x[0], u32: n}[type] for type in declared[1]]
        called(*given)

    with pytest.raises(pd.LinkError) as refused:
        pd.link(k, function)
    assert f"kernel `k` declares `{function.name}` as {is_words} (test_link.py:" in refused.value.message
    assert refused.value.message.endswith(f", but the function is {function.interface({})[0].note(None).words}")
    assert refused.value.help == f"write `{declaration}`"


def test_a_function_that_is_declared_as_it_is_links():
    called = pd.extern("halved", (f32,), f32)

    @pd.kernel
    def k(x: ptr[f32]):
        x[pd.tid.x] = called(x[pd.tid.x])

    x = np.full(4, 8, np.float32)
    pd.link(k, halved)["k"][1, 4](x)
    assert (x == 4).all()
