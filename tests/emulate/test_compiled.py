"""Kernels as nvcc, Triton and numba compile them compute what their source says."""

import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from tests.corpus import make
from tests.emulate.support import clean, launch, only

BF16 = np.dtype(ml_dtypes.bfloat16)


def text_of(name):
    directory = Path(tempfile.gettempdir(), "ptxdsl-corpus")
    directory.mkdir(exist_ok=True)
    try:
        return make.ptx_text(name, directory)
    except make.Unavailable as reason:
        pytest.skip(str(reason))


def compiled(name, *arguments, kernel=None, **options):
    return launch(text_of(name), *arguments, name=kernel, **options)


@pytest.mark.parametrize("build", ["sm_80", "sm_90-G"])
def test_recursion_function_tables_and_virtual_calls(build):
    x = np.arange(40, dtype=np.int32) * 7
    areas = np.zeros(40, np.float32)
    before = x.copy()
    clean(compiled(f"cuda-recursion-{build}", x, areas, block=40))
    i = np.arange(40)
    called = np.choose(before % 3, [before + i, before * i, before - i])
    ackermann = 2 * (i & 3) + 3
    assert (x == called + ackermann + (i % 2 == 0)).all()
    np.testing.assert_allclose(areas, np.where(i & 1, 2.25, 3.14159274 * 0.25), rtol=1e-6)


@pytest.mark.parametrize("build", ["sm_80", "sm_80-lineinfo"])
def test_printing_from_a_kernel(build, capfd):
    x, n = np.array([1.5, -2.25, 3.0], np.float32), np.array([5, 1 << 40, 8], np.int64)
    report = clean(compiled(f"cuda-printing-{build}", x, n, 100, block=3))
    assert report.output == (
        'thread 0 of block 0: 1.500000 and 5, "text\twith\\escapes" q %\n'
        'thread 1 of block 0: -2.250000 and 1099511627776, "text\twith\\escapes" q %\n'
        'thread 2 of block 0: 3.000000 and 8, "text\twith\\escapes" q %\n'
    )
    assert capfd.readouterr().out == report.output


def test_a_trap_behind_a_print():
    x, n = np.zeros(1, np.float32), np.array([-1], np.int64)
    report = compiled("cuda-printing-sm_80", x, n, 100, block=1)
    assert report.output.endswith("negative: nothing more to say\n")
    assert only(report).kind == "trap"


def test_a_failed_assertion():
    x, n = np.zeros(4, np.float32), np.zeros(4, np.int64)
    report = compiled("cuda-printing-sm_80", x, n, 2, block=4)
    finding = only(report)
    assert finding.kind == "assert"
    assert finding.message == (
        'assertion `i < limit && "index past the limit"` failed in '
        "void report(const float *, const long long *, int) (printing.cu:8)"
    )
    assert (finding.count, report.output.count("\n")) == (2, 2)


@pytest.mark.parametrize("build", ["sm_80", "sm_80-rdc-true", "sm_100a-rdc-true"])
def test_calls_with_structs_and_many_arguments(build, rng):
    x, n = rng.standard_normal(32).astype(np.float32), rng.integers(-9, 9, 32).astype(np.int32)
    d, s = np.arange(6, dtype=np.float64), np.arange(32, dtype=np.int64)
    first, second = x * x, n.copy()
    i = np.arange(32)
    flipped = (i & 1).astype(bool)
    first[flipped], second[flipped] = -first[flipped], ~second[flipped]
    report = compiled(f"cuda-device_calls-{build}", x, n, d, s, block=1)
    clean(report)
    assert (x[0], n[0]) == (first[0], second[0])
    np.testing.assert_allclose(d, np.arange(6) + 0.5 * np.arange(6))
    assert s[0] == 0 + 0 + int(x[0]) + int(d[0]) + 7 + 0 - 1


def interpret(code, x):
    """The switch of switches.cu, for codes that Python can say shortly."""
    for c in code:
        if c == 0:
            return x
        x = {1: x + 3, 2: x * x, 5: -x, 7: bin(x & 0xFFFFFFFF).count("1"), 11: min(x, 100) + max(x, 5)}[c]
        x = (x + 2**31) % 2**32 - 2**31
    return x


