"""The command `ptxdsl cache`: list or clear the cubins, traces and tuning results on disk."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ptxdsl import assemble, config
from ptxdsl.assemble import assembler_version, cache
from ptxdsl.cli.process import UsageError
from ptxdsl.kernels.choose.winners import read_winners
from ptxdsl.runtime.kept import read as read_trace
from ptxdsl.tune import records

DESCRIPTION = "List or clear the cubins, traces and tuning results on disk."
SHOWN = 20  # entries of a list without --all
_DAY = 24 * 60 * 60
_AGES = (("day", _DAY), ("hour", 60 * 60), ("minute", 60), ("second", 1))


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("action", nargs="?", choices=("list", "clear"), default="list", help="default list")
    parser.add_argument("--older-than", type=_days, metavar="DAYS", default=0.0, help="only entries at least this old")
    parser.add_argument("--all", action="store_true", help=f"list all entries, not only the {SHOWN} latest")
    parser.add_argument("--json", action="store_true", help="print JSON")


def age(seconds: float) -> str:
    """Return the age in the largest unit that fits: `3 days`."""
    unit, size = next(((unit, size) for unit, size in _AGES if seconds >= size), _AGES[-1])
    count = max(0, int(seconds // size))
    return f"{count} {unit}{'s' * (count != 1)}"


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days")
    return days


def run(options: argparse.Namespace) -> int:
    settings = config.current()
    folder = settings.cache_dir
    if folder is None:
        raise UsageError("the cache is switched off", help="PTXDSL_CACHE_DIR is `off`; set it to a folder")
    now = time.time()
    kept = [
        (entry, _facts(folder, entry, cubin, now))
        for entry, cubin in assemble.kept(settings)
        if now - entry.written >= options.older_than * _DAY
    ]
    if options.action == "clear":
        left = [entry for entry, _ in kept if not cache.remove(folder, entry)]
        if left:
            raise UsageError(f"{len(left)} of {len(kept)} entries of {folder} cannot be removed")
    entries = [facts for _, facts in kept]
    if options.json:
        key = "entries" if options.action == "list" else "removed"
        print(json.dumps({"folder": str(folder), key: entries}, indent=2))
    else:
        print(_text(folder, entries, options))
    return 0


def _facts(folder: Path, entry: cache.CacheEntry, cubin: assemble.Cubin | None, now: float) -> dict[str, Any]:
    """Return what an entry holds: cubins of kernels, `traced` PTX, a tuning result, the measured `winners` of a GPU by
    shape class, or the version of an `assembler`; none of these if this version of ptxdsl does not use the entry.
    """
    facts: dict[str, Any] = {
        "name": entry.name, "kernels": (), "arch": None, "traced": False, "assembler": None, "bytes": entry.bytes,
        "age_seconds": round(now - entry.written), "tuning": None, "winners": {},
    }  # fmt: skip
    if cubin is not None:
        return facts | {"kernels": tuple(cubin.kernels), "arch": cubin.arch}
    content = cache.load(folder, entry.name)
    trace = read_trace(content)
    if trace is not None:
        return facts | {"kernels": (trace.kernel,), "arch": trace.arch, "traced": True}
    tuning = None if content is None else records.read(content)
    return facts | {
        "tuning": None if tuning is None else asdict(tuning),
        "assembler": assembler_version.read(content),
        "winners": read_winners(content),
    }


def _line(facts: Mapping[str, Any]) -> str:
    """Return an entry as a line of text."""
    holds = "unused: from another version of ptxdsl"
    if facts["arch"]:
        holds = f"{', '.join(facts['kernels'])} for {facts['arch']}{', as PTX' * facts['traced']}"
    elif facts["assembler"]:
        holds = f"assembler version: {facts['assembler']}"
    elif facts["winners"]:
        holds = f"fastest configurations of {len(facts['winners'])} shape classes"
    elif facts["tuning"]:
        holds = "{kernel} tuned for {gpu}, {key}: {config}, {microseconds:.4g} us".format(**facts["tuning"])
    return f"{facts['bytes']:>10} bytes  {age(facts['age_seconds']):>10}  {holds}"


def _text(folder: Path, entries: Sequence[Mapping[str, Any]], options: argparse.Namespace) -> str:
    is_clear = options.action == "clear"
    summary = (
        f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'} {'removed' if is_clear else 'kept'}, "
        f"{sum(facts['bytes'] for facts in entries)} bytes, in {folder}"
    )
    if is_clear:
        return summary
    latest = entries if options.all else sorted(entries, key=lambda facts: facts["age_seconds"])[:SHOWN]
    if len(latest) < len(entries):
        summary += f"; the {SHOWN} latest are listed, --all lists all"
    return "\n".join([*map(_line, latest), summary])
