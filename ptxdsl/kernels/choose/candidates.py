"""The configurations that are chosen from, by the kind of problem and the bits of its inputs.

None of them spills, also with the narrowest copies for which it stands here.
"""

from __future__ import annotations

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.types import Type, f32, f64


def label(config: GemmConfig) -> str:
    """Tile, warp and stages as the data of a GPU have them: 128x256x64/64x64/3."""
    return f"{'x'.join(map(str, config.tile))}/{'x'.join(map(str, config.warp))}/{config.stages}"


def labelled(labels: str) -> tuple[GemmConfig, ...]:
    """The configurations with these labels, between which there are spaces."""
    return tuple(_of_label(*each.split("/")) for each in labels.split())


def _of_label(tile: str, warp: str, stages: str) -> GemmConfig:
    m, n, k = map(int, tile.split("x"))
    return GemmConfig(tile=(m, n, k), warp=tuple(map(int, warp.split("x"))), stages=int(stages))


LARGE, SQUARE, MEDIUM, SMALL = labelled("128x256x64/64x64/3 128x128x64/64x64/3 128x128x32/64x64/4 64x64x32/32x32/4")
OF_HALVES = labelled("""
    128x256x64/64x64/3 128x256x64/64x64/4 128x128x64/64x64/3 128x128x32/64x64/4 64x64x32/32x32/4 128x128x64/64x64x32/6
    128x64x128/64x32x64/4 64x128x64/32x64/4 64x128x64/32x64/8 64x64x64/32x32/5 64x64x128/64x32x64/6
    64x32x128/32x32x64/4 32x64x128/32x32x64/8 32x64x64/32x32x32/6 32x32x256/32x32x64/6 16x64x256/16x64x64/4
    16x64x128/16x32x32/5 16x32x256/16x32x64/8 32x16x256/32x16x64/6
""")
# Tiles that are no powers of two, for products of about as many of them as a GPU has multiprocessors: on 132 those with
# an M·N of 768·768 or 128·24576, for example
SINGLE_WAVE_HALVES = labelled("""
    48x96x128/48x48x64/3 96x96x64/48x48/3 96x128x64/48x64/3 112x128x64/112x32/3
    128x192x64/64x48/3 128x192x64/64x48/4 192x128x64/48x64/3
""")
# Rows that begin at odd elements are copied one element at a time, through registers: more threads a tile.
OF_ODD_HALVES = labelled("128x128x32/32x32/3 128x64x32/32x32/3 64x64x64/32x16/3 64x64x32/32x32/4")
OF_BYTES = labelled("256x128x128/64x64/3 128x128x128/64x64/3 64x64x64/32x32/4")
OF_WORDS = {
    f32: labelled("256x128x16/64x64/4 128x128x16/32x64/4 64x64x16/32x32/4"),
    f64: labelled("128x128x16/64x32/3 64x128x16/32x32/3 64x64x16/32x32/3 32x32x32/16x16/3"),
}
# Of persistent blocks, which take tiles of many problems of 16-bit types
GROUPED = labelled("""
    128x256x64/64x64/3 256x128x64/64x64/3 64x128x64/64x64x32/4 128x64x64/64x64x32/4 64x64x64/32x32/4
    16x64x128/16x16/3 64x16x128/16x16/3
""")
# Of convolutions, by the bits of the inputs
CONVOLUTIONS = {
    8: labelled("128x128x128/64x64/3 256x64x64/64x64/3 128x64x128/64x32/3 64x64x64/32x32/4"),
    16: labelled("128x128x64/64x64/3 256x64x32/64x64/4 128x64x32/64x32/4 64x64x64/32x32/4"),
    32: labelled("128x128x16/64x64/4 256x64x16/64x64/4 128x64x32/64x32/4 64x64x32/32x32/3"),
    64: labelled("64x64x32/32x32/3"),
}
DEEP, TALL, NARROW, CUBE = CONVOLUTIONS[16]
FOR_NARROW_COPIES = (NARROW, CUBE, *CONVOLUTIONS[64])  # the others have no registers left for many copies of a thread


def of_products(inputs: Type, width: int, along_k: bool) -> tuple[GemmConfig, ...]:
    """Those whose registers are enough for copies of `width` bytes, and for elements that are read one by one: those of
    32 bits that are not contiguous along k."""
    if inputs.bits == 16:
        return OF_HALVES if width >= 4 else OF_ODD_HALVES
    if inputs.bits == 8:
        return OF_BYTES[0 if width == 16 else 2 :]
    return OF_WORDS[inputs][inputs is f32 and not (width == 16 and along_k) :]


def of_single_waves(inputs: Type, width: int) -> tuple[GemmConfig, ...]:
    """More of them, for products that are a single wave of such tiles."""
    return SINGLE_WAVE_HALVES if inputs.bits == 16 and width == 16 else ()


def of_groups(inputs: Type, width: int, along_k: bool) -> tuple[GemmConfig, ...]:
    """The same for grouped products."""
    if inputs.bits == 16:
        return GROUPED if width > 4 else OF_ODD_HALVES
    return of_products(inputs, width, along_k)


def of_convolutions(inputs: Type, is_wide: bool) -> tuple[GemmConfig, ...]:
    """The same for convolutions, whose images are copied in 16 bytes where `is_wide`."""
    known = CONVOLUTIONS[inputs.bits]
    return known if is_wide else tuple(config for config in known if config in FOR_NARROW_COPIES)
