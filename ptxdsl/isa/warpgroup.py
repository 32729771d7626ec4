"""Warpgroup products as matrices: operands in shared memory addressed by descriptors, accumulators in registers.

The accumulators of a warpgroup are 64 x N. Warp w holds rows 16w to 16w + 15; its lane 4g + t holds rows g and g + 8 of
these, and columns 2t and 2t + 1 of every 8 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Self

import numpy as np

from ..layout.descriptors import (
    ADDRESS_MASK,
    BASE_AT,
    BASE_FIELD,
    CHUNK_BYTES,
    MODE_AT,
    MODES,
    OPERAND_K_BYTES,
    Fields,
    chunk_offset,
    decode,
    swizzled,
)
from ..layout.mma_shapes import WGMMA_M
from ..types import Type, f16, s32
from .matrix import added, matrix_a, shape, values
from .numerics import canonical
from .opcode import Opcode
from .sparse import sparse_product
from .step import Step
from .tensor_core import OF_WGMMA

WARPS = 4
WARP_ROWS = WGMMA_M // WARPS
WARP = 32
CHUNK_ELEMENTS = 8  # of 16 bits
START = np.uint64(14)  # bits of the start address in a descriptor


@dataclass(frozen=True, eq=False, slots=True)
class Factors:
    """The operands of an instruction other than registers in flight.

    `chunks` are the chunk addresses of A, unless it is in registers, and of B, (n, warps, 1); the first `split` belong
    to A. `accumulates` (warps,) is true where the product is added to the accumulators. `columns` (warps, 16, K / 2)
    are the positions along K of the elements of a sparse A, None for a dense one. `described` are the descriptors, as
    in `LateInputs`. The other fields are constants of the instruction.
    """

    chunks: np.ndarray
    split: int
    accumulates: np.ndarray
    negated: bool
    transposed: tuple[bool, bool]
    described: tuple[tuple[str, int, np.ndarray], ...]
    columns: np.ndarray | None = None

    @property
    def warp_chunks(self) -> int:
        """The number of chunks that belong to the 16 rows of one warp, if A is K-major."""
        return 0 if self.transposed[0] else self.split

    def part(self, which: np.ndarray) -> Self:
        """Select some of the warps."""
        columns = None if self.columns is None else self.columns[which]
        described = tuple((name, count, values[which]) for name, count, values in self.described)
        chunks, accumulates = self.chunks[:, which], self.accumulates[which]
        return replace(self, chunks=chunks, accumulates=accumulates, described=described, columns=columns)


@cache
def extents(i: Opcode) -> tuple[int, int]:
    """Return (N, K) of one instruction."""
    n, _, k = i.shape.partition("n")[2].partition("k")
    return int(n), int(k)


def to_matrix(i: Opcode, held: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return accumulator registers (count, warps, 32) as matrices (warpgroups, 16 * warps of each, N).

    `order` (warpgroups, warps of each) gives the index of each warp in `held`.
    """
    eights = extents(i)[0] // 8
    if i.dtype is f16:
        pairs = np.ascontiguousarray(held).view(np.float16).reshape(eights, 2, -1, 8, 4, 2)
        rows = pairs.transpose(2, 1, 3, 0, 4, 5)
    else:
        rows = held.reshape(eights, 2, 2, -1, 8, 4).transpose(3, 1, 4, 0, 5, 2)
    return rows.reshape(-1, WARP_ROWS, eights * 8)[order].reshape(len(order), -1, eights * 8)


