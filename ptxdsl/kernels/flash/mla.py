"""Parts of MLA decoding: traits, parameters, the consumers of a tile of keys, and the launches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import f32, ptr, s32, u32
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import ArrayArgument
from ptxdsl.kernels.flash.call import planned
from ptxdsl.kernels.flash.decode import (
    DecodeTraits,
    check_pages,
    check_sequences,
    combining,
    multiprocessors,
)
from ptxdsl.kernels.flash.problem import LOG2_E, allocated, output_of, scale_of, shapes_of
from ptxdsl.kernels.flash.traits import ROWS, AttentionConfig
from ptxdsl.types import s64

HEAD, VALUES, BOX = 576, 512, 64  # columns of q and of the cache, those that are values too, and those of a TMA box
HALF = VALUES // 2  # columns of the output that a consumer warpgroup computes
KEYS = 64  # rows of the cache in a tile
PIECE = KEYS * BOX  # elements of one TMA box of a tile
PIECE_BYTES = 2 * PIECE
PIECES, VALUE_PIECES = HEAD // BOX, HALF // BOX  # boxes of a tile, and of the values of one consumer warpgroup
ROTARY = PIECES - 1  # the piece that holds the rotary columns, later the weights
OWNERS = 2  # consumer warpgroups; tile i of a block belongs to warpgroup i % 2
CONFIG = AttentionConfig(ROWS, KEYS, OWNERS)
HEADS = range(16, 129)
PROLOGUE_TILES = 3  # the tiles of keys that take as long as the beginning and end of a block, on an H200
PAGED = "q is (B, H, 576) and kv_pages (P, page, 1, 576)"


@dataclass(frozen=True)
class MlaTraits(DecodeTraits):
    """The compile-time properties of an MLA kernel; `is_split` if several blocks share the keys of a sequence."""

    head: int = HEAD
    value_head: int = VALUES
    config: AttentionConfig = CONFIG
    is_split: bool = False

    @property
    def consumers(self) -> int:
        return OWNERS

    @property
    def output_atom(self) -> str:
        return self.wgmma(HALF)


@lru_cache(maxsize=256)
def mla_parameters(traits: MlaTraits) -> Any:
    """Return the parameters of `mla_kernel`.

    The outputs of a split kernel are `partial` (B, H, splits, 512) and `lse` (B, H, splits), otherwise `out` and `lse`
    (B, H).
    """
    outputs: dict[str, Any] = {"partial": ptr[f32]} if traits.is_split else {"out": ptr[traits.dtype]}
    return pd.Parameters.of(
        "AttentionMla",
        q=traits.map(ROWS, HEAD),
        kv=traits.pages_map(BOX),
        page_table=ptr[s32],
        lengths=ptr[s32],
        **outputs,
        out_strides=s64[2],
        lse=ptr[f32],
        pages=u32,
        splits=u32,
        group=u32,
        scale=f32,
    )


class MlaCall(CheckedCall):
    """A call of attention_decode_mla()."""

    name = "attention_decode_mla"

    def __init__(self, call: PublicCall) -> None:
        out, *operands = call.arrays
        *_, scale = call.options
        self.kernels = call.kernels
        self.q, self.kv, self.table, self.lengths = _checked(*operands)
        batch, heads, _ = self.q.array.shape
        self.scale = scale_of(scale, HEAD)
        self.output = output_of((self.q, self.kv), (batch, heads, VALUES), out)
        self.lse = allocated("lse", None, self.q, (batch, heads), f32)
        self.out = self.output.owner, self.lse.owner
        self.is_empty = not self.output.array.size

    def plan(self, config: Any, copied: str = "") -> LaunchPlan:
        """Return the launch, or those of the parts and of the kernel that combines them."""
        q, kv, pages = self.q, self.kv, self.table.array.shape[1]
        (batch, heads, _), page = q.array.shape, kv.array.shape[1]
        row_tiles = -(-heads // ROWS)
        splits = split_count(row_tiles * batch, -(-pages * page // KEYS), multiprocessors(q.array.device))
        traits = MlaTraits(q.type, page=page, is_split=splits > 1)
        partial, sums = self.output, self.lse
        if traits.is_split:
            partial = allocated("partial", None, q, (batch, heads, splits, VALUES), f32)
            sums = allocated("sums", None, q, (batch, heads, splits), f32)
        fields = {
            "q": q, "kv": kv, "page_table": self.table, "lengths": self.lengths,
            "partial" if traits.is_split else "out": partial, "out_strides": self.output.array.strides[:2],
            "lse": sums, "pages": pages, "splits": splits, "group": heads, "scale": self.scale * LOG2_E,
        }  # fmt: skip
        views = {"q": q.owner.reshape(batch, 1, heads, HEAD)}
        grid, (mla_kernel, combine_kernel) = (row_tiles * splits, 1, batch), self.kernels
        plan = planned(mla_kernel, grid, traits.threads, mla_parameters(traits), {"traits": traits}, fields, views)
        if not traits.is_split:
            return plan
        return combining(combine_kernel, plan, (partial, sums), self.output, self.lse)


def split_count(blocks: int, tiles: int, processors: int) -> int:
    """Return the number of blocks that share the keys of a sequence.

    A block fills a multiprocessor. The time of a launch is its waves times the tiles of a block, with those that its
    beginning and end take.
    """

    def duration(splits: int) -> int:
        return -(-blocks * splits // processors) * (-(-tiles // splits) + PROLOGUE_TILES)

    return min(range(1, max(1, min(tiles, 2 * processors // blocks)) + 1), key=duration)


def _checked(q: object, kv: object, table: object, lengths: object) -> list[ArrayArgument]:
    """Check the operands. Raises LaunchError for arrays that do not fit each other or the kernel."""
    of_q, of_kv = operands = check_pages((("q", q, "it is (B, H, 576)"), ("kv_pages", kv, "it is (P, page, 1, 576)")))
    (_, heads, head), (_, _, *rows), shown = of_q.array.shape, of_kv.array.shape, shapes_of(operands)
    if (head, *rows) != (HEAD, 1, HEAD):
        raise LaunchError(shown, help=f"{PAGED}: 512 latent columns, which are the values too, and 64 rotary ones")
    if heads not in HEADS:
        raise LaunchError(f"{shown}: {heads} query heads", help=f"H is {HEADS[0]} to {HEADS[-1]}")
    return [*operands, *check_sequences(table, lengths, operands)]
