"""`ptxdsl build`: machine code for several targets, and launchers in C++ and in Python that need nothing of ours."""

import ast
import ctypes
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from ptxdsl import cli
from ptxdsl.ahead import fatbin as fatbins
from ptxdsl.ahead.fatbin import fatbin
from ptxdsl.assemble import assemble
from ptxdsl.errors import AssembleError
from tests.ahead.kernels import axpy, many

HERE = Path(__file__).parent
KERNELS = str(HERE / "kernels.py")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")


def build(folder, name, *options):
    assert cli.main(["build", f"{KERNELS}:{name}", "-o", str(folder), *options]) == 0
    return folder


def refused(capsys, *arguments):
    assert cli.main(["build", *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    return "\n".join([lines[0].removeprefix("ptxdsl: "), *[line for line in lines if line.startswith("  help: ")]])


def run(*command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("built"), "axpy", "--arch", "sm_80,sm_90a")


def test_it_writes_four_files_and_says_what_they_need(tmp_path, capsys):
    build(tmp_path, "axpy", "--arch", "sm_80,sm_90a")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["axpy, sm_80", "axpy, sm_90a"]
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert {Path(line.partition(": ")[0]).name: int(line.split()[-2]) for line in lines[2:]} == sizes
    assert set(sizes) == {"axpy.fatbin", "axpy.h", "axpy.cpp", "axpy.py"}


@pytest.mark.skipif(shutil.which("fatbinary") is None, reason="NVIDIA's command fatbinary is not installed")
def test_the_container_has_the_bytes_that_nvidias_command_writes(tmp_path):
    targets = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a")
    cubins = {arch: axpy.cubin(arch).image for arch in targets}
    images = []
    for arch, cubin in cubins.items():
        (tmp_path / f"{arch}.cubin").write_bytes(cubin)
        images.append(f"--image3=kind=elf,sm={arch.removeprefix('sm_')},file={arch}.cubin")
    run("fatbinary", "--64", "--create=theirs.fatbin", "--compress=false", *images, folder=tmp_path)
    assert fatbin(cubins) == (tmp_path / "theirs.fatbin").read_bytes()


def test_what_takes_nvidias_command_is_refused_without_it(monkeypatch):
    monkeypatch.setattr(fatbins, "tool", lambda name: None)
    with pytest.raises(AssembleError) as refusal:
        fatbin({"sm_90a": b"", "sm_100f": b""})
    assert refusal.value.message == (
        "packing machine code for sm_100f needs the command fatbinary, which is not installed"
    )
    assert refusal.value.help == "install the CUDA toolkit, or build for targets up to sm_90a"


@pytest.mark.skipif(shutil.which("fatbinary") is None, reason="NVIDIA's command fatbinary is not installed")
def test_later_targets_are_put_into_a_file_by_nvidias_command(tmp_path):
    build(tmp_path, "axpy", "--arch", "sm_90,sm_100f")
    content = (tmp_path / "axpy.fatbin").read_bytes()
    assert axpy.cubin("sm_90").image in content and axpy.cubin("sm_100f").image in content


@needs_compiler
def test_the_launcher_compiles_links_and_launches(built, tmp_path):
    strict = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", str(built))
    run("gcc", "-shared", "-fPIC", str(HERE / "fake_cuda.c"), "-o", "libcuda.so", folder=tmp_path)
    run("gcc", "-std=c99", *strict, "-c", str(HERE / "main.c"), "-o", "main.o", folder=tmp_path)
    run("g++", "-std=c++11", *strict, "-c", str(built / "axpy.cpp"), "-o", "axpy.o", folder=tmp_path)
    run("g++", "main.o", "axpy.o", "-L.", "-lcuda", "-Wl,-rpath,.", "-o", "main", folder=tmp_path)
    assert run("./main", folder=tmp_path).splitlines() == [
        "load ba55ed50",
        "axpy 8 1 1 128 1 1 0: 1000 2000 2.5 1000",
        "axpy: attribute 8 is 100000",
        "axpy 8 1 1 128 1 1 100000: 1000 2000 2.5 1000",
    ]


@needs_compiler
@pytest.mark.gpu
def test_the_launcher_runs_on_a_gpu(built, tmp_path):
    files = (str(HERE / "main_gpu.cpp"), str(built / "axpy.cpp"))
    run("g++", "-I", str(built), *files, "-l:libcuda.so.1", "-o", "main", folder=tmp_path)
    assert run("./main", folder=tmp_path) == "0 wrong\n"


@pytest.mark.gpu
def test_the_python_module_runs_on_a_gpu_without_us(built, tmp_path):
    script = f"""
import sys
sys.path.insert(0, {str(built)!r})
import axpy
import struct
from cuda.bindings import driver
def call(function, *arguments):
    status, *results = function(*arguments)
    assert not int(status), status
    return results[0] if results else None
call(driver.cuInit, 0)
call(driver.cuCtxSetCurrent, call(driver.cuDevicePrimaryCtxRetain, 0))
x, y = call(driver.cuMemAlloc, 4000), call(driver.cuMemAlloc, 4000)
content = struct.pack("1000f", *range(1000))
call(driver.cuMemcpyHtoD, x, content, 4000)
call(driver.cuMemcpyHtoD, y, content, 4000)
axpy.axpy(8, 128, int(x), int(y), 2.0, 1000)
out = bytearray(4000)
call(driver.cuMemcpyDtoH, out, y, 4000)
print(struct.unpack("1000f", out) == tuple(3.0 * i for i in range(1000)), "ptxdsl" in sys.modules)
"""
    assert run(sys.executable, "-c", script, folder=tmp_path) == "True False\n"


class FakeDriver(types.SimpleNamespace):
    """What the module of Python asks of cuda.bindings.driver; `launched` are the arguments, with the parameters' bytes."""

    CUresult = types.SimpleNamespace(CUDA_SUCCESS=0)
    CUfunction_attribute = types.SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8)

    def __init__(self, sizes):
        super().__init__()
        self.sizes, self.launched, self.loads, self.set = sizes, [], 0, []

    def cuCtxGetCurrent(self):
        return 0, 77

    def cuModuleLoadData(self, image):
        self.loads += 1
        return 0, image[:4]

    def cuModuleGetFunction(self, module, name):
        assert module == b"\x50\xed\x55\xba"
        return 0, name

    def cuFuncSetAttribute(self, *arguments):
        self.set.append(arguments)
        return (0,)

    def cuLaunchKernel(self, function, *arguments):
        *shape, parameters, extra = arguments
        pointers = (ctypes.c_void_p * len(self.sizes)).from_address(parameters)
        values = [ctypes.string_at(p, size) for p, size in zip(pointers, self.sizes, strict=True)]
        self.launched.append((function, tuple(shape), values, extra))
        return (0,)


def imported(folder, name, driver, monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda", types.ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", types.SimpleNamespace(driver=driver))
    names = {"__file__": str(folder / f"{name}.py")}
    exec((folder / f"{name}.py").read_text(), names)
    return names[name]


def test_the_python_module_launches(built, monkeypatch):
    driver = FakeDriver((8, 8, 4, 4))
    axpy = imported(built, "axpy", driver, monkeypatch)
    array = types.SimpleNamespace(__cuda_array_interface__={"data": (0x2000, False)})
    for _ in range(2):
        axpy(8, (128, 2), 0x1000, array, 2.5, 1000, stream=5)
    values = [
        (0x1000).to_bytes(8, "little"),
        (0x2000).to_bytes(8, "little"),
        np.float32(2.5).tobytes(),
        np.uint32(1000).tobytes(),
    ]
    assert driver.launched[1] == (b"axpy", (8, 1, 1, 128, 2, 1, 0, 5), values, 0)
    assert driver.loads == 1


def test_groups_halves_and_dynamic_shared_memory(tmp_path, monkeypatch):
    build(tmp_path, "many")
    text = (tmp_path / "many.h").read_text()
    assert (
        """
/* blocks of 32 x 4 threads; m_data: the bits of bf16; out: the bits of f16; half: the bits of f16; 80000 bytes
   of dynamic shared memory */
int many(const struct many_launch *launch, const uint16_t *m_data, uint64_t m_stride, uint16_t *out, uint16_t half,
    int8_t byte, uint32_t int_);
"""
        in text
    )
    driver = FakeDriver((8, 8, 8, 2, 1, 4))
    many = imported(tmp_path, "many", driver, monkeypatch)
    many(1, (32, 4), 1, 2, 3, 0.5, -1, 6)
    assert driver.launched[0][1] == (1, 1, 1, 32, 4, 1, 80000, 0)
    assert driver.launched[0][2][3:] == [np.float16(0.5).tobytes(), b"\xff", b"\6\0\0\0"]
    assert driver.set == [(b"many", 8, 80000)]


def test_a_tensor_map_is_passed_as_its_bytes(tmp_path, monkeypatch):
    build(tmp_path, "hopper", "--arch", "sm_90a")
    assert (
        "int hopper(const struct hopper_launch *launch, const void *x, float *y);"
        in (tmp_path / "hopper.h").read_text()
    )
    driver = FakeDriver((128, 8))
    imported(tmp_path, "hopper", driver, monkeypatch)(1, 128, bytes(range(128)), 3)
    assert driver.launched[0][2][0] == bytes(range(128))


@needs_compiler
def test_a_linked_program_is_built_with_all_of_its_kernels(tmp_path):
    build(tmp_path, "both")
    assert "int axpy(" in (tmp_path / "both.h").read_text() and "int caller(" in (tmp_path / "both.h").read_text()
    run("g++", "-Wall", "-Werror", "-c", "both.cpp", folder=tmp_path)


def test_ptx_is_built(tmp_path, capsys):
    source = tmp_path / "mine.ptx"
    source.write_text(axpy.ptx())
    assert cli.main(["build", str(source), "--arch", "sm_80,sm_90a", "-o", str(tmp_path)]) == 0
    assert (
        "int axpy(const struct mine_launch *launch, uint64_t x, uint64_t y, float a, uint32_t n);"
        in (tmp_path / "mine.h").read_text()
    )


def test_the_modules_import_what_is_promised(built):
    tree = ast.parse((built / "axpy.py").read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names == {"ctypes", "struct", "pathlib", "cuda.bindings"}
    includes = [line for line in (built / "axpy.cpp").read_text().splitlines() if line.startswith("#include")]
    assert includes == ['#include "axpy.h"', "#include <map>", "#include <mutex>"]


REFUSED = {
    (f"{KERNELS}:hopper", "--arch", "sm_80,sm_90a"): f"{KERNELS}:hopper cannot be built for sm_80: "
    "wgmma.fence.sync.aligned needs sm_90a; this kernel is traced for sm_80\n  help: leave sm_80 out: --arch sm_90a",
    (f"{KERNELS}:axpy", "--arch", "sm_80,sm_81"): "unknown architecture `sm_81`\n  help: did you mean `sm_89`? known architectures are …",
    (f"{KERNELS}:axpy", "--arch", "sm_80, sm90"): "unknown architecture `sm90`\n  help: did you mean `sm_90`? known architectures are …",
    (f"{KERNELS}:axpy", "--arch", ""): "unknown architecture ``\n  help: known architectures are …",
    (f"{KERNELS}:axpy", "--arch", "sm_80,sm_80"): "--arch sm_80,sm_80 names a target twice\n  help: name each target once",
    (f"{KERNELS}:doubled",): f"`doubled` of {KERNELS} is a device function, not a kernel\n  help: name a kernel that calls it",
    (f"{KERNELS}:axpy", "--name", "a-b"): "`a-b` cannot be the name of files and functions in C++\n  help: write --name "
    "NAME, with letters, digits and underscores",
    (f"{KERNELS}:both", "--const", "n=3"): "--const n=3: both has no constants\n  help: leave it out",
    (f"{KERNELS}:axpy", "-o", f"{KERNELS}/x"): f"{KERNELS}/x cannot be written: Not a directory",
}  # fmt: skip


@pytest.mark.parametrize("arguments", REFUSED, ids=lambda a: " ".join(a).replace(str(HERE), ""))
def test_what_cannot_be_built_is_refused_by_name(arguments, capsys):
    said = refused(capsys, *arguments)
    expected = REFUSED[arguments]
    assert said.startswith(expected.removesuffix("…")) if expected.endswith("…") else said == expected


def test_targets_that_take_other_parameters_are_refused(tmp_path, capsys):
    source = tmp_path / "differing.py"
    source.write_text("""
import ptxdsl as pd
from ptxdsl import f32, ptr

@pd.kernel
def k(x: ptr[f32], *, wide=False):
    x[0] = 1.0

@pd.kernel
def other(x: ptr[f32], y: ptr[f32]):
    x[0] = 1.0

class Choice(type(k)):
    def variant(self, arch, constants):
        return (other if arch == "sm_90a" else k).variant(arch, {})

chosen = Choice(k.signature.function, k.signature, k.options)
""")
    assert cli.main(["build", f"{source}:chosen", "--arch", "sm_80,sm_90a", "-o", str(tmp_path)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "ptxdsl: kernel `k` takes x: ptr[f32] on sm_80, but x: ptr[f32], y: ptr[f32] on sm_90a",
        "  help: build for one of them at a time: a program has one launcher for all of its targets",
    ]


def test_machine_code_is_that_of_the_kernel(built):
    content = (built / "axpy.fatbin").read_bytes()
    for arch in ("sm_80", "sm_90a"):
        assert axpy.cubin(arch).image in content
    assert assemble(many.ptx(), "sm_80").image not in content
