"""Public functions on the host: look up a known launch, or check, choose, plan and launch.

- gemm, products: one product
- groups, scaled, convolutions: grouped GEMM, scaled GEMM, convolutions
- launching: known launches, plans, workspaces
- matrix, matrices: arrays of any library
- tuned, elsewhere: `config="tune"`; arguments known from other libraries
"""
