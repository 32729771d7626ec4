"""Settings from environment variables, as one typed object.

| variable | field | values |
|---|---|---|
| PTXDSL_CACHE_DIR | cache_dir | a folder, or `off`; default `$XDG_CACHE_HOME/ptxdsl`, `~/.cache/ptxdsl` |
| PTXDSL_DUMP | dump | `ptx`, `cubin`, `sass` (comma-separated) or `all`; default none |
| PTXDSL_DUMP_DIR | dump_dir | a folder; default `ptxdsl-dump` |
| PTXDSL_DEVICE | device | `emulator` or `cuda`; default: the device of the arrays |
| PTXDSL_ARCH | arch | `sm_80` … `sm_121f`; default: that of the GPU |
| PTXDSL_LINEINFO | lineinfo | `on` or `off`: Python lines in the PTX and the cubin; default on |
| PTXDSL_NUMERICS | numerics | `rounded` (default); `h200`: the bits of an H200 in mma and .approx; `b200`: of a B200 |
| PTXDSL_CHECKS | checks | `on` or `off`: checks on the emulator besides bounds and alignment; default on |
| PTXDSL_STRICT | strict | `on` or `off`: strict findings are errors in parsed PTX too; default off |
| PTXDSL_SCHEDULE | schedule | `lockstep` (default), `skewed`, `random` or `random:SEED`: the order of warps |
| PTXDSL_STEPS | steps | the maximal number of steps of a launch on the emulator; default: no limit |
| PTXDSL_SECONDS | seconds | the maximal duration of an emulated launch, its preparation included; default: no limit |
| PTXDSL_ASSEMBLER | assembler | `nvjitlink`, `ptxas` or `driver`; default: the first one available |
| PTXDSL_SPILLS | spills | `error` (default) or `warn`: register spills in a kernel with wgmma or setmaxnreg |
| PTXDSL_DEPENDENT_LAUNCH | dependent_launch | `on` (default) or `off`: programmatic dependent launch |
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from ptxdsl.errors import Error, caller, meant

ARCHITECTURES = (
    "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_103", "sm_103a",
    "sm_103f", "sm_110", "sm_110a", "sm_110f", "sm_120", "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f",
)  # fmt: skip
OLDER = (
    "sm_50",
    "sm_52",
    "sm_53",
    "sm_60",
    "sm_61",
    "sm_62",
    "sm_70",
    "sm_72",
    "sm_75",
)  # no kernels are written for these
ASSEMBLERS = ("nvjitlink", "ptxas", "driver")
DEVICES = ("emulator", "cuda")
NUMERICS = ("rounded", "h200", "b200")
DUMPS = ("ptx", "cubin", "sass")
SPILLS = ("error", "warn")


def _architecture(text: str) -> str:
    if text in ARCHITECTURES:
        return text
    raise ValueError(f"one of {', '.join(ARCHITECTURES)}")


def why_no_target(arch: str) -> tuple[str, str]:
    """Return the message and the help for a target outside ARCHITECTURES."""
    known = f"known architectures are {', '.join(ARCHITECTURES)}"
    if arch in OLDER:
        return f"`{arch}` is not supported; the oldest target is sm_80", known
    near = meant(f"sm_{arch}" if str(arch)[:1].isdigit() else str(arch), ARCHITECTURES, cutoff=0.75)
    return f"unknown architecture `{arch}`", f"{f'{near} ' if near else ''}{known}"


def _one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text in choices:
            return text
        raise ValueError(f"{', '.join(choices[:-1])} or {choices[-1]}")

    return read


def _switch(text: str) -> bool:
    if text.lower() in ("on", "1", "true", "yes"):
        return True
    if text.lower() in ("off", "0", "false", "no"):
        return False
    raise ValueError("on or off")


def _schedule(text: str) -> str:
    kind, colon, seed = text.partition(":")
    if text in ("lockstep", "skewed", "random") or (kind == "random" and colon and seed.isascii() and seed.isdigit()):
        return text
    raise ValueError("lockstep, skewed, random or random:SEED, with a number as seed")


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 19 and int(text) > 0:
        return int(text)
    raise ValueError("a whole number of 1 or more")


def _duration(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError("a number of seconds above 0")
    return seconds


def _stages(text: str) -> frozenset[str]:
    names = {name.strip() for name in text.split(",") if name.strip()}
    if not names <= {*DUMPS, "all"}:
        raise ValueError(f"{', '.join(DUMPS)} (comma-separated) or all")
    return frozenset(DUMPS if "all" in names else names)


def _folder_or_off(text: str) -> Path | None:
    return None if text.lower() == "off" else Path(text).expanduser()


def _default_cache() -> Path | None:
    """Return None, as if the cache were off, if the user has no home folder."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "ptxdsl") if os.path.isabs(base) else None


