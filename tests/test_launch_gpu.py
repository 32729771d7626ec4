"""Launching on a real GPU, with kernels written by hand: what arrives, where it runs, and what a fault is told."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from ptxdsl import config, driver, types
from ptxdsl.arrays import strided
from ptxdsl.assemble import assemble
from ptxdsl.errors import LaunchError
from ptxdsl.runtime.launch import load
from ptxdsl.runtime.values import Bytes
from ptxdsl.types import f32, ptr, u32, u64

pytestmark = pytest.mark.gpu

HEADER = ".version 7.8\n.target sm_80\n.address_size 64\n"
SAXPY = (
    HEADER
    + """\
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
  .reg .pred %p;
  .reg .b32 %r<5>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  ld.param.u32 %r4, [n];
  setp.ge.u32 %p, %r1, %r4;
  @%p ret;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.f32 %f1, [a];
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd1, %rd1, %rd3;
  add.u64 %rd2, %rd2, %rd3;
  ld.global.f32 %f2, [%rd1];
  ld.global.f32 %f3, [%rd2];
  fma.rn.f32 %f3, %f1, %f2, %f3;
  st.global.f32 [%rd2], %f3;
  ret;
}
"""
)
SAXPY_PARAMETERS = [("x", ptr[f32]), ("y", ptr[f32]), ("a", f32), ("n", u32)]


def compiled(text, name, parameters, written=frozenset(), device=0):
    return load(assemble(text, driver.device_arch(device)), name, parameters, written)


@pytest.fixture(scope="module")
def saxpy():
    return compiled(SAXPY, "saxpy", SAXPY_PARAMETERS, {"y"})


def test_numpy_arrays_go_there_and_back(saxpy, rng):
    x, y = rng.normal(size=(2, 1000)).astype(np.float32)
    expected = (np.float64(2.5) * x + y).astype(np.float32)
    saxpy.launch_on_copies(8, 128, (x, y, 2.5, 1000))
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_a_strided_output_comes_back_in_place(saxpy, rng):
    x, backing = np.ones(4, np.float32), rng.normal(size=(4, 1)).astype(np.float32)
    before = backing.copy()
    saxpy.launch_on_copies(1, 4, (x, strided(backing[:, 0]), 1.0, 4))
    assert np.array_equal(backing, before + 1)


def test_every_type_of_parameter_arrives_bit_for_bit():
    arguments = {
        "u8": 200, "s8": -100, "u16": 60000, "s16": -30000, "u32": 2**32 - 2, "s32": -(2**31), "u64": 2**64 - 3,
        "s64": -(2**63), "f16": 1.5, "f32": 0.1, "f64": 0.1, "bf16": 3.0, "b32": -1, "b64": 2.5,
    }  # fmt: skip
    kinds, values = [types.TYPES[name] for name in arguments], list(arguments.values())
    declared = [f".param .b{kind.bits} p{n}" for n, kind in enumerate(kinds)]
    body = "".join(
        f"  ld.param.b{kind.bits} %v{n}, [p{n}];\n  st.global.b{kind.bits} [%out+{8 * n}], %v{n};\n"
        for n, kind in enumerate(kinds)
    )
    registers = "".join(f"  .reg .b{max(16, kind.bits)} %v{n};\n" for n, kind in enumerate(kinds))
    text = (
        f"{HEADER}.visible .entry copy(.param .u64 out, {', '.join(declared)})\n{{\n  .reg .b64 %out;\n{registers}"
        f"  ld.param.u64 %out, [out];\n{body}  ret;\n}}\n"
    )
    parameters = [("out", ptr[types.b64]), *((f"p{n}", kind) for n, kind in enumerate(kinds))]
    handle = compiled(text, "copy", parameters, {"out"})
    out = np.zeros(len(kinds), np.uint64)
    handle.launch_on_copies(1, 1, (out, *values))
    signature = handle.signature
    expected = signature.pack([0, *signature.check([0, *values])[1:]])[1:]
    assert [word.tobytes()[: kind.bytes] for word, kind in zip(out, kinds, strict=True)] == expected
    assert expected[9] == np.float32(0.1).tobytes()
    assert expected[1] == b"\x9c"


def test_a_struct_by_value_arrives():
    text = (
        HEADER
        + """\
