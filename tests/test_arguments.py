"""Arguments and launch shapes: what fits, the bytes that a kernel gets, and the full sentence of each refusal."""

import ctypes
import math
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxdsl import types
from ptxdsl.arrays import HOST, Array, describe, strided
from ptxdsl.errors import LaunchError
from ptxdsl.runtime.arguments import Signature, overlap
from ptxdsl.runtime.shape import Shape, launch_shape
from ptxdsl.runtime.values import Bytes
from ptxdsl.types import f32, ptr, u32

SAXPY = Signature("saxpy", [("x", ptr[f32]), ("y", ptr[f32]), ("a", f32), ("n", u32)], written={"y"})
X, Y = np.ones(8, np.float32), np.ones(8, np.float32)


class OnGpu:
    """An array on a GPU that its interface does not name."""

    __module__ = "numba.cuda"

    def __init__(self, pointer=1 << 20, shape=(8,), readonly=False):
        self.__cuda_array_interface__ = {
            "version": 3, "shape": shape, "typestr": "<f4", "data": (pointer, readonly),
        }  # fmt: skip


def refusal(signature, arguments, device=HOST):
    with pytest.raises(LaunchError) as refused:
        signature.check(arguments, device)
    assert "signature.check(arguments, device)" in str(refused.value)  # the caller's line
    return refused.value.message, refused.value.help


def one(kind, argument, device=HOST):
    """The checked value of a single parameter."""
    return Signature("k", [("p", kind)]).check([argument], device)[0]


def refused_one(kind, argument, device=HOST):
    return refusal(Signature("k", [("p", kind)]), [argument], device)


def packed(kind, argument):
    """The bytes that a kernel gets for a parameter."""
    return Signature("k", [("p", kind)]).pack([one(kind, argument)])[0]


def test_arguments_that_fit_come_back_in_order():
    x, y, a, n = SAXPY.check((X, Y, 2.0, 8), HOST)
    assert (x, y, a, n) == (describe(X), describe(Y), 2.0, 8)


@pytest.mark.parametrize("arguments", [(X, Y, 2.0), (X, Y, 2.0, 8, 9)])
def test_a_wrong_number_of_arguments(arguments):
    assert refusal(SAXPY, arguments) == (
        f"saxpy takes 4 arguments, got {len(arguments)}",
        "call it with (x: ptr[f32], y: ptr[f32], a: f32, n: u32)",
    )


@pytest.mark.parametrize(
    "argument, found",
    [
        (np.zeros(8), "a numpy array of f64 with shape (8,)"),
        (np.zeros((2, 4), np.int32), "a numpy array of s32 with shape (2, 4)"),
        (np.zeros(8, np.complex64), "a numpy array of complex64 with shape (8,)"),
        (np.zeros(8, ">f4"), "a numpy array of >f4 with shape (8,)"),
    ],
)
def test_an_array_of_another_type(argument, found):
    assert refusal(SAXPY, (argument, Y, 2.0, 8)) == (
        f"`x` expects ptr[f32], got {found}",
        "convert it to float32 first",
    )


@pytest.mark.parametrize(
    "element, name", [("bf16", "bfloat16"), ("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2"), ("f16", "float16")]
)
def test_the_type_to_convert_to_has_the_name_that_libraries_give_it(element, name):
    assert refused_one(ptr[types.TYPES[element]], np.zeros(8))[1] == f"convert it to {name} first"


@pytest.mark.parametrize(
    "element, dtype",
    [
        ("bf16", ml_dtypes.bfloat16),
        ("bf16", np.uint16),
        ("e4m3", ml_dtypes.float8_e4m3fn),
        ("e5m2", np.uint8),
        ("tf32", np.float32),
        ("f16x2", np.float16),
        ("f16x2", np.uint32),
        ("s4", np.uint8),
        ("b32", np.float32),
        ("b32", np.int32),
        ("b16", ml_dtypes.bfloat16),
        ("u8", np.bool_),
    ],
)
def test_types_that_numpy_lacks_are_taken_as_raw_bits(element, dtype):
    assert isinstance(one(ptr[types.TYPES[element]], np.zeros(8, dtype)), Array)


