"""Why mutants make no difference, where the reason is known and no run can show it."""

import re
from dataclasses import replace

from .trial import MISSED, SAME, Verdict

ANYWHERE = (
    (r"commit_group", r"(before|behind) (?!cp\.async)", "it does not move across a copy: the groups are the same"),
    (r"commit_group", r"behind cp\.async", "the copy joins the group before its own: threads wait for it no later"),
    (
        r"fence\.proxy\.async",
        r"behind bar",
        "a proxy fence may be anywhere between the two accesses, and the issuing thread executes it",
    ),
    (
        r"wgmma\.fence",
        r"removed|behind wgmma",
        "no wgmma register is used since the previous fence",
    ),
    (r"wait_group", r"before (bar|barrier)\.", "the thread waits earlier, for the same groups"),
    (
        r"tensormap\.cp_fenceproxy",
        r"before bar\.warp",
        "its own .sync waits for the lane that changed the map",
    ),
    (
        r"tensormap\.cp_fenceproxy",
        r"behind bar\.warp",
        "its own .sync waits for all lanes, and the map is changed again only after it",
    ),
    (r"griddepcontrol\.launch_dependents", r"removed", "the next kernel starts later"),
)
"""Instruction, change, reason."""

OF_KERNELS = (
    (
        r"ring\.py.*|visitor\.py.*",
        r"wait_all",
        r"behind bar",
        "the staging buffer is outside the ring, and a thread refills the bytes of a slot only after its own wait",
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
        "elements loaded through registers were stored before the previous barrier",
        r"odd sizes",
    ),
    (
        r"ring\.py",
        r"wait_all",
        r"removed",
        "the ring continues at its position: a slot is refilled only after a wait for its previous contents",
        r"table",
    ),
    (r"visitor\.py", r"bar\.sync", r"removed", "the table is loaded once: no entries were read before", r"table"),
    (
        r"ring\.py",
        r"bar\.sync",
        r"behind ld\.global",
        "it loads from arrays that this block does not write",
        r"table",
    ),
    (
        r"(store|staging|writers|epilogue)\.py",
        r"bar\.warp\.sync",
        r"before st\.shared",
        "those columns are out of bounds",
        r"conv2d$",
    ),
    (
        r"gemm\.py|ragged\.py|conv\.py",
        r"try_wait.*\+(16|24|32|40)\], %ring_1;",
        r"of the other parity",
        "a ring is drained for the other blocks of a cluster; this cluster has one",
        r"sm_90a|scaled|im2col|packed|ping-pong|shares$|staggered$",
    ),
    (
        r"memory\.py|ragged\.py|ragged_k\.py|grouped\.py",
        r"bar\.sync 0",
        r"removed",
        "the block has another barrier after it initialises the tile-number mbarriers, before it uses the ring",
        r"grouped, (lists|masked|ragged)|scaled",
    ),
    (
        r"tile_queue\.py",
        r"bar\.warp\.sync",
        r"removed|before ld\.shared|behind (ld\.global|st\.shared)",
        "each lane arrives after its own reads, and the writer waits for all lanes",
        r"^(?!.*clusters)(grouped|scaled)",
    ),
    (
        r"tile_queue\.py",
        r"bar\.warp\.sync",
        r"removed|before ld\.shared",
        "with fewer stages than tile-number slots, the producer has waited for the products of the tile whose number it overwrites",
        r"shares",
    ),
    (
        r"mma\.py",
        r"wait_group",
        r"behind barrier\.cluster\.wait",
        "the released stage is the last of its block and not refilled, and the accumulators are read later",
        r"K in a cluster",
    ),
    (
        r"(store|staging|writers|epilogue)\.py",
        r"bar\.sync",
        r"removed|behind st(matrix|\.shared)",
        "the other warpgroup waits for its copies before it passes the turn",
        r"ping-pong",
    ),
    (
        r"(store|staging|writers|epilogue)\.py",
        r"bar\.sync",
        r"removed|behind stmatrix",
        "a block stages one tile: the staging buffer was not used before",
        r"one tile a block",
    ),
    (
        r"gemm\.py",
        r"bar\.warp\.sync",
        r"removed|behind st\.shared",
        "wgmma synchronizes the lanes after their reads",
        r"from registers",
    ),
    (
        r"mma\.py",
        r"commit_group",
        r"removed",
        "the first pair of a tile completes with the second: no thread waits for it earlier",
        r"from registers",
    ),
    (
        r"mma\.py",
        r"wait_group",
        r"behind ld\.shared",
        "loaded values reach wgmma registers only after it",
        r"from registers",
    ),
    (
        r"mma\.py",
        r"wait_group",
        r"(before|behind) ld\.global",
        "no product touches the scales that are loaded",
        r"scaled",
    ),
    (
        r"cluster_split\.py",
        r"barrier\.cluster\.wait",
        r"before ld\.global",
        "the block waits earlier, for the same arrivals",
        r"K in a cluster",
    ),
    (
        r"(store|staging|writers|epilogue)\.py",
        r"bar\.warp\.sync",
        r"removed",
        "the warp has another barrier before it stages data",
        r"table|ragged, sm_90a|from registers|scaled|stream-K, sm_90a|swapped|tf32",
    ),
    (
        r"(store|staging|writers|epilogue)\.py",
        r"bar\.warp\.sync",
        r"removed|behind ld\.volatile",
        "it only prevents ptxas from moving code: the values read after it are written before the first barrier",
        r"with C",
    ),
    (
        r"ragged\.py",
        r"xor\.b32 .*%ring_1, 1;",
        r"is not toggled",
        "a ring is drained for the other blocks of a cluster; this cluster has one",
        r"masked, shares",
    ),
    (
        r"memory\.py|ragged_k\.py",
        r"fence\.mbarrier_init",
        r"removed",
        "the same thread executes the fence of the ring of tile numbers, which covers these mbarriers too",
        r"grouped|scaled",
    ),
    (
        r"maps\.py",
        r"bar\.warp\.sync",
        r"removed",
        "the copy of the map is one operation of the warp, and the map is changed again only after it",
        r"grouped, (lists|ragged along K)",
    ),
    (
        r"writers\.py",
        r"bulk\.wait_group 0",
        r"removed|is 1",
        "the wait for reads, before boxes are staged, also waits for the reads of the tensor map",
        r"grouped, lists",
    ),
    (
        r"attention_backward\.py|key_gradients\.py",
        r"wait_group",
        r"behind ld\.shared",
        "no product touches the statistics that are loaded",
        r"gradients",
    ),
    (
        r"attention_backward\.py|key_gradients\.py",
        r"bar\.warp\.sync",
        r"removed",
        "two barriers of the warp follow the reads of a stage: either of them orders these before the arrival",
        r"gradients",
    ),
    (
        r"attention_backward\.py|key_gradients\.py",
        r"wait_group|fence\.proxy\.async",
        r"(behind|before) bar\.warp\.sync",
        "it moves across the first of two barriers of the warp, and the second precedes the arrival",
        r"gradients",
    ),
    (
        r"tile_queue\.py",
        r"fence\.mbarrier_init",
        r"removed",
        "no copy completes at these mbarriers, and a barrier follows their initialisation",
        r"grouped|scaled",
    ),
    (
        r"(15_flash_)?attention(_mla|_backward)?\.py|latent\.py",
        r"fence\.mbarrier_init",
        r"removed",
        "the same thread executes the fence of the next ring, which covers these mbarriers too",
        r"attention",
    ),
    (
        r"latent\.py",
        r"wgmma\.commit_group",
        r"removed",
        "the product joins the group of the next one, for which the same wait waits",
        r"^attention, MLA",
    ),
    (
        r"latent\.py",
        r"bar\.sync 0;",
        r"removed|behind ld\.global",
        "the thread that initialises these mbarriers begins the copies that all others wait for first",
        r"^attention, MLA",
    ),
    (
        r"latent\.py",
        r"bar\.sync 1, 128;",
        r"removed|behind stmatrix",
        "a wgmma ends for all warps at once here; the manual promises wgmma.wait_group to the executing threads alone",
        r"^attention, MLA",
    ),
    (
        r"attention(_mla)?\.py",
        r"bar\.sync 0;",
        r"removed",
        "the barrier of the next ring orders the initialisation of these mbarriers too",
        r"^attention",
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
