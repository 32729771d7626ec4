"""What grouped_gemm and its like refuse, word for word; and that nothing is written then."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.config import using
from ptxdsl.kernels.call.groups import group
from ptxdsl.kernels.call.groups.group import problem_group
from ptxdsl.kernels.call.groups.ragged import plan_of, ragged_groups, request_of
from ptxdsl.kernels.call.groups.table import assign_tiles
from ptxdsl.kernels.call.paths.select import grouped
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_masked, grouped_gemm_ragged
from ptxdsl.kernels.ragged import KERNELS
from ptxdsl.schedule import HorizontalThreadblockSwizzle
from tests.machines import NAMES

TINY = GemmConfig(tile=(16, 16, 32), warp=(16, 16))


def ones(*shape, dtype=np.float16):
    return np.ones(shape, dtype)


def read_only(*shape):
    array = ones(*shape)
    array.flags.writeable = False
    return array


def words(error):
    """An error without the line of the caller."""
    return error.message + (f"\n  help: {error.help}" if error.help else "")


def lists():
    return [ones(4, 6), ones(5, 6)], [ones(6, 8), ones(6, 3)]


REFUSALS = {
    "lists of different length": (
        lambda a, b: grouped_gemm(a, b[:1]),
        "lists of different length: 2 matrices a, 1 matrices b\n  help: give each problem one matrix in each list",
    ),
    "a list of outputs of another length": (
        lambda a, b: grouped_gemm(a, b, out=[]),
        "lists of different length: 2 matrices a, 2 matrices b, 0 matrices out\n"
        "  help: give each problem one matrix in each list",
    ),
    "one matrix": (
        lambda a, b: grouped_gemm(a[0], b[0]),
        "`a` is a ndarray, not a list of matrices\n"
        "  help: grouped_gemm takes one matrix for each problem; gemm takes a single matrix, or a batch",
    ),
    "lists of numbers": (
        lambda a, b: grouped_gemm([[1.0, 2.0]], [[3.0], [4.0]]),
        "`a` is a list of lists, not of matrices\n"
        "  help: a list of arrays means many products; for a single product pass np.array(a, np.float16)",
    ),
    "sizes that do not meet": (
        lambda a, b: grouped_gemm(a, [b[0], ones(3, 6)]),
        "`a[1]` has the shape (5, 6) and `b[1]` (3, 6): 6 columns meet 3 rows\n"
        "  help: pass a[i] of (M, K) and b[i] of (K, N); a transpose is a[i].T",
    ),
    "mixed types": (
        lambda a, b: grouped_gemm([a[0], a[1].astype(np.float32)], b),
        "`a[1]` is float32 and `a[0]` float16; all matrices of a list must have one type\n"
        "  help: convert them before, or call grouped_gemm once per type",
    ),
    "inputs of two types": (
        lambda a, b: grouped_gemm(a, [x.astype(np.float32) for x in b]),
        "`a` is float16 and `b` is float32\n"
        "  help: grouped_gemm takes two lists of one type, float16, bfloat16, float32, float64, int8, uint8, "
        "float8_e4m3fn or float8_e5m2",
    ),
    "mixed orders": (
        lambda a, b: grouped_gemm([a[0], np.asfortranarray(a[1])], b),
        "`a[0]` is row-major and `a[1]` column-major; all matrices of a list must have one order\n"
        "  help: copy some into the order of the others, or call grouped_gemm once per order",
    ),
    "gaps": (
        lambda a, b: grouped_gemm([a[0], ones(5, 12)[:, ::2]], b),
        "`a[1]` has the shape (5, 6) and strides of (12, 2) elements: not row- nor column-major\n"
        "  help: one stride must be 1 and the other at least that dimension's length; make a contiguous copy of it",
    ),
    "a vector": (
        lambda a, b: grouped_gemm([a[0], a[1][0]], b),
        "`a[1]` has the shape (6,); a matrix has two dimensions\n  help: reshape it",
    ),
    "no array": (
        lambda a, b: grouped_gemm([a[0], [1.0]], b),
        "`a[1]` is of type list, not an array\n  help: pass numpy arrays, or CUDA arrays of torch, CuPy or JAX",
    ),
    "beta without c": (
        lambda a, b: grouped_gemm(a, b, beta=1.0),
        "beta is 1, and `c` is not given\n  help: pass the arrays that beta multiplies as c=",
    ),
    "an output of another shape": (
        lambda a, b: grouped_gemm(a, b, out=[ones(4, 8), ones(5, 4)]),
        "`out[1]` has the shape (5, 4); a[1]@b[1] has (5, 3)\n  help: pass `out[1]` of that shape",
    ),
    "an output of a wrong type": (
        lambda a, b: grouped_gemm(a, b, out=[ones(4, 8, dtype=np.int32), ones(5, 3, dtype=np.int32)]),
        "`out` is int32; for float16 inputs grouped_gemm writes float16, bfloat16, float32, "
        "float8_e4m3fn, float8_e5m2\n"
        "  help: pass one of these, and convert it afterwards",
    ),
    "c and out of two types": (
        lambda a, b: grouped_gemm(a, b, [ones(4, 8, dtype=np.float32), ones(5, 3, dtype=np.float32)], beta=1.0),
        "`c` is float32 and `out` float16; they must have one type\n  help: convert c before",
    ),
    "c and out in two orders": (
        lambda a, b: grouped_gemm(a, b, [ones(8, 4).T, ones(3, 5).T], beta=1.0),
        "`c` is column-major and `out` row-major; they must have one order\n"
        "  help: copy c into the order of out, or write to it: grouped_gemm(a, b, c, out=c, beta=…)",
    ),
    "an output that is an input": (
        lambda a, b: grouped_gemm([ones(6, 6)] * 2, b2 := [ones(6, 6), ones(6, 6)], out=[ones(6, 6), b2[0]]),
        "`out[1]` shares memory with `b[0]`\n  help: give the output memory of its own; only c[i] may be out[i] itself",
    ),
    "an output twice": (
        lambda a, b: grouped_gemm([ones(6, 6)] * 2, [ones(6, 6)] * 2, out=[ones(6, 6)[:]] * 2),
        "`out[0]` shares memory with `out[1]`\n  help: give the output memory of its own; only c[i] may be out[i] itself",
    ),
    "an output that is read-only": (
        lambda a, b: grouped_gemm(a, b, out=[ones(4, 8), read_only(5, 3)]),
        "`out[1]` is read-only\n  help: pass an array that may be written",
    ),
    "a choice that is none": (
        lambda a, b: grouped_gemm(a, b, sort="k"),
        "`sort` is 'k'\n  help: pass True or False",
    ),
    "an unknown schedule": (
        lambda a, b: grouped_gemm(a, b, schedule="gpu"),
        "schedule is 'gpu'\n  help: take \"device\" or \"host\"",
    ),
    "an unknown balance": (
        lambda a, b: grouped_gemm(a, b, schedule="host", balance="m"),
        "balance is 'm'\n  help: take \"k\", or leave it out",
    ),
    "a balance that the kernel cannot find": (
        lambda a, b: grouped_gemm(a, b, balance="k"),
        'balance="k" with schedule="device": only the host can compute equal shares of K\n'
        '  help: pass schedule="host", or leave balance out',
    ),
}  # fmt: skip

ALONE = "tiles of grouped products are dealt to persistent blocks"
SHARED = 'grouped_gemm(…, schedule="host", balance="k") shares a long K'
CONFIGURATIONS = {
    "no configuration": ("large", "`config` is 'large'\n  help: pass a GemmConfig, such as GemmConfig(tile=(64, 64, 32)), or None to have it chosen; "
        'all but gradients of convolutions take "tune" too, which times tiles'),
    "a schedule": (
        GemmConfig(schedule=HorizontalThreadblockSwizzle()),
        f"`config` says that schedule is HorizontalThreadblockSwizzle(); {ALONE}\n"
        f"  help: leave schedule out of the GemmConfig; {SHARED}",
    ),
    "a split of K": (
        GemmConfig(split_k=2),
        f"`config` says that split_k is 2; {ALONE}\n  help: leave split_k out of the GemmConfig; {SHARED}",
    ),
    "a reduction": (
        GemmConfig(reduction="serial"),
        f"`config` says that reduction is 'serial'; {ALONE}\n  help: leave reduction out of the GemmConfig; {SHARED}",
    ),
}  # fmt: skip
CALLS = {
    "grouped": lambda config: grouped_gemm(*lists(), config=config),
    "ragged": lambda config: ragged(config=config),
    "masked": lambda config: masked(config=config),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_configurations_of_one_product_are_refused(case, call):
    config, text = CONFIGURATIONS[case]
    with pytest.raises(pd.LaunchError) as refused:
        CALLS[call](config)
    assert words(refused.value) == text


@pytest.mark.parametrize("call", CALLS)
def test_a_configuration_that_no_block_can_have_is_refused(call):
    with pytest.raises(pd.LaunchError) as refused:
        CALLS[call](GemmConfig(stages=40))
    assert words(refused.value) == (
        "GemmConfig: 40 stages of 16384 bytes take 664576 bytes of shared memory; a block of sm_80 has 166912\n"
        "  help: take a smaller tile or fewer stages; on the emulator, PTXDSL_ARCH says of which GPU"
    )


@pytest.mark.parametrize("case", REFUSALS)
def test_lists_that_do_not_fit_are_refused(case):
    call, text = REFUSALS[case]
    with pytest.raises(pd.LaunchError) as refused:
        call(*lists())
    assert words(refused.value) == text


class OnGpu:
    """What the CUDA array interface says of a matrix that nobody reads."""

    def __init__(self, shape, pointer=1 << 20, strides=None, kind="<f2"):
        data = {"shape": shape, "typestr": kind, "data": (pointer, False), "version": 3, "strides": strides}
        self.__cuda_array_interface__ = data


def test_a_null_address_is_refused():
    with pytest.raises(pd.LaunchError) as refused:
        grouped_gemm([OnGpu((4, 6), 0)], [OnGpu((6, 8))], out=[OnGpu((4, 8))])
    assert words(refused.value) == (
        "`a[0]` has the shape (4, 6) and a null address\n  help: pass an array with memory of its own"
    )


def test_an_odd_address_is_refused():
    odd = np.zeros(129, np.uint8)[1:].view(np.float16).reshape(8, 8)
    with pytest.raises(pd.LaunchError) as refused:
        grouped_gemm([ones(8, 8), odd], [ones(8, 8)] * 2)
    assert words(refused.value) == (
        f"`a[1]` begins at the address {odd.ctypes.data:#x}, which is not a multiple of its 2-byte element size\n"
        "  help: make a copy of it: a GPU reads aligned elements only"
    )


def test_an_extent_past_31_bits_is_refused():
    long = np.lib.stride_tricks.as_strided(ones(1), (2**31, 1), (2, 2))
    with pytest.raises(pd.LaunchError) as refused:
        grouped_gemm([long], [ones(1, 1)])
    assert words(refused.value) == (
        "`a[0]` has the shape (2147483648, 1); an extent may be up to 2147483647\n  help: compute it in parts"
    )


def test_too_many_tiles_are_refused():
    side = 16 * 2**16
    a, b, out = OnGpu((side, 1), 1 << 40), OnGpu((1, side), 1 << 41), OnGpu((side, side), 1 << 44)
    with pytest.raises(pd.ScheduleError) as refused:
        assign_tiles(np.array([[side, side, 1]]).tobytes(), TINY.tile, 132, "device", False)
    assert words(refused.value) == (
        "1 problems have 4294967296 tiles, more than 2**31\n  help: take larger tiles, or compute the problems in parts"
    )
    assert problem_group([a], [b], None, [out], (1.0, 0.0)).shapes.tolist() == [[side, side, 1]]


def test_arrays_of_two_devices_are_refused():
    one, other = (SimpleNamespace(name=name, device=device) for name, device in (("a", 0), ("out", 1)))
    with pytest.raises(pd.LaunchError) as refused:
        group.check_devices([one, other])
    assert words(refused.value) == (
        "`a` is on cuda:0 and `out` on cuda:1\n  help: one launch runs on one GPU: move the arrays there"
    )
    with pytest.raises(pd.LaunchError) as refused:
        grouped_gemm([ones(4, 6), OnGpu((4, 6))], [ones(6, 8)] * 2)
    assert words(refused.value) == (
        "`a[1]` is on cuda:0 and `a[0]` on the host\n"
        "  help: one launch runs on one GPU: move the arrays there, or call grouped_gemm once per GPU"
    )


@pytest.mark.parametrize("last", [ones(5, 4), read_only(5, 3)], ids=["another shape", "read-only"])
def test_nothing_is_written_by_a_call_that_is_refused(last):
    a, b = lists()
    out = [np.full((4, 8), 7, np.float16), last]
    with pytest.raises(pd.LaunchError):
        grouped_gemm(a, b, out=out)
    assert (out[0] == 7).all() and (last == 1).all()


def test_numpy_booleans_are_choices():
    a, b = lists()
    assert all((x == 6).all() for x in grouped_gemm(a, b, sort=np.True_))
    assert (ragged(validate=np.True_) == 6).all() and (masked(validate=np.False_)[1] == 6).all()


def ragged(rows=10, k=6, n=8, ends=(3, 10), a=None, b=None, offsets=None, **options):
    a = ones(rows, k) if a is None else a
    b = ones(len(ends), k, n) if b is None else b
    return grouped_gemm_ragged(a, b, np.array(ends, np.int32) if offsets is None else offsets, **options)


def shared_with_sizes(call, *shape):
    """A call whose sizes lie in its output."""
    memory = np.zeros(200, np.float16)
    names = {ragged: "offsets", masked: "counts"}
    sizes = memory[:4].view(np.int32)
    return call(**{names[call]: sizes}, out=memory[: np.prod(shape)].reshape(shape))


def masked(**options):
    return grouped_gemm_masked(
        options.pop("a", ones(2, 5, 6)), ones(2, 6, 8), options.pop("counts", np.array([1, 5], np.int32)), **options
    )


RAGGED = {
    "a of three dimensions": (
        lambda: ragged(a=ones(1, 10, 6)),
        "`a` has the shape (1, 10, 6); it must have 2 dimensions\n  help: pass `a` of (rows, K)",
    ),
    "b of two dimensions": (
        lambda: ragged(b=ones(6, 8)),
        "`b` has the shape (6, 8); it must have 3 dimensions\n  help: pass `b` of (groups, K, N)",
    ),
    "two types": (
        lambda: ragged(a=ones(10, 6, dtype=np.float32)),
        "`a` is float32 and `b` is float16\n"
        "  help: pass two arrays of one type, one of float16, bfloat16, float32, float64, int8, uint8",
    ),
    "8-bit floats": (
        lambda: ragged(a=ones(10, 6, dtype=NAMES["e5m2"]), b=ones(2, 6, 8, dtype=NAMES["e5m2"])),
        "`a` is float8_e5m2 and `b` is float8_e5m2\n"
        "  help: call scaled_gemm_ragged, with scales of 1 if the matrices have none",
    ),
    "b transposed": (
        lambda: ragged(b=ones(2, 8, 6)),
        "`a` has the shape (10, 6) and `b` (2, 8, 6): 6 columns meet 8 rows\n"
        "  help: pass b of (groups, K, N); for b of (groups, N, K), pass a view with the last two axes exchanged",
    ),
    "offsets of another type": (
        lambda: ragged(offsets=np.array([3, 10])),
        "`offsets` is int64; it takes int32\n  help: convert it before",
    ),
    "offsets of another length": (
        lambda: ragged(offsets=np.array([0, 3, 10], np.int32)),
        "`offsets` has the shape (3,) and strides of (1,) elements; `b` has 2 groups\n"
        "  help: pass 2 contiguous numbers, one per group",
    ),
    "an output of another shape": (
        lambda: ragged(out=ones(10, 9)),
        "`out` has the shape (10, 9); a@b has (10, 8)\n  help: pass `out` of that shape",
    ),
    "an output of a wrong type": (
        lambda: ragged(out=ones(10, 8, dtype=np.int32)),
        "`out` is int32; for float16 inputs it may be float16, bfloat16, float32\n  help: pass one of these, and convert it afterwards",
    ),
    "a column-major output": (
        lambda: ragged(out=ones(8, 10).T),
        "`out` has strides of (1, 10) elements; its rows must be contiguous and must not overlap\n"
        "  help: make a row-major output",
    ),
    "a read-only output": (
        lambda: ragged(out=read_only(10, 8)),
        "`out` is read-only\n  help: pass an array that may be written",
    ),
    "an output that is an input": (
        lambda: ragged(a=(a := ones(10, 6)), b=ones(2, 6, 6), out=a),
        "`out` is written and shares memory with `a`\n  help: give the output memory of its own",
    ),
    "an output in which the offsets lie": (
        lambda: shared_with_sizes(ragged, 10, 8),
        "`out` is written and shares memory with `offsets`\n  help: give the output memory of its own",
    ),
    "an output in which the counts lie": (
        lambda: shared_with_sizes(masked, 2, 5, 8),
        "`out` is written and shares memory with `counts`\n  help: give the output memory of its own",
    ),
    "offsets elsewhere": (
        lambda: ragged(offsets=OnGpu((2,), kind="<i4")),
        "`a` is in host memory and `offsets` on a GPU\n"
        "  help: move one of them to the other; with numpy arrays alone, the kernel runs on the emulator",
    ),
    "a choice that is none": (
        lambda: ragged(validate="x"),
        "`validate` is 'x'\n  help: pass True or False",
    ),
    "a number as a choice": (
        lambda: masked(validate=1),
        "`validate` is 1\n  help: pass True or False",
    ),
    "groups of a and b": (
        lambda: masked(a=ones(3, 5, 6)),
        "`a` has 3 groups and `b` 2\n  help: give each group one matrix in both",
    ),
    "counts of another length": (
        lambda: masked(counts=np.array([1], np.int32)),
        "`counts` has the shape (1,) and strides of (1,) elements; `b` has 2 groups\n"
        "  help: pass 2 contiguous numbers, one per group",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RAGGED)
def test_ragged_arrays_that_do_not_fit_are_refused(case):
    call, text = RAGGED[case]
    with pytest.raises(pd.LaunchError) as refused:
        call()
    assert words(refused.value) == text


def test_too_many_tiles_of_groups_are_refused():
    a, b, offsets = OnGpu((16 * 2**16, 1)), OnGpu((2, 1, 16 * 2**15), 1 << 30), OnGpu((2,), kind="<i4")
    with using(arch="sm_90"), pytest.raises(pd.LaunchError) as refused:
        grouped_gemm_ragged(a, b, offsets, out=OnGpu((16 * 2**16, 16 * 2**15), 1 << 44), config=TINY)
    assert words(refused.value) == (
        "2 groups in 1048576 rows and 524288 columns may have 2147549184 tiles, more than 2**31\n"
        "  help: take larger tiles, or compute the groups in parts"
    )


ENDS = "pass the end of each group; an empty group ends where the previous one does"
COUNTS = "pass the number of valid rows of each matrix, 0 for an empty group"
WRONG = {
    "decreasing": (
        ragged,
        (6, 5),
        f"`offsets[1]` is 5; group 1 takes a number from `offsets[0]`, which is 6, to the 10 rows of `a`\n  help: {ENDS}",
    ),
    "past the rows": (
        ragged,
        (11, 10),
        f"`offsets[0]` is 11; group 0 takes a number from 0 to the 10 rows of `a`\n  help: {ENDS}",
    ),
    "negative": (
        ragged,
        (-1, 10),
        f"`offsets[0]` is -1; group 0 takes a number from 0 to the 10 rows of `a`\n  help: {ENDS}",
    ),
    "a negative count": (
        masked,
        (5, -1),
        f"`counts[1]` is -1; group 1 takes a number from 0 to the 5 rows of each matrix\n  help: {COUNTS}",
    ),
    "more than the rows": (
        masked,
        (0, 6),
        f"`counts[1]` is 6; group 1 takes a number from 0 to the 5 rows of each matrix\n  help: {COUNTS}",
    ),
}
SIZED = {  # with an output for each: the shape, and how the call takes the sizes
    ragged: ((10, 8), lambda sizes: {"offsets": np.array(sizes, np.int32)}),
    masked: ((2, 5, 8), lambda sizes: {"counts": np.array(sizes, np.int32)}),
}


@pytest.mark.parametrize("case", WRONG)
def test_sizes_in_host_memory_are_refused_when_asked(case):
    call, sizes, text = WRONG[case]
    shape, named = SIZED[call]
    out = np.full(shape, np.nan, np.float16)
    with pytest.raises(pd.LaunchError) as refused:
        call(**named(sizes), out=out, validate=True)
    assert words(refused.value) == text and refused.value.at.file == __file__
    assert np.isnan(out).all()


@pytest.mark.parametrize("case", WRONG)
def test_kernels_stop_at_sizes_that_only_they_read(case):
    call, sizes, _ = WRONG[case]
    (shape, _), form = SIZED[call], call.__name__
    out = np.full(shape, np.nan, np.float16)
    groups = ragged_groups(form, ones(*shape[:-1], 6), ones(2, 6, 8), np.array(sizes, np.int32), out)
    with pytest.raises(pd.EmulationError, match="ragged_kernel: the kernel executed a trap, by thread"):
        plan_of(KERNELS, form, groups, grouped(None, request_of(groups, form)), True).run()
    assert np.isnan(out).all()
