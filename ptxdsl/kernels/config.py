"""GemmConfig: the kernel configuration that a caller may set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import numpy as np

from ptxdsl.cached import cached_property
from ptxdsl.errors import LaunchError, called_elsewhere, public_class
from ptxdsl.kernels.product.operands import FLOATS, SUMS, Operands, either, quoted
from ptxdsl.kernels.sm80.tiling import atom_of, misfit_count, nearest_warp
from ptxdsl.kernels.sm80.traits import WarpConfigs
from ptxdsl.kernels.sm90.traits import WGMMA as WGMMA
from ptxdsl.kernels.sm90.traits import WarpgroupConfigs
from ptxdsl.kernels.tiles.resolve import REDUCTIONS, Misfit, Schedule, tile_schedule
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.traits.traits import ConfigReader, Tiling, Traits
from ptxdsl.schedule import GroupedRowsThreadblockSwizzle, PersistentScheduler, StreamKThreadblockSwizzle

ROWS_OF_EIGHT = GroupedRowsThreadblockSwizzle(8)
HALVES = Operands()
READERS: list[ConfigReader] = [WarpgroupConfigs(), WarpConfigs()]  # the first that has the atom of a configuration
NO_OPERANDS: tuple[Any, ...] = ()  # of an epilogue, where a call names none
_WARPS = "it follows from `tile` and `warp`: tile=(128, 128, 32) by warp=(64, 64) is 4 warps"
_ELSEWHERE = {  # names that other libraries have for fields
    "num_stages": "it is `stages=` here",
    **dict.fromkeys(("warps", "num_warps"), _WARPS),
    **dict.fromkeys(("block", "tile_shape", "block_tile", "cta_tile"), "it is `tile=` here: M, N and K of a block"),
    "warp_tile": "it is `warp=` here: M and N of a warp",
}


class LeftOut(tuple[int, int, int]):
    """The tile of a wgmma configuration without one. It compares unequal to all others, so that gemm() may choose."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeftOut)

    __hash__ = tuple.__hash__