@pytest.mark.parametrize(
    "element, dtype", [("u32", np.int32), ("b32", np.float64), ("e4m3", np.int8), ("f16", np.uint16)]
)
def test_other_types_of_the_same_width_are_not(element, dtype):
    assert refused_one(ptr[types.TYPES[element]], np.zeros(8, dtype))[0].startswith(f"`p` expects ptr[{element}], got")


@pytest.mark.parametrize("argument, shown", [([1.0], "a list"), ("x", "'x'"), (2.5, "2.5"), (True, "True")])
def test_what_is_no_array(argument, shown):
    assert refusal(SAXPY, (argument, Y, 2.0, 8)) == (f"`x` expects ptr[f32], got {shown}", "pass an array")


def test_an_array_with_gaps():
    assert refusal(SAXPY, (np.ones(16, np.float32)[::2], Y, 2.0, 8)) == (
        "`x` has shape (8,) and strides (2,), but a kernel pointer needs row-major, contiguous memory",
        "pass a contiguous copy, or ptxdsl.arrays.strided(array) if other arguments pass the strides to the kernel",
    )


def test_a_transposed_array():
    message, _ = refused_one(ptr[f32], np.ones((2, 3), np.float32).T)
    assert message == (
        "`p` has shape (3, 2) and strides (1, 3), but a kernel pointer needs row-major, contiguous memory"
    )


def test_strided_takes_any_strides_but_no_other_type():
    view = np.ones((2, 3), np.float32).T
    assert one(ptr[f32], strided(view)) == describe(view)
    assert refused_one(ptr[f32], strided(view.astype(np.float64)))[0] == (
        "`p` expects ptr[f32], got a numpy array of f64 with shape (3, 2)"
    )


def test_an_array_that_is_not_aligned():
    storage = np.zeros(64, np.uint8)
    start = -storage.__array_interface__["data"][0] % 4 + 1
    view = storage[start : start + 32].view(np.float32)
    assert refusal(SAXPY, (view, Y, 2.0, 8)) == (
        f"`x` expects ptr[f32], aligned to 4 bytes, but it starts at {describe(view).pointer:#x}",
        "pass a copy; a view of bytes may be unaligned",
    )


def test_an_array_that_cannot_be_addressed():
    points = np.zeros(4, [("x", "<f4"), ("flag", "u1")])
    assert refusal(SAXPY, (points["x"], Y, 2.0, 8)) == (
        "`x` cannot be used: its strides of (5,) bytes are not multiples of its 4-byte elements",
        "pass an array with its own memory on the host or a GPU",
    )


@pytest.mark.parametrize("name", ["FakeTensor", "FunctionalTensor", "Proxy"])
def test_a_value_that_torch_traces(name):
    """torch.export and fake tensors hand functions values of these classes."""
    traced = type(name, (), {"__module__": "torch._subclasses.fake_tensor", "__dlpack__": None})()
    assert refusal(SAXPY, (traced, Y, 2.0, 8)) == (
        "`x` cannot be used: torch traces it (torch.compile, torch.export, FakeTensorMode), and it has no memory yet",
        "make the kernel a torch operator: `ptxdsl.torch.op(name, kernel, grid=…, block=…, out={…})`",
    )


def test_a_value_that_jax_traces():
    """JAX hands functions that it traces values of a class that derives from its Tracer."""
    tracer = type("Tracer", (), {"__module__": "jax._src.core"})
    traced = type("DynamicJaxprTracer", (tracer,), {"__dlpack__": None, "__float__": None})()
    assert refusal(SAXPY, (traced, Y, 2.0, 8)) == (
        "`x` cannot be used: JAX traces it (jax.jit, jax.grad, jax.vmap), and it has no memory yet",
        "make the kernel a JAX function: `ptxdsl.jax.call(kernel, grid=…, block=…, out=…)`",
    )
    assert refusal(SAXPY, (X, Y, traced, 8)) == (
        "`a` expects f32; it is traced by JAX and has no value yet",
        "launch numbers must be Python numbers: name it in `static_argnums` of jax.jit, or take it from a shape",
    )


