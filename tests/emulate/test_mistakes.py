"""The help of a finding names the mistake in a pipeline: a parity, a release, an election, a count, a descriptor."""

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from tests.tracing import source_kernel

HEAD = '(arch="sm_90a", reqntid=160)'
PARAMETERS = "x: pd.TensorMap(f32, (4, 128)), y: ptr[f32]"
TMA = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"

PIPELINE = """\
tiles = x.shared(2)
full, empty = pd.shared(b64, 2), pd.shared(b64, 2)
with pd.if_(pd.tid.x == 0):
    for s in range(2):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(s), 1)
        pd.ptx.mbarrier.init.shared__cta.b64(empty.address(s), 128)
    pd.ptx.fence.mbarrier_init.release.cluster()
pd.ptx.bar.sync(0)
def wait(bar, parity):
    with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(bar, parity)):
        pass
def release(i):
    pd.ptx.fence.proxy.async_.shared__cta()
    pd.ptx.mbarrier.arrive.shared__cta.b64(empty.address(i % 2), out="_")
{producer}:
    for i in range(4):
        {wait_empty}
        {expect}
        x.load(tiles.address(i % 2, 0, 0), (i * 4, 0), full.address(i % 2))
with pd.warp(0, 1, 2, 3) as readers:
    for i in range(4):
        {wait_full}
        {early}
        y[128 * i + readers.thread] = tiles[i % 2, 0, readers.thread]
        {release}
"""
RIGHT = {
    "producer": "with pd.warp(4), pd.elect()",
    "wait_empty": "wait(empty.address(i % 2), (i // 2 + 1) % 2)",
    "expect": 'pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(i % 2), x.bytes, out="_")',
    "wait_full": "wait(full.address(i % 2), i // 2 % 2)",
    "early": "pass",
    "release": "release(i)",
}
EXPECT = RIGHT["expect"]
EARLY = "since its parity is that of the previous phase"

# What is wrong: its kind, its message, its help
MISTAKES = {
    "the wait for a full stage has the other parity": (
        {"wait_full": "wait(full.address(i % 2), (i // 2 + 1) % 2)"},
        "unwaited-async",
        "ld.shared.f32 accesses 4 bytes at tiles[0, 0, 0] while an asynchronous copy to it is in flight",
        f"the wait for full[0] at line 12 returns before the copy completes, {EARLY}; wait for parity 0",
    ),
    "the parity of a full stage is never flipped": (
        {"wait_full": "wait(full.address(i % 2), 0)"},
        "unwaited-async",
        "ld.shared.f32 accesses 4 bytes at tiles[0, 0, 0] while an asynchronous copy to it is in flight",
        f"the wait for full[0] at line 12 returns before the copy completes, {EARLY}; wait for parity 1",
    ),
    "no wait for a full stage": (
        {"wait_full": "pass"},
        "unwaited-async",
        "ld.shared.f32 accesses 4 bytes at tiles[0, 0, 0] while an asynchronous copy to it is in flight",
        "wait for full[0] first, with mbarrier.try_wait and parity 0",
    ),
    "the first wait for an empty stage does not pass": (
        {"wait_empty": "wait(empty.address(i % 2), i // 2 % 2)"},
        "deadlock",
        "every thread is blocked\n"
        "  thread 128 of block (0, 0, 0) waits at mbarrier.try_wait.parity.shared::cta.b64 (kernel.py:12) for the "
        "mbarrier empty[0]: 0 of 128 arrivals received\n"
        "  threads 0–127 of block (0, 0, 0) wait at mbarrier.try_wait.parity.shared::cta.b64 (kernel.py:12) for the "
        "mbarrier full[0]: 0 of 1 arrivals received",
        "no thread has arrived at empty[0] or full[0] yet, so one of these waits must pass at first: the producer's "
        "first wait for an empty stage takes parity 1",
    ),
    "the parity of an empty stage is never flipped": (
        {"wait_empty": "wait(empty.address(i % 2), 1)"},
        "mbarrier",
        "1 arrival where the phase of the mbarrier waits for 0 more of 1",
        f"the wait for empty[0] at line 12 returns at once, {EARLY}; wait for parity 0, and flip the parity after each "
        "phase",
    ),
    "every lane of the warp announces and copies": (
        {"producer": "with pd.warp(4)"},
        "mbarrier",
        "1 arrival where the phase of the mbarrier waits for 0 more of 1",
        "32 threads execute it, and full[0] expects 1 arrival per phase; execute it in one thread, under "
        "`with pd.elect():`, or initialise the mbarrier with 32",
    ),
    "every lane of the warp copies what one announces": (
        {"producer": "with pd.warp(4)", "expect": f"with pd.elect(): {EXPECT}"},
        "mbarrier",
        f"{TMA} completes 65536 bytes, 32 copies of 2048, at full[0], whose phase expects 2048",
        "32 threads execute the same copy; one thread executes it under `with pd.elect():`",
    ),
    "fewer bytes are announced than copied": (
        {"expect": EXPECT.replace("x.bytes", "x.bytes - 16")},
        "mbarrier",
        f"{TMA} completes 2048 bytes at full[0], whose phase expects 2032",
        "execute mbarrier.arrive.expect_tx once per phase, with the bytes of all copies that complete there",
    ),
    "a stage is released before it is read": (
        {"early": "release(i)", "release": "pass"},
        "race",
        f"{TMA} writes tiles[0, 0, 0], read by thread (0, 0, 0) of block (0, 0, 0) with ld.shared.f32; no barrier orders "
        "the two",
        "pd.warp(0, 1, 2, 3) and pd.warp(4) share no `bar.sync`; use an mbarrier: the threads that read arrive at it "
        "after line 26, its mbarrier.init counts all of them, and mbarrier.try_wait comes before line 21",
    ),
}