def _from(variable: str, read: Callable[[str], Any], *, in_key: bool) -> dict[str, Any]:
    """Return field metadata: its variable, its parser, and True in `in_key` if a compiled kernel depends on it."""
    return {"variable": variable, "read": read, "in_key": in_key}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of this process; see the table above."""

    cache_dir: Path | None = field(
        default_factory=_default_cache, metadata=_from("PTXDSL_CACHE_DIR", _folder_or_off, in_key=False)
    )
    dump: frozenset[str] = field(default=frozenset(), metadata=_from("PTXDSL_DUMP", _stages, in_key=False))
    dump_dir: Path = field(default=Path("ptxdsl-dump"), metadata=_from("PTXDSL_DUMP_DIR", Path, in_key=False))
    device: str | None = field(default=None, metadata=_from("PTXDSL_DEVICE", _one_of(DEVICES), in_key=False))
    arch: str | None = field(default=None, metadata=_from("PTXDSL_ARCH", _architecture, in_key=True))
    lineinfo: bool = field(default=True, metadata=_from("PTXDSL_LINEINFO", _switch, in_key=True))
    numerics: str = field(default="rounded", metadata=_from("PTXDSL_NUMERICS", _one_of(NUMERICS), in_key=False))
    checks: bool = field(default=True, metadata=_from("PTXDSL_CHECKS", _switch, in_key=False))
    strict: bool = field(default=False, metadata=_from("PTXDSL_STRICT", _switch, in_key=False))
    schedule: str = field(default="lockstep", metadata=_from("PTXDSL_SCHEDULE", _schedule, in_key=False))
    steps: int | None = field(default=None, metadata=_from("PTXDSL_STEPS", _count, in_key=False))
    seconds: float | None = field(default=None, metadata=_from("PTXDSL_SECONDS", _duration, in_key=False))
    assembler: str | None = field(default=None, metadata=_from("PTXDSL_ASSEMBLER", _one_of(ASSEMBLERS), in_key=True))

    spills: str = field(default="error", metadata=_from("PTXDSL_SPILLS", _one_of(SPILLS), in_key=True))
    dependent_launch: bool = field(default=True, metadata=_from("PTXDSL_DEPENDENT_LAUNCH", _switch, in_key=False))

    @property
    def key(self) -> tuple[object, ...]:
        """Return the settings that a compiled kernel depends on, for cache keys."""
        return tuple(getattr(self, f.name) for f in fields(self) if f.metadata["in_key"])


_SETTINGS: dict[str, Field[Any]] = {f.name: f for f in fields(Config)}
_VARIABLES = (*(f.metadata["variable"] for f in _SETTINGS.values()), "XDG_CACHE_HOME", "HOME")
_override: ContextVar[Config | None] = ContextVar("ptxdsl_config", default=None)


_environment: Mapping[Any, Any] = getattr(
    os.environ, "_data", os.environ
)  # the mapping that os.environ reads, without its overhead
_encoded: Callable[[str], Any] = getattr(os.environ, "encodekey", str)
_overriding, _of_environment = _override.get, _environment.get
_NAMES = tuple(map(_encoded, _VARIABLES))
_DEVICE, _ARCH, _DEPENDENT_LAUNCH = map(_encoded, ("PTXDSL_DEVICE", "PTXDSL_ARCH", "PTXDSL_DEPENDENT_LAUNCH"))


def deciding() -> tuple[Any, ...]:
    """Return the current values that decide the device, the target and dependent launch of a kernel.

    Equal as long as nothing has changed. Takes 0.1 µs, so that each launch can call it.
    """
    return _overriding(), _of_environment(_DEVICE), _of_environment(_ARCH), _of_environment(_DEPENDENT_LAUNCH)


def allows_dependent_launches() -> bool:
    """Return `current().dependent_launch`, in 0.1 µs if the environment does not set it."""
    override = _overriding()
    if override is None and not _of_environment(_DEPENDENT_LAUNCH):
        return True
    return (override or current()).dependent_launch


def current() -> Config:
    """Return the settings in force: those of `using`, else those of the environment.

    An empty variable counts as not set. Takes 1 µs; a launch on a GPU calls `deciding` instead. Raises Error for an
    invalid value.
    """
    return _override.get() or _read(tuple(map(_environment.get, _NAMES)))


@contextmanager
def using(**changes: Any) -> Iterator[Config]:
    """Override settings for the body of a `with`, in this thread or task: `with config.using(arch="sm_90a"):`.

    A string is parsed like the variable. Raises Error for an unknown setting or an invalid value.
    """
    for name in changes.keys() - _SETTINGS.keys():
        near, listing = meant(name, _SETTINGS), f"the settings are {', '.join(_SETTINGS)}"
        raise Error(f"unknown setting `{name}`", at=caller(), help=f"{near} {listing}" if near else listing)
    texts = {name: value for name, value in changes.items() if isinstance(value, str)}
    read = {name: _value(name, _SETTINGS[name], text) for name, text in texts.items()}
    changed = replace(current(), **changes | read)
    token = _override.set(changed)
    try:
        yield changed
    finally:
        _override.reset(token)


@lru_cache(maxsize=16)
def _read(values: tuple[bytes | None, ...]) -> Config:
    """Parse the values of `_VARIABLES`; the last two serve the default of `cache_dir`."""
    texts = [os.fsdecode(value or b"") for value in values[:-2]]
    settings = zip(_SETTINGS.values(), texts, strict=True)
    return Config(**{f.name: _value(f.metadata["variable"], f, text) for f, text in settings if text})


def _value(called: str, setting: Field[object], text: str) -> Any:
    try:
        return setting.metadata["read"](text)
    except ValueError as expected:
        near = get_close_matches(text.lower(), re.findall(r"[\w:]+", str(expected)), 1, 0.75)
        help = f"did you mean `{near[0]}`?" if near else "use one of these, or leave it unset"
        raise Error(f"{called} is `{text}`; it must be {expected}", help=help) from None
