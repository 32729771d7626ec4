"""Write PTX kernels in Python: typed instructions, layouts and schedules, a CPU emulator, a launcher.

    import ptxdsl as pd
    from ptxdsl import f32, ptr, u32

    @pd.kernel
    def saxpy(x: ptr[f32], y: ptr[f32], a: f32, n: u32):
        i = pd.ctaid.x * pd.ntid.x + pd.tid.x
        with pd.if_(i < n):
            y[i] = a * x[i] + y[i]

Each name is imported on first use.
"""

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxdsl.runtime.imported import Watched, watch

if TYPE_CHECKING:
    from ptxdsl import assemble as assemble
    from ptxdsl import config as config
    from ptxdsl import errors as errors
    from ptxdsl import layout as layout
    from ptxdsl import runtime as runtime
    from ptxdsl import schedule as schedule
    from ptxdsl import types as types
    from ptxdsl.debug.session import debug
    from ptxdsl.errors import (
        AssembleError,
        CallError,
        EmulationError,
        Error,
        LaunchError,
        LayoutError,
        LinkError,
        ParseError,
        ScheduleError,
        TraceError,
        UnusedResultWarning,
        VerifyError,
    )
    from ptxdsl.kernel import Kernel, Module, kernel, parse
    from ptxdsl.linking.inline import inline
    from ptxdsl.linking.link import LinkedProgram, link
    from ptxdsl.runtime.emulation import emulate
    from ptxdsl.runtime.pointer_tables import pointer_table
    from ptxdsl.runtime.tensor_maps import tensor_map
    from ptxdsl.trace import var
    from ptxdsl.trace.annotations import (
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
    )
    from ptxdsl.trace.arrays import constant, dynamic_shared, local, shared
    from ptxdsl.trace.control import break_, continue_, elif_, else_, if_, return_, while_
    from ptxdsl.trace.control import range as range
    from ptxdsl.trace.functions import extern, function
    from ptxdsl.trace.launch_control import ClusterLaunchControl
    from ptxdsl.trace.mapped import MappedTensor
    from ptxdsl.trace.memory import pointer, select, view
    from ptxdsl.trace.mnemonic import ptx
    from ptxdsl.trace.operators import cast, fma, maximum, minimum
    from ptxdsl.trace.packing import pack, unpack
    from ptxdsl.trace.parameters import Parameters
    from ptxdsl.trace.printing import assert_, printf
    from ptxdsl.trace.ring import Ring
    from ptxdsl.trace.roles import elect, warp, warpgroup
    from ptxdsl.trace.tensor_map import TensorMap
    from ptxdsl.trace.tensor_memory import tensor_memory
    from ptxdsl.trace.tensor_memory_mma import TensorMemoryMma
    from ptxdsl.trace.value import ctaid, laneid, nctaid, ntid, special, tid, warpid
    from ptxdsl.trace.warp_mma import WarpMma
    from ptxdsl.trace.warpgroup_mma import WarpgroupMma
    from ptxdsl.tune.tuned import autotune

    max, min = maximum, minimum

__version__ = "0.1.0"

__all__ = [
    "AssembleError", "CallError", "ClusterLaunchControl", "EmulationError", "Error", "Kernel", "LaunchError",
    "LayoutError", "LinkError", "LinkedProgram", "MappedTensor", "Module", "Parameters", "ParseError", "Ring",
    "ScheduleError", "TensorMap", "TensorMemoryMma", "TraceError", "UnusedResultWarning", "VerifyError", "WarpMma",
    "WarpgroupMma", "assert_", "autotune", "b1", "b8", "b16", "b32", "b64", "b128", "bf16", "bf16x2", "break_", "cast",
    "constant", "continue_", "ctaid", "debug", "dynamic_shared", "e4m3", "e4m3x2", "e5m2", "e5m2x2", "elect", "elif_",
    "else_", "emulate", "extern", "f16", "f16x2", "f32", "f64", "fma", "function", "if_", "inline", "kernel", "laneid",
    "link", "local", "nctaid", "ntid", "pack", "parse", "pointer", "pointer_table", "pred", "printf", "ptr", "ptx",
    "return_", "s4", "s8", "s16", "s16x2", "s32", "s64", "select", "shared", "special", "tensor_map", "tensor_memory",
    "tf32", "tid", "u4", "u8", "u16", "u16x2", "u32", "u64", "unpack", "var", "view", "warp", "warpgroup", "warpid",
    "while_",
]  # fmt: skip

