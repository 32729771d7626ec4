"""A stand-in for the functions of the CUDA driver, which records what it is asked to do; no GPU and no libcuda.

Types and enumerations are those of the real bindings. A launch records the bytes of each parameter.
"""

import ctypes
from contextlib import contextmanager

from cuda.bindings import driver as real

from ptxdsl import driver

SUCCESS = real.CUresult.CUDA_SUCCESS
ATTRIBUTES = {
    "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "MULTIPROCESSOR_COUNT": 132, "CLOCK_RATE": 1980000,
    "MEMORY_CLOCK_RATE": 3201000, "GLOBAL_MEMORY_BUS_WIDTH": 6144,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448, "MAX_THREADS_PER_BLOCK": 1024,
}  # fmt: skip
CLUSTER_ATTRIBUTES = (
    "REQUIRED_CLUSTER_WIDTH", "REQUIRED_CLUSTER_HEIGHT", "REQUIRED_CLUSTER_DEPTH", "CLUSTER_SIZE_MUST_BE_SET",
)  # fmt: skip

CACHED = (driver.why_no_gpu, driver.device_count, driver.device, driver.primary_context)


@contextmanager
def installed(fake):
    """This stand-in instead of the driver; what was known of the GPUs is forgotten before and after."""
    before, driver.cuda = driver.cuda, fake
    for function in CACHED:
        function.cache_clear()
    try:
        yield fake
    finally:
        driver.cuda = before
        for function in CACHED:
            function.cache_clear()


