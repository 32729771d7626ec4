"""The selection among paths, with a third path that is added from outside: a reader of configurations, a path, and its
kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernel import Kernel
from ptxdsl.kernels import config as configs
from ptxdsl.kernels import gemm as page
from ptxdsl.kernels.call.paths.path import Request
from ptxdsl.kernels.call.paths.select import PATHS, path_of, ranked_layouts, select, trials
from ptxdsl.kernels.call.paths.sm80 import WarpPath
from ptxdsl.kernels.call.products.plan import Kernels
from ptxdsl.kernels.candidates.facts import ProductFacts, class_name
from ptxdsl.kernels.candidates.sm90 import DATA_PARALLEL, Decomposition
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import compute, gemm
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm80.copies import matrix_copies
from ptxdsl.kernels.sm80.ring import SharedMemory
from ptxdsl.kernels.sm80.tiling import WarpTiling
from ptxdsl.kernels.sm80.traits import WarpConfigs, WarpTraits
from ptxdsl.kernels.traits.parameters import parameters, products_of
from ptxdsl.types import bf16, e4m3, f16, f32, s8, s32

TILE = GemmConfig(tile=(64, 64, 32), warp=(32, 32))


@dataclass(frozen=True)
class ToyTraits(WarpTraits):
    path = "toy"


class ToyConfigs(WarpConfigs):
    """Reads configurations whose atom is "toy"."""

    path = "toy"

    def reads(self, atom: object) -> bool:
        return atom == "toy"

    def misfits(self, config: GemmConfig) -> Iterator[str]:
        if config.tile != TILE.tile:
            yield f"tile is {config.tile}; a toy has {TILE.tile}"

    def tiling(self, config: GemmConfig) -> WarpTiling:
        return WarpTiling(config.tile, TILE.warp, config.stages)

    def traits(self, config: GemmConfig, operands: Operands, arch: str) -> ToyTraits:
        return ToyTraits(config.tiling, operands, config.tile_schedule, config.epilogue)


class ToyPath(WarpPath):
    """Multiplies float16 alone, and is the fastest."""

    name = "toy"

    def refusal(self, request):
        return None if request.facts.operands.inputs is f16 else ("toys multiply float16", "convert it")

    def ranked(self, facts, request):
        return [(0.001, GemmConfig(tile=TILE.tile, atom="toy"))]

    def obstacles(self, problem, traits):
        return () if problem.a.type is f16 else [("toys multiply float16", "convert it")]


@pd.kernel
def toy_kernel(p: parameters(traits), *, traits: ToyTraits = ToyTraits(TILE.tiling)) -> None:  # noqa: F821
    """Compute a product as `gemm_kernel` does."""
    memory = SharedMemory(traits)
    compute(
        traits,
        memory,
        matrix_copies(traits, memory),
        traits.schedule.walk(memory.context(products_of(p, traits), p.schedule)),
    )


class ToyKernels(NamedTuple):
    sm80: Kernel
    sm90: Kernel
    toy: Kernel

    of = Kernels.of


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(configs, "READERS", [ToyConfigs(), *configs.READERS])
    monkeypatch.setattr(page, "KERNELS", ToyKernels(*page.KERNELS, toy_kernel))
    launched = []
    PATHS.append(ToyPath())
    of = ToyKernels.of
    monkeypatch.setattr(ToyKernels, "of", lambda kernels, traits: launched.append(traits.path) or of(kernels, traits))
    configs._specialised.cache_clear()
    yield launched
    PATHS.pop()
    configs._specialised.cache_clear()


class TestAThirdPath:
    @pytest.mark.parametrize(("type", "path"), [(np.float16, "toy"), (np.float32, "sm80")])
    def test_it_is_selected_where_it_does_not_refuse(self, toy, type, path, rng):
        a, b = (rng.integers(-3, 4, shape).astype(type) for shape in ((70, 40), (40, 50)))
        assert np.array_equal(gemm(a, b), a @ b)
        assert toy == [path]

    def test_a_configuration_asks_for_it(self, toy, rng):
        a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((70, 40), (40, 50)))
        assert np.array_equal(gemm(a, b, config=GemmConfig(tile=TILE.tile, atom="toy", stages=3)), a @ b)
        assert toy == ["toy"]

    def test_its_refusals_are_those_of_a_call(self, toy):
        with pytest.raises(pd.LaunchError) as caught:
            gemm(np.ones((8, 8), np.float32), np.ones((8, 8), np.float32), config=GemmConfig(TILE.tile, atom="toy"))
        assert (caught.value.message, caught.value.help) == ("toys multiply float16", "convert it")
        with pytest.raises(pd.LaunchError, match=r"tile is .128, 64, 32.; a toy has .64, 64, 32."):
            GemmConfig((128, 64, 32), atom="toy")


def request_of(inputs=f16, **fields) -> Request:
    operands = Operands(inputs, {e4m3: f32, s8: s32}.get(inputs, inputs))
    return Request("gemm", ProductFacts(512, 512, 512, 1, operands), None, **fields)


class TestSelection:
    @pytest.mark.parametrize(
        ("arch", "request_", "path"),
        [
            ("sm_90a", request_of(), "sm90"),
            ("sm_80", request_of(), "sm80"),
            ("sm_90a", request_of(f32), "sm80"),
            ("sm_90a", request_of(e4m3), "sm90"),
            ("sm_90a", request_of(obstacles=[("TMA", "")]), "sm80"),
            ("sm_90a", request_of(decomposition=None, is_scheduled=True), "sm80"),
            ("sm_90a", request_of(decomposition=Decomposition(2, "cluster"), is_scheduled=True), "sm90"),
        ],
        ids=["wgmma", "another GPU", "float32", "8 bits", "obstacles", "a schedule of the caller", "a cluster"],
    )
    def test_the_path(self, arch, request_, path):
        with pd.config.using(arch=arch):
            assert path_of(select(request_)[0]).name == path

    def test_a_call_that_all_refuse_gets_the_last_refusal(self):
        with pd.config.using(arch="sm_80"), pytest.raises(pd.LaunchError) as caught:
            select(request_of(e4m3))
        assert caught.value.message == (
            "`a` and `b` are float8_e4m3fn, which gemm multiplies on sm_90a; the kernel is for sm_80"
        )

    def test_the_least_estimate_is_selected(self):
        with pd.config.using(arch="sm_90a"):
            known = ranked_layouts(request_of(bf16))
            assert {path_of(option.ranked[0][1]).name for option in known} == {"sm80", "sm90"}
            assert select(request_of(bf16))[0] == min((option.best for option in known), key=lambda pair: pair[0])[1]

    @pytest.mark.parametrize("number", [0, 1], ids=["sm_80", "sm_90a"])
    def test_a_measured_winner_comes_first(self, monkeypatch, number):
        request = request_of(s8)
        with pd.config.using(arch="sm_90a"):
            slow = ranked_layouts(request)[number].ranked[-1][1]
            measured = {class_name(request.facts): slow.label}
            monkeypatch.setattr(Request, "rates", replace(request.rates, winners=measured))
            assert select(request) == (slow, "")

    def test_what_would_be_selected_is_timed_first(self):
        with pd.config.using(arch="sm_90a"):
            for request in (request_of(), replace(request_of(), decomposition=DATA_PARALLEL)):
                timed = [each.config for _, each in trials(request)]
                firsts = [option.best[1] for option in ranked_layouts(request)]
                assert firsts[0] == timed[0] and {*firsts} <= {*timed}