def test_an_output_that_is_read_only():
    frozen = Y.copy()
    frozen.flags.writeable = False
    assert refusal(SAXPY, (X, frozen, 2.0, 8)) == (
        "`y` is read-only, but saxpy writes it",
        "pass a writable copy",
    )
    SAXPY.check((frozen, Y, 2.0, 8), HOST)  # an input may be


@pytest.mark.parametrize("x, y", [(X[1:], X), (X[:5], X[4:]), (X[2:3], X), (X[:5], X)])
def test_an_output_that_overlaps_an_input(x, y):
    assert refusal(SAXPY, (x, y, 2.0, 8)) == (
        "`y`, which saxpy writes, shares memory with `x`",
        "pass separate memory for the output, since threads run in no fixed order; if the overlap is intended, launch with overlap=True",
    )


def test_neighbours_and_interleaved_views_do_not_overlap():
    SAXPY.check((X[:4], X[4:], 2.0, 4), HOST)
    SAXPY.check((strided(X[::2]), strided(X[1::2]), 2.0, 4), HOST)
    SAXPY.check((X[:0], X, 2.0, 4), HOST)


def test_an_array_may_be_given_twice():
    """As NVIDIA's samples do: that is what the caller wrote."""
    SAXPY.check((X, X, 2.0, 8), HOST)
    SAXPY.check((X.reshape(2, 4), X, 2.0, 8), HOST)


def test_arrays_may_overlap_where_the_caller_says_so():
    SAXPY.check((X[1:], X, 2.0, 7), HOST, may_overlap=True)


def test_inputs_may_overlap():
    add = Signature("add", [("a", ptr[f32]), ("b", ptr[f32]), ("c", ptr[f32])], written={"c"})
    add.check((X, X, Y), HOST)


@given(st.data())
def test_overlap_is_what_numpy_finds_element_by_element(data):
    base = np.zeros(60, np.float32)
    part = st.slices(60).map(lambda s: base[s])
    one, other = data.draw(part), data.draw(part)
    assert overlap(describe(one), describe(other)) == np.shares_memory(one, other)


def test_views_that_are_too_hard_to_tell_apart_count_as_overlapping():
    base = np.zeros(1 << 20, np.uint8)
    odd = [np.lib.stride_tricks.as_strided(base[n:], (60,) * 3, (1009 + n, 1013, 1019)) for n in range(2)]
    assert overlap(describe(odd[0]), describe(odd[1]))


@pytest.mark.parametrize("device, where", [(0, "on cuda:0"), (3, "on cuda:3")])
def test_a_host_array_on_a_gpu(device, where):
    assert refusal(SAXPY, (X, Y, 2.0, 8), device) == (
        f"`x` is a numpy array of f32 with shape (8,) in host memory, but this launch runs {where}",
        f"move it to cuda:{device}; a launch with only numpy arrays runs on the emulator",
    )


def test_a_gpu_array_on_the_emulator():
    message, help = refusal(SAXPY, (OnGpu(), Y, 2.0, 8))
    assert message == "`x` is a numba array of f32 with shape (8,) on a GPU, but this launch runs on the emulator"
    assert help == "pass only numpy arrays, or only arrays on one GPU"


def test_arrays_of_two_gpus():
    gpus = {1 << 20: 1, 2 << 20: 0}
    with pytest.raises(LaunchError) as refused:
        SAXPY.check((OnGpu(1 << 20), OnGpu(2 << 20), 2.0, 8), locate=gpus.get)
    assert refused.value.message == (
        "`y` is a numba array of f32 with shape (8,) on cuda:0, but this launch runs on cuda:1"
    )


def test_an_address_is_taken_on_a_gpu_and_refused_on_the_emulator():
    assert one(ptr[f32], 0x7F00, device=0) == 0x7F00
    assert one(ptr[f32], np.uint64(0x7F00), device=0) == 0x7F00
    assert refused_one(ptr[f32], 0x7F00) == (
        "`p` is the address 0x7f00, which is not emulator memory",
        "pass the numpy array itself",
    )


