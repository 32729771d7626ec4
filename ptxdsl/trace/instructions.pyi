# Generated from the instruction table by `make stubs`. Each class stands for mnemonics that begin with its name; the
# attributes are the words that may follow, and classes of complete mnemonics can be called.
from typing import Any, Literal, TypeAlias, overload

from ptxdsl.trace.instruction import Scalar

In: TypeAlias = object  # a traced value, a pointer, a number, a list of these for a vector
Out: TypeAlias = object  # a variable, "_", or a list of these
Guard: TypeAlias = Scalar | None  # a predicate
Vector: TypeAlias = tuple[Scalar, ...]
Vector2: TypeAlias = tuple[Scalar, Scalar]
Vector4: TypeAlias = tuple[Scalar, Scalar, Scalar, Scalar]

class abs:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the absolute value of a half-precision value: d = |a|."
class abs_2:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the absolute value: d = |a|."
class abs_ftz:
    f16: abs; f16x2: abs; f32: abs_2
class abs_3:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the absolute value: d = |a|; the most negative value is returned unchanged."
class abs_4:
    bf16: abs; bf16x2: abs; f16: abs; f16x2: abs; f32: abs_2; f64: abs_2; ftz: abs_ftz; s16: abs_3; s32: abs_3; s64: abs_3
