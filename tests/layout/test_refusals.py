"""What layouts refuse, word for word: what was found, what was needed, and how to mend it."""

import pytest

from ptxdsl.errors import LayoutError
from ptxdsl.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    bank_wavefronts,
    byte_index,
    complement,
    composition,
    copy_atom,
    downcast,
    in_bytes,
    left_inverse,
    logical_divide,
    make_tiled_copy,
    make_tiled_copy_a,
    make_tiled_copy_b,
    make_tiled_copy_c,
    make_tiled_mma,
    mma_atom,
    parse,
    parse_layout,
    recast,
    slice_,
    upcast,
)
from tests.layout.fakes import Traced

F16 = "mma.m16n8k16.f32.f16"
K_MAJOR = Layout((128, 64), (64, 1))
M_MAJOR = Layout((128, 64), (1, 128))
SWIZZLED = composition(Swizzle(3, 3, 3), K_MAJOR)
MMA = make_tiled_mma(F16, (2, 2, 1), (32, 32, 16))
X4 = make_tiled_copy_b("ldmatrix.x4", MMA)
COPY_NAMES = (
    "write ldmatrix.x1|x2|x4[.trans], stmatrix.x1|x2|x4[.trans], cp.async.4|8|16, "
    "or ld|st[.global|.shared] with 1, 2, 4, 8 or 16 bytes as .16, .b128 or .v4.b32"
)
LAYOUT_TEXT = (
    "write ((4,8),(2,2)):((32,1),(16,8)), Sw<3,3,3> or Sw<3,3,3> o 0 o (8,64):(64,1), as they print themselves"
)


class Global:
    """A tensor as a kernel has it: a layout in a state space."""

    layout, space = K_MAJOR, "global"