def first(kernel, block, *arguments, grid=1, **options):
    """The first finding, or None."""
    with pd.config.using(arch="sm_90a"):
        return next(iter(pd.emulate(kernel, grid, block, *arguments, **options).findings), None)


def pipeline(**mistake):
    kernel = source_kernel(PIPELINE.format(**RIGHT | mistake), PARAMETERS, HEAD)
    return first(kernel, 160, np.ones((16, 128), np.float32), np.zeros(512, np.float32))


def test_the_pipeline_without_a_mistake_is_clean():
    assert pipeline() is None


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_pipeline_of_mbarriers_is_named(name):
    mistake, kind, message, help = MISTAKES[name]
    finding = pipeline(**mistake)
    assert (finding.kind, finding.message, finding.help) == (kind, message, help)


RING = """\
tiles, more = x.shared(2), x.shared(2)
ring = pd.Ring(2, {ring})
with pd.warp(4), pd.elect():
    for i in range(4):
        slot = ring.acquire()
        x.load(tiles.address(slot.index, 0, 0), (i * 4, 0), slot.full)
        {second}
        ring.commit()
with pd.warp(0, 1, 2, 3) as readers:
    for i in range(4):
        stage = ring.wait()
        {early}
        y[128 * i + readers.thread] = tiles[{index}, 0, readers.thread]
        {release}
"""
SECOND = "x.load(more.address(slot.index, 0, 0), (i * 4, 0), slot.full)"
RING_MISTAKES = {
    "a read after the release": (
        {"early": "ring.release()", "release": "pass"},
        "race",
        "line 15 reads a slot after `ring.release()`; release it after its last read",
    ),
    "one consumer too few": (
        {"ring": "stage_bytes=x.bytes, consumers=127"},
        "race",
        "slot 0 of `ring` (line 4) was filled once and released 128 times, by 128 threads; `consumers=` counts 127 per "
        "phase; pass `consumers=128`, or call `ring.release()` in fewer threads",
    ),
    "one consumer too many": (
        {"ring": "stage_bytes=x.bytes, consumers=129"},
        "deadlock",
        "only 128 of 129 threads release slot 0 of `ring` (line 4); pass `consumers=128`, or call `ring.release()` after "
        "the last read of each stage, in all 129 threads that `consumers=` counts",
    ),
    "one warp too few": (
        {"ring": 'stage_bytes=x.bytes, consumers=96, each="warp"'},
        "race",
        "slot 0 of `ring` (line 4) was filled once and released 4 times, by 4 threads; `consumers=96` counts 3 per phase, "
        "one of each warp; pass `consumers=128`, or call `ring.release()` in fewer threads",
    ),
    "one warp too many": (
        {"ring": 'stage_bytes=x.bytes, consumers=160, each="warp"'},
        "deadlock",
        "only 4 of 5 arrivals release slot 0 of `ring` (line 4); pass `consumers=128`, or call `ring.release()` after the "
        "last read of each stage, for all 5 arrivals that `consumers=` counts",
    ),
    "bytes of one of two copies": (
        {"second": SECOND},
        "mbarrier",
        "`stage_bytes=2048` of `ring` (line 4) is too small: the copies into a stage transfer at least 4096 bytes",
    ),
    "a copy into a ring that threads fill": (
        {"ring": "producers=1, consumers=128"},
        "unwaited-async",
        "pass `stage_bytes=` instead of `producers=` for `ring` (line 4), whose stages are filled by copies",
    ),
    "another stage than that of the slot": (
        {"index": "(stage.index + 1) % 2"},
        "unwaited-async",
        "these threads hold slot 0 of `ring` (line 4), and the access is in slot 1: check the stage index",
    ),
}


