"""The lifetime of mbarrier objects: they are opaque from `mbarrier.init` to `mbarrier.inval`.

Other accesses to their bytes, and another `mbarrier.init`, have undefined behaviour (PTX ISA, "mbarrier").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...isa.step import INITIALISATION
from ..memory.access import UPDATES, WRITES, Access, Observer, Origin
from ..memory.regions import Region
from ..run.residents import Residents

_OBJECT_BYTES = 8


@dataclass(frozen=True, eq=False, slots=True)
class _Object:
    """The instruction that initialised an mbarrier, or that invalidated it."""

    origin: Origin
    is_live: bool


class MbarrierObjects(Observer):
    """Reports accesses to shared memory that mbarriers occupy, and operations on invalidated ones.

    `marks` flags the 8-byte words of objects that were ever initialised, by their place in shared memory.
    """

    def __init__(self, shared: Callable[[], Region]) -> None:
        self.shared = shared
        self.objects: dict[int, _Object] = {}

    def settle(self, residents: Residents) -> None:
        self.memory, self.objects = self.shared(), {}
        self.marks = np.zeros(len(self.memory.data) // _OBJECT_BYTES + 2, bool)

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        stride, old = self.memory.stride, self.objects
        self.settle(residents)
        for flat, known in old.items():
            if (slot := int(slots[flat // stride])) >= 0:
                self._note(slot * stride + flat % stride, known)

    def _note(self, flat: int, known: _Object) -> None:
        self.objects[flat] = known
        self.marks[flat // _OBJECT_BYTES] = True

    def access(self, access: Access) -> None:
        is_begun = access.ordering == INITIALISATION and access.kind == WRITES
        if access.region is not self.memory or not (self.objects or is_begun):
            return
        flat = access.flat.reshape(-1)
        number = np.arange(len(flat)) if access.allowed is None else np.flatnonzero(access.allowed)
        words = flat[number] // _OBJECT_BYTES
        touched = self.marks[words] | self.marks[(flat[number] + access.size - 1) // _OBJECT_BYTES]
        if touched.any():
            self._check(access, flat, number[touched])
        if access.ordering == INITIALISATION:
            known = _Object(access.by.origin, access.kind == WRITES)
            for each in flat[number].tolist():
                self._note(each, known)

    def _check(self, access: Access, flat: np.ndarray, touched: np.ndarray) -> None:
        """Report the accesses, by number, that an object does not allow."""
        begins = access.ordering == INITIALISATION and access.kind == WRITES
        completes = access.asynchronous and access.kind == UPDATES  # bytes of a copy
        operates = access.ordering.proxy == "mbarrier" or completes
        for number in touched.tolist():
            for start in range(int(flat[number]) // _OBJECT_BYTES * _OBJECT_BYTES, int(flat[number]) + access.size, 8):
                known = self.objects.get(start)
                wrong = known is not None and (not known.is_live if operates and not begins else known.is_live)
                if known is not None and wrong:
                    self._report(access, number, start, known)
                    return

    def _report(self, access: Access, number: int, start: int, known: _Object) -> None:
        address = int(access.address.reshape(-1)[number]) + start - int(access.flat.reshape(-1)[number])
        holder = access.region.table.before(address)
        where = holder.at(address) if holder else f"address {address:#x}"
        line = f" (line {known.origin.location.line})" if known.origin.location is not None else ""
        if not known.is_live:
            message = f"{access.by.name} uses the mbarrier {where} after {known.origin.name}{line} has invalidated it"
            help = "initialise it again with mbarrier.init"
        elif access.ordering == INITIALISATION:
            message = (
                f"{access.by.name} initialises the mbarrier {where} again, which {known.origin.name}{line} initialised"
            )
            help = (
                "initialise each mbarrier once, or execute mbarrier.inval when no thread and no copy uses it any more"
            )
        else:
            message = (
                f"{access.by.name} {access.kind} the mbarrier {where}, an opaque object since {known.origin.name}{line}"
            )
            help = "execute mbarrier.inval before this, when no thread and no copy uses the mbarrier any more"
        which = np.zeros(access.address.shape, bool)
        which.reshape(-1)[number] = True
        others = [known.origin.location] if known.origin.location is not None else []
        access.by.finding("mbarrier", message, which, others, help)
