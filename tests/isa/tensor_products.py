"""Kernels around a chain of tcgen05.mma, and the bytes of their operands by the manual's canonical layouts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxdsl.isa.matrix import table
from ptxdsl.isa.narrow import values
from ptxdsl.types import TYPES
from tests.emulate.tensor_kernels import global_words, launch, registers, source

from .wgmma_kernels import TAME

SPANS = {0: 0, 1: 128, 2: 128, 4: 64, 6: 32}
SUM_CODES = {"f16": 0, "f32": 1, "s32": 2}
CODES = {
    "f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1,
}  # fmt: skip
KINDS = {"f16": "f16", "bf16": "f16", "tf32": "tf32", "u8": "i8", "s8": "i8"}
NARROW = {"e2m1": 4, "e2m3": 6, "e3m2": 6}
K_BYTES = 32
METADATA_AT, METADATA_COLUMNS = 448, 8  # columns; those of a product
B_AT = 32768  # of the shared memory, after A
NUMPY = {"f32": np.float32, "f16": np.float16, "s32": np.int32}


def swizzled(offset, mode):
    if mode == 1:
        return offset ^ (offset >> 7 & 3) << 5
    span = SPANS[mode]
    return offset ^ (offset >> 7 & span // 16 - 1) << 4 if span else offset


@dataclass(frozen=True)
class Product:
    """A chain of `steps` products of M x N x 32 bytes. `modes` are the swizzle modes of A and B."""

    m: int = 128
    n: int = 16
    a: str = "f16"
    b: str = ""
    sums: str = "f32"
    modes: tuple[int, int] = (2, 2)
    transposed: tuple[bool, bool] = (False, False)
    steps: int = 2
    from_cells: bool = False
    negated: tuple[bool, bool] = (False, False)
    accumulates: bool = True
    scale: int | None = None
    disabled: int | None = None
    saturates: bool = False
    upper: bool = False
    weight_stationary: bool = False
    sparse: bool = False
    selector: int = 0
    zero_columns: int | None = None
    ashift: bool = False
    is_long: bool = False

    @property
    def names(self):
        return self.a, self.b or self.a

    @property
    def types(self):
        """Of the containers: elements of 4 and 6 bits take the places of bytes."""
        return tuple(TYPES.get(name, TYPES["b8"]) for name in self.names)

    @property
    def bits(self):
        return self.types[0].bits

    @property
    def k(self):
        """Of one product."""
        return 8 * self.k_bytes(0) // self.bits

    def k_bytes(self, side):
        """The bytes of K of a row of an operand in one product: a sparse A stores half of its elements."""
        return (48 if self.is_long else K_BYTES) << (self.sparse and side == 1)

    def depth(self, side):
        """The elements of K of a row of an operand in one product."""
        return self.k << (self.sparse and side == 1)

    @property
    def parts(self):
        """The parts of the columns of D, each in lanes of its own."""
        return 128 // self.m if self.weight_stationary else 1

    @property
    def name(self):
        majors = "".join("KM"[t] for t in self.transposed)
        extra = f"{'-ws' * self.weight_stationary}{'-cells' * self.from_cells}{self.negated if any(self.negated) else ''}{'-up' * self.upper}{f'-sp{self.selector}' * self.sparse}"
        return f"{self.m}x{self.n}-{self.a}.{self.b or self.a}.{self.sums}-{majors}{self.modes}{extra}"

    @property
    def idesc(self):
        sparse = self.sparse << 2 | self.selector
        code = (
            sparse
            | CODES[self.a] << 7
            | CODES[self.b or self.a] << 10
            | self.saturates << 3
            | SUM_CODES[self.sums] << 4
        )
        flags = self.negated[0] << 13 | self.negated[1] << 14 | self.transposed[0] << 15 | self.transposed[1] << 16
        return code | flags | self.n // 8 << 17 | self.m // 16 << 24

    def strides(self, side):
        """The leading and the stride byte offset of an operand, and the bytes of one of its tiles."""
        rows, span, k_bytes, k = (self.m, self.n)[side], SPANS[self.modes[side]], self.k_bytes(side), self.depth(side)
        if not self.transposed[side]:
            return (-(-rows // 8) * 128, 128, rows * k_bytes) if not span else (16, 8 * span, rows * max(span, k_bytes))
        line = rows * self.bits // 8
        if not span:
            return -(-line // 16) * 128, 128, -(-line // 16) * 16 * -(-k // 8) * 8
        group = 4 if self.modes[side] == 1 else 8
        return -(-k // group) * group * span, group * span, -(-line // span) * span * -(-k // group) * group

    def place(self, side, row, k):
        """The byte of element (row, k) of a tile."""
        bytes, span, (leading, stride, _) = self.bits // 8, SPANS[self.modes[side]], self.strides(side)
        if not self.transposed[side]:
            at = k * bytes
            if not span:
                return row % 8 * 16 + row // 8 * stride + at // 16 * leading + at % 16
            return row % 8 * span + row // 8 * stride + at
        at = row * bytes
        if not span:
            return k % 8 * 16 + k // 8 * leading + at // 16 * stride + at % 16
        group = 4 if self.modes[side] == 1 else 8
        return k % group * span + k // group * stride + at // span * leading + at % span

    def start(self, side, step):
        """The start of the operand of a step: a slice of 32 bytes of the tile's rows, or a tile of its own."""
        span, bytes = SPANS[self.modes[side]], -(-self.strides(side)[2] // 1024) * 1024
        if span > self.k_bytes(side) and not self.transposed[side]:
            each = span // self.k_bytes(side)
            return step // each * bytes + step % each * self.k_bytes(side)
        return step * bytes

    def at(self, side, step, row, k):
        """The byte of element (row, k) of a step, before swizzling."""
        return self.start(side, step) + self.place(side, row, k)

    def image(self, side, elements):
        """The bytes of an operand, (rows, steps * k), in shared memory."""
        image, depth = np.zeros(B_AT, np.uint8), self.depth(side)
        for step in range(self.steps):
            for row in range(len(elements)):
                for k in range(depth):
                    offset = swizzled(self.at(side, step, row, k), self.modes[side])
                    value = elements[row : row + 1, step * depth + k]
                    image[offset : offset + value.itemsize] = value.view(np.uint8)
        return packed(image, NARROW[self.names[side]]) if self.names[side] in NARROW else image

    def descriptor(self, side, step):
        leading, stride, _ = self.strides(side)
        start = (self.start(side, step) + side * B_AT) >> 4
        return start | leading // 16 << 16 | stride // 16 << 32 | 1 << 46 | self.modes[side] << 61

    def random(self, rng):
        """A, B and C as bits, with numbers between 1/2 and 2, or any integers."""
        a, b = (
            rng.integers(0, 2 ** min(32, t.bits), (rows, self.steps * self.depth(side))).astype(f"u{t.bits // 8}")
            for side, (rows, t) in enumerate(zip((self.m, self.n), self.types, strict=True))
        )
        keep = [
            (2 ** NARROW[name] - 1, 0) if name in NARROW else TAME.get(t.name, (2**t.bits - 1, 0))
            for t, name in zip(self.types, self.names, strict=True)
        ]
        a, b = (x & x.dtype.type(low) | x.dtype.type(high) for x, (low, high) in zip((a, b), keep, strict=True))
        c = (rng.standard_normal((self.m, self.n)) * 4).astype(NUMPY[self.sums])
        return a, b, c

    def lanes(self):
        """The lane of each row of D."""
        row = np.arange(self.m)
        if self.weight_stationary:
            return row
        return row if self.m == 128 else row % 16 + row // 16 * 32 + 16 * self.upper

    def text(self):
        columns, a_at = self.n, 256
        lane = "0x100000" if self.upper else "0"
        body = "mov.b32 %r10, %r1;\n" + copies()
        body += "add.u64 %rd3, %rd2, 0;\n"
        for first in range(0, columns, 8):
            body += f"add.u32 %r9, %r8, {first}; add.u64 %rd4, %rd2, {first * 512};\n" + global_words("ld", 8, "%rd4")
            body += f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%r9], {registers(8)};\n"
        if self.from_cells:
            for step in range(self.steps):
                body += f"add.u32 %r9, %r8, {a_at + 8 * step}; add.u64 %rd4, %rd1, {2 * B_AT + step * 4096};\n"
                body += global_words("ld", 8, "%rd4")
                body += f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%r9], {registers(8)};\n"
        body += self.prepare() + self.prepare_metadata()
        body += "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; fence.proxy.async.shared::cta;\n"
        body += "@%p1 mbarrier.init.shared::cta.b64 [%r4], 1;\nbar.sync 0; tcgen05.fence::after_thread_sync;\n@!%p1 bra W;\n"
        body += f"add.u32 %r11, %r7, {lane};\n"
        for step in range(self.steps):
            body += self.product(step, a_at)
        body += "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];\n"
        body += "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0; @!%p3 bra W; tcgen05.fence::after_thread_sync;\n"
        for first in range(0, columns, 8):
            body += f"add.u32 %r9, %r8, {first}; add.u64 %rd4, %rd2, {first * 512};\n"
            body += f"tcgen05.ld.sync.aligned.32x32b.x8.b32 {registers(8)}, [%r9]; tcgen05.wait::ld.sync.aligned;\n"
            body += global_words("st", 8, "%rd4")
        return source(body)

    def prepare(self):
        """Store more to tensor memory."""
        return ""

    def prepare_metadata(self):
        """Store the metadata of a sparse A to tensor memory."""
        if not self.sparse:
            return ""
        body = ""
        for first in range(0, METADATA_COLUMNS * self.steps, 8):
            at = f"{2 * B_AT + self.steps * 4096 + len(self.others()) + first * 512}"
            body += f"add.u64 %rd4, %rd1, {at};\n{global_words('ld', 8, '%rd4')}"
            body += f"add.u32 %r9, %r8, {METADATA_AT + first};\n"
            body += f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%r9], {registers(8)};\n"
        return body

    def positions(self, rng):
        """Random positions of the elements that A stores: (m, steps * k) along the whole K, and the four bits of each
        group of neighbours."""
        shape = self.m, self.steps * self.k // (1 if self.bits == 32 else 2)
        if self.bits == 32:
            fours = rng.choice([0b0100, 0b1110], shape)
            return 2 * np.arange(shape[1]) + (fours == 0b1110), fours
        fours = rng.choice([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110], shape)
        both = np.stack([fours & 3, fours >> 2], axis=-1) + 4 * np.arange(shape[1])[:, np.newaxis]
        return both.reshape(self.m, -1), fours

    def metadata(self, fours):
        """The bytes of the metadata of some rows, in words, (8 * steps, 128 lanes), of which each step has its own."""
        words = np.zeros((METADATA_COLUMNS * self.steps * self.sparse, 128), np.uint32)
        if fours is None:
            return words.reshape(-1).view(np.uint8)
        lanes, groups = self.lanes(), fours.shape[1] // self.steps
        for row, step, group in np.ndindex(len(fours), self.steps, groups):
            lane, column, shift = lanes[row], METADATA_COLUMNS * step + group // 8, 4 * (group % 8)
            if self.bits > 8:
                lane = lanes[row // 16 * 16 + row % 8 + group // 4 * 8]
                column, shift = METADATA_COLUMNS * step + self.selector, row // 8 % 2 * 16 + 4 * (group % 4)
            for part in range(self.parts):
                word = np.uint32(int(fours[row, step * groups + group]) << shift)
                words[column, lane + part * len(lanes) * (self.parts > 1)] |= word
        return words.reshape(-1).view(np.uint8)

    def dense(self, a, positions):
        """A with the elements that it does not store."""
        whole = np.zeros((len(a), 2 * a.shape[1]), a.dtype)
        np.put_along_axis(whole, positions, a, axis=1)
        return whole

    def others(self):
        """More bytes of the input, after A in cells."""
        return np.zeros(0, np.uint8)

    def suffix(self):
        """The modifiers after the kind, and the operands before the predicate."""
        return "", ""

    def product(self, step, a_at):
        a = f"mov.b64 %rd5, {self.descriptor(0, step)};\n"
        operand = "%rd5"
        if self.from_cells:
            a, operand = f"add.u32 %r12, %r11, {a_at + 8 * step};\n", "[%r12]"
        text = a + f"mov.b64 %rd6, {self.descriptor(1, step)}; mov.b32 %r13, {self.idesc};\n"
        mask, metadata = "", ""
        if self.sparse:
            text += f"add.u32 %r16, %r11, {METADATA_AT + METADATA_COLUMNS * step};\n"
            metadata = ", [%r16]"
        if self.disabled is not None:
            text += "".join(f"mov.b32 %r{20 + n}, {self.disabled >> 32 * n & 0xFFFFFFFF};\n" for n in range(4))
            mask = ", {%r20, %r21, %r22, %r23}"
        scale = f", {self.scale}" if self.scale is not None else ""
        text += f"setp.ne.u32 %p4, {int(self.accumulates or step > 0)}, 0;\n"
        if self.zero_columns is not None:
            text += f"mov.b64 %rd7, {self.zero_columns};\n"
            scale = ", %rd7"
        name = f"tcgen05.mma{'.ws' * self.weight_stationary}{'.sp' * self.sparse}"
        kind = f"{name}.cta_group::1.kind::{KINDS.get(self.a, 'f8f6f4')}{'.ashift' * self.ashift}"
        modifiers, operands = self.suffix()
        if modifiers:
            kind = f"{name}.cta_group::1.{modifiers}"
        return text + f"{kind} [%r11], {operand}, %rd6{metadata}, %r13{mask}{operands}, %p4{scale};\n"

    def run(self, a, b, c, fours=None, **options):
        """The report and D; lanes that the product leaves alone keep zeros. `fours` are the metadata."""
        cells = np.zeros((self.n, 128), np.uint32)
        bits = c.view(f"u{c.itemsize}").astype(np.uint32)
        parts = self.parts
        width = self.n // parts
        for part in range(parts):
            lanes = self.lanes() + part * self.m * (parts > 1)
            cells[:width, lanes] = bits[:, part * width : (part + 1) * width].T
        x = [self.image(0, a), self.image(1, b), self.packed(a), self.others(), self.metadata(fours)]
        report = launch(self.text(), np.concatenate(x), cells, **options)
        columns = [cells[:width, self.lanes() + part * self.m * (parts > 1)].T for part in range(parts)]
        d = np.concatenate(columns, axis=1).astype(f"u{c.itemsize}")
        return report, np.ascontiguousarray(d).view(c.dtype)

    def packed(self, a):
        """A in cells: eight words of each row for each step, in the lanes of the rows."""
        words = np.zeros((self.steps * 8, 128), np.uint32)
        if not self.from_cells:
            return words.reshape(-1).view(np.uint8)
        a = a << 2 if self.a == "e2m1" else a
        for part in range(self.parts):
            lanes = self.lanes() + part * self.m * (self.parts > 1)
            words[:, lanes] = np.ascontiguousarray(a).view(np.uint32).T
        return words.reshape(-1).view(np.uint8)

    def numbers(self, bits, side):
        type, name = self.types[side], self.names[side]
        if name in NARROW:
            return values(name)[bits]
        if type.name == "tf32":
            return (bits & 0xFFFFE000).view(np.float32).astype(np.float64)
        return table(type)[bits]

    def expected(self, a, b, c):
        left, right = self.numbers(a, 0), self.numbers(b, 1)
        sign = -1 if self.negated[0] != self.negated[1] else 1
        scale = 2.0 ** -(self.scale or 0)
        start = c.astype(np.float64) * (scale**self.steps) if self.accumulates else 0.0
        total = start
        for step in range(self.steps):
            part = np.s_[:, step * self.depth(1) : (step + 1) * self.depth(1)]
            each = sign * (left[part] @ right[part].T)
            total = total + each * scale ** (self.steps - 1 - step)
        return total


def packed(image, bits):
    """Move the elements of each 16 bytes together, `bits` each, in the first of these bytes."""
    fields = np.unpackbits(image.reshape(-1, 16, 1), axis=2, bitorder="little")[..., :bits].reshape(
        len(image) // 16, -1
    )
    octets = np.packbits(fields, axis=1, bitorder="little")
    padding = np.full((len(octets), 16 - octets.shape[1]), 0xA5, np.uint8)
    return np.concatenate([octets, padding], axis=1).reshape(-1)


def copies():
    """Copy 64 KiB to shared memory."""
    return (
        "shl.b32 %r10, %r1, 4; cvt.u64.u32 %rd10, %r10; add.u64 %rd11, %rd1, %rd10; add.u32 %r11, %r3, %r10;\n"
        "mov.u32 %r12, 0;\nL: ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%rd11]; st.shared.v4.b32 [%r11], {%v0, %v1, %v2, %v3};\n"
        "add.u64 %rd11, %rd11, 2048; add.u32 %r11, %r11, 2048; add.u32 %r12, %r12, 1; setp.lt.u32 %p5, %r12, 32; @%p5 bra L;\n"
    )
