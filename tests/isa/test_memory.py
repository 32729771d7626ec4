"""Moves, loads, stores, hints and address spaces, against bytes."""

import numpy as np
import pytest

from ptxdsl.isa import lookup
from ptxdsl.isa.memory import PACKINGS, SCALARS
from ptxdsl.types import TYPES, b128

from .fake_step import WINDOWS, FakeStep, execute
from .refusals import refusal

LANES = 48
rng = np.random.default_rng(5)


def random_elements(name: str, count: int) -> np.ndarray:
    """Random bits as elements of a type, (count, lanes), or (lanes,) for one."""
    type = TYPES[name]
    shape = (count, LANES, type.bytes) if count > 1 else (LANES, type.bytes)
    raw = rng.integers(0, 256, shape, np.uint8)
    return raw.view(np.uint64) if type is b128 else raw.view(type.dtype)[..., 0]


ACCESSES = [
    (type, count) for type in SCALARS.split() for count in (1, 2, 4, 8) if count * TYPES[type].bits <= 128 and count < 8
] + [("f32", 8), ("u64", 4)]


@pytest.mark.parametrize(("type", "count"), ACCESSES)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_what_a_store_writes_a_load_reads(type, count, space):
    vector = f".v{count}" if count > 1 else ""
    space = "global" if count * TYPES[type].bits > 128 else space
    size = count * TYPES[type].bytes
    memory = np.zeros(LANES * size, np.uint8)
    address = rng.permutation(LANES).astype(np.uint64) * np.uint64(size)
    values = random_elements(type, count)
    m = FakeStep((LANES,), **{space: memory})

    execute(f"st.{space}{vector}.{type}", m, address, values)
    assert execute(f"ld.{space}{vector}.{type}", m, address).tobytes() == values.tobytes()

    of_lane = values if count == 1 else np.moveaxis(values, 0, 1)
    expected = {int(a): of_lane[lane].tobytes() for lane, a in enumerate(address)}
    assert memory.tobytes() == b"".join(expected[a] for a in sorted(expected))


@pytest.mark.parametrize("text", [
    "ld.relaxed.gpu.global.u32", "ld.acquire.sys.u32", "ld.volatile.shared.u32", "ld.global.nc.u32", "ldu.global.u32",
    "ld.global.cg.L2::128B.u32", "ld.global.L1::no_allocate.u32", "ld.weak.shared::cta.u32", "ld.const.u32",
    "ld.mmio.relaxed.sys.global.u32", "ld.global.nc.L1::evict_last.L2::256B.u32", "ld.L2::64B.global.ca.u32",
])  # fmt: skip
def test_hints_and_orders_do_not_change_what_is_read(text):
    memory = rng.integers(0, 256, 256, np.uint8)
    m = FakeStep((64,), **{space: memory for space in ("global", "shared", "const", "generic")})
    assert execute(text, m, np.arange(0, 256, 4, dtype=np.uint64)).tobytes() == memory.tobytes()


@pytest.mark.parametrize(("whole", "part", "count"), PACKINGS)
def test_packing_puts_the_first_register_into_the_lowest_bits(whole, part, count):
    parts = random_elements(part, count)
    pack = next(i for i in lookup(f"mov.{whole}") if i.operands[1].count == count and i.operands[1].type.name == part)
    unpack = next(i for i in lookup(f"mov.{whole}") if i.operands[0].count == count and i.operands[0].type.name == part)

    packed = pack.op.run(pack, parts)
    width = TYPES[part].bits
    for lane in range(LANES):
        number = sum(int(parts[n, lane]) << (n * width) for n in range(count))
        assert int.from_bytes(packed[lane].tobytes(), "little") == number
    np.testing.assert_array_equal(unpack.op.run(unpack, packed), parts)


def test_a_plain_mov_copies():
    mov = lookup("mov.f32")[0]
    values = random_elements("f32", 1)
    assert mov.op.run(mov, values).tobytes() == values.tobytes()


@pytest.mark.parametrize("space", ["global", "shared", "local", "const"])
def test_cvta_goes_to_generic_addresses_and_back(space):
    m = FakeStep((4,))
    address = np.array([0, 4, 16, 4092], np.uint64)
    generic = execute(f"cvta.{space}.u64", m, address)
    assert (generic == address + np.uint64(WINDOWS.get(space, 0))).all()
    np.testing.assert_array_equal(execute(f"cvta.to.{space}.u64", m, generic), address)
    for other in ("global", "shared", "local", "const"):
        assert (execute(f"isspacep.{other}", m, generic) == (other == space)).all()


