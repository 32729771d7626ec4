"""A kernel as a torch operator: its schema, the outputs to allocate, and its launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import torch

from ptxdsl.arrays import type_of
from ptxdsl.errors import LaunchError, here, parameters_unlike
from ptxdsl.kernel import AnyKernel, usual_variant
from ptxdsl.runtime.values import elements
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import Pointer, Type, pred

Extent: TypeAlias = "int | tuple[int, ...] | Callable[..., int | tuple[int, ...]]"
TORCH_TYPES = frozenset(
    type_of(dtype) for dtype in vars(torch).values() if isinstance(dtype, torch.dtype) and not dtype.is_complex
) - {None}


@dataclass(frozen=True)
class KernelCall:
    """A kernel and its launch from the arguments of an operator, which are those of the kernel without its outputs.

    `positions` has one entry per parameter: the number of an argument, or ~n for output n. `outputs` allocate the
    outputs.
    """

    kernel: AnyKernel
    grid: Extent
    block: Extent
    constants: Mapping[str, Any]
    positions: tuple[int, ...]
    outputs: tuple[Callable[..., Any], ...]
    mutated: tuple[str, ...]
    schema: str

    def empty(self, *arguments: Any) -> Any:
        """Return uninitialised outputs, as the operator does for fake tensors."""
        return _result([make(*arguments) for make in self.outputs])

    def run(self, *arguments: Any) -> Any:
        """Allocate the outputs, launch the kernel and return the outputs."""
        outputs = [make(*arguments) for make in self.outputs]
        for output in outputs:
            if output is None:  # the kernel would get a null pointer
                self._refuse_outputs(outputs)
        grid = self.grid(*arguments) if callable(self.grid) else self.grid
        block = self.block(*arguments) if callable(self.block) else self.block
        values = [outputs[~p] if p < 0 else arguments[p] for p in self.positions]
        self.kernel[grid, block](*values, **self.constants)
        return _result(outputs)

    def _refuse_outputs(self, outputs: list[Any]) -> NoReturn:
        names = [name for name, _ in usual_variant(self.kernel, self.constants).parameters]
        name = names[self.positions.index(~outputs.index(None))]
        refuse(f"the function that allocates the output `{name}` returned None", "return an empty tensor")


def call_of(
    name: str,
    kernel: AnyKernel,
    grid: Extent | None,
    block: Extent | None,
    out: Mapping[str, Callable[..., Any]],
    constants: Mapping[str, object],
) -> KernelCall:
    """Return the launch of an operator. Raises LaunchError if torch cannot pass what the kernel takes."""
    if grid is None or block is None:
        refuse(
            f"operator `{name}` launches kernel `{kernel.name}`, but has no `{'grid' if grid is None else 'block'}`",
            "pass `grid=` and `block=`: numbers, or functions of the operator's arguments",
        )
    variant = usual_variant(kernel, constants)
    parameters = {called: (kind, _schema_type(name, called, kind)) for called, kind in variant.parameters}
    written = [called for called in parameters if called in variant.written]
    _check_outputs(name, kernel, out, list(parameters), written)
    inputs = [called for called in parameters if called not in out]
    makers = {f"out['{called}']": make for called, make in out.items()}
    for option, function in {"grid": grid, "block": block, **makers}.items():
        _check_takes(name, option, function, inputs, written if not out else ())
    mutated = tuple(called for called in written if called not in out)
    marks = {called: f"(a{n}!)" for n, called in enumerate(mutated)}
    takes = ", ".join(f"{parameters[called][1]}{marks.get(called, '')} {called}" for called in inputs)
    names = list(out)
    return KernelCall(
        kernel, grid, block, constants,
        tuple(~names.index(called) if called in out else inputs.index(called) for called in parameters),
        tuple(out.values()), mutated, f"({takes}) -> {_returned(len(out))}",
    )  # fmt: skip


def _result(outputs: list[Any]) -> Any:
    """Return the result of an operator with these outputs."""
    return tuple(outputs) if len(outputs) > 1 else outputs[0] if outputs else None


def _returned(count: int) -> str:
    return "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"


def _schema_type(operator: str, called: str, kind: object) -> str:
    """Return the schema type of a parameter. Raises LaunchError if torch has no such type."""
    if isinstance(kind, Pointer | TensorMap):
        if not TORCH_TYPES.isdisjoint(elements(kind.element)):
            return "Tensor"
        refuse(
            f"operator `{operator}`: parameter `{called}` is {kind}, but torch has no tensors of {kind.element}",
            "use a pointer to the bits of this type in the kernel, such as ptr[b8] or ptr[b32]",
        )
    if isinstance(kind, Type):
        return "bool" if kind is pred else "float" if kind.is_float else "SymInt"
    refuse(
        f"operator `{operator}`: parameter `{called}` is {kind}, but torch passes only tensors and numbers",
        "write a launcher, a function of tensors and numbers that builds it and launches the kernel",
    )


def _check_takes(name: str, option: str, function: object, inputs: Sequence[str], written: Sequence[str]) -> None:
    """Refuse a function that does not take the arguments of an operator.

    `written` are pointers that may have been meant as its outputs.
    """
    taken = parameters_unlike(function, inputs)
    if taken is not None:
        help = f"write `lambda {', '.join(inputs)}: …`"
        if written:
            help += f", or name its outputs: `out={{'{written[0]}': …}}`"
        passed = ", ".join(inputs) or "nothing"
        refuse(f"operator `{name}`: `{option}` is a function of {taken}, but it is called with {passed}", help)


def _check_outputs(
    name: str, kernel: AnyKernel, out: Mapping[str, object], parameters: Sequence[str], written: Sequence[str]
) -> None:
    if not isinstance(out, Mapping):
        refuse(
            f"operator `{name}` has out={out!r}, which is not a dict",
            "pass a dict of its outputs, such as `{'y': lambda x: torch.empty_like(x)}`",
        )
    for called, make in out.items():
        if called not in parameters:
            refuse(
                f"operator `{name}` has the output `{called}`, but kernel `{kernel.name}` takes "
                f"{', '.join(parameters)}",
                "name pointer parameters of the kernel",
            )
        if called not in written:
            refuse(
                f"operator `{name}` has the output `{called}`, which kernel `{kernel.name}` does not write",
                f"it writes {', '.join(written)}" if written else "it writes nothing",
            )
        if not callable(make):
            refuse(
                f"operator `{name}`: the output `{called}` is {make!r}, which is not a function",
                "pass a function of the operator's arguments, such as `lambda x: torch.empty_like(x)`",
            )


def refuse(message: str, help: str) -> NoReturn:
    """Raise LaunchError at the user's call."""
    raise LaunchError(message, at=here().location, help=help)