def ring(schedule=None, **mistake):
    usual = {"ring": "stage_bytes=x.bytes, consumers=128", "second": "pass", "early": "pass", "index": "stage.index",
             "release": "ring.release()"}  # fmt: skip
    kernel = source_kernel(RING.format(**usual | mistake), PARAMETERS, HEAD)
    return first(kernel, 160, np.ones((16, 128), np.float32), np.zeros(512, np.float32), schedule=schedule)


def test_the_ring_without_a_mistake_is_clean():
    assert ring() is None


@pytest.mark.parametrize("name", RING_MISTAKES)
def test_a_mistake_in_a_ring_is_named(name):
    mistake, kind, help = RING_MISTAKES[name]
    finding = ring(**mistake)
    assert (finding.kind, finding.help) == (kind, help)


@pytest.mark.parametrize("schedule", ["skewed", "random:1", "random:2"])
def test_a_consumer_too_few_is_named_in_any_order_of_warps(schedule):
    help = ring(schedule, ring="stage_bytes=x.bytes, consumers=127").help
    assert "pass `consumers=128`" in help or "`consumers=` must count all of them" in help


CLUSTER = """\
a, b = x.shared(2), x.shared(2)
ring = pd.Ring(2, stage_bytes=2 * x.bytes, consumers=128{cluster})
rank = pd.special("%cluster_ctarank")
with pd.warp(4), pd.elect():
    for i in range(4):
        slot = ring.acquire()
        for r, tiles in enumerate((a, b)):
            with pd.if_(rank == r):
                x.load(tiles.address(slot.index, 0, 0), (i * 4, 0), slot.full, multicast=3)
        ring.commit()
    {drain}
with pd.warp(0, 1, 2, 3) as readers:
    for i in range(4):
        stage = ring.wait()
        y[(pd.ctaid.x * 4 + i) * 128 + readers.thread] = a[stage.index, 0, readers.thread] + b[stage.index, 1, readers.thread]
        ring.release()
"""
CLUSTER_MISTAKES = {
    "drain": (
        {"drain": "pass"},
        "call `ring.drain()` in the producer, after its last `commit()`: other blocks still release slots of `ring` (line 4)",
    ),
    "cluster": (
        {"cluster": ""},
        "pass `cluster=2` to pd.Ring for `ring` (line 4): its copies go to other blocks of the cluster, whose stages must "
        "be empty and whose mbarriers initialised",
    ),
}


def cluster(**mistake):
    usual = {"cluster": ", cluster=2", "drain": "ring.drain()"}
    kernel = source_kernel(CLUSTER.format(**usual | mistake), PARAMETERS, '(arch="sm_90a", reqntid=160, cluster=2)')
    return first(kernel, 160, np.ones((16, 128), np.float32), np.zeros(1024, np.float32), grid=2)


def test_the_ring_of_a_cluster_without_a_mistake_is_clean():
    assert cluster() is None


