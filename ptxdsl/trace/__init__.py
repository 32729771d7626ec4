"""Trace a Python function into a kernel: the function runs once, and each operation on traced values emits an
instruction.

- builder: the kernel being traced: registers, text, open branches and loops
- signature, parameters: parameters of kernels and device functions; groups of named fields
- value, operators, packing, literal: values in registers, Python's operators, numbers and conversions
- mnemonic, instruction, misfits: `pd.ptx`, the choice of an instruction form, and the message if none fits
- memory, arrays, descriptors: pointers; shared, local and constant arrays; descriptors of wgmma
- control, flow: branches and loops; liveness of Python's names, statements that leave a block, unused results
- functions, calls: device functions and their calls
- roles, ring, tensor_map, mapped, launch_control: warp roles, the mbarrier pipeline, TMA copies, cluster launch control
- operands, warpgroup_mma, tensor_memory, tensor_memory_mma: products of tiles by wgmma and tcgen05
- captured, contents: the Python state that a kernel reads, its key and its guard
- state, changes: names and Python state that branches and loops change
- aliases: second names and copies of variables
- foreign, source: numpy and CUDA names, and the source text, for messages
- named, printing: names for debuggers; `pd.printf` and `pd.assert_`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, overload

from ptxdsl import ir
from ptxdsl.errors import Site, TraceError
from ptxdsl.isa.tensor_map import MAP_ALIGNMENT, MAP_BYTES
from ptxdsl.notes import NO_NOTES, ExternNote, KernelNotes, RingNote, RoleNote, SharedArray
from ptxdsl.trace.arrays import align_dynamic
from ptxdsl.trace.builder import Builder, building, is_name
from ptxdsl.trace.changes import Rounds, check_rounds
from ptxdsl.trace.flow import warn_unread
from ptxdsl.trace.functions import run
from ptxdsl.trace.instruction import Scalar, ScalarLike, emit, shown
from ptxdsl.trace.mapped import MappedTensor
from ptxdsl.trace.memory import PointerValue, PointerVar, stored_type
from ptxdsl.trace.operators import operate
from ptxdsl.trace.parameters import Leaf, ptx_name
from ptxdsl.trace.ring import check_rings
from ptxdsl.trace.roles import check_roles
from ptxdsl.trace.signature import KernelSignature, Parameter, place_of
from ptxdsl.trace.state import outside
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.trace.value import Var, make_value
from ptxdsl.trace.value import var as scalar_var
from ptxdsl.types import Pointer, Type, b8, u64


@dataclass(frozen=True, slots=True)
class Traced:
    """A traced kernel.

    `dynamic_bytes` is the dynamic shared memory a launch needs in bytes, None if the caller must state it. `notes` hold
    what the PTX text does not say (arrays, rings, roles); `warned` is True if tracing issued a warning.
    """

    module: ir.PtxModule
    parameters: tuple[Parameter, ...]
    dynamic_bytes: int | None
    notes: KernelNotes = NO_NOTES
    warned: bool = False


def trace(
    signature: KernelSignature,
    constants: Mapping[str, object],
    *,
    arch: str = "sm_80",
    directives: tuple[ir.Directive, ...] = (),
) -> Traced:
    """Run a kernel's function on traced values and return its IR. Exceptions raised by the function propagate."""
    parameters = signature.parameters(constants)
    kept = outside(signature.function, constants)

    def traced(rounds: Rounds) -> Builder:
        kept.restore()
        return _traced(signature, parameters, constants, arch, directives, rounds)

    builder = traced(Rounds())
    if builder.memory[Rounds].suspects:
        after = outside(signature.function, constants)
        try:
            check_rounds(builder, traced)
        finally:
            after.restore()
    warned = warn_unread(builder)
    builder.function.body = builder.finished()
    module = ir.PtxModule((arch,), items=builder.module.items(builder.function))
    arrays, rings, roles, externs = (
        builder.memory.get(kind, {}) for kind in (SharedArray, RingNote, RoleNote, ExternNote)
    )
    notes = KernelNotes(tuple(arrays.values()), tuple(rings), tuple(roles), tuple(externs.values()))
    return Traced(module, parameters, builder.dynamic_bytes, notes, warned)