@pytest.mark.parametrize("nothing", [None, 0])
def test_a_null_pointer_is_taken_everywhere(nothing):
    assert one(ptr[f32], nothing) == 0
    assert one(ptr[f32], nothing, device=0) == 0


@pytest.mark.parametrize("address", [-4, 1 << 64])
def test_an_address_that_is_none(address):
    assert refused_one(ptr[f32], address, 0) == (f"`p` expects ptr[f32]; {address} is not an address", None)


def test_an_address_that_is_not_aligned():
    assert refused_one(ptr[f32], 5, 0) == (
        "`p` expects ptr[f32]; the number 5 is not a valid address of f32, which must be a multiple of 4",
        "pass the array itself; a number is taken as an address",
    )


@pytest.mark.parametrize("name", ["u64", "s64", "b64"])
def test_a_64_bit_integer_of_parsed_ptx_takes_an_array_of_any_type(name):
    kind = types.TYPES[name]
    doubles = np.zeros(3)
    assert one(kind, doubles) == describe(doubles)
    assert one(kind, 5) == 5
    assert refused_one(kind, np.zeros(6)[::2])[0].startswith("`p` has shape (3,) and strides (2,)")


SCALARS = {
    "u8": (0, 255), "u16": (0, 65535), "u32": (0, 2**32 - 1), "u64": (0, 2**64 - 1),
    "s8": (-128, 127), "s16": (-32768, 32767), "s32": (-(2**31), 2**31 - 1), "s64": (-(2**63), 2**63 - 1),
}  # fmt: skip


@pytest.mark.parametrize("name, limits", SCALARS.items())
def test_integers_arrive_in_little_endian_up_to_their_limits(name, limits):
    kind = types.TYPES[name]
    for number in limits:
        assert packed(kind, number) == number.to_bytes(kind.bytes, "little", signed=number < 0)
    assert packed(kind, True) == packed(kind, np.int64(1)) == packed(kind, 1)


@pytest.mark.parametrize("name, limits", SCALARS.items())
def test_integers_beyond_their_limits(name, limits):
    signed = f"declare a signed parameter for numbers that may be negative: `p: s{name[1:]}`"
    for number in (limits[0] - 1, limits[1] + 1):
        assert refused_one(types.TYPES[name], number) == (
            f"`p` expects {name}; {number} is out of range ({limits[0]} to {limits[1]})",
            signed if number == -1 else "use a wider parameter",
        )


@pytest.mark.parametrize("name, number", [("f16", 2049), ("bf16", 257), ("f32", 16777217), ("f64", 2**53 + 1)])
def test_an_int_that_a_float_parameter_cannot_hold(name, number):
    """As the literal in a kernel; a float is rounded."""
    kind = types.TYPES[name]
    assert refused_one(kind, number) == (
        f"`p` expects {name}, which cannot represent {number} exactly", "pass float(p) to round it",
    )  # fmt: skip
    assert refused_one(kind, np.int64(number))[0] == f"`p` expects {name}, which cannot represent {number} exactly"
    assert packed(kind, float(number)) == packed(kind, number - 1) == packed(kind, float(number - 1))


@pytest.mark.parametrize("mask", [False, [True, False, False]])
def test_masked_arrays(mask):
    assert refused_one(ptr[f32], np.ma.array(np.ones(3, np.float32), mask=mask)) == (
        "`p` is a masked array, and a kernel would ignore the mask",
        "pass the values, p.data, or fill the masked elements: p.filled(0)",
    )


def test_untyped_bits_take_either_sign_and_floats_of_their_width():
    assert packed(types.b32, -1) == packed(types.b32, 2**32 - 1) == b"\xff" * 4
    assert packed(types.b32, 1.5) == packed(types.b32, np.float32(1.5)) == struct.pack("<f", 1.5)
    assert packed(types.b64, 1.5) == struct.pack("<d", 1.5)
    assert packed(types.b16, np.float16(1.5)) == struct.pack("<e", 1.5)
    assert refused_one(types.b16, 1.5) == ("`p` expects an integer (b16), got 1.5", "pass int(p)")
    assert refused_one(types.b32, -(2**31) - 1)[0] == (
        "`p` expects b32; -2147483649 is out of range (-2147483648 to 4294967295)"
    )


