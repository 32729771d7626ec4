"""Products of tiles by mma.sync: the ldmatrix loads and the instructions of one warp."""

from __future__ import annotations

from typing import Any

from ptxdsl.driver import Late
from ptxdsl.errors import LayoutError, public, public_class
from ptxdsl.trace.builder import refuse
from ptxdsl.trace.instruction import emit, shown
from ptxdsl.trace.memory import ArrayView
from ptxdsl.trace.operands import WARP_ROWS, check_array, check_element, stage_number
from ptxdsl.trace.operators import steps
from ptxdsl.trace.value import Var, laneid, var
from ptxdsl.trace.warpgroup_mma import ACCUMULATORS, Accumulators, check_accumulators
from ptxdsl.types import b32

atoms: Any = Late("ptxdsl.layout.atoms")

ROW_BYTES = 16  # of one row of an 8x8 matrix of ldmatrix
MATRIX = 8  # its rows
GROUP, REGISTERS = 16, 4  # of M or N, and registers, which one ldmatrix.x4 loads for one K step


@public_class
class WarpMma:
    """Multiply tiles in shared memory by mma.sync: accumulators += A @ B, for the rows and columns of one warp.

        mma = pd.WarpMma("mma.m16n8k16.f32.f16", a_tiles, b_tiles, rows=32, first_row=pd.warpid * 32)
        accumulators = mma.accumulators()
        for k in pd.range(steps):
            ...                                    # wait for the stage
            mma(accumulators, stage, stage)

    `atom` is the instruction, by its name in `ptxdsl.layout`, with inputs of 16 or 8 bits. `a` is an array in shared
    memory whose last two axes are (M, K), and `b` one of (N, K); an axis before these counts the stages. `a_transposed`
    and `b_transposed` mean (K, M) and (K, N), for inputs of 16 bits. If `a` is left out, A comes from registers.
    `rows` rows of A from `first_row` are multiplied by `columns` of N from `first_column`: multiples of 16, by default
    all; the first ones may be traced. Fragments are loaded by ldmatrix, which reads units of 16 bytes along K (or along
    M and N if transposed). The products are complete when the call returns.

    Raises TraceError for operands that do not fit, and LayoutError for a layout without units of 16 bytes.
    """

    def __init__(
        self,
        atom: str,
        a: ArrayView | None = None,
        b: ArrayView | None = None,
        *,
        a_transposed: bool = False,
        b_transposed: bool = False,
        rows: int | None = None,
        columns: int | None = None,
        first_row: Any = 0,
        first_column: Any = 0,
    ) -> None:
        self.atom = atoms.mma_atom(atom)
        self.type = ACCUMULATORS.get(self.atom.name.split(".")[2])
        if self.atom.shape[:2] != (16, 8) or self.atom.a_bits not in (8, 16) or self.type is None:
            refuse(
                "pd.WarpMma takes an mma.sync atom of m16n8 with inputs of 8 or 16 bits and accumulators of 32 bits; "
                f"found {self.atom}",
                "such as mma.m16n8k16.f32.f16",
            )
        self._a = None if a is None else _Fragments(self.atom, "a", a, a_transposed, rows, first_row)
        self._b = _Fragments(self.atom, "b", b, b_transposed, columns, first_column)
        self.rows = (rows or WARP_ROWS) if self._a is None else self._a.extent
        self.columns, self.k, self.first = self._b.extent, self._b.k, (first_row, first_column)
        if self._a is not None and self._a.k != self.k:
            refuse(f"A has a K of {self._a.k} and B of {self.k}", "give both the same K")

    @public
    def accumulators(self) -> Accumulators:
        """Return accumulators for this product, all zero. Their coordinates count from the first row and column."""
        assert self.type is not None
        return Accumulators(self.type, (self.rows, self.columns), *self.first, block_rows=WARP_ROWS)

    @public
    def __call__(self, accumulators: Accumulators, a: Any = 0, b: Any = 0, *, accumulate: bool = True) -> None:
        """Multiply a stage of A and a stage of B.

        `a` and `b` are stage numbers or slots of a ring; if A comes from registers, `a` is what `Accumulators.as_a`
        returned. If `accumulate` is False, the previous contents of the accumulators are replaced.
        """
        check_accumulators(accumulators, (self.rows, self.columns), WARP_ROWS)
        if not isinstance(accumulate, bool):
            refuse(f"`accumulate` is {shown(accumulate)}", "pass True or False; set the accumulators to zero otherwise")
        each = self.columns // 2
        with steps():
            for step in range(self.k // self.atom.shape[2]):
                of_a = [a[step]] if self._a is None else self._a.load(a, step)
                of_b = [pair for four in self._b.load(b, step) for pair in (four[:2], four[2:])]
                for block, left in enumerate(of_a):
                    for part, right in enumerate(of_b):
                        first = block * each + part * 4
                        self._emit(accumulators.registers[first : first + 4], left, right, accumulate or step > 0)

    def _emit(self, out: list[Var], a: Any, b: Any, accumulate: bool) -> None:
        _, shape, sums, *inputs = self.atom.name.split(".")
        added: Any = out if accumulate else [0 if sums == "s32" else 0.0] * 4
        mnemonic = ".".join(("mma.sync.aligned", shape, "row.col", sums, inputs[0], inputs[-1], sums))
        emit(mnemonic, (a, b, added), out=out)


class _Fragments:
    """The fragments of one operand that a warp loads, 16 of M or N and one K step at a time."""

    def __init__(self, atom: Any, name: str, array: Any, transposed: bool, extent: int | None, first: Any) -> None:
        check_array(name, array)
        check_element(atom, name, array)
        if transposed and atom.a_bits != 16:
            refuse(f"ldmatrix transposes elements of 16 bits; {atom} has {atom.a_bits}", "store the operand K-major")
        self.array, self.name, self.transposed, self.first = array, name, transposed, first
        *outer, rows, columns = (mode.size for mode in array.layout)
        if len(outer) > 1:
            refuse(f"`{array.name}` has {len(outer)} axes of stages", "give it one axis of stages before the last two")
        self.stages, (whole, self.k) = outer[0] if outer else None, (columns, rows) if transposed else (rows, columns)
        self.extent, self.unit, self.step = extent or whole, ROW_BYTES // array.element.bytes, atom.shape[2]
        _check_extents(atom, name, self.extent, first, whole, self.k)
        _check_units(array, self.unit)

    def load(self, stage: Any, step: int) -> list[list[Any]]:
        """Return the four registers of each 16 of M or N, for one K step of a stage."""
        number = stage_number(stage, self.stages or 1)
        lane: Any = laneid
        if (self.name == "b") == self.transposed:  # matrices 0 and 1 are along the rows of the array
            along, across = lane % GROUP, lane // GROUP
        else:
            along, across = lane % MATRIX + lane // GROUP * MATRIX, lane // MATRIX % 2
        trans = ".trans" if self.transposed else ""
        loaded = []
        for group in range(0, self.extent, GROUP):
            of_mn, of_k = self.first + group, step * self.step
            row, column = (of_k + along, of_mn + across * MATRIX) if self.transposed else (
                of_mn + along, of_k + across * self.unit
            )  # fmt: skip
            at = self.array.address(*([] if self.stages is None else [number]), row, column)
            registers = [var(b32) for _ in range(REGISTERS)]
            emit(f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16", (at,), out=registers)
            loaded.append(registers)
        return loaded


def _check_extents(atom: Any, name: str, extent: int, first: Any, whole: int, k: int) -> None:
    """Refuse rows or columns that are not whole groups of 16, or that the array lacks, and a K of parts of a step."""
    noun = "rows" if name == "a" else "columns"
    begin = first if isinstance(first, int) else 0
    if extent % GROUP or begin % GROUP or not 0 < extent <= whole - begin:
        refuse(
            f"pd.WarpMma takes {extent} {noun} from {first if isinstance(first, int) else 'a traced one'}; operand "
            f"{name.upper()} has {whole}",
            f"take a multiple of {GROUP} {noun}, from a multiple of {GROUP}",
        )
    if k % atom.shape[2]:
        refuse(f"operand {name.upper()} has a K of {k}; {atom} takes {atom.shape[2]} a step", "pad K with zeros")


def _check_units(array: ArrayView, unit: int) -> None:
    """Refuse a layout whose units of 16 bytes along the last axis are not contiguous and aligned.

    A swizzle combines the bits of a row's number, so rows of a single bit stand for all.
    """
    *outer, rows, columns = (mode.size for mode in array.layout)
    before = [0] * len(outer)
    for row in [0, *(1 << bit for bit in range((rows - 1).bit_length()))]:
        for column in range(0, columns, unit):
            first, *rest = (array.layout(*before, row, column + i) for i in range(min(unit, columns - column)))
            if first % unit or len(rest) < unit - 1 or rest != [*range(first + 1, first + unit)]:
                refuse(
                    f"elements ({row}, {column}) to ({row}, {column + unit - 1}) of `{array.name}` are not contiguous, "
                    f"or not {ROW_BYTES}-byte aligned",
                    f"ldmatrix reads rows of {ROW_BYTES} bytes: use a row-major layout, or `tile_layout`",
                    LayoutError,
                )
