"""Kernels as functions of JAX arrays: inside jit, under vmap and grad, on the emulator and on a GPU."""

import os
import subprocess
import sys

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import LaunchError, Parameters, config, f16, f32, ptr, u32
from ptxdsl.kernels import gemm as products

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy
ours = pytest.importorskip("ptxdsl.jax")
on_each = pytest.mark.parametrize("platform", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


@pytest.fixture(autouse=True)
def where(request):
    """JAX computes on the platform of the test."""
    platform = getattr(request.node, "callspec", None) and request.node.callspec.params.get("platform")
    with jax.default_device(jax.devices(platform or "cpu")[0]):
        yield


@pd.kernel
def saxpy(x: ptr[f32], z: ptr[f32], y: ptr[f32], a: f32, n: u32):
    i = pd.ctaid.x * pd.ntid.x + pd.tid.x
    with pd.if_(i < n):
        z[i] = a * x[i] + y[i]


@pd.kernel
def sum_and_difference(x: ptr[f16], y: ptr[f16], plus: ptr[f16], minus: ptr[f16]):
    i = pd.tid.x
    plus[i] = x[i] + y[i]
    minus[i] = x[i] - y[i]


@pd.kernel
def beyond(x: ptr[f32], z: ptr[f32]):
    z[pd.tid.x + 5] = x[pd.tid.x]


scaled = ours.call(
    saxpy,
    grid=lambda x, y, a, n: -(-n // 128),
    block=128,
    out={"z": lambda x, y, a, n: jax.ShapeDtypeStruct(x.shape, x.dtype)},
)


def operands(*shape, dtype=jnp.float32):
    return [jax.random.normal(jax.random.key(n), shape).astype(dtype) for n in (1, 2)]


@on_each
def test_a_kernel_called_and_jitted(platform):
    x, y = operands(300)
    assert jnp.allclose(scaled(x, y, 2.0, 300), 2 * x + y, atol=1e-6)
    jitted = jax.jit(lambda x, y: scaled(x * 2, y, 3.0, 300).sum())
    assert jnp.allclose(jitted(x, y), (6 * x + y).sum(), rtol=1e-3, atol=1e-3)


@on_each
def test_it_runs_anew_with_other_numbers_shapes_and_arrays(platform):
    for n in (40, 300):
        for factor in (1.0, 2.5):
            x, y = operands(n)
            for _ in range(2):
                x = scaled(x, y, factor, n)
            x0, _ = operands(n)
            assert jnp.allclose(x, factor * (factor * x0 + y) + y, atol=1e-5)


@on_each
def test_two_outputs(platform):
    out = dict.fromkeys(("minus", "plus"), jax.ShapeDtypeStruct((64,), jnp.float16))
    x, y = operands(64, dtype=jnp.float16)
    minus, plus = jax.jit(ours.call(sum_and_difference, grid=1, block=64, out=out))(x, y)
    assert jnp.array_equal(minus, x - y) and jnp.array_equal(plus, x + y)


@on_each
def test_vmap_calls_it_for_each(platform):
    x, y = operands(3, 200)
    mapped = jax.vmap(lambda x: scaled(x, y[0], 3.0, 200))(x)
    assert jnp.allclose(mapped, 3 * x + y[0], atol=1e-5)


@on_each
@pytest.mark.parametrize("shapes", [((40, 24), (24, 56)), ((2, 40, 24), (2, 24, 56))])
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_gemm_and_its_gradient(shapes, dtype, platform):
    a, b = (operands(*shape, dtype=dtype)[0] for shape in shapes)

    def loss(product):
        return lambda a, b: jnp.square(product(a, b).astype(jnp.float32)).mean()

    result, expected = (jax.jit(jax.value_and_grad(loss(f), (0, 1)))(a, b) for f in (ours.gemm, jnp.matmul))
    assert jnp.allclose(result[0], expected[0], rtol=1e-2)
    for one, other in zip(result[1], expected[1], strict=True):
        assert one.dtype == other.dtype
        assert jnp.abs(one - other).max() <= 0.02 * jnp.abs(other).max()


def test_vmap_of_gemm_and_of_its_gradient():
    a, b = operands(3, 16, 16, dtype=jnp.float16)

    def loss(product):
        return lambda a, b: jnp.square(product(a, b).astype(jnp.float32)).mean()

    for one, other in (
        (jax.vmap(ours.gemm), jax.vmap(jnp.matmul)),
        (jax.vmap(jax.grad(loss(ours.gemm))), jax.vmap(jax.grad(loss(jnp.matmul)))),
    ):
        assert jnp.allclose(one(a, b), other(a, b), atol=0.02, rtol=0.01)


def test_a_launcher_of_several_kernels():
    def twice(a, b, factor, out):
        hidden = products.gemm(a, b)
        products.gemm(hidden, b, out=out, alpha=factor)

    a, b = operands(24, 24, dtype=jnp.float16)
    out = jax.ShapeDtypeStruct((24, 24), jnp.float16)
    result = jax.jit(lambda a, b: ours.call(twice, out=out)(a, b, 0.5))(a, b)
    expected = 0.5 * ((a @ b).astype(jnp.float32) @ b.astype(jnp.float32))
    assert jnp.abs(result - expected).max() < 0.05 * jnp.abs(expected).max()


def test_settings_in_force_where_it_is_traced_hold_where_it_runs():
    seen = []

    def launch(x, out):
        seen.append(config.current().arch)
        out[...] = x

    copy = ours.call(launch, out=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype))
    with config.using(arch="sm_90a"):
        compiled = jax.jit(copy).lower(jnp.ones(4)).compile()
    compiled(jnp.ones(4)).block_until_ready()
    assert seen == ["sm_90a"]


def test_inputs_cannot_be_written():
    def launch(x, out):
        x[0] = 1

    with pytest.raises(Exception, match="read-only"):
        ours.call(launch, out=jax.ShapeDtypeStruct((4,), jnp.float32))(jnp.ones(4)).block_until_ready()


def test_what_a_kernel_does_wrong_is_an_error_of_jax():
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"beyond: st.global.f32 writes 4 bytes at z\[64\]") as raised:
        out = {"z": jax.ShapeDtypeStruct((64,), jnp.float32)}
        ours.call(beyond, grid=1, block=64, out=out)(jnp.ones(64)).block_until_ready()
    assert "z[pd.tid.x + 5] = x[pd.tid.x]" in str(raised.value)


