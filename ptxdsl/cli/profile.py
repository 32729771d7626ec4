"""The command `ptxdsl profile`: count the cost of a launch line by line, and bound its time on a GPU."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import Any

from ptxdsl import driver
from ptxdsl.check.examples import Example
from ptxdsl.cli.launches import TARGETS, add_example, add_launch, one_launch, running, using_arch
from ptxdsl.cli.options import STDOUT, add_format, check_formats, write
from ptxdsl.cli.process import FAILURE, UsageError
from ptxdsl.cli.progress import LaunchProgress
from ptxdsl.errors import Error
from ptxdsl.kernel import AnyKernel
from ptxdsl.profile import KernelProfile, peaks_of, profile_of
from ptxdsl.profile.formats import as_json, as_text
from ptxdsl.profile.page import as_html
from ptxdsl.profile.roofline import names
from ptxdsl.runtime.emulation import emulator_call
from ptxdsl.runtime.shape import launch_shape
from ptxdsl.runtime.timing import GpuClock, at_rest
from ptxdsl.runtime.variant import Variant

DESCRIPTION = "Count the cost of a launch by Python line on the emulator, and compare it with the peak rates of a GPU."
EMULATOR_OPTIONS = ("checks", "overlap", "schedule", "max_steps", "max_seconds", "shared_bytes", "cluster")
EPILOG = f"""{TARGETS}
The table has a row for each line: thread instructions; bytes of global and shared memory; sectors (32 bytes of global
memory) and wavefronts (of shared memory), with the minimum for these accesses in brackets; operations. The floor is a
lower bound on the time: the slowest of memory (each byte moved once), shared memory wavefronts, tensor cores and CUDA
cores at peak rate. With a GPU, the launch is also timed on it, on copies of the arrays: the median of several launches,
each after a pause and with a cold L2 cache.

exit code: 0 no findings, 1 findings, 2 the command line is wrong

examples
  ptxdsl profile kernels.py:saxpy
  ptxdsl profile kernels.py:saxpy --gpu a100 --html saxpy.html
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_launch(parser)
    add_example(parser)
    parser.add_argument(
        "--gpu", metavar="NAME", help=f"GPU to compare with: {', '.join(names())} (default: this machine's, else h200)"
    )
    add_format(parser, "json", "print JSON")
    parser.add_argument("--html", metavar="FILE", help="write an HTML page that shows the source with its costs")


def run(options: argparse.Namespace) -> int:
    """Print the profile; return 1 if the launch has an error."""
    check_formats(options, "json", "html")
    with using_arch(options):
        profile, variant = profiled(options)
    if options.json is not None:
        write(options.json, as_json(profile))
    if options.html is not None:
        write(options.html, as_html(profile, _listings(variant)))
    if STDOUT not in (options.json, options.html):
        write(None, as_text(profile))
    return FAILURE if any(finding.is_error for finding in profile.findings) else 0


def _listings(variant: Variant) -> dict[str, str]:
    """Return the PTX of a kernel, and its SASS if there is an assembler and a disassembler."""
    try:
        return {"PTX": variant.text, "SASS": variant.cubin.sass()}
    except Error as missing:
        return {"PTX": variant.text, "SASS (not available)": missing.message}


def profiled(options: argparse.Namespace) -> tuple[KernelProfile, Variant]:
    """Count the launch that the options name and, if there is a GPU, time it. Return the profile and the program."""
    try:
        peaks = peaks_of(options.gpu)
    except Error as error:
        raise UsageError(error.message, help=error.help) from None
    name, kernel, example = one_launch(options)
    emulator_options = {key: value for key, value in example.keywords.items() if key in EMULATOR_OPTIONS}
    constants = {key: value for key, value in example.keywords.items() if key not in (*EMULATOR_OPTIONS, "traffic")}
    launch = f"{name}{example}"
    with LaunchProgress("profiling").launch(launch), running(name, options):
        call = emulator_call(
            "ptxdsl profile", kernel, example.grid, example.block, example.arguments, traffic=True,
            constants=constants, **emulator_options,
        )  # fmt: skip
        measured, why_not = measured_us(kernel, example, constants, options)
        profile = profile_of(name, launch, call.variant, call.shape, call.run(), peaks)
    return replace(profile, measured=measured, why_not=why_not), call.variant


def measured_us(
    kernel: AnyKernel, example: Example, constants: dict[str, Any], options: argparse.Namespace
) -> tuple[float | None, str]:
    """Return the microseconds of the launch on the first GPU, or the reason that it was not measured."""
    if reason := driver.why_no_gpu():
        return None, reason
    gpu = driver.device(0)
    if options.gpu is not None and peaks_of(options.gpu).name != gpu.name:
        return None, f"the GPU here is {gpu.name}"
    try:
        variant = kernel.variant(options.arch or gpu.arch, constants)
        asked = example.keywords.get("shared_bytes"), example.keywords.get("cluster")
        shape = launch_shape(example.grid, example.block, variant.shared_bytes(asked[0]), asked[1])
        overlap = bool(example.keywords.get("overlap"))
        handle = variant.compiled(gpu.arch)
        with handle.on_copies(shape, example.arguments, overlap=overlap) as (launch, _), GpuClock() as clock:
            (time,) = at_rest(clock, [launch])
    except Error as error:
        return None, error.message
    return (time, "") if math.isfinite(time) else (None, "the driver returned no time")
