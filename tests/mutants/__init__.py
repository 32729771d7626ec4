"""Shipped kernels with one thing taken from them or displaced: whether the emulator finds it, or the number tells.

`python -m tests.mutants` runs all mutants and prints the table of `docs/mutants.md`; with names of subjects, those only.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads beside those processes would share their cores
