"""Pictures, timelines, traffic, occupancy and the command."""

import json
import xml.etree.ElementTree as ElementTree
from math import prod

import pytest

from ptxdsl.cli import main
from ptxdsl.schedule import (
    GroupedProblemVisitor,
    GroupedRowsThreadblockSwizzle,
    HorizontalThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    PersistentPlan,
    PersistentScheduler,
    SplitKIdentityThreadblockSwizzle,
    StreamKPlan,
    StreamKThreadblockSwizzle,
    ThreadblockSwizzle,
    blocks_per_multiprocessor,
    l2_reuse,
    sufficient_blocks,
)

UNIT = (1, 1, 1)
ARTICLE = [(512, 512, 256), (256, 384, 1024), (128, 640, 64)]
IDENTITY_2 = """\
identity 2: 2 x 4 tiles, grid 4 x 2 x 1, 0 blocks without a tile

         0        1        2        3
 0  0 at 0,0 1 at 1,0 4 at 0,1 5 at 1,1
 1  2 at 2,0 3 at 3,0 6 at 2,1 7 at 3,1
"""


OWN = "{} takes no --{}\n  help: its options are --problem, --tile, {}--blocks, --svg and --json"


def texts(svg):
    root = ElementTree.fromstring(svg)
    return [element.text for element in root.iter() if element.tag.endswith(("text", "tspan")) and element.text]


def test_blocks_on_tiles_as_text():
    text = IdentityThreadblockSwizzle(2).map((2, 4, 1), UNIT).to_text(color=False)
    assert text.split() == IDENTITY_2.split()


def test_blocks_on_tiles_as_svg():
    mapped = IdentityThreadblockSwizzle(2).map((4, 4, 1), UNIT)
    found = texts(mapped.to_svg())
    for number in range(16):
        assert str(number) in found
    assert mapped._repr_svg_() == mapped.to_svg()
    assert {f'class="c{colour}"' in mapped.to_svg() for colour in range(8)} == {True}


def test_a_cell_is_empty_where_another_slice_computes():
    mapped = SplitKIdentityThreadblockSwizzle(1).map((2, 3, 8), UNIT, 2)
    first, second = mapped.picture().grids
    assert (first.title, second.title) == ("k 0", "k 1")
    assert [cell.lines[0] for _, _, cell in second.filled()] == ["6", "8", "10", "7", "9", "11"]


def test_blocks_on_tiles_as_json():
    found = json.loads(IdentityThreadblockSwizzle(2).map((1, 3, 1), UNIT).to_json())
    assert (found["tiled_shape"], found["grid"]) == ([1, 3, 1], [2, 2, 1])
    assert found["blocks"][3] == {"block": [1, 1, 0], "tile": [0, 3, 0], "works": False}
    assert [block["tile"] for block in found["blocks"] if block["works"]] == [[0, 0, 0], [0, 1, 0], [0, 2, 0]]


def test_blocks_over_time():
    timeline = GroupedProblemVisitor(ARTICLE, (128, 128, 32), 6).timeline()
    assert timeline.loads == [58, 58, 58, 56, 50, 50]
    assert timeline.imbalance == pytest.approx(58 / 55)
    assert [span[:2] for span in timeline.rows[4]] == [(8, "0.4"), (8, "0.10"), (32, "1.0"), (2, "2.0")]
    lines = timeline.to_text(color=False).splitlines()
    assert lines[0] == "3 problems on 6 blocks; K-iterations: 58 at most, 55.0 on average, max/mean 1.05"
    assert [int(line.split()[-1]) for line in lines[2:]] == timeline.loads
    assert len({len(line.rstrip("0123456789")) for line in lines[2:]}) == 1


def test_bars_are_as_long_as_the_work():
    timeline = GroupedProblemVisitor([(1, 3, 30), (1, 1, 10)], (1, 1, 1), 2).timeline()
    root = ElementTree.fromstring(timeline.to_svg())
    bars = [(int(e.get("x")), int(e.get("width"))) for e in root.iter() if (e.get("class") or "").startswith("c")]
    assert bars == [(70, 450), (520, 450), (70, 450), (520, 150)]
    assert timeline._repr_svg_() == timeline.to_svg()


def test_time_as_json():
    found = json.loads(GroupedProblemVisitor([(1, 3, 30), (1, 1, 10)], (1, 1, 1), 2).timeline().to_json())
    assert found["loads"] == [60, 40] and found["imbalance"] == 1.2
    assert found["blocks"][1] == [[0, 30, "0.1", 0], [30, 40, "1.0", 1]]