def to_registers(i: Opcode, sums: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Invert `to_matrix`."""
    eights, warps = sums.shape[-1] // 8, order.size
    by_warp = np.empty((warps, WARP_ROWS, sums.shape[-1]), sums.dtype)
    by_warp[order.reshape(-1)] = sums.reshape(warps, WARP_ROWS, -1)
    rows = by_warp.reshape(warps, 2, 8, eights, 4, 2)
    if i.dtype is f16:
        pairs = np.ascontiguousarray(rows.transpose(3, 1, 0, 2, 4, 5))
        return pairs.view(np.uint32).reshape(eights * 2, warps, WARP)
    return np.ascontiguousarray(rows.transpose(3, 1, 5, 0, 2, 4)).reshape(eights * 4, warps, WARP)


@cache
def _chunks(leading: int, stride: int, span: int, rows: int, transposed: bool, depth: int) -> np.ndarray:
    """Return the byte offsets of an operand's chunks from its start, before swizzling: row by row, or k by k."""
    fields, count = Fields(0, leading, stride, span), rows * depth // CHUNK_BYTES
    if transposed:
        k, chunk = np.divmod(np.arange(count), rows // CHUNK_ELEMENTS)
        return np.asarray(chunk_offset(fields, k, chunk, True))
    row, chunk = np.divmod(np.arange(count), depth // CHUNK_BYTES)
    return np.asarray(chunk_offset(fields, row, chunk, False))


def chunk_addresses(descriptors: np.ndarray, rows: int, transposed: bool, depth: int = OPERAND_K_BYTES) -> np.ndarray:
    """Return the shared memory addresses (…, chunks) of the 16-byte chunks of operands of `rows` rows of M or N.

    `depth` is the bytes of a row along K.
    """
    kinds = descriptors >> START
    if (kinds == kinds.flat[0]).all():
        fields = decode(int(descriptors.flat[0]))
        starts = (descriptors & np.uint64((1 << 14) - 1)).astype(np.int64) << 4
        offsets = _chunks(fields.leading_bytes, fields.stride_bytes, fields.swizzle_bytes, rows, transposed, depth)
        chunks = swizzled(starts[..., np.newaxis] + offsets, fields.swizzle_bytes, fields.base_offset)
        return np.asarray(chunks & ADDRESS_MASK).astype(np.uint64)
    addresses = np.empty((*descriptors.shape, rows * depth // CHUNK_BYTES), np.uint64)
    for kind in np.unique(kinds):
        addresses[kinds == kind] = chunk_addresses(descriptors[kinds == kind], rows, transposed, depth)
    return addresses


def say_swizzle(descriptors: np.ndarray, span: int) -> bool:
    """True if all descriptors specify a swizzle of this span, in bytes, and no base offset."""
    return bool((descriptors >> np.uint64(BASE_AT) == MODES[span] << MODE_AT - BASE_AT).all())


def swizzles_of(descriptors: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """Group descriptors (warps,) by swizzle span in bytes and base offset."""
    says = descriptors >> np.uint64(BASE_AT)
    fields = {value: decode(value << BASE_AT) for value in np.unique(says).tolist()}
    return {(f.swizzle_bytes, f.base_offset): says == value for value, f in fields.items()}


def mode_text(span: int) -> str:
    """Return the descriptor bits of a swizzle, for a message."""
    return f"bits {MODE_AT} and {MODE_AT + 1} of a descriptor are {MODES[span]}"


def base_text() -> str:
    """Return the descriptor bits of the base offset, for a message."""
    return f"bits {BASE_AT} to {BASE_AT + BASE_FIELD.bit_length() - 1} of the descriptor"


def chunks_of(
    order: np.ndarray, descriptors: np.ndarray, rows: int, transposed: bool, depth: int = OPERAND_K_BYTES
) -> np.ndarray:
    """Return the chunk addresses of an operand, (chunks of each warp, warps, 1); the warps of a warpgroup share them.

    `descriptors` (warps,) are equal in all warps of a warpgroup.
    """
    addresses = chunk_addresses(descriptors[order[:, 0]], rows, transposed, depth)
    by_warp = np.empty((addresses.shape[1] // order.shape[1], order.size), np.uint64)
    by_warp[:, order.reshape(-1)] = addresses.reshape(order.size, -1).T
    return by_warp[..., np.newaxis]


def _octets(order: np.ndarray, chunks: Sequence[np.ndarray]) -> np.ndarray:
    """Return the data read at the `chunks_of` operands, as (products, warpgroups, bytes)."""
    by_warp = np.stack(chunks)[:, :, order.reshape(-1), 0].transpose(0, 2, 1, 3)
    return np.ascontiguousarray(by_warp).reshape(len(chunks), len(order), -1)


def operands(order: np.ndarray, chunks: Sequence[np.ndarray], rows: int, type: Type, transposed: bool) -> np.ndarray:
    """Return operands of products as f64 matrices (products, warpgroups, rows, K), from the data read for each."""
    octets = _octets(order, chunks)
    shape = octets.shape[:2]
    if transposed:
        return values(octets.reshape(*shape, -1, rows * 2), type).transpose(0, 1, 3, 2)
    return values(octets.reshape(*shape, rows, -1), type).reshape(*shape, rows, -1)


def factor_a(m: Step, i: Opcode, order: np.ndarray, chunks: Sequence[np.ndarray], transposed: bool) -> np.ndarray:
    """Return A of consecutive products from shared memory: (products, warpgroups, rows, K)."""
    whole = operands(order, chunks, WGMMA_M, i.atype, transposed)
    if order.shape[1] == WARPS:
        return whole
    ranks = m.special("%warpid").reshape(m.shape)[order[:, 0], 0] % WARPS
    by_warp = whole.reshape(len(chunks), len(order), WARPS, WARP_ROWS, -1)
    return by_warp[:, np.arange(len(order)), ranks]


def from_registers(i: Opcode, order: np.ndarray, held: Sequence[np.ndarray]) -> np.ndarray:
    """Return A of consecutive products from registers; each product has a fragment (4, warps, 32)."""
    k = extents(i)[1] // (2 if is_sparse(i) else 1)
    fragments = [matrix_a(a[:, np.newaxis], shape(f"m{WARP_ROWS}n8k{k}", i.atype), i.atype) for a in held]
    return np.stack([a[order].reshape(len(order), -1, k) for a in fragments])


def is_sparse(i: Opcode) -> bool:
    """True if A is sparse and described by metadata."""
    return ".sp." in i.text


def multiply_add(
    m: Step,
    i: Opcode,
    order: np.ndarray,
    sums: np.ndarray | None,
    factors: Sequence[Factors],
    held: Sequence[np.ndarray],
    chunks: Sequence[np.ndarray],
) -> np.ndarray:
    """Return the accumulators after consecutive products of the same kind on the same accumulators; None means zeros.

    `held` are the fragments of A (4, warps, 32) for products with A in registers; `chunks` are the data read from
    shared memory for each product, (n, warps, 1, 16) bytes.
    """
    split, turned = factors[0].split, factors[0].transposed
    a = factor_a(m, i, order, [c[:split] for c in chunks], turned[0]) if split else from_registers(i, order, held)
    b = operands(order, [c[split:] for c in chunks], extents(i)[0], i.btype, turned[1])
    dtype = i.dtype.dtype
    add_up = partial(added, i, OF_WGMMA.get(i.atype) if m.numerics == "h200" else None)
    total = np.zeros((*a.shape[1:3], b.shape[2]), dtype) if sums is None else sums
    for number, each in enumerate(factors):
        if not each.accumulates.all():
            total = np.where(each.accumulates[order[:, 0]][:, np.newaxis, np.newaxis], total, dtype.type(0))
        left = -a[number] if each.negated else a[number]
        if each.columns is None:
            total = add_up(left, b[number], total)
        else:
            total = sparse_product(left, each.columns[order].reshape(left.shape), b[number], total, add_up)
    return total if i.dtype is s32 else canonical(total)
