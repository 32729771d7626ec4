"""What lies behind the lines of an output stays as it is: tensor copies would write whole 16 bytes."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_ragged
from tests.kernels.test_warpgroups import hopper
from tests.machines import MACHINES, machine

__all__ = ["hopper"]  # fixtures for all tests here
N, WIDE = 77, 80
TILES = GemmConfig(tile=(128, 64, 64), stages=3, atom="wgmma")
every_machine = pytest.mark.parametrize("name", MACHINES)


def poisoned(on, *shape):
    return on.array(np.full(shape, np.nan, np.float16))


@every_machine
@pytest.mark.parametrize("m", [1, 70])
@pytest.mark.parametrize("config", [TILES, None], ids=["wgmma", "chosen"])
def test_of_a_product(name, m, config, rng):
    on = machine(name)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, 64), (WIDE, 64)))
    out = poisoned(on, m, WIDE)
    gemm(on.array(a), on.array(b)[:N].T, out=out[:, :N], config=config)
    written = on.values(out)
    assert np.allclose(written[:, :N], a.astype(float) @ b[:N].T, rtol=2e-3, atol=2e-2)
    assert np.isnan(written[:, N:]).all()


@pytest.mark.exhaustive
@every_machine
def test_of_lists_and_of_ragged_rows(name, rng):
    on = machine(name)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((2, 40, 64), (2, WIDE, 64)))
    expected = a.astype(float) @ b[:, :N].transpose(0, 2, 1)
    outs = [poisoned(on, 40, WIDE) for _ in range(2)]
    left, right = [on.array(each) for each in a], [on.array(each)[:N].T for each in b]
    grouped_gemm(left, right, out=[out[:, :N] for out in outs], config=TILES)
    rows = poisoned(on, 80, WIDE)
    stacked, ends = on.array(b).swapaxes(1, 2)[:, :, :N], on.array(np.array([40, 80], np.int32))
    grouped_gemm_ragged(on.array(a.reshape(80, 64)), stacked, ends, out=rows[:, :N], config=TILES)
    for written in (np.stack([on.values(out) for out in outs]), on.values(rows).reshape(2, 40, WIDE)):
        assert np.allclose(written[:, :, :N], expected, rtol=2e-3, atol=2e-2)
        assert np.isnan(written[:, :, N:]).all()
