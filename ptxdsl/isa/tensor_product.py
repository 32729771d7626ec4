"""Matrix products in tensor memory: the operands of tcgen05.mma, and the accumulators after it.

D has one element in each 32-bit cell. A in tensor memory has its rows in lanes, and its K packed along 8 columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from ..layout.descriptors import CHUNK_BYTES
from ..layout.tensor_memory import (
    ALL_LANES,
    HALF,
    LANES,
    LAYOUTS,
    QUARTER_LANES,
    RowPlacement,
    TensorRegion,
    column_of,
    lane_mask,
    lane_of,
    layout_of,
    matrix_regions,
)
from ..types import Type, bf16, e4m3, e5m2, f16, s32, tf32
from .cluster_address import in_block
from .matrix import added, values
from .narrow import of_bytes
from .numerics import E2M1, E2M1_PAIR, E2M3, E3M2, canonical
from .opcode import Opcode
from .sparse import columns, sparse_product
from .step import Step
from .tensor_core import OF_BLOCKS, WIDE, Accumulation, AppliedScales
from .tensor_descriptors import (
    LONG_K_BYTES,
    LONG_TARGET,
    NARROW,
    START_MASK,
    InstructionFields,
    InvalidDescriptor,
    chunk_addresses,
    instruction,
    operand,
)
from .tensor_scales import CHUNKS, ScaleFields, factors, scale_columns, scale_region, scaled_instruction
from .tensor_sparsity import Metadata, metadata_at, nibbles, zeroed_columns

CELL_BYTES = 4
SHIFTED_M = (128, 256)
_SHIFTED_ROWS = sum(lane_mask(quarter, QUARTER_LANES - 1) for quarter in range(0, LANES, QUARTER_LANES))
ACCUMULATION: dict[str, dict[Type, Accumulation]] = {
    "b200": {**dict.fromkeys((f16, bf16, tf32, e4m3, e5m2, E2M1, E2M3, E3M2), WIDE), E2M1_PAIR: OF_BLOCKS}
}
"""The accumulation of the tensor cores, by the setting `numerics` and the type of the factors: MMA-Sim's constants.

