// Launches on the first GPU, and compares. The declarations are those of cuda.h, which need not be there.
#include "axpy.h"

#include <cstdio>
#include <vector>

extern "C" {
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemcpyHtoD_v2(unsigned long long, const void *, size_t);
int cuMemcpyDtoH_v2(void *, unsigned long long, size_t);
}

#define CHECK(call)                                                    \
    if (int status = (call)) {                                         \
        std::printf("%s: %d\n", #call, status);                        \
        return 1;                                                      \
    }

int main() {
    const unsigned n = 1000;
    std::vector<float> x(n), y(n, 1.0f);
    for (unsigned i = 0; i < n; ++i) x[i] = float(i);
    void *context = nullptr;
    unsigned long long xs = 0, ys = 0;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc_v2(&xs, n * 4));
    CHECK(cuMemAlloc_v2(&ys, n * 4));
    CHECK(cuMemcpyHtoD_v2(xs, x.data(), n * 4));
    CHECK(cuMemcpyHtoD_v2(ys, y.data(), n * 4));
    const axpy_launch how = {{8, 1, 1}, {128, 1, 1}, 0, nullptr};
    CHECK(axpy(&how, reinterpret_cast<const float *>(xs), reinterpret_cast<float *>(ys), 2.0f, n));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH_v2(y.data(), ys, n * 4));
    unsigned wrong = 0;
    for (unsigned i = 0; i < n; ++i) wrong += y[i] != 2.0f * float(i) + 1.0f;
    std::printf("%u wrong\n", wrong);
    return wrong != 0;
}
