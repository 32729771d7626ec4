"""Scaled 8-bit floats along groups of K against numpy in float64, on the emulator and on a GPU, from the same body.

Values are small integers, and scales powers of 2: sums are exact, whatever the accumulators drop.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels import scaled_gemm_ragged_k
from ptxdsl.kernels.call.groups import ragged_k
from ptxdsl.kernels.call.groups.ragged import group_values
from ptxdsl.kernels.call.matrix import Matrix
from ptxdsl.kernels.call.paths.select import grouped
from ptxdsl.kernels.call.scaled import scaled_ragged_k_groups
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import Operands, Scaling
from ptxdsl.kernels.ragged_k import KERNELS, warpgroup_ragged_k_kernel
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.types import bf16, e4m3, f32
from tests.kernels.spills import check_no_spill
from tests.kernels.test_scaled import powers, values
from tests.machines import MACHINES, NAMES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
SCALINGS = "tensors", "rows", "blocks"
every_scaling = pytest.mark.parametrize("scaling", SCALINGS)
LOW, WIDE = GemmConfig((64, 64, 128), stages=2, atom="wgmma"), GemmConfig((128, 192, 128), stages=2, atom="wgmma")
SQUARE = GemmConfig((128, 128, 128), stages=3, atom="wgmma")
OFFSETS, K = (
    [0, 16, 16, 144, 256, 640, 640],
    704,
)  # groups of 0, 16, 0, 128, 112, 384 and 0; those behind begin in blocks


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """With few blocks, each of which has tiles of several groups."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    monkeypatch.setattr(ragged_k, "resident_blocks", lambda *_, **__: 3)


