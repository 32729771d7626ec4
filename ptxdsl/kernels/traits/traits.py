"""The traits of a kernel, on every path: tiling, operands, schedule, epilogue, and the resources that follow from
them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

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
PAD = 8  # elements after each row of the staged output, so that rows begin in different banks


class Tiling(Protocol):
    """The tiling of a path, as schedules, epilogues, calls and the choice of tiles see it.

    A hashable value. `tile` is the (M, N, K) of a thread block, `stages` the length of the ring in shared memory.
    """

    @property
    def tile(self) -> tuple[int, int, int]: ...

    @property
    def stages(self) -> int: ...

    @property
    def threads(self) -> int:
        """The threads of a block."""

    def accumulators(self, operands: Operands) -> AccumulatorLayout:
        """Return the layout of the accumulators of a tile."""

    def stage_bytes(self, inputs: Type) -> int:
        """Return the bytes of a stage of the ring."""

    def ring_bytes(self, operands: Operands) -> int:
        """Return the bytes of the ring."""

    def registers(self, operands: Operands) -> int:
        """Return a lower bound on the registers of a thread."""

    def misfits(self, inputs: Type) -> Iterator[str]:
        """Yield messages about a tiling that does not support inputs of a type."""

    def shortages(self, operands: Operands, arch: str) -> Iterator[tuple[str, str]]:
        """Yield a message and a remedy for each resource, apart from shared memory, that a GPU lacks."""


@dataclass(frozen=True)
class Traits:
    """A kernel is specialised for its tiling, the properties of its operands, a tile schedule and an epilogue, a
    function of each element of alpha·a@b + beta·c and of `operands.extras`. Everything else follows from these.

    Each path derives from it what its tiling adds; `path` is its name. Raises LaunchError if the tiling does not
    support the types.
    """

    path: ClassVar[str]
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
        """Raise LaunchError if a GPU lacks the MMA atom, or enough registers or shared memory."""
        for message, help in self._shortages(arch):
            raise LaunchError(f"GemmConfig: {message}", help=help)

    def fits(self, arch: str) -> bool:
        """Return whether a GPU has the MMA atom and enough registers and shared memory."""
        return next(self._shortages(arch), None) is None

    @cached_property
    def general(self) -> Traits:
        """The traits of the kernel that serves all launches with this schedule."""
        return replace(self, schedule=self.schedule.general())

    @property
    def tile(self) -> tuple[int, int, int]:
        return self.tiling.tile

    @property
    def threads(self) -> int:
        return self.tiling.threads

    @cached_property
    def accumulators(self) -> AccumulatorLayout:
        """The layout of the accumulators of a tile."""
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
        """True if the loads of the next tile start before a tile is stored."""
        return self.schedule.is_ahead(self.operands)

    @property
    def staged_at(self) -> int:
        """The offset of the staged output, in bytes: past the end of the ring if loads run ahead, else 0."""
        return self.tiling.ring_bytes(self.operands) if self.is_ahead else 0

    @property
    def shared_bytes(self) -> int:
        """The bytes of shared memory: the ring, and a group of rows of each warp."""
        m, n = self.accumulators.warps
        return max(self.tiling.ring_bytes(self.operands), self.staged_at + m * n * self.warp_staged_bytes)

    @property
    def meets_before_staging(self) -> bool:
        """True if warps synchronise before they stage output, because the memory may still be read."""
        return False

    @property
    def warp_staged_bytes(self) -> int:
        """The bytes that a warp stages at a time."""
        return self.accumulators.rows * (self.accumulators.strip + PAD) * self.operands.staged.bytes

    @property
    def static_bytes(self) -> int:
        """The bytes of shared memory that the kernel declares in addition."""
        return 0

    @property
    def registers(self) -> int:
        """A lower bound on the registers of a thread."""
        return self.tiling.registers(self.operands)

    def _shortages(self, arch: str) -> Iterator[tuple[str, str]]:
        """Yield a message and a remedy for each resource that a GPU lacks."""
        yield from self.tiling.shortages(self.operands, arch)
        most = shared_bytes(arch) - self.static_bytes
        if self.shared_bytes > most:
            ring = f"{self.tiling.stages} stages of {self.stage_bytes} bytes"
            message = f"{ring} take {self.shared_bytes} bytes of shared memory; a block of {arch} has {most}"
            yield message, "take a smaller tile or fewer stages; on the emulator, PTXDSL_ARCH says of which GPU"


class ConfigReader(ABC):
    """Reads the configurations of one path; `config` is a GemmConfig.

    `path` is the name of the path: of its kernels in `Kernels`, and of its rates. It `chooses_tiles` if a configuration
    without a tile leaves the tile to the call, instead of having the usual one.
    """

    path: ClassVar[str]
    chooses_tiles: ClassVar[bool] = False

    @abstractmethod
    def reads(self, atom: object) -> bool:
        """Return True if the path has this tensor core instruction; "" leaves it open."""

    @abstractmethod
    def misfits(self, config: Any) -> Iterator[str]:
        """Yield messages about fields that the path does not support, each beginning with the name of the field."""

    @abstractmethod
    def tiling(self, config: Any) -> Tiling:
        """Return the tiling of a configuration without misfits."""

    @abstractmethod
    def traits(self, config: Any, operands: Operands, arch: str) -> Traits:
        """Return the traits of the kernel for such operands."""

    @abstractmethod
    def label(self, config: Any) -> str:
        """Return the name of a configuration in tables of measured winners."""
