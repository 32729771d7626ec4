"""A ring of which the blocks of a cluster fill parts for each other: results, what must not be left out, refusals."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr, u32
from ptxdsl.trace import ring

from .machines import MACHINES, machine
from .tracing import refusal

BLOCKS, STAGES, M, N, K = 2, 2, 32, 8, 8
HALF = N // BLOCKS


@pd.kernel(cluster=BLOCKS, arch="sm_90a", reqntid=64)
def gemm(
    a: pd.TensorMap(f32, (M, K)), b: pd.TensorMap(f32, (HALF, K)), c: ptr[f32], steps: u32, *,
    each: str = "thread", variant: str = "", shares: bool = True, early: bool = False, drains: bool = True, expected: int = 0,
):  # fmt: skip
    """c = a @ b.T: a block has 32 rows of a for itself, and copies half of b's rows to both blocks."""
    tiles_a, tiles_b = a.shared(STAGES), b.shared(BLOCKS * STAGES)
    bytes = a.bytes + BLOCKS * b.bytes + expected
    stages = pd.Ring(STAGES, stage_bytes=bytes, consumers=M, each=each, cluster=BLOCKS)
    rank = pd.special("%cluster_ctarank")
    with pd.warp(0), pd.elect():
        for k in pd.range(steps):
            slot = stages.acquire()
            a.load(tiles_a.address(slot.index, 0, 0), (pd.ctaid.x * M, k * K), slot.full)
            part = tiles_b.address(slot.index * BLOCKS + rank, 0, 0)
            b.load(part, (rank * HALF, k * K), slot.full, multicast=stages.mask if shares else 1)
            stages.commit()
        if drains:
            stages.drain()
    with pd.warp(1) as consumer:
        sums = [pd.var(f32, 0.0) for _ in range(N)]
        for _ in pd.range(steps):
            slot = stages.wait()
            if early:
                stages.release(slot)
            for k in pd.range(K):
                left = tiles_a[slot.index, consumer.thread, k]
                for n, total in enumerate(sums):
                    total.set(total + left * tiles_b[slot.index * BLOCKS + n // HALF, n % HALF, k])
            if not early:
                stages.release()
        for n, total in enumerate(sums):
            c[(pd.ctaid.x * M + consumer.thread) * N + n] = total


def launched(steps=5, blocks=BLOCKS, **options):
    """The report of a launch of clusters, and whether c is a @ b.T."""
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, (rows, steps * K)).astype(np.float32) for rows in (blocks * M, N))
    c = np.zeros((blocks * M, N), np.float32)
    report = pd.emulate(gemm, blocks, 64, a, b, c, steps, **options)
    return report, bool((c == a @ b.T).all())


@pytest.mark.cases(2)
@pytest.mark.parametrize("each", ["thread", "warp"])
@pytest.mark.parametrize(("steps", "blocks"), [(5, 2), (1, 2), (4, 4)])
def test_blocks_fill_stages_for_each_other(each, steps, blocks):
    report, right = launched(steps, blocks, each=each)
    assert report.findings == []
    assert right


@pytest.mark.parametrize("schedule", ["skewed", "random:3"])
def test_no_order_of_blocks_breaks_it(schedule):
    report, right = launched(each="warp", schedule=schedule)
    assert report.findings == []
    assert right


@pytest.mark.parametrize("name", MACHINES)
def test_it_is_the_product_on_every_machine(name):
    where = machine(name)
    a, b = (np.arange(rows * 3 * K, dtype=np.float32).reshape(rows, 3 * K) % 7 for rows in (64, N))
    c = where.array(np.zeros((64, N), np.float32))
    gemm[2, 64](where.array(a), where.array(b), c, 3, each="warp")
    assert np.array_equal(where.values(c), a @ b.T)


@pytest.mark.parametrize(("mutant", "kinds"), [
    ({"shares": False}, {"deadlock", "mbarrier"}),
    ({"early": True}, {"race", "unwaited-async"}),
    ({"drains": False}, {"cluster"}),
    ({"expected": 16}, {"deadlock"}),
    ({"expected": -16}, {"mbarrier", "deadlock", "unwaited-async", "race"}),
], ids=["copies to one block", "released before read", "ends early", "expects more", "expects less"])  # fmt: skip
def test_what_breaks_it_is_found(mutant, kinds):
    report, _ = launched(**mutant)
    assert report.findings
    assert report.findings[0].kind in kinds


@pytest.mark.parametrize(("old", "new"), [
    ("barrier.cluster.arrive.release.aligned", "barrier.cluster.arrive.relaxed.aligned"),
    ("mbarrier.arrive.release.cluster", "mbarrier.arrive.relaxed.cluster"),
])  # fmt: skip
def test_weaker_instructions_are_found(old, new, monkeypatch):
    """What the ring emits is needed: threads that do not release are raced by copies of the other block."""
    real = ring.emit
    monkeypatch.setattr(ring, "emit", lambda text, *sources, **more: real(text.replace(old, new), *sources, **more))
    report, _ = launched(each="warp", variant=new)  # traced anew
    assert {finding.kind for finding in report.findings} & {"race", "cluster"}


REFUSED = {
    "producers": (
        "pd.Ring(4, producers=32, consumers=32, cluster=2)",
        "pd.Ring has producers that write, and cluster=: only bulk copies fill stages of other blocks",
        "give `stage_bytes` of the copies that fill a stage",
    ),
    "no cluster": (
        "pd.Ring(4, stage_bytes=64, consumers=32, cluster=2)",
        "pd.Ring takes cluster=2; the kernel does not declare its cluster size",
        "write @pd.kernel(cluster=2)",
    ),
    "no number": (
        "pd.Ring(4, stage_bytes=64, consumers=32, cluster=0)",
        "pd.Ring takes cluster=0", "it is the number of blocks in a cluster, such as 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_rings_that_no_cluster_has_are_refused(case):
    body, message, help = REFUSED[case]
    text = refusal(body, arch="sm_90a")
    assert text.startswith(message + "\n")
    assert text.endswith(f"  help: {help}")


@pd.kernel(cluster=2, arch="sm_100a", reqntid=64)
def released_by_products():
    ring = pd.Ring(2, stage_bytes=64, consumers=1, cluster=2)
    ring.wait()
    ring.release(after_mma=True)


def test_products_release_stages_of_their_own_block_only():
    with pytest.raises(pd.TraceError) as refused:
        released_by_products.ptx()
    assert str(refused.value).splitlines()[0] == "`after_mma` releases stages of one block; this ring has cluster=2"
    assert (
        str(refused.value).splitlines()[-1] == "  help: execute tcgen05.commit with .multicast::cluster on `slot.empty`"
    )
