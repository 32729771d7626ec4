"""Python's `return`, `break` and `continue` in traced blocks: those that leave a block are refused, others are Python's."""

from __future__ import annotations

import linecache
from contextlib import ExitStack, contextmanager

import pytest

import ptxdsl as pd
from tests.tracing import FILE, source_kernel


def leaves(body, with_source=True):
    """Whether a kernel's body is refused because a statement leaves a block."""
    kernel = source_kernel(body, contextmanager=contextmanager, ExitStack=ExitStack)
    if not with_source:
        linecache.cache.pop(FILE)
    try:
        kernel.ptx()
    except pd.TraceError as error:
        assert " leaves `with pd." in error.message, error
        return True
    return False


GUARD = """
class Guard:
    def __enter__(self):
        self.block = pd.if_(n > 3)
        self.block.__enter__()
    def __exit__(self, *error):
        self.block.__exit__(*error)
"""
ROLE = """
@contextmanager
def role(i):
    with pd.if_(n == i):
        yield
"""
CLOSING = """
class Closing:
    def __enter__(self):
        pass
    def __exit__(self, *error):
        with pd.if_(n > 3):
            x[0] = 1.0
def f():
    with Closing():
        return
    x[1] = 2.0
f()
"""

LEAVE = {
    "return in if_": "with pd.if_(n > 3):\n    return\nx[0] = 1.0",
    "return on the line of if_": "with pd.if_(n > 3): return\nx[0] = 1.0",
    "return in else_": "with pd.if_(n > 3):\n    x[0] = 1.0\nwith pd.else_():\n    return\nx[1] = 1.0",
    "return in while_": "with pd.while_(lambda: n > 3):\n    x[0] = 1.0\n    return\nx[1] = 1.0",
    "return in if_ in while_": "with pd.while_(lambda: n > 3):\n    with pd.if_(n > 4):\n        return",
    "return in two blocks of one with": "with pd.if_(n > 3), pd.if_(n > 4):\n    return\nx[0] = 1.0",
    "return in a with of several lines": "with (\n    pd.if_(n > 3),\n    pd.if_(n > 4),\n):\n    return\nx[0] = 1.0",
    "return in a Python if that is taken": "with pd.if_(n > 3):\n    if x is not None:\n        return\n    x[1] = 1.0\nx[0] = 1.0",
    "return in try": "try:\n    with pd.if_(n > 3):\n        return\nfinally:\n    x[0] = 1.0\nx[1] = 1.0",
    "break of a Python loop": "for i in range(4):\n    with pd.if_(n > 3):\n        if i == 2:\n            break\n        x[i] = 1.0",
    "break of while True": "while True:\n    with pd.if_(n > 3):\n        break",
    "break of the inner loop": "for i in range(2):\n    for j in range(2):\n        with pd.if_(n > j):\n            break\n        x[i] = 1.0",
    "continue of a Python loop": "for i in range(4):\n    with pd.if_(n > i):\n        continue\n    x[i] = 1.0",
    "break of pd.range": "for i in pd.range(n):\n    with pd.if_(i > 3):\n        break\n    x[i] = 1.0",
    "continue of pd.range": "for i in pd.range(n):\n    with pd.if_(i > 3):\n        continue\n    x[i] = 1.0",
    "a value from a function": "def f():\n    with pd.if_(n > 3):\n        return 1.0\n    return 2.0\nx[0] = f()",
    "a computed value from a function": "def f(a):\n    with pd.if_(n > 3):\n        return a + 1.0\n    return a\nx[0] = f(x[1])",
    "return in a method": "class C:\n    def m(self):\n        with pd.if_(n > 3):\n            return 1\n        x[0] = 1.0\nC().m()",
    "return in the user's context manager": f"{ROLE}\nwith role(1):\n    return\nx[0] = 1.0",
    "return in the user's class": f"{GUARD}\nwith Guard():\n    return\nx[0] = 1.0",
    "return in an ExitStack": "with ExitStack() as s:\n    s.enter_context(pd.if_(n > 3))\n    return\nx[0] = 1.0",
}  # fmt: skip