@pytest.mark.parametrize("build", ["sm_80", "sm_90-lineinfo"])
def test_dense_switches(build):
    code, x = np.array([1, 2, 5, 11, 1, 7, 2, 1, 0], np.uint8), np.arange(-20, 20, dtype=np.int32)
    expected = [interpret(code, int(v)) for v in x]
    clean(compiled(f"cuda-switches-{build}", code, x, kernel="_Z3runPKhPi", block=40))
    assert list(x) == expected


@pytest.mark.parametrize("build", ["sm_80", "sm_90-lineinfo"])
def test_loops_with_continue_break_and_goto(build):
    x, y = np.array([3, -1, 7, 2, 9, 99, 5], np.int32), np.zeros(16, np.int32)
    clean(compiled(f"cuda-switches-{build}", x, y, 7, kernel="_Z4flowPKiPii", block=16))

    def flow(i):
        total = 0
        for k in range(7):
            if x[k] < 0:
                continue
            if x[k] == 99:
                break
            for j in range(k, 7, 2):
                if x[j] == i:
                    return -1
                total += x[j] * k
        return total

    assert list(y) == [flow(i) for i in range(16)]


@pytest.mark.parametrize("build", ["sm_75", "sm_80", "sm_100a"])
def test_shuffles_of_all_types(build, rng):
    a, b = rng.integers(0, 99, 32).astype(np.int32), rng.standard_normal(32).astype(np.float32)
    c, d = rng.integers(0, 99, 32).astype(np.float64), rng.integers(0, 1 << 60, 32).astype(np.uint64)
    old_a, old_b, old_c, old_d = (v.copy() for v in (a, b, c, d))
    clean(compiled(f"cuda-warps-{build}", a, b, c, d, kernel="_Z8shufflesPiPfPdPy"))
    i = np.arange(32)
    up = old_a[np.maximum(i - 1, 0)]
    down = old_a[np.where(i % 16 + 2 < 16, i + 2, i)]
    assert (a == old_a[3] + up + down).all()
    assert (b == old_b[i ^ 7]).all()
    assert c[0] == old_c.sum()
    assert (d == old_d ^ old_d[a & 31]).all()


def test_lanes_that_do_not_agree_on_a_membermask():
    """The last instruction of this kernel synchronises with a mask that differs from lane to lane."""
    a, keys = np.array([5, 2, 0, 7] * 8, np.int32), np.full(32, 1 << 40, np.uint64)
    report = compiled("cuda-warps-sm_80", a, np.zeros(32, np.uint32), keys, kernel="_Z5votesPiPjPy")
    finding = only(report)
    assert (finding.kind, finding.count) == ("divergent-collective", 23)
    assert finding.message == "bar.warp.sync: lane 1 passes membermask 0x99999999, which does not include it"


def test_reductions_over_a_warp(rng):
    a, b = rng.integers(-99, 99, 32).astype(np.int32), rng.integers(0, 1 << 32, 32, dtype=np.uint32)
    expected = a.sum() + a.min() + a.max()
    bits = [f.reduce(b) for f in (np.bitwise_and, np.bitwise_or, np.bitwise_xor)]
    clean(compiled("cuda-warps-sm_80", a, b, kernel="_Z10reductionsPiPj"))
    assert (a == expected).all()
    assert (b == (bits[0] | bits[1] ^ bits[2])).all()


def test_local_arrays(rng):
    x, out = rng.integers(0, 256, 1000, dtype=np.uint8), np.zeros(64, np.uint32)
    clean(compiled("cuda-local_arrays-sm_80", x, out, 1000, kernel="_Z9histogramPKhPji", block=64))
    assert (out == np.bincount(x & 63, minlength=64)).all()


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("build", ["sm_80", "sm_80-G"])
def test_arrays_whose_address_escapes(build, k, rng):
    x, out = rng.integers(-50, 50, (20, 3)).astype(np.int32), np.zeros(20, np.int32)
    clean(compiled(f"cuda-local_arrays-{build}", x, out, k, kernel="_Z7mediansPKiPii", block=20))
    assert (out == np.sort(x, axis=1)[:, k]).all()


