"""Configurations that the GEMM is not written for are refused; those that it is written for compute the right thing."""

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.cli.trial import Trial
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_masked, grouped_gemm_ragged_k
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.scaled import scaled_gemm, scaled_gemm_ragged_k
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    DepthwiseThreadblockSwizzle,
    GroupScheduler,
    PersistentScheduler,
)

REFUSED = [
    ({"tile": (63, 64, 32)}, "tile is (63, 64, 32); M and N are multiples of 16, and K is a power of two"),
    ({"tile": (96, 72, 32)}, "tile is (96, 72, 32); M and N are multiples of 16, and K is a power of two"),
    ({"tile": (64, 64, 96)}, "tile is (64, 64, 96); M and N are multiples of 16, and K is a power of two"),
    ({"tile": (0, 64, 32)}, "tile is (0, 64, 32); M and N are multiples of 16, and K is a power of two"),
    ({"tile": (64, -16, 32)}, "tile is (64, -16, 32); M and N are multiples of 16, and K is a power of two"),
    ({"tile": [64, 64, 32]}, "tile is [64, 64, 32]; it takes a tuple of three ints, (M, N, K)"),
    ({"tile": "64"}, "tile is '64'; it takes a tuple of three ints, (M, N, K)"),
    ({"tile": 64}, "tile is 64; it takes a tuple of three ints, (M, N, K)"),
    ({"tile": (64, 64)}, "tile is (64, 64); it takes a tuple of three ints, (M, N, K)"),
    ({"tile": (64.0, 64, 32)}, "tile is (64.0, 64, 32); it takes a tuple of three ints, (M, N, K)"),
    ({"tile": (True, 64, 32)}, "tile is (True, 64, 32); it takes a tuple of three ints, (M, N, K)"),
    ({"warp": [32, 32]}, "warp is [32, 32]; it takes a tuple of ints, (M, N) or (M, N, K)"),
    ({"warp": "32"}, "warp is '32'; it takes a tuple of ints, (M, N) or (M, N, K)"),
    ({"warp": (32,)}, "warp is (32,); it takes a tuple of ints, (M, N) or (M, N, K)"),
    ({"warp": (32, 24)}, "warp is (32, 24); M and N are multiples of 16, and K is a power of two"),
    ({"warp": (8, 64)}, "warp is (8, 64); M and N are multiples of 16, and K is a power of two"),
    ({"warp": (0, 64)}, "warp is (0, 64); M and N are multiples of 16, and K is a power of two"),
    ({"warp": (64, 64, 24)}, "warp is (64, 64, 24); M and N are multiples of 16, and K is a power of two"),
    ({"warp": (48, 64)}, "warp is (48, 64), which does not divide the tile (128, 128, 32)"),
    ({"tile": (96, 192, 32)}, "warp is (64, 64), which does not divide the tile (96, 192, 32)"),
    ({"warp": (144, 48)}, "warp is (144, 48), which is larger than the tile (128, 128, 32)"),
    ({"tile": (240, 144, 32), "warp": (16, 16)}, "tile (240, 144, 32) in warps of (16, 16) is 4320 threads; 1024 is the most"),
    ({"warp": (64, 64, 64)}, "warp is (64, 64, 64), which is larger than the tile (128, 128, 32)"),
    ({"warp": (256, 64)}, "warp is (256, 64), which is larger than the tile (128, 128, 32)"),
    ({"warp": (16, 16)}, "tile (128, 128, 32) in warps of (16, 16) is 2048 threads; 1024 is the most"),
    ({"split_k": 0}, "split_k is 0; it takes 1 or more blocks a tile"),
    ({"split_k": 2.0}, "split_k is 2.0; it takes an int"),
    ({"split_k": "2"}, "split_k is '2'; it takes an int"),
    ({"split_k": True}, "split_k is True; it takes an int"),
    ({"reduction": "tree"}, 'reduction is \'tree\'; it takes "serial", "parallel", "scatter" or "cluster"'),
    ({"schedule": 8}, "schedule is 8; it takes a threadblock swizzle of GEMM, a PersistentScheduler or a "
     "StreamKThreadblockSwizzle of ptxdsl.schedule"),
    ({"schedule": DepthwiseThreadblockSwizzle()}, "schedule is DepthwiseThreadblockSwizzle(n=1); it takes a threadblock "
     "swizzle of GEMM, a PersistentScheduler or a StreamKThreadblockSwizzle of ptxdsl.schedule"),
    ({"schedule": GroupScheduler()}, "schedule is GroupScheduler(cluster=(1, 1), max_swizzle=1, raster='m'); it takes a "
     "threadblock swizzle of GEMM, a PersistentScheduler or a StreamKThreadblockSwizzle of ptxdsl.schedule"),
    ({"schedule": PersistentScheduler(), "split_k": 2}, "split_k is 2, and persistent blocks compute whole tiles; take "
     "StreamKThreadblockSwizzle, whose blocks share them"),
    ({"schedule": BatchedIdentityThreadblockSwizzle(), "split_k": 2}, "split_k is 2, and z of the batched-identity grid is "
     "the batch; take SplitKIdentityThreadblockSwizzle, whose z is the slice of K"),
    ({"stages": 1}, "stages is 1; the ring takes 2 or more"),
    ({"stages": "x"}, "stages is 'x'; it takes an int"),
    ({"stages": 3.0}, "stages is 3.0; it takes an int"),
    ({"stages": True}, "stages is True; it takes an int"),
    ({"epilogue": 3}, "epilogue is 3; it takes a function of one element, such as relu"),
]  # fmt: skip


