"""Damaged PTX: each mutant of the corpus is read, or refused in words, within limits of time and memory.

`python -m tests.fuzz.damage SEED COUNT` prints a line for each mutant that is neither, and how to make it again.
"""

import random
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).parents[1]
SECONDS = (
    10  # of a processor: the longest of the texts takes three or four, or half as long again where caches are shared
)
BYTES = 1 << 30

TOKENS = (
    "{", "}", "(", ")", "[", "]", "<", ">", ",", ";", ":", "=", "+", "-", "~", "!", "@", "%", "|", "?", '"', "//", "/*",
    ".reg", ".param", ".shared", ".align", ".v4", ".b8", ".f32", ".pred", ".loc", ".file", ".section", ".entry", ".func",
    ".extern", ".version", ".target", ".global", "generic", "mask", "0f", "0x", "08", "1e999", "-0", "%r1", "%r0001", "_",
    "%tid", "%tid.x", "WARP_SZ", "ret", "call", "bra", "mov.u32", "\0", "\x0b", "ä", "٣", "\u2028", "\udc80", "\x1b[2J",
)  # fmt: skip
RUNS = ("{", "(", "[", "~", "-", " ", "\n", "9", "0x", "f", ",1", ".x", "%r", "@", "<1>", "{}", "()", "/**/", "L:", ";")


def flip(text: str, other: str, r: random.Random) -> str:
    """Some characters are others."""
    characters = list(text)
    for _ in range(r.randint(1, 8)):
        characters[r.randrange(len(characters))] = chr(r.choice([r.randrange(128), r.randrange(0x250)]))
    return "".join(characters)


def insert(text: str, other: str, r: random.Random) -> str:
    """A token stands where none belongs."""
    for _ in range(r.randint(1, 4)):
        at = r.randrange(len(text))
        text = f"{text[:at]}{r.choice(TOKENS)}{text[at:]}"
    return text


def repeat(text: str, other: str, r: random.Random) -> str:
    """Something small stands there many times."""
    at = r.randrange(len(text))
    return text[:at] + r.choice(RUNS) * r.choice([10, 300, 5000, 100_000]) + text[at:]


def delete(text: str, other: str, r: random.Random) -> str:
    """A piece is missing."""
    start = r.randrange(len(text))
    return text[:start] + text[start + r.choice([1, 5, 50, 500]) :]


def splice(text: str, other: str, r: random.Random) -> str:
    """A piece of another file stands in this one."""
    start = r.randrange(len(other))
    at = r.randrange(len(text))
    return text[:at] + other[start : start + r.choice([5, 50, 1000])] + text[at:]


def swap(text: str, other: str, r: random.Random) -> str:
    """Two lines have changed places."""
    lines = text.split("\n")
    a, b = r.randrange(len(lines)), r.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def enlarge(text: str, other: str, r: random.Random) -> str:
    """A number is huge, negative, or none."""
    digits = [n for n, c in enumerate(text) if c.isdigit()]
    at = r.choice(digits or [0])
    number = r.choice(
        ["9" * 30, "9" * 5000, "0x" + "f" * 17, "-1", "010", "08", "1e400", "10000000", "4294967296", "0"]
    )
    return text[:at] + number + text[at + 1 :]


def cut(text: str, other: str, r: random.Random) -> str:
    """The end is missing."""
    return text[: r.randrange(len(text))]


MUTATIONS: tuple[Callable[[str, str, random.Random], str], ...] = (
    flip, insert, repeat, delete, splice, swap, enlarge, cut,
)  # fmt: skip


def corpus() -> list[str]:
    """The texts that are mutated: those of the repository, none of them long."""
    files = [*HERE.glob("corpus/ptx/*.ptx"), *HERE.glob("golden/*.ptx")]
    return [text for file in sorted(files) if len(text := file.read_text()) < 40_000]


def mutant(seed: int, texts: list[str]) -> str:
    """The mutant of a number."""
    r = random.Random(seed)
    text = r.choice(texts)
    for _ in range(r.choice([1, 1, 2, 3])):
        text = r.choice(MUTATIONS)(text, r.choice(texts), r) or " "
    return text


def failures(first: int, count: int) -> Iterator[str]:
    """What went wrong with each of some mutants."""
    from ptxdsl.errors import Error
    from ptxdsl.lower import lower
    from ptxdsl.parse import parse

    texts, handler = corpus(), signal.signal(signal.SIGPROF, _too_late)
    for seed in range(first, first + count):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            printed = lower(parse(mutant(seed, texts)))
            if lower(parse(printed)) != printed:
                yield f"{seed}: it is read in another way when it is printed again"
        except Error as refusal:
            if not str(refusal) or (refusal.at is None and "target" not in str(refusal)):
                yield f"{seed}: refused without a place: {refusal}"
        except BaseException as error:
            yield f"{seed}: {type(error).__name__}: {str(error)[:200]}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, handler)


def _too_late(number: int, frame: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, resource.RLIM_INFINITY))


if __name__ == "__main__":
    import ptxdsl.parse  # noqa: F401  # what it takes up does not count

    _limit_memory()
    problems = list(failures(int(sys.argv[1]), int(sys.argv[2])))
    print("\n".join(problems))
    sys.exit(bool(problems))
