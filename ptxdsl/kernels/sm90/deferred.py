"""The last boxes of a tile of staggered warpgroups: kept in registers, and stored during the next tile's mainloop."""

from __future__ import annotations

from collections.abc import Sequence

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.product.product import Product, WorkTile
from ptxdsl.kernels.sm90.fragments import STEP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.trace.instruction import Scalar


class DeferredBoxes:
    """alpha·a@b + beta·c of the last boxes of a tile, from column `first` on, and the coordinates of the tile. `wait`
    is 1 while there are such values. They are stored in `slices` of 16 columns."""

    def __init__(self, traits: WarpgroupTraits) -> None:
        self.extents, self.is_batched = traits.tile, traits.operands.is_batched
        self.first, self.slices = traits.tile[1] - traits.deferred_columns, traits.deferred_columns // STEP
        self.values = [pd.var(traits.scalar, 0) for _ in range(traits.deferred_accumulators)]
        self.at = [pd.var(u32, 0) for _ in range(3 if self.is_batched else 2)]
        self.wait = pd.var(u32, 0)

    def hold(self, values: Sequence[Scalar], work: WorkTile) -> None:
        """Keep the values of a tile."""
        for register, value in zip(self.values, values, strict=True):
            register.set(value)
        batch = (work.product.out.batch,) if self.is_batched else ()
        for register, number in zip(self.at, (*work.tile, *batch), strict=True):
            register.set(number)
        self.wait.set(1)

    def drop(self) -> None:
        """Set the values to 0 after the last tile. Without this their registers would be live everywhere."""
        for register in self.values:
            register.set(0)
        self.wait.set(0)

    def work(self, product: Product) -> WorkTile:
        """Return the tile of the values; `product` is that of the current tile, which may be of another batch."""
        row, column, *batch = (register.value for register in self.at)
        if batch:
            product = product._replace(out=product.out._replace(batch=batch[0]))
        return WorkTile(product, (row, column), 0, 0, self.extents)
