"""`ptxdsl profile`: what is counted by line, the floor on a GPU, the forms it is told in, and what is refused."""

import json
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import cli, driver, f32, ptr, u32
from ptxdsl.profile import peaks_of
from ptxdsl.profile.operations import operations_of
from ptxdsl.profile.roofline import floor_of, issue_time
from ptxdsl.runtime import timing
from ptxdsl.runtime.shape import launch_shape
from ptxdsl.runtime.timing import REST_SECONDS, GpuClock, at_rest
from tests.fake_driver import TimedCuda, installed

KERNELS = """\
import numpy as np
import ptxdsl as pd
from ptxdsl import f32, ptr, u32

@pd.kernel
def scaled(x: ptr[f32], y: ptr[f32], stride: u32):
    tile = pd.shared(f32, (32, 32))
    tile[pd.tid.x, 0] = x[pd.tid.x * stride] * 2
    pd.ptx.bar.sync(0)
    y[pd.tid.x] = tile[31 - pd.tid.x, 0]

def example_scaled(rng):
    yield 1, 32, np.ones(32, np.float32), np.zeros(32, np.float32), 1
    yield 1, 32, np.ones(512, np.float32), np.zeros(32, np.float32), 16

@pd.kernel
def beyond(x: ptr[f32]):
    x[pd.tid.x] = 1.0

def example_beyond(rng):
    return 1, 32, np.ones(31, np.float32)
"""
TABLE = """\
scaled[1, 32](float32[32], float32[32], 1) on NVIDIA H200: 132 multiprocessors at 1980 MHz, 4917 GB/s

line        instructions  global bytes  sectors  shared bytes  wavefronts  operations  source
mine.py:5            256                                                               @pd.kernel
mine.py:8            224           128        4           128      32 (1)          32  tile[pd.tid.x, 0] = x[pd.tid.x * stride] * 2
mine.py:9             32                                                               pd.ptx.bar.sync(0)
mine.py:10           192           128        4           128      32 (1)              y[pd.tid.x] = tile[31 - pd.tid.x, 0]
all                  704           256        8           256      64 (2)          32

"""
FLOOR = """\
intensity   32 operations on 256 bytes of memory: 0.125 a byte
floor       0.0323 us, by shared memory
            0.0323 us  shared memory: 64 wavefronts
            6.31e-05 us  f32: 32 operations
            5.21e-05 us  memory: 256 bytes
            0.00278 us  to issue the instructions, if SASS has as many as PTX
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(KERNELS)
    sys.modules.pop("mine", None)


class TestCounting:
    @pytest.mark.parametrize(
        ("name", "unit", "count"),
        [
            ("fma.rn.f32", "f32", 2),
            ("add.rn.f16x2", "f16", 2),
            ("fma.rn.bf16x2", "f16", 4),
            ("mul.f64", "f64", 1),
            ("ex2.approx.f32", "special functions", 1),
            ("tanh.approx.bf16x2", "special functions", 2),
            ("rcp.rn.f64", "f64", 1),
            ("add.u32", "", 0),
            ("ld.global.f32", "", 0),
            ("mov.f32", "", 0),
            ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "tensor f16", 2 * 16 * 8 * 16 / 32),
            ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "tensor tf32", 2 * 16 * 8 * 8 / 32),
            ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32", "tensor s8", 2 * 16 * 8 * 32 / 32),
            ("mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", "tensor f16", 16 * 8 * 32 / 32),
            ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "tensor f64", 2 * 8 * 8 * 4 / 32),
            ("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", "tensor f16", 2 * 64 * 256 * 16 / 128),
            ("wgmma.mma_async.sync.aligned.m64n8k32.f16.e5m2.e4m3", "tensor e4m3", 2 * 64 * 8 * 32 / 128),
            ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "tensor f16", 2 * 16 * 16 * 16 / 32),
            ("wmma.load.a.sync.aligned.row.m16n16k16.f16", "", 0),
            ("wgmma.commit_group.sync.aligned", "", 0),
        ],
    )
    def test_operations_of_an_instruction(self, name, unit, count):
        assert operations_of(name) == (unit, count)

    @pytest.mark.parametrize("gpu", ["a100", "h100", "h200", "rtx4090"])
    def test_sixteen_special_functions_go_in_a_clock(self, gpu):
        peaks = peaks_of(gpu)
        (term,) = floor_of(peaks, 10**6, 0, 0, {"special functions": 16e6 * peaks.multiprocessors})
        assert (term.resource, term.microseconds) == ("special functions", pytest.approx(1e6 / peaks.clock_mhz))

    def test_bytes_that_are_touched_count_once(self):
        @pd.kernel
        def often(x: ptr[f32], n: u32):
            total = pd.var(f32, 0.0)
            for i in pd.range(n):
                total += x[i]
            x[pd.tid.x + n] = total

        report = pd.emulate(often, 1, 32, np.ones(64, np.float32), 8, traffic=True)
        assert report.touched_bytes == {"reads": 32, "writes": 4 * 32}

    def test_asynchronous_copies_and_atomics_touch_memory(self):
        @pd.kernel
        def copied(x: ptr[f32], total: ptr[u32]):
            tile = pd.shared(f32, 128)
            pd.ptx.cp.async_.cg.shared.global_(tile.address(pd.tid.x * 4), x + pd.tid.x * 4, 16)
            pd.ptx.cp.async_.wait_all()
            pd.ptx.red.global_.add.u32(total, 1)

        report = pd.emulate(copied, 1, 32, np.ones(128, np.float32), np.zeros(1, np.uint32), traffic=True)
        assert report.touched_bytes == {"reads": 512 + 32, "writes": 32}


class TestFloor:
    def test_each_part_takes_its_time(self):
        h200 = peaks_of("h200")
        terms = floor_of(h200, 132, 4_916_736_000, 132 * 1980, {"f32": 132 * 1980 * 256 * 7, "tensor f16": 0.0})
        assert [(term.resource, term.microseconds) for term in terms] == [
            ("memory", 1000),
            ("f32", 7),
            ("shared memory", 1),
        ]
        assert issue_time(h200, 132, 132 * 1980 * 4 * 32) == 1

    def test_few_blocks_have_few_multiprocessors(self):
        h200 = peaks_of("h200")
        few, many = (floor_of(h200, blocks, 0, 1000, {})[0].microseconds for blocks in (1, 1000))
        assert few == pytest.approx(132 * many)

    def test_tensor_cores_of_an_h200_reach_what_its_data_sheet_says(self):
        h200 = peaks_of("h200")
        teraflops = h200.operations["tensor f16"] * h200.clock_mhz * h200.multiprocessors * 1e-6
        assert 989 < teraflops < 1100  # at 1830 and at 1980 MHz

    def test_gpus_by_name(self):
        assert str(peaks_of("a100")) == "NVIDIA A100-SXM4-80GB: 108 multiprocessors at 1410 MHz, 2039 GB/s"
        assert peaks_of("rtx4090").arch == "sm_89"
        with pytest.raises(pd.Error) as refused:
            peaks_of("voodoo")
        assert str(refused.value) == ("`voodoo` is not a known GPU\n  help: choose one of h200, h100, a100, rtx4090")


class Clock:
    """A GPU that takes longer in each round, and longest in the first."""

    def __init__(self, times):
        self.times, self.log = iter(times), []

    def rest(self, seconds):
        self.log.append(seconds)

    def microseconds(self, run):
        self.log.append(run())
        return next(self.times)


def test_launches_are_timed_in_turn_after_a_rest():
    clock = Clock([90, 80, 1, 11, 5, 12, 2, 10])
    assert at_rest(clock, [lambda: "a", lambda: "b"], rounds=3) == [2, 11]
    assert clock.log == [REST_SECONDS, *"ab" * 4]


def profiled(*arguments):
    return cli.main(["profile", *arguments])


class TestCommand:
    def test_text(self, capsys):
        assert profiled("mine.py:scaled", "--gpu", "h200") == 0
        shown = capsys.readouterr().out
        assert shown.startswith(TABLE)
        occupancy, _, rest = shown.removeprefix(TABLE).partition("\n")
        assert occupancy.startswith("occupancy   32 threads, ")
        assert "4096 bytes of shared memory a block: 32 blocks of a multiprocessor, 32 of 64 warps" in occupancy
        assert rest.startswith(FLOOR)

    def test_what_is_not_measured_says_why(self, capsys):
        if driver.why_no_gpu() is None:
            pytest.skip("there is a GPU")
        profiled("mine.py:scaled")
        assert capsys.readouterr().out.endswith(f"measured    not: {driver.why_no_gpu()}\n")

    def test_where_a_gpu_is_its_time_stands_beside_the_floor(self, capsys, monkeypatch):
        monkeypatch.setattr(timing, "FLUSHED_BYTES", 64)
        monkeypatch.setattr(timing, "REST_SECONDS", 0.0)
        with installed(TimedCuda(widths=(8, 8, 4), times={32: 2.5})) as cuda:
            assert profiled("mine.py:scaled") == 0
            assert capsys.readouterr().out.endswith("measured    2.5 us: the floor is 1% of it\n")
            assert {launch["block"] for launch in cuda.launches} == {(32, 1, 1)}
            profiled("mine.py:scaled", "--gpu", "a100")
            assert capsys.readouterr().out.endswith("measured    not: the GPU here is Fake 0\n")
            assert (cuda.events, cuda.memory, cuda.contexts) == (0, {}, [])

    def test_json(self, capsys):
        assert profiled("mine.py:scaled", "--example", "2", "--gpu", "h200", "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        line = next(line for line in facts["lines"] if line["line"] == 8)
        assert (line["sectors"], line["least_sectors"], line["operations"]) == (32, 4, {"f32": 32.0})
        assert facts["touched_bytes"] == 32 * 32 + 128
        assert facts["floor"] == facts["terms"][0]["microseconds"] == pytest.approx(64 / 1980)
        assert facts["occupancy"]["limit"] == "warps or blocks"

    def test_a_page_shows_the_source_with_its_costs(self, capsys):
        assert profiled("mine.py:scaled", "--html", "page.html", "--gpu", "a100") == 0
        page = Path("page.html").read_text()
        rows = Rows(page)
        assert ["8", "224", "128", "4", "128", "32 (1)", "32"] in [row[:7] for row in rows.cells]
        assert any(row[0] == "7" and row[-1].strip() == "tile = pd.shared(f32, (32, 32))" for row in rows.cells)
        assert "NVIDIA A100-SXM4-80GB" in page
        assert "http" not in page  # nothing is loaded from elsewhere

    def test_a_page_escapes_what_it_shows(self):
        Path("odd.py").write_text(KERNELS.replace("tile[pd.tid.x, 0] =", "'<b>&'; tile[pd.tid.x, 0] ="))
        assert profiled("odd.py:scaled", "--html", "page.html") == 0
        assert "&lt;b&gt;&amp;" in Path("page.html").read_text()

    def test_findings_are_status_1(self, capsys):
        assert profiled("mine.py:beyond") == 1
        shown = capsys.readouterr().out
        assert (
            "\n1 findings: the counts below may be wrong\nout-of-bounds: st.global.f32 writes 4 bytes at x[31]" in shown
        )

    def test_ptx(self, capsys):
        Path("k.ptx").write_text(pd.parse(stored.ptx("sm_80")).ptx())
        assert profiled("k.ptx", "--grid", "2", "--block", "32", "--arg", "f32[64]") == 0
        shown = capsys.readouterr().out
        assert "stored[2, 32](float32[64]) on " in shown
        assert "test_profile.py:" in shown  # the PTX says where its lines come from

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (["mine.py"], "mine.py has several kernels with examples: scaled, beyond\n  help: say which: mine.py:scaled\n"),
            (["mine.py:scaled", "--gpu", "x"], "`x` is not a known GPU\n  help: choose one of h200, h100, a100, rtx4090\n"),
            (["mine.py:scaled", "--json", "--html", "-"], "--json and --html both write to stdout\n  help: name a file for each\n"),
            (["mine.py:scaled", "--html", "no/where"], "no/where cannot be written: No such file or directory\n"),
            (["k.ptx", "--block", "1"], "a launch needs --grid and --block\n  help: such as --grid 8 --block 128\n"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_meant_is_status_2(self, arguments, text, capsys):
        assert profiled(*arguments) == 2
        assert capsys.readouterr().err == f"ptxdsl: {text}"


class Rows(HTMLParser):
    """The cells of the rows of a page's tables; every tag must be closed."""

    def __init__(self, page):
        super().__init__()
        self.cells, self.open = [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1][-1] += data


@pd.kernel
def stored(x: ptr[f32]):
    x[pd.tid.x + pd.ctaid.x * 32] = 1.0


@pytest.mark.gpu
def test_a_launch_is_measured(capsys):
    assert profiled("mine.py:scaled", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["floor"] < facts["measured"] < 1000


@pytest.mark.gpu
def test_a_clock_of_the_gpu_tells_long_from_short():
    few, many = np.zeros(64, np.float32), np.zeros(1 << 25, np.float32)
    handle = stored.compiled(driver.device(0).arch)
    short, long = (launch_shape(array.size // 32, 32) for array in (few, many))
    with (
        handle.on_copies(short, [few]) as (brief, _),
        handle.on_copies(long, [many]) as (lasting, _),
        GpuClock() as clock,
    ):
        times = at_rest(clock, [brief, lasting], rounds=3)
    assert 0 < 5 * times[0] < times[1] < 1e4
