"""Operands that wgmma reads along K alone, and that lie otherwise, are transposed to a workspace in the same call.

Integers, and floats that are small integers, are exact.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.products import copies
from ptxdsl.kernels.call.products import plan as call
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column
from ptxdsl.kernels.gemm import KERNELS, gemm
from ptxdsl.kernels.reorder.transposed import edge_of, transposed_kernel, transposed_parameters
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.traits.parameters import view
from ptxdsl.types import TYPES, f32, u8
from tests.kernels.placed import zeros
from tests.machines import MACHINES, NAMES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
FP8 = ("e4m3", "e5m2")
SIZES = ((1, 1, 1), (33, 47, 65), (70, 72, 144), (17, 1, 31), (1, 40, 129))
LAYOUTS = ("CC", "FC", "FF")  # of A and B, where one of both is not along K: C has rows one behind the other


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")


def tiles(inputs, **more):
    return GemmConfig(tile=(64, 64, 128 // TYPES[inputs].bytes), stages=3, atom="wgmma", **more)


def integers(rng, shape, type, order="C", padding=0, bounds=(-3, 4)):
    """Small integers in rows or columns, of which each has some elements more behind it."""
    *batches, rows, columns = shape
    count, length = (rows, columns) if order == "C" else (columns, rows)
    low = 0 if type == "u8" else bounds[0]
    room = rng.integers(low, bounds[1], (*batches, count, length + padding)).astype(NAMES[type])
    matrix = room[..., :length]
    return matrix if order == "C" else matrix.swapaxes(-1, -2)


def whole(length):
    """The elements behind so many bytes that make lines of 16."""
    return -length % 16


def exact(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


def transpose(where, type, source, target, in_words):
    """Runs the kernel: `source` has (batches, lines, length + padding), `target` the lines that are written."""
    (room, length), (out, stride) = source, target
    batches, count, apart = room.shape
    group = transposed_parameters(type)(
        source=view(type)(pointer=where.array(room), stride=apart),
        target=view(type)(pointer=out, stride=stride),
        source_batch=count * apart,
        target_batch=length * stride,
        lines=count,
        length=length,
    )
    edge = edge_of(type)
    grid = batches * -(-count // edge) * -(-length // edge)
    transposed_kernel[grid, 256](group, type=type, in_words=in_words)


@every_machine
@pytest.mark.parametrize("type", [u8, f32], ids=str)
@pytest.mark.parametrize(
    ("count", "length", "padding", "in_words"),
    [(1, 1, 0, False), (3, 37, 2, False), (130, 131, 1, False), (144, 160, 16, True), (37, 48, 0, True)],
)
def test_the_transpose_and_no_byte_beside_its_words(name, type, count, length, padding, in_words, rng):
    """Poisoned memory behind each line stays; what is left of its last word is its last element."""
    where, each = machine(name), 16 // type.bytes
    room = rng.integers(0, 200, (2, count, length + padding)).astype(type.dtype)
    words = -(-count // each) * each
    out = where.array(np.full((2, length, words + each), 201, type.dtype))
    transpose(where, type, (room, length), (out, words + each), in_words)
    result, expected = where.values(out), room[..., :length].swapaxes(1, 2)
    assert np.array_equal(result[..., :count], expected)
    assert (result[..., count:words] == expected[..., -1:]).all()
    assert (result[..., words:] == 201).all()


@pytest.mark.parametrize("type", [u8, f32], ids=str)
def test_neither_conflicts_of_banks_nor_parts_of_sectors(type):
    edge = edge_of(type)
    source, target = (np.zeros((2 * edge, 2 * edge), type.dtype) for _ in range(2))
    group = transposed_parameters(type)(
        source=view(type)(pointer=source, stride=2 * edge),
        target=view(type)(pointer=target, stride=2 * edge),
        source_batch=0,
        target_batch=0,
        lines=2 * edge,
        length=2 * edge,
    )
    report = pd.emulate(transposed_kernel, 4, 256, group, traffic=True, type=type, in_words=True)
    assert report.findings == []
    assert {each.name for each in report.bank_conflicts} == {"st.shared.b32", "ld.shared.v4.b32"}
    counted = (*report.bank_conflicts, *report.global_sectors)
    assert [each for each in counted if each.taken != each.ideal] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("in_words", [False, True])
@pytest.mark.parametrize("type", [u8, f32], ids=str)
def test_nothing_is_spilled(type, in_words):
    resources = transposed_kernel.resources("sm_90a", type=type, in_words=in_words)
    assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0


@every_machine
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("layout", [*LAYOUTS, "CF"])
@pytest.mark.parametrize("inputs", FP8)
def test_float8_of_all_layouts(name, inputs, layout, order, rng):
    """Of any sizes and lines, into an output that is poisoned and lies either way."""
    where = machine(name)
    for m, n, k in SIZES:
        a, b = integers(rng, (m, k), inputs, layout[0], 3), integers(rng, (k, n), inputs, layout[1], 5)
        out = where.array(np.full((m, n), np.nan, np.float32, order))
        assert np.array_equal(where.values(gemm(where.array(a), where.array(b), out=out)), exact(a, b))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("inputs", ["s8", "u8", "f32", "e4m3"])
def test_a_configuration_of_wgmma_takes_all_layouts(name, inputs, layout, rng):
    where = machine(name)
    for m, n, k in SIZES:
        lengths = (k if layout[0] == "C" else m), (n if layout[1] == "C" else k)
        a, b = (
            integers(rng, shape, inputs, order, whole(length), (-128, 128) if inputs == "s8" else (-3, 4))
            for shape, order, length in zip(((m, k), (k, n)), layout, lengths, strict=True)
        )
        result = gemm(where.array(a), where.array(b), config=tiles(inputs))
        assert np.array_equal(where.values(result), exact(a, b))


@every_machine
@pytest.mark.parametrize(("inputs", "output"), [("e4m3", "f16"), ("s8", "s32"), ("u8", "f32")])
def test_with_alpha_beta_c_and_an_epilogue(name, inputs, output, rng):
    where, (m, n, k) = machine(name), (70, 50, 139)
    a, b = integers(rng, (m, k), inputs, "F", whole(m)), integers(rng, (k, n), inputs, "C", whole(n))
    c, bias = integers(rng, (m, n), output), integers(rng, (n,) * 2, output)[0]
    out, operands = where.array(np.zeros((m, n), NAMES[output])), [per_column(where.array(bias.copy()))]
    how = {"alpha": 2, "beta": -3, "config": tiles(inputs), "epilogue": add_relu, "operands": operands}
    result = gemm(*map(where.array, (a, b, c)), out=out, **how)
    expected = 2 * exact(a, b) - 3 * c.astype(np.float64) + bias.astype(np.float64)
    assert np.array_equal(where.values(result), np.maximum(expected, 0))


@every_machine
@pytest.mark.parametrize("inputs", ["e4m3", "e5m2"])
def test_normal_numbers_of_float8(name, inputs, rng):
    where, (m, n, k) = machine(name), (66, 80, 200)
    a, b = (rng.standard_normal(shape).astype(NAMES[inputs]) for shape in ((k, m), (k, n)))
    result = where.values(gemm(where.array(a).T, where.array(b)))
    assert np.allclose(result, exact(a.T, b), rtol=2e-3, atol=4e-2)


@every_machine
def test_batches_of_float8(name, rng):
    """Of both layouts, and one matrix for all of them, which is transposed once; backwards, too."""
    where, (m, n, k) = machine(name), (33, 48, 37)
    a, b = integers(rng, (3, m, k), "e4m3", "F"), integers(rng, (3, k, n), "e4m3", "C", 5)
    lined = integers(rng, (3, m, k), "e4m3", "C", whole(k))
    for left, right in [(a, b), (lined, b), (a, b[1]), (a[0], b)]:
        result = gemm(where.array(left), where.array(right))
        assert np.array_equal(where.values(result), exact(left, right))
    if name == "emulator":  # torch has no strides below 0
        assert np.array_equal(gemm(a[::-1], b), exact(a[::-1], b))


@every_machine
@pytest.mark.parametrize("how", [{"split_k": 2}, {"schedule": Strips()}], ids=["split_k", "schedule"])
def test_float8_by_schedules_of_the_caller(name, how, rng):
    where = machine(name)
    a, b = integers(rng, (70, 300), "e4m3"), integers(rng, (300, 40), "e4m3")
    assert np.array_equal(where.values(gemm(where.array(a), where.array(b), **how)), exact(a, b))


def test_poisoned_workspaces_leave_no_trace(monkeypatch, rng):
    """The workspace, whose bytes behind K are NaN."""
    empty = np.empty

    def poisoned(*args, **options):
        room = empty(*args, **options)
        room.view(np.uint8)[...] = 0x7F
        return room

    a, b = integers(rng, (49, 70), "e4m3", "F", 3), integers(rng, (70, 33), "e4m3", "C", 1)
    problem = problem_of(a, b, None, None, 0.0).row_major
    monkeypatch.setattr(copies.np, "empty", poisoned)
    plan = call.plan_of(KERNELS, problem, GemmOptions(), (1.0, 0.0))
    monkeypatch.undo()
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    assert [each.kernel for each in plan.before] == [transposed_kernel] * 2
    plan.run()
    assert np.array_equal(problem.out.owner, exact(a, b))


@every_machine
@pytest.mark.parametrize("shape", [(0, 5, 16), (5, 0, 16)])
@pytest.mark.parametrize("layout", ["CF", *LAYOUTS])
def test_nothing_to_write(name, shape, layout):
    where, (m, n, k) = machine(name), shape
    a, b = np.zeros((m, k), NAMES["e4m3"], layout[0]), np.zeros((k, n), NAMES["e4m3"], layout[1])
    assert tuple(gemm(where.array(a), where.array(b)).shape) == (m, n)


@every_machine
def test_a_column_of_any_address(name, rng):
    """A copy of lines, whose matrix is one column."""
    where = machine(name)
    a, b = integers(rng, (5, 33), "e4m3"), integers(rng, (1, 34), "e4m3")[0, 1:].reshape(33, 1)
    assert np.array_equal(where.values(gemm(where.array(a), where.array(b))), exact(a, b))


class TestChoice:
    def plan(self, inputs, m, n, k, layout, config=None):
        a, b = (
            zeros(*shape, NAMES[inputs]) if order == "C" else zeros(*shape[::-1], NAMES[inputs]).T
            for shape, order in zip(((m, k), (k, n)), layout, strict=True)
        )
        return call.plan_of(KERNELS, problem_of(a, b, None, None, 0.0).row_major, GemmOptions(config), (1, 0))

    @pytest.mark.parametrize(("layout", "copies"), [("CF", 0), ("CC", 1), ("FF", 1), ("FC", 2)])
    @pytest.mark.parametrize(("inputs", "size"), [("e4m3", 64), ("e4m3", 4096), ("s8", 4096), ("u8", 8192)])
    def test_what_does_not_lie_along_k_is_transposed(self, inputs, size, layout, copies):
        plan = self.plan(inputs, size, size, size, layout)
        assert isinstance(plan.constants["traits"], WarpgroupTraits)
        assert [each.kernel for each in plan.before] == [transposed_kernel] * copies

    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("inputs", ["s8", "u8", "f32"])
    def test_small_products_of_other_paths_are_not(self, inputs, layout):
        plan = self.plan(inputs, 256, 256, 256, layout)
        assert plan.before == () and not isinstance(plan.constants["traits"], WarpgroupTraits)

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_float32_is_rounded_on_the_way(self, layout):
        """And so is what is not transposed; that of A is in registers."""
        plan = self.plan("f32", 8192, 8192, 8192, layout)
        assert [each.kernel is transposed_kernel for each in plan.before] == [layout[1] == "C"]
        assert [each.constants["rounded"] for each in plan.before] == [True]

    @pytest.mark.parametrize("config", [None, GemmConfig((64, 64, 64), stages=3, atom="wgmma")])
    def test_float16_is_read_as_it_lies(self, config):
        assert self.plan("f16", 4096, 4096, 4096, "FC", config).before == ()

    def test_who_chooses_tiles_of_warps_gets_no_copies(self):
        assert self.plan("s8", 8192, 8192, 8192, "CC", GemmConfig(tile=(128, 128, 64))).before == ()


@pytest.mark.gpu
@pytest.mark.parametrize("config", [None, tiles("e4m3")])
def test_a_call_that_is_repeated_transposes_its_own_operands(config, rng):
    torch = pytest.importorskip("torch")
    for _ in range(3):
        a, b = (torch.randint(-3, 4, shape, device="cuda").to(torch.float8_e4m3fn) for shape in ((131, 67), (131, 75)))
        assert torch.equal(gemm(a.T, b, config=config), a.double().T.float() @ b.double().float())


A = np.zeros((64, 64), NAMES["e4m3"])
BATCH = np.zeros((2, 64, 33), NAMES["e4m3"])
ALONG_K = "`b` is not K-major, as wgmma needs {} operands to be"


@pytest.mark.parametrize(("inputs", "config", "help"), [
    ("e4m3", None, "pass a row-major `a` and a column-major `b`"),
    ("s8", tiles("s8"), "pass a row-major `a` and a column-major `b`, or leave atom out"),
])  # fmt: skip
def test_copies_of_more_words_than_32_bits_count_are_refused(inputs, config, help, monkeypatch):
    monkeypatch.setattr(copies, "MOST_WORDS", 64)
    a = np.zeros((64, 64), NAMES[inputs])
    out = np.full((64, 64), 7, np.float32)
    with pytest.raises(pd.LaunchError) as caught:
        gemm(a, a, out=out, config=config)
    described = {"e4m3": "float8_e4m3fn", "s8": "int8"}[inputs]
    assert (caught.value.message, caught.value.help) == (ALONG_K.format(described), help)
    assert (out == 7).all()


def test_batches_of_more_words_than_32_bits_count_are_refused(monkeypatch):
    """Of all matrices: each alone has fewer."""
    monkeypatch.setattr(copies, "MOST_WORDS", 2 * 64 * 3)
    out = np.full((2, 64, 64), 7, np.float32)
    with pytest.raises(pd.LaunchError) as caught:
        gemm(BATCH, BATCH.reshape(2, 33, 64), out=out)
    where = f"{BATCH.ctypes.data:#x}"
    assert caught.value.message == (
        f"`a` has a leading dimension of 33 bytes, a batch stride of 2112 bytes and the address {where}; "
        "TMA takes multiples of 16 bytes"
    )
    assert caught.value.help == "pad its leading dimension"
    assert (out == 7).all()
    assert np.array_equal(gemm(BATCH[:1], BATCH[:1].reshape(1, 33, 64)), np.zeros((1, 64, 64)))
