"""A GEMM by CTA pairs: two blocks of a cluster multiply together, and clusters take over tiles of others.

    python examples/23_cta_pairs.py [--device cuda]

The kernel of example 22 with `cta_group::2`: one thread of the even block multiplies for both. Each block holds half of
the rows of A and of D, and half of B, so B is loaded once for twice as many rows. The loads of both blocks complete at
mbarriers of the even block, and the commit of a product arrives in both. There is a cluster for each tile; those that
run cancel others before they start, and compute their tiles. Needs a B200 or GB300, or no GPU at all.

New here: products, loads and tensor memory of a pair, commits to several blocks, and cluster launch control.
"""

import sys

import numpy as np
from arrays import ON_GPU, check, to_device

import ptxdsl as pd
from ptxdsl import b64, driver, f16, f32, ptr, u32, u64

M, N, K, STAGES = 256, 128, 64, 4  # of a pair
STEP = 16  # of K in one instruction
THREADS = 256  # warps 0 to 3: loads, products, tensor memory, requests; warps 4 to 7: the epilogue
TARGETS = "sm_100a", "sm_103a"
DESCRIPTOR = 1024 // 16 << 32 | 1 << 46 | 2 << 61  # stride between swizzle atoms, version, 128-byte swizzle
INSTRUCTION = 1 << 4 | N // 8 << 17 | M // 16 << 24  # f32 accumulators of f16 factors, N and M
COLUMNS = 32  # of tensor memory that the epilogue loads at once
A, B = pd.TensorMap(f16, (M // 2, K), swizzle=128), pd.TensorMap(f16, (N // 2, K), swizzle=128)
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2"
COMMIT = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
CANCEL = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128"
FIRST_BLOCK = "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128"
BOTH = 0b11  # blocks of the pair


class Stages:
    """Stages that are filled and emptied in order, with mbarriers in each block that count so many arrivals."""

    def __init__(self, count, full, empty):
        self.count, self.full, self.empty = count, pd.shared(b64, count), pd.shared(b64, count)
        with pd.if_(pd.tid.x == 0):
            for stage in range(count):
                pd.ptx.mbarrier.init.shared__cta.b64(self.full.address(stage), full)
                pd.ptx.mbarrier.init.shared__cta.b64(self.empty.address(stage), empty)

    def wait(self, n, until):
        """Wait until the stage of pass `n` is full, or empty; return it."""
        stage, parity = n % self.count, n // self.count & 1 ^ (until == "empty")
        mbarrier = (self.full if until == "full" else self.empty).address(stage)
        with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.acquire.cluster.shared__cta.b64(mbarrier, parity)):
            pass
        return stage


def in_even_block(mbarrier):
    return pd.pointer(pd.ptx.mapa.shared__cluster.u32(mbarrier, 0), b64, "shared::cluster")


def arrive(mbarrier):
    pd.ptx.mbarrier.arrive.release.cluster.shared__cluster.b64(in_even_block(mbarrier))


def meet():
    pd.ptx.barrier.cluster.arrive.release.aligned()
    pd.ptx.barrier.cluster.wait.acquire.aligned()


def walk(work, answers, answer):
    """Do `work` for the tile of this cluster, and then for those of the clusters that it cancels."""
    tile, n, goes_on = pd.var(u32, pd.ctaid.x // 2), pd.var(u32, 0), pd.var(u32, 1)
    with pd.while_(lambda: goes_on == 1):
        work(tile, n)
        stage = answers.wait(n, "full")
        bits = pd.ptx.ld.shared.b128(answer.address(stage, 0))
        goes_on.set(0)
        with pd.if_(pd.ptx.clusterlaunchcontrol.query_cancel.is_canceled.pred.b128(bits)):
            goes_on.set(1)
            tile.set(pd.ptx(FIRST_BLOCK, bits).bitcast(u32) // 2)
        pd.ptx.fence.proxy.async_.shared__cta()  # the next answer comes through the async proxy
        arrive(answers.empty.address(stage))
        n.set(n + 1)


@pd.kernel(arch="sm_100a", reqntid=THREADS, cluster=2)
def gemm(a: A, b: B, c: ptr[f32], m: u32, n: u32, columns: u32, steps: u32):
    """c = a @ b.T: a is m x k, b is n x k, c is m x n; n is a multiple of 4, and k of 8."""
    arrays = a.shared(STAGES), b.shared(STAGES)
    answer, where = pd.shared(b64, (2, 2), align=16), pd.shared(u32, 1)
    ring, accumulators = Stages(STAGES, full=1, empty=1), Stages(2, full=1, empty=2 * 128)
    answers = Stages(2, full=1, empty=2 * (128 + 3))  # threads of both blocks read them
    rank, passes = pd.special("%cluster_ctarank"), pd.var(u32, 0)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.fence.mbarrier_init.release.cluster()
    with pd.warp(2):
        pd.ptx.tcgen05.alloc.cta_group__2.sync.aligned.shared__cta.b32(where.address(0), 2 * N)
        pd.ptx.tcgen05.relinquish_alloc_permit.cta_group__2.sync.aligned()
    meet()
    memory = where[0]

    def load(tile, _):
        corners = tile // columns * M + rank * (M // 2), tile % columns * N + rank * (N // 2)
        for step in pd.range(steps):
            stage = ring.wait(passes, "empty")
            full = ring.full.address(stage)
            with pd.if_(rank == 0):
                pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full, 2 * (A.bytes + B.bytes), out="_")
            for tensor, array, row in zip((a, b), arrays, corners, strict=True):
                pd.ptx(LOAD, array.address(stage, 0, 0), tensor, [step * K, row], in_even_block(full))
            passes.set(passes + 1)

    def multiply(_, tiles):
        with pd.if_(rank == 0):
            target = pd.ptx.mov.b32(memory + accumulators.wait(tiles, "empty") * N)
            pd.ptx.tcgen05.fence__after_thread_sync()  # both blocks have loaded these accumulators
            for step in pd.range(steps):
                stage = ring.wait(passes, "full")
                first = [pd.cast(array.address(stage, 0, 0).value, u64) >> 4 | DESCRIPTOR for array in arrays]
                for k in range(0, K, STEP):
                    operands = [descriptor + k * f16.bytes // 16 for descriptor in first]
                    adds = (step > 0) | pd.cast(k > 0, pd.pred)
                    pd.ptx.tcgen05.mma.cta_group__2.kind__f16(target, *operands, pd.cast(INSTRUCTION, u32), adds)
                pd.ptx(COMMIT, ring.empty.address(stage), BOTH)
                passes.set(passes + 1)
            pd.ptx(COMMIT, accumulators.full.address(tiles % 2), BOTH)

    def request(_, tiles):
        stage = tiles % 2
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(answers.full.address(stage), 16, out="_")
        with pd.if_(rank == 0):
            answers.wait(tiles, "empty")
            pd.ptx(CANCEL, answer.address(stage, 0), answers.full.address(stage))

    def store(tile, tiles):
        stage, thread = accumulators.wait(tiles, "full"), pd.tid.x - 128
        source = memory + stage * N + (thread // 32 << 21)  # warp w reaches lanes 32w to 32w + 31
        pd.ptx.tcgen05.fence__after_thread_sync()
        row, first = tile // columns * M + rank * (M // 2) + thread, tile % columns * N
        for column in range(0, N, COLUMNS):
            values = pd.ptx.tcgen05.ld.sync.aligned._32x32b.x32.b32(source + column)
            pd.ptx.tcgen05.wait__ld.sync.aligned()
            for i in range(0, COLUMNS, 4):
                with pd.if_((row < m) & (first + (column + i) < n)):
                    pd.ptx.st.global_.v4.b32(c + (row * n + first + (column + i)), values[i : i + 4])
        pd.ptx.tcgen05.fence__before_thread_sync()
        arrive(accumulators.empty.address(stage))

    for warp, work in ((0, load), (1, multiply), (3, request)):
        with pd.warp(warp), pd.elect():
            walk(work, answers, answer)
    with pd.warpgroup(1):
        walk(store, answers, answer)
    meet()
    with pd.warp(2):
        pd.ptx.tcgen05.dealloc.cta_group__2.sync.aligned.b32(pd.ptx.mov.b32(memory), 2 * N)


def arguments(a, b, c):
    """The grid, the block and the arguments of a launch: a cluster for each tile."""
    (m, k), n = a.shape, b.shape[0]
    columns = -(-n // N)
    return 2 * -(-m // M) * columns, THREADS, a, b, c, m, n, columns, -(-k // K)


def example_gemm(rng):
    a, b = (rng.standard_normal((rows, 136)).astype(np.float16) for rows in (600, 200))
    return arguments(a, b, np.zeros((600, 200), np.float32))


def main():
    if ON_GPU and driver.device_arch() not in TARGETS:
        sys.exit(f"--device cuda: the GPU is {driver.device_arch()}; tcgen05 needs one of {', '.join(TARGETS)}")
    for m, n, k in ((1024, 256, 256), (600, 200, 136), (1, 4, 8)):
        rng = np.random.default_rng(23)
        a, b = (rng.standard_normal((rows, k)).astype(np.float16) for rows in (m, n))
        c = to_device(np.full((m, n), np.nan, np.float32))
        grid, block, *rest = arguments(to_device(a), to_device(b), c)
        gemm[grid, block](*rest)
        check(f"{m} x {n} x {k}", c, a.astype(np.float64) @ b.T.astype(np.float64), tolerance=1e-4)


if __name__ == "__main__":
    main()
