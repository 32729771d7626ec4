"""Barriers in shared memory that wait for bytes, and those of other blocks (PTX ISA, "mbarrier").

A phase of an mbarrier is complete when all have arrived that it waits for, and as many bytes as were expected. Bulk
copies complete what they have copied; `expect_tx` says beforehand how much that will be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .. import ir
from .form import Form
from .mbarrier import MOST, Mbarrier
from .opaque import GpuOnly
from .opcode import Opcode
from .operand import Problem

CLUSTER, ANYWHERE = "shared::cluster", "shared shared::cta shared::cluster"
LOCAL, REMOTE = "{.sem}{.scope}{.space}.b64", "{.sem}{.scope}.space.b64"
NEEDS = {"relaxed": ("8.6", 90), "cta": ("8.0", 90), "cluster": ("8.0", 90)}


def _ordered(i: Any) -> bool:
    return (i.sem is None) == (i.scope is None)


def _form(syntax: str, space: str, ptx: str = "8.0", sem: str = "release relaxed") -> Form:
    needs = NEEDS if sem != "relaxed" else {}
    return Form(syntax, sem=sem, scope="cta cluster", space=space, when=_ordered, needs=needs, ptx=ptx, sm=90)


class Transaction(Mbarrier, GpuOnly):
    """Base of what counts bytes at an mbarrier, or counts at that of another block."""

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        yield from super().problems(i, operands)
        for declared, value in zip(i.operands, operands, strict=True):
            if declared.name == "tx_count" and isinstance(value, ir.Immediate) and not 0 <= value.value <= MOST:
                help = "expect the bytes of several copies one after the other" if value.value > 0 else None
                yield Problem("tx_count", f"`tx_count` is {value.value} bytes; an mbarrier counts up to {MOST}", help)


class MbarrierArriveRemote(Transaction):
    """Counts `count` arrivals, or one, at an mbarrier of any block of the cluster; gives no state."""

    forms = (
        _form(f"mbarrier.arrive{REMOTE} _, [address:space]", CLUSTER),
        _form(f"mbarrier.arrive{REMOTE} _, [address:space], count:u32", CLUSTER),
    )


class MbarrierArriveDropRemote(Transaction):
    """As mbarrier.arrive at an mbarrier of any block of the cluster, and the later phases wait for as many fewer."""

    forms = (
        _form(f"mbarrier.arrive_drop{REMOTE} _, [address:space]", CLUSTER),
        _form(f"mbarrier.arrive_drop{REMOTE} _, [address:space], count:u32", CLUSTER),
    )


def _expecting(name: str) -> tuple[Form, ...]:
    return (
        _form(f"{name}.expect_tx{LOCAL} state=b64, [address:space], tx_count:u32", "shared shared::cta"),
        _form(f"{name}.expect_tx{REMOTE} _, [address:space], tx_count:u32", CLUSTER),
    )


class MbarrierArriveExpectTx(Transaction):
    """The phase waits for `tx_count` bytes more, then one arrival is counted; state = the phase that it belongs to."""

    forms = _expecting("mbarrier.arrive")


class MbarrierArriveDropExpectTx(Transaction):
    """As mbarrier.arrive.expect_tx, and the later phases wait for one arrival fewer."""

    forms = _expecting("mbarrier.arrive_drop")


class MbarrierExpectTx(Transaction):
    """The phase waits for `tx_count` bytes more."""

    forms = (_form(f"mbarrier.expect_tx{LOCAL} [address:space], tx_count:u32", ANYWHERE, sem="relaxed"),)


class MbarrierCompleteTx(Transaction):
    """The phase waits for `tx_count` bytes fewer, as if a copy of so many had ended; it copies nothing."""

    forms = (_form(f"mbarrier.complete_tx{LOCAL} [address:space], tx_count:u32", ANYWHERE, sem="relaxed"),)