def test_colours_in_a_terminal_only_where_asked():
    timeline = StreamKThreadblockSwizzle(4).plan((2, 5, 16), UNIT).timeline()
    assert "\x1b[" in timeline.to_text(color=True)
    assert "\x1b[" not in timeline.to_text(color=False)


def test_stream_k_leaves_no_slot_idle():
    timeline = StreamKThreadblockSwizzle(4).plan((2, 5, 16), UNIT).timeline()
    assert timeline.loads == [40] * 4 and timeline.imbalance == 1.0
    assert "slot 3" in timeline.to_text(color=False)


def test_a_timeline_of_nothing():
    timeline = GroupedProblemVisitor([], (1, 1, 1), 2).timeline()
    assert timeline.imbalance == 1.0 and timeline.loads == [0, 0]
    assert ElementTree.fromstring(timeline.to_svg()) is not None
    assert timeline.to_text(color=False).count("block") == 3


def test_a_map_of_nothing():
    plan = PersistentScheduler().plan((0, 4, 1), UNIT, 3)
    assert plan.coverage() == ([], [], [], [])
    assert json.loads(plan.map().to_json())["blocks"] == []


def test_bytes_that_a_wave_fetches():
    """4 blocks of 2 x 2 tiles fetch 2 rows of A and 2 columns of B; in one row they fetch 1 and 4."""
    square = l2_reuse(IdentityThreadblockSwizzle(2).map((4, 4, 1), UNIT), (64, 32), k=100, resident=4)
    assert square.fetched == (2 * 100 * (2 * 64 + 2 * 32),) * 4
    line = l2_reuse(HorizontalThreadblockSwizzle().map((4, 4, 1), UNIT), (64, 32), k=100, resident=4)
    assert line.fetched == (2 * 100 * (1 * 64 + 4 * 32),) * 4
    assert square.alone == line.alone == (2 * 100 * 4 * 96,) * 4
    assert square.factor == 2.0
    assert str(square) == "4 waves, 153.6 kB of A and B fetched, each byte read by 2.0 blocks"


def test_slices_of_k_share_nothing():
    mapped = SplitKIdentityThreadblockSwizzle(1).map((1, 2, 8), UNIT, 2)
    assert l2_reuse(mapped, UNIT, k=4, resident=4, element_bytes=1).fetched == (4 * (2 + 4),)


def test_strips_are_worth_their_while():
    tiles = (4096, 4096, 4096), (128, 128, 64)
    traffic = {
        swizzle: sum(l2_reuse(swizzle.map(*tiles), tiles[1], 4096, 132).fetched)
        for swizzle in (HorizontalThreadblockSwizzle(), IdentityThreadblockSwizzle(8), GroupedRowsThreadblockSwizzle(8))
    }
    horizontal, identity, grouped = traffic.values()
    assert grouped == identity < 0.75 * horizontal


# threads, registers, shared bytes, GPU: blocks on a multiprocessor, as CUDA's occupancy calculator has them
@pytest.mark.parametrize(
    "threads, registers, shared, arch, blocks",
    [
        (128, 32, 0, "sm_90", 16),
        (32, 16, 0, "sm_90a", 32),
        (256, 255, 0, "sm_80", 1),
        (256, 128, 48 * 1024, "sm_80", 2),
        (128, 168, 100 * 1024, "sm_90", 2),
        (384, 168, 227 * 1024, "sm_90a", 1),
        (1024, 64, 0, "sm_80", 1),
        (1024, 32, 0, "sm_86", 1),
        (64, 32, 0, "sm_89", 24),
        (128, 40, 99 * 1024, "sm_86", 1),
        (128, 40, 100 * 1024, "sm_86", 0),
        (1024, 128, 0, "sm_90", 0),
    ],
)
def test_how_many_blocks_a_multiprocessor_holds(threads, registers, shared, arch, blocks):
    assert blocks_per_multiprocessor(threads, registers, shared, arch) == blocks


def test_how_many_persistent_blocks_a_group_is_worth():
    assert sufficient_blocks(ARTICLE, (128, 128, 32), 132) == 27
    assert sufficient_blocks(ARTICLE, (128, 128, 32), 6) == 6
    assert sufficient_blocks([], (128, 128, 32), 6) == 6


def test_the_command_draws_blocks_on_tiles(tmp_path, capsys):
    file = tmp_path / "out.svg"
    assert main(["schedule", "identity", "--n", "4", "--problem", "4x4", "--svg", str(file)]) == 0
    assert file.read_text() == IdentityThreadblockSwizzle(4).map((4, 4, 1), UNIT).to_svg()
    assert capsys.readouterr().out == ""


