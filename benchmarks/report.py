"""Write BENCHMARKS.md, docs/performance.md and the pictures in docs/images from benchmarks/results.

pip install -e '.[bench]'
python benchmarks/report.py           # the pages and the pictures
python benchmarks/report.py --text    # the pages only; needs no matplotlib
"""

from __future__ import annotations

import argparse
import pathlib
import re
from collections.abc import Callable, Iterable, Sequence

from records import (
    H100,
    Pair,
    Row,
    Run,
    extents,
    gemm_case,
    geometric_mean,
    graph_pairs,
    is_aligned,
    mean_ratio,
    microseconds,
    pairs,
    runs,
)
from tables import digits

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = {ROOT / "BENCHMARKS.md": "docs/", ROOT / "docs" / "performance.md": ""}  # page: path from it to docs/
PICTURES = {
    "size": "TFLOP/s of square bf16 products against their size",
    "classes": "speed of ptxdsl relative to the library, by class of shapes",
    "roofline": "TFLOP/s against FLOP per byte, with the limits of memory and tensor cores",
    "few_rows": "time of products of few rows against the number of rows",
    "epilogues": "cost of epilogues in percent of the product",
    "attention": "TFLOP/s of causal attention against the length, ptxdsl and cuDNN",
}
Cell = Callable[[Pair], str]

LARGE = [
    "8192x8192x8192", "16384x16384x16384", "4096x4096x4096", "16384x4096x7168", "4096x14336x4096",
    "2048x2048x2048", "512x7168x16384", "256x7168x16384", "2048x2112x7168",
    "512x7168x2048", "1024x1024x1024",
]  # fmt: skip
UNALIGNED = ["3000x3000x3000", "4104x4104x4104", "5000x5000x5000", "6008x6008x6008", "8200x8200x8200", "4095x4095x4095"]
ROWS, WEIGHTS = (1, 16, 64, 128), ((7168, 16384), (4096, 4096), (2112, 7168), (4096, 7168), (24576, 1536))


def shape(case: str) -> str:
    """Write 4096x4096x4096 as 4096³, and other shapes with ×."""
    sizes = case.split("x")
    return f"{sizes[0]}³" if len(set(sizes)) == 1 and len(sizes) == 3 else case.replace("x", "×")


def times(text: str) -> str:
    """Write × between numbers."""
    return re.sub(r"(?<=\d)x(?=\d)", "×", text)


def both(values: dict[str, float], of: Callable[[float], float] = lambda us: us) -> str:
    """Write rest / held."""
    return " / ".join(digits(of(values[protocol])) if protocol in values else "–" for protocol in ("rest", "held"))


def ratio(pair: Pair) -> str:
    """Write the ratio, rest / held."""
    found = [pair.ratio(protocol) for protocol in ("rest", "held")]
    return " / ".join("–" if each is None else f"{each:.2f}" for each in found)


def tflops(pair: Pair, times: dict[str, float]) -> str:
    m, n, k = extents(pair.case)
    return both(times, lambda us: 2e-6 * m * n * k / us)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(line)} |\n" for line in (head, *rows)]
    return "".join([lines[0], "|---" * len(head) + "|\n", *lines[1:]])


def origins(of: Iterable[Run]) -> str:
    """Return the caption of a table: the GPU, script and dates of its runs."""
    days: dict[str, set[str]] = {}
    for run in of:
        days.setdefault(run.origin, set()).add(run.day)
    listed = "; ".join(f"{origin}, {', '.join(sorted(dates))}" for origin, dates in days.items())
    return f"Runs: {listed}.\n"


def of_gemm(cases: Sequence[str], dtype: str = "bf16") -> dict[str, Pair]:
    found = pairs("gemm", gemm_case(dtype, "tn", lambda each: each in cases))
    return {case: found[case] for case in cases if case in found}


# Classes of shapes: name, pairs, the library


