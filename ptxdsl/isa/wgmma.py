"""Matrix products of a warpgroup (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").

Four warps multiply 64 rows of A by N columns of B and add to sums in their registers. B, and A unless it is in
registers, are in shared memory, where a 64-bit descriptor says how they lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .. import ir
from ..layout.mma_shapes import WGMMA, WGMMA_M, WarpgroupProduct
from ..types import TYPES, Type, b32
from .form import Form
from .matrix import HELD_IN
from .opaque import GpuOnly
from .opcode import Opcode
from .operand import Problem

FLOATS = ("f16", "bf16", "tf32", "e4m3", "e5m2")
TRANSPOSED = ("f16", "bf16")
HOPPER = "90a"
THREADS = 128
A_REGISTERS = 4
DESCRIPTORS, REGISTERS = "a_desc:b64, b_desc:b64", f"a:held*{A_REGISTERS}, b_desc:b64"
METADATA = ", metadata:b32, selector:imm"
CONSTANTS = {"scale_a": (-1, 1), "scale_b": (-1, 1), "trans_a": (0, 1), "trans_b": (0, 1)}
WIDE_SELECTORS, NARROW_SELECTORS = (0, 1), (0,)
"""Which threads of each four hand over the metadata of a sparse A; of 8-bit types all do."""


def _held(type: Type) -> Type:
    """What a register holds of a matrix."""
    return TYPES.get(HELD_IN.get(type.name, ""), b32)


def _sums(i: Any) -> int:
    """Registers of sums that a thread has: of 64 x N elements its part, two to a register if they have 16 bits."""
    n = int(i.shape.partition("n")[2].partition("k")[0])
    return WGMMA_M * n * i.dtype.bits // (THREADS * 32)


def _note(element: str) -> str:
    if element in TRANSPOSED:
        return ""
    if element in FLOATS:
        return f"A and B of {element} are K-major; only f16 and bf16 can be transposed"
    return (
        f"A and B of {element} are K-major and taken as they are; only f16 and bf16 can be transposed, floats negated"
    )


def _form(product: WarpgroupProduct, sparse: bool, operands: str) -> Form:
    """A line of the manual: one group of types, A from registers or not."""
    element = product.inputs[0]
    name = "wgmma.mma_async" + (".sp" if sparse else "")
    flag = {"s8": "{.satfinite}", "b1": ".and.popc"}.get(element, "")
    last = ", scale_a:imm, scale_b:imm" if element in FLOATS else ""
    if element in TRANSPOSED:
        last += ", trans_b:imm" if operands == REGISTERS else ", trans_a:imm, trans_b:imm"
    depth = product.k * (2 if sparse else 1)
    return Form(
        f"{name}.sync.aligned.shape{flag}.dtype.atype.btype"
        f" d+sums*count, {operands}{METADATA if sparse else ''}, scale_d:flag{last}",
        shape=[f"m{WGMMA_M}n{n}k{depth}" for n in product.n],
        satfinite="satfinite",
        dtype=product.sums,
        atype=product.inputs,
        btype=product.inputs,
        derived={"sums": lambda i: _held(i.dtype), "held": lambda i: _held(i.atype), "count": _sums},
        ptx="8.2" if sparse else "8.0",
        sm=HOPPER,
        needs={"s8 u8": ("8.4", HOPPER)},
        note=_note(element),
    )


class WgmmaMmaAsync(GpuOnly):
    """d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group."""

    collective = True
    forms = tuple(
        _form(product, sparse, operands)
        for sparse in (False, True)
        for product in WGMMA
        if not (sparse and product.inputs == ("b1",))
        for operands in (DESCRIPTORS, REGISTERS)
    )

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            allowed = CONSTANTS.get(declared.name)
            if declared.name == "selector":
                allowed = WIDE_SELECTORS if i.atype.bits > 8 else NARROW_SELECTORS
            if allowed and isinstance(value, ir.Immediate) and value.value not in allowed:
                numbers = " or ".join(map(str, allowed))
                yield Problem(declared.name, f"`{declared.name}` is {value.value}; it must be {numbers}")


class WgmmaFence(GpuOnly):
    """Orders what the thread did with registers before the products that follow: needed before the first of them."""

    collective = True
    forms = (Form("wgmma.fence.sync.aligned", ptx="8.0", sm=HOPPER),)


class WgmmaCommitGroup(GpuOnly):
    """Makes a group of the products since the last one."""

    collective = True
    forms = (Form("wgmma.commit_group.sync.aligned", ptx="8.0", sm=HOPPER),)


class WgmmaWaitGroup(GpuOnly):
    """Waits until at most the `n` newest groups of products are under way; sums may be read of those that are done."""

    collective = True
    forms = (Form("wgmma.wait_group.sync.aligned n:imm", ptx="8.0", sm=HOPPER),)

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        if isinstance(operands[0], ir.Immediate) and operands[0].value < 0:
            yield Problem("n", f"`n` is {operands[0].value}; it counts groups, from 0")


class SetMaxNReg(GpuOnly):
    """Gives registers of the warps back (dec), or waits for more (inc), so that each thread has `count`."""

    collective = True
    forms = (
        Form("setmaxnreg.action.sync.aligned.u32 count:imm", action="inc dec", ptx="8.0", sm="90a 100f 110f 120f"),
    )

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        count = operands[0].value if isinstance(operands[0], ir.Immediate) else 24
        if not 24 <= count <= 256 or count % 8:
            nearest = min(range(24, 257, 8), key=lambda n: abs(n - count))
            message = f"`count` is {count} registers; it must be a multiple of 8 from 24 to 256"
            yield Problem("count", message, f"the nearest is {nearest}")
