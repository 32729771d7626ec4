"""From accumulators to memory: alpha and beta, a function of the caller, rows of whole chunks through shared memory.

`relu`, `gelu`, `silu` and the like are such functions; any Python function on traced values is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ptxdsl as pd
from ptxdsl import s32, s64
from ptxdsl.kernels.config import PAD, WARP, Extra, GemmConfig
from ptxdsl.kernels.mainloop import Accumulators
from ptxdsl.kernels.operand import WARP_TILE
from ptxdsl.layout import Layout, in_bytes, make_tiled_copy, make_tiled_copy_c, make_tiled_mma
from ptxdsl.types import Type, b8

WIDEST = 16  # bytes of one access


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

    def __init__(self, config: GemmConfig, memory: Any, first: tuple[Any, Any], output: Output) -> None:
        """`first` is the (row, column) of the block's first element; `memory` is free for all threads."""
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
        warp_m, warp_n = pd.warpid % config.warps[0], pd.warpid // config.warps[0]
        at = first[0] + warp_m * config.warp[0] + row, first[1] + warp_n * config.warp[1] + column
        self.rows_left, self.columns_left = (
            (extent - place).to(s32) for extent, place in zip(output.extent, at, strict=True)
        )
        self.out = Running(output.out, at, self.step)
        self.c = Running(output.c, at, self.step) if config.c == "separate" else self.out
        self.extras = [
            ExtraReader(extra, given, at, self)
            for extra, given in zip(config.extras, _extras(config, output), strict=True)
        ]

    def _writes(self, rows: Any, layout: Layout) -> tuple[Any, list[int]]:
        """The place of a thread's first pair of values, and the distances of all pairs from it, in bytes."""
        config = self.config
        warp = make_tiled_mma(config.mma.atom, tile=(WARP_TILE, config.warp[1], None))
        copy = make_tiled_copy_c(f"st.shared.{2 * config.staged.bytes}", warp, config.staged.bits)
        partition = in_bytes(copy.partition_d(layout, "shared"), config.staged.bytes)
        corner = rows + copy.get_slice(pd.laneid).partition_d(layout, "shared", bytes=True)(0, 0, 0)
        return corner, [partition(0, (0, i), 0, 0) for i in range(copy.values // 2)]

    def _reads(self, rows: Any, layout: Layout, lanes: int) -> tuple[Any, Any, Any]:
        """The place of a thread's first chunk, and its row and column."""
        bits, width = self.config.staged.bits, min(WIDEST, self.chunk * self.config.staged.bytes)
        copy = make_tiled_copy(f"ld.shared.{width}", Layout((self.step, lanes), (lanes, 1)), (1, self.chunk), bits)
        mine = copy.get_slice(pd.laneid)
        row, column = (c(0, 0, 0) for c in mine.coordinates((WARP_TILE, self.config.warp[1])))
        return rows + mine.partition_s(layout, "shared", bytes=True)(0, 0, 0), row, column

    def write(self, accumulators: Accumulators) -> None:
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
        return function(value, *extras) if function else value

    def _stage(self, values: list[Any]) -> None:
        """Pairs of neighbours on a row."""
        for distance, low, high in zip(self.written, values[::2], values[1::2], strict=True):
            write_words((self.corner + distance).bitcast(self.config.staged), pack([low, high], self.config.staged))

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
        for running in {id(r): r for r in (self.out, self.c)}.values():
            running.advance()

    def _finished(self, values: list[Any], first: int, column: int) -> Iterator[Any]:
        """The elements of a chunk, in the type of alpha."""
        config, scalar = self.config, self.config.scalar
        if config.c != "none":
            before = read(self.c.pointer + column, self.chunk, config.output, scalar)
            values = [v + self.output.beta * w for v, w in zip(values, before, strict=True)]
        extras = [extra.read(first, column) for extra in self.extras]
        for number, value in enumerate(values):
            yield self._apply(value, *(extra[number] for extra in extras))


class Running:
    """A pointer that goes down the rows of a matrix, `rows` at a time."""

    def __init__(self, target: Target, at: tuple[Any, Any], rows: int) -> None:
        self.pointer = pd.var(target.pointer.type, _element(target, at))
        self.step = target.stride * rows

    def advance(self) -> None:
        self.pointer += self.step


def _element(target: Target, at: tuple[Any, Any]) -> Any:
    return target.pointer + (at[0].to(s64) * target.stride + at[1].to(s64))


def _extras(config: GemmConfig, output: Output) -> Iterator[Target]:
    """The operands of the epilogue; one value a row, or a column, has no stride."""
    given = iter(output.extras)
    for extra in config.extras:
        yield Target(next(given), next(given) if extra.along == "mn" else None)


class ExtraReader:
    """An operand of the epilogue, read where a chunk of the output is sent."""

    def __init__(self, extra: Extra, given: Target, at: tuple[Any, Any], writer: Writer) -> None:
        self.extra, self.chunk, self.scalar = extra, writer.chunk, writer.config.scalar
        self.stride = given.stride
        if extra.along == "mn":
            self.place = _element(given, at)
        else:
            self.place = given.pointer + at["mn".index(extra.along)]

    def read(self, row: int, column: int) -> list[Any]:
        """The elements beside a chunk `row` rows and `column` columns from the first."""
        if self.extra.along == "m":
            return read(self.place + row, 1, self.extra.type, self.scalar) * self.chunk
        place = self.place + column
        if self.extra.along == "mn":
            place = place + self.stride * row
        return read(place, self.chunk, self.extra.type, self.scalar, self.extra.bytes)


def pack(values: list[Any], type: Type) -> list[Any]:
    """Values as registers hold them in memory: two 16-bit floats, one of 32 or 64 bits, or a single 16-bit one."""
    if type.bits > 16:
        return [value if value.type is type else value.to(type) for value in values]
    if len(values) == 1:
        return [values[0].to(type)]
    return [pd.ptx(f"cvt.rn.{type}x2.f32", high, low) for low, high in zip(values[::2], values[1::2], strict=True)]


def unpack(words: list[Any], type: Type) -> list[Any]:
    """The opposite of `pack`."""
    if type.bits > 16 or words[0].type.bits == 16:
        return words
    return [half for word in words for half in pd.unpack(word, type)]


def read(place: Any, count: int, type: Type, scalar: Type, most: int = WIDEST) -> list[Any]:
    """`count` neighbouring elements, converted to `scalar`, in accesses of at most `most` bytes."""
    each = max(1, min(count, most // type.bytes))
    words = [unpack(read_words(place + i, each, type), type) for i in range(0, count, each)]
    return [value if value.type is scalar else value.to(scalar) for values in words for value in values]


def _access(place: Any, count: int) -> tuple[str, str, int, int]:
    """(space, type in the mnemonic, registers of an access, accesses) of `count` elements of 4 bytes or more in all."""
    type = place.element
    kind = type if type.bits > 16 else pd.b32
    words = count * type.bytes // kind.bytes
    each = min(words, WIDEST // kind.bytes)
    return place.space, str(kind), each, words // each


def read_words(place: Any, count: int, type: Type) -> list[Any]:
    """`count` neighbouring elements in as many registers as `pack` makes of them."""
    if count * type.bytes < 4:
        return [place.load()]
    space, kind, each, accesses = _access(place, count)
    step = count // accesses
    if each == 1:
        return [pd.ptx(f"ld.{space}.{kind}", place + i * step) for i in range(accesses)]
    return [word for i in range(accesses) for word in pd.ptx(f"ld.{space}.v{each}.{kind}", place + i * step)]


def write_words(place: Any, words: list[Any]) -> None:
    """Stores what `read_words` reads."""
    if words[0].type.bits < 32:
        place.store(words[0])
        return
    count = len(words) * words[0].type.bits // place.element.bits
    space, kind, each, accesses = _access(place, count)
    for i in range(accesses):
        group = words[i * each :][:each]
        vector, value = (f".v{each}", group) if each > 1 else ("", group[0])
        pd.ptx(f"st.{space}{vector}.{kind}", place + i * (count // accesses), value)


# ---- functions for `epilogue=` -------------------------------------------------------------------------------------

Epilogue = Callable[..., Any]


def relu(x: Any) -> Any:
    """max(x, 0)"""
    return pd.max(x, 0.0)


def add(x: Any, y: Any) -> Any:
    """x + y: a bias, or a residual."""
    return x + y


def add_relu(x: Any, y: Any) -> Any:
    """max(x + y, 0)"""
    return relu(x + y)


def gelu(x: Any) -> Any:
    """x·Φ(x), by the usual approximation with tanh."""
    return x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


def add_gelu(x: Any, y: Any) -> Any:
    """gelu(x + y)"""
    return gelu(x + y)


def silu(x: Any) -> Any:
    """x·sigmoid(x)"""
    return x * sigmoid(x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), to a few units in the last place of f32."""
    return pd.ptx.rcp.approx.ftz.f32(1.0 + pd.ptx.ex2.approx.ftz.f32(x * -1.4426950408889634))


def scale(x: Any, y: Any) -> Any:
    """x·y: a factor for each row, or column."""
    return x * y


def scale_rows_and_columns(x: Any, rows: Any, columns: Any) -> Any:
    """x·rows·columns, as quantised matrices need it."""
    return x * rows * columns
