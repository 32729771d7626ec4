"""Warp-level load, multiply and store of whole matrices: wmma (PTX ISA, "Warp-level Matrix Instructions: wmma").

PTX does not specify which lane holds which element; this is the mapping of an H200. Fragments consist of the 16x8 and
8x8 fragments of `mma`: vertically adjacent ones for A, horizontally adjacent ones for B, and row by row for
accumulators. m8n32k16 is the transpose of m32n8k16. If a fragment has more registers than the mapping needs (f16), they
are repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .. import ir
from ..types import TYPES, Type, b32
from .form import Derived, Form, Values
from .matrix import HELD_IN, arranged, sums_of, values
from .memory import NEEDS
from .opcode import Op, Opcode
from .operand import OperandList, Problem
from .step import Step

LANES = np.arange(32)
ROW, QUAD = LANES // 4, LANES % 4
ALIGNED = {"aligned": ("6.3", 70)}
F16_REGISTERS = 8
"""Registers of a fragment of A or B, for every shape."""


class WmmaProduct(NamedTuple):
    """The shapes of a product, its types, and the minimum `.version` and target."""

    shapes: tuple[str, ...]
    inputs: tuple[str, ...]
    sums: tuple[str, ...]
    ptx: str
    sm: int
    layouts: tuple[str, str] = ("row col", "row col")  # of A and of B


_SMALL = ("row", "col")
PRODUCTS = (
    WmmaProduct(("m16n16k16",), ("f16",), ("f16", "f32"), "6.0", 70),
    WmmaProduct(("m8n32k16", "m32n8k16"), ("f16",), ("f16", "f32"), "6.1", 70),
    WmmaProduct(("m16n16k16", "m8n32k16", "m32n8k16"), ("s8", "u8"), ("s32",), "6.3", 72),
    WmmaProduct(("m16n16k16", "m8n32k16", "m32n8k16"), ("bf16",), ("f32",), "7.0", 80),
    WmmaProduct(("m16n16k8",), ("tf32",), ("f32",), "7.0", 80),
    WmmaProduct(("m8n8k4",), ("f64",), ("f64",), "7.0", 80),
    WmmaProduct(("m8n8k32",), ("s4", "u4"), ("s32",), "6.3", 75, _SMALL),
    WmmaProduct(("m8n8k128",), ("b1",), ("s32",), "6.3", 75, _SMALL),
)


class Size(NamedTuple):
    """m, n and k of a shape such as "m16n8k16"."""

    m: int
    n: int
    k: int

    @classmethod
    def of(cls, shape: str) -> Size:
        """Parse a shape."""
        m, _, rest = shape[1:].partition("n")
        n, _, k = rest.partition("k")
        return cls(int(m), int(n), int(k))

    def matrix(self, use: str) -> tuple[int, int]:
        """Return the rows and columns of A, B or the accumulators (c)."""
        return {"a": (self.m, self.k), "b": (self.k, self.n), "c": (self.m, self.n)}[use]


class Fragment(NamedTuple):
    """Rows and columns of the elements that lanes hold, each (registers, 32, elements of a register)."""

    rows: np.ndarray
    columns: np.ndarray

    @property
    def registers(self) -> int:
        return len(self.rows)


_TRANSPOSED = {"a": "b", "b": "a", "c": "c"}


@cache
def fragment(use: str, shape: str, type: Type) -> Fragment:
    """Return the mapping of A, B or the accumulators (c) to the registers of a warp."""
    size, packed = Size.of(shape), max(1, 32 // type.bits)
    if size.n > size.m:
        other = fragment(_TRANSPOSED[use], f"m{size.n}n{size.m}k{size.k}", type)
        return Fragment(other.columns, other.rows)
    pieces = list({"a": _of_a, "b": _of_b, "c": _of_sums}[use](size, packed))
    if use != "c" and type.name == "f16":
        pieces *= F16_REGISTERS // len(pieces)
    rows, columns = zip(*(np.broadcast_arrays(*piece) for piece in pieces), strict=True)
    return Fragment(np.stack(rows), np.stack(columns))


Piece = tuple[np.ndarray, np.ndarray]
"""Rows and columns of the elements of a register, broadcastable to (32, elements)."""


def _of_a(size: Size, packed: int) -> Iterator[Piece]:
    height = min(16, size.m)
    for top in range(0, size.m, height):
        for left in range(0, size.k, 4 * packed):
            for block in range(top, top + height, 8):
                yield (block + ROW)[:, np.newaxis], left + packed * QUAD[:, np.newaxis] + np.arange(packed)


def _of_b(size: Size, packed: int) -> Iterator[Piece]:
    for left in range(0, size.n, 8):
        for top in range(0, size.k, 4 * packed):
            yield top + packed * QUAD[:, np.newaxis] + np.arange(packed), (left + ROW)[:, np.newaxis]


def _of_sums(size: Size, packed: int) -> Iterator[Piece]:
    height = min(16, size.m)
    for top in range(0, size.m, height):
        for left in range(0, size.n, 8):
            for block in range(top, top + height, 8):
                pair = left + 2 * QUAD[:, np.newaxis] + np.arange(2)
                row = (block + ROW)[:, np.newaxis]
                yield from [(row, pair)] if packed == 2 else [(row, pair[:, :1]), (row, pair[:, 1:])]


def _aligned(product: WmmaProduct) -> str:
    """Return `.aligned`, optional if PTX before 6.3 has the instruction."""
    return "{.aligned}" if product.ptx < "6.3" else ".aligned"


def _held(type: Type) -> str:
    return HELD_IN.get(type.name, "b32")


def _memory_forms(text: str, uses: str) -> Iterator[Form]:
    """Yield the load or store forms of some operands; an accumulator type appears once, with the first product that has
    it.
    """
    known: set[tuple[str, str, str]] = set()
    for product in PRODUCTS:
        for use in uses:
            for name in product.sums if use == "c" else product.inputs:
                shapes = tuple(shape for shape in product.shapes if (use, name, shape) not in known)
                known.update((use, name, shape) for shape in shapes)
                if shapes:
                    yield _memory_form(text, use, product._replace(shapes=shapes), TYPES[name])


def _memory_form(text: str, use: str, product: WmmaProduct, type: Type) -> Form:
    """Return a load or store form of one operand of a product."""
    layouts = {"a": product.layouts[0], "b": product.layouts[1], "c": "row col"}[use]
    return Form(
        text.format(held=_held(type), use="d" if text.startswith("wmma.store") else use, aligned=_aligned(product)),
        when=lambda i: i.aligned or i.space != "shared::cta",
        derived={"count": lambda i: fragment(use, i.shape, type).registers, "use": lambda i: use},
        layout=layouts,
        shape=product.shapes,
        space="global shared shared::cta",
        type=(type,),
        ptx=product.ptx,
        sm=product.sm,
        needs={**NEEDS, **ALIGNED},
    )


class WmmaAccess(Op):
    """Base of load and store: element (r, c) is at r * stride + c elements, or c * stride + r if column-major."""

    collective = True

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        yield from _unbraced(i, operands)

    def addresses(self, i: Opcode, m: Step, address: np.ndarray, stride: np.ndarray | None) -> np.ndarray:
        """Return the address of each register's first element if its elements are contiguous, else of every element,
        (n, …).
        """
        part = fragment(i.use, i.shape, i.type)
        if (address != address[..., :1]).any():
            message = f"{i.text}: the address differs between lanes of a warp"
            m.fail("divergent-collective", message, help="pass the address of the tile's first element in all lanes")
        rows, columns = Size.of(i.shape).matrix(i.use)
        pitch = np.uint64(columns if i.layout == "row" else rows) if stride is None else stride.astype(np.uint64)
        major, minor = (part.rows, part.columns) if i.layout == "row" else (part.columns, part.rows)
        step = max(1, 32 // i.type.bits) if side_by_side(i) else 1
        major, minor = (np.moveaxis(x[..., ::step], -1, 1)[:, :, np.newaxis].astype(np.uint64) for x in (major, minor))
        bits = (major * pitch + minor) * np.uint64(i.type.bits)
        return (address + bits // np.uint64(8)).reshape(-1, *address.shape)


def side_by_side(i: Opcode) -> bool:
    """True if the elements of a register are contiguous in memory; always true below one byte."""
    transposed = i.use == "b" or (i.use == "c" and i.shape == "m8n32k16")
    return bool(i.type.bits >= 32 or i.layout == ("col" if transposed else "row"))


def _unbraced(i: Opcode, operands: OperandList) -> Iterator[Problem]:
    for declared, value in zip(i.operands, operands, strict=True):
        if declared.vector and not isinstance(value, ir.Vector):
            message = f"`{declared.name}` is not in braces; wmma takes its registers as a list, even a single one"
            yield Problem(declared.name, message, "write [b] in Python, {b} in PTX")


class WmmaLoad(WmmaAccess):
    """Load a matrix fragment from memory."""

    forms = tuple(_memory_forms(
        "wmma.load.{use}.sync{aligned}.layout.shape{{.space}}.type d={held}*count, [address:space]{{, stride:u32}}",
        "abc",
    ))  # fmt: skip

    def execute(self, i: Opcode, m: Step, address: np.ndarray, stride: np.ndarray | None = None) -> np.ndarray:
        addresses = self.addresses(i, m, address, stride)
        whole = b32 if i.type.bits < 32 else i.type
        element = whole if side_by_side(i) else TYPES[f"b{i.type.bits}"]
        loaded = np.stack([m.load(i.space or "generic", a, element) for a in addresses])
        if side_by_side(i):
            return loaded
        packed = 32 // i.type.bits
        registers = loaded.reshape(-1, packed, *address.shape)
        return np.ascontiguousarray(np.moveaxis(registers, 1, -1)).view(np.uint32)[..., 0]


class WmmaStore(WmmaAccess):
    """Store an accumulator fragment to memory."""

    stores = "address"
    forms = tuple(_memory_forms(
        "wmma.store.{use}.sync{aligned}.layout.shape{{.space}}.type [address:space], a:{held}*count{{, stride:u32}}",
        "c",
    ))  # fmt: skip

    def execute(self, i: Opcode, m: Step, address: np.ndarray, a: np.ndarray, stride: np.ndarray | None = None) -> None:
        addresses = self.addresses(i, m, address, stride)
        if side_by_side(i) or i.type.bits >= 32:
            element, values = b32 if i.type.bits < 32 else i.type, a
        else:
            element = TYPES[f"b{i.type.bits}"]
            parts = np.ascontiguousarray(a).view(f"u{element.bytes}").reshape(*a.shape, -1)
            values = np.moveaxis(parts, -1, 1).reshape(-1, *address.shape)
        for address, value in zip(addresses, values, strict=True):
            m.store(i.space or "generic", address, element, np.ascontiguousarray(value).view(element.dtype))


def _slots(type: Type) -> tuple[dict[str, Any], str, str]:
    """Return the additional modifiers of the products of a type, before and after the others."""
    typed = {} if type.name == "f16" else {"atype": (type,), "btype": (type,)}
    if type.name == "f64":
        return typed | {"rnd": "rn rz rm rp"}, "", "{.rnd}"
    if type.name == "b1":
        return typed | {"compare": "xor and"}, ".compare.popc", ""
    if type.name in ("s8", "u8", "s4", "u4"):
        return typed | {"satfinite": "satfinite"}, "", "{.satfinite}"
    return typed, "", ""


def _product_form(product: WmmaProduct, type: Type) -> Form:
    """Return one form of the product of two matrices of a type."""
    text = (
        "wmma.mma{flag}.sync{aligned}.alayout.blayout.shape{types} d=sums*count, a:{held}*a, b:{held}*b, c:old*count_c"
    )
    named = ".dtype.ctype" if type.name == "f16" else ".dtype.atype.btype.ctype"
    slots, flag, behind = _slots(type)
    counts = {use: (lambda i, use=use: fragment(use, i.shape, type).registers) for use in "ab"}
    derived: dict[str, Callable[[Values], Derived]] = {
        "sums": lambda i: TYPES[_held(i.dtype)],
        "old": lambda i: TYPES[_held(i.ctype)],
        "count": lambda i: fragment("c", i.shape, i.dtype).registers,
        "count_c": lambda i: fragment("c", i.shape, i.ctype).registers,
        **counts,
        **({"atype": lambda i: type, "btype": lambda i: type} if type.name == "f16" else {}),
    }
    return Form(
        text.format(flag=flag, types=named + behind, held=_held(type), aligned=_aligned(product)),
        derived=derived,
        alayout=product.layouts[0],
        blayout=product.layouts[1],
        shape=product.shapes,
        dtype=product.sums,
        ctype=product.sums,
        ptx=product.ptx,
        sm=product.sm,
        needs={**ALIGNED, "and": ("7.1", 80)},
        **slots,
    )


class WmmaMma(Op):
    """Multiply-accumulate fragments loaded by wmma.load: d = a * b + c."""

    collective = True
    forms = tuple(_product_form(product, TYPES[name]) for product in PRODUCTS for name in product.inputs)

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        yield from _unbraced(i, operands)

    def execute(self, i: Opcode, m: Step, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        size = Size.of(i.shape)
        left, right = (_matrix(use, i.shape, i.atype, x) for use, x in (("a", a), ("b", b)))
        old, part = _matrix("c", i.shape, i.ctype, c, as_numbers=False), fragment("c", i.shape, i.dtype)
        new = np.empty((len(old), size.m, size.n), _number(i.dtype))
        height = min(16, size.m)
        like = np.empty((height // 8, 2, size.m // height, 1, len(old), 32))
        for first in range(0, size.n, 8):
            strip = np.empty((len(old), size.m, 8), new.dtype)
            sums = np.ascontiguousarray(old[:, :, first : first + 8])
            columns = np.ascontiguousarray(right[:, :, first : first + 8].transpose(0, 2, 1))
            sums_of(i.dtype, m.numerics)(i, left, columns, arranged(sums, like), arranged(strip, like))
            new[:, :, first : first + 8] = strip
        held = np.ascontiguousarray(new[:, part.rows, part.columns].swapaxes(0, 1))
        return held.view(np.uint32)[..., 0] if i.dtype.bits == 16 else held[..., 0]


def _number(type: Type) -> np.dtype:
    return np.dtype(np.float16) if type.name == "f16" else type.dtype


def _matrix(use: str, shape: str, type: Type, held: np.ndarray, as_numbers: bool = True) -> np.ndarray:
    """Return the matrices (warps, rows, columns) in fragments (registers, warps, 32): A and B as f64, accumulators in
    their type.
    """
    part = fragment(use, shape, type)
    elements = np.ascontiguousarray(held)
    flat = values(elements, type) if as_numbers else elements.view(_number(type))
    matrix = np.empty((held.shape[1], *Size.of(shape).matrix(use)), flat.dtype)
    matrix[:, part.rows, part.columns] = flat.reshape(*held.shape, -1).swapaxes(0, 1)
    return matrix
