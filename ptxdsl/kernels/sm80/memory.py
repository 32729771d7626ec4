"""The shared memory of a block on sm_80: the ring, and the staged output."""

from __future__ import annotations

from typing import Any

import ptxdsl as pd
from ptxdsl.kernels.product.product import Products
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.kernels.tiles.schedule import KernelContext


class SharedMemory:
    """`a` and `b` point at the tiles of A and B in the first stage of the ring, next to each other. `staging` is free
    once the accumulators of a tile are complete: past the end of the ring if loads run ahead, else in it."""

    def __init__(self, traits: WarpTraits) -> None:
        self.traits, inputs = traits, traits.operands.inputs
        self.a = pd.dynamic_shared(inputs, traits.shared_bytes // inputs.bytes, align=1024).address()
        self.staging = self.a + traits.staged_at // inputs.bytes
        self.b = self.a + traits.a.bytes // inputs.bytes

    def context(self, products: Products, fields: Any, ahead: bool | None = None) -> KernelContext:
        """Return the context of the walk over the tiles of `products`; `fields` are those of the schedule."""
        ahead = self.traits.is_ahead if ahead is None else ahead
        return KernelContext(products, fields, self.traits.accumulators, self.staging, ahead)
