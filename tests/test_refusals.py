"""What the author of a kernel reads when it cannot be traced: the full text of each error.

A case in `refusals/tracing.txt` is a title, the body of `def k(x: ptr[f32], n: u32)`, and behind `---` what is printed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.types import TYPES
from tests.tracing import refusal

TABLE = Path(__file__).parent / "refusals" / "tracing.txt"


def cases():
    for case in TABLE.read_text().split("=== ")[1:]:
        title, _, rest = case.partition("\n")
        body, _, text = rest.partition("\n---\n")
        yield pytest.param(body, text.strip("\n"), id=title)


@pytest.mark.parametrize("body, text", list(cases()))
def test_what_cannot_be_traced_is_refused_in_words(body, text):
    assert without_carets(refusal(body)) == without_carets(text)


OBJECT = "from types import SimpleNamespace\ns = SimpleNamespace(m=m[0])\n"
COPIES = {
    "the copy is written": "d = tuple(m)\nfor v in d:\n    v += 1.0\nx[0] = d[0]",
    "by its own name": "d = list(m)\nd[0] += 1.0\nx[0] = m[0]",
    "nobody reads it later": "d = list(m)\nx[0] = d[0]\nm[0] += 1.0\nx[0] = m[0]",
    "what they hold": "d = [v.value for v in m]\nm[0] += 1.0\nx[0] = m[0] - d[0]",
    "a part of them": "d = m[:1]\nm[0] += 1.0\nx[0] = d[0]",
    "with others": "d = [*m, pd.var(f32, 2)]\nm[0] += 1.0\nx[0] = m[0] - d[2]",
    "an attribute": f"{OBJECT}s.now = s.m\nx[1] = s.now\ns.m += x[0]\nx[0] = s.m",
    "what an attribute holds": f"{OBJECT}s.old = s.m.value\ns.m += x[0]\nx[0] = s.m - s.old",
    "a field of a copy": f"{OBJECT}from copy import copy\nold = copy(s)\nold.m = s.m.value\ns.m += x[0]\nx[0] = s.m - old.m",
}


@pytest.mark.parametrize("case", COPIES)
def test_lists_of_the_same_variables_are_refused_only_where_they_seem_to_keep_them(case):
    assert refusal(f"m = [pd.var(f32, 0), pd.var(f32, 1)]\n{COPIES[case]}") == ""


OLD = "old = [pd.var(f32, 0), pd.var(f32, 1)]\n"
PAIRS = "for a in m:\n    for b in m:\n        a += 1.0\n        x[0] = a * b"
HONEST = {
    "a tuple that is read in the end": "d = m[0], m[1]\na, b = d\na += 1.0\nb += 1.0\nx[0] = d[0] + d[1]",
    "a tuple for a helper": "def f(d):\n    a, b = d\n    a.set(b)\nf((m[0], m[1]))\nx[0] = m[0]",
    "all pairs": PAIRS,
    "all pairs by numbers": "a = m\nm[0] += 1.0\nfor i in range(2):\n    for j in range(2):\n        if i != j:\n            x[0] = a[i] * m[j]",
    "a square in a helper": "def dot(a, b):\n    return a[0] * b[0]\nm[0] += 1.0\nx[0] = dot(m, m)",
    "a square of two parameters": "def product(a, b):\n    return a * b\nm[0] += 1.0\nx[0] = product(m[0], m[0])",
    "zip of one list": "d = m\nm[0] += 1.0\nx[0] = sum([a * b for a, b in zip(m, d)])",
    "buffers in turns": f"{OLD}for _ in range(2):\n    for a, b in zip(old, m):\n        a.set(b)\n    old, m = m, old\nx[0] = old[0]",
    "old ones among all": f"{OLD}for v in [*old, *m]:\n    v += 1.0\nx[0] = old[0] - m[0]",
    "old ones in a dict": f"{OLD}d = dict(old=old, new=m)\nd['new'][0] += 1.0\nd['old'][0] += 1.0\nx[0] = old[0] - m[0]",
    "what a helper returns": "def f():\n    a, b = m\n    a += 1.0\n    return a, b\nprevious = f()\nx[0] = previous[0]",
    "values of a state": "old = tuple(v.value for v in m)\nm[0] += 1.0\nx[0] = m[0] - old[0]",
}


@pytest.mark.parametrize("case", HONEST)
def test_containers_of_variables_that_keep_nothing_are_not_refused(case):
    assert refusal(f"m = [pd.var(f32, 0), pd.var(f32, 1)]\n{HONEST[case]}") == ""


LOOPS = "for i in pd.range(n):\n    s = i % 3\n{0}\nfor i in pd.range(n):\n    s = i % 2\n{0}"
BOUND_AGAIN = {
    "by the condition of a loop": LOOPS.format("    with pd.while_(lambda: x[s] > 0.0):\n        pass"),
    "by the condition of a branch": LOOPS.format(
        "    with pd.if_(x[0] > 0.0):\n        x[i] = 1.0\n    with pd.elif_(lambda: s > 1):\n        x[i] = 2.0"
    ),
    "by a comprehension": LOOPS.format("    x[i] = sum([x[s + j] for j in range(2)])"),
    "by what a call takes": LOOPS.format("    x[i] = sum(x[s + j] for j in range(2))"),
}


@pytest.mark.parametrize("case", BOUND_AGAIN)
def test_names_of_one_role_may_be_those_of_another_where_functions_read_them_at_once(case):
    assert refusal(BOUND_AGAIN[case]) == ""


WHILE, IF = "with pd.while_(lambda: {}):\n    {}", "with pd.if_(x[0] > 0.0):\n    s = n * 2"
READ_LATER = {
    "a condition, in the next round": "s = n\n" + WHILE.format("s > 0", "s = s - 1"),
    "a condition, behind a branch in its loop": "s = n\n" + WHILE.format("s > 0", IF.replace("\n", "\n    ")),
    "a function that has a name": f"s = n\nread = lambda: s + 1\n{IF}\nx[read()] = 1.0",
    "a comprehension": f"s = n\n{IF}\nx[0] = sum([x[s + j] for j in range(2)])",
    "what a call takes": f"s = n\n{IF}\nx[0] = sum(x[s + j] for j in range(2))",
}


@pytest.mark.parametrize("case", READ_LATER)
def test_names_that_functions_read_later_are_refused(case):
    assert refusal(READ_LATER[case]).startswith("`s` is rebound in `with pd.")


def test_a_second_name_that_the_condition_of_a_loop_reads_is_refused():
    text = refusal("m = pd.var(f32, 0)\nold = m\n" + WHILE.format("m - old < 4.0", "m += 1.0"))
    assert text.startswith("`old` is a second name for the variable `m`, not a copy of it")


def without_carets(text):
    """The text; on Pythons that place some calls more exactly than 3.11 does, without the marks under the line."""
    if sys.version_info < (3, 12):
        return text
    return "\n".join(line for line in text.splitlines() if set(line) - {" ", "^"})


def refused_without_source(body):
    """What a kernel says that was typed into Python or made by `exec`: its lines are in no file."""
    text = f"@pd.kernel\ndef k(x: ptr[f32], n: u32):\n{indent(body, '    ')}\n"
    scope = {"pd": pd, "np": np, "ptr": pd.ptr, **TYPES}
    exec(compile(text, "<stdin>", "exec"), scope)
    with pytest.raises(pd.Error) as caught:
        scope["k"].ptx()
    return str(caught.value)


TRUTH = (
    "  <stdin>:3\n  help: use pd.if_, pd.while_, pd.select (for `a if p else b`), pd.assert_, pd.min or pd.max; write `and`, "
    "`or`, `not` as `&`, `|`, `~`, and `a < b < c` as `(a < b) & (b < c)`"
)
WITHOUT_SOURCE = {
    "if n > 3:\n    x[0] = 1.0": (f"Python tests `a predicate`, which is not known while tracing\n{TRUTH}"),
    "p = n > 3\nx[0] = 1.0 if p else 2.0": (
        "Python tests `p`, which is not known while tracing\n" + TRUTH.replace(":3", ":4")
    ),
    "a, b = x[0]": (
        "`an f32` is one f32; it cannot be looped over or unpacked\n"
        "  <stdin>:3\n  help: bind it to one name, `a = …`; loops count integers, `for i in pd.range(n):`; `pair=True` "
        "returns a second destination"
    ),
    "x[0] = x[1] + n": (
        "`+` of two types: `an f32` is f32, `n` is u32\n"
        "  <stdin>:3\n  help: convert one of them: `n.to(f32)` or `v.to(u32)`"
    ),
    "x[n] += 1.0": (
        "`+=` on `v`, which is not a variable\n"
        "  <stdin>:3\n  help: write `v = v + …`, or keep it in a variable, `v = pd.var(f32, …)`; pd.ptx.red and pd.ptx.atom "
        "update an element that threads share"
    ),
    "a = pd.var(f32, 0)\nb = a\na += 1.0\nx[0] = b": (
        "`b` is a second name for the variable `a`, not a copy of it: this write changes both\n"
        "  <stdin>:5\n  help: to keep what it held before, write `b = a.value`"
    ),
    "a = [pd.var(f32, 0)]\nb = a[0]\na[0].set(1.0)\nx[0] = b": (
        "`b` is a second name for the variable that is written here, not a copy of it: this write changes both\n"
        "  <stdin>:5\n  help: to keep what it held before, bind `b` to its `.value`"
    ),
    "for j, i in enumerate(pd.range(n)):\n    x[i] = float(j)": (
        "a function of Python iterates over a pd.range, which is a loop of the kernel: Python traces one iteration, and what it counts or pairs would be the same in all\n  <stdin>:3\n"
        "  help: loop over the pd.range itself by `for`, and count or index by a `pd.var`; with "
        '`unroll="full"`, or with a `range` of Python, every iteration is traced'
    ),
}


@pytest.mark.parametrize("body, text", WITHOUT_SOURCE.items(), ids=WITHOUT_SOURCE)
def test_where_the_source_is_not_at_hand_nothing_is_guessed(body, text):
    assert refused_without_source(body) == text
