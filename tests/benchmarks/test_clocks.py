"""Clock and power by contender: what nvidia-smi printed during its turns."""

import subprocess

from clocks import Sample, Samples, Watch, sample_of
from protocols import Local, held

from .fake_gpu import FakeGpu


def test_a_line_is_a_sample():
    assert sample_of("1665, 698.20\n", 3.0) == Sample(3.0, 1665, 698.2)
    assert sample_of("[N/A], 80.5\n", 3.0) is None
    assert sample_of("", 3.0) is None


def test_each_contender_has_the_medians_of_its_turns():
    """The beginning of each does not count."""
    gpu, samples = FakeGpu(), []
    watch = Watch(samples, gpu.now)
    for mhz, watts in ((1500, 600), (1700, 700)):
        with watch.turn("a"):
            samples.append(Sample(gpu.now() + 0.01, 1, 1))
            gpu.seconds += 0.9
            samples.append(Sample(gpu.now() - 0.01, mhz, watts))
        samples.append(Sample(gpu.now() + 0.001, 2, 2))
        gpu.seconds += 1
    with watch.turn("unsampled"):
        gpu.seconds += 0.9
    assert watch.medians() == {"a": (1600, 650)}


def test_held_has_each_turn_watched_but_for_its_first_slice():
    gpu, seen = FakeGpu(), []

    class Recorder(Watch):
        def turn(self, name):
            seen.append((name, gpu.log.count(name)))
            return super().turn(name)

    contenders = {name: Local(gpu, gpu.takes(name, 50.0)) for name in ("a", "b")}
    held(contenders, 2, Recorder([], gpu.now))
    assert seen == [("a", 1 + 3), ("b", 1 + 3), ("a", 1 + 3 + 18 + 3), ("b", 1 + 3 + 18 + 3)]


def test_without_the_program_there_are_no_samples(monkeypatch):
    def missing(*_, **__):
        raise FileNotFoundError("nvidia-smi")

    monkeypatch.setattr(subprocess, "Popen", missing)
    samples = Samples()
    samples.start()
    samples.close()
    assert samples.samples == []
