"""`@pd.autotune(configs, key=…)`: launch a kernel with the fastest of several sets of constants, for each key."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any, NoReturn

import numpy as np

from ptxdsl import arrays, config, driver
from ptxdsl.errors import Error, LaunchError, UnknownAttribute, called_elsewhere, public
from ptxdsl.kernel import Kernel
from ptxdsl.runtime import limits
from ptxdsl.runtime.dispatch import UNTRACEABLE, gpu_among, target
from ptxdsl.runtime.shape import THREADS_PER_BLOCK, launch_shape
from ptxdsl.runtime.streams import current_stream, stream_handle
from ptxdsl.runtime.timing import GpuClock, Run
from ptxdsl.trace.builder import refuse
from ptxdsl.tune.measure import Subject, TuningOption, best_of, remembered, saved

FAMILIES = ("sm_80", "sm_90a", "sm_100a", "sm_120a")  # a configuration that fits none of these never fits
MOST = 16  # configurations to time if there is a cost function
Config = Mapping[str, Any]
_PRUNED = "use `cost=`, a function of the constants, and `most=`, the number of cheapest configs to time"
_RESTORED = "leave it out: arrays that the kernel writes are always restored before each launch"
_TIMED = "leave it out: the number of timed launches is chosen automatically"
Shaped = int | tuple[int, ...] | Callable[..., int | tuple[int, ...]]


@dataclass(frozen=True)
class _Ask:
    """A launch that is about to be tuned."""

    grid: Shaped
    block: Shaped
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]  # keyword arguments: other constants, the stream


class TunedKernel:
    """A kernel with several sets of constants, launched with the best one.

    `kernel` is the kernel itself. `best` maps each (GPU or None, key) to the constants chosen so far.
    """

    def __init__(
        self,
        kernel: Kernel,
        configs: Sequence[Config],
        key: Sequence[str],
        cost: Callable[..., float] | None,
        most: int,
    ) -> None:
        self.kernel, self.configs, self.key, self.cost, self.most = kernel, configs, tuple(key), cost, most
        self.name = kernel.name
        self.best: dict[tuple[int | None, Hashable], Config] = {}
        names = kernel.signature.names
        self._positions = [(name, names.index(name) if name in names else -1) for name in self.key]

    def __repr__(self) -> str:
        return f"<tuned {self.kernel!r}>"

    def __getitem__(self, shape: object) -> TunedLaunch:
        """Return `kernel[grid, block]`; both may be functions whose parameters are constants by name."""
        if not isinstance(shape, tuple) or len(shape) != 2:
            refuse(
                f"tuned kernel `{self.name}` is indexed by {shape!r}, not by a grid and a block",
                f"write `{self.name}[grid, block](…)`; both may be functions of constants: `lambda tile: …`",
                LaunchError,
            )
        return TunedLaunch(self, *shape)

    def __call__(self, *arguments: object, **constants: object) -> NoReturn:
        refuse(
            f"tuned kernel `{self.name}` was called without a grid and a block",
            f"launch it as `{self.name}[grid, block](…)`",
            LaunchError,
        )

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("_") and hasattr(Kernel, name):
            help = f"use the kernel itself, with constants of your choice: `{self.name}.kernel.{name}`"
            refuse(f"tuned kernel `{self.name}` has no `{name}`", help, UnknownAttribute)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def key_of(self, arguments: Sequence[Any], options: Config) -> tuple[Hashable, ...]:
        """Return the values of the key: numbers as they are, arrays by type and shape."""
        constants = self.kernel.signature.constants
        return tuple(
            _key_value(arguments[position] if position >= 0 else options.get(name, constants.get(name)))
            for name, position in self._positions
        )

    def choose(self, ask: _Ask, device: int | None, key: tuple[Hashable, ...]) -> Config:
        """Return the constants for a launch. Raises LaunchError if no configuration fits."""
        fitting = self._cheapest(self._fitting(ask, target(device)), dict(zip(self.key, key, strict=True)))
        if device is None or len(fitting) == 1:
            return fitting[0]
        options = {self._label(each): each for each in fitting}
        described = repr([(name, value) for name, value in zip(self.key, key, strict=True)])
        subject = Subject(self.name, str(driver.device(device).name), described, self._code(options))
        others = {name: value for name, value in ask.options.items() if name in self.kernel.signature.constants}

        def text_with(constants: dict[str, Any]) -> str:
            return self.kernel.variant(target(device), constants).text

        candidates = [
            TuningOption(label, _launch(self, ask, each), partial(text_with, {**others, **each}))
            for label, each in options.items()
        ]
        chosen = remembered(subject, candidates) or self._timed(
            subject, candidates, ask, device, {**others, **fitting[0]}
        )
        return options[chosen.label]

    def _timed(
        self, subject: Subject, candidates: Sequence[TuningOption], ask: _Ask, device: int, constants: Config
    ) -> TuningOption:
        """Time the candidates and return the best; the arrays are restored afterwards."""
        stream = _stream(ask, device)
        variant = self.kernel.variant(target(device), dict(constants))
        with saved(variant, ask.arguments, device, stream) as restore, GpuClock(stream) as clock:
            return best_of(subject, candidates, clock, restore)

    def _fitting(self, ask: _Ask, arch: str) -> list[Config]:
        """Return the configurations that fit a target. Raises LaunchError for one that never fits, or if none does."""
        others = {name: value for name, value in ask.options.items() if name in self.kernel.signature.constants}
        reasons: list[str] = []
        fitting = []
        for each in self.configs:
            constants = {**others, **each}
            block = _shape(self, "block", ask.block, constants)
            reason = _why_not(self.kernel, constants, block, arch, assembles=False)
            if not reason:
                fitting.append(each)
                continue
            if all(_why_not(self.kernel, constants, block, each, assembles=False) for each in FAMILIES):
                self._refuse(each, others, arch, reason)
            reasons.append(f"{self._label(each)}: {reason}")
        if not fitting:
            raise LaunchError(f"no config of tuned kernel `{self.name}` fits {arch}:\n  " + "\n  ".join(reasons))
        return fitting

    def _refuse(self, each: Config, others: Config, arch: str, reason: str) -> NoReturn:
        """Raise the error of a configuration that never fits, at the line of the kernel that causes it.

        An error that is the same for all configurations is raised as an error of the kernel.
        """
        message = f"config {self._label(each)} of tuned kernel `{self.name}` never fits: {reason}"
        error = _refused(self.kernel, {**others, **each}, arch)
        if error is None:
            refuse(message, "leave it out of the configs", LaunchError)
        errors = [_refused(self.kernel, {**others, **one}, arch) for one in self.configs]
        if {other.message if other else "" for other in errors} == {error.message}:
            raise error
        fix = f"{error.help}; or " if error.help else ""
        raise LaunchError(message, at=error.at, help=f"{fix}leave it out of the configs")

    def _cheapest(self, fitting: list[Config], key: Config) -> list[Config]:
        """Return the `most` cheapest configurations, cheapest first; all of them, unsorted, without a cost function."""
        if self.cost is None:
            return fitting
        names = inspect.signature(self.cost).parameters
        known = [{**self.kernel.signature.constants, **key, **each} for each in fitting]
        costs = [self.cost(**{name: constants[name] for name in names}) for constants in known]
        for each, number in zip(fitting, costs, strict=True):
            if not isinstance(number, int | float | np.number):
                refuse(
                    f"`cost` of tuned kernel `{self.name}` returned {number!r} for {self._label(each)}",
                    "return a number; lower means faster",
                    LaunchError,
                )
        order = sorted(range(len(fitting)), key=lambda number: costs[number])
        return [fitting[number] for number in order[: self.most]]

    def _label(self, each: Config) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in each.items())

    def _code(self, options: Mapping[str, Config]) -> str:
        """Return a key that separates the kernel and its candidates from other kernels of its name."""
        digest = hashlib.sha256()
        _add_code(digest, self.kernel.signature.function.__code__)
        return f"{digest.hexdigest()} {sorted(options)}"


class TunedLaunch:
    """The result of `kernel[grid, block]` of a tuned kernel; call it with the arguments to launch."""

    __slots__ = ("block", "grid", "tuned")

    def __init__(self, tuned: TunedKernel, grid: Shaped, block: Shaped) -> None:
        self.tuned, self.grid, self.block = tuned, grid, block

    @public
    @UNTRACEABLE
    def __call__(self, *arguments: Any, **options: Any) -> None:
        """Launch with the best constants, which are measured at the first launch with each key.

        The options are those of any launch. Pass constants that are not tuned by name.
        """
        tuned = self.tuned
        if len(arguments) != len(tuned.kernel.signature.names):
            tuned.kernel[1, 1](*arguments, **tuned.configs[0])  # raises the error of a normal launch
        if options and (both := [name for name in options if any(name in each for each in tuned.configs)]):
            refuse(
                f"`{both[0]}` of `{tuned.name}` is tuned, so a launch cannot set it",
                f"leave it out, or launch the kernel itself: `{tuned.name}.kernel[grid, block](…, {both[0]}=…)`",
                LaunchError,
            )
        device = None if config.current().device == "emulator" else gpu_among(arguments)
        asked = device, tuned.key_of(arguments, options)
        best = tuned.best.get(asked)
        if best is None:
            ask = _Ask(self.grid, self.block, arguments, options)
            best = tuned.best[asked] = tuned.choose(ask, device, asked[1])
        constants = {**options, **best}
        grid, block = (_shape(tuned, name, getattr(self, name), constants) for name in ("grid", "block"))
        tuned.kernel[grid, block](*arguments, **constants)


def _launch(tuned: TunedKernel, ask: _Ask, each: Config) -> Run:
    constants = {**ask.options, **each}
    grid, block = (_shape(tuned, name, getattr(ask, name), constants) for name in ("grid", "block"))
    return lambda: tuned.kernel[grid, block](*ask.arguments, **constants)


def _shape(tuned: TunedKernel, name: str, shape: Shaped, constants: Config) -> int | tuple[int, ...]:
    """Return a grid or block; call it with its constants if it is a function."""
    if not callable(shape):
        return shape
    known = {**tuned.kernel.signature.constants, **constants}
    wanted = list(inspect.signature(shape).parameters)
    for each in wanted:
        if each not in known:
            refuse(
                f"the {name} of `{tuned.name}` is a function of `{each}`, which is not a constant of the kernel",
                f"its constants are {', '.join(tuned.kernel.signature.constants)}",
                LaunchError,
            )
    return shape(**{each: known[each] for each in wanted})


def _key_value(value: Any) -> Hashable:
    array = None if isinstance(value, int | float | str | bool | type(None)) else arrays.describe(value)
    return value if array is None else (str(array.type or array.dtype), array.shape)


def _stream(ask: _Ask, device: int) -> int:
    """Return the stream of a launch."""
    if ask.options.get("stream") is not None:
        return stream_handle(ask.options["stream"])
    libraries = [arrays.library_of(type(argument)) for argument in ask.arguments]
    return current_stream(libraries, [], device)


def _add_code(digest: Any, code: CodeType) -> None:
    """Add the bytecode of a function and its inner functions to a digest, without line numbers."""
    digest.update(code.co_code + repr((code.co_names, code.co_varnames)).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add_code(digest, constant)
        else:
            digest.update(repr(constant).encode())


def _why_not(kernel: Kernel, constants: Mapping[str, Any], block: object, arch: str, assembles: bool) -> str:
    """Return the reason why a kernel with these constants does not fit a target, or an empty string if it fits.

    With `assembles`, the kernel is assembled and its registers are checked, too.
    """
    try:
        threads = launch_shape(1, block).threads
        variant = kernel.variant(arch, dict(constants))
        if (shared := variant.static_bytes + (variant.dynamic_bytes or 0)) > limits.shared_bytes(arch):
            return f"it needs {shared} bytes of shared memory, but a block on {arch} has {limits.shared_bytes(arch)}"
        if not assembles:
            return ""
        resources = variant.cubin.kernels.get(variant.name)
    except Error as error:
        return error.message
    if resources is not None and threads > min(THREADS_PER_BLOCK, limits.most_threads(resources.registers)):
        return f"{threads} threads with {resources.registers} registers each exceed the register file of {arch}"
    return ""


def _refused(kernel: Kernel, constants: Mapping[str, Any], arch: str) -> Error | None:
    """Return the error of tracing the kernel with these constants; None if it can be traced."""
    try:
        kernel.variant(arch, dict(constants))
    except Error as error:
        return error
    return None


@public
@called_elsewhere(
    **dict.fromkeys(("warmup", "rep", "do_bench"), _TIMED),
    **dict.fromkeys(("prune_configs_by", "early_config_prune", "perf_model", "top_k"), _PRUNED),
    **dict.fromkeys(("restore_value", "reset_to_zero", "pre_hook", "post_hook"), _RESTORED),
    cache_results="the best config is always cached on disk; PTXDSL_CACHE_DIR=off disables the cache",
)
def autotune(
    configs: Iterable[Config],
    *,
    key: Sequence[str] = (),
    cost: Callable[..., float] | None = None,
    most: int = MOST,
) -> Callable[[Kernel], TunedKernel]:
    """Launch a kernel with the fastest of several sets of constants; put it above `@pd.kernel`.

    `configs` are dicts of constants. `key` names parameters and constants. For each new combination of their values
    (numbers by value, arrays by type and shape), the first launch on a GPU finds the best config. It skips configs that
    the GPU cannot run, keeps the `most` cheapest by `cost`, and times single launches of these after a rest, with a
    cold L2 cache. `cost` is a function of constants and key values, by name. Arrays are restored before each launch.
    The best config is stored on disk (`ptxdsl cache` lists it) by the kernel's text, GPU and key, and other processes
    reuse it. A terminal shows the progress. On the emulator nothing is timed: the cheapest config is used, or the first
    that fits.

    `kernel[grid, block](…)` launches; grid and block may be functions of constants: `k[lambda tile: n // tile, 128]`.
    Raises TraceError for a config or a key that does not match the kernel and, at a launch, LaunchError for a config
    that fits no GPU at all.
    """

    if callable(configs) or isinstance(configs, Kernel):
        refuse(
            f"the first argument of pd.autotune must be a list of configs, got {configs!r}",
            "write `@pd.autotune([{'tile': 64}, {'tile': 128}], key=[\"n\"])` above @pd.kernel",
        )
    tried = [*configs] if isinstance(configs, Iterator) else configs

    @public
    def make(kernel: Kernel) -> TunedKernel:
        if not isinstance(kernel, Kernel):
            refuse(
                f"pd.autotune decorates a kernel, got {kernel!r}",
                "put it above @pd.kernel, which makes a kernel of a function",
            )
        _check_configs(kernel, tried)
        _check_key(kernel, key, tried)
        _check_cost(kernel, cost, key)
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            refuse(
                f"`most` of tuned kernel `{kernel.name}` is {most!r}",
                "pass the maximum number of configs to time, 1 or more",
            )
        return TunedKernel(kernel, [dict(each) for each in tried], key, cost, most)

    return make


def _check_configs(kernel: Kernel, configs: Any) -> None:
    constants = kernel.signature.constants
    help = f"pass dicts of its constants, such as [{{{next(iter(constants), 'tile')!r}: …}}]"
    if not isinstance(configs, list | tuple) or not configs or not all(isinstance(each, Mapping) for each in configs):
        refuse(f"`configs` of tuned kernel `{kernel.name}` is {configs!r}", help)
    for number, each in enumerate(configs, 1):
        for name in each:
            if name not in constants:
                refuse(
                    f"config {number} of tuned kernel `{kernel.name}` sets `{name}`, which is not a constant of the "
                    "kernel",
                    f"its constants are {', '.join(constants)}"
                    if constants
                    else "constants are keyword-only parameters",
                )


def _check_key(kernel: Kernel, key: Any, configs: Iterable[Config]) -> None:
    names = kernel.signature.names
    others = [name for name in kernel.signature.constants if not any(name in each for each in configs)]
    if isinstance(key, str) or not all(isinstance(name, str) for name in key):
        refuse(f"`key` of tuned kernel `{kernel.name}` is {key!r}", 'pass names: key=["n"]')
    for name in key:
        if name not in (*names, *others):
            tuned = any(name in each for each in configs)
            why = "is a tuned constant" if tuned else "is not an argument of the kernel"
            refuse(
                f"`key` of tuned kernel `{kernel.name}` names `{name}`, which {why}",
                f"it can name {', '.join((*names, *others))}",
            )


def _check_cost(kernel: Kernel, cost: Any, key: Sequence[str]) -> None:
    if cost is None:
        return
    known = [*kernel.signature.constants, *key]
    if not callable(cost):
        refuse(f"`cost` of tuned kernel `{kernel.name}` is {cost!r}", "pass a function")
    for name in inspect.signature(cost).parameters:
        if name not in known:
            refuse(
                f"`cost` of tuned kernel `{kernel.name}` takes `{name}`, which is neither a constant nor in the key",
                f"it can take {', '.join(known)}",
            )
