"""The operand C of an epilogue, which TMA loads to the boxes in which the output is staged next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ptxdsl as pd
from ptxdsl import b32, u32
from ptxdsl.kernels.sm90.staging import Staging
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var

WORDS = 4  # registers of a thread for 16 rows and 16 columns of a warp


class SourceBoxes:
    """The boxes of C of a consumer warpgroup, which complete at an mbarrier.

    Boxes are loaded in place: shared memory holds only as many as are staged at a time. If warpgroups are staggered,
    the first of them are `held` in registers before the last products of a tile, so that the others load meanwhile."""

    def __init__(self, mbarrier: PointerValue, staging: Staging) -> None:
        self.mbarrier, self.staging = mbarrier, staging
        self.parity = pd.var(u32, 0)
        self.held: list[list[Var]] = []

    def load(self, map: Any, boxes: list[tuple[PointerValue, tuple[Any, ...]]]) -> None:
        """Start the loads of boxes, each (address, coordinates), when the stores from these addresses have been
        read."""
        with pd.if_(self.staging.leads):
            pd.ptx.cp.async_.bulk.wait_group.read(0)
            expected = len(boxes) * map.bytes
            pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(self.mbarrier, expected, out="_")
            for address, at in boxes:
                map.load(address, at, self.mbarrier)

    def wait(self) -> None:
        """Wait for the boxes that were loaded last."""
        with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(self.mbarrier, self.parity)):
            pass
        self.parity.set(self.parity ^ 1)

    def hold(self, addresses: Iterable[PointerValue], words: int) -> None:
        """Wait for the boxes and read `words` registers of them, from these addresses. Then they may be overwritten."""
        self.wait()
        self.held = [[pd.var(b32) for _ in range(WORDS)] for _ in range(0, words, WORDS)]
        for registers, address in zip(self.held, addresses, strict=True):
            self.read(registers, address)
        # Without this fence, loads on an H200 overwrote boxes before all threads had read them; a barrier is not enough
        self.staging.publish()

    def read(self, registers: list[Var], address: PointerValue) -> None:
        """Read 16 rows and 16 columns of a warp into registers."""
        for register, word in zip(registers, self.words(address), strict=True):
            register.set(word)

    def words(self, address: PointerValue) -> list[Scalar]:
        """Return 16 rows and 16 columns of a warp, in the fragment of the accumulators."""
        return [*pd.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(address)]