def classes() -> list[tuple[str, list[Pair], str]]:
    """Return every class of shapes with its pairs and the library that it is compared with."""
    everything = pairs("gemm", gemm_case("bf16", "tn", lambda _: True)).values()
    aligned = [pair for pair in everything if is_aligned(pair.case)]
    few = graph_pairs("few_rows", "product by protocols")
    layers = {batch: of_conv(batch) for batch in (32, 128)}
    grouped = of_grouped()
    return [
        ("GEMM, 2048³ and larger", [p for p in aligned if min(extents(p.case)) >= 2048], "cuBLAS"),
        ("GEMM, rows not 32-byte aligned", [p for p in everything if p.case in UNALIGNED[:-1]], "cuBLAS"),
        ("GEMM, f16", list(pairs("gemm", gemm_case("f16", "tn", lambda _: True)).values()), "cuBLAS"),
        ("GEMM, tf32 rounded", list(pairs("gemm_tf32", tf32_case).values()), "cuBLAS"),
        ("GEMM, 1 to 64 rows", [p for problem, p in few.items() if problem[0] <= 64], "cuBLAS"),
        ("GEMM, 80 to 128 rows", [p for problem, p in few.items() if 64 < problem[0] <= 128], "cuBLAS"),
        ("GEMM, 136 to 448 rows", [p for problem, p in few.items() if 128 < problem[0] <= 448], "cuBLAS"),
        ("GEMM, 8 to 512 columns", list(graph_pairs("tall_and_batches", "tall").values()), "cuBLAS"),
        ("GEMM, batches", list(graph_pairs("tall_and_batches", "batches").values()), "cuBLAS"),
        ("grouped, ragged rows", [p for case, p in grouped.items() if case.startswith("ragged")], "torch, cuBLAS loop"),
        ("grouped, ragged K", [p for case, p in grouped.items() if case.startswith("along K")], "torch, cuBLAS loop"),
        ("scaled e4m3, rows", list(of_scaled("rows", "torch, rows, fast").values()), "torch._scaled_mm"),
        ("scaled e4m3, ragged rows", list(of_scaled_groups("rows", " ragged").values()), "torch._scaled_grouped_mm"),
        ("convolution, batch 32", list(layers[32].values()), "cuDNN"),
        ("convolution, batch 128", list(layers[128].values()), "cuDNN"),
        ("attention, 16,384 keys", [p for key, p in of_attention().items() if key[2] == QUERIES], "cuDNN"),
        ("attention, 1,024 to 8,192 keys", [p for key, p in of_attention().items() if key[2] < QUERIES], "cuDNN"),
    ]


def tf32_case(row: dict[str, str]) -> str:
    return f"{row['shape']} {row['layout'].upper()}"


def of_conv(batch: int, dtype: str = "f16") -> dict[str, Pair]:
    """Return the layers of ResNet-50 without a fused bias."""

    def case(row: dict[str, object]) -> str | None:
        plain = "bias" not in str(row["layer"]) and (row["batch"], row["dtype"]) == (batch, dtype)
        return str(row["layer"]) if plain else None

    return pairs("conv", case, ("cudnn",))


def of_attention(what: str = "forward") -> dict[tuple[str, str, int, bool], Pair]:
    """Return the pairs by (D, heads, length, causal)."""

    def case(row: Row) -> tuple[str, str, int, bool] | None:
        is_asked = row.get("what", "forward") == what
        return (row["D"], row["heads"], row["length"], row["causal"]) if is_asked else None

    found = pairs("attention", case, ("cudnn", "copy"))
    return {key: found[key] for key in sorted(found, key=lambda key: (int(key[0].partition("/")[0]), key[1]))}


def of_grouped() -> dict[str, Pair]:
    """Return ragged rows and ragged K against the faster of torch and a loop of cuBLAS, and lists against the loop."""
    return pairs(
        "grouped",
        lambda row: str(row["set"]) if row.get("orders", "rcr") == "rcr" and "masked" not in row["set"] else None,
        ("torch._grouped_mm", "cuBLAS loop"),
        ("ptxdsl", "device"),
    )


def of_scaled(ours: str, library: str) -> dict[str, Pair]:
    found = pairs("scaled", lambda row: row.get("shape"), (library,), (ours,))
    return {case: pair for case, pair in found.items() if extents(case)[0] >= 1024}


def of_scaled_groups(ours: str, kind: str) -> dict[str, Pair]:
    library = ("torch, rows, fast", "loop of torch._scaled_mm, rows, fast")
    found = pairs("scaled", lambda row: row.get("set"), library, (ours,))
    return {case: pair for case, pair in found.items() if kind in case}