def ends_of(offsets, k):
    """Where groups end: no offset is below the one before it, and those within K are multiples of 16."""
    return np.minimum(-(-np.maximum.accumulate(np.clip(offsets, 0, k)) // 16) * 16, k)


def scales_of(rng, scaling, ends, m, n, k):
    """Scales of a (m, k) and b (k, n). Those that no group has are NaN: nobody reads them."""
    sizes = np.diff(np.append(0, ends))
    blocks = -(-k // 128)
    shapes = {
        "tensors": ((1,), ()),
        "rows": ((len(ends), m, 1), (len(ends), 1, n)),
        "blocks": ((m, blocks), (blocks, n)),
    }
    a, b = [powers(rng, *shape) for shape in shapes[scaling]]
    if scaling == "rows":
        a[sizes == 0], b[sizes == 0] = np.nan, np.nan
    if scaling == "blocks":
        last = -(-ends[-1] // 128) if len(ends) else 0
        a[:, last:], b[last:] = np.nan, np.nan
    return a, b


def reference(a, b, ends, scale_a, scale_b, scaling):
    """What `scaled_gemm_ragged_k` computes."""
    begin, results = 0, []
    for group, end in enumerate(ends):
        x, y = a[:, begin:end].astype(np.float64), b[begin:end].astype(np.float64)
        if scaling == "tensors":
            x, y = x * scale_a.reshape(()), y * scale_b.reshape(())
        elif scaling == "rows" and end > begin:
            x, y = x * scale_a[group], y * scale_b[group]
        elif scaling == "blocks":
            x, y = x * scale_a.repeat(128, axis=1)[:, begin:end], y * scale_b.repeat(128, axis=0)[begin:end]
        results.append(x @ y)
        begin = end
    return results


def check(where, rng, scaling, offsets, m, n, k, *, dtype="e4m3", output="f32", laid_out=lambda x: x, **options):
    a, b = values(rng, m, k, dtype=dtype), values(rng, n, k, dtype=dtype).T
    ends = ends_of(np.array(offsets, np.int32), k)
    if len(ends):
        a[:, ends[-1] :], b[ends[-1] :] = np.nan, np.nan  # K of no group is not read
    scales = [laid_out(x) for x in scales_of(rng, scaling, ends, m, n, k)]
    out = np.full((len(ends), m, n), np.nan).astype(NAMES[output])
    given = [where.array(x) for x in (a, b, np.array(offsets, np.int32), *scales, out)]
    assert scaled_gemm_ragged_k(*given[:5], out=given[5], **options) is given[5]
    exact = reference(a, b, ends, *scales, scaling)
    results = where.values(given[5])
    for group in range(len(ends)):
        assert (results[group] == exact[group].astype(NAMES[output]).astype(np.float64)).all(), group


@every_machine
@every_scaling
@pytest.mark.parametrize("output", ["f32", "bf16", "f16"])
def test_groups_of_any_depth(name, scaling, output, rng):
    check(machine(name), rng, scaling, OFFSETS, 72, 40, K, output=output, config=LOW)


@pytest.mark.exhaustive
@every_machine
@every_scaling
@pytest.mark.parametrize("config, output", [(SQUARE, "f32"), (WIDE, "bf16")])
@pytest.mark.parametrize("m, n", [(129, 193), (65, 130), (1, 1)])
def test_sizes_about_the_ends_of_tiles(name, scaling, config, output, m, n, rng):
    """With odd columns scales of columns are read one by one, and of some tiles one warpgroup has no rows."""
    check(machine(name), rng, scaling, [128, 128, 272], m, n, 272, dtype="e5m2", output=output, config=config)


@pytest.mark.exhaustive
@every_machine
@every_scaling
@pytest.mark.parametrize("lies", ["in place", "separate", "anywhere"])
@pytest.mark.parametrize(
    "config, output", [(LOW, "f32"), (SQUARE, "bf16"), (WIDE, "f16"), (LOW, "e4m3")], ids=["f32", "bf16", "f16", "e4m3"]
)
def test_what_is_added(name, config, output, scaling, lies, rng):
    """C is the output, or lies as it does, or with lines of its own. Beside an output of 8 bits, whose sums are of few
    products here, it has 16."""
    where, (m, n) = machine(name), (72, 136)
    offsets, is_narrow = np.array([0, 16, 16] if output == "e4m3" else OFFSETS, np.int32), output == "e4m3"
    a, b = values(rng, m, K, dtype="e4m3"), values(rng, n, K, dtype="e4m3").T
    ends = ends_of(offsets, K)
    scales = scales_of(rng, scaling, ends, m, n, K)
    wide = rng.integers(-3, 4, (len(ends), m, n + (lies == "anywhere"))).astype(NAMES["f16" if is_narrow else output])
    c = where.array(wide)[:, :, :n]
    before = where.values(c).astype(np.float64)
    out = c if lies == "in place" and not is_narrow else where.array(np.full((len(ends), m, n), 7, NAMES[output]))
    given = [where.array(x) for x in (a, b, offsets, *scales)]
    assert scaled_gemm_ragged_k(*given, c, out=out, alpha=0.5, beta=2, config=config) is out
    results = where.values(out)
    for group, exact in enumerate(reference(a, b, ends, *scales, scaling)):
        expected = (0.5 * exact + 2 * before[group]).astype(np.float32)
        if is_narrow:
            expected = np.clip(expected, -448, 448)
        assert (results[group] == expected.astype(NAMES[output]).astype(np.float64)).all(), group


@pytest.mark.exhaustive
@every_machine
@every_scaling
def test_operands_that_are_copied_before(name, scaling, rng):
    """Transposed, and with lines that tensor copies cannot address."""
    where, (m, n, k), offsets = machine(name), (73, 41, 141), np.array([16, 16, 128, 141], np.int32)
    a, b, ends = rng.integers(-2, 3, (m, k)), rng.integers(-2, 3, (k, n)), ends_of(offsets, k)
    scales = scales_of(rng, scaling, ends, m, n, k)
    exact = reference(a, b, ends, *scales, scaling)
    for of_a, of_b, config in (("F", "C", LOW), ("C", "F", LOW), ("F", "F", None)):
        sides = np.array(a, NAMES["e4m3"], order=of_a), np.array(b, NAMES["e4m3"], order=of_b)
        given = [where.array(x) for x in (*sides, offsets, *scales)]
        results = where.values(scaled_gemm_ragged_k(*given, config=config))
        assert all((result == expected).all() for result, expected in zip(results, exact, strict=True))


@pytest.mark.exhaustive
@every_machine
@every_scaling
def test_random_groups(name, scaling, rng):
    m, n = rng.integers(1, 150, 2)
    sizes = rng.choice([0, 0, 16, 112, 128, 144, 256], int(rng.integers(1, 5)))
    rest = int(rng.integers(0, 40))
    config = [LOW, SQUARE, WIDE, None][rng.integers(4)]
    k = max(int(sizes.sum()) + rest, 1)
    check(machine(name), rng, scaling, np.cumsum(sizes), int(m), int(n), k, config=config)


@pytest.mark.exhaustive
@every_machine
@every_scaling
@pytest.mark.parametrize("k", [1, 15, 17, 127, 129])
def test_the_last_group_ends_at_any_k(name, scaling, k, rng):
    check(machine(name), rng, scaling, [k // 16 * 16, k, k], 9, 10, k, config=LOW, validate=True)


@pytest.mark.exhaustive
@every_machine
@every_scaling
def test_more_groups_than_lanes_and_versions_of_maps(name, scaling, rng):
    check(machine(name), rng, scaling, np.arange(1, 35) * 16, 8, 8, 34 * 16, config=LOW)


@pytest.mark.exhaustive
@every_machine
@every_scaling
def test_no_k_at_all_is_zeros(name, scaling, rng):
    check(machine(name), rng, scaling, [0, 0], 70, 130, 0)


@every_machine
@pytest.mark.parametrize("m, n, offsets", [(0, 5, [16]), (5, 0, [16]), (5, 5, [])])
def test_nothing_to_write(name, m, n, offsets, rng):
    check(machine(name), rng, "rows", offsets, m, n, 32)


@every_machine
@every_scaling
def test_offsets_that_decrease_run_past_k_or_are_between_units(name, scaling, rng):
    check(machine(name), rng, scaling, [-4, 250, 130, 257, 999], 20, 24, 300, config=LOW)


@pytest.mark.exhaustive
@every_machine
def test_scales_of_columns_behind_each_other(name, rng):
    """DeepGEMM has scales of A so, too: rows side by side. Rows of scales of B begin at odd elements here."""

    def laid_out(scale):
        *_, rows, columns = scale.shape
        if rows == 72:
            return np.asfortranarray(scale)
        whole = np.full((rows, columns + 1), np.nan, np.float32)
        whole[:, :columns] = scale
        return whole[:, :columns]

    check(machine(name), rng, "blocks", OFFSETS, 72, 40, K, laid_out=laid_out, config=LOW)


@every_machine
@every_scaling
def test_sums_over_a_long_k_are_added_up_in_float32(name, scaling, rng):
    """They have more bits than tensor cores keep of products of 8-bit floats."""
    where, k = machine(name), 4096
    a, b = np.ones((16, k), NAMES["e4m3"]), np.ones((24, k), NAMES["e4m3"]).T
    b[::128] = 1.125
    scales = {"tensors": ((1,), (1,)), "rows": ((1, 16, 1), (1, 1, 24)), "blocks": ((16, 32), (32, 24))}[scaling]
    ones = [np.ones(shape, np.float32) for shape in scales]
    given = [where.array(x) for x in (a, b, np.array([k], np.int32), *ones)]
    assert (where.values(scaled_gemm_ragged_k(*given, config=LOW)) == k + 4).all()


@every_machine
def test_swapped_tiles_with_scales_of_tensors(name, rng):
    check(machine(name), rng, "tensors", OFFSETS, 72, 40, K, config=replace(LOW, swap_ab=True))


@every_machine
def test_a_call_that_is_remembered_reads_its_offsets_again(name, rng):
    where, a, b = machine(name), values(rng, 20, 64), values(rng, 24, 64).T
    ones = [where.array(np.ones(1, np.float32)) for _ in "ab"]
    x, y = where.array(a), where.array(b)
    for end in (16, 48, 64):
        results = where.values(scaled_gemm_ragged_k(x, y, where.array(np.array([end], np.int32)), *ones))
        assert (results[0] == a[:, :end].astype(np.float64) @ b[:end].astype(np.float64)).all()


def test_memory_of_a_workspace_is_an_address_to_kernels():
    """On a GPU, where K is 0: no array of the caller stands behind it."""
    a = scaled_ragged_k_groups(eights(4, 32), eights(4, 32).T, ONE, ONE, np.zeros(1, np.int32), None).a
    lined = Matrix("a", None, replace(a.array, pointer=4096, owner=None), (4, 1), "row", 16)
    assert group_values(lined).pointer == 4096 and group_values(a).pointer is a


def eights(*shape):
    return np.ones(shape, NAMES["e4m3"])


class TestChoice:
    @pytest.mark.parametrize("m, n", [(64, 8), (4096, 7168)])
    @every_scaling
    def test_tiles_leave_registers_for_products(self, m, n, scaling):
        shapes = {"tensors": ((1,), (1,)), "rows": ((4, m, 1), (4, 1, n)), "blocks": ((m, 64), (64, n))}[scaling]
        scales = (np.ones(shape, np.float32) for shape in shapes)
        groups = scaled_ragged_k_groups(eights(m, 8192), eights(n, 8192).T, *scales, np.zeros(4, np.int32), None)
        assert grouped(None, ragged_k.request_of(groups)).tile[1] <= 192


A, B, ENDS = eights(64, 256), eights(128, 256).T, np.array([128, 256], np.int32)
ONE, HALF = np.ones(1, np.float32), np.ones((64, 256), np.float16)
OF_BLOCKS = np.ones((64, 2), np.float32), np.ones((2, 128), np.float32)
REFUSED = {
    "types": (
        lambda: scaled_gemm_ragged_k(HALF, HALF.T, ENDS, ONE, ONE),
        "`a` and `b` are float16; only float8_e4m3fn or float8_e5m2 matrices have scales",
        "call grouped_gemm_ragged_k of their transposes, whose rows are K",
    ),
    "two types": (
        lambda: scaled_gemm_ragged_k(A, B.astype(NAMES["f16"]), ENDS, ONE, ONE),
        "`a` is float8_e4m3fn and `b` is float16",
        "pass two arrays of one type, one of float8_e4m3fn, float8_e5m2",
    ),
    "rows as K": (
        lambda: scaled_gemm_ragged_k(A, eights(128, 256), ENDS, ONE, ONE),
        "`a` has the shape (64, 256) and `b` (128, 256): 256 columns meet 128 rows",
        "pass a of (M, K) and b of (K, N), with the K of all groups; for b of (N, K), pass the transpose",
    ),
    "a matrix of each group": (
        lambda: scaled_gemm_ragged_k(A[None], B, ENDS, ONE, ONE),
        "`a` has the shape (1, 64, 256); it must have 2 dimensions",
        "pass `a` of (M, K)",
    ),
    "types of offsets": (
        lambda: scaled_gemm_ragged_k(A, B, ENDS.astype(np.int64), ONE, ONE),
        "`offsets` is int64; it takes int32",
        "convert it before",
    ),
    "shapes of scales": (
        lambda: scaled_gemm_ragged_k(A, B, ENDS, np.ones((64, 1), np.float32), np.ones((1, 128), np.float32)),
        "`scale_a` has the shape (64, 1) and `scale_b` (1, 128)",
        "pass one number per tensor; (2, 64, 1) and (2, 1, 128) for rows and columns; or (64, 2) and (2, 128) for "
        "blocks of 128",
    ),
    "scales of columns with gaps": (
        lambda: scaled_gemm_ragged_k(A, B, ENDS, OF_BLOCKS[0], np.ones((128, 2), np.float32).T),
        "`scale_b` has strides of (1, 2) elements; the scales of columns must be contiguous",
        "make a contiguous copy of it",
    ),
    "the output of one group": (
        lambda: scaled_gemm_ragged_k(A, B, ENDS, ONE, ONE, out=np.zeros((1, 64, 128), np.float32)),
        "`out` has the shape (1, 64, 128); a@b has (2, 64, 128)",
        "pass `out` of that shape",
    ),
    "C of 8 bits": (
        lambda: scaled_gemm_ragged_k(
            A, B, ENDS, ONE, ONE, eights(2, 64, 128), out=np.zeros((2, 64, 128), NAMES["e4m3"]), beta=1
        ),
        "`c` is float8_e4m3fn; C must have 16 bits or more",
        "convert it to float16, bfloat16 or float32; `out` may be of 8 bits",
    ),
    "C of another type": (
        lambda: scaled_gemm_ragged_k(A, B, ENDS, ONE, ONE, np.zeros((2, 64, 128), np.float16), beta=1),
        "`c` is float16 and `out` float32; they must have one type",
        "pass an `out` of the type of c, or convert c before",
    ),
    "a factor": (
        lambda: scaled_gemm_ragged_k(A, B, ENDS, ONE, ONE, alpha=1e39),
        "`alpha` is 1e+39; the output is computed in float32, which ends at 3.4e38",
        "scale the matrices before, or multiply float64 ones",
    ),
    "an output that shares memory": (
        lambda: scaled_gemm_ragged_k(A[:, :64], B[:64, :64], ENDS[:1] // 2, ONE, ONE, out=A[None, :, :64]),
        "`out` is written and shares memory with `a`",
        "give the output memory of its own",
    ),
    "a wide tile": (
        lambda: scaled_gemm_ragged_k(A, B, ENDS, *OF_BLOCKS, config=replace(WIDE, tile=(128, 256, 128))),
        "tile is (128, 256, 128); with scales along K its N may be up to 192: a thread holds the partial sums of 128 of "
        "K next to the accumulators of the tile",
        "use a narrower tile",
    ),
    "transposed sums": (
        lambda: scaled_gemm_ragged_k(A, B, ENDS, *OF_BLOCKS, config=replace(LOW, swap_ab=True)),
        "`config` has swap_ab=True; scales of blocks need accumulators that are not transposed",
        "leave swap_ab out, or pass one scale per tensor",
    ),
    "an atom": (
        lambda: scaled_gemm_ragged_k(A, B, ENDS, ONE, ONE, config=GemmConfig()),
        "`config` has atom=''; scaled 8-bit floats are multiplied by wgmma, on sm_90a",
        'pass a GemmConfig with atom="wgmma", or leave config out',
    ),
    "an offset past K": (
        lambda: scaled_gemm_ragged_k(A, B, ENDS + 16, ONE, ONE, validate=True),
        "`offsets[1]` is 272; group 1 takes a number from `offsets[0]`, which is 144, to the 256 columns of `a`",
        "pass the end of each group; an empty group ends where the previous one does",
    ),
    "an offset between units": (
        lambda: scaled_gemm_ragged_k(A, B, ENDS - 8, ONE, ONE, validate=True),
        "`offsets[0]` is 120; a group must end at a multiple of 16, where a TMA load can start, or at the end of K, 256",
        "pad each group with zeros to a multiple of 16",
    ),
    "validate": (
        lambda: scaled_gemm_ragged_k(A, B, ENDS, ONE, ONE, validate=2),
        "`validate` is 2",
        "pass True or False",
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    run, message, help = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        run()
    assert (caught.value.message, caught.value.help) == (message, help)


def test_another_gpu():
    with pd.config.using(arch="sm_90"), pytest.raises(pd.LaunchError) as caught:
        scaled_gemm_ragged_k(A, B, ENDS, ONE, ONE)
    assert caught.value.message == (
        "`a` and `b` are float8_e4m3fn, which are multiplied with scales on sm_90a; the kernel is for sm_90"
    )
    assert caught.value.help == "on the emulator, set PTXDSL_ARCH=sm_90a"


@pytest.mark.parametrize("offsets", [[144, 128], [120, 256], [128, 272]], ids=["decreasing", "between", "past"])
def test_a_kernel_that_validates_stops_at_offsets_that_make_no_sense(offsets):
    out = np.full((2, 64, 128), 7, np.float32)
    groups = scaled_ragged_k_groups(A, B, ONE, ONE, np.array(offsets, np.int32), out)
    plan = ragged_k.plan_of(KERNELS, groups, grouped(LOW, ragged_k.request_of(groups)), validate=True)
    with pytest.raises(pd.EmulationError, match="the kernel executed a trap, by thread"):
        plan.run()
    assert (out == 7).all()


SHIPPED = [(scaling, (m, n), f32, True) for scaling in SCALINGS for m, n in ((128, 192), (128, 128), (64, 128))]
SHIPPED += [("blocks", (128, n), bf16, in_pairs) for n in (192, 160, 128) for in_pairs in (False, True)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("c", ["none", "in place"])
@pytest.mark.parametrize("scaling, tile, output, in_pairs", SHIPPED)
def test_kernels_spill_nothing(scaling, tile, output, in_pairs, c):
    scales = {"scaling": Scaling(scaling), "scale_bytes": 8 if in_pairs else 4}
    operands = Operands(e4m3, output, batches="strided", out_boxes=output is bf16, c=c, **scales)
    traits = WarpgroupTraits(WarpgroupTiling((*tile, 128), 3), operands, AHEAD)
    check_no_spill(warpgroup_ragged_k_kernel, traits)
