"""Warp-level products of 4-, 6- and 8-bit floats, with block scales or without, and with dense or sparse A.

PTX ISA, "mma", "mma.sp" and "Block Scaling for mma.sync" (kinds f8f6f4, mxf8f6f4, mxf4, mxf4nvf4). With block scales,
all elements of a chunk of a row of A, or of a column of B, are multiplied by one scale factor. Products are exact, and
their sum with C is rounded once; no GPU has been compared with this.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from .. import ir
from ..types import e4m3, u4
from . import narrow
from .form import Form, Values
from .matrix import FragmentShape, accumulators, arranged, matrix_a, matrix_b
from .mma_sparse import DERIVED, METADATA, ROW_COLUMN, N, same_accumulators
from .numerics import Array, canonical
from .opcode import Op, Opcode
from .operand import OperandList, Problem
from .sparse import checked_columns, nibbles, sparse_product
from .step import Step

NARROW = "e4m3 e5m2 e3m2 e2m3 e2m1"
CONSUMER = "120f"
M = 16  # rows of A
SCALES = ", scale_a:b32, part_a:u16*2, scale_b:b32, part_b:u16*2"
"""Scale factors of A and B, with the byte and lane that hold them."""
CHUNKS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}


NARROW_SLOTS: dict[str, Any] = {"dtype": "f32 f16", "ctype": "f32 f16", "atype": NARROW, "btype": NARROW}
LEAST: dict[str, Any] = {
    "ptx": "8.7",
    "sm": "100f 110f 120f",
    "needs": dict.fromkeys(("e3m2", "e2m3", "e2m1", "sp::ordered_metadata f16"), ("8.7", CONSUMER)),
}


def _added(a: Array, b: Array, c: Array) -> Array:
    """Return a (batch, m, k) * bᵀ (batch, n, k) + c, rounded once to the type of c."""
    with np.errstate(over="ignore"):
        return (a @ b.transpose(0, 2, 1) + c).astype(c.dtype)


class NarrowProduct(Op):
    """Base of the products of narrow floats."""

    collective = True
    computes = True
    carries = ("a", "b", "c")

    def execute(self, i: Opcode, m: Step, a: Array, b: Array, c: Array, *rest: Any) -> Array:
        metadata, scales = (rest[:2], rest[2:]) if i.text.startswith("mma.sp") else ((), rest)
        per_byte = 2 if "mxf4" in i.text else 1
        whole = FragmentShape(M, i.k, 4 * per_byte)
        stored = FragmentShape(M, i.k // 2, 4 * per_byte) if metadata else whole
        left, right = matrix_a(a[:, np.newaxis], stored, i.atype), matrix_b(b[:, np.newaxis], whole, i.btype)
        where = np.broadcast_to(np.arange(stored.k), left.shape)
        if metadata:
            fours = nibbles(u4 if per_byte == 2 else e4m3, i.k, np.broadcast_to(metadata[0], m.shape), metadata[1])
            where = checked_columns(m, u4 if per_byte == 2 else e4m3, fours, ordered=True)
        if scales:
            factors_a, factors_b = block_scales(i, m, *scales)
            left = left * np.take_along_axis(factors_a, where * factors_a.shape[2] // i.k, axis=2)
            right = right * factors_b.repeat(i.k // factors_b.shape[2], axis=2)
        d = np.empty_like(c)
        old, new = (accumulators(x[:, np.newaxis], i.ctype, whole, 1) for x in (c, d))
        sums = np.empty((len(left), M, N), old.dtype)
        arranged(sums, old)[...] = old
        sums = sparse_product(left, where, right, sums, _added) if metadata else _added(left, right, sums)
        new[...] = arranged(canonical(sums), old)
        return d


class MmaNarrow(NarrowProduct):
    """Multiply-accumulate matrices of 4-, 6- and 8-bit floats, one per byte: d = a * b + c."""

    forms = (
        Form(
            f"mma.sync.aligned.m16n8k32{ROW_COLUMN}.kind::f8f6f4.dtype.atype.btype.ctype"
            " d=sums*count, a:b32*4, b:b32*2, c:sums*count",
            when=same_accumulators,
            derived={**DERIVED, "k": lambda i: 32},
            **NARROW_SLOTS,
            **LEAST,
        ),
        Form(
            f"mma.sp::ordered_metadata.sync.aligned.m16n8k64{ROW_COLUMN}.kind::f8f6f4.dtype.atype.btype.ctype"
            f" d=sums*count, a:b32*4, b:b32*4, c:sums*count{METADATA}",
            when=same_accumulators,
            derived={**DERIVED, "k": lambda i: 64},
            **NARROW_SLOTS,
            **LEAST,
        ),
    )


SIZES = {"ue8m0": ("scale_vec::2X",), "ue4m3": ("scale_vec::4X",)}
"""The number of scale factors per row in one instruction, by their type."""


def _always(value: int, _: Values) -> int:
    return value


def _scaled(sparse: bool) -> tuple[Form, ...]:
    name = "mma.sp::ordered_metadata" if sparse else "mma"
    depth, b, metadata = (2, 4, METADATA) if sparse else (1, 2, "")
    operands = f" d=f32*4, a:b32*4, b:b32*{b}, c:f32*4{metadata}{SCALES}"
    kinds: tuple[tuple[str, int, dict[str, Any]], ...] = (
        ("mxf8f6f4.block_scale{.scale_vec::1X}", 32, {"atype": NARROW, "btype": NARROW, "stype": "ue8m0"}),
        ("mxf4.block_scale{.scale_vec::2X}", 64, {"atype": "e2m1", "btype": "e2m1", "stype": "ue8m0"}),
        (
            "mxf4nvf4.block_scale.size",
            64,
            {
                "atype": "e2m1",
                "btype": "e2m1",
                "stype": SIZES,
                "size": "scale_vec::2X scale_vec::4X",
                "when": lambda i: i.size in SIZES[i.stype],
            },
        ),
    )
    return tuple(
        Form(
            f"{name}.sync.aligned.m16n8k{k * depth}{ROW_COLUMN}.kind::{kind}.f32.atype.btype.ctype.stype{operands}",
            ctype="f32",
            derived={"k": partial(_always, k * depth)},
            ptx="8.7",
            sm="120a 121a" if sparse and k == 64 else CONSUMER,
            **slots,
        )
        for kind, k, slots in kinds
    )


class MmaScaled(NarrowProduct):
    """Multiply-accumulate matrices of 4-, 6- and 8-bit floats with block scales along k: d = a * b + c."""

    forms = (*_scaled(False), *_scaled(True))

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            if declared.name not in LANES or not isinstance(value, ir.Vector):
                continue
            for kind, known, element in zip(
                ("byte", "thread"), selectors(i, declared.name), value.elements, strict=True
            ):
                if isinstance(element, ir.Immediate) and element.value not in known:
                    yield Problem(declared.name, _wrong_selector(i, kind, declared.name, element.value, known))


LANES = {"part_a": (0, 1), "part_b": (0, 1, 2, 3)}
"""The selectors of the threads of a quad that hold scale factors: a pair of threads for A, one thread for B."""


def chunks(i: Opcode) -> int:
    """Return the number of scale factors of a row of A in one instruction."""
    return CHUNKS[i.size] if i.size else 2 if "kind::mxf4." in i.text else 1


def selectors(i: Opcode, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the valid selectors of the byte and of the thread for `part_a` or `part_b`."""
    return {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}[chunks(i)], LANES[name]


