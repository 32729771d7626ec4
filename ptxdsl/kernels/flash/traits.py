"""Traits of an attention kernel: what it is compiled for, the shapes of its tiles, and its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import f32, ptr, u32
from ptxdsl.types import Type, bf16, s32, s64

WARPGROUP, WARP = 128, 32
ROWS = 64  # rows of a warpgroup's tile
PRODUCER_REGISTERS = {2: 24, 3: 32}
CONSUMER_REGISTERS = {2: 240, 3: 160}  # a thread, by the number of consumer warpgroups


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


@dataclass(frozen=True)
class AttentionTraits:
    """The compile-time properties of an attention kernel.

    `head` and `value_head` are the columns of Q and K, and of V. `is_bounded` says whether keys before and after the
    window of a query are masked, `is_capped` whether scores go through tanh, and `is_packed` whether sequences are
    packed along the rows, with offsets.
    """

    dtype: Type = bf16
    head: int = 128
    value_head: int = 128
    config: AttentionConfig = CONFIGS[128, 128]
    is_bounded: tuple[bool, bool] = (False, False)
    is_capped: bool = False
    is_packed: bool = False

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
        return f"wgmma.m64n{self.config.keys}k16.f32.{self.dtype}"

    @property
    def output_atom(self) -> str:
        return f"wgmma.m64n{self.value_head}k16.f32.{self.dtype}.rs"

    def map(self, rows: int, columns: int) -> pd.TensorMap:
        """Return the tensor map of a (batch, head, row, column) array with tiles of rows x columns."""
        return pd.TensorMap.tiled(self.dtype, (1, 1, rows, columns), swizzle=64 if columns % 64 else 128)


@lru_cache(maxsize=256)
def parameters(traits: AttentionTraits) -> Any:
    """Return the parameters of `attention_kernel`.

    `out_strides` and `lse_strides` count elements between batches, heads and rows. `extents` are the queries and keys
    of a sequence; packed sequences have `offsets` instead, and `extents[0]` is their number. Query i of M sees the keys
    from i + N - M - left to i + N - M + right, by `window` (left, right). Scores times `scale` are exponents of 2;
    where they are capped, `scale` is multiplied by the tanh of `cap` times the score.
    """
    config = traits.config
    return pd.Parameters.of(
        "Attention",
        q=traits.map(config.queries, traits.head),
        k=traits.map(config.keys, traits.head),
        v=traits.map(config.keys, traits.value_head),
        out=ptr[traits.dtype],
        lse=ptr[f32],
        out_strides=s64[3],
        lse_strides=s64[2],
        extents=s32[2],
        group=u32,
        window=s32[2],
        scale=f32,
        **{"cap": f32} if traits.is_capped else {},
        **{"q_offsets": ptr[pd.s32], "k_offsets": ptr[pd.s32]} if traits.is_packed else {},
    )
