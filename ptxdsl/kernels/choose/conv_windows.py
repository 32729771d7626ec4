"""The configuration of a convolution on the sm_90a path: as that of a product, but for what its images take to be read.

A product reads a matrix of M·K elements. Windows overlap: what a convolution reads are its images, once from DRAM and
then from the L2 cache.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from ptxdsl.kernels.choose.model import CostModel
from ptxdsl.kernels.choose.warpgroup_products import Option, estimate, options
from ptxdsl.kernels.choose.warpgroups import ProductFacts
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.sm90.boxes import LINE_BYTES


def ranked_windows(facts: ProductFacts, moved: int, model: CostModel) -> list[tuple[float, GemmConfig]]:
    """The configurations that `choose_windows` chooses from, with the microseconds that each should take."""
    depth = LINE_BYTES // facts.operands.inputs.bytes
    return [(time, option.config(depth)) for time, option in _timed(facts, moved, model)]


def choose_windows(facts: ProductFacts, moved: int, model: CostModel) -> tuple[float, GemmConfig]:
    """The microseconds that it should take, and the configuration: `facts` are those of the product, whose K is in
    whole lines of a box, and `moved` is the bytes that are read and written."""
    time, option = min(_timed(facts, moved, model))
    return time, option.config(LINE_BYTES // facts.operands.inputs.bytes)


def _timed(facts: ProductFacts, moved: int, model: CostModel) -> list[tuple[float, Option]]:
    rates, multiprocessors = model.rates.warpgroups, model.multiprocessors
    computing, reading = replace(rates, launch=0.0, dram_bandwidth=inf), moved / rates.dram_bandwidth
    timed = []
    for option in options(facts, multiprocessors):
        time = estimate(option, facts, computing, multiprocessors)
        timed.append((rates.launch + max(time, reading) + rates.hidden * min(time, reading), option))
    return timed


def packing_time(moved: int, model: CostModel) -> float:
    """The microseconds that it takes to pack images, which reads and writes so many bytes."""
    rates = model.rates.warpgroups
    return rates.launch + moved / rates.dram_bandwidth
