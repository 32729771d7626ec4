"""Warp-level matrix instructions: mma, ldmatrix, stmatrix, movmatrix (PTX ISA, "Warp Level Matrix Instructions").

All fragments follow one scheme. Lane 4g + t holds row g of an 8-row block, and in that row the elements tn … tn + n-1,
where n elements fill a register. The next registers of A hold the row 8 below, then the elements 4n further along k. B
holds columns in place of rows. Accumulators hold two neighbours along n, then the row 8 below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .. import ir
from ..layout.mma_shapes import MMA, MmaShape
from ..types import TYPES, Type, b16, b32, f16, f32, f64, s32, tf32
from . import narrow
from .form import Form
from .lookup import lookup
from .memory import NEEDS, alignment_problems
from .numerics import NAN, decode
from .opcode import Op, Opcode
from .operand import OperandList, Problem
from .step import Step
from .tensor_core import WIDE, Accumulation, AppliedScales, accumulate

ROW = np.complex128  # a 16-byte row of a matrix: the four lanes of a row hold 32 bits each
CHUNK_BYTES = 1 << 21  # products per batch, small enough to stay in the cache


@dataclass(frozen=True, slots=True)
class FragmentShape:
    """m and k of an mma (n is 8), and the number of A or B elements per register."""

    m: int
    k: int
    packed: int

    @property
    def blocks(self) -> int:
        """The number of 8-row blocks of A and of the accumulators."""
        return self.m // 8

    @property
    def steps(self) -> int:
        """The number of registers per row of A or B."""
        return self.k // (4 * self.packed)


@cache
def shape(name: str, type: Type) -> FragmentShape:
    """Return the FragmentShape of a shape such as "m16n8k16" for the type of A and B."""
    m, _, k = map(int, re.findall(r"\d+", name))
    return FragmentShape(m, k, max(32, type.bits) // type.bits)


HELD_IN = {"f16": "f16x2", "bf16": "bf16x2", "tf32": "tf32", "f32": "f32", "f64": "f64", "s32": "s32"}
"""The register type that holds elements of a type; b32 for elements of 8 bits and less."""


FLAGS: dict[str, dict[str, Any]] = {
    "f64": {"rnd": "rn rz rm rp"},
    **{integer: {"satfinite": "satfinite"} for integer in ("s8", "u8", "s4", "u4")},
    "b1": {"compare": "xor and", "needs": {"and": ("7.1", 80)}},
}
"""Additional modifiers of the products of a type."""


def _form(product: MmaShape) -> Form:
    """Return one form of mma."""
    element = TYPES[product.inputs[0]]
    s, held = shape(product.name, element), HELD_IN.get(element.name, "b32")
    flags = FLAGS.get(element.name, {})
    written = {"rnd": "{.rnd}", "satfinite": "{.satfinite}", "compare": ".compare.popc"}
    flag = "".join(written[name] for name in written if name in flags)
    return Form(
        f"mma.sync.aligned.shape.alayout.blayout{flag}.dtype.atype.btype.ctype"
        f" d=sums*count, a:{held}*{s.blocks * s.steps}, b:{held}*{s.steps}, c:sums*count",
        when=lambda i: (i.alayout, i.blayout) == ("row", "col") and i.dtype is i.ctype,
        derived={
            "sums": lambda i: TYPES[HELD_IN[str(i.dtype)]],
            "count": lambda i: s.blocks * (1 if i.dtype.bits == 16 else 2),
        },
        shape=product.name,
        alayout="row col",
        blayout="row col",
        dtype=product.sums,
        ctype=product.sums,
        atype=product.inputs,
        btype=product.inputs,
        ptx=product.ptx,
        sm=product.sm,
        **flags,
    )


class Mma(Op):
    """Multiply-accumulate matrices held in the registers of a warp: d = a * b + c."""

    collective = True
    batchable = True
    computes = True
    carries = ("a", "b", "c")
    forms = tuple(map(_form, MMA))

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            if not isinstance(value, ir.Vector):
                message = f"`{declared.name}` is not in braces; mma takes its registers as a list, even a single one"
                yield Problem(declared.name, message, "write [b] in Python, {b} in PTX")

    def execute(self, i: Opcode, m: Step, *fragments: np.ndarray) -> np.ndarray:
        first = np.zeros(1, int)
        return self.execute_batch(i, m, [f[:, np.newaxis] for f in fragments], [first] * 3)[:, 0]

    def execute_batch(self, i: Opcode, m: Step, values: Sequence[Any], index: Sequence[Any]) -> Any:
        """Compute all pairs of an A and a B as one product per warp, or else one product for each A and B."""
        a, b, c = values
        c = _pick(c, index[2])
        pairs = np.asarray(index[0]) * b.shape[1] + index[1]
        order = np.argsort(pairs)
        if np.array_equal(pairs[order], np.arange(a.shape[1] * b.shape[1])):
            return _pick(multiply_add(i, m.numerics, a, b, _pick(c, order)), np.argsort(order))
        a, b = _pick(a, index[0]), _pick(b, index[1])
        return multiply_add(i, m.numerics, *(x.reshape(len(x), 1, -1, 32) for x in (a, b, c))).reshape(c.shape)


def _pick(fragments: np.ndarray, index: Any) -> np.ndarray:
    """Gather (n, d, warps, 32) into (n, k, warps, 32); returns a view if the index is consecutive."""
    if np.array_equal(index, np.arange(fragments.shape[1])):
        return fragments
    picked: np.ndarray = np.take(fragments, index, axis=1)
    return picked


def multiply_add(i: Opcode, numerics: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the accumulators (n, A * B, warps, 32) of all pairs of A fragments (n, A, warps, 32) and B fragments."""
    s = shape(i.shape, i.atype)
    d, add_up = np.empty_like(c), sums_of(i.dtype, numerics)
    warps = c.shape[-2]
    step = max(1, CHUNK_BYTES // (c.shape[1] * s.m * 64))
    for start in range(0, warps, step):
        part = np.s_[..., start : start + step, :]
        left, right = matrix_a(a[part], s, i.atype), matrix_b(b[part], s, i.btype)
        old, new = (accumulators(x[part], i.dtype, s, a.shape[1]) for x in (c, d))
        add_up(i, left, right, old, new)
    return d


def matrix_a(held: np.ndarray, s: FragmentShape, type: Type | str) -> np.ndarray:
    """Return fragments of A as f64 matrices (warps, A * m, k), in fragment order."""
    rows = np.ascontiguousarray(held).view(ROW).reshape(s.steps, s.blocks, *held.shape[1:3], 8, -1)
    return values(np.ascontiguousarray(rows.transpose(3, 2, 1, 4, 0, 5)), type, s.packed).reshape(
        held.shape[2], -1, s.k
    )


def matrix_b(held: np.ndarray, s: FragmentShape, type: Type | str) -> np.ndarray:
    """Return fragments of B as transposed f64 matrices (warps, 8 * B, k).

    Columns 2t + e of all fragments are at t, fragment, e: after row g, this makes the product iterate over lanes 4g +
    t.
    """
    rows = np.ascontiguousarray(held).view(ROW).reshape(s.steps, *held.shape[1:3], 4, 2, -1)
    return values(np.ascontiguousarray(rows.transpose(2, 3, 1, 4, 0, 5)), type, s.packed).reshape(
        held.shape[2], -1, s.k
    )


def values(rows: np.ndarray, type: Type | str, packed: int = 4) -> np.ndarray:
    """Decode registers of `packed` elements to f64. A string names a format of `narrow`."""
    if isinstance(type, str):
        return narrow.of_bytes(type, packed // 4).take(rows.view(np.uint8), axis=0)
    if type is f64:
        return rows.view(np.float64)
    if type is tf32:
        return (rows.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    return table(type).take(rows.view(f"u{max(1, type.bytes)}"), axis=0)


@cache
def table(type: Type) -> np.ndarray:
    """Return the value of every bit pattern: f64 (65536,) or (256,); (256, 2) for two elements per byte."""
    bits = max(8, type.bits)
    fields = np.arange(1 << bits)[:, np.newaxis] >> np.arange(0, bits, type.bits) & ((1 << type.bits) - 1)
    if type.is_float:
        numbers = decode(fields.astype(f"u{type.bytes}").view(type.dtype), type)
    else:
        numbers = fields - (fields >> type.bits - 1 << type.bits if type.is_signed else 0)
    with np.errstate(invalid="ignore"):  # of signaling NaN
        return np.squeeze(numbers.astype(np.float64))


def accumulators(held: np.ndarray, type: Type, s: FragmentShape, count: int) -> np.ndarray:
    """View accumulator fragments (n, A * B, warps, 32) as numbers (blocks, 2, A, B, warps, 32)."""
    if type.bits == 16:
        pairs = held.view(np.float16).reshape(s.blocks, count, -1, held.shape[2], 32, 2)
        return np.moveaxis(pairs, -1, 1)
    return held.reshape(s.blocks, 2, count, -1, held.shape[2], 32)


def arranged(product: np.ndarray, like: np.ndarray) -> np.ndarray:
    """View a product (warps, A * m, 8 * B) in the order of the accumulators."""
    blocks, _, count_a, count_b, warps, _ = like.shape
    return product.reshape(warps, count_a, blocks, 32, count_b, 2).transpose(2, 5, 1, 4, 0, 3)


def rounded_once(i: Opcode, a: np.ndarray, b: np.ndarray, old: np.ndarray, new: np.ndarray) -> None:
    """Compute new = a * b + old, summed in f64 and rounded once. Tensor cores are less exact."""
    np.add(arranged(a @ b.transpose(0, 2, 1), old), old, out=new)
    nan = new != new
    if nan.any():
        new[nan] = NAN[new.dtype]


def as_on_h200(i: Opcode, a: np.ndarray, b: np.ndarray, old: np.ndarray, new: np.ndarray) -> None:
    """Compute new = a * b + old, bit for bit as the tensor cores of an H200.

    An H200 has no 8-bit mma.sync products. It converts the factors to f16, and runs f16 products twice, starting from
    zero: first for the first two of every four elements along k, then for the others. The result is added to the
    accumulators.
    """
    sums = np.empty((*a.shape[:2], b.shape[1]), old.dtype)
    arranged(sums, old)[...] = old
    if i.atype.bits == 8:
        halves = [np.s_[..., np.arange(a.shape[2]) % 4 // 2 == half] for half in (0, 1)]
        products = np.zeros_like(sums)
        for half in halves:
            products = accumulate(a[half], b[half], products, (f16, f16), WIDE)
        sums += products
    else:
        sums = accumulate(a, b, sums, (i.atype, i.btype), WIDE)
    new[...] = arranged(sums, old)


def chained(i: Opcode, a: np.ndarray, b: np.ndarray, old: np.ndarray, new: np.ndarray) -> None:
    """Compute new = a * b + old in f64: one fma per k, in order."""
    fma = lookup(f"fma.{i.rnd or 'rn'}.f64")[0]
    total = np.empty((*a.shape[:2], b.shape[1]))
    arranged(total, old)[...] = old
    for k in range(a.shape[2]):
        total = fma.op.run(fma, *np.broadcast_arrays(a[:, :, np.newaxis, k], b[:, np.newaxis, :, k], total))
    new[...] = arranged(total, old)


def whole(i: Opcode, a: np.ndarray, b: np.ndarray, old: np.ndarray, new: np.ndarray) -> None:
    """Compute new = a * b + old in integers, modulo 2^32 or clamped. For single bits, .and counts common ones and .xor
    counts unequal bits.
    """
    product = a @ b.transpose(0, 2, 1)
    if i.compare == "xor":
        product = a.sum(2)[:, :, np.newaxis] + b.sum(2)[:, np.newaxis] - 2 * product
    total = arranged(product, old) + old
    if i.satfinite:
        total = np.clip(total, -(2.0**31), 2.0**31 - 1)
    new[...] = total.astype(np.int64)


def added(
    i: Opcode,
    how: Accumulation | None,
    a: np.ndarray,
    b: np.ndarray,
    old: np.ndarray,
    scales: AppliedScales | None = None,
) -> np.ndarray:
    """Return a (batch, m, k) * bᵀ (batch, n, k) + old (batch, m, n), accumulated as tensor cores do, or (None) rounded
    once.

    Integer sums are modulo 2^32, or clamped.
    """
    if how is not None:
        return accumulate(a, b, old, (i.atype, i.btype), how, scales)
    total = a @ b.transpose(0, 2, 1)
    total += old
    if i.dtype is s32:
        if i.satfinite:
            np.clip(total, -(2.0**31), 2.0**31 - 1, out=total)
        return total.astype(np.int64).astype(np.int32)
    return total.astype(old.dtype)


Sums = Callable[[Opcode, np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]
SUMS: dict[Type, Sums] = {f16: rounded_once, f32: rounded_once, f64: chained, s32: whole}
"""How products are added up, by the type of the accumulators: a (warps, A * m, k), b (warps, 8 * B, k), f64; `old` and
`new` as `accumulators` gives them."""


def sums_of(type: Type, numerics: str) -> Sums:
    """Return the accumulation function; `numerics` decides whether tensor core rounding is emulated."""
    sums = SUMS[type]
    return as_on_h200 if sums is rounded_once and numerics == "h200" else sums


class MatrixAccess(Op):
    """Base of ldmatrix and stmatrix: 8x8 matrices of 16-bit elements, with row addresses in groups of 8 lanes."""

    collective = True

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        yield from alignment_problems("address", operands[[o.name for o in i.operands].index("address")], 16)

    def rows(self, i: Opcode, address: np.ndarray) -> np.ndarray:
        """Return the addresses in use: lanes 0 to 7 for x1, 0 to 15 for x2, all for x4."""
        return address[..., : 8 * int(i.num[1:])]


class LdMatrix(MatrixAccess):
    """Load 8x8 matrices: lane 4g + t gets elements 2t and 2t+1 of row g (.trans: column g)."""

    batchable = True
    forms = (
        Form(
            "ldmatrix.sync.aligned.m8n8.num{.trans}{.space}.b16 d=b32*num, [address:space]",
            num="x1 x2 x4",
            space="shared shared::cta",
            ptx="6.5",
            sm=75,
            needs=NEEDS,
        ),
    )

    def execute(self, i: Opcode, m: Step, address: np.ndarray) -> np.ndarray:
        address = self.rows(i, address)
        lead = address.shape[:-1]
        if i.trans:
            elements = m.load(i.space or "generic", address, b16, 8).reshape(8, *lead, -1, 8)
            columns = np.moveaxis(elements, (-2, 0), (0, -2))
            return np.ascontiguousarray(columns).view(np.uint32).reshape(-1, *lead, 32)
        pairs = m.load(i.space or "generic", address, b32, 4).reshape(4, *lead, -1, 8)
        return np.moveaxis(pairs, (-2, 0), (0, -1)).reshape(-1, *lead, 32)


class StMatrix(MatrixAccess):
    """Store 8x8 matrices: lane 4g + t holds elements 2t and 2t+1 of row g (.trans: column g)."""

    stores = "address"
    carries = ("a",)
    orders_lanes = True  # all lanes have completed their earlier ldmatrix, which kernels rely on (docs/emulator.md)
    forms = (
        Form(
            "stmatrix.sync.aligned.m8n8.num{.trans}{.space}.b16 [address:space], a:b32*num",
            num="x1 x2 x4",
            space="shared shared::cta",
            ptx="7.8",
            sm=90,
            needs=NEEDS,
        ),
    )

    def execute(self, i: Opcode, m: Step, address: np.ndarray, a: np.ndarray) -> None:
        address = self.rows(i, address)
        warps = a.shape[1]
        if i.trans:
            columns = np.ascontiguousarray(a).view(np.uint16).reshape(-1, warps, 8, 8)
            elements = columns.transpose(2, 1, 0, 3).reshape(8, *address.shape)
            m.store(i.space or "generic", address, b16, elements)
        else:
            pairs = a.reshape(-1, warps, 8, 4).transpose(3, 1, 0, 2).reshape(4, *address.shape)
            m.store(i.space or "generic", address, b32, pairs)


class MovMatrix(Op):
    """Transpose an 8x8 matrix of 16-bit elements across the registers of a warp."""

    collective = True
    carries = ("a",)
    forms = (Form("movmatrix.sync.aligned.m8n8.trans.b16 d=b32, a:b32", ptx="7.8", sm=75),)

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        if isinstance(operands[1], ir.Immediate):
            yield Problem(
                "a", f"`a` is the constant {operands[1]}; movmatrix takes a register", "move it to a register first"
            )

    def run(self, i: Opcode, a: np.ndarray) -> np.ndarray:
        elements = np.ascontiguousarray(a).view(np.uint16).reshape(-1, 8, 8)
        return np.ascontiguousarray(elements.transpose(0, 2, 1)).view(np.uint32).reshape(a.shape)
