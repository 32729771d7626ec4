"""What kernels of many products take on sm_90a beside those of one, with a line left out: the emulator finds each."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels import grouped, ragged
from ptxdsl.kernels.call.call import launch
from ptxdsl.kernels.call.groups import grouped as call_of_lists
from ptxdsl.kernels.call.groups import ragged as call_of_rows
from ptxdsl.kernels.call.products.plan import Kernels
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.sm90.maps import ProblemMaps
from ptxdsl.kernels.sm90.tile_queue import TileQueue

LOW = GemmConfig(tile=(64, 64, 64), stages=2, atom="wgmma")


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """One block, which has tiles of several problems."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    for module in (call_of_lists, call_of_rows):
        monkeypatch.setattr(module, "resident_blocks", lambda *_, **__: 1)


class NotAcquired(ProblemMaps):
    """Of the maps in global memory one is not acquired."""

    number = 0

    def acquire(self, number, version):
        if number != self.number:
            super().acquire(number, version)


class OutNotAcquired(NotAcquired):
    """Nor is that of the output."""

    number = 2


class NotAwaited(TileQueue):
    """Other warps do not wait for the words of a tile."""

    def receive(self):
        values = [self.numbers[word] for word in range(self.words)]
        self.ring.wait()
        self.ring.release()
        return values


class NotRead(TileQueue):
    """Other warps do not release the words that they have read."""

    def receive(self):
        first = self.ring.wait().index * self.words
        return [self.numbers[first + word] for word in range(self.words)]


def products(monkeypatch, **parts):
    """Products of five problems by a kernel of these parts."""
    for name, part in parts.items():
        monkeypatch.setattr(grouped, name, part)
    kernel = pd.kernel(reqntid=lambda traits: traits.threads)(grouped.warpgroup_grouped_kernel.__wrapped__)
    a, b = ([np.ones(shape, np.float16) for _ in range(5)] for shape in ((8, 64), (64, 16)))
    kernels = Kernels(grouped.grouped_kernel, kernel)
    return launch(
        call_of_lists.GroupedCall, kernels, (None, a, b, None), LOW, (True, True, "device", False, None), (1.0, 0.0)
    )


def of_rows(kernels, a, b, ends, config):
    """Multiply groups of rows by kernels of other parts."""
    options = True, "ragged", False, True, True
    return launch(call_of_rows.RaggedCall, kernels, (None, a, b, ends, None, None), config, options)


def test_nothing_is_left_out(monkeypatch):
    assert all((out == 64).all() for out in products(monkeypatch))


@pytest.mark.parametrize(
    "parts, message",
    [
        ({"ProblemMaps": NotAcquired}, "reads the tensor map"),
        ({"ProblemMaps": OutNotAcquired}, "reads the tensor map"),
        ({"TileQueue": NotAwaited}, "queue"),
        ({"TileQueue": NotRead}, "wait"),
    ],
    ids=["acquire", "acquire, out", "wait", "release"],
)
def test_a_line_that_is_left_out(monkeypatch, parts, message):
    with pytest.raises(pd.Error, match=message):
        products(monkeypatch, **parts)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part, message", [(TileQueue, ""), (NotAwaited, "queue"), (NotRead, "wait")])
def test_what_is_told_of_tiles_of_groups_of_rows(monkeypatch, part, message):
    monkeypatch.setattr(ragged, "TileQueue", part)
    kernel = pd.kernel(reqntid=lambda traits: traits.threads)(ragged.warpgroup_ragged_kernel.__wrapped__)
    kernels, ends = Kernels(ragged.ragged_kernel, kernel), np.arange(1, 13, dtype=np.int32)
    a, b = np.ones((12, 64), np.float16), np.ones((12, 64, 16), np.float16)
    if message:
        with pytest.raises(pd.Error, match=message):
            of_rows(kernels, a, b, ends, LOW)
    else:
        assert (of_rows(kernels, a, b, ends, LOW) == 64).all()
