"""Products of tiles by wgmma: the instructions of one warpgroup, and the accumulators with their coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from ptxdsl.driver import Late
from ptxdsl.errors import public, public_class
from ptxdsl.trace.builder import refuse
from ptxdsl.trace.instruction import emit, shown
from ptxdsl.trace.memory import ArrayView
from ptxdsl.trace.operands import QUAD, AccumulatorRow, HeldAccumulators, quad_rows, staged_operand
from ptxdsl.trace.operators import cast, operate, select, steps
from ptxdsl.trace.packing import pack
from ptxdsl.trace.roles import ALL_LANES, WARP, WARPGROUP
from ptxdsl.trace.value import Var, laneid, tid, var
from ptxdsl.types import Type, b16, b32, bf16, e4m3, e5m2, f16, f32, s32, u32

atoms: Any = Late("ptxdsl.layout.atoms")
operands: Any = Late("ptxdsl.layout.shared_operand")

ROWS = 64  # rows of A in one wgmma
A_REGISTERS = 4  # 32-bit registers of A in one wgmma
A_BITS = 256  # of a row of A in one wgmma
ACCUMULATORS = {"f32": f32, "s32": s32}
CONVERTED = {
    bf16: "cvt.rn.bf16x2.f32",
    f16: "cvt.rn.f16x2.f32",
    e4m3: "cvt.rn.satfinite.e4m3x2.f32",
    e5m2: "cvt.rn.satfinite.e5m2x2.f32",
}
PAIRS = (0x5410, 0x1054), (0x7632, 0x3276)
"""The bytes of x and y that prmt selects: the lower pairs of both, x or y first, and the upper pairs."""


@public_class
class Accumulators(HeldAccumulators):
    """The accumulators of one warpgroup, or of one warp: C (rows, columns) in registers, zero at the beginning.

    `registers` lists the accumulators of this thread, block after block of `block_rows`, in the order of the
    instruction: blocks have 64 rows for wgmma, and 16 for mma.sync.
    """

    def __init__(
        self, type: Type, shape: tuple[int, int], first_row: Any, first_column: Any = 0, block_rows: int = ROWS
    ) -> None:
        zero = 0 if type.is_integer else 0.0
        super().__init__(type, shape, [var(type, zero) for _ in range(shape[0] * shape[1] // (2 * block_rows))])
        self.first_row, self.first_column, self.block_rows = first_row, first_column, block_rows

    @public
    def rows(self) -> list[AccumulatorRow]:
        """Return the rows that this thread holds, each with its registers and their columns."""
        with steps():
            warp: Any = (tid.x // WARP) % (WARPGROUP // WARP) if self.block_rows == ROWS else 0
            return quad_rows(self.registers, self.shape, warp, self.first_row, self.first_column, self.block_rows)

    @public
    def as_a(
        self, type: Type = bf16, out: Sequence[Sequence[Var]] | None = None, in_order: bool = True
    ) -> list[list[Any]]:
        """Convert the accumulators to operand A of a following product, whose K are these columns.

        Returns the four registers of each K step, new ones or those of `out`, which `WarpgroupMma.a_registers` makes.
        For types of 8 bits, lanes exchange columns, unless `in_order` is False. Then column 16g + 8h + 2t + b of the
        accumulators is at 16g + 4t + 2h + b of K, for h and b of 0 and 1, and B needs its K in that order.
        """
        (rows, columns), block = self.shape, self.block_rows
        if self.type is not f32 or type not in CONVERTED or rows != block or columns * type.bits % A_BITS:
            refuse(
                f"accumulators of {rows}x{columns} {self.type} as operand A of {type}",
                f"{block} rows of f32 become bf16 or f16, 16 columns a K step, or e4m3 or e5m2, 32 columns a K step",
            )
        words: list[Any] = []
        for word in self._exchanged_words(type) if type.bits == 8 and in_order else self._words(type):
            if out is not None:
                target = out[len(words) // A_REGISTERS][len(words) % A_REGISTERS]
                target.set(word)
                word = target
            words.append(word)
        return [words[n : n + A_REGISTERS] for n in range(0, len(words), A_REGISTERS)]

    def _words(self, type: Type) -> Iterator[Any]:
        """Yield the accumulators converted, two neighbouring columns a word, or two pairs that are 8 columns apart."""
        if type.bits == 8:
            for above, below, right_above, right_below in self._pairs(type):
                yield from (pack(above, right_above), pack(below, right_below))
            return
        for low, high in zip(self.registers[::2], self.registers[1::2], strict=True):
            yield operate(CONVERTED[type], high, low, type=b32)

    def _pairs(self, type: Type) -> Iterator[list[Any]]:
        """Yield the pairs of 8-bit columns that a lane holds of 16: of two rows, then those 8 columns to the right."""
        for n in range(0, len(self.registers), 8):
            lows, highs = self.registers[n : n + 8 : 2], self.registers[n + 1 : n + 8 : 2]
            yield [operate(CONVERTED[type], high, low, type=b16) for low, high in zip(lows, highs, strict=True)]

    def _exchanged_words(self, type: Type) -> Iterator[Any]:
        """Yield the accumulators converted to 8 bits, four neighbouring columns a word.

        Of 16 columns, a lane has two pairs, 2i and 8 + 2i, of two rows, and operand A takes the four from 4i on. So
        each lane of a quad sends one pair of both rows to one lane, and the other pair to another lane.
        """
        with steps():
            lane: Any = laneid % QUAD
            is_even, is_first = lane % 2 == 0, lane < 2
            source = laneid - lane + lane % 2 * 2 + lane // 2
            bytes_of = [select(is_first, cast(first, u32), second) for first, second in PAIRS]
            for pairs in self._pairs(type):
                left, right = pack(*pairs[:2]), pack(*pairs[2:])  # both rows
                received = [
                    operate("shfl.sync.idx.b32", select(is_even, *sent), at, WARP - 1, ALL_LANES, type=b32)
                    for sent, at in (((left, right), source), ((right, left), source ^ 1))
                ]
                for selected in bytes_of:
                    yield operate("prmt.b32", *received, selected, type=b32)


def check_accumulators(accumulators: Any, shape: tuple[int, int], block_rows: int) -> None:
    """Refuse accumulators of another product."""
    has_shape = isinstance(accumulators, Accumulators)
    if not has_shape or (accumulators.shape, accumulators.block_rows) != (shape, block_rows):
        held = "x".join(map(str, accumulators.shape)) if has_shape else shown(accumulators)
        held += " of another instruction" * (has_shape and accumulators.shape == shape)
        refuse(
            f"the product has accumulators of {shape[0]}x{shape[1]}; found {held}",
            "make them with `mma.accumulators()`",
        )


@public_class
class WarpgroupMma:
    """Multiply tiles in shared memory by wgmma: accumulators += A @ B, for 64 or more rows of A a warpgroup.

        mma = pd.WarpgroupMma("wgmma.m64n128k16.f32.bf16", a_tiles, b_tiles, first_row=consumer.index * 64)
        accumulators = mma.accumulators()
        for k in pd.range(steps):
            slot = ring.wait()
            mma(accumulators, slot, slot, accumulate=k > 0)
            mma.wait(0)
            ring.release()

    `atom` is the instruction, by its name in `ptxdsl.layout`; with the suffix ".rs", A comes from registers and `a` is
    left out. `a` is an array in shared memory whose last two axes are (M, K), and `b` one of (N, K), as
    `pd.TensorMap(…).shared(stages)` returns them; axes before these are the stages. `a_transposed` and `b_transposed`
    mean (K, M) and (K, N). Descriptors follow from the layouts. `rows` rows of A from `first_row`, a multiple of 64
    which may be traced, are multiplied by all N of `b`.

    Raises LayoutError if no descriptor expresses a layout, and TraceError for other operands that do not fit.
    """

    def __init__(
        self,
        atom: str,
        a: ArrayView | None = None,
        b: ArrayView | None = None,
        *,
        a_transposed: bool = False,
        b_transposed: bool = False,
        rows: int = ROWS,
        first_row: Any = 0,
    ) -> None:
        self.atom = atoms.mma_atom(atom)
        if not self.atom.name.startswith("wgmma.") or self.atom.name.split(".")[2] not in ACCUMULATORS:
            refuse(
                f"pd.WarpgroupMma takes a wgmma atom with accumulators of 32 bits; found {self.atom}",
                "such as wgmma.m64n128k16.f32.bf16",
            )
        if rows % ROWS or rows < 1 or (isinstance(first_row, int) and first_row % ROWS):
            refuse(f"pd.WarpgroupMma takes {rows} rows from {first_row}", "both are multiples of 64")
        if (a is None) != self.atom.in_registers("a"):
            how = "registers; `a` is given" if a is not None else "shared memory; `a` is missing"
            refuse(
                f"{self.atom} reads A from {how}", "an atom with the suffix .rs reads A from registers, others from `a`"
            )
        self.rows, self.first_row = rows, first_row
        with steps():
            part = first_row // ROWS
            self._a = None if a is None else staged_operand(self.atom, "a", a, a_transposed, part)
            self._b = staged_operand(self.atom, "b", b, b_transposed, 0)
        self.columns = self._b.shared.row_starts.size * self.atom.shape[1]
        self.k = self._b.shared.k_starts.size * self.atom.shape[2]
        k_of_a = self.k if self._a is None else self._a.shared.k_starts.size * self.atom.shape[2]
        if k_of_a != self.k:
            refuse(f"A has a K of {k_of_a} and B of {self.k}", "give both the same K")

    @public
    def accumulators(self) -> Accumulators:
        """Return accumulators for this product, all zero."""
        return Accumulators(ACCUMULATORS[self.atom.name.split(".")[2]], (self.rows, self.columns), self.first_row)

    @public
    def a_registers(self) -> list[list[Var]]:
        """Return variables for operand A in registers, four for each K step, to be set before each product."""
        return [[var(b32) for _ in range(A_REGISTERS)] for _ in range(self.k // self.atom.shape[2])]

    @public
    def __call__(self, accumulators: Accumulators, a: Any = 0, b: Any = 0, *, accumulate: Any = True) -> None:
        """Begin to multiply a stage of A and a stage of B, and commit the instructions as one wgmma group.

        `a` and `b` are stage numbers or slots of a ring; for an atom with A in registers, `a` is what
        `Accumulators.as_a` returned. If `accumulate`, a bool or predicate, is false, the previous contents of the
        accumulators are replaced. Call `wait` before the accumulators are read or the stages released.
        """
        check_accumulators(accumulators, (self.rows, self.columns), ROWS)
        emit("wgmma.fence.sync.aligned")
        with steps():
            of_a, of_b = (a if self._a is None else self._a.at(a)), self._b.at(b)
            for step in range(self.k // self.atom.shape[2]):
                for block, part in product(range(self.rows // ROWS), range(self.columns // self.atom.shape[1])):
                    left = of_a[step] if self._a is None else self._a.shared.advanced(of_a, block, step)
                    right = self._b.shared.advanced(of_b, part, step)
                    adds = accumulate if step == 0 else True
                    self._emit(self._registers(accumulators, block, part), left, right, adds)
        emit("wgmma.commit_group.sync.aligned")

    def _registers(self, accumulators: Accumulators, block: int, part: int) -> list[Var]:
        """Return the registers of one instruction's accumulators."""
        each = self.atom.shape[1] // 2
        first = (block * (self.columns // self.atom.shape[1]) + part) * each
        return accumulators.registers[first : first + each]

    def _emit(self, out: list[Var], a: Any, b: Any, accumulate: Any) -> None:
        _, shape, sums, *inputs = self.atom.name.removesuffix(".rs").split(".")
        flags: list[int] = [1, 1] if self.atom.name.split(".")[2] != "s32" else []
        if self.atom.a_bits == operands.TRANSPOSED_BITS:
            flags += [int(x.shared.transposed) for x in (self._a, self._b) if x is not None]
        mnemonic = ".".join(("wgmma.mma_async.sync.aligned", shape, sums, inputs[0], inputs[-1]))
        emit(mnemonic, (a, b, accumulate, *flags), out=out)

    @public
    def wait(self, groups: int = 0) -> None:
        """Wait until at most `groups` of the last wgmma groups are in flight."""
        emit("wgmma.wait_group.sync.aligned", (groups,))
