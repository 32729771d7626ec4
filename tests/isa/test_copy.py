"""cp.async: what it asks of the machine, and what it refuses."""

import numpy as np
import pytest

from ptxdsl.isa import lookup

from .fake_step import FakeStep, execute
from .refusals import refusal

DST, SRC = np.array([0, 16], np.uint64), np.array([256, 1024], np.uint64)


def form(text: str, operand: str) -> int:
    """The number of the form of an instruction that has an operand."""
    return next(n for n, i in enumerate(lookup(text)) if operand in [o.name for o in i.operands])


def queued(m: FakeStep) -> tuple[int, list[int]]:
    """Bytes of the only copy, and of these the bytes that come from the source, by lane."""
    ((name, dst, src, size, source_bytes),) = m.calls
    assert name == "copy_async" and (dst == DST).all() and (src == SRC).all()
    return size, source_bytes.tolist()


@pytest.mark.parametrize("size", [4, 8, 16])
def test_all_bytes_are_copied(size):
    m = FakeStep((2,))
    execute("cp.async.ca.shared.global", m, DST, SRC, size)
    assert queued(m) == (size, [size, size])


def test_src_size_is_what_comes_from_the_source():
    m, text = FakeStep((2,)), "cp.async.cg.shared.global.L2::128B"
    execute(text, m, DST, SRC, 16, np.array([0, 7], np.uint32), form=form(text, "src_size"))
    assert queued(m) == (16, [0, 7])


def test_an_ignored_source_gives_zeros():
    m, text = FakeStep((2,)), "cp.async.cg.shared.global"
    execute(text, m, DST, SRC, 16, np.array([True, False]), form=form(text, "ignore_src"))
    assert queued(m) == (16, [0, 16])


def test_a_cache_policy_changes_nothing():
    m, text = FakeStep((2,)), "cp.async.cg.shared.global.L2::cache_hint"
    policy, some = np.zeros(2, np.uint64), np.array([3, 16], np.uint32)
    execute(text, m, DST, SRC, 16, some, policy, form=form(text, "src_size"))
    assert queued(m) == (16, [3, 16])


@pytest.mark.parametrize(("text", "arguments", "call"), [
    ("cp.async.commit_group", (), ("commit_group",)),
    ("cp.async.wait_group", (2,), ("wait_group", 2)),
    ("cp.async.wait_all", (), ("wait_all",)),
])  # fmt: skip
def test_groups(text, arguments, call):
    m = FakeStep((2,))
    execute(text, m, *arguments)
    assert m.calls == [call]


@pytest.mark.parametrize(("instruction", "message"), [
    (
        "cp.async.cg.shared.global [tile], [%d0], 4;",
        "cp.async.cg.shared.global: `size` is 4; cp.async.cg copies 16 bytes\n"
        "  help: cp.async.ca copies 4, 8 or 16 bytes",
    ),
    (
        "cp.async.ca.shared.global [tile], [%d0], 12;",
        "cp.async.ca.shared.global: `size` is 12; cp.async.ca copies 4, 8 or 16 bytes",
    ),
    (
        "cp.async.ca.shared.global [tile+4], [%d0], 16;",
        "cp.async.ca.shared.global: `dst` is 4 bytes past an aligned address; this access requires multiples of 16",
    ),
    (
        "cp.async.ca.shared.global [table], [%d0], 16;",
        "cp.async.ca.shared.global: `dst` is `table` in .global; this instruction takes an address in .shared",
    ),
    (
        "cp.async.ca.shared.global [tile], [%d0], 16, 20;",
        "cp.async.ca.shared.global: `src_size` is 20; it must be from 0 to `size`, which is 16",
    ),
    (
        "cp.async.ca.shared.global [tile], [%d0], 16, %d1;",
        "cp.async.ca.shared.global: `src_size` is a b64 register; this form takes a 32-bit integer register",
    ),
    (
        "cp.async.ca.shared.global [tile], [%d0], %r0;",
        "cp.async.ca.shared.global: `size` is a b32 register; it must be an integer constant",
    ),
    (
        "cp.async.cg.shared.global.L2::cache_hint [tile], [%d0], 16;",
        "cp.async.cg.shared.global.L2::cache_hint: takes dst, src, size, policy; 3 given",
    ),
    ("cp.async.wait_group -1;", "cp.async.wait_group: `n` is -1; a number of groups is at least 0"),
    ("cp.async.wait_group %r0;", "cp.async.wait_group: `n` is a b32 register; it must be an integer constant"),
])  # fmt: skip
def test_refusals(instruction, message):
    assert refusal(instruction) == message


def test_what_is_fine():
    assert refusal("cp.async.cg.shared.global [tile+16], [%d0+16], 16, !%p0;") == ""
