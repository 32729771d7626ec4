"""Mutants of a kernel's text: one barrier, wait, fence, mask, bound, phase or swizzle is gone, weaker or elsewhere."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

LINE = re.compile(r"^\s*(?:@(?P<guard>!?[%\w.]+)\s+)?(?P<opcode>[a-z][\w.:]*)\s*(?P<operands>[^;]*);$")
BARRIER = re.compile(r"(bar|barrier)\.")
WAIT = re.compile(
    r"cp\.async\.(bulk\.)?(wait|commit|mbarrier)|cp\.async\.bulk\.(wait|commit)|wgmma\.(wait|commit)|griddep"
)
FENCE = re.compile(r"fence\.|membar\.|wgmma\.fence|tensormap\.cp_fence|fence\.proxy")
ACCESS = re.compile(
    r"(ld|st|atom|red|ldmatrix|stmatrix)\b(?!\.param)|cp\.(reduce\.)?async\.(ca|cg|bulk\.(shared|global|tensor))|wgmma\.mma|multimem|st\.async|red\.async"
)
ORDERED = re.compile(r"(ld|st|atom|red)\..*\b(acquire|release|acq_rel|relaxed)\b")
VOTES = re.compile(r"(shfl|vote|match|redux)\.sync|bar\.warp\.sync")
MEETING = re.compile(r"(bar|barrier)\.")
SHARED_ACCESS = re.compile(
    r"(ld|st|atom|red)\.(\w+\.)*shared|(ld|st)matrix|cp\.async\.(ca|cg|bulk\.(shared|global|tensor))|wgmma\.mma"
)
TELLS = re.compile(r"mbarrier\.(?!(test|try)_wait)|cp\.async\.mbarrier")
WAITS = re.compile(r"wait_(group|all)")
COPY = re.compile(r"cp\.async\.(ca|cg)|cp\.async\.bulk\.(shared|global|tensor)")
PHASE = re.compile(r"mbarrier\.(test|try)_wait\.parity")
INTEGERS = re.compile(r"\.[usb](16|32|64)$")
OTHER = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "lo": "ls", "ls": "lo", "hi": "hs", "hs": "hi"}
ORDERING = frozenset({"barrier", "wait", "fence", "order", "mask", "phase"})
"""Kinds whose mutants may give another number under some schedule only."""

_PAUSE = ("    nanosleep.u32 10;",) * 60  # others run meanwhile
_ALL_LANES = re.compile(r"(4294967295|0xffffffff|-1)$", re.I)
_SCRATCH = """    .reg .pred %mutant_p;
    .reg .b32 %mutant_r;
    mov.b32 %mutant_r, 0;
    setp.ne.b32 %mutant_p, %mutant_r, 0;"""
_TRAP = "    @{} trap;"


Lines: TypeAlias = dict[int, tuple[str, ...]]
"""What stands in the place of some lines, by their numbers."""


@dataclass(frozen=True)
class Mutant:
    """A kernel's text with one line changed: `changed`.

    `line` is the number of that line in the intact text, `source` the Python line it came from. `reached` is the intact
    kernel with a trap at the line; `same`, where there is one, with a trap for threads to which the change is one.
    """

    kind: str
    change: str
    line: int
    instruction: str
    source: str
    changed: Lines
    reached: Lines
    same: Lines | None = None

    def __str__(self) -> str:
        return f"{self.kind}: `{self.instruction}` {self.change} ({self.source})"


@dataclass(frozen=True)
class _Change:
    """A line becomes others; `probe` lines behind it trap where that makes a difference."""

    kind: str
    change: str
    lines: tuple[str, ...] = ()
    probe: tuple[str, ...] = ()
    before: bool = False  # the probe stands in front
    probes: Lines | None = None  # all lines with probes, where these are elsewhere


class Kernel:
    """The lines of a module's text, with what is known of each."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.parts = [LINE.match(line) for line in self.lines]
        sections = [line.startswith(".section") for line in ["", *self.lines]]
        self.bodies = [n + 1 for n, line in enumerate(self.lines) if line == "{" and not sections[n]]
        self.sources = list(self._sources())

    def _sources(self) -> Iterator[str]:
        files: dict[str, str] = {}
        source = "?"
        for line in self.lines:
            if match := re.match(r'\.file (\d+) "(.*)"', line):
                files[match[1]] = match[2].rpartition("/")[2]
            if match := re.match(r"\s*\.loc (\d+) (\d+)", line):
                source = f"{files.get(match[1], '?')}:{match[2]}"
            yield source

    def opcode(self, n: int) -> str:
        match = self.parts[n]
        return match["opcode"] if match else ""

    def with_lines(self, changed: Lines) -> str:
        """The text with other lines in the place of some, and scratch registers for them."""
        lines = [new for n, old in enumerate(self.lines) for new in (*self._scratch(n), *changed.get(n, (old,)))]
        return "\n".join(lines)

    def _scratch(self, n: int) -> tuple[str, ...]:
        return (_SCRATCH,) if n in self.bodies else ()

    def until_next(self, mutant: Mutant, watched: re.Pattern[str]) -> Lines:
        """The intact kernel with a trap at watched accesses between where ordering was and the next such ordering. An
        arrival at an mbarrier is one: it tells others what they may touch."""
        line, warp = mutant.line, "warp" in mutant.instruction or VOTES.match(self.opcode(mutant.line))
        again = MEETING if warp else re.compile(r"(bar|barrier)\.(sync|red|cluster)")
        lines = {}
        for n in range(len(self.lines)):
            opcode, own = self.opcode(n), self.lines[n]
            if n == line:
                lines[n] = (own, "    setp.eq.b32 %mutant_p, %mutant_r, %mutant_r;")
            elif again.match(opcode):
                lines[n] = (own, "    setp.ne.b32 %mutant_p, %mutant_r, %mutant_r;")
            elif watched.match(opcode) or TELLS.match(opcode):
                lines[n] = (_TRAP.format("%mutant_p"), own)
        return lines

    def unwaited(self, mutant: Mutant) -> Lines:
        """The intact kernel with a trap at a wait for groups or copies, in threads that have begun one since they waited so before.

        It is by threads: what one has waited for may be touched by all that it meets then, and not only by itself."""
        wait, allowed = self.opcode(mutant.line), self._pending(mutant.line)
        lines: Lines = {mutant.line: (_TRAP.format("%mutant_p"), self.lines[mutant.line])}
        begins = (
            f"{wait.partition('wait')[0]}{'c' if wait.endswith('_all') else 'commit'}"  # .ca, .cg and .commit_group
        )
        for n, match in enumerate(self.parts):
            if match is None or n == mutant.line:
                continue
            if match["opcode"].startswith(begins):
                lines[n] = (self.lines[n], "    setp.eq.b32 %mutant_p, %mutant_r, %mutant_r;")
            elif wait.startswith(match["opcode"]) and match["guard"] is None and self._pending(n) <= allowed:
                lines[n] = (self.lines[n], "    setp.ne.b32 %mutant_p, %mutant_r, %mutant_r;")
        return lines

    def _pending(self, n: int) -> int:
        """How many groups may be left behind a wait."""
        match = self.parts[n]
        return int(match["operands"] or 0) if match else 0

    def slowed(self, mutant: Mutant, lines: Lines) -> Lines:
        """These lines with a pause in front of the wait that a mutant changes, or of those by the parity that it does not
        toggle; none where it changes no phase."""
        by_it = [n for n in mutant.same or {} if PHASE.match(self.opcode(n))]
        waits = [mutant.line] if PHASE.match(self.opcode(mutant.line)) else by_it
        return {**lines, **{n: (*_PAUSE, *lines.get(n, (self.lines[n],))) for n in waits}} if waits else {}

    def traps_at(self, watched: re.Pattern[str]) -> Lines:
        """The intact kernel with a trap in front of certain instructions."""
        return {n: ("    trap;", line) for n, line in enumerate(self.lines) if watched.match(self.opcode(n))}

    def mutants(self, most: int = 1000) -> Iterator[Mutant]:
        """All mutants; of copies of one Python line at most so many, of those that do not order one."""
        seen: Counter[tuple[str, ...]] = Counter()
        for n, match in enumerate(self.parts):
            if match is None:
                continue
            for change, lines in self._changes(n, match):
                key = change.kind, change.change, match["opcode"], self.sources[n]
                seen[key] += 1
                if seen[key] <= (most if change.kind in ORDERING else 1):
                    yield self._mutant(n, match, change, lines)

    def _mutant(self, n: int, match: re.Match[str], change: _Change, lines: Lines) -> Mutant:
        own = self.lines[n]
        probed = (*change.probe, own) if change.before else (own, *change.probe)
        guarded = f"@{match['guard']} trap;" if match["guard"] and not change.before else "trap;"
        return Mutant(
            change.kind, change.change, n, own.strip(), self.sources[n], lines, {n: (guarded, own)},
            {n: probed} if change.probe else change.probes,
        )  # fmt: skip

    def _changes(self, n: int, match: re.Match[str]) -> Iterator[tuple[_Change, Lines]]:
        for change in changes(match, self.lines[n]):
            yield change, {n: change.lines}
        if toggled := _toggled(match):
            yield _Change("phase", "is not toggled", probes=self._waits_by(n, *toggled)), {n: _moved(match)}
        kind = ordering_kind(match["opcode"])
        if kind and match["guard"] is None:
            for step, where in ((-1, "before"), (1, "behind")):
                if (target := self._neighbour(n, step, kind)) is not None:
                    pair = (self.lines[target], self.lines[n])
                    moved = {n: (), target: pair if step > 0 else pair[::-1]}
                    yield _Change(kind, f"{where} {self.opcode(target)}"), moved
        if match["opcode"] == "bra" and match["guard"] and self._is_forward(n, match["operands"]):
            trap = (_TRAP.format(match["guard"]),)
            yield _Change("bound", "removed", (), trap, True), {n: ()}

    def _neighbour(self, n: int, step: int, kind: str) -> int | None:
        """The line of the next access, for waits and fences also of a barrier, that the line may be moved across."""
        n += step
        while self.parts[n] is not None or self.lines[n].lstrip().startswith(".loc"):
            opcode = self.opcode(n)
            if ACCESS.match(opcode) or (kind != "barrier" and BARRIER.match(opcode)):
                return n
            if opcode in ("bra", "ret", "exit", "call") or ordering_kind(opcode):
                return None
            n += step
        return None

    def _waits_by(self, n: int, target: str, parity: str) -> Lines:
        """The intact kernel with a trap at waits by a parity, or by what is computed from it, behind where it changed."""
        lines: Lines = {n: (self.lines[n], "    setp.eq.b32 %mutant_p, %mutant_r, %mutant_r;")}
        for at, match in enumerate(self.parts):
            if match and match["opcode"] == "selp.u32" and operands_of(match)[1] == target:  # it is chosen at times
                lines = {at: (self.lines[at], f"    or.pred %mutant_p, %mutant_p, {operands_of(match)[3]};")}
        waited = self._computed_from(parity)
        for at, match in enumerate(self.parts):
            if match and PHASE.match(match["opcode"]) and operands_of(match)[-1] in waited:
                lines[at] = (_TRAP.format("%mutant_p"), self.lines[at])
        return lines

    def _computed_from(self, register: str) -> set[str]:
        """That register, and all to which its value may come."""
        steps = [(first, set(rest)) for first, *rest in map(operands_of, filter(None, self.parts))]
        reached, before = {register}, 0
        while len(reached) > before:
            before = len(reached)
            reached |= {first for first, rest in steps if reached & rest}
        return reached

    def _is_forward(self, n: int, label: str) -> bool:
        return f"{label}:" in (line.strip() for line in self.lines[n:])


