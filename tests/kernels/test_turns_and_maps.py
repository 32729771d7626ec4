"""What kernels of many products take on sm_90a beside those of one, with a line left out: the emulator finds each."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels import grouped
from ptxdsl.kernels.call.gemm import Kernels
from ptxdsl.kernels.call.groups import grouped as call
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.sm90 import store
from ptxdsl.kernels.sm90.maps import RewrittenMaps, RewrittenOut
from ptxdsl.kernels.sm90.turns import TileTurns

LOW = GemmConfig(tile=(64, 64, 64), stages=2, atom="wgmma")


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """One block, which has tiles of several problems."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    monkeypatch.setattr(call, "resident_blocks", lambda *_, **__: 1)


class NotAcquired(RewrittenMaps):
    """The maps in global memory are not acquired."""

    def _acquire(self) -> None:
        pass


class OutNotAcquired(RewrittenOut):
    """Nor is that of the output."""

    def _acquire(self) -> None:
        pass


class NotHeard(TileTurns):
    """Warps that multiply do not wait for the number of their next tile."""

    def heard(self):
        number = self.numbers[0]
        self.ring.wait()
        self.ring.release()
        return number


class NotReleased(TileTurns):
    """Nor do they say that they have read it."""

    def heard(self):
        return self.numbers[self.ring.wait().index]


def products(monkeypatch, **parts):
    """Products of five problems by a kernel of these parts."""
    for name, part in parts.items():
        monkeypatch.setattr(store if name == "RewrittenOut" else grouped, name, part)
    kernel = pd.kernel(reqntid=lambda traits: traits.threads)(grouped.warpgroup_grouped_kernel.__wrapped__)
    a, b = ([np.ones(shape, np.float16) for _ in range(5)] for shape in ((8, 64), (64, 16)))
    kernels = Kernels(grouped.grouped_kernel, kernel)
    return call.run(kernels, a, b, None, None, 1.0, 0.0, "device", LOW, False, None)


def test_nothing_is_left_out(monkeypatch):
    assert all((out == 64).all() for out in products(monkeypatch))


@pytest.mark.parametrize(
    "parts, message",
    [
        ({"RewrittenMaps": NotAcquired}, "takes the tensor map"),
        ({"RewrittenOut": OutNotAcquired}, "takes the tensor map"),
        ({"TileTurns": NotHeard}, "turns"),
        ({"TileTurns": NotReleased}, "wait"),
    ],
    ids=["acquire", "acquire, out", "wait", "release"],
)
def test_a_line_that_is_left_out(monkeypatch, parts, message):
    with pytest.raises(pd.EmulationError, match=message):
        products(monkeypatch, **parts)
