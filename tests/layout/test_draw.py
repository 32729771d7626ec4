"""Drawings: what they show, cell by cell, in text, SVG and LaTeX."""

import io
import re
from xml.etree import ElementTree

import pytest

from ptxdsl.layout import (
    Layout,
    Swizzle,
    bank_wavefronts,
    composition,
    copy_atom,
    make_tiled_copy,
    make_tiled_copy_b,
    make_tiled_mma,
    mma_atom,
    parse,
    slice_,
    to_latex,
    to_svg,
    to_text,
)

SVG = "{http://www.w3.org/2000/svg}"
MMA = make_tiled_mma("mma.m16n8k16.f32.f16", (2, 2, 1), (32, 32, 16))
DRAWN = [
    Layout(5),
    Layout(((4, 8), (2, 2)), ((32, 1), (16, 8))),
    Layout((2, 3, 4)),
    Swizzle(3, 3, 3),
    composition(Swizzle(2, 3, 3), Layout((8, 32), (32, 1))),
    slice_(Layout((4, 8)), None, 3),
    mma_atom("mma.m16n8k8.f32.tf32"),
    copy_atom("ldmatrix.x4.trans"),
    copy_atom("cp.async.16"),
    copy_atom("ld.1"),
    MMA,
    make_tiled_copy_b("ldmatrix.x4", MMA),
    make_tiled_copy("ld.shared.4", 32, 2),
    bank_wavefronts("ldmatrix.x4", Layout((64, 32), (32, 1))),
]


def labels(svg):
    """The words of an SVG with their places, by kind: '' cells, 'n' numbers of rows and columns, 't' titles."""
    words = {"": [], "n": [], "t": []}
    for text in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        spans = list(text.iter(f"{SVG}tspan")) or [text]
        words[text.get("class", "")] += [(float(s.get("x")), float(text.get("y")), s.text or "") for s in spans]
    return words


def rectangles(svg):
    """(left, top, width, height) of each cell."""
    boxes = []
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        for x, y, w, h in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+z", path.get("d")):
            boxes.append((float(x), float(y), float(w), float(h)))
    return boxes


@pytest.mark.parametrize("value", DRAWN, ids=str)
def test_every_cell_of_the_picture_is_in_each_drawing(value):
    picture = value.picture()
    cells = list(picture.filled())
    svg = to_svg(value)
    assert len(rectangles(svg)) == len(cells)
    assert sorted(word for _, _, word in labels(svg)[""]) == sorted(line for cell in cells for line in cell.lines)
    assert to_latex(value).count("\\node[cell") == len(cells)
    plain = to_text(value, color=False)
    assert len(re.findall(r"\S+", plain)) >= len(cells) and "\x1b" not in plain
    assert value._repr_svg_() == svg


@pytest.mark.parametrize("value", DRAWN, ids=str)
def test_words_stay_inside_of_their_cells_and_cells_inside_of_the_page(value):
    svg = to_svg(value)
    boxes = rectangles(svg)
    for x, y, word in labels(svg)[""]:
        half = len(word) * 6.62 / 2  # pixels, of an 11-pixel monospace font
        assert any(
            left <= x - half and x + half <= left + w and top <= y - 8 and y + 3 <= top + h for left, top, w, h in boxes
        )
    page = ElementTree.fromstring(svg)
    width, height = float(page.get("width")), float(page.get("height"))
    assert all(left + w <= width and top + h <= height for left, top, w, h in boxes)
    assert all(x + len(word) * 6.62 <= width for x, _, word in labels(svg)["t"])


@pytest.mark.parametrize("value", DRAWN, ids=str)
def test_a_drawing_says_what_it_is_and_holds_no_empty_text(value):
    page = ElementTree.fromstring(to_svg(value))
    assert page.get("role") == "img"
    assert page[0].tag == f"{SVG}title" and page[0].text == value.picture().title
    assert all("".join(text.itertext()) for text in page.iter(f"{SVG}text"))


def test_rows_and_columns_are_numbered_beside_their_cells():
    svg = to_svg(Layout((3, 2)))
    columns, rows = labels(svg)["n"][:2], labels(svg)["n"][2:]
    boxes = sorted(rectangles(svg), key=lambda box: box[1])
    for (x, y, word), (left, top, width, _) in zip(columns, sorted(boxes[:2]), strict=True):
        assert left < x < left + width and y < top and word in "01"
    for (x, y, _), (left, top, _, height) in zip(rows, boxes[::2], strict=True):
        assert x < left and top < y < top + height
    assert [word for _, _, word in rows] == ["0", "1", "2"]


def test_a_layout_in_text():
    assert (
        to_text(Layout((4, (2, 2)), (2, (1, 8))), color=False)
        == """\
(4,(2,2)):(2,(1,8))

    0  1  2  3
 0  0  1  8  9
 1  2  3 10 11
 2  4  5 12 13
 3  6  7 14 15
"""
    )


def test_a_swizzled_layout_in_text():
    assert (
        to_text(composition(Swizzle(1, 1, 1), Layout((4, 2), (2, 1))), color=False)
        == """\
Sw<1,1,1> o 0 o (4,2):(2,1) on 16-bit elements: one colour is four banks

   0 1
 0 0 1
 1 2 3
 2 6 7
 3 4 5
"""
    )


