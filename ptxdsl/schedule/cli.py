"""The command `ptxdsl schedule`: which block computes which tile, and when, as text, SVG or JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ptxdsl.errors import ScheduleError
from ptxdsl.schedule.arithmetic import counted
from ptxdsl.schedule.grouped import GroupedProblemVisitor
from ptxdsl.schedule.persistent import PersistentScheduler
from ptxdsl.schedule.raster import GroupedRowsThreadblockSwizzle, HilbertThreadblockSwizzle
from ptxdsl.schedule.reuse import l2_reuse
from ptxdsl.schedule.stream_k import StreamKThreadblockSwizzle
from ptxdsl.schedule.swizzle import (
    BatchedIdentityThreadblockSwizzle,
    HorizontalThreadblockSwizzle,
    IdentityNoPaddingThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    SplitKHorizontalThreadblockSwizzle,
    SplitKIdentityThreadblockSwizzle,
)
from ptxdsl.schedule.tile_map import TileMap
from ptxdsl.schedule.timeline import Timeline

EXAMPLES = """\
examples
  ptxdsl schedule identity --n 4 --problem 4x4 --svg identity.svg
  ptxdsl schedule grouped-rows --n 8 --problem 4096x4096x4096 --tile 128x128x64
  ptxdsl schedule stream-k --problem 1000x3000x768 --tile 128x128x32 --blocks 132
  ptxdsl schedule grouped --problem 512x512x256 --problem 256x384x1024 --tile 128x128x32 --blocks 6
"""
# name: its swizzle, of the number that --n gives
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


def add(commands: Any) -> None:
    """Adds the command to those of `ptxdsl`."""
    parser = commands.add_parser(
        "schedule",
        help="which block computes which tile, and when",
        description="Draws a schedule: blocks on tiles, or blocks over time.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("schedule", choices=(*WITH_NUMBER, *PLAIN, "persistent", "stream-k", "grouped"))
    parser.add_argument(
        "--problem", type=shape, action="append", required=True, metavar="MxN[xK]", help="K is 1 where it is left out"
    )
    parser.add_argument("--tile", type=shape, default=(1, 1, 1), metavar="MxN[xK]", help="default 1x1x1")
    parser.add_argument("--n", type=int, help="tiles of a strip, rows of a group, order of a curve (default 1)")
    parser.add_argument("--split-k", type=count, help="slices of K, or batches (default 1)")
    parser.add_argument("--blocks", type=count, default=132, help="that run at the same time (default 132)")
    parser.add_argument("--sort", action="store_true", help="grouped: the longest K first")
    parser.add_argument("--balance", choices=("k",), help="grouped: deal by K-iterations")
    for name in ("svg", "json"):
        parser.add_argument(
            f"--{name}", nargs="?", const="-", metavar="FILE", help=f"{name.upper()}, to stdout or a file"
        )
    parser.set_defaults(command=run)


def shape(text: str) -> tuple[int, int, int]:
    """Sizes such as 4x4 or 512x512x256."""
    parts = text.lower().split("x")
    if len(parts) not in (2, 3) or not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text} is no shape: write MxN or MxNxK")
    m, n, k = (*map(int, parts), 1)[:3]
    return m, n, k


def count(text: str) -> int:
    """A number of 1 or more."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is no number of 1 or more")
    return int(text)


def options_of(name: str) -> tuple[str, ...]:
    """Of the options that not all schedules have, those of one."""
    if name == "grouped":
        return "sort", "balance"
    return ("n", "split_k") if name in WITH_NUMBER else ("split_k",)


def check_options(options: argparse.Namespace) -> None:
    """Raises ScheduleError for an option that has no meaning for the schedule."""
    own = options_of(options.schedule)
    for name in ("n", "split_k", "sort", "balance"):
        if getattr(options, name) not in (None, False) and name not in own:
            known = ", ".join(map(flag, ("problem", "tile", *own, "blocks", "svg")))
            raise ScheduleError(
                f"{options.schedule} takes no {flag(name)}", help=f"its options are {known} and {flag('json')}"
            )


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def run(options: argparse.Namespace) -> int:
    shown, note = drawing(options)
    if options.svg is None and options.json is None:
        print(shown.to_text(), end="")
        print(note)
    if options.svg is not None:
        write(options.svg, shown.to_svg())
    if options.json is not None:
        write(options.json, shown.to_json() + "\n")
    return 0


def drawing(options: argparse.Namespace) -> tuple[TileMap | Timeline, str]:
    """What there is to see, and a line about it."""
    check_options(options)
    name, problems, tile, blocks = options.schedule, options.problem, options.tile, options.blocks
    if name == "grouped":
        mode = "host" if options.balance else "device"
        visitor = GroupedProblemVisitor(problems, tile, blocks, mode, options.sort, options.balance)
        return visitor.timeline(), counted(visitor.total, "tile")
    if len(problems) > 1:
        raise ScheduleError(f"{name} takes one problem, not {len(problems)}", help="for several, take `grouped`")
    if name == "stream-k":
        plan = StreamKThreadblockSwizzle(blocks).plan(problems[0], tile, options.split_k or 1)
        return plan.timeline(), f"{counted(plan.dp_tiles, 'tile')} computed whole"
    tiles = tile_map(name, options)
    slices = options.split_k or 1 if tiles.depth == "k" else 1
    return tiles, str(l2_reuse(tiles, tile, max(1, problems[0][2] // slices), blocks))


def tile_map(name: str, options: argparse.Namespace) -> TileMap:
    (problem,) = options.problem
    if name == "persistent":
        return PersistentScheduler().plan(problem, options.tile, options.blocks, batches=options.split_k or 1).map()
    swizzle = WITH_NUMBER[name](1 if options.n is None else options.n) if name in WITH_NUMBER else PLAIN[name]()
    found: TileMap = swizzle.map(problem, options.tile, options.split_k or 1)
    return found


def write(file: str, text: str) -> None:
    if file == "-":
        sys.stdout.write(text)
        return
    try:
        Path(file).write_text(text)
    except OSError as reason:
        raise ScheduleError(f"{file} cannot be written: {reason.strerror}", help="name another file") from None
