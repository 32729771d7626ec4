"""Loads for memory that nothing writes while a kernel runs, and sources of copies that are longer than these."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr, u32


@pd.kernel
def reread(x: ptr[f32], y: ptr[f32], *, how, first):
    """Writes `x`, and reads it from elsewhere on."""
    x[pd.tid.x] = 1.0
    pd.ptx.bar.sync(0)
    y[pd.tid.x] = pd.ptx(f"{how}.f32", x + (first - pd.tid.x))


def report(how, first):
    return pd.emulate(reread, 1, 64, np.zeros(128, np.float32), np.zeros(64, np.float32), how=how, first=first)


def test_what_a_launch_has_written_is_not_read_by_nc_whatever_lies_between():
    finding, *others = report("ld.global.nc", 63).findings
    assert not others
    assert str(finding) == (
        "race: ld.global.nc.f32 reads x[63], which this launch wrote earlier with st.global.f32; "
        "such a load requires memory that nothing writes while the kernel runs\n"
        '  test_read_only.py:15 | y[pd.tid.x] = pd.ptx(f"{how}.f32", x + (first - pd.tid.x))\n'
        "                                       ^\n"
        "  test_read_only.py:13 | x[pd.tid.x] = 1.0\n"
        "                         ^\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 63 more threads\n"
        "  help: load it without .nc: no barrier or fence orders such a load after a store"
    )


@pytest.mark.parametrize("how, first", [("ld.global", 63), ("ld.global.nc", 127), ("ldu.global", 127)])
def test_others_loads_and_other_elements_are_read(how, first):
    assert report(how, first).findings == []


def test_one_launch_reads_by_nc_what_another_wrote():
    x, y = np.zeros(128, np.float32), np.zeros(64, np.float32)
    reread[1, 64](x, y, how="ld.global", first=63)
    reread[1, 64](x[64:], y, how="ld.global", first=63)

    @pd.kernel
    def read(x: ptr[f32], y: ptr[f32]):
        y[pd.tid.x] = pd.ptx.ld.global_.nc.f32(x + pd.tid.x) + 1.0

    read[1, 64](x, y)
    assert y.tolist() == [2.0] * 64


@pd.kernel
def rest(x: ptr[f32], y: ptr[f32], n: u32):
    tile = pd.shared(f32, 128, align=16)
    first = pd.tid.x * 4
    pd.ptx.cp.async_.cg.shared.global_(tile.address(first), x + first, 16, (n - first) * 4)
    pd.ptx.cp.async_.wait_all()
    y[pd.tid.x] = tile[first]


def test_a_copy_of_more_bytes_than_it_has_is_refused():
    """The last threads begin behind the end, where the difference wraps."""
    (finding,) = pd.emulate(rest, 1, 5, np.zeros(128, np.float32), np.zeros(8, np.float32), 12).findings
    assert str(finding) == (
        "out-of-bounds: cp.async.cg.shared.global copies 16 bytes, but `src_size` is 4294967280\n"
        "  test_read_only.py:59 | pd.ptx.cp.async_.cg.shared.global_(tile.address(first), x + first, 16, (n - first) * 4)\n"
        "                         ^\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 2 more threads\n"
        "  help: `src_size` must not exceed `size`; unsigned subtraction wraps, so compare first: pd.select(…)"
    )
