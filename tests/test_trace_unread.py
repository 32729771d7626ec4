"""Results that are thrown away: a warning at the line that computes them, and silence where a program may leave one."""

from __future__ import annotations

import warnings

import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr
from ptxdsl.isa.opcode import Op
from tests.tracing import source_kernel

MMA = "pd.ptx.mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32((a, a, a, a), (a, a), c)"

THROWN_AWAY = {
    "x[0] == 3.0": "nothing reads the result of `x[0] == 3.0` (setp.eq.f32); "
    "a comparison alone does nothing: did you mean `=`, or `with pd.if_(…):`?",
    f"a, c = pd.ptx.mov.b32(0), [pd.var(f32, 0.0) for _ in range(4)]\n{MMA}": f"nothing reads the result of `{MMA}` "
    "(mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32); mma returns new registers: write into variables by `out=`",
    f"a, c = pd.ptx.mov.b32(0), [pd.var(f32, 0.0) for _ in range(4)]\nd = {MMA}": f"nothing reads the result of `{MMA}` "
    "(mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32); mma returns new registers: write into variables by `out=`",
    "n + 1": "nothing reads the result of `n + 1` (add.u32); use it, or leave it out",
    "row = n // 32": "nothing reads the result of `n // 32` (shr.u32); use it, or leave it out",
    "n.to(f32)": "nothing reads the result of `n.to(f32)` (cvt.rn.f32.u32); use it, or leave it out",
    "pd.ptx.ex2.approx.f32(x[0])": "nothing reads the result of `pd.ptx.ex2.approx.f32(x[0])` (ex2.approx.f32); "
    "use it, or leave it out",
    "bar = pd.shared(pd.b64, 1)\npd.ptx.mbarrier.test_wait.shared.b64(bar.address(), n.to(pd.u64))": "nothing reads the "
    "result of `pd.ptx.mbarrier.test_wait.shared.b64(bar.address(), n.to(pd.u64))` (mbarrier.test_wait.shared.b64); it "
    "may end before the phase is complete: wait by `with pd.while_(lambda: ~…): pass`",
    "for i in pd.range(n):\n    x[i]\n    i * 2": "nothing reads the result of `i * 2` (mul.lo.u32); "
    "use it, or leave it out",
}

KEPT = {
    "what memory does": "x[0]\npd.ptx.atom.global_.add.f32(x, 1.0)\npd.ptx.bar.sync(0)",
    "what a warp does together": "pd.ptx.vote.sync.any.pred(n > 3, 0xFFFFFFFF)",
    "one of several results": "low, high = pd.unpack(n.to(u64), u32)\nx[0] = low.to(f32)",
    "a name with an underscore": "_ = n + 1\n_unused = n * 3",
    "what an object keeps": "class A: pass\na = A()\na.row = n // 32",
    "what a function returns": "def place():\n    return n // 32, n % 32\nrow, column = place()\nx[row] = 1.0",
    "what a list keeps": "rows = [n + k for k in range(4)]\nx[rows[0]] = 1.0",
    "the last of a chain": "at = x\nfor k in range(3):\n    at[n] = 1.0\n    at = at + n",
    "a variable that nobody reads": "v = pd.var(u32, 0)\nv += 1",
    "the number of a round": "for i in pd.range(n, unroll=2):\n    x[0] = 1.0",
    "a call of a function that writes": "def fill(k):\n    x[k] = 1.0\nfill(n)",
}


@pytest.mark.parametrize("body, text", THROWN_AWAY.items(), ids=THROWN_AWAY)
def test_what_is_thrown_away_is_warned_of_at_its_line(body, text):
    with pytest.warns(pd.UnusedResultWarning) as seen:
        source_kernel(body).ptx()
    (warning,) = seen
    assert str(warning.message) == text
    assert warning.filename == "kernel.py"
    assert warning.lineno == 2 + len(body.splitlines())


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_what_may_find_no_reader_is_silent(body):
    assert source_kernel(body).ptx()


def test_it_is_shown_once_for_a_line():
    @pd.kernel
    def k(x: ptr[f32], *, number=1):
        x[0] == 3.0  # noqa: B015
        x[0] = float(number)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for number in range(3):
            k.ptx(number=number)
    assert [w.category for w in seen] == [pd.UnusedResultWarning]


def test_it_can_be_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.UnusedResultWarning)
        with pytest.raises(pd.UnusedResultWarning):
            source_kernel("n + 1").ptx()


def test_the_table_says_what_only_computes():
    computing = {name for name, forms in Op.table.items() if all(op.computes for op, _ in forms)}
    assert computing >= {"mul", "fma", "setp", "selp", "cvt", "mov", "prmt", "lop3", "shl", "ex2", "popc"}
    assert Op.table["mma"][0][0].computes
    assert not computing & {"ld", "st", "atom", "red", "bar", "shfl", "vote", "cp", "bra", "ret", "addc", "mbarrier"}
