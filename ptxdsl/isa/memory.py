"""Moves, loads, stores, cache hints and address spaces (PTX ISA, "Data Movement and Conversion Instructions")."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import ir
from ..types import b128
from .form import Form, Values
from .opcode import Op, Opcode
from .operand import OperandList, Problem
from .step import NON_COHERENT, WEAK, Ordering, Step

SCALARS = "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64 b128"
LOADED_FROM = "const global local param param::entry param::func shared shared::cta shared::cluster"
STORED_TO = "global local param param::func shared shared::cta shared::cluster"
ORDERED = "global shared shared::cta shared::cluster"  # state spaces of .volatile, .relaxed, .acquire and .release
SCOPES = "cta cluster gpu sys"
L1_PRIORITIES = "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate"
L2_PRIORITIES = "L2::evict_normal L2::evict_first L2::evict_last"
PREFETCHES = "L2::64B L2::128B L2::256B"
HINT = "L2::cache_hint"
ADDRESSES = (ir.Variable, ir.Symbol, ir.Offset)  # operands that denote an address

NEEDS: dict[str, tuple[str, int | str]] = {
    **dict.fromkeys(("weak", "relaxed", "acquire", "release", "acq_rel"), ("6.0", 70)),
    **dict.fromkeys(L1_PRIORITIES.split(), ("7.4", 70)),
    **dict.fromkeys(("L2::64B", "L2::128B"), ("7.4", 75)),
    **dict.fromkeys(("L2::256B", HINT), ("7.4", 80)),
    **dict.fromkeys(("param::entry", "param::func"), ("8.3", 10)),
    **dict.fromkeys(("ca", "cg", "cs", "lu", "cv", "wb", "wt"), ("2.0", 20)),
    "shared::cta": ("7.8", 10), "shared::cluster": ("7.8", 90), "cluster": ("7.8", 90),
    "b128": ("8.3", 70), "sys b128": ("8.4", 70),
}  # fmt: skip
"""Requirements of the modifiers of memory instructions."""

_WIDE = dict.fromkeys((*L2_PRIORITIES.split(), "v8", "v4 b64", "v4 u64", "v4 s64", "v4 f64"), ("8.8", 100))


def elements(i: Values | Opcode) -> int:
    """Return the vector length; 1 without a vector modifier."""
    vec: str | None = getattr(i, "vec", None)
    return int(vec[1:]) if vec else 1


def access_bytes(i: Values | Opcode) -> int:
    """Return the number of bytes that one lane accesses."""
    return elements(i) * int(i.type.bytes)


def ordering(i: Values | Opcode, sem: str = "weak") -> Ordering:
    """Return the memory ordering given by .sem and .scope, or `sem`. Volatile accesses have system scope."""
    sem = i.sem or sem
    if sem == "weak":
        return WEAK
    return Ordering(sem, i.scope or ("sys" if sem == "volatile" or ".sys" in i.text else "gpu"))


def _fits(i: Values) -> bool:
    """True if the vector has at most 128 bits (256 in global memory), with L2 modifiers in global memory only."""
    in_global = i.space in (None, "global")
    wide = access_bytes(i) == 32 and i.type.bits in (32, 64)
    narrow = access_bytes(i) <= 16 and i.vec != "v8"
    return (narrow or (wide and in_global)) and (in_global or not (i.hint or i.prefetch))


def _prioritised(i: Values) -> bool:
    """True if eviction priorities are used in global memory only, and those of L2 with 256-bit accesses only."""
    in_global = i.space in (None, "global")
    return _fits(i) and bool(i.evict or i.evict2) and in_global and (not i.evict2 or access_bytes(i) == 32)


def _form(syntax: str, **slots: Any) -> Form:
    """Return one form of ld or st."""
    slots = {"needs": {**NEEDS, **_WIDE}, "when": _prioritised if "{.evict}" in syntax else _fits, **slots}
    offered = {
        "vec": "v2 v4 v8", "type": SCALARS, "scope": SCOPES, "hint": HINT, "prefetch": PREFETCHES,
        "evict": L1_PRIORITIES, "evict2": L2_PRIORITIES,
    }  # fmt: skip
    return Form(syntax, **{name: choices for name, choices in offered.items() if f".{name}" in syntax} | slots)


def policy_problems(i: Opcode, policy: ir.Operand | None) -> Iterator[Problem]:
    """Check that the operand `policy` and the modifier .L2::cache_hint occur together."""
    if i.hint and policy is None:
        help = "make one with createpolicy.fractional.L2::evict_last.b64"
        yield Problem("policy", ".L2::cache_hint takes a cache policy, a 64-bit register, as its last operand", help)
    elif policy is not None and not i.hint:
        yield Problem("policy", "`policy` is given, but the instruction lacks .L2::cache_hint")


def alignment_problems(operand: str, address: ir.Operand | None, bytes: int) -> Iterator[Problem]:
    """Report an address that is certainly misaligned: a constant, or an offset into a variable."""
    if not isinstance(address, ir.Address):
        return
    address_bytes = address.offset
    if isinstance(address.base, ir.Immediate):
        address_bytes += address.base.value
    elif not isinstance(address.base, ir.Variable) or (address.base.align or address.base.type.bytes) % bytes:
        return
    if address_bytes % bytes:
        message = (
            f"`{operand}` is {address_bytes} bytes past an aligned address; this access requires multiples of {bytes}"
        )
        yield Problem(operand, message)


class LoadStore(Op):
    """Base of loads and stores."""

    relaxed = True

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            if declared.role == "address":
                yield from alignment_problems(declared.name, value, access_bytes(i))
        if i.operands[-1].name == "policy":
            yield from policy_problems(i, operands[-1])


class LoadValue(LoadStore):
    """Load from memory: d = [a]."""

    forms = (
        _form(
            "ld{.weak}{.space}{.cop}{.hint}{.prefetch}{.vec}.type d=type*vec, [a:space]{, policy:b64}",
            space=LOADED_FROM,
            cop="ca cg cs lu cv",
        ),
        _form(
            "ld{.weak}{.space}{.evict}{.evict2}{.hint}{.prefetch}{.vec}.type d=type*vec, [a:space]{, policy:b64}",
            space="global",
        ),
        _form("ld.sem{.space}{.prefetch}{.vec}.type d=type*vec, [a:space]", sem="volatile", space=ORDERED),
        _form(
            "ld.sem.scope{.space}{.hint}{.prefetch}{.vec}.type d=type*vec, [a:space]{, policy:b64}",
            sem="relaxed acquire",
            space=ORDERED,
        ),
        _form(
            "ld.sem.scope{.space}{.evict}{.evict2}{.hint}{.prefetch}{.vec}.type d=type*vec, [a:space]{, policy:b64}",
            sem="relaxed acquire",
            space="global",
        ),
        _form("ld.mmio.sem.sys{.space}.type d=type, [a:space]", sem="relaxed", space="global", ptx="8.2", sm=70),
        _form(
            "ld.space{.cop}.nc{.hint}{.prefetch}{.vec}.type d=type*vec, [a:space]{, policy:b64}",
            space="global",
            cop="ca cg cs",
            ptx="3.1",
            sm=32,
        ),
        _form(
            "ld.space.nc{.evict}{.evict2}{.hint}{.prefetch}{.vec}.type d=type*vec, [a:space]{, policy:b64}",
            space="global",
            ptx="3.1",
            sm=32,
        ),
        _form(
            "ldu{.space}{.vec}.type d=type*vec, [a:space]",
            space="global",
            vec="v2 v4",
            when=lambda i: access_bytes(i) <= 16,
            ptx="2.0",
            sm=20,
        ),
    )

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        yield from super().problems(i, operands)
        if isinstance(operands[0], ir.Sink):
            yield Problem("d", "`d` is `_`; only an element of a vector may be left out")

    def execute(self, i: Opcode, m: Step, a: np.ndarray, policy: np.ndarray | None = None) -> np.ndarray:
        return m.load(i.space or "generic", a, i.type, elements(i), self._ordering(i))

    def reads_without_coherence(self, i: Opcode) -> bool:
        return i.text.startswith("ldu") or "nc" in i.text.split(".")

    def _ordering(self, i: Opcode) -> Ordering:
        return NON_COHERENT if self.reads_without_coherence(i) else ordering(i)


class StoreValue(LoadStore):
    """Store to memory: [a] = b."""

    stores = "a"
    carries = ("b",)
    forms = (
        _form(
            "st{.weak}{.space}{.cop}{.hint}{.vec}.type [a:space], b:type*vec{, policy:b64}",
            space=STORED_TO,
            cop="wb cg cs wt",
        ),
        _form(
            "st{.weak}{.space}{.evict}{.evict2}{.hint}{.vec}.type [a:space], b:type*vec{, policy:b64}",
            space="global",
        ),
        _form("st.sem{.space}{.vec}.type [a:space], b:type*vec", sem="volatile", space=ORDERED),
        _form(
            "st.sem.scope{.space}{.hint}{.vec}.type [a:space], b:type*vec{, policy:b64}",
            sem="relaxed release",
            space=ORDERED,
        ),
        _form(
            "st.sem.scope{.space}{.evict}{.evict2}{.hint}{.vec}.type [a:space], b:type*vec{, policy:b64}",
            sem="relaxed release",
            space="global",
        ),
        _form("st.mmio.sem.sys{.space}.type [a:space], b:type", sem="relaxed", space="global", ptx="8.2", sm=70),
    )

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        yield from super().problems(i, operands)
        stored = operands[1].elements if isinstance(operands[1], ir.Vector) else (operands[1],)
        for value in stored:
            if isinstance(value, ir.Sink) and access_bytes(i) < 32:
                yield Problem("b", "`b` has a `_`; only stores of 256 bits may leave elements out")

    def execute(self, i: Opcode, m: Step, a: np.ndarray, b: np.ndarray, policy: np.ndarray | None = None) -> None:
        m.store(i.space or "generic", a, i.type, b, ordering(i))


class Mov(Op):
    """Move a register, constant, special register, or the address of a variable or function: d = a."""

    reads = (ir.SpecialRegister, ir.Function, *ADDRESSES)
    forms = (
        Form(
            "mov{.vec}.type d=type*vec, a:type*vec",
            type="b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 b128",
            vec="v2 v4",
            when=lambda i: i.vec is None or 0 < access_bytes(i) <= 16,
            needs=NEEDS,
        ),
    )

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        holds_address = i.type.kind in "bus" and i.type.bits in (32, 64)
        if isinstance(operands[1], (ir.Function, *ADDRESSES)) and not holds_address:
            yield Problem("a", f"`a` is the address of `{operands[1]}`; mov.u32 or mov.u64 takes it")

    def run(self, i: Opcode, a: np.ndarray) -> np.ndarray:
        return a


class MovPredicate(Op):
    """d = a, a predicate that may be negated."""

    forms = (Form("mov.pred d=pred, {!}a:pred", needs=NEEDS),)

    def run(self, i: Opcode, a: np.ndarray) -> np.ndarray:
        return a


PACKINGS = (
    ("b16", "b8", 2), ("b32", "b16", 2), ("b32", "b8", 4), ("b64", "b32", 2), ("b64", "b16", 4),
    ("b128", "b64", 2), ("b128", "b32", 4),
)  # fmt: skip


class Pack(Op):
    """Pack registers into one, the first in the lowest bits: d = {a, …}."""

    reads = (ir.SpecialRegister,)
    forms = tuple(
        Form(f"mov.whole d=whole, a:{part}*{count}", whole=whole, needs=NEEDS) for whole, part, count in PACKINGS
    )

    def run(self, i: Opcode, a: np.ndarray) -> np.ndarray:
        joined = np.stack([*a], axis=-1).view(f"u{min(8, i.whole.bytes)}")
        return joined if i.whole is b128 else joined[..., 0]


class Unpack(Op):
    """Unpack a register into several, the lowest bits first: {d, …} = a."""

    reads = (ir.SpecialRegister,)
    forms = tuple(
        Form(f"mov.whole d={part}*{count}, a:whole", whole=whole, needs=NEEDS) for whole, part, count in PACKINGS
    )

    def run(self, i: Opcode, a: np.ndarray) -> np.ndarray:
        words = np.ascontiguousarray(a if i.whole is b128 else a[..., np.newaxis])
        return np.moveaxis(words.view(f"u{i.whole.bytes // i.operands[0].count}"), -1, 0)


class Hint(Op):
    """Base of instructions that only affect performance."""

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        names = [o.name for o in i.operands]
        size = operands[names.index("size")] if "size" in names else None
        if isinstance(size, ir.Immediate) and size.value != 128:
            yield Problem("size", f"`size` is {size.value}; it must be 128, a cache line")
        if size is not None:
            yield from alignment_problems("a", operands[0], 128)

    def execute(self, i: Opcode, m: Step, *inputs: np.ndarray) -> None:
        """Do nothing: a hint has no observable effect."""


class Prefetch(Hint):
    """Prefetch the cache line of an address, or a tensor map."""

    forms = (
        Form("prefetch{.space}.level [a:space]", space="global local", level="L1 L2", ptx="2.0", sm=20),
        Form(
            "prefetch.space.evict [a:space]", space="global", evict="L2::evict_last L2::evict_normal", ptx="7.4", sm=80
        ),
        Form("prefetch{.space}.tensormap [a:space]", space="const param", ptx="8.0", sm=90),
        Form("prefetchu.L1 [a]", ptx="2.0", sm=20),
    )


class ApplyPriority(Hint):
    """Set the cache line of an address to the normal eviction priority."""

    forms = (Form("applypriority{.space}.L2::evict_normal [a:space], size:imm", space="global", ptx="7.4", sm=80),)


class Discard(Hint):
    """Discard a cache line without write-back; its 128 bytes are undefined until written again."""

    forms = (Form("discard{.space}.L2 [a:space], size:imm", space="global", ptx="7.4", sm=80),)


_POLICY: dict[str, Any] = {
    "primary": f"{L2_PRIORITIES} L2::evict_unchanged", "secondary": "L2::evict_first L2::evict_unchanged",
    "ptx": "7.4", "sm": 80,
}  # fmt: skip


class CreatePolicy(Op):
    """Create a cache eviction policy for .L2::cache_hint."""

    forms = (
        Form("createpolicy.fractional.primary{.secondary}.b64 d=b64{, fraction:f32}", **_POLICY),
        Form(
            "createpolicy.range{.space}.primary{.secondary}.b64 d=b64, [a:space], primary_size:b32, total_size:b32",
            space="global",
            **_POLICY,
        ),
        Form("createpolicy.cvt.L2.b64 d=b64, access_property:b64", ptx="7.4", sm=80),
    )

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        by_name = {
            o.name: value for o, value in zip(i.operands, operands, strict=True) if isinstance(value, ir.Immediate)
        }
        if "fraction" in by_name:
            (fraction,) = struct.unpack("<f", by_name["fraction"].value.to_bytes(8, "little")[:4])
            if not 0 < fraction <= 1:
                yield Problem("fraction", f"`fraction` is {fraction:g}; it must be more than 0 and at most 1")
        if {"primary_size", "total_size"} <= by_name.keys():
            primary, total = by_name["primary_size"].value, by_name["total_size"].value
            if primary > total:
                yield Problem("primary_size", f"`primary_size` is {primary}, more than `total_size`, which is {total}")

    def execute(self, i: Opcode, m: Step, *inputs: np.ndarray) -> np.ndarray:
        return np.zeros(m.shape, np.uint64)


SPACES = "const global local shared shared::cta shared::cluster param param::entry"
_SPACE_NEEDS = {**NEEDS, "param": ("7.7", 70), "param::entry": ("8.3", 70), "const": ("3.1", 20)}


class Cvta(Op):
    """Convert an address in a state space to a generic address, or (.to) the reverse."""

    reads = ADDRESSES
    forms = (Form("cvta{.to}.space.u64 d=u64, a:u64", space=SPACES, ptx="2.0", sm=20, needs=_SPACE_NEEDS),)

    def execute(self, i: Opcode, m: Step, a: np.ndarray) -> np.ndarray:
        return m.specific(i.space, a) if i.to else m.generic(i.space, a)


class IsSpacep(Op):
    """Query whether a generic address falls within a state space: p = true if it does."""

    forms = (Form("isspacep.space p=pred, a:u64", space=SPACES, ptx="2.0", sm=20, needs=_SPACE_NEEDS),)

    def execute(self, i: Opcode, m: Step, a: np.ndarray) -> np.ndarray:
        return m.within(i.space, a)
