"""Python state in traced branches and loops: what nothing in the kernel depends on may change."""

from __future__ import annotations

import functools
import itertools
import random
import sys
import time
from types import ModuleType

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr, u32
from tests.tracing import emitted, refusal, source_kernel

LOG: list[str] = []
COUNTS = {"rounds": 0}

BENIGN = {
    "a list of the body": "for i in pd.range(n):\n    values = []\n    values.append(x[i])\n    x[i] = values[0]",
    "appends that nobody reads": "log = []\nfor i in pd.range(n):\n    x[i] = 1.0\n    log.append('a round')",
    "an append that nobody reads in a branch": "log = []\nwith pd.if_(n > 1):\n    log.append(n)\nx[0] = 1.0",
    "a count that nobody reads": "count = [0]\nfor i in pd.range(n):\n    count[0] += 1\n    x[i] = 2.0",
    "an attribute set in each round": "class A: pass\na = A()\na.s = 0\nfor i in pd.range(n):\n"
    "    a.s = 1\n    x[i + a.s] = 1.0",
    "an attribute of a value": "class A: pass\na = A()\na.s = None\nfor i in pd.range(n):\n    a.s = x[i]\n    x[i] = a.s",
    "a table that is computed when it is first asked for": "table = {}\ndef scale(k):\n"
    "    if k not in table:\n        table[k] = 1.0 / (k + 1)\n    return table[k]\n"
    "for i in pd.range(n):\n    x[i] = scale(3)\nx[0] = scale(3)",
    "a set of what was seen": "seen = set()\nfor i in pd.range(n):\n    seen.add('a')\n    x[i] = 0.5",
    "state that changes before and behind": "st = [0]\nst[0] += 1\nfor i in pd.range(n):\n    x[st[0]] = 1.0\n"
    "st[0] += 1\nx[st[0]] = 1.0",
    "a loop that Python unrolls": "bufs, st = [pd.shared(f32, 8), pd.shared(f32, 8)], [0]\n"
    "for k in range(4):\n    with pd.if_(n > k):\n        bufs[0][k] = 1.0\n    bufs.reverse()\n    st[0] += 1\nx[st[0]] = 1.0",
    "an iterator of the body": "for i in pd.range(n):\n    turn = iter([1.0, 2.0])\n    x[i] = next(turn) + x[0]\n    x[i] = next(turn)",
    "an iterator that goes on between loops": "turn = iter([1.0, 2.0])\nfor i in pd.range(n):\n    x[i] = 0.5\n"
    "first = next(turn)\nfor i in pd.range(n):\n    x[i] = first\nx[0] = next(turn)",
    "a generator around a loop": "def rounds():\n    for i in pd.range(n):\n        yield i * 2\n"
    "for k in rounds():\n    x[k] = 1.0",
    "rounds that are handed on": "def rounds():\n    yield from pd.range(n)\nfor k in rounds():\n    x[k] = 1.0",
    "a comprehension": "[pd.ptx.st.global_.f32(x + i, 1.0) for i in pd.range(n)]",
    "enumerate of a loop in full": "for j, i in enumerate(pd.range(4, unroll='full')):\n    x[i] = float(j)",
    "an array of numpy that is only read": "table = np.arange(4.0)\nfor i in pd.range(n):\n    x[i] = table[2]",
    "an array of the body": "for i in pd.range(n):\n    table = np.zeros(2)\n    table[0] = 3\n    x[i] = table[0]",
    "attributes of a list that nobody reads": "class S(list): pass\ns = S([1])\ns.rounds = 0\n"
    "for i in pd.range(n):\n    x[s[0]] = 1.0\n    s.rounds += 1",
    "a global that nobody reads": "global ROUNDS\nROUNDS = 0\nfor i in pd.range(n):\n    x[i] = 1.0\n    ROUNDS += 1",
    "a random number before a loop and behind it": "import random\nv = random.random()\nfor i in pd.range(n):\n"
    "    x[i] = v\nx[0] = random.random()",
    "a generator that begins in each round": "for i in pd.range(n):\n    rng = np.random.default_rng(1)\n    x[i] = rng.random()",
    "random numbers of a loop that Python unrolls": "rng = np.random.default_rng(1)\nfor k in range(4):\n"
    "    with pd.if_(n > k):\n        pass\n    x[k] = rng.random()",
    "a random number in a branch": "import random\nwith pd.if_(n > 1):\n    x[0] = random.random()",
    "a list put back as it was": "order = [0, 1]\nfor i in pd.range(n):\n    order.reverse()\n    x[i] = 1.0\n    order.reverse()",
}  # fmt: skip


@pytest.mark.parametrize("body", BENIGN.values(), ids=BENIGN)
def test_state_that_no_instruction_depends_on_may_change(body):
    assert refusal(body) == ""


