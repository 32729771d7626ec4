"""Tensor memory of Blackwell: allocation, copies, waits (PTX ISA, "TensorCore 5th Generation Family Instructions").

Tensor memory has 128 lanes of up to 512 columns of 32 bits. The upper half of an address is the lane, the lower half
the column. Copies and products are asynchronous.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from .. import ir
from ..layout.tensor_memory import REGISTERS_OF, fragment
from ..types import f32
from .bulk import Bulk
from .cluster_address import in_block
from .form import Form, Values
from .opcode import Op, Opcode
from .operand import OperandList, Problem
from .step import Awaited, Step
from .tensor_copy import copies
from .tensor_shift import shifts
from .warp import least_or_greatest

FAMILIES = "100f 110f"
ONE_ARCHITECTURE = "100a 103a 110a"
LEAST: dict[str, Any] = {"ptx": "8.6", "sm": FAMILIES}
GROUPS = "cta_group::1 cta_group::2"
COLUMNS = (32, 64, 128, 256, 512)
MOST_REGISTERS = 128
REPEATS = "x1 x2 x4 x8 x16 x32 x64 x128"


def _registers(i: Values) -> int:
    return REGISTERS_OF[i.shape or "16x32bx2"] * int(i.num[1:])


SHAPED: dict[str, Any] = {
    "shape": "32x32b 16x64b 16x128b 16x256b", "num": REPEATS, "derived": {"count": _registers},
    "when": lambda i: _registers(i) <= MOST_REGISTERS, **LEAST,
}  # fmt: skip
HALVES: dict[str, Any] = {"num": REPEATS, "derived": {"count": _registers}, **LEAST}


class TensorAccess(Op):
    """Base of warp-wide accesses to tensor memory."""

    collective = True
    tensor_memory = True

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            if declared.name == "columns" and isinstance(value, ir.Immediate) and value.value not in COLUMNS:
                message = f"`columns` is {value.value}; the number of columns is a power of two from 32 to 512"
                yield Problem("columns", message)
            if declared.vector and not isinstance(value, ir.Vector):
                message = f"`{declared.name}` is not in braces; tensor memory instructions take registers as a list"
                yield Problem(declared.name, message, "write [r] in Python, {r} in PTX")


class Tcgen05Alloc(TensorAccess):
    """Allocate columns of tensor memory, blocking until available, and write their address to shared memory."""

    stores = "dst"
    awaits = Awaited.TENSOR_MEMORY
    forms = (
        Form(
            "tcgen05.alloc.ctas.sync.aligned{.space}.b32 [dst:space], columns:u32",
            ctas=GROUPS,
            space="shared::cta",
            **LEAST,
        ),
    )

    def execute(self, i: Opcode, m: Step, address: np.ndarray, columns: np.ndarray) -> None:
        m.tensor.allocate(m, i.ctas, i.space or "generic", address, columns)


class Tcgen05Dealloc(TensorAccess):
    """Deallocate columns of tensor memory."""

    awaits = Awaited.TENSOR_MEMORY
    forms = (Form("tcgen05.dealloc.ctas.sync.aligned.b32 address:b32, columns:u32", ctas=GROUPS, **LEAST),)

    def execute(self, i: Opcode, m: Step, address: np.ndarray, columns: np.ndarray) -> None:
        m.tensor.deallocate(m, i.ctas, address, columns)


class Tcgen05RelinquishAllocPermit(TensorAccess):
    """Relinquish the right of the block to allocate tensor memory."""

    awaits = Awaited.TENSOR_MEMORY
    forms = (Form("tcgen05.relinquish_alloc_permit.ctas.sync.aligned", ctas=GROUPS, **LEAST),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.tensor.relinquish(m, i.ctas)


class Tcgen05Ld(TensorAccess):
    """Load registers asynchronously from tensor memory; complete after tcgen05.wait::ld."""

    arrives_late = True
    forms = (
        Form("tcgen05.ld.sync.aligned.shape.num{.pack::16b}.b32 d=b32*count, [address:tmem]", **SHAPED),
        Form(
            "tcgen05.ld.sync.aligned.16x32bx2.num{.pack::16b}.b32 d=b32*count, [address:tmem], second_half:imm",
            **HALVES,
        ),
    )

    def execute(self, i: Opcode, m: Step, address: np.ndarray, second_half: int = 0) -> None:
        cells = fragment(i.shape or "16x32bx2", int(i.num[1:]), bool(i.pack_16b), second_half)
        m.tensor.load(m, cells, address)


REDUCED: dict[str, Any] = {
    "num": REPEATS.removeprefix("x1 "), "operation": "min max", "derived": {"count": _registers}, "ptx": "8.8",
    "sm": "103f 110f",
}  # fmt: skip


class Tcgen05LdRed(TensorAccess):
    """Load from tensor memory as tcgen05.ld, and reduce: reduced = the minimum or maximum of the thread's registers."""

    arrives_late = True
    forms = tuple(
        Form(
            f"tcgen05.ld.red.sync.aligned.{front}.type d=type*count, reduced=type, [address:tmem]{back}",
            type=types,
            **REDUCED,
        )
        for shape, back in (("32x32b", ""), ("16x32bx2", ", second_half:imm"))
        for front, types in (
            (f"{shape}.num.operation{{.abs}}{{.NaN}}", "f32"),
            (f"{shape}.num.operation", "u32 s32"),
        )
    )

    def execute(self, i: Opcode, m: Step, address: np.ndarray, second_half: int = 0) -> None:
        cells = fragment("16x32bx2" if "16x32bx2" in i.text else "32x32b", int(i.num[1:]), False, second_half)
        m.tensor.load(m, cells, address, partial(_reduced, i))