@pytest.mark.parametrize("name, code", [("f16", "<e"), ("f32", "<f"), ("f64", "<d"), ("tf32", "<f")])
@pytest.mark.parametrize("number", [0.1, -2, 0, math.inf, np.float64(0.25), np.int32(3)])
def test_floats_are_rounded_to_their_type(name, code, number):
    assert packed(types.TYPES[name], number) == struct.pack(code, number)


@given(st.floats(width=32, allow_nan=False))
def test_bf16_is_rounded_to_nearest_even(number):
    expected = np.float32(number).astype(ml_dtypes.bfloat16)
    if math.isinf(expected) and not math.isinf(number):
        assert refused_one(types.bf16, number)[0] == f"`p` expects bf16; {number!r} is out of range"
    else:
        assert packed(types.bf16, number) == expected.tobytes()


def test_nan_stays_nan():
    for name, code in (("f16", "<e"), ("f32", "<f")):
        assert math.isnan(struct.unpack(code, packed(types.TYPES[name], math.nan))[0])
    assert packed(types.bf16, math.nan) == b"\xff\x7f"  # as the hardware writes it


@pytest.mark.parametrize("name, number", [("f32", 1e300), ("f16", 1e6), ("f32", 10**400), ("bf16", 3.4e38)])
def test_a_float_that_is_too_large(name, number):
    message, help = refused_one(types.TYPES[name], number)
    assert message == f"`p` expects {name}; {number!r} is out of range"
    assert help == "use a wider parameter"


@pytest.mark.parametrize("number", [2.5, 8.0, np.float32(2)])
def test_a_float_for_an_integer(number):
    assert refusal(SAXPY, (X, Y, 2.0, number)) == (
        f"`n` expects an integer (u32), got {float(number)!r}",
        "pass int(n)",
    )


@pytest.mark.parametrize("argument, shown", [("2", "'2'"), (1j, "1j"), (None, "None"), ([2], "a list")])
@pytest.mark.parametrize("name, kind", [("a", "f32"), ("n", "u32")])
def test_what_is_no_number(name, kind, argument, shown):
    arguments = (X, Y, argument, 8) if name == "a" else (X, Y, 2.0, argument)
    assert refusal(SAXPY, arguments) == (f"`{name}` expects {kind}, got {shown}", "pass a Python number")


def test_an_array_for_a_number():
    assert refusal(SAXPY, (X, Y, 2.0, X)) == (
        "`n` expects u32, got a numpy array of f32 with shape (8,)",
        "pass its value: int(n) or float(n)",
    )


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int32), ("b", ctypes.c_float))


@pytest.mark.parametrize(
    "argument",
    [
        struct.pack("<if", 7, 0.5),
        bytearray(struct.pack("<if", 7, 0.5)),
        Pair(7, 0.5),
        np.array((7, 0.5), [("a", "<i4"), ("b", "<f4")]),
        np.array([(7, 0.5)], [("a", "<i4"), ("b", "<f4")])[0],
    ],
    ids=lambda argument: type(argument).__name__,
)
def test_a_struct_by_value_is_its_bytes(argument):
    assert packed(Bytes(8, 4), argument) == struct.pack("<if", 7, 0.5)


def test_a_struct_of_another_size():
    assert refused_one(Bytes(8), b"1234") == ("`p` expects a struct of 8 bytes, got 4 bytes", None)


def test_what_is_no_struct():
    assert refused_one(Bytes(8), 5) == (
        "`p` expects a struct of 8 bytes, got 5",
        "pass bytes, or a ctypes or numpy struct",
    )


def test_slots_start_at_multiples_of_eight_bytes_in_order():
    kinds = [types.u8, ptr[f32], types.f16, Bytes(12), types.f64, types.bf16]
    layout, offsets = Signature("k", [(f"p{n}", kind) for n, kind in enumerate(kinds)]).slots()
    assert offsets == (0, 8, 16, 24, 40, 48)
    assert layout.size == 56
    content = layout.pack(200, 1 << 40, 1.5, b"twelve bytes", 2.5, 0x3F80)
    assert content[0] == 200
    assert content[8:16] == (1 << 40).to_bytes(8, "little")
    assert content[16:18] == struct.pack("<e", 1.5)
    assert content[24:36] == b"twelve bytes"
    assert content[40:48] == struct.pack("<d", 2.5)
    assert content[48:50] == b"\x80\x3f"