def test_the_program_is_that_of_the_first_trace():
    body = "for i in pd.range(n):\n    x[i] = 1.0"
    logged = "log = []\n" + body + "\n    log.append(i)"
    assert emitted(source_kernel(logged)) == emitted(source_kernel(body))


def test_state_outside_of_a_kernel_changes_once():
    @pd.kernel
    def k(x: ptr[f32], n: u32):
        for i in pd.range(n):
            LOG.append("round")
            COUNTS["rounds"] += 1
            x[i] = 1.0

    LOG.clear()
    COUNTS["rounds"] = 5
    k.ptx()
    assert LOG == ["round"]
    assert COUNTS == {"rounds": 6}


def test_state_outside_of_a_kernel_that_it_reads_is_refused():
    @pd.kernel
    def k(x: ptr[f32], n: u32):
        for i in pd.range(n):
            x[i + COUNTS["rounds"]] = 1.0
            COUNTS["rounds"] += 1

    COUNTS["rounds"] = 0
    with pytest.raises(pd.TraceError, match=r"`COUNTS\['rounds'\]` has another value in the next iteration"):
        k.ptx()
    assert COUNTS == {"rounds": 1}


ADVANCED = {
    "accumulate": "turn = itertools.accumulate([0.0, 1.0, 1.0])\nfor i in pd.range(n):\n    x[i] = next(turn)",
    "accumulate of one number": "turn = itertools.accumulate(itertools.repeat(1.0), initial=0.0)\n"
    "for i in pd.range(n):\n    x[i] = next(turn)",
    "one of two": "turn, other = itertools.tee(iter([0.0, 1.0]))\nfor i in pd.range(n):\n    x[i] = next(turn)",
    "calls until a number comes": "turn = iter(itertools.count().__next__, -1)\nfor i in pd.range(n):\n    x[i + next(turn)] = 1.0",
    "a file": "import io\nturn = io.BytesIO(b'0\\n1\\n')\nfor i in pd.range(n):\n    x[i] = float(turn.readline())",
}  # fmt: skip


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="iterators tell less there")
@pytest.mark.parametrize("body", ADVANCED.values(), ids=ADVANCED)
def test_iterators_that_hide_where_they_are_are_seen_to_go_on(body):
    assert refusal(f"import itertools\n{body}").startswith("`turn` advances in the `for` over pd.range")


LIBRARY = {
    "maps in a chain": ("collections.ChainMap({}, {'a': 0})", "h['a']", "h['a'] = h['a'] + 1", "h.maps[0]"),
    "a dict of the user's": ("collections.UserDict(a=0)", "h['a']", "h['a'] += 1", "h.data['a']"),
    "a list of the user's": ("collections.UserList([0])", "h[0]", "h[0] += 1", "h.data[0]"),
    "a queue": ("queue.Queue()", "h.qsize()", "h.put(1)", "h.unfinished_tasks"),
}  # fmt: skip


@pytest.mark.parametrize("made, read, written, name", LIBRARY.values(), ids=LIBRARY)
def test_containers_of_the_library_are_seen_to_change(made, read, written, name):
    body = f"import collections, queue\nh = {made}\nfor i in pd.range(n):\n    x[i + {read}] = 1.0\n    {written}"
    assert refusal(body).startswith(f"`{name}` has another value in the next iteration of the `for` over pd.range")


def test_what_the_system_draws_has_no_state_to_compare():
    assert refusal("import random\nfor i in pd.range(n):\n    x[i] = random.SystemRandom().random()") == ""


def test_a_device_function_that_draws_is_refused():
    @pd.function
    def noise() -> f32:
        return random.random()

    @pd.kernel
    def k(x: ptr[f32]):
        x[0] = noise()

    with pytest.raises(
        pd.TraceError, match="the function `noise` changes `random` of Python: it is traced only once for all calls"
    ):
        k.ptx()


def test_state_of_a_module_that_a_helper_changes_is_refused():
    with pytest.raises(pd.TraceError, match=r"`COUNTS\['rounds'\]` has another value in the next iteration"):
        steps_in_a_helper.ptx()


def count_a_round():
    COUNTS["rounds"] += 1
    return COUNTS["rounds"]


@pd.kernel
def steps_in_a_helper(x: ptr[f32], n: u32):
    for _ in pd.range(n):
        x[count_a_round()] = 1.0


class Counter:
    def step(self):
        return count_a_round()

    count = property(step)

    @classmethod
    def of_class(cls):
        return count_a_round()


class Derived(Counter):
    pass


@functools.lru_cache
def counted(k):
    return count_a_round()


