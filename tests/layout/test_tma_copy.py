"""Which boxes a layout in shared memory stands for, how they are drawn, and the layouts that no boxes fill."""

import pytest

from ptxdsl.errors import LayoutError
from ptxdsl.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    TmaAtom,
    make_tiled_copy,
    make_tiled_copy_a,
    parse,
    tile_layout,
    tma_atom,
    to_text,
)

LOAD, STORE = "cp.async.bulk.tensor.shared.global", "cp.async.bulk.tensor.global.shared"
MULTICAST = f"{LOAD}.multicast::cluster"


def swizzled(bits, base, shift, layout, offset=0):
    return ComposedLayout(Swizzle(bits, base, shift), offset, layout)


@pytest.mark.parametrize("name, atom", [
    (LOAD, TmaAtom(LOAD, "global", "shared")),
    ("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
     TmaAtom(LOAD, "global", "shared", rank=2)),
    ("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
     TmaAtom(MULTICAST, "global", "shared", multicast=True, rank=3)),
    ("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group", TmaAtom(STORE, "shared", "global", rank=2)),
    ("cp.reduce.async.bulk.tensor.1d.global.shared::cta.min.tile.bulk_group",
     TmaAtom("cp.reduce.async.bulk.tensor.global.shared.min", "shared", "global", "min", rank=1)),
])  # fmt: skip
def test_names_are_those_of_ptx(name, atom):
    assert tma_atom(name) == atom == tma_atom(atom)


@pytest.mark.parametrize("layout, bits, order, box, offsets", [
    (tile_layout(128, 64, 16), 16, (0, 1), (128, 64), [0]),
    (tile_layout(128, 256, 16), 16, (0, 1), (128, 64), [0, 8192, 16384, 24576]),
    (tile_layout(128, 64, 16, 128, True), 16, (1, 0), (64, 64), [0, 4096]),
    (tile_layout(32, 64, 16, 0), 16, (0, 1), (32, 8), [256 * n for n in range(8)]),
    (Layout((4, 8), (8, 1)), 32, (0, 1), (4, 8), [0]),
    (Layout((4, 512), (512, 1)), 8, (0, 1), (1, 256), [0, 512, 1024, 1536, 256, 768, 1280, 1792]),
    (Layout((2, 64), (128, 1)), 32, (0, 1), (1, 64), [0, 128]),
], ids=str)  # fmt: skip
def test_boxes_follow_from_the_layout(layout, bits, order, box, offsets):
    copy = make_tiled_copy(LOAD, layout, bits=bits)
    assert (copy.order, copy.box, [b.offset for b in copy.boxes]) == (order, box, offsets)
    assert copy.bytes == layout.size * bits // 8


@pytest.mark.parametrize(
    "layout", [tile_layout(32, 128, 16), tile_layout(64, 32, 16, 64, True), Layout((6, 8), (8, 1))], ids=str
)
def test_boxes_cover_the_tile_once_and_lie_as_its_layout_says(layout):
    copy = make_tiled_copy(LOAD, layout, bits=16)
    plain, at = getattr(layout, "layout", layout), {}
    for corner, offset in copy.boxes:
        for i in range(copy.box[0]):
            for j in range(copy.box[1]):
                coord = tuple(
                    value for _, value in sorted(zip(copy.order, (corner[0] + i, corner[1] + j), strict=True))
                )
                at[coord] = offset + i * copy.box[1] + j
    assert at == {(i, j): plain(i, j) for i in range(copy.tile[0]) for j in range(copy.tile[1])}


def test_blocks_bring_parts():
    copy = make_tiled_copy(MULTICAST, tile_layout(64, 128, 16), bits=16, blocks=2)
    assert copy.box == (32, 64)
    assert [copy.part(rank) for rank in (0, 1)] == [
        (((0, 0), 0), ((0, 64), 4096)),
        (((32, 0), 2048), ((32, 64), 6144)),
    ]
    assert sorted(copy.boxes) == sorted(copy.part(0) + copy.part(1))


def test_a_copy_is_drawn_by_boxes():
    lines = to_text(make_tiled_copy(LOAD, tile_layout(8, 128, 16), bits=16), color=False).splitlines()
    assert lines[0] == (
        "tiled_copy(cp.async.bulk.tensor.shared.global, Sw<3,3,3> o 0 o (8,(64,2)):(64,(1,512))): "
        "2 boxes of (8,64), 128-byte swizzle"
    )
    assert "box 0, byte 0" in lines[3] and "box 1, byte 1024" in lines[3]
    assert lines[4].split()[1:5] == ["box", "0,", "byte", "144"]