def test_the_command_prints(capsys):
    assert main(["schedule", "identity", "--n", "2", "--problem", "2x4"]) == 0
    *picture, traffic = capsys.readouterr().out.splitlines()
    assert " ".join(picture).split() == IDENTITY_2.split()
    assert traffic == "1 wave, 12 bytes of A and B fetched, each byte read by 2.7 blocks"


@pytest.mark.parametrize(
    "words",
    [
        "identity-no-padding --n 8 --problem 3x6",
        "split-k-identity --n 2 --problem 4x4x64 --split-k 2",
        "grouped-rows --n 8 --problem 1024x1024x64 --tile 128x128x64",
        "hilbert --n 2 --problem 7x9",
        "horizontal --problem 3x2",
        "split-k-horizontal --problem 3x2 --split-k 2",
        "batched-identity --problem 3x2 --split-k 5",
        "persistent --problem 5x7 --blocks 6",
        "stream-k --problem 256x640x512 --tile 128x128x32 --blocks 4",
        "grouped --problem 512x512x256 --problem 128x640x64 --tile 128x128x32 --blocks 6 --sort",
        "grouped --problem 512x512x256 --problem 128x640x64 --tile 128x128x32 --blocks 6 --balance k",
    ],
)
def test_the_command_draws_every_schedule(words, capsys):
    for form, read in (([], str), (["--svg"], ElementTree.fromstring), (["--json"], json.loads)):
        assert main(["schedule", *words.split(), *form]) == 0
        assert read(capsys.readouterr().out) is not None


