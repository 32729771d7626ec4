"""Descriptors of tcgen05 (PTX ISA, "Shared memory descriptor", "Instruction descriptor"), decoded and checked."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from ..layout.descriptors import ADDRESS_MASK, CHUNK_BYTES, Fields, chunk_offset, decode, swizzled
from ..layout.swizzle import Swizzle
from ..types import Type, bf16, e4m3, e5m2, f16, f32, s8, s32, tf32, u8
from .numerics import E2M1, E2M3, E3M2

K_BYTES, LONG_K_BYTES = 32, 48  # of one row of A, or one column of B; with K = 96
LONG_TARGET = "sm_103a"  # the only target with K = 96
START_MASK = np.uint64((1 << 14) - 1)
VERSION_AT, ABSOLUTE_AT, ZERO_AT, MODE_AT = 46, 52, 53, 61
SPANS = {0: 0, 1: 128, 2: 128, 4: 64, 6: 32}
"""The swizzle span in bytes, by the three highest bits of a shared memory descriptor."""
WIDE_ATOMS = 1  # the mode of the 128-byte swizzle of 32-byte atoms
WHOLE_SPAN = 2  # the mode of the 128-byte swizzle of 16-byte atoms
WIDE_SWIZZLE = Swizzle(2, 5, 2)
WIDE_ROWS = 4  # of a swizzle atom of 32-byte atoms
SATURATE, RESERVED = 1 << 3, 1 << 6 | 1 << 23 | 1 << 29
F16_INPUTS: dict[int, Type] = {0: f16, 1: bf16}
F8_INPUTS: dict[int, Type] = {0: e4m3, 1: e5m2, 3: E2M3, 4: E3M2, 5: E2M1}
NARROW = {E2M1: 4, E2M3: 6, E3M2: 6}
"""The bits of elements that are packed in shared memory, 16 in the first bytes of each 16, and K-major."""
SUMS: dict[str, dict[int, Type]] = {
    "kind::f16": {0: f16, 1: f32}, "kind::tf32": {1: f32}, "kind::f8f6f4": {0: f16, 1: f32}, "kind::i8": {2: s32},
}  # fmt: skip
INPUTS: dict[str, dict[int, Type]] = {
    "kind::f16": F16_INPUTS, "kind::tf32": {2: tf32}, "kind::f8f6f4": F8_INPUTS, "kind::i8": {0: u8, 1: s8},
}  # fmt: skip
"""The types of D, and of A and B, by their codes in the instruction descriptor."""
MOST_SELECTOR = {"kind::f16": 1, "kind::tf32": 1}
"""The largest sparsity selector: the metadata of an instruction fill one of two neighbouring columns."""


class InvalidDescriptor(Exception):
    """A descriptor with a field that its instruction does not take: the message, and how to fix it."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.message, self.help = message, help


class InstructionFields(NamedTuple):
    """The fields of an instruction descriptor. K is in elements."""

    kind: str
    ctas: int
    dtype: Type
    atype: Type
    btype: Type
    negated: bool
    transposed_a: bool
    transposed_b: bool
    m: int
    n: int
    satfinite: bool
    weight_stationary: bool = False
    sparse: bool = False
    selector: int = 0
    k_bytes: int = K_BYTES

    @property
    def k(self) -> int:
        return 8 * self.b_bytes // self.btype.bits

    @property
    def b_bytes(self) -> int:
        """The bytes of K of a column of B: a sparse A stores one of two elements."""
        return self.k_bytes << self.sparse


@cache
def instruction(
    kind: str, ctas: int, bits: int, weight_stationary: bool = False, sparse: bool = False
) -> InstructionFields:
    """Decode and check the instruction descriptor of a product without block scales. Raises InvalidDescriptor."""
    where = f"{kind} of cta_group::{ctas}"
    if bits >> 30 and not weight_stationary:
        raise InvalidDescriptor("bits 30 and 31 of the descriptor are not 0", "clear them, or use tcgen05.mma.ws")
    check_sparsity(bits, sparse)
    _check_selector(kind, bits & 3, sparse)
    if bits & RESERVED:
        raise InvalidDescriptor("a reserved bit of the descriptor (6, 23 or 29) is not 0", "clear bits 6, 23 and 29")
    dtype = coded(SUMS[kind], bits >> 4 & 3, "D", "bits 4 and 5", where)
    atype = coded(INPUTS[kind], bits >> 7 & 7, "A", "bits 7 to 9", where)
    btype = coded(INPUTS[kind], bits >> 10 & 7, "B", "bits 10 to 12", where)
    if kind == "kind::f16" and dtype is f16 and bf16 in (atype, btype):
        raise InvalidDescriptor("D is f16 and A or B is bf16; D of bf16 factors is f32", "write 1 to bits 4 and 5")
    negated = bool((bits >> 13 ^ bits >> 14) & 1)
    if kind == "kind::i8" and bits >> 13 & 3:
        raise InvalidDescriptor("A or B is negated; integers cannot be", "clear bits 13 and 14")
    if kind != "kind::i8" and bits & SATURATE:
        raise InvalidDescriptor(f"the descriptor saturates; {kind} does not", "clear bit 3")
    m, n = (bits >> 24 & 31) << 4, (bits >> 17 & 63) << 3
    if weight_stationary:
        _check_weight_stationary(kind, m, n, sparse)
    else:
        _check_shape(kind, ctas, m, n, bool(bits >> 16 & 1) and btype.bits == 8)
    transposed = bool(bits >> 15 & 1), bool(bits >> 16 & 1)
    check_majors(atype, btype, transposed)
    return InstructionFields(
        kind, ctas, dtype, atype, btype, negated, *transposed, m, n, bool(bits & SATURATE), weight_stationary, sparse,
        bits & 3,
    )  # fmt: skip


