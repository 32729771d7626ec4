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
    for overlap in ("with", "without"):
        line = f"{ranks} rank{'s' * (ranks > 1)}, {overlap} overlap, on the emulator"
        assert len(re.findall(f"^ok .*{line}", done.stdout, re.MULTILINE)) == 5


@pytest.mark.parametrize("sharded", [(), ("--fsdp",)])
def test_training_on_two_ranks(sharded):
    done = torchrun("19_train_experts.py", 2, *sharded)
    assert done.returncode == 0, done.stderr
    assert "ok  losses of 4 steps" in done.stdout


def ended(example, *arguments, gpus=0, **environment):
    """What an example says that ends before it begins, on a machine that seems to have so many GPUs."""
    stand_in = f"import torch; torch.cuda.device_count = lambda: {gpus}; "
    stand_in += (
        f"from ptxdsl import driver; driver.why_no_gpu = lambda: {None if gpus else 'the CUDA driver finds no GPU'!r}; "
    )
    script = f"import runpy, sys; sys.argv[0] = {example!r}; {stand_in}runpy.run_path({example!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        cwd=EXAMPLES,
        timeout=100,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(EXAMPLES.parent), str(EXAMPLES)]), **environment},
    )
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("example", ["19_train_experts.py", "20_expert_parallel.py"])
def test_nccl_without_gpus(example):
    assert ended(example, "--device", "cuda", LOCAL_WORLD_SIZE="2") == (
        "--device cuda: the CUDA driver finds no GPU\n  help: leave it out, and the kernels run on the emulator\n"
    )


FEWER = "gloo instead of NCCL), or leave out --device cuda: gloo and the emulator\n"


@pytest.mark.parametrize(
    ("arguments", "ranks", "sentence"),
    [
        (
            ["--device", "cuda"], 2,
            "2 ranks need 2 GPUs, with 1 on each; this machine has 1\n"
            "  help: start fewer, let some share a GPU with --ranks-per-gpu=2 (" + FEWER,
        ),
        (
            ["--device", "cuda", "--ranks-per-gpu=2"], 4,
            "4 ranks need 2 GPUs, with 2 on each; this machine has 1\n"
            "  help: start fewer, let some share a GPU with --ranks-per-gpu=2 (" + FEWER,
        ),
        (["--device", "cuda", "--ranks-per-gpu=0"], 1, "--ranks-per-gpu=0\n  help: pass a number of 1 or more\n"),
        ([], 3, "3 ranks cannot share 8 experts evenly\n  help: start 1, 2, 4 or 8\n"),
        (["--bench"], 1, "--bench needs GPUs\n  help: add --device cuda, or leave out --bench\n"),
    ],
    ids=["NCCL", "shared GPUs", "none a GPU", "three ranks", "figures of the emulator"],
)  # fmt: skip
def test_experts_that_cannot_run_as_asked(arguments, ranks, sentence):
    sizes = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    assert ended("20_expert_parallel.py", *arguments, gpus=1, **sizes) == sentence


def test_training_on_fewer_gpus_than_ranks():
    assert ended("19_train_experts.py", "--device", "cuda", gpus=1, LOCAL_RANK="1", WORLD_SIZE="2") == (
        "rank 1 of this machine needs a GPU of its own; there are 1\n"
        "  help: start fewer ranks, or leave out --device cuda: gloo and the emulator\n"
    )
