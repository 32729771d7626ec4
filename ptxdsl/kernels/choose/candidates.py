"""The configurations that are chosen from, by the kind of problem and the bits of its inputs.

None of them spills, also with the narrowest copies for which it stands here.
"""

from __future__ import annotations

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.types import Type, f32, f64

LARGE = GemmConfig(tile=(128, 256, 64), stages=3)
SQUARE = GemmConfig(tile=(128, 128, 64), stages=3)
MEDIUM = GemmConfig(tile=(128, 128, 32), stages=4)
SMALL = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=4)
OF_HALVES = (
    LARGE,
    GemmConfig(tile=(128, 256, 64), stages=4),
    SQUARE,
    MEDIUM,
    SMALL,
    GemmConfig(tile=(128, 128, 64), warp=(64, 64, 32), stages=6),
    GemmConfig(tile=(128, 64, 128), warp=(64, 32, 64), stages=4),
    GemmConfig(tile=(64, 128, 64), warp=(32, 64), stages=4),
    GemmConfig(tile=(64, 128, 64), warp=(32, 64), stages=8),
    GemmConfig(tile=(64, 64, 64), warp=(32, 32), stages=5),
    GemmConfig(tile=(64, 64, 128), warp=(64, 32, 64), stages=6),
    GemmConfig(tile=(64, 32, 128), warp=(32, 32, 64), stages=4),
    GemmConfig(tile=(32, 64, 128), warp=(32, 32, 64), stages=8),
    GemmConfig(tile=(32, 64, 64), warp=(32, 32, 32), stages=6),
    GemmConfig(tile=(32, 32, 256), warp=(32, 32, 64), stages=6),
    GemmConfig(tile=(16, 64, 256), warp=(16, 64, 64), stages=4),
    GemmConfig(tile=(16, 64, 128), warp=(16, 32, 32), stages=5),
    GemmConfig(tile=(16, 32, 256), warp=(16, 32, 64), stages=8),
    GemmConfig(tile=(32, 16, 256), warp=(32, 16, 64), stages=6),
)
# Rows that begin at odd elements are copied one element at a time, through registers: more threads a tile.
OF_ODD_HALVES = (
    GemmConfig(tile=(128, 128, 32), warp=(32, 32), stages=3),
    GemmConfig(tile=(128, 64, 32), warp=(32, 32), stages=3),
    GemmConfig(tile=(64, 64, 64), warp=(32, 16), stages=3),
    SMALL,
)
LARGE_TF32 = GemmConfig(tile=(256, 128, 16), stages=4)
MEDIUM_TF32 = GemmConfig(tile=(128, 128, 16), warp=(32, 64), stages=4)
SMALL_TF32 = GemmConfig(tile=(64, 64, 16), warp=(32, 32), stages=4)
LARGE_F64 = GemmConfig(tile=(128, 128, 16), warp=(64, 32), stages=3)
MEDIUM_F64 = GemmConfig(tile=(64, 128, 16), warp=(32, 32), stages=3)
SMALL_F64 = GemmConfig(tile=(64, 64, 16), warp=(32, 32), stages=3)
TINY_F64 = GemmConfig(tile=(32, 32, 32), warp=(16, 16), stages=3)
LARGE_S8 = GemmConfig(tile=(256, 128, 128), stages=3)
MEDIUM_S8 = GemmConfig(tile=(128, 128, 128), stages=3)
SMALL_S8 = GemmConfig(tile=(64, 64, 64), warp=(32, 32), stages=4)
OF_BYTES = (LARGE_S8, MEDIUM_S8, SMALL_S8)
OF_WORDS = {f32: (LARGE_TF32, MEDIUM_TF32, SMALL_TF32), f64: (LARGE_F64, MEDIUM_F64, SMALL_F64, TINY_F64)}

# Of persistent blocks, which take tiles of many problems of 16-bit types
GROUPED = (
    GemmConfig(tile=(128, 256, 64), stages=3),
    GemmConfig(tile=(256, 128, 64), stages=3),
    GemmConfig(tile=(64, 128, 64), warp=(64, 64, 32), stages=4),
    GemmConfig(tile=(128, 64, 64), warp=(64, 64, 32), stages=4),
    GemmConfig(tile=(64, 64, 64), warp=(32, 32), stages=4),
    GemmConfig(tile=(16, 64, 128), warp=(16, 16), stages=3),
    GemmConfig(tile=(64, 16, 128), warp=(16, 16), stages=3),
)

# Of convolutions
DEEP = GemmConfig(tile=(128, 128, 64), warp=(64, 64), stages=3)
TALL = GemmConfig(tile=(256, 64, 32), warp=(64, 64), stages=4)
NARROW = GemmConfig(tile=(128, 64, 32), warp=(64, 32), stages=4)
CUBE = GemmConfig(tile=(64, 64, 64), warp=(32, 32), stages=4)
FLAT = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=3)
SQUARE_TF32 = GemmConfig(tile=(128, 128, 16), warp=(64, 64), stages=4)
TALL_TF32 = GemmConfig(tile=(256, 64, 16), warp=(64, 64), stages=4)
DEEP_S8 = GemmConfig(tile=(128, 128, 128), warp=(64, 64), stages=3)
TALL_S8 = GemmConfig(tile=(256, 64, 64), warp=(64, 64), stages=3)
NARROW_S8 = GemmConfig(tile=(128, 64, 128), warp=(64, 32), stages=3)
CONVOLUTIONS = {
    8: (DEEP_S8, TALL_S8, NARROW_S8, CUBE),
    16: (DEEP, TALL, NARROW, CUBE),
    32: (SQUARE_TF32, TALL_TF32, NARROW, FLAT),
    64: (FLAT,),
}
FOR_NARROW_COPIES = (NARROW, CUBE, FLAT)  # the others have no registers left for many copies of a thread


def of_products(inputs: Type, width: int, along_k: bool) -> tuple[GemmConfig, ...]:
    """Those whose registers are enough for copies of `width` bytes, and for elements that are read one by one: those of
    32 bits that are not contiguous along k."""
    if inputs.bits == 16:
        return OF_HALVES if width >= 4 else OF_ODD_HALVES
    if inputs.bits == 8:
        return OF_BYTES[0 if width == 16 else 2 :]
    return OF_WORDS[inputs][inputs is f32 and not (width == 16 and along_k) :]


def of_groups(inputs: Type, width: int, along_k: bool) -> tuple[GemmConfig, ...]:
    """The same for grouped products."""
    if inputs.bits == 16:
        return GROUPED if width > 4 else OF_ODD_HALVES
    return of_products(inputs, width, along_k)


def of_convolutions(inputs: Type, is_wide: bool) -> tuple[GemmConfig, ...]:
    """The same for convolutions, whose images are copied in 16 bytes where `is_wide`."""
    known = CONVOLUTIONS[inputs.bits]
    return known if is_wide else tuple(config for config in known if config in FOR_NARROW_COPIES)


def label(config: GemmConfig) -> str:
    """Tile, warp and stages as the data of a GPU have them: 128x256x64/64x64/3."""
    return f"{'x'.join(map(str, config.tile))}/{'x'.join(map(str, config.warp))}/{config.stages}"
