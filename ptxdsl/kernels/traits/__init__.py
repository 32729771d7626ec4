"""The properties that a kernel is specialised for.

- traits: `Traits`: tiling, operands, schedule, epilogue
- parameters: the parameters of kernels
"""
