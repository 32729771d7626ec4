"""Launch records: one generated Python function per remembered launch, which checks its arguments and launches.

A launch takes a few microseconds, most of them in the driver. The function therefore has no loops and no calls into
this package: it compares the layout and address of each array with those of the launch that it was generated for, and
gives up if one does not fit; the full check then decides. A kernel has records of its launches (`KernelRecord`), and so
have calls of the kernels that ship. For `k(x: ptr[f32], n: u32)` with torch tensors the function is

    def launch(arguments, shape, stream, asked):
        if asked not in devices: return False
        a0, a1 = arguments
        if type(a1) is not t1: return False
        known = alike(a0)
        if not known and (a0.dtype is not d0 or … or not a0.is_contiguous()): return False
        stream = current_stream() if stream is None else handle_of(stream)
        p0 = a0.data_ptr()
        key = (p0, a1, )
        buffer, parameters, packed, configured = slots.kept
        config, last_shape, last_stream = configured
        if shape != last_shape or stream != last_stream:
            config = configs(shape, stream)
            configured[:] = config, shape, stream
        if key != packed[0] or not known:
            if p0 & 3: return False
            packed[0], packed[1] = None, key
            pack_into(buffer, 0, p0, a1)
            if packed[1] is not key: return False
            if known: packed[0] = key
        (status,) = run(config, function, parameters, 0)
        if status: again(status, config, parameters)
        return True

A launch with the same addresses and numbers as the previous launch of this thread, and arrays of the same layout,
reuses the packed parameters. One with the same shape and stream reuses the configuration. If the library cannot compare
layouts (`known` is false), each launch is checked and packed. `packed` records the buffer's contents and the launch
that packed it: a signal handler may interrupt the thread and pack other parameters, in which case the full check
decides, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, TypeAlias

from ptxdsl.arrays import Library, Strided, unwrapped
from ptxdsl.runtime.arguments import Signature
from ptxdsl.runtime.streams import stream_handle
from ptxdsl.runtime.tensor_maps import quick_map
from ptxdsl.runtime.values import alignment
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import Pointer, Type

EXACT = {"f16": 1 << 11, "f32": 1 << 24, "tf32": 1 << 24, "f64": 1 << 53}  # all ints up to this are exact floats
_SAME_IF_EQUAL = (int, bool, type(None))  # equal numbers of these types are equal parameters
# (arguments, shape, stream, device) -> True if the arguments matched and were launched.
Launcher: TypeAlias = Callable[[Sequence[Any], tuple[Any, ...], Any, "int | None"], bool]


def never(arguments: Sequence[object], shape: tuple[object, ...], stream: object, asked: int | None) -> bool:
    """The launcher before the first launch."""
    return False


@lru_cache(maxsize=1024)
def reach(shape: tuple[int, ...], strides: tuple[int, ...], unit: int, itemsize: int) -> tuple[int, int]:
    """Return the byte offsets of the lowest element and of the end of the highest one, relative to the array's address.

    Strides count `unit` bytes. Raises ValueError for strides that are not multiples of the element size.
    """
    if 0 in shape:
        return 0, 0
    steps = [(extent - 1) * stride * unit for extent, stride in zip(shape, strides, strict=True)]
    if any(stride * unit % itemsize for stride in strides):
        raise ValueError
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0) + itemsize


def launch_source(
    parameters: str,
    compared: Sequence[str],
    is_new: str,
    checks: Sequence[str],
    packed: Mapping[str, Sequence[str]],
    kept: str,
    results: tuple[str, str],
) -> str:
    """Return the source of a function that repeats a launch.

    `compared` are the statements that compare the arguments, set `key`, and set the configuration and the parameter
    memory of each kernel. `is_new` is true if the parameters are not those in the memory; they then pass the `checks`,
    and are packed. `packed` are expressions for the parameters of each kernel, by the suffix of its names; `kept`
    records what the memory holds. `results` are what the function returns when it gives up, and after the launch.
    """
    first = f"packed{next(iter(packed))}"
    body = [
        *compared,
        f"if {is_new}:",
        *(f"    {line}" for line in checks),
        f"    {first}[0], {first}[1] = None, key",
        *(f"    pack_into{suffix}(buffer{suffix}, 0, {', '.join(values)})" for suffix, values in packed.items()),
        f"    if {first}[1] is not key: return {results[0]}",
        f"    {kept}",
    ]
    for suffix in packed:
        body += [
            f"(status,) = run{suffix}(config{suffix}, function{suffix}, parameters{suffix}, 0)",
            f"if status: again{suffix}(status, config{suffix}, parameters{suffix})",
        ]
    return "\n    ".join([f"def launch({parameters}):", *body, f"return {results[1]}"])


def compiled(source: str, scope: dict[str, Any], file: str) -> Any:
    """Compile the source of a launch function, and return the function. `file` names the source in tracebacks."""
    exec(compile(source, file, "exec"), scope)
    return scope["launch"]


def unless(tests: Iterable[str], result: object) -> list[str]:
    """Return the statement that gives up, with a result, if a test holds."""
    condition = " or ".join(tests)
    return [f"if {condition}: return {result}"] if condition else []


def overlap(reaches: Mapping[int, tuple[int | str, int | str]], one: int, other: int) -> str:
    """Return a test that is true if two arrays share memory, by the distance of their addresses.

    An array reaches from the offset of its first byte to that past its last one.
    """
    (low, high), (other_low, other_high) = reaches[one], reaches[other]
    return f"{other_low} - {high} < p{one} - p{other} < {other_high} - {low}"


class KernelRecord:
    """A launch of one kernel, to repeat with arrays of the same types.

    `arrays` are the positions of the arrays among the `arguments`, which passed the full check; all are from `library`.
    The function raises, before anything is launched, for a number that does not fit and for an argument that is not an
    array.
    """

    def __init__(
        self,
        signature: Signature,
        arguments: Sequence[object],
        arrays: Collection[int],
        library: Library | None,
        loaded: Mapping[str, object],
        devices: tuple[int | None, int],
    ) -> None:
        """`loaded` holds the names of the loaded kernel, and `devices` the GPUs that a caller may ask for."""
        self.signature, self.arguments, self.arrays, self.library = signature, arguments, arrays, library
        self.numbers = [n for n in range(len(arguments)) if n not in arrays]
        self.strided = [n for n in arrays if type(arguments[n]) is Strided]
        self.maps = {n: kind for n in arrays if isinstance(kind := signature.kinds[n], TensorMap)}
        self.alike = library.alike([unwrapped(arguments[n]) for n in arrays]) if library else None
        self.constants: dict[str, Any] = {
            **loaded, "devices": devices, "device": devices[1], "Strided": Strided, "reach": reach,
            "alike": self.alike, "handle_of": stream_handle,
            "current_stream": library.current_stream(devices[1]) if library else int,  # int() is stream 0
        }  # fmt: skip
        self.constants.update((f"d{n}", unwrapped(arguments[n]).dtype) for n in arrays)
        self.constants.update((f"t{n}", type(arguments[n])) for n in self.numbers)
        sizes = {n: unwrapped(arguments[n]).itemsize for n in self.maps}
        self.constants.update((f"map{n}", quick_map(kind, sizes[n])) for n, kind in self.maps.items())

    def compiled(self) -> Launcher:
        """Return the function."""
        packed = {"": [self._packed(n) for n in range(len(self.arguments))]}
        is_new, kept = "key != packed[0] or not known", "if known: packed[0] = key"
        source = launch_source(
            "arguments, shape, stream, asked", self._compared(), is_new, self._checks(), packed, kept, ("False", "True")
        )
        launch: Launcher = compiled(source, self.constants, f"<launch of {self.signature.kernel}>")
        return launch

    def _ask(self, question: str, n: int) -> str:
        """Return the expression of the library for an array."""
        return str(getattr(self.library, question)).format(f"a{n}", dtype=f"d{n}")

    def _compared(self) -> list[str]:
        names = "".join(f"a{n}, " for n in range(len(self.arguments)))
        alike = f"alike({', '.join(f'a{n}' for n in self.arrays)})" if self.alike else str(self.library is None)
        unlike = [self._ask("unlike", n) for n in self.arrays]
        unlike += [self._ask("gaps", n) for n in self.arrays if n not in self.strided and n not in self.maps]
        return [
            *unless(["asked not in devices"], False),
            f"{names or '()'} = arguments",
            *unless((f"type(a{n}) is not Strided" for n in self.strided), False),
            *(f"a{n} = a{n}.array" for n in self.strided),
            *unless((f"type(a{n}) is not t{n}" for n in self.numbers), False),
            f"known = {alike}",
            *unless([f"not known and ({' or '.join(unlike)})"] if unlike else [], False),
            *(f"p{n} = {self._ask('pointer', n)}" for n in self.arrays),
            "stream = current_stream() if stream is None else handle_of(stream)",
            f"key = ({''.join(f'{self._identity(n)}, ' for n in range(len(self.arguments)))})",
            "buffer, parameters, packed, configured = slots.kept",
            "config, last_shape, last_stream = configured",
            "if shape != last_shape or stream != last_stream:",
            "    config = configs(shape, stream)",
            "    configured[:] = config, shape, stream",
        ]

    def _identity(self, n: int) -> str:
        """Return an expression that identifies an argument's parameter: equal only for equal parameters."""
        if n in self.arrays:
            return f"p{n}"
        kind = type(self.arguments[n])
        if kind is float:
            return f"a{n} or str(a{n})"  # 0.0 and -0.0 differ
        return f"a{n}" if kind in _SAME_IF_EQUAL else "object()"

    def _packed(self, n: int) -> str:
        if n in self.maps:
            return f"m{n}"
        return f"p{n}" if n in self.arrays else "0" if self.arguments[n] is None else f"a{n}"

    def _checks(self) -> list[str]:
        """Return the statements that check the arguments of a launch that differs from the previous one."""
        return [
            *unless(self._inexact(), False),
            *(f"m{n} = map{n}(p{n}, a{n}.shape, {self._ask('steps', n)})" for n in self.maps),
            *unless(self._misaligned(), False),
            *self._apart(),
        ]

    def _inexact(self) -> list[str]:
        """Return tests for ints passed as float parameters that may not be exact."""
        kinds = [(n, self.signature.kinds[n]) for n in self.numbers if type(self.arguments[n]) is int]
        limits = [(n, EXACT[kind.name]) for n, kind in kinds if isinstance(kind, Type) and kind.name in EXACT]
        return [f"not -{limit} <= a{n} <= {limit}" for n, limit in limits]

    def _misaligned(self) -> list[str]:
        """Return one test per alignment, over all addresses."""
        together = defaultdict(list)
        for n, kind in enumerate(self.signature.kinds):
            if isinstance(kind, Pointer) and alignment(kind) > 1 and self.arguments[n] is not None:
                together[alignment(kind) - 1].append(self._packed(n))
        return [f"({' | '.join(addresses)}) & {mask}" for mask, addresses in together.items()]

    def _apart(self) -> list[str]:
        """Return the statements that give up if an array overlaps a written one, unless they cover the same bytes."""
        written = {n for n in self.arrays if self.signature.names[n] in self.signature.written}
        pairs = [pair for pair in combinations(self.arrays, 2) if written & {*pair}]
        extents, reaches = [], dict[int, tuple[int | str, int | str]]()
        for n in sorted({n for pair in pairs for n in pair}):
            if n in self.strided or n in self.maps:
                reaches[n] = f"l{n}", f"h{n}"
                extents.append(f"l{n}, h{n} = reach(a{n}.shape, {self._ask('steps', n)}, a{n}.itemsize)")
            else:
                reaches[n] = 0, f"h{n}"
                extents.append(f"h{n} = {unwrapped(self.arguments[n]).nbytes} if known else a{n}.nbytes")
        tests = []
        for one, other in pairs:
            ends = zip(reaches[one], reaches[other], strict=True)
            differ = [f"p{one} != p{other}", *(f"{end} != {other_end}" for end, other_end in ends if end != other_end)]
            tests.append(f"{overlap(reaches, one, other)} and ({' or '.join(differ)})")
        return [*extents, *unless(tests, False)]
