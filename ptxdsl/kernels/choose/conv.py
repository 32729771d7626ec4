"""The configuration of a convolution: tiles, and how many blocks share the sum of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from ptxdsl.kernels.choose.candidates import of_convolutions
from ptxdsl.kernels.choose.model import CostModel, Shape, model_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import Type

MOST_SLICES = 8
MOST_BLOCKS = 4  # of a multiprocessor, where K is cut
LEAST_ITERATIONS = 4  # of a slice: fewer are not worth a meeting


def choose(
    shape: Shape, inputs: Type, is_wide: bool, split_k: int | None = None, model: CostModel | None = None
) -> GemmConfig:
    """The configuration and the number of slices that should take the least time for an (M, N, K).

    `is_wide` says whether images are copied in 16 bytes; `split_k` is the number of slices where it is given; `model`
    is that of the GPU, an H200 where it is not given.
    """
    model = model or model_of()
    options = _options(shape, inputs, is_wide, split_k, model)
    config, slices = min(options, key=lambda option: model.convolution(option[0], inputs, shape, option[1]))
    return replace(config, split_k=slices)


def ranked(
    shape: Shape, inputs: Type, is_wide: bool, split_k: int | None, model: CostModel
) -> list[tuple[float, GemmConfig]]:
    """The configurations that `choose` chooses from, with the microseconds that each should take."""
    return [
        (model.convolution(config, inputs, shape, slices), replace(config, split_k=slices))
        for config, slices in _options(shape, inputs, is_wide, split_k, model)
    ]


def _options(
    shape: Shape, inputs: Type, is_wide: bool, split_k: int | None, model: CostModel
) -> Iterator[tuple[GemmConfig, int]]:
    """Configurations, each with a number of slices."""
    for config in of_convolutions(inputs, is_wide):
        for slices in [split_k] if split_k else _slices(shape, config, model.multiprocessors):
            yield config, slices


def _slices(shape: Shape, config: GemmConfig, multiprocessors: int) -> Iterator[int]:
    """No slice, or as many as give each multiprocessor a few blocks at most."""
    tiles, iterations = prod(config.tiling.tiles(*shape[:2])), ceil_div(shape[2], config.tile[2])
    yield 1
    for slices in range(2, MOST_SLICES + 1):
        if slices * tiles <= MOST_BLOCKS * multiprocessors and slices * LEAST_ITERATIONS <= iterations:
            yield slices
