"""`pd.ptx`: every instruction under its own name."""

from __future__ import annotations

import re
from typing import Any

from ptxdsl.trace.builder import current
from ptxdsl.trace.instruction import Scalar, emit
from ptxdsl.trace.operators import refuse, refuse_uncalled


class Mnemonic:
    """`pd.ptx.add.u32`: attributes spell the mnemonic, a call emits the instruction.

    A trailing underscore is dropped (`and_`, `global_`), a double one is `::` (`shared__cta`, `L2__128B`), one before a
    digit is dropped (`_2d`). `pd.ptx("cp.async.cg.shared.global.L2::128B", …)` spells it out.
    """

    def __init__(self, text: str = "", path: str = "pd.ptx") -> None:
        self._text, self._path = text, path
        self._words: dict[str, Mnemonic] = {}

    def __getattr__(self, word: str) -> Mnemonic:
        if word.startswith("__") and word.endswith("__"):
            raise AttributeError(word)
        if word not in self._words:
            spelled = re.sub(r"^_(?=\d)", "", word.removesuffix("_")).replace("__", "::")
            self._words[word] = Mnemonic(f"{self._text}.{spelled}".lstrip("."), f"{self._path}.{word}")
        known = self._words[word]
        refuse_uncalled(known._path)
        return known

    def __call__(self, *sources: object, out: object = None, guard: Scalar | None = None, pair: bool = False) -> Any:
        """Emits the instruction. Sources in PTX order, without destinations; returns the destinations.

        A vector is a tuple or list; the coordinates of a tensor map follow it as one. `out` gives variables to write
        instead of new registers (`"_"` for none), `guard` a predicate without which nothing happens, `pair=True` asks
        for the second destination after a bar (`d|p`).
        """
        text = self._text
        if not text:
            if not sources or not isinstance(sources[0], str):
                refuse("pd.ptx(…) takes the mnemonic first", 'for example `pd.ptx("add.u32", a, b)`')
            text, *sources = sources  # type: ignore[assignment]
        made = emit(text, sources, out=out, guard=guard, pair=pair)
        builder = current(text)
        results = tuple(given if type is None else builder.value(given, type) for given, type in made)
        return results if len(results) > 1 else results[0] if results else None

    def __repr__(self) -> str:
        return f"pd.ptx.{self._text}" if self._text else "pd.ptx"


ptx = Mnemonic()
