"""What a kernel is made for, and what follows from it: shared memory, registers, types on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.operands import Operands
from ptxdsl.kernels.sm80.tile import OperandTile
from ptxdsl.kernels.sm80.tiling import MORE_ATOMS, MORE_ATOMS_FROM, Tiling, capability_of, misfit_inputs
from ptxdsl.kernels.store.sums import SumsLayout
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.layout import TiledMma
from ptxdsl.runtime.limits import shared_bytes
from ptxdsl.types import Type

PAD = 8  # elements between the rows of the staged output: rows begin in different banks
REGISTERS = 255  # of a thread
REGISTERS_OF_BLOCK = 65536


@dataclass(frozen=True)
class Traits:
    """A kernel is made for its tiling, the facts about its operands, a schedule of tiles and an epilogue, which is a
    function on each element of alpha·a@b + beta·c and those of `operands.extras`. All else follows from these.

    Raises LaunchError for a tiling that the types do not take.
    """

    tiling: Tiling = field(default_factory=Tiling)
    operands: Operands = field(default_factory=Operands)
    schedule: TileSchedule = field(default_factory=TileSchedule)
    epilogue: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        for message in misfit_inputs(self.tiling, self.operands.inputs):
            raise LaunchError(f"GemmConfig: {message}")
        epilogue: Any = self.epilogue
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
    def mma(self) -> TiledMma:
        return self.tiling.mma(self.operands.inputs)

    @property
    def k_step(self) -> int:
        """The K of one tensor core instruction of each slice."""
        return self.mma.tile[2]

    @cached_property
    def a(self) -> OperandTile:
        return self.tiling.a(self.operands)

    @cached_property
    def b(self) -> OperandTile:
        return self.tiling.b(self.operands)

    @cached_property
    def sums(self) -> SumsLayout:
        """Which elements of a tile the registers of a thread hold."""
        return self.tiling.sums(self.operands)

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
        """The ring, and where the output is staged."""
        m, n = self.tiling.warps
        staged = m * n * self.tiling.group_rows * (self.tiling.warp[1] + PAD) * self.operands.staged.bytes
        return max(self.tiling.ring_bytes(self.operands), self.staged_at + staged)

    @property
    def registers(self) -> int:
        """Of a thread: at least so many are held at the same time."""
        return self.tiling.registers(self.operands)

    def _shortages(self, arch: str) -> Iterator[tuple[str, str]]:
        """What is wrong, and how to mend it."""
        capability, tiling = capability_of(arch), self.tiling
        atom = self.mma.atom.name
        if atom in MORE_ATOMS and capability < MORE_ATOMS_FROM:
            message = f"atom is {atom}, which takes sm_{MORE_ATOMS_FROM} or later; the kernel is for {arch}"
            yield (
                message,
                f"leave atom out; on the emulator, PTXDSL_ARCH=sm_{MORE_ATOMS_FROM} says that it is such a GPU",
            )
        if self.registers > REGISTERS:
            whole = f"warps of {tiling.warp} with {self.sum} sums"
            message = f"{whole} hold {self.registers} registers a thread or more; there are {REGISTERS}"
            yield message, "take a smaller warp, and so more warps for the same tile"
        elif self.registers * self.threads > REGISTERS_OF_BLOCK:
            whole = f"{self.threads} threads in warps of {tiling.warp}"
            message = f"{whole} hold {self.registers} registers each or more; a block has {REGISTERS_OF_BLOCK}"
            yield message, "take a smaller tile, or a larger warp, and so fewer warps for the same tile"
        most = shared_bytes(arch)
        if self.shared_bytes > most:
            ring = f"{tiling.stages} stages of {self.stage_bytes} bytes"
            message = f"{ring} take {self.shared_bytes} bytes of shared memory; a block of {arch} has {most}"
            yield message, "take a smaller tile or fewer stages; on the emulator, PTXDSL_ARCH says of which GPU"


@lru_cache(maxsize=4096)
def traits_of(
    tiling: Tiling, operands: Operands, schedule: TileSchedule, epilogue: Callable[..., Any] | None
) -> Traits:
    """The same object for the same kernel, so that what follows from it is worked out once."""
    return Traits(tiling, operands, schedule, epilogue)
