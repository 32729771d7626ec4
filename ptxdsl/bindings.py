"""Names that are bound anew inside of traced branches and loops, where Python and the kernel would disagree."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType

from .builder import Region


@dataclass(slots=True)
class Bindings:
    """What the names of the user's function meant when a branch or loop began."""

    @classmethod
    def now(cls, code: CodeType | None) -> Bindings:
        return cls()

    def check(self, region: Region) -> None:
        pass
