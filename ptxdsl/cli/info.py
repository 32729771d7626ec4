"""The command `ptxdsl info`: print the facts that a bug report needs."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from typing import Any

from ptxdsl import __version__, config, driver
from ptxdsl.assemble import assemblers, cache
from ptxdsl.cli.options import write
from ptxdsl.errors import Error

DESCRIPTION = "Print versions, the driver, the GPUs, the assembler, the cache and the settings in effect."
PACKAGES = ("numpy", "cuda-python", "nvidia-nvjitlink", "ml_dtypes", "rich", "torch", "jax")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    known = facts()
    write(None, json.dumps(known, indent=2) + "\n" if options.json else text(known))
    return 0


def facts() -> dict[str, Any]:
    """Return the facts by name: texts, numbers, lists and dicts. Sizes are in bytes; None marks missing parts."""
    reason = driver.why_no_gpu()
    return {
        "ptxdsl": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "executable": sys.executable,
        "packages": {name: _version(name) for name in PACKAGES},
        "driver": _driver_version() if not reason else None,
        "gpus": [] if reason else [str(driver.device(number)) for number in range(driver.device_count())],
        "no_gpu": reason,
        **_assembler(),
        "cache": _cache(),
        "settings": {name: value for name, value in sorted(os.environ.items()) if name.startswith("PTXDSL_")},
    }


def text(known: dict[str, Any]) -> str:
    """Return the facts as lines of text."""
    packages = [f"{name} {version or '-'}" for name, version in known["packages"].items()]
    cached, gpus = known["cache"], known["gpus"] or [f"none: {known['no_gpu']}"]
    rows = [
        ("ptxdsl", known["ptxdsl"]),
        ("python", f"{known['python']} ({known['executable']})"),
        ("platform", known["platform"]),
        *_column("packages", packages),
        ("driver", f"CUDA {known['driver']}" if known["driver"] else "none"),
        *_column("GPUs", gpus),
        ("assembler", known["assembler"] or f"none: {known['no_assembler']}"),
        ("cache", f"{cached['folder']}: {cached['entries']} entries, {cached['bytes']} bytes" if cached else "off"),
        *_column("settings", [f"{name}={value}" for name, value in known["settings"].items()] or ["defaults"]),
    ]
    return "".join(f"{name:11}{value}\n" for name, value in rows)


def _column(name: str, values: list[str]) -> list[tuple[str, str]]:
    return [(name if number == 0 else "", value) for number, value in enumerate(values)]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _driver_version() -> str:
    """Return the highest CUDA version that the driver supports."""
    number = int(driver.call("asking for the driver's version", driver.cuda.cuDriverGetVersion))
    return f"{number // 1000}.{number % 1000 // 10}"


def _assembler() -> dict[str, str | None]:
    try:
        return {"assembler": assemblers.choose(config.current().assembler).describe(), "no_assembler": None}
    except Error as missing:
        return {"assembler": None, "no_assembler": missing.message}


def _cache() -> dict[str, Any] | None:
    folder = config.current().cache_dir
    if folder is None:
        return None
    entries = cache.entries(folder)
    return {"folder": str(folder), "entries": len(entries), "bytes": sum(entry.bytes for entry in entries)}
