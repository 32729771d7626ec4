"""One estimate of the time of a kernel, for products, batches, groups, lists and convolutions on both paths.

A block takes for an iteration the longer of its math and its load, and a part of the shorter. Tiles come in waves; the
latency of a load, which the stages of the ring share, bounds a wave from below. The epilogue of the last tile is
exposed, and of others a part of it; ping-pong warpgroups hide it behind the other's math. Reading and writing DRAM once
bounds all of that; most of the shorter of both is hidden.
"""

from __future__ import annotations

from math import ceil, prod

from ptxdsl.kernels.candidates.candidate import Candidate
from ptxdsl.kernels.candidates.facts import Facts, GroupFacts, ListFacts
from ptxdsl.kernels.choose.rates import PathRates, Rates
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS
from ptxdsl.schedule import StreamKThreadblockSwizzle
from ptxdsl.schedule.arithmetic import ceil_div

BLOCK_SCALING = 1.25  # times as long as math takes whose accumulators are promoted: 256 of 1024 issue cycles more


def estimate(each: Candidate, facts: Facts, rates: Rates) -> float:
    """Return the microseconds that a candidate should take."""
    config, path = each.config, rates.of(each.config)
    m, n, depth = config.tile
    size = prod(each.cluster)
    shares = config.split_k if config.reduction == "cluster" and config.split_k > 1 else size
    multiprocessors = rates.multiprocessors * rates.clusters[shares - 1]
    blocks = facts.tiles((m * each.cluster[0], n * each.cluster[1])) * size * config.split_k
    iterations, longest = (ceil_div(ceil_div(k, depth), config.split_k) for k in (facts.k, facts.longest))
    on_each, waves = max(1, ceil(blocks / multiprocessors)), max(1, ceil(blocks / (multiprocessors * each.resident)))
    iteration, latency = _iteration(each, facts, path), path.latency / (config.stages - 1)
    if isinstance(config.schedule, StreamKThreadblockSwizzle):
        iterations = ceil(iterations * blocks / (multiprocessors * on_each))
    mainloop = max(on_each * iterations * iteration, waves * iterations * latency, longest * iteration)
    epilogue = m * n * path.store
    if config.pingpong:
        computing = max(mainloop, mainloop / 2 + on_each * epilogue) + epilogue
    else:
        computing = mainloop + epilogue * (1 + path.exposed * (on_each - 1)) + waves * path.wave
    reading = facts.moved / path.dram
    hidden = path.dram_lost * min(computing, reading)
    begin = rates.launch + {GroupFacts: path.groups, ListFacts: path.lists}.get(type(facts), 0.0)
    return begin + max(computing, reading) + hidden + _sharing(each, path, min(on_each, each.resident))


def _iteration(each: Candidate, facts: Facts, path: PathRates) -> float:
    """The microseconds of an iteration of a block that is alone on a multiprocessor."""
    config, operands = each.config, facts.operands
    math = prod(config.tile) / path.of(operands.inputs)
    math = max(math, config.tile[config.swap_ab] // GROUP_ROWS * path.narrow + math / 2) + each.delay
    math *= BLOCK_SCALING if operands.has_block_scales else 1.0
    loaded = [bytes * (path.unaligned if slow else 1.0) for bytes, slow in zip(each.loaded, each.slow, strict=True)]
    load = (sum(loaded) + each.fragments) / path.load
    return max(math, load) + path.overlap_lost * min(math, load)


def _sharing(each: Candidate, path: PathRates, together: int) -> float:
    """The microseconds in which blocks that share K add up, or blocks of a cluster agree on loads."""
    config, elements = each.config, prod(each.config.tile[:2])
    if prod(each.cluster) > 1:
        return path.multicast
    if isinstance(config.schedule, StreamKThreadblockSwizzle):
        return together * elements * path.global_sum
    if config.split_k == 1:
        return 0.0
    if config.reduction == "cluster":
        return config.split_k * path.meeting + elements * path.sum
    return (
        path.meeting * (config.split_k if config.reduction == "serial" else 1) + together * elements * path.global_sum
    )
