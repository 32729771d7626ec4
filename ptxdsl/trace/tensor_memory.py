"""Tensor memory of Blackwell: its allocation as a `with` block, and matrices in it that warps load and store."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Self

from ptxdsl import ir
from ptxdsl.errors import public, public_class
from ptxdsl.trace.arrays import shared
from ptxdsl.trace.builder import Builder, current, refuse
from ptxdsl.trace.control import Block, if_
from ptxdsl.trace.instruction import Scalar, emit, shown
from ptxdsl.trace.operands import QUAD_ROWS, AccumulatorRow, HeldAccumulators, quad_rows, stage_number
from ptxdsl.trace.operators import cast, operate, steps
from ptxdsl.trace.ring import check_beginning, check_pair, synchronise
from ptxdsl.trace.roles import WARP, uniform_index
from ptxdsl.trace.value import laneid, make_value
from ptxdsl.types import Type, b32, f16, u16, u32

LEAST_COLUMNS, MOST_COLUMNS = 32, 512
ROWS = 128  # lanes of tensor memory
QUARTERS = 4  # of the lanes, one for each warp of a warpgroup
LANE_OF_QUARTER = 21  # bits by which a warp's number is shifted: 32 lanes, in bits 16 to 31 of an address
MOST_REGISTERS = 128  # of one load or store
_LEAVES = ("ret", "exit")


class tensor_memory(Block):
    """Allocate tensor memory for the body: `columns` columns of 128 lanes of 32 bits.

        with pd.tensor_memory(256) as memory:
            mma = pd.TensorMemoryMma(memory, "tcgen05.m128n128k16.f32.f16", a_tiles, b_tiles)
            accumulators = mma.accumulators(stages=2)
            …                                             # the roles of the kernel

    All threads of the block reach it, before the roles. The first warp allocates the columns and passes their address
    on through shared memory; at the end of the block, after a barrier, it frees them. `columns` is a power of two from
    32 to 512. A kernel allocates once; `pd.TensorMemoryMma` and `matrix` take columns of the allocation. With
    `pair=True`, both blocks of a CTA pair, a cluster of two, allocate for products of the pair.

    Raises TraceError for another number of columns, inside of roles, branches and loops, for a second allocation, and
    in a kernel that does not declare its block size. Targets: sm_100a, sm_103a and their families.
    """

    words = "pd.tensor_memory(…)"
    always = True

    def __init__(self, columns: int, *, pair: bool = False) -> None:
        self.words = f"pd.tensor_memory({columns!r}{', pair=True' * pair})"
        builder = current("pd.tensor_memory")
        builder.check_kernel("pd.tensor_memory", "allocate in the kernel")
        _check_columns(columns)
        _check_place(builder, self.words)
        if pair:
            check_pair(builder, self.words)
        self.columns, self.taken, self.ctas = columns, 0, 2 if pair else 1
        super().__init__()

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def begin(self) -> None:
        self.builder.memory[tensor_memory] = self
        where = shared(u32, 1, name="tensor_memory")
        with if_(self._is_first()):
            columns = where.address(0), self.columns
            emit(f"tcgen05.alloc.cta_group::{self.ctas}.sync.aligned.shared::cta.b32", columns)
            emit(f"tcgen05.relinquish_alloc_permit.cta_group::{self.ctas}.sync.aligned")
        synchronise(self.ctas)
        self.address: Any = operate("ld.shared.b32", where.address(0), type=b32)

    def body(self) -> None:
        self.builder.watchers.append(self.watch)

    def end(self) -> None:
        synchronise(self.ctas)
        with if_(self._is_first()):
            emit(f"tcgen05.dealloc.cta_group::{self.ctas}.sync.aligned.b32", (self.address, self.columns))

    def watch(self, instruction: ir.Instruction) -> None:
        """Refuse the end of threads before tensor memory is freed, and a second allocation."""
        opcode: Any = instruction.opcode
        name = opcode.text.partition(".")[0]
        if name in _LEAVES:
            refuse(
                f"`{name}` is inside of `with {self.words}`: the threads end before tensor memory is freed",
                "leave out the work of these threads by `with pd.if_(…):`",
            )
        if opcode.text.startswith("tcgen05.alloc"):
            refuse(
                f"`tcgen05.alloc` is inside of `with {self.words}`, which has given up the right to allocate",
                "allocate all columns by pd.tensor_memory, and take parts of them: `memory.matrix(…)`",
            )

    def _is_first(self) -> Any:
        with steps():
            return uniform_index(self.builder, "warp", WARP) == 0

    @property
    def open(self) -> bool:
        """True inside of the block."""
        return self.builder.memory.get(tensor_memory) is self and self.watch in self.builder.watchers

    def take(self, columns: int, noun: str) -> int:
        """Return the first of `columns` columns that are not taken yet; `noun` names them in messages."""
        left = self.columns - self.taken
        if columns > left:
            wanted = 1 << (self.taken + columns - 1).bit_length()
            help = f"allocate {wanted}: pd.tensor_memory({wanted})" if wanted <= MOST_COLUMNS else "use a smaller tile"
            refuse(f"{noun} take {columns} columns of tensor memory; {left} of {self.columns} are left", help)
        self.taken += columns
        return self.taken - columns

    @public
    def matrix(self, type: Type, rows: int, columns: int, *, stages: int = 1) -> TensorMatrix:
        """Take columns for `stages` matrices of `type`, f16 or one of 32 bits, in 64 or 128 rows."""
        if type.bits != 32 and type is not f16:
            refuse(f"a matrix of {type} in tensor memory", "its elements are f16, or have 32 bits")
        if rows not in (QUAD_ROWS, ROWS):
            refuse(f"a matrix of {rows} rows in tensor memory", f"it has {QUAD_ROWS} or {ROWS} rows")
        for name, count in (("columns", columns), ("stages", stages)):
            if not isinstance(count, int) or count < 1:
                refuse(f"a matrix in tensor memory has {count!r} {name}", "pass a positive int")
        first = self.take(
            stages * columns,
            f"{stages} matrices of {rows}x{columns}" if stages > 1 else f"a matrix of {rows}x{columns}",
        )
        return TensorMatrix(
            self, self.address if not first else _added(self.address, first), type, (rows, columns), stages
        )


@public_class
class TensorMatrix:
    """Matrices (rows, columns) in tensor memory, an element in each cell of 32 bits, one for each of `stages` stages.

    With 128 rows, row i is in lane i; with 64 rows, each warp of a warpgroup reaches 16 of them. Columns of the matrix
    are columns of tensor memory. `matrix[stage]`, of a number or a slot of a ring, is one stage.
    """

    def __init__(
        self, memory: tensor_memory, address: Any, type: Type, shape: tuple[int, int], stages: int = 1
    ) -> None:
        self.memory, self.address, self.type, self.shape, self.stages = memory, address, type, shape, stages

    def __getitem__(self, stage: Any) -> TensorMatrix:
        number = stage_number(stage, self.stages, "matrices in tensor memory")
        if self.stages == 1:
            return self
        self.check_open()
        with steps():
            step = self.shape[1]
            if isinstance(number, int):
                address = _added(self.address, number * step) if number else self.address
            else:
                address = operate("mad.lo.u32", number, step, self.address, type=b32)
        return TensorMatrix(self.memory, address, self.type, self.shape)

    @public
    def load(self, first: int = 0, count: int | None = None) -> LoadedAccumulators:
        """Load `count` columns from column `first` on, by default all, into registers of a warpgroup's threads.

        All lanes of a warp call it, and wait for the registers (tcgen05.wait::ld). Each warp loads the rows that it
        reaches: warp w of a warpgroup has lanes 32w to 32w + 31.
        """
        count = self._check_part("load", first, count)
        registers: list[Any] = []
        for address, shape, each in self._accesses(first, count):
            held = self.type if self.type.bits == 32 else b32
            ((loaded, _),) = emit(f"tcgen05.ld.sync.aligned.{shape}.b32", (address,), type=held)
            registers += make_value(loaded if each > 1 else (loaded,), held)
        emit("tcgen05.wait::ld.sync.aligned")
        if self.type is f16:  # the lower half of a cell
            registers = [register.bitcast(u32).to(u16).bitcast(f16) for register in registers]
        return LoadedAccumulators(self.type, (self.shape[0], count), registers, first)

    @public
    def store(self, registers: Sequence[Scalar], first: int = 0) -> None:
        """Store registers of a warpgroup's threads to the columns from `first` on, as `load` returns them.

        All lanes of a warp call it, and wait for the stores (tcgen05.wait::st).
        """
        columns = len(registers) * (ROWS // self.shape[0])
        count = self._check_part("store", first, columns)
        done = 0
        for address, shape, each in self._accesses(first, count):
            values: list[Any] = list(registers[done : done + each])
            if self.type is f16:
                values = [cast(value, f16).bitcast(u16).to(u32) for value in values]
            emit(f"tcgen05.st.sync.aligned.{shape}.b32", (address, values))
            done += each
        emit("tcgen05.wait::st.sync.aligned")

    @public
    def coordinates(self, first: int = 0, count: int | None = None) -> list[tuple[Any, Any]]:
        """Return the (row, column) of each register that `load` of these columns returns, and that `store` takes."""
        count = self._check_part("coordinates", first, count)
        registers = [object() for _ in range(self.shape[0] * count // ROWS)]
        return LoadedAccumulators(self.type, (self.shape[0], count), registers, first).coordinates()

    def check_open(self) -> None:
        """Refuse a use after the end of the allocation."""
        if not self.memory.open:
            refuse(
                f"a matrix in tensor memory is used after the end of `with {self.memory.words}`, which frees it",
                "indent its use, so that it belongs to the `with`",
            )

    def _check_part(self, verb: str, first: Any, count: Any) -> int:
        """Return the number of columns; refuse columns outside of the matrix and a part of several stages."""
        self.check_open()
        if self.stages > 1:
            refuse(f"`{verb}` of {self.stages} stages of a matrix", f"choose one: `matrix[slot].{verb}(…)`")
        step, columns = (1 if self.shape[0] == ROWS else 8), self.shape[1]
        count = columns - first if count is None else count
        if not isinstance(first, int) or not isinstance(count, int):
            refuse(
                f"`{verb}` takes columns that are known while tracing; found {shown(first)}",
                "unroll the loop by Python's range",
            )
        if first < 0 or count < 1 or first + count > columns or first % step or count % step:
            multiple = f", in multiples of {step}" * (step > 1)
            refuse(
                f"`{verb}` of columns {first} to {first + count - 1}",
                f"the matrix has columns 0 to {columns - 1}{multiple}",
            )
        return count

    def _accesses(self, first: int, count: int) -> Iterator[tuple[Any, str, int]]:
        """Yield (address, shape, registers) of each instruction: powers of two of repetitions, the largest first.

        The address is that of the lanes which the current warp reaches.
        """
        name, step, held = ("32x32b", 1, 1) if self.shape[0] == ROWS else ("16x256b", 8, 4)  # of one repetition
        with steps():
            quarter = operate("add.u32", self.address, warp_in_warpgroup() << LANE_OF_QUARTER, type=b32)
        while count:
            repeats = min(1 << int(math.log2(count // step)), MOST_REGISTERS // held)
            with steps():
                address = _added(quarter, first)
            yield address, f"{name}.x{repeats}", repeats * held
            first, count = first + repeats * step, count - repeats * step


class LoadedAccumulators(HeldAccumulators):
    """Columns of a matrix in tensor memory that a warpgroup has loaded: one row a thread, or two of 64 rows."""

    @public
    def rows(self) -> list[AccumulatorRow]:
        """Return the rows that this thread holds, each with its registers and their columns."""
        rows, columns = self.shape
        with steps():
            warp: Any = warp_in_warpgroup()
            if rows == QUAD_ROWS:
                return quad_rows(self.registers, self.shape, warp, 0, self.first)
            return [AccumulatorRow(warp * WARP + laneid, self.first, tuple(range(columns)), tuple(self.registers), 1)]


def warp_in_warpgroup() -> Any:
    """Return the index of the thread's warp in its warpgroup, uniform in the warp."""
    return uniform_index(current("tensor memory"), "warp", WARP) % QUARTERS


