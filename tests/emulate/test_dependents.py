"""Dependent launches: what the grid before touched is unordered until a thread waits for that grid."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config, f32, ptr

COUNT = 64


def emulated(kernel, *arrays, dependent=True):
    return pd.emulate(kernel, 1, COUNT, *arrays, dependent=dependent).findings


@pd.kernel(arch="sm_90")
def fill(x: ptr[f32], source: ptr[f32], *, begins: bool = True):
    if begins:
        pd.ptx.griddepcontrol.launch_dependents()
    x[pd.tid.x] = source[pd.tid.x] * 2


@pd.kernel(arch="sm_90")
def copy(y: ptr[f32], x: ptr[f32], *, wait: str = "nobody"):
    if wait == "one" or wait == "one and a barrier":
        with pd.if_(pd.tid.x == 0):
            pd.ptx.griddepcontrol.wait()
    if wait == "one and a barrier":
        pd.ptx.bar.sync(0)
    if wait == "all":
        pd.ptx.griddepcontrol.wait()
    y[pd.tid.x] = x[pd.tid.x]


@pytest.fixture
def arrays():
    return [np.ones(COUNT, np.float32) for _ in range(3)]


@pytest.mark.parametrize("wait, found", [("nobody", True), ("one", True), ("one and a barrier", False), ("all", False)])
def test_who_knows_of_the_wait_may_read_what_the_grid_before_wrote(wait, found, arrays):
    x, y, source = arrays
    fill[1, COUNT](x, source)
    findings = pd.emulate(copy, 1, COUNT, y, x, dependent=True, wait=wait).findings
    assert [finding.kind for finding in findings] == ["race"] * found
    assert found or (y == 2).all()


def test_it_is_told_in_words(arrays):
    x, y, source = arrays
    fill[1, COUNT](x, source)
    (finding,) = emulated(copy, y, x)
    assert finding.message == (
        "ld.global.f32 reads x[0], written by `fill`, the previous kernel, which may still be running: this one is launched as "
        "its dependent"
    )
    line = finding.locations[0].line
    assert finding.help == (
        f"add griddepcontrol.wait before line {line}, in these threads or before a barrier that they wait at"
    )
    with pytest.raises(pd.EmulationError, match=r"^copy: ld\.global\.f32 reads x"):
        fill[1, COUNT](x, source)
        copy[1, COUNT](y, x, dependent=True)


def test_what_the_grid_before_reads_and_writes_is_not_to_be_overwritten(arrays):
    x, y, source = arrays
    for target, did in ((source, "read"), (x, "written")):
        fill[1, COUNT](x, source)
        (finding,) = emulated(copy, target, y)
        assert f"st.global.f32 writes y[0], {did} by `fill`" in finding.message


def test_other_memory_may_be_used(arrays):
    x, y, source = arrays
    wide = np.ones(2 * COUNT, np.float32)
    fill[1, COUNT](wide[:COUNT], source)
    assert not emulated(copy, y, wide[COUNT:])
    fill[1, COUNT](wide[:COUNT], source)
    (finding,) = emulated(copy, y, wide[COUNT - 1 :])
    assert "by thread" not in finding.message
    assert finding.count == 1
    fill[1, COUNT](x, source)
    assert not emulated(copy, y, source)


def test_no_other_launch_runs_beside_one(arrays):
    x, y, source = arrays
    fill[1, COUNT](x, source)
    assert not emulated(copy, y, x, dependent=False)
    assert not emulated(copy, y, x)  # dependent on the copy, which lets nobody begin
    fill[1, COUNT](x, source, begins=False)
    assert not emulated(copy, y, x)


def test_none_runs_beside_another_where_the_setting_says_no(arrays):
    x, y, source = arrays
    with config.using(dependent_launch=False):
        fill[1, COUNT](x, source)
        assert not emulated(copy, y, x)
        fill[1, COUNT](x, source)
        copy[1, COUNT](y, x, dependent=True)
    assert (y == 2).all()
    fill[1, COUNT](x, source)
    assert [finding.kind for finding in emulated(copy, y, x)] == ["race"]


def test_memory_of_an_array_that_is_gone_is_anybodys(arrays):
    _, y, source = arrays
    memory = bytearray(4 * COUNT)
    first = np.frombuffer(memory, np.float32)
    fill[1, COUNT](first, source)
    del first
    assert not emulated(copy, y, np.frombuffer(memory, np.float32))


MAP = pd.TensorMap(f32, (1, 32))


@pd.kernel(arch="sm_90a", reqntid=32)
def box_sum(x: MAP, y: ptr[f32], *, wait: bool):
    tile, full = x.shared(), pd.shared(pd.b64, 1)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), x.bytes, out="_")
        if wait:
            pd.ptx.griddepcontrol.wait()
        x.load(tile, (0, 0), full)
    pd.ptx.bar.sync(0)
    with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), 0)):
        pass
    y[pd.tid.x] = tile[0, pd.tid.x]


@pytest.mark.parametrize("wait", [True, False])
def test_boxes_are_brought_behind_the_wait(wait, arrays):
    x, y, source = arrays
    fill[1, COUNT](x, source)
    report = pd.emulate(box_sum, 1, 32, x.reshape(2, 32), y, dependent=True, wait=wait)
    assert [finding.kind for finding in report.findings] == ["race"] * (not wait)
    assert not wait or (y[:32] == 2).all()


def test_a_target_that_has_none_refuses_a_dependent_launch(arrays):
    @pd.kernel(arch="sm_80")
    def older(y: ptr[f32]):
        y[pd.tid.x] = 1.0

    with pytest.raises(pd.LaunchError) as refused:
        older[1, COUNT](arrays[0], dependent=True)
    assert refused.value.message == "sm_80 does not support dependent launches"
    assert refused.value.help == (
        "launch without `dependent`, which needs sm_90 or later; PTXDSL_ARCH selects the GPU to emulate"
    )
