"""What layouts refuse, word for word: what was found, what was needed, and how to mend it."""

import pytest

from ptxdsl.errors import LayoutError
from ptxdsl.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    atom,
    bank_wavefronts,
    byte_index,
    coalesce,
    complement,
    composition,
    copy_atom,
    crd2idx,
    downcast,
    idx2crd,
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
    tile_to_shape,
    to_svg,
    to_text,
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
LAYOUT_TEXT = "write ((4,8),(2,2)):((32,1),(16,8)), Sw<3,3,3> or Sw<3,3,3> o 0 o (8,64):(64,1), as layouts are printed"
FROM_0 = "and coordinates count from 0; negative coordinates are not supported"
TENSOR = "write Layout(SHAPE, STRIDE), or pass the array of pd.shared(TYPE, layout)"
OPERATORS = "use an int, a register of integers, or an array of ints"
STATIC = "layouts are static: use a Python int"
INSTRUCTIONS = "an instruction such as mma.m16n8k16.f32.f16, ldmatrix.x4, cp.async.16 or ld.shared.16"
TWO_TYPES = "convert one of them; only e4m3 and e5m2, or s8 and u8, may be mixed"
TURNED = "write .row.col, and load a tile of the other major with ldmatrix.x4.trans"
OPERANDS = 'the operands are "a", "b" and "c"'
DRAWN = "only layouts, swizzles, atoms, tiled copies and tiled MMAs can be drawn; found"


class Global:
    """A tensor as a kernel has it: a layout in a state space."""

    layout, space = K_MAJOR, "global"


