"""A thread's own arrays, tables in constant memory, and pointers that are chosen."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import bf16, f16, f32, ptr, s8, s32, u32
from tests.tracing import emitted

WEIGHTS = np.array([[1.5, -2.0], [3.0, 4.0]], np.float32)


@pd.kernel
def tables(out: ptr[f32], bits: ptr[s32]):
    i = pd.tid.x
    weights, half = pd.constant(WEIGHTS), pd.constant([0.5, -0.25], f16)
    out[i] = weights[i, 1] + half[i].to(f32)
    bits[i] = pd.constant(np.array([-1, 5], np.int8))[i].to(s32)


def launched():
    out, bits = np.zeros(2, np.float32), np.zeros(2, np.int32)
    tables[1, 2](out, bits)
    return out.tolist(), bits.tolist()


def test_a_table_holds_the_numbers_that_python_had_when_it_was_traced(monkeypatch):
    assert launched() == ([-1.5, 3.75], [-1, 5])
    monkeypatch.setitem(globals(), "WEIGHTS", WEIGHTS + 1)
    assert launched() == ([-0.5, 4.75], [-1, 5])


def test_the_same_table_is_declared_once():
    @pd.kernel
    def k(out: ptr[f32]):
        out[0] = pd.constant([1.0, 2.0], f32)[pd.tid.x] + pd.constant([1.0, 2.0], f32)[0]
        out[1] = pd.constant([1.0, 2.0], bf16)[0].to(f32)

    assert k.ptx().count(".const .align") == 2


def test_each_thread_has_a_local_array_of_its_own():
    @pd.kernel
    def k(x: ptr[u32], n: u32):
        i = pd.tid.x
        digits = pd.local(u32, (2, 4))
        for place in pd.range(4):
            digits[1, place] = i + place
        x[i] = digits[1, n] * 10

    x = np.zeros(32, np.uint32)
    k[1, 32](x, 3)
    assert np.array_equal(x, (np.arange(32) + 3) * 10)


def test_what_nobody_wrote_to_a_local_array_is_told():
    @pd.kernel
    def k(x: ptr[u32]):
        x[0] = pd.local(u32, 4)[pd.tid.x]

    assert pd.emulate(k, 1, 1, np.zeros(1, np.uint32)).findings[0].kind == "uninitialized"


def test_a_chosen_pointer_is_one_instruction():
    @pd.kernel
    def k(x: ptr[f32], y: ptr[f32]):
        i = pd.tid.x
        p = pd.select(i % 2 == 0, x, y + 4)
        p[i] = 1.0

    assert [text.partition(" ")[0] for text in emitted(k)].count("selp.u64") == 1
    x, y = np.zeros(4, np.float32), np.zeros(8, np.float32)
    k[1, 4](x, y)
    assert (x.tolist(), y.tolist()) == ([1, 0, 1, 0], [0, 0, 0, 0, 0, 1, 0, 1])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_tables_and_local_arrays_are_assembled(arch):
    @pd.kernel
    def k(x: ptr[f32], y: ptr[s8], n: u32, *, length=64):
        stack = pd.local(s8, length, align=8)
        stack[n] = y[n]
        x[n] = pd.constant(WEIGHTS)[n, 0] + stack[n + 1].to(f32)
        y[0] = pd.dynamic_shared(s8, 16)[n]
        y[1] = pd.shared(s8, 5)[n]

    assert k.cubin(arch).kernels["k"].registers > 0
