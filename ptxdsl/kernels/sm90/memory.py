"""The shared memory of a block on the sm_90a path: the ring, and behind it where the output is staged."""

from __future__ import annotations

import ptxdsl as pd
from ptxdsl.kernels.sm90.boxes import PATTERN_BYTES
from ptxdsl.kernels.sm90.traits import WarpgroupTraits


class SharedTiles:
    """`a` and `b` are where the tiles of A and B lie in the first stage of the ring, one behind the other."""

    def __init__(self, traits: WarpgroupTraits) -> None:
        inputs = traits.operands.inputs
        self.a = pd.dynamic_shared(inputs, traits.shared_bytes // inputs.bytes, align=PATTERN_BYTES).address()
        self.staging = self.a + traits.staged_at // inputs.bytes
        self.b = self.a + traits.a.bytes // inputs.bytes
        self.stage = traits.stage_bytes // inputs.bytes