.visible .entry sum(.param .u64 out, .param .align 8 .b8 pair[16])
{
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [pair];
  ld.param.u64 %rd3, [pair+8];
  add.u64 %rd4, %rd2, %rd3;
  st.global.u64 [%rd1], %rd4;
  ret;
}
"""
    )
    handle = compiled(text, "sum", [("out", ptr[u64]), ("pair", Bytes(16, 8))], {"out"})
    out = np.zeros(1, np.uint64)
    handle.launch_on_copies(1, 1, (out, np.array([40, 2], np.uint64)))
    assert out[0] == 42


DYNAMIC = (
    HEADER
    + """\
.extern .shared .align 16 .b8 tile[];
.visible .entry last(.param .u64 out, .param .u32 bytes)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [bytes];
  mov.u32 %r2, tile;
  add.u32 %r2, %r2, %r1;
  mov.u32 %r3, 12345;
  st.shared.u32 [%r2+-4], %r3;
  ld.shared.u32 %r1, [%r2+-4];
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
)


def test_all_the_shared_memory_of_a_block_can_be_used_and_no_more():
    handle = compiled(DYNAMIC, "last", [("out", ptr[u32]), ("bytes", u32)], {"out"})
    most = driver.device(0).shared_bytes
    assert most > 48 * 1024
    for shared_bytes in (48 * 1024, 48 * 1024 + 4, most, 64):
        out = np.zeros(1, np.uint32)
        handle.launch_on_copies(1, 1, (out, shared_bytes), shared_bytes=shared_bytes)
        assert out[0] == 12345
    with pytest.raises(LaunchError, match=f"a block on .* can have {most}"):
        handle.launch_on_copies(1, 1, (out, most + 1), shared_bytes=most + 1)


def test_clusters_have_the_shape_that_was_asked_for():
    if driver.device(0).capability < (9, 0):
        pytest.skip("clusters came with sm_90")
    text = (
        HEADER.replace("sm_80", "sm_90")
        + """\
.visible .entry ranks(.param .u64 out)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 8;
  add.u64 %rd1, %rd1, %rd2;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, %cluster_nctaid.x;
  st.global.v2.u32 [%rd1], {%r2, %r3};
  ret;
}
"""
    )
    handle = compiled(text, "ranks", [("out", ptr[u32])], {"out"})
    for size in (1, 2, 4, 8, 16):
        out = np.zeros((32, 2), np.uint32)
        handle.launch_on_copies(32, 32, (out,), cluster=size)
        assert out[:, 0].tolist() == [block % size for block in range(32)]
        assert (out[:, 1] == size).all()


def test_a_cooperative_grid_that_fits_runs_and_one_that_does_not_is_refused(saxpy):
    x, y = np.ones(1024, np.float32), np.zeros(1024, np.float32)
    saxpy.launch_on_copies(8, 128, (x, y, 3.0, 1024), cooperative=True)
    assert (y == 3).all()
    with pytest.raises(LaunchError) as refused:
        saxpy.launch_on_copies(100_000, 1024, (x, y, 3.0, 1024), cooperative=True)
    assert "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE" in refused.value.message
    assert (y == 3).all()


def test_a_block_that_the_kernels_maxntid_forbids(saxpy):
    handle = compiled(SAXPY.replace(")\n{", ")\n.maxntid 64, 1, 1\n{", 1), "saxpy", SAXPY_PARAMETERS, {"y"})
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    with pytest.raises(LaunchError) as refused:
        handle.launch_on_copies(1, 128, (x, y, 3.0, 8))
    assert refused.value.message == "a block of (128, 1, 1) has 128 threads; saxpy can have at most 64"


def test_occupancy_falls_with_shared_memory(saxpy):
    assert saxpy.occupancy(1024) * 1024 <= 2048
    assert saxpy.occupancy(128, shared_bytes=driver.device(0).shared_bytes) == 1
    assert saxpy.occupancy(128) > 1


