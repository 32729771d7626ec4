"""make_tiled_copy by TMA in kernels: tiles of any layout and rank come, go, are added up and come to several blocks."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, bf16, f16, f32, ptr, s32, u8
from ptxdsl.errors import LayoutError
from ptxdsl.layout import ComposedLayout, Layout, Swizzle, make_tiled_copy, tile_layout

from .machines import BF16, MACHINES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
LOAD, STORE = "cp.async.bulk.tensor.shared.global", "cp.async.bulk.tensor.global.shared"
ADD, MULTICAST = "cp.reduce.async.bulk.tensor.global.shared.add", f"{LOAD}.multicast::cluster"
DTYPES = {u8: np.uint8, s32: np.int32, f16: np.float16, bf16: BF16, f32: np.float32}


def await_phase(mbarrier, phase=0):
    with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(mbarrier.address(), phase)):
        pass


@pd.kernel(arch="sm_90a", reqntid=32)
def moved(a: "source", b: "target", *, source: pd.TensorMap, target: pd.TensorMap, load, store, at, to):  # noqa: F821
    """b[to …] = a[at …], a tile."""
    tile, full = a.shared(), pd.shared(b64, 1)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), load.bytes, out="_")
        load.copy(a, at, tile, full)
        await_phase(full)
        store.copy(b, to, tile, commit=True)
        pd.ptx.cp.async_.bulk.wait_group(0)


def swizzled(bits, base, shape, stride):
    return ComposedLayout(Swizzle(bits, base, 3), 0, Layout(shape, stride))


# Of each: the type, the layout of a tile, the boxes that it takes, the extents of the array by those modes, and where.
LAYOUTS = {
    "what wgmma reads": (bf16, tile_layout(64, 128, 16), 2, (100, 200), (8, 40)),
    "by columns": (f16, tile_layout(128, 32, 16, 128, True), 2, (152, 70), (16, 30)),
    "no swizzle": (f16, tile_layout(32, 64, 16, 0), 8, (40, 80), (4, 8)),
    "one axis": (f32, Layout(512), 2, (700,), (100,)),
    "tall": (u8, tile_layout(512, 32, 8, 32), 2, (600, 64), (9, 16)),
    "boxes inside of a pattern": (f32, swizzled(3, 2, (4, (32, 2)), (32, (1, 128))), 2, (9, 80), (3, 8)),
    "narrow lines": (f16, swizzled(3, 3, (16, 32), (64, 1)), 1, (20, 48), (2, 8)),
    "three axes": (s32, swizzled(2, 2, (2, 8, (16, 2)), (128, 16, (1, 256))), 2, (3, 20, 40), (1, 7, 4)),
    "other orders of axes": (f32, swizzled(3, 2, (32, 2, 8), (1, 256, 32)), 1, (40, 3, 9), (4, 1, 1)),
    "five axes": (f16, Layout((2, 1, 2, 4, 16), (128, 0, 64, 16, 1)), 1, (3, 2, 3, 9, 32), (1, 1, 0, 3, 8)),
}


@every_machine
@pytest.mark.parametrize("case", LAYOUTS)
def test_a_tile_comes_and_goes_whatever_its_layout(name, case):
    element, layout, boxes, extents, at = LAYOUTS[case]
    where, dtype = machine(name), np.dtype(DTYPES[element])
    load, store = (make_tiled_copy(atom, layout, bits=element.bits) for atom in (LOAD, STORE))
    assert len(load.boxes) == boxes
    a = (np.arange(np.prod(extents)) % 113).reshape(extents).astype(dtype)
    to = (0,) * len(at)
    b = np.full([extents[mode] for mode in load.order], 7, dtype)
    maps = {"source": pd.TensorMap.of(element, load), "target": pd.TensorMap.of(element, store)}
    expected = np.full(extents, 7.0)
    part = tuple(slice(first, first + extent) for first, extent in zip(at, load.tile, strict=True))
    expected[tuple(slice(n) for n in a[part].shape)] = a[part]
    inside = tuple(slice(min(n, m)) for n, m in zip(load.tile, extents, strict=True))
    whole = np.zeros([s.stop for s in inside])
    whole[tuple(slice(n) for n in a[part].shape)] = a[part]
    expected[inside] = whole
    out = where.array(b)
    moved[1, 32](
        where.array(np.ascontiguousarray(a.transpose(load.order))), out, load=load, store=store, at=at, to=to, **maps
    )
    assert np.array_equal(where.values(out).transpose(np.argsort(load.order)), expected)


TILE = tile_layout(32, 64, 32)  # of two boxes
LOADS, ADDS = make_tiled_copy(LOAD, TILE, bits=32), make_tiled_copy(ADD, TILE, bits=32)


@pd.kernel(arch="sm_90a", reqntid=32)
def added(a: pd.TensorMap.of(f32, LOADS), b: pd.TensorMap.of(f32, ADDS)):
    """b += a, tile after tile, by their numbers."""
    tile, full = a.shared(), pd.shared(b64, 1)
    tiles_a, tiles_b = LOADS.partition_s(a), ADDS.partition_d(b)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
        for phase, number in enumerate([(0, 0), (1, 0), (0, 1), (1, 1)]):
            pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), LOADS.bytes, out="_")
            tiles_a.copy(number, tile, full)
            await_phase(full, phase % 2)
            tiles_b.copy(number, tile, commit=True)
            pd.ptx.cp.async_.bulk.wait_group.read(0)
        pd.ptx.cp.async_.bulk.wait_group(0)


@every_machine
def test_tiles_are_counted_and_added_up(name):
    where = machine(name)
    a, b = (np.arange(50 * 100).reshape(50, 100) % n for n in (89, 97))
    out = where.array(b.astype(np.float32))
    added[1, 32](where.array(a.astype(np.float32)), out)
    assert np.array_equal(where.values(out), a + b)


SHARED = make_tiled_copy(MULTICAST, tile_layout(64, 64, 16), bits=16, blocks=2)


@pd.kernel(arch="sm_90a", cluster=2, reqntid=64)
def twice(a: pd.TensorMap.of(f16, SHARED), y: ptr[f16]):
    """Each of two blocks brings half of a tile to both; both write it to y."""
    tile, full = a.shared(), pd.shared(b64, 1)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), SHARED.bytes, out="_")
    pd.ptx.barrier.cluster.arrive.release.aligned()
    pd.ptx.barrier.cluster.wait.acquire.aligned()
    with pd.if_(pd.tid.x == 0):
        SHARED.copy(a, (0, 0), tile, full, multicast=0b11, rank=pd.special("%cluster_ctarank"))
    await_phase(full)
    for row in range(64):
        y[(pd.ctaid.x * 64 + row) * 64 + pd.tid.x] = tile[row, pd.tid.x]
    pd.ptx.barrier.cluster.arrive.release.aligned()
    pd.ptx.barrier.cluster.wait.acquire.aligned()


@every_machine
def test_blocks_of_a_cluster_bring_a_part_each(name):
    assert (SHARED.box, len(SHARED.boxes), len(SHARED.part(0))) == ((32, 64), 2, 1)
    where = machine(name)
    a = (np.arange(64 * 64) % 1021).reshape(64, 64).astype(np.float16)
    y = where.array(np.zeros((128, 64), np.float16))
    twice[2, 64](where.array(a), y)
    assert np.array_equal(where.values(y), np.concatenate([a, a]))


def kernel_of(copy, map, call):
    """The PTX of a kernel that copies as `call(copy, mapped, tile, mbarrier)` says."""

    @pd.kernel(arch="sm_90a")
    def copies(a: map):
        call(copy, a, pd.shared(copy_type(copy), copy.layout, align=1024), pd.shared(b64, 1))

    return copies.ptx()


def copy_type(copy):
    return {16: f16, 32: f32}[copy.bits]


BOX = make_tiled_copy(LOAD, tile_layout(64, 64, 16), bits=16)
OTHER = make_tiled_copy(LOAD, tile_layout(32, 64, 16), bits=16)
STORES = make_tiled_copy(STORE, tile_layout(64, 64, 16), bits=16)
TO_ALL = make_tiled_copy(MULTICAST, tile_layout(64, 64, 16), bits=16)
OF_BOX = pd.TensorMap.of(f16, BOX)
NAME = "tiled_copy(cp.async.bulk.tensor.shared.global, Sw<3,3,3> o 0 o (64,64):(64,1))"
REFUSED = [
    (BOX, pd.TensorMap.of(f16, OTHER), lambda c, a, tile, full: c.copy(a, (0, 0), tile, full),
     "`a` is a TensorMap.tiled(f16, (32, 64), swizzle=128) with boxes (32,64); " + NAME +
     " copies boxes of (64,64) of 16 bits, 128-byte swizzle",
     "declare it as a: pd.TensorMap.of(type, copy)"),
    (BOX, ptr[f16], lambda c, a, tile, full: c.copy(a, (0, 0), tile, full),
     "cp.async.bulk.tensor.shared.global copies boxes of a tensor map parameter; found <ptr[f16] a>",
     "declare it as a: pd.TensorMap.of(type, copy)"),
    (BOX, OF_BOX, lambda c, a, tile, full: c.copy(a, (0, 0), tile),
     "cp.async.bulk.tensor.shared.global completes on an mbarrier, which is missing",
     "pass the mbarrier of the stage: copy(tensor, at, memory, slot.full)"),
    (STORES, OF_BOX, lambda c, a, tile, full: c.copy(a, (0, 0), tile, full),
     "cp.async.bulk.tensor.global.shared does not complete on an mbarrier",
     "leave it out; the thread waits for its bulk group"),
    (BOX, OF_BOX, lambda c, a, tile, full: c.copy(a, (0, 0), tile, full, commit=True),
     "cp.async.bulk.tensor.shared.global does not use bulk groups",
     "leave `commit` out: a load completes on its mbarrier"),
    (TO_ALL, OF_BOX, lambda c, a, tile, full: c.copy(a, (0, 0), tile, full),
     "cp.async.bulk.tensor.shared.global.multicast::cluster needs the mask of the receiving blocks",
     "pass multicast=0b11 for blocks 0 and 1 of the cluster"),
    (BOX, OF_BOX, lambda c, a, tile, full: c.copy(a, (0, 0), tile, full, multicast=3),
     "cp.async.bulk.tensor.shared.global writes to one block only",
     "leave `multicast` out, or use cp.async.bulk.tensor.shared.global.multicast::cluster"),
    (BOX, OF_BOX, lambda c, a, tile, full: c.copy(a, (0, 0), tile, full, rank=1),
     f"`rank` is given, but one block loads each whole tile of {NAME}",
     "leave `rank` out, or create the copy with `blocks`"),
    (SHARED, pd.TensorMap.of(f16, SHARED), lambda c, a, tile, full: c.copy(a, (0, 0), tile, full, multicast=3),
     "`rank` is missing: 2 blocks each load a part of the tiles of tiled_copy(cp.async.bulk.tensor.shared.global."
     "multicast::cluster, Sw<3,3,3> o 0 o (64,64):(64,1), one part for each of 2 blocks)",
     "rank=pd.special('%cluster_ctarank')"),
    (BOX, OF_BOX, lambda c, a, tile, full: c.partition_s(a).copy((0, 0, 0), tile, full),
     NAME + " needs one start coordinate for each of 2 modes; found 3",
     "pass the start of the tile, such as (0,0)"),
    (BOX, OF_BOX, lambda c, a, tile, full: c.partition_d(a),
     "the target of cp.async.bulk.tensor.shared.global is shared memory, which is not partitioned",
     "partition the tensor with partition_s, and pass the shared memory to its copy"),
]  # fmt: skip


@pytest.mark.parametrize("copy, map, call, message, help", REFUSED, ids=[row[3][:60] for row in REFUSED])
def test_what_a_copy_does_not_take(copy, map, call, message, help):
    with pytest.raises(LayoutError) as refusal:
        kernel_of(copy, map, call)
    assert (refusal.value.message, refusal.value.help) == (message, help)
    assert refusal.value.at.file == __file__


def test_a_map_is_of_the_type_that_the_copy_is_for():
    with pytest.raises(pd.TraceError) as refusal:
        pd.TensorMap.of(f32, BOX)
    assert refusal.value.message == f"pd.TensorMap.of takes f32 and a tiled copy by TMA; found {NAME} of 16 bits"
    assert refusal.value.help == 'make it by make_tiled_copy("cp.async.bulk.tensor.shared.global", layout, bits=32)'
