// nvcc: -arch=sm_80; -arch=sm_90 -G
// Recursion, function pointers in a table, virtual functions, mutual recursion.
typedef int (*Step)(int, int);
__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ __noinline__ int minus(int a, int b) { return a - b; }
__device__ Step steps[3] = {plus, times, minus};

__device__ __noinline__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}
__device__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    float side;
    __device__ Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Disc : Shape {
    float radius;
    __device__ Disc(float r) : radius(r) {}
    __device__ float area() const override { return 3.14159274f * radius * radius; }
};

__global__ void dispatch(int *x, float *areas) {
    int i = threadIdx.x;
    x[i] = steps[x[i] % 3](x[i], i) + ackermann(2, i & 3) + even(i);
    Square square(1.5f);
    Disc disc(0.5f);
    const Shape *shape = i & 1 ? static_cast<const Shape *>(&square) : &disc;
    areas[i] = shape->area();
}