REFUSALS = {
    # ---- shapes, strides, coordinates
    "a float in a shape": (
        lambda: Layout((4, 8.0)),
        "a shape is an int or a nested tuple of ints; found 8.0 of type float",
        "layouts are static: use Python ints, and apply the layout to traced coordinates",
    ),
    "a bool in a stride": (
        lambda: Layout((4, 8), (True, 4)),
        "a stride is an int or a nested tuple of ints; found True of type bool",
        "layouts are static: use Python ints, and apply the layout to traced coordinates",
    ),
    "a traced stride": (
        lambda: Layout((4, 8), (Traced(3, "lda"), 1)),
        "a stride is an int or a nested tuple of ints; found lda of type Traced",
        "layouts are static: use Python ints, and apply the layout to traced coordinates",
    ),
    "an empty mode": (lambda: Layout((4, 0)), "a shape has no entry below 1; found 0", None),
    "no modes": (lambda: Layout(()), "a shape has at least one mode; found ()", None),
    "a stride for each mode but one": (
        lambda: Layout((4, 8), (8,)),
        "shape (4,8) and stride (8) are not nested alike: in the shape (4,8) has 2 modes, in the stride (8) has 1 mode",
        "give each int of the shape its own int in the stride",
    ),
    "a nested stride for a flat shape": (
        lambda: Layout((4, 8), (8, (1, 2))),
        "shape (4,8) and stride (8,(1,2)) are not nested alike: in the shape 8 is one int, "
        "in the stride (1,2) has 2 modes",
        "give each int of the shape its own int in the stride",
    ),
    "too many coordinates": (
        lambda: K_MAJOR(1, 2, 3),
        "a coordinate of 3 entries meets the shape (128,64), which has 2",
        "give one coordinate for each mode, or a single one that counts through all of them",
    ),
    "a coordinate outside": (
        lambda: byte_index(K_MAJOR, (99, 64), 2),
        "coordinate 64 is outside of mode 1 of (128,64):(64,1): it goes from 0 to 63",
        None,
    ),
    "a negative coordinate of a nested mode": (
        lambda: byte_index(Layout(((4, 8), 2)), ((0, -1), Traced(0)), 2),
        "coordinate -1 is outside of mode 0.1 of ((4,8),2):((1,4),32): it goes from 0 to 7",
        None,
    ),
    "a linear coordinate outside": (
        lambda: byte_index(SWIZZLED, 8192, 2),
        "coordinate 8192 is outside of Sw<3,3,3> o 0 o (128,64):(64,1): it goes from 0 to 8191",
        None,
    ),
    "a slice outside": (
        lambda: slice_(K_MAJOR, 128, None),
        "coordinate 128 is outside of mode 0 of (128,64):(64,1): it goes from 0 to 127",
        None,
    ),
    "more entries by mode than modes": (
        lambda: logical_divide(K_MAJOR, (4, 4, 4)),
        "3 entries by mode meet (128,64):(64,1), which has 2 modes",
        None,
    ),
    # ---- text
    "a layout without an end": (
        lambda: parse_layout("(4,(8,2):(2,1)"),
        "cannot read the layout '(4,(8,2):(2,1)': at column 9 found ':', expected ')'",
        LAYOUT_TEXT,
    ),
    "words after a layout": (
        lambda: parse_layout("(4,8) x"),
        "cannot read the layout '(4,8) x': at column 6 found 'x', expected the end",
        LAYOUT_TEXT,
    ),
    "no layout": (
        lambda: parse(""),
        "cannot read the layout '': at column 1 found the end, expected an int",
        LAYOUT_TEXT,
    ),
    "a swizzle without an offset": (
        lambda: parse("Sw<3,3,3> o (8,64):(64,1)"),
        "cannot read the layout 'Sw<3,3,3> o (8,64):(64,1)': at column 12 found '(', expected an int",
        LAYOUT_TEXT,
    ),
    # ---- algebra
    "a composition that is no layout": (
        lambda: composition(Layout((4, 6, 8), (2, 3, 5)), Layout(6, 3)),
        "(4,6,8):(2,3,5) o 6:3 is no layout: mode 0 of the right layout, 6:3, reads the offsets 0, 6, 7, 8, 9, 15",
        "give it a stride and a size that divide the left layout's shape (4,6,8)",
    ),
    "its nested mode": (
        lambda: composition(Layout((10, 4), (4, 1)), Layout((2, (3, 12)), (20, (1, 3)))),
        "(10,4):(4,1) o (2,(3,12)):(20,(1,3)) is no layout: mode 1.1 of the right layout, 12:3, reads the offsets "
        "0, 12, 24, 36, 9, 21, 33, 6, …",
        "give it a stride and a size that divide the left layout's shape (10,4)",
    ),
    "modes that carry into each other": (
        lambda: composition(Layout((4, 2), (1, 10)), Layout((2, 2), (3, 3))),
        "(4,2):(1,10) o (2,2):(3,3) is no layout: mode 1 of the right layout carries into another: "
        "at (1,1) the left layout gives 12, where its modes add up to 6",
        "compose with modes whose strides divide the left layout's shape",
    ),
    "a swizzle on the right": (
        lambda: composition(K_MAJOR, SWIZZLED),
        "(128,64):(64,1) o Sw<3,3,3> o 0 o (128,64):(64,1): a swizzle stands on the left, where it acts on offsets",
        "swizzle the offsets of the whole: composition(swizzle, composition(a, inner))",
    ),
    "two swizzles of different distance": (
        lambda: composition(Swizzle(1, 3, 3), Swizzle(1, 4, 2)),
        "Sw<1,3,3> o Sw<1,4,2> is no single swizzle: their bits do not join into one run over one distance",
        "apply them one after the other to the offset",
    ),
    "a complement of overlapping modes": (
        lambda: complement(Layout((4, 2), (1, 2))),
        "(4,2):(1,2) has no complement: the mode 2:2 starts inside of the block of 4 that the modes below it take up",
        "give this mode a stride that is a multiple of 4",
    ),
    "a complement of a ragged gap": (
        lambda: complement(Layout((2, 2), (1, 5))),
        "(2,2):(1,5) has no complement: the mode 2:5 is no whole multiple of the block of 2 "
        "that the modes below it take up",
        "give this mode a stride that is a multiple of 2",
    ),
    "a left inverse of overlapping modes": (
        lambda: left_inverse(Layout((4, 2), (1, 2))),
        "(4,2):(1,2) has no left inverse: the mode 2:2 does not stand on whole multiples of the mode 4:1 below it",
        None,
    ),
    "a swizzle that feeds itself": (
        lambda: Swizzle(3, 3, 2),
        "Swizzle(3, 3, 2) reads bits that it also changes: the shift is at least the number of bits, 3",
        None,
    ),
    "offsets of a traced slice": (
        lambda: slice_(SWIZZLED, Traced(1), None).offsets(),
        "Sw<3,3,3> o traced o 64:1 starts at a traced offset: its offsets are not known before the kernel runs",
        None,
    ),
    "recast to a width that does not divide": (
        lambda: recast(K_MAJOR, 16, 24),
        "16-bit elements do not recast to 24 bits: neither width divides the other",
        None,
    ),
    "upcast through a mode": (
        lambda: upcast(Layout((4, 3), (3, 1)), 2),
        "(4,3):(3,1) has no wider elements of 2: mode 0, 4:3, cuts through them",
        "give the mode a stride that is a multiple of 2, or a size that fills whole elements",
    ),
    "upcast from the middle of an element": (
        lambda: upcast(ComposedLayout(Swizzle(1, 1, 1), 3, Layout(8)), 2),
        "Sw<1,1,1> o 3 o 8:1 does not start on a multiple of 2 elements",
        None,
    ),
    "upcast through a swizzle": (
        lambda: upcast(composition(Swizzle(1, 0, -1), Layout(8)), 2),
        "Sw<1,0,-1> moves elements by their place within the wider ones of 2, and tears these apart",
        None,
    ),
    "downcast of a traced slice": (
        lambda: downcast(slice_(SWIZZLED, Traced(1), None), 2),
        "Sw<3,3,3> o traced o 64:1 starts at a traced offset: downcast before slicing",
        None,
    ),
    "a swizzle in elements of 12 bytes": (
        lambda: in_bytes(SWIZZLED, 12),
        "Sw<3,3,3> o 0 o (128,64):(64,1) swizzles the bits of an offset; 12 times it is no shift of these bits",
        None,
    ),
    # ---- atoms
    "types that an mma shape does not take": (
        lambda: mma_atom("mma.m16n8k16.f32.tf32"),
        "there is no MMA atom 'mma.m16n8k16.f32.tf32'",
        "write mma.SHAPE.ACCUMULATOR.INPUT; m16n8k16: f32.f16, f16.f16, f32.bf16, s32.s8, s32.u8, f64.f64, "
        "f32.e4m3, f32.e5m2, f16.e4m3, f16.e5m2",
    ),
    "inputs of two widths": (
        lambda: mma_atom("mma.sync.aligned.m16n8k16.row.col.f32.f16.e4m3.f32"),
        "there is no MMA atom 'mma.sync.aligned.m16n8k16.row.col.f32.f16.e4m3.f32'",
        "write mma.SHAPE.ACCUMULATOR.INPUT; m16n8k16: f32.f16, f16.f16, f32.bf16, s32.s8, s32.u8, f64.f64, "
        "f32.e4m3, f32.e5m2, f16.e4m3, f16.e5m2",
    ),
    "a shape that mma does not have": (
        lambda: mma_atom("mma.m32n8k16.f32.f16"),
        "there is no MMA atom 'mma.m32n8k16.f32.f16'",
        "write mma.SHAPE.ACCUMULATOR.INPUT; the shapes are m16n8k16, m16n8k8, m16n8k4, m16n8k32, m8n8k4, m8n8k16",
    ),
    "a wgmma of odd width": (
        lambda: mma_atom("wgmma.m64n12k16.f32.f16"),
        "there is no MMA atom 'wgmma.m64n12k16.f32.f16'",
        "write wgmma.SHAPE.ACCUMULATOR.INPUT; m64nNkK, N a multiple of 8 up to 256, 32 bytes of K, with f32.f16, "
        "f16.f16, f32.bf16, f32.tf32, s32.s8, s32.u8, f32.e4m3, f32.e5m2, f16.e4m3, f16.e5m2",
    ),
    "an ldmatrix of three": (lambda: copy_atom("ldmatrix.x3"), "there is no copy atom 'ldmatrix.x3'", COPY_NAMES),
    "a cp.async of two bytes": (lambda: copy_atom("cp.async.2"), "there is no copy atom 'cp.async.2'", COPY_NAMES),
    "a load of 32 bytes": (lambda: parse("ld.v4.f64"), "there is no copy atom 'ld.v4.f64'", COPY_NAMES),
    "a transposing load of bytes": (
        lambda: make_tiled_copy_a("ldmatrix.x4.trans", make_tiled_mma("mma.m16n8k32.s32.s8")),
        "ldmatrix.x4.trans transposes 16-bit elements; these have 8 bits",
        "store the tile transposed, and use ldmatrix.x4",
    ),
    "a matrix of doubles": (
        lambda: make_tiled_copy_a("ldmatrix.x4", make_tiled_mma("mma.m16n8k8.f64")),
        "ldmatrix.x4 hands 32-bit pieces of a row to different threads; a 64-bit element would be cut",
        "use ld.shared",
    ),
    "a load of less than an element": (
        lambda: make_tiled_copy("ld.shared.2", 32, 1, bits=32),
        "ld.shared.2 moves 16 bits a thread, less than one 32-bit element",
        "use an instruction of at least 4 bytes a thread",
    ),
    # ---- tiled copies: the five conditions of ldmatrix
    "1, threads": (
        lambda: make_tiled_copy("ldmatrix.x4", (4, 4), (1, 8)),
        "ldmatrix.x4 is one instruction of 32 threads: found 16 threads in thr_layout (4,4):(1,4), "
        "needed a multiple of 32",
        "let whole warps of 32 threads take part, or copy with ld.shared",
    ),
    "2, values of B under one MMA atom": (
        lambda: make_tiled_copy_b("ldmatrix.x4", make_tiled_mma(F16)),
        "ldmatrix.x4 moves 8 values of 16 bits a thread: found 4 a thread in operand B (N, K) = (8,16) of "
        "tiled_mma(mma.m16n8k16.f32.f16, atoms (1,1,1):(1,1,1), tile (16,8,16)), needed a multiple of 8",
        "let each warp hold 2 MMA atoms in N: tile=(16, 16, 16) (more warps in N alone do not help), "
        "or use a narrower instruction",
    ),
    "2, values of B under two warps in N": (
        lambda: make_tiled_copy_b("ldmatrix.x4", make_tiled_mma(F16, (2, 2, 1))),
        "ldmatrix.x4 moves 8 values of 16 bits a thread: found 4 a thread in operand B (N, K) = (16,16) of "
        "tiled_mma(mma.m16n8k16.f32.f16, atoms (2,2,1):(1,2,4), tile (32,16,16)), needed a multiple of 8",
        "let each warp hold 2 MMA atoms in N: tile=(32, 32, 16) (more warps in N alone do not help), "
        "or use a narrower instruction",
    ),
    "2, values of A of a shallow MMA": (
        lambda: make_tiled_copy_a("ldmatrix.x4", make_tiled_mma("mma.m16n8k8.f32.f16", (1, 2, 1), (16, 32, 8))),
        "ldmatrix.x4 moves 8 values of 16 bits a thread: found 4 a thread in operand A (M, K) = (16,8) of "
        "tiled_mma(mma.m16n8k8.f32.f16, atoms (1,2,1):(1,1,2), tile (16,32,8)), needed a multiple of 8",
        "let each warp hold 2 MMA atoms in M: tile=(32, 32, 8) (more warps in M alone do not help), "
        "or use a narrower instruction",
    ),
    "2, values of C": (
        lambda: make_tiled_copy_c("stmatrix.x4", make_tiled_mma(F16), bits=16),
        "stmatrix.x4 moves 8 values of 16 bits a thread: found 4 a thread in operand C (M, N) = (16,8) of "
        "tiled_mma(mma.m16n8k16.f32.f16, atoms (1,1,1):(1,1,1), tile (16,8,16)), needed a multiple of 8",
        "let each warp hold 2 MMA atoms in N: tile=(16, 16, 16) (more warps in N alone do not help), "
        "or use a narrower instruction",
    ),
    "2, values of a block": (
        lambda: make_tiled_copy("cp.async.16", (32, 4), (1, 4)),
        "cp.async.16 moves 8 values of 16 bits a thread: found 4 a thread in val_layout (1,4):(1,1), "
        "needed a multiple of 8",
        "give each thread 8 values, or use a narrower instruction",
    ),
    "3, not contiguous: the other major": (
        lambda: make_tiled_copy_a("ldmatrix.x4", MMA).partition_s(M_MAJOR),
        "ldmatrix.x4 reads 8 contiguous values of 16 bits a thread: found offsets 0, 128, 256, 384, … in "
        "(128,64):(1,128), which is contiguous in M, needed 0 to 7",
        "the tile is M-major: use ldmatrix.x4.trans",
    ),
    "3, not contiguous: transposed for nothing": (
        lambda: make_tiled_copy_b("ldmatrix.x4.trans", MMA).partition_s(SWIZZLED),
        "ldmatrix.x4.trans reads 8 contiguous values of 16 bits a thread: found offsets 0, 64, 128, 192, … in "
        "Sw<3,3,3> o 0 o (128,64):(64,1), which is contiguous in K, needed 0 to 7",
        "the tile is K-major: use ldmatrix.x4",
    ),
    "3, contiguous nowhere": (
        lambda: X4.partition_s(Layout((128, 64), (128, 2))),
        "ldmatrix.x4 reads 8 contiguous values of 16 bits a thread: found offsets 0, 2, 4, 6, … in "
        "(128,64):(128,2), which is contiguous in no mode, needed 0 to 7",
        "store the tile with stride 1 in K for ldmatrix.x4, or in N for ldmatrix.x4.trans",
    ),
    "3, contiguous nowhere, transposed": (
        lambda: make_tiled_copy_b("ldmatrix.x4.trans", MMA).partition_s(Layout((128, 64), (2, 256))),
        "ldmatrix.x4.trans reads 8 contiguous values of 16 bits a thread: found offsets 0, 2, 4, 6, … in "
        "(128,64):(2,256), which is contiguous in no mode, needed 0 to 7",
        "store the tile with stride 1 in K for ldmatrix.x4, or in N for ldmatrix.x4.trans",
    ),
    "3, a fragment is no vector": (
        lambda: make_tiled_copy_a("ld.shared.16", MMA).partition_s(K_MAJOR),
        "ld.shared.16 reads 8 contiguous values of 16 bits a thread: found offsets 0, 1, 512, 513, … in "
        "(128,64):(64,1), which is contiguous in K, needed 0 to 7",
        "let each thread's values run along the contiguous mode, or move 4 bytes at a time",
    ),
    "3, a swizzle that cuts vectors": (
        lambda: X4.partition_s(composition(Swizzle(3, 2, 3), K_MAJOR)),
        "ldmatrix.x4 reads 8 contiguous values of 16 bits a thread: found blocks of 4 in "
        "Sw<3,2,3> o 0 o (128,64):(64,1), needed 8",
        "use Sw<3,3,3>, whose blocks are whole vectors",
    ),
    "3, the side that is written": (
        lambda: make_tiled_copy("cp.async.16", Layout((32, 4), (4, 1)), (1, 8)).partition_d(Layout((32, 32))),
        "cp.async.16 writes 8 contiguous values of 16 bits a thread: found offsets 0, 32, 64, 96, … in "
        "(32,32):(1,32), which is contiguous in mode 0, needed 0 to 7",
        "let each thread's values run along the contiguous mode, or move 2 bytes at a time",
    ),
    "4, a pitch of 65": (
        lambda: X4.partition_s(Layout((128, 64), (65, 1))),
        "ldmatrix.x4 reads at multiples of 16 bytes: found a pitch of 65 elements (130 bytes) in (128,64):(65,1), "
        "needed a multiple of 8 elements",
        "pad the pitch to 72 elements, or keep a power of two and swizzle it",
    ),
    "4, a pitch of 68": (
        lambda: make_tiled_copy_a("ldmatrix.x2", MMA).partition_s(Layout((128, 64), (68, 1))),
        "ldmatrix.x2 reads at multiples of 16 bytes: found a pitch of 68 elements (136 bytes) in (128,64):(68,1), "
        "needed a multiple of 8 elements",
        "pad the pitch to 72 elements, or keep a power of two and swizzle it",
    ),
    "4, a pitch of columns": (
        lambda: make_tiled_copy_a("ldmatrix.x4.trans", MMA).partition_s(Layout((128, 64), (1, 130))),
        "ldmatrix.x4.trans reads at multiples of 16 bytes: found a pitch of 130 elements (260 bytes) in "
        "(128,64):(1,130), needed a multiple of 8 elements",
        "pad the pitch to 136 elements, or keep a power of two and swizzle it",
    ),
    "4, stages at a ragged distance": (
        lambda: X4.partition_s(Layout((128, 64, 2), (64, 1, 8196))),
        "ldmatrix.x4 reads at multiples of 16 bytes: found a pitch of 8196 elements (16392 bytes) in "
        "(128,64,2):(64,1,8196), needed a multiple of 8 elements",
        "pad the pitch to 8200 elements, or keep a power of two and swizzle it",
    ),
    "4, a start in the middle": (
        lambda: X4.partition_s(ComposedLayout(Swizzle(3, 3, 3), 4, K_MAJOR)),
        "ldmatrix.x4 reads at multiples of 16 bytes: found a start at element 4 (byte 8) of "
        "Sw<3,3,3> o 4 o (128,64):(64,1), needed a multiple of 8 elements",
        "start the tile at a multiple of 8 elements",
    ),
    "5, not shared memory": (
        lambda: X4.partition_s(Global()),
        "ldmatrix.x4 reads shared memory: found a source in global, needed shared",
        "copy the tile to shared memory first (cp.async), or load it with ld.global",
    ),
    "5, not global memory": (
        lambda: make_tiled_copy("cp.async.16", Layout((32, 4), (4, 1)), (1, 8)).partition_s(K_MAJOR, space=".shared"),
        "cp.async.16 reads global memory: found a source in shared, needed global",
        "use an instruction that reads shared memory",
    ),
    "5, written to the wrong space": (
        lambda: make_tiled_copy_c("stmatrix.x2", MMA, bits=16).partition_d(Global()),
        "stmatrix.x2 writes shared memory: found a target in global, needed shared",
        "use an instruction that writes global memory",
    ),
    # ---- tiled MMAs and copies
    "a tile that is no multiple": (
        lambda: make_tiled_mma(F16, (2, 2, 1), (32, 24, 16)),
        "the tile (32,24,16) of mma.m16n8k16.f32.f16 on (2,2,1):(1,2,4) warps: found 24 in N, needed a multiple of 16",
        "the atom is (16,8,16), and the warps side by side make it (32,16,16)",
    ),
    "a tile of two extents": (
        lambda: make_tiled_mma(F16, (2, 2, 1), (32, 32)),
        "the tile of a tiled MMA is (M, N, K); found (32, 32)",
        "None stands for the least there is",
    ),
    "an empty tile": (
        lambda: make_tiled_mma(F16, tile=(16, 0, 16)),
        "the tile (16,0,16) of mma.m16n8k16.f32.f16 on (1,1,1):(1,1,1) warps: found 0 in N, needed a multiple of 8",
        "the atom is (16,8,16), and the warps side by side make it (16,8,16)",
    ),
    "warps with a gap": (
        lambda: make_tiled_mma(F16, Layout((2, 2, 1), (1, 4, 8))),
        "(2,2,1):(1,4,8) does not number 4 warps from 0 to 3: its cosize is 6",
        "the compact layout of this shape is (2,2,1):(1,2,4)",
    ),
    "warps in four directions": (
        lambda: make_tiled_mma(F16, (2, 2, 1, 2)),
        "the warps of a tiled MMA stand in M, N and K; found (2,2,1,2):(1,2,4,4), of 4 modes",
        None,
    ),
    "threads that share a place": (
        lambda: make_tiled_copy("cp.async.16", Layout((32, 4), (1, 0)), (1, 8)),
        "(32,4):(1,0) does not number 128 threads from 0 to 127: its cosize is 32",
        "the compact layout of this shape is (32,4):(1,32)",
    ),
    "a tile that does not fill the layout": (
        lambda: X4.partition_s(Layout((100, 64), (64, 1))),
        "this copy by ldmatrix.x4 comes in tiles of (32,16), which do not fill (100,64) evenly",
        "choose a tile that divides the layout, and guard the remainder in the kernel",
    ),
    "an operand that the tile does not fill": (
        lambda: MMA.partition_c(Layout((64, 40))),
        "operand C of tiled_mma(mma.m16n8k16.f32.f16, atoms (2,2,1):(1,2,4), tile (32,32,16)) comes in tiles of "
        "(32,32), which do not fill (64,40) evenly",
        "choose a tile that divides the layout, and guard the remainder in the kernel",
    ),
    "a thread outside": (
        lambda: X4.get_slice(128).partition_s(SWIZZLED),
        "coordinate 128 is outside of mode 0 of ((8,2,2,2,2),(8,1),4,4):((64,8,1024,0,512),(1,0),2048,16): "
        "it goes from 0 to 127",
        None,
    ),
    "no layout at all": (
        lambda: X4.partition_s((128, 64)),
        "a layout or a tensor with one is partitioned; found (128, 64) of type tuple",
        None,
    ),
    "a fragment of a copy without an MMA": (
        lambda: make_tiled_copy("ld.shared.4", 32, 2).retile(Layout(4)),
        "tiled_copy(ld.shared.4, (32,2):(2,1) on (64)) is not made for a tiled MMA: it has no fragment to regroup",
        None,
    ),
    # ---- banks
    "banks of three modes": (
        lambda: bank_wavefronts("ldmatrix.x4", Layout((64, 64, 3))),
        "one ldmatrix.x4 of a warp is shown on two modes; (64,64,3):(1,64,4096) has 3",
        None,
    ),
    "banks of a misaligned row": (
        lambda: bank_wavefronts("ldmatrix.x4", Layout((64, 64), (65, 1))),
        "ldmatrix.x4 reads at multiples of 16 bytes: found a pitch of 65 elements (130 bytes) in (64,64):(65,1), "
        "needed a multiple of 8 elements",
        "pad the pitch to 72 elements, or keep a power of two and swizzle it",
    ),
}


@pytest.mark.parametrize("call, message, help", REFUSALS.values(), ids=REFUSALS)
def test_refusal(call, message, help):
    with pytest.raises(LayoutError) as caught:
        call()
    assert (caught.value.message, caught.value.help) == (message, help)


def test_a_refusal_shows_the_line_of_the_user():
    with pytest.raises(LayoutError) as caught:
        X4.partition_s(Global())
    text = str(caught.value)
    assert text.splitlines()[0] == "ldmatrix.x4 reads shared memory: found a source in global, needed shared"
    assert "test_refusals.py" in text and "X4.partition_s(Global())" in text
    assert text.splitlines()[-1] == (
        "  help: copy the tile to shared memory first (cp.async), or load it with ld.global"
    )
