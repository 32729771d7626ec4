"""Detect values traced by torch or JAX, which have no memory to launch with, and keep torch.compile out of launches.

JAX, torch.export and fake tensors pass values that stand for arrays. torch.compile reads bytecode: at a function marked
`untraceable` it ends a graph, calls the function, and starts another graph.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

# The tracing framework, and the end of the message
_LATE = {
    "JAX": "JAX traces it (jax.jit, jax.grad, jax.vmap), and it has no memory yet",
    "torch": "torch traces it (torch.compile, torch.export, FakeTensorMode), and it has no memory yet",
    "torch.func": "torch transforms it (torch.vmap, torch.func), and it has no memory of its own",
}
_RECORDED = "torch records what is done to it (make_fx, torch.jit.trace), and would leave a launch out"
_OF_TORCH = {"FakeTensor", "FunctionalTensor", "Proxy"}


def traced_by(value: object) -> str | None:
    """Return the framework that traces a value: JAX, torch, torch.func or None.

    Torch may also trace tensors that have memory.
    """
    tracer = _by_class(type(value).__mro__)
    return _of_tensor(value) if tracer == "Tensor" else tracer


def why_late(value: object) -> str | None:
    """Return why a traced value cannot be passed to a launch, as the end of a sentence; None for other values."""
    tracer = traced_by(value)
    if tracer == "torch" and _by_class(type(value).__mro__) == "Tensor" and is_recording():
        return _RECORDED
    return _LATE[tracer] if tracer else None


def is_recording() -> bool:
    """True if torch records operations on tensors that have memory; it would miss a launch."""
    torch: Any = sys.modules.get("torch")
    proxies: Any = sys.modules.get("torch.fx.experimental.proxy_tensor")
    return bool(torch.jit.is_tracing() or (proxies and proxies.get_proxy_mode()))


@cache
def _by_class(mro: tuple[type, ...]) -> str | None:
    """Return the key of _LATE for a class and its bases, or "Tensor" for tensors that may be wrapped."""
    classes = {(base.__module__.partition(".")[0], base.__name__) for base in mro}
    if ("jax", "Tracer") in classes:
        return "JAX"
    if any(("torch", name) in classes for name in _OF_TORCH):
        return "torch"
    return "Tensor" if ("torch", "Tensor") in classes else None


def _of_tensor(tensor: object) -> str | None:
    """Return the key of _LATE for a torch tensor, which may be wrapped."""
    torch: Any = sys.modules.get("torch")
    functions = getattr(getattr(torch, "_C", None), "_functorch", None)
    if functions is None:
        return None
    if functions.is_functorch_wrapped_tensor(tensor):
        return "torch.func"
    return "torch" if is_recording() or torch._is_functional_tensor(tensor) else None


@dataclass(frozen=True, slots=True)
class Untraceable:
    """The reason why torch.compile must not trace a function, and the fix; torch includes it in its error message.

    Torch formats it whenever it meets the function. At that time, the frames below the function are excluded from
    tracing as well, so that launches outside of torch.compile pay nothing.
    """

    sentence: str
    code: CodeType

    def __str__(self) -> str:
        types: Any = sys.modules.get("torch._dynamo.types")
        frames: Any = sys.modules.get("torch._C._dynamo.eval_frame")
        if hasattr(types, "FrameExecStrategy") and hasattr(frames, "set_code_exec_strategy"):
            skip = types.FrameAction.SKIP
            frames.set_code_exec_strategy(self.code, types.FrameExecStrategy(skip, skip))
        return self.sentence


def untraceable(sentence: str) -> Callable[[F], F]:
    """Mark a function that torch.compile must not trace; `sentence` gives the reason and the alternative."""

    def mark(function: F) -> F:
        marks: Any = function
        marks._torchdynamo_disable = True
        marks._torchdynamo_disable_msg = Untraceable(sentence, function.__code__)
        return function

    return mark
