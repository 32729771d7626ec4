"""The last tile of a block is staged in the ring, which nobody fills any more."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import ptxdsl as pd
from ptxdsl.errors import EmulationError
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import gelu
from ptxdsl.kernels.gemm import gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.persistent import PersistentWalk, Strips
from ptxdsl.kernels.tiles.schedule import KernelContext
from ptxdsl.types import bf16
from tests.kernels.test_pingpong import blocks
from tests.kernels.test_warpgroups import hopper
from tests.mutants.subjects import whole
from tests.mutants.trial import SCHEDULES, launches

__all__ = ["blocks", "hopper"]  # fixtures for all tests here
HOW: dict[str, dict[str, object]] = {"staggered": {"stagger": 2}, "in turns": {"pingpong": True}}
every_way = pytest.mark.parametrize("how", HOW.values(), ids=HOW)


def config(schedule: Strips, **how: object) -> GemmConfig:
    return GemmConfig(tile=(128, 32, 64), stages=3, atom="wgmma", schedule=schedule, **how)


def product(schedule: Strips, k: int, how: dict[str, object]) -> None:
    """Of one block, which has three tiles."""
    gemm(whole(128, k), whole(k, 96, seed=1), config=config(schedule, **how))


class ReadyWalk(PersistentWalk):
    """One that says of each tile that it is the last."""

    def _is_done(self) -> pd.Value:
        return pd.nctaid.x > 0


@dataclass(frozen=True)
class Hasty(Strips):
    def general(self) -> Hasty:
        return self

    def walk(self, context: KernelContext) -> PersistentWalk:
        walk = super().walk(context)
        walk.__class__ = ReadyWalk
        return walk


@pytest.mark.exhaustive
@every_way
@pytest.mark.parametrize("k", [64, 200])
def test_no_order_of_warps_breaks_it(how, k, blocks):
    blocks(1)
    ((launch,),) = launches(lambda: product(Strips(), k, how))
    first, second = (launch.run(launch.text, schedule) for schedule in SCHEDULES[1:])
    assert not first.finding
    assert first == second


@every_way
def test_before_other_tiles_the_ring_is_filled_again(how, blocks):
    blocks(1)
    with pytest.raises(EmulationError, match="complete_tx::bytes writes "):
        product(Hasty(), 264, how)


def test_in_turns_the_tile_has_been_in_all_stages():
    """Else the other warpgroup may still read one of them."""
    text = {name: config(Strips(), **how).traits(Operands(bf16, bf16, out_boxes=True)) for name, how in HOW.items()}
    asked = {name: "setp.ge.u32" in warpgroup_gemm_kernel.ptx("sm_90a", traits=traits) for name, traits in text.items()}
    assert asked == {"staggered": False, "in turns": True}


def boxes(tiling: WarpgroupTiling, **operands: object) -> int:
    return WarpgroupTraits(tiling, Operands(bf16, bf16, out_boxes=True, **operands), Strips(), gelu).boxes_in_ring


@pytest.mark.parametrize(
    ("tile", "stages", "how", "count"),
    [
        ((128, 256), 4, {"stagger": 3}, 1),  # 8 KB of A, and boxes of 64 rows and 128 bytes
        ((128, 224), 4, {"stagger": 3}, 2),  # of 64 bytes
        ((128, 192), 5, {"pingpong": True}, 5),  # 40 KB of a stage
        ((128, 208), 5, {"pingpong": True}, 21),  # of 32 bytes
        ((128, 256), 3, {"stagger": 2}, 0),  # four boxes in three stages
        ((128, 256), 4, {}, 0),  # both warpgroups store at the same time
        ((64, 128), 4, {"swap_ab": True, "pingpong": True}, 0),
    ],
)
def test_how_many_boxes_a_stage_takes(tile, stages, how, count):
    assert boxes(WarpgroupTiling((*tile, 64), stages, **how)) == count


def test_boxes_of_c_come_to_where_the_output_is_staged():
    assert boxes(WarpgroupTiling(stagger=3), c="separate") == 0
