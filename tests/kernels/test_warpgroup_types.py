"""gemm() of 8-bit types and tf32 on the sm_90a path, on the emulator and on a GPU, from the same body.

Integers, and floats that are small integers, are exact: whatever the accumulators drop, they drop nothing of these.
"""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.matrix import matrix
from ptxdsl.kernels.call.products import copies
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column
from ptxdsl.kernels.gemm import gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_ragged
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.stages import stages_of
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.persistent import Persistent, Strips
from ptxdsl.schedule import PersistentScheduler, StreamKThreadblockSwizzle
from ptxdsl.types import TYPES
from tests.kernels.placed import zeros
from tests.kernels.spills import check_no_spill
from tests.kernels.test_schedules import few_blocks
from tests.machines import MACHINES, NAMES, machine

__all__ = ["few_blocks"]  # a fixture for all tests here
FLOATS, INTEGERS, FP8 = ("f32", "f16", "bf16"), ("s32", "f32", "f16", "bf16"), ("e4m3", "e5m2")
OUTPUTS = {"f32": FLOATS, "e4m3": FLOATS, "e5m2": FLOATS, "s8": INTEGERS, "u8": INTEGERS}
PAIRS = [(inputs, output) for inputs in ("f32", "e4m3", "s8") for output in OUTPUTS[inputs]]
PAIRS += [("u8", "s32"), ("e5m2", "f32")]
RANGES = {"s8": (-128, 128), "u8": (0, 256)}
SMALL = (-3, 4)  # integers that all types hold, and whose sums here float16 holds
PERSISTENT = PersistentScheduler(max_swizzle=2)
TRUNCATED = 2.0**-10  # of a float32, at most, that wgmma reads as tf32
# Of fp8, relative to the largest product or sum of an instruction: what each of its 33 terms may lose on a GPU
DROPPED = 33 * 2.0**-13
every_machine = pytest.mark.parametrize("name", MACHINES)
every_input = pytest.mark.parametrize("inputs", OUTPUTS)


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")


def tiles(inputs, m=64, n=64, **more):
    depth = 128 // TYPES[inputs].bytes
    return GemmConfig(tile=(m, n, depth), stages=3, atom="wgmma", **{"schedule": PERSISTENT, **more})


def integers(rng, shape, name, bounds=SMALL, order="row"):
    """Integers in rows, or columns, that begin at multiples of 16 bytes."""
    lines, length = shape if order == "row" else shape[::-1]
    padded = length + -length % 16
    values = rng.integers(max(bounds[0], 0) if name == "u8" else bounds[0], bounds[1], (lines, padded))
    view = values.astype(NAMES[name])[:, :length]
    return view if order == "row" else view.T


def operands(rng, sizes, inputs, bounds=SMALL):
    m, n, k = sizes
    return integers(rng, (m, k), inputs, bounds), integers(rng, (k, n), inputs, bounds, "column")