@public_class
@called_elsewhere(**_ELSEWHERE)
@dataclass(frozen=True)
class GemmConfig:
    """A kernel configuration; everything else follows from the arrays.

    | field | meaning | values |
    |---|---|---|
    | `tile` | the tile shape (M, N, K) of a thread block | multiples of 16, K a power of two. With "wgmma": M of 64, \
128 or 192; N a multiple of 16 up to 256, or 192 with an M of 192; K of 128 bytes. With "wgmma" it may be omitted: \
gemm then chooses it, together with all other fields if none is set, and otherwise takes 128×256 or 128×128; other \
calls take 128×128 |
    | `warp` | the warp tile (M, N), or (M, N, K) if several warps share the K of a tile | multiples of 16 that \
divide `tile`; not with "wgmma" |
    | `stages` | the number of shared-memory stages, each one tile along K | 2 or more |
    | `schedule` | the assignment of tiles to blocks | a threadblock swizzle, a PersistentScheduler or a \
StreamKThreadblockSwizzle of ptxdsl.schedule, or a custom TileSchedule |
    | `split_k` | the number of blocks that share the K of a tile | 1 or more |
    | `reduction` | how these blocks add their partial tiles: in turn, all in the last block, or one share of the \
tile per block, through global memory or, with "wgmma", distributed shared memory | "serial", "parallel", "scatter", \
"cluster" |
    | `atom` | the tensor core instruction; "" selects the default for the types and the GPU | "", the name of an MMA \
atom, or "wgmma": warp-specialised kernels with TMA loads, on sm_90a |
    | `swap_ab` | True to compute the transpose BᵀAᵀ, for few rows or columns, and for groups of rows, whose tiles \
then have equal shares | True or False; only with "wgmma", with an N of 64, 128 or 192 and an M of 8 or a multiple of \
16 up to 256 |
    | `pingpong` | True for ping-pong warpgroups, one in the mainloop while the other is in the epilogue; False for \
cooperative ones, which share each tile | True or False; only with "wgmma", M·N up to 26624, and persistent blocks |
    | `stagger` | the number of iterations at the end of a tile by which each warpgroup trails its predecessor, so \
that its epilogue overlaps the mainloop of the next | 0 or more, less than `stages`, or twice `stages` for three \
warpgroups; only with "wgmma", for tiles that several warpgroups share in gemm and conv2d, and for swapped tiles of \
groups and lists |
    | `copies_rows` | True to gather the rows of A into a workspace first, which is faster for tiles of more than 64 \
rows; False to gather them in producer warps | True or False; only with "wgmma", for groups of rows |
    | `epilogue` | a function of each element before it is written | a function on traced values, such as gelu |

    The arguments of `gemm` of the same name override `schedule`, `split_k`, `reduction` and `epilogue`. Raises
    LaunchError for values that no kernel supports.
    """

    tile: tuple[int, int, int] = LeftOut((128, 128, 32))
    warp: tuple[int, ...] = (64, 64)
    stages: int = 4
    schedule: Schedule = ROWS_OF_EIGHT
    split_k: int = 1
    reduction: str = "parallel"
    atom: str = ""
    swap_ab: bool = False
    pingpong: bool = False
    stagger: int = 0
    copies_rows: bool = False
    epilogue: Callable[..., Any] | None = None

    def __hash__(self) -> int:
        """Hash some fields only: every call with a configuration computes it."""
        return hash((self.tile, self.stages))

    def __post_init__(self) -> None:
        if isinstance(self.tile, LeftOut) and not self.reader.chooses_tiles:
            object.__setattr__(self, "tile", tuple(self.tile))
        for message in self._misfits():
            raise LaunchError(f"GemmConfig: {message}", help=self._help(message.partition(" ")[0]))

    @cached_property
    def without_epilogue(self) -> GemmConfig:
        """Return the configuration without its epilogue."""
        return self if self.epilogue is None else replace(self, epilogue=None)

    @cached_property
    def reader(self) -> ConfigReader:
        """What reads the configuration: the part of its path."""
        return next(reader for reader in READERS if reader.reads(self.atom))

    @property
    def path(self) -> str:
        """The name of the path whose kernels the configuration is for."""
        return self.reader.path

    @cached_property
    def tiling(self) -> Tiling:
        return self.reader.tiling(self)

    @cached_property
    def tile_schedule(self) -> TileSchedule:
        return tile_schedule(self.schedule, self.split_k, self.reduction)

    @cached_property
    def label(self) -> str:
        """The name of the configuration in tables of measured winners."""
        return self.reader.label(self)

    def traits(self, operands: Operands = HALVES, arch: str = "sm_80") -> Traits:
        """Return the traits of the kernel for such operands."""
        return self.reader.traits(self, operands, arch)

    def _help(self, field: str) -> str | None:
        """Return the remedy for an invalid field, if its message has none."""
        value = getattr(self, field, None)
        if field == "stages" and type(value) is int and value == 1:
            return "with one stage no copy could be under way while tensor cores read: 3 to 6 are usual"
        if isinstance(value, np.integer):
            return f"it is a number of numpy: pass int({field})"
        if field in ("tile", "warp") and isinstance(value, tuple | list) and all(map(_is_int, value)):
            plain = tuple(map(int, value))
            if repr(plain) != repr(value):
                return f"pass a tuple of Python's ints: {plain}"
            return nearest_warp(self.warp, self.tile) if field == "warp" else None
        if field == "schedule" and isinstance(value, str):
            return (
                f"it is an object: `from ptxdsl.schedule import {_near_schedule(value)}`, "
                f"schedule={_near_schedule(value)}()"
            )
        names = {"atom": (WGMMA, *map(atom_of, (*FLOATS, *SUMS))), "reduction": REDUCTIONS}.get(field, ())
        near = get_close_matches(str(value), names, 1)
        return f"did you mean {quoted(near[0])}?" if near else None

    def _misfits(self) -> Iterator[str]:
        atom: Any = self.atom
        if not isinstance(atom, str):
            yield f"atom is {atom!r}; it takes the name of a tensor core instruction"
        yield from self.reader.misfits(self)
        reduction: Any = self.reduction
        if not isinstance(reduction, str) or reduction not in REDUCTIONS:
            yield f"reduction is {reduction!r}; it takes {either(map(quoted, REDUCTIONS))}"
        yield from misfit_count("split_k", self.split_k, 1, "it takes 1 or more blocks a tile")
        try:
            schedule = tile_schedule(self.schedule, self.split_k, self.reduction)
            if self.pingpong is True and not schedule.has_whole_tiles:
                yield "pingpong is True, and blocks share the K of tiles; warpgroups take turns at whole ones"
        except Misfit as misfit:
            yield str(misfit)
        epilogue: Any = self.epilogue
        if epilogue is not None and not callable(epilogue):
            yield f"epilogue is {epilogue!r}; it takes a function of one element, such as relu"


def _is_int(number: object) -> bool:
    return isinstance(number, int | np.integer)


def _near_schedule(name: str) -> str:
    """Return the schedule of ptxdsl.schedule that a name is likely to mean."""
    words: dict[str, type] = {"stream": StreamKThreadblockSwizzle, "persistent": PersistentScheduler}
    near = (known for word, known in words.items() if word in name.lower())
    return next(near, GroupedRowsThreadblockSwizzle).__name__


def specialise(config: GemmConfig, **fields: object) -> GemmConfig:
    """Return a configuration with other fields."""
    try:
        return _specialised(config, **fields)
    except TypeError:  # a value that is not hashable is none that a field takes
        return _replaced(config, fields)


@lru_cache(maxsize=4096, typed=True)  # True is none of the numbers that a field takes, and equals 1
def _specialised(config: GemmConfig, **fields: object) -> GemmConfig:
    return _replaced(config, fields)


def _replaced(config: GemmConfig, fields: Mapping[str, Any]) -> GemmConfig:
    return replace(config, **fields)
