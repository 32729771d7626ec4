"""What a kernel is made for, and what follows from it: shared memory, registers, types on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ptxdsl.cached import cached_property
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.product.accumulators import AccumulatorLayout
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.tiles.one_tile import OneTile
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.runtime.limits import shared_bytes
from ptxdsl.schedule import GroupedRowsThreadblockSwizzle
from ptxdsl.types import Type

USUAL = OneTile(GroupedRowsThreadblockSwizzle(8))
PAD = 8  # elements between the rows of the staged output: rows begin in different banks


class Tiling(Protocol):
    """How a path cuts a product: all that schedules, the store, calls and the choice of tiles ask of it.

    A hashable value. `tile` is the (M, N, K) of a thread block, `stages` the length of the ring in shared memory.
    """

    @property
    def tile(self) -> tuple[int, int, int]: ...

    @property
    def stages(self) -> int: ...

    @property
    def threads(self) -> int:
        """Of a thread block."""

    def tiles(self, m: int, n: int) -> tuple[int, int]:
        """How many tiles an m×n output has along M and N."""

    def accumulators(self, operands: Operands) -> AccumulatorLayout:
        """Which elements of a tile the registers of a thread hold."""

    def stage_bytes(self, inputs: Type) -> int:
        """Shared memory of one stage."""

    def ring_bytes(self, operands: Operands) -> int:
        """Shared memory of the ring, and of all that meets in it."""

    def registers(self, operands: Operands) -> int:
        """Of a thread: at least so many are held at the same time."""

    def misfits(self, inputs: Type) -> Iterator[str]:
        """What is wrong with it for such inputs."""

    def shortages(self, operands: Operands, arch: str) -> Iterator[tuple[str, str]]:
        """What a GPU lacks for it beside shared memory, and how to mend that."""


@dataclass(frozen=True)
class Traits:
    """A kernel is made for its tiling, the facts about its operands, a schedule of tiles and an epilogue, which is a
    function on each element of alpha·a@b + beta·c and those of `operands.extras`. All else follows from these.

    A path derives from it what its own tiling adds. Raises LaunchError for a tiling that the types do not take.
    """

    tiling: Tiling
    operands: Operands = field(default_factory=Operands)
    schedule: TileSchedule = USUAL
    epilogue: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        for message in self.tiling.misfits(self.operands.inputs):
            raise LaunchError(f"GemmConfig: {message}")
        epilogue: object = self.epilogue
        if epilogue is not None and not callable(epilogue):
            raise LaunchError(f"epilogue is {epilogue!r}; it takes a function of one element, such as relu")

    def check(self, arch: str = "sm_80") -> None:
        """Raises LaunchError for an atom that a GPU has not, and for more registers or shared memory than it has."""
        for message, help in self._shortages(arch):
            raise LaunchError(f"GemmConfig: {message}", help=help)

    def fits(self, arch: str) -> bool:
        """Whether a GPU has the atom, and enough registers and shared memory."""
        return next(self._shortages(arch), None) is None

    @cached_property
    def general(self) -> Traits:
        """Of the kernel that serves all launches by this schedule."""
        return replace(self, schedule=self.schedule.general())

    @property
    def tile(self) -> tuple[int, int, int]:
        return self.tiling.tile

    @property
    def threads(self) -> int:
        return self.tiling.threads

    @cached_property
    def accumulators(self) -> AccumulatorLayout:
        """Which elements of a tile the registers of a thread hold."""
        return self.tiling.accumulators(self.operands)

    @property
    def sum(self) -> Type:
        """The type of the accumulators."""
        return self.operands.sum

    @property
    def scalar(self) -> Type:
        """The type of alpha and beta, in which the output is computed."""
        return self.operands.scalar

    @property
    def stage_bytes(self) -> int:
        return self.tiling.stage_bytes(self.operands.inputs)

    @property
    def is_ahead(self) -> bool:
        """Whether blocks start the copies of their next tile before they write one."""
        return self.schedule.is_ahead(self.operands)

    @property
    def staged_at(self) -> int:
        """Where in shared memory the output is staged, in bytes: in the ring, or behind it where its copies go on."""
        return self.tiling.ring_bytes(self.operands) if self.is_ahead else 0

    @property
    def shared_bytes(self) -> int:
        """The ring, and where the output is staged: a group of each warp's rows."""
        m, n = self.accumulators.warps
        return max(self.tiling.ring_bytes(self.operands), self.staged_at + m * n * self.warp_staged_bytes)

    @property
    def warp_staged_bytes(self) -> int:
        """What a warp stages at a time."""
        return self.accumulators.rows * (self.accumulators.strip + PAD) * self.operands.staged.bytes

    @property
    def static_bytes(self) -> int:
        """Shared memory that the kernel declares beside it."""
        return 0

    @property
    def registers(self) -> int:
        """Of a thread: at least so many are held at the same time."""
        return self.tiling.registers(self.operands)

    def _shortages(self, arch: str) -> Iterator[tuple[str, str]]:
        """What is wrong, and how to mend it."""
        yield from self.tiling.shortages(self.operands, arch)
        most = shared_bytes(arch) - self.static_bytes
        if self.shared_bytes > most:
            ring = f"{self.tiling.stages} stages of {self.stage_bytes} bytes"
            message = f"{ring} take {self.shared_bytes} bytes of shared memory; a block of {arch} has {most}"
            yield message, "take a smaller tile or fewer stages; on the emulator, PTXDSL_ARCH says of which GPU"