def operands_of(match: re.Match[str]) -> list[str]:
    """What an instruction is written with."""
    return [part.strip() for part in re.split(r",(?![^{\[]*[}\]])", match["operands"])]


def _toggled(match: re.Match[str]) -> tuple[str, str] | None:
    """The result and the parity, where an instruction toggles one."""
    if match["opcode"] != "xor.b32":
        return None
    target, parity, other = operands_of(match)
    return (target, parity) if other == "1" else None


def _moved(match: re.Match[str]) -> tuple[str]:
    target, first, *_ = operands_of(match)
    return (f"    mov.b32 {target}, {first};",)


def ordering_kind(opcode: str) -> str:
    """Which kind of ordering an instruction is, if any."""
    for kind, pattern in (("barrier", BARRIER), ("wait", WAIT), ("fence", FENCE)):
        if pattern.match(opcode):
            return kind
    return ""


def changes(match: re.Match[str], line: str) -> Iterator[_Change]:
    """What a line may become in its place."""
    opcode, guard = match["opcode"], match["guard"]
    operands = operands_of(match)
    if kind := ordering_kind(opcode):
        yield _Change(kind, "removed")
    if opcode.endswith("wait_group") or ".wait_group" in opcode:
        number = int(operands[-1])
        yield _Change("wait", f"is {number + 1}", (line.replace(f" {number};", f" {number + 1};"),))
    yield from _weaker(opcode, line)
    if VOTES.match(opcode) and _ALL_LANES.search(operands[-1]):
        yield _Change("mask", "of 16 lanes", (_ALL_LANES.sub("65535", line.rstrip(";")) + ";",))
    if guard and ACCESS.match(opcode):
        trap = (_TRAP.format(guard[1:] if guard.startswith("!") else f"!{guard}"),)
        yield _Change("bound", "without its guard", (line.replace(f"@{guard} ", ""),), trap, True)
    yield from _arithmetic(opcode, operands, line)


