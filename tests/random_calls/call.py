"""A call with what it should give, and the judgement of what it gave."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from ptxdsl.kernels.call.groups import grouped, ragged, ragged_k
from ptxdsl.kernels.call.launching import residency
from tests.machines import NAMES
from tests.random_calls.views import View

WRITTEN = {
    **{"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53, "s32": 0.0},
    **{"e4m3": 2.0**-4, "e5m2": 2.0**-3},
}
LEAST = {"f16": 2.0**-25, "bf16": 0.0, "f32": 0.0, "f64": 0.0, "s32": 0.0, "e4m3": 2.0**-10, "e5m2": 2.0**-17}
MOST = {"f16": 65504.0, "bf16": 3.39e38, "f32": 3.4e38, "f64": 1.7e308, "s32": 2.0**31, "e4m3": 448.0, "e5m2": 57344.0}


class Wrong(AssertionError):
    """A call did not give what it should."""


@dataclass
class Result:
    """What an output should hold: `values`, off by `allowed` and the rounding of its type; where `written`."""

    values: np.ndarray
    allowed: np.ndarray | float
    written: np.ndarray | None = None


@dataclass
class Call:
    """`function(*arguments, **options)`; each View in them stands for its array on the machine. `outputs` are those
    that are written, or none where the call makes them; `results` are what they should hold."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    options: dict[str, Any]
    results: Sequence[Result]
    outputs: Sequence[View] = ()
    blocks: int | None = None
    notes: str = ""

    @property
    def is_repeatable(self) -> bool:
        """Whether it computes the same from what it has written."""
        read = {name: value for name, value in self.options.items() if name != "out"}
        return not any(view is out for view in views_of([self.arguments, read]) for out in self.outputs)

    def __str__(self) -> str:
        said = [shown(value) for value in self.arguments]
        said += [f"{name}={shown(value)}" for name, value in self.options.items()]
        return f"{self.function.__name__}({', '.join(said)}) on {self.blocks or 'all'} blocks {self.notes}"


def shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    if hasattr(value, "array") and not isinstance(value, View):
        return f"{type(value).__name__}({shown(value.array)})"
    return getattr(value, "__name__", None) or str(value)


class OnEmulator:
    """Arrays are those of numpy."""

    def __init__(self) -> None:
        self.arrays: dict[int, tuple[View, Any, Any]] = {}

    def array(self, view: View) -> Any:
        """The array on the machine: the same for the same view."""
        if id(view) not in self.arrays:
            self.arrays[id(view)] = (view, *self.copied(view))
        return self.arrays[id(view)][2]

    def copied(self, view: View) -> tuple[Any, Any]:
        base = np.copy(view.base)
        lifted = np.empty(base.size + 512, np.uint8)
        lifted = lifted[-lifted.ctypes.data % 512 :][: base.size]
        lifted[...] = base
        shape, strides = view.array.shape, view.array.strides
        return lifted, np.ndarray(shape, view.array.dtype, lifted.data, view.offset_bytes, strides)

    def bases(self) -> Iterator[tuple[View, np.ndarray]]:
        for view, base, _ in self.arrays.values():
            yield view, self.bytes(base)

    def bytes(self, base: Any) -> np.ndarray:
        return base

    def values(self, array: Any) -> np.ndarray:
        return np.ascontiguousarray(array)

    def finish(self) -> None:
        """Waits until what was launched has ended."""


