"""Public functions on the host: launch a known call, or check, choose, plan and launch.

- call: this sequence, and the base class of the checked calls
- paths: what kernels there are for a call, and the selection of a configuration among them
- gemm, products: one product
- groups, scaled, convolutions: grouped GEMM, scaled GEMM, convolutions
- launching: launch plans, kept launches, workspaces
- matrix, matrices: arrays of any library
- tuned, elsewhere: `config="tune"`; argument names of other libraries
"""
