"""pd.ClusterLaunchControl: blocks that take over tiles of clusters before these start."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import ptr, u32
from ptxdsl.assemble import assemble


def count(y, tiles, columns):
    """Count each tile in each thread: tile (x, y) of a grid with `columns` columns."""
    with pd.warp(1), pd.elect():
        tiles.request()
    with pd.warp(0):
        for tile in tiles:
            pd.ptx.red.global_.add.u32(y + (tile.y * columns + tile.x), 1)


@pd.kernel(arch="sm_100a", reqntid=64)
def walk(y: ptr[u32], columns: u32):
    count(y, pd.ClusterLaunchControl(readers=32), columns)


@pd.kernel(arch="sm_100a", reqntid=64, cluster=(2, 2))
def walk_by_clusters(y: ptr[u32], columns: u32):
    count(y, pd.ClusterLaunchControl(readers=32), columns)


@pytest.mark.parametrize("kernel", [walk, walk_by_clusters])
@pytest.mark.parametrize("columns, rows", [(2, 2), (6, 4)])
def test_each_tile_is_computed_once(kernel, columns, rows):
    y = np.zeros((rows, columns), np.uint32)
    report = pd.emulate(kernel, (columns, rows), 64, y, columns)
    assert report.findings == []
    np.testing.assert_array_equal(y, np.full((rows, columns), 32))


@pytest.mark.parametrize("options", [{}, {"cluster": 2}])
def test_blocks_take_over_tiles(options):
    blocks = np.zeros(16, np.uint32)

    @pd.kernel(arch="sm_100a", reqntid=64, **options)
    def kernel(started: ptr[u32]):
        tiles = pd.ClusterLaunchControl(readers=1)
        with pd.warp(1), pd.elect():
            tiles.request()
        with pd.warp(0), pd.elect():
            for tile in tiles:
                started[tile.x] = pd.ctaid.x + 1

    assert pd.emulate(kernel, 16, 64, blocks).findings == []
    assert blocks.all() and len(np.unique(blocks)) < 16


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("kernel", [walk, walk_by_clusters])
def test_the_assembler_warns_of_nothing(kernel, arch):
    assert assemble(kernel.ptx(arch=arch), arch).warnings == ()


def refused(body, **options):
    @pd.kernel(arch="sm_100a", reqntid=64, **options)
    def kernel(y: ptr[u32], n: u32):
        body(y, n)

    with pytest.raises(pd.Error) as error:
        kernel.ptx()
    message = error.value.message
    before, separator, after = message.partition("test_cluster_launch_control.py:")
    return (f"{before}LINE{after.lstrip('0123456789')}" if separator else message), error.value.help


def listed(y, n):
    list(pd.ClusterLaunchControl(readers=1))


def broken(y, n):
    for tile in pd.ClusterLaunchControl(readers=1):
        y[tile.x] = 1
        break


def rebound(y, n):
    total = n + 0
    for tile in pd.ClusterLaunchControl(readers=32):
        total = total + tile.x
    y[0] = total


def in_a_role(y, n):
    with pd.warp(0):
        pd.ClusterLaunchControl(readers=1)


REFUSED = {
    "no readers": (
        lambda y, n: pd.ClusterLaunchControl(readers=0), "pd.ClusterLaunchControl has 0 readers",
        "count the threads of a block that iterate over it",
    ),
    "a role": (
        in_a_role, "pd.Ring is inside a role, `with pd.warp(0)` (LINE): all threads of the block reach it",
        "make it before, at the beginning of the kernel",
    ),
    "list": (
        listed, "a function of Python iterates over a pd.ClusterLaunchControl, which is a loop of the kernel: Python "
        "traces one iteration, and what it counts or pairs would be the same in all",
        "loop over the pd.ClusterLaunchControl itself by `for`, and count or index by a `pd.var`; all readers see the same "
        "tiles",
    ),
    "break": (
        broken, "the `for` over pd.ClusterLaunchControl (LINE) was left by a Python `break` or `return`: the loop was "
        "traced only partly", "all readers take all answers: skip the work of a tile by `with pd.if_(…):`",
    ),
    "a name that is rebound": (
        rebound, "`total` is rebound in the `for` over pd.ClusterLaunchControl (LINE), and read later: Python traces the "
        "body once, so each iteration would read the old value",
        "keep it in a variable: `total = pd.var(u32, total)` before, and `total.set(…)` here",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    body, message, help = REFUSED[case]
    assert refused(body) == (message, help)
