"""Atomic operations, against one lane after the other in plain numbers."""

import numpy as np
import pytest

from ptxdsl.isa import lookup
from ptxdsl.isa.atomic import TYPES_OF
from ptxdsl.isa.numerics import encode
from ptxdsl.types import TYPES

from .fake_step import WINDOWS, FakeStep, execute
from .refusals import refusal

LANES = 40
rng = np.random.default_rng(23)

RULES = {
    "add": lambda old, b: old + b, "min": min, "max": max,
    "and": lambda old, b: old & b, "or": lambda old, b: old | b, "xor": lambda old, b: old ^ b,
    "exch": lambda old, b: b,
    "inc": lambda old, b: 0 if old >= b else old + 1,
    "dec": lambda old, b: b if old == 0 or old > b else old - 1,
}  # fmt: skip
INTEGERS = [(op, type) for op, types in TYPES_OF.items() for type in types if type[0] in "bus" and type != "b128"]


def places(bytes: int) -> np.ndarray:
    """Addresses of few elements, so that many lanes meet at one."""
    return rng.integers(0, 7, LANES).astype(np.uint64) * np.uint64(bytes)


@pytest.mark.parametrize(("operation", "type"), INTEGERS)
@pytest.mark.parametrize("name", ["atom", "red"])
def test_integers(name, operation, type):
    if name == "red" and operation == "exch":
        pytest.skip("red has no exch")
    dtype = TYPES[type].dtype
    most = 5 if operation in ("inc", "dec") else 1 << 63
    memory, b = (rng.integers(0, most, n, np.uint64).astype(dtype) for n in (8, LANES))
    address = places(dtype.itemsize)
    m = FakeStep((LANES,), **{"global": memory.copy().view(np.uint8)})
    found = execute(f"{name}.global.{operation}.{type}", m, address, b)

    state = [int(x) for x in memory]
    for lane in range(LANES):
        at = int(address[lane]) // dtype.itemsize
        assert found is None if name == "red" else int(found[lane]) == state[at]
        state[at] = int(np.array(RULES[operation](state[at], int(b[lane])) & ((1 << 64) - 1), np.uint64).astype(dtype))
    np.testing.assert_array_equal(m.memory["global"].view(dtype), np.array(state, dtype))


@pytest.mark.parametrize("type", ["b16", "b32", "b64"])
def test_cas(type):
    dtype = TYPES[type].dtype
    memory = rng.integers(0, 3, 8).astype(dtype)
    expected, new = rng.integers(0, 3, (2, LANES)).astype(dtype)
    address = places(dtype.itemsize)
    m = FakeStep((LANES,), shared=memory.copy().view(np.uint8))
    found = execute(f"atom.shared.cas.{type}", m, address, expected, new)
    state = list(memory)
    for lane in range(LANES):
        at = int(address[lane]) // dtype.itemsize
        assert found[lane] == state[at]
        if state[at] == expected[lane]:
            state[at] = new[lane]
    assert m.memory["shared"].view(dtype).tolist() == state


def test_operations_on_128_bits():
    memory = np.array([[1, 2], [3, 4]], np.uint64)
    m = FakeStep((2,), **{"global": memory.copy().view(np.uint8).reshape(-1)})
    address = np.array([0, 16], np.uint64)
    expected, new = np.array([[1, 2], [3, 9]], np.uint64), np.array([[5, 6], [7, 8]], np.uint64)
    np.testing.assert_array_equal(execute("atom.global.cas.b128", m, address, expected, new), memory)
    np.testing.assert_array_equal(m.memory["global"].view(np.uint64), [5, 6, 3, 4])
    np.testing.assert_array_equal(execute("atom.global.exch.b128", m, address, new), [[5, 6], [3, 4]])
    np.testing.assert_array_equal(m.memory["global"].view(np.uint64), new.reshape(-1))


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_floating_sums_take_their_turns(type):
    dtype = TYPES[type].dtype
    memory, b, address = rng.normal(size=8).astype(dtype), rng.normal(size=LANES).astype(dtype), places(dtype.itemsize)
    m = FakeStep((LANES,), **{"global": memory.copy().view(np.uint8)})
    found = execute(f"atom.global.add.{type}", m, address, b)
    for lane in range(LANES):
        at = int(address[lane]) // dtype.itemsize
        assert found[lane] == memory[at]
        memory[at] += b[lane]
    np.testing.assert_array_equal(m.memory["global"].view(dtype), memory)


