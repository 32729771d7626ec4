"""Kernels that apply instructions of the table to edge values and random numbers, one result for each thread.

The same text runs on the emulator and on a GPU. Thread i takes element i of an input row for each operand and puts
its results into element i of output rows; all rows are of 64-bit words, of which types take the low bits.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ptxdsl import ir
from ptxdsl.isa.operand import Operand
from ptxdsl.types import Type, bits, lanes, pred, u32

from .spelled import Spelled, covering, fitting, forms_of, opcode_of, registers_in

LANES = 1024
CHAPTERS = ("integer", "extended", "floating", "half", "compare", "logic", "convert", "video")
BATCH = 64
"""So many instructions are in one kernel."""

UNSIGNED = "dp2a", "dp4a"
"""What an H200 was asked with numbers for u32 alone, though a sum of signed factors is s32."""

EDGES = {
    "f16": (0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0xBC00, 0x3555, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E01,
            0xFFFF, 0x3800, 0x3C01, 0x4248, 0x6400, 0x3BF0, 0x0408),
    "bf16": (0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x3F80, 0xBF80, 0x3EAB, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC1,
             0xFFFF, 0x3F00, 0x3F81, 0x4049, 0x4B00),
    "f32": (0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x3EAAAAAB, 0x7F7FFFFF,
            0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFFFFFFF, 0x3F000000, 0xBFC00000, 0x477FE000, 0x477FEFFF,
            0x477FF000, 0x4F000000, 0xCF000001, 0x4F800000, 0x33000000, 0x38800001, 0x43E80000, 0x47600000, 0x3F7FFFFF,
            0x3F7FF800, 0x00800400),
    "f64": (0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x800FFFFFFFFFFFFF, 0x0010000000000000,
            0x3FF0000000000000, 0xBFF0000000000000, 0x3FD5555555555555, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF,
            0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000001, 0xFFFFFFFFFFFFFFFF, 0x3FE0000000000000,
            0xBFF8000000000000, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x36A0000000000000, 0x380FFFFFC0000000,
            0x41DFFFFFFFC00000, 0x41E0000000000000, 0xC1E0000000200000, 0x43E0000000000000, 0xC3E0000000000001,
            0x43F0000000000000, 0x40EFFDFFFFFFFFFF, 0x3CA0000000000000, 0x380FFFFFF0000000, 0x380FFFFFE0000000),
}  # fmt: skip
"""Bits of zeros, subnormal and largest numbers, infinities, NaN, and numbers on the edges of narrower types."""

SMALL = (0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 255)


def integer_edges(width: int) -> tuple[int, ...]:
    """Small numbers, and those at the ends and in the middle of a width."""
    top = 1 << width
    return (*SMALL, top - 1, top - 2, top // 2, top // 2 - 1, top // 2 + 1, top // 3, 0x55AA55AA55AA55AA % top)


def random_words(seed: str, count: int) -> np.ndarray:
    """(LANES, count) random words, the same with every version of numpy."""
    stream = np.random.RandomState(zlib.crc32(seed.encode())).bytes(8 * LANES * count)
    return np.frombuffer(stream, "<u8").reshape(LANES, count)


def row(type_: Type, slot: int) -> np.ndarray:
    """The input row of a type for one operand: every edge against every edge in the first two, then random bits."""
    element, count = lanes(type_)
    width = max(element.bits, 8)
    edges = np.array(EDGES.get(element.name) or integer_edges(width), np.uint64)
    elements = random_words(f"{type_}{slot}", count) & np.uint64((1 << width) - 1)
    if element.kind in "bus" and slot:
        elements = np.where(elements & np.uint64(1), elements >> np.uint64(width // 2), elements % np.uint64(70))
    for n in range(count):
        pair = (np.arange(len(edges) ** 2) + 13 * n) % len(edges) ** 2
        which = (pair // len(edges), pair % len(edges), 7 * pair % len(edges), 11 * pair % len(edges))[slot]
        elements[: len(pair), n] = edges[which]
    return (elements << (np.arange(count) * width).astype(np.uint64)).sum(-1, dtype=np.uint64)


def instructions(chapter: str) -> list[Spelled]:
    """What a chapter's forms compute, as far as sm_90 has them, with operands in registers."""
    opcodes = [opcode_of(form, text) for _, form in forms_of(chapter) for text in covering(form)]
    spelled = [next(fitting(opcode)) for opcode in opcodes if opcode.supports("sm_90")]
    return list({i.opcode.text: i for i in spelled}.values())


