"""The state of the random generators of Python and numpy, including those behind module functions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

MODULES = ("random", "numpy", "numpy.random")
_KINDS = {("random", "Random"), ("numpy", "Generator"), ("numpy", "RandomState"), ("numpy", "BitGenerator")}
_OF_THE_SYSTEM = ("random", "SystemRandom")  # stateless


def is_generator(of: type) -> bool:
    """True if a type is a random generator with a state."""
    bases = {(base.__module__.partition(".")[0], base.__name__) for base in of.__mro__}
    return bool(bases & _KINDS) and _OF_THE_SYSTEM not in bases


def modules() -> dict[str, ModuleType]:
    """Return the loaded modules whose functions draw random numbers."""
    return {name: sys.modules[name] for name in MODULES if name in sys.modules}


def generators_of(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield the generators behind the functions of a module, by access path."""
    if module.__name__ == "random":
        yield "", vars(module)["_inst"]
    elif (draws := sys.modules.get("numpy.random")) is not None:
        yield "" if module is draws else ".random", draws.mtrand._rand


def position(generator: Any) -> object:
    """Return the state of a generator."""
    if hasattr(generator, "getstate"):
        return generator.getstate()
    return generator.get_state(legacy=False) if hasattr(generator, "get_state") else _bits(generator).state


def put_back(generator: Any, state: Any) -> None:
    """Restore the state of a generator."""
    if hasattr(generator, "setstate"):
        generator.setstate(state)
    elif hasattr(generator, "set_state"):
        generator.set_state(state)
    else:
        _bits(generator).state = state


def same(first: object, second: object) -> bool:
    """True if two states are equal."""
    return comparable(first) == comparable(second)


def _bits(generator: Any) -> Any:
    """Return the bit generator of a numpy generator, which holds the state."""
    return getattr(generator, "bit_generator", generator)


def comparable(state: object) -> object:
    """Return a state with arrays converted to bytes."""
    if isinstance(state, dict):
        return {key: comparable(value) for key, value in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state