OPERANDS = [
    ({"a_bytes": 4.0}, "a_bytes is 4.0; of f16 elements it takes 2, 4, 8 or 16"),
    ({"b_bytes": 1}, "b_bytes is 1; of f16 elements it takes 2, 4, 8 or 16"),
    ({"c": "here"}, 'c is \'here\'; it takes "none", "separate" or "in place"'),
    ({"extras": [1]}, "extras is [1]; it takes a tuple of Extra, which gemm makes of `operands`"),
    ({"inputs": pd.s32}, "inputs is s32; it takes f16, bf16, f32, f64, s8, u8, e4m3 or e5m2"),
    ({"inputs": "f16"}, "inputs is 'f16'; it takes f16, bf16, f32, f64, s8, u8, e4m3 or e5m2"),
    ({"inputs": [pd.f16]}, "inputs is [f16]; it takes f16, bf16, f32, f64, s8, u8, e4m3 or e5m2"),
    ({"output": "f16"}, "output is 'f16'; of f16 inputs it takes f16, bf16, f32, e4m3 or e5m2"),
    ({"output": pd.f64}, "output is f64; of f16 inputs it takes f16, bf16, f32, e4m3 or e5m2"),
]  # fmt: skip
# What inputs do not take
TYPED = [
    ({"tile": (64, 64, 16)}, {}, "tile is (64, 64, 16); of f16 inputs its K is 32 or more"),
    ({}, {"inputs": pd.s8, "output": pd.s32}, "tile is (128, 128, 32); of s8 inputs its K is 64 or more"),
    ({"tile": (64, 64, 16), "atom": "mma.m16n8k16.f64.f64"}, {"inputs": pd.f64, "output": pd.f64},
     "tile is (64, 64, 16); with mma.m16n8k16.f64.f64 its K is 32 or more"),
    ({"warp": (64, 64, 16)}, {}, "warp is (64, 64, 16); of f16 inputs its K is 32 or more"),
    ({"atom": "mma.m16n8k8.f64.f64"}, {}, "atom is 'mma.m16n8k8.f64.f64'; of f16 inputs it takes mma.m16n8k16.f32.f16"),
]  # fmt: skip


@pytest.mark.parametrize("fields, message", OPERANDS, ids=[message for _, message in OPERANDS])
def test_operands_that_no_kernel_is_written_for_are_refused(fields, message):
    with pytest.raises(pd.LaunchError) as refused:
        Operands(**fields)
    assert refused.value.message == f"Operands: {message}"