WGMMA = "Sw<3,3,3> o 0 o (64,(64,2)):(64,(1,4096))"
REFUSED = [
    (lambda: make_tiled_copy("cp.async.bulk.shared.global", 64),
     "there is no TMA instruction 'cp.async.bulk.shared.global'", "write cp.async.bulk.tensor.shared.global"),
    (lambda: make_tiled_copy(f"{LOAD}.im2col", 64),
     f"there is no TMA instruction '{LOAD}.im2col': im2col is not one of its qualifiers", "write cp.async.bulk.tensor.shared.global"),
    (lambda: make_tiled_copy("cp.reduce.async.bulk.tensor.global.shared.mul", 64),
     "there is no TMA instruction 'cp.reduce.async.bulk.tensor.global.shared.mul': its operation must be one of add, min, max, "
     "inc, dec, and, or, xor", "write cp.async.bulk.tensor.shared.global"),
    (lambda: make_tiled_copy("cp.async.bulk.tensor.3d.shared.global", tile_layout(64, 64, 16)),
     "cp.async.bulk.tensor.shared.global copies tiles of 3 modes: Sw<3,3,3> o 0 o (64,64):(64,1) has 2",
     "pass the layout of one tile, with one mode for each axis of the array"),
    (lambda: make_tiled_copy(LOAD, Layout((2,) * 6)),
     "cp.async.bulk.tensor.shared.global copies tiles of 1 to 5 modes: (2,2,2,2,2,2):(1,2,4,8,16,32) has 6",
     "pass the layout of one tile, with one mode for each axis of the array"),
    (lambda: make_tiled_copy(LOAD, swizzled(3, 4, 3, Layout((64, 64), (64, 1)))),
     "TMA swizzles 16-byte chunks by the index of their 128-byte line; Sw<3,4,3> on elements of 16 bits "
     "does not",
     "the swizzles are Sw<3,3,3> for 128 bytes, Sw<2,3,3> for 64 bytes, Sw<1,3,3> for 32 bytes; use this layout instead: "
     "Sw<3,3,3> o 0 o (64,64):(64,1)"),
    (lambda: make_tiled_copy(LOAD, swizzled(3, 3, 3, Layout((64, 64), (64, 1)), 8)),
     "Sw<3,3,3> o 8 o (64,64):(64,1) starts at an offset", "pass the layout of a whole tile, which starts at 0"),
    (lambda: make_tiled_copy(LOAD, Layout((64, 64), (66, 1))),
     "a box must start at a multiple of 128 bytes of shared memory: (64,64):(66,1) has one at byte 132",
     "use this layout instead: Sw<3,3,3> o 0 o (64,64):(64,1)"),
    (lambda: make_tiled_copy(LOAD, Layout((64, 12), (12, 1))),
     "the rows of a box must be a multiple of 16 bytes: (64,12):(12,1) has 24 contiguous bytes",
     "make mode 1 a multiple of 8 elements, and its stride 1"),
    (lambda: make_tiled_copy(LOAD, Layout((64, 128), (1, 64), ), bits=4),
     "cp.async.bulk.tensor.shared.global cannot copy elements of 4 bits", "elements must have 8, 16, 32, 64 bits"),
    (lambda: make_tiled_copy(LOAD, Layout((64, 64), (128, 2))),
     "the rows of a box must be a multiple of 16 bytes: (64,64):(128,2) has 2 contiguous bytes",
     "use this layout instead: Sw<3,3,3> o 0 o (64,64):(64,1)"),
    (lambda: make_tiled_copy(LOAD, Layout((64, 64), (0, 1))),
     "(64,64):(0,1) has elements that share an address, or negative strides",
     "use this layout instead: Sw<3,3,3> o 0 o (64,64):(64,1)"),
    (lambda: make_tiled_copy(LOAD, swizzled(3, 3, 3, Layout((64, 128), (128, 1)))),
     "Sw<3,3,3> o 0 o (64,128):(128,1) needs 128 boxes of (1,64); the limit is 64",
     f"use this layout instead: {WGMMA}"),
    (lambda: make_tiled_copy(LOAD, Layout((2, 64), (64, 1)), (1, 8)),
     "cp.async.bulk.tensor.shared.global is issued by one thread: it takes no value layout",
     "pass the layout of a tile in shared memory, and `bits` as a keyword"),
    (lambda: make_tiled_copy(LOAD, tile_layout(64, 64, 16), blocks=2),
     "cp.async.bulk.tensor.shared.global writes to one block only: 2 blocks cannot each load a part of a tile",
     f"use {MULTICAST}"),
    (lambda: make_tiled_copy(MULTICAST, Layout((3, 64), (64, 1)), blocks=2),
     "(3,64):(64,1) does not split into 2 equal parts along the first axis of the array, mode 0",
     "make its extent 3 a multiple of 2, with one stride"),
    (lambda: make_tiled_copy("cp.async.16", 32, 8, blocks=2),
     "cp.async.16 does not copy for several blocks", "leave `blocks` out, or use cp.async.bulk.tensor"),
    (lambda: make_tiled_copy_a(LOAD, "mma.m16n8k16.f32.f16"),
     "cp.async.bulk.tensor.shared.global copies between global and shared memory: it cannot access the registers of "
     "mma.m16n8k16.f32.f16",
     "copy the tile with make_tiled_copy, and load it from shared memory with ldmatrix.x4, or let wgmma read it there"),
]  # fmt: skip


@pytest.mark.parametrize("call, message, help", REFUSED, ids=[row[1][:70] for row in REFUSED])
def test_what_no_boxes_are(call, message, help):
    with pytest.raises(LayoutError) as refusal:
        call()
    assert refusal.value.message == message
    assert refusal.value.help == help or (help.startswith("write") and refusal.value.help.startswith(help))


@pytest.mark.parametrize(
    "row", [row for row in REFUSED if "use this layout instead" in row[2]], ids=lambda row: row[1][:50]
)
def test_the_layout_that_would_do_does(row):
    with pytest.raises(LayoutError) as refusal:
        row[0]()
    from_text = refusal.value.help.split("layout instead: ")[1]

    assert make_tiled_copy(LOAD, parse(from_text)).box[-1] == 64