def exact(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


@every_machine
@pytest.mark.parametrize("inputs, output", PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_every_output_with_alpha_beta_and_c(name, inputs, output, rng):
    where, (a, b) = machine(name), operands(rng, (70, 72, 136), inputs)
    c = integers(rng, (70, 72), output)
    alpha, beta = (2, -3) if output == "s32" else (0.5, -1)
    expected = (alpha * exact(a, b) + beta * c.astype(np.float64)).astype(NAMES[output])
    given = where.array(c)
    result = gemm(where.array(a), where.array(b), given, out=given, alpha=alpha, beta=beta, config=tiles(inputs))
    assert np.array_equal(where.values(result), expected.astype(np.float64))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("output", FP8)
@pytest.mark.parametrize("inputs", FP8)
def test_8_bit_outputs_are_rounded_once_and_saturate(name, inputs, output, order, rng):
    """Of sums that alpha makes so large that most of them are rounded, and some lie behind the largest number."""
    where, out_type, most = machine(name), NAMES[output], float(ml_dtypes.finfo(NAMES[output]).max)
    alpha = most / 256
    for m, n, k in ((70, 72, 520), (1, 40, 512), (130, 33, 16), (64, 1, 130)):
        a, b = operands(rng, (m, n, k), inputs)
        out = where.array(np.full((m, n), np.nan, out_type, "C" if order == "row" else "F"))
        result = gemm(where.array(a), where.array(b), out=out, alpha=alpha, config=tiles(inputs))
        expected = alpha * exact(a, b)
        assert k < 512 or m == 1 or np.abs(expected).max() > most
        assert np.array_equal(where.values(result), np.clip(expected, -most, most).astype(out_type).astype(np.float64))


class TestNoK:
    """Of 8-bit floats, and of outputs of them: sums are 0, whatever is made of them."""

    @every_machine
    @pytest.mark.parametrize("order", ["row", "column"])
    @pytest.mark.parametrize("inputs, output", [("e4m3", "f32"), ("e5m2", "bf16"), ("e4m3", "e5m2"), ("f16", "e4m3")])
    def test_beta_c_and_the_epilogue_remain(self, name, inputs, output, order, rng):
        where, (a, b) = machine(name), operands(rng, (70, 72, 0), inputs)
        c = integers(rng, (70, 72), "f16" if output in FP8 else output)
        bias = where.array(np.arange(72, dtype=np.float32))
        options = {"beta": 2.0, "epilogue": add_relu, "operands": [per_column(bias)]}
        expected = np.maximum(2 * c.astype(np.float64) + np.arange(72), 0).astype(np.float32).astype(NAMES[output])
        given = [where.array(x) for x in (a, b, c)]
        for _ in range(2):  # the second call of a GPU is remembered
            out = where.array(np.full((70, 72), np.nan, NAMES[output], "C" if order == "row" else "F"))
            assert gemm(*given, out=out, **options) is out
            assert np.array_equal(where.values(out), expected.astype(np.float64))

    @every_machine
    @pytest.mark.parametrize(
        "more", [{}, {"split_k": 2}, {"split_k": 3, "reduction": "cluster"}, {"swap_ab": True}], ids=str
    )
    @pytest.mark.parametrize("m, n", [(1, 1), (70, 200)])
    def test_tiles_that_are_said(self, name, m, n, more):
        where = machine(name)
        a, b = where.array(np.zeros((m, 0), NAMES["e4m3"])), where.array(np.zeros((0, n), NAMES["e5m2"]))
        out = where.array(np.full((m, n), np.nan, np.float32))
        config = GemmConfig((64, 64, 128), stages=3, atom="wgmma", **more)
        assert (where.values(gemm(a, b, out=out, config=config)) == 0).all()

    @every_machine
    @pytest.mark.parametrize("shapes", [((3, 40, 0), (3, 0, 24)), ((40, 0), (3, 0, 24)), ((3, 40, 0), (0, 24))])
    def test_batches(self, name, shapes):
        where = machine(name)
        a, b = (where.array(np.zeros(shape, NAMES["e4m3"])) for shape in shapes)
        out = where.array(np.full((3, 40, 24), np.nan, np.float32))
        assert (where.values(gemm(a, b, out=out)) == 0).all()

    def test_memory_of_a_workspace_stands_for_matrices(self, monkeypatch):
        """On a GPU: lines that tensor copies bring, and that nothing copies before."""
        monkeypatch.setattr(copies, "room", lambda *_: 4096)
        old = matrix("a", np.zeros((3, 70, 0), np.float16), batched=True)
        new = copies.zeros(old, (0, 0))
        assert (new.pointer, new.shape, new.batches, new.stride) == (4096, (70, 1), None, 16)
        assert new.is_mappable and new.is_sector_aligned


@every_machine
@pytest.mark.parametrize("config", ["ping-pong", "swapped", "cluster", "stagger", "chosen"])
def test_8_bit_outputs_of_all_tilings(name, config, rng):
    """None of them is stored in boxes, whatever its lines: they have 16 bits."""
    more = {"stages": 3, "atom": "wgmma"}
    config = {
        "ping-pong": GemmConfig((128, 48, 128), pingpong=True, schedule=Strips(), **more),
        "swapped": GemmConfig((16, 64, 128), swap_ab=True, schedule=PERSISTENT, **more),
        "cluster": GemmConfig((64, 64, 128), split_k=2, reduction="cluster", **more),
        "stagger": GemmConfig((128, 64, 128), stagger=2, schedule=Strips(), **more),
        "chosen": None,
    }[config]
    where, (a, b) = machine(name), operands(rng, (150, 112, 272), "e4m3")
    bias = rng.integers(-8, 9, 112).astype(np.float16)
    out = where.array(np.full((150, 112), np.nan, NAMES["e4m3"]))
    vectors = [per_column(where.array(bias))]
    result = gemm(where.array(a), where.array(b), out=out, config=config, epilogue=add_relu, operands=vectors)
    expected = np.minimum(np.maximum(exact(a, b) + bias.astype(np.float64), 0), 448.0)
    assert np.array_equal(where.values(result), expected.astype(NAMES["e4m3"]).astype(np.float64))


@every_machine
@pytest.mark.parametrize("inputs, order", [*((inputs, "row") for inputs in OUTPUTS), ("e4m3", "column")])
def test_sizes_around_the_tiles_and_a_ring_that_goes_round(name, inputs, order, rng):
    where, line = machine(name), 128 // TYPES[inputs].bytes
    for _ in range(1 if name == "emulator" else 12):
        m, n, k = int(rng.choice([1, 63, 65, 130])), int(rng.choice([2, 40, 96, 97])), int(rng.choice([1, 4, 5])) * line
        a, b = operands(rng, (m, n, k + int(rng.choice([-1, 0, 1]))), inputs)
        out = where.array(integers(rng, (m, n), "f32", order=order))
        result = gemm(where.array(a), where.array(b), out=out, config=tiles(inputs, 128, 48))
        assert np.array_equal(where.values(result), exact(a, b))


@every_machine
@pytest.mark.parametrize("inputs", RANGES)
def test_integers_of_all_values(name, inputs, rng):
    where, (a, b) = machine(name), operands(rng, (66, 34, 300), inputs, RANGES[inputs])
    result = gemm(where.array(a), where.array(b), config=tiles(inputs))
    assert np.array_equal(where.values(result), exact(a, b))


@every_machine
def test_sums_of_integers_wrap(name):
    where, a = machine(name), np.full((2, 128), 255, np.uint8)
    scaled = gemm(where.array(a), where.array(a).T, alpha=10**3, config=tiles("u8", n=16))
    assert (where.values(scaled) == 10**3 * 255 * 255 * 128 - 2 * 2**32).all()


@every_machine
@pytest.mark.parametrize("inputs", ["f32", "e4m3", "e5m2"])
def test_normal_numbers(name, inputs, rng):
    where, (m, n, k) = machine(name), (66, 80, 256)
    a, b = (rng.standard_normal(shape).astype(NAMES[inputs]) for shape in ((m, k), (n, k)))
    result = where.values(gemm(where.array(a), where.array(b).T, config=tiles(inputs)))
    x, y = a.astype(np.float64), b.astype(np.float64).T
    scale = np.abs(x) @ np.abs(y)
    steps = k * TYPES[inputs].bytes / 32
    dropped = 2 * TRUNCATED * scale if inputs == "f32" else 0
    if inputs != "f32" and name == "gpu":
        largest = np.abs(x[:, :, np.newaxis] * y).max(axis=1)
        dropped = steps * DROPPED * np.maximum(largest, 4 * np.sqrt(k))
    assert np.all(np.abs(result - x @ y) <= dropped + (steps + 2) * 2.0**-21 * scale)


@every_machine
def test_float32_loses_its_low_bits(name, rng):
    """Products with 1 show what the tensor cores read: unlike those of mma.sync here, numbers cut off."""
    where, a = machine(name), np.zeros((64, 32), np.float32)
    a[:, 0] = rng.standard_normal(64)
    a[:4, 0] = 1 + 2.0**-11, -1 - 2.0**-11, 1.9999, np.inf
    expected = (a[:, :1].view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    b = np.zeros((16, 32), np.float32)
    b[:, 0] = 1
    result = where.values(gemm(where.array(a), where.array(b).T, config=tiles("f32")))
    assert np.array_equal(result[:3], np.broadcast_to(expected[:3], (3, 16)))
    assert np.array_equal(result[4:], np.broadcast_to(expected[4:], (60, 16)))
    assert np.isinf(result[3]).all()


@every_machine
@pytest.mark.parametrize("inputs", ["s8", "e4m3"])
def test_batches_with_an_operand_of_the_epilogue(name, inputs, rng):
    where, output = machine(name), "s32" if inputs == "s8" else "f16"
    a, b = (rng.integers(-3, 4, shape).astype(NAMES[inputs]) for shape in ((2, 70, 144), (2, 40, 144)))
    bias, out = rng.integers(-30, 30, 40).astype(NAMES[output]), np.zeros((2, 70, 40), NAMES[output])
    how = {"epilogue": add_relu, "operands": [per_column(where.array(bias))], "config": tiles(inputs)}
    turned = where.array(b).transpose(1, 2) if name == "gpu" else b.transpose(0, 2, 1)
    result = where.values(gemm(where.array(a), turned, out=where.array(out), **how))
    expected = exact(a, b.transpose(0, 2, 1)) + bias.astype(np.float64)
    assert np.array_equal(result, np.maximum(expected, 0))


@every_machine
@pytest.mark.parametrize("m, n, order", [(5, 1, "row"), (1, 1, "row"), (1, 6, "column")])
def test_fp8_vectors_lie_along_k_either_way(name, m, n, order, rng):
    where, k = machine(name), 33 if m == n else 48
    a, b = (rng.integers(-3, 4, shape).astype(NAMES["e4m3"]) for shape in ((m, k), (n, k)))
    column = where.array(b.reshape(k, 1) if n == 1 else b.T)
    out = where.array(np.zeros((m, n), np.float32, "C" if order == "row" else "F"))
    assert np.array_equal(where.values(gemm(where.array(a), column, out=out)), exact(a, b.T))


@every_machine
@pytest.mark.parametrize("inputs", ["s8", "f32"])
def test_groups_of_rows(name, inputs, rng):
    where, ends = machine(name), np.array([10, 75, 80], np.int32)
    a, b = (rng.integers(-3, 4, shape).astype(NAMES[inputs]) for shape in ((80, 144), (3, 48, 144)))
    turned = where.array(b).transpose(1, 2) if name == "gpu" else b.transpose(0, 2, 1)
    config = GemmConfig(tile=tiles(inputs, 64, 48).tile, stages=3, atom="wgmma")
    result = where.values(grouped_gemm_ragged(where.array(a), turned, where.array(ends), config=config))
    of_row = np.searchsorted(ends, np.arange(80), side="right")
    expected = np.einsum("mk,mnk->mn", a.astype(np.float64), b.astype(np.float64)[of_row])
    assert np.array_equal(result, expected)


CHOSEN = [
    ("f32", "f32", "none"), ("s8", "s32", "separate"), ("u8", "bf16", "none"), ("e4m3", "f32", "none"),
    ("e5m2", "f16", "separate"),
]  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("inputs, output, c", CHOSEN, ids="-".join)
def test_kernels_that_are_chosen_spill_nothing(inputs, output, c):
    tile = (128, 256, 128 // TYPES[inputs].bytes)
    operands = Operands(TYPES[inputs], TYPES[output], c=c, out_boxes=output == "bf16")
    traits = WarpgroupTraits(WarpgroupTiling(tile, stages_of(tile, operands)), operands, Persistent(PERSISTENT))
    check_no_spill(warpgroup_gemm_kernel, traits)


class TestChoice:
    def chosen(self, inputs, m, n, k, orders=("C", "F")):
        a, b = np.zeros((m, k), NAMES[inputs], orders[0]), np.zeros((k, n), NAMES[inputs], orders[1])
        return GemmPlanner(problem_of(a, b, None, None, 0.0), GemmOptions()).traits()

    @every_input
    def test_large_products_go_by_warpgroups(self, inputs):
        """But for float32, whose low bits they would lose, as it lies: of copies that are rounded it does."""
        assert isinstance(self.chosen(inputs, 4096, 4096, 4096), WarpgroupTraits) == (inputs != "f32")

    @pytest.mark.parametrize("orders", ["CC", "FF", "FC"])
    @pytest.mark.parametrize("inputs", ["f32", "s8", "u8"])
    def test_matrices_that_are_not_contiguous_along_k_go_another_way(self, inputs, orders):
        assert not isinstance(self.chosen(inputs, 2048, 4096, 512, orders), WarpgroupTraits)

    def test_fp8_of_any_size_goes_by_warpgroups(self):
        assert isinstance(self.chosen("e4m3", 1, 2, 16), WarpgroupTraits)


class TestTileThatIsLeftOut:
    """By a caller who chooses wgmma: gemm chooses all, or of what says more, the largest where that should take less
    time."""

    BARE = GemmConfig(atom="wgmma")
    OF_FOUR = GemmConfig(atom="wgmma", stages=4, stagger=1)

    def traits(self, inputs, size, **choice):
        a, b = zeros(size, size, NAMES[inputs]), zeros(size, size, NAMES[inputs]).T
        return GemmPlanner(problem_of(a, b, None, None, 0.0), GemmOptions(**{"config": self.BARE, **choice})).traits()

    @pytest.mark.parametrize("size", [128, 1024, 4096])
    @pytest.mark.parametrize("inputs", ["bf16", "e4m3"])
    def test_nothing_else_is_said(self, inputs, size):
        assert self.traits(inputs, size) == self.traits(inputs, size, config=None)

    def test_nothing_else_is_said_of_float32(self):
        large, small = self.traits("f32", 4096).tiling, self.traits("f32", 256).tiling
        assert (large.tile, large.stages, large.stagger) == ((128, 256, 32), 4, 3) and small.tile[:2] < (128, 128)

    @pytest.mark.parametrize(("size", "columns"), [(512, 128), (1024, 128), (2048, 256), (4096, 256)])
    @pytest.mark.parametrize("inputs", ["f32", "bf16", "e4m3"])
    def test_it_goes_with_the_size(self, inputs, size, columns):
        """With as many stages as fit beside the largest."""
        traits = self.traits(inputs, size, config=self.OF_FOUR)
        assert (traits.tile, traits.tiling.stages) == ((128, columns, 128 // TYPES[inputs].bytes), 4)
        assert type(traits.tile) is tuple
        largest = (128, 256, 128 // TYPES[inputs].bytes)
        assert stages_of(largest, traits.operands, schedule=traits.schedule) == 4

    def test_a_tile_that_is_named_stays(self):
        named = GemmConfig(tile=(128, 128, 32), atom="wgmma")
        assert self.traits("f32", 4096, config=named).tile == (128, 128, 32)
        assert named != self.BARE == GemmConfig(atom="wgmma") and GemmConfig() == GemmConfig(tile=(128, 128, 32))
        assert replace(self.BARE, stages=3) == GemmConfig(stages=3, atom="wgmma") != replace(named, stages=3)

    @pytest.mark.parametrize(
        "more",
        [{"split_k": 2}, {"schedule": StreamKThreadblockSwizzle()}, {"swap_ab": True}, {"pingpong": True}],
        ids=str,
    )
    def test_sums_leave_room_for_what_is_done_with_them(self, more):
        traits = self.traits("f32", 4096, config=GemmConfig(atom="wgmma", **more))
        assert traits.tile == (128, 128, 32) and type(traits.tile) is tuple

    @every_machine
    @pytest.mark.parametrize("inputs", ["f32", "s8"])
    def test_it_computes(self, name, inputs, rng):
        where, (a, b) = machine(name), operands(rng, (130, 150, 72), inputs)
        assert np.array_equal(where.values(gemm(where.array(a), where.array(b), config=self.BARE)), exact(a, b))


A = {inputs: np.zeros((64, 64), NAMES[inputs]) for inputs in ("f32", "s8", "e4m3", "e5m2")}
OF_FP8 = "`a` and `b` are float8_e4m3fn, which"
REFUSED = {
    "lines": (
        lambda: gemm(A["s8"][:, :33].copy(), A["s8"].T[:33], config=tiles("s8")),
        "`a` has a leading dimension of 33 bytes and the address ",
        "pad its leading dimension, or leave atom out: then they are loaded without TMA",
    ),
    "c of fp8": (
        lambda: gemm(A["e4m3"], A["e4m3"].T, A["e4m3"], out=A["e4m3"].copy(), beta=1),
        "`c` is float8_e4m3fn; C must have 16 bits or more",
        "convert it to float16, bfloat16 or float32; `out` may be of 8 bits",
    ),
    "tiles of warps": (
        lambda: gemm(A["e4m3"], A["e4m3"].T, config=GemmConfig()),
        'GemmConfig: the tiles are those of mma.sync, which does not multiply e4m3; with atom="wgmma" sm_90a does',
        None,
    ),
    "K of the tile": (
        lambda: gemm(A["s8"], A["s8"].T, config=tiles("f32")),
        "GemmConfig: tile is (64, 64, 32); with wgmma its K is 128, 128 bytes of a line",
        None,
    ),
    "two types": (
        lambda: gemm(A["e4m3"], A["s8"].T),
        "`a` is float8_e4m3fn and `b` is int8",
        "gemm takes two matrices of one type, float16, bfloat16, float32, float64, int8, uint8, float8_e4m3fn or "
        "float8_e5m2; convert them before",
    ),
    "groups of two types": (
        lambda: grouped_gemm([A["e4m3"]], [A["e5m2"].T]),
        "`a` is float8_e4m3fn and `b` is float8_e5m2",
        "grouped_gemm takes two lists of one type, float16, bfloat16, float32, float64, int8, uint8, float8_e4m3fn or "
        "float8_e5m2",
    ),
    "a table of the host": (
        lambda: grouped_gemm([A["e4m3"]], [A["e4m3"].T], schedule="host"),
        f"{OF_FP8} takes wgmma, whose tiles are assigned dynamically",
        'pass schedule="device", without balance',
    ),
    "groups without K": (
        lambda: grouped_gemm([A["e4m3"], A["e4m3"][:, :0]], [A["e4m3"].T, A["e4m3"].T[:0]]),
        f"{OF_FP8} takes wgmma, and problem 1 has nothing to multiply: its K or alpha is 0",
        "leave these problems out, and scale their c by beta",
    ),
    "groups along N": (
        lambda: grouped_gemm([A["e4m3"]], [A["e4m3"]]),
        "matrices of `b` are not K-major, as wgmma needs float8_e4m3fn operands to be",
        "pass row-major `a` and column-major `b`",
    ),
    "groups whose c is of fp8": (
        lambda: grouped_gemm([A["e4m3"]], [A["e4m3"].T], [A["e4m3"]], out=[A["e4m3"].copy()], beta=1),
        "`c` is float8_e4m3fn; C must have 16 bits or more",
        "leave c out, or write to an `out` of float16",
    ),
    "groups by tiles of warps": (
        lambda: grouped_gemm([A["e4m3"]], [A["e4m3"].T], config=GemmConfig()),
        'GemmConfig: the tiles are those of mma.sync, which does not multiply e4m3; with atom="wgmma" sm_90a does',
        None,
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    call, message, help = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        call()
    assert caught.value.message.startswith(message)
    assert caught.value.help == help


def test_fp8_on_other_gpus(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_89")
    with pytest.raises(pd.LaunchError) as caught:
        gemm(A["e4m3"], A["e4m3"].T)
    assert caught.value.message == f"{OF_FP8} gemm multiplies on sm_90a; the kernel is for sm_89"
    assert caught.value.help == ("convert them to float16 before; on the emulator, set PTXDSL_ARCH=sm_90a")
