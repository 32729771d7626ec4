"""Laws of the choice of a configuration: what it is made of, what it fits, how estimates behave, and that the table of
measured winners decides."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from ptxdsl.kernels.call.paths import path
from ptxdsl.kernels.call.paths.path import Request
from ptxdsl.kernels.call.paths.select import select
from ptxdsl.kernels.candidates.candidate import ALONE
from ptxdsl.kernels.candidates.facts import GroupFacts, ListFacts, ProductFacts, ProductKind, class_name
from ptxdsl.kernels.candidates.sm80 import CONVOLUTIONS, GROUPED, OF_HALVES, candidate
from ptxdsl.kernels.candidates.sm90 import (
    DATA_PARALLEL,
    HEURISTIC,
    Decomposition,
    candidates_of_groups,
    candidates_of_product,
)
from ptxdsl.kernels.choose.estimate import estimate
from ptxdsl.kernels.choose.products import (
    best,
    choose_product,
    ranked_by_warps,
    ranked_groups,
    ranked_groups_by_warps,
    ranked_products,
)
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.product.operands import Extra, Operands, Scaling
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.types import bf16, e4m3, f16, f32, s8, s32

UNMEASURED = replace(rates_of(), winners={})
SHAPES = [(1, 4096, 4096), (64, 7168, 2048), (144, 2112, 7168), (1024, 1024, 1024), (4096, 4096, 4096), (8192, 8, 512)]
OPERANDS = {
    "bf16": Operands(bf16, bf16),
    "f32 out": Operands(bf16, f32),
    "C": Operands(bf16, bf16, c="separate"),
    "a column": Operands(bf16, bf16, extras=(Extra(f32, "n"),)),
    "a matrix": Operands(bf16, bf16, extras=(Extra(bf16, "mn"),)),
    "MN-major": Operands(bf16, bf16, a_major="mn", b_major="mn"),
    "batches": Operands(bf16, bf16, batches="strided"),
    "e4m3": Operands(e4m3, bf16),
    "s8": Operands(s8, s32),
    "tf32": Operands(f32, f32, rounded="a"),
    "blocks": Operands(e4m3, bf16, scaling=Scaling.BLOCKS),
}
KINDS = {
    "gemm": {},
    "unaligned": {"split_lines": (True, True)},
    "conv": {"kind": ProductKind.CONV},
    "1x1": {"kind": ProductKind.CONV_1X1},
    "wgrad": {"kind": ProductKind.WGRAD},
}


def product(*shape, operands=OPERANDS["bf16"], **how):
    return ProductFacts(*shape, 1, operands, **how)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERANDS)
def test_every_candidate_fits_a_multiprocessor(name, kind):
    """Its accumulators, ring and staged output, stored by TMA or by threads."""
    operands = OPERANDS[name]
    for shape in SHAPES:
        facts = product(*shape, operands=operands, **KINDS[kind])
        known = candidates_of_product(facts, 132)
        assert known or kind != "gemm"
        for each in known:
            is_turned = each.config.swap_ab  # stored in boxes where others lie below, and without clusters
            is_below = not is_turned or (facts.m > each.config.tile[0] and each.cluster == ALONE)
            may_box = operands.output.bits == 16 and name != "a matrix"
            in_boxes = may_box and each.config.split_k == 1 and is_below
            for boxes in {False, in_boxes}:
                stored = replace(operands, out_boxes=boxes)
                assert each.config.traits(stored, "sm_90a").fits("sm_90a"), each.config.label


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_list_is_short(shape):
    assert len(candidates_of_product(product(*shape), 132)) <= 150


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_label_names_one_candidate(shape):
    labels = [each.config.label for each in candidates_of_product(product(*shape), 132)]
    assert len({*labels}) == len(labels)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_candidates_are_ranked_by_their_estimates(shape):
    times = [time for time, _ in ranked_products(product(*shape), rates_of())]
    assert times == sorted(times) and times[0] > 0 and times[-1] < inf


class TestEstimate:
    """All candidates of a product, for larger and smaller ones."""

    def times(self, rates=UNMEASURED, **how):
        facts = product(2048, 2048, 2048)
        known = [each for each in candidates_of_product(facts, 132) if each.config.split_k == 1]
        return np.array([estimate(each, facts._replace(**how), rates) for each in known])

    @pytest.mark.parametrize("extent", ["m", "n", "k", "batches"])
    def test_more_work_takes_no_less(self, extent):
        for more in (2, 8):
            assert (self.times(**{extent: more * 2048}) >= self.times(**{extent: 2048})).all()

    def test_it_doubles_with_k(self):
        ratio = self.times(k=1 << 16) / self.times(k=1 << 15)
        assert ((ratio > 1.9) & (ratio <= 2.0)).all()

    def test_less_bandwidth_slows_products_that_read_more_than_they_multiply(self):
        slow = replace(UNMEASURED, sm90=replace(UNMEASURED.sm90, dram=UNMEASURED.sm90.dram / 4))
        few, large = {"m": 16, "n": 65536, "k": 8192}, {"m": 8192, "n": 8192, "k": 8192}
        assert self.times(slow, **few).min() / self.times(**few).min() > 2
        assert self.times(slow, **large).min() / self.times(**large).min() < 1.2

    def test_rows_that_are_not_aligned_take_longer(self):
        assert (self.times(split_lines=(True, True)) >= self.times()).all()

    @pytest.mark.parametrize("config", OF_HALVES[:4], ids=lambda config: config.label)
    def test_of_mma_sync(self, config):
        known = candidate(config, f16)
        times = [estimate(known, product(size, size, size), UNMEASURED) for size in (512, 1024, 2048, 4096, 8192)]
        assert times == sorted(times)

    def test_fewer_multiprocessors_take_longer(self):
        half = UNMEASURED.on(replace(UNMEASURED.gpu, multiprocessors=66))
        assert (self.times(half) > self.times()).all()

    def test_narrower_inputs_take_less(self):
        def least(inputs, output):
            facts = product(8192, 8192, 8192, operands=Operands(inputs, output))
            return ranked_products(facts, UNMEASURED)[0][0]

        assert least(e4m3, bf16) < least(bf16, bf16) < least(f32, f32)


class TestWinners:
    def test_the_table_decides(self):
        facts = product(1024, 4096, 4096)
        ranked = ranked_products(facts, UNMEASURED)
        for _, config in ranked:
            rates = replace(UNMEASURED, winners={class_name(facts): config.label})
            assert best(ranked, facts, rates) == config
            assert choose_product(facts, rates) == config

    def test_all_of_a_class_have_its_winner(self):
        facts = product(1000, 4000, 4096)
        assert class_name(facts) == class_name(product(1024, 4096, 4090)) == "gemm 16 kk 1024x4096x4096"
        winner = ranked_products(facts, UNMEASURED)[3][1].label
        rates = replace(UNMEASURED, winners={class_name(facts): winner})
        assert choose_product(product(1024, 4096, 4090), rates).label == winner

    def test_a_winner_of_the_other_path(self, monkeypatch):
        monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
        facts = product(8192, 8192, 8192)
        for winners, name in (({class_name(facts): OF_HALVES[0].label}, "sm80"), ({}, "sm90")):
            rates = replace(UNMEASURED, winners=winners)
            monkeypatch.setattr(path, "rates_of", lambda _, rates=rates: rates)
            assert select(Request("gemm", facts, None))[0].path == name

    def test_one_that_is_no_candidate_does_not_count(self):
        facts = product(64, 64, 64)
        rates = replace(UNMEASURED, winners={class_name(facts): "128x512/4"})
        assert choose_product(facts, rates) == choose_product(facts, UNMEASURED)

    def test_a_caller_who_says_how_blocks_share_k_is_not_overruled(self):
        facts = product(256, 512, 8192)
        shared = next(each for _, each in ranked_products(facts, UNMEASURED) if each.split_k == 2)
        rates = replace(UNMEASURED, winners={class_name(facts): shared.label})
        assert choose_product(facts, rates).split_k == 2
        assert choose_product(facts, rates, decomposition=DATA_PARALLEL).split_k == 1

    def test_of_groups(self):
        facts = GroupFacts(64.0, 1408, 2048, 64, Operands(bf16, bf16, batches="strided"))
        ranked = ranked_groups(facts, UNMEASURED)
        for _, config in ranked:
            rates = replace(UNMEASURED, winners={class_name(facts, "ragged"): config.label})
            assert best(ranked, facts, rates, "ragged") == config

    def test_winners_of_another_gpu_do_not_count(self):
        assert rates_of().winners
        assert not rates_of().on(replace(rates_of().gpu, multiprocessors=66)).winners

    def test_those_that_ship_are_candidates(self):
        """Of plain products; a label may be for the measured member of a class alone."""
        found = []
        for name, winner in rates_of().winners.items():
            kind, inputs, majors, *rest = name.split()
            if (kind, inputs, majors, len(rest)) == ("gemm", "16", "kk", 1):
                facts = product(*map(int, rest[0].split("x")))
                found.append(winner in {each.config.label for each in candidates_of_product(facts, 132)})
        assert len(found) > 50 and sum(found) > 0.9 * len(found)


class TestSharing:
    @pytest.mark.parametrize("reduction", ["serial", "parallel", "scatter", "cluster"])
    def test_blocks_share_k_as_a_caller_says(self, reduction):
        for _, config in ranked_products(product(256, 512, 8192), UNMEASURED, Decomposition(3, reduction)):
            assert (config.split_k, config.reduction) == (3, reduction)

    def test_batches_do_not_share_k(self):
        batches = product(16, 512, 8192, operands=OPERANDS["batches"])
        assert all(config.split_k == 1 for _, config in ranked_products(batches, UNMEASURED, HEURISTIC))

    def test_all_blocks_that_share_k_are_resident(self):
        facts = product(300, 1024, 8192)
        for each in candidates_of_product(facts, 132):
            if each.config.split_k > 1:
                assert facts.tiles(each.config.tile) * each.config.split_k <= 132 * each.resident

    def test_few_tiles_of_a_long_k_share_it(self):
        assert choose_product(product(16, 2112, 7168), UNMEASURED).split_k > 1
        assert choose_product(product(8192, 8192, 8192), UNMEASURED).split_k == 1


class TestGroups:
    def test_tiles_follow_the_rows_of_a_group(self):
        def rows(average):
            facts = GroupFacts(average, 2048, 4096, 32, Operands(bf16, bf16, batches="strided", out_boxes=True))
            return ranked_groups(facts, UNMEASURED)[0][1].tile[0]

        assert rows(16.0) == 64 and rows(2048.0) == 128

    def test_a_long_k_counts_as_long_as_its_block_is_busy(self):
        def time(longest):
            sizes = np.full(32, 512), np.full(32, 512), np.array([512] * 31 + [longest])
            facts = ListFacts(sizes, Operands(bf16, bf16))
            return min(estimate(each, facts, UNMEASURED) for each in candidates_of_groups(facts))

        assert time(1 << 20) > 20 * time(512)

    def test_the_sm_80_path_has_its_own_tiles(self):
        facts = GroupFacts(64.0, 1408, 2048, 64, Operands(f16, f16))
        known = ranked_groups_by_warps(facts, "sm_90", facts.operands, AHEAD, UNMEASURED)
        assert {config for _, config in known} == {*GROUPED}


def test_the_sm_80_path_has_a_candidate_for_every_width():
    for width in (1, 2, 4, 8, 16):
        inputs = s8 if width == 1 else f16
        operands = Operands(inputs, s32 if inputs is s8 else f16, a_bytes=width, b_bytes=width)
        assert ranked_by_warps(product(100, 100, 100, operands=operands), "sm_80", UNMEASURED)
    assert {8, 16, 32, 64} == {*CONVOLUTIONS}
