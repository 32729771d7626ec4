"""The shared-memory matrix descriptors of wgmma (PTX ISA, "Matrix Descriptor Format").

A descriptor says in 64 bits how an operand of one instruction lies in shared memory. Chunks of 16 bytes are what
memory keeps together; eight rows of chunks, or of the 32, 64 or 128 bytes that a swizzle permutes, make an atom. A
K-major operand has its chunks along K, an MN-major one (transposed, 16-bit types only) along M or N.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxdsl.layout.index import divide
from ptxdsl.layout.number import Computed, Number
from ptxdsl.layout.swizzle import Swizzle

CHUNK_BYTES = 16
CHUNK_BITS = 4  # of an address, below those that count chunks
ATOM_ROWS = 8
ADDRESS_MASK = (1 << 18) - 1  # the bits of an address, or of a distance, that a descriptor keeps
OPERAND_K_BYTES = 32  # of each row that one instruction reads
MODES = {0: 0, 128: 1, 64: 2, 32: 3}
"""The two highest bits, by the bytes of a row that the swizzle permutes; 0 for none."""
SPANS = {mode: span for span, mode in MODES.items()}
FIELD = (1 << 14) - 1
LEADING_AT, STRIDE_AT, BASE_AT, MODE_AT = 16, 32, 49, 62
BASE_FIELD = 7


class Fields(NamedTuple):
    """What a descriptor says: its start in bytes, two distances in bytes, where the swizzle's pattern begins, its span.

    K-major: `stride_bytes` from 8 rows to the next 8; `leading_bytes` from chunk to chunk, without a swizzle only.
    MN-major: with a swizzle `leading_bytes` from one span of M or N to the next and `stride_bytes` from 8 k to the next
    8; without one the other way round.
    """

    start: Computed
    leading_bytes: int
    stride_bytes: int
    swizzle_bytes: int
    base_offset: int = 0


def swizzle_of(span: int) -> Swizzle:
    """The swizzle on byte addresses whose rows have `span` bytes: 0, 32, 64 or 128."""
    return Swizzle(max(span // CHUNK_BYTES, 1).bit_length() - 1, CHUNK_BITS, 3)


def pattern_bytes(span: int) -> int:
    """What a tile's address must be a multiple of, so that its swizzle begins there."""
    return max(span * ATOM_ROWS, CHUNK_BYTES)


def constant_bits(leading_bytes: int, stride_bytes: int, span: int) -> int:
    """All of a descriptor but its start."""
    distances = leading_bytes // CHUNK_BYTES << LEADING_AT | stride_bytes // CHUNK_BYTES << STRIDE_AT
    return distances | MODES[span] << MODE_AT


def start_bits(address: Number) -> Computed:
    """The start of a descriptor: an address in shared memory, of 64 bits where it is traced or an array."""
    return divide(address & ADDRESS_MASK, CHUNK_BYTES)


def encode(fields: Fields) -> Computed:
    """The 64 bits; of an array of starts, an array."""
    constant = constant_bits(fields.leading_bytes, fields.stride_bytes, fields.swizzle_bytes)
    return start_bits(fields.start) | constant | fields.base_offset << BASE_AT


def decode(descriptor: int) -> Fields:
    """What the 64 bits of a descriptor say."""
    return Fields(
        (descriptor & FIELD) * CHUNK_BYTES,
        (descriptor >> LEADING_AT & FIELD) * CHUNK_BYTES,
        (descriptor >> STRIDE_AT & FIELD) * CHUNK_BYTES,
        SPANS[descriptor >> MODE_AT & 3],
        descriptor >> BASE_AT & BASE_FIELD,
    )


def chunk_offset(fields: Fields, row: Number, chunk: Number, transposed: bool) -> Computed:
    """Bytes from the start, before the swizzle, of a chunk of one instruction's operand.

    K-major: chunk number `chunk`, of 16 bytes of K, of a row of M or N; what a swizzle's span does not hold, as of a
    sparse product, is `leading` bytes on. Transposed: chunk number `chunk`, of eight elements of M or N, of row `row`
    of K.
    """
    span, leading, stride = fields.swizzle_bytes, fields.leading_bytes, fields.stride_bytes
    inner, outer = row % ATOM_ROWS, row // ATOM_ROWS
    if not span:
        by_row, by_chunk = (leading, stride) if transposed else (stride, leading)
        return inner * CHUNK_BYTES + outer * by_row + chunk * by_chunk
    chunks = span // CHUNK_BYTES
    return inner * span + outer * stride + chunk % chunks * CHUNK_BYTES + chunk // chunks * leading


def swizzled(address: Number, span: int, base_offset: int = 0) -> Computed:
    """Where a chunk lies whose place before the swizzle is `address`: an int, or an array."""
    swizzle = swizzle_of(span)
    rows = address - (base_offset << CHUNK_BITS + 3)
    return address ^ (rows & swizzle.source) >> swizzle.shift if swizzle.bits else address


def usual_byte(row: int, k: int, rows: int, bits: int) -> int:
    """The byte of an element in a K-major tile of `rows` rows with the 128-byte swizzle, columns of 128 bytes."""
    span = max(SPANS.values())
    column, inside = divmod(k * bits // 8, span)
    byte = column * rows * span + row * span + inside
    return int(swizzled(byte - byte % CHUNK_BYTES, span)) + byte % CHUNK_BYTES


def element_address(fields: Fields, row: int, k: int, bits: int, transposed: bool) -> int:
    """The byte address of element (row of M or N, k) of one instruction's operand, of `bits` bits: 8, 16 or 32."""
    line, along = (k, row) if transposed else (row, k)
    chunk, inside = divmod(along * bits // 8, CHUNK_BYTES)
    address = fields.start + chunk_offset(fields, line, chunk, transposed)
    return int(swizzled(address, fields.swizzle_bytes, fields.base_offset)) + inside
