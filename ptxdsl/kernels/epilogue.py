"""From accumulators to memory: alpha and beta, a function of the caller, rows of whole chunks through shared memory.

`relu`, `gelu`, `silu` and the like are such functions; any Python function on traced values is.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ptxdsl as pd
from ptxdsl import f32, s32, s64
from ptxdsl.errors import Error, Location, TraceError, caller, raised_at
from ptxdsl.kernels.config import PAD, WARP, Extra, GemmConfig
from ptxdsl.kernels.mainloop import Accumulators, holders
from ptxdsl.kernels.tile import WARP_TILE
from ptxdsl.kernels.words import WIDEST, pack, read, read_words, write_words
from ptxdsl.layout import Layout, composition, in_bytes, make_tiled_copy, make_tiled_copy_c, make_tiled_mma
from ptxdsl.types import Type, b8

KERNELS = str(Path(__file__).parent)


class Target(NamedTuple):
    """A row-major matrix in global memory: its first element, and the elements between rows."""

    pointer: Any
    stride: Any


class Output(NamedTuple):
    """What the epilogue reads and writes, beside the accumulators; sizes are (m, n) of the whole output."""

    out: Target
    c: Target
    extent: tuple[Any, Any]
    alpha: Any
    beta: Any
    extras: tuple[Any, ...] = ()


class Writer:
    """Sends a warp's accumulators to global memory, 16 rows at a time, through shared memory in whole chunks."""

    def __init__(
        self, config: GemmConfig, memory: Any, first: tuple[Any, Any], output: Output, warp: Any = None
    ) -> None:
        """`first` is the (row, column) of the block's first element; `memory` is free for all threads; `warp` is the
        one whose values are sent, if not this one's."""
        self.config, self.output = config, output
        self.chunk = config.out_bytes // config.output.bytes
        per_row = config.warp[1] // self.chunk
        lanes = max(min(per_row, WARP), WARP // WARP_TILE)  # side by side on a row
        self.step = WARP // lanes  # rows that a warp sends at a time
        self.columns = range(0, config.warp[1], lanes * self.chunk)
        pitch = config.warp[1] + PAD
        layout = Layout((WARP_TILE, config.warp[1]), (pitch, 1))
        rows = memory.bitcast(b8) + pd.warpid * (WARP_TILE * pitch * config.staged.bytes)
        self.corner, self.written = self._writes(rows, layout)
        self.chunks, row, column = self._reads(rows, layout, lanes)
        warp = pd.warpid if warp is None else warp
        warp_m, warp_n = warp % config.warps[0], warp // config.warps[0]
        at = first[0] + warp_m * config.warp[0] + row, first[1] + warp_n * config.warp[1] + column
        self.rows_left, self.columns_left = (
            (extent - place).to(s32) for extent, place in zip(output.extent, at, strict=True)
        )
        self.out = Running(output.out, at, self.step)
        self.c = self._reader_of_c(at)
        self.extras = [
            Reader(extra, given, at, self) for extra, given in zip(config.extras, _extras(config, output), strict=True)
        ]

    def _reader_of_c(self, at: tuple[Any, Any]) -> Reader | None:
        config = self.config
        if config.c == "none":
            return None
        along = "mn" if config.c_major == "row" else "nm"
        extra = Extra(config.output, along, config.out_bytes, in_place=config.c == "in place")
        return Reader(extra, self.output.c, at, self)

    def _writes(self, rows: Any, layout: Layout) -> tuple[Any, list[tuple[int, int, int]]]:
        """The place of a thread's first value; of all pairs of neighbours the distance from it in bytes, and which
        values they are."""
        config, bytes = self.config, self.config.staged.bytes
        warp = make_tiled_mma(config.mma.atom, tile=(WARP_TILE, config.warp[1], None))
        copy = make_tiled_copy_c(f"st.shared.{bytes}", warp, config.staged.bits)
        held = composition(layout, in_order(config))
        partition = in_bytes(copy.partition_d(held, "shared"), bytes)
        corner = rows + copy.get_slice(pd.laneid).partition_d(held, "shared", bytes=True)(0, 0, 0)
        places = {partition(0, (0, i), 0, 0): i for i in range(copy.values)}
        pairs = [(place, low, places[place + bytes]) for place, low in places.items() if place % (2 * bytes) == 0]
        return corner, pairs

    def _reads(self, rows: Any, layout: Layout, lanes: int) -> tuple[Any, Any, Any]:
        """The place of a thread's first chunk, and its row and column."""
        bits, width = self.config.staged.bits, min(WIDEST, self.chunk * self.config.staged.bytes)
        copy = make_tiled_copy(f"ld.shared.{width}", Layout((self.step, lanes), (lanes, 1)), (1, self.chunk), bits)
        mine = copy.get_slice(pd.laneid)
        row, column = (c(0, 0, 0) for c in mine.coordinates((WARP_TILE, self.config.warp[1])))
        return rows + mine.partition_s(layout, "shared", bytes=True)(0, 0, 0), row, column

    def write(self, accumulators: Accumulators) -> None:
        with holders(self.config):
            for i, values in enumerate(accumulators.rows):
                self._stage([self._scaled(value) for value in values])
                pd.ptx.bar.warp.sync(0xFFFFFFFF)
                for row in range(0, WARP_TILE, self.step):
                    self._send(i * WARP_TILE + row, row)
                pd.ptx.bar.warp.sync(0xFFFFFFFF)

    def _scaled(self, value: Any) -> Any:
        """alpha times an accumulator; the function too, where it needs nothing else."""
        config = self.config
        value = (value if value.type is config.scalar else value.to(config.scalar)) * self.output.alpha
        return self._apply(value) if config.c == "none" and not config.extras else value

    def _apply(self, value: Any, *extras: Any) -> Any:
        function = self.config.epilogue
        return traced(function, value, *extras) if function else value

    def _stage(self, values: list[Any]) -> None:
        """Pairs of neighbours on a row."""
        for distance, low, high in self.written:
            pair = pack([values[low], values[high]], self.config.staged)
            write_words((self.corner + distance).bitcast(self.config.staged), pair)

    def _send(self, first: int, row: int) -> None:
        """One chunk a lane, of rows `first` and the following, which are staged from `row` on."""
        config, pitch = self.config, self.config.warp[1] + PAD
        for column in self.columns:
            with pd.if_((self.rows_left > first) & (self.columns_left > column)):
                staged = (self.chunks + (row * pitch + column) * config.staged.bytes).bitcast(config.staged)
                words = read_words(staged, self.chunk, config.staged)
                if config.c != "none" or config.extras:
                    words = pack(list(self._finished(words, first, column)), config.output)
                write_words(self.out.pointer + column, words)
        for running in {id(r): r for r in (self.out, *self._running())}.values():
            running.advance()

    def _running(self) -> list[Running]:
        """The places of the matrices that lie as the output does."""
        readers = [*filter(None, [self.c]), *self.extras]
        return [reader.running for reader in readers if reader.extra.along == "mn"]

    def _finished(self, values: list[Any], first: int, column: int) -> Iterator[Any]:
        """The elements of a chunk, in the type of alpha."""
        if self.c:
            before = self.c.read(first, column)
            values = [v + self.output.beta * w for v, w in zip(values, before, strict=True)]
        extras = [extra.read(first, column) for extra in self.extras]
        for number, value in enumerate(values):
            yield self._apply(value, *(extra[number] for extra in extras))


def in_order(config: GemmConfig) -> tuple[Layout, Layout]:
    """Rows and columns in the order in which a warp's fragments hold them: neighbours where an atom has others, if
    these come in pairs."""
    rows = Layout((8, 2), (2, 1)) if config.a.by_pairs else Layout(WARP_TILE)
    count = config.warp[1] // WARP_TILE
    columns = Layout((2, 4, 2, count), (2, 4, 1, WARP_TILE)) if config.b.by_pairs else Layout(config.warp[1])
    return rows, columns


class Known:
    """One function for all that make the same kernel: the last of these that was given."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function

    def __call__(self, *values: Any) -> Any:
        return self.__wrapped__(*values)


def traced(function: Callable[..., Any], *values: Any) -> Any:
    """What a function of the caller makes of an element. Its mistakes are shown in the caller's own lines."""
    function = function.__wrapped__ if isinstance(function, Known) else function
    try:
        result = function(*values)
    except Error as error:
        error.at = _in_own_lines(error.at)
        raise
    except (NameError, AttributeError) as error:
        raise _unknown_name(function, error) from None
    type, scalar = getattr(result, "type", None), values[0].type
    if isinstance(type, Type) and type.kind in "fsu":
        return result if type is scalar else _converted(result, scalar)
    if isinstance(result, int | float | np.number) and not isinstance(result, bool):
        return _constant(result, scalar)
    code, found = getattr(function, "__code__", None), f"a {type}" if type is not None else repr(result)
    raise TraceError(
        f"`epilogue` returns {found}; it returns the element that is written",
        at=Location(code.co_filename, code.co_firstlineno, inlined_at=caller()) if code else caller(),
        help="of a predicate, write pd.select(p, 1.0, 0.0)" if type is not None else "return the element",
    )


def _unknown_name(function: Any, error: NameError | AttributeError) -> TraceError:
    """A name that the caller's function reads and that is not there."""
    if isinstance(error, AttributeError):
        known = dir(error.obj)
    else:
        code = getattr(function, "__code__", None)
        own = (*code.co_varnames, *code.co_freevars) if code else ()
        known = [*own, *getattr(function, "__globals__", ()), *dir(builtins)]
    near = get_close_matches(error.name or "", known, 1)
    return TraceError(
        f"`epilogue` cannot be traced: {error}",
        at=raised_at(error, caller()),
        help=f"did you mean `{near[0]}`?" if near else None,
    )


def _constant(number: Any, scalar: Type) -> Any:
    """An element that is the same everywhere."""
    if scalar.is_integer and not isinstance(number, int | np.integer):
        raise TraceError(
            f"`epilogue` returns {number!r}, and the output is {scalar}",
            at=caller(),
            help="return an integer, or write to a float32 out",
        )
    return pd.var(scalar, number.item() if isinstance(number, np.number) else number)


def _converted(result: Any, scalar: Type) -> Any:
    if scalar.is_integer and result.type.is_float:
        raise TraceError(
            f"`epilogue` returns an {result.type}, and the output is {scalar}",
            at=caller(),
            help="round it, as by pd.ptx.cvt.rni.s32.f32(x), or write to a float32 out",
        )
    return result.to(scalar)


def _in_own_lines(at: Location | None) -> Location | None:
    """A place in a function of the caller, as called by the caller: without the lines of this kernel in between."""
    place = caller()
    own = takewhile(lambda location: not location.file.startswith(KERNELS), at.chain() if at else ())
    for location in reversed(list(own)):
        place = replace(location, inlined_at=place)
    return place


class Running:
    """A pointer that goes down the rows of a matrix, `rows` at a time."""

    def __init__(self, target: Target, at: tuple[Any, Any], rows: int) -> None:
        self.pointer = pd.var(target.pointer.type, _element(target, at))
        self.step = target.stride * rows

    def advance(self) -> None:
        self.pointer += self.step


def _element(target: Target, at: tuple[Any, Any]) -> Any:
    return target.pointer + (at[0].to(s64) * target.stride + at[1].to(s64))


def _extras(config: GemmConfig, output: Output) -> Iterator[Target | None]:
    """The operands of the epilogue; one value a row, or a column, has no stride, and the output itself no place."""
    given = iter(output.extras)
    for extra in config.extras:
        yield Target(next(given), next(given) if extra.is_matrix else None) if extra.parameters else None


class Reader:
    """What is read where a chunk of the output is sent: C, or an operand of the epilogue."""

    def __init__(self, extra: Extra, given: Target | None, at: tuple[Any, Any], writer: Writer) -> None:
        self.extra, self.scalar, self.chunk = extra, writer.config.scalar, writer.chunk
        if extra.in_place or given is None:
            self.running = writer.out
        elif extra.along == "mn":
            self.running = Running(given, at, writer.step)
        elif extra.along == "nm":
            self.place, self.stride = _element(given, at[::-1]), given.stride
        else:
            self.place = given.pointer + at["mn".index(extra.along)]

    def read(self, row: int, column: int) -> list[Any]:
        """The elements beside a chunk `row` rows and `column` columns from the first, in the type of alpha."""
        if self.extra.along == "mn":
            return self._read(self.running.pointer + column, self.chunk)
        if self.extra.along == "n":
            return self._read(self.place + column, self.chunk)
        if self.extra.along == "m":
            return self._read(self.place + row, 1) * self.chunk
        places = (self.place + row + self.stride * (column + i) for i in range(self.chunk))
        return [value for place in places for value in self._read(place, 1)]

    def _read(self, place: Any, count: int) -> list[Any]:
        return read(place, count, self.extra.type, self.scalar, self.extra.bytes)


# ---- for callers: `epilogue=` and `operands=` ----------------------------------------------------------------------

Epilogue = Callable[..., Any]


@dataclass(frozen=True)
class Vector:
    """An operand of `epilogue` that is no matrix."""

    array: Any


class per_row(Vector):
    """An operand of `epilogue` with one value for each row of the output: an array of shape (M,)."""


class per_column(Vector):
    """An operand of `epilogue` with one value for each column of the output, such as a bias: an array of (N,)."""


def relu(x: Any) -> Any:
    """max(x, 0); NaN stays NaN."""
    return pd.select(x < 0, 0, x)


def add(x: Any, y: Any) -> Any:
    """x + y: a bias, or a residual."""
    return x + y


def add_relu(x: Any, y: Any) -> Any:
    """relu(x + y)"""
    return relu(x + y)


def gelu(x: Any) -> Any:
    """x·Φ(x), by the usual approximation with tanh, which is off by up to 0.0005."""
    return x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


def add_gelu(x: Any, y: Any) -> Any:
    """gelu(x + y)"""
    return gelu(x + y)


def silu(x: Any) -> Any:
    """x·sigmoid(x)"""
    return x * sigmoid(x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) of an f32, with a relative error of at most (8 + |x|)·2^-23; 0 where that is below 2^-126."""
    if x.type is not f32:
        raise TraceError(
            f"sigmoid, gelu and silu are computed in f32; this value is {x.type}",
            help="write to a float32, float16 or bfloat16 `out`; for float64, pass a function of your own",
        )
    return pd.ptx.rcp.approx.ftz.f32(1.0 + pd.ptx.ex2.approx.ftz.f32(x * -1.4426950408889634))


def scale(x: Any, y: Any) -> Any:
    """x·y: a factor for each row, or column."""
    return x * y


def scale_rows_and_columns(x: Any, rows: Any, columns: Any) -> Any:
    """x·rows·columns, as quantised matrices need it."""
    return x * rows * columns
