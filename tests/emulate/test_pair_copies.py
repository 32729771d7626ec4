"""TMA loads of pairs of blocks (.cta_group::2): the mbarrier is in either block of the pair."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, config, f32, ptr, u16, u32
from tests.emulate.support import only

ROWS, COLUMNS = 8, 32
TILE = pd.TensorMap(f32, (ROWS, COLUMNS))
LOAD = "cp.async.bulk.tensor.2d.shared::{}.global.tile.mbarrier::complete_tx::bytes{}{}"


def meet():
    pd.ptx.barrier.cluster.arrive.release.aligned()
    pd.ptx.barrier.cluster.wait.acquire.aligned()


def in_block(array, rank):
    address = pd.ptx.mapa.shared__cluster.u32(array.address(0), rank)
    return pd.pointer(address, b64, "shared::cluster")


def in_even_block(array):
    """The array in the even block of the thread's pair, as CUTLASS forms its address."""
    return pd.pointer(pd.ptx.and_.b32(array.address(0), 0xFEFFFFFF), b64, "shared::cluster")


@pd.kernel(arch="sm_100a", reqntid=COLUMNS)
def loads(
    a: TILE,
    y: ptr[f32],
    *,
    odd=0,
    group=".cta_group::2",
    multicast=False,
    far=0,
    tells=True,
    space="cluster",
    masked=False,
):
    """Each block loads a tile, or (multicast) the even blocks a tile for both, and the mbarrier of one block counts."""
    tile, full = a.shared(), pd.shared(b64, 1)
    rank = pd.special("%cluster_ctarank")
    leader = (rank & 2) + odd
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
    meet()
    with pd.if_((pd.tid.x == 0) & (rank == leader)):
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), 2 * a.bytes, out="_")
    meet()
    to = in_even_block(full) if masked else in_block(full, (leader + far) & 3)
    with pd.if_((pd.tid.x == 0) & ((rank & 1 == 0) if multicast else rank < 4)):
        flags = LOAD.format(space, ".multicast::cluster" * multicast, group)
        pd.ptx(
            flags,
            tile.address(0, 0),
            a,
            [0, rank * ROWS],
            to,
            *[pd.cast(pd.cast(3, u32) << (rank & 2), u16)] * multicast,
        )
    with pd.if_(rank == leader), pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), 0)):
        pass
    if tells:
        meet()
    for row in range(ROWS):
        y[(rank * ROWS + row) * COLUMNS + pd.tid.x] = tile[row, pd.tid.x]
    meet()


def launched(**options):
    a = np.random.default_rng(0).standard_normal((4 * ROWS, COLUMNS)).astype(np.float32)
    y = np.zeros_like(a)
    report = pd.emulate(loads, 4, COLUMNS, a, y, cluster=4, **options)
    return report, a, y


@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:1"])
@pytest.mark.parametrize("odd", [0, 1])
def test_a_block_loads_and_its_pair_counts(odd, schedule):
    with config.using(schedule=schedule):
        report, a, y = launched(odd=odd)
    assert report.findings == []
    np.testing.assert_array_equal(y, a)


@pytest.mark.parametrize("multicast", [False, True])
def test_an_address_without_bit_24_is_in_the_even_block(multicast):
    report, a, y = launched(masked=True, multicast=multicast)
    assert report.findings == []
    expected = a.reshape(2, 2, ROWS, COLUMNS)[:, [0, 0]].reshape(a.shape) if multicast else a
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("odd", [0, 1])
def test_multicast_signals_one_block_of_each_pair(odd):
    """Block 0 loads for blocks 0 and 1, block 2 for 2 and 3; both copies of a pair complete at one mbarrier."""
    report, a, y = launched(odd=odd, multicast=True)
    assert report.findings == []
    first, second = a[:ROWS], a[2 * ROWS : 3 * ROWS]
    np.testing.assert_array_equal(y, np.concatenate([first, first, second, second]))


def test_the_other_block_knows_of_its_tile_after_a_synchronisation():
    kinds = {finding.kind for finding in launched(tells=False)[0].findings}
    assert kinds & {"race", "unwaited-async"}


REFUSED = {
    "without a group": (
        {"group": ""}, "of the block of rank 1 and signals an mbarrier of rank 0",
    ),
    "of one block": (
        {"group": ".cta_group::1"}, "of the block of rank 1 and signals an mbarrier of rank 0",
    ),
    "of another pair": (
        {"far": 2}, "of the block of rank 0 and signals an mbarrier of rank 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_mbarriers_that_a_copy_cannot_signal(name):
    options, where = REFUSED[name]
    finding = launched(**options)[0].findings[0]
    text = LOAD.format("cluster", "", options.get("group", ".cta_group::2"))
    assert (finding.kind, finding.message, finding.help) == (
        "cluster", f"{text} copies to shared memory {where}",
        "pass an mbarrier of the same block, or one of its pair with .cta_group::2",
    )  # fmt: skip


@pd.kernel(arch="sm_100a", reqntid=32, cluster=2)
def leaves(a: TILE, y: ptr[u32]):
    """The even block ends before the load of the odd one completes at its mbarrier."""
    tile, full = a.shared(), pd.shared(b64, 1)
    rank = pd.special("%cluster_ctarank")
    with pd.if_((pd.tid.x == 0) & (rank == 0)):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), a.bytes, out="_")
    meet()
    with pd.if_((pd.tid.x == 0) & (rank == 1)):
        pd.ptx(LOAD.format("cluster", "", ".cta_group::2"), tile.address(0, 0), a, [0, 0], in_block(full, 0))
    y[pd.tid.x] = 0


def test_a_block_that_ends_before_a_copy_completes_at_its_mbarrier():
    report = pd.emulate(leaves, 2, 32, np.zeros((ROWS, COLUMNS), np.float32), np.zeros(32, np.uint32))
    finding = only(report)
    assert finding.kind == "unwaited-async", finding.message
    assert finding.help == "wait for the phase of its mbarrier (mbarrier.try_wait) before the block ends"
