"""Shape classes, and which candidates are worth timing."""

import numpy as np
import pytest

from ptxdsl.kernels.candidates.facts import (
    GroupFacts,
    ListClass,
    ListFacts,
    ProductFacts,
    class_extent,
    class_of_list,
)
from ptxdsl.kernels.choose.promising import CLOSE, MOST, TuningCandidate, promising
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import IdentityThreadblockSwizzle, StreamKThreadblockSwizzle
from ptxdsl.types import e4m3

SIZES = [*range(1, 700), 4095, 4096, 4097, 100_000]


class TestExtents:
    @pytest.mark.parametrize("least", [1, 16, 64])
    def test_they_are_the_largest_of_their_class(self, least):
        extents = [class_extent(size, least) for size in SIZES]
        assert all(extent >= size for extent, size in zip(extents, SIZES, strict=True))
        assert [class_extent(extent, least) for extent in extents] == extents
        assert extents == sorted(extents)

    @pytest.mark.parametrize("least", [1, 16, 64])
    def test_members_differ_by_an_eighth_or_by_one_step(self, least):
        for size in SIZES:
            assert class_extent(size, least) - size < max(least, size / 8 + 1)

    def test_rows_and_columns_are_multiples_of_16_or_8(self):
        assert [class_extent(n) for n in (0, 1, 8, 9, 16, 17, 250, 256)] == [0, 8, 8, 16, 16, 32, 256, 256]
        assert [class_extent(n) for n in (257, 288, 289, 513, 4096, 4097)] == [288, 288, 320, 576, 4096, 4608]

    def test_batches_are_counted_one_by_one_at_first(self):
        assert [class_extent(n, 1) for n in (0, 1, 2, 15, 16, 17, 33)] == [0, 1, 2, 15, 16, 18, 36]


class TestClasses:
    def test_of_products_k_is_in_lines(self):
        facts = ProductFacts(300, 500, 100, 3, Operands(), computes=True, split_lines=(True, False))
        assert facts.of_class == facts._replace(m=320, n=512, k=128)
        assert facts._replace(operands=Operands(e4m3, b_major="k")).of_class.k == 128
        assert facts._replace(k=65).of_class.k == 128
        assert facts._replace(k=65, operands=Operands(e4m3)).of_class.k == 128
        assert facts._replace(k=1100).of_class.k == 1152

    def test_what_else_decides_stays(self):
        facts = ProductFacts(64, 64, 64, 1, Operands())
        others = (
            facts._replace(operands=Operands(a_bytes=8)),
            facts._replace(operands=Operands(b_major="mn")),
            facts._replace(operands=Operands(c="separate")),
            facts._replace(computes=True),
            facts._replace(split_lines=(False, True)),
        )
        assert len({each.of_class for each in (facts, *others)}) == 6

    def test_of_groups_rows_are_those_of_one_on_average(self):
        assert GroupFacts(33.3, 1000, 64, 17, Operands()).of_class == GroupFacts(48, 1024, 64, 18, Operands())
        for rows, known in ((0.0, 0), (0.2, 8), (16.06, 16), (16.6, 32)):
            assert GroupFacts(rows, 64, 64, 8, Operands()).of_class.rows == known

    def test_of_lists_the_largest_counts_beside_the_mean(self):
        m, n, k = np.array([100, 20, 300]), np.array([64, 64, 64]), np.array([0, 100, 700])
        known = class_of_list(ListFacts((m, n, k), Operands()))
        assert known == ListClass(3, (144, 64, 320), (320, 64, 704))
        assert [column.tolist() for column in known.sizes] == [[320, 144, 144], [64, 64, 64], [704, 320, 320]]
        again = class_of_list(ListFacts((m + 3, n, k), Operands()))
        assert again == known

    def test_of_a_list_of_one(self):
        column = np.array([5])
        known = class_of_list(ListFacts((column, column, column), Operands()))
        assert [each.tolist() for each in known.sizes] == [[8], [8], [64]]


def of_stages(*numbers, **fields):
    return [TuningCandidate(GemmConfig(stages=stages, **fields)) for stages in numbers]


class TestPromising:
    def test_those_that_come_close_the_best_first(self):
        first, second, third = of_stages(2, 3, 4)
        assert promising(zip((CLOSE * 4 + 1, 4, 5), (first, second, third), strict=True)) == [second, third]
        assert promising([(4, first), (4, second), (1, first)]) == [first]
        assert promising([]) == []

    def test_a_bound(self):
        assert promising((1.0, each) for each in of_stages(*range(2, 40))) == of_stages(*range(2, 2 + MOST))

    def test_the_best_of_each_kind_whatever_it_should_take(self):
        tile = {"tile": (128, 128, 64), "atom": WGMMA, "schedule": Strips()}
        close = of_stages(*range(2, 40), **tile)
        ways = (
            {"pingpong": True},
            {"stagger": 1},
            {"schedule": ClusterStrips((2, 1))},
            {"schedule": IdentityThreadblockSwizzle(1), "split_k": 2, "reduction": "cluster"},
            {"schedule": StreamKThreadblockSwizzle(132)},
            {"swap_ab": True, "tile": (64, 128, 64)},
        )
        kinds = [TuningCandidate(GemmConfig(stages=4, **{**tile, **way})) for way in ways]
        worse = [TuningCandidate(GemmConfig(stages=5, **{**tile, **way})) for way in ways]
        by_warps = of_stages(3)
        timed = [(1.0 + n / 100, each) for n, each in enumerate(close)]
        timed += [(1e3, each) for each in kinds] + [(2e3, each) for each in worse] + [(1e3, by_warps[0])]
        taken = promising(timed)
        assert len(taken) == MOST
        assert {*kinds} <= {*taken} and not {*taken} & {*worse, *by_warps}
        assert taken[: MOST - len(kinds) - 1] == close[: MOST - len(kinds) - 1]

    def test_kinds_of_wgmma_where_mma_sync_is_the_best(self):
        by_warps, by_wgmma = of_stages(3), of_stages(4, tile=(128, 128, 64), atom=WGMMA, schedule=Strips())
        assert promising([(1.0, by_warps[0]), (100.0, by_wgmma[0])]) == by_warps + by_wgmma

    def test_labels_are_those_of_tables(self):
        assert TuningCandidate(GemmConfig(stages=3)).label == "128x128x32/64x64/3"
        assert TuningCandidate(GemmConfig(stages=3), "ab").label == "copies of a and b, 128x128x32/64x64/3"
