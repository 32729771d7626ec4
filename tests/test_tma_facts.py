"""What TMA does at the ends of arrays and of instructions, the same on the emulator and on a GPU."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b32, b64, bf16, f16, f32, ptr, s32, u32

from .machines import BF16, MACHINES, machine
from .test_tma import Corner, moved

every_machine = pytest.mark.parametrize("name", MACHINES)
DTYPES = {f16: np.float16, bf16: BF16, f32: np.float32, s32: np.int32, u32: np.uint32}
LINE = 32  # words of 128 bytes


@every_machine
@pytest.mark.parametrize("at, to", [((1000, 0), (0, 0)), ((0, 4000), (0, 0)), ((-100, 8), (0, 0)), ((0, 0), (1000, 0))])
def test_boxes_that_lie_outside_bring_zeros_and_write_nothing(name, at, to):
    where = machine(name)
    a, b = np.arange(1, 801, dtype=np.float32).reshape(20, 40), np.full((20, 40), 7, np.float32)
    expected = b.copy()
    if to == (0, 0):
        expected[:8, :16] = 0
    out, box = where.array(b), pd.TensorMap(f32, (8, 16))
    corner = Corner(at=(*at, 0, 0, 0), to=(*to, 0, 0, 0))
    moved[1, 32](where.array(a), out, corner, source=box, target=box)
    assert np.array_equal(where.values(out), expected)


@pd.kernel(arch="sm_90a", reqntid=32)
def spread(a: "box", y: ptr[b32], *, box: pd.TensorMap, shift: int, words: int):  # noqa: F821
    """y = the words of shared memory, of which a box begins at line `shift`."""
    room, full = pd.shared(b32, words, align=1024), pd.shared(b64, 1)
    for first in range(0, words, 32):
        room[first + pd.tid.x] = 0
    pd.ptx.fence.proxy.async_.shared__cta()
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), a.bytes, out="_")
        a.load(room.address(LINE * shift), (0, 0), full)
    with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), 0)):
        pass
    for first in range(0, words, 32):
        y[first + pd.tid.x] = room[first + pd.tid.x]


@every_machine
@pytest.mark.parametrize("shift", [0, 1, 5])
@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_swizzles_follow_addresses_wherever_a_box_begins(name, swizzle, shift):
    """Chunks of 16 bytes change places by the bits of their address above 128, not by their rows."""
    where, words = machine(name), 16 * LINE
    across = swizzle // 4
    a = np.arange(1, 1 + 8 * across, dtype=np.float32).reshape(8, across)
    out = where.array(np.zeros(words, np.int32))
    spread[1, 32](where.array(a), out, box=pd.TensorMap(f32, (8, across), swizzle), shift=shift, words=words)
    chunk = shift * 8 + np.arange(a.size // 4)
    chunk ^= chunk >> 3 & swizzle // 16 - 1
    expected = np.zeros((words // 4, 4))
    expected[chunk] = a.reshape(-1, 4).view(np.int32)
    assert np.array_equal(where.values(out), expected.reshape(-1))


@pd.kernel(arch="sm_90a", reqntid=32)
def combined(a: "box", y: "box", *, box: pd.TensorMap, operation: str):  # noqa: F821
    """y = op(y, a) by one box."""
    tile, full = a.shared(), pd.shared(b64, 1)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), a.bytes, out="_")
        a.load(tile, (0, 0), full)
        with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), 0)):
            pass
        y.reduce(operation, (4, 0), tile)
        pd.ptx.cp.async_.bulk.commit_group()
        pd.ptx.cp.async_.bulk.wait_group(0)


OPERATIONS = {
    ("add", f16): np.add, ("add", bf16): np.add, ("add", f32): np.add, ("add", s32): np.add,
    ("min", s32): np.minimum, ("max", s32): np.maximum, ("min", f16): np.minimum, ("max", bf16): np.maximum,
    ("and", u32): np.bitwise_and, ("or", u32): np.bitwise_or, ("xor", u32): np.bitwise_xor,
    ("inc", u32): lambda y, a: np.where(y >= a, 0, y + 1),
    ("dec", u32): lambda y, a: np.where((y == 0) | (y > a), a, y - 1),
}  # fmt: skip


@every_machine
@pytest.mark.parametrize("operation, element", OPERATIONS, ids=str)
def test_boxes_are_combined_up_to_the_last_line(name, operation, element, rng):
    """The box is stored over the end: four of its eight lines are outside. Sums are rounded once."""
    where, dtype = machine(name), np.dtype(DTYPES[element])
    drawn = rng.standard_normal((2, 8, 32)) * 8 if dtype.kind in "fV" else rng.integers(0, 100, (2, 8, 32))
    a, y = drawn.astype(dtype)
    out = where.array(y.copy())
    combined[1, 32](where.array(a), out, box=pd.TensorMap(element, (8, 32)), operation=operation)
    expected = y.astype(np.float64) if dtype.kind in "fV" else y.astype(np.int64)
    wide = a.astype(expected.dtype)
    expected[4:] = OPERATIONS[operation, element](expected[4:], wide[:4]).astype(dtype)
    assert np.array_equal(where.values(out), expected.astype(np.float64))


@pd.kernel(arch="sm_90a", reqntid=32, cluster=4)
def sent(a: pd.TensorMap(f32, (2, 16)), y: ptr[f32], mask: u32):
    """Block 0 brings a box to some blocks of its cluster, at a barrier of each."""
    tile, full = pd.shared(f32, (2, 16), align=128), pd.shared(b64, 1)
    tile[0, pd.tid.x] = -1.0
    pd.ptx.fence.proxy.async_.shared__cta()
    receives = (mask >> pd.ctaid.x & 1) == 1
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
        with pd.if_(receives):
            pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), a.bytes, out="_")
    pd.ptx.barrier.cluster.arrive.release.aligned()
    pd.ptx.barrier.cluster.wait.acquire.aligned()
    with pd.if_((pd.ctaid.x == 0) & (pd.tid.x == 0)):
        a.load(tile, (0, 0), full, multicast=mask.to(pd.u16))
    with pd.if_(receives), pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), 0)):
        pass
    y[pd.ctaid.x * 32 + pd.tid.x] = tile[pd.tid.x // 16, pd.tid.x % 16]
    pd.ptx.barrier.cluster.arrive.release.aligned()
    pd.ptx.barrier.cluster.wait.acquire.aligned()


@every_machine
@pytest.mark.parametrize("mask", [0b1111, 0b1010, 0b0001, 0b1000])
def test_a_box_comes_to_the_blocks_of_a_mask_alone(name, mask):
    where, a = machine(name), np.arange(1, 33, dtype=np.float32).reshape(2, 16)
    out = where.array(np.zeros((4, 32), np.float32))
    sent[4, 32](where.array(a), out, mask)
    assert where.values(out).tolist() == [a.reshape(-1).tolist() if mask >> n & 1 else [-1.0] * 32 for n in range(4)]
