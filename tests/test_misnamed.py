"""Calls with arguments that a function of ours does not have: the full text of each refusal."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import errors, f32, layout
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.conv_gradients import conv2d_dgrad, conv2d_wgrad
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_masked, grouped_gemm_ragged
from ptxdsl.schedule import PersistentScheduler
from tests.tracing import source_kernel

A = np.zeros((4, 4), np.float16)


def takes(function):
    """The end of a message: the names of what a function takes."""
    *names, last = (name for name in inspect.signature(function).parameters if name != "self")
    return f"it takes {', '.join(names)} and {last}"


GEMM, CONV, CONFIG, KERNEL, RING = map(takes, (gemm, conv2d, GemmConfig, pd.kernel, pd.Ring))
RAGGED, MASKED = map(takes, (grouped_gemm_ragged, grouped_gemm_masked))
CALLS = {
    "misspelt": (lambda: gemm(A, A, epilog=abs), f"gemm takes no `epilog`; {GEMM}", "did you mean `epilogue`?"),
    "a bias": (
        lambda: gemm(A, A, bias=A[0]),
        f"gemm takes no `bias`; {GEMM}",
        "gemm(…, epilogue=add, operands=[per_column(bias)]) adds one; import add and per_column from ptxdsl.kernels.epilogue",
    ),
    "an activation": (
        lambda: gemm(A, A, activation="relu"),
        f"gemm takes no `activation`; {GEMM}",
        "it is the epilogue: gemm(…, epilogue=relu), with relu from ptxdsl.kernels.epilogue or a function of your own",
    ),
    "a bias of groups": (
        lambda: grouped_gemm_masked(A[None], A[None], np.zeros(1, np.int32), bias=A[0]),
        f"grouped_gemm_masked takes no `bias`; {MASKED}",
        "grouped_gemm_masked(…, epilogue=add, operands=[per_column(bias)]) adds one; import add and per_column from ptxdsl.kernels.epilogue",
    ),
    "an activation of groups": (
        lambda: grouped_gemm_ragged(A, A[None], np.zeros(1, np.int32), act="relu"),
        f"grouped_gemm_ragged takes no `act`; {RAGGED}",
        "it is the epilogue: grouped_gemm_ragged(…, epilogue=relu), with relu from ptxdsl.kernels.epilogue or a function of your own",
    ),
    "nothing near": (lambda: gemm(A, A, zzz=1), f"gemm takes no `zzz`; {GEMM}", None),
    "too few": (lambda: gemm(A), f"gemm lacks `b`; {GEMM}", None),
    "too many": (
        lambda: gemm(A, A, A, A),
        "gemm takes 3 positional arguments; 4 given",
        f"pass the arguments after `c` by name; {GEMM}",
    ),
    "twice": (lambda: gemm(A, A, a=A), "gemm has `a` twice, by position and by name", None),
    "the padding of torch": (
        lambda: conv2d(A, A, padding=1),
        f"conv2d takes no `padding`; {CONV}",
        "use `pad=`: one number, or one for height and one for width",
    ),
    "of a gradient": (
        lambda: conv2d_wgrad(A, A, (1, 1), padding=1),
        "conv2d_wgrad takes no `padding`; it takes dy, x, window, pad, stride, dilation, out and config",
        "use `pad=`: one number, or one for height and one for width",
    ),
    "the stride of a gradient of images": (
        lambda: conv2d_dgrad(A, A, (1, 1), stride=2),
        "conv2d_dgrad takes no `stride`; it takes dy, w, size, pad, dilation, out and config",
        "this gradient has stride 1; for a stride of s, pass `dy` with s - 1 zeros between its pixels",
    ),
    "groups of a gradient": (
        lambda: conv2d_wgrad(A, A, (1, 1), groups=2),
        "conv2d_wgrad takes no `groups`; it takes dy, x, window, pad, stride, dilation, out and config",
        "grouped convolution is not supported; call conv2d once per group",
    ),
    "of a group": (
        lambda: grouped_gemm([A], [A], blance="k"),
        "grouped_gemm takes no `blance`; it takes a, b, c, out, alpha, beta, schedule, config, sort and balance",
        "did you mean `balance`?",
    ),
    "of a configuration": (
        lambda: GemmConfig(warps=4),
        f"GemmConfig takes no `warps`; {CONFIG}",
        "it follows from `tile` and `warp`: tile=(128, 128, 32) by warp=(64, 64) is 4 warps",
    ),
    "of a decorator": (lambda: pd.kernel(arc="sm_90a"), f"pd.kernel takes no `arc`; {KERNEL}", "did you mean `arch`?"),
    "a launch bound": (
        lambda: pd.kernel(num_warps=4),
        f"pd.kernel takes no `num_warps`; {KERNEL}",
        "it is `reqntid=` here, the threads of a block: @pd.kernel(reqntid=128), launched as k[grid, 128](…)",
    ),
    "of a tensor map": (
        lambda: pd.TensorMap(f32, (8, 8), swizzling=32),
        "pd.TensorMap takes no `swizzling`; it takes element, box, swizzle, fill, l2_promotion and interleave",
        "did you mean `swizzle`?",
    ),
    "of a ring": (
        lambda: source_kernel("pd.Ring(2, stage_byte=64, consumers=32)").ptx(),
        f"pd.Ring takes no `stage_byte`; {RING}",
        "did you mean `stage_bytes`?",
    ),
    "of a layout": (
        lambda: layout.Layout((8, 8), strides=(8, 1)),
        "Layout takes no `strides`; it takes shape and stride",
        "the keyword is `stride=`",
    ),
    "too few of a swizzle": (
        lambda: layout.Swizzle(3, 4),
        "Swizzle lacks `shift`; it takes bits, base and shift",
        None,
    ),
    "of a tile": (
        lambda: layout.tile_layout(64, 64, 16, swizzle=128),
        "tile_layout takes no `swizzle`; it takes rows, k, bits, swizzle_bytes and transposed",
        "did you mean `swizzle_bytes`?",
    ),
    "of an array": (
        lambda: source_kernel("pd.shared(dtype=f32, shape=4)").ptx(),
        "pd.shared takes no `dtype`; it takes element, layout, align and name",
        "it is the first argument: pd.shared(f32, (16, 16))",
    ),
}


@pytest.mark.parametrize("call, message, help", CALLS.values(), ids=CALLS)
def test_a_call_that_a_function_does_not_take_names_what_it_takes(call, message, help):
    with pytest.raises(pd.CallError) as refused:
        call()
    assert (refused.value.message, refused.value.help) == (message, help)
    assert isinstance(refused.value, TypeError)
    assert refused.value.at.text.strip()


def test_the_whole_text():
    with pytest.raises(TypeError) as refused:
        gemm(A, A, epilog=abs)
    at = refused.value.at
    assert str(refused.value) == (
        f"gemm takes no `epilog`; {GEMM}\n"
        f"  test_misnamed.py:{at.line} | gemm(A, A, epilog=abs)\n"
        f"  {' ' * len(f'test_misnamed.py:{at.line}')}   ^^^^^^^^^^^^^^^^^^^^^^\n"
        "  help: did you mean `epilogue`?"
    )


def test_a_type_error_from_inside_of_a_function_stays_what_it_was():
    @errors.public
    def inside():
        len(3)

    with pytest.raises(TypeError, match=re.escape("object of type 'int' has no len()")) as raised:
        inside()
    assert not isinstance(raised.value, pd.Error)


def test_classes_keep_their_signatures():
    assert list(inspect.signature(GemmConfig).parameters)[:3] == ["tile", "warp", "stages"]
    assert GemmConfig(stages=3) == GemmConfig(stages=3) != GemmConfig()


CONFIGS = {
    "an atom": (
        {"atom": "wgma"},
        'atom is \'wgma\'; it takes the name of a tensor core instruction, "wgmma", or "" for the usual one',
        'did you mean "wgmma"?',
    ),
    "an atom, and a tile that only the one that is meant takes": (
        {"atom": "wgma", "tile": (144, 64, 64), "swap_ab": True},
        'atom is \'wgma\'; it takes the name of a tensor core instruction, "wgmma", or "" for the usual one',
        'did you mean "wgmma"?',
    ),
    "one stage": (
        {"stages": 1},
        "stages is 1; the ring takes 2 or more",
        "with one stage no copy could be under way while tensor cores read: 3 to 6 are usual",
    ),
    "a schedule by its name": (
        {"schedule": "persistent"},
        "schedule is 'persistent'; it takes a threadblock swizzle of GEMM, a PersistentScheduler or a "
        "StreamKThreadblockSwizzle of ptxdsl.schedule",
        "it is an object: `from ptxdsl.schedule import PersistentScheduler`, schedule=PersistentScheduler()",
    ),
    "a reduction": (
        {"reduction": "serail"},
        'reduction is \'serail\'; it takes "serial", "parallel", "scatter" or "cluster"',
        'did you mean "serial"?',
    ),
}


@pytest.mark.parametrize("fields, message, help", CONFIGS.values(), ids=CONFIGS)
def test_what_is_no_configuration_says_what_was_meant(fields, message, help):
    with pytest.raises(pd.LaunchError) as refused:
        GemmConfig(**fields)
    assert (refused.value.message, refused.value.help) == (f"GemmConfig: {message}", help)


def test_the_schedule_that_is_named_is_one():
    assert GemmConfig(schedule=PersistentScheduler()).tile_schedule


def test_a_configuration_by_a_name_says_which_there_are():
    with pytest.raises(pd.LaunchError) as refused:
        gemm(A, A, config="tuned")
    assert refused.value.message == "`config` is 'tuned'"
    assert refused.value.help == (
        "pass a GemmConfig, such as GemmConfig(tile=(64, 64, 32)), or None to have it chosen; all but gradients "
        'of convolutions take "tune" too, which times tiles'
    )


NO_EXPRESSION = "the annotation `{}` of parameter `x` of kernel `k` is no expression of Python"
UNKNOWN = "the annotation `{0}` of parameter `x` of kernel `k` cannot be resolved: NameError: name '{0}' is not defined"
ANNOTATIONS = {
    "'f32*'": (NO_EXPRESSION.format("f32*"), "did you mean `x: ptr[f32]`?"),
    "'const float *'": (NO_EXPRESSION.format("const float *"), "did you mean `x: ptr[f32]`?"),
    "'*fp16'": (NO_EXPRESSION.format("*fp16"), "did you mean `x: ptr[f16]`?"),
    "'unsigned int'": (NO_EXPRESSION.format("unsigned int"), "did you mean `x: u32`?"),
    "'i32'": (UNKNOWN.format("i32"), "did you mean `x: s32`?"),
    "'so so'": (
        NO_EXPRESSION.format("so so"),
        "it may name types, what is known where the kernel is defined, and the kernel's constants",
    ),
    "float": ("parameter `x` of kernel `k` is annotated <class 'float'>, which no kernel takes", "did you mean `x: f32`?"),
}  # fmt: skip


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_an_annotation_as_others_write_it_says_what_it_is_here(annotation):
    with pytest.raises(pd.TraceError) as refused:
        source_kernel("pass", f"x: {annotation}")
    assert (refused.value.message, refused.value.help) == ANNOTATIONS[annotation]


ROUNDED = {
    "fma.f32(x[0], x[1], x[2])": "did you mean `fma.rn.f32` or `fma.rz.f32` or `fma.rp.f32`?",
    "div.f32(x[0], x[1])": "did you mean `div.rn.f32` or `div.rz.f32` or `div.rp.f32`?",
    "sqrt.f32(x[0])": "did you mean `sqrt.rn.f32` or `sqrt.rz.f32` or `sqrt.rp.f32`?",
}


@pytest.mark.parametrize("call", ROUNDED)
def test_a_mnemonic_without_its_rounding_names_that_to_nearest_first(call):
    with pytest.raises(pd.VerifyError) as refused:
        source_kernel(f"y = pd.ptx.{call}").ptx()
    assert refused.value.help == ROUNDED[call]


LAYOUTS = {
    "make_layout": "write `Layout(shape, stride)`",
    "local_tile": "write `zipped_divide(layout, tiler)`: its modes are (tile, rest)",
    "make_tensor": "write `pd.view(pointer, layout)`",
    "compositon": "did you mean `composition`?",
    "zzz": None,
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_name_of_cute_says_what_stands_for_it(name):
    with pytest.raises(AttributeError) as refused:
        getattr(layout, name)
    assert (refused.value.message, refused.value.help) == (f"ptxdsl.layout has no `{name}`", LAYOUTS[name])
    assert refused.value.at.text.strip() == "getattr(layout, name)"


def test_a_layout_that_cannot_be_is_refused_at_its_line():
    with pytest.raises(pd.LayoutError) as refused:
        layout.Layout((8, 8), (8,))
    assert refused.value.at.text.strip() == "layout.Layout((8, 8), (8,))"


ELSEWHERE = {
    "program_id": "write `pd.ctaid`",
    "load": "write `x[i]`, in `with pd.if_(mask):` where some threads read nothing",
    "arange": "a value belongs to a thread: `pd.tid.x` numbers those of a block",
    "cdiv": "write `(a + b - 1) // b`",
    "jit": "write `@pd.kernel`",
    "constexpr": "constants of a kernel are keyword-only: `def k(x: ptr[f32], *, BLOCK: int)`",
    "atomicAdd": "write `pd.ptx.red.global_.add.u32(p, v)`, or `atom` for the old value",
    "shfl_down_sync": "write `pd.ptx.shfl.sync.down.b32(v, n, 31, 0xFFFFFFFF)`",
    "make_tensor": "write `pd.view(pointer, layout)`; a parameter is `x: ptr[f32]`",
    "float32": "write `pd.f32`",
    "bfloat16": "write `pd.bf16`",
    "int32": "write `pd.s32`",
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_name_of_other_libraries_says_what_stands_for_it(name):
    with pytest.raises(AttributeError) as refused:
        getattr(pd, name)
    assert (refused.value.message, refused.value.help) == (f"ptxdsl has no `{name}`", ELSEWHERE[name])


def test_what_these_names_are_told_is_right():
    kernel = source_kernel(
        "pd.ptx.red.global_.add.u32(h, 1)\npd.ptx.red.global_.max.u32(h, 1)\n"
        "old = pd.ptx.atom.global_.cas.b32(h, 0, 1)\n"
        "h[1] = 1 + pd.ptx.shfl.sync.down.b32(h[0], 1, 31, 0xFFFFFFFF)\n"
        "h[2] = 1 + pd.ptx.shfl.sync.bfly.b32(h[0], 1, 31, 0xFFFFFFFF)",
        "h: ptr[u32]",
    )
    assert all(name in kernel.ptx() for name in ("red.global.add.u32", "red.global.max.u32", "atom.global.cas.b32"))


def test_destinations_among_the_operands_are_told_to_be_results():
    body = "d = [pd.var(f32, 0)] * 1 + [pd.var(f32, 0) for _ in range(3)]\na = [n] * 4\n"
    with pytest.raises(pd.VerifyError) as refused:
        source_kernel(
            body + "pd.ptx.mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32(d, a, a[:2], d)", "n: pd.f16x2"
        ).ptx()
    assert refused.value.message == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 takes a, b, c; 4 given"
    assert refused.value.help == (
        "destinations are not operands: the call returns them, or writes the variables that `out=` names"
    )


def test_constants_among_the_parameters_are_told_to_be_keywords():
    with pytest.raises(pd.TraceError) as refused:
        source_kernel("pass", "x: ptr[f32], BLOCK: int")
    assert refused.value.help == (
        "did you mean `BLOCK: s32`? a constant that the kernel is traced for follows a `*`: `*, BLOCK: int`"
    )


KNOWN = "known architectures are sm_80, sm_86, "


def test_a_misspelt_target_or_setting_says_which_was_meant():
    with pytest.raises(pd.AssembleError) as refused:
        source_kernel("pass").ptx("sm90a")
    assert refused.value.message == "unknown architecture `sm90a`"
    assert refused.value.help.startswith(f"did you mean `sm_90a`? {KNOWN}")
    with pytest.raises(pd.Error) as refused, pd.config.using(arhc="sm_90a"):
        pass
    assert refused.value.message == "unknown setting `arhc`"
    assert refused.value.help.startswith("did you mean `arch`? the settings are cache_dir, ")


def test_a_launch_whose_shape_is_no_number():
    kernel = source_kernel("pass")
    with pytest.raises(pd.LaunchError) as refused:
        kernel[1, 32, "64"](np.zeros(1, np.float32), 1)
    assert refused.value.message == "k expects its bytes of dynamic shared memory as an int, got '64'"
    assert refused.value.help == "launch it as k[grid, block, shared_bytes](…), or leave out shared_bytes"
    with pytest.raises(pd.LaunchError) as refused:
        kernel[lambda constants: 1, 32](np.zeros(1, np.float32), 1)
    assert refused.value.help == "call it before the launch and pass the result"


CALLED_IN_KERNELS = {
    "with pd.elect:\n    x[0] = 1.0": ("`with` takes a call", "write its parentheses: `with pd.elect():`"),
    "for i in pd.range(0, 10, step=2):\n    x[i] = 1.0": ("pd.range takes no `step`; its keyword parameters are unroll", None),
    "pd.inline('add.f32 d, a, a;', x[0])": (
        "pd.inline takes 1 positional argument; 2 given", "pass the others by name, `name=value`",
    ),
    "pd.assert_(n > 3, 'n is %d', n)": ("pd.assert_ takes 2 positional arguments; 3 given", None),
    "x[0] = pd.select(n > 3, 1.0)": ("pd.select lacks `b`; its keyword parameters are condition, a and b", None),
    "v = pd.var(f32, 0.0, nme='v')": ("pd.var takes no `nme`; its keyword parameters are type, init and name", "did you mean `name`?"),
}  # fmt: skip


@pytest.mark.parametrize("body", CALLED_IN_KERNELS)
def test_a_call_in_a_kernel_that_is_not_taken_is_refused_at_its_line(body):
    with pytest.raises(pd.CallError) as refused:
        source_kernel(body).ptx()
    assert (refused.value.message, refused.value.help) == CALLED_IN_KERNELS[body]
    assert refused.value.at.line == 3


def test_a_function_of_the_users_that_has_a_name_of_ours_stays_theirs():
    def select(a, b):
        return a

    with pytest.raises(TypeError) as raised:
        source_kernel("x[0] = select(n)", select=select).ptx()
    assert not isinstance(raised.value, pd.Error)


SWAPPED = {
    "x[0] = pd.cast(f32, n)": ("a conversion takes a type of PTX; found <u32 n>", "the value comes first: pd.cast(v, f32)"),
    "s = pd.shared(np.float16, 4)": (
        "pd.shared takes the type of its elements first; found <class 'numpy.float16'>", "did you mean f16?"
    ),
    "s = pd.shared((4, 4), f32)": (
        "pd.shared takes the type of its elements first; found (4, 4)", "for example pd.shared(f16, (64, 64))"
    ),
}  # fmt: skip


@pytest.mark.parametrize("body", SWAPPED)
def test_what_stands_at_the_place_of_a_type_says_what_was_meant(body):
    with pytest.raises(pd.TraceError) as refused:
        source_kernel(body).ptx()
    assert (refused.value.message, refused.value.help) == SWAPPED[body]


@pytest.mark.parametrize(("name", "meant"), [("mx", "max"), ("rnge", "range")])
def test_names_that_shadow_those_of_python_are_meant_too(name, meant):
    with pytest.raises(pd.Error) as refused:
        getattr(pd, name)
    assert (refused.value.message, refused.value.help) == (f"ptxdsl has no `{name}`", f"did you mean `pd.{meant}`?")