def _weaker(opcode: str, line: str) -> Iterator[_Change]:
    """Orderings that become relaxed, or narrower."""
    kind = "fence" if FENCE.match(opcode) else "order" if ORDERED.match(opcode) else ""
    if kind == "order":
        for strong in ("acq_rel", "acquire", "release"):
            if f".{strong}" in opcode:
                yield _Change(kind, "relaxed", (line.replace(f".{strong}", ".relaxed"),))
    if kind and (scope := re.search(r"\.(cluster|gpu|sys)(?=\.|$)", opcode)) and "proxy" not in opcode:
        narrow = opcode[: scope.start()] + ".cta" + opcode[scope.end() :]
        yield _Change(kind, "of the block", (line.replace(opcode, narrow),))


def _arithmetic(opcode: str, operands: list[str], line: str) -> Iterator[_Change]:
    """Bounds that are one off or gone, and swizzles that are gone."""
    target = operands[0]
    if (match := re.match(r"setp\.(\w\w)\.", opcode)) and match[1] in OTHER and INTEGERS.search(opcode):
        other = line.replace(f"setp.{match[1]}", f"setp.{OTHER[match[1]]}", 1)
        if re.fullmatch(r"%\w+", target) and target not in operands[1:]:
            again = re.sub(rf"{re.escape(target)}\b", "%mutant_p", other, count=1)
            probe = (again, f"    xor.pred %mutant_p, %mutant_p, {target};", _TRAP.format("%mutant_p"))
            yield _Change("bound", f"is {OTHER[match[1]]}", (other,), probe)
    if opcode.startswith(("min.", "max.")) and INTEGERS.search(opcode):
        yield _gone("bound", opcode, operands)
    if opcode.startswith("selp.") and operands[2] == "0" and operands[3].startswith("%"):
        trap = (_TRAP.format(f"!{operands[3]}"),)
        yield _Change("bound", "always the first", (f"    mov.{opcode[5:]} {target}, {operands[1]};",), trap, True)
    if opcode == "xor.b32" and operands[2] != "1":
        yield _gone("swizzle", opcode, operands)
    if PHASE.match(opcode):
        parity = operands[-1]
        flipped = line.replace(f", {parity};", ", %mutant_r;")
        yield _Change("phase", "of the other parity", (f"    xor.b32 %mutant_r, {parity}, 1;", flipped))


def _gone(kind: str, opcode: str, operands: list[str]) -> _Change:
    """The result is the first operand."""
    target, first, *_ = operands
    type = opcode.rpartition(".")[2]
    probe = (f"    setp.ne.{type} %mutant_p, {target}, {first};", _TRAP.format("%mutant_p"))
    return _Change(kind, "removed", (f"    mov.{type} {target}, {first};",), probe if target != first else ())
