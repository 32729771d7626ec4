"""`pd.ptx`: every instruction as a method."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, cast

from ptxdsl.isa.page import attribute, page, refusal
from ptxdsl.isa.spelling import call_of, following
from ptxdsl.trace.builder import current, refuse
from ptxdsl.trace.instruction import Scalar, emit
from ptxdsl.trace.operators import refuse_uncalled

if TYPE_CHECKING:
    from ptxdsl.trace.instructions import Ptx


class PerMnemonic:
    """A descriptor that computes the documentation or signature of a mnemonic for `help` and editors."""

    def __init__(self, answer: Callable[[str], object], of_class: object = None) -> None:
        self._answer, self._of_class = answer, of_class

    def __get__(self, mnemonic: Mnemonic | None, owner: type) -> object:
        if mnemonic is None or not mnemonic._text:
            return self._of_class
        return self._answer(mnemonic._text)


def _signature(text: str) -> Signature | None:
    """Return the signature of an instruction; None for an incomplete or unknown mnemonic."""
    call = call_of(text)
    if call is None:
        return None
    defaults = [Parameter.empty] * call.required + [None] * (len(call.sources) - call.required)
    sources = [
        Parameter(attribute(name), Parameter.POSITIONAL_ONLY, default=default)
        for name, default in zip(call.sources, defaults, strict=True)
    ]
    options = {"out": None, "guard": None, "pair": False}
    return Signature([*sources, *(Parameter(n, Parameter.KEYWORD_ONLY, default=d) for n, d in options.items())])


class Mnemonic:
    """An instruction mnemonic: attributes spell it, a call emits the instruction.

        total = pd.ptx.add.u32(a, b)
        old = pd.ptx.atom.global_.add.u32(counter, 1)

    A trailing underscore is dropped (`and_`, `global_`), a double underscore stands for `::` (`shared__cta`,
    `L2__128B`), and an underscore before a digit is dropped (`_2d`). `pd.ptx("cp.async.cg.shared.global.L2::128B", …)`
    takes the mnemonic as text.
    """

    # The reference page, or the reason why a mnemonic does not exist.
    __doc__ = PerMnemonic(lambda text: page(text) or "; ".join(filter(None, refusal(text))), __doc__)  # type: ignore[assignment]
    __signature__ = PerMnemonic(_signature)

    def __init__(self, text: str = "", path: str = "pd.ptx") -> None:
        self._text, self._path = text, path
        self._words: dict[str, Mnemonic] = {}

    def __getattr__(self, word: str) -> Mnemonic:
        if re.match(r"_(?!\d)", word):  # an introspection name; no mnemonic begins with `_`
            raise AttributeError(word)
        if word not in self._words:
            spelled = re.sub(r"^_(?=\d)", "", word.removesuffix("_")).replace("__", "::")
            self._words[word] = Mnemonic(f"{self._text}.{spelled}".lstrip("."), f"{self._path}.{word}")
        known = self._words[word]
        refuse_uncalled(known._path)
        return known

    def __call__(self, *sources: object, out: object = None, guard: Scalar | None = None, pair: bool = False) -> Any:
        """Emit the instruction and return its destinations: None, one value, or a tuple.

        `sources` are the source operands in PTX order. A vector is a tuple or list; the coordinates of a tensor map are
        a vector after it. `out` gives variables to write instead of new registers (`"_"` discards a result). `guard` is
        a predicate: the instruction executes only in threads where it holds. `pair=True` also returns the second
        destination of `d|p`.

        Raises VerifyError if no form takes the operands, or if the kernel's target does not have the instruction.
        """
        text = self._text
        if not text:
            if not sources or not isinstance(sources[0], str):
                refuse("pd.ptx(…) takes the mnemonic first", 'for example `pd.ptx("add.u32", a, b)`')
            text, *sources = sources  # type: ignore[assignment]
        outputs = emit(text, sources, out=out, guard=guard, pair=pair)
        builder = current(text)
        results = tuple(register if type is None else builder.value(register, type) for register, type in outputs)
        return results if len(results) > 1 else results[0] if results else None

    def __dir__(self) -> list[str]:
        return [attribute(word) for word in following(self._text)]

    def __repr__(self) -> str:
        return f"pd.ptx.{self._text}" if self._text else "pd.ptx"


ptx = cast("Ptx", Mnemonic())
