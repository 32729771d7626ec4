"""Exchange within a warp, against loops over the lanes as the manual writes them."""

import numpy as np
import pytest

from .fake_step import FakeStep, execute
from .refusals import refusal

WARPS = 3
SHAPE = (WARPS, 32)
rng = np.random.default_rng(11)
ALL = np.ones(SHAPE, bool)
SOME = rng.integers(0, 2, SHAPE).astype(bool)
SOME[:, 7] = True


def mask_of(active: np.ndarray) -> np.ndarray:
    numbers = [sum(1 << lane for lane in range(32) if warp[lane]) for warp in active]
    return np.array(numbers, np.uint32)[:, None].repeat(32, axis=1)


def run(text: str, active: np.ndarray, *inputs: np.ndarray):
    return execute(text, FakeStep(SHAPE, active), *inputs, mask_of(active))


def shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The source lane and the predicate of shfl.sync."""
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    largest = (lane & segment) | (clamp & ~segment)
    smallest = lane & segment
    source, inside = {
        "up": (lane - b, lane - b >= largest),
        "down": (lane + b, lane + b <= largest),
        "bfly": (lane ^ b, lane ^ b <= largest),
        "idx": (smallest | (b & ~segment), (smallest | (b & ~segment)) <= largest),
    }[mode]
    return (source if inside else lane), inside


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("c", [0, 31, 0x1C03, 0x181F, 0x0F10])
def test_shfl(mode, c):
    a = rng.integers(0, 1 << 32, SHAPE, np.uint32)
    b = rng.integers(0, 40, SHAPE, np.uint32)
    d, p = run(f"shfl.sync.{mode}.b32", ALL, a, b, np.full(SHAPE, c, np.uint32))
    for warp, lane in np.ndindex(SHAPE):
        source, inside = shuffled(mode, lane, int(b[warp, lane]), c)
        assert (d[warp, lane], p[warp, lane]) == (a[warp, source], inside)


def test_a_lane_hears_nothing_from_one_that_takes_no_part():
    a = np.arange(96, dtype=np.uint32).reshape(SHAPE)
    active = ALL.copy()
    active[1, 5] = False
    m = FakeStep(SHAPE, active)
    d, _ = execute("shfl.sync.idx.b32", m, a, np.full(SHAPE, 5, np.uint32), np.full(SHAPE, 31, np.uint32), mask_of(ALL))
    assert (d[0] == 5).all() and (d[2] == 69).all()
    assert (d[1] == 0xFFFFFFFF).all()
    ((_, kind, _, where, _),) = m.calls
    assert kind == "divergent-collective"
    assert (np.flatnonzero(where) == 32 + np.flatnonzero(np.arange(32) != 5)).all()


@pytest.mark.parametrize("active", [ALL, SOME])
@pytest.mark.parametrize("values", ["none", "all", "some"])
def test_votes(active, values):
    a = {"none": np.zeros(SHAPE, bool), "all": ALL, "some": rng.integers(0, 2, SHAPE).astype(bool)}[values]
    voted = [a[w][active[w]] for w in range(WARPS)]
    for mode, outcome in (("all", np.all), ("any", np.any), ("uni", lambda v: v.all() or not v.any())):
        d = run(f"vote.sync.{mode}.pred", active, a)
        np.testing.assert_array_equal(d, np.array([[outcome(v)] * 32 for v in voted]))
    np.testing.assert_array_equal(run("vote.sync.ballot.b32", active, a), mask_of(a & active))


@pytest.mark.parametrize("active", [ALL, SOME])
@pytest.mark.parametrize("bits", [32, 64])
def test_match_any(active, bits):
    a = rng.integers(0, 4, SHAPE).astype(f"u{bits // 8}") << np.uint8(bits - 3)
    d = run(f"match.any.sync.b{bits}", active, a)
    for warp, lane in zip(*np.nonzero(active), strict=True):
        same = [n for n in range(32) if active[warp, n] and a[warp, n] == a[warp, lane]]
        assert d[warp, lane] == sum(1 << n for n in same)


@pytest.mark.parametrize("active", [ALL, SOME])
def test_match_all(active):
    a = np.full(SHAPE, 9, np.uint32)
    a[~active] = 1  # lanes that take no part do not count
    a[2, 7] = 8
    d, p = run("match.all.sync.b32", active, a)
    assert p[:2].all() and not p[2].any()
    np.testing.assert_array_equal(d, np.where(p, mask_of(active), 0))


@pytest.mark.parametrize("active", [ALL, SOME])
@pytest.mark.parametrize(("operation", "type"), [
    *((op, t) for op in ("add", "min", "max") for t in ("u32", "s32")), ("and", "b32"), ("or", "b32"), ("xor", "b32"),
])  # fmt: skip
def test_redux(active, operation, type):
    a = rng.integers(0, 1 << 32, SHAPE, np.uint32).view(np.int32 if type == "s32" else np.uint32)
    reduce = {
        "add": lambda v: v.sum(dtype=v.dtype), "min": np.min, "max": np.max,
        "and": np.bitwise_and.reduce, "or": np.bitwise_or.reduce, "xor": np.bitwise_xor.reduce,
    }[operation]  # fmt: skip
    d = run(f"redux.sync.{operation}.{type}", active, a)
    np.testing.assert_array_equal(d, np.array([[reduce(a[w][active[w]])] * 32 for w in range(WARPS)]))


@pytest.mark.parametrize("active", [ALL, SOME])
@pytest.mark.parametrize("qualifiers", ["", ".abs", ".NaN", ".abs.NaN"])
def test_redux_of_floats(active, qualifiers):
    a = rng.standard_normal(SHAPE).astype(np.float32)
    a[1, rng.integers(0, 32, 4)] = np.nan
    a[2] = np.nan
    d = {op: run(f"redux.sync.{op}{qualifiers}.f32", active, a) for op in ("min", "max")}
    for warp in range(WARPS):
        values = a[warp][active[warp]]
        values = np.abs(values) if "abs" in qualifiers else values
        numbers = values[~np.isnan(values)]
        lost = not len(numbers) or ("NaN" in qualifiers and len(numbers) < len(values))
        for op, reduce in (("min", np.min), ("max", np.max)):
            wanted = np.uint32(0x7FFFFFFF) if lost else reduce(numbers).view(np.uint32)
            assert (d[op][warp].view(np.uint32) == wanted).all()


def test_redux_orders_zeros():
    a = np.where(np.arange(32) % 2, np.float32(-0.0), np.float32(0.0)) * np.ones(SHAPE, np.float32)
    assert (run("redux.sync.min.f32", ALL, a).view(np.uint32) == 0x80000000).all()
    assert (run("redux.sync.max.f32", ALL, a).view(np.uint32) == 0).all()


def test_the_lowest_lane_is_elected():
    d, p = execute("elect.sync", FakeStep(SHAPE, SOME), mask_of(SOME))
    for warp in range(WARPS):
        leader = np.flatnonzero(SOME[warp])[0]
        assert (d[warp] == leader).all() and np.flatnonzero(p[warp]) == [leader]


@pytest.mark.parametrize(("instruction", "message"), [
    (
        "shfl.sync.idx.b32 %r0, %r1, 0, 31, 0;",
        "shfl.sync.idx.b32: `membermask` is 0; it must name the participating lanes\n  help: -1 names all 32 lanes",
    ),
    (
        "shfl.sync.idx.b32 %d0, %r1, 0, 31, -1;",
        "shfl.sync.idx.b32: `d` is a b64 register; this form takes a 32-bit register",
    ),
    (
        "vote.sync.ballot.b32 %r0, %r1, -1;",
        "vote.sync.ballot.b32: `a` is a b32 register; this form takes a predicate",
    ),
    (
        "redux.sync.add.u32 %r0, %f0, -1;",
        "redux.sync.add.u32: `a` is an f32 register; this form takes a 32-bit integer register",
    ),
    ("elect.sync %r0, -1;", "elect.sync: takes d, p, membermask; 2 given"),
])  # fmt: skip
def test_refusals(instruction, message):
    assert refusal(instruction) == message
