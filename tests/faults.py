"""Seeded faults: one-line mistakes in the library, each of which a tier of the test suite should catch.

`python -m tests.faults` plants each fault in a copy of the tree, runs the quick tier on it until a test fails, and prints which
test that was. Faults that no test of the quick tier catches are listed at the end; `--exhaustive` runs the exhaustive tier on
those. The tests of the fault's own folder run first. `--jobs N` plants N faults at a time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# (file below ptxdsl/, text that occurs once in it, what replaces it)
FAULTS = [
    # isa: constants, operands, the meaning of an instruction
    ("isa/integer.py", "clamp(widen(a) - b, s32) if i.sat else a - b", "clamp(widen(a) - b, s32) if i.sat else b - a"),
    ("isa/integer.py", "np.maximum(a, b) - np.minimum(a, b) + c", "np.maximum(a, b) - np.minimum(a, b)"),
    ("isa/integer.py", "(product >> 16).astype(a.dtype)", "(product >> 15).astype(a.dtype)"),
    ("isa/compare.py", '"leu": lambda a, b: ~(a > b),', '"leu": lambda a, b: ~(a >= b),'),
    ("isa/floating.py", "np.abs(result) >= 2.0**16", "np.abs(result) > 2.0**16"),
    ("isa/numerics.py", "np.where(zeros, a + b, np.where((a > b)", "np.where(zeros, a - b, np.where((a > b)"),
    ("isa/floating.py", 'Form("mad.rnd{.ftz}{.sat}.type d=type, a:type, b:type, c:type", rnd=MODES, type="f32", ptx="2.0", sm=20)', 'Form("mad.rnd{.ftz}{.sat}.type d=type, a:type, b:type, c:type", rnd=MODES, type="f32", ptx="2.0", sm=90)'),
    ("isa/half.py", 'Form("neg{.ftz}.type d=type, a:type", type=F16, ptx="6.0", sm=53)', 'Form("neg{.ftz}.type d=type, a:type", type=F16, ptx="8.0", sm=90)'),
    ("isa/sparse.py", "row % 8 * 4 + row // 8 + 2 * part", "row % 8 * 4 + row // 16 + 2 * part"),
    ("isa/operand.py", "if width < 64 and value >= 1 << 63:", "if width < 64 or value >= 1 << 63:"),
    ("isa/tensor_map.py", "*_padded(self.strides, 4), *_padded(self.box, 5)", "*_padded(self.box, 4), *_padded(self.strides, 5)"),
    ("isa/warpgroup.py", ".transpose(3, 1, 4, 0, 5, 2)", ".transpose(3, 1, 4, 0, 2, 5)"),
    # trace: what Python becomes
    ("trace/ring.py", 'emit("fence.proxy.async.shared::cta")', "pass"),
    ("trace/ring.py", 'emit("fence.mbarrier_init.release.cluster")', "pass"),
    ("trace/roles.py", "thread_of(self.builder) - self.first * self.size", "thread_of(self.builder) + self.first * self.size"),
    ("trace/literal.py", "rounded = (wide + 0x7FFF + ((wide >> 16) & 1)) >> 16", "rounded = (wide + 0x7FFF) >> 16"),
    ("trace/control.py", "builtins.range(*parts) if len(parts) == 3", "builtins.range(*parts) if len(parts) == 4"),
    ("trace/arrays.py", "start + known.cosize * element.bytes", "start - known.cosize * element.bytes"),
    ("trace/tensor_map.py", "if swizzle and inner > swizzle and inner % swizzle:", "if swizzle and inner % swizzle:"),
    ("trace/value.py", "variable.set(init)", "pass"),
    # parse
    ("parse/constants.py", "return Immediate(0x7F800000 | (0x80000000 if wide < 0 else 0), f32)", "return Immediate(0x7F800000 | (0x80000000 if wide > 0 else 0), f32)"),
    ("parse/constants.py", 'f32 if prefix == "0f" else f64', 'f32 if prefix != "0f" else f64'),
    ("parse/operands.py", 'type == ".u64")', 'type != ".u64")'),
    ("parse/operands.py", "constants.STANDING[pending[-1]] >= constants.STANDING[sign]", "constants.STANDING[pending[-1]] > constants.STANDING[sign]"),
    ("parse/module.py", "if variable.vector > 1 else", "if variable.vector > 2 else"),
    ("parse/section.py", "if bits <= 16 and not -(1 << bits - 1) <= value < 1 << bits:", "if bits <= 16 and not -(1 << bits - 1) <= value <= 1 << bits:"),
    # layout
    ("layout/algebra.py", "if d < covered or (d % covered and not ragged):", "if d < covered or (d % covered or not ragged):"),
    ("layout/algebra.py", "reach[i] += (count - 1) * step", "reach[i] += (count - 2) * step"),
    ("layout/descriptors.py", "inner, outer = row % ATOM_ROWS, row // ATOM_ROWS", "inner, outer = row // ATOM_ROWS, row % ATOM_ROWS"),
    ("layout/descriptors.py", "max(span // CHUNK_BYTES, 1).bit_length() - 1", "max(span // CHUNK_BYTES, 1).bit_length()"),
    ("layout/atoms.py", "((128, 1, 16), (64, 8, 512))", "((128, 1, 16), (64, 16, 512))"),
    ("layout/recast.py", "base = swizzle.base - (factor.bit_length() - 1)", "base = swizzle.base - factor.bit_length()"),
    ("layout/tiling.py", "-(-n // b) * b for n, b", "n // b * b for n, b"),
    ("layout/banks.py", "asked.setdefault(unit % banks, {})", "asked.setdefault(unit // banks, {})"),
    # schedule
    ("schedule/stream_k.py", "(self.first_wave_tiles - 1) * self.free, none)", "(self.first_wave_tiles + 1) * self.free, none)"),
    ("schedule/stream_k.py", "return region * self.blocks_per_region + position", "return region * self.blocks_per_region - position"),
    ("schedule/raster.py", "return squares << 2 * self.order, 1, tiled.k", "return squares << self.order, 1, tiled.k"),
    ("schedule/raster.py", "return first + within % height, within // height", "return first + within // height, within % height"),
    ("schedule/arithmetic.py", "return ((value - 1) >> bits) + 1", "return (value >> bits) + 1"),
    ("schedule/swizzle.py", "strip = 1 if m < self.n or n < self.n else self.n", "strip = 1 if m < self.n or n <= self.n else self.n"),
    # emulate: memory, order, deadlock
    ("emulate/observe/races/clocks.py", "if stamp > more.get(t, -1)}", "if stamp < more.get(t, -1)}"),
    ("emulate/observe/races/clocks.py", "self.cluster = self.block // r.cluster_blocks", "self.cluster = self.block % r.cluster_blocks"),
    ("emulate/observe/races/detector.py", "np.maximum.at(self.barriers, (event.slot, event.barrier), seen)", "pass"),
    ("emulate/run/flow.py", "self.order(BarrierArrival(None, None, None))", "pass"),
    ("emulate/run/flow.py", "present = (come.barrier == number)[:, np.newaxis] & self.active", "present = (come.barrier != number)[:, np.newaxis] & self.active"),
    ("emulate/memory/regions.py", "        self.in_flight += 1\n        if self.tracked:", "        self.in_flight += 1\n        if False:"),
    ("emulate/run/meetings.py", "short = (count > 0) & (count < WARP)", "short = (count > 0) & (count < WARP - 1)"),
    # runtime
    ("runtime/values.py", "0x7FFF if math.isnan", "0x7FFE if math.isnan"),
    ("runtime/arguments.py", "one.pointer == other.pointer and one.span == other.span", "one.pointer == other.pointer"),
    ("runtime/arguments.py", "if is_written and array.readonly:", "if is_written or array.readonly:"),
    ("runtime/emulation.py", 'promised.get("maxntid", [shape.threads]))\n    if shape.threads > most:', 'promised.get("maxntid", [shape.threads]))\n    if shape.threads > most + 1:'),
    ("runtime/limits.py", "BLOCK_REGISTERS = 65536", "BLOCK_REGISTERS = 131072"),
    ("runtime/loaded.py", "attributes.append(cluster)", "pass"),
    # kernels: fences, waits, edges
    ("kernels/gemm.py", "        ring.commit()\n        ring.release()\n", "        ring.commit()\n"),
    ("kernels/sm80/ring.py", "wait_group(self.stages - 2)", "wait_group(self.stages - 1)"),
    ("kernels/sm90/order.py", "pd.ptx.bar.sync(self.number, 2 * WARPGROUP)", "pass"),
    ("kernels/sm90/gathered.py", "pd.ptx.fence.proxy.async_.shared__cta()", "pass"),
    ("kernels/tiles/visitor.py", "pd.ptx.bar.sync(0)  # all have read the entries before these", "pass"),
    ("kernels/sm90/scales.py", "of_rows[n % 4 // 2]", "of_rows[n % 2]"),
    ("kernels/epilogue.py", "return relu(x + y)", "return relu(x)"),
    ("kernels/call/groups/table.py", "(slots.cumsum() - slots).repeat(count)", "slots.cumsum().repeat(count)"),
    ("kernels/reorder/transposed.py", "row = pd.tid.x // WORDS + above", "row = pd.tid.x // WORDS"),
]  # fmt: skip


class OwnFolderFirst:
    """A pytest plugin that runs the tests of some folder first and those of kernels last, and prints what fails."""

    def __init__(self, folder):
        self.folder = folder

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items.sort(key=self._rank)

    def _rank(self, item):
        parts = item.path.relative_to(ROOT / "tests").parts
        near = self.folder in parts or self.folder in item.path.stem
        return not near, len(parts) > 1, parts[0] == "kernels"

    def pytest_runtest_logreport(self, report):
        if report.failed:
            print(f"CAUGHT {report.nodeid}", flush=True)

    def pytest_collectreport(self, report):
        if report.failed:
            print(f"CAUGHT collecting {report.nodeid}", flush=True)


def plant(fault, folder):
    """Copy the tree to a folder, with one fault in it."""
    name, old, new = fault
    for source in ROOT.iterdir():
        if source.is_dir() and not source.name.startswith("."):
            shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.is_file():
            shutil.copy(source, folder)
    path = folder / "ptxdsl" / name
    text = path.read_text()
    if text.count(old) != 1:
        raise SystemExit(f"{name}: `{old}` occurs {text.count(old)} times; a fault's text must occur once")
    path.write_text(text.replace(old, new))


def caught_by(number, exhaustive, limit):
    """Return the test that catches a fault and the seconds until then; None for the test if none does within the limit."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        plant(FAULTS[number], Path(folder))
        tier = ["--exhaustive"] if exhaustive else []
        command = [sys.executable, "-m", "tests.faults", "--run", FAULTS[number][0].split("/")[0], *tier]
        environment = os.environ | {"PYTHONPATH": folder, "PTXDSL_CACHE_DIR": f"{folder}/cache"}
        try:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return None, limit
    caught = [line.partition("CAUGHT ")[2] for line in done.stdout.splitlines() if "CAUGHT " in line]
    if not caught and done.returncode not in (0, 5):
        caught = [f"pytest ended with code {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"]
    return (caught or [None])[0], time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description="Plant each seeded fault and report which test catches it.")
    parser.add_argument("faults", nargs="*", type=int, help="numbers of faults (default: all)")
    parser.add_argument("--exhaustive", action="store_true", help="use the exhaustive tier")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="plant N faults at a time (default: 1)")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="count a fault as missed after S seconds (default: never)"
    )
    parser.add_argument("--run", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        tier = ["--exhaustive"] if options.exhaustive else []
        flags = ["-x", "-q", "-m", "not gpu", *tier]
        sys.exit(pytest.main(flags, [OwnFolderFirst(options.run)]))
    numbers = options.faults or range(len(FAULTS))
    missed = []
    with ThreadPoolExecutor(options.jobs) as pool:
        trials = {pool.submit(caught_by, number, options.exhaustive, options.seconds): number for number in numbers}
        for trial in as_completed(trials):
            (test, seconds), number = trial.result(), trials[trial]
            name, old, new = FAULTS[number]
            print(f"{number:3} {seconds:5.0f} s  {name}: {old!r} -> {new!r}\n        {test or 'MISSED'}", flush=True)
            missed += [] if test else [number]
    print(f"{len(numbers) - len(missed)} of {len(numbers)} caught; missed: {sorted(missed) or 'none'}")


if __name__ == "__main__":
    main()