# Sections


def summary() -> str:
    rows = []
    for name, of, library in classes():
        means = [mean_ratio(of, protocol) for protocol in ("rest", "held")]
        least = [min((r for p in of if (r := p.ratio(protocol))), default=None) for protocol in ("rest", "held")]
        cells = [" / ".join("–" if each is None else f"{each:.2f}" for each in group) for group in (means, least)]
        rows.append((name, str(len(of)), library, *cells))
    head = ("class of shapes", "shapes", "library", "geometric mean", "slowest shape")
    return table(head, rows)


def gemm_section() -> str:
    triton = pairs("gemm", gemm_case("bf16", "tn", lambda _: True), ours=("triton",))
    rows = []
    chosen = of_gemm([*LARGE, *UNALIGNED])
    for case, pair in chosen.items():
        other = ratio(triton[case]) if case in triton and min(extents(case)) >= 4096 else ""
        rows.append((shape(case), tflops(pair, pair.ours), ratio(pair), other))
    head = ("M×N×K", "TFLOP/s", "/ cuBLAS", "Triton / cuBLAS")
    h100 = pairs("gemm_h100", gemm_case("bf16", "tn", lambda _: True))
    mean = mean_ratio([pair for case, pair in h100.items() if case in LARGE[:6]], "held")
    return f"""bf16, A row-major, B column-major. The rows of the last six shapes are not 32-byte aligned; TMA cannot address those of
4095³. On an H100 80GB the first six shapes reach {mean:.2f} of cuBLAS, held.

{table(head, rows)}
{origins(pair.run for pair in chosen.values())}"""


def few_rows_section() -> str:
    few = graph_pairs("few_rows", "product by protocols")
    rows = []
    for m in ROWS:
        cells = [ratio(few[m, n, k]) for n, k in WEIGHTS if (m, n, k) in few]
        rows.append((str(m), *cells))
    head = ("M", *(f"{n}×{k}" for n, k in WEIGHTS))
    h100 = graph_pairs("few_rows", "product by protocols", H100)
    means = [[mean_ratio(of.values(), protocol) for protocol in ("rest", "held")] for of in (few, h100)]
    tall = graph_pairs("tall_and_batches", "tall")
    return f"""bf16, by CUDA graphs: one launch after a flush of the L2 cache / back-to-back launches. Speed of `gemm()` relative to
cuBLAS for weights of N×K. The geometric mean of all {len(few)} shapes of 1 to 2048 rows is {means[0][0]:.2f} / {means[0][1]:.2f} on the H200 and
{means[1][0]:.2f} / {means[1][1]:.2f} on the H100.

{table(head, rows)}
{origins([*(p.run for p in list(few.values())[:1]), *(p.run for p in list(tall.values())[:1])])}"""


def dtypes_section() -> str:
    cube, layouts = "4096x4096x4096", ("tn", "nn", "nt", "tt")

    def cell(name: str, dtype: str, layout: str, ours: str = "ptxdsl") -> Pair | None:
        def case(row: Row) -> str | None:
            size = row.get("shape", cube if row.get("size") == "4096^3" else "")
            return cube if (row["dtype"], row["layout"], size) == (dtype, layout, cube) else None

        return pairs(name, case, ours=(ours,)).get(cube)

    kinds = {
        "bf16": ("gemm", "bf16"),
        "f16": ("gemm", "f16"),
        "s8, s32 out": ("dtypes", "s8"),
        "e4m3, bf16 out": ("dtypes", "e4m3"),
        "tf32, rounded": ("gemm_tf32", "tf32"),
        "tf32, truncated": ("gemm_tf32", "tf32", "ptxdsl, wgmma"),
    }
    rows, used = [], []
    for kind, (name, dtype, *ours) in kinds.items():
        found = [cell(name, dtype, layout, *ours) for layout in layouts]
        rows.append((kind, *("" if pair is None else f"{tflops(pair, pair.ours)}: {ratio(pair)}" for pair in found)))
        used += [pair.run for pair in found if pair]
    return f"""4096³: TFLOP/s of `gemm()`, then its speed relative to cuBLAS, for the BLAS letters of A and B. The library is
`torch._int_mm` for s8 and `torch._scaled_mm` with scales of 1 for e4m3. cuBLAS truncates float32 to tf32; `gemm()`
rounds it, and truncates with `GemmConfig(atom="wgmma")`.

{table(("type", *map(str.upper, layouts)), rows)}
{origins(used)}"""


