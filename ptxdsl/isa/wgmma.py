"""Matrix products of a warpgroup (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").

Four warps multiply 64 rows of A by N columns of B and add to accumulators in registers. B is in shared memory, and so
is A unless it is in registers; a 64-bit descriptor gives the layout of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import ir
from ..layout.descriptors import OPERAND_K_BYTES
from ..layout.mma_shapes import WGMMA, WGMMA_M, WarpgroupProduct
from ..types import TYPES, Type, b32
from .form import Form
from .matrix import HELD_IN
from .opcode import Op, Opcode
from .operand import Problem
from .sparse import checked_columns, nibbles
from .step import Awaited, Step
from .warpgroup import (
    WARPS,
    Factors,
    chunks_of,
    extents,
    is_sparse,
    multiply_add,
    to_matrix,
    to_registers,
)

FLOATS = ("f16", "bf16", "tf32", "e4m3", "e5m2")
TRANSPOSED = ("f16", "bf16")
HOPPER = "90a"
THREADS = 128
A_REGISTERS = 4
DESCRIPTORS, REGISTERS = "a_desc:b64, b_desc:b64", f"a:held*{A_REGISTERS}, b_desc:b64"
METADATA = ", metadata:b32, selector:imm"
CONSTANTS = {"scale_a": (-1, 1), "scale_b": (-1, 1), "trans_a": (0, 1), "trans_b": (0, 1)}
WIDE_SELECTORS, NARROW_SELECTORS = (0, 1), (0,)
"""The threads of each four that supply the metadata of a sparse A; for 8-bit types all do."""


def _held(type: Type) -> Type:
    """Return the register type that holds elements of a matrix."""
    return TYPES.get(HELD_IN.get(type.name, ""), b32)


def _sums(i: Any) -> int:
    """Return the number of accumulator registers per thread for 64 x N elements, two per register for 16-bit types."""
    n = int(i.shape.partition("n")[2].partition("k")[0])
    return WGMMA_M * n * i.dtype.bits // (THREADS * 32)


def _note(element: str) -> str:
    if element in TRANSPOSED:
        return ""
    if element in FLOATS:
        return f"A and B of {element} are K-major; only f16 and bf16 can be transposed"
    return f"A and B of {element} are K-major and not negated; only f16 and bf16 can be transposed, only floats negated"


def _form(product: WarpgroupProduct, sparse: bool, operands: str) -> Form:
    """Return one form of wgmma.mma_async: a group of types, with A from registers or shared memory."""
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


class WgmmaMmaAsync(Op):
    """Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false."""

    async_proxy = True
    collective = True
    warps = WARPS
    late = True
    carries = ("d",)
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

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        named = dict(zip((o.name for o in i.operands if o.read or o.role == "both"), inputs, strict=True))
        transposed = bool(named.get("trans_a", 0)), bool(named.get("trans_b", 0))
        order, n = m.warpgroups(), extents(i)[0]
        depths = OPERAND_K_BYTES, OPERAND_K_BYTES * (2 if is_sparse(i) else 1)
        read, described = [], []
        for name, rows, turned, depth in zip(("a_desc", "b_desc"), (WGMMA_M, n), transposed, depths, strict=True):
            if name in named:
                descriptors = uniform(m, order, name, named[name])
                read.append(chunks_of(order, descriptors, rows, turned, depth))
                described.append((name[0].upper(), len(read[-1]), descriptors))
        accumulates = uniform(m, order, "scale_d", np.asarray(named["scale_d"]))
        negated = named.get("scale_a", 1) * named.get("scale_b", 1) < 0
        split = len(read[0]) if len(read) > 1 else 0
        sparse = _columns(i, m, named) if is_sparse(i) else None
        chunks = np.concatenate(read)
        m.multiply_late(Factors(chunks, split, accumulates, negated, transposed, tuple(described), sparse))

    def matrix(self, i: Opcode, held: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Return accumulators (warpgroups, rows, N) from registers; `order` as in `to_matrix`."""
        return to_matrix(i, held, order)

    def registers(self, i: Opcode, sums: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Return registers from accumulators (warpgroups, rows, N)."""
        return to_registers(i, sums, order)

    def carry_out(
        self,
        i: Opcode,
        m: Step,
        order: np.ndarray,
        sums: np.ndarray | None,
        factors: Sequence[Factors],
        held: Sequence[np.ndarray],
        chunks: Sequence[np.ndarray],
    ) -> np.ndarray:
        """Return the accumulators after consecutive products of the same kind; see `multiply_add`."""
        return multiply_add(m, i, order, sums, factors, held, chunks)


def _columns(i: Opcode, m: Step, named: dict[str, Any]) -> np.ndarray:
    """Return the positions of the elements of a sparse A, and report invalid metadata."""
    metadata = np.broadcast_to(named["metadata"], m.shape)
    return checked_columns(m, i.atype, nibbles(i.atype, extents(i)[1], metadata, int(named["selector"])), True)


def uniform(m: Step, order: np.ndarray, name: str, values: np.ndarray) -> np.ndarray:
    """Return the value of an operand for each warp, and report warpgroups whose lanes disagree."""
    by_warp = np.broadcast_to(values, m.shape)
    same = by_warp[:, 0]
    firsts = same[order]
    if (by_warp == same[:, np.newaxis]).all() and (firsts == firsts[:, :1]).all():
        return same
    same = same.copy()
    same[order] = firsts[:, :1]
    m.fail(
        "divergent-collective",
        f"`{name}` differs between the threads of a warpgroup",
        by_warp != same[:, np.newaxis],
        "compute it from values that are uniform across all 128 threads",
    )
    return same


class WgmmaFence(Op):
    """Order prior register accesses before subsequent wgmma.mma_async; required before the first."""

    async_proxy = True
    collective = True
    warps = WARPS
    forms = (Form("wgmma.fence.sync.aligned", ptx="8.0", sm=HOPPER),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.fence_products()


class WgmmaCommitGroup(Op):
    """Commit all prior wgmma.mma_async as a wgmma-group."""

    async_proxy = True
    collective = True
    warps = WARPS
    forms = (Form("wgmma.commit_group.sync.aligned", ptx="8.0", sm=HOPPER),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.commit_products()


class WgmmaWaitGroup(Op):
    """Wait until at most the `n` latest wgmma-groups are pending; results of completed groups may be read."""

    async_proxy = True
    collective = True
    warps = WARPS
    forms = (Form("wgmma.wait_group.sync.aligned n:imm", ptx="8.0", sm=HOPPER),)

    def execute(self, i: Opcode, m: Step, n: int) -> None:
        m.wait_products(n)

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        if isinstance(operands[0], ir.Immediate) and operands[0].value < 0:
            yield Problem("n", f"`n` is {operands[0].value}; a number of groups is at least 0")


class SetMaxNReg(Op):
    """Release registers of the warp (.dec), or request more (.inc), so that each thread has `count`."""

    awaits = Awaited.REGISTERS
    collective = True
    warps = WARPS
    forms = (
        Form("setmaxnreg.action.sync.aligned.u32 count:imm", action="inc dec", ptx="8.0", sm="90a 100f 110f 120f"),
    )

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        count = operands[0].value if isinstance(operands[0], ir.Immediate) else 24
        if not 24 <= count <= 256 or count % 8:
            nearest = min(range(24, 257, 8), key=lambda n: abs(n - count))
            message = f"`count` is {count} registers; it must be a multiple of 8 from 24 to 256"
            yield Problem("count", message, f"the nearest is {nearest}")

    def execute(self, i: Opcode, m: Step, count: int) -> None:
        m.change_registers(count, i.action == "inc")
