"""The lifetime of mbarrier objects: they are opaque from `mbarrier.init` to `mbarrier.inval`.

Other accesses to their bytes, and another `mbarrier.init`, have undefined behaviour (PTX ISA, "mbarrier").
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...isa.step import INITIALISATION
from ..memory.access import UPDATES, WRITES, Access, Observer, Origin
from ..memory.regions import CHUNK, Region
from ..run.residents import Residents

_OBJECT_BYTES = 8


class MbarrierObjects(Observer):
    """Reports accesses to shared memory that mbarriers occupy, and operations on invalidated ones.

    `live` and `invalid` flag 8-byte words of shared memory; `origins` has the last mbarrier.init or .inval of each.
    """

    def __init__(self, shared: Callable[[], Region]) -> None:
        self.shared = shared
        self.origins: dict[int, Origin] = {}

    def settle(self, residents: Residents) -> None:
        self.memory, self.origins = self.shared(), {}
        chunks = len(self.memory.data) // CHUNK + 1
        self.live, self.invalid = np.zeros((2, chunks * CHUNK // _OBJECT_BYTES), bool)

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        each, origins, live = self.memory.stride // _OBJECT_BYTES, self.origins, self.live
        self.settle(residents)
        for word, origin in origins.items():
            if (slot := int(slots[word // each])) >= 0:
                self._note(np.array([slot * each + word % each]), origin, bool(live[word]))

    def _note(self, words: np.ndarray, origin: Origin, is_live: bool) -> None:
        self.live[words], self.invalid[words] = is_live, not is_live
        self.origins |= dict.fromkeys(words.tolist(), origin)

    def access(self, access: Access) -> None:
        changes = access.ordering == INITIALISATION
        begins = changes and access.kind == WRITES
        if access.region is not self.memory or not (self.origins or begins):
            return
        flat = access.flat.reshape(-1)
        completes = access.asynchronous and access.kind == UPDATES  # bytes of a copy
        operates = access.ordering.proxy == "mbarrier" or completes
        wrong = self.invalid if operates and not begins else self.live
        if access.size == CHUNK and not wrong.view(np.uint16).take(flat // CHUNK).any():
            return
        number = np.arange(len(flat)) if access.allowed is None else np.flatnonzero(access.allowed)
        first, last = flat[number] // _OBJECT_BYTES, (flat[number] + access.size - 1) // _OBJECT_BYTES
        which = wrong[first] | wrong[last]
        if which.any():
            access.misuses = True
            n = int(np.argmax(which))
            word = int(first[n] if wrong[first[n]] else last[n])
            self._report(access, int(number[n]), word, not operates or begins)
        if changes:
            self._note(first, access.by.origin, begins)

    def _report(self, access: Access, number: int, word: int, is_live: bool) -> None:
        """Report an access, by number, to a word of a live object, or an operation on an invalidated one."""
        address = int(access.address.reshape(-1)[number]) + word * _OBJECT_BYTES - int(access.flat.reshape(-1)[number])
        known = self.origins[word]
        holder = access.region.table.before(address)
        where = holder.at(address) if holder else f"address {address:#x}"
        line = f" (line {known.location.line})" if known.location is not None else ""
        if not is_live:
            message = f"{access.by.name} uses the mbarrier {where} after {known.name}{line} has invalidated it"
            help = "initialise it again with mbarrier.init"
        elif access.ordering == INITIALISATION:
            message = f"{access.by.name} initialises the mbarrier {where} again, which {known.name}{line} initialised"
            help = (
                "initialise each mbarrier once, or execute mbarrier.inval when no thread and no copy uses it any more"
            )
        else:
            message = f"{access.by.name} {access.kind} the mbarrier {where}, an opaque object since {known.name}{line}"
            help = "execute mbarrier.inval before this, when no thread and no copy uses the mbarrier any more"
        which = np.zeros(access.address.shape, bool)
        which.reshape(-1)[number] = True
        others = [known.location] if known.location is not None else []
        access.by.finding("mbarrier", message, which, others, help)
