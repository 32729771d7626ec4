"""Findings as text, JSON, SARIF 2.1.0 and GitHub annotations."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ptxdsl import __version__
from ptxdsl.check.examples import REFUSED, Checked
from ptxdsl.emulate.report import Finding
from ptxdsl.errors import Location

SARIF_VERSION = "2.1.0"
SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"


def as_text(results: Sequence[Checked]) -> str:
    """Format each launch with its findings; a refusal that repeats for each launch of a kernel appears once."""
    text, before = "", ""
    for result in results:
        findings = "".join(f"{finding}\n" for finding in result.findings)
        is_repeated = findings == before and all(finding.kind == REFUSED for finding in result.findings)
        text += f"{result}, as above\n" if findings and is_repeated else f"{result}\n{findings}"
        before = findings
    return text


def as_json(results: Sequence[Checked]) -> str:
    launches = [
        {
            "kernel": result.kernel,
            "launch": f"{result.kernel}{result.example}",
            "instructions": result.instructions,
            "findings": [_finding(finding) for finding in result.findings],
        }
        for result in results
    ]
    return json.dumps({"ptxdsl": __version__, "launches": launches}, indent=1) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    first = finding.threads[0] if finding.threads else None
    return {
        "kind": finding.kind,
        "degree": finding.degree,
        "message": finding.message,
        "help": finding.help,
        "locations": [_located(location) for location in finding.locations],
        "threads": finding.count,
        "first_thread": {"block": first.block, "thread": first.thread} if first else None,
    }


def _located(location: Location) -> dict[str, Any]:
    """Format a location. Lines and columns count from 1; `end_column` is one past the last."""
    start, end = location.columns
    known = {"column": start + 1, "end_column": end + 1} if end else {}
    return {"file": _path(location.file), "line": location.line, **known, "source": location.text.strip()}


def as_sarif(results: Sequence[Checked]) -> str:
    """Format one SARIF run with a result for each finding. Locations after the first are related locations."""
    located = [(result, finding) for result in results for finding in result.findings]
    rules = [{"id": kind} for kind in dict.fromkeys(finding.kind for _, finding in located)]
    tool = {"driver": {"name": "ptxdsl", "version": __version__, "semanticVersion": __version__, "rules": rules}}
    run = {"tool": tool, "columnKind": "unicodeCodePoints", "results": [_result(*each) for each in located]}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": SARIF_VERSION, "runs": [run]}, indent=1) + "\n"


def _result(result: Checked, finding: Finding) -> dict[str, Any]:
    locations = [_sarif_location(location) for location in finding.locations if location.line > 0]
    related = {"relatedLocations": locations[1:]} if locations[1:] else {}
    return {
        "ruleId": finding.kind,
        "level": _level(finding),
        "message": {"text": _message(result, finding)},
        "locations": locations[:1],
        **related,
    }


def _level(finding: Finding) -> str:
    """The level of a finding in SARIF and on GitHub."""
    return "error" if finding.is_error else "warning"


def _sarif_location(location: Location) -> dict[str, Any]:
    start, end = location.columns
    columns = {"startColumn": start + 1, "endColumn": end + 1} if end else {}
    region = {"startLine": location.line, **columns}
    path = _path(location.file)
    uri = Path(path).as_uri() if os.path.isabs(path) else quote(path)
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}


def as_github(results: Sequence[Checked]) -> str:
    """Format a GitHub workflow command for each finding, which GitHub shows at its line."""
    return "".join(_annotation(result, finding) for result in results for finding in result.findings)


def _annotation(result: Checked, finding: Finding) -> str:
    properties = {"title": f"ptxdsl: {finding.kind}"}
    if finding.locations:
        first = finding.locations[0]
        start, end = first.columns
        properties |= {"file": _path(first.file), "line": str(first.line)}
        properties |= {"col": str(start + 1), "endColumn": str(end + 1)} if end else {}
    listed = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    others = "".join(f"\nand {location.excerpt().strip()}" for location in finding.locations[1:])
    return f"::{_level(finding)} {listed}::{_escaped(_message(result, finding) + others)}\n"


def _message(result: Checked, finding: Finding) -> str:
    """Return the message, the threads, the launch and the fix of a finding."""
    who = f", by {finding.who}" if finding.threads and not finding.says_who else ""
    where = "" if finding.kind == REFUSED else f" ({result.kernel}{result.example})"
    return f"{finding.message}{who}{where}" + (f"; help: {finding.help}" if finding.help else "")


def _escaped(text: str, also: str = "") -> str:
    """Escape a value for a workflow command."""
    for letter in f"%\r\n{also}":
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text


def _path(file: str) -> str:
    """Return the path relative to the current folder if the file is inside it."""
    path = Path(file)
    inside = path.is_absolute() and path.is_relative_to(os.getcwd())
    return path.relative_to(os.getcwd()).as_posix() if inside else file
