"""Measures candidates over many problems on this GPU, and fits the rates of the model by which kernels are chosen.

`fit.py measure` writes what each took to benchmarks/results/fit.json; `fit.py fit` turns such rows into the file of the
GPU in ptxdsl/kernels/choose/, and says how far off the model is then. Without either, both.
"""

from __future__ import annotations

import json
import pathlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

import common
from fitting import Row, fit, quality
from protocols import Local, TorchGpu, rest, warm

from ptxdsl import driver
from ptxdsl.kernels.choose import rates as choose_rates
from ptxdsl.kernels.choose.candidates import of_convolutions, of_groups, of_products
from ptxdsl.kernels.choose.gemm import shared, shared_config
from ptxdsl.kernels.choose.model import candidate, made
from ptxdsl.kernels.choose.rates import DEFAULT, Gpu, known
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.types import TYPES, Type

MOST_OPTIONS = 8  # candidates of one problem, side by side
MOST_OPERATIONS = 2e13
PRODUCTS, GROUPS, LAYERS = 400, 60, 60  # problems
# Types, the width of copies, and how often they come
TYPES_OF_PRODUCTS = [("f16", 16, 6), ("f16", 2, 1), ("f32", 16, 2), ("f64", 16, 1), ("s8", 16, 2)]


class Trial(NamedTuple):
    """A row that is still to be measured, and its launch."""

    row: Row
    run: Callable[[], object]


def extent(rng: random.Random, most: int, multiple: int = 8) -> int:
    """Any size up to `most`, small ones as often as large ones; most of them are round."""
    size = 2 ** rng.uniform(3, most.bit_length() - 1)
    return max(multiple, round(size / multiple) * multiple)


def arrays(type: Type, *shapes: tuple[int, ...]) -> list[object]:
    """Random arrays on the GPU."""
    import torch

    dtype = {"f16": torch.float16, "f32": torch.float32, "f64": torch.float64, "s8": torch.int8}[type.name]
    if type.name == "s8":
        return [torch.randint(-8, 8, shape, dtype=dtype, device="cuda") for shape in shapes]
    return [torch.randn(*shape, dtype=dtype, device="cuda") for shape in shapes]


def sampled(rng: random.Random, options: Sequence[object]) -> list[object]:
    return rng.sample(list(options), min(MOST_OPTIONS, len(options)))


def products(rng: random.Random, gpu: Gpu, arch: str) -> Iterator[list[Trial]]:
    """Products, each with some of the ways to compute it."""
    from ptxdsl.kernels.gemm import gemm

    weights = [weight for *_, weight in TYPES_OF_PRODUCTS]
    for _ in range(PRODUCTS):
        name, width, _ = rng.choices(TYPES_OF_PRODUCTS, weights)[0]
        inputs, odd = TYPES[name], int(width < 16)
        shape = m, n, k = extent(rng, 8192), extent(rng, 16384), extent(rng, 16384, 16) + odd
        if 2.0 * m * n * k > MOST_OPERATIONS:
            continue
        a, b = arrays(inputs, (m, k), (n, k))
        configs = [c for c in of_products(inputs, width, True) if made(c, inputs).fits(arch)]
        options = [
            option
            for config in configs
            for option in shared(candidate(config, inputs), shape, width, True, gpu.multiprocessors)
        ]
        yield [
            Trial(
                Row("product", name, (shape,), o.tile, o.config.warp, o.stages, 0.0, width, o.split_k, o.is_streamed),
                launcher(gemm, a, b.T, config=shared_config(o, gpu.multiprocessors)),  # type: ignore[attr-defined]
            )
            for o in sampled(rng, options)
        ]  # fmt: skip


def groups(rng: random.Random, gpu: Gpu, arch: str) -> Iterator[list[Trial]]:
    """Groups of products of one N and K, as mixtures of experts have them."""
    from ptxdsl.kernels.grouped import grouped_gemm

    inputs = TYPES["f16"]
    for _ in range(GROUPS):
        n, k, most = extent(rng, 8192, 64), extent(rng, 8192, 64), extent(rng, 2048)
        sizes = tuple((rng.randrange(1, most + 1), n, k) for _ in range(rng.choice([4, 8, 16, 64, 128])))
        a, b = ([x for shape in shapes for x in arrays(inputs, shape)] for shapes in (
            [(m, k) for m, _, _ in sizes], [(k, n)] * len(sizes)
        ))  # fmt: skip
        yield [
            Trial(Row("group", "f16", sizes, c.tile, c.warp, c.stages, 0.0), launcher(grouped_gemm, a, b, config=c))
            for c in of_groups(inputs, 16, True)
        ]


