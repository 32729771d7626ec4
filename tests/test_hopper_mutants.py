"""The examples of Hopper and Blackwell with one line left out or moved: the emulator finds each, and nothing in the originals."""

import sys
from pathlib import Path

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernel import Kernel

EXAMPLES = Path(__file__).parent.parent / "examples"
FENCE = "    pd.ptx.fence.proxy.async_.shared__cta()"
MEET = "    consumer.warpgroup_barrier()\n"
LINES = {
    "09_tma_copy": {
        "no fence before TMA reads": (f"{FENCE}  # each thread makes its writes visible to TMA\n", "", "race"),
        "no barrier before TMA reads": ("    pd.ptx.bar.sync(0)\n    with pd.if_(pd.tid.x == 0):\n        y.store", "    with pd.if_(pd.tid.x == 0):\n        y.store", "race"),
        "nobody waits for the box": ("lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), 0)", "lambda: pd.tid.x < 0", "unwaited-async"),
        "too many bytes are expected": ("x.bytes, out", "x.bytes + 16, out", "deadlock"),
    },
    "10_mbarrier_ring": {
        "a stage is released before it is read": ("            slot = ring.wait()\n", "            slot = ring.wait()\n            ring.release()\n", "race"),
        "no stage is released": ("            ring.release()\n", "            with pd.if_(pd.tid.x > 999):\n                ring.release()\n", "deadlock"),
        "nobody waits for a full stage": ("slot = ring.wait()", "slot = ring._slot(ring._read.index)", "unwaited-async"),
    },
    "11_one_wgmma": {
        "no fence before the tensor cores read": (
            "    pd.ptx.fence.proxy.async_.shared__cta()  # make the threads' writes visible to the async proxy, which wgmma uses\n",
            "", "race",
        ),
        "no barrier before the tensor cores read": ("    pd.ptx.bar.sync(0)\n", "", "race"),
        "nobody waits for the products": ("    mma.wait(0)  # now the accumulators may be read\n", "", "unwaited-wgmma"),
    },
    "12_warp_specialised_gemm": {
        "nobody waits for the products": ("                mma.wait(0)\n", "", "unwaited-wgmma"),
        "no fence before TMA reads": (f"{FENCE}\n", "", "race"),
        "no barrier before TMA reads": (f"{FENCE}\n{MEET}", f"{FENCE}\n", "race"),
        "the boxes of the tile before are still read": (
            "        pd.ptx.cp.async_.bulk.wait_group.read(0)  # the boxes of the previous tile have been read\n", "        pass\n",
            "unwaited-async",
        ),
        "only one thread knows that they have been read": (f"have been read\n{MEET}", "have been read\n", "race"),
        "nobody waits for the last boxes": ("            pd.ptx.cp.async_.bulk.wait_group(0)\n", "            pass\n", "unwaited-async"),
        "a stage is released while it is multiplied": (
            "                mma(accumulators", "                ring.release()\n                mma(accumulators", "race",
        ),
    },
    "21_one_tcgen05_mma": {
        "no fence before the tensor core reads": (
            "    pd.ptx.fence.proxy.async_.shared__cta()  # make the threads' writes visible to the async proxy, which mma uses\n",
            "", "race",
        ),
        "no barrier before the tensor core reads": ("    pd.ptx.bar.sync(0)\n    sums", "    sums", "race"),
        "no commit": ("        pd.ptx.tcgen05.commit", "        0 and pd.ptx.tcgen05.commit", "deadlock"),
        "nobody waits for the products": ("lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(done.address(0), 0)", "lambda: pd.tid.x < 0", "race"),
        "no fence after the wait": ("    pd.ptx.tcgen05.fence__after_thread_sync()  # the loads come after the wait\n", "", "race"),
        "no wait for the loads": ("    pd.ptx.tcgen05.wait__ld.sync.aligned()\n", "", "race"),
        "no barrier before the columns are freed": ("    pd.ptx.bar.sync(0)  # all warps have loaded\n", "", "race"),
        "the columns are not freed": (
            "    with pd.if_(warp == 0):\n        pd.ptx.tcgen05.dealloc.cta_group__1.sync.aligned.b32(sums, N)\n", "", "tensor-memory",
        ),
        "lanes of another warp": ("warp << 21", "(3 - warp) << 21", "tensor-memory"),
        "too few columns": (".b32(where.address(0), N)", ".b32(where.address(0), 32)", "tensor-memory"),
        "the first product adds": ("step > 0)", "True)", "uninitialized"),
    },
}  # fmt: skip
CASES = [pytest.param(name, case, id=f"{name}: {case}") for name, cases in LINES.items() for case in cases]


def findings(name, old="", new=""):
    """What the emulator finds where the example launches its kernel."""
    text = (EXAMPLES / f"{name}.py").read_text()
    assert old in text
    scope = {"__name__": "example"}
    sys.path.insert(0, str(EXAMPLES))
    try:
        exec(compile(text.replace(old, new, 1), str(EXAMPLES / f"{name}.py"), "exec"), scope)
    finally:
        sys.path.remove(str(EXAMPLES))
    kernel = next(value for value in scope.values() if isinstance(value, Kernel))
    return pd.emulate(kernel, *launch(name, scope)).findings


def launch(name, scope):
    """Grid, block and arguments, small."""
    if name == "21_one_tcgen05_mma":
        a, b = (np.ones((rows, 64), np.float16) for rows in (128, 64))
        return 1, 128, a, b, np.zeros((128, 64), np.float32), 128, 64, 64
    if name == "12_warp_specialised_gemm":
        a, b, c = scope["operands"](128, 264, 256)
        return 1, 384, a, b, c, 1, 2, 4
    if name == "11_one_wgmma":
        half, sums = np.ones((64, 64), np.float16), np.zeros((64, 64), np.float32)
        return 1, 128, half, half.copy(), sums, 64, 64, 64
    if name == "10_mbarrier_ring":
        return 1, 160, np.ones((96, 128), np.float32), np.zeros(128, np.float32), 128, 6
    x = np.ones((32, 64), np.float16)
    return 1, 64, x, np.zeros_like(x)


@pytest.mark.parametrize("name", LINES)
def test_the_example_has_no_findings(name):
    assert findings(name) == []


@pytest.mark.cases(6)
@pytest.mark.parametrize("name, case", CASES)
@pytest.mark.usefixtures("lockstep")
def test_a_line_left_out_is_found(name, case):
    old, new, kind = LINES[name][case]
    kinds = {finding.kind for finding in findings(name, old, new)}
    assert kind in kinds
