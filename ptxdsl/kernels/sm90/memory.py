"""The shared memory of a block on sm_90a, the ring in it, and the wait for the kernels before this one."""

from __future__ import annotations

from math import prod
from typing import Any

import ptxdsl as pd
from ptxdsl import b64
from ptxdsl.kernels.product.product import Products
from ptxdsl.kernels.sm90.boxes import PATTERN_BYTES
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.schedule import ExchangeMemory, KernelContext
from ptxdsl.trace.memory import ArrayView


class SharedTiles:
    """The shared memory of a block. `a` and `b` are the tiles of A and B in the first stage of the ring, next to each
    other.

    It is allocated before the ring, whose construction synchronises all threads. If blocks of a cluster exchange
    accumulators past the end of the ring, a phase of the cluster barrier tells them that the others have started.
    """

    def __init__(self, traits: WarpgroupTraits) -> None:
        self.traits, (inputs, of_b) = traits, traits.operands.input_types
        self.a = pd.dynamic_shared(inputs, traits.shared_bytes // inputs.bytes, align=PATTERN_BYTES).address()
        self.exchange = ExchangeMemory(self.a + traits.exchanged_at // inputs.bytes, traits.exchanges_in_ring)
        self.staging = self.a + traits.staged_at // inputs.bytes
        self.b = (self.a + traits.a.bytes // inputs.bytes).bitcast(of_b)
        self.stage = traits.stage_bytes // inputs.bytes
        self.source = _mbarriers(traits.tiling.consumers) if traits.c_boxes else None
        if traits.schedule.cluster and traits.schedule.multicast == (1, 1) and not traits.exchanges_in_ring:
            pd.ptx.barrier.cluster.arrive.relaxed.aligned()

    def context(self, products: Products, fields: Any) -> KernelContext:
        """Return the context of the walk over the tiles of `products`; `fields` are those of the schedule."""
        return KernelContext(products, fields, self.traits.accumulators, self.staging, True, self.exchange)


def _mbarriers(warpgroups: int) -> ArrayView:
    """Initialise an mbarrier of C for each consumer warpgroup. All threads meet later, when the ring is made."""
    mbarriers = pd.shared(b64, warpgroups, name="addends")
    with pd.if_(pd.tid.x == 0):
        for number in range(warpgroups):
            pd.ptx.mbarrier.init.shared__cta.b64(mbarriers.address(number), 1)
    return mbarriers


def tile_ring(traits: WarpgroupTraits, kind: type[pd.Ring] = pd.Ring) -> pd.Ring:
    """Return the ring of a block; if blocks of a cluster share loads, they fill each other's rings."""
    tiling, cluster = traits.tiling, prod(traits.schedule.multicast)
    stages, stage_bytes, holders = tiling.stages, traits.stage_bytes, tiling.holders
    each = "warp" if traits.from_registers else "warpgroup"
    ring = kind(stages, stage_bytes=stage_bytes, consumers=holders, each=each, cluster=cluster)
    return ring  # names its registers


def await_prerequisites(*maps: Any) -> None:
    """Prefetch tensor maps, and wait until the kernels before this one have ended.

    Blocks of a dependent launch start while the last blocks of the kernel before still run; the next kernel may do the
    same.
    """
    with pd.if_(pd.tid.x == 0):
        for map in maps:
            map.prefetch()
    pd.ptx.griddepcontrol.wait()
    pd.ptx.griddepcontrol.launch_dependents()