def batches(chapter: str) -> Iterator[list[Spelled]]:
    """The instructions of a chapter, some for each kernel."""
    every = instructions(chapter)
    return (every[start : start + BATCH] for start in range(0, len(every), BATCH))


def results(i: Spelled) -> list[Operand]:
    """The operands that an instruction writes."""
    return [operand for operand in i.opcode.operands if operand.written]


def carries(i: Spelled) -> bool:
    """Whether an instruction may take or give a carry: it is 1 in odd threads before, and a result behind."""
    return type(i.opcode.op).__module__.endswith(".extended")


def rows(i: Spelled) -> int:
    """The output rows of an instruction."""
    return len(results(i)) + carries(i)


def sources(batch: Iterable[Spelled]) -> list[tuple[Type, int]]:
    """The input rows that the instructions of a kernel take: type and slot of each."""
    return list(dict.fromkeys(source for i in batch for _, source in _reads(i)))


def _reads(i: Spelled) -> list[tuple[Operand, tuple[Type, int]]]:
    read = [operand for operand in i.opcode.operands if operand.read and operand.type is not None]
    is_unsigned = i.opcode.text.partition(".")[0] in UNSIGNED
    return [(operand, (u32 if is_unsigned else operand.type, slot)) for slot, operand in enumerate(read)]


def inputs(batch: Iterable[Spelled]) -> np.ndarray:
    """The input rows of a kernel."""
    return np.stack([row(*source) for source in sources(batch)])


def module(batch: Sequence[Spelled]) -> str:
    """The kernel `k(inputs, outputs)` of a batch."""
    place = {source: n for n, source in enumerate(sources(batch))}
    lines, output = [], 0
    for i in batch:
        lines += _application(i, place, output)
        output += rows(i)
    return _MODULE.format("\n".join(lines))


_MODULE = """.version 8.4
.target sm_90
.address_size 64
.visible .entry k(.param .u64 inputs, .param .u64 outputs)
{{
.reg .b64 %in, %out; .reg .b32 %thread, %block, %size, %odd, %word; .reg .b16 %byte;
mov.u32 %thread, %tid.x; mov.u32 %block, %ctaid.x; mov.u32 %size, %ntid.x;
mad.lo.u32 %thread, %block, %size, %thread; and.b32 %odd, %thread, 1;
ld.param.u64 %in, [inputs]; ld.param.u64 %out, [outputs];
mad.wide.u32 %in, %thread, 8, %in; mad.wide.u32 %out, %thread, 8, %out;
{}
ret;
}}
"""


def _application(i: Spelled, place: dict[tuple[Type, int], int], output: int) -> Iterator[str]:
    """The lines that load, compute and store for one instruction."""
    registers = dict.fromkeys(registers_in(i.operands))
    yield "{ " + " ".join(f".reg .{r.type} {r};" for r in registers)
    bound = dict(zip((o.name for o in i.opcode.operands), i.opcode.bind(i.operands), strict=True))
    for operand, source in _reads(i):
        yield from _load(bound[operand.name], 8 * LANES * place[source])
    yield from ["add.cc.u32 %word, %odd, -1;"] * carries(i)
    yield str(i)
    yield from ["addc.u32 %word, 0, 0;", f"st.global.b32 [%out+{8 * LANES * (output + 1)}], %word;"] * carries(i)
    for n, operand in enumerate(results(i)):
        yield from _store(bound[operand.name], 8 * LANES * (output + n))
    yield "}"


def _load(register: ir.Register, offset: int) -> list[str]:
    if register.type is pred:
        return [f"ld.global.u8 %byte, [%in+{offset}];", f"setp.gt.u16 {register}, %byte, 127;"]
    return [f"ld.global.{bits(register.type.bits)} {register}, [%in+{offset}];"]


def _store(register: ir.Register, offset: int) -> list[str]:
    if register.type is pred:
        return [f"selp.b32 %word, 1, 0, {register};", f"st.global.b32 [%out+{offset}], %word;"]
    return [f"st.global.{bits(register.type.bits)} [%out+{offset}], {register};"]
