"""Every subset of the fences, waits and barriers of a ring and of an epilogue: exactly the needed ones are needed."""

from itertools import product

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, f32, u32

from .machines import MACHINES, machine

ROWS, COLUMNS, STAGES, CONSUMERS, TILES = 2, 32, 2, 64, 3
MAP = pd.TensorMap(f32, (ROWS, COLUMNS))
NEEDED = ("full", "release", "empty", "read", "refill", "fence", "written")


def waited(mbarrier, parity):
    with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(mbarrier, parity)):
        pass


@pd.kernel(arch="sm_90a", reqntid=CONSUMERS + 32)
def doubled(x: MAP, y: MAP, tiles: u32, *, parts: frozenset):
    """y = 2 x, box by box: a warp fills stages, two warps double them into one buffer, of which TMA stores."""
    stages, buffer = x.shared(STAGES), y.shared()
    full, empty = pd.shared(b64, STAGES), pd.shared(b64, STAGES)
    leader = pd.tid.x == 0
    with pd.if_(leader):
        for stage in range(STAGES):
            pd.ptx.mbarrier.init.shared__cta.b64(full.address(stage), 1)
            pd.ptx.mbarrier.init.shared__cta.b64(empty.address(stage), CONSUMERS)
        pd.ptx.fence.mbarrier_init.release.cluster()
    pd.ptx.bar.sync(0)

    with pd.warp(2), pd.elect():
        for i in pd.range(tiles):
            stage, round_ = i % STAGES, i // STAGES
            if "empty" in parts:  # has it been read? the first round needs no wait: its parity is of a phase before
                waited(empty.address(stage), (round_ + 1) % 2)
            pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(stage), x.bytes, out="_")
            x.load(stages.address(stage, 0, 0), (i * ROWS, 0), full.address(stage))

    with pd.warp(0, 1) as consumer:
        row, column = consumer.thread // COLUMNS, consumer.thread % COLUMNS
        for i in pd.range(tiles):
            stage = i % STAGES
            if "full" in parts:  # is it there?
                waited(full.address(stage), i // STAGES % 2)
            if "early fence" in parts:
                pd.ptx.fence.proxy.async_.shared__cta()
            value = stages[stage, row, column]
            if "unfenced reads" not in parts:  # has TMA to wait for it?
                pd.ptx.fence.proxy.async_.shared__cta()
            if "release" in parts:
                pd.ptx.mbarrier.arrive.shared__cta.b64(empty.address(stage), out="_")
            with pd.if_(leader):
                if "read" in parts:  # has the copy before read the buffer?
                    pd.ptx.cp.async_.bulk.wait_group.read(0)
            if "refill" in parts:  # do all threads know?
                consumer.barrier()
            buffer[row, column] = value * 2
            if "fence" in parts:  # does TMA see what this thread wrote?
                pd.ptx.fence.proxy.async_.shared__cta()
            if "written" in parts:  # have all threads written?
                consumer.barrier()
            with pd.if_(leader):
                if "late fence" in parts:
                    pd.ptx.fence.proxy.async_.shared__cta()
                y.store((i * ROWS, 0), buffer)
                pd.ptx.cp.async_.bulk.commit_group()
        with pd.if_(leader):
            pd.ptx.cp.async_.bulk.wait_group(0)


def findings(parts):
    x, y = (
        np.arange(ROWS * TILES * COLUMNS, dtype=np.float32).reshape(-1, COLUMNS),
        np.zeros((ROWS * TILES, COLUMNS), "f4"),
    )
    report = pd.emulate(doubled, 1, CONSUMERS + 32, x, y, TILES, parts=frozenset(parts))
    assert report.findings or (y == 2 * x).all()
    return {finding.kind for finding in report.findings}


@pytest.mark.cases(12)
@pytest.mark.cases(30)
@pytest.mark.parametrize(
    "needed", list(product([False, True], repeat=len(NEEDED))), ids=lambda b: "".join("01"[x] for x in b)
)
def test_nothing_is_found_where_all_that_is_needed_is_there(needed):
    parts = {name for name, is_there in zip(NEEDED, needed, strict=True) if is_there}
    assert bool(findings(parts)) == (not all(needed))


@pytest.mark.parametrize("missing", NEEDED)
def test_a_fence_before_the_box_is_read_mends_nothing(missing):
    assert findings({*NEEDED, "early fence"} - {missing})


@pytest.mark.parametrize("behind", [set(), {"early fence"}, {"late fence"}])
def test_what_threads_read_is_fenced_before_it_is_released(behind):
    assert findings({*NEEDED, "unfenced reads", *behind}) == {"race"}


def test_one_fence_behind_the_barrier_stands_for_those_of_all_writers():
    """It lies on the way from each write to the copy (PTX ISA, "Causality order")."""
    assert not findings({*NEEDED, "late fence"} - {"fence"})


@pytest.mark.parametrize("missing", NEEDED)
def test_what_is_told_of_each(missing):
    told = {"release": "deadlock", "full": "unwaited-async", "read": "unwaited-async", "empty": "mbarrier"}
    assert told.get(missing, "race") in findings(set(NEEDED) - {missing})


@pytest.mark.parametrize("name", MACHINES)
def test_with_all_of_them_it_doubles(name):
    where = machine(name)
    x = np.arange(ROWS * TILES * COLUMNS, dtype=np.float32).reshape(-1, COLUMNS)
    y = where.array(np.zeros_like(x))
    doubled[1, CONSUMERS + 32](where.array(x), y, TILES, parts=frozenset(NEEDED))
    assert (where.values(y) == 2 * x).all()