def _reduced(i: Opcode, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return registers, (registers, warps, 32), in the type of an instruction, and their minimum or maximum."""
    numbers = words.view(i.type.dtype)
    each = np.moveaxis(numbers, 0, -1)
    if i.type is f32:
        return numbers, least_or_greatest(i, each, np.ones(each.shape, bool))[..., 0]
    return numbers, (np.min if i.operation == "min" else np.max)(each, axis=-1)


class Tcgen05St(TensorAccess):
    """Store registers asynchronously to tensor memory; complete after tcgen05.wait::st."""

    carries = ("a",)
    forms = (
        Form("tcgen05.st.sync.aligned.shape.num{.unpack::16b}.b32 [address:tmem], a:b32*count", **SHAPED),
        Form(
            "tcgen05.st.sync.aligned.16x32bx2.num{.unpack::16b}.b32 [address:tmem], second_half:imm, a:b32*count",
            **HALVES,
        ),
    )

    def execute(self, i: Opcode, m: Step, address: np.ndarray, *others: Any) -> None:
        *second_half, registers = others
        cells = fragment(i.shape or "16x32bx2", int(i.num[1:]), bool(i.unpack_16b), *second_half)
        m.tensor.store(m, cells, address, registers)


class Tcgen05Wait(TensorAccess):
    """Wait until all prior tcgen05.ld, or tcgen05.st, of the thread are complete."""

    forms = (Form("tcgen05.access.sync.aligned", access="wait::ld wait::st", **LEAST),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.tensor.wait(m, i.access == "wait::ld")


class Tcgen05Fence(Op):
    """Order the thread's tcgen05 instructions before, or after, a thread synchronisation."""

    tensor_memory = True
    forms = (Form("tcgen05.order", order="fence::before_thread_sync fence::after_thread_sync", **LEAST),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.tensor.fence(m, i.order == "fence::before_thread_sync")


FORMATS: dict[str, Any] = {
    "ctas": GROUPS, "narrow": "b6x16_p32 b4x16_p64", "when": lambda i: bool(i.b8x16) == bool(i.narrow), **LEAST,
}  # fmt: skip


class Tcgen05Cp(Op):
    """Copy from shared to tensor memory asynchronously; elements of 4 or 6 bits may be expanded to bytes."""

    async_proxy = True
    tensor_memory = True
    forms = (
        Form(
            "tcgen05.cp.ctas.shape{.b8x16}{.narrow} [address:tmem], source_desc:b64",
            shape="128x256b 4x256b 128x128b",
            **FORMATS,
        ),
        Form(
            "tcgen05.cp.ctas.64x128b.warps{.b8x16}{.narrow} [address:tmem], source_desc:b64",
            warps="warpx2::02_13 warpx2::01_23",
            **FORMATS,
        ),
        Form("tcgen05.cp.ctas.32x128b.warpx4{.b8x16}{.narrow} [address:tmem], source_desc:b64", **FORMATS),
    )

    def execute(self, i: Opcode, m: Step, address: np.ndarray, source_desc: np.ndarray) -> None:
        for which, copy in copies(m, i, address, source_desc):
            m.tensor.issue(m, i.ctas, which, copy)


class Tcgen05Shift(Op):
    """Shift 32 bytes of 32 rows of tensor memory by one row asynchronously: each row but the last takes the next."""

    tensor_memory = True
    forms = (Form("tcgen05.shift.ctas.down [address:tmem]", ctas=GROUPS, ptx="8.6", sm=ONE_ARCHITECTURE),)

    def execute(self, i: Opcode, m: Step, address: np.ndarray) -> None:
        for which, shift in shifts(m, i, address):
            m.tensor.issue(m, i.ctas, which, shift)


class Tcgen05Commit(Bulk):
    """Make an mbarrier, or one per block in `cta_mask`, track completion of the thread's prior tcgen05 operations."""

    tensor_memory = True
    forms = (
        Form(
            "tcgen05.commit.ctas.mbarrier::arrive::one{.space}{.multicast::cluster}.b64"
            " [mbarrier:space]{, cta_mask:u16 if multicast_cluster}",
            ctas=GROUPS,
            space="shared::cluster",
            **LEAST,
        ),
    )

    def execute(self, i: Opcode, m: Step, mbarrier: np.ndarray, cta_mask: np.ndarray | None = None) -> None:
        space = i.space or "generic"
        if cta_mask is None:
            m.tensor.commit(m, i.ctas, space, mbarrier)
            return
        if space == "generic":
            mbarrier = m.specific("shared", mbarrier)
        for rank in range(int(np.bitwise_or.reduce(cta_mask)).bit_length()):
            which = (cta_mask >> np.uint16(rank) & np.uint16(1)).astype(bool)
            if which.any():
                with m.only(which):
                    m.tensor.commit(m, i.ctas, "shared::cluster", in_block(mbarrier[which], rank))
