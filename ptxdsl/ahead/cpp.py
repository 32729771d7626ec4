"""The header in C and the launcher in C++ of a program: it is linked to the driver, and reads no header of CUDA."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ptxdsl.ahead.program import AheadKernel, AheadParameter, AheadProgram
from ptxdsl.isa.tensor_map import MAP_BYTES
from ptxdsl.runtime.values import Bytes
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import Pointer, Type

_FLOATS = {"f32": "float", "f64": "double"}
_BYTES_A_LINE = 24
_HEADER = """\
/* {title}, for {targets}: written by `ptxdsl build`. */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

struct CUstream_st;

/* How a kernel is launched: blocks of the grid and threads of a block along x, y and z, bytes of dynamic shared memory
   (0 for what the kernel needs), and a CUstream or cudaStream_t, NULL for the default one. */
struct {name}_launch {{
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    struct CUstream_st *stream;
}};

/* Each launches a kernel in the current context, whose GPU has the memory that pointers point to, and returns a
   CUresult: 0 where the launch was queued. The first launch in a context loads the machine code there. */

{functions}

#ifdef __cplusplus
}}
#endif

#endif
"""
_SOURCE = """\
/* {title}, for {targets}: written by `ptxdsl build`. Link with -lcuda. */
#include "{name}.h"

#include <map>
#include <mutex>

/* What is used of the CUDA driver, so that no toolkit is needed to compile this. */
extern "C" {{
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
int cuCtxGetCurrent(CUcontext *);
int cuModuleLoadData(CUmodule *, const void *);
int cuModuleGetFunction(CUfunction *, CUmodule, const char *);
int cuFuncSetAttribute(CUfunction, int, int);
int cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   struct CUstream_st *, void **, void **);
}}

namespace {{

const int INVALID_CONTEXT = 201, MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;
const unsigned USUAL_DYNAMIC_BYTES = 48 * 1024;

/* The machine code for all targets, from which the driver takes its own. */
alignas(16) const unsigned char PTXDSL_IMAGE[] = {{
{image}
}};

std::mutex ptxdsl_guard;
std::map<CUcontext, CUmodule> ptxdsl_modules;

int ptxdsl_find(const char *name, CUfunction *function) {{
    CUcontext context = nullptr;
    if (int status = cuCtxGetCurrent(&context)) return status;
    if (context == nullptr) return INVALID_CONTEXT;
    std::lock_guard<std::mutex> held(ptxdsl_guard);
    CUmodule &module = ptxdsl_modules[context];
    if (module == nullptr) {{
        if (int status = cuModuleLoadData(&module, PTXDSL_IMAGE)) return status;
    }}
    return cuModuleGetFunction(function, module, name);
}}

int ptxdsl_start(const char *name, const {name}_launch *how, unsigned needed, void **parameters) {{
    CUfunction function = nullptr;
    if (int status = ptxdsl_find(name, &function)) return status;
    const unsigned bytes = how->shared_bytes > needed ? how->shared_bytes : needed;
    if (bytes > USUAL_DYNAMIC_BYTES) {{
        if (int status = cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED_SIZE_BYTES, int(bytes))) return status;
    }}
    return cuLaunchKernel(function, how->grid[0], how->grid[1], how->grid[2], how->block[0], how->block[1],
                          how->block[2], bytes, how->stream, parameters, nullptr);
}}

}} // namespace

{functions}
"""


def header(program: AheadProgram) -> str:
    """The header, for C and C++."""
    functions = "\n\n".join(_declared(program, kernel) for kernel in program.kernels)
    guard = f"{program.name.upper()}_H"
    return _HEADER.format(
        title=_title(program), targets=program.targets, guard=guard, name=program.name, functions=functions
    )


def source(program: AheadProgram) -> str:
    """The launcher, with the machine code in it."""
    image = program.image
    rows = [image[n : n + _BYTES_A_LINE] for n in range(0, len(image), _BYTES_A_LINE)]
    return _SOURCE.format(
        title=_title(program),
        targets=program.targets,
        name=program.name,
        image="\n".join("    " + ",".join(map(str, row)) + "," for row in rows),
        functions="\n\n".join(_defined(program, kernel) for kernel in program.kernels),
    )


def _title(program: AheadProgram) -> str:
    return ", ".join(kernel.name for kernel in program.kernels)


def _declared(program: AheadProgram, kernel: AheadKernel) -> str:
    about = [line for p in kernel.parameters if (line := _about(p))]
    if kernel.block:
        about.insert(0, f"blocks of {' x '.join(map(str, kernel.block))} threads")
    if kernel.shared_bytes is None:
        about.append("shared_bytes is what its array in shared memory shall have")
    elif kernel.shared_bytes:
        about.append(f"{kernel.shared_bytes} bytes of dynamic shared memory")
    said = (
        textwrap.fill("; ".join(about), 112, initial_indent="/* ", subsequent_indent="   ") + " */\n" if about else ""
    )
    return f"{said}{_signature(program, kernel)};"


def _about(parameter: AheadParameter) -> str:
    """What the type in C does not say."""
    kind = parameter.kind
    if isinstance(kind, TensorMap):
        return f"{parameter.name}: a CUtensorMap for {kind}"
    if isinstance(kind, Bytes):
        return f"{parameter.name}: {kind}"
    element = kind.element if isinstance(kind, Pointer) else kind
    return (
        ""
        if element.is_integer or element.kind == "b" or element.name in _FLOATS
        else f"{parameter.name}: the bits of {element}"
    )


def _signature(program: AheadProgram, kernel: AheadKernel) -> str:
    parameters = [f"const struct {program.name}_launch *launch", *map(_parameter, kernel.parameters)]
    text = textwrap.fill(", ".join(parameters), 108, subsequent_indent="    ", break_long_words=False)
    return f"int {kernel.name}({text})"


def _parameter(parameter: AheadParameter) -> str:
    kind = parameter.kind
    if isinstance(kind, Pointer):
        const = "" if parameter.is_written else "const "
        return f"{const}{_c(kind.element)} *{parameter.name}"
    if isinstance(kind, Type):
        return f"{_c(kind)} {parameter.name}"
    return f"const void *{parameter.name}"


def _c(type: Type) -> str:
    """A type of C with the bits of one of PTX."""
    return _FLOATS.get(type.name) or f"{'' if type.is_signed and type.is_integer else 'u'}int{type.bits}_t"


def _defined(program: AheadProgram, kernel: AheadKernel) -> str:
    addresses = ", ".join(_addresses(kernel)) or "nullptr"
    return (
        f"{_signature(program, kernel)} {{\n"
        f"    void *parameters[] = {{{addresses}}};\n"
        f'    return ptxdsl_start("{kernel.name}", launch, {kernel.shared_bytes or 0}, parameters);\n'
        "}"
    )


def _addresses(kernel: AheadKernel) -> Iterator[str]:
    """Where the driver finds each parameter: those that are structs are where the caller has them."""
    for parameter in kernel.parameters:
        is_struct = isinstance(parameter.kind, Bytes | TensorMap)
        yield f"const_cast<void *>({parameter.name})" if is_struct else f"&{parameter.name}"


def struct_bytes(parameter: AheadParameter) -> int:
    """The bytes of a parameter that is a struct."""
    return parameter.kind.size if isinstance(parameter.kind, Bytes) else MAP_BYTES
