"""Kernels with clusters: what is printed, what the driver is asked for, and what is refused before that."""

from __future__ import annotations

import itertools
import linecache
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config, ptr, u32
from ptxdsl.errors import Error, LaunchError, TraceError, VerifyError
from tests.fake_driver import FakeCuda, installed
from tests.machines import MACHINES, machine

_addresses = itertools.count(1 << 30, 1 << 20)


class OnGpu:
    """Answers as an array of u32 on a GPU does."""

    def __init__(self):
        self.__cuda_array_interface__ = {
            "shape": (100,), "typestr": "<u4", "data": (next(_addresses), False), "version": 3, "strides": None,
        }  # fmt: skip


@pytest.fixture
def gpu():
    with installed(FakeCuda(widths=(8,))) as fake:
        yield fake


def ranks(cluster=None):
    @pd.kernel(cluster=cluster)
    def k(x: ptr[u32]):
        x[pd.ctaid.x + pd.nctaid.x * pd.ctaid.y] = pd.special("%cluster_ctarank")

    return k


@pd.kernel
def ranks_of_none(x: ptr[u32]):
    x[pd.ctaid.x] = 0


def parsed(directives):
    text = (
        f".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 x)\n{directives}\n{{ ret; }}\n"
    )
    return pd.parse(text)["k"]


