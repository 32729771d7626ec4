"""Kernels in PTX around one chain of wgmma, their inputs as they lie in memory, and their results as matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import ptxdsl as pd
from ptxdsl.isa.matrix import table
from ptxdsl.layout import shared_operand, tile_layout
from ptxdsl.layout.atoms import mma_atom
from ptxdsl.layout.mma_atom import held
from ptxdsl.layout.swizzle import AnyLayout
from ptxdsl.types import TYPES

THREADS = 128
HELD = {"f32": ("f32", np.float32, 1), "f16": ("b32", np.float16, 2), "s32": ("s32", np.int32, 1)}
"""Of a type of sums: the registers, the elements, and how many are in one."""

TAME = {
    "f16": (0x87FF, 0x3800),
    "bf16": (0x80FF, 0x3F00),
    "tf32": (0x80FFFFFF, 0x3F000000),
    "e4m3": (0x8F, 0x30),
    "e5m2": (0x87, 0x38),
}
"""Bits that a random number keeps, and bits that are set, so that it is between 1/2 and 2 or so."""

TEXT = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d) .reqntid {threads}
{{
.shared .align 1024 .b8 tile_a[{bytes_a}];
.shared .align 1024 .b8 tile_b[{bytes_b}];
.reg .pred %p, %scale;
.reg .b32 %thread, %s, %i, %v<4>, %h<{fragments}>;
.reg .b64 %a, %b, %d, %x, %da, %db, %ta, %tb;
.reg .{held} %f<{count}>;
ld.param.u64 %a, [a];
ld.param.u64 %b, [b];
ld.param.u64 %d, [d];
mov.u32 %thread, %tid.x;
mul.wide.u32 %x, %thread, 4;
add.u64 %d, %d, %x;
{load_a}
{load_b}
fence.proxy.async.shared::cta;
bar.sync 0;
{start_a}
{start_b}
setp.ge.u32 %scale, %thread, {scale_from};
{first}
wgmma.fence.sync.aligned;
{products}
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{last}
ret;
}}
"""
COPY = """mul.wide.u32 %x, %thread, 16;
add.u64 %{x}, %{x}, %x;
mov.u32 %s, tile_{x};
shl.b32 %i, %thread, 4;
add.u32 %s, %s, %i;
COPY_{x}:
setp.ge.u32 %p, %i, {bytes};
@%p bra DONE_{x};
ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%{x}];
st.shared.v4.u32 [%s], {{%v0, %v1, %v2, %v3}};
add.u64 %{x}, %{x}, {step};
add.u32 %s, %s, {step};
add.u32 %i, %i, {step};
bra COPY_{x};
DONE_{x}:"""
START = """mov.u32 %i, tile_{x};
cvt.u64.u32 %d{x}, %i;
shr.u64 %d{x}, %d{x}, 4;
or.b64 %d{x}, %d{x}, {constant};"""


