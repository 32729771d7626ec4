"""Kernels with tensor memory as PTX text: a block of four warps that stores D, multiplies, and loads D."""

import numpy as np

from ptxdsl.emulate import emulate
from ptxdsl.parse import parse

HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"
MODULE = (
    ".shared .align 1024 .b8 s[65536]; .shared .align 8 .b64 full[4]; .shared .align 4 .b32 at[2];\n"
    ".visible .entry k(.param .u64 x, .param .u64 y)\n"
)
REGISTERS = ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b32 %v<300>; .reg .b64 %rd<16>;\n"
BEGIN = """ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5;
setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r2, 0; mov.u32 %r3, s; mov.u32 %r4, full; mov.u32 %r5, at; shl.b32 %r6, %r2, 21;
"""
ALLOC = "@!%p2 bra A; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], {columns};\nA:\n"
ADDRESS = "bar.sync 0; ld.shared.b32 %r7, [%r5]; add.u32 %r8, %r7, %r6;\n"
DEALLOC = "bar.sync 0; @!%p2 bra Z; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, {columns};\nZ:\n"


def source(body, columns=512, begin=BEGIN):
    """A kernel whose body has the address of its tensor memory in %r7, and that of the warp's quarter in %r8."""
    lines = begin + ALLOC.format(columns=columns) + ADDRESS + body + DEALLOC.format(columns=columns)
    return f"{HEAD}{MODULE}{{ {REGISTERS}{lines} ret;\n}}\n"


def launch(text, x, y, block=128, grid=1, **options):
    module = parse(text)
    return emulate(module.kernels[0], module, (grid, 1, 1), (block, 1, 1), (x, y), **options)


def registers(count, first=0):
    return "{" + ", ".join(f"%v{first + n}" for n in range(count)) + "}"


def global_words(op, count, base):
    """Load (or store) `count` words of each thread, at word (register * 128 + thread) of an array."""
    text = f"mul.wide.u32 %rd9, %r1, 4; add.u64 %rd9, %rd9, {base};\n"
    for n in range(count):
        place = f"[%rd9+{512 * n}]"
        text += f"ld.global.b32 %v{n}, {place};\n" if op == "ld" else f"st.global.b32 {place}, %v{n};\n"
    return text


def words(rng, count):
    """`count` random words of each of 128 threads, as `global_words` places them."""
    return rng.integers(0, 2**32, (count, 128), np.uint32)