def test_empty_arrays():
    def launch(x, out):
        assert x.shape == (0, 4) and out.shape == (4,)
        out[...] = 1

    assert ours.call(launch, out=jax.ShapeDtypeStruct((4,), jnp.float32))(jnp.zeros((0, 4))).sum() == 4


class Matrix(Parameters):
    data: ptr[f32]
    stride: u32


@pd.kernel
def takes_a_group(m: Matrix, y: ptr[f32]):
    y[0] = m.data[m.stride]


@pd.kernel
def in_place(x: ptr[f32], y: ptr[f32]):
    x[pd.tid.x] = 1
    y[pd.tid.x] = 2


STRUCT = jax.ShapeDtypeStruct((64,), jnp.float32)
REFUSED = {
    "no grid": (
        (saxpy,), {"block": 1, "out": {"z": STRUCT}},
        "kernel `saxpy` is called from JAX without a `grid`",
        "pass `grid=` and `block=`: numbers, or functions of the arguments",
    ),
    "a group": (
        (takes_a_group,), {"grid": 1, "block": 1, "out": {"y": STRUCT}},
        "kernel `takes_a_group`: parameter `m` is Matrix, but JAX passes only arrays and numbers",
        "write a launcher, a function of arrays and numbers that builds it and launches the kernel",
    ),
    "an output that is read": (
        (saxpy,), {"grid": 1, "block": 1, "out": {"x": STRUCT}},
        "kernel `saxpy` is called from JAX with `out` of `x`; it writes `z`",
        "name the arrays that it writes: `out={'y': jax.ShapeDtypeStruct((n,), jnp.float32)}`",
    ),
    "an output without a name": (
        (saxpy,), {"grid": 1, "block": 1, "out": STRUCT},
        "kernel `saxpy` is called from JAX with `out` of no names; it writes `z`",
        "name the arrays that it writes: `out={'y': jax.ShapeDtypeStruct((n,), jnp.float32)}`",
    ),
    "an argument that changes": (
        (in_place,), {"grid": 1, "block": 1, "out": {"y": STRUCT}},
        "kernel `in_place` writes `x`, which is not an output, but JAX arrays are immutable",
        "name it in `out`, or read one array in the kernel and write another (it takes x, y)",
    ),
    "an output without a type": (
        (saxpy,), {"grid": 1, "block": 1, "out": {"z": (4,)}},
        "`out['z']` is (4,)",
        "pass a shape and a type: `jax.ShapeDtypeStruct((n,), jnp.float32)`",
    ),
    "a grid of other arguments": (
        (saxpy,), {"grid": lambda n: n, "block": 1, "out": {"z": STRUCT}},
        "kernel `saxpy` is called from JAX: `grid` is a function of n, but it is called with x, y, a, n",
        "write `lambda x, y, a, n: …`",
    ),
    "a number": (
        (3,), {"out": STRUCT},
        "ptxdsl.jax.call expects a kernel or a launcher, got 3",
        "pass a kernel (@pd.kernel) or a function of arrays and of its outputs",
    ),
    "outputs of a launcher by name": (
        (lambda x, out: None,), {"out": {"z": STRUCT}},
        "a launcher is called from JAX with `out` of `z`",
        "a launcher gets its outputs by position: pass a struct, or a sequence of them",
    ),
    "options of kernels": (
        (lambda x, out: None,), {"grid": 1, "out": STRUCT},
        "a launcher that is called from JAX does not take `grid`, `block` or `constants`",
        "leave these out: the launcher itself launches its kernels",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    target, options, message, help = REFUSED[case]
    with pytest.raises(LaunchError) as raised:
        ours.call(*target, **options)
    assert (raised.value.message, raised.value.help) == (message, help)
    assert "test_calls.py" in str(raised.value)


X = np.ones(4, np.float32)
CALLS = {
    "by name": (
        lambda: scaled(X, X, a=2.0, n=4),
        "a call from JAX takes its arguments by position, but `a` is passed by name",
        "pass the arguments in the order of the parameters, without names",
    ),
    "with a grid": (
        lambda: scaled[1, 32](X, X, 2.0, 4),
        "a function made by ptxdsl.jax.call was indexed with a grid and a block, which were already set",
        "call it with its arguments only",
    ),
    "of a launcher of other arguments": (
        lambda: ours.call(lambda x: None, out=STRUCT)(X),
        "a launcher of x is called with 1 argument and 1 output",
        "write it with its arguments first, then the outputs that it fills",
    ),
    "an option of JAX": (
        lambda: ours.call(saxpy, out_shape=STRUCT),
        "call takes no `out_shape`; it takes target, out, grid, block and constants",
        "use `out=`, with jax.ShapeDtypeStruct",
    ),
    "of one matrix": (lambda: ours.gemm(X), "gemm lacks `b`; it takes a and b", None),
    "of a product with an output": (
        lambda: ours.gemm(X, X, out=X),
        "gemm takes no `out`; it takes a and b",
        "leave it out: JAX allocates its outputs; ptxdsl.kernels.gemm takes `out=`",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_calls_with_other_arguments_are_refused_in_words(case):
    call, message, help = CALLS[case]
    with pytest.raises(pd.Error) as raised:
        call()
    assert (raised.value.message, raised.value.help) == (message, help)
    assert raised.value.at.file == __file__


ARGUMENTS = {
    "too few": (
        lambda x: (x, x, 2.0),
        "kernel `saxpy` takes 4 arguments, got 3", "call it with (x, y, a, n)",
    ),
    "an array for a number": (
        lambda x: (x, x, x[0], 64),
        "`a` expects a number (f32), got a JAX array, whose value is unknown when the call is traced",
        "pass a Python number (static_argnums of jax.jit), or let the kernel take a pointer and read it",
    ),
    "a number for an array": (lambda x: (x, 1.0, 2.0, 64), "`y` expects ptr[f32], got the number 1.0", "pass an array"),
    "another type": (
        lambda x: (x, x.astype(jnp.float16), 2.0, 64),
        "`y` expects ptr[f32], got a jax array of float16", "convert it with .astype first",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ARGUMENTS)
@pytest.mark.parametrize("is_jitted", [True, False])
def test_arguments_are_refused_while_it_is_traced(case, is_jitted):
    arguments, message, help = ARGUMENTS[case]
    run = (lambda x: scaled(*arguments(x))) if not is_jitted else jax.jit(lambda x: scaled(*arguments(x)))
    with pytest.raises(LaunchError) as raised:
        run(jnp.ones(64))
    assert (raised.value.message, raised.value.help) == (message, help)


@pytest.mark.parametrize(
    "a, b, message",
    [
        (np.zeros((4, 8), np.float16), np.zeros((4, 8), np.float16), "`a` has the shape (4, 8) and `b` (4, 8)"),
        (np.zeros((4, 8), np.float16), np.zeros((8, 4), np.float32), "`a` is float16 and `b` is float32"),
        (np.zeros((4, 8), np.int16), np.zeros((8, 4), np.int16), "`a` is int16 and `b` is int16"),
    ],
)
def test_products_that_are_refused(a, b, message):
    with pytest.raises(LaunchError) as raised:
        ours.gemm(jnp.asarray(a), jnp.asarray(b))
    assert raised.value.message == message


def test_a_program_of_another_process_is_refused():
    structs = [jax.ShapeDtypeStruct((4,), jnp.float32)]
    with pytest.raises(jax.errors.JaxRuntimeError, match="the program was compiled in another process"):
        jax.ffi.ffi_call("ptxdsl_call", structs)(call=np.int64(1 << 40))[0].block_until_ready()


SHARDED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P
from ptxdsl.jax import gemm
mesh = jax.make_mesh((2,), ("rows",), axis_types=(AxisType.Auto,))
a, b = (jax.random.normal(jax.random.key(n), (32, 32)).astype(jnp.float16) for n in (1, 2))
product = jax.jit(jax.shard_map(gemm, mesh=mesh, in_specs=(P("rows"), P()), out_specs=P("rows"), check_vma=False))
print(len(product(a, b).sharding.device_set), bool(jnp.allclose(product(a, b), a @ b, atol=0.05)))
"""


def test_each_device_calls_it_with_its_share():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", SHARDED], env=environment, capture_output=True, text=True)
    assert done.stdout == "2 True\n", done.stderr


CALL_IT = "make the kernel a JAX function: `ptxdsl.jax.call(kernel, grid=…, block=…, out=…)`"
CALL_GEMM = "make the call a function of JAX: `ptxdsl.jax.gemm`, or `ptxdsl.jax.call(launcher, out=…)`"
UNTIMELY = "`{}` cannot be used: JAX traces it (jax.jit, jax.grad, jax.vmap), and it has no memory yet"
LATE = {
    "a launch": (lambda x: saxpy[1, 32](x, x, x, 1.0, 32), jnp.ones(32), UNTIMELY.format("x"), CALL_IT),
    "a product": (lambda x: products.gemm(x, x), jnp.ones((16, 16)), UNTIMELY.format("a"), CALL_GEMM),
    "a number": (
        lambda n: saxpy[1, 32](*np.ones((3, 32), np.float32), 1.0, n), 32,
        "`n` expects u32; it is traced by JAX and has no value yet",
        "launch numbers must be Python numbers: name it in `static_argnums` of jax.jit, or take it from a shape",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LATE)
def test_a_launch_inside_of_jit_says_what_makes_it_a_call(case):
    launch, argument, message, help = LATE[case]
    with pytest.raises(LaunchError) as raised:
        jax.jit(launch)(argument)
    assert (raised.value.message, raised.value.help) == (message, help)


@pytest.mark.parametrize(
    ("name", "help"),
    [("cal", "did you mean `call`?"), ("jit", "`call` makes a kernel a function inside jax.jit"), ("zzz", None)],
)
def test_a_name_that_there_is_not(name, help):
    with pytest.raises(AttributeError) as raised:
        getattr(ours, name)
    assert (raised.value.message, raised.value.help) == (f"ptxdsl.jax has no `{name}`", help)


@pd.kernel
def multiplied(x: ptr[f32], y: ptr[f32], *, factor: float):
    y[pd.tid.x] = x[pd.tid.x] * factor


def test_a_constant_that_is_lacking_is_passed_in_a_dict():
    out = {"y": jax.ShapeDtypeStruct((32,), jnp.float32)}
    with pytest.raises(pd.TraceError) as refused:
        ours.call(multiplied, grid=1, block=32, out=out)
    assert (refused.value.message, refused.value.help) == (
        "kernel `multiplied` needs its constant `factor`", "pass `constants={'factor': …}`",
    )  # fmt: skip
    doubled = ours.call(multiplied, grid=1, block=32, out=out, constants={"factor": 2.0})
    assert (doubled(jnp.ones(32)) == 2).all()
