"""A random program: a tree of statements, and its PTX.

Two blocks of 64 threads run `k(inputs, scratch, sums, outputs)`. Registers begin with a row of the inputs, or with a
constant once a program has been reduced, and end in a row of the outputs. Each thread owns 32 bytes of global, shared
and local memory, its slots, which begin and end in the scratch array. Text, declarations, loads and stores follow from the names that the statements mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from .values import words

BLOCKS, THREADS, SLOT_BYTES, SUMS = 2, 64, 32, 8
TOTAL = BLOCKS * THREADS
ARCH, VERSION = "sm_90", (8, 7)

POOL: dict[int, tuple[str, ...]] = {
    1: tuple(f"%p{n}" for n in range(4)),
    16: tuple(f"%h{n}" for n in range(5)),
    32: tuple(f"%r{n}" for n in range(12)),
    64: tuple(f"%d{n}" for n in range(6)),
    128: ("%q0", "%q1"),
}
"""The registers that random instructions use, by width."""
NAMES = [name for names in POOL.values() for name in names]
ROW = {name: 2 * n for n, name in enumerate(NAMES)}
"""The first row of a register in inputs and outputs; registers of 128 bits have two."""
ROWS = 2 * len(NAMES)
OUTPUT_ROWS = ROWS + 1  # the last: sums in shared memory

_TYPES = {"p": "pred", "h": "b16", "r": "b32", "d": "b64", "q": "b128", "c": "b32", "m": "b32", "b": "pred"}
_NAMED = {
    "%z32": "b32", "%y32": "b32", "%thread": "b32", "%id": "b32", "%sp": "b32", "%tp": "b32", "%z16": "b16",
    "%zp": "pred", **dict.fromkeys(["%z64", "%y64", "%in", "%ro", "%out", "%gp", "%gg", "%gs", "%lp", "%gl", "%cp", "%ga", "%policy"], "b64"),
}  # fmt: skip

_STEP = 8 * TOTAL


def _copies(load: str, source: str | int, store: str, target: str | int) -> str:
    """Return PTX that copies a slot; a number is the part of the scratch array that a space is loaded from and saved to."""

    def at(place: str | int, offset: int) -> str:
        return f"%gp+{place * TOTAL * SLOT_BYTES + offset}" if isinstance(place, int) else f"{place}+{offset}"

    return " ".join(
        f"{load}.v2.b64 {{%z64, %y64}}, [{at(source, n)}]; {store}.v2.b64 [{at(target, n)}], {{%z64, %y64}};"
        for n in range(0, SLOT_BYTES, 16)
    )


SETUP = {
    "%thread": "mov.u32 %thread, %tid.x;",
    "%id": f"mov.u32 %id, %ctaid.x; mad.lo.u32 %id, %id, {THREADS}, %thread;",
    "%in": "ld.param.u64 %in, [inputs]; mad.wide.u32 %in, %id, 8, %in;",
    "%out": "ld.param.u64 %out, [outputs]; mad.wide.u32 %out, %id, 8, %out;",
    "%ro": f"ld.param.u64 %ro, [inputs]; mad.wide.u32 %ro, %id, {SLOT_BYTES}, %ro;",
    "%gp": f"ld.param.u64 %gp, [scratch]; mad.wide.u32 %gp, %id, {SLOT_BYTES}, %gp;",
    "%gg": "cvta.global.u64 %gg, %gp;",
    "%sp": f"mov.u32 %sp, slots; mad.lo.u32 %sp, %thread, {SLOT_BYTES}, %sp; "
    + _copies("ld.global", 1, "st.shared", "%sp"),
    "%gs": "cvt.u64.u32 %gs, %sp; cvta.shared.u64 %gs, %gs;",
    "%lp": "mov.u64 %lp, slot; " + _copies("ld.global", 2, "st.local", "%lp"),
    "%gl": "cvta.local.u64 %gl, %lp;",
    "%cp": "mov.u64 %cp, constants;",
    "%tp": f"mov.u32 %tp, totals; setp.lt.u32 %zp, %thread, {SUMS}; mad.lo.u32 %z32, %thread, 8, %tp; "
    "@%zp st.shared.b64 [%z32], 0; bar.sync 0;",
    "%ga": "ld.param.u64 %ga, [sums];",
    "%policy": "createpolicy.fractional.L2::evict_last.b64 %policy, 1.0;",
}
"""Registers that hold addresses, in the order in which the prologue sets them up."""

TEARDOWN = {
    "%sp": _copies("ld.shared", "%sp", "st.global", 1),
    "%lp": _copies("ld.local", "%lp", "st.global", 2),
    "%tp": f"bar.sync 0; setp.lt.u32 %zp, %thread, {SUMS}; mad.lo.u32 %z32, %thread, 8, %tp; "
    f"@%zp ld.shared.b64 %z64, [%z32]; @%zp st.global.b64 [%out+{(OUTPUT_ROWS - 1) * _STEP}], %z64;",
}
VARIABLES = {
    "slots": f".shared .align 64 .b8 slots[{THREADS * SLOT_BYTES}];",
    "totals": f".shared .align 8 .b8 totals[{8 * SUMS}];",
    "slot": f".local .align 16 .b8 slot[{SLOT_BYTES}];",
}


@dataclass(frozen=True)
class Line:
    """One instruction with the lines that belong to it."""

    text: str


@dataclass(frozen=True)
class Block:
    """A control structure: texts[0], bodies[0], texts[1], bodies[1], …, texts[-1]."""

    texts: tuple[str, ...]
    bodies: tuple[Body, ...]


Statement = Line | Block
Body = tuple[Statement, ...]


@dataclass(frozen=True)
class Program:
    """A kernel `body` and the bodies of device functions; `constants` are registers that begin with one value."""

    seed: int
    body: Body
    functions: Mapping[str, Body] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The module."""
        kernel = _kernel(list(lines(self.body)), self.constants)
        constant = f".const .align 64 .b8 constants[256] = {{{', '.join(map(str, self._constant_bytes()))}}};\n"
        head = f".version {VERSION[0]}.{VERSION[1]}\n.target {ARCH}\n.address_size 64\n"
        texts = [_function(name, list(lines(body))) for name, body in self.called().items()]
        return head + constant * ("constants" in kernel) + "".join(texts) + kernel

    def called(self) -> dict[str, Body]:
        """Return the device functions that the kernel calls."""
        kernel = " ".join(lines(self.body))
        return {name: body for name, body in self.functions.items() if f"{name}," in kernel}

    def _constant_bytes(self) -> list[int]:
        return [*words(np.random.RandomState(self.seed + 1), (32,)).view(np.uint8)]

    def arrays(self) -> list[np.ndarray]:
        """Return inputs, scratch, sums and outputs as they are before the launch."""
        random = np.random.RandomState(self.seed)
        inputs, scratch = words(random, (ROWS, TOTAL)), words(random, (3, TOTAL * SLOT_BYTES // 8))
        return [inputs, scratch, np.zeros(SUMS, np.uint64), np.zeros((OUTPUT_ROWS, TOTAL), np.uint64)]

    def with_body(self, body: Body) -> Program:
        return replace(self, body=body)


def lines(body: Iterable[Statement]) -> Iterator[str]:
    """Yield the PTX of statements."""
    for statement in body:
        if isinstance(statement, Line):
            yield statement.text
            continue
        for text, inner in zip(statement.texts, (*statement.bodies, ()), strict=True):
            yield text
            yield from lines(inner)


def mentioned(texts: Iterable[str]) -> set[str]:
    """Return the names of registers in PTX."""
    return set(re.findall(r"%[a-z]+\d*(?![\w.])|%[a-z]+\d+(?=\.[bh])", " ".join(texts)))


def _kernel(body: list[str], constants: Mapping[str, int]) -> str:
    used = mentioned(body)
    pool = [name for name in NAMES if name in used]
    tail = [text for name, text in TEARDOWN.items() if name in used] + [_store(name) for name in pool]
    head = [_load(name, constants.get(name)) for name in pool]
    setup: list[str] = []
    known = used | mentioned(tail) | mentioned(head)
    for name, code in reversed(SETUP.items()):
        if name in known:
            setup.insert(0, code)
            known |= mentioned([code])
    text = "\n".join([*setup, *head, *body, *tail, "ret;", "}", ""])
    variables = [v for name, v in VARIABLES.items() if re.search(rf"\b{name};", text)]
    parameters = ", ".join(f".param .u64 {name}" for name in ("inputs", "scratch", "sums", "outputs"))
    front = [f".visible .entry k({parameters}) .reqntid {THREADS}", "{", *variables, *_declarations(known)]
    return "\n".join([*front, text])


def _declarations(names: set[str]) -> list[str]:
    types: dict[str, list[str]] = {}
    for name in sorted(names):
        if type_ := _NAMED.get(name) or (_TYPES[name[1]] if re.fullmatch(r"%[phrdqcmb]\d+", name) else None):
            types.setdefault(type_, []).append(name)
    return [f".reg .{type_} {', '.join(members)};" for type_, members in types.items()]


def _load(name: str, constant: int | None) -> str:
    """Return PTX that gives a register its first value."""
    kind, at = _TYPES[name[1]], f"%in+{ROW[name] * _STEP}"
    if kind == "pred":
        if constant is not None:
            return f"setp.ne.u32 {name}, {constant & 1}, 0;"
        return f"ld.global.b32 %z32, [{at}]; and.b32 %z32, %z32, 1; setp.ne.u32 {name}, %z32, 0;"
    if kind == "b128":
        return f"ld.global.b64 %z64, [{at}]; mov.b128 {name}, {{%z64, %z64}};"
    return f"ld.global.{kind} {name}, [{at}];" if constant is None else f"mov.{kind} {name}, {constant:#x};"


def _store(name: str) -> str:
    """Return PTX that stores a register."""
    kind, at = _TYPES[name[1]], ROW[name] * _STEP
    if kind == "pred":
        return f"selp.b32 %z32, 1, 0, {name}; st.global.b32 [%out+{at}], %z32;"
    if kind == "b128":
        unpack = f"{{ .reg .b64 %low, %high; mov.b128 {{%low, %high}}, {name};"
        return f"{unpack} st.global.b64 [%out+{at}], %low; st.global.b64 [%out+{at + _STEP}], %high; }}"
    return f"st.global.{kind} [%out+{at}], {name};"


SIGNATURE = "(.param .align 8 .b8 o0[16]) {}(.param .b32 i0, .param .b64 i1)"


def call(name: str, r: str, d: str, a: str, b: str) -> str:
    """Return PTX that calls a function of a 32-bit and a 64-bit value, which returns two like these."""
    declared = ".param .b32 a0; .param .b64 a1; .param .align 8 .b8 x0[16];"
    given = f"st.param.b32 [a0], {a}; st.param.b64 [a1], {b};"
    return f"{{ {declared} {given} call (x0), {name}, (a0, a1); ld.param.b32 {r}, [x0]; ld.param.b64 {d}, [x0+8]; }}"


def _function(name: str, body: list[str]) -> str:
    """Return a device function whose registers begin with functions of its arguments, and whose results mix them."""
    used = mentioned(body) | {"%r0", "%d0", "%z32", "%z64"}
    head = ["ld.param.b32 %z32, [i0]; ld.param.b64 %z64, [i1];"]
    tail = []
    for n, register in enumerate(r for r in NAMES if r in used):
        kind, odd = _TYPES[register[1]], 2 * n + 1
        if kind == "b32":
            head.append(f"mad.lo.u32 {register}, %z32, {odd}, {n};")
            tail.append(f"xor.b32 %r0, %r0, {register};" if register != "%r0" else "")
        elif kind == "b64":
            head.append(f"mad.lo.u64 {register}, %z64, {odd}, {n};")
            tail.append(f"xor.b64 %d0, %d0, {register};" if register != "%d0" else "")
        elif kind == "b16":
            head.append(f"cvt.u16.u32 {register}, %z32; add.u16 {register}, {register}, {n};")
            tail.append(f"cvt.u32.u16 %z32, {register}; xor.b32 %r0, %r0, %z32;")
        else:
            head.append(f"setp.gt.s32 {register}, %z32, {n};")
            tail.append(f"selp.b32 %z32, {odd}, 0, {register}; xor.b32 %r0, %r0, %z32;")
    results = "st.param.b32 [o0], %r0; st.param.b64 [o0+8], %d0;"
    text = [*head, *body, *filter(None, tail), results, "ret;", "}", ""]
    return "\n".join([f".func {SIGNATURE.format(name)}", "{", *_declarations(used), *text])
