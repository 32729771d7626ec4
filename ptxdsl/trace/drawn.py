"""Random generators of Python and numpy: how far they are, and from which one the functions of a module draw."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

MODULES = ("random", "numpy", "numpy.random")
_KINDS = {("random", "Random"), ("numpy", "Generator"), ("numpy", "RandomState"), ("numpy", "BitGenerator")}
_OF_THE_SYSTEM = ("random", "SystemRandom")  # which has no state


def is_generator(of: type) -> bool:
    """Whether objects of a type are random generators, which go on from a state."""
    bases = {(base.__module__.partition(".")[0], base.__name__) for base in of.__mro__}
    return bool(bases & _KINDS) and _OF_THE_SYSTEM not in bases


def modules() -> dict[str, ModuleType]:
    """The modules whose functions draw, as far as they are loaded."""
    return {name: sys.modules[name] for name in MODULES if name in sys.modules}


def generators_of(module: ModuleType) -> Iterator[tuple[str, object]]:
    """The generator from which the functions of a module draw, by the text that leads on to it."""
    if module.__name__ == "random":
        yield "", vars(module)["_inst"]
    elif (draws := sys.modules.get("numpy.random")) is not None:
        yield "" if module is draws else ".random", draws.mtrand._rand


def position(generator: Any) -> object:
    """How far a generator is."""
    if hasattr(generator, "getstate"):
        return generator.getstate()
    return generator.get_state(legacy=False) if hasattr(generator, "get_state") else _bits(generator).state


def put_back(generator: Any, state: Any) -> None:
    """Lets a generator go on from a position."""
    if hasattr(generator, "setstate"):
        generator.setstate(state)
    elif hasattr(generator, "set_state"):
        generator.set_state(state)
    else:
        _bits(generator).state = state


def same(first: object, second: object) -> bool:
    """Whether two positions are one."""
    return _comparable(first) == _comparable(second)


def _bits(generator: Any) -> Any:
    """From what a generator of numpy draws its bits, which holds the state."""
    return getattr(generator, "bit_generator", generator)


def _comparable(state: object) -> object:
    """A position, with arrays as bytes."""
    if isinstance(state, dict):
        return {key: _comparable(value) for key, value in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state