@pytest.mark.parametrize("choice, operands, message", TYPED, ids=[message for *_, message in TYPED])
def test_choices_that_inputs_do_not_take_are_refused(choice, operands, message):
    config, made = GemmConfig(**choice), Operands(**operands)
    with pytest.raises(pd.LaunchError) as refused:
        config.traits(made)
    assert refused.value.message == f"GemmConfig: {message}"


MENDED = [
    ({"split_k": np.int64(2)}, "split_k is np.int64(2); it takes an int", "it is a number of numpy: pass int(split_k)"),
    ({"tile": [64, 64, 32]}, "tile is [64, 64, 32]; it takes a tuple of three ints, (M, N, K)",
     "pass a tuple of Python's ints: (64, 64, 32)"),
    ({"tile": (np.int64(64), 64, 32)}, "tile is (np.int64(64), 64, 32); it takes a tuple of three ints, (M, N, K)",
     "pass a tuple of Python's ints: (64, 64, 32)"),
    ({"tile": (63, 64, 32)}, "tile is (63, 64, 32); M and N are multiples of 16, and K is a power of two", None),
    ({"tile": (96, 112, 64), "warp": (64, 64, 32)}, "warp is (64, 64, 32), which does not divide the tile (96, 112, 64)",
     "take one of which the tile is a multiple, such as warp=(48, 16, 32)"),
    ({"tile": (96, 64, 32), "warp": (48, 128)}, "warp is (48, 128), which is larger than the tile (96, 64, 32)", None),
]  # fmt: skip


@pytest.mark.parametrize("fields, message, help", MENDED, ids=[message for _, message, _ in MENDED])
def test_how_to_mend_numbers_of_numpy_and_lists(fields, message, help):
    with pytest.raises(pd.LaunchError) as refused:
        GemmConfig(**fields)
    assert (refused.value.message, refused.value.help) == (f"GemmConfig: {message}", help)


@pytest.mark.parametrize("fields, message", REFUSED, ids=[message for _, message in REFUSED])
def test_refused(fields, message):
    with pytest.raises(pd.LaunchError) as refused:
        GemmConfig(**fields)
    assert refused.value.message == f"GemmConfig: {message}"
    assert refused.value.at.text.strip() == "GemmConfig(**fields)"


def test_a_choice_that_equals_another_is_refused_after_it():
    """True == 1 and 2.0 == 2: what was accepted before must not answer for them."""
    ones = np.ones((4, 4), np.float16)
    for split_k, equal in ((1, True), (2, 2.0)):
        gemm(ones, ones, split_k=split_k)
        with pytest.raises(pd.LaunchError) as refused:
            gemm(ones, ones, split_k=equal)
        assert refused.value.message == f"GemmConfig: split_k is {equal!r}; it takes an int"


LONG = GemmConfig(tile=(16, 64, 256), warp=(16, 64, 64), stages=2)


@pytest.mark.parametrize("k, copies", [(301, 256), (302, None), (300, None)])
def test_a_line_of_a_tile_is_copied_by_a_thread_for_each_part(k, copies):
    """Of elements that are copied one by one; of pairs, 128 threads copy lines of 256."""
    a, b = np.ones((20, k), np.float16), np.ones((k, 40), np.float16)
    if copies is None:
        assert (gemm(a, b, config=LONG) == k).all()
        return
    with pytest.raises(pd.LaunchError) as refused:
        gemm(a, b, config=LONG)
    assert refused.value.message == (
        f"GemmConfig: tile is (16, 64, 256), and `a` is copied by 2 bytes: a line of it takes {copies} copies, of a "
        "thread each, and a block has 128 threads"
    )
    assert refused.value.help == (
        "take a smaller tile, or pass arrays whose lines begin and end at multiples of 16 bytes"
    )


