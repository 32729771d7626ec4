/* A CUDA driver that says what it is asked to do, for launchers that are run without a GPU. */
#include <stdio.h>
#include <string.h>

static int context, module;

int cuCtxGetCurrent(void **current) { *current = &context; return 0; }

int cuModuleLoadData(void **loaded, const unsigned char *image) {
    printf("load %02x%02x%02x%02x\n", image[3], image[2], image[1], image[0]);
    *loaded = &module;
    return 0;
}

int cuModuleGetFunction(const char **function, void *from, const char *name) {
    *function = name;
    return from == &module ? 0 : 400;
}

int cuFuncSetAttribute(const char *function, int attribute, int value) {
    printf("%s: attribute %d is %d\n", function, attribute, value);
    return 0;
}

int cuLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared_bytes, void *stream, void **parameters, void **extra) {
    unsigned long long x, y;
    float a;
    unsigned n;
    memcpy(&x, parameters[0], 8);
    memcpy(&y, parameters[1], 8);
    memcpy(&a, parameters[2], 4);
    memcpy(&n, parameters[3], 4);
    printf("%s %u %u %u %u %u %u %u: %llx %llx %g %u\n", function, gx, gy, gz, bx, by, bz, shared_bytes, x, y, a, n);
    return stream == NULL && extra == NULL ? 0 : 1;
}
