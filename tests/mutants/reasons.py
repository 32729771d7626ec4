"""Why mutants make no difference, where the reason is known and no run can show it."""

import re
from dataclasses import replace

from .trial import MISSED, SAME, Verdict

ANYWHERE = (
    (r"commit_group", r"(before|behind) (?!cp\.async)", "it crosses no copy: the groups are the same"),
    (r"commit_group", r"behind cp\.async", "the copy joins the group before its own: threads wait for it no later"),
    (
        r"fence\.proxy\.async",
        r"behind bar",
        "a proxy fence may stand anywhere between the access of a thread and the asynchronous one, and the thread that "
        "issues runs it",
    ),
    (
        r"wgmma\.fence",
        r"removed|behind wgmma",
        "the emulator names each use of a register of products since the fence before, and there is none",
    ),
    (r"wait_group", r"before (bar|barrier)\.", "the thread waits earlier, for the same groups"),
    (
        r"tensormap\.cp_fenceproxy",
        r"before bar\.warp",
        "it waits itself, by .sync, for the lane of its warp that has changed the map",
    ),
    (r"griddepcontrol\.launch_dependents", r"removed", "the kernel behind begins later"),
)
"""Instruction, change, reason."""

OF_KERNELS = (
    (
        r"ring\.py.*|visitor\.py.*",
        r"wait_all",
        r"behind bar",
        "what is staged lies behind the ring, and a thread fills the same bytes of a slot, behind its own wait",
        r"persistent|stream-K|grouped",
    ),
    (
        r"ring\.py",
        r"bar\.sync",
        r"behind st\.shared",
        "the warp alone reads what that store overwrites",
        r"gemm|conv2d",
    ),
    (
        r"ring\.py",
        r"bar\.sync",
        r"behind ldmatrix",
        "elements that go through registers were stored before the barrier of the round before",
        r"odd sizes",
    ),
    (
        r"ring\.py",
        r"wait_all",
        r"removed",
        "the ring goes on where it was: a slot is filled again behind a wait for what came to it before",
        r"table",
    ),
    (r"visitor\.py", r"bar\.sync", r"removed", "the table is brought once: nobody has read entries before", r"table"),
    (
        r"ring\.py",
        r"bar\.sync",
        r"behind ld\.global",
        "it loads from arrays that this block does not write",
        r"table",
    ),
    (r"store\.py", r"bar\.warp\.sync", r"before st\.shared", "those columns lie outside of the matrix", r"conv2d$"),
    (
        r"gemm\.py|ragged\.py|conv\.py",
        r"try_wait.*\+(16|24|32|40)\], %ring_1;",
        r"of the other parity",
        "a ring is drained for the other blocks of a cluster, and there are none",
        r"sm_90a|scaled|im2col|packed|ping-pong|shares$|staggered$",
    ),
    (
        r"memory\.py|ragged\.py|ragged_k\.py|grouped\.py|scaled\.py",
        r"bar\.sync 0",
        r"removed",
        "the block meets again behind the mbarriers of tile numbers, before it comes to any of the ring",
        r"grouped, (lists|masked|ragged)|scaled",
    ),
    (
        r"tile_queue\.py",
        r"bar\.sync 0",
        r"removed",
        "the cluster meets again behind the mbarriers of numbers that its first block takes, before it comes to any ring",
        r"clusters",
    ),
    (
        r"tile_queue\.py",
        r"bar\.warp\.sync",
        r"removed|before ld\.shared|behind ld\.global",
        "each lane arrives for itself behind what it reads, and who writes waits for all of them",
        r"^(?!.*clusters)(grouped|scaled)",
    ),
    (
        r"tile_queue\.py",
        r"bar\.warp\.sync",
        r"removed|before ld\.shared",
        "with fewer stages than numbers of tiles are held, who copies has waited for the products of the tile whose "
        "numbers it overwrites",
        r"shares",
    ),
    (
        r"mma\.py",
        r"wait_group",
        r"behind barrier\.cluster\.wait",
        "the stage that is released before is the last of a block, which nobody fills again, and the sums are read behind",
        r"K in a cluster",
    ),
    (
        r"store\.py",
        r"bar\.sync",
        r"removed|behind st(matrix|\.shared)",
        "the other warpgroup has waited for its copies when it passes the turn on",
        r"ping-pong",
    ),
    (
        r"store\.py",
        r"bar\.sync",
        r"removed|behind stmatrix",
        "a block stages one tile, at once: nobody has staged anything there before",
        r"one tile a block",
    ),
    (
        r"gemm\.py",
        r"bar\.warp\.sync",
        r"removed|behind st\.shared",
        "wgmma has brought the lanes together behind what they read",
        r"from registers",
    ),
    (
        r"mma\.py",
        r"commit_group",
        r"removed",
        "the first pair of a tile ends with the second one: nobody waits for it before",
        r"from registers",
    ),
    (
        r"mma\.py",
        r"wait_group",
        r"behind ld\.shared",
        "what is loaded comes to registers of products behind it, by a selection",
        r"from registers",
    ),
    (r"mma\.py", r"wait_group", r"before ld\.global", "no product touches the scales that are loaded", r"scaled"),
    (
        r"store\.py",
        r"bar\.warp\.sync",
        r"removed",
        "the warp meets again before it stages anything",
        r"table|ragged, sm_90a|from registers",
    ),
    (
        r"store\.py",
        r"bar\.warp\.sync",
        r"removed|behind ld\.volatile",
        "it is there for ptxas, which would compute earlier: what is read behind it is written before the block first meets",
        r"with C",
    ),
    (
        r"ragged\.py",
        r"xor\.b32 .*%ring_1, 1;",
        r"is not toggled",
        "a ring is drained for the other blocks of a cluster, and there are none",
        r"masked, shares",
    ),
    (
        r"15_flash_attention\.py",
        r"fence\.mbarrier_init",
        r"removed",
        "the fence behind the mbarriers of the ring that is made next is run by the same thread, and orders these as well",
        r"flash_attention",
    ),
)
"""File, instruction, change, reason, subject."""


def explained(subject: str, verdict: Verdict) -> Verdict:
    """The verdict, with its reason if the mutant seemed to be missed and one is known."""
    mutant = verdict.mutant
    if verdict.verdict != MISSED:
        return verdict
    for instruction, change, reason in ANYWHERE:
        if re.search(instruction, mutant.instruction) and re.match(change, mutant.change):
            return replace(verdict, verdict=SAME, reason=reason)
    for file, instruction, change, reason, subjects in OF_KERNELS:
        at = re.match(file, mutant.source) and re.search(instruction, mutant.instruction)
        if at and re.match(change, mutant.change) and re.search(subjects, subject):
            return replace(verdict, verdict=SAME, reason=reason)
    return verdict