def two(pair: Pair) -> tuple[str, str]:
    return tflops(pair, pair.library), tflops(pair, pair.ours)


def costs(case: str, protocol: str) -> dict[str, float]:
    """Return the percentage that each epilogue adds to the plain product of the same library."""
    (run,) = runs("epilogues")
    us = {row["contender"]: microseconds(row) for row in run.rows if row.get("shape") == case}
    plain = {True: us["cuBLAS"][protocol], False: us["product"][protocol]}
    return {
        name: 100 * (times[protocol] / plain[name.startswith("cuBLAS")] - 1)
        for name, times in us.items()
        if name not in ("cuBLAS", "product")
    }


def grouped_section() -> str:
    found = of_grouped()
    rows = [(times(case), both(pair.ours), ratio(pair)) for case, pair in found.items()]
    for run in runs("grouped"):
        for name in dict.fromkeys(row["set"] for row in run.rows if "masked" in row["set"]):
            of = {row["contender"]: row for row in run.rows if row["set"] == name}
            rates = [of[who].get("TFLOP/s, rest") for who in ("cuBLAS loop", "ptxdsl")]
            if all(rates):
                rows.append((f"{times(name)}", f"{digits(rates[1])} TFLOP/s", f"{rates[1] / rates[0]:.2f} / –"))
    gathered = {}
    for run in runs("grouped"):
        for row in run.rows:
            if row["set"].startswith("gathered"):
                gathered.setdefault(row["set"], {})[row["contender"]] = microseconds(row)
    for name, of in gathered.items():
        ours = min(
            (of[who] for who in of if who.startswith("copied before") or who == "ptxdsl"), key=lambda t: t["rest"]
        )
        library = of["torch: index, _grouped_mm"]
        pair = Pair(name, library, ours, run)
        rows.append((times(name), both(ours), ratio(pair)))
    head = ("groups, rows×N×K", "µs", "/ library")
    return f"""bf16 (lists: f16), µs. The library is the faster of `torch._grouped_mm` and a loop of cuBLAS; for gathered rows,
indexing and `torch._grouped_mm`. "8 large", "64 small" and "32 mixed" are lists of problems.

{table(head, rows)}
{origins(runs("grouped"))}"""


SCALES = {"tensors": "torch, tensors, fast", "rows": "torch, rows, fast", "blocks": "DeepGEMM"}


def scaled_section() -> str:
    rows = [(kind, library, *(f"{tflops(pair, pair.ours)}: {ratio(pair)}" for pair in of_scaled(kind, library).values()))
            for kind, library in SCALES.items()]  # fmt: skip
    of_kind = {kind: of_scaled_groups(kind, " ") for kind in ("rows", "blocks")}
    groups = [
        (times(case), *(f"{both(of[case].ours)}: {ratio(of[case])}" for of in of_kind.values()))
        for case in of_kind["rows"]
        if case.startswith(("8 ", "256 ", "4 ", "32 masked"))
    ]
    few = {}
    for kind in ("tensors", "rows"):
        means = []
        for key in ("us, rotated", "us, rest"):
            of: dict[str, dict[str, float]] = {}
            for row in runs("scaled")[1].rows:
                of.setdefault(row["shape"], {})[row["contender"]] = row[key]
            means.append(geometric_mean(us[f"torch, {kind}"] / us[kind] for us in of.values()))
        few[kind] = f"{means[0]:.2f} / {means[1]:.2f}"
    return f"""e4m3 with bf16 output: TFLOP/s, then the speed relative to `torch._scaled_mm` ("fast": `use_fast_accum`), or to
DeepGEMM 8dfa329, with transposed scales of A. Products of 1 to 128 rows reach {few["tensors"]} (tensor scales) and {few["rows"]} (row scales) of torch, with operands from DRAM / after a flush.

{table(("scales", "compared with", *(shape(case) for case in of_scaled("rows", "torch, rows, fast"))), rows)}
Groups: µs, then the speed relative to `torch._scaled_grouped_mm` (ragged) or a loop of `torch._scaled_mm` (masked, along K), both
with row scales, fast:

{table(("groups", "row scales", "128-block scales"), groups)}
{origins(runs("scaled"))}"""


