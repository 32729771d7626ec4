"""Arrays of the examples on the emulator or the GPU, and the comparison of results.

Without a flag, arrays are numpy's and kernels run on the emulator. With `--device cuda`, arrays are torch's, else
CuPy's, and kernels run on the GPU; without either library, ptxdsl copies the numpy arrays to the GPU and back.
"""

import importlib
import importlib.util
import os
import sys

import numpy as np

from ptxdsl import driver
from ptxdsl.cli.trial import gpu_seconds

ON_GPU = "cuda" in sys.argv or "--device=cuda" in sys.argv
if ON_GPU and (reason := driver.why_no_gpu()):
    sys.exit(f"--device cuda: {reason}\n  help: leave it out, and the kernels run on the emulator")
LIBRARY = next((name for name in ("torch", "cupy") if ON_GPU and importlib.util.find_spec(name)), None)
if ON_GPU and LIBRARY is None:
    os.environ["PTXDSL_DEVICE"] = "cuda"


def to_device(array):
    """Return a numpy array on the device where the kernels run."""
    if LIBRARY == "torch":
        torch = importlib.import_module("torch")
        if array.dtype.name == "bfloat16":  # torch reads bfloat16 from numpy only as raw bits
            return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16).cuda()
        return torch.from_numpy(array).cuda()
    return importlib.import_module("cupy").asarray(array) if LIBRARY == "cupy" else array


def to_host(array):
    """Return an array as numpy, after the kernels have finished."""
    if LIBRARY == "torch":
        host = array.cpu()
        return (host.float() if "bfloat16" in str(host.dtype) else host).numpy()
    return array if LIBRARY is None else array.get()


def check(what, found, expected, tolerance=0.0):
    """Print `ok`, or exit with code 1 if an element is off by more than `tolerance`."""
    error = abs(np.asarray(to_host(found), np.float64) - expected).max(initial=0.0)
    if not error <= tolerance:  # true for NaN too
        sys.exit(f"FAILED  {what}: an element is off by {error:.3g}; at most {tolerance:.3g} is rounding")
    print(f"ok  {what}, on the {'GPU' if ON_GPU else 'emulator'} (largest error {error:.2g})")


def seconds(run):
    """Return the median time of `run` on the GPU."""
    with driver.on(0):
        return gpu_seconds(run)
