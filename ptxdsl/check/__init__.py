"""Kernels checked on the emulator with example arguments: for the command `ptxdsl check` and for tests.

A kernel `saxpy` has examples where a function `example_saxpy(rng)` stands beside it. It takes a numpy random generator,
and returns (or yields, one after another) what pd.emulate() takes behind the kernel: grid, block, arguments, and, where
there are keywords, a dict of those at the end.
"""

from ptxdsl.check.examples import Checked, Example, checked, examples_of, name_of_examples
from ptxdsl.check.formats import as_text

__all__ = ["Checked", "Example", "as_text", "checked", "examples_of", "name_of_examples"]
