"""Refusals of control flow, barriers and fences."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import ir
from ptxdsl.isa import lookup
from ptxdsl.types import f32, u32


def problem(text, *operands):
    """What is wrong with an instruction; it must be one thing."""
    (found,) = lookup(text)[0].problems(operands)
    return found.message


def constants(*values):
    return tuple(map(ir.Immediate, values))


@pytest.mark.parametrize(("text", "operands", "message"), [
    ("bar.sync", constants(16), "barrier 16 does not exist; a CTA has barriers 0 to 15"),
    ("barrier.cta.sync.aligned", constants(-1), "barrier -1 does not exist; a CTA has barriers 0 to 15"),
    ("bar.sync", constants(0, 48), "`b` is 48 threads; it must be a positive multiple of the warp size, 32"),
    ("bar.arrive", constants(1, 0), "`b` is 0 threads; it must be a positive multiple of the warp size, 32"),
    ("bar.arrive", constants(1), "takes a, b; 1 given"),
    ("pmevent", constants(16), "`events` is 16; it must be 0 to 15"),
    ("pmevent.mask", constants(65536), "`events` is 65536; it must be 0 to 65535"),
    ("bra", constants(3), "`target` is a constant; this form takes a label"),
    ("brx.idx", (ir.Register("r", f32), ir.Label("L")), "`index` is an f32 register; this form takes a 32-bit integer register"),
    ("call", (ir.Label("L"),), "`function` is a label; this form takes a function"),
    ("nanosleep.u32", (ir.Immediate.float(1.0),), "`t` is a floating constant; this form takes a 32-bit integer register"),
    ("activemask.b32", constants(1), "`d` is written, so it cannot be a constant"),
    ("ret", (ir.Register("r", u32),), "takes no operands; 1 given"),
])  # fmt: skip
def test_refusals(text, operands, message):
    assert problem(text, *operands) == message


@pytest.mark.parametrize(("text", "arch", "supported"), [
    ("fence.sc.gpu", "sm_80", True), ("fence.acquire.cluster", "sm_80", False), ("fence.acquire.cta", "sm_90", True),
    ("barrier.cluster.arrive.release.aligned", "sm_90", True), ("barrier.cluster.wait", "sm_80", False),
    ("fence.proxy.async", "sm_80", False), ("membar.gl", "sm_80", True), ("griddepcontrol.wait", "sm_90", True),
])  # fmt: skip
def test_targets(text, arch, supported):
    assert lookup(text)[0].supports(arch) == supported


def test_the_barrier_of_a_cluster_is_traced_as_it_is_parsed():
    @pd.kernel
    def k(x: pd.ptr[u32]):
        pd.ptx.barrier.cluster.arrive.relaxed.aligned()
        pd.ptx.barrier.cluster.wait.acquire.aligned()
        x[0] = 1

    text = k.ptx("sm_90")
    assert "barrier.cluster.arrive.relaxed.aligned;" in text
    assert pd.parse(text).ptx().count("barrier.cluster") == 2
    x = np.zeros(1, np.uint32)
    with pd.config.using(arch="sm_90"):
        k[1, 32](x)
    assert x[0] == 1
