"""The tiles of a GEMM in shared memory: each place is used once, and no access waits for a bank."""

from __future__ import annotations

import pytest

from ptxdsl import f16
from ptxdsl.kernels.tile import CHUNK_BYTES, Tile

BANK_BYTES, BANKS = 4, 32
TILES = [
    Tile(f16, mn, k, major, 16) for mn in (64, 128, 256) for k in (32, 64) for major in ("k", "mn")
]  # fmt: skip


def rows_of(tile):
    """The byte address of each 16-byte chunk, row by row."""
    chunk = CHUNK_BYTES // tile.type.bytes
    layout = tile.split((tile.rows,), (chunk, tile.row // chunk))
    return [[layout((row,), (0, c)) * tile.type.bytes for c in range(tile.row // chunk)] for row in range(tile.rows)]


def banks(addresses):
    """The banks that 16-byte accesses touch, with repetitions."""
    return [(a // BANK_BYTES + word) % BANKS for a in addresses for word in range(CHUNK_BYTES // BANK_BYTES)]


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_every_chunk_has_a_place_of_its_own(tile):
    places = sorted(address for row in rows_of(tile) for address in row)
    assert places == list(range(0, tile.bytes, CHUNK_BYTES))


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_ldmatrix_reads_eight_rows_of_a_column_without_conflicts(tile):
    rows = rows_of(tile)
    for first in range(0, tile.rows, 8):
        for column in range(len(rows[0])):
            assert len(set(banks(row[column] for row in rows[first : first + 8]))) == BANKS


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_copies_write_eight_neighbouring_chunks_without_conflicts(tile):
    chunks = [address for row in rows_of(tile) for address in row]
    for first in range(0, len(chunks), 8):
        assert len(set(banks(chunks[first : first + 8]))) == BANKS
