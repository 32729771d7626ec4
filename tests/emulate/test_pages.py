"""Pages of shared memory: an access is looked up by words where a page has seen what its threads do not know."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl.emulate.memory.regions import PAGE
from ptxdsl.emulate.observe.races.clocks import Clocks, Message
from ptxdsl.emulate.observe.races.crowds import Crowds
from ptxdsl.emulate.observe.races.pages import Knowledge, Pages
from ptxdsl.emulate.observe.races.stamps import LANDED, LANDINGS, SEVERAL, STAMP, TICK
from ptxdsl.emulate.run.residents import Residents

NOW = TICK | SEVERAL
READER = np.array([64])  # the first lane of warp 1 of block 0; a row of lanes is (warp, block)
ROW = READER // 32
PLACES = np.array([0, PAGE + 16])  # in both pages of block 0


@pytest.fixture
def clocks():
    return Clocks(Residents((2, 1, 1), (64, 1, 1), np.arange(2)), Crowds())


@pytest.fixture
def pages():
    return Pages(slots=2, stride=2 * PAGE, width=2, blocks=1)


def doubts(pages, clocks, writes=False, asynchronous=False):
    return pages.doubts(Knowledge(clocks, READER), PLACES, writes, asynchronous)


def test_what_another_warp_wrote_is_in_doubt_until_it_is_known(pages, clocks):
    pages.note_writes(clocks, np.array([PAGE]), np.array([0], STAMP), NOW)
    assert doubts(pages, clocks).writers.tolist() == [False, True]
    clocks.learn(ROW, np.array([[NOW - 1, 0]], STAMP))
    assert doubts(pages, clocks).writers.tolist() == [False, True]
    clocks.learn(ROW, np.array([[NOW, 0]], STAMP))
    assert doubts(pages, clocks).writers is None


def test_reads_are_in_doubt_for_writes_alone(pages, clocks):
    pages.note_reads(np.array([0]), np.array([0]), NOW, True)
    assert doubts(pages, clocks).readers is None
    assert doubts(pages, clocks, writes=True).readers.tolist() == [True, False]


@pytest.mark.parametrize("is_generic", [True, False])
def test_the_async_proxy_doubts_that_threads_have_read_what_it_writes_until_that_is_fenced(pages, clocks, is_generic):
    pages.note_reads(np.array([0]), np.array([0]), NOW, is_generic)
    clocks.seen[:] = NOW
    assert doubts(pages, clocks, asynchronous=True).read_fences is None
    in_doubt = doubts(pages, clocks, writes=True, asynchronous=True).read_fences
    assert in_doubt.tolist() == [True, False] if is_generic else in_doubt is None
    clocks.proxy_table()[ROW, LANDINGS:] = NOW
    assert doubts(pages, clocks, writes=True, asynchronous=True).read_fences is None


def test_what_landed_is_known_by_the_table_of_the_async_proxy(pages, clocks):
    pages.note_writes(clocks, np.array([0]), np.array([LANDED + 3], STAMP), NOW)
    assert doubts(pages, clocks).writers.tolist() == [True, False]
    clocks.proxy_table()[ROW, 3] = NOW
    assert doubts(pages, clocks).writers is None


@pytest.mark.parametrize("writer", [2, LANDED + LANDINGS + 3])
def test_what_came_from_another_block_stays_in_doubt(pages, clocks, writer):
    pages.note_writes(clocks, np.array([0]), np.array([writer], STAMP), NOW)
    clocks.seen[:], clocks.proxy_table()[:] = NOW, NOW
    assert doubts(pages, clocks).writers.tolist() == [True, False]


def test_the_async_proxy_doubts_what_was_not_fenced_though_it_is_known(pages, clocks):
    pages.note_writes(clocks, np.array([0]), np.array([0], STAMP), NOW)
    clocks.seen[:] = NOW
    assert doubts(pages, clocks, asynchronous=True).fences.tolist() == [True, False]
    clocks.proxy_table()[ROW, LANDINGS:] = NOW
    assert doubts(pages, clocks, asynchronous=True).fences is None


def test_threads_of_a_block_know_what_all_of_them_know(pages, clocks):
    pages.note_writes(clocks, np.array([0]), np.array([0], STAMP), NOW)
    clocks.learn(ROW, np.array([[NOW, 0]], STAMP))
    both = Knowledge(clocks, np.array([0, 64]))
    assert pages.doubts(both, PLACES, False, False).writers.tolist() == [True, False]


def test_pages_go_with_their_blocks(pages, clocks):
    pages.note_reads(np.array([3 * PAGE]), np.array([1]), NOW, True)
    moved = pages.moved(3, np.array([1]), np.array([2]))
    assert np.argwhere(moved.reads).tolist() == np.argwhere(moved.generic_reads).tolist() == [[5, 1]]


@pytest.mark.parametrize("writer", [2, LANDED + LANDINGS + 3])
def test_a_block_of_a_cluster_knows_what_it_learned_of_the_other_block(writer):
    clocks = Clocks(Residents((2, 1, 1), (64, 1, 1), np.arange(2), (2, 1, 1)), Crowds())
    pages = Pages(slots=2, stride=2 * PAGE, width=4, blocks=2)
    pages.note_writes(clocks, np.array([0]), np.array([writer], STAMP), NOW)
    reached = np.zeros(2, np.int64), np.repeat(READER, 2)
    assert pages.doubts(Knowledge(clocks, READER, reached), PLACES, False, False).writers.tolist() == [True, False]
    row = np.zeros(clocks.proxy_table().shape[1], STAMP)
    row[3] = NOW
    clocks.teach(ROW, [Message(np.array([0, 0, NOW, 0, 0], STAMP), proxies={1: row})])
    assert pages.doubts(Knowledge(clocks, READER, reached), PLACES, False, False).writers is None


def test_reads_by_another_block_are_in_doubt_for_writes():
    clocks = Clocks(Residents((2, 1, 1), (64, 1, 1), np.arange(2), (2, 1, 1)), Crowds())
    pages = Pages(slots=2, stride=2 * PAGE, width=4, blocks=2)
    pages.note_reads(np.array([0]), np.array([3]), NOW, False)
    assert pages.doubts(Knowledge(clocks, READER), PLACES, True, False).readers.tolist() == [True, False]
    clocks.learn(ROW, np.array([[0, 0, 0, NOW]], STAMP))
    assert pages.doubts(Knowledge(clocks, READER), PLACES, True, False).readers is None
