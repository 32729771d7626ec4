"""Copies from shared to tensor memory: the lanes where rows go, decompression, and what is refused."""

import numpy as np
import pytest

from tests.emulate.support import clean
from tests.emulate.tensor_kernels import global_words, launch, registers, source

from .tensor_products import copies, packed

AFTER = "tcgen05.fence::after_thread_sync;\n"
LANES = {
    "128x256b": lambda row: [row],
    "128x128b": lambda row: [row],
    "4x256b": lambda row: [32 * row],
    "64x128b.warpx2::02_13": lambda row: [row, row + 64],
    "64x128b.warpx2::01_23": lambda row: [row % 32 + row // 32 * 64, row % 32 + row // 32 * 64 + 32],
    "32x128b.warpx4": lambda row: [row, row + 32, row + 64, row + 96],
}
"""The lanes that get each row, by the warps that the manual names."""


def extents(shape):
    rows, _, bits = shape.partition(".")[0].rstrip("b").partition("x")
    return int(rows), int(bits) // 8


def kernel(shape, rows, bytes, flags="", base=0, setup="", commit=True):
    """Copy 64 KiB to shared memory, the rows from there to cells that hold zeros, and these to memory."""
    desc = 1 << 46 | 128 // 16 << 32 | -(-rows // 8) * 128 // 16 << 16
    zeros = "".join(f"mov.b32 %v{n}, 0;\n" for n in range(16))
    body = zeros + f"tcgen05.st.sync.aligned.32x32b.x16.b32 [%r8], {registers(16)}; tcgen05.wait::st.sync.aligned;\n"
    body += "tcgen05.fence::before_thread_sync;\n" + copies() + "fence.proxy.async.shared::cta;\n"
    body += f"@%p1 mbarrier.init.shared::cta.b64 [%r4], 1;\nbar.sync 0; {AFTER}@!%p1 bra W;\n{setup}"
    body += f"add.u32 %r11, %r7, {base}; mov.b64 %rd5, {desc};\n"
    body += f"tcgen05.cp.cta_group::1.{shape}{flags} [%r11], %rd5;\n"
    body += "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];\n" * commit
    body += f"W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0; @!%p3 bra W; {AFTER}"
    body += f"tcgen05.ld.sync.aligned.32x32b.x16.b32 {registers(16)}, [%r8]; tcgen05.wait::ld.sync.aligned;\n"
    return source(body + global_words("st", 16, "%rd2"), 32)


def image(rows):
    """The bytes of rows in shared memory: groups of eight rows of 16 bytes, and then the next 16 bytes of each."""
    memory = np.zeros(65536, np.uint8)
    for row, line in enumerate(rows):
        for at in range(0, len(line), 16):
            start = row % 8 * 16 + row // 8 * 128 + at // 16 * -(-len(rows) // 8) * 128
            memory[start : start + 16] = line[at : at + 16]
    return memory


@pytest.mark.parametrize("shape", LANES)
def test_rows_go_to_the_lanes_of_the_manual(shape, rng):
    count, bytes = extents(shape)
    rows, result = rng.integers(0, 256, (count, bytes), np.uint8), np.zeros((16, 128), np.uint32)
    clean(launch(kernel(shape, count, bytes, base=4), image(rows), result))
    wanted = np.zeros((16, 128), np.uint32)
    for row, line in enumerate(rows):
        for lane in LANES[shape](row):
            wanted[4 : 4 + bytes // 4, lane] = line.view(np.uint32)
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("flags, bits, shift", [(".b8x16.b4x16_p64", 4, 2), (".b8x16.b6x16_p32", 6, 0)])
def test_elements_are_expanded_to_bytes(flags, bits, shift, rng):
    elements, result = rng.integers(0, 2**bits, (128, 16), np.uint8), np.zeros((16, 128), np.uint32)
    clean(launch(kernel("128x128b", 128, 16, flags), packed(image(elements), bits), result))
    np.testing.assert_array_equal(result[:4].T, (elements << shift).view(np.uint32))


def test_rows_past_the_last_lane():
    report = launch(
        kernel("128x128b", 128, 16, base="0x100000"), np.zeros(65536, np.uint8), np.zeros((16, 128), np.uint32)
    )
    assert (report.findings[0].kind, report.findings[0].message) == (
        "tensor-memory",
        "tcgen05.cp.cta_group::1.128x128b: its rows begin in lane 16 and need 128 lanes",
    )


def test_a_copy_that_no_commit_covers():
    memory, result = np.zeros(65536, np.uint8), np.zeros((16, 128), np.uint32)
    arrive = "mbarrier.arrive.shared::cta.b64 _, [%r4];\n"
    report = launch(kernel("128x128b", 128, 16, setup=arrive, commit=False), memory, result)
    assert (report.findings[0].kind, report.findings[0].message) == (
        "race",
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 reads columns 0 to 3 of tensor memory, which "
        "tcgen05.cp.cta_group::1.128x128b of the same warp may still write; no tcgen05.commit that covers it has arrived",
    )
