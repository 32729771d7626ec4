"""Blackwell instructions other than tcgen05: cluster launch control, and ldmatrix and stmatrix on 8-bit elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import ir
from .bulk import BYTES, MBARRIER_BYTES
from .form import Form
from .memory import alignment_problems
from .opaque import GpuOnly
from .opcode import Opcode
from .operand import OperandList, Problem

ANSWER_BYTES = 16
FAMILIES = "100f 110f 120f"


class TryCancel(GpuOnly):
    """Request cancellation of a cluster that has not launched; 16 bytes of response arrive at `dst`."""

    stores = "dst"
    forms = (
        Form(
            f"clusterlaunchcontrol.try_cancel.async{{.space}}.{BYTES}{{.multicast::cluster::all}}.b128"
            " [dst:space], [mbarrier:space]",
            space="shared::cta",
            needs={"multicast::cluster::all": ("8.6", FAMILIES)},
            ptx="8.6",
            sm=100,
        ),
    )

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        yield from alignment_problems("dst", operands[0], ANSWER_BYTES)
        yield from alignment_problems("mbarrier", operands[1], MBARRIER_BYTES)


class QueryCancel(GpuOnly):
    """Decode a try_cancel response: whether a cluster was cancelled, and the ctaid of its first block."""

    forms = (
        Form("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p=pred, answer:b128", ptx="8.6", sm=100),
        Form("clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 d=b32*4, answer:b128", ptx="8.6", sm=100),
        Form(
            "clusterlaunchcontrol.query_cancel.axis.b32.b128 d=b32, answer:b128",
            axis="get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z",
            ptx="8.6",
            sm=100,
        ),
    )


class MatrixOfBytes(GpuOnly):
    """Base of ldmatrix and stmatrix on 8-bit elements."""

    collective = True

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        names = [operand.name for operand in i.operands]
        yield from alignment_problems("address", operands[names.index("address")], 16)
        vector = next(n for n, operand in enumerate(i.operands) if operand.vector)
        if not isinstance(operands[vector], (ir.Vector, ir.Sink)) and i.num == "x1" and i.operands[vector].count > 1:
            yield Problem(names[vector], f"`{names[vector]}` is not in braces", "write [a] in Python, {a} in PTX")


SPACE: dict[str, Any] = {"space": "shared shared::cta", "ptx": "8.6", "sm": FAMILIES}


class LdMatrixBytes(MatrixOfBytes):
    """Load matrices of 8-bit elements from shared memory; 4- and 6-bit elements are expanded to bytes."""

    forms = (
        Form(
            "ldmatrix.sync.aligned.m16n16.num.trans{.space}.b8 d=b32*count, [address:space]",
            num="x1 x2",
            derived={"count": lambda i: 2 * int(i.num[1:])},
            **SPACE,
        ),
        Form(
            "ldmatrix.sync.aligned.m8n16.num{.space}.b8x16.narrow d=b32*num, [address:space]",
            num="x1 x2 x4",
            narrow="b6x16_p32 b4x16_p64",
            **SPACE,
        ),
        Form(
            "ldmatrix.sync.aligned.m16n16.num.trans{.space}.b8x16.narrow d=b32*count, [address:space]",
            num="x1 x2",
            narrow="b6x16_p32 b4x16_p64",
            derived={"count": lambda i: 2 * int(i.num[1:])},
            **SPACE,
        ),
    )


class StMatrixBytes(MatrixOfBytes):
    """Store matrices of 8-bit elements to shared memory."""

    stores = "address"
    forms = (
        Form("stmatrix.sync.aligned.m16n8.num.trans{.space}.b8 [address:space], a:b32*num", num="x1 x2 x4", **SPACE),
    )
