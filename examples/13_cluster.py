"""A histogram whose bins lie in the shared memory of two blocks: a cluster.

    python examples/13_cluster.py                  # on the emulator
    python examples/13_cluster.py --device cuda    # on a GPU with clusters (sm_90 or later)

The blocks of a cluster run together, and each may read, write and count in the shared memory of the others. So bins
that would not fit one block are dealt out: block r of a cluster has those from r * HALF on, and a thread counts what it
finds in whichever block has the bin. New here: a cluster, addresses in shared memory of another block (`mapa`), and the
barrier of the cluster. Without the first one a block could count where there are no zeros yet; without the last one it
could end while the other still counts in its bins.
"""

import numpy as np
from arrays import check, to_device, to_host

import ptxdsl as pd
from ptxdsl import ptr, u32

CLUSTER, CLUSTERS, THREADS = 2, 3, 96
BINS = 1000
HALF = BINS // CLUSTER


def meet():
    """All threads of the cluster come here before any goes on, and then see what all did."""
    pd.ptx.barrier.cluster.arrive.release.aligned()
    pd.ptx.barrier.cluster.wait.acquire.aligned()


@pd.kernel(cluster=CLUSTER, arch="sm_90")
def histogram(x: ptr[u32], bins: ptr[u32], n: u32):
    """Adds to bins[v] how often v is among the n elements of x."""
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


def main():
    rng = np.random.default_rng(13)
    for n in (0, 1, 10_007):
        x = (rng.beta(2, 5, n) * BINS).astype(np.uint32)
        bins = to_device(np.zeros(BINS, np.uint32))
        histogram[CLUSTERS * CLUSTER, THREADS](to_device(x), bins, n)
        check(f"histogram of {n} elements in {BINS} bins", bins, np.bincount(x, minlength=BINS))
    print(f"    most in one bin: {to_host(bins).max()}")


if __name__ == "__main__":
    main()
