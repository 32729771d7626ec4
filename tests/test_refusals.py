"""What the author of a kernel reads when it cannot be traced: the full text of each error.

A case in `refusals/tracing.txt` is a title, the body of `def k(x: ptr[f32], n: u32)`, and behind `---` what is printed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.tracing import refusal

TABLE = Path(__file__).parent / "refusals" / "tracing.txt"


def cases():
    for case in TABLE.read_text().split("=== ")[1:]:
        title, _, rest = case.partition("\n")
        body, _, text = rest.partition("\n---\n")
        yield pytest.param(body, text.strip("\n"), id=title)


@pytest.mark.parametrize("body, text", list(cases()))
def test_what_cannot_be_traced_is_refused_in_words(body, text):
    assert without_carets(refusal(body)) == without_carets(text)


def without_carets(text):
    """The text; on Pythons that place some calls more exactly than 3.11 does, without the marks under the line."""
    if sys.version_info < (3, 12):
        return text
    return "\n".join(line for line in text.splitlines() if set(line) - {" ", "^"})