def test_a_swizzle_in_text_with_its_banks():
    assert (
        to_text(Swizzle(2, 3, 2), color=False)
        == """\
Sw<2,3,2> on 16-bit elements: where blocks of 16 bytes are stored

              block 0            block 1            block 2            block 3
 0    at 0, banks 0-3    at 1, banks 4-7   at 2, banks 8-11  at 3, banks 12-15
 1  at 5, banks 20-23  at 4, banks 16-19  at 7, banks 28-31  at 6, banks 24-27
 2  at 10, banks 8-11 at 11, banks 12-15    at 8, banks 0-3    at 9, banks 4-7
 3 at 15, banks 28-31 at 14, banks 24-27 at 13, banks 20-23 at 12, banks 16-19
"""
    )
    assert "at 3, bank 1 at 2, bank 1" in to_text(Swizzle(1, 0, 1), color=False)


def test_a_tiled_copy_in_text():
    assert (
        to_text(make_tiled_copy("ld.shared.4", Layout((2, 2), (2, 1)), (1, 2)), color=False)
        == """\
tiled_copy(ld.shared.4, ((2,2),2):((4,1),2) on (2,4))

source: shared
      0    1    2    3
 0 T0V0 T0V1 T1V0 T1V1
 1 T2V0 T2V1 T3V0 T3V1

target: registers
      0    1    2    3
 0 T0V0 T0V1 T1V0 T1V1
 1 T2V0 T2V1 T3V0 T3V1
"""
    )


def test_an_mma_is_drawn_as_the_product_is_written():
    grids = {grid.title: grid for grid in mma_atom("mma.m16n8k8.f32.f16").picture().grids}
    a, b, c = (grids[title] for title in ("A (M x K)", "B (K x N)", "C (M x N)"))
    assert (a.at, b.at, c.at) == ((0, 1), (1, 0), (1, 1))
    assert [(g.height, g.width) for g in (a, b, c)] == [(16, 8), (8, 8), (16, 8)]
    assert a.cells[9][3].lines == ("T5", "V3")  # row 9 = group 1, its second register; columns 2 and 3 are lane 1 of it
    assert b.cells[3][2].lines == ("T9", "V1")  # k = 3, n = 2
    assert c.cells[0][7].lines == ("T3", "V1")


def test_colours_follow_the_offset_the_thread_and_the_bank():
    assert [cell.colour for cell in Layout(10).picture().filled()] == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]
    (grid,) = composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1))).picture().grids
    for column in range(64):  # no two rows of one column in the same banks
        assert sorted(grid.cells[row][column].colour for row in range(8)) == list(range(8))
    assert {cell.colour for cell in copy_atom("ldmatrix.x1").picture().grids[0].cells[3]} == {3}


def test_colours_in_the_terminal_obey_no_color(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout", Terminal())
    assert "\x1b[30;48;5;153m 0\x1b[0m" in to_text(Layout(4))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in to_text(Layout(4))
    assert "\x1b" in to_text(Layout(4), color=True)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert "\x1b" not in to_text(Layout(4))


def test_latex_is_a_whole_document():
    text = to_latex(Layout((2, 2)))
    assert text.startswith("% Layout: (2,2):(1,2)\n\\documentclass")
    assert "\\node[cell,fill=c3] at (3,4) {3};" in text
    assert text.endswith("\\end{tikzpicture}\n\\end{document}\n")
    for command in ("begin", "end"):
        assert text.count(f"\\{command}{{tikzpicture}}") == text.count(f"\\{command}{{document}}") == 1
    assert text.count("{") == text.count("}")
    assert "T0\\\\V0" in to_latex(copy_atom("ldmatrix.x1"))


def test_a_tile_of_128_by_64_is_drawn_whole_and_small():
    svg = to_svg(Layout((128, 64), (64, 1)))
    assert len(rectangles(svg)) == 8192 and len(svg) < 600_000


@pytest.mark.parametrize(
    "text, kind",
    [
        ("((4,8),(2,2)):((32,1),(16,8))", Layout),
        ("(_4,_8):(_8,_1)", Layout),
        ("Sw<3,3,3>", Swizzle),
        ("Sw<2,3,3> o _0 o (_8,_32):(_32,_1)", type(composition(Swizzle(2, 3, 3), Layout(8)))),
        ("mma.m16n8k16", type(mma_atom("mma.m16n8k16"))),
        ("ldmatrix.x4", type(copy_atom("ldmatrix.x4"))),
    ],
)
def test_what_a_user_types_is_drawn(text, kind):
    value = parse(text)
    assert isinstance(value, kind) and to_svg(value).startswith("<svg")


@pytest.mark.parametrize("plain", ["(64,32):(32,1)", "(8,8)", "64:2", "64"])
def test_a_swizzled_layout_reads_with_and_without_an_offset_of_0(plain):
    swizzled = parse(f"Sw<2,3,3> o {plain}")
    assert swizzled == parse(f"Sw<2,3,3> o 0 o {plain}") == composition(Swizzle(2, 3, 3), parse(plain))
    assert parse(str(swizzled)) == swizzled
