# Written from the table of instructions by `make stubs`; a test holds it to the table. A class is what may follow in a
# mnemonic; those that end there can be called.
from typing import Any, TypeAlias

from ptxdsl.trace.instruction import Scalar

In: TypeAlias = object  # a traced value, a pointer, a number, a list of these for a vector
Out: TypeAlias = object  # a variable, "_", or a list of these
Guard: TypeAlias = Scalar | None  # a predicate
Vector: TypeAlias = tuple[Scalar, ...]
Vector2: TypeAlias = tuple[Scalar, Scalar]
Vector4: TypeAlias = tuple[Scalar, Scalar, Scalar, Scalar]

class C0:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = |a|."
class abs_0:
    f16: C0; f16x2: C0; f32: C0
class C1:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = |a|; the least number of a type stays."
class abs_1:
    bf16: C0; bf16x2: C0; f16: C0; f16x2: C0; f32: C0; f64: C0; ftz: abs_0; s16: C1; s32: C1; s64: C1
class C2:
    def __call__(self, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the lanes of the warp that run this instruction together."
class activemask_0:
    b32: C2
class C3:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a + b. Needs sm_90."
class C4:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a + b, with addc also + CC.CF; .cc writes the carry to CC.CF."
class add_0:
    s32: C4; s64: C4; u32: C4; u64: C4
class C5:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a + b."
class C6:
    def __call__(self, a: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a + b. Needs sm_100."
class add_1(C5):
    bf16: C6; f16: C6
class C7:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a + b. Needs sm_100."
class add_2:
    f16: C5; f16x2: C5; f32: C5
class add_3:
    f16: C5; f16x2: C5; f32: C5; f32x2: C7; sat: add_2
class add_4:
    f32: C5
class add_5:
    f32: C5; f32x2: C7; sat: add_4
class add_6:
    f32: add_1
class add_7:
    f32: add_1; f32x2: C7; f64: C5; ftz: add_5; sat: add_6
class add_8:
    f16: C5; f16x2: C5; f32: add_1
class add_9:
    bf16: C3; bf16x2: C3; f16: C5; f16x2: C5; f32: add_1; f32x2: C7; f64: C5; ftz: add_3; sat: add_8
class C8:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a + b, modulo 2^n; with .sat clamped to the range of s32."
class C9:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a + b, modulo 2^16, in each half. Needs sm_90."
class add_10:
    f16: C5; f16x2: C5; f32: add_1; s32: C8
class add_11:
    bf16: C3; bf16x2: C3; cc: add_0; f16: C5; f16x2: C5; f32: add_1; f32x2: C7; f64: C5; ftz: add_3; rm: add_7; rn: add_9; rp: add_7; rz: add_7; s16: C8; s16x2: C9; s32: C8; s64: C8; sat: add_10; u16: C8; u16x2: C9; u32: C8; u64: C8
class addc_0:
    s32: C4; s64: C4; u32: C4; u64: C4
class addc_1:
    cc: addc_0; s32: C4; s64: C4; u32: C4; u64: C4
class C10:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a & b."
class and_0:
    b16: C10; b32: C10; b64: C10; pred: C10
class C11:
    def __call__(self, a: In, size: In, /, *, guard: Guard = ...) -> None:
        "Gives the cache line of an address the normal eviction priority."
class applypriority_0:
    L2__evict_normal: C11
class applypriority_1:
    L2__evict_normal: C11; global_: applypriority_0
class C12:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the value at an address, which becomes: op(that value, b); in one step that no other thread divides."
class C13:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = the value at an address, which becomes: op(that value, b); in one step that no other thread divides. Needs sm_90."
class atom_0:
    f32: C13
class C14:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = the value at an address, which becomes: op(that value, b); in one step that no other thread divides. Needs sm_90."
class atom_1:
    f32: C14
class atom_2:
    f32: C12; f64: C12; s32: C12; u32: C12; u64: C12; v2: atom_0; v4: atom_1
class atom_3:
    bf16: C13; bf16x2: C13; f16: C13; f16x2: C13
class atom_4:
    bf16: C14; bf16x2: C14; f16: C14; f16x2: C14
class C15:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = the value at an address, which becomes: op(that value, b); in one step that no other thread divides. Needs sm_90."
class atom_5:
    bf16: C15; f16: C15
class atom_6:
    bf16: C12; bf16x2: C12; f16: C12; f16x2: C12; v2: atom_3; v4: atom_4; v8: atom_5
class atom_7:
    L2__cache_hint: atom_6; bf16: C12; bf16x2: C12; f16: C12; f16x2: C12; v2: atom_3; v4: atom_4; v8: atom_5
class atom_8:
    L2__cache_hint: atom_2; f32: C12; f64: C12; noftz: atom_7; s32: C12; u32: C12; u64: C12; v2: atom_0; v4: atom_1
class atom_9:
    b32: C12; b64: C12
class atom_10:
    L2__cache_hint: atom_9; b32: C12; b64: C12
class C16:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the value at an address, which becomes c where that value was b; in one step that no other thread divides."
class atom_11:
    b128: C16; b16: C16; b32: C16; b64: C16
class atom_12:
    u32: C12
class atom_13:
    L2__cache_hint: atom_12; u32: C12
class atom_14:
    b128: C12; b32: C12; b64: C12
class atom_15:
    L2__cache_hint: atom_14; b128: C12; b32: C12; b64: C12
class atom_16:
    s32: C12; s64: C12; u32: C12; u64: C12
class atom_17:
    v2: atom_3; v4: atom_4; v8: atom_5
class atom_18:
    L2__cache_hint: atom_17; v2: atom_3; v4: atom_4; v8: atom_5
class atom_19:
    L2__cache_hint: atom_16; noftz: atom_18; s32: C12; s64: C12; u32: C12; u64: C12
class atom_20:
    add: atom_8; and_: atom_10; cas: atom_11; dec: atom_13; exch: atom_15; inc: atom_13; max: atom_19; min: atom_19; or_: atom_10; xor: atom_10
class atom_21:
    bf16: C12; bf16x2: C12; f16: C12; f16x2: C12
class atom_22:
    f32: C12; f64: C12; noftz: atom_21; s32: C12; u32: C12; u64: C12
class atom_23:
    add: atom_22; and_: atom_9; cas: atom_11; dec: atom_12; exch: atom_14; inc: atom_12; max: atom_16; min: atom_16; or_: atom_9; xor: atom_9
class atom_24:
    add: atom_8; and_: atom_10; cas: atom_11; dec: atom_13; exch: atom_15; global_: atom_20; inc: atom_13; max: atom_19; min: atom_19; or_: atom_10; shared: atom_23; shared__cluster: atom_23; shared__cta: atom_23; xor: atom_10
class atom_25:
    add: atom_8; and_: atom_10; cas: atom_11; cluster: atom_24; cta: atom_24; dec: atom_13; exch: atom_15; global_: atom_20; gpu: atom_24; inc: atom_13; max: atom_19; min: atom_19; or_: atom_10; shared: atom_23; shared__cluster: atom_23; shared__cta: atom_23; sys: atom_24; xor: atom_10
class atom_26:
    acq_rel: atom_25; acquire: atom_25; add: atom_8; and_: atom_10; cas: atom_11; cluster: atom_24; cta: atom_24; dec: atom_13; exch: atom_15; global_: atom_20; gpu: atom_24; inc: atom_13; max: atom_19; min: atom_19; or_: atom_10; relaxed: atom_25; release: atom_25; shared: atom_23; shared__cluster: atom_23; shared__cta: atom_23; sys: atom_24; xor: atom_10
class C17:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "Counts the warp at barrier `a` of `b` threads, and goes on."
class C18:
    def __call__(self, a: In, b: In, c: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "As barrier.sync; d is the number of threads with `c`, or whether all or any of them have it."
class bar_0:
    pred: C18
class bar_1:
    u32: C18
class bar_2:
    and_: bar_0; or_: bar_0; popc: bar_1
class C19:
    def __call__(self, a: In, b: In = ..., /, *, guard: Guard = ...) -> None:
        "Waits until all threads of the CTA, or `b` threads, have come to barrier `a`."
class bar_3:
    arrive: C17; red: bar_2; sync: C19
class C20:
    def __call__(self, membermask: In, /, *, guard: Guard = ...) -> None:
        "Waits until the lanes of `membermask` have come, and orders their memory accesses."
class bar_4:
    sync: C20
class bar_5:
    arrive: C17; cta: bar_3; red: bar_2; sync: C19; warp: bar_4
class barrier_0(C17):
    aligned: C17
class C21:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Counts the thread at the barrier of its cluster, and goes on; with .relaxed it orders no memory accesses. Needs sm_90."
class C22:
    def __call__(self, *, guard: Guard = ...) -> None:
        "As barrier.cluster.arrive, for all threads of the warp together. Needs sm_90."
class barrier_1(C21):
    aligned: C22
class barrier_2(C21):
    aligned: C22; relaxed: barrier_1; release: barrier_1
class C23:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Waits until all threads of the cluster have arrived, and sees what they released. Needs sm_90."
class C24:
    def __call__(self, *, guard: Guard = ...) -> None:
        "As barrier.cluster.wait, for all threads of the warp together. Needs sm_90."
class barrier_3(C23):
    aligned: C24
class barrier_4(C23):
    acquire: barrier_3; aligned: C24
class barrier_5:
    arrive: barrier_2; wait: barrier_4
class barrier_6:
    pred: C18
class barrier_7:
    aligned: barrier_6; pred: C18
class barrier_8:
    u32: C18
class barrier_9:
    aligned: barrier_8; u32: C18
class barrier_10:
    and_: barrier_7; or_: barrier_7; popc: barrier_9
class barrier_11(C19):
    aligned: C19
class barrier_12:
    arrive: barrier_0; red: barrier_10; sync: barrier_11
class barrier_13:
    arrive: barrier_0; cluster: barrier_5; cta: barrier_12; red: barrier_10; sync: barrier_11
class C25:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the field of c bits of a from bit b on, sign- or zero-extended."
class bfe_0:
    s32: C25; s64: C25; u32: C25; u64: C25
class C26:
    def __call__(self, a: In, b: In, position: In, width: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = b with the field of `width` bits from bit `position` on replaced by the low bits of a."
class bfi_0:
    b32: C26; b64: C26
class C27:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the bit of the first bit of a that is not a sign bit, or (.shiftamt) the shift that moves it to the front."
class bfind_0:
    s32: C27; s64: C27; u32: C27; u64: C27
class bfind_1:
    s32: C27; s64: C27; shiftamt: bfind_0; u32: C27; u64: C27
class C28:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a mask of b ones from bit a on; a and b are taken modulo 32 (.wrap) or as 32 at most (.clamp)."
class bmsk_0:
    b32: C28
class bmsk_1:
    clamp: bmsk_0; wrap: bmsk_0
class C29:
    def __call__(self, target: In, /, *, guard: Guard = ...) -> None:
        "Goes on at a label."
class bra_0(C29):
    uni: C29
class C30:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the bits of a in the opposite order."
class brev_0:
    b32: C30; b64: C30
class C31:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Stops in a debugger; without one, has no effect."
class C32:
    def __call__(self, index: In, targets: In, /, *, guard: Guard = ...) -> None:
        "Goes on at the label with number `index` in a list declared by .branchtargets."
class brx_0(C32):
    uni: C32
class brx_1:
    idx: brx_0
class C33:
    def __call__(self, results: In, pointer: In = ..., arguments: In = ..., targets: In = ..., /, *, guard: Guard = ...) -> None:
        "Calls a function, by name or through a pointer with a prototype or list of targets."
class call_0(C33):
    uni: C33
class C34:
    def __call__(self, answer: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "What an answer to try_cancel says: whether there is work, and the first block of its cluster. Needs sm_100."
class clusterlaunchcontrol_0:
    b128: C34
class clusterlaunchcontrol_1:
    b32: clusterlaunchcontrol_0
class clusterlaunchcontrol_2:
    v4: clusterlaunchcontrol_1
class C35:
    def __call__(self, answer: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "What an answer to try_cancel says: whether there is work, and the first block of its cluster. Needs sm_100."
class clusterlaunchcontrol_3:
    b128: C35
class clusterlaunchcontrol_4:
    b32: clusterlaunchcontrol_3
class clusterlaunchcontrol_5:
    pred: clusterlaunchcontrol_3
class clusterlaunchcontrol_6:
    get_first_ctaid: clusterlaunchcontrol_2; get_first_ctaid__x: clusterlaunchcontrol_4; get_first_ctaid__y: clusterlaunchcontrol_4; get_first_ctaid__z: clusterlaunchcontrol_4; is_canceled: clusterlaunchcontrol_5
class C36:
    def __call__(self, dst: In, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "Asks for the work of a cluster that has not begun; the answer comes to `dst`, 16 bytes, and completes them. Needs sm_100."
class clusterlaunchcontrol_7:
    b128: C36
class clusterlaunchcontrol_8:
    b128: C36; multicast__cluster__all: clusterlaunchcontrol_7
class clusterlaunchcontrol_9:
    mbarrier__complete_tx__bytes: clusterlaunchcontrol_8
class clusterlaunchcontrol_10:
    mbarrier__complete_tx__bytes: clusterlaunchcontrol_8; shared__cta: clusterlaunchcontrol_9
class clusterlaunchcontrol_11:
    async_: clusterlaunchcontrol_10
class clusterlaunchcontrol_12:
    query_cancel: clusterlaunchcontrol_6; try_cancel: clusterlaunchcontrol_11
class C37:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the number of zero bits in front of the first one of a."
class clz_0:
    b32: C37; b64: C37
class C38:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1 where a is 0, else 0."
class cnot_0:
    b16: C38; b32: C38; b64: C38
class C39:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = b with the sign of a."
class copysign_0:
    f32: C39; f64: C39
class C40:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the cosine of a, in radians."
class cos_0:
    f32: C40
class cos_1:
    f32: C40; ftz: cos_0
class cos_2:
    approx: cos_1
class C41:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Makes a group of the thread's bulk copies since the last one. Needs sm_90."
class C42:
    def __call__(self, dst: In, src: In, size: In, /, *, guard: Guard = ...) -> None:
        "Copies `size` bytes to global memory; done when the thread waits for its group. Needs sm_90."
class C43:
    def __call__(self, dst: In, src: In, size: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copies `size` bytes to global memory; done when the thread waits for its group. Needs sm_90."
class C44:
    def __call__(self, dst: In, src: In, size: In, policy: In, byte_mask: In, /, *, guard: Guard = ...) -> None:
        "Copies `size` bytes to global memory; done when the thread waits for its group. Needs sm_100."
class cp_0(C43):
    cp_mask: C44
class C45:
    def __call__(self, dst: In, src: In, size: In, byte_mask: In, /, *, guard: Guard = ...) -> None:
        "Copies `size` bytes to global memory; done when the thread waits for its group. Needs sm_100."
class cp_1(C42):
    L2__cache_hint: cp_0; cp_mask: C45
class cp_2:
    bulk_group: cp_1
class cp_3:
    shared__cta: cp_2
class C46:
    def __call__(self, src: In, size: In, /, *, guard: Guard = ...) -> None:
        "Brings `size` bytes of global memory into L2. Needs sm_90."
class C47:
    def __call__(self, src: In, size: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Brings `size` bytes of global memory into L2. Needs sm_90."
class cp_4(C46):
    L2__cache_hint: C47
class cp_5:
    global_: cp_4
class C48:
    def __call__(self, map: In, coordinates: In, /, *, guard: Guard = ...) -> None:
        "Brings a box of a tensor into L2. Needs sm_90."
class C49:
    def __call__(self, map: In, coordinates: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Brings a box of a tensor into L2. Needs sm_90."
class cp_6(C48):
    L2__cache_hint: C49
class cp_7(C48):
    L2__cache_hint: C49; tile: cp_6
class cp_8:
    global_: cp_7
class cp_9:
    L2: cp_8
class cp_10(C48):
    L2__cache_hint: C49; tile: cp_6; tile__gather4: cp_6
class cp_11:
    global_: cp_10
class cp_12:
    L2: cp_11
class C50:
    def __call__(self, map: In, coordinates: In, offsets: In, /, *, guard: Guard = ...) -> None:
        "Brings a box of a tensor into L2. Needs sm_90."
class C51:
    def __call__(self, map: In, coordinates: In, offsets: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Brings a box of a tensor into L2. Needs sm_90."
class cp_13(C50):
    L2__cache_hint: C51
class cp_14(C48):
    L2__cache_hint: C49; im2col: cp_13; im2col__w: cp_13; im2col__w__128: cp_13; tile: cp_6
class cp_15:
    global_: cp_14
class cp_16:
    L2: cp_15
class cp_17:
    _1d: cp_9; _2d: cp_12; _3d: cp_16; _4d: cp_16; _5d: cp_16
class cp_18:
    L2: cp_5; tensor: cp_17
class C52:
    def __call__(self, dst: In, src: In, size: In, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "Copies `size` bytes to shared memory, with .multicast::cluster of all blocks in `cta_mask`; completes them. Needs sm_90."
class C53:
    def __call__(self, dst: In, src: In, size: In, mbarrier: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copies `size` bytes to shared memory, with .multicast::cluster of all blocks in `cta_mask`; completes them. Needs sm_90."
class C54:
    def __call__(self, dst: In, src: In, size: In, mbarrier: In, cta_mask: In, /, *, guard: Guard = ...) -> None:
        "Copies `size` bytes to shared memory, with .multicast::cluster of all blocks in `cta_mask`; completes them. Needs sm_90."
class C55:
    def __call__(self, dst: In, src: In, size: In, mbarrier: In, cta_mask: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copies `size` bytes to shared memory, with .multicast::cluster of all blocks in `cta_mask`; completes them. Needs sm_90."
class cp_19(C54):
    L2__cache_hint: C55
class cp_20(C52):
    L2__cache_hint: C53; multicast__cluster: cp_19
class cp_21:
    mbarrier__complete_tx__bytes: cp_20
class cp_22:
    mbarrier__complete_tx__bytes: C52
class cp_23:
    global_: cp_21; shared__cta: cp_22
class cp_24(C52):
    L2__cache_hint: C53
class cp_25:
    mbarrier__complete_tx__bytes: cp_24
class cp_26:
    global_: cp_25
class C56:
    def __call__(self, map: In, coordinates: In, src: In, /, *, guard: Guard = ...) -> None:
        "Copies shared memory to a box of a tensor; what lies outside of the tensor is left out. Needs sm_90."
class C57:
    def __call__(self, map: In, coordinates: In, src: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copies shared memory to a box of a tensor; what lies outside of the tensor is left out. Needs sm_90."
class cp_27(C56):
    L2__cache_hint: C57
class cp_28:
    bulk_group: cp_27
class cp_29:
    bulk_group: cp_27; tile: cp_28
class cp_30:
    shared__cta: cp_29
class C58:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "Copies a box of a tensor to shared memory, with .multicast::cluster of all blocks in `cta_mask`. Needs sm_90."
class C59:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copies a box of a tensor to shared memory, with .multicast::cluster of all blocks in `cta_mask`. Needs sm_90."
class cp_31(C58):
    L2__cache_hint: C59
class C60:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, cta_mask: In, /, *, guard: Guard = ...) -> None:
        "Copies a box of a tensor to shared memory, with .multicast::cluster of all blocks in `cta_mask`. Needs sm_90."
class C61:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, cta_mask: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copies a box of a tensor to shared memory, with .multicast::cluster of all blocks in `cta_mask`. Needs sm_90."
class cp_32(C60):
    L2__cache_hint: C61
class cp_33(C60):
    L2__cache_hint: C61; cta_group__1: cp_32; cta_group__2: cp_32
class cp_34(C58):
    L2__cache_hint: C59; cta_group__1: cp_31; cta_group__2: cp_31; multicast__cluster: cp_33
class cp_35:
    mbarrier__complete_tx__bytes: cp_34
class cp_36:
    mbarrier__complete_tx__bytes: cp_34; tile: cp_35
class cp_37:
    global_: cp_36
class cp_38(C58):
    L2__cache_hint: C59; cta_group__1: cp_31; cta_group__2: cp_31
class cp_39:
    mbarrier__complete_tx__bytes: cp_38
class cp_40:
    mbarrier__complete_tx__bytes: cp_38; tile: cp_39
class cp_41:
    global_: cp_40
class cp_42:
    global_: cp_30; shared__cluster: cp_37; shared__cta: cp_41
class cp_43:
    bulk_group: cp_27; tile: cp_28; tile__scatter4: cp_28
class cp_44:
    shared__cta: cp_43
class cp_45:
    mbarrier__complete_tx__bytes: cp_34; tile: cp_35; tile__gather4: cp_35
class cp_46:
    global_: cp_45
class cp_47:
    mbarrier__complete_tx__bytes: cp_38; tile: cp_39; tile__gather4: cp_39
class cp_48:
    global_: cp_47
class cp_49:
    global_: cp_44; shared__cluster: cp_46; shared__cta: cp_48
class cp_50:
    bulk_group: cp_27; im2col_no_offs: cp_28; tile: cp_28
class cp_51:
    shared__cta: cp_50
class C62:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, offsets: In, /, *, guard: Guard = ...) -> None:
        "Copies a box of a tensor to shared memory, with .multicast::cluster of all blocks in `cta_mask`. Needs sm_90."
class C63:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, offsets: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copies a box of a tensor to shared memory, with .multicast::cluster of all blocks in `cta_mask`. Needs sm_90."
class cp_52(C62):
    L2__cache_hint: C63
class C64:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, offsets: In, cta_mask: In, /, *, guard: Guard = ...) -> None:
        "Copies a box of a tensor to shared memory, with .multicast::cluster of all blocks in `cta_mask`. Needs sm_90."
class C65:
    def __call__(self, dst: In, map: In, coordinates: In, mbarrier: In, offsets: In, cta_mask: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Copies a box of a tensor to shared memory, with .multicast::cluster of all blocks in `cta_mask`. Needs sm_90."
class cp_53(C64):
    L2__cache_hint: C65
class cp_54(C64):
    L2__cache_hint: C65; cta_group__1: cp_53; cta_group__2: cp_53
class cp_55(C62):
    L2__cache_hint: C63; cta_group__1: cp_52; cta_group__2: cp_52; multicast__cluster: cp_54
class cp_56:
    mbarrier__complete_tx__bytes: cp_55
class cp_57:
    im2col: cp_56; im2col__w: cp_56; im2col__w__128: cp_56; mbarrier__complete_tx__bytes: cp_34; tile: cp_35
class cp_58:
    global_: cp_57
class cp_59(C62):
    L2__cache_hint: C63; cta_group__1: cp_52; cta_group__2: cp_52
class cp_60:
    mbarrier__complete_tx__bytes: cp_59
class cp_61:
    im2col: cp_60; im2col__w: cp_60; im2col__w__128: cp_60; mbarrier__complete_tx__bytes: cp_38; tile: cp_39
class cp_62:
    global_: cp_61
class cp_63:
    global_: cp_51; shared__cluster: cp_58; shared__cta: cp_62
class cp_64:
    _1d: cp_42; _2d: cp_49; _3d: cp_63; _4d: cp_63; _5d: cp_63
class C66:
    def __call__(self, n: In, /, *, guard: Guard = ...) -> None:
        "Waits until at most the `n` newest bulk groups of the thread are under way; .read: have sources to read. Needs sm_90."
class cp_65(C66):
    read: C66
class cp_66:
    commit_group: C41; global_: cp_3; prefetch: cp_18; shared__cluster: cp_23; shared__cta: cp_26; tensor: cp_64; wait_group: cp_65
class C67:
    def __call__(self, dst: In, src: In, size: In, src_size: In = ..., /, *, guard: Guard = ...) -> None:
        "Copies `size` bytes from global to shared memory; done at a later wait. Bytes past `src_size` become zero."
class C68:
    def __call__(self, dst: In, src: In, size: In, src_size: In, policy: In = ..., /, *, guard: Guard = ...) -> None:
        "Copies `size` bytes from global to shared memory; done at a later wait. Bytes past `src_size` become zero."
class cp_67(C68):
    L2__128B: C68; L2__256B: C68; L2__64B: C68
class cp_68(C67):
    L2__128B: C67; L2__256B: C67; L2__64B: C67; L2__cache_hint: cp_67
class cp_69:
    global_: cp_68
class cp_70:
    shared: cp_69; shared__cta: cp_69
class C69:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Makes a group of the thread's copies since the last one."
class C70:
    def __call__(self, address: In, /, *, guard: Guard = ...) -> None:
        "Arrives at an mbarrier when the thread's copies so far are done; without .noinc the phase waits for one more."
class cp_71:
    b64: C70
class cp_72:
    b64: C70; shared: cp_71; shared__cta: cp_71
class cp_73:
    b64: C70; noinc: cp_72; shared: cp_71; shared__cta: cp_71
class cp_74:
    arrive: cp_73
class C71:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Waits until all copies of the thread are done."
class C72:
    def __call__(self, n: In, /, *, guard: Guard = ...) -> None:
        "Waits until at most the `n` newest groups of the thread's copies are under way."
class cp_75:
    bulk: cp_66; ca: cp_70; cg: cp_70; commit_group: C69; mbarrier: cp_74; wait_all: C71; wait_group: C72
class C73:
    def __call__(self, dst: In, src: In, size: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Combines `size` bytes with those at `dst` in global memory; done when the thread waits for its group. Needs sm_90."
class cp_76:
    bf16: C73; f16: C73
class cp_77:
    f32: C73; f64: C73; noftz: cp_76; s32: C73; u32: C73; u64: C73
class cp_78:
    b32: C73; b64: C73
class cp_79:
    u32: C73
class cp_80:
    bf16: C73; f16: C73; s32: C73; s64: C73; u32: C73; u64: C73
class cp_81:
    add: cp_77; and_: cp_78; dec: cp_79; inc: cp_79; max: cp_80; min: cp_80; or_: cp_78; xor: cp_78
class C74:
    def __call__(self, dst: In, src: In, size: In, /, *, guard: Guard = ...) -> None:
        "Combines `size` bytes with those at `dst` in global memory; done when the thread waits for its group. Needs sm_90."
class cp_82:
    bf16: C74; f16: C74
class cp_83:
    f32: C74; f64: C74; noftz: cp_82; s32: C74; u32: C74; u64: C74
class cp_84:
    b32: C74; b64: C74
class cp_85:
    u32: C74
class cp_86:
    bf16: C74; f16: C74; s32: C74; s64: C74; u32: C74; u64: C74
class cp_87:
    L2__cache_hint: cp_81; add: cp_83; and_: cp_84; dec: cp_85; inc: cp_85; max: cp_86; min: cp_86; or_: cp_84; xor: cp_84
class cp_88:
    bulk_group: cp_87
class cp_89:
    shared__cta: cp_88
class C75:
    def __call__(self, dst: In, src: In, size: In, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "Combines `size` bytes with those at `dst` in the shared memory of a block of the cluster, and completes them. Needs sm_90."
class cp_90:
    s32: C75; u32: C75; u64: C75
class cp_91:
    b32: C75
class cp_92:
    u32: C75
class cp_93:
    s32: C75; u32: C75
class cp_94:
    add: cp_90; and_: cp_91; dec: cp_92; inc: cp_92; max: cp_93; min: cp_93; or_: cp_91; xor: cp_91
class cp_95:
    mbarrier__complete_tx__bytes: cp_94
class cp_96:
    shared__cta: cp_95
class C76:
    def __call__(self, map: In, coordinates: In, src: In, /, *, guard: Guard = ...) -> None:
        "Combines shared memory with a box of a tensor, by an operation on its type. Needs sm_90."
class C77:
    def __call__(self, map: In, coordinates: In, src: In, policy: In, /, *, guard: Guard = ...) -> None:
        "Combines shared memory with a box of a tensor, by an operation on its type. Needs sm_90."
class cp_97(C76):
    L2__cache_hint: C77
class cp_98:
    bulk_group: cp_97
class cp_99:
    bulk_group: cp_97; tile: cp_98
class cp_100:
    add: cp_99; and_: cp_99; dec: cp_99; inc: cp_99; max: cp_99; min: cp_99; or_: cp_99; xor: cp_99
class cp_101:
    shared__cta: cp_100
class cp_102:
    global_: cp_101
class cp_103:
    bulk_group: cp_97; im2col_no_offs: cp_98; tile: cp_98
class cp_104:
    add: cp_103; and_: cp_103; dec: cp_103; inc: cp_103; max: cp_103; min: cp_103; or_: cp_103; xor: cp_103
class cp_105:
    shared__cta: cp_104
class cp_106:
    global_: cp_105
class cp_107:
    _1d: cp_102; _2d: cp_102; _3d: cp_106; _4d: cp_106; _5d: cp_106
class cp_108:
    global_: cp_89; shared__cluster: cp_96; tensor: cp_107
class cp_109:
    bulk: cp_108
class cp_110:
    async_: cp_109
class cp_111:
    async_: cp_75; reduce: cp_110
class C78:
    def __call__(self, access_property: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a cache policy, an opaque value for .L2::cache_hint."
class createpolicy_0:
    b64: C78
class createpolicy_1:
    L2: createpolicy_0
class C79:
    def __call__(self, fraction: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a cache policy, an opaque value for .L2::cache_hint."
class createpolicy_2:
    b64: C79
class createpolicy_3:
    L2__evict_first: createpolicy_2; L2__evict_unchanged: createpolicy_2; b64: C79
class createpolicy_4:
    L2__evict_first: createpolicy_3; L2__evict_last: createpolicy_3; L2__evict_normal: createpolicy_3; L2__evict_unchanged: createpolicy_3
class C80:
    def __call__(self, a: In, primary_size: In, total_size: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a cache policy, an opaque value for .L2::cache_hint."
class createpolicy_5:
    b64: C80
class createpolicy_6:
    L2__evict_first: createpolicy_5; L2__evict_unchanged: createpolicy_5; b64: C80
class createpolicy_7:
    L2__evict_first: createpolicy_6; L2__evict_last: createpolicy_6; L2__evict_normal: createpolicy_6; L2__evict_unchanged: createpolicy_6
class createpolicy_8:
    L2__evict_first: createpolicy_6; L2__evict_last: createpolicy_6; L2__evict_normal: createpolicy_6; L2__evict_unchanged: createpolicy_6; global_: createpolicy_7
class createpolicy_9:
    cvt: createpolicy_1; fractional: createpolicy_4; range: createpolicy_8
class C81:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a rounded to another floating type, or (.rni, …) to a whole number. Needs sm_90."
class cvt_0:
    bf16: C81; f16: C81
class C82:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a rounded to another floating type, or (.rni, …) to a whole number."
class cvt_1:
    bf16: C81; f16: C82
class cvt_2:
    bf16: C82; f16: C82; f32: C82
class cvt_3:
    bf16: C81; f16: C82; f32: C82; f64: C82
class cvt_4:
    f32: C82
class cvt_5:
    f16: C82; f32: C82
class cvt_6:
    f32: cvt_5; f64: cvt_4
class cvt_7:
    f32: cvt_2; f64: cvt_4; sat: cvt_6
class C83:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = {c, a, b}: a and b clamped to a narrower integer type, b in the lowest bits, the low bits of c above them."
class cvt_8:
    s32: C83
class C84:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = {c, a, b}: a and b clamped to a narrower integer type, b in the lowest bits, the low bits of c above them."
class cvt_9:
    b32: C84
class cvt_10:
    s32: cvt_9
class cvt_11:
    s16: cvt_8; s2: cvt_10; s4: cvt_10; s8: cvt_10; u16: cvt_8; u2: cvt_10; u4: cvt_10; u8: cvt_10
class cvt_12:
    sat: cvt_11
class C85:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the integer a rounded to a floating type; with .sat clamped to [0, 1]. Needs sm_90."
class cvt_13:
    f16: C81; f32: C82; f64: C81; s16: C85; s32: C85; s64: C85; u16: C85; u32: C85; u64: C85
class C86:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the integer a rounded to a floating type; with .sat clamped to [0, 1]."
class cvt_14:
    bf16: C81; f32: C82; f64: C82; s16: C86; s32: C86; s64: C86; s8: C86; u16: C86; u32: C86; u64: C86; u8: C86
class cvt_15:
    bf16: C82; f64: C82; s16: C86; s32: C86; s64: C86; s8: C86; u16: C86; u32: C86; u64: C86; u8: C86
class cvt_16:
    bf16: C81; s16: C86; s32: C86; s64: C86; s8: C86; u16: C86; u32: C86; u64: C86; u8: C86
class cvt_17:
    f64: C82; s16: C86; s32: C86; s64: C86; s8: C86; u16: C86; u32: C86; u64: C86; u8: C86
class cvt_18:
    f16: cvt_4; f32: cvt_17
class cvt_19:
    bf16: cvt_4; f16: cvt_4; f32: cvt_15; sat: cvt_18
class cvt_20:
    f32: C82; f64: C82; s16: C86; s32: C86; s64: C86; s8: C86; u16: C86; u32: C86; u64: C86; u8: C86
class cvt_21:
    s16: C86; s32: C86; s64: C86; s8: C86; u16: C86; u32: C86; u64: C86; u8: C86
class cvt_22:
    f16: cvt_20; f32: cvt_17; f64: cvt_21
class cvt_23:
    bf16: cvt_13; f16: cvt_14; f32: cvt_15; f64: cvt_16; ftz: cvt_19; sat: cvt_22
class cvt_24:
    bf16: C81
class cvt_25:
    f16: C82
class cvt_26:
    f64: C82
class C87:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a rounded to an integer and clamped to the range of its type; NaN is 0, with 64-bit types the high bit."
class cvt_27:
    f32: C87
class cvt_28:
    f32: cvt_4; s16: cvt_27; s32: cvt_27; s64: cvt_27; s8: cvt_27; u16: cvt_27; u32: cvt_27; u64: cvt_27; u8: cvt_27
class cvt_29:
    f32: cvt_4; s16: cvt_27; s32: cvt_27; s64: cvt_27; s8: cvt_27; sat: cvt_28; u16: cvt_27; u32: cvt_27; u64: cvt_27; u8: cvt_27
class C88:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a rounded to an integer and clamped to the range of its type; NaN is 0, with 64-bit types the high bit. Needs sm_90."
class cvt_30:
    bf16: C88; f16: C87; f32: C87; f64: C87
class cvt_31:
    f16: C87; f32: C87; f64: C87
class cvt_32:
    f16: cvt_25; f32: cvt_4; f64: cvt_26; s16: cvt_31; s32: cvt_31; s64: cvt_31; s8: cvt_31; u16: cvt_31; u32: cvt_31; u64: cvt_31; u8: cvt_31
class cvt_33:
    bf16: cvt_24; f16: cvt_25; f32: cvt_4; f64: cvt_26; ftz: cvt_29; s16: cvt_30; s32: cvt_30; s64: cvt_30; s8: cvt_31; sat: cvt_32; u16: cvt_30; u32: cvt_30; u64: cvt_30; u8: cvt_31
class C89:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = {a, b}, each rounded to a narrower floating type, b in the low half."
class cvt_34:
    f32: C89
class C90:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a rounded to another floating type, or (.rni, …) to a whole number. Needs sm_89."
class cvt_35:
    e4m3x2: C90; e5m2x2: C90; f32: C89
class cvt_36:
    bf16: cvt_4; bf16x2: cvt_34; f16: cvt_4; f16x2: cvt_34
class cvt_37:
    f32: C81
class cvt_38:
    bf16: cvt_4; bf16x2: cvt_34; f16: cvt_4; f16x2: cvt_35; satfinite: cvt_36; tf32: cvt_37
class C91:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = {a, b}, each rounded to a narrower floating type, b in the low half. Needs sm_89."
class cvt_39:
    f16x2: C90; f32: C91
class cvt_40:
    e4m3x2: cvt_39; e5m2x2: cvt_39; tf32: cvt_37
class cvt_41:
    bf16: cvt_4; bf16x2: cvt_34; e4m3x2: cvt_39; e5m2x2: cvt_39; f16: cvt_4; f16x2: cvt_34; relu: cvt_40; tf32: cvt_37
class cvt_42:
    bf16: cvt_13; bf16x2: cvt_34; f16: cvt_14; f16x2: cvt_35; f32: cvt_15; f64: cvt_16; ftz: cvt_19; relu: cvt_38; sat: cvt_22; satfinite: cvt_41; tf32: cvt_37
class cvt_43:
    tf32: cvt_4
class cvt_44:
    satfinite: cvt_43; tf32: cvt_4
class cvt_45:
    bf16: cvt_4; bf16x2: cvt_34; f16: cvt_4; f16x2: cvt_34; satfinite: cvt_36; tf32: cvt_37
class cvt_46:
    tf32: cvt_37
class cvt_47:
    bf16: cvt_4; bf16x2: cvt_34; f16: cvt_4; f16x2: cvt_34; relu: cvt_46; tf32: cvt_37
class cvt_48:
    bf16: cvt_13; bf16x2: cvt_34; f16: cvt_14; f16x2: cvt_34; f32: cvt_15; f64: cvt_16; ftz: cvt_19; relu: cvt_45; sat: cvt_22; satfinite: cvt_47; tf32: cvt_37
class C92:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a in another integer type, cut off or extended; with .sat clamped to its range."
class cvt_49:
    s16: C92; s32: C92; s64: C92; s8: C92; u16: C92; u32: C92; u64: C92; u8: C92
class cvt_50:
    f16: C82; f32: C82; f64: C82
class cvt_51:
    s32: C92; s64: C92; u16: C92; u32: C92; u64: C92
class cvt_52:
    s64: C92; u32: C92; u64: C92
class cvt_53:
    u64: C92
class cvt_54:
    s16: C92; s32: C92; s64: C92; u16: C92; u32: C92; u64: C92; u8: C92
class cvt_55:
    s16: C92; s32: C92; s64: C92; s8: C92; u32: C92; u64: C92
class cvt_56:
    s16: C92; s32: C92; s64: C92; s8: C92; u64: C92
class cvt_57:
    s16: C92; s32: C92; s64: C92; s8: C92
class cvt_58:
    s16: C92; s32: C92; s64: C92; s8: C92; u16: C92; u32: C92; u64: C92
class cvt_59:
    f16: cvt_25; f32: cvt_5; f64: cvt_50; s16: cvt_51; s32: cvt_52; s64: cvt_53; s8: cvt_54; u16: cvt_55; u32: cvt_56; u64: cvt_57; u8: cvt_58
class cvt_60:
    bf16: cvt_0; f16: cvt_1; f32: cvt_2; f64: cvt_3; ftz: cvt_7; pack: cvt_12; rm: cvt_23; rmi: cvt_33; rn: cvt_42; rna: cvt_44; rni: cvt_33; rp: cvt_23; rpi: cvt_33; rz: cvt_48; rzi: cvt_33; s16: cvt_49; s32: cvt_49; s64: cvt_49; s8: cvt_49; sat: cvt_59; u16: cvt_49; u32: cvt_49; u64: cvt_49; u8: cvt_49
class C93:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the generic address of an address in a space; with .to the other way round."
class cvta_0:
    u64: C93
class cvta_1:
    const: cvta_0; global_: cvta_0; local: cvta_0; param: cvta_0; param__entry: cvta_0; shared: cvta_0; shared__cluster: cvta_0; shared__cta: cvta_0
class cvta_2:
    const: cvta_0; global_: cvta_0; local: cvta_0; param: cvta_0; param__entry: cvta_0; shared: cvta_0; shared__cluster: cvta_0; shared__cta: cvta_0; to: cvta_1
class C94:
    def __call__(self, a: In, size: In, /, *, guard: Guard = ...) -> None:
        "Drops a cache line without writing it back: its 128 bytes have no defined value until they are written."
class discard_0:
    L2: C94
class discard_1:
    L2: C94; global_: discard_0
class C95:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a / b, within 2 units in the last place; .approx gives 0 where 2^126 < |b| < 2^128."
class div_0:
    f32: C95
class div_1:
    f32: C95; ftz: div_0
class C96:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a / b."
class div_2:
    f32: C96
class div_3:
    f32: C96; f64: C96; ftz: div_2
class C97:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a / b, rounded toward zero; division by zero gives all ones."
class div_4:
    approx: div_1; full: div_1; rm: div_3; rn: div_3; rp: div_3; rz: div_3; s16: C97; s32: C97; s64: C97; u16: C97; u32: C97; u64: C97
class C98:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = c + the dot product of the two halves of a and the two low or high bytes of b; d, c: s32 where a or b is."
class dp2a_0:
    s32: C98; u32: C98
class dp2a_1:
    s32: dp2a_0; u32: dp2a_0
class dp2a_2:
    hi: dp2a_1; lo: dp2a_1
class C99:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = c + the dot product of the four bytes of a and of b; d and c are s32 where a or b is."
class dp4a_0:
    s32: C99; u32: C99
class dp4a_1:
    s32: dp4a_0; u32: dp4a_0
class C100:
    def __call__(self, membermask: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Scalar, Scalar]:
        "p = true in one of the lanes, the lowest; d = its number. Needs sm_90."
class elect_0:
    sync: C100
class C101:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 2 to the power of a."
class C102:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 2 to the power of a. Needs sm_90."
class ex2_0:
    bf16: C102; bf16x2: C102; f32: C101
class ex2_1:
    f16: C101; f16x2: C101; f32: C101; ftz: ex2_0
class ex2_2:
    approx: ex2_1
class C103:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Ends the threads."
class C104:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Orders this thread's memory accesses for the threads of a scope. Needs sm_90."
class C105:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Orders this thread's memory accesses for the threads of a scope."
class fence_0:
    cluster: C104; cta: C105; gpu: C105; sys: C105
class fence_1:
    cluster: C104
class fence_2:
    cluster: C105; cta: C105; gpu: C105; sync_restrict__shared__cluster: fence_1; sys: C105
class fence_3:
    release: fence_1
class C106:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Orders accesses of different kinds (proxies) to the same memory."
class C107:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Orders accesses of different kinds (proxies) to the same memory. Needs sm_90."
class fence_4(C107):
    global_: C107; shared__cluster: C107; shared__cta: C107
class fence_5:
    cluster: C107
class fence_6:
    sync_restrict__shared__cluster: fence_5
class fence_7:
    sync_restrict__shared__cta: fence_5
class fence_8:
    acquire: fence_6; release: fence_7
class C108:
    def __call__(self, address: In, size: In, /, *, guard: Guard = ...) -> None:
        "Orders accesses of different kinds (proxies) to the same memory. Needs sm_90."
class fence_9:
    cluster: C108; cta: C108; gpu: C108; sys: C108
class fence_10:
    cluster: C107; cta: C107; gpu: C107; sys: C107
class fence_11:
    acquire: fence_9; release: fence_10
class fence_12:
    alias: C106; async_: fence_4; async__generic: fence_8; tensormap__generic: fence_11
class fence_13:
    cluster: C105; cta: C105; gpu: C105; sync_restrict__shared__cta: fence_1; sys: C105
class fence_14:
    acq_rel: fence_0; acquire: fence_2; cluster: C104; cta: C105; gpu: C105; mbarrier_init: fence_3; proxy: fence_12; release: fence_13; sc: fence_0; sys: C105
class C109:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a * b + c, rounded once."
class C110:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a * b + c, rounded once. Needs sm_100."
class fma_0(C109):
    bf16: C110; f16: C110
class fma_1:
    f32: C109
class fma_2:
    f32: C109; f32x2: C110; sat: fma_1
class fma_3:
    f32: fma_0
class fma_4:
    f32: fma_0; f32x2: C110; f64: C109; ftz: fma_2; sat: fma_3
class C111:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a * b + c, rounded once; with .relu at least 0."
class fma_5:
    f16: C111; f16x2: C111
class fma_6:
    f16: C111; f16x2: C111; f32: C109
class fma_7:
    f16: C111; f16x2: C111; f32: C109; f32x2: C110; relu: fma_5; sat: fma_6
class fma_8:
    bf16: C111; bf16x2: C111; f16: C111; f16x2: C111
class fma_9:
    f16: C111; f16x2: C111; f32: fma_0
class fma_10:
    bf16: C111; bf16x2: C111; f16: C111; f16x2: C111; f32: fma_0; f32x2: C110; f64: C109; ftz: fma_7; relu: fma_8; sat: fma_9
class fma_11:
    rm: fma_4; rn: fma_10; rp: fma_4; rz: fma_4
class C112:
    def __call__(self, mask: In, base: In, offset: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the position of the n-th set bit of mask, n = |offset|, from base up (offset < 0: down), else 0xffffffff."
class fns_0:
    b32: C112
class C113:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the rank in the cluster of the block in whose shared memory the address `a` lies. Needs sm_90."
class getctarank_0:
    u32: C113; u64: C113
class getctarank_1:
    shared__cluster: getctarank_0; u32: C113; u64: C113
class C114:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Lets grids that are launched as dependents of this one begin, once all of its blocks have said so or ended. Needs sm_90."
class C115:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Waits until the grids before this one have ended, and sees what they wrote. Needs sm_90."
class griddepcontrol_0:
    launch_dependents: C114; wait: C115
class C116:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "p = whether a generic address lies in a space."
class isspacep_0:
    const: C116; global_: C116; local: C116; param: C116; param__entry: C116; shared: C116; shared__cluster: C116; shared__cta: C116
class C117:
    def __call__(self, a: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the value at an address."
class C118:
    def __call__(self, a: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = the value at an address."
class ld_0:
    b16: C118; b32: C118; b64: C118; b8: C118; f32: C118; f64: C118; s16: C118; s32: C118; s64: C118; s8: C118; u16: C118; u32: C118; u64: C118; u8: C118
class C119:
    def __call__(self, a: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = the value at an address."
class ld_1:
    b16: C119; b32: C119; b64: C119; b8: C119; f32: C119; f64: C119; s16: C119; s32: C119; s64: C119; s8: C119; u16: C119; u32: C119; u64: C119; u8: C119
class C120:
    def __call__(self, a: In, policy: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = the value at an address."
class ld_2:
    b32: C120; f32: C120; s32: C120; u32: C120
class ld_3:
    b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; f32: C117; f64: C117; s16: C117; s32: C117; s64: C117; s8: C117; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_1; v8: ld_2
class ld_4:
    L2__128B: ld_3; L2__256B: ld_3; L2__64B: ld_3; b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; f32: C117; f64: C117; s16: C117; s32: C117; s64: C117; s8: C117; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_1; v8: ld_2
class ld_5:
    b64: C119; f64: C119; s64: C119; u64: C119
class ld_6:
    v4: ld_5; v8: ld_2
class ld_7:
    L2__128B: ld_6; L2__256B: ld_6; L2__64B: ld_6; v4: ld_5; v8: ld_2
class ld_8:
    L2__128B: ld_6; L2__256B: ld_6; L2__64B: ld_6; L2__cache_hint: ld_7; v4: ld_5; v8: ld_2
class ld_9:
    L2__128B: ld_3; L2__256B: ld_3; L2__64B: ld_3; L2__cache_hint: ld_4; L2__evict_first: ld_8; L2__evict_last: ld_8; L2__evict_normal: ld_8; b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; f32: C117; f64: C117; s16: C117; s32: C117; s64: C117; s8: C117; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_1; v8: ld_2
class ld_10:
    L1__evict_first: ld_9; L1__evict_last: ld_9; L1__evict_normal: ld_9; L1__evict_unchanged: ld_9; L1__no_allocate: ld_9; L2__128B: ld_3; L2__256B: ld_3; L2__64B: ld_3; L2__cache_hint: ld_4; L2__evict_first: ld_8; L2__evict_last: ld_8; L2__evict_normal: ld_8; b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; f32: C117; f64: C117; s16: C117; s32: C117; s64: C117; s8: C117; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_1; v8: ld_2
class ld_11:
    b16: C119; b32: C119; b8: C119; f32: C119; s16: C119; s32: C119; s8: C119; u16: C119; u32: C119; u8: C119
class ld_12:
    b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; f32: C117; f64: C117; s16: C117; s32: C117; s64: C117; s8: C117; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_11
class ld_13:
    L1__evict_first: ld_9; L1__evict_last: ld_9; L1__evict_normal: ld_9; L1__evict_unchanged: ld_9; L1__no_allocate: ld_9; L2__128B: ld_3; L2__256B: ld_3; L2__64B: ld_3; L2__cache_hint: ld_4; L2__evict_first: ld_8; L2__evict_last: ld_8; L2__evict_normal: ld_8; b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; f32: C117; f64: C117; global_: ld_10; s16: C117; s32: C117; s64: C117; s8: C117; shared: ld_12; shared__cluster: ld_12; shared__cta: ld_12; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_1; v8: ld_2
class ld_14:
    cluster: ld_13; cta: ld_13; gpu: ld_13; sys: ld_13
class ld_15:
    L2__128B: ld_3; L2__256B: ld_3; L2__64B: ld_3; L2__cache_hint: ld_4; b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; f32: C117; f64: C117; s16: C117; s32: C117; s64: C117; s8: C117; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_1; v8: ld_2
class ld_16:
    b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; ca: ld_12; cg: ld_12; cs: ld_12; cv: ld_12; f32: C117; f64: C117; lu: ld_12; s16: C117; s32: C117; s64: C117; s8: C117; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_11
class ld_17:
    L2__128B: ld_3; L2__256B: ld_3; L2__64B: ld_3; L2__cache_hint: ld_4; b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; f32: C117; f64: C117; nc: ld_15; s16: C117; s32: C117; s64: C117; s8: C117; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_1; v8: ld_2
class ld_18:
    L1__evict_first: ld_9; L1__evict_last: ld_9; L1__evict_normal: ld_9; L1__evict_unchanged: ld_9; L1__no_allocate: ld_9; L2__128B: ld_3; L2__256B: ld_3; L2__64B: ld_3; L2__cache_hint: ld_4; L2__evict_first: ld_8; L2__evict_last: ld_8; L2__evict_normal: ld_8; b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; ca: ld_17; cg: ld_17; cs: ld_17; cv: ld_15; f32: C117; f64: C117; lu: ld_15; nc: ld_10; s16: C117; s32: C117; s64: C117; s8: C117; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_1; v8: ld_2
class C121:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the value at an address."
class ld_19:
    b128: C121; b16: C121; b32: C121; b64: C121; b8: C121; f32: C121; f64: C121; s16: C121; s32: C121; s64: C121; s8: C121; u16: C121; u32: C121; u64: C121; u8: C121
class ld_20:
    b128: C121; b16: C121; b32: C121; b64: C121; b8: C121; f32: C121; f64: C121; global_: ld_19; s16: C121; s32: C121; s64: C121; s8: C121; u16: C121; u32: C121; u64: C121; u8: C121
class ld_21:
    sys: ld_20
class ld_22:
    relaxed: ld_21
class C122:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = the value at an address."
class ld_23:
    b16: C122; b32: C122; b64: C122; b8: C122; f32: C122; f64: C122; s16: C122; s32: C122; s64: C122; s8: C122; u16: C122; u32: C122; u64: C122; u8: C122
class C123:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = the value at an address."
class ld_24:
    b16: C123; b32: C123; b64: C123; b8: C123; f32: C123; f64: C123; s16: C123; s32: C123; s64: C123; s8: C123; u16: C123; u32: C123; u64: C123; u8: C123
class C124:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = the value at an address."
class ld_25:
    b32: C124; f32: C124; s32: C124; u32: C124
class ld_26:
    b128: C121; b16: C121; b32: C121; b64: C121; b8: C121; f32: C121; f64: C121; s16: C121; s32: C121; s64: C121; s8: C121; u16: C121; u32: C121; u64: C121; u8: C121; v2: ld_23; v4: ld_24; v8: ld_25
class ld_27:
    L2__128B: ld_26; L2__256B: ld_26; L2__64B: ld_26; b128: C121; b16: C121; b32: C121; b64: C121; b8: C121; f32: C121; f64: C121; s16: C121; s32: C121; s64: C121; s8: C121; u16: C121; u32: C121; u64: C121; u8: C121; v2: ld_23; v4: ld_24; v8: ld_25
class ld_28:
    b16: C123; b32: C123; b8: C123; f32: C123; s16: C123; s32: C123; s8: C123; u16: C123; u32: C123; u8: C123
class ld_29:
    b128: C121; b16: C121; b32: C121; b64: C121; b8: C121; f32: C121; f64: C121; s16: C121; s32: C121; s64: C121; s8: C121; u16: C121; u32: C121; u64: C121; u8: C121; v2: ld_23; v4: ld_28
class ld_30:
    L2__128B: ld_26; L2__256B: ld_26; L2__64B: ld_26; b128: C121; b16: C121; b32: C121; b64: C121; b8: C121; f32: C121; f64: C121; global_: ld_27; s16: C121; s32: C121; s64: C121; s8: C121; shared: ld_29; shared__cluster: ld_29; shared__cta: ld_29; u16: C121; u32: C121; u64: C121; u8: C121; v2: ld_23; v4: ld_24; v8: ld_25
class ld_31:
    L1__evict_first: ld_9; L1__evict_last: ld_9; L1__evict_normal: ld_9; L1__evict_unchanged: ld_9; L1__no_allocate: ld_9; L2__128B: ld_3; L2__256B: ld_3; L2__64B: ld_3; L2__cache_hint: ld_4; L2__evict_first: ld_8; L2__evict_last: ld_8; L2__evict_normal: ld_8; b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; ca: ld_15; cg: ld_15; cs: ld_15; cv: ld_15; f32: C117; f64: C117; lu: ld_15; s16: C117; s32: C117; s64: C117; s8: C117; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_1; v8: ld_2
class ld_32:
    L1__evict_first: ld_9; L1__evict_last: ld_9; L1__evict_normal: ld_9; L1__evict_unchanged: ld_9; L1__no_allocate: ld_9; L2__128B: ld_3; L2__256B: ld_3; L2__64B: ld_3; L2__cache_hint: ld_4; L2__evict_first: ld_8; L2__evict_last: ld_8; L2__evict_normal: ld_8; b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; ca: ld_15; cg: ld_15; const: ld_16; cs: ld_15; cv: ld_15; f32: C117; f64: C117; global_: ld_31; local: ld_16; lu: ld_15; param: ld_16; param__entry: ld_16; param__func: ld_16; s16: C117; s32: C117; s64: C117; s8: C117; shared: ld_16; shared__cluster: ld_16; shared__cta: ld_16; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_1; v8: ld_2
class ld_33:
    L1__evict_first: ld_9; L1__evict_last: ld_9; L1__evict_normal: ld_9; L1__evict_unchanged: ld_9; L1__no_allocate: ld_9; L2__128B: ld_3; L2__256B: ld_3; L2__64B: ld_3; L2__cache_hint: ld_4; L2__evict_first: ld_8; L2__evict_last: ld_8; L2__evict_normal: ld_8; acquire: ld_14; b128: C117; b16: C117; b32: C117; b64: C117; b8: C117; ca: ld_15; cg: ld_15; const: ld_16; cs: ld_15; cv: ld_15; f32: C117; f64: C117; global_: ld_18; local: ld_16; lu: ld_15; mmio: ld_22; param: ld_16; param__entry: ld_16; param__func: ld_16; relaxed: ld_14; s16: C117; s32: C117; s64: C117; s8: C117; shared: ld_16; shared__cluster: ld_16; shared__cta: ld_16; u16: C117; u32: C117; u64: C117; u8: C117; v2: ld_0; v4: ld_1; v8: ld_2; volatile: ld_30; weak: ld_32
class C125:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = matrices of bytes, or of 4 or 6 bits widened to bytes. Needs sm_100f or sm_110f or sm_120f."
class ldmatrix_0:
    b4x16_p64: C125; b6x16_p32: C125
class ldmatrix_1:
    b8: C125; b8x16: ldmatrix_0
class ldmatrix_2:
    b8: C125; b8x16: ldmatrix_0; shared: ldmatrix_1; shared__cta: ldmatrix_1
class ldmatrix_3:
    trans: ldmatrix_2
class C126:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = matrices of bytes, or of 4 or 6 bits widened to bytes. Needs sm_100f or sm_110f or sm_120f."
class ldmatrix_4:
    b4x16_p64: C126; b6x16_p32: C126
class ldmatrix_5:
    b8: C126; b8x16: ldmatrix_4
class ldmatrix_6:
    b8: C126; b8x16: ldmatrix_4; shared: ldmatrix_5; shared__cta: ldmatrix_5
class ldmatrix_7:
    trans: ldmatrix_6
class ldmatrix_8:
    x1: ldmatrix_3; x2: ldmatrix_7
class C127:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = matrices of bytes, or of 4 or 6 bits widened to bytes. Needs sm_100f or sm_110f or sm_120f."
class ldmatrix_9:
    b4x16_p64: C127; b6x16_p32: C127
class ldmatrix_10:
    b8x16: ldmatrix_9
class ldmatrix_11:
    b8x16: ldmatrix_9; shared: ldmatrix_10; shared__cta: ldmatrix_10
class ldmatrix_12:
    b8x16: ldmatrix_0
class ldmatrix_13:
    b8x16: ldmatrix_0; shared: ldmatrix_12; shared__cta: ldmatrix_12
class ldmatrix_14:
    b8x16: ldmatrix_4
class ldmatrix_15:
    b8x16: ldmatrix_4; shared: ldmatrix_14; shared__cta: ldmatrix_14
class ldmatrix_16:
    x1: ldmatrix_11; x2: ldmatrix_13; x4: ldmatrix_15
class C128:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = matrices: lane 4g + t takes elements 2t and 2t+1 of row g; with .trans of column g."
class ldmatrix_17:
    b16: C128
class ldmatrix_18:
    b16: C128; shared: ldmatrix_17; shared__cta: ldmatrix_17
class ldmatrix_19:
    b16: C128; shared: ldmatrix_17; shared__cta: ldmatrix_17; trans: ldmatrix_18
class C129:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = matrices: lane 4g + t takes elements 2t and 2t+1 of row g; with .trans of column g."
class ldmatrix_20:
    b16: C129
class ldmatrix_21:
    b16: C129; shared: ldmatrix_20; shared__cta: ldmatrix_20
class ldmatrix_22:
    b16: C129; shared: ldmatrix_20; shared__cta: ldmatrix_20; trans: ldmatrix_21
class C130:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = matrices: lane 4g + t takes elements 2t and 2t+1 of row g; with .trans of column g."
class ldmatrix_23:
    b16: C130
class ldmatrix_24:
    b16: C130; shared: ldmatrix_23; shared__cta: ldmatrix_23
class ldmatrix_25:
    b16: C130; shared: ldmatrix_23; shared__cta: ldmatrix_23; trans: ldmatrix_24
class ldmatrix_26:
    x1: ldmatrix_19; x2: ldmatrix_22; x4: ldmatrix_25
class ldmatrix_27:
    m16n16: ldmatrix_8; m8n16: ldmatrix_16; m8n8: ldmatrix_26
class ldmatrix_28:
    aligned: ldmatrix_27
class ldmatrix_29:
    sync: ldmatrix_28
class ldu_0:
    b16: C122; b32: C122; b64: C122; b8: C122; f32: C122; f64: C122; s16: C122; s32: C122; s64: C122; s8: C122; u16: C122; u32: C122; u64: C122; u8: C122
class ldu_1:
    b16: C123; b32: C123; b8: C123; f32: C123; s16: C123; s32: C123; s8: C123; u16: C123; u32: C123; u8: C123
class ldu_2:
    b128: C121; b16: C121; b32: C121; b64: C121; b8: C121; f32: C121; f64: C121; s16: C121; s32: C121; s64: C121; s8: C121; u16: C121; u32: C121; u64: C121; u8: C121; v2: ldu_0; v4: ldu_1
class ldu_3:
    b128: C121; b16: C121; b32: C121; b64: C121; b8: C121; f32: C121; f64: C121; global_: ldu_2; s16: C121; s32: C121; s64: C121; s8: C121; u16: C121; u32: C121; u64: C121; u8: C121; v2: ldu_0; v4: ldu_1
class C131:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the logarithm of a to base 2."
class lg2_0:
    f32: C131
class lg2_1:
    f32: C131; ftz: lg2_0
class lg2_2:
    approx: lg2_1
class C132:
    def __call__(self, a: In, b: In, c: In, lut: In, q: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Scalar, Scalar]:
        "d = the logic function of a, b, c whose truth table is `lut`; p = d != 0, joined with q."
class lop3_0:
    b32: C132
class C133:
    def __call__(self, a: In, b: In, c: In, lut: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the logic function of a, b, c whose truth table is `lut`; p = d != 0, joined with q."
class lop3_1:
    and_: lop3_0; b32: C133; or_: lop3_0
class C134:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a * b + c, rounded once: the same as fma."
class mad_0:
    f32: C134
class mad_1:
    f32: C134; sat: mad_0
class C135:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the low or the high half of a * b, plus c, with madc also + CC.CF; .cc writes the carry to CC.CF."
class mad_2:
    s32: C135; s64: C135; u32: C135; u64: C135
class C136:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the low or the high half of a * b, plus c; with .sat clamped to the range of s32."
class mad_3:
    s32: C136
class mad_4:
    cc: mad_2; s16: C136; s32: C136; s64: C136; sat: mad_3; u16: C136; u32: C136; u64: C136
class mad_5:
    cc: mad_2; s16: C136; s32: C136; s64: C136; u16: C136; u32: C136; u64: C136
class mad_6:
    f32: C134; f64: C134; ftz: mad_1; sat: mad_0
class C137:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a * b + c, with twice the bits of a and b."
class mad_7:
    s16: C137; s32: C137; u16: C137; u32: C137
class mad_8:
    f32: C134; ftz: mad_1; hi: mad_4; lo: mad_5; rm: mad_6; rn: mad_6; rp: mad_6; rz: mad_6; sat: mad_0; wide: mad_7
class C138:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the low or the high 32 bits of the 48-bit product of the low 24 bits of a and b, plus c."
class mad24_0:
    s32: C138
class mad24_1:
    s32: C138; sat: mad24_0; u32: C138
class mad24_2:
    s32: C138; u32: C138
class mad24_3:
    hi: mad24_1; lo: mad24_2
class madc_0:
    s32: C135; s64: C135; u32: C135; u64: C135
class madc_1:
    cc: madc_0; s32: C135; s64: C135; u32: C135; u64: C135
class madc_2:
    hi: madc_1; lo: madc_1
class C139:
    def __call__(self, a: In, rank: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the address of what lies at `a` in shared memory, in that of the block with a rank in the cluster. Needs sm_90."
class mapa_0:
    u32: C139; u64: C139
class mapa_1:
    shared__cluster: mapa_0; u32: C139; u64: C139
class C140:
    def __call__(self, a: In, membermask: In, /, *, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        "d = the member mask and p = true where all lanes have the same `a`, else 0 and false."
class match_0:
    b32: C140; b64: C140
class match_1:
    sync: match_0
class C141:
    def __call__(self, a: In, membermask: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the lanes whose `a` is the same as this lane's, a bit for each."
class match_2:
    b32: C141; b64: C141
class match_3:
    sync: match_2
class match_4:
    all: match_1; any: match_3
class C142:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the greatest of a, b (and c); with .xorsign.abs, of their sizes, negative where their signs differ. Needs sm_100."
class max_0:
    f32: C142
class C143:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the greater of a and b; with .xorsign.abs, of their sizes, negative where their signs differ."
class C144:
    def __call__(self, a: In, b: In, c: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the greatest of a, b (and c); with .xorsign.abs, of their sizes, negative where their signs differ."
class C145:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the greatest of a, b (and c); with .xorsign.abs, of their sizes, negative where their signs differ."
class max_1:
    bf16: C143; bf16x2: C143; f16: C143; f16x2: C143; f32: C145
class max_2:
    abs: max_1
class max_3:
    abs: max_0; bf16: C143; bf16x2: C143; f16: C143; f16x2: C143; f32: C144; xorsign: max_2
class max_4:
    f16: C143; f16x2: C143; f32: C145
class max_5:
    abs: max_4
class max_6:
    abs: max_0; f16: C143; f16x2: C143; f32: C144; xorsign: max_5
class max_7:
    NaN: max_6; abs: max_0; f16: C143; f16x2: C143; f32: C144; xorsign: max_5
class C146:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the greater of a and b in each half; with .relu at least 0. Needs sm_90."
class C147:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the greater of a and b; with .relu at least 0."
class max_8:
    s16x2: C146; s32: C147
class max_9:
    NaN: max_3; abs: max_0; bf16: C143; bf16x2: C143; f16: C143; f16x2: C143; f32: C144; f64: C145; ftz: max_7; relu: max_8; s16: C147; s16x2: C146; s32: C147; s64: C147; u16: C147; u16x2: C146; u32: C147; u64: C147; xorsign: max_2
class C148:
    def __call__(self, address: In, count: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Counts `count` arrivals, or one, at an mbarrier object; state = the phase that they belong to."
class C149:
    def __call__(self, address: In, tx_count: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "The phase waits for `tx_count` bytes more, then one arrival is counted; state = the phase that it belongs to. Needs sm_90."
class mbarrier_0:
    b64: C149
class C150:
    def __call__(self, address: In, tx_count: In, /, *, guard: Guard = ...) -> None:
        "The phase waits for `tx_count` bytes more, then one arrival is counted; state = the phase that it belongs to. Needs sm_90."
class mbarrier_1:
    b64: C150
class mbarrier_2:
    b64: C149; shared: mbarrier_0; shared__cluster: mbarrier_1; shared__cta: mbarrier_0
class mbarrier_3:
    cluster: mbarrier_2; cta: mbarrier_2
class mbarrier_4:
    b64: C149; relaxed: mbarrier_3; release: mbarrier_3; shared: mbarrier_0; shared__cluster: mbarrier_1; shared__cta: mbarrier_0
class C151:
    def __call__(self, address: In, count: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "Counts `count` arrivals, or one, at an mbarrier object; state = the phase that they belong to."
class mbarrier_5:
    b64: C151
class mbarrier_6:
    b64: C151; shared: mbarrier_5; shared__cta: mbarrier_5
class mbarrier_7:
    cta: mbarrier_6
class mbarrier_8:
    b64: C151; release: mbarrier_7; shared: mbarrier_5; shared__cta: mbarrier_5
class mbarrier_9:
    b64: C148
class C152:
    def __call__(self, address: In, count: In = ..., /, *, guard: Guard = ...) -> None:
        "Counts `count` arrivals, or one, at an mbarrier of any block of the cluster; gives no state. Needs sm_90."
class mbarrier_10:
    b64: C152
class mbarrier_11:
    b64: C148; shared: mbarrier_9; shared__cluster: mbarrier_10; shared__cta: mbarrier_9
class mbarrier_12:
    cluster: mbarrier_11; cta: mbarrier_11
class mbarrier_13:
    b64: C148; expect_tx: mbarrier_4; noComplete: mbarrier_8; relaxed: mbarrier_12; release: mbarrier_12; shared: mbarrier_9; shared__cluster: mbarrier_10; shared__cta: mbarrier_9
class C153:
    def __call__(self, address: In, count: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "As mbarrier.arrive, and the later phases wait for as many fewer."
class C154:
    def __call__(self, address: In, tx_count: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "As mbarrier.arrive.expect_tx, and the later phases wait for one arrival fewer. Needs sm_90."
class mbarrier_14:
    b64: C154
class C155:
    def __call__(self, address: In, tx_count: In, /, *, guard: Guard = ...) -> None:
        "As mbarrier.arrive.expect_tx, and the later phases wait for one arrival fewer. Needs sm_90."
class mbarrier_15:
    b64: C155
class mbarrier_16:
    b64: C154; shared: mbarrier_14; shared__cluster: mbarrier_15; shared__cta: mbarrier_14
class mbarrier_17:
    cluster: mbarrier_16; cta: mbarrier_16
class mbarrier_18:
    b64: C154; relaxed: mbarrier_17; release: mbarrier_17; shared: mbarrier_14; shared__cluster: mbarrier_15; shared__cta: mbarrier_14
class C156:
    def __call__(self, address: In, count: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "As mbarrier.arrive, and the later phases wait for as many fewer."
class mbarrier_19:
    b64: C156
class mbarrier_20:
    b64: C156; shared: mbarrier_19; shared__cta: mbarrier_19
class mbarrier_21:
    cta: mbarrier_20
class mbarrier_22:
    b64: C156; release: mbarrier_21; shared: mbarrier_19; shared__cta: mbarrier_19
class mbarrier_23:
    b64: C153
class C157:
    def __call__(self, address: In, count: In = ..., /, *, guard: Guard = ...) -> None:
        "As mbarrier.arrive at an mbarrier of any block of the cluster, and the later phases wait for as many fewer. Needs sm_90."
class mbarrier_24:
    b64: C157
class mbarrier_25:
    b64: C153; shared: mbarrier_23; shared__cluster: mbarrier_24; shared__cta: mbarrier_23
class mbarrier_26:
    cluster: mbarrier_25; cta: mbarrier_25
class mbarrier_27:
    b64: C153; expect_tx: mbarrier_18; noComplete: mbarrier_22; relaxed: mbarrier_26; release: mbarrier_26; shared: mbarrier_23; shared__cluster: mbarrier_24; shared__cta: mbarrier_23
class C158:
    def __call__(self, address: In, tx_count: In, /, *, guard: Guard = ...) -> None:
        "The phase waits for `tx_count` bytes fewer, as if a copy of so many had ended; it copies nothing. Needs sm_90."
class mbarrier_28:
    b64: C158
class mbarrier_29:
    b64: C158; shared: mbarrier_28; shared__cluster: mbarrier_28; shared__cta: mbarrier_28
class mbarrier_30:
    cluster: mbarrier_29; cta: mbarrier_29
class mbarrier_31:
    b64: C158; relaxed: mbarrier_30; shared: mbarrier_28; shared__cluster: mbarrier_28; shared__cta: mbarrier_28
class C159:
    def __call__(self, address: In, tx_count: In, /, *, guard: Guard = ...) -> None:
        "The phase waits for `tx_count` bytes more. Needs sm_90."
class mbarrier_32:
    b64: C159
class mbarrier_33:
    b64: C159; shared: mbarrier_32; shared__cluster: mbarrier_32; shared__cta: mbarrier_32
class mbarrier_34:
    cluster: mbarrier_33; cta: mbarrier_33
class mbarrier_35:
    b64: C159; relaxed: mbarrier_34; shared: mbarrier_32; shared__cluster: mbarrier_32; shared__cta: mbarrier_32
class C160:
    def __call__(self, address: In, count: In, /, *, guard: Guard = ...) -> None:
        "Makes an mbarrier object, each of whose phases waits for `count` arrivals."
class mbarrier_36:
    b64: C160
class mbarrier_37:
    b64: C160; shared: mbarrier_36; shared__cta: mbarrier_36
class C161:
    def __call__(self, address: In, /, *, guard: Guard = ...) -> None:
        "Ends an mbarrier object, so that its bytes may be used for something else."
class mbarrier_38:
    b64: C161
class mbarrier_39:
    b64: C161; shared: mbarrier_38; shared__cta: mbarrier_38
class C162:
    def __call__(self, state: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "count = the arrivals that the phase of a state still waited for."
class mbarrier_40:
    b64: C162
class C163:
    def __call__(self, address: In, state: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "p = whether the phase of a state, or the last phase of a parity, is complete."
class mbarrier_41:
    b64: C163
class mbarrier_42:
    b64: C163; shared: mbarrier_41; shared__cta: mbarrier_41
class mbarrier_43:
    cluster: mbarrier_42; cta: mbarrier_42
class C164:
    def __call__(self, address: In, parity: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "p = whether the phase of a state, or the last phase of a parity, is complete."
class mbarrier_44:
    b64: C164
class mbarrier_45:
    b64: C164; shared: mbarrier_44; shared__cta: mbarrier_44
class mbarrier_46:
    cluster: mbarrier_45; cta: mbarrier_45
class mbarrier_47:
    acquire: mbarrier_46; b64: C164; relaxed: mbarrier_46; shared: mbarrier_44; shared__cta: mbarrier_44
class mbarrier_48:
    acquire: mbarrier_43; b64: C163; parity: mbarrier_47; relaxed: mbarrier_43; shared: mbarrier_41; shared__cta: mbarrier_41
class C165:
    def __call__(self, address: In, state: In, hint: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "As mbarrier.test_wait, but first waits for some time. Needs sm_90."
class mbarrier_49:
    b64: C165
class mbarrier_50:
    b64: C165; shared: mbarrier_49; shared__cta: mbarrier_49
class mbarrier_51:
    cluster: mbarrier_50; cta: mbarrier_50
class C166:
    def __call__(self, address: In, parity: In, hint: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "As mbarrier.test_wait, but first waits for some time. Needs sm_90."
class mbarrier_52:
    b64: C166
class mbarrier_53:
    b64: C166; shared: mbarrier_52; shared__cta: mbarrier_52
class mbarrier_54:
    cluster: mbarrier_53; cta: mbarrier_53
class mbarrier_55:
    acquire: mbarrier_54; b64: C166; relaxed: mbarrier_54; shared: mbarrier_52; shared__cta: mbarrier_52
class mbarrier_56:
    acquire: mbarrier_51; b64: C165; parity: mbarrier_55; relaxed: mbarrier_51; shared: mbarrier_49; shared__cta: mbarrier_49
class mbarrier_57:
    arrive: mbarrier_13; arrive_drop: mbarrier_27; complete_tx: mbarrier_31; expect_tx: mbarrier_35; init: mbarrier_37; inval: mbarrier_39; pending_count: mbarrier_40; test_wait: mbarrier_48; try_wait: mbarrier_56
class C167:
    def __call__(self, *, guard: Guard = ...) -> None:
        "The older spelling of fence."
class membar_0:
    alias: C167
class membar_1:
    cta: C167; gl: C167; proxy: membar_0; sys: C167
class C168:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the least of a, b (and c); with .xorsign.abs, of their sizes, negative where their signs differ. Needs sm_100."
class min_0:
    f32: C168
class C169:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the lesser of a and b; with .xorsign.abs, of their sizes, negative where their signs differ."
class C170:
    def __call__(self, a: In, b: In, c: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the least of a, b (and c); with .xorsign.abs, of their sizes, negative where their signs differ."
class C171:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the least of a, b (and c); with .xorsign.abs, of their sizes, negative where their signs differ."
class min_1:
    bf16: C169; bf16x2: C169; f16: C169; f16x2: C169; f32: C171
class min_2:
    abs: min_1
class min_3:
    abs: min_0; bf16: C169; bf16x2: C169; f16: C169; f16x2: C169; f32: C170; xorsign: min_2
class min_4:
    f16: C169; f16x2: C169; f32: C171
class min_5:
    abs: min_4
class min_6:
    abs: min_0; f16: C169; f16x2: C169; f32: C170; xorsign: min_5
class min_7:
    NaN: min_6; abs: min_0; f16: C169; f16x2: C169; f32: C170; xorsign: min_5
class C172:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the lesser of a and b in each half; with .relu at least 0. Needs sm_90."
class C173:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the lesser of a and b; with .relu at least 0."
class min_8:
    s16x2: C172; s32: C173
class min_9:
    NaN: min_3; abs: min_0; bf16: C169; bf16x2: C169; f16: C169; f16x2: C169; f32: C170; f64: C171; ftz: min_7; relu: min_8; s16: C173; s16x2: C172; s32: C173; s64: C173; u16: C173; u16x2: C172; u32: C173; u64: C173; xorsign: min_2
class C174:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + c, where `metadata` say which half of a row's elements A holds; the others are zeros."
class mma_0:
    s32: C174
class mma_1:
    s4: mma_0; u4: mma_0
class mma_2:
    s4: mma_1; u4: mma_1
class mma_3:
    s32: mma_2
class mma_4:
    s32: mma_2; satfinite: mma_3
class mma_5:
    col: mma_4
class mma_6:
    row: mma_5
class C175:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = a * b + c, where `metadata` say which half of a row's elements A holds; the others are zeros."
class mma_7:
    f16: C175
class mma_8:
    f16: mma_7
class mma_9:
    f16: mma_8
class mma_10:
    f32: C174
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
    s8: mma_0; u8: mma_0
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
class C176:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + c, where `metadata` say which half of a row's elements A holds; the others are zeros. Needs sm_89."
class mma_25:
    f32: C176
class mma_26:
    e4m3: mma_25; e5m2: mma_25
class mma_27:
    e4m3: mma_26; e5m2: mma_26
class mma_28:
    s4: mma_1; s8: mma_19; u4: mma_1; u8: mma_19
class mma_29:
    s32: mma_28
class mma_30:
    f32: mma_27; s32: mma_28; satfinite: mma_29
class mma_31:
    col: mma_30
class mma_32:
    row: mma_31
class mma_33:
    tf32: mma_13
class mma_34:
    f32: mma_33
class mma_35:
    col: mma_34
class mma_36:
    row: mma_35
class mma_37:
    m16n8k128: mma_6; m16n8k16: mma_17; m16n8k32: mma_24; m16n8k64: mma_32; m16n8k8: mma_36
class mma_38:
    aligned: mma_37
class mma_39:
    sync: mma_38
class C177:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, scale_a: In, part_a: In, scale_b: In, part_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + c of floats of 4, 6 and 8 bits, whose blocks along k have a factor in common. Needs sm_120a or sm_121a."
class mma_40:
    ue8m0: C177
class mma_41:
    f32: mma_40
class mma_42:
    e2m1: mma_41
class mma_43:
    e2m1: mma_42
class mma_44:
    f32: mma_43
class mma_45:
    f32: mma_43; scale_vec__2X: mma_44
class mma_46:
    block_scale: mma_45
class mma_47:
    ue4m3: C177
class mma_48:
    f32: mma_47
class mma_49:
    e2m1: mma_48
class mma_50:
    e2m1: mma_49
class mma_51:
    f32: mma_50
class mma_52:
    scale_vec__2X: mma_44; scale_vec__4X: mma_51
class mma_53:
    block_scale: mma_52
class mma_54:
    kind__mxf4: mma_46; kind__mxf4nvf4: mma_53; s32: mma_2; satfinite: mma_3
class mma_55:
    col: mma_54
class mma_56:
    row: mma_55
class C178:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = a * b + c of floats of 4, 6 and 8 bits, a byte each. Needs sm_100f or sm_110f or sm_120f."
class mma_57:
    f16: C178
class mma_58:
    e2m1: mma_57; e2m3: mma_57; e3m2: mma_57; e4m3: mma_57; e5m2: mma_57
class mma_59:
    e2m1: mma_58; e2m3: mma_58; e3m2: mma_58; e4m3: mma_58; e5m2: mma_58
class C179:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + c of floats of 4, 6 and 8 bits, a byte each. Needs sm_100f or sm_110f or sm_120f."
class mma_60:
    f32: C179
class mma_61:
    e2m1: mma_60; e2m3: mma_60; e3m2: mma_60; e4m3: mma_60; e5m2: mma_60
class mma_62:
    e2m1: mma_61; e2m3: mma_61; e3m2: mma_61; e4m3: mma_61; e5m2: mma_61
class mma_63:
    f16: mma_59; f32: mma_62
class C180:
    def __call__(self, a: In, b: In, c: In, metadata: In, selector: In, scale_a: In, part_a: In, scale_b: In, part_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + c of floats of 4, 6 and 8 bits, whose blocks along k have a factor in common. Needs sm_120f."
class mma_64:
    ue8m0: C180
class mma_65:
    f32: mma_64
class mma_66:
    e2m1: mma_65; e2m3: mma_65; e3m2: mma_65; e4m3: mma_65; e5m2: mma_65
class mma_67:
    e2m1: mma_66; e2m3: mma_66; e3m2: mma_66; e4m3: mma_66; e5m2: mma_66
class mma_68:
    f32: mma_67
class mma_69:
    f32: mma_67; scale_vec__1X: mma_68
class mma_70:
    block_scale: mma_69
class mma_71:
    f32: mma_27; kind__f8f6f4: mma_63; kind__mxf8f6f4: mma_70; s32: mma_28; satfinite: mma_29
class mma_72:
    col: mma_71
class mma_73:
    row: mma_72
class mma_74:
    m16n8k128: mma_56; m16n8k16: mma_17; m16n8k32: mma_24; m16n8k64: mma_73; m16n8k8: mma_36
class mma_75:
    aligned: mma_74
class mma_76:
    sync: mma_75
class C181:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + c, on matrices spread over the registers of a warp."
class mma_77:
    s32: C181
class mma_78:
    b1: mma_77
class mma_79:
    b1: mma_78
class mma_80:
    s32: mma_79
class mma_81:
    popc: mma_80
class mma_82:
    and_: mma_81; xor: mma_81
class mma_83:
    col: mma_82
class mma_84:
    row: mma_83
class C182:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = a * b + c, on matrices spread over the registers of a warp. Needs sm_89."
class mma_85:
    f16: C182
class mma_86:
    e4m3: mma_85; e5m2: mma_85
class C183:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = a * b + c, on matrices spread over the registers of a warp."
class mma_87:
    f16: C183
class mma_88:
    f16: mma_87
class mma_89:
    e4m3: mma_86; e5m2: mma_86; f16: mma_88
class mma_90:
    f32: C181
class mma_91:
    bf16: mma_90
class C184:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + c, on matrices spread over the registers of a warp. Needs sm_89."
class mma_92:
    f32: C184
class mma_93:
    e4m3: mma_92; e5m2: mma_92
class mma_94:
    f16: mma_90
class mma_95:
    bf16: mma_91; e4m3: mma_93; e5m2: mma_93; f16: mma_94
class C185:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + c, on matrices spread over the registers of a warp. Needs sm_90."
class mma_96:
    f64: C185
class mma_97:
    f64: mma_96
class mma_98:
    f64: mma_97
class mma_99:
    f64: mma_98
class mma_100:
    s8: mma_77; u8: mma_77
class mma_101:
    s8: mma_100; u8: mma_100
class mma_102:
    s32: mma_101
class mma_103:
    f16: mma_89; f32: mma_95; f64: mma_98; rm: mma_99; rn: mma_99; rp: mma_99; rz: mma_99; s32: mma_101; satfinite: mma_102
class mma_104:
    col: mma_103
class mma_105:
    row: mma_104
class mma_106:
    e4m3: mma_86; e5m2: mma_86
class mma_107:
    e4m3: mma_93; e5m2: mma_93
class C186:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = a * b + c of floats of 4, 6 and 8 bits, a byte each. Needs sm_100f or sm_110f or sm_120f."
class mma_108:
    f16: C186
class mma_109:
    e2m1: mma_108; e2m3: mma_108; e3m2: mma_108; e4m3: mma_108; e5m2: mma_108
class mma_110:
    e2m1: mma_109; e2m3: mma_109; e3m2: mma_109; e4m3: mma_109; e5m2: mma_109
class C187:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + c of floats of 4, 6 and 8 bits, a byte each. Needs sm_100f or sm_110f or sm_120f."
class mma_111:
    f32: C187
class mma_112:
    e2m1: mma_111; e2m3: mma_111; e3m2: mma_111; e4m3: mma_111; e5m2: mma_111
class mma_113:
    e2m1: mma_112; e2m3: mma_112; e3m2: mma_112; e4m3: mma_112; e5m2: mma_112
class mma_114:
    f16: mma_110; f32: mma_113
class C188:
    def __call__(self, a: In, b: In, c: In, scale_a: In, part_a: In, scale_b: In, part_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + c of floats of 4, 6 and 8 bits, whose blocks along k have a factor in common. Needs sm_120f."
class mma_115:
    ue8m0: C188
class mma_116:
    f32: mma_115
class mma_117:
    e2m1: mma_116; e2m3: mma_116; e3m2: mma_116; e4m3: mma_116; e5m2: mma_116
class mma_118:
    e2m1: mma_117; e2m3: mma_117; e3m2: mma_117; e4m3: mma_117; e5m2: mma_117
class mma_119:
    f32: mma_118
class mma_120:
    f32: mma_118; scale_vec__1X: mma_119
class mma_121:
    block_scale: mma_120
class mma_122:
    s4: mma_77; u4: mma_77
class mma_123:
    s4: mma_122; s8: mma_100; u4: mma_122; u8: mma_100
class mma_124:
    s32: mma_123
class mma_125:
    f16: mma_106; f32: mma_107; kind__f8f6f4: mma_114; kind__mxf8f6f4: mma_121; s32: mma_123; satfinite: mma_124
class mma_126:
    col: mma_125
class mma_127:
    row: mma_126
class mma_128:
    tf32: mma_90
class mma_129:
    tf32: mma_128
class mma_130:
    f32: mma_129; f64: mma_98; rm: mma_99; rn: mma_99; rp: mma_99; rz: mma_99
class mma_131:
    col: mma_130
class mma_132:
    row: mma_131
class mma_133:
    e2m1: mma_116
class mma_134:
    e2m1: mma_133
class mma_135:
    f32: mma_134
class mma_136:
    f32: mma_134; scale_vec__2X: mma_135
class mma_137:
    block_scale: mma_136
class mma_138:
    ue4m3: C188
class mma_139:
    f32: mma_138
class mma_140:
    e2m1: mma_139
class mma_141:
    e2m1: mma_140
class mma_142:
    f32: mma_141
class mma_143:
    scale_vec__2X: mma_135; scale_vec__4X: mma_142
class mma_144:
    block_scale: mma_143
class mma_145:
    s4: mma_122; u4: mma_122
class mma_146:
    s32: mma_145
class mma_147:
    kind__mxf4: mma_137; kind__mxf4nvf4: mma_144; s32: mma_145; satfinite: mma_146
class mma_148:
    col: mma_147
class mma_149:
    row: mma_148
class mma_150:
    f16: mma_88
class mma_151:
    bf16: mma_91; f16: mma_94; tf32: mma_128
class mma_152:
    f16: mma_150; f32: mma_151; f64: mma_98; rm: mma_99; rn: mma_99; rp: mma_99; rz: mma_99
class mma_153:
    col: mma_152
class mma_154:
    row: mma_153
class mma_155:
    s32: C183
class mma_156:
    b1: mma_155
class mma_157:
    b1: mma_156
class mma_158:
    s32: mma_157
class mma_159:
    popc: mma_158
class mma_160:
    and_: mma_159; xor: mma_159
class mma_161:
    col: mma_160
class mma_162:
    row: mma_161
class mma_163:
    s8: mma_155; u8: mma_155
class mma_164:
    s8: mma_163; u8: mma_163
class mma_165:
    s32: mma_164
class mma_166:
    s32: mma_164; satfinite: mma_165
class mma_167:
    col: mma_166
class mma_168:
    row: mma_167
class mma_169:
    s4: mma_155; u4: mma_155
class mma_170:
    s4: mma_169; u4: mma_169
class mma_171:
    s32: mma_170
class mma_172:
    s32: mma_170; satfinite: mma_171
class mma_173:
    col: mma_172
class mma_174:
    row: mma_173
class mma_175:
    f64: C183
class mma_176:
    f64: mma_175
class mma_177:
    f64: mma_176
class mma_178:
    f64: mma_177
class mma_179:
    f64: mma_177; rm: mma_178; rn: mma_178; rp: mma_178; rz: mma_178
class mma_180:
    col: mma_179
class mma_181:
    row: mma_180
class mma_182:
    m16n8k128: mma_84; m16n8k16: mma_105; m16n8k256: mma_84; m16n8k32: mma_127; m16n8k4: mma_132; m16n8k64: mma_149; m16n8k8: mma_154; m8n8k128: mma_162; m8n8k16: mma_168; m8n8k32: mma_174; m8n8k4: mma_181
class mma_183:
    aligned: mma_182
class mma_184:
    sp: mma_39; sp__ordered_metadata: mma_76; sync: mma_183
class C189:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        "d = a: a register, a constant, a special register, or the address of a variable or function; or d = {a, …}: registers side by side in one, the first in the lowest bits; or {d, …} = a: one register in pieces, the lowest bits in the first."
class C190:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a: a register, a constant, a special register, or the address of a variable or function."
class C191:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = a: a register, a constant, a special register, or the address of a variable or function."
class mov_0:
    b16: C191; b32: C191; b64: C191; f32: C191; f64: C191; s16: C191; s32: C191; s64: C191; u16: C191; u32: C191; u64: C191
class C192:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a: a register, a constant, a special register, or the address of a variable or function."
class mov_1:
    b16: C192; b32: C192; f32: C192; s16: C192; s32: C192; u16: C192; u32: C192
class mov_2:
    b128: C189; b16: C189; b32: C189; b64: C189; f32: C190; f64: C190; pred: C190; s16: C190; s32: C190; s64: C190; u16: C190; u32: C190; u64: C190; v2: mov_0; v4: mov_1
class C193:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = an 8x8 matrix of 16-bit elements transposed, in the registers of a warp."
class movmatrix_0:
    b16: C193
class movmatrix_1:
    trans: movmatrix_0
class movmatrix_2:
    m8n8: movmatrix_1
class movmatrix_3:
    aligned: movmatrix_2
class movmatrix_4:
    sync: movmatrix_3
class C194:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a * b. Needs sm_90."
class C195:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a * b."
class C196:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a * b. Needs sm_100."
class mul_0:
    f16: C195; f16x2: C195; f32: C195
class mul_1:
    f16: C195; f16x2: C195; f32: C195; f32x2: C196; sat: mul_0
class C197:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the low or the high half of a * b."
class mul_2:
    s16: C197; s32: C197; s64: C197; u16: C197; u32: C197; u64: C197
class mul_3:
    f32: C195
class mul_4:
    f32: C195; f32x2: C196; sat: mul_3
class mul_5:
    f32: C195; f32x2: C196; f64: C195; ftz: mul_4; sat: mul_3
class mul_6:
    bf16: C194; bf16x2: C194; f16: C195; f16x2: C195; f32: C195; f32x2: C196; f64: C195; ftz: mul_1; sat: mul_0
class C198:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a * b, with twice the bits of a and b."
class mul_7:
    s16: C198; s32: C198; u16: C198; u32: C198
class mul_8:
    bf16: C194; bf16x2: C194; f16: C195; f16x2: C195; f32: C195; f32x2: C196; f64: C195; ftz: mul_1; hi: mul_2; lo: mul_2; rm: mul_5; rn: mul_6; rp: mul_5; rz: mul_5; sat: mul_0; wide: mul_7
class C199:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the low or the high 32 bits of the 48-bit product of the low 24 bits of a and b."
class mul24_0:
    s32: C199; u32: C199
class mul24_1:
    hi: mul24_0; lo: mul24_0
class C200:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the values at an address on all GPUs, combined by an operation. Needs sm_90."
class C201:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = the values at an address on all GPUs, combined by an operation. Needs sm_90."
class multimem_0:
    e4m3x2: C201; e4m3x4: C201; e5m2x2: C201; e5m2x4: C201
class C202:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = the values at an address on all GPUs, combined by an operation. Needs sm_90."
class multimem_1:
    e4m3x2: C202; e4m3x4: C202; e5m2x2: C202; e5m2x4: C202
class C203:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = the values at an address on all GPUs, combined by an operation. Needs sm_90."
class multimem_2:
    e4m3x2: C203; e5m2x2: C203
class multimem_3:
    e4m3x4: C200; e5m2x4: C200; v2: multimem_0; v4: multimem_1; v8: multimem_2
class multimem_4:
    bf16: C201; bf16x2: C201; f16: C201; f16x2: C201
class multimem_5:
    bf16: C202; bf16x2: C202; f16: C202; f16x2: C202
class multimem_6:
    bf16: C203; f16: C203
class multimem_7:
    bf16x2: C200; f16x2: C200; v2: multimem_4; v4: multimem_5; v8: multimem_6
class multimem_8:
    bf16: C201; bf16x2: C201; e4m3x2: C201; e4m3x4: C201; e5m2x2: C201; e5m2x4: C201; f16: C201; f16x2: C201; f32: C201
class multimem_9:
    bf16: C202; bf16x2: C202; e4m3x2: C202; e4m3x4: C202; e5m2x2: C202; e5m2x4: C202; f16: C202; f16x2: C202; f32: C202
class multimem_10:
    bf16: C203; e4m3x2: C203; e5m2x2: C203; f16: C203
class multimem_11:
    acc__f16: multimem_3; acc__f32: multimem_7; bf16x2: C200; e4m3x4: C200; e5m2x4: C200; f16x2: C200; f32: C200; f64: C200; s32: C200; u32: C200; u64: C200; v2: multimem_8; v4: multimem_9; v8: multimem_10
class multimem_12:
    b32: C200; b64: C200
class multimem_13:
    bf16: C201; bf16x2: C201; e4m3x2: C201; e4m3x4: C201; e5m2x2: C201; e5m2x4: C201; f16: C201; f16x2: C201
class multimem_14:
    bf16: C202; bf16x2: C202; e4m3x2: C202; e4m3x4: C202; e5m2x2: C202; e5m2x4: C202; f16: C202; f16x2: C202
class multimem_15:
    bf16x2: C200; e4m3x4: C200; e5m2x4: C200; f16x2: C200; s32: C200; s64: C200; u32: C200; u64: C200; v2: multimem_13; v4: multimem_14; v8: multimem_10
class multimem_16:
    add: multimem_11; and_: multimem_12; max: multimem_15; min: multimem_15; or_: multimem_12; xor: multimem_12
class multimem_17:
    add: multimem_11; and_: multimem_12; global_: multimem_16; max: multimem_15; min: multimem_15; or_: multimem_12; xor: multimem_12
class multimem_18:
    cluster: multimem_17; cta: multimem_17; gpu: multimem_17; sys: multimem_17
class multimem_19:
    acquire: multimem_18; add: multimem_11; and_: multimem_12; global_: multimem_16; max: multimem_15; min: multimem_15; or_: multimem_12; relaxed: multimem_18; weak: multimem_17; xor: multimem_12
class C204:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "The value at an address becomes op(that value, b), on all GPUs. Needs sm_90."
class multimem_20:
    bf16: C204; bf16x2: C204; f16: C204; f16x2: C204; f32: C204
class multimem_21:
    bf16: C204; f16: C204
class multimem_22:
    bf16x2: C204; f16x2: C204; f32: C204; f64: C204; s32: C204; u32: C204; u64: C204; v2: multimem_20; v4: multimem_20; v8: multimem_21
class multimem_23:
    b32: C204; b64: C204
class multimem_24:
    s32: C204; s64: C204; u32: C204; u64: C204
class multimem_25:
    add: multimem_22; and_: multimem_23; max: multimem_24; min: multimem_24; or_: multimem_23; xor: multimem_23
class multimem_26:
    add: multimem_22; and_: multimem_23; global_: multimem_25; max: multimem_24; min: multimem_24; or_: multimem_23; xor: multimem_23
class multimem_27:
    cluster: multimem_26; cta: multimem_26; gpu: multimem_26; sys: multimem_26
class multimem_28:
    add: multimem_22; and_: multimem_23; global_: multimem_25; max: multimem_24; min: multimem_24; or_: multimem_23; relaxed: multimem_27; release: multimem_27; xor: multimem_23
class C205:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "The value b goes to an address on all GPUs. Needs sm_90."
class multimem_29:
    bf16: C205; bf16x2: C205; e4m3x2: C205; e4m3x4: C205; e5m2x2: C205; e5m2x4: C205; f16: C205; f16x2: C205; f32: C205
class multimem_30:
    bf16: C205; e4m3x2: C205; e5m2x2: C205; f16: C205
class multimem_31:
    b32: C205; b64: C205; bf16x2: C205; e4m3x4: C205; e5m2x4: C205; f16x2: C205; f32: C205; f64: C205; s32: C205; s64: C205; u32: C205; u64: C205; v2: multimem_29; v4: multimem_29; v8: multimem_30
class multimem_32:
    b32: C205; b64: C205; bf16x2: C205; e4m3x4: C205; e5m2x4: C205; f16x2: C205; f32: C205; f64: C205; global_: multimem_31; s32: C205; s64: C205; u32: C205; u64: C205; v2: multimem_29; v4: multimem_29; v8: multimem_30
class multimem_33:
    cluster: multimem_32; cta: multimem_32; gpu: multimem_32; sys: multimem_32
class multimem_34:
    b32: C205; b64: C205; bf16x2: C205; e4m3x4: C205; e5m2x4: C205; f16x2: C205; f32: C205; f64: C205; global_: multimem_31; relaxed: multimem_33; release: multimem_33; s32: C205; s64: C205; u32: C205; u64: C205; v2: multimem_29; v4: multimem_29; v8: multimem_30; weak: multimem_32
class multimem_35:
    ld_reduce: multimem_19; red: multimem_28; st: multimem_34
class C206:
    def __call__(self, t: In, /, *, guard: Guard = ...) -> None:
        "Suspends the threads for about `t` nanoseconds."
class nanosleep_0:
    u32: C206
class C207:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = -a."
class neg_0:
    f16: C207; f16x2: C207; f32: C207
class C208:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = -a, modulo 2^n."
class neg_1:
    bf16: C207; bf16x2: C207; f16: C207; f16x2: C207; f32: C207; f64: C207; ftz: neg_0; s16: C208; s32: C208; s64: C208
class C209:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = ~a."
class not_0:
    b16: C209; b32: C209; b64: C209; pred: C209
class C210:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a | b."
class or_0:
    b16: C210; b32: C210; b64: C210; pred: C210
class C211:
    def __call__(self, events: In, /, *, guard: Guard = ...) -> None:
        "Triggers performance monitor events; has no effect on the program."
class pmevent_0(C211):
    mask: C211
class C212:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the number of one bits in a."
class popc_0:
    b32: C212; b64: C212
class C213:
    def __call__(self, a: In, /, *, guard: Guard = ...) -> None:
        "Brings the cache line of an address, or a tensor map, into a cache."
class C214:
    def __call__(self, a: In, /, *, guard: Guard = ...) -> None:
        "Brings the cache line of an address, or a tensor map, into a cache. Needs sm_90."
class prefetch_0:
    tensormap: C214
class prefetch_1:
    L1: C213; L2: C213; L2__evict_last: C213; L2__evict_normal: C213
class prefetch_2:
    L1: C213; L2: C213
class prefetch_3:
    L1: C213; L2: C213; const: prefetch_0; global_: prefetch_1; local: prefetch_2; param: prefetch_0; tensormap: C214
class prefetchu_0:
    L1: C213
class C215:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = four bytes picked out of the eight of {b, a}."
class prmt_0(C215):
    b4e: C215; ecl: C215; ecr: C215; f4e: C215; rc16: C215; rc8: C215
class prmt_1:
    b32: prmt_0
class C216:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1 / a, within 1 unit in the last place."
class C217:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1 / a, from and to the high 32 bits of f64 numbers."
class rcp_0:
    f32: C216; f64: C217
class rcp_1:
    f32: C216; ftz: rcp_0
class C218:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1 / a."
class rcp_2:
    f32: C218
class rcp_3:
    f32: C218; f64: C218; ftz: rcp_2
class rcp_4:
    approx: rcp_1; rm: rcp_3; rn: rcp_3; rp: rcp_3; rz: rcp_3
class C219:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, guard: Guard = ...) -> None:
        "The value at an address becomes op(that value, b), in one step that no other thread divides."
class C220:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, guard: Guard = ...) -> None:
        "The value at an address becomes op(that value, b), in one step that no other thread divides. Needs sm_90."
class red_0:
    f32: C220
class red_1:
    f32: C219; f64: C219; s32: C219; u32: C219; u64: C219; v2: red_0; v4: red_0
class red_2:
    bf16: C220; bf16x2: C220; f16: C220; f16x2: C220
class red_3:
    bf16: C220; f16: C220
class red_4:
    bf16: C219; bf16x2: C219; f16: C219; f16x2: C219; v2: red_2; v4: red_2; v8: red_3
class red_5:
    L2__cache_hint: red_4; bf16: C219; bf16x2: C219; f16: C219; f16x2: C219; v2: red_2; v4: red_2; v8: red_3
class red_6:
    L2__cache_hint: red_1; f32: C219; f64: C219; noftz: red_5; s32: C219; u32: C219; u64: C219; v2: red_0; v4: red_0
class red_7:
    b32: C219; b64: C219
class red_8:
    L2__cache_hint: red_7; b32: C219; b64: C219
class C221:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "The value in shared memory of a block of the cluster, or in global memory, becomes op(it, b). Needs sm_100."
class red_9:
    s32: C221; s64: C221; u32: C221; u64: C221
class red_10:
    b32: C221
class red_11:
    u32: C221
class red_12:
    s32: C221; u32: C221
class red_13:
    add: red_9; and_: red_10; dec: red_11; inc: red_11; max: red_12; min: red_12; or_: red_10; xor: red_10
class red_14:
    add: red_9; and_: red_10; dec: red_11; global_: red_13; inc: red_11; max: red_12; min: red_12; or_: red_10; xor: red_10
class red_15:
    gpu: red_14; sys: red_14
class red_16:
    release: red_15
class C222:
    def __call__(self, a: In, b: In, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "The value in shared memory of a block of the cluster, or in global memory, becomes op(it, b). Needs sm_90."
class red_17:
    s32: C222; s64: C222; u32: C222; u64: C222
class red_18:
    b32: C222
class red_19:
    u32: C222
class red_20:
    s32: C222; u32: C222
class red_21:
    add: red_17; and_: red_18; dec: red_19; inc: red_19; max: red_20; min: red_20; or_: red_18; xor: red_18
class red_22:
    mbarrier__complete_tx__bytes: red_21
class red_23:
    mbarrier__complete_tx__bytes: red_21; shared__cluster: red_22
class red_24:
    cluster: red_23
class red_25:
    mmio: red_16; relaxed: red_24; release: red_15
class red_26:
    u32: C219
class red_27:
    L2__cache_hint: red_26; u32: C219
class red_28:
    s32: C219; s64: C219; u32: C219; u64: C219
class red_29:
    v2: red_2; v4: red_2; v8: red_3
class red_30:
    L2__cache_hint: red_29; v2: red_2; v4: red_2; v8: red_3
class red_31:
    L2__cache_hint: red_28; noftz: red_30; s32: C219; s64: C219; u32: C219; u64: C219
class red_32:
    add: red_6; and_: red_8; dec: red_27; inc: red_27; max: red_31; min: red_31; or_: red_8; xor: red_8
class red_33:
    bf16: C219; bf16x2: C219; f16: C219; f16x2: C219
class red_34:
    f32: C219; f64: C219; noftz: red_33; s32: C219; u32: C219; u64: C219
class red_35:
    add: red_34; and_: red_7; dec: red_26; inc: red_26; max: red_28; min: red_28; or_: red_7; xor: red_7
class red_36:
    add: red_6; and_: red_8; dec: red_27; global_: red_32; inc: red_27; max: red_31; min: red_31; or_: red_8; shared: red_35; shared__cluster: red_35; shared__cta: red_35; xor: red_8
class red_37:
    add: red_6; and_: red_8; cluster: red_36; cta: red_36; dec: red_27; global_: red_32; gpu: red_36; inc: red_27; max: red_31; min: red_31; or_: red_8; shared: red_35; shared__cluster: red_35; shared__cta: red_35; sys: red_36; xor: red_8
class red_38:
    add: red_6; and_: red_8; async_: red_25; cluster: red_36; cta: red_36; dec: red_27; global_: red_32; gpu: red_36; inc: red_27; max: red_31; min: red_31; or_: red_8; relaxed: red_37; release: red_37; shared: red_35; shared__cluster: red_35; shared__cta: red_35; sys: red_36; xor: red_8
class C223:
    def __call__(self, a: In, membermask: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the sum, least, greatest, and, or, xor of `a` over the lanes."
class redux_0:
    s32: C223; u32: C223
class redux_1:
    b32: C223
class redux_2:
    add: redux_0; and_: redux_1; max: redux_0; min: redux_0; or_: redux_1; xor: redux_1
class redux_3:
    sync: redux_2
class C224:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a - b * (a / b), with the sign of a; division by zero gives all ones."
class rem_0:
    s16: C224; s32: C224; s64: C224; u16: C224; u32: C224; u64: C224
class C225:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Returns from a function; ends the threads of a kernel."
class ret_0(C225):
    uni: C225
class C226:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1 / the square root of a, with a relative error of 2^-22.9."
class C227:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1 / the square root of a, from and to the high 32 bits of f64 numbers."
class rsqrt_0:
    f32: C226; f64: C227
class rsqrt_1:
    f32: C226; f64: C226; ftz: rsqrt_0
class rsqrt_2:
    approx: rsqrt_1
class C228:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = |a - b| + c."
class sad_0:
    s16: C228; s32: C228; s64: C228; u16: C228; u32: C228; u64: C228
class C229:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a where the predicate c is true, else b."
class selp_0:
    b16: C229; b32: C229; b64: C229; f32: C229; f64: C229; s16: C229; s32: C229; s64: C229; u16: C229; u32: C229; u64: C229
class C230:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1.0, or all ones, where a (or each half of it) compares so to b (joined with c if so said); else 0. Needs sm_90."
class set_0:
    b16: C230; b32: C230; b64: C230; bf16: C230; f16: C230; f32: C230; f64: C230; s16: C230; s32: C230; s64: C230; u16: C230; u32: C230; u64: C230
class set_1:
    bf16x2: C230
class C231:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1.0, or all ones, where a (or each half of it) compares so to b (joined with c if so said); else 0."
class set_2:
    b16: C231; b32: C231; b64: C231; f16: C231; f32: C231; f64: C231; s16: C231; s32: C231; s64: C231; u16: C231; u32: C231; u64: C231
class set_3:
    f16x2: C231
class C232:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1.0, or all ones, where a compares so to b (joined with c if so said); else 0."
class set_4:
    b16: C232; b32: C232; b64: C232; f32: C232; f64: C232; s16: C232; s32: C232; s64: C232; u16: C232; u32: C232; u64: C232
class set_5:
    f16: C231; f32: C231
class set_6:
    f32: C232
class set_7:
    f16: C231
class set_8:
    f16: C231; f16x2: C231; f32: C232
class set_9:
    f16: set_5; f16x2: set_3; f32: set_6; s16: set_7; s32: set_8; u16: set_7; u32: set_8
class set_10:
    bf16: C230; f16: C231
class set_11:
    b16: C232; b32: C232; b64: C232; bf16: C230; bf16x2: C230; f16: C231; f16x2: C231; f32: C232; f64: C232; s16: C232; s32: C232; s64: C232; u16: C232; u32: C232; u64: C232
class set_12:
    bf16: set_0; bf16x2: set_1; f16: set_2; f16x2: set_3; f32: set_4; ftz: set_9; s16: set_10; s32: set_11; u16: set_10; u32: set_11
class C233:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1.0, or all ones, where a (or each half of it) compares so to b (joined with c if so said); else 0. Needs sm_90."
class set_13:
    b16: C233; b32: C233; b64: C233; bf16: C233; f16: C233; f32: C233; f64: C233; s16: C233; s32: C233; s64: C233; u16: C233; u32: C233; u64: C233
class set_14:
    bf16x2: C233
class C234:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1.0, or all ones, where a (or each half of it) compares so to b (joined with c if so said); else 0."
class set_15:
    b16: C234; b32: C234; b64: C234; f16: C234; f32: C234; f64: C234; s16: C234; s32: C234; s64: C234; u16: C234; u32: C234; u64: C234
class set_16:
    f16x2: C234
class C235:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1.0, or all ones, where a compares so to b (joined with c if so said); else 0."
class set_17:
    b16: C235; b32: C235; b64: C235; f32: C235; f64: C235; s16: C235; s32: C235; s64: C235; u16: C235; u32: C235; u64: C235
class set_18:
    f16: C234; f32: C234
class set_19:
    f32: C235
class set_20:
    f16: C234
class set_21:
    f16: C234; f16x2: C234; f32: C235
class set_22:
    f16: set_18; f16x2: set_16; f32: set_19; s16: set_20; s32: set_21; u16: set_20; u32: set_21
class set_23:
    bf16: C233; f16: C234
class set_24:
    b16: C235; b32: C235; b64: C235; bf16: C233; bf16x2: C233; f16: C234; f16x2: C234; f32: C235; f64: C235; s16: C235; s32: C235; s64: C235; u16: C235; u32: C235; u64: C235
class set_25:
    and_: set_12; bf16: set_13; bf16x2: set_14; f16: set_15; f16x2: set_16; f32: set_17; ftz: set_22; or_: set_12; s16: set_23; s32: set_24; u16: set_23; u32: set_24; xor: set_12
class set_26:
    bf16: C230; f16: C230; f32: C230; f64: C230
class set_27:
    f16: C231; f32: C231; f64: C231
class set_28:
    f32: C232; f64: C232
class set_29:
    bf16: C230; bf16x2: C230; f16: C231; f16x2: C231; f32: C232; f64: C232
class set_30:
    bf16: set_26; bf16x2: set_1; f16: set_27; f16x2: set_3; f32: set_28; ftz: set_9; s16: set_10; s32: set_29; u16: set_10; u32: set_29
class set_31:
    bf16: C233; f16: C233; f32: C233; f64: C233
class set_32:
    f16: C234; f32: C234; f64: C234
class set_33:
    f32: C235; f64: C235
class set_34:
    bf16: C233; bf16x2: C233; f16: C234; f16x2: C234; f32: C235; f64: C235
class set_35:
    and_: set_30; bf16: set_31; bf16x2: set_14; f16: set_32; f16x2: set_16; f32: set_33; ftz: set_22; or_: set_30; s16: set_23; s32: set_34; u16: set_23; u32: set_34; xor: set_30
class set_36:
    bf16: C230; f16: C230; f32: C230; f64: C230; s16: C230; s32: C230; s64: C230; u16: C230; u32: C230; u64: C230
class set_37:
    f16: C231; f32: C231; f64: C231; s16: C231; s32: C231; s64: C231; u16: C231; u32: C231; u64: C231
class set_38:
    f32: C232; f64: C232; s16: C232; s32: C232; s64: C232; u16: C232; u32: C232; u64: C232
class set_39:
    bf16: C230; bf16x2: C230; f16: C231; f16x2: C231; f32: C232; f64: C232; s16: C232; s32: C232; s64: C232; u16: C232; u32: C232; u64: C232
class set_40:
    bf16: set_36; bf16x2: set_1; f16: set_37; f16x2: set_3; f32: set_38; ftz: set_9; s16: set_10; s32: set_39; u16: set_10; u32: set_39
class set_41:
    bf16: C233; f16: C233; f32: C233; f64: C233; s16: C233; s32: C233; s64: C233; u16: C233; u32: C233; u64: C233
class set_42:
    f16: C234; f32: C234; f64: C234; s16: C234; s32: C234; s64: C234; u16: C234; u32: C234; u64: C234
class set_43:
    f32: C235; f64: C235; s16: C235; s32: C235; s64: C235; u16: C235; u32: C235; u64: C235
class set_44:
    bf16: C233; bf16x2: C233; f16: C234; f16x2: C234; f32: C235; f64: C235; s16: C235; s32: C235; s64: C235; u16: C235; u32: C235; u64: C235
class set_45:
    and_: set_40; bf16: set_41; bf16x2: set_14; f16: set_42; f16x2: set_16; f32: set_43; ftz: set_22; or_: set_40; s16: set_23; s32: set_44; u16: set_23; u32: set_44; xor: set_40
class set_46:
    u16: C230; u32: C230; u64: C230
class set_47:
    u16: C231; u32: C231; u64: C231
class set_48:
    u16: C232; u32: C232; u64: C232
class set_49:
    bf16: set_46; f16: set_47; f32: set_48; s32: set_48; u32: set_48
class set_50:
    u16: C233; u32: C233; u64: C233
class set_51:
    u16: C234; u32: C234; u64: C234
class set_52:
    u16: C235; u32: C235; u64: C235
class set_53:
    and_: set_49; bf16: set_50; f16: set_51; f32: set_52; or_: set_49; s32: set_52; u32: set_52; xor: set_49
class set_54:
    eq: set_25; equ: set_35; ge: set_45; geu: set_35; gt: set_45; gtu: set_35; hi: set_53; hs: set_53; le: set_45; leu: set_35; lo: set_53; ls: set_53; lt: set_45; ltu: set_35; nan: set_35; ne: set_25; neu: set_35; num: set_35
class C236:
    def __call__(self, count: In, /, *, guard: Guard = ...) -> None:
        "Gives registers of the warps back (dec), or waits for more (inc), so that each thread has `count`. Needs sm_90a or sm_100f or sm_110f or sm_120f."
class setmaxnreg_0:
    u32: C236
class setmaxnreg_1:
    aligned: setmaxnreg_0
class setmaxnreg_2:
    sync: setmaxnreg_1
class setmaxnreg_3:
    dec: setmaxnreg_2; inc: setmaxnreg_2
class C237:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        "p = whether a compares so to b, q = whether not; with a Boolean operation, each joined with c."
class C238:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "p = whether a compares so to b, joined with c if there is a Boolean operation. Needs sm_90."
class C239:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        "p, q = whether the low and the high half of a compare so to those of b, joined with c if so said. Needs sm_90."
class C240:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "p = whether a compares so to b, joined with c if there is a Boolean operation."
class C241:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        "p, q = whether the low and the high half of a compare so to those of b, joined with c if so said."
class setp_0:
    f16: C240; f16x2: C241; f32: C237
class setp_1:
    b16: C237; b32: C237; b64: C237; bf16: C238; bf16x2: C239; f16: C240; f16x2: C241; f32: C237; f64: C237; ftz: setp_0; s16: C237; s32: C237; s64: C237; u16: C237; u32: C237; u64: C237
class C242:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        "p = whether a compares so to b, q = whether not; with a Boolean operation, each joined with c."
class C243:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "p = whether a compares so to b, joined with c if there is a Boolean operation. Needs sm_90."
class C244:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        "p, q = whether the low and the high half of a compare so to those of b, joined with c if so said. Needs sm_90."
class C245:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "p = whether a compares so to b, joined with c if there is a Boolean operation."
class C246:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        "p, q = whether the low and the high half of a compare so to those of b, joined with c if so said."
class setp_2:
    f16: C245; f16x2: C246; f32: C242
class setp_3:
    and_: setp_1; b16: C242; b32: C242; b64: C242; bf16: C243; bf16x2: C244; f16: C245; f16x2: C246; f32: C242; f64: C242; ftz: setp_2; or_: setp_1; s16: C242; s32: C242; s64: C242; u16: C242; u32: C242; u64: C242; xor: setp_1
class setp_4:
    bf16: C238; bf16x2: C239; f16: C240; f16x2: C241; f32: C237; f64: C237; ftz: setp_0
class setp_5:
    and_: setp_4; bf16: C243; bf16x2: C244; f16: C245; f16x2: C246; f32: C242; f64: C242; ftz: setp_2; or_: setp_4; xor: setp_4
class setp_6:
    bf16: C238; bf16x2: C239; f16: C240; f16x2: C241; f32: C237; f64: C237; ftz: setp_0; s16: C237; s32: C237; s64: C237; u16: C237; u32: C237; u64: C237
class setp_7:
    and_: setp_6; bf16: C243; bf16x2: C244; f16: C245; f16x2: C246; f32: C242; f64: C242; ftz: setp_2; or_: setp_6; s16: C242; s32: C242; s64: C242; u16: C242; u32: C242; u64: C242; xor: setp_6
class setp_8:
    u16: C237; u32: C237; u64: C237
class setp_9:
    and_: setp_8; or_: setp_8; u16: C242; u32: C242; u64: C242; xor: setp_8
class setp_10:
    eq: setp_3; equ: setp_5; ge: setp_7; geu: setp_5; gt: setp_7; gtu: setp_5; hi: setp_9; hs: setp_9; le: setp_7; leu: setp_5; lo: setp_9; ls: setp_9; lt: setp_7; ltu: setp_5; nan: setp_5; ne: setp_3; neu: setp_5; num: setp_5
class C247:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the high half of {b, a} << c, or the low half of {b, a} >> c; c modulo 32 (.wrap) or 32 at most (.clamp)."
class shf_0:
    b32: C247
class shf_1:
    clamp: shf_0; wrap: shf_0
class shf_2:
    l: shf_1; r: shf_1
class C248:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        "d = a of another lane, p = whether that lane is in reach; if not, d = a of the lane itself."
class shfl_0:
    b32: C248
class C249:
    def __call__(self, a: In, b: In, c: In, membermask: In, /, *, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        "d = a of another lane, p = whether that lane is in reach; if not, d = a of the lane itself."
class shfl_1:
    b32: C249
class shfl_2:
    bfly: shfl_1; down: shfl_1; idx: shfl_1; up: shfl_1
class shfl_3:
    bfly: shfl_0; down: shfl_0; idx: shfl_0; sync: shfl_2; up: shfl_0
class C250:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a << b; 0 for a shift of the full width or more."
class shl_0:
    b16: C250; b32: C250; b64: C250
class C251:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a >> b, filled with the sign for signed types and zeros for others, also past the full width."
class shr_0:
    b16: C251; b32: C251; b64: C251; s16: C251; s32: C251; s64: C251; u16: C251; u32: C251; u64: C251
class C252:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the sine of a, in radians."
class sin_0:
    f32: C252
class sin_1:
    f32: C252; ftz: sin_0
class sin_2:
    approx: sin_1
class C253:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a where c >= 0, else b."
class slct_0:
    f32: C253; s32: C253
class slct_1:
    f32: C253
class slct_2:
    b16: slct_1; b32: slct_1; b64: slct_1; f32: slct_1; f64: slct_1; s16: slct_1; s32: slct_1; s64: slct_1; u16: slct_1; u32: slct_1; u64: slct_1
class slct_3:
    b16: slct_0; b32: slct_0; b64: slct_0; f32: slct_0; f64: slct_0; ftz: slct_2; s16: slct_0; s32: slct_0; s64: slct_0; u16: slct_0; u32: slct_0; u64: slct_0
class C254:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the square root of a, with a relative error of 2^-23."
class sqrt_0:
    f32: C254
class sqrt_1:
    f32: C254; ftz: sqrt_0
class C255:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the square root of a."
class sqrt_2:
    f32: C255
class sqrt_3:
    f32: C255; f64: C255; ftz: sqrt_2
class sqrt_4:
    approx: sqrt_1; rm: sqrt_3; rn: sqrt_3; rp: sqrt_3; rz: sqrt_3
class C256:
    def __call__(self, a: In, b: In, policy: In = ..., /, *, guard: Guard = ...) -> None:
        "The value b goes to an address."
class st_0:
    b16: C256; b32: C256; b64: C256; b8: C256; f32: C256; f64: C256; s16: C256; s32: C256; s64: C256; s8: C256; u16: C256; u32: C256; u64: C256; u8: C256
class st_1:
    b32: C256; f32: C256; s32: C256; u32: C256
class st_2:
    b128: C256; b16: C256; b32: C256; b64: C256; b8: C256; f32: C256; f64: C256; s16: C256; s32: C256; s64: C256; s8: C256; u16: C256; u32: C256; u64: C256; u8: C256; v2: st_0; v4: st_0; v8: st_1
class st_3:
    b64: C256; f64: C256; s64: C256; u64: C256
class st_4:
    v4: st_3; v8: st_1
class st_5:
    L2__cache_hint: st_4; v4: st_3; v8: st_1
class st_6:
    L2__cache_hint: st_2; L2__evict_first: st_5; L2__evict_last: st_5; L2__evict_normal: st_5; b128: C256; b16: C256; b32: C256; b64: C256; b8: C256; f32: C256; f64: C256; s16: C256; s32: C256; s64: C256; s8: C256; u16: C256; u32: C256; u64: C256; u8: C256; v2: st_0; v4: st_0; v8: st_1
class C257:
    def __call__(self, a: In, b: In, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "The value b goes to shared memory of a block of the cluster, or (.release) to global memory. Needs sm_90."
class st_7:
    b32: C257; b64: C257; f32: C257; f64: C257; s32: C257; s64: C257; u32: C257; u64: C257
class st_8:
    b32: C257; f32: C257; s32: C257; u32: C257
class st_9:
    b32: C257; b64: C257; f32: C257; f64: C257; s32: C257; s64: C257; u32: C257; u64: C257; v2: st_7; v4: st_8
class C258:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "The value b goes to shared memory of a block of the cluster, or (.release) to global memory. Needs sm_100."
class st_10:
    b32: C258; b64: C258; f32: C258; f64: C258; s32: C258; s64: C258; u32: C258; u64: C258
class st_11:
    b32: C258; b64: C258; f32: C258; f64: C258; global_: st_10; s32: C258; s64: C258; u32: C258; u64: C258
class st_12:
    gpu: st_11; sys: st_11
class st_13:
    release: st_12
class st_14:
    mbarrier__complete_tx__bytes: st_9
class st_15:
    mbarrier__complete_tx__bytes: st_9; shared__cluster: st_14
class st_16:
    mbarrier__complete_tx__bytes: st_9; mmio: st_13; release: st_12; shared__cluster: st_14; weak: st_15
class C259:
    def __call__(self, dst: In, size: In, value: In, /, *, guard: Guard = ...) -> None:
        "Fills `size` bytes of shared memory with zeros. Needs sm_100."
class st_17(C259):
    shared__cta: C259
class st_18(C259):
    shared__cta: C259; weak: st_17
class st_19:
    L2__cache_hint: st_2; b128: C256; b16: C256; b32: C256; b64: C256; b8: C256; f32: C256; f64: C256; s16: C256; s32: C256; s64: C256; s8: C256; u16: C256; u32: C256; u64: C256; u8: C256; v2: st_0; v4: st_0; v8: st_1
class st_20:
    L1__evict_first: st_6; L1__evict_last: st_6; L1__evict_normal: st_6; L1__evict_unchanged: st_6; L1__no_allocate: st_6; L2__cache_hint: st_2; L2__evict_first: st_5; L2__evict_last: st_5; L2__evict_normal: st_5; b128: C256; b16: C256; b32: C256; b64: C256; b8: C256; cg: st_19; cs: st_19; f32: C256; f64: C256; s16: C256; s32: C256; s64: C256; s8: C256; u16: C256; u32: C256; u64: C256; u8: C256; v2: st_0; v4: st_0; v8: st_1; wb: st_19; wt: st_19
class st_21:
    b16: C256; b32: C256; b8: C256; f32: C256; s16: C256; s32: C256; s8: C256; u16: C256; u32: C256; u8: C256
class st_22:
    b128: C256; b16: C256; b32: C256; b64: C256; b8: C256; f32: C256; f64: C256; s16: C256; s32: C256; s64: C256; s8: C256; u16: C256; u32: C256; u64: C256; u8: C256; v2: st_0; v4: st_21
class st_23:
    b128: C256; b16: C256; b32: C256; b64: C256; b8: C256; cg: st_22; cs: st_22; f32: C256; f64: C256; s16: C256; s32: C256; s64: C256; s8: C256; u16: C256; u32: C256; u64: C256; u8: C256; v2: st_0; v4: st_21; wb: st_22; wt: st_22
class C260:
    def __call__(self, a: In, b: In, /, *, guard: Guard = ...) -> None:
        "The value b goes to an address."
class st_24:
    b128: C260; b16: C260; b32: C260; b64: C260; b8: C260; f32: C260; f64: C260; s16: C260; s32: C260; s64: C260; s8: C260; u16: C260; u32: C260; u64: C260; u8: C260
class st_25:
    b128: C260; b16: C260; b32: C260; b64: C260; b8: C260; f32: C260; f64: C260; global_: st_24; s16: C260; s32: C260; s64: C260; s8: C260; u16: C260; u32: C260; u64: C260; u8: C260
class st_26:
    sys: st_25
class st_27:
    relaxed: st_26
class st_28:
    L1__evict_first: st_6; L1__evict_last: st_6; L1__evict_normal: st_6; L1__evict_unchanged: st_6; L1__no_allocate: st_6; L2__cache_hint: st_2; L2__evict_first: st_5; L2__evict_last: st_5; L2__evict_normal: st_5; b128: C256; b16: C256; b32: C256; b64: C256; b8: C256; f32: C256; f64: C256; s16: C256; s32: C256; s64: C256; s8: C256; u16: C256; u32: C256; u64: C256; u8: C256; v2: st_0; v4: st_0; v8: st_1
class st_29:
    L1__evict_first: st_6; L1__evict_last: st_6; L1__evict_normal: st_6; L1__evict_unchanged: st_6; L1__no_allocate: st_6; L2__cache_hint: st_2; L2__evict_first: st_5; L2__evict_last: st_5; L2__evict_normal: st_5; b128: C256; b16: C256; b32: C256; b64: C256; b8: C256; f32: C256; f64: C256; global_: st_28; s16: C256; s32: C256; s64: C256; s8: C256; shared: st_22; shared__cluster: st_22; shared__cta: st_22; u16: C256; u32: C256; u64: C256; u8: C256; v2: st_0; v4: st_0; v8: st_1
class st_30:
    cluster: st_29; cta: st_29; gpu: st_29; sys: st_29
class st_31:
    b16: C260; b32: C260; b64: C260; b8: C260; f32: C260; f64: C260; s16: C260; s32: C260; s64: C260; s8: C260; u16: C260; u32: C260; u64: C260; u8: C260
class st_32:
    b32: C260; f32: C260; s32: C260; u32: C260
class st_33:
    b128: C260; b16: C260; b32: C260; b64: C260; b8: C260; f32: C260; f64: C260; s16: C260; s32: C260; s64: C260; s8: C260; u16: C260; u32: C260; u64: C260; u8: C260; v2: st_31; v4: st_31; v8: st_32
class st_34:
    b16: C260; b32: C260; b8: C260; f32: C260; s16: C260; s32: C260; s8: C260; u16: C260; u32: C260; u8: C260
class st_35:
    b128: C260; b16: C260; b32: C260; b64: C260; b8: C260; f32: C260; f64: C260; s16: C260; s32: C260; s64: C260; s8: C260; u16: C260; u32: C260; u64: C260; u8: C260; v2: st_31; v4: st_34
class st_36:
    b128: C260; b16: C260; b32: C260; b64: C260; b8: C260; f32: C260; f64: C260; global_: st_33; s16: C260; s32: C260; s64: C260; s8: C260; shared: st_35; shared__cluster: st_35; shared__cta: st_35; u16: C260; u32: C260; u64: C260; u8: C260; v2: st_31; v4: st_31; v8: st_32
class st_37:
    L1__evict_first: st_6; L1__evict_last: st_6; L1__evict_normal: st_6; L1__evict_unchanged: st_6; L1__no_allocate: st_6; L2__cache_hint: st_2; L2__evict_first: st_5; L2__evict_last: st_5; L2__evict_normal: st_5; b128: C256; b16: C256; b32: C256; b64: C256; b8: C256; cg: st_19; cs: st_19; f32: C256; f64: C256; global_: st_20; local: st_23; param: st_23; param__func: st_23; s16: C256; s32: C256; s64: C256; s8: C256; shared: st_23; shared__cluster: st_23; shared__cta: st_23; u16: C256; u32: C256; u64: C256; u8: C256; v2: st_0; v4: st_0; v8: st_1; wb: st_19; wt: st_19
class st_38:
    L1__evict_first: st_6; L1__evict_last: st_6; L1__evict_normal: st_6; L1__evict_unchanged: st_6; L1__no_allocate: st_6; L2__cache_hint: st_2; L2__evict_first: st_5; L2__evict_last: st_5; L2__evict_normal: st_5; async_: st_16; b128: C256; b16: C256; b32: C256; b64: C256; b8: C256; bulk: st_18; cg: st_19; cs: st_19; f32: C256; f64: C256; global_: st_20; local: st_23; mmio: st_27; param: st_23; param__func: st_23; relaxed: st_30; release: st_30; s16: C256; s32: C256; s64: C256; s8: C256; shared: st_23; shared__cluster: st_23; shared__cta: st_23; u16: C256; u32: C256; u64: C256; u8: C256; v2: st_0; v4: st_0; v8: st_1; volatile: st_36; wb: st_19; weak: st_37; wt: st_19
class C261:
    def __call__(self, address: In, a: In, /, *, guard: Guard = ...) -> None:
        "Matrices of bytes go to rows in memory. Needs sm_100f or sm_110f or sm_120f."
class stmatrix_0:
    b8: C261
class stmatrix_1:
    b8: C261; shared: stmatrix_0; shared__cta: stmatrix_0
class stmatrix_2:
    trans: stmatrix_1
class stmatrix_3:
    x1: stmatrix_2; x2: stmatrix_2; x4: stmatrix_2
class C262:
    def __call__(self, address: In, a: In, /, *, guard: Guard = ...) -> None:
        "Matrices go to rows in memory: lane 4g + t has elements 2t and 2t+1 of row g; with .trans of column g. Needs sm_90."
class stmatrix_4:
    b16: C262
class stmatrix_5:
    b16: C262; shared: stmatrix_4; shared__cta: stmatrix_4
class stmatrix_6:
    b16: C262; shared: stmatrix_4; shared__cta: stmatrix_4; trans: stmatrix_5
class stmatrix_7:
    x1: stmatrix_6; x2: stmatrix_6; x4: stmatrix_6
class stmatrix_8:
    m16n8: stmatrix_3; m8n8: stmatrix_7
class stmatrix_9:
    aligned: stmatrix_8
class stmatrix_10:
    sync: stmatrix_9
class C263:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a - b. Needs sm_90."
class C264:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a - b, with subc also - the borrow; .cc writes the borrow, inverted, to CC.CF."
class sub_0:
    s32: C264; s64: C264; u32: C264; u64: C264
class C265:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a - b."
class C266:
    def __call__(self, a: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a - b. Needs sm_100."
class sub_1(C265):
    bf16: C266; f16: C266
class C267:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a - b. Needs sm_100."
class sub_2:
    f16: C265; f16x2: C265; f32: C265
class sub_3:
    f16: C265; f16x2: C265; f32: C265; f32x2: C267; sat: sub_2
class sub_4:
    f32: C265
class sub_5:
    f32: C265; f32x2: C267; sat: sub_4
class sub_6:
    f32: sub_1
class sub_7:
    f32: sub_1; f32x2: C267; f64: C265; ftz: sub_5; sat: sub_6
class sub_8:
    f16: C265; f16x2: C265; f32: sub_1
class sub_9:
    bf16: C263; bf16x2: C263; f16: C265; f16x2: C265; f32: sub_1; f32x2: C267; f64: C265; ftz: sub_3; sat: sub_8
class C268:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a - b, modulo 2^n; with .sat clamped to the range of s32."
class sub_10:
    f16: C265; f16x2: C265; f32: sub_1; s32: C268
class sub_11:
    bf16: C263; bf16x2: C263; cc: sub_0; f16: C265; f16x2: C265; f32: sub_1; f32x2: C267; f64: C265; ftz: sub_3; rm: sub_7; rn: sub_9; rp: sub_7; rz: sub_7; s16: C268; s32: C268; s64: C268; sat: sub_10; u16: C268; u32: C268; u64: C268
class subc_0:
    s32: C264; s64: C264; u32: C264; u64: C264
class subc_1:
    cc: subc_0; s32: C264; s64: C264; u32: C264; u64: C264
class C269:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the low b bits of a, sign- or zero-extended; b is taken modulo 32 (.wrap) or as 32 at most (.clamp)."
class szext_0:
    s32: C269; u32: C269
class szext_1:
    clamp: szext_0; wrap: szext_0
class C270:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the hyperbolic tangent of a. Needs sm_90."
class C271:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the hyperbolic tangent of a."
class tanh_0:
    bf16: C270; bf16x2: C270; f16: C271; f16x2: C271; f32: C271
class tanh_1:
    approx: tanh_0
class C272:
    def __call__(self, dst: In, columns: In, /, *, guard: Guard = ...) -> None:
        "Takes columns of tensor memory, waiting until there are so many; their address goes to shared memory. Needs sm_100f or sm_110f."
class tcgen05_0:
    b32: C272
class tcgen05_1:
    b32: C272; shared__cta: tcgen05_0
class tcgen05_2:
    aligned: tcgen05_1
class tcgen05_3:
    sync: tcgen05_2
class tcgen05_4:
    cta_group__1: tcgen05_3; cta_group__2: tcgen05_3
class C273:
    def __call__(self, mbarrier: In, /, *, guard: Guard = ...) -> None:
        "Lets an mbarrier, or that of each block in `cta_mask`, count an arrival when the thread's products are done. Needs sm_100f or sm_110f."
class C274:
    def __call__(self, mbarrier: In, cta_mask: In, /, *, guard: Guard = ...) -> None:
        "Lets an mbarrier, or that of each block in `cta_mask`, count an arrival when the thread's products are done. Needs sm_100f or sm_110f."
class tcgen05_5:
    b64: C274
class tcgen05_6:
    b64: C273; multicast__cluster: tcgen05_5
class tcgen05_7:
    b64: C273; multicast__cluster: tcgen05_5; shared__cluster: tcgen05_6
class tcgen05_8:
    mbarrier__arrive__one: tcgen05_7
class tcgen05_9:
    cta_group__1: tcgen05_8; cta_group__2: tcgen05_8
class C275:
    def __call__(self, address: In, source_desc: In, /, *, guard: Guard = ...) -> None:
        "Copies what a descriptor names in shared memory to tensor memory; elements of 4 or 6 bits may become bytes. Needs sm_100f or sm_110f."
class tcgen05_10:
    b4x16_p64: C275; b6x16_p32: C275
class tcgen05_11(C275):
    b8x16: tcgen05_10
class tcgen05_12:
    warpx4: tcgen05_11
class tcgen05_13:
    warpx2__01_23: tcgen05_11; warpx2__02_13: tcgen05_11
class tcgen05_14:
    _128x128b: tcgen05_11; _128x256b: tcgen05_11; _32x128b: tcgen05_12; _4x256b: tcgen05_11; _64x128b: tcgen05_13
class tcgen05_15:
    cta_group__1: tcgen05_14; cta_group__2: tcgen05_14
class C276:
    def __call__(self, address: In, columns: In, /, *, guard: Guard = ...) -> None:
        "Gives columns of tensor memory back. Needs sm_100f or sm_110f."
class tcgen05_16:
    b32: C276
class tcgen05_17:
    aligned: tcgen05_16
class tcgen05_18:
    sync: tcgen05_17
class tcgen05_19:
    cta_group__1: tcgen05_18; cta_group__2: tcgen05_18
class C277:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Orders the thread's tcgen05 instructions before, or after, what synchronises it with other threads. Needs sm_100f or sm_110f."
class C278:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Vector, Scalar]:
        "d = tensor memory of the warp's lanes, and reduced = the least or greatest of each lane's. Needs sm_103f or sm_110f."
class tcgen05_20:
    f32: C278
class tcgen05_21:
    NaN: tcgen05_20; f32: C278
class tcgen05_22:
    NaN: tcgen05_20; abs: tcgen05_21; f32: C278; s32: C278; u32: C278
class tcgen05_23:
    max: tcgen05_22; min: tcgen05_22
class C279:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Vector2, Scalar]:
        "d = tensor memory of the warp's lanes, and reduced = the least or greatest of each lane's. Needs sm_103f or sm_110f."
class tcgen05_24:
    f32: C279
class tcgen05_25:
    NaN: tcgen05_24; f32: C279
class tcgen05_26:
    NaN: tcgen05_24; abs: tcgen05_25; f32: C279; s32: C279; u32: C279
class tcgen05_27:
    max: tcgen05_26; min: tcgen05_26
class C280:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Vector4, Scalar]:
        "d = tensor memory of the warp's lanes, and reduced = the least or greatest of each lane's. Needs sm_103f or sm_110f."
class tcgen05_28:
    f32: C280
class tcgen05_29:
    NaN: tcgen05_28; f32: C280
class tcgen05_30:
    NaN: tcgen05_28; abs: tcgen05_29; f32: C280; s32: C280; u32: C280
class tcgen05_31:
    max: tcgen05_30; min: tcgen05_30
class tcgen05_32:
    x128: tcgen05_23; x16: tcgen05_23; x2: tcgen05_27; x32: tcgen05_23; x4: tcgen05_31; x64: tcgen05_23; x8: tcgen05_23
class C281:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Vector, Scalar]:
        "d = tensor memory of the warp's lanes, and reduced = the least or greatest of each lane's. Needs sm_103f or sm_110f."
class tcgen05_33:
    f32: C281
class tcgen05_34:
    NaN: tcgen05_33; f32: C281
class tcgen05_35:
    NaN: tcgen05_33; abs: tcgen05_34; f32: C281; s32: C281; u32: C281
class tcgen05_36:
    max: tcgen05_35; min: tcgen05_35
class C282:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Vector2, Scalar]:
        "d = tensor memory of the warp's lanes, and reduced = the least or greatest of each lane's. Needs sm_103f or sm_110f."
class tcgen05_37:
    f32: C282
class tcgen05_38:
    NaN: tcgen05_37; f32: C282
class tcgen05_39:
    NaN: tcgen05_37; abs: tcgen05_38; f32: C282; s32: C282; u32: C282
class tcgen05_40:
    max: tcgen05_39; min: tcgen05_39
class C283:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> tuple[Vector4, Scalar]:
        "d = tensor memory of the warp's lanes, and reduced = the least or greatest of each lane's. Needs sm_103f or sm_110f."
class tcgen05_41:
    f32: C283
class tcgen05_42:
    NaN: tcgen05_41; f32: C283
class tcgen05_43:
    NaN: tcgen05_41; abs: tcgen05_42; f32: C283; s32: C283; u32: C283
class tcgen05_44:
    max: tcgen05_43; min: tcgen05_43
class tcgen05_45:
    x128: tcgen05_36; x16: tcgen05_36; x2: tcgen05_40; x32: tcgen05_36; x4: tcgen05_44; x64: tcgen05_36; x8: tcgen05_36
class tcgen05_46:
    _16x32bx2: tcgen05_32; _32x32b: tcgen05_45
class tcgen05_47:
    aligned: tcgen05_46
class tcgen05_48:
    sync: tcgen05_47
class C284:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = tensor memory of the warp's lanes, once the thread has waited by tcgen05.wait::ld. Needs sm_100f or sm_110f."
class tcgen05_49:
    b32: C284
class tcgen05_50:
    b32: C284; pack__16b: tcgen05_49
class C285:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = tensor memory of the warp's lanes, once the thread has waited by tcgen05.wait::ld. Needs sm_100f or sm_110f."
class tcgen05_51:
    b32: C285
class tcgen05_52:
    b32: C285; pack__16b: tcgen05_51
class C286:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = tensor memory of the warp's lanes, once the thread has waited by tcgen05.wait::ld. Needs sm_100f or sm_110f."
class tcgen05_53:
    b32: C286
class tcgen05_54:
    b32: C286; pack__16b: tcgen05_53
class tcgen05_55:
    x1: tcgen05_50; x16: tcgen05_52; x2: tcgen05_54; x32: tcgen05_52; x4: tcgen05_52; x64: tcgen05_52; x8: tcgen05_52
class tcgen05_56:
    x1: tcgen05_54; x16: tcgen05_52; x2: tcgen05_52; x32: tcgen05_52; x4: tcgen05_52; x8: tcgen05_52
class C287:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = tensor memory of the warp's lanes, once the thread has waited by tcgen05.wait::ld. Needs sm_100f or sm_110f."
class tcgen05_57:
    b32: C287
class tcgen05_58:
    b32: C287; pack__16b: tcgen05_57
class C288:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = tensor memory of the warp's lanes, once the thread has waited by tcgen05.wait::ld. Needs sm_100f or sm_110f."
class tcgen05_59:
    b32: C288
class tcgen05_60:
    b32: C288; pack__16b: tcgen05_59
class C289:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = tensor memory of the warp's lanes, once the thread has waited by tcgen05.wait::ld. Needs sm_100f or sm_110f."
class tcgen05_61:
    b32: C289
class tcgen05_62:
    b32: C289; pack__16b: tcgen05_61
class C290:
    def __call__(self, address: In, second_half: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = tensor memory of the warp's lanes, once the thread has waited by tcgen05.wait::ld. Needs sm_100f or sm_110f."
class tcgen05_63:
    b32: C290
class tcgen05_64:
    b32: C290; pack__16b: tcgen05_63
class tcgen05_65:
    x1: tcgen05_58; x128: tcgen05_60; x16: tcgen05_60; x2: tcgen05_62; x32: tcgen05_60; x4: tcgen05_64; x64: tcgen05_60; x8: tcgen05_60
class C291:
    def __call__(self, address: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = tensor memory of the warp's lanes, once the thread has waited by tcgen05.wait::ld. Needs sm_100f or sm_110f."
class tcgen05_66:
    b32: C291
class tcgen05_67:
    b32: C291; pack__16b: tcgen05_66
class tcgen05_68:
    x1: tcgen05_67; x128: tcgen05_52; x16: tcgen05_52; x2: tcgen05_50; x32: tcgen05_52; x4: tcgen05_54; x64: tcgen05_52; x8: tcgen05_52
class tcgen05_69:
    _16x128b: tcgen05_55; _16x256b: tcgen05_56; _16x32bx2: tcgen05_65; _16x64b: tcgen05_68; _32x32b: tcgen05_68
class tcgen05_70:
    aligned: tcgen05_69
class tcgen05_71:
    red: tcgen05_48; sync: tcgen05_70
class C292:
    def __call__(self, d: In, a_desc: In, b_desc: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., scale_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "d = a * b + d in tensor memory, or a * b where enable_input_d is false; a commit says when it is done. Needs sm_100f or sm_110f."
class C293:
    def __call__(self, d: In, a: In, b_desc: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., scale_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "d = a * b + d in tensor memory, or a * b where enable_input_d is false; a commit says when it is done. Needs sm_100f or sm_110f."
class tcgen05_72(C293):
    collector__a__discard: C293; collector__a__lastuse: C293
class tcgen05_73(C292):
    ashift: tcgen05_72; collector__a__discard: C292; collector__a__fill: C292; collector__a__lastuse: C292; collector__a__use: C292
class C294:
    def __call__(self, d: In, a_desc: In, b_desc: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "d = a * b + d in tensor memory, or a * b where enable_input_d is false; a commit says when it is done. Needs sm_100f or sm_110f."
class C295:
    def __call__(self, d: In, a: In, b_desc: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "d = a * b + d in tensor memory, or a * b where enable_input_d is false; a commit says when it is done. Needs sm_100f or sm_110f."
class tcgen05_74(C295):
    collector__a__discard: C295; collector__a__lastuse: C295
class tcgen05_75(C294):
    ashift: tcgen05_74; collector__a__discard: C294; collector__a__fill: C294; collector__a__lastuse: C294; collector__a__use: C294
class C296:
    def __call__(self, d: In, a_desc: In, b_desc: In, idesc: In, scale_a: In, scale_b: In, enable_input_d: In, /, *, guard: Guard = ...) -> None:
        "d = a * b + d in tensor memory, or a * b where enable_input_d is false; a commit says when it is done. Needs sm_100f or sm_110f."
class tcgen05_76(C296):
    collector__a__discard: C296; collector__a__fill: C296; collector__a__lastuse: C296; collector__a__use: C296
class tcgen05_77(C296):
    block32: tcgen05_76; collector__a__discard: C296; collector__a__fill: C296; collector__a__lastuse: C296; collector__a__use: C296; scale_vec__2X: tcgen05_76
class tcgen05_78:
    block_scale: tcgen05_77
class tcgen05_79:
    block16: tcgen05_76; block32: tcgen05_76; scale_vec__2X: tcgen05_76; scale_vec__4X: tcgen05_76
class tcgen05_80:
    block_scale: tcgen05_79
class tcgen05_81(C296):
    block32: tcgen05_76; collector__a__discard: C296; collector__a__fill: C296; collector__a__lastuse: C296; collector__a__use: C296; scale_vec__1X: tcgen05_76
class tcgen05_82:
    block_scale: tcgen05_81
class tcgen05_83:
    kind__f16: tcgen05_73; kind__f8f6f4: tcgen05_75; kind__i8: tcgen05_75; kind__mxf4: tcgen05_78; kind__mxf4nvf4: tcgen05_80; kind__mxf8f6f4: tcgen05_82; kind__tf32: tcgen05_73
class C297:
    def __call__(self, d: In, a_desc: In, b_desc: In, metadata: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., scale_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "d = a * b + d in tensor memory, or a * b where enable_input_d is false; a commit says when it is done. Needs sm_100f or sm_110f."
class C298:
    def __call__(self, d: In, a: In, b_desc: In, metadata: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., scale_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "d = a * b + d in tensor memory, or a * b where enable_input_d is false; a commit says when it is done. Needs sm_100f or sm_110f."
class tcgen05_84(C298):
    collector__a__discard: C298; collector__a__lastuse: C298
class tcgen05_85(C297):
    ashift: tcgen05_84; collector__a__discard: C297; collector__a__fill: C297; collector__a__lastuse: C297; collector__a__use: C297
class C299:
    def __call__(self, d: In, a_desc: In, b_desc: In, metadata: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "d = a * b + d in tensor memory, or a * b where enable_input_d is false; a commit says when it is done. Needs sm_100f or sm_110f."
class C300:
    def __call__(self, d: In, a: In, b_desc: In, metadata: In, idesc: In, disabled_lanes: In, enable_input_d: In = ..., /, *, guard: Guard = ...) -> None:
        "d = a * b + d in tensor memory, or a * b where enable_input_d is false; a commit says when it is done. Needs sm_100f or sm_110f."
class tcgen05_86(C300):
    collector__a__discard: C300; collector__a__lastuse: C300
class tcgen05_87(C299):
    ashift: tcgen05_86; collector__a__discard: C299; collector__a__fill: C299; collector__a__lastuse: C299; collector__a__use: C299
class C301:
    def __call__(self, d: In, a_desc: In, b_desc: In, metadata: In, idesc: In, scale_a: In, scale_b: In, enable_input_d: In, /, *, guard: Guard = ...) -> None:
        "d = a * b + d in tensor memory, or a * b where enable_input_d is false; a commit says when it is done. Needs sm_100f or sm_110f."
class tcgen05_88(C301):
    collector__a__discard: C301; collector__a__fill: C301; collector__a__lastuse: C301; collector__a__use: C301
class tcgen05_89(C301):
    block32: tcgen05_88; collector__a__discard: C301; collector__a__fill: C301; collector__a__lastuse: C301; collector__a__use: C301; scale_vec__2X: tcgen05_88
class tcgen05_90:
    block_scale: tcgen05_89
class tcgen05_91:
    block16: tcgen05_88; block32: tcgen05_88; scale_vec__2X: tcgen05_88; scale_vec__4X: tcgen05_88
class tcgen05_92:
    block_scale: tcgen05_91
class tcgen05_93(C301):
    block32: tcgen05_88; collector__a__discard: C301; collector__a__fill: C301; collector__a__lastuse: C301; collector__a__use: C301; scale_vec__1X: tcgen05_88
class tcgen05_94:
    block_scale: tcgen05_93
class tcgen05_95:
    kind__f16: tcgen05_85; kind__f8f6f4: tcgen05_87; kind__i8: tcgen05_87; kind__mxf4: tcgen05_90; kind__mxf4nvf4: tcgen05_92; kind__mxf8f6f4: tcgen05_94; kind__tf32: tcgen05_85
class tcgen05_96:
    cta_group__1: tcgen05_95; cta_group__2: tcgen05_95
class C302:
    def __call__(self, d: In, a_desc: In, b_desc: In, idesc: In, enable_input_d: In, zero_columns: In = ..., /, *, guard: Guard = ...) -> None:
        "As tcgen05.mma, with B kept for several products; columns of B may be taken as zeros. Needs sm_100f or sm_110f."
class tcgen05_97(C302):
    collector__b0__discard: C302; collector__b0__fill: C302; collector__b0__lastuse: C302; collector__b0__use: C302; collector__b1__discard: C302; collector__b1__fill: C302; collector__b1__lastuse: C302; collector__b1__use: C302; collector__b2__discard: C302; collector__b2__fill: C302; collector__b2__lastuse: C302; collector__b2__use: C302; collector__b3__discard: C302; collector__b3__fill: C302; collector__b3__lastuse: C302; collector__b3__use: C302
class tcgen05_98:
    kind__f16: tcgen05_97; kind__f8f6f4: tcgen05_97; kind__i8: tcgen05_97; kind__tf32: tcgen05_97
class C303:
    def __call__(self, d: In, a_desc: In, b_desc: In, metadata: In, idesc: In, enable_input_d: In, zero_columns: In = ..., /, *, guard: Guard = ...) -> None:
        "As tcgen05.mma, with B kept for several products; columns of B may be taken as zeros. Needs sm_100f or sm_110f."
class tcgen05_99(C303):
    collector__b0__discard: C303; collector__b0__fill: C303; collector__b0__lastuse: C303; collector__b0__use: C303; collector__b1__discard: C303; collector__b1__fill: C303; collector__b1__lastuse: C303; collector__b1__use: C303; collector__b2__discard: C303; collector__b2__fill: C303; collector__b2__lastuse: C303; collector__b2__use: C303; collector__b3__discard: C303; collector__b3__fill: C303; collector__b3__lastuse: C303; collector__b3__use: C303
class tcgen05_100:
    kind__f16: tcgen05_99; kind__f8f6f4: tcgen05_99; kind__i8: tcgen05_99; kind__tf32: tcgen05_99
class tcgen05_101:
    cta_group__1: tcgen05_100
class tcgen05_102:
    cta_group__1: tcgen05_98; sp: tcgen05_101
class tcgen05_103:
    cta_group__1: tcgen05_83; cta_group__2: tcgen05_83; sp: tcgen05_96; ws: tcgen05_102
class C304:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Says that the block takes no more tensor memory. Needs sm_100f or sm_110f."
class tcgen05_104:
    aligned: C304
class tcgen05_105:
    sync: tcgen05_104
class tcgen05_106:
    cta_group__1: tcgen05_105; cta_group__2: tcgen05_105
class C305:
    def __call__(self, address: In, /, *, guard: Guard = ...) -> None:
        "Moves all but the last rows of tensor memory down by one. Needs sm_100a or sm_103a or sm_110a."
class tcgen05_107:
    down: C305
class tcgen05_108:
    cta_group__1: tcgen05_107; cta_group__2: tcgen05_107
class C306:
    def __call__(self, address: In, a: In, /, *, guard: Guard = ...) -> None:
        "Registers go to tensor memory; done when the thread has waited by tcgen05.wait::st. Needs sm_100f or sm_110f."
class tcgen05_109:
    b32: C306
class tcgen05_110:
    b32: C306; unpack__16b: tcgen05_109
class tcgen05_111:
    x1: tcgen05_110; x16: tcgen05_110; x2: tcgen05_110; x32: tcgen05_110; x4: tcgen05_110; x64: tcgen05_110; x8: tcgen05_110
class tcgen05_112:
    x1: tcgen05_110; x16: tcgen05_110; x2: tcgen05_110; x32: tcgen05_110; x4: tcgen05_110; x8: tcgen05_110
class C307:
    def __call__(self, address: In, second_half: In, a: In, /, *, guard: Guard = ...) -> None:
        "Registers go to tensor memory; done when the thread has waited by tcgen05.wait::st. Needs sm_100f or sm_110f."
class tcgen05_113:
    b32: C307
class tcgen05_114:
    b32: C307; unpack__16b: tcgen05_113
class tcgen05_115:
    x1: tcgen05_114; x128: tcgen05_114; x16: tcgen05_114; x2: tcgen05_114; x32: tcgen05_114; x4: tcgen05_114; x64: tcgen05_114; x8: tcgen05_114
class tcgen05_116:
    x1: tcgen05_110; x128: tcgen05_110; x16: tcgen05_110; x2: tcgen05_110; x32: tcgen05_110; x4: tcgen05_110; x64: tcgen05_110; x8: tcgen05_110
class tcgen05_117:
    _16x128b: tcgen05_111; _16x256b: tcgen05_112; _16x32bx2: tcgen05_115; _16x64b: tcgen05_116; _32x32b: tcgen05_116
class tcgen05_118:
    aligned: tcgen05_117
class tcgen05_119:
    sync: tcgen05_118
class C308:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Waits until all tcgen05.ld, or tcgen05.st, of the thread are done. Needs sm_100f or sm_110f."
class tcgen05_120:
    aligned: C308
class tcgen05_121:
    sync: tcgen05_120
class tcgen05_122:
    alloc: tcgen05_4; commit: tcgen05_9; cp: tcgen05_15; dealloc: tcgen05_19; fence__after_thread_sync: C277; fence__before_thread_sync: C277; ld: tcgen05_71; mma: tcgen05_103; relinquish_alloc_permit: tcgen05_106; shift: tcgen05_108; st: tcgen05_119; wait__ld: tcgen05_121; wait__st: tcgen05_121
class C309:
    def __call__(self, dst: In, src: In, size: In, /, *, guard: Guard = ...) -> None:
        "Copies a tensor map from shared to global memory, where copies by it then see the change; for a whole warp. Needs sm_90."
class tensormap_0:
    aligned: C309
class tensormap_1:
    sync: tensormap_0
class tensormap_2:
    cluster: tensormap_1; cta: tensormap_1; gpu: tensormap_1; sys: tensormap_1
class tensormap_3:
    release: tensormap_2
class tensormap_4:
    tensormap__generic: tensormap_3
class tensormap_5:
    shared__cta: tensormap_4
class tensormap_6:
    global_: tensormap_5
class C310:
    def __call__(self, map: In, ord: In, value: In, /, *, guard: Guard = ...) -> None:
        "Changes a field of a tensor map in memory. Needs sm_90a or sm_100f or sm_110f or sm_120f."
class tensormap_7:
    b32: C310
class tensormap_8:
    b1024: tensormap_7
class tensormap_9:
    b1024: tensormap_7; global_: tensormap_8; shared__cta: tensormap_8
class C311:
    def __call__(self, map: In, value: In, /, *, guard: Guard = ...) -> None:
        "Changes a field of a tensor map in memory. Needs sm_90a or sm_100f or sm_110f or sm_120f."
class tensormap_10:
    b32: C311
class tensormap_11:
    b1024: tensormap_10
class tensormap_12:
    b1024: tensormap_10; global_: tensormap_11; shared__cta: tensormap_11
class tensormap_13:
    b64: C311
class tensormap_14:
    b1024: tensormap_13
class tensormap_15:
    b1024: tensormap_13; global_: tensormap_14; shared__cta: tensormap_14
class tensormap_16:
    b64: C310
class tensormap_17:
    b1024: tensormap_16
class tensormap_18:
    b1024: tensormap_16; global_: tensormap_17; shared__cta: tensormap_17
class tensormap_19:
    box_dim: tensormap_9; element_stride: tensormap_9; elemtype: tensormap_12; fill_mode: tensormap_12; global_address: tensormap_15; global_dim: tensormap_9; global_stride: tensormap_18; interleave_layout: tensormap_12; rank: tensormap_12; swizzle_atomicity: tensormap_12; swizzle_mode: tensormap_12
class tensormap_20:
    tile: tensormap_19
class tensormap_21:
    cp_fenceproxy: tensormap_6; replace: tensormap_20
class C312:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "p = whether a is finite, infinite, a number, no number, normal (or zero), or subnormal."
class testp_0:
    f32: C312; f64: C312
class testp_1:
    finite: testp_0; infinite: testp_0; normal: testp_0; notanumber: testp_0; number: testp_0; subnormal: testp_0
class C313:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Aborts the kernel with an error."
class C314:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = |a - b|, of words, halves or bytes; then + c, or its minimum or maximum with c."
class C315:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = |a - b|, of words, halves or bytes; then + c, or its minimum or maximum with c."
class vabsdiff_0(C314):
    add: C315; max: C315; min: C315
class vabsdiff_1(C314):
    add: C315; max: C315; min: C315; sat: vabsdiff_0
class vabsdiff_2:
    s32: vabsdiff_1; u32: vabsdiff_1
class vabsdiff_3:
    s32: vabsdiff_2; u32: vabsdiff_2
class vabsdiff_4:
    s32: vabsdiff_3; u32: vabsdiff_3
class vabsdiff2_0(C315):
    add: C315; sat: C315
class vabsdiff2_1:
    s32: vabsdiff2_0; u32: vabsdiff2_0
class vabsdiff2_2:
    s32: vabsdiff2_1; u32: vabsdiff2_1
class vabsdiff2_3:
    s32: vabsdiff2_2; u32: vabsdiff2_2
class vabsdiff4_0(C315):
    add: C315; sat: C315
class vabsdiff4_1:
    s32: vabsdiff4_0; u32: vabsdiff4_0
class vabsdiff4_2:
    s32: vabsdiff4_1; u32: vabsdiff4_1
class vabsdiff4_3:
    s32: vabsdiff4_2; u32: vabsdiff4_2
class C316:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a + b, of words, halves or bytes; then + c, or its minimum or maximum with c."
class C317:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a + b, of words, halves or bytes; then + c, or its minimum or maximum with c."
class vadd_0(C316):
    add: C317; max: C317; min: C317
class vadd_1(C316):
    add: C317; max: C317; min: C317; sat: vadd_0
class vadd_2:
    s32: vadd_1; u32: vadd_1
class vadd_3:
    s32: vadd_2; u32: vadd_2
class vadd_4:
    s32: vadd_3; u32: vadd_3
class vadd2_0(C317):
    add: C317; sat: C317
class vadd2_1:
    s32: vadd2_0; u32: vadd2_0
class vadd2_2:
    s32: vadd2_1; u32: vadd2_1
class vadd2_3:
    s32: vadd2_2; u32: vadd2_2
class vadd4_0(C317):
    add: C317; sat: C317
class vadd4_1:
    s32: vadd4_0; u32: vadd4_0
class vadd4_2:
    s32: vadd4_1; u32: vadd4_1
class vadd4_3:
    s32: vadd4_2; u32: vadd4_2
class C318:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = (a + b) / 2 of halves or bytes, rounded to nearest, up if in the middle; .add adds their sum to c."
class vavrg2_0(C318):
    add: C318; sat: C318
class vavrg2_1:
    s32: vavrg2_0; u32: vavrg2_0
class vavrg2_2:
    s32: vavrg2_1; u32: vavrg2_1
class vavrg2_3:
    s32: vavrg2_2; u32: vavrg2_2
class vavrg4_0(C318):
    add: C318; sat: C318
class vavrg4_1:
    s32: vavrg4_0; u32: vavrg4_0
class vavrg4_2:
    s32: vavrg4_1; u32: vavrg4_1
class vavrg4_3:
    s32: vavrg4_2; u32: vavrg4_2
class C319:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a * b + c, with .po one more, shifted right by 7 or 15; .sat clamps to 32 bits, signed if a or b is."
class vmad_0(C319):
    shr15: C319; shr7: C319
class vmad_1(C319):
    sat: vmad_0; shr15: C319; shr7: C319
class vmad_2(C319):
    po: vmad_1; sat: vmad_0; shr15: C319; shr7: C319
class vmad_3:
    s32: vmad_2; u32: vmad_2
class vmad_4:
    s32: vmad_3; u32: vmad_3
class vmad_5:
    s32: vmad_4; u32: vmad_4
class C320:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the greater of a and b, words, halves or bytes; then + c, or its minimum or maximum with c."
class C321:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the greater of a and b, words, halves or bytes; then + c, or its minimum or maximum with c."
class vmax_0(C320):
    add: C321; max: C321; min: C321
class vmax_1(C320):
    add: C321; max: C321; min: C321; sat: vmax_0
class vmax_2:
    s32: vmax_1; u32: vmax_1
class vmax_3:
    s32: vmax_2; u32: vmax_2
class vmax_4:
    s32: vmax_3; u32: vmax_3
class vmax2_0(C321):
    add: C321; sat: C321
class vmax2_1:
    s32: vmax2_0; u32: vmax2_0
class vmax2_2:
    s32: vmax2_1; u32: vmax2_1
class vmax2_3:
    s32: vmax2_2; u32: vmax2_2
class vmax4_0(C321):
    add: C321; sat: C321
class vmax4_1:
    s32: vmax4_0; u32: vmax4_0
class vmax4_2:
    s32: vmax4_1; u32: vmax4_1
class vmax4_3:
    s32: vmax4_2; u32: vmax4_2
class C322:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the lesser of a and b, words, halves or bytes; then + c, or its minimum or maximum with c."
class C323:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the lesser of a and b, words, halves or bytes; then + c, or its minimum or maximum with c."
class vmin_0(C322):
    add: C323; max: C323; min: C323
class vmin_1(C322):
    add: C323; max: C323; min: C323; sat: vmin_0
class vmin_2:
    s32: vmin_1; u32: vmin_1
class vmin_3:
    s32: vmin_2; u32: vmin_2
class vmin_4:
    s32: vmin_3; u32: vmin_3
class vmin2_0(C323):
    add: C323; sat: C323
class vmin2_1:
    s32: vmin2_0; u32: vmin2_0
class vmin2_2:
    s32: vmin2_1; u32: vmin2_1
class vmin2_3:
    s32: vmin2_2; u32: vmin2_2
class vmin4_0(C323):
    add: C323; sat: C323
class vmin4_1:
    s32: vmin4_0; u32: vmin4_0
class vmin4_2:
    s32: vmin4_1; u32: vmin4_1
class vmin4_3:
    s32: vmin4_2; u32: vmin4_2
class C324:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = whether `a` holds in all lanes, in any, or in all or none (uni)."
class vote_0:
    pred: C324
class C325:
    def __call__(self, a: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the lanes in which `a` holds, a bit for each."
class vote_1:
    b32: C325
class C326:
    def __call__(self, a: In, membermask: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = whether `a` holds in all lanes, in any, or in all or none (uni)."
class vote_2:
    pred: C326
class C327:
    def __call__(self, a: In, membermask: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the lanes in which `a` holds, a bit for each."
class vote_3:
    b32: C327
class vote_4:
    all: vote_2; any: vote_2; ballot: vote_3; uni: vote_2
class vote_5:
    all: vote_0; any: vote_0; ballot: vote_1; sync: vote_4; uni: vote_0
class C328:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1 where a compares so to b, words, halves or bytes, else 0; then + c, or its minimum or maximum with c."
class C329:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = 1 where a compares so to b, words, halves or bytes, else 0; then + c, or its minimum or maximum with c."
class vset_0(C328):
    add: C329; max: C329; min: C329
class vset_1:
    eq: vset_0; ge: vset_0; gt: vset_0; le: vset_0; lt: vset_0; ne: vset_0
class vset_2:
    s32: vset_1; u32: vset_1
class vset_3:
    s32: vset_2; u32: vset_2
class vset2_0(C329):
    add: C329
class vset2_1:
    eq: vset2_0; ge: vset2_0; gt: vset2_0; le: vset2_0; lt: vset2_0; ne: vset2_0
class vset2_2:
    s32: vset2_1; u32: vset2_1
class vset2_3:
    s32: vset2_2; u32: vset2_2
class vset4_0(C329):
    add: C329
class vset4_1:
    eq: vset4_0; ge: vset4_0; gt: vset4_0; le: vset4_0; lt: vset4_0; ne: vset4_0
class vset4_2:
    s32: vset4_1; u32: vset4_1
class vset4_3:
    s32: vset4_2; u32: vset4_2
class C330:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a << b; then + c, or its minimum or maximum with c."
class C331:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a << b; then + c, or its minimum or maximum with c."
class vshl_0(C330):
    add: C331; max: C331; min: C331
class vshl_1:
    clamp: vshl_0; wrap: vshl_0
class vshl_2:
    clamp: vshl_0; sat: vshl_1; wrap: vshl_0
class vshl_3:
    u32: vshl_2
class vshl_4:
    s32: vshl_3; u32: vshl_3
class vshl_5:
    s32: vshl_4; u32: vshl_4
class C332:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a >> b, filled with the sign of a signed a; then + c, or its minimum or maximum with c."
class C333:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a >> b, filled with the sign of a signed a; then + c, or its minimum or maximum with c."
class vshr_0(C332):
    add: C333; max: C333; min: C333
class vshr_1:
    clamp: vshr_0; wrap: vshr_0
class vshr_2:
    clamp: vshr_0; sat: vshr_1; wrap: vshr_0
class vshr_3:
    u32: vshr_2
class vshr_4:
    s32: vshr_3; u32: vshr_3
class vshr_5:
    s32: vshr_4; u32: vshr_4
class C334:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a - b, of words, halves or bytes; then + c, or its minimum or maximum with c."
class C335:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a - b, of words, halves or bytes; then + c, or its minimum or maximum with c."
class vsub_0(C334):
    add: C335; max: C335; min: C335
class vsub_1(C334):
    add: C335; max: C335; min: C335; sat: vsub_0
class vsub_2:
    s32: vsub_1; u32: vsub_1
class vsub_3:
    s32: vsub_2; u32: vsub_2
class vsub_4:
    s32: vsub_3; u32: vsub_3
class vsub2_0(C335):
    add: C335; sat: C335
class vsub2_1:
    s32: vsub2_0; u32: vsub2_0
class vsub2_2:
    s32: vsub2_1; u32: vsub2_1
class vsub2_3:
    s32: vsub2_2; u32: vsub2_2
class vsub4_0(C335):
    add: C335; sat: C335
class vsub4_1:
    s32: vsub4_0; u32: vsub4_0
class vsub4_2:
    s32: vsub4_1; u32: vsub4_1
class vsub4_3:
    s32: vsub4_2; u32: vsub4_2
class C336:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Makes a group of the products since the last one. Needs sm_90a."
class wgmma_0:
    aligned: C336
class wgmma_1:
    sync: wgmma_0
class C337:
    def __call__(self, *, guard: Guard = ...) -> None:
        "Orders what the thread did with registers before the products that follow: needed before the first of them. Needs sm_90a."
class wgmma_2:
    aligned: C337
class wgmma_3:
    sync: wgmma_2
class C338:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, scale_a: In, scale_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_4:
    tf32: C338
class wgmma_5:
    tf32: wgmma_4
class wgmma_6:
    f32: wgmma_5
class C339:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, scale_a: In, scale_b: In, trans_a: In, trans_b: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_7:
    f16: C339
class wgmma_8:
    f16: wgmma_7
class wgmma_9:
    bf16: C339
class wgmma_10:
    bf16: wgmma_9; f16: wgmma_7
class wgmma_11:
    f16: wgmma_8; f32: wgmma_10
class wgmma_12:
    e4m3: C338; e5m2: C338
class wgmma_13:
    e4m3: wgmma_12; e5m2: wgmma_12
class wgmma_14:
    f16: wgmma_13; f32: wgmma_13
class C340:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_15:
    s8: C340; u8: C340
class wgmma_16:
    s8: wgmma_15; u8: wgmma_15
class wgmma_17:
    s32: wgmma_16
class wgmma_18:
    f16: wgmma_13; f32: wgmma_13; s32: wgmma_16; satfinite: wgmma_17
class C341:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, scale_a: In, scale_b: In, trans_a: In, trans_b: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_19:
    f16: C341
class wgmma_20:
    f16: wgmma_19
class wgmma_21:
    f16: wgmma_20; f32: wgmma_10
class C342:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, scale_a: In, scale_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_22:
    e4m3: C342; e5m2: C342
class wgmma_23:
    e4m3: wgmma_22; e5m2: wgmma_22
class wgmma_24:
    f16: wgmma_23; f32: wgmma_13; s32: wgmma_16; satfinite: wgmma_17
class wgmma_25:
    tf32: C342
class wgmma_26:
    tf32: wgmma_25
class wgmma_27:
    f32: wgmma_26
class C343:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, scale_a: In, scale_b: In, trans_a: In, trans_b: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_28:
    f16: C343
class wgmma_29:
    f16: wgmma_28
class wgmma_30:
    bf16: C341
class wgmma_31:
    bf16: wgmma_30; f16: wgmma_19
class wgmma_32:
    f16: wgmma_29; f32: wgmma_31
class C344:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, scale_a: In, scale_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_33:
    e4m3: C344; e5m2: C344
class wgmma_34:
    e4m3: wgmma_33; e5m2: wgmma_33
class C345:
    def __call__(self, a_desc: In, b_desc: In, metadata: In, selector: In, scale_d: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_35:
    s8: C345; u8: C345
class wgmma_36:
    s8: wgmma_35; u8: wgmma_35
class wgmma_37:
    s32: wgmma_36
class wgmma_38:
    f16: wgmma_34; f32: wgmma_23; s32: wgmma_36; satfinite: wgmma_37
class wgmma_39:
    m64n104k16: wgmma_6; m64n104k32: wgmma_11; m64n104k64: wgmma_14; m64n112k16: wgmma_6; m64n112k32: wgmma_11; m64n112k64: wgmma_18; m64n120k16: wgmma_6; m64n120k32: wgmma_11; m64n120k64: wgmma_14; m64n128k16: wgmma_6; m64n128k32: wgmma_11; m64n128k64: wgmma_18; m64n136k16: wgmma_6; m64n136k32: wgmma_11; m64n136k64: wgmma_14; m64n144k16: wgmma_6; m64n144k32: wgmma_11; m64n144k64: wgmma_18; m64n152k16: wgmma_6; m64n152k32: wgmma_11; m64n152k64: wgmma_14; m64n160k16: wgmma_6; m64n160k32: wgmma_11; m64n160k64: wgmma_18; m64n168k16: wgmma_6; m64n168k32: wgmma_11; m64n168k64: wgmma_14; m64n16k16: wgmma_6; m64n16k32: wgmma_21; m64n16k64: wgmma_24; m64n176k16: wgmma_6; m64n176k32: wgmma_11; m64n176k64: wgmma_18; m64n184k16: wgmma_6; m64n184k32: wgmma_11; m64n184k64: wgmma_14; m64n192k16: wgmma_6; m64n192k32: wgmma_11; m64n192k64: wgmma_18; m64n200k16: wgmma_6; m64n200k32: wgmma_11; m64n200k64: wgmma_14; m64n208k16: wgmma_6; m64n208k32: wgmma_11; m64n208k64: wgmma_18; m64n216k16: wgmma_6; m64n216k32: wgmma_11; m64n216k64: wgmma_14; m64n224k16: wgmma_6; m64n224k32: wgmma_11; m64n224k64: wgmma_18; m64n232k16: wgmma_6; m64n232k32: wgmma_11; m64n232k64: wgmma_14; m64n240k16: wgmma_6; m64n240k32: wgmma_11; m64n240k64: wgmma_18; m64n248k16: wgmma_6; m64n248k32: wgmma_11; m64n248k64: wgmma_14; m64n24k16: wgmma_6; m64n24k32: wgmma_11; m64n24k64: wgmma_18; m64n256k16: wgmma_6; m64n256k32: wgmma_11; m64n256k64: wgmma_18; m64n32k16: wgmma_6; m64n32k32: wgmma_11; m64n32k64: wgmma_18; m64n40k16: wgmma_6; m64n40k32: wgmma_11; m64n40k64: wgmma_14; m64n48k16: wgmma_6; m64n48k32: wgmma_11; m64n48k64: wgmma_18; m64n56k16: wgmma_6; m64n56k32: wgmma_11; m64n56k64: wgmma_14; m64n64k16: wgmma_6; m64n64k32: wgmma_11; m64n64k64: wgmma_18; m64n72k16: wgmma_6; m64n72k32: wgmma_11; m64n72k64: wgmma_14; m64n80k16: wgmma_6; m64n80k32: wgmma_11; m64n80k64: wgmma_18; m64n88k16: wgmma_6; m64n88k32: wgmma_11; m64n88k64: wgmma_14; m64n8k16: wgmma_27; m64n8k32: wgmma_32; m64n8k64: wgmma_38; m64n96k16: wgmma_6; m64n96k32: wgmma_11; m64n96k64: wgmma_18
class wgmma_40:
    aligned: wgmma_39
class wgmma_41:
    sync: wgmma_40
class C346:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, scale_a: In, scale_b: In, trans_a: In, trans_b: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_42:
    f16: C346
class wgmma_43:
    f16: wgmma_42
class wgmma_44:
    bf16: C346
class wgmma_45:
    bf16: wgmma_44; f16: wgmma_42
class wgmma_46:
    f16: wgmma_43; f32: wgmma_45
class C347:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, scale_a: In, scale_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_47:
    e4m3: C347; e5m2: C347
class wgmma_48:
    e4m3: wgmma_47; e5m2: wgmma_47
class wgmma_49:
    f16: wgmma_48; f32: wgmma_48
class wgmma_50:
    tf32: C347
class wgmma_51:
    tf32: wgmma_50
class wgmma_52:
    f32: wgmma_51
class C348:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_53:
    b1: C348
class wgmma_54:
    b1: wgmma_53
class wgmma_55:
    s32: wgmma_54
class wgmma_56:
    popc: wgmma_55
class wgmma_57:
    and_: wgmma_56
class wgmma_58:
    s8: C348; u8: C348
class wgmma_59:
    s8: wgmma_58; u8: wgmma_58
class wgmma_60:
    s32: wgmma_59
class wgmma_61:
    f16: wgmma_48; f32: wgmma_48; s32: wgmma_59; satfinite: wgmma_60
class C349:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, scale_a: In, scale_b: In, trans_a: In, trans_b: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_62:
    f16: C349
class wgmma_63:
    f16: wgmma_62
class wgmma_64:
    f16: wgmma_63; f32: wgmma_45
class C350:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, scale_a: In, scale_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_65:
    e4m3: C350; e5m2: C350
class wgmma_66:
    e4m3: wgmma_65; e5m2: wgmma_65
class wgmma_67:
    f16: wgmma_66; f32: wgmma_48; s32: wgmma_59; satfinite: wgmma_60
class C351:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, scale_a: In, scale_b: In, trans_a: In, trans_b: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_68:
    f16: C351
class wgmma_69:
    f16: wgmma_68
class wgmma_70:
    bf16: C349
class wgmma_71:
    bf16: wgmma_70; f16: wgmma_62
class wgmma_72:
    f16: wgmma_69; f32: wgmma_71
class C352:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_73:
    b1: C352
class wgmma_74:
    b1: wgmma_73
class wgmma_75:
    s32: wgmma_74
class wgmma_76:
    popc: wgmma_75
class wgmma_77:
    and_: wgmma_76
class C353:
    def __call__(self, a_desc: In, b_desc: In, scale_d: In, scale_a: In, scale_b: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
class wgmma_78:
    e4m3: C353; e5m2: C353
class wgmma_79:
    e4m3: wgmma_78; e5m2: wgmma_78
class wgmma_80:
    s8: C352; u8: C352
class wgmma_81:
    s8: wgmma_80; u8: wgmma_80
class wgmma_82:
    s32: wgmma_81
class wgmma_83:
    f16: wgmma_79; f32: wgmma_66; s32: wgmma_81; satfinite: wgmma_82
class wgmma_84:
    tf32: C350
class wgmma_85:
    tf32: wgmma_84
class wgmma_86:
    f32: wgmma_85
class wgmma_87:
    m64n104k16: wgmma_46; m64n104k32: wgmma_49; m64n104k8: wgmma_52; m64n112k16: wgmma_46; m64n112k256: wgmma_57; m64n112k32: wgmma_61; m64n112k8: wgmma_52; m64n120k16: wgmma_46; m64n120k32: wgmma_49; m64n120k8: wgmma_52; m64n128k16: wgmma_46; m64n128k256: wgmma_57; m64n128k32: wgmma_61; m64n128k8: wgmma_52; m64n136k16: wgmma_46; m64n136k32: wgmma_49; m64n136k8: wgmma_52; m64n144k16: wgmma_46; m64n144k256: wgmma_57; m64n144k32: wgmma_61; m64n144k8: wgmma_52; m64n152k16: wgmma_46; m64n152k32: wgmma_49; m64n152k8: wgmma_52; m64n160k16: wgmma_46; m64n160k256: wgmma_57; m64n160k32: wgmma_61; m64n160k8: wgmma_52; m64n168k16: wgmma_46; m64n168k32: wgmma_49; m64n168k8: wgmma_52; m64n16k16: wgmma_64; m64n16k256: wgmma_57; m64n16k32: wgmma_67; m64n16k8: wgmma_52; m64n176k16: wgmma_46; m64n176k256: wgmma_57; m64n176k32: wgmma_61; m64n176k8: wgmma_52; m64n184k16: wgmma_46; m64n184k32: wgmma_49; m64n184k8: wgmma_52; m64n192k16: wgmma_46; m64n192k256: wgmma_57; m64n192k32: wgmma_61; m64n192k8: wgmma_52; m64n200k16: wgmma_46; m64n200k32: wgmma_49; m64n200k8: wgmma_52; m64n208k16: wgmma_46; m64n208k256: wgmma_57; m64n208k32: wgmma_61; m64n208k8: wgmma_52; m64n216k16: wgmma_46; m64n216k32: wgmma_49; m64n216k8: wgmma_52; m64n224k16: wgmma_46; m64n224k256: wgmma_57; m64n224k32: wgmma_61; m64n224k8: wgmma_52; m64n232k16: wgmma_46; m64n232k32: wgmma_49; m64n232k8: wgmma_52; m64n240k16: wgmma_46; m64n240k256: wgmma_57; m64n240k32: wgmma_61; m64n240k8: wgmma_52; m64n248k16: wgmma_46; m64n248k32: wgmma_49; m64n248k8: wgmma_52; m64n24k16: wgmma_46; m64n24k256: wgmma_57; m64n24k32: wgmma_61; m64n24k8: wgmma_52; m64n256k16: wgmma_46; m64n256k256: wgmma_57; m64n256k32: wgmma_61; m64n256k8: wgmma_52; m64n32k16: wgmma_46; m64n32k256: wgmma_57; m64n32k32: wgmma_61; m64n32k8: wgmma_52; m64n40k16: wgmma_46; m64n40k32: wgmma_49; m64n40k8: wgmma_52; m64n48k16: wgmma_46; m64n48k256: wgmma_57; m64n48k32: wgmma_61; m64n48k8: wgmma_52; m64n56k16: wgmma_46; m64n56k32: wgmma_49; m64n56k8: wgmma_52; m64n64k16: wgmma_46; m64n64k256: wgmma_57; m64n64k32: wgmma_61; m64n64k8: wgmma_52; m64n72k16: wgmma_46; m64n72k32: wgmma_49; m64n72k8: wgmma_52; m64n80k16: wgmma_46; m64n80k256: wgmma_57; m64n80k32: wgmma_61; m64n80k8: wgmma_52; m64n88k16: wgmma_46; m64n88k32: wgmma_49; m64n88k8: wgmma_52; m64n8k16: wgmma_72; m64n8k256: wgmma_77; m64n8k32: wgmma_83; m64n8k8: wgmma_86; m64n96k16: wgmma_46; m64n96k256: wgmma_57; m64n96k32: wgmma_61; m64n96k8: wgmma_52
class wgmma_88:
    aligned: wgmma_87
class wgmma_89:
    sp: wgmma_41; sync: wgmma_88
class C354:
    def __call__(self, n: In, /, *, guard: Guard = ...) -> None:
        "Waits until at most the `n` newest groups of products are under way; sums may be read of those that are done. Needs sm_90a."
class wgmma_90:
    aligned: C354
class wgmma_91:
    sync: wgmma_90
class wgmma_92:
    commit_group: wgmma_1; fence: wgmma_3; mma_async: wgmma_89; wait_group: wgmma_91
class C355:
    def __call__(self, address: In, stride: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = the fragment of a matrix in memory."
class C356:
    def __call__(self, address: In, stride: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = the fragment of a matrix in memory."
class C357:
    def __call__(self, address: In, stride: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = the fragment of a matrix in memory."
class wmma_0:
    bf16: C355; f16: C356; s8: C357; u8: C357
class wmma_1:
    bf16: C355; f16: C356; global_: wmma_0; s8: C357; shared: wmma_0; shared__cta: wmma_0; u8: C357
class wmma_2:
    tf32: C355
class wmma_3:
    global_: wmma_2; shared: wmma_2; shared__cta: wmma_2; tf32: C355
class wmma_4:
    bf16: C356; f16: C356; s8: C355; u8: C355
class wmma_5:
    bf16: C356; f16: C356; global_: wmma_4; s8: C355; shared: wmma_4; shared__cta: wmma_4; u8: C355
class C358:
    def __call__(self, address: In, stride: In = ..., /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = the fragment of a matrix in memory."
class wmma_6:
    bf16: C357; f16: C356; s8: C358; u8: C358
class wmma_7:
    bf16: C357; f16: C356; global_: wmma_6; s8: C358; shared: wmma_6; shared__cta: wmma_6; u8: C358
class wmma_8:
    f64: C358
class wmma_9:
    f64: C358; global_: wmma_8; shared: wmma_8; shared__cta: wmma_8
class wmma_10:
    m16n16k16: wmma_1; m16n16k8: wmma_3; m32n8k16: wmma_5; m8n32k16: wmma_7; m8n8k4: wmma_9
class wmma_11:
    b1: C358
class wmma_12:
    b1: C358; global_: wmma_11; shared: wmma_11; shared__cta: wmma_11
class wmma_13:
    s4: C358; u4: C358
class wmma_14:
    global_: wmma_13; s4: C358; shared: wmma_13; shared__cta: wmma_13; u4: C358
class wmma_15:
    m16n16k16: wmma_1; m16n16k8: wmma_3; m32n8k16: wmma_5; m8n32k16: wmma_7; m8n8k128: wmma_12; m8n8k32: wmma_14; m8n8k4: wmma_9
class wmma_16:
    col: wmma_10; row: wmma_15
class wmma_17:
    f16: C356
class wmma_18:
    f16: C356; global_: wmma_17; shared: wmma_17
class wmma_19:
    m16n16k16: wmma_18; m32n8k16: wmma_18; m8n32k16: wmma_18
class wmma_20:
    aligned: wmma_16; col: wmma_19; row: wmma_19
class wmma_21:
    sync: wmma_20
class wmma_22:
    m16n16k16: wmma_1; m16n16k8: wmma_3; m32n8k16: wmma_7; m8n32k16: wmma_5; m8n8k128: wmma_12; m8n8k32: wmma_14; m8n8k4: wmma_9
class wmma_23:
    m16n16k16: wmma_1; m16n16k8: wmma_3; m32n8k16: wmma_7; m8n32k16: wmma_5; m8n8k4: wmma_9
class wmma_24:
    col: wmma_22; row: wmma_23
class wmma_25:
    aligned: wmma_24; col: wmma_19; row: wmma_19
class wmma_26:
    sync: wmma_25
class wmma_27:
    f16: C355; f32: C356; s32: C356
class wmma_28:
    f16: C355; f32: C356; global_: wmma_27; s32: C356; shared: wmma_27; shared__cta: wmma_27
class wmma_29:
    f32: C356
class wmma_30:
    f32: C356; global_: wmma_29; shared: wmma_29; shared__cta: wmma_29
class wmma_31:
    s32: C357
class wmma_32:
    global_: wmma_31; s32: C357; shared: wmma_31; shared__cta: wmma_31
class wmma_33:
    f64: C357
class wmma_34:
    f64: C357; global_: wmma_33; shared: wmma_33; shared__cta: wmma_33
class wmma_35:
    m16n16k16: wmma_28; m16n16k8: wmma_30; m32n8k16: wmma_28; m8n32k16: wmma_28; m8n8k128: wmma_32; m8n8k32: wmma_32; m8n8k4: wmma_34
class wmma_36:
    col: wmma_35; row: wmma_35
class wmma_37:
    f16: C355; f32: C356
class wmma_38:
    f16: C355; f32: C356; global_: wmma_37; shared: wmma_37
class wmma_39:
    m16n16k16: wmma_38; m32n8k16: wmma_38; m8n32k16: wmma_38
class wmma_40:
    aligned: wmma_36; col: wmma_39; row: wmma_39
class wmma_41:
    sync: wmma_40
class wmma_42:
    a: wmma_21; b: wmma_26; c: wmma_41
class C359:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector2:
        "d = a * b + c, on fragments that wmma.load gave."
class wmma_43:
    s32: C359
class wmma_44:
    b1: wmma_43
class wmma_45:
    b1: wmma_44
class wmma_46:
    s32: wmma_45
class wmma_47:
    m8n8k128: wmma_46
class wmma_48:
    col: wmma_47
class wmma_49:
    row: wmma_48
class wmma_50:
    aligned: wmma_49
class wmma_51:
    sync: wmma_50
class wmma_52:
    popc: wmma_51
class C360:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector4:
        "d = a * b + c, on fragments that wmma.load gave."
class wmma_53:
    f16: C360; f32: C360
class C361:
    def __call__(self, a: In, b: In, c: In, /, *, out: Out = ..., guard: Guard = ...) -> Vector:
        "d = a * b + c, on fragments that wmma.load gave."
class wmma_54:
    f32: C361
class wmma_55:
    bf16: wmma_54
class wmma_56:
    bf16: wmma_55; f16: C361; f32: C361
class wmma_57(C361):
    satfinite: C361
class wmma_58:
    s32: wmma_57
class wmma_59:
    s8: wmma_58
class wmma_60:
    u8: wmma_58
class wmma_61:
    s8: wmma_59; u8: wmma_60
class wmma_62:
    f16: wmma_53; f32: wmma_56; s32: wmma_61
class wmma_63:
    tf32: wmma_54
class wmma_64:
    tf32: wmma_63
class wmma_65:
    f32: wmma_64
class wmma_66(C359):
    rm: C359; rn: C359; rp: C359; rz: C359
class wmma_67:
    f64: wmma_66
class wmma_68:
    f64: wmma_67
class wmma_69:
    f64: wmma_68
class wmma_70:
    f64: wmma_69
class wmma_71:
    m16n16k16: wmma_62; m16n16k8: wmma_65; m32n8k16: wmma_62; m8n32k16: wmma_62; m8n8k4: wmma_70
class wmma_72:
    col: wmma_71; row: wmma_71
class wmma_73(C359):
    satfinite: C359
class wmma_74:
    s32: wmma_73
class wmma_75:
    s4: wmma_74
class wmma_76:
    u4: wmma_74
class wmma_77:
    s4: wmma_75; u4: wmma_76
class wmma_78:
    s32: wmma_77
class wmma_79:
    m16n16k16: wmma_62; m16n16k8: wmma_65; m32n8k16: wmma_62; m8n32k16: wmma_62; m8n8k32: wmma_78; m8n8k4: wmma_70
class wmma_80:
    col: wmma_79; row: wmma_71
class wmma_81:
    col: wmma_72; row: wmma_80
class wmma_82:
    f16: C361; f32: C361
class wmma_83:
    f16: wmma_53; f32: wmma_82
class wmma_84:
    m16n16k16: wmma_83; m32n8k16: wmma_83; m8n32k16: wmma_83
class wmma_85:
    col: wmma_84; row: wmma_84
class wmma_86:
    aligned: wmma_81; col: wmma_85; row: wmma_85
class wmma_87:
    and_: wmma_52; sync: wmma_86; xor: wmma_52
class C362:
    def __call__(self, address: In, a: In, stride: In = ..., /, *, guard: Guard = ...) -> None:
        "Memory = the matrix that a fragment of sums holds."
class wmma_88:
    f16: C362; f32: C362; s32: C362
class wmma_89:
    f16: C362; f32: C362; global_: wmma_88; s32: C362; shared: wmma_88; shared__cta: wmma_88
class wmma_90:
    f32: C362
class wmma_91:
    f32: C362; global_: wmma_90; shared: wmma_90; shared__cta: wmma_90
class wmma_92:
    s32: C362
class wmma_93:
    global_: wmma_92; s32: C362; shared: wmma_92; shared__cta: wmma_92
class wmma_94:
    f64: C362
class wmma_95:
    f64: C362; global_: wmma_94; shared: wmma_94; shared__cta: wmma_94
class wmma_96:
    m16n16k16: wmma_89; m16n16k8: wmma_91; m32n8k16: wmma_89; m8n32k16: wmma_89; m8n8k128: wmma_93; m8n8k32: wmma_93; m8n8k4: wmma_95
class wmma_97:
    col: wmma_96; row: wmma_96
class wmma_98:
    f16: C362; f32: C362
class wmma_99:
    f16: C362; f32: C362; global_: wmma_98; shared: wmma_98
class wmma_100:
    m16n16k16: wmma_99; m32n8k16: wmma_99; m8n32k16: wmma_99
class wmma_101:
    aligned: wmma_97; col: wmma_100; row: wmma_100
class wmma_102:
    sync: wmma_101
class wmma_103:
    d: wmma_102
class wmma_104:
    load: wmma_42; mma: wmma_87; store: wmma_103
class C363:
    def __call__(self, a: In, b: In, /, *, out: Out = ..., guard: Guard = ...) -> Scalar:
        "d = a ^ b."
class xor_0:
    b16: C363; b32: C363; b64: C363; pred: C363

class Ptx:
    def __call__(self, mnemonic: str, /, *sources: In, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        """The instruction of a mnemonic that is spelled as in PTX: `pd.ptx("add.rn.f32", a, b)`."""
    abs: abs_1
    "d = |a|."
    activemask: activemask_0
    "d = the lanes of the warp that run this instruction together."
    add: add_11
    "d = a + b, with addc also + CC.CF; .cc writes the carry to CC.CF."
    addc: addc_1
    "d = a + b, with addc also + CC.CF; .cc writes the carry to CC.CF."
    and_: and_0
    "d = a & b."
    applypriority: applypriority_1
    "Gives the cache line of an address the normal eviction priority."
    atom: atom_26
    "d = the value at an address, which becomes: op(that value, b); in one step that no other thread divides."
    bar: bar_5
    "Waits until all threads of the CTA, or `b` threads, have come to barrier `a`."
    barrier: barrier_13
    "Waits until all threads of the CTA, or `b` threads, have come to barrier `a`."
    bfe: bfe_0
    "d = the field of c bits of a from bit b on, sign- or zero-extended."
    bfi: bfi_0
    "d = b with the field of `width` bits from bit `position` on replaced by the low bits of a."
    bfind: bfind_1
    "d = the bit of the first bit of a that is not a sign bit, or (.shiftamt) the shift that moves it to the front."
    bmsk: bmsk_1
    "d = a mask of b ones from bit a on; a and b are taken modulo 32 (.wrap) or as 32 at most (.clamp)."
    bra: bra_0
    "Goes on at a label."
    brev: brev_0
    "d = the bits of a in the opposite order."
    brkpt: C31
    "Stops in a debugger; without one, has no effect."
    brx: brx_1
    "Goes on at the label with number `index` in a list declared by .branchtargets."
    call: call_0
    "Calls a function, by name or through a pointer with a prototype or list of targets."
    clusterlaunchcontrol: clusterlaunchcontrol_12
    "Asks for the work of a cluster that has not begun; the answer comes to `dst`, 16 bytes, and completes them. Needs sm_100."
    clz: clz_0
    "d = the number of zero bits in front of the first one of a."
    cnot: cnot_0
    "d = 1 where a is 0, else 0."
    copysign: copysign_0
    "d = b with the sign of a."
    cos: cos_2
    "d = the cosine of a, in radians."
    cp: cp_111
    "Copies `size` bytes to shared memory, with .multicast::cluster of all blocks in `cta_mask`; completes them."
    createpolicy: createpolicy_9
    "d = a cache policy, an opaque value for .L2::cache_hint."
    cvt: cvt_60
    "d = a in another integer type, cut off or extended; with .sat clamped to its range."
    cvta: cvta_2
    "d = the generic address of an address in a space; with .to the other way round."
    discard: discard_1
    "Drops a cache line without writing it back: its 128 bytes have no defined value until they are written."
    div: div_4
    "d = a / b."
    dp2a: dp2a_2
    "d = c + the dot product of the two halves of a and the two low or high bytes of b; d, c: s32 where a or b is."
    dp4a: dp4a_1
    "d = c + the dot product of the four bytes of a and of b; d and c are s32 where a or b is."
    elect: elect_0
    "p = true in one of the lanes, the lowest; d = its number. Needs sm_90."
    ex2: ex2_2
    "d = 2 to the power of a."
    exit: C103
    "Ends the threads."
    fence: fence_14
    "Orders this thread's memory accesses for the threads of a scope."
    fma: fma_11
    "d = a * b + c, rounded once."
    fns: fns_0
    "d = the position of the n-th set bit of mask, n = |offset|, from base up (offset < 0: down), else 0xffffffff."
    getctarank: getctarank_1
    "d = the rank in the cluster of the block in whose shared memory the address `a` lies. Needs sm_90."
    griddepcontrol: griddepcontrol_0
    "Waits until the grids before this one have ended, and sees what they wrote. Needs sm_90."
    isspacep: isspacep_0
    "p = whether a generic address lies in a space."
    ld: ld_33
    "d = the value at an address."
    ldmatrix: ldmatrix_29
    "d = matrices of bytes, or of 4 or 6 bits widened to bytes."
    ldu: ldu_3
    "d = the value at an address."
    lg2: lg2_2
    "d = the logarithm of a to base 2."
    lop3: lop3_1
    "d = the logic function of a, b, c whose truth table is `lut`; p = d != 0, joined with q."
    mad: mad_8
    "d = the low or the high half of a * b, plus c, with madc also + CC.CF; .cc writes the carry to CC.CF."
    mad24: mad24_3
    "d = the low or the high 32 bits of the 48-bit product of the low 24 bits of a and b, plus c."
    madc: madc_2
    "d = the low or the high half of a * b, plus c, with madc also + CC.CF; .cc writes the carry to CC.CF."
    mapa: mapa_1
    "d = the address of what lies at `a` in shared memory, in that of the block with a rank in the cluster. Needs sm_90."
    match: match_4
    "d = the lanes whose `a` is the same as this lane's, a bit for each."
    max: max_9
    "d = the greatest of a, b (and c); with .xorsign.abs, of their sizes, negative where their signs differ."
    mbarrier: mbarrier_57
    "Makes an mbarrier object, each of whose phases waits for `count` arrivals."
    membar: membar_1
    "The older spelling of fence."
    min: min_9
    "d = the least of a, b (and c); with .xorsign.abs, of their sizes, negative where their signs differ."
    mma: mma_184
    "d = a * b + c, on matrices spread over the registers of a warp."
    mov: mov_2
    "d = a: a register, a constant, a special register, or the address of a variable or function."
    movmatrix: movmatrix_4
    "d = an 8x8 matrix of 16-bit elements transposed, in the registers of a warp."
    mul: mul_8
    "d = a * b."
    mul24: mul24_1
    "d = the low or the high 32 bits of the 48-bit product of the low 24 bits of a and b."
    multimem: multimem_35
    "d = the values at an address on all GPUs, combined by an operation. Needs sm_90."
    nanosleep: nanosleep_0
    "Suspends the threads for about `t` nanoseconds."
    neg: neg_1
    "d = -a."
    not_: not_0
    "d = ~a."
    or_: or_0
    "d = a | b."
    pmevent: pmevent_0
    "Triggers performance monitor events; has no effect on the program."
    popc: popc_0
    "d = the number of one bits in a."
    prefetch: prefetch_3
    "Brings the cache line of an address, or a tensor map, into a cache."
    prefetchu: prefetchu_0
    "Brings the cache line of an address, or a tensor map, into a cache."
    prmt: prmt_1
    "d = four bytes picked out of the eight of {b, a}."
    rcp: rcp_4
    "d = 1 / a."
    red: red_38
    "The value at an address becomes op(that value, b), in one step that no other thread divides."
    redux: redux_3
    "d = the sum, least, greatest, and, or, xor of `a` over the lanes."
    rem: rem_0
    "d = a - b * (a / b), with the sign of a; division by zero gives all ones."
    ret: ret_0
    "Returns from a function; ends the threads of a kernel."
    rsqrt: rsqrt_2
    "d = 1 / the square root of a, with a relative error of 2^-22.9."
    sad: sad_0
    "d = |a - b| + c."
    selp: selp_0
    "d = a where the predicate c is true, else b."
    set: set_54
    "d = 1.0, or all ones, where a compares so to b (joined with c if so said); else 0."
    setmaxnreg: setmaxnreg_3
    "Gives registers of the warps back (dec), or waits for more (inc), so that each thread has `count`. Needs sm_90a or sm_100f or sm_110f or sm_120f."
    setp: setp_10
    "p = whether a compares so to b, q = whether not; with a Boolean operation, each joined with c."
    shf: shf_2
    "d = the high half of {b, a} << c, or the low half of {b, a} >> c; c modulo 32 (.wrap) or 32 at most (.clamp)."
    shfl: shfl_3
    "d = a of another lane, p = whether that lane is in reach; if not, d = a of the lane itself."
    shl: shl_0
    "d = a << b; 0 for a shift of the full width or more."
    shr: shr_0
    "d = a >> b, filled with the sign for signed types and zeros for others, also past the full width."
    sin: sin_2
    "d = the sine of a, in radians."
    slct: slct_3
    "d = a where c >= 0, else b."
    sqrt: sqrt_4
    "d = the square root of a."
    st: st_38
    "The value b goes to an address."
    stmatrix: stmatrix_10
    "Matrices of bytes go to rows in memory. Needs sm_90."
    sub: sub_11
    "d = a - b, with subc also - the borrow; .cc writes the borrow, inverted, to CC.CF."
    subc: subc_1
    "d = a - b, with subc also - the borrow; .cc writes the borrow, inverted, to CC.CF."
    szext: szext_1
    "d = the low b bits of a, sign- or zero-extended; b is taken modulo 32 (.wrap) or as 32 at most (.clamp)."
    tanh: tanh_1
    "d = the hyperbolic tangent of a."
    tcgen05: tcgen05_122
    "Takes columns of tensor memory, waiting until there are so many; their address goes to shared memory. Needs sm_100f or sm_110f."
    tensormap: tensormap_21
    "Changes a field of a tensor map in memory. Needs sm_90a or sm_100f or sm_110f or sm_120f."
    testp: testp_1
    "p = whether a is finite, infinite, a number, no number, normal (or zero), or subnormal."
    trap: C313
    "Aborts the kernel with an error."
    vabsdiff: vabsdiff_4
    "d = |a - b|, of words, halves or bytes; then + c, or its minimum or maximum with c."
    vabsdiff2: vabsdiff2_3
    "d = |a - b|, of words, halves or bytes; then + c, or its minimum or maximum with c."
    vabsdiff4: vabsdiff4_3
    "d = |a - b|, of words, halves or bytes; then + c, or its minimum or maximum with c."
    vadd: vadd_4
    "d = a + b, of words, halves or bytes; then + c, or its minimum or maximum with c."
    vadd2: vadd2_3
    "d = a + b, of words, halves or bytes; then + c, or its minimum or maximum with c."
    vadd4: vadd4_3
    "d = a + b, of words, halves or bytes; then + c, or its minimum or maximum with c."
    vavrg2: vavrg2_3
    "d = (a + b) / 2 of halves or bytes, rounded to nearest, up if in the middle; .add adds their sum to c."
    vavrg4: vavrg4_3
    "d = (a + b) / 2 of halves or bytes, rounded to nearest, up if in the middle; .add adds their sum to c."
    vmad: vmad_5
    "d = a * b + c, with .po one more, shifted right by 7 or 15; .sat clamps to 32 bits, signed if a or b is."
    vmax: vmax_4
    "d = the greater of a and b, words, halves or bytes; then + c, or its minimum or maximum with c."
    vmax2: vmax2_3
    "d = the greater of a and b, words, halves or bytes; then + c, or its minimum or maximum with c."
    vmax4: vmax4_3
    "d = the greater of a and b, words, halves or bytes; then + c, or its minimum or maximum with c."
    vmin: vmin_4
    "d = the lesser of a and b, words, halves or bytes; then + c, or its minimum or maximum with c."
    vmin2: vmin2_3
    "d = the lesser of a and b, words, halves or bytes; then + c, or its minimum or maximum with c."
    vmin4: vmin4_3
    "d = the lesser of a and b, words, halves or bytes; then + c, or its minimum or maximum with c."
    vote: vote_5
    "d = whether `a` holds in all lanes, in any, or in all or none (uni)."
    vset: vset_3
    "d = 1 where a compares so to b, words, halves or bytes, else 0; then + c, or its minimum or maximum with c."
    vset2: vset2_3
    "d = 1 where a compares so to b, words, halves or bytes, else 0; then + c, or its minimum or maximum with c."
    vset4: vset4_3
    "d = 1 where a compares so to b, words, halves or bytes, else 0; then + c, or its minimum or maximum with c."
    vshl: vshl_5
    "d = a << b; then + c, or its minimum or maximum with c."
    vshr: vshr_5
    "d = a >> b, filled with the sign of a signed a; then + c, or its minimum or maximum with c."
    vsub: vsub_4
    "d = a - b, of words, halves or bytes; then + c, or its minimum or maximum with c."
    vsub2: vsub2_3
    "d = a - b, of words, halves or bytes; then + c, or its minimum or maximum with c."
    vsub4: vsub4_3
    "d = a - b, of words, halves or bytes; then + c, or its minimum or maximum with c."
    wgmma: wgmma_92
    "d = a * b + d, or a * b where scale_d is false; in d once the thread has waited for its group. Needs sm_90a."
    wmma: wmma_104
    "d = the fragment of a matrix in memory."
    xor: xor_0
    "d = a ^ b."
