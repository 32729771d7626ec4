"""The state of the processor while it runs a group of lanes: the lanes, the frame, the instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from ...errors import Location
from ..memory.access import Origin
from ..memory.phase_counts import PhaseCounts
from ..memory.regions import Table
from .core import Core
from .decode import Batch, Decoded
from .frames import Frame, Index, UninitializedRead
from .residents import WARP, Residents
from .scheduler import Group


class State:
    """The machine while it runs one group.

    `index` selects the lanes of the current instruction, `width` is their number; None for all lanes of the machine.
    `whole` means that the group is all of them, `dense` that no lane outside of it is running, so that whole arrays may
    be computed even if some of their lanes have exited. `partial` means that a guard excludes lanes of the group.
    `kept` marks the current lanes whose results count. `departed` are lanes that left the group. `rounds` counts
    backward jumps since other groups were last advanced. `unwritten` are lanes that have just read uninitialised
    memory, `carried` those that store such a value. `orders` caches the lanes of warpgroups. `met` is empty unless
    lanes arrive at a collective at different instructions: for each of them, the lanes as they continue after it, the
    instruction, and their mask in the warps.
    """

    def __init__(self, machine: Core) -> None:
        self.machine, self.memory, self.copies = machine, machine.memory, machine.copies
        self.bulk = machine.bulk
        self.scheduler, self.barriers, self.checks = machine.scheduler, machine.barriers, machine.checks
        self.products, self.tensor_memory = machine.products, machine.tensor
        self.cluster_barriers, self.remote = machine.cluster_barriers, machine.remote
        self.carries = np.zeros(machine.residents.lanes, np.uint8)
        self.alive = machine.residents.exists.copy()
        self._settle_in(machine.residents)
        self.frame: Frame
        self.step: Decoded
        self.pc = self.rounds = 0
        self.group: Group | None = None
        self.group_index: Index = None
        self.group_width = 0
        self.index: Index = None
        self.width = 0
        self.shape: tuple[int, ...] = ()
        self.whole = self.dense = self.partial = False
        self.batch: Batch | None = None
        self.active = self.everybody
        self.kept: np.ndarray | None = None
        self.departed: list[np.ndarray] = []
        self.unwritten: tuple[np.ndarray, UninitializedRead] | None = None
        self.carried: np.ndarray | None = None
        self.met: Sequence[tuple[Group, Decoded, np.ndarray]] = ()

    def _settle_in(self, residents: Residents) -> None:
        self.residents = residents
        self.living = int(self.alive.sum())
        self.constants: dict[tuple[int, np.dtype], np.ndarray] = {}
        self.places: dict[tuple[int, np.dtype], np.ndarray] = {}  # addresses in the blocks of CTA pairs
        self.orders: dict[object, np.ndarray] = {}
        self.everybody = np.ones((residents.lanes // WARP, WARP), bool)

    def move(self, residents: Residents, source: np.ndarray, destination: np.ndarray) -> None:
        """Move lanes to their places among other residents."""
        carries, alive = np.zeros(residents.lanes, np.uint8), np.zeros(residents.lanes, bool)
        carries[destination], alive[destination] = self.carries[source], self.alive[source]
        self.carries, self.alive = carries, alive
        self._settle_in(residents)

    def begin(self, started: np.ndarray) -> None:
        """Mark lanes of new blocks as running."""
        self.alive |= started
        self.living = int(self.alive.sum())

    def living_warps(self) -> np.ndarray:
        """Return the number of warps of each slot with a lane that has not exited."""
        r = self.residents
        living: np.ndarray = self.alive.reshape(r.warps, r.slots, WARP).any(-1).sum(0)
        return living

    # Lanes

    def aim(self, index: Index) -> None:
        """Select the lanes of the current instruction."""
        self.index = index
        if index is None:
            self.width = self.residents.lanes
        else:
            self.width = index.stop - index.start if isinstance(index, slice) else len(index)

    @property
    def lanes_now(self) -> np.ndarray:
        """The lanes of the current instruction."""
        return self.residents.all if self.index is None else self.residents.all[self.index]

    def of_lanes(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Select values of an array over all lanes for accesses of a shape."""
        selected = values if self.index is None else values[self.index]
        if len(self.shape) > 1:
            selected = selected.reshape(-1, WARP)[:, : shape[-1]]
        return selected

    def lanes_of(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the lane of each access of an array of them."""
        lanes = self.of_lanes(self.residents.all, shape)
        return lanes if lanes.shape == shape else np.broadcast_to(lanes, shape)  # slow

    @contextmanager
    def only(self, which: np.ndarray) -> Iterator[None]:
        """Restrict the current lanes to those of a mask of the shape of an access."""
        index, shape = self.index, self.shape
        lanes = self.lanes_of(which.shape)[which]
        self.aim(lanes)
        self.shape = (len(lanes),)
        try:
            yield
        finally:
            self.aim(index)
            self.shape = shape

    @contextmanager
    def elsewhere(self, frame: Frame, index: Index) -> Iterator[None]:
        """Read and write registers of other lanes or of another frame."""
        now = self.frame, self.index, self.shape, self.kept
        self.frame, self.kept = frame, None
        self.aim(index)
        self.shape = (self.width,)
        try:
            yield
        finally:
            self.frame, index, self.shape, self.kept = now
            self.aim(index)

    def resumption(self) -> Callable[[np.ndarray], AbstractContextManager[None]]:
        """Return a context in which lanes later do what the running instruction asks for."""
        step = self.step
        return lambda lanes: self._acting(step, lanes)

    @contextmanager
    def _acting(self, step: Decoded, lanes: np.ndarray) -> Iterator[None]:
        """Let lanes act for an earlier instruction of theirs."""
        now = self.step, self.carried, self.batch
        self.step, self.carried, self.batch = step, None, None
        try:
            with self.elsewhere(self.frame, lanes):
                yield
        finally:
            self.step, self.carried, self.batch = now

    # Uninitialised values

    def note_unwritten(self, which: np.ndarray, text: str) -> None:
        """Lanes of a mask read uninitialised memory; a collective gives it to all lanes of a warp."""
        self._read_from(which, UninitializedRead(self.origin, text))

    def _read_from(self, which: np.ndarray, source: UninitializedRead) -> None:
        flags = np.zeros(self.residents.lanes, bool)
        flags[self.lanes_of(which.shape)[which]] = True
        if self.collective:
            flags = self.whole_warps(flags)
        if self.unwritten is not None:
            flags, source = flags | self.unwritten[0], self.unwritten[1]
        self.unwritten = flags, source

    def note_race(self, which: np.ndarray, number: int) -> None:
        """Taint the lanes of a mask, whose read races; `number` is that of the finding."""
        if number >= 0:
            self.machine.racy.add(number)
            self._read_from(which, UninitializedRead(self.origin, "", race=number))

    def whole_warps(self, flags: np.ndarray) -> np.ndarray:
        """Flag all lanes of each warp that has a flagged lane."""
        return np.repeat(flags.reshape(-1, WARP).any(1), WARP)

    # Findings

    @property
    def phases(self) -> PhaseCounts:
        """The counts of arrivals and waits at mbarriers."""
        return self.machine.phases

    @property
    def shared_table(self) -> Table:
        """The allocations in the shared memory of a block."""
        return self.memory.spaces["shared"].table

    def shared_word(self, slot: int, offset: int) -> int:
        """Return the 64-bit word at an offset of the shared memory of the block in a slot."""
        shared = self.memory.spaces["shared"]
        return int(shared.read(np.array([slot * shared.stride + offset]), 8)[0])

    @property
    def name(self) -> str:
        """The running instruction, as findings name it."""
        return self.step.opcode.text

    @property
    def origin(self) -> Origin:
        """The running instruction; in a batch, the first."""
        return self.step.origin

    @property
    def collective(self) -> bool:
        """True if the lanes of a warp run it together."""
        return self.step.collective

    def finding(
        self,
        kind: str,
        message: str,
        which: np.ndarray,
        others: Sequence[Location] = (),
        help: str = "",
        strict: bool = False,
    ) -> int:
        """Report what the lanes of a mask did; `others` are the locations of other instructions involved."""
        lanes = self.lanes_of(which.shape)[which]
        if which.ndim > len(self.shape):  # several accesses of each lane
            lanes = np.unique(lanes)
        step = self.step
        if self.batch is not None and which.ndim == len(self.shape):
            step = self.batch.steps[int(np.argmax(which.reshape(len(which), -1).any(1)))]
        return self.machine.find(kind, message, step, lanes, others, help, strict)

    def finding_elsewhere(
        self, kind: str, message: str, step: Decoded, lanes: np.ndarray, others: Sequence[Location], help: str
    ) -> None:
        """Report what lanes did at another step."""
        self.machine.find(kind, message, step, lanes, others, help)

    def finding_of_lanes(self, kind: str, message: str, lanes: np.ndarray, help: str) -> None:
        self.machine.find(kind, message, self.step, lanes, help=help)

    def finding_of_warps(self, kind: str, message: str, which: np.ndarray, help: str) -> None:
        """Report what the warps of a mask over the warps of this instruction did."""
        self.finding(kind, message, self.active & which[:, np.newaxis], help=help)
