"""What arrays and rings are called: what Python assigns them to, in PTX, in messages and in reports."""

# ruff: noqa: F841, RUF059
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import EmulationError, f32, ptr


def several(of):
    a, b, c = pd.shared(f32, 4), pd.shared(f32, 4), pd.shared(f32, 4)


def nested(of):
    (a, [b]), c = (pd.shared(f32, 4), [pd.shared(f32, 4)]), pd.shared(f32, 4)


def attributes(of):
    of.up = pd.shared(f32, 4)
    of.up, of.other.down = pd.shared(f32, 4), pd.shared(f32, 4)


def walrus(of):
    assert (tile := pd.shared(f32, 4)) is not None


def context(of):
    with nullcontext(pd.shared(f32, 4)) as left, nullcontext((pd.shared(f32, 4), pd.shared(f32, 4))) as (right, other):
        pass


def lists(of):
    tiles = [pd.shared(f32, 4), pd.shared(f32, 4)]
    rows = [pd.shared(f32, 4) for _ in range(2)]


def items(of):
    tiles, first = {}, [None]
    tiles["a"], tiles[1] = pd.shared(f32, 4), pd.shared(f32, 4)
    first[len(tiles) - 2] = pd.shared(f32, 4)


def two_names(of):
    tile = same = pd.shared(f32, 4)


def over_lines(of):
    tile, other = (
        pd.shared(
            f32,
            4,
        ),
        pd.local(f32, 4),
    )


def annotated(of):
    of.tile: object = pd.shared(f32, 4)


def conditional(of):
    tile = pd.shared(f32, 4) if of.up is None else None


def by_name(of):
    of.up, of.other = pd.shared(f32, 4, name="tile"), pd.dynamic_shared(f32, 4, name="rest")


def dynamic(of):
    of.up, of.other = pd.dynamic_shared(f32, 4), pd.dynamic_shared(f32, 4)


def unnamed(of):
    pd.shared(f32, 4)
    first, *rest = None, pd.shared(f32, 4), pd.shared(f32, 4)
    str(pd.shared(f32, 4))
    both = {"one": pd.shared(f32, 4)}
    one = str(pd.shared(f32, 4))


def starred(of):
    first, *rest, last = *(), pd.shared(f32, 4), *(), pd.shared(f32, 4)


SIX = ["shared", *(f"shared_{n}" for n in range(1, 6))]
CALLED = {
    several: ("a b c", "a b c"),
    nested: ("a b c", "a b c"),
    attributes: ("of.up up_1 of.other.down", "up up_1 down"),
    walrus: ("tile", "tile"),
    context: ("left right other", "left right other"),
    lists: ("tiles[0] tiles[1] rows rows_1", "tiles_0 tiles_1 rows rows_1"),
    items: ("tiles['a'] tiles[1] first[len(tiles)-2]", "tiles_a tiles_1 first"),
    two_names: ("tile", "tile"),
    over_lines: ("tile", "tile"),
    annotated: ("of.tile", "tile"),
    conditional: ("tile", "tile"),
    by_name: ("tile rest", "tile"),
    dynamic: ("of.up of.other", ""),
    unnamed: (" ".join(SIX), " ".join(SIX)),
    starred: ("shared shared_1", "shared shared_1"),
}


def traced(make):
    @pd.kernel
    def kernel(x: ptr[f32]):
        make(SimpleNamespace(up=None, down=None, tile=None, other=SimpleNamespace()))

    return kernel


@pytest.mark.parametrize("make", CALLED, ids=lambda make: make.__name__)
def test_arrays_are_called_what_they_are_assigned_to(make):
    kernel = traced(make)
    in_python, in_ptx = CALLED[make]
    arrays = kernel.variant(None, {}).notes.arrays
    assert [array.name.replace(" ", "") for array in arrays] == in_python.split()
    declared = [line.split()[-1].partition("[")[0] for line in kernel.ptx().splitlines() if ".shared .align" in line]
    assert [name for name in declared if name != "dynamic_shared"] == in_ptx.split()


def test_arrays_of_a_thread_and_tables_too():
    @pd.kernel
    def kernel(x: ptr[f32]):
        mine, (table, _) = pd.local(f32, 4), (pd.constant([1.0, 2.0], f32), None)
        x[0] = table[pd.tid.x]

    text = kernel.ptx()
    assert ".local .align 16 .b32 mine[4]" in text
    assert "b32 table[2]" in text


class Parts:
    def __init__(self):
        self.tile, self.ring = pd.shared(f32, 32), pd.Ring(stages=2, producers=32, consumers=32)


@pd.kernel(arch="sm_90")
def unread(x: ptr[f32]):
    parts = Parts()
    x[pd.tid.x] = parts.tile[pd.tid.x]


@pd.kernel(arch="sm_90")
def starved(x: ptr[f32]):
    parts = Parts()
    parts.ring.wait()


def test_messages_name_them():
    with pytest.raises(EmulationError) as found:
        unread[1, 32](np.zeros(32, np.float32))
    assert "reads 4 bytes at self.tile[0]" in str(found.value)
    with pytest.raises(EmulationError) as found:
        starved[1, 32](np.zeros(32, np.float32))
    assert "`self.ring`" in str(found.value)


def test_a_text_that_python_cannot_show_names_what_its_bytecode_tells():
    names = {"pd": pd, "f32": f32}
    exec("def make(of):\n    a, b = pd.shared(f32, 4), pd.shared(f32, 4)\n    c = pd.shared(f32, 4)", names)
    assert [array.name for array in traced(names["make"]).variant(None, {}).notes.arrays][-1] == "c"
