"""Arrays that a step leaves behind serve those of the next one."""

import platform
import subprocess
import sys

import pytest

ROUNDS = """
import resource
import numpy as np
from ptxdsl.emulate.memory.heap import keep_freed_memory

keep_freed_memory()

def fresh_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    [np.ones(3 << 20, np.uint8) for _ in range(5)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(min(fresh_pages() for _ in range(4)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="its malloc is the one that gives memory back")
def test_arrays_take_the_memory_of_those_before():
    pages = int(subprocess.run([sys.executable, "-c", ROUNDS], capture_output=True, text=True, check=True).stdout)
    assert pages < 500, "15 MiB are 3840 pages"
