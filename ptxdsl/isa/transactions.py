"""Transaction barriers, and mbarriers of other blocks (PTX ISA, "mbarrier").

A phase of an mbarrier completes when all expected arrivals have occurred and all expected bytes have completed. Bulk
copies complete the bytes that they copy; `expect_tx` announces the bytes beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import ir
from .form import Form
from .mbarrier import MOST, Arrival, Mbarrier, arrive, change_object, count_down, drop, expect, pending_bytes
from .opcode import Opcode
from .operand import Problem
from .step import Ordering, Step

CLUSTER, ANYWHERE = "shared::cluster", "shared shared::cta shared::cluster"
LOCAL, REMOTE = "{.sem}{.scope}{.space}.b64", "{.sem}{.scope}.space.b64"
NEEDS = {"relaxed": ("8.6", 90), "cta": ("8.0", 90), "cluster": ("8.0", 90)}


def _ordered(i: Any) -> bool:
    return (i.sem is None) == (i.scope is None)


def _form(syntax: str, space: str, ptx: str = "8.0", sem: str = "release relaxed") -> Form:
    needs = NEEDS if sem != "relaxed" else {}
    return Form(syntax, sem=sem, scope="cta cluster", space=space, when=_ordered, needs=needs, ptx=ptx, sm=90)


class Transaction(Mbarrier):
    """Base of the instructions that update the tx-count of an mbarrier."""

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        yield from super().problems(i, operands)
        for declared, value in zip(i.operands, operands, strict=True):
            if declared.name == "tx_count" and isinstance(value, ir.Immediate) and not 0 <= value.value <= MOST:
                help = "use several expect_tx, one for each copy" if value.value > 0 else None
                yield Problem("tx_count", f"`tx_count` is {value.value} bytes; an mbarrier counts up to {MOST}", help)


def count_bytes(m: Step, space: str, address: np.ndarray, bytes: np.ndarray) -> None:
    """Increase the tx-count of mbarriers."""
    state = change_object(m, space, address, expect, bytes, None)
    total = pending_bytes(state) + bytes
    beyond = abs(total) > MOST
    if beyond.any():
        message = f"the phase of the mbarrier expects {int(total[beyond][0])} bytes; an mbarrier counts up to {MOST}"
        m.fail("mbarrier", message, beyond, "expect fewer bytes per phase, or use more mbarriers")


class MbarrierArriveRemote(Arrival):
    """Arrive at an mbarrier of any block of the cluster, `count` times or once; returns no state."""

    forms = (
        _form(f"mbarrier.arrive{REMOTE} _, [address:space]", CLUSTER),
        _form(f"mbarrier.arrive{REMOTE} _, [address:space], count:u32", CLUSTER),
    )


class MbarrierArriveDropRemote(Arrival):
    """Arrive at an mbarrier of any block of the cluster, and decrease the expected arrivals of all later phases."""

    change = staticmethod(drop)

    forms = (
        _form(f"mbarrier.arrive_drop{REMOTE} _, [address:space]", CLUSTER),
        _form(f"mbarrier.arrive_drop{REMOTE} _, [address:space], count:u32", CLUSTER),
    )


def _expecting(name: str) -> tuple[Form, ...]:
    return (
        _form(f"{name}.expect_tx{LOCAL} state=b64, [address:space], tx_count:u32", "shared shared::cta"),
        _form(f"{name}.expect_tx{REMOTE} _, [address:space], tx_count:u32", CLUSTER),
    )


class ExpectingArrival(Transaction):
    """Base of arrivals that first increase the tx-count; `change` is their effect on the object."""

    change = staticmethod(arrive)

    def execute(self, i: Opcode, m: Step, address: np.ndarray, tx_count: np.ndarray) -> np.ndarray:
        space = i.space or "generic"
        count_bytes(m, space, address, tx_count.astype(np.int64))
        ordering = Ordering(i.sem or "release", i.scope or "cta")
        return count_down(m, space, address, self.change, np.ones(m.shape, np.uint64), ordering)


class MbarrierArriveExpectTx(ExpectingArrival):
    """Expect `tx_count` more bytes in the current phase of an mbarrier, then arrive once; state = that phase."""

    forms = _expecting("mbarrier.arrive")


class MbarrierArriveDropExpectTx(ExpectingArrival):
    """Expect `tx_count` more bytes, arrive once, and expect one arrival fewer in all later phases."""

    change = staticmethod(drop)
    forms = _expecting("mbarrier.arrive_drop")


class ByteCount(Transaction):
    """Base of instructions that only change the tx-count; `sign` is 1 to increase it, -1 to decrease it."""

    sign = 1

    def execute(self, i: Opcode, m: Step, address: np.ndarray, tx_count: np.ndarray) -> None:
        count_bytes(m, i.space or "generic", address, self.sign * tx_count.astype(np.int64))


class MbarrierExpectTx(ByteCount):
    """Expect `tx_count` more bytes in the current phase of an mbarrier."""

    forms = (_form(f"mbarrier.expect_tx{LOCAL} [address:space], tx_count:u32", ANYWHERE, sem="relaxed"),)


class MbarrierCompleteTx(ByteCount):
    """Simulate completion of `tx_count` bytes in the current phase of an mbarrier; nothing is copied."""

    sign = -1
    forms = (_form(f"mbarrier.complete_tx{LOCAL} [address:space], tx_count:u32", ANYWHERE, sem="relaxed"),)