@pytest.mark.parametrize(
    "grid, block, expected",
    [
        (8, 128, Shape((8, 1, 1), (128, 1, 1))),
        ((2, 3), (16, 16), Shape((2, 3, 1), (16, 16, 1))),
        ((2**31 - 1, 65535, 65535), (4, 4, 64), Shape((2**31 - 1, 65535, 65535), (4, 4, 64))),
        (np.int64(8), (np.int32(4),), Shape((8, 1, 1), (4, 1, 1))),
    ],
)
def test_shapes_of_one_to_three_extents(grid, block, expected):
    assert launch_shape(grid, block) == expected


def test_a_shape_with_all_that_a_launch_can_have():
    shape = launch_shape((4, 2), 64, 1000, (2, 1), True)
    assert shape == Shape((4, 2, 1), (64, 1, 1), 1000, (2, 1, 1), True)
    assert shape.threads == 64


@pytest.mark.parametrize(
    "launch, message, help",
    [
        (
            {"grid": 0},
            "grid is (0, 1, 1): every extent must be at least 1",
            "skip the launch if there is nothing to do",
        ),
        (
            {"block": (32, 0)},
            "block is (32, 0, 1): every extent must be at least 1",
            None,
        ),
        ({"grid": (1, 70000)}, "grid is (1, 70000, 1): the limit of its y extent is 65535", None),
        ({"grid": 2**31}, "grid is (2147483648, 1, 1): the limit of its x extent is 2147483647", None),
        ({"block": (1, 1, 65)}, "block is (1, 1, 65): the limit of its z extent is 64", None),
        (
            {"block": (64, 32)},
            "a block of (64, 32, 1) has 2048 threads; the limit is 1024",
            "use a smaller block and a larger grid",
        ),
        ({"grid": "8"}, "grid is '8'; it must be an int, or a tuple of one to three ints", None),
        ({"grid": [8]}, "grid is [8]; it must be an int, or a tuple of one to three ints", None),
        ({"grid": 8.0}, "grid is 8.0; it must be an int, or a tuple of one to three ints", "use integer division `//`; to round up, write `-(-n // 128)`"),
        ({"block": np.zeros(3)}, "block is a ndarray; it must be an int, or a tuple of one to three ints",
         "grid and block come before the arguments: `k[grid, block](…)`, pd.emulate(k, grid, block, …)"),
        ({"block": ()}, "block is (); it must be an int, or a tuple of one to three ints", None),
        ({"block": (1, 1, 1, 1)}, "block is (1, 1, 1, 1); it must be an int, or a tuple of one to three ints", None),
        (
            {"shared_bytes": -1},
            "shared_bytes is -1; it must be a number of bytes of dynamic shared memory, 0 or more",
            None,
        ),
        (
            {"shared_bytes": "1k"},
            "shared_bytes is '1k'; it must be a number of bytes of dynamic shared memory, 0 or more",
            None,
        ),
        ({"cluster": (4, 4, 2)}, "a cluster of (4, 4, 2) has 32 blocks; the limit is 16",
         "every GPU with clusters supports up to 8 blocks"),
        ({"cluster": 0}, "cluster is (0, 1, 1): every extent must be at least 1", None),
        (
            {"cluster": 3},
            "a grid of (8, 1, 1) blocks is not a multiple of clusters of (3, 1, 1)",
            "round the grid up to whole clusters, and let the blocks past the end of the problem return",
        ),
    ],
)  # fmt: skip
def test_a_launch_that_no_gpu_can_do(launch, message, help):
    with pytest.raises(LaunchError) as refused:
        launch_shape(**{"grid": 8, "block": 32, **launch})
    assert (refused.value.message, refused.value.help) == (message, help)