def check_sparsity(bits: int, sparse: bool) -> None:
    """Refuse a descriptor whose bit 2 does not match the instruction."""
    if bits >> 2 & 1 and not sparse:
        raise InvalidDescriptor("bit 2 of the descriptor, of sparse products, is 1", "clear it, or use tcgen05.mma.sp")
    if sparse and not bits >> 2 & 1:
        raise InvalidDescriptor("bit 2 of the descriptor, of sparse products, is 0", "set it, or use tcgen05.mma")


def _check_selector(kind: str, selector: int, sparse: bool) -> None:
    if selector and not sparse:
        raise InvalidDescriptor(
            "bits 0 and 1 of the descriptor, of sparse products, are not 0", "clear them, or use tcgen05.mma.sp"
        )
    most = MOST_SELECTOR.get(kind, 0)
    if selector > most:
        raise InvalidDescriptor(
            f"the sparsity selector, bits 0 and 1 of the descriptor, is {selector}",
            f"{kind} takes {'0 or 1' if most else '0'}",
        )


def check_majors(atype: Type, btype: Type, transposed: tuple[bool, bool]) -> None:
    """Refuse elements of 4 and 6 bits that are not K-major."""
    for matrix, type, is_transposed in zip("AB", (atype, btype), transposed, strict=True):
        if is_transposed and type in NARROW:
            major = "M-major" if matrix == "A" else "N-major"
            message = f"{matrix} of {type} is {major}; elements of 4 and 6 bits are K-major"
            raise InvalidDescriptor(message, f"clear bit {15 if matrix == 'A' else 16}")


def coded(types: dict[int, Type], code: int, matrix: str, bits: str, where: str) -> Type:
    """Return the type with a code, or refuse the code."""
    if code not in types:
        known = " or ".join(f"{value} ({type})" for value, type in types.items())
        raise InvalidDescriptor(f"the type of {matrix}, {bits} of the descriptor, is {code}", f"{where} takes {known}")
    return types[code]


def _check_shape(kind: str, ctas: int, m: int, n: int, narrow: bool) -> None:
    """Check M and N; with `narrow`, B is of 8 bits and N-major."""
    where, step = f"{kind} of cta_group::{ctas}", 8 * ctas
    rows = (64, 128) if ctas == 1 else (128, 256)
    if m not in rows:
        raise InvalidDescriptor(
            f"M, 16 times bits 24 to 28 of the descriptor, is {m}", f"{where} takes M = {rows[0]} or {rows[1]}"
        )
    if narrow:
        step *= 2
    elif kind == "kind::i8" and (ctas == 2 or n > 32):
        step = 16 * ctas
    if n % step or not step <= n <= 256:
        note = " if B is N-major" * narrow
        raise InvalidDescriptor(
            f"N, 8 times bits 17 to 22 of the descriptor, is {n}",
            f"{where} takes multiples of {step} up to 256{note}",
        )


def _check_weight_stationary(kind: str, m: int, n: int, sparse: bool) -> None:
    if m not in (32, 64, 128):
        raise InvalidDescriptor(
            f"M, 16 times bits 24 to 28 of the descriptor, is {m}", f"{kind} of tcgen05.mma.ws takes M = 32, 64 or 128"
        )
    if n not in (64, 128) and (sparse or n != 256):
        takes = "mma.ws.sp takes N = 64 or 128" if sparse else "mma.ws takes N = 64, 128 or 256"
        raise InvalidDescriptor(f"N, 8 times bits 17 to 22 of the descriptor, is {n}", f"{kind} of tcgen05.{takes}")


class OperandLayout(NamedTuple):
    """The layout of A or B in shared memory: the fields of its descriptor, and its swizzle mode.

    With `absolute`, the leading offset is the address where chunks past the end of 128 bytes go on.
    """

    fields: Fields
    mode: int
    absolute: bool = False