@pytest.mark.parametrize("name", CLUSTER_MISTAKES)
def test_a_mistake_in_the_ring_of_a_cluster_is_named(name):
    mistake, help = CLUSTER_MISTAKES[name]
    finding = cluster(**mistake)
    assert (finding.kind, finding.help) == ("cluster", help)


PRODUCTS = """\
layout = pd.layout.tile_layout(64, 64, 16, 128)
a, b = (pd.layout.shared_operand("wgmma.m64n64k16.f32.bf16", o, layout) for o in "ab")
tiles_a, tiles_b = x.shared(2), x.shared(2)
ring = pd.Ring(2, stage_bytes=2 * x.bytes, consumers=128, each="warpgroup")
with pd.warp(4), pd.elect():
    for i in range(4):
        slot = ring.acquire()
        x.load(tiles_a.address(slot.index, 0, 0), (0, i * 64), slot.full)
        x.load(tiles_b.address(slot.index, 0, 0), (0, i * 64), slot.full)
        ring.commit()
with pd.warpgroup(0) as group:
    s = [pd.var(f32, 0.0) for _ in range(32)]
    for i in range(4):
        slot = ring.wait()
        da = a.descriptor(tiles_a.address({stage}, 0, 0).value.to(u64))
        db = b.descriptor(tiles_b.address(slot.index, 0, 0).value.to(u64))
        pd.ptx.wgmma.fence.sync.aligned()
        for k in range(4):
            pd.ptx("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16", a.advanced(da, 0, k), b.advanced(db, 0, k), 1, 1, 1, 0, 0, out=s)
        pd.ptx.wgmma.commit_group.sync.aligned()
        {early}
        pd.ptx.wgmma.wait_group.sync.aligned({pending})
        ring.release()
    pd.ptx.wgmma.wait_group.sync.aligned(0)
    y[group.thread] = s[0]
"""
OPERANDS = "wgmma reads its operands in shared memory until its group is complete: execute wgmma.wait_group before"
PRODUCT_MISTAKES = {
    "a descriptor of the next stage": (
        {"stage": "(slot.index + 1) % 2"},
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 accesses 16 bytes at x.shared[1, 0, 0] while an asynchronous "
        "copy to it is in flight",
        "these threads hold slot 0 of `ring` (line 6), and the access is in slot 1: check the stage index, or where the "
        "descriptor starts and how far it reaches",
    ),
    "a descriptor that reaches into the next stage": (
        {"stage": "slot.index, 8"},
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 accesses 16 bytes at x.shared[1, 0, 0] while an asynchronous "
        "copy to it is in flight",
        "these threads hold slot 0 of `ring` (line 6), and the access is in slot 1: check the stage index, or where the "
        "descriptor starts and how far it reaches",
    ),
    "a stage that is refilled before its products end": (
        {"pending": "1"},
        f"{TMA} writes 16 bytes at x.shared[0, 0, 0], which an asynchronous operation still reads",
        f"{OPERANDS} `ring.release()`",
    ),
    "an operand that a thread overwrites": (
        {"early": "tiles_a[slot.index, 0, group.thread % 64] = 0.0"},
        "st.shared.b16 writes 2 bytes at x.shared[0, 0, 0], which an asynchronous operation still reads",
        f"{OPERANDS} line 23",
    ),
}


def products(**mistake):
    usual = {"stage": "slot.index", "early": "pass", "pending": "0"}
    text = PRODUCTS.format(**usual | mistake).replace("8, 0, 0)", "8, 0)")
    kernel = source_kernel(
        text, "x: pd.TensorMap(bf16, (64, 64), swizzle=128), y: ptr[f32]", '(arch="sm_90a", reqntid=256)'
    )
    return first(kernel, 256, np.ones((64, 256), ml_dtypes.bfloat16), np.zeros(128, np.float32))


def test_the_products_without_a_mistake_are_clean():
    assert products() is None


@pytest.mark.parametrize("name", PRODUCT_MISTAKES)
def test_a_mistake_with_operands_of_wgmma_is_named(name):
    mistake, message, help = PRODUCT_MISTAKES[name]
    finding = products(**mistake)
    assert (finding.kind, finding.message, finding.help) == ("unwaited-async", message, help)