def conv_section() -> str:
    layers = {batch: of_conv(batch) for batch in (32, 128)}
    rows = [
        (name, both(layers[128][name].ours), ratio(pair), ratio(layers[128][name])) for name, pair in layers[32].items()
    ]
    head = ("layer", "µs, batch 128", "batch 32", "batch 128")
    used = [pair.run for of in layers.values() for pair in of.values()]
    return f"""Layers of ResNet-50, f16, channels-last: the time of `conv2d`, and its speed relative to cuDNN.

{table(head, rows)}
{origins(used)}"""


def host_section() -> str:
    launch, calls, emulator, *_ = runs("host")
    us = {row["what"]: row["measured"] for row in calls.rows}
    names = ("gemm", "gemm with a bias and relu", "conv2d", "grouped_gemm_ragged", "grouped_gemm of 8", "torch mm")
    rows = [(name, digits(us[f"{name}, out given, us"]), digits(us[f"{name}, us"])) for name in names]
    kernels = [
        (row["kernel"].replace("_", " "), *(digits(row[key]) for key in LAUNCHES))
        for row in launch.rows
        if LAUNCHES[0] in row and "numbers" not in row["kernel"]
    ]
    steps = "; ".join(
        f"{row['what'].replace(', ms of CPU time', '').replace('^3', '³')} {digits(row['median'])}"
        for row in emulator.rows
        if any(word in row["what"] for word in EMULATED)
    )
    return f"""µs until a call returns, with arguments like those of the previous call:

{table(("call", "with `out=`", "without"), rows)}
Launch of an empty kernel, µs:

{table(("arguments", *(key.removesuffix(" us") for key in LAUNCHES)), kernels)}
Median ms of CPU time on one core: {steps}.

{origins([launch, calls, emulator])}"""


LAUNCHES = ("k[grid, block] us", "handle us", "cuLaunchKernel us", "cuda.core us", "torch add_ us")
EMULATED = ("emulate 128^3", "emulate 1024^3, checks on", "trace", "import", "assemble")


def attention_section() -> str:
    of = of_attention()
    rows = []
    for d, heads in dict.fromkeys(key[:2] for key in of):
        cells = [of.get((d, heads, length, causal)) for length, causal in ATTENTION_COLUMNS]
        rows.append((d, heads, *("" if p is None else f"{digits(speed(p))}: {ratio(p)}" for p in cells)))
    head = ("D", "heads", *(f"{length}{', causal' * causal}" for length, causal in ATTENTION_COLUMNS))
    gradients = [r for p in of_attention("backward").values() for t in ("rest", "held") if (r := p.ratio(t))]
    decoded = ", ".join(
        f"{2e-6 * 64 * length * 8 * 2 * int(d) / p.ours['rest']:.1f} TB/s (D = {d})"
        for (d, _, length, _), p in of_attention("decode").items()
    )
    latent = {heads: p for (_, heads, length, _), p in of_attention("mla").items() if length == 8192}
    moved, products = 2e-6 * 128 * 8192 * 576, 2e-6 * 128 * 128 * 8192 * (576 + 512)
    rates = [f"{moved / latent['16/1'].ours[t]:.1f}" for t in ("rest", "held")]
    speeds = [digits(products / latent["128/1"].ours[t]) for t in ("rest", "held")]
    e4m3 = [digits(speed(p)) for p in of_attention("fp8").values()]
    return f"""bf16, 16,384 queries: TFLOP/s of `attention()` at rest, then its speed relative to cuDNN. Causal
FLOPs are half. Gradients, deterministic, reach {min(gradients):.2f} to {max(gradients):.2f} of cuDNN's.
Decoding (64 × 8,192 keys, 64 / 8 heads): {decoded}. MLA decoding (128 × 8,192 keys), at rest / held:
{" / ".join(rates)} TB/s with 16 heads, {" / ".join(speeds)} TFLOP/s with 128.
e4m3 (`attention_fp8`, D = 128, 16 heads, 16,384): {e4m3[0]} TFLOP/s, {e4m3[1]} causal.

{table(head, rows)}
{origins(runs("attention"))}"""


