"""Kernels in PTX of one mma.sp: inputs as the registers of a warp hold them by the manual, results as matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import ptxdsl as pd
from ptxdsl.isa.matrix import table
from ptxdsl.types import TYPES

M, N, WARP = 16, 8, 32
PLACES = {4: (0, 1), 8: (0, 2), 12: (0, 3), 9: (1, 2), 13: (1, 3), 14: (2, 3)}
"""The places of two units among four, by four bits of metadata."""

TEXT = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 inputs, .param .u64 outputs) {{
.reg .b32 %i<{inputs}>, %o<{outputs}>, %n;
.reg .b64 %in, %out, %x;
ld.param.u64 %in, [inputs];
ld.param.u64 %out, [outputs];
mov.u32 %n, %ctaid.x;
mul.wide.u32 %x, %n, {input_bytes};
add.u64 %in, %in, %x;
mul.wide.u32 %x, %n, {output_bytes};
add.u64 %out, %out, %x;
mov.u32 %n, %tid.x;
mul.wide.u32 %x, %n, 4;
add.u64 %in, %in, %x;
add.u64 %out, %out, %x;
{loads}
{product}
{stores}
ret;
}}
"""


@dataclass(frozen=True)
class SparseProduct:
    """One form: a (m, k / 2 held) times b (n, k), of `selector` and metadata in any order or from the lesser place."""

    k: int
    a: str
    b: str
    sums: str
    selector: int = 0
    ordered: bool = False
    flag: str = ""

    def __str__(self) -> str:
        order = "-ordered" if self.ordered else ""
        return f"k{self.k}-{self.a}-{self.b}-{self.sums}-{self.selector}{order}{self.flag}"

    @property
    def bits(self) -> int:
        return TYPES[self.a].bits

    @property
    def unit(self) -> int:
        """Neighbours along k of which half are held."""
        return {4: 8, 8: 4, 16: 4, 32: 2}[self.bits]

    @property
    def registers(self) -> tuple[int, int, int]:
        """Of A, B and the sums."""
        return self.k // 2 * self.bits // 64, self.k * self.bits // 128, 2 if self.sums == "f16" else 4

    def text(self) -> str:
        """The kernel: each block is one warp with inputs of its own."""
        a, b, c = self.registers
        names = [f"%i{n}" for n in range(a + b + c + 1)]
        lists = ["{" + ", ".join(part) + "}" for part in (names[:a], names[a : a + b], names[a + b : a + b + c])]
        sums = [f"%o{n}" for n in range(c)]
        name = "mma.sp::ordered_metadata" if self.ordered else "mma.sp"
        types = ".".join((self.sums, self.a, self.b, self.sums))
        product = f"{name}.sync.aligned.m16n8k{self.k}.row.col{self.flag}.{types} {{{', '.join(sums)}}}, "
        held = {"f32": "f32", "s32": "s32"}.get(self.sums, "b32")
        return TEXT.format(
            inputs=len(names), outputs=c, input_bytes=128 * len(names), output_bytes=128 * c,
            loads="\n".join(f"ld.global.b32 {x}, [%in+{128 * n}];" for n, x in enumerate(names)),
            product=f"{product}{', '.join(lists)}, {names[-1]}, {self.selector};",
            stores="\n".join(f"st.global.b32 [%out+{128 * n}], {x};" for n, x in enumerate(sums)),
        ).replace(f".reg .b32 %i<{len(names)}>, %o<{c}>, %n", (
            f".reg .b32 %i<{a + b}>, %i{a + b + c}, %n; .reg .{held} %o<{c}>; "
            f".reg .{held} {', '.join(names[a + b : a + b + c])}"
        ))  # fmt: skip

    def places(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Metadata (count, rows, groups), four bits each."""
        known = (4, 14) if self.bits == 32 else tuple(PLACES)
        fours = rng.choice(known, (count, M, self.k // self.unit))
        if not self.ordered and self.bits != 32:
            turned = rng.integers(0, 2, fours.shape, bool)
            fours = np.where(turned, fours >> 2 | fours << 2 & 12, fours)
        return fours

    def columns(self, fours: np.ndarray) -> np.ndarray:
        """Where along k the held numbers stand, (count, rows, k / 2)."""
        where = np.zeros((*fours.shape[:2], self.k // 2), int)
        each = self.k // 2 // fours.shape[2]
        for at in np.ndindex(*fours.shape):
            count, row, group = at
            low, high = int(fours[at]) & 3, int(fours[at]) >> 2
            if self.bits == 32:
                inside = [int(fours[at] == 14)]
            elif self.bits == 4:
                inside = [2 * low, 2 * low + 1, 2 * high, 2 * high + 1]
            else:
                inside = [low, high]
            where[count, row, group * each : (group + 1) * each] = group * self.unit + np.array(inside)
        return where

    def metadata(self, fours: np.ndarray) -> np.ndarray:
        """Registers (count, lanes) in which the manual has the metadata; lanes that are not asked hold other bits."""
        words = np.full((len(fours), WARP), 0x5A5A5A5A, np.uint32)
        groups = fours.shape[2]
        share = groups * 4 * M // 256  # threads of each four that hand over some
        words[:, [lane for lane in range(WARP) if lane % 4 // share == self.selector]] = 0
        for row, group in np.ndindex(M, groups):
            if self.bits >= 16:
                part, shift = divmod(group, 4)
                lane, shift = row % 8 * 4 + self.selector * share + part, 4 * shift + row // 8 * 16
            else:
                part, shift = divmod(group, 8)
                lane, shift = row % 8 * 4 + self.selector * share + 2 * part + row // 8, 4 * shift
            words[:, lane] |= (fours[:, row, group] << shift).astype(np.uint32)
        return words

    def memory(self, a: np.ndarray, b: np.ndarray, c: np.ndarray, fours: np.ndarray) -> np.ndarray:
        """The input of the kernel, u32 (count, registers, lanes): bits of a (count, 16, k / 2), b (count, 8, k), c."""
        parts = [self._fragments(a, 2), self._fragments(b, 1), self._sums(c), self.metadata(fours)[:, np.newaxis]]
        return np.concatenate(parts, axis=1)

    def _fragments(self, x: np.ndarray, blocks: int) -> np.ndarray:
        """Lane 4g + t, register r: of row g (+ 8) the elements that follow 4 n r' + n t, where n fill a register."""
        n = 32 // self.bits
        grouped = x.reshape(len(x), blocks, 8, -1, 4, n).transpose(0, 3, 1, 2, 4, 5).reshape(-1, n).astype(np.uint64)
        words = (grouped << (np.arange(n, dtype=np.uint64) * np.uint64(self.bits))).sum(1)
        return words.astype(np.uint32).reshape(len(x), -1, WARP)

    def _sums(self, c: np.ndarray) -> np.ndarray:
        by_lane = c.reshape(len(c), 2, 8, 4, 2)  # half, g, t, column
        if self.sums == "f16":
            return np.ascontiguousarray(by_lane).view(np.uint32).reshape(len(c), 2, WARP)
        order = by_lane.transpose(0, 1, 4, 2, 3)
        return np.ascontiguousarray(order).view(np.uint32).reshape(len(c), 4, WARP)

    def run(self, on, memory: np.ndarray) -> np.ndarray:
        """d (count, 16, 8), on a machine of `tests.machines`."""
        count = len(memory)
        inputs, outputs = (
            on.array(memory.view(np.uint8).reshape(-1).copy()),
            on.array(np.zeros(count * self.registers[2] * 128, np.uint8)),
        )
        pd.parse(self.text())["k"][count, WARP](inputs, outputs)
        words = np.ascontiguousarray(on.values(outputs).astype(np.uint8)).view(np.uint32)
        if self.sums == "f16":
            return words.view(np.float16).reshape(count, M, N)
        registers = words.view(TYPES[self.sums].dtype).reshape(count, 2, 2, 8, 4)
        return registers.transpose(0, 1, 3, 4, 2).reshape(count, M, N)

    def numbers(self, bits: np.ndarray, type: str) -> np.ndarray:
        """What bits mean, as f64."""
        if type == "tf32":
            return (bits.astype(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
        if TYPES[type].bits == 4:
            return np.where((type == "s4") & (bits > 7), bits.astype(float) - 16, bits)
        return table(TYPES[type]).take(bits)

    def expected(self, a: np.ndarray, b: np.ndarray, c: np.ndarray, fours: np.ndarray) -> np.ndarray:
        """A with its zeros, times B, plus C, in f64."""
        whole = np.zeros((len(a), M, self.k))
        np.put_along_axis(whole, self.columns(fours), self.numbers(a, self.a), axis=2)
        return whole @ self.numbers(b, self.b).transpose(0, 2, 1) + c


def wild(rng: np.random.Generator, type: str, shape: tuple[int, ...], spread: int) -> np.ndarray:
    """Bits of a floating type: all mantissas and signs, exponents over `spread` binades around 1, some zeros."""
    element = TYPES[type]
    mantissa, bias = {"f16": (10, 15), "bf16": (7, 127), "tf32": (23, 127), "e4m3": (3, 7), "e5m2": (2, 15)}[type]
    least, most = max(0, bias - spread), min(bias + spread, 2 * bias - (type != "e4m3"))
    exponent = rng.integers(least, most + 1, shape).astype(np.uint64)
    bits = rng.integers(0, 1 << mantissa, shape).astype(np.uint64) | exponent << np.uint64(mantissa)
    bits |= rng.integers(0, 2, shape).astype(np.uint64) << np.uint64(element.bits - 1)
    bits[rng.random(shape) < 0.05] = 0
    return bits.astype(f"u{element.bytes}")
