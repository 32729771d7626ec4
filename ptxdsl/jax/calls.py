"""Kernels and launchers as functions of JAX arrays, inside `jax.jit` and outside."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import jax
import numpy as np

from ptxdsl.arrays import XLA, type_of
from ptxdsl.emulate.report import counted
from ptxdsl.errors import CallError, LaunchError, called_elsewhere, caller, here, parameters_unlike, public
from ptxdsl.jax.ffi import TARGET, XlaCall, numbered
from ptxdsl.kernel import AnyKernel, usual_variant
from ptxdsl.runtime.values import elements
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import Pointer, Type

Extent: TypeAlias = "int | tuple[int, ...] | Callable[..., int | tuple[int, ...]]"
Output: TypeAlias = "jax.ShapeDtypeStruct | Callable[..., jax.ShapeDtypeStruct]"
NUMBERS = (bool, int, float, np.generic)


@public
@called_elsewhere(
    **dict.fromkeys(("out_shape", "outputs", "result_shape_dtypes"), "use `out=`, with jax.ShapeDtypeStruct"),
    vmap_method="leave it out: jax.vmap calls the kernel once per element",
)
def call(
    target: AnyKernel | Callable[..., object],
    *,
    out: Output | Sequence[Output] | Mapping[str, Output],
    grid: Extent | None = None,
    block: Extent | None = None,
    constants: Mapping[str, object] | None = None,
) -> Callable[..., Any]:
    """Return a function of JAX arrays that calls a kernel or a launcher and returns its outputs.

    A kernel is launched with `grid` and `block`: numbers, or functions of the arguments. `out` maps each output pointer
    to a `jax.ShapeDtypeStruct((n,), jnp.float32)`, or to a function of the arguments that returns one. The function
    takes the other parameters in order. `constants` are those of the kernel. A launcher is a Python function of arrays
    and numbers, then of its outputs, which it fills; `out` is one struct, or a sequence of them.

    It runs on XLA's stream on a GPU, and on the emulator on a CPU. Numbers must be Python numbers, which are part of
    the compiled program, like shapes. `jax.vmap` makes one call per element. The function has no gradient: use
    `jax.custom_vjp` to define it by another call.

    Raises LaunchError for a kernel that writes an array that is not in `out` or takes a parameter that JAX cannot pass
    and, during tracing, for arrays of other types. An error in a launch is raised as a JAX error with the same text.
    """
    if isinstance(target, AnyKernel):
        if grid is None or block is None:
            refuse(
                f"kernel `{target.name}` is called from JAX without a `{'grid' if grid is None else 'block'}`",
                "pass `grid=` and `block=`: numbers, or functions of the arguments",
            )
        return _Function(*_of_kernel(target, grid, block, out, dict(constants or {})))
    if not callable(target) or isinstance(target, _Function):
        refuse(
            f"ptxdsl.jax.call expects a kernel or a launcher, got {target!r}",
            "pass a kernel (@pd.kernel) or a function of arrays and of its outputs",
        )
    if isinstance(out, Mapping):
        refuse(
            f"a launcher is called from JAX with `out` of {_named(out)}",
            "a launcher gets its outputs by position: pass a struct, or a sequence of them",
        )
    if grid is not None or block is not None or constants is not None:
        refuse(
            "a launcher that is called from JAX does not take `grid`, `block` or `constants`",
            "leave these out: the launcher itself launches its kernels",
        )
    outputs = (out,) if callable(out) or isinstance(out, jax.ShapeDtypeStruct) else tuple(out)
    for make in outputs:
        _check_output("out", make)
    return _Function(target, outputs, lambda arguments: _check_launcher(target, arguments, outputs))


class _Function:
    """A launcher, `launch(*arguments, *outputs)`, as a function of JAX arrays."""

    def __init__(
        self,
        launch: Callable[..., object],
        outputs: Sequence[Any],
        check: Callable[[Sequence[Any]], None],
    ) -> None:
        self.launch, self.outputs, self.check = launch, outputs, check
        self._known: dict[Hashable, int] = {}  # numbers of calls by shapes and number arguments

    def __getitem__(self, launch: object) -> NoReturn:
        refuse(
            "a function made by ptxdsl.jax.call was indexed with a grid and a block, which were already set",
            "call it with its arguments only",
        )

    __iter__ = None  # otherwise Python would iterate by __getitem__

    def __call__(self, *arguments: Any, **named: object) -> Any:
        """Return the outputs. Raises LaunchError for arguments that do not fit."""
        for name in named:
            message = f"a call from JAX takes its arguments by position, but `{name}` is passed by name"
            raise CallError(
                message, at=caller(), help="pass the arguments in the order of the parameters, without names"
            )
        self.check(arguments)
        is_number = [isinstance(argument, NUMBERS) for argument in arguments]
        arrays = [jax.numpy.asarray(a) for a, number in zip(arguments, is_number, strict=True) if not number]
        inputs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
        outputs = [make(*arguments) if callable(make) else make for make in self.outputs]
        numbers = [a for a, number in zip(arguments, is_number, strict=True) if number]
        key = tuple((s.shape, s.dtype) for s in (*inputs, *outputs)), tuple(map(repr, numbers)), tuple(is_number)
        if key not in self._known:
            self._known[key] = numbered(XlaCall(self._launcher(arguments, is_number), inputs, outputs))
        results = jax.ffi.ffi_call(TARGET, outputs, vmap_method="sequential")(*arrays, call=np.int64(self._known[key]))
        return results if len(results) > 1 else results[0]

    def _launcher(self, arguments: Sequence[Any], is_number: Sequence[bool]) -> Callable[..., None]:
        """Return a function of arrays that inserts the numbers of a call."""
        values = [a if number else None for a, number in zip(arguments, is_number, strict=True)]

        def launch(*arrays: Any) -> None:
            rest = iter(arrays)
            inputs = [value if number else next(rest) for value, number in zip(values, is_number, strict=True)]
            self.launch(*inputs, *rest)

        return launch


def _of_kernel(
    kernel: AnyKernel, grid: Extent, block: Extent, out: Any, constants: dict[str, Any]
) -> tuple[Callable[..., None], Sequence[Any], Callable[[Sequence[Any]], None]]:
    """Return the launcher of a kernel, its outputs, and the check of its arguments."""
    variant = usual_variant(kernel, constants)
    parameters = dict(variant.parameters)
    _check_outputs(kernel, out, list(parameters), [name for name in parameters if name in variant.written])
    for name, kind in parameters.items():
        if not isinstance(kind, Pointer | TensorMap | Type):
            refuse(
                f"kernel `{kernel.name}`: parameter `{name}` is {kind}, but JAX passes only arrays and numbers",
                "write a launcher, a function of arrays and numbers that builds it and launches the kernel",
            )
    inputs, outputs = [name for name in parameters if name not in out], list(out)
    makers = {f"out['{name}']": make for name, make in out.items()}
    for name, make in makers.items():
        _check_output(name, make)
    for name, function in {"grid": grid, "block": block, **makers}.items():
        taken = parameters_unlike(function, inputs)
        if taken is not None:
            refuse(
                f"kernel `{kernel.name}` is called from JAX: `{name}` is a function of {taken}, but it is called "
                f"with {', '.join(inputs)}",
                f"write `lambda {', '.join(inputs)}: …`",
            )

    def check(arguments: Sequence[Any]) -> None:
        if len(arguments) != len(inputs):
            refuse(f"kernel `{kernel.name}` takes {len(inputs)} arguments, got {len(arguments)}",
                    f"call it with ({', '.join(inputs)})")  # fmt: skip
        for name, argument in zip(inputs, arguments, strict=True):
            _check_argument(name, parameters[name], argument)

    def launch(*arguments: Any) -> None:
        named = dict(zip([*inputs, *outputs], arguments, strict=True))
        shape = [each(*arguments[: len(inputs)]) if callable(each) else each for each in (grid, block)]
        kernel[shape[0], shape[1]](*(named[name] for name in parameters), **constants)

    return launch, tuple(out.values()), check


def _check_output(name: str, make: object) -> None:
    """Refuse an output without a shape and a type."""
    if not callable(make) and not (hasattr(make, "shape") and hasattr(make, "dtype")):
        refuse(f"`{name}` is {make!r}", "pass a shape and a type: `jax.ShapeDtypeStruct((n,), jnp.float32)`")


def _check_launcher(launcher: Callable[..., object], arguments: Sequence[object], outputs: Sequence[object]) -> None:
    """Refuse a launcher that does not take its arguments and its outputs."""
    taken = parameters_unlike(launcher, [""] * (len(arguments) + len(outputs)))
    if taken is not None:
        count = f"{counted(len(arguments), 'argument')} and {counted(len(outputs), 'output')}"
        refuse(
            f"a launcher of {taken} is called with {count}",
            "write it with its arguments first, then the outputs that it fills",
        )


def _check_outputs(kernel: AnyKernel, out: Any, parameters: Sequence[str], written: Sequence[str]) -> None:
    if not isinstance(out, Mapping) or not out or not set(out) <= set(written):
        refuse(
            f"kernel `{kernel.name}` is called from JAX with `out` of {_named(out)}; it writes {_named(written)}",
            "name the arrays that it writes: `out={'y': jax.ShapeDtypeStruct((n,), jnp.float32)}`",
        )
    if kept := [name for name in written if name not in out]:
        refuse(
            f"kernel `{kernel.name}` writes `{kept[0]}`, which is not an output, but JAX arrays are immutable",
            f"name it in `out`, or read one array in the kernel and write another (it takes {', '.join(parameters)})",
        )


def _named(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names) if isinstance(names, Mapping | list) and names else "no names"


def _check_argument(name: str, kind: Any, argument: Any) -> None:
    """Refuse an argument that the launch would refuse, or whose value is not known yet."""
    is_number, takes_number = isinstance(argument, NUMBERS), isinstance(kind, Type)
    if takes_number and not is_number:
        refuse(
            f"`{name}` expects a number ({kind}), got a JAX array, whose value is unknown when the call is traced",
            "pass a Python number (static_argnums of jax.jit), or let the kernel take a pointer and read it",
        )
    if not takes_number and is_number:
        refuse(f"`{name}` expects {kind}, got the number {argument}", "pass an array")
    if not takes_number and type_of(np.dtype(argument.dtype)) not in elements(kind.element):
        refuse(f"`{name}` expects {kind}, got a {XLA.name} array of {argument.dtype}", "convert it with .astype first")


def refuse(message: str, help: str) -> NoReturn:
    """Raise LaunchError at the user's call."""
    raise LaunchError(message, at=here().location, help=help)
