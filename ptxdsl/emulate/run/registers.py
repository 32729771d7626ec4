"""How many registers the threads of a block have, and what warps have given back for others (setmaxnreg)."""

from __future__ import annotations

import numpy as np

from ... import ir
from ...errors import EmulationError
from ...isa.target import registers_at_launch
from .executor import Executor
from .residents import WARP, Residents


def at_launch(kernel: ir.Function) -> int:
    """The registers of each thread when a kernel starts; 0 where it does not say how large its blocks are."""
    return registers_at_launch(kernel.bounds)


class RegisterPool:
    """`each` has the registers a thread of every warp, `free` what is left for others in every block."""

    def __init__(self, residents: Residents, first: int) -> None:
        self.first = first
        self.each = np.full(residents.lanes // WARP, first)
        self.free = np.zeros(residents.slots, np.int64)

    def change(self, x: Executor, count: int, more: bool) -> np.ndarray:
        """The current warps want `count` registers a thread; for each lane, whether they have them."""
        if not self.first:
            raise EmulationError(
                f"{x.name}: the number of registers is unknown, because the kernel does not declare its block size",
                help="declare it: `@pd.kernel(reqntid=384)`, or .reqntid in PTX",
            )
        rows = x.lanes_now[::WARP] // WARP
        self._check(x, rows, count, more)
        ready = np.ones(x.shape, bool)
        for group in x.warpgroups():
            slot, warps = int(x.residents.slot[rows[group[0]] * WARP]), rows[group]
            wanted = int((count - self.each[warps]).sum()) * WARP
            if more and wanted > self.free[slot]:
                ready[group] = False
                continue
            self.free[slot] -= wanted
            self.each[warps] = count
            x.memory.version += wanted < 0  # those that wait for registers look again
        return ready

    def _check(self, x: Executor, rows: np.ndarray, count: int, more: bool) -> None:
        wrong = self.each[rows] > count if more else self.each[rows] < count
        if wrong.any():
            have, verb, other = int(self.each[rows][wrong][0]), *(("inc", "dec") if more else ("dec", "inc"))
            message = f"{x.name} {count}: the threads have {have} registers, and {verb} cannot change that to {count}"
            x.fail("registers", message, np.repeat(wrong[:, np.newaxis], WARP, 1), f"write setmaxnreg.{other}")

    def lacking(self, x: Executor, lanes: np.ndarray, count: int) -> str:
        """What a warpgroup lacks that waits for registers."""
        row, slot = int(lanes[0]) // WARP, int(x.residents.slot[lanes[0]])
        wanted = (count - int(self.each[row])) * WARP * 4
        return f", for {wanted} registers; {self.free[slot]} are left in the block"

    def move(self, lanes: np.ndarray, slots: np.ndarray, residents: Residents) -> None:
        """Lanes and slots have other numbers; -1 for those that are gone."""
        rows, old = lanes[::WARP] // WARP, (self.each, self.free)
        self.each = np.full(residents.lanes // WARP, self.first)
        self.free = np.zeros(residents.slots, np.int64)
        self.each[rows[rows >= 0]] = old[0][rows >= 0]
        self.free[slots[slots >= 0]] = old[1][slots >= 0]