@dataclass(frozen=True)
class Case:
    """One product of 64 rows: `k` elements along K (None: one instruction), and how its operands lie.

    `scale_from` is the first thread whose scale_d is true: 0 for all, 128 for none.
    """

    n: int
    sums: str = "f32"
    a: str = "f16"
    b: str = ""
    span: int = 128
    transposed: tuple[bool, bool] = (False, False)
    signs: tuple[int, int] = (1, 1)
    from_registers: bool = False
    steps: int = 2
    scale_from: int = 0
    flag: str = ""

    @property
    def types(self) -> tuple[str, str]:
        return self.a, self.b or self.a

    @property
    def name(self) -> str:
        atom = f"wgmma.m64n{self.n}k{self.k}.{self.sums}.{self.a}"
        return atom + (f".{self.b}" if self.b else "") + (".rs" if self.from_registers else "")

    @property
    def k(self) -> int:
        return 256 // TYPES[self.a].bits

    @property
    def bits(self) -> int:
        return TYPES[self.a].bits

    def layout(self, operand: str) -> AnyLayout:
        rows, transposed = (64, self.transposed[0]) if operand == "a" else (self.n, self.transposed[1])
        return tile_layout(rows, max(self.steps * self.k, self._least_k(transposed)), self.bits, self.span, transposed)

    def _least_k(self, transposed: bool) -> int:
        return self.k if transposed else max(self.span, 16) * 8 // self.bits

    def text(self) -> str:
        """The kernel."""
        fragment = self.from_registers
        operands = {o: shared_operand(self.name, o, self.layout(o)) for o in ("ab"[fragment:])}
        kind, _, packed = HELD[self.sums]
        count = 64 * self.n // THREADS // packed
        size = {o: self.layout(o).size * self.bits // 8 for o in "ab"}
        copies = {o: COPY.format(x=o, bytes=size[o], step=16 * THREADS) for o in operands}
        sums = [f"%f{n}" for n in range(count)]
        return TEXT.format(
            threads=THREADS,
            bytes_a=16 if fragment else size["a"],
            bytes_b=size["b"],
            fragments=4 * self.steps,
            held=kind,
            count=count,
            load_a=self._fragments() if fragment else copies["a"],
            load_b=copies["b"],
            start_a="" if fragment else START.format(x="a", constant=operands["a"].constant),
            start_b=START.format(x="b", constant=operands["b"].constant),
            scale_from=self.scale_from,
            first="\n".join(f"ld.global.{kind} {f}, [%d+{n * 4 * THREADS}];" for n, f in enumerate(sums)),
            products="\n".join(self._product(step, operands, sums) for step in range(self.steps)),
            last="\n".join(f"st.global.{kind} [%d+{n * 4 * THREADS}], {f};" for n, f in enumerate(sums)),
        )

    def _fragments(self) -> str:
        loads = (f"ld.global.b32 %h{n}, [%a+{n * 4 * THREADS}];" for n in range(4 * self.steps))
        return "\n".join(["add.u64 %a, %a, %x;", *loads])

    def _product(self, step: int, operands: dict, sums: list[str]) -> str:
        advance = [f"add.u64 %t{o}, %d{o}, {shared.k_starts(step)};" for o, shared in operands.items()]
        a = ", ".join(f"%h{4 * step + n}" for n in range(4))
        constants = [*self.signs] if TYPES[self.a].is_float else []
        if self.bits == 16:
            constants += map(int, self.transposed[self.from_registers :])
        types = ".".join((self.sums, *self.types))
        text = f"wgmma.mma_async.sync.aligned.m64n{self.n}k{self.k}{self.flag}.{types}"
        operand_list = ", ".join([
            "{" + ", ".join(sums) + "}", f"{{{a}}}" if self.from_registers else "%ta", "%tb", "%scale",
            *map(str, constants),
        ])  # fmt: skip
        return "\n".join([*advance, f"{text} {operand_list};"])

    def inputs(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bits of A (64, k), B (n, k) and numbers of C (64, n)."""
        bits = [rng.integers(0, 256, (rows, self.steps * self.k * self.bits // 8)) for rows in (64, self.n)]
        a, b = (self._tame(x.astype(np.uint8), type) for x, type in zip(bits, self.types, strict=True))
        c = rng.integers(-100, 100, (64, self.n)).astype(HELD[self.sums][1])
        return a, b, c

    def _tame(self, octets: np.ndarray, type: str) -> np.ndarray:
        """Numbers of moderate size, without NaN."""
        element = TYPES[type]
        bits = octets.view(f"u{element.bytes}")
        if element.is_float:
            kept, set_ = TAME[type]
            bits = bits & np.array(kept, bits.dtype) | np.array(set_, bits.dtype)
        return bits

    def numbers(self, bits: np.ndarray, type: str) -> np.ndarray:
        """What bits mean, as f64."""
        if type == "tf32":
            return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
        return table(TYPES[type]).take(bits)

    def memory(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The three arrays of the kernel, as bytes."""
        atom = mma_atom(self.name)
        in_a = self._fragment_bytes(atom, a) if self.from_registers else self._tile(a, "a")
        sums = np.zeros((64 * self.n // THREADS, THREADS), c.dtype)
        for thread, value, position in held(atom.c):
            sums[value, thread] = c[position % 64, position // 64]
        packed = HELD[self.sums][2]
        together = sums.reshape(-1, packed, THREADS).transpose(0, 2, 1)
        arrays = in_a, self._tile(b, "b"), np.ascontiguousarray(together).view(np.uint8)
        return tuple(x.flatten() for x in arrays)  # each with memory of its own

    def _tile(self, values: np.ndarray, operand: str) -> np.ndarray:
        layout = self.layout(operand)
        tile = np.zeros(layout.size, values.dtype)
        whole = np.zeros((values.shape[0], layout.size // values.shape[0]), values.dtype)
        whole[:, : values.shape[1]] = values
        tile[np.array(layout.offsets())] = whole.T.reshape(-1)
        return tile.view(np.uint8)

    def _fragment_bytes(self, atom, a: np.ndarray) -> np.ndarray:
        by_step = []
        for step in range(self.steps):
            part = a[:, step * self.k : (step + 1) * self.k]
            values = np.zeros((THREADS, 16 // part.itemsize), part.dtype)
            for thread, value, position in held(atom.a):
                values[thread, value] = part[position % 64, position // 64]
            by_step.append(values.view(np.uint32).T)
        return np.ascontiguousarray(np.concatenate(by_step)).view(np.uint8).reshape(-1)

    def result(self, memory: np.ndarray) -> np.ndarray:
        """D (64, n) of the kernel's third array."""
        _, element, packed = HELD[self.sums]
        values = memory.view(element).reshape(-1, THREADS, packed).transpose(0, 2, 1).reshape(-1, THREADS)
        d = np.zeros((64, self.n), element)
        for thread, value, position in held(mma_atom(self.name).c):
            d[position % 64, position // 64] = values[value, thread]
        return d

    def expected(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        """A @ Bᵀ, and C where scale_d is true, in f64."""
        left, right = (self.numbers(x, type) for x, type in zip((a, b), self.types, strict=True))
        return self.signs[0] * self.signs[1] * (left @ right.T) + (c.astype(np.float64) if not self.scale_from else 0)

    def run(self, on, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        """D, on a machine of `tests.machines`."""
        arrays = [on.array(x) for x in self.memory(a, b, c)]
        pd.parse(self.text())["k"][1, THREADS](*arrays)
        return self.result(np.ascontiguousarray(on.values(arrays[2]).astype(np.uint8)))
