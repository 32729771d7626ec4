"""What a user reads who asks for a framework that is not installed."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize("how", ["import ptxdsl.{}", "import ptxdsl as pd; pd.{}"])
def test_a_framework_that_is_not_installed(framework, how):
    script = f"import sys; sys.modules[{framework!r}] = None; {how.format(framework)}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.endswith(
        f"ModuleNotFoundError: ptxdsl.{framework} needs {framework}, which is not installed\n"
        f"  help: pip install 'ptxdsl[{framework}]'\n"
    )
