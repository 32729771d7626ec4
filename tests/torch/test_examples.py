"""Examples on several ranks: gloo and the emulator."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")
EXAMPLES = Path(__file__).parents[2] / "examples"


def torchrun(example, ranks, *arguments):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    path = os.pathsep.join([str(EXAMPLES.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command += [str(EXAMPLES / example), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)


@pytest.mark.parametrize(("ranks", "options"), [(1, ()), (2, ()), (4, ()), (2, ("--ranks-per-gpu=2",))])
def test_experts_have_one_result_on_any_number_of_ranks(ranks, options):
    """That of one device in float64, and its gradients; also where rows are copied on their way, as on shared GPUs."""
    done = torchrun("20_expert_parallel.py", ranks, *options)
    assert done.returncode == 0, done.stderr
    for when in ("before", "beside"):
        told = f"{ranks} rank{'s' * (ranks > 1)}, rows travel {when} products, on the emulator"
        assert len(re.findall(f"^ok .*{told}", done.stdout, re.MULTILINE)) == 5


@pytest.mark.parametrize("sharded", [(), ("--fsdp",)])
def test_training_on_two_ranks(sharded):
    done = torchrun("19_train_experts.py", 2, *sharded)
    assert done.returncode == 0, done.stderr
    assert "ok  losses of 4 steps" in done.stdout


def test_nccl_without_gpus():
    environment = {
        **os.environ,
        "PYTHONPATH": str(EXAMPLES.parent),
        "CUDA_VISIBLE_DEVICES": "",
        "LOCAL_WORLD_SIZE": "2",
    }
    command = [sys.executable, str(EXAMPLES / "20_expert_parallel.py"), "--device", "cuda"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert done.stderr == (
        "2 ranks need 2 GPUs, with 1 on each; this machine has 0\n"
        "  help: start fewer, let some share a GPU with --ranks-per-gpu=2 (gloo instead of NCCL), or leave out "
        "--device cuda: gloo and the emulator\n"
    )
