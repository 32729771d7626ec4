"""Random programs: many lanes that diverge compute what each computes alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulate.support import clean, run

REGISTERS = range(2, 8)
register = st.sampled_from([f"%r{n}" for n in REGISTERS])
value = st.one_of(register, st.integers(0, 9).map(str), st.just("%r1"))
comparison = st.tuples(st.sampled_from(["lt", "ge", "eq", "ne"]), register, value)
computation = st.tuples(st.sampled_from(["add", "sub", "xor", "min", "mov"]), register, value, value)


def blocks(statements):
    body = st.lists(statements, max_size=4)
    return st.one_of(
        st.tuples(st.just("if"), comparison, body, body),
        st.tuples(st.just("loop"), st.integers(0, 3), body),
        st.tuples(st.just("guarded"), comparison, computation),
        st.tuples(st.just("call"), register),
        st.tuples(st.just("stop"), comparison),
    )


statement = st.recursive(computation, blocks, max_leaves=12)
TYPES = {"add": "u32", "sub": "u32", "xor": "b32", "min": "u32", "mov": "u32"}


class Writer:
    """PTX of a random program. Loops of a lane go on for as many rounds as the program says plus a bit of its number."""

    def __init__(self):
        self.lines, self.names = [], 0

    def name(self):
        self.names += 1
        return f"L{self.names}"

    def compare(self, comparison):
        relation, one, other = comparison
        self.lines.append(f"setp.{relation}.u32 %p1, {one}, {other};")

    def compute(self, computation, guard=""):
        name, d, a, b = computation
        self.lines.append(f"{guard}{name}.{TYPES[name]} {d}, {a}{'' if name == 'mov' else f', {b}'};")

    def write(self, statements):
        for kind, *parts in statements:
            {"if": self.choice, "loop": self.loop, "guarded": self.guarded, "call": self.call, "stop": self.stop}.get(
                kind, lambda *parts, kind=kind: self.compute((kind, *parts))
            )(*parts)

    def choice(self, comparison, then, otherwise):
        other, done = self.name(), self.name()
        self.compare(comparison)
        self.lines.append(f"@%p1 bra {other};")
        self.write(otherwise)
        self.lines += [f"bra {done};", f"{other}:"]
        self.write(then)
        self.lines.append(f"{done}:")

    def loop(self, rounds, body):
        start, counter = self.name(), f"%r{16 + self.names % 16}"
        self.lines += [f"and.b32 {counter}, %r1, 3;", f"add.u32 {counter}, {counter}, {rounds};", f"{start}:"]
        self.write(body)
        self.lines += [f"setp.eq.u32 %p2, {counter}, 0;", f"sub.u32 {counter}, {counter}, 1;", f"@!%p2 bra {start};"]

    def guarded(self, comparison, computation):
        self.compare(comparison)
        self.compute(computation, guard="@%p1 ")

    def call(self, register):
        self.lines.append(f"call ({register}), collatz, ({register});")

    def stop(self, comparison):
        self.compare(comparison)
        self.lines.append("@%p1 bra END;")


COLLATZ = (
    ".func (.reg .u32 d) collatz (.reg .u32 a) { .reg .pred p; .reg .u32 t; and.b32 a, a, 15; mov.u32 d, 0;"
    " AGAIN: setp.le.u32 p, a, 1; @p ret; add.u32 d, d, 1; and.b32 t, a, 1; setp.eq.u32 p, t, 0;"
    " @p bra EVEN; mad.lo.u32 a, a, 3, 1; bra AGAIN; EVEN: shr.u32 a, a, 1; bra AGAIN; }"
)
BEGIN = "ld.param.u64 %rd1, [x]; ld.param.u32 %r8, [first]; mov.u32 %r1, %tid.x; add.u32 %r1, %r1, %r8;"
SET = "".join(f"mul.lo.u32 %r{n}, %r1, {n + 1};" for n in REGISTERS)
END = "END: add.u32 %r9, %r2, %r3;" + "".join(f"mad.lo.u32 %r9, %r9, 31, %r{n};" for n in REGISTERS)
STORE = "mov.u32 %r10, %tid.x; mul.wide.u32 %rd2, %r10, 4; add.u64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r9;"


@pytest.mark.exhaustive
@settings(max_examples=60)
@given(st.lists(statement, min_size=1, max_size=6), st.sampled_from([9, 40]))
def test_lanes_that_diverge_compute_what_each_computes_alone(program, lanes):
    writer = Writer()
    writer.write(program)
    body = "\n".join([BEGIN, SET, *writer.lines, END, STORE])
    together = np.zeros(lanes, np.uint32)
    options = {"parameters": "x: u64, first: u32", "module": COLLATZ}
    clean(run(body, together, 0, block=lanes, **options))
    for lane in range(0, lanes, 4):
        alone = np.zeros(1, np.uint32)
        clean(run(body, alone, lane, block=1, **options))
        assert together[lane] == alone[0]
