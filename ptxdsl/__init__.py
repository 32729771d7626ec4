"""Write PTX kernels in Python: typed instructions, layouts and schedules, a CPU emulator, a launcher.

import ptxdsl as pd
from ptxdsl import f32, ptr, u32

@pd.kernel
def saxpy(x: ptr[f32], y: ptr[f32], a: f32, n: u32):
    i = pd.ctaid.x * pd.ntid.x + pd.tid.x
    with pd.if_(i < n):
        y[i] = a * x[i] + y[i]
"""

import importlib
from typing import Any

from .control import break_, continue_, else_, if_, range, return_, while_
from .errors import (
    AssembleError,
    EmulationError,
    Error,
    LaunchError,
    LayoutError,
    ParseError,
    TraceError,
    VerifyError,
)
from .kernel import kernel
from .memory import dynamic_shared, pointer, shared, view
from .mnemonic import ptx
from .operators import cast, fma, pack, select, unpack
from .operators import maximum as max
from .operators import minimum as min
from .trace import var
from .types import (
    b1,
    b8,
    b16,
    b32,
    b64,
    b128,
    bf16,
    bf16x2,
    e4m3,
    e4m3x2,
    e5m2,
    e5m2x2,
    f16,
    f16x2,
    f32,
    f64,
    pred,
    ptr,
    s4,
    s8,
    s16,
    s16x2,
    s32,
    s64,
    tf32,
    u4,
    u8,
    u16,
    u16x2,
    u32,
    u64,
)  # fmt: skip
from .value import ctaid, laneid, nctaid, ntid, special, tid, warpid

__version__ = "0.1.0"

__all__ = [
    "AssembleError", "EmulationError", "Error", "LaunchError", "LayoutError", "ParseError", "TraceError", "VerifyError",
    "assemble", "b1", "b8", "b16", "b32", "b64", "b128", "bf16", "bf16x2", "break_", "cast", "continue_", "ctaid",
    "dynamic_shared", "e4m3", "e4m3x2", "e5m2", "e5m2x2", "else_", "f16", "f16x2", "f32", "f64", "fma", "if_", "kernel",
    "kernels", "laneid", "launch", "layout", "max", "min", "nctaid", "ntid", "pack", "pointer", "pred", "ptr", "ptx",
    "range", "return_", "s4", "s8", "s16", "s16x2", "s32", "s64", "select", "shared", "special", "tf32",
    "tid", "u4", "u8", "u16", "u16x2", "u32", "u64", "unpack", "var", "view", "warpid", "while_",
]  # fmt: skip

_MODULES = ("assemble", "kernels", "launch", "layout")


def __getattr__(name: str) -> Any:
    """Sub-modules are loaded when they are first asked for."""
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
