"""Products of tiles by tcgen05.mma, which one thread issues: descriptors, K steps and block scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxdsl.driver import Late
from ptxdsl.errors import public, public_class
from ptxdsl.trace.builder import refuse
from ptxdsl.trace.instruction import emit, shown
from ptxdsl.trace.memory import ArrayView
from ptxdsl.trace.operands import UNIT, StagedOperand, stage_number, staged_operand
from ptxdsl.trace.operators import cast, operate, steps
from ptxdsl.trace.tensor_memory import TensorMatrix, tensor_memory
from ptxdsl.types import b32, f16, f32, s32, u64

atoms: Any = Late("ptxdsl.layout.atoms")
tcgen05: Any = Late("ptxdsl.layout.tcgen05")
operands: Any = Late("ptxdsl.layout.shared_operand")
descriptors: Any = Late("ptxdsl.layout.descriptors")

ACCUMULATORS = {"f32": f32, "f16": f16, "s32": s32}
FACTORS = 4  # block scales of a row in a column of tensor memory
SCALE_ROWS, SCALE_COLUMNS, SCALE_BYTES = 128, 4, 512  # a block of scales: its rows, and what it takes
GROUP_BYTES = 128  # of eight rows of 16 bytes


@dataclass(frozen=True)
class ScaleOperand:
    """The block scales of A or B: their stages in shared memory, and their columns in tensor memory.

    Each stage has `blocks` blocks of 128 rows, and `groups` groups of four factors along K.
    """

    first: Any
    stages: int
    blocks: int
    groups: int
    columns: TensorMatrix

    def copy(self, stage: Any) -> list[Any]:
        """Copy a stage to tensor memory; return the address of the factors of each group."""
        number = stage_number(stage, self.stages, "block scales")
        units = SCALE_BYTES // UNIT
        with steps():
            base = (
                self.first + cast(number * (self.blocks * self.groups * units), u64) if self.stages > 1 else self.first
            )
            target = self.columns[number]
            addresses = []
            for group in range(self.groups):
                for block in range(self.blocks):
                    column = (group * self.blocks + block) * SCALE_COLUMNS
                    address = operate("add.u32", target.address, column, type=b32) if column else target.address
                    source = base + (block * self.groups + group) * units
                    emit(f"tcgen05.cp.cta_group::{self.columns.memory.ctas}.32x128b.warpx4", (address, source))
                    if block == 0:
                        addresses.append(address)
        return addresses


@public_class
class TensorMemoryMma:
    """Multiply tiles by tcgen05.mma in one thread: accumulators in tensor memory += A @ B.

        with pd.tensor_memory(256) as memory:
            mma = pd.TensorMemoryMma(memory, "tcgen05.m128n128k16.f32.f16", a_tiles, b_tiles)
            accumulators = mma.accumulators()
            with pd.warp(1), pd.elect():
                for k in pd.range(steps):
                    slot = ring.wait()
                    mma(accumulators, slot, slot, accumulate=k > 0)
                    ring.release(after_mma=True)

    `atom` is the instruction, by its name in `ptxdsl.layout`: the shape, the type of the accumulators, and the types of
    A and B. `a` is an array in shared memory whose last two axes are (M, K), and `b` one of (N, K), as
    `pd.TensorMap(…).shared(stages)` returns them; axes before these are the stages. M and N are those of the atom.
    `a_transposed` and `b_transposed` mean (K, M) and (K, N). Both descriptors of an instruction follow from the
    layouts. With the suffix ".ts", A is a matrix in tensor memory, from `a_matrix`, and `a` is left out. An atom with
    M = 256 multiplies for a CTA pair: each block has half of the rows of A and of B, and a thread of the even block
    calls the product.

    An atom with block scales, such as tcgen05.m128n128k64.f32.e2m1.block16.ue4m3, takes `a_scales` and `b_scales`:
    arrays in shared memory with the stages of `a` and `b`, each in the order of `ptxdsl.layout.scale_layout`. A call
    copies the scales of its stage to tensor memory. A stage of elements that share bytes is an array of (rows, bytes).
    In a pair, each block has the scales of its rows of A, and those of all N columns of B.

    Raises LayoutError for an atom that does not exist or if no descriptor expresses a layout, and TraceError for
    operands that do not fit.
    """

    def __init__(
        self,
        memory: tensor_memory,
        atom: str,
        a: ArrayView | None = None,
        b: ArrayView | None = None,
        *,
        a_transposed: bool = False,
        b_transposed: bool = False,
        a_scales: ArrayView | None = None,
        b_scales: ArrayView | None = None,
    ) -> None:
        if not isinstance(memory, tensor_memory):
            refuse(
                f"pd.TensorMemoryMma takes tensor memory first; found {shown(memory)}",
                "allocate it: `with pd.tensor_memory(256) as memory:`",
            )
        self.memory, self.atom = memory, atoms.mma_atom(atom)
        if self.atom.instruction != "tcgen05":
            refuse(
                f"pd.TensorMemoryMma takes a tcgen05 atom; found {self.atom}",
                f"such as {tcgen05.EXAMPLE}",
            )
        if self.atom.ctas != memory.ctas:
            whose, other = ("a CTA pair", "one block") if self.atom.ctas == 2 else ("one block", "a CTA pair")
            help = (
                f"pd.tensor_memory({memory.columns}, pair=True)" if self.atom.ctas == 2 else "use an atom with M = 256"
            )
            refuse(f"{self.atom} is an instruction of {whose}; `{memory.words}` is tensor memory of {other}", help)
        in_tensor_memory = self.atom.a_in_tensor_memory
        if (a is None) != in_tensor_memory:
            how = "tensor memory; `a` is given" if a is not None else "shared memory; `a` is missing"
            refuse(
                f"{self.atom} reads A from {how}",
                "an atom with the suffix .ts reads A from tensor memory, others from `a`",
            )
        with steps():
            self._a = None if a is None else self._operand("a", a, a_transposed)
            self._b = self._operand("b", b, b_transposed)
            self.k = self._b.rows_and_k()[1]
            if self._a is not None and self._a.rows_and_k()[1] != self.k:
                refuse(f"A has a K of {self._a.rows_and_k()[1]} and B of {self.k}", "give both the same K")
            self._scales = self._scale_operands(a_scales, b_scales)

    @public
    def accumulators(self, stages: int = 1) -> TensorMatrix:
        """Take columns of tensor memory for the accumulators of `stages` products; the first call of each replaces the
        contents if its `accumulate` is false."""
        return self.memory.matrix(ACCUMULATORS[self.atom.types[0]], *self._shape, stages=stages)

    @property
    def _shape(self) -> tuple[int, int]:
        """The rows and the columns of the accumulators in a block."""
        return self.atom.shape[0] // self.atom.ctas, self.atom.shape[1]

    @public
    def a_matrix(self, stages: int = 1) -> TensorMatrix:
        """Take columns of tensor memory for A, all K of a stage; each 32-bit word holds neighbouring elements of K."""
        if not self.atom.a_in_tensor_memory:
            refuse(f"{self.atom} reads A from shared memory", f"write {self.atom}.ts to read it from tensor memory")
        return self.memory.matrix(b32, self._shape[0], self.k * self.atom.a_bits // b32.bits, stages=stages)

    @public
    def __call__(self, accumulators: TensorMatrix, a: Any = 0, b: Any = 0, *, accumulate: Any = True) -> None:
        """Begin to multiply a stage of A and a stage of B, one instruction for each K step.

        `a` and `b` are stage numbers or slots of a ring; for an atom with A in tensor memory, `a` is one stage of
        `a_matrix`. If `accumulate`, a bool or predicate, is false, the contents of the accumulators are replaced.
        One thread calls it, for example inside `with pd.elect():`. The products are complete at the mbarrier of a
        commit: `ring.release(after_mma=True)` for the stages of A and B, `commit(after_mma=True)` for accumulators.
        """
        self._check_accumulators(accumulators)
        if self._scales:  # the products of the stage's previous scales are complete
            emit("tcgen05.fence::after_thread_sync")
        with steps():
            of_a = self._a_of(a)
            of_b = self._b.at(b)
            scales = [operand.copy(stage) for operand, stage in zip(self._scales, (a, b), strict=False)]
            transposed = [x is not None and x.shared.transposed for x in (self._a, self._b)]
            for step in range(self.k // self.atom.shape[2]):
                left = self._a_at(of_a, step)
                right = self._b.shared.advanced(of_b, 0, step)
                per_group = FACTORS // self.atom.factors if self._scales else 1
                factors = [addresses[step // per_group] for addresses in scales]
                word = self.atom.descriptor(*transposed, step)
                adds = accumulate if step == 0 else True
                emit(self._mnemonic(), (accumulators.address, left, right, word, *factors, adds))

    def _mnemonic(self) -> str:
        kind = f"tcgen05.mma.cta_group::{self.atom.ctas}.kind::{self.atom.kind}"
        return f"{kind}.block_scale.block{self.atom.scales.block}" if self.atom.scales else kind

    def _operand(self, name: str, array: Any, transposed: bool) -> StagedOperand:
        operand = staged_operand(self.atom, name, array, transposed)
        extent, wanted = operand.rows_and_k()[0], self.atom.extents(name)[0]
        if extent != wanted:
            axis = "M" if name == "a" else "N"
            each = " of each block" * (self.atom.ctas == 2)
            refuse(
                f"`{array.name}` has {extent} rows of {axis}; {self.atom} multiplies {wanted}{each}",
                f"make the tile {wanted} rows, or use another atom",
            )
        return operand

    def _scale_operands(self, a_scales: Any, b_scales: Any) -> list[ScaleOperand]:
        if self.atom.scales is None:
            if a_scales is not None or b_scales is not None:
                refuse(
                    f"{self.atom} has no block scales; `a_scales` or `b_scales` is given",
                    "name them in the atom: ….block16.ue4m3",
                )
            return []
        group = FACTORS * self.atom.scales.block
        if self.k % group:
            refuse(
                f"stages have a K of {self.k}; four scales of {self.atom} cover {group}",
                f"make K a multiple of {group}",
            )
        m, n = self._shape
        sides = ("a", a_scales, self._a, m), ("b", b_scales, self._b, n)
        return [self._scale_operand(*side) for side in sides]

    def _scale_operand(self, name: str, array: Any, operand: Any, rows: int) -> ScaleOperand:
        """Check the scales of an operand, and take columns for them: a stage each, as the stage is refilled by then."""
        if not isinstance(array, ArrayView) or array.layout is None or not array.space.startswith("shared"):
            refuse(
                f"`{name}_scales` is an array in shared memory; found {shown(array)}", f"{self.atom} has block scales"
            )
        blocks, groups = -(-rows // SCALE_ROWS), self.k // (FACTORS * self.atom.scales.block)
        stage_bytes = blocks * groups * SCALE_BYTES
        stages = operand.stages if operand is not None else array.layout.size * array.element.bytes // stage_bytes
        if array.layout.size * array.element.bytes != stage_bytes * stages or array.layout.cosize != array.layout.size:
            layout = f"scale_layout({blocks * SCALE_ROWS}, {groups * FACTORS})"
            refuse(
                f"`{array.name}` holds {array.layout.size * array.element.bytes} bytes; the scales of {stages} "
                f"stage{'s' * (stages > 1)} of {rows} x {self.k} elements are {stage_bytes * stages} bytes",
                f"a stage has {blocks * groups} blocks of 512 bytes, in the order of ptxdsl.layout.{layout}",
            )
        fields = descriptors.constant_bits(0, GROUP_BYTES, 0) | operands.TCGEN05_VERSION
        first = descriptors.start_bits(cast(array.address().value, u64)) | fields
        columns = self.memory.matrix(b32, SCALE_ROWS, blocks * groups * SCALE_COLUMNS, stages=stages)
        return ScaleOperand(first, stages, blocks, groups, columns)

    def _a_of(self, a: Any) -> Any:
        if self._a is not None:
            return self._a.at(a)
        if not isinstance(a, TensorMatrix) or a.stages > 1:
            refuse(f"{self.atom} reads A from tensor memory; found {shown(a)}", "pass one stage of `mma.a_matrix(…)`")
        a.check_open()
        return a.address

    def _a_at(self, of_a: Any, step: int) -> Any:
        if self._a is not None:
            return self._a.shared.advanced(of_a, 0, step)
        column = step * self.atom.a_columns
        return operate("add.u32", of_a, column, type=b32) if column else of_a

    def _check_accumulators(self, accumulators: Any) -> None:
        m, n = self._shape
        is_matrix = isinstance(accumulators, TensorMatrix)
        if not is_matrix or accumulators.shape != (m, n) or accumulators.type is not ACCUMULATORS[self.atom.types[0]]:
            held = (
                f"{accumulators.shape[0]}x{accumulators.shape[1]} of {accumulators.type}"
                if is_matrix
                else shown(accumulators)
            )
            refuse(
                f"the product has accumulators of {m}x{n} of {self.atom.types[0]} in tensor memory; found {held}",
                "make them with `mma.accumulators()`",
            )
        accumulators.check_open()
        if accumulators.stages > 1:
            refuse(f"the accumulators have {accumulators.stages} stages", "choose one: `mma(accumulators[slot], …)`")
