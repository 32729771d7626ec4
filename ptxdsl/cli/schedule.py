"""The command `ptxdsl schedule`: draw the tiles of each block over time, as text, SVG or JSON."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import prod
from typing import Any

from ptxdsl.cli.options import add_format, check_formats, number, shape, write
from ptxdsl.cli.process import UsageError
from ptxdsl.errors import ScheduleError
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    GroupedProblemVisitor,
    GroupedRowsThreadblockSwizzle,
    HilbertThreadblockSwizzle,
    HorizontalThreadblockSwizzle,
    IdentityNoPaddingThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    PersistentScheduler,
    SplitKHorizontalThreadblockSwizzle,
    SplitKIdentityThreadblockSwizzle,
    StreamKThreadblockSwizzle,
    TileMap,
    Timeline,
    l2_reuse,
)
from ptxdsl.schedule.arithmetic import counted
from ptxdsl.schedule.tile_map import check_tiles
from ptxdsl.schedule.timeline import check_rows

DESCRIPTION = "Draw a schedule: the block of each tile, or the tiles of each block over time."
MOST_OF_A_PROBLEM = 10**18
EPILOG = """\
examples
  ptxdsl schedule identity --n 4 --problem 4x4 --svg identity.svg
  ptxdsl schedule grouped-rows --n 8 --problem 4096x4096x4096 --tile 128x128x64
  ptxdsl schedule stream-k --problem 1000x3000x768 --tile 128x128x32 --blocks 132
  ptxdsl schedule grouped --problem 512x512x256 --problem 256x384x1024 --tile 128x128x32 --blocks 6
