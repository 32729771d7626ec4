"""What the author of a wrong instruction for Hopper or Blackwell reads: the full text, at the Python line.

A case in `refusals/hopper.txt` is a title with the target in brackets, lines of a kernel with the parameters HEAD, and
behind `---` what is printed. `acc` are variables for sums, `p` is a predicate.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_refusals import without_carets
from tests.tracing import refusal

TABLE = Path(__file__).parents[1] / "refusals" / "hopper.txt"
HEAD = "x: u64, n: u32, a: u64, b: u64, tile: u32, full: u32, map: u64, policy: u64, mask: u16, f: f32"
BEFORE = "acc, p = [pd.var(f32, 0.0) for _ in range(4)], n < 3\n"


def cases():
    for case in TABLE.read_text().split("=== ")[1:]:
        title, _, rest = case.partition("\n")
        body, _, text = rest.partition("\n---\n")
        name, arch = re.fullmatch(r"(.*) \[(\w+)\]", title).groups()
        yield pytest.param(arch, body, text.strip("\n"), id=name)


@pytest.mark.parametrize("arch, body, text", list(cases()))
def test_what_is_wrong_is_refused_at_its_line(arch, body, text):
    assert without_carets(refusal(BEFORE + body, HEAD, arch)) == without_carets(text)
