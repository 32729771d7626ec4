"""Boxes that come to shared memory by one swizzle and are read by another: by a descriptor of wgmma, or as boxes."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, f16, f32, ptr, u64
from ptxdsl.layout import shared_operand, tile_layout

ROWS, N = 64, 8
ATOM = f"wgmma.m64n{N}k16.f32.f16"
PRODUCT = pd.ptx.wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
SWIZZLES = (None, 32, 64, 128)
WIDE = 128  # elements of lines that go on beyond a box


def columns(swizzle):
    """Of boxes with lines as long as the swizzle's span, and of 128 bytes without one."""
    return (swizzle or 128) // f16.bytes


def bring(full, *copies):
    """One thread copies boxes, and all wait for them."""
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), sum(x.bytes for x, _ in copies), out="_")
        for x, tile in copies:
            x.load(tile, (0, 0), full)
    with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), 0)):
        pass


def product(brought, read, base=0, between=None):
    """A kernel whose operands come by the swizzle `brought`, and that reads them by `read`."""
    width, of = columns(brought), max(read or 0, 32) // f16.bytes
    tiles = [tile_layout(rows, of, f16.bits, read or 0) for rows in (ROWS, N)]
    operands = [shared_operand(ATOM, name, tile) for name, tile in zip("ab", tiles, strict=True)]

    @pd.kernel(arch="sm_90a", reqntid=128)
    def k(
        a: pd.TensorMap(f16, (ROWS, width), swizzle=brought),
        b: pd.TensorMap(f16, (N, width), swizzle=brought),
        d: ptr[f32],
    ):
        stages = a.shared(4), b.shared(4)
        boxes = [opaque(pd.cast(stage.address(0, 0, 0).value, u64)) for stage in stages]
        bring(pd.shared(b64, 1), (a, stages[0].address(0, 0, 0)), (b, stages[1].address(0, 0, 0)))
        if between is not None:
            between(*stages)
        of_a, of_b = (o.descriptor(box) | base << 49 for o, box in zip(operands, boxes, strict=True))
        sums = [pd.var(f32, 0.0) for _ in range(N // 2)]
        pd.ptx.wgmma.fence.sync.aligned()
        PRODUCT(of_a, of_b, 1, 1, 1, 0, 0, out=sums)
        pd.ptx.wgmma.commit_group.sync.aligned()
        pd.ptx.wgmma.wait_group.sync.aligned(0)
        for n, value in enumerate(sums):
            d[pd.tid.x * len(sums) + n] = value

    return k


def findings(kernel, width=WIDE):
    """What is found in a product of matrices of so many columns."""
    a, b = np.ones((ROWS, width), np.float16), np.ones((N, width), np.float16)
    return pd.emulate(kernel, 1, 128, a, b, np.zeros((128, N // 2), np.float32)).findings


def stored(brought, by, lines=WIDE):
    """Findings of a kernel that stores a box by a swizzle."""

    @pd.kernel(arch="sm_90a", reqntid=32)
    def k(
        x: pd.TensorMap(f16, (ROWS, columns(32)), swizzle=brought),
        y: pd.TensorMap(f16, (ROWS, columns(32)), swizzle=by),
    ):
        tile = x.shared()
        bring(pd.shared(b64, 1), (x, tile))
        with pd.if_(pd.tid.x == 0):
            y.store((0, 0), tile.address())
            y.commit()
            pd.ptx.cp.async_.bulk.wait_group(0)

    y = np.zeros((ROWS, lines), np.float16)
    return pd.emulate(k, 1, 32, np.ones((ROWS, WIDE), np.float16), y).findings


@pytest.mark.parametrize("brought", SWIZZLES)
@pytest.mark.parametrize("read", SWIZZLES)
def test_a_descriptor_says_the_swizzle_of_the_tensor_map(brought, read):
    kinds = {finding.kind for finding in findings(product(brought, read))}
    assert ("swizzle" in kinds) == (read != brought)
    assert kinds <= {"swizzle", "uninitialized"}


def test_in_words():
    (finding,) = findings(product(128, 64))
    assert str(finding) == (
        "swizzle: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 reads A swizzled by 64 bytes, which "
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes loaded "
        "swizzled by 128 bytes\n"
        "  test_swizzles.py:56 | PRODUCT(of_a, of_b, 1, 1, 1, 0, 0, out=sums)\n"
        "                        ^\n"
        "  test_swizzles.py:31 | x.load(tile, (0, 0), full)\n"
        "                        ^\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 3 more threads\n"
        "  help: bits 62 and 63 of a descriptor are 1 for a tile swizzled by 128 bytes: take it from "
        "`layout.shared_operand(…, 'a', x.shared())`, where `x` is the tensor map; or write `swizzle=64` "
        "in the map"
    )


def test_a_tile_that_lies_as_it_is_in_words():
    (finding,) = findings(product(None, 128))
    assert str(finding) == (
        "swizzle: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 reads A swizzled by 128 bytes, which "
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes loaded "
        "without a swizzle\n"
        "  test_swizzles.py:56 | PRODUCT(of_a, of_b, 1, 1, 1, 0, 0, out=sums)\n"
        "                        ^\n"
        "  test_swizzles.py:31 | x.load(tile, (0, 0), full)\n"
        "                        ^\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 3 more threads\n"
        "  help: bits 62 and 63 of a descriptor are 0 for a tile without a swizzle: take it from "
        "`layout.shared_operand(…, 'a', x.shared())`, where `x` is the tensor map; or write "
        "`swizzle=128` in the map"
    )


def test_a_base_offset():
    (finding,) = findings(product(128, 128, base=1))
    assert str(finding) == (
        "swizzle: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 reads A with a base offset of 1, which "
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes loaded "
        "without one\n"
        "  test_swizzles.py:56 | PRODUCT(of_a, of_b, 1, 1, 1, 0, 0, out=sums)\n"
        "                        ^\n"
        "  test_swizzles.py:31 | x.load(tile, (0, 0), full)\n"
        "                        ^\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 3 more threads\n"
        "  help: TMA swizzles by address in shared memory: write 0 in bits 49 to 51 of the "
        "descriptor"
    )


def test_half_a_pattern_moves_all_lines_alike():
    assert not findings(product(128, 128, base=4))


def test_tiles_that_may_lie_swizzled_in_memory_are_read_as_the_kernel_says():
    """Lines of the tensor end with the box: each box may be a tile that was swizzled before."""
    assert not findings(product(None, 128), width=columns(None))


def test_what_threads_have_written_since_is_theirs():
    def between(*stages):
        for stage, rows in zip(stages, (ROWS, N), strict=True):
            for step in range(0, rows * columns(128), 128):
                element = step + pd.tid.x
                stage[0, element // columns(128), element % columns(128)] = pd.cast(1.0, f16)
        pd.ptx.fence.proxy.async_.shared__cta()
        pd.ptx.bar.sync(0)

    assert not findings(product(128, 64, between=between))


def test_boxes_are_stored_by_the_swizzle_by_which_they_came():
    assert not stored(32, 32)
    assert not stored(None, None)
    (finding,) = stored(32, None)
    assert str(finding) == (
        "swizzle: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group stores a box without a "
        "swizzle, which cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "loaded swizzled by 32 bytes\n"
        "  test_swizzles.py:82 | y.store((0, 0), tile.address())\n"
        "                        ^\n"
        "  test_swizzles.py:31 | x.load(tile, (0, 0), full)\n"
        "                        ^\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: use the same `swizzle` in both tensor maps, or rearrange the elements in between"
    )


def test_boxes_may_be_swizzled_in_memory():
    assert not stored(32, None, lines=columns(32))


def opaque(address):
    """Return an address whose array tracing does not know, so that a descriptor of another layout is not refused."""
    held = pd.var(u64, 0)
    held.set(address)
    return held.value
