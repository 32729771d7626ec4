"""Planned launches of lists: other addresses take their places in the table, unless that changes more than addresses."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import numpy as np
import pytest

from ptxdsl.kernels.call.groups import grouped
from ptxdsl.kernels.call.groups.lists import ListLaunch
from ptxdsl.kernels.call.launching.memory import CALLS
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm

LIBRARY = SimpleNamespace(addresses=lambda arrays: [*arrays])


def launch_of(order=None, columns=((8, 10), (4,), (6,)), repeats=(), make=None):
    """Of two problems, whose arrays are their addresses: out at 5000 and 6000, a at 1000 and 2000, b at 3000 and 4000."""
    sent = []
    launch = ListLaunch(
        has_layout=lambda *arrays: None not in arrays,
        repeats=repeats,
        addresses=[5000, 6000, 1000, 2000, 3000, 4000],
        rows=np.zeros((2, 12), np.int64),
        order=order,
        columns=[list(c) for c in columns],
        bytes=np.array([100, 100, 100, 0, 100, 100]),
        written=np.arange(6) < 2,
        allocate=make,
        launch_table=lambda *given: sent.append(given),
        library=LIBRARY,
        current_stream=lambda: 7,
        lengths=(None if make else 2, 2, 2, None),
        products=2,
        zeros=(False, True),
    )
    return launch, sent


def test_the_same_arrays_are_sent_as_they_are():
    launch, sent = launch_of()
    out = [5000, 6000]
    assert launch.launch((out, [1000, 2000], [3000, 4000], None), (1, 0)) is out
    assert sent[0][0] is launch.rows and sent[0][1:] == ((1, 0), 7)


@pytest.mark.parametrize("order", [None, np.array([1, 0])])
def test_other_addresses_take_their_places(order):
    launch, sent = launch_of(order)
    before = launch.rows
    assert launch.launch(([5016, 6000], [1016, 2000], [3000, 4000], None), (1, 0))
    first, second = (0, 1) if order is None else (1, 0)
    assert sent[0][0][first].tolist() == [0, 0, 0, 0, 1016, 0, 3000, 0, 5016, 0, 5016, 0]
    assert sent[0][0][second].tolist() == [0, 0, 0, 0, 2000, 0, 4000, 0, 6000, 0, 6000, 0]
    assert not before.any()


@pytest.mark.parametrize(
    "addresses, why",
    [
        ([5000, 6000, 1008, 2000, 3000, 4000], "another alignment"),
        ([3096, 6000, 1000, 2000, 3000, 4000], "an output in an input"),
        ([2904, 6000, 1000, 2000, 3000, 4000], "an input in an output"),
        ([6096, 6000, 1000, 2000, 3000, 4000], "an output in another"),
        ([5000, 6000, None, 2000, 3000, 4000], "arrays that lie otherwise"),
    ],
)
def test_the_careful_way_is_taken_for(addresses, why):
    launch, sent = launch_of()
    assert launch.launch((addresses[:2], addresses[2:4], addresses[4:], None), (1, 0)) is None
    assert not sent


def test_inputs_may_share_memory_and_empty_arrays_lie_anywhere():
    launch, _ = launch_of()
    assert launch.launch(([5000, 6000], [3000, 5008], [3048, 4000], None), (1, 0))


def test_outputs_that_are_not_given_are_made():
    launch, sent = launch_of(make=lambda like: [like + 7008, like + 8008])
    assert launch.launch((None, [1000, 2000], [3000, 4000], None), (1, 0)) == [8008, 9008]
    assert sent[0][0][0].tolist() == [0, 0, 0, 0, 1000, 0, 3000, 0, 8008, 0, 8008, 0]


def test_the_same_array_stands_where_it_stood():
    launch, sent = launch_of(repeats=((5, 4),))
    launch.addresses[5] = 3000
    same = 3000
    assert launch.launch(([5000, 6000], [1000, 2000], [same, same], None), (1, 0))
    assert launch.launch(([5000, 6000], [1000, 2000], [3000, 4000], None), (1, 0)) is None
    assert len(sent) == 1


def test_arrays_of_numpy_are_not_remembered(rng):
    CALLS.clear()
    a, b, out = ([np.ones((4, 4), np.float16)] for _ in range(3))
    for _ in range(2):
        grouped_gemm(a, b, out=out)
    assert len(CALLS) == 0


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"sort": True}, {"schedule": "host"}, {"schedule": "host", "balance": "k"}])
@pytest.mark.parametrize("beta", [0.0, 2.0])
@pytest.mark.parametrize("order", ["row", "column"])
def test_a_planned_launch_computes_what_the_first_one_does(options, beta, order, monkeypatch):
    torch = importlib.import_module("torch")
    CALLS.clear()
    config = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=3)
    sizes = [(100, 72, 64), (8, 200, 1000), (0, 8, 8)]

    def make(m, n):
        made = torch.randn(m, n, device="cuda").half()
        return made if order == "row" else made.T.contiguous().T

    def run(careful):
        a, b, c, out = ([make(*shape) for shape in shapes] for shapes in (
            [(m, k) for m, _, k in sizes], [(k, n) for _, n, k in sizes], *[[(m, n) for m, n, _ in sizes]] * 2
        ))  # fmt: skip
        if not careful:
            monkeypatch.setattr(grouped, "problem_group", None)
        grouped_gemm(a, b, c, out=out, alpha=0.5, beta=beta, config=config, **options)
        exact = [0.5 * (x.float() @ y.float()) + beta * z.float() for x, y, z in zip(a, b, c, strict=True)]
        assert all(torch.allclose(z.float(), e, atol=0.1, rtol=1e-2) for z, e in zip(out, exact, strict=True))
        return a, b, c, out

    kept = [run(careful=True)]
    kept += [run(careful=False) for _ in range(3)]  # at other addresses


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"sort": True}, {"schedule": "host", "sort": True}])
def test_the_same_arrays_are_computed_again(options):
    """Of int8 matrices that lie so, on the path whose blocks count themselves."""
    torch = importlib.import_module("torch")
    CALLS.clear()
    sizes = [(392, 2, 191), (63, 248, 96), (584, 672, 480)]
    a, b = ([torch.randint(-2, 3, shape, device="cuda", dtype=torch.int8) for shape in shapes] for shapes in (
        [(m, k) for m, _, k in sizes], [(k, n) for _, n, k in sizes]
    ))  # fmt: skip
    out = [torch.empty(m, n, device="cuda", dtype=torch.int32) for m, n, _ in sizes]
    for _ in range(4):
        for each in out:
            each.fill_(12345)
        grouped_gemm(a, b, out=out, **options)
        assert all((z.double() == x.double() @ y.double()).all() for x, y, z in zip(a, b, out, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["row", "column"])
def test_lists_of_one_size_are_computed_again_at_other_addresses(order):
    torch = importlib.import_module("torch")
    CALLS.clear()
    for _ in range(3):
        a, b = ([torch.randn(*shape, device="cuda").half() for _ in range(3)] for shape in ((40, 72), (72, 88)))
        out = [torch.zeros(40, 88, device="cuda").half() for _ in range(3)]
        out = out if order == "row" else [each.T.contiguous().T for each in out]
        gemm(a, b, out=out)
        assert all(torch.allclose(z, x @ y, atol=0.1, rtol=1e-2) for x, y, z in zip(a, b, out, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"sort": True}, {"schedule": "host"}, {"schedule": "host", "balance": "k"}])
def test_a_graph_computes_with_what_the_arrays_hold_when_it_is_replayed(options):
    torch = importlib.import_module("torch")
    sizes = [(100, 72, 64), (8, 200, 3000)]
    a, b, out = ([torch.randn(*shape, device="cuda").half() for shape in shapes] for shapes in (
        [(m, k) for m, _, k in sizes], [(k, n) for _, n, k in sizes], [(m, n) for m, n, _ in sizes]
    ))  # fmt: skip
    grouped_gemm(a, b, out=out, **options)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        grouped_gemm(a, b, out=out, **options)
    grouped_gemm([x[:5] for x in a], b, out=[z[:5] for z in out], **options)  # another table on the usual stream
    for factor in (1, -2):
        for x in a:
            x.mul_(factor)
        graph.replay()
        torch.cuda.synchronize()
        assert all(torch.allclose(z, x @ y, atol=0.5, rtol=1e-2) for x, y, z in zip(a, b, out, strict=True))
