// nvcc: -arch=sm_80; -arch=sm_90
// cuda::atomic_ref: orders and scopes, fences, 16-byte exchange is left out (sm_90 needs -arch=sm_90a there).
#include <cuda/atomic>

__global__ void orders(int *flag, unsigned long long *data, float *f) {
    cuda::atomic_ref<int, cuda::thread_scope_device> device(*flag);
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_system> system(*data);
    cuda::atomic_ref<float, cuda::thread_scope_block> block(*f);
    device.store(1, cuda::std::memory_order_release);
    while (device.load(cuda::std::memory_order_acquire) < 2) __nanosleep(20);
    system.fetch_add(5, cuda::std::memory_order_acq_rel);
    system.fetch_max(9, cuda::std::memory_order_relaxed);
    int expected = 3;
    device.compare_exchange_strong(expected, 4, cuda::std::memory_order_seq_cst);
    block.fetch_add(1.0f, cuda::std::memory_order_relaxed);
    cuda::atomic_thread_fence(cuda::std::memory_order_seq_cst, cuda::thread_scope_device);
    *data += expected + system.exchange(11, cuda::std::memory_order_acquire);
}

__global__ void fences(volatile int *a, int *b) {
    a[0] = 1;
    __threadfence_block();
    b[0] = a[1];
    __threadfence();
    a[2] = b[1];
    __threadfence_system();
    b[2] = a[3];
}