class FakeCuda:
    """`widths` are the sizes in bytes of the kernel's parameters; `run` is called with each launch, as its kernel.

    GPUs are alike, but for what `others` says of them: `others={1: {"COMPUTE_CAPABILITY_MAJOR": 8}}`.
    """

    def __init__(self, widths=(), gpus=1, others=None, **attributes):
        self.widths, self.gpus, self.attributes, self.others = widths, gpus, ATTRIBUTES | attributes, others or {}
        self.contexts, self.launches, self.loaded, self.function_attributes = [], [], [], []
        self.memory, self.failing, self.max_threads = {}, {}, 1024
        self.variables, self.globals, self.maps = {}, {}, []
        self.cluster, self.explicit_cluster = (0, 0, 0), 0  # what the machine code is made for
        self.graph = None  # that streams are captured into: what it owns, (address, the function that frees it)
        self.run = lambda launch: None

    def __getattr__(self, name):
        if name.startswith("cu") and not name.startswith("cuuint"):
            raise AssertionError(f"the fake driver has no {name}")
        return getattr(real, name)

    def result(self, function, *values):
        """What a driver function returns; `failing[function]` makes it fail."""
        status = self.failing.get(function, SUCCESS)
        return (status, *values) if status == SUCCESS else (status, *(None for _ in values))

    def cuInit(self, flags):
        return self.result("cuInit")

    def cuGetErrorString(self, status):
        return SUCCESS, f"explanation of {int(status)}".encode()

    def cuDriverGetVersion(self):
        return self.result("cuDriverGetVersion", 13000)

    def cuDeviceGetCount(self):
        return self.result("cuDeviceGetCount", self.gpus)

    def cuDeviceGet(self, ordinal):
        return self.result("cuDeviceGet", ordinal)

    def cuDeviceGetName(self, length, device):
        return self.result("cuDeviceGetName", f"Fake {device}".encode().ljust(length, b"\0"))

    def cuDeviceGetAttribute(self, attribute, device):
        own = self.attributes | self.others.get(int(device), {})
        return SUCCESS, own[attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def cuDevicePrimaryCtxRetain(self, device):
        return self.result("cuDevicePrimaryCtxRetain", real.CUcontext(1000 + device))

    def cuCtxPushCurrent(self, context):
        self.contexts.append(context)
        return self.result("cuCtxPushCurrent")

    def cuCtxPopCurrent(self):
        return self.result("cuCtxPopCurrent", self.contexts.pop())

    def cuCtxSynchronize(self):
        return self.result("cuCtxSynchronize")

    def cuModuleLoadData(self, image):
        self.loaded.append((self.current, image))
        return self.result("cuModuleLoadData", real.CUmodule(2000 + len(self.loaded)))

    def cuModuleGetGlobal(self, module, name):
        """Variables are as long as `variables` says, and zero in each module that is loaded."""
        if name.decode() not in self.variables:
            return real.CUresult.CUDA_ERROR_NOT_FOUND, None, None
        size = self.variables[name.decode()]
        buffer = self.globals.setdefault((int(module), name), ctypes.create_string_buffer(size))
        return self.result("cuModuleGetGlobal", real.CUdeviceptr(ctypes.addressof(buffer)), size)

    def cuModuleGetFunction(self, module, name):
        return self.result("cuModuleGetFunction", real.CUfunction(3000 + self.current))

    def cuFuncGetAttribute(self, attribute, function):
        clusters = dict(zip(CLUSTER_ATTRIBUTES, (*self.cluster, self.explicit_cluster), strict=True))
        known = {"MAX_THREADS_PER_BLOCK": self.max_threads, "SHARED_SIZE_BYTES": 64} | clusters
        return self.result("cuFuncGetAttribute", known[attribute.name.removeprefix("CU_FUNC_ATTRIBUTE_")])

    def cuFuncSetAttribute(self, function, attribute, value):
        self.function_attributes.append((attribute.name.removeprefix("CU_FUNC_ATTRIBUTE_"), value))
        return self.result("cuFuncSetAttribute")

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, function, threads, shared_bytes):
        return self.result("cuOccupancyMaxActiveBlocksPerMultiprocessor", 2048 // threads)

    def cuTensorMapEncodeTiled(self, type, rank, address, dims, strides, box, steps, *modes):
        """A tensor map that begins with the number of the call; `maps` has what each was made of."""
        if self.current is None:
            return real.CUresult.CUDA_ERROR_INVALID_CONTEXT, None
        names = [mode.name.rpartition("_TENSOR_MAP_")[2] for mode in (type, *modes)]
        self.maps.append(
            (rank, address, *([int(n) for n in numbers] for numbers in (dims, strides, box, steps)), names)
        )
        map = real.CUtensorMap()
        map.opaque = [real.cuuint64_t(len(self.maps)), *[real.cuuint64_t(0)] * 15]
        return self.result("cuTensorMapEncodeTiled", map)

    def cuTensorMapEncodeIm2col(
        self, type, rank, address, dims, strides, lower, upper, channels, pixels, steps, *modes
    ):
        """As for tiles; corners are ints, as the driver's bindings take them."""
        assert all(isinstance(n, int) for n in (*lower, *upper))
        self.pixels = lower, upper, int(channels), int(pixels)
        return self.cuTensorMapEncodeTiled(type, rank, address, dims, strides, [], steps, *modes)

    def cuPointerGetAttribute(self, attribute, pointer):
        return self.result("cuPointerGetAttribute", pointer >> 40)

    def cuMemAlloc(self, size):
        buffer = ctypes.create_string_buffer(size)
        self.memory[ctypes.addressof(buffer)] = buffer
        return self.result("cuMemAlloc", real.CUdeviceptr(ctypes.addressof(buffer)))

    def cuMemFree(self, address):
        del self.memory[address]
        return self.result("cuMemFree")

    def cuMemcpyHtoD(self, target, source, size):
        ctypes.memmove(int(target), source, size)
        return self.result("cuMemcpyHtoD")

    def cuMemcpyDtoH(self, target, source, size):
        ctypes.memmove(target, int(source), size)
        return self.result("cuMemcpyDtoH")

    def cuMemcpyHtoDAsync(self, target, source, size, stream):
        return self.cuMemcpyHtoD(target, source, size)

    def cuMemsetD8Async(self, target, value, size, stream):
        ctypes.memset(target, value, size)
        return self.result("cuMemsetD8Async")

    def cuStreamCreate(self, flags):
        return self.result("cuStreamCreate", 5)

    def cuStreamSynchronize(self, stream):
        return self.result("cuStreamSynchronize")

    def cuStreamDestroy(self, stream):
        return self.result("cuStreamDestroy")

    def cuStreamIsCapturing(self, stream):
        return self.result("cuStreamIsCapturing", 0 if self.graph is None else 1)

    def cuStreamGetCaptureInfo(self, stream):
        return self.result("cuStreamGetCaptureInfo", 1, 5, self.graph, None, None, 0)

    def cuUserObjectCreate(self, pointer, destroy, references, flags):
        assert (references, flags) == (1, int(real.CUuserObject_flags.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC))
        return self.result("cuUserObjectCreate", (pointer, int(destroy)))

    def cuGraphRetainUserObject(self, graph, owned, references, flags):
        assert (references, flags) == (1, int(real.CUuserObjectRetain_flags.CU_GRAPH_USER_OBJECT_MOVE))
        graph.append(owned)
        return self.result("cuGraphRetainUserObject")

    def cuThreadExchangeStreamCaptureMode(self, mode):
        return self.result("cuThreadExchangeStreamCaptureMode", mode)

    @property
    def current(self):
        """The GPU of the current context, None where there is none."""
        return int(self.contexts[-1]) - 1000 if self.contexts else None

    def cuLaunchKernelEx(self, config, function, parameters, extra):
        if self.current is None:
            return (real.CUresult.CUDA_ERROR_INVALID_CONTEXT,)
        if self.current != int(function) - 3000:
            return (real.CUresult.CUDA_ERROR_INVALID_HANDLE,)
        pointers = (ctypes.c_void_p * len(self.widths)).from_address(parameters)
        launch = {
            "device": self.current,
            "grid": (config.gridDimX, config.gridDimY, config.gridDimZ),
            "block": (config.blockDimX, config.blockDimY, config.blockDimZ),
            "shared_bytes": config.sharedMemBytes,
            "stream": int(config.hStream),
            "attributes": [_attribute(attribute) for attribute in config.attrs],
            "parameters": [ctypes.string_at(p, width) for p, width in zip(pointers, self.widths, strict=True)],
        }
        self.launches.append(launch)
        self.run(launch)
        return self.result("cuLaunchKernelEx")


def _attribute(attribute):
    kind = attribute.id.name.removeprefix("CU_LAUNCH_ATTRIBUTE_")
    if kind == "CLUSTER_DIMENSION":
        return kind, (attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z)
    if kind == "PROGRAMMATIC_STREAM_SERIALIZATION":
        return kind, attribute.value.programmaticStreamSerializationAllowed
    return kind, attribute.value.cooperative


class TimedCuda(FakeCuda):
    """A driver whose events say how long launches with such blocks take, in microseconds; copies are recorded."""

    def __init__(self, widths, times):
        super().__init__(widths=widths)
        self.times = times
        self.copies, self.events, self.flushes = [], 0, 0

    def cuEventCreate(self, flags):
        self.events += 1
        return self.result("cuEventCreate", self.events)

    def cuEventDestroy(self, event):
        self.events -= 1
        return self.result("cuEventDestroy")

    def cuEventRecord(self, event, stream):
        return self.result("cuEventRecord")

    def cuEventSynchronize(self, event):
        return self.result("cuEventSynchronize")

    def cuEventElapsedTime(self, start, end):
        return self.result("cuEventElapsedTime", self.times[self.launches[-1]["block"][0]] / 1000)

    def cuMemsetD8Async(self, target, value, size, stream):
        self.flushes += 1
        return self.result("cuMemsetD8Async")

    def cuMemcpyDtoDAsync(self, target, source, size, stream):
        self.copies.append((int(target), int(source), size, stream))
        return self.result("cuMemcpyDtoDAsync")
