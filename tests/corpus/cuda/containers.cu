// nvcc: -arch=sm_80
// Pointer-rich code: a hash table with probing, a binary search, a linked list, a work queue, new and delete.
struct Slot { unsigned long long key; unsigned value; };
struct Node { Node *next; int value; };
__device__ unsigned head;

__global__ void insert(Slot *table, unsigned mask, const unsigned long long *keys, const unsigned *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long key = keys[i], hash = key * 0x9E3779B97F4A7C15ull;
    for (unsigned at = (unsigned)(hash >> 32) & mask;; at = (at + 1) & mask) {
        unsigned long long seen = atomicCAS(&table[at].key, ~0ull, key);
        if (seen == ~0ull || seen == key) {
            atomicAdd(&table[at].value, values[i]);
            return;
        }
    }
}

__global__ void search(const double *sorted, int n, const double *x, int *at) {
    int low = 0, high = n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (sorted[middle] < x[threadIdx.x]) low = middle + 1; else high = middle;
    }
    at[threadIdx.x] = low;
}

__global__ void walk(Node **lists, int *lengths) {
    int n = 0;
    for (Node *p = lists[threadIdx.x]; p; p = p->next) n += p->value != 0;
    lengths[threadIdx.x] = n;
}

__global__ void workers(const int *jobs, int *out, int n) {
    __shared__ int mine;
    for (;;) {
        if (threadIdx.x == 0) mine = atomicAdd(&head, 1u);
        __syncthreads();
        int job = mine;
        __syncthreads();
        if (job >= n) break;
        out[job * blockDim.x + threadIdx.x] = jobs[job] * threadIdx.x;
    }
}

__global__ void heap(Node **lists) {
    Node *node = new Node{lists[threadIdx.x], (int)threadIdx.x};
    if (node->next && node->next->value < 0) delete node->next;
    lists[threadIdx.x] = node;
}
