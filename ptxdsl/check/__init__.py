"""Checking kernels on the emulator with example arguments, for the command `ptxdsl check` and for tests.

The example function of a kernel `saxpy` is `example_saxpy(rng)` in the same module. It takes a numpy random generator,
and returns (or yields, one by one) the arguments of pd.emulate() after the kernel: grid, block, the kernel's arguments,
and a dict of keyword arguments last.
"""

from ptxdsl.check.examples import Checked, Example, checked, examples_of, name_of_examples
from ptxdsl.check.formats import as_text

__all__ = ["Checked", "Example", "as_text", "checked", "examples_of", "name_of_examples"]
