"""Operands whose lines tensor copies cannot address are copied to lines that they can, where that takes less time."""

import numpy as np
import pytest

from ptxdsl.arrays import strided
from ptxdsl.kernels.call.paths.sm80 import WarpPath
from ptxdsl.kernels.call.paths.sm90 import WarpgroupPath
from ptxdsl.kernels.call.products import plan as call
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import KERNELS, gemm
from ptxdsl.kernels.reorder.rows import THREADS, rows_grid, rows_kernel, rows_parameters
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.traits.parameters import view
from ptxdsl.types import f16, f32, s8
from tests.kernels.placed import zeros
from tests.kernels.test_gemm import check
from tests.machines import MACHINES, NAMES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
SMALL = GemmConfig(tile=(64, 64, 64), stages=3, atom="wgmma")


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")


@pytest.fixture
def copied(monkeypatch):
    """Where any product is said to take less time with copies."""
    monkeypatch.setattr(WarpPath, "ranked", lambda *_: [])
    monkeypatch.setattr(WarpgroupPath, "ranked", lambda *_: [(1.0, SMALL)])


@pytest.mark.parametrize("type", [f16, f32, s8], ids=str)
@pytest.mark.parametrize(("lines", "length"), [(1, 1), (3, 37), (17, 100)])
def test_lines_are_copied_to_multiples_of_a_word(type, lines, length, rng):
    room = rng.integers(-100, 100, (lines, length + 3)).astype(type.dtype)
    source, each = room[:, :length], 16 // type.bytes
    words = -(-length // each)
    target = np.zeros((lines, words * each), type.dtype)
    matrices = {
        "source": view(type)(pointer=strided(source), stride=length + 3),
        "target": view(type)(pointer=target, stride=words * each),
    }
    p = rows_parameters(type)(**matrices, rows=lines, length=length)
    rows_kernel[rows_grid(lines * words, type, False), THREADS](p, type=type)
    assert (target[:, :length] == source).all()


@every_machine
@pytest.mark.parametrize("type", [f16, f32, s8], ids=str)
@pytest.mark.parametrize(("lines", "words"), [(1, 1), (3, 5), (37, 61)])
def test_lines_of_words_are_copied_by_words(name, type, lines, words, rng):
    """More than a block has, 37 × 61, and fewer; what lies beside the lines stays."""
    where, each = machine(name), 16 // type.bytes
    length = words * each
    source = where.array(rng.integers(-100, 100, (lines, length + 2 * each)).astype(type.dtype))
    target = where.array(np.full((lines, length + 8 * each), 7, type.dtype))
    matrices = {
        "source": view(type)(pointer=source, stride=length + 2 * each),
        "target": view(type)(pointer=target, stride=length + 8 * each),
    }
    p = rows_parameters(type)(**matrices, rows=lines, length=length)
    rows_kernel[rows_grid(lines * words, type, True), THREADS](p, type=type, in_words=True)
    assert (where.values(target)[:, :length] == where.values(source)[:, :length]).all()
    assert (where.values(target)[:, length:] == 7).all()


@every_machine
@pytest.mark.parametrize("type", [f16, s8], ids=str)
@pytest.mark.parametrize("length, in_words", [(37, False), (48, True)])
def test_lines_of_all_matrices_are_copied(name, type, length, in_words, rng):
    """What lies between the copies stays."""
    where, (batches, lines) = machine(name), (3, 23)
    source = where.array(rng.integers(-100, 100, (batches, lines + 1, length + 16)).astype(type.dtype))
    target = where.array(np.full((batches, lines + 2, 128), 7, type.dtype))
    p = rows_parameters(type, batched=True)(
        source=view(type)(pointer=source, stride=length + 16),
        target=view(type)(pointer=target, stride=128),
        rows=lines,
        length=length,
        source_batch=(lines + 1) * (length + 16),
        target_batch=(lines + 2) * 128,
        batches=batches,
    )
    words = batches * lines * -(-length * type.bytes // 16)
    rows_kernel[rows_grid(words, type, in_words), THREADS](p, type=type, batched=True, in_words=in_words)
    copied = where.values(target)
    assert (copied[:, :lines, :length] == where.values(source)[:, :lines, :length]).all()
    assert (copied[:, lines:] == 7).all()


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("inputs, output", [("e4m3", "f32"), ("bf16", "e5m2")])
def test_batches_whose_lines_no_map_takes(name, inputs, output, rng):
    """Of both operands, of one, and of one for all; matrices that begin between multiples of 16 bytes; backwards."""
    where, (m, n, k) = machine(name), (40, 48, 37)

    def drawn(*shape, more=0):
        *count, rows, columns = shape
        values = rng.integers(-2, 3, (*count, rows * (columns + more) + 3)).astype(NAMES[inputs])
        return values[..., :-3].reshape(*count, rows, columns + more)[..., :columns]

    a, b, lined = drawn(3, m, k), drawn(3, k, n), rng.integers(-2, 3, (3, m, 64)).astype(NAMES[inputs])[..., :k]
    cases = [(a, b), (lined, b), (a, b[1]), (a[0], b), (a.swapaxes(1, 2)[:, :, :m], drawn(3, m, n))]
    cases += [(a[::-1], b)] if name == "emulator" else []  # torch has no strides below 0
    for left, right in cases:
        out = where.array(np.zeros((3, left.shape[-2], n), NAMES[output]))
        results = where.values(gemm(where.array(left), where.array(right), out=out))
        exact = left.astype(np.float64) @ right.astype(np.float64)
        assert (results == exact.astype(NAMES[output]).astype(np.float64)).all()


def test_batches_are_copied_where_that_pays():
    """Large ones of 16 bits, which mma.sync multiplies else."""
    a, b = (zeros(4 * 4096, 4095, np.float16).reshape(4, 4096, 4095) for _ in "ab")
    b = b.swapaxes(1, 2)
    launch = call.plan_of(KERNELS, problem_of(a, b, None, None, 0.0).row_major, GemmOptions(), (1.0, 0.0))
    assert [each.kernel for each in launch.before] == [rows_kernel] * 2
    assert [each.constants for each in launch.before] == [{"type": f16, "batched": True}] * 2
    small = problem_of(a[:, :64, :65], b[:, :65, :64], None, None, 0.0).row_major
    assert call.plan_of(KERNELS, small, GemmOptions(), (1.0, 0.0)).before == ()


@pytest.mark.parametrize(("k", "kernels"), [(2600, set()), (2602, {rows_kernel})])
def test_lines_are_copied_unless_tma_takes_them(k, kernels):
    """Those of 5200 bytes are read as they are."""
    assert {each.kernel for each in plan(2600, 2000, k).before} == kernels


def plan(m, n, k, config=None):
    a, b = zeros(m, k, np.float16), zeros(n, k, np.float16).T
    return call.plan_of(KERNELS, problem_of(a, b, None, None, 0.0).row_major, GemmOptions(config), (1.0, 0.0))


@pytest.mark.parametrize("k", [4095, 4100])
def test_large_products_are_worth_copies_of_both(k):
    launch = plan(4097, 4096, k)
    assert isinstance(launch.constants["traits"], WarpgroupTraits)
    assert [each.kernel for each in launch.before] == [rows_kernel] * 2


@pytest.mark.parametrize(
    ("m", "n", "k", "copies"), [(2600, 2000, 2600, 0), (2600, 2600, 2600, 0), (2608, 2608, 2608, 0), (500, 500, 500, 0)]
)
def test_lines_in_the_midst_of_sectors_are_copied_where_that_pays(m, n, k, copies):
    """Clusters bring those of 2600³ faster than copies would."""
    assert len(plan(m, n, k).before) == copies


def test_copies_are_weighed_against_clusters():
    """Of both, where K is short; of none where it is not."""
    assert [len(plan(*shape).before) for shape in ((16392, 8200, 1032), (4104, 14344, 4104), (4104, 4104, 4104))] == [
        2,
        0,
        0,
    ]


@pytest.mark.parametrize("size", [5000, 8200])
def test_clusters_bring_lines_in_the_midst_of_sectors_of_large_products(size):
    """Without copies, and without lines beside those that are asked for."""
    launch = plan(size + 1, size, size)
    traits, (a, b) = launch.constants["traits"], list(launch.array_arguments.values())[:2]
    assert launch.before == () and traits.schedule.multicast in ((2, 1), (1, 2))
    assert (a.kind.l2_promotion, b.kind.l2_promotion) == (128, 128)


def test_lines_that_no_map_takes_are_copied_beside_clusters():
    """Those of B begin at multiples of 16 bytes, those of A do not."""
    a, b = zeros(5000, 5004, np.float16)[:, :5000], zeros(5000, 5000, np.float16).T
    launch = call.plan_of(KERNELS, problem_of(a, b, None, None, 0.0).row_major, GemmOptions(), (1.0, 0.0))
    assert [each.kernel for each in launch.before] == [rows_kernel]
    assert launch.constants["traits"].schedule.multicast == (2, 1)


@pytest.mark.parametrize(("m", "n", "k"), [(4096, 4096, 4096), (65, 65, 65)], ids=["aligned", "small"])
def test_others_are_not_copied(m, n, k):
    assert plan(m, n, k).before == ()


def test_who_chooses_a_configuration_gets_no_copies():
    assert plan(4097, 4096, 4095, config=GemmConfig()).before == ()


@every_machine
@pytest.mark.parametrize(
    ("orders", "padding"),
    [
        (("row", "column", "row"), (0, 0, 0)),
        (("row", "row", "row"), (2, 0, 1)),
        (("column", "row", "row"), (0, 5, 0)),
        (("column", "column", "column"), (1, 1, 1)),
    ],
    ids=lambda value: "-".join(map(str, value)),
)
def test_products_of_copies(name, orders, padding, copied, rng):
    check(machine(name), rng, 67, 75, 131, orders=orders, padding=padding)


@every_machine
def test_one_of_both_is_copied(name, copied, rng):
    check(machine(name), rng, 70, 72, 136, orders=("row", "column", "row"), padding=(1, 0, 0), alpha=0.5, beta=2.0)


@every_machine
def test_float8_of_any_lines(name, rng):
    fp8 = pytest.importorskip("ml_dtypes").float8_e4m3fn
    a, b = (rng.standard_normal(shape).astype(fp8) for shape in ((33, 71), (40, 71)))
    where = machine(name)
    out = where.values(gemm(where.array(a), where.array(b).T, out=where.array(np.full((33, 40), np.nan, np.float32))))
    assert np.allclose(out, a.astype(np.float64) @ b.astype(np.float64).T, rtol=2e-3, atol=2e-2)


@pytest.mark.gpu
def test_a_call_that_is_repeated_copies_its_own_operands(copied, rng):
    torch = pytest.importorskip("torch")
    for _ in range(3):
        a, b = (torch.randn(shape, device="cuda", dtype=torch.float16) for shape in ((67, 131), (131, 75)))
        assert torch.allclose(gemm(a, b).float(), a.float() @ b.float(), rtol=2e-3, atol=5e-2)