@cache
def operand(bits: int, matrix: str, element_bits: int, transposed: bool, k_bytes: int = K_BYTES) -> OperandLayout:
    """Decode and check a shared memory descriptor without its start address. Raises InvalidDescriptor."""
    name = f"{matrix.lower()}_desc"
    if bits >> VERSION_AT & 7 != 1:
        raise InvalidDescriptor(
            f"bits 46 to 48 of `{name}` are {bits >> VERSION_AT & 7}; they must be 0b001",
            "descriptors of tcgen05 have 1 << 46 in addition to the fields of those of wgmma",
        )
    absolute = bool(bits >> ABSOLUTE_AT & 1)
    if absolute and k_bytes != LONG_K_BYTES:
        raise InvalidDescriptor(
            f"bit 52 of `{name}`, an absolute leading dimension, is 1; only products with K = 96 take it", "clear it"
        )
    if bits >> ZERO_AT & 255:
        raise InvalidDescriptor(f"bits 53 to 60 of `{name}` are not 0", "clear them")
    mode = bits >> MODE_AT & 7
    if mode not in SPANS:
        raise InvalidDescriptor(
            f"the swizzle mode of `{name}`, bits 61 to 63, is {mode}",
            "use 0 (none), 2 (128 bytes), 4 (64), 6 (32), or 1 (128 bytes in atoms of 32)",
        )
    needs_wide_atoms = transposed and element_bits == 32
    if (mode == WIDE_ATOMS) != needs_wide_atoms:
        wanted = "swizzle mode 1, 128 bytes in atoms of 32" if needs_wide_atoms else "another swizzle mode than 1"
        major = ("M" if matrix == "A" else "N") if transposed else "K"
        raise InvalidDescriptor(
            f"{matrix}, of {element_bits} bits and {major}-major, has swizzle mode {mode}", f"use {wanted}"
        )
    fields = decode(bits)._replace(swizzle_bytes=SPANS[mode])
    if absolute and (mode != WHOLE_SPAN or fields.base_offset):
        raise InvalidDescriptor(
            f"`{name}` has an absolute leading dimension with swizzle mode {mode} and base offset {fields.base_offset}",
            "use swizzle mode 2, 128 bytes, and base offset 0",
        )
    return OperandLayout(fields, mode, absolute)


@cache
def _offsets(operand: OperandLayout, rows: int, element_bits: int, transposed: bool, k_bytes: int) -> np.ndarray:
    """Return the offsets of an operand's chunks before swizzling: row by row, or k by k."""
    fields, elements = operand.fields, 8 * CHUNK_BYTES // element_bits
    if not transposed:
        row, chunk = np.divmod(np.arange(rows * k_bytes // CHUNK_BYTES), k_bytes // CHUNK_BYTES)
        return np.asarray(chunk_offset(fields, row, chunk, False))
    each = -(-rows // elements)
    k, chunk = np.divmod(np.arange(8 * k_bytes // element_bits * each), each)
    if operand.mode == WIDE_ATOMS:
        inner, outer, span = k % WIDE_ROWS, k // WIDE_ROWS, fields.swizzle_bytes
        chunks = span // CHUNK_BYTES
        along = chunk % chunks * CHUNK_BYTES + chunk // chunks * fields.leading_bytes
        return np.asarray(inner * span + outer * fields.stride_bytes + along)
    return np.asarray(chunk_offset(fields, k, chunk, True))


def chunk_addresses(
    descriptors: np.ndarray,
    operand: OperandLayout,
    rows: int,
    element_bits: int,
    transposed: bool,
    k_bytes: int = K_BYTES,
) -> np.ndarray:
    """Return the shared memory addresses, (chunks, descriptors), of the 16-byte chunks of an operand of `rows` rows of
    M or N.

    The descriptors differ in their start addresses alone.
    """
    starts = (descriptors & START_MASK).astype(np.int64) << 4
    offsets = starts + _offsets(operand, rows, element_bits, transposed, k_bytes)[:, np.newaxis]
    if operand.absolute:
        span, chunk = operand.fields.swizzle_bytes, np.arange(len(offsets)) % (k_bytes // CHUNK_BYTES) * CHUNK_BYTES
        goes_on = starts % span + chunk[:, np.newaxis] >= span
        offsets += goes_on * (operand.fields.leading_bytes - starts // span * span - span)
    if operand.mode == WIDE_ATOMS:
        offsets = offsets ^ (offsets & WIDE_SWIZZLE.source) >> WIDE_SWIZZLE.shift
    else:
        offsets = np.asarray(swizzled(offsets, operand.fields.swizzle_bytes, operand.fields.base_offset))
    return np.asarray(offsets & ADDRESS_MASK).astype(np.uint64)
