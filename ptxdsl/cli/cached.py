"""The command `ptxdsl cache`: list or clear the cubins, traces and tuning results on disk."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ptxdsl import assemble, config
from ptxdsl.assemble import assembler_version, cache
from ptxdsl.cli.process import UsageError
from ptxdsl.kernels.choose.winners import read_winners
from ptxdsl.runtime import kept
from ptxdsl.tune import records
from ptxdsl.tune.records import TuningRecord

DESCRIPTION = "List or clear the cubins, traces and tuning results on disk."
SHOWN = 20  # entries of a list without --all
_DAY = 24 * 60 * 60
_AGES = (("day", _DAY), ("hour", 60 * 60), ("minute", 60), ("second", 1))


@dataclass(frozen=True, slots=True)
class KeptCubin:
    """An entry of the cache: cubins of kernels, `traced` PTX, a tuning result, the measured `winners` of a GPU by shape
    class, or the version of an `assembler`.

    All of these are empty if this version of ptxdsl does not use the entry.
    """

    entry: cache.CacheEntry
    kernels: tuple[str, ...]
    arch: str
    seconds: float
    tuning: TuningRecord | None = None
    traced: bool = False
    assembler: str | None = None
    winners: Mapping[str, str] = field(default_factory=dict)

    def facts(self) -> dict[str, object]:
        """Return the entry for JSON."""
        entry = self.entry
        return {
            "name": entry.name, "kernels": self.kernels, "arch": self.arch or None, "traced": self.traced,
            "assembler": self.assembler, "bytes": entry.bytes, "age_seconds": round(self.seconds),
            "tuning": None if self.tuning is None else asdict(self.tuning), "winners": self.winners,
        }  # fmt: skip

    def line(self) -> str:
        """Return the entry as a line of text."""
        holds = f"{', '.join(self.kernels)} for {self.arch}" if self.arch else "unused: from another version of ptxdsl"
        if self.assembler:
            holds = f"assembler version: {self.assembler}"
        if self.traced:
            holds += ", as PTX"
        if (tuned := self.tuning) is not None:
            holds = f"{tuned.kernel} tuned for {tuned.gpu}, {tuned.key}: {tuned.config}, {tuned.microseconds:.4g} us"
        if self.winners:
            holds = f"fastest configurations of {len(self.winners)} shape classes"
        return f"{self.entry.bytes:>10} bytes  {age(self.seconds):>10}  {holds}"


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
    cubins = [
        _kept(settings.cache_dir, entry, cubin, now)
        for entry, cubin in assemble.kept(settings)
        if now - entry.written >= options.older_than * _DAY
    ]
    if options.action == "clear":
        left = [cubin for cubin in cubins if not cache.remove(folder, cubin.entry)]
        if left:
            raise UsageError(f"{len(left)} of {len(cubins)} entries of {folder} cannot be removed")
    if options.json:
        key = "entries" if options.action == "list" else "removed"
        print(json.dumps({"folder": str(folder), key: [cubin.facts() for cubin in cubins]}, indent=2))
    else:
        print(_text(folder, cubins, options))
    return 0


def _kept(folder: Path | None, entry: cache.CacheEntry, cubin: assemble.Cubin | None, now: float) -> KeptCubin:
    """Return the contents of an entry."""
    if cubin is not None:
        return KeptCubin(entry, tuple(cubin.kernels), cubin.arch, now - entry.written)
    content = cache.load(folder, entry.name)
    trace = kept.read(content)
    if trace is not None:
        return KeptCubin(entry, (trace.kernel,), trace.arch, now - entry.written, traced=True)
    tuning = None if content is None else records.read(content)
    assembler, winners = assembler_version.read(content), read_winners(content)
    return KeptCubin(entry, (), "", now - entry.written, tuning, assembler=assembler, winners=winners)


def _text(folder: Path, cubins: Sequence[KeptCubin], options: argparse.Namespace) -> str:
    total = sum(cubin.entry.bytes for cubin in cubins)
    is_clear = options.action == "clear"
    summary = (
        f"{len(cubins)} {'entry' if len(cubins) == 1 else 'entries'} {'removed' if is_clear else 'kept'}, "
        f"{total} bytes, in {folder}"
    )
    if is_clear:
        return summary
    latest = cubins if options.all else sorted(cubins, key=lambda cubin: cubin.seconds)[:SHOWN]
    if len(latest) < len(cubins):
        summary += f"; the {SHOWN} latest are listed, --all lists all"
    return "\n".join([*(cubin.line() for cubin in latest), summary])
