"""A histogram in the shared memory of two blocks, and the frequency of each element: a cluster.

    python examples/13_cluster.py                  # on the emulator
    python examples/13_cluster.py --device cuda    # on a GPU with clusters (sm_90 or later)

The blocks of a cluster run at the same time, and each may read, write and update the shared memory of the others. Bins
that do not fit in one block are therefore distributed: block r of a cluster holds the bins from r * HALF on, and a
thread increments a bin in the block that holds it. A bulk copy can write to several blocks: each block loads half of a
table from global memory, and both receive it.

New here: a cluster, addresses in the shared memory of another block (`mapa`), the cluster barrier, and a multicast copy
with a mask of the receiving blocks. The barriers are needed: a block must not increment bins before they are zeroed,
exit while another block still increments its bins, or copy to an mbarrier before it is initialised.
"""

import numpy as np
from arrays import check, to_device

import ptxdsl as pd
from ptxdsl import ptr, u32

CLUSTER, CLUSTERS, THREADS = 2, 3, 96
BINS = 1000
HALF = BINS // CLUSTER
EVERYBODY = (1 << CLUSTER) - 1


def meet():
    """Synchronise all threads of the cluster, and make their writes visible to each other."""
    pd.ptx.barrier.cluster.arrive.release.aligned()
    pd.ptx.barrier.cluster.wait.acquire.aligned()


@pd.kernel(cluster=CLUSTER, arch="sm_90")
def histogram(x: ptr[u32], bins: ptr[u32], n: u32):
    """Add the number of elements of x that equal v to bins[v]."""
    own = pd.shared(u32, HALF)
    rank = pd.special("%cluster_ctarank")
    for i in pd.range(pd.tid.x, HALF, THREADS):
        own[i] = 0
    meet()
    for i in pd.range(pd.ctaid.x * THREADS + pd.tid.x, n, pd.nctaid.x * THREADS):
        value = x[i]
        place = pd.ptx.mapa.shared__cluster.u32(own.address(value % HALF), value // HALF)
        pd.ptx.red.relaxed.cluster.shared__cluster.add.u32(pd.pointer(place, u32, "shared::cluster"), 1)
    meet()
    for i in pd.range(pd.tid.x, HALF, THREADS):
        pd.ptx.red.relaxed.gpu.global_.add.u32(bins + (rank * HALF + i), own[i])


@pd.kernel(cluster=CLUSTER, arch="sm_90")
def frequency(x: ptr[u32], bins: ptr[u32], y: ptr[u32], n: u32):
    """Compute y[i] = bins[x[i]], with all bins in the shared memory of each block."""
    table = pd.shared(u32, BINS, align=16)
    full = pd.shared(pd.b64, 1)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared.b64(full.address(0), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
        _ = pd.ptx.mbarrier.arrive.expect_tx.shared.b64(full.address(0), BINS * 4)
    meet()
    with pd.if_(pd.tid.x == 0):
        first = pd.special("%cluster_ctarank") * HALF
        pd.ptx("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
               table.address(first), bins + first, HALF * 4, full.address(0), EVERYBODY)  # fmt: skip
    with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared.b64(full.address(0), 0)):
        pass
    for i in pd.range(pd.ctaid.x * THREADS + pd.tid.x, n, pd.nctaid.x * THREADS):
        y[i] = table[x[i]]


def example_histogram(rng):
    return CLUSTER, THREADS, rng.integers(0, BINS, 500, np.uint32), np.zeros(BINS, np.uint32), 500


def example_frequency(rng):
    x, bins = rng.integers(0, BINS, 500, np.uint32), rng.integers(0, 9, BINS, np.uint32)
    return CLUSTER, THREADS, x, bins, np.zeros(500, np.uint32), 500


def main():
    rng = np.random.default_rng(13)
    for n in (0, 1, 10_007):
        x = (rng.beta(2, 5, n) * BINS).astype(np.uint32)
        bins, y = to_device(np.zeros(BINS, np.uint32)), to_device(np.zeros(n, np.uint32))
        grid, on_device = CLUSTERS * CLUSTER, to_device(x)
        histogram[grid, THREADS](on_device, bins, n)
        frequency[grid, THREADS](on_device, bins, y, n)
        counts = np.bincount(x, minlength=BINS)
        check(f"histogram of {n} elements in {BINS} bins", bins, counts)
        check("how often each element occurs", y, counts[x])


if __name__ == "__main__":
    main()
