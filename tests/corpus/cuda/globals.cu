// nvcc: -arch=sm_80; -arch=sm_90
// Module variables: constant tables, initialised structs, pointers to other variables, managed, strings.
__constant__ float weights[5] = {1.0f, -0.5f, 0.25f, 3.5e-8f, __builtin_inff()};
__constant__ unsigned long long masks[3] = {0x8000000000000000ull, 0xffull, 1ull};
__constant__ int loose[128];
struct Entry { char name[6]; short code; double scale; };
__device__ Entry entries[3] = {{"alpha", -3, 0.1}, {"b", 7, -2e300}, {"", 0, 1.0}};
__device__ int counter = 17;
__device__ int *where = &counter;
__device__ const float *middle = nullptr;
__device__ unsigned char bytes[7] = {1, 2, 3, 255, 5};
__device__ double large[1024];
__managed__ int shared_with_host = 3;
__device__ static const char message[] = "a \"quoted\" word";

__global__ void read_all(double *out, char *text) {
    int i = threadIdx.x;
    const Entry &e = entries[i % 3];
    out[i] = weights[i % 5] * e.scale + e.code + *where + bytes[i % 7] + large[i] + loose[i & 127] + (double)masks[i % 3];
    if (middle) out[i] += *middle;
    text[i] = e.name[i % 6] + message[i % sizeof(message)];
    counter += shared_with_host;
    large[i] = out[i];
}
