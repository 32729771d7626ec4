"""What the assembler must keep in registers."""

import pytest

import ptxdsl as pd


def check_no_spill(kernel, traits, arch="sm_90a", **constants):
    """That a kernel of warpgroups keeps all in registers. Skips where there is no assembler that heeds setmaxnreg."""
    try:
        resources = kernel.resources(arch, traits=traits, **constants)
    except pd.AssembleError as refusal:
        assert "(C7504)" in refusal.message
        pytest.skip("nvJitLink ignores setmaxnreg, and there is no ptxas")
    assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0