class activemask_b32:
    def __call__(self, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Query the active lanes of the warp, as a bit mask."
class activemask:
    b32: activemask_b32
class add:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add two half-precision values: d = a + b. Requires sm_90."
class add_cc:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add two values with carry: d = a + b, plus CC.CF for addc; .cc writes the carry to CC.CF."
class add_cc_2:
    s32: add_cc; s64: add_cc; u32: add_cc; u64: add_cc
class add_2:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add two half-precision values: d = a + b."
class add_3:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add two values: d = a + b."
class add_4:
    def __call__(self, a: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add two values: d = a + b. Requires sm_100."
class add_5(add_3):
    bf16: add_4; f16: add_4
class add_6:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add two values: d = a + b. Requires sm_100."
class add_7:
    f16: add_2; f16x2: add_2; f32: add_3
class add_8:
    f16: add_2; f16x2: add_2; f32: add_3; f32x2: add_6; sat: add_7
class add_9:
    f32: add_3
class add_10:
    f32: add_3; f32x2: add_6; sat: add_9
class add_11:
    f32: add_5
class add_12:
    f32: add_5; f32x2: add_6; f64: add_3; ftz: add_10; sat: add_11
class add_rn_sat:
    f16: add_2; f16x2: add_2; f32: add_5
class add_rn:
    bf16: add; bf16x2: add; f16: add_2; f16x2: add_2; f32: add_5; f32x2: add_6; f64: add_3; ftz: add_8; sat: add_rn_sat
class add_13:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add two values: d = a + b, modulo 2^n; .sat clamps to the range of s32."
class add_14:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add packed 16-bit halves: d = a + b, modulo 2^16 in each half. Requires sm_90."
class add_sat:
    f16: add_2; f16x2: add_2; f32: add_5; s32: add_13
class add_15:
    bf16: add; bf16x2: add; cc: add_cc_2; f16: add_2; f16x2: add_2; f32: add_5; f32x2: add_6; f64: add_3; ftz: add_8; rm: add_12; rn: add_rn; rp: add_12; rz: add_12; s16: add_13; s16x2: add_14; s32: add_13; s64: add_13; sat: add_sat; u16: add_13; u16x2: add_14; u32: add_13; u64: add_13
class addc:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add two values with carry: d = a + b, plus CC.CF for addc; .cc writes the carry to CC.CF."
class addc_cc:
    s32: addc; s64: addc; u32: addc; u64: addc
class addc_2:
    cc: addc_cc; s32: addc; s64: addc; u32: addc; u64: addc
class and_:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Bitwise AND: d = a & b."
class and_2:
    b16: and_; b32: and_; b64: and_; pred: and_
class applypriority:
    def __call__(self, a: In, size: In, /, *, guard: Guard = ...) -> None:
        "Set the cache line of an address to the normal eviction priority."
class applypriority_global:
    L2__evict_normal: applypriority
class applypriority_2:
    L2__evict_normal: applypriority; global_: applypriority_global
class atom:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Atomically read-modify-write memory: d = [a], [a] = op([a], b)."
class atom_2:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Atomically read-modify-write memory: d = [a], [a] = op([a], b). Requires sm_90."
class atom_3:
    f32: atom_2
class atom_4:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Atomically read-modify-write memory: d = [a], [a] = op([a], b). Requires sm_90."
class atom_5:
    f32: atom_4
class atom_6:
    f32: atom; f64: atom; s32: atom; u32: atom; u64: atom; v2: atom_3; v4: atom_5
class atom_7:
    bf16: atom_2; bf16x2: atom_2; f16: atom_2; f16x2: atom_2
class atom_8:
    bf16: atom_4; bf16x2: atom_4; f16: atom_4; f16x2: atom_4
class atom_9:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Atomically read-modify-write memory: d = [a], [a] = op([a], b). Requires sm_90."
class atom_10:
    bf16: atom_9; f16: atom_9
class atom_11:
    bf16: atom; bf16x2: atom; f16: atom; f16x2: atom; v2: atom_7; v4: atom_8; v8: atom_10
class atom_12:
    L2__cache_hint: atom_11; bf16: atom; bf16x2: atom; f16: atom; f16x2: atom; v2: atom_7; v4: atom_8; v8: atom_10
class atom_13:
    L2__cache_hint: atom_6; f32: atom; f64: atom; noftz: atom_12; s32: atom; u32: atom; u64: atom; v2: atom_3; v4: atom_5
class atom_14:
    b32: atom; b64: atom
class atom_15:
    L2__cache_hint: atom_14; b32: atom; b64: atom
class atom_16:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Atomically compare and swap: d = [a]; if [a] equals b, [a] = c."
class atom_17:
    b128: atom_16; b16: atom_16; b32: atom_16; b64: atom_16
class atom_18:
    u32: atom
class atom_19:
    L2__cache_hint: atom_18; u32: atom
class atom_20:
    b128: atom; b32: atom; b64: atom
class atom_21:
    L2__cache_hint: atom_20; b128: atom; b32: atom; b64: atom
class atom_22:
    s32: atom; s64: atom; u32: atom; u64: atom
class atom_23:
    v2: atom_7; v4: atom_8; v8: atom_10
class atom_24:
    L2__cache_hint: atom_23; v2: atom_7; v4: atom_8; v8: atom_10
class atom_25:
    L2__cache_hint: atom_22; noftz: atom_24; s32: atom; s64: atom; u32: atom; u64: atom
class atom_26:
    add: atom_13; and_: atom_15; cas: atom_17; dec: atom_19; exch: atom_21; inc: atom_19; max: atom_25; min: atom_25; or_: atom_15; xor: atom_15
class atom_27:
    bf16: atom; bf16x2: atom; f16: atom; f16x2: atom
class atom_28:
    f32: atom; f64: atom; noftz: atom_27; s32: atom; u32: atom; u64: atom
class atom_29:
    add: atom_28; and_: atom_14; cas: atom_17; dec: atom_18; exch: atom_20; inc: atom_18; max: atom_22; min: atom_22; or_: atom_14; xor: atom_14
class atom_30:
    add: atom_13; and_: atom_15; cas: atom_17; dec: atom_19; exch: atom_21; global_: atom_26; inc: atom_19; max: atom_25; min: atom_25; or_: atom_15; shared: atom_29; shared__cluster: atom_29; shared__cta: atom_29; xor: atom_15
class atom_31:
    add: atom_13; and_: atom_15; cas: atom_17; cluster: atom_30; cta: atom_30; dec: atom_19; exch: atom_21; global_: atom_26; gpu: atom_30; inc: atom_19; max: atom_25; min: atom_25; or_: atom_15; shared: atom_29; shared__cluster: atom_29; shared__cta: atom_29; sys: atom_30; xor: atom_15
class atom_32:
    acq_rel: atom_31; acquire: atom_31; add: atom_13; and_: atom_15; cas: atom_17; cluster: atom_30; cta: atom_30; dec: atom_19; exch: atom_21; global_: atom_26; gpu: atom_30; inc: atom_19; max: atom_25; min: atom_25; or_: atom_15; relaxed: atom_31; release: atom_31; shared: atom_29; shared__cluster: atom_29; shared__cta: atom_29; sys: atom_30; xor: atom_15
class bar:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "Arrive at barrier `a` of `b` threads without waiting."
class bar_2:
    def __call__(self, a: In, b: In, c: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Wait at a barrier and reduce a predicate: d = the number of threads with `c` true, or the AND or OR of all."
class bar_3:
    pred: bar_2
class bar_4:
    u32: bar_2
class bar_5:
    and_: bar_3; or_: bar_3; popc: bar_4
class bar_6:
    def __call__(self, a: In, b: In = ..., /, *, guard: Guard = ...) -> None:
        "Wait at barrier `a` until all threads of the CTA, or `b` threads, have arrived."
class bar_cta:
    arrive: bar; red: bar_5; sync: bar_6
class bar_warp_sync:
    def __call__(self, membermask: In, /, *, guard: Guard = ...) -> None:
        "Wait until the lanes in `membermask` have arrived, and order their memory accesses."
class bar_warp:
    sync: bar_warp_sync
class bar_7:
    arrive: bar; cta: bar_cta; red: bar_5; sync: bar_6; warp: bar_warp
class barrier:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "Arrive at barrier `a` of `b` threads without waiting."
class barrier_2(barrier):
    aligned: barrier
class barrier_cluster_arrive:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Arrive at the cluster barrier without waiting; .relaxed does not order memory accesses. Requires sm_90."
class barrier_cluster_arrive_2:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Arrive at the cluster barrier without waiting, all threads of the warp together. Requires sm_90."
class barrier_cluster_arrive_3(barrier_cluster_arrive):
    aligned: barrier_cluster_arrive_2
class barrier_cluster_arrive_4(barrier_cluster_arrive):
    aligned: barrier_cluster_arrive_2; relaxed: barrier_cluster_arrive_3; release: barrier_cluster_arrive_3
class barrier_cluster_wait:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Wait until all threads of the cluster have arrived, and acquire the writes they released. Requires sm_90."
class barrier_cluster_wait_2:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Wait at the cluster barrier, all threads of the warp together. Requires sm_90."
class barrier_cluster_wait_acquire(barrier_cluster_wait):
    aligned: barrier_cluster_wait_2
class barrier_cluster_wait_3(barrier_cluster_wait):
    acquire: barrier_cluster_wait_acquire; aligned: barrier_cluster_wait_2
class barrier_cluster:
    arrive: barrier_cluster_arrive_4; wait: barrier_cluster_wait_3
class barrier_3:
    def __call__(self, a: In, b: In, c: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Wait at a barrier and reduce a predicate: d = the number of threads with `c` true, or the AND or OR of all."
class barrier_4:
    pred: barrier_3
class barrier_5:
    aligned: barrier_4; pred: barrier_3
class barrier_6:
    u32: barrier_3
class barrier_7:
    aligned: barrier_6; u32: barrier_3
class barrier_8:
    and_: barrier_5; or_: barrier_5; popc: barrier_7
class barrier_9:
    def __call__(self, a: In, b: In = ..., /, *, guard: Guard = ...) -> None:
        "Wait at barrier `a` until all threads of the CTA, or `b` threads, have arrived."
class barrier_10(barrier_9):
    aligned: barrier_9
class barrier_cta:
    arrive: barrier_2; red: barrier_8; sync: barrier_10
class barrier_11:
    arrive: barrier_2; cluster: barrier_cluster; cta: barrier_cta; red: barrier_8; sync: barrier_10
class bfe:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Extract a bit field: d = c bits of a, from bit b on, sign- or zero-extended."
class bfe_2:
    s32: bfe; s64: bfe; u32: bfe; u64: bfe
class bfi:
    def __call__(self, a: In, b: In, position: In, width: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Insert a bit field: d = b with `width` bits at bit `position` replaced by the low bits of a."
class bfi_2:
    b32: bfi; b64: bfi
class bfind:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Find the most significant non-sign bit: d = its position, or (.shiftamt) the left shift that normalises a."
class bfind_shiftamt:
    s32: bfind; s64: bfind; u32: bfind; u64: bfind
class bfind_2:
    s32: bfind; s64: bfind; shiftamt: bfind_shiftamt; u32: bfind; u64: bfind
class bmsk:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Create a bit mask: d = b ones starting at bit a; both are taken modulo 32 (.wrap) or clamped to 32 (.clamp)."
class bmsk_2:
    b32: bmsk
class bmsk_3:
    clamp: bmsk_2; wrap: bmsk_2
class bra:
    def __call__(self, target: In, /, *, guard: Guard = ...) -> None:
        "Branch to a label."
class bra_2(bra):
    uni: bra
class brev:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Reverse the bits of a."
class brev_2:
    b32: brev; b64: brev
class brkpt:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Suspend execution in a debugger; no effect otherwise."
class brx_idx:
    def __call__(self, index: In, targets: In, /, *, guard: Guard = ...) -> None:
        "Branch to the label at position `index` of a .branchtargets list."
class brx_idx_2(brx_idx):
    uni: brx_idx
class brx:
    idx: brx_idx_2
class call:
    def __call__(self, results: In, pointer: In = ..., arguments: In = ..., targets: In = ..., /, *, guard: Guard = ...) -> None:
        "Call a function directly by name, or indirectly through a pointer with a prototype or list of targets."
class call_2(call):
    uni: call
class clusterlaunchcontrol_query_cancel_get_first_ctaid_v4_b32_b128:
    def __call__(self, answer: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Decode a try_cancel response: whether a cluster was cancelled, and the ctaid of its first block. Requires sm_100."
class clusterlaunchcontrol_query_cancel_get_first_ctaid_v4_b32:
    b128: clusterlaunchcontrol_query_cancel_get_first_ctaid_v4_b32_b128
class clusterlaunchcontrol_query_cancel_get_first_ctaid_v4:
    b32: clusterlaunchcontrol_query_cancel_get_first_ctaid_v4_b32
class clusterlaunchcontrol_query_cancel_get_first_ctaid:
    v4: clusterlaunchcontrol_query_cancel_get_first_ctaid_v4
class clusterlaunchcontrol_query_cancel:
    def __call__(self, answer: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Decode a try_cancel response: whether a cluster was cancelled, and the ctaid of its first block. Requires sm_100."
class clusterlaunchcontrol_query_cancel_2:
    b128: clusterlaunchcontrol_query_cancel
class clusterlaunchcontrol_query_cancel_3:
    b32: clusterlaunchcontrol_query_cancel_2
class clusterlaunchcontrol_query_cancel_is_canceled:
    pred: clusterlaunchcontrol_query_cancel_2
class clusterlaunchcontrol_query_cancel_4:
    get_first_ctaid: clusterlaunchcontrol_query_cancel_get_first_ctaid; get_first_ctaid__x: clusterlaunchcontrol_query_cancel_3; get_first_ctaid__y: clusterlaunchcontrol_query_cancel_3; get_first_ctaid__z: clusterlaunchcontrol_query_cancel_3; is_canceled: clusterlaunchcontrol_query_cancel_is_canceled
class clusterlaunchcontrol_try_cancel_async:
    def __call__(self, dst: In, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "Request cancellation of a cluster that has not launched; 16 bytes of response arrive at `dst`. Requires sm_100."
class clusterlaunchcontrol_try_cancel_async_2:
    b128: clusterlaunchcontrol_try_cancel_async
class clusterlaunchcontrol_try_cancel_async_3:
    b128: clusterlaunchcontrol_try_cancel_async; multicast__cluster__all: clusterlaunchcontrol_try_cancel_async_2
class clusterlaunchcontrol_try_cancel_async_shared_cta:
    mbarrier__complete_tx__bytes: clusterlaunchcontrol_try_cancel_async_3
class clusterlaunchcontrol_try_cancel_async_4:
    mbarrier__complete_tx__bytes: clusterlaunchcontrol_try_cancel_async_3; shared__cta: clusterlaunchcontrol_try_cancel_async_shared_cta
class clusterlaunchcontrol_try_cancel:
    async_: clusterlaunchcontrol_try_cancel_async_4
class clusterlaunchcontrol:
    query_cancel: clusterlaunchcontrol_query_cancel_4; try_cancel: clusterlaunchcontrol_try_cancel
class clz:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Count leading zeros: d = the number of zero bits above the most significant one bit of a."
class clz_2:
    b32: clz; b64: clz
class cnot:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "C-style logical negation: d = (a == 0) ? 1 : 0."
class cnot_2:
    b16: cnot; b32: cnot; b64: cnot
class copysign:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Copy the sign of a to the magnitude of b."
class copysign_2:
    f32: copysign; f64: copysign
class cos_approx:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate the cosine of a, in radians."
class cos_approx_ftz:
    f32: cos_approx
class cos_approx_2:
    f32: cos_approx; ftz: cos_approx_ftz
class cos:
    approx: cos_approx_2
class cp_async_bulk_commit_group:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Commit the thread's prior bulk copies to global memory as a bulk async-group. Requires sm_90."
class cp_async_bulk_global_shared_cta_bulk_group:
    def __call__(self, dst: In, src: In, size: In, /, *, guard: Guard = ...) -> None:
        "Copy `size` bytes from shared to global memory asynchronously, as part of a bulk async-group. Requires sm_90."
class cp_async_bulk_global_shared_cta_bulk_group_L2_cache_hint:
    def __call__(self, dst: In, src: In, size: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copy `size` bytes from shared to global memory asynchronously, as part of a bulk async-group. Requires sm_90."
class cp_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_cp_mask:
    def __call__(self, dst: In, src: In, size: In, policy: In, byte_mask: In, /, *, guard: Guard = ...) -> None:
        "Copy `size` bytes from shared to global memory asynchronously, as part of a bulk async-group. Requires sm_100."
class cp_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_2(cp_async_bulk_global_shared_cta_bulk_group_L2_cache_hint):
    cp_mask: cp_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_cp_mask
class cp_async_bulk_global_shared_cta_bulk_group_cp_mask:
    def __call__(self, dst: In, src: In, size: In, byte_mask: In, /, *, guard: Guard = ...) -> None:
        "Copy `size` bytes from shared to global memory asynchronously, as part of a bulk async-group. Requires sm_100."
class cp_async_bulk_global_shared_cta_bulk_group_2(cp_async_bulk_global_shared_cta_bulk_group):
    L2__cache_hint: cp_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_2; cp_mask: cp_async_bulk_global_shared_cta_bulk_group_cp_mask
class cp_async_bulk_global_shared_cta:
    bulk_group: cp_async_bulk_global_shared_cta_bulk_group_2
class cp_async_bulk_global:
    shared__cta: cp_async_bulk_global_shared_cta
class cp_async_bulk_prefetch_L2_global:
    def __call__(self, src: In, size: In, /, *, guard: Guard = ...) -> None:
        "Prefetch `size` bytes of global memory into the L2 cache. Requires sm_90."
class cp_async_bulk_prefetch_L2_global_L2_cache_hint:
    def __call__(self, src: In, size: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Prefetch `size` bytes of global memory into the L2 cache. Requires sm_90."
class cp_async_bulk_prefetch_L2_global_2(cp_async_bulk_prefetch_L2_global):
    L2__cache_hint: cp_async_bulk_prefetch_L2_global_L2_cache_hint
class cp_async_bulk_prefetch_L2:
    global_: cp_async_bulk_prefetch_L2_global_2
class cp_async_bulk_prefetch_tensor:
    def __call__(self, map: In, coordinates: In, /, *, guard: Guard = ...) -> None:
        "Prefetch a box of a tensor into the L2 cache. Requires sm_90."
class cp_async_bulk_prefetch_tensor_2:
    def __call__(self, map: In, coordinates: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Prefetch a box of a tensor into the L2 cache. Requires sm_90."
class cp_async_bulk_prefetch_tensor_3(cp_async_bulk_prefetch_tensor):
    L2__cache_hint: cp_async_bulk_prefetch_tensor_2
class cp_async_bulk_prefetch_tensor_1d_L2_global(cp_async_bulk_prefetch_tensor):
    L2__cache_hint: cp_async_bulk_prefetch_tensor_2; tile: cp_async_bulk_prefetch_tensor_3
class cp_async_bulk_prefetch_tensor_1d_L2:
    global_: cp_async_bulk_prefetch_tensor_1d_L2_global
class cp_async_bulk_prefetch_tensor_1d:
    L2: cp_async_bulk_prefetch_tensor_1d_L2
class cp_async_bulk_prefetch_tensor_2d_L2_global(cp_async_bulk_prefetch_tensor):
    L2__cache_hint: cp_async_bulk_prefetch_tensor_2; tile: cp_async_bulk_prefetch_tensor_3; tile__gather4: cp_async_bulk_prefetch_tensor_3
class cp_async_bulk_prefetch_tensor_2d_L2:
    global_: cp_async_bulk_prefetch_tensor_2d_L2_global
class cp_async_bulk_prefetch_tensor_2d:
    L2: cp_async_bulk_prefetch_tensor_2d_L2
class cp_async_bulk_prefetch_tensor_4:
    def __call__(self, map: In, coordinates: In, offsets: In, /, *, guard: Guard = ...) -> None:
        "Prefetch a box of a tensor into the L2 cache. Requires sm_90."
class cp_async_bulk_prefetch_tensor_5:
    def __call__(self, map: In, coordinates: In, offsets: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Prefetch a box of a tensor into the L2 cache. Requires sm_90."
class cp_async_bulk_prefetch_tensor_6(cp_async_bulk_prefetch_tensor_4):
    L2__cache_hint: cp_async_bulk_prefetch_tensor_5
class cp_async_bulk_prefetch_tensor_7(cp_async_bulk_prefetch_tensor):
    L2__cache_hint: cp_async_bulk_prefetch_tensor_2; im2col: cp_async_bulk_prefetch_tensor_6; im2col__w: cp_async_bulk_prefetch_tensor_6; im2col__w__128: cp_async_bulk_prefetch_tensor_6; tile: cp_async_bulk_prefetch_tensor_3
class cp_async_bulk_prefetch_tensor_8:
    global_: cp_async_bulk_prefetch_tensor_7
class cp_async_bulk_prefetch_tensor_9:
    L2: cp_async_bulk_prefetch_tensor_8
class cp_async_bulk_prefetch_tensor_10:
    _1d: cp_async_bulk_prefetch_tensor_1d; _2d: cp_async_bulk_prefetch_tensor_2d; _3d: cp_async_bulk_prefetch_tensor_9; _4d: cp_async_bulk_prefetch_tensor_9; _5d: cp_async_bulk_prefetch_tensor_9
class cp_async_bulk_prefetch:
    L2: cp_async_bulk_prefetch_L2; tensor: cp_async_bulk_prefetch_tensor_10
class cp_async_bulk:
    def __call__(self, dst: In, src: In, size: In, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "Copy `size` bytes to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`. Requires sm_90."
class cp_async_bulk_2:
    def __call__(self, dst: In, src: In, size: In, mbarrier: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copy `size` bytes to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`. Requires sm_90."
class cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes_multicast_cluster:
    def __call__(self, dst: In, src: In, size: In, mbarrier: In, cta_mask: In, /, *, guard: Guard = ...) -> None:
        "Copy `size` bytes to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`. Requires sm_90."
class cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes_multicast_cluster_L2_cache_hint:
    def __call__(self, dst: In, src: In, size: In, mbarrier: In, cta_mask: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copy `size` bytes to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`. Requires sm_90."
class cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes_multicast_cluster_2(cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes_multicast_cluster):
    L2__cache_hint: cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes_multicast_cluster_L2_cache_hint
class cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes(cp_async_bulk):
    L2__cache_hint: cp_async_bulk_2; multicast__cluster: cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes_multicast_cluster_2
class cp_async_bulk_shared_cluster_global:
    mbarrier__complete_tx__bytes: cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes
class cp_async_bulk_shared_cluster_shared_cta:
    mbarrier__complete_tx__bytes: cp_async_bulk
class cp_async_bulk_shared_cluster:
    global_: cp_async_bulk_shared_cluster_global; shared__cta: cp_async_bulk_shared_cluster_shared_cta
class cp_async_bulk_shared_cta_global_mbarrier_complete_tx_bytes(cp_async_bulk):
    L2__cache_hint: cp_async_bulk_2
class cp_async_bulk_shared_cta_global:
    mbarrier__complete_tx__bytes: cp_async_bulk_shared_cta_global_mbarrier_complete_tx_bytes
class cp_async_bulk_shared_cta:
    global_: cp_async_bulk_shared_cta_global
class cp_async_bulk_tensor:
    def __call__(self, map: In, coordinates: In, src: In, /, *, guard: Guard = ...) -> None:
        "Copy shared memory to a box of a tensor asynchronously; elements outside the tensor are not written. Requires sm_90."
class cp_async_bulk_tensor_2:
    def __call__(self, map: In, coordinates: In, src: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copy shared memory to a box of a tensor asynchronously; elements outside the tensor are not written. Requires sm_90."
class cp_async_bulk_tensor_3(cp_async_bulk_tensor):
    L2__cache_hint: cp_async_bulk_tensor_2
class cp_async_bulk_tensor_4:
    bulk_group: cp_async_bulk_tensor_3
class cp_async_bulk_tensor_1d_global_shared_cta:
    bulk_group: cp_async_bulk_tensor_3; tile: cp_async_bulk_tensor_4
class cp_async_bulk_tensor_1d_global:
    shared__cta: cp_async_bulk_tensor_1d_global_shared_cta
class cp_async_bulk_tensor_5:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "Copy a box of a tensor to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`. Requires sm_90."
class cp_async_bulk_tensor_6:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copy a box of a tensor to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`. Requires sm_90."
class cp_async_bulk_tensor_7(cp_async_bulk_tensor_5):
    L2__cache_hint: cp_async_bulk_tensor_6
class cp_async_bulk_tensor_8:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, cta_mask: In, /, *, guard: Guard = ...) -> None:
        "Copy a box of a tensor to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`. Requires sm_90."
class cp_async_bulk_tensor_9:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, cta_mask: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copy a box of a tensor to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`. Requires sm_90."
class cp_async_bulk_tensor_10(cp_async_bulk_tensor_8):
    L2__cache_hint: cp_async_bulk_tensor_9
class cp_async_bulk_tensor_11(cp_async_bulk_tensor_8):
    L2__cache_hint: cp_async_bulk_tensor_9; cta_group__1: cp_async_bulk_tensor_10; cta_group__2: cp_async_bulk_tensor_10
class cp_async_bulk_tensor_12(cp_async_bulk_tensor_5):
    L2__cache_hint: cp_async_bulk_tensor_6; cta_group__1: cp_async_bulk_tensor_7; cta_group__2: cp_async_bulk_tensor_7; multicast__cluster: cp_async_bulk_tensor_11
class cp_async_bulk_tensor_13:
    mbarrier__complete_tx__bytes: cp_async_bulk_tensor_12
class cp_async_bulk_tensor_1d_shared_cluster_global:
    mbarrier__complete_tx__bytes: cp_async_bulk_tensor_12; tile: cp_async_bulk_tensor_13
class cp_async_bulk_tensor_1d_shared_cluster:
    global_: cp_async_bulk_tensor_1d_shared_cluster_global
class cp_async_bulk_tensor_14(cp_async_bulk_tensor_5):
    L2__cache_hint: cp_async_bulk_tensor_6; cta_group__1: cp_async_bulk_tensor_7; cta_group__2: cp_async_bulk_tensor_7
class cp_async_bulk_tensor_15:
    mbarrier__complete_tx__bytes: cp_async_bulk_tensor_14
class cp_async_bulk_tensor_1d_shared_cta_global:
    mbarrier__complete_tx__bytes: cp_async_bulk_tensor_14; tile: cp_async_bulk_tensor_15
class cp_async_bulk_tensor_1d_shared_cta:
    global_: cp_async_bulk_tensor_1d_shared_cta_global
class cp_async_bulk_tensor_1d:
    global_: cp_async_bulk_tensor_1d_global; shared__cluster: cp_async_bulk_tensor_1d_shared_cluster; shared__cta: cp_async_bulk_tensor_1d_shared_cta
class cp_async_bulk_tensor_2d_global_shared_cta:
    bulk_group: cp_async_bulk_tensor_3; tile: cp_async_bulk_tensor_4; tile__scatter4: cp_async_bulk_tensor_4
class cp_async_bulk_tensor_2d_global:
    shared__cta: cp_async_bulk_tensor_2d_global_shared_cta
class cp_async_bulk_tensor_2d_shared_cluster_global:
    mbarrier__complete_tx__bytes: cp_async_bulk_tensor_12; tile: cp_async_bulk_tensor_13; tile__gather4: cp_async_bulk_tensor_13
class cp_async_bulk_tensor_2d_shared_cluster:
    global_: cp_async_bulk_tensor_2d_shared_cluster_global
class cp_async_bulk_tensor_2d_shared_cta_global:
    mbarrier__complete_tx__bytes: cp_async_bulk_tensor_14; tile: cp_async_bulk_tensor_15; tile__gather4: cp_async_bulk_tensor_15
class cp_async_bulk_tensor_2d_shared_cta:
    global_: cp_async_bulk_tensor_2d_shared_cta_global
class cp_async_bulk_tensor_2d:
    global_: cp_async_bulk_tensor_2d_global; shared__cluster: cp_async_bulk_tensor_2d_shared_cluster; shared__cta: cp_async_bulk_tensor_2d_shared_cta
class cp_async_bulk_tensor_16:
    bulk_group: cp_async_bulk_tensor_3; im2col_no_offs: cp_async_bulk_tensor_4; tile: cp_async_bulk_tensor_4
class cp_async_bulk_tensor_17:
    shared__cta: cp_async_bulk_tensor_16
class cp_async_bulk_tensor_18:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, offsets: In, /, *, guard: Guard = ...) -> None:
        "Copy a box of a tensor to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`. Requires sm_90."
class cp_async_bulk_tensor_19:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, offsets: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copy a box of a tensor to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`. Requires sm_90."
class cp_async_bulk_tensor_20(cp_async_bulk_tensor_18):
    L2__cache_hint: cp_async_bulk_tensor_19
class cp_async_bulk_tensor_21:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, offsets: In, cta_mask: In, /, *, guard: Guard = ...) -> None:
        "Copy a box of a tensor to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`. Requires sm_90."
class cp_async_bulk_tensor_22:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, offsets: In, cta_mask: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copy a box of a tensor to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`. Requires sm_90."
class cp_async_bulk_tensor_23(cp_async_bulk_tensor_21):
    L2__cache_hint: cp_async_bulk_tensor_22
class cp_async_bulk_tensor_24(cp_async_bulk_tensor_21):
    L2__cache_hint: cp_async_bulk_tensor_22; cta_group__1: cp_async_bulk_tensor_23; cta_group__2: cp_async_bulk_tensor_23
class cp_async_bulk_tensor_25(cp_async_bulk_tensor_18):
    L2__cache_hint: cp_async_bulk_tensor_19; cta_group__1: cp_async_bulk_tensor_20; cta_group__2: cp_async_bulk_tensor_20; multicast__cluster: cp_async_bulk_tensor_24
class cp_async_bulk_tensor_26:
    mbarrier__complete_tx__bytes: cp_async_bulk_tensor_25
class cp_async_bulk_tensor_27:
    im2col: cp_async_bulk_tensor_26; im2col__w: cp_async_bulk_tensor_26; im2col__w__128: cp_async_bulk_tensor_26; mbarrier__complete_tx__bytes: cp_async_bulk_tensor_12; tile: cp_async_bulk_tensor_13
class cp_async_bulk_tensor_28:
    global_: cp_async_bulk_tensor_27
class cp_async_bulk_tensor_29(cp_async_bulk_tensor_18):
    L2__cache_hint: cp_async_bulk_tensor_19; cta_group__1: cp_async_bulk_tensor_20; cta_group__2: cp_async_bulk_tensor_20
class cp_async_bulk_tensor_30:
    mbarrier__complete_tx__bytes: cp_async_bulk_tensor_29
class cp_async_bulk_tensor_31:
    im2col: cp_async_bulk_tensor_30; im2col__w: cp_async_bulk_tensor_30; im2col__w__128: cp_async_bulk_tensor_30; mbarrier__complete_tx__bytes: cp_async_bulk_tensor_14; tile: cp_async_bulk_tensor_15
class cp_async_bulk_tensor_32:
    global_: cp_async_bulk_tensor_31
class cp_async_bulk_tensor_33:
    global_: cp_async_bulk_tensor_17; shared__cluster: cp_async_bulk_tensor_28; shared__cta: cp_async_bulk_tensor_32
class cp_async_bulk_tensor_34:
    _1d: cp_async_bulk_tensor_1d; _2d: cp_async_bulk_tensor_2d; _3d: cp_async_bulk_tensor_33; _4d: cp_async_bulk_tensor_33; _5d: cp_async_bulk_tensor_33
class cp_async_bulk_wait_group:
    def __call__(self, n: In, /, *, guard: Guard = ...) -> None:
        "Wait until at most the `n` latest bulk async-groups are pending; with .read until sources are read. Requires sm_90."
class cp_async_bulk_wait_group_2(cp_async_bulk_wait_group):
    read: cp_async_bulk_wait_group
class cp_async_bulk_3:
    commit_group: cp_async_bulk_commit_group; global_: cp_async_bulk_global; prefetch: cp_async_bulk_prefetch; shared__cluster: cp_async_bulk_shared_cluster; shared__cta: cp_async_bulk_shared_cta; tensor: cp_async_bulk_tensor_34; wait_group: cp_async_bulk_wait_group_2
class cp_async:
    def __call__(self, dst: In, src: In, size: In, src_size: In = ..., /, *, guard: Guard = ...) -> None:
        "Copy `size` bytes from global to shared memory asynchronously; bytes past `src_size` are zero-filled."
class cp_async_2:
    def __call__(self, dst: In, src: In, size: In, src_size: In, policy: In = ..., /, *, guard: Guard = ...) -> None:
        "Copy `size` bytes from global to shared memory asynchronously; bytes past `src_size` are zero-filled."
class cp_async_3(cp_async_2):
    L2__128B: cp_async_2; L2__256B: cp_async_2; L2__64B: cp_async_2
class cp_async_4(cp_async):
    L2__128B: cp_async; L2__256B: cp_async; L2__64B: cp_async; L2__cache_hint: cp_async_3
class cp_async_5:
    global_: cp_async_4
class cp_async_6:
    shared: cp_async_5; shared__cta: cp_async_5
class cp_async_commit_group:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Commit the thread's prior cp.async copies as a cp.async-group."
class cp_async_mbarrier_arrive:
    def __call__(self, address: In, /, *, guard: Guard = ...) -> None:
        "Arrive at an mbarrier when the thread's prior copies complete; without .noinc, first increment its count."
class cp_async_mbarrier_arrive_2:
    b64: cp_async_mbarrier_arrive
class cp_async_mbarrier_arrive_noinc:
    b64: cp_async_mbarrier_arrive; shared: cp_async_mbarrier_arrive_2; shared__cta: cp_async_mbarrier_arrive_2
class cp_async_mbarrier_arrive_3:
    b64: cp_async_mbarrier_arrive; noinc: cp_async_mbarrier_arrive_noinc; shared: cp_async_mbarrier_arrive_2; shared__cta: cp_async_mbarrier_arrive_2
class cp_async_mbarrier:
    arrive: cp_async_mbarrier_arrive_3
class cp_async_wait_all:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Wait until all cp.async copies of the thread are complete."
class cp_async_wait_group:
    def __call__(self, n: In, /, *, guard: Guard = ...) -> None:
        "Wait until at most the `n` latest cp.async-groups of the thread are pending."
class cp_async_7:
    bulk: cp_async_bulk_3; ca: cp_async_6; cg: cp_async_6; commit_group: cp_async_commit_group; mbarrier: cp_async_mbarrier; wait_all: cp_async_wait_all; wait_group: cp_async_wait_group
class cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint:
    def __call__(self, dst: In, src: In, size: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Reduce `size` bytes of shared memory asynchronously into global memory, as part of a bulk async-group. Requires sm_90."
class cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_add_noftz:
    bf16: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint; f16: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint
class cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_add:
    f32: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint; f64: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint; noftz: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_add_noftz; s32: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint; u32: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint; u64: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint
class cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_2:
    b32: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint; b64: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint
class cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_3:
    u32: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint
class cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_4:
    bf16: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint; f16: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint; s32: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint; s64: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint; u32: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint; u64: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint
class cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_5:
    add: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_add; and_: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_2; dec: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_3; inc: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_3; max: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_4; min: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_4; or_: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_2; xor: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_2
class cp_reduce_async_bulk_global_shared_cta_bulk_group:
    def __call__(self, dst: In, src: In, size: In, /, *, guard: Guard = ...) -> None:
        "Reduce `size` bytes of shared memory asynchronously into global memory, as part of a bulk async-group. Requires sm_90."
class cp_reduce_async_bulk_global_shared_cta_bulk_group_add_noftz:
    bf16: cp_reduce_async_bulk_global_shared_cta_bulk_group; f16: cp_reduce_async_bulk_global_shared_cta_bulk_group
class cp_reduce_async_bulk_global_shared_cta_bulk_group_add:
    f32: cp_reduce_async_bulk_global_shared_cta_bulk_group; f64: cp_reduce_async_bulk_global_shared_cta_bulk_group; noftz: cp_reduce_async_bulk_global_shared_cta_bulk_group_add_noftz; s32: cp_reduce_async_bulk_global_shared_cta_bulk_group; u32: cp_reduce_async_bulk_global_shared_cta_bulk_group; u64: cp_reduce_async_bulk_global_shared_cta_bulk_group
class cp_reduce_async_bulk_global_shared_cta_bulk_group_2:
    b32: cp_reduce_async_bulk_global_shared_cta_bulk_group; b64: cp_reduce_async_bulk_global_shared_cta_bulk_group
class cp_reduce_async_bulk_global_shared_cta_bulk_group_3:
    u32: cp_reduce_async_bulk_global_shared_cta_bulk_group
class cp_reduce_async_bulk_global_shared_cta_bulk_group_4:
    bf16: cp_reduce_async_bulk_global_shared_cta_bulk_group; f16: cp_reduce_async_bulk_global_shared_cta_bulk_group; s32: cp_reduce_async_bulk_global_shared_cta_bulk_group; s64: cp_reduce_async_bulk_global_shared_cta_bulk_group; u32: cp_reduce_async_bulk_global_shared_cta_bulk_group; u64: cp_reduce_async_bulk_global_shared_cta_bulk_group
class cp_reduce_async_bulk_global_shared_cta_bulk_group_5:
    L2__cache_hint: cp_reduce_async_bulk_global_shared_cta_bulk_group_L2_cache_hint_5; add: cp_reduce_async_bulk_global_shared_cta_bulk_group_add; and_: cp_reduce_async_bulk_global_shared_cta_bulk_group_2; dec: cp_reduce_async_bulk_global_shared_cta_bulk_group_3; inc: cp_reduce_async_bulk_global_shared_cta_bulk_group_3; max: cp_reduce_async_bulk_global_shared_cta_bulk_group_4; min: cp_reduce_async_bulk_global_shared_cta_bulk_group_4; or_: cp_reduce_async_bulk_global_shared_cta_bulk_group_2; xor: cp_reduce_async_bulk_global_shared_cta_bulk_group_2
class cp_reduce_async_bulk_global_shared_cta:
    bulk_group: cp_reduce_async_bulk_global_shared_cta_bulk_group_5
class cp_reduce_async_bulk_global:
    shared__cta: cp_reduce_async_bulk_global_shared_cta
class cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes:
    def __call__(self, dst: In, src: In, size: In, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "Reduce `size` bytes asynchronously into the shared memory of a block of the cluster; signals an mbarrier. Requires sm_90."
class cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_add:
    s32: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes; u32: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes; u64: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes
class cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_2:
    b32: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes
class cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_3:
    u32: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes
class cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_4:
    s32: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes; u32: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes
class cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_5:
    add: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_add; and_: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_2; dec: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_3; inc: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_3; max: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_4; min: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_4; or_: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_2; xor: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_2
class cp_reduce_async_bulk_shared_cluster_shared_cta:
    mbarrier__complete_tx__bytes: cp_reduce_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes_5
class cp_reduce_async_bulk_shared_cluster:
    shared__cta: cp_reduce_async_bulk_shared_cluster_shared_cta
class cp_reduce_async_bulk_tensor:
    def __call__(self, map: In, coordinates: In, src: In, /, *, guard: Guard = ...) -> None:
        "Reduce shared memory asynchronously into a box of a tensor. Requires sm_90."
class cp_reduce_async_bulk_tensor_2:
    def __call__(self, map: In, coordinates: In, src: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Reduce shared memory asynchronously into a box of a tensor. Requires sm_90."
class cp_reduce_async_bulk_tensor_3(cp_reduce_async_bulk_tensor):
    L2__cache_hint: cp_reduce_async_bulk_tensor_2
class cp_reduce_async_bulk_tensor_4:
    bulk_group: cp_reduce_async_bulk_tensor_3
class cp_reduce_async_bulk_tensor_5:
    bulk_group: cp_reduce_async_bulk_tensor_3; tile: cp_reduce_async_bulk_tensor_4
class cp_reduce_async_bulk_tensor_6:
    add: cp_reduce_async_bulk_tensor_5; and_: cp_reduce_async_bulk_tensor_5; dec: cp_reduce_async_bulk_tensor_5; inc: cp_reduce_async_bulk_tensor_5; max: cp_reduce_async_bulk_tensor_5; min: cp_reduce_async_bulk_tensor_5; or_: cp_reduce_async_bulk_tensor_5; xor: cp_reduce_async_bulk_tensor_5
class cp_reduce_async_bulk_tensor_7:
    shared__cta: cp_reduce_async_bulk_tensor_6
class cp_reduce_async_bulk_tensor_8:
    global_: cp_reduce_async_bulk_tensor_7
class cp_reduce_async_bulk_tensor_9:
    bulk_group: cp_reduce_async_bulk_tensor_3; im2col_no_offs: cp_reduce_async_bulk_tensor_4; tile: cp_reduce_async_bulk_tensor_4
class cp_reduce_async_bulk_tensor_10:
    add: cp_reduce_async_bulk_tensor_9; and_: cp_reduce_async_bulk_tensor_9; dec: cp_reduce_async_bulk_tensor_9; inc: cp_reduce_async_bulk_tensor_9; max: cp_reduce_async_bulk_tensor_9; min: cp_reduce_async_bulk_tensor_9; or_: cp_reduce_async_bulk_tensor_9; xor: cp_reduce_async_bulk_tensor_9
class cp_reduce_async_bulk_tensor_11:
    shared__cta: cp_reduce_async_bulk_tensor_10
class cp_reduce_async_bulk_tensor_12:
    global_: cp_reduce_async_bulk_tensor_11
class cp_reduce_async_bulk_tensor_13:
    _1d: cp_reduce_async_bulk_tensor_8; _2d: cp_reduce_async_bulk_tensor_8; _3d: cp_reduce_async_bulk_tensor_12; _4d: cp_reduce_async_bulk_tensor_12; _5d: cp_reduce_async_bulk_tensor_12
class cp_reduce_async_bulk:
    global_: cp_reduce_async_bulk_global; shared__cluster: cp_reduce_async_bulk_shared_cluster; tensor: cp_reduce_async_bulk_tensor_13
class cp_reduce_async:
    bulk: cp_reduce_async_bulk
class cp_reduce:
    async_: cp_reduce_async
class cp:
    async_: cp_async_7; reduce: cp_reduce
class createpolicy_cvt_L2_b64:
    def __call__(self, access_property: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Create a cache eviction policy for .L2::cache_hint."
class createpolicy_cvt_L2:
    b64: createpolicy_cvt_L2_b64
class createpolicy_cvt:
    L2: createpolicy_cvt_L2
class createpolicy_fractional:
    def __call__(self, fraction: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Create a cache eviction policy for .L2::cache_hint."
class createpolicy_fractional_2:
    b64: createpolicy_fractional
class createpolicy_fractional_3:
    L2__evict_first: createpolicy_fractional_2; L2__evict_unchanged: createpolicy_fractional_2; b64: createpolicy_fractional
class createpolicy_fractional_4:
    L2__evict_first: createpolicy_fractional_3; L2__evict_last: createpolicy_fractional_3; L2__evict_normal: createpolicy_fractional_3; L2__evict_unchanged: createpolicy_fractional_3
class createpolicy_range:
    def __call__(self, a: In, primary_size: In, total_size: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Create a cache eviction policy for .L2::cache_hint."
class createpolicy_range_2:
    b64: createpolicy_range
class createpolicy_range_3:
    L2__evict_first: createpolicy_range_2; L2__evict_unchanged: createpolicy_range_2; b64: createpolicy_range
class createpolicy_range_global:
    L2__evict_first: createpolicy_range_3; L2__evict_last: createpolicy_range_3; L2__evict_normal: createpolicy_range_3; L2__evict_unchanged: createpolicy_range_3
class createpolicy_range_4:
    L2__evict_first: createpolicy_range_3; L2__evict_last: createpolicy_range_3; L2__evict_normal: createpolicy_range_3; L2__evict_unchanged: createpolicy_range_3; global_: createpolicy_range_global
class createpolicy:
    cvt: createpolicy_cvt; fractional: createpolicy_fractional_4; range: createpolicy_range_4
class cvt:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Convert between floating-point types, rounded; .rni, .rzi, .rmi, .rpi round to an integral value. Requires sm_90."
class cvt_bf16:
    bf16: cvt; f16: cvt
class cvt_2:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Convert between floating-point types, rounded; .rni, .rzi, .rmi, .rpi round to an integral value."
class cvt_f16:
    bf16: cvt; f16: cvt_2
class cvt_3:
    bf16: cvt_2; f16: cvt_2; f32: cvt_2
class cvt_f64:
    bf16: cvt; f16: cvt_2; f32: cvt_2; f64: cvt_2
class cvt_4:
    f32: cvt_2
class cvt_5:
    f16: cvt_2; f32: cvt_2
class cvt_ftz_sat:
    f32: cvt_5; f64: cvt_4
class cvt_ftz:
    f32: cvt_3; f64: cvt_4; sat: cvt_ftz_sat
class cvt_pack_sat:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Clamp a and b to a narrower integer type and pack them with c: d = {c, a, b}, b in the lowest bits."
class cvt_pack_sat_2:
    s32: cvt_pack_sat
class cvt_pack_sat_3:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Clamp a and b to a narrower integer type and pack them with c: d = {c, a, b}, b in the lowest bits."
class cvt_pack_sat_4:
    b32: cvt_pack_sat_3
class cvt_pack_sat_5:
    s32: cvt_pack_sat_4
class cvt_pack_sat_6:
    s16: cvt_pack_sat_2; s2: cvt_pack_sat_5; s4: cvt_pack_sat_5; s8: cvt_pack_sat_5; u16: cvt_pack_sat_2; u2: cvt_pack_sat_5; u4: cvt_pack_sat_5; u8: cvt_pack_sat_5
class cvt_pack:
    sat: cvt_pack_sat_6
class cvt_6:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Convert an integer to a float, rounded; .sat clamps to [0, 1]. Requires sm_90."
class cvt_7:
    f16: cvt; f32: cvt_2; f64: cvt; s16: cvt_6; s32: cvt_6; s64: cvt_6; u16: cvt_6; u32: cvt_6; u64: cvt_6
class cvt_8:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Convert an integer to a float, rounded; .sat clamps to [0, 1]."
class cvt_9:
    bf16: cvt; f32: cvt_2; f64: cvt_2; s16: cvt_8; s32: cvt_8; s64: cvt_8; s8: cvt_8; u16: cvt_8; u32: cvt_8; u64: cvt_8; u8: cvt_8
class cvt_10:
    bf16: cvt_2; f64: cvt_2; s16: cvt_8; s32: cvt_8; s64: cvt_8; s8: cvt_8; u16: cvt_8; u32: cvt_8; u64: cvt_8; u8: cvt_8
class cvt_11:
    bf16: cvt; s16: cvt_8; s32: cvt_8; s64: cvt_8; s8: cvt_8; u16: cvt_8; u32: cvt_8; u64: cvt_8; u8: cvt_8
class cvt_12:
    f64: cvt_2; s16: cvt_8; s32: cvt_8; s64: cvt_8; s8: cvt_8; u16: cvt_8; u32: cvt_8; u64: cvt_8; u8: cvt_8
class cvt_13:
    f16: cvt_4; f32: cvt_12
class cvt_14:
    bf16: cvt_4; f16: cvt_4; f32: cvt_10; sat: cvt_13
class cvt_15:
    f32: cvt_2; f64: cvt_2; s16: cvt_8; s32: cvt_8; s64: cvt_8; s8: cvt_8; u16: cvt_8; u32: cvt_8; u64: cvt_8; u8: cvt_8
class cvt_16:
    s16: cvt_8; s32: cvt_8; s64: cvt_8; s8: cvt_8; u16: cvt_8; u32: cvt_8; u64: cvt_8; u8: cvt_8
class cvt_17:
    f16: cvt_15; f32: cvt_12; f64: cvt_16
class cvt_18:
    bf16: cvt_7; f16: cvt_9; f32: cvt_10; f64: cvt_11; ftz: cvt_14; sat: cvt_17
class cvt_19:
    bf16: cvt
class cvt_20:
    f16: cvt_2
class cvt_21:
    f64: cvt_2
class cvt_22:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Convert a float to an integer: round, then clamp to the range of d; NaN gives 0 (or the high bit in 64 bits)."
class cvt_23:
    f32: cvt_22
class cvt_24:
    f32: cvt_4; s16: cvt_23; s32: cvt_23; s64: cvt_23; s8: cvt_23; u16: cvt_23; u32: cvt_23; u64: cvt_23; u8: cvt_23
class cvt_25:
    f32: cvt_4; s16: cvt_23; s32: cvt_23; s64: cvt_23; s8: cvt_23; sat: cvt_24; u16: cvt_23; u32: cvt_23; u64: cvt_23; u8: cvt_23
class cvt_26:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Convert a float to an integer: round, then clamp to the range of d; NaN gives 0 (or the high bit in 64 bits). Requires sm_90."
class cvt_27:
    bf16: cvt_26; f16: cvt_22; f32: cvt_22; f64: cvt_22
class cvt_28:
    f16: cvt_22; f32: cvt_22; f64: cvt_22
class cvt_29:
    f16: cvt_20; f32: cvt_4; f64: cvt_21; s16: cvt_28; s32: cvt_28; s64: cvt_28; s8: cvt_28; u16: cvt_28; u32: cvt_28; u64: cvt_28; u8: cvt_28
class cvt_30:
    bf16: cvt_19; f16: cvt_20; f32: cvt_4; f64: cvt_21; ftz: cvt_25; s16: cvt_27; s32: cvt_27; s64: cvt_27; s8: cvt_28; sat: cvt_29; u16: cvt_27; u32: cvt_27; u64: cvt_27; u8: cvt_28
class cvt_31:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Convert two f32 values to a narrower type and pack them: d = {a, b}, b in the low half."
class cvt_32:
    f32: cvt_31
class cvt_rn:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Convert between floating-point types, rounded; .rni, .rzi, .rmi, .rpi round to an integral value. Requires sm_89."
class cvt_rn_2:
    e4m3x2: cvt_rn; e5m2x2: cvt_rn; f32: cvt_31
class cvt_33:
    bf16: cvt_4; bf16x2: cvt_32; f16: cvt_4; f16x2: cvt_32
class cvt_34:
    f32: cvt
class cvt_rn_relu:
    bf16: cvt_4; bf16x2: cvt_32; f16: cvt_4; f16x2: cvt_rn_2; satfinite: cvt_33; tf32: cvt_34
class cvt_rn_satfinite:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Convert two f32 values to a narrower type and pack them: d = {a, b}, b in the low half. Requires sm_89."
class cvt_rn_satfinite_2:
    f16x2: cvt_rn; f32: cvt_rn_satfinite
class cvt_rn_satfinite_relu:
    e4m3x2: cvt_rn_satfinite_2; e5m2x2: cvt_rn_satfinite_2; tf32: cvt_34
class cvt_rn_satfinite_3:
    bf16: cvt_4; bf16x2: cvt_32; e4m3x2: cvt_rn_satfinite_2; e5m2x2: cvt_rn_satfinite_2; f16: cvt_4; f16x2: cvt_32; relu: cvt_rn_satfinite_relu; tf32: cvt_34
class cvt_rn_3:
    bf16: cvt_7; bf16x2: cvt_32; f16: cvt_9; f16x2: cvt_rn_2; f32: cvt_10; f64: cvt_11; ftz: cvt_14; relu: cvt_rn_relu; sat: cvt_17; satfinite: cvt_rn_satfinite_3; tf32: cvt_34
class cvt_rna_satfinite:
    tf32: cvt_4
class cvt_rna:
    satfinite: cvt_rna_satfinite; tf32: cvt_4
class cvt_rz_relu:
    bf16: cvt_4; bf16x2: cvt_32; f16: cvt_4; f16x2: cvt_32; satfinite: cvt_33; tf32: cvt_34
class cvt_rz_satfinite_relu:
    tf32: cvt_34
class cvt_rz_satfinite:
    bf16: cvt_4; bf16x2: cvt_32; f16: cvt_4; f16x2: cvt_32; relu: cvt_rz_satfinite_relu; tf32: cvt_34
class cvt_rz:
    bf16: cvt_7; bf16x2: cvt_32; f16: cvt_9; f16x2: cvt_32; f32: cvt_10; f64: cvt_11; ftz: cvt_14; relu: cvt_rz_relu; sat: cvt_17; satfinite: cvt_rz_satfinite; tf32: cvt_34
class cvt_35:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Convert between integer types: truncate or extend; .sat clamps to the range of d."
class cvt_36:
    s16: cvt_35; s32: cvt_35; s64: cvt_35; s8: cvt_35; u16: cvt_35; u32: cvt_35; u64: cvt_35; u8: cvt_35
class cvt_sat_f64:
    f16: cvt_2; f32: cvt_2; f64: cvt_2
class cvt_sat_s16:
    s32: cvt_35; s64: cvt_35; u16: cvt_35; u32: cvt_35; u64: cvt_35
class cvt_sat_s32:
    s64: cvt_35; u32: cvt_35; u64: cvt_35
class cvt_sat_s64:
    u64: cvt_35
class cvt_sat_s8:
    s16: cvt_35; s32: cvt_35; s64: cvt_35; u16: cvt_35; u32: cvt_35; u64: cvt_35; u8: cvt_35
class cvt_sat_u16:
    s16: cvt_35; s32: cvt_35; s64: cvt_35; s8: cvt_35; u32: cvt_35; u64: cvt_35
class cvt_sat_u32:
    s16: cvt_35; s32: cvt_35; s64: cvt_35; s8: cvt_35; u64: cvt_35
class cvt_sat_u64:
    s16: cvt_35; s32: cvt_35; s64: cvt_35; s8: cvt_35
class cvt_sat_u8:
    s16: cvt_35; s32: cvt_35; s64: cvt_35; s8: cvt_35; u16: cvt_35; u32: cvt_35; u64: cvt_35
class cvt_sat:
    f16: cvt_20; f32: cvt_5; f64: cvt_sat_f64; s16: cvt_sat_s16; s32: cvt_sat_s32; s64: cvt_sat_s64; s8: cvt_sat_s8; u16: cvt_sat_u16; u32: cvt_sat_u32; u64: cvt_sat_u64; u8: cvt_sat_u8
class cvt_37:
    bf16: cvt_bf16; f16: cvt_f16; f32: cvt_3; f64: cvt_f64; ftz: cvt_ftz; pack: cvt_pack; rm: cvt_18; rmi: cvt_30; rn: cvt_rn_3; rna: cvt_rna; rni: cvt_30; rp: cvt_18; rpi: cvt_30; rz: cvt_rz; rzi: cvt_30; s16: cvt_36; s32: cvt_36; s64: cvt_36; s8: cvt_36; sat: cvt_sat; u16: cvt_36; u32: cvt_36; u64: cvt_36; u8: cvt_36
class cvta:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Convert an address in a state space to a generic address, or (.to) the reverse."
class cvta_2:
    u64: cvta
class cvta_to:
    const: cvta_2; global_: cvta_2; local: cvta_2; param: cvta_2; param__entry: cvta_2; shared: cvta_2; shared__cluster: cvta_2; shared__cta: cvta_2
class cvta_3:
    const: cvta_2; global_: cvta_2; local: cvta_2; param: cvta_2; param__entry: cvta_2; shared: cvta_2; shared__cluster: cvta_2; shared__cta: cvta_2; to: cvta_to
class discard:
    def __call__(self, a: In, size: In, /, *, guard: Guard = ...) -> None:
        "Discard a cache line without write-back; its 128 bytes are undefined until written again."
class discard_global:
    L2: discard
class discard_2:
    L2: discard; global_: discard_global
class div:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Divide approximately: d = a / b, within 2 ulp; .approx gives 0 for 2^126 < |b| < 2^128."
class div_2:
    f32: div
class div_3:
    f32: div; ftz: div_2
class div_4:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Divide two values: d = a / b."
class div_5:
    f32: div_4
class div_6:
    f32: div_4; f64: div_4; ftz: div_5
class div_7:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Divide two values: d = a / b, rounded toward zero; division by zero gives all ones."
class div_8:
    approx: div_3; full: div_3; rm: div_6; rn: div_6; rp: div_6; rz: div_6; s16: div_7; s32: div_7; s64: div_7; u16: div_7; u32: div_7; u64: div_7
class dp2a:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Dot product of two halves of a with two low or high bytes of b, plus c; c and d are s32 if a or b is signed."
class dp2a_2:
    s32: dp2a; u32: dp2a
class dp2a_3:
    s32: dp2a_2; u32: dp2a_2
class dp2a_4:
    hi: dp2a_3; lo: dp2a_3
class dp4a:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Dot product of four bytes with accumulation: d = c + dot(a, b); c and d are s32 if a or b is signed."
class dp4a_2:
    s32: dp4a; u32: dp4a
class dp4a_3:
    s32: dp4a_2; u32: dp4a_2
class elect_sync:
    def __call__(self, membermask: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Scalar, Scalar]:
        "Elect one leader lane of a warp: p = true in the lowest lane of membermask; d = its number. Requires sm_90."
class elect:
    sync: elect_sync
class ex2_approx:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate 2 raised to the power of a half-precision value."
class ex2_approx_2:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate 2 raised to the power a."
class ex2_approx_ftz:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate 2 raised to the power of a half-precision value. Requires sm_90."
class ex2_approx_ftz_2:
    bf16: ex2_approx_ftz; bf16x2: ex2_approx_ftz; f32: ex2_approx_2
class ex2_approx_3:
    f16: ex2_approx; f16x2: ex2_approx; f32: ex2_approx_2; ftz: ex2_approx_ftz_2
class ex2:
    approx: ex2_approx_3
class exit:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Terminate the thread."
class fence:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Order this thread's memory accesses as observed by the threads of a scope. Requires sm_90."
class fence_2:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Order this thread's memory accesses as observed by the threads of a scope."
class fence_3:
    cluster: fence; cta: fence_2; gpu: fence_2; sys: fence_2
class fence_4:
    cluster: fence
class fence_acquire:
    cluster: fence_2; cta: fence_2; gpu: fence_2; sync_restrict__shared__cluster: fence_4; sys: fence_2
class fence_mbarrier_init:
    release: fence_4
class fence_proxy_alias:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Order memory accesses made through different proxies."
class fence_proxy:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Order memory accesses made through different proxies. Requires sm_90."
class fence_proxy_async(fence_proxy):
    global_: fence_proxy; shared__cluster: fence_proxy; shared__cta: fence_proxy
class fence_proxy_async_generic:
    cluster: fence_proxy
class fence_proxy_async_generic_acquire:
    sync_restrict__shared__cluster: fence_proxy_async_generic
class fence_proxy_async_generic_release:
    sync_restrict__shared__cta: fence_proxy_async_generic
class fence_proxy_async_generic_2:
    acquire: fence_proxy_async_generic_acquire; release: fence_proxy_async_generic_release
class fence_proxy_tensormap_generic_acquire:
    def __call__(self, address: In, size: In, /, *, guard: Guard = ...) -> None:
        "Order memory accesses made through different proxies. Requires sm_90."
class fence_proxy_tensormap_generic_acquire_2:
    cluster: fence_proxy_tensormap_generic_acquire; cta: fence_proxy_tensormap_generic_acquire; gpu: fence_proxy_tensormap_generic_acquire; sys: fence_proxy_tensormap_generic_acquire
class fence_proxy_tensormap_generic_release:
    cluster: fence_proxy; cta: fence_proxy; gpu: fence_proxy; sys: fence_proxy
class fence_proxy_tensormap_generic:
    acquire: fence_proxy_tensormap_generic_acquire_2; release: fence_proxy_tensormap_generic_release
class fence_proxy_2:
    alias: fence_proxy_alias; async_: fence_proxy_async; async__generic: fence_proxy_async_generic_2; tensormap__generic: fence_proxy_tensormap_generic
class fence_release:
    cluster: fence_2; cta: fence_2; gpu: fence_2; sync_restrict__shared__cta: fence_4; sys: fence_2
class fence_5:
    acq_rel: fence_3; acquire: fence_acquire; cluster: fence; cta: fence_2; gpu: fence_2; mbarrier_init: fence_mbarrier_init; proxy: fence_proxy_2; release: fence_release; sc: fence_3; sys: fence_2
class fma:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Fused multiply-add: d = a * b + c, rounded once."
class fma_2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Fused multiply-add: d = a * b + c, rounded once. Requires sm_100."
class fma_3(fma):
    bf16: fma_2; f16: fma_2
class fma_4:
    f32: fma
class fma_5:
    f32: fma; f32x2: fma_2; sat: fma_4
class fma_6:
    f32: fma_3
class fma_7:
    f32: fma_3; f32x2: fma_2; f64: fma; ftz: fma_5; sat: fma_6
class fma_rn:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Fused multiply-add in half precision: d = a * b + c, rounded once; .relu clamps to at least 0."
class fma_rn_ftz_relu:
    f16: fma_rn; f16x2: fma_rn
class fma_rn_ftz_sat:
    f16: fma_rn; f16x2: fma_rn; f32: fma
class fma_rn_ftz:
    f16: fma_rn; f16x2: fma_rn; f32: fma; f32x2: fma_2; relu: fma_rn_ftz_relu; sat: fma_rn_ftz_sat
class fma_rn_relu:
    bf16: fma_rn; bf16x2: fma_rn; f16: fma_rn; f16x2: fma_rn
class fma_rn_sat:
    f16: fma_rn; f16x2: fma_rn; f32: fma_3
class fma_rn_2:
    bf16: fma_rn; bf16x2: fma_rn; f16: fma_rn; f16x2: fma_rn; f32: fma_3; f32x2: fma_2; f64: fma; ftz: fma_rn_ftz; relu: fma_rn_relu; sat: fma_rn_sat
class fma_8:
    rm: fma_7; rn: fma_rn_2; rp: fma_7; rz: fma_7
class fns_b32:
    def __call__(self, mask: In, base: In, offset: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Find the n-th set bit of mask, n = |offset|, upwards from base (downwards for offset < 0); else 0xffffffff."
class fns:
    b32: fns_b32
class getctarank:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Get the cluster rank of the block whose shared memory contains address a. Requires sm_90."
class getctarank_shared_cluster:
    u32: getctarank; u64: getctarank
class getctarank_2:
    shared__cluster: getctarank_shared_cluster; u32: getctarank; u64: getctarank
class griddepcontrol_launch_dependents:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Allow dependent grids to launch, once every block has executed this or exited. Requires sm_90."
class griddepcontrol_wait:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Wait until all prerequisite grids have completed, and their writes are visible. Requires sm_90."
class griddepcontrol:
    launch_dependents: griddepcontrol_launch_dependents; wait: griddepcontrol_wait
class isspacep:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Query whether a generic address falls within a state space: p = true if it does."
class isspacep_2:
    const: isspacep; global_: isspacep; local: isspacep; param: isspacep; param__entry: isspacep; shared: isspacep; shared__cluster: isspacep; shared__cta: isspacep
class ld:
    def __call__(self, a: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Load from memory: d = [a]."
class ld_2:
    def __call__(self, a: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Load from memory: d = [a]."
class ld_3:
    b16: ld_2; b32: ld_2; b64: ld_2; b8: ld_2; f32: ld_2; f64: ld_2; s16: ld_2; s32: ld_2; s64: ld_2; s8: ld_2; u16: ld_2; u32: ld_2; u64: ld_2; u8: ld_2
class ld_4:
    def __call__(self, a: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Load from memory: d = [a]."
class ld_5:
    b16: ld_4; b32: ld_4; b64: ld_4; b8: ld_4; f32: ld_4; f64: ld_4; s16: ld_4; s32: ld_4; s64: ld_4; s8: ld_4; u16: ld_4; u32: ld_4; u64: ld_4; u8: ld_4
class ld_6:
    def __call__(self, a: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Load from memory: d = [a]."
class ld_7:
    b32: ld_6; f32: ld_6; s32: ld_6; u32: ld_6
class ld_8:
    b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; f32: ld; f64: ld; s16: ld; s32: ld; s64: ld; s8: ld; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_5; v8: ld_7
class ld_9:
    L2__128B: ld_8; L2__256B: ld_8; L2__64B: ld_8; b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; f32: ld; f64: ld; s16: ld; s32: ld; s64: ld; s8: ld; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_5; v8: ld_7
class ld_10:
    b64: ld_4; f64: ld_4; s64: ld_4; u64: ld_4
class ld_11:
    v4: ld_10; v8: ld_7
class ld_12:
    L2__128B: ld_11; L2__256B: ld_11; L2__64B: ld_11; v4: ld_10; v8: ld_7
class ld_13:
    L2__128B: ld_11; L2__256B: ld_11; L2__64B: ld_11; L2__cache_hint: ld_12; v4: ld_10; v8: ld_7
class ld_14:
    L2__128B: ld_8; L2__256B: ld_8; L2__64B: ld_8; L2__cache_hint: ld_9; L2__evict_first: ld_13; L2__evict_last: ld_13; L2__evict_normal: ld_13; b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; f32: ld; f64: ld; s16: ld; s32: ld; s64: ld; s8: ld; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_5; v8: ld_7
class ld_15:
    L1__evict_first: ld_14; L1__evict_last: ld_14; L1__evict_normal: ld_14; L1__evict_unchanged: ld_14; L1__no_allocate: ld_14; L2__128B: ld_8; L2__256B: ld_8; L2__64B: ld_8; L2__cache_hint: ld_9; L2__evict_first: ld_13; L2__evict_last: ld_13; L2__evict_normal: ld_13; b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; f32: ld; f64: ld; s16: ld; s32: ld; s64: ld; s8: ld; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_5; v8: ld_7
class ld_16:
    b16: ld_4; b32: ld_4; b8: ld_4; f32: ld_4; s16: ld_4; s32: ld_4; s8: ld_4; u16: ld_4; u32: ld_4; u8: ld_4
class ld_17:
    b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; f32: ld; f64: ld; s16: ld; s32: ld; s64: ld; s8: ld; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_16
class ld_18:
    L1__evict_first: ld_14; L1__evict_last: ld_14; L1__evict_normal: ld_14; L1__evict_unchanged: ld_14; L1__no_allocate: ld_14; L2__128B: ld_8; L2__256B: ld_8; L2__64B: ld_8; L2__cache_hint: ld_9; L2__evict_first: ld_13; L2__evict_last: ld_13; L2__evict_normal: ld_13; b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; f32: ld; f64: ld; global_: ld_15; s16: ld; s32: ld; s64: ld; s8: ld; shared: ld_17; shared__cluster: ld_17; shared__cta: ld_17; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_5; v8: ld_7
class ld_19:
    cluster: ld_18; cta: ld_18; gpu: ld_18; sys: ld_18
class ld_20:
    L2__128B: ld_8; L2__256B: ld_8; L2__64B: ld_8; L2__cache_hint: ld_9; b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; f32: ld; f64: ld; s16: ld; s32: ld; s64: ld; s8: ld; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_5; v8: ld_7
class ld_21:
    b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; ca: ld_17; cg: ld_17; cs: ld_17; cv: ld_17; f32: ld; f64: ld; lu: ld_17; s16: ld; s32: ld; s64: ld; s8: ld; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_16
class ld_global:
    L2__128B: ld_8; L2__256B: ld_8; L2__64B: ld_8; L2__cache_hint: ld_9; b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; f32: ld; f64: ld; nc: ld_20; s16: ld; s32: ld; s64: ld; s8: ld; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_5; v8: ld_7
class ld_global_2:
    L1__evict_first: ld_14; L1__evict_last: ld_14; L1__evict_normal: ld_14; L1__evict_unchanged: ld_14; L1__no_allocate: ld_14; L2__128B: ld_8; L2__256B: ld_8; L2__64B: ld_8; L2__cache_hint: ld_9; L2__evict_first: ld_13; L2__evict_last: ld_13; L2__evict_normal: ld_13; b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; ca: ld_global; cg: ld_global; cs: ld_global; cv: ld_20; f32: ld; f64: ld; lu: ld_20; nc: ld_15; s16: ld; s32: ld; s64: ld; s8: ld; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_5; v8: ld_7
class ld_22:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Load from memory: d = [a]."
class ld_mmio_relaxed_sys_global:
    b128: ld_22; b16: ld_22; b32: ld_22; b64: ld_22; b8: ld_22; f32: ld_22; f64: ld_22; s16: ld_22; s32: ld_22; s64: ld_22; s8: ld_22; u16: ld_22; u32: ld_22; u64: ld_22; u8: ld_22
class ld_mmio_relaxed_sys:
    b128: ld_22; b16: ld_22; b32: ld_22; b64: ld_22; b8: ld_22; f32: ld_22; f64: ld_22; global_: ld_mmio_relaxed_sys_global; s16: ld_22; s32: ld_22; s64: ld_22; s8: ld_22; u16: ld_22; u32: ld_22; u64: ld_22; u8: ld_22
class ld_mmio_relaxed:
    sys: ld_mmio_relaxed_sys
class ld_mmio:
    relaxed: ld_mmio_relaxed
class ld_volatile:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Load from memory: d = [a]."
class ld_volatile_2:
    b16: ld_volatile; b32: ld_volatile; b64: ld_volatile; b8: ld_volatile; f32: ld_volatile; f64: ld_volatile; s16: ld_volatile; s32: ld_volatile; s64: ld_volatile; s8: ld_volatile; u16: ld_volatile; u32: ld_volatile; u64: ld_volatile; u8: ld_volatile
class ld_volatile_3:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Load from memory: d = [a]."
class ld_volatile_4:
    b16: ld_volatile_3; b32: ld_volatile_3; b64: ld_volatile_3; b8: ld_volatile_3; f32: ld_volatile_3; f64: ld_volatile_3; s16: ld_volatile_3; s32: ld_volatile_3; s64: ld_volatile_3; s8: ld_volatile_3; u16: ld_volatile_3; u32: ld_volatile_3; u64: ld_volatile_3; u8: ld_volatile_3
class ld_volatile_5:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Load from memory: d = [a]."
class ld_volatile_6:
    b32: ld_volatile_5; f32: ld_volatile_5; s32: ld_volatile_5; u32: ld_volatile_5
class ld_volatile_7:
    b128: ld_22; b16: ld_22; b32: ld_22; b64: ld_22; b8: ld_22; f32: ld_22; f64: ld_22; s16: ld_22; s32: ld_22; s64: ld_22; s8: ld_22; u16: ld_22; u32: ld_22; u64: ld_22; u8: ld_22; v2: ld_volatile_2; v4: ld_volatile_4; v8: ld_volatile_6
class ld_volatile_global:
    L2__128B: ld_volatile_7; L2__256B: ld_volatile_7; L2__64B: ld_volatile_7; b128: ld_22; b16: ld_22; b32: ld_22; b64: ld_22; b8: ld_22; f32: ld_22; f64: ld_22; s16: ld_22; s32: ld_22; s64: ld_22; s8: ld_22; u16: ld_22; u32: ld_22; u64: ld_22; u8: ld_22; v2: ld_volatile_2; v4: ld_volatile_4; v8: ld_volatile_6
class ld_volatile_8:
    b16: ld_volatile_3; b32: ld_volatile_3; b8: ld_volatile_3; f32: ld_volatile_3; s16: ld_volatile_3; s32: ld_volatile_3; s8: ld_volatile_3; u16: ld_volatile_3; u32: ld_volatile_3; u8: ld_volatile_3
class ld_volatile_9:
    b128: ld_22; b16: ld_22; b32: ld_22; b64: ld_22; b8: ld_22; f32: ld_22; f64: ld_22; s16: ld_22; s32: ld_22; s64: ld_22; s8: ld_22; u16: ld_22; u32: ld_22; u64: ld_22; u8: ld_22; v2: ld_volatile_2; v4: ld_volatile_8
class ld_volatile_10:
    L2__128B: ld_volatile_7; L2__256B: ld_volatile_7; L2__64B: ld_volatile_7; b128: ld_22; b16: ld_22; b32: ld_22; b64: ld_22; b8: ld_22; f32: ld_22; f64: ld_22; global_: ld_volatile_global; s16: ld_22; s32: ld_22; s64: ld_22; s8: ld_22; shared: ld_volatile_9; shared__cluster: ld_volatile_9; shared__cta: ld_volatile_9; u16: ld_22; u32: ld_22; u64: ld_22; u8: ld_22; v2: ld_volatile_2; v4: ld_volatile_4; v8: ld_volatile_6
class ld_weak_global:
    L1__evict_first: ld_14; L1__evict_last: ld_14; L1__evict_normal: ld_14; L1__evict_unchanged: ld_14; L1__no_allocate: ld_14; L2__128B: ld_8; L2__256B: ld_8; L2__64B: ld_8; L2__cache_hint: ld_9; L2__evict_first: ld_13; L2__evict_last: ld_13; L2__evict_normal: ld_13; b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; ca: ld_20; cg: ld_20; cs: ld_20; cv: ld_20; f32: ld; f64: ld; lu: ld_20; s16: ld; s32: ld; s64: ld; s8: ld; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_5; v8: ld_7
class ld_weak:
    L1__evict_first: ld_14; L1__evict_last: ld_14; L1__evict_normal: ld_14; L1__evict_unchanged: ld_14; L1__no_allocate: ld_14; L2__128B: ld_8; L2__256B: ld_8; L2__64B: ld_8; L2__cache_hint: ld_9; L2__evict_first: ld_13; L2__evict_last: ld_13; L2__evict_normal: ld_13; b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; ca: ld_20; cg: ld_20; const: ld_21; cs: ld_20; cv: ld_20; f32: ld; f64: ld; global_: ld_weak_global; local: ld_21; lu: ld_20; param: ld_21; param__entry: ld_21; param__func: ld_21; s16: ld; s32: ld; s64: ld; s8: ld; shared: ld_21; shared__cluster: ld_21; shared__cta: ld_21; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_5; v8: ld_7
class ld_23:
    L1__evict_first: ld_14; L1__evict_last: ld_14; L1__evict_normal: ld_14; L1__evict_unchanged: ld_14; L1__no_allocate: ld_14; L2__128B: ld_8; L2__256B: ld_8; L2__64B: ld_8; L2__cache_hint: ld_9; L2__evict_first: ld_13; L2__evict_last: ld_13; L2__evict_normal: ld_13; acquire: ld_19; b128: ld; b16: ld; b32: ld; b64: ld; b8: ld; ca: ld_20; cg: ld_20; const: ld_21; cs: ld_20; cv: ld_20; f32: ld; f64: ld; global_: ld_global_2; local: ld_21; lu: ld_20; mmio: ld_mmio; param: ld_21; param__entry: ld_21; param__func: ld_21; relaxed: ld_19; s16: ld; s32: ld; s64: ld; s8: ld; shared: ld_21; shared__cluster: ld_21; shared__cta: ld_21; u16: ld; u32: ld; u64: ld; u8: ld; v2: ld_3; v4: ld_5; v8: ld_7; volatile: ld_volatile_10; weak: ld_weak
class ldmatrix_sync_aligned:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Load matrices of 8-bit elements from shared memory; 4- and 6-bit elements are expanded to bytes, in the low bits. Requires sm_100f or sm_110f or sm_120f."
class ldmatrix_sync_aligned_2:
    b4x16_p64: ldmatrix_sync_aligned; b6x16_p32: ldmatrix_sync_aligned
class ldmatrix_sync_aligned_m16n16_x1_trans:
    b8: ldmatrix_sync_aligned; b8x16: ldmatrix_sync_aligned_2
class ldmatrix_sync_aligned_m16n16_x1_trans_2:
    b8: ldmatrix_sync_aligned; b8x16: ldmatrix_sync_aligned_2; shared: ldmatrix_sync_aligned_m16n16_x1_trans; shared__cta: ldmatrix_sync_aligned_m16n16_x1_trans
class ldmatrix_sync_aligned_m16n16_x1:
    trans: ldmatrix_sync_aligned_m16n16_x1_trans_2
class ldmatrix_sync_aligned_3:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Load matrices of 8-bit elements from shared memory; 4- and 6-bit elements are expanded to bytes, in the low bits. Requires sm_100f or sm_110f or sm_120f."
class ldmatrix_sync_aligned_4:
    b4x16_p64: ldmatrix_sync_aligned_3; b6x16_p32: ldmatrix_sync_aligned_3
class ldmatrix_sync_aligned_m16n16_x2_trans:
    b8: ldmatrix_sync_aligned_3; b8x16: ldmatrix_sync_aligned_4
class ldmatrix_sync_aligned_m16n16_x2_trans_2:
    b8: ldmatrix_sync_aligned_3; b8x16: ldmatrix_sync_aligned_4; shared: ldmatrix_sync_aligned_m16n16_x2_trans; shared__cta: ldmatrix_sync_aligned_m16n16_x2_trans
class ldmatrix_sync_aligned_m16n16_x2:
    trans: ldmatrix_sync_aligned_m16n16_x2_trans_2
class ldmatrix_sync_aligned_m16n16:
    x1: ldmatrix_sync_aligned_m16n16_x1; x2: ldmatrix_sync_aligned_m16n16_x2
class ldmatrix_sync_aligned_m8n16_x1:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Load matrices of 8-bit elements from shared memory; 4- and 6-bit elements are expanded to bytes, in the low bits. Requires sm_100f or sm_110f or sm_120f."
class ldmatrix_sync_aligned_m8n16_x1_2:
    b4x16_p64: ldmatrix_sync_aligned_m8n16_x1; b6x16_p32: ldmatrix_sync_aligned_m8n16_x1
class ldmatrix_sync_aligned_m8n16_x1_3:
    b8x16: ldmatrix_sync_aligned_m8n16_x1_2
class ldmatrix_sync_aligned_m8n16_x1_4:
    b8x16: ldmatrix_sync_aligned_m8n16_x1_2; shared: ldmatrix_sync_aligned_m8n16_x1_3; shared__cta: ldmatrix_sync_aligned_m8n16_x1_3
class ldmatrix_sync_aligned_m8n16_x2:
    b8x16: ldmatrix_sync_aligned_2
class ldmatrix_sync_aligned_m8n16_x2_2:
    b8x16: ldmatrix_sync_aligned_2; shared: ldmatrix_sync_aligned_m8n16_x2; shared__cta: ldmatrix_sync_aligned_m8n16_x2
class ldmatrix_sync_aligned_m8n16_x4:
    b8x16: ldmatrix_sync_aligned_4
class ldmatrix_sync_aligned_m8n16_x4_2:
    b8x16: ldmatrix_sync_aligned_4; shared: ldmatrix_sync_aligned_m8n16_x4; shared__cta: ldmatrix_sync_aligned_m8n16_x4
class ldmatrix_sync_aligned_m8n16:
    x1: ldmatrix_sync_aligned_m8n16_x1_4; x2: ldmatrix_sync_aligned_m8n16_x2_2; x4: ldmatrix_sync_aligned_m8n16_x4_2
class ldmatrix_sync_aligned_m8n8_x1:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Load 8x8 matrices: lane 4g + t gets elements 2t and 2t+1 of row g (.trans: column g)."
class ldmatrix_sync_aligned_m8n8_x1_2:
    b16: ldmatrix_sync_aligned_m8n8_x1
class ldmatrix_sync_aligned_m8n8_x1_trans:
    b16: ldmatrix_sync_aligned_m8n8_x1; shared: ldmatrix_sync_aligned_m8n8_x1_2; shared__cta: ldmatrix_sync_aligned_m8n8_x1_2
class ldmatrix_sync_aligned_m8n8_x1_3:
    b16: ldmatrix_sync_aligned_m8n8_x1; shared: ldmatrix_sync_aligned_m8n8_x1_2; shared__cta: ldmatrix_sync_aligned_m8n8_x1_2; trans: ldmatrix_sync_aligned_m8n8_x1_trans
class ldmatrix_sync_aligned_m8n8_x2:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Load 8x8 matrices: lane 4g + t gets elements 2t and 2t+1 of row g (.trans: column g)."
class ldmatrix_sync_aligned_m8n8_x2_2:
    b16: ldmatrix_sync_aligned_m8n8_x2
class ldmatrix_sync_aligned_m8n8_x2_trans:
    b16: ldmatrix_sync_aligned_m8n8_x2; shared: ldmatrix_sync_aligned_m8n8_x2_2; shared__cta: ldmatrix_sync_aligned_m8n8_x2_2
class ldmatrix_sync_aligned_m8n8_x2_3:
    b16: ldmatrix_sync_aligned_m8n8_x2; shared: ldmatrix_sync_aligned_m8n8_x2_2; shared__cta: ldmatrix_sync_aligned_m8n8_x2_2; trans: ldmatrix_sync_aligned_m8n8_x2_trans
class ldmatrix_sync_aligned_m8n8_x4:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Load 8x8 matrices: lane 4g + t gets elements 2t and 2t+1 of row g (.trans: column g)."
class ldmatrix_sync_aligned_m8n8_x4_2:
    b16: ldmatrix_sync_aligned_m8n8_x4
class ldmatrix_sync_aligned_m8n8_x4_trans:
    b16: ldmatrix_sync_aligned_m8n8_x4; shared: ldmatrix_sync_aligned_m8n8_x4_2; shared__cta: ldmatrix_sync_aligned_m8n8_x4_2
class ldmatrix_sync_aligned_m8n8_x4_3:
    b16: ldmatrix_sync_aligned_m8n8_x4; shared: ldmatrix_sync_aligned_m8n8_x4_2; shared__cta: ldmatrix_sync_aligned_m8n8_x4_2; trans: ldmatrix_sync_aligned_m8n8_x4_trans
class ldmatrix_sync_aligned_m8n8:
    x1: ldmatrix_sync_aligned_m8n8_x1_3; x2: ldmatrix_sync_aligned_m8n8_x2_3; x4: ldmatrix_sync_aligned_m8n8_x4_3
class ldmatrix_sync_aligned_5:
    m16n16: ldmatrix_sync_aligned_m16n16; m8n16: ldmatrix_sync_aligned_m8n16; m8n8: ldmatrix_sync_aligned_m8n8
class ldmatrix_sync:
    aligned: ldmatrix_sync_aligned_5
class ldmatrix:
    sync: ldmatrix_sync
class ldu:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Load from memory: d = [a]."
class ldu_2:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Load from memory: d = [a]."
class ldu_3:
    b16: ldu_2; b32: ldu_2; b64: ldu_2; b8: ldu_2; f32: ldu_2; f64: ldu_2; s16: ldu_2; s32: ldu_2; s64: ldu_2; s8: ldu_2; u16: ldu_2; u32: ldu_2; u64: ldu_2; u8: ldu_2
class ldu_4:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Load from memory: d = [a]."
class ldu_5:
    b16: ldu_4; b32: ldu_4; b8: ldu_4; f32: ldu_4; s16: ldu_4; s32: ldu_4; s8: ldu_4; u16: ldu_4; u32: ldu_4; u8: ldu_4
class ldu_global:
    b128: ldu; b16: ldu; b32: ldu; b64: ldu; b8: ldu; f32: ldu; f64: ldu; s16: ldu; s32: ldu; s64: ldu; s8: ldu; u16: ldu; u32: ldu; u64: ldu; u8: ldu; v2: ldu_3; v4: ldu_5
class ldu_6:
    b128: ldu; b16: ldu; b32: ldu; b64: ldu; b8: ldu; f32: ldu; f64: ldu; global_: ldu_global; s16: ldu; s32: ldu; s64: ldu; s8: ldu; u16: ldu; u32: ldu; u64: ldu; u8: ldu; v2: ldu_3; v4: ldu_5
class lg2_approx:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate the base-2 logarithm of a."
class lg2_approx_ftz:
    f32: lg2_approx
class lg2_approx_2:
    f32: lg2_approx; ftz: lg2_approx_ftz
class lg2:
    approx: lg2_approx_2
class lop3:
    def __call__(self, a: In, b: In, c: In, lut: In, q: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Scalar, Scalar]:
        "Arbitrary three-input logic: d = lut(a, b, c), bit by bit; p = d != 0, combined with q."
class lop3_2:
    b32: lop3
class lop3_b32:
    def __call__(self, a: In, b: In, c: In, lut: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Arbitrary three-input logic: d = lut(a, b, c), bit by bit; p = d != 0, combined with q."
class lop3_3:
    and_: lop3_2; b32: lop3_b32; or_: lop3_2
class mad:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply-add: d = a * b + c, rounded once; identical to fma."
class mad_2:
    f32: mad
class mad_3:
    f32: mad; sat: mad_2
class mad_4:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply-add with carry: d = half of a * b, plus c, plus CC.CF for madc; .cc writes the carry to CC.CF."
class mad_5:
    s32: mad_4; s64: mad_4; u32: mad_4; u64: mad_4
class mad_6:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply-add: d = the low or high half of a * b, plus c; .sat clamps to the range of s32."
class mad_hi_sat:
    s32: mad_6
class mad_hi:
    cc: mad_5; s16: mad_6; s32: mad_6; s64: mad_6; sat: mad_hi_sat; u16: mad_6; u32: mad_6; u64: mad_6
class mad_lo:
    cc: mad_5; s16: mad_6; s32: mad_6; s64: mad_6; u16: mad_6; u32: mad_6; u64: mad_6
class mad_7:
    f32: mad; f64: mad; ftz: mad_3; sat: mad_2
class mad_wide:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply-add into a result of twice the width of a and b: d = a * b + c."
class mad_wide_2:
    s16: mad_wide; s32: mad_wide; u16: mad_wide; u32: mad_wide
class mad_8:
    f32: mad; ftz: mad_3; hi: mad_hi; lo: mad_lo; rm: mad_7; rn: mad_7; rp: mad_7; rz: mad_7; sat: mad_2; wide: mad_wide_2
class mad24:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply-add 24-bit values: d = the low or high 32 bits of the 48-bit product, plus c."
class mad24_hi_sat:
    s32: mad24
class mad24_hi:
    s32: mad24; sat: mad24_hi_sat; u32: mad24
class mad24_lo:
    s32: mad24; u32: mad24
class mad24_2:
    hi: mad24_hi; lo: mad24_lo
class madc:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply-add with carry: d = half of a * b, plus c, plus CC.CF for madc; .cc writes the carry to CC.CF."
class madc_2:
    s32: madc; s64: madc; u32: madc; u64: madc
class madc_3:
    cc: madc_2; s32: madc; s64: madc; u32: madc; u64: madc
class madc_4:
    hi: madc_3; lo: madc_3
class mapa:
    def __call__(self, a: In, rank: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Map a shared memory address to the same location in another block of the cluster. Requires sm_90."
class mapa_shared_cluster:
    u32: mapa; u64: mapa
class mapa_2:
    shared__cluster: mapa_shared_cluster; u32: mapa; u64: mapa
class match_all_sync:
    @overload
    def __call__(self, a: In, membermask: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[False] = ...) -> Scalar:
        "Test whether all lanes hold the same value: d = the member mask and p = true if so, else 0 and false."
    @overload
    def __call__(self, a: In, membermask: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[True]) -> Vector2:
        "Test whether all lanes hold the same value: d = the member mask and p = true if so, else 0 and false."
class match_all_sync_2:
    b32: match_all_sync; b64: match_all_sync
class match_all:
    sync: match_all_sync_2
class match_any_sync:
    def __call__(self, a: In, membermask: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Find equal values in a warp: d = a bit mask of the lanes whose a equals this lane's a."
class match_any_sync_2:
    b32: match_any_sync; b64: match_any_sync
class match_any:
    sync: match_any_sync_2
class match:
    all: match_all; any: match_any
class max:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the maximum of a, b (and c); .xorsign.abs: the maximum of |a|, |b|, with the XOR of their signs. Requires sm_100."
class max_2:
    f32: max
class max_3:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the maximum of a and b; .xorsign.abs: the maximum of |a|, |b|, with the XOR of their signs."
class max_4:
    def __call__(self, a: In, b: In, c: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the maximum of a, b (and c); .xorsign.abs: the maximum of |a|, |b|, with the XOR of their signs."
class max_5:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the maximum of a, b (and c); .xorsign.abs: the maximum of |a|, |b|, with the XOR of their signs."
class max_6:
    bf16: max_3; bf16x2: max_3; f16: max_3; f16x2: max_3; f32: max_5
class max_7:
    abs: max_6
class max_NaN:
    abs: max_2; bf16: max_3; bf16x2: max_3; f16: max_3; f16x2: max_3; f32: max_4; xorsign: max_7
class max_ftz:
    f16: max_3; f16x2: max_3; f32: max_5
class max_ftz_2:
    abs: max_ftz
class max_ftz_NaN:
    abs: max_2; f16: max_3; f16x2: max_3; f32: max_4; xorsign: max_ftz_2
class max_ftz_3:
    NaN: max_ftz_NaN; abs: max_2; f16: max_3; f16x2: max_3; f32: max_4; xorsign: max_ftz_2
class max_8:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the maximum of packed 16-bit halves; .relu clamps to at least 0. Requires sm_90."
class max_9:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the maximum of a and b; .relu clamps to at least 0."
class max_relu:
    s16x2: max_8; s32: max_9
class max_10:
    NaN: max_NaN; abs: max_2; bf16: max_3; bf16x2: max_3; f16: max_3; f16x2: max_3; f32: max_4; f64: max_5; ftz: max_ftz_3; relu: max_relu; s16: max_9; s16x2: max_8; s32: max_9; s64: max_9; u16: max_9; u16x2: max_8; u32: max_9; u64: max_9; xorsign: max_7
class mbarrier_arrive:
    def __call__(self, address: In, count: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Arrive at an mbarrier, `count` times or once; state = the phase of the arrival."
class mbarrier_arrive_expect_tx:
    def __call__(self, address: In, tx_count: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Expect `tx_count` more bytes in the current phase of an mbarrier, then arrive once; state = that phase. Requires sm_90."
class mbarrier_arrive_expect_tx_2:
    b64: mbarrier_arrive_expect_tx
class mbarrier_arrive_expect_tx_3:
    def __call__(self, address: In, tx_count: In, /, *, guard: Guard = ...) -> None:
        "Expect `tx_count` more bytes in the current phase of an mbarrier, then arrive once; state = that phase. Requires sm_90."
class mbarrier_arrive_expect_tx_4:
    b64: mbarrier_arrive_expect_tx_3
class mbarrier_arrive_expect_tx_5:
    b64: mbarrier_arrive_expect_tx; shared: mbarrier_arrive_expect_tx_2; shared__cluster: mbarrier_arrive_expect_tx_4; shared__cta: mbarrier_arrive_expect_tx_2
class mbarrier_arrive_expect_tx_6:
    cluster: mbarrier_arrive_expect_tx_5; cta: mbarrier_arrive_expect_tx_5
class mbarrier_arrive_expect_tx_7:
    b64: mbarrier_arrive_expect_tx; relaxed: mbarrier_arrive_expect_tx_6; release: mbarrier_arrive_expect_tx_6; shared: mbarrier_arrive_expect_tx_2; shared__cluster: mbarrier_arrive_expect_tx_4; shared__cta: mbarrier_arrive_expect_tx_2
class mbarrier_arrive_noComplete:
    def __call__(self, address: In, count: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Arrive at an mbarrier, `count` times or once; state = the phase of the arrival."
class mbarrier_arrive_noComplete_2:
    b64: mbarrier_arrive_noComplete
class mbarrier_arrive_noComplete_release_cta:
    b64: mbarrier_arrive_noComplete; shared: mbarrier_arrive_noComplete_2; shared__cta: mbarrier_arrive_noComplete_2
class mbarrier_arrive_noComplete_release:
    cta: mbarrier_arrive_noComplete_release_cta
class mbarrier_arrive_noComplete_3:
    b64: mbarrier_arrive_noComplete; release: mbarrier_arrive_noComplete_release; shared: mbarrier_arrive_noComplete_2; shared__cta: mbarrier_arrive_noComplete_2
class mbarrier_arrive_2:
    b64: mbarrier_arrive
class mbarrier_arrive_3:
    def __call__(self, address: In, count: In = ..., /, *, guard: Guard = ...) -> None:
        "Arrive at an mbarrier of any block of the cluster, `count` times or once; returns no state. Requires sm_90."
class mbarrier_arrive_4:
    b64: mbarrier_arrive_3
class mbarrier_arrive_5:
    b64: mbarrier_arrive; shared: mbarrier_arrive_2; shared__cluster: mbarrier_arrive_4; shared__cta: mbarrier_arrive_2
class mbarrier_arrive_6:
    cluster: mbarrier_arrive_5; cta: mbarrier_arrive_5
class mbarrier_arrive_7:
    b64: mbarrier_arrive; expect_tx: mbarrier_arrive_expect_tx_7; noComplete: mbarrier_arrive_noComplete_3; relaxed: mbarrier_arrive_6; release: mbarrier_arrive_6; shared: mbarrier_arrive_2; shared__cluster: mbarrier_arrive_4; shared__cta: mbarrier_arrive_2
class mbarrier_arrive_drop:
    def __call__(self, address: In, count: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Arrive at an mbarrier, and decrease the expected arrivals of all later phases by the same count."
class mbarrier_arrive_drop_expect_tx:
    def __call__(self, address: In, tx_count: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Expect `tx_count` more bytes, arrive once, and expect one arrival fewer in all later phases. Requires sm_90."
class mbarrier_arrive_drop_expect_tx_2:
    b64: mbarrier_arrive_drop_expect_tx
class mbarrier_arrive_drop_expect_tx_3:
    def __call__(self, address: In, tx_count: In, /, *, guard: Guard = ...) -> None:
        "Expect `tx_count` more bytes, arrive once, and expect one arrival fewer in all later phases. Requires sm_90."
class mbarrier_arrive_drop_expect_tx_4:
    b64: mbarrier_arrive_drop_expect_tx_3
class mbarrier_arrive_drop_expect_tx_5:
    b64: mbarrier_arrive_drop_expect_tx; shared: mbarrier_arrive_drop_expect_tx_2; shared__cluster: mbarrier_arrive_drop_expect_tx_4; shared__cta: mbarrier_arrive_drop_expect_tx_2
class mbarrier_arrive_drop_expect_tx_6:
    cluster: mbarrier_arrive_drop_expect_tx_5; cta: mbarrier_arrive_drop_expect_tx_5
class mbarrier_arrive_drop_expect_tx_7:
    b64: mbarrier_arrive_drop_expect_tx; relaxed: mbarrier_arrive_drop_expect_tx_6; release: mbarrier_arrive_drop_expect_tx_6; shared: mbarrier_arrive_drop_expect_tx_2; shared__cluster: mbarrier_arrive_drop_expect_tx_4; shared__cta: mbarrier_arrive_drop_expect_tx_2
class mbarrier_arrive_drop_noComplete:
    def __call__(self, address: In, count: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Arrive at an mbarrier, and decrease the expected arrivals of all later phases by the same count."
class mbarrier_arrive_drop_noComplete_2:
    b64: mbarrier_arrive_drop_noComplete
class mbarrier_arrive_drop_noComplete_release_cta:
    b64: mbarrier_arrive_drop_noComplete; shared: mbarrier_arrive_drop_noComplete_2; shared__cta: mbarrier_arrive_drop_noComplete_2
class mbarrier_arrive_drop_noComplete_release:
    cta: mbarrier_arrive_drop_noComplete_release_cta
class mbarrier_arrive_drop_noComplete_3:
    b64: mbarrier_arrive_drop_noComplete; release: mbarrier_arrive_drop_noComplete_release; shared: mbarrier_arrive_drop_noComplete_2; shared__cta: mbarrier_arrive_drop_noComplete_2
class mbarrier_arrive_drop_2:
    b64: mbarrier_arrive_drop
class mbarrier_arrive_drop_3:
    def __call__(self, address: In, count: In = ..., /, *, guard: Guard = ...) -> None:
        "Arrive at an mbarrier of any block of the cluster, and decrease the expected arrivals of all later phases. Requires sm_90."
class mbarrier_arrive_drop_4:
    b64: mbarrier_arrive_drop_3
class mbarrier_arrive_drop_5:
    b64: mbarrier_arrive_drop; shared: mbarrier_arrive_drop_2; shared__cluster: mbarrier_arrive_drop_4; shared__cta: mbarrier_arrive_drop_2
class mbarrier_arrive_drop_6:
    cluster: mbarrier_arrive_drop_5; cta: mbarrier_arrive_drop_5
class mbarrier_arrive_drop_7:
    b64: mbarrier_arrive_drop; expect_tx: mbarrier_arrive_drop_expect_tx_7; noComplete: mbarrier_arrive_drop_noComplete_3; relaxed: mbarrier_arrive_drop_6; release: mbarrier_arrive_drop_6; shared: mbarrier_arrive_drop_2; shared__cluster: mbarrier_arrive_drop_4; shared__cta: mbarrier_arrive_drop_2
class mbarrier_complete_tx:
    def __call__(self, address: In, tx_count: In, /, *, guard: Guard = ...) -> None:
        "Simulate completion of `tx_count` bytes in the current phase of an mbarrier; nothing is copied. Requires sm_90."
class mbarrier_complete_tx_2:
    b64: mbarrier_complete_tx
class mbarrier_complete_tx_relaxed:
    b64: mbarrier_complete_tx; shared: mbarrier_complete_tx_2; shared__cluster: mbarrier_complete_tx_2; shared__cta: mbarrier_complete_tx_2
class mbarrier_complete_tx_relaxed_2:
    cluster: mbarrier_complete_tx_relaxed; cta: mbarrier_complete_tx_relaxed
class mbarrier_complete_tx_3:
    b64: mbarrier_complete_tx; relaxed: mbarrier_complete_tx_relaxed_2; shared: mbarrier_complete_tx_2; shared__cluster: mbarrier_complete_tx_2; shared__cta: mbarrier_complete_tx_2
class mbarrier_expect_tx:
    def __call__(self, address: In, tx_count: In, /, *, guard: Guard = ...) -> None:
        "Expect `tx_count` more bytes in the current phase of an mbarrier. Requires sm_90."
class mbarrier_expect_tx_2:
    b64: mbarrier_expect_tx
class mbarrier_expect_tx_relaxed:
    b64: mbarrier_expect_tx; shared: mbarrier_expect_tx_2; shared__cluster: mbarrier_expect_tx_2; shared__cta: mbarrier_expect_tx_2
class mbarrier_expect_tx_relaxed_2:
    cluster: mbarrier_expect_tx_relaxed; cta: mbarrier_expect_tx_relaxed
class mbarrier_expect_tx_3:
    b64: mbarrier_expect_tx; relaxed: mbarrier_expect_tx_relaxed_2; shared: mbarrier_expect_tx_2; shared__cluster: mbarrier_expect_tx_2; shared__cta: mbarrier_expect_tx_2
class mbarrier_init:
    def __call__(self, address: In, count: In, /, *, guard: Guard = ...) -> None:
        "Initialise an mbarrier object whose phases each expect `count` arrivals."
class mbarrier_init_2:
    b64: mbarrier_init
class mbarrier_init_3:
    b64: mbarrier_init; shared: mbarrier_init_2; shared__cta: mbarrier_init_2
class mbarrier_inval:
    def __call__(self, address: In, /, *, guard: Guard = ...) -> None:
        "Invalidate an mbarrier object, so that its memory can be reused."
class mbarrier_inval_2:
    b64: mbarrier_inval
class mbarrier_inval_3:
    b64: mbarrier_inval; shared: mbarrier_inval_2; shared__cta: mbarrier_inval_2
class mbarrier_pending_count_b64:
    def __call__(self, state: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Query the pending arrivals of an mbarrier from a state."
class mbarrier_pending_count:
    b64: mbarrier_pending_count_b64
class mbarrier_test_wait:
    def __call__(self, address: In, state: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Test without blocking whether the phase of a state, or the preceding phase of a parity, has completed."
class mbarrier_test_wait_2:
    b64: mbarrier_test_wait
class mbarrier_test_wait_3:
    b64: mbarrier_test_wait; shared: mbarrier_test_wait_2; shared__cta: mbarrier_test_wait_2
class mbarrier_test_wait_4:
    cluster: mbarrier_test_wait_3; cta: mbarrier_test_wait_3
class mbarrier_test_wait_parity:
    def __call__(self, address: In, parity: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Test without blocking whether the phase of a state, or the preceding phase of a parity, has completed."
class mbarrier_test_wait_parity_2:
    b64: mbarrier_test_wait_parity
class mbarrier_test_wait_parity_3:
    b64: mbarrier_test_wait_parity; shared: mbarrier_test_wait_parity_2; shared__cta: mbarrier_test_wait_parity_2
class mbarrier_test_wait_parity_4:
    cluster: mbarrier_test_wait_parity_3; cta: mbarrier_test_wait_parity_3
class mbarrier_test_wait_parity_5:
    acquire: mbarrier_test_wait_parity_4; b64: mbarrier_test_wait_parity; relaxed: mbarrier_test_wait_parity_4; shared: mbarrier_test_wait_parity_2; shared__cta: mbarrier_test_wait_parity_2
class mbarrier_test_wait_5:
    acquire: mbarrier_test_wait_4; b64: mbarrier_test_wait; parity: mbarrier_test_wait_parity_5; relaxed: mbarrier_test_wait_4; shared: mbarrier_test_wait_2; shared__cta: mbarrier_test_wait_2
class mbarrier_try_wait:
    def __call__(self, address: In, state: In, hint: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Wait for a limited time for the phase of a state, or of a parity, and test whether it has completed. Requires sm_90."
class mbarrier_try_wait_2:
    b64: mbarrier_try_wait
class mbarrier_try_wait_3:
    b64: mbarrier_try_wait; shared: mbarrier_try_wait_2; shared__cta: mbarrier_try_wait_2
class mbarrier_try_wait_4:
    cluster: mbarrier_try_wait_3; cta: mbarrier_try_wait_3
class mbarrier_try_wait_parity:
    def __call__(self, address: In, parity: In, hint: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Wait for a limited time for the phase of a state, or of a parity, and test whether it has completed. Requires sm_90."
class mbarrier_try_wait_parity_2:
    b64: mbarrier_try_wait_parity
class mbarrier_try_wait_parity_3:
    b64: mbarrier_try_wait_parity; shared: mbarrier_try_wait_parity_2; shared__cta: mbarrier_try_wait_parity_2
class mbarrier_try_wait_parity_4:
    cluster: mbarrier_try_wait_parity_3; cta: mbarrier_try_wait_parity_3
class mbarrier_try_wait_parity_5:
    acquire: mbarrier_try_wait_parity_4; b64: mbarrier_try_wait_parity; relaxed: mbarrier_try_wait_parity_4; shared: mbarrier_try_wait_parity_2; shared__cta: mbarrier_try_wait_parity_2
class mbarrier_try_wait_5:
    acquire: mbarrier_try_wait_4; b64: mbarrier_try_wait; parity: mbarrier_try_wait_parity_5; relaxed: mbarrier_try_wait_4; shared: mbarrier_try_wait_2; shared__cta: mbarrier_try_wait_2
class mbarrier:
    arrive: mbarrier_arrive_7; arrive_drop: mbarrier_arrive_drop_7; complete_tx: mbarrier_complete_tx_3; expect_tx: mbarrier_expect_tx_3; init: mbarrier_init_3; inval: mbarrier_inval_3; pending_count: mbarrier_pending_count; test_wait: mbarrier_test_wait_5; try_wait: mbarrier_try_wait_5
class membar:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Memory barrier: the older spelling of fence."
class membar_proxy:
    alias: membar
class membar_2:
    cta: membar; gl: membar; proxy: membar_proxy; sys: membar
class min:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the minimum of a, b (and c); .xorsign.abs: the minimum of |a|, |b|, with the XOR of their signs. Requires sm_100."
class min_2:
    f32: min
class min_3:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the minimum of a and b; .xorsign.abs: the minimum of |a|, |b|, with the XOR of their signs."
class min_4:
    def __call__(self, a: In, b: In, c: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the minimum of a, b (and c); .xorsign.abs: the minimum of |a|, |b|, with the XOR of their signs."
class min_5:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the minimum of a, b (and c); .xorsign.abs: the minimum of |a|, |b|, with the XOR of their signs."
class min_6:
    bf16: min_3; bf16x2: min_3; f16: min_3; f16x2: min_3; f32: min_5
class min_7:
    abs: min_6
class min_NaN:
    abs: min_2; bf16: min_3; bf16x2: min_3; f16: min_3; f16x2: min_3; f32: min_4; xorsign: min_7
class min_ftz:
    f16: min_3; f16x2: min_3; f32: min_5
class min_ftz_2:
    abs: min_ftz
class min_ftz_NaN:
    abs: min_2; f16: min_3; f16x2: min_3; f32: min_4; xorsign: min_ftz_2
class min_ftz_3:
    NaN: min_ftz_NaN; abs: min_2; f16: min_3; f16x2: min_3; f32: min_4; xorsign: min_ftz_2
class min_8:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the minimum of packed 16-bit halves; .relu clamps to at least 0. Requires sm_90."
class min_9:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the minimum of a and b; .relu clamps to at least 0."
class min_relu:
    s16x2: min_8; s32: min_9
class min_10:
    NaN: min_NaN; abs: min_2; bf16: min_3; bf16x2: min_3; f16: min_3; f16x2: min_3; f32: min_4; f64: min_5; ftz: min_ftz_3; relu: min_relu; s16: min_9; s16x2: min_8; s32: min_9; s64: min_9; u16: min_9; u16x2: min_8; u32: min_9; u64: min_9; xorsign: min_7
class mma:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices with sparse A: d = a * b + c; `metadata` give the positions of A's elements."
class mma_2:
    s32: mma
class mma_3:
    s4: mma_2; u4: mma_2
class mma_4:
    s4: mma_3; u4: mma_3
class mma_5:
    s32: mma_4
class mma_sp_sync_aligned_m16n8k128_row_col:
    s32: mma_4; satfinite: mma_5
class mma_sp_sync_aligned_m16n8k128_row:
    col: mma_sp_sync_aligned_m16n8k128_row_col
class mma_sp_sync_aligned_m16n8k128:
    row: mma_sp_sync_aligned_m16n8k128_row
class mma_6:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Multiply-accumulate matrices with sparse A: d = a * b + c; `metadata` give the positions of A's elements."
class mma_7:
    f16: mma_6
class mma_8:
    f16: mma_7
class mma_9:
    f16: mma_8
class mma_10:
    f32: mma
class mma_11:
    bf16: mma_10
class mma_12:
    f16: mma_10
class mma_13:
    tf32: mma_10
class mma_14:
    bf16: mma_11; f16: mma_12; tf32: mma_13
class mma_15:
    f16: mma_9; f32: mma_14
class mma_16:
    col: mma_15
class mma_17:
    row: mma_16
class mma_18:
    bf16: mma_11; f16: mma_12
class mma_19:
    s8: mma_2; u8: mma_2
class mma_20:
    s8: mma_19; u8: mma_19
class mma_21:
    s32: mma_20
class mma_22:
    f16: mma_9; f32: mma_18; s32: mma_20; satfinite: mma_21
class mma_23:
    col: mma_22
class mma_24:
    row: mma_23
class mma_25:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices with sparse A: d = a * b + c; `metadata` give the positions of A's elements. Requires sm_89."
class mma_26:
    f32: mma_25
class mma_27:
    e4m3: mma_26; e5m2: mma_26
class mma_28:
    e4m3: mma_27; e5m2: mma_27
class mma_29:
    s4: mma_3; s8: mma_19; u4: mma_3; u8: mma_19
class mma_30:
    s32: mma_29
class mma_sp_sync_aligned_m16n8k64_row_col:
    f32: mma_28; s32: mma_29; satfinite: mma_30
class mma_sp_sync_aligned_m16n8k64_row:
    col: mma_sp_sync_aligned_m16n8k64_row_col
class mma_sp_sync_aligned_m16n8k64:
    row: mma_sp_sync_aligned_m16n8k64_row
class mma_31:
    tf32: mma_13
class mma_32:
    f32: mma_31
class mma_33:
    col: mma_32
class mma_34:
    row: mma_33
class mma_sp_sync_aligned:
    m16n8k128: mma_sp_sync_aligned_m16n8k128; m16n8k16: mma_17; m16n8k32: mma_24; m16n8k64: mma_sp_sync_aligned_m16n8k64; m16n8k8: mma_34
class mma_sp_sync:
    aligned: mma_sp_sync_aligned
class mma_sp:
    sync: mma_sp_sync
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, scale_a: In, part_a: In, scale_b: In, part_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices of 4-, 6- and 8-bit floats with block scales along k: d = a * b + c. Requires sm_120a or sm_121a."
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_2:
    ue8m0: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_3:
    f32: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_2
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_4:
    e2m1: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_3
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_5:
    e2m1: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_4
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_6:
    f32: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_5
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4_block_scale:
    f32: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_5; scale_vec__2X: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_6
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4:
    block_scale: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4_block_scale
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1_f32:
    ue4m3: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1:
    f32: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1_f32
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1:
    e2m1: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32:
    e2m1: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X:
    f32: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4_block_scale:
    scale_vec__2X: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_6; scale_vec__4X: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4:
    block_scale: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4_block_scale
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_7:
    kind__mxf4: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4; kind__mxf4nvf4: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_kind_mxf4nvf4; s32: mma_4; satfinite: mma_5
class mma_sp_ordered_metadata_sync_aligned_m16n8k128_row:
    col: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row_col_7
class mma_sp_ordered_metadata_sync_aligned_m16n8k128:
    row: mma_sp_ordered_metadata_sync_aligned_m16n8k128_row
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Multiply-accumulate matrices of 4-, 6- and 8-bit floats, one per byte: d = a * b + c. Requires sm_100f or sm_110f or sm_120f."
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_2:
    f16: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_3:
    e2m1: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_2; e2m3: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_2; e3m2: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_2; e4m3: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_2; e5m2: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_2
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_4:
    e2m1: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_3; e2m3: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_3; e3m2: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_3; e4m3: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_3; e5m2: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_3
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices of 4-, 6- and 8-bit floats, one per byte: d = a * b + c. Requires sm_100f or sm_110f or sm_120f."
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_2:
    f32: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_3:
    e2m1: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_2; e2m3: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_2; e3m2: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_2; e4m3: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_2; e5m2: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_2
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_4:
    e2m1: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_3; e2m3: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_3; e3m2: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_3; e4m3: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_3; e5m2: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_3
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4:
    f16: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f16_4; f32: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4_f32_4
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, scale_a: In, part_a: In, scale_b: In, part_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices of 4-, 6- and 8-bit floats with block scales along k: d = a * b + c. Requires sm_120f."
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_2:
    ue8m0: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_3:
    f32: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_2
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_4:
    e2m1: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_3; e2m3: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_3; e3m2: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_3; e4m3: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_3; e5m2: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_3
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_5:
    e2m1: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_4; e2m3: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_4; e3m2: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_4; e4m3: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_4; e5m2: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_4
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_scale_vec_1X:
    f32: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_5
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_6:
    f32: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_5; scale_vec__1X: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_scale_vec_1X
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4:
    block_scale: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4_block_scale_6
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col:
    f32: mma_28; kind__f8f6f4: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_f8f6f4; kind__mxf8f6f4: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col_kind_mxf8f6f4; s32: mma_29; satfinite: mma_30
class mma_sp_ordered_metadata_sync_aligned_m16n8k64_row:
    col: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row_col
class mma_sp_ordered_metadata_sync_aligned_m16n8k64:
    row: mma_sp_ordered_metadata_sync_aligned_m16n8k64_row
class mma_sp_ordered_metadata_sync_aligned:
    m16n8k128: mma_sp_ordered_metadata_sync_aligned_m16n8k128; m16n8k16: mma_17; m16n8k32: mma_24; m16n8k64: mma_sp_ordered_metadata_sync_aligned_m16n8k64; m16n8k8: mma_34
class mma_sp_ordered_metadata_sync:
    aligned: mma_sp_ordered_metadata_sync_aligned
class mma_sp_ordered_metadata:
    sync: mma_sp_ordered_metadata_sync
class mma_sync_aligned:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices held in the registers of a warp: d = a * b + c."
class mma_sync_aligned_2:
    s32: mma_sync_aligned
class mma_sync_aligned_3:
    b1: mma_sync_aligned_2
class mma_sync_aligned_4:
    b1: mma_sync_aligned_3
class mma_sync_aligned_5:
    s32: mma_sync_aligned_4
class mma_sync_aligned_6:
    popc: mma_sync_aligned_5
class mma_sync_aligned_7:
    and_: mma_sync_aligned_6; xor: mma_sync_aligned_6
class mma_sync_aligned_8:
    col: mma_sync_aligned_7
class mma_sync_aligned_9:
    row: mma_sync_aligned_8
class mma_sync_aligned_10:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Multiply-accumulate matrices held in the registers of a warp: d = a * b + c. Requires sm_89."
class mma_sync_aligned_11:
    f16: mma_sync_aligned_10
class mma_sync_aligned_12:
    e4m3: mma_sync_aligned_11; e5m2: mma_sync_aligned_11
class mma_sync_aligned_13:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Multiply-accumulate matrices held in the registers of a warp: d = a * b + c."
class mma_sync_aligned_14:
    f16: mma_sync_aligned_13
class mma_sync_aligned_15:
    f16: mma_sync_aligned_14
class mma_sync_aligned_m16n8k16_row_col_f16:
    e4m3: mma_sync_aligned_12; e5m2: mma_sync_aligned_12; f16: mma_sync_aligned_15
class mma_sync_aligned_16:
    f32: mma_sync_aligned
class mma_sync_aligned_17:
    bf16: mma_sync_aligned_16
class mma_sync_aligned_18:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices held in the registers of a warp: d = a * b + c. Requires sm_89."
class mma_sync_aligned_19:
    f32: mma_sync_aligned_18
class mma_sync_aligned_20:
    e4m3: mma_sync_aligned_19; e5m2: mma_sync_aligned_19
class mma_sync_aligned_21:
    f16: mma_sync_aligned_16
class mma_sync_aligned_m16n8k16_row_col_f32:
    bf16: mma_sync_aligned_17; e4m3: mma_sync_aligned_20; e5m2: mma_sync_aligned_20; f16: mma_sync_aligned_21
class mma_sync_aligned_22:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices held in the registers of a warp: d = a * b + c. Requires sm_90."
class mma_sync_aligned_23:
    f64: mma_sync_aligned_22
class mma_sync_aligned_24:
    f64: mma_sync_aligned_23
class mma_sync_aligned_25:
    f64: mma_sync_aligned_24
class mma_sync_aligned_26:
    f64: mma_sync_aligned_25
class mma_sync_aligned_27:
    s8: mma_sync_aligned_2; u8: mma_sync_aligned_2
class mma_sync_aligned_m16n8k16_row_col:
    s8: mma_sync_aligned_27; u8: mma_sync_aligned_27
class mma_sync_aligned_m16n8k16_row_col_satfinite:
    s32: mma_sync_aligned_m16n8k16_row_col
class mma_sync_aligned_m16n8k16_row_col_2:
    f16: mma_sync_aligned_m16n8k16_row_col_f16; f32: mma_sync_aligned_m16n8k16_row_col_f32; f64: mma_sync_aligned_25; rm: mma_sync_aligned_26; rn: mma_sync_aligned_26; rp: mma_sync_aligned_26; rz: mma_sync_aligned_26; s32: mma_sync_aligned_m16n8k16_row_col; satfinite: mma_sync_aligned_m16n8k16_row_col_satfinite
class mma_sync_aligned_m16n8k16_row:
    col: mma_sync_aligned_m16n8k16_row_col_2
class mma_sync_aligned_m16n8k16:
    row: mma_sync_aligned_m16n8k16_row
class mma_sync_aligned_m16n8k32_row_col_f16:
    e4m3: mma_sync_aligned_12; e5m2: mma_sync_aligned_12
class mma_sync_aligned_m16n8k32_row_col_f32:
    e4m3: mma_sync_aligned_20; e5m2: mma_sync_aligned_20
class mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Multiply-accumulate matrices of 4-, 6- and 8-bit floats, one per byte: d = a * b + c. Requires sm_100f or sm_110f or sm_120f."
class mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_2:
    f16: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16
class mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_3:
    e2m1: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_2; e2m3: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_2; e3m2: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_2; e4m3: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_2; e5m2: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_2
class mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_4:
    e2m1: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_3; e2m3: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_3; e3m2: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_3; e4m3: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_3; e5m2: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_3
class mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices of 4-, 6- and 8-bit floats, one per byte: d = a * b + c. Requires sm_100f or sm_110f or sm_120f."
class mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_2:
    f32: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32
class mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_3:
    e2m1: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_2; e2m3: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_2; e3m2: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_2; e4m3: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_2; e5m2: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_2
class mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_4:
    e2m1: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_3; e2m3: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_3; e3m2: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_3; e4m3: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_3; e5m2: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_3
class mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4:
    f16: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f16_4; f32: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4_f32_4
class mma_sync_aligned_28:
    def __call__(self, a: In, b: In, c: In, scale_a: In, part_a: In, scale_b: In, part_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices of 4-, 6- and 8-bit floats with block scales along k: d = a * b + c. Requires sm_120f."
class mma_sync_aligned_29:
    ue8m0: mma_sync_aligned_28
class mma_sync_aligned_30:
    f32: mma_sync_aligned_29
class mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale:
    e2m1: mma_sync_aligned_30; e2m3: mma_sync_aligned_30; e3m2: mma_sync_aligned_30; e4m3: mma_sync_aligned_30; e5m2: mma_sync_aligned_30
class mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale_2:
    e2m1: mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale; e2m3: mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale; e3m2: mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale; e4m3: mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale; e5m2: mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale
class mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale_scale_vec_1X:
    f32: mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale_2
class mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale_3:
    f32: mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale_2; scale_vec__1X: mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale_scale_vec_1X
class mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4:
    block_scale: mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4_block_scale_3
class mma_sync_aligned_31:
    s4: mma_sync_aligned_2; u4: mma_sync_aligned_2
class mma_sync_aligned_m16n8k32_row_col:
    s4: mma_sync_aligned_31; s8: mma_sync_aligned_27; u4: mma_sync_aligned_31; u8: mma_sync_aligned_27
class mma_sync_aligned_m16n8k32_row_col_satfinite:
    s32: mma_sync_aligned_m16n8k32_row_col
class mma_sync_aligned_m16n8k32_row_col_2:
    f16: mma_sync_aligned_m16n8k32_row_col_f16; f32: mma_sync_aligned_m16n8k32_row_col_f32; kind__f8f6f4: mma_sync_aligned_m16n8k32_row_col_kind_f8f6f4; kind__mxf8f6f4: mma_sync_aligned_m16n8k32_row_col_kind_mxf8f6f4; s32: mma_sync_aligned_m16n8k32_row_col; satfinite: mma_sync_aligned_m16n8k32_row_col_satfinite
class mma_sync_aligned_m16n8k32_row:
    col: mma_sync_aligned_m16n8k32_row_col_2
class mma_sync_aligned_m16n8k32:
    row: mma_sync_aligned_m16n8k32_row
class mma_sync_aligned_32:
    tf32: mma_sync_aligned_16
class mma_sync_aligned_m16n8k4_row_col_f32:
    tf32: mma_sync_aligned_32
class mma_sync_aligned_m16n8k4_row_col:
    f32: mma_sync_aligned_m16n8k4_row_col_f32; f64: mma_sync_aligned_25; rm: mma_sync_aligned_26; rn: mma_sync_aligned_26; rp: mma_sync_aligned_26; rz: mma_sync_aligned_26
class mma_sync_aligned_m16n8k4_row:
    col: mma_sync_aligned_m16n8k4_row_col
class mma_sync_aligned_m16n8k4:
    row: mma_sync_aligned_m16n8k4_row
class mma_sync_aligned_m16n8k64_row_col:
    e2m1: mma_sync_aligned_30
class mma_sync_aligned_m16n8k64_row_col_2:
    e2m1: mma_sync_aligned_m16n8k64_row_col
class mma_sync_aligned_m16n8k64_row_col_3:
    f32: mma_sync_aligned_m16n8k64_row_col_2
class mma_sync_aligned_m16n8k64_row_col_kind_mxf4_block_scale:
    f32: mma_sync_aligned_m16n8k64_row_col_2; scale_vec__2X: mma_sync_aligned_m16n8k64_row_col_3
class mma_sync_aligned_m16n8k64_row_col_kind_mxf4:
    block_scale: mma_sync_aligned_m16n8k64_row_col_kind_mxf4_block_scale
class mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1_f32:
    ue4m3: mma_sync_aligned_28
class mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1:
    f32: mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1_f32
class mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1:
    e2m1: mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1
class mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32:
    e2m1: mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1
class mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X:
    f32: mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32
class mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale:
    scale_vec__2X: mma_sync_aligned_m16n8k64_row_col_3; scale_vec__4X: mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X
class mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4:
    block_scale: mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4_block_scale
class mma_sync_aligned_m16n8k64_row_col_4:
    s4: mma_sync_aligned_31; u4: mma_sync_aligned_31
class mma_sync_aligned_m16n8k64_row_col_satfinite:
    s32: mma_sync_aligned_m16n8k64_row_col_4
class mma_sync_aligned_m16n8k64_row_col_5:
    kind__mxf4: mma_sync_aligned_m16n8k64_row_col_kind_mxf4; kind__mxf4nvf4: mma_sync_aligned_m16n8k64_row_col_kind_mxf4nvf4; s32: mma_sync_aligned_m16n8k64_row_col_4; satfinite: mma_sync_aligned_m16n8k64_row_col_satfinite
class mma_sync_aligned_m16n8k64_row:
    col: mma_sync_aligned_m16n8k64_row_col_5
class mma_sync_aligned_m16n8k64:
    row: mma_sync_aligned_m16n8k64_row
class mma_sync_aligned_m16n8k8_row_col_f16:
    f16: mma_sync_aligned_15
class mma_sync_aligned_m16n8k8_row_col_f32:
    bf16: mma_sync_aligned_17; f16: mma_sync_aligned_21; tf32: mma_sync_aligned_32
class mma_sync_aligned_m16n8k8_row_col:
    f16: mma_sync_aligned_m16n8k8_row_col_f16; f32: mma_sync_aligned_m16n8k8_row_col_f32; f64: mma_sync_aligned_25; rm: mma_sync_aligned_26; rn: mma_sync_aligned_26; rp: mma_sync_aligned_26; rz: mma_sync_aligned_26
class mma_sync_aligned_m16n8k8_row:
    col: mma_sync_aligned_m16n8k8_row_col
class mma_sync_aligned_m16n8k8:
    row: mma_sync_aligned_m16n8k8_row
class mma_sync_aligned_33:
    s32: mma_sync_aligned_13
class mma_sync_aligned_m8n8k128_row_col:
    b1: mma_sync_aligned_33
class mma_sync_aligned_m8n8k128_row_col_2:
    b1: mma_sync_aligned_m8n8k128_row_col
class mma_sync_aligned_m8n8k128_row_col_3:
    s32: mma_sync_aligned_m8n8k128_row_col_2
class mma_sync_aligned_m8n8k128_row_col_4:
    popc: mma_sync_aligned_m8n8k128_row_col_3
class mma_sync_aligned_m8n8k128_row_col_5:
    and_: mma_sync_aligned_m8n8k128_row_col_4; xor: mma_sync_aligned_m8n8k128_row_col_4
class mma_sync_aligned_m8n8k128_row:
    col: mma_sync_aligned_m8n8k128_row_col_5
class mma_sync_aligned_m8n8k128:
    row: mma_sync_aligned_m8n8k128_row
class mma_sync_aligned_m8n8k16_row_col:
    s8: mma_sync_aligned_33; u8: mma_sync_aligned_33
class mma_sync_aligned_m8n8k16_row_col_2:
    s8: mma_sync_aligned_m8n8k16_row_col; u8: mma_sync_aligned_m8n8k16_row_col
class mma_sync_aligned_m8n8k16_row_col_satfinite:
    s32: mma_sync_aligned_m8n8k16_row_col_2
class mma_sync_aligned_m8n8k16_row_col_3:
    s32: mma_sync_aligned_m8n8k16_row_col_2; satfinite: mma_sync_aligned_m8n8k16_row_col_satfinite
class mma_sync_aligned_m8n8k16_row:
    col: mma_sync_aligned_m8n8k16_row_col_3
class mma_sync_aligned_m8n8k16:
    row: mma_sync_aligned_m8n8k16_row
class mma_sync_aligned_m8n8k32_row_col:
    s4: mma_sync_aligned_33; u4: mma_sync_aligned_33
class mma_sync_aligned_m8n8k32_row_col_2:
    s4: mma_sync_aligned_m8n8k32_row_col; u4: mma_sync_aligned_m8n8k32_row_col
class mma_sync_aligned_m8n8k32_row_col_satfinite:
    s32: mma_sync_aligned_m8n8k32_row_col_2
class mma_sync_aligned_m8n8k32_row_col_3:
    s32: mma_sync_aligned_m8n8k32_row_col_2; satfinite: mma_sync_aligned_m8n8k32_row_col_satfinite
class mma_sync_aligned_m8n8k32_row:
    col: mma_sync_aligned_m8n8k32_row_col_3
class mma_sync_aligned_m8n8k32:
    row: mma_sync_aligned_m8n8k32_row
class mma_sync_aligned_m8n8k4_row_col:
    f64: mma_sync_aligned_13
class mma_sync_aligned_m8n8k4_row_col_2:
    f64: mma_sync_aligned_m8n8k4_row_col
class mma_sync_aligned_m8n8k4_row_col_3:
    f64: mma_sync_aligned_m8n8k4_row_col_2
class mma_sync_aligned_m8n8k4_row_col_4:
    f64: mma_sync_aligned_m8n8k4_row_col_3
class mma_sync_aligned_m8n8k4_row_col_5:
    f64: mma_sync_aligned_m8n8k4_row_col_3; rm: mma_sync_aligned_m8n8k4_row_col_4; rn: mma_sync_aligned_m8n8k4_row_col_4; rp: mma_sync_aligned_m8n8k4_row_col_4; rz: mma_sync_aligned_m8n8k4_row_col_4
class mma_sync_aligned_m8n8k4_row:
    col: mma_sync_aligned_m8n8k4_row_col_5
class mma_sync_aligned_m8n8k4:
    row: mma_sync_aligned_m8n8k4_row
class mma_sync_aligned_34:
    m16n8k128: mma_sync_aligned_9; m16n8k16: mma_sync_aligned_m16n8k16; m16n8k256: mma_sync_aligned_9; m16n8k32: mma_sync_aligned_m16n8k32; m16n8k4: mma_sync_aligned_m16n8k4; m16n8k64: mma_sync_aligned_m16n8k64; m16n8k8: mma_sync_aligned_m16n8k8; m8n8k128: mma_sync_aligned_m8n8k128; m8n8k16: mma_sync_aligned_m8n8k16; m8n8k32: mma_sync_aligned_m8n8k32; m8n8k4: mma_sync_aligned_m8n8k4
class mma_sync:
    aligned: mma_sync_aligned_34
class mma_35:
    sp: mma_sp; sp__ordered_metadata: mma_sp_ordered_metadata; sync: mma_sync
class mov:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        "Move a register, constant, special register, or the address of a variable or function: d = a; or Pack registers into one, the first in the lowest bits: d = {a, …}; or Unpack a register into several, the lowest bits first: {d, …} = a."
class mov_2:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Move a register, constant, special register, or the address of a variable or function: d = a."
class mov_pred:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a, a predicate that may be negated."
class mov_v2:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Move a register, constant, special register, or the address of a variable or function: d = a."
class mov_v2_2:
    b16: mov_v2; b32: mov_v2; b64: mov_v2; f32: mov_v2; f64: mov_v2; s16: mov_v2; s32: mov_v2; s64: mov_v2; u16: mov_v2; u32: mov_v2; u64: mov_v2
class mov_v4:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Move a register, constant, special register, or the address of a variable or function: d = a."
class mov_v4_2:
    b16: mov_v4; b32: mov_v4; f32: mov_v4; s16: mov_v4; s32: mov_v4; u16: mov_v4; u32: mov_v4
class mov_3:
    b128: mov; b16: mov; b32: mov; b64: mov; f32: mov_2; f64: mov_2; pred: mov_pred; s16: mov_2; s32: mov_2; s64: mov_2; u16: mov_2; u32: mov_2; u64: mov_2; v2: mov_v2_2; v4: mov_v4_2
class movmatrix_sync_aligned_m8n8_trans_b16:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Transpose an 8x8 matrix of 16-bit elements across the registers of a warp."
class movmatrix_sync_aligned_m8n8_trans:
    b16: movmatrix_sync_aligned_m8n8_trans_b16
class movmatrix_sync_aligned_m8n8:
    trans: movmatrix_sync_aligned_m8n8_trans
class movmatrix_sync_aligned:
    m8n8: movmatrix_sync_aligned_m8n8
class movmatrix_sync:
    aligned: movmatrix_sync_aligned
class movmatrix:
    sync: movmatrix_sync
class mul:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply two half-precision values: d = a * b. Requires sm_90."
class mul_2:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply two half-precision values: d = a * b."
class mul_3:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply two values: d = a * b."
class mul_4:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply two values: d = a * b. Requires sm_100."
class mul_5:
    f16: mul_2; f16x2: mul_2; f32: mul_3
class mul_6:
    f16: mul_2; f16x2: mul_2; f32: mul_3; f32x2: mul_4; sat: mul_5
class mul_7:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply two values: d = the low or high half of a * b."
class mul_8:
    s16: mul_7; s32: mul_7; s64: mul_7; u16: mul_7; u32: mul_7; u64: mul_7
class mul_9:
    f32: mul_3
class mul_10:
    f32: mul_3; f32x2: mul_4; sat: mul_9
class mul_11:
    f32: mul_3; f32x2: mul_4; f64: mul_3; ftz: mul_10; sat: mul_9
class mul_rn:
    bf16: mul; bf16x2: mul; f16: mul_2; f16x2: mul_2; f32: mul_3; f32x2: mul_4; f64: mul_3; ftz: mul_6; sat: mul_5
class mul_wide:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply two values into a product of twice their width: d = a * b."
class mul_wide_2:
    s16: mul_wide; s32: mul_wide; u16: mul_wide; u32: mul_wide
class mul_12:
    bf16: mul; bf16x2: mul; f16: mul_2; f16x2: mul_2; f32: mul_3; f32x2: mul_4; f64: mul_3; ftz: mul_6; hi: mul_8; lo: mul_8; rm: mul_11; rn: mul_rn; rp: mul_11; rz: mul_11; sat: mul_5; wide: mul_wide_2
class mul24:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply the low 24 bits of a and b: d = the low or high 32 bits of the 48-bit product."
class mul24_2:
    s32: mul24; u32: mul24
class mul24_3:
    hi: mul24_2; lo: mul24_2
class multimem_ld_reduce:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Load from all GPUs and reduce: d = the values at a multimem address, combined by an operation. Requires sm_90."
class multimem_ld_reduce_2:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Load from all GPUs and reduce: d = the values at a multimem address, combined by an operation. Requires sm_90."
class multimem_ld_reduce_3:
    e4m3x2: multimem_ld_reduce_2; e4m3x4: multimem_ld_reduce_2; e5m2x2: multimem_ld_reduce_2; e5m2x4: multimem_ld_reduce_2
class multimem_ld_reduce_4:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Load from all GPUs and reduce: d = the values at a multimem address, combined by an operation. Requires sm_90."
class multimem_ld_reduce_5:
    e4m3x2: multimem_ld_reduce_4; e4m3x4: multimem_ld_reduce_4; e5m2x2: multimem_ld_reduce_4; e5m2x4: multimem_ld_reduce_4
class multimem_ld_reduce_6:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Load from all GPUs and reduce: d = the values at a multimem address, combined by an operation. Requires sm_90."
class multimem_ld_reduce_7:
    e4m3x2: multimem_ld_reduce_6; e5m2x2: multimem_ld_reduce_6
class multimem_ld_reduce_8:
    e4m3x4: multimem_ld_reduce; e5m2x4: multimem_ld_reduce; v2: multimem_ld_reduce_3; v4: multimem_ld_reduce_5; v8: multimem_ld_reduce_7
class multimem_ld_reduce_9:
    bf16: multimem_ld_reduce_2; bf16x2: multimem_ld_reduce_2; f16: multimem_ld_reduce_2; f16x2: multimem_ld_reduce_2
class multimem_ld_reduce_10:
    bf16: multimem_ld_reduce_4; bf16x2: multimem_ld_reduce_4; f16: multimem_ld_reduce_4; f16x2: multimem_ld_reduce_4
class multimem_ld_reduce_11:
    bf16: multimem_ld_reduce_6; f16: multimem_ld_reduce_6
class multimem_ld_reduce_12:
    bf16x2: multimem_ld_reduce; f16x2: multimem_ld_reduce; v2: multimem_ld_reduce_9; v4: multimem_ld_reduce_10; v8: multimem_ld_reduce_11
class multimem_ld_reduce_13:
    bf16: multimem_ld_reduce_2; bf16x2: multimem_ld_reduce_2; e4m3x2: multimem_ld_reduce_2; e4m3x4: multimem_ld_reduce_2; e5m2x2: multimem_ld_reduce_2; e5m2x4: multimem_ld_reduce_2; f16: multimem_ld_reduce_2; f16x2: multimem_ld_reduce_2; f32: multimem_ld_reduce_2
class multimem_ld_reduce_14:
    bf16: multimem_ld_reduce_4; bf16x2: multimem_ld_reduce_4; e4m3x2: multimem_ld_reduce_4; e4m3x4: multimem_ld_reduce_4; e5m2x2: multimem_ld_reduce_4; e5m2x4: multimem_ld_reduce_4; f16: multimem_ld_reduce_4; f16x2: multimem_ld_reduce_4; f32: multimem_ld_reduce_4
class multimem_ld_reduce_15:
    bf16: multimem_ld_reduce_6; e4m3x2: multimem_ld_reduce_6; e5m2x2: multimem_ld_reduce_6; f16: multimem_ld_reduce_6
class multimem_ld_reduce_16:
    acc__f16: multimem_ld_reduce_8; acc__f32: multimem_ld_reduce_12; bf16x2: multimem_ld_reduce; e4m3x4: multimem_ld_reduce; e5m2x4: multimem_ld_reduce; f16x2: multimem_ld_reduce; f32: multimem_ld_reduce; f64: multimem_ld_reduce; s32: multimem_ld_reduce; u32: multimem_ld_reduce; u64: multimem_ld_reduce; v2: multimem_ld_reduce_13; v4: multimem_ld_reduce_14; v8: multimem_ld_reduce_15
class multimem_ld_reduce_17:
    b32: multimem_ld_reduce; b64: multimem_ld_reduce
class multimem_ld_reduce_18:
    bf16: multimem_ld_reduce_2; bf16x2: multimem_ld_reduce_2; e4m3x2: multimem_ld_reduce_2; e4m3x4: multimem_ld_reduce_2; e5m2x2: multimem_ld_reduce_2; e5m2x4: multimem_ld_reduce_2; f16: multimem_ld_reduce_2; f16x2: multimem_ld_reduce_2
class multimem_ld_reduce_19:
    bf16: multimem_ld_reduce_4; bf16x2: multimem_ld_reduce_4; e4m3x2: multimem_ld_reduce_4; e4m3x4: multimem_ld_reduce_4; e5m2x2: multimem_ld_reduce_4; e5m2x4: multimem_ld_reduce_4; f16: multimem_ld_reduce_4; f16x2: multimem_ld_reduce_4
class multimem_ld_reduce_20:
    bf16x2: multimem_ld_reduce; e4m3x4: multimem_ld_reduce; e5m2x4: multimem_ld_reduce; f16x2: multimem_ld_reduce; s32: multimem_ld_reduce; s64: multimem_ld_reduce; u32: multimem_ld_reduce; u64: multimem_ld_reduce; v2: multimem_ld_reduce_18; v4: multimem_ld_reduce_19; v8: multimem_ld_reduce_15
class multimem_ld_reduce_21:
    add: multimem_ld_reduce_16; and_: multimem_ld_reduce_17; max: multimem_ld_reduce_20; min: multimem_ld_reduce_20; or_: multimem_ld_reduce_17; xor: multimem_ld_reduce_17
class multimem_ld_reduce_22:
    add: multimem_ld_reduce_16; and_: multimem_ld_reduce_17; global_: multimem_ld_reduce_21; max: multimem_ld_reduce_20; min: multimem_ld_reduce_20; or_: multimem_ld_reduce_17; xor: multimem_ld_reduce_17
class multimem_ld_reduce_23:
    cluster: multimem_ld_reduce_22; cta: multimem_ld_reduce_22; gpu: multimem_ld_reduce_22; sys: multimem_ld_reduce_22
class multimem_ld_reduce_24:
    acquire: multimem_ld_reduce_23; add: multimem_ld_reduce_16; and_: multimem_ld_reduce_17; global_: multimem_ld_reduce_21; max: multimem_ld_reduce_20; min: multimem_ld_reduce_20; or_: multimem_ld_reduce_17; relaxed: multimem_ld_reduce_23; weak: multimem_ld_reduce_22; xor: multimem_ld_reduce_17
class multimem_red:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "Reduce a value into the memory of all GPUs: [a] = op([a], b) on each. Requires sm_90."
class multimem_red_2:
    bf16: multimem_red; bf16x2: multimem_red; f16: multimem_red; f16x2: multimem_red; f32: multimem_red
class multimem_red_3:
    bf16: multimem_red; f16: multimem_red
class multimem_red_4:
    bf16x2: multimem_red; f16x2: multimem_red; f32: multimem_red; f64: multimem_red; s32: multimem_red; u32: multimem_red; u64: multimem_red; v2: multimem_red_2; v4: multimem_red_2; v8: multimem_red_3
class multimem_red_5:
    b32: multimem_red; b64: multimem_red
class multimem_red_6:
    s32: multimem_red; s64: multimem_red; u32: multimem_red; u64: multimem_red
class multimem_red_7:
    add: multimem_red_4; and_: multimem_red_5; max: multimem_red_6; min: multimem_red_6; or_: multimem_red_5; xor: multimem_red_5
class multimem_red_8:
    add: multimem_red_4; and_: multimem_red_5; global_: multimem_red_7; max: multimem_red_6; min: multimem_red_6; or_: multimem_red_5; xor: multimem_red_5
class multimem_red_9:
    cluster: multimem_red_8; cta: multimem_red_8; gpu: multimem_red_8; sys: multimem_red_8
class multimem_red_10:
    add: multimem_red_4; and_: multimem_red_5; global_: multimem_red_7; max: multimem_red_6; min: multimem_red_6; or_: multimem_red_5; relaxed: multimem_red_9; release: multimem_red_9; xor: multimem_red_5
class multimem_st:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "Store a value to all GPUs. Requires sm_90."
class multimem_st_2:
    bf16: multimem_st; bf16x2: multimem_st; e4m3x2: multimem_st; e4m3x4: multimem_st; e5m2x2: multimem_st; e5m2x4: multimem_st; f16: multimem_st; f16x2: multimem_st; f32: multimem_st
class multimem_st_3:
    bf16: multimem_st; e4m3x2: multimem_st; e5m2x2: multimem_st; f16: multimem_st
class multimem_st_4:
    b32: multimem_st; b64: multimem_st; bf16x2: multimem_st; e4m3x4: multimem_st; e5m2x4: multimem_st; f16x2: multimem_st; f32: multimem_st; f64: multimem_st; s32: multimem_st; s64: multimem_st; u32: multimem_st; u64: multimem_st; v2: multimem_st_2; v4: multimem_st_2; v8: multimem_st_3
class multimem_st_5:
    b32: multimem_st; b64: multimem_st; bf16x2: multimem_st; e4m3x4: multimem_st; e5m2x4: multimem_st; f16x2: multimem_st; f32: multimem_st; f64: multimem_st; global_: multimem_st_4; s32: multimem_st; s64: multimem_st; u32: multimem_st; u64: multimem_st; v2: multimem_st_2; v4: multimem_st_2; v8: multimem_st_3
class multimem_st_6:
    cluster: multimem_st_5; cta: multimem_st_5; gpu: multimem_st_5; sys: multimem_st_5
class multimem_st_7:
    b32: multimem_st; b64: multimem_st; bf16x2: multimem_st; e4m3x4: multimem_st; e5m2x4: multimem_st; f16x2: multimem_st; f32: multimem_st; f64: multimem_st; global_: multimem_st_4; relaxed: multimem_st_6; release: multimem_st_6; s32: multimem_st; s64: multimem_st; u32: multimem_st; u64: multimem_st; v2: multimem_st_2; v4: multimem_st_2; v8: multimem_st_3; weak: multimem_st_5
class multimem:
    ld_reduce: multimem_ld_reduce_24; red: multimem_red_10; st: multimem_st_7
class nanosleep_u32:
    def __call__(self, t: In, /, *, guard: Guard = ...) -> None:
        "Suspend the thread for about `t` nanoseconds."
class nanosleep:
    u32: nanosleep_u32
class neg:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Negate a half-precision value: d = -a."
class neg_2:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Negate: d = -a."
class neg_ftz:
    f16: neg; f16x2: neg; f32: neg_2
class neg_3:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Negate: d = -a, modulo 2^n."
class neg_4:
    bf16: neg; bf16x2: neg; f16: neg; f16x2: neg; f32: neg_2; f64: neg_2; ftz: neg_ftz; s16: neg_3; s32: neg_3; s64: neg_3
class not_:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Bitwise complement: d = ~a."
class not_2:
    b16: not_; b32: not_; b64: not_; pred: not_
class or_:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Bitwise OR: d = a | b."
class or_2:
    b16: or_; b32: or_; b64: or_; pred: or_
class pmevent:
    def __call__(self, events: In, /, *, guard: Guard = ...) -> None:
        "Trigger performance monitor events."
class pmevent_2(pmevent):
    mask: pmevent
class popc:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Population count: d = the number of one bits in a."
class popc_2:
    b32: popc; b64: popc
class prefetch:
    def __call__(self, a: In, /, *, guard: Guard = ...) -> None:
        "Prefetch the cache line of an address, or a tensor map."
class prefetch_2:
    def __call__(self, a: In, /, *, guard: Guard = ...) -> None:
        "Prefetch the cache line of an address, or a tensor map. Requires sm_90."
class prefetch_3:
    tensormap: prefetch_2
class prefetch_global:
    L1: prefetch; L2: prefetch; L2__evict_last: prefetch; L2__evict_normal: prefetch
class prefetch_local:
    L1: prefetch; L2: prefetch
class prefetch_4:
    L1: prefetch; L2: prefetch; const: prefetch_3; global_: prefetch_global; local: prefetch_local; param: prefetch_3; tensormap: prefetch_2
class prefetchu_L1:
    def __call__(self, a: In, /, *, guard: Guard = ...) -> None:
        "Prefetch the cache line of an address, or a tensor map."
class prefetchu:
    L1: prefetchu_L1
class prmt_b32:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Permute bytes: d = four bytes selected from the eight bytes of {b, a}."
class prmt_b32_2(prmt_b32):
    b4e: prmt_b32; ecl: prmt_b32; ecr: prmt_b32; f4e: prmt_b32; rc16: prmt_b32; rc8: prmt_b32
class prmt:
    b32: prmt_b32_2
class rcp_approx:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate the reciprocal: d = 1 / a, within 1 ulp."
class rcp_approx_ftz_f64:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate the reciprocal d = 1 / a; only the upper 32 bits of f64 values are used."
class rcp_approx_ftz:
    f32: rcp_approx; f64: rcp_approx_ftz_f64
class rcp_approx_2:
    f32: rcp_approx; ftz: rcp_approx_ftz
class rcp:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the reciprocal: d = 1 / a."
class rcp_2:
    f32: rcp
class rcp_3:
    f32: rcp; f64: rcp; ftz: rcp_2
class rcp_4:
    approx: rcp_approx_2; rm: rcp_3; rn: rcp_3; rp: rcp_3; rz: rcp_3
class red:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, guard: Guard = ...) -> None:
        "Atomically reduce into memory without returning the old value: [a] = op([a], b)."
class red_2:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, guard: Guard = ...) -> None:
        "Atomically reduce into memory without returning the old value: [a] = op([a], b). Requires sm_90."
class red_3:
    f32: red_2
class red_4:
    f32: red; f64: red; s32: red; u32: red; u64: red; v2: red_3; v4: red_3
class red_5:
    bf16: red_2; bf16x2: red_2; f16: red_2; f16x2: red_2
class red_6:
    bf16: red_2; f16: red_2
class red_7:
    bf16: red; bf16x2: red; f16: red; f16x2: red; v2: red_5; v4: red_5; v8: red_6
class red_8:
    L2__cache_hint: red_7; bf16: red; bf16x2: red; f16: red; f16x2: red; v2: red_5; v4: red_5; v8: red_6
class red_9:
    L2__cache_hint: red_4; f32: red; f64: red; noftz: red_8; s32: red; u32: red; u64: red; v2: red_3; v4: red_3
class red_10:
    b32: red; b64: red
class red_11:
    L2__cache_hint: red_10; b32: red; b64: red
class red_async:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "Reduce asynchronously into shared memory of a block of the cluster, or (.release) into global memory. Requires sm_100."
class red_async_2:
    s32: red_async; s64: red_async; u32: red_async; u64: red_async
class red_async_3:
    b32: red_async
class red_async_4:
    u32: red_async
class red_async_5:
    s32: red_async; u32: red_async
class red_async_6:
    add: red_async_2; and_: red_async_3; dec: red_async_4; inc: red_async_4; max: red_async_5; min: red_async_5; or_: red_async_3; xor: red_async_3
class red_async_7:
    add: red_async_2; and_: red_async_3; dec: red_async_4; global_: red_async_6; inc: red_async_4; max: red_async_5; min: red_async_5; or_: red_async_3; xor: red_async_3
class red_async_8:
    gpu: red_async_7; sys: red_async_7
class red_async_mmio:
    release: red_async_8
class red_async_relaxed_cluster:
    def __call__(self, a: In, b: In, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "Reduce asynchronously into shared memory of a block of the cluster, or (.release) into global memory. Requires sm_90."
class red_async_relaxed_cluster_2:
    s32: red_async_relaxed_cluster; s64: red_async_relaxed_cluster; u32: red_async_relaxed_cluster; u64: red_async_relaxed_cluster
class red_async_relaxed_cluster_3:
    b32: red_async_relaxed_cluster
class red_async_relaxed_cluster_4:
    u32: red_async_relaxed_cluster
class red_async_relaxed_cluster_5:
    s32: red_async_relaxed_cluster; u32: red_async_relaxed_cluster
class red_async_relaxed_cluster_6:
    add: red_async_relaxed_cluster_2; and_: red_async_relaxed_cluster_3; dec: red_async_relaxed_cluster_4; inc: red_async_relaxed_cluster_4; max: red_async_relaxed_cluster_5; min: red_async_relaxed_cluster_5; or_: red_async_relaxed_cluster_3; xor: red_async_relaxed_cluster_3
class red_async_relaxed_cluster_shared_cluster:
    mbarrier__complete_tx__bytes: red_async_relaxed_cluster_6
class red_async_relaxed_cluster_7:
    mbarrier__complete_tx__bytes: red_async_relaxed_cluster_6; shared__cluster: red_async_relaxed_cluster_shared_cluster
class red_async_relaxed:
    cluster: red_async_relaxed_cluster_7
class red_async_9:
    mmio: red_async_mmio; relaxed: red_async_relaxed; release: red_async_8
class red_12:
    u32: red
class red_13:
    L2__cache_hint: red_12; u32: red
class red_14:
    s32: red; s64: red; u32: red; u64: red
class red_15:
    v2: red_5; v4: red_5; v8: red_6
class red_16:
    L2__cache_hint: red_15; v2: red_5; v4: red_5; v8: red_6
class red_17:
    L2__cache_hint: red_14; noftz: red_16; s32: red; s64: red; u32: red; u64: red
class red_18:
    add: red_9; and_: red_11; dec: red_13; inc: red_13; max: red_17; min: red_17; or_: red_11; xor: red_11
class red_19:
    bf16: red; bf16x2: red; f16: red; f16x2: red
class red_20:
    f32: red; f64: red; noftz: red_19; s32: red; u32: red; u64: red
class red_21:
    add: red_20; and_: red_10; dec: red_12; inc: red_12; max: red_14; min: red_14; or_: red_10; xor: red_10
class red_22:
    add: red_9; and_: red_11; dec: red_13; global_: red_18; inc: red_13; max: red_17; min: red_17; or_: red_11; shared: red_21; shared__cluster: red_21; shared__cta: red_21; xor: red_11
class red_23:
    add: red_9; and_: red_11; cluster: red_22; cta: red_22; dec: red_13; global_: red_18; gpu: red_22; inc: red_13; max: red_17; min: red_17; or_: red_11; shared: red_21; shared__cluster: red_21; shared__cta: red_21; sys: red_22; xor: red_11
class red_24:
    add: red_9; and_: red_11; async_: red_async_9; cluster: red_22; cta: red_22; dec: red_13; global_: red_18; gpu: red_22; inc: red_13; max: red_17; min: red_17; or_: red_11; relaxed: red_23; release: red_23; shared: red_21; shared__cluster: red_21; shared__cta: red_21; sys: red_22; xor: red_11
class redux_sync:
    def __call__(self, a: In, membermask: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Reduce a value across a warp: sum, minimum, maximum, AND, OR or XOR; minimum and maximum also of floats."
class redux_sync_add:
    s32: redux_sync; u32: redux_sync
class redux_sync_2:
    b32: redux_sync
class redux_sync_3:
    def __call__(self, a: In, membermask: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Reduce a value across a warp: sum, minimum, maximum, AND, OR or XOR; minimum and maximum also of floats. Requires sm_100f."
class redux_sync_4:
    f32: redux_sync_3
class redux_sync_5:
    NaN: redux_sync_4; f32: redux_sync_3
class redux_sync_6:
    NaN: redux_sync_4; abs: redux_sync_5; f32: redux_sync_3; s32: redux_sync; u32: redux_sync
class redux_sync_7:
    add: redux_sync_add; and_: redux_sync_2; max: redux_sync_6; min: redux_sync_6; or_: redux_sync_2; xor: redux_sync_2
class redux:
    sync: redux_sync_7
class rem:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the remainder of integer division: d = a % b, with the sign of a; division by zero gives all ones."
class rem_2:
    s16: rem; s32: rem; s64: rem; u16: rem; u32: rem; u64: rem
class ret:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Return from a function; in a kernel, terminate the thread."
class ret_2(ret):
    uni: ret
class rsqrt_approx:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate the reciprocal square root of a, with a relative error of 2^-22.9."
class rsqrt_approx_ftz_f64:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate the reciprocal square root of a; only the upper 32 bits of f64 values are used."
class rsqrt_approx_ftz:
    f32: rsqrt_approx; f64: rsqrt_approx_ftz_f64
class rsqrt_approx_2:
    f32: rsqrt_approx; f64: rsqrt_approx; ftz: rsqrt_approx_ftz
class rsqrt:
    approx: rsqrt_approx_2
class sad:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Sum of absolute differences: d = |a - b| + c."
class sad_2:
    s16: sad; s32: sad; s64: sad; u16: sad; u32: sad; u64: sad
class selp:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Select by predicate: d = c ? a : b."
class selp_2:
    b16: selp; b32: selp; b64: selp; f32: selp; f64: selp; s16: selp; s32: selp; s64: selp; u16: selp; u32: selp; u64: selp
class set:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare halves and set: d = 1.0 or all ones if a cmp b (optionally combined with c) holds, else 0. Requires sm_90."
class set_2:
    b16: set; b32: set; b64: set; bf16: set; f16: set; f32: set; f64: set; s16: set; s32: set; s64: set; u16: set; u32: set; u64: set
class set_3:
    bf16x2: set
class set_4:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare halves and set: d = 1.0 or all ones if a cmp b (optionally combined with c) holds, else 0."
class set_5:
    b16: set_4; b32: set_4; b64: set_4; f16: set_4; f32: set_4; f64: set_4; s16: set_4; s32: set_4; s64: set_4; u16: set_4; u32: set_4; u64: set_4
class set_6:
    f16x2: set_4
class set_7:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare and set: d = 1.0 or all ones if a cmp b (optionally combined with c) holds, else 0."
class set_8:
    b16: set_7; b32: set_7; b64: set_7; f32: set_7; f64: set_7; s16: set_7; s32: set_7; s64: set_7; u16: set_7; u32: set_7; u64: set_7
class set_9:
    f16: set_4; f32: set_4
class set_10:
    f32: set_7
class set_11:
    f16: set_4
class set_12:
    f16: set_4; f16x2: set_4; f32: set_7
class set_13:
    f16: set_9; f16x2: set_6; f32: set_10; s16: set_11; s32: set_12; u16: set_11; u32: set_12
class set_14:
    bf16: set; f16: set_4
class set_15:
    b16: set_7; b32: set_7; b64: set_7; bf16: set; bf16x2: set; f16: set_4; f16x2: set_4; f32: set_7; f64: set_7; s16: set_7; s32: set_7; s64: set_7; u16: set_7; u32: set_7; u64: set_7
class set_16:
    bf16: set_2; bf16x2: set_3; f16: set_5; f16x2: set_6; f32: set_8; ftz: set_13; s16: set_14; s32: set_15; u16: set_14; u32: set_15
class set_17:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare halves and set: d = 1.0 or all ones if a cmp b (optionally combined with c) holds, else 0. Requires sm_90."
class set_18:
    b16: set_17; b32: set_17; b64: set_17; bf16: set_17; f16: set_17; f32: set_17; f64: set_17; s16: set_17; s32: set_17; s64: set_17; u16: set_17; u32: set_17; u64: set_17
class set_19:
    bf16x2: set_17
class set_20:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare halves and set: d = 1.0 or all ones if a cmp b (optionally combined with c) holds, else 0."
class set_21:
    b16: set_20; b32: set_20; b64: set_20; f16: set_20; f32: set_20; f64: set_20; s16: set_20; s32: set_20; s64: set_20; u16: set_20; u32: set_20; u64: set_20
class set_22:
    f16x2: set_20
class set_23:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare and set: d = 1.0 or all ones if a cmp b (optionally combined with c) holds, else 0."
class set_24:
    b16: set_23; b32: set_23; b64: set_23; f32: set_23; f64: set_23; s16: set_23; s32: set_23; s64: set_23; u16: set_23; u32: set_23; u64: set_23
class set_25:
    f16: set_20; f32: set_20
class set_26:
    f32: set_23
class set_27:
    f16: set_20
class set_28:
    f16: set_20; f16x2: set_20; f32: set_23
class set_29:
    f16: set_25; f16x2: set_22; f32: set_26; s16: set_27; s32: set_28; u16: set_27; u32: set_28
class set_30:
    bf16: set_17; f16: set_20
class set_31:
    b16: set_23; b32: set_23; b64: set_23; bf16: set_17; bf16x2: set_17; f16: set_20; f16x2: set_20; f32: set_23; f64: set_23; s16: set_23; s32: set_23; s64: set_23; u16: set_23; u32: set_23; u64: set_23
class set_32:
    and_: set_16; bf16: set_18; bf16x2: set_19; f16: set_21; f16x2: set_22; f32: set_24; ftz: set_29; or_: set_16; s16: set_30; s32: set_31; u16: set_30; u32: set_31; xor: set_16
class set_33:
    bf16: set; f16: set; f32: set; f64: set
class set_34:
    f16: set_4; f32: set_4; f64: set_4
class set_35:
    f32: set_7; f64: set_7
class set_36:
    bf16: set; bf16x2: set; f16: set_4; f16x2: set_4; f32: set_7; f64: set_7
class set_37:
    bf16: set_33; bf16x2: set_3; f16: set_34; f16x2: set_6; f32: set_35; ftz: set_13; s16: set_14; s32: set_36; u16: set_14; u32: set_36
class set_38:
    bf16: set_17; f16: set_17; f32: set_17; f64: set_17
class set_39:
    f16: set_20; f32: set_20; f64: set_20
class set_40:
    f32: set_23; f64: set_23
class set_41:
    bf16: set_17; bf16x2: set_17; f16: set_20; f16x2: set_20; f32: set_23; f64: set_23
class set_42:
    and_: set_37; bf16: set_38; bf16x2: set_19; f16: set_39; f16x2: set_22; f32: set_40; ftz: set_29; or_: set_37; s16: set_30; s32: set_41; u16: set_30; u32: set_41; xor: set_37
class set_43:
    bf16: set; f16: set; f32: set; f64: set; s16: set; s32: set; s64: set; u16: set; u32: set; u64: set
class set_44:
    f16: set_4; f32: set_4; f64: set_4; s16: set_4; s32: set_4; s64: set_4; u16: set_4; u32: set_4; u64: set_4
class set_45:
    f32: set_7; f64: set_7; s16: set_7; s32: set_7; s64: set_7; u16: set_7; u32: set_7; u64: set_7
class set_46:
    bf16: set; bf16x2: set; f16: set_4; f16x2: set_4; f32: set_7; f64: set_7; s16: set_7; s32: set_7; s64: set_7; u16: set_7; u32: set_7; u64: set_7
class set_47:
    bf16: set_43; bf16x2: set_3; f16: set_44; f16x2: set_6; f32: set_45; ftz: set_13; s16: set_14; s32: set_46; u16: set_14; u32: set_46
class set_48:
    bf16: set_17; f16: set_17; f32: set_17; f64: set_17; s16: set_17; s32: set_17; s64: set_17; u16: set_17; u32: set_17; u64: set_17
class set_49:
    f16: set_20; f32: set_20; f64: set_20; s16: set_20; s32: set_20; s64: set_20; u16: set_20; u32: set_20; u64: set_20
class set_50:
    f32: set_23; f64: set_23; s16: set_23; s32: set_23; s64: set_23; u16: set_23; u32: set_23; u64: set_23
class set_51:
    bf16: set_17; bf16x2: set_17; f16: set_20; f16x2: set_20; f32: set_23; f64: set_23; s16: set_23; s32: set_23; s64: set_23; u16: set_23; u32: set_23; u64: set_23
class set_52:
    and_: set_47; bf16: set_48; bf16x2: set_19; f16: set_49; f16x2: set_22; f32: set_50; ftz: set_29; or_: set_47; s16: set_30; s32: set_51; u16: set_30; u32: set_51; xor: set_47
class set_53:
    u16: set; u32: set; u64: set
class set_54:
    u16: set_4; u32: set_4; u64: set_4
class set_55:
    u16: set_7; u32: set_7; u64: set_7
class set_56:
    bf16: set_53; f16: set_54; f32: set_55; s32: set_55; u32: set_55
class set_57:
    u16: set_17; u32: set_17; u64: set_17
class set_58:
    u16: set_20; u32: set_20; u64: set_20
class set_59:
    u16: set_23; u32: set_23; u64: set_23
class set_60:
    and_: set_56; bf16: set_57; f16: set_58; f32: set_59; or_: set_56; s32: set_59; u32: set_59; xor: set_56
class set_61:
    eq: set_32; equ: set_42; ge: set_52; geu: set_42; gt: set_52; gtu: set_42; hi: set_60; hs: set_60; le: set_52; leu: set_42; lo: set_60; ls: set_60; lt: set_52; ltu: set_42; nan: set_42; ne: set_32; neu: set_42; num: set_42
class setmaxnreg:
    def __call__(self, count: In, /, *, guard: Guard = ...) -> None:
        "Release registers of the warp (.dec), or request more (.inc), so that each thread has `count`. Requires sm_90a or sm_100f or sm_110f or sm_120f."
class setmaxnreg_2:
    u32: setmaxnreg
class setmaxnreg_3:
    aligned: setmaxnreg_2
class setmaxnreg_4:
    sync: setmaxnreg_3
class setmaxnreg_5:
    dec: setmaxnreg_4; inc: setmaxnreg_4
class setp:
    @overload
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[False] = ...) -> Scalar:
        "Compare two values: p = a cmp b, q = !p, each optionally combined with c."
    @overload
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[True]) -> Vector2:
        "Compare two values: p = a cmp b, q = !p, each optionally combined with c."
class setp_2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare two half-precision values: p = a cmp b, q = !p, each optionally combined with c. Requires sm_90."
class setp_3:
    @overload
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[False] = ...) -> Scalar:
        "Compare packed halves: p = low(a) cmp low(b), q = high(a) cmp high(b), each optionally combined with c. Requires sm_90."
    @overload
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[True]) -> Vector2:
        "Compare packed halves: p = low(a) cmp low(b), q = high(a) cmp high(b), each optionally combined with c. Requires sm_90."
class setp_4:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare two half-precision values: p = a cmp b, q = !p, each optionally combined with c."
class setp_5:
    @overload
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[False] = ...) -> Scalar:
        "Compare packed halves: p = low(a) cmp low(b), q = high(a) cmp high(b), each optionally combined with c."
    @overload
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[True]) -> Vector2:
        "Compare packed halves: p = low(a) cmp low(b), q = high(a) cmp high(b), each optionally combined with c."
class setp_6:
    f16: setp_4; f16x2: setp_5; f32: setp
class setp_7:
    b16: setp; b32: setp; b64: setp; bf16: setp_2; bf16x2: setp_3; f16: setp_4; f16x2: setp_5; f32: setp; f64: setp; ftz: setp_6; s16: setp; s32: setp; s64: setp; u16: setp; u32: setp; u64: setp
class setp_8:
    @overload
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[False] = ...) -> Scalar:
        "Compare two values: p = a cmp b, q = !p, each optionally combined with c."
    @overload
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[True]) -> Vector2:
        "Compare two values: p = a cmp b, q = !p, each optionally combined with c."
class setp_9:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare two half-precision values: p = a cmp b, q = !p, each optionally combined with c. Requires sm_90."
class setp_10:
    @overload
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[False] = ...) -> Scalar:
        "Compare packed halves: p = low(a) cmp low(b), q = high(a) cmp high(b), each optionally combined with c. Requires sm_90."
    @overload
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[True]) -> Vector2:
        "Compare packed halves: p = low(a) cmp low(b), q = high(a) cmp high(b), each optionally combined with c. Requires sm_90."
class setp_11:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare two half-precision values: p = a cmp b, q = !p, each optionally combined with c."
class setp_12:
    @overload
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[False] = ...) -> Scalar:
        "Compare packed halves: p = low(a) cmp low(b), q = high(a) cmp high(b), each optionally combined with c."
    @overload
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[True]) -> Vector2:
        "Compare packed halves: p = low(a) cmp low(b), q = high(a) cmp high(b), each optionally combined with c."
class setp_13:
    f16: setp_11; f16x2: setp_12; f32: setp_8
class setp_14:
    and_: setp_7; b16: setp_8; b32: setp_8; b64: setp_8; bf16: setp_9; bf16x2: setp_10; f16: setp_11; f16x2: setp_12; f32: setp_8; f64: setp_8; ftz: setp_13; or_: setp_7; s16: setp_8; s32: setp_8; s64: setp_8; u16: setp_8; u32: setp_8; u64: setp_8; xor: setp_7
class setp_15:
    bf16: setp_2; bf16x2: setp_3; f16: setp_4; f16x2: setp_5; f32: setp; f64: setp; ftz: setp_6
class setp_16:
    and_: setp_15; bf16: setp_9; bf16x2: setp_10; f16: setp_11; f16x2: setp_12; f32: setp_8; f64: setp_8; ftz: setp_13; or_: setp_15; xor: setp_15
class setp_17:
    bf16: setp_2; bf16x2: setp_3; f16: setp_4; f16x2: setp_5; f32: setp; f64: setp; ftz: setp_6; s16: setp; s32: setp; s64: setp; u16: setp; u32: setp; u64: setp
class setp_18:
    and_: setp_17; bf16: setp_9; bf16x2: setp_10; f16: setp_11; f16x2: setp_12; f32: setp_8; f64: setp_8; ftz: setp_13; or_: setp_17; s16: setp_8; s32: setp_8; s64: setp_8; u16: setp_8; u32: setp_8; u64: setp_8; xor: setp_17
class setp_19:
    u16: setp; u32: setp; u64: setp
class setp_20:
    and_: setp_19; or_: setp_19; u16: setp_8; u32: setp_8; u64: setp_8; xor: setp_19
class setp_21:
    eq: setp_14; equ: setp_16; ge: setp_18; geu: setp_16; gt: setp_18; gtu: setp_16; hi: setp_20; hs: setp_20; le: setp_18; leu: setp_16; lo: setp_20; ls: setp_20; lt: setp_18; ltu: setp_16; nan: setp_16; ne: setp_14; neu: setp_16; num: setp_16
class shf:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Funnel shift: d = the high half of {b, a} << c, or the low half of {b, a} >> c; .wrap or .clamp at 32."
class shf_2:
    b32: shf
class shf_3:
    clamp: shf_2; wrap: shf_2
class shf_4:
    l: shf_3; r: shf_3
class shfl:
    @overload
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[False] = ...) -> Scalar:
        "Exchange a register between lanes of a warp, for targets before sm_70: d = a of the source lane."
    @overload
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[True]) -> Vector2:
        "Exchange a register between lanes of a warp, for targets before sm_70: d = a of the source lane."
class shfl_2:
    b32: shfl
class shfl_sync:
    @overload
    def __call__(self, a: In, b: In, c: In, membermask: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[False] = ...) -> Scalar:
        "Shuffle a register between lanes: d = a of the source lane, p = source lane in range; if not, d = own a."
    @overload
    def __call__(self, a: In, b: In, c: In, membermask: In, /, *, out: Out = ..., guard: Guard = ..., pair: Literal[True]) -> Vector2:
        "Shuffle a register between lanes: d = a of the source lane, p = source lane in range; if not, d = own a."
class shfl_sync_2:
    b32: shfl_sync
class shfl_sync_3:
    bfly: shfl_sync_2; down: shfl_sync_2; idx: shfl_sync_2; up: shfl_sync_2
class shfl_3:
    bfly: shfl_2; down: shfl_2; idx: shfl_2; sync: shfl_sync_3; up: shfl_2
class shl:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Shift left: d = a << b; 0 if b is the full width or more."
class shl_2:
    b16: shl; b32: shl; b64: shl
class shr:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Shift right: d = a >> b, filled with the sign bit for signed types, else with zeros."
class shr_2:
    b16: shr; b32: shr; b64: shr; s16: shr; s32: shr; s64: shr; u16: shr; u32: shr; u64: shr
class sin_approx:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate the sine of a, in radians."
class sin_approx_ftz:
    f32: sin_approx
class sin_approx_2:
    f32: sin_approx; ftz: sin_approx_ftz
class sin:
    approx: sin_approx_2
class slct:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Select by sign: d = (c >= 0) ? a : b."
class slct_2:
    f32: slct; s32: slct
class slct_ftz:
    f32: slct
class slct_ftz_2:
    b16: slct_ftz; b32: slct_ftz; b64: slct_ftz; f32: slct_ftz; f64: slct_ftz; s16: slct_ftz; s32: slct_ftz; s64: slct_ftz; u16: slct_ftz; u32: slct_ftz; u64: slct_ftz
class slct_3:
    b16: slct_2; b32: slct_2; b64: slct_2; f32: slct_2; f64: slct_2; ftz: slct_ftz_2; s16: slct_2; s32: slct_2; s64: slct_2; u16: slct_2; u32: slct_2; u64: slct_2
class sqrt_approx:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate the square root of a, with a relative error of 2^-23."
class sqrt_approx_ftz:
    f32: sqrt_approx
class sqrt_approx_2:
    f32: sqrt_approx; ftz: sqrt_approx_ftz
class sqrt:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Take the square root of a."
class sqrt_2:
    f32: sqrt
class sqrt_3:
    f32: sqrt; f64: sqrt; ftz: sqrt_2
class sqrt_4:
    approx: sqrt_approx_2; rm: sqrt_3; rn: sqrt_3; rp: sqrt_3; rz: sqrt_3
class st:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, guard: Guard = ...) -> None:
        "Store to memory: [a] = b."
class st_2:
    b16: st; b32: st; b64: st; b8: st; f32: st; f64: st; s16: st; s32: st; s64: st; s8: st; u16: st; u32: st; u64: st; u8: st
class st_3:
    b32: st; f32: st; s32: st; u32: st
class st_4:
    b128: st; b16: st; b32: st; b64: st; b8: st; f32: st; f64: st; s16: st; s32: st; s64: st; s8: st; u16: st; u32: st; u64: st; u8: st; v2: st_2; v4: st_2; v8: st_3
class st_5:
    b64: st; f64: st; s64: st; u64: st
class st_6:
    v4: st_5; v8: st_3
class st_7:
    L2__cache_hint: st_6; v4: st_5; v8: st_3
class st_8:
    L2__cache_hint: st_4; L2__evict_first: st_7; L2__evict_last: st_7; L2__evict_normal: st_7; b128: st; b16: st; b32: st; b64: st; b8: st; f32: st; f64: st; s16: st; s32: st; s64: st; s8: st; u16: st; u32: st; u64: st; u8: st; v2: st_2; v4: st_2; v8: st_3
class st_async:
    def __call__(self, a: In, b: In, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "Store asynchronously to shared memory of a block of the cluster, or (.release) to global memory. Requires sm_90."
class st_async_2:
    b32: st_async; b64: st_async; f32: st_async; f64: st_async; s32: st_async; s64: st_async; u32: st_async; u64: st_async
class st_async_3:
    b32: st_async; f32: st_async; s32: st_async; u32: st_async
class st_async_4:
    b32: st_async; b64: st_async; f32: st_async; f64: st_async; s32: st_async; s64: st_async; u32: st_async; u64: st_async; v2: st_async_2; v4: st_async_3
class st_async_5:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "Store asynchronously to shared memory of a block of the cluster, or (.release) to global memory. Requires sm_100."
class st_async_6:
    b32: st_async_5; b64: st_async_5; f32: st_async_5; f64: st_async_5; s32: st_async_5; s64: st_async_5; u32: st_async_5; u64: st_async_5
class st_async_7:
    b32: st_async_5; b64: st_async_5; f32: st_async_5; f64: st_async_5; global_: st_async_6; s32: st_async_5; s64: st_async_5; u32: st_async_5; u64: st_async_5
class st_async_8:
    gpu: st_async_7; sys: st_async_7
class st_async_mmio:
    release: st_async_8
class st_async_9:
    mbarrier__complete_tx__bytes: st_async_4
class st_async_weak:
    mbarrier__complete_tx__bytes: st_async_4; shared__cluster: st_async_9
class st_async_10:
    mbarrier__complete_tx__bytes: st_async_4; mmio: st_async_mmio; release: st_async_8; shared__cluster: st_async_9; weak: st_async_weak
class st_bulk:
    def __call__(self, dst: In, size: In, value: In, /, *, guard: Guard = ...) -> None:
        "Fill `size` bytes of shared memory with zeros. Requires sm_100."
class st_bulk_weak(st_bulk):
    shared__cta: st_bulk
class st_bulk_2(st_bulk):
    shared__cta: st_bulk; weak: st_bulk_weak
class st_9:
    L2__cache_hint: st_4; b128: st; b16: st; b32: st; b64: st; b8: st; f32: st; f64: st; s16: st; s32: st; s64: st; s8: st; u16: st; u32: st; u64: st; u8: st; v2: st_2; v4: st_2; v8: st_3
class st_10:
    L1__evict_first: st_8; L1__evict_last: st_8; L1__evict_normal: st_8; L1__evict_unchanged: st_8; L1__no_allocate: st_8; L2__cache_hint: st_4; L2__evict_first: st_7; L2__evict_last: st_7; L2__evict_normal: st_7; b128: st; b16: st; b32: st; b64: st; b8: st; cg: st_9; cs: st_9; f32: st; f64: st; s16: st; s32: st; s64: st; s8: st; u16: st; u32: st; u64: st; u8: st; v2: st_2; v4: st_2; v8: st_3; wb: st_9; wt: st_9
class st_11:
    b16: st; b32: st; b8: st; f32: st; s16: st; s32: st; s8: st; u16: st; u32: st; u8: st
class st_12:
    b128: st; b16: st; b32: st; b64: st; b8: st; f32: st; f64: st; s16: st; s32: st; s64: st; s8: st; u16: st; u32: st; u64: st; u8: st; v2: st_2; v4: st_11
class st_13:
    b128: st; b16: st; b32: st; b64: st; b8: st; cg: st_12; cs: st_12; f32: st; f64: st; s16: st; s32: st; s64: st; s8: st; u16: st; u32: st; u64: st; u8: st; v2: st_2; v4: st_11; wb: st_12; wt: st_12
class st_14:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "Store to memory: [a] = b."
class st_mmio_relaxed_sys_global:
    b128: st_14; b16: st_14; b32: st_14; b64: st_14; b8: st_14; f32: st_14; f64: st_14; s16: st_14; s32: st_14; s64: st_14; s8: st_14; u16: st_14; u32: st_14; u64: st_14; u8: st_14
class st_mmio_relaxed_sys:
    b128: st_14; b16: st_14; b32: st_14; b64: st_14; b8: st_14; f32: st_14; f64: st_14; global_: st_mmio_relaxed_sys_global; s16: st_14; s32: st_14; s64: st_14; s8: st_14; u16: st_14; u32: st_14; u64: st_14; u8: st_14
class st_mmio_relaxed:
    sys: st_mmio_relaxed_sys
class st_mmio:
    relaxed: st_mmio_relaxed
class st_15:
    L1__evict_first: st_8; L1__evict_last: st_8; L1__evict_normal: st_8; L1__evict_unchanged: st_8; L1__no_allocate: st_8; L2__cache_hint: st_4; L2__evict_first: st_7; L2__evict_last: st_7; L2__evict_normal: st_7; b128: st; b16: st; b32: st; b64: st; b8: st; f32: st; f64: st; s16: st; s32: st; s64: st; s8: st; u16: st; u32: st; u64: st; u8: st; v2: st_2; v4: st_2; v8: st_3
class st_16:
    L1__evict_first: st_8; L1__evict_last: st_8; L1__evict_normal: st_8; L1__evict_unchanged: st_8; L1__no_allocate: st_8; L2__cache_hint: st_4; L2__evict_first: st_7; L2__evict_last: st_7; L2__evict_normal: st_7; b128: st; b16: st; b32: st; b64: st; b8: st; f32: st; f64: st; global_: st_15; s16: st; s32: st; s64: st; s8: st; shared: st_12; shared__cluster: st_12; shared__cta: st_12; u16: st; u32: st; u64: st; u8: st; v2: st_2; v4: st_2; v8: st_3
class st_17:
    cluster: st_16; cta: st_16; gpu: st_16; sys: st_16
class st_volatile:
    b16: st_14; b32: st_14; b64: st_14; b8: st_14; f32: st_14; f64: st_14; s16: st_14; s32: st_14; s64: st_14; s8: st_14; u16: st_14; u32: st_14; u64: st_14; u8: st_14
class st_volatile_2:
    b32: st_14; f32: st_14; s32: st_14; u32: st_14
class st_volatile_global:
    b128: st_14; b16: st_14; b32: st_14; b64: st_14; b8: st_14; f32: st_14; f64: st_14; s16: st_14; s32: st_14; s64: st_14; s8: st_14; u16: st_14; u32: st_14; u64: st_14; u8: st_14; v2: st_volatile; v4: st_volatile; v8: st_volatile_2
class st_volatile_3:
    b16: st_14; b32: st_14; b8: st_14; f32: st_14; s16: st_14; s32: st_14; s8: st_14; u16: st_14; u32: st_14; u8: st_14
class st_volatile_4:
    b128: st_14; b16: st_14; b32: st_14; b64: st_14; b8: st_14; f32: st_14; f64: st_14; s16: st_14; s32: st_14; s64: st_14; s8: st_14; u16: st_14; u32: st_14; u64: st_14; u8: st_14; v2: st_volatile; v4: st_volatile_3
class st_volatile_5:
    b128: st_14; b16: st_14; b32: st_14; b64: st_14; b8: st_14; f32: st_14; f64: st_14; global_: st_volatile_global; s16: st_14; s32: st_14; s64: st_14; s8: st_14; shared: st_volatile_4; shared__cluster: st_volatile_4; shared__cta: st_volatile_4; u16: st_14; u32: st_14; u64: st_14; u8: st_14; v2: st_volatile; v4: st_volatile; v8: st_volatile_2
class st_weak:
    L1__evict_first: st_8; L1__evict_last: st_8; L1__evict_normal: st_8; L1__evict_unchanged: st_8; L1__no_allocate: st_8; L2__cache_hint: st_4; L2__evict_first: st_7; L2__evict_last: st_7; L2__evict_normal: st_7; b128: st; b16: st; b32: st; b64: st; b8: st; cg: st_9; cs: st_9; f32: st; f64: st; global_: st_10; local: st_13; param: st_13; param__func: st_13; s16: st; s32: st; s64: st; s8: st; shared: st_13; shared__cluster: st_13; shared__cta: st_13; u16: st; u32: st; u64: st; u8: st; v2: st_2; v4: st_2; v8: st_3; wb: st_9; wt: st_9
class st_18:
    L1__evict_first: st_8; L1__evict_last: st_8; L1__evict_normal: st_8; L1__evict_unchanged: st_8; L1__no_allocate: st_8; L2__cache_hint: st_4; L2__evict_first: st_7; L2__evict_last: st_7; L2__evict_normal: st_7; async_: st_async_10; b128: st; b16: st; b32: st; b64: st; b8: st; bulk: st_bulk_2; cg: st_9; cs: st_9; f32: st; f64: st; global_: st_10; local: st_13; mmio: st_mmio; param: st_13; param__func: st_13; relaxed: st_17; release: st_17; s16: st; s32: st; s64: st; s8: st; shared: st_13; shared__cluster: st_13; shared__cta: st_13; u16: st; u32: st; u64: st; u8: st; v2: st_2; v4: st_2; v8: st_3; volatile: st_volatile_5; wb: st_9; weak: st_weak; wt: st_9
class stmatrix_sync_aligned_m16n8:
    def __call__(self, address: In, a: In, /, *, guard: Guard = ...) -> None:
        "Store 16x8 matrices of 8-bit elements to shared memory, transposed: each of 8 addresses takes a column. Requires sm_100f or sm_110f or sm_120f."
class stmatrix_sync_aligned_m16n8_2:
    b8: stmatrix_sync_aligned_m16n8
class stmatrix_sync_aligned_m16n8_3:
    b8: stmatrix_sync_aligned_m16n8; shared: stmatrix_sync_aligned_m16n8_2; shared__cta: stmatrix_sync_aligned_m16n8_2
class stmatrix_sync_aligned_m16n8_4:
    trans: stmatrix_sync_aligned_m16n8_3
class stmatrix_sync_aligned_m16n8_5:
    x1: stmatrix_sync_aligned_m16n8_4; x2: stmatrix_sync_aligned_m16n8_4; x4: stmatrix_sync_aligned_m16n8_4
class stmatrix_sync_aligned_m8n8:
    def __call__(self, address: In, a: In, /, *, guard: Guard = ...) -> None:
        "Store 8x8 matrices: lane 4g + t holds elements 2t and 2t+1 of row g (.trans: column g). Requires sm_90."
class stmatrix_sync_aligned_m8n8_2:
    b16: stmatrix_sync_aligned_m8n8
class stmatrix_sync_aligned_m8n8_3:
    b16: stmatrix_sync_aligned_m8n8; shared: stmatrix_sync_aligned_m8n8_2; shared__cta: stmatrix_sync_aligned_m8n8_2
class stmatrix_sync_aligned_m8n8_4:
    b16: stmatrix_sync_aligned_m8n8; shared: stmatrix_sync_aligned_m8n8_2; shared__cta: stmatrix_sync_aligned_m8n8_2; trans: stmatrix_sync_aligned_m8n8_3
class stmatrix_sync_aligned_m8n8_5:
    x1: stmatrix_sync_aligned_m8n8_4; x2: stmatrix_sync_aligned_m8n8_4; x4: stmatrix_sync_aligned_m8n8_4
class stmatrix_sync_aligned:
    m16n8: stmatrix_sync_aligned_m16n8_5; m8n8: stmatrix_sync_aligned_m8n8_5
class stmatrix_sync:
    aligned: stmatrix_sync_aligned
class stmatrix:
    sync: stmatrix_sync
class sub:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Subtract one half-precision value from another: d = a - b. Requires sm_90."
class sub_cc:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Subtract with borrow: d = a - b, minus the borrow for subc; .cc writes the inverted borrow to CC.CF."
class sub_cc_2:
    s32: sub_cc; s64: sub_cc; u32: sub_cc; u64: sub_cc
class sub_2:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Subtract one half-precision value from another: d = a - b."
class sub_3:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Subtract one value from another: d = a - b."
class sub_4:
    def __call__(self, a: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Subtract one value from another: d = a - b. Requires sm_100."
class sub_5(sub_3):
    bf16: sub_4; f16: sub_4
class sub_6:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Subtract one value from another: d = a - b. Requires sm_100."
class sub_7:
    f16: sub_2; f16x2: sub_2; f32: sub_3
class sub_8:
    f16: sub_2; f16x2: sub_2; f32: sub_3; f32x2: sub_6; sat: sub_7
class sub_9:
    f32: sub_3
class sub_10:
    f32: sub_3; f32x2: sub_6; sat: sub_9
class sub_11:
    f32: sub_5
class sub_12:
    f32: sub_5; f32x2: sub_6; f64: sub_3; ftz: sub_10; sat: sub_11
class sub_rn_sat:
    f16: sub_2; f16x2: sub_2; f32: sub_5
class sub_rn:
    bf16: sub; bf16x2: sub; f16: sub_2; f16x2: sub_2; f32: sub_5; f32x2: sub_6; f64: sub_3; ftz: sub_8; sat: sub_rn_sat
class sub_13:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Subtract one value from another: d = a - b, modulo 2^n; .sat clamps to the range of s32."
class sub_sat:
    f16: sub_2; f16x2: sub_2; f32: sub_5; s32: sub_13
class sub_14:
    bf16: sub; bf16x2: sub; cc: sub_cc_2; f16: sub_2; f16x2: sub_2; f32: sub_5; f32x2: sub_6; f64: sub_3; ftz: sub_8; rm: sub_12; rn: sub_rn; rp: sub_12; rz: sub_12; s16: sub_13; s32: sub_13; s64: sub_13; sat: sub_sat; u16: sub_13; u32: sub_13; u64: sub_13
class subc:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Subtract with borrow: d = a - b, minus the borrow for subc; .cc writes the inverted borrow to CC.CF."
class subc_cc:
    s32: subc; s64: subc; u32: subc; u64: subc
class subc_2:
    cc: subc_cc; s32: subc; s64: subc; u32: subc; u64: subc
class szext:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Sign- or zero-extend the low b bits of a; b is taken modulo 32 (.wrap) or clamped to 32 (.clamp)."
class szext_2:
    s32: szext; u32: szext
class szext_3:
    clamp: szext_2; wrap: szext_2
class tanh_approx:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate the hyperbolic tangent of a half-precision value. Requires sm_90."
class tanh_approx_2:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate the hyperbolic tangent of a half-precision value."
class tanh_approx_f32:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Approximate the hyperbolic tangent of a."
class tanh_approx_3:
    bf16: tanh_approx; bf16x2: tanh_approx; f16: tanh_approx_2; f16x2: tanh_approx_2; f32: tanh_approx_f32
class tanh:
    approx: tanh_approx_3
class tcgen05_alloc:
    def __call__(self, dst: In, columns: In, /, *, guard: Guard = ...) -> None:
        "Allocate columns of tensor memory, blocking until available, and write their address to shared memory. Requires sm_100f or sm_110f."
class tcgen05_alloc_2:
    b32: tcgen05_alloc
class tcgen05_alloc_3:
    b32: tcgen05_alloc; shared__cta: tcgen05_alloc_2
class tcgen05_alloc_4:
    aligned: tcgen05_alloc_3
class tcgen05_alloc_5:
    sync: tcgen05_alloc_4
class tcgen05_alloc_6:
    cta_group__1: tcgen05_alloc_5; cta_group__2: tcgen05_alloc_5
class tcgen05_commit:
    def __call__(self, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "Make an mbarrier, or one per block in `cta_mask`, track completion of the thread's prior tcgen05 operations. Requires sm_100f or sm_110f."
class tcgen05_commit_2:
    def __call__(self, mbarrier: In, cta_mask: In, /, *, guard: Guard = ...) -> None:
        "Make an mbarrier, or one per block in `cta_mask`, track completion of the thread's prior tcgen05 operations. Requires sm_100f or sm_110f."
class tcgen05_commit_3:
    b64: tcgen05_commit_2
class tcgen05_commit_4:
    b64: tcgen05_commit; multicast__cluster: tcgen05_commit_3
class tcgen05_commit_5:
    b64: tcgen05_commit; multicast__cluster: tcgen05_commit_3; shared__cluster: tcgen05_commit_4
class tcgen05_commit_6:
    mbarrier__arrive__one: tcgen05_commit_5
class tcgen05_commit_7:
    cta_group__1: tcgen05_commit_6; cta_group__2: tcgen05_commit_6
class tcgen05_cp:
    def __call__(self, address: In, source_desc: In, /, *, guard: Guard = ...) -> None:
        "Copy from shared to tensor memory asynchronously; elements of 4 or 6 bits may be expanded to bytes. Requires sm_100f or sm_110f."
class tcgen05_cp_2:
    b4x16_p64: tcgen05_cp; b6x16_p32: tcgen05_cp
class tcgen05_cp_3(tcgen05_cp):
    b8x16: tcgen05_cp_2
class tcgen05_cp_4:
    warpx4: tcgen05_cp_3
class tcgen05_cp_5:
    warpx2__01_23: tcgen05_cp_3; warpx2__02_13: tcgen05_cp_3
class tcgen05_cp_6:
    _128x128b: tcgen05_cp_3; _128x256b: tcgen05_cp_3; _32x128b: tcgen05_cp_4; _4x256b: tcgen05_cp_3; _64x128b: tcgen05_cp_5
class tcgen05_cp_7:
    cta_group__1: tcgen05_cp_6; cta_group__2: tcgen05_cp_6
class tcgen05_dealloc:
    def __call__(self, address: In, columns: In, /, *, guard: Guard = ...) -> None:
        "Deallocate columns of tensor memory. Requires sm_100f or sm_110f."
class tcgen05_dealloc_2:
    b32: tcgen05_dealloc
class tcgen05_dealloc_3:
    aligned: tcgen05_dealloc_2
class tcgen05_dealloc_4:
    sync: tcgen05_dealloc_3
class tcgen05_dealloc_5:
    cta_group__1: tcgen05_dealloc_4; cta_group__2: tcgen05_dealloc_4
class tcgen05:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Order the thread's tcgen05 instructions before, or after, a thread synchronisation. Requires sm_100f or sm_110f."
class tcgen05_ld_red_sync_aligned_16x32bx2:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Vector, Scalar]:
        "Load from tensor memory as tcgen05.ld, and reduce: reduced = the minimum or maximum of the thread's registers. Requires sm_103f or sm_110f."
class tcgen05_ld_red_sync_aligned_16x32bx2_2:
    f32: tcgen05_ld_red_sync_aligned_16x32bx2
class tcgen05_ld_red_sync_aligned_16x32bx2_3:
    NaN: tcgen05_ld_red_sync_aligned_16x32bx2_2; f32: tcgen05_ld_red_sync_aligned_16x32bx2
class tcgen05_ld_red_sync_aligned_16x32bx2_4:
    NaN: tcgen05_ld_red_sync_aligned_16x32bx2_2; abs: tcgen05_ld_red_sync_aligned_16x32bx2_3; f32: tcgen05_ld_red_sync_aligned_16x32bx2; s32: tcgen05_ld_red_sync_aligned_16x32bx2; u32: tcgen05_ld_red_sync_aligned_16x32bx2
class tcgen05_ld_red_sync_aligned_16x32bx2_5:
    max: tcgen05_ld_red_sync_aligned_16x32bx2_4; min: tcgen05_ld_red_sync_aligned_16x32bx2_4
class tcgen05_ld_red_sync_aligned_16x32bx2_x2:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Vector2, Scalar]:
        "Load from tensor memory as tcgen05.ld, and reduce: reduced = the minimum or maximum of the thread's registers. Requires sm_103f or sm_110f."
class tcgen05_ld_red_sync_aligned_16x32bx2_x2_2:
    f32: tcgen05_ld_red_sync_aligned_16x32bx2_x2
class tcgen05_ld_red_sync_aligned_16x32bx2_x2_3:
    NaN: tcgen05_ld_red_sync_aligned_16x32bx2_x2_2; f32: tcgen05_ld_red_sync_aligned_16x32bx2_x2
class tcgen05_ld_red_sync_aligned_16x32bx2_x2_4:
    NaN: tcgen05_ld_red_sync_aligned_16x32bx2_x2_2; abs: tcgen05_ld_red_sync_aligned_16x32bx2_x2_3; f32: tcgen05_ld_red_sync_aligned_16x32bx2_x2; s32: tcgen05_ld_red_sync_aligned_16x32bx2_x2; u32: tcgen05_ld_red_sync_aligned_16x32bx2_x2
class tcgen05_ld_red_sync_aligned_16x32bx2_x2_5:
    max: tcgen05_ld_red_sync_aligned_16x32bx2_x2_4; min: tcgen05_ld_red_sync_aligned_16x32bx2_x2_4
class tcgen05_ld_red_sync_aligned_16x32bx2_x4:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Vector4, Scalar]:
        "Load from tensor memory as tcgen05.ld, and reduce: reduced = the minimum or maximum of the thread's registers. Requires sm_103f or sm_110f."
class tcgen05_ld_red_sync_aligned_16x32bx2_x4_2:
    f32: tcgen05_ld_red_sync_aligned_16x32bx2_x4
class tcgen05_ld_red_sync_aligned_16x32bx2_x4_3:
    NaN: tcgen05_ld_red_sync_aligned_16x32bx2_x4_2; f32: tcgen05_ld_red_sync_aligned_16x32bx2_x4
class tcgen05_ld_red_sync_aligned_16x32bx2_x4_4:
    NaN: tcgen05_ld_red_sync_aligned_16x32bx2_x4_2; abs: tcgen05_ld_red_sync_aligned_16x32bx2_x4_3; f32: tcgen05_ld_red_sync_aligned_16x32bx2_x4; s32: tcgen05_ld_red_sync_aligned_16x32bx2_x4; u32: tcgen05_ld_red_sync_aligned_16x32bx2_x4
class tcgen05_ld_red_sync_aligned_16x32bx2_x4_5:
    max: tcgen05_ld_red_sync_aligned_16x32bx2_x4_4; min: tcgen05_ld_red_sync_aligned_16x32bx2_x4_4
class tcgen05_ld_red_sync_aligned_16x32bx2_6:
    x128: tcgen05_ld_red_sync_aligned_16x32bx2_5; x16: tcgen05_ld_red_sync_aligned_16x32bx2_5; x2: tcgen05_ld_red_sync_aligned_16x32bx2_x2_5; x32: tcgen05_ld_red_sync_aligned_16x32bx2_5; x4: tcgen05_ld_red_sync_aligned_16x32bx2_x4_5; x64: tcgen05_ld_red_sync_aligned_16x32bx2_5; x8: tcgen05_ld_red_sync_aligned_16x32bx2_5
class tcgen05_ld_red_sync_aligned_32x32b:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Vector, Scalar]:
        "Load from tensor memory as tcgen05.ld, and reduce: reduced = the minimum or maximum of the thread's registers. Requires sm_103f or sm_110f."
class tcgen05_ld_red_sync_aligned_32x32b_2:
    f32: tcgen05_ld_red_sync_aligned_32x32b
class tcgen05_ld_red_sync_aligned_32x32b_3:
    NaN: tcgen05_ld_red_sync_aligned_32x32b_2; f32: tcgen05_ld_red_sync_aligned_32x32b
class tcgen05_ld_red_sync_aligned_32x32b_4:
    NaN: tcgen05_ld_red_sync_aligned_32x32b_2; abs: tcgen05_ld_red_sync_aligned_32x32b_3; f32: tcgen05_ld_red_sync_aligned_32x32b; s32: tcgen05_ld_red_sync_aligned_32x32b; u32: tcgen05_ld_red_sync_aligned_32x32b
class tcgen05_ld_red_sync_aligned_32x32b_5:
    max: tcgen05_ld_red_sync_aligned_32x32b_4; min: tcgen05_ld_red_sync_aligned_32x32b_4
class tcgen05_ld_red_sync_aligned_32x32b_x2:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Vector2, Scalar]:
        "Load from tensor memory as tcgen05.ld, and reduce: reduced = the minimum or maximum of the thread's registers. Requires sm_103f or sm_110f."
class tcgen05_ld_red_sync_aligned_32x32b_x2_2:
    f32: tcgen05_ld_red_sync_aligned_32x32b_x2
class tcgen05_ld_red_sync_aligned_32x32b_x2_3:
    NaN: tcgen05_ld_red_sync_aligned_32x32b_x2_2; f32: tcgen05_ld_red_sync_aligned_32x32b_x2
class tcgen05_ld_red_sync_aligned_32x32b_x2_4:
    NaN: tcgen05_ld_red_sync_aligned_32x32b_x2_2; abs: tcgen05_ld_red_sync_aligned_32x32b_x2_3; f32: tcgen05_ld_red_sync_aligned_32x32b_x2; s32: tcgen05_ld_red_sync_aligned_32x32b_x2; u32: tcgen05_ld_red_sync_aligned_32x32b_x2
class tcgen05_ld_red_sync_aligned_32x32b_x2_5:
    max: tcgen05_ld_red_sync_aligned_32x32b_x2_4; min: tcgen05_ld_red_sync_aligned_32x32b_x2_4
class tcgen05_ld_red_sync_aligned_32x32b_x4:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Vector4, Scalar]:
        "Load from tensor memory as tcgen05.ld, and reduce: reduced = the minimum or maximum of the thread's registers. Requires sm_103f or sm_110f."
class tcgen05_ld_red_sync_aligned_32x32b_x4_2:
    f32: tcgen05_ld_red_sync_aligned_32x32b_x4
class tcgen05_ld_red_sync_aligned_32x32b_x4_3:
    NaN: tcgen05_ld_red_sync_aligned_32x32b_x4_2; f32: tcgen05_ld_red_sync_aligned_32x32b_x4
class tcgen05_ld_red_sync_aligned_32x32b_x4_4:
    NaN: tcgen05_ld_red_sync_aligned_32x32b_x4_2; abs: tcgen05_ld_red_sync_aligned_32x32b_x4_3; f32: tcgen05_ld_red_sync_aligned_32x32b_x4; s32: tcgen05_ld_red_sync_aligned_32x32b_x4; u32: tcgen05_ld_red_sync_aligned_32x32b_x4
class tcgen05_ld_red_sync_aligned_32x32b_x4_5:
    max: tcgen05_ld_red_sync_aligned_32x32b_x4_4; min: tcgen05_ld_red_sync_aligned_32x32b_x4_4
class tcgen05_ld_red_sync_aligned_32x32b_6:
    x128: tcgen05_ld_red_sync_aligned_32x32b_5; x16: tcgen05_ld_red_sync_aligned_32x32b_5; x2: tcgen05_ld_red_sync_aligned_32x32b_x2_5; x32: tcgen05_ld_red_sync_aligned_32x32b_5; x4: tcgen05_ld_red_sync_aligned_32x32b_x4_5; x64: tcgen05_ld_red_sync_aligned_32x32b_5; x8: tcgen05_ld_red_sync_aligned_32x32b_5
class tcgen05_ld_red_sync_aligned:
    _16x32bx2: tcgen05_ld_red_sync_aligned_16x32bx2_6; _32x32b: tcgen05_ld_red_sync_aligned_32x32b_6
class tcgen05_ld_red_sync:
    aligned: tcgen05_ld_red_sync_aligned
class tcgen05_ld_red:
    sync: tcgen05_ld_red_sync
class tcgen05_ld_sync_aligned:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Load registers asynchronously from tensor memory; complete after tcgen05.wait::ld. Requires sm_100f or sm_110f."
class tcgen05_ld_sync_aligned_2:
    b32: tcgen05_ld_sync_aligned
class tcgen05_ld_sync_aligned_3:
    b32: tcgen05_ld_sync_aligned; pack__16b: tcgen05_ld_sync_aligned_2
class tcgen05_ld_sync_aligned_4:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Load registers asynchronously from tensor memory; complete after tcgen05.wait::ld. Requires sm_100f or sm_110f."
class tcgen05_ld_sync_aligned_5:
    b32: tcgen05_ld_sync_aligned_4
class tcgen05_ld_sync_aligned_6:
    b32: tcgen05_ld_sync_aligned_4; pack__16b: tcgen05_ld_sync_aligned_5
class tcgen05_ld_sync_aligned_7:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Load registers asynchronously from tensor memory; complete after tcgen05.wait::ld. Requires sm_100f or sm_110f."
class tcgen05_ld_sync_aligned_8:
    b32: tcgen05_ld_sync_aligned_7
class tcgen05_ld_sync_aligned_9:
    b32: tcgen05_ld_sync_aligned_7; pack__16b: tcgen05_ld_sync_aligned_8
class tcgen05_ld_sync_aligned_16x128b:
    x1: tcgen05_ld_sync_aligned_3; x16: tcgen05_ld_sync_aligned_6; x2: tcgen05_ld_sync_aligned_9; x32: tcgen05_ld_sync_aligned_6; x4: tcgen05_ld_sync_aligned_6; x64: tcgen05_ld_sync_aligned_6; x8: tcgen05_ld_sync_aligned_6
class tcgen05_ld_sync_aligned_16x256b:
    x1: tcgen05_ld_sync_aligned_9; x16: tcgen05_ld_sync_aligned_6; x2: tcgen05_ld_sync_aligned_6; x32: tcgen05_ld_sync_aligned_6; x4: tcgen05_ld_sync_aligned_6; x8: tcgen05_ld_sync_aligned_6
class tcgen05_ld_sync_aligned_16x32bx2_x1:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Load registers asynchronously from tensor memory; complete after tcgen05.wait::ld. Requires sm_100f or sm_110f."
class tcgen05_ld_sync_aligned_16x32bx2_x1_pack_16b:
    b32: tcgen05_ld_sync_aligned_16x32bx2_x1
class tcgen05_ld_sync_aligned_16x32bx2_x1_2:
    b32: tcgen05_ld_sync_aligned_16x32bx2_x1; pack__16b: tcgen05_ld_sync_aligned_16x32bx2_x1_pack_16b
class tcgen05_ld_sync_aligned_16x32bx2:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Load registers asynchronously from tensor memory; complete after tcgen05.wait::ld. Requires sm_100f or sm_110f."
class tcgen05_ld_sync_aligned_16x32bx2_2:
    b32: tcgen05_ld_sync_aligned_16x32bx2
class tcgen05_ld_sync_aligned_16x32bx2_3:
    b32: tcgen05_ld_sync_aligned_16x32bx2; pack__16b: tcgen05_ld_sync_aligned_16x32bx2_2
class tcgen05_ld_sync_aligned_16x32bx2_x2:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Load registers asynchronously from tensor memory; complete after tcgen05.wait::ld. Requires sm_100f or sm_110f."
class tcgen05_ld_sync_aligned_16x32bx2_x2_pack_16b:
    b32: tcgen05_ld_sync_aligned_16x32bx2_x2
class tcgen05_ld_sync_aligned_16x32bx2_x2_2:
    b32: tcgen05_ld_sync_aligned_16x32bx2_x2; pack__16b: tcgen05_ld_sync_aligned_16x32bx2_x2_pack_16b
class tcgen05_ld_sync_aligned_16x32bx2_x4:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Load registers asynchronously from tensor memory; complete after tcgen05.wait::ld. Requires sm_100f or sm_110f."
class tcgen05_ld_sync_aligned_16x32bx2_x4_pack_16b:
    b32: tcgen05_ld_sync_aligned_16x32bx2_x4
class tcgen05_ld_sync_aligned_16x32bx2_x4_2:
    b32: tcgen05_ld_sync_aligned_16x32bx2_x4; pack__16b: tcgen05_ld_sync_aligned_16x32bx2_x4_pack_16b
class tcgen05_ld_sync_aligned_16x32bx2_4:
    x1: tcgen05_ld_sync_aligned_16x32bx2_x1_2; x128: tcgen05_ld_sync_aligned_16x32bx2_3; x16: tcgen05_ld_sync_aligned_16x32bx2_3; x2: tcgen05_ld_sync_aligned_16x32bx2_x2_2; x32: tcgen05_ld_sync_aligned_16x32bx2_3; x4: tcgen05_ld_sync_aligned_16x32bx2_x4_2; x64: tcgen05_ld_sync_aligned_16x32bx2_3; x8: tcgen05_ld_sync_aligned_16x32bx2_3
class tcgen05_ld_sync_aligned_10:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Load registers asynchronously from tensor memory; complete after tcgen05.wait::ld. Requires sm_100f or sm_110f."
class tcgen05_ld_sync_aligned_11:
    b32: tcgen05_ld_sync_aligned_10
class tcgen05_ld_sync_aligned_12:
    b32: tcgen05_ld_sync_aligned_10; pack__16b: tcgen05_ld_sync_aligned_11
class tcgen05_ld_sync_aligned_13:
    x1: tcgen05_ld_sync_aligned_12; x128: tcgen05_ld_sync_aligned_6; x16: tcgen05_ld_sync_aligned_6; x2: tcgen05_ld_sync_aligned_3; x32: tcgen05_ld_sync_aligned_6; x4: tcgen05_ld_sync_aligned_9; x64: tcgen05_ld_sync_aligned_6; x8: tcgen05_ld_sync_aligned_6
class tcgen05_ld_sync_aligned_14:
    _16x128b: tcgen05_ld_sync_aligned_16x128b; _16x256b: tcgen05_ld_sync_aligned_16x256b; _16x32bx2: tcgen05_ld_sync_aligned_16x32bx2_4; _16x64b: tcgen05_ld_sync_aligned_13; _32x32b: tcgen05_ld_sync_aligned_13
class tcgen05_ld_sync:
    aligned: tcgen05_ld_sync_aligned_14
class tcgen05_ld:
    red: tcgen05_ld_red; sync: tcgen05_ld_sync
class tcgen05_mma:
    def __call__(self, d: In, a_desc: In, b_desc: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., scale_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "Multiply-accumulate in tensor memory asynchronously: d = a * b + d, or a * b if enable_input_d is false. Requires sm_100f or sm_110f."
class tcgen05_mma_2:
    def __call__(self, d: In, a: In, b_desc: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., scale_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "Multiply-accumulate in tensor memory asynchronously: d = a * b + d, or a * b if enable_input_d is false. Requires sm_100f or sm_110f."
class tcgen05_mma_3(tcgen05_mma_2):
    collector__a__discard: tcgen05_mma_2; collector__a__lastuse: tcgen05_mma_2
class tcgen05_mma_4(tcgen05_mma):
    ashift: tcgen05_mma_3; collector__a__discard: tcgen05_mma; collector__a__fill: tcgen05_mma; collector__a__lastuse: tcgen05_mma; collector__a__use: tcgen05_mma
class tcgen05_mma_5:
    def __call__(self, d: In, a_desc: In, b_desc: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "Multiply-accumulate in tensor memory asynchronously: d = a * b + d, or a * b if enable_input_d is false. Requires sm_100f or sm_110f."
class tcgen05_mma_6:
    def __call__(self, d: In, a: In, b_desc: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "Multiply-accumulate in tensor memory asynchronously: d = a * b + d, or a * b if enable_input_d is false. Requires sm_100f or sm_110f."
class tcgen05_mma_7(tcgen05_mma_6):
    collector__a__discard: tcgen05_mma_6; collector__a__lastuse: tcgen05_mma_6
class tcgen05_mma_8(tcgen05_mma_5):
    ashift: tcgen05_mma_7; collector__a__discard: tcgen05_mma_5; collector__a__fill: tcgen05_mma_5; collector__a__lastuse: tcgen05_mma_5; collector__a__use: tcgen05_mma_5
class tcgen05_mma_9:
    def __call__(self, d: In, a_desc: In, b_desc: In, idesc: In, scale_a: In, scale_b: In, enable_input_d: In, /, *, guard: Guard = ...) -> None:
        "Multiply-accumulate in tensor memory asynchronously: d = a * b + d, or a * b if enable_input_d is false. Requires sm_100f or sm_110f."
class tcgen05_mma_10(tcgen05_mma_9):
    collector__a__discard: tcgen05_mma_9; collector__a__fill: tcgen05_mma_9; collector__a__lastuse: tcgen05_mma_9; collector__a__use: tcgen05_mma_9
class tcgen05_mma_11(tcgen05_mma_9):
    block32: tcgen05_mma_10; collector__a__discard: tcgen05_mma_9; collector__a__fill: tcgen05_mma_9; collector__a__lastuse: tcgen05_mma_9; collector__a__use: tcgen05_mma_9; scale_vec__2X: tcgen05_mma_10
class tcgen05_mma_12:
    block_scale: tcgen05_mma_11
class tcgen05_mma_13:
    block16: tcgen05_mma_10; block32: tcgen05_mma_10; scale_vec__2X: tcgen05_mma_10; scale_vec__4X: tcgen05_mma_10
class tcgen05_mma_14:
    block_scale: tcgen05_mma_13
class tcgen05_mma_15(tcgen05_mma_9):
    block32: tcgen05_mma_10; collector__a__discard: tcgen05_mma_9; collector__a__fill: tcgen05_mma_9; collector__a__lastuse: tcgen05_mma_9; collector__a__use: tcgen05_mma_9; scale_vec__1X: tcgen05_mma_10
class tcgen05_mma_16:
    block_scale: tcgen05_mma_15
class tcgen05_mma_17:
    kind__f16: tcgen05_mma_4; kind__f8f6f4: tcgen05_mma_8; kind__i8: tcgen05_mma_8; kind__mxf4: tcgen05_mma_12; kind__mxf4nvf4: tcgen05_mma_14; kind__mxf8f6f4: tcgen05_mma_16; kind__tf32: tcgen05_mma_4
class tcgen05_mma_sp:
    def __call__(self, d: In, a_desc: In, b_desc: In, metadata: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., scale_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "Multiply-accumulate in tensor memory asynchronously: d = a * b + d, or a * b if enable_input_d is false. Requires sm_100f or sm_110f."
class tcgen05_mma_sp_2:
    def __call__(self, d: In, a: In, b_desc: In, metadata: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., scale_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "Multiply-accumulate in tensor memory asynchronously: d = a * b + d, or a * b if enable_input_d is false. Requires sm_100f or sm_110f."
class tcgen05_mma_sp_3(tcgen05_mma_sp_2):
    collector__a__discard: tcgen05_mma_sp_2; collector__a__lastuse: tcgen05_mma_sp_2
class tcgen05_mma_sp_4(tcgen05_mma_sp):
    ashift: tcgen05_mma_sp_3; collector__a__discard: tcgen05_mma_sp; collector__a__fill: tcgen05_mma_sp; collector__a__lastuse: tcgen05_mma_sp; collector__a__use: tcgen05_mma_sp
class tcgen05_mma_sp_5:
    def __call__(self, d: In, a_desc: In, b_desc: In, metadata: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "Multiply-accumulate in tensor memory asynchronously: d = a * b + d, or a * b if enable_input_d is false. Requires sm_100f or sm_110f."
class tcgen05_mma_sp_6:
    def __call__(self, d: In, a: In, b_desc: In, metadata: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "Multiply-accumulate in tensor memory asynchronously: d = a * b + d, or a * b if enable_input_d is false. Requires sm_100f or sm_110f."
class tcgen05_mma_sp_7(tcgen05_mma_sp_6):
    collector__a__discard: tcgen05_mma_sp_6; collector__a__lastuse: tcgen05_mma_sp_6
class tcgen05_mma_sp_8(tcgen05_mma_sp_5):
    ashift: tcgen05_mma_sp_7; collector__a__discard: tcgen05_mma_sp_5; collector__a__fill: tcgen05_mma_sp_5; collector__a__lastuse: tcgen05_mma_sp_5; collector__a__use: tcgen05_mma_sp_5
class tcgen05_mma_sp_9:
    def __call__(self, d: In, a_desc: In, b_desc: In, metadata: In, idesc: In, scale_a: In, scale_b: In, enable_input_d: In, /, *, guard: Guard = ...) -> None:
        "Multiply-accumulate in tensor memory asynchronously: d = a * b + d, or a * b if enable_input_d is false. Requires sm_100f or sm_110f."
class tcgen05_mma_sp_10(tcgen05_mma_sp_9):
    collector__a__discard: tcgen05_mma_sp_9; collector__a__fill: tcgen05_mma_sp_9; collector__a__lastuse: tcgen05_mma_sp_9; collector__a__use: tcgen05_mma_sp_9
class tcgen05_mma_sp_11(tcgen05_mma_sp_9):
    block32: tcgen05_mma_sp_10; collector__a__discard: tcgen05_mma_sp_9; collector__a__fill: tcgen05_mma_sp_9; collector__a__lastuse: tcgen05_mma_sp_9; collector__a__use: tcgen05_mma_sp_9; scale_vec__2X: tcgen05_mma_sp_10
class tcgen05_mma_sp_12:
    block_scale: tcgen05_mma_sp_11
class tcgen05_mma_sp_13:
    block16: tcgen05_mma_sp_10; block32: tcgen05_mma_sp_10; scale_vec__2X: tcgen05_mma_sp_10; scale_vec__4X: tcgen05_mma_sp_10
class tcgen05_mma_sp_14:
    block_scale: tcgen05_mma_sp_13
class tcgen05_mma_sp_15(tcgen05_mma_sp_9):
    block32: tcgen05_mma_sp_10; collector__a__discard: tcgen05_mma_sp_9; collector__a__fill: tcgen05_mma_sp_9; collector__a__lastuse: tcgen05_mma_sp_9; collector__a__use: tcgen05_mma_sp_9; scale_vec__1X: tcgen05_mma_sp_10
class tcgen05_mma_sp_16:
    block_scale: tcgen05_mma_sp_15
class tcgen05_mma_sp_17:
    kind__f16: tcgen05_mma_sp_4; kind__f8f6f4: tcgen05_mma_sp_8; kind__i8: tcgen05_mma_sp_8; kind__mxf4: tcgen05_mma_sp_12; kind__mxf4nvf4: tcgen05_mma_sp_14; kind__mxf8f6f4: tcgen05_mma_sp_16; kind__tf32: tcgen05_mma_sp_4
class tcgen05_mma_sp_18:
    cta_group__1: tcgen05_mma_sp_17; cta_group__2: tcgen05_mma_sp_17
class tcgen05_mma_ws_cta_group_1:
    def __call__(self, d: In, a_desc: In, b_desc: In, idesc: In, enable_input_d: In, zero_columns: In = ..., /, *, guard: Guard = ...) -> None:
        "Multiply-accumulate in tensor memory with weight-stationary B, kept for reuse; columns of B may be zeroed. Requires sm_100f or sm_110f."
class tcgen05_mma_ws_cta_group_1_2(tcgen05_mma_ws_cta_group_1):
    collector__b0__discard: tcgen05_mma_ws_cta_group_1; collector__b0__fill: tcgen05_mma_ws_cta_group_1; collector__b0__lastuse: tcgen05_mma_ws_cta_group_1; collector__b0__use: tcgen05_mma_ws_cta_group_1; collector__b1__discard: tcgen05_mma_ws_cta_group_1; collector__b1__fill: tcgen05_mma_ws_cta_group_1; collector__b1__lastuse: tcgen05_mma_ws_cta_group_1; collector__b1__use: tcgen05_mma_ws_cta_group_1; collector__b2__discard: tcgen05_mma_ws_cta_group_1; collector__b2__fill: tcgen05_mma_ws_cta_group_1; collector__b2__lastuse: tcgen05_mma_ws_cta_group_1; collector__b2__use: tcgen05_mma_ws_cta_group_1; collector__b3__discard: tcgen05_mma_ws_cta_group_1; collector__b3__fill: tcgen05_mma_ws_cta_group_1; collector__b3__lastuse: tcgen05_mma_ws_cta_group_1; collector__b3__use: tcgen05_mma_ws_cta_group_1
class tcgen05_mma_ws_cta_group_1_3:
    kind__f16: tcgen05_mma_ws_cta_group_1_2; kind__f8f6f4: tcgen05_mma_ws_cta_group_1_2; kind__i8: tcgen05_mma_ws_cta_group_1_2; kind__tf32: tcgen05_mma_ws_cta_group_1_2
class tcgen05_mma_ws_sp_cta_group_1:
    def __call__(self, d: In, a_desc: In, b_desc: In, metadata: In, idesc: In, enable_input_d: In, zero_columns: In = ..., /, *, guard: Guard = ...) -> None:
        "Multiply-accumulate in tensor memory with weight-stationary B, kept for reuse; columns of B may be zeroed. Requires sm_100f or sm_110f."
class tcgen05_mma_ws_sp_cta_group_1_2(tcgen05_mma_ws_sp_cta_group_1):
    collector__b0__discard: tcgen05_mma_ws_sp_cta_group_1; collector__b0__fill: tcgen05_mma_ws_sp_cta_group_1; collector__b0__lastuse: tcgen05_mma_ws_sp_cta_group_1; collector__b0__use: tcgen05_mma_ws_sp_cta_group_1; collector__b1__discard: tcgen05_mma_ws_sp_cta_group_1; collector__b1__fill: tcgen05_mma_ws_sp_cta_group_1; collector__b1__lastuse: tcgen05_mma_ws_sp_cta_group_1; collector__b1__use: tcgen05_mma_ws_sp_cta_group_1; collector__b2__discard: tcgen05_mma_ws_sp_cta_group_1; collector__b2__fill: tcgen05_mma_ws_sp_cta_group_1; collector__b2__lastuse: tcgen05_mma_ws_sp_cta_group_1; collector__b2__use: tcgen05_mma_ws_sp_cta_group_1; collector__b3__discard: tcgen05_mma_ws_sp_cta_group_1; collector__b3__fill: tcgen05_mma_ws_sp_cta_group_1; collector__b3__lastuse: tcgen05_mma_ws_sp_cta_group_1; collector__b3__use: tcgen05_mma_ws_sp_cta_group_1
class tcgen05_mma_ws_sp_cta_group_1_3:
    kind__f16: tcgen05_mma_ws_sp_cta_group_1_2; kind__f8f6f4: tcgen05_mma_ws_sp_cta_group_1_2; kind__i8: tcgen05_mma_ws_sp_cta_group_1_2; kind__tf32: tcgen05_mma_ws_sp_cta_group_1_2
class tcgen05_mma_ws_sp:
    cta_group__1: tcgen05_mma_ws_sp_cta_group_1_3
class tcgen05_mma_ws:
    cta_group__1: tcgen05_mma_ws_cta_group_1_3; sp: tcgen05_mma_ws_sp
class tcgen05_mma_18:
    cta_group__1: tcgen05_mma_17; cta_group__2: tcgen05_mma_17; sp: tcgen05_mma_sp_18; ws: tcgen05_mma_ws
class tcgen05_relinquish_alloc_permit:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Relinquish the right of the block to allocate tensor memory. Requires sm_100f or sm_110f."
class tcgen05_relinquish_alloc_permit_2:
    aligned: tcgen05_relinquish_alloc_permit
class tcgen05_relinquish_alloc_permit_3:
    sync: tcgen05_relinquish_alloc_permit_2
class tcgen05_relinquish_alloc_permit_4:
    cta_group__1: tcgen05_relinquish_alloc_permit_3; cta_group__2: tcgen05_relinquish_alloc_permit_3
class tcgen05_shift:
    def __call__(self, address: In, /, *, guard: Guard = ...) -> None:
        "Shift 32 bytes of 32 rows of tensor memory by one row asynchronously: each row but the last takes the next. Requires sm_100a or sm_103a or sm_110a."
class tcgen05_shift_2:
    down: tcgen05_shift
class tcgen05_shift_3:
    cta_group__1: tcgen05_shift_2; cta_group__2: tcgen05_shift_2
class tcgen05_st_sync_aligned:
    def __call__(self, address: In, a: In, /, *, guard: Guard = ...) -> None:
        "Store registers asynchronously to tensor memory; complete after tcgen05.wait::st. Requires sm_100f or sm_110f."
class tcgen05_st_sync_aligned_2:
    b32: tcgen05_st_sync_aligned
class tcgen05_st_sync_aligned_3:
    b32: tcgen05_st_sync_aligned; unpack__16b: tcgen05_st_sync_aligned_2
class tcgen05_st_sync_aligned_16x128b:
    x1: tcgen05_st_sync_aligned_3; x16: tcgen05_st_sync_aligned_3; x2: tcgen05_st_sync_aligned_3; x32: tcgen05_st_sync_aligned_3; x4: tcgen05_st_sync_aligned_3; x64: tcgen05_st_sync_aligned_3; x8: tcgen05_st_sync_aligned_3
class tcgen05_st_sync_aligned_16x256b:
    x1: tcgen05_st_sync_aligned_3; x16: tcgen05_st_sync_aligned_3; x2: tcgen05_st_sync_aligned_3; x32: tcgen05_st_sync_aligned_3; x4: tcgen05_st_sync_aligned_3; x8: tcgen05_st_sync_aligned_3
class tcgen05_st_sync_aligned_16x32bx2:
    def __call__(self, address: In, second_half: In, a: In, /, *, guard: Guard = ...) -> None:
        "Store registers asynchronously to tensor memory; complete after tcgen05.wait::st. Requires sm_100f or sm_110f."
class tcgen05_st_sync_aligned_16x32bx2_2:
    b32: tcgen05_st_sync_aligned_16x32bx2
class tcgen05_st_sync_aligned_16x32bx2_3:
    b32: tcgen05_st_sync_aligned_16x32bx2; unpack__16b: tcgen05_st_sync_aligned_16x32bx2_2
class tcgen05_st_sync_aligned_16x32bx2_4:
    x1: tcgen05_st_sync_aligned_16x32bx2_3; x128: tcgen05_st_sync_aligned_16x32bx2_3; x16: tcgen05_st_sync_aligned_16x32bx2_3; x2: tcgen05_st_sync_aligned_16x32bx2_3; x32: tcgen05_st_sync_aligned_16x32bx2_3; x4: tcgen05_st_sync_aligned_16x32bx2_3; x64: tcgen05_st_sync_aligned_16x32bx2_3; x8: tcgen05_st_sync_aligned_16x32bx2_3
class tcgen05_st_sync_aligned_4:
    x1: tcgen05_st_sync_aligned_3; x128: tcgen05_st_sync_aligned_3; x16: tcgen05_st_sync_aligned_3; x2: tcgen05_st_sync_aligned_3; x32: tcgen05_st_sync_aligned_3; x4: tcgen05_st_sync_aligned_3; x64: tcgen05_st_sync_aligned_3; x8: tcgen05_st_sync_aligned_3
class tcgen05_st_sync_aligned_5:
    _16x128b: tcgen05_st_sync_aligned_16x128b; _16x256b: tcgen05_st_sync_aligned_16x256b; _16x32bx2: tcgen05_st_sync_aligned_16x32bx2_4; _16x64b: tcgen05_st_sync_aligned_4; _32x32b: tcgen05_st_sync_aligned_4
class tcgen05_st_sync:
    aligned: tcgen05_st_sync_aligned_5
class tcgen05_st:
    sync: tcgen05_st_sync
class tcgen05_2:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Wait until all prior tcgen05.ld, or tcgen05.st, of the thread are complete. Requires sm_100f or sm_110f."
class tcgen05_3:
    aligned: tcgen05_2
class tcgen05_4:
    sync: tcgen05_3
class tcgen05_5:
    alloc: tcgen05_alloc_6; commit: tcgen05_commit_7; cp: tcgen05_cp_7; dealloc: tcgen05_dealloc_5; fence__after_thread_sync: tcgen05; fence__before_thread_sync: tcgen05; ld: tcgen05_ld; mma: tcgen05_mma_18; relinquish_alloc_permit: tcgen05_relinquish_alloc_permit_4; shift: tcgen05_shift_3; st: tcgen05_st; wait__ld: tcgen05_4; wait__st: tcgen05_4
class tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic_release:
    def __call__(self, dst: In, src: In, size: In, /, *, guard: Guard = ...) -> None:
        "Copy a tensor map from shared to global memory and release it to the tensormap proxy; whole warp. Requires sm_90."
class tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic_release_2:
    aligned: tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic_release
class tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic_release_3:
    sync: tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic_release_2
class tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic_release_4:
    cluster: tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic_release_3; cta: tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic_release_3; gpu: tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic_release_3; sys: tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic_release_3
class tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic:
    release: tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic_release_4
class tensormap_cp_fenceproxy_global_shared_cta:
    tensormap__generic: tensormap_cp_fenceproxy_global_shared_cta_tensormap_generic
class tensormap_cp_fenceproxy_global:
    shared__cta: tensormap_cp_fenceproxy_global_shared_cta
class tensormap_cp_fenceproxy:
    global_: tensormap_cp_fenceproxy_global
class tensormap_replace_tile:
    def __call__(self, map: In, ord: In, value: In, /, *, guard: Guard = ...) -> None:
        "Replace a field of a tensor map in memory. Requires sm_90a or sm_100f or sm_110f or sm_120f."
class tensormap_replace_tile_2:
    b32: tensormap_replace_tile
class tensormap_replace_tile_3:
    b1024: tensormap_replace_tile_2
class tensormap_replace_tile_4:
    b1024: tensormap_replace_tile_2; global_: tensormap_replace_tile_3; shared__cta: tensormap_replace_tile_3
class tensormap_replace_tile_5:
    def __call__(self, map: In, value: In, /, *, guard: Guard = ...) -> None:
        "Replace a field of a tensor map in memory. Requires sm_90a or sm_100f or sm_110f or sm_120f."
class tensormap_replace_tile_6:
    b32: tensormap_replace_tile_5
class tensormap_replace_tile_7:
    b1024: tensormap_replace_tile_6
class tensormap_replace_tile_8:
    b1024: tensormap_replace_tile_6; global_: tensormap_replace_tile_7; shared__cta: tensormap_replace_tile_7
class tensormap_replace_tile_global_address:
    b64: tensormap_replace_tile_5
class tensormap_replace_tile_global_address_2:
    b1024: tensormap_replace_tile_global_address
class tensormap_replace_tile_global_address_3:
    b1024: tensormap_replace_tile_global_address; global_: tensormap_replace_tile_global_address_2; shared__cta: tensormap_replace_tile_global_address_2
class tensormap_replace_tile_global_stride:
    b64: tensormap_replace_tile
class tensormap_replace_tile_global_stride_2:
    b1024: tensormap_replace_tile_global_stride
class tensormap_replace_tile_global_stride_3:
    b1024: tensormap_replace_tile_global_stride; global_: tensormap_replace_tile_global_stride_2; shared__cta: tensormap_replace_tile_global_stride_2
class tensormap_replace_tile_9:
    box_dim: tensormap_replace_tile_4; element_stride: tensormap_replace_tile_4; elemtype: tensormap_replace_tile_8; fill_mode: tensormap_replace_tile_8; global_address: tensormap_replace_tile_global_address_3; global_dim: tensormap_replace_tile_4; global_stride: tensormap_replace_tile_global_stride_3; interleave_layout: tensormap_replace_tile_8; rank: tensormap_replace_tile_8; swizzle_atomicity: tensormap_replace_tile_8; swizzle_mode: tensormap_replace_tile_8
class tensormap_replace:
    tile: tensormap_replace_tile_9
class tensormap:
    cp_fenceproxy: tensormap_cp_fenceproxy; replace: tensormap_replace
class testp:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Test a floating-point property: finite, infinite, number, notanumber, normal (or zero), or subnormal."
class testp_2:
    f32: testp; f64: testp
class testp_3:
    finite: testp_2; infinite: testp_2; normal: testp_2; notanumber: testp_2; number: testp_2; subnormal: testp_2
class trap:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Abort the kernel with an error."
class vabsdiff:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Absolute difference of words, halves or bytes: d = |a - b|; optionally + c, or the minimum or maximum with c."
class vabsdiff_2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Absolute difference of words, halves or bytes: d = |a - b|; optionally + c, or the minimum or maximum with c."
class vabsdiff_3(vabsdiff):
    add: vabsdiff_2; max: vabsdiff_2; min: vabsdiff_2
class vabsdiff_4(vabsdiff):
    add: vabsdiff_2; max: vabsdiff_2; min: vabsdiff_2; sat: vabsdiff_3
class vabsdiff_5:
    s32: vabsdiff_4; u32: vabsdiff_4
class vabsdiff_6:
    s32: vabsdiff_5; u32: vabsdiff_5
class vabsdiff_7:
    s32: vabsdiff_6; u32: vabsdiff_6
class vabsdiff2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Absolute difference of words, halves or bytes: d = |a - b|; optionally + c, or the minimum or maximum with c."
class vabsdiff2_2(vabsdiff2):
    add: vabsdiff2; sat: vabsdiff2
class vabsdiff2_3:
    s32: vabsdiff2_2; u32: vabsdiff2_2
class vabsdiff2_4:
    s32: vabsdiff2_3; u32: vabsdiff2_3
class vabsdiff2_5:
    s32: vabsdiff2_4; u32: vabsdiff2_4
class vabsdiff4:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Absolute difference of words, halves or bytes: d = |a - b|; optionally + c, or the minimum or maximum with c."
class vabsdiff4_2(vabsdiff4):
    add: vabsdiff4; sat: vabsdiff4
class vabsdiff4_3:
    s32: vabsdiff4_2; u32: vabsdiff4_2
class vabsdiff4_4:
    s32: vabsdiff4_3; u32: vabsdiff4_3
class vabsdiff4_5:
    s32: vabsdiff4_4; u32: vabsdiff4_4
class vadd:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add words, halves or bytes: d = a + b; optionally + c, or the minimum or maximum with c."
class vadd_2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add words, halves or bytes: d = a + b; optionally + c, or the minimum or maximum with c."
class vadd_3(vadd):
    add: vadd_2; max: vadd_2; min: vadd_2
class vadd_4(vadd):
    add: vadd_2; max: vadd_2; min: vadd_2; sat: vadd_3
class vadd_5:
    s32: vadd_4; u32: vadd_4
class vadd_6:
    s32: vadd_5; u32: vadd_5
class vadd_7:
    s32: vadd_6; u32: vadd_6
class vadd2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add words, halves or bytes: d = a + b; optionally + c, or the minimum or maximum with c."
class vadd2_2(vadd2):
    add: vadd2; sat: vadd2
class vadd2_3:
    s32: vadd2_2; u32: vadd2_2
class vadd2_4:
    s32: vadd2_3; u32: vadd2_3
class vadd2_5:
    s32: vadd2_4; u32: vadd2_4
class vadd4:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Add words, halves or bytes: d = a + b; optionally + c, or the minimum or maximum with c."
class vadd4_2(vadd4):
    add: vadd4; sat: vadd4
class vadd4_3:
    s32: vadd4_2; u32: vadd4_2
class vadd4_4:
    s32: vadd4_3; u32: vadd4_3
class vadd4_5:
    s32: vadd4_4; u32: vadd4_4
class vavrg2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Average of halves or bytes: d = (a + b) / 2, rounded to nearest, ties up; .add adds their sum to c."
class vavrg2_2(vavrg2):
    add: vavrg2; sat: vavrg2
class vavrg2_3:
    s32: vavrg2_2; u32: vavrg2_2
class vavrg2_4:
    s32: vavrg2_3; u32: vavrg2_3
class vavrg2_5:
    s32: vavrg2_4; u32: vavrg2_4
class vavrg4:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Average of halves or bytes: d = (a + b) / 2, rounded to nearest, ties up; .add adds their sum to c."
class vavrg4_2(vavrg4):
    add: vavrg4; sat: vavrg4
class vavrg4_3:
    s32: vavrg4_2; u32: vavrg4_2
class vavrg4_4:
    s32: vavrg4_3; u32: vavrg4_3
class vavrg4_5:
    s32: vavrg4_4; u32: vavrg4_4
class vmad:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Multiply-add: d = a * b + c (.po: + 1), shifted right by 7 or 15; .sat clamps to s32 or u32."
class vmad_2(vmad):
    shr15: vmad; shr7: vmad
class vmad_3(vmad):
    sat: vmad_2; shr15: vmad; shr7: vmad
class vmad_4(vmad):
    po: vmad_3; sat: vmad_2; shr15: vmad; shr7: vmad
class vmad_5:
    s32: vmad_4; u32: vmad_4
class vmad_6:
    s32: vmad_5; u32: vmad_5
class vmad_7:
    s32: vmad_6; u32: vmad_6
class vmax:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Maximum of words, halves or bytes: d = max(a, b); optionally + c, or the minimum or maximum with c."
class vmax_2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Maximum of words, halves or bytes: d = max(a, b); optionally + c, or the minimum or maximum with c."
class vmax_3(vmax):
    add: vmax_2; max: vmax_2; min: vmax_2
class vmax_4(vmax):
    add: vmax_2; max: vmax_2; min: vmax_2; sat: vmax_3
class vmax_5:
    s32: vmax_4; u32: vmax_4
class vmax_6:
    s32: vmax_5; u32: vmax_5
class vmax_7:
    s32: vmax_6; u32: vmax_6
class vmax2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Maximum of words, halves or bytes: d = max(a, b); optionally + c, or the minimum or maximum with c."
class vmax2_2(vmax2):
    add: vmax2; sat: vmax2
class vmax2_3:
    s32: vmax2_2; u32: vmax2_2
class vmax2_4:
    s32: vmax2_3; u32: vmax2_3
class vmax2_5:
    s32: vmax2_4; u32: vmax2_4
class vmax4:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Maximum of words, halves or bytes: d = max(a, b); optionally + c, or the minimum or maximum with c."
class vmax4_2(vmax4):
    add: vmax4; sat: vmax4
class vmax4_3:
    s32: vmax4_2; u32: vmax4_2
class vmax4_4:
    s32: vmax4_3; u32: vmax4_3
class vmax4_5:
    s32: vmax4_4; u32: vmax4_4
class vmin:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Minimum of words, halves or bytes: d = min(a, b); optionally + c, or the minimum or maximum with c."
class vmin_2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Minimum of words, halves or bytes: d = min(a, b); optionally + c, or the minimum or maximum with c."
class vmin_3(vmin):
    add: vmin_2; max: vmin_2; min: vmin_2
class vmin_4(vmin):
    add: vmin_2; max: vmin_2; min: vmin_2; sat: vmin_3
class vmin_5:
    s32: vmin_4; u32: vmin_4
class vmin_6:
    s32: vmin_5; u32: vmin_5
class vmin_7:
    s32: vmin_6; u32: vmin_6
class vmin2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Minimum of words, halves or bytes: d = min(a, b); optionally + c, or the minimum or maximum with c."
class vmin2_2(vmin2):
    add: vmin2; sat: vmin2
class vmin2_3:
    s32: vmin2_2; u32: vmin2_2
class vmin2_4:
    s32: vmin2_3; u32: vmin2_3
class vmin2_5:
    s32: vmin2_4; u32: vmin2_4
class vmin4:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Minimum of words, halves or bytes: d = min(a, b); optionally + c, or the minimum or maximum with c."
class vmin4_2(vmin4):
    add: vmin4; sat: vmin4
class vmin4_3:
    s32: vmin4_2; u32: vmin4_2
class vmin4_4:
    s32: vmin4_3; u32: vmin4_3
class vmin4_5:
    s32: vmin4_4; u32: vmin4_4
class vote:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Vote across a warp, for targets before sm_70: true in all lanes, in any lane, or in all or no lanes (.uni)."
class vote_2:
    pred: vote
class vote_ballot_b32:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Collect a predicate from the lanes of a warp as a bit mask, for targets before sm_70."
class vote_ballot:
    b32: vote_ballot_b32
class vote_sync:
    def __call__(self, a: In, membermask: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Vote across a warp: d = true if a holds in all lanes, in any lane, or in all or no lanes (.uni)."
class vote_sync_2:
    pred: vote_sync
class vote_sync_ballot_b32:
    def __call__(self, a: In, membermask: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Collect a predicate from all lanes of a warp: d = a bit mask of the lanes where it holds."
class vote_sync_ballot:
    b32: vote_sync_ballot_b32
class vote_sync_3:
    all: vote_sync_2; any: vote_sync_2; ballot: vote_sync_ballot; uni: vote_sync_2
class vote_3:
    all: vote_2; any: vote_2; ballot: vote_ballot; sync: vote_sync_3; uni: vote_2
class vset:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare words, halves or bytes: d = (a cmp b) ? 1 : 0; optionally + c, or the minimum or maximum with c."
class vset_2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare words, halves or bytes: d = (a cmp b) ? 1 : 0; optionally + c, or the minimum or maximum with c."
class vset_3(vset):
    add: vset_2; max: vset_2; min: vset_2
class vset_4:
    eq: vset_3; ge: vset_3; gt: vset_3; le: vset_3; lt: vset_3; ne: vset_3
class vset_5:
    s32: vset_4; u32: vset_4
class vset_6:
    s32: vset_5; u32: vset_5
class vset2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare words, halves or bytes: d = (a cmp b) ? 1 : 0; optionally + c, or the minimum or maximum with c."
class vset2_2(vset2):
    add: vset2
class vset2_3:
    eq: vset2_2; ge: vset2_2; gt: vset2_2; le: vset2_2; lt: vset2_2; ne: vset2_2
class vset2_4:
    s32: vset2_3; u32: vset2_3
class vset2_5:
    s32: vset2_4; u32: vset2_4
class vset4:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Compare words, halves or bytes: d = (a cmp b) ? 1 : 0; optionally + c, or the minimum or maximum with c."
class vset4_2(vset4):
    add: vset4
class vset4_3:
    eq: vset4_2; ge: vset4_2; gt: vset4_2; le: vset4_2; lt: vset4_2; ne: vset4_2
class vset4_4:
    s32: vset4_3; u32: vset4_3
class vset4_5:
    s32: vset4_4; u32: vset4_4
class vshl:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Shift left: d = a << b; optionally + c, or the minimum or maximum with c."
class vshl_2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Shift left: d = a << b; optionally + c, or the minimum or maximum with c."
class vshl_3(vshl):
    add: vshl_2; max: vshl_2; min: vshl_2
class vshl_4:
    clamp: vshl_3; wrap: vshl_3
class vshl_5:
    clamp: vshl_3; sat: vshl_4; wrap: vshl_3
class vshl_6:
    u32: vshl_5
class vshl_7:
    s32: vshl_6; u32: vshl_6
class vshl_8:
    s32: vshl_7; u32: vshl_7
class vshr:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Shift right, arithmetic for signed a: d = a >> b; optionally + c, or the minimum or maximum with c."
class vshr_2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Shift right, arithmetic for signed a: d = a >> b; optionally + c, or the minimum or maximum with c."
class vshr_3(vshr):
    add: vshr_2; max: vshr_2; min: vshr_2
class vshr_4:
    clamp: vshr_3; wrap: vshr_3
class vshr_5:
    clamp: vshr_3; sat: vshr_4; wrap: vshr_3
class vshr_6:
    u32: vshr_5
class vshr_7:
    s32: vshr_6; u32: vshr_6
class vshr_8:
    s32: vshr_7; u32: vshr_7
class vsub:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Subtract words, halves or bytes: d = a - b; optionally + c, or the minimum or maximum with c."
class vsub_2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Subtract words, halves or bytes: d = a - b; optionally + c, or the minimum or maximum with c."
class vsub_3(vsub):
    add: vsub_2; max: vsub_2; min: vsub_2
class vsub_4(vsub):
    add: vsub_2; max: vsub_2; min: vsub_2; sat: vsub_3
class vsub_5:
    s32: vsub_4; u32: vsub_4
class vsub_6:
    s32: vsub_5; u32: vsub_5
class vsub_7:
    s32: vsub_6; u32: vsub_6
class vsub2:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Subtract words, halves or bytes: d = a - b; optionally + c, or the minimum or maximum with c."
class vsub2_2(vsub2):
    add: vsub2; sat: vsub2
class vsub2_3:
    s32: vsub2_2; u32: vsub2_2
class vsub2_4:
    s32: vsub2_3; u32: vsub2_3
class vsub2_5:
    s32: vsub2_4; u32: vsub2_4
class vsub4:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Subtract words, halves or bytes: d = a - b; optionally + c, or the minimum or maximum with c."
class vsub4_2(vsub4):
    add: vsub4; sat: vsub4
class vsub4_3:
    s32: vsub4_2; u32: vsub4_2
class vsub4_4:
    s32: vsub4_3; u32: vsub4_3
class vsub4_5:
    s32: vsub4_4; u32: vsub4_4
class wgmma_commit_group_sync_aligned:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Commit all prior wgmma.mma_async as a wgmma-group. Requires sm_90a."
class wgmma_commit_group_sync:
    aligned: wgmma_commit_group_sync_aligned
class wgmma_commit_group:
    sync: wgmma_commit_group_sync
class wgmma_fence_sync_aligned:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Order prior register accesses before subsequent wgmma.mma_async; required before the first. Requires sm_90a."
class wgmma_fence_sync:
    aligned: wgmma_fence_sync_aligned
class wgmma_fence:
    sync: wgmma_fence_sync
class wgmma_mma_async_sp_sync_aligned:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, scale_a: In, scale_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sp_sync_aligned_2:
    tf32: wgmma_mma_async_sp_sync_aligned
class wgmma_mma_async_sp_sync_aligned_3:
    tf32: wgmma_mma_async_sp_sync_aligned_2
class wgmma_mma_async_sp_sync_aligned_4:
    f32: wgmma_mma_async_sp_sync_aligned_3
class wgmma_mma_async_sp_sync_aligned_5:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, scale_a: In, scale_b: In, trans_a: In, trans_b: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sp_sync_aligned_6:
    f16: wgmma_mma_async_sp_sync_aligned_5
class wgmma_mma_async_sp_sync_aligned_7:
    f16: wgmma_mma_async_sp_sync_aligned_6
class wgmma_mma_async_sp_sync_aligned_8:
    bf16: wgmma_mma_async_sp_sync_aligned_5
class wgmma_mma_async_sp_sync_aligned_9:
    bf16: wgmma_mma_async_sp_sync_aligned_8; f16: wgmma_mma_async_sp_sync_aligned_6
class wgmma_mma_async_sp_sync_aligned_10:
    f16: wgmma_mma_async_sp_sync_aligned_7; f32: wgmma_mma_async_sp_sync_aligned_9
class wgmma_mma_async_sp_sync_aligned_11:
    e4m3: wgmma_mma_async_sp_sync_aligned; e5m2: wgmma_mma_async_sp_sync_aligned
class wgmma_mma_async_sp_sync_aligned_12:
    e4m3: wgmma_mma_async_sp_sync_aligned_11; e5m2: wgmma_mma_async_sp_sync_aligned_11
class wgmma_mma_async_sp_sync_aligned_13:
    f16: wgmma_mma_async_sp_sync_aligned_12; f32: wgmma_mma_async_sp_sync_aligned_12
class wgmma_mma_async_sp_sync_aligned_14:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sp_sync_aligned_15:
    s8: wgmma_mma_async_sp_sync_aligned_14; u8: wgmma_mma_async_sp_sync_aligned_14
class wgmma_mma_async_sp_sync_aligned_16:
    s8: wgmma_mma_async_sp_sync_aligned_15; u8: wgmma_mma_async_sp_sync_aligned_15
class wgmma_mma_async_sp_sync_aligned_17:
    s32: wgmma_mma_async_sp_sync_aligned_16
class wgmma_mma_async_sp_sync_aligned_18:
    f16: wgmma_mma_async_sp_sync_aligned_12; f32: wgmma_mma_async_sp_sync_aligned_12; s32: wgmma_mma_async_sp_sync_aligned_16; satfinite: wgmma_mma_async_sp_sync_aligned_17
class wgmma_mma_async_sp_sync_aligned_19:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, scale_a: In, scale_b: In, trans_a: In, trans_b: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sp_sync_aligned_20:
    f16: wgmma_mma_async_sp_sync_aligned_19
class wgmma_mma_async_sp_sync_aligned_m64n16k32_f16:
    f16: wgmma_mma_async_sp_sync_aligned_20
class wgmma_mma_async_sp_sync_aligned_m64n16k32:
    f16: wgmma_mma_async_sp_sync_aligned_m64n16k32_f16; f32: wgmma_mma_async_sp_sync_aligned_9
class wgmma_mma_async_sp_sync_aligned_21:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, scale_a: In, scale_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sp_sync_aligned_22:
    e4m3: wgmma_mma_async_sp_sync_aligned_21; e5m2: wgmma_mma_async_sp_sync_aligned_21
class wgmma_mma_async_sp_sync_aligned_23:
    e4m3: wgmma_mma_async_sp_sync_aligned_22; e5m2: wgmma_mma_async_sp_sync_aligned_22
class wgmma_mma_async_sp_sync_aligned_m64n16k64:
    f16: wgmma_mma_async_sp_sync_aligned_23; f32: wgmma_mma_async_sp_sync_aligned_12; s32: wgmma_mma_async_sp_sync_aligned_16; satfinite: wgmma_mma_async_sp_sync_aligned_17
class wgmma_mma_async_sp_sync_aligned_m64n8k16_f32_tf32:
    tf32: wgmma_mma_async_sp_sync_aligned_21
class wgmma_mma_async_sp_sync_aligned_m64n8k16_f32:
    tf32: wgmma_mma_async_sp_sync_aligned_m64n8k16_f32_tf32
class wgmma_mma_async_sp_sync_aligned_m64n8k16:
    f32: wgmma_mma_async_sp_sync_aligned_m64n8k16_f32
class wgmma_mma_async_sp_sync_aligned_m64n8k32_f16_f16_f16:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, scale_a: In, scale_b: In, trans_a: In, trans_b: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sp_sync_aligned_m64n8k32_f16_f16:
    f16: wgmma_mma_async_sp_sync_aligned_m64n8k32_f16_f16_f16
class wgmma_mma_async_sp_sync_aligned_m64n8k32_f16:
    f16: wgmma_mma_async_sp_sync_aligned_m64n8k32_f16_f16
class wgmma_mma_async_sp_sync_aligned_m64n8k32_f32_bf16:
    bf16: wgmma_mma_async_sp_sync_aligned_19
class wgmma_mma_async_sp_sync_aligned_m64n8k32_f32:
    bf16: wgmma_mma_async_sp_sync_aligned_m64n8k32_f32_bf16; f16: wgmma_mma_async_sp_sync_aligned_20
class wgmma_mma_async_sp_sync_aligned_m64n8k32:
    f16: wgmma_mma_async_sp_sync_aligned_m64n8k32_f16; f32: wgmma_mma_async_sp_sync_aligned_m64n8k32_f32
class wgmma_mma_async_sp_sync_aligned_m64n8k64_f16:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, scale_a: In, scale_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sp_sync_aligned_m64n8k64_f16_2:
    e4m3: wgmma_mma_async_sp_sync_aligned_m64n8k64_f16; e5m2: wgmma_mma_async_sp_sync_aligned_m64n8k64_f16
class wgmma_mma_async_sp_sync_aligned_m64n8k64_f16_3:
    e4m3: wgmma_mma_async_sp_sync_aligned_m64n8k64_f16_2; e5m2: wgmma_mma_async_sp_sync_aligned_m64n8k64_f16_2
class wgmma_mma_async_sp_sync_aligned_m64n8k64:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sp_sync_aligned_m64n8k64_2:
    s8: wgmma_mma_async_sp_sync_aligned_m64n8k64; u8: wgmma_mma_async_sp_sync_aligned_m64n8k64
class wgmma_mma_async_sp_sync_aligned_m64n8k64_3:
    s8: wgmma_mma_async_sp_sync_aligned_m64n8k64_2; u8: wgmma_mma_async_sp_sync_aligned_m64n8k64_2
class wgmma_mma_async_sp_sync_aligned_m64n8k64_satfinite:
    s32: wgmma_mma_async_sp_sync_aligned_m64n8k64_3
class wgmma_mma_async_sp_sync_aligned_m64n8k64_4:
    f16: wgmma_mma_async_sp_sync_aligned_m64n8k64_f16_3; f32: wgmma_mma_async_sp_sync_aligned_23; s32: wgmma_mma_async_sp_sync_aligned_m64n8k64_3; satfinite: wgmma_mma_async_sp_sync_aligned_m64n8k64_satfinite
class wgmma_mma_async_sp_sync_aligned_24:
    m64n104k16: wgmma_mma_async_sp_sync_aligned_4; m64n104k32: wgmma_mma_async_sp_sync_aligned_10; m64n104k64: wgmma_mma_async_sp_sync_aligned_13; m64n112k16: wgmma_mma_async_sp_sync_aligned_4; m64n112k32: wgmma_mma_async_sp_sync_aligned_10; m64n112k64: wgmma_mma_async_sp_sync_aligned_18; m64n120k16: wgmma_mma_async_sp_sync_aligned_4; m64n120k32: wgmma_mma_async_sp_sync_aligned_10; m64n120k64: wgmma_mma_async_sp_sync_aligned_13; m64n128k16: wgmma_mma_async_sp_sync_aligned_4; m64n128k32: wgmma_mma_async_sp_sync_aligned_10; m64n128k64: wgmma_mma_async_sp_sync_aligned_18; m64n136k16: wgmma_mma_async_sp_sync_aligned_4; m64n136k32: wgmma_mma_async_sp_sync_aligned_10; m64n136k64: wgmma_mma_async_sp_sync_aligned_13; m64n144k16: wgmma_mma_async_sp_sync_aligned_4; m64n144k32: wgmma_mma_async_sp_sync_aligned_10; m64n144k64: wgmma_mma_async_sp_sync_aligned_18; m64n152k16: wgmma_mma_async_sp_sync_aligned_4; m64n152k32: wgmma_mma_async_sp_sync_aligned_10; m64n152k64: wgmma_mma_async_sp_sync_aligned_13; m64n160k16: wgmma_mma_async_sp_sync_aligned_4; m64n160k32: wgmma_mma_async_sp_sync_aligned_10; m64n160k64: wgmma_mma_async_sp_sync_aligned_18; m64n168k16: wgmma_mma_async_sp_sync_aligned_4; m64n168k32: wgmma_mma_async_sp_sync_aligned_10; m64n168k64: wgmma_mma_async_sp_sync_aligned_13; m64n16k16: wgmma_mma_async_sp_sync_aligned_4; m64n16k32: wgmma_mma_async_sp_sync_aligned_m64n16k32; m64n16k64: wgmma_mma_async_sp_sync_aligned_m64n16k64; m64n176k16: wgmma_mma_async_sp_sync_aligned_4; m64n176k32: wgmma_mma_async_sp_sync_aligned_10; m64n176k64: wgmma_mma_async_sp_sync_aligned_18; m64n184k16: wgmma_mma_async_sp_sync_aligned_4; m64n184k32: wgmma_mma_async_sp_sync_aligned_10; m64n184k64: wgmma_mma_async_sp_sync_aligned_13; m64n192k16: wgmma_mma_async_sp_sync_aligned_4; m64n192k32: wgmma_mma_async_sp_sync_aligned_10; m64n192k64: wgmma_mma_async_sp_sync_aligned_18; m64n200k16: wgmma_mma_async_sp_sync_aligned_4; m64n200k32: wgmma_mma_async_sp_sync_aligned_10; m64n200k64: wgmma_mma_async_sp_sync_aligned_13; m64n208k16: wgmma_mma_async_sp_sync_aligned_4; m64n208k32: wgmma_mma_async_sp_sync_aligned_10; m64n208k64: wgmma_mma_async_sp_sync_aligned_18; m64n216k16: wgmma_mma_async_sp_sync_aligned_4; m64n216k32: wgmma_mma_async_sp_sync_aligned_10; m64n216k64: wgmma_mma_async_sp_sync_aligned_13; m64n224k16: wgmma_mma_async_sp_sync_aligned_4; m64n224k32: wgmma_mma_async_sp_sync_aligned_10; m64n224k64: wgmma_mma_async_sp_sync_aligned_18; m64n232k16: wgmma_mma_async_sp_sync_aligned_4; m64n232k32: wgmma_mma_async_sp_sync_aligned_10; m64n232k64: wgmma_mma_async_sp_sync_aligned_13; m64n240k16: wgmma_mma_async_sp_sync_aligned_4; m64n240k32: wgmma_mma_async_sp_sync_aligned_10; m64n240k64: wgmma_mma_async_sp_sync_aligned_18; m64n248k16: wgmma_mma_async_sp_sync_aligned_4; m64n248k32: wgmma_mma_async_sp_sync_aligned_10; m64n248k64: wgmma_mma_async_sp_sync_aligned_13; m64n24k16: wgmma_mma_async_sp_sync_aligned_4; m64n24k32: wgmma_mma_async_sp_sync_aligned_10; m64n24k64: wgmma_mma_async_sp_sync_aligned_18; m64n256k16: wgmma_mma_async_sp_sync_aligned_4; m64n256k32: wgmma_mma_async_sp_sync_aligned_10; m64n256k64: wgmma_mma_async_sp_sync_aligned_18; m64n32k16: wgmma_mma_async_sp_sync_aligned_4; m64n32k32: wgmma_mma_async_sp_sync_aligned_10; m64n32k64: wgmma_mma_async_sp_sync_aligned_18; m64n40k16: wgmma_mma_async_sp_sync_aligned_4; m64n40k32: wgmma_mma_async_sp_sync_aligned_10; m64n40k64: wgmma_mma_async_sp_sync_aligned_13; m64n48k16: wgmma_mma_async_sp_sync_aligned_4; m64n48k32: wgmma_mma_async_sp_sync_aligned_10; m64n48k64: wgmma_mma_async_sp_sync_aligned_18; m64n56k16: wgmma_mma_async_sp_sync_aligned_4; m64n56k32: wgmma_mma_async_sp_sync_aligned_10; m64n56k64: wgmma_mma_async_sp_sync_aligned_13; m64n64k16: wgmma_mma_async_sp_sync_aligned_4; m64n64k32: wgmma_mma_async_sp_sync_aligned_10; m64n64k64: wgmma_mma_async_sp_sync_aligned_18; m64n72k16: wgmma_mma_async_sp_sync_aligned_4; m64n72k32: wgmma_mma_async_sp_sync_aligned_10; m64n72k64: wgmma_mma_async_sp_sync_aligned_13; m64n80k16: wgmma_mma_async_sp_sync_aligned_4; m64n80k32: wgmma_mma_async_sp_sync_aligned_10; m64n80k64: wgmma_mma_async_sp_sync_aligned_18; m64n88k16: wgmma_mma_async_sp_sync_aligned_4; m64n88k32: wgmma_mma_async_sp_sync_aligned_10; m64n88k64: wgmma_mma_async_sp_sync_aligned_13; m64n8k16: wgmma_mma_async_sp_sync_aligned_m64n8k16; m64n8k32: wgmma_mma_async_sp_sync_aligned_m64n8k32; m64n8k64: wgmma_mma_async_sp_sync_aligned_m64n8k64_4; m64n96k16: wgmma_mma_async_sp_sync_aligned_4; m64n96k32: wgmma_mma_async_sp_sync_aligned_10; m64n96k64: wgmma_mma_async_sp_sync_aligned_18
class wgmma_mma_async_sp_sync:
    aligned: wgmma_mma_async_sp_sync_aligned_24
class wgmma_mma_async_sp:
    sync: wgmma_mma_async_sp_sync
class wgmma_mma_async_sync_aligned:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, scale_a: In, scale_b: In, trans_a: In, trans_b: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sync_aligned_2:
    f16: wgmma_mma_async_sync_aligned
class wgmma_mma_async_sync_aligned_3:
    f16: wgmma_mma_async_sync_aligned_2
class wgmma_mma_async_sync_aligned_4:
    bf16: wgmma_mma_async_sync_aligned
class wgmma_mma_async_sync_aligned_5:
    bf16: wgmma_mma_async_sync_aligned_4; f16: wgmma_mma_async_sync_aligned_2
class wgmma_mma_async_sync_aligned_6:
    f16: wgmma_mma_async_sync_aligned_3; f32: wgmma_mma_async_sync_aligned_5
class wgmma_mma_async_sync_aligned_7:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, scale_a: In, scale_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sync_aligned_8:
    e4m3: wgmma_mma_async_sync_aligned_7; e5m2: wgmma_mma_async_sync_aligned_7
class wgmma_mma_async_sync_aligned_9:
    e4m3: wgmma_mma_async_sync_aligned_8; e5m2: wgmma_mma_async_sync_aligned_8
class wgmma_mma_async_sync_aligned_10:
    f16: wgmma_mma_async_sync_aligned_9; f32: wgmma_mma_async_sync_aligned_9
class wgmma_mma_async_sync_aligned_11:
    tf32: wgmma_mma_async_sync_aligned_7
class wgmma_mma_async_sync_aligned_12:
    tf32: wgmma_mma_async_sync_aligned_11
class wgmma_mma_async_sync_aligned_13:
    f32: wgmma_mma_async_sync_aligned_12
class wgmma_mma_async_sync_aligned_14:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sync_aligned_15:
    b1: wgmma_mma_async_sync_aligned_14
class wgmma_mma_async_sync_aligned_16:
    b1: wgmma_mma_async_sync_aligned_15
class wgmma_mma_async_sync_aligned_17:
    s32: wgmma_mma_async_sync_aligned_16
class wgmma_mma_async_sync_aligned_18:
    popc: wgmma_mma_async_sync_aligned_17
class wgmma_mma_async_sync_aligned_19:
    and_: wgmma_mma_async_sync_aligned_18
class wgmma_mma_async_sync_aligned_20:
    s8: wgmma_mma_async_sync_aligned_14; u8: wgmma_mma_async_sync_aligned_14
class wgmma_mma_async_sync_aligned_21:
    s8: wgmma_mma_async_sync_aligned_20; u8: wgmma_mma_async_sync_aligned_20
class wgmma_mma_async_sync_aligned_22:
    s32: wgmma_mma_async_sync_aligned_21
class wgmma_mma_async_sync_aligned_23:
    f16: wgmma_mma_async_sync_aligned_9; f32: wgmma_mma_async_sync_aligned_9; s32: wgmma_mma_async_sync_aligned_21; satfinite: wgmma_mma_async_sync_aligned_22
class wgmma_mma_async_sync_aligned_24:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, scale_a: In, scale_b: In, trans_a: In, trans_b: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sync_aligned_25:
    f16: wgmma_mma_async_sync_aligned_24
class wgmma_mma_async_sync_aligned_m64n16k16_f16:
    f16: wgmma_mma_async_sync_aligned_25
class wgmma_mma_async_sync_aligned_m64n16k16:
    f16: wgmma_mma_async_sync_aligned_m64n16k16_f16; f32: wgmma_mma_async_sync_aligned_5
class wgmma_mma_async_sync_aligned_26:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, scale_a: In, scale_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sync_aligned_27:
    e4m3: wgmma_mma_async_sync_aligned_26; e5m2: wgmma_mma_async_sync_aligned_26
class wgmma_mma_async_sync_aligned_28:
    e4m3: wgmma_mma_async_sync_aligned_27; e5m2: wgmma_mma_async_sync_aligned_27
class wgmma_mma_async_sync_aligned_m64n16k32:
    f16: wgmma_mma_async_sync_aligned_28; f32: wgmma_mma_async_sync_aligned_9; s32: wgmma_mma_async_sync_aligned_21; satfinite: wgmma_mma_async_sync_aligned_22
class wgmma_mma_async_sync_aligned_m64n8k16_f16_f16_f16:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, scale_a: In, scale_b: In, trans_a: In, trans_b: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sync_aligned_m64n8k16_f16_f16:
    f16: wgmma_mma_async_sync_aligned_m64n8k16_f16_f16_f16
class wgmma_mma_async_sync_aligned_m64n8k16_f16:
    f16: wgmma_mma_async_sync_aligned_m64n8k16_f16_f16
class wgmma_mma_async_sync_aligned_m64n8k16_f32_bf16:
    bf16: wgmma_mma_async_sync_aligned_24
class wgmma_mma_async_sync_aligned_m64n8k16_f32:
    bf16: wgmma_mma_async_sync_aligned_m64n8k16_f32_bf16; f16: wgmma_mma_async_sync_aligned_25
class wgmma_mma_async_sync_aligned_m64n8k16:
    f16: wgmma_mma_async_sync_aligned_m64n8k16_f16; f32: wgmma_mma_async_sync_aligned_m64n8k16_f32
class wgmma_mma_async_sync_aligned_29:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sync_aligned_m64n8k256_and_popc_s32_b1:
    b1: wgmma_mma_async_sync_aligned_29
class wgmma_mma_async_sync_aligned_m64n8k256_and_popc_s32:
    b1: wgmma_mma_async_sync_aligned_m64n8k256_and_popc_s32_b1
class wgmma_mma_async_sync_aligned_m64n8k256_and_popc:
    s32: wgmma_mma_async_sync_aligned_m64n8k256_and_popc_s32
class wgmma_mma_async_sync_aligned_m64n8k256_and:
    popc: wgmma_mma_async_sync_aligned_m64n8k256_and_popc
class wgmma_mma_async_sync_aligned_m64n8k256:
    and_: wgmma_mma_async_sync_aligned_m64n8k256_and
class wgmma_mma_async_sync_aligned_m64n8k32_f16:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, scale_a: In, scale_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
class wgmma_mma_async_sync_aligned_m64n8k32_f16_2:
    e4m3: wgmma_mma_async_sync_aligned_m64n8k32_f16; e5m2: wgmma_mma_async_sync_aligned_m64n8k32_f16
class wgmma_mma_async_sync_aligned_m64n8k32_f16_3:
    e4m3: wgmma_mma_async_sync_aligned_m64n8k32_f16_2; e5m2: wgmma_mma_async_sync_aligned_m64n8k32_f16_2
class wgmma_mma_async_sync_aligned_m64n8k32:
    s8: wgmma_mma_async_sync_aligned_29; u8: wgmma_mma_async_sync_aligned_29
class wgmma_mma_async_sync_aligned_m64n8k32_2:
    s8: wgmma_mma_async_sync_aligned_m64n8k32; u8: wgmma_mma_async_sync_aligned_m64n8k32
class wgmma_mma_async_sync_aligned_m64n8k32_satfinite:
    s32: wgmma_mma_async_sync_aligned_m64n8k32_2
class wgmma_mma_async_sync_aligned_m64n8k32_3:
    f16: wgmma_mma_async_sync_aligned_m64n8k32_f16_3; f32: wgmma_mma_async_sync_aligned_28; s32: wgmma_mma_async_sync_aligned_m64n8k32_2; satfinite: wgmma_mma_async_sync_aligned_m64n8k32_satfinite
class wgmma_mma_async_sync_aligned_m64n8k8_f32_tf32:
    tf32: wgmma_mma_async_sync_aligned_26
class wgmma_mma_async_sync_aligned_m64n8k8_f32:
    tf32: wgmma_mma_async_sync_aligned_m64n8k8_f32_tf32
class wgmma_mma_async_sync_aligned_m64n8k8:
    f32: wgmma_mma_async_sync_aligned_m64n8k8_f32
class wgmma_mma_async_sync_aligned_30:
    m64n104k16: wgmma_mma_async_sync_aligned_6; m64n104k32: wgmma_mma_async_sync_aligned_10; m64n104k8: wgmma_mma_async_sync_aligned_13; m64n112k16: wgmma_mma_async_sync_aligned_6; m64n112k256: wgmma_mma_async_sync_aligned_19; m64n112k32: wgmma_mma_async_sync_aligned_23; m64n112k8: wgmma_mma_async_sync_aligned_13; m64n120k16: wgmma_mma_async_sync_aligned_6; m64n120k32: wgmma_mma_async_sync_aligned_10; m64n120k8: wgmma_mma_async_sync_aligned_13; m64n128k16: wgmma_mma_async_sync_aligned_6; m64n128k256: wgmma_mma_async_sync_aligned_19; m64n128k32: wgmma_mma_async_sync_aligned_23; m64n128k8: wgmma_mma_async_sync_aligned_13; m64n136k16: wgmma_mma_async_sync_aligned_6; m64n136k32: wgmma_mma_async_sync_aligned_10; m64n136k8: wgmma_mma_async_sync_aligned_13; m64n144k16: wgmma_mma_async_sync_aligned_6; m64n144k256: wgmma_mma_async_sync_aligned_19; m64n144k32: wgmma_mma_async_sync_aligned_23; m64n144k8: wgmma_mma_async_sync_aligned_13; m64n152k16: wgmma_mma_async_sync_aligned_6; m64n152k32: wgmma_mma_async_sync_aligned_10; m64n152k8: wgmma_mma_async_sync_aligned_13; m64n160k16: wgmma_mma_async_sync_aligned_6; m64n160k256: wgmma_mma_async_sync_aligned_19; m64n160k32: wgmma_mma_async_sync_aligned_23; m64n160k8: wgmma_mma_async_sync_aligned_13; m64n168k16: wgmma_mma_async_sync_aligned_6; m64n168k32: wgmma_mma_async_sync_aligned_10; m64n168k8: wgmma_mma_async_sync_aligned_13; m64n16k16: wgmma_mma_async_sync_aligned_m64n16k16; m64n16k256: wgmma_mma_async_sync_aligned_19; m64n16k32: wgmma_mma_async_sync_aligned_m64n16k32; m64n16k8: wgmma_mma_async_sync_aligned_13; m64n176k16: wgmma_mma_async_sync_aligned_6; m64n176k256: wgmma_mma_async_sync_aligned_19; m64n176k32: wgmma_mma_async_sync_aligned_23; m64n176k8: wgmma_mma_async_sync_aligned_13; m64n184k16: wgmma_mma_async_sync_aligned_6; m64n184k32: wgmma_mma_async_sync_aligned_10; m64n184k8: wgmma_mma_async_sync_aligned_13; m64n192k16: wgmma_mma_async_sync_aligned_6; m64n192k256: wgmma_mma_async_sync_aligned_19; m64n192k32: wgmma_mma_async_sync_aligned_23; m64n192k8: wgmma_mma_async_sync_aligned_13; m64n200k16: wgmma_mma_async_sync_aligned_6; m64n200k32: wgmma_mma_async_sync_aligned_10; m64n200k8: wgmma_mma_async_sync_aligned_13; m64n208k16: wgmma_mma_async_sync_aligned_6; m64n208k256: wgmma_mma_async_sync_aligned_19; m64n208k32: wgmma_mma_async_sync_aligned_23; m64n208k8: wgmma_mma_async_sync_aligned_13; m64n216k16: wgmma_mma_async_sync_aligned_6; m64n216k32: wgmma_mma_async_sync_aligned_10; m64n216k8: wgmma_mma_async_sync_aligned_13; m64n224k16: wgmma_mma_async_sync_aligned_6; m64n224k256: wgmma_mma_async_sync_aligned_19; m64n224k32: wgmma_mma_async_sync_aligned_23; m64n224k8: wgmma_mma_async_sync_aligned_13; m64n232k16: wgmma_mma_async_sync_aligned_6; m64n232k32: wgmma_mma_async_sync_aligned_10; m64n232k8: wgmma_mma_async_sync_aligned_13; m64n240k16: wgmma_mma_async_sync_aligned_6; m64n240k256: wgmma_mma_async_sync_aligned_19; m64n240k32: wgmma_mma_async_sync_aligned_23; m64n240k8: wgmma_mma_async_sync_aligned_13; m64n248k16: wgmma_mma_async_sync_aligned_6; m64n248k32: wgmma_mma_async_sync_aligned_10; m64n248k8: wgmma_mma_async_sync_aligned_13; m64n24k16: wgmma_mma_async_sync_aligned_6; m64n24k256: wgmma_mma_async_sync_aligned_19; m64n24k32: wgmma_mma_async_sync_aligned_23; m64n24k8: wgmma_mma_async_sync_aligned_13; m64n256k16: wgmma_mma_async_sync_aligned_6; m64n256k256: wgmma_mma_async_sync_aligned_19; m64n256k32: wgmma_mma_async_sync_aligned_23; m64n256k8: wgmma_mma_async_sync_aligned_13; m64n32k16: wgmma_mma_async_sync_aligned_6; m64n32k256: wgmma_mma_async_sync_aligned_19; m64n32k32: wgmma_mma_async_sync_aligned_23; m64n32k8: wgmma_mma_async_sync_aligned_13; m64n40k16: wgmma_mma_async_sync_aligned_6; m64n40k32: wgmma_mma_async_sync_aligned_10; m64n40k8: wgmma_mma_async_sync_aligned_13; m64n48k16: wgmma_mma_async_sync_aligned_6; m64n48k256: wgmma_mma_async_sync_aligned_19; m64n48k32: wgmma_mma_async_sync_aligned_23; m64n48k8: wgmma_mma_async_sync_aligned_13; m64n56k16: wgmma_mma_async_sync_aligned_6; m64n56k32: wgmma_mma_async_sync_aligned_10; m64n56k8: wgmma_mma_async_sync_aligned_13; m64n64k16: wgmma_mma_async_sync_aligned_6; m64n64k256: wgmma_mma_async_sync_aligned_19; m64n64k32: wgmma_mma_async_sync_aligned_23; m64n64k8: wgmma_mma_async_sync_aligned_13; m64n72k16: wgmma_mma_async_sync_aligned_6; m64n72k32: wgmma_mma_async_sync_aligned_10; m64n72k8: wgmma_mma_async_sync_aligned_13; m64n80k16: wgmma_mma_async_sync_aligned_6; m64n80k256: wgmma_mma_async_sync_aligned_19; m64n80k32: wgmma_mma_async_sync_aligned_23; m64n80k8: wgmma_mma_async_sync_aligned_13; m64n88k16: wgmma_mma_async_sync_aligned_6; m64n88k32: wgmma_mma_async_sync_aligned_10; m64n88k8: wgmma_mma_async_sync_aligned_13; m64n8k16: wgmma_mma_async_sync_aligned_m64n8k16; m64n8k256: wgmma_mma_async_sync_aligned_m64n8k256; m64n8k32: wgmma_mma_async_sync_aligned_m64n8k32_3; m64n8k8: wgmma_mma_async_sync_aligned_m64n8k8; m64n96k16: wgmma_mma_async_sync_aligned_6; m64n96k256: wgmma_mma_async_sync_aligned_19; m64n96k32: wgmma_mma_async_sync_aligned_23; m64n96k8: wgmma_mma_async_sync_aligned_13
class wgmma_mma_async_sync:
    aligned: wgmma_mma_async_sync_aligned_30
class wgmma_mma_async:
    sp: wgmma_mma_async_sp; sync: wgmma_mma_async_sync
class wgmma_wait_group_sync_aligned:
    def __call__(self, n: In, /, *, guard: Guard = ...) -> None:
        "Wait until at most the `n` latest wgmma-groups are pending; results of completed groups may be read. Requires sm_90a."
class wgmma_wait_group_sync:
    aligned: wgmma_wait_group_sync_aligned
class wgmma_wait_group:
    sync: wgmma_wait_group_sync
class wgmma:
    commit_group: wgmma_commit_group; fence: wgmma_fence; mma_async: wgmma_mma_async; wait_group: wgmma_wait_group
class wmma_load:
    def __call__(self, address: In, stride: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Load a matrix fragment from memory."
class wmma_load_2:
    def __call__(self, address: In, stride: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Load a matrix fragment from memory."
class wmma_load_3:
    def __call__(self, address: In, stride: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Load a matrix fragment from memory."
class wmma_load_4:
    bf16: wmma_load; f16: wmma_load_2; s8: wmma_load_3; u8: wmma_load_3
class wmma_load_5:
    bf16: wmma_load; f16: wmma_load_2; global_: wmma_load_4; s8: wmma_load_3; shared: wmma_load_4; shared__cta: wmma_load_4; u8: wmma_load_3
class wmma_load_6:
    tf32: wmma_load
class wmma_load_7:
    global_: wmma_load_6; shared: wmma_load_6; shared__cta: wmma_load_6; tf32: wmma_load
class wmma_load_8:
    bf16: wmma_load_2; f16: wmma_load_2; s8: wmma_load; u8: wmma_load
class wmma_load_9:
    bf16: wmma_load_2; f16: wmma_load_2; global_: wmma_load_8; s8: wmma_load; shared: wmma_load_8; shared__cta: wmma_load_8; u8: wmma_load
class wmma_load_10:
    def __call__(self, address: In, stride: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Load a matrix fragment from memory."
class wmma_load_11:
    bf16: wmma_load_3; f16: wmma_load_2; s8: wmma_load_10; u8: wmma_load_10
class wmma_load_12:
    bf16: wmma_load_3; f16: wmma_load_2; global_: wmma_load_11; s8: wmma_load_10; shared: wmma_load_11; shared__cta: wmma_load_11; u8: wmma_load_10
class wmma_load_13:
    f64: wmma_load_10
class wmma_load_14:
    f64: wmma_load_10; global_: wmma_load_13; shared: wmma_load_13; shared__cta: wmma_load_13
class wmma_load_a_sync_aligned_col:
    m16n16k16: wmma_load_5; m16n16k8: wmma_load_7; m32n8k16: wmma_load_9; m8n32k16: wmma_load_12; m8n8k4: wmma_load_14
class wmma_load_15:
    b1: wmma_load_10
class wmma_load_16:
    b1: wmma_load_10; global_: wmma_load_15; shared: wmma_load_15; shared__cta: wmma_load_15
class wmma_load_17:
    s4: wmma_load_10; u4: wmma_load_10
class wmma_load_18:
    global_: wmma_load_17; s4: wmma_load_10; shared: wmma_load_17; shared__cta: wmma_load_17; u4: wmma_load_10
class wmma_load_a_sync_aligned_row:
    m16n16k16: wmma_load_5; m16n16k8: wmma_load_7; m32n8k16: wmma_load_9; m8n32k16: wmma_load_12; m8n8k128: wmma_load_16; m8n8k32: wmma_load_18; m8n8k4: wmma_load_14
class wmma_load_a_sync_aligned:
    col: wmma_load_a_sync_aligned_col; row: wmma_load_a_sync_aligned_row
class wmma_load_19:
    f16: wmma_load_2
class wmma_load_20:
    f16: wmma_load_2; global_: wmma_load_19; shared: wmma_load_19
class wmma_load_21:
    m16n16k16: wmma_load_20; m32n8k16: wmma_load_20; m8n32k16: wmma_load_20
class wmma_load_a_sync:
    aligned: wmma_load_a_sync_aligned; col: wmma_load_21; row: wmma_load_21
class wmma_load_a:
    sync: wmma_load_a_sync
class wmma_load_b_sync_aligned_col:
    m16n16k16: wmma_load_5; m16n16k8: wmma_load_7; m32n8k16: wmma_load_12; m8n32k16: wmma_load_9; m8n8k128: wmma_load_16; m8n8k32: wmma_load_18; m8n8k4: wmma_load_14
class wmma_load_b_sync_aligned_row:
    m16n16k16: wmma_load_5; m16n16k8: wmma_load_7; m32n8k16: wmma_load_12; m8n32k16: wmma_load_9; m8n8k4: wmma_load_14
class wmma_load_b_sync_aligned:
    col: wmma_load_b_sync_aligned_col; row: wmma_load_b_sync_aligned_row
class wmma_load_b_sync:
    aligned: wmma_load_b_sync_aligned; col: wmma_load_21; row: wmma_load_21
class wmma_load_b:
    sync: wmma_load_b_sync
class wmma_load_c_sync_aligned:
    f16: wmma_load; f32: wmma_load_2; s32: wmma_load_2
class wmma_load_c_sync_aligned_2:
    f16: wmma_load; f32: wmma_load_2; global_: wmma_load_c_sync_aligned; s32: wmma_load_2; shared: wmma_load_c_sync_aligned; shared__cta: wmma_load_c_sync_aligned
class wmma_load_c_sync_aligned_3:
    f32: wmma_load_2
class wmma_load_c_sync_aligned_4:
    f32: wmma_load_2; global_: wmma_load_c_sync_aligned_3; shared: wmma_load_c_sync_aligned_3; shared__cta: wmma_load_c_sync_aligned_3
class wmma_load_c_sync_aligned_5:
    s32: wmma_load_3
class wmma_load_c_sync_aligned_6:
    global_: wmma_load_c_sync_aligned_5; s32: wmma_load_3; shared: wmma_load_c_sync_aligned_5; shared__cta: wmma_load_c_sync_aligned_5
class wmma_load_c_sync_aligned_7:
    f64: wmma_load_3
class wmma_load_c_sync_aligned_8:
    f64: wmma_load_3; global_: wmma_load_c_sync_aligned_7; shared: wmma_load_c_sync_aligned_7; shared__cta: wmma_load_c_sync_aligned_7
class wmma_load_c_sync_aligned_9:
    m16n16k16: wmma_load_c_sync_aligned_2; m16n16k8: wmma_load_c_sync_aligned_4; m32n8k16: wmma_load_c_sync_aligned_2; m8n32k16: wmma_load_c_sync_aligned_2; m8n8k128: wmma_load_c_sync_aligned_6; m8n8k32: wmma_load_c_sync_aligned_6; m8n8k4: wmma_load_c_sync_aligned_8
class wmma_load_c_sync_aligned_10:
    col: wmma_load_c_sync_aligned_9; row: wmma_load_c_sync_aligned_9
class wmma_load_c_sync:
    f16: wmma_load; f32: wmma_load_2
class wmma_load_c_sync_2:
    f16: wmma_load; f32: wmma_load_2; global_: wmma_load_c_sync; shared: wmma_load_c_sync
class wmma_load_c_sync_3:
    m16n16k16: wmma_load_c_sync_2; m32n8k16: wmma_load_c_sync_2; m8n32k16: wmma_load_c_sync_2
class wmma_load_c_sync_4:
    aligned: wmma_load_c_sync_aligned_10; col: wmma_load_c_sync_3; row: wmma_load_c_sync_3
class wmma_load_c:
    sync: wmma_load_c_sync_4
class wmma_load_22:
    a: wmma_load_a; b: wmma_load_b; c: wmma_load_c
class wmma_mma:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "Multiply-accumulate fragments loaded by wmma.load: d = a * b + c."
class wmma_mma_2:
    s32: wmma_mma
class wmma_mma_3:
    b1: wmma_mma_2
class wmma_mma_4:
    b1: wmma_mma_3
class wmma_mma_5:
    s32: wmma_mma_4
class wmma_mma_6:
    m8n8k128: wmma_mma_5
class wmma_mma_7:
    col: wmma_mma_6
class wmma_mma_8:
    row: wmma_mma_7
class wmma_mma_9:
    aligned: wmma_mma_8
class wmma_mma_10:
    sync: wmma_mma_9
class wmma_mma_11:
    popc: wmma_mma_10
class wmma_mma_sync:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "Multiply-accumulate fragments loaded by wmma.load: d = a * b + c."
class wmma_mma_sync_2:
    f16: wmma_mma_sync; f32: wmma_mma_sync
class wmma_mma_sync_3:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "Multiply-accumulate fragments loaded by wmma.load: d = a * b + c."
class wmma_mma_sync_aligned:
    f32: wmma_mma_sync_3
class wmma_mma_sync_aligned_2:
    bf16: wmma_mma_sync_aligned
class wmma_mma_sync_aligned_3:
    bf16: wmma_mma_sync_aligned_2; f16: wmma_mma_sync_3; f32: wmma_mma_sync_3
class wmma_mma_sync_aligned_4(wmma_mma_sync_3):
    satfinite: wmma_mma_sync_3
class wmma_mma_sync_aligned_5:
    s32: wmma_mma_sync_aligned_4
class wmma_mma_sync_aligned_6:
    s8: wmma_mma_sync_aligned_5
class wmma_mma_sync_aligned_7:
    u8: wmma_mma_sync_aligned_5
class wmma_mma_sync_aligned_8:
    s8: wmma_mma_sync_aligned_6; u8: wmma_mma_sync_aligned_7
class wmma_mma_sync_aligned_9:
    f16: wmma_mma_sync_2; f32: wmma_mma_sync_aligned_3; s32: wmma_mma_sync_aligned_8
class wmma_mma_sync_aligned_10:
    tf32: wmma_mma_sync_aligned
class wmma_mma_sync_aligned_11:
    tf32: wmma_mma_sync_aligned_10
class wmma_mma_sync_aligned_12:
    f32: wmma_mma_sync_aligned_11
class wmma_mma_sync_aligned_13(wmma_mma):
    rm: wmma_mma; rn: wmma_mma; rp: wmma_mma; rz: wmma_mma
class wmma_mma_sync_aligned_14:
    f64: wmma_mma_sync_aligned_13
class wmma_mma_sync_aligned_15:
    f64: wmma_mma_sync_aligned_14
class wmma_mma_sync_aligned_16:
    f64: wmma_mma_sync_aligned_15
class wmma_mma_sync_aligned_17:
    f64: wmma_mma_sync_aligned_16
class wmma_mma_sync_aligned_18:
    m16n16k16: wmma_mma_sync_aligned_9; m16n16k8: wmma_mma_sync_aligned_12; m32n8k16: wmma_mma_sync_aligned_9; m8n32k16: wmma_mma_sync_aligned_9; m8n8k4: wmma_mma_sync_aligned_17
class wmma_mma_sync_aligned_col:
    col: wmma_mma_sync_aligned_18; row: wmma_mma_sync_aligned_18
class wmma_mma_sync_aligned_row_col_m8n8k32_s32(wmma_mma):
    satfinite: wmma_mma
class wmma_mma_sync_aligned_row_col_m8n8k32_s32_2:
    s32: wmma_mma_sync_aligned_row_col_m8n8k32_s32
class wmma_mma_sync_aligned_row_col_m8n8k32_s32_s4:
    s4: wmma_mma_sync_aligned_row_col_m8n8k32_s32_2
class wmma_mma_sync_aligned_row_col_m8n8k32_s32_u4:
    u4: wmma_mma_sync_aligned_row_col_m8n8k32_s32_2
class wmma_mma_sync_aligned_row_col_m8n8k32_s32_3:
    s4: wmma_mma_sync_aligned_row_col_m8n8k32_s32_s4; u4: wmma_mma_sync_aligned_row_col_m8n8k32_s32_u4
class wmma_mma_sync_aligned_row_col_m8n8k32:
    s32: wmma_mma_sync_aligned_row_col_m8n8k32_s32_3
class wmma_mma_sync_aligned_row_col:
    m16n16k16: wmma_mma_sync_aligned_9; m16n16k8: wmma_mma_sync_aligned_12; m32n8k16: wmma_mma_sync_aligned_9; m8n32k16: wmma_mma_sync_aligned_9; m8n8k32: wmma_mma_sync_aligned_row_col_m8n8k32; m8n8k4: wmma_mma_sync_aligned_17
class wmma_mma_sync_aligned_row:
    col: wmma_mma_sync_aligned_row_col; row: wmma_mma_sync_aligned_18
class wmma_mma_sync_aligned_19:
    col: wmma_mma_sync_aligned_col; row: wmma_mma_sync_aligned_row
class wmma_mma_sync_4:
    f16: wmma_mma_sync_3; f32: wmma_mma_sync_3
class wmma_mma_sync_5:
    f16: wmma_mma_sync_2; f32: wmma_mma_sync_4
class wmma_mma_sync_6:
    m16n16k16: wmma_mma_sync_5; m32n8k16: wmma_mma_sync_5; m8n32k16: wmma_mma_sync_5
class wmma_mma_sync_7:
    col: wmma_mma_sync_6; row: wmma_mma_sync_6
class wmma_mma_sync_8:
    aligned: wmma_mma_sync_aligned_19; col: wmma_mma_sync_7; row: wmma_mma_sync_7
class wmma_mma_12:
    and_: wmma_mma_11; sync: wmma_mma_sync_8; xor: wmma_mma_11
class wmma_store_d_sync:
    def __call__(self, address: In, a: In, stride: In = ..., /, *, guard: Guard = ...) -> None:
        "Store an accumulator fragment to memory."
class wmma_store_d_sync_aligned:
    f16: wmma_store_d_sync; f32: wmma_store_d_sync; s32: wmma_store_d_sync
class wmma_store_d_sync_aligned_2:
    f16: wmma_store_d_sync; f32: wmma_store_d_sync; global_: wmma_store_d_sync_aligned; s32: wmma_store_d_sync; shared: wmma_store_d_sync_aligned; shared__cta: wmma_store_d_sync_aligned
class wmma_store_d_sync_aligned_3:
    f32: wmma_store_d_sync
class wmma_store_d_sync_aligned_4:
    f32: wmma_store_d_sync; global_: wmma_store_d_sync_aligned_3; shared: wmma_store_d_sync_aligned_3; shared__cta: wmma_store_d_sync_aligned_3
class wmma_store_d_sync_aligned_5:
    s32: wmma_store_d_sync
class wmma_store_d_sync_aligned_6:
    global_: wmma_store_d_sync_aligned_5; s32: wmma_store_d_sync; shared: wmma_store_d_sync_aligned_5; shared__cta: wmma_store_d_sync_aligned_5
class wmma_store_d_sync_aligned_7:
    f64: wmma_store_d_sync
class wmma_store_d_sync_aligned_8:
    f64: wmma_store_d_sync; global_: wmma_store_d_sync_aligned_7; shared: wmma_store_d_sync_aligned_7; shared__cta: wmma_store_d_sync_aligned_7
class wmma_store_d_sync_aligned_9:
    m16n16k16: wmma_store_d_sync_aligned_2; m16n16k8: wmma_store_d_sync_aligned_4; m32n8k16: wmma_store_d_sync_aligned_2; m8n32k16: wmma_store_d_sync_aligned_2; m8n8k128: wmma_store_d_sync_aligned_6; m8n8k32: wmma_store_d_sync_aligned_6; m8n8k4: wmma_store_d_sync_aligned_8
class wmma_store_d_sync_aligned_10:
    col: wmma_store_d_sync_aligned_9; row: wmma_store_d_sync_aligned_9
class wmma_store_d_sync_2:
    f16: wmma_store_d_sync; f32: wmma_store_d_sync
class wmma_store_d_sync_3:
    f16: wmma_store_d_sync; f32: wmma_store_d_sync; global_: wmma_store_d_sync_2; shared: wmma_store_d_sync_2
class wmma_store_d_sync_4:
    m16n16k16: wmma_store_d_sync_3; m32n8k16: wmma_store_d_sync_3; m8n32k16: wmma_store_d_sync_3
class wmma_store_d_sync_5:
    aligned: wmma_store_d_sync_aligned_10; col: wmma_store_d_sync_4; row: wmma_store_d_sync_4
class wmma_store_d:
    sync: wmma_store_d_sync_5
class wmma_store:
    d: wmma_store_d
class wmma:
    load: wmma_load_22; mma: wmma_mma_12; store: wmma_store
class xor:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Bitwise exclusive OR: d = a ^ b."
class xor_2:
    b16: xor; b32: xor; b64: xor; pred: xor

class Ptx:
    def __call__(self, mnemonic: str, /, *sources: In, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        """Emit the instruction with a mnemonic spelled as in PTX: `pd.ptx("add.rn.f32", a, b)`."""
    abs: abs_4
    "Take the absolute value: d = |a|."
    activemask: activemask
    "Query the active lanes of the warp, as a bit mask."
    add: add_15
    "Add two values with carry: d = a + b, plus CC.CF for addc; .cc writes the carry to CC.CF."
    addc: addc_2
    "Add two values with carry: d = a + b, plus CC.CF for addc; .cc writes the carry to CC.CF."
    and_: and_2
    "Bitwise AND: d = a & b."
    applypriority: applypriority_2
    "Set the cache line of an address to the normal eviction priority."
    atom: atom_32
    "Atomically read-modify-write memory: d = [a], [a] = op([a], b)."
    bar: bar_7
    "Wait at barrier `a` until all threads of the CTA, or `b` threads, have arrived."
    barrier: barrier_11
    "Wait at barrier `a` until all threads of the CTA, or `b` threads, have arrived."
    bfe: bfe_2
    "Extract a bit field: d = c bits of a, from bit b on, sign- or zero-extended."
    bfi: bfi_2
    "Insert a bit field: d = b with `width` bits at bit `position` replaced by the low bits of a."
    bfind: bfind_2
    "Find the most significant non-sign bit: d = its position, or (.shiftamt) the left shift that normalises a."
    bmsk: bmsk_3
    "Create a bit mask: d = b ones starting at bit a; both are taken modulo 32 (.wrap) or clamped to 32 (.clamp)."
    bra: bra_2
    "Branch to a label."
    brev: brev_2
    "Reverse the bits of a."
    brkpt: brkpt
    "Suspend execution in a debugger; no effect otherwise."
    brx: brx
    "Branch to the label at position `index` of a .branchtargets list."
    call: call_2
    "Call a function directly by name, or indirectly through a pointer with a prototype or list of targets."
    clusterlaunchcontrol: clusterlaunchcontrol
    "Request cancellation of a cluster that has not launched; 16 bytes of response arrive at `dst`. Requires sm_100."
    clz: clz_2
    "Count leading zeros: d = the number of zero bits above the most significant one bit of a."
    cnot: cnot_2
    "C-style logical negation: d = (a == 0) ? 1 : 0."
    copysign: copysign_2
    "Copy the sign of a to the magnitude of b."
    cos: cos
    "Approximate the cosine of a, in radians."
    cp: cp
    "Copy `size` bytes to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`."
    createpolicy: createpolicy
    "Create a cache eviction policy for .L2::cache_hint."
    cvt: cvt_37
    "Convert between integer types: truncate or extend; .sat clamps to the range of d."
    cvta: cvta_3
    "Convert an address in a state space to a generic address, or (.to) the reverse."
    discard: discard_2
    "Discard a cache line without write-back; its 128 bytes are undefined until written again."
    div: div_8
    "Divide two values: d = a / b."
    dp2a: dp2a_4
    "Dot product of two halves of a with two low or high bytes of b, plus c; c and d are s32 if a or b is signed."
    dp4a: dp4a_3
    "Dot product of four bytes with accumulation: d = c + dot(a, b); c and d are s32 if a or b is signed."
    elect: elect
    "Elect one leader lane of a warp: p = true in the lowest lane of membermask; d = its number. Requires sm_90."
    ex2: ex2
    "Approximate 2 raised to the power a."
    exit: exit
    "Terminate the thread."
    fence: fence_5
    "Order this thread's memory accesses as observed by the threads of a scope."
    fma: fma_8
    "Fused multiply-add: d = a * b + c, rounded once."
    fns: fns
    "Find the n-th set bit of mask, n = |offset|, upwards from base (downwards for offset < 0); else 0xffffffff."
    getctarank: getctarank_2
    "Get the cluster rank of the block whose shared memory contains address a. Requires sm_90."
    griddepcontrol: griddepcontrol
    "Wait until all prerequisite grids have completed, and their writes are visible. Requires sm_90."
    isspacep: isspacep_2
    "Query whether a generic address falls within a state space: p = true if it does."
    ld: ld_23
    "Load from memory: d = [a]."
    ldmatrix: ldmatrix
    "Load 8x8 matrices: lane 4g + t gets elements 2t and 2t+1 of row g (.trans: column g)."
    ldu: ldu_6
    "Load from memory: d = [a]."
    lg2: lg2
    "Approximate the base-2 logarithm of a."
    lop3: lop3_3
    "Arbitrary three-input logic: d = lut(a, b, c), bit by bit; p = d != 0, combined with q."
    mad: mad_8
    "Multiply-add with carry: d = half of a * b, plus c, plus CC.CF for madc; .cc writes the carry to CC.CF."
    mad24: mad24_2
    "Multiply-add 24-bit values: d = the low or high 32 bits of the 48-bit product, plus c."
    madc: madc_4
    "Multiply-add with carry: d = half of a * b, plus c, plus CC.CF for madc; .cc writes the carry to CC.CF."
    mapa: mapa_2
    "Map a shared memory address to the same location in another block of the cluster. Requires sm_90."
    match: match
    "Find equal values in a warp: d = a bit mask of the lanes whose a equals this lane's a."
    max: max_10
    "Take the maximum of a, b (and c); .xorsign.abs: the maximum of |a|, |b|, with the XOR of their signs."
    mbarrier: mbarrier
    "Initialise an mbarrier object whose phases each expect `count` arrivals."
    membar: membar_2
    "Memory barrier: the older spelling of fence."
    min: min_10
    "Take the minimum of a, b (and c); .xorsign.abs: the minimum of |a|, |b|, with the XOR of their signs."
    mma: mma_35
    "Multiply-accumulate matrices held in the registers of a warp: d = a * b + c."
    mov: mov_3
    "Move a register, constant, special register, or the address of a variable or function: d = a."
    movmatrix: movmatrix
    "Transpose an 8x8 matrix of 16-bit elements across the registers of a warp."
    mul: mul_12
    "Multiply two values: d = a * b."
    mul24: mul24_3
    "Multiply the low 24 bits of a and b: d = the low or high 32 bits of the 48-bit product."
    multimem: multimem
    "Load from all GPUs and reduce: d = the values at a multimem address, combined by an operation. Requires sm_90."
    nanosleep: nanosleep
    "Suspend the thread for about `t` nanoseconds."
    neg: neg_4
    "Negate: d = -a."
    not_: not_2
    "Bitwise complement: d = ~a."
    or_: or_2
    "Bitwise OR: d = a | b."
    pmevent: pmevent_2
    "Trigger performance monitor events."
    popc: popc_2
    "Population count: d = the number of one bits in a."
    prefetch: prefetch_4
    "Prefetch the cache line of an address, or a tensor map."
    prefetchu: prefetchu
    "Prefetch the cache line of an address, or a tensor map."
    prmt: prmt
    "Permute bytes: d = four bytes selected from the eight bytes of {b, a}."
    rcp: rcp_4
    "Take the reciprocal: d = 1 / a."
    red: red_24
    "Atomically reduce into memory without returning the old value: [a] = op([a], b)."
    redux: redux
    "Reduce a value across a warp: sum, minimum, maximum, AND, OR or XOR; minimum and maximum also of floats."
    rem: rem_2
    "Take the remainder of integer division: d = a % b, with the sign of a; division by zero gives all ones."
    ret: ret_2
    "Return from a function; in a kernel, terminate the thread."
    rsqrt: rsqrt
    "Approximate the reciprocal square root of a, with a relative error of 2^-22.9."
    sad: sad_2
    "Sum of absolute differences: d = |a - b| + c."
    selp: selp_2
    "Select by predicate: d = c ? a : b."
    set: set_61
    "Compare and set: d = 1.0 or all ones if a cmp b (optionally combined with c) holds, else 0."
    setmaxnreg: setmaxnreg_5
    "Release registers of the warp (.dec), or request more (.inc), so that each thread has `count`. Requires sm_90a or sm_100f or sm_110f or sm_120f."
    setp: setp_21
    "Compare two values: p = a cmp b, q = !p, each optionally combined with c."
    shf: shf_4
    "Funnel shift: d = the high half of {b, a} << c, or the low half of {b, a} >> c; .wrap or .clamp at 32."
    shfl: shfl_3
    "Shuffle a register between lanes: d = a of the source lane, p = source lane in range; if not, d = own a."
    shl: shl_2
    "Shift left: d = a << b; 0 if b is the full width or more."
    shr: shr_2
    "Shift right: d = a >> b, filled with the sign bit for signed types, else with zeros."
    sin: sin
    "Approximate the sine of a, in radians."
    slct: slct_3
    "Select by sign: d = (c >= 0) ? a : b."
    sqrt: sqrt_4
    "Take the square root of a."
    st: st_18
    "Store to memory: [a] = b."
    stmatrix: stmatrix
    "Store 8x8 matrices: lane 4g + t holds elements 2t and 2t+1 of row g (.trans: column g). Requires sm_90."
    sub: sub_14
    "Subtract with borrow: d = a - b, minus the borrow for subc; .cc writes the inverted borrow to CC.CF."
    subc: subc_2
    "Subtract with borrow: d = a - b, minus the borrow for subc; .cc writes the inverted borrow to CC.CF."
    szext: szext_3
    "Sign- or zero-extend the low b bits of a; b is taken modulo 32 (.wrap) or clamped to 32 (.clamp)."
    tanh: tanh
    "Approximate the hyperbolic tangent of a."
    tcgen05: tcgen05_5
    "Allocate columns of tensor memory, blocking until available, and write their address to shared memory. Requires sm_100f or sm_110f."
    tensormap: tensormap
    "Replace a field of a tensor map in memory. Requires sm_90a or sm_100f or sm_110f or sm_120f."
    testp: testp_3
    "Test a floating-point property: finite, infinite, number, notanumber, normal (or zero), or subnormal."
    trap: trap
    "Abort the kernel with an error."
    vabsdiff: vabsdiff_7
    "Absolute difference of words, halves or bytes: d = |a - b|; optionally + c, or the minimum or maximum with c."
    vabsdiff2: vabsdiff2_5
    "Absolute difference of words, halves or bytes: d = |a - b|; optionally + c, or the minimum or maximum with c."
    vabsdiff4: vabsdiff4_5
    "Absolute difference of words, halves or bytes: d = |a - b|; optionally + c, or the minimum or maximum with c."
    vadd: vadd_7
    "Add words, halves or bytes: d = a + b; optionally + c, or the minimum or maximum with c."
    vadd2: vadd2_5
    "Add words, halves or bytes: d = a + b; optionally + c, or the minimum or maximum with c."
    vadd4: vadd4_5
    "Add words, halves or bytes: d = a + b; optionally + c, or the minimum or maximum with c."
    vavrg2: vavrg2_5
    "Average of halves or bytes: d = (a + b) / 2, rounded to nearest, ties up; .add adds their sum to c."
    vavrg4: vavrg4_5
    "Average of halves or bytes: d = (a + b) / 2, rounded to nearest, ties up; .add adds their sum to c."
    vmad: vmad_7
    "Multiply-add: d = a * b + c (.po: + 1), shifted right by 7 or 15; .sat clamps to s32 or u32."
    vmax: vmax_7
    "Maximum of words, halves or bytes: d = max(a, b); optionally + c, or the minimum or maximum with c."
    vmax2: vmax2_5
    "Maximum of words, halves or bytes: d = max(a, b); optionally + c, or the minimum or maximum with c."
    vmax4: vmax4_5
    "Maximum of words, halves or bytes: d = max(a, b); optionally + c, or the minimum or maximum with c."
    vmin: vmin_7
    "Minimum of words, halves or bytes: d = min(a, b); optionally + c, or the minimum or maximum with c."
    vmin2: vmin2_5
    "Minimum of words, halves or bytes: d = min(a, b); optionally + c, or the minimum or maximum with c."
    vmin4: vmin4_5
    "Minimum of words, halves or bytes: d = min(a, b); optionally + c, or the minimum or maximum with c."
    vote: vote_3
    "Vote across a warp: d = true if a holds in all lanes, in any lane, or in all or no lanes (.uni)."
    vset: vset_6
    "Compare words, halves or bytes: d = (a cmp b) ? 1 : 0; optionally + c, or the minimum or maximum with c."
    vset2: vset2_5
    "Compare words, halves or bytes: d = (a cmp b) ? 1 : 0; optionally + c, or the minimum or maximum with c."
    vset4: vset4_5
    "Compare words, halves or bytes: d = (a cmp b) ? 1 : 0; optionally + c, or the minimum or maximum with c."
    vshl: vshl_8
    "Shift left: d = a << b; optionally + c, or the minimum or maximum with c."
    vshr: vshr_8
    "Shift right, arithmetic for signed a: d = a >> b; optionally + c, or the minimum or maximum with c."
    vsub: vsub_7
    "Subtract words, halves or bytes: d = a - b; optionally + c, or the minimum or maximum with c."
    vsub2: vsub2_5
    "Subtract words, halves or bytes: d = a - b; optionally + c, or the minimum or maximum with c."
    vsub4: vsub4_5
    "Subtract words, halves or bytes: d = a - b; optionally + c, or the minimum or maximum with c."
    wgmma: wgmma
    "Multiply-accumulate matrices across a warpgroup asynchronously: d = a * b + d, or a * b if scale_d is false. Requires sm_90a."
    wmma: wmma
    "Load a matrix fragment from memory."
    xor: xor_2
    "Bitwise exclusive OR: d = a ^ b."
