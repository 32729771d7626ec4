"""Parts of attention decoding: traits, parameters, the tile of a block, and the launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import ptxdsl as pd
from ptxdsl import arrays, driver, f32, ptr, s32, u32
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument
from ptxdsl.kernels.flash.call import planned
from ptxdsl.kernels.flash.problem import (
    LOG2_E,
    allocated,
    check_dims,
    check_heads,
    check_strides,
    check_types,
    output_of,
    scale_of,
    shapes_of,
)
from ptxdsl.kernels.flash.traits import ROWS, AttentionConfig, AttentionTraits
from ptxdsl.types import Type, s64

CONFIGS = {64: AttentionConfig(ROWS, 128, 4), 128: AttentionConfig(ROWS, 128, 3), 256: AttentionConfig(ROWS, 64, 3)}
PAGES = (16, 32, 64, 128, 256)  # rows of a page
PROCESSORS = 132  # multiprocessors that the emulator assumes, those of an H200
COMBINING = 128  # threads of a block of the kernel that combines splits
PAGED = "k_pages is (P, page, Hkv, D) and v_pages (P, page, Hkv, Dv)"


@dataclass(frozen=True)
class DecodeTraits(AttentionTraits):
    """The compile-time properties of a decoding kernel; `page` is the number of rows of a page."""

    config: AttentionConfig = CONFIGS[128]
    page: int = 64

    @property
    def consumers(self) -> int:
        return 1

    @property
    def box_rows(self) -> int:
        """The rows that one TMA load brings: a page, or a part of it."""
        return min(self.page, self.config.keys)

    def pages_map(self, columns: int) -> pd.TensorMap:
        """Return the tensor map of pages (page, row, head, column)."""
        return pd.TensorMap.tiled(self.dtype, (1, self.box_rows, 1, columns), swizzle=128)


@lru_cache(maxsize=256)
def decode_parameters(traits: DecodeTraits) -> Any:
    """Return the parameters of `decode_kernel`.

    Its outputs are `partial` (B, H, splits, Dv) and `lse` (B, H, splits).
    """
    return pd.Parameters.of(
        "AttentionDecode",
        q=traits.map(ROWS, traits.head),
        k=traits.pages_map(traits.head),
        v=traits.pages_map(traits.value_head),
        page_table=ptr[s32],
        lengths=ptr[s32],
        partial=ptr[f32],
        lse=ptr[f32],
        pages=u32,
        splits=u32,
        group=u32,
        scale=f32,
    )


class DecodeTile:
    """The part of a sequence that a block visits: tiles of keys from `begin` to `end`, for some heads of a group."""

    def __init__(self, p: Any, traits: DecodeTraits) -> None:
        self.traits, self.kv_head, self.batch = traits, pd.ctaid.y, pd.ctaid.z
        self.row_tile, self.split = pd.ctaid.x // p.splits, pd.ctaid.x % p.splits
        self.first = self.row_tile * ROWS
        self.length = p.lengths[self.batch]
        keys = traits.config.keys
        tiles = (self.length + (keys - 1)) // keys
        each = (tiles + p.splits.to(s32) - 1) // p.splits.to(s32)
        self.begin = pd.min(self.split.to(s32) * each, tiles)
        self.end = pd.min(self.begin + each, tiles)
        self.whole_begin, self.whole_end = 0, pd.max(pd.min(self.length // keys, self.end), self.begin)

    @property
    def count(self) -> Any:
        """The number of tiles of keys."""
        return self.end - self.begin

    def limits(self, row: Any, number: Any) -> tuple[Any, Any]:
        """Return the last column of a tile of keys that exists, relative to the thread's first column."""
        return None, self.length - 1 - number * self.traits.config.keys - row.first_column.to(s32)


@lru_cache(maxsize=16)
def combine_parameters(dtype: Type) -> Any:
    """Return the parameters of `combine_kernel`: the parts of the output with their log-sum-exps, and the output."""
    return pd.Parameters.of(
        "AttentionCombine",
        partial=ptr[f32],
        sums=ptr[f32],
        out=ptr[dtype],
        lse=ptr[f32],
        splits=u32,
        heads=u32,
        out_strides=s64[2],
    )