RANKS = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x)
{directives}
{{
    .reg .b32 %r<4>; .reg .b64 %x<2>;
    ld.param.u64 %x0, [x];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %nctaid.x;
    mov.u32 %r3, %ctaid.y;
    mad.lo.u32 %r0, %r2, %r3, %r1;
    mul.wide.u32 %x1, %r0, 4;
    add.u64 %x0, %x0, %x1;
    mov.u32 %r1, %cluster_ctarank;
    st.global.u32 [%x0], %r1;
    ret;
}}
"""


def refused(run):
    with pytest.raises(Error) as caught:
        run()
    return type(caught.value), caught.value.message, caught.value.help


# On the emulator


@pytest.mark.parametrize("cluster, printed", [(2, "2"), ((2, 3), "2, 3"), ((1, 2, 4), "1, 2, 4")])
def test_a_cluster_is_printed_as_a_promise(cluster, printed):
    assert f"\n.reqnctapercluster {printed}\n" in ranks(cluster).ptx("sm_90")


@pytest.mark.parametrize("promised, asked", [((2, 3), None), (None, (2, 3)), ((2, 3), (2, 3, 1))])
def test_blocks_run_in_the_clusters_that_are_promised_or_asked_for(promised, asked):
    x = np.full((6, 4), 99, np.uint32)
    with config.using(arch="sm_90"):
        ranks(promised)[(4, 6), 1](x, cluster=asked)
    assert (x == np.tile([[0, 1], [2, 3], [4, 5]], (2, 2))).all()
    again = np.full((6, 4), 99, np.uint32)
    with config.using(arch="sm_90"):
        assert not pd.emulate(ranks(promised), (4, 6), 1, again, cluster=asked).findings
    assert (again == x).all()


def test_no_cluster_is_a_cluster_of_one():
    x = np.full(4, 99, np.uint32)
    with config.using(arch="sm_90"):
        ranks()[4, 1](x)
    assert (x == 0).all()


PROMISED = [(".reqnctapercluster 2, 3", None), ("", (2, 3)), ("", 16), (".maxclusterrank 8", 8), (".maxclusterrank 3", (1, 3)),
            (".explicitcluster", 4)]  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("directives, asked", PROMISED)
def test_blocks_know_their_rank(name, directives, asked):
    """16 blocks are more than every GPU has room for: the driver is told that this kernel may have them."""
    where = machine(name)
    across, down = asked if isinstance(asked, tuple) else (asked, 1) if asked else (2, 3)
    x = where.array(np.full((2 * down, 2 * across), 99, np.int32))
    pd.parse(RANKS.format(directives=directives))["k"][(2 * across, 2 * down), 1](x, cluster=asked)
    assert (where.values(x) == np.tile(np.arange(across * down).reshape(down, across), (2, 2))).all()


# On a GPU


@pytest.mark.parametrize("cluster", [2, (1, 2, 1), (16, 1, 1)])
def test_a_launch_in_clusters_tells_the_driver(gpu, cluster):
    ranks()[(16, 2), 1](OnGpu(), cluster=cluster)
    extents = cluster if isinstance(cluster, tuple) else (cluster, 1, 1)
    assert gpu.launches[-1]["attributes"] == [("CLUSTER_DIMENSION", extents)]
    assert gpu.function_attributes == [("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)] * (extents[0] > 8)


@pytest.mark.parametrize("cluster, asked", [((2, 1, 1), None), ((2, 1, 1), 2), ((16, 1, 1), None)])
def test_the_driver_knows_the_clusters_that_a_kernel_promises(gpu, cluster, asked):
    gpu.cluster = cluster
    kernel = ranks(cluster)
    for _ in range(3):  # carefully, then quickly
        kernel[(16, 2), 1](OnGpu(), cluster=asked)
    assert [launch["attributes"] for launch in gpu.launches] == [[]] * 3
    assert gpu.function_attributes == [("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)] * (cluster[0] > 8)


def test_the_clusters_of_machine_code_are_asked_for_and_grids_held_against_them(gpu):
    gpu.cluster = (2, 2, 1)
    kernel = ranks((2, 2))
    kernel[(4, 2), 1](OnGpu())
    for _ in range(2):
        assert refused(lambda: kernel[(4, 3), 1](OnGpu())) == (
            LaunchError, "a grid of (4, 3, 1) blocks is not a multiple of clusters of (2, 2, 1)",
            "round the grid up to whole clusters, and let the blocks past the end of the problem return",
        )  # fmt: skip
    assert len(gpu.launches) == 1


def test_a_gpu_without_clusters():
    with installed(FakeCuda(widths=(8,), COMPUTE_CAPABILITY_MAJOR=8)) as gpu:
        assert refused(lambda: ranks_of_none[4, 1](OnGpu(), cluster=2)) == (
            LaunchError, "cuda:0 (Fake 0, sm_80) does not support clusters", "launch without `cluster`, which needs sm_90 or later",
        )  # fmt: skip
        assert gpu.launches == []


# Refusals


def of_promise(directives, **launch):
    def run():
        with config.using(arch="sm_90"):
            parsed(directives)[6, 1](np.zeros(1, np.uint32), **launch)

    return run


REFUSALS = {
    "cluster of 0": (
        lambda: ranks((0, 1, 1)),
        TraceError, "kernel `k`: cluster is (0, 1, 1): every extent must be at least 1", None,
    ),
    "cluster of 32": (
        lambda: ranks((4, 4, 2)),
        TraceError, "kernel `k`: a cluster of (4, 4, 2) has 32 blocks; the limit is 16",
        "every GPU with clusters supports up to 8 blocks",
    ),
    "cluster of words": (
        lambda: ranks("two"),
        TraceError, "kernel `k`: cluster is 'two'; it must be an int, or a tuple of one to three ints", None,
    ),
    "older target": (
        lambda: ranks(2).ptx("sm_80"),
        VerifyError, "`.reqnctapercluster` needs sm_90 or later; the target is sm_80",
        'compile the kernel for sm_90 or later: arch="sm_90"',
    ),
    "another cluster": (
        of_promise(".reqnctapercluster 2", cluster=3),
        LaunchError, "k is compiled for clusters of (2, 1, 1) blocks, but the launch asks for (3, 1, 1)",
        "launch it without `cluster`, or compile it for another one: `@pd.kernel(cluster=…)`",
    ),
    "grid": (
        of_promise(".reqnctapercluster 4"),
        LaunchError, "a grid of (6, 1, 1) blocks is not a multiple of clusters of (4, 1, 1)",
        "round the grid up to whole clusters, and let the blocks past the end of the problem return",
    ),
    "explicit": (
        of_promise(".explicitcluster"),
        LaunchError, "k runs only in clusters (.explicitcluster), but the launch has no `cluster`",
        "launch it as k[grid, block](…, cluster=2)",
    ),
    "too large": (
        of_promise(".maxclusterrank 2", cluster=3),
        LaunchError, "k is compiled for clusters of at most 2 blocks, but the launch asks for (3, 1, 1)",
        "launch smaller clusters, or raise its .maxclusterrank",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_what_no_launch_can_do_is_refused(case):
    run, *expected = REFUSALS[case]
    assert refused(run) == tuple(expected)


def test_promises_that_a_launch_keeps():
    for directives, launch in ((".explicitcluster", {"cluster": 2}), (".maxclusterrank 3", {"cluster": 3})):
        of_promise(directives, **launch)()


def masked(mask):
    @pd.kernel(cluster=2)
    def k(x: ptr[u32]):
        tile = pd.shared(u32, 64, align=128)
        barrier = pd.shared(pd.b64, 1)
        pd.ptx("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
               tile.pointer, x, 256, barrier.pointer, mask)  # fmt: skip

    return k


def test_a_mask_of_blocks_that_are_not_there():
    assert "multicast::cluster" in masked(3).ptx("sm_90")
    kind, message, help = refused(lambda: masked(0b101).ptx("sm_90"))
    assert kind is VerifyError
    assert message.endswith("`cta_mask` is 0x5; the clusters of the kernel have 2 blocks")
    assert help == "use ranks 0 to 1"


def test_a_rank_that_is_not_there():
    @pd.kernel(cluster=4)
    def k(x: ptr[u32]):
        own = pd.shared(u32, 4)
        x[0] = pd.ptx.mapa.shared__cluster.u32(own.pointer, 4)

    assert refused(lambda: k.ptx("sm_90")) == (
        VerifyError,
        "mapa.shared::cluster.u32: `rank` is 4; the clusters of the kernel have ranks 0 to 3",
        None,
    )


# The example


def example(tmp_path, monkeypatch, missing=None):
    """The module of examples/13_cluster.py, without one of the barriers of the cluster."""
    folder = Path(__file__).parent.parent / "examples"
    text = (folder / "13_cluster.py").read_text()
    first, *rest = text.split("    meet()\n")
    assert len(rest) == 3
    kept = ["    meet()\n" if n != missing else "    pass\n" for n in range(len(rest))]
    path = tmp_path / f"cluster{missing}.py"
    path.write_text(first + "".join(a + b for a, b in zip(kept, rest, strict=True)))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setitem(sys.modules, "arrays", ModuleType("arrays"))
    sys.modules["arrays"].__dict__.update(check=None, to_device=None, to_host=None)
    linecache.clearcache()
    module = ModuleType("example")
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module


@pytest.mark.cases(4)
@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random:1"])
@pytest.mark.parametrize("missing", [None, 0, 1, 2])
def test_each_barrier_of_the_example_is_needed_under_every_schedule(tmp_path, monkeypatch, rng, missing, schedule):
    module = example(tmp_path, monkeypatch, missing)
    x, bins, y = rng.integers(0, 1000, 700).astype(np.uint32), np.zeros(1000, np.uint32), np.zeros(700, np.uint32)
    counted = pd.emulate(module.histogram, 6, 96, x, bins, len(x), schedule=schedule)
    looked_up = pd.emulate(module.frequency, 6, 96, x, bins, y, len(x), schedule=schedule)
    assert bool(counted.findings) == (missing in (0, 1))
    assert bool(looked_up.findings) == (missing == 2)
    for report in (counted, looked_up):
        assert not report.findings or "cluster" in {finding.kind for finding in report.findings}, str(report)
    if missing is None:
        assert (y == np.bincount(x, minlength=1000)[x]).all()
