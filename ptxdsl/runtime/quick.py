"""Generate one Python function per combination of argument types, which checks all arguments and launches.

A launch takes a few microseconds, most of them in the driver. The function therefore has no loops and no calls into
this package: it reads the type, GPU, strides and address of each array and returns False if one differs from the
arguments that it was generated for; the full check then decides. For `k(x: ptr[f32], n: u32)` with torch tensors it is

    def launch(arguments, shape, stream, asked):
        if asked not in devices: return False
        a0, a1 = arguments
        if type(a1) is not t1: return False
        known = alike(a0)
        if not known and (a0.dtype is not d0 or … or not a0.is_contiguous()): return False
        p0 = a0.data_ptr()
        handle = current_stream() if stream is None else handle_of(stream)
        compared = p0, a1
        buffer, parameters, packed, configured = slots.kept
        config, last_shape, last_handle = configured
        if shape != last_shape or handle != last_handle:
            config = configs(shape, handle)
            configured[:] = config, shape, handle
        if compared != packed[0] or not known:
            if p0 & 3: return False
            packed[0], packed[1] = None, compared
            pack_into(buffer, 0, p0, a1)
            if packed[1] is not compared: return False
            if known: packed[0] = compared
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
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar, TypeAlias

from ptxdsl.arrays import Library, Strided, unwrapped
from ptxdsl.runtime.arguments import Signature
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


def launcher(
    signature: Signature,
    arguments: Sequence[object],
    arrays: Collection[int],
    library: Library | None,
    scope: Mapping[str, object],
) -> Launcher:
    """Return the launch function for arguments like these, which passed the full check.

    `arrays` are the positions of the arrays, all from `library`. `scope` holds the names of the loaded kernel that the
    function uses. It raises, before anything is launched, for a number that does not fit and for an argument that is
    not an array.
    """
    text = _KernelText(signature, arguments, arrays, library)
    source, names = str(text), {**scope, "Strided": Strided, "reach": reach}
    launch: Launcher = compiled(source, {**names, **text.constants}, f"<launch of {signature.kernel}>")
    return launch


def compiled(source: str, scope: dict[str, Any], file: str) -> Any:
    """Compile the source of a launch function, and return the function. `file` names the source in tracebacks."""
    exec(compile(source, file, "exec"), scope)
    return scope["launch"]


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


class LaunchText:
    """The source of a launch function. Array n is a{n}, its address p{n}. The text has names for values that it cannot
    spell; `constants` has their values once the text is made.

    A thread keeps the parameters that it packed last in `packed`: [0] identifies them, [1] the launch that packed them.
    They are packed again only if they differ. A signal handler may interrupt the thread and pack other parameters; the
    function then gives up, and the full check decides.
    """

    give_up: ClassVar[str]  # the statement that leaves a launch to the full check
    constants: dict[str, Any]

    def unless(self, *tests: str) -> list[str]:
        """Return the statement that gives up if a test holds."""
        return [f"if {' or '.join(tests)}: {self.give_up}"] if tests else []

    def packing(self, key: str, is_new: str, checks: Sequence[str], packed: Mapping[str, str], kept: str) -> list[str]:
        """Return the statements that check and pack the parameters of kernels, by the suffix of their names.

        `key` identifies the parameters, `is_new` is true if they are not packed yet, and `kept` notes that they are.
        """
        last = f"packed{next(iter(packed))}"
        body = [
            *checks,
            f"{last}[0], {last}[1] = None, {key}",
            *(f"pack_into{suffix}(buffer{suffix}, 0, {values})" for suffix, values in packed.items()),
            *self.unless(f"{last}[1] is not {key}"),
            kept,
        ]
        return [f"if {is_new}:", *(f"    {line}" for line in body)]

    @staticmethod
    def launching(suffix: str = "") -> list[str]:
        """Return the statements that launch a kernel, and repeat a launch that failed in the context of its GPU."""
        return [
            f"(status,) = run{suffix}(config{suffix}, function{suffix}, parameters{suffix}, 0)",
            f"if status: again{suffix}(status, config{suffix}, parameters{suffix})",
        ]


class _KernelText(LaunchText):
    """The source of the launch of one kernel. `constants` are the types that it compares with."""

    give_up = "return False"

    def __init__(
        self, signature: Signature, arguments: Sequence[object], arrays: Collection[int], library: Library | None
    ) -> None:
        self.signature, self.arguments, self.library = signature, arguments, library
        self.arrays, self.numbers = arrays, [n for n in range(len(arguments)) if n not in arrays]
        self.strided = [n for n in arrays if type(arguments[n]) is Strided]
        self.maps = {n: kind for n in arrays if isinstance(kind := signature.kinds[n], TensorMap)}
        self.gapped = [n for n in arrays if n in self.strided or n in self.maps]
        self.constants: dict[str, Any] = {}
        self.bytes: dict[int, int] = {}  # of arrays whose layout the library can compare

    def __str__(self) -> str:
        names = "".join(f"a{n}, " for n in range(len(self.arguments)))
        body = [
            *self.unless("asked not in devices"),
            f"{names or '()'} = arguments",
            *self._unwrapped(),
            *self.unless(*(f"type(a{n}) is not {self._type(n)}" for n in self.numbers)),
            f"known = {self._alike()}",
            *self.unless(*self._unlike()),
            *(f"p{n} = {self._ask('pointer', n)}" for n in self.arrays),
            "handle = current_stream() if stream is None else handle_of(stream)",
            f"compared = ({''.join(f'{self._compared(n)}, ' for n in range(len(self.arguments)))})",
            "buffer, parameters, packed, configured = slots.kept",
            "config, last_shape, last_handle = configured",
            "if shape != last_shape or handle != last_handle:",
            "    config = configs(shape, handle)",
            "    configured[:] = config, shape, handle",
            *self.packing(
                "compared",
                "compared != packed[0] or not known",
                self._checks(),
                {"": ", ".join(map(self._packed, range(len(self.arguments))))},
                "if known: packed[0] = compared",
            ),
            *self.launching(),
            "return True",
        ]
        return "\n    ".join(["def launch(arguments, shape, stream, asked):", *body])

    def _ask(self, question: str, n: int) -> str:
        return str(getattr(self.library, question)).format(f"a{n}", dtype=f"d{n}")

    def _unwrapped(self) -> list[str]:
        tests = self.unless(*(f"type(a{n}) is not Strided" for n in self.strided))
        return tests + [f"a{n} = a{n}.array" for n in self.strided]

    def _type(self, n: int) -> str:
        self.constants[f"t{n}"] = type(self.arguments[n])
        return f"t{n}"

    def _inexact(self) -> list[str]:
        """Return tests for ints passed as float parameters that may not be exact."""
        kinds = [(n, self.signature.kinds[n]) for n in self.numbers if type(self.arguments[n]) is int]
        limits = [(n, EXACT[kind.name]) for n, kind in kinds if isinstance(kind, Type) and kind.name in EXACT]
        return [f"not -{limit} <= a{n} <= {limit}" for n, limit in limits]

    def _alike(self) -> str:
        """Return an expression that is true if all arrays have the layout that the function was generated for."""
        if self.library is None:
            return "True"  # no arrays
        arrays = [unwrapped(self.arguments[n]) for n in self.arrays]
        alike = self.library.alike(arrays)
        if alike is None:
            return "False"
        self.constants["alike"] = alike
        self.bytes = {n: array.nbytes for n, array in zip(self.arrays, arrays, strict=True)}
        return f"alike({', '.join(f'a{n}' for n in self.arrays)})"

    def _unlike(self) -> list[str]:
        """Return the tests of each array, for a library without a joint test or for arrays of another shape."""
        self.constants.update((f"d{n}", unwrapped(self.arguments[n]).dtype) for n in self.arrays)
        tests = [self._ask("unlike", n) for n in self.arrays]
        tests += [self._ask("gaps", n) for n in self.arrays if n not in self.gapped]
        return [f"not known and ({' or '.join(tests)})"] if tests else []

    def _compared(self, n: int) -> str:
        """Return an expression that identifies an argument's parameter: equal only for equal parameters."""
        if n in self.arrays:
            return f"p{n}"
        kind = type(self.arguments[n])
        if kind is float:
            return f"a{n} or str(a{n})"  # 0.0 and -0.0 differ
        return f"a{n}" if kind in _SAME_IF_EQUAL else "object()"

    def _checks(self) -> list[str]:
        """Return the statements that check the arguments of a launch that differs from the previous one."""
        return [
            *self.unless(*self._inexact()),
            *self._mapped(),
            *self.unless(*self._misaligned()),
            *self._overlaps(),
        ]

    def _misaligned(self) -> list[str]:
        """Return one test per alignment, over all addresses."""
        together = defaultdict(list)
        for n, kind in enumerate(self.signature.kinds):
            if isinstance(kind, Pointer) and alignment(kind) > 1 and self.arguments[n] is not None:
                together[alignment(kind) - 1].append(self._packed(n))
        return [f"({' | '.join(addresses)}) & {mask}" for mask, addresses in together.items()]

    def _mapped(self) -> list[str]:
        """Return the statements that encode the tensor maps, which are cached by address and layout."""
        sizes = {n: unwrapped(self.arguments[n]).itemsize for n in self.maps}
        self.constants.update((f"map{n}", quick_map(kind, sizes[n])) for n, kind in self.maps.items())
        return [f"m{n} = map{n}(p{n}, a{n}.shape, {self._ask('steps', n)})" for n in self.maps]

    def _packed(self, n: int) -> str:
        if n in self.maps:
            return f"m{n}"
        return f"p{n}" if n in self.arrays else "0" if self.arguments[n] is None else f"a{n}"

    def _overlaps(self) -> list[str]:
        """Return the test that refuses an array overlapping a written one, unless they cover the same bytes."""
        written = [n for n in self.arrays if self.signature.names[n] in self.signature.written]
        pairs = [pair for pair in combinations(self.arrays, 2) if any(n in written for n in pair)]
        gapped = [n for n in self.gapped if any(n in pair for pair in pairs)]
        ordered = [pair if pair[0] in written else pair[::-1] for pair in pairs]
        tests = [f"({self._meet(*pair)}) and not ({self._same(*pair)})" for pair in ordered]
        return [
            *(f"l{n}, h{n} = reach(a{n}.shape, {self._ask('steps', n)}, a{n}.itemsize)" for n in gapped),
            *(f"s{n}, e{n} = {self._start(n)}, {self._end(n)}" for n in written if pairs),
            *self.unless(*tests),
        ]

    def _meet(self, written: int, other: int) -> str:
        """Return the overlap test of two arrays; the bounds of `written` are in s and e variables."""
        start = self._start(other)
        return f"{start} < e{written} if s{written} <= {start} else s{written} < {self._end(other)}"

    def _same(self, one: int, other: int) -> str:
        return f"{self._start(one)} == {self._start(other)} and {self._end(one)} == {self._end(other)}"

    def _start(self, n: int) -> str:
        return f"p{n} + l{n}" if n in self.gapped else f"p{n}"

    def _end(self, n: int) -> str:
        if n in self.gapped:
            return f"p{n} + h{n}"
        return f"p{n} + ({self.bytes[n]} if known else a{n}.nbytes)" if n in self.bytes else f"p{n} + a{n}.nbytes"
