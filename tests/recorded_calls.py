"""Replay random calls of the public functions of `ptxdsl.kernels`, and record the launches that they would make.

    python -m tests.recorded_calls record FILE [--count N] [--plans] [--jobs N]
    python -m tests.recorded_calls compare FILE [--count N] [--plans] [--jobs N] [--show N]

Calls are drawn from `tests.random_calls` and `tests.shipped` by fixed seeds. Nothing is executed: kernels are traced,
and their arguments are checked. The record has one line of JSON for each call, with the kernel, grid, block, shared
memory, arguments and a hash of the PTX of each launch, or the text of the refusal. A change of the structure of
`ptxdsl/kernels` must leave it identical. With `--plans` kernels are not traced: the record has the constants that they
are made for, as Python shows them, which takes a twentieth of the time and is for a change of `call/`, `candidates/`
or `choose/` alone."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import os
import random
import re
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from ptxdsl import Parameters, config
from ptxdsl.arrays import HOST, Array, Struct, describe, unwrapped
from ptxdsl.errors import Error
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.runtime import dispatch
from ptxdsl.runtime.shape import launch_shape
from ptxdsl.runtime.values import packed
from ptxdsl.runtime.variant import Variant
from ptxdsl.schedule import PersistentScheduler
from tests.machines import NAMES
from tests.random_calls.call import Call, OnEmulator, Placed, shown, views_of
from tests.random_calls.drawing import LARGE, SMALL
from tests.random_calls.many import drawn
from tests.shipped.calls import FP8, KINDS
from tests.shipped.drawing import Draw, TooLarge

COUNT, CHUNK = 5000, 50  # calls; calls of a process
CONFIGS: tuple[tuple[int, int, int, dict[str, Any]], ...] = (  # M and N of a tile, stages, other fields
    (64, 64, 4, {}),
    (128, 128, 4, {}),
    (128, 256, 4, {}),
    (192, 192, 3, {}),
    (128, 208, 3, {"stagger": 1}),
    (64, 256, 4, {"pingpong": True}),
    (64, 128, 4, {"pingpong": True}),
    (16, 128, 6, {"swap_ab": True}),
    (32, 64, 4, {"swap_ab": True}),
    (64, 128, 4, {"swap_ab": True, "stagger": 2}),
    (128, 128, 4, {"copies_rows": True}),
    (128, 128, 4, {"split_k": 2, "reduction": "cluster"}),
    (128, 128, 4, {"schedule": PersistentScheduler()}),
)
TYPES = (np.float16, np.float32, np.int32, np.complex64)


class FixedDraw(Draw):
    """Draws configurations from a fixed list: the ranking of candidates has no influence on which calls are drawn."""

    input_type = "f16"

    def inputs(self, *names: str) -> str:
        self.input_type = super().inputs(*names)
        return self.input_type

    def one_of(self, choices: Sequence[Any]) -> Any:
        chosen = super().one_of(choices)
        if choices == FP8:
            self.input_type = chosen
        return chosen

    def candidate(self, known: object) -> GemmConfig | None:
        if self.chance(0.4):
            return None
        m, n, stages, fields = self.one_of(CONFIGS)
        return GemmConfig((m, n, 128 // NAMES[self.input_type].itemsize), stages=stages, atom=WGMMA, **fields)


def recorded(number: int, plans: bool = False) -> dict[str, Any]:
    """Return the record of a call."""
    launches: list[list[Any]] = []
    with (planning_to if plans else launching_to)(launches):
        described, refusal = called(number)
    record: dict[str, Any] = {"number": number, "call": without_addresses(described)}
    return record | ({"refusal": without_addresses(refusal)} if refusal else {}) | {"launches": launches}


def called(number: int) -> tuple[str, str]:
    """Make the call of a number; return its description and the text of its refusal."""
    kind, seed = number % 7, number // 7
    if kind < 2:
        draw = FixedDraw(seed * 2 + kind)
        function = draw.random.choices([*KINDS], [*KINDS.values()])[0]
        with config.using(arch="sm_90a"):
            return f"{function.__name__} (seed {seed * 2 + kind} of tests.shipped)", refusal_of(lambda: function(draw))
    arch, most = ("sm_90a", "sm_80")[kind % 2], LARGE if kind in (4, 5) else SMALL
    with config.using(arch=arch):
        call = drawn(seed, arch, most)
        described = str(call)
        if kind == 6:
            described += damaged(call, random.Random(number))
        return described, refusal_of(Placed(call, OnEmulator()).launch)


def refusal_of(launch: Any) -> str:
    try:
        launch()
    except TooLarge:
        return "not drawn: too large"
    except (Error, TypeError, ValueError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def damaged(call: Call, random: random.Random) -> str:
    """Make an argument of a call wrong; return what was done."""
    views = [*views_of([call.arguments, call.options])]
    kind = random.choice(("type", "transposed", "shorter", "backwards", "read-only", "misaligned", "option", "option"))
    view = random.choice(views) if views else None
    if view is None or kind == "option":
        name, value = random.choice(
            (("alpha", "one"), ("beta", 1.0), ("config", "fast"), ("config", 3), ("epilogue", len), ("split_k", 0),
             ("schedule", "fastest"), ("reduction", "sum"), ("operands", (1,)), ("validate", 2), ("sort", None), ("out", None),
             ("pad", -1), ("stride", 0), ("balance", "m"))
        )  # fmt: skip
        call.options[name] = value
        return f"damaged: {name}={shown(value)}"
    array = view.array
    if kind == "type":
        with np.errstate(invalid="ignore"):
            view.array = array.astype(random.choice(TYPES))
    elif kind == "transposed":
        view.array = array.swapaxes(0, -1)
    elif kind == "shorter":
        view.array = array[: max(0, len(array) - 1)]
    elif kind == "backwards":
        view.array = array[::-1]
    elif kind == "misaligned":
        view.array = array[..., 1:]
    else:
        view.array = array.view()
        view.array.flags.writeable = False
    view.base = view.array.base if view.array.base is not None else view.array
    call.arguments = replaced(call.arguments, view)
    call.options = {name: replaced(value, view) for name, value in call.options.items()}
    return f"damaged: {kind} {view.array.dtype}{view.array.shape}"


def replaced(value: Any, view: Any) -> Any:
    """Return a value with the array of a view instead of the view."""
    if value is view:
        return view.array
    if type(value) in (list, tuple):
        return type(value)(replaced(each, view) for each in value)
    if getattr(value, "array", None) is view:
        return type(value)(view.array)
    return value


@contextlib.contextmanager
def launching_to(launches: list[list[Any]]) -> Iterator[None]:
    """Append the trace and the checked arguments of each launch to a list instead of executing it."""

    def record(variant: Variant, asked: tuple[Any, ...], arguments: Sequence[Any], overlap: bool) -> None:
        shape, signature = launch_shape(*asked), variant.signature
        values = signature.check(signature.flat(arguments), HOST, may_overlap=overlap)
        shared = shape.shared_bytes, [*(shape.cluster or ())], shape.dependent
        described = ", ".join(map(argument, signature.kinds, values, signature.names))
        launches.append([variant.name, [*shape.grid], [*shape.block], *shared, ptx_hash(variant.text), described])

    with mock.patch.object(dispatch, "emulation", SimpleNamespace(run=record)):
        yield


@contextlib.contextmanager
def planning_to(launches: list[list[Any]]) -> Iterator[None]:
    """Append the constants and the arguments of each launch to a list instead of tracing and executing it."""

    def record(
        kernel: Any, arguments: Sequence[Any], stream: Any, asked: Any, overlap: bool, constants: dict[str, Any]
    ) -> None:
        flat = [each for value in arguments for each in (value.flat if isinstance(value, Parameters) else [value])]
        described = ", ".join(argument(None, describe(unwrapped(each)) or each) for each in flat)
        made_for = without_addresses(repr(sorted(constants.items())))
        launches.append([kernel.name, repr(asked.grid), repr(asked.block), 0, [], False, made_for, described])

    untraced = SimpleNamespace(waits_for_others=False, shared_bytes=lambda asked: 0)
    with (
        mock.patch.object(dispatch, "_run", record),
        mock.patch.object(Kernel, "variant", lambda *_: untraced),
    ):
        yield


def argument(kind: Any, value: Any, name: str = "") -> str:
    """Describe an argument without its address; a table that deals tiles to blocks by its content as well."""
    if isinstance(value, Array):
        content = f" {zlib.crc32(value.view())}" if name.endswith("schedule") else ""
        return f"{value.type}{list(value.shape)}/{list(value.strides)}{content}"
    if isinstance(value, Struct):
        return f"struct of {len(value.content)}"
    return repr(value) if kind is None else packed(kind, value).hex()


def without_addresses(text: str) -> str:
    """Remove what differs from process to process: addresses, and lines of source."""
    text = re.sub(r"\b0x[0-9a-f]+", "0x…", text)
    return re.sub(r"[\w/]+\.py:\d+( \|.*\n[ ^]*)?", "a line", text)


def ptx_hash(text: str) -> str:
    return hashlib.sha256(normalised(text).encode()).hexdigest()[:16]


def normalised(text: str) -> str:
    """Return PTX with its own identifiers numbered by their first occurrence, without declarations of registers and
    without source locations, such as the names of Python functions in the section of debug strings."""
    text = text.partition("\n.section .debug_str")[0]
    lines = [line for line in text.splitlines() if not re.match(r"\s*(\.loc|\.file|//)", line)]
    types: dict[str, str] = {}
    for line in lines:
        if match := re.match(r"\s*\.reg (\.\w+) (.*);", line):
            for name in match[2].split(", "):
                prefix, _, count = name.partition("<")
                names = [prefix + str(n) for n in range(int(count.rstrip(">")))] if count else [name]
                types.update(dict.fromkeys(names, match[1]))
    own = {*re.findall(r"^\s*([\w$]+):", text, re.M), *re.findall(r"\.(?:entry|func) (?:\([^)]*\) )?([\w$]+)", text)}
    own |= {
        *re.findall(
            r"(?:\.param|\.shared|\.global|\.const|\.local)[^;,()%]*? ([\w$]+)(?:\[[^\]]*\])?\s*(?:[,;=)]|$)",
            text,
            re.M,
        )
    }
    numbers: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        name = match[0]
        if name in types:
            return numbers.setdefault(name, f"%{types[name]}{len(numbers)}")
        return numbers.setdefault(name, f"own{len(numbers)}") if name in own else name

    body = "\n".join(line for line in lines if not re.match(r"\s*\.reg ", line))
    return re.sub(r"%?[A-Za-z_$][\w$]*", renamed, body)


def chunk(numbers: Sequence[int], plans: bool) -> list[dict[str, Any]]:
    return [recorded(number, plans) for number in numbers]


def records(count: int, jobs: int, plans: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the records of calls that are spread evenly over all, so that a sample has each kind."""
    numbers = [n * COUNT // count for n in range(count)] if count <= COUNT else [*range(count)]
    numbers = sorted({number - number % 7 + n % 7 for n, number in enumerate(numbers)})
    chunks = [numbers[n : n + CHUNK] for n in range(0, len(numbers), CHUNK)]
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:  # traced kernels take memory
        for each in pool.imap(partial(chunk, plans=plans), chunks):
            yield from each


def compared(before: Iterable[dict[str, Any]], now: Iterable[dict[str, Any]], shown: int) -> int:
    """Print the differences of two records by kind; return how many calls differ."""
    old, counts, examples = {each["number"]: each for each in before}, Counter[str](), defaultdict(list)
    for new in now:
        kind, text = difference(old.get(new["number"]), new)
        counts[kind] += 1
        examples[kind].append(text)
    for kind, count in counts.most_common():
        print(f"{count:5} {kind}")
        for text, times in Counter(examples[kind]).most_common(shown) if kind != "identical" else ():
            print(f"        {times} × {text}")
    return sum(count for kind, count in counts.items() if kind != "identical")


def difference(old: dict[str, Any] | None, new: dict[str, Any]) -> tuple[str, str]:
    """Return the kind of the difference, and an example."""
    if old is None:
        return "not in the record", new["call"]
    where = f"\n          call {new['number']}: {new['call']}"
    if old.get("refusal") != new.get("refusal"):
        was, now = (record.get("refusal", "accepted").replace("\n", "\n              ") for record in (old, new))
        kind = "refusal text differs" if "refusal" in old and "refusal" in new else "refused before or now only"
        return kind, f"- {was}\n          + {now}" + (where if kind != "refusal text differs" else "")
    if len(old["launches"]) != len(new["launches"]):
        return "number of launches differs", f"{len(old['launches'])} → {len(new['launches'])}{where}"
    fields = "kernel", "grid", "block", "shared memory", "cluster", "dependent launch", "PTX", "arguments"
    for was, now in zip(old["launches"], new["launches"], strict=True):
        changed = [name for name, one, other in zip(fields, was, now, strict=True) if one != other and name != "kernel"]
        if changed:
            return f"{', '.join(changed)} of a kernel", f"{was[0]} → {now[0]}{where}"
    return ("identical", "") if old["call"] == new["call"] else ("drawn otherwise", where)


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.recorded_calls", description=__doc__)
    parser.add_argument("verb", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=COUNT, help=f"calls (default {COUNT})")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--show", type=int, default=5, help="examples of each kind of difference")
    parser.add_argument("--plans", action="store_true", help="record constants of kernels instead of their PTX")
    options = parser.parse_args()
    now = records(options.count, options.jobs, options.plans)
    if options.verb == "record":
        with options.file.open("w") as file:
            for each in now:
                print(json.dumps(each, ensure_ascii=False), file=file, flush=True)
        return 0
    before = map(json.loads, options.file.read_text().splitlines())
    return compared(before, now, options.show) > 0


if __name__ == "__main__":
    sys.exit(main())
