"""Products of scaled 8-bit floats on Hopper: of one or a batch, of groups of rows, and of groups along K."""

from ptxdsl.kernels.scaled.along_k import scaled_gemm_ragged_k as scaled_gemm_ragged_k
from ptxdsl.kernels.scaled.along_k import scaled_ragged_k_kernel as scaled_ragged_k_kernel
from ptxdsl.kernels.scaled.groups import scaled_gemm_masked as scaled_gemm_masked
from ptxdsl.kernels.scaled.groups import scaled_gemm_ragged as scaled_gemm_ragged
from ptxdsl.kernels.scaled.groups import scaled_ragged_kernel as scaled_ragged_kernel
from ptxdsl.kernels.scaled.product import scaled_gemm as scaled_gemm
from ptxdsl.kernels.scaled.product import scaled_kernel as scaled_kernel
