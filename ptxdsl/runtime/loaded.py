"""Load machine code into the contexts of GPUs: modules, their kernels and their variables."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ptxdsl import driver
from ptxdsl.assemble import Cubin
from ptxdsl.driver import call
from ptxdsl.isa.cluster_size import Clusters
from ptxdsl.runtime.arguments import Signature
from ptxdsl.runtime.limits import LaunchLimits, check_threads
from ptxdsl.runtime.shape import Shape, in_clusters, launch_shape, refuse

_DEFAULT_DYNAMIC_BYTES = 48 * 1024  # a kernel must opt in to more
_PORTABLE_CLUSTER_BLOCKS = 8


class Image:
    """A cubin, loaded once per GPU for all of its kernels, so that they share its variables.

    `contents` are the initial bytes of variables, written after loading.
    """

    def __init__(self, cubin: Cubin) -> None:
        self.cubin = cubin
        self.contents: dict[str, bytes] = {}
        self._modules: dict[int, Any] = {}

    def on(self, device: int, name: str) -> Any:
        """Return the module in the primary context of a GPU; load it if necessary. `name` is for messages."""
        if device not in self._modules:
            self._modules[device] = self._load(driver.device(device), name)
            for variable, content in self.contents.items():
                self.write(device, variable, content)
        return self._modules[device]

    def _load(self, device: driver.Device, name: str) -> Any:
        if not runs_on(self.cubin.arch, device.capability):
            refuse(
                f"`{name}` is assembled for {self.cubin.arch}, which {device} cannot run",
                f"assemble it for {device.arch}",
            )
        with driver.on(device.ordinal):
            return call(f"loading {name} on {device}", driver.cuda.cuModuleLoadData, self.cubin.image)

    @property
    def devices(self) -> tuple[int, ...]:
        """The GPUs on which it is loaded."""
        return tuple(self._modules)

    def read(self, device: int, variable: str) -> bytes:
        """Wait for all work on the GPU, then read the bytes of a variable."""
        address, size = self._find(device, variable)
        content = ctypes.create_string_buffer(size)
        with driver.on(device):
            call(f"reading `{variable}`", driver.cuda.cuCtxSynchronize)
            call(f"reading `{variable}`", driver.cuda.cuMemcpyDtoH, content, address, size)
        return content.raw

    def write(self, device: int, variable: str, content: bytes) -> None:
        """Wait for all work on the GPU, then write the bytes of a variable."""
        address, size = self._find(device, variable)
        with driver.on(device):
            call(f"writing `{variable}`", driver.cuda.cuCtxSynchronize)
            octets = np.frombuffer(content, np.uint8)
            call(f"writing `{variable}`", driver.cuda.cuMemcpyHtoD, address, octets.ctypes.data, size)

    def _find(self, device: int, variable: str) -> tuple[Any, int]:
        """Return the address and size of a variable."""
        module = self.on(device, variable)
        with driver.on(device):
            address, size = call(f"looking for `{variable}`", driver.cuda.cuModuleGetGlobal, module, variable.encode())
        return address, int(size)


class Loaded:
    """One kernel in the primary context of one GPU. It is never unloaded, since launches may be in flight."""

    def __init__(self, image: Image, signature: Signature, device: int) -> None:
        self._name = signature.kernel
        self._device = driver.device(device)
        module = image.on(device, self._name)
        with driver.on(device):
            self._function = call(
                f"loading {self._name} on {self._device}",
                driver.cuda.cuModuleGetFunction, module, self._name.encode(),
            )  # fmt: skip
            # Querying an attribute loads the code now, so that even the first launch can be captured.
            self._max_threads = self._attribute("MAX_THREADS_PER_BLOCK")
            self._clusters = self._promised()
        resources = image.cubin.kernels.get(self._name)
        static_bytes = resources.shared_bytes if resources else self._attribute("SHARED_SIZE_BYTES")
        major, minor = self._device.capability
        self._limits = LaunchLimits(
            self._name, self._device, 10 * major + minor, self._device.shared_bytes, static_bytes
        )
        self._dynamic_bytes = _DEFAULT_DYNAMIC_BYTES - static_bytes
        layout, offsets = signature.slots()
        self._new_slots = partial(_Slots, layout.size, offsets)
        self._slots = self._new_slots()
        self._pack_into = layout.pack_into
        self._config = lru_cache(maxsize=1024)(self._make_config)
        self._launch = driver.cuda.cuLaunchKernelEx

    def launch(self, shape: tuple[object, ...], values: Sequence[object], stream: int) -> None:
        """Launch with one number, address or bytes per parameter. Raises struct.error for a number out of range."""
        config = self._config(shape, stream)
        buffer, addresses = self._slots.memory
        self._pack_into(buffer, 0, *values)
        (status,) = self._launch(config, self._function, addresses, 0)
        if status:
            self._again(status, config, addresses)

    def _again(self, status: object, config: object, addresses: int) -> None:
        """Retry in our context if the thread's current context was another or none; nothing was launched then."""
        if status in driver.ELSEWHERE:
            with driver.on(self._device.ordinal):
                (status,) = self._launch(config, self._function, addresses, 0)
        if status:
            raise driver.failure(f"launching {self._name} on {self._device}", status)

    def scope(self) -> dict[str, Any]:
        """Return the names that the function of a launch record uses; each has its own parameter buffer."""
        return {
            "configs": self._config,
            "slots": self._new_slots(),
            "pack_into": self._pack_into,
            "run": self._launch,
            "function": self._function,
            "again": self._again,
        }

    def occupancy(self, shape: Shape) -> int:
        self._allow(shape)
        query = driver.cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor
        with driver.on(self._device.ordinal):
            blocks = call("querying the occupancy", query, self._function, shape.threads, shape.shared_bytes)
        return int(blocks)

    def _make_config(self, asked: tuple[Any, ...], stream: int) -> Any:
        """Return the driver's launch configuration, which is immutable afterwards, so that threads can share it."""
        shape = asked if isinstance(asked, Shape) else launch_shape(*asked)
        shape = in_clusters(shape, self._name, self._clusters)
        self._allow(shape)
        config = driver.cuda.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = shape.block
        config.sharedMemBytes = shape.shared_bytes
        config.hStream = driver.cuda.CUstream(stream)
        config.attrs = _launch_attributes(shape._replace(cluster=None) if self._clusters.required else shape)
        config.numAttrs = len(config.attrs)
        return config

    def _allow(self, shape: Shape) -> None:
        """Refuse a launch that this GPU does not support, and opt in to large shared memory and large clusters."""
        check_threads(self._name, shape, self._max_threads)
        self._limits.check(shape)
        if shape.shared_bytes > self._dynamic_bytes:
            self._set_attribute("MAX_DYNAMIC_SHARED_SIZE_BYTES", shape.shared_bytes)
            self._dynamic_bytes = shape.shared_bytes
        if shape.cluster and shape.cluster[0] * shape.cluster[1] * shape.cluster[2] > _PORTABLE_CLUSTER_BLOCKS:
            self._set_attribute("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)

    def _promised(self) -> Clusters:
        """Return the cluster shape compiled into the machine code, which the driver applies by itself."""
        if self._device.capability < (9, 0):
            return Clusters()
        x, y, z = (self._attribute(f"REQUIRED_CLUSTER_{axis}") for axis in ("WIDTH", "HEIGHT", "DEPTH"))
        return Clusters((x, y, z) if x else None, None, bool(self._attribute("CLUSTER_SIZE_MUST_BE_SET")))

    def _attribute(self, name: str) -> int:
        attribute = getattr(driver.cuda.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(call(f"querying {name}", driver.cuda.cuFuncGetAttribute, attribute, self._function))

    def _set_attribute(self, name: str, value: int) -> None:
        attribute = getattr(driver.cuda.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        with driver.on(self._device.ordinal):
            call(f"setting {name}", driver.cuda.cuFuncSetAttribute, self._function, attribute, value)


def _launch_attributes(shape: Shape) -> list[Any]:
    attributes = []
    if shape.cluster:
        cluster = _attribute("CLUSTER_DIMENSION")
        extents = cluster.value.clusterDim
        extents.x, extents.y, extents.z = shape.cluster
        attributes.append(cluster)
    if shape.cooperative:
        cooperative = _attribute("COOPERATIVE")
        cooperative.value.cooperative = 1
        attributes.append(cooperative)
    if shape.dependent:
        dependent = _attribute("PROGRAMMATIC_STREAM_SERIALIZATION")
        dependent.value.programmaticStreamSerializationAllowed = 1
        attributes.append(dependent)
    return attributes


def _attribute(name: str) -> Any:
    """Return a launch attribute without its value."""
    attribute = driver.cuda.CUlaunchAttribute()
    attribute.id = getattr(driver.cuda.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
    return attribute


class _Slots(threading.local):
    """The buffer from which the driver reads parameters; one per thread, since a launch releases the GIL.

    `kept` adds two lists in which the launcher caches the packed parameters and the last configuration with its key.
    """

    def __init__(self, size: int, offsets: Sequence[int]) -> None:
        buffer = ctypes.create_string_buffer(max(size, 1))
        start = ctypes.addressof(buffer)
        self._pointers = (ctypes.c_void_p * max(len(offsets), 1))(*(start + offset for offset in offsets))
        self.memory = buffer, ctypes.addressof(self._pointers)
        self.kept: tuple[Any, int, list[Any], list[Any]] = *self.memory, [None] * 3, [None] * 3


def runs_on(arch: str, capability: tuple[int, int]) -> bool:
    """True if machine code for `arch` runs on a GPU of this compute capability.

    Code for sm_80 runs on 8.0 and later 8.x; code for sm_90a on 9.0 alone; code for sm_100f on 10.0 and later 10.x.
    """
    number = arch.removeprefix("sm_").rstrip("af")
    major, minor = int(number[:-1]), int(number[-1])
    if arch.endswith("a"):
        return (major, minor) == capability
    return major == capability[0] and minor <= capability[1]