QUERIES = 16384
ATTENTION_COLUMNS = ((QUERIES, False), (QUERIES, True), (8192, True), (4096, True), (2048, True), (1024, True))


def speed(pair: Pair) -> float:
    """Return the TFLOP/s of attention at rest."""
    d, heads, length, causal = pair.case
    dims = [int(n) for n in d.split("/")]
    scores = QUERIES * length * int(heads.partition("/")[0]) * (0.5 if causal else 1.0)
    return 2e-6 * scores * (dims[0] + dims[-1]) / pair.ours["rest"]


def trailing_section() -> str:
    few = graph_pairs("few_rows", "product by protocols")
    slow = [p for p in few.values() if geometric_mean((p.ratio("rest") or 1, p.ratio("held") or 1)) < 0.97]
    gemm = of_gemm([*UNALIGNED, *LARGE])
    tf32 = pairs("gemm_tf32", tf32_case)
    conv = of_conv(128, "f32")
    blocks = of_scaled("blocks", "DeepGEMM")
    lines = [
        ("4104³, 5000³, 6008³", ", ".join(ratio(gemm[f"{size}x{size}x{size}"]) for size in (4104, 5000, 6008)),
         "a 128-byte row of a TMA box spans two L2 lines: 4.6 cycles, not 2.2"),
        (f"few rows: {len(slow)} of {len(few)} shapes under 0.97", ", ".join(ratio(p) for p in slow[:3]),
         "the TMA loads alone take 92 to 99 % of the time"),
        ("4096³ TN, tf32 rounded", ratio(tf32["4096x4096x4096 TN"]),
         "one operand is rounded in registers, the other by a copy of 33 µs; cuBLAS truncates"),
        ("tf32 convolutions, 3x3, batch 128", ratio(conv["7² 512→512 3x3"]), "pixels pass through registers to be rounded"),
        ("e4m3, scales of 128-blocks, 8192³", ratio(blocks["8192x8192x8192"]),
         "tensor cores are busy 82 % of the time, 87 % in DeepGEMM (docs/lessons.md)"),
        ("attention of 1,024 keys", ratio(of_attention()["64", "32", 1024, True]),
         "a block has one tile, whose loads and end are not hidden"),
    ]  # fmt: skip
    return table(("where", "ptxdsl / library", "why"), lines)


def page(docs: str) -> str:
    """Return the page; `docs` is the path to the docs folder."""
    pictures = "\n\n".join(f"![{text}]({docs}images/{name}.svg)" for name, text in PICTURES.items())
    return f"""# Performance

Generated by `python benchmarks/report.py` from `benchmarks/results/` (with the commands); do not edit.
[Lessons]({docs}lessons.md) lists the experiments.

{pictures}

## How figures are taken

- The contenders of a row run interleaved in one process, through their public call, on N(0,1) data. Figures are medians.
- *Rest*: half a second idle, then rounds of one launch of each contender, with the L2 cache flushed before each launch.
- *Held*: turns of one second of back-to-back launches with warm caches, at the power limit; the first 150 ms do not count.
- A cell `a / b` is rest / held; – is not measured. Ratios are speeds relative to the library: above 1, ptxdsl is faster.
- Repeated runs differ by about 1 % at rest and 2 % held; launches under 20 µs by up to 10 %. The driver is 580.159.04.

## Summary

{summary()}
## Slower than the library, and why

{trailing_section()}
## GEMM

{gemm_section()}
### Few rows

{few_rows_section()}
### Types and layouts

{dtypes_section()}
## Grouped GEMM

{grouped_section()}
## Scaled 8-bit floats

{scaled_section()}
## Convolution

{conv_section()}
## Attention

{attention_section()}
## Host time

{host_section()}"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--text", action="store_true", help="write the pages only, without the pictures")
    chosen = options.parse_args()
    for path, docs in PAGES.items():
        path.write_text(page(docs))
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")
    if not chosen.text:
        import pictures  # matplotlib is an extra

        for path in pictures.write(ROOT / "docs" / "images"):
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
