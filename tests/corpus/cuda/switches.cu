// nvcc: -arch=sm_80; -arch=sm_90 -lineinfo
// Dense switches (brx.idx and jump tables), early exits, loops with break and continue, goto.
__device__ __noinline__ int interpret(const unsigned char *code, int x) {
    int acc = x;
    for (int pc = 0;; ++pc) {
        switch (code[pc]) {
        case 0: return acc;
        case 1: acc += 3; break;
        case 2: acc *= acc; break;
        case 3: acc = acc >> 2 | acc << 30; break;
        case 4: acc ^= 0x5bd1e995; break;
        case 5: acc = -acc; break;
        case 6: if (acc < 0) pc += 2; break;
        case 7: acc = __popc(acc); break;
        case 8: acc = __clz(acc) + __ffs(acc); break;
        case 9: acc = __brev(acc); break;
        case 10: acc = acc / 7 % 1000; break;
        case 11: acc = min(acc, 100) + max(acc, 5); break;
        case 12: acc = __mulhi(acc, 0x10001); break;
        default: return -1;
        }
    }
}

__global__ void run(const unsigned char *code, int *x) { x[threadIdx.x] = interpret(code, x[threadIdx.x]); }

__global__ void flow(const int *x, int *y, int n) {
    int i = threadIdx.x, sum = 0;
    for (int k = 0; k < n; ++k) {
        if (x[k] < 0) continue;
        if (x[k] == 99) break;
        for (int j = k; j < n; j += 2) {
            if (x[j] == i) goto found;
            sum += x[j] * k;
        }
    }
    y[i] = sum;
    return;
found:
    y[i] = -1;
}
