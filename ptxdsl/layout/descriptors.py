"""Shared-memory matrix descriptors of wgmma (PTX ISA, "Matrix Descriptor Format").

A descriptor encodes the shared-memory layout of one instruction's operand in 64 bits. The unit is a chunk of 16
contiguous bytes. Eight rows of one chunk, or of the 32, 64 or 128 bytes that a swizzle permutes, form a swizzle atom. A
K-major operand has its chunks along K, an MN-major one (transposed, 16-bit types only) along M or N.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ptxdsl.layout.index import divide
from ptxdsl.layout.number import Computed, Number
from ptxdsl.layout.swizzle import Swizzle

CHUNK_BYTES = 16
CHUNK_BITS = 4  # low bits of an address, dropped when chunks are counted
ATOM_ROWS = 8
ADDRESS_MASK = (1 << 18) - 1  # bits of an address or offset that a descriptor holds
OPERAND_K_BYTES = 32  # bytes of K that one instruction reads from each row
MODES = {0: 0, 128: 1, 64: 2, 32: 3}
"""The two highest bits of a descriptor, by swizzle width in bytes; 0 for no swizzle."""
SPANS = {mode: span for span, mode in MODES.items()}
FIELD = (1 << 14) - 1
LEADING_AT, STRIDE_AT, BASE_AT, MODE_AT = 16, 32, 49, 62
BASE_FIELD = 7


class Fields(NamedTuple):
    """The fields of a descriptor: start address, leading and stride byte offsets, swizzle width and base offset.

    K-major: `stride_bytes` is the offset between groups of 8 rows; `leading_bytes` is the offset between chunks and is
    used without a swizzle only. MN-major with a swizzle: `leading_bytes` is the offset between swizzle atoms along M or
    N, and `stride_bytes` the offset between groups of 8 k. MN-major without a swizzle: the two are exchanged.
    """

    start: Computed
    leading_bytes: int
    stride_bytes: int
    swizzle_bytes: int
    base_offset: int = 0


def swizzle_of(span: int) -> Swizzle:
    """Return the swizzle on byte addresses for rows of `span` bytes: 0, 32, 64 or 128."""
    return Swizzle(max(span // CHUNK_BYTES, 1).bit_length() - 1, CHUNK_BITS, 3)


def element_swizzle(span: int, bits: int) -> Swizzle:
    """Return the swizzle of a width in bytes, on the offsets of elements of `bits` bits."""
    swizzle = swizzle_of(span)
    return replace(swizzle, base=swizzle.base - (bits // 8).bit_length() + 1)


def pattern_bytes(span: int) -> int:
    """Return the alignment in bytes that a tile needs so that its swizzle pattern starts at the tile's address."""
    return max(span * ATOM_ROWS, CHUNK_BYTES)


def constant_bits(leading_bytes: int, stride_bytes: int, span: int) -> int:
    """Return the bits of a descriptor without its start address."""
    distances = leading_bytes // CHUNK_BYTES << LEADING_AT | stride_bytes // CHUNK_BYTES << STRIDE_AT
    return distances | MODES[span] << MODE_AT


def start_bits(address: Number) -> Computed:
    """Return the start-address bits of a descriptor; a traced or array address has 64 bits."""
    return divide(address & ADDRESS_MASK, CHUNK_BYTES)


def encode(fields: Fields) -> Computed:
    """Return the 64-bit descriptor, or an array of descriptors for an array of start addresses."""
    constant = constant_bits(fields.leading_bytes, fields.stride_bytes, fields.swizzle_bytes)
    return start_bits(fields.start) | constant | fields.base_offset << BASE_AT


def decode(descriptor: int) -> Fields:
    """Return the fields of a 64-bit descriptor."""
    return Fields(
        (descriptor & FIELD) * CHUNK_BYTES,
        (descriptor >> LEADING_AT & FIELD) * CHUNK_BYTES,
        (descriptor >> STRIDE_AT & FIELD) * CHUNK_BYTES,
        SPANS[descriptor >> MODE_AT & 3],
        descriptor >> BASE_AT & BASE_FIELD,
    )


def chunk_offset(fields: Fields, row: Number, chunk: Number, transposed: bool) -> Computed:
    """Return the byte offset, before the swizzle, of a chunk of one instruction's operand.

    K-major: chunk `chunk` (16 bytes of K) of row `row` of M or N. Chunks past the swizzle width, as in a sparse
    product, are `leading_bytes` further on. Transposed: chunk `chunk` (eight elements of M or N) of row `row` of K.
    """
    span, leading, stride = fields.swizzle_bytes, fields.leading_bytes, fields.stride_bytes
    inner, outer = row % ATOM_ROWS, row // ATOM_ROWS
    if not span:
        by_row, by_chunk = (leading, stride) if transposed else (stride, leading)
        return inner * CHUNK_BYTES + outer * by_row + chunk * by_chunk
    chunks = span // CHUNK_BYTES
    return inner * span + outer * stride + chunk % chunks * CHUNK_BYTES + chunk // chunks * leading


def swizzled(address: Number, span: int, base_offset: int = 0) -> Computed:
    """Return the swizzled address of a chunk; `address` is an int or an array."""
    swizzle = swizzle_of(span)
    rows = address - (base_offset << CHUNK_BITS + 3)
    return address ^ (rows & swizzle.source) >> swizzle.shift if swizzle.bits else address


def usual_byte(row: int, k: int, rows: int, bits: int) -> int:
    """Return the byte offset of an element in a K-major tile of `rows` rows with the 128-byte swizzle."""
    span = max(SPANS.values())
    column, inside = divmod(k * bits // 8, span)
    byte = column * rows * span + row * span + inside
    return int(swizzled(byte - byte % CHUNK_BYTES, span)) + byte % CHUNK_BYTES


def element_address(fields: Fields, row: int, k: int, bits: int, transposed: bool) -> int:
    """Return the byte address of element (row of M or N, k) of one instruction's operand; `bits` is 8, 16 or 32."""
    line, along = (k, row) if transposed else (row, k)
    chunk, inside = divmod(along * bits // 8, CHUNK_BYTES)
    address = fields.start + chunk_offset(fields, line, chunk, transposed)
    return int(swizzled(address, fields.swizzle_bytes, fields.base_offset)) + inside