CALLS = {
    "a bound method": Counter().step,
    "a method": lambda: Counter().step(),
    "an inherited method": lambda: Derived().step(),
    "a property": lambda: Counter().count,
    "a class method": lambda: Counter.of_class(),
    "a partial of a method": functools.partial(Counter().step),
    "a function with a cache": lambda: counted.cache_clear() or counted(1),
}


@pytest.mark.parametrize("case", CALLS)
def test_what_methods_change_outside_of_their_object_is_seen(case):
    take = CALLS[case]

    @pd.kernel
    def k(x: ptr[f32], n: u32):
        for _ in pd.range(n):
            x[take()] = 1.0

    with pytest.raises(pd.TraceError, match=r"`COUNTS\['rounds'\]` has another value in the next iteration"):
        k.ptx()


MODULE = "N = 0\nL = []\nclass C:\n    n = 0\ndef step():\n    global N\n    N += 1\n    return N"
OF_MODULE = {
    "a function": ("at = helper.step()", "N"),
    "a variable": ("helper.N += 1\n    at = helper.N", "helper.N"),
    "a list": ("helper.L.append(1)\n    at = len(helper.L)", "helper.L"),
    "a class": ("helper.C.n += 1\n    at = helper.C.n", "helper.C.n"),
    "a module of a module": ("helper.inner.N += 1\n    at = helper.inner.N", "helper.inner.N"),
}


@pytest.mark.parametrize("step, name", OF_MODULE.values(), ids=OF_MODULE)
def test_what_other_modules_hold_is_seen_to_change(step, name):
    helper, inner = ModuleType("helper"), ModuleType("inner")
    for module in (helper, inner):
        exec(MODULE, vars(module))
    helper.inner = inner
    text = refusal(f"for i in pd.range(n):\n    {step}\n    x[at] = 1.0", helper=helper)
    assert text.startswith(f"`{name}` has another value in the next iteration of the `for` over pd.range")


def test_what_differs_by_itself_is_not_laid_to_a_loop():
    """A kernel that is another in each trace, whatever its loops do."""

    @pd.kernel
    def k(x: ptr[f32], n: u32):
        log = []
        x[0] = float(time.perf_counter_ns() % 1000003)
        for i in pd.range(n):
            log.append(i)
            x[i] = 1.0

    assert "st.global.f32" in k.ptx()


def test_slots_deques_and_nested_objects_are_seen():
    for made in ("class P:\n    __slots__ = ('stage',)\np = P()\np.stage = 0", "p = SimpleP()"):
        body = f"class SimpleP:\n    stage = 0\n{made}\nholder = [(p,)]\n"
        body += "for i in pd.range(n):\n    x[holder[0][0].stage] = 1.0\n    holder[0][0].stage += 1"
        assert "next iteration" in refusal(body)
    body = "from collections import deque\nd = deque([0, 1])\nfor i in pd.range(n):\n    x[d[0]] = 1.0\n    d.rotate()"
    assert "`d[0]` has another value in the next iteration" in refusal(body)


# What holds the count, how a round counts on and reads it, and what the refusal calls it.
HOLDERS = {
    "a class": ("class S:\n    index = 0", "S.index += 1\n    at = S.index", "S.index"),
    "a default": (
        "def step(state=[0]):\n    state[0] += 1\n    return state[0]",
        "at = step()",
        "step.__defaults__[0][0]",
    ),
    "a function": (
        "def step():\n    step.n += 1\n    return step.n\nstep.n = 0",
        "at = step()",
        "step.__dict__['n']",
    ),
    "a partial": (
        "from functools import partial\ndef count(c):\n    c[0] += 1\n    return c[0]\nstep = partial(count, [0])",
        "at = step()",
        "step.args[0][0]",
    ),
    "a bound method": (
        "class S:\n    i = 0\n    def next(self):\n        self.i += 1\n        return self.i\nstep = S().next",
        "at = step()",
        "step",
    ),
    "an iterator of the user's": (
        "class S:\n    def __init__(self):\n        self.i = 0\n    def __next__(self):\n        self.i += 1\n"
        "        return self.i\ns = S()",
        "at = next(s)",
        "s.i",
    ),
    "a frozen dataclass in a list": (
        "from dataclasses import dataclass, replace\n@dataclass(frozen=True)\nclass S:\n    i: int = 0\ns = [S()]",
        "at = s[0].i\n    s[0] = replace(s[0], i=at + 1)",
        "s[0]",
    ),
    "a text": ("s = ['a']", "at = s[0] == 'a'\n    s[0] = 'b'", "s[0]"),
    "a frozen dataclass that is written all the same": (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass S:\n    i: int = 0\ns = S()",
        "at = s.i\n    object.__setattr__(s, 'i', at + 1)",
        "s.i",
    ),
    "a list with attributes": ("class S(list): pass\ns = S()\ns.i = 0", "at = s.i\n    s.i += 1", "s.i"),
    "a dictionary with attributes": ("class S(dict): pass\ns = S()\ns.i = 0", "at = s.i\n    s.i += 1", "s.i"),
    "an element of a list with attributes": ("class S(list): pass\ns = S([0])", "at = s[0]\n    s[0] += 1", "s[0]"),
    "slots and attributes": (
        "class B:\n    __slots__ = ('i',)\nclass S(B): pass\ns = S()\ns.i = 0",
        "at = s.i\n    s.i += 1",
        "s.i",
    ),
    "an array of Python's": ("from array import array\ns = array('i', [0])", "at = s[0]\n    s[0] += 1", "s"),
    "a view of bytes": ("s = memoryview(bytearray(1))", "at = s[0]\n    s[0] += 1", "s"),
    "a method of a list": ("push = [].append\nsize = push.__self__.__len__", "push(1)\n    at = size()", "push"),
}


