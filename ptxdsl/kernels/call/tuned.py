"""`config="tune"`: the configuration that takes the least time for arrays that lie so, found once and kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import NamedTuple

from ptxdsl import config as settings
from ptxdsl import driver
from ptxdsl.arrays import describe
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.launching.memory import MOST_KEYS, placement_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.runtime.dispatch import target
from ptxdsl.runtime.timing import GpuClock
from ptxdsl.tune.measure import Subject, TuningOption, best_of, remembered

TUNE = "tune"
CLOSE = 2.0  # times what the model finds best: the others are not timed
MOST = 10
USUAL = GemmConfig()
TUNED: dict[Hashable, GemmConfig | None] = {}
"""What was found in this process, by all that decides about a call; None for the choice of the model."""


def wants_tuning(config: object) -> bool:
    """Whether a caller asks for the best by measuring."""
    return isinstance(config, str) and config == TUNE


class Trials(NamedTuple):
    """What may be timed for a call: `called` is its name, `problem` its arrays in words. `timed` are configurations by
    the microseconds that the model says of them; `run` launches one on that GPU and stream, `text` is its PTX."""

    called: str
    problem: str
    device_stream: tuple[int | None, int]
    timed: Iterable[tuple[float, GemmConfig]]
    run: Callable[[GemmConfig], object]
    text: Callable[[GemmConfig], str]


def tuned_call(
    kernels: object, options: tuple[Hashable, ...], arrays: Sequence[object], trials: Callable[[], Trials]
) -> GemmConfig | None:
    """What config="tune" stands for in a call of `kernels` with arrays; None for the choice of the model: on the
    emulator, for lists, and for arrays of other libraries than torch and CuPy."""
    placement = placement_of(arrays)
    if placement is None:
        return None
    return tuned_once((TUNE, kernels, options, settings.deciding(), placement.layout), trials)


def tuned_once(key: Hashable, trials: Callable[[], Trials]) -> GemmConfig | None:
    """The best of the trials of a call with such a key, which are made at the first such call."""
    if key not in TUNED:
        best = tuned(trials())
        if len(TUNED) >= MOST_KEYS:
            TUNED.clear()
        TUNED[key] = best
    return TUNED[key]


def tuned(trials: Trials) -> GemmConfig | None:
    """The best of some configurations, measured or as it was on disk. None for the model's choice, as on the
    emulator."""
    device, stream = trials.device_stream
    configs = promising(trials.timed)
    if device is None or settings.current().device == "emulator" or not configs:
        return None
    options = {
        label: TuningOption(label, partial(trials.run, each), partial(trials.text, each))
        for label, each in ((label_of(each), each) for each in configs)
    }
    subject = Subject(trials.called, driver.device(device).name, trials.problem)
    option = remembered(subject, list(options.values()))
    if option is None:
        with driver.on(device), GpuClock(stream) as clock:
            option = best_of(subject, list(options.values()), clock)
    return next(each for each in configs if label_of(each) == option.label)


def described_arrays(arrays: Sequence[object]) -> str:
    """How arrays lie, for the name of an entry on disk."""
    return ", ".join("none" if each is None else _described(each) for each in arrays)


def _described(owner: object) -> str:
    array = describe(owner)
    assert array is not None
    return f"{array.type or array.dtype}{list(array.shape)} by {list(array.strides)}"


def text_of(kernel: Kernel, constants: Mapping[str, object], device: int | None) -> str:
    """The PTX of a kernel for a GPU."""
    return kernel.variant(target(device), dict(constants)).text


def promising(timed: Iterable[tuple[float, GemmConfig]]) -> list[GemmConfig]:
    """Those that the model finds best, and others that come close, the best first."""
    ordered = sorted(timed, key=lambda pair: pair[0])
    close = [config for time, config in ordered if time <= CLOSE * ordered[0][0]]
    return list(dict.fromkeys(close))[:MOST]


def label_of(config: GemmConfig) -> str:
    """A configuration by what is not usual in it."""
    told = ((field.name, getattr(config, field.name)) for field in fields(GemmConfig) if field.name != "epilogue")
    return ", ".join(f"{name}={value!r}" for name, value in told if value != getattr(USUAL, name)) or "usual"