STAY = {
    "return in a Python if that is not taken": "with pd.if_(n > 3):\n    if x is None:\n        return\n    x[0] = 1.0\nx[1] = 1.0",
    "a loop in the block": "with pd.if_(n > 3):\n    for i in range(4):\n        if i == 2:\n            break\n        if i == 1:\n            continue\n        x[i] = 1.0\nx[5] = 1.0",
    "while True in the block": "with pd.if_(n > 3):\n    while True:\n        x[0] = 1.0\n        break",
    "a block last in a loop": "for i in range(4):\n    with pd.if_(n > i):\n        x[i] = 1.0",
    "a block last in pd.range": "for i in pd.range(n):\n    with pd.if_(i > 3):\n        x[i] = 1.0\n    with pd.else_():\n        x[i] = 2.0",
    "a block before the end of a loop": "for i in range(4):\n    with pd.if_(n > i):\n        x[i] = 1.0\n    if i == 2:\n        break\nx[0] = 1.0",
    "two blocks of one with": "with pd.if_(n > 3), pd.if_(n > 4):\n    x[0] = 1.0\nx[1] = 1.0",
    "a block in a block": "with pd.if_(n > 3):\n    with pd.if_(n > 4):\n        x[0] = 1.0",
    "pass": "with pd.if_(n > 3):\n    pass  # no return\nx[0] = 1.0",
    "if and else in the block": "with pd.if_(n > 3):\n    if x is None:\n        pass\n    else:\n        x[0] = 1.0",
    "try in the block": "with pd.if_(n > 3):\n    try:\n        x[0] = 1.0\n    except ValueError:\n        x[1] = 2.0",
    "the block in try": "try:\n    with pd.if_(n > 3):\n        x[0] = 1.0\nfinally:\n    x[1] = 2.0",
    "return behind the block": "def f(a):\n    with pd.if_(n > 3):\n        x[1] = 2.0\n    return a\nx[0] = f(x[2])",
    "a function that is called in the block": "def f(a):\n    if a is None:\n        return x[0]\n    return a\nwith pd.if_(n > 3):\n    x[1] = f(None)\nx[0] = 1.0",
    "functions that are made in the block": "with pd.if_(n > 3):\n    def f():\n        return 1.0\n    x[0] = f()\nx[1] = 1.0",
    "the user's context manager": f"{ROLE}\nwith role(1):\n    x[0] = 1.0\nwith role(2):\n    x[0] = 2.0\nx[1] = 1.0",
    "the user's class": f"{GUARD}\nwith Guard():\n    x[0] = 1.0\nx[1] = 1.0",
    "an ExitStack": "with ExitStack() as s:\n    s.enter_context(pd.if_(n > 3))\n    x[0] = 1.0\nx[1] = 1.0",
    "a block without with": "b = pd.if_(n > 3)\nb.__enter__()\nx[0] = 1.0\nb.__exit__(None, None, None)\nx[1] = 1.0",
    "a block while another object's with is left": CLOSING,
    "a generator": "def g():\n    for i in range(3):\n        with pd.if_(n > i):\n            yield i\nfor i in g():\n    x[i] = 1.0",
}  # fmt: skip


def named(cases):
    return [pytest.param(body, id=name) for name, body in cases.items()]


@pytest.mark.parametrize("with_source", [True, False], ids=["source", "no source"])
@pytest.mark.parametrize("body", named(LEAVE))
def test_a_statement_that_leaves_a_block_is_refused(body, with_source):
    assert leaves(body, with_source)


@pytest.mark.parametrize("with_source", [True, False], ids=["source", "no source"])
@pytest.mark.parametrize("body", named(STAY))
def test_a_statement_that_stays_in_its_block_is_pythons(body, with_source):
    assert not leaves(body, with_source)


@pytest.mark.parametrize("block", ["pd.if_(n > 3)", "pd.while_(lambda: n > 3)"])
def test_the_last_statement_of_a_kernel_is_told_by_its_source(block):
    assert leaves(f"with {block}:\n    x[0] = 1.0\n    return")
    assert not leaves(f"with {block}:\n    x[0] = 1.0")


def test_without_a_source_all_three_ways_out_are_named():
    kernel = source_kernel("with pd.if_(n > 3):\n    return\nx[0] = 1.0")
    linecache.cache.pop(FILE)
    with pytest.raises(pd.TraceError) as error:
        kernel.ptx()
    assert str(error.value) == (
        "a Python `return`, `break` or `continue` leaves `with pd.if_(…)` (kernel.py:3): Python would skip what "
        "follows while tracing, for all threads\n"
        "  kernel.py:4\n"
        "  help: write `pd.return_()`, `pd.break_()` or `pd.continue_()`"
    )
