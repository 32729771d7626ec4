"""Traits of an attention kernel: what it is compiled for, the shapes of its tiles, and its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import f32, ptr, u32
from ptxdsl.types import Type, bf16, e4m3, s32, s64

WARPGROUP, WARP = 128, 32
ROWS = 64  # rows of a warpgroup's tile
PRODUCER_REGISTERS = {2: 24, 3: 32}
CONSUMER_REGISTERS = {2: 240, 3: 160}  # a thread, by the number of consumer warpgroups
A_BITS = 256  # of a row of A in one wgmma
L2_BYTES = 32 << 20  # that the operands of a band of heads may fill, of 50 MB in an H200


@dataclass(frozen=True)
class AttentionConfig:
    """The tile of an attention kernel: `queries` rows of one head a block, 64 for each consumer warpgroup, and `keys`
    rows of K and V in each of `stages` stages.
    """

    queries: int = 128
    keys: int = 128
    stages: int = 2


CONFIGS = {
    (64, 64): AttentionConfig(192, 128),
    (96, 96): AttentionConfig(192, 96),
    (128, 128): AttentionConfig(128, 128),
    (192, 128): AttentionConfig(128, 128),
    (256, 256): AttentionConfig(128, 80),
}
"""The configuration of each (D, Dv), measured on an H200 at 16,384 queries and keys."""

SCALED_CONFIGS = {(128, 128): AttentionConfig(128, 192)}
"""The configuration of each (D, Dv) of e4m3 operands."""


@dataclass(frozen=True)
class AttentionTraits:
    """The compile-time properties of an attention kernel.

    `head` and `value_head` are the columns of Q and K, and of V. `is_bounded` says if keys before and after the window
    of a query are masked, `is_capped` if scores go through tanh, and `is_packed` if sequences are packed along the
    rows, with offsets. `out` is the type of the output, by default that of the operands.
    """

    dtype: Type = bf16
    head: int = 128
    value_head: int = 128
    config: AttentionConfig = CONFIGS[128, 128]
    is_bounded: tuple[bool, bool] = (False, False)
    is_capped: bool = False
    is_packed: bool = False
    out: Type | None = None

    @property
    def is_scaled(self) -> bool:
        """True for e4m3 operands, which have one scale a head, and V transposed."""
        return self.dtype is e4m3

    @property
    def out_type(self) -> Type:
        return self.out or self.dtype

    @property
    def headroom(self) -> tuple[int, int]:
        """The `shift` and `slack` of the softmax: weights in e4m3, whose largest number is 448, are 2**8 at most."""
        return (4, 4) if self.is_scaled else (0, 0)

    @property
    def consumers(self) -> int:
        """The number of consumer warpgroups."""
        return self.config.queries // ROWS

    @property
    def threads(self) -> int:
        return (1 + self.consumers) * WARPGROUP

    @property
    def registers(self) -> tuple[int, int]:
        """Registers of a thread of the producer and of a consumer."""
        return PRODUCER_REGISTERS[self.consumers], CONSUMER_REGISTERS[self.consumers]

    @property
    def scores_atom(self) -> str:
        return self.wgmma(self.config.keys)

    @property
    def output_atom(self) -> str:
        return f"{self.wgmma(self.value_head)}.rs"

    def wgmma(self, columns: int) -> str:
        """Return the name of the wgmma with this many columns of B."""
        return f"wgmma.m{ROWS}n{columns}k{A_BITS // self.dtype.bits}.f32.{self.dtype}"

    def map(self, rows: int, columns: int) -> pd.TensorMap:
        """Return the tensor map of a (batch, head, row, column) array with tiles of rows x columns."""
        swizzle = next(n for n in (128, 64, 32) if columns * self.dtype.bytes % n == 0)
        return pd.TensorMap.tiled(self.dtype, (1, 1, rows, columns), swizzle=swizzle)


def band_of(traits: AttentionTraits, heads: int, shared: int, bytes: int) -> int:
    """Return the number of heads whose tiles are computed together, the longest tiles of all of them first.

    Where queries see only the keys before them, tiles differ in length, and the longest of the last head would end
    alone. `bytes` are what the tiles of a head load, the same for `shared` heads; those of a band stay in the L2 cache.
    """
    if not traits.is_bounded[1]:
        return 1
    most = max(1, L2_BYTES // max(bytes, 1)) * shared
    return max(count for count in range(1, heads + 1) if heads % count == 0 and count <= most)


@lru_cache(maxsize=256)
def parameters(traits: AttentionTraits) -> Any:
    """Return the parameters of `attention_kernel`.

    `out_strides` and `lse_strides` count elements between batches, heads and rows. `extents` are the queries and keys
    of a sequence; packed sequences have `offsets` instead, and `extents[0]` is their number. `band` is that of
    `band_of`. Query i of M sees the keys from i + N - M - left to i + N - M + right, by `window` (left, right). Scores
    times `scale` are exponents of 2; where they are capped, `scale` is multiplied by the tanh of `cap` times the score.
    e4m3 operands have V as (batch, head, column, key), and `scale_q`, `scale_k` and `scale_v` of each (batch, head).
    """
    config, values = traits.config, (traits.config.keys, traits.value_head)
    return pd.Parameters.of(
        "Attention",
        q=traits.map(config.queries, traits.head),
        k=traits.map(config.keys, traits.head),
        v=traits.map(*(values[::-1] if traits.is_scaled else values)),
        **{f"scale_{name}": ptr[f32] for name in "qkv" if traits.is_scaled},
        out=ptr[traits.out_type],
        lse=ptr[f32],
        out_strides=s64[3],
        lse_strides=s64[2],
        extents=s32[2],
        group=u32,
        band=u32,
        window=s32[2],
        scale=f32,
        **{"cap": f32} if traits.is_capped else {},
        **{"q_offsets": ptr[pd.s32], "k_offsets": ptr[pd.s32]} if traits.is_packed else {},
    )
