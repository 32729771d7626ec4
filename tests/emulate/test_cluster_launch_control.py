"""clusterlaunchcontrol: blocks that take over clusters which have not started, and what is wrong about it."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, config, ptr, u32

WARP, BLOCKS = 32, 10
CANCEL = "clusterlaunchcontrol.try_cancel.async{}.mbarrier::complete_tx::bytes{}.b128"
FIRST = "clusterlaunchcontrol.query_cancel.get_first_ctaid{}.b32.b128"


OUT = np.zeros(2 + WARP, np.uint32)


class Requests:
    """The 16 bytes of a response and the mbarrier that they complete, for requests one after another."""

    def __init__(self, space=".shared::cta", multicast=False, bytes=16):
        self.space, self.bytes, self.multicast = space, bytes, multicast
        self.response, self.full = pd.shared(b64, 2, align=16), pd.shared(b64, 1)
        with pd.if_(pd.tid.x == 0):
            pd.ptx.mbarrier.init.shared__cta.b64(self.full.address(), 1)
            pd.ptx.fence.mbarrier_init.release.cluster()
        self.meet()
        self.phase = pd.var(u32, 0)

    def meet(self):
        if self.multicast:
            pd.ptx.barrier.cluster.arrive.aligned()
            pd.ptx.barrier.cluster.wait.aligned()
        else:
            pd.ptx.bar.sync(0)

    def request(self):
        with pd.if_(pd.tid.x == 0):
            pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(self.full.address(), self.bytes, out="_")
            to = [
                x.address() if self.space else pd.ptx.cvta.shared.u64(pd.ptx.cvt.u64.u32(x.address()))
                for x in (self.response, self.full)
            ]
            asks = pd.special("%cluster_ctarank") == 0 if self.multicast else pd.tid.x == 0
            with pd.if_(asks):
                pd.ptx(CANCEL.format(self.space, ".multicast::cluster::all" * self.multicast), *to)

    def wait(self):
        with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(self.full.address(), self.phase)):
            pass
        self.phase.set(self.phase ^ 1)
        return pd.ptx.ld.shared.b128(self.response.address())

    def done_reading(self):
        pd.ptx.fence.proxy.async_.shared__cta()
        self.meet()


def canceled(response):
    return pd.ptx.clusterlaunchcontrol.query_cancel.is_canceled.pred.b128(response)


@pd.kernel(arch="sm_100a", reqntid=WARP)
def walk(done: ptr[u32], *, space=".shared::cta", multicast=False, vector=False):
    requests = Requests(space, multicast)
    first, going = pd.var(u32, pd.ctaid.x - (pd.special("%cluster_ctarank") if multicast else 0)), pd.var(u32, 1)
    with pd.while_(lambda: going == 1):
        requests.request()
        block = first + pd.special("%cluster_ctarank") if multicast else first
        pd.ptx.red.global_.add.u32(done + block * WARP + pd.tid.x, pd.ctaid.x + 1)
        response = requests.wait()
        going.set(0)
        with pd.if_(canceled(response)):
            going.set(1)
            text = FIRST.format(".v4" if vector else "::x")
            x = pd.ptx(text, response)
            first.set((x[0] if vector else x).bitcast(u32))
        requests.done_reading()


@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random"])
@pytest.mark.parametrize("options", [{}, {"space": ""}, {"vector": True}])
def test_every_block_of_the_grid_is_computed_once(schedule, options):
    done = np.zeros(BLOCKS * WARP, np.uint32)
    with config.using(schedule=schedule):
        report = pd.emulate(walk, BLOCKS, WARP, done, **options)
    by = done.reshape(BLOCKS, WARP)
    assert report.findings == [] and (by == by[:, :1]).all()
    started, canceled = by[: BLOCKS // 2, 0], by[BLOCKS // 2 :, 0]
    assert started.tolist() == [1, 2, 3, 4, 5] and set(canceled) <= set(started)


@pytest.mark.parametrize("schedule", ["lockstep", "skewed", "random"])
def test_a_response_can_go_to_all_blocks_of_the_cluster(schedule):
    done = np.zeros(BLOCKS * WARP, np.uint32)
    with config.using(schedule=schedule):
        report = pd.emulate(walk, BLOCKS, WARP, done, cluster=2, multicast=True)
    by = done.reshape(BLOCKS, WARP)[:, 0]
    assert report.findings == [] and by[:4].tolist() == [1, 2, 3, 4]
    assert (by[1::2] == by[::2] + 1).all() and (by > 0).all()


@pd.kernel(arch="sm_100a", reqntid=WARP)
def stubborn(out: ptr[u32], *, decode: bool, again: bool):
    requests = Requests()
    requests.request()
    response = requests.wait()
    requests.done_reading()
    if again:
        requests.request()
        response = requests.wait()
        requests.done_reading()
    value = (
        pd.ptx(FIRST.format("::x"), response).bitcast(u32) if decode else pd.select(canceled(response), out[0], out[1])
    )
    out[2 + pd.tid.x] = value


def only_finding(kernel, *arguments, **constants):
    (finding,) = pd.emulate(kernel, 1, WARP, *arguments, **constants).findings
    return f"{finding.kind}: {finding.message}\n{finding.help}"


def test_a_request_after_a_failed_one():
    assert only_finding(stubborn, OUT, decode=False, again=True) == (
        "cluster: clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 is executed after "
        "an earlier request of its cluster has failed\nleave the loop when `is_canceled` is false"
    )


def test_the_block_of_a_failed_request():
    assert only_finding(stubborn, OUT, decode=True, again=False) == (
        "cluster: clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 decodes a response that says that no "
        "cluster was cancelled\nexecute it where `is_canceled` is true"
    )


@pd.kernel(arch="sm_100a", reqntid=WARP)
def impatient(out: ptr[u32], *, missing: str):
    requests = Requests()
    with pd.if_(pd.tid.x < 2):
        requests.response[pd.tid.x] = 0
    if missing != "fence":
        pd.ptx.fence.proxy.async_.shared__cta()
    requests.meet()
    requests.request()
    response = pd.ptx.ld.shared.b128(requests.response.address()) if missing == "wait" else requests.wait()
    out[2 + pd.tid.x] = pd.select(canceled(response), out[0], out[1])


@pytest.mark.parametrize("missing, kind", [("wait", "unwaited-async"), ("fence", "race"), ("", "")])
def test_what_orders_a_response(missing, kind):
    findings = pd.emulate(impatient, 1, WARP, OUT, missing=missing).findings
    assert (findings[0].kind if findings else "") == kind


@pd.kernel(arch="sm_100a", reqntid=WARP)
def made_up(out: ptr[u32]):
    zero = pd.ptx.mov.b64(0)
    out[2 + pd.tid.x] = pd.select(canceled(pd.ptx.mov.b128((zero, zero))), out[0], out[1])


def test_bytes_that_are_no_response():
    assert only_finding(made_up, OUT) == (
        "cluster: `answer` is not a response of clusterlaunchcontrol.try_cancel\n"
        "load the 16 bytes at its `dst`, after the wait for its mbarrier"
    )


def test_bytes_that_the_mbarrier_does_not_expect():
    class Wrong(Requests):
        def __init__(self):
            super().__init__(bytes=8)

    @pd.kernel(arch="sm_100a", reqntid=WARP)
    def short(out: ptr[u32]):
        requests = Wrong()
        requests.request()
        out[2 + pd.tid.x] = pd.select(canceled(requests.wait()), out[0], out[1])

    finding = pd.emulate(short, 1, WARP, OUT).findings[0]
    assert (finding.kind, finding.message) == (
        "mbarrier",
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 completes 16 bytes at "
        "self.full[0], whose phase expects 8",
    )


@pd.kernel(arch="sm_100a", reqntid=WARP)
def crowd(count: ptr[u32], n: u32):
    requests, room = Requests(), pd.shared(b64, 6000)  # four such blocks fit a multiprocessor
    room[pd.tid.x] = 0
    requests.request()
    requests.wait()
    with pd.if_(pd.tid.x == 0):
        pd.ptx.red.relaxed.gpu.global_.add.u32(count, 1)
        with pd.while_(lambda: pd.ptx.ld.relaxed.gpu.global_.u32(count) < n):
            pass


@pytest.mark.parametrize("more, kinds", [(0, []), (1, ["deadlock"])])
def test_no_more_blocks_wait_together_than_a_gpu_holds(more, kinds):
    held = 4 * 132
    report = pd.emulate(crowd, 2 * held + 200, WARP, np.zeros(1, np.uint32), held + more)
    assert [finding.kind for finding in report.findings] == kinds
