"""Plain products of float32 on the sm_90a path: one operand comes from registers, where it is rounded to tf32 as mma.sync
gets it, and wgmma reads a rounded copy of the other one.

One of both matrices has elements between two tf32, the other one small integers: sums of the rounded ones are exact, and
other than sums of those that are cut off.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.paths.sm80 import WarpPath
from ptxdsl.kernels.call.paths.sm90 import WarpgroupPath
from ptxdsl.kernels.call.products import copies
from ptxdsl.kernels.call.products import plan as call
from ptxdsl.kernels.call.products.copies import CopiedOperands
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column
from ptxdsl.kernels.gemm import KERNELS, gemm
from ptxdsl.kernels.reorder.rows import THREADS, rows_grid, rows_kernel, rows_parameters
from ptxdsl.kernels.reorder.transposed import edge_of, transposed_kernel, transposed_parameters
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.traits.parameters import view
from ptxdsl.types import f32
from tests.kernels.placed import zeros
from tests.machines import MACHINES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
SMALL = GemmConfig(tile=(64, 64, 32), stages=3, atom="wgmma")
SWAPPED = replace(SMALL, tile=(32, 64, 32), swap_ab=True)
TF32 = np.uint32(0xFFFFE000)  # the bits of a float32 that tensor cores read
HALF = np.uint32(0x1000)  # of the last of them
LAYOUTS = ("CF", "CC", "FC", "FF")
# Sizes, and elements behind each line of A and of B: of single elements, of words, and of words with others between
LINES = [((1, 1, 1), (0, 0)), ((67, 75, 131), (1, 3)), ((70, 72, 136), (0, 0)), ((36, 44, 68), (4, 8))]
SPECIAL = np.array(
    [0x7F800000, 0xFF800000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000, 0x7F800001, 0x7F7FFFFF, 0xFF7FF000, 0x00801000,
     0x3F801000, 0xBF801000, 0x3F800FFF, 0x3FFFF000, 0x00000000, 0x80000000, 0x7F7FE000], np.uint32,
)  # fmt: skip


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")


@pytest.fixture
def copied(monkeypatch):
    """Where any product is said to take less time with copies."""
    monkeypatch.setattr(WarpPath, "ranked", lambda *_: [(inf, GemmConfig())])
    monkeypatch.setattr(WarpgroupPath, "ranked", lambda _, facts, request: [(1.0, small(facts))])


def small(facts):
    """A configuration for the operand that comes from registers."""
    return SWAPPED if facts.operands.from_registers == "b" else SMALL


def rounded(x):
    """To the nearest tf32, half-way cases away from zero."""
    near = ((x.view(np.uint32) + HALF) & TF32).view(np.float32)
    return np.where(np.isfinite(x), near, x)


def cut(x):
    return (x.view(np.uint32) & TF32).view(np.float32)


def lying(values, order, padding=0):
    """The same matrices, in rows or columns with some elements more behind each."""
    rows = values if order == "C" else values.swapaxes(-1, -2)
    room = np.full((*rows.shape[:-1], rows.shape[-1] + padding), np.nan, np.float32)
    room[..., : rows.shape[-1]] = rows
    matrix = room[..., : rows.shape[-1]]
    return matrix if order == "C" else matrix.swapaxes(-1, -2)


def between(rng, *shape):
    """From 1 to 2, and below 0, at quarters of the step between two tf32."""
    return ((4096 + rng.integers(0, 4096, shape)) / 4096 * rng.choice([-1, 1], shape)).astype(np.float32)


def integers(rng, *shape):
    return rng.integers(-3, 4, shape).astype(np.float32)


def exact(a, b):
    """The product of rounded matrices, which is another one of those that are cut off."""
    product = rounded(a).astype(np.float64) @ rounded(b).astype(np.float64)
    assert a.shape[-1] < 8 or not np.array_equal(product, cut(a).astype(np.float64) @ cut(b).astype(np.float64))
    return product


def drawn(rng, sizes, layout, padding=(0, 0), batches=((), ())):
    """Two pairs: one of whose A lies between two tf32, and one of whose B does."""
    m, n, k = sizes
    of_a, of_b = ((*batch, *shape) for batch, shape in zip(batches, ((m, k), (k, n)), strict=True))
    for left, right in ((between, integers), (integers, between)):
        yield lying(left(rng, *of_a), layout[0], padding[0]), lying(right(rng, *of_b), layout[1], padding[1])


def quarter(lines, length):
    """Quarters of a step and, where there is room, what is no number or lies at an end of the range."""
    bits = np.resize(np.arange(0x3F800000, 0x3F810000, 0x400, np.uint32), lines * length)
    bits[: len(SPECIAL)] = SPECIAL[: bits.size]
    return bits.view(np.float32).reshape(lines, length).copy()


def read_as(x):
    """What tensor cores read: NaN as any."""
    read = cut(np.ascontiguousarray(x))
    return np.where(np.isnan(x), np.float32(np.nan), read)


@every_machine
@pytest.mark.parametrize("length, in_words", [(37, False), (44, True)])
def test_copies_of_lines_round(name, length, in_words):
    where, count = machine(name), 23
    x = quarter(count, length)
    source, target = where.array(x), where.array(np.full((count, 64), 7, np.float32))
    p = rows_parameters(f32)(
        source=view(f32)(pointer=source, stride=length), target=view(f32)(pointer=target, stride=64),
        rows=count, length=length,
    )  # fmt: skip
    words = count * -(-length // 4)
    rows_kernel[rows_grid(words, f32, in_words), THREADS](p, type=f32, rounded=True, in_words=in_words)
    results = where.values(target).astype(np.float32)
    assert np.array_equal(read_as(results[:, :length]), read_as(rounded(x)), equal_nan=True)
    assert (results[:, -(-length // 4) * 4 :] == 7).all()


@every_machine
@pytest.mark.parametrize("in_words", [False, True])
def test_transposing_copies_round(name, in_words):
    where, (count, length) = machine(name), (37, 100)
    x = quarter(count, length)
    target = where.array(np.full((length, 64), 7, np.float32))
    p = transposed_parameters(f32)(
        source=view(f32)(pointer=where.array(x), stride=length), target=view(f32)(pointer=target, stride=64),
        source_batch=0, target_batch=0, lines=count, length=length,
    )  # fmt: skip
    blocks = -(-count // edge_of(f32)) * -(-length // edge_of(f32))
    transposed_kernel[blocks, THREADS](p, type=f32, in_words=in_words, rounded=True)
    results = where.values(target).astype(np.float32)
    assert np.array_equal(read_as(results[:, :count]), read_as(rounded(x).T), equal_nan=True)
    assert (results[:, 40:] == 7).all()


@pytest.mark.exhaustive
@pytest.mark.parametrize("kernel, constants", [
    (rows_kernel, {}), (rows_kernel, {"in_words": True}), (rows_kernel, {"in_words": True, "batched": True}),
    (transposed_kernel, {"in_words": False}), (transposed_kernel, {"in_words": True}),
])  # fmt: skip
def test_nothing_is_spilled(kernel, constants):
    resources = kernel.resources("sm_90a", type=f32, rounded=True, **constants)
    assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0


@every_machine
@pytest.mark.parametrize(("sizes", "padding"), LINES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_of_all_layouts_and_lines(name, layout, sizes, padding, copied, rng):
    where = machine(name)
    for a, b in drawn(rng, sizes, layout, padding):
        out = where.array(np.full(sizes[:2], np.nan, np.float32))
        assert np.array_equal(where.values(gemm(where.array(a), where.array(b), out=out)), exact(a, b))


@every_machine
@pytest.mark.parametrize("output", [np.float32, np.float16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_with_alpha_beta_c_and_an_epilogue(name, order, output, copied, rng):
    where, (m, n, k) = machine(name), (66, 50, 90)
    for a, b in drawn(rng, (m, n, k), "CC", (2, 0)):
        c, bias = (np.array(rng.integers(-3, 4, shape), output, order=order) for shape in ((m, n), (n,)))
        out = where.array(np.zeros((m, n), output, order))
        how = {"alpha": 0.5, "beta": -2.0, "epilogue": add_relu, "operands": [per_column(where.array(bias))]}
        result = gemm(*map(where.array, (a, b, c)), out=out, **how)
        expected = np.maximum(0.5 * exact(a, b) - 2.0 * c.astype(np.float64) + bias.astype(np.float64), 0)
        assert np.array_equal(where.values(result), expected.astype(output).astype(np.float64))


@every_machine
@pytest.mark.parametrize("layout", ["CF", "FC"])
@pytest.mark.parametrize("batches", [((3,), (3,)), ((3,), ()), ((), (3,))], ids=["both", "a", "b"])
def test_batches(name, batches, layout, copied, rng):
    """Of matrices of their own, and of one for all."""
    where = machine(name)
    for a, b in drawn(rng, (33, 48, 37), layout, (1, 0), batches):
        assert np.array_equal(where.values(gemm(where.array(a), where.array(b))), exact(a, b))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("how", [{"split_k": 2}, {"split_k": 2, "reduction": "cluster"}], ids=["parallel", "cluster"])
def test_blocks_that_share_k_as_a_caller_says(name, how, monkeypatch, rng):
    """As a caller says, by tiles that the model chooses."""
    monkeypatch.setattr(WarpPath, "ranked", lambda *_: [(inf, GemmConfig())])
    where = machine(name)
    for a, b in drawn(rng, (64, 48, 512), "CF"):
        assert np.array_equal(where.values(gemm(where.array(a), where.array(b), **how)), exact(a, b))


@every_machine
@pytest.mark.parametrize("layout", ["CF", "FC"])
def test_infinities_and_every_nan_stay_what_they_are(name, layout, copied):
    where, x = machine(name), SPECIAL.view(np.float32)
    a, b = np.zeros((len(x), 8), np.float32), np.zeros((8, 4), np.float32)
    a[:, 0], b[0] = x, 1
    with np.errstate(invalid="ignore", over="ignore"):
        expected = np.broadcast_to(rounded(x)[:, np.newaxis], (len(x), 4)).astype(np.float64)
    result = where.values(gemm(where.array(lying(a, layout[0])), where.array(lying(b, layout[1]))))
    assert np.array_equal(result, expected, equal_nan=True)


@every_machine
def test_the_same_bits_as_by_mma_sync(name, copied, rng):
    """Of one element along K: nothing is added up."""
    where = machine(name)
    a, b = rng.standard_normal((130, 1)).astype(np.float32), rng.standard_normal((1, 70)).astype(np.float32)
    by_wgmma, by_warps = (where.values(gemm(where.array(a), where.array(b), config=c)) for c in (None, GemmConfig()))
    assert np.array_equal(by_wgmma, by_warps)


@every_machine
def test_who_chooses_wgmma_gets_numbers_cut_off(name, rng):
    """Transposed before or not."""
    where = machine(name)
    for layout in LAYOUTS:
        for a, b in drawn(rng, (64, 48, 32), layout):
            result = where.values(gemm(where.array(a), where.array(b), config=SMALL))
            assert np.array_equal(result, cut(a).astype(np.float64) @ cut(b).astype(np.float64))


REFUSED = {
    "a factor": (64, {"alpha": 1e39}, "`alpha` is 1e+39; the output is computed in float32, which ends at 3.4e38"),
    "what is read is written": (32, {}, "`out` is written and shares memory with `a`"),
    "a schedule": (64, {"split_k": 0}, "GemmConfig: split_k is 0; it takes 1 or more blocks a tile"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_a_call_that_is_refused_writes_nothing(which, copied, rng):
    first, how, message = REFUSED[which]
    room = np.full((128, 64), 7, np.float32)
    with pytest.raises(pd.LaunchError) as caught:
        gemm(room[:64], integers(rng, 64, 64), out=room[first:][:64], **how)
    assert caught.value.message == message
    assert (room == 7).all()


class TestWithoutMemoryForCopies:
    @pytest.fixture(autouse=True)
    def full(self, monkeypatch):
        """A GPU whose memory others have."""

        def refused(*_):
            raise pd.LaunchError("allocating 4096 bytes of workspace: CUDA_ERROR_OUT_OF_MEMORY: out of memory")

        monkeypatch.setattr(copies, "room_for_copy", refused)

    @pytest.mark.exhaustive
    def test_mma_sync_does_without(self, copied, rng):
        for a, b in drawn(rng, (33, 48, 37), "CC"):
            assert np.array_equal(gemm(a, b), exact(a, b))

    @pytest.mark.parametrize(("type", "config"), [(np.float32, SMALL), (ml_dtypes.float8_e4m3fn, None)], ids=str)
    def test_who_chooses_wgmma_or_has_no_other_path_is_told(self, type, config):
        a, out = np.ones((64, 64), type), np.full((64, 64), 7, np.float32)
        with pytest.raises(pd.LaunchError, match="CUDA_ERROR_OUT_OF_MEMORY"):
            gemm(a, a, out=out, config=config)
        assert (out == 7).all()


class TestChoice:
    def problem(self, m, n, k, layout):
        a, b = (
            zeros(*shape, np.float32) if order == "C" else zeros(*shape[::-1], np.float32).T
            for shape, order in zip(((m, k), (k, n)), layout, strict=True)
        )
        return problem_of(a, b, None, None, 0.0).row_major

    def plan(self, m, n, k, layout="CF", choice=None):
        return call.plan_of(KERNELS, self.problem(m, n, k, layout), choice or GemmOptions(), (1.0, 0.0))

    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize(("size", "tile", "left"), [
        ((4096, 4096, 4096), (128, 256, 32), "a"), ((8192, 4096, 4096), (128, 256, 32), "a"),
        ((4096, 8192, 4096), (256, 128, 32), "b"), ((64, 4096, 4096), None, "b"), ((4096, 16, 4096), None, "a"),
        ((512, 512, 512), None, "a"),
    ], ids=str)  # fmt: skip
    def test_the_smaller_operand_is_copied_and_the_other_one_rounded_in_registers(self, size, tile, left, layout):
        plan = self.plan(*size, layout)
        traits = plan.constants["traits"]
        assert isinstance(traits, WarpgroupTraits) and tile in (None, traits.tile)
        assert traits.operands.rounded == left and traits.from_registers and traits.tiling.swap_ab == (left == "b")
        is_along_k = layout["ba".index(left)] == "CF"["ba".index(left)]
        assert [each.kernel for each in plan.before] == [rows_kernel if is_along_k else transposed_kernel]
        assert plan.before[0].constants["rounded"]

    def test_lines_that_no_map_takes_are_copied_so_too(self):
        plan = self.plan(4097, 4096, 4095)
        assert [each.kernel for each in plan.before] == [rows_kernel] * 2
        assert [each.constants for each in plan.before] == [{"type": f32, "rounded": True}] * 2

    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("size", [(256, 256, 256), (64, 64, 64), (64, 64, 0)], ids=str)
    def test_those_that_are_small_are_not_worth_a_copy(self, size, layout):
        plan = self.plan(*size, layout)
        assert plan.before == () and not isinstance(plan.constants["traits"], WarpgroupTraits)

    @pytest.mark.parametrize(
        "choice", [GemmOptions(GemmConfig()), GemmOptions(schedule=Strips())], ids=["tiles", "schedule"]
    )
    def test_who_chooses_otherwise_gets_none(self, choice):
        plan = self.plan(4096, 4096, 4096, choice=choice)
        assert plan.before == () and not isinstance(plan.constants["traits"], WarpgroupTraits)

    def test_nor_do_other_gpus(self, monkeypatch):
        for arch in ("sm_80", "sm_90", "sm_120"):
            monkeypatch.setenv("PTXDSL_ARCH", arch)
            assert self.plan(4096, 4096, 4096).before == ()

    @pytest.mark.parametrize(("config", "copies"), [
        (SMALL, (0, 1, 1, 0)), (SWAPPED, (0, 0, 1, 1)), (GemmConfig(atom="wgmma"), (0, 0, 1, 0)),
    ], ids=["a first", "b first", "any"])  # fmt: skip
    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_who_chooses_wgmma_gets_what_is_no_first_factor_transposed_and_cut_off(self, layout, config, copies):
        plan = self.plan(4096, 4096, 4096, layout, GemmOptions(config))
        assert [each.kernel for each in plan.before] == [transposed_kernel] * copies[LAYOUTS.index(layout)]
        assert all("rounded" not in each.constants for each in plan.before)
        assert plan.constants["traits"].operands.rounded == "none"

    def test_one_matrix_for_all_batches_is_copied_once(self):
        """Which costs what a single one costs; copies of A are as many as there are batches."""
        weights = zeros(4096, 4096, np.float32)
        a = zeros(4 * 4096, 4096, np.float32).reshape(4, 4096, 4096)
        alone, shared = (problem_of(x, weights.T, None, None, 0.0).row_major for x in (a[0], a))
        rates = GemmPlanner(alone, GemmOptions()).rates
        one, four = ({way.names: way.time for way in copies.copy_candidates(each, rates)} for each in (alone, shared))
        more = 2 * 3 * alone.a.array.size * 4 / rates.gpu.bandwidth
        assert {names: four[names] - one[names] for names in one} == pytest.approx({"a": more, "b": 0, "ab": more})

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("size", [256, 4096])
    def test_all_that_is_tuned_rounds(self, size):
        """By mma.sync, or by wgmma of copies of one or of both."""
        problem = self.problem(size, size, size, "CF")
        chosen = GemmPlanner(problem, GemmOptions())
        timed = [each for _, each in chosen.candidates()]
        assert {(each.config.atom == WGMMA, each.copied) for each in timed} == {
            (False, ""),
            (True, "a"),
            (True, "b"),
            (True, "ab"),
        }
        for names, left in (("a", "b"), ("b", "a"), ("ab", "none")):
            choice = GemmOptions(next(each for each in timed if each.copied == names).config)
            plan = call.plan_of(KERNELS, problem, choice, (1.0, 0.0), CopiedOperands.named(names))
            assert [each.constants.get("rounded") for each in plan.before] == [True] * len(names)
            assert plan.constants["traits"].operands.rounded == left

    def test_tuning_by_schedules_of_the_caller_stays_with_mma_sync(self):
        chosen = GemmPlanner(self.problem(256, 256, 256, "CF"), GemmOptions(schedule=Strips()))
        assert {each.config.atom for _, each in chosen.candidates()} == {""}


@pytest.mark.gpu
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [(3072, 2560, 2048), (2049, 3001, 2047)], ids=str)
def test_large_products_on_a_gpu(size, layout, rng):
    """By the choice of the model, and with a C."""
    torch = pytest.importorskip("torch")
    where = machine("gpu")
    for a, b in drawn(rng, size, layout):
        expected = torch.from_numpy(rounded(a)).cuda().double() @ torch.from_numpy(rounded(b)).cuda().double()
        x, y = where.array(a), where.array(b)
        assert torch.equal(gemm(x, y).double(), expected)
        c = torch.randint(-3, 4, expected.shape, device="cuda").float()
        expected += 2.0 * c.double()  # before C, which is the output, is written
        assert torch.equal(gemm(x, y, c, out=c, beta=2.0).double(), expected)


@pytest.mark.gpu
def test_a_call_that_is_repeated_copies_its_own_operands(copied, rng):
    torch = pytest.importorskip("torch")
    for _ in range(3):
        a, b = (torch.from_numpy(draw(rng, *shape)) for draw, shape in ((between, (67, 131)), (integers, (131, 75))))
        expected = exact(a.numpy(), b.numpy())
        assert np.array_equal(gemm(a.cuda(), b.cuda()).double().cpu().numpy(), expected)
