"""frameworks.py without a GPU: its timing, and its kernel on the emulator."""

import frameworks
import numpy as np


def test_the_least_mean_of_calls_is_told_and_the_wait_is_shared(monkeypatch):
    now = iter(np.arange(0.0, 100.0, 0.004))  # a look at the clock takes 4 ms
    monkeypatch.setattr(frameworks.time, "perf_counter", lambda: next(now))
    events = []
    run, wait = (lambda: events.append("run")), (lambda: events.append("wait"))
    assert round(frameworks.host_us(run, wait, calls=4, means=2)) == 1000
    assert events == ["wait", *["run"] * 4] * 2 + ["wait"]
    events.clear()
    frameworks.host_us(run, wait, calls=4, means=1, is_waited_for=True)
    assert events == ["wait", *["run"] * 4, "wait", "wait"]


def test_its_kernels_are_right_on_the_emulator():
    x, y = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    frameworks.scaled[3, 128](x, y, 3.0, 300)
    assert (y == 3 * x).all()
