"""Copies by tensor maps against numpy: ranks, swizzles, odd sizes, boxes that hang over, what maps must be."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from ptxdsl.arrays import Struct, describe
from ptxdsl.errors import EmulationError
from ptxdsl.isa.tensor_map import TensorMapDescription
from ptxdsl.types import TYPES
from tests.emulate.support import clean, run

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
SHARED_BYTES = 16384
BUFFERS = f".shared .align 1024 .b8 s[{SHARED_BYTES}]; .shared .align 8 .b64 bar;"
PARAMETERS = "map[128]: align 64 .b8, y: u64, at[20]: align 4 .b8"
MAP = "mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1;"
BEGIN = """
    ld.param.u64 %rd2, [y]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, s; mov.u32 %r3, bar;
    ld.param.s32 %r10, [at]; ld.param.s32 %r11, [at+4]; ld.param.s32 %r12, [at+8]; ld.param.s32 %r13, [at+12];
    ld.param.s32 %r14, [at+16]; {map}
    @%p1 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster; bar.sync 0; @!%p1 bra OTHERS;
"""
LOAD = """
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r3], {bytes};
    cp.async.bulk.tensor.{rank}d.shared::cta.global.mbarrier::complete_tx::bytes [%r2+{offset}], [%rd1, {{{at}}}], [%r3];
OTHERS: AGAIN:
    mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra AGAIN;
    shl.b32 %r4, %r1, 4;
COPY:
    setp.ge.u32 %p3, %r4, {bytes}; @%p3 bra END;
    add.u32 %r5, %r2, %r4; ld.shared.v4.u32 {{%r20, %r21, %r22, %r23}}, [%r5+{offset}];
    cvt.u64.u32 %rd6, %r4; add.u64 %rd6, %rd2, %rd6; st.global.v4.u32 [%rd6], {{%r20, %r21, %r22, %r23}};
    add.u32 %r4, %r4, 1024; bra COPY;
END:
"""
STORE = """
OTHERS: shl.b32 %r4, %r1, 4;
COPY:
    setp.ge.u32 %p3, %r4, {bytes}; @%p3 bra FILLED;
    add.u32 %r5, %r2, %r4; cvt.u64.u32 %rd6, %r4; add.u64 %rd6, %rd2, %rd6;
    ld.global.v4.u32 {{%r20, %r21, %r22, %r23}}, [%rd6]; st.shared.v4.u32 [%r5+{offset}], {{%r20, %r21, %r22, %r23}};
    add.u32 %r4, %r4, 1024; bra COPY;
FILLED:
    fence.proxy.async.shared::cta; bar.sync 0;
    @!%p1 bra END;
    {op}.async.bulk.tensor.{rank}d.global.shared::cta{operation}.bulk_group [%rd1, {{{at}}}], [%r2+{offset}];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END:
"""


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setattr("tests.emulate.support.HEAD", HEAD)


def mapping(array, box, **options):
    """The description of an array, with a box by numpy's order of axes, and the parameter that it makes."""
    type = TYPES[options.pop("type", str(describe(array).type))]
    description = TensorMapDescription(
        0, type, array.shape[::-1], tuple(array.strides[-2::-1]), box[::-1],
        options.pop("element_strides", (1,) * array.ndim), **options,
    )  # fmt: skip
    assert not list(description.problems())
    return description, Struct(description.encode(), ((8, "array", describe(array)),))


def kernel(body, description, offset=0, map=MAP, **more):
    at = ", ".join(f"%r{10 + d}" for d in range(description.rank))
    begin = BEGIN.replace("{map}", map)
    return begin + body.format(bytes=description.box_bytes, rank=description.rank, at=at, offset=offset, **more)


def launched(text, parameter, y, at, **options):
    """The report of a kernel for a map, 64 threads, and a box at `at`, by numpy's order of axes."""
    content = np.array([*at[::-1], *[0] * (5 - len(at))], np.int32).tobytes()
    return run(text, parameter, y, content, block=64, parameters=PARAMETERS, module=BUFFERS, **options)


