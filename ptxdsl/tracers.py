"""Functions that torch and JAX trace, and what of ours stands in them: values that have no memory yet, and launches.

JAX, torch.export and fake tensors come with values that stand for arrays. torch.compile reads bytecode: where it
meets a function that is `untraceable` it ends a graph, calls the function, and begins another graph behind it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

# Who traces a value, and what is said of it
_LATE = {
    "JAX": "JAX traces it (jax.jit, jax.grad, jax.vmap), and it has no memory yet",
    "torch": "torch traces it (torch.compile, torch.export, FakeTensorMode), and it has no memory yet",
    "torch.func": "torch transforms it (torch.vmap, torch.func), and it has no memory of its own",
}
_RECORDED = "torch records what is done to it (make_fx, torch.jit.trace), and would leave a launch out"
_OF_TORCH = {"FakeTensor", "FunctionalTensor", "Proxy"}


def traced_by(value: object) -> str | None:
    """Who hands a value that stands for an array to a function that it traces: JAX, torch, torch.func or None.

    Torch may trace tensors that have memory, too.
    """
    tracer = _by_class(type(value).__mro__)
    return _of_tensor(value) if tracer == "Tensor" else tracer


def why_late(value: object) -> str | None:
    """Why a value that is traced cannot be launched with, as the end of a sentence; None for any other."""
    tracer = traced_by(value)
    if tracer == "torch" and _by_class(type(value).__mro__) == "Tensor" and is_recording():
        return _RECORDED
    return _LATE[tracer] if tracer else None


def is_recording() -> bool:
    """Whether torch writes down what is done to tensors that have memory: it sees operators, and no launch."""
    torch: Any = sys.modules.get("torch")
    proxies: Any = sys.modules.get("torch.fx.experimental.proxy_tensor")
    return bool(torch.jit.is_tracing() or (proxies and proxies.get_proxy_mode()))


@cache
def _by_class(mro: tuple[type, ...]) -> str | None:
    """What the class of a value and its bases say: a key of _LATE, or "Tensor" for tensors that may be wrapped."""
    classes = {(base.__module__.partition(".")[0], base.__name__) for base in mro}
    if ("jax", "Tracer") in classes:
        return "JAX"
    if any(("torch", name) in classes for name in _OF_TORCH):
        return "torch"
    return "Tensor" if ("torch", "Tensor") in classes else None


def _of_tensor(tensor: object) -> str | None:
    """The same of a tensor of torch, which may be wrapped."""
    torch: Any = sys.modules.get("torch")
    functions = getattr(getattr(torch, "_C", None), "_functorch", None)
    if functions is None:
        return None
    if functions.is_functorch_wrapped_tensor(tensor):
        return "torch.func"
    return "torch" if is_recording() or torch._is_functional_tensor(tensor) else None


@dataclass(frozen=True, slots=True)
class Untraceable:
    """Why torch.compile must not trace a function, and how to mend it. Torch writes it into what it says of the call.

    It does so whenever it meets the function. That is the time to tell it that frames below the function are not to be
    traced either, one by one, when it is called between two graphs: no launch outside of torch.compile pays for that.
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
    """For functions that torch.compile must not trace; `sentence` says why, and what to call instead."""

    def mark(function: F) -> F:
        marks: Any = function
        marks._torchdynamo_disable = True
        marks._torchdynamo_disable_msg = Untraceable(sentence, function.__code__)
        return function

    return mark
