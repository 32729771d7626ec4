"""The register pool of setmaxnreg: registers per thread of each warp, and those released for others."""

from __future__ import annotations

import numpy as np

from ... import ir
from ...errors import EmulationError
from ...isa.target import registers_at_launch
from .executor import Executor
from .residents import WARP, Residents


def at_launch(kernel: ir.Function) -> int:
    """Return the registers of each thread when a kernel starts; 0 if it does not declare its block size."""
    return registers_at_launch(kernel.bounds)


class RegisterPool:
    """`each` has the registers per thread of every warp, `free` the registers left for others in every block."""

    def __init__(self, residents: Residents, first: int) -> None:
        self.first = first
        self.each = np.full(residents.lanes // WARP, first)
        self.free = np.zeros(residents.slots, np.int64)

    def change(self, x: Executor, count: int, more: bool) -> np.ndarray:
        """Request `count` registers per thread for the current warps; return for each lane True if they have them."""
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
            x.memory.version += wanted < 0  # wake the warps that wait for registers
        return ready

    def _check(self, x: Executor, rows: np.ndarray, count: int, more: bool) -> None:
        wrong = self.each[rows] > count if more else self.each[rows] < count
        if wrong.any():
            have, verb, other = int(self.each[rows][wrong][0]), *(("inc", "dec") if more else ("dec", "inc"))
            message = f"{x.name} {count}: the threads have {have} registers, and {verb} cannot change that to {count}"
            x.fail("registers", message, np.repeat(wrong[:, np.newaxis], WARP, 1), f"write setmaxnreg.{other}")

    def lacking(self, x: Executor, lanes: np.ndarray, count: int) -> str:
        """Describe the registers that a waiting warpgroup lacks."""
        row, slot = int(lanes[0]) // WARP, int(x.residents.slot[lanes[0]])
        wanted = (count - int(self.each[row])) * WARP * 4
        return f", for {wanted} registers; {self.free[slot]} are left in the block"

    def move(self, lanes: np.ndarray, slots: np.ndarray, residents: Residents) -> None:
        """Renumber lanes and slots; -1 for those that have exited."""
        rows, old = lanes[::WARP] // WARP, (self.each, self.free)
        self.each = np.full(residents.lanes // WARP, self.first)
        self.free = np.zeros(residents.slots, np.int64)
        self.each[rows[rows >= 0]] = old[0][rows >= 0]
        self.free[slots[slots >= 0]] = old[1][slots >= 0]