@pytest.mark.parametrize("build", ["sm_80", "sm_90"])
def test_module_variables_and_their_initial_values(build):
    out, text = np.zeros(10, np.float64), np.zeros(10, np.int8)
    report = compiled(f"cuda-globals-{build}", out, text, block=10, checks=False)
    assert only(compiled(f"cuda-globals-{build}", out, text, block=10)).kind == "race"  # all threads add to one counter
    clean(report)
    i = np.arange(10)
    weights = np.array([1.0, -0.5, 0.25, 3.5e-8, np.inf], np.float32).astype(np.float64)[i % 5]
    scale, code = np.array([0.1, -2e300, 1.0])[i % 3], np.array([-3, 7, 0])[i % 3]
    masks = np.array([2.0**63, 255, 1])[i % 3]
    expected = weights * scale + code + 17 + np.array([1, 2, 3, 255, 5, 0, 0])[i % 7] + masks
    np.testing.assert_allclose(out, expected, rtol=1e-15)
    names, message = ["alpha\0", "b\0\0\0\0\0", "\0" * 6], 'a "quoted" word\0'
    assert [chr(c & 127) for c in text] == [chr(ord(names[k % 3][k % 6]) + ord(message[k % 16]) & 127) for k in i]


@pytest.mark.parametrize("build", ["sm_80", "sm_90"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_generic_addresses_know_their_space(build, which):
    x = np.arange(40, dtype=np.int32) * 10
    before = x.copy()
    report = compiled(f"cuda-generic-{build}", x, which, kernel="_Z6spacesPii", block=1)
    clean(report)
    loaded = [before[0] + 2, before[0] + 1, before[2] + 3][which]
    assert x[0] == loaded


def test_a_bounce_buffer_and_copies_of_odd_structs(rng):
    a, b, raw = np.zeros(16 * 8, np.uint8), rng.integers(0, 256, 16 * 8, dtype=np.uint8), np.zeros(150, np.uint8)
    clean(compiled("cuda-generic-sm_80", a, b, raw, kernel="_Z6copiesP3OddPKS_Pc", block=8))
    expected = b.reshape(8, 16).copy()
    expected[np.arange(8), 8 + np.arange(8) % 5] ^= expected[:, 0]
    used = [0, *range(2, 13)]
    assert (a.reshape(8, 16)[:, used] == expected[:, used]).all()
    assert (raw[3:44] == b[:41]).all()
    assert (raw[100:137] == 0x5A).all()


@pytest.mark.parametrize("build", ["sm_75", "sm_80-lineinfo"])
def test_a_transpose_through_shared_memory(build, rng):
    x = rng.standard_normal((70, 45)).astype(np.float32)
    out = np.zeros((45, 70), np.float32)
    kernel = "_Z9transposeILi32EEvPKfPfii"
    clean(compiled(f"cuda-shared_memory-{build}", x, out, 70, 45, kernel=kernel, grid=(2, 3), block=(32, 8)))
    assert (out == x.T).all()


def test_static_and_dynamic_shared_memory_and_barriers_that_reduce():
    cell = np.dtype([("value", np.float32, 4), ("word", np.int32), ("pad", np.int32, 3)])
    cells = np.zeros(40, cell)
    cells["word"], cells["value"] = np.arange(40) << 16, np.arange(160).reshape(40, 4)
    expected = cells[::-1].copy()
    expected["word"] += 0 + 0 + 20
    expected["value"][:, 3] += cells["value"][np.arange(40) & 7, 0]
    octets = cells.view(np.uint8)
    report = compiled("cuda-shared_memory-sm_75", octets, 40, kernel="_Z7dynamicP4Celli", block=40, shared_bytes=1280)
    clean(report)
    assert (cells["word"] == expected["word"]).all()
    assert (cells["value"] == expected["value"]).all()


@pytest.mark.parametrize("shape", [(64, 64, 32), (70, 100, 88), (1, 8, 8)])
@pytest.mark.parametrize("build", ["sm_80", "sm_90"])
def test_a_tensor_core_gemm_with_guarded_edges(build, shape, rng):
    m, n, k = shape
    a, b = (rng.standard_normal((rows, k)).astype(np.float16) for rows in (m, n))
    c = rng.standard_normal((m, n)).astype(np.float32)
    expected = 2.0 * (a.astype(np.float64) @ b.T.astype(np.float64)) + 0.5 * c
    grid = (-(-n // 64), -(-m // 64))
    clean(compiled(f"cuda-gemm-{build}", a, b, c, m, n, k, 2.0, 0.5, grid=grid, block=128))
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


def test_a_grid_wide_barrier(rng):
    x = rng.standard_normal(300).astype(np.float32)
    expected = 2 * x
    expected[0] = expected[-1]
    clean(compiled("cuda-groups-sm_80", x, 300, kernel="_Z9grid_widePfi", grid=5, block=32))
    assert (x == expected).all()


@pytest.mark.exhaustive
@pytest.mark.parametrize("build", ["sm_80", "sm_90"])
def test_sums_scans_and_sorts_of_cub(build, rng):
    x, y = rng.integers(-99, 99, 256).astype(np.float32), np.zeros(2, np.float32)
    clean(compiled(f"cuda-blocks-{build}", x, y, kernel="_Z4sumsPKfPf", grid=2, block=128))
    assert (y == x.reshape(2, 128).sum(1)).all()

    items = rng.integers(-99, 99, 256).astype(np.int32)
    expected = np.cumsum(items) - items
    clean(compiled(f"cuda-blocks-{build}", items, kernel="_Z5scansPi", block=64))
    assert (items == expected).all()

    keys, values = rng.integers(0, 4096, 128).astype(np.uint32), np.arange(128, dtype=np.int16)
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    clean(compiled(f"cuda-blocks-{build}", keys, values, kernel="_Z5sortsPjPs", block=64))
    assert (keys == sorted_keys).all()
    assert (values == order).all()


def test_a_hash_table_that_threads_fill_together(rng):
    keys, values = rng.integers(0, 60, 200).astype(np.uint64), rng.integers(1, 9, 200).astype(np.uint32)
    table = np.zeros(128, np.dtype([("key", np.uint64), ("value", np.uint32), ("pad", np.uint32)]))
    table["key"] = 2**64 - 1
    octets = table.view(np.uint8)
    kernel = "_Z6insertP4SlotjPKyPKji"
    clean(compiled("cuda-containers-sm_80", octets, 127, keys, values, 200, kernel=kernel, grid=2, block=128))
    used = table[table["key"] != 2**64 - 1]
    sums = {int(k): int(values[keys == k].sum()) for k in np.unique(keys)}
    assert {int(k): int(v) for k, v in zip(used["key"], used["value"], strict=True)} == sums


def test_workers_that_take_jobs_from_a_queue():
    jobs, out = np.arange(10, 30, dtype=np.int32), np.zeros((20, 64), np.int32)
    clean(compiled("cuda-containers-sm_80", jobs, out, 20, kernel="_Z7workersPKiPii", grid=3, block=64))
    assert (out == jobs[:, None] * np.arange(64)).all()


@pytest.mark.parametrize("build", ["sm_80", "sm_90"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_copies_in_flight(build, n, rng):
    x, y = rng.standard_normal((n, 128, 4)).astype(np.float32), np.zeros((128, 4), np.float32)
    report = compiled(f"cuda-async_copies-{build}", x, y, n, kernel="_Z7by_handPK6float4PS_i", block=128)
    if n > 1:
        clean(report)
        np.testing.assert_allclose(y, x.sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("build", ["sm_80", "sm_90"])
def test_an_mbarrier_that_copies_arrive_at(build, rng):
    x, y = rng.standard_normal(128), np.zeros(128)
    clean(compiled(f"cuda-async_copies-{build}", x, y, kernel="_Z8barriersPKdPd", block=128))
    assert (y == x[::-1]).all()


@pytest.mark.parametrize("build", ["sm_80", "sm_90"])
def test_pipelines_of_the_cuda_library(build, rng):
    x, y = rng.integers(0, 99, (5, 128)).astype(np.int32), np.zeros(128, np.int32)
    clean(compiled(f"cuda-async_copies-{build}", x, y, 5, kernel="_Z9pipelinesPKiPii", block=128))
    assert (y == x.sum(0)).all()

    x, y = rng.integers(0, 99, 256).astype(np.int32), np.zeros(128, np.int32)
    clean(compiled(f"cuda-async_copies-{build}", x, y, kernel="_Z10primitivesPKiPi", block=128))
    assert (y == np.where(np.arange(128) % 2 == 1, x[255:127:-1], 0)).all()


SCRATCH = (None, None)  # two pointers that Triton appends


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["triton-matmul_f16-sm_80", "triton-matmul_tf32-sm_80", "triton-matmul_f64-sm_80"])
def test_matrix_products_of_triton(name, rng):
    m, n, k = 100, 70, 48
    inputs, outputs, rtol = {
        "triton-matmul_f16-sm_80": (np.float16, np.float16, 2e-3),
        "triton-matmul_tf32-sm_80": (np.float32, np.float32, 5e-3),
        "triton-matmul_f64-sm_80": (np.float64, np.float64, 1e-12),
    }[name]
    a, b = rng.standard_normal((m, k)).astype(inputs), rng.standard_normal((k, n)).astype(inputs)
    c = np.zeros((m, n), outputs)
    tile = 32 if inputs is np.float64 else 64
    grid = -(-m // tile) * -(-n // tile)
    clean(compiled(name, a, b, c, m, n, k, k, n, n, *SCRATCH, grid=grid, block=128, shared_bytes=65536))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=rtol, atol=rtol * 10)


class Problem(pd.Parameters):
    """The struct of tma_gemm.cu."""

    a: pd.TensorMap(pd.bf16, (64, 64), swizzle=128)
    b: pd.TensorMap(pd.bf16, (64, 64), swizzle=128)
    out: pd.TensorMap(pd.f32, (64, 64))
    k: pd.u32


@pytest.mark.parametrize("build", ["sm_90a", "sm_90a-lineinfo"])
def test_a_product_by_tma_and_wgmma_in_the_style_of_deepgemm(build, rng):
    """Tensor maps inside of a struct; a bulk store is in flight when its block ends, which is a strict finding."""
    m, n, k = 128, 192, 320
    a, b = (rng.integers(-2, 3, (rows, k)).astype(BF16) for rows in (m, n))
    exact = a.astype(np.float32) @ b.astype(np.float32).T
    kernel = pd.parse(text_of(f"cuda-tma_gemm-{build}"))["tma_gemm"]
    for schedule in ("lockstep", "random:1"):
        out = np.zeros((m, n), np.float32)
        problem = Problem(a=a, b=pd.tensor_map(b, (64, 64), swizzle=128), out=out, k=k)
        report = pd.emulate(kernel, (3, 2), 160, problem, shared_bytes=4 * 16384, schedule=schedule)
        assert not report.errors and {f.kind for f in report.findings} <= {"unwaited-async"}
        assert (out == exact).all()
    out[:] = 0
    kernel[(3, 2), 160, 4 * 16384](problem)
    assert (out == exact).all()


def tensor_descriptor(array, box):
    """The arguments that Triton passes for a tensor descriptor of the host."""
    return pd.tensor_map(array, box, swizzle=128), *array.shape, *(s // array.itemsize for s in array.strides)


@pytest.mark.parametrize("name", ["triton-matmul_tma-sm_90", "triton-persistent-sm_90"])
def test_products_by_tma_of_triton(name, rng):
    """By tensor maps of the host, and by those that the kernel makes in a workspace."""
    m, n, k, workspace = 256, 128, 192, np.zeros(3 * 128 * 4, np.uint8)
    a, b = (rng.integers(-2, 3, (rows, k)).astype(np.float16) for rows in (m, n))
    c = np.zeros((m, n), np.float16)
    arguments, grid, block = (a, b, c, m, n, k), 2, 256
    if name == "triton-matmul_tma-sm_90":
        arguments = (
            *tensor_descriptor(a, (128, 64)),
            *tensor_descriptor(b, (64, 64)),
            *tensor_descriptor(c, (128, 64)),
            k,
        )
        grid, block = (2, 2), 128
    (kernel,) = (module := pd.parse(text_of(name))).ir.kernels
    module[kernel.name][grid, block, 200_000](*arguments, workspace, None)
    assert (c == (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)).all()


def on_blackwell(name, grid, *arguments):
    """Launch a kernel for sm_100a. It has no tcgen05 fences between threads, which are strict findings alone."""
    module = pd.parse(text_of(f"triton-tcgen05_{name}-sm_100"))
    (kernel,) = module.ir.kernels
    report = pd.emulate(module[kernel.name], grid, 128, *arguments, *SCRATCH, shared_bytes=200_000)
    assert report.findings and not report.errors
    assert all("no tcgen05.fence::" in finding.message for finding in report.findings)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name, dtype", [("f16", np.float16), ("tf32", np.float32), ("fp8", ml_dtypes.float8_e4m3fn)])
def test_products_of_triton_by_tcgen05(name, dtype, rng):
    m, n, k = 130, 70, 100
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)
    on_blackwell(name, 4, a, b, c, m, n, k, k, n, n)
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


@pytest.mark.cases(1)
@pytest.mark.parametrize("name, block", [("mxf8", 32), ("mxf4", 32), ("nvf4", 16)])
def test_products_of_triton_with_block_scales(name, block, rng):
    m, n, k = 128, 64, 256

    def factor(rows):
        """Return the elements and scales as the kernel reads them, and their product."""
        if name == "mxf8":
            elements = rng.standard_normal((rows, k)).astype(ml_dtypes.float8_e4m3fn)
            numbers = elements.astype(np.float64)
        else:
            codes = rng.integers(0, 16, (rows, k), np.uint8)
            elements, numbers = codes[:, ::2] | codes[:, 1::2] << 4, E2M1[codes]
        if name == "nvf4":
            scales = rng.uniform(0.25, 4, (rows, k // block)).astype(ml_dtypes.float8_e4m3fn)
            factors = scales.astype(np.float64)
        else:
            scales = rng.integers(120, 134, (rows, k // block), np.uint8)
            factors = 2.0 ** (scales - 127.0)
        return elements, scales, numbers * factors.repeat(block, 1)

    (a, a_scales, x), (b, b_scales, y) = factor(m), factor(n)
    c = np.full((m, n), np.nan, np.float32)
    on_blackwell(name, 1, a, a_scales, b, b_scales, c, k)
    np.testing.assert_allclose(c, x @ y.T, rtol=1e-5, atol=1e-5 * np.abs(x @ y.T).max())


def test_an_attention_of_triton_by_tcgen05(rng):
    length, d = 256, 64
    q, k, v = (rng.standard_normal((length, d)).astype(BF16) for _ in range(3))
    out = np.full((length, d), np.nan, np.float32).astype(BF16)
    on_blackwell("attention", 2, q, k, v, out, length, np.float32(np.log2(np.e) / 8))
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = np.where(np.tri(length, dtype=bool), q @ k.T / 8, -np.inf)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out.astype(np.float64), powers / powers.sum(1, keepdims=True) @ v, atol=0.02)


def test_a_softmax_of_triton(rng):
    x, out = rng.standard_normal((3, 900)).astype(np.float32), np.zeros((3, 900), np.float32)
    clean(compiled("triton-softmax-sm_80", x, out, 900, 900, *SCRATCH, grid=3, block=128, shared_bytes=4096))
    powers = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, powers / powers.sum(1, keepdims=True), rtol=1e-5)


def test_atomics_and_a_spin_lock_of_triton(rng):
    x = rng.integers(0, 1000, 700).astype(np.int32)
    counts, best, lock = np.zeros(16, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    total = np.zeros(1, np.float32)
    arguments = (x, counts, best, lock, total, 700, *SCRATCH)
    clean(compiled("triton-atomics-sm_80", *arguments, grid=3, block=128, shared_bytes=4096))
    assert (counts == np.bincount(x % 16, minlength=16)).all()
    assert (best[0], lock[0], total[0]) == (x.max(), 0, x.sum())


def array_of(a):
    """The arguments that numba passes for an array."""
    return (None, None, a.size, a.itemsize, a, *a.shape, *a.strides)


def test_a_matrix_product_of_numba(rng):
    a, b, c = rng.standard_normal((9, 5)), rng.standard_normal((5, 12)), np.zeros((9, 12))
    arguments = (*array_of(a), *array_of(b), *array_of(c))
    clean(compiled("numba-matmul-sm_80", *arguments, grid=(2, 2), block=(8, 8)))
    np.testing.assert_allclose(c, a @ b, rtol=1e-12)


def test_a_warp_sum_of_numba(rng):
    x, out = rng.integers(1, 9, 96).astype(np.float32), np.zeros(3, np.float32)
    clean(compiled("numba-warp_sum-sm_80", *array_of(x), *array_of(out), block=96))
    assert (out == x.reshape(3, 32).sum(1) + 1).all()  # only lane 0 votes: the others have ended
