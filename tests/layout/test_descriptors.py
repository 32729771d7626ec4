"""Descriptors of wgmma: what they say of a layout, and that this is where the layout's elements lie."""

from types import SimpleNamespace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.errors import LayoutError
from ptxdsl.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    in_bytes,
    make_tiled_mma,
    parse,
    shared_operand,
    slice_,
    tile_layout,
    to_text,
)
from ptxdsl.layout.descriptors import MODES, Fields, decode, element_address, encode, usual_byte
from ptxdsl.layout.mma_shapes import BITS
from tests.tracing import source_kernel

F16, TF32, S8 = "wgmma.m64n64k16.f32.f16", "wgmma.m64n64k8.f32.tf32", "wgmma.m64n64k32.s32.s8"
ADDRESS = 0x5000  # a multiple of 1024

LAYOUTS = [
    (atom, span, transposed)
    for atom in (F16, "wgmma.m64n8k16.f32.bf16", "wgmma.m64n256k16.f32.f16", TF32, S8, "wgmma.m64n32k32.f32.e4m3")
    for span in MODES
    for transposed in ((False, True) if BITS[atom.split(".")[-1]] == 16 else (False,))
]


@pytest.mark.parametrize("operand", "ab")
@pytest.mark.parametrize("atom, span, transposed", LAYOUTS)
def test_a_descriptor_says_where_the_elements_of_each_part_lie(atom, span, transposed, operand, rng):
    """The law: descriptor(part) decoded gives the byte that the layout gives, for all parts and elements."""
    bits = BITS[atom.split(".")[-1]]
    rows, depth = (256, 2048 // bits)
    layout = tile_layout(rows, depth, bits, span, transposed)
    shared = shared_operand(atom, operand, layout)
    assert (shared.transposed, shared.fields.swizzle_bytes) == (transposed, span)
    bytes_of = in_bytes(layout, bits // 8)
    height, width = shared.row_starts.size, shared.k_starts.size
    part_rows, part_depth = rows // height, depth // width
    for _ in range(200):
        row, k = int(rng.integers(rows)), int(rng.integers(depth))
        fields = decode(shared.descriptor(ADDRESS, row // part_rows, k // part_depth))
        address = element_address(fields, row % part_rows, k % part_depth, bits, transposed)
        assert address == ADDRESS + bytes_of(row, k)


def test_the_usual_tile_has_the_usual_numbers():
    """128-byte swizzle, K-major: 1024 bytes from 8 rows to 8 rows, +2 for 16 elements of K, +512 for 64 rows."""
    shared = shared_operand(
        "wgmma.m64n256k16.f32.bf16", "a", ComposedLayout(Swizzle(3, 3, 3), 0, Layout((128, 64), (64, 1)))
    )
    assert shared.descriptor(0) == 0x4000004000010000
    assert shared.descriptor(ADDRESS, 1, 3) - shared.descriptor(ADDRESS) == 512 + 3 * 2
    assert shared.alignment_bytes == 1024


def test_an_mn_major_tile_steps_by_atoms():
    """64 elements of N by 8 of K an atom: 1024 bytes to the next 8 k, all of K to the next 64 of N."""
    shared = shared_operand("wgmma.m64n256k16.f32.bf16", "b", tile_layout(256, 64, 16, transposed=True))
    assert shared.transposed
    assert (shared.fields.stride_bytes, shared.fields.leading_bytes) == (1024, 64 * 128)
    assert shared.descriptor(0, 0, 1) - shared.descriptor(0) == 2048 // 16


@pytest.mark.parametrize("span", MODES)
def test_encode_undoes_decode(span, rng):
    for _ in range(50):
        start, leading, stride = (int(n) * 16 for n in rng.integers(1 << 14, size=3))
        fields = Fields(start, leading, stride, span, int(rng.integers(8)))
        assert decode(encode(fields)) == fields


def test_arrays_of_addresses_make_arrays_of_descriptors():
    shared = shared_operand(F16, "b", tile_layout(64, 64, 16))
    addresses = np.arange(4, dtype=np.uint64) * np.uint64(8192)
    assert shared.descriptor(addresses, 0, 2).tolist() == [shared.descriptor(int(a), 0, 2) for a in addresses]


def test_a_stage_of_a_ring_is_an_address():
    shared = shared_operand(F16, "a", tile_layout(64, 64, 16))
    assert shared.advanced(shared.descriptor(0), 0, 1) == shared.descriptor(0, 0, 1)


def test_a_part_past_the_addresses_of_shared_memory_is_refused():
    shared = shared_operand(F16, "a", tile_layout(128, 64, 16))
    with pytest.raises(LayoutError) as refused:
        shared.advanced(shared.descriptor(0x3FC00), 1)
    assert refused.value.message == "the part starts at 0x41c00; a descriptor holds addresses below 0x40000"
    assert refused.value.help == "advance the descriptor of the tile's first part, whose address is in shared memory"


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_the_usual_bytes_are_those_of_the_usual_tile(bits):
    tile = in_bytes(tile_layout(16, 256, bits), bits // 8)
    assert all(usual_byte(row, k, 16, bits) == tile(row, k) for row in range(16) for k in range(256))


def test_of_a_tiled_mma_the_atom_counts():
    mma = make_tiled_mma(F16, (2, 1, 1))
    tile = tile_layout(128, 64, 16)
    assert shared_operand(mma, "a", tile) == shared_operand(F16, "a", tile)


def test_a_descriptor_is_drawn():
    shared = shared_operand("wgmma.m64n8k16.f32.bf16", "b", tile_layout(8, 64, 16))
    assert to_text(shared, color=False) == (
        "B of wgmma.m64n8k16.f32.bf16: K-major, 128-byte swizzle, leading 16 bytes, stride 16 bytes, descriptor "
        "0x4000000100010000 | address / 16\n\n"
        "byte of each chunk, by row; starts of the parts of N: 1:0, of K: 4:2\n"
        "   chunk 0 chunk 1\n 0       0      16\n 1     144     128\n 2     288     304\n 3     432     416\n"
        " 4     576     592\n 5     720     704\n 6     864     880\n 7    1008     992\n"
    )


PLAIN = Layout((64, 64), (64, 1))


@pytest.mark.parametrize("atom, layout, message, help", [
    (
        F16, PLAIN,
        "wgmma reads operand A of wgmma.m64n64k16.f32.f16 as swizzle atoms of 8 rows of 16 bytes along K or M, at one "
        "stride in each direction, with no swizzle: (64,64):(64,1) does not have these atoms in each (64,16)",
        "use this layout instead: Sw<3,3,3> o 0 o (64,64):(64,1)",
    ),
    (
        F16, Layout((64, 64), (1, 64)),
        "wgmma reads operand A of wgmma.m64n64k16.f32.f16 as swizzle atoms of 8 rows of 16 bytes along K or M, at one "
        "stride in each direction, with no swizzle: (64,64):(1,64) does not have these atoms in each (64,16)",
        "use this layout instead: Sw<3,3,3> o 0 o (64,64):(1,64)",
    ),
    (
        F16, ComposedLayout(Swizzle(3, 4, 3), 0, PLAIN),
        "wgmma swizzles 16-byte chunks by the index of their 128-byte line: found Sw<3,5,3> on the bytes of "
        "Sw<3,4,3> o 0 o (64,64):(64,1), needed one of Sw<3,4,3>, Sw<2,4,3>, Sw<1,4,3>",
        "use this layout instead: Sw<3,3,3> o 0 o (64,64):(64,1)",
    ),
    (
        F16, ComposedLayout(Swizzle(2, 3, 3), 0, PLAIN),
        "wgmma reads operand A of wgmma.m64n64k16.f32.f16 as swizzle atoms of 8 rows of 64 bytes along K or M, at one "
        "stride in each direction, with the 64-byte swizzle: Sw<2,3,3> o 0 o (64,64):(64,1) does not have these atoms in each (64,16)",
        "use this layout instead: Sw<2,3,3> o 0 o (64,(32,2)):(32,(1,2048))",
    ),
    (
        TF32, tile_layout(64, 64, 16, transposed=True),
        "wgmma swizzles 16-byte chunks by the index of their 128-byte line: found Sw<3,5,3> on the bytes of "
        "Sw<3,3,3> o 0 o (64,64):(1,64), needed one of Sw<3,4,3>, Sw<2,4,3>, Sw<1,4,3>",
        "use this layout instead: Sw<3,2,3> o 0 o (64,(32,2)):(32,(1,2048))",
    ),
    (
        F16, ComposedLayout(Swizzle(3, 3, 3), 64, PLAIN),
        "Sw<3,3,3> o 64 o (64,64):(64,1) starts 128 bytes after the start of its swizzle pattern",
        "start it at a multiple of 1024 bytes",
    ),
    (
        F16, Layout((64, 24), (24, 1)),
        "operand A of wgmma.m64n64k16.f32.f16 has tiles of (64,16), which do not divide (64,24)",
        "choose a tile that divides the layout, and handle the remainder in the kernel",
    ),
    (
        F16, Layout((64, 16, 2)),
        "operand A of wgmma.m64n64k16.f32.f16 needs a tile of two modes; found (64,16,2):(1,64,1024), of 3",
        "use a tile of (M, K)",
    ),
    (
        F16 + ".rs", PLAIN,
        "wgmma.m64n64k16.f32.f16.rs takes operand A from registers, so it has no descriptor",
        "leave out .rs: wgmma.m64n64k16.f32.f16",
    ),
    (
        "mma.m16n8k16.f32.f16", PLAIN,
        "mma.m16n8k16.f32.f16 takes operand A from registers, so it has no descriptor",
        "only wgmma and tcgen05 use descriptors",
    ),
])  # fmt: skip
def test_the_refusal_says_which_layout_would_do(atom, layout, message, help):
    with pytest.raises(LayoutError) as refusal:
        shared_operand(atom, "a", layout)
    assert (refusal.value.message, refusal.value.help) == (message, help)


@pytest.mark.parametrize("atom, layout", [(F16, PLAIN), (F16, Layout((64, 64), (1, 64))), (TF32, PLAIN), (S8, PLAIN)])
def test_the_layout_that_would_do_does(atom, layout):
    with pytest.raises(LayoutError) as refusal:
        shared_operand(atom, "a", layout)
    from_help = parse(refusal.value.help.removeprefix("use this layout instead: "))
    assert shared_operand(atom, "a", from_help).fields.swizzle_bytes


@pytest.mark.parametrize("array, message, help", [
    (
        {"alignment": 16},
        "wgmma reads this layout at multiples of 1024 bytes, where its swizzle pattern starts; `tile` is aligned to 16",
        "align it: pd.shared(TYPE, layout, align=1024)",
    ),
    (
        {"element": SimpleNamespace(bits=32)},
        "operand A of wgmma.m64n64k16.f32.f16 has elements of 16 bits; the elements of `tile` have 32",
        "use an instruction of this type, or convert the elements",
    ),
])  # fmt: skip
def test_arrays_that_no_descriptor_can_be_of(array, message, help):
    tile = SimpleNamespace(name="tile", layout=tile_layout(64, 64, 16), **array)
    with pytest.raises(LayoutError) as refusal:
        shared_operand(F16, "a", tile)
    assert (refusal.value.message, refusal.value.help) == (message, help)


def test_an_array_of_a_kernel_knows_its_alignment():
    body = (
        "tile = pd.shared(f16, tile_layout(64, 64, 16)LINE)\n"
        'd = shared_operand("wgmma.m64n64k16.f32.f16", "b", tile).descriptor(tile.address().value.to(u64))\n'
        "x[0] = d\n"
    )
    names = {"tile_layout": tile_layout, "shared_operand": shared_operand}
    text = source_kernel(body.replace("LINE", ", align=1024"), "x: ptr[u64]", **names).ptx()
    assert f"{0x4000004000010000}" in text
    with pytest.raises(LayoutError) as refusal:
        source_kernel(body.replace("LINE", ""), "x: ptr[u64]", **names).ptx()
    assert refusal.value.message.endswith("`tile` is aligned to 16")


def test_a_traced_start_is_refused():
    part = slice_(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((2, 64, 64), (4096, 64, 1))), np.arange(2), None, None)
    with pytest.raises(LayoutError) as refusal:
        shared_operand(F16, "a", part)
    assert refusal.value.help == (
        "derive the descriptor of the whole tile, and select a part with descriptor(address, row_part, k_step)"
    )


@pytest.mark.parametrize("arguments, message", [
    ((64, 64, 16, 96), "there is no swizzle of 96 bytes"),
    ((64, 64, 8, 128, True), "wgmma reads elements of 8 bits K-major only"),
    ((64, 40, 16), "(64, 40) elements of 16 bits are not a whole number of swizzle atoms of 8 rows of 128 bytes"),
])  # fmt: skip
def test_tiles_that_no_descriptor_says(arguments, message):
    with pytest.raises(LayoutError) as refusal:
        tile_layout(*arguments)
    assert refusal.value.message == message


@pytest.mark.parametrize("arguments, help", [
    ((64, 40, 16), "make k a multiple of 64, or use a narrower swizzle"),
    ((64, 60, 16), "make k a multiple of 64"),
    ((60, 64, 16), "make rows a multiple of 8"),
    ((60, 40, 16), "make k a multiple of 64 and rows a multiple of 8"),
    ((40, 64, 16, 128, True), "make rows a multiple of 64, or use a narrower swizzle"),
])  # fmt: skip
def test_what_makes_a_tile_whole(arguments, help):
    with pytest.raises(LayoutError) as refusal:
        tile_layout(*arguments)
    assert refusal.value.help == help


def test_an_operand_that_there_is_not():
    with pytest.raises(LayoutError) as refusal:
        shared_operand(F16, "c", PLAIN)
    assert refusal.value.message == "there is no operand 'c' in shared memory"


def test_an_address_of_32_bits_is_refused():
    tile = tile_layout(64, 64, 16)

    @pd.kernel(arch="sm_90a", reqntid=128)
    def described(out: pd.ptr[pd.u64]):
        memory = pd.shared(pd.f16, tile, align=1024)
        out[0] = shared_operand("wgmma.m64n64k16.f32.f16", "a", tile).descriptor(memory.address().value)

    with pytest.raises(LayoutError) as refused:
        described.ptx()
    assert refused.value.message == "a descriptor needs a 64-bit address; found an address of 32 bits"
    assert refused.value.help == "convert the address first: `tile.address().value.to(u64)`"


@pytest.mark.parametrize(
    "parts, message",
    [
        ((1, 0), "`row_part` is 1; the tile has 1 part along M\n  help: pass row_part=0"),
        ((0, 4), "`k_step` is 4; the tile has 4 parts along K\n  help: pass 0 to 3, or make the tile larger"),
    ],
)
def test_a_part_outside_of_the_tile_is_refused(parts, message):
    operand = shared_operand("wgmma.m64n64k16.f32.bf16", "a", tile_layout(64, 64, 16))
    with pytest.raises(pd.LayoutError) as refused:
        operand.descriptor(0, *parts)
    lines = str(refused.value).splitlines()
    assert f"{lines[0]}\n{lines[-1]}" == message


PRODUCT = """
from ptxdsl.layout import shared_operand, tile_layout
layout = tile_layout(64, 16, 16, 32)
a, b = (shared_operand("wgmma.m64n64k16.f32.bf16", o, layout) for o in "ab")
{tile}
s = [pd.var(f32, 0.0) for _ in range(32)]
address = t.address().value.to(u64)
of_a = {descriptor}
of_b = b.descriptor(address)
pd.ptx.wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16(of_a, of_b, 0, 1, 1, 0, 0, out=s)
y[pd.tid.x] = s[0]
""".strip()
LIKE = "t = pd.shared(bf16, layout, align=1024)"
BY_LAYOUT = "make descriptor and array from one layout: `shared_operand(mma, operand, array)`"
UNIT = (
    "`a_desc` holds the address of `t` in bytes; a descriptor counts 16 bytes",
    "shift it, `(address & 0x3FFFF) >> 4`, or let shared_operand(…).descriptor(address) make it",
)
MISUSED = {
    "an array without the swizzle": (
        "t = pd.shared(bf16, (64, 16), align=1024)", "a.descriptor(address)",
        "`a_desc` describes a tile with a swizzle of 32 bytes and a stride of 256 bytes, but the array `t` has layout (64,16):(16,1)",
        BY_LAYOUT,
    ),
    "an array with another swizzle": (
        "t = pd.shared(bf16, tile_layout(64, 64, 16), align=1024)", "a.descriptor(address)",
        "`a_desc` describes a tile with a swizzle of 32 bytes and a stride of 256 bytes, but the array `t` has layout "
        "Sw<3,3,3> o 0 o (64,64):(64,1)", BY_LAYOUT,
    ),
    "an address in bytes": (LIKE, "address | a.constant", *UNIT),
    "an address in bytes, uniform": (
        LIKE, "pd.ptx.shfl.sync.idx.b32(t.address().value, 0, 31, 0xFFFFFFFF).to(u64) + a.constant", *UNIT,
    ),
}  # fmt: skip


def product_of(tile, descriptor):
    body = PRODUCT.format(tile=tile, descriptor=descriptor)
    return source_kernel(body, "y: ptr[f32]", '(arch="sm_90a", reqntid=128)')


@pytest.mark.parametrize("case", MISUSED)
def test_a_descriptor_that_does_not_fit_its_array_is_refused_while_tracing(case):
    tile, descriptor, message, help = MISUSED[case]
    with pytest.raises(pd.TraceError) as refused:
        product_of(tile, descriptor).ptx()
    assert (refused.value.message, refused.value.help) == (message, help)
    assert refused.value.at.text.startswith("    pd.ptx.wgmma.mma_async")


FITTING = {
    "of the array": (LIKE, "a.descriptor(address)"),
    "written by hand": (LIKE, "((address & 0x3FFFF) >> 4) | a.constant"),
    "of bytes": ("t = pd.shared(b8, 4096, align=1024)", "a.descriptor(address)"),
    "of the second of two arrays": (f"pd.shared(bf16, (64, 16), align=1024)\n{LIKE}", "a.descriptor(address)"),
    "of stages": (
        "from ptxdsl.layout import swizzle\nt = pd.shared(bf16, swizzle.stacked(layout, 2, 1024), align=1024)",
        "a.descriptor(address)",
    ),
}


@pytest.mark.parametrize("case", FITTING)
def test_a_descriptor_that_fits_its_array_is_not_refused(case):
    assert "wgmma.mma_async" in product_of(*FITTING[case]).ptx()
