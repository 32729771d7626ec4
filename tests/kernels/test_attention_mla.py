"""attention_decode_mla() against softmax in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config
from ptxdsl.kernels.attention_mla import attention_decode_mla, mla_kernel
from ptxdsl.kernels.flash import decode
from ptxdsl.kernels.flash.mla import MlaTraits, split_count
from ptxdsl.types import bf16, f16
from tests.kernels.spills import check_no_spill
from tests.kernels.test_attention import F16, TOLERANCE, reference
from tests.machines import BF16, MACHINES, machine

COLUMNS, VALUES = 576, 512


def cache(rng, lengths, page, dtype):
    """Return pages of N(0,1) in random order, the page table, and the rows of each sequence.

    Entries of the table past the last page are invalid; rows past the last key of a page are huge.
    """
    width = -(-max(lengths) // page) or 1
    count = len(lengths) * width + 1
    pages = rng.normal(size=(count, page, 1, COLUMNS)).astype(dtype)
    table = rng.permutation(count)[: len(lengths) * width].reshape(-1, width).astype(np.int32)
    rows = []
    for numbers, n in zip(table, lengths, strict=True):
        used = -(-n // page)
        rows.append(pages[numbers[:used]].reshape(-1, COLUMNS)[:n])
        if n % page:
            pages[numbers[used - 1], n % page :] = 1000
        numbers[used:] = -7
    return pages, table, rows


def check(where, rng, heads, page, lengths, dtype=BF16, **options):
    """Decode into a poisoned output and compare it, and the log-sum-exp, with float64."""
    q = rng.normal(size=(len(lengths), heads, COLUMNS)).astype(dtype)
    pages, table, rows = cache(rng, lengths, page, dtype)
    out = where.array(np.full((len(lengths), heads, VALUES), np.nan, dtype))
    given = map(where.array, (q, pages, table, np.array(lengths, np.int32)))
    result = attention_decode_mla(*given, out=out, return_lse=True, **options)
    assert result[0] is out
    found, sums = map(where.values, result)
    for i, keys in enumerate(rows):
        wanted, lse = reference(q[i][:, None], keys[None], keys[None, :, :VALUES], **options)
        np.testing.assert_allclose(found[i], wanted[:, 0], rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
        np.testing.assert_allclose(sums[i], lse[:, 0], atol=2e-3 if dtype is BF16 else 1e-4)


CASES = {  # heads, rows of a page, keys of each sequence, multiprocessors on the emulator
    "one key": (16, 64, [1], 1, {}),
    "one tile, and an empty sequence": (20, 64, [63, 0], 1, {}),
    "two tiles": (16, 32, [65], 1, {"dtype": F16}),
    "three tiles in small pages": (128, 16, [150, 64], 1, {"scale": 192**-0.5}),
    "large pages": (64, 256, [257, 31], 1, {}),
    "split over blocks": (70, 128, [1000, 0, 129], 132, {}),
    "long": (16, 64, [1000], 1, {}),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("case", CASES)
def test_decoding(name, case, rng, monkeypatch):
    heads, page, lengths, processors, options = CASES[case]
    monkeypatch.setattr(decode, "PROCESSORS", processors)
    check(machine(name), rng, heads, page, lengths, **options)


@pytest.mark.exhaustive
@pytest.mark.parametrize("schedule", ["skewed", "random:1"])
def test_other_schedules_of_the_warps(schedule, rng, monkeypatch):
    monkeypatch.setattr(decode, "PROCESSORS", 1)
    with config.using(schedule=schedule):
        check(machine("emulator"), rng, 16, 64, [300])


@pytest.mark.parametrize("name", MACHINES)
def test_views(name, rng):
    """q has gaps between its heads and sequences, and the output is a (H, B, 512) array."""
    where = machine(name)
    q = where.array(rng.normal(size=(2, 18, 640)).astype(BF16))
    pages, table, rows = cache(rng, [40, 70], 64, BF16)
    out = where.array(np.full((16, 2, VALUES), np.nan, BF16))
    of_sequences = out.swapaxes(0, 1)
    given = where.array(pages), where.array(table), where.array(np.array([40, 70], np.int32))
    attention_decode_mla(q[:, :16, :COLUMNS], *given, out=of_sequences)
    for i, keys in enumerate(rows):
        of_q = where.values(q)[i, :16, None, :COLUMNS]
        wanted, _ = reference(of_q, keys[None], keys[None, :, :VALUES])
        np.testing.assert_allclose(where.values(out)[:, i], wanted[:, 0], rtol=2.0**-7, atol=2.0**-7)


@pytest.mark.parametrize("dtype", [bf16, f16])
@pytest.mark.parametrize("is_split", [False, True])
def test_all_stays_in_registers(dtype, is_split):
    check_no_spill(mla_kernel, MlaTraits(dtype, is_split=is_split))
    assert mla_kernel.cubin("sm_90a", traits=MlaTraits(dtype, is_split=is_split)).warnings == ()


def test_blocks_share_keys_where_that_ends_sooner():
    assert split_count(blocks=128, tiles=64, processors=132) == 1
    assert split_count(blocks=256, tiles=64, processors=132) == 1
    assert split_count(blocks=32, tiles=64, processors=132) == 4
    assert split_count(blocks=1, tiles=2, processors=132) == 2


REFUSED = {
    "rank": (
        {"q": np.ones((16, 576), BF16)},
        "`q` has the shape (16, 576); it is (B, H, 576)",
        "reshape it, or permute its axes",
    ),
    "type": (
        {"q": np.ones((2, 16, 576), np.float32)},
        "`q` and `kv_pages` have elements of float32 and bfloat16",
        "convert both to float16 or bfloat16",
    ),
    "columns": (
        {"q": np.ones((2, 16, 512), BF16)},
        "`q` has the shape (2, 16, 512) and `kv_pages` (3, 64, 1, 576)",
        "q is (B, H, 576) and kv_pages (P, page, 1, 576): 512 latent columns, which are the values too, and 64 rotary "
        "ones",
    ),
    "key heads": (
        {"kv": np.ones((3, 64, 2, 576), BF16)},
        "`q` has the shape (2, 16, 576) and `kv_pages` (3, 64, 2, 576)",
        "q is (B, H, 576) and kv_pages (P, page, 1, 576): 512 latent columns, which are the values too, and 64 rotary "
        "ones",
    ),
    "heads": (
        {"q": np.ones((2, 130, 576), BF16)},
        "`q` has the shape (2, 130, 576) and `kv_pages` (3, 64, 1, 576): 130 query heads",
        "H is 16 to 128",
    ),
    "page": (
        {"kv": np.ones((3, 48, 1, 576), BF16)},
        "`q` has the shape (2, 16, 576) and `kv_pages` (3, 48, 1, 576): pages of 48 rows",
        "a page has 16, 32, 64, 128, 256 rows",
    ),
    "table": (
        {"table": np.zeros((3, 1), np.int32)},
        "`page_table` is a numpy array of s32 with shape (3, 1); `q` has 2 sequences",
        "pass a contiguous int32 array with 2 rows",
    ),
    "lengths": (
        {"lengths": np.array([3, 65], np.int32)},
        "`lengths[1]` is 65; the pages of a sequence have 64 rows",
        "pass lengths of 0 to 64, or a page table with more columns",
    ),
    "negative length": (
        {"lengths": np.array([-1, 65], np.int32)},
        "`lengths[0]` is -1; the pages of a sequence have 64 rows",
        "pass lengths of 0 to 64, or a page table with more columns",
    ),
    "scale": ({"scale": -1.0}, "`scale` is -1.0", "pass a finite number above 0"),
    "out": (
        {"out": np.ones((2, 16, 576), BF16)},
        "`out` is a numpy array of bf16 with shape (2, 16, 576); the output has the shape (2, 16, 512) and elements "
        "of bfloat16",
        "pass an array like this",
    ),
    "out of rows that are not aligned": (
        {"out": np.ones((2, 16, 515), BF16)[:, :, :512]},
        "`out` has strides of (8240, 515, 1) elements; rows are written in 16-byte units",
        "pass an array whose columns have no gaps and whose rows are aligned to 16 bytes",
    ),
}  # fmt: skip


@pytest.mark.cases(len(REFUSED))
@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    changes, message, help = REFUSED[case]
    given = {
        "q": np.ones((2, 16, 576), BF16), "kv": np.ones((3, 64, 1, 576), BF16), "table": np.zeros((2, 1), np.int32),
        "lengths": np.ones(2, np.int32),
    } | changes  # fmt: skip
    options = {name: given.pop(name) for name in ("scale", "out") if name in given}
    with pytest.raises(pd.LaunchError) as error:
        attention_decode_mla(*given.values(), **options)
    assert (error.value.message, error.value.help) == (message, help)
