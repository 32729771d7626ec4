"""Kernels around a chain of tcgen05.mma of a pair of blocks, each with half of A, B and D."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.emulate.tensor_kernels import global_words, launch, registers, source

from .tensor_products import B_AT, Product, copies

MEET = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;\n", "tcgen05.fence::after_thread_sync;\n"
BLOCK_BYTES = 2 * B_AT


def paired(body, columns=512, meets=MEET):
    """A kernel of pairs, which meet before they deallocate; %p7 is true in the even block, %h1 selects both."""
    ranks = ".reg .b16 %h<2>; mov.b16 %h1, 3; mov.u32 %r30, %cluster_ctarank; setp.eq.u32 %p7, %r30, 0;\n"
    text = source(ranks + body + meets, columns).replace("cta_group::1", "cta_group::2")
    return text.replace(".param .u64 y)\n", ".param .u64 y) .reqnctapercluster 2, 1, 1\n")


@dataclass(frozen=True)
class PairProduct(Product):
    """A chain of products of M x N x 32 bytes of a pair; a thread of block `issuer` issues it."""

    m: int = 256
    n: int = 32
    issuer: int = 0

    @property
    def half(self):
        """The product of the rows of A, and the columns of B, that one block holds."""
        return Product(**{**self.plain, "m": self.m // 2, "n": self.n // 2})

    @property
    def plain(self):
        return {name: getattr(self, name) for name in Product.__dataclass_fields__}

    @property
    def parts(self):
        return 1 if self.sparse else 128 // (self.m // 2)

    def lanes(self):
        """The lane of each row of D that a block has."""
        row = np.arange(self.m // 2)
        return row % 16 + row // 16 * 32 if self.sparse and self.m == 128 else row

    def text(self):
        width, a_at = self.n // self.parts, 256
        body = f"mul.wide.u32 %rd12, %r30, {self.input_bytes}; add.u64 %rd1, %rd1, %rd12;\n"
        body += f"mul.wide.u32 %rd12, %r30, {width * 512}; add.u64 %rd2, %rd2, %rd12; mov.b32 %r10, %r1;\n" + copies()
        for first in range(0, width, 8):
            body += f"add.u32 %r9, %r8, {first}; add.u64 %rd4, %rd2, {first * 512};\n" + global_words("ld", 8, "%rd4")
            body += f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%r9], {registers(8)};\n"
        for step in range(self.steps if self.from_cells else 0):
            body += f"add.u32 %r9, %r8, {a_at + 8 * step}; add.u64 %rd4, %rd1, {BLOCK_BYTES + step * 4096};\n"
            body += global_words("ld", 8, "%rd4")
            body += f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%r9], {registers(8)};\n"
        body += (
            self.prepare()
            + self.prepare_metadata()
            + "tcgen05.wait::st.sync.aligned; "
            + BEFORE
            + "fence.proxy.async.shared::cta;\n"
        )
        body += "@%p1 mbarrier.init.shared::cta.b64 [%r4], 1; fence.mbarrier_init.release.cluster;\n" + MEET + AFTER
        body += f"setp.eq.u32 %p6, %r30, {self.issuer}; @!%p6 bra W; @!%p1 bra W; add.u32 %r11, %r7, 0;\n"
        for step in range(self.steps):
            body += self.product(step, a_at)
        body += (
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r4], %h1;\n"
            "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0; @!%p3 bra W; " + AFTER
        )
        for first in range(0, width, 8):
            body += f"add.u32 %r9, %r8, {first}; add.u64 %rd4, %rd2, {first * 512};\n"
            body += f"tcgen05.ld.sync.aligned.32x32b.x8.b32 {registers(8)}, [%r9]; tcgen05.wait::ld.sync.aligned;\n"
            body += global_words("st", 8, "%rd4")
        return paired(body)

    def product(self, step, a_at):
        """The instructions of one product, with the descriptors of a block's halves."""
        half = self.half
        text = super().product(step, a_at)
        for side in (0, 1):
            text = text.replace(f"{self.descriptor(side, step)};", f"{half.descriptor(side, step)};")
        if self.disabled is not None:
            text = (
                "".join(f"mov.b32 %r{24 + n}, {self.disabled >> 32 * (4 + n) & 0xFFFFFFFF};\n" for n in range(4)) + text
            )
            text = text.replace("%r23}", "%r23, %r24, %r25, %r26, %r27}")
        return text

    @property
    def input_bytes(self):
        return BLOCK_BYTES + self.steps * 4096 + len(self.others(0)) + len(self.metadata(None))

    def others(self, block=0):
        return np.zeros(0, np.uint8)

    def placed(self, rows):
        """The words, (columns, 128 lanes), of a block's rows of D, (rows, N), and back with `taken`."""
        width = self.n // self.parts
        cells = np.zeros((width, 128), np.uint32)
        for part in range(self.parts):
            cells[:, self.lanes() + part * len(rows)] = rows[:, part * width : (part + 1) * width].T
        return cells

    def taken(self, cells):
        return np.concatenate([cells[:, self.lanes() + p * self.m // 2].T for p in range(self.parts)], axis=1)

    def run(self, a, b, c, fours=None, **options):
        rows, half, inputs = self.m // 2, self.half, []
        bits = c.view(f"u{c.itemsize}").astype(np.uint32)
        for block in (0, 1):
            mine, columns = (
                slice(block * rows, (block + 1) * rows),
                slice(block * self.n // 2, (block + 1) * self.n // 2),
            )
            inputs += [half.image(0, a[mine]), half.image(1, b[columns]), self.packed(a[mine]), self.others(block)]
            inputs += [self.metadata(None if fours is None else fours[mine])]
        cells = np.stack([self.placed(bits[block * rows : (block + 1) * rows]) for block in (0, 1)])
        report = launch(self.text(), np.concatenate(inputs), cells, grid=2, **options)
        d = np.concatenate([self.taken(each) for each in cells]).astype(f"u{c.itemsize}")
        return report, np.ascontiguousarray(d).view(c.dtype)

    def packed(self, a):
        """A block's rows of A in cells, a copy in the lanes of each part of D."""
        words = np.zeros((self.steps * 8, 128), np.uint32)
        if not self.from_cells:
            return words.reshape(-1).view(np.uint8)
        a = a << 2 if self.a == "e2m1" else a
        each = np.ascontiguousarray(a).view(np.uint32).T
        for part in range(self.parts):
            words[:, self.lanes() + part * len(a)] = each
        return words.reshape(-1).view(np.uint8)
