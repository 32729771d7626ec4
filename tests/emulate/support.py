"""Small kernels in PTX text, and running them."""

from ptxdsl.emulate import emulate
from ptxdsl.parse import parse

HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"
REGISTERS = (
    ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .f32 %f<16>; .reg .f64 %d<8>; "
)


def source(body, parameters="x: u64", module=""):
    """A module with the kernel `k`. Its body begins in line 6 of the text, if that of the module is one line."""
    declared = ", ".join(f".param .{kind.strip()} {name.strip()}" for name, kind in _pairs(parameters))
    return f"{HEAD}{module}\n.visible .entry k({declared})\n{{ {REGISTERS}{body}\n}}\n"


def _pairs(parameters):
    return [part.split(":") for part in parameters.split(",") if part.strip()]


def run(body, *arguments, grid=1, block=32, parameters="x: u64", module="", **options):
    """The report of a kernel with this body."""
    return launch(source(body, parameters, module), *arguments, grid=grid, block=block, **options)


def launch(text, *arguments, grid=1, block=32, name=None, **options):
    """The report of a kernel of a module, the first one if no name is given."""
    module = parse(text)
    kernel = next(f for f in module.kernels if name in (None, f.name))
    return emulate(kernel, module, _extents(grid), _extents(block), arguments, **options)


def _extents(value):
    return (*(value if isinstance(value, tuple) else (value,)), 1, 1)[:3]


def clean(report):
    """The report, which must have no findings."""
    assert not report.findings, str(report)
    return report


def only(report):
    """The one finding of a report."""
    assert len(report.findings) == 1, str(report)
    return report.findings[0]