def test_modules_linked_by_us_call_each_other():
    helper = (
        HEADER
        + """\
.visible .func (.param .b32 r) triple(.param .b32 a)
{
  .reg .b32 %r<2>;
  ld.param.b32 %r1, [a];
  mul.lo.u32 %r1, %r1, 3;
  st.param.b32 [r], %r1;
  ret;
}
"""
    )
    caller = (
        HEADER
        + """\
.extern .func (.param .b32 r) triple(.param .b32 a);
.visible .entry caller(.param .u64 out)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  {
    .param .b32 p;
    .param .b32 q;
    st.param.b32 [p], %r1;
    call (q), triple, (p);
    ld.param.b32 %r2, [q];
  }
  st.global.u32 [%rd1], %r2;
  ret;
}
"""
    )
    for route in ("nvjitlink", "driver"):
        with config.using(assembler=route, cache_dir="off"):
            handle = compiled([caller, helper], "caller", [("out", ptr[u32])], {"out"})
        out = np.zeros(32, np.uint32)
        handle.launch_on_copies(1, 32, (out,))
        assert out.tolist() == [3 * n for n in range(32)]


def test_a_thread_that_never_used_the_gpu_can_launch(saxpy):
    x, y = np.ones((2, 4, 256), np.float32)
    threads = [
        threading.Thread(target=saxpy.launch_on_copies, args=(2, 128, (x[n], y[n], float(n), 256))) for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert y.tolist() == (np.arange(4)[:, None] * x + 1).tolist()


FAULT = """
import numpy as np
from ptxdsl import driver
from ptxdsl.assemble import assemble
from ptxdsl.errors import LaunchError
from ptxdsl.runtime.launch import load
from ptxdsl.types import ptr, u32

TEXT = '''.version 7.0
.target sm_80
.address_size 64
.visible .entry bad(.param .u64 out)
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  st.global.u32 [%rd1+-4096], 1;
  ret;
}
'''
handle = load(assemble(TEXT, driver.device_arch()), "bad", [("out", ptr[u32])], {"out"})
handle(1, 1, (1 << 12,), device=0)   # returns: a launch does not wait
for _ in range(2):
    try:
        driver.synchronize()
    except LaunchError as failed:
        print(failed)
out = np.zeros(1, np.uint32)
try:
    handle.launch_on_copies(1, 1, (out,))
except LaunchError as failed:
    print(failed.help)
"""


def test_a_fault_is_reported_later_with_the_way_to_find_it():
    # A fault ends all work of its process on the GPU.
    done = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    waiting_at = 1 + next(n for n, line in enumerate(FAULT.splitlines()) if "driver.synchronize()" in line)
    help = (
        "an earlier kernel on this GPU failed, and the process must be restarted; run that kernel on the emulator "
        "(numpy arrays) to find the Python line and the thread"
    )
    first, place, advice, *_, last = done.stdout.splitlines()
    assert first.startswith("waiting for cuda:0: CUDA_ERROR_ILLEGAL_ADDRESS: ")
    assert (place, advice, last) == (f"  <string>:{waiting_at}", f"  help: {help}", help)


class TestTorch:
    @pytest.fixture
    def torch(self):
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("this torch sees no GPU")
        return torch

    def test_tensors_are_read_and_written_in_place(self, torch, saxpy):
        x, y = torch.randn(2, 1000, device="cuda")
        expected = 2.5 * x + y
        for _ in range(2):  # the careful way, then the quick one
            again = y.clone()
            saxpy(8, 128, (x, again, 2.5, 1000))
            torch.testing.assert_close(again, expected)

    def test_launches_follow_torchs_current_stream(self, torch, saxpy):
        side = torch.cuda.Stream()
        x, y = torch.ones(1 << 24, device="cuda"), torch.zeros(1 << 24, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            for _ in range(50):
                y.add_(1)
                saxpy(1 << 17, 128, (x, y, 1.0, 1 << 24))
            result = y.clone()
        side.synchronize()
        assert (result == 100).all()

    def test_a_graph_captures_launches_and_replays_them(self, torch, saxpy):
        x, y = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
        saxpy(8, 128, (x, y, 1.0, 1000))
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            saxpy(8, 128, (x, y, 1.0, 1000))
            saxpy((8,), (128,), (x, y, 10.0, 1000))
        assert (y == 1).all()
        for _ in range(3):
            graph.replay()
        assert (y == 34).all()

    def test_a_graph_keeps_the_parameters_of_each_launch(self, torch, saxpy):
        """Those of a launch like the one before it, too, whatever is launched after the capture."""
        x, y, z = (torch.full((1000,), value, device="cuda") for value in (1.0, 0.0, 0.0))
        saxpy(8, 128, (x, y, 1.0, 1000))
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(2):
                saxpy(8, 128, (x, y, 2.0, 1000))
            saxpy(8, 128, (x, z, 3.0, 1000))
        for _ in range(2):
            saxpy(8, 128, (y, z, 0.0, 1000))
            graph.replay()
        assert (y == 9).all() and (z == 6).all()

    def test_launches_that_differ_in_one_thing_get_what_is_theirs(self, torch, saxpy):
        """Each after one that is like it, and after one that is not."""
        x, y = torch.randn(2, 1024, device="cuda").unbind()
        side = torch.cuda.Stream()
        calls = [
            (x, y, 2.0, 1024),
            (y, x, 2.0, 1024),
            (x, y, 2.0, 512),
            (x, y, -0.5, 1024),
            (x[512:], y[512:], 2.0, 512),
        ]
        for first, written, a, n in calls * 2:
            for stream in (None, side):
                expected = written.clone()
                for _ in range(2):
                    expected[:n] += a * first[:n]
                torch.cuda.synchronize()
                for _ in range(2):
                    saxpy(8, 128, (first, written, a, n), stream=stream)
                torch.cuda.synchronize()
                torch.testing.assert_close(written, expected)
                written.copy_(torch.randn_like(written))

    def test_memory_that_is_another_tensor_now_is_checked_anew(self, torch, saxpy):
        x, y = torch.ones(1024, device="cuda"), torch.zeros(1024, device="cuda")
        for _ in range(2):
            saxpy(8, 128, (x, y, 1.0, 1024))
        other = y.view(torch.int32)
        assert other.data_ptr() == y.data_ptr()
        with pytest.raises(LaunchError) as refused:
            saxpy(8, 128, (x, other, 1.0, 1024))
        assert refused.value.message == "`y` expects ptr[f32], got a torch array of s32 with shape (1024,)"
        with pytest.raises(LaunchError, match="row-major, contiguous memory"):
            saxpy(8, 128, (x, y[::2], 1.0, 512))
        saxpy(4, 128, (x[:512], y[:512], 1.0, 512))
        assert (y[:512] == 3).all() and (y[512:] == 2).all()

    def test_threads_that_launch_at_the_same_time_get_what_is_theirs(self, torch, saxpy):
        x = torch.ones(1024, device="cuda")
        sums = [torch.zeros(1024, device="cuda") for _ in range(4)]
        torch.cuda.synchronize()

        def launch(n):
            for _ in range(500):
                saxpy(8, 128, (x, sums[n], float(n + 1), 1024), stream=streams[n])

        streams = [torch.cuda.Stream() for _ in sums]
        threads = [threading.Thread(target=launch, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        torch.cuda.synchronize()
        assert [each.unique().tolist() for each in sums] == [[500.0 * (n + 1)] for n in range(4)]

    def test_what_does_not_fit_is_refused_and_writes_nothing(self, torch, saxpy):
        x, y = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
        saxpy(8, 128, (x, y, 0.0, 1000))
        bad = {
            "`x` expects ptr[f32], got a torch array of f64 with shape (1000,)": (x.double(), y, 1.0, 1000),
            "`y` has shape (500,) and strides (2,), but a kernel pointer needs row-major, contiguous memory": (
                x, y[::2], 1.0, 500,
            ),
            "`y`, which saxpy writes, shares memory with `x`": (y[:999], y[1:], 1.0, 999),
            "`n` expects u32; -1 is out of range (0 to 4294967295)": (x, y, 1.0, -1),
            "`x` is a torch array of f32 with shape (1000,) in host memory, but this launch runs on cuda:0": (
                x.cpu(), y, 1.0, 1000,
            ),
            "`a` expects f32, got a torch array of f32 with shape ()": (x, y, x[0], 1000),
            "`x` cannot be used: it is on the device `meta`": (x.to("meta"), y, 1.0, 1000),
        }  # fmt: skip
        for message, arguments in bad.items():
            with pytest.raises(LaunchError) as refused:
                saxpy(8, 128, arguments)
            assert refused.value.message == message
        assert (y == 0).all()

    def test_parameters_and_tensors_with_gradients_are_tensors(self, torch, saxpy):
        x = torch.nn.Parameter(torch.ones(1000, device="cuda"))
        y = torch.zeros(1000, device="cuda")
        saxpy(8, 128, (x, y, 2.0, 1000))
        assert (y == 2).all()

    def test_every_type_that_torch_and_ptx_share(self, torch):
        shared = {
            "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "s8", "uint8": "u8",
            "int16": "s16", "int32": "s32", "int64": "s64", "bool": "u8",
            "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
        }  # fmt: skip
        for dtype, name in shared.items():
            handle = compiled(SAXPY, "saxpy", [("x", ptr[types.TYPES[name]]), *SAXPY_PARAMETERS[1:]])
            y = torch.zeros(8, device="cuda")
            handle(1, 8, (torch.zeros(64, device="cuda").to(getattr(torch, dtype)), y, 0.0, 0))

    def test_a_tensor_of_a_thread_without_context(self, torch, saxpy):
        x, y = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
        torch.cuda.synchronize()
        failures = []

        def launch():
            try:
                saxpy(8, 128, (x, y, 2.0, 1000))
            except LaunchError as failed:
                failures.append(failed)

        thread = threading.Thread(target=launch)
        thread.start()
        thread.join()
        assert failures == []
        torch.cuda.synchronize()
        assert (y == 2).all()

    def test_the_current_gpu_of_a_thread_stays_the_same(self, torch):
        if torch.cuda.device_count() < 2:
            pytest.skip("needs two GPUs")
        handle = compiled(SAXPY, "saxpy", SAXPY_PARAMETERS, {"y"})
        for device in (1, 0, 1):
            x, y = torch.ones(1000, device=f"cuda:{device}"), torch.zeros(1000, device=f"cuda:{device}")
            handle(8, 128, (x, y, 2.0, 1000))
            assert torch.cuda.current_device() == 0
            assert (y == 2).all()


def test_cupy_arrays_and_cupys_current_stream(saxpy):
    cupy = pytest.importorskip("cupy")
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream:
            x, y = cupy.ones(1000, cupy.float32), cupy.zeros(1000, cupy.float32)
            for _ in range(3):
                saxpy(8, 128, (x, y, 2.0, 1000))
            assert (cupy.asnumpy(y, stream=stream) == 6).all()
    with pytest.raises(LaunchError, match=r"`y` has shape \(500,\) and strides \(2,\)"):
        saxpy(8, 128, (x, y[::2], 2.0, 500))


def test_jax_arrays_are_read_and_never_written(saxpy):
    jax = pytest.importorskip("jax")
    torch = pytest.importorskip("torch")
    if jax.default_backend() != "gpu":
        pytest.skip("this JAX sees no GPU")
    x, y = jax.numpy.arange(1000, dtype="float32") * 2, torch.zeros(1000, device="cuda")
    saxpy(8, 128, (x, y, 2.0, 1000))
    assert y.cpu().tolist() == [4 * n for n in range(1000)]
    with pytest.raises(LaunchError) as refused:
        saxpy(8, 128, (y, x, 2.0, 1000))
    assert refused.value.message == "`y` is read-only, but saxpy writes it"


class OnlyProtocol:
    """Hides all of an array but one protocol."""

    def __init__(self, array, *names):
        for name in names:
            setattr(self, name, getattr(array, name))


@pytest.mark.parametrize("protocol", [("__cuda_array_interface__",), ("__dlpack__", "__dlpack_device__")])
def test_an_array_known_by_a_protocol_alone(saxpy, protocol):
    torch = pytest.importorskip("torch")
    x, y = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
    saxpy(8, 128, (OnlyProtocol(x, *protocol), OnlyProtocol(y, *protocol), 2.0, 1000))
    torch.cuda.synchronize()
    assert (y == 2).all()