class OnGpu(OnEmulator):
    """Arrays are tensors of torch."""

    def __init__(self) -> None:
        super().__init__()
        import torch

        self.torch = torch
        self.types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
        self.types |= {"s8": torch.int8, "u8": torch.uint8, "s32": torch.int32}
        self.types |= {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}

    def copied(self, view: View) -> tuple[Any, Any]:
        each = view.array.itemsize
        base = self.torch.from_numpy(np.array(view.base)).cuda()
        strides = [stride // each for stride in view.array.strides]
        return base, base.view(self.types[view.type]).as_strided(view.array.shape, strides, view.offset_bytes // each)

    def bytes(self, base: Any) -> np.ndarray:
        return base.cpu().numpy()

    def values(self, array: Any) -> np.ndarray:
        name = next(name for name, type in self.types.items() if type is array.dtype)
        bits = array.contiguous().view(getattr(self.torch, f"int{8 * array.element_size()}")).cpu().numpy()
        return bits.view(NAMES[name])

    def finish(self) -> None:
        self.torch.cuda.synchronize()

    def restore(self, views: Sequence[View]) -> None:
        """Sets arrays to what they were."""
        for view in views:
            _, base, _ = self.arrays[id(view)]
            base.copy_(self.torch.from_numpy(np.array(view.base)))

    def replay(self, launches: Sequence[Callable[[], None]]) -> None:
        """Launches once more, as a graph of a stream of its own."""
        graph, stream = self.torch.cuda.CUDAGraph(), self.torch.cuda.Stream()
        self.finish()
        with self.torch.cuda.stream(stream):
            graph.capture_begin()
            try:
                for launch in launches:
                    launch()
            finally:
                graph.capture_end()
            graph.replay()
        self.graph = graph  # which must live as long as it runs


@contextlib.contextmanager
def few_blocks(count: int | None) -> Iterator[None]:
    """A GPU that holds no more blocks at a time, so that each has several tiles; None leaves it as it is."""
    if count is None:
        yield
        return
    actual = residency.resident_blocks

    def fewer(*arguments: Any, **constants: Any) -> int:
        return min(count, actual(*arguments, **constants))

    with contextlib.ExitStack() as stack:
        for module in (residency, grouped, ragged, ragged_k):
            stack.enter_context(mock.patch.object(module, "resident_blocks", fewer))
        yield


class Placed:
    """A call whose arrays are on a machine. It is launched, and judged when the machine has finished."""

    def __init__(self, call: Call, machine: OnEmulator) -> None:
        self.call, self.machine = call, machine
        self.arguments = [placed(value, machine) for value in call.arguments]
        self.options = {name: placed(value, machine) for name, value in call.options.items()}
        self.returned: Any = None

    def launch(self) -> None:
        with few_blocks(self.call.blocks):
            self.returned = self.call.function(*self.arguments, **self.options)

    def judged(self) -> list[np.ndarray]:
        """The outputs. Raises Wrong for numbers that are, and for any other byte that has changed."""
        call = self.call
        outputs = self.returned if isinstance(self.returned, list) else [self.returned]
        stored = [self.machine.values(output) for output in outputs]
        check_bytes(call, self.machine)
        if len(stored) != len(call.results):
            raise Wrong(f"{len(stored)} outputs, not {len(call.results)}")
        for number, (output, result) in enumerate(zip(stored, call.results, strict=True)):
            check_values(output, result, call.outputs[number] if call.outputs else None, number)
        return stored


def views_of(value: Any) -> Iterator[View]:
    """Those in arguments, lists and operands."""
    if isinstance(value, View):
        yield value
    elif isinstance(value, dict):
        yield from views_of([*value.values()])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from views_of(each)
    elif isinstance(getattr(value, "array", None), View):
        yield value.array


def placed(value: Any, machine: OnEmulator) -> Any:
    if isinstance(value, View):
        return machine.array(value)
    if isinstance(value, list | tuple):
        return type(value)(placed(each, machine) for each in value) if type(value) in (list, tuple) else value
    if isinstance(getattr(value, "array", None), View):
        return type(value)(machine.array(value.array))
    return value


def check_bytes(call: Call, machine: OnEmulator) -> None:
    """Nothing has changed but elements of outputs."""
    for view, base in machine.bases():
        is_output = any(view is output for output in call.outputs)
        changed = base != view.base
        if is_output:
            changed &= view.beside
        if changed.any():
            at = np.flatnonzero(changed)
            each = view.array.itemsize
            first = (at[0] - view.offset_bytes) / each
            raise Wrong(
                f"{len(at)} bytes {'beside' if is_output else 'of'} {view} have changed, the first one {first} elements "
                f"from its first one, the last {(at[-1] - view.offset_bytes) / each}"
            )


def check_values(output: np.ndarray, result: Result, before: View | None, number: int) -> None:
    type = next(name for name, dtype in NAMES.items() if dtype == output.dtype)
    if output.shape != result.values.shape:
        raise Wrong(f"output {number} has the shape {output.shape}, not {result.values.shape}")
    expected = result.values
    if type == "s32":
        expected = np.rint(expected).astype(np.int64).astype(np.int32).astype(np.float64)
    if type in ("e4m3", "e5m2"):
        expected = np.clip(expected, -MOST[type], MOST[type])
    with np.errstate(invalid="ignore", over="ignore"):
        actual = output.astype(np.float64)
        error = np.abs(actual - expected)
        allowed = result.allowed + WRITTEN[type] * np.abs(expected) + LEAST[type]
        wrong = ~(error <= allowed)
        overflows = np.abs(expected) + allowed >= MOST[type]
        wrong &= ~(overflows & (np.sign(actual) == np.sign(expected)) & (np.abs(actual) >= MOST[type] * 0.99))
    if result.written is not None:
        wrong &= result.written
        if before is not None:
            same = np.ascontiguousarray(before.array).view(f"u{output.itemsize}") == output.view(f"u{output.itemsize}")
            wrong |= ~result.written & ~same
    if wrong.any():
        first = tuple(int(at) for at in np.argwhere(wrong)[0])
        last = tuple(int(at) for at in np.argwhere(wrong)[-1])
        raise Wrong(
            f"{int(wrong.sum())} of {wrong.size} elements of output {number} ({type}) are wrong, from {first} to {last}: "
            f"{actual[first]} for {expected[first]}"
        )