A sparse product with block scales, which MMA-Sim does not model, is rounded once.
"""


@dataclass(frozen=True, eq=False, slots=True)
class ScaleOperands:
    """The scale factors of products: their fields, and the addresses, (lanes,), of those of A and of B."""

    fields: ScaleFields
    a: np.ndarray
    b: np.ndarray

    def part(self, which: np.ndarray) -> Self:
        """Select some of the lanes."""
        return replace(self, a=self.a[which], b=self.b[which])


class CellOperands(NamedTuple):
    """The words of the operands in a CTA's tensor memory, (lanes, rows, columns): A, the scale factors of A and of B,
    and the metadata of a sparse A. Each part of D has its own A, factors of B and metadata, one after the other.
    """

    a: np.ndarray | None
    scales: tuple[np.ndarray, np.ndarray] | None
    metadata: np.ndarray | None


@dataclass(frozen=True, eq=False, slots=True)
class TensorProduct:
    """Products of one instruction, one for each lane that issues it; `form` is the same for all of them.

    `d` and `a`, (lanes,), are addresses in tensor memory; `a` is None if A is in shared memory. `chunks`, (n, lanes),
    are the addresses of the 16-byte chunks that are read from shared memory, the first `split` of A; in a pair of CTAs
    each half is that of the even CTA, then that of the odd one. `accumulates` (lanes,) is true where D is an addend,
    scaled by 2^-`scale`. `enabled` (lanes,) are the lanes of tensor memory that may be written, as Python integers with
    128 bits for each CTA. `zeroed` (lanes, N) are the columns of B that count as zeros. A product that `shifts` moves
    the rows of A in tensor memory afterwards, as tcgen05.shift does. `described` are the shared memory operands, as in
    `LateInputs`.
    """

    form: InstructionFields
    d: np.ndarray
    a: np.ndarray | None
    chunks: np.ndarray
    split: int
    accumulates: np.ndarray
    scale: int
    enabled: np.ndarray
    scales: ScaleOperands | None
    metadata: Metadata | None
    zeroed: np.ndarray | None
    shifts: bool
    described: tuple[tuple[str, int, np.ndarray], ...]

    @property
    def placement(self) -> RowPlacement:
        """The placement in each CTA of the rows of D, and of A in tensor memory."""
        form = self.form
        return LAYOUTS[layout_of(form.m, form.ctas, form.sparse, form.weight_stationary)]

    @property
    def rows(self) -> int:
        """The number of rows of A and of D in each CTA."""
        return self.form.m // self.form.ctas

    @property
    def ctas(self) -> int:
        return self.form.ctas

    @property
    def placed(self) -> tuple[np.ndarray, ...]:
        """The arrays, (lanes,), that decide which cells the product of a lane reads and writes."""
        scales = () if self.scales is None else (self.scales.a, self.scales.b)
        others = (address for _, address, _ in self.row_operands)
        return self.d, self.enabled, *others, *scales

    def part(self, which: np.ndarray) -> Self:
        """Select some of the lanes."""
        described = tuple((name, count, descriptors[which]) for name, count, descriptors in self.described)
        scales = None if self.scales is None else self.scales.part(which)
        metadata = None if self.metadata is None else self.metadata._replace(address=self.metadata.address[which])
        a, zeroed = (None if x is None else x[which] for x in (self.a, self.zeroed))
        arrays = self.accumulates[which], self.enabled[which]
        return replace(
            self, d=self.d[which], a=a, chunks=self.chunks[:, which], accumulates=arrays[0], enabled=arrays[1],
            scales=scales, metadata=metadata, zeroed=zeroed, described=described,
        )  # fmt: skip

    def chains(self, other: TensorProduct) -> bool:
        """True if this product adds to the accumulators of another of the same instruction."""
        same = self.form == other.form and np.array_equal(self.d, other.d)
        return same and bool((self.enabled == other.enabled).all())

    def reads(self, lane: int, cta: int = 0) -> tuple[TensorRegion, ...]:
        """Return the regions of a CTA's tensor memory that a lane's product reads and does not write."""
        regions: list[TensorRegion] = []
        for _, address, width in self.row_operands:
            regions += matrix_regions(self.placement, int(address[lane]), width * self.placement.parts)
        return (*regions, *(scale_region(int(address[lane]), width) for address, width in self.scale_places))

    @property
    def a_columns(self) -> int:
        """The columns of A in tensor memory."""
        return self.form.k_bytes // CELL_BYTES

    @property
    def row_operands(self) -> list[tuple[str, np.ndarray, int]]:
        """The operands that are placed as the rows of D: names, addresses, and columns in the lanes of each part."""
        of_a = [] if self.a is None else [("A", self.a, self.a_columns)]
        return of_a if self.metadata is None else [*of_a, ("metadata", *self.metadata)]

    @property
    def scale_places(self) -> list[tuple[np.ndarray, int]]:
        """The addresses of the scale factors of A and of B, and the numbers of their columns in each lane quarter."""
        if self.scales is None:
            return []
        fields, width = self.scales.fields, self.form.n // self.placement.parts
        sides = ((self.scales.a, self.rows, fields.first_a), (self.scales.b, width, fields.first_b))
        return [(address, scale_columns(rows, first + fields.chunks)) for address, rows, first in sides]

    def writes(self, lane: int, cta: int = 0) -> tuple[TensorRegion, ...]:
        """Return the regions that a lane's product writes, and reads if it accumulates."""
        regions, enabled = matrix_regions(self.placement, int(self.d[lane]), self.form.n), self.enabled_in(cta)[lane]
        of_d = tuple(region._replace(lanes=region.lanes & enabled) for region in regions)
        if not self.shifts or self.a is None:
            return of_d
        return *of_d, TensorRegion(_SHIFTED_ROWS, first := column_of(int(self.a[lane])), first + self.a_columns)

    def enabled_in(self, cta: int) -> np.ndarray:
        """Return, for each lane, the lanes of a CTA's tensor memory that may be written, as a bit mask."""
        masks: np.ndarray = self.enabled >> cta * LANES & ALL_LANES
        return masks

    def numbers(self, words: np.ndarray) -> np.ndarray:
        """Return the elements of D in cells."""
        if self.form.dtype is f16:
            return words.astype(np.uint16).view(np.float16)
        return np.ascontiguousarray(words).view(self.form.dtype.dtype)

    def cells(self, numbers: np.ndarray) -> np.ndarray:
        """Invert `numbers`; the upper halves of cells of f16 become zero."""
        if self.form.dtype is f16:
            return np.ascontiguousarray(numbers).view(np.uint16).astype(np.uint32)
        return np.ascontiguousarray(numbers).view(np.uint32)

    def factors(self, chunks: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Return A of each CTA, (lanes, rows, K), if it is in shared memory, and B, (lanes, N, K).

        `chunks` are the data read from shared memory, (n, lanes, 16) bytes.
        """
        form, ctas = self.form, self.form.ctas
        of_a = np.split(chunks[: self.split], ctas) if self.split else ()
        of_b = np.split(chunks[self.split :], ctas)
        a = [_matrix(part, self.rows, form.atype, form.transposed_a, form.k_bytes) for part in of_a]
        b = [_matrix(part, form.n // ctas, form.btype, form.transposed_b, form.b_bytes) for part in of_b]
        return a, b[0] if ctas == 1 else np.concatenate(b, axis=1)

    def multiply_add(
        self, numerics: str, total: np.ndarray, a: np.ndarray | None, b: np.ndarray, cells: CellOperands
    ) -> np.ndarray:
        """Return a CTA's accumulators (lanes, rows, N) after the product.

        `a` (lanes, rows, K) are its factors, None if A is in tensor memory, and `b` (lanes, N, K) those of the whole
        group.
        """
        form: Any = self.form
        accumulation = ACCUMULATION.get(numerics, {}).get(form.atype)
        if self.scale:
            total = total * total.dtype.type(2.0**-self.scale)
        if not self.accumulates.all():
            total = np.where(self.accumulates[:, np.newaxis, np.newaxis], total, total.dtype.type(0))
        if self.zeroed is not None:
            b = np.where(self.zeroed[..., np.newaxis], 0.0, b)
        parts = 1 if all(words is None for words in cells) else self.placement.parts
        width, sums = form.n // parts, []
        for part in range(parts):
            here = slice(part * width, (part + 1) * width)
            left, right = self._of_part(a, cells.a, part), b[:, here]
            if form.negated:
                left = -left
            scales = self._factors(width, part, cells.scales)
            if scales is not None and (accumulation is None or cells.metadata is not None):
                left, right = scales.applied(left, right)
                accumulation = scales = None
            add_up = partial(added, form, accumulation, scales=scales)
            if cells.metadata is None:
                sums.append(add_up(left, right, total[..., here]))
            else:
                fours = nibbles(np.split(cells.metadata, parts, axis=2)[part], form.atype)
                sums.append(sparse_product(left, columns(form.atype, fours), right, total[..., here], add_up))
        result = sums[0] if parts == 1 else np.concatenate(sums, axis=2)
        return result if form.dtype is s32 else canonical(result)

    def _of_part(self, a: np.ndarray | None, words: np.ndarray | None, part: int) -> np.ndarray:
        """Return the factors of A, those in shared memory, or in tensor memory for a part of the columns of D."""
        if words is None:
            assert a is not None
            return a
        here = np.ascontiguousarray(words[..., part * self.a_columns : (part + 1) * self.a_columns])
        return _numbers(here.view(np.uint8), self.form.atype).reshape(len(words), self.rows, -1)

    def _factors(self, columns: int, part: int, words: tuple[np.ndarray, np.ndarray] | None) -> AppliedScales | None:
        """Return the scale factors of A and of a part of the columns of B, if there are any, from their words."""
        if self.scales is None or words is None:
            return None
        fields, of_b = self.scales.fields, np.split(words[1], self.placement.parts, axis=2)[part]
        for_a = factors(words[0], self.rows, fields.type, fields.chunks, fields.first_a)
        return AppliedScales(fields.type, for_a, factors(of_b, columns, fields.type, fields.chunks, fields.first_b))


def _matrix(chunks: np.ndarray, rows: int, type: Type, transposed: bool, k_bytes: int) -> np.ndarray:
    """Return an operand as f64 matrices (lanes, rows, K), from the chunks read for it."""
    octets = np.ascontiguousarray(chunks.transpose(1, 0, 2)).reshape(chunks.shape[1], -1)
    if type is E2M1_PAIR:
        return of_bytes("e2m1", 2)[octets].reshape(len(octets), rows, -1)
    if type in NARROW:
        octets = unpacked(octets, NARROW[type])
    if not transposed:
        return _numbers(octets.reshape(len(octets), rows, -1), type).reshape(len(octets), rows, -1)
    k = 8 * k_bytes // type.bits
    by_k = values(octets.reshape(len(octets), k, -1), type)
    return by_k.reshape(len(octets), k, -1)[..., :rows].transpose(0, 2, 1)


def _numbers(octets: np.ndarray, type: Type) -> np.ndarray:
    """Return elements as f64; those of 4 and 6 bits have a byte each, or two share one."""
    if type is E2M1_PAIR:
        return of_bytes("e2m1", 2)[octets]
    return of_bytes(type.name)[octets] if type in NARROW else values(octets, type)


def unpacked(octets: np.ndarray, bits: int) -> np.ndarray:
    """Return elements that are packed in the first bytes of each 16, (lanes, bytes), in bytes of their own.

    Those of 4 bits are in bits 2 to 5 of a byte.
    """
    chunks = octets.reshape(len(octets), -1, CHUNK_BYTES)[..., : CHUNK_BYTES * bits // 8]
    fields = np.unpackbits(chunks, axis=-1, bitorder="little").reshape(*chunks.shape[:2], CHUNK_BYTES, bits)
    elements = np.packbits(fields, axis=-1, bitorder="little").reshape(len(octets), -1)
    return elements << 2 if bits == 4 else elements


def products(m: Step, i: Opcode, named: dict[str, Any]) -> Iterator[tuple[np.ndarray, TensorProduct]]:
    """Yield the products of an instruction, grouped by instruction descriptor, with the mask of their lanes.

    Invalid descriptors are reported, and their products left out.
    """
    descriptors = np.broadcast_to(named["idesc"], m.shape).view(np.uint32)
    for bits in np.unique(descriptors).tolist():
        which = descriptors == bits
        try:
            form, fields = _form(i, bits)
            if form.k_bytes == LONG_K_BYTES and m.target != LONG_TARGET:
                raise InvalidDescriptor(
                    f"bit 31 of the descriptor, K = 96, is 1 and the target is {m.target}",
                    f"clear it, or compile for {LONG_TARGET}",
                )
            product = _product(m, form, which, named, ".ashift" in i.text)
            if fields is not None:
                addresses = (_at(m, named[name], which) for name in ("scale_a", "scale_b"))
                product = replace(product, scales=ScaleOperands(fields, *addresses))
            if form.sparse:
                metadata = metadata_at(_at(m, named["metadata"], which), form.atype, form.selector)
                product = replace(product, metadata=metadata)
            if (zeroed := named.get("zero_columns")) is not None:
                masks = np.broadcast_to(zeroed, m.shape)[which].tolist()
                product = replace(product, zeroed=np.stack([zeroed_columns(mask, form.m, form.n) for mask in masks]))
        except InvalidDescriptor as invalid:
            m.fail("tensor-memory", f"{i.text}: {invalid.message}", which, invalid.help)
            continue
        misplaced = _misplaced(product)
        if misplaced:
            m.fail("tensor-memory", f"{i.text}: {misplaced[0]}", which, misplaced[1])
            continue
        yield which, product


def _form(i: Opcode, bits: int) -> tuple[InstructionFields, ScaleFields | None]:
    """Decode an instruction descriptor."""
    if "block_scale" in i.text:
        size = next((name for name in (*CHUNKS, "block32") if f".{name}" in i.text), None)
        return scaled_instruction(i.kind, size, ctas_of(i), bits, ".sp." in i.text)
    return instruction(i.kind, ctas_of(i), bits, ".ws." in i.text, ".sp." in i.text), None


def ctas_of(i: Opcode) -> int:
    """Return the number of CTAs that execute an instruction together."""
    return 2 if ".cta_group::2" in i.text else 1


def of_group(m: Step, which: np.ndarray, chunks: np.ndarray, ctas: int) -> np.ndarray:
    """Return the addresses of chunks, (n, lanes), in each CTA of the group: at the same offsets of shared memory."""
    if ctas == 1:
        return chunks
    even = np.broadcast_to(m.special("%cluster_ctarank"), m.shape)[which] & ~np.uint32(1)
    return np.concatenate([in_block(chunks, even + np.uint32(cta)) for cta in range(ctas)])


def _product(m: Step, form: InstructionFields, which: np.ndarray, named: dict[str, Any], ashift: bool) -> TensorProduct:
    read, described, split, wide, ctas = [], [], 0, False, form.ctas
    sides = (
        ("A", form.m, form.atype, form.transposed_a, form.k_bytes),
        ("B", form.n, form.btype, form.transposed_b, form.b_bytes),
    )
    for matrix, rows, type, transposed, k_bytes in sides:
        values_of = named.get(f"{matrix.lower()}_desc")
        if values_of is None:
            if transposed:
                raise InvalidDescriptor("A is in tensor memory and M-major; it is K-major there", "clear bit 15")
            continue
        descriptors = np.broadcast_to(values_of, m.shape)[which]
        each = _chunks(descriptors, matrix, rows // ctas, type, transposed, k_bytes)
        read.append(of_group(m, which, each, ctas))
        described += [(matrix, len(each), descriptors)] * ctas
        wide |= transposed and type.bits == 32  # a swizzle that no tensor map of the emulator has
        split = len(read[-1]) if matrix == "A" else split
    enabled = np.full(int(which.sum()), (1 << ctas * LANES) - 1, object)
    if (disabled := named.get("disabled_lanes")) is not None:
        for word, mask in enumerate(np.asarray(disabled)):
            for n, bits in enumerate(np.broadcast_to(mask, m.shape)[which].tolist()):
                enabled[n] &= ~(int(bits) << 32 * word)
    a = named.get("a")
    if ashift and form.m not in SHIFTED_M:
        raise InvalidDescriptor(f".ashift of M = {form.m}", "it takes M = 128 or 256")
    return TensorProduct(
        form, _at(m, named["d"], which), None if a is None else _at(m, a, which), np.concatenate(read), split,
        np.broadcast_to(named["enable_input_d"], m.shape)[which].astype(bool), int(named.get("scale_input_d") or 0),
        enabled, None, None, None, ashift, () if wide else tuple(described),
    )  # fmt: skip


def _at(m: Step, addresses: np.ndarray, which: np.ndarray) -> np.ndarray:
    return np.broadcast_to(addresses, m.shape)[which].astype(np.int64)


def _chunks(descriptors: np.ndarray, matrix: str, rows: int, type: Type, transposed: bool, k_bytes: int) -> np.ndarray:
    """Return the chunk addresses, (chunks, lanes), of an operand in shared memory."""
    layouts, parts = descriptors & ~START_MASK, []
    if (layouts == layouts[0]).all():
        layout = operand(int(layouts[0]), matrix, type.bits, transposed, k_bytes)
        return chunk_addresses(descriptors, layout, rows, type.bits, transposed, k_bytes)
    for one in descriptors:
        parts.append(_chunks(one[np.newaxis], matrix, rows, type, transposed, k_bytes))
    return np.concatenate(parts, axis=1)


def _misplaced(product: TensorProduct) -> tuple[str, str] | None:
    """Return the message and the help for an operand in tensor memory at a lane that its layout does not take."""
    half = product.placement is HALF
    lanes = {lane_of(int(address)) for address in product.d.tolist()}
    wanted = "0 or 16" if half else "0"
    for address in sorted(lanes):
        if address not in ((0, 16) if half else (0,)):
            return (
                f"D, of M = {product.form.m}, begins in lane {address}",
                f"its first lane is {wanted}: an address is lane << 16 | column",
            )
    for name, addresses, _ in product.row_operands:
        for at, d in zip(addresses.tolist(), product.d.tolist(), strict=True):
            if lane_of(at) != lane_of(d):
                begins = f"{name} begins" if name == "A" else f"the {name} begin"
                message = f"{begins} in lane {lane_of(at)} of tensor memory, and D in lane {lane_of(d)}"
                return message, "place both in the same lanes"
    return None
