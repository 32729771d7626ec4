"""Random calls of the public functions, each held against numpy in float64; what lies beside an output must not change.

`python -m tests.random_calls` runs many; `tests/kernels/test_random_calls.py` some.
"""
