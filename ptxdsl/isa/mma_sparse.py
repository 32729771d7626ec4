"""Warp-level products with sparse A (PTX ISA, "mma.sp").

A sparse A stores two of every four neighbours along k; the metadata give their positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import ir
from ..types import TYPES, f16, s32
from .form import Form, Values
from .matrix import HELD_IN, FragmentShape, accumulators, added, arranged, matrix_a, matrix_b, shape
from .numerics import Array, canonical
from .opcode import Op, Opcode
from .operand import OperandList, Problem
from .sparse import checked_columns, nibbles, sparse_product
from .step import Step
from .tensor_core import WIDE, accumulate

N = 8  # columns of B
FOUR = 4  # neighbours along k; A stores two of them
ROW_COLUMN = ".row.col"
METADATA = ", metadata:b32, selector:imm"


class Sparse(NamedTuple):
    """m16n8kN with sparse A: types, registers of A (B has the same number), and the largest metadata selector."""

    k: int
    sums: str
    inputs: str
    registers: int
    selector: int
    ptx: str = "7.1"
    sm: int = 80


SPARSE = (
    Sparse(16, "f16 f32", "f16", 2, 3), Sparse(32, "f16 f32", "f16", 4, 1),
    Sparse(16, "f32", "bf16", 2, 3), Sparse(32, "f32", "bf16", 4, 1),
    Sparse(8, "f32", "tf32", 2, 3), Sparse(16, "f32", "tf32", 4, 1),
    Sparse(32, "s32", "s8 u8", 2, 1), Sparse(64, "s32", "s8 u8", 4, 0),
    Sparse(64, "s32", "s4 u4", 2, 1), Sparse(128, "s32", "s4 u4", 4, 0),
    Sparse(64, "f32", "e4m3 e5m2", 4, 0, "8.4", 89),
)  # fmt: skip


def same_accumulators(i: Values) -> bool:
    """True if C and D have the same type."""
    return i.dtype is i.ctype


def _sums(i: Values) -> Any:
    return TYPES[HELD_IN[str(i.dtype)]]


def _count(i: Values) -> int:
    return 2 if i.dtype.bits == 16 else 4


DERIVED = {"sums": _sums, "count": _count}


def _sparse(row: Sparse, name: str) -> Form:
    held = HELD_IN.get(row.inputs.split()[0], "b32")
    ordered = name != "mma.sp"
    return Form(
        f"{name}.sync.aligned.m16n8k{row.k}{ROW_COLUMN}{'{.satfinite}' if row.sums == 's32' else ''}"
        f".dtype.atype.btype.ctype d=sums*count, a:{held}*{row.registers}, b:{held}*{row.registers}, c:sums*count"
        f"{METADATA}",
        dtype=row.sums,
        ctype=row.sums,
        atype=row.inputs,
        btype=row.inputs,
        when=same_accumulators,
        derived={**DERIVED, "most": lambda i: row.selector, "k": lambda i: row.k},
        ptx=max(row.ptx, "8.5") if ordered else row.ptx,
        sm=row.sm,
    )


class MmaSparse(Op):
    """Multiply-accumulate matrices with sparse A: d = a * b + c; `metadata` give the positions of A's elements."""

    collective = True
    computes = True
    carries = ("a", "b", "c")
    forms = tuple(_sparse(row, name) for name in ("mma.sp", "mma.sp::ordered_metadata") for row in SPARSE)

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        names = [operand.name for operand in i.operands]
        selector, most = operands[names.index("selector")], i.most
        if isinstance(selector, ir.Immediate) and not 0 <= selector.value <= most:
            numbers = f"from 0 to {most}" if most else "0, since all lanes supply metadata"
            yield Problem("selector", f"`selector` is {selector.value}; this form takes {numbers}")

    def execute(self, i: Opcode, m: Step, a: Array, b: Array, c: Array, metadata: Array, selector: int) -> Array:
        whole = shape(f"m16n8k{i.k}", i.btype)
        half = FragmentShape(whole.m, whole.k // 2, whole.packed)
        left, right = matrix_a(a[:, np.newaxis], half, i.atype), matrix_b(b[:, np.newaxis], whole, i.btype)
        fours = nibbles(i.atype, whole.k, np.broadcast_to(metadata, m.shape), selector)
        where = checked_columns(m, i.atype, fours, "ordered_metadata" in i.text)
        d = np.empty_like(c)
        old, new = (accumulators(x[:, np.newaxis], i.dtype, whole, 1) for x in (c, d))
        sums = np.empty((len(left), whole.m, N), old.dtype)
        arranged(sums, old)[...] = old
        sums = sparse_product(left, where, right, sums, partial(_added, i, m.numerics))
        new[...] = arranged(sums if i.dtype is s32 else canonical(sums), old)
        return d


def _added(i: Opcode, numerics: str, a: Array, b: Array, c: Array) -> Array:
    """Return a * bᵀ + c of dense matrices: A expanded with zeros, or B restricted to the elements that A stores.

    An H200 has no sparse products of 8-bit floats. It converts them to f16 and runs f16 products twice, starting from
    zero, each for every other group of four along k, and adds the result to c.
    """
    if numerics != "h200" or i.dtype is s32:
        return added(i, None, a, b, c)
    if i.atype.bits > 8:
        return added(i, WIDE, a, b, c)
    group = FOUR if a.shape[2] == i.k else FOUR // 2
    products = np.zeros_like(c)
    for half in (0, 1):
        which = np.arange(a.shape[2]) // group % 2 == half
        products = accumulate(a[..., which], b[..., which], products, (f16, f16), WIDE)
    return products + c