@pytest.mark.parametrize(("text", "inputs"), [
    ("prefetch.global.L2", 1), ("prefetchu.L1", 1), ("prefetch.global.L2::evict_last", 1),
    ("applypriority.global.L2::evict_normal", 2), ("discard.global.L2", 2),
])  # fmt: skip
def test_hints_touch_no_memory(text, inputs):
    m = FakeStep((4,))  # which has no memory at all
    assert execute(text, m, *[np.zeros(4, np.uint64)] * inputs) is None
    assert m.calls == []


def test_a_policy_is_a_register_of_64_bits():
    policy = execute("createpolicy.fractional.L2::evict_last.b64", FakeStep((4,)), np.ones(4, np.float32))
    assert (policy.dtype, policy.shape) == (np.uint64, (4,))


@pytest.mark.parametrize(("instruction", "message"), [
    ("ld.global.u32 _, [%d0];", "ld.global.u32: `d` is `_`; only an element of a vector may be left out"),
    (
        "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [table+4];",
        "ld.global.v4.u32: `a` is 4 bytes past an aligned address; this access requires multiples of 16",
    ),
    (
        "ld.shared.u32 %r0, [6];",
        "ld.shared.u32: `a` is 6 bytes past an aligned address; this access requires multiples of 4",
    ),
    (
        "ld.global.L2::cache_hint.u32 %r0, [%d0];",
        "ld.global.L2::cache_hint.u32: .L2::cache_hint takes a cache policy, a 64-bit register, as its last operand\n"
        "  help: make one with createpolicy.fractional.L2::evict_last.b64",
    ),
    (
        "ld.global.u32 %r0, [%d0], %d1;",
        "ld.global.u32: `policy` is given, but the instruction lacks .L2::cache_hint",
    ),
    (
        "ld.shared.u32 %r0, [table];",
        "ld.shared.u32: `a` is `table` in .global; this instruction takes an address in .shared",
    ),
    ("ld.global.v2.u32 {%r0, %r1, %r2}, [%d0];", "ld.global.v2.u32: `d` has 3 registers; this form takes 2"),
    ("ld.global.f64 %f0, [%d0];", "ld.global.f64: `d` is an f32 register; this form takes an f64 register"),
    (
        "ld.global.f32 %f0, [%h0];",
        "ld.global.f32: `a` is a b16 register; an address is a 32- or 64-bit integer\n"
        "  help: pass the address of an element, not its value: `array.address(…)`, or `pointer + i`",
    ),
    (
        "st.global.v4.f32 [%d0], {%f0, _, %f1, %f2};",
        "st.global.v4.f32: `b` has a `_`; only stores of 256 bits may leave elements out",
    ),
    (
        "st.global.u32 [%d0], %tid.x;",
        "st.global.u32: `b` is %tid.x, a special u32 register; this form takes a 32-bit integer register\n"
        "  help: copy it to a register first, with mov",
    ),
    ("mov.f32 %f0, table;", "mov.f32: `a` is the address of `table`; mov.u32 or mov.u64 takes it"),
    ("mov.b64 %d0, {%r0, %r1, %r2};", "mov.b64: `a` has 3 registers; this form takes 2"),
    (
        "applypriority.global.L2::evict_normal [%d0], 64;",
        "applypriority.global.L2::evict_normal: `size` is 64; it must be 128, a cache line",
    ),
    (
        "createpolicy.fractional.L2::evict_last.b64 %d0, 0f40000000;",
        "createpolicy.fractional.L2::evict_last.b64: `fraction` is 2; it must be more than 0 and at most 1",
    ),
    (
        "createpolicy.range.L2::evict_last.b64 %d0, [%d1], 4096, 128;",
        "createpolicy.range.L2::evict_last.b64: `primary_size` is 4096, more than `total_size`, which is 128",
    ),
    (
        "cvta.global.u64 %d0, %r1;",
        "cvta.global.u64: `a` is a b32 register; this form takes a 64-bit integer register",
    ),
])  # fmt: skip
def test_refusals(instruction, message):
    assert refusal(instruction) == message


@pytest.mark.parametrize("instruction", [
    "ld.global.v8.f32 {%f0, _, %f2, %f3, %f4, %f5, %f6, %f7}, [%d0];",
    "ld.global.u8 %d1, [%d0];",
    "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [tile+16];",
    "mov.b64 {%r0, _}, %d0;",
    "mov.u64 %d0, table+8;",
    "st.global.v4.f32 [%d0], {%f0, 0f3F800000, %f1, %f2};",
])  # fmt: skip
def test_what_is_fine(instruction):
    assert refusal(instruction) == ""
