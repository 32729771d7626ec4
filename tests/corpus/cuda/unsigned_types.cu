// nvcc: -arch=sm_75; -arch=sm_90
// All integer widths through arithmetic, comparison, conversion and selection; predicates kept as values.
template <class T>
__global__ void operators(const T *a, const T *b, T *c, bool *p) {
    int i = threadIdx.x;
    T x = a[i], y = b[i], z = x > y ? x - y : x + y;
    z = (T)((z & x) | (y ^ ~x)) + (T)(x * y) - (T)(y ? x / y : x) + (T)(y ? x % y : y);
    z += (T)(x << (y & 3)) + (T)(x >> (y & 3));
    c[i] = x == y ? z : (x <= y && z != x) || (x >= z && !(y < z)) ? (T)-z : (T)~z;
    p[i] = (x > 3) & (y < 100) | !(z == 5);
}
template __global__ void operators<signed char>(const signed char *, const signed char *, signed char *, bool *);
template __global__ void operators<unsigned char>(const unsigned char *, const unsigned char *, unsigned char *, bool *);
template __global__ void operators<short>(const short *, const short *, short *, bool *);
template __global__ void operators<unsigned short>(const unsigned short *, const unsigned short *, unsigned short *, bool *);
template __global__ void operators<int>(const int *, const int *, int *, bool *);
template __global__ void operators<unsigned>(const unsigned *, const unsigned *, unsigned *, bool *);
template __global__ void operators<long long>(const long long *, const long long *, long long *, bool *);
template __global__ void operators<unsigned long long>(const unsigned long long *, const unsigned long long *, unsigned long long *, bool *);
