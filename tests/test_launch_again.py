"""Launches like the one before, which are not checked and packed again, and with one thing that differs: each gets its
own parameters."""

import struct
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import ptxdsl as pd
from ptxdsl import config, f32, ptr, u32
from ptxdsl.arrays import strided
from ptxdsl.assemble import Cubin, Resources
from ptxdsl.errors import LaunchError
from ptxdsl.runtime.launch import load

from .fake_driver import FakeCuda, installed
from .kernels import tensors

NAN = float("nan")


def array(elements=8, **how):
    return tensors.Tensor(elements, **{"dtype": "torch.float32"} | how)


@pytest.fixture
def torch(monkeypatch):
    module = tensors.torch()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module._C


@pytest.fixture
def gpu(torch):
    with installed(FakeCuda(widths=(8, 4, 8, 4))) as fake:
        yield fake


def handle():
    parameters = [("x", ptr[f32]), ("n", u32), ("y", ptr[f32]), ("a", f32)]
    return load(Cubin(b"image", "sm_90a", {"k": Resources()}), "k", parameters, {"y"})


def make(read=lambda: None):
    @pd.kernel
    def k(x: ptr[f32], n: u32, y: ptr[f32], a: f32, *, step: int = 1):
        read()
        y[0] = x[0] * a
        y[1] = n.to(f32) * step

    return k


def packing(launched, log):
    """Notes what a handle packs from now on."""
    names = launched.last.__globals__
    pack_into = names["pack_into"]

    def packed(buffer, offset, *values):
        log.append(values)
        pack_into(buffer, offset, *values)

    names["pack_into"] = packed


def test_only_what_differs_from_the_launch_before_is_packed(gpu, torch):
    k, x, y, z, log = handle(), array(), array(), array(), []
    for _ in range(2):
        k(1, 32, (x, 8, y, 2.0))
    packing(k, log)
    for arguments in ((x, 8, y, 2.0), (x, 8, y, 4.0 / 2), (array(address=x.address), 8, y, 2.0)):
        k(1, 32, arguments)
    assert log == []
    for arguments in ((z, 8, y, 2.0), (z, 9, y, 2.0), (z, 9, x, 2.0), (z, 9, x, 3.0), (x, 8, y, 2.0)):
        k(1, 32, arguments)
        k(1, 32, arguments)
    assert log == [
        (z.address, 8, y.address, 2.0), (z.address, 9, y.address, 2.0), (z.address, 9, x.address, 2.0),
        (z.address, 9, x.address, 3.0), (x.address, 8, y.address, 2.0),
    ]  # fmt: skip


def test_other_shapes_and_streams_have_other_configurations_of_the_same_parameters(gpu, torch):
    k, arguments, log = handle(), (array(), 8, array(), 2.0), []
    k(1, 32, arguments)
    k(1, 32, arguments)
    packing(k, log)
    for grid, stream in ((2, None), (2, None), (2, 5), (2, 5), (2, None), (1, None)):
        k(grid, 32, arguments, stream=stream)
    torch.stream = 90
    k(1, 32, arguments)
    assert log == []
    assert [(launch["grid"][0], launch["stream"]) for launch in gpu.launches[2:]] == [
        (2, 70), (2, 70), (2, 5), (2, 5), (2, 70), (1, 70), (1, 90),
    ]  # fmt: skip
    assert all(launch["parameters"] == gpu.launches[0]["parameters"] for launch in gpu.launches)