def convolutions(rng: random.Random, gpu: Gpu, arch: str) -> Iterator[list[Trial]]:
    """Convolutions with windows of 1 and 3 pixels, whose sums one block or several compute."""
    from ptxdsl.kernels.conv import conv2d

    for _ in range(LAYERS):
        name = rng.choice(["f16", "f16", "f32", "s8"])
        inputs, side, batch = TYPES[name], rng.choice([7, 14, 28, 56]), rng.choice([1, 8, 32])
        channels, filters, window = extent(rng, 1024, 32), extent(rng, 1024, 32), rng.choice([1, 3])
        x, w = arrays(inputs, (batch, side, side, channels), (filters, window, window, channels))
        shape = batch * side * side, filters, window * window * channels
        options = [(config, slices) for config in of_convolutions(inputs, True) for slices in (1, 2, 4)]
        yield [
            Trial(
                Row("convolution", name, (shape,), c.tile, c.warp, c.stages, 0.0, slices=slices),
                launcher(conv2d, x, w, pad=window // 2, config=replace(c, split_k=slices)),
            )
            for c, slices in options
        ]


def launcher(
    function: Callable[..., object], *inputs: object, config: GemmConfig, **options: object
) -> Callable[[], object]:
    """Launches into one output again and again."""
    out = function(*inputs, config=config, **options)
    return lambda: function(*inputs, out=out, config=config, **options)


def measure(seed: int, rounds: int) -> Iterator[Row]:
    """The rows of all problems: medians at rest, candidates of a problem in turn."""
    rng, timer, facts = random.Random(seed), TorchGpu(), gpu_facts()
    for problems in (products, groups, convolutions):
        for trials in problems(rng, facts, driver.device_arch(0)):
            contenders = {str(n): Local(timer, trial.run) for n, trial in enumerate(trials)}
            warm(timer, contenders)
            times = rest(timer, contenders, rounds)
            yield from (replace(trial.row, us=1000 * times[str(n)]) for n, trial in enumerate(trials))


def gpu_facts() -> Gpu:
    device = driver.device(0)
    return Gpu(device.name, device.multiprocessors, driver.clock_khz(0), driver.memory_bandwidth(0))


def save(path: pathlib.Path, rows: Iterable[Row]) -> None:
    """Writes rows, one a line, with the environment; what came before an error is kept."""
    lines: list[str] = []
    try:
        for row in rows:
            lines.append(json.dumps(asdict(row)))
            print(f"{len(lines)} rows", end="\r", flush=True)
    finally:
        environment, gpu, body = json.dumps(common.environment()), json.dumps(asdict(gpu_facts())), ",\n".join(lines)
        path.write_text(f'{{"environment": {environment},\n"gpu": {gpu},\n"rows": [\n{body}\n]}}\n')
        print(f"{len(lines)} rows written to {path}")


def fit_file(path: pathlib.Path, out: pathlib.Path | None) -> pathlib.Path:
    """Fits the rates of a GPU to the rows of a file, writes them, and says how good they are. Returns where they are.

    What rows tell nothing about is left as it was for this GPU, or as it follows from the rates of the default one.
    """
    data = json.loads(path.read_text())
    rows, gpu = [Row.of(row) for row in data["rows"]], Gpu(**data["gpu"])
    start = known()[gpu.name] if gpu.name in known() else known()[DEFAULT].on(gpu)
    start = replace(start, gpu=gpu)
    rates = fit(start, rows)
    for name, each in (("before", start), ("fitted", rates)):
        for line in quality(each, rows):
            print(f"{name}: {line}")
    out = out or choose_rates.FOLDER / f"{gpu.name.lower().removeprefix('nvidia ').replace(' ', '-')}.json"
    choose_rates.write(out, rates, {**data["environment"], "rows": f"{len(rows)}, {path.name}"})
    print(f"written to {out}")
    return out


def main() -> None:
    parser = common.parser(__doc__ or "")
    parser.add_argument("step", nargs="?", choices=["measure", "fit"], help="default: both")
    parser.add_argument("--out", type=pathlib.Path, help="the file of rates (default: that of the GPU of the rows)")
    parser.add_argument("--seed", type=int, default=1, help="of the random problems")
    options = parser.parse_args()
    rows = options.json or common.RESULTS / "fit.json"
    if options.step != "fit":
        save(rows, measure(options.seed, options.rounds))
    if options.step != "measure":
        fit_file(rows, options.out)


if __name__ == "__main__":
    main()
