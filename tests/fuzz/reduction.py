"""Reduce a failing program: delete statements, open control structures, simplify operands, make inputs constant.

`fails` runs a batch of candidates, perhaps in parallel, and says of each whether it fails as the original does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from time import monotonic

from .program import NAMES, ROW, TOTAL, Block, Body, Line, Program, Statement, lines, mentioned

Fails = Callable[[Sequence[Program]], list[bool]]
Path = tuple[int, ...]
"""The place of a statement: its index in a body, then for each level the index of the body in the block and in it."""

MAIN = ""
SIMPLE = ("0", "1")
CANONICAL = re.compile(r"\.nan\.|%zp;?$|%z32, 0x7fff7fff")
"""Parts of lines that replace a NaN by the canonical one: without them, payloads differ that the manual leaves open."""


class Reducer:
    """Reduces one program, `batch` candidates at a time, for at most some seconds."""

    def __init__(self, fails: Fails, batch: int = 1, seconds: float = 60) -> None:
        self.fails, self.batch, self.end = fails, batch, monotonic() + seconds

    def reduce(self, program: Program, thread: int) -> Program:
        """Return the smallest failing program that was found; `thread` gives the constants of inputs."""
        size = None
        while size != (size := len(program.text)) and monotonic() < self.end:
            program = self.delete(program)
            for candidates in (opened, simplified, lambda p: constant(p, thread)):
                program = self.first_of(program, candidates)
        return program

    def delete(self, program: Program) -> Program:
        """Delete runs of statements, long ones first."""
        length = len(list(places(program)))
        while length:
            program = self.first_of(program, lambda p, n=length: shortened(p, n))
            length //= 2
        return program

    def first_of(self, program: Program, candidates: Callable[[Program], Iterator[Program]]) -> Program:
        """Replace the program by a failing candidate as long as there is one."""
        tried: set[str] = {program.text}
        while True:
            new = (c for c in candidates(program) if not (c.text in tried or tried.add(c.text) or reads_no_carry(c)))
            while some := tuple(islice(new, self.batch)):
                if monotonic() > self.end:
                    return program
                failing = next((c for c, fails in zip(some, self.fails(some), strict=True) if fails), None)
                if failing is not None:
                    program = failing
                    break
            else:
                return program


def reads_no_carry(program: Program) -> bool:
    """True if a carry is read that no instruction of the same chain wrote: its value is undefined."""
    return any(re.match(r"(?:(?!\.cc\b).)*?\b(addc|subc|madc)\.", text) for text in lines(program.body))


def bodies(program: Program) -> dict[str, Body]:
    """Return the body of the kernel and of the functions that it calls."""
    return {MAIN: program.body, **program.called()}


def with_bodies(program: Program, changed: Mapping[str, Body]) -> Program:
    return replace(program, body=changed[MAIN], functions={n: b for n, b in changed.items() if n != MAIN})


def places(program: Program) -> Iterator[tuple[str, Path]]:
    """Yield the place of each statement, an outer one before those in it."""

    def inside(body: Body, path: Path) -> Iterator[Path]:
        for n, statement in enumerate(body):
            yield (*path, n)
            if isinstance(statement, Block):
                for k, inner in enumerate(statement.bodies):
                    yield from inside(inner, (*path, n, k))

    for name, body in bodies(program).items():
        yield from ((name, path) for path in inside(body, ()))


def changed(program: Program, change: Callable[[str, Path, Statement], Body | None]) -> Program:
    """Replace statements by what `change` returns for them; None keeps one, and visits those in it."""

    def visit(name: str, body: Body, path: Path) -> Body:
        result: list[Statement] = []
        for n, statement in enumerate(body):
            here = (*path, n)
            instead = change(name, here, statement)
            if instead is not None:
                result += instead
            elif isinstance(statement, Block):
                inner = tuple(visit(name, b, (*here, k)) for k, b in enumerate(statement.bodies))
                result.append(replace(statement, bodies=inner))
            else:
                result.append(statement)
        return tuple(result)

    return with_bodies(program, {name: visit(name, body, ()) for name, body in bodies(program).items()})


def replaced(program: Program, place: tuple[str, Path], instead: Body) -> Program:
    """Replace one statement."""
    return changed(program, lambda name, path, _: instead if (name, path) == place else None)


def without(program: Program, gone: set[tuple[str, Path]]) -> Program:
    """Delete statements."""
    return changed(program, lambda name, path, _: () if (name, path) in gone else None)


def shortened(program: Program, length: int) -> Iterator[Program]:
    """Yield the program without each run of `length` statements."""
    every = list(places(program))
    for start in range(0, len(every), length):
        yield without(program, set(every[start : start + length]))


def opened(program: Program) -> Iterator[Program]:
    """Yield the program with each control structure replaced by one of its bodies."""
    for place in places(program):
        statement = at(program, place)
        for body in statement.bodies if isinstance(statement, Block) else ():
            yield replaced(program, place, body)


def simplified(program: Program) -> Iterator[Program]:
    """Yield the program with each guard removed, each constant and source replaced by 0 or 1, each offset by 0."""
    for place in places(program):
        statement = at(program, place)
        for text in simpler_texts(statement.text) if isinstance(statement, Line) else ():
            yield replaced(program, place, (Line(text),))


def at(program: Program, place: tuple[str, Path]) -> Statement:
    """Return the statement at a place."""
    name, (first, *rest) = place
    statement = bodies(program)[name][first]
    for k, n in zip(rest[::2], rest[1::2], strict=True):
        assert isinstance(statement, Block)
        statement = statement.bodies[k][n]
    return statement


def simpler_texts(text: str) -> Iterator[str]:
    """Yield simpler versions of a line."""
    if text.startswith("@"):
        yield text.partition(" ")[2]
    if "; " in text:
        pieces = text.rstrip(";").split("; ")
        dispensable = [n for n, piece in enumerate(pieces) if not CANONICAL.search(piece)]
        yield from ("; ".join([*pieces[:n], *pieces[n + 1 :]]) + ";" for n in dispensable)
    computed = re.match(r".*?(?=; setp?\.nan|$)", text)  # before NaNs are made canonical
    for match in re.finditer(r"(?<=[ ,{])-?(0[fdx][\dA-Fa-f]+|\d+)(?=[,;}])", text):
        if computed and match.start() > computed.end():
            continue
        kept = re.match(r"0[fd]", match[1])
        simple = [f"{kept[0]}{'0' * (len(match[1]) - 2)}"] if kept else [v for v in SIMPLE]
        if match[0] not in simple:
            yield from (text[: match.start()] + value + text[match.end() :] for value in simple)
    for match in re.finditer(r"%[hrdp](\d+)(?=[,;}.])", text):  # one name for several registers
        if match[1] == "0":
            continue
        if CANONICAL.search(text):  # in the whole line, so that the same result is canonical
            yield re.sub(rf"{match[0]}\b", match[0][:2] + "0", text)
        else:
            yield text[: match.start()] + match[0][:2] + "0" + text[match.end() :]


def constant(program: Program, thread: int) -> Iterator[Program]:
    """Yield the program with the inputs of a register replaced by those of one thread, then by simpler numbers."""
    used = mentioned(lines(program.body))
    inputs = program.arrays()[0].reshape(-1, TOTAL)
    for name in (n for n in NAMES if n in used and n[1] != "q"):
        width = {"p": 1, "h": 16, "r": 32, "d": 64}[name[1]]
        value = int(inputs[ROW[name], thread]) % (1 << width)
        known = program.constants.get(name)
        for number in [value] if known is None else [n for n in (0, 1) if n < known]:
            yield replace(program, constants={**program.constants, name: number})
