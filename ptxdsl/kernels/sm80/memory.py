"""The shared memory of a block on the sm_80 path: the ring, and where the output is staged."""

from __future__ import annotations

import ptxdsl as pd
from ptxdsl.kernels.sm80.traits import WarpTraits


class SharedMemory:
    """`a` and `b` are where the tiles of A and B lie in the first stage of the ring, one behind the other; `staging` is
    free when the sums of a tile are complete: behind the ring, where copies go on meanwhile."""

    def __init__(self, traits: WarpTraits) -> None:
        inputs = traits.operands.inputs
        self.a = pd.dynamic_shared(inputs, traits.shared_bytes // inputs.bytes, align=1024).address()
        self.staging = self.a + traits.staged_at // inputs.bytes
        self.b = self.a + traits.a.bytes // inputs.bytes
