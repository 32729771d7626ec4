"""HTML of values in notebooks: compact, escaped, and displayed without tracing."""

import re
from base64 import b64decode
from html.parser import HTMLParser

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr, u32
from ptxdsl.emulate.report import Finding, LineCounters, Report
from ptxdsl.schedule import (
    GroupedProblemVisitor,
    HorizontalThreadblockSwizzle,
    PersistentScheduler,
    StreamKThreadblockSwizzle,
)

TEXT = '<script>alert("x & y")</script>'


@pd.kernel
def shifted(x: ptr[f32], n: u32, *, BY: int = 1):
    """Add BY to x[i] for i < n & nothing else."""
    with pd.if_(pd.tid.x < n):
        x[pd.tid.x] = x[pd.tid.x] + float(BY)


class Checker(HTMLParser):
    """Raises for a tag that is not closed, and collects tags and text."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def emulated(**options):
    return pd.emulate(shifted, 1, 32, np.zeros(31, np.float32), 32, **options)


def test_a_finding_keeps_its_text_and_its_columns():
    (finding, *_) = emulated().findings
    shown = Checker(finding._repr_html_())
    assert shown.tags == ["pre"]
    assert shown.text == str(finding)


@pytest.mark.parametrize(
    "value",
    [
        Finding("assert", TEXT, help=TEXT),
        Report(findings=[Finding("assert", TEXT)], output=TEXT),
    ],
)
def test_text_is_escaped(value):
    shown = Checker(value._repr_html_())
    assert "script" not in shown.tags
    assert TEXT in shown.text


def test_a_report_shows_findings_counters_and_output():
    report = emulated(traffic=True)
    shown = Checker(report._repr_html_())
    assert shown.text.startswith(str(report).partition("\n")[0])
    assert all(str(finding) in shown.text for finding in report.findings)
    assert shown.tags.count("tr") == 1 + len(report.counters)
    assert "table" not in Checker(emulated()._repr_html_()).tags


def test_a_report_with_many_findings_shows_twenty():
    report = Report(findings=[Finding("race", f"number {n}") for n in range(23)])
    shown = Checker(report._repr_html_())
    assert shown.tags.count("pre") == 20
    assert "… and 3 more findings" in shown.text


def test_counters_are_a_table_of_at_most_fifty_lines():
    counters = emulated(traffic=True).counters
    assert Checker(counters._repr_html_()).tags.count("td") == 5 * len(counters)
    assert Checker(counters[0]._repr_html_()).tags.count("td") == 5
    many = type(counters)(counters[:1] * 60)
    assert Checker(many._repr_html_()).tags.count("tr") == 51
    assert "… and 10 more lines" in Checker(many._repr_html_()).text
    assert isinstance(counters[0], LineCounters)


def test_a_kernel_shows_its_signature_and_the_latest_ptx_that_there_is():
    shifted._variants.clear()
    shown = Checker(shifted._repr_html_())
    assert shown.text == (
        "@pd.kernel\ndef shifted(x: ptr[f32], n: u32, *, BY: int = 1)\n\nAdd BY to x[i] for i < n & nothing else."
    )
    assert not shifted._variants
    text = shifted.ptx("sm_90a", BY=3)
    shown = Checker(shifted._repr_html_())
    assert "PTX for sm_90a" in shown.text
    assert text in shown.text


def test_a_parsed_kernel_shows_its_parameters():
    kernel = pd.parse(shifted.ptx())["shifted"]
    assert Checker(kernel._repr_html_()).text == ".entry shifted(x: u64, n: u32)"


UNIT = (1, 1, 1)
PLANS = {
    "swizzle": lambda n: HorizontalThreadblockSwizzle().map((n, n, 1), UNIT),
    "persistent": lambda n: PersistentScheduler().plan((n, n, 1), UNIT, 6),
    "stream-k": lambda n: StreamKThreadblockSwizzle(4).plan((n, n, 6), UNIT),
    "grouped": lambda n: GroupedProblemVisitor([(n, n, 4)] * 2, UNIT, 6),
    "timeline": lambda n: GroupedProblemVisitor([(n, n, 4)] * 2, UNIT, 6).timeline(),
}


@pytest.mark.parametrize("plan", PLANS)
def test_a_schedule_is_an_image_whose_styles_stay_apart(plan):
    (encoded,) = re.findall(r'^<img alt="" src="data:image/svg\+xml;base64,(\S+)">$', PLANS[plan](3)._repr_html_())
    assert b64decode(encoded).decode().startswith("<svg ")


@pytest.mark.parametrize("plan", PLANS)
def test_a_schedule_that_is_too_large_says_so(plan):
    shown = Checker(PLANS[plan](300)._repr_html_())
    assert shown.tags == ["pre"]
    assert "too many" in shown.text or "at most" in shown.text or "limit" in shown.text
