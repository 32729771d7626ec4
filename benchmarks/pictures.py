"""The pictures of the performance page, drawn with matplotlib from the result files."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator

import matplotlib
import report
from matplotlib import pyplot
from matplotlib.axes import Axes
from records import extents, gemm_case, graph_pairs, is_aligned, mean_ratio, pairs

OURS, LIBRARY, LIMIT, GRID = "#0b7a75", "#8a8f98", "#b23b3b", "#e3e5e8"
PEAK, DRAM = 989.0, 4.8  # TFLOP/s dense bf16 and TB/s of an H200, from NVIDIA's data sheet
STYLE = {
    "svg.hashsalt": "ptxdsl",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9aa0a6",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "figure.facecolor": "white",
}


def size(axes: Axes) -> None:
    """TFLOP/s of square products, at rest."""
    found = pairs("gemm", gemm_case("bf16", "tn", lambda s: len(set(s.split("x"))) == 1 and is_aligned(s)))
    known = sorted((extents(case)[0], pair) for case, pair in found.items())
    sizes = [n for n, _ in known]
    for name, colour, of in (("ptxdsl", OURS, lambda p: p.ours), ("cuBLAS", LIBRARY, lambda p: p.library)):
        speeds = [2e-6 * n**3 / of(pair)["rest"] for n, pair in known]
        axes.plot(sizes, speeds, "o-", color=colour, markersize=4, label=name)
        offset = 8 if name == "ptxdsl" else -8
        axes.annotate(f"{name}, {speeds[-1]:.0f}", (sizes[-1], speeds[-1]), (8, offset), textcoords="offset points",
                      color=colour, va="center")  # fmt: skip
    axes.axhline(PEAK, color=LIMIT, linestyle="--", linewidth=1)
    axes.annotate(
        f"peak of the data sheet, {PEAK:.0f}", (sizes[0], PEAK), (0, 5), textcoords="offset points", color=LIMIT
    )
    axes.set_xscale("log", base=2)
    shown = [256, 512, 1024, 2048, 4096, 8192, 16384]
    axes.set_xticks(shown, [str(each) for each in shown])
    axes.set_xlim(right=36000)
    axes.set_ylim(0, 1080)
    axes.set_xlabel("M = N = K")
    axes.set_title("TFLOP/s of square products: bf16, H200, at rest", loc="left")


def classes(axes: Axes) -> None:
    """The geometric mean of the speed relative to the library, by class of shapes."""
    rows = list(reversed(report.classes()))
    for place, (_, of, _) in enumerate(rows):
        for shift, protocol, colour in ((0.2, "rest", OURS), (-0.2, "held", "#8fc7c3")):
            mean = mean_ratio(of, protocol) or 0.0
            axes.barh(place + shift, mean, 0.38, color=colour)
            axes.annotate(
                f"{mean:.2f}", (mean, place + shift), (4, 0), textcoords="offset points", va="center", fontsize=8
            )
    axes.axvline(1, color=LIMIT, linewidth=1)
    axes.set_yticks(range(len(rows)), [f"{name}  ({library})" for name, _, library in rows])
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.75)
    axes.annotate("rest", (1.6, len(rows) - 0.85), color=OURS)
    axes.annotate("held", (1.6, len(rows) - 1.5), color="#5aa8a2")
    axes.set_title("Speed relative to the library in parentheses", loc="left", x=-0.7)


def roofline(axes: Axes) -> None:
    """TFLOP/s against FLOP per byte of the operands and the output."""
    few = graph_pairs("few_rows", "product by protocols")
    points = [(problem, pair) for problem, pair in few.items() if problem[1:] in report.WEIGHTS]
    points += [(extents(case), pair) for case, pair in report.of_gemm(report.LARGE[:10]).items()]
    for colour, of, name in ((LIBRARY, lambda p: p.library, "cuBLAS"), (OURS, lambda p: p.ours, "ptxdsl")):
        intensity = [m * n * k / (m * k + n * k + m * n) for (m, n, k), _ in points]
        speeds = [2e-6 * m * n * k / of(pair)["rest"] for (m, n, k), pair in points]
        axes.plot(intensity, speeds, "o", color=colour, markersize=4, label=name)
    ridge = PEAK / DRAM
    axes.plot([0.9, ridge, 8000], [0.9 * DRAM, PEAK, PEAK], color=LIMIT, linewidth=1.2)
    axes.annotate(f"DRAM, {DRAM} TB/s", (6, 6 * DRAM * 1.25), color=LIMIT, rotation=39)
    axes.annotate(f"tensor cores, {PEAK:.0f} TFLOP/s", (ridge * 1.4, PEAK * 1.12), color=LIMIT)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(1.5, 2000)
    axes.set_xlabel("FLOP per byte of A, B and out")
    axes.legend(frameon=False, loc="lower right")
    axes.set_title("TFLOP/s and the limits of the hardware: bf16, H200, at rest", loc="left")


def few_rows(axes: Axes) -> None:
    """Microseconds against the number of rows for two weights, at rest, with the time DRAM needs."""
    few = graph_pairs("few_rows", "product by protocols")
    for n, k in ((7168, 16384), (4096, 7168)):
        rows = sorted(problem[0] for problem in few if problem[1:] == (n, k) and problem[0] <= 256)
        for colour, of, name in ((LIBRARY, lambda p: p.library, "cuBLAS"), (OURS, lambda p: p.ours, "ptxdsl")):
            us = [of(few[m, n, k])["rest"] for m in rows]
            axes.plot(rows, us, "o-", color=colour, markersize=3, label=name if k == 16384 else None)
        least = 2 * n * k / DRAM / 1e6
        axes.plot([rows[0], rows[-1]], [least, least], "--", color=LIMIT, linewidth=1)
        axes.annotate(
            f"N×K = {n}×{k}: DRAM needs {least:.0f} µs",
            (rows[0], least),
            (0, -13),
            textcoords="offset points",
            color=LIMIT,
        )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("M")
    axes.legend(frameon=False, loc="upper left")
    axes.set_title("µs of products of few rows: bf16, H200, after a flush of the L2 cache", loc="left")


def epilogues(axes: Axes) -> None:
    """Percent that an epilogue adds at 4096³, held."""
    found = report.costs("4096x4096x4096", "held")
    names = sorted(found, key=lambda name: (name.startswith("cuBLAS"), found[name]), reverse=True)
    for place, name in enumerate(names):
        colour = LIBRARY if name.startswith("cuBLAS") else OURS
        axes.barh(place, found[name], 0.6, color=colour)
        axes.annotate(
            f"{found[name]:.1f}", (max(found[name], 0), place), (4, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("% of the plain product of the same library")
    axes.set_title("Cost of an epilogue: 4096³, bf16, H100, held", loc="left")


def attention(axes: Axes) -> None:
    """TFLOP/s of causal attention at rest, against the length."""
    for (d, heads), style in zip((("64", "32"), ("128", "16"), ("256", "8")), (":", "-", "--"), strict=True):
        of = sorted((key[2], p) for key, p in report.of_attention().items() if key[:2] == (d, heads) and key[3])
        lengths = [length for length, _ in of]
        ours = [report.speed(pair) for _, pair in of]
        theirs = [speed * pair.ours["rest"] / pair.library["rest"] for speed, (_, pair) in zip(ours, of, strict=True)]
        for name, colour, speeds in (("ptxdsl", OURS, ours), ("cuDNN", LIBRARY, theirs)):
            axes.plot(lengths, speeds, f"o{style}", color=colour, markersize=4, label=f"{name}, D = {d}")
    axes.set_xscale("log", base=2)
    axes.set_xticks(lengths, [f"{length:,}" for length in lengths])
    axes.set_ylim(0, 850)
    axes.set_xlabel("queries = keys")
    axes.legend(frameon=False)
    axes.set_title("TFLOP/s of causal attention: bf16, H200, at rest", loc="left")


DRAWINGS: dict[str, tuple[Callable[[Axes], None], tuple[float, float]]] = {
    "size": (size, (8, 4.2)),
    "classes": (classes, (8.5, 6.5)),
    "roofline": (roofline, (8, 4.6)),
    "few_rows": (few_rows, (8, 4.2)),
    "epilogues": (epilogues, (8, 3.6)),
    "attention": (attention, (8, 4.4)),
}


def write(folder: pathlib.Path, kind: str = "svg") -> Iterator[pathlib.Path]:
    """Draw all pictures into a folder; the files are the same for the same results."""
    folder.mkdir(exist_ok=True)
    for name, (draw, inches) in DRAWINGS.items():
        with matplotlib.rc_context(STYLE):
            figure, axes = pyplot.subplots(figsize=inches, layout="constrained")
            draw(axes)
            path = folder / f"{name}.{kind}"
            figure.savefig(path, metadata={"Date": None} if kind == "svg" else None)
            pyplot.close(figure)
        yield path
