"""Random programs from the instruction table.

Spellings are drawn from the forms of each chapter, operands from the pool of registers and from constants. Memory is
race-free by construction: threads access their own slots, words of other threads between two barriers, and shared sums by
reductions whose order does not matter. Warp instructions name the lanes that are in the branch with them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ptxdsl import ir
from ptxdsl.isa import Op, Opcode, lookup
from ptxdsl.isa.form import Form
from ptxdsl.isa.memory import access_bytes
from ptxdsl.isa.operand import Operand
from ptxdsl.types import TYPES, f32, f64, lanes, pred

from ..isa.scalar_kernels import EDGES, integer_edges
from .exclusions import CONSTANT_FREE, NARROW, NONZERO, UNGUARDED, canonical_nan, excluded
from .program import ARCH, POOL, ROW, SLOT_BYTES, THREADS, TOTAL, VERSION, Block, Body, Line, Program, Statement, call

SCALAR = ("integer", "floating", "half", "compare", "logic", "convert", "video")
"""The chapters whose instructions compute on registers alone."""

TRIES = 40
FULL = "-1"
DEEPEST = 2
REGISTERS = {name: ir.Register(name, TYPES["pred" if w == 1 else f"b{w}"]) for w, ns in POOL.items() for name in ns}
UNREAD = ir.Register("%zp", TYPES["pred"])
"""The predicate of elections: ptxas 13 moves instructions that its old value guards past an election."""
SUMS = ("add.u32", "add.u64", "and.b32", "or.b64", "xor.b32", "xor.b64", "min.s32", "max.u64")
"""The reduction of each word that all threads share; one operation for each word, so that the order does not matter."""
SPECIAL = tuple(
    f"%{name}"
    for name in ("tid.x", "ntid.x", "ctaid.x", "nctaid.x", "laneid", "lanemask_lt", "lanemask_ge", "lanemask_eq")
)


@dataclass(frozen=True)
class Place:
    """The control flow around a statement.

    `mask` names the lanes of the warp that are here; all threads of the block are here if `uniform`. Functions only compute.
    """

    mask: str = FULL
    uniform: bool = True
    depth: int = 0
    in_function: bool = False


def program(seed: int) -> Program:
    """Return the random program of a seed."""
    return _Generator(seed).program()


@cache
def table(chapter: str) -> dict[str, list[tuple[Op, Form]]]:
    """Return the forms of a chapter by instruction name, without those of older targets."""
    found: dict[str, list[tuple[Op, Form]]] = {}
    for name, rows in Op.table.items():
        current = [(op, form) for op, form in rows if type(op).__module__ == f"ptxdsl.isa.{chapter}" and not form.until]
        if current:
            found[name] = current
    return found


class Unsuitable(Exception):
    """A random choice that has no valid instruction; another is drawn."""


class _Generator:
    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.number = 0
        self.functions: dict[str, Body] = {}

    def program(self) -> Program:
        r = self.random
        for n in range(r.randrange(3)):
            self.functions[f"f{n}"] = self.body(r.randint(3, 8), Place(depth=DEEPEST - 1, in_function=True))
        return Program(self.seed, self.body(r.randint(20, 45), Place()), self.functions)

    def body(self, count: int, place: Place) -> Body:
        return tuple(self.statement(place) for _ in range(count))

    def statement(self, place: Place) -> Statement:
        kinds = self.kinds(place)
        while True:
            (make,) = self.random.choices(list(kinds), list(kinds.values()))
            try:
                return make(place)
            except Unsuitable:
                continue

    def kinds(self, place: Place) -> dict[Callable[[Place], Statement], float]:
        """Return the kinds of statements that may stand at a place, with their weights."""
        kinds: dict[Callable[[Place], Statement], float] = {self.scalar: 20, self.carries: 1, self.pack: 1}
        if place.depth < DEEPEST:
            kinds |= {self.branch: 1, self.loop: 1, self.switch: 0.3}
        if place.in_function:
            return kinds
        kinds |= {
            self.memory: 5,
            self.atomic: 2,
            self.reduction: 1,
            self.constant: 0.7,
            self.fresh: 2,
            self.special: 0.5,
        }
        kinds |= {self.vote: 2}
        if self.functions:
            kinds |= {self.call: 1}
        if place.mask == FULL:
            kinds |= {self.shuffle: 2, self.product: 1.5, self.matrix: 1}
        if place.uniform:
            kinds |= {self.exchange: 1}
        return kinds

    # Operands.

    def register(self, width: int, without: Sequence[object] = (), place: Place | None = None) -> ir.Register:
        names = [name for name in POOL[width] if REGISTERS[name] not in without]
        if not names or (width == 128 and place is not None and place.in_function):
            raise Unsuitable
        return REGISTERS[self.random.choice(names)]

    def constant_of(self, operand: Operand) -> ir.Immediate:
        type_ = operand.type
        if type_ in (f32, f64):
            return ir.Immediate(self.random.choice(EDGES[type_.name]), type_)
        width = min(64, max(8, type_.bits))  # no constant of PTX has more bits
        value = self.random.choice([*integer_edges(width), self.random.getrandbits(width), *range(8)])
        if type_.is_signed and value >> width - 1:
            value -= 1 << width
        return ir.Immediate(value)

    def width_of(self, operand: Operand, relaxed: bool) -> int:
        """Return the width of a register for an operand; loads, stores and conversions of integers take wider ones."""
        width = operand.type.bits
        wider = [w for w in (16, 32, 64) if w > width]
        if relaxed and operand.type.kind in "bus" and wider and (width < 16 or self.random.random() < 0.25):
            return self.random.choice(wider)
        if width not in POOL:
            raise Unsuitable
        return width

    def value(self, opcode: Opcode, operand: Operand, taken: list[object], place: Place) -> ir.Operand:
        """Return a value for an operand; destinations differ from those in `taken`."""
        r = self.random
        if operand.name == "membermask":
            return ir.Immediate(-1) if place.mask == FULL else ir.Register(place.mask, TYPES["b32"])
        if operand.type is None:
            if operand.word != "imm":
                raise Unsuitable
            return ir.Immediate(r.choice([*range(8), r.randrange(256)]))
        width = self.width_of(operand, opcode.op.relaxed and not opcode.text.startswith(NARROW))
        if operand.vector:
            elements: list[ir.Register] = []
            for _ in range(operand.count):
                elements.append(self.register(width, [*taken, *elements] if operand.written else [], place))
            return ir.Vector(tuple(elements))
        if operand.read and not operand.written and operand.type is not pred and r.random() < 0.12:
            constant = self.constant_of(operand)
            if not list(opcode.op.check.problems(operand, constant)):
                return constant
        chosen = self.register(width, taken if operand.written else [], place)
        return ir.Not(chosen) if operand.negatable and r.random() < 0.3 else chosen

    def operands(self, opcode: Opcode, place: Place, given: dict[str, ir.Operand] | None = None) -> list[Any]:
        """Return valid operands, in the order of the opcode's; `given` are fixed."""
        for _ in range(TRIES):
            values: list[Any] = []
            for operand in opcode.operands:
                if given and operand.name in given:
                    values.append(given[operand.name])
                elif operand.optional and self.random.random() < 0.4:
                    values.append(None)
                else:
                    values.append(self.value(opcode, operand, self._written(opcode, values), place))
            if not list(opcode.problems(opcode.group(values))):
                return values
        raise Unsuitable

    @staticmethod
    def _written(opcode: Opcode, values: list[Any]) -> list[object]:
        pairs = zip(opcode.operands, values, strict=False)
        return [e for o, v in pairs if o.written for e in (v.elements if isinstance(v, ir.Vector) else (v,))]

    # Instructions.

    def opcode(self, chapter: str, accept: Callable[[Opcode], bool] = lambda i: True, names: str = "") -> Opcode:
        """Return a random spelling of a chapter that the target has."""
        rows = table(chapter)
        for _ in range(TRIES):
            _, form = self.random.choice(rows[self.random.choice(names.split() or list(rows))])
            chosen = [self.random.choice((*([None] if m.optional else []), *m.choices)) for m in form.modifiers]
            if not form.permits(form.named(chosen)):
                continue
            opcode = next(o for o in lookup(form.spell(chosen)) if o.form is form)
            current = opcode.supports(ARCH) and opcode.requires.version <= VERSION
            if current and not excluded(opcode) and accept(opcode):
                return opcode
        raise Unsuitable

    def instruction(
        self, opcode: Opcode, place: Place, given: dict[str, ir.Operand] | None = None, guarded: bool = True
    ) -> str:
        """Return an instruction with random operands, perhaps predicated, and canonical NaNs."""
        values = self.operands(opcode, place, given)
        text = str(ir.Instruction(opcode, opcode.group(values)))
        if guarded and opcode.form.name not in UNGUARDED and self.random.random() < 0.15:
            text = f"@{self.random.choice(['', '!'])}{self.register(1)} {text}"
        return " ".join([text, *self._canonical(opcode, values)])

    @staticmethod
    def _canonical(opcode: Opcode, values: list[Any]) -> list[str]:
        found = []
        for operand, value in zip(opcode.operands, values, strict=True):
            if operand.written and value is not None and operand.type is not pred:
                elements = value.elements if isinstance(value, ir.Vector) else (value,)
                found += [canonical_nan(str(e), operand.type) for e in elements]
        return [text for text in found if text]

    def scalar(self, place: Place) -> Statement:
        opcode = self.opcode(self.random.choice(SCALAR))
        is_integer = not lanes(opcode.operands[0].type)[0].is_float
        if opcode.form.name in NONZERO and is_integer:
            return self._division(opcode, place)
        given: dict[str, ir.Operand] = {}
        if set(CONSTANT_FREE) & set(opcode.text.split(".")):
            given = {o.name: self.register(max(o.type.bits, 16)) for o in opcode.operands if not o.written}
        return Line(self.instruction(opcode, place, given))

    def _division(self, opcode: Opcode, place: Place) -> Statement:
        width = opcode.operands[-1].type.bits
        divisor = ir.Register(f"%z{width}", TYPES[f"b{width}"])
        front = f"or.b{width} {divisor}, {self.register(width)}, 1;"
        return Line(f"{front} {self.instruction(opcode, place, {opcode.operands[-1].name: divisor})}")

    def carries(self, place: Place) -> Statement:
        """Return a chain of additions or subtractions with carry."""
        kind = self.random.choice(["u32", "u64"])
        first = self.opcode(
            "extended", lambda i: i.text.endswith(f"cc.{kind}"), self.random.choice(["add", "sub", "mad"])
        )
        then = {"add": "addc", "sub": "subc", "mad": "madc"}[first.form.name]
        chain = [first, *(self.opcode("extended", lambda i: i.text.endswith(f"cc.{kind}"), then) for _ in range(2))]
        chain.append(self.opcode("extended", lambda i: not i.cc and i.text.endswith(kind), then))
        return Line(" ".join(self.instruction(i, place, guarded=False) for i in chain))

    def pack(self, place: Place) -> Statement:
        opcode = self.opcode("memory", names="mov")
        return Line(self.instruction(opcode, place, guarded=not opcode.text.endswith("b128")))

    def special(self, place: Place) -> Statement:
        return Line(f"mov.u32 {self.register(32)}, {self.random.choice(SPECIAL)};")

    # Memory.

    def memory(self, place: Place) -> Statement:
        """Return a load or store of the thread's own slots, or a load of the inputs."""
        opcode = self.opcode("memory", names=self.random.choice(["ld", "ld", "st", "st", "ldu"]))
        given: dict[str, ir.Operand] = {"a": self.address(opcode)}
        if any(o.name == "policy" for o in opcode.operands):
            given["policy"] = ir.Register("%policy", TYPES["b64"]) if opcode.hint else None  # type: ignore[assignment]
        return Line(self.instruction(opcode, place, given))

    def address(self, opcode: Opcode) -> ir.Address:
        """Return an aligned address in the state space of an opcode."""
        space, size = opcode.values.get("space"), access_bytes(opcode)
        words = opcode.text.split(".")
        if "nc" in words or words[0] == "ldu":
            base = "%ro"
        elif space is None and not opcode.values.get("sem") and words[0] in ("ld", "st"):
            base = self.random.choice(["%gg", "%gs", "%gl"])
        elif space is None and {"v2", "v4", "v8"} & set(words):
            base = "%gg"  # vector atomics take global memory only
        elif space is None:
            base = self.random.choice(["%gg", "%gs"])
        else:
            base = {"global": "%gp", "local": "%lp", "const": "%cp"}.get(str(space), "%sp")
        register = ir.Register(base, TYPES["b32" if base == "%sp" else "b64"])
        return ir.Address(register, size * self.random.randrange(SLOT_BYTES // size))

    def atomic(self, place: Place) -> Statement:
        """Return an atomic operation on the thread's own slots."""
        opcode = self.opcode("atomic")
        given: dict[str, ir.Operand] = {"a": self.address(opcode)}
        if any(o.name == "policy" for o in opcode.operands):
            given["policy"] = ir.Register("%policy", TYPES["b64"]) if opcode.hint else None  # type: ignore[assignment]
        return Line(self.instruction(opcode, place, given))

    def reduction(self, place: Place) -> Statement:
        """Return a reduction into a word that all threads share."""
        number = self.random.randrange(len(SUMS))
        value = self.register(int(SUMS[number][-2:]))
        space, base = self.random.choice([("shared", "%tp"), ("global", "%ga")])
        return Line(f"red.{space}.{SUMS[number]} [{base}+{8 * number}], {value};")

    def constant(self, place: Place) -> Statement:
        """Return a load of constant memory at an address that differs among lanes."""
        at = f"and.b32 %z32, {self.register(32)}, 192; cvt.u64.u32 %z64, %z32; add.u64 %z64, %cp, %z64;"
        width = self.random.choice([16, 32, 64])
        return Line(f"{at} ld.const.b{width} {self.register(width)}, [%z64+{self.random.randrange(0, 64, 8)}];")

    def fresh(self, place: Place) -> Statement:
        """Return a load of a random row of the inputs."""
        width = self.random.choice([16, 32, 32, 64])
        row = self.random.choice(list(ROW.values())) + self.random.randrange(2)
        return Line(f"ld.global.nc.b{width} {self.register(width)}, [%in+{8 * TOTAL * row}];")

    def exchange(self, place: Place) -> Statement:
        """Return a load from the slot of another thread, between barriers."""
        width = self.random.choice([32, 64])
        other = f"xor.b32 %z32, %thread, {self.random.randrange(1, THREADS)}; mov.u32 %y32, slots;"
        at = f"mad.lo.u32 %z32, %z32, {SLOT_BYTES}, %y32;"
        own = f"st.shared.b{width} [%sp+{8 * self.random.randrange(SLOT_BYTES // 8)}], {self.register(width)};"
        load = f"ld.shared.b{width} {self.register(width)}, [%z32+{8 * self.random.randrange(SLOT_BYTES // 8)}];"
        return Line(f"{own} {other} {at} bar.sync 0; {load} bar.sync 0;")

    # Warps.

    def vote(self, place: Place) -> Statement:
        """Return a vote, match, reduction or election among the lanes that are here."""
        opcode = self.opcode("warp", names=self.random.choice(["vote", "vote", "match", "redux", "elect"]))
        given: dict[str, ir.Operand] = {}
        if opcode.form.name == "elect":
            given = {"p": UNREAD}
        return Line(self.instruction(opcode, place, given, guarded=False))

    def shuffle(self, place: Place) -> Statement:
        return Line(self.instruction(self.opcode("warp", names="shfl"), place, guarded=False))

    def product(self, place: Place) -> Statement:
        return Line(self.instruction(self.opcode("matrix", names="mma"), place, guarded=False))

    def matrix(self, place: Place) -> Statement:
        """Return a load, store or transposition of 8 x 8 matrices in the slots of the warp."""
        opcode = self.opcode("matrix", names=self.random.choice(["ldmatrix", "stmatrix", "movmatrix"]))
        if opcode.form.name == "movmatrix":
            return Line(self.instruction(opcode, place, guarded=False))
        rows = f"mad.lo.u32 %z32, %thread, 5, {self.random.randrange(64)}; and.b32 %z32, %z32, 63;"
        warp = "and.b32 %y32, %thread, 31; shl.b32 %y32, %y32, 5; sub.u32 %y32, %sp, %y32;"  # the slot of lane 0
        at = "mad.lo.u32 %z32, %z32, 16, %y32;"
        given: dict[str, ir.Operand] = {"address": ir.Address(ir.Register("%z32", TYPES["b32"]))}
        text = self.instruction(opcode, place, given, guarded=False)
        return Line(f"{rows} {warp} {at} bar.warp.sync -1; {text} bar.warp.sync -1;")

    # Control.

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _within(self, place: Place, n: int) -> Place:
        return replace(place, mask=f"%m{n}", uniform=False, depth=place.depth + 1)

    def _some(self, place: Place) -> int:
        return self.random.randint(1, 5)

    def branch(self, place: Place) -> Statement:
        """Return an `if` with or without `else`, divergent or the same for the whole block."""
        n, r = self._next(), self.random
        if r.random() < 0.25 and not place.in_function:
            front = f"mov.u32 %z32, %ctaid.x; setp.eq.u32 %b{n}, %z32, {r.randrange(2)}; @%b{n} bra L{n};"
            inside = replace(place, depth=place.depth + 1)
            return Block((front, f"L{n}:"), (self.body(self._some(place), inside),))
        p, inside = self.register(1), self._within(place, n)
        then, otherwise = self.body(self._some(place), inside), self.body(self._some(place), inside)
        front = f"vote.sync.ballot.b32 %m{n}, {p}, {place.mask}; mov.pred %b{n}, {p}; @!%b{n} bra L{n};"
        if place.in_function:
            front = f"mov.pred %b{n}, {p}; @!%b{n} bra L{n};"
        if r.random() < 0.5:
            return Block((front, f"L{n}:"), (then,))
        masks = f"not.b32 %m{n}, %m{n}; and.b32 %m{n}, %m{n}, {place.mask};" * (not place.in_function)
        # The ballot gave each lane of the branch the same mask, so its complement is that of the other lanes.
        return Block((front, f"bra E{n}; L{n}: {masks}", f"E{n}:"), (then, otherwise))

    def loop(self, place: Place) -> Statement:
        """Return a loop with a trip count that is constant, or differs among lanes."""
        n, r = self._next(), self.random
        if r.random() < 0.5:
            inside = replace(place, depth=place.depth + 1)
            back = f"add.u32 %c{n}, %c{n}, 1; setp.lt.u32 %b{n}, %c{n}, {r.randint(1, 3)}; @%b{n} bra L{n};"
            return Block((f"mov.u32 %c{n}, 0; L{n}:", back), (self.body(self._some(place), inside),))
        trips = self.register(32)
        front = f"and.b32 %c{n}, {trips}, 3; mov.b32 %m{n}, {place.mask}; L{n}:"
        back = f"setp.ne.u32 %b{n}, %c{n}, 0; sub.u32 %c{n}, %c{n}, 1;"
        if not place.in_function:
            back += f" vote.sync.ballot.b32 %m{n}, %b{n}, %m{n};"
        return Block((front, f"{back} @%b{n} bra L{n};"), (self.body(self._some(place), self._within(place, n)),))

    def switch(self, place: Place) -> Statement:
        """Return an indexed branch to one of three bodies."""
        n = self._next()
        index = f"and.b32 %c{n}, {self.register(32)}, 3; min.u32 %c{n}, %c{n}, 2;"
        mask = f"match.any.sync.b32 %m{n}, %c{n}, {place.mask};" * (not place.in_function)
        labels = [f"L{n}_{k}" for k in range(3)]
        front = f"{index} {mask} T{n}: .branchtargets {', '.join(labels)}; brx.idx %c{n}, T{n}; {labels[0]}:"
        middle = [f"bra E{n}; {label}:" for label in labels[1:]]
        bodies = tuple(self.body(self.random.randint(1, 2), self._within(place, n)) for _ in labels)
        return Block((front, *middle, f"E{n}:"), bodies)

    def call(self, place: Place) -> Statement:
        name = self.random.choice(list(self.functions))
        r, d = self.register(32), self.register(64)
        return Line(call(name, str(r), str(d), str(self.register(32)), str(self.register(64))))
