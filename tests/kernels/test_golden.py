"""The PTX of the shipped kernels: ten small configurations, one of each way to make a tile and to share the work."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ptxdsl.config import using
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d_kernel, warpgroup_conv2d_kernel
from ptxdsl.kernels.gemm import gemm_kernel, warpgroup_gemm_kernel
from ptxdsl.kernels.grouped import grouped_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import IN_TURN
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import StreamKThreadblockSwizzle
from ptxdsl.types import f32, f64, s8, s32

GOLDEN = Path(__file__).parent.parent / "golden"
SMALL = dict(tile=(16, 16, 32), warp=(16, 16), stages=2)
TURNS = WarpgroupTiling((128, 16, 64), 2, pingpong=True)
STREAM_K = StreamKThreadblockSwizzle()
KERNELS = {
    "gemm_f16": (gemm_kernel, GemmConfig(**SMALL).traits()),
    "gemm_tf32": (gemm_kernel, GemmConfig(**{**SMALL, "tile": (16, 16, 16)}).traits(Operands(f32, f32))),
    "gemm_f64": (gemm_kernel, GemmConfig(**{**SMALL, "tile": (16, 16, 16)}).traits(Operands(f64, f64))),
    "gemm_s8": (gemm_kernel, GemmConfig(**{**SMALL, "tile": (16, 16, 64)}).traits(Operands(s8, s32))),
    "gemm_split_k": (gemm_kernel, GemmConfig(**SMALL, split_k=2).traits()),
    "gemm_stream_k": (gemm_kernel, GemmConfig(**SMALL, schedule=STREAM_K).traits()),
    "grouped": (grouped_kernel, replace(GemmConfig(**SMALL).traits(), schedule=IN_TURN)),
    "conv2d": (conv2d_kernel, GemmConfig(**SMALL).traits()),
    "conv2d_sm90": (warpgroup_conv2d_kernel, GemmConfig(tile=(64, 16, 64), stages=2, atom="wgmma").traits()),
    "gemm_pingpong": (warpgroup_gemm_kernel, WarpgroupTraits(TURNS, Operands(out_boxes=True), Strips())),
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_ptx_of_a_kernel_is_golden(name):
    kernel, traits = KERNELS[name]
    path = GOLDEN / f"{name}.ptx"
    with using(lineinfo=False):  # Python lines move, and the folder is another for each checkout
        text = kernel.ptx(arch="sm_90a" if isinstance(traits, WarpgroupTraits) else "sm_80", traits=traits)
    if os.environ.get("PTXDSL_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
