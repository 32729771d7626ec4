"""Branches, loops and what they do to names: the kernel does what the Python text says, or is refused."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr, s32, s64, u32, u64
from tests.tracing import emitted, mnemonics, refusal

COUNTED = [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17]


def test_if_and_else_choose_by_thread():
    @pd.kernel
    def k(out: ptr[u32], n: u32):
        i = pd.tid.x
        with pd.if_(i < n):
            out[i] = 1
            with pd.if_(i == 0):
                out[i] = 5
            with pd.else_(), pd.if_(i % 2 == 0):
                out[i] = 6
        with pd.else_():
            out[i] = 2

    out = np.zeros(32, np.uint32)
    k[1, 32](out, 10)
    i = np.arange(32)
    assert np.array_equal(out, np.where(i < 10, np.where(i == 0, 5, np.where(i % 2 == 0, 6, 1)), 2))


def test_elif_runs_and_computes_its_predicate_where_no_branch_before_was_taken():
    @pd.kernel
    def k(x: ptr[s32], out: ptr[u32]):
        i = pd.tid.x
        last, before = i == 31, i == 30
        with pd.if_(i >= 24):
            with pd.if_(last):
                out[i] = 9
            with pd.elif_(before):
                out[i] = 8
        with pd.elif_(lambda: x[i] < 0):  # x has 24 elements: the other threads do not read it
            out[i] = 2
        with pd.elif_(lambda: x[i] % 2 == 0):
            out[i] = 3
        with pd.else_():
            out[i] = 4

    x, out = np.arange(24, dtype=np.int32) - 5, np.ones(32, np.uint32)
    k[1, 32](x, out)
    assert out[:24].tolist() == [2 if v < 0 else 3 if v % 2 == 0 else 4 for v in x]
    assert out[24:].tolist() == [1] * 6 + [8, 9]


@pd.kernel
def visited(out: ptr[s32], start: s32, stop: s32, *, step: int = 1, unroll: int | None = None):
    count = pd.var(s32, 0)
    for i in pd.range(start, stop, step, unroll=unroll):
        out[count] = i
        count += 1
    out[64] = count


def visits(start, stop, step=1, unroll=None):
    out = np.full(65, -999, np.int32)
    visited[1, 1](out, start, stop, step=step, unroll=unroll)
    return out[: out[64]].tolist()


@pytest.mark.cases(3)
@pytest.mark.parametrize("unroll", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("step", [1, 2, 3, -1, -2])
def test_a_loop_visits_what_pythons_range_does(step, unroll):
    for count in COUNTED:
        for start in (-3, 0, 5):
            stop = start + count * (1 if step > 0 else -1)
            assert visits(start, stop, step, unroll) == list(range(start, stop, step))
            assert visits(stop, start, step, unroll) == list(range(stop, start, step))


@pytest.mark.parametrize("unroll", [None, 2, 4])
@pytest.mark.parametrize("step", [3, 7, 1 << 20])
def test_a_loop_to_the_end_of_its_type_does_not_wrap(step, unroll):
    high = (1 << 31) - 1
    for stop in (high, high - 1, high - step):
        start = stop - 5 * step - 1
        assert visits(start, stop, step, unroll) == list(range(start, stop, step))
    low = -(1 << 31)
    assert visits(low + 5 * step + 1, low, -step, unroll) == list(range(low + 5 * step + 1, low, -step))


@pytest.mark.cases(16)
@pytest.mark.parametrize("unroll", [None, 1, 2, 3, 5, "full"])
@pytest.mark.parametrize("bounds", [(0,), (1,), (6,), (2, 9), (0, 10, 4), (9, 0, -3), (5, 5), (3, 4, 10)], ids=str)
def test_loops_of_known_length(bounds, unroll):
    @pd.kernel
    def k(out: ptr[s32]):
        count = pd.var(u32, 0)
        for i in pd.range(*bounds, unroll=unroll):
            out[count] = i if isinstance(i, int) else i.to(s32)
            count += 1
        out[15] = count.to(s32)

    out = np.zeros(16, np.int32)
    k[1, 1](out)
    assert out[: out[15]].tolist() == list(range(*bounds))


@pytest.mark.parametrize("type", [u32, s32, u64, s64], ids=str)
def test_a_traced_step_of_every_type(type):
    @pd.kernel
    def k(out: ptr[u32], first: type, stop: type, step: type):
        count = pd.var(u32, 0)
        for i in pd.range(first, stop, step):
            out[count] = i.to(u32)
            count += 1
        out[15] = count

    out = np.zeros(16, np.uint32)
    k[1, 1](out, 3, 40, 9)
    assert out[: out[15]].tolist() == list(range(3, 40, 9))


def test_a_while_loop_tests_before_each_round():
    @pd.kernel
    def k(out: ptr[u32], n: u32):
        v, rounds = pd.var(u32, n), pd.var(u32, 0)
        with pd.while_(lambda: v != 1):
            odd = v % 2 == 1
            v.set(pd.select(odd, v * 3 + 1, v // 2))
            rounds += 1
        out[0] = rounds

    for n, rounds in ((1, 0), (6, 8), (27, 111)):
        out = np.zeros(1, np.uint32)
        k[1, 1](out, n)
        assert out[0] == rounds


@pytest.mark.parametrize("unroll", [None, 3])
def test_break_and_continue(unroll):
    @pd.kernel
    def k(out: ptr[u32], n: u32):
        total = pd.var(u32, 0)
        for i in pd.range(n, unroll=unroll):
            with pd.if_(i % 3 == 1):
                pd.continue_()
            pd.break_(guard=i >= 10)
            total += i
        v = pd.var(u32, 0)
        with pd.while_(lambda: v < 100):
            v += 1
            pd.continue_(guard=v % 2 == 1)
            with pd.if_(v > 7):
                pd.break_()
        out[0], out[1] = total, v

    out = np.zeros(2, np.uint32)
    k[1, 1](out, 50)
    assert out.tolist() == [sum(i for i in range(10) if i % 3 != 1), 8]


def test_return_ends_threads():
    @pd.kernel
    def k(out: ptr[u32]):
        i = pd.tid.x
        pd.return_(guard=i > 9)
        out[i] = 1
        with pd.if_(i < 3):
            pd.return_()
        out[i] = 2

    out = np.zeros(32, np.uint32)
    k[1, 32](out)
    assert np.array_equal(out, np.repeat([1, 2, 0], [3, 7, 22]))


def test_a_predicated_instruction():
    @pd.kernel
    def k(out: ptr[u32], n: u32):
        v = pd.var(u32, 3)
        pd.ptx.add.u32(v, 10, out=v, guard=pd.tid.x < n)
        pd.ptx.mul.lo.u32(v, 2, out=v, guard=~(pd.tid.x < n))
        out[pd.tid.x] = v

    out = np.zeros(8, np.uint32)
    k[1, 8](out, 5)
    assert out.tolist() == [13] * 5 + [6] * 3


def test_a_loop_of_known_length_has_one_test_and_one_branch():
    @pd.kernel
    def k(x: ptr[u32]):
        for i in pd.range(8, unroll=1):
            x[i] = i

    text = k.ptx()
    assert mnemonics(k) == ["mov.u32", "mad.wide.u32", "st.global.u32", "add.u32", "setp.lt.u32", "@%p0"]
    assert '$loop:\n    .pragma "nounroll";' in text
    assert "$endloop" not in text


def test_predicates_are_negated_in_place():
    @pd.kernel
    def k(x: ptr[u32], n: u32):
        with pd.if_(~(n < 3)):
            x[0] = 1

    assert emitted(k)[:2] == ["setp.lt.u32 %p0, %n, 3;", "@%p0 bra $endif;"]


def test_names_bound_anew_but_not_read_later_are_fine():
    @pd.kernel
    def k(x: ptr[f32], n: u32):
        value = x[0]
        x[1] = value
        for i in pd.range(n):
            value = x[i]
            with pd.if_(i > 2):
                value = value + 1.0
                x[i] = value
        value = x[2]
        x[3] = value
        for k in range(3):
            with pd.if_(n > k):
                k = k + 1
                x[k] = 2.0

    assert k.ptx()


def test_values_in_objects_may_change_where_nothing_reads_the_old_ones():
    class Ring:
        def __init__(self):
            self.place, self.phase = pd.var(u32, 0), None

        def advance(self):
            self.place += 1
            self.phase = self.place + 1

    @pd.kernel
    def k(x: ptr[u32], n: u32):
        ring = Ring()
        ring.advance()
        for i in pd.range(n):
            ring.advance()
            x[i] = ring.phase

    out = np.zeros(3, np.uint32)
    k[1, 1](out, 3)
    assert out.tolist() == [3, 4, 5]


CARRIED = {
    "a value": "a = x[0]\nfor i in pd.range(n):\n    a = a + 1.0",
    "a number": "a = 0\nfor i in pd.range(n):\n    x[a] = 1.0\n    a += 1",
    "a tuple": "a = (x[0], x[1])\nfor i in pd.range(n):\n    a = (a[1], a[0])",
    "a list": "a = [x[0], x[1]]\nfor i in pd.range(n):\n    a[0] = a[1] + a[0]",
    "a dictionary": "a = {'s': x[0]}\nfor i in pd.range(n):\n    a['s'] = a['s'] + 1.0",
    "an attribute": "class A: pass\na = A()\na.s = x[0]\nfor i in pd.range(n):\n    a.s = a.s + 1.0",
    "a pointer": "p = x\nfor i in pd.range(n):\n    p[0] = 1.0\n    p = p + 1",
    "a pointer in an attribute": "class A: pass\n"
    "a = A()\na.s = x\nfor i in pd.range(n):\n    a.s[0] = 1.0\n    a.s = a.s + 1",
    "in a while": "v = pd.var(u32, 0)\na = n\nwith pd.while_(lambda: v < n):\n    v += a\n    a = a + 1",
    "in a branch": "a = x[0]\nb = x[1]\nwith pd.if_(n > 1):\n    a = b\nx[2] = a",
    "a number in a branch": "a = 1.0\nwith pd.if_(n > 1):\n    a = 2.0\nx[2] = a",
    "in an else": "a = 1.0\nwith pd.if_(n > 1):\n    pass\nwith pd.else_():\n    a = 2.0\nx[2] = a",
    "in a branch of a loop": "a = 1\nfor i in pd.range(n):\n    x[a] = 1.0\n    with pd.if_(i > 1):\n        a = 2",
    "in an unrolled loop": "a = x[0]\nfor i in pd.range(n, unroll=2):\n    a = a + 1.0",
}


@pytest.mark.parametrize("body", CARRIED.values(), ids=CARRIED)
def test_what_is_carried_out_of_a_branch_or_round_must_be_a_variable(body):
    text = refusal(body)
    assert "is rebound in" in text or "has another value in the next iteration of" in text


COMPREHENSIONS = {
    "of a loop's name": "for i in pd.range(n):\n    x[i] = 1.0\n"
    "for j in pd.range(n):\n    for i in pd.range(n):\n        x[i] = 2.0\n    y = [x[i] for i in range(2)]\n    x[j] = y[0]",
    "in a branch": "a = 0\nwith pd.if_(n > 1):\n    a = 1\n    y = [x[a] for a in range(2)]\n    x[0] = y[1]",
}


@pytest.mark.parametrize("body", COMPREHENSIONS.values(), ids=COMPREHENSIONS)
def test_a_comprehension_does_not_read_the_names_that_it_binds(body):
    assert refusal(body) == ""


def test_a_name_that_a_comprehension_restores_is_read_after_it():
    body = "a = 0\nwith pd.if_(n > 1):\n    a = 1\ny = [x[a] for a in range(2)]\nx[0] = y[0]\nx[a] = 1.0"
    assert "is rebound in" in refusal(body)


READ_OUTSIDE = {
    "of a branch": "with pd.if_(n > 1):\n    a = x[0]\nx[1] = a",
    "of an else": "with pd.if_(n > 1):\n    a = x[0]\nwith pd.else_():\n    x[1] = a",
    "of a loop": "for i in pd.range(n):\n    a = x[0]\nx[1] = a",
    "of a loop: its counter": "for i in pd.range(n):\n    a = x[0]\nx[i] = 1.0",
    "of a while": "v = pd.var(u32, 0)\nwith pd.while_(lambda: v < n):\n    a = v + 1\nx[a] = 1.0",
    "as a pointer": "with pd.if_(n > 1):\n    a = x + n\na[0] = 1.0",
    "from a list": "a = []\nfor i in pd.range(n):\n    a.append(x[i])\nx[0] = a[0]",
    "as a variable": "with pd.if_(n > 1):\n    v = pd.var(u32, 0)\nv += 1",
    "of a copy": "for i in pd.range(n, unroll=2):\n    if 'a' in locals():\n        x[1] = a\n    a = x[0]",
}


@pytest.mark.parametrize("body", READ_OUTSIDE.values(), ids=READ_OUTSIDE)
def test_what_is_computed_in_a_branch_or_round_has_no_value_outside(body):
    assert "which has ended; outside of it, it has no value" in refusal(body)


@pytest.mark.parametrize(
    "variable, write",
    [
        ("pd.var(f32, 0.0)", "m.set(x[0])"),
        ("pd.var(u32, 0)", "m.set((n < 5).to(u32))"),
        ("pd.var(f32)", "m.set(x[0])"),
        ("pd.var(ptr[f32])", "m.set(x + n)"),
        ("pd.var(f16, 0.0)", "m.set(x[0].to(f16))"),
    ],
)
def test_the_variables_that_refusals_suggest(variable, write):
    """The variable that the help line proposes for a rebound name can be written in a branch and read after it."""
    assert refusal(f"m = {variable}\nwith pd.if_(n > 3):\n    {write}\n{read(variable)}") == ""


def read(variable):
    return "m[0] = 1.0" if "ptr" in variable else "x[0] = m.to(f32)"


def test_a_loop_in_full_may_be_reversed():
    @pd.kernel
    def k(x: ptr[u32]):
        for i in reversed(pd.range(3, unroll="full")):
            x[i] = i

    assert emitted(k) == [f"st.global.u32 [%x{f'+{4 * i}' * (i > 0)}], {i};" for i in (2, 1, 0)]
