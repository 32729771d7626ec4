"""What users set in the environment, as one typed object: the cache, the dumps, the device, the target, the assembler.

| variable | field | values |
|---|---|---|
| PTXDSL_CACHE_DIR | cache_dir | a folder, or `off`; default `$XDG_CACHE_HOME/ptxdsl`, `~/.cache/ptxdsl` |
| PTXDSL_DUMP | dump | `ptx`, `cubin`, `sass` (comma-separated) or `all`; default none |
| PTXDSL_DUMP_DIR | dump_dir | a folder; default `ptxdsl-dump` |
| PTXDSL_DEVICE | device | `emulator` or `cuda`; default: where the arrays are |
| PTXDSL_ARCH | arch | `sm_80` … `sm_121f`; default: that of the GPU |
| PTXDSL_LINEINFO | lineinfo | `on` or `off`: Python lines in the PTX and the cubin; default on |
| PTXDSL_ASSEMBLER | assembler | `nvjitlink`, `ptxas` or `driver`; default: the first that is there |
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import Field, dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from .errors import Error

ARCHITECTURES = (
    "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_103", "sm_103a",
    "sm_103f", "sm_110", "sm_110a", "sm_110f", "sm_120", "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f",
)  # fmt: skip
ASSEMBLERS = ("nvjitlink", "ptxas", "driver")
DEVICES = ("emulator", "cuda")
DUMPS = ("ptx", "cubin", "sass")


def _architecture(text: str) -> str:
    if text in ARCHITECTURES:
        return text
    raise ValueError(f"one of {', '.join(ARCHITECTURES)}")


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


def _stages(text: str) -> frozenset[str]:
    names = {name.strip() for name in text.split(",") if name.strip()}
    if not names <= {*DUMPS, "all"}:
        raise ValueError(f"{', '.join(DUMPS)} (comma-separated) or all")
    return frozenset(DUMPS if "all" in names else names)


def _folder_or_off(text: str) -> Path | None:
    return None if text.lower() == "off" else Path(text).expanduser()


def _default_cache() -> Path | None:
    """None, as if switched off, where the user has no home folder."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "ptxdsl") if os.path.isabs(base) else None


def _from(variable: str, read: Callable[[str], Any], *, in_key: bool) -> dict[str, Any]:
    """The variable that a field mirrors, how its text is read, and whether a compiled kernel depends on it."""
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
    assembler: str | None = field(default=None, metadata=_from("PTXDSL_ASSEMBLER", _one_of(ASSEMBLERS), in_key=True))

    @property
    def key(self) -> tuple[object, ...]:
        """The settings that a compiled kernel depends on, for the key of a cache of compiled kernels."""
        return tuple(getattr(self, f.name) for f in fields(self) if f.metadata["in_key"])


_SETTINGS: dict[str, Field[Any]] = {f.name: f for f in fields(Config)}
_VARIABLES = (*(f.metadata["variable"] for f in _SETTINGS.values()), "XDG_CACHE_HOME", "HOME")
_override: ContextVar[Config | None] = ContextVar("ptxdsl_config", default=None)


def current() -> Config:
    """The settings in force: those of `using`, else those of the environment as it is now.

    An empty variable counts as not set. Costs a few microseconds: ask when a kernel is specialised, not at each
    launch. Raises Error for a value that a variable cannot have.
    """
    return _override.get() or _read(tuple(os.environ.get(variable, "") for variable in _VARIABLES))


@contextmanager
def using(**changes: Any) -> Iterator[Config]:
    """Other settings for the body of a `with`, in this thread or task: `with config.using(arch="sm_90a"):`.

    A string is read as the variable would be. Raises Error for an unknown setting or value.
    """
    for name in changes.keys() - _SETTINGS.keys():
        raise Error(f"there is no setting `{name}`", help=f"the settings are {', '.join(_SETTINGS)}")
    texts = {name: value for name, value in changes.items() if isinstance(value, str)}
    read = {name: _value(name, _SETTINGS[name], text) for name, text in texts.items()}
    changed = replace(current(), **changes | read)
    token = _override.set(changed)
    try:
        yield changed
    finally:
        _override.reset(token)


@lru_cache(maxsize=16)
def _read(texts: tuple[str, ...]) -> Config:
    """The settings for the texts of `_VARIABLES`; the last two are there for the default of `cache_dir`."""
    settings = zip(_SETTINGS.values(), texts[:-2], strict=True)
    return Config(**{f.name: _value(f.metadata["variable"], f, text) for f, text in settings if text})


def _value(called: str, setting: Field[Any], text: str) -> Any:
    try:
        return setting.metadata["read"](text)
    except ValueError as expected:
        raise Error(
            f"{called} is `{text}`; it must be {expected}", help="use one of these, or leave it unset"
        ) from None
