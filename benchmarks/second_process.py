"""What the first call of a process takes, from call to return, in a process that finds the kernel on disk, and in the
one before it, which traces and assembles it. torch, ptxdsl and cuda-python are imported, and the GPU has worked.

    python benchmarks/second_process.py --rounds 5
    python benchmarks/second_process.py --rounds 5 --against ../before    # another checkout too, as `before`

The processes of a round start together; one makes its first call when no other one does. Of second processes the median
counts, and the least stands beside it.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import importlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator

import common

from ptxdsl import driver

HERE = pathlib.Path(__file__).resolve()
Case = tuple[str, str]


def calls() -> dict[str, Callable[[], Callable[[], object]]]:
    """What makes the call of each case; its modules are imported then, and its arrays made."""
    torch = importlib.import_module("torch")

    def half(*shape: int) -> object:
        return torch.ones(shape, dtype=torch.bfloat16, device="cuda")

    def product(**options: object) -> Callable[[], object]:
        module = importlib.import_module("ptxdsl.kernels.gemm")
        configs = importlib.import_module("ptxdsl.kernels.config")
        config = {"config": configs.GemmConfig(**options)} if options else {}
        return functools.partial(module.gemm, half(1024, 1024), half(1024, 1024), **config)

    def convolution() -> Callable[[], object]:
        conv = importlib.import_module("ptxdsl.kernels.conv")
        return functools.partial(conv.conv2d, half(8, 28, 28, 128), half(128, 3, 3, 128), pad=1)

    def ragged() -> Callable[[], object]:
        grouped = importlib.import_module("ptxdsl.kernels.grouped")
        ends = torch.tensor([256, 512, 768, 1024], dtype=torch.int32, device="cuda")
        return functools.partial(grouped.grouped_gemm_ragged, half(1024, 1024), half(4, 1024, 1024), ends)

    return {
        "gemm 1024^3": product,
        "gemm 1024^3 by mma.sync, its tile given": functools.partial(product, tile=(128, 128, 32)),
        "conv2d": convolution,
        "grouped_gemm_ragged": ragged,
    }


def timed(case: str, turn: pathlib.Path) -> float:
    """Milliseconds of the first call in this process, while no other process holds the lock on a file."""
    call = calls()[case]()
    torch = importlib.import_module("torch")
    torch.cuda.synchronize()
    driver.synchronize()
    with turn.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        start = time.perf_counter()
        call()
        milliseconds = 1e3 * (time.perf_counter() - start)
        torch.cuda.synchronize()
    return milliseconds


def begun(case: str, tree: pathlib.Path, folder: pathlib.Path) -> subprocess.Popen[str]:
    """A process with the ptxdsl of a checkout, which prints what its first call takes."""
    path = os.pathsep.join(filter(None, [str(tree.resolve()), os.environ.get("PYTHONPATH")]))
    folders = {"PTXDSL_CACHE_DIR": str(folder), "PYTHONPYCACHEPREFIX": f"{folder}.code"}
    return subprocess.Popen(
        [sys.executable, str(HERE), "--of", case, "--turn", str(folder.parent / "turn")], text=True,
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "", **folders},
    )  # fmt: skip


def of_round(cases: Iterable[Case], trees: dict[str, pathlib.Path], root: pathlib.Path) -> dict[Case, float]:
    """The milliseconds of each case, a case being its name and the label of a checkout."""
    processes = {(name, label): begun(name, trees[label], root / f"{label.strip()}.kept") for name, label in cases}
    answers = {case: process.communicate()[0].split() for case, process in processes.items()}
    if not all(answers.values()):
        raise SystemExit("a process has ended before its call")
    return {case: float(answer[-1]) for case, answer in answers.items()}


def rows(names: list[str], trees: dict[str, pathlib.Path], rounds: int) -> Iterator[common.Row]:
    """A row for each case, when all rounds are over."""
    cases = [(name, label) for name in names for label in trees]
    with tempfile.TemporaryDirectory() as root:
        first, *others = (of_round(cases, trees, pathlib.Path(root)) for _ in range(rounds + 1))
    for name in names:
        row: common.Row = {"first call of": name}
        for label in trees:
            times = [each[name, label] for each in others]
            row |= {
                f"{label}first process": round(first[name, label], 1),
                f"{label}second process": round(statistics.median(times), 2),
                f"{label}least": round(min(times), 2),
            }
        yield row


def main() -> None:
    parser = common.parser(__doc__ or "")
    parser.add_argument("--against", type=pathlib.Path, metavar="DIR", help="another checkout, whose ptxdsl runs too")
    parser.add_argument("--only", help="cases whose names begin so (default: all)", default="")
    parser.add_argument("--of", help=argparse.SUPPRESS)
    parser.add_argument("--turn", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.of:
        print(timed(options.of, options.turn))
        return
    trees = {"": common.ROOT} | ({"before ": options.against} if options.against else {})
    names = [name for name in calls() if name.startswith(options.only)]
    common.report(rows(names, trees, options.rounds), options.json)


if __name__ == "__main__":
    main()
