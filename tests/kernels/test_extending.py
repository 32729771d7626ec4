"""From outside the package: a schedule, an epilogue and an instruction are one class or function each, here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import ptr, u32, u64
from ptxdsl.errors import ScheduleError
from ptxdsl.isa.form import Form
from ptxdsl.isa.lookup import _opcodes
from ptxdsl.isa.opcode import Op
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.epilogue import per_column
from ptxdsl.kernels.gemm import gemm, gemm_kernel
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.kernels.tiles.schedule import Plan, TileAfterTile, TileSchedule
from tests.machines import MACHINES, machine

SMALL = GemmConfig(tile=(32, 32, 32), warp=(16, 32), stages=2)
every_machine = pytest.mark.parametrize("name", MACHINES)


@dataclass(frozen=True)
class Columns(TileSchedule):
    """A block computes a column of tiles, from the last row up; with `ahead`, it copies one while it stores another."""

    ahead: bool = True

    def is_ahead(self, operands):
        return self.ahead

    def fields(self):
        return {"rows": u32}

    def plan(self, problem, tile, resident):
        rows, columns = -(-problem.shape.m // tile[0]), -(-problem.shape.n // tile[1])
        return Plan((columns, 1, 1), {"rows": rows})

    def walk(self, context):
        return Column(context)


class Column(TileAfterTile):
    def __init__(self, context):
        self.ahead, self.products = context.ahead, context.products
        self.left = pd.var(u32, context.fields.rows)

    def has_tile(self):
        return self.left > 0

    def work(self):
        return self.products.work((self.left - 1, pd.ctaid.x))

    def advance(self):
        self.left -= 1


@every_machine
@pytest.mark.parametrize("schedule", [Columns(), Columns(ahead=False)], ids=str)
@pytest.mark.parametrize("m, n, k", [(97, 70, 130), (32, 1, 33), (1, 100, 1), (64, 64, 0)])
def test_a_schedule(name, schedule, m, n, k, rng):
    where = machine(name)
    a, b, c = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n), (m, n)))
    out = gemm(*map(where.array, (a, b, c)), beta=-1.0, config=SMALL, schedule=schedule)
    assert np.array_equal(where.values(out), a.astype(np.float32) @ b.astype(np.float32) - c)


def test_a_schedule_of_convolutions(rng):
    x, w = rng.integers(-2, 3, (2, 9, 8, 8)).astype(np.float16), rng.integers(-2, 3, (40, 1, 1, 8)).astype(np.float16)
    out = conv2d(x, w, config=SMALL, schedule=Columns())
    assert np.array_equal(out, x.astype(np.float32) @ w[:, 0, 0].T.astype(np.float32))


def test_a_schedule_that_says_not_how_blocks_walk_is_refused_where_it_is_made():
    class Lacking(TileSchedule):
        plan = Columns.plan

    with pytest.raises(TypeError, match=r"abstract class Lacking .*walk"):
        Lacking()


def test_a_schedule_of_many_products_is_refused_for_a_single_one():
    a = np.ones((8, 8), np.float16)
    with pytest.raises(ScheduleError) as refusal:
        gemm(a, a, schedule=AHEAD)
    assert (refusal.value.message, refusal.value.help) == (
        "schedule is Dealt(ahead=True), which deals the tiles of many products; this is a single one",
        "pass a schedule of single products, such as PersistentScheduler(), or call grouped_gemm()",
    )


def test_its_fields_are_parameters_of_the_kernel():
    text = gemm_kernel.ptx(traits=GemmConfig(schedule=Columns()).traits())
    assert ".param .u32 p_schedule_rows" in text


def test_a_schedule_that_says_how_tiles_are_shared_is_not_split():
    with pytest.raises(pd.LaunchError) as refused:
        gemm(np.ones((4, 4)), np.ones((4, 4)), schedule=Columns(), split_k=2)
    assert refused.value.message == (
        "GemmConfig: split_k is 2, and Columns(ahead=True) says itself how blocks share a tile"
    )


def clipped(x, low, high):
    """x, but no less than `low` and no more than `high`."""
    return pd.min(pd.max(x, low), high)


@every_machine
def test_an_epilogue(name, rng):
    where = machine(name)
    a, b, low = rng.standard_normal((40, 30)), rng.standard_normal((30, 50)), np.linspace(-2, 0, 50)
    bounds = per_column(where.array(low)), per_column(where.array(low + 1))
    out = where.values(gemm(where.array(a), where.array(b), epilogue=clipped, operands=bounds))
    assert np.allclose(out, np.clip(a @ b, low, low + 1), rtol=0, atol=1e-12)


@pytest.fixture
def mapa(monkeypatch):
    """The instruction, in the table for as long as a test runs."""
    monkeypatch.setitem(Op.table, "mapa", [])
    _opcodes.pop("mapa.u64", None)  # of the table itself, if it was asked for

    class Mapa(Op):
        """d = the address, in block `b` of the cluster, of what is at address `a` in this one; of a cluster of one."""

        forms = (Form("mapa.type d=type, a:type, b:u32", type="u32 u64", ptx="7.8", sm=90),)

        def run(self, i, a, b):
            return np.where(b == 0, a, 0).astype(a.dtype)

    yield Mapa
    _opcodes.pop("mapa.u64", None)


@pd.kernel
def mapped(out: ptr[u64], block: u32):
    out[pd.tid.x] = pd.ptx.mapa.u64(pd.tid.x.to(u64), block)


def test_an_instruction(mapa):
    out = np.full(32, 99, np.uint64)
    with pd.config.using(arch="sm_90"):
        mapped[1, 32](out, 0)
    assert out.tolist() == list(range(32))
    assert "mapa.u64" in mapped.ptx(arch="sm_90")
    assert mapped.cubin(arch="sm_90").image[:4] == b"\x7fELF"
