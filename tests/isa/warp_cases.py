"""What a warp of an H200 computed: memory, atomic, warp and matrix instructions on 32 lanes, bit for bit.

Each `Case` is a kernel of one warp. Lane n loads element n of each input into %i0, %i1, …, runs the body, and stores
%o0, %o1, …. `vectors/warp_h200.json.gz` has the outputs (driver 580, sm_90) as hex of the little-endian arrays.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).parent / "vectors" / "warp_h200.json.gz"
BYTES = {"b16": 2, "b32": 4, "f32": 4, "b64": 8, "f64": 8, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16x2": 4}
FULL = "0xffffffff"


@dataclass(frozen=True)
class Case:
    """`inputs` are (register type, what numbers); `outputs` register types."""

    name: str
    body: str
    inputs: tuple[tuple[str, Any], ...]
    outputs: tuple[str, ...]

    def arrays(self) -> list[np.ndarray]:
        """The inputs, 32 elements each, as unsigned integers."""
        return [
            numbers(kind, f"{self.name}/{n}").astype(f"u{BYTES[type]}") for n, (type, kind) in enumerate(self.inputs)
        ]

    def memory(self) -> np.ndarray:
        """The inputs one after the other, as bytes."""
        return np.concatenate([np.zeros(0, np.uint8), *(a.view(np.uint8) for a in self.arrays())])

    @property
    def output_bytes(self) -> int:
        return sum(32 * BYTES[type] for type in self.outputs)

    def ptx(self) -> str:
        """A module with the kernel `k(inputs, outputs, scratch)`."""
        declared = [f".reg .{t} %{io}{n};" for io, ts in (("i", [t for t, _ in self.inputs]), ("o", self.outputs))
                    for n, t in enumerate(ts)]  # fmt: skip
        loads, stores = _transfers("i", [t for t, _ in self.inputs]), _transfers("o", self.outputs)
        return "\n".join([
            ".version 8.7", ".target sm_90", ".address_size 64",
            ".visible .entry k(.param .u64 inputs, .param .u64 outputs, .param .u64 scratch) {",
            ".shared .align 128 .b8 buffer[1024];", *declared,
            ".reg .b32 %lane, %sm, %t<8>; .reg .b64 %in, %out, %mem, %a, %g; .reg .pred %p<4>;",
            "mov.u32 %lane, %laneid; mov.u32 %sm, buffer; shl.b32 %t0, %lane, 4; add.u32 %sm, %sm, %t0;",
            "ld.param.u64 %in, [inputs]; ld.param.u64 %out, [outputs]; ld.param.u64 %mem, [scratch];",
            "mul.wide.u32 %a, %lane, 32; add.u64 %mem, %mem, %a;",
            *loads, self.body, *stores, "ret;", "}", "",
        ])  # fmt: skip


def _transfers(io: str, types: list[str] | tuple[str, ...]) -> list[str]:
    lines, offset = [], 0
    for n, type in enumerate(types):
        bits = f"b{8 * BYTES[type]}"
        lines.append(f"mul.wide.u32 %a, %lane, {BYTES[type]}; add.u64 %a, %a, {'%in' if io == 'i' else '%out'};")
        lines.append(
            f"ld.global.{bits} %i{n}, [%a+{offset}];" if io == "i" else f"st.global.{bits} [%a+{offset}], %o{n};"
        )
        offset += 32 * BYTES[type]
    return lines


def random_bits(seed: str) -> np.ndarray:
    """32 random 64-bit numbers that never change (SplitMix64)."""
    x = np.uint64(int.from_bytes(seed.encode(), "little") % (1 << 61)) + np.arange(1, 33, dtype=np.uint64) * np.uint64(
        0x9E3779B97F4A7C15
    )
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


SPECIAL = {
    "f32": (0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x00800001, 0x80800000, 0x3F800000, 0xBF800000,
            0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0x33800000, 0x3F800001),
    "f16": (0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0x1400),
    "bf16": (0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0x3B80),
}  # fmt: skip


def numbers(kind: Any, seed: str) -> np.ndarray:
    """32 numbers of a kind, as uint64 bits: a tuple is repeated; small whole numbers make sums exact."""
    bits = random_bits(seed)
    if isinstance(kind, tuple):
        return np.resize(np.array(kind, np.uint64), 32)
    if kind.startswith("special "):
        width = 32 if kind.endswith("f32") else 16
        table = np.array(SPECIAL[kind.split()[1]], np.uint64)
        low = table[bits % np.uint64(len(table))]
        return low if width == 32 else low | table[(bits >> np.uint64(20)) % np.uint64(len(table))] << np.uint64(16)
    if kind == "bits":
        return bits
    small = (bits[:, None] >> np.arange(0, 64, 8, dtype=np.uint64) & np.uint64(7)).astype(np.int64) - 3  # -3 … 4
    encoders = {
        "f16": lambda x: x.astype(np.float16).view(np.uint16),
        "bf16": lambda x: (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16),
        "f32": lambda x: x.astype(np.float32).view(np.uint32),
        "f64": lambda x: x.astype(np.float64).view(np.uint64),
        "e5m2": lambda x: (x.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8),
        "e4m3": lambda x: np.array([0xC4, 0xC0, 0xB8, 0x00, 0x38, 0x40, 0x44, 0x48], np.uint8)[x + 3],
    }
    if kind in encoders:
        return np.ascontiguousarray(encoders[kind](small)).view(np.uint64)[:, 0]
    if kind == "f64 any":  # numbers of 2^-8 … 2^8, all mantissas
        exponent = np.uint64(1015) + (bits >> np.uint64(56)) % np.uint64(16)
        return bits & np.uint64((1 << 63) | ((1 << 52) - 1)) | exponent << np.uint64(52)
    assert kind == "f32 any"
    exponent = np.uint64(119) + (bits >> np.uint64(56)) % np.uint64(16)
    return bits & np.uint64((1 << 31) | ((1 << 23) - 1)) | exponent << np.uint64(23)


def _list(io: str, start: int, count: int) -> str:
    return "{" + ", ".join(f"%{io}{n}" for n in range(start, start + count)) + "}"


def mma(
    text: str, a: int, b: int, d: int, kinds: tuple[str, str, str], register: str = "b32", sums: str = "f32"
) -> Case:
    """A product with a, b and d registers of A, B and the sums, whose numbers are of these kinds."""
    inputs = tuple((register, kinds[0]) for _ in range(a)) + tuple((register, kinds[1]) for _ in range(b))
    body = f"{text} {_list('o', 0, d)}, {_list('i', 0, a)}, {_list('i', a, b)}, {_list('i', a + b, d)};"
    return Case(f"{text} on {kinds[0]}", body, inputs + ((sums, kinds[2]),) * d, (sums,) * d)


def _mma_cases() -> list[Case]:
    front = "mma.sync.aligned"
    cases = []
    for name, a, b in (("m16n8k8", 2, 1), ("m16n8k16", 4, 2)):
        cases += [
            mma(f"{front}.{name}.row.col.f32.f16.f16.f32", a, b, 4, ("f16", "f16", "f32")),
            mma(f"{front}.{name}.row.col.f16.f16.f16.f16", a, b, 2, ("f16", "f16", "f16"), sums="b32"),
            mma(f"{front}.{name}.row.col.f32.bf16.bf16.f32", a, b, 4, ("bf16", "bf16", "f32")),
            mma(f"{front}.{name}.row.col.f32.f16.f16.f32", a, b, 4, ("special f16", "f16", "special f32")),
            mma(f"{front}.{name}.row.col.f16.f16.f16.f16", a, b, 2, ("special f16", "f16", "special f16"), sums="b32"),
        ]
    for name, a, b in (("m16n8k4", 2, 1), ("m16n8k8", 4, 2)):
        cases.append(mma(f"{front}.{name}.row.col.f32.tf32.tf32.f32", a, b, 4, ("f32", "f32", "f32")))
    for name, a, b, d in (("m8n8k4", 1, 1, 2), ("m16n8k4", 2, 1, 4), ("m16n8k8", 4, 2, 4), ("m16n8k16", 8, 4, 4)):
        for kinds in (("f64",) * 3, ("f64 any",) * 3):
            cases.append(mma(f"{front}.{name}.row.col.f64.f64.f64.f64", a, b, d, kinds, "f64", "f64"))
    for rnd in ("rz", "rm", "rp"):
        cases.append(mma(f"{front}.m8n8k4.row.col.{rnd}.f64.f64.f64.f64", 1, 1, 2, ("f64 any",) * 3, "f64", "f64"))
    for (name, a, b, d), x, y, clamp in product(
        (("m8n8k16", 1, 1, 2), ("m16n8k16", 2, 1, 4), ("m16n8k32", 4, 2, 4)),
        ("s8", "u8"),
        ("s8", "u8"),
        ("", ".satfinite"),
    ):
        text = f"{front}.{name}.row.col{clamp}.s32.{x}.{y}.s32"
        cases.append(mma(text, a, b, d, ("bits", "bits", (5, 0x7FFFFF00, 0x80000010, 0xFFFFFFFF)), sums="s32"))
    for (name, a, b, d), x in product(
        (("m8n8k32", 1, 1, 2), ("m16n8k32", 2, 1, 4), ("m16n8k64", 4, 2, 4)), ("s4", "u4")
    ):
        cases.append(mma(f"{front}.{name}.row.col.s32.{x}.s4.s32", a, b, d, ("bits",) * 3, sums="s32"))
    for (name, a, b), x, y, (t, d) in product(
        (("m16n8k16", 2, 1), ("m16n8k32", 4, 2)), ("e4m3", "e5m2"), ("e4m3", "e5m2"), (("f32", 4), ("f16", 2))
    ):
        sums = "f32" if t == "f32" else "b32"
        cases.append(mma(f"{front}.{name}.row.col.{t}.{x}.{y}.{t}", a, b, d, (x, y, t), sums=sums))
    return cases


def _memory_cases() -> list[Case]:
    """ldmatrix, stmatrix and movmatrix over 512 bytes whose rows are visited out of order."""
    fill = "st.shared.v4.b32 [%sm], {%i0, %i1, %i2, %i3}; bar.warp.sync -1;"
    where = "mov.u32 %t1, buffer; mad.lo.u32 %t1, %i4, 16, %t1;"
    rows = ("b32", tuple((5 * n + 3) % 32 for n in range(32)))
    words = (("b32", "bits"),) * 4
    cases = []
    for count, trans in product((1, 2, 4), ("", ".trans")):
        front = f"sync.aligned.m8n8.x{count}{trans}.shared.b16"
        load = f"ldmatrix.{front} {_list('o', 0, count)}, [%t1];"
        cases.append(Case(f"ldmatrix x{count}{trans}", f"{fill} {where} {load}", (*words, rows), ("b32",) * count))
        store = f"stmatrix.{front} [%t1], {_list('i', 5, count)}; bar.warp.sync -1;"
        back = "ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%sm];"
        inputs = (*words, rows, *words[:count])
        cases.append(Case(f"stmatrix x{count}{trans}", f"{fill} {where} {store} {back}", inputs, ("b32",) * 4))
    body = "movmatrix.sync.aligned.m8n8.trans.b16 %o0, %i0;"
    return [*cases, Case("movmatrix", body, (("b32", "bits"),), ("b32",))]


def _warp_cases() -> list[Case]:
    some = "setp.ne.u32 %p0, %i0, 0;"
    predicate = "selp.u32 %o{0}, 1, 0, %p{1};"
    flags = ("b32", (1, 0, 0, 1, 1, 1, 0))
    cases = []
    for mode, clamp in product(("up", "down", "bfly", "idx"), (0x001F, 0x1C03, 0x0000, 0x181F)):
        body = f"shfl.sync.{mode}.b32 %o0|%p1, %i0, %i1, {clamp}, {FULL}; " + predicate.format(1, 1)
        cases.append(Case(f"shfl {mode} {clamp:#x}", body, (("b32", "bits"), ("b32", "bits")), ("b32", "b32")))
    for mode, values in product(("all", "any", "uni"), ((1,), (0,), (1, 0))):
        body = f"{some} vote.sync.{mode}.pred %p1, %p0, {FULL}; {predicate.format(0, 1)}"
        cases.append(Case(f"vote {mode} {values}", body, (("b32", values),), ("b32",)))
    cases.append(Case("ballot", f"{some} vote.sync.ballot.b32 %o0, !%p0, {FULL};", (flags,), ("b32",)))
    for bits in (32, 64):
        same = (f"b{bits}", (7, 9, 7, 1 << 31, 9, 5))
        cases.append(Case(f"match any {bits}", f"match.any.sync.b{bits} %o0, %i0, {FULL};", (same,), ("b32",)))
        for values in ((7,), (7, 8)):
            body = f"match.all.sync.b{bits} %o0|%p1, %i0, {FULL}; {predicate.format(1, 1)}"
            cases.append(Case(f"match all {bits} {values}", body, ((f"b{bits}", values),), ("b32", "b32")))
    for op, type in (*product(("add", "min", "max"), ("u32", "s32")), *product(("and", "or", "xor"), ("b32",))):
        cases.append(
            Case(f"redux {op} {type}", f"redux.sync.{op}.{type} %o0, %i0, {FULL};", (("b32", "bits"),), ("b32",))
        )
    cases.append(Case("elect", f"elect.sync %o0|%p1, {FULL}; {predicate.format(1, 1)}", (), ("b32", "b32")))
    return [*cases, *(_masked(c) for c in cases if not c.name.startswith("shfl"))]


def _masked(case: Case) -> Case:
    """The same where only lanes 1, 4, 5, 6, 9 … take part; the others keep 0."""
    body = "shr.u32 %t2, 0x5a3cf272, %lane; and.b32 %t2, %t2, 1; setp.eq.u32 %p3, %t2, 0; @%p3 bra skip;"
    zero = " ".join(f"mov.b32 %o{n}, 0;" for n in range(len(case.outputs)))
    inside = case.body.replace(FULL, "0x5a3cf272")
    return Case(f"{case.name}, some lanes", f"{zero} {body} {inside} skip:", case.inputs, case.outputs)


def _atomic_cases() -> list[Case]:
    cases = []
    integers = [*product(("and", "or", "xor", "exch"), ("b32", "b64")), *product(("inc", "dec"), ("u32",))]
    integers += [*product(("min", "max"), ("u32", "s32", "u64", "s64")), *product(("add",), ("u32", "s32", "u64"))]
    for op, type in integers:
        register = f"b{type[1:]}"
        values = ("bits", "bits") if op not in ("inc", "dec") else ((0, 5, 5, 9, 7), (3, 5, 4, 2, 0, 8))
        cases.append(_atomic(f"{op}.{type}", register, values))
    kinds = {"f32": "special f32", "f16x2": "special f16", "bf16x2": "special bf16"}
    for space in ("global", "shared", ""):
        cases.append(_atomic("add.f32", "f32", (kinds["f32"],) * 2, space))
    cases.append(_atomic("add.f64", "f64", ("f64 any",) * 2))
    for type in ("f16x2", "bf16x2"):
        cases.append(_atomic(f"add.noftz.{type}", "b32", (kinds[type],) * 2))
        cases += [_vector_atomic(f"{op}.noftz", type, "b32", kinds[type]) for op in ("add", "min", "max")]
    cases.append(_vector_atomic("add", "f32", "f32", kinds["f32"]))
    for bits in (32, 64):
        cases.append(_atomic(f"cas.b{bits}", f"b{bits}", ((7, 8), (7, 8, 7), "bits")))
    return cases


def _atomic(operation: str, register: str, kinds: tuple[Any, ...], space: str = "global") -> Case:
    """Old value in memory, the operation, old and new value out; generic addresses go to shared memory."""
    bits = f"b{8 * BYTES[register]}"
    at = {"global": "%mem", "shared": "%sm", "": "%g"}[space]
    front = "cvt.u64.u32 %g, %sm; cvta.shared.u64 %g, %g;" if not space else ""
    dot = f".{space}" if space else ""
    operands = ", ".join(f"%i{n}" for n in range(1, len(kinds)))
    body = f"{front} st{dot}.{bits} [{at}], %i0; atom{dot}.{operation} %o0, [{at}], {operands};"
    body += f" ld{dot}.{bits} %o1, [{at}];"
    name = f"atom {space or 'generic'} {operation}"
    return Case(name, body, tuple((register, kind) for kind in kinds), (register, register))


def _vector_atomic(operation: str, type: str, register: str, kind: str) -> Case:
    body = (
        f"st.global.v2.b32 [%mem], {{%i0, %i1}}; atom.global.{operation}.v2.{type} {{%o0, %o1}}, [%mem], {{%i2, %i3}};"
    )
    back = " ld.global.v2.b32 {%o2, %o3}, [%mem];"
    return Case(f"atom {operation}.v2.{type}", body + back, ((register, kind),) * 4, (register,) * 4)


CASES = [*_mma_cases(), *_memory_cases(), *_warp_cases(), *_atomic_cases()]


def recorded() -> dict[str, bytes]:
    """Outputs by the name of the case."""
    return {name: bytes.fromhex(text) for name, text in json.loads(gzip.decompress(RECORDED.read_bytes())).items()}
