"""Draws TFLOP/s of square products against their size, ours and cuBLAS's, under the limit of the tensor cores.

    python benchmarks/plot.py benchmarks/results/variants.json benchmarks/results/gemm_sm90_shapes.json -o gemm.svg

Takes the results of variants.py, whose graphs show products of any size, and of gemm.py, at rest; a size that several
files have is that of the last one.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from math import log2
from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 420, 60, 48, 36, 150
LIMIT = 889  # TFLOP/s of wgmma alone on an H200 after a rest, N(0,1) in shared memory
STEP = 200
COLOURS = {"ptxdsl": "#0b7a75", "cublas": "#7a7a7a"}
Series = dict[str, dict[int, float]]  # contender, size: TFLOP/s


def series(results: list[dict[str, Any]]) -> Series:
    """The square products of bf16 in result files."""
    known: Series = {name: {} for name in COLOURS}
    for result in results:
        for row in result["rows"]:
            for name, size, speed in _of_variants(row) if "us" in row else _of_gemm(row):
                known[name][size] = speed
    return known


def _of_variants(row: dict[str, Any]) -> list[tuple[str, int, float]]:
    m, n, k = row["shape"]
    named = {"cublas": "cublas", "ptxdsl": "chosen"}
    return [(name, m, 2e-6 * m * n * k / row["us"][key]) for name, key in named.items() if m == n == k]


def _of_gemm(row: dict[str, Any]) -> list[tuple[str, int, float]]:
    m, n, k = map(int, row["shape"].split("x"))
    is_shown = m == n == k and (row["dtype"], row["layout"]) == ("bf16", "tn") and not m % 64
    return [(row["contender"], m, row["TFLOP/s, rest"])] if is_shown and row["contender"] in COLOURS else []


def svg(known: Series) -> str:
    """The drawing. Sizes are spaced as their logarithms."""
    sizes = sorted({size for speeds in known.values() for size in speeds})
    low, high, top = log2(sizes[0]), log2(sizes[-1]), (LIMIT // STEP + 1) * STEP

    def x(size: int) -> float:
        return LEFT + (log2(size) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(speed: float) -> float:
        return HEIGHT - BOTTOM - speed / top * (HEIGHT - BOTTOM - TOP)

    parts = [_line((LEFT, y(v)), (WIDTH - RIGHT, y(v)), "#dddddd") for v in range(0, top + 1, STEP)]
    parts += [_text(LEFT - 8, y(v) + 4, str(v), "end") for v in range(0, top + 1, STEP)]
    parts += [_text(x(size), HEIGHT - BOTTOM + 18, str(size), "middle") for size in sizes if not size & (size - 1)]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "M = N = K", "middle"))
    parts.append(_text(LEFT - 40, TOP - 18, "TFLOP/s, bf16, at rest", "start"))
    parts.append(_line((LEFT, y(LIMIT)), (WIDTH - RIGHT, y(LIMIT)), "#b23b3b", dashes="6 4"))
    parts.append(_text(WIDTH - RIGHT + 8, y(LIMIT) + 4, f"wgmma alone, {LIMIT}", "start"))
    labels = {name: y(speeds[max(speeds)]) + 4 for name, speeds in known.items() if speeds}
    for above, name in enumerate(sorted(labels, key=labels.__getitem__)):
        speeds = known[name]
        points = " ".join(f"{x(size):.1f},{y(speeds[size]):.1f}" for size in sorted(speeds))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(s):.1f}" cy="{y(v):.1f}" r="3" fill="{COLOURS[name]}"/>' for s, v in speeds.items()]
        height = min(labels.values()) + 16 * above
        parts.append(_text(WIDTH - RIGHT + 8, height, f"{name}, {speeds[max(speeds)]:.0f}", "start", COLOURS[name]))
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    style = 'font-family="system-ui, sans-serif" font-size="13"'
    white = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', white, *parts, "</svg>", ""])


def _line(start: tuple[float, float], end: tuple[float, float], colour: str, dashes: str = "") -> str:
    (x1, y1), (x2, y2) = start, end
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashed}/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#333333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("results", type=pathlib.Path, nargs="+")
    options.add_argument("-o", "--output", type=pathlib.Path, required=True)
    chosen = options.parse_args()
    chosen.output.write_text(svg(series([json.loads(path.read_text()) for path in chosen.results])))


if __name__ == "__main__":
    main()
