"""A pytest fixture that checks kernels on the emulator. In a conftest.py: `pytest_plugins = ["ptxdsl.testing"]`.

It is not registered as a plugin, because pytest would then rewrite assertions in every module of ptxdsl, in all
projects.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from ptxdsl.driver import Late

if TYPE_CHECKING:
    from ptxdsl.check import Checked

check: Any = Late("ptxdsl.check")  # imported on first use: the emulator loads slowly
SEED = 0


class Check:
    """The type of the fixture `ptx_check`."""

    def __call__(self, kernel: Any, grid: Any, block: Any, *arguments: Any, **keywords: Any) -> Checked:
        """Run a launch on the emulator, with the arguments of pd.emulate(); the test fails with its findings.

        Arrays are written as by a launch.
        """
        example = check.Example(grid, block, arguments, keywords)
        return self._passed([check.checked(kernel, _name(kernel), example)])[0]

    def examples(self, kernel: Any, seed: int = SEED) -> list[Checked]:
        """Run the launches of `example_NAME(rng)` in the kernel's module."""
        name = _name(kernel)
        wanted = check.name_of_examples(name)
        maker = getattr(sys.modules[kernel.__module__], wanted, None)
        if maker is None:
            pytest.fail(f"there is no {wanted}(rng) in {kernel.__module__}", pytrace=False)
        return self._passed([check.checked(kernel, name, example) for example in check.examples_of(maker, seed)])

    def _passed(self, results: list[Checked]) -> list[Checked]:
        failed = [result for result in results if result.failed]
        if failed:
            pytest.fail(check.as_text(failed).rstrip(), pytrace=False)
        return results


@pytest.fixture
def ptx_check() -> Check:
    """Return a checker: `ptx_check(kernel, grid, block, *arguments)` runs a launch on the emulator and fails on
    findings."""
    return Check()


def _name(kernel: Any) -> str:
    return str(getattr(kernel, "name", kernel))
