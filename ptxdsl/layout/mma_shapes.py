"""The table of tensor-core matrix products, shared by the instructions and the layouts."""

from __future__ import annotations

from typing import NamedTuple

BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "s32": 32,
    "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip
"""The width of an element in bits."""


class MmaShape(NamedTuple):
    """One MMA shape with its types, and the lowest `.version` and target that support it.

    A and B each have one of the `inputs`; the accumulators have one of `sums`.
    """

    shape: tuple[int, int, int]  # m, n, k
    sums: tuple[str, ...]
    inputs: tuple[str, ...]
    ptx: str
    sm: int

    @property
    def name(self) -> str:
        """ "m16n8k16"."""
        m, n, k = self.shape
        return f"m{m}n{n}k{k}"


def _products(shape: tuple[int, int, int], *rows: tuple[str, str, str, int]) -> tuple[MmaShape, ...]:
    """Return one MmaShape for each row of (accumulators, inputs, ptx, sm)."""
    return tuple(MmaShape(shape, tuple(sums.split()), tuple(inputs.split()), ptx, sm) for sums, inputs, ptx, sm in rows)


MMA = (
    *_products(
        (16, 8, 16),
        ("f32 f16", "f16", "7.0", 80), ("f32", "bf16", "7.0", 80), ("s32", "s8 u8", "7.0", 80),
        ("f64", "f64", "7.8", 90), ("f32 f16", "e4m3 e5m2", "8.7", 89),
    ),
    *_products(
        (16, 8, 8),
        ("f32 f16", "f16", "6.5", 75), ("f32", "bf16", "7.0", 80), ("f32", "tf32", "7.0", 80),
        ("f64", "f64", "7.8", 90),
    ),
    *_products((16, 8, 4), ("f32", "tf32", "7.0", 80), ("f64", "f64", "7.8", 90)),
    *_products(
        (16, 8, 32),
        ("s32", "s8 u8", "7.0", 80), ("f32", "e4m3 e5m2", "8.4", 89), ("f16", "e4m3 e5m2", "8.7", 89),
        ("s32", "s4 u4", "7.0", 80),
    ),
    *_products((8, 8, 4), ("f64", "f64", "7.0", 80)),
    *_products((8, 8, 16), ("s32", "s8 u8", "6.5", 75)),
    *_products((8, 8, 32), ("s32", "s4 u4", "6.5", 75)),
    *_products((16, 8, 64), ("s32", "s4 u4", "7.0", 80)),
    *_products((8, 8, 128), ("s32", "b1", "7.0", 75)),
    *_products((16, 8, 128), ("s32", "b1", "7.0", 80)),
    *_products((16, 8, 256), ("s32", "b1", "7.0", 80)),
)  # fmt: skip
"""The dense shapes of mma.sync. A name without types means the first row of its shape."""

WGMMA_M = 64
WGMMA_K_BITS = 256  # K per instruction, in bits, for every type; twice as much for sparse A
FLOAT_N = tuple(range(8, 257, 8))
INTEGER_N = (8, 16, 24, *range(32, 257, 16))


class WarpgroupProduct(NamedTuple):
    """The types that wgmma combines, and the valid values of N."""

    sums: tuple[str, ...]
    inputs: tuple[str, ...]
    n: tuple[int, ...] = FLOAT_N

    @property
    def k(self) -> int:
        return WGMMA_K_BITS // BITS[self.inputs[0]]


WGMMA = (
    WarpgroupProduct(("f32", "f16"), ("f16",)),
    WarpgroupProduct(("f32",), ("bf16",)),
    WarpgroupProduct(("f32",), ("tf32",)),
    WarpgroupProduct(("s32",), ("s8", "u8"), INTEGER_N),
    WarpgroupProduct(("f32", "f16"), ("e4m3", "e5m2")),
    WarpgroupProduct(("s32",), ("b1",), INTEGER_N),
)
"""The types of wgmma.mma_async, with 64 rows of A."""


class TensorMemoryKind(NamedTuple):
    """A kind of tcgen05.mma: the codes of its types in the instruction descriptor, and K of one instruction.

    `element_bits` is the width of an element of A and B in shared memory: elements of 4 and 6 bits take a byte, except
    in mxf4 and mxf4nvf4. `scales` are the block scales, as (elements of K for each factor, type of the factors).
    """

    kind: str
    sums: dict[str, int]
    inputs: dict[str, int]
    k: int
    element_bits: int
    scales: tuple[tuple[int, str], ...] = ()


_NARROW_CODES = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
TCGEN05 = (
    TensorMemoryKind("f16", {"f32": 1, "f16": 0}, {"f16": 0, "bf16": 1}, 16, 16),
    TensorMemoryKind("tf32", {"f32": 1}, {"tf32": 2}, 8, 32),
    TensorMemoryKind("f8f6f4", {"f32": 1, "f16": 0}, _NARROW_CODES, 32, 8),
    TensorMemoryKind("i8", {"s32": 2}, {"u8": 0, "s8": 1}, 32, 8),
    TensorMemoryKind("mxf8f6f4", {"f32": 1}, _NARROW_CODES, 32, 8, ((32, "ue8m0"),)),
    TensorMemoryKind("mxf4", {"f32": 1}, {"e2m1": 1}, 64, 4, ((32, "ue8m0"),)),
    TensorMemoryKind("mxf4nvf4", {"f32": 1}, {"e2m1": 1}, 64, 4, ((16, "ue4m3"), (16, "ue8m0"))),
)
"""The kinds of dense tcgen05.mma (PTX ISA, "Matrix Shape", "Instruction descriptor")."""
TCGEN05_M = (64, 128, 256)
"""M of one CTA, or 256 for a pair."""


def mma_names(inputs: str, sm: int, sums: str = "") -> tuple[str, ...]:
    """Return the names of the MMA atoms of one input type that a target such as 80 supports: mma.m8n8k4.f64.f64, …

    `sums` selects one accumulator type.
    """
    return tuple(
        f"mma.{product.name}.{accumulator}.{inputs}"
        for product in MMA
        if inputs in product.inputs and product.sm <= sm
        for accumulator in product.sums
        if sums in ("", accumulator)
    )
