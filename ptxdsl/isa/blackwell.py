"""Blackwell instructions other than tcgen05: cluster launch control, and ldmatrix and stmatrix on 8-bit elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import ir
from ..types import b8
from .bulk import BYTES, Bulk
from .cluster_address import in_block
from .form import Form
from .matrix import MatrixAccess
from .opcode import Op, Opcode
from .operand import OperandList, Problem
from .step import Pieces, Step

ANSWER_BYTES = 16
FAMILIES = "100f 110f 120f"


class TryCancel(Bulk):
    """Request cancellation of a cluster that has not launched; 16 bytes of response arrive at `dst`.

    Multicast writes the response to the same offset in each block of the cluster, and signals its mbarrier there.
    """

    stores = "dst"
    cancels_clusters = True
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

    def execute(self, i: Opcode, m: Step, dst: np.ndarray, mbarrier: np.ndarray) -> None:
        if not i.space:
            dst, mbarrier = m.specific("shared", dst), m.specific("shared", mbarrier)
        first = m.cancel_clusters()
        blocks = range(int(m.special("%cluster_nctarank").max())) if "multicast" in i.text else [None]
        for response in np.unique(first, axis=0):
            which = (first == response).all(1)
            fill = (np.array([*response, int(response[0] >= 0)]) ^ KEY).astype(np.uint32).tobytes()
            with m.only(which):
                outside = np.zeros((1, int(which.sum())), bool)
                answer = Pieces("global", outside.astype(np.uint64), ANSWER_BYTES, outside, fill)
                for rank in blocks:
                    to, at = (x[which] if rank is None else in_block(x[which], rank) for x in (dst, mbarrier))
                    m.load_bulk("shared::cta" if rank is None else "shared::cluster", to[np.newaxis], answer, at)


KEY = np.array([0, 0, 0, 0x5E1EC7ED], np.int64)
"""The emulator's response is the coordinates of the first block, then 1 or 0, whose bits differ by this key: other
bytes are no response.
"""


class QueryCancel(Op):
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

    def execute(self, i: Opcode, m: Step, answer: np.ndarray) -> np.ndarray:
        words = np.ascontiguousarray(answer).view(np.uint32)
        cancelled = words[..., 3] ^ np.uint32(KEY[3])
        if (cancelled > 1).any():
            message = "`answer` is not a response of clusterlaunchcontrol.try_cancel"
            m.fail("cluster", message, cancelled > 1, "load the 16 bytes at its `dst`, after the wait for its mbarrier")
        if "is_canceled" in i.text:
            return np.asarray(cancelled == 1)
        if (cancelled == 0).any():
            message = f"{i.text} decodes a response that says that no cluster was cancelled"
            m.fail("cluster", message, cancelled == 0, "execute it where `is_canceled` is true")
        return np.moveaxis(words, -1, 0) if i.axis is None else words[..., "xyz".index(i.axis[-1])]


SPACE: dict[str, Any] = {"space": "shared shared::cta", "ptx": "8.6", "sm": FAMILIES}


class BytesOfMatrix(MatrixAccess):
    """Base of ldmatrix and stmatrix on 8-bit elements."""

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        yield from super().problems(i, operands)
        vector = next(n for n, operand in enumerate(i.operands) if operand.vector)
        name = i.operands[vector].name
        if not isinstance(operands[vector], (ir.Vector, ir.Sink)) and i.num == "x1" and i.operands[vector].count > 1:
            yield Problem(name, f"`{name}` is not in braces", "write [a] in Python, {a} in PTX")


NARROW = "b6x16_p32 b4x16_p64"
LOADED = {"b6x16_p32": (8, 4), "b4x16_p64": (8,), None: (16,)}
"""The loads that read the data of a row of 16 elements; the rest of the 16 bytes is padding."""


class LdMatrixBytes(BytesOfMatrix):
    """Load matrices of 8-bit elements from shared memory; 4- and 6-bit elements are expanded to bytes, in the low bits.

    Of m8n16, lane 4g + t gets elements 4t to 4t + 3 of row g. m16n16 is transposed: lane 4g + t gets elements 4t to
    4t + 3 of columns g and g + 8. Each row is addressed by one lane.
    """

    forms = (
        Form(
            "ldmatrix.sync.aligned.m16n16.num.trans{.space}.b8 d=b32*count, [address:space]",
            num="x1 x2",
            derived={"count": lambda i: 2 * int(i.num[1:]), "rows": lambda i: 16},
            **SPACE,
        ),
        Form(
            "ldmatrix.sync.aligned.m8n16.num{.space}.b8x16.narrow d=b32*num, [address:space]",
            num="x1 x2 x4",
            narrow=NARROW,
            derived={"rows": lambda i: 8},
            **SPACE,
        ),
        Form(
            "ldmatrix.sync.aligned.m16n16.num.trans{.space}.b8x16.narrow d=b32*count, [address:space]",
            num="x1 x2",
            narrow=NARROW,
            derived={"count": lambda i: 2 * int(i.num[1:]), "rows": lambda i: 16},
            **SPACE,
        ),
    )

    def execute(self, i: Opcode, m: Step, address: np.ndarray) -> np.ndarray:
        address = address[..., : i.rows * int(i.num[1:])]
        pieces, at = [], 0
        for size in LOADED[i.narrow]:
            pieces.append(m.load(i.space or "generic", address + np.uint64(at), b8, size))
            at += size
        data = np.moveaxis(np.concatenate(pieces), 0, -1)
        elements = _expanded(data, i.narrow).reshape(len(address), -1, i.rows, 16)
        if i.rows == 16:  # columns, of which each register holds a quarter of one
            elements = elements.swapaxes(2, 3).reshape(len(address), -1, 2, 8, 16)
        words: np.ndarray = np.ascontiguousarray(elements).view(np.uint32).reshape(len(address), -1, 32)
        return words.swapaxes(0, 1)


def _expanded(data: np.ndarray, narrow: str | None) -> np.ndarray:
    """Return 16 elements, one per byte, of the bytes of each row."""
    if narrow is None:
        return data
    width = sum(LOADED[narrow]) * 8 // 16
    bits = np.unpackbits(data, axis=-1, bitorder="little").reshape(*data.shape[:-1], 16, width)
    return np.packbits(bits, axis=-1, bitorder="little")[..., 0]


class StMatrixBytes(BytesOfMatrix):
    """Store 16x8 matrices of 8-bit elements to shared memory, transposed: each of 8 addresses takes a column.

    Lane 4g + t holds elements 2t and 2t + 1 of row g, then those of row g + 8.
    """

    stores = "address"
    carries = ("a",)
    orders_lanes = True  # as in `StMatrix`
    forms = (
        Form("stmatrix.sync.aligned.m16n8.num.trans{.space}.b8 [address:space], a:b32*num", num="x1 x2 x4", **SPACE),
    )

    def execute(self, i: Opcode, m: Step, address: np.ndarray, a: np.ndarray) -> None:
        address, warps = self.rows(i, address), a.shape[1]
        rows = np.ascontiguousarray(a).view(np.uint8).reshape(-1, warps, 8, 4, 2, 2)  # matrix, g, t, row + 8, column
        elements = rows.transpose(4, 2, 1, 0, 3, 5).reshape(16, *address.shape)
        m.store(i.space or "generic", address, b8, elements)
