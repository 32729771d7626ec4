"""In the quick tier, the emulator checks each kernel for races and uninitialised reads at its first launch only.

The checks take half of the time of a launch, and a kernel that is clean at one size is nearly always clean at the next.
"""

import pytest

from ptxdsl import config
from ptxdsl.runtime import dispatch

_checked = set()


@pytest.fixture(autouse=True)
def check_once(request, monkeypatch):
    """Launch with `checks=False` what this process launched with checks before. The exhaustive tier always checks."""
    if request.config.option.exhaustive:
        return
    run = dispatch.emulation.run

    def launch(variant, *arguments):
        key = variant.arch, variant.text, config.current().schedule
        with config.using(checks=config.current().checks and key not in _checked):
            run(variant, *arguments)
        _checked.add(key)

    monkeypatch.setattr(dispatch.emulation, "run", launch)