@pytest.mark.parametrize("made, step, name", HOLDERS.values(), ids=HOLDERS)
def test_whatever_holds_a_count_of_rounds_is_seen(made, step, name):
    loop = f"{made}\nfor i in pd.range(n):\n    {step}\n    x[int(at)] = 1.0"
    assert f"`{name}` has another value in the next iteration of the `for`" in refusal(loop)
    loop = f"{made}\nv = pd.var(u32, 0)\nwith pd.while_(lambda: v < n):\n    {step}\n    x[int(at)] = 1.0\n    v += 1"
    assert f"`{name}` has another value in the next iteration of `with pd.while_(…)`" in refusal(loop)


def test_a_branch_in_a_loop_that_changes_what_the_loop_reads():
    body = "seen = []\nfor i in pd.range(n):\n    with pd.if_(i > 2):\n        seen.append(1)\n    x[len(seen)] = 1.0"
    assert "`seen` has another value in the next iteration of the `for` over pd.range (kernel.py:4)" in refusal(body)


@pytest.mark.parametrize(
    "made, step",
    [
        pytest.param(
            "itertools.cycle([0, 1, 2])",
            5,
            marks=pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 does not tell how far it is"),
        ),
        ("itertools.count()", 1),
        ("iter([0, 1, 2])", 0),
        ("iter(range(9))", 2),
        ("(k for k in [0, 1, 2])", 0),
        ("zip([0, 1, 2], 'abc')", 0),
        ("enumerate('abc')", 1),
        ("map(abs, [0, 1, 2])", 0),
    ],
)
def test_iterators_that_go_on_in_a_loop_are_refused(made, step):
    body = f"turn = {made}\nfor _ in range({step}):\n    next(turn)\n"
    body += "for i in pd.range(n):\n    k = next(turn)\n    x[i] = 1.0"
    assert "`turn` advances in the `for` over pd.range" in refusal(body, itertools=itertools)


def test_a_generator_that_goes_on_by_what_it_changes_is_refused():
    turn = "turn = (state.append(0) or len(state) for state in itertools.repeat([]))\nnext(turn)\n"
    text = refusal(turn + "for i in pd.range(n):\n    x[i + next(turn)] = 1.0", itertools=itertools)
    assert "`turn` has another value in the next iteration of the `for` over pd.range" in text


def test_loops_in_loops_and_their_state():
    inner = (
        "st = [0]\nfor i in pd.range(n):\n    st[0] = 0\n    for j in pd.range(n):\n        x[st[0]] = 1.0\n        {}"
    )
    assert refusal(inner.format("pass")) == ""
    assert "next iteration of the `for` over pd.range (kernel.py:6)" in refusal(inner.format("st[0] += 1"))


def test_an_unrolled_loop_goes_on_with_what_its_copies_left():
    body = "st = [0]\nfor i in pd.range(n, unroll=2):\n    x[st[0]] = 1.0\n    st[0] = {}"
    assert "next iteration" in refusal(body.format("st[0] + 1"))
    assert refusal(body.format("0")) == ""


def test_a_loop_that_surely_runs_may_leave_what_each_round_leaves():
    body = "st = [0]\nfor i in pd.range({}):\n    x[i] = 1.0\n    st[0] = 3\nx[st[0]] = 1.0"
    assert refusal(body.format(4)) == ""
    assert "`st[0]` was changed in the `for`" in refusal(body.format("n"))


def test_values_are_those_of_the_program_that_is_printed():
    @pd.kernel
    def k(x: ptr[f32], n: u32):
        log = []
        for i in pd.range(n):
            log.append("x")
            x[i] = x[i] + 1.0

    x = np.zeros(4, np.float32)
    k[1, 1](x, 3)
    assert x.tolist() == [1, 1, 1, 0]