@pytest.mark.parametrize(
    "words, line, note",
    [
        (
            "grouped --problem 4x4x8 --tile 4x4x2 --blocks 1",
            "1 problem on 1 block; K-iterations: 4 at most, 4.0 on average, max/mean 1.00",
            "1 tile",
        ),
        (
            "stream-k --problem 4x4x8 --blocks 4",
            "stream-k: blocks share no tiles; K-iterations: 32 at most, 32.0 on average, max/mean 1.00",
            "16 tiles computed whole",
        ),
        (
            "stream-k --problem 1x1x16 --blocks 4",
            "stream-k: 4 blocks share 1 tile; K-iterations: 4 at most, 4.0 on average, max/mean 1.00",
            "0 tiles computed whole",
        ),
    ],
)
def test_the_command_counts_in_words(words, line, note, capsys):
    assert main(["schedule", *words.split()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[-1]) == (line, note)


@pytest.mark.parametrize("name", ["batched-identity", "persistent"])
def test_pictures_of_batches_say_so(name, capsys):
    assert main(["schedule", name, "--problem", "2x2x64", "--split-k", "2"]) == 0
    picture = capsys.readouterr().out
    assert "batch 0" in picture and "batch 1" in picture and "k 0" not in picture
    assert "each byte read by 2.0 blocks" in picture and "1.024 kB" in picture


@pytest.mark.parametrize("words", ["persistent --problem 5x7 --blocks 3", "stream-k --problem 5x7 --blocks 3000"])
def test_the_command_writes_a_drawing_and_json_to_files_of_their_own(words, tmp_path, capsys):
    svg, table = tmp_path / "a.svg", tmp_path / "a.json"
    assert main(["schedule", *words.split(), "--svg", str(svg), "--json", str(table)]) == 0
    assert ElementTree.fromstring(svg.read_text()) is not None
    assert "blocks" in json.loads(table.read_text())
    assert capsys.readouterr().out == ""


def test_a_persistent_picture_shows_the_grid_that_is_launched_and_the_block_of_each_item(capsys):
    assert main(["schedule", "persistent", "--problem", "3x2", "--blocks", "4"]) == 0
    title, _, _, *rows, _ = capsys.readouterr().out.splitlines()
    assert title == "persistent: 3 x 2 tiles, grid 1 x 4 x 1, 6 work items, 0 without a tile"
    assert [row.split() for row in rows] == [
        ["0", "0", "by", "0", "1", "by", "1"],
        ["1", "2", "by", "2", "3", "by", "3"],
        ["2", "4", "by", "0", "5", "by", "1"],
    ]


@pytest.mark.parametrize("along", ["m", "n"])
def test_persistent_json_names_the_block_of_each_item(along):
    plan = PersistentScheduler((2, 1), raster=along).plan((3, 4, 1), UNIT, 4, batches=2)
    found = json.loads(plan.map().to_json())
    assert found["grid"] == list(plan.grid) and prod(plan.grid) == 4
    by_block = {}
    for entry in found["blocks"]:
        if entry["works"]:
            by_block.setdefault(tuple(entry["block"]), []).append(tuple(entry["tile"]))
    places = [(x, y) for x in range(plan.grid[0]) for y in range(plan.grid[1])]
    assert by_block == {(*place, 0): plan.tiles(place) for place in places if plan.tiles(place)}


def test_slots_take_blocks_in_turn():
    """The slot with the least to do takes the next block, the first of several."""
    plan = StreamKThreadblockSwizzle(5).plan((9, 7, 13), UNIT)
    rows, loads = [[] for _ in range(5)], [0] * 5
    for block in range(plan.grid[0]):
        slot = loads.index(min(loads))
        for m, n, begin, end in plan.work(block):
            rows[slot].append((end - begin, f"{m},{n}", m + n))
            loads[slot] += end - begin
    timeline = plan.timeline()
    assert [list(row) for row in timeline.rows] == rows
    assert timeline.loads == loads and timeline.loads is timeline.loads  # once, and not for each row


TOO_MANY = "are too many for a picture; the limit is 65536\n  help: draw"


@pytest.mark.parametrize(
    "words, form, message",
    [
        ("stream-k --problem 5x7 --blocks 1000000", [], f"1000000 slots {TOO_MANY} fewer blocks"),
        ("stream-k --problem 300x700", [], f"210000 pieces of work {TOO_MANY} a smaller problem"),
        ("grouped --problem 5x7 --blocks 1000000", ["--svg"], f"1000000 blocks {TOO_MANY} fewer blocks"),
        ("grouped --problem 300x700", [], f"210000 pieces of work {TOO_MANY} a smaller problem"),
        ("grouped-rows --problem 3000x3000", ["--svg"], f"9000000 tiles {TOO_MANY} a smaller problem"),
        ("batched-identity --problem 5x7 --split-k 70000", [], f"2450000 tiles {TOO_MANY} a smaller problem"),
        ("persistent --problem 3000x3000", [], f"9000000 tiles {TOO_MANY} a smaller problem"),
    ],
)
def test_the_command_refuses_what_no_picture_shows_before_it_computes_it(words, form, message, capsys, monkeypatch):
    for kind in (PersistentPlan, ThreadblockSwizzle):
        monkeypatch.delattr(kind, "map")
    for kind in (StreamKPlan, GroupedProblemVisitor):
        monkeypatch.delattr(kind, "timeline")
    assert main(["schedule", *words.split(), *form]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"ptxdsl: {message}\n")


SHAPE, COUNT = "is not a shape\n  help: write MxN or MxNxK", "is not a number of 1 or more\n  help: for example"


@pytest.mark.parametrize(
    "words, message",
    [
        ("identity --problem 4y4", f"--problem 4y4 {SHAPE}"),
        ("identity --problem -4x4", f"--problem -4x4 {SHAPE}"),
        ("identity --problem 1.5x4", f"--problem 1.5x4 {SHAPE}"),
        ("identity --problem 4", f"--problem 4 {SHAPE}"),
        ("identity --problem 4x4 --tile 2", f"--tile 2 {SHAPE}"),
        (
            "identity --problem 4x4 --problem 2x2",
            "identity takes one problem, not 2\n  help: for several, take `grouped`",
        ),
        ("identity --problem 0x4", "0 x 4 x 1 tiles: there is nothing to draw\n  help: draw a larger problem"),
        ("horizontal --problem 4x4 --n 5", OWN.format("horizontal", "n", "--split-k, ")),
        ("persistent --problem 4x4 --balance k", OWN.format("persistent", "balance", "--split-k, ")),
        ("stream-k --problem 4x4 --sort", OWN.format("stream-k", "sort", "--split-k, ")),
        ("grouped --problem 4x4 --split-k 4", OWN.format("grouped", "split-k", "--sort, --balance, ")),
        ("hilbert --problem 4x4 --sort", OWN.format("hilbert", "sort", "--n, --split-k, ")),
        ("identity --problem 4x4 --blocks -5", f"--blocks -5 {COUNT} --blocks 8"),
        ("identity --problem 4x4 --split-k 0", f"--split-k 0 {COUNT} --split-k 8"),
        ("identity --problem 4x4 --n x", "--n x is not a number of 0 or more\n  help: for example --n 8"),
        (
            "identity --problem 4x4 --n 0",
            "IdentityThreadblockSwizzle: n must be 1 or more; found 0\n  help: set n to 1 or more",
        ),
        ("identity --problem 4x4 --svg /nowhere/a.svg", "/nowhere/a.svg cannot be written: No such file or directory"),
        ("identity --problem 4x4 --svg --json", "--svg and --json both write to stdout\n  help: name a file for each"),
        ("identity --problem 4x4 --svg a --json a", "--svg and --json both write to a\n  help: name a file for each"),
    ],
)
def test_the_command_refuses(words, message, capsys):
    assert main(["schedule", *words.split()]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"ptxdsl: {message}\n")
