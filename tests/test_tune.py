"""`@pd.autotune`: what fits, what is timed, what is kept on disk, and what is refused."""

import contextlib
import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from cuda.bindings import driver as real

import ptxdsl as pd
from ptxdsl import cli, config, driver, f32, ptr, u32
from ptxdsl.runtime import timing
from ptxdsl.tune import measure, progress, records
from ptxdsl.tune import tuned as tuning
from ptxdsl.tune.measure import Subject, TuningOption, best_of, remembered
from ptxdsl.tune.records import TuningRecord, digest_of
from tests.fake_driver import TimedCuda, installed

SUBJECT = Subject("scaled", "NVIDIA H200", "n=100", "code")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path))
    return tmp_path


@pd.kernel
def scaled(x: ptr[f32], n: u32, *, tile, factor: float = 2.0):
    i = pd.ctaid.x * tile + pd.tid.x
    with pd.if_(i < n):
        x[i] = x[i] * factor


def tuned(configs=({"tile": 64}, {"tile": 128}), key=("n",), **options):
    return pd.autotune(list(configs), key=list(key), **options)(scaled)


def launched(kernel, n=100):
    x = np.ones(n, np.float32)
    kernel[lambda tile: -(-n // tile), lambda tile: tile](x, n)
    assert (x == 2).all()


class TestOnTheEmulator:
    def test_the_first_that_fits_is_taken(self):
        kernel = tuned()
        launched(kernel)
        assert kernel.best == {(None, (100,)): {"tile": 64}}

    def test_the_cheapest_is_taken_where_a_cost_is_known(self):
        kernel = tuned(cost=lambda tile, n: -tile * n)
        launched(kernel)
        launched(kernel, 300)
        assert kernel.best == {(None, (100,)): {"tile": 128}, (None, (300,)): {"tile": 128}}

    def test_arrays_are_keys_by_type_and_shape(self):
        kernel = tuned(key=["x"])
        launched(kernel)
        assert list(kernel.best) == [(None, (("f32", (100,)),))]

    def test_other_constants_and_plain_shapes(self):
        kernel, x = tuned([{"tile": 32}], key=["factor"]), np.ones(32, np.float32)
        kernel[1, 32](x, 32, factor=3.0)
        assert (x == 3).all()
        assert list(kernel.best) == [(None, (3.0,))]

    def test_what_another_target_only_takes_is_left_out(self):
        kernel = sized([{"bytes": 200 << 10}, {"bytes": 1 << 10}])
        with config.using(arch="sm_80"):
            kernel[1, 32](np.zeros(1, np.float32))
        assert list(kernel.best.values()) == [{"bytes": 1 << 10}]

    def test_tuned_kernels_are_launchers_for_the_command(self):
        assert tuned().kernel is scaled
        assert repr(tuned()).startswith("<tuned <kernel scaled>>")


def sized(configs):
    @pd.autotune(configs)
    @pd.kernel
    def sized(x: ptr[f32], *, bytes):
        tile = pd.dynamic_shared(f32, bytes // 4)
        tile[pd.tid.x] = 1.0
        with pd.if_(pd.tid.x == 0):
            x[0] = tile[0]

    return sized


class Clock:
    """A GPU on which each way takes its time, longer in the first round."""

    def __init__(self, times):
        self.times, self.ran, self.rests = times, [], 0

    def rest(self, seconds):
        self.rests += 1

    def microseconds(self, run):
        name = run()
        self.ran.append(name)
        return self.times[name] * (10 if self.ran.count(name) == 1 else 1)


def options(*names, text=lambda name: f"// {name}"):
    return [TuningOption(name, lambda name=name: name, lambda name=name: text(name)) for name in names]


class TestMeasuring:
    def test_the_fastest_is_found_and_kept(self, folder):
        clock = Clock({"a": 5.0, "b": 3.0, "c": 3.1})
        assert best_of(SUBJECT, options("a", "b", "c"), clock).label == "b"
        assert clock.ran.count("a") == measure.COARSE + 1  # what is slow is not timed any longer
        assert clock.ran.count("c") == measure.COARSE + measure.FINE + 2
        assert clock.rests == 2
        record = records.load(folder, SUBJECT.name)
        assert record == TuningRecord("scaled", "NVIDIA H200", "n=100", "b", digest_of("// b"), 3.0)

    def test_what_was_prepared_goes_before_each_launch(self):
        prepared = []
        best_of(SUBJECT, options("a"), clock := Clock({"a": 1.0}), lambda: prepared.append(1))
        assert len(prepared) == len(clock.ran) + 1  # and before the launch that loads it

    def test_what_cannot_be_launched_is_left_out(self):
        def fails():
            raise pd.LaunchError("too many resources")

        ways = [TuningOption("a", fails, str), *options("b")]
        assert best_of(SUBJECT, ways, Clock({"b": 1.0})).label == "b"
        with pytest.raises(pd.LaunchError) as refused:
            best_of(SUBJECT, ways[:1], Clock({}))
        assert refused.value.message == (
            "no configuration of `scaled` can be launched on NVIDIA H200:\n  a: too many resources"
        )
        assert refused.value.help == "use smaller tiles, fewer stages or fewer threads"

    def test_those_that_time_has_passed_before_are_left_out(self, monkeypatch):
        """A second passes with each look at the clock of the host: the first is timed, the others until it is late."""
        seconds = iter(range(100))
        monkeypatch.setattr(measure, "perf_counter", lambda: next(seconds))
        clock = Clock({name: 9.0 - n for n, name in enumerate("abcde")})
        assert best_of(SUBJECT, options(*"abcde"), clock, most_seconds=3).label == "c"
        assert {*clock.ran} == {*"abc"}
        assert best_of(SUBJECT, options(*"abcde"), Clock(clock.times), most_seconds=0).label == "a"

    def test_the_line_counts_what_is_left_out(self, monkeypatch):
        told = []

        class Progress(progress.TuningProgress):
            def skip(self):
                super().skip()
                told.append(self.text)

        def fails():
            raise pd.LaunchError("too many resources")

        monkeypatch.setattr(measure, "TuningProgress", Progress)
        best_of(SUBJECT, [TuningOption("a", fails, str), *options("b", "c")], Clock({"b": 2.0, "c": 1.0}))
        assert told == [
            "tuning scaled: 1 of 3",
            "tuning scaled: 2 of 3, best b 2.0 us",
            "tuning scaled: 3 of 3, best c 1.0 us",
        ]

    def test_another_process_takes_it_from_the_disk(self):
        best_of(SUBJECT, options("a", "b"), Clock({"a": 2.0, "b": 1.0}))
        assert remembered(SUBJECT, options("a", "b")).label == "b"
        assert remembered(SUBJECT, options("a")) is None
        assert remembered(Subject("scaled", "NVIDIA H100", "n=100", "code"), options("a", "b")) is None
        assert remembered(Subject("scaled", "NVIDIA H200", "n=101", "code"), options("a", "b")) is None
        assert remembered(Subject("scaled", "NVIDIA H200", "n=100", "other"), options("a", "b")) is None

    def test_a_kernel_of_another_text_is_tuned_anew(self):
        best_of(SUBJECT, options("a", "b"), Clock({"a": 2.0, "b": 1.0}))
        assert remembered(SUBJECT, options("a", "b", text=lambda name: f"// {name} changed")) is None
        moved = options("a", "b", text=lambda name: f'.file 1 "x.py"\n    .loc 1 7 8\n// {name}')
        assert remembered(SUBJECT, moved).label == "b"  # lines of Python are no difference

    def test_damaged_entries_are_none(self, folder):
        records.store(folder, SUBJECT.name, TuningRecord("scaled", "x", "y", "a", "z", 1.0))
        (path,) = folder.rglob("*/*")
        path.write_bytes(path.read_bytes()[:-3])
        assert remembered(SUBJECT, options("a")) is None
        assert records.read(b'{"tuning": {"kernel": 1}}') is records.read(b"\x7fELF") is None

    @pytest.mark.exhaustive
    def test_processes_that_tune_at_once_leave_one_whole_entry(self, folder):
        script = (
            "import sys; from pathlib import Path; from ptxdsl.tune import records\n"
            "folder, label = Path(sys.argv[1]), sys.argv[2]\n"
            "for n in range(200):\n"
            "    records.store(folder, '0' * 64, records.TuningRecord('scaled', 'gpu', 'key', label, 'x' * n, 1.0))\n"
            "    assert records.load(folder, '0' * 64).kernel == 'scaled'\n"
            "print(records.load(folder, '0' * 64).config in 'ab')"
        )
        started = [
            subprocess.Popen([sys.executable, "-c", script, str(folder), name], stdout=subprocess.PIPE, text=True)
            for name in "ab"
        ]
        assert [process.communicate()[0].strip() for process in started] == ["True", "True"]
        assert len([path for path in folder.rglob("*") if path.is_file()]) == 1


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that launches on the emulator, and takes as long as a list says."""
    times = {64: 2.0, 128: 1.0, 256: 3.0}
    ran = []

    @contextlib.contextmanager
    def saved(variant, arguments, device, stream):
        before = arguments[0].copy()

        def restore():
            arguments[0][:] = before

        yield restore
        restore()

    class Fake(Clock):
        def __init__(self, stream):
            super().__init__(times)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def microseconds(self, run):
            run()
            return times[ran[-1]]

    real = type(scaled).__getitem__

    def counted(kernel, shape):
        ran.append(shape[1])
        return real(kernel, shape)

    monkeypatch.setattr(type(scaled), "__getitem__", counted)
    monkeypatch.setattr(tuning, "gpu_among", lambda arguments: 0)
    monkeypatch.setattr(tuning, "saved", saved)
    monkeypatch.setattr(tuning, "GpuClock", Fake)
    monkeypatch.setattr(tuning, "target", lambda device: "sm_90a")
    monkeypatch.setattr(tuning.driver, "device", lambda ordinal: SimpleNamespace(name="NVIDIA H200"))
    return ran


class TestOnAGpu:
    CONFIGS = ({"tile": 64}, {"tile": 128}, {"tile": 256})

    def test_the_first_launch_of_a_key_tunes(self, gpu):
        kernel = tuned(self.CONFIGS)
        launched(kernel)
        assert kernel.best == {(0, (100,)): {"tile": 128}}
        timed = len(gpu)
        launched(kernel)
        assert len(gpu) == timed + 1

    def test_a_new_kernel_object_takes_it_from_the_disk(self, gpu):
        launched(tuned(self.CONFIGS))
        gpu.clear()
        launched(tuned(self.CONFIGS))
        assert gpu == [128]
        launched(tuned(self.CONFIGS[:2]))  # another choice is another tuning
        assert set(gpu) == {64, 128}

    def test_the_cost_prunes(self, gpu):
        launched(tuned(self.CONFIGS, cost=lambda tile: tile, most=1))
        assert set(gpu) == {64}

    def test_the_command_lists_and_clears_it(self, gpu, capsys, folder):
        launched(tuned(self.CONFIGS))
        assert cli.main(["cache"]) == 0
        assert "scaled tuned for NVIDIA H200, [('n', 100)]: tile=128, 1 us\n" in capsys.readouterr().out
        cli.main(["cache", "--json"])
        (entry,) = json.loads(capsys.readouterr().out)["entries"]
        assert entry["tuning"]["config"] == "tile=128"
        assert cli.main(["cache", "clear"]) == 0
        assert "1 entry removed" in capsys.readouterr().out
        gpu.clear()
        launched(tuned(self.CONFIGS))
        assert len(gpu) > 1


class OnGpu:
    """An array of 100 floats on the first GPU, as the stand-in for the driver understands addresses."""

    def __init__(self, address=4096):
        self.__cuda_array_interface__ = {
            "shape": (100,), "typestr": "<f4", "data": (address, False), "version": 3, "strides": None,
        }  # fmt: skip


class TestThroughTheDriver:
    @pytest.fixture
    def cuda(self, monkeypatch):
        monkeypatch.setattr(timing, "FLUSHED_BYTES", 64)
        monkeypatch.setattr(timing, "REST_SECONDS", 0.0)
        with installed(TimedCuda(widths=(8, 4), times={64: 20.0, 128: 10.0, 256: 30.0})) as fake:
            yield fake

    def launch(self, **options):
        fresh = pd.kernel(scaled.__wrapped__)  # one that no other driver has loaded
        kernel = pd.autotune([{"tile": 64}, {"tile": 128}, {"tile": 256}], key=["n"])(fresh)
        kernel[lambda tile: -(-100 // tile), lambda tile: tile](OnGpu(), 100, **options)
        return kernel

    def test_events_tell_the_fastest_and_nothing_is_left_behind(self, cuda):
        kernel = self.launch()
        assert kernel.best == {(0, (100,)): {"tile": 128}}
        assert cuda.launches[-1]["block"] == (128, 1, 1)
        assert (cuda.events, cuda.memory, cuda.contexts) == (0, {}, [])
        timed = len(cuda.launches) - 3 - 1  # but those that load, and the last
        assert timed == 3 * (measure.COARSE + 1)
        assert cuda.flushes == timing.FLUSHES * timed

    def test_what_the_kernel_writes_is_put_back_before_each_launch(self, cuda):
        self.launch()
        (saved, source, size, _), *restored = cuda.copies
        assert (source, size) == (4096, 400)
        assert all((target, copy) == (4096, saved) for target, copy, *_ in restored)
        assert len(restored) == len(cuda.launches) - 1 + 1  # before each that was tuned, and at the end

    def test_the_stream_of_the_launch_is_timed(self, cuda):
        self.launch(stream=7)
        assert {launch["stream"] for launch in cuda.launches} == {7}
        assert {stream for *_, stream in cuda.copies} == {7}

    def test_another_kernel_object_takes_it_from_the_disk(self, cuda):
        self.launch()
        before = len(cuda.launches)
        assert list(self.launch().best.values()) == [{"tile": 128}]
        assert len(cuda.launches) == before + 1

    def test_a_failure_frees_what_was_made(self, cuda):
        cuda.failing["cuEventElapsedTime"] = real.CUresult.CUDA_ERROR_LAUNCH_FAILED
        with pytest.raises(pd.LaunchError) as refused:
            self.launch()
        assert refused.value.message.startswith("timing: CUDA_ERROR_LAUNCH_FAILED")
        assert (cuda.events, cuda.memory, cuda.contexts) == (0, {}, [])


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "message", "help"),
        [
            ({"configs": [{"tiles": 3}]}, "config 1 of tuned kernel `scaled` sets `tiles`, which is not a constant of the kernel", "its constants are tile, factor"),
            ({"configs": []}, "`configs` of tuned kernel `scaled` is []", "pass dicts of its constants, such as [{'tile': …}]"),
            ({"configs": [64]}, "`configs` of tuned kernel `scaled` is [64]", "pass dicts of its constants, such as [{'tile': …}]"),
            ({"key": ["m"]}, "`key` of tuned kernel `scaled` names `m`, which is not an argument of the kernel", "it can name x, n, factor"),
            ({"key": ["tile"]}, "`key` of tuned kernel `scaled` names `tile`, which is a tuned constant", "it can name x, n, factor"),
            ({"key": "n"}, "`key` of tuned kernel `scaled` is 'n'", 'pass names: key=["n"]'),
            ({"cost": 3}, "`cost` of tuned kernel `scaled` is 3", "pass a function"),
            ({"cost": lambda x: 1}, "`cost` of tuned kernel `scaled` takes `x`, which is neither a constant nor in the key", "it can take tile, factor, n"),
            ({"most": 0}, "`most` of tuned kernel `scaled` is 0", "pass the maximum number of configs to time, 1 or more"),
        ],
    )  # fmt: skip
    def test_decorators(self, options, message, help):
        given = {"configs": [{"tile": 64}], "key": ["n"], **options}
        with pytest.raises(pd.TraceError) as refused:
            pd.autotune(**given)(scaled)
        assert (refused.value.message, refused.value.help) == (message, help)
        assert refused.value.at.file == __file__

    def test_what_is_no_kernel(self):
        with pytest.raises(pd.TraceError) as refused:
            pd.autotune([{"tile": 1}])(print)
        assert refused.value.message == "pd.autotune decorates a kernel, got <built-in function print>"
        assert refused.value.help == "put it above @pd.kernel, which makes a kernel of a function"

    @pytest.mark.parametrize("options, help", [
        ({"warmup": 3}, "leave it out: the number of timed launches is chosen automatically"),
        ({"prune_configs_by": {}}, "use `cost=`, a function of the constants, and `most=`, the number of cheapest configs to time"),
        ({"restore_value": ["x"]}, "leave it out: arrays that the kernel writes are always restored before each launch"),
        ({"cache_results": True}, "the best config is always cached on disk; PTXDSL_CACHE_DIR=off disables the cache"),
    ])  # fmt: skip
    def test_what_other_tuners_take(self, options, help):
        with pytest.raises(pd.CallError) as refused:
            pd.autotune([{"tile": 1}], **options)
        (name,) = options
        assert refused.value.message == f"pd.autotune takes no `{name}`; it takes configs, key, cost and most"
        assert refused.value.help == help

    def test_a_decorator_without_its_configs(self):
        with pytest.raises(pd.TraceError) as refused:
            pd.autotune(scaled)
        assert (
            refused.value.message == "the first argument of pd.autotune must be a list of configs, got <kernel scaled>"
        )
        assert refused.value.help == "write `@pd.autotune([{'tile': 64}, {'tile': 128}], key=[\"n\"])` above @pd.kernel"
        assert refused.value.at.file == __file__

    def test_configs_of_a_generator(self):
        kernel = pd.autotune(({"tile": tile} for tile in (32, 64)), key=["n"])(scaled)
        assert kernel.configs == [{"tile": 32}, {"tile": 64}]

    def test_a_cost_that_is_no_number(self):
        with pytest.raises(pd.LaunchError) as refused:
            launched(tuned([{"tile": 32}, {"tile": 64}], cost=lambda tile: None))
        assert refused.value.message == "`cost` of tuned kernel `scaled` returned None for tile=32"
        assert refused.value.help == "return a number; lower means faster"

    def test_what_only_the_kernel_itself_can(self):
        kernel = tuned()
        with pytest.raises(pd.LaunchError) as refused:
            kernel(np.ones(64, np.float32), 64)
        assert refused.value.message == "tuned kernel `scaled` was called without a grid and a block"
        assert refused.value.help == "launch it as `scaled[grid, block](…)`"
        with pytest.raises(AttributeError) as refused:
            kernel.ptx()
        assert refused.value.message == "tuned kernel `scaled` has no `ptx`"
        assert refused.value.help == "use the kernel itself, with constants of your choice: `scaled.kernel.ptx`"
        with pytest.raises(pd.LaunchError) as refused:
            pd.emulate(kernel, 1, 64, np.ones(64, np.float32), 64)
        assert refused.value.message == f"the first argument of pd.emulate must be a kernel, got {kernel!r}"
        assert refused.value.help == (
            "pass the kernel that it launches: pd.emulate(launcher.kernel, grid, block, …), with its constants"
        )

    def test_a_config_that_never_fits(self):
        kernel = sized([{"bytes": 1 << 10}, {"bytes": 1 << 20}])
        with pytest.raises(pd.LaunchError) as refused:
            kernel[1, 32](np.zeros(1, np.float32))
        assert refused.value.message == (
            "config bytes=1048576 of tuned kernel `sized` never fits: `tile` brings shared memory to 1048576 bytes; a "
            "block has at most 232448 on any GPU"
        )
        assert refused.value.help == "use a smaller tile or fewer stages; or leave it out of the configs"

    def test_a_mistake_of_the_kernel_is_no_misfit_of_its_configs(self):
        @pd.autotune([{"tile": 64}, {"tile": 128}])
        @pd.kernel
        def mistaken(x: ptr[f32], *, tile):
            x[pd.tid.x % tile] += 1.0

        with pytest.raises(pd.TraceError) as refused:
            mistaken[1, 64](np.zeros(64, np.float32))
        assert refused.value.message == ("`+=` on `x[pd.tid.x % tile]`, which is not a variable")
        assert "| x[pd.tid.x % tile] += 1.0\n" in str(refused.value)

    def test_a_config_that_cannot_be_traced_is_refused_at_the_line_that_says_so(self):
        @pd.autotune([{"tile": 64}, {"tile": 0}])
        @pd.kernel
        def divided(x: ptr[f32], *, tile):
            x[pd.tid.x % tile] = 1.0

        with pytest.raises(pd.LaunchError) as refused:
            divided[1, 64](np.zeros(64, np.float32))
        assert refused.value.message == "config tile=0 of tuned kernel `divided` never fits: `%` divides by zero"
        assert "| x[pd.tid.x % tile] = 1.0\n" in str(refused.value)
        assert refused.value.help == "the divisor is the constant 0 here; or leave it out of the configs"

    def test_a_block_that_never_fits(self):
        with pytest.raises(pd.LaunchError) as refused:
            launched(tuned([{"tile": 2048}]))
        assert refused.value.message == (
            "config tile=2048 of tuned kernel `scaled` never fits: block is (2048, 1, 1): the limit of its x extent is 1024"
        )

    def test_none_that_fits_this_target(self):
        kernel = sized([{"bytes": 200 << 10}])
        with pytest.raises(pd.LaunchError) as refused, config.using(arch="sm_80"):
            kernel[1, 32](np.zeros(1, np.float32))
        assert refused.value.message == (
            "no config of tuned kernel `sized` fits sm_80:\n"
            "  bytes=204800: it needs 204800 bytes of shared memory, but a block on sm_80 has 166912"
        )

    def test_constants_that_are_tuned(self):
        with pytest.raises(pd.LaunchError) as refused:
            tuned()[1, 64](np.ones(64, np.float32), 64, tile=32)
        assert refused.value.message == "`tile` of `scaled` is tuned, so a launch cannot set it"
        assert (
            refused.value.help == "leave it out, or launch the kernel itself: `scaled.kernel[grid, block](…, tile=…)`"
        )

    def test_shapes(self):
        with pytest.raises(pd.LaunchError) as refused:
            tuned()[lambda tiles: 1, 64](np.ones(64, np.float32), 64)
        assert (
            refused.value.message
            == "the block of `scaled` is a function of `tiles`, which is not a constant of the kernel"
            or (
                refused.value.message
                == "the grid of `scaled` is a function of `tiles`, which is not a constant of the kernel"
            )
        )
        with pytest.raises(pd.LaunchError) as refused:
            tuned()[3]
        assert refused.value.message == "tuned kernel `scaled` is indexed by 3, not by a grid and a block"

    def test_arguments(self):
        with pytest.raises(pd.LaunchError) as refused:
            tuned()[1, 64](np.ones(64, np.float32))
        assert "scaled" in refused.value.message


class TestProgress:
    def test_a_line_says_how_far_it_is(self):
        with progress.TuningProgress("scaled", 3) as line:
            line.tell("tile=64", 12.34)
            line.tell("tile=128", 20.0)
            assert line.text == "tuning scaled: 2 of 3, best tile=64 12.3 us"

    def test_a_terminal_shows_it_on_one_line(self, monkeypatch, capsys):
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: None)
        with progress.TuningProgress("scaled", 2) as line:
            line.tell("a", 1.0)
        assert capsys.readouterr().err == "\r\x1b[Ktuning scaled: 1 of 2, best a 1.0 us\r\x1b[K"


@pytest.mark.gpu
def test_a_kernel_is_tuned_on_a_gpu():
    torch = pytest.importorskip("torch")
    x = torch.ones(1 << 20, device="cuda")
    kernel = tuned([{"tile": 32}, {"tile": 256}, {"tile": 512}])
    kernel[lambda tile: -(-x.numel() // tile), lambda tile: tile](x, x.numel())
    assert (x == 2).all()
    (best,) = kernel.best.values()
    assert best["tile"] in (256, 512)
    with driver.on(0):
        again = tuned([{"tile": 32}, {"tile": 256}, {"tile": 512}])
        again[lambda tile: -(-x.numel() // tile), lambda tile: tile](x, x.numel())
    assert (x == 4).all()
    assert list(again.best.values()) == [best]