@pytest.mark.parametrize(("space", "flushed"), [("global", True), ("shared", False), ("", None)])
def test_subnormal_sums_are_lost_in_global_memory_only(space, flushed):
    tiny = np.array([1, 3], np.uint32).view(np.float32)
    window = np.uint64(WINDOWS["shared"])
    memory = np.zeros(16, np.uint8)
    generic = np.zeros(int(window) + 16, np.uint8)
    m = FakeStep((2,), **{"global": memory, "shared": memory, "generic": generic})
    address = np.array([0, 4], np.uint64) + (np.array([0, window], np.uint64) if not space else np.uint64(0))
    dot = f".{space}" if space else ""
    execute(f"red{dot}.add.f32", m, address, tiny)
    after = execute(f"ld{dot}.b32", m, address).tolist()
    assert after == {True: [0, 0], False: [1, 3], None: [0, 3]}[flushed]


@pytest.mark.parametrize("type", ["f16", "f16x2", "bf16", "bf16x2"])
def test_half_precision_sums(type):
    """Sums of small whole numbers are exact, whatever the format."""
    element = TYPES[type.removesuffix("x2")]
    numbers = rng.integers(-8, 9, (2, 64)).astype(np.float32)
    bits, expected = encode(numbers, element).view(np.uint16), encode(numbers[0] + numbers[1], element).view(np.uint16)
    old, b = np.ascontiguousarray(bits).view(TYPES[type].dtype)
    m = FakeStep(old.shape, **{"global": old.copy().view(np.uint8)})
    address = np.arange(len(old), dtype=np.uint64) * np.uint64(old.itemsize)
    execute(f"red.global.add.noftz.{type}", m, address, b)
    np.testing.assert_array_equal(m.memory["global"].view(np.uint16) & 0x7FFF, expected & 0x7FFF)


def test_vectors_change_element_by_element():
    memory = rng.normal(size=(4, 4)).astype(np.float32)
    b = rng.normal(size=(4, 4)).astype(np.float32)  # (elements, lanes)
    m = FakeStep((4,), **{"global": memory.copy().view(np.uint8).reshape(-1)})
    found = execute("atom.global.add.v4.f32", m, np.arange(0, 64, 16, dtype=np.uint64), b)
    np.testing.assert_array_equal(found, memory.T)
    np.testing.assert_array_equal(m.memory["global"].view(np.float32).reshape(4, 4), memory + b.T)


@pytest.mark.parametrize(("operation", "ufunc"), [
    ("add.u32", np.add), ("xor.b64", np.bitwise_xor), ("max.s32", np.maximum), ("add.f32", None), ("inc.u32", None),
])  # fmt: skip
def test_only_associative_integer_operations_offer_a_scan(operation, ufunc):
    """The machine may then combine the lanes at one address at once."""
    offered = []

    class Recorder(FakeStep):
        def atomic(self, space, address, type, update, *inputs, scan=None, ordering=None):
            offered.append(scan)
            return inputs[0]

    text = f"red.global.{operation}"
    execute(text, Recorder((2,)), np.zeros(2, np.uint64), np.zeros(2, lookup(text)[0].type.dtype))
    assert offered == [ufunc]


@pytest.mark.parametrize(("instruction", "message"), [
    (
        "atom.global.add.u32 %r0, [%d0], %f0;",
        "atom.global.add.u32: `b` is an f32 register; this form takes a 32-bit integer register",
    ),
    ("atom.global.cas.b32 %r0, [%d0], %r1;", "atom.global.cas.b32: takes d, a, b, c; 3 given"),
    (
        "{ .reg .b128 %q; mov.b128 %q, 0; atom.global.cas.b128 %q, [%d0], %q, 0; }",
        "atom.global.cas.b128: `c` is the constant 0, on which ptxas 13 crashes\n"
        "  help: move it to a register first",
    ),
    (
        "atom.shared.add.u64 %d0, [tile+4], %d1;",
        "atom.shared.add.u64: `a` is 4 bytes past an aligned address; this access requires multiples of 8",
    ),
    (
        "atom.shared.add.u32 %r0, [table], %r1;",
        "atom.shared.add.u32: `a` is `table` in .global; this instruction takes an address in .shared",
    ),
    (
        "red.global.add.L2::cache_hint.u32 [%d0], %r1;",
        "red.global.add.L2::cache_hint.u32: .L2::cache_hint takes a cache policy, a 64-bit register, as its last operand\n"
        "  help: make one with createpolicy.fractional.L2::evict_last.b64",
    ),
])  # fmt: skip
def test_refusals(instruction, message):
    assert refusal(instruction) == message


@pytest.mark.parametrize("text", [
    "atom.global.and.u32", "atom.global.exch.u32", "atom.global.add.s64", "atom.global.min.f32", "red.global.exch.b32",
    "red.acquire.gpu.global.add.u32", "atom.shared.add.L2::cache_hint.u32", "atom.local.add.u32",
    "atom.global.add.f16x2",
])  # fmt: skip
def test_forms_that_do_not_exist(text):
    assert lookup(text) == ()
