// nvcc: -arch=sm_75; -arch=sm_80
// The C++ wmma interface: f16, int8, bf16, tf32 and double fragments.
#include <mma.h>
using namespace nvcuda;

__global__ void halves(const __half *a, const __half *b, float *c, int n) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
    wmma::fill_fragment(z, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(x, a + k, n);
        wmma::load_matrix_sync(y, b + k, n);
        wmma::mma_sync(z, x, y, z);
    }
    for (int i = 0; i < z.num_elements; ++i) z.x[i] *= 0.5f;
    wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major);
}

__global__ void bytes(const signed char *a, const signed char *b, int *c) {
    wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::col_major> x;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 32, 8, 16, int> z;
    wmma::load_matrix_sync(x, a, 32);
    wmma::load_matrix_sync(y, b, 8);
    wmma::load_matrix_sync(z, c, 8, wmma::mem_row_major);
    wmma::mma_sync(z, x, y, z, true);
    wmma::store_matrix_sync(c, z, 8, wmma::mem_col_major);
}

#if __CUDA_ARCH__ >= 800
__global__ void doubles(const double *a, const double *b, double *c) {
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> z;
    wmma::load_matrix_sync(x, a, 4);
    wmma::load_matrix_sync(y, b, 4);
    wmma::load_matrix_sync(z, c, 8, wmma::mem_row_major);
    wmma::mma_sync(z, x, y, z);
    wmma::store_matrix_sync(c, z, 8, wmma::mem_row_major);
}

__global__ void tensor_floats(const float *a, const float *b, float *c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> z;
    wmma::fill_fragment(z, 0.0f);
    wmma::load_matrix_sync(x, a, 8);
    wmma::load_matrix_sync(y, b, 16);
    for (int i = 0; i < x.num_elements; ++i) x.x[i] = wmma::__float_to_tf32(x.x[i]);
    for (int i = 0; i < y.num_elements; ++i) y.x[i] = wmma::__float_to_tf32(y.x[i]);
    wmma::mma_sync(z, x, y, z);
    wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major);
}
#endif