_SHADOWING = ("max", "min", "range")  # Python builtins: `from ptxdsl import *` does not replace them
_HOMES = {
    "runtime.emulation": "emulate",
    "runtime.pointer_tables": "pointer_table",
    "runtime.tensor_maps": "tensor_map",
    "debug.session": "debug",
    "tune.tuned": "autotune",
    "trace.arrays": "constant dynamic_shared local shared",
    "trace.control": "break_ continue_ elif_ else_ if_ range return_ while_",
    "errors": "AssembleError CallError EmulationError Error LaunchError LayoutError LinkError ParseError ScheduleError "
    "TraceError UnusedResultWarning VerifyError",
    "linking.inline": "inline",
    "kernel": "Kernel Module kernel parse",
    "trace.functions": "extern function",
    "linking.link": "LinkedProgram link",
    "trace.launch_control": "ClusterLaunchControl",
    "trace.mapped": "MappedTensor",
    "trace.memory": "pointer select view",
    "trace.mnemonic": "ptx",
    "trace.operators": "cast fma max min",
    "trace.packing": "pack unpack",
    "trace.parameters": "Parameters",
    "trace.printing": "assert_ printf",
    "trace.ring": "Ring",
    "trace.roles": "elect warp warpgroup",
    "trace.tensor_map": "TensorMap",
    "trace.tensor_memory": "tensor_memory",
    "trace.tensor_memory_mma": "TensorMemoryMma",
    "trace": "var",
    "trace.value": "ctaid laneid nctaid ntid special tid warpid",
    "trace.warp_mma": "WarpMma",
    "trace.warpgroup_mma": "WarpgroupMma",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}
_SPELLED = {"max": "maximum", "min": "minimum"}
_STATEMENTS = ("break_", "continue_", "return_")
_MODULES = ("assemble", "config", "errors", "kernels", "layout", "runtime", "schedule", "types", "torch", "jax")


def _loaded(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in __all__ and name not in _SHADOWING:
        if name.startswith("_") or find_spec(f"{__name__}.{name}"):  # `from ptxdsl import cli` then imports the module
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise importlib.import_module(".trace.foreign", __name__).unknown_name(name, (*__all__, *_SHADOWING))
    module = importlib.import_module(f".{_HOME.get(name, 'types')}", __name__)
    value = getattr(module, _SPELLED.get(name, name))
    if name in _STATEMENTS:  # not cached, so that each use is checked
        importlib.import_module(".trace.operators", __name__).refuse_uncalled(f"pd.{name}")
    else:
        globals()[name] = value
    return value


if not TYPE_CHECKING:  # type checkers read the imports above, so that they report misspelt names
    __getattr__ = _loaded


def __dir__() -> list[str]:
    return sorted({*__all__, *_SHADOWING, *globals()})


def _is_whole() -> bool:
    """True if each imported name still refers to its module's object."""
    modules = ((name, sys.modules.get(f"{__name__}.{_HOME.get(name, 'types')}")) for name in (*__all__, *_SHADOWING))
    return all(
        name not in globals() or globals()[name] is getattr(module, _SPELLED.get(name, name), None)
        for name, module in modules
    )


class _Package(Watched):
    """Keep `pd.kernel`, `pd.parse` and `pd.emulate` functions when the modules of the same names are imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and name in __all__:
            self.note(name, value)
        else:
            super().__setattr__(name, value)


watch(sys.modules[__name__], _Package)
