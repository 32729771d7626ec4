"""Planned launches of lists: other addresses take their places in the table, unless that changes more than addresses."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import numpy as np
import pytest

from ptxdsl.kernels import grouped
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.group_plan import GroupPlan, GroupPlans
from ptxdsl.kernels.grouped import grouped_gemm

LIBRARY = SimpleNamespace(address=lambda array: array)


def plan(order=None, columns=((4,), (6,), (8, 10))):
    """Of two problems, whose arrays are their addresses: a at 1000 and 2000, b at 3000 and 4000, out at 5000 and 6000."""
    sent = []
    made = GroupPlan(
        alike=lambda *arrays: None not in arrays,
        addresses=[1000, 2000, 3000, 4000, 5000, 6000],
        rows=np.zeros((2, 12), np.int64),
        order=order,
        columns=[list(c) for c in columns],
        bytes=np.array([100, 0, 100, 100, 100, 100]),
        written=np.arange(6) >= 4,
        send=lambda *given: sent.append(given),
        current_stream=lambda: 7,
    )
    return made, sent


def test_the_same_arrays_are_sent_as_they_are():
    made, sent = plan()
    assert made.launch([1000, 2000, 3000, 4000, 5000, 6000], (1, 0), LIBRARY)
    assert sent[0][0] is made.rows and sent[0][1:] == ((1, 0), 7)


@pytest.mark.parametrize("order", [None, np.array([1, 0])])
def test_other_addresses_take_their_places(order):
    made, sent = plan(order)
    before = made.rows
    assert made.launch([1016, 2000, 3000, 4000, 5016, 6000], (1, 0), LIBRARY)
    first, second = (0, 1) if order is None else (1, 0)
    assert sent[0][0][first].tolist() == [0, 0, 0, 0, 1016, 0, 3000, 0, 5016, 0, 5016, 0]
    assert sent[0][0][second].tolist() == [0, 0, 0, 0, 2000, 0, 4000, 0, 6000, 0, 6000, 0]
    assert not before.any()


@pytest.mark.parametrize(
    "addresses, why",
    [
        ([1008, 2000, 3000, 4000, 5000, 6000], "another alignment"),
        ([1000, 2000, 3000, 4000, 3096, 6000], "an output in an input"),
        ([1000, 2000, 3000, 4000, 2904, 6000], "an input in an output"),
        ([1000, 2000, 3000, 4000, 6096, 6000], "an output in another"),
        ([None, 2000, 3000, 4000, 5000, 6000], "arrays that lie otherwise"),
    ],
)
def test_the_careful_way_is_taken_for(addresses, why):
    made, sent = plan()
    assert not made.launch(addresses, (1, 0), LIBRARY)
    assert not sent


def test_inputs_may_share_memory_and_empty_arrays_lie_anywhere():
    made, _ = plan()
    assert made.launch([3000, 5008, 3048, 4000, 5000, 6000], (1, 0), LIBRARY)


def test_arrays_of_numpy_are_not_planned(rng, monkeypatch):
    monkeypatch.setattr(grouped, "PLANS", GroupPlans())
    a, b, out = ([np.ones((4, 4), np.float16)] for _ in range(3))
    for _ in range(2):
        grouped_gemm(a, b, out=out)
    assert not any(grouped.PLANS._plans.values())


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"sort": True}, {"schedule": "host"}, {"schedule": "host", "balance": "k"}])
@pytest.mark.parametrize("beta", [0.0, 2.0])
@pytest.mark.parametrize("order", ["row", "column"])
def test_a_planned_launch_computes_what_the_first_one_does(options, beta, order, monkeypatch):
    torch = importlib.import_module("torch")
    monkeypatch.setattr(grouped, "PLANS", GroupPlans())
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
            monkeypatch.setattr(grouped, "group_of", None)
        grouped_gemm(a, b, c, out=out, alpha=0.5, beta=beta, config=config, **options)
        exact = [0.5 * (x.float() @ y.float()) + beta * z.float() for x, y, z in zip(a, b, c, strict=True)]
        assert all(torch.allclose(z.float(), e, atol=0.1, rtol=1e-2) for z, e in zip(out, exact, strict=True))
        return a, b, c, out

    kept = [run(careful=True)]
    kept += [run(careful=False) for _ in range(3)]  # at other addresses


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