REFUSALS = {
    # ---- shapes, strides, coordinates
    "a coordinate and a shape that are swapped": (
        lambda: crd2idx((4, 8), (1, 2)),
        "the coordinate (4, 8) is outside of the shape (1, 2) in every mode",
        "the coordinate comes first: crd2idx((1, 2), (4, 8))",
    ),
    "a layout in place of the coordinate": (
        lambda: crd2idx(K_MAJOR, (1, 2)),
        "crd2idx takes a coordinate, a shape and a stride; found the layout (128,64):(64,1)",
        "call the layout: `layout((1, 2))`",
    ),
    "a layout in place of the shape": (
        lambda: crd2idx((1, 2), K_MAJOR),
        "crd2idx takes a coordinate, a shape and a stride; found the layout (128,64):(64,1)",
        "call the layout: `layout((1, 2))`",
    ),
    "a float in a shape": (
        lambda: Layout((4, 8.0)),
        "a shape must be an int or a nested tuple of ints; found 8.0 of type float",
        "layouts are static: use Python ints, and call the layout with traced coordinates",
    ),
    "a bool in a stride": (
        lambda: Layout((4, 8), (True, 4)),
        "a stride must be an int or a nested tuple of ints; found True of type bool",
        "layouts are static: use Python ints, and call the layout with traced coordinates",
    ),
    "a traced stride": (
        lambda: Layout((4, 8), (Traced(3, "lda"), 1)),
        "a stride must be an int or a nested tuple of ints; found lda of type Traced",
        "layouts are static: use Python ints, and call the layout with traced coordinates",
    ),
    "an empty mode": (
        lambda: Layout((4, 0)),
        "the entries of a shape must be 1 or more; found 0",
        "a mode with one element has size 1",
    ),
    "no modes": (
        lambda: Layout(()),
        "a shape must have at least one mode; found ()",
        "the layout of a single element is Layout(1)",
    ),
    "a stride for each mode but one": (
        lambda: Layout((4, 8), (8,)),
        "shape (4,8) and stride (8) have different nesting: in the shape (4,8) has 2 modes, in the stride (8) has 1 mode",
        "give each int of the shape one int in the stride",
    ),
    "a nested stride for a flat shape": (
        lambda: Layout((4, 8), (8, (1, 2))),
        "shape (4,8) and stride (8,(1,2)) have different nesting: in the shape 8 is an int, "
        "in the stride (1,2) has 2 modes",
        "give each int of the shape one int in the stride",
    ),
    "too many coordinates": (
        lambda: K_MAJOR(1, 2, 3),
        "found a coordinate of 3 entries for the shape (128,64), which has 2",
        "give one coordinate for each mode, or a single linear coordinate",
    ),
    "a coordinate outside": (
        lambda: byte_index(K_MAJOR, (99, 64), 2),
        "coordinate 64 is out of bounds for mode 1 of (128,64):(64,1): valid coordinates are 0 to 63",
        f"the shape is (128, 64), {FROM_0}",
    ),
    "a negative coordinate of a nested mode": (
        lambda: byte_index(Layout(((4, 8), 2)), ((0, -1), Traced(0)), 2),
        "coordinate -1 is out of bounds for mode 0.1 of ((4,8),2):((1,4),32): valid coordinates are 0 to 7",
        f"the shape is ((4, 8), 2), {FROM_0}",
    ),
    "a linear coordinate outside": (
        lambda: byte_index(SWIZZLED, 8192, 2),
        "coordinate 8192 is out of bounds for Sw<3,3,3> o 0 o (128,64):(64,1): valid coordinates are 0 to 8191",
        f"the shape is (128, 64), {FROM_0}",
    ),
    "a slice outside": (
        lambda: slice_(K_MAJOR, 128, None),
        "coordinate 128 is out of bounds for mode 0 of (128,64):(64,1): valid coordinates are 0 to 127",
        f"the shape is (128, 64), {FROM_0}",
    ),
    "more entries by mode than modes": (
        lambda: logical_divide(K_MAJOR, (4, 4, 4)),
        "3 entries, one for each mode, were given for (128,64):(64,1), which has 2 modes",
        None,
    ),
    "a mode past the end": (
        lambda: Layout((4, 8))[5],
        "there is no mode 5 of (4,8):(1,4)",
        "it has modes 0 to 1; use layout(i) for the offset of a coordinate",
    ),
    "a mode before the first": (
        lambda: SWIZZLED[-3],
        "there is no mode -3 of (128,64):(64,1)",
        "it has modes 0 to 1; use layout(i) for the offset of a coordinate",
    ),
    "a second mode of an int": (
        lambda: Layout(4)[1],
        "there is no mode 1 of 4:1",
        "it has only mode 0; use layout(i) for the offset of a coordinate",
    ),
    "a mode by a word": (
        lambda: Layout((4, 8))["a"],
        "a mode is selected by an int; found 'a' of type str",
        "use layout(i, j) for the offset of a coordinate",
    ),
    "a mode by nothing": (
        lambda: Layout((4, 8))[None],
        "a mode is selected by an int; found None of type NoneType",
        "use layout(i, j) for the offset of a coordinate",
    ),
    "a mode by a coordinate": (
        lambda: Layout((4, 8))[1, 2],
        "a mode is selected by an int; found (1, 2) of type tuple",
        "use layout(i, j) for the offset of a coordinate",
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
    "a swizzle of nothing": (
        lambda: parse("Sw<3,3,3> o"),
        "cannot read the layout 'Sw<3,3,3> o': at column 12 found the end, expected an int",
        LAYOUT_TEXT,
    ),
    # ---- algebra
    "a composition that is no layout": (
        lambda: composition(Layout((4, 6, 8), (2, 3, 5)), Layout(6, 3)),
        "(4,6,8):(2,3,5) o 6:3 is not a layout: mode 0 of the right layout, 6:3, selects the offsets 0, 6, 7, 8, 9, 15",
        "choose a stride and a size that divide the left layout's shape (4,6,8)",
    ),
    "its nested mode": (
        lambda: composition(Layout((10, 4), (4, 1)), Layout((2, (3, 12)), (20, (1, 3)))),
        "(10,4):(4,1) o (2,(3,12)):(20,(1,3)) is not a layout: mode 1.1 of the right layout, 12:3, selects the offsets "
        "0, 12, 24, 36, 9, 21, 33, 6, …",
        "choose a stride and a size that divide the left layout's shape (10,4)",
    ),
    "modes that carry into each other": (
        lambda: composition(Layout((4, 2), (1, 10)), Layout((2, 2), (3, 3))),
        "(4,2):(1,10) o (2,2):(3,3) is not a layout: mode 1 of the right layout carries into another mode: "
        "at (1,1) the left layout gives 12, but the composed modes add up to 6",
        "use modes on the right whose strides divide the left layout's shape",
    ),
    "a swizzle on the right": (
        lambda: composition(K_MAJOR, SWIZZLED),
        "(128,64):(64,1) o Sw<3,3,3> o 0 o (128,64):(64,1) has its swizzle on the right; a swizzle maps offsets, so it must be on the left",
        "swizzle the final offsets: composition(swizzle, composition(a, inner))",
    ),
    "two swizzles of different distance": (
        lambda: composition(Swizzle(1, 3, 3), Swizzle(1, 4, 2)),
        "Sw<1,3,3> o Sw<1,4,2> is not a single swizzle: the combined bits must be contiguous and have one shift",
        "apply them one after the other to the offset",
    ),
    "a complement of overlapping modes": (
        lambda: complement(Layout((4, 2), (1, 2))),
        "(4,2):(1,2) has no complement: the mode 2:2 starts inside the block of 4 elements that the modes below it cover",
        "give this mode a stride that is a multiple of 4",
    ),
    "a complement of a ragged gap": (
        lambda: complement(Layout((2, 2), (1, 5))),
        "(2,2):(1,5) has no complement: the mode 2:5 is not a multiple of the block of 2 "
        "elements that the modes below it cover",
        "give this mode a stride that is a multiple of 2",
    ),
    "a complement of a mode that runs backwards": (
        lambda: complement(Layout(4, -2), 24),
        "4:-2 has no complement: the mode 4:-2 has a negative stride",
        "reverse this mode: use 4:2 and start at its last element",
    ),
    "a complement up to nothing": (
        lambda: complement(Layout(4, 2), 0),
        "the cotarget of a complement must be 1 or more; found 0",
        "use an int of at least 1",
    ),
    "a complement up to less than nothing": (
        lambda: complement(Layout(4, 2), -5),
        "the cotarget of a complement must be 1 or more; found -5",
        "use an int of at least 1",
    ),
    "a complement in an empty shape": (
        lambda: complement(Layout(4, 2), (4, 0)),
        "the entries of a cotarget of a complement must be 1 or more; found 0",
        "a mode with one element has size 1",
    ),
    "a complement up to a word": (
        lambda: complement(Layout(4, 2), "24"),
        "the cotarget of a complement must be an int; found '24' of type str",
        STATIC,
    ),
    "a complement up to a fraction": (
        lambda: complement(Layout(4, 2), 1.5),
        "the cotarget of a complement must be an int; found 1.5 of type float",
        STATIC,
    ),
    "a left inverse of a mode that runs backwards": (
        lambda: left_inverse(Layout((4, 2), (-1, 4))),
        "(4,2):(-1,4) has no left inverse: the mode 4:-1 has a negative stride",
        "reverse this mode: use 4:1 and start at its last element",
    ),
    "a left inverse of overlapping modes": (
        lambda: left_inverse(Layout((4, 2), (1, 2))),
        "(4,2):(1,2) has no left inverse: the mode 2:2 overlaps the mode 4:1, or its stride is not a multiple of that mode's stride",
        None,
    ),
    "a swizzle that feeds itself": (
        lambda: Swizzle(3, 3, 2),
        "Swizzle(3, 3, 2) reads bits that it also changes: the absolute shift must be at least the number of bits, 3",
        "write Swizzle(3, 3, 3)",
    ),
    "offsets of a traced slice": (
        lambda: slice_(SWIZZLED, Traced(1), None).offsets(),
        "Sw<3,3,3> o traced o 64:1 starts at a traced offset, which is only known when the kernel runs",
        None,
    ),
    "recast to a width that does not divide": (
        lambda: recast(K_MAJOR, 16, 24),
        "16-bit elements do not recast to 24 bits: neither width divides the other",
        "recast through 8 bits: recast(recast(layout, 16, 8), 8, 24)",
    ),
    "upcast through a mode": (
        lambda: upcast(Layout((4, 3), (3, 1)), 2),
        "(4,3):(3,1) cannot be upcast by 2: mode 0, 4:3, splits the wider elements",
        "give the mode a stride that is a multiple of 2, or a size that fills whole elements",
    ),
    "upcast through a mode that runs backwards": (
        lambda: recast(Layout(4, -1), 16, 32),
        "4:-1 cannot be upcast by 2: mode 0, 4:-1, splits the wider elements",
        "give the mode a stride that is a multiple of 2, or a size that fills whole elements",
    ),
    "upcast of two modes that meet in one element": (
        lambda: recast(Layout(((2, 4), 2), ((1, 8), 1)), 16, 32),
        "((2,4),2):((1,8),1) cannot be upcast by 2: mode 0.0, 2:1, and mode 1, 2:1, step inside the same wider elements",
        "give all but one of these modes a stride that is a multiple of 2",
    ),
    "downcast of elements apart": (
        lambda: recast(Layout(4, 4), 32, 16),
        "4:4 has no mode of stride 1 to extend by the 2 parts of each element",
        "add a mode of size 1: (1,4):(1,4)",
    ),
    "downcast of elements backwards": (
        lambda: downcast(Layout((3, 4), (4, -1)), 4),
        "(3,4):(4,-1) has no mode of stride 1 to extend by the 4 parts of each element: mode 1 runs backwards",
        "add a mode of size 1: (1,(3,4)):(1,(4,-1))",
    ),
    "downcast of swizzled elements apart": (
        lambda: recast(composition(Swizzle(3, 3, 3), Layout(8, 64)), 32, 8),
        "8:64 has no mode of stride 1 to extend by the 4 parts of each element",
        "add a mode of size 1: (1,8):(1,64)",
    ),
    "upcast from the middle of an element": (
        lambda: upcast(ComposedLayout(Swizzle(1, 1, 1), 3, Layout(8)), 2),
        "Sw<1,1,1> o 3 o 8:1 does not start on a multiple of 2 elements",
        None,
    ),
    "upcast through a swizzle": (
        lambda: upcast(composition(Swizzle(1, 0, -1), Layout(8)), 2),
        "Sw<1,0,-1> permutes elements inside the wider elements of 2, and would split them",
        None,
    ),
    "downcast of a traced slice": (
        lambda: downcast(slice_(SWIZZLED, Traced(1), None), 2),
        "Sw<3,3,3> o traced o 64:1 starts at a traced offset: downcast before slicing",
        None,
    ),
    "a swizzle in elements of 12 bytes": (
        lambda: in_bytes(SWIZZLED, 12),
        "Sw<3,3,3> o 0 o (128,64):(64,1) swizzles bits of the offset, and multiplying by 12 does not shift these bits",
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
        "there is no MMA atom 'mma.sync.aligned.m16n8k16.row.col.f32.f16.e4m3.f32': A and B must have the "
        "same type; found f16 and e4m3",
        "convert one of them; only e4m3 and e5m2, or s8 and u8, may be mixed",
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
        "ldmatrix.x4 gives 32-bit parts of a row to different threads, which would split a 64-bit element",
        "use ld.shared",
    ),
    "a load of less than an element": (
        lambda: make_tiled_copy("ld.shared.2", 32, 1, bits=32),
        "ld.shared.2 moves 16 bits per thread, less than one 32-bit element",
        "use an instruction of at least 4 bytes per thread",
    ),
    # ---- tiled copies: the five conditions of ldmatrix
    "1, threads": (
        lambda: make_tiled_copy("ldmatrix.x4", (4, 4), (1, 8)),
        "ldmatrix.x4 is one instruction of 32 threads: found 16 threads in thr_layout (4,4):(1,4), "
        "needed a multiple of 32",
        "use whole warps of 32 threads, or copy with ld.shared",
    ),
    "2, values of B under one MMA atom": (
        lambda: make_tiled_copy_b("ldmatrix.x4", make_tiled_mma(F16)),
        "ldmatrix.x4 moves 8 values of 16 bits per thread: found 4 per thread in operand B (N, K) = (8,16) of "
        "tiled_mma(mma.m16n8k16.f32.f16, atoms (1,1,1):(1,1,1), tile (16,8,16)), needed a multiple of 8",
        "let each warp hold 2 MMA atoms in N: tile=(16, 16, 16) (more warps in N alone do not help), "
        "or use a narrower instruction",
    ),
    "2, values of B under two warps in N": (
        lambda: make_tiled_copy_b("ldmatrix.x4", make_tiled_mma(F16, (2, 2, 1))),
        "ldmatrix.x4 moves 8 values of 16 bits per thread: found 4 per thread in operand B (N, K) = (16,16) of "
        "tiled_mma(mma.m16n8k16.f32.f16, atoms (2,2,1):(1,2,4), tile (32,16,16)), needed a multiple of 8",
        "let each warp hold 2 MMA atoms in N: tile=(32, 32, 16) (more warps in N alone do not help), "
        "or use a narrower instruction",
    ),
    "2, values of A of a shallow MMA": (
        lambda: make_tiled_copy_a("ldmatrix.x4", make_tiled_mma("mma.m16n8k8.f32.f16", (1, 2, 1), (16, 32, 8))),
        "ldmatrix.x4 moves 8 values of 16 bits per thread: found 4 per thread in operand A (M, K) = (16,8) of "
        "tiled_mma(mma.m16n8k8.f32.f16, atoms (1,2,1):(1,1,2), tile (16,32,8)), needed a multiple of 8",
        "let each warp hold 2 MMA atoms in M: tile=(32, 32, 8) (more warps in M alone do not help), "
        "or use a narrower instruction",
    ),
    "2, values of C": (
        lambda: make_tiled_copy_c("stmatrix.x4", make_tiled_mma(F16), bits=16),
        "stmatrix.x4 moves 8 values of 16 bits per thread: found 4 per thread in operand C (M, N) = (16,8) of "
        "tiled_mma(mma.m16n8k16.f32.f16, atoms (1,1,1):(1,1,1), tile (16,8,16)), needed a multiple of 8",
        "let each warp hold 2 MMA atoms in N: tile=(16, 16, 16) (more warps in N alone do not help), "
        "or use a narrower instruction",
    ),
    "2, values of a block": (
        lambda: make_tiled_copy("cp.async.16", (32, 4), (1, 4)),
        "cp.async.16 moves 8 values of 16 bits per thread: found 4 per thread in val_layout (1,4):(1,1), "
        "needed a multiple of 8",
        "give each thread 8 values, or use a narrower instruction",
    ),
    "3, not contiguous: the other major": (
        lambda: make_tiled_copy_a("ldmatrix.x4", MMA).partition_s(M_MAJOR),
        "ldmatrix.x4 reads 8 contiguous values of 16 bits per thread: found offsets 0, 128, 256, 384, … in "
        "(128,64):(1,128), which is contiguous in M, needed 0 to 7",
        "the tile is M-major: use ldmatrix.x4.trans",
    ),
    "3, not contiguous: transposed for nothing": (
        lambda: make_tiled_copy_b("ldmatrix.x4.trans", MMA).partition_s(SWIZZLED),
        "ldmatrix.x4.trans reads 8 contiguous values of 16 bits per thread: found offsets 0, 64, 128, 192, … in "
        "Sw<3,3,3> o 0 o (128,64):(64,1), which is contiguous in K, needed 0 to 7",
        "the tile is K-major: use ldmatrix.x4",
    ),
    "3, contiguous nowhere": (
        lambda: X4.partition_s(Layout((128, 64), (128, 2))),
        "ldmatrix.x4 reads 8 contiguous values of 16 bits per thread: found offsets 0, 2, 4, 6, … in "
        "(128,64):(128,2), which is contiguous in no mode, needed 0 to 7",
        "store the tile with stride 1 in K for ldmatrix.x4, or in N for ldmatrix.x4.trans",
    ),
    "3, contiguous nowhere, transposed": (
        lambda: make_tiled_copy_b("ldmatrix.x4.trans", MMA).partition_s(Layout((128, 64), (2, 256))),
        "ldmatrix.x4.trans reads 8 contiguous values of 16 bits per thread: found offsets 0, 2, 4, 6, … in "
        "(128,64):(2,256), which is contiguous in no mode, needed 0 to 7",
        "store the tile with stride 1 in K for ldmatrix.x4, or in N for ldmatrix.x4.trans",
    ),
    "3, a fragment is no vector": (
        lambda: make_tiled_copy_a("ld.shared.16", MMA),
        "ld.shared.16 reads 8 contiguous elements of 16 bits, along M or K: found (M, K) = (0,0), (0,1), (8,0), (8,1), … for "
        f"the first thread of operand A of {MMA}",
        "move 4 bytes at a time, for example with ld.shared.4",
    ),
    "3, a fragment of B is no vector": (
        lambda: make_tiled_copy_b("ld.shared.16", MMA),
        "ld.shared.16 reads 8 contiguous elements of 16 bits, along N or K: found (N, K) = (0,0), (0,1), (0,8), (0,9), … for "
        f"the first thread of operand B of {MMA}",
        "move 4 bytes at a time, for example with ld.shared.4",
    ),
    "3, accumulators are no rows of matrices": (
        lambda: make_tiled_copy_c("ldmatrix.x4", MMA),
        "ldmatrix.x4 reads 4 contiguous elements of 32 bits, along M or N: found (M, N) = (0,0), (0,2), (0,4), (0,6) for the "
        f"first thread of operand C of {MMA}",
        "move 4 bytes at a time, for example with ld.shared.4",
    ),
    "3, accumulators are pairs": (
        lambda: make_tiled_copy_c("st.global.v4.b32", MMA),
        "st.global.16 writes 4 contiguous elements of 32 bits, along M or N: found (M, N) = (0,0), (0,1), (8,0), (8,1) for the "
        f"first thread of operand C of {MMA}",
        "move 8 bytes at a time, for example with st.global.8",
    ),
    "3, accumulators are pairs in any space": (
        lambda: make_tiled_copy_c("st.16", MMA),
        "st.16 writes 4 contiguous elements of 32 bits, along M or N: found (M, N) = (0,0), (0,1), (8,0), (8,1) for the "
        f"first thread of operand C of {MMA}",
        "move 8 bytes at a time, for example with st.8",
    ),
    "a copy past the registers": (
        lambda: make_tiled_copy_b("cp.async.16", MMA),
        f"cp.async.16 copies global to shared memory: it cannot access the registers that hold operand B of {MMA}",
        "copy the tile to shared memory with make_tiled_copy, and load it with ldmatrix.x4 or ld.shared",
    ),
    "A of wgmma that no thread holds": (
        lambda: make_tiled_copy_a("ldmatrix.x4", "wgmma.m64n64k16.f32.f16"),
        "operand A of tiled_mma(wgmma.m64n64k16.f32.f16, atoms (1,1,1):(1,1,1), tile (64,64,16)) "
        "is not in registers: the instruction reads it from shared memory",
        "load A into registers for wgmma.m64n64k16.f32.f16.rs, or leave it in shared memory",
    ),
    "B of wgmma": (
        lambda: make_tiled_copy_b("ldmatrix.x4", "wgmma.m64n64k16.f32.f16.rs"),
        "operand B of tiled_mma(wgmma.m64n64k16.f32.f16.rs, atoms (1,1,1):(1,1,1), tile (64,64,16)) "
        "is not in registers: the instruction reads it from shared memory",
        "leave B in shared memory",
    ),
    "3, a swizzle that cuts vectors": (
        lambda: X4.partition_s(composition(Swizzle(3, 2, 3), K_MAJOR)),
        "ldmatrix.x4 reads 8 contiguous values of 16 bits per thread: found blocks of 4 in "
        "Sw<3,2,3> o 0 o (128,64):(64,1), needed 8",
        "use Sw<3,3,3>, whose blocks are whole vectors",
    ),
    "3, the side that is written": (
        lambda: make_tiled_copy("cp.async.16", Layout((32, 4), (4, 1)), (1, 8)).partition_d(Layout((32, 32))),
        "cp.async.16 writes 8 contiguous values of 16 bits per thread: found offsets 0, 32, 64, 96, … in "
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
        "the atom is (16,8,16), and all warps together cover (32,16,16)",
    ),
    "a tile of two extents": (
        lambda: make_tiled_mma(F16, (2, 2, 1), (32, 32)),
        "the tile of a tiled MMA must be (M, N, K); found (32, 32)",
        "None means the smallest extent",
    ),
    "an empty tile": (
        lambda: make_tiled_mma(F16, tile=(16, 0, 16)),
        "the tile (16,0,16) of mma.m16n8k16.f32.f16 on (1,1,1):(1,1,1) warps: found 0 in N, needed a multiple of 8",
        "the atom is (16,8,16), and all warps together cover (16,8,16)",
    ),
    "warps with a gap": (
        lambda: make_tiled_mma(F16, Layout((2, 2, 1), (1, 4, 8))),
        "(2,2,1):(1,4,8) does not number 4 warps from 0 to 3: its cosize is 6",
        "the compact layout of this shape is (2,2,1):(1,2,4)",
    ),
    "warps in four directions": (
        lambda: make_tiled_mma(F16, (2, 2, 1, 2)),
        "the warps of a tiled MMA need a layout of M, N and K; found (2,2,1,2):(1,2,4,4), of 4 modes",
        "give one number for each of M, N and K, such as (2, 2, 1)",
    ),
    "threads that share a place": (
        lambda: make_tiled_copy("cp.async.16", Layout((32, 4), (1, 0)), (1, 8)),
        "(32,4):(1,0) does not number 128 threads from 0 to 127: its cosize is 32",
        "the compact layout of this shape is (32,4):(1,32)",
    ),
    "a tile that does not fill the layout": (
        lambda: X4.partition_s(Layout((100, 64), (64, 1))),
        "this copy by ldmatrix.x4 has tiles of (32,16), which do not divide (100,64)",
        "choose a tile that divides the layout, and handle the remainder in the kernel",
    ),
    "an operand that the tile does not fill": (
        lambda: MMA.partition_c(Layout((64, 40))),
        "operand C of tiled_mma(mma.m16n8k16.f32.f16, atoms (2,2,1):(1,2,4), tile (32,32,16)) has tiles of "
        "(32,32), which do not divide (64,40)",
        "choose a tile that divides the layout, and handle the remainder in the kernel",
    ),
    "a thread outside": (
        lambda: X4.get_slice(128).partition_s(SWIZZLED),
        "coordinate 128 is out of bounds for mode 0 of ((8,2,2,2,2),(8,1),4,4):((64,8,1024,0,512),(1,0),2048,16): "
        "valid coordinates are 0 to 127",
        f"the shape is ((8, 2, 2, 2, 2), (8, 1), 4, 4), {FROM_0}",
    ),
    "no layout at all": (
        lambda: X4.partition_s((128, 64)),
        "expected a layout, or a tensor with a layout; found (128, 64) of type tuple",
        TENSOR,
    ),
    "a fragment of a copy without an MMA": (
        lambda: make_tiled_copy("ld.shared.4", 32, 2).retile(Layout(4)),
        "tiled_copy(ld.shared.4, (32,2):(2,1) on (64)) was not made for a tiled MMA, so it has no fragment to regroup",
        "create it with make_tiled_copy_a, _b or _c",
    ),
    # ---- values of the wrong kind
    "a word for a coordinate": (
        lambda: Layout((4, 8))("a"),
        "a coordinate must be an int or a traced value; found 'a' of type str",
        OPERATORS,
    ),
    "a float for a coordinate": (
        lambda: K_MAJOR(1.0, 2),
        "a coordinate must be an int or a traced value; found 1.0 of type float",
        OPERATORS,
    ),
    "an open mode in a call": (
        lambda: K_MAJOR(None, 2),
        "a coordinate must be an int or a traced value; found None of type NoneType",
        "use ints, or slice_(layout, …) to keep modes open",
    ),
    "a float for an offset": (
        lambda: Swizzle(3, 3, 3)(1.5),
        "an offset must be an int or a traced value; found 1.5 of type float",
        OPERATORS,
    ),
    "a word for an index": (
        lambda: idx2crd("x", (4, 8)),
        "an index must be an int or a traced value; found 'x' of type str",
        OPERATORS,
    ),
    "a word for a thread": (
        lambda: X4.get_slice("a"),
        "a thread must be an int or a traced value; found 'a' of type str",
        OPERATORS,
    ),
    "a float for a thread of an MMA": (
        lambda: MMA.get_slice(1.0),
        "a thread must be an int or a traced value; found 1.0 of type float",
        OPERATORS,
    ),
    "nothing to partition": (
        lambda: MMA.get_slice(0).partition_c(None),
        "expected a layout, or a tensor with a layout; found None of type NoneType",
        TENSOR,
    ),
    "an operand of another name": (
        lambda: MMA.partition("d", K_MAJOR),
        "there is no operand 'd'",
        OPERANDS,
    ),
    "a tile of an operand of another name": (lambda: MMA.tile_of("x"), "there is no operand 'x'", OPERANDS),
    "the width of an operand of another name": (lambda: MMA.bits("x"), "there is no operand 'x'", OPERANDS),
    "the threads of an operand of another name": (lambda: MMA.layout_tv("x"), "there is no operand 'x'", OPERANDS),
    "an operand of no name": (lambda: MMA.tile_of(["a"]), "there is no operand ['a']", OPERANDS),
    "a swizzle of no int": (
        lambda: Swizzle((1, 2), 3, 3),
        "the number of bits of a swizzle must be an int; found (1, 2) of type tuple",
        STATIC,
    ),
    "a swizzle of a base below 0": (
        lambda: Swizzle(3, -1, 3),
        "the base of a swizzle must be 0 or more; found -1",
        "use an int of at least 0",
    ),
    "a swizzle of a shift that is none": (
        lambda: Swizzle(3, 3, 3.0),
        "the shift of a swizzle must be an int; found 3.0 of type float",
        STATIC,
    ),
    "a swizzle that feeds itself from below": (
        lambda: Swizzle(3, 3, -2),
        "Swizzle(3, 3, -2) reads bits that it also changes: the absolute shift must be at least the number of bits, 3",
        "write Swizzle(3, 3, -3)",
    ),
    "an upcast by nothing": (
        lambda: upcast(Layout((4, 8)), 0),
        "the factor of an upcast must be 1 or more; found 0",
        "use an int of at least 1",
    ),
    "a downcast by a half": (
        lambda: downcast(Layout((4, 8)), 1.5),
        "the factor of a downcast must be an int; found 1.5 of type float",
        STATIC,
    ),
    "a recast to nothing": (
        lambda: recast(Layout(8), 16, 0),
        "the width of an element in bits must be 1 or more; found 0",
        "use an int of at least 1",
    ),
    "elements of no bytes": (
        lambda: in_bytes(Layout(8), 0),
        "the size of an element in bytes must be 1 or more; found 0",
        "use an int of at least 1",
    ),
    "a copy of elements of no bits": (
        lambda: make_tiled_copy("cp.async.16", (32, 8), (1, 8), bits=0),
        "the width of an element in bits must be 1 or more; found 0",
        "use an int of at least 1",
    ),
    "a copy of an operand of no bits": (
        lambda: make_tiled_copy_a("ldmatrix.x4", MMA, bits=0),
        "the width of an element in bits must be 1 or more; found 0",
        "use an int of at least 1",
    ),
    "a copy of elements of 12 bits": (
        lambda: make_tiled_copy("cp.async.16", (32, 8), (1, 8), bits=12),
        "no element type has 12 bits",
        "the widths are 1, 2, 4, 8, 16, 32, 64, 128",
    ),
    "bytes of half a byte": (
        lambda: make_tiled_copy("ld.shared.4", 32, 8, bits=4).get_slice(0).partition_s(Layout(256), bytes=True),
        "elements of 4 bits do not start at whole bytes",
        "create the copy for 8-bit elements of recast(layout, bits, 8)",
    ),
    "a copy by a number": (
        lambda: make_tiled_copy(7, (32, 8), (1, 8)),
        "a copy atom is created from the name of an instruction; found 7 of type int",
        COPY_NAMES,
    ),
    "a copy by a product": (
        lambda: make_tiled_copy(mma_atom(F16), (32, 8), (1, 8)),
        "a copy atom is created from the name of an instruction; found mma.m16n8k16.f32.f16",
        COPY_NAMES,
    ),
    "an operand of a number": (
        lambda: make_tiled_copy_b("ldmatrix.x4", 7),
        "an MMA atom is created from the name of an instruction; found 7 of type int",
        "write mma.m16n8k16.f32.f16 or wgmma.m64n128k16.f32.f16",
    ),
    "a tile of letters": (
        lambda: make_tiled_mma(F16, (2, 2, 1), "abc"),
        "the tile of a tiled MMA must be (M, N, K); found 'abc' of type str",
        "None means the smallest extent",
    ),
    "a tile of floats": (
        lambda: make_tiled_mma(F16, (2, 2, 1), (32, 32.0, 16)),
        "N of the tile of a tiled MMA must be an int; found 32.0 of type float",
        STATIC,
    ),
    "a drawing of a number": (lambda: to_svg(3), f"{DRAWN} 3 of type int", "write Layout(SHAPE, STRIDE)"),
    "a drawing of text": (
        lambda: to_text("x"),
        f"{DRAWN} 'x' of type str",
        "parse text first, as in parse('(4,8):(8,1)')",
    ),
    "a layout read from a number": (
        lambda: parse_layout(3),
        "a layout is parsed from a string; found 3 of type int",
        LAYOUT_TEXT,
    ),
    "anything read from nothing": (
        lambda: parse(None),
        "a layout is parsed from a string; found None of type NoneType",
        f"{LAYOUT_TEXT}; or {INSTRUCTIONS}",
    ),
    "a word that means nothing": (
        lambda: parse("nonsense"),
        "'nonsense' is not a layout, a swizzle or an instruction",
        f"{LAYOUT_TEXT}; or {INSTRUCTIONS}",
    ),
    "an atom of nothing": (
        lambda: atom(None),
        "an atom is created from the name of an instruction; found None of type NoneType",
        f"write {INSTRUCTIONS}",
    ),
    "an atom that there is not": (lambda: atom("nonsense"), "there is no atom 'nonsense'", f"write {INSTRUCTIONS}"),
    "a swizzled layout at no offset": (
        lambda: ComposedLayout(Swizzle(3, 3, 3), 0.5, K_MAJOR),
        "the offset of a composed layout cannot be 0.5 of type float",
        "write ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))",
    ),
    "a layout that is none": (
        lambda: coalesce("x"),
        "expected a layout; found 'x' of type str",
        "write Layout(SHAPE, STRIDE)",
    ),
    "a complement of a swizzled layout": (
        lambda: complement(SWIZZLED),
        "this operation takes a layout without a swizzle; found Sw<3,3,3> o 0 o (128,64):(64,1)",
        "use its inner layout: layout.layout",
    ),
    "a shape that blocks do not fill": (
        lambda: tile_to_shape(Layout((8, 8)), (20, 20)),
        "blocks of (8,8) do not divide (20,20)",
        "fill (24,24), and handle elements past the end",
    ),
    "a shape of fewer modes than the block": (
        lambda: tile_to_shape(Layout((8, 8)), 20),
        "blocks of (8,8) do not fill 1 mode",
        "give a shape of 2 modes",
    ),
    "an order of fewer modes": (
        lambda: tile_to_shape(Layout((2, 2)), (4, 6), (1,)),
        "(1,) is not an order of 2 modes",
        "give a different rank to each mode, such as (0, 1)",
    ),
    "an order that leaves two modes alike": (
        lambda: tile_to_shape(Layout((2, 2)), (4, 6), order=(0, 0)),
        "(0, 0) is not an order of 2 modes",
        "give a different rank to each mode, such as (0, 1)",
    ),
    "an order of letters": (
        lambda: tile_to_shape(SWIZZLED, (256, 64, 2), order="abc"),
        "'abc' is not an order of 3 modes",
        "give a different rank to each mode, such as (0, 1, 2)",
    ),
    # ---- products that PTX has not
    "an mma of another major": (
        lambda: make_tiled_mma("mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32"),
        "there is no MMA atom 'mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32': A is row-major and B is "
        "column-major, .row.col; found .col.col",
        TURNED,
    ),
    "an mma of other majors and two types": (
        lambda: make_tiled_mma("mma.sync.aligned.m16n8k16.col.row.f32.bf16.f16.f32"),
        "there is no MMA atom 'mma.sync.aligned.m16n8k16.col.row.f32.bf16.f16.f32': A is row-major and B is "
        "column-major, .row.col; found .col.row",
        TURNED,
    ),
    "an mma of two types": (
        lambda: mma_atom("mma.m16n8k16.f32.bf16.f16"),
        "there is no MMA atom 'mma.m16n8k16.f32.bf16.f16': A and B must have the same type; found bf16 and f16",
        TWO_TYPES,
    ),
    "a wgmma of two types": (
        lambda: mma_atom("wgmma.m64n64k16.f32.f16.bf16"),
        "there is no MMA atom 'wgmma.m64n64k16.f32.f16.bf16': A and B must have the same type; found f16 and bf16",
        TWO_TYPES,
    ),
    "a wgmma with majors": (
        lambda: mma_atom("wgmma.m64n64k16.row.col.f32.f16"),
        "there is no MMA atom 'wgmma.m64n64k16.row.col.f32.f16': a wgmma name has no layout qualifiers, and this one has .row.col",
        "leave out .row.col",
    ),
    "a sparse mma": (
        lambda: mma_atom("mma.sp.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32"),
        "there is no MMA atom 'mma.sp.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32'",
        "write mma.SHAPE.ACCUMULATOR.INPUT; m16n8k4: f32.tf32, f64.f64",
    ),
    "a product by a copy": (
        lambda: make_tiled_mma("ldmatrix.x4"),
        "there is no MMA atom 'ldmatrix.x4'",
        "write mma.SHAPE.ACCUMULATOR.INPUT; this is a copy instruction, not a matrix product",
    ),
    "2, values between two multiples": (
        lambda: make_tiled_copy("ldmatrix.x4", (32, 1), (1, 12)),
        "ldmatrix.x4 moves 8 values of 16 bits per thread: found 12 per thread in val_layout (1,12):(1,1), "
        "needed a multiple of 8",
        "give each thread 8 or 16 values, or use a narrower instruction",
    ),
    # ---- banks
    "banks of a word": (
        lambda: bank_wavefronts("ldmatrix.x4", "x"),
        "expected a layout, or a tensor with a layout; found 'x' of type str",
        TENSOR,
    ),
    "banks of elements of no bits": (
        lambda: bank_wavefronts("ldmatrix.x4", K_MAJOR, 0),
        "the width of an element in bits must be 1 or more; found 0",
        "use an int of at least 1",
    ),
    "banks of global memory": (
        lambda: bank_wavefronts("ld.global.16", K_MAJOR),
        "ld.global.16 does not access shared memory, so it has no bank conflicts",
        "use ld.shared or st.shared",
    ),
    "banks of a tiled copy from global memory": (
        lambda: bank_wavefronts(make_tiled_copy("ld.global.16", (32, 8), (1, 8)), K_MAJOR),
        "ld.global.16 does not access shared memory, so it has no bank conflicts",
        "use ld.shared or st.shared",
    ),
    "banks of fewer matrices than an instruction reads": (
        lambda: bank_wavefronts("ldmatrix.x4", Layout((8, 8), (8, 1))),
        "one ldmatrix.x4 of a warp accesses (8,32) elements here, which do not divide (8,8)",
        "use a layout of (8,32), or an instruction of fewer than 4 matrices",
    ),
    "banks of half a matrix": (
        lambda: bank_wavefronts("ldmatrix.x1", Layout((12, 16), (1, 16))),
        "one ldmatrix.x1 of a warp accesses (8,8) elements here, which do not divide (12,16)",
        "use a layout of (16,16)",
    ),
    "banks of rows that lanes do not fill": (
        lambda: bank_wavefronts("ld.shared.16", Layout((12, 32), (32, 1))),
        "one ld.shared.16 of a warp accesses (8,32) elements here, which do not divide (12,32)",
        "use a layout of (16,32)",
    ),
    "banks of one mode": (
        lambda: bank_wavefronts("ld.shared.4", Layout(64)),
        "the wavefronts of one ld.shared.4 need a layout of two modes; 64:1 has 1",
        "use a layout of rows and columns",
    ),
    "banks of three modes": (
        lambda: bank_wavefronts("ldmatrix.x4", Layout((64, 64, 3))),
        "the wavefronts of one ldmatrix.x4 need a layout of two modes; (64,64,3):(1,64,4096) has 3",
        "leave two modes open: slice_(layout, None, None, 0)",
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


def test_a_layout_is_iterated_over_and_unpacked():
    rows, columns = K_MAJOR
    assert [rows, columns] == list(K_MAJOR) == [K_MAJOR[0], K_MAJOR[-1]] == [Layout(128, 64), Layout(64, 1)]
    assert list(reversed(K_MAJOR)) == [columns, rows] and len(K_MAJOR) == 2
    assert K_MAJOR[1:] == Layout((64,), (1,)) and [*SWIZZLED] == [SWIZZLED[0], SWIZZLED[1]]
