"""The last boxes of a tile, where warpgroups end it one after the other: what is stored in them waits in registers, and
goes to memory while the first products of the next tile run."""

from __future__ import annotations

from collections.abc import Sequence

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.product.product import Product, WorkTile
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.trace.instruction import Scalar


class DeferredBoxes:
    """alpha·a@b + beta·c of these boxes, `first` columns behind those of the tile, and which tile that was. `wait` is 1
    while there are such values."""

    def __init__(self, traits: WarpgroupTraits) -> None:
        self.extents, self.is_batched = traits.tile, traits.operands.batches != "none"
        self.first = traits.tile[1] - traits.deferred_columns
        self.values = [pd.var(traits.scalar, 0) for _ in range(traits.deferred_sums)]
        self.at = [pd.var(u32, 0) for _ in range(3 if self.is_batched else 2)]
        self.wait = pd.var(u32, 0)

    def hold(self, values: Sequence[Scalar], work: WorkTile) -> None:
        """Keeps the values of some work."""
        for register, value in zip(self.values, values, strict=True):
            register.set(value)
        batch = (work.product.out.batch,) if self.is_batched else ()
        for register, number in zip(self.at, (*work.tile, *batch), strict=True):
            register.set(number)
        self.wait.set(1)

    def drop(self) -> None:
        """Behind the last tile nothing reads the values: without this their registers would be taken all the time."""
        for register in self.values:
            register.set(0)
        self.wait.set(0)

    def work(self, product: Product) -> WorkTile:
        """What they are of; `product` is that of the tile which is multiplied now, maybe of another batch."""
        row, column, *batch = (register.value for register in self.at)
        if batch:
            product = product._replace(out=product.out._replace(batch=batch[0]))
        return WorkTile(product, (row, column), 0, 0, self.extents)