def test_memory_that_is_another_array_now_is_checked_anew(gpu):
    """As it is where an array was freed and another one lies at its address."""
    k, x, y = handle(), array(), array()
    for _ in range(2):
        k(1, 32, (x, 8, y, 2.0))
    others = {
        "`y` expects ptr[f32], got a torch array of s32 with shape (8,)": array(dtype="torch.int32", address=y.address),
        "`y` has shape (4,) and strides (2,), but a kernel pointer needs row-major, contiguous memory": array(
            4, strides=(2,), address=y.address
        ),
        "`y` is a torch array of f32 with shape (8,) in host memory, but this launch runs on cuda:0": array(
            device=-1, address=y.address
        ),
    }
    for message, other in others.items():
        with pytest.raises(LaunchError) as refused:
            k(1, 32, (x, 8, other, 2.0))
        assert refused.value.message == message
        k(1, 32, (x, 8, y, 2.0))
    assert len(gpu.launches) == 5
    reaching = array((y.address - x.address) // 4 + 1, address=x.address)
    with pytest.raises(LaunchError) as refused:
        k(1, 32, (reaching, 8, y, 2.0))
    assert refused.value.message == "`y`, which k writes, shares memory with `x`"


def test_each_gpu_has_its_own_parameters(torch):
    k = handle()
    with installed(FakeCuda(widths=(8, 4, 8, 4), gpus=2)) as gpu:
        pairs = [(array(device=n), array(device=n)) for n in (0, 1)]
        for n in (0, 1, 0, 1, 1, 0):
            x, y = pairs[n]
            k(1, 32, (x, 8, y, 2.0))
            assert (gpu.launches[-1]["device"], gpu.launches[-1]["stream"]) == (n, 70 + n)
            assert gpu.launches[-1]["parameters"][::2] == [struct.pack("<Q", each.address) for each in (x, y)]


def test_a_launch_that_another_context_refuses_is_made_in_its_own(gpu):
    k, arguments = handle(), (array(), 8, array(), 2.0)
    for contexts in ([1000], [1000], [1001], [], [1000]):
        gpu.contexts = contexts
        k(1, 32, arguments)
        assert gpu.contexts == contexts
    assert all(launch == gpu.launches[0] for launch in gpu.launches) and len(gpu.launches) == 5


def test_zeros_of_either_sign_and_numbers_that_are_none_arrive_as_they_are(gpu):
    k, x, y = handle(), array(), array()
    numbers = (0.0, -0.0, -0.0, 0.0, NAN, -NAN, NAN, 0.0, -0.0)
    for number in numbers:
        k(1, 32, (x, 8, y, number))
    assert [launch["parameters"][3] for launch in gpu.launches] == [struct.pack("<f", n) for n in numbers]


class Dial:
    """A number that changes and is the same object."""

    def __init__(self):
        self.number = 0.0

    def __float__(self):
        return self.number


def test_a_number_that_changes_arrives_as_it_is(gpu):
    k, x, y, dial = handle(), array(), array(), Dial()
    for dial.number in (1.0, 1.0, 2.0, 3.0):
        k(1, 32, (x, 8, y, dial))
    assert [launch["parameters"][3] for launch in gpu.launches] == [struct.pack("<f", n) for n in (1, 1, 2, 3)]


def outcome(gpu, launch):
    """What a launch does: what the driver got, or what was refused."""
    count = len(gpu.launches)
    try:
        launch()
    except LaunchError as refused:
        assert len(gpu.launches) == count
        return refused.message
    (launched,) = gpu.launches[count:]
    return launched


def calls():
    """Arguments of launches with their shapes; some are refused."""
    x, y = array(), array()
    others = [array(address=y.address), array(16, address=y.address), array(2, strides=(2,), address=y.address)]
    shared = [array(16, address=y.address - 32), array(8, address=y.address + 2), array(device=-1)]
    lists = [(x, 8, y, 2.0), *[(x, 8, each, 2.0) for each in others], *[(each, 8, y, 2.0) for each in shared]]
    lists += [(x, n, y, 2.0) for n in (True, 8.0, 1 << 32, -1, None)]
    lists += [(x, 8, y, a) for a in (2, 1 << 24, (1 << 24) + 1, 1e300, "2")]
    lists += [(y, 8, y, 2.0), (x.address, 8, y.address, 2.0), (x.address, 8, y.address + 2, 2.0), (None, 8, y, 2.0)]
    lists += [(x, 8, y), (x, 8, y, 2.0, 2.0), (strided(x), 8, strided(others[2]), 2.0)]
    lists += [(x, 8, array(dtype="torch.int32"), 2.0)]
    beside = array(address=x.address + 32)  # the next array, so that a longer one at the same address would reach it
    lists += [(x, 8, beside, 2.0), (array(16, address=x.address), 8, beside, 2.0)]
    shapes = [(1, 32), ((2, 2), 32), (1, 2000)]
    return [(shape, arguments) for arguments in lists for shape in shapes[: 1 + 2 * (arguments is lists[0])]]


def test_what_came_before_changes_no_launch_of_a_handle(gpu, rng):
    known = handle()
    turns = calls()
    for n in rng.integers(len(turns), size=400):
        shape, arguments = turns[n]
        expected = outcome(gpu, lambda shape=shape, arguments=arguments: handle()(*shape, arguments))
        for _ in range(2):
            assert outcome(gpu, lambda shape=shape, arguments=arguments: known(*shape, arguments)) == expected


def test_what_came_before_changes_no_launch_of_a_kernel(gpu, rng):
    known = make()
    turns = [(*turn, {}) for turn in calls() if any(isinstance(each, tensors.Tensor) for each in turn[1])]
    (first, arguments, _) = turns[0]
    turns += [
        (first, arguments, how)
        for how in ({"cluster": 2}, {"cooperative": True}, {"dependent": True}, {"step": 2}, {"stream": 5})
    ]
    fresh = {}
    for n in rng.integers(len(turns), size=400):
        shape, arguments, how = turns[n]
        if n not in fresh:
            fresh[n] = outcome(gpu, lambda a=arguments, s=shape, o=how: make()[s](*a, **o))
        for _ in range(2):
            assert outcome(gpu, lambda a=arguments, s=shape, o=how: known[s](*a, **o)) == fresh[n]


def test_arrays_of_other_shapes_at_the_same_address_have_other_tensor_maps(gpu):
    def mapped():
        return load(Cubin(b"image", "sm_90a", {"k": Resources()}), "k", [("m", pd.TensorMap(f32, (8, 8)))], set())

    gpu.widths = (128,)
    gpu.contexts.append(1000)
    known, first = mapped(), tensors.Tensor(16, 8, dtype="torch.float32")
    second = tensors.Tensor(8, 16, dtype="torch.float32", address=first.address)
    numbers = []
    for array in (first, first, second, second, first, first):
        known(1, 32, (array,))
        numbers.append(struct.unpack_from("<Q", gpu.launches[-1]["parameters"][0])[0])
    assert [gpu.maps[number - 1][2] for number in numbers] == [[8, 16]] * 2 + [[16, 8]] * 2 + [[8, 16]] * 2


def test_each_thread_packs_its_own(gpu):
    k, x, y, z = handle(), array(), array(), array()
    for _ in range(2):
        k(1, 32, (x, 8, y, 2.0))
    gpu.contexts.append(1000)
    with ThreadPoolExecutor(1) as other:
        for first in (x, z, x, z):
            other.submit(k, 1, 32, (first, 8, y, 2.0)).result()
            k(1, 32, (x, 8, y, 2.0))
    firsts = [launch["parameters"][0] for launch in gpu.launches[2:]]
    assert firsts == [struct.pack("<Q", each.address) for first in (x, z, x, z) for each in (first, x)]


@pytest.mark.parametrize("elements", [8, 16])
@pytest.mark.parametrize("n", [8, 9])
@pytest.mark.parametrize("where", ["current_stream", "configs", "pack_into"])
def test_what_interrupts_a_launch_to_launch_others_leaves_both_right(gpu, where, n, elements):
    """As the handler of a signal may, before the parameters are packed, and when they have just been."""
    k, x, y, z = handle(), array(), array(), array(elements)
    for _ in range(2):
        k(1, 32, (x, 8, y, 2.0))
    names, waiting = k.last.__globals__, [lambda: k(1, 32, (z, 8, y, 2.0))]
    interrupted = names[where]

    def called(*arguments):
        result = interrupted(*arguments)
        while waiting:
            waiting.pop()()
        return result

    names[where] = called
    for _ in range(2):
        k(2, 32, (x, n, y, 2.0))
    if waiting:  # nothing was packed
        assert (where, n) == ("pack_into", 8)
        return
    assert [(launch["grid"][0], *launch["parameters"][:2]) for launch in gpu.launches[2:]] == [
        (grid, struct.pack("<Q", first.address), struct.pack("<I", number))
        for grid, first, number in ((1, z, 8), (2, x, n), (2, x, n))
    ]


def test_a_number_that_does_not_fit_leaves_nothing_packed(gpu):
    k, x, y, z = handle(), array(), array(), array()
    for _ in range(2):
        k(1, 32, (x, 8, y, 2.0))
    for _ in range(2):
        with pytest.raises(LaunchError):
            k(1, 32, (z, 1 << 32, y, 2.0))
    k(1, 32, (x, 8, y, 2.0))
    assert gpu.launches[2] == gpu.launches[1]


def test_the_bytes_of_shared_memory_are_part_of_the_shape(gpu):
    k, arguments = make(), (array(), 8, array(), 2.0)
    for shape in ((1, 32), (1, 32), (1, 32, 64), (1, 32, 64), (1, 32), (1, 32, 0)):
        k[shape](*arguments)
    assert [launch["shared_bytes"] for launch in gpu.launches] == [0, 0, 64, 64, 0, 0]


def test_constants_that_are_computed_for_each_launch_are_never_taken_for_others(gpu):
    k, x, y = make(), array(), array()
    for n in (1000, 2000, 1000, 2000, 3000) * 2:
        k[1, 32](x, 8, y, 2.0, step=int(str(n)))
    images = [image for _, image in gpu.loaded]
    assert len(images) == len(set(images)) == 3 and len(k._variants) == 3


def test_a_list_is_no_grid_however_often_it_was_launched(gpu):
    k, arguments = make(), (array(), 8, array(), 2.0)
    for _ in range(3):
        k[1, 32](*arguments)
    with pytest.raises(LaunchError) as refused:
        k[[1], 32](*arguments)
    assert refused.value.message == "grid is [1]; it must be an int, or a tuple of one to three ints"
    with pytest.raises(LaunchError, match=r"kernel `k` is indexed by \[1, 32\]"):
        k[[1, 32]](*arguments)


def test_settings_and_globals_are_asked_at_each_launch(gpu, monkeypatch):
    k, arguments = make(lambda: STEP), (array(), 8, array(), 2.0)
    for _ in range(3):
        k[1, 32](*arguments)
    assert len(k._variants) == 1
    monkeypatch.setitem(globals(), "STEP", 2)
    k[1, 32](*arguments)
    k[1, 32](*arguments)
    assert len(k._variants) == 2
    with config.using(device="emulator"), pytest.raises(LaunchError, match="this launch runs on the emulator"):
        k[1, 32](*arguments)
    k[1, 32](*arguments)
    assert len(gpu.launches) == 6
    k[1, 32](*arguments, step=2)
    assert len(k._variants) == 3


STEP = 1