def _traced(
    signature: KernelSignature,
    parameters: tuple[Parameter, ...],
    constants: Mapping[str, object],
    arch: str,
    directives: tuple[ir.Directive, ...],
    rounds: Rounds,
) -> Builder:
    """Run the kernel's function once and return the builder."""
    function = signature.function
    builder = Builder(function.__name__, arch, function.__code__, place_of(function), make_value)
    builder.memory[Rounds] = rounds
    builder.function.directives.extend(directives)
    builder.function.unique(function.__name__)
    with building(builder):
        result = run(function, parameters, lambda leaf: _load(builder, leaf), constants)
        _finish(builder, result)
    return builder


def _load(builder: Builder, leaf: Leaf) -> Scalar | PointerValue | MappedTensor:
    """Load a PTX parameter into a register; convert a pointer into a state space to an address in that space."""
    path, type = leaf
    if isinstance(type, TensorMap):
        return _map(builder, path, type)
    held = type.register if isinstance(type, Pointer) else type
    stored, name = stored_type(held), ptx_name(path)
    variable = _parameter(builder, name, stored)
    windowed = isinstance(type, Pointer) and type.space in ("global", "const")
    with builder.at_start("" if windowed else name):
        loaded = operate(f"ld.param.{stored}", ir.Address(variable), type=held)
    if not isinstance(type, Pointer):
        return _called(loaded, path)
    if windowed:
        with builder.at_start(name):
            loaded = operate(f"cvta.to.{type.space}.u64", loaded)
    return PointerValue(_called(loaded, path), type)


def _parameter(
    builder: Builder, name: str, type: Type, shape: tuple[int, ...] = (), align: int | None = None
) -> ir.Variable:
    called = builder.unique(name if is_name(name) else "parameter")
    variable = ir.Variable(called, "param", type, shape, align)
    builder.function.parameters.append(variable)
    return variable


def _map(builder: Builder, path: str, type: TensorMap) -> MappedTensor:
    """Return a tensor map, which is passed by value: instructions take the generic address of the parameter."""
    name = ptx_name(path)
    variable = _parameter(builder, name, b8, (MAP_BYTES,), MAP_ALIGNMENT)
    with builder.at_start(""):
        address = operate("mov.u64", variable, type=u64)
    with builder.at_start(name):
        address = operate("cvta.param.u64", address, type=u64)
    return MappedTensor(PointerValue(_called(address, path), Pointer(b8, "generic")), type)


def _called(value: Scalar, path: str) -> Scalar:
    """Name a value by its path (`a.data`) in messages; PTX cannot name it so."""
    value.site = Site(value.site.location, (path,))
    return value


def _finish(builder: Builder, result: object) -> None:
    builder.check_ended()
    if result is not None:
        raise TraceError(
            f"kernel `{builder.name}` returns {shown(result)}",
            at=builder.where,
            help="a kernel returns nothing: write results to memory",
        )
    check_roles(builder)
    check_rings(builder)
    builder.at_end()
    emit("ret")
    align_dynamic(builder)


@overload
def var(type: Type, init: ScalarLike | None = None, *, name: str | None = None) -> Var: ...


@overload
def var(type: Pointer, init: PointerValue | None = None, *, name: str | None = None) -> PointerVar: ...


def var(type: Type | Pointer, init: Any = None, *, name: str | None = None) -> Var | PointerVar:
    """Create a variable: a register that can be written again, by `v += x`, `v.set(x)` or `out=v`.

    `type` is a scalar type or a pointer type; a variable of type `ptr[f32]` moves by elements. `init` is the first
    value: a traced value of that type or a Python number. Without it, the variable must be written before it is read;
    reading it earlier raises TraceError. `name` is the register's name in PTX, by default the Python name.

        total = pd.var(f32, 0)
        for i in pd.range(n):
            total += x[i]
    """
    if not isinstance(type, Pointer):
        return scalar_var(type, init, name=name)
    pointer = PointerVar(scalar_var(type.register, name=name), type)
    if init is not None:
        pointer.set(init)
    return pointer