def _added(address: Any, columns: int) -> Any:
    """Return an address `columns` columns further on, in a b32 register as tcgen05.mma takes it."""
    return operate("add.u32", address, columns, type=b32) if columns else address


def _check_columns(columns: Any) -> None:
    if type(columns) is not int:
        refuse(
            f"pd.tensor_memory takes {shown(columns)} as its number of columns",
            "it is an int that is known while tracing",
        )
    if not LEAST_COLUMNS <= columns <= MOST_COLUMNS or columns & columns - 1:
        above = max(LEAST_COLUMNS, 1 << max(columns - 1, 0).bit_length())
        help = f"{above} has room for them" if above <= MOST_COLUMNS else "an SM has 512 columns"
        refuse(f"pd.tensor_memory takes a power of two from 32 to 512; found {columns}", help)


def _check_place(builder: Builder, words: str) -> None:
    check_beginning(builder, f"`{words}`", "put it before, at the beginning of the kernel, and the roles into it")
    earlier: tensor_memory | None = builder.memory.get(tensor_memory)
    if earlier is not None:
        refuse(
            f"`{words}` is a second allocation; the first, {earlier.where}, gives up the right to allocate",
            "allocate once, and take parts of it: `memory.matrix(…)`",
        )
    threads = math.prod(builder.block or (0,))
    if threads % WARP or not threads:
        size = "does not declare its block size" if not threads else f"has blocks of {threads} threads"
        refuse(
            f"`{words}` is in a kernel that {size}; a whole warp allocates",
            "declare a multiple of 32 threads: `@pd.kernel(reqntid=256)`",
        )