class DecodeCall(CheckedCall):
    """A call of attention_decode()."""

    name = "attention_decode"

    def __init__(self, call: PublicCall) -> None:
        out, *operands = call.arrays
        *_, scale = call.options
        self.kernels = call.kernels
        self.q, self.k, self.v, self.table, self.lengths = _checked(*operands)
        (batch, heads, head), columns = self.q.array.shape, self.v.array.shape[3]
        self.scale = scale_of(scale, head)
        self.output = output_of((self.q, self.k, self.v), (batch, heads, columns), out)
        self.lse = allocated("lse", None, self.q, (batch, heads), f32)
        self.out = self.output.owner, self.lse.owner
        self.is_empty = not self.output.array.size

    def plan(self, config: Any, copied: str = "") -> LaunchPlan:
        """Return the launches: of the parts, and of the kernel that combines them."""
        q, k, v = self.q, self.k, self.v
        (batch, heads, head), (_, page, kv_heads, columns) = q.array.shape, v.array.shape
        traits = DecodeTraits(q.type, head, columns, CONFIGS[head], page=page)
        group, pages = heads // kv_heads, self.table.array.shape[1]
        row_tiles = -(-group // ROWS)
        blocks, tiles = row_tiles * kv_heads * batch, -(-pages * page // traits.config.keys)
        splits = max(1, min(2 * multiprocessors(q.array.device) // blocks, tiles))  # two blocks a multiprocessor
        partial = allocated("partial", None, q, (batch, heads, splits, columns), f32)
        sums = allocated("sums", None, q, (batch, heads, splits), f32)
        fields = dict(
            q=q, k=k, v=v, page_table=self.table, lengths=self.lengths, partial=partial, lse=sums, pages=pages,
            splits=splits, group=group, scale=self.scale * LOG2_E,
        )  # fmt: skip
        views = {"q": q.owner.reshape(batch, kv_heads, group, head)}
        grid = row_tiles * splits, kv_heads, batch
        decode_kernel, combine_kernel = self.kernels
        parts = planned(
            decode_kernel, grid, traits.threads, decode_parameters(traits), {"traits": traits}, fields, views
        )
        return combining(combine_kernel, parts, (partial, sums), self.output, self.lse)


def combining(
    kernel: Any,
    parts: LaunchPlan,
    written: tuple[ArrayArgument, ArrayArgument],
    output: ArrayArgument,
    lse: ArrayArgument,
) -> LaunchPlan:
    """Return the launch that combines parts of the output and their log-sum-exps, after those that write them."""
    partial, sums = written
    batch, heads, splits, columns = partial.array.shape
    fields = dict(
        partial=partial, sums=sums, out=output, lse=lse, splits=splits, heads=heads,
        out_strides=output.array.strides[:2],
    )  # fmt: skip
    definition, constants = combine_parameters(output.type), {"dtype": output.type, "columns": columns}
    return planned(kernel, (batch * heads,), COMBINING, definition, constants, fields, before=parts)


def multiprocessors(device: int | None) -> int:
    """Return the multiprocessors of a GPU, or those that the emulator assumes."""
    return PROCESSORS if device == arrays.HOST else driver.device(device or 0).multiprocessors


def _checked(q: object, k: object, v: object, table: object, lengths: object) -> list[ArrayArgument]:
    """Check the operands. Raises LaunchError for arrays that do not fit each other or the kernel."""
    of_q, of_k, of_v = operands = check_pages(
        (("q", q, "it is (B, H, D)"), ("k_pages", k, PAGED), ("v_pages", v, PAGED))
    )
    (_, heads, head), (*pages, kv_heads, columns), shown = of_q.array.shape, of_k.array.shape, shapes_of(operands)
    if [*pages, kv_heads] != [*of_v.array.shape[:3]] or head != columns:
        raise LaunchError(shown, help=PAGED)
    check_heads(shown, heads, kv_heads)
    check_dims(shown, (head, of_v.array.shape[3]), [(d, d) for d in CONFIGS])
    return [*operands, *check_sequences(table, lengths, operands)]


def check_pages(named: Sequence[tuple[str, object, str]]) -> list[ArrayArgument]:
    """Check the types of the queries and of the pages of keys, each given as (name, array, rule), and that TMA takes
    them.
    """
    operands = [
        array_argument(
            name, owner, 3 if name == "q" else 4, rule, "reshape it, or permute its axes", "float16 or bfloat16"
        )
        for name, owner, rule in named
    ]
    check_types(operands)
    for operand in operands:
        check_strides(operand)
    return operands


def check_sequences(table: object, lengths: object, operands: Sequence[ArrayArgument]) -> list[ArrayArgument]:
    """Check the rows of a page, the page table and the lengths; the values of lengths only in host memory."""
    batch, page = operands[0].array.shape[0], operands[1].array.shape[1]
    if page not in PAGES:
        raise LaunchError(
            f"{shapes_of(operands)}: pages of {page} rows", help=f"a page has {', '.join(map(str, PAGES))} rows"
        )
    of_table = array_argument("page_table", table, 2, "it is (B, pages)", "pass the pages of each sequence", "int32")
    of_lengths = array_argument("lengths", lengths, 1, "it is (B,)", "pass the keys of each sequence", "int32")
    for argument in (of_table, of_lengths):
        if argument.type is not s32 or argument.array.shape[0] != batch or not argument.array.contiguous:
            raise LaunchError(
                f"`{argument.name}` is {argument.array}; `q` has {batch} sequences",
                help=f"pass a contiguous int32 array with {batch} rows",
            )
    rows = of_table.array.shape[1] * page
    values = np.asarray(of_lengths.owner) if of_lengths.array.device == arrays.HOST else np.zeros(0, np.int32)
    for number in np.flatnonzero((values < 0) | (values > rows))[:1]:
        raise LaunchError(
            f"`lengths[{number}]` is {values[number]}; the pages of a sequence have {rows} rows",
            help=f"pass lengths of 0 to {rows}, or a page table with more columns",
        )
    return [of_table, of_lengths]
