// nvcc: -arch=sm_80; -arch=sm_80 -lineinfo
// printf with every kind of argument, assert, trap, strings and characters that need escapes.
#include <cassert>
#include <cstdio>

__global__ void report(const float *x, const long long *n, int limit) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(i < limit && "index past the limit");
    printf("thread %d of block %u: %f and %lld, \"%s\" %c %%\n", threadIdx.x, blockIdx.x, x[i], n[i], "text\twith\\escapes", 'q');
    if (n[i] < 0) {
        printf("negative: nothing more to say\n");
        __trap();
    }
    if (n[i] == 7) asm volatile("exit;");
    if (n[i] == 8) __brkpt();
}