def box_of(array, box, at, steps=None, fill=0):
    """What a box of an array holds, with `fill` outside of it."""
    axes = [start + np.arange(0, n, step) for start, n, step in zip(at, box, steps or [1] * array.ndim, strict=True)]
    inside = np.logical_and.reduce(np.meshgrid(
        *[(axis >= 0) & (axis < n) for axis, n in zip(axes, array.shape, strict=True)], indexing="ij"
    ))  # fmt: skip
    clipped = np.ix_(*[axis.clip(0, n - 1) for axis, n in zip(axes, array.shape, strict=True)])
    return np.where(inside, array[clipped], np.array(fill, array.dtype))


def chunked(at, dtype):
    """Where a box may begin: at whole chunks of 16 bytes of its lines."""
    step = 16 // np.dtype(dtype).itemsize
    return *at[:-1], at[-1] // step * step


def unswizzled(image, swizzle, offset=0):
    """The bytes of a box in their order, from its bytes in shared memory that begin at `offset`."""
    chunks = np.arange(len(image) // 16)
    place = chunks + offset // 16
    place ^= place >> 3 & (swizzle // 16 - 1 if swizzle else 0)
    return image.reshape(-1, 16)[place - offset // 16].reshape(-1)


def loaded(array, box, at, offset=0, **options):
    """The bytes of shared memory after the copy of a box, in the order of the box, and its description."""
    description, parameter = mapping(array, box, **options)
    y = np.zeros(description.box_bytes, np.uint8)
    clean(launched(kernel(LOAD, description, offset), parameter, y, at))
    return unswizzled(y, description.swizzle, offset).view(array.dtype).reshape(description.box_shape[::-1])


def numbers(shape, dtype, pad=0):
    """An array whose rows are padded to multiples of 16 bytes, and more."""
    rows = -(-shape[-1] * np.dtype(dtype).itemsize // 16) * 16 // np.dtype(dtype).itemsize + pad
    whole = (np.arange(1, 1 + prod(shape[:-1]) * rows) % 251).astype(dtype).reshape(*shape[:-1], rows)
    return whole[..., : shape[-1]]


@pytest.mark.parametrize(("shape", "box", "at"), [
    ((40,), (16,), (8,)), ((40,), (16,), (33,)), ((40,), (16,), (-5,)),
    ((33, 50), (8, 32), (3, 7)), ((33, 48), (8, 32), (30, 40)), ((33, 50), (8, 32), (-3, -9)),
    ((5, 6, 40), (2, 3, 16), (1, 2, 5)), ((5, 6, 40), (2, 3, 16), (4, -1, 30)),
    ((3, 4, 5, 24), (2, 1, 3, 8), (2, 3, 3, 17)), ((2, 3, 3, 4, 16), (2, 1, 2, 2, 8), (1, 2, 1, 3, 9)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["u1", "f2", "f4"])
def test_boxes_of_every_rank(shape, box, at, dtype):
    box = (*box[:-1], max(box[-1], 16 // np.dtype(dtype).itemsize))
    array, at = numbers(shape, dtype), chunked(at, dtype)
    assert (loaded(array, box, at) == box_of(array, box, at)).all()


@pytest.mark.parametrize(("swizzle", "columns"), [(32, 16), (64, 32), (128, 64), (0, 64)])
@pytest.mark.parametrize("offset", [0, 128, 896])
def test_swizzles_follow_the_address_in_shared_memory(swizzle, columns, offset):
    array = numbers((70, 100), "f2")
    image = loaded(array, (24, columns), (5, 56), offset, swizzle=swizzle)
    assert (image == box_of(array, (24, columns), (5, 56))).all()


def test_a_swizzle_of_128_bytes_is_that_of_the_manual():
    """Bits 4 to 6 of the address of a byte change by its bits 7 to 9."""
    array = numbers((16, 64), "f2")
    description, parameter = mapping(array, (16, 64), swizzle=128)
    y = np.zeros(2048, np.uint8)
    clean(launched(kernel(LOAD, description), parameter, y, (0, 0)))
    octets = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
    for byte in range(0, 2048, 77):
        assert y[byte ^ (byte >> 7 & 7) << 4] == octets[byte]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_what_lies_outside_is_nan_where_the_map_says_so(dtype):
    array = numbers((9, 10), dtype)
    image = loaded(array, (4, 8), (7, 8), fill="nan")
    expected = box_of(array, (4, 8), (7, 8), fill=np.nan)
    assert np.isnan(image).sum() == 4 * 8 - 2 * 2
    np.testing.assert_array_equal(image, expected)


def test_element_strides_leave_elements_out():
    array = numbers((20, 30, 64), "f4")
    image = loaded(array, (9, 4, 8), (3, 28, 4), element_strides=(1, 3, 2))
    assert (image == box_of(array, (9, 4, 8), (3, 28, 4), (2, 3, 1))).all()


RELEASE, ACQUIRE = (
    "@%p1 fence.proxy.tensormap::generic.release.gpu;",
    "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;",
)
COPIED = """
    .reg .b64 %w<17>; .reg .pred %q<4>; mov.b64 %rd7, kept; mov.b64 %rd8, flag;
    mov.u32 %r6, %ctaid.x; setp.eq.u32 %q1, %r6, 0; and.pred %q0, %q1, %p1; {moves}
    {release} {barrier} mov.b64 %rd1, %rd7; {acquire}
"""


def copied(release=RELEASE, acquire=ACQUIRE, barrier="bar.sync 0;", writer="%p1", grid=1, begun="", ended=""):
    """The report of a copy by a map that thread 0 wrote to global memory, and whether the box is right. More of what it
    does stands behind where the copy has begun, and where it has ended."""
    array = numbers((9, 32), "f4")
    description, parameter = mapping(array, (4, 8))
    moves = " ".join(f"ld.param.b64 %w{n}, [map+{8 * n}]; @%p1 st.global.b64 [%rd7+{8 * n}], %w{n};" for n in range(16))
    moves = moves.replace("%p1", writer)
    y = np.zeros(description.box_bytes, np.uint8)
    body = LOAD.replace("OTHERS:", begun + "OTHERS:").replace("END:", ended + "END:")
    text = kernel(body, description, map=COPIED.format(moves=moves, release=release, barrier=barrier, acquire=acquire))
    module = BUFFERS + " .global .align 128 .b8 kept[128]; .global .u32 flag;"
    content = np.array([4, 2, 0, 0, 0], np.int32).tobytes()
    report = run(text, parameter, y, content, grid=grid, block=64, parameters=PARAMETERS, module=module)
    return report, bool((y.view("f4").reshape(4, 8) == box_of(array, (4, 8), (2, 4))).all())


def test_a_map_in_global_memory():
    report, right = copied()
    clean(report)
    assert right


@pytest.mark.parametrize(
    ("release", "acquire"),
    [
        ("", ""), (RELEASE, ""), ("", ACQUIRE), (ACQUIRE.replace("rd1", "rd7"), RELEASE), ("fence.proxy.async;", "fence.proxy.async;"),
        (RELEASE, ACQUIRE.replace("[%rd1]", "[%rd2]")), (RELEASE.replace("%p1", "!%p1"), ACQUIRE),
        ("fence.acq_rel.gpu;", ACQUIRE), (RELEASE, "fence.acq_rel.gpu;"),
    ],
)  # fmt: skip
def test_a_map_that_was_written_takes_both_fences_of_its_proxy(release, acquire):
    report, _ = copied(release, acquire)
    assert {finding.kind for finding in report.findings} == {"race"}


@pytest.mark.parametrize("scope", ["cta", "cluster", "sys"])
def test_any_scope_reaches_threads_of_the_same_block(scope):
    clean(copied(RELEASE.replace("gpu", scope), ACQUIRE)[0])


def test_an_acquire_reaches_those_of_the_block_that_know_of_it():
    """A barrier lies between them and the copy."""
    clean(copied(acquire="@!%p1 " + ACQUIRE)[0])


BETWEEN_BLOCKS = """
    @%q0 st.release.gpu.global.u32 [%rd8], 1; @%q1 bra END;
    SPIN: ld.acquire.gpu.global.u32 %r7, [%rd8]; setp.eq.u32 %q2, %r7, 0; @%q2 bra SPIN;
"""


@pytest.mark.parametrize(("scopes", "reaches"), [
    ("gpu gpu", True), ("sys gpu", True), ("cta gpu", False), ("gpu cta", False), ("cluster gpu", False),
])  # fmt: skip
def test_a_map_that_another_block_wrote(scopes, reaches):
    releases, acquires = scopes.split()
    release = RELEASE.replace("%p1", "%q0").replace("gpu", releases)
    report, right = copied(release, ACQUIRE.replace("gpu", acquires), BETWEEN_BLOCKS, "%q0", 2)
    assert {finding.kind for finding in report.findings} == (set() if reaches else {"race"})
    assert right == reaches


def test_a_map_is_changed_when_no_copy_reads_it():
    """A wait for the mbarrier of the copy lies between."""
    change = "@%p1 st.global.b64 [%rd7+16], 0;\n"
    clean(copied(ended=change)[0])
    report, _ = copied(begun=change)
    assert str(report.findings[0]) == (
        "unwaited-async: st.global.b64 writes 8 bytes at kept[16], which an asynchronous operation still reads\n"
        "  <ptx>:18\n"
        "  <ptx>:17\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: wait on the mbarrier of the copy that uses this tensor map, before line 18"
    )


def test_a_map_that_nobody_released_in_words():
    report, _ = copied(release="")
    assert str(report.findings[0]) == (
        "race: cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes reads the tensor map kept[0], "
        "written by thread (0, 0, 0) of block (0, 0, 0) with st.global.b64; no tensor map proxy release follows the write\n"
        "  <ptx>:17\n"
        "  <ptx>:11\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: after line 11, add a `fence.proxy.tensormap::generic.release.gpu` in the thread that wrote, or a "
        "`tensormap.cp_fenceproxy` from shared memory; then, after a barrier, a "
        "`fence.proxy.tensormap::generic.acquire.gpu [map], 128` before line 17"
    )


def test_a_map_that_was_released_and_not_acquired_in_words():
    first = copied(acquire="")[0].findings[0]
    assert first.message.endswith("with st.global.b64; no tensor map proxy acquire separates the two")
    assert first.help == "add a `fence.proxy.tensormap::generic.acquire.gpu [map], 128` before line 17"


@pytest.mark.parametrize(("shape", "box", "at"), [
    ((40,), (16,), (8,)), ((40,), (16,), (33,)), ((33, 50), (8, 32), (3, 7)), ((33, 48), (8, 32), (30, 40)),
    ((5, 6, 40), (2, 3, 32), (4, 5, 30)), ((2, 3, 3, 4, 16), (2, 1, 2, 2, 32), (1, 2, 1, 3, 9)),
])  # fmt: skip
@pytest.mark.parametrize("swizzle", [0, 64])
def test_boxes_are_stored_but_for_what_lies_outside(shape, box, at, swizzle):
    array, at = numbers(shape, "f2"), chunked(at, "f2")
    before, values = array.copy(), np.arange(prod(box)).astype("f2").reshape(box) + 300
    description, parameter = mapping(array, box, swizzle=swizzle)
    image = np.zeros(description.box_bytes, np.uint8)
    image.reshape(-1, 16)[:] = _scattered(values, swizzle)
    clean(launched(kernel(STORE, description, op="cp", operation=""), parameter, image, at))
    expected = before
    for index in np.ndindex(*box):
        place = tuple(np.add(index, at))
        if all(0 <= p < n for p, n in zip(place, shape, strict=True)):
            expected[place] = values[index]
    assert (array == expected).all()


def _scattered(values, swizzle):
    chunks = np.ascontiguousarray(values).view(np.uint8).reshape(-1, 16)
    place = np.arange(len(chunks))
    place ^= place >> 3 & (swizzle // 16 - 1 if swizzle else 0)
    result = np.empty_like(chunks)
    result[place] = chunks
    return result


@pytest.mark.parametrize(("operation", "dtype", "expected"), [
    (".add", "f2", np.add), (".add", "f4", np.add), (".min", "i4", np.minimum), (".or", "u4", np.bitwise_or),
])  # fmt: skip
def test_boxes_are_combined_with_what_is_there(operation, dtype, expected):
    array = numbers((9, 32), dtype)
    before, values = array.copy(), (np.arange(32) % 13).astype(dtype).reshape(4, 8)
    description, parameter = mapping(array, (4, 8))
    image = values.view(np.uint8).reshape(-1).copy()
    clean(launched(kernel(STORE, description, op="cp.reduce", operation=operation), parameter, image, (2, 8)))
    before[2:6, 8:16] = expected(before[2:6, 8:16], values)
    assert (array == before).all()


def refused(change=lambda d: d, body=LOAD, offset=0, content=None, rank=2):
    """The one finding of a copy by a map that was changed."""
    array = numbers((9, 32), "f4")
    description, parameter = mapping(array, (4, 8))
    data = change(description).encode() if content is None else content
    parameter = Struct(data, parameter.holders)
    described = replace(description, dims=(1,) * rank, box=(1,) * rank, element_strides=(1,) * rank)
    text = kernel(body, described, offset)
    return launched(text.replace("AGAIN:", "bra END; AGAIN:"), parameter, np.zeros(512, np.uint8), (0, 0)).findings[0]


def test_bytes_that_are_no_map():
    found = refused(content=bytes(8) + bytes(120))
    assert found.kind == "tensor-map"
    assert found.message.endswith("are not a tensor map")
    assert found.help == "pass the address of a tensor map: a kernel parameter, or 128 bytes in global memory"


def test_a_map_of_another_rank():
    assert str(refused(rank=3)) == (
        "tensor-map: the tensor map has 2 dimensions, but the instruction copies boxes of 3\n"
        "  <ptx>:13\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: make the map for this instruction: pd.TensorMap(type, box)"
    )


def test_a_map_that_the_driver_would_not_have_made():
    found = refused(lambda d: replace(d, strides=(120,)))
    assert found.message == "the stride of dimension 1 is 120 bytes, not a multiple of 16"


def test_a_box_that_begins_at_no_multiple_of_128_bytes():
    assert str(refused(offset=64)) == (
        "misaligned: the box begins at 0x40 in shared memory, not a multiple of 128 bytes\n"
        "  <ptx>:13\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: align the buffer to 128 bytes, or to 1024 with a swizzle of 128"
    )


def test_a_map_that_lies_crooked():
    description, parameter = mapping(numbers((9, 32), "f4"), (4, 8))
    text = kernel(LOAD, description, map=MAP + "add.u64 %rd1, %rd1, 32;").replace("AGAIN:", "bra END; AGAIN:")
    found = launched(text, parameter, np.zeros(512, np.uint8), (0, 0)).findings[0]
    assert found.kind == "misaligned"
    assert found.message.startswith("the tensor map is at 0x")
    assert found.message.endswith(", not a multiple of 64 bytes")
    assert found.help == "align the variable that holds it to 128 bytes"


def test_a_map_in_shared_memory():
    description, parameter = mapping(numbers((9, 32), "f4"), (4, 8))
    text = kernel(LOAD, description, map="cvt.u64.u32 %rd1, %r2; cvta.shared.u64 %rd1, %rd1;")
    found = launched(text.replace("AGAIN:", "bra END; AGAIN:"), parameter, np.zeros(512, np.uint8), (0, 0)).findings[0]
    assert str(found) == (
        "tensor-map: the tensor map is in shared memory; copies read it from global, constant or parameter memory\n"
        "  <ptx>:13\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: copy it to global memory with tensormap.cp_fenceproxy"
    )


def test_a_map_that_reaches_beyond_its_array():
    found = refused(lambda d: replace(d, dims=(32, 90), box=(8, 20)))
    assert found.kind == "out-of-bounds"


REPLACE = """
    .reg .b32 %m<4>; mov.u32 %m1, m; mov.b64 %rd7, kept;
    {moves} bar.sync 0;
    @%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%m1], %rd2;
    @%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%m1], 0, 24;
    @%p1 tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%m1], 0, 96;
    @%p1 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%m1], 1, 2;
    @%p1 tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%m1], 1;
    bar.sync 0; setp.ge.u32 %p5, %r1, 32; @%p5 bra CHANGED;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd7], [%m1], 128;
CHANGED: barrier.sync 0; mov.b64 %rd1, %rd7; fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
"""


def changed(drop="", threads=64):
    """The report of a copy by a map that thread 0 changes in shared memory, and whether the box is right."""
    array, other = numbers((9, 32), "f4"), np.arange(24 * 10, dtype="f4")
    description, parameter = mapping(array, (4, 8))
    moves = ".reg .b64 %w<17>; " + " ".join(
        f"ld.param.b64 %w{n}, [map+{8 * n}]; @%p1 st.shared.b64 [%m1+{8 * n}], %w{n};" for n in range(16)
    )
    box = replace(description, box=(8, 2), swizzle=32)
    text = kernel(LOAD, box, map=REPLACE.replace("{moves}", moves).replace(drop, ""))
    module = BUFFERS + " .global .align 128 .b8 kept[128]; .shared .align 128 .b8 m[128];"
    content = np.array([16, 3, 0, 0, 0], np.int32).tobytes()
    report = run(text, parameter, other, content, block=threads, parameters=PARAMETERS, module=module)
    image = unswizzled(other[:16].view(np.uint8), 32).view("f4").reshape(2, 8)
    return report, bool((image == np.arange(240, dtype="f4").reshape(10, 24)[3:5, 16:]).all())


def test_a_map_that_the_kernel_changes():
    report, right = changed("nothing")
    clean(report)
    assert right


def test_a_map_that_one_warp_changes():
    """Each lane has done the copy of tensormap.cp_fenceproxy, so that one may use the map with no further meeting."""
    report, right = changed("barrier.sync 0;", threads=32)
    clean(report)
    assert right


def test_a_changed_map_that_is_not_acquired():
    report, _ = changed("fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;")
    assert [finding.kind for finding in report.findings] == ["race"]
    assert (
        "reads the tensor map kept[0], written by threads of warp 0 of block (0, 0, 0) with tensormap.cp_fenceproxy"
        in (report.findings[0].message)
    )


@pytest.mark.parametrize("released", [True, False])
def test_a_map_that_is_changed_in_global_memory(released):
    """tensormap.replace there is released by the thread that did it."""
    change = "@%p1 tensormap.replace.tile.box_dim.global.b1024.b32 [%rd7], 1, 4;"
    release = f"{RELEASE} bar.sync 0; {change} " + (RELEASE if released else "")
    report, right = copied(release)
    assert {finding.kind for finding in report.findings} == (set() if released else {"race"})
    assert right == released


MULTICAST = """
    ld.param.u64 %rd2, [y]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, s; mov.u32 %r3, bar;
    mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; mov.u32 %r7, %cluster_ctarank; mov.u32 %r8, %ctaid.x;
    @%p1 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r3], {expected};
    barrier.cluster.arrive; barrier.cluster.wait;
    shl.b32 %r10, %r7, 3; mov.u32 %r11, 0; shl.b32 %r9, %r7, 9; add.u32 %r9, %r2, %r9; mov.b16 %h1, {mask};
    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [%r9], [%rd1, {{%r10, %r11}}], [%r3], %h1;
AGAIN: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra AGAIN;
    shl.b32 %r4, %r1, 4; add.u32 %r5, %r2, %r4; ld.shared.v4.u32 {{%r20, %r21, %r22, %r23}}, [%r5];
    shl.b32 %r6, %r8, 10; add.u32 %r6, %r6, %r4; cvt.u64.u32 %rd6, %r6; add.u64 %rd6, %rd2, %rd6;
    st.global.v4.u32 [%rd6], {{%r20, %r21, %r22, %r23}};
    {end}
"""


def multicast(mask=3, expected=1024, end="barrier.cluster.arrive; barrier.cluster.wait;"):
    """Each of two blocks copies half of the columns to both."""
    array = numbers((16, 16), "f4")
    _, parameter = mapping(array, (16, 8))
    y, content = np.zeros((2, 2, 16, 8), "f4"), bytes(20)
    text = MULTICAST.format(mask=mask, expected=expected, end=end)
    report = run(
        text, parameter, y, content, grid=2, block=64, cluster=(2, 1, 1), parameters=PARAMETERS, module=BUFFERS
    )
    return report, y, array


def test_one_copy_to_all_blocks_of_a_cluster():
    report, y, array = multicast()
    clean(report)
    for block in range(2):
        assert (y[block, 0] == array[:, :8]).all()
        assert (y[block, 1] == array[:, 8:]).all()


def test_a_block_that_no_copy_goes_to():
    report, *_ = multicast(mask=1)
    assert report.findings[-1].kind == "deadlock"
    assert "for the mbarrier bar[0]: 1 of 1 arrivals received, 1024 bytes still pending" in report.findings[-1].message


@pytest.mark.parametrize("extent", [8, 12, 16, 24])
def test_a_box_of_several_slices_of_channels_brings_one(extent):
    """As an H200 did, whatever the box says of the dimension of slices."""
    images = numbers((2, 4, 6, 16, 8), "f2")
    description = TensorMapDescription(
        0, TYPES["f16"], (16, 6, 4, 2), (256, 1536, 6144), (8, 2, extent, 1), (1,) * 4, interleave=16
    )
    parameter = Struct(description.encode(), ((8, "images", describe(images)),))
    y = np.zeros(256, np.uint8)
    clean(launched(kernel(LOAD, description), parameter, y, (1, 2, 3, 4)))
    assert (y.view("f2").reshape(2, 8, 8) == images[1, 2, 3:5, 4:12]).all()


def test_modes_of_blackwell_are_not_emulated(monkeypatch):
    mode, rank = "im2col::w", 3
    monkeypatch.setattr("tests.emulate.support.HEAD", HEAD.replace("sm_90a", "sm_100a"))
    array = numbers((9, 10, 16)[-rank:], "f4")
    description, parameter = mapping(array, (1, 4, 8)[-rank:])
    text = kernel(LOAD, description).replace("global.mbarrier", f"global.{mode}.mbarrier")
    text = text.replace("{%r10, %r11}", "{%r10, %r11, %r12, %r13, %r14}")  # one column, four rows
    if mode == "im2col::w":
        text = text.replace("[%r3];\nOTHERS", "[%r3], {%h1, %h1};\nOTHERS").replace(
            "@%p1 mbarrier", "mov.b16 %h1, 0; @%p1 mbarrier"
        )
    with pytest.raises(EmulationError) as refused:
        launched(text, parameter, np.zeros(description.box_bytes, np.uint8), (0,) * rank)
    assert refused.value.message == (
        f"`cp.async.bulk.tensor.{rank}d.shared::cta.global.{mode}.mbarrier::complete_tx::bytes` cannot be emulated yet: "
        f".{mode} requires a target that the emulator does not support"
    )
    assert refused.value.help == "run this kernel on a GPU"