"""
Drawing = tuple[TileMap | Timeline, Callable[[], str]]
# schedule name: its swizzle, as a function of --n
WITH_NUMBER: dict[str, Callable[[int], Any]] = {
    "identity": IdentityThreadblockSwizzle,
    "identity-no-padding": IdentityNoPaddingThreadblockSwizzle,
    "split-k-identity": SplitKIdentityThreadblockSwizzle,
    "grouped-rows": GroupedRowsThreadblockSwizzle,
    "hilbert": HilbertThreadblockSwizzle,
}
PLAIN = {
    "horizontal": HorizontalThreadblockSwizzle,
    "split-k-horizontal": SplitKHorizontalThreadblockSwizzle,
    "batched-identity": BatchedIdentityThreadblockSwizzle,
}


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("schedule", choices=(*WITH_NUMBER, *PLAIN, "persistent", "stream-k", "grouped"))
    sizes: Any = {"action": "append", "required": True, "help": "K defaults to 1"}
    parser.add_argument("--problem", type=sizes_of("--problem"), metavar="MxN[xK]", **sizes)
    parser.add_argument("--tile", type=sizes_of("--tile"), default=(1, 1, 1), metavar="MxN[xK]", help="default 1x1x1")
    strips = "width of a strip in tiles, rows of a group, or order of a curve (default 1)"
    parser.add_argument("--n", type=number("--n", 0), metavar="N", help=strips)
    parser.add_argument(
        "--split-k", type=number("--split-k", 1), metavar="N", help="number of K slices, or of batches (default 1)"
    )
    blocks = "blocks that run at the same time (default 132)"
    parser.add_argument("--blocks", type=number("--blocks", 1), default=132, metavar="N", help=blocks)
    parser.add_argument("--sort", action="store_true", help="grouped: the longest K first")
    parser.add_argument("--balance", choices=("k",), help="grouped: balance blocks by K iterations")
    add_format(parser, "svg", "SVG")
    add_format(parser, "json", "JSON")


def sizes_of(flag: str) -> Callable[[str], tuple[int, int, int]]:
    """Return the reader of M, N and K; K is 1 by default."""
    read = shape(flag, 2, "MxN or MxNxK", MOST_OF_A_PROBLEM)

    def sizes(text: str) -> tuple[int, int, int]:
        m, n, k = (*read(text), 1)[:3]
        return m, n, k

    return sizes


def options_of(name: str) -> tuple[str, ...]:
    """Return the options of a schedule, out of those that only some schedules have."""
    if name == "grouped":
        return "sort", "balance"
    return ("n", "split_k") if name in WITH_NUMBER else ("split_k",)


def check(options: argparse.Namespace) -> None:
    """Raise UsageError for an option that the schedule does not have, and for two formats in one place."""
    allowed = options_of(options.schedule)
    for name in ("n", "split_k", "sort", "balance"):
        if getattr(options, name) not in (None, False) and name not in allowed:
            known = ", ".join(map(flag, ("problem", "tile", *allowed, "blocks", "svg")))
            raise UsageError(
                f"{options.schedule} takes no {flag(name)}", help=f"its options are {known} and {flag('json')}"
            )
    if len(options.problem) > 1 and options.schedule != "grouped":
        raise UsageError(
            f"{options.schedule} takes one problem, not {len(options.problem)}", help="for several, take `grouped`"
        )
    check_formats(options, "svg", "json")


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def run(options: argparse.Namespace) -> int:
    check(options)
    try:
        draw(options)
    except ScheduleError as error:
        raise UsageError(error.message, help=error.help) from None
    return 0


def draw(options: argparse.Namespace) -> None:
    shown, note = {"grouped": grouped, "stream-k": stream_k}.get(options.schedule, tiles)(options)
    if options.svg is None and options.json is None:
        write(None, f"{shown.to_text()}{note()}\n")
    if options.svg is not None:
        write(options.svg, shown.to_svg())
    if options.json is not None:
        write(options.json, f"{shown.to_json()}\n")


def is_picture(options: argparse.Namespace) -> bool:
    """True if text or SVG is printed. Their parts are not computed for schedules that are too large to draw."""
    return options.svg is not None or options.json is None


def grouped(options: argparse.Namespace) -> Drawing:
    """Return the drawing of grouped problems, and its title line."""
    mode = "host" if options.balance else "device"
    visitor = GroupedProblemVisitor(options.problem, options.tile, options.blocks, mode, options.sort, options.balance)
    if is_picture(options):
        check_rows(visitor.blocks, "block", visitor.total)
    return visitor.timeline(), lambda: counted(visitor.total, "tile")


def stream_k(options: argparse.Namespace) -> Drawing:
    """Return the drawing of a stream-K schedule, and its title line."""
    (problem,), swizzle = options.problem, StreamKThreadblockSwizzle(options.blocks)
    if is_picture(options):
        check_rows(swizzle.resident_blocks, "slot", prod(swizzle.tiled_shape(problem, options.tile)))
    plan = swizzle.plan(problem, options.tile, options.split_k or 1)
    return plan.timeline(), lambda: f"{counted(plan.dp_tiles, 'tile')} computed whole"


def tiles(options: argparse.Namespace) -> Drawing:
    """Return the drawing of a tile map, and its title line."""
    (problem,), tile = options.problem, options.tile
    shown = tile_map(options)
    slices = options.split_k or 1 if shown.depth == "k" else 1
    return shown, lambda: str(l2_reuse(shown, tile, max(1, problem[2] // slices), options.blocks))


def tile_map(options: argparse.Namespace) -> TileMap:
    (problem,), tile, depth = options.problem, options.tile, options.split_k or 1
    name = options.schedule
    if name == "persistent":
        plan = PersistentScheduler().plan(problem, tile, options.blocks, batches=depth)
        if is_picture(options):
            check_tiles(plan.tiled)
        return plan.map()
    swizzle = WITH_NUMBER[name](1 if options.n is None else options.n) if name in WITH_NUMBER else PLAIN[name]()
    if is_picture(options):
        check_tiles(swizzle.tiled_shape(problem, tile, depth))
    drawn: TileMap = swizzle.map(problem, tile, depth)
    return drawn
