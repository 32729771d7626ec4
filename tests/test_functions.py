"""Device functions: traced once into a `.func`, called and recursive, with typed parameters and results."""

import linecache
from textwrap import dedent

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config, f16, f32, pred, ptr, s16, s32, u32
from tests.tracing import FILE, source_kernel

BEHIND_A_CALL = "\n  called from"


@pytest.fixture(params=[pytest.param("emulator"), pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    with config.using(device=request.param):
        yield request.param


@pd.function
def gcd(a: u32, b: u32) -> u32:
    pd.return_(b == 0, value=a)
    return gcd(b, a % b)


@pd.function
def even(n: u32) -> u32:
    pd.return_(n == 0, value=1)
    return odd(n - 1)


@pd.function
def odd(n: u32) -> u32:
    pd.return_(n == 0, value=0)
    return even(n - 1)


@pd.function
def mixed(x: f16, k: s16, p: pred, q: ptr[f32], s: ptr[u32, "shared"]) -> tuple[f32, s16, pred]:  # noqa: F821
    s[0] = s[0] + 1
    q[0] = x.to(f32)
    return x.to(f32) * 2.0, k + 1, ~p


class Pair(pd.Parameters):
    low: u32
    high: u32


@pd.function
def swapped(pair: Pair) -> Pair:
    return Pair(low=pair.high, high=pair.low)


@pd.function
def scaled(x: f32, *, by: float = 2.0) -> f32:
    return x * by


def test_a_function_calls_itself(device):
    @pd.kernel
    def k(out: ptr[u32], n: u32):
        out[pd.tid.x] = gcd(pd.tid.x, n)

    out = np.zeros(32, np.uint32)
    k[1, 32](out, 12)
    assert out.tolist() == [int(np.gcd(i, 12)) for i in range(32)]


def test_functions_call_each_other(device):
    @pd.kernel
    def k(out: ptr[u32]):
        out[pd.tid.x] = even(pd.tid.x) + 2 * odd(pd.tid.x)

    out = np.zeros(8, np.uint32)
    k[1, 8](out)
    assert out.tolist() == [1, 2] * 4


def test_narrow_numbers_predicates_and_pointers_are_passed_and_returned(device):
    @pd.kernel
    def k(q: ptr[f32], out: ptr[f32]):
        tile, i = pd.shared(u32, 32), pd.tid.x
        tile[i] = i
        doubled, next_, low = mixed(i.to(f32).to(f16), i.to(s16) - 5, i > 3, q + i, tile.address(i))
        out[i * 4], out[i * 4 + 1] = doubled, next_.to(f32)
        out[i * 4 + 2], out[i * 4 + 3] = low.to(f32), tile[i].to(f32)

    q, out = np.zeros(32, np.float32), np.zeros((32, 4), np.float32)
    k[1, 32](q, out)
    i = np.arange(32)
    assert (q == i).all()
    assert (out == np.stack([2 * i, i - 4, i <= 3, i + 1], axis=1)).all()


def test_groups_are_passed_and_returned(device):
    @pd.kernel
    def k(out: ptr[u32]):
        pair = swapped(Pair(low=pd.tid.x, high=pd.tid.x + 10))
        out[pd.tid.x] = pair.low * 100 + pair.high

    out = np.zeros(4, np.uint32)
    k[1, 4](out)
    assert out.tolist() == [1000, 1101, 1202, 1303]


def test_constants_make_functions_of_their_own():
    @pd.kernel
    def k(x: ptr[f32]):
        x[0] = scaled(scaled(x[0]), by=3.0) + scaled(x[0])

    x = np.ones(1, np.float32)
    k[1, 1](x)
    assert x[0] == 8
    assert [line for line in k.ptx().splitlines() if line.startswith(".func")] == [
        ".func (.param .b32 result) scaled(", ".func (.param .b32 result) scaled_1("
    ]  # fmt: skip


def test_the_text_of_a_function_and_its_call():
    @pd.kernel
    def k(out: ptr[u32], n: u32):
        out[0] = gcd(n, 12)

    with config.using(lineinfo="off"):
        text = k.ptx()
    assert text.partition("\n\n")[2].startswith(
        dedent("""\
        .func (.param .b32 result) gcd(
            .param .b32 a,
            .param .b32 b
        )
        {
            .reg .u32 %a, %b, %r0, %r1;
            .reg .pred %p0;
            ld.param.u32 %a, [a];
            ld.param.u32 %b, [b];
            setp.eq.u32 %p0, %b, 0;
            @!%p0 bra $endif;
            st.param.u32 [result], %a;
            ret;
        $endif:
            rem.u32 %r0, %a, %b;
            {
                .param .b32 param;
                st.param.u32 [param], %b;
                .param .b32 param_1;
                st.param.u32 [param_1], %r0;
                .param .b32 param_2;
                call (param_2), gcd, (param, param_1);
                ld.param.u32 %r1, [param_2];
            }
            st.param.u32 [result], %r1;
            ret;
        }
        """)
    )
    assert pd.parse(text).ptx() == text


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_mutual_recursion_assembles(arch):
    @pd.kernel
    def k(out: ptr[u32]):
        out[pd.tid.x] = even(pd.tid.x)

    assert k.resources(arch).registers > 0


SCALE = 3


@pd.function
def by_scale(a: u32) -> u32:
    return a * SCALE


@pd.function
def twice_by_scale(a: u32) -> u32:
    return by_scale(by_scale(a))


def test_what_a_function_reads_of_python_is_part_of_the_kernels_key(monkeypatch):
    @pd.kernel
    def k(out: ptr[u32]):
        out[pd.tid.x] = twice_by_scale(pd.tid.x)

    out = np.zeros(2, np.uint32)
    for scale in (3, 5):
        monkeypatch.setitem(globals(), "SCALE", scale)
        k[1, 2](out)
        assert out[1] == scale * scale


def test_findings_name_the_line_in_the_function():
    @pd.function
    def read(p: ptr[u32]) -> u32:
        return p[40]

    @pd.kernel
    def k(x: ptr[u32]):
        x[0] = read(x)

    (finding,) = pd.emulate(k, 1, 1, np.zeros(4, np.uint32)).findings
    assert finding.kind == "out-of-bounds"
    assert finding.locations[0].text.strip() == "return p[40]"


PUSHED = []
HEAD = """
@pd.function
def push(a: u32) -> u32:
    PUSHED.append(1)
    return a

@pd.function
def rolling(a: u32) -> u32:
    held, total = [0], pd.var(u32, 0)
    for i in pd.range(a):
        total += held[0]
        held[0] += 1
    return total

@pd.function
def none(a: u32) -> u32:
    pd.return_(value=a)

@pd.function
def untold(a: u32):
    return a

@pd.function
def leaving(a: u32) -> u32:
    with pd.if_(a > 3):
        return a
    return a

@pd.function
def roles(a: u32) -> u32:
    with pd.warpgroup(0):
        pass
    return a

@pd.function
def ring(a: u32) -> u32:
    pd.Ring(2, consumers=32)
    return a

@pd.function
def dynamic(a: u32) -> u32:
    return pd.dynamic_shared(u32, 4)[a]

@pd.function
def two(a: u32) -> tuple[u32, u32]:
    return a

@pd.function()
def nothing():
    pass

@pd.function
def lacking(a: u32, *, times: int) -> u32:
    return a * times

outside = pd.extern("outside", (u32, ptr[u32]))

def capturing(x):
    @pd.function
    def inner(a: u32) -> u32:
        return a + x
    return inner(1)

def using(tile):
    @pd.function
    def indexing(a: u32) -> u32:
        return tile[a]
    return indexing(1)
"""
REFUSED = {
    "gcd(n.to(s32), 1)": "`gcd` takes u32 as `a`; found `n.to(s32)`, an s32\n  help: convert it: `n.to(s32).to(u32)`",
    "gcd(1)": "`gcd` takes a: u32 and b: u32; 1 argument given by position\n  help: call it as `gcd(a, b)`",
    "gcd()": "`gcd` takes a: u32 and b: u32; 0 arguments given by position\n  help: call it as `gcd(a, b)`",
    "gcd(1, n, 3)": "`gcd` takes a: u32 and b: u32; 3 arguments given by position\n  help: call it as `gcd(a, b)`",
    "nothing(n)": "`nothing` takes nothing; 1 argument given by position\n  help: call it as `nothing()`",
    "gcd(1, b=n)": "`gcd` takes a: u32 and b: u32; `b` given by name\n  help: call it as `gcd(a, b)`",
    "gcd(1, n, zzz=3)": "`gcd` takes a: u32 and b: u32; `zzz` given by name\n  help: call it as `gcd(a, b)`",
    "scaled(1, bye=3.0)": "`scaled` takes x: f32; `bye` given by name\n  help: call it as `scaled(x, by=…)`",
    "scaled(1, 3.0)": "`scaled` takes x: f32; 2 arguments given by position\n  help: call it as `scaled(x, by=…)`",
    "scaled(1, by=n)": "`by` is a constant of `scaled`; `n`, a u32, has no value while tracing\n"
    "  help: make it a parameter: `by: u32`, before the `*`",
    "lacking(n)": "`lacking` takes a: u32; its constant `times` is missing\n  help: call it as `lacking(a, times=…)`",
    "outside(n, b=3)": "`outside` takes p0: u32 and p1: ptr[u32]; `b` given by name\n  help: call it as `outside(p0, p1)`",
    "outside(n)": "`outside` takes p0: u32 and p1: ptr[u32]; 1 argument given by position\n  help: call it as `outside(p0, p1)`",
    "gcd[1, 32](n)": "`gcd` is a device function, and is not launched\n  help: launch a kernel that calls it",
    "gcd.ptx()": "`gcd` is a device function, which has no `ptx`\n"
    "  help: ask a kernel that calls it",
    "gcd(-1, n)": "`gcd` takes u32 as `a`; -1 does not fit u32\n  help: u32 holds integers from 0 to 4294967295",
    "gcd(1.5, n)": "`gcd` takes u32 as `a`; 1.5 is a float, and u32 is not\n"
    "  help: u32 holds integers from 0 to 4294967295",
    "gcd('1', n)": "`gcd` takes u32 as `a`; found '1'\n  help: take a value of type u32, or a number",
    "gcd(n > 1, n)": "`gcd` takes u32 as `a`; found `n > 1`, a predicate\n  help: convert it: `(n > 1).to(u32)`",
    "gcd(x, n)": "`gcd` takes u32 as `a`; found `x`, a ptr[u32]\n  help: pass an element of it, `p[0]`, or its address, `p.value`",
    "mixed(1, 1, n > 1, n, x)": "`mixed` takes ptr[f32] as `q`; found `n`, a u32\n"
    "  help: pass an address, such as that in a parameter `p: ptr[f32]` of the kernel",
    "swapped(n)": "`swapped` takes a group Pair as `pair`; found `n`, a u32\n  help: make one: `Pair(low=…, high=…)`",
    "mixed(1, 1, n > 1, x, x)": "`mixed` takes ptr[f32] as `q`; found `x`, a ptr[u32]\n"
    "  help: bitcast() changes the element type; an address stays in its state space",
    "push(n)": "the function `push` changes `PUSHED` of Python: it is traced only once for all calls\n  help: return what it computes; a helper without @pd.function is traced at each call",
    "rolling(n)": "`held[0]` has another value in the next iteration of the `for` over pd.range (functions.py:10): Python traces the body once, so every iteration would use the first value\n  help: keep it in a variable: `held[0] = pd.var(u32, 0)` before, and `held[0].set(…)` here; or unroll by Python's `range`, when the trip count is known while tracing",
    "none(n)": "the function `none` is annotated to return u32, and ends without a result\n  help: end it by a `return`; "
    "`pd.return_(p, value=…)` leaves it before, for the threads where `p` holds",
    "untold(n)": "the function `untold` returns `a`, a u32, but its annotation declares no result\n"
    "  help: annotate its result: `-> u32` after its parameters",
    "leaving(n)": "a Python `return` leaves `with pd.if_(…)` (functions.py:25): Python would skip what follows while "
    "tracing, for all threads\n  help: `pd.return_(value=…)` ends the function for the threads that reach it",
    "roles(n)": "`pd.warpgroup` stands in the function `roles`: it belongs to a kernel as a whole\n"
    "  help: call the function inside of a role of the kernel",
    "ring(n)": "`pd.Ring` stands in the function `ring`: it belongs to a kernel as a whole\n"
    "  help: make the ring in the kernel",
    "dynamic(n)": "`pd.dynamic_shared` stands in the function `dynamic`: it belongs to a kernel as a whole\n"
    '  help: make the array there, and pass the function a pointer into it: `p: ptr[f32, "shared"]`',
    "two(n)": "`two` returns `a`, a u32; it gives (u32, u32)\n  help: return one value for each",
    "capturing(n)": "`n` is computed in the kernel `k`, and read in the function `inner`, which it calls\n"
    "  help: pass it to the function as a parameter",
    "using(pd.shared(u32, 4))": "the array `shared` is made in the kernel `k`, and used in the function `indexing`, which "
    'it calls\n  help: pass the address of its first element as a parameter, `p: ptr[…, "shared"]`: `shared.address(0)`',
    "pd.return_(value=n)": "`pd.return_` of a value in a kernel, which returns nothing\n  help: write results to memory",
}  # fmt: skip


def sentences(error):
    """A refusal without the place: what, and how to mend it."""
    lines = str(error).splitlines()
    return "\n".join([lines[0], *[line for line in lines[1:] if line.startswith("  help: ")]])


@pytest.fixture(scope="module")
def functions():
    names = {"pd": pd, "ptr": ptr, "u32": u32, "PUSHED": PUSHED}
    linecache.cache["functions.py"] = (len(HEAD), None, HEAD.splitlines(keepends=True), "functions.py")
    exec(compile(HEAD, "functions.py", "exec"), names)
    return names


@pytest.mark.parametrize("call", REFUSED)
def test_what_no_function_can_do_is_refused_in_words(functions, call):
    kernel = source_kernel(f"y = {call}", head="x: ptr[u32], n: u32", options="(reqntid=128)",
                           **functions, gcd=gcd, mixed=mixed, scaled=scaled, swapped=swapped)  # fmt: skip
    with pytest.raises(pd.Error) as refused:
        kernel.ptx()
    assert sentences(refused.value) == REFUSED[call]
    assert "PUSHED" not in call and PUSHED == []


@pytest.mark.parametrize(
    "call, error", [("gcd(1)", "CallError"), ("gcd(1, c=n)", "CallError"), ("gcd(x, n)", "TraceError")]
)
def test_a_call_that_does_not_fit_is_shown_where_it_stands(call, error):
    kernel = source_kernel(f"y = {call}", head="x: ptr[u32], n: u32", gcd=gcd)
    with pytest.raises(getattr(pd, error)) as refused:
        kernel.ptx()
    at = refused.value.at
    assert at.file == FILE
    assert linecache.getline(at.file, at.line)[slice(*at.columns)] == call


def test_a_decorator_that_says_more_is_refused_in_words():
    with pytest.raises(pd.CallError) as refused:
        pd.function(arch="sm_90a")
    assert refused.value.message == "pd.function takes no `arch`; it takes function"
    assert refused.value.help == "a function takes its target from the kernel that calls it"
    assert not hasattr(gcd, "nothing") and not hasattr(gcd, "ptx")


DEFINITIONS = {
    "def f(self, a: u32): pass": "parameter `self` of function `f` has no type",
    "def f(a): pass": "parameter `a` of function `f` has no type",
    "def f(a: u32 = 1): pass": "parameter `a` of function `f` has a default",
    "def f(*a: u32): pass": "`*a` of function `f`: the number of its parameters must be known",
    "def f(a: int): pass": "parameter `a` of function `f` is annotated <class 'int'>, which no function takes",
    "def f(a: u32) -> int: pass": "function `f` is annotated to return <class 'int'>, which a function cannot return",
    "def f(a: u32) -> 'u33': pass": "the annotation `u33` of the result of function `f` cannot be resolved: NameError: name 'u33' is not "
    "defined",
    "class f: pass": "pd.function decorates a function; found <class 'f'>",
    "def é(): pass": "PTX cannot call a function `é`",
    "def _(): pass": "PTX cannot call a function `_`",
}  # fmt: skip


@pytest.mark.parametrize("text", DEFINITIONS)
def test_what_cannot_be_a_function_is_refused_where_it_is_defined(text):
    with pytest.raises(pd.TraceError) as refused:
        exec(compile(f"@pd.function\n{text}", FILE, "exec"), {"pd": pd, "u32": u32})
    assert refused.value.message == DEFINITIONS[text]
    assert refused.value.help


def test_a_function_is_called_in_kernels_alone():
    with pytest.raises(pd.TraceError) as refused:
        gcd(1, 2)
    assert refused.value.message == "`gcd(…)` is used outside of a kernel"


def test_lanes_that_exchange_and_match_get_their_types_back():
    @pd.kernel
    def k(x: ptr[f32], y: ptr[s32], z: ptr[u32]):
        i = pd.tid.x
        x[i] = pd.ptx.shfl.sync.bfly.b32(x[i], 1, 31, 0xFFFFFFFF) + 0.5
        y[i] = pd.ptx.shfl.sync.idx.b32(y[i], 3, 31, 0xFFFFFFFF) - 1
        z[i] = pd.ptx.match.any.sync.b32(i // 4, 0xFFFFFFFF) + pd.ptx.vote.sync.ballot.b32(i < 2, 0xFFFFFFFF)

    x, y, z = np.arange(32, dtype=np.float32), -np.arange(32, dtype=np.int32), np.zeros(32, np.uint32)
    k[1, 32](x, y, z)
    assert x[:4].tolist() == [1.5, 0.5, 3.5, 2.5]
    assert y.tolist() == [-4] * 32
    assert z[5] == 0xF0 + 3
    assert "mov.b32" not in k.ptx()


USES_OF_NOTHING = {
    "n + put(x)": "`+` of `n`, a u32, and a NoneType",
    "pd.max(put(x), n)": "pd.max takes values and numbers; found None",
    "put(put(x))": "`put` takes ptr[u32] as `x`; found nothing",
    "x.__setitem__(0, put(x))": "an element of `x` is set to None",
}


@pd.function
def put(x: ptr[u32]):
    x[pd.tid.x] = pd.tid.x


@pd.function
def put_again(x: ptr[u32]):
    return put(x)


@pytest.mark.parametrize("use", USES_OF_NOTHING)
def test_a_function_without_a_result_gives_none_which_is_no_value(use):
    with pytest.raises(pd.Error) as refused:
        source_kernel(f"y = {use}", head="x: ptr[u32], n: u32", put=put).ptx("sm_80")
    assert refused.value.message == USES_OF_NOTHING[use]
    assert f"{FILE}:3" in str(refused.value)


def test_a_function_without_a_result_may_return_that_of_another():
    kernel = source_kernel("for i in pd.range(n):\n    r = put_again(x)\nreturn put(x)", "x: ptr[u32], n: u32",
                           put=put, put_again=put_again)  # fmt: skip
    x = np.zeros(32, np.uint32)
    kernel[1, 32](x, 2)
    assert (x == np.arange(32)).all()