@pytest.mark.parametrize("layout", ["tn", "nt"])
@pytest.mark.parametrize(
    "tile, warp, stages",
    [
        ((16, 16, 32), (16, 16), 2),
        ((32, 32, 64), (32, 32), 3),
        ((64, 64, 32), (16, 16), 5),
        ((64, 64, 64), (64, 64), 2),
        ((128, 32, 32), (32, 32), 3),
        ((16, 128, 128), (16, 64), 2),
        ((16, 32, 128), (16, 16, 32), 3),
        ((64, 64, 64), (32, 32, 32), 3),
        ((32, 64, 128), (32, 32, 64), 2),
    ],
)
def test_accepted(tile, warp, stages, layout):
    config = GemmConfig(tile=tile, warp=warp, stages=stages)
    assert Trial(70, 90, 100, layout=layout, config=config).run("emulator").ok


DOUBLES = Operands(pd.f64, pd.f64)
F64 = {"tile": (64, 64, 32), "warp": (32, 32)}
FITS = [
    ({}, "sm_86", None),
    ({"stages": 7}, "sm_86", "7 stages of 16384 bytes take 114688 bytes of shared memory; a block of sm_86 has 101376"),
    ({"stages": 7}, "sm_80", None),
    ({"stages": 12}, "sm_87", "12 stages of 16384 bytes take 196608 bytes of shared memory; a block of sm_87 has 166912"),
    ({"stages": 12}, "sm_90a", None),
    ({"stages": 15}, "sm_100f", "15 stages of 16384 bytes take 245760 bytes of shared memory; a block of sm_100f has 232448"),
    ({"tile": (128, 256, 32), "warp": (128, 64)}, "sm_90",
     "warps of (128, 64) with f32 sums hold 376 registers a thread or more; there are 255"),
    (F64, "sm_80", None),
    ({**F64, "atom": "mma.m8n8k4.f64.f64"}, "sm_80", None),
    ({**F64, "atom": "mma.m16n8k8.f64.f64"}, "sm_80",
     "atom is mma.m16n8k8.f64.f64, which takes sm_90 or later; the kernel is for sm_80"),
    ({**F64, "atom": "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64"}, "sm_89",
     "atom is mma.m16n8k4.f64.f64, which takes sm_90 or later; the kernel is for sm_89"),
    ({**F64, "atom": "mma.m16n8k16.f64.f64"}, "sm_90", None),
]  # fmt: skip


@pytest.mark.parametrize("fields, arch, message", FITS, ids=[f"{fields}-{arch}" for fields, arch, _ in FITS])
def test_what_a_gpu_has_not_enough_of(fields, arch, message):
    traits = GemmConfig(**fields).traits(DOUBLES if F64.items() <= fields.items() else Operands())
    assert traits.fits(arch) == (message is None)
    if message:
        with pytest.raises(pd.LaunchError) as refused:
            traits.check(arch)
        assert refused.value.message == f"GemmConfig: {message}"
        assert refused.value.help


@pytest.mark.parametrize("more", [{}, {"stages": 4, "stagger": 2}], ids=["alone", "staggered"])
def test_groups_by_wgmma_without_a_tile_have_a_square_one(more, monkeypatch):
    """And scaled products, whose lines are of other elements."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    config, ends, one = GemmConfig(atom="wgmma", **more), np.array([16, 48], np.int32), np.ones(1, np.float32)
    sums = grouped_gemm_ragged_k(np.ones((48, 24), np.float16), np.ones((48, 32), np.float16), ends, config=config)
    assert (sums == [[[16]], [[32]]]).all()
    if more:
        return
    a, b = np.ones((2, 24, 48), np.float16), np.ones((2, 48, 40), np.float16)
    assert (grouped_gemm_masked(a, b, np.array([24, 24], np.int32), config=config) == 48).all()
    assert (grouped_gemm([a[0]], [b[0]], config=config)[0] == 48).all()
    x, y = a[0].astype(ml_dtypes.float8_e4m3fn), b[0].T.astype(ml_dtypes.float8_e4m3fn).T
    assert (scaled_gemm(x, y, one, one, config=config) == 48).all()
    assert (scaled_gemm_ragged_k(x, y, ends, one, one, config=config) == [[[16]], [[32]]]).all()