def _wrong_selector(i: Opcode, kind: str, name: str, value: int, known: tuple[int, ...]) -> str:
    numbers = ", ".join(map(str, known))
    plural = "s" * (chunks(i) > 1)
    return (
        f"the {kind} selector in `{name}` is {value}; with {chunks(i)} scale factor{plural} a row it can be {numbers}"
    )


def block_scales(
    i: Opcode, m: Step, scale_a: Array, part_a: Array, scale_b: Array, part_b: Array
) -> tuple[Array, Array]:
    """Return the scale factors of the rows of A (warps, 16, chunks) and of the columns of B (warps, 8, chunks).

    Of the quad of lanes 4g to 4g + 3, two neighbours hold the factors of the rows g and g + 8, and one lane holds those
    of column g. The selectors of a warp are those of its first lane.
    """
    row, column = np.arange(M), np.arange(N)
    byte, thread = _checked_selectors(i, m, "part_a", part_a)
    factors_a = _factors(i, m, scale_a, byte, row % 8 * 4 + 2 * thread + row // 8)
    byte, thread = _checked_selectors(i, m, "part_b", part_b)
    return factors_a, _factors(i, m, scale_b, byte, column * 4 + thread)


def _checked_selectors(i: Opcode, m: Step, name: str, part: Array) -> list[Array]:
    """Return the selectors of byte and thread of each warp, (warps, 1); report invalid ones, and replace them by 0."""
    checked = []
    for kind, known, value in zip(("byte", "thread"), selectors(i, name), part, strict=True):
        value = np.broadcast_to(value, m.shape)[:, :1].astype(int)
        wrong = ~np.isin(value, known)
        if wrong.any():
            message = _wrong_selector(i, kind, name, int(value[wrong][0]), known)
            m.fail("block-scale", message, np.broadcast_to(wrong, m.shape))
        checked.append(np.where(wrong, 0, value))
    return checked


def _factors(i: Opcode, m: Step, held: Array, byte: Array, lanes: Array) -> Array:
    """Return the scale factors in the registers of `lanes` (warps, rows), from `byte` on: (warps, rows, chunks)."""
    words = np.take_along_axis(np.broadcast_to(held, m.shape), lanes, axis=1)
    shifts = 8 * (byte[..., np.newaxis] + np.arange(chunks(i)))
    pattern = words[..., np.newaxis] >> shifts.astype(np.uint32) & np.uint32(255)
    factors: Array = narrow.scales_of_bytes(str(i.stype))[pattern]
    return factors
